//! What the server says of itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use auth::Authority;
use documents::{FileStore, Progress};
use gate::Memory;
use serde_json::{Value, json};
use web::WebServer;

/// The state of the server, kept by `serve` and asked by probes.
#[derive(Debug, Default)]
pub(crate) struct Status(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    opened: Progressed,
    /// Set once everything is open.
    parts: Option<Parts>,
    /// Why the certificate in force isn't the one on disk.
    certificate: Option<String>,
    /// Why the keys of the issuer in force aren't those that it publishes.
    issuer: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Starting,
    Serving,
    Draining,
}

#[derive(Debug, Default)]
struct Progressed {
    done: usize,
    total: usize,
}

/// What a server that is open consists of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) store: FileStore,
    pub(crate) authority: Authority,
    pub(crate) memory: Memory,
    /// The server isn't ready without them.
    pub(crate) documents_required: bool,
    /// The listener of the web faces, unless it is off.
    pub(crate) web: Option<Arc<WebServer>>,
}

/// A yes or no with its reasons.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) ready: bool,
    pub(super) details: Value,
}

impl Status {
    /// Takes how far the opening has come.
    pub(crate) fn opening(&self, progress: Progress) {
        self.state().opened = Progressed {
            done: progress.done,
            total: progress.total,
        };
    }

    /// Everything is open and listening.
    pub(crate) fn serve(&self, parts: Parts) {
        let mut state = self.state();
        state.phase = Phase::Serving;
        state.parts = Some(parts);
    }

    /// The server is on its way out.
    pub(crate) fn drain(&self) {
        self.state().phase = Phase::Draining;
    }

    /// Takes what keeps the certificate on disk from being used.
    pub(crate) fn certificate(&self, problem: Option<String>) {
        self.state().certificate = problem;
    }

    /// Takes what keeps the published keys of the issuer from being used.
    pub(crate) fn issuer(&self, problem: Option<String>) {
        self.state().issuer = problem;
    }

    /// Says which build of the application is current. False where nobody is to be told.
    pub(super) fn set_build(&self, build: Option<&str>) -> bool {
        let state = self.state();
        let web = state.parts.as_ref().and_then(|parts| parts.web.as_ref());
        web.is_some_and(|web| {
            web.set_build(build);
            true
        })
    }

    /// The whole server. Tokens, keys or a certificate that can't be taken, and memory that runs
    /// short, show here and don't count: what was in force still is, those who are here are
    /// served, and a node that left for it would help nobody. A store counts if the configuration
    /// requires it.
    pub(super) fn server(&self) -> Report {
        let state = self.state();
        let documents = state.documents();
        let required = state.parts.as_ref().is_none_or(|it| it.documents_required);
        let ready = state.phase == Phase::Serving && (documents.ready || !required);
        Report {
            ready,
            details: json!({
                "ready": ready,
                "phase": state.phase.as_str(),
                "memory": state.memory(),
                "sources": {
                    "documents": documents.details,
                    "tokens": state.tokens().details,
                    "certificate": state.problem(state.certificate.as_deref()).details,
                    "issuer": state.problem(state.issuer.as_deref()).details,
                },
                "http": state.http(),
            }),
        }
    }

    /// One part of the server; `None` if there is no such part.
    pub(super) fn source(&self, name: &str) -> Option<Report> {
        let state = self.state();
        match name {
            "documents" => Some(state.documents()),
            "tokens" => Some(state.tokens()),
            "certificate" => Some(state.problem(state.certificate.as_deref())),
            "issuer" => Some(state.problem(state.issuer.as_deref())),
            _ => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn documents(&self) -> Report {
        let Some(Parts { store, .. }) = &self.parts else {
            let Progressed { done, total } = self.opened;
            return Report {
                ready: false,
                details: json!({ "ready": false, "done": done, "total": total }),
            };
        };
        let health = store.health();
        let ready = self.phase == Phase::Serving && health.poisoned.is_none();
        Report {
            ready,
            details: json!({
                "ready": ready,
                "documents": health.documents,
                "cursor": store.feed().head().to_string(),
                "problem": health.poisoned,
            }),
        }
    }

    /// Where HTTP is served.
    fn http(&self) -> Value {
        let web = self.parts.as_ref().and_then(|parts| parts.web.as_ref());
        web.map_or(Value::Null, |web| web.local_addr().to_string().into())
    }

    fn memory(&self) -> Value {
        let memory = self.parts.as_ref().map(|parts| &parts.memory);
        memory.map_or(Value::Null, |memory| {
            json!({
                "over": memory.is_over(),
                "resident_bytes": memory.resident_bytes(),
                "budget_bytes": memory.budget_bytes(),
            })
        })
    }

    fn tokens(&self) -> Report {
        let authority = self.parts.as_ref().map(|parts| &parts.authority);
        let problem = authority.and_then(Authority::problem);
        self.problem(problem.as_deref())
    }

    fn problem(&self, problem: Option<&str>) -> Report {
        let ready = self.phase == Phase::Serving && problem.is_none();
        Report {
            ready,
            details: json!({ "ready": ready, "problem": problem }),
        }
    }
}

impl Phase {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Serving => "serving",
            Self::Draining => "draining",
        }
    }
}
