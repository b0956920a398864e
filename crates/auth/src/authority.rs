//! The grants in force, and how they change while the server runs.
//!
//! [`Authority::current`] is a pointer load; a reload swaps what it returns and connections notice
//! nothing. [`Authority::poll`] reads both files and compares their text with what was taken, so a
//! file that was edited, replaced by rename, or swapped behind a double link is seen alike, and so
//! is an edit within one tick of the file system's clock. Whoever owns the runtime calls it every
//! [`POLL_INTERVAL`], and [`Authority::reload`] on SIGHUP.
//!
//! A state is taken whole or not at all: a file that is gone, empty, unreadable or faulty keeps
//! the grants that were in force, and [`Authority::problem`] says so until it is mended (D75). At
//! the start there is nothing to keep, so the same faults refuse the start; only a default tokens
//! file may be missing then, which leaves reading of public places and nothing else (D77).
//!
//! A watch of the directory was rejected: it sees neither a swap further up a chain of links nor
//! anything on a network file system, and two seconds are soon enough.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use thiserror::Error;

use crate::caller::TokenDigest;
use crate::closed;
use crate::file;
use crate::grants::{Access, Grants, Token};
use crate::pattern::Pattern;
use crate::tokens::{self, FileFault};

/// How often the files are looked at: a revocation must work well within a heartbeat of 20 s.
pub const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Where the tokens and the closed places lie.
#[derive(Clone, Debug)]
pub struct Files {
    /// The tokens file.
    pub tokens: PathBuf,
    /// Somebody named the tokens file, so it must be there.
    pub tokens_required: bool,
    /// The file of closed places, in a directory that is there.
    pub closed: PathBuf,
}

/// Why the files could not be taken.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The text of a file is faulty.
    #[error("{}: {fault}", path.display())]
    Fault {
        /// The file.
        path: PathBuf,
        /// The fault and its line.
        fault: FileFault,
    },
    /// The tokens file isn't there, and it was named or was there before.
    #[error("the tokens file {} is missing", .0.display())]
    Missing(PathBuf),
    /// A file could not be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The closed places could not be written; they are in force all the same.
    #[error("{} can't be written, so a restart may open places: {source}", path.display())]
    Save {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// What a look at the files led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reload {
    /// The grants in force stay for a reason that wants a person; told once for each reason.
    Kept(String),
    /// Something was mended or changed, and is in force.
    Taken,
    /// There is nothing to say.
    Unchanged,
}

type Listener = Box<dyn Fn() + Send + Sync>;

/// The grants in force. A cheap handle: clones share them.
#[derive(Clone)]
pub struct Authority(Arc<Inner>);

struct Inner {
    grants: ArcSwap<Grants>,
    /// `None` in dev mode, which has no files.
    files: Option<Files>,
    /// Counts what `grants` held.
    revision: AtomicU64,
    listeners: Mutex<Vec<Listener>>,
    taken: Mutex<Taken>,
}

/// What the grants in force were made of.
#[derive(Default)]
struct Taken {
    tokens: Option<String>,
    closed: Option<String>,
    /// The places in force are not all in the file.
    unsaved: bool,
    problem: Option<String>,
}

impl Authority {
    /// Everyone may do everything. Only for a server that nobody else's machine can reach.
    pub fn dev() -> Self {
        Self::with(Grants::new(Access::Dev, Vec::new()), None, Taken::default())
    }

    /// Reads the files; blocks on the disk.
    pub fn open(files: Files) -> Result<Self, LoadError> {
        let mut taken = Taken::default();
        let nothing = Grants::new(Access::NoTokens, Vec::new());
        let grants = load(&files, &mut taken, &nothing)?.unwrap_or(nothing);
        if taken.unsaved {
            save(&files, &grants)?;
            taken.unsaved = false;
        }
        Ok(Self::with(grants, Some(files), taken))
    }

    fn with(grants: Grants, files: Option<Files>, taken: Taken) -> Self {
        Self(Arc::new(Inner {
            grants: ArcSwap::from_pointee(grants),
            files,
            revision: AtomicU64::new(1),
            listeners: Mutex::default(),
            taken: Mutex::new(taken),
        }))
    }

    /// The grants of this moment. Ask again for each decision.
    pub fn current(&self) -> Arc<Grants> {
        self.0.grants.load_full()
    }

    /// A number that grows whenever the grants change.
    pub fn revision(&self) -> u64 {
        self.0.revision.load(Ordering::Acquire)
    }

    /// Calls `listener` after every change of the grants, on the thread of the reload.
    pub fn on_change(&self, listener: impl Fn() + Send + Sync + 'static) {
        let mut listeners = lock(&self.0.listeners);
        listeners.push(Box::new(listener));
    }

    /// What keeps the files from being in force as they are, for readiness.
    pub fn problem(&self) -> Option<String> {
        lock(&self.0.taken).problem.clone()
    }

