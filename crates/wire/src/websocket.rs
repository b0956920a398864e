//! WebSocket frames (RFC 6455), the server's side: what a client sends is read, what we send is
//! framed. No extension is spoken, so a reserved bit is a fault.
//!
//! A [`Decoder`] takes whatever bytes there are and keeps nothing but the message under way, so
//! that an idle socket has no buffer. A frame is refused by its head, before its payload is kept.

mod decoder;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use sha1::{Digest, Sha1};

pub use decoder::{Decoder, Message, Violation};

/// The longest payload of a control frame; the protocol's.
const CONTROL_LEN_MAX: usize = 125;

/// What the opening handshake joins to the key; the protocol's.
const KEY_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Bytes of a client's key before they were written in base64; the protocol's.
const KEY_LEN: usize = 16;

/// Why a socket is closed, as the number in the close frame.
///
/// Each is final, or retryable: then the client comes back after its delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseCode(u16);

impl CloseCode {
    /// Done. Final.
    pub const NORMAL: Self = Self(1000);
    /// The server or the page leaves. Retryable.
    pub const LEAVING: Self = Self(1001);
    /// Broken framing. Final.
    pub const PROTOCOL: Self = Self(1002);
    /// Binary, where text is spoken. Final.
    pub const UNSUPPORTED: Self = Self(1003);
    /// Text that is not UTF-8. Final.
    pub const NOT_UTF8: Self = Self(1007);
    /// Refused for good: the token, the origin, the right. Final.
    pub const POLICY: Self = Self(1008);
    /// A message over the limit. The same message is never sent again.
    pub const TOO_BIG: Self = Self(1009);
    /// Too much for now. Retryable.
    pub const TRY_LATER: Self = Self(1013);
    /// Nothing was heard for too long. Retryable.
    pub const IDLE: Self = Self(4001);

    /// The number if it may stand in a close frame.
    pub const fn new(code: u16) -> Option<Self> {
        match code {
            1000..=1003 | 1007..=1014 | 3000..=4999 => Some(Self(code)),
            _ => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// The answer to a client's `Sec-WebSocket-Key`, or nothing if it is no key.
pub fn accept_key(key: &str) -> Option<String> {
    let bytes = BASE64_STANDARD.decode(key).ok()?;
    if bytes.len() != KEY_LEN {
        return None;
    }
    let digest = Sha1::new()
        .chain_update(key.as_bytes())
        .chain_update(KEY_SUFFIX)
        .finalize();
    Some(BASE64_STANDARD.encode(digest))
}

/// Appends `text` as a frame of its own.
pub fn text(text: &[u8], out: &mut Vec<u8>) {
    frame(decoder::TEXT, text, out);
}

/// Appends a ping without payload.
pub fn ping(out: &mut Vec<u8>) {
    frame(decoder::PING, b"", out);
}

/// Appends the answer to a ping, with its payload.
pub fn pong(payload: &[u8], out: &mut Vec<u8>) {
    frame(decoder::PONG, payload, out);
}

/// Appends a close frame; the reason is cut where it would not fit.
pub fn close(code: CloseCode, reason: &str, out: &mut Vec<u8>) {
    let room = CONTROL_LEN_MAX - size_of::<u16>();
    let reason = &reason[..reason.floor_char_boundary(room)];
    let mut payload = code.get().to_be_bytes().to_vec();
    payload.extend_from_slice(reason.as_bytes());
    frame(decoder::CLOSE, &payload, out);
}

fn frame(opcode: u8, payload: &[u8], out: &mut Vec<u8>) {
    const FINAL: u8 = 0x80;
    const TWO_BYTES: u8 = 126;
    const EIGHT_BYTES: u8 = 127;
    out.push(FINAL | opcode);
    let len = payload.len();
    if len <= CONTROL_LEN_MAX {
        // At most 125, so it fits.
        out.push(len as u8);
    } else if let Ok(len) = u16::try_from(len) {
        out.push(TWO_BYTES);
        out.extend_from_slice(&len.to_be_bytes());
    } else {
        out.push(EIGHT_BYTES);
        out.extend_from_slice(&(len as u64).to_be_bytes());
    }
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_answered_as_the_protocol_shows_it() {
        let accept = accept_key("dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(accept.as_deref(), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        for key in ["", "dGhlIHNhbXBsZQ==", "dGhlIHNhbXBsZSBub25jZQ", "?"] {
            assert_eq!(accept_key(key), None, "{key}");
        }
    }

    #[test]
    fn a_length_takes_the_shortest_form() {
        for (len, head) in [(125, 2), (126, 4), (65_535, 4), (65_536, 10)] {
            let mut out = Vec::new();
            text(&vec![b'x'; len], &mut out);
            assert_eq!(out.len(), head + len);
        }
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let mut out = Vec::new();
        close(CloseCode::POLICY, &"é".repeat(80), &mut out);
        assert_eq!(out.len(), 2 + 2 + 122);
        assert_eq!(out[..4], [0x88, 124, 0x03, 0xf0]);
    }

    // T54
    #[test]
    fn only_codes_that_may_be_sent_are_codes() {
        for code in [0, 999, 1004, 1005, 1006, 1015, 2999, 5000, u16::MAX] {
            assert_eq!(CloseCode::new(code), None, "{code}");
        }
        assert_eq!(CloseCode::new(4000).map(CloseCode::get), Some(4000));
    }
}
