//! The header of a version file: what a version says of itself, in front of its body.
//!
//! ```text
//! ---
//! version: 2
//! archived: false
//! previous-hash: sha256-<64 hex>        from version 2 on: the hash of version 1's whole file
//! meta.importance: 0.7                  publisher fields, in byte order of their bare keys
//! tags: [drinks, hot]
//! title: Coffee
//! type: Note
//! ---
//! body, byte for byte
//! ```
//!
//! It looks like YAML and isn't: a line is split at its first `: ` and the rest is the value, as it
//! stands. Six keys are written bare and the others behind `meta.`; the older layout wrote `meta.`
//! before all of them, so both are read. Reading is loose, because files are made by hand too:
//! only the two fences are insisted on.

use thiserror::Error;
use wire::ContentHash;

use crate::PublisherMetadata;

/// The longest header in bytes, fences included, that is written: the specification's bound.
pub(crate) const HEADER_LEN_MAX: usize = 2048;
/// Publisher keys that are written without `meta.`.
const BARE_KEYS: [&str; 6] = [
    "description",
    "resource",
    "tags",
    "timestamp",
    "title",
    "type",
];
const FENCE: &str = "---\n";

/// The header of a version, and where its body begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The number that the file says it has; `None` if it says nothing readable.
    pub(crate) version: Option<u64>,
    /// The archived flag. The newest version's counts where there is no sidecar.
    pub(crate) archived: bool,
    /// The hash of the file of the version before.
    pub(crate) previous_hash: Option<ContentHash>,
    /// Bare keys and values.
    pub(crate) metadata: PublisherMetadata,
}

impl Header {
    /// Writes the header.
    pub(crate) fn encode(&self) -> String {
        let mut text = String::from(FENCE);
        let mut line = |key: &str, value: &str| {
            text.push_str(key);
            text.push_str(": ");
            text.push_str(value);
            text.push('\n');
        };
        line("version", &self.version.unwrap_or_default().to_string());
        line("archived", if self.archived { "true" } else { "false" });
        if let Some(hash) = self.previous_hash {
            line("previous-hash", &hash.to_string());
        }
        for (key, value) in &self.metadata {
            match key.as_str() {
                "tags" => line(key, &format!("[{}]", value.replace(',', ", "))),
                key if BARE_KEYS.contains(&key) => line(key, value),
                key => line(&format!("meta.{key}"), value),
            }
        }
        text.push_str(FENCE);
        text
    }

    /// Reads the header of `file`; the number is the offset of the body.
    pub(crate) fn decode(file: &[u8]) -> Result<(Self, usize), HeaderError> {
        let (fields, body) = split(file).ok_or(HeaderError)?;
        let mut header = Self {
            version: None,
            archived: false,
            previous_hash: None,
            metadata: PublisherMetadata::new(),
        };
        for line in String::from_utf8_lossy(fields).lines() {
            if let Some((key, value)) = line.split_once(": ") {
                header.take(key, value);
            }
        }
        Ok((header, body))
    }

    fn take(&mut self, key: &str, value: &str) {
        match key {
            "version" => self.version = value.trim().parse().ok(),
            "archived" => self.archived = value.trim() == "true",
            "previous-hash" => self.previous_hash = ContentHash::parse(value.trim()).ok(),
            "tags" => {
                self.metadata.insert(key.to_owned(), bare_tags(value));
            }
            _ if BARE_KEYS.contains(&key) => {
                self.metadata.insert(key.to_owned(), value.to_owned());
            }
            _ => {
                if let Some(key) = key.strip_prefix("meta.") {
                    self.metadata.insert(key.to_owned(), value.to_owned());
                }
            }
        }
    }
}

/// The file doesn't begin with a fenced header of a bearable length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the stored file has no header between fences")]
pub(crate) struct HeaderError;

