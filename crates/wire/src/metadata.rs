//! The flat map of texts that requests, responses and watch blocks carry.
//!
//! It is written as the YAML that the public Go programs write, byte for byte, so that golden
//! vectors compare; it is read as the subset of YAML that those programs send, plus comments.
//! Everything else that YAML knows (nesting, lists, anchors, tags, folded text) is refused.

mod character;
mod entry_reader;
mod entry_writer;
mod foreign;
mod key_order;

use std::fmt;

use bytes::BytesMut;
use thiserror::Error;

pub(crate) use entry_reader::EntryReader;
pub(crate) use entry_writer::{LineBreaks, write_entry};

use crate::limits;

/// A flat map from text to text in natural key order: `k2` comes before `k10`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Sorted by [`key_order::compare`], each key once.
    entries: Vec<(String, String)>,
}

impl Metadata {
    /// An empty map.
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
        }
    }

    /// Puts `value` under `key`, in place of what was there.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) -> &mut Self {
        let key = key.into();
        match self.find(&key) {
            Ok(at) => self.entries[at].1 = value.into(),
            Err(at) => self.entries.insert(at, (key, value.into())),
        }
        self
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.find(key).ok().map(|at| self.entries[at].1.as_str())
    }

    /// Takes the value under `key` out.
    pub fn remove(&mut self, key: &str) -> Option<String> {
        self.find(key).ok().map(|at| self.entries.remove(at).1)
    }

    /// The entries in natural key order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> + Clone {
        self.entries
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The number of entries.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there is no entry.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Appends one line an entry (more for a value with line breaks), without fences.
    pub fn encode_into(&self, out: &mut BytesMut) {
        for (key, value) in self.iter() {
            write_entry(out, key, value, LineBreaks::Literal);
        }
    }

    /// Reads what stands between the fences, with or without the LF of its last line.
    pub fn decode(bytes: &[u8]) -> Result<Self, MetadataError> {
        if bytes.strip_suffix(b"\n").unwrap_or(bytes).len() > limits::METADATA_LEN_MAX {
            return Err(MetadataError::TooLong);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| MetadataError::NotUtf8)?;
        let mut reader = EntryReader::new(text)?;
        let mut entries = Vec::new();
        while let Some(entry) = reader.next()? {
            let (mut key, mut value) = (String::new(), String::new());
            entry.key.decode_into(&mut key)?;
            entry.value.decode_into(&mut value)?;
            entries.push((key, value));
        }
        entries.sort_unstable_by(|(a, _), (b, _)| key_order::compare(a, b));
        if entries.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(MetadataError::DuplicateKey);
        }
        Ok(Self { entries })
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        self.entries
            .binary_search_by(|(other, _)| key_order::compare(other, key))
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Metadata {
    /// Collects entries; of two with one key the later stays.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut metadata = Self::new();
        for (key, value) in entries {
            metadata.set(key, value);
        }
        metadata
    }
}

/// Why bytes are no metadata. Every variant but [`MetadataError::TooLong`] is malformed input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// A character that YAML text may not contain, or a line break in the middle of a value.
    #[error("metadata has a control character")]
    ControlCharacter,
    /// A key stands twice.
    #[error("metadata has a key twice")]
    DuplicateKey,
    /// An escape in double quotes that YAML doesn't know, or that names no character.
    #[error("metadata has an unknown escape")]
    Escape,
    /// An indented line: a nested map or list, or a value that goes on.
    #[error("metadata is not flat")]
    Nested,
    /// A line that isn't `key: value`.
    #[error("a line of metadata is not `key: value`")]
    NotAnEntry,
    /// The bytes aren't UTF-8.
    #[error("metadata is not UTF-8")]
    NotUtf8,
    /// More than [`limits::METADATA_LEN_MAX`] bytes.
    #[error("metadata is longer than {} bytes", limits::METADATA_LEN_MAX)]
    TooLong,
    /// YAML that isn't part of the subset: a list, a map, an anchor, an alias, a tag, folded text.
    #[error("metadata has a value that is not plain, quoted or literal text")]
    Unsupported,
}
