//! Publishing, appending and archiving on a real disk.

mod support;

use std::cell::Cell;
use std::fs;

use documents::{
    Draft, DraftError, MetadataError, Op, Outcome, ReadError, Resolved, VersionsRequest, Which,
    WriteError,
};
use support::*;

#[test]
fn a_published_document_is_read_listed_and_told() {
    // D9
    let world = World::new();
    let start = head(&world.store);
    let written = publish(&world.store, "/notes/tea.md", "# Tea\n").expect("publishes");
    assert_eq!((written.outcome, written.version), (Outcome::Created, 1));
    assert_eq!(body(&world.store, "/notes/tea.md"), "# Tea\n");
    let changes = told(&world.store, &start).expect("resumes");
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].1.op, Op::Publish);
    assert_eq!(changes[0].1.hash, written.hash);
    let by_hash = world
        .store
        .fetch_by_hash(&written.hash, &|_| true)
        .expect("found");
    assert_eq!(by_hash.path.as_str(), "/notes/tea.md");
    let link = fs::read_link(world.at("notes/tea.md")).expect("a link");
    assert_eq!(link.to_str(), Some("versions/tea.md/v1"));
}

#[test]
fn a_document_survives_a_restart_under_the_same_epoch() {
    // D60
    let mut world = World::new();
    let start = head(&world.store);
    publish(&world.store, "/notes/tea.md", "one").expect("publishes");
    append(&world.store, "/notes/tea.md", "two", 1).expect("appends");
    archive(&world.store, "/notes/tea.md").expect("archives");
    world.restart(|_| {});
    assert_eq!(world.store.report().new_epoch, None);
    let changes = told(&world.store, &start).expect("resumes");
    let ops: Vec<Op> = changes.iter().map(|(_, change)| change.op).collect();
    assert_eq!(ops, [Op::Publish, Op::Append, Op::Archive]);
    let refused = fetch(&world.store, "/notes/tea.md");
    assert!(matches!(refused, Err(ReadError::Archived(_))));
    let second = world
        .store
        .fetch(&path("/notes/tea.md"), Which::Version(2))
        .expect("kept");
    assert_eq!(&second.body[..], b"one\ntwo");
    let conflict = append(&world.store, "/notes/tea.md", "x", 1);
    assert!(matches!(
        conflict,
        Err(WriteError::Conflict {
            server: 2,
            yours: 1
        })
    ));
}

#[test]
fn the_same_again_is_unchanged_and_the_same_words_with_other_metadata_are_not() {
    // D5
    let world = World::new();
    let allowed = &|| true;
    let publish = |body, metadata: &[(&str, &str)]| {
        let draft = draft("/tea.md", body, metadata);
        world
            .store
            .publish(draft, None, allowed)
            .expect("publishes")
    };
    let first = publish("A", &[("tags", "a, b"), ("title", "T")]);
    let before = head(&world.store);
    for _ in 0..100 {
        let again = publish("A", &[("title", "T"), ("tags", "a,b")]);
        assert_eq!((again.outcome, again.version), (Outcome::Unchanged, 1));
        assert_eq!(again.modified, first.modified);
    }
    assert_eq!(told(&world.store, &before).expect("goes on"), []);
    let retitled = publish("A", &[("title", "U"), ("tags", "a,b")]);
    assert_eq!((retitled.version, retitled.hash), (2, first.hash));
    assert_eq!(publish("B", &[]).version, 3);
    assert_eq!(publish("A", &[]).version, 4);
    let by_hash = world
        .store
        .fetch_by_hash(&first.hash, &|_| true)
        .expect("found");
    assert_eq!(by_hash.info.version, 4);
}

