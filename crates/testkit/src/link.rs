//! A bad network between a client and a server: a UDP relay that loses, doubles, delays and cuts.
//!
//! Each client address gets its own socket towards the server, so the server sees as many peers as
//! there are. Faults are drawn from a seeded generator; the same seed and traffic lose the same
//! packets. Dropping the link ends it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use tokio::net::UdpSocket;
use tokio::task::JoinSet;

/// The largest UDP payload.
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// A relay to one server.
#[derive(Debug)]
pub struct Link {
    address: SocketAddr,
    faults: Arc<Faults>,
    _relay: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Faults {
    cut: AtomicBool,
    lost_percent: AtomicU32,
    doubled_percent: AtomicU32,
    random: AtomicU64,
    seen: AtomicU64,
}

impl Faults {
    /// How often to pass on the next packet: not at all, once or twice.
    fn copies(&self) -> usize {
        self.seen.fetch_add(1, Ordering::Relaxed);
        if self.cut.load(Ordering::Relaxed) || self.hits(&self.lost_percent) {
            return 0;
        }
        1 + usize::from(self.hits(&self.doubled_percent))
    }

    fn hits(&self, percent: &AtomicU32) -> bool {
        u64::from(percent.load(Ordering::Relaxed)) > self.draw() % 100
    }

    /// The next number of a splitmix64 sequence.
    fn draw(&self) -> u64 {
        let step = 0x9e37_79b9_7f4a_7c15_u64;
        let mut value = self
            .random
            .fetch_add(step, Ordering::Relaxed)
            .wrapping_add(step);
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }
}

impl Link {
    /// Opens a relay to `server` on a loopback port of its own.
    pub async fn to(server: SocketAddr, seed: u64) -> io::Result<Self> {
        let socket = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?);
        let address = socket.local_addr()?;
        let faults = Arc::new(Faults {
            random: AtomicU64::new(seed),
            ..Faults::default()
        });
        let mut relay = JoinSet::new();
        relay.spawn(run(socket, server, Arc::clone(&faults)));
        Ok(Self {
            address,
            faults,
            _relay: relay,
        })
    }

    /// Where clients dial.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many packets came to the relay, lost ones included.
    pub fn packets(&self) -> u64 {
        self.faults.seen.load(Ordering::Relaxed)
    }

    /// Loses every packet in both directions, or ends that.
    pub fn set_cut(&self, cut: bool) {
        self.faults.cut.store(cut, Ordering::Relaxed);
    }

    /// Loses this share of the packets, in percent.
    pub fn set_lost_percent(&self, percent: u32) {
        self.faults.lost_percent.store(percent, Ordering::Relaxed);
    }

    /// Delivers this share of the packets twice, in percent.
    pub fn set_doubled_percent(&self, percent: u32) {
        self.faults
            .doubled_percent
            .store(percent, Ordering::Relaxed);
    }
}

async fn run(socket: Arc<UdpSocket>, server: SocketAddr, faults: Arc<Faults>) {
    let mut upstreams: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
    let mut answers = JoinSet::new();
    let mut buf = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        // An error here is the echo of a port that closed; the next packet may still be good.
        let Ok((len, client)) = socket.recv_from(&mut buf).await else {
            continue;
        };
        let upstream = match upstreams.entry(client) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let Ok(upstream) = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await else {
                    continue;
                };
                let upstream = Arc::new(upstream);
                answers.spawn(answer(
                    Arc::clone(&upstream),
                    Arc::clone(&socket),
                    client,
                    Arc::clone(&faults),
                ));
                entry.insert(upstream)
            }
        };
        for _ in 0..faults.copies() {
            let _lost_anyway = upstream.send_to(&buf[..len], server).await;
        }
    }
}

async fn answer(
    upstream: Arc<UdpSocket>,
    socket: Arc<UdpSocket>,
    client: SocketAddr,
    faults: Arc<Faults>,
) {
    let mut buf = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        let Ok((len, _)) = upstream.recv_from(&mut buf).await else {
            continue;
        };
        for _ in 0..faults.copies() {
            let _lost_anyway = socket.send_to(&buf[..len], client).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_whole_link_relays_and_a_cut_one_does_not() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("bound");
        let link = Link::to(server.local_addr().expect("bound"), 1)
            .await
            .expect("relay");
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("bound");
        let mut buf = [0; 16];
        link.set_cut(true);
        client.send_to(b"lost", link.address()).await.expect("sent");
        while link.packets() == 0 {
            tokio::task::yield_now().await;
        }
        link.set_cut(false);
        client.send_to(b"kept", link.address()).await.expect("sent");
        let (len, peer) = server.recv_from(&mut buf).await.expect("arrives");
        assert_eq!(&buf[..len], b"kept");
        server.send_to(b"back", peer).await.expect("sent");
        let (len, _) = client.recv_from(&mut buf).await.expect("arrives");
        assert_eq!(&buf[..len], b"back");
    }

    #[test]
    fn the_same_seed_loses_the_same_packets() {
        let draw = |seed| {
            let faults = Faults {
                random: AtomicU64::new(seed),
                ..Faults::default()
            };
            faults.lost_percent.store(30, Ordering::Relaxed);
            (0..200).map(|_| faults.copies()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let lost = draw(7).iter().filter(|copies| **copies == 0).count();
        assert!((30..90).contains(&lost), "{lost} of 200 at 30 percent");
    }
}
