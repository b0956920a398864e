//! What is read again: whole, torn, damaged, copied, and arbitrary bytes.

use std::path::Path;

use crate::support::*;
use journal::{Journal, Opened, TornTail, Unusable};
use proptest::prelude::*;
use storage::Storage;
use testkit::disk::CrashingDisk;
use wire::Seq;

/// Enough for several segments.
const LAST: u64 = 20;

fn written() -> CrashingDisk {
    let disk = CrashingDisk::new();
    let journal = create(&disk);
    (1..=LAST).for_each(|seq| commit(&journal, seq).unwrap());
    disk.kill()
}

#[test]
fn what_was_committed_is_replayed_in_order() {
    let disk = written();
    assert!(
        segments(&disk).len() > 2,
        "the records fill several segments"
    );
    let (journal, repaired, records) = open(&disk).ready();
    assert_eq!(repaired, None);
    assert_eq!(records, first(LAST));
    assert_eq!(journal.epoch(), &epoch("e1"));
    assert_eq!(journal.last(), Seq::new(LAST));
    assert_eq!(journal.oldest(), Seq::new(1));

    commit(&journal, LAST + 1).unwrap();
    assert_eq!(open(&disk.kill()).ready().2, first(LAST + 1));
}

#[test]
fn numbers_may_skip_and_never_go_back() {
    let disk = CrashingDisk::new();
    let journal = create(&disk);
    for seq in [3, 4, 90, 1000] {
        commit(&journal, seq).unwrap();
        for stale in [0, 1, seq] {
            let refused = journal.append(Seq::new(stale), b"");
            assert_eq!(
                refused.unwrap_err().to_string(),
                format!("sequence {stale} is not above {seq}"),
            );
        }
    }
    let replayed = open(&disk.kill()).ready().2;
    assert_eq!(
        replayed.iter().map(|pair| pair.0).collect::<Vec<_>>(),
        [3, 4, 90, 1000]
    );
}

#[test]
fn the_bytes_are_those_of_the_documented_format() {
    let disk = CrashingDisk::new();
    let journal = Journal::create(shared(&disk), config(), epoch("e1"), Seq::new(7)).unwrap();
    let commit = |records: &[(u64, &[u8])]| {
        let append = |&(seq, payload): &(u64, &[u8])| journal.append(Seq::new(seq), payload);
        let tickets: Result<Vec<_>, _> = records.iter().map(append).collect();
        journal.wait(tickets.unwrap().last().unwrap()).unwrap();
    };
    commit(&[(7, b"alone")]);
    commit(&[(8, b""), (11, b"together")]);

    let mut dump = String::new();
    for line in segments(&disk)[0].1.chunks(16) {
        let bytes: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        dump.push_str(&bytes.join(" "));
        dump.push('\n');
    }
    assert_eq!(dump, include_str!("golden.hex"), "see docs/formats.md");
}

#[test]
fn no_journal_is_told_apart_from_a_broken_one() {
    let disk = CrashingDisk::new();
    assert!(matches!(open(&disk).opened, Opened::Absent));
    disk.create_dir(Path::new("journal")).unwrap();
    assert!(matches!(open(&disk).opened, Opened::Absent));
}

#[test]
fn an_end_cut_at_any_byte_keeps_the_whole_records_before_it() {
    // D63
    let disk = written();
    let (newest, bytes) = segments(&disk).pop().unwrap();
    let header_len = 128;
    for cut in header_len..bytes.len() {
        for filler in [&b""[..], &[0; 40], &[0xa5; 40]] {
            let disk = disk.kill();
            disk.plant(&newest, &[&bytes[..cut], filler].concat());
            let (journal, repaired, records) = open(&disk).ready();
            let kept = records.len() as u64;
            assert_eq!(records, first(kept), "cut at {cut}");
            assert!(kept < LAST);
            let is_whole = segments(&disk).pop().unwrap().1.len() == cut && filler.is_empty();
            assert_eq!(repaired.is_none(), is_whole, "cut at {cut}");

            // The remains are gone for good, and what comes next is read by the next start.
            commit(&journal, kept + 1).unwrap();
            let (_, repaired, records) = open(&disk.kill()).ready();
            assert_eq!(repaired, None);
            assert_eq!(records, first(kept + 1));
        }
    }
}

#[test]
fn a_torn_tail_is_told_with_its_place() {
    let disk = written();
    let (newest, mut bytes) = segments(&disk).pop().unwrap();
    bytes.extend_from_slice(b"half a record");
    disk.plant(&newest, &bytes);
    let last = Seq::new(LAST);
    assert_eq!(open(&disk).ready().1, Some(TornTail { last, bytes: 13 }));
}

#[test]
fn a_bit_flipped_before_the_last_record_is_damage() {
    // D63
    let disk = written();
    let files = segments(&disk);
    let (newest, _) = files.last().unwrap().clone();
    let last_record = 24 + payload(LAST).len();
    for (path, bytes) in &files {
        let is_newest = *path == newest;
        let end = bytes.len() - if is_newest { last_record } else { 0 };
        for at in 0..end {
            let disk = disk.kill();
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            disk.plant(path, &bytes);
            let reopened = open(&disk);
            let is_prefix = first(LAST).starts_with(&reopened.records);
            assert!(is_prefix, "byte {at} of {}", path.display());
            reopened.unusable();
        }
    }
}

