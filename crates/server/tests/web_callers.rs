//! Who calls over HTTP: JSON web tokens, capability tokens, and back ends that are asked.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{EncodingKey, Header};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::process::{ServerProcess, wait_for};

const TIDINGS: &str = env!("CARGO_BIN_EXE_tidings");

const SECRET: &str = "a secret of the issuer, long enough";

/// Two rooms: one for whoever has it in the claims, one whose back end decides.
const CHANNELS: &str = r#"
[channels.room]
params = { id = "int" }
policy = "claims.rooms contains params.id"
publish = "claims.rooms contains params.id"
events = ["message"]
"#;

const MESSAGE: &str = r#"{"event":"message"}"#;

fn start(dir: &TempDir, auth: &str) -> ServerProcess {
    let config = dir.path().join("tidings.toml");
    fs::write(&config, format!("{auth}{CHANNELS}")).unwrap();
    let flags = ["--config", config.to_str().unwrap(), "--dev=false"];
    ServerProcess::start(TIDINGS, &dir.path().join("data"), &flags)
}

fn web_token(secret: &str, claims: &Value) -> String {
    // Only the first one counts; every test of this process may be first.
    let _ = jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER.install_default();
    let key = EncodingKey::from_secret(secret.as_bytes()).unwrap();
    jsonwebtoken::encode(&Header::default(), claims, &key).unwrap()
}

fn in_an_hour() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_secs() + 3600
}

fn emit(server: &ServerProcess, room: u32, token: &str) -> (u16, String) {
    let path = format!("/v1/channels/room?id={room}");
    server.web("POST", &path, token, MESSAGE).unwrap()
}

/// A back end that says each request it gets and answers what `answer` makes of it.
fn back_end(answer: impl Fn(&str) -> String + Send + 'static) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, asked) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = read_request(&stream);
            let answered = answer(&request);
            // A test that has ended hears no more.
            let _ = sender.send(request);
            let _ = stream.write_all(answered.as_bytes());
        }
    });
    (address, asked)
}

fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap() == 0 {
            return head;
        }
    }
    let field = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>())?.ok()
    });
    let mut body = vec![0; field.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    head + &String::from_utf8(body).unwrap()
}

fn answer(status: &str, body: &str) -> String {
    let len = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\nconnection: close\r\n\r\n{body}")
}

