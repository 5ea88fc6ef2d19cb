//! Claims of addresses: before this machine uses one, it asks whether somebody has it. Of IPv6 it asks as RFC 4862 says (duplicate address detection), of IPv4 as RFC 5227 does.
//!
//! `smoltcp` 0.14 does neither, and says nothing to who asks whether *this* machine has an address, since such a question comes from no address. So both are done here, before the
//! stack gets a frame.
//!
//! A machine that says that it has an address is believed if its message is orderly and from this network. A question is nobody else's if it is this machine's own, which a network
//! has sent back: it has the number in it that was put there (RFC 7527).

use crate::advertisements::NEVER;
use crate::discovery::{ALL, Message, group, group_hardware, options};
use crate::frames;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, Icmpv6Message,
    NdiscNeighborFlags, NdiscRepr,
};

/// How often it is asked for an address of IPv6, and how long an answer may take each time.
const ASKS_V6: (u8, Duration) = (1, Duration::from_secs(1));

/// How often, and how long, for one of IPv4: all that wants the network waits for that, when the machine starts and when the server does.
const ASKS_V4: (u8, Duration) = (2, Duration::from_millis(100));

/// Time in which so many conflicts are told of, at most.
const SILENCE: Duration = Duration::from_secs(10);
/// See [`SILENCE`].
const TOLD_MAX: usize = 8;

/// Bytes of a question or an answer in front of its options, and place of the address.
const HEAD: usize = 24;
/// See [`HEAD`].
const TARGET: core::ops::Range<usize> = 8..HEAD;

/// Kinds of options: hardware address of the sender; number of a question.
const SENDER: u8 = 1;
/// See [`SENDER`].
const NUMBER: u8 = 14;

/// State of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is asked for: so many more times, the next time or the end at this moment.
    Asked { left: u8, until: Instant },
    /// It is this machine's.
    Own,
    /// Somebody else has it, or wants it.
    Taken,
}

/// A claim.
#[derive(Clone, Copy, Debug)]
struct Claim {
    address: IpAddr,
    fate: Fate,
    /// Number of the last question.
    number: [u8; 6],
}

/// An address that is not used, since somebody else has it or wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The address.
    pub address: IpAddr,
    /// Hardware address of the other machine.
    pub hardware: [u8; 6],
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let [a, b, c, d, e, g] = self.hardware;
        write!(f, "the address {} is not used: ", self.address)?;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x} has it, or wants it, too")
    }
}

/// A question whether this machine has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    address: IpAddr,
    /// Hardware address of who asks.
    hardware: EthernetAddress,
}

/// Claims of this machine.
#[derive(Debug)]
pub(crate) struct Claims {
    now: Instant,
    all: Vec<Claim>,
    /// When something is due.
    due: Instant,
    conflicts: Vec<Conflict>,
    /// Conflicts since a moment.
    told: usize,
    told_since: Instant,
}

impl Default for Claims {
    fn default() -> Claims {
        let now = Instant::ZERO;
        Claims { now, all: Vec::new(), due: NEVER, conflicts: Vec::new(), told: 0, told_since: now }
    }
}

fn asks(address: IpAddr) -> (u8, Duration) {
    if address.is_ipv4() { ASKS_V4 } else { ASKS_V6 }
}

/// State of an address for which nobody has been asked yet.
fn begun(now: Instant, address: IpAddr) -> Fate {
    let (left, _) = asks(address);
    Fate::Asked { left, until: now }
}

/// Word of another machine about an address.
struct Heard {
    address: IpAddr,
    hardware: EthernetAddress,
    /// It wants the address; if not, it has it.
    asks: bool,
    /// Number of the question.
    number: Option<[u8; 6]>,
}

impl Heard {
    fn of(frame: &[u8]) -> Option<Heard> {
        let ethernet = EthernetFrame::new_checked(frame).ok()?;
        match ethernet.ethertype() {
            EthernetProtocol::Arp => Heard::of_v4(ethernet.payload()),
            EthernetProtocol::Ipv6 => Heard::of_v6(&Message::of(frame)?),
            _ => None,
        }
    }

    /// Reads a message of IPv4: its sender has the address that it is from, or asks for the other if it is from none.
    fn of_v4(packet: &[u8]) -> Option<Heard> {
        let said = ArpRepr::parse(&ArpPacket::new_checked(packet).ok()?).ok()?;
        let ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: hardware,
            source_protocol_addr: has,
            target_protocol_addr: wants,
            ..
        } = said
        else {
            return None;
        };
        let asks = match operation {
            ArpOperation::Request => has.is_unspecified(),
            ArpOperation::Reply => false,
            ArpOperation::Unknown(_) => return None,
        };
        let address = if asks { wants } else { has }.into();
        Some(Heard { address, hardware, asks, number: None })
    }

    fn of_v6(message: &Message) -> Option<Heard> {
        let address = Ipv6Addr::from(<[u8; 16]>::try_from(message.bytes.get(TARGET)?).ok()?);
        let options = options(message.bytes.get(HEAD..)?)?;
        let asks = match message.kind {
            Icmpv6Message::NeighborAdvert => false,
            // Others are asked where the machine is that has the address.
            Icmpv6Message::NeighborSolicit if message.from.is_unspecified() => true,
            _ => return None,
        };
        let is_answer = message.bytes[4] & NdiscNeighborFlags::SOLICITED.bits() != 0;
        let is_orderly = if asks {
            message.to == group(address) && options.iter().all(|option| option[0] != SENDER)
        } else {
            !(message.to.is_multicast() && is_answer)
        };
        let number = options.iter().find_map(|option| match **option {
            [NUMBER, 1, ref number @ ..] => number.try_into().ok(),
            _ => None,
        });
        let [hardware, _] = message.hardware;
        is_orderly.then_some(Heard { address: address.into(), hardware, asks, number })
    }
}

