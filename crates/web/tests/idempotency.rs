//! Idempotency keys over HTTP: repeats, other inputs, restarts, other callers.

mod world;

use world::{World, ask, token, within};

const TEA: &str = "/v1/documents/tea.md";

#[tokio::test]
async fn a_repeated_write_is_done_once_and_answered_alike_over_a_restart() {
    let world = World::open().await;
    let append = format!("{TEA}?append");
    world.put(TEA, &[], "one").await;
    let key = [("Idempotency-Key", "k-1")];
    let first = world.ask("POST", &append, &key, b"two").await;
    assert_eq!(first.status, 201);
    assert_eq!(first.field("idempotency-replayed"), None);
    let again = world.ask("POST", &append, &key, b"two").await;
    assert_eq!((again.status, &again.body), (201, &first.body));
    assert_eq!(again.field("idempotency-replayed"), Some("true"));
    assert_eq!(again.field("etag"), first.field("etag"));
    let other = world.ask("POST", &append, &key, b"three").await;
    assert_eq!(
        (other.status, other.code()),
        (409, "idempotency-key-reused".into())
    );

    let world = world.restart().await;
    let again = world.ask("POST", &append, &key, b"two").await;
    assert_eq!((again.status, &again.body), (201, &first.body));
    assert_eq!(world.get(TEA).await.text(), "one\ntwo");
    let other = world.put(TEA, &key, "two").await;
    assert_eq!(other.code(), "idempotency-key-reused");
    assert!(world.metrics().contains("tidings_web_replayed_total 1"));
    world.stop().await;
}

#[tokio::test]
async fn a_refusal_is_repeated_too() {
    let world = World::open().await;
    let key = [("Idempotency-Key", "k-2")];
    let target = format!("{TEA}?expect=1");
    assert_eq!(world.put(&target, &key, "x").await.status, 412);
    world.put(TEA, &[], "first").await;
    let again = world.put(&target, &key, "x").await;
    assert_eq!(
        (again.status, again.code()),
        (412, "condition-failed".into())
    );
    assert_eq!(again.field("idempotency-replayed"), Some("true"));
    world.stop().await;
}

#[tokio::test]
async fn a_key_says_nothing_to_another_caller() {
    let tokens = token("one", "/**", &["publish"]) + &token("two", "/**", &["publish"]);
    let world = World::with_tokens(&tokens).await;
    let put = |token: &'static str, body: &'static str| {
        let world = &world;
        async move {
            let fields = [("Authorization", token), ("Idempotency-Key", "same")];
            world.put(TEA, &fields, body).await.status
        }
    };
    assert_eq!(put("Bearer one", "a").await, 201);
    assert_eq!(put("Bearer two", "b").await, 201);
    assert_eq!(put("Bearer two", "a").await, 409);
    world.stop().await;
}

#[tokio::test]
async fn a_key_that_is_none_is_refused() {
    let world = World::open().await;
    let long = "k".repeat(256);
    for key in ["", "a b", "caf\u{e9}", &long] {
        let refused = world.put(TEA, &[("Idempotency-Key", key)], "x").await;
        assert_eq!(
            (refused.status, refused.code()),
            (400, "bad-idempotency-key".into()),
            "{key}"
        );
    }
    let twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")];
    assert_eq!(
        world.put(TEA, &twice, "x").await.code(),
        "bad-idempotency-key"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_with_one_key_one_writes_and_the_rest_repeat_or_wait() {
    let world = World::open().await;
    let asking: Vec<_> = (0..64)
        .map(|_| {
            let addr = world.addr;
            tokio::spawn(async move {
                let key = [("Idempotency-Key", "herd")];
                ask(addr, "PUT", TEA, &key, b"body").await
            })
        })
        .collect();
    let mut written = 0;
    for answer in asking {
        let answer = within(answer).await.unwrap();
        match (answer.status, answer.field("idempotency-replayed")) {
            (201, None) => written += 1,
            (201, Some("true")) => {}
            (409, _) => assert_eq!(answer.code(), "idempotency-key-in-progress"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(written, 1);
    assert_eq!(world.get(TEA).await.field("tidings-version"), Some("1"));
    world.stop().await;
}
