//! Clients of streams and sockets that take nothing for granted: what they read is checked against
//! the grammar byte by byte.

#![allow(
    clippy::unused_async,
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "each test file uses a part of it, and a panic is its failure report"
)]

use std::net::SocketAddr;

use documents::{Change, FileStore, Op};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use wire::ContentHash;

use crate::world::within;

/// Tells a change of `path` straight to the feed: what streams do with it has nothing to do with
/// how it was stored.
pub fn tell(store: &FileStore, path: &str, version: u64) -> u64 {
    let change = Change {
        op: Op::Publish,
        path: wire::Target::parse(path.as_bytes()).unwrap().path,
        version,
        hash: ContentHash::of(path.as_bytes()),
        agent: None,
    };
    store.feed().publish(change).get()
}

/// An event as a reader of the format gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub event: String,
    pub id: Option<String>,
    pub data: Value,
}

/// A stream of server-sent events.
pub struct Stream {
    pub socket: TcpStream,
    pub head: String,
    pub retry: Option<u64>,
    bytes: Vec<u8>,
}

impl Stream {
    /// Asks for `target` and reads the head.
    pub async fn open(addr: SocketAddr, target: &str, fields: &[(&str, &str)]) -> Self {
        let socket = TcpStream::connect(addr).await.unwrap();
        Self::ask(socket, target, fields).await
    }

    /// Asks for `target` on `socket` and reads the head.
    pub async fn ask(mut socket: TcpStream, target: &str, fields: &[(&str, &str)]) -> Self {
        let addr = socket.peer_addr().unwrap();
        let mut head = format!("GET {target} HTTP/1.1\r\nHost: {addr}\r\n");
        for (name, value) in fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
        Self::over(socket).await
    }

    /// Reads the head of what was asked for on `socket`.
    pub async fn over(socket: TcpStream) -> Self {
        let mut stream = Self {
            socket,
            head: String::new(),
            retry: None,
            bytes: Vec::new(),
        };
        stream.head = loop {
            if let Some(end) = find(&stream.bytes, b"\r\n\r\n") {
                let rest = stream.bytes.split_off(end + 4);
                let head = std::mem::replace(&mut stream.bytes, rest);
                break String::from_utf8(head).unwrap();
            }
            assert!(stream.more().await, "the head is cut");
        };
        stream
    }

    /// Follows `scope` from now on, and gives where that is.
    pub async fn follow(addr: SocketAddr, scope: &str) -> (Self, Event) {
        let target = format!("/v1/watch?scope={scope}");
        let mut stream = Self::open(addr, &target, &[]).await;
        let first = stream.next().await.expect("a first event");
        (stream, first)
    }

    /// The next line, whatever it says.
    pub async fn line(&mut self) -> String {
        loop {
            if let Some(end) = find(&self.bytes, b"\n") {
                let rest = self.bytes.split_off(end + 1);
                let line = std::mem::replace(&mut self.bytes, rest);
                return String::from_utf8(line).unwrap();
            }
            assert!(self.more().await, "the stream is cut");
        }
    }

    async fn more(&mut self) -> bool {
        within(self.socket.read_buf(&mut self.bytes))
            .await
            .is_ok_and(|len| len > 0)
    }

    /// The next event; nothing at the end of the stream, where half an event doesn't count.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = find(&self.bytes, b"\n\n") {
                let rest = self.bytes.split_off(end + 2);
                let block = std::mem::replace(&mut self.bytes, rest);
                if let Some(event) = self.read(std::str::from_utf8(&block).unwrap()) {
                    return Some(event);
                }
                continue;
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// The next event that is no beat.
    pub async fn next_told(&mut self) -> Event {
        loop {
            let event = self.next().await.expect("the stream goes on");
            if event.event != "beat" {
                return event;
            }
        }
    }

    fn read(&mut self, block: &str) -> Option<Event> {
        assert!(!block.contains('\r'), "lines end in LF alone: {block:?}");
        let (mut name, mut id, mut data) = (None, None, None::<String>);
        for line in block.lines().filter(|line| !line.is_empty()) {
            let (field, value) = line.split_once(": ").expect("a space follows each colon");
            match field {
                "" => {}
                "event" => assert!(name.replace(value.to_owned()).is_none()),
                "id" => assert!(id.replace(value.to_owned()).is_none()),
                "retry" => {
                    assert!(value.bytes().all(|byte| byte.is_ascii_digit()));
                    self.retry = Some(value.parse().unwrap());
                }
                "data" => match &mut data {
                    Some(data) => data.push_str(&format!("\n{value}")),
                    None => data = Some(value.to_owned()),
                },
                field => panic!("a field of no meaning: {field}"),
            }
        }
        if let Some(id) = &id {
            let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
            assert!(id.len() <= 128 && id.bytes().all(safe), "{id}");
        }
        data.map(|data| Event {
            event: name.unwrap_or_else(|| "message".to_owned()),
            id,
            data: serde_json::from_str(&data).unwrap(),
        })
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// A socket of the sync protocol.
pub struct Socket {
    pub socket: TcpStream,
    pub head: String,
    bytes: Vec<u8>,
}

/// What a server sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    Close(u16),
    Frame(Value),
    Ping,
    Pong(Vec<u8>),
}

impl Socket {
    /// Shakes hands.
    pub async fn open(addr: SocketAddr, fields: &[(&str, &str)]) -> Self {
        Self::open_at(addr, "/v1/socket", fields).await
    }