/// The bytes between the fences and the offset of what follows.
fn split(file: &[u8]) -> Option<(&[u8], usize)> {
    let rest = file.strip_prefix(FENCE.as_bytes())?;
    if rest.starts_with(FENCE.as_bytes()) {
        return Some((&[], 2 * FENCE.len()));
    }
    let close = b"\n---\n";
    let window = &rest[..rest.len().min(HEADER_LEN_MAX)];
    let end = window
        .windows(close.len())
        .position(|bytes| bytes == close)?;
    Some((&rest[..=end], FENCE.len() + end + close.len()))
}

/// `[a, b]` as it is kept: `a,b`. Anything else stands as it is.
fn bare_tags(value: &str) -> String {
    let Some(list) = value
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    else {
        return value.to_owned();
    };
    let tags: Vec<&str> = list.split(',').map(str::trim).collect();
    tags.join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "[a-z0-9-]{1,8}";
    const VALUE: &str = "[^\r\n,\\[\\]]{0,12}";

    fn metadata(pairs: &[(&str, &str)]) -> PublisherMetadata {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn the_example_of_the_specification_is_written_byte_for_byte() {
        // D90: header order and sorting.
        let hash = ContentHash::of(b"the file of version 1");
        let header = Header {
            version: Some(2),
            archived: false,
            previous_hash: Some(hash),
            metadata: metadata(&[
                ("importance", "0.7"),
                ("tags", "drinks,hot"),
                ("title", "Coffee"),
                ("type", "Note"),
            ]),
        };
        let text = format!(
            "---\nversion: 2\narchived: false\nprevious-hash: {hash}\nmeta.importance: 0.7\n\
             tags: [drinks, hot]\ntitle: Coffee\ntype: Note\n---\n"
        );
        assert_eq!(header.encode(), text);
        assert_eq!(
            Header::decode(text.as_bytes()).expect("a header"),
            (header, text.len())
        );
    }

    #[test]
    fn the_older_way_of_writing_is_read() {
        // D88: `meta.` before every key.
        let file = b"---\nversion: 1\narchived: true\nmeta.a1:  lead\nmeta.a2: a: b\n\
                     meta.tags: hot, drinks\nmeta.title: Tea\n---\n# Tea";
        let (header, body) = Header::decode(file).expect("a header");
        assert!(header.archived);
        assert_eq!(
            header.metadata,
            metadata(&[
                ("a1", " lead"),
                ("a2", "a: b"),
                ("tags", "hot, drinks"),
                ("title", "Tea")
            ])
        );
        assert_eq!(&file[body..], b"# Tea");
    }

    #[test]
    fn a_body_that_looks_like_a_header_stays_a_body() {
        // D41: front matter in a body is the body's.
        let file = b"---\nversion: 1\narchived: false\n---\n---\ntitle: mine\n---\n";
        let (header, body) = Header::decode(file).expect("a header");
        assert_eq!(header.metadata, PublisherMetadata::new());
        assert_eq!(&file[body..], b"---\ntitle: mine\n---\n");
    }

    #[test]
    fn a_file_without_both_fences_is_refused() {
        // D53: empty, cut in its header, or full of NUL.
        for file in [&b""[..], b"---\nversion: 1\n", b"# Tea\n", &[0; 512]] {
            assert_eq!(Header::decode(file), Err(HeaderError));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            pairs in proptest::collection::btree_map(KEY, VALUE, 0..8),
            number in 1_u64..,
            archived: bool,
        ) {
            let mut pairs = pairs;
            if let Some(tags) = pairs.get_mut("tags") {
                *tags = tags.trim().to_owned();
            }
            let header = Header {
                version: Some(number), archived, previous_hash: None, metadata: pairs,
            };
            let text = header.encode();
            prop_assert_eq!(Header::decode(text.as_bytes()).unwrap(), (header, text.len()));
        }

        #[test]
        fn no_file_upsets_the_reader(file in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Header::decode(&file);
        }
    }
}
