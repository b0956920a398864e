//! What a copy costs: the fan-out beside a floor, one thread that writes the same frame to every
//! socket with blocking writes.
//!
//! `cargo run --release -p tidings-web --example fanout -- [sockets] [rate] [seconds]` runs the
//! floor, SSE and WebSocket in turn with the same client, a process of its own, and prints for
//! each the CPU of a copy, the latencies, and the memory of an idle connection. The time of
//! sending is in the frame. Both run on the same machine, so only the ratios mean something.

#![allow(clippy::unwrap_used, reason = "it measures, and a failure ends it")]

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use auth::Authority;
use documents::{Change, FileStore, Op};
use prometheus_client::registry::Registry;
use rustix::time::{ClockId, clock_gettime};
use storage::Disk;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use web::{Config, Limits, Origins, StreamConfig, StreamLimits, WebServer};
use wire::ContentHash;

/// What stands before the time of sending in every frame.
const MARKER: &[u8] = b"\"agent\":\"";

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("load") => load(&args[1..]),
        _ => {
            let number = |place: usize, usual: u64| {
                args.get(place).map_or(usual, |text| text.parse().unwrap())
            };
            let plan = Plan {
                sockets: number(0, 1_000) as usize,
                rate: number(1, 50),
                seconds: number(2, 10),
            };
            plan.floor();
            plan.ours("sse");
            plan.ours("ws");
        }
    }
}

struct Plan {
    sockets: usize,
    rate: u64,
    seconds: u64,
}

impl Plan {
    fn floor(&self) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (mut child, mut out) = self.client(listener.local_addr().unwrap(), "sse");
        let mut sockets = Vec::new();
        for _ in 0..self.sockets {
            let (mut socket, _) = listener.accept().unwrap();
            socket.set_nodelay(true).unwrap();
            let mut request = [0; 1_024];
            assert!(socket.read(&mut request).unwrap() > 0);
            socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            sockets.push(socket);
        }
        line(&mut out);
        let cpu = cpu_time();
        let mut copies = 0;
        self.pace(|| {
            let frame = format!(
                "event: publish\nid: 7f3a9c21d0be-{copies}\ndata: {{\
                 \"cursor\":\"7f3a9c21d0be:1\",\"op\":\"publish\",\
                 \"name\":\"/notes/tea.md\",\"version\":1,\"hash\":\"{}\",\"agent\":\"{}\",\
                 \"scope\":\"doc:/notes/\"}}\n\n",
                ContentHash::of(b"x"),
                now_nanos()
            );
            for socket in &mut sockets {
                socket.write_all(frame.as_bytes()).unwrap();
                copies += 1;
            }
        });
        let cpu = cpu_time() - cpu;
        self.tell("floor", cpu, 0.0, &mut child, &mut out);
    }

    fn ours(&self, kind: &str) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path(), documents::Config::default(), &mut |_| {}).unwrap();
        let limits = Limits {
            rate_per_second: 0,
            streams: StreamLimits {
                accepts_per_second: 0,
                ..StreamLimits::default()
            },
            ..Limits::default()
        };
        let config = Config {
            addr: (Ipv4Addr::LOCALHOST, 0).into(),
            certificate: None,
            limits,
            memory: gate::Memory::default(),
            origins: Origins::default(),
            storage: Arc::new(Disk::open(dir.path()).unwrap()),
            web_tokens: None,
            streams: StreamConfig::default(),
        };
        let _inside = runtime.enter();
        let mut registry = Registry::default();
        let server =
            WebServer::bind(config, store.clone(), Authority::dev(), &mut registry).unwrap();
        let addr = server.local_addr();
        runtime.spawn(async move { server.run(CancellationToken::new()).await });
        let resident = resident_kib();
        let (mut child, mut out) = self.client(addr, kind);
        line(&mut out);
        let idle = (resident_kib() - resident) / self.sockets as f64;
        let cpu = cpu_time();
        let mut version = 0;
        self.pace(|| {
            version += 1;
            store.feed().publish(Change {
                op: Op::Publish,
                path: wire::Target::parse(b"/notes/tea.md").unwrap().path,
                version,
                hash: ContentHash::of(b"x"),
                agent: Some(now_nanos().to_string().into()),
            });
        });
        let cpu = cpu_time() - cpu;
        self.tell(kind, cpu, idle, &mut child, &mut out);
        runtime.shutdown_background();
    }

    /// Does `act` at the rate, on time whatever the one before took.
    fn pace(&self, mut act: impl FnMut()) {
        let began = Instant::now();
        for number in 0..self.rate * self.seconds {
            let at = began
                + Duration::from_secs(1) * u32::try_from(number).unwrap()
                    / u32::try_from(self.rate).unwrap();
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            act();
        }
        std::thread::sleep(Duration::from_millis(500));
    }

    fn client(&self, addr: SocketAddr, kind: &str) -> (Child, BufReader<ChildStdout>) {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["load", &addr.to_string(), &self.sockets.to_string(), kind])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        (child, out)
    }

    fn tell(
        &self,
        name: &str,
        cpu: Duration,
        idle: f64,
        child: &mut Child,
        out: &mut BufReader<ChildStdout>,
    ) {
        drop(child.stdin.take());
        let told = line(out);
        child.wait().unwrap();
        let copies = self.rate * self.seconds * self.sockets as u64;
        let each = cpu.as_secs_f64() * 1e6 / copies as f64;
        println!("{name:5} {each:6.2} us/copy  {idle:6.2} KiB/idle  {told}");
    }
}