#[test]
fn a_lost_block_inside_is_damage() {
    // D63
    let disk = written();
    let (path, bytes) = segments(&disk)[1].clone();
    for (from, to) in [(0, 128), (128, 160), (150, bytes.len() - 4)] {
        let disk = disk.kill();
        let mut bytes = bytes.clone();
        bytes[from..to].fill(0);
        disk.plant(&path, &bytes);
        assert!(matches!(open(&disk).unusable(), Unusable::Damaged { .. }));
    }
    // A segment that is cut but not the last one was whole once.
    for cut in 0..bytes.len() {
        let disk = disk.kill();
        disk.plant(&path, &bytes[..cut]);
        open(&disk).unusable();
    }
}

#[test]
fn a_segment_missing_in_the_middle_is_noticed() {
    let disk = written();
    let (path, _) = segments(&disk)[1].clone();
    disk.remove_file(&path).unwrap();
    assert!(matches!(open(&disk).unusable(), Unusable::Sequence { .. }));
}

#[test]
fn a_copied_journal_is_not_the_one_that_was_written() {
    // D62
    let disk = written();
    assert!(matches!(
        open(&disk.copy_tree()).unusable(),
        Unusable::Identity { .. }
    ));
    // The original is still good, and so is one whose directory was moved.
    disk.rename(Path::new("journal"), Path::new("away"))
        .unwrap();
    assert!(matches!(open(&disk).opened, Opened::Absent));
    disk.rename(Path::new("away"), Path::new("journal"))
        .unwrap();
    assert_eq!(open(&disk).ready().2, first(LAST));
}

#[test]
fn a_record_of_another_segment_is_no_record() {
    let disk = written();
    let files = segments(&disk);
    let (newest, bytes) = files.last().unwrap();
    let foreign = &files[0].1[128..];
    disk.plant(newest, &[bytes, foreign].concat());
    let (_, repaired, records) = open(&disk).ready();
    assert_eq!(records, first(LAST));
    assert_eq!(repaired.unwrap().bytes, foreign.len() as u64);
}

#[test]
fn an_unknown_format_is_not_taken_for_damage() {
    let disk = written();
    let (path, mut bytes) = segments(&disk)[0].clone();
    bytes[8] = 2;
    disk.plant(&path, &bytes);
    let reason = open(&disk).unusable();
    assert!(matches!(reason, Unusable::Format { format: 2, .. }));
    assert_eq!(
        reason.to_string(),
        "segment 00000000000000000001.seg has the unknown format 2",
    );
}

#[test]
fn files_that_are_not_ours_are_left_alone() {
    // D56
    let disk = written();
    let stray = [
        "journal/notes.txt",
        "journal/1.seg",
        "journal/00000000000000000001.seg~",
    ];
    stray.iter().for_each(|path| disk.plant(path, b"mine"));
    disk.plant("journal/00000000000000000007.seg.new", b"left by a crash");
    assert_eq!(open(&disk).ready().2, first(LAST));
    let left = disk.contents();
    assert!(stray.iter().all(|path| left.contains_key(Path::new(path))));
    assert!(!left.contains_key(Path::new("journal/00000000000000000007.seg.new")));
}

#[test]
fn a_journal_that_cannot_be_read_is_an_error_and_not_a_loss() {
    // D54
    let disk = written();
    let (path, _) = segments(&disk)[1].clone();
    disk.deny(&path);
    let refused = Journal::open(shared(&disk), config(), &mut |_| {}).unwrap_err();
    assert_eq!(refused.path, path);
    disk.allow(&path);
    assert_eq!(open(&disk).ready().2, first(LAST));
}

#[test]
fn beginning_an_epoch_sets_the_old_journal_aside_once() {
    let disk = written();
    let kept = segments(&disk).len();
    for text in ["e2", "e3"] {
        let journal = Journal::create(shared(&disk), config(), epoch(text), Seq::new(41)).unwrap();
        commit(&journal, 41).unwrap();
        let (journal, _, records) = open(&disk.kill()).ready();
        assert_eq!(journal.epoch(), &epoch(text));
        assert_eq!(records, [(41, payload(41))]);
    }
    let aside = disk
        .contents()
        .into_keys()
        .filter(|path| path.starts_with(".journal.aside"));
    assert_eq!(aside.count(), 2, "the directory and the one segment of e2");
    assert!(kept > 1);
}

proptest! {
    #[test]
    fn no_bytes_in_a_segment_make_reading_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        keep in 0_usize..600,
        segment in 0_usize..3,
    ) {
        let disk = written();
        let (path, mut content) = segments(&disk)[segment].clone();
        content.truncate(keep);
        content.extend_from_slice(&bytes);
        disk.plant(&path, &content);
        let reopened = open(&disk);
        prop_assert!(first(LAST).starts_with(&reopened.records));
    }
}
