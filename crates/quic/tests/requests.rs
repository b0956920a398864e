//! Requests that are slow, half, too large or too many, and what becomes of their neighbours.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

mod world;

use std::time::Duration;

use quic::Limits;
use quinn::VarInt;
use wire::{Request, Response, Status, Verb, limits as bounds};
use world::{Client, World, limits, read, within};

/// Answers in time.
fn hasty() -> Limits {
    Limits {
        request_timeout: Duration::from_millis(300),
        ..limits()
    }
}

async fn works(client: &Client) {
    let health = client.get(Verb::Fetch, "/health").await;
    assert_eq!(health.status, Status::Ok);
}

#[tokio::test]
async fn a_request_without_its_end_is_answered_at_its_deadline_and_gives_its_stream_back() {
    let few = Limits {
        streams_initial: 4,
        streams_max: 4,
        ..hasty()
    };
    let world = World::open(few).await;
    let client = world.dial().await;
    // More of them than the connection may have streams: each place must come back.
    for request in [
        "F",
        "FE",
        "FETCH /a.md",
        "FETCH /a.md\n---\nauth: x\n",
        "PUBLISH /a.md\nx",
        "P",
    ] {
        let (mut send, mut recv) = within(client.connection.open_bi()).await.unwrap();
        send.write_all(request.as_bytes()).await.unwrap();
        let answer = Response::decode(&read(&mut recv).await).unwrap();
        assert_eq!(answer.status, Status::ServerError, "{request:?}");
        assert!(
            answer
                .message()
                .unwrap()
                .starts_with("could not read request"),
            "{request:?}"
        );
        assert_eq!(
            within(send.stopped()).await.unwrap(),
            Some(VarInt::from_u32(0))
        );
    }
    works(&client).await;
    assert_eq!(
        world.metric("tidings_mark_refusals_total{limit=\"request_timeout\"}"),
        6
    );
    assert_eq!(
        client.get(Verb::Fetch, "/a.md").await.status,
        Status::NotFound
    );
}

#[tokio::test]
async fn a_request_that_is_reset_half_way_is_answered_and_stores_nothing() {
    let world = World::open(limits()).await;
    let client = world.dial().await;
    let (mut send, mut recv) = client.connection.open_bi().await.unwrap();
    send.write_all(b"PUBLISH /a.md\n---\nexpected-version: 0\n---\n# Half")
        .await
        .unwrap();
    // What arrived must be on the way before the reset overtakes it.
    works(&client).await;
    send.reset(VarInt::from_u32(0)).unwrap();
    let answer = Response::decode(&read(&mut recv).await).unwrap();
    assert_eq!(answer.status, Status::ServerError);
    assert_eq!(
        client.get(Verb::Fetch, "/a.md").await.status,
        Status::NotFound
    );
}

#[tokio::test]
async fn an_empty_request_and_an_unknown_verb_have_their_answers() {
    let world = World::open(limits()).await;
    let client = world.dial().await;
    for (request, status) in [
        (&b""[..], Status::ServerError),
        (b"\n", Status::BadRequest),
        (b"fetch /a.md\n", Status::BadRequest),
        (b"FETCH \n", Status::BadRequest),
        (b"FETCH /\xff\xfe\n", Status::NotFound),
        (b"PUBLISH /\xff.md\nx", Status::BadRequest),
        (b"FETCH /\x7f\n", Status::BadRequest),
        (b"FETCH /a.md\n---\n- x\n---\n", Status::BadRequest),
    ] {
        let answer = Response::decode(&client.exchange(request).await).unwrap();
        assert_eq!(answer.status, status, "{}", request.escape_ascii());
    }
}

// D44
#[tokio::test]
async fn sizes_at_their_limit_pass_and_one_more_is_refused() {
    let world = World::open(limits()).await;
    let client = world.dial().await;
    let body = "x".repeat(bounds::BODY_LEN_MAX);
    let whole = Request::new(Verb::Publish, "/big.md").with_body(body.clone());
    assert_eq!(client.ask(whole).await.status, Status::Created);
    assert_eq!(client.get(Verb::Fetch, "/big.md").await.body, body);

    let over = [b"PUBLISH /big.md\n", body.as_bytes(), b"x"].concat();
    assert_unreadable(&client, &over).await;
    let metadata = |len: usize| {
        [
            b"FETCH /big.md\n---\nk: ",
            "v".repeat(len - 3).as_bytes(),
            b"\n---\n",
        ]
        .concat()
    };
    let fits = Response::decode(&client.exchange(&metadata(bounds::METADATA_LEN_MAX)).await);
    assert_eq!(fits.unwrap().status, Status::Ok);
    assert_unreadable(&client, &metadata(bounds::METADATA_LEN_MAX + 1)).await;
    let line = |len: usize| [b"FETCH ", "x".repeat(len - 6).as_bytes(), b"\n"].concat();
    assert_unreadable(&client, &line(bounds::LINE_LEN_MAX + 1)).await;
    works(&client).await;
}