#[test]
fn an_expected_version_decides_and_refusals_come_in_the_order_of_the_wire() {
    let world = World::new();
    let publish = |body: &str, expected| {
        let draft = draft("/tea.md", body, &[]);
        world.store.publish(draft, Some(expected), &|| true)
    };
    let conflict = |result, server, yours| {
        let expected = (server, yours);
        match result {
            Err(WriteError::Conflict { server, yours }) => assert_eq!((server, yours), expected),
            other => panic!("{other:?}"),
        }
    };
    conflict(publish("one", 3), 0, 3);
    assert_eq!(publish("one", 0).expect("creates").version, 1);
    conflict(publish("two", 0), 1, 0);
    assert_eq!(publish("two", 1).expect("goes on").version, 2);
    conflict(publish("two", 1), 2, 1);
    archive(&world.store, "/tea.md").expect("archives");
    conflict(publish("three", 1), 2, 1);
    assert!(matches!(publish("two", 2), Err(WriteError::Archived)));
    conflict(append(&world.store, "/tea.md", "x", 1), 2, 1);
    assert!(matches!(
        append(&world.store, "/tea.md", "x", 2),
        Err(WriteError::Archived)
    ));
    assert!(matches!(
        append(&world.store, "/none.md", "x", 1),
        Err(WriteError::NotFound)
    ));
    assert!(matches!(
        archive(&world.store, "/none.md"),
        Err(WriteError::NotFound)
    ));
}

#[test]
fn an_append_joins_with_one_line_feed_and_keeps_every_byte_of_its_base() {
    // D15
    let world = World::new();
    let bases = [
        ("one", "one\ntwo"),
        ("one\n", "one\ntwo"),
        ("one\r\n", "one\r\ntwo"),
        ("one\r", "one\r\ntwo"),
        ("one\n\n", "one\n\ntwo"),
        ("\u{FEFF}one", "\u{FEFF}one\ntwo"),
        ("one\0", "one\0\ntwo"),
        (" one ", " one \ntwo"),
        ("---\na: b\n---\n", "---\na: b\n---\ntwo"),
        ("\n", "\ntwo"),
        ("o\u{2028}", "o\u{2028}\ntwo"),
        ("o\r\nn\re", "o\r\nn\re\ntwo"),
    ];
    for (place, (base, joined)) in bases.into_iter().enumerate() {
        let at = format!("/{place}.md");
        publish(&world.store, &at, base).expect("publishes");
        append(&world.store, &at, "two", 1).expect("appends");
        assert_eq!(body(&world.store, &at), joined);
    }
}

#[test]
fn an_append_keeps_metadata_under_its_own_and_leaves_retention_behind() {
    // D16, D11
    let world = World::new();
    let pairs = [("tags", "hot"), ("title", "Tea"), ("retention", "2")];
    world
        .store
        .publish(draft("/tea.md", "one", &pairs), None, &|| true)
        .expect("publishes");
    let more = [("title", "Green tea"), ("agent", "tea-bot")];
    let draft = Draft::append(path("/tea.md"), "two".into(), more).expect("a draft");
    let before = head(&world.store);
    world.store.append(draft, 1, &|| true).expect("appends");
    append(&world.store, "/tea.md", "three", 2).expect("appends");
    let fetched = fetch(&world.store, "/tea.md").expect("a document");
    let metadata: Vec<(&str, &str)> = fetched
        .info
        .metadata
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let expected = [
        ("agent", "tea-bot"),
        ("tags", "hot"),
        ("title", "Green tea"),
        ("type", "Document"),
    ];
    assert_eq!(metadata, expected);
    let changes = told(&world.store, &before).expect("goes on");
    assert_eq!(changes[0].1.agent.as_deref(), Some("tea-bot"));
    assert!(
        world
            .store
            .fetch(&path("/tea.md"), Which::Version(1))
            .is_ok()
    );
}

