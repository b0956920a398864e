//! Many publishers on real threads.

use std::collections::BTreeSet;
use std::thread;

use feed::{Encoding, Feed, Next, Outlet};
use wire::{Epoch, Seq};

use super::{Note, empty_feed, prefix, read_seqs, watch};

const PUBLISHERS: usize = 8;
const EACH: usize = 500;

#[test]
fn eight_publishers_give_one_sequence_without_holes() {
    let feed = empty_feed((PUBLISHERS * EACH).next_power_of_two());
    let outlet = Outlet::new();
    let mut subscription = watch(&feed, prefix("/"), &outlet);
    let places: BTreeSet<u64> = thread::scope(|scope| {
        let publish = || -> Vec<Seq> { (0..EACH).map(|_| feed.publish(Note("/a"))).collect() };
        let threads: Vec<_> = (0..PUBLISHERS).map(|_| scope.spawn(publish)).collect();
        let places = threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("a publisher doesn't panic"));
        places.map(Seq::get).collect()
    });
    let all: Vec<u64> = (1..=(PUBLISHERS * EACH) as u64).collect();
    assert!(places.into_iter().eq(all.iter().copied()));
    assert_eq!(read_seqs(&mut subscription), all);
}

#[test]
fn an_encoding_is_made_once_for_all_readers() {
    let feed: Feed<Note> = Feed::new(Epoch::from_random([1; 6]), Seq::ZERO, 8);
    let outlet = Outlet::new();
    let mut first = watch(&feed, prefix("/"), &outlet);
    let mut second = watch(&feed, prefix("/"), &outlet);
    feed.publish(Note("/a"));
    let (Next::Change(first), Next::Change(second)) = (first.next(), second.next()) else {
        panic!("both have a change")
    };
    let made = first.encoded(Encoding::Block, |cursor, note| {
        format!("{cursor} {}", note.0).into()
    });
    let shared = second.encoded(Encoding::Block, |_, _| panic!("made before"));
    assert_eq!(made.as_ptr(), shared.as_ptr());
    let other = second.encoded(Encoding::Json, |_, _| "{}".into());
    assert_eq!(other, "{}");
}