#[test]
fn the_claims_of_a_web_token_decide() {
    let dir = tempfile::tempdir().unwrap();
    let auth = format!("[auth]\njwt_secret = \"{SECRET}\"\naudience = \"tidings\"\n");
    let mut server = start(&dir, &auth);
    let claims = json!({ "sub": "ada", "aud": "tidings", "rooms": [42], "exp": in_an_hour() });
    let token = web_token(SECRET, &claims);
    assert_eq!(emit(&server, 42, &token).0, 200);
    assert_eq!(emit(&server, 43, &token).0, 403);
    assert_eq!(emit(&server, 42, "").0, 403);
    let (_, who) = server.web("GET", "/v1/whoami", &token, "").unwrap();
    assert!(who.contains(r#""sub":"ada""#), "{who}");
    let mut foreign = claims.clone();
    foreign["aud"] = "another".into();
    let mut old = claims.clone();
    old["exp"] = 1.into();
    let unsigned = format!("eyJhbGciOiJub25lIn0.{}.", token.split('.').nth(1).unwrap());
    for refused in [
        web_token("another secret that is as long", &claims),
        web_token(SECRET, &foreign),
        web_token(SECRET, &old),
        unsigned,
        "a.b.c".to_owned(),
    ] {
        let (status, body) = emit(&server, 42, &refused);
        assert_eq!(status, 401, "{body}");
    }
    assert_eq!(server.stop().code(), Some(0));
    server.assert_quiet(&[]);
    assert!(!server.log().contains(SECRET));
}

/// What a socket says to a subscribe of `scope` after a hello with `token`.
fn subscribe(server: &ServerProcess, token: &str, scope: &str) -> String {
    let mut stream = TcpStream::connect(server.http()).unwrap();
    write!(
        stream,
        "GET /v1/socket HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n\
         upgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    .unwrap();
    for frame in [
        json!({ "t": "hello", "v": 1, "token": token }),
        json!({ "t": "subscribe", "id": "1", "scope": scope }),
    ] {
        let text = frame.to_string();
        // A masked text frame with a mask of zeros; a longer one says its length elsewhere.
        let head = match u8::try_from(text.len()) {
            Ok(len) if len < 126 => vec![0x81, 0x80 | len, 0, 0, 0, 0],
            _ => {
                let len = u16::try_from(text.len()).unwrap().to_be_bytes();
                vec![0x81, 0xfe, len[0], len[1], 0, 0, 0, 0]
            }
        };
        stream
            .write_all(&[&head[..], text.as_bytes()].concat())
            .unwrap();
    }
    let mut told = Vec::new();
    loop {
        let mut piece = [0; 1024];
        let len = stream.read(&mut piece).unwrap();
        told.extend_from_slice(&piece[..len]);
        let text = String::from_utf8_lossy(&told);
        if len == 0 || text.contains(r#""id":"1""#) {
            return text.into_owned();
        }
    }
}

#[test]
fn a_web_token_is_known_on_streams_and_sockets_too() {
    let dir = tempfile::tempdir().unwrap();
    let auth = format!("[auth]\njwt_secret = \"{SECRET}\"\n");
    let server = start(&dir, &auth);
    let token = web_token(SECRET, &json!({ "rooms": [42], "exp": in_an_hour() }));
    let watch = |scope: &str, token: &str| {
        let url = server.http_url();
        let arguments = ["watch", scope, "--until-caught-up", "--url", &url];
        let mut command = std::process::Command::new(TIDINGS);
        let command = command.args(arguments).env("TIDINGS_TOKEN", token);
        command.output().unwrap().status.code()
    };
    assert_eq!(watch("channel:room?id=42", &token), Some(0));
    assert_eq!(watch("channel:room?id=43", &token), Some(4));
    assert_eq!(watch("channel:room?id=42", ""), Some(4));
    let told = subscribe(&server, &token, "channel:room?id=42");
    assert!(told.contains(r#""t":"ack""#), "{told}");
    let told = subscribe(&server, &token, "channel:room?id=43");
    assert!(told.contains("not-permitted"), "{told}");
    let told = subscribe(&server, "a.b.c", "channel:room?id=42");
    assert!(told.contains("unauthorized"), "{told}");
    server.assert_quiet(&[]);
}

#[test]
fn keys_at_a_url_are_fetched_beside_the_start() {
    let keys = |secret: &str| {
        let key = json!({ "kty": "oct", "alg": "HS256", "k": base64_url(secret.as_bytes()) });
        json!({ "keys": [key] }).to_string()
    };
    let served = keys(SECRET);
    let (address, _asked) = back_end(move |_| answer("200 OK", &served));
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir, &format!("[auth]\njwks = \"http://{address}/keys\"\n"));
    let token = web_token(SECRET, &json!({ "rooms": [42], "exp": in_an_hour() }));
    wait_for("the keys to be there", || {
        emit(&server, 42, &token).0 == 200
    });
    assert_eq!(server.admin_get("/readyz/issuer").unwrap().0, 200);
    server.assert_quiet(&[]);
}

#[test]
fn an_issuer_that_is_away_shows_in_readiness_and_stops_nobody() {
    let (address, _asked) = back_end(|_| answer("503 Service Unavailable", ""));
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir, &format!("[auth]\njwks = \"http://{address}/keys\"\n"));
    wait_for("the problem to show", || {
        server.admin_get("/readyz/issuer").unwrap().0 == 503
    });
    assert_eq!(server.admin_get("/readyz").unwrap().0, 200);
    let token = web_token(SECRET, &json!({ "rooms": [42], "exp": in_an_hour() }));
    assert_eq!(emit(&server, 42, &token).0, 401);
    server.assert_quiet(&["the keys of the issuer stay"]);
}

#[test]
fn a_back_end_is_asked_in_the_name_of_the_caller() {
    let (address, asked) = back_end(|request| {
        let may = request.contains(r#""id":42"#);
        answer(
            if may {
                "204 No Content"
            } else {
                "403 Forbidden"
            },
            "",
        )
    });
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("tidings.toml");
    let ask = format!("{{ ask = \"http://{address}/may\" }}");
    let channel = CHANNELS.replace("\"claims.rooms contains params.id\"", &ask);
    let auth = format!("[auth]\njwt_secret = \"{SECRET}\"\n");
    fs::write(&config, format!("{auth}{channel}")).unwrap();
    let flags = ["--config", config.to_str().unwrap(), "--dev=false"];
    let server = ServerProcess::start(TIDINGS, &dir.path().join("data"), &flags);
    let token = web_token(SECRET, &json!({ "sub": "ada", "exp": in_an_hour() }));
    assert_eq!(emit(&server, 42, &token).0, 200);
    let question = asked.recv().unwrap();
    assert!(question.starts_with("POST /may "), "{question}");
    assert!(question.contains(&format!("Bearer {token}")), "{question}");
    assert!(question.contains(r#""right":"publish""#), "{question}");
    assert_eq!(emit(&server, 43, &token).0, 403);
    assert_eq!(
        emit(&server, 42, "").0,
        403,
        "the anonymous are not asked about"
    );
    server.assert_quiet(&[]);
}

#[test]
fn a_secret_is_neither_printed_nor_told() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("tidings.toml");
    let print = |text: &str| {
        fs::write(&config, text).unwrap();
        std::process::Command::new(TIDINGS)
            .args(["serve", "--print-config", "--config"])
            .arg(&config)
            .output()
            .unwrap()
    };
    let printed = print(&format!("[auth]\njwt_secret = \"{SECRET}\"\n"));
    let text = String::from_utf8(printed.stdout).unwrap();
    assert!(text.contains("# jwt_secret is set and not shown"), "{text}");
    assert!(!text.contains(SECRET));
    let short = print("[auth]\njwt_secret = \"guessable\"\n");
    let said = String::from_utf8(short.stderr).unwrap();
    assert!(
        said.contains("auth.jwt_secret must be a text of at least 32 bytes"),
        "{said}"
    );
    assert!(!said.contains("guessable"), "{said}");
}

/// Base64 as JSON web keys have it.
fn base64_url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0_u32, |group, byte| group << 8 | u32::from(*byte));
        let group = group << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            let index = group >> (18 - 6 * place) & 63;
            text.push(char::from(ALPHABET[index as usize]));
        }
    }
    text
}
