//! One watch's place in its feed: what it is told of, under which right.
//!
//! A reader of documents follows one or several scopes of one feed and tells their changes in one
//! order, each once, so that one position says where all of them stand. Each change is checked
//! against the grants of its moment; one that may not be seen is passed over without a trace, and
//! the position moves on (P10). A loss in one scope is a loss of all: they go on from one head.
//!
//! Nothing here waits. The outlet that the reader was made with names its tokens when there is
//! more to read.

use std::sync::Arc;

use auth::{Denied, WatchRight};
use bytes::Bytes;
use documents::{Change, Op};
use feed::{Encoding, Feed, Next, Outlet, Refused, Slot, Subscription, Token};
use wire::{ChangeRecord, Cursor, DocumentScope, GapReason};

use super::batch::{Batch, Item, Kind};
use super::plan::Since;
use super::reader::{Left, Mode, Rights, SCOPES_MAX};

/// Changes that are looked at in one go although they may not be told.
const WITHHELD_MAX: usize = 1_024;

/// Some of a reader's scopes, by their places.
#[derive(Clone, Copy, Debug, Default)]
struct Scopes(u64);

const _: () = assert!(SCOPES_MAX == u64::BITS as usize);

impl Scopes {
    const fn with(self, place: usize) -> Self {
        Self(self.0 | 1 << place)
    }

    const fn contains(self, place: usize) -> bool {
        self.0 & 1 << place != 0
    }
}

/// A place in the feed of the documents.
#[derive(Debug)]
pub(crate) struct Documents {
    feed: Feed<Change>,
    outlet: Arc<Outlet>,
    parts: Vec<Part>,
    /// Changes that were passed over for lack of a right since this was last asked.
    withheld: u64,
}

/// One scope of a reader.
#[derive(Debug)]
struct Part {
    right: WatchRight,
    subscription: Subscription<Change>,
    /// The next change, read and not yet told, with the position before it; only beside others.
    ahead: Option<(Arc<Slot<Change>>, Cursor)>,
    is_closed: bool,
}

impl Documents {
    /// Begins after `since`, or at the head.
    pub(crate) fn open(
        feed: &Feed<Change>,
        rights: impl IntoIterator<Item = WatchRight>,
        since: Option<&Cursor>,
        outlet: &Arc<Outlet>,
    ) -> Result<Self, Refused> {
        // Several scopes begin at one place.
        let head = feed.head();
        let since = since.unwrap_or(&head);
        let parts = rights.into_iter().map(|right| {
            let scope = feed_scope(right.scope());
            let subscription = feed.subscribe(scope, Some(since), outlet)?;
            Ok(Part {
                right,
                subscription,
                ahead: None,
                is_closed: false,
            })
        });
        Ok(Self {
            feed: feed.clone(),
            outlet: outlet.clone(),
            parts: parts.collect::<Result<_, Refused>>()?,
            withheld: 0,
        })
    }

    /// Begins at the head; a new epoch that begins meanwhile is where it begins.
    pub(crate) fn open_at_head(
        feed: &Feed<Change>,
        rights: &[WatchRight],
        outlet: &Arc<Outlet>,
    ) -> Self {
        loop {
            if let Ok(reader) = Self::open(feed, rights.iter().cloned(), None, outlet) {
                return reader;
            }
        }
    }

