//! Random operations against a model that keeps everything in plain lists.
//!
//! 1. The model remembers every change, and per watch the list of those in scope that weren't read.
//! 2. Each operation runs on both. What `next`, `subscribe` and `poll_ready` give must agree.
//! 3. After each operation every watch's position must be the model's: the highest place that was
//!    ever the head and lies before the first change which the watch is owed.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use feed::{Feed, Next, Outlet, Scope, Subscription, Token};
use proptest::prelude::*;
use proptest::sample::select;
use wire::{Cursor, Epoch, GapReason, Seq};

use super::{Note, epoch, exact, prefix, ready};

const RING_LEN: usize = 8;
const NAMES: [&str; 6] = ["/a", "/a/x", "/a/y", "/b/x/z", "/ab", "/b"];
const PREFIXES: [&str; 5] = ["/", "/a/", "/b/", "/b/x/", "/c/"];

#[derive(Clone, Debug)]
enum Step {
    Close,
    Drop(usize),
    Next { watch: usize, times: usize },
    Poll,
    Publish(&'static str),
    PublishAt { ahead: u64, name: &'static str },
    Restart { head: u64 },
    Skip { ahead: u64 },
    Subscribe { scope: Scope, since: Since },
}

#[derive(Clone, Copy, Debug)]
enum Since {
    Ahead,
    Behind(u64),
    Head,
    OtherEpoch,
}

struct Watch {
    subscription: Subscription<Note>,
    scope: Scope,
    epoch: Epoch,
    /// Places that its position may take.
    heads: BTreeSet<u64>,
    unread: VecDeque<u64>,
    gap: Option<GapReason>,
    ended: bool,
    waiting: bool,
}

struct Model {
    feed: Feed<Note>,
    outlet: Arc<Outlet>,
    epoch: Epoch,
    epochs: usize,
    head: u64,
    floor: u64,
    changes: Vec<(u64, &'static str)>,
    closed: bool,
    watches: Vec<Watch>,
    ready: BTreeSet<Token>,
}

#[derive(Debug, PartialEq)]
enum Told {
    Change(u64, &'static str),
    Closed,
    Gap(GapReason, Cursor),
    Idle,
}

impl Model {
    fn new() -> Self {
        let first = epoch("e0");
        Self {
            feed: Feed::new(first.clone(), Seq::ZERO, RING_LEN),
            outlet: Outlet::new(),
            epoch: first,
            epochs: 1,
            head: 0,
            floor: 0,
            changes: Vec::new(),
            closed: false,
            watches: Vec::new(),
            ready: BTreeSet::new(),
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Close => {
                self.feed.close();
                self.closed = true;
                self.call(|_| true);
            }
            Step::Drop(at) if !self.watches.is_empty() => {
                let watch = self.watches.remove(at % self.watches.len());
                self.ready.remove(&watch.subscription.token());
            }
            Step::Next { watch, times } if !self.watches.is_empty() => {
                let at = watch % self.watches.len();
                (0..times).for_each(|_| self.next(at));
            }
            Step::Drop(_) | Step::Next { .. } => {}
            Step::Poll => self.poll(),
            Step::Publish(name) => {
                let seq = self.feed.publish(Note(name));
                assert_eq!(seq.get(), self.head + 1);
                self.publish(seq.get(), name);
            }
            Step::PublishAt { ahead, name } => self.publish_at(self.head + ahead, name),
            Step::Restart { head } => {
                self.epoch = epoch(&format!("e{}", self.epochs));
                self.epochs += 1;
                self.feed.restart(self.epoch.clone(), Seq::new(head));
                self.lose(GapReason::Epoch, head);
            }
            Step::Skip { ahead } => {
                self.feed.skip(Seq::new(self.head + ahead));
                if ahead > 0 {
                    self.lose(GapReason::Hole, self.head + ahead);
                }
            }
            Step::Subscribe { scope, since } => self.subscribe(scope, since),
        }
        self.check();
    }

    fn publish_at(&mut self, seq: u64, name: &'static str) {
        let placed = self.feed.publish_at(Seq::new(seq), Note(name));
        assert_eq!(placed.is_ok(), seq > self.head);
        if placed.is_ok() {
            self.publish(seq, name);
        }
    }

    fn publish(&mut self, seq: u64, name: &'static str) {
        self.head = seq;
        self.changes.push((seq, name));
        if let Some(evicted) = self.changes.len().checked_sub(RING_LEN + 1) {
            self.floor = self.changes[evicted].0;
        }
        for watch in &mut self.watches {
            if watch.gap.is_none() {
                watch.heads.insert(seq);
                if watch.scope.contains(name) {
                    watch.unread.push_back(seq);
                }
            }
        }
        self.call(|watch| watch.scope.contains(name) && watch.gap.is_none());
    }

    fn lose(&mut self, reason: GapReason, head: u64) {
        self.head = head;
        self.floor = head;
        self.changes.clear();
        for watch in &mut self.watches {
            watch.gap = Some(reason);
        }
        self.call(|_| true);
    }

    /// Those who wait are named.
    fn call(&mut self, concerned: impl Fn(&Watch) -> bool) {
        for watch in &mut self.watches {
            if concerned(watch) && std::mem::take(&mut watch.waiting) {
                self.ready.insert(watch.subscription.token());
            }
        }
    }

    fn subscribe(&mut self, scope: Scope, since: Since) {
        let (since, refusal) = match since {
            Since::Head => (None, None),
            Since::Ahead => (
                Some((self.epoch.clone(), self.head + 1)),
                Some(GapReason::Ahead),
            ),
            Since::OtherEpoch => (Some((epoch("e-other"), self.head)), Some(GapReason::Epoch)),
            Since::Behind(by) => {
                let seq = self.head.saturating_sub(by);
                let refusal = (seq < self.floor).then_some(GapReason::TooOld);
                (Some((self.epoch.clone(), seq)), refusal)
            }
        };
        let since = since.map(|(epoch, seq)| Cursor::new(epoch, Seq::new(seq)));
        let subscribed = self
            .feed
            .subscribe(scope.clone(), since.as_ref(), &self.outlet);
        let subscription = match (subscribed, refusal) {
            (Ok(subscription), None) => subscription,
            (Err(refused), Some(reason)) => return assert_eq!(refused.reason, reason),
            (subscribed, refusal) => panic!("{subscribed:?} where {refusal:?} was due"),
        };
        let start = since.map_or(self.head, |since| since.seq.get());
        let later = self.changes.iter().filter(|(seq, _)| *seq > start);
        let mut watch = Watch {
            heads: later.clone().map(|(seq, _)| *seq).chain([start]).collect(),
            unread: later
                .filter(|(_, name)| scope.contains(name))
                .map(|(seq, _)| *seq)
                .collect(),
            subscription,
            scope,
            epoch: self.epoch.clone(),
            gap: None,
            ended: false,
            waiting: true,
        };
        if self.closed || !watch.unread.is_empty() {
            watch.waiting = false;
            self.ready.insert(watch.subscription.token());
        }
        self.watches.push(watch);
    }

    fn next(&mut self, at: usize) {
        let expected = self.expected(at);
        let watch = &mut self.watches[at];
        let told = match watch.subscription.next() {
            Next::Change(slot) => Told::Change(slot.seq().get(), slot.change().0),
            Next::Closed => Told::Closed,
            Next::Gap { reason, head } => Told::Gap(reason, head),
            Next::Idle => Told::Idle,
        };
        assert_eq!(told, expected);
    }

    fn expected(&mut self, at: usize) -> Told {
        let watch = &mut self.watches[at];
        if watch.ended {
            return Told::Closed;
        }
        let first = watch.unread.front().copied();
        let lapped = first.filter(|first| *first <= self.floor);
        if let Some(reason) = watch.gap.or_else(|| lapped.map(|_| GapReason::Lapped)) {
            watch.gap = None;
            watch.unread.clear();
            watch.epoch = self.epoch.clone();
            watch.heads = BTreeSet::from([self.head]);
            return Told::Gap(reason, Cursor::new(self.epoch.clone(), Seq::new(self.head)));
        }
        if let Some(seq) = watch.unread.pop_front() {
            let (_, name) = self.changes[self.changes.partition_point(|(at, _)| *at < seq)];
            return Told::Change(seq, name);
        }
        if self.closed {
            watch.ended = true;
            return Told::Closed;
        }
        watch.waiting = true;
        Told::Idle
    }

    fn poll(&mut self) {
        let named = ready(&self.outlet);
        let unique: BTreeSet<Token> = named.iter().copied().collect();
        assert_eq!(unique.len(), named.len(), "named twice");
        assert_eq!(unique, std::mem::take(&mut self.ready));
    }

    fn check(&self) {
        assert_eq!(
            self.feed.head(),
            Cursor::new(self.epoch.clone(), Seq::new(self.head))
        );
        assert_eq!(self.feed.stats().subscriptions, self.watches.len());
        for watch in &self.watches {
            let owed = watch.unread.front().copied().unwrap_or(u64::MAX);
            let position = watch.heads.range(..owed).next_back();
            let position = position.expect("a watch starts at a head");
            let expected = Cursor::new(watch.epoch.clone(), Seq::new(*position));
            assert_eq!(watch.subscription.position(), expected);
        }
    }
}

fn scopes() -> impl Strategy<Value = Scope> {
    prop_oneof![
        select(&NAMES[..]).prop_map(exact),
        select(&PREFIXES[..]).prop_map(prefix),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    let since = prop_oneof![
        4 => Just(Since::Head),
        4 => (0..2 * RING_LEN as u64).prop_map(Since::Behind),
        1 => Just(Since::Ahead),
        1 => Just(Since::OtherEpoch),
    ];
    prop_oneof![
        12 => select(&NAMES[..]).prop_map(Step::Publish),
        6 => (0..4u64, select(&NAMES[..]))
            .prop_map(|(ahead, name)| Step::PublishAt { ahead, name }),
        6 => (scopes(), since).prop_map(|(scope, since)| Step::Subscribe { scope, since }),
        12 => (0..8usize, 1..6usize).prop_map(|(watch, times)| Step::Next { watch, times }),
        4 => Just(Step::Poll),
        2 => (0..8usize).prop_map(Step::Drop),
        1 => (0..3u64).prop_map(|ahead| Step::Skip { ahead }),
        1 => (0..5u64).prop_map(|head| Step::Restart { head }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn agrees_with_the_model(
        steps in prop::collection::vec(steps(), 1..120),
        close_at in 0..240usize,
    ) {
        let mut model = Model::new();
        for (at, step) in steps.into_iter().enumerate() {
            if at == close_at {
                model.run(Step::Close);
            }
            model.run(step);
        }
        model.poll();
    }
}
