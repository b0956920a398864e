//! A disk in memory that loses what was not synced.
//!
//! [`CrashingDisk`] keeps two views of every file and directory: what a running program sees, and
//! what is sure to survive a power cut. The bytes of a file become durable with a sync of the file,
//! the names in a directory with a sync of the directory, and neither brings the other along.
//!
//! # How a test uses it
//! 1. Run the work once and read [`CrashingDisk::operations`].
//! 2. For every number below that, run it again on a fresh disk after
//!    [`CrashingDisk::crash_after`]: from that operation on, everything fails.
//! 3. Take the image that is left, [`CrashingDisk::kill`] or [`CrashingDisk::crash`] with each
//!    policy, open the system under test on it and check what was promised.
//!
//! # Where it is harsher than a real disk
//! A rename may lose its two halves independently. An unsynced write may keep any of its sectors.
//! A failed write leaves half of its bytes behind. The bytes of a failed sync never become durable
//! by a later sync, as on systems that mark them clean; only writing them again helps. Names are
//! different: after a failed sync of a directory the next one makes them durable.

mod face;
mod fault;
mod image;
mod node;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fault::Faults;
pub use fault::{Call, Crashed};
pub use image::Survives;
pub use tree::Found;
use tree::Tree;

/// A disk in memory that can be cut off, filled up and made to fail. Clones share it.
#[derive(Clone, Debug)]
pub struct CrashingDisk {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Notified when a sync arrives at the gate and when the gate opens.
    gate: Condvar,
}

#[derive(Debug)]
struct State {
    tree: Tree,
    faults: Faults,
    locked: BTreeSet<PathBuf>,
    /// Whether syncs wait at the gate, and how many do.
    gate_closed: bool,
    at_gate: usize,
}

impl Default for CrashingDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl CrashingDisk {
    /// An empty disk whose clock stands still.
    pub fn new() -> Self {
        Self::from_tree(Tree::new())
    }

    fn from_tree(tree: Tree) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    tree,
                    faults: Faults::default(),
                    locked: BTreeSet::new(),
                    gate_closed: false,
                    at_gate: 0,
                }),
                gate: Condvar::new(),
            }),
        }
    }

    /// What is left when the process dies: everything it wrote. Locks are gone.
    pub fn kill(&self) -> Self {
        Self::from_tree(self.state().tree.killed())
    }

    /// What is left when the power goes: what was synced, and of the rest what `survives` says.
    pub fn crash(&self, survives: Survives) -> Self {
        Self::from_tree(self.state().tree.crashed(survives))
    }

    /// A backup that was put back: the same names and bytes in other files, all durable.
    pub fn copy_tree(&self) -> Self {
        Self::from_tree(self.state().tree.copied())
    }

    /// Lets `count` more operations that change or sync anything succeed; then everything fails
    /// with [`Crashed`]. A write that is cut off this way leaves half of its bytes.
    pub fn crash_after(&self, count: u64) {
        self.state().faults.crash_after(count);
    }

    /// Takes a [`CrashingDisk::crash_after`] back: the process was killed and the system lives on.
    /// What was not synced still isn't, and nobody knows it any more.
    pub fn forgive(&self) {
        self.state().faults.forgive();
    }

    /// Lets `count` more operations that change or sync anything succeed and makes the next one
    /// fail once. May be called several times.
    pub fn fail_after(&self, count: u64, kind: io::ErrorKind) {
        self.state().faults.fail_after(count, kind);
    }

    /// Makes the next call of one sort fail once, after `count` such calls succeeded.
    pub fn fail_call(&self, call: Call, count: u64, kind: io::ErrorKind) {
        self.state().faults.fail_call(call, count, kind);
    }

    /// Bounds the bytes of all files; a write past it fails with `StorageFull` where it is full.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().tree.capacity = bytes;
    }

    /// The bytes of all files.
    pub fn used(&self) -> u64 {
        self.state().tree.used()
    }

    /// Refuses to open `path`, or anything beneath it, with `PermissionDenied`.
    pub fn deny(&self, path: impl Into<PathBuf>) {
        self.state().faults.denied.insert(path.into());
    }

    /// Takes a [`CrashingDisk::deny`] back.
    pub fn allow(&self, path: impl AsRef<Path>) {
        self.state().faults.denied.remove(path.as_ref());
    }

    /// How many operations that change or sync anything were called, failed ones included.
    pub fn operations(&self) -> u64 {
        self.state().faults.operations()
    }

    /// How many calls of one sort there were, failed ones included.
    pub fn count(&self, call: Call) -> u64 {
        self.state().faults.count(call)
    }

    /// The operations in order, one a line, for the message of a failed test.
    pub fn log(&self) -> Vec<String> {
        self.state().faults.log()
    }

    /// Moves the clock, which stamps what is made and changed from here on.
    pub fn advance(&self, by: Duration) {
        self.state().tree.advance(by);
    }

    /// Puts a file there as a person would: parents are made, an existing file keeps its identity
    /// and gets these bytes, all of it is durable at once and counts as no operation.
    pub fn plant(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        self.state().tree.plant(path.as_ref(), bytes);
    }

    /// Puts something there that is neither file, directory nor link, such as a FIFO.
    pub fn plant_other(&self, path: impl AsRef<Path>) {
        self.state().tree.plant_other(path.as_ref());
    }

    /// All that a running program sees, by path.
    pub fn contents(&self) -> BTreeMap<PathBuf, Found> {
        self.state().tree.contents()
    }

    /// Makes every sync wait until the guard is dropped.
    pub fn hold_syncs(&self) -> HeldSyncs {
        self.state().gate_closed = true;
        HeldSyncs { disk: self.clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The state once the gate is open.
    fn state_past_gate(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        if state.gate_closed {
            state.at_gate += 1;
            self.shared.gate.notify_all();
            state = self.wait_while(state, |state| state.gate_closed);
            state.at_gate -= 1;
        }
        state
    }

    fn wait_while<'s>(
        &'s self,
        state: MutexGuard<'s, State>,
        condition: impl FnMut(&mut State) -> bool,
    ) -> MutexGuard<'s, State> {
        let waited = self.shared.gate.wait_while(state, condition);
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps syncs waiting for as long as it lives.
#[derive(Debug)]
pub struct HeldSyncs {
    disk: CrashingDisk,
}

impl HeldSyncs {
    /// Blocks until `count` syncs wait.
    pub fn wait_for(&self, count: usize) {
        let state = self.disk.state();
        drop(self.disk.wait_while(state, |state| state.at_gate < count));
    }
}

impl Drop for HeldSyncs {
    fn drop(&mut self) {
        self.disk.state().gate_closed = false;
        self.disk.shared.gate.notify_all();
    }
}
