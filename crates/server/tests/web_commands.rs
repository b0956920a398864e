//! `tidings watch` and `tidings emit` over HTTP.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use tempfile::TempDir;
use testkit::process::ServerProcess;

const TIDINGS: &str = env!("CARGO_BIN_EXE_tidings");

const CHANNELS: &str = r#"
[channels.room]
params = { id = "int" }
policy = "true"
events = ["message"]
history = 10

[channels.loose]
policy = "true"
events = ["ping"]
"#;

struct World {
    dir: TempDir,
    server: ServerProcess,
}

impl World {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("tidings.toml");
        fs::write(&config, CHANNELS).unwrap();
        let flags = ["--dev", "--config", config.to_str().unwrap()];
        let server = ServerProcess::start(TIDINGS, &dir.path().join("data"), &flags);
        Self { dir, server }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(TIDINGS);
        command
            .args(args)
            .current_dir(self.dir.path())
            .env("TIDINGS_HOME", self.dir.path().join("home"))
            .env("TIDINGS_URL", self.server.http_url())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let output: Output = self.command(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code().unwrap(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    fn publish(&self, path: &str) {
        let (status, body) = self
            .server
            .web("PUT", &format!("/v1/documents{path}"), "", path)
            .unwrap();
        assert_eq!(status, 201, "{body}");
    }

    /// A watch that was acknowledged.
    fn watch(&self, args: &[&str]) -> Watch {
        let args = [&["watch"], args].concat();
        let mut child = self.command(&args).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("watching") {
            line.clear();
            assert_ne!(told.read_line(&mut line).unwrap(), 0, "the watch ended");
        }
        // What it says later must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
        let lines = BufReader::new(child.stdout.take().unwrap());
        Watch { child, lines }
    }
}

struct Watch {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watch {
    fn next(&mut self) -> Vec<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        let fields = line.trim_end_matches('\n').split('\t');
        fields.map(str::to_owned).collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_event_goes_from_one_terminal_to_another() {
    let world = World::start();
    let mut watch = world.watch(&["channel:room?id=42", "--exit-after", "2"]);
    let (code, cursor, _) = world.run(&["emit", "channel:room?id=42", "message", r#"{"a": 1}"#]);
    assert_eq!(code, 0);
    let told = watch.next();
    assert_eq!(told[1..3], ["event", "message"]);
    assert_eq!((&told[5][..], &told[0][..]), (r#"{"a":1}"#, cursor.trim()));
    let mut from_stdin = world.command(&["emit", "channel:room?id=42", "message", "-", "--json"]);
    let mut emit = from_stdin.stdin(Stdio::piped()).spawn().unwrap();
    emit.stdin.take().unwrap().write_all(b"7\n").unwrap();
    let printed = emit.wait_with_output().unwrap();
    assert!(printed.stdout.starts_with(b"{\"cursor\":\""), "{printed:?}");
    assert_eq!(watch.next()[5], "7");
    assert!(watch.child.wait().unwrap().success());
    let (code, nothing, _) = world.run(&["emit", "channel:loose", "ping"]);
    assert_eq!(
        (code, &nothing[..]),
        (0, ""),
        "without a history there is no position"
    );
}

// P3, P5
#[test]
fn a_watch_over_http_comes_back_after_a_kill_and_misses_nothing() {
    let mut world = World::start();
    let mut watch = world.watch(&["/notes/"]);
    world.publish("/notes/a.md");
    assert_eq!(watch.next()[1..3], ["publish", "/notes/a.md"]);
    world.server.kill();
    world.server.restart();
    world.publish("/elsewhere.md");
    world.publish("/notes/b.md");
    assert_eq!(watch.next()[1..3], ["publish", "/notes/b.md"]);
}

#[test]
fn a_watch_ends_where_it_was_told_to() {
    let world = World::start();
    world.publish("/notes/a.md");
    let (code, none, _) = world.run(&["watch", "/notes/", "--until-caught-up"]);
    assert_eq!((code, &none[..]), (0, ""));
    let since = ["watch", "/notes/", "--since", "another:1"];
    let (code, gap, _) = world.run(&[&since[..], &["--until-caught-up", "--json"]].concat());
    assert_eq!(code, 0);
    assert!(
        gap.contains(r#""op":"gap""#) && gap.contains(r#""reason":"epoch""#),
        "{gap}"
    );
    let (code, gap, _) = world.run(&[&since[..], &["--fail-on-gap"]].concat());
    assert_eq!(code, 5);
    assert!(gap.ends_with("\tgap\t\t\t\tepoch\n"), "{gap}");
}

#[test]
fn what_can_not_be_done_is_said_with_its_exit_code() {
    let world = World::start();
    let mark = world.server.url();
    for (args, code, expected) in [
        (
            &["emit", "channel:room?id=42", "unheard"][..],
            1,
            "has no such event",
        ),
        (
            &["emit", "channel:nowhere", "ping"],
            4,
            "does not allow this",
        ),
        (
            &["emit", "channel:loose", "ping", "hello"],
            2,
            "the data is not JSON",
        ),
        (
            &["emit", "/notes/", "ping"],
            2,
            "write it as channel:room?id=42",
        ),
        (
            &["emit", "channel:loose", "ping", "--url", &mark],
            2,
            "emit speaks HTTP",
        ),
        (
            &[
                "emit",
                "channel:loose",
                "ping",
                "--url",
                "http://127.0.0.1:1",
            ],
            3,
            "connect to",
        ),
        (&["watch", "channel:nowhere"], 4, "does not allow this"),
        (&["watch", "/notes/", "channel:loose"], 1, "different feeds"),
        (
            &["watch", "channel:loose", "--url", &mark],
            2,
            "only documents can be watched",
        ),
        (
            &["fetch", "/a.md"],
            2,
            "this command speaks Mark and not HTTP",
        ),
    ] {
        let (ended, _, said) = world.run(args);
        assert!(said.contains(expected), "{args:?}: {said}");
        assert_eq!(ended, code, "{args:?}: {said}");
    }
}
