//! Rosters and deltas against a model of who is here.

use std::collections::BTreeMap as Map;

use proptest::prelude::*;

use super::*;

fn member(name: &str) -> Member {
    Member {
        id: name.into(),
        actor: Some("ada".into()),
        meta: None,
        at_ms: 0,
        stamp: 0,
    }
}

fn meta(text: &str) -> Payload {
    Payload::parse(text.as_bytes()).unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn announced(presence: &mut Presence, at: u64) -> Vec<Delta> {
    let mut deltas = Vec::new();
    presence.announce(seconds(at), |delta| {
        deltas.push(delta);
        Seq::new(deltas.len() as u64)
    });
    deltas
}

// C42
#[test]
fn a_roster_names_the_first_and_counts_all() {
    let mut presence = Presence::default();
    for number in 0..5000 {
        presence.enter(member(&format!("{number:05}")));
    }
    let deltas = announced(&mut presence, 0);
    let sizes: Vec<usize> = deltas.iter().map(|delta| delta.members.len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 5000);
    assert!(sizes.iter().all(|size| *size <= DELTA_MEMBERS_MAX));
    let roster = presence.roster();
    assert_eq!((roster.members.len(), roster.total), (ROSTER_MAX, 5000));
    assert!(Arc::ptr_eq(&roster, &presence.roster()));
    presence.leave(&"00000".into());
    assert_eq!(announced(&mut presence, 1)[0].movement, Movement::Leave);
    let after = presence.roster();
    assert_eq!((&*after.members[0].id, after.total), ("00001", 4999));
}

// C45
#[test]
fn the_last_writer_wins_and_ties_change_nothing() {
    let mut presence = Presence::default();
    let id: Id = "1".into();
    presence.enter(member("1"));
    assert!(presence.update(&id, meta("\"b\""), 5, 0));
    assert!(!presence.update(&id, meta("\"a\""), 4, 0));
    assert!(!presence.update(&id, meta("\"c\""), 5, 0));
    assert!(!presence.update(&"2".into(), meta("1"), 9, 0));
    announced(&mut presence, 0);
    let known = presence.roster().members[0].clone();
    assert_eq!((&known.meta, known.at_ms), (&Some(meta("\"b\"")), 1));
    presence.enter(member("1"));
    assert!(announced(&mut presence, 1).is_empty());
}

// C47
#[test]
fn who_drops_and_returns_between_two_announcements_is_no_news() {
    let mut presence = Presence::default();
    presence.enter(member("1"));
    assert_eq!(announced(&mut presence, 0).len(), 1);
    presence.leave(&"1".into());
    presence.enter(member("1"));
    presence.enter(member("2"));
    presence.leave(&"2".into());
    assert!(presence.has_news());
    assert!(announced(&mut presence, 1).is_empty());
}

// C46
#[test]
fn those_who_come_are_told_before_those_who_go() {
    let mut presence = Presence::default();
    presence.enter(member("old"));
    announced(&mut presence, 0);
    presence.leave(&"old".into());
    presence.enter(member("new"));
    let movements: Vec<Movement> = announced(&mut presence, 1)
        .iter()
        .map(|delta| delta.movement)
        .collect();
    assert_eq!(movements, [Movement::Join, Movement::Leave]);
}

#[test]
fn announcements_keep_their_distance() {
    let mut presence = Presence::default();
    assert!(presence.may_announce(seconds(0)));
    presence.enter(member("1"));
    announced(&mut presence, 5);
    assert!(!presence.may_announce(seconds(5)));
    assert!(presence.may_announce(seconds(5) + ANNOUNCE_INTERVAL));
}

#[derive(Clone, Debug)]
enum Step {
    Announce,
    Enter(u8),
    Leave(u8),
    Observe,
    Update(u8, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..6_u8;
    prop_oneof![
        Just(Step::Announce),
        who.clone().prop_map(Step::Enter),
        who.clone().prop_map(Step::Leave),
        Just(Step::Observe),
        (who, 0..4_u64).prop_map(|(who, stamp)| Step::Update(who, stamp)),
    ]
}

/// What one who follows the deltas knows: by member, and as a count.
struct Observer {
    members: Map<Id, Option<Payload>>,
    total: usize,
}

impl Observer {
    fn apply(&mut self, delta: &Delta) {
        for member in &delta.members {
            match delta.movement {
                Movement::Join => {
                    self.total += 1;
                    let before = self.members.insert(member.id.clone(), member.meta.clone());
                    assert_eq!(before, None, "joined once");
                }
                Movement::Leave => {
                    self.total -= 1;
                    assert!(self.members.remove(&member.id).is_some(), "was here");
                }
                Movement::Update => {
                    let before = self.members.insert(member.id.clone(), member.meta.clone());
                    assert!(before.is_some(), "was here");
                }
            }
        }
    }
}

proptest! {
    // C42, C45, C47
    #[test]
    fn observers_arrive_at_the_model(steps in prop::collection::vec(step(), 1..80)) {
        let mut presence = Presence::default();
        let mut model: Map<Id, (Option<Payload>, u64)> = Map::new();
        let mut observers: Vec<Observer> = Vec::new();
        for step in steps.into_iter().chain([Step::Observe, Step::Announce]) {
            match step {
                Step::Enter(who) => {
                    presence.enter(member(&who.to_string()));
                    model.entry(who.to_string().into()).or_default();
                }
                Step::Leave(who) => {
                    presence.leave(&who.to_string().into());
                    model.remove(&*who.to_string());
                }
                Step::Update(who, stamp) => {
                    let said = meta(&stamp.to_string());
                    let is_news = presence.update(&who.to_string().into(), said.clone(), stamp, 0);
                    let known = model.get_mut(&*who.to_string()).filter(|known| known.1 < stamp);
                    prop_assert_eq!(is_news, known.is_some());
                    if let Some(known) = known {
                        *known = (Some(said), stamp);
                    }
                }
                Step::Observe => {
                    let roster = presence.roster();
                    let members = roster.members.iter();
                    observers.push(Observer {
                        members: members
                            .map(|member| (member.id.clone(), member.meta.clone()))
                            .collect(),
                        total: roster.total,
                    });
                }
                Step::Announce => {
                    for delta in announced(&mut presence, 0) {
                        observers.iter_mut().for_each(|observer| observer.apply(&delta));
                    }
                    prop_assert!(!presence.has_news());
                    let expected: Map<Id, Option<Payload>> =
                        model.iter().map(|(id, known)| (id.clone(), known.0.clone())).collect();
                    for observer in &observers {
                        prop_assert_eq!(&observer.members, &expected);
                        prop_assert_eq!(observer.total, expected.len());
                    }
                }
            }
        }
    }
}
