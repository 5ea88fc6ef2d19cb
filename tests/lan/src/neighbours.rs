//! Another machine of the network, which has addresses that somebody else wants, says that it has them, or wants them as well.

use crate::frames::{ethernet, icmp_v6};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, Icmpv6Packet,
    Ipv6Packet,
};

/// Its hardware address.
pub const HARDWARE: [u8; 6] = [2, 0, 0, 0, 7, 7];

/// Address of all machines of a network, and their hardware address for that.
const ALL: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// See [`ALL`].
const ALL_HARDWARE: EthernetAddress = EthernetAddress([0x33, 0x33, 0, 0, 0, 1]);

/// Kinds of messages: a question where an address is, and the answer.
const ASKED: u8 = 135;
/// See [`ASKED`].
const TOLD: u8 = 136;

/// Flags of an answer: somebody has asked; it replaces what was known.
const SOLICITED: u8 = 0x40;
/// See [`SOLICITED`].
const OVERRIDE: u8 = 0x20;

/// Manner of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// It has the addresses, and says so.
    #[default]
    Has,
    /// It wants them itself, and asks at once.
    Wants,
    /// The network sends questions back to who has asked.
    SendsBack,
    /// Sums are wrong.
    WrongSum,
    /// Messages have been forwarded.
    Forwarded,
    /// Messages have a code that there is not.
    WrongCode,
    /// Another address is meant.
    Other,
    /// A message to all says that it is the answer to a question.
    AnswersAll,
    /// The last option is longer than the message.
    LongOption,
    /// A question without an address tells of a hardware address.
    WantsAndTells,
    /// A question without an address is for one machine.
    WantsAlone,
}

impl Manner {
    /// Manners that take no address of IPv6 from anybody.
    pub const HARMLESS: [Manner; 9] = [
        Manner::SendsBack,
        Manner::WrongSum,
        Manner::Forwarded,
        Manner::WrongCode,
        Manner::Other,
        Manner::AnswersAll,
        Manner::LongOption,
        Manner::WantsAndTells,
        Manner::WantsAlone,
    ];
}

/// The machine.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    /// Manner.
    pub manner: Manner,
    /// Addresses that it has or wants.
    pub has: Vec<IpAddr>,
    /// Addresses that were asked for by somebody without one.
    pub wanted: Vec<IpAddr>,
    /// Addresses of which somebody said to all, or to this machine, that they are his.
    pub defended: Vec<IpAddr>,
}

/// Group of machines whose addresses end like this one.
fn group(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

/// Hardware address of a group.
fn group_hardware(group: Ipv6Addr) -> EthernetAddress {
    let [.., a, b, c, d] = group.octets();
    EthernetAddress([0x33, 0x33, a, b, c, d])
}

/// A message of a kind, with flags, about an address.
fn about(kind: u8, flags: u8, address: Ipv6Addr) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 0, flags, 0, 0, 0];
    message.extend(address.octets());
    message
}

/// A message of IPv4 about addresses, from who has one or none.
fn arp(to: EthernetAddress, operation: ArpOperation, [has, wants]: [Ipv4Addr; 2]) -> Vec<u8> {
    let said = ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr: EthernetAddress(HARDWARE),
        source_protocol_addr: has,
        target_hardware_addr: EthernetAddress([0; 6]),
        target_protocol_addr: wants,
    };
    let mut bytes = vec![0; said.buffer_len()];
    said.emit(&mut ArpPacket::new_unchecked(&mut bytes));
    ethernet(to, EthernetProtocol::Arp, &bytes)
}

/// A question of this machine, which has no address yet, whether somebody has this one.
pub fn question(address: IpAddr) -> Vec<u8> {
    let mut frame = match address {
        IpAddr::V4(address) => {
            arp(EthernetAddress::BROADCAST, ArpOperation::Request, [Ipv4Addr::UNSPECIFIED, address])
        }
        IpAddr::V6(address) => {
            let to = group(address);
            let ends = (Ipv6Addr::UNSPECIFIED, to);
            icmp_v6(group_hardware(to), ends, 255, about(ASKED, 0, address))
        }
    };
    EthernetFrame::new_unchecked(&mut frame).set_src_addr(EthernetAddress(HARDWARE));
    frame
}

