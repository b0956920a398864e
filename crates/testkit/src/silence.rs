//! The silence checker: proves that nobody missed a change without being told (P3).
//!
//! A test reports every write it begins and how it ended, and for every watcher what it was told:
//! acknowledgement, changes, positions, gaps, the end of its rights. [`Checker::verify`] then
//! asserts, watcher by watcher, that
//!
//! 1. every acknowledged write in scope that began after the watch was acknowledged was delivered,
//!    or lies behind a gap that the watcher was told;
//! 2. positions never go back within an epoch except where the watcher reconnected;
//! 3. one position means one change, whoever was told of it (F14);
//! 4. nothing was delivered that nobody wrote, that is out of scope, or that is out of grants;
//! 5. another epoch never begins without a gap.
//!
//! Order between writer and watcher is taken from one log: a fact reported before another has the
//! smaller index. A write whose answer was lost may be delivered or not, but not twice under two
//! positions. The checker is pure bookkeeping behind a mutex; any thread may report.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wire::{Cursor, GapReason};

/// What a write made, as both its writer and its watchers can name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fact {
    /// The thing written, such as `/notes/tea.md`.
    pub name: String,
    /// Its version after the write.
    pub version: u64,
    /// What happened, such as `publish`.
    pub op: String,
}

impl Fact {
    /// Names what `op` made of `name`.
    pub fn new(name: impl Into<String>, version: u64, op: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version,
            op: op.into(),
        }
    }
}

/// The log of writes and tellings. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Checker(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    /// The index that the next report gets.
    next: u64,
    writes: Vec<Write>,
    watchers: Vec<WatcherLog>,
}

impl Log {
    fn tick(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

#[derive(Debug)]
struct Write {
    name: String,
    begun: u64,
    outcome: Outcome,
}

#[derive(Debug)]
enum Outcome {
    /// The writer was answered: this is what the write made.
    Acknowledged { fact: Fact, at: u64 },
    /// The writer was told that nothing was written.
    Refused,
    /// No answer came, so both outcomes are right.
    Unknown,
}

#[derive(Debug)]
struct WatcherLog {
    label: String,
    scope: Matcher,
    /// What was told, with the index of each report.
    told: Vec<(u64, Told)>,
}

struct Matcher(Box<dyn Fn(&str) -> bool + Send>);

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Matcher")
    }
}

#[derive(Debug)]
enum Told {
    Acknowledged(Cursor),
    Change(Cursor, Fact),
    Ended,
    Excused,
    Gap(Cursor, GapReason),
    Position(Cursor),
}

/// A write that was begun and must be ended by one of its methods; dropping it means that the
/// outcome is unknown.
#[derive(Debug)]
pub struct BegunWrite {
    log: Arc<Mutex<Log>>,
    index: usize,
}

/// Reports what one watcher is told.
#[derive(Clone, Debug)]
pub struct Watcher {
    log: Arc<Mutex<Log>>,
    index: usize,
}

/// What a run contained, so that a test can assert that it tested something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Acknowledged writes.
    pub commits: usize,
    /// Changes delivered over all watchers.
    pub deliveries: usize,
    /// Gaps told over all watchers, by reason.
    pub gaps: BTreeMap<&'static str, usize>,
    /// Writes that watchers were owed, over all watchers.
    pub owed: usize,
}

