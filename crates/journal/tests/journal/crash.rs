//! The journal crashes at each of its operations, and what is left keeps its promises.
//!
//! 1. The work runs once to count its operations: an epoch begins, batches of one to four records
//!    fill several segments, old ones are freed, another epoch begins over the first.
//! 2. It runs again for each operation, on a disk that crashes there.
//! 3. Each image, of a kill and of a power cut under many policies, is opened. All that was
//!    acknowledged and is retained must be there, in order, with nothing that was never appended.
//! 4. The opened journal takes another record, crashes with nothing surviving, and opens again.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use crate::support::*;
use journal::{Journal, Opened};
use proptest::prelude::*;
use testkit::disk::{Call, CrashingDisk, Survives};
use wire::{Epoch, Seq};

/// What the owner knows at the moment of the crash.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The epoch whose beginning was acknowledged.
    epoch: Option<Epoch>,
    /// The epoch that was being begun.
    beginning: Option<Epoch>,
    acknowledged: u64,
    appended: u64,
    floor: u64,
}

/// One step of the work.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Append this many records and wait for the last.
    Batch(u64),
    /// Begin another epoch.
    Epoch,
    /// Free what is this far behind.
    Retain(u64),
}

/// Does the steps until the disk crashes.
fn run(disk: &CrashingDisk, steps: &[Step]) -> Known {
    let mut known = Known {
        beginning: Some(epoch("e0")),
        ..Known::default()
    };
    let Ok(mut journal) = Journal::create(shared(disk), config(), epoch("e0"), Seq::new(1)) else {
        return known;
    };
    known.epoch = known.beginning.take();
    for (number, step) in steps.iter().enumerate() {
        let is_done = match *step {
            Step::Batch(count) => batch(&journal, count, &mut known),
            Step::Epoch => {
                let next = epoch(&format!("e{}", number + 1));
                known.beginning = Some(next.clone());
                match Journal::create(shared(disk), config(), next, Seq::new(1)) {
                    Ok(next) => journal = next,
                    Err(_) => return known,
                }
                known = Known {
                    epoch: known.beginning.take(),
                    ..Known::default()
                };
                true
            }
            Step::Retain(behind) => {
                known.floor = known.floor.max(known.acknowledged.saturating_sub(behind));
                journal.retain_from(Seq::new(known.floor)).is_ok()
            }
        };
        if !is_done {
            break;
        }
    }
    known
}

fn batch(journal: &Journal, count: u64, known: &mut Known) -> bool {
    let from = known.appended + 1;
    let tickets: Result<Vec<_>, _> = (from..from + count)
        .map(|seq| journal.append(Seq::new(seq), &payload(seq)))
        .collect();
    let Ok(tickets) = tickets else { return false };
    known.appended += count;
    let is_durable = tickets.iter().all(|ticket| journal.wait(ticket).is_ok());
    if is_durable {
        known.acknowledged = known.appended;
    }
    is_durable
}

/// Opens an image and holds it to what the owner knew.
fn check(image: &CrashingDisk, known: &Known, story: &dyn Fn() -> String) {
    let reopened = open(image);
    let Opened::Ready { journal, .. } = &reopened.opened else {
        // No journal is left only if one was being begun.
        let may_be_absent = matches!(reopened.opened, Opened::Absent) && known.beginning.is_some();
        assert!(may_be_absent, "{:?}\n{}", reopened.opened, story());
        return;
    };
    let records = &reopened.records;
    if Some(journal.epoch()) == known.beginning.as_ref() {
        assert!(records.is_empty(), "{}", story());
        return;
    }
    assert_eq!(Some(journal.epoch()), known.epoch.as_ref(), "{}", story());
    let last = records.last().map_or(0, |pair| pair.0);
    assert!(
        last >= known.acknowledged && last <= known.appended,
        "{last}\n{}",
        story()
    );
    assert!(first(last).ends_with(records), "{}", story());
    let begin = records.first().map_or(1, |pair| pair.0);
    assert!(begin <= known.floor.max(1), "{begin}\n{}", story());

    commit(journal, last + 1).unwrap();
    let (_, repaired, after) = open(&image.crash(Survives::Nothing)).ready();
    assert_eq!(repaired, None, "{}", story());
    assert_eq!(
        after.last(),
        Some(&(last + 1, payload(last + 1))),
        "{}",
        story()
    );
    assert_eq!(after.len(), records.len() + 1, "{}", story());
}

