//! More dials, handshakes and connections than are wanted (T27, T47).

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

mod world;

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use quic::Limits;
use quinn::ConnectionError;
use wire::{Status, Verb};
use world::{World, limits, within};

#[tokio::test]
async fn connections_over_the_limit_are_refused_and_their_places_come_back() {
    let few = Limits {
        connections: 4,
        ..limits()
    };
    let world = World::open(few).await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(world.dial().await);
    }
    let refused = world.try_dial().await.err().unwrap();
    assert!(
        matches!(refused, ConnectionError::ConnectionClosed(_)),
        "{refused}"
    );
    assert_eq!(
        world.metric("tidings_mark_refusals_total{limit=\"connections\"}"),
        1
    );
    clients.pop().unwrap().connection.close(0u32.into(), b"");
    world.metric_reaches("tidings_mark_connections ", 3).await;
    let client = world.dial().await;
    assert_eq!(client.get(Verb::Fetch, "/health").await.status, Status::Ok);
}

#[tokio::test]
async fn one_address_has_its_own_limit() {
    let few = Limits {
        connections_per_address: 2,
        ..limits()
    };
    let world = World::open(few).await;
    let _first = world.dial().await;
    let _second = world.dial().await;
    assert!(world.try_dial().await.is_err());
    let counted = "tidings_mark_refusals_total{limit=\"connections_per_address\"}";
    assert_eq!(world.metric(counted), 1);
}

#[tokio::test]
async fn dials_over_the_rate_are_refused() {
    let slow = Limits {
        accepts_per_second: 2,
        ..limits()
    };
    let world = World::open(slow).await;
    let mut refused = 0;
    let mut clients = Vec::new();
    for _ in 0..8 {
        match world.try_dial().await {
            Ok(client) => clients.push(client),
            Err(_) => refused += 1,
        }
    }
    assert!(refused >= 4, "{refused} of 8 were refused");
}

// T47
#[tokio::test]
async fn under_pressure_a_client_proves_its_address_and_gets_in() {
    let careful = Limits {
        handshakes_unproved: 0,
        ..limits()
    };
    let world = World::open(careful).await;
    let client = world.dial().await;
    let health = client.get(Verb::Fetch, "/health").await;
    assert_eq!(health.status, Status::Ok);
    assert_eq!(world.metric("tidings_mark_address_proofs_total"), 1);
}

// T47
#[tokio::test]
async fn under_a_flood_of_half_handshakes_a_watch_goes_on_and_a_real_client_gets_in() {
    let small = Limits {
        handshakes: 64,
        handshakes_unproved: 16,
        handshake_timeout: Duration::from_secs(2),
        accepts_per_second: 0,
        ..limits()
    };
    let world = World::open(small).await;
    let client = world.dial().await;
    let mut watch = client.watch("/").await;
    let initial = capture_initial(&world).await;
    for round in 0..200 {
        // Each from a port of its own, and never answered.
        for _ in 0..100 {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let mut datagram = initial.clone();
            // Another connection id is another dial.
            datagram[6..14].copy_from_slice(&rand_bytes());
            socket.send_to(&datagram, world.addr).unwrap();
        }
        world.publish("/a.md", &format!("{round}")).await;
        watch.event().await;
    }
    let late = world.dial().await;
    assert_eq!(late.get(Verb::Fetch, "/health").await.status, Status::Ok);
}

/// The first datagram that a client sends.
async fn capture_initial(world: &World) -> Vec<u8> {
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let endpoint = world::endpoint(&world.certificate, b"mark");
    let connecting = endpoint
        .connect(socket.local_addr().unwrap(), "localhost")
        .unwrap();
    let mut datagram = vec![0; 2048];
    let (len, _) = within(socket.recv_from(&mut datagram)).await.unwrap();
    drop(connecting);
    datagram.truncate(len);
    datagram
}

fn rand_bytes() -> [u8; 8] {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0u8).to_ne_bytes()
}

// T27
#[tokio::test]
async fn streams_that_are_opened_and_left_are_closed_at_their_deadline() {
    let hasty = Limits {
        request_timeout: Duration::from_millis(300),
        ..limits()
    };
    let world = World::open(hasty).await;
    let client = world.dial().await;
    let mut streams = Vec::new();
    for _ in 0..16 {
        let (mut send, recv) = within(client.connection.open_bi()).await.unwrap();
        send.write_all(b"F").await.unwrap();
        streams.push((send, recv));
    }
    let giving_up = async {
        for (mut send, mut recv) in streams {
            world::read(&mut recv).await;
            // A client answers STOP_SENDING with a reset, which gives the place back.
            let code = within(send.stopped()).await.unwrap().unwrap();
            send.reset(code).unwrap();
        }
    };
    // The connection has no stream left until the first is given up.
    let (health, ()) = tokio::join!(client.get(Verb::Fetch, "/health"), giving_up);
    assert_eq!(health.status, Status::Ok);
}

// T44: whoever may do nothing here stays a beginner.
#[tokio::test]
async fn a_client_that_is_only_refused_gets_no_more_streams() {
    let world = World::open(limits()).await;
    let client = world.dial().await;
    for _ in 0..40 {
        assert_eq!(
            client.get(Verb::Fetch, "/..").await.status,
            Status::NotFound
        );
    }
    let mut open = Vec::new();
    loop {
        let mut next = std::pin::pin!(client.connection.open_bi());
        let polled = poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await;
        match polled {
            Poll::Ready(stream) => open.push(stream.unwrap()),
            Poll::Pending => break,
        }
    }
    assert!(open.len() <= 16, "{} streams", open.len());
}