/// The promise that was broken, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Checker {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reports that a write to `name` is about to be sent.
    pub fn begin(&self, name: impl Into<String>) -> BegunWrite {
        let mut log = lock(&self.0);
        let begun = log.tick();
        log.writes.push(Write {
            name: name.into(),
            begun,
            outcome: Outcome::Unknown,
        });
        BegunWrite {
            log: Arc::clone(&self.0),
            index: log.writes.len() - 1,
        }
    }

    /// Adds a watcher that asks for, and may read, exactly the names that `scope` accepts.
    pub fn watcher(
        &self,
        label: impl Into<String>,
        scope: impl Fn(&str) -> bool + Send + 'static,
    ) -> Watcher {
        let mut log = lock(&self.0);
        log.watchers.push(WatcherLog {
            label: label.into(),
            scope: Matcher(Box::new(scope)),
            told: Vec::new(),
        });
        Watcher {
            log: Arc::clone(&self.0),
            index: log.watchers.len() - 1,
        }
    }

    /// Checks every promise. Call it once each watcher has settled: it was told of the last write,
    /// or of a gap behind it, or was ended.
    pub fn verify(&self) -> Result<Report, Broken> {
        let log = lock(&self.0);
        let positions = log.positions()?;
        let mut report = Report {
            commits: log.acknowledged().count(),
            ..Report::default()
        };
        for watcher in &log.watchers {
            log.verify_watcher(watcher, &positions, &mut report)
                .map_err(|Broken(why)| Broken(format!("watcher {}: {why}", watcher.label)))?;
        }
        Ok(report)
    }
}

impl BegunWrite {
    /// The writer was answered that the write made `version` by `op`.
    pub fn acknowledged(self, version: u64, op: &str) {
        let mut log = lock(&self.log);
        let at = log.tick();
        let fact = Fact::new(log.writes[self.index].name.clone(), version, op);
        log.writes[self.index].outcome = Outcome::Acknowledged { fact, at };
    }

    /// The writer was told that nothing was written.
    pub fn refused(self) {
        lock(&self.log).writes[self.index].outcome = Outcome::Refused;
    }

    /// No answer came.
    pub fn unknown(self) {}
}

impl Watcher {
    fn report(&self, told: Told) {
        let mut log = lock(&self.log);
        let at = log.tick();
        log.watchers[self.index].told.push((at, told));
    }

    /// The watch was acknowledged at `cursor`, at first or after a reconnect.
    pub fn acknowledged(&self, cursor: Cursor) {
        self.report(Told::Acknowledged(cursor));
    }

    /// A change arrived.
    pub fn change(&self, cursor: Cursor, fact: Fact) {
        self.report(Told::Change(cursor, fact));
    }

    /// A gap or resync arrived; the watcher goes on from `cursor`.
    pub fn gap(&self, cursor: Cursor, reason: GapReason) {
        self.report(Told::Gap(cursor, reason));
    }

    /// A heartbeat said that everything up to `cursor` was delivered.
    pub fn position(&self, cursor: Cursor) {
        self.report(Told::Position(cursor));
    }

    /// Nothing that is written from here on is owed to it: its right is about to be taken, and
    /// the watcher learns of that later than the server.
    pub fn excuse(&self) {
        self.report(Told::Excused);
    }

    /// The watch ended for good and said so: a lost right, or the test closed it.
    pub fn ended(&self) {
        self.report(Told::Ended);
    }

    /// True once the watcher was told of `fact`, or of a gap after `since` reports.
    pub fn has_settled(&self, fact: &Fact, since: u64) -> bool {
        lock(&self.log).watchers[self.index]
            .told
            .iter()
            .any(|(at, told)| match told {
                Told::Change(_, told) => told == fact,
                Told::Gap(..) | Told::Ended => *at > since,
                Told::Acknowledged(_) | Told::Excused | Told::Position(_) => false,
            })
    }
}

impl Checker {
    /// The index of the newest report; pass it to [`Watcher::has_settled`].
    pub fn now(&self) -> u64 {
        lock(&self.0).next
    }
}

impl Log {
    fn acknowledged(&self) -> impl Iterator<Item = (u64, u64, &Fact)> {
        self.writes.iter().filter_map(|write| match &write.outcome {
            Outcome::Acknowledged { fact, at } => Some((write.begun, *at, fact)),
            Outcome::Refused | Outcome::Unknown => None,
        })
    }

