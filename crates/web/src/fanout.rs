//! The fan-out: a task per core writes what is due straight to the sockets of those it concerns.
//!
//! Every held plain HTTP/1 stream and every WebSocket belongs to one [`Worker`](worker::Worker),
//! which alone reads and writes it. Watches that are told the same, byte for byte, form a cohort
//! with one place in the feed ([`cohort`]): a change is encoded once and handed to the kernel once
//! per socket, without an allocation per socket.
//!
//! What a watcher may rely on: everything after the position it was told at the beginning reaches
//! it in order, or a gap says what did not (P3, P7); each change is checked against the grants of
//! its moment (P10); silence means that nothing happened, for a heartbeat with the position comes
//! in any case (P4). Frames are whole (T20).
//!
//! A socket that the kernel takes no more for costs nobody else anything: it keeps the rest of one
//! frame and its position, and goes its own way until it has caught up ([`alone`]), or until
//! nothing moved for too long. A client that left is noticed by the end of its bytes, one whose
//! packets vanish by the kernel's clock. If the process is killed nothing is lost that the client
//! can't ask for again by its position; nothing is kept per client (P14).
//!
//! A task per socket woken by a broadcast was rejected: it costs a fifth more CPU per copy and six
//! times the memory, both measured.

mod alone;
mod begin;
mod cohort;
mod ends;
mod io;
mod line;
mod slab;
mod telling;
mod wakes;
mod whose;
mod worker;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::face::Face;
use crate::socket::Session;
use crate::stream::Plan;

pub(crate) use begin::Begun;
pub(crate) use cohort::Manner;
pub(crate) use io::Io;
pub(crate) use line::{End, Sent, Ties};
pub(crate) use slab::Key;
pub(crate) use worker::{Word, Worker};

/// Sockets that may wait for one worker to take them in: what a herd sends in the time of a long
/// round. Beyond it they are closed, and come back.
const ARRIVALS_MAX: usize = 4_096;

/// Answers that may wait for one worker. Whoever has one waits for its turn.
const WORDS_MAX: usize = 1_024;

/// A socket on its way to the worker that serves it.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) io: Io,
    /// What the client sent after its request.
    pub(crate) read: Bytes,
    /// The head of the answer.
    pub(crate) head: Vec<u8>,
    pub(crate) then: Then,
    pub(crate) ties: Ties,
}

/// What is served on a socket.
#[derive(Debug)]
pub(crate) enum Then {
    /// The sync protocol.
    Socket(Box<Session>),
    /// One watch.
    Watch(Box<Plan>),
}

/// The way to the workers.
#[derive(Debug, Default)]
pub(crate) struct Fanout {
    workers: OnceLock<Box<[mpsc::Sender<Arrival>]>>,
    turn: AtomicUsize,
}

impl Fanout {
    /// Starts the workers; they end when the face stops. Does nothing the second time.
    pub(crate) fn start(face: &Arc<Face>) {
        face.streams.fanout.workers.get_or_init(|| {
            let cores = available_parallelism().map_or(1, usize::from);
            let start = || {
                let (arrivals, arriving) = mpsc::channel(ARRIVALS_MAX);
                let worker = Worker::new(face.clone(), arriving, mpsc::channel(WORDS_MAX));
                // It gives way by itself; a budget per poll would make each socket of a large
                // round be looked at twice.
                tokio::spawn(tokio::task::unconstrained(worker.run()));
                arrivals
            };
            (0..cores).map(|_| start()).collect()
        });
    }

    /// Hands `arrival` to a worker, in turn. One that has too many to take in closes it.
    pub(crate) fn hand_over(face: &Face, arrival: Arrival) {
        let fanout = &face.streams.fanout;
        let turn = fanout.turn.fetch_add(1, Ordering::Relaxed);
        let workers = fanout.workers.get().map(AsRef::as_ref).unwrap_or_default();
        let worker = workers.get(turn.checked_rem(workers.len()).unwrap_or(0));
        let is_taken = worker.is_some_and(|worker| worker.try_send(arrival).is_ok());
        if !is_taken {
            face.metrics.streams.turned_away.inc();
        }
    }
}
