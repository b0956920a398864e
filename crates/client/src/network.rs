//! Noticing that this machine slept or moved to another network.
//!
//! QUIC finds out by itself, when its idle timeout of 30 s has passed; a person who opened the lid
//! of a laptop doesn't wait for that. So a task looks every two seconds, as long as there is a
//! watch: if the wall clock ran ahead of the monotonic one the machine slept, and if the way to a
//! server starts at another address it moved. After either the pool takes new sockets, and after a
//! sleep it asks each kept connection for a sign of life (T49, L66).
//!
//! A wall clock that is set forward looks like a sleep; then connections prove alive and go on.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime};

/// Between two looks: with the probe of three seconds a dead connection is noticed within five.
pub(crate) const LOOK_PERIOD: Duration = Duration::from_secs(2);

/// The wall clock is ahead by more than this after a sleep; a busy machine delays both clocks
/// alike.
const SLEEP_MIN: Duration = Duration::from_secs(5);

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The machine has another address on its way to a server.
    Moved,
    /// Nothing.
    Same,
    /// The machine slept.
    Slept,
}

/// What the last look saw.
#[derive(Debug)]
pub(crate) struct Monitor {
    monotonic: Instant,
    wall: SystemTime,
    /// The own address on the way to each server.
    routes: HashMap<SocketAddr, IpAddr>,
}

impl Monitor {
    pub(crate) fn new(monotonic: Instant, wall: SystemTime) -> Self {
        Self {
            monotonic,
            wall,
            routes: HashMap::new(),
        }
    }

    /// Compares this moment with the last look. `routes` are the ways that exist; a server that
    /// can't be reached at all has none, and comes back later.
    pub(crate) fn look(
        &mut self,
        monotonic: Instant,
        wall: SystemTime,
        routes: impl IntoIterator<Item = (SocketAddr, IpAddr)>,
    ) -> Finding {
        let awake = monotonic.saturating_duration_since(self.monotonic);
        let passed = wall.duration_since(self.wall).unwrap_or_default();
        (self.monotonic, self.wall) = (monotonic, wall);
        let mut has_moved = false;
        for (server, own) in routes {
            let before = self.routes.insert(server, own);
            has_moved |= before.is_some_and(|before| before != own);
        }
        if passed.saturating_sub(awake) > SLEEP_MIN {
            Finding::Slept
        } else if has_moved {
            Finding::Moved
        } else {
            Finding::Same
        }
    }
}

/// The own address on the way to `server`. Asks the kernel's table of routes; nothing is sent.
pub(crate) fn route(server: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = if server.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(server).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route_from(own: &str) -> Option<(SocketAddr, IpAddr)> {
        Some(("192.0.2.1:6309".parse().unwrap(), own.parse().unwrap()))
    }

    #[test]
    fn a_sleep_is_told_from_a_busy_machine_and_from_a_clock_set_back() {
        let (start, wall) = (Instant::now(), SystemTime::now());
        let mut monitor = Monitor::new(start, wall);
        let at = Duration::from_secs;
        let mut look =
            |monotonic, passed: Duration| monitor.look(start + monotonic, wall + passed, None);
        assert_eq!(look(at(2), at(2)), Finding::Same);
        assert_eq!(look(at(60), at(60)), Finding::Same);
        assert_eq!(look(at(62), at(662)), Finding::Slept);
        assert_eq!(look(at(64), at(10)), Finding::Same);
        assert_eq!(look(at(66), at(12)), Finding::Same);
    }

    #[test]
    fn another_address_on_the_way_to_a_known_server_is_a_move() {
        let (start, wall) = (Instant::now(), SystemTime::now());
        let mut monitor = Monitor::new(start, wall);
        let mut look = |routes| monitor.look(start, wall, routes);
        assert_eq!(look(route_from("10.0.0.7")), Finding::Same);
        assert_eq!(look(route_from("10.0.0.7")), Finding::Same);
        assert_eq!(look(None), Finding::Same);
        assert_eq!(look(route_from("172.16.0.9")), Finding::Moved);
        assert_eq!(look(route_from("172.16.0.9")), Finding::Same);
    }

    #[test]
    fn the_way_to_this_machine_starts_at_this_machine() {
        let here: SocketAddr = "127.0.0.1:6309".parse().unwrap();
        assert_eq!(route(here), Some(here.ip()));
    }
}