impl Claims {
    /// Addresses that the machine wants from now on. It asks for those that are new, and forgets the others.
    pub fn set(&mut self, now: Instant, wanted: &[IpAddr]) {
        self.all.retain(|claim| wanted.contains(&claim.address));
        for &address in wanted {
            if self.fate(address).is_none() {
                self.all.push(Claim { address, fate: begun(now, address), number: [0; 6] });
                self.due = now;
            }
        }
    }

    /// The card has come back: what is not this machine's is asked for again.
    pub fn renew(&mut self, now: Instant) {
        for claim in self.all.iter_mut().filter(|claim| claim.fate != Fate::Own) {
            claim.fate = begun(now, claim.address);
        }
        self.due = now;
    }

    /// State of an address.
    pub fn fate(&self, address: IpAddr) -> Option<Fate> {
        self.all.iter().find(|claim| claim.address == address).map(|claim| claim.fate)
    }

    /// Whether an address is this machine's.
    pub fn has(&self, address: IpAddr) -> bool {
        self.fate(address) == Some(Fate::Own)
    }

    /// When something is due.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Does what is due. Gives the frames by which it is asked now.
    pub fn turn(&mut self, now: Instant, own: EthernetAddress) -> Vec<Vec<u8>> {
        self.now = now;
        let mut questions = Vec::new();
        self.due = NEVER;
        for claim in &mut self.all {
            let Fate::Asked { left, until } = claim.fate else { continue };
            claim.fate = match left.checked_sub(1) {
                _ if until > now => claim.fate,
                None => Fate::Own,
                Some(left) => {
                    // Machines that have nothing else of their own have been switched on at moments of their own.
                    let [_, _, number @ ..] = now.total_micros().to_be_bytes();
                    claim.number = number;
                    questions.push(question(own, claim));
                    Fate::Asked { left, until: now + asks(claim.address).1 }
                }
            };
            if let Fate::Asked { until, .. } = claim.fate {
                self.due = self.due.min(until);
            }
        }
        questions
    }

    /// Looks at a frame of the card's. Gives the question in it, if the answer is that this machine has the address.
    pub fn hears(&mut self, frame: &[u8], own: EthernetAddress) -> Option<Asked> {
        let Heard { address, hardware, asks, number } = Heard::of(frame)?;
        let claim = self.all.iter_mut().find(|claim| claim.address == address)?;
        let is_sent_back = match address {
            IpAddr::V4(_) => hardware == own,
            IpAddr::V6(_) => asks && number == Some(claim.number),
        };
        match claim.fate {
            Fate::Own if asks && !is_sent_back => Some(Asked { address, hardware }),
            Fate::Asked { .. } if !is_sent_back => {
                claim.fate = Fate::Taken;
                self.due = Instant::ZERO;
                self.tell(Conflict { address, hardware: hardware.0 });
                None
            }
            _ => None,
        }
    }

    fn tell(&mut self, conflict: Conflict) {
        if self.told_since + SILENCE <= self.now {
            (self.told_since, self.told) = (self.now, 0);
        }
        if self.told < TOLD_MAX {
            self.told += 1;
            self.conflicts.push(conflict);
        }
    }

    /// The next conflict that nobody has been told of.
    pub fn conflict(&mut self) -> Option<Conflict> {
        self.conflicts.pop()
    }
}

/// A frame that asks who has an address, from none.
fn question(own: EthernetAddress, claim: &Claim) -> Vec<u8> {
    match claim.address {
        IpAddr::V4(address) => frames::arp(
            [own, EthernetAddress::BROADCAST],
            ArpRepr::EthernetIpv4 {
                operation: ArpOperation::Request,
                source_hardware_addr: own,
                source_protocol_addr: Ipv4Addr::UNSPECIFIED,
                target_hardware_addr: EthernetAddress([0; 6]),
                target_protocol_addr: address,
            },
        ),
        IpAddr::V6(address) => {
            let mut message =
                frames::message(NdiscRepr::NeighborSolicit { target_addr: address, lladdr: None });
            message.extend([NUMBER, 1]);
            message.extend(claim.number);
            let to = group(address);
            frames::about_network([own, group_hardware(to)], Ipv6Addr::UNSPECIFIED, to, &message)
        }
    }
}

/// A frame that says that this machine has an address, to who has asked for it: to all, since who asks has no address.
pub(crate) fn answer(own: EthernetAddress, asked: &Asked) -> Vec<u8> {
    match asked.address {
        IpAddr::V4(address) => frames::arp(
            [own, asked.hardware],
            ArpRepr::EthernetIpv4 {
                operation: ArpOperation::Reply,
                source_hardware_addr: own,
                source_protocol_addr: address,
                target_hardware_addr: asked.hardware,
                target_protocol_addr: Ipv4Addr::UNSPECIFIED,
            },
        ),
        IpAddr::V6(address) => {
            let told = NdiscRepr::NeighborAdvert {
                flags: NdiscNeighborFlags::OVERRIDE,
                target_addr: address,
                lladdr: Some(own.into()),
            };
            frames::about_network([own, group_hardware(ALL)], address, ALL, &frames::message(told))
        }
    }
}
