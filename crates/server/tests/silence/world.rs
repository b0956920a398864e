//! A server under test, its writers and its watchers, all of whom report to one checker.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use client::{Client, Draft, Notice, Pool, ServerAddress, Trust, Watch};
use tempfile::TempDir;
use testkit::process::ServerProcess;
use testkit::silence::{Checker, Fact, Watcher};
use tokio::task::JoinHandle;
use wire::{Cursor, DocPath, DocumentScope, GapReason, Metadata, Op};

const TIDINGS: &str = env!("CARGO_BIN_EXE_tidings");

/// How long a watcher may take to be told of the last write. Generous: nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server, the checker, and what reports to it.
pub(crate) struct World {
    pub(crate) server: ServerProcess,
    pub(crate) checker: Checker,
    pub(crate) dir: TempDir,
    /// Writes acknowledged so far, by all writers.
    acknowledged: Arc<AtomicU64>,
}

impl World {
    /// Starts a server in which everyone may do everything, with `limits` as configuration.
    pub(crate) fn open_to_all(configuration: &str) -> Self {
        Self::start(configuration, &["--dev"])
    }

    /// Starts a server that asks for tokens.
    pub(crate) fn closed(configuration: &str) -> Self {
        Self::start(configuration, &[])
    }

    fn start(configuration: &str, arguments: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("tidings.toml");
        let limits = "[limits]\nrate_per_second = 0\nclosing_window_max_ms = 200\n";
        std::fs::write(&file, format!("{configuration}\n{limits}")).unwrap();
        let mut all = vec!["--config", file.to_str().unwrap()];
        all.extend(arguments);
        let server = ServerProcess::start(TIDINGS, &dir.path().join("data"), &all);
        Self {
            server,
            checker: Checker::new(),
            dir,
            acknowledged: Arc::default(),
        }
    }

    /// A client with connections of its own, straight to the server.
    pub(crate) fn client(&self) -> Client {
        let mark = self.server.mark();
        client_of(&mark.ip().to_string(), mark.port(), None)
    }

    /// The same with a token.
    pub(crate) fn client_with(&self, token: &str) -> Client {
        let mark = self.server.mark();
        client_of(&mark.ip().to_string(), mark.port(), Some(token))
    }

