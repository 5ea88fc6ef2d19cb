//! Layout of a network as programs see it: loopback, the card if there is one, and the machines that lead to other networks.

use super::{Network, Ways, source};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use linux_raw_sys::net::net_device_flags as flag;

/// Number of loopback.
pub const LOOPBACK: u32 = 1;

/// Number of the card.
pub const CARD: u32 = 2;

/// Name of loopback.
const LOOPBACK_NAME: &str = "lo";

/// Name of the card.
pub const CARD_NAME: &str = "eth0";

/// Kind of hardware that loopback has: `ARPHRD_LOOPBACK`.
pub const LOOPBACK_KIND: u16 = 772;

/// Kind of hardware that the card has: `ARPHRD_ETHER`.
const CARD_KIND: u16 = 1;

/// Bytes of a packet with its head, at most, by loopback.
const LOOPBACK_MTU: u32 = 65_536;

/// Bytes of a packet with its head, at most, by the card.
const CARD_MTU: u32 = 1500;

/// Packets that wait at an interface, at most, as Linux says it of all. Nobody counts them here.
pub const QUEUE: u32 = 1000;

/// Flag of an interface that is in use.
const UP: u32 = flag::IFF_UP as u32;

/// Flags of one that moves packets.
const RUNNING: u32 = flag::IFF_RUNNING as u32 | flag::IFF_LOWER_UP as u32;

/// An interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: &'static str,
    /// Kind of its hardware: `ARPHRD_…`.
    pub kind: u16,
    /// Flags: `IFF_…`.
    pub flags: u32,
    /// Bytes of a packet with its head, at most.
    pub mtu: u32,
    /// Its hardware address.
    pub hardware: [u8; 6],
    /// Hardware address that means all machines.
    pub broadcast: [u8; 6],
    /// Its addresses, each with the length of its network's prefix.
    pub addresses: Vec<(IpAddr, u8)>,
}

impl Interface {
    /// Says if it is in use.
    pub fn is_up(&self) -> bool {
        self.flags & UP != 0
    }

    /// Says if it moves packets.
    pub fn is_running(&self) -> bool {
        self.flags & RUNNING != 0
    }

    /// Its addresses of IPv4.
    pub fn addresses_v4(&self) -> impl Iterator<Item = (Ipv4Addr, u8)> + '_ {
        self.addresses.iter().filter_map(|(address, prefix)| match address {
            IpAddr::V4(address) => Some((*address, *prefix)),
            IpAddr::V6(_) => None,
        })
    }
}

/// Loopback. Without addresses it is not in use, as in an empty network namespace.
fn loopback(addresses: Vec<(IpAddr, u8)>) -> Interface {
    let is_up = !addresses.is_empty();
    Interface {
        number: LOOPBACK,
        name: LOOPBACK_NAME,
        kind: LOOPBACK_KIND,
        flags: flag::IFF_LOOPBACK as u32 | if is_up { UP | RUNNING } else { 0 },
        mtu: LOOPBACK_MTU,
        hardware: [0; 6],
        broadcast: [0; 6],
        addresses,
    }
}

/// The card. Its addresses stay for a while when it is gone.
fn card(hardware: Option<[u8; 6]>, addresses: Vec<(IpAddr, u8)>) -> Interface {
    let able = flag::IFF_BROADCAST as u32 | flag::IFF_MULTICAST as u32;
    Interface {
        number: CARD,
        name: CARD_NAME,
        kind: CARD_KIND,
        flags: UP | able | if hardware.is_some() { RUNNING } else { 0 },
        mtu: CARD_MTU,
        hardware: hardware.unwrap_or_default(),
        broadcast: [0xff; 6],
        addresses,
    }
}

/// Interfaces and ways of a network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Interfaces, by their numbers.
    pub interfaces: Vec<Interface>,
    /// Machines that lead to all other networks: of IPv4, and of IPv6.
    pub routers: [Option<IpAddr>; 2],
}

impl Layout {
    /// Layout of a network as it is now.
    pub fn of(network: &dyn Network) -> Layout {
        let (near, far): (Vec<_>, Vec<_>) =
            network.addresses().into_iter().partition(|(address, _)| address.is_loopback());
        let hardware = network.card();
        let mut interfaces = Vec::from([loopback(near)]);
        if hardware.is_some() || !far.is_empty() {
            interfaces.push(card(hardware, far));
        }
        let routers = [network.router().map(IpAddr::from), network.router_v6().map(IpAddr::from)];
        Layout { interfaces, routers }
    }

