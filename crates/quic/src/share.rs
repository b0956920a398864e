//! One network's share of a bound that all clients draw from.
//!
//! A bound alone lets one client take all of it and make the others wait; with a share the rest
//! stays free whatever one network does. What a network is, [`Network`] says.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use gate::Network;
use tokio::sync::Semaphore;

/// Below this many networks nobody looks for those that have left.
const SWEEP_LEN_MIN: usize = 64;

/// The shares of all networks that have a connection.
#[derive(Debug)]
pub(crate) struct Shares {
    each: usize,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    networks: HashMap<Network, Weak<Semaphore>>,
    /// How many there may be before those that have left are forgotten.
    sweep_len: usize,
}

impl Shares {
    /// Everyone has `each`.
    pub(crate) fn new(each: usize) -> Self {
        Self {
            each,
            known: Mutex::default(),
        }
    }

    /// The share of `network`, kept by its connections.
    pub(crate) fn of(&self, network: Network) -> Arc<Semaphore> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let share = known.networks.get(&network).and_then(Weak::upgrade);
        if let Some(share) = share {
            return share;
        }
        if known.networks.len() >= known.sweep_len {
            known.networks.retain(|_, share| share.strong_count() > 0);
            known.sweep_len = (known.networks.len() * 2).max(SWEEP_LEN_MIN);
        }
        let share = Arc::new(Semaphore::new(self.each));
        known.networks.insert(network, Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_one_share_while_it_is_here_and_leaves_nothing_behind() {
        let shares = Shares::new(3);
        let network = |number: u32| Network::of(std::net::Ipv4Addr::from_bits(number).into());
        let first = shares.of(network(1));
        assert!(Arc::ptr_eq(&first, &shares.of(network(1))));
        assert!(!Arc::ptr_eq(&first, &shares.of(network(2))));
        for number in 3..10_000 {
            shares.of(network(number));
        }
        assert!(shares.known.lock().unwrap().networks.len() <= SWEEP_LEN_MIN);
        assert!(Arc::ptr_eq(&first, &shares.of(network(1))));
    }
}
