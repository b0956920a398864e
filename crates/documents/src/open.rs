//! Opening a data directory: what the tree holds, whether the sequence goes on, what is owed.
//!
//! The journal says what was committed, the checkpoint what the tree was when it was written; the
//! two together say what the tree should be. The tree is scanned, and each document compared:
//!
//! - A committed version that is there and whole but not linked is linked; its change is in the
//!   restored ring, so it is told under the same epoch before the first watch is admitted.
//! - A committed version that never landed is taken back by a `void` record; nobody was told.
//! - A version that nothing proves is set aside under a hidden name.
//! - Any other difference was made by hand or by another program. No change can tell it, so a new
//!   epoch begins and every watcher resyncs (P3). So it does when the journal is missing, damaged
//!   or a copy, or when there is no checkpoint to compare with (D61, D62, D63, D65).
//!
//! Nothing on disk is changed before everything was read, so a directory that can't be read refuses
//! the start and nothing is lost (D54); the older layout alone is converted on the way. Every step
//! can be killed: the next opening finds the same differences again.

mod known;
mod reconcile;
mod report;
pub(crate) mod scan;
mod settle;

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};

use feed::Feed;
use journal::{Journal, Opened};
use storage::{Lock, LockError, Storage};
use wire::{DocPath, Epoch, Seq};

use self::known::{Known, Replay};
use self::reconcile::Outcome;
use self::scan::Found;
use crate::checkpoint::{self, Checkpoint, Schedule};
use crate::commit::Committer;
use crate::dirs::Dirs;
use crate::layout::{self, JOURNAL_DIR, LOCK, OWN_DIR};
use crate::path_locks::PathLocks;
use crate::store::{Config, Counters, Parts, Progress};
use crate::temp::Temps;
use crate::{Change, OpenError};

pub use self::report::{Difference, Report};

/// Progress is told once in so many documents.
const PROGRESS_EVERY: usize = 256;

/// Opens the data directory.
pub(crate) fn open(
    storage: Arc<dyn Storage>,
    config: Config,
    progress: &mut dyn FnMut(Progress),
) -> Result<Parts, OpenError> {
    let lock = lock(&*storage)?;
    let temps = Temps::new(Arc::clone(&storage), random()?)?;
    let dirs = Dirs::new(Arc::clone(&storage));
    let past = Past::read(&storage, &config)?;
    let tree = Tree::read(&*storage, &temps, &past, progress)?;
    let mut report = Report::new(past.break_reason(&config), &tree.differences);

    let mut settled = settle::Settled::default();
    for case in &tree.cases {
        settle::mend(&*storage, &temps, case, &mut settled)?;
    }
    report.set_aside = settled.set_aside;
    report.taken_back = tree.taken_back.len();
    let Past {
        journal,
        replay,
        checkpoint,
        ..
    } = past;
    let journal = match (journal, &report.new_epoch) {
        (Some(journal), None) => {
            settle::pay_syncs(&*storage, &dirs, &replay, checkpoint.as_ref(), &tree.cases)?;
            settle::take_back(&journal, &tree.taken_back)?;
            journal
        }
        (_, reason) => {
            match checkpoint {
                Some(_) => tracing::warn!(reason = reason.as_deref(), "a new epoch begins"),
                None => tracing::info!("the first epoch of this tree begins"),
            }
            new_journal(&storage, &config)?
        }
    };
    let feed = match &report.new_epoch {
        None => restored_feed(&journal, replay, &tree.taken_back, config.ring_len)?,
        Some(_) => Feed::new(journal.epoch().clone(), journal.last(), config.ring_len),
    };
    let index = Arc::new(RwLock::new(settle::index(tree.cases, &mut report)));
    let last = journal.last();
    let parts = Parts {
        committer: Committer::new(journal, last, Arc::clone(&index), feed.clone()),
        checkpoints: Mutex::new(Schedule::new(&config, last)),
        checkpoint_writer: Mutex::new(()),
        locks: PathLocks::new(),
        lock: Mutex::new(Some(lock)),
        storage,
        index,
        feed,
        temps,
        dirs,
        config,
        report,
        counters: Counters::default(),
    };
    if let Err(error) = parts.write_checkpoint() {
        tracing::warn!(%error, "the checkpoint was not written; the next start reads everything");
    }
    Ok(parts)
}

/// Makes our own directory and takes the lock in it.
fn lock(storage: &dyn Storage) -> Result<Box<dyn Lock>, OpenError> {
    match storage.create_dir(Path::new(OWN_DIR)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
        Ok(()) | Err(_) => storage.sync_dir(Path::new(""))?,
    }
    storage.lock(Path::new(LOCK)).map_err(|error| match error {
        LockError::Held { pid } => OpenError::InUse {
            process: pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string()),
        },
        LockError::Io(error) => OpenError::Storage(error),
        other => OpenError::Storage(io::Error::other(other)),
    })
}

/// What is left of the time before this opening.
struct Past {
    journal: Option<Journal>,
    replay: Replay,
    checkpoint: Option<Checkpoint>,
    /// Why the sequence can't go on, if so.
    reason: Option<String>,
    known: HashMap<DocPath, Known>,
}