    /// Its names in the outlet.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = Token> {
        self.parts.iter().map(|part| part.subscription.token())
    }

    /// Everything up to here was told or does not concern it.
    pub(crate) fn position(&self) -> Cursor {
        let positions = self.parts.iter().map(|part| match &part.ahead {
            Some((_, before)) => before.clone(),
            None => part.subscription.position(),
        });
        // All are of one epoch, but while a new one is being told.
        positions
            .min_by_key(|position| position.seq)
            .unwrap_or_else(|| self.feed.head())
    }

    /// May the watch go on at all?
    pub(crate) fn recheck(&self, rights: Rights<'_>) -> Result<(), Denied> {
        let Rights { grants, time } = rights;
        self.parts
            .iter()
            .try_for_each(|part| part.right.recheck(grants, time))
    }

    /// The rights under which it reads.
    pub(crate) fn rights(&self) -> impl Iterator<Item = &WatchRight> {
        self.parts.iter().map(|part| &part.right)
    }

    /// How many changes were passed over since this was last asked.
    pub(crate) fn take_withheld(&mut self) -> u64 {
        std::mem::take(&mut self.withheld)
    }

    /// Adds to `batch` what is due, until it is full or nothing is.
    pub(crate) fn read(&mut self, mode: Mode, rights: Rights<'_>, batch: &mut Batch) -> Left {
        let mut withheld = 0;
        let left = loop {
            if batch.is_full() || withheld >= WITHHELD_MAX {
                break Left::More;
            }
            let (slot, parts) = match self.next() {
                Ok(due) => due,
                Err(left) => break left,
            };
            let path = &slot.change().path;
            let scope = self.parts.iter().enumerate().position(|(place, part)| {
                let may_see = || part.right.may_see(rights.grants, path, rights.time);
                parts.contains(place) && may_see()
            });
            let Some(scope) = scope else {
                withheld += 1;
                continue;
            };
            let item = Item {
                kind: Kind::Change(word(slot.change().op)),
                cursor: slot.cursor(),
                json: slot.encoded(Encoding::Json, record),
                scope,
            };
            match mode {
                Mode::Every => batch.push(item),
                Mode::Latest => batch.merge(item, slot.change()),
            }
        };
        self.withheld += withheld as u64;
        left
    }

    /// The next change, with the scopes that it is in.
    fn next(&mut self) -> Result<(Arc<Slot<Change>>, Scopes), Left> {
        if let [part] = &mut self.parts[..] {
            return match part.subscription.next() {
                Next::Change(slot) => Ok((slot, Scopes::default().with(0))),
                Next::Closed => Err(Left::Closed),
                Next::Gap { reason, head } => Err(Left::Gap(reason, head)),
                Next::Idle => Err(Left::Idle),
            };
        }
        self.look_ahead()?;
        let seqs = self.parts.iter().filter_map(Part::seq_ahead);
        let Some(first) = seqs.min() else {
            let is_closed = self.parts.iter().all(|part| part.is_closed);
            return Err(if is_closed { Left::Closed } else { Left::Idle });
        };
        let mut due = None;
        let mut scopes = Scopes::default();
        for (place, part) in self.parts.iter_mut().enumerate() {
            if part.seq_ahead() == Some(first) {
                due = part.ahead.take().map(|(slot, _)| slot);
                scopes = scopes.with(place);
            }
        }
        due.map(|slot| (slot, scopes)).ok_or(Left::Idle)
    }

    /// Reads one change ahead in each scope that has one.
    ///
    /// A scope that had none may have got one while another was read, with a smaller place than
    /// the other's. Changes are noted in their order, so a second look finds it.
    fn look_ahead(&mut self) -> Result<(), Left> {
        for _ in 0..2 {
            for place in 0..self.parts.len() {
                let part = &mut self.parts[place];
                if part.ahead.is_some() {
                    continue;
                }
                let before = part.subscription.position();
                match part.subscription.next() {
                    Next::Change(slot) => part.ahead = Some((slot, before)),
                    Next::Closed => part.is_closed = true,
                    Next::Gap { reason, .. } => return Err(self.begin_again(reason)),
                    Next::Idle => {}
                }
            }
        }
        Ok(())
    }

    /// Has all scopes go on from one head.
    fn begin_again(&mut self, reason: GapReason) -> Left {
        let rights: Vec<_> = self.rights().cloned().collect();
        let again = Self::open_at_head(&self.feed, &rights, &self.outlet);
        self.parts = again.parts;
        Left::Gap(reason, self.position())
    }
}

impl Part {
    fn seq_ahead(&self) -> Option<wire::Seq> {
        self.ahead.as_ref().map(|(slot, _)| slot.seq())
    }
}

/// Begins where `since` says, as far as that can be had: gives the position that it begins at, and
/// why it is not the one that was asked for.
pub(super) fn begin(
    feed: &Feed<Change>,
    rights: &[WatchRight],
    since: &Since,
    outlet: &Arc<Outlet>,
) -> (Documents, Cursor, Option<GapReason>) {
    let missed = match since {
        Since::Head => None,
        Since::Malformed => Some(GapReason::Malformed),
        Since::After(cursor) => {
            match Documents::open(feed, rights.iter().cloned(), Some(cursor), outlet) {
                Ok(documents) => return (documents, cursor.clone(), None),
                Err(refused) => Some(refused.reason),
            }
        }
    };
    let documents = Documents::open_at_head(feed, rights, outlet);
    let position = documents.position();
    (documents, position, missed)
}

const fn word(op: Op) -> &'static str {
    match op {
        Op::Append => wire::Op::Append.as_str(),
        Op::Archive => wire::Op::Archive.as_str(),
        Op::Publish => wire::Op::Publish.as_str(),
    }
}

