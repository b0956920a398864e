//! What the journal keeps of a write: the keys of its watch block, and what recovery needs besides.
//!
//! ```text
//! agent: tea-bot            only if the write said it
//! archived: "false"         the document's state after the write
//! file-hash: sha256-…       the hash of the whole version file
//! hash: sha256-…            the hash of its body
//! kept-from: "3"            only with retention: versions below are removed after the write
//! kind: version             or state, import, edit: what the write did to the files
//! op: publish
//! path: /notes/tea.md
//! told: "41"                every change up to here was told, or taken back, before this record
//! version: "5"
//! ```
//!
//! A record whose write failed after it was durable is taken back by a later record that holds
//! nothing but `void: "42"`. Every record has a seq of its own, that one too.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use thiserror::Error;
use wire::{ContentHash, DocPath, Metadata, Seq};

use crate::{Change, Op};

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// The write with this seq did not happen.
    Void(Seq),
    /// A write.
    Write(WriteRecord),
}

/// A write, as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteRecord {
    /// What watchers are told.
    pub(crate) change: Change,
    /// The hash of the whole version file.
    pub(crate) file_hash: ContentHash,
    /// The document is archived after the write.
    pub(crate) archived: bool,
    /// Where the bytes come from.
    pub(crate) kind: WriteKind,
    /// Versions below this one are removed once the write is told; 0 if none are.
    pub(crate) kept_from: u64,
    /// Every change up to here was told or taken back when this record was made.
    pub(crate) told: Seq,
}

/// What a write did to the version files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// Nobody wrote: the file of the current version was found edited by hand.
    Edit,
    /// It made the version file out of a flat file that bore the document's name.
    Import,
    /// The document's state changed and no file of a version.
    State,
    /// It made the version file.
    Version,
}

impl WriteKind {
    /// True if the write made a version file.
    pub(crate) const fn makes_version(self) -> bool {
        matches!(self, Self::Import | Self::Version)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Edit => "edit",
            Self::Import => "import",
            Self::State => "state",
            Self::Version => "version",
        }
    }
}

impl Record {
    /// Writes the payload.
    pub(crate) fn encode(&self) -> Bytes {
        let mut block = Metadata::new();
        match self {
            Self::Void(seq) => {
                block.set("void", seq.to_string());
            }
            Self::Write(write) => write.fill(&mut block),
        }
        let mut payload = BytesMut::new();
        block.encode_into(&mut payload);
        payload.freeze()
    }

    /// Reads a payload.
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, RecordError> {
        let block = Metadata::decode(payload).map_err(|_| RecordError("block"))?;
        if let Some(seq) = block.get("void") {
            return Ok(Self::Void(parse_seq(seq).ok_or(RecordError("void"))?));
        }
        WriteRecord::read(&block).map(Self::Write)
    }
}

impl WriteRecord {
    fn fill(&self, block: &mut Metadata) {
        let op = match self.change.op {
            Op::Append => "append",
            Op::Archive => "archive",
            Op::Publish => "publish",
        };
        block.set("op", op);
        block.set("path", self.change.path.as_str());
        block.set("version", self.change.version.to_string());
        block.set("hash", self.change.hash.to_string());
        block.set("file-hash", self.file_hash.to_string());
        block.set("archived", self.archived.to_string());
        block.set("kind", self.kind.as_str());
        block.set("told", self.told.to_string());
        if let Some(agent) = &self.change.agent {
            block.set("agent", &**agent);
        }
        if self.kept_from > 0 {
            block.set("kept-from", self.kept_from.to_string());
        }
    }

    fn read(block: &Metadata) -> Result<Self, RecordError> {
        let get = |key: &'static str| block.get(key).ok_or(RecordError(key));
        let hash = |key| ContentHash::parse(get(key)?).map_err(|_| RecordError(key));
        let change = Change {
            op: match get("op")? {
                "append" => Op::Append,
                "archive" => Op::Archive,
                "publish" => Op::Publish,
                _ => return Err(RecordError("op")),
            },
            path: DocPath::parse(get("path")?).map_err(|_| RecordError("path"))?,
            version: number(get("version")?).ok_or(RecordError("version"))?,
            hash: hash("hash")?,
            agent: block.get("agent").map(Arc::from),
        };
        Ok(Self {
            change,
            file_hash: hash("file-hash")?,
            archived: get("archived")? == "true",
            kind: match get("kind")? {
                "edit" => WriteKind::Edit,
                "import" => WriteKind::Import,
                "state" => WriteKind::State,
                "version" => WriteKind::Version,
                _ => return Err(RecordError("kind")),
            },
            kept_from: match block.get("kept-from") {
                Some(text) => number(text).ok_or(RecordError("kept-from"))?,
                None => 0,
            },
            told: parse_seq(get("told")?).ok_or(RecordError("told"))?,
        })
    }
}

/// The payload has no meaning: the key that is missing or unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the journal record has no readable {0}")]
pub(crate) struct RecordError(&'static str);

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

fn parse_seq(text: &str) -> Option<Seq> {
    number(text).map(Seq::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(agent: Option<&str>, kept_from: u64) -> Record {
        Record::Write(WriteRecord {
            change: Change {
                op: Op::Append,
                path: DocPath::parse("/notes/two words: #1.md").expect("a path"),
                version: 7,
                hash: ContentHash::of(b"body"),
                agent: agent.map(Arc::from),
            },
            file_hash: ContentHash::of(b"file"),
            archived: false,
            kind: WriteKind::Version,
            kept_from,
            told: Seq::new(41),
        })
    }

    #[test]
    fn a_record_is_read_back_as_it_was_written() {
        for record in [
            write(None, 0),
            write(Some("12:30"), 3),
            write(Some(""), 0),
            Record::Void(Seq::new(42)),
        ] {
            assert_eq!(Record::decode(&record.encode()), Ok(record));
        }
    }

    #[test]
    fn the_payload_has_the_keys_of_the_format_page() {
        let payload = write(Some("tea-bot"), 3).encode();
        let text = std::str::from_utf8(&payload).expect("text");
        let keys: Vec<&str> = text
            .lines()
            .filter_map(|line| Some(line.split_once(": ")?.0))
            .collect();
        assert_eq!(
            keys,
            [
                "agent",
                "archived",
                "file-hash",
                "hash",
                "kept-from",
                "kind",
                "op",
                "path",
                "told",
                "version"
            ]
        );
    }

    #[test]
    fn a_record_without_a_key_names_it() {
        assert_eq!(Record::decode(b"op: publish\n"), Err(RecordError("path")));
    }
}
