//! A write under an idempotency key: done once, however often it is asked for.

use wire::ContentHash;

use super::order::{self, Order, World};
use crate::fault::{Code, Fault};
use crate::idempotency::{Begun, Digest, Kept, KeyError, Keys};

/// The answer to a keyed write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) kept: Kept,
    /// The first request had this answer, and nothing was done for this one.
    pub(super) replayed: bool,
}

/// Why a keyed write has no answer to keep.
#[derive(Debug)]
pub(super) enum Failed {
    Key(KeyError),
    Write(Fault),
}

/// The digest of a key that `owner` sent. Keys of one caller say nothing to another.
pub(super) fn key_digest(owner: &str, key: &str) -> Digest {
    ContentHash::of(format!("{owner}\n{key}").as_bytes())
}

/// Does `order` unless it was done under `key` before. Blocks on the disk.
pub(super) fn run(
    keys: &Keys,
    key: Digest,
    order: &Order,
    world: &World,
) -> Result<Answered, Failed> {
    let intent = serde_json::to_value(order.intent(world)).unwrap_or_default();
    let begun = keys.begin(key, order.digest(), intent, (world.clock)());
    let reservation = match begun.map_err(Failed::Key)? {
        Begun::Fresh(reservation) => reservation,
        Begun::Repeat(kept) => {
            let kept = (*kept).clone();
            return Ok(Answered {
                kept,
                replayed: true,
            });
        }
    };
    let kept = match order.run(world) {
        Ok(written) => order::written(&order.path, &written),
        Err(fault) => match order::refused(&fault) {
            Some(kept) => kept,
            None => {
                // After a failed sync only a restart knows what the disk took.
                if fault.code != Code::Unready {
                    reservation.free();
                }
                return Err(Failed::Write(fault));
            }
        },
    };
    reservation.keep(kept.clone());
    Ok(Answered {
        kept,
        replayed: false,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use auth::{Authority, Caller};
    use bytes::Bytes;
    use documents::{Config, FileStore, Which};
    use jiff::Timestamp;
    use storage::Storage;
    use testkit::disk::{CrashingDisk, Survives};
    use wire::{DocPath, Epoch};

    use super::super::condition::Conditions;
    use super::super::intent;
    use super::super::order::Verb;
    use super::*;

    /// Power cuts with a random part of the unsynced, for each point.
    const CUTS: u64 = 2;

    /// Two notes and a version take more of the disk's operations than this.
    const POINTS_MIN: u64 = 15;

    struct Place {
        world: World,
        keys: Keys,
    }

    fn open(disk: &CrashingDisk) -> Place {
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        let config = Config {
            ring_len: 64,
            ..Config::default()
        };
        let store = FileStore::open_in(storage.clone(), config, &mut |_| {}).unwrap();
        let epoch = Epoch::from_random([3; 6]);
        let keys = Keys::open(storage, 16, epoch, Timestamp::now(), &mut |it| {
            intent::judge(&store, it)
        });
        let world = World {
            store,
            authority: Authority::dev(),
            clock: Timestamp::now,
        };
        Place {
            world,
            keys: keys.unwrap(),
        }
    }

    fn order(verb: Verb, body: &str) -> Order {
        Order {
            verb,
            path: DocPath::parse("/tea.md").unwrap(),
            body: Bytes::copy_from_slice(body.as_bytes()),
            metadata: Vec::new(),
            conditions: Conditions::default(),
            caller: Caller::anonymous(),
        }
    }

    /// A disk with a document of one version.
    fn disk() -> CrashingDisk {
        let disk = CrashingDisk::new();
        let place = open(&disk);
        order(Verb::Publish, "one").run(&place.world).unwrap();
        place.world.store.close().unwrap();
        disk
    }

    fn once(place: &Place, order: &Order) -> Result<Answered, Failed> {
        run(&place.keys, key_digest("", "key"), order, &place.world)
    }

    fn body(place: &Place) -> (u64, String) {
        let path = DocPath::parse("/tea.md").unwrap();
        let fetched = place.world.store.fetch(&path, Which::Current).unwrap();
        let text = String::from_utf8(fetched.body.to_vec()).unwrap();
        (fetched.info.version, text)
    }

    /// Crashes the keyed write at every operation, then asks again on what is left.
    fn crash_everywhere(verb: Verb, addition: &str, expected: &str) {
        let mut points = 0;
        for point in 0.. {
            let disk = disk();
            let place = open(&disk);
            disk.crash_after(point);
            let _ = once(&place, &order(verb, addition));
            let is_whole = disk.stat(Path::new("tea.md")).is_ok();
            for survives in Survives::all(CUTS) {
                let left = disk.crash(survives);
                let again = open(&left);
                let answered = once(&again, &order(verb, addition)).unwrap_or_else(|failed| {
                    panic!("{failed:?} at {point} with {survives:?}: {:?}", disk.log())
                });
                assert_eq!(answered.kept.status, 201, "at {point}");
                assert_eq!(body(&again), (2, expected.to_owned()), "at {point}");
                let repeated = once(&again, &order(verb, addition)).unwrap();
                assert!(repeated.replayed);
                again.world.store.close().unwrap();
            }
            points += 1;
            if is_whole {
                break;
            }
        }
        assert!(points > POINTS_MIN, "only {points} points");
    }

    #[test]
    fn an_append_is_done_once_wherever_the_power_is_cut() {
        crash_everywhere(Verb::Append, "two", "one\ntwo");
    }

    #[test]
    fn a_publish_is_done_once_wherever_the_power_is_cut() {
        crash_everywhere(Verb::Publish, "two", "two");
    }

    #[test]
    fn the_death_of_a_write_that_others_followed_is_judged_by_the_versions() {
        let disk = disk();
        let place = open(&disk);
        let lost = order(Verb::Append, "mine");
        let noted = serde_json::to_value(lost.intent(&place.world)).unwrap();
        let publish = |body: &str| order(Verb::Publish, body).run(&place.world).unwrap();
        publish("other");
        let judge = || intent::judge(&place.world.store, &noted);
        assert!(matches!(judge(), crate::idempotency::Verdict::NotDone));
        publish("other\nmine");
        publish("later");
        let crate::idempotency::Verdict::Done(kept) = judge() else {
            panic!("it is there");
        };
        assert!(kept.body.contains("\"version\":3"), "{}", kept.body);
        assert!(disk.contents().contains_key(Path::new("tea.md")));
    }
}
