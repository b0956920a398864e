//! A `tidings serve` process that a test starts, kills, restarts and listens to.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::usage::Usage;

/// How long a server may take to become ready, or to leave, before the test fails.
///
/// Generous, since other tests share the machine; nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause between two looks at a condition of another process.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A server process. Killed when dropped.
#[derive(Debug)]
pub struct ServerProcess {
    binary: PathBuf,
    data: PathBuf,
    arguments: Vec<String>,
    mark: SocketAddr,
    http: SocketAddr,
    admin: SocketAddr,
    log: PathBuf,
    child: Option<Child>,
    /// A process that another takes over from.
    leaving: Option<Child>,
}

impl ServerProcess {
    /// Starts `binary serve --data DATA` with `arguments` on free loopback ports and waits until
    /// it is ready. Its log goes to `DATA.log`, over all restarts.
    pub fn start(binary: &str, data: &Path, arguments: &[&str]) -> Self {
        let mut server = Self {
            binary: binary.into(),
            data: data.into(),
            arguments: arguments
                .iter()
                .map(|&argument| argument.to_owned())
                .collect(),
            mark: free_udp_port(),
            http: free_tcp_port(),
            admin: free_tcp_port(),
            log: data.with_extension("log"),
            child: None,
            leaving: None,
        };
        server.restart();
        server
    }

    /// Starts the process again, on the same ports, and waits until it is ready.
    pub fn restart(&mut self) {
        self.spawn();
        self.wait_until_ready();
    }

    /// Starts the process again without waiting.
    pub fn spawn(&mut self) {
        assert!(self.child.is_none(), "the process runs already");
        self.child = Some(self.launch(&[]));
    }

    /// Starts a second process that takes over from the first (`--take-over`) and waits until it
    /// is ready; gives how the first ended.
    pub fn take_over(&mut self) -> ExitStatus {
        self.leaving = self.child.take();
        self.child = Some(self.launch(&["--take-over"]));
        let mut ended = None;
        wait_for("the first process to leave", || {
            let first = self.leaving.as_mut().expect("the first process ran");
            ended = first.try_wait().expect("the process can be waited for");
            ended.is_some()
        });
        self.leaving = None;
        self.wait_until_ready();
        ended.expect("the wait ended with a status")
    }

    fn launch(&self, more: &[&str]) -> Child {
        let log = File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .expect("log opens");
        Command::new(&self.binary)
            .arg("serve")
            .arg("--data")
            .arg(&self.data)
            .args([
                "--mark",
                &self.mark.to_string(),
                "--http",
                &self.http.to_string(),
                "--admin",
                &self.admin.to_string(),
            ])
            .args(&self.arguments)
            .args(more)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("log is shared"))
            .stderr(log)
            .spawn()
            .expect("the server starts")
    }

    /// The URL of its Mark face.
    pub fn url(&self) -> String {
        format!("mark://{}", self.mark)
    }

    /// The address of its Mark face.
    pub fn mark(&self) -> SocketAddr {
        self.mark
    }

    /// The URL of its web faces.
    pub fn http_url(&self) -> String {
        format!("http://{}", self.http)
    }

    /// The address of its web faces.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// The address of its admin listener.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// The process number, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// What the process uses.
    pub fn usage(&self) -> Usage {
        let pid = self.pid().expect("the process runs");
        Usage::of(pid).expect("a running process is described")
    }

    /// Ends the process at once, as a power switch would end it (SIGKILL), and waits for it.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _gone_already = child.kill();
            child.wait().expect("the process can be waited for");
        }
    }

    /// Sends `signal`, such as `TERM` or `HUP`.
    pub fn signal(&self, signal: &str) {
        let pid = self.pid().expect("the process runs").to_string();
        let status = Command::new("kill")
            .args(["-s", signal, &pid])
            .status()
            .expect("kill runs");
        assert!(status.success(), "signal {signal} was not delivered");
    }

    /// Asks the process to leave (SIGTERM) and waits until it has drained.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Waits until the process ends by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("the process runs");
        let mut ended = None;
        wait_for("the process to end", || {
            ended = child.try_wait().expect("the process can be waited for");
            ended.is_some()
        });
        ended.expect("the wait ended with a status")
    }

    /// Waits until `/readyz` answers 200. Panics with the log if the process ends before.
    pub fn wait_until_ready(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while !matches!(self.admin_get("/readyz"), Ok((200, _))) {
            let child = self.child.as_mut().expect("the process runs");
            if let Some(status) = child.try_wait().expect("the process can be waited for") {
                panic!("the server ended with {status}:\n{}", self.log());
            }
            assert!(
                Instant::now() < deadline,
                "the server is not ready:\n{}",
                self.log()
            );
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Asks the admin listener for `path`: the status and the body.
    pub fn admin_get(&self, path: &str) -> io::Result<(u16, String)> {
        ask(self.admin, "GET", path, "", "")
    }

    /// Asks the admin listener to do something at `path`.
    pub fn admin_put(&self, path: &str) -> io::Result<(u16, String)> {
        ask(self.admin, "PUT", path, "", "")
    }

    /// Asks the web listener: the status and the body. `token` is shown unless it is empty.
    pub fn web(
        &self,
        method: &str,
        path: &str,
        token: &str,
        body: &str,
    ) -> io::Result<(u16, String)> {
        let fields = match token {
            "" => String::new(),
            token => format!("authorization: Bearer {token}\r\n"),
        };
        ask(self.http, method, path, &fields, body)
    }

    /// Everything the process has printed, over all restarts.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Fails if the log has a WARN or ERROR line in which none of `expected` stands.
    pub fn assert_quiet(&self, expected: &[&str]) {
        let log = self.log();
        let loud: Vec<&str> = log
            .lines()
            .filter(|line| line.contains(" WARN ") || line.contains(" ERROR "))
            .filter(|line| !expected.iter().any(|text| line.contains(text)))
            .collect();
        assert!(
            loud.is_empty(),
            "unexpected in the log:\n{}",
            loud.join("\n")
        );
        assert!(!log.contains("panicked at"), "a panic in the log:\n{log}");
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
        self.child = self.leaving.take();
        self.kill();
    }
}

/// One request of HTTP/1 and its answer, on a connection of its own.
fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    fields: &str,
    body: &str,
) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let len = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-length: {len}\r\n{fields}\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok());
    let body = answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned());
    status
        .zip(body)
        .ok_or_else(|| io::Error::other(format!("no HTTP answer: {answer:?}")))
}

/// Looks at `condition` until it holds. Panics after a generous time, naming `what` it waited for.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// A loopback UDP port that was free a moment ago.
pub fn free_udp_port() -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    socket.local_addr().expect("the socket is bound")
}

/// A loopback TCP port that was free a moment ago.
pub fn free_tcp_port() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    listener.local_addr().expect("the listener is bound")
}