    pub async fn open_at(addr: SocketAddr, target: &str, fields: &[(&str, &str)]) -> Self {
        let socket = TcpStream::connect(addr).await.unwrap();
        Self::open_on(socket, target, fields).await
    }

    pub async fn open_on(mut socket: TcpStream, target: &str, fields: &[(&str, &str)]) -> Self {
        let addr = socket.peer_addr().unwrap();
        let mut head = format!(
            "GET {target} HTTP/1.1\r\nHost: {addr}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        );
        for (name, value) in fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut own = Self {
            socket,
            head: String::new(),
            bytes: Vec::new(),
        };
        own.head = loop {
            if let Some(end) = find(&own.bytes, b"\r\n\r\n") {
                let rest = own.bytes.split_off(end + 4);
                break String::from_utf8(std::mem::replace(&mut own.bytes, rest)).unwrap();
            }
            assert!(own.more().await, "the head is cut");
        };
        own
    }

    /// Shakes hands and says hello.
    pub async fn greet(addr: SocketAddr) -> Self {
        Self::greet_on(TcpStream::connect(addr).await.unwrap()).await
    }

    /// The same on `socket`.
    pub async fn greet_on(socket: TcpStream) -> Self {
        let mut socket = Self::open_on(socket, "/v1/socket", &[]).await;
        assert!(socket.head.starts_with("HTTP/1.1 101 "), "{}", socket.head);
        socket.send(&json!({"t": "hello", "v": 1})).await;
        let hello = socket.frame().await;
        assert_eq!(hello["t"], "hello", "{hello}");
        socket
    }

    /// What was read and is no frame yet.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    pub async fn send(&mut self, frame: &Value) {
        self.send_bytes(&masked(0x81, frame.to_string().as_bytes()))
            .await;
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.unwrap();
    }

    /// Subscribes and gives the acknowledgement, or the error.
    pub async fn subscribe(&mut self, id: &str, scope: &str, since: Option<&str>) -> Value {
        let mut frame = json!({"t": "subscribe", "id": id, "scope": scope});
        if let Some(since) = since {
            frame["since"] = since.into();
        }
        self.send(&frame).await;
        self.frame_of(id).await
    }

    /// The next frame that answers `id`.
    pub async fn frame_of(&mut self, id: &str) -> Value {
        loop {
            let frame = self.frame().await;
            if frame["id"] == id {
                return frame;
            }
        }
    }

    /// The next frame that is no beat.
    pub async fn frame(&mut self) -> Value {
        loop {
            match self.next().await.expect("the socket goes on") {
                Heard::Frame(frame) if frame["t"] != "beat" => return frame,
                Heard::Close(code) => panic!("closed with {code}"),
                _ => {}
            }
        }
    }

    /// The code that the socket is closed with, and the frames before it.
    pub async fn closed(&mut self) -> (u16, Vec<Value>) {
        let mut frames = Vec::new();
        loop {
            match self.next().await {
                Some(Heard::Close(code)) => return (code, frames),
                Some(Heard::Frame(frame)) => frames.push(frame),
                Some(_) => {}
                None => panic!("it ended without a word after {frames:?}"),
            }
        }
    }

    async fn more(&mut self) -> bool {
        within(self.socket.read_buf(&mut self.bytes))
            .await
            .is_ok_and(|len| len > 0)
    }

    pub async fn next(&mut self) -> Option<Heard> {
        loop {
            if let Some((heard, len)) = unframe(&self.bytes) {
                self.bytes.drain(..len);
                return Some(heard);
            }
            if !self.more().await {
                return None;
            }
        }
    }
}

/// Reads a server's frame: whole, unmasked, in the shortest form.
fn unframe(bytes: &[u8]) -> Option<(Heard, usize)> {
    let (first, second) = (*bytes.first()?, *bytes.get(1)?);
    assert_eq!(first & 0x70, 0, "reserved bits");
    assert_eq!(first & 0x80, 0x80, "fragments are not sent");
    assert_eq!(second & 0x80, 0, "a server does not mask");
    let (len, head) = match second {
        126 => (
            usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().unwrap())),
            4,
        ),
        127 => (
            u64::from_be_bytes(bytes.get(2..10)?.try_into().unwrap()) as usize,
            10,
        ),
        len => (usize::from(len), 2),
    };
    let payload = bytes.get(head..head + len)?;
    let heard = match first & 0x0f {
        1 => Heard::Frame(serde_json::from_slice(payload).expect("a frame is JSON")),
        8 => Heard::Close(
            payload
                .get(..2)
                .map_or(1005, |code| u16::from_be_bytes([code[0], code[1]])),
        ),
        9 => Heard::Ping,
        10 => Heard::Pong(payload.to_vec()),
        opcode => panic!("opcode {opcode}"),
    };
    Some((heard, head + len))
}

/// A client's frame.
pub fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0xa1, 0x1f, 0x20, 0x33];
    let mut out = vec![first];
    match payload.len() {
        len @ 0..=125 => out.push(0x80 | len as u8),
        len @ 126..=65_535 => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        len => {
            out.push(0x80 | 127);
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
