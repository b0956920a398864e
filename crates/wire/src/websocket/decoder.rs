//! Reads what a client sends, in whatever pieces it comes.

use thiserror::Error;

use super::{CONTROL_LEN_MAX, CloseCode};

const CONTINUATION: u8 = 0;
pub(super) const TEXT: u8 = 1;
const BINARY: u8 = 2;
pub(super) const CLOSE: u8 = 8;
pub(super) const PING: u8 = 9;
pub(super) const PONG: u8 = 10;

const FINAL: u8 = 0x80;
const RESERVED: u8 = 0x70;
const OPCODE: u8 = 0x0f;
const MASKED: u8 = 0x80;
const LEN: u8 = 0x7f;
const MASK_LEN: usize = 4;
/// The longest head: two bytes, eight of length, the mask.
const HEAD_LEN_MAX: usize = 2 + 8 + MASK_LEN;

/// What a client said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The end, with the code if there was one.
    Close(Option<CloseCode>),
    /// A question whether we live, to be answered with the same payload.
    Ping(Vec<u8>),
    /// The answer to a ping, or an unasked sign of life.
    Pong,
    /// A text, its fragments joined.
    Text(String),
}

/// A client that breaks the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// A binary message; only text is spoken.
    #[error("binary messages are not spoken here")]
    Binary,
    /// A text that is not UTF-8.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// Unmasked, reserved, out of order, or otherwise against the rules.
    #[error("the frame breaks the protocol")]
    Protocol,
    /// A message over the limit.
    #[error("the message is over the limit")]
    TooBig,
}

impl Violation {
    /// The code that the socket is closed with.
    pub const fn code(self) -> CloseCode {
        match self {
            Self::Binary => CloseCode::UNSUPPORTED,
            Self::NotUtf8 => CloseCode::NOT_UTF8,
            Self::Protocol => CloseCode::PROTOCOL,
            Self::TooBig => CloseCode::TOO_BIG,
        }
    }
}

/// Joins bytes to frames and frames to messages. After a violation it must not be used again.
#[derive(Debug)]
pub struct Decoder {
    message_len_max: usize,
    /// The head under way.
    head: [u8; HEAD_LEN_MAX],
    head_len: u8,
    frame: Option<Frame>,
    /// The text under way, whole frames and the part of one.
    text: Vec<u8>,
    /// So much of `text` is known to be UTF-8.
    valid: usize,
    /// A text began and its last frame has not ended.
    is_open: bool,
    /// The payload of the control frame under way, which may come between two fragments.
    control: Vec<u8>,
}

/// The frame whose payload is being read.
#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: u8,
    is_final: bool,
    mask: [u8; MASK_LEN],
    /// How much of the payload is still to come.
    left: usize,
    /// Where in the mask the next byte falls.
    turn: usize,
}

impl Decoder {
    /// Waits for the first frame; no message may be longer than `message_len_max`.
    pub const fn new(message_len_max: usize) -> Self {
        Self {
            message_len_max,
            head: [0; HEAD_LEN_MAX],
            head_len: 0,
            frame: None,
            text: Vec::new(),
            valid: 0,
            is_open: false,
            control: Vec::new(),
        }
    }

