//! Group commit, and what happens when the disk fails.

use std::io::ErrorKind;
use std::sync::Mutex;
use std::thread;

use crate::support::*;
use journal::{Config, Journal, JournalError};
use testkit::disk::{Call, CrashingDisk, Survives};
use wire::Seq;

/// Appends the next number under a lock, as an owner does.
fn append_next(journal: &Journal, next: &Mutex<u64>) -> (u64, journal::Ticket) {
    let mut next = next.lock().unwrap();
    *next += 1;
    let ticket = journal.append(Seq::new(*next), &payload(*next)).unwrap();
    (*next, ticket)
}

#[test]
fn all_who_wait_share_one_sync() {
    const WRITERS: usize = 64;
    let disk = CrashingDisk::new();
    let config = Config::new("journal");
    let journal = Journal::create(shared(&disk), config, epoch("e1"), Seq::new(1)).unwrap();
    let next = Mutex::new(0);
    let before = disk.count(Call::SyncData);

    let wait = |ticket: journal::Ticket| journal.wait(&ticket).unwrap();
    let held = disk.hold_syncs();
    thread::scope(|scope| {
        let (_, lead) = append_next(&journal, &next);
        scope.spawn(move || wait(lead));
        held.wait_for(1);
        for _ in 1..WRITERS {
            let (_, ticket) = append_next(&journal, &next);
            scope.spawn(move || wait(ticket));
        }
        drop(held);
    });
    assert_eq!(disk.count(Call::SyncData) - before, 2);
    let stats = journal.stats();
    assert_eq!((stats.records, stats.batches), (WRITERS as u64, 2));
    assert_eq!(
        open(&disk.crash(Survives::Nothing)).ready().2,
        first(WRITERS as u64)
    );
}

#[test]
fn many_threads_leave_one_unbroken_run() {
    const THREADS: u64 = 64;
    const EACH: u64 = 50;
    let disk = CrashingDisk::new();
    let journal = create(&disk);
    let next = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let (seq, ticket) = append_next(&journal, &next);
                    journal.wait(&ticket).unwrap();
                    assert!(journal.last() >= Seq::new(seq));
                }
            });
        }
    });
    assert_eq!(journal.stats().records, THREADS * EACH);
    assert_eq!(
        open(&disk.crash(Survives::Nothing)).ready().2,
        first(THREADS * EACH)
    );
}

#[test]
fn a_ticket_that_nobody_waits_for_is_written_with_the_next() {
    let disk = CrashingDisk::new();
    let journal = create(&disk);
    drop(journal.append(Seq::new(1), &payload(1)).unwrap());
    assert!(journal.queued_bytes() > 0);
    commit(&journal, 2).unwrap();
    assert_eq!(journal.queued_bytes(), 0);
    assert_eq!(open(&disk.crash(Survives::Nothing)).ready().2, first(2));
}

#[test]
fn a_failed_sync_poisons_for_ever() {
    // D50
    let disk = CrashingDisk::new();
    let journal = create(&disk);
    commit(&journal, 1).unwrap();
    disk.fail_call(Call::SyncData, 0, ErrorKind::Other);
    assert!(matches!(
        commit(&journal, 2),
        Err(JournalError::Poisoned { .. })
    ));
    assert!(journal.is_poisoned());
    assert!(journal.poison().is_some());
    let syncs = disk.count(Call::SyncData);
    for seq in 2..5 {
        assert!(matches!(
            commit(&journal, seq),
            Err(JournalError::Poisoned { .. })
        ));
    }
    assert_eq!(disk.count(Call::SyncData), syncs, "no sync is repeated");
    assert_eq!(journal.last(), Seq::new(1));
}