/// A change as an object, the same for everyone.
fn record(cursor: &Cursor, change: &Change) -> Bytes {
    let record = ChangeRecord {
        cursor,
        op: word(change.op),
        name: change.path.as_str(),
        version: change.version,
        hash: Some(change.hash),
        agent: change.agent.as_deref(),
        at: None,
        data: None,
        scope: None,
    };
    let mut json = Vec::new();
    record.encode_into(&mut json);
    json.into()
}

/// The feed's name for what `scope` means.
fn feed_scope(scope: &DocumentScope) -> feed::Scope {
    if scope.subtree {
        feed::Scope::Prefix(scope.path.with_slash().into())
    } else {
        feed::Scope::Exact(scope.path.as_str().into())
    }
}

#[cfg(test)]
mod tests {
    use auth::{Authority, Caller};
    use feed::RING_LEN;
    use jiff::Timestamp;
    use wire::{ContentHash, Epoch, Scope, Seq};

    use super::*;

    fn change(path: &str) -> Change {
        Change {
            op: Op::Publish,
            path: wire::Target::parse(path.as_bytes()).unwrap().path,
            version: 1,
            hash: ContentHash::of(b""),
            agent: None,
        }
    }

    fn feed(ring_len: usize) -> Feed<Change> {
        Feed::new(Epoch::from_random([1; 6]), Seq::ZERO, ring_len)
    }

    struct Watching {
        authority: Authority,
        reader: Documents,
    }

    impl Watching {
        fn new(feed: &Feed<Change>, scopes: &[&str]) -> Self {
            let authority = Authority::dev();
            let rights: Vec<_> = scopes
                .iter()
                .map(|scope| {
                    let Ok(Scope::Document(scope)) = scope.parse() else {
                        panic!("a scope of documents");
                    };
                    let now = Timestamp::UNIX_EPOCH;
                    let grants = authority.current();
                    WatchRight::admit(&grants, Caller::anonymous(), scope, now).unwrap()
                })
                .collect();
            let reader = Documents::open_at_head(feed, &rights, &Outlet::new());
            Self { authority, reader }
        }

        /// What is told, as place and scope, and where it left off.
        fn read(&mut self) -> (Vec<(u64, usize)>, Left) {
            let mut batch = Batch::default();
            let grants = self.authority.current();
            let rights = Rights {
                grants: &grants,
                time: Timestamp::UNIX_EPOCH,
            };
            let left = self.reader.read(Mode::Every, rights, &mut batch);
            let told = batch.iter().map(|item| (item.cursor.seq.get(), item.scope));
            (told.collect(), left)
        }
    }

    #[test]
    fn several_scopes_are_told_in_one_order_and_each_change_once() {
        let feed = feed(RING_LEN);
        let mut watching = Watching::new(&feed, &["doc:/a/", "doc:/b/", "doc:/a/x"]);
        for path in ["/b/1", "/a/x", "/c/1", "/a/y", "/b/2"] {
            feed.publish(change(path));
        }
        let (told, left) = watching.read();
        assert_eq!(told, [(1, 1), (2, 0), (4, 0), (5, 1)]);
        assert_eq!(left, Left::Idle);
        assert_eq!(watching.reader.position().seq, Seq::new(5));
        feed.publish(change("/c/2"));
        assert_eq!(watching.read(), (vec![], Left::Idle));
        assert_eq!(watching.reader.position().seq, Seq::new(6));
    }

    #[test]
    fn a_loss_in_one_scope_is_a_loss_of_all() {
        let feed = feed(4);
        let mut watching = Watching::new(&feed, &["doc:/a/", "doc:/b/"]);
        feed.publish(change("/b/1"));
        for _ in 0..6 {
            feed.publish(change("/a/1"));
        }
        let (told, left) = watching.read();
        assert_eq!(told, []);
        let Left::Gap(GapReason::Lapped, head) = left else {
            panic!("a gap: {left:?}");
        };
        assert_eq!(head.seq, Seq::new(7));
        feed.publish(change("/b/2"));
        assert_eq!(watching.read(), (vec![(8, 1)], Left::Idle));
    }

    #[test]
    fn the_position_stays_before_what_was_read_and_not_told() {
        let feed = feed(RING_LEN);
        let mut watching = Watching::new(&feed, &["doc:/a/", "doc:/b/"]);
        for place in 0..600 {
            feed.publish(change(if place % 2 == 0 { "/a/1" } else { "/b/1" }));
        }
        let (told, left) = watching.read();
        assert_eq!(left, Left::More);
        let last = told.last().unwrap().0;
        assert_eq!(watching.reader.position().seq, Seq::new(last));
    }
}
