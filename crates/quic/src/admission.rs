//! Who gets in: the bounds on dials, handshakes and connections, decided before a handshake costs
//! anything.
//!
//! A seat is taken at the first packet and given back when the connection, or the attempt at one,
//! is over, whichever way it ends. Over its bounds a dial is refused, which the client learns at
//! once; from half a bound on, strangers first prove that they can be reached at their address, so
//! that a flood of forged ones fills nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::limits::{Limit, Limits};
use crate::network::Network;
use crate::rate::{Bucket, Rate};

/// The counts of all open connections and handshakes. A cheap handle: clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Admission(Arc<Mutex<Counts>>);

#[derive(Debug)]
struct Counts {
    accepts: Bucket,
    accept_rate: Rate,
    connections: usize,
    connections_max: usize,
    handshakes: usize,
    handshakes_max: usize,
    handshakes_unproved: usize,
    networks: HashMap<Network, usize>,
    per_network_max: usize,
}

/// What to do with a dial.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Shake hands; the seat is theirs.
    Admit(Seat),
    /// Ask for a proof of the address first.
    Prove,
    /// Refuse, over this bound.
    Refuse(Limit),
}

impl Admission {
    pub(crate) fn new(limits: &Limits, now: Instant) -> Self {
        let accept_rate = Rate {
            per_second: limits.accepts_per_second,
            burst: limits.accepts_per_second,
        };
        Self(Arc::new(Mutex::new(Counts {
            accepts: Bucket::new(accept_rate, now),
            accept_rate,
            connections: 0,
            connections_max: limits.connections,
            handshakes: 0,
            handshakes_max: limits.handshakes,
            handshakes_unproved: limits.handshakes_unproved,
            networks: HashMap::new(),
            per_network_max: limits.connections_per_address,
        })))
    }

    /// Decides on a dial from `network` whose address is `proved` or only claimed.
    pub(crate) fn dial(&self, network: Network, proved: bool, now: Instant) -> Verdict {
        let mut counts = self.counts();
        let theirs = counts.networks.get(&network).copied().unwrap_or_default();
        if counts.connections >= counts.connections_max {
            return Verdict::Refuse(Limit::Connections);
        }
        if theirs >= counts.per_network_max {
            return Verdict::Refuse(Limit::ConnectionsPerAddress);
        }
        if counts.handshakes >= counts.handshakes_max {
            return Verdict::Refuse(Limit::Handshakes);
        }
        if !proved && counts.handshakes >= counts.handshakes_unproved {
            return Verdict::Prove;
        }
        let rate = counts.accept_rate;
        if !counts.accepts.take(rate, now) {
            return Verdict::Refuse(Limit::Accepts);
        }
        counts.connections += 1;
        counts.handshakes += 1;
        *counts.networks.entry(network).or_default() += 1;
        Verdict::Admit(Seat {
            admission: self.clone(),
            network,
            shaking_hands: true,
        })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection's place; dropping it gives the place back.
#[derive(Debug)]
pub(crate) struct Seat {
    admission: Admission,
    network: Network,
    shaking_hands: bool,
}

impl Seat {
    /// The handshake is over; the next dial may begin its own.
    pub(crate) fn established(&mut self) {
        if std::mem::take(&mut self.shaking_hands) {
            self.admission.counts().handshakes -= 1;
        }
    }

    /// Who sits here.
    pub(crate) fn network(&self) -> Network {
        self.network
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.established();
        let mut counts = self.admission.counts();
        counts.connections -= 1;
        let theirs = counts.networks.get_mut(&self.network);
        let left = theirs.map_or(0, |theirs| {
            *theirs -= 1;
            *theirs
        });
        if left == 0 {
            counts.networks.remove(&self.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            connections: 4,
            connections_per_address: 3,
            handshakes: 2,
            handshakes_unproved: 1,
            ..Limits::default()
        }
    }

    fn network(last: u8) -> Network {
        Network::of([192, 0, 2, last].into())
    }

    fn seat(admission: &Admission, last: u8) -> Seat {
        match admission.dial(network(last), true, Instant::now()) {
            Verdict::Admit(mut seat) => {
                seat.established();
                seat
            }
            verdict => panic!("{verdict:?}"),
        }
    }

    fn refusal(admission: &Admission, last: u8) -> Limit {
        match admission.dial(network(last), true, Instant::now()) {
            Verdict::Refuse(limit) => limit,
            verdict => panic!("{verdict:?}"),
        }
    }

    #[test]
    fn connections_are_bounded_per_address_and_together_and_come_back() {
        let admission = Admission::new(&limits(), Instant::now());
        let mut seats: Vec<_> = (0..3).map(|_| seat(&admission, 1)).collect();
        assert_eq!(refusal(&admission, 1), Limit::ConnectionsPerAddress);
        seats.push(seat(&admission, 2));
        assert_eq!(refusal(&admission, 3), Limit::Connections);
        seats.clear();
        seats.push(seat(&admission, 1));
        assert_eq!(admission.counts().networks.len(), 1);
    }

    // T47
    #[test]
    fn under_pressure_a_stranger_proves_its_address_and_above_the_bound_is_refused() {
        let admission = Admission::new(&limits(), Instant::now());
        let first = admission.dial(network(1), false, Instant::now());
        assert!(matches!(first, Verdict::Admit(_)));
        let second = admission.dial(network(2), false, Instant::now());
        assert!(matches!(second, Verdict::Prove));
        let second = admission.dial(network(2), true, Instant::now());
        assert!(matches!(second, Verdict::Admit(_)));
        assert_eq!(refusal(&admission, 3), Limit::Handshakes);
        drop(first);
        seat(&admission, 3);
    }
}