impl Past {
    fn read(storage: &Arc<dyn Storage>, config: &Config) -> Result<Self, OpenError> {
        let checkpoint = checkpoint::read(&**storage)?;
        let mut replay = Replay::default();
        let opened = Journal::open(Arc::clone(storage), journal_config(config), &mut |record| {
            replay.take(record.seq, record.payload)
        })?;
        let (journal, mut reason) = match opened {
            Opened::Ready { journal, .. } => (Some(journal), None),
            Opened::Absent => (None, Some("there is no journal".to_owned())),
            Opened::Unusable { reason } => (None, Some(format!("the journal: {reason}"))),
        };
        if reason.is_none() {
            reason = misfit(journal.as_ref(), &replay, checkpoint.as_ref());
        }
        if reason.is_some() {
            // What the journal says can't be trusted to be all; the checkpoint still knows hashes.
            replay = Replay::default();
        }
        let known = checkpoint
            .as_ref()
            .map(|it| replay.known(it))
            .unwrap_or_default();
        Ok(Self {
            journal,
            replay,
            checkpoint,
            reason,
            known,
        })
    }

    fn break_reason(&self, config: &Config) -> Option<String> {
        let asked = config.new_epoch.then(|| "it was asked for".to_owned());
        self.reason.clone().or(asked)
    }
}

/// Why journal and checkpoint don't make one history, if they don't.
fn misfit(
    journal: Option<&Journal>,
    replay: &Replay,
    checkpoint: Option<&Checkpoint>,
) -> Option<String> {
    let journal = journal?;
    if let Some((seq, error)) = replay.fault() {
        return Some(format!("journal record {seq}: {error}"));
    }
    let Some(checkpoint) = checkpoint else {
        return Some("there is no checkpoint of the tree".to_owned());
    };
    if checkpoint.epoch != *journal.epoch() {
        return Some("the checkpoint belongs to another epoch".to_owned());
    }
    if checkpoint.seq > journal.last() || checkpoint.seq.next() < journal.oldest() {
        return Some("the journal and the checkpoint don't meet".to_owned());
    }
    None
}

/// A document's case, decided.
struct Case {
    path: DocPath,
    found: Option<Found>,
    outcome: Outcome,
}

/// The tree, compared with the past.
struct Tree {
    cases: Vec<Case>,
    differences: Vec<Difference>,
    taken_back: HashSet<Seq>,
}

impl Tree {
    fn read(
        storage: &dyn Storage,
        temps: &Temps,
        past: &Past,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, OpenError> {
        let mut documents = Vec::new();
        scan::scan(storage, temps, &mut |found| {
            documents.push(found);
            if documents.len() % PROGRESS_EVERY == 0 {
                let total = documents.len();
                progress(Progress { done: 0, total });
            }
        })?;
        let total = documents.len();
        let mut tree = Self {
            cases: Vec::with_capacity(total),
            differences: Vec::new(),
            taken_back: HashSet::new(),
        };
        let mut met = HashSet::with_capacity(total);
        for (done, found) in documents.into_iter().enumerate() {
            if done % PROGRESS_EVERY == 0 {
                progress(Progress { done, total });
            }
            let Some(path) = layout::path_of(&found.place.link()) else {
                tracing::warn!(link = %found.place.link().display(), "no document has such a name");
                continue;
            };
            let known = past.known.get(&path);
            let is_first = past.checkpoint.is_none();
            let outcome = reconcile::found(storage, &path, &found, known, is_first)
                .map_err(|source| scan::unreadable(&found.place.versions(), source))?;
            met.insert(path.clone());
            tree.add(path, Some(found), outcome);
        }
        for (path, known) in &past.known {
            if !met.contains(path) {
                tree.add(path.clone(), None, reconcile::missing(known));
            }
        }
        progress(Progress { done: total, total });
        Ok(tree)
    }

    fn add(&mut self, path: DocPath, found: Option<Found>, outcome: Outcome) {
        self.taken_back.extend(&outcome.taken_back);
        if let Some(what) = &outcome.difference {
            self.differences.push(Difference {
                path: path.clone(),
                what: what.clone(),
            });
        }
        self.cases.push(Case {
            path,
            found,
            outcome,
        });
    }
}

fn journal_config(config: &Config) -> journal::Config {
    journal::Config {
        segment_bytes_max: config.segment_bytes_max,
        ..journal::Config::new(JOURNAL_DIR)
    }
}

fn new_journal(storage: &Arc<dyn Storage>, config: &Config) -> Result<Journal, OpenError> {
    let bytes = random()?.to_le_bytes();
    let epoch = Epoch::from_random([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]]);
    let first = Seq::ZERO.next();
    Ok(Journal::create(
        Arc::clone(storage),
        journal_config(config),
        epoch,
        first,
    )?)
}

/// The ring as it was, from the journal: the last changes, whoever was told of them.
fn restored_feed(
    journal: &Journal,
    replay: Replay,
    taken_back: &HashSet<Seq>,
    ring_len: usize,
) -> Result<Feed<Change>, OpenError> {
    let mut changes: Vec<(Seq, Change)> = replay.changes(taken_back).collect();
    let cut = changes.len().saturating_sub(ring_len);
    let oldest_kept = Seq::new(journal.oldest().get().saturating_sub(1));
    let floor = match cut {
        0 => oldest_kept,
        cut => changes[cut - 1].0,
    };
    let feed = Feed::new(journal.epoch().clone(), floor, ring_len);
    for (seq, change) in changes.drain(cut..) {
        let placed = feed.publish_at(seq, change);
        placed.map_err(|error| OpenError::Storage(io::Error::other(error)))?;
    }
    Ok(feed)
}

fn random() -> io::Result<u64> {
    getrandom::u64().map_err(io::Error::other)
}

impl From<journal::OpenError> for OpenError {
    fn from(error: journal::OpenError) -> Self {
        let text = error.to_string();
        Self::Storage(io::Error::new(
            error.source.kind(),
            format!("{text}: {}", error.source),
        ))
    }
}