    /// Promise 3: the one change of every position, and the positions of every change.
    fn positions(&self) -> Result<HashMap<Fact, Vec<Cursor>>, Broken> {
        let mut by_cursor: HashMap<&Cursor, &Fact> = HashMap::new();
        let mut by_fact: HashMap<Fact, Vec<Cursor>> = HashMap::new();
        for (_, told) in self.watchers.iter().flat_map(|watcher| &watcher.told) {
            let Told::Change(cursor, fact) = told else {
                continue;
            };
            let first = by_cursor.entry(cursor).or_insert(fact);
            if *first != fact {
                return Err(Broken(format!("{cursor} is both {first:?} and {fact:?}")));
            }
            let cursors = by_fact.entry(fact.clone()).or_default();
            if !cursors.contains(cursor) {
                cursors.push(cursor.clone());
            }
        }
        Ok(by_fact)
    }

    fn verify_watcher(
        &self,
        watcher: &WatcherLog,
        positions: &HashMap<Fact, Vec<Cursor>>,
        report: &mut Report,
    ) -> Result<(), Broken> {
        self.verify_order(watcher)?;
        self.verify_origin(watcher)?;
        let Some(since) = watcher.told.iter().find_map(|(at, told)| match told {
            Told::Acknowledged(_) | Told::Gap(..) => Some(*at),
            _ => None,
        }) else {
            return Ok(());
        };
        let ended = watcher.told.iter().find_map(|(at, told)| match told {
            Told::Ended | Told::Excused => Some(*at),
            _ => None,
        });
        let delivered: BTreeMap<&Fact, u64> = watcher
            .told
            .iter()
            .filter_map(|(at, told)| match told {
                Told::Change(_, fact) => Some((fact, *at)),
                _ => None,
            })
            .collect();
        for (_, told) in &watcher.told {
            match told {
                Told::Change(..) => report.deliveries += 1,
                Told::Gap(_, reason) => *report.gaps.entry(reason.as_str()).or_default() += 1,
                Told::Acknowledged(_) | Told::Ended | Told::Excused | Told::Position(_) => {}
            }
        }
        for (begun, acknowledged, fact) in self.acknowledged() {
            let owed = begun > since
                && (watcher.scope.0)(&fact.name)
                && ended.is_none_or(|ended| acknowledged < ended);
            if !owed {
                continue;
            }
            report.owed += 1;
            let excused = || watcher.excuses(begun, fact, positions);
            if !delivered.contains_key(fact) && !excused() {
                return Err(Broken(format!(
                    "{fact:?} was neither delivered nor told missing"
                )));
            }
        }
        Ok(())
    }

    /// Promises 2 and 5.
    fn verify_order(&self, watcher: &WatcherLog) -> Result<(), Broken> {
        let mut last: Option<Cursor> = None;
        for (_, told) in &watcher.told {
            let (cursor, may_jump, strict) = match told {
                Told::Acknowledged(cursor) => (cursor, true, false),
                Told::Gap(cursor, _) => {
                    last = Some(cursor.clone());
                    continue;
                }
                Told::Change(cursor, _) => (cursor, false, true),
                Told::Position(cursor) => (cursor, false, false),
                Told::Ended | Told::Excused => continue,
            };
            if let Some(last) = &last {
                if cursor.epoch != last.epoch {
                    return Err(Broken(format!("{cursor} follows {last} without a gap")));
                }
                let back = cursor.seq < last.seq || strict && cursor.seq == last.seq;
                if back && !may_jump {
                    return Err(Broken(format!(
                        "{cursor} follows {last}: positions went back"
                    )));
                }
            }
            last = Some(cursor.clone());
        }
        Ok(())
    }

    /// Promise 4.
    fn verify_origin(&self, watcher: &WatcherLog) -> Result<(), Broken> {
        for (_, told) in &watcher.told {
            let Told::Change(cursor, fact) = told else {
                continue;
            };
            if !(watcher.scope.0)(&fact.name) {
                return Err(Broken(format!(
                    "{fact:?} at {cursor} is out of scope or grants"
                )));
            }
            let written = self.writes.iter().any(|write| match &write.outcome {
                Outcome::Acknowledged { fact: made, .. } => made == fact,
                Outcome::Unknown => write.name == fact.name,
                Outcome::Refused => false,
            });
            if !written {
                return Err(Broken(format!(
                    "{fact:?} at {cursor} was written by nobody"
                )));
            }
        }
        Ok(())
    }
}

