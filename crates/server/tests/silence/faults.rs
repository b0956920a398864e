//! One test a fault.

use client::{Notice, WatchError, Which};
use testkit::link::Link;
use wire::{DocPath, DocumentScope, GapReason};

use crate::world::{World, client_of, copy_tree, head, stop, until};

// D48, D60, D61, P5: the ring covers what was missed, so nobody may be told a gap.
#[tokio::test(flavor = "multi_thread")]
async fn kills_under_load_lose_nothing_untold() {
    let mut world = World::open_to_all("");
    let mut followers = Vec::new();
    for (label, scope) in [
        ("all", "/"),
        ("one place", "/a/"),
        ("one document", "/a/0.md"),
        ("all again", "/"),
    ] {
        followers.push(world.follow(label, scope, &world.client()).await);
    }
    let writers: Vec<_> = (0..4)
        .map(|n| world.writer(&format!("/{}/{n}.md", ["a", "b"][n % 2]), world.client()))
        .collect();
    for round in 0..8 {
        // Another moment of the writers' work in each round.
        world.writes(3 + round * 2).await;
        world.server.kill();
        world.server.restart();
    }
    world.writes(10).await;
    stop(writers).await;
    world
        .settle(&followers.iter().collect::<Vec<_>>(), "/a/0.md")
        .await;
    let report = world.checker.verify().unwrap();
    assert!(report.owed > 200, "{report:?}");
    assert_eq!(report.gaps.values().sum::<usize>(), 0, "{report:?}");
    // An opening after a kill says what it found and mended.
    world.server.assert_quiet(&["mending", "set aside"]);
}

// T19, P13: a drain says goodbye, and a watcher comes back to exactly where it was.
#[tokio::test(flavor = "multi_thread")]
async fn drains_under_load_lose_nothing_untold() {
    let mut world = World::open_to_all("");
    let follower = world.follow("all", "/", &world.client()).await;
    let writer = world.writer("/a.md", world.client());
    for _ in 0..3 {
        world.writes(10).await;
        assert!(world.server.stop().success());
        world.server.restart();
    }
    world.writes(10).await;
    stop([writer]).await;
    world.settle(&[&follower], "/a.md").await;
    let report = world.checker.verify().unwrap();
    assert!(report.owed > 30 && report.gaps.is_empty(), "{report:?}");
    world.server.assert_quiet(&[]);
}

// T19, P13: a second process takes the directory over, and a watcher goes on where it was.
#[tokio::test(flavor = "multi_thread")]
async fn take_overs_under_load_lose_nothing_untold() {
    let mut world = World::open_to_all("");
    let follower = world.follow("all", "/", &world.client()).await;
    let writer = world.writer("/a.md", world.client());
    for _ in 0..3 {
        world.writes(10).await;
        let first = world.server.take_over();
        assert_eq!(first.code(), Some(0), "{}", world.server.log());
    }
    world.writes(10).await;
    stop([writer]).await;
    world.settle(&[&follower], "/a.md").await;
    let report = world.checker.verify().unwrap();
    assert!(report.owed > 30 && report.gaps.is_empty(), "{report:?}");
    world.server.assert_quiet(&[]);
}

// T18, D75: new tokens and new certificates are taken beside the work; nobody has to come back.
#[tokio::test(flavor = "multi_thread")]
async fn reloads_under_load_drop_no_watch() {
    const WATCHES: usize = 50;
    const RELOADS: usize = 20;

    let world = World::closed("");
    let token = world.token(&["add", "--publish", "/**"]).await;
    let readers = [world.client(), world.client()];
    let mut followers = Vec::new();
    for number in 0..WATCHES {
        let reader = &readers[number % readers.len()];
        followers.push(world.follow(&format!("watch {number}"), "/", reader).await);
    }
    let author = world.client_with(&token);
    let writer = world.writer("/a.md", author.clone());
    world.writes(5).await;
    let handshakes = world.metric("tidings_mark_handshakes_total");
    for number in 0..RELOADS {
        world.replace_certificate();
        let label = format!("reader-{number}");
        world
            .token(&["add", "--publish", "/elsewhere/**", "--label", &label])
            .await;
        let taken = "tidings_certificate_reloads_total{outcome=\"taken\"}";
        until("the certificate to be taken", || {
            world.metric(taken) > number as u64
        })
        .await;
        world.writes(3).await;
    }
    stop([writer]).await;
    let followers: Vec<_> = followers.iter().collect();
    world.settle_with(&author, &followers, "/a.md").await;
    let report = world.checker.verify().unwrap();
    assert!(report.owed > WATCHES * RELOADS * 3, "{report:?}");
    assert!(report.gaps.is_empty(), "{report:?}");
    assert_eq!(world.metric("tidings_mark_handshakes_total"), handshakes);
    assert_eq!(world.metric("tidings_mark_watches "), WATCHES as u64);
    // Whoever comes next is shown the last certificate.
    let path = DocPath::parse("/a.md").unwrap();
    world.client().fetch(&path, Which::Current).await.unwrap();
    world.server.assert_quiet(&[]);
}