    /// Takes from `input` what makes the next message. `None` means that all of it was taken.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Message>, Violation> {
        loop {
            if self.frame.is_none() && !self.read_head(input)? {
                return Ok(None);
            }
            let Some(frame) = &mut self.frame else {
                continue;
            };
            let (now, later) = input.split_at(frame.left.min(input.len()));
            *input = later;
            let is_control = frame.opcode >= CLOSE;
            let into = if is_control {
                &mut self.control
            } else {
                &mut self.text
            };
            frame.unmask(now, into);
            if !is_control {
                self.check_text()?;
            }
            match self.frame.take_if(|frame| frame.left == 0) {
                None => return Ok(None),
                Some(frame) => {
                    if let Some(message) = self.end(frame)? {
                        return Ok(Some(message));
                    }
                }
            }
        }
    }

    /// Bytes kept for the message under way.
    pub const fn kept(&self) -> usize {
        self.text.capacity() + self.control.capacity()
    }

    /// Reads on in the head; true once there is a frame.
    fn read_head(&mut self, input: &mut &[u8]) -> Result<bool, Violation> {
        loop {
            let have = usize::from(self.head_len);
            let wanted = match have {
                0 | 1 => 2,
                _ => head_len(self.head[1]),
            };
            if have >= 2 {
                // What is wrong with it shows in its first bytes.
                self.check_head()?;
            }
            if have == wanted && have > 2 {
                self.frame = Some(self.parse_head()?);
                self.head_len = 0;
                return Ok(true);
            }
            let Some((byte, rest)) = input.split_first() else {
                return Ok(false);
            };
            self.head[have] = *byte;
            self.head_len += 1;
            *input = rest;
        }
    }

    fn check_head(&self) -> Result<(), Violation> {
        let (first, second) = (self.head[0], self.head[1]);
        if first & RESERVED != 0 || second & MASKED == 0 {
            return Err(Violation::Protocol);
        }
        let is_fragment = first & FINAL == 0;
        match first & OPCODE {
            CONTINUATION if self.is_open => Ok(()),
            TEXT if !self.is_open => Ok(()),
            BINARY if !self.is_open => Err(Violation::Binary),
            CLOSE | PING | PONG if !is_fragment && usize::from(second & LEN) <= CONTROL_LEN_MAX => {
                Ok(())
            }
            _ => Err(Violation::Protocol),
        }
    }

    fn parse_head(&self) -> Result<Frame, Violation> {
        let (first, second) = (self.head[0], self.head[1]);
        let end = head_len(second);
        let (lens, mask) = self.head[2..end].split_at(end - 2 - MASK_LEN);
        let declared = lens
            .iter()
            .fold(0_u64, |len, byte| len << 8 | u64::from(*byte));
        let declared = match lens.len() {
            0 => u64::from(second & LEN),
            // The shortest form is the rule.
            2 if declared <= CONTROL_LEN_MAX as u64 => return Err(Violation::Protocol),
            8 if declared <= u64::from(u16::MAX) => return Err(Violation::Protocol),
            _ => declared,
        };
        let left = usize::try_from(declared).map_err(|_| Violation::TooBig)?;
        let opcode = first & OPCODE;
        let room = self.message_len_max - self.text.len();
        if opcode < CLOSE && left > room {
            return Err(Violation::TooBig);
        }
        Ok(Frame {
            opcode,
            is_final: first & FINAL != 0,
            mask: [mask[0], mask[1], mask[2], mask[3]],
            left,
            turn: 0,
        })
    }

    /// Finds what is not UTF-8 as soon as it is there.
    fn check_text(&mut self) -> Result<(), Violation> {
        match str::from_utf8(&self.text[self.valid..]) {
            Ok(_) => self.valid = self.text.len(),
            Err(error) if error.error_len().is_some() => return Err(Violation::NotUtf8),
            // A character that isn't whole yet.
            Err(error) => self.valid += error.valid_up_to(),
        }
        Ok(())
    }

    fn end(&mut self, frame: Frame) -> Result<Option<Message>, Violation> {
        match frame.opcode {
            PING => Ok(Some(Message::Ping(std::mem::take(&mut self.control)))),
            PONG => {
                self.control = Vec::new();
                Ok(Some(Message::Pong))
            }
            CLOSE => close_code(&std::mem::take(&mut self.control)).map(Some),
            _ if !frame.is_final => {
                self.is_open = true;
                Ok(None)
            }
            _ => {
                self.is_open = false;
                self.valid = 0;
                let text = String::from_utf8(std::mem::take(&mut self.text));
                text.map(|text| Some(Message::Text(text)))
                    .map_err(|_| Violation::NotUtf8)
            }
        }
    }
}

impl Frame {
    /// Appends `masked` in clear.
    fn unmask(&mut self, masked: &[u8], into: &mut Vec<u8>) {
        let turn = self.turn;
        into.extend(
            masked
                .iter()
                .enumerate()
                .map(|(at, byte)| byte ^ self.mask[(turn + at) % MASK_LEN]),
        );
        self.turn = (turn + masked.len()) % MASK_LEN;
        self.left -= masked.len();
    }
}