#[test]
fn what_is_replayed_after_a_failed_sync_is_made_durable_first() {
    // D50: the bytes are in memory and marked clean, so a sync alone would bring nothing to disk.
    let disk = CrashingDisk::new();
    let journal = create(&disk);
    commit(&journal, 1).unwrap();
    disk.fail_call(Call::SyncData, 0, ErrorKind::Other);
    commit(&journal, 2).unwrap_err();
    let (journal, _, records) = open(&disk).ready();
    assert_eq!(records, first(2));
    commit(&journal, 3).unwrap();
    assert_eq!(open(&disk.crash(Survives::Nothing)).ready().2, first(3));
}

#[test]
fn those_who_wait_behind_a_failed_sync_are_told() {
    // D50
    let disk = CrashingDisk::new();
    let journal = create(&disk);
    disk.fail_call(Call::SyncData, 0, ErrorKind::Other);
    let held = disk.hold_syncs();
    thread::scope(|scope| {
        let first = journal.append(Seq::new(1), b"first").unwrap();
        let leader = scope.spawn(move || (journal.wait(&first), journal));
        held.wait_for(1);
        drop(held);
        let (waited, journal) = leader.join().unwrap();
        assert!(matches!(waited, Err(JournalError::Poisoned { .. })));
        assert!(matches!(
            journal.append(Seq::new(2), b""),
            Err(JournalError::Poisoned { .. })
        ));
    });
}

#[test]
fn a_full_disk_refuses_and_works_again_when_there_is_room() {
    // D51
    let disk = CrashingDisk::new();
    let journal = create(&disk);
    commit(&journal, 1).unwrap();
    for room in 0..60 {
        disk.set_capacity(Some(disk.used() + room));
        let behind = [2, 3].map(|seq| journal.append(Seq::new(seq), &payload(seq)).unwrap());
        for ticket in &behind {
            let told = journal.wait(ticket).unwrap_err();
            let JournalError::Write { cause } = told else {
                panic!("expected a failed write, got {told:?}");
            };
            assert_eq!(cause.kind(), ErrorKind::StorageFull);
        }
        assert!(!journal.is_poisoned());
        assert_eq!(open(&disk.kill()).ready().2, first(1));
    }
    disk.set_capacity(None);
    // The numbers of what failed are free again.
    (2..=LAST).for_each(|seq| commit(&journal, seq).unwrap());
    assert_eq!(open(&disk.crash(Survives::Nothing)).ready().2, first(LAST));
}

/// Enough to fill several segments.
const LAST: u64 = 20;

#[test]
fn a_failure_at_any_operation_loses_nothing_that_was_acknowledged() {
    // D51
    let operations = {
        let disk = CrashingDisk::new();
        let journal = create(&disk);
        let before = disk.operations();
        (1..=LAST).for_each(|seq| commit(&journal, seq).unwrap());
        disk.operations() - before
    };
    for at in 0..operations {
        for kind in [ErrorKind::StorageFull, ErrorKind::Other] {
            let disk = CrashingDisk::new();
            let journal = create(&disk);
            disk.fail_after(at, kind);
            let mut acknowledged = Vec::new();
            let mut failures = 0;
            for seq in 1..=LAST {
                match commit(&journal, seq) {
                    Ok(()) => acknowledged.push((seq, payload(seq))),
                    Err(_) => failures += 1,
                }
            }
            let log = disk.log();
            let expected = if journal.is_poisoned() {
                1..=LAST as i32
            } else {
                0..=1
            };
            assert!(
                expected.contains(&failures),
                "{failures} failures, {at}: {log:#?}"
            );
            let (_, _, records) = open(&disk.crash(Survives::Nothing)).ready();
            assert_eq!(records, acknowledged, "failed at {at}: {log:#?}");
        }
    }
}

#[test]
fn a_write_that_cannot_be_cut_back_is_cut_back_before_the_next() {
    let disk = CrashingDisk::new();
    let journal = create(&disk);
    commit(&journal, 1).unwrap();
    disk.fail_call(Call::WriteAt, 0, ErrorKind::StorageFull);
    disk.fail_call(Call::SetLen, 0, ErrorKind::Other);
    assert!(matches!(
        commit(&journal, 4),
        Err(JournalError::Write { .. })
    ));
    assert!(matches!(open(&disk.kill()).ready().1, Some(tail) if tail.last == Seq::new(1)));
    commit(&journal, 2).unwrap();
    assert_eq!(open(&disk.kill()).ready().2, first(2));
}

