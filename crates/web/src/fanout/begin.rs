//! The beginning of a watch: where it begins, and with whom it is told.

use auth::WatchRight;
use bytes::Bytes;
use channels::{Joined, Start};
use wire::{Cursor, GapReason};

use super::cohort::{Alone, Manner, Member, Watch, Way};
use super::slab::Key;
use super::worker::{Owner, Worker};
use crate::stream::{
    Channel, Documents, Farewell, Plan, Reader, Since, Source, beginning, roster_object,
    tell_roster,
};

/// A watch that began.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) watch: Key,
    /// Everything after this is told.
    pub(crate) cursor: Cursor,
    /// Why that is not where it was asked to begin.
    pub(crate) missed: Option<GapReason>,
    /// It goes on from where it was asked to.
    pub(crate) is_resumed: bool,
    /// Who is present, where members are told of each other.
    pub(crate) roster: Option<Bytes>,
}

impl Worker {
    /// Begins the one watch of a stream.
    pub(super) fn begin_stream(&mut self, key: Key, plan: Plan) {
        let Plan {
            manner,
            source,
            since,
        } = plan;
        let (voice, scopes) = (manner.voice, manner.scopes.clone());
        let begun = match source {
            Source::Documents(rights) => self.begin_documents(key, manner, rights, &since),
            Source::Channel(joining) => {
                let position = match &since {
                    Since::After(cursor) => Some(cursor),
                    Since::Head | Since::Malformed => None,
                };
                let now = self.face.streams.now();
                let joining = *joining;
                let verdict = joining.verdict;
                let joined = joining
                    .reservation
                    .join(verdict, position, &self.outlet, now);
                self.lines[key].seats = Some(Box::new(joining.socket));
                let Ok(joined) = joined else {
                    // The caller changed between the verdict and the seat.
                    let farewell = Farewell {
                        reason: "revoked",
                        come_back: None,
                    };
                    return self.leave(key, farewell);
                };
                self.begin_channel(key, manner, joined)
            }
        };
        let mut words = beginning(&self.face, voice, &scopes, &begun.cursor, begun.missed);
        if let Some(roster) = &begun.roster {
            tell_roster(voice, &scopes, roster, &mut words);
        }
        self.lines[key].say(&words, usize::MAX);
    }

    /// Begins to follow documents.
    ///
    /// One that begins now, or where its cohort is, joins the cohort at once; others catch up.
    pub(crate) fn begin_documents(
        &mut self,
        line: Key,
        manner: Manner,
        rights: Vec<WatchRight>,
        since: &Since,
    ) -> Begun {
        let feed = self.face.store.feed().clone();
        let cohort = self.cohort_of(manner, |outlet| {
            Reader::Documents(Documents::open_at_head(&feed, &rights, outlet))
        });
        let head = self.cohorts[cohort].reader.position();
        let (cursor, missed, is_resumed) = match since {
            Since::Head => (head, None, false),
            Since::Malformed => (head, Some(GapReason::Malformed), false),
            Since::After(cursor) if *cursor == head => (head, None, true),
            Since::After(cursor) => {
                match Documents::open(&feed, rights, Some(cursor), &self.outlet) {
                    Ok(documents) => {
                        let watch = self.add_alone(line, cohort, Reader::Documents(documents));
                        return Begun {
                            watch,
                            cursor: cursor.clone(),
                            missed: None,
                            is_resumed: true,
                            roster: None,
                        };
                    }
                    Err(refused) => (head, Some(refused.reason), false),
                }
            }
        };
        Begun {
            watch: self.add_together(line, cohort, &cursor),
            cursor,
            missed,
            is_resumed,
            roster: None,
        }
    }

    /// Begins to follow a channel in which a seat was taken.
    pub(crate) fn begin_channel(&mut self, line: Key, manner: Manner, joined: Joined) -> Begun {
        let hub = self.face.streams.channels.clone();
        let hub = hub.expect("a seat is one of a hub");
        let cohort = self.cohort_of(manner, |outlet| Reader::shared(&hub, &joined.topic, outlet));
        let (missed, is_resumed) = match joined.start {
            Start::Fresh => (None, false),
            Start::Gap(reason) => (Some(reason), false),
            Start::Resumed => (None, true),
        };
        let watch = self.add_alone(line, cohort, Reader::Channel(Channel::new(joined.watch)));
        Begun {
            watch,
            cursor: joined.cursor,
            missed,
            is_resumed,
            roster: joined.roster.map(|roster| roster_object(&roster)),
        }
    }

    fn add_together(&mut self, line: Key, cohort: Key, from: &Cursor) -> Key {
        let members = &mut self.cohorts[cohort].members;
        let way = Way::Together(members.len());
        let watch = self.watches.insert_with(|watch| {
            members.push(Member {
                line,
                watch,
                from: from.seq,
            });
            Watch {
                line,
                cohort,
                way,
                is_suspended: false,
            }
        });
        self.cohorts[cohort].watches += 1;
        self.lines[line].watches.push(watch);
        watch
    }

    fn add_alone(&mut self, line: Key, cohort: Key, reader: Reader) -> Key {
        let owners = &mut self.owners;
        let watch = self.watches.insert_with(|watch| {
            reader.visit_tokens(|token| _ = owners.insert(token, Owner::Watch(watch)));
            Watch {
                line,
                cohort,
                way: Way::Alone(Box::new(Alone {
                    reader,
                    missed: None,
                })),
                is_suspended: false,
            }
        });
        self.cohorts[cohort].watches += 1;
        self.lines[line].alone += 1;
        self.lines[line].watches.push(watch);
        self.look_again(line);
        watch
    }

    /// The seat of a watch of a channel was suspended, or may tell again. Until it may it goes its
    /// own way, on which nothing is told.
    pub(crate) fn set_suspended(&mut self, key: Key, is_suspended: bool) {
        let Some(watch) = self.watches.get_mut(key) else {
            return;
        };
        watch.is_suspended = is_suspended;
        let line = watch.line;
        if is_suspended {
            let position = self.position(key);
            self.depart(key, &position);
        }
        self.look_again(line);
    }
}