#[test]
fn a_body_may_be_exactly_as_long_as_the_limit_and_an_append_may_not_pass_it() {
    // D18, D44
    let world = World::new();
    let limit = "a".repeat(1_048_576);
    publish(&world.store, "/full.md", &limit).expect("exactly at the limit");
    let more = append(&world.store, "/full.md", "b", 1);
    assert!(matches!(
        more,
        Err(WriteError::TooLarge { limit: 1_048_576 })
    ));
    publish(&world.store, "/near.md", &limit[2..]).expect("publishes");
    append(&world.store, "/near.md", "b", 1).expect("with the line feed exactly at the limit");
    let over = Draft::publish(path("/x.md"), format!("{limit}a").into(), []);
    assert_eq!(over.expect_err("refused"), DraftError::TooLarge);
}

#[test]
fn archiving_and_unarchiving_tell_what_happened_once() {
    // D20
    let world = World::new();
    let before = head(&world.store);
    let first = publish(&world.store, "/tea.md", "tea").expect("publishes");
    let stored = fs::read(world.at("versions/tea.md/v1")).expect("a file");
    let outcomes = [(); 3].map(|()| archive(&world.store, "/tea.md").expect("archives").outcome);
    assert_eq!(
        outcomes,
        [Outcome::Archived, Outcome::Unchanged, Outcome::Unchanged]
    );
    assert!(
        world
            .store
            .fetch(&path("/tea.md"), Which::Version(1))
            .is_ok()
    );
    let outcomes = [(); 3].map(|()| publish(&world.store, "/tea.md", "").expect("ok").outcome);
    assert_eq!(
        outcomes,
        [Outcome::Unarchived, Outcome::Unchanged, Outcome::Unchanged]
    );
    let changes = told(&world.store, &before).expect("goes on");
    let seen: Vec<_> = changes
        .iter()
        .map(|(_, it)| (it.op, it.version, it.hash))
        .collect();
    let hash = first.hash;
    assert_eq!(
        seen,
        [
            (Op::Publish, 1, hash),
            (Op::Archive, 1, hash),
            (Op::Publish, 1, hash)
        ]
    );
    assert_eq!(
        fs::read(world.at("versions/tea.md/v1")).expect("a file"),
        stored
    );
    let fetched = fetch(&world.store, "/tea.md").expect("live");
    assert_eq!(fetched.info.modified, first.modified);
    assert!(matches!(
        publish(&world.store, "/none.md", ""),
        Err(WriteError::NotFound)
    ));
}

#[test]
fn retention_removes_the_oldest_and_is_not_inherited() {
    // D11
    let mut world = World::new();
    let hashes: Vec<_> = (1..=4)
        .map(|n| {
            publish(&world.store, "/tea.md", &format!("tea {n}"))
                .expect("ok")
                .hash
        })
        .collect();
    let keep = draft("/tea.md", "tea 5", &[("retention", "3")]);
    let before = head(&world.store);
    assert_eq!(
        world
            .store
            .publish(keep, None, &|| true)
            .expect("publishes")
            .version,
        5
    );
    assert_eq!(told(&world.store, &before).expect("goes on").len(), 1);
    publish(&world.store, "/tea.md", "tea 6").expect("publishes");
    let check = |world: &World| {
        let request = VersionsRequest {
            page_size: 2,
            before: Some(6),
        };
        let page = world
            .store
            .versions(&path("/tea.md"), &request)
            .expect("a document");
        assert_eq!((page.total, page.current, page.chain_valid), (4, 6, true));
        let numbers: Vec<u64> = page.versions.iter().map(|(number, ..)| *number).collect();
        assert_eq!((numbers, page.complete), (vec![5, 4], false));
        let first = world.store.fetch(&path("/tea.md"), Which::Version(1));
        assert!(matches!(first, Err(ReadError::NotFound)));
        let by_hash = world.store.fetch_by_hash(&hashes[0], &|_| true);
        assert!(matches!(by_hash, Err(ReadError::NotFound)));
    };
    check(&world);
    world.restart(|_| {});
    assert_eq!(world.store.report().new_epoch, None);
    check(&world);
    for wrong in ["0", "-1", "x", "", "1.5"] {
        let wrong = Draft::publish(path("/tea.md"), "x".into(), [("retention", wrong)]);
        assert_eq!(wrong.expect_err("refused"), DraftError::Retention);
    }
}

