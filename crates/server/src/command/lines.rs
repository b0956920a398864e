//! `tidings watch` over HTTP: any scope, as lines of JSON.
//!
//! It comes back by itself with the last position it was told, after the server's delay where it
//! gives one, and prints a gap where something was missed. What the server refuses ends it; what
//! may be over in a while does not, unless it is the very first answer.

use std::time::Duration;

use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::ACCEPT;
use hyper::{Request, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{sleep, timeout};
use wire::{Cursor, Scope};

use super::failure::Failure;
use super::output::Output;
use super::web::WebServer;

/// The longest line: the data of an event, a roster of many members.
const LINE_LEN_MAX: usize = 4 << 20;

/// Four heartbeats of a server with its defaults: then nobody is there.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The pauses before a dial, where the server named none.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(4);

/// What is watched, and until when.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) scopes: &'a [Scope],
    pub(super) since: Option<&'a Cursor>,
    pub(super) exit_after: Option<u64>,
    pub(super) until_caught_up: bool,
    pub(super) fail_on_gap: bool,
    pub(super) json: bool,
}

/// One line of a stream.
#[derive(Debug, Deserialize)]
struct Line<'a> {
    cursor: Option<String>,
    op: Option<String>,
    #[serde(default)]
    name: String,
    version: Option<u64>,
    hash: Option<String>,
    agent: Option<String>,
    reason: Option<String>,
    retry_after_ms: Option<u64>,
    /// Of an event.
    event: Option<String>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    /// Of presence.
    kind: Option<String>,
    #[serde(borrow)]
    members: Option<&'a RawValue>,
}

/// How a stream ended.
enum End {
    /// Everything that was asked for was printed.
    Done,
    /// It is to be opened again, after the server's delay if it gave one.
    Again(Option<Duration>),
}

