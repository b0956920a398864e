//! Repeats, restarts and forgetting, over a disk in memory.

use serde_json::json;
use testkit::disk::CrashingDisk;

use super::*;

const START: &str = "2026-01-01T00:00:00Z";

fn now() -> Timestamp {
    START.parse().unwrap()
}

fn epoch() -> Epoch {
    Epoch::from_random([1; 6])
}

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn kept(body: &str) -> Kept {
    Kept {
        status: 201,
        fields: vec![("etag".into(), "\"x\"".into())],
        body: body.into(),
    }
}

fn disk() -> Arc<CrashingDisk> {
    let disk = CrashingDisk::new();
    let own = std::path::Path::new(".tidings");
    disk.create_dir(own).unwrap();
    disk.sync_dir(std::path::Path::new("")).unwrap();
    Arc::new(disk)
}

fn open(disk: &Arc<CrashingDisk>, now: Timestamp, verdict: &Verdict) -> Keys {
    let storage: Arc<dyn Storage> = disk.clone();
    Keys::open(storage, 4, epoch(), now, &mut |_| verdict.clone()).unwrap()
}

fn begin(keys: &Keys, key: &str, input: &str, now: Timestamp) -> Result<Begun, KeyError> {
    keys.begin(digest(key), digest(input), json!({"key": key}), now)
}

fn fresh(keys: &Keys, key: &str, input: &str) -> Reservation {
    match begin(keys, key, input, now()) {
        Ok(Begun::Fresh(reservation)) => reservation,
        other => panic!("{other:?}"),
    }
}

fn repeat(keys: &Keys, key: &str, input: &str) -> Arc<Kept> {
    match begin(keys, key, input, now()) {
        Ok(Begun::Repeat(kept)) => kept,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_repeat_gets_the_first_answer_also_after_a_restart() {
    let disk = disk();
    let keys = open(&disk, now(), &Verdict::Unknown);
    fresh(&keys, "a", "one").keep(kept("first"));
    assert_eq!(*repeat(&keys, "a", "one"), kept("first"));
    drop(keys);
    let keys = open(&disk, now(), &Verdict::Unknown);
    assert_eq!(*repeat(&keys, "a", "one"), kept("first"));
    let reused = begin(&keys, "a", "two", now());
    assert!(matches!(reused, Err(KeyError::Reused)), "{reused:?}");
}

#[test]
fn a_repeat_while_the_first_runs_is_refused_and_a_freed_key_is_fresh() {
    let keys = open(&disk(), now(), &Verdict::Unknown);
    let running = fresh(&keys, "a", "one");
    let second = begin(&keys, "a", "one", now());
    assert!(matches!(second, Err(KeyError::InProgress)), "{second:?}");
    running.free();
    drop(fresh(&keys, "a", "one"));
    let unknown = begin(&keys, "a", "one", now());
    assert!(matches!(unknown, Err(KeyError::Unknown)), "{unknown:?}");
}

#[test]
fn a_key_whose_process_died_is_judged_once() {
    for (verdict, expected) in [
        (Verdict::Done(kept("made up")), "kept"),
        (Verdict::NotDone, "fresh"),
        (Verdict::Unknown, "unknown"),
    ] {
        let disk = disk();
        let keys = open(&disk, now(), &Verdict::Unknown);
        std::mem::forget(fresh(&keys, "a", "one"));
        drop(keys);
        let judged = open(&disk, now(), &verdict);
        drop(judged);
        // The next start does not ask again.
        let keys = open(&disk, now(), &Verdict::Done(kept("asked again")));
        let found = match begin(&keys, "a", "one", now()) {
            Ok(Begun::Repeat(found)) => {
                assert_eq!(found.body, "made up");
                "kept"
            }
            Ok(Begun::Fresh(_)) => "fresh",
            Err(KeyError::Unknown) => "unknown",
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(found, expected);
    }
}

#[test]
fn a_key_is_forgotten_after_a_day_and_not_before() {
    let disk = disk();
    let keys = open(&disk, now(), &Verdict::Unknown);
    fresh(&keys, "a", "one").keep(kept("first"));
    let almost = now() + KEPT_FOR - SignedDuration::from_millis(1);
    assert!(matches!(
        begin(&keys, "a", "one", almost),
        Ok(Begun::Repeat(_))
    ));
    let later = now() + KEPT_FOR;
    assert!(matches!(
        begin(&keys, "a", "two", later),
        Ok(Begun::Fresh(_))
    ));
    drop(keys);
    let keys = open(&disk, later, &Verdict::NotDone);
    assert!(matches!(
        begin(&keys, "a", "three", later),
        Ok(Begun::Fresh(_))
    ));
}

#[test]
fn a_further_key_is_refused_when_there_are_as_many_as_may_be() {
    let keys = open(&disk(), now(), &Verdict::Unknown);
    for key in ["a", "b", "c", "d"] {
        fresh(&keys, key, "one").keep(kept(key));
    }
    let full = begin(&keys, "e", "one", now());
    assert!(matches!(full, Err(KeyError::Full)), "{full:?}");
    assert_eq!(repeat(&keys, "a", "one").body, "a");
    let later = now() + KEPT_FOR;
    assert!(matches!(
        begin(&keys, "e", "one", later),
        Ok(Begun::Fresh(_))
    ));
}