// T7, P12: a watcher that doesn't read is lapped and told; the others never notice.
#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_does_not_read_is_told_and_no_neighbour_is() {
    let world = World::open_to_all("[documents]\nring_len = 16");
    let follower = world.follow("reads", "/", &world.client()).await;
    let mut sleeper = world.client().watch(&all(), None).await.unwrap();
    let writers: Vec<_> = (0..4)
        .map(|n| world.writer(&format!("/{n}.md"), world.client()))
        .collect();
    // More than the sleeper's queue and the ring together hold.
    world.writes(client::QUEUE_LEN as u64 + 512).await;
    stop(writers).await;
    world.settle(&[&follower], "/0.md").await;
    let report = world.checker.verify().unwrap();
    assert!(report.gaps.is_empty(), "{report:?}");
    let mut read = 0;
    let reason = loop {
        match sleeper.next().await.unwrap() {
            Notice::Gap(gap) => break gap.reason,
            Notice::Change(_) | Notice::Position(_) => read += 1,
        }
    };
    assert!(
        read >= client::QUEUE_LEN,
        "what was queued comes first, {read} came"
    );
    assert!(
        matches!(reason, Some(GapReason::Lapped | GapReason::TooOld)),
        "{reason:?}"
    );
}

// T20, T49, P6: packets lost and doubled, and a network that is away for a while.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_network_loses_nothing_untold() {
    let world = World::open_to_all("");
    let link = Link::to(world.server.mark(), 4711).await.unwrap();
    let behind = client_of("127.0.0.1", link.address().port(), None);
    let follower = world.follow("behind a bad network", "/", &behind).await;
    let writer = world.writer("/a.md", world.client());
    link.set_lost_percent(10);
    link.set_doubled_percent(10);
    world.writes(100).await;
    link.set_cut(true);
    world.writes(100).await;
    link.set_cut(false);
    world.writes(100).await;
    stop([writer]).await;
    world.settle(&[&follower], "/a.md").await;
    let report = world.checker.verify().unwrap();
    assert!(report.owed > 300 && report.gaps.is_empty(), "{report:?}");
}

// T18, T37, D74, P10: what a token may not read is not told, and a revoked one ends its watch.
#[tokio::test(flavor = "multi_thread")]
async fn rights_are_kept_while_tokens_come_and_go() {
    let world = World::closed("");
    let editor = [
        "add",
        "--publish",
        "/**",
        "--read",
        "/**",
        "--label",
        "editor",
    ];
    let editor = world.token(&editor).await;
    let reader = world
        .token(&["add", "--read", "/a/**", "--label", "reader"])
        .await;
    let client = world.client_with(&editor);
    let editor_follower = world.follow("editor", "/", &client).await;
    let reader_client = world.client_with(&reader);
    // The reader asks for everything and may see one place: its scope in the checker is that place.
    let reader_follower = world.follow("reader", "/a/", &reader_client).await;
    let mut wide = reader_client.watch(&all(), None).await.unwrap();
    let writers = [
        world.writer("/a/1.md", client.clone()),
        world.writer("/b/1.md", client.clone()),
    ];
    world.writes(40).await;
    reader_follower.watcher.excuse();
    world.token(&["revoke", "reader"]).await;
    let error = reader_follower.end().await;
    assert!(matches!(error, WatchError::Refused(_)), "{error}");
    world.writes(40).await;
    stop(writers).await;
    loop {
        match wide.next().await {
            Ok(Notice::Change(change)) => {
                assert!(change.path.as_str().starts_with("/a/"), "{change:?}");
            }
            Ok(_) => {}
            Err(error) => {
                assert!(matches!(error, WatchError::Refused(_)), "{error}");
                break;
            }
        }
    }
    let anonymous = world.client().watch(&all(), None).await;
    assert!(
        anonymous.is_err(),
        "the place stays closed after its reader is gone"
    );
    let last = world.checker.verify().unwrap();
    assert!(last.owed > 40, "{last:?}");
    drop(editor_follower);
}

// D62: an older copy put back is another epoch, however far it gets.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_copy_put_back_is_told_as_another_epoch() {
    let mut world = World::open_to_all("");
    let (data, backup) = (
        world.dir.path().join("data"),
        world.dir.path().join("backup"),
    );
    let client = world.client();
    publish_times(&client, 5).await;
    assert!(world.server.stop().success());
    copy_tree(&data, &backup);
    world.server.restart();
    publish_times(&client, 5).await;
    let known = head(&client).await;
    assert!(world.server.stop().success());
    std::fs::remove_dir_all(&data).unwrap();
    copy_tree(&backup, &data);
    world.server.restart();
    publish_times(&client, 12).await;
    let mut watch = client.watch(&all(), Some(&known)).await.unwrap();
    match watch.next().await.unwrap() {
        Notice::Gap(gap) => assert_eq!(gap.reason, Some(GapReason::Epoch)),
        notice => panic!("{notice:?} was told instead of a gap"),
    }
}

async fn publish_times(client: &client::Client, times: usize) {
    let path = DocPath::parse("/a.md").unwrap();
    for number in 0..times {
        let draft = client::Draft {
            body: format!("{number} at {:?}", std::time::Instant::now()).into(),
            expected: None,
            metadata: wire::Metadata::new(),
        };
        client.publish(&path, &draft).await.unwrap();
    }
}

fn all() -> DocumentScope {
    DocumentScope {
        path: DocPath::root(),
        subtree: true,
    }
}
