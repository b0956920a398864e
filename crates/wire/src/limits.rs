//! Every bound of the wire, by name (P11).
//!
//! Those of Mark are the numbers of the September generation unless a comment says otherwise. A
//! peer that passes one is refused, and nothing past it is kept in memory.

use crate::cursor::Epoch;
use crate::path::DocPath;

/// Bytes of a request line before its LF; a CR in front of the LF counts.
pub const LINE_LEN_MAX: usize = 4096;

/// Bytes of a path.
pub const PATH_LEN_MAX: usize = DocPath::LEN_MAX;

/// Bytes of metadata between the fences, without the LF that belongs to the closing fence.
pub const METADATA_LEN_MAX: usize = 65_536;

/// Bytes of a body, and of a document.
pub const BODY_LEN_MAX: usize = 1_048_576;

/// Bytes of a whole response that a client reads.
pub const RESPONSE_LEN_MAX: usize = 4 * 1024 * 1024;

/// Bytes of a watch block with its fences.
pub const BLOCK_LEN_MAX: usize = 8192;

/// Bytes of an epoch.
pub const EPOCH_LEN_MAX: usize = Epoch::LEN_MAX;

/// Bytes of one name in a path: what common file systems take.
pub const NAME_LEN_MAX: usize = 255;

/// Publisher keys of one version.
pub const PUBLISHER_KEYS_MAX: usize = 50;

/// Bytes of all publisher keys and values of one version together.
pub const PUBLISHER_LEN_MAX: usize = 1024;

/// Entries on one page of a listing; also the default.
pub const PAGE_ENTRIES_MAX: usize = 1000;

/// Bytes of the text of one page of a listing.
pub const PAGE_LEN_MAX: usize = 1024 * 1024;

/// Bytes of a LIST cursor: version, flags, length, the longest path and the longest name, in
/// base64 without padding (four characters for three bytes, rounded up).
pub const LIST_CURSOR_LEN_MAX: usize = (4 + PATH_LEN_MAX + NAME_LEN_MAX) * 4 / 3 + 1;

/// Distinct terms in a LOOKUP query.
pub const LOOKUP_TERMS_MAX: usize = 32;

/// Characters that a LOOKUP query needs unless it is `*`.
pub const LOOKUP_QUERY_CHARS_MIN: usize = 2;

/// Rows of a LOOKUP answer when the request names no limit.
pub const LOOKUP_ROWS_DEFAULT: usize = 10;

/// Rows of a LOOKUP answer at most.
pub const LOOKUP_ROWS_MAX: usize = 1000;

/// Bytes of the name of a channel or of one of its params.
pub const CHANNEL_NAME_LEN_MAX: usize = 64;

/// Params that a scope of a channel may name.
pub const CHANNEL_PARAMS_MAX: usize = 16;

/// Bytes of the value of a channel's param: room for a UUID, a hash or a name, not for content.
pub const CHANNEL_VALUE_LEN_MAX: usize = 128;

/// Bytes of a frame that a client sends over the sync protocol: an event with its data.
pub const SYNC_FRAME_LEN_MAX: usize = 256 * 1024;

/// How deep a frame of a client may be nested.
pub const SYNC_DEPTH_MAX: usize = 32;

/// Values that a frame of a client may have.
pub const SYNC_VALUES_MAX: usize = 10_000;

/// Bytes of the id of a request.
pub const SYNC_ID_LEN_MAX: usize = 64;

/// Bytes of a token: a JSON web token with many claims is some KiB.
pub const SYNC_TOKEN_LEN_MAX: usize = 16 * 1024;

/// Bytes of a scope, a cursor, an event's name or a build: room for the longest path, escaped.
pub const SYNC_WORD_LEN_MAX: usize = 16 * 1024;

const _: () = assert!(PATH_LEN_MAX < LINE_LEN_MAX);
const _: () = assert!(PATH_LEN_MAX <= u16::MAX as usize);
const _: () = assert!(METADATA_LEN_MAX + BODY_LEN_MAX < RESPONSE_LEN_MAX);
