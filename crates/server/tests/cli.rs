//! The commands of the built binary against a server of the same binary.
//!
//! Each test has a server, a data directory and a home of its own, and nothing of the environment.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};

use tempfile::TempDir;
use testkit::process::{ServerProcess, free_udp_port};

/// A running server that lets everyone do everything, and a place for its clients.
struct Server {
    process: ServerProcess,
    dir: TempDir,
}

/// The binary with an empty environment and a home in `dir`.
fn tidings_in(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidings"));
    command
        .env_clear()
        .env("TIDINGS_HOME", dir.join("home"))
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(dir);
    command
}

impl Server {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let binary = env!("CARGO_BIN_EXE_tidings");
        Self {
            process: ServerProcess::start(binary, &dir.path().join("data"), &["--dev"]),
            dir,
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = tidings_in(self.dir.path());
        command
            .args(args)
            .env("TIDINGS_URL", self.process.url())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn run_with(&self, args: &[&str], stdin: &str) -> Output {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(stdin.as_bytes()).unwrap();
        drop(pipe);
        child.wait_with_output().unwrap()
    }

    /// Publishes and expects that it lands.
    fn publish(&self, path: &str, text: &str) {
        let output = self.run_with(&["publish", path], text);
        assert!(output.status.success(), "{output:?}");
    }

    fn watch(&self, args: &[&str]) -> Watch {
        let mut child = self.command(&["watch"]).args(args).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("watching") {
            line.clear();
            assert_ne!(told.read_line(&mut line).unwrap(), 0, "the watch ended");
        }
        Watch {
            lines: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// A `tidings watch` that was acknowledged.
struct Watch {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Watch {
    /// The fields of the next line.
    fn next(&mut self) -> Vec<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        let line = line.strip_suffix('\n').unwrap_or_default();
        line.split('\t').map(str::to_owned).collect()
    }

    /// Everything up to its own end, and how it ended.
    fn end(&mut self) -> (String, ExitStatus) {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap())
    }
}

fn signal(process: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([name, &process.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

#[test]
fn a_document_goes_through_all_its_commands() {
    let server = Server::start();
    let run = |args: &[&str]| {
        let output = server.run(args);
        assert!(output.status.success(), "{args:?} {output:?}");
        stdout(&output)
    };
    let made = server.run_with(
        &["publish", "/notes/tea.md", "--tag", "hot", "--tag", "leaf"],
        "# Tea\n",
    );
    assert_eq!(stdout(&made), "/notes/tea.md@1\n");
    let more = server.run_with(&["append", "/notes/tea.md"], "Two minutes.");
    assert_eq!(stdout(&more), "/notes/tea.md@2\n");
    assert_eq!(run(&["fetch", "/notes/tea.md"]), "# Tea\nTwo minutes.");
    assert_eq!(run(&["fetch", "/notes/tea.md@1"]), "# Tea\n");
    assert_eq!(run(&["list", "/"]), "notes/\n");
    assert_eq!(run(&["list", "/notes/"]), "tea.md\n");
    let long = run(&["list", "/notes", "--long"]);
    assert!(long.starts_with("tea.md\t2\tsha256-"), "{long}");
    let versions = run(&["versions", "/notes/tea.md"]);
    assert!(versions.starts_with("2\t20") && versions.contains("\n1\t20"));
    let found = "/notes/tea.md\t0.50\tTea\thot,leaf\n";
    assert_eq!(run(&["lookup", "tea"]), found);
    assert_eq!(run(&["lookup", "--tag", "leaf"]), found);
    assert_eq!(run(&["archive", "/notes/tea.md"]), "/notes/tea.md@2\n");
    assert_eq!(run(&["list", "/notes"]), "");
    assert_eq!(code(&server.run(&["fetch", "/notes/tea.md"])), 1);
    run(&["archive", "--undo", "/notes/tea.md"]);
    let json = run(&["fetch", "/notes/tea.md", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["name"], "/notes/tea.md");
    assert_eq!(json["metadata"]["tags"], "hot,leaf");
    assert_eq!(json["body"], "# Tea\nTwo minutes.");
}

#[test]
fn each_kind_of_no_has_its_exit_code_and_its_fix() {
    let server = Server::start();
    server.publish("/a.md", "one");
    let conflict = server.run_with(&["publish", "/a.md", "--expect", "7"], "two");
    assert_eq!(code(&conflict), 1);
    assert!(stderr(&conflict).contains("--expect 1"), "{conflict:?}");
    assert_eq!(code(&server.run(&["fetch", "/none.md"])), 1);
    assert_eq!(code(&server.run(&["fetch", "no-slash.md"])), 2);
    assert_eq!(code(&server.run(&["watch"])), 2);
    let append = server.run_with(&["append", "/none.md"], "x");
    assert_eq!(code(&append), 1);
    assert!(stderr(&append).contains("tidings publish /none.md"));
    let silent = format!("mark://{}", free_udp_port());
    let unreachable = server.run(&["fetch", "/a.md", "--url", &silent]);
    assert_eq!(code(&unreachable), 3);
    assert!(stdout(&unreachable).is_empty());
    let foreign = server.run(&["fetch", "/a.md", "--url", "http://127.0.0.1:1/"]);
    assert_eq!(code(&foreign), 2);
}

// D12
#[test]
fn an_empty_text_is_refused_before_it_is_sent_and_archive_is_named() {
    let server = Server::start();
    server.publish("/tea.md", "tea");
    let output = server.run_with(&["publish", "/tea.md", "-"], "");
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("tidings archive /tea.md"));
    assert_eq!(stdout(&server.run(&["fetch", "/tea.md"])), "tea");
}

#[test]
fn a_watch_prints_each_change_at_once_and_an_interrupt_ends_it_with_success() {
    let server = Server::start();
    let mut watch = server.watch(&["/notes/"]);
    let agent = ["publish", "/notes/tea.md", "--agent", "me"];
    server.run_with(&agent, "tea");
    let line = watch.next();
    assert_eq!(line[1..4], ["publish", "/notes/tea.md", "1"]);
    assert!(line[4].starts_with("sha256-"));
    assert_eq!(line[5], "me");
    server.publish("/other.md", "x");
    server.run(&["archive", "/notes/tea.md"]);
    assert_eq!(watch.next()[1], "archive");
    signal(&watch.child, "-INT");
    let (rest, status) = watch.end();
    assert_eq!((rest.as_str(), status.code()), ("", Some(0)));
}

#[test]
fn a_watch_resumes_from_a_cursor_and_ends_when_it_was_told_to() {
    let server = Server::start();
    let mut watch = server.watch(&["/", "--exit-after", "1"]);
    server.publish("/a.md", "a");
    let first = watch.next();
    assert_eq!(watch.end().1.code(), Some(0));
    server.publish("/b.md", "b");
    server.publish("/c.md", "c");
    let caught_up = server.run(&["watch", "/", "--since", &first[0], "--until-caught-up"]);
    let names: Vec<_> = stdout(&caught_up)
        .lines()
        .map(|line| line.split('\t').nth(2).unwrap().to_owned())
        .collect();
    assert_eq!(names, ["/b.md", "/c.md"]);
    assert_eq!(code(&caught_up), 0);
}

#[test]
fn a_gap_is_a_line_with_its_reason_and_can_fail_the_watch() {
    let server = Server::start();
    server.publish("/a.md", "a");
    let args = ["watch", "/", "--since", "another:5", "--until-caught-up"];
    let told = server.run(&args);
    assert_eq!(code(&told), 0);
    let fields: Vec<_> = stdout(&told)
        .trim()
        .split('\t')
        .map(str::to_owned)
        .collect();
    assert_eq!((fields[1].as_str(), fields[5].as_str()), ("gap", "epoch"));
    let mut failing = args.to_vec();
    failing.extend(["--fail-on-gap", "--json"]);
    let failed = server.run(&failing);
    assert_eq!(code(&failed), 5);
    let line: serde_json::Value = serde_json::from_str(&stdout(&failed)).unwrap();
    assert_eq!(
        (&line["op"], &line["reason"]),
        (&"gap".into(), &"epoch".into())
    );
}

#[test]
fn a_watch_goes_on_through_a_restart_of_the_server_and_misses_nothing() {
    let mut server = Server::start();
    let mut watch = server.watch(&["/"]);
    server.publish("/a.md", "a");
    assert_eq!(watch.next()[2], "/a.md");
    assert!(server.process.stop().success());
    server.process.restart();
    server.publish("/b.md", "b");
    let line = watch.next();
    assert_eq!(line[1..3], ["publish", "/b.md"]);
}

#[test]
fn a_closed_pipe_is_a_quiet_end() {
    let server = Server::start();
    let mut watch = server.watch(&["/"]);
    server.publish("/a.md", "a");
    watch.next();
    let child = &mut watch.child;
    drop(std::mem::replace(
        &mut watch.lines,
        BufReader::new(spare_stdout()),
    ));
    server.publish("/b.md", "b");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A pipe to put in the place of one that is to be closed.
fn spare_stdout() -> ChildStdout {
    let mut child = Command::new("true").stdout(Stdio::piped()).spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    child.wait().unwrap();
    stdout
}

// D92
#[test]
fn an_import_names_what_it_refuses_and_a_second_run_makes_nothing() {
    let server = Server::start();
    let wiki = server.path("wiki");
    fs::create_dir_all(wiki.join(".git")).unwrap();
    fs::create_dir_all(wiki.join("deep/er")).unwrap();
    fs::write(wiki.join(".git/config.md"), "x").unwrap();
    fs::write(wiki.join("a.md"), "\u{feff}# A\r\n").unwrap();
    fs::write(wiki.join("deep/er/b.md"), "---\ntitle: b\n---\nB").unwrap();
    fs::write(wiki.join("latin.md"), b"caf\xe9").unwrap();
    fs::write(wiki.join("empty.md"), "").unwrap();
    fs::write(wiki.join("long.md"), vec![b'x'; 2 << 20]).unwrap();
    fs::write(wiki.join("picture.png"), "x").unwrap();
    std::os::unix::fs::symlink("/etc/hostname", wiki.join("out.md")).unwrap();
    server.publish("/wiki/taken.md", "other");
    fs::write(wiki.join("taken.md"), "mine").unwrap();

    let mut watch = server.watch(&["/wiki/"]);
    let import = ["import", "wiki", "/wiki"];
    let first = server.run(&import);
    assert_eq!(code(&first), 1);
    let told = stderr(&first);
    for name in ["latin.md", "empty.md", "long.md", "picture.png", "out.md"] {
        assert!(told.contains(name), "{told}");
    }
    assert!(
        told.contains("/wiki/taken.md: there is a document"),
        "{told}"
    );
    assert!(
        told.contains("2 imported, 0 unchanged, 6 refused"),
        "{told}"
    );
    assert_eq!(
        server.run(&["fetch", "/wiki/a.md"]).stdout,
        fs::read(wiki.join("a.md")).unwrap()
    );
    let second = server.run(&import);
    assert!(stderr(&second).contains("0 imported, 2 unchanged, 6 refused"));
    let update = server.run(&["import", "wiki", "/wiki", "--update"]);
    assert!(stderr(&update).contains("1 imported, 2 unchanged, 5 refused"));

    let mut changes: Vec<_> = (0..3).map(|_| watch.next()[2].clone()).collect();
    changes[..2].sort_unstable();
    assert_eq!(
        changes,
        ["/wiki/a.md", "/wiki/deep/er/b.md", "/wiki/taken.md"]
    );
}

#[test]
fn files_that_lie_in_the_tree_by_hand_become_documents_in_place() {
    let mut server = Server::start();
    server.publish("/notes/tea.md", "tea");
    let data = server.path("data");
    fs::write(data.join("notes/hand.md"), "by hand").unwrap();
    let busy = server.run(&["import", "data"]);
    assert_eq!(code(&busy), 1);
    assert!(stderr(&busy).contains("in use by process"), "{busy:?}");
    server.process.stop();
    let import = server.run(&["import", "data/notes"]);
    assert!(import.status.success(), "{import:?}");
    assert!(stderr(&import).contains("1 imported"), "{import:?}");
    server.process.restart();
    let fetched = server.run(&["fetch", "/notes/hand.md@1"]);
    assert_eq!(stdout(&fetched), "by hand");
}

// D14
#[test]
fn appends_at_once_are_each_there_once() {
    const WRITERS: usize = 16;
    const LINES: usize = 3;
    let server = Server::start();
    server.publish("/log.md", "start\n");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let server = &server;
            scope.spawn(move || {
                for line in 0..LINES {
                    let text = format!("{writer}-{line}\n");
                    let output = server.run_with(&["append", "/log.md"], &text);
                    assert!(output.status.success(), "{output:?}");
                }
            });
        }
    });
    let text = stdout(&server.run(&["fetch", "/log.md"]));
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!((lines.len(), text.lines().count()), (49, 49));
}

// D41
#[test]
fn an_edit_without_a_change_publishes_nothing_and_a_conflict_keeps_the_text() {
    let server = Server::start();
    server.publish("/tea.md", "one\r\n");
    let edit = |editor: &str| {
        let mut command = server.command(&["edit", "/tea.md"]);
        command
            .env("EDITOR", editor)
            .env("TMPDIR", server.dir.path());
        command.output().unwrap()
    };
    let unchanged = edit("true");
    assert_eq!(code(&unchanged), 0);
    assert!(stderr(&unchanged).contains("nothing published"));
    let changed = edit("printf two >>");
    assert_eq!(stdout(&changed), "/tea.md@2\n");
    assert_eq!(stdout(&server.run(&["fetch", "/tea.md"])), "one\r\ntwo");

    // While the editor is open somebody else publishes.
    let script = server.path("slow-editor");
    let binary = env!("CARGO_BIN_EXE_tidings");
    let text = format!("#!/bin/sh\necho other | {binary} publish /tea.md\nprintf mine > \"$1\"\n");
    fs::write(&script, text).unwrap();
    let editor = format!("sh {}", script.display());
    let conflict = edit(&editor);
    assert_eq!(code(&conflict), 1, "{conflict:?}");
    let told = stderr(&conflict);
    let kept = told.rsplit("kept in ").next().unwrap().trim();
    assert_eq!(fs::read_to_string(kept).unwrap(), "mine");
    assert_eq!(stdout(&server.run(&["fetch", "/tea.md"])), "other\n");
}

#[test]
fn a_certificate_that_the_roots_vouch_for_is_not_pinned() {
    let server = Server::start();
    server.publish("/a.md", "a");
    let known = fs::read_to_string(server.path("home/known_servers")).unwrap();
    assert!(known.starts_with("127.0.0.1:") && known.contains(" sha256-"));
    fs::remove_file(server.path("home/known_servers")).unwrap();
    let mut command = server.command(&["fetch", "/a.md"]);
    command.env("SSL_CERT_FILE", server.path("data/.tidings/cert.pem"));
    let output = command.output().unwrap();
    assert_eq!(stdout(&output), "a", "{output:?}");
    assert!(!server.path("home/known_servers").exists());
}

#[test]
fn another_certificate_than_the_known_one_is_refused_with_the_way_out() {
    let server = Server::start();
    let known = server.path("home/known_servers");
    fs::create_dir_all(server.path("home")).unwrap();
    let name = server.process.mark();
    let line = format!("{name} {}\n", wire::ContentHash::of(b"another"));
    fs::write(&known, line).unwrap();
    let refused = server.run(&["list"]);
    assert_eq!(code(&refused), 3);
    assert!(stderr(&refused).contains("known_servers"), "{refused:?}");
    assert!(server.run(&["list", "--insecure"]).status.success());
}
