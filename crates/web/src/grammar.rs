//! The answers to what is no HTTP request, in our words.
//!
//! The library answers a head that it can't read by itself, with a bare status, before any handler
//! is asked. [`retold`] recognises such an answer by what all of ours have and it lacks, and gives
//! one with code, cause and remedy in its place.

use bytes::Bytes;

use crate::answer::NOSNIFF;
use crate::fault::{Code, Fault};

/// What the library's answer is replaced by, if `bytes` is one.
pub(crate) fn retold(bytes: &[u8]) -> Option<Bytes> {
    const BEGIN: &[u8] = b"HTTP/1.1 4";
    if !bytes.starts_with(BEGIN) || !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let head = std::str::from_utf8(bytes).ok()?;
    if head.contains(NOSNIFF.0.as_str()) {
        return None;
    }
    let code = match head.get(BEGIN.len() - 1..BEGIN.len() + 2)? {
        "414" => Code::UriTooLong,
        "431" => Code::HeadTooLarge,
        _ => Code::BadRequest,
    };
    let body = Fault::new(code).body().to_string();
    let status = code.status();
    Some(Bytes::from(format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_refusal_gets_a_body_and_others_stay() {
        let bare = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\
                     content-length: 0\r\n\r\n";
        let retold = String::from_utf8(retold(bare).unwrap().to_vec()).unwrap();
        assert!(retold.starts_with("HTTP/1.1 431 "), "{retold}");
        assert!(retold.contains("head-too-large"), "{retold}");
        for other in [
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\nx-content-type-options: nosniff\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n",
        ] {
            assert_eq!(super::retold(other.as_bytes()), None, "{other}");
        }
    }
}
