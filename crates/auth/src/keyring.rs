//! Editing the tokens file and the closed places, as the `tidings token` commands do.
//!
//! An edit keeps comments and order, and is refused while the file has a fault. Commands and the
//! running server hold the same lock for it. Closing comes before the token that closes, so a kill
//! between the two leaves a place closed and never open.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use thiserror::Error;
use toml_edit::{Array, DocumentMut, Item, Table, value};

use crate::authority::{LoadError, located, read};
use crate::caller::TokenDigest;
use crate::closed;
use crate::file;
use crate::grants::Token;
use crate::pattern::Pattern;
use crate::tokens;

/// A token's label names it in the log and in commands; longer ones don't fit a line.
const LABEL_LEN_MAX: usize = 64;

/// Bytes of randomness in a raw token: beyond guessing, and 64 hex digits as the format has it.
const TOKEN_BYTES: usize = 32;

/// A token that was just made. It can be shown once, by [`RawToken::expose`].
pub struct RawToken(String);

impl RawToken {
    fn make() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(wire::ContentHash::from_bytes(bytes).hex()))
    }

    /// The secret itself, to be handed to its owner and dropped.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RawToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RawToken(hidden)")
    }
}

/// What a token to be made may do.
#[derive(Clone, Debug, Default)]
pub struct NewToken {
    /// Its name; made up if absent.
    pub label: Option<String>,
    /// Where it may read.
    pub read: Vec<Pattern>,
    /// Where it may publish.
    pub publish: Vec<Pattern>,
    /// The instant it ends.
    pub expires: Option<Timestamp>,
}

/// A token that was made.
#[derive(Debug)]
pub struct Added {
    /// The secret.
    pub token: RawToken,
    /// Its name.
    pub label: String,
    /// The places that this token closed for everyone else.
    pub closes: Vec<Pattern>,
}

/// A token that was taken out.
#[derive(Debug)]
pub struct Revoked {
    /// The places that stay closed though no token may read there any more.
    pub stay_closed: Vec<Pattern>,
}

/// A token as it is listed.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its name.
    pub label: String,
    /// Where it may read.
    pub read: Vec<Pattern>,
    /// Where it may publish.
    pub publish: Vec<Pattern>,
    /// The instant it ends.
    pub expires: Option<Timestamp>,
}

impl Listed {
    /// True if it opens nothing any more.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| now >= expires)
    }
}

/// A closed place as it is listed.
#[derive(Clone, Debug)]
pub struct Place {
    /// The pattern.
    pub pattern: Pattern,
    /// The tokens that may read it, expired ones too.
    pub readers: Vec<String>,
}

/// Everything that `tidings token list` tells.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The tokens by label.
    pub tokens: Vec<Listed>,
    /// The closed places.
    pub places: Vec<Place>,
    /// Others than the owner may read or write the tokens file.
    pub exposed: bool,
}