#[test]
fn a_segment_that_was_given_up_is_not_written_to_again() {
    // D51: the next segment has its name, so it may turn up after a crash and says what it follows.
    for call in [Call::SyncAll, Call::RenameNew, Call::SyncDir] {
        let disk = CrashingDisk::new();
        let journal = create(&disk);
        commit(&journal, 1).unwrap();
        disk.fail_call(call, 0, ErrorKind::Other);
        let long = journal.append(Seq::new(2), &[0; 390]).unwrap();
        assert!(matches!(
            journal.wait(&long),
            Err(JournalError::Write { .. })
        ));
        (2..=LAST).for_each(|seq| commit(&journal, seq).unwrap());
        for survives in Survives::all(16) {
            assert_eq!(
                open(&disk.crash(survives)).ready().2,
                first(LAST),
                "{call:?}"
            );
        }
    }
}

#[test]
fn the_queue_and_the_record_are_bounded() {
    let disk = CrashingDisk::new();
    let config = Config {
        queue_bytes_max: 100,
        record_bytes_max: 60,
        ..config()
    };
    let journal = Journal::create(shared(&disk), config, epoch("e1"), Seq::new(1)).unwrap();
    let long = journal.append(Seq::new(1), &[0; 61]);
    assert!(matches!(
        long,
        Err(JournalError::TooLarge {
            len: 61,
            bytes_max: 60
        })
    ));
    let ticket = journal.append(Seq::new(1), &[0; 60]).unwrap();
    let full = journal.append(Seq::new(2), b"");
    assert!(matches!(full, Err(JournalError::Full { bytes_max: 100 })));
    assert_eq!(journal.stats().refusals, 1);
    journal.wait(&ticket).unwrap();
    journal.append(Seq::new(2), b"").unwrap();
}

#[test]
fn retention_frees_whole_segments_and_never_the_last() {
    // D71
    let disk = CrashingDisk::new();
    let journal = create(&disk);
    (1..=LAST).for_each(|seq| commit(&journal, seq).unwrap());
    assert_eq!(journal.retain_from(Seq::new(1)).unwrap(), 0);
    let mut count = segments(&disk).len();
    for floor in 1..=LAST {
        count -= journal.retain_from(Seq::new(floor)).unwrap();
        assert_eq!(segments(&disk).len(), count);
        assert!(journal.oldest() <= Seq::new(floor));
        let (_, _, records) = open(&disk.crash(Survives::Nothing)).ready();
        assert!(first(LAST).ends_with(&records));
        assert!(records[0].0 <= floor, "nothing that is retained goes");
    }
    journal.retain_from(Seq::new(1000)).unwrap();
    assert_eq!(segments(&disk).len(), 1);
    commit(&journal, LAST + 1).unwrap();
}

#[test]
fn retention_that_fails_goes_on_with_the_next_call() {
    // D71
    for call in [Call::RemoveFile, Call::SyncDir] {
        let disk = CrashingDisk::new();
        let journal = create(&disk);
        (1..=LAST).for_each(|seq| commit(&journal, seq).unwrap());
        disk.fail_call(call, 1, ErrorKind::Other);
        let failed = journal.retain_from(Seq::new(LAST));
        assert!(matches!(failed, Err(JournalError::Retain { .. })));
        for seed in Survives::all(16) {
            open(&disk.crash(seed)).ready();
        }
        journal.retain_from(Seq::new(LAST)).unwrap();
        let (_, _, records) = open(&disk.crash(Survives::Nothing)).ready();
        assert!(first(LAST).ends_with(&records));
        assert_eq!(records.last().unwrap().0, LAST);
    }
}