impl WatcherLog {
    /// True if a gap that this watcher was told covers `fact`: by position where a watcher was told
    /// the position of the change, else because the write began before the gap was told.
    fn excuses(&self, begun: u64, fact: &Fact, positions: &HashMap<Fact, Vec<Cursor>>) -> bool {
        let known = positions.get(fact);
        self.told.iter().any(|(at, told)| {
            let Told::Gap(head, _) = told else {
                return false;
            };
            match known {
                Some(cursors) => cursors
                    .iter()
                    .any(|cursor| cursor.epoch != head.epoch || cursor.seq <= head.seq),
                None => begun < *at,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Epoch, Seq};

    fn at(seq: u64) -> Cursor {
        Cursor::new(Epoch::new("e").expect("legal"), Seq::new(seq))
    }

    fn publish(checker: &Checker, name: &str, version: u64) -> Fact {
        checker.begin(name).acknowledged(version, "publish");
        Fact::new(name, version, "publish")
    }

    #[test]
    fn a_delivered_write_is_no_silence() {
        let checker = Checker::new();
        let watcher = checker.watcher("w", |name| name.starts_with("/a/"));
        watcher.acknowledged(at(0));
        let fact = publish(&checker, "/a/x.md", 1);
        publish(&checker, "/b/x.md", 1);
        watcher.change(at(1), fact);
        let report = checker.verify().expect("nothing is missing");
        assert_eq!((report.commits, report.owed, report.deliveries), (2, 1, 1));
    }

    #[test]
    fn an_undelivered_write_is_silence() {
        let checker = Checker::new();
        let watcher = checker.watcher("w", |_| true);
        watcher.acknowledged(at(0));
        publish(&checker, "/a/x.md", 1);
        assert!(
            checker
                .verify()
                .expect_err("missing")
                .0
                .contains("neither delivered")
        );
    }

    #[test]
    fn a_gap_excuses_what_lies_behind_it_and_nothing_after() {
        let checker = Checker::new();
        let witness = checker.watcher("witness", |_| true);
        let watcher = checker.watcher("w", |_| true);
        witness.acknowledged(at(0));
        watcher.acknowledged(at(0));
        let first = publish(&checker, "/x.md", 1);
        let second = publish(&checker, "/x.md", 2);
        witness.change(at(1), first);
        witness.change(at(2), second);
        watcher.gap(at(1), GapReason::Lapped);
        assert!(
            checker.verify().is_err(),
            "the second write lies after the gap"
        );
        watcher.gap(at(2), GapReason::Lapped);
        assert!(checker.verify().is_ok());
    }

    #[test]
    fn lies_of_a_server_are_found() {
        type Lie = fn(&Checker, &Watcher);
        let cases: [(&str, Lie); 4] = [
            ("written by nobody", |_, w| {
                w.change(at(1), Fact::new("/x.md", 1, "publish"))
            }),
            ("went back", |c, w| {
                w.change(at(1), publish(c, "/x.md", 1));
                w.position(at(0));
            }),
            ("is both", |c, w| {
                w.change(at(1), publish(c, "/x.md", 1));
                w.acknowledged(at(0));
                w.change(at(1), publish(c, "/x.md", 2));
            }),
            ("without a gap", |_, w| {
                w.position(Cursor::new(Epoch::new("f").expect("legal"), Seq::new(1)));
            }),
        ];
        for (expected, lie) in cases {
            let checker = Checker::new();
            let watcher = checker.watcher("w", |_| true);
            watcher.acknowledged(at(0));
            lie(&checker, &watcher);
            let Broken(why) = checker.verify().expect_err(expected);
            assert!(why.contains(expected), "{why} should say {expected}");
        }
    }

    #[test]
    fn a_write_without_an_answer_may_be_delivered_or_not() {
        let checker = Checker::new();
        let watcher = checker.watcher("w", |_| true);
        watcher.acknowledged(at(0));
        checker.begin("/x.md").unknown();
        assert!(checker.verify().is_ok());
        watcher.change(at(1), Fact::new("/x.md", 1, "publish"));
        assert!(checker.verify().is_ok());
    }
}