    /// The interface with a name.
    pub fn named(&self, name: &[u8]) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.name.as_bytes() == name)
    }

    /// The interface with a number.
    pub fn numbered(&self, number: u32) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.number == number)
    }

    /// Addresses of all interfaces.
    pub fn addresses(&self) -> Vec<(IpAddr, u8)> {
        self.interfaces.iter().flat_map(|interface| interface.addresses.iter().copied()).collect()
    }

    /// The address of this machine from which another one is reached.
    pub fn source(&self, to: IpAddr) -> Option<IpAddr> {
        let own = self.addresses();
        if own.is_empty() {
            return None;
        }
        let [v4, v6] = self.routers.map(|router| router.is_some());
        source(&own, || Some(Ways { v4, v6 }), to)
    }
}

/// Bits of an address of IPv4 that are those of its network.
pub fn mask(prefix: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0)
}

/// The first address of a network, of any address in it.
pub fn network_of(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() & mask(prefix)).into(),
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

/// The address that means all machines of a network; networks of one or two machines have none, and so has loopback.
pub fn broadcast_of(address: Ipv4Addr, prefix: u8) -> Option<Ipv4Addr> {
    let has_one = prefix < 31 && !address.is_loopback();
    has_one.then(|| Ipv4Addr::from_bits(address.to_bits() | !mask(prefix)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Nowhere;
    use crate::network::loopback::{HARDWARE, Loopback, OWN};

    #[test]
    fn a_network_has_loopback_and_maybe_a_card() {
        let layout = Layout::of(&Nowhere::default());
        assert_eq!((layout.interfaces.len(), layout.routers), (1, [None; 2]));
        let [lo] = layout.interfaces.as_slice() else { panic!("{layout:?}") };
        assert_eq!((lo.number, lo.name, lo.flags, lo.is_up(), lo.is_running()), (1, "lo", 8, false, false));
        assert_eq!(layout.source("127.0.0.1".parse().unwrap()), None);
        let layout = Layout::of(&Loopback::default());
        let [lo, eth] = layout.interfaces.as_slice() else { panic!("{layout:?}") };
        assert_eq!((lo.flags, lo.mtu, lo.kind, lo.addresses.len()), (0x1_0049, 65_536, 772, 2));
        assert_eq!((eth.flags, eth.mtu, eth.kind, eth.hardware), (0x1_1043, 1500, 1, HARDWARE));
        let own: Ipv4Addr = OWN.parse().unwrap();
        assert_eq!(eth.addresses_v4().collect::<Vec<_>>(), [(own, 24)]);
        assert_eq!(layout.named(b"eth0"), layout.numbered(2));
        assert_eq!((layout.named(b"eth"), layout.numbered(0)), (None, None));
        assert_eq!(layout.source("10.0.2.2".parse().unwrap()), Some(own.into()));
    }

    #[test]
    fn networks_of_addresses() {
        for (address, prefix, network, broadcast) in [
            ("10.0.2.15", 24, "10.0.2.0", Some("10.0.2.255")),
            ("10.0.2.15", 0, "0.0.0.0", Some("255.255.255.255")),
            ("10.0.2.15", 30, "10.0.2.12", Some("10.0.2.15")),
            ("10.0.2.15", 31, "10.0.2.14", None),
            ("10.0.2.15", 32, "10.0.2.15", None),
            ("10.0.2.15", 255, "10.0.2.15", None),
            ("127.0.0.1", 8, "127.0.0.0", None),
        ] {
            let address: Ipv4Addr = address.parse().unwrap();
            assert_eq!(network_of(address.into(), prefix), network.parse::<IpAddr>().unwrap());
            assert_eq!(broadcast_of(address, prefix), broadcast.map(|all| all.parse().unwrap()));
        }
        for (address, prefix, network) in [
            ("fe80::15", 64, "fe80::"),
            ("fe80::15", 0, "::"),
            ("fe80::15", 128, "fe80::15"),
            ("::1", 200, "::1"),
        ] {
            assert_eq!(network_of(address.parse().unwrap(), prefix), network.parse::<IpAddr>().unwrap());
        }
    }
}
