//! Requests that are no HTTP, too much of it, or of the wrong kind.

mod world;

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use web::{Limits, Origins};
use world::{Answer, World, limits, read_all, token, within};

const TEA: &str = "/v1/documents/tea.md";

fn head(fields: &str) -> Vec<u8> {
    format!("GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n").into_bytes()
}

// T50, T67
#[tokio::test]
async fn a_head_over_its_bounds_is_431_with_the_reason() {
    let world = World::open().await;
    let many = "x: y\r\n".repeat(101);
    let long = format!("x: {}\r\n", "y".repeat(80 << 10));
    for fields in [many, long] {
        let answer = Answer::parse(world.raw(&head(&fields)).await.as_bytes());
        assert_eq!(
            (answer.status, answer.code()),
            (431, "head-too-large".into())
        );
        assert!(answer.json()["error"]["fix"].is_string());
    }
    let fits = format!("x: {}\r\nConnection: close\r\n", "y".repeat(60 << 10));
    let answer = Answer::parse(world.raw(&head(&fits)).await.as_bytes());
    assert_eq!(answer.status, 200);
    world.stop().await;
}

// T67
#[tokio::test]
async fn what_is_no_request_is_400_and_ends_the_connection() {
    let world = World::open().await;
    for bytes in [
        "GET /\0 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: localhost\r\n\r\n",
        "nonsense\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        "GET /\r\n\r\n",
    ] {
        let said = world.raw(bytes.as_bytes()).await;
        let answer = Answer::parse(said.as_bytes());
        assert_eq!(
            (answer.status, answer.code()),
            (400, "bad-request".into()),
            "{bytes:?}"
        );
    }
    assert!(world.metrics().contains("tidings_web_malformed_total"));
    world.stop().await;
}

#[tokio::test]
async fn two_requests_are_never_read_out_of_one() {
    let world = World::open().await;
    let put = |fields: &str, body: &str| {
        format!("PUT {TEA} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n{body}").into_bytes()
    };
    let smuggled = "GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for fields in [
        "Content-Length: 1\r\nContent-Length: 2\r\n",
        "Content-Length: +1\r\n",
        "Content-Length: 1, 2\r\n",
        "Content-Length: -1\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
    ] {
        let said = world.raw(&put(fields, &format!("x{smuggled}"))).await;
        assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{fields}: {said}");
        assert!(said.starts_with("HTTP/1.1 400 "), "{fields}: {said}");
    }
    // Of both, the length is void: the message is what the chunks say, and the connection ends
    // before anything behind it is read.
    let both = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n";
    let said = world
        .raw(&put(both, &format!("1\r\nx\r\n0\r\n\r\n{smuggled}")))
        .await;
    assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{said}");
    world.stop().await;
}

#[tokio::test]
async fn a_request_names_one_host() {
    let world = World::open().await;
    for hosts in [
        "",
        "Host: a\r\nHost: b\r\n",
        "Host: a b\r\n",
        "Host: a/b\r\n",
    ] {
        let bytes = format!("GET /v1/whoami HTTP/1.1\r\nConnection: close\r\n{hosts}\r\n");
        let answer = Answer::parse(world.raw(bytes.as_bytes()).await.as_bytes());
        assert_eq!(
            (answer.status, answer.code()),
            (400, "bad-host".into()),
            "{hosts:?}"
        );
    }
    world.stop().await;
}