/// Why an edit was refused. Nothing was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EditError {
    /// A file could not be read as it is.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A token would be good for nothing.
    #[error("a token needs a place: give --read GLOB, --publish GLOB or both")]
    Nothing,
    /// A label that can't stand in the file as it is.
    #[error("a label is 1 to {LABEL_LEN_MAX} of A-Z a-z 0-9 _ -")]
    Label,
    /// The label is taken.
    #[error("there is a token `{0}` already; revoke it first or use another label")]
    LabelTaken(String),
    /// More tokens, patterns or places than the limit.
    #[error("the limit of {0} {1} is reached")]
    Full(usize, &'static str),
    /// No token of that label.
    #[error("there is no token `{0}`; `tidings token list` shows them")]
    Unknown(String),
    /// The place isn't closed, or not by this pattern.
    #[error("`{0}` is not a closed place; closed are: {1}")]
    NotClosed(Pattern, String),
    /// Tokens would close it again at once.
    #[error("`{0}` is what these tokens may read: {1}; revoke them first")]
    Held(Pattern, String),
    /// The system gave no random bytes.
    #[error("no random bytes: {0}")]
    Random(#[from] getrandom::Error),
    /// A file could not be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// The tokens file and the file of closed places, for editing. Every method blocks on the disk.
#[derive(Clone, Debug)]
pub struct Keyring {
    /// The tokens file; made by the first `add`.
    pub tokens: PathBuf,
    /// The file of closed places; its directory must be there.
    pub closed: PathBuf,
}

impl Keyring {
    /// Makes a token and closes what it may read.
    pub fn add(&self, new: &NewToken) -> Result<Added, EditError> {
        if new.read.is_empty() && new.publish.is_empty() {
            return Err(EditError::Nothing);
        }
        if new.read.len().max(new.publish.len()) > tokens::PATTERNS_PER_TOKEN_MAX {
            return Err(EditError::Full(
                tokens::PATTERNS_PER_TOKEN_MAX,
                "patterns in one token",
            ));
        }
        let _held = self.lock()?;
        let (mut document, tokens) = self.read_tokens()?;
        if tokens.len() >= tokens::TOKENS_MAX {
            return Err(EditError::Full(tokens::TOKENS_MAX, "tokens"));
        }
        let label = free_label(new.label.as_deref(), &tokens)?;
        let token = RawToken::make()?;
        let closes = self.close(&new.read)?;
        let entry = entry(TokenDigest::of(token.expose()), new);
        let table = document.entry("tokens").or_insert_with(implicit_table);
        if let Some(table) = table.as_table_like_mut() {
            table.insert(&label, Item::Table(entry));
        }
        self.write(&self.tokens, &document.to_string())?;
        Ok(Added {
            token,
            label,
            closes,
        })
    }

    /// Lists the tokens and the closed places.
    pub fn list(&self) -> Result<Listing, EditError> {
        let (_, tokens) = self.read_tokens()?;
        let readers = |pattern: &Pattern| readers_of(&tokens, pattern);
        let mut places = self.read_places()?;
        closed::join(&mut places, tokens.iter().flat_map(|token| &token.read));
        let places = places
            .into_iter()
            .map(|pattern| Place {
                readers: readers(&pattern),
                pattern,
            })
            .collect();
        let list = |token: Token| Listed {
            label: token.label,
            read: token.read,
            publish: token.publish,
            expires: token.expires,
        };
        Ok(Listing {
            places,
            tokens: tokens.into_iter().map(list).collect(),
            exposed: file::is_open_to_others(&self.tokens),
        })
    }

    /// Takes the token of that label out. What it could read stays closed.
    pub fn revoke(&self, label: &str) -> Result<Revoked, EditError> {
        let _held = self.lock()?;
        let (mut document, tokens) = self.read_tokens()?;
        let revoked = tokens
            .iter()
            .find(|token| token.label == label)
            .ok_or_else(|| EditError::Unknown(label.to_owned()))?;
        self.close(&revoked.read)?;
        if let Some(table) = document.get_mut("tokens").and_then(Item::as_table_like_mut) {
            table.remove(label);
        }
        if let Some(table) = document.get_mut("tokens").and_then(Item::as_table_mut) {
            // The header has to stay: a file without it reads as truncated.
            table.set_implicit(!table.is_empty());
        }
        self.write(&self.tokens, &document.to_string())?;
        let lonely = |place: &&Pattern| readers_of(&tokens, place) == [label];
        Ok(Revoked {
            stay_closed: revoked.read.iter().filter(lonely).cloned().collect(),
        })
    }

    /// Opens a closed place for everyone. Only the same pattern opens it.
    pub fn open(&self, pattern: &Pattern) -> Result<(), EditError> {
        let _held = self.lock()?;
        let (_, tokens) = self.read_tokens()?;
        let readers = readers_of(&tokens, pattern);
        if !readers.is_empty() {
            return Err(EditError::Held(pattern.clone(), readers.join(", ")));
        }
        let mut places = self.read_places()?;
        let Some(at) = places.iter().position(|place| place == pattern) else {
            let closed: Vec<&str> = places.iter().map(Pattern::as_str).collect();
            return Err(EditError::NotClosed(pattern.clone(), none_or(&closed)));
        };
        places.remove(at);
        self.write(&self.closed, &closed::encode(&places))
    }

    /// Closes `patterns`; returns those that were public.
    fn close(&self, patterns: &[Pattern]) -> Result<Vec<Pattern>, EditError> {
        let mut places = self.read_places()?;
        let before = places.len();
        if !closed::join(&mut places, patterns) {
            return Ok(Vec::new());
        }
        if places.len() > closed::CLOSED_MAX {
            return Err(EditError::Full(closed::CLOSED_MAX, "closed places"));
        }
        self.write(&self.closed, &closed::encode(&places))?;
        Ok(places.split_off(before))
    }

    /// Holds both files until the result is dropped.
    fn lock(&self) -> Result<File, EditError> {
        file::lock(&self.closed).map_err(|source| EditError::Write {
            path: self.closed.clone(),
            source,
        })
    }

    fn read_tokens(&self) -> Result<(DocumentMut, Vec<Token>), EditError> {
        let Some(text) = read(&self.tokens)? else {
            return Ok((DocumentMut::new(), Vec::new()));
        };
        let parsed = located(&self.tokens, tokens::parse(&text))?;
        let document = text
            .parse()
            .map_err(|error| tokens::syntax_fault(&text, &error));
        let document = located(&self.tokens, document)?;
        let mut tokens: Vec<Token> = parsed.into_values().collect();
        tokens.sort_by(|a, b| a.label.cmp(&b.label));
        Ok((document, tokens))
    }

    fn read_places(&self) -> Result<Vec<Pattern>, EditError> {
        match read(&self.closed)? {
            Some(text) => Ok(located(&self.closed, closed::parse(&text))?),
            None => Ok(Vec::new()),
        }
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), EditError> {
        file::replace(path, text).map_err(|source| EditError::Write {
            path: path.to_owned(),
            source,
        })
    }
}

fn readers_of(tokens: &[Token], pattern: &Pattern) -> Vec<String> {
    tokens
        .iter()
        .filter(|token| token.read.contains(pattern))
        .map(|token| token.label.clone())
        .collect()
}

fn none_or(names: &[&str]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

fn implicit_table() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn free_label(wanted: Option<&str>, tokens: &[Token]) -> Result<String, EditError> {
    let Some(label) = wanted else {
        let mut bytes = [0; 4];
        getrandom::fill(&mut bytes)?;
        return Ok(format!("t{:08x}", u32::from_be_bytes(bytes)));
    };
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !(1..=LABEL_LEN_MAX).contains(&label.len()) || !label.bytes().all(bare) {
        return Err(EditError::Label);
    }
    if tokens.iter().any(|token| token.label == label) {
        return Err(EditError::LabelTaken(label.to_owned()));
    }
    Ok(label.to_owned())
}

/// The table of a token. Without a difference between the two sets it is the plain format.
fn entry(digest: TokenDigest, new: &NewToken) -> Table {
    let list = |patterns: &[Pattern]| patterns.iter().map(Pattern::as_str).collect::<Array>();
    let (paths, operations): (_, &[&str]) = match (&*new.publish, &*new.read) {
        (publish, read) if publish == read => (publish, &["publish", "read"]),
        ([], read) => (read, &["read"]),
        (publish, _) => (publish, &["publish"]),
    };
    let mut table = Table::new();
    table.insert("hash", value(digest.to_text()));
    table.insert("paths", value(list(paths)));
    table.insert(
        "operations",
        value(operations.iter().copied().collect::<Array>()),
    );
    if !operations.contains(&"read") && !new.read.is_empty() {
        table.insert("read_paths", value(list(&new.read)));
    }
    if let Some(expires) = new.expires {
        table.insert("expires", value(expires.to_string()));
    }
    table
}