/// Crashes the work at each of its operations and checks every image; returns how many there were.
fn crash_everywhere(steps: &[Step], seeds: u64) -> usize {
    let whole = CrashingDisk::new();
    run(&whole, steps);
    let mut images = 0;
    for at in 0..=whole.operations() {
        let disk = CrashingDisk::new();
        disk.crash_after(at);
        let known = run(&disk, steps);
        let story = |what: &dyn std::fmt::Debug| {
            format!("{what:?} at {at}, {known:?}\n{}", disk.log().join("\n"))
        };
        check(&disk.kill(), &known, &|| story(&"kill"));
        for survives in Survives::all(seeds) {
            check(&disk.crash(survives), &known, &|| story(&survives));
            images += 1;
        }
    }
    images
}

#[test]
fn a_crash_at_any_operation_keeps_what_was_acknowledged() {
    // D48, D49, D60, D63, D71
    let steps = [
        Step::Batch(1),
        Step::Batch(4),
        Step::Batch(3),
        Step::Retain(2),
        Step::Batch(2),
        Step::Batch(4),
        Step::Batch(1),
        Step::Retain(3),
        Step::Epoch,
        Step::Batch(4),
        Step::Batch(4),
        Step::Epoch,
        Step::Batch(2),
    ];
    let images = crash_everywhere(&steps, 64);
    assert!(images > 3000, "{images}");
}

#[test]
fn a_batch_torn_in_its_middle_is_no_damage() {
    // D60, D63: a power cut keeps later blocks of an unsynced batch and loses earlier ones.
    let large = |seq: u64| vec![seq as u8; 700];
    let mut holes = 0;
    for survives in Survives::all(200) {
        let disk = CrashingDisk::new();
        let journal = create(&disk);
        commit(&journal, 1).unwrap();
        let tickets = [2, 3, 4].map(|seq| journal.append(Seq::new(seq), &large(seq)).unwrap());
        // The cut comes while the batch is being synced.
        disk.fail_call(Call::SyncData, 0, ErrorKind::Other);
        journal.wait(&tickets[0]).unwrap_err();

        let image = disk.crash(survives);
        let bytes = segments(&image).pop().unwrap().1;
        let (journal, _, records) = open(&image).ready();
        assert_eq!(records[0], (1, payload(1)));
        let kept = records.len() as u64;
        assert!(
            (2..)
                .zip(&records[1..])
                .all(|(seq, pair)| *pair == (seq, large(seq)))
        );
        holes += u32::from(kept < 3 && bytes.ends_with(&large(4)));

        commit(&journal, kept + 1).unwrap();
        let (_, repaired, records) = open(&image.crash(Survives::Nothing)).ready();
        assert_eq!((repaired, records.len() as u64), (None, kept + 1));
    }
    assert!(holes > 0, "some image has a hole before a whole record");
}

#[test]
fn a_crash_while_opening_is_like_none() {
    // D63: the repair itself is cut at each operation.
    let disk = CrashingDisk::new();
    let journal = create(&disk);
    (1..=6).for_each(|seq| commit(&journal, seq).unwrap());
    let (newest, mut bytes) = segments(&disk).pop().unwrap();
    bytes.extend_from_slice(b"torn");
    disk.plant(&newest, &bytes);
    for at in 0..4 {
        let torn = disk.kill();
        torn.crash_after(at);
        Journal::open(shared(&torn), config(), &mut |_| {}).unwrap_err();
        for survives in Survives::all(32) {
            assert_eq!(open(&torn.crash(survives)).ready().2, first(6));
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1_u64..5).prop_map(Step::Batch),
        1 => Just(Step::Epoch),
        2 => (0_u64..8).prop_map(Step::Retain),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_work_survives_a_crash_anywhere(steps in prop::collection::vec(step(), 1..10)) {
        crash_everywhere(&steps, 4);
    }

    #[test]
    fn the_journal_agrees_with_a_model(
        work in prop::collection::vec((1_u64..4, 0_usize..300, 0_u32..8), 1..60),
    ) {
        let mut disk = CrashingDisk::new();
        let mut journal = create(&disk);
        let mut model: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut last = 0;
        for (skip, len, what) in work {
            match what {
                0 => {
                    disk = disk.kill();
                    let (reopened, _, records) = open(&disk).ready();
                    journal = reopened;
                    let floor = journal.oldest().get();
                    prop_assert_eq!(
                        records.into_iter().collect::<BTreeMap<_, _>>(),
                        model.split_off(&floor.max(1))
                    );
                    model = open(&disk).records.into_iter().collect();
                }
                1 => {
                    journal.retain_from(Seq::new(last)).unwrap();
                }
                _ => {
                    last += skip;
                    let bytes = vec![len as u8; len];
                    let ticket = journal.append(Seq::new(last), &bytes).unwrap();
                    journal.wait(&ticket).unwrap();
                    model.insert(last, bytes);
                }
            }
        }
        prop_assert_eq!(journal.last(), Seq::new(last));
    }
}