/// Bytes of the head that begins with a second byte of `second`.
const fn head_len(second: u8) -> usize {
    let extended = match second & LEN {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    2 + extended + MASK_LEN
}

fn close_code(payload: &[u8]) -> Result<Message, Violation> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return match payload {
            [] => Ok(Message::Close(None)),
            _ => Err(Violation::Protocol),
        };
    };
    if str::from_utf8(reason).is_err() {
        return Err(Violation::NotUtf8);
    }
    let code = CloseCode::new(u16::from_be_bytes(*code)).ok_or(Violation::Protocol)?;
    Ok(Message::Close(Some(code)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAX: usize = 1_000;

    /// A client's frame.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [0x11, 0x22, 0x33, 0x44];
        let mut out = vec![first];
        match payload.len() {
            len @ 0..=125 => out.push(MASKED | len as u8),
            len @ 126..=65_535 => {
                out.push(MASKED | 126);
                out.extend_from_slice(&(len as u16).to_be_bytes());
            }
            len => {
                out.push(MASKED | 127);
                out.extend_from_slice(&(len as u64).to_be_bytes());
            }
        }
        out.extend_from_slice(&mask);
        out.extend(
            payload
                .iter()
                .enumerate()
                .map(|(at, byte)| byte ^ mask[at % 4]),
        );
        out
    }

    fn all(bytes: &[u8], step: usize) -> Result<Vec<Message>, Violation> {
        let mut decoder = Decoder::new(MAX);
        let mut messages = Vec::new();
        for mut piece in bytes.chunks(step) {
            while let Some(message) = decoder.next(&mut piece)? {
                messages.push(message);
            }
        }
        assert!(messages.is_empty() || decoder.kept() <= MAX);
        Ok(messages)
    }

    fn text(text: &str) -> Message {
        Message::Text(text.to_owned())
    }

    // T39
    #[test]
    fn fragments_join_around_control_frames_whatever_the_pieces() {
        let bytes = [
            frame(TEXT, "caf\u{e9}".as_bytes()[..4].into()),
            frame(FINAL | PING, b"p"),
            frame(CONTINUATION, &"\u{e9}".as_bytes()[1..]),
            frame(FINAL | PONG, b""),
            frame(FINAL, b"!"),
            frame(FINAL | TEXT, b""),
            frame(FINAL | CLOSE, &[0x03, 0xe8, b'x']),
        ]
        .concat();
        let expected = [
            Message::Ping(b"p".to_vec()),
            Message::Pong,
            text("caf\u{e9}!"),
            text(""),
            Message::Close(Some(CloseCode::NORMAL)),
        ];
        for step in [1, 2, 3, 5, bytes.len()] {
            assert_eq!(all(&bytes, step).unwrap(), expected, "{step}");
        }
    }

    // T39
    #[test]
    fn what_breaks_the_rules_is_closed_with_its_code() {
        let unmasked = vec![FINAL | TEXT, 1, b'x'];
        let long_form = [
            &[FINAL | TEXT, MASKED | 126, 0, 5, 0, 0, 0, 0][..],
            b"hello",
        ]
        .concat();
        let cases = [
            (unmasked, 1002),
            (long_form, 1002),
            (frame(FINAL | 0x40 | TEXT, b"x"), 1002),
            (frame(FINAL | 3, b"x"), 1002),
            (frame(FINAL | 11, b"x"), 1002),
            (frame(FINAL, b"x"), 1002),
            (frame(PING, b"x"), 1002),
            (frame(FINAL | PING, &[b'x'; 126]), 1002),
            (
                [frame(TEXT, b"x"), frame(FINAL | TEXT, b"y")].concat(),
                1002,
            ),
            (frame(FINAL | CLOSE, &[3]), 1002),
            (frame(FINAL | CLOSE, &[3, 0xed]), 1002),
            (frame(FINAL | CLOSE, &[3, 0xe8, 0xff]), 1007),
            (frame(FINAL | TEXT, b"\xff"), 1007),
            ([frame(TEXT, b"\xc3"), frame(FINAL, b"x")].concat(), 1007),
            (frame(FINAL | TEXT, b"\xc3"), 1007),
            (frame(FINAL | BINARY, b"x"), 1003),
        ];
        for (bytes, code) in cases {
            let violation = all(&bytes, 1).unwrap_err();
            assert_eq!(violation.code().get(), code, "{bytes:x?}");
        }
    }

    // T39, T69
    #[test]
    fn the_limit_passes_and_one_byte_more_is_refused_by_its_head() {
        let longest = "x".repeat(MAX);
        let whole = frame(FINAL | TEXT, longest.as_bytes());
        assert_eq!(all(&whole, 100).unwrap(), [text(&longest)]);
        let head = &frame(FINAL | TEXT, &[b'x'; MAX + 1])[..8];
        assert_eq!(all(head, 8), Err(Violation::TooBig));
        let in_parts = [frame(TEXT, &[b'x'; MAX]), frame(FINAL, b"x")].concat();
        assert_eq!(all(&in_parts, 100), Err(Violation::TooBig));
        let endless = [
            FINAL | TEXT,
            MASKED | 127,
            0xff,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
        ];
        assert_eq!(all(&endless, 1), Err(Violation::TooBig));
    }

    #[test]
    fn an_idle_decoder_keeps_no_buffer() {
        let mut decoder = Decoder::new(MAX);
        let bytes = [frame(FINAL | TEXT, b"hello"), frame(FINAL | PONG, b"x")].concat();
        let mut input = &bytes[..];
        while decoder.next(&mut input).unwrap().is_some() {}
        assert_eq!(decoder.kept(), 0);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_keep_too_much(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            step in 1_usize..50,
        ) {
            let mut decoder = Decoder::new(MAX);
            'pieces: for mut piece in bytes.chunks(step) {
                loop {
                    match decoder.next(&mut piece) {
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(_) => break 'pieces,
                    }
                }
                prop_assert!(decoder.text.len() <= MAX);
            }
        }

        #[test]
        fn the_pieces_change_nothing(
            texts in proptest::collection::vec("\\PC{0,60}", 1..6),
            step in 1_usize..20,
        ) {
            let bytes: Vec<u8> =
                texts.iter().flat_map(|text| frame(FINAL | TEXT, text.as_bytes())).collect();
            let expected: Vec<_> = texts.into_iter().map(Message::Text).collect();
            prop_assert_eq!(all(&bytes, step).unwrap(), expected);
        }
    }
}
