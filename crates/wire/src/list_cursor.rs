//! Where a page of a listing ended.
//!
//! The text is base64url without padding of: a version byte `01`; a byte of flags, whose lowest
//! bit says that archived documents are listed; the length of the directory's canonical path as
//! two bytes, most significant first; that path; and the last name of the page. It is opaque to
//! clients, and holds for the same directory and the same flags only.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thiserror::Error;

use crate::limits;
use crate::path::DocPath;

const VERSION: u8 = 1;
const INCLUDE_ARCHIVED: u8 = 1;

/// Where a page of a listing ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListCursor {
    /// The directory.
    pub path: DocPath,
    /// Archived documents are listed.
    pub include_archived: bool,
    /// The last name of the page; the next page begins with the first name after it.
    pub after: String,
}

impl ListCursor {
    /// The text form.
    pub fn encode(&self) -> String {
        let path = self.path.as_str();
        let path_len = u16::try_from(path.len()).expect("a path is at most 4087 bytes long");
        let flags = if self.include_archived {
            INCLUDE_ARCHIVED
        } else {
            0
        };
        let mut bytes = vec![VERSION, flags];
        bytes.extend_from_slice(&path_len.to_be_bytes());
        bytes.extend_from_slice(path.as_bytes());
        bytes.extend_from_slice(self.after.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads the text form.
    pub fn decode(text: &str) -> Result<Self, ListCursorError> {
        if text.len() > limits::LIST_CURSOR_LEN_MAX {
            return Err(ListCursorError::TooLong);
        }
        let bytes = URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|_| ListCursorError::Invalid)?;
        let (&version, rest) = bytes.split_first().ok_or(ListCursorError::Invalid)?;
        if version != VERSION {
            return Err(ListCursorError::Unsupported);
        }
        Self::decode_version_1(rest).ok_or(ListCursorError::Invalid)
    }

    /// Reads the text form that came with a request for `path`.
    pub fn decode_for(
        text: &str,
        path: &DocPath,
        include_archived: bool,
    ) -> Result<Self, ListCursorError> {
        let cursor = Self::decode(text)?;
        if cursor.path == *path && cursor.include_archived == include_archived {
            Ok(cursor)
        } else {
            Err(ListCursorError::Mismatch)
        }
    }

    fn decode_version_1(bytes: &[u8]) -> Option<Self> {
        let (&flags, rest) = bytes.split_first()?;
        let (path_len, rest) = rest.split_first_chunk()?;
        let (path, after) = rest.split_at_checked(usize::from(u16::from_be_bytes(*path_len)))?;
        let path = std::str::from_utf8(path).ok()?;
        let after = std::str::from_utf8(after).ok()?;
        let canonical = DocPath::parse(path).ok().filter(|it| it.as_str() == path)?;
        let name_is_legal = !after.is_empty() && !after.contains('/');
        if flags & !INCLUDE_ARCHIVED != 0 || !name_is_legal {
            return None;
        }
        Some(Self {
            path: canonical,
            include_archived: flags == INCLUDE_ARCHIVED,
            after: after.to_owned(),
        })
    }
}

/// Why a text is no LIST cursor for a request. The messages are those of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ListCursorError {
    /// The text is no cursor.
    #[error("invalid LIST cursor")]
    Invalid,
    /// The cursor is of another directory, or of the other setting for archived documents.
    #[error("LIST cursor does not match this request")]
    Mismatch,
    /// More than [`limits::LIST_CURSOR_LEN_MAX`] bytes.
    #[error("LIST cursor exceeds limit")]
    TooLong,
    /// The cursor has a version that isn't known here.
    #[error("unsupported LIST cursor")]
    Unsupported,
}
