//! Histories and joins against a model that forgets nothing.

use proptest::prelude::*;

use super::*;
use crate::declaration::Declaration;
use crate::event::Message;
use crate::payload::Payload;

fn topic(name: &str, history: i64) -> Topic {
    let declaration = Declaration::named(name).policy("true").history(history);
    let declaration = Arc::new(declaration.build().unwrap());
    Topic::of(&declaration, &name.parse().unwrap()).unwrap()
}

fn timeline(limits: Limits) -> Timeline {
    Timeline::new(Epoch::from_random([1; 6]), &limits)
}

fn message(data: &str) -> Content {
    Content::Message(Message {
        name: "message".into(),
        data: Payload::parse(data.as_bytes()).unwrap(),
        at_ms: 0,
    })
}

fn seqs(events: impl IntoIterator<Item = Event>) -> Vec<u64> {
    let seqs = events.into_iter().map(|event| event.cursor().seq.get());
    seqs.collect()
}

fn at(timeline: &Timeline, seq: u64) -> Cursor {
    Cursor::new(timeline.feed().head().epoch, Seq::new(seq))
}

fn missed(timeline: &Timeline, topic: &Topic, since: u64) -> Result<Vec<u64>, GapReason> {
    let since = at(timeline, since);
    let followed = timeline.follow(topic, Some(&since), &Outlet::new());
    followed.missed.map(seqs)
}

// C2, C3
#[test]
fn a_cursor_resumes_whole_or_not_at_all() {
    let (timeline, topic) = (timeline(Limits::default()), topic("room", 256));
    for _ in 1..=57 {
        timeline.publish(&topic, message("1"));
    }
    assert_eq!(missed(&timeline, &topic, 40), Ok((41..=57).collect()));
    assert_eq!(missed(&timeline, &topic, 58), Err(GapReason::Ahead));
    for _ in 58..=300 {
        timeline.publish(&topic, message("1"));
    }
    assert_eq!(missed(&timeline, &topic, 43), Err(GapReason::TooOld));
    assert_eq!(missed(&timeline, &topic, 44), Ok((45..=300).collect()));
    let other = Cursor::new(Epoch::from_random([2; 6]), Seq::new(300));
    let followed = timeline.follow(&topic, Some(&other), &Outlet::new());
    assert_eq!(followed.missed.err(), Some(GapReason::Epoch));
    assert_eq!(followed.head, at(&timeline, 300));
}

// C5, C6
#[test]
fn a_position_outlives_what_was_there() {
    let limits = Limits {
        histories: 1,
        ..Limits::default()
    };
    let timeline = timeline(limits);
    let (room, other) = (topic("room", 10), topic("other", 10));
    assert_eq!(missed(&timeline, &room, 0), Ok(vec![]));
    timeline.publish(&room, message("1"));
    assert_eq!(missed(&timeline, &room, 0), Ok(vec![1]));
    let (_, forgotten) = timeline.publish(&other, message("1"));
    assert_eq!(forgotten, 1);
    assert_eq!(missed(&timeline, &room, 1), Ok(vec![]));
    assert_eq!(missed(&timeline, &room, 2), Ok(vec![]));
    assert_eq!(missed(&timeline, &room, 0), Err(GapReason::TooOld));
    assert_eq!(missed(&timeline, &other, 0), Ok(vec![2]));
    timeline.publish(&room, message("1"));
    assert_eq!(missed(&timeline, &room, 0), Err(GapReason::TooOld));
    assert_eq!(missed(&timeline, &room, 2), Ok(vec![3]));
}

#[test]
fn bytes_are_bounded_and_the_oldest_event_goes_first() {
    let bytes = 16 * 1024;
    let timeline = timeline(Limits {
        history_bytes: bytes,
        ..Limits::default()
    });
    let (quiet, busy) = (topic("quiet", 100), topic("busy", 100));
    let data = format!("\"{}\"", "a".repeat(1000));
    timeline.publish(&quiet, message(&data));
    let evicted: u64 = (0..20)
        .map(|_| timeline.publish(&busy, message(&data)).1)
        .sum();
    assert!(timeline.history_bytes() <= bytes);
    assert!(evicted > 10);
    assert_eq!(missed(&timeline, &quiet, 0), Err(GapReason::TooOld));
    assert_eq!(missed(&timeline, &busy, 20), Ok(vec![21]));
    assert_eq!(missed(&timeline, &busy, 1), Err(GapReason::TooOld));
}

#[derive(Clone, Debug)]
enum Step {
    Publish(usize),
    Join { topic: usize, back: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3_usize).prop_map(Step::Publish),
        1 => (0..3_usize, 0..40_u64).prop_map(|(topic, back)| Step::Join { topic, back }),
    ]
}

proptest! {
    // C2, C3, C9: what is replayed and what comes live are together everything after the cursor;
    // a gap is told exactly when more of the topic happened than it keeps.
    #[test]
    fn joins_agree_with_a_model_that_forgets_nothing(
        steps in prop::collection::vec(step(), 1..120)
    ) {
        let timeline = timeline(Limits::default());
        let keeps = [1, 4, 16];
        let topics = [("a", keeps[0]), ("b", keeps[1]), ("c", keeps[2])];
        let topics = topics.map(|(name, keeps)| topic(name, keeps));
        let mut told: [Vec<u64>; 3] = Default::default();
        let mut joined = Vec::new();
        let mut head = 0;
        for step in steps {
            match step {
                Step::Publish(place) => {
                    head += 1;
                    told[place].push(head);
                    let (cursor, _) = timeline.publish(&topics[place], message("1"));
                    prop_assert_eq!(cursor.seq.get(), head);
                }
                Step::Join { topic, back } => {
                    let since = head.saturating_sub(back);
                    let after = told[topic].iter().filter(|seq| **seq > since).count();
                    let cursor = at(&timeline, since);
                    let followed = timeline.follow(&topics[topic], Some(&cursor), &Outlet::new());
                    prop_assert_eq!(followed.head.seq.get(), head);
                    let whole = after <= keeps[topic] as usize;
                    prop_assert_eq!(followed.missed.is_ok(), whole);
                    let (start, replay) = match followed.missed {
                        Ok(missed) => (since, seqs(missed)),
                        Err(_) => (head, Vec::new()),
                    };
                    joined.push((topic, start, replay, followed.subscription));
                }
            }
        }
        for (topic, start, mut seen, mut subscription) in joined {
            while let feed::Next::Change(slot) = subscription.next() {
                seen.push(slot.seq().get());
            }
            let after = told[topic].iter().copied().filter(|seq| *seq > start);
            let expected: Vec<u64> = after.collect();
            prop_assert_eq!(seen, expected);
        }
    }
}
