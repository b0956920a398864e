//! HTTP beside Mark: where it listens, what the configuration says of it, how it leaves.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use testkit::process::{ServerProcess, wait_for};

const TIDINGS: &str = env!("CARGO_BIN_EXE_tidings");

/// Only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

const CHANNELS: &str = r#"
[channels.room]
params = { id = "int" }
policy = "true"
events = ["message"]
history = 10
"#;

fn config(dir: &TempDir, text: &str) -> PathBuf {
    let path = dir.path().join("tidings.toml");
    fs::write(&path, text).unwrap();
    path
}

fn server(dir: &TempDir, text: &str, flags: &[&str]) -> ServerProcess {
    let config = config(dir, text);
    let flags = [&["--config", config.to_str().unwrap()], flags].concat();
    ServerProcess::start(TIDINGS, &dir.path().join("data"), &flags)
}

/// `tidings serve` with only a configuration, which must end by itself.
fn check(config: &Path, flags: &[&str]) -> Output {
    Command::new(TIDINGS)
        .arg("serve")
        .args(["--config", config.to_str().unwrap()])
        .args(flags)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// A stream of lines that stays open.
fn watch(server: &ServerProcess, scope: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(server.http()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "GET /v1/watch?scope={scope} HTTP/1.1\r\nhost: localhost\r\n\
         accept: application/x-ndjson\r\n\r\n"
    )
    .unwrap();
    let mut lines = BufReader::new(stream);
    until(&mut lines, r#""op":"beat""#);
    lines
}

/// The next line in which `text` stands.
fn until(lines: &mut BufReader<TcpStream>, text: &str) -> String {
    loop {
        let mut line = String::new();
        let len = lines.read_line(&mut line).unwrap();
        assert_ne!(len, 0, "the stream ended before {text}");
        if line.contains(text) {
            return line;
        }
    }
}

#[test]
fn both_faces_serve_one_store_and_are_named_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = server(&dir, "", &["--dev"]);
    assert!(
        server
            .log()
            .contains(&format!("open       {}/", server.http_url()))
    );
    let (_, ready) = server.admin_get("/readyz").unwrap();
    assert!(
        ready.contains(&format!(r#""http":"{}""#, server.http())),
        "{ready}"
    );
    let (status, _) = server
        .web("PUT", "/v1/documents/tea.md", "", "# Tea")
        .unwrap();
    assert_eq!(status, 201);
    let fetched = Command::new(TIDINGS)
        .args(["fetch", "/tea.md", "--insecure", "--url", &server.url()])
        .output()
        .unwrap();
    assert_eq!(fetched.stdout, b"# Tea");
    assert_eq!(server.stop().code(), Some(0));
    server.assert_quiet(&[]);
}

// T20, P13
#[test]
fn a_drain_says_goodbye_to_what_is_held_before_the_process_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = server(&dir, CHANNELS, &["--dev"]);
    let mut documents = watch(&server, "doc:/");
    let mut room = watch(&server, "channel:room%3Fid%3D42");
    server.signal("TERM");
    for lines in [&mut documents, &mut room] {
        let goodbye = until(lines, r#""op":"closing""#);
        assert!(goodbye.contains("retry_after_ms"), "{goodbye}");
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    server.assert_quiet(&[]);
}

// C10
#[test]
fn a_history_in_memory_comes_back_with_a_new_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = server(&dir, CHANNELS, &["--dev"]);
    let emit = |server: &ServerProcess| {
        let event = r#"{"event":"message","data":1}"#;
        let (status, body) = server
            .web("POST", "/v1/channels/room?id=42", "", event)
            .unwrap();
        assert_eq!(status, 200, "{body}");
        let cursor = body.split('"').nth(3).unwrap();
        let (epoch, seq) = cursor.split_once(':').unwrap();
        (epoch.to_owned(), seq.to_owned())
    };
    let before = emit(&server);
    server.kill();
    server.restart();
    let after = emit(&server);
    assert_eq!(before.1, after.1);
    assert_ne!(
        before.0, after.0,
        "an equal number must not be the same place"
    );
}

#[test]
fn over_the_memory_budget_nothing_that_lasts_begins() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir, "[limits]\nmemory_bytes = 1\n", &["--dev"]);
    wait_for("the first sample", || {
        server.log().contains("over the memory budget")
    });
    let (status, body) = server.web("GET", "/v1/watch?scope=/", "", "").unwrap();
    assert_eq!(status, 503, "{body}");
    let put = |text: &str| {
        server
            .web("PUT", "/v1/documents/tea.md", "", text)
            .unwrap()
            .0
    };
    assert_eq!(put(&"# Tea\n".repeat(2_000)), 503);
    assert_eq!(put("# Tea"), 201);
    let (_, metrics) = server.admin_get("/metrics").unwrap();
    assert!(
        metrics.contains(r#"tidings_web_refusals_total{limit="memory"} 2"#),
        "{metrics}"
    );
}

#[test]
fn http_can_be_turned_off() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir, "", &["--dev", "--http", "off"]);
    assert!(TcpStream::connect(server.http()).is_err());
    assert!(!server.log().contains("open  "));
    assert_eq!(server.admin_put("/build/7").unwrap().0, 503);
}

