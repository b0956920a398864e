//! How the grants in force follow the files, and what keeps them.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use auth::{Authority, Caller, Denied, Files, Keyring, NewToken, Operation, Pattern, Reload};
use jiff::Timestamp;
use wire::{DocPath, DocumentScope, Target};

/// A directory with the two files, and an authority over them.
struct Desk {
    dir: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn keyring(&self) -> Keyring {
        Keyring {
            tokens: self.tokens(),
            closed: self.closed(),
        }
    }

    fn tokens(&self) -> PathBuf {
        self.dir.path().join("tokens.toml")
    }

    fn closed(&self) -> PathBuf {
        self.dir.path().join("closed.toml")
    }

    fn files(&self) -> Files {
        Files {
            tokens: self.tokens(),
            tokens_required: false,
            closed: self.closed(),
        }
    }

    fn open(&self) -> Authority {
        Authority::open(self.files()).unwrap()
    }

    /// Makes a token and returns its owner.
    fn add(&self, label: &str, read: &[&str], publish: &[&str]) -> Caller {
        self.add_until(label, read, publish, None)
    }

    fn add_until(
        &self,
        label: &str,
        read: &[&str],
        publish: &[&str],
        expires: Option<Timestamp>,
    ) -> Caller {
        let added = self.keyring().add(&NewToken {
            label: Some(label.to_owned()),
            read: patterns(read),
            publish: patterns(publish),
            expires,
        });
        Caller::with_token(added.unwrap().token.expose())
    }
}

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn path(text: &str) -> DocPath {
    DocPath::parse(text).unwrap()
}