/// Follows until what was asked for is printed, or the server refuses. Cancel-safe.
pub(super) async fn run(server: &WebServer, wanted: &Wanted<'_>) -> Result<(), Failure> {
    let head = match wanted.until_caught_up {
        true => Some(head(server, wanted.scopes).await?),
        false => None,
    };
    let mut follower = Follower {
        wanted,
        output: Output::new(wanted.json),
        position: wanted.since.cloned(),
        head,
        changes_left: wanted.exit_after,
        is_greeted: false,
    };
    let mut pause = PAUSE_FIRST;
    loop {
        let position = follower.position.clone();
        match follower.follow(server).await? {
            End::Done => return Ok(()),
            End::Again(delay) => {
                if follower.position != position {
                    pause = PAUSE_FIRST;
                }
                sleep(delay.unwrap_or_else(|| jittered(pause))).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

struct Follower<'a> {
    wanted: &'a Wanted<'a>,
    output: Output,
    /// Everything up to here was told.
    position: Option<Cursor>,
    /// Where it ends, if it ends there.
    head: Option<Cursor>,
    changes_left: Option<u64>,
    /// A server took the watch once.
    is_greeted: bool,
}

impl Follower<'_> {
    /// Follows one stream to its end.
    async fn follow(&mut self, server: &WebServer) -> Result<End, Failure> {
        let opened = open(server, self.wanted.scopes, self.position.as_ref()).await;
        let mut stream = match opened {
            Ok(Opened::Stream(stream)) => stream,
            Ok(Opened::Busy(failure)) | Err(failure) if self.is_greeted => {
                eprintln!("tidings: {failure}; trying again");
                return Ok(End::Again(None));
            }
            Ok(Opened::Busy(failure) | Opened::Refused(failure)) | Err(failure) => {
                return Err(failure);
            }
        };
        let mut lines = 0_u64;
        loop {
            let Some(text) = stream.next().await else {
                return Ok(End::Again(None));
            };
            let Ok(line) = serde_json::from_slice::<Line<'_>>(&text) else {
                eprintln!("tidings: a line of the server can't be read; coming back");
                return Ok(End::Again(None));
            };
            lines += 1;
            self.greet(&line);
            if let Some(end) = self.take(&line, &text, lines)? {
                return Ok(end);
            }
        }
    }

    fn greet(&mut self, line: &Line<'_>) {
        if !self.is_greeted {
            let scopes: Vec<String> = self.wanted.scopes.iter().map(Scope::to_string).collect();
            let from = line.cursor.as_deref().unwrap_or_default();
            eprintln!("tidings: watching {} from {from}", scopes.join(" "));
            self.is_greeted = true;
        }
    }

    /// Takes what a line says; gives the end, if it is one.
    fn take(&mut self, line: &Line<'_>, text: &[u8], lines: u64) -> Result<Option<End>, Failure> {
        let position = line.cursor.as_deref().and_then(|it| it.parse().ok());
        if position.is_some() {
            self.position = position;
        }
        match line.op.as_deref() {
            Some("beat") => {}
            Some("closing") => {
                let delay = line.retry_after_ms.map(Duration::from_millis);
                return match (delay, line.reason.as_deref()) {
                    (None, Some("revoked")) => {
                        Err(Failure::unauthorised("the right to watch this has ended"))
                    }
                    _ => Ok(Some(End::Again(delay))),
                };
            }
            Some("gap") => {
                self.print(line, text)?;
                if self.wanted.fail_on_gap {
                    return Err(Failure::gap());
                }
            }
            _ => {
                self.print(line, text)?;
                let is_presence = line.kind.is_some();
                if let Some(left) = self.changes_left.as_mut().filter(|_| !is_presence) {
                    *left -= 1;
                }
            }
        }
        let is_done = self.changes_left == Some(0) || self.has_caught_up(line, lines);
        Ok(is_done.then_some(End::Done))
    }

    /// True once everything up to the head was told. A gap leaves nothing to tell, and so does a
    /// beat that isn't the first line: the server has nothing more.
    fn has_caught_up(&self, line: &Line<'_>, lines: u64) -> bool {
        let (Some(head), Some(position)) = (&self.head, &self.position) else {
            return false;
        };
        match line.op.as_deref() {
            Some("gap") => true,
            Some("beat") if lines > 1 => true,
            _ => position.epoch != head.epoch || position.seq >= head.seq,
        }
    }

    fn print(&mut self, line: &Line<'_>, text: &[u8]) -> Result<(), Failure> {
        if self.output.is_json() {
            // As the server wrote it, which is one line.
            self.output.bytes(text)?;
            return self.output.bytes(b"\n");
        }
        let cursor = line.cursor.as_deref().unwrap_or_default();
        let version = line.version.map(|it| it.to_string()).unwrap_or_default();
        let data = line.data.map_or("null", RawValue::get);
        let members = line.members.map_or("[]", RawValue::get);
        let fields: [&str; 6] = match (&line.op, &line.event, &line.kind) {
            (Some(op), _, _) => [
                cursor,
                op,
                &line.name,
                &version,
                line.hash.as_deref().unwrap_or_default(),
                line.agent
                    .as_deref()
                    .or(line.reason.as_deref())
                    .unwrap_or_default(),
            ],
            (None, Some(event), _) => [cursor, "event", event, "", "", data],
            (None, None, kind) => {
                let kind = kind.as_deref().unwrap_or_default();
                [cursor, "presence", kind, "", "", members]
            }
        };
        self.output.line(&(), &fields)
    }
}

/// The position at which a watch that begins now begins.
async fn head(server: &WebServer, scopes: &[Scope]) -> Result<Cursor, Failure> {
    let mut stream = match open(server, scopes, None).await? {
        Opened::Stream(stream) => stream,
        Opened::Busy(failure) | Opened::Refused(failure) => return Err(failure),
    };
    while let Some(text) = stream.next().await {
        let line: Line<'_> = serde_json::from_slice(&text)?;
        if let Some(cursor) = line.cursor.and_then(|it| it.parse().ok()) {
            return Ok(cursor);
        }
    }
    Err(Failure::no("the stream ended before it said where it is"))
}

enum Opened {
    /// It may be had later.
    Busy(Failure),
    /// It may not be had.
    Refused(Failure),
    Stream(Lines),
}

async fn open(
    server: &WebServer,
    scopes: &[Scope],
    since: Option<&Cursor>,
) -> Result<Opened, Failure> {
    let encoded = |scope: &Scope| format!("scope={}", escaped(&scope.to_string()));
    let mut query: Vec<String> = scopes.iter().map(encoded).collect();
    query.extend(since.map(|since| format!("since={}", escaped(&since.to_string()))));
    let path = format!("/v1/watch?{}", query.join("&"));
    let request = Request::get("/").header(ACCEPT, "application/x-ndjson");
    let answer = server.send(&path, request, "").await?;
    let status = answer.status();
    if status == StatusCode::OK {
        return Ok(Opened::Stream(Lines {
            body: answer.into_body(),
            buffer: BytesMut::new(),
        }));
    }
    let failure = server.refusal(answer).await;
    let is_for_now = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
    Ok(match is_for_now {
        true => Opened::Busy(failure),
        false => Opened::Refused(failure),
    })
}

/// `text` as the value of a parameter.
fn escaped(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte);
    let mut escaped = String::new();
    for byte in text.bytes() {
        match is_plain(byte) {
            true => escaped.push(char::from(byte)),
            false => escaped += &format!("%{byte:02X}"),
        }
    }
    escaped
}

/// `middle`, half of it more or less, so that those who lost one server don't come back as one.
fn jittered(middle: Duration) -> Duration {
    let share = getrandom::u32().unwrap_or(u32::MAX / 2);
    middle / 2 + middle.mul_f64(f64::from(share) / f64::from(u32::MAX))
}

/// The lines of a body.
struct Lines {
    body: Incoming,
    buffer: BytesMut,
}

impl Lines {
    /// The next line without its end; nothing once the stream is over, broken or too quiet.
    async fn next(&mut self) -> Option<BytesMut> {
        let mut searched = 0;
        loop {
            let found = self.buffer[searched..].iter().position(|it| *it == b'\n');
            if let Some(at) = found {
                let mut line = self.buffer.split_to(searched + at + 1);
                line.truncate(searched + at);
                return Some(line);
            }
            searched = self.buffer.len();
            if searched > LINE_LEN_MAX {
                return None;
            }
            let frame = timeout(SILENCE_MAX, self.body.frame()).await.ok()??;
            if let Ok(piece) = frame.ok()?.into_data() {
                self.buffer.extend_from_slice(&piece);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_goes_as_one_parameter() {
        assert_eq!(
            escaped("channel:room?id=4&2 é"),
            "channel:room%3Fid%3D4%262%20%C3%A9"
        );
    }

    #[test]
    fn a_pause_stays_around_its_middle() {
        for _ in 0..100 {
            let pause = jittered(PAUSE_MAX);
            assert!(pause >= PAUSE_MAX / 2 && pause <= PAUSE_MAX * 3 / 2);
        }
    }
}