/// Sends what is too large. The answer comes before the end of it, perhaps before all was sent.
async fn assert_unreadable(client: &Client, request: &[u8]) {
    let (mut send, mut recv) = client.connection.open_bi().await.unwrap();
    let sending = async {
        let _ = send.write_all(request).await;
        let _ = send.finish();
    };
    let (answer, ()) = tokio::join!(read(&mut recv), within(sending));
    let answer = Response::decode(&answer).unwrap();
    assert_eq!(answer.status, Status::ServerError);
}

/// Several times the streams that the connection may have open at once.
const ENDLESS: u64 = 48;

// D44
#[tokio::test]
async fn endless_bodies_are_refused_while_a_neighbour_is_served() {
    let world = World::open(limits()).await;
    let client = world.dial().await;
    let neighbour = world.dial().await;
    let chunk = vec![b'x'; 64 << 10];
    let mut floods = tokio::task::JoinSet::new();
    for number in 0..ENDLESS {
        let (connection, chunk) = (client.connection.clone(), chunk.clone());
        floods.spawn(async move {
            let (mut send, mut recv) = connection.open_bi().await.unwrap();
            let _ = send
                .write_all(format!("PUBLISH /{number}.md\n").as_bytes())
                .await;
            // It goes on until the server has had enough. A blocked write alone may miss that.
            let stopped = send.stopped();
            let sending = async { while send.write_all(&chunk).await.is_ok() {} };
            tokio::select! {
                _ = stopped => {}
                () = sending => {}
            }
            Response::decode(&read(&mut recv).await).unwrap().status
        });
    }
    for _ in 0..20 {
        works(&neighbour).await;
    }
    while let Some(status) = within(floods.join_next()).await {
        assert_eq!(status.unwrap(), Status::ServerError);
    }
    works(&client).await;
    assert_eq!(
        world.metric("tidings_mark_refusals_total{limit=\"request_size\"}"),
        ENDLESS
    );
}

#[tokio::test]
async fn uploads_that_one_address_leaves_half_done_take_no_place_of_another() {
    let patient = Limits {
        uploads: 8,
        // Longer than the test waits: nothing comes free by itself.
        request_timeout: Duration::from_secs(600),
        ..limits()
    };
    let world = World::open(patient).await;
    let client = world.dial().await;
    let part = vec![b'x'; 20 << 10];
    let mut half = Vec::new();
    for number in 0..12 {
        let (mut send, recv) = within(client.connection.open_bi()).await.unwrap();
        let line = format!("PUBLISH /{number}.md\n");
        send.write_all(line.as_bytes()).await.unwrap();
        send.write_all(&part).await.unwrap();
        half.push((send, recv));
    }
    works(&client).await;
    let neighbour = world.dial_from("127.0.0.2:0").await;
    let whole = Request::new(Verb::Publish, "/whole.md").with_body("x".repeat(100 << 10));
    assert_eq!(neighbour.ask(whole).await.status, Status::Created);
}

#[tokio::test]
async fn answers_that_one_address_leaves_unread_take_no_room_of_another() {
    let patient = Limits {
        answer_bytes: 4 << 20,
        requests: 8,
        // Longer than the test waits: nothing comes free by itself.
        request_timeout: Duration::from_secs(600),
        ..limits()
    };
    let world = World::open(patient).await;
    world.publish("/big.md", &"x".repeat(1_000_000)).await;
    let mut narrow = quinn::TransportConfig::default();
    narrow.stream_receive_window(VarInt::from_u32(1 << 10));
    let client = world.dial_with(narrow).await;
    let mut unread = Vec::new();
    for _ in 0..12 {
        let (mut send, recv) = within(client.connection.open_bi()).await.unwrap();
        send.write_all(b"FETCH /big.md\n").await.unwrap();
        send.finish().unwrap();
        unread.push((send, recv));
    }
    // One answer fills the share, and two more wait for it with a slot each.
    let answered = "tidings_mark_requests_total{verb=\"FETCH\",status=\"ok\"}";
    world.metric_reaches(answered, 3).await;
    let neighbour = world.dial_from("127.0.0.2:0").await;
    for _ in 0..10 {
        let big = neighbour.get(Verb::Fetch, "/big.md").await;
        assert_eq!(big.body.len(), 1_000_000);
    }
}