fn line(out: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    line.trim().to_owned()
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn now_nanos() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos()
}

fn resident_kib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The client: reads every socket and notes how old each frame is.
fn load(args: &[String]) {
    let addr: SocketAddr = args[0].parse().unwrap();
    let count: usize = args[1].parse().unwrap();
    let is_socket = args[2] == "ws";
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let ages: Arc<Mutex<Vec<u64>>> = Arc::default();
    runtime.block_on(async {
        for _ in 0..count {
            let socket = begin(addr, is_socket).await;
            tokio::spawn(follow(socket, ages.clone()));
        }
        println!("ready");
        tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0]).unwrap())
            .await
            .unwrap();
    });
    let mut ages = std::mem::take(&mut *ages.lock().unwrap());
    ages.sort_unstable();
    let at = |part: f64| ages[((ages.len() - 1) as f64 * part) as usize] as f64 / 1e6;
    println!(
        "{} frames  p50 {:.1} ms  p99 {:.1} ms",
        ages.len(),
        at(0.5),
        at(0.99)
    );
}

async fn begin(addr: SocketAddr, is_socket: bool) -> TcpStream {
    let mut socket = TcpStream::connect(addr).await.unwrap();
    let head = if is_socket {
        "GET /v1/socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    } else {
        "GET /v1/watch?scope=/notes/ HTTP/1.1\r\nHost: localhost\r\n\r\n"
    };
    socket.write_all(head.as_bytes()).await.unwrap();
    if is_socket {
        for text in [
            r#"{"t":"hello","v":1}"#,
            r#"{"t":"subscribe","id":"1","scope":"/notes/"}"#,
        ] {
            let mut frame = vec![0x81, 0x80 | text.len() as u8, 0, 0, 0, 0];
            frame.extend_from_slice(text.as_bytes());
            socket.write_all(&frame).await.unwrap();
        }
    }
    let mut first = [0; 2_048];
    assert!(socket.read(&mut first).await.unwrap() > 0);
    socket
}

async fn follow(mut socket: TcpStream, ages: Arc<Mutex<Vec<u64>>>) {
    let mut bytes = vec![0; 2_048];
    while let Ok(len @ 1..) = socket.read(&mut bytes).await {
        let now = now_nanos();
        let mut rest = &bytes[..len];
        while let Some(at) = rest
            .windows(MARKER.len())
            .position(|window| window == MARKER)
        {
            rest = &rest[at + MARKER.len()..];
            let digits: Vec<u8> = rest
                .iter()
                .copied()
                .take_while(u8::is_ascii_digit)
                .collect();
            let sent: u128 = String::from_utf8(digits).unwrap().parse().unwrap_or(now);
            ages.lock().unwrap().push((now.saturating_sub(sent)) as u64);
        }
    }
}