fn scope(text: &str) -> DocumentScope {
    Target::parse(text.as_bytes()).unwrap().into()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now() -> Timestamp {
    at("2026-06-01T12:00:00Z")
}

fn read(authority: &Authority, caller: &Caller, at_path: &str) -> Result<(), Denied> {
    authority
        .current()
        .check(caller, Operation::Read, &path(at_path), now())
}

fn publish(authority: &Authority, caller: &Caller, at_path: &str) -> Result<(), Denied> {
    authority
        .current()
        .check(caller, Operation::Publish, &path(at_path), now())
}

fn watch(authority: &Authority, caller: &Caller, at_scope: &str) -> Result<(), Denied> {
    authority
        .current()
        .check_scope(caller, &scope(at_scope), now())
}

const ANYONE: Caller = Caller::anonymous();

// D77
#[test]
fn without_a_tokens_file_public_places_are_readable_and_nothing_is_writable() {
    let authority = Desk::new().open();
    assert_eq!(read(&authority, &ANYONE, "/notes/tea.md"), Ok(()));
    assert_eq!(
        publish(&authority, &ANYONE, "/notes/tea.md"),
        Err(Denied::NoTokens)
    );
    assert!(!authority.current().is_dev());
}

// D77
#[test]
fn a_named_file_that_is_missing_and_an_empty_one_refuse_the_start() {
    let desk = Desk::new();
    let required = Files {
        tokens_required: true,
        ..desk.files()
    };
    assert!(Authority::open(required.clone()).is_err());
    fs::write(desk.tokens(), "").unwrap();
    let refused = Authority::open(required).unwrap_err().to_string();
    assert!(
        refused.contains("tokens.toml: line 1: there is no [tokens] table"),
        "{refused}"
    );
    assert!(Authority::open(desk.files()).is_err());
}

#[test]
fn dev_lets_everyone_do_everything() {
    let authority = Authority::dev();
    assert_eq!(publish(&authority, &ANYONE, "/notes/tea.md"), Ok(()));
    assert_eq!(watch(&authority, &ANYONE, "/"), Ok(()));
    assert_eq!(authority.reload(), Reload::Unchanged);
}

#[test]
fn rights_are_per_operation_and_per_place() {
    let desk = Desk::new();
    let editor = desk.add("editor", &[], &["/notes/**"]);
    let reader = desk.add("reader", &["/private/**"], &[]);
    let both = desk.add("both", &["/private/**"], &["/notes/**"]);
    let authority = desk.open();
    assert_eq!(publish(&authority, &editor, "/notes/tea.md"), Ok(()));
    assert_eq!(
        publish(&authority, &editor, "/other.md"),
        Err(Denied::NotPermitted)
    );
    assert_eq!(
        publish(&authority, &editor, "/notes"),
        Err(Denied::NotPermitted)
    );
    assert_eq!(
        publish(&authority, &reader, "/private/a.md"),
        Err(Denied::NotPermitted)
    );
    assert_eq!(
        publish(&authority, &both, "/private/a.md"),
        Err(Denied::NotPermitted)
    );
    assert_eq!(publish(&authority, &both, "/notes/a.md"), Ok(()));
    assert_eq!(
        publish(&authority, &ANYONE, "/notes/a.md"),
        Err(Denied::Unauthorized)
    );
    let stranger = Caller::with_token("nobody knows this");
    assert_eq!(
        publish(&authority, &stranger, "/notes/a.md"),
        Err(Denied::Unauthorized)
    );
    assert_eq!(
        read(&authority, &editor, "/private/a.md"),
        Err(Denied::NotPermitted)
    );
    assert_eq!(
        read(&authority, &stranger, "/private/a.md"),
        Err(Denied::Unauthorized)
    );
    assert_eq!(read(&authority, &both, "/private/a.md"), Ok(()));
    assert_eq!(read(&authority, &stranger, "/notes/a.md"), Ok(()));
}

// D76: a closed directory is closed in both its spellings.
#[test]
fn closing_below_a_directory_closes_its_own_listing() {
    let desk = Desk::new();
    let reader = desk.add("reader", &["/private/**"], &[]);
    let authority = desk.open();
    for spelling in ["/private", "/private/", "//private/./"] {
        assert_eq!(
            read(&authority, &ANYONE, spelling),
            Err(Denied::Unauthorized)
        );
        assert_eq!(read(&authority, &reader, spelling), Ok(()));
    }
    assert_eq!(read(&authority, &ANYONE, "/privately.md"), Ok(()));
    assert_eq!(read(&authority, &ANYONE, "/"), Ok(()));
}

#[test]
fn the_manifest_and_health_are_readable_whatever_is_closed() {
    let desk = Desk::new();
    desk.add("all", &["/**"], &[]);
    let authority = desk.open();
    assert_eq!(read(&authority, &ANYONE, "/"), Err(Denied::Unauthorized));
    for open in ["/health", "/.well-known/agent-manifest.md"] {
        assert_eq!(read(&authority, &ANYONE, open), Ok(()));
    }
    assert_eq!(
        read(&authority, &ANYONE, "/.well-known/other.md"),
        Err(Denied::Unauthorized)
    );
}

// D74
#[test]
fn a_place_stays_closed_when_its_last_token_is_revoked_or_its_file_is_lost() {
    let desk = Desk::new();
    let reader = desk.add("reader", &["/private/**"], &[]);
    let authority = desk.open();
    assert_eq!(read(&authority, &reader, "/private/a.md"), Ok(()));
    let revoked = desk.keyring().revoke("reader").unwrap();
    assert_eq!(revoked.stay_closed, patterns(&["/private/**"]));
    assert_eq!(authority.poll(), Reload::Taken);
    for caller in [&reader, &ANYONE] {
        assert_eq!(
            read(&authority, caller, "/private/a.md"),
            Err(Denied::Unauthorized)
        );
        assert_eq!(
            watch(&authority, caller, "/private/"),
            Err(Denied::Unauthorized)
        );
    }
    fs::remove_file(desk.tokens()).unwrap();
    let again = desk.open();
    assert_eq!(
        read(&again, &ANYONE, "/private/a.md"),
        Err(Denied::Unauthorized)
    );
    assert_eq!(read(&again, &ANYONE, "/notes/a.md"), Ok(()));
}

// D74
#[test]
fn a_place_stays_closed_when_its_last_token_expires() {
    let desk = Desk::new();
    let expires = at("2026-05-01T00:00:00Z");
    let reader = desk.add_until("reader", &["/private/**"], &[], Some(expires));
    let authority = desk.open();
    assert_eq!(
        read(&authority, &reader, "/private/a.md"),
        Err(Denied::Unauthorized)
    );
    assert_eq!(
        read(&authority, &ANYONE, "/private/a.md"),
        Err(Denied::Unauthorized)
    );
    let listing = desk.keyring().list().unwrap();
    assert!(listing.tokens[0].has_expired(now()));
    assert_eq!(listing.places[0].readers, ["reader"]);
}

// D74: also when a person edits the file by hand.
#[test]
fn a_place_stays_closed_when_its_token_is_cut_from_the_file() {
    let desk = Desk::new();
    desk.add("reader", &["/private/**"], &[]);
    fs::remove_file(desk.closed()).unwrap();
    let authority = desk.open();
    fs::write(desk.tokens(), "[tokens]\n").unwrap();
    assert_eq!(authority.poll(), Reload::Taken);
    assert_eq!(
        read(&authority, &ANYONE, "/private/a.md"),
        Err(Denied::Unauthorized)
    );
    assert_eq!(
        read(&desk.open(), &ANYONE, "/private/a.md"),
        Err(Denied::Unauthorized)
    );
}

// D74
#[test]
fn only_a_command_opens_a_place_and_only_without_readers() {
    let desk = Desk::new();
    desk.add("reader", &["/private/**"], &[]);
    let authority = desk.open();
    let keyring = desk.keyring();
    let place = &patterns(&["/private/**"])[0];
    let held = keyring.open(place).unwrap_err().to_string();
    assert!(held.contains("reader"), "{held}");
    keyring.revoke("reader").unwrap();
    let other = keyring
        .open(&patterns(&["/private/"])[0])
        .unwrap_err()
        .to_string();
    assert!(other.contains("closed are: /private/**"), "{other}");
    keyring.open(place).unwrap();
    assert_eq!(authority.poll(), Reload::Taken);
    assert_eq!(read(&authority, &ANYONE, "/private/a.md"), Ok(()));
    assert_eq!(authority.poll(), Reload::Unchanged);
    assert!(keyring.list().unwrap().places.is_empty());
}

// D74
#[test]
fn the_first_reader_of_a_public_place_is_told_that_it_closes() {
    let desk = Desk::new();
    let new = |label: &str| NewToken {
        label: Some(label.to_owned()),
        read: patterns(&["/private/**"]),
        ..NewToken::default()
    };
    assert_eq!(
        desk.keyring().add(&new("first")).unwrap().closes,
        new("first").read
    );
    assert!(
        desk.keyring()
            .add(&new("second"))
            .unwrap()
            .closes
            .is_empty()
    );
}

// D75
#[test]
fn whatever_is_wrong_with_the_file_keeps_the_grants_in_force() {
    let desk = Desk::new();
    let editor = desk.add("editor", &["/private/**"], &["/notes/**"]);
    let whole = fs::read_to_string(desk.tokens()).unwrap();
    let authority = desk.open();
    let revision = authority.revision();
    let twice = format!("{whole}\n{}", whole.replace("tokens.editor", "tokens.twin"));
    let broken = [
        whole[..whole.len() / 2].to_owned(),
        String::new(),
        "not toml".to_owned(),
        whole.replace("/notes/**", "notes/**"),
        whole.replace("sha256-", "sha1-"),
        twice,
    ];
    for text in broken {
        fs::write(desk.tokens(), &text).unwrap();
        let Reload::Kept(problem) = authority.poll() else {
            panic!("taken: {text}");
        };
        assert!(problem.contains("tokens.toml: line "), "{problem}");
        assert_eq!(authority.problem(), Some(problem));
        assert_eq!(
            authority.poll(),
            Reload::Unchanged,
            "a problem is told once"
        );
        assert!(
            matches!(authority.reload(), Reload::Kept(_)),
            "and again when asked"
        );
        assert_eq!(publish(&authority, &editor, "/notes/a.md"), Ok(()));
        assert_eq!(
            publish(&authority, &ANYONE, "/notes/a.md"),
            Err(Denied::Unauthorized)
        );
        assert_eq!(
            read(&authority, &ANYONE, "/private/a.md"),
            Err(Denied::Unauthorized)
        );
    }
    fs::remove_file(desk.tokens()).unwrap();
    assert!(matches!(authority.poll(), Reload::Kept(problem) if problem.contains("missing")));
    assert_eq!(publish(&authority, &editor, "/notes/a.md"), Ok(()));
    fs::write(desk.tokens(), &whole).unwrap();
    assert_eq!(authority.poll(), Reload::Taken, "mended");
    assert_eq!(authority.problem(), None);
    assert_eq!(authority.revision(), revision, "and nothing changed");
}

// D75: a mounted secret is a link to a link to a directory that is swapped.
#[test]
fn a_file_behind_a_double_link_is_taken_when_the_inner_link_is_swapped() {
    let desk = Desk::new();
    let root = desk.dir.path().to_owned();
    let fill = |name: &str, text: &str| {
        fs::create_dir(root.join(name)).unwrap();
        fs::write(root.join(name).join("tokens.toml"), text).unwrap();
    };
    let other = Desk::new();
    let first = other.add("first", &[], &["/**"]);
    let first_text = fs::read_to_string(other.tokens()).unwrap();
    other.keyring().revoke("first").unwrap();
    let second = other.add("second", &[], &["/**"]);
    fill("one", &first_text);
    fill("two", &fs::read_to_string(other.tokens()).unwrap());
    symlink("one", root.join("data")).unwrap();
    symlink("data/tokens.toml", desk.tokens()).unwrap();
    let authority = desk.open();
    assert_eq!(publish(&authority, &first, "/a.md"), Ok(()));
    symlink("two", root.join("data.new")).unwrap();
    fs::rename(root.join("data.new"), root.join("data")).unwrap();
    assert_eq!(authority.poll(), Reload::Taken);
    assert_eq!(
        publish(&authority, &first, "/a.md"),
        Err(Denied::Unauthorized)
    );
    assert_eq!(publish(&authority, &second, "/a.md"), Ok(()));
}

#[test]
fn a_change_moves_the_revision_and_is_told_after_it_is_in_force() {
    let desk = Desk::new();
    let authority = desk.open();
    let seen = Arc::new(AtomicU64::new(0));
    let (teller, counter) = (authority.clone(), seen.clone());
    authority.on_change(move || counter.store(teller.revision(), Ordering::Relaxed));
    let before = authority.revision();
    assert_eq!(authority.poll(), Reload::Unchanged);
    assert_eq!(seen.load(Ordering::Relaxed), 0);
    desk.add("editor", &[], &["/**"]);
    assert_eq!(authority.poll(), Reload::Taken);
    assert_eq!(authority.revision(), before + 1);
    assert_eq!(seen.load(Ordering::Relaxed), before + 1);
}

// D78
#[test]
fn the_files_are_made_for_their_owner_alone_and_a_wider_mode_is_warned_of() {
    let desk = Desk::new();
    desk.add("reader", &["/private/**"], &[]);
    for file in [desk.tokens(), desk.closed()] {
        assert_eq!(
            fs::metadata(file).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    assert!(desk.open().warnings().is_empty());
    fs::set_permissions(desk.tokens(), fs::Permissions::from_mode(0o640)).unwrap();
    assert!(desk.open().warnings()[0].ends_with("make its mode 0600"));
    assert!(desk.keyring().list().unwrap().exposed);
    desk.keyring().revoke("reader").unwrap();
    let mode = fs::metadata(desk.tokens()).unwrap().permissions().mode();
    assert_eq!(
        mode & 0o777,
        0o640,
        "an edit keeps the mode that a person chose"
    );
}

// D78
#[test]
fn a_raw_token_is_in_no_file_and_no_debug_output() {
    let desk = Desk::new();
    let added = desk.keyring().add(&NewToken {
        publish: patterns(&["/**"]),
        ..NewToken::default()
    });
    let added = added.unwrap();
    let raw = added.token.expose();
    assert_eq!(raw.len(), 64);
    let authority = desk.open();
    let debug = format!("{added:?} {authority:?} {:?}", authority.current());
    assert!(!debug.contains(raw));
    for entry in fs::read_dir(desk.dir.path()).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains(raw));
    }
}

// D79
#[test]
fn an_expiry_is_an_instant_and_a_clock_set_back_revives_nothing() {
    let desk = Desk::new();
    let expires = at("2026-06-01T12:00:00Z");
    let editor = desk.add_until("editor", &[], &["/**"], Some(expires));
    let authority = desk.open();
    let ask = |instant: &str| {
        let place = path("/a.md");
        authority
            .current()
            .check(&editor, Operation::Publish, &place, at(instant))
    };
    assert_eq!(ask("2026-06-01T11:59:59.999Z"), Ok(()));
    assert_eq!(ask("2026-06-01T12:00:00Z"), Err(Denied::Unauthorized));
    assert_eq!(ask("2026-06-01T11:00:00Z"), Err(Denied::Unauthorized));
    desk.add("other", &[], &["/other/**"]);
    assert_eq!(authority.poll(), Reload::Taken);
    assert_eq!(
        ask("2026-06-01T11:00:00Z"),
        Err(Denied::Unauthorized),
        "a reload keeps it"
    );
    let text = fs::read_to_string(desk.tokens()).unwrap();
    fs::write(
        desk.tokens(),
        text.replace("2026-06-01T12", "2026-06-01T13"),
    )
    .unwrap();
    assert_eq!(authority.poll(), Reload::Taken);
    assert_eq!(
        ask("2026-06-01T12:30:00Z"),
        Ok(()),
        "a person moved the end"
    );
}

#[test]
fn a_watch_is_admitted_where_anything_could_be_read() {
    let desk = Desk::new();
    let reader = desk.add("reader", &["/a/**"], &[]);
    let authority = desk.open();
    assert_eq!(watch(&authority, &ANYONE, "/"), Ok(()));
    assert_eq!(watch(&authority, &ANYONE, "/a/"), Err(Denied::Unauthorized));
    assert_eq!(
        watch(&authority, &ANYONE, "/a/b/"),
        Err(Denied::Unauthorized)
    );
    assert_eq!(
        watch(&authority, &ANYONE, "/a/x.md"),
        Err(Denied::Unauthorized)
    );
    assert_eq!(watch(&authority, &reader, "/a/b/"), Ok(()));
    let all = desk.add("all", &["/**"], &[]);
    let editor = desk.add("editor", &[], &["/**"]);
    authority.poll();
    assert_eq!(watch(&authority, &ANYONE, "/"), Err(Denied::Unauthorized));
    assert_eq!(watch(&authority, &editor, "/"), Err(Denied::NotPermitted));
    assert_eq!(
        watch(&authority, &reader, "/"),
        Ok(()),
        "a part of it can be read"
    );
    assert_eq!(watch(&authority, &reader, "/b/"), Err(Denied::NotPermitted));
    assert_eq!(watch(&authority, &all, "/b/"), Ok(()));
}

// P10, D79
#[test]
fn a_watch_does_not_outlive_its_token_even_where_the_public_may_watch() {
    let desk = Desk::new();
    let expires = at("2026-06-01T13:00:00Z");
    let reader = desk.add_until("reader", &["/a/**"], &[], Some(expires));
    let authority = desk.open();
    let admit = |caller: &Caller| {
        let grants = authority.current();
        auth::WatchRight::admit(&grants, caller.clone(), scope("/"), now()).unwrap()
    };
    let (by_token, public) = (admit(&reader), admit(&ANYONE));
    let grants = authority.current();
    assert!(by_token.may_see(&grants, &path("/a/x.md"), now()));
    assert!(!public.may_see(&grants, &path("/a/x.md"), now()));
    assert_eq!(by_token.recheck(&grants, now()), Ok(()));
    assert_eq!(
        by_token.recheck(&grants, expires),
        Err(Denied::Unauthorized)
    );
    desk.keyring().revoke("reader").unwrap();
    authority.poll();
    let grants = authority.current();
    assert_eq!(by_token.recheck(&grants, now()), Err(Denied::Unauthorized));
    assert_eq!(public.recheck(&grants, now()), Ok(()));
}

#[test]
fn an_edit_keeps_comments_and_order_and_the_format_of_others() {
    let desk = Desk::new();
    desk.add("zebra", &["/z/**"], &["/z/**"]);
    let text = fs::read_to_string(desk.tokens()).unwrap();
    assert!(
        text.contains("paths = [\"/z/**\"]\noperations = [\"publish\", \"read\"]\n"),
        "{text}"
    );
    fs::write(desk.tokens(), format!("# ours\n{text}# the end\n")).unwrap();
    desk.add("ant", &[], &["/a/**"]);
    desk.keyring().revoke("zebra").unwrap();
    desk.add("bee", &["/b/**"], &["/a/**"]);
    let text = fs::read_to_string(desk.tokens()).unwrap();
    assert!(
        text.find("# the end").unwrap() > text.find("tokens.ant").unwrap(),
        "{text}"
    );
    assert!(text.contains("read_paths = [\"/b/**\"]"), "{text}");
    let labels: Vec<_> = desk.keyring().list().unwrap().tokens;
    assert_eq!(
        labels.iter().map(|token| &*token.label).collect::<Vec<_>>(),
        ["ant", "bee"]
    );
}

#[test]
fn the_last_revocation_is_taken_and_not_read_as_a_lost_file() {
    let desk = Desk::new();
    let editor = desk.add("editor", &[], &["/**"]);
    let authority = desk.open();
    desk.keyring().revoke("editor").unwrap();
    assert_eq!(authority.poll(), Reload::Taken);
    assert_eq!(
        publish(&authority, &editor, "/a.md"),
        Err(Denied::Unauthorized)
    );
}

#[test]
fn labels_are_unique_and_plain() {
    let desk = Desk::new();
    desk.add("editor", &[], &["/**"]);
    let add = |label: &str| {
        let new = NewToken {
            label: Some(label.to_owned()),
            publish: patterns(&["/**"]),
            ..NewToken::default()
        };
        desk.keyring().add(&new).map(|added| added.label)
    };
    for label in ["editor", "", "a b", "a.b", "ä", &"x".repeat(65)] {
        assert!(add(label).is_err(), "{label}");
    }
    assert!(desk.keyring().add(&NewToken::default()).is_err());
    assert!(desk.keyring().revoke("nobody").is_err());
}