#[test]
fn a_document_and_a_directory_never_share_a_name() {
    // D33, D35, D7
    let world = World::new();
    publish(&world.store, "/a.md", "a").expect("publishes");
    publish(&world.store, "/d.md/x.md", "x").expect("publishes");
    let before = tree(world.root());
    let collides = |at: &str, with: &str| match publish(&world.store, at, "no") {
        Err(WriteError::Collision { path }) => assert_eq!(path.as_str(), with),
        other => panic!("{at}: {other:?}"),
    };
    collides("/a.md/b.md", "/a.md");
    collides("/d.md", "/d.md");
    for reserved in [
        "/versions/a.md",
        "/n/versions/tea.md",
        "/.tidings/x.md",
        "/versions.md/v",
    ] {
        Draft::publish(path(reserved), "x".into(), []).expect_err(reserved);
    }
    assert_eq!(tree(world.root()), before);
    publish(&world.store, "/a.md", "a 2").expect("still writable");
    publish(&world.store, "/d.md/x.md", "x 2").expect("still writable");
}

#[test]
fn a_path_means_what_lies_there() {
    // D34
    let world = World::new();
    publish(&world.store, "/doc.md", "one").expect("publishes");
    publish(&world.store, "/api/v2/guide.md", "guide").expect("publishes");
    let resolve = |at: &str| world.store.resolve(&path(at));
    assert_eq!(resolve("/doc.md"), Resolved::Document(path("/doc.md")));
    assert_eq!(resolve("/api/v2"), Resolved::Directory(path("/api/v2")));
    assert_eq!(resolve("/"), Resolved::Directory(path("/")));
    for one in ["/doc.md/v1", "/doc.md/v01"] {
        assert_eq!(resolve(one), Resolved::Version(path("/doc.md"), Some(1)));
    }
    for none in ["/doc.md/v0", "/doc.md/v99999999999999999999"] {
        assert_eq!(resolve(none), Resolved::Version(path("/doc.md"), None));
    }
    assert_eq!(resolve("/api/v3"), Resolved::Nothing(path("/api/v3")));
    assert_eq!(resolve("/none"), Resolved::Nothing(path("/none")));
    let absent = world.store.fetch(&path("/doc.md"), Which::Version(9));
    assert!(matches!(absent, Err(ReadError::NotFound)));
    for own in [
        "/.tidings/lock",
        "/.tidings/index",
        "/.tidings/journal",
        "/versions/doc.md/v1",
    ] {
        assert!(fetch(&world.store, own).is_err(), "{own}");
        assert!(
            !matches!(resolve(own), Resolved::Document(_) | Resolved::Directory(_)),
            "{own}"
        );
    }
}

#[test]
fn a_right_that_goes_away_before_the_commit_refuses_the_write() {
    // D79, D7
    let world = World::new();
    publish(&world.store, "/tea.md", "tea").expect("publishes");
    let (before, since) = (tree(world.root()), head(&world.store));
    let asked = Cell::new(0);
    let revoked = &|| {
        asked.set(asked.get() + 1);
        false
    };
    let results = [
        world
            .store
            .publish(draft("/new/dir/x.md", "x", &[]), None, revoked),
        world
            .store
            .publish(draft("/tea.md", "x", &[]), None, revoked),
        world.store.archive(&path("/tea.md"), revoked),
    ];
    assert!(
        results
            .iter()
            .all(|result| matches!(result, Err(WriteError::NotPermitted)))
    );
    assert_eq!(asked.get(), 3);
    assert_eq!(tree(world.root()), before);
    assert_eq!(told(&world.store, &since).expect("goes on"), []);
    let next = publish(&world.store, "/tea.md", "tea 2").expect("publishes");
    assert_eq!(next.cursor.seq.get(), since.seq.get() + 1);
}

