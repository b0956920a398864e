//! `tidings append` whose process is killed: its line is there whole, once or not at all.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use testkit::process::{ServerProcess, wait_for};

const TIDINGS: &str = env!("CARGO_BIN_EXE_tidings");
const ROUNDS: usize = 6;

/// Clients of a round that are killed, and as many that are not.
const VICTIMS: usize = 4;

fn append(dir: &TempDir, url: &str, line: &str) -> Child {
    let mut child = Command::new(TIDINGS)
        .args(["append", "/log.md", "--insecure", "--url", url])
        .env_clear()
        .env("TIDINGS_HOME", dir.path().join("home"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(format!("{line}\n").as_bytes()).unwrap();
    child
}

/// How many versions of the document have landed.
fn versions(data: &Path) -> usize {
    let names = fs::read_dir(data.join("versions/log.md")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name());
    names
        .filter(|name| name.to_string_lossy().starts_with('v'))
        .count()
}

// D14
#[test]
fn a_line_of_a_killed_client_is_there_once_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let server = ServerProcess::start(TIDINGS, &data, &["--dev"]);
    let url = server.url();
    let start = dir.path().join("start.md");
    fs::write(&start, "start\n").unwrap();
    let published = Command::new(TIDINGS)
        .args(["publish", "/log.md", "--insecure", "--url", &url])
        .arg(&start)
        .env("TIDINGS_HOME", dir.path().join("home"))
        .output()
        .unwrap();
    assert!(published.status.success(), "{published:?}");

    for round in 0..ROUNDS {
        let before = versions(&data);
        let spawn = |kind: &str| -> Vec<Child> {
            let lines = (0..VICTIMS).map(|number| format!("{kind} {round} {number}"));
            lines.map(|line| append(&dir, &url, &line)).collect()
        };
        let (victims, survivors) = (spawn("victim"), spawn("survivor"));
        for (landed, mut victim) in victims.into_iter().enumerate() {
            // The survivors alone bring the count this far, so each dies at another moment.
            wait_for("versions to land", || versions(&data) >= before + landed);
            victim.kill().unwrap();
            victim.wait().unwrap();
        }
        for mut survivor in survivors {
            assert!(survivor.wait().unwrap().success(), "round {round}");
        }
    }
    let text = fs::read_to_string(data.join("log.md")).unwrap();
    let lines: Vec<&str> = text.split("---\n").last().unwrap().lines().collect();
    let times = |line: &str| lines.iter().filter(|it| **it == line).count();
    let mut known = 1;
    for round in 0..ROUNDS {
        for number in 0..VICTIMS {
            assert_eq!(times(&format!("survivor {round} {number}")), 1);
            let landed = times(&format!("victim {round} {number}"));
            assert!(landed <= 1, "{text}");
            known += 1 + landed;
        }
    }
    assert_eq!(lines.len(), known, "every line is whole: {text}");
}
