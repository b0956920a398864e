//! Reading the tokens file.
//!
//! ```toml
//! [tokens.editor]
//! hash = "sha256-<hex of the SHA-256 of the raw token>"
//! paths = ["/notes/**"]
//! operations = ["publish", "read"]
//! expires = "2027-01-01T00:00:00Z"
//! ```
//!
//! `read_paths` adds places that may be read and not published to; other servers of the format
//! don't know it.
//!
//! A file is taken whole or not at all, and a fault is named by its line and never by what stands
//! there: people paste raw tokens into the wrong place. A file without a `[tokens]` table is a
//! fault, since that is what a truncated one looks like; `[tokens]` with nothing in it is the
//! honest way to have none. Fields that nobody knows are faults too: `expire` for `expires` would
//! make a token that never ends.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use thiserror::Error;
use toml_edit::{Document, Item, TableLike, Value};
use wire::ContentHash;

use crate::caller::TokenDigest;
use crate::closed::join;
use crate::grants::{Operation, Token};
use crate::pattern::{Pattern, PatternError};

/// The most tokens one file may hold: each is a few hundred bytes of memory for ever.
pub const TOKENS_MAX: usize = 10_000;

/// The most patterns one token may have: a decision looks at each of them.
pub const PATTERNS_PER_TOKEN_MAX: usize = 256;

/// A fault in the tokens file or in the file of closed places, and the line it is on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {fault}")]
pub struct FileFault {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub fault: Fault,
}

/// What can be wrong in the tokens file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// The same hash under two labels.
    #[error("this hash is that of token `{0}` too")]
    DuplicateHash(String),
    /// An `expires` that is no instant.
    #[error("`expires` must be an instant such as 2027-01-01T00:00:00Z")]
    Expires,
    /// A `hash` that is none.
    #[error("`hash` must be sha256- and 64 lower-case hex digits")]
    Hash,
    /// A field that has to be there.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// No `[tokens]` table, as in an empty or truncated file.
    #[error("there is no [tokens] table; write an empty one to have no tokens")]
    NoTable,
    /// An operation that isn't `publish` or `read`.
    #[error("an operation is \"publish\" or \"read\"")]
    Operation,
    /// A pattern that can't be used.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A value of the wrong kind.
    #[error("`{0}` must be {1}")]
    Shape(&'static str, &'static str),
    /// Text that isn't TOML.
    #[error("not TOML: {0}")]
    Syntax(String),
    /// More entries than the limit.
    #[error("more than {0} {1}")]
    TooMany(usize, &'static str),
    /// A field that nobody knows.
    #[error("unknown field; known are {0}")]
    Unknown(&'static str),
}

const TOKEN_FIELDS: &str = "hash, paths, operations, read_paths, expires";

/// A text and where it stands.
type Placed<'a> = (&'a str, Option<Range<usize>>);

/// Reads the text of a tokens file.
pub(crate) fn parse(text: &str) -> Result<HashMap<TokenDigest, Token>, FileFault> {
    let document = Document::parse(text).map_err(|error| syntax_fault(text, &error))?;
    let reader = Reader { text };
    let root = document.as_table();
    if let Some((key, _)) = root.iter().find(|(key, _)| *key != "tokens") {
        let span = root.key(key).and_then(toml_edit::Key::span);
        return Err(reader.fault(span, Fault::Unknown("tokens")));
    }
    let Some(item) = root.get("tokens") else {
        return Err(reader.fault(None, Fault::NoTable));
    };
    let Some(entries) = item.as_table_like() else {
        return Err(reader.fault(item.span(), Fault::Shape("tokens", "a table")));
    };
    if entries.len() > TOKENS_MAX {
        return Err(reader.fault(item.span(), Fault::TooMany(TOKENS_MAX, "tokens")));
    }
    let mut tokens: HashMap<TokenDigest, Token> = HashMap::with_capacity(entries.len());
    for (label, entry) in entries.iter() {
        let key_span = entries.key(label).and_then(toml_edit::Key::span);
        let (digest, token) = reader.token(label, entry, key_span)?;
        if let Some(twin) = tokens.get(&digest) {
            let span = entry.get("hash").and_then(Item::span);
            return Err(reader.fault(span, Fault::DuplicateHash(twin.label.clone())));
        }
        tokens.insert(digest, token);
    }
    Ok(tokens)
}

/// The fault of a text that isn't TOML. The library's message never quotes the text.
pub(crate) fn syntax_fault(text: &str, error: &toml_edit::TomlError) -> FileFault {
    let message = error.message().replace('\n', ", ");
    Reader { text }.fault(error.span(), Fault::Syntax(message))
}

/// Turns places in the text into lines.
pub(crate) struct Reader<'a> {
    pub(crate) text: &'a str,
}

