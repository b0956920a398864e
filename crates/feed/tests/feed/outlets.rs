//! An outlet names what is ready, once, and wakes its task without fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use feed::{Feed, Next, Outlet};

use super::{Note, empty_feed, exact, prefix, read_seqs, ready, watch};

const RING_LEN: usize = 8;

#[derive(Default)]
struct Bell(AtomicUsize);

impl Bell {
    fn rung(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Polls until the outlet has nothing, so that it keeps the bell.
fn wait_at(outlet: &Outlet, bell: &Arc<Bell>) -> usize {
    let waker = Waker::from(bell.clone());
    let mut cx = Context::from_waker(&waker);
    let mut named = 0;
    while outlet.poll_ready(&mut cx).is_ready() {
        named += 1;
    }
    named
}

#[test]
fn a_hundred_watches_of_one_task_cost_one_wake() {
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let bell = Arc::default();
    let mut watches: Vec<_> = (0..100)
        .map(|_| watch(&feed, prefix("/"), &outlet))
        .collect();
    wait_at(&outlet, &bell);
    for _ in 0..3 {
        feed.publish(Note("/a"));
    }
    assert_eq!(bell.rung(), 1);
    assert_eq!(wait_at(&outlet, &bell), 100);
    for subscription in &mut watches {
        assert_eq!(read_seqs(subscription), [1, 2, 3]);
    }
    feed.publish(Note("/a"));
    assert_eq!(bell.rung(), 2);
}

#[test]
fn only_the_tasks_of_concerned_watches_wake() {
    let feed = empty_feed(RING_LEN);
    let scopes = [
        exact("/a/b"),
        prefix("/a/"),
        prefix("/"),
        exact("/a"),
        prefix("/ab/"),
    ];
    let tasks: Vec<_> = scopes
        .into_iter()
        .map(|scope| {
            let outlet = Outlet::new();
            let subscription = watch(&feed, scope, &outlet);
            let bell = Arc::<Bell>::default();
            wait_at(&outlet, &bell);
            (outlet, subscription, bell)
        })
        .collect();
    feed.publish(Note("/a/b"));
    let rung: Vec<_> = tasks.iter().map(|(_, _, bell)| bell.rung()).collect();
    assert_eq!(rung, [1, 1, 1, 0, 0]);
}

#[test]
fn every_concerned_task_wakes_once_however_their_watches_follow_each_other() {
    for order in [[0, 1, 1, 2], [0, 1, 2, 1], [1, 1, 0, 2], [1, 0, 2, 1]] {
        let feed = empty_feed(RING_LEN);
        let tasks: [_; 3] = std::array::from_fn(|_| (Outlet::new(), Arc::<Bell>::default()));
        let _watches = order.map(|task| watch(&feed, prefix("/"), &tasks[task].0));
        for (outlet, bell) in &tasks {
            wait_at(outlet, bell);
        }
        feed.publish(Note("/a"));
        assert_eq!(tasks.map(|(_, bell)| bell.rung()), [1, 1, 1], "{order:?}");
    }
}

#[test]
fn publishing_touches_no_watch_that_it_does_not_concern() {
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let others: Vec<_> = (0..1_000)
        .map(|number| watch(&feed, exact(&format!("/other/{number}")), &outlet))
        .collect();
    feed.publish(Note("/a"));
    assert_eq!(feed.stats().touched, 0);
    let _concerned = watch(&feed, exact("/a"), &outlet);
    feed.publish(Note("/a"));
    assert_eq!(feed.stats().touched, 1);
    assert_eq!(feed.stats().subscriptions, others.len() + 1);
}

#[test]
fn a_watch_is_named_again_only_after_idle() {
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let mut subscription = watch(&feed, prefix("/"), &outlet);
    feed.publish(Note("/a"));
    assert_eq!(ready(&outlet), [subscription.token()]);
    feed.publish(Note("/a"));
    assert!(matches!(subscription.next(), Next::Change(_)));
    feed.publish(Note("/a"));
    assert!(ready(&outlet).is_empty());
    assert_eq!(read_seqs(&mut subscription), [2, 3]);
    feed.publish(Note("/a"));
    assert_eq!(ready(&outlet), [subscription.token()]);
}

#[test]
fn a_watch_read_before_it_was_named_is_named_once() {
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let mut subscription = watch(&feed, prefix("/"), &outlet);
    for _ in 0..3 {
        feed.publish(Note("/a"));
        read_seqs(&mut subscription);
    }
    assert_eq!(ready(&outlet), [subscription.token()]);
}

#[test]
fn dropped_watches_are_not_named_and_do_not_pile_up() {
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let kept = watch(&feed, prefix("/"), &outlet);
    for _ in 0..1_000 {
        let dropped = watch(&feed, prefix("/"), &outlet);
        feed.publish(Note("/a"));
        drop(dropped);
    }
    assert_eq!(ready(&outlet), [kept.token()]);
    assert_eq!(feed.stats().subscriptions, 1);
    drop(kept);
    let touched = feed.stats().touched;
    feed.publish(Note("/a"));
    assert_eq!(feed.stats().touched, touched);
}

#[test]
fn an_outlet_lives_no_longer_than_its_task_and_watches() {
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let subscription = watch(&feed, prefix("/"), &outlet);
    feed.publish(Note("/a"));
    let weak = Arc::downgrade(&outlet);
    drop(outlet);
    assert!(weak.upgrade().is_some());
    drop(subscription);
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_waker_may_use_the_feed() {
    struct Meddler(Feed<Note>);
    impl Wake for Meddler {
        fn wake(self: Arc<Self>) {
            let outlet = Outlet::new();
            drop(watch(&self.0, prefix("/"), &outlet));
            self.0.publish(Note("/b"));
        }
    }
    let feed = empty_feed(RING_LEN);
    let outlet = Outlet::new();
    let mut subscription = watch(&feed, exact("/a"), &outlet);
    let waker = Waker::from(Arc::new(Meddler(feed.clone())));
    let mut cx = Context::from_waker(&waker);
    assert_eq!(outlet.poll_ready(&mut cx), Poll::Pending);
    feed.publish(Note("/a"));
    assert_eq!(read_seqs(&mut subscription), [1]);
    assert_eq!(subscription.position().seq.get(), 2);
}

#[test]
#[should_panic(expected = "a prefix ends in a slash")]
fn a_prefix_that_would_miss_changes_is_no_scope() {
    let _ = empty_feed(RING_LEN).subscribe(prefix("/a"), None, &Outlet::new());
}