#[tokio::test]
async fn over_the_rate_a_request_is_told_so_without_a_body() {
    let slow = Limits {
        rate_per_second: 1,
        rate_burst: 3,
        ..limits()
    };
    let world = World::open(slow).await;
    let client = world.dial().await;
    let mut refused = 0;
    for _ in 0..6 {
        let answer = client.get(Verb::Fetch, "/health").await;
        if answer.status == Status::RateLimited {
            assert!(answer.body.is_empty());
            refused += 1;
        }
    }
    assert!(refused >= 2, "{refused} of 6 were refused");
    assert_eq!(
        world.metric("tidings_mark_refusals_total{limit=\"rate_per_second\"}"),
        refused
    );
}

#[tokio::test]
async fn a_watch_is_charged_once_and_holds_no_slot() {
    let narrow = Limits {
        rate_per_second: 1,
        rate_burst: 3,
        requests: 1,
        requests_per_connection: 1,
        ..limits()
    };
    let world = World::open(narrow).await;
    let client = world.dial().await;
    let mut first = client.watch("/").await;
    let mut second = client.watch("/").await;
    for number in 0..20 {
        world.publish("/a.md", &format!("{number}")).await;
        first.event().await;
        second.event().await;
    }
    assert_eq!(client.get(Verb::Fetch, "/a.md").await.status, Status::Ok);
}

#[tokio::test]
async fn many_requests_at_once_on_one_connection_are_all_answered() {
    let world = World::open(limits()).await;
    world.publish("/a.md", "x").await;
    let client = world.dial().await;
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..500 {
        let connection = client.connection.clone();
        let endpoint = client.endpoint.clone();
        asking.spawn(async move {
            let client = Client {
                endpoint,
                connection,
            };
            client.get(Verb::Fetch, "/a.md").await.status
        });
    }
    while let Some(status) = within(asking.join_next()).await {
        assert_eq!(status.unwrap(), Status::Ok);
    }
}

// T23, T58
#[tokio::test]
async fn a_client_that_stops_its_answer_costs_nothing() {
    let world = World::open(limits()).await;
    world.publish("/big.md", &"x".repeat(1 << 20)).await;
    let client = world.dial().await;
    for _ in 0..32 {
        let (mut send, mut recv) = within(client.connection.open_bi()).await.unwrap();
        send.write_all(b"FETCH /big.md\n").await.unwrap();
        send.finish().unwrap();
        recv.stop(VarInt::from_u32(0)).unwrap();
    }
    works(&client).await;
}

// D79, P10
#[tokio::test]
async fn a_token_revoked_while_the_body_arrives_stores_nothing() {
    let tokens = include_str!("../testdata/vectors-tokens.toml");
    let world = World::with_tokens(tokens, limits()).await;
    let client = world.dial().await;
    let (mut send, mut recv) = client.connection.open_bi().await.unwrap();
    send.write_all(b"PUBLISH /a.md\n---\nauth: editor-token\n---\n# Half")
        .await
        .unwrap();
    works(&client).await;
    world.set_tokens(&tokens.replace("43dd47", "43dd48"));
    send.write_all(b" and whole").await.unwrap();
    send.finish().unwrap();
    let answer = Response::decode(&read(&mut recv).await).unwrap();
    assert_eq!(answer.status, Status::Unauthorized);
    assert_eq!(
        client.get(Verb::Fetch, "/a.md").await.status,
        Status::NotFound
    );
}

// D80
#[tokio::test]
async fn a_closed_content_is_answered_like_one_that_nobody_has() {
    let tokens = include_str!("../testdata/vectors-tokens.toml");
    let world = World::with_tokens(tokens, limits()).await;
    world.publish("/private/diary.md", "# Diary\n").await;
    let client = world.dial().await;
    let hash = wire::ContentHash::of(b"# Diary\n");
    let closed = client.get(Verb::Fetch, &format!("/{hash}")).await;
    assert_eq!(closed.status, Status::NotFound);
    assert_eq!(
        closed.message(),
        Some(format!("content not found for hash {hash}").as_str())
    );
    let readable = Request::new(Verb::Fetch, format!("/{hash}")).with("auth", "reader-token");
    assert_eq!(client.ask(readable).await.body, "# Diary\n");
}