impl Neighbours {
    /// Answers to a frame of somebody who wants an address.
    pub(crate) fn answer(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let ethernet = EthernetFrame::new_checked(frame).ok()?;
        let mut answer = match ethernet.ethertype() {
            EthernetProtocol::Arp => self.answer_v4(ethernet.src_addr(), ethernet.payload())?,
            EthernetProtocol::Ipv6 => self.answer_v6(frame, ethernet.payload())?,
            _ => return None,
        };
        if self.manner != Manner::SendsBack {
            EthernetFrame::new_unchecked(&mut answer).set_src_addr(EthernetAddress(HARDWARE));
        }
        Some(answer)
    }

    fn answer_v4(&mut self, from: EthernetAddress, packet: &[u8]) -> Option<Vec<u8>> {
        let said = ArpRepr::parse(&ArpPacket::new_checked(packet).ok()?).ok()?;
        let ArpRepr::EthernetIpv4 {
            operation, source_protocol_addr: has, target_protocol_addr: wants, ..
        } = said
        else {
            return None;
        };
        if operation == ArpOperation::Reply && wants.is_unspecified() {
            self.defended.push(has.into());
        }
        if operation != ArpOperation::Request || !has.is_unspecified() {
            return None;
        }
        self.wanted.push(wants.into());
        let nobody = Ipv4Addr::UNSPECIFIED;
        let answer = match self.manner {
            Manner::Wants => arp(EthernetAddress::BROADCAST, ArpOperation::Request, [nobody, wants]),
            _ => arp(from, ArpOperation::Reply, [wants, nobody]),
        };
        self.has.contains(&wants.into()).then_some(answer)
    }

    fn answer_v6(&mut self, frame: &[u8], packet: &[u8]) -> Option<Vec<u8>> {
        let packet = Ipv6Packet::new_checked(packet).ok()?;
        let message = packet.payload();
        let address = Ipv6Addr::from(<[u8; 16]>::try_from(message.get(8..24)?).ok()?);
        let from = packet.src_addr();
        if message[0] == TOLD && packet.dst_addr() == ALL {
            self.defended.push(address.into());
        }
        if message[0] != ASKED || !from.is_unspecified() {
            return None;
        }
        assert!(Icmpv6Packet::new_unchecked(message).verify_checksum(&from, &packet.dst_addr()));
        assert_eq!(
            (packet.hop_limit(), packet.dst_addr()),
            (255, group(address)),
            "a question is as it should be"
        );
        self.wanted.push(address.into());
        self.has.contains(&address.into()).then(|| self.said(frame, address))
    }

    fn said(&self, asked: &[u8], address: Ipv6Addr) -> Vec<u8> {
        let [.., last] = address.octets();
        let mut other = address.octets();
        other[15] = last ^ 1;
        let other = Ipv6Addr::from(other);
        let option = |kind: u8| [&[kind, 1][..], &HARDWARE].concat();
        let has = |address, flags| [about(TOLD, flags, address), option(2)].concat();
        let to_all = |hops, message| icmp_v6(ALL_HARDWARE, (address, ALL), hops, message);
        let wants = |to, message| icmp_v6(group_hardware(to), (Ipv6Addr::UNSPECIFIED, to), 255, message);
        let mut message = has(address, OVERRIDE);
        match self.manner {
            Manner::Has => to_all(255, message),
            Manner::Wants => question(address.into()),
            Manner::SendsBack => asked.to_vec(),
            Manner::WrongSum => {
                let mut frame = to_all(255, message);
                *frame.last_mut().expect("frames are not empty") ^= 1;
                frame
            }
            Manner::Forwarded => to_all(254, message),
            Manner::WrongCode => {
                message[1] = 1;
                to_all(255, message)
            }
            Manner::Other => to_all(255, has(other, OVERRIDE)),
            Manner::AnswersAll => to_all(255, has(address, OVERRIDE | SOLICITED)),
            Manner::LongOption => {
                message[25] = 2;
                to_all(255, message)
            }
            Manner::WantsAndTells => wants(group(address), [about(ASKED, 0, address), option(1)].concat()),
            Manner::WantsAlone => wants(address, about(ASKED, 0, address)),
        }
    }
}