    /// Runs `tidings token …` on the data directory, waits until the server has taken what it did,
    /// and gives what it printed.
    pub(crate) async fn token(&self, arguments: &[&str]) -> String {
        let taken = || self.server.log().matches("took the tokens file").count();
        let before = taken();
        let output = Command::new(TIDINGS)
            .args(["token", "--data"])
            .arg(self.dir.path().join("data"))
            .args(arguments)
            .current_dir(self.dir.path())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        self.server.signal("HUP");
        until("the server to take the tokens", || taken() > before).await;
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// The value of the metric whose line begins with `series`.
    pub(crate) fn metric(&self, series: &str) -> u64 {
        let (_, text) = self.server.admin_get("/metrics").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        let value = line.unwrap_or_else(|| panic!("no {series} in:\n{text}"));
        value.trim().parse().unwrap()
    }

    /// Puts another certificate and its key in the place of the server's own.
    pub(crate) fn replace_certificate(&self) {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let private = self.dir.path().join("data/.tidings");
        std::fs::write(private.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        std::fs::write(private.join("cert.pem"), made.cert.pem()).unwrap();
    }

    /// Writes to one document of its own until it is stopped.
    pub(crate) fn writer(&self, path: &str, client: Client) -> Writer {
        let stop = Arc::new(AtomicBool::new(false));
        let path = DocPath::parse(path).unwrap();
        let checker = self.checker.clone();
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&self.acknowledged));
        let task = tokio::spawn(async move {
            let mut number = 0;
            while !stopped.load(Ordering::Relaxed) {
                number += 1;
                if write(&checker, &client, &path, number).await {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Writer { stop, task }
    }

    /// Waits until `more` writes were acknowledged from here on.
    pub(crate) async fn writes(&self, more: u64) {
        let wanted = self.acknowledged.load(Ordering::Relaxed) + more;
        until("writes to be acknowledged", || {
            self.acknowledged.load(Ordering::Relaxed) >= wanted
        })
        .await;
    }

    /// Watches `scope` and reports everything that it is told.
    pub(crate) async fn follow(&self, label: &str, scope: &str, client: &Client) -> Follower {
        let scope = DocumentScope::from(wire::Target::parse(scope.as_bytes()).unwrap());
        let seen = scope.clone();
        let watcher = self.checker.watcher(label, move |name| {
            seen.contains(&DocPath::parse(name).unwrap())
        });
        let watch = client.watch(&scope, None).await.unwrap();
        watcher.acknowledged(watch.cursor().clone());
        let task = tokio::spawn(report(watcher.clone(), watch));
        Follower { watcher, task }
    }

    /// Writes once more and waits until every follower was told of it, or of a gap behind it.
    pub(crate) async fn settle(&self, followers: &[&Follower], path: &str) {
        self.settle_with(&self.client(), followers, path).await;
    }

    /// The same with a client of the caller's.
    pub(crate) async fn settle_with(&self, client: &Client, followers: &[&Follower], path: &str) {
        let since = self.checker.now();
        let path = DocPath::parse(path).unwrap();
        let begun = self.checker.begin(path.as_str());
        let written = client
            .publish(&path, &draft("the last write"))
            .await
            .unwrap();
        begun.acknowledged(written.version, "publish");
        let fact = Fact::new(path.as_str(), written.version, "publish");
        for follower in followers {
            until("a watcher to be told of the last write", || {
                follower.watcher.has_settled(&fact, since)
            })
            .await;
        }
    }
}

/// A client that believes any certificate.
pub(crate) fn client_of(host: &str, port: u16, token: Option<&str>) -> Client {
    let builder = Client::builder(ServerAddress::new(host, port))
        .trust(Trust::Anyone)
        .pool(&Pool::default());
    match token {
        Some(token) => builder.token(token).build(),
        None => builder.build(),
    }
}

/// A task that writes.
pub(crate) struct Writer {
    stop: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

/// Stops all of `writers`, once each has ended the write under way.
///
/// All are told before one is waited for: one that waits for a dead server would leave the others
/// writing for seconds, past what the ring keeps.
pub(crate) async fn stop(writers: impl IntoIterator<Item = Writer>) {
    let writers: Vec<Writer> = writers.into_iter().collect();
    for writer in &writers {
        writer.stop.store(true, Ordering::Relaxed);
    }
    for writer in writers {
        writer.task.await.unwrap();
    }
}

/// A task that watches.
pub(crate) struct Follower {
    pub(crate) watcher: Watcher,
    task: JoinHandle<client::WatchError>,
}

impl Follower {
    /// Stops watching.
    pub(crate) fn leave(self) {
        self.task.abort();
    }

    /// Waits until the watch is over and gives the reason.
    pub(crate) async fn end(self) -> client::WatchError {
        let error = tokio::time::timeout(PATIENCE, self.task).await;
        error.expect("the watch ends").unwrap()
    }
}

async fn report(watcher: Watcher, mut watch: Watch) -> client::WatchError {
    loop {
        match watch.next().await {
            Ok(Notice::Change(change)) => {
                let op = match change.op {
                    Op::Append => "append",
                    Op::Archive => "archive",
                    Op::Publish => "publish",
                };
                let fact = Fact::new(change.path.as_str(), change.version, op);
                watcher.change(change.cursor, fact);
            }
            Ok(Notice::Gap(gap)) => {
                watcher.gap(gap.cursor, gap.reason.unwrap_or(GapReason::Malformed));
            }
            Ok(Notice::Position(cursor)) => watcher.acknowledged(cursor),
            Err(error) => {
                watcher.ended();
                return error;
            }
        }
    }
}

/// One write and its report; true if it was acknowledged.
async fn write(checker: &Checker, client: &Client, path: &DocPath, number: u64) -> bool {
    let begun = checker.begin(path.as_str());
    match client
        .publish(path, &draft(&format!("{path}, write {number}")))
        .await
    {
        Ok(written) => {
            begun.acknowledged(written.version, "publish");
            true
        }
        Err(_) => {
            begun.unknown();
            false
        }
    }
}

fn draft(body: &str) -> Draft {
    Draft {
        body: body.to_owned().into(),
        expected: None,
        metadata: Metadata::new(),
    }
}

/// Waits for a condition, with a bound that is only there to end a broken test.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let patience = tokio::time::timeout(PATIENCE, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    patience
        .await
        .unwrap_or_else(|_| panic!("waited in vain for {what}"));
}

/// Copies a data directory as a backup would: other files, the same contents.
pub(crate) fn copy_tree(from: &Path, to: &Path) {
    let status = Command::new("cp")
        .arg("-a")
        .arg(from)
        .arg(to)
        .status()
        .unwrap();
    assert!(status.success(), "the copy was made");
}

/// Where a watch stands, for a later one to go on from.
pub(crate) async fn head(client: &Client) -> Cursor {
    let scope = DocumentScope {
        path: DocPath::root(),
        subtree: true,
    };
    client.watch(&scope, None).await.unwrap().cursor().clone()
}
