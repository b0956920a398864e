//! `tidings serve` as a process: how it starts, what it refuses, how it is asked and how it leaves.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use testkit::process::{ServerProcess, free_tcp_port, free_udp_port, wait_for};

const TIDINGS: &str = env!("CARGO_BIN_EXE_tidings");

/// Runs `tidings` with `arguments` to its end, in an empty home.
fn tidings(home: &Path, arguments: &[&str]) -> Output {
    command(home, arguments).output().unwrap()
}

fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(TIDINGS);
    command
        .args(arguments)
        .current_dir(home)
        .env("TIDINGS_HOME", home.join("home"))
        .stdin(Stdio::null());
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn watcher(home: &Path, server: &ServerProcess) -> Killed {
    let arguments = ["watch", "/", "--insecure", "--url", &server.url()];
    let mut command = command(home, &arguments);
    Killed(
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    )
}

/// A child that doesn't outlive its test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _gone_already = self.0.kill();
        let _ = self.0.wait();
    }
}

// T19, T57
#[test]
fn a_server_is_alive_ready_and_counted_and_leaves_with_code_0() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = ServerProcess::start(TIDINGS, &dir.path().join("data"), &[]);
    assert_eq!(
        server.admin_get("/livez").unwrap(),
        (200, "alive\n".to_owned())
    );
    let (status, body) = server.admin_get("/readyz").unwrap();
    assert_eq!(status, 200);
    for part in ["\"phase\":\"serving\"", "\"documents\":0", "\"cursor\":\""] {
        assert!(body.contains(part), "{body}");
    }
    for source in ["documents", "tokens", "certificate"] {
        assert_eq!(
            server.admin_get(&format!("/readyz/{source}")).unwrap().0,
            200,
            "{source}"
        );
    }
    let (status, metrics) = server.admin_get("/metrics").unwrap();
    assert_eq!(status, 200);
    assert!(
        metrics.contains("tidings_mark_connections 0\n"),
        "{metrics}"
    );
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    server.restart();
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    server.assert_quiet(&[]);
}

// T19
#[test]
fn a_draining_server_is_not_ready_and_a_second_signal_ends_it_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let limits = dir.path().join("tidings.toml");
    // One watch a second: so slow that the second signal comes first.
    fs::write(
        &limits,
        "[limits]\nclosing_step_ms = 1000\nclosing_window_max_ms = 60000\n",
    )
    .unwrap();
    let arguments = ["--dev", "--config", limits.to_str().unwrap()];
    let mut server = ServerProcess::start(TIDINGS, &dir.path().join("data"), &arguments);
    let _watchers: Vec<Killed> = (0..6).map(|_| watcher(dir.path(), &server)).collect();
    wait_for("six watches", || {
        let (_, metrics) = server.admin_get("/metrics").unwrap();
        metrics.contains("tidings_mark_watches 6\n")
    });
    server.signal("TERM");
    wait_for("the drain", || {
        let (status, body) = server.admin_get("/readyz").unwrap();
        status == 503 && body.contains("\"phase\":\"draining\"")
    });
    assert_eq!(server.admin_get("/livez").unwrap().0, 200);
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(1), "{}", server.log());
    server.assert_quiet(&["leaving at once"]);
}

// D57
#[test]
fn a_second_server_on_a_directory_is_refused_by_name_and_the_first_notices_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut server = ServerProcess::start(TIDINGS, &data, &[]);
    let pid = server.pid().unwrap().to_string();
    let own = (server.mark().to_string(), server.admin().to_string());
    let other = (free_udp_port().to_string(), free_tcp_port().to_string());
    for (mark, admin) in [own, other] {
        let data = data.to_str().unwrap();
        let flags = ["serve", "--data", data, "--mark", &mark, "--admin", &admin];
        let refused = tidings(dir.path(), &flags);
        assert_eq!(refused.status.code(), Some(1));
        let said = stderr(&refused);
        assert!(said.contains(data) && said.contains(&pid), "{said}");
    }
    assert_eq!(server.admin_get("/readyz").unwrap().0, 200);
    assert_eq!(server.stop().code(), Some(0));
    server.assert_quiet(&[]);
}

// D77, T56
#[test]
fn what_cannot_be_served_is_refused_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let broken = dir.path().join("broken.toml");
    fs::write(&broken, "[tokens\n").unwrap();
    let broken = broken.to_str().unwrap();
    let unknown = dir.path().join("unknown.toml");
    fs::write(&unknown, "[serve]\nmrak = \"127.0.0.1:1\"\n").unwrap();
    let unknown = unknown.to_str().unwrap();
    let cases: [(&[&str], i32, &str); 8] = [
        (
            &["--dev", "--mark", "0.0.0.0:0"],
            1,
            "needs a loopback address",
        ),
        (
            &["--tokens", "nowhere.toml"],
            1,
            "the tokens file nowhere.toml is missing",
        ),
        (&["--tokens", "nowhere.toml", "--dev"], 1, "is missing"),
        (&["--tokens", broken, "--dev"], 1, "contradict each other"),
        (
            &["--admin", "0.0.0.0:0"],
            2,
            "serve.admin must be a loopback address",
        ),
        (
            &["--mark", "here"],
            2,
            "--mark: serve.mark must be an address and a port",
        ),
        (
            &["--config", unknown],
            2,
            "the nearest known one is serve.mark",
        ),
        (&["--config", "nowhere.toml"], 2, "nowhere.toml"),
    ];
    for (arguments, code, expected) in cases {
        let arguments = [&["serve", "--check", "--data", "data"], arguments].concat();
        let refused = tidings(dir.path(), &arguments);
        let said = stderr(&refused);
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert_eq!(refused.status.code(), Some(code), "{said}");
    }
    assert!(!dir.path().join("data").exists());
    let admin = free_tcp_port().to_string();
    let faulty = [
        "serve",
        "--mark",
        "127.0.0.1:0",
        "--admin",
        &admin,
        "--tokens",
        broken,
    ];
    let refused = tidings(dir.path(), &faulty);
    assert!(
        stderr(&refused).contains("broken.toml: line 1: "),
        "{}",
        stderr(&refused)
    );
    assert_eq!(refused.status.code(), Some(1));
}

