//! A router of IPv6, and what it says of itself and of the network.

use crate::frames::icmp_v6;
use crate::{ADDRESS_V6, FAR_V6, HARDWARE};
use core::net::Ipv6Addr;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{EthernetAddress, Icmpv6Packet, Icmpv6Repr, Ipv6Packet, NdiscNeighborFlags, NdiscRepr};

/// Address of all machines of a network.
const ALL: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Hardware address of all machines, for that.
const ALL_HARDWARE: EthernetAddress = EthernetAddress([0x33, 0x33, 0, 0, 0, 1]);

/// Flags of a prefix: its addresses are in this network, and machines make addresses of it.
pub const ON_LINK: u8 = 0x80;
/// See [`ON_LINK`].
pub const FOR_ADDRESSES: u8 = 0x40;

/// A prefix that the router advertises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Address whose first bits it is.
    pub address: Ipv6Addr,
    /// Number of bits.
    pub len: u8,
    /// [`ON_LINK`] and [`FOR_ADDRESSES`].
    pub flags: u8,
    /// Seconds in which addresses can be used; all ones are for ever.
    pub valid: u32,
    /// Seconds in which they should be.
    pub preferred: u32,
}

impl Prefix {
    /// A usual one, of 64 bits.
    pub fn new(address: Ipv6Addr, valid: u32, preferred: u32) -> Prefix {
        Prefix { address, len: 64, flags: ON_LINK | FOR_ADDRESSES, valid, preferred }
    }
}

/// The router.
#[derive(Clone, Debug)]
pub struct Router {
    /// Whether it answers who asks for routers.
    pub is_there: bool,
    /// Address that its advertisements come from.
    pub from: Ipv6Addr,
    /// Seconds in which it is a way to other networks.
    pub lifetime: u16,
    /// Hops that its advertisements may still make.
    pub hop_limit: u8,
    /// Prefixes that it advertises.
    pub prefixes: Vec<Prefix>,
    /// Servers of names that it advertises, each with the seconds in which it can be asked.
    pub names: Vec<(Ipv6Addr, u32)>,
    /// Requests for advertisements that have come.
    pub solicitations: u64,
    /// Echoes that it has answered for other networks.
    pub far_echoes: u64,
}

impl Default for Router {
    fn default() -> Router {
        Router {
            is_there: false,
            from: ADDRESS_V6,
            lifetime: 1800,
            hop_limit: 255,
            prefixes: Vec::new(),
            names: Vec::new(),
            solicitations: 0,
            far_echoes: 0,
        }
    }
}

impl Router {
    /// The message of an advertisement, without its checksum.
    pub fn message(&self) -> Vec<u8> {
        let [high, low] = self.lifetime.to_be_bytes();
        // Kind, code, sum; hops for others, flags, lifetime; times of neighbours.
        let mut bytes = vec![134, 0, 0, 0, 64, 0, high, low, 0, 0, 0, 0, 0, 0, 0, 0];
        // Hardware address of the sender, in one word of eight bytes.
        bytes.extend_from_slice(&[1, 1]);
        bytes.extend_from_slice(&HARDWARE);
        for prefix in &self.prefixes {
            bytes.extend_from_slice(&[3, 4, prefix.len, prefix.flags]);
            bytes.extend_from_slice(&prefix.valid.to_be_bytes());
            bytes.extend_from_slice(&prefix.preferred.to_be_bytes());
            bytes.extend_from_slice(&[0; 4]);
            bytes.extend_from_slice(&prefix.address.octets());
        }
        for (server, seconds) in &self.names {
            bytes.extend_from_slice(&[25, 3, 0, 0]);
            bytes.extend_from_slice(&seconds.to_be_bytes());
            bytes.extend_from_slice(&server.octets());
        }
        bytes
    }

    /// A frame with a message of the router's to all machines.
    pub fn told(&self, message: Vec<u8>) -> Vec<u8> {
        icmp_v6(ALL_HARDWARE, (self.from, ALL), self.hop_limit, message)
    }

    /// An advertisement to all machines.
    pub fn advertisement(&self) -> Vec<u8> {
        self.told(self.message())
    }

    /// Answers to a packet.
    pub(crate) fn answer(&mut self, from: EthernetAddress, packet: &[u8]) -> Vec<Vec<u8>> {
        self.answered(from, packet).into_iter().collect()
    }

    fn answered(&mut self, hardware: EthernetAddress, packet: &[u8]) -> Option<Vec<u8>> {
        let packet = Ipv6Packet::new_checked(packet).ok()?;
        let (from, to) = (packet.src_addr(), packet.dst_addr());
        let message = Icmpv6Packet::new_checked(packet.payload()).ok()?;
        let said = match Icmpv6Repr::parse(&from, &to, &message, &ChecksumCapabilities::default()).ok()? {
            Icmpv6Repr::Ndisc(NdiscRepr::RouterSolicit { .. }) => {
                self.solicitations += 1;
                return self.is_there.then(|| self.advertisement());
            }
            Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit { target_addr, .. })
                if target_addr == ADDRESS_V6 =>
            {
                Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert {
                    flags: NdiscNeighborFlags::SOLICITED | NdiscNeighborFlags::OVERRIDE,
                    target_addr,
                    lladdr: Some(EthernetAddress(HARDWARE).into()),
                })
            }
            Icmpv6Repr::EchoRequest { ident, seq_no, data } if [ADDRESS_V6, FAR_V6].contains(&to) => {
                self.far_echoes += u64::from(to == FAR_V6);
                Icmpv6Repr::EchoReply { ident, seq_no, data }
            }
            _ => return None,
        };
        let own = if to == FAR_V6 { FAR_V6 } else { ADDRESS_V6 };
        let mut bytes = vec![0; said.buffer_len()];
        said.emit(
            &own,
            &from,
            &mut Icmpv6Packet::new_unchecked(&mut bytes),
            &ChecksumCapabilities::default(),
        );
        Some(icmp_v6(hardware, (own, from), 255, bytes))
    }
}
