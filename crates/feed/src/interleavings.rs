//! Schedules of publishers, readers and owners, tried by the hundred.
//!
//! 1. Every lock of this crate is shuttle's in this build, so each is a point where another thread
//!    may run; a schedule in which everyone waits is a lost wake and fails.
//! 2. Readers record what they were told and every position they gave.
//! 3. When all is over, a reader's record must cover the whole sequence: each change in its scope
//!    was told, or a gap that was told spans it, in order and never at or below a position that
//!    was given before.

use std::future::poll_fn;
use std::sync::Arc;

use shuttle::future::block_on;
use shuttle::thread;
use wire::{Cursor, Epoch, GapReason, Seq};

use crate::{Change, Feed, Next, Outlet, Scope, Subscription, Token};

const SCHEDULES: usize = 2_000;
/// How often a schedule of the second kind preempts at the worst moment.
const PREEMPTIONS: usize = 3;

#[derive(Debug)]
struct Note(&'static str);

impl Change for Note {
    fn name(&self) -> &str {
        self.0
    }
}

/// Tries `scenario` under random schedules and under few, ill-timed preemptions.
fn explore(scenario: fn()) {
    shuttle::check_random(scenario, SCHEDULES);
    shuttle::check_pct(scenario, SCHEDULES, PREEMPTIONS);
}

fn feed(ring_len: usize) -> Feed<Note> {
    let epoch = Epoch::new("e1").expect("a legal epoch");
    Feed::new(epoch, Seq::ZERO, ring_len)
}

fn scope(text: &str) -> Scope {
    if text.ends_with('/') {
        Scope::Prefix(text.into())
    } else {
        Scope::Exact(text.into())
    }
}

/// Publishes in a thread of its own and gives the places.
fn publisher(
    feed: &Feed<Note>,
    names: &'static [&'static str],
) -> thread::JoinHandle<Vec<(u64, &'static str)>> {
    let feed = feed.clone();
    thread::spawn(move || {
        let publish = |name: &&'static str| (feed.publish(Note(name)).get(), *name);
        names.iter().map(publish).collect()
    })
}