// D77
#[test]
fn once_a_token_was_made_the_server_is_not_dev_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let made = tidings(
        dir.path(),
        &[
            "token",
            "--data",
            data.to_str().unwrap(),
            "add",
            "--publish",
            "/notes/**",
        ],
    );
    assert!(made.status.success(), "{}", stderr(&made));
    let token = String::from_utf8(made.stdout).unwrap();
    let server = ServerProcess::start(TIDINGS, &data, &[]);
    assert!(
        server.log().contains("rights     by tokens"),
        "{}",
        server.log()
    );
    let body = dir.path().join("tea.md");
    fs::write(&body, "# Tea\n").unwrap();
    let url = server.url();
    let publish = |token: &str| {
        let mut arguments = vec!["publish", "/notes/tea.md", body.to_str().unwrap()];
        arguments.extend(["--insecure", "--url", &url, "--token", token]);
        tidings(dir.path(), &arguments)
    };
    assert!(!publish("another").status.success());
    let published = publish(token.trim());
    assert!(published.status.success(), "{}", stderr(&published));
}

#[test]
fn the_effective_configuration_is_printed_as_one_that_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let printed = tidings(
        dir.path(),
        &["serve", "--print-config", "--data", "elsewhere"],
    );
    assert!(printed.status.success());
    let path = dir.path().join("printed.toml");
    fs::write(&path, &printed.stdout).unwrap();
    let flags = [
        "serve",
        "--print-config",
        "--config",
        path.to_str().unwrap(),
    ];
    assert_eq!(tidings(dir.path(), &flags).stdout, printed.stdout);
}

// D75
#[test]
fn what_cannot_be_reloaded_shows_in_readiness_and_disturbs_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let private = data.join(".tidings");
    fs::create_dir_all(&private).unwrap();
    fs::write(private.join("tokens.toml"), "[tokens]\n").unwrap();
    let mut server = ServerProcess::start(TIDINGS, &data, &[]);
    let problem = |source: &str| {
        let (status, body) = server.admin_get(&format!("/readyz/{source}")).unwrap();
        (status == 503).then_some(body)
    };
    fs::write(private.join("tokens.toml"), "[tokens.a]\nhash = 1\n").unwrap();
    wait_for("the poll to find the fault", || problem("tokens").is_some());
    assert!(problem("tokens").unwrap().contains("tokens.toml: line "));
    let certificate = fs::read(private.join("cert.pem")).unwrap();
    fs::write(private.join("cert.pem"), "no certificate").unwrap();
    server.signal("HUP");
    wait_for("the certificate to be looked at", || {
        problem("certificate").is_some()
    });
    assert_eq!(
        server.admin_get("/readyz").unwrap().0,
        200,
        "what was in force still is"
    );
    fs::write(private.join("tokens.toml"), "[tokens]\n# mended\n").unwrap();
    fs::write(private.join("cert.pem"), certificate).unwrap();
    server.signal("HUP");
    wait_for("both to be mended", || {
        problem("tokens").is_none() && problem("certificate").is_none()
    });
    assert_eq!(server.stop().code(), Some(0));
    // Files that a test writes have the mode of any file.
    server.assert_quiet(&["in force stay", "is open to others"]);
}

// D78
#[test]
fn a_raw_token_is_found_nowhere_but_in_the_line_that_made_it() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let data_flag = data.to_str().unwrap();
    let token = |arguments: &[&str]| {
        let arguments = [&["token", "--data", data_flag], arguments].concat();
        tidings(dir.path(), &arguments)
    };
    let made = token(&["add", "--read", "/private/**", "--label", "reader"]);
    let good = String::from_utf8(made.stdout.clone()).unwrap();
    assert!(
        stderr(&made).contains("was public and is closed"),
        "{}",
        stderr(&made)
    );
    let revoked = token(&["add", "--publish", "/**", "--label", "gone"]);
    let revoked = String::from_utf8(revoked.stdout).unwrap();
    let said = token(&["revoke", "gone"]);
    let raw = [good.trim(), revoked.trim(), "a-token-that-nobody-made"];
    let arguments = ["--log", "trace", "--log-format", "json"];
    let mut server = ServerProcess::start(TIDINGS, &data, &arguments);
    let url = server.url();
    let mut told = vec![stderr(&made), stderr(&said)];
    for raw in raw {
        let flags = ["--insecure", "--url", &url, "--token", raw];
        for command in [
            ["fetch", "/private/a.md"],
            ["list", "/private/"],
            ["archive", "/x.md"],
        ] {
            let output = tidings(dir.path(), &[&command[..], &flags[..]].concat());
            told.push(String::from_utf8(output.stdout.clone()).unwrap() + &stderr(&output));
        }
    }
    let listed = token(&["list"]);
    told.push(String::from_utf8(listed.stdout).unwrap());
    told.push(server.admin_get("/metrics").unwrap().1);
    told.push(server.admin_get("/readyz").unwrap().1);
    server.stop();
    told.push(server.log());
    told.extend(files_below(dir.path()));
    for text in &told {
        for raw in raw {
            assert!(!text.contains(raw), "a raw token in:\n{text}");
        }
    }
}

/// The text of every file below `dir`.
fn files_below(dir: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts.extend(files_below(&path));
        } else {
            texts.push(String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
        }
    }
    texts
}