#[test]
fn faults_of_a_draft_are_named_in_one_order() {
    // D43, D44, D7
    let fault = |at: &str, body: &'static [u8], pairs: &[(&str, &str)]| {
        let draft = Draft::publish(
            path(at),
            bytes::Bytes::from_static(body),
            pairs.iter().copied(),
        );
        draft.expect_err("refused")
    };
    assert_eq!(
        fault("/a.txt", b"\xFF", &[("A", "")]),
        DraftError::NotMarkdown
    );
    assert_eq!(fault("/a.md", b"\xFF", &[("A", "")]), DraftError::NotUtf8);
    let metadata = |pairs: &[(&str, &str)]| match fault("/a.md", b"x", pairs) {
        DraftError::Metadata(fault) => fault,
        other => panic!("{other:?}"),
    };
    let several = [("z", "a\nb"), ("Note", "x"), ("version", "1")];
    assert_eq!(metadata(&several), MetadataError::Key("Note".into()));
    assert_eq!(metadata(&several[..1]), MetadataError::Newline("z".into()));
    assert_eq!(
        metadata(&several[2..]),
        MetadataError::Reserved("version".into())
    );
    let long = "v".repeat(1023);
    assert!(Draft::publish(path("/a.md"), "x".into(), [("k", long.as_str())]).is_ok());
    assert_eq!(metadata(&[("kk", &long)]), MetadataError::TooLarge);
    let keys: Vec<String> = (0..51).map(|number| format!("k{number}")).collect();
    let pairs: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "")).collect();
    assert_eq!(metadata(&pairs), MetadataError::TooMany);
    let world = World::new();
    let full = draft("/a.md", "x", &pairs[..50]);
    world
        .store
        .publish(full, None, &|| true)
        .expect("fifty pass");
}

#[test]
fn bodies_come_back_byte_for_byte() {
    // D41, D40
    let mut world = World::new();
    let bodies = [
        "\r\n\r",
        "\u{FEFF}# x",
        "\0",
        " ",
        "---\n",
        "---\na: b\n---\nx",
        "x  \n\n",
    ];
    let values = [
        "no",
        "1.0",
        "012",
        "a: b",
        " lead",
        "it's",
        "\u{1F600}",
        "null",
        "[x, y]",
        "",
    ];
    let pairs: Vec<(String, &str)> = values
        .iter()
        .enumerate()
        .map(|(place, value)| (format!("k{place}"), *value))
        .collect();
    let pairs: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(key, value)| (key.as_str(), *value))
        .collect();
    for (place, text) in bodies.iter().enumerate() {
        let draft = draft(&format!("/{place}.md"), text, &pairs);
        world
            .store
            .publish(draft, None, &|| true)
            .expect("publishes");
    }
    for _ in 0..2 {
        for (place, text) in bodies.iter().enumerate() {
            let fetched = fetch(&world.store, &format!("/{place}.md")).expect("a document");
            assert_eq!(&fetched.body[..], text.as_bytes());
            for (key, value) in &pairs {
                assert_eq!(fetched.info.metadata[*key], *value);
            }
        }
        world.restart(|root| fs::remove_file(root.join(".tidings/index")).expect("removes"));
    }
}

#[test]
fn names_that_differ_only_in_their_bytes_are_different_documents() {
    // D37, D38: on a file system that keeps them apart.
    let world = World::new();
    let names = [
        "/README.md",
        "/readme.md",
        "/caf\u{E9}.md",
        "/cafe\u{301}.md",
        "/CON.md",
        "/a:b.md",
    ];
    for name in names {
        publish(&world.store, name, name).expect("publishes");
    }
    for name in names {
        assert_eq!(body(&world.store, name), name);
    }
}