/// Closes the feed after all `publishers` are done, and gives what they published, in order.
fn close_after(
    feed: &Feed<Note>,
    publishers: Vec<thread::JoinHandle<Vec<(u64, &'static str)>>>,
) -> Vec<(u64, &'static str)> {
    let join = |publisher: thread::JoinHandle<Vec<_>>| publisher.join().expect("it publishes");
    let mut published: Vec<_> = publishers.into_iter().flat_map(join).collect();
    feed.close();
    published.sort_unstable();
    published
}

/// What one reader was told and what it said of itself.
struct Record {
    scope: Scope,
    start: u64,
    told: Vec<u64>,
    /// Pairs: the gap spans what lies above the first and up to the second.
    gaps: Vec<(u64, u64)>,
    reasons: Vec<GapReason>,
}

impl Record {
    /// Reads `subscription` to the end of the feed, waiting at `outlet`.
    fn read(mut subscription: Subscription<Note>, outlet: &Outlet) -> Self {
        let mut record = Self {
            scope: subscription.scope().clone(),
            start: subscription.position().seq.get(),
            told: Vec::new(),
            gaps: Vec::new(),
            reasons: Vec::new(),
        };
        let mut position = record.start;
        loop {
            match subscription.next() {
                Next::Change(slot) => {
                    let seq = slot.seq().get();
                    assert!(
                        seq > position,
                        "{seq} was told after the position {position}"
                    );
                    record.told.push(seq);
                    position = seq;
                }
                Next::Gap { reason, head } => {
                    assert!(head.seq.get() > position, "a gap moves forward");
                    record.gaps.push((position, head.seq.get()));
                    record.reasons.push(reason);
                    position = head.seq.get();
                }
                Next::Idle => {
                    let token = block_on(poll_fn(|cx| outlet.poll_ready(cx)));
                    assert_eq!(token, subscription.token());
                }
                Next::Closed => return record,
            }
            let given = subscription.position().seq.get();
            assert!(
                given >= position,
                "the position {given} fell behind {position}"
            );
            position = given;
        }
    }

    /// Fails if a change in scope was missed without a word.
    fn assert_covers(&self, published: &[(u64, &'static str)]) {
        let is_spanned = |seq: u64| self.gaps.iter().any(|(from, to)| *from < seq && seq <= *to);
        for (seq, name) in published {
            let is_owed = self.scope.contains(name) && *seq > self.start;
            let was_told = self.told.contains(seq);
            assert!(was_told <= is_owed, "{seq} does not concern this watch");
            assert!(!is_owed || was_told || is_spanned(*seq), "{seq} was missed");
        }
    }
}

/// A reader in a thread of its own with an outlet of its own.
fn reader(feed: &Feed<Note>, text: &str) -> thread::JoinHandle<Record> {
    let outlet = Outlet::new();
    let subscription = feed
        .subscribe(scope(text), None, &outlet)
        .expect("a watch without a cursor is never refused");
    thread::spawn(move || Record::read(subscription, &outlet))
}

#[test]
fn readers_of_a_wide_ring_are_told_everything() {
    explore(|| {
        let feed = feed(16);
        let readers = ["/", "/a/", "/a/x"].map(|text| reader(&feed, text));
        let publishers = vec![
            publisher(&feed, &["/a/x", "/b", "/a/y"]),
            publisher(&feed, &["/a/x", "/a/x", "/b"]),
        ];
        let published = close_after(&feed, publishers);
        assert!(published.iter().map(|(seq, _)| *seq).eq(1..=6));
        for reader in readers {
            let record = reader.join().expect("it reads");
            assert!(record.gaps.is_empty());
            record.assert_covers(&published);
        }
    });
}

#[test]
fn readers_of_a_narrow_ring_are_told_everything_or_a_gap() {
    explore(|| {
        let feed = feed(2);
        let readers = ["/", "/a/x"].map(|text| reader(&feed, text));
        let publishers = vec![
            publisher(&feed, &["/b", "/a/x", "/b", "/a/x"]),
            publisher(&feed, &["/a/x", "/b", "/b"]),
        ];
        let published = close_after(&feed, publishers);
        for reader in readers {
            let record = reader.join().expect("it reads");
            record.assert_covers(&published);
            assert!(
                record
                    .reasons
                    .iter()
                    .all(|reason| *reason == GapReason::Lapped)
            );
        }
    });
}

#[test]
fn a_resume_during_publishing_is_exact_or_refused() {
    explore(|| {
        let feed = feed(4);
        let publishers = vec![
            publisher(&feed, &["/a/x", "/b", "/a/x"]),
            publisher(&feed, &["/b", "/a/x"]),
        ];
        let resuming = {
            let feed = feed.clone();
            thread::spawn(move || {
                let outlet = Outlet::new();
                let since = Cursor::new(feed.head().epoch, Seq::ZERO);
                match feed.subscribe(scope("/a/"), Some(&since), &outlet) {
                    Ok(subscription) => {
                        let mut record = Record::read(subscription, &outlet);
                        // Whatever the first position was, nothing in scope lies below it.
                        record.start = 0;
                        Some(record)
                    }
                    Err(refused) => {
                        assert_eq!(refused.reason, GapReason::TooOld);
                        assert!(refused.head.seq.get() > 4);
                        None
                    }
                }
            })
        };
        let published = close_after(&feed, publishers);
        if let Some(record) = resuming.join().expect("it reads") {
            record.assert_covers(&published);
        }
    });
}

#[test]
fn a_skip_is_told_to_whoever_reads_meanwhile() {
    explore(|| {
        let feed = feed(4);
        let readers = ["/", "/never"].map(|text| reader(&feed, text));
        let publishers = vec![publisher(&feed, &["/a", "/a", "/a"])];
        let skipping = {
            let feed = feed.clone();
            thread::spawn(move || feed.skip(feed.head().seq.next().next()))
        };
        skipping.join().expect("it skips");
        let published = close_after(&feed, publishers);
        for reader in readers {
            let record = reader.join().expect("it reads");
            record.assert_covers(&published);
            // Publishers may have passed the skipped places before it took the lock.
            let head = feed.head().seq.get();
            let is_hole = head > published.len() as u64;
            assert_eq!(record.reasons.contains(&GapReason::Hole), is_hole);
        }
    });
}

#[test]
fn a_restart_is_told_before_anything_of_the_new_epoch() {
    explore(|| {
        let feed = feed(2);
        let outlet = Outlet::new();
        let mut subscription = feed
            .subscribe(scope("/a"), None, &outlet)
            .expect("a watch without a cursor is never refused");
        let publishers = vec![publisher(&feed, &["/a", "/b", "/a", "/b"])];
        let restarting = {
            let feed = feed.clone();
            let epoch = Epoch::new("e2").expect("a legal epoch");
            thread::spawn(move || feed.restart(epoch, Seq::new(50)))
        };
        let reading = thread::spawn(move || {
            let mut epoch = subscription.position().epoch;
            let mut told = 0;
            loop {
                match subscription.next() {
                    Next::Change(slot) => assert_eq!(slot.cursor().epoch, epoch),
                    Next::Gap {
                        reason: GapReason::Epoch,
                        head,
                    } => {
                        told += 1;
                        epoch = head.epoch;
                    }
                    Next::Gap { .. } => {}
                    Next::Idle => {
                        block_on(poll_fn(|cx| outlet.poll_ready(cx)));
                    }
                    Next::Closed => return told,
                }
                let position = subscription.position();
                assert_eq!(position.epoch, epoch);
                assert_eq!(position.seq.get() >= 50, told == 1, "{position}");
            }
        });
        restarting.join().expect("it restarts");
        close_after(&feed, publishers);
        assert_eq!(reading.join().expect("it reads"), 1);
    });
}

#[test]
fn dropping_watches_while_publishing_leaves_nothing_behind() {
    explore(|| {
        let feed = feed(2);
        let outlet = Outlet::new();
        let subscribe = |text| {
            feed.subscribe(scope(text), None, &outlet)
                .expect("no cursor")
        };
        let dropped = [subscribe("/a"), subscribe("/"), subscribe("/a")];
        let kept = subscribe("/a");
        let publishers = vec![publisher(&feed, &["/a", "/a"]), publisher(&feed, &["/a"])];
        let dropping = dropped.map(|subscription| thread::spawn(move || drop(subscription)));
        let weak = Arc::downgrade(&outlet);
        let reading = thread::spawn(move || {
            let mut kept = kept;
            let mut told = 0;
            loop {
                match kept.next() {
                    Next::Change(_) => told += 1,
                    Next::Gap { .. } => {}
                    // Those that are dropped meanwhile may be named before.
                    Next::Idle => {
                        while block_on(poll_fn(|cx| outlet.poll_ready(cx))) != kept.token() {}
                    }
                    Next::Closed => return told,
                }
            }
        });
        for dropping in dropping {
            dropping.join().expect("it drops");
        }
        close_after(&feed, publishers);
        assert!(reading.join().expect("it reads") <= 3);
        assert_eq!(feed.stats().subscriptions, 0);
        assert!(weak.upgrade().is_none());
    });
}

#[test]
fn a_task_that_wakes_for_other_reasons_too_hears_of_all_its_watches() {
    explore(|| {
        let feed = feed(8);
        let outlets = [Outlet::new(), Outlet::new()];
        let tasks = outlets.map(|outlet| {
            let subscribe = |text| {
                feed.subscribe(scope(text), None, &outlet)
                    .expect("no cursor")
            };
            let mut watches = [subscribe("/a"), subscribe("/b")];
            thread::spawn(move || {
                let mut told = 0;
                while told < 6 {
                    let token = block_on(restless(&outlet));
                    let named = watches.iter_mut().find(|watch| watch.token() == token);
                    let named = named.expect("a token of this task");
                    while let Next::Change(_) = named.next() {
                        told += 1;
                    }
                }
            })
        });
        let publishers = [
            publisher(&feed, &["/a", "/b", "/a"]),
            publisher(&feed, &["/b", "/a", "/b"]),
        ];
        for publisher in publishers {
            publisher.join().expect("it publishes");
        }
        for task in tasks {
            task.join().expect("it hears of everything");
        }
    });
}

/// Waits at `outlet`, polling a few times more than it was woken for.
async fn restless(outlet: &Outlet) -> Token {
    let mut more = 3;
    poll_fn(|cx| {
        let polled = outlet.poll_ready(cx);
        if polled.is_pending() && more > 0 {
            more -= 1;
            cx.waker().wake_by_ref();
        }
        polled
    })
    .await
}