// T50
#[tokio::test]
async fn an_unknown_path_is_404_and_a_wrong_method_405_with_those_that_go() {
    let world = World::open().await;
    for target in ["/v1", "/v1/nothing", "/v2/whoami", "/v1/whoami/x"] {
        let answer = world.get(target).await;
        assert_eq!(
            (answer.status, answer.code()),
            (404, "not-found".into()),
            "{target}"
        );
    }
    let answer = world.ask("PATCH", TEA, &[], b"").await;
    assert_eq!(
        (answer.status, answer.code()),
        (405, "method-not-allowed".into())
    );
    assert_eq!(
        answer.field("allow"),
        Some("DELETE, GET, HEAD, OPTIONS, POST, PUT")
    );
    let answer = world.ask("DELETE", "/v1/whoami", &[], b"").await;
    assert_eq!(answer.field("allow"), Some("GET, HEAD, OPTIONS"));
    let answer = world.ask("OPTIONS", TEA, &[], b"").await;
    assert_eq!(answer.status, 204);
    world.stop().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_without_reading_on() {
    let world = World::open().await;
    let announced = format!(
        "PUT {TEA} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048577\r\n\
         Expect: 100-continue\r\n\r\n"
    );
    let answer = Answer::parse(world.raw(announced.as_bytes()).await.as_bytes());
    assert_eq!((answer.status, answer.code()), (413, "too-large".into()));
    let detail = answer.json()["error"]["detail"].to_string();
    assert!(detail.contains("1048576"), "{detail}");

    // The client sends on without looking, and still gets the answer.
    let body = vec![b'x'; 3 << 20];
    let answer = world.ask("PUT", TEA, &[], &body).await;
    assert_eq!((answer.status, answer.code()), (413, "too-large".into()));

    let chunk = "10000\r\n".to_owned() + &"x".repeat(0x10000) + "\r\n";
    let chunked = format!(
        "PUT {TEA} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        chunk.repeat(20)
    );
    let answer = Answer::parse(world.raw(chunked.as_bytes()).await.as_bytes());
    assert_eq!((answer.status, answer.code()), (413, "too-large".into()));
    assert!(world.metrics().contains("limit=\"body_bytes\"} 3"));

    let fits = vec![b'x'; 1 << 20];
    assert_eq!(world.ask("PUT", TEA, &[], &fits).await.status, 201);
    world.stop().await;
}

// T27
#[tokio::test]
async fn a_slow_head_and_a_slow_body_end_at_their_deadlines() {
    let short = Limits {
        head_timeout: Duration::from_millis(100),
        request_timeout: Duration::from_millis(100),
        ..limits()
    };
    let world = World::with(short, Origins::default()).await;
    for begun in [
        "",
        "P",
        "GET /v1/whoami HT",
        "GET /v1/whoami HTTP/1.1\r\nHost: a\r\n",
    ] {
        assert_eq!(world.raw(begun.as_bytes()).await, "", "{begun:?}");
    }
    let slow = format!("PUT {TEA} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nx");
    let answer = Answer::parse(world.raw(slow.as_bytes()).await.as_bytes());
    assert_eq!((answer.status, answer.code()), (408, "slow-body".into()));
    world.stop().await;
}

#[tokio::test]
async fn requests_on_one_connection_are_answered_in_their_order() {
    let world = World::open().await;
    let put = format!("PUT {TEA} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx");
    let get = format!("GET {TEA} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let last = format!("GET {TEA} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let said = world.raw((put + &get + &last).as_bytes()).await;
    let statuses: Vec<_> = said.split("HTTP/1.1 ").skip(1).map(|it| &it[..3]).collect();
    assert_eq!(statuses, ["201", "200", "200"]);
    world.stop().await;
}

// T27
#[tokio::test]
async fn connections_over_the_bound_wait_until_one_ends() {
    let few = Limits {
        connections: 2,
        ..limits()
    };
    let world = World::with(few, Origins::default()).await;
    let one = within(TcpStream::connect(world.addr)).await.unwrap();
    let two = within(TcpStream::connect(world.addr)).await.unwrap();
    let mut third = within(TcpStream::connect(world.addr)).await.unwrap();
    third
        .write_all(&head("Connection: close\r\n"))
        .await
        .unwrap();
    drop(one);
    assert!(read_all(&mut third).await.starts_with(b"HTTP/1.1 200"));
    drop(two);
    world.stop().await;
}

#[tokio::test]
async fn an_address_over_its_rate_is_told_when_to_come_back() {
    let rated = Limits {
        rate_per_second: 1,
        rate_burst: 2,
        ..limits()
    };
    let world = World::with(rated, Origins::default()).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        let answer = world.get("/v1/whoami").await;
        if answer.status == 429 {
            assert_eq!(answer.code(), "rate-limited");
            assert_eq!(answer.field("retry-after"), Some("1"));
        }
        statuses.push(answer.status);
    }
    assert_eq!(statuses[..2], [200, 200]);
    assert!(statuses.contains(&429), "{statuses:?}");
    assert!(world.metrics().contains("limit=\"rate_per_second\""));
    world.stop().await;
}

// T13, T14
#[tokio::test]
async fn a_listed_origin_is_echoed_and_its_preflight_needs_no_token() {
    let world = World::with_tokens(&token("t", "/**", &["read", "publish"])).await;
    let own = [("Origin", "https://app.example")];
    let read = world.ask("GET", "/v1/whoami", &own, b"").await;
    assert_eq!(
        read.field("access-control-allow-origin"),
        Some("https://app.example")
    );
    assert_eq!(read.field("access-control-allow-credentials"), Some("true"));
    assert_eq!(read.field("vary"), Some("Origin"));
    let refused = world.ask("PUT", TEA, &own, b"x").await;
    assert_eq!(refused.status, 401);
    assert_eq!(
        refused.field("access-control-allow-origin"),
        Some("https://app.example")
    );

    let asking = [
        own[0],
        ("Access-Control-Request-Method", "PUT"),
        (
            "Access-Control-Request-Headers",
            "authorization, tidings-meta-x",
        ),
    ];
    let preflight = world.ask("OPTIONS", TEA, &asking, b"").await;
    assert_eq!(preflight.status, 204);
    let allowed = preflight.field("access-control-allow-headers").unwrap();
    for name in ["Last-Event-ID", "Cache-Control", "tidings-meta-x"] {
        assert!(allowed.contains(name), "{allowed}");
    }
    let methods = preflight.field("access-control-allow-methods").unwrap();
    assert!(methods.contains("PUT"), "{methods}");
    assert!(preflight.field("access-control-max-age").is_some());

    for origin in ["https://other.example", "null", "https://app.example.evil"] {
        let other = world
            .ask("GET", "/v1/whoami", &[("Origin", origin)], b"")
            .await;
        assert_eq!(other.status, 200);
        let cors = other
            .fields
            .iter()
            .filter(|(name, _)| name.starts_with("access-control"));
        assert_eq!(cors.count(), 0, "{origin}");
        assert_eq!(other.field("vary"), Some("Origin"));
    }
    world.stop().await;
}

#[tokio::test]
async fn a_dev_server_refuses_foreign_hosts_and_pages() {
    let world = World::open().await;
    for host in ["evil.example", "evil.example:8080", "192.0.2.1"] {
        let answer = world.ask("GET", TEA, &[("Host", host)], b"").await;
        assert_eq!(
            (answer.status, answer.code()),
            (421, "foreign-host".into()),
            "{host}"
        );
    }
    for method in ["GET", "PUT", "DELETE", "OPTIONS"] {
        for origin in ["http://evil.example", "null", "http://localhost:1"] {
            let answer = world.ask(method, TEA, &[("Origin", origin)], b"").await;
            assert_eq!(answer.status, 403, "{method} {origin}");
            assert_eq!(answer.code(), "foreign-origin");
        }
    }
    assert_eq!(world.get(TEA).await.status, 404);
    let own = format!("http://{}", world.addr);
    let answer = world.ask("PUT", TEA, &[("Origin", &own)], b"x").await;
    assert_eq!(answer.status, 201);
    assert!(world.metrics().contains("tidings_web_foreign_total 15"));
    world.stop().await;
}

// T52
#[tokio::test]
async fn http2_by_prior_knowledge_serves_and_is_told_to_go_away() {
    use http_body_util::{BodyExt, Full};
    use hyper_util::rt::{TokioExecutor, TokioIo};

    let world = World::open().await;
    let stream = within(TcpStream::connect(world.addr)).await.unwrap();
    let shaken = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = within(shaken).await.unwrap();
    let driving = tokio::spawn(connection);
    let uri = format!("http://{}{TEA}", world.addr);
    let put = hyper::Request::put(&uri)
        .body(Full::new(bytes::Bytes::from("tea")))
        .unwrap();
    assert_eq!(
        within(sender.send_request(put)).await.unwrap().status(),
        201
    );
    let get = hyper::Request::get(&uri).body(Full::default()).unwrap();
    let read = within(sender.send_request(get)).await.unwrap();
    let body = within(read.into_body().collect()).await.unwrap().to_bytes();
    assert_eq!(&body[..], b"tea");
    let mut many = hyper::Request::get(&uri);
    for number in 0..101 {
        many = many.header(format!("x-{number}"), "y");
    }
    let many = many.body(Full::default()).unwrap();
    assert_eq!(
        within(sender.send_request(many)).await.unwrap().status(),
        431
    );
    world.stop().await;
    within(driving).await.unwrap().unwrap();
}

// T19
#[tokio::test]
async fn a_drain_ends_idle_connections_and_finishes_what_is_under_way() {
    let world = World::open().await;
    let mut idle = within(TcpStream::connect(world.addr)).await.unwrap();
    let mut busy = within(TcpStream::connect(world.addr)).await.unwrap();
    let begun = format!("PUT {TEA} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n");
    let go_on = "Expect: 100-continue\r\n\r\n";
    busy.write_all((begun + go_on).as_bytes()).await.unwrap();
    let mut said = [0; 25];
    within(busy.read_exact(&mut said)).await.unwrap();
    assert_eq!(&said, b"HTTP/1.1 100 Continue\r\n\r\n");
    world.leave();
    assert_eq!(read_all(&mut idle).await, b"");
    busy.write_all(b"tea\n").await.unwrap();
    assert!(read_all(&mut busy).await.starts_with(b"HTTP/1.1 201"));
    world.stop().await;
}

// T22
#[tokio::test]
async fn a_reader_that_takes_nothing_loses_its_connection() {
    let short = Limits {
        write_stall: Duration::from_millis(100),
        ..limits()
    };
    let world = World::with(short, Origins::default()).await;
    let body = vec![b'x'; 1 << 20];
    assert_eq!(world.ask("PUT", TEA, &[], &body).await.status, 201);
    let mut stalled = within(TcpStream::connect(world.addr)).await.unwrap();
    let get = format!("GET {TEA} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // More than the kernel's buffers hold on both sides.
    stalled.write_all(get.repeat(64).as_bytes()).await.unwrap();
    let gone = async {
        while !world.metrics().contains("tidings_web_connections 0") {
            tokio::task::yield_now().await;
        }
    };
    within(gone).await;
    world.stop().await;
}