    /// What a person should know of the files though they are in force.
    pub fn warnings(&self) -> Vec<String> {
        let exposed = |path: &&Path| file::is_open_to_others(path);
        let files = self.0.files.as_ref();
        files
            .map(|files| files.tokens.as_path())
            .filter(exposed)
            .map(|path| format!("{} is open to others; make its mode 0600", path.display()))
            .into_iter()
            .collect()
    }

    /// Looks at the files; a problem that was told is not told again. Blocks on the disk.
    pub fn poll(&self) -> Reload {
        let before = self.problem();
        match self.reload() {
            Reload::Kept(problem) if before.as_ref() == Some(&problem) => Reload::Unchanged,
            reload => reload,
        }
    }

    /// Looks at the files and tells every problem. Blocks on the disk.
    pub fn reload(&self) -> Reload {
        let Some(files) = &self.0.files else {
            return Reload::Unchanged;
        };
        let mut taken = lock(&self.0.taken);
        let mut outcome = Reload::Unchanged;
        let result = load(files, &mut taken, &self.current()).and_then(|grants| {
            if let Some(grants) = grants {
                self.0.grants.store(Arc::new(grants));
                self.0.revision.fetch_add(1, Ordering::Release);
                outcome = Reload::Taken;
            }
            if taken.unsaved {
                save(files, &self.current())?;
                taken.unsaved = false;
            }
            Ok(())
        });
        let problem = result.err().map(|error| error.to_string());
        let changed = outcome == Reload::Taken;
        if let Some(problem) = &problem {
            outcome = Reload::Kept(problem.clone());
        } else if taken.problem.is_some() {
            outcome = Reload::Taken;
        }
        taken.problem = problem;
        drop(taken);
        if changed {
            lock(&self.0.listeners)
                .iter()
                .for_each(|listener| listener());
        }
        outcome
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("files", &self.0.files)
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

/// Makes grants of the files if they differ from what was taken.
fn load(files: &Files, taken: &mut Taken, now: &Grants) -> Result<Option<Grants>, LoadError> {
    let tokens_text = read(&files.tokens)?;
    if tokens_text.is_none() && (files.tokens_required || taken.tokens.is_some()) {
        return Err(LoadError::Missing(files.tokens.clone()));
    }
    let closed_text = read(&files.closed)?;
    if tokens_text == taken.tokens && closed_text == taken.closed {
        return Ok(None);
    }
    let mut access = match &tokens_text {
        Some(text) => Access::Tokens(located(&files.tokens, tokens::parse(text))?),
        None => Access::NoTokens,
    };
    let mut places = match &closed_text {
        Some(text) => located(&files.closed, closed::parse(text))?,
        None => now.closed().to_vec(),
    };
    let lost = closed_text.is_none() && !places.is_empty();
    let joined = closed::join(&mut places, access.readable());
    if let (Access::Tokens(new), Access::Tokens(old)) = (&mut access, now.access()) {
        keep_refusals(new, old);
    }
    taken.tokens = tokens_text;
    taken.closed = closed_text;
    taken.unsaved = lost || joined;
    Ok(Some(Grants::new(access, places)))
}

/// A token refused for age stays refused unless its expiry was moved (D79).
fn keep_refusals(new: &mut HashMap<TokenDigest, Token>, old: &HashMap<TokenDigest, Token>) {
    for (digest, token) in new {
        let known = old.get(digest).filter(|old| old.expires == token.expires);
        if let Some(old) = known {
            *token.refused.get_mut() = old.refused.load(Ordering::Relaxed);
        }
    }
}

/// Adds the places in force to the file. What a command took out meanwhile stays out.
fn save(files: &Files, grants: &Grants) -> Result<(), LoadError> {
    let failed = |source| LoadError::Save {
        path: files.closed.clone(),
        source,
    };
    let _held = file::lock(&files.closed).map_err(failed)?;
    let (mut places, wanted): (_, Vec<&Pattern>) = match read(&files.closed)? {
        Some(text) => (
            located(&files.closed, closed::parse(&text))?,
            grants.access().readable().collect(),
        ),
        None => (Vec::new(), grants.closed().iter().collect()),
    };
    if closed::join(&mut places, wanted) {
        file::replace(&files.closed, &closed::encode(&places)).map_err(failed)?;
    }
    Ok(())
}

pub(crate) fn read(path: &Path) -> Result<Option<String>, LoadError> {
    file::read(path).map_err(|source| LoadError::Read {
        path: path.to_owned(),
        source,
    })
}

pub(crate) fn located<T>(path: &Path, result: Result<T, FileFault>) -> Result<T, LoadError> {
    result.map_err(|fault| LoadError::Fault {
        path: path.to_owned(),
        fault,
    })
}

/// Every value behind these locks is whole between any two statements that change it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