// C17
#[test]
fn a_channel_that_can_not_be_served_ends_the_start_and_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for (text, expected) in [
        ("[channels.room]\n", "channel `room`: it has no policy"),
        (
            "[channels.\"a b\"]\npolicy = \"true\"\n",
            "channel `a b`: the name",
        ),
        (
            "[channels.room]\npolicy = \"claims.\"\n",
            "channel `room`: policy",
        ),
        (
            "[channels.room]\npolicy = \"params.id == 1\"\n",
            "a policy reads params.id, which is not declared",
        ),
        (
            "[channels.room]\npolicy = true\n",
            "[channels.room]: a policy is an expression",
        ),
        (
            "[channels.room]\npolcy = \"true\"\n",
            "[channels.room]: unknown field `polcy`",
        ),
        (
            "[channels.room]\npolicy = \"true\"\nhistory = 0\n",
            "history 0 is not between",
        ),
        (
            "[channels.a]\npolicy = \"true\"\n[channels.a]\n",
            "duplicate key",
        ),
        ("[channels]\nroom = 1\n", "[channels.room]: in"),
    ] {
        let refused = check(&config(&dir, text), &["--check"]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains(expected), "{text}: {said}");
        assert_eq!(refused.status.code(), Some(2), "{said}");
    }
}

#[test]
fn dev_mode_is_refused_where_others_reach_http() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--dev", "--http", "0.0.0.0:0", "--check"];
    let refused = check(&config(&dir, ""), &flags);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("needs a loopback address and not 0.0.0.0:0"),
        "{said}"
    );
}

#[test]
fn a_build_that_the_operator_names_is_told_to_sockets_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir, "", &["--dev"]);
    let (status, _) = server.admin_put("/build/2026-12-01").unwrap();
    assert_eq!(status, 200);
    for (path, expected) in [("/build/", 400), ("/build/a%20b", 400)] {
        assert_eq!(server.admin_put(path).unwrap().0, expected, "{path}");
    }
    assert_eq!(server.admin_get("/build/x").unwrap().0, 405);
    let mut stream = TcpStream::connect(server.http()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "GET /v1/socket?build=2026-11-30 HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n\
         upgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    .unwrap();
    // A masked text frame with a mask of zeros.
    let hello = br#"{"t":"hello","v":1}"#;
    stream
        .write_all(&[0x81, 0x80 | hello.len() as u8, 0, 0, 0, 0])
        .unwrap();
    stream.write_all(hello).unwrap();
    let mut told = Vec::new();
    wait_for("the update to be told", || {
        let mut piece = [0; 1024];
        let len = stream.read(&mut piece).unwrap();
        told.extend_from_slice(&piece[..len]);
        let text = String::from_utf8_lossy(&told);
        text.contains(r#""t":"update-available""#) && text.contains("2026-12-01")
    });
}

#[test]
fn tls_serves_the_certificate_of_mark() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir, "[serve]\ntls = true\n", &["--dev"]);
    let home = dir.path().join("home");
    let url = server.http_url().replace("http:", "https:");
    let watch = || {
        let arguments = ["watch", "/", "--until-caught-up", "--url", &url];
        let mut command = Command::new(TIDINGS);
        command.args(arguments).env("TIDINGS_HOME", &home);
        command.output().unwrap()
    };
    let first = watch();
    let said = String::from_utf8_lossy(&first.stderr).into_owned();
    assert!(
        first.status.success() && said.contains("is trusted now"),
        "{said}"
    );
    let second = watch();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(
        second.status.success() && !said.contains("trusted now"),
        "{said}"
    );
}