impl Reader<'_> {
    pub(crate) fn fault(&self, span: Option<Range<usize>>, fault: Fault) -> FileFault {
        let end = span.map_or(0, |span| span.start.min(self.text.len()));
        let newlines = self.text.as_bytes()[..end]
            .iter()
            .filter(|byte| **byte == b'\n');
        FileFault {
            line: newlines.count() + 1,
            fault,
        }
    }

    fn token(
        &self,
        label: &str,
        entry: &Item,
        key_span: Option<Range<usize>>,
    ) -> Result<(TokenDigest, Token), FileFault> {
        let span = entry.span().or(key_span);
        let Some(fields) = entry.as_table_like() else {
            return Err(self.fault(span, Fault::Shape("token", "a table")));
        };
        self.only_known(fields, &span)?;
        let missing = |name| self.fault(span.clone(), Fault::Missing(name));
        let hash = fields.get("hash").ok_or_else(|| missing("hash"))?;
        let paths = fields.get("paths").ok_or_else(|| missing("paths"))?;
        let operations = fields
            .get("operations")
            .ok_or_else(|| missing("operations"))?;
        let hash = self.hash(hash)?;
        let paths = self.patterns("paths", paths)?;
        let mut token = Token {
            label: label.to_owned(),
            publish: Vec::new(),
            read: Vec::new(),
            expires: fields
                .get("expires")
                .map(|item| self.expires(item))
                .transpose()?,
            refused: AtomicBool::new(false),
        };
        if let Some(item) = fields.get("read_paths") {
            token.read = self.patterns("read_paths", item)?;
        }
        for operation in self.operations(operations)? {
            match operation {
                Operation::Publish => join(&mut token.publish, &paths),
                Operation::Read => join(&mut token.read, &paths),
            };
        }
        Ok((hash, token))
    }

    fn only_known(
        &self,
        fields: &dyn TableLike,
        span: &Option<Range<usize>>,
    ) -> Result<(), FileFault> {
        let known = |key: &str| TOKEN_FIELDS.split(", ").any(|field| field == key);
        let Some((key, _)) = fields.iter().find(|(key, _)| !known(key)) else {
            return Ok(());
        };
        let span = fields
            .key(key)
            .and_then(toml_edit::Key::span)
            .or_else(|| span.clone());
        Err(self.fault(span, Fault::Unknown(TOKEN_FIELDS)))
    }

    fn hash(&self, item: &Item) -> Result<TokenDigest, FileFault> {
        item.as_str()
            .and_then(|text| ContentHash::parse(text).ok())
            .map(|hash| TokenDigest::from_bytes(*hash.as_bytes()))
            .ok_or_else(|| self.fault(item.span(), Fault::Hash))
    }

    fn expires(&self, item: &Item) -> Result<Timestamp, FileFault> {
        let text = match item.as_value() {
            Some(Value::String(text)) => text.value().clone(),
            Some(Value::Datetime(instant)) => instant.value().to_string(),
            _ => return Err(self.fault(item.span(), Fault::Expires)),
        };
        text.parse()
            .map_err(|_| self.fault(item.span(), Fault::Expires))
    }

    fn operations(&self, item: &Item) -> Result<Vec<Operation>, FileFault> {
        let parse = |(word, span)| match word {
            "publish" => Ok(Operation::Publish),
            "read" => Ok(Operation::Read),
            _ => Err(self.fault(span, Fault::Operation)),
        };
        self.texts("operations", item)?
            .into_iter()
            .map(parse)
            .collect()
    }

    /// The patterns of the list `item`, which stands under `name`.
    pub(crate) fn patterns(
        &self,
        name: &'static str,
        item: &Item,
    ) -> Result<Vec<Pattern>, FileFault> {
        let texts = self.texts(name, item)?;
        let parse = |(text, span): Placed<'_>| {
            let pattern = text.parse::<Pattern>();
            pattern.map_err(|error| self.fault(span, Fault::Pattern(error)))
        };
        texts.into_iter().map(parse).collect()
    }

    fn texts<'i>(&self, name: &'static str, item: &'i Item) -> Result<Vec<Placed<'i>>, FileFault> {
        let shape = |span| self.fault(span, Fault::Shape(name, "a list of texts"));
        let list = item.as_array().ok_or_else(|| shape(item.span()))?;
        if name != "closed" && list.len() > PATTERNS_PER_TOKEN_MAX {
            let fault = Fault::TooMany(PATTERNS_PER_TOKEN_MAX, "patterns in one token");
            return Err(self.fault(item.span(), fault));
        }
        list.iter()
            .map(|value| {
                let text = value.as_str().ok_or_else(|| shape(value.span()))?;
                Ok((text, value.span()))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "sha256-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

    fn fault_of(text: &str) -> FileFault {
        parse(text).unwrap_err()
    }

    #[test]
    fn a_whole_token_is_read() {
        let text = format!(
            "# the editor\n[tokens.editor]\nhash = \"{HASH}\"\npaths = [\"/notes/**\"]\n\
             operations = [\"publish\", \"read\"]\nexpires = \"2027-01-01T00:00:00Z\"\n"
        );
        let tokens = parse(&text).unwrap();
        let token = &tokens[&TokenDigest::of("test")];
        assert_eq!(token.label, "editor");
        assert_eq!(token.publish[0].as_str(), "/notes/**");
        assert_eq!(token.read, token.publish);
        assert_eq!(token.expires.unwrap().to_string(), "2027-01-01T00:00:00Z");
    }

    #[test]
    fn an_unquoted_instant_is_read_too() {
        let text = format!(
            "[tokens.a]\nhash = \"{HASH}\"\npaths = []\noperations = []\n\
             expires = 2027-01-01T00:00:00+01:00\n"
        );
        let tokens = parse(&text).unwrap();
        let expires = tokens[&TokenDigest::of("test")].expires.unwrap();
        assert_eq!(expires.to_string(), "2026-12-31T23:00:00Z");
    }

    // D75
    #[test]
    fn an_empty_file_is_a_fault_and_an_empty_table_is_not() {
        assert_eq!(fault_of("").fault, Fault::NoTable);
        assert_eq!(fault_of("# cut off\n").fault, Fault::NoTable);
        assert!(parse("[tokens]\n").unwrap().is_empty());
    }

    // D75, D78
    #[test]
    fn faults_name_their_line_and_never_what_stands_there() {
        let token = |fields: &str| {
            format!("[tokens.a]\nhash = \"{HASH}\"\npaths = [\n  \"/a\",\n  \"/b\",\n]\n{fields}\n")
        };
        let cases = [
            (token("operations = [\"raw-secret\"]"), 7, Fault::Operation),
            (
                token("operations = []\nexpires = \"raw-secret\""),
                8,
                Fault::Expires,
            ),
            (
                token("operations = []\nexpires = 2027-01-01"),
                8,
                Fault::Expires,
            ),
            (
                token("operations = []\ntoken = \"raw-secret\""),
                8,
                Fault::Unknown(TOKEN_FIELDS),
            ),
            (
                token("operations = \"raw-secret\""),
                7,
                Fault::Shape("operations", "a list of texts"),
            ),
            (token("x = 1"), 7, Fault::Unknown(TOKEN_FIELDS)),
            (token(""), 1, Fault::Missing("operations")),
            (
                "\n[tokens.a]\nhash = \"raw-secret\"\npaths = []\noperations = []".into(),
                3,
                Fault::Hash,
            ),
            (
                "[tokens]\na = \"raw-secret\"".into(),
                2,
                Fault::Shape("token", "a table"),
            ),
            (
                "tokens = \"raw-secret\"".into(),
                1,
                Fault::Shape("tokens", "a table"),
            ),
            ("[tokens]\n[secret]\n".into(), 2, Fault::Unknown("tokens")),
        ];
        for (text, line, fault) in cases {
            let found = fault_of(&text);
            assert_eq!((found.line, &found.fault), (line, &fault), "{text}");
            assert!(!found.to_string().contains("raw-secret"), "{found}");
        }
    }

    // D78
    #[test]
    fn a_syntax_fault_does_not_quote_the_line() {
        for text in [
            "[tokens.a]\nhash = raw-secret\n",
            "[tokens.a]\nraw-secret\n",
            "[tokens.a]\nhash = \"raw-secret\npaths = []\n",
            "[tokens.a]\nhash = \"raw-secret\" \"raw-secret\"\n",
        ] {
            let found = fault_of(text);
            assert_eq!(found.line, 2, "{found}");
            assert!(matches!(found.fault, Fault::Syntax(_)), "{found}");
            assert!(!found.to_string().contains("raw-secret"), "{found}");
        }
    }

    // D75
    #[test]
    fn a_hash_under_two_labels_is_a_fault() {
        let token =
            |label| format!("[tokens.{label}]\nhash = \"{HASH}\"\npaths = []\noperations = []\n");
        let found = fault_of(&(token("a") + &token("b")));
        assert_eq!(found.line, 6);
        assert_eq!(found.fault, Fault::DuplicateHash("a".into()));
    }

    // D75, D76
    #[test]
    fn a_pattern_that_never_matches_is_a_fault_with_the_fix() {
        let text = format!(
            "[tokens.a]\nhash = \"{HASH}\"\npaths = [\"/a\", \"notes/**\"]\noperations = []\n"
        );
        let found = fault_of(&text).to_string();
        assert!(
            found.starts_with("line 3: ") && found.ends_with("write `/notes/**`"),
            "{found}"
        );
    }
}
