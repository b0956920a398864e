//! Who counts as one client: an IPv4 address, or an IPv6 network of 64 bits.

use std::net::{IpAddr, Ipv6Addr};

/// The part of an address that its owner can't vary at will.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network(IpAddr);

/// A subscriber is given this much of IPv6 and may change the rest with every packet.
const HOST_BITS: u32 = 64;

impl Network {
    /// The network of `addr`; an IPv4 address in IPv6 clothing counts as IPv4.
    pub fn of(addr: IpAddr) -> Self {
        match addr.to_canonical() {
            v4 @ IpAddr::V4(_) => Self(v4),
            IpAddr::V6(v6) => {
                let network = v6.to_bits() >> HOST_BITS << HOST_BITS;
                Self(Ipv6Addr::from_bits(network).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        Network::of(text.parse().unwrap())
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_client() {
        assert_eq!(network("2001:db8:1:2::7"), network("2001:db8:1:2:ffff::1"));
        assert_ne!(network("2001:db8:1:2::7"), network("2001:db8:1:3::7"));
    }

    #[test]
    fn a_mapped_ipv4_address_is_the_ipv4_address() {
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }
}
