//! Who gets in: the bounds on dials, handshakes and connections, decided before a handshake costs
//! anything.
//!
//! A seat is taken at the first packet and given back when the connection, or the attempt at one,
//! is over, whichever way it ends. Over its bounds a dial is refused, which the client learns at
//! once; from a part of a bound on, strangers first prove that they can be reached at their
//! address, so that a flood of forged ones fills nothing. A network that can be reached and never
//! finishes its handshakes fills its share, and others still come in.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::network::Network;
use crate::rate::{Bucket, Rate};

/// How many may come.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Dials let in per second; 0 is no limit.
    pub accepts_per_second: u32,
    /// Open connections.
    pub connections: usize,
    /// Open connections of one network.
    pub connections_per_address: usize,
    /// Handshakes in progress, of which one network may have half.
    pub handshakes: usize,
    /// Handshakes in progress from which on a dialler must prove its address first.
    pub handshakes_unproved: usize,
}

impl Bounds {
    /// Handshakes of one network: half of all, at least one. Half and not less, because those who
    /// come back together after a restart may all sit behind one address.
    fn handshakes_per_network(&self) -> usize {
        (self.handshakes / 2).max(1)
    }
}

/// The bound that a dial was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Too many dials in this second.
    Accepts,
    /// Too many connections.
    Connections,
    /// Too many connections of one network.
    ConnectionsPerAddress,
    /// Too many handshakes in progress.
    Handshakes,
}

/// The counts of all open connections and handshakes. A cheap handle: clones share it.
#[derive(Clone, Debug)]
pub struct Admission(Arc<Mutex<Counts>>);

#[derive(Debug)]
struct Counts {
    accepts: Bucket,
    accept_rate: Rate,
    connections: usize,
    bounds: Bounds,
    handshakes: usize,
    networks: HashMap<Network, Theirs>,
}

/// What one network has.
#[derive(Clone, Copy, Debug, Default)]
struct Theirs {
    connections: usize,
    handshakes: usize,
}

/// What to do with a dial.
#[derive(Debug)]
pub enum Verdict {
    /// Shake hands; the seat is theirs.
    Admit(Seat),
    /// Ask for a proof of the address first.
    Prove,
    /// Refuse, over this bound.
    Refuse(Over),
}

impl Admission {
    /// Nobody is in yet.
    pub fn new(bounds: Bounds, now: Instant) -> Self {
        let accept_rate = Rate {
            per_second: bounds.accepts_per_second,
            burst: bounds.accepts_per_second,
        };
        Self(Arc::new(Mutex::new(Counts {
            accepts: Bucket::new(accept_rate, now),
            accept_rate,
            connections: 0,
            bounds,
            handshakes: 0,
            networks: HashMap::new(),
        })))
    }

    /// Decides on a dial from `network` whose address is `proved` or only claimed.
    pub fn dial(&self, network: Network, proved: bool, now: Instant) -> Verdict {
        let mut counts = self.counts();
        let theirs = counts.networks.get(&network).copied().unwrap_or_default();
        if counts.connections >= counts.bounds.connections {
            return Verdict::Refuse(Over::Connections);
        }
        if theirs.connections >= counts.bounds.connections_per_address {
            return Verdict::Refuse(Over::ConnectionsPerAddress);
        }
        let is_over_share = theirs.handshakes >= counts.bounds.handshakes_per_network();
        if counts.handshakes >= counts.bounds.handshakes || is_over_share {
            return Verdict::Refuse(Over::Handshakes);
        }
        if !proved && counts.handshakes >= counts.bounds.handshakes_unproved {
            return Verdict::Prove;
        }
        let rate = counts.accept_rate;
        if !counts.accepts.take(rate, now) {
            return Verdict::Refuse(Over::Accepts);
        }
        counts.connections += 1;
        counts.handshakes += 1;
        let theirs = counts.networks.entry(network).or_default();
        theirs.connections += 1;
        theirs.handshakes += 1;
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
pub struct Seat {
    admission: Admission,
    network: Network,
    shaking_hands: bool,
}

impl Seat {
    /// The handshake is over; the next dial may begin its own.
    pub fn established(&mut self) {
        if std::mem::take(&mut self.shaking_hands) {
            let mut counts = self.admission.counts();
            counts.handshakes -= 1;
            if let Some(theirs) = counts.networks.get_mut(&self.network) {
                theirs.handshakes -= 1;
            }
        }
    }

    /// Who sits here.
    pub fn network(&self) -> Network {
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
            theirs.connections -= 1;
            theirs.connections
        });
        if left == 0 {
            counts.networks.remove(&self.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn bounds() -> Bounds {
        Bounds {
            accepts_per_second: 0,
            connections: 4,
            connections_per_address: 3,
            handshakes: 2,
            handshakes_unproved: 1,
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

    fn refusal(admission: &Admission, last: u8) -> Over {
        match admission.dial(network(last), true, Instant::now()) {
            Verdict::Refuse(limit) => limit,
            verdict => panic!("{verdict:?}"),
        }
    }

    #[test]
    fn connections_are_bounded_per_address_and_together_and_come_back() {
        let admission = Admission::new(bounds(), Instant::now());
        let mut seats: Vec<_> = (0..3).map(|_| seat(&admission, 1)).collect();
        assert_eq!(refusal(&admission, 1), Over::ConnectionsPerAddress);
        seats.push(seat(&admission, 2));
        assert_eq!(refusal(&admission, 3), Over::Connections);
        seats.clear();
        seats.push(seat(&admission, 1));
        assert_eq!(admission.counts().networks.len(), 1);
    }

    // T47
    #[test]
    fn under_pressure_a_stranger_proves_its_address_and_above_the_bound_is_refused() {
        let admission = Admission::new(bounds(), Instant::now());
        let first = admission.dial(network(1), false, Instant::now());
        assert!(matches!(first, Verdict::Admit(_)));
        let second = admission.dial(network(2), false, Instant::now());
        assert!(matches!(second, Verdict::Prove));
        let second = admission.dial(network(2), true, Instant::now());
        assert!(matches!(second, Verdict::Admit(_)));
        assert_eq!(refusal(&admission, 3), Over::Handshakes);
        drop(first);
        seat(&admission, 3);
    }

    // T47
    #[test]
    fn a_network_that_finishes_no_handshake_leaves_half_of_them_to_others() {
        let wide = Bounds {
            handshakes: 6,
            handshakes_unproved: 6,
            connections: 8,
            connections_per_address: 8,
            ..bounds()
        };
        let admission = Admission::new(wide, Instant::now());
        let dial = |last| admission.dial(network(last), true, Instant::now());
        let half: Vec<_> = (0..3).map(|_| dial(1)).collect();
        assert_eq!(refusal(&admission, 1), Over::Handshakes);
        let other = dial(2);
        assert!(matches!(other, Verdict::Admit(_)));
        drop(half);
        assert!(matches!(dial(1), Verdict::Admit(_)));
    }
}
