//! Neighbours: machines of this network, for which the stack asks, and of which it has to be told something.
//!
//! `smoltcp` 0.14 asks for one neighbour in a second, for as long as some socket has something for it, and that socket sends nothing else meanwhile. So programs that send to machines which are not
//! there would keep the first frames of all others waiting, for ever. Therefore the stack asks by itself, as soon as something is to go to a neighbour: the answer reaches the crate as any other, and the crate looks at
//! the neighbours that it knows before it thinks of its limit. A neighbour is asked for once in a second, whoever wants it: a question of the crate's that comes earlier is not sent. Programs share the places in the table, so that
//! one with many neighbours leaves some for others.
//!
//! A datagram to a machine that is not there would keep its socket from all others for ever. A neighbour that has been asked for in vain is therefore said to be nowhere: at a hardware address that nobody has. Sockets send there
//! what they have for it; the wire drops that, has its senders told, and asks for the neighbour again.
//!
//! The surprise is how the crate comes to forget after some seconds that somebody is nowhere, since it believes what it hears of a neighbour for a minute: it hears of this in the past.

use crate::advertisements::NEVER;
use crate::discovery::{ALL, Message, group, group_hardware};
use crate::frames::{self, v4_at, v6_at};
use crate::once::Once;
use crate::stack::{ADDRESSES_MAX, Stack};
use crate::wire::{ARP, HEADER, ICMPV6, IPV6, NEIGHBOURS};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use smoltcp::config::IFACE_NEIGHBOR_CACHE_COUNT;
use smoltcp::iface::Interface;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, Icmpv6Packet, IpAddress, NdiscNeighborFlags, NdiscRepr,
};

/// Time between two questions for a neighbour, at least, and for how long it may answer the last one.
const AGAIN: Duration = Duration::from_secs(1);

/// Questions for a neighbour before it is given up.
const TIMES: u32 = 3;

/// How long the crate believes what it hears of a neighbour, and how long that one is nowhere.
const BELIEVED: Duration = Duration::from_secs(60);
/// See [`BELIEVED`].
const NOWHERE_FOR: Duration = Duration::from_secs(10);

/// How long nobody has to be asked for a neighbour after its answer: half of the time in which the crate forgets it, so that there is time to ask again.
pub(crate) const SURE: Duration = Duration::from_secs(30);

/// Neighbours that are asked for at a time, at most, for one program, and for the stack itself: routers, and those for which the crate has asked, one in a second.
pub(crate) const OWN_MAX: usize = 16;
/// See [`OWN_MAX`].
const STACK_MAX: usize = 8;

/// Neighbours that are asked for at a time for all programs, at most.
pub(crate) const PROGRAMS_MAX: usize = 64;

/// Neighbours that are asked for until a program with so many has no other asked for. So those with many leave something for others, which mostly want one.
const PLENTY: usize = 48;
/// See [`PLENTY`].
const FEW_MAX: usize = 2;

/// Neighbours of which it is remembered that they have answered, at most.
const KNOWN_MAX: usize = 48;

/// Neighbours that are nowhere and are remembered, at most: as many as may be given up at once.
const SILENT_MAX: usize = PROGRAMS_MAX + STACK_MAX;

// The crate has room for all of them, and for this machine's own addresses. If it forgot one that is nowhere, what is for that one would wait for the crate's turn to ask.
const _: () = assert!(KNOWN_MAX + SILENT_MAX + ADDRESSES_MAX <= IFACE_NEIGHBOR_CACHE_COUNT);

/// First bytes of hardware addresses at which nobody is, each for one machine and by its second bit of somebody's own making. The last byte tells them apart.
const NOWHERE: [u8; 5] = *b"nobod";

/// Number of a message of ICMP for IPv6 that asks for a neighbour, and places in a frame: of that number, and of the address.
const SOLICIT: u8 = 135;
/// See [`SOLICIT`].
const SOLICIT_AT: usize = HEADER + 40;
/// See [`SOLICIT`].
const TARGET_AT: usize = HEADER + 48;

/// The neighbour for whose hardware address a frame asks.
pub(crate) fn wanted(frame: &[u8]) -> Option<IpAddr> {
    let kind = frame.get(12..HEADER)?;
    if kind == ARP {
        let is_question = frame.get(HEADER + 6..HEADER + 8) == Some(&[0, 1]);
        v4_at(frame, HEADER + 24).filter(|_| is_question)
    } else if kind == IPV6 {
        let is_question = frame.get(HEADER + 6) == Some(&ICMPV6) && frame.get(SOLICIT_AT) == Some(&SOLICIT);
        v6_at(frame, TARGET_AT).filter(|_| is_question)
    } else {
        None
    }
}

/// A frame by which this machine asks for a neighbour. `None` if that is in none of its networks, or if there is no address from which it could be asked.
pub(crate) fn question(interface: &Interface, own: EthernetAddress, neighbour: IpAddr) -> Option<Vec<u8>> {
    let address = IpAddress::from(neighbour);
    let is_near = interface.ip_addrs().iter().any(|cidr| cidr.contains_addr(&address));
    let from = IpAddr::from(interface.get_source_address(&address)?);
    if !is_near || from.is_loopback() {
        return None;
    }
    match (from, neighbour) {
        (IpAddr::V4(from), IpAddr::V4(neighbour)) => Some(frames::arp(
            [own, EthernetAddress::BROADCAST],
            ArpRepr::EthernetIpv4 {
                operation: ArpOperation::Request,
                source_hardware_addr: own,
                source_protocol_addr: from,
                target_hardware_addr: EthernetAddress([0; 6]),
                target_protocol_addr: neighbour,
            },
        )),
        (IpAddr::V6(from), IpAddr::V6(neighbour)) => {
            let to = group(neighbour);
            let asked = NdiscRepr::NeighborSolicit { target_addr: neighbour, lladdr: Some(own.into()) };
            Some(frames::about_network([own, group_hardware(to)], from, to, &frames::message(asked)))
        }
        _ => None,
    }
}

/// A frame by which the stack hears at which hardware address a neighbour is, or this machine itself. It is for loopback's address, which this machine always has.
pub(crate) fn told(own: EthernetAddress, hardware: EthernetAddress, address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => frames::arp(
            [hardware, own],
            ArpRepr::EthernetIpv4 {
                operation: ArpOperation::Reply,
                source_hardware_addr: hardware,
                source_protocol_addr: address,
                target_hardware_addr: own,
                target_protocol_addr: Ipv4Addr::LOCALHOST,
            },
        ),
        IpAddr::V6(address) => {
            let told = NdiscRepr::NeighborAdvert {
                flags: NdiscNeighborFlags::SOLICITED | NdiscNeighborFlags::OVERRIDE,
                target_addr: address,
                lladdr: Some(hardware.into()),
            };
            frames::about_network([hardware, own], address, Ipv6Addr::LOCALHOST, &frames::message(told))
        }
    }
}

/// Word of a neighbour by which the crate learns at which hardware address it is: an answer, or a question for this machine.
struct Answer {
    address: IpAddr,
    hardware: EthernetAddress,
}

impl Answer {
    /// That of a frame. `None` if there is none, or if it is not for this machine, which has these addresses.
    fn of(frame: &[u8], own: EthernetAddress, addresses: &[IpAddr]) -> Option<Answer> {
        let kind = frame.get(12..HEADER)?;
        let is_about_neighbour = kind == IPV6
            && frame.get(HEADER + 6) == Some(&ICMPV6)
            && frame.get(SOLICIT_AT).is_some_and(|message| NEIGHBOURS.contains(message));
        let answer = if kind == ARP {
            Answer::of_v4(frame.get(HEADER..)?, addresses)?
        } else if is_about_neighbour {
            Answer::of_v6(frame, addresses)?
        } else {
            return None;
        };
        let is_mine = frame[0] & 1 != 0 || frame[..6] == own.0;
        (is_mine && answer.hardware.is_unicast()).then_some(answer)
    }

    fn of_v4(packet: &[u8], addresses: &[IpAddr]) -> Option<Answer> {
        let said = ArpRepr::parse(&ArpPacket::new_checked(packet).ok()?).ok()?;
        let ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: hardware,
            source_protocol_addr: from,
            target_protocol_addr: to,
            ..
        } = said
        else {
            return None;
        };
        let is_known = matches!(operation, ArpOperation::Request | ArpOperation::Reply);
        let is_for_many = from.is_unspecified() || from.is_multicast() || from.is_broadcast();
        let is_usable = is_known && !is_for_many && addresses.contains(&to.into());
        is_usable.then_some(Answer { address: from.into(), hardware })
    }

    fn of_v6(frame: &[u8], addresses: &[IpAddr]) -> Option<Answer> {
        let Message { from, to, bytes, .. } = Message::of(frame)?;
        let (target, hardware) = match NdiscRepr::parse(&Icmpv6Packet::new_checked(bytes).ok()?).ok()? {
            NdiscRepr::NeighborSolicit { target_addr, lladdr } => (target_addr, lladdr?),
            NdiscRepr::NeighborAdvert { target_addr, lladdr, .. } => (target_addr, lladdr?),
            _ => return None,
        };
        let hardware = EthernetAddress(hardware.as_bytes().try_into().ok()?);
        let is_one = |address: Ipv6Addr| !address.is_unspecified() && !address.is_multicast();
        let is_own = |own: &IpAddr| matches!(*own, IpAddr::V6(own) if own == to || group(own) == to);
        let is_for_us = to == ALL || addresses.iter().any(is_own);
        (is_for_us && is_one(from) && is_one(target)).then_some(Answer { address: from.into(), hardware })
    }
}

/// Reason for which a neighbour is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// It is to stay known. If it does not answer, nothing follows from that.
    Refresh,
    /// Something waits for it. If it does not answer, it is nowhere.
    Waiting,
}

/// A neighbour that is asked for.
#[derive(Debug)]
struct Asked {
    address: IpAddr,
    /// The program for which it is asked for; `None`: the stack itself.
    owner: Option<u64>,
    reason: Reason,
    question: Vec<u8>,
    /// Questions that were sent, and when the next one is due, or the end.
    times: u32,
    due: Instant,
    /// Whether it has answered. Then it is here so that it is not asked for again at once.
    is_there: bool,
    /// Whether it has sent something else.
    is_heard: bool,
}

impl Asked {
    fn is_due(&self, now: Instant) -> bool {
        !self.is_there && self.due <= now
    }
}

/// A neighbour that has answered.
#[derive(Debug)]
struct Known {
    address: IpAddr,
    /// The turn since which it is known. `None`: the next one.
    since: Option<Instant>,
}

/// A neighbour that is nowhere.
#[derive(Debug)]
struct Silent {
    address: IpAddr,
    /// Last byte of the hardware address at which it is said to be.
    number: u8,
    /// The question for it, and when it may be asked again.
    question: Vec<u8>,
    again: Instant,
    until: Instant,
    /// Says whether the stack has heard of it.
    is_told: bool,
}

impl Silent {
    fn is_untold(&self, now: Instant) -> bool {
        !self.is_told && now < self.until
    }
}

/// Neighbours that are asked for, those that are known, and those that are nowhere.
#[derive(Debug)]
pub(crate) struct Neighbours {
    /// When this turn has begun, or the last one: what a program does between two turns may be much later.
    now: Instant,
    asked: Vec<Asked>,
    /// From the one on that has been known for the longest.
    known: Vec<Known>,
    /// From the one on that has been nowhere for the longest.
    silent: Vec<Silent>,
    next: u8,
    /// Neighbours of which something was known when something was sent to them, since the last turn, each with a program that has done so.
    sought: Vec<(u64, IpAddr)>,
    /// The last address to which something was sent since the last turn and for which nobody had to be asked at once.
    recent: Option<IpAddr>,
    /// Until when the crate asks for nobody.
    limited_until: Instant,
}

impl Default for Neighbours {
    fn default() -> Neighbours {
        Neighbours {
            now: Instant::ZERO,
            asked: Vec::new(),
            known: Vec::new(),
            silent: Vec::new(),
            next: 0,
            sought: Vec::new(),
            recent: None,
            limited_until: Instant::ZERO,
        }
    }
}

impl Neighbours {
    /// A turn begins.
    pub fn begin(&mut self, now: Instant) {
        (self.now, self.recent) = (now, None);
        self.asked.retain(|asked| !asked.is_there || now < asked.due);
        self.known.retain_mut(|known| now < *known.since.get_or_insert(now) + BELIEVED);
        self.silent.retain(|silent| now < silent.until.max(silent.again));
    }

    /// The crate has forgotten all neighbours. Those that are asked for are asked for again, by these questions; those for which there is none any more are not.
    pub fn forget(&mut self, question: impl Fn(IpAddr) -> Option<Vec<u8>>) {
        self.known.clear();
        self.silent.clear();
        self.recent = None;
        self.asked.retain_mut(|asked| {
            let Some(question) = question(asked.address) else { return false };
            (asked.question, asked.times) = (question, 0);
            (asked.is_there, asked.is_heard) = (false, false);
            true
        });
    }

    /// Says whether nobody has to be asked for what goes to an address, as it was a moment ago.
    pub fn is_settled(&self, to: IpAddr) -> bool {
        self.recent == Some(to)
    }

    /// Nobody has to be asked at once for what goes to an address.
    pub fn settle(&mut self, to: IpAddr) {
        self.recent = Some(to);
    }

    /// Says whether something is known of a neighbour to which a program sends something. Then it is looked at in the next turn: what is known may be too old, and only a turn knows the time.
    pub fn notes(&mut self, owner: u64, neighbour: IpAddr) -> bool {
        let is_noted = self.known.iter().any(|known| known.address == neighbour)
            || self.silent.iter().any(|silent| silent.address == neighbour);
        if is_noted && self.sought.iter().all(|&(_, sought)| sought != neighbour) {
            self.sought.push((owner, neighbour));
        }
        is_noted
    }

    /// The next neighbour that is to be looked at, and a program that has sent something to it.
    pub fn sought(&mut self) -> Option<(u64, IpAddr)> {
        let (owner, neighbour) = self.sought.pop()?;
        if let Some(silent) = self.nowhere(neighbour) {
            // The crate may have forgotten it for lack of room.
            silent.is_told = false;
        }
        Some((owner, neighbour))
    }

    /// Reason for which a neighbour is to be asked for. `None`: it is known where it is, or that it is nowhere.
    pub fn reason(&mut self, neighbour: IpAddr) -> Option<Reason> {
        if self.nowhere(neighbour).is_some() {
            return None;
        }
        match self.known.iter().find(|known| known.address == neighbour) {
            Some(known) if self.now < known.since.unwrap_or(self.now) + SURE => None,
            Some(_) => Some(Reason::Refresh),
            None => Some(Reason::Waiting),
        }
    }

    /// Notes of a neighbour that is nowhere.
    fn nowhere(&mut self, neighbour: IpAddr) -> Option<&mut Silent> {
        let now = self.now;
        self.silent.iter_mut().find(|silent| silent.address == neighbour && now < silent.until)
    }

    /// Forgets that a neighbour has been nowhere, which is over. Says when it may be asked for: it may have been a moment ago.
    fn release(&mut self, neighbour: IpAddr) -> Instant {
        let place = self.silent.iter().position(|silent| silent.address == neighbour);
        place.map_or(Instant::ZERO, |place| self.silent.remove(place).again)
    }

    /// Says whether a neighbour is asked for, or has been in the last second. Then there is one more reason to go on.
    fn is_asked(&mut self, neighbour: IpAddr, reason: Reason) -> bool {
        let Some(asked) = self.asked.iter_mut().find(|asked| asked.address == neighbour) else {
            return false;
        };
        asked.reason = asked.reason.max(reason);
        if asked.is_there && reason == Reason::Waiting {
            // It has answered, and the crate has forgotten that already, or has not believed it.
            (asked.times, asked.is_there) = (0, false);
        }
        true
    }

    /// Says whether another neighbour may be asked for, for a program or for the stack itself.
    fn has_room(&self, owner: Option<u64>) -> bool {
        let own = self.asked.iter().filter(|asked| asked.owner == owner).count();
        let all = self.asked.iter().filter(|asked| asked.owner.is_some()).count();
        match owner {
            None => own < STACK_MAX,
            Some(_) => own < OWN_MAX && (all < PLENTY || all < PROGRAMS_MAX && own < FEW_MAX),
        }
    }

    /// Says whether a neighbour may be asked for: it has not been in the last second, and there is room. One that is nowhere is asked for when something is dropped that was to go there.
    pub fn may_ask(&mut self, owner: Option<u64>, reason: Reason, neighbour: IpAddr) -> bool {
        self.nowhere(neighbour).is_none() && !self.is_asked(neighbour, reason) && self.has_room(owner)
    }

    /// A neighbour is asked for from the next turn on.
    pub fn ask(&mut self, owner: Option<u64>, reason: Reason, address: IpAddr, question: Vec<u8>) {
        let (times, due) = (0, self.release(address));
        let (is_there, is_heard) = (false, false);
        self.asked.push(Asked { address, owner, reason, question, times, due, is_there, is_heard });
    }

    /// When something is due.
    pub fn due(&self) -> Instant {
        let waiting = self.asked.iter().filter(|asked| !asked.is_there);
        waiting.map(|asked| asked.due).min().unwrap_or(NEVER)
    }

    /// Does what is due. Gives the frames by which it is asked now.
    pub fn turn(&mut self) -> Vec<Vec<u8>> {
        let now = self.now;
        if now < self.due() {
            return Vec::new();
        }
        let mut questions = Vec::new();
        for asked in self.asked.iter_mut().filter(|asked| asked.times < TIMES && asked.is_due(now)) {
            (asked.times, asked.due) = (asked.times + 1, now + AGAIN);
            questions.push(asked.question.clone());
        }
        let in_vain = self.asked.extract_if(.., |asked| asked.is_due(now));
        let missed: Vec<Asked> = in_vain.filter(|asked| asked.reason == Reason::Waiting).collect();
        missed.into_iter().for_each(|asked| self.give_up(asked));
        questions
    }

    /// A neighbour has been asked for in vain: it is nowhere.
    fn give_up(&mut self, Asked { address, question, .. }: Asked) {
        if self.silent.len() >= SILENT_MAX {
            let idle = self.silent.iter().position(|silent| silent.is_told && silent.again <= self.now);
            self.silent.remove(idle.unwrap_or(0));
        }
        self.known.retain(|known| known.address != address);
        self.next = self.next.wrapping_add(1);
        let (number, again, until) = (self.next, self.now, self.now + NOWHERE_FOR);
        self.silent.push(Silent { address, number, question, again, until, is_told: false });
    }

    /// A machine is there, though it may not have answered yet: so it has not been asked for in vain, and is given up only if it does not answer as many questions more.
    pub fn heard(&mut self, address: IpAddr) {
        let is_meant = |asked: &&mut Asked| asked.address == address && !asked.is_heard;
        if let Some(asked) = self.asked.iter_mut().find(is_meant) {
            (asked.times, asked.is_heard) = (0, true);
        }
    }

    /// Says whether some may not have answered yet.
    pub fn awaits(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Looks at a frame of the card's that the stack gets. Gives a frame that the stack is to get before it, if that says where a neighbour is which was nowhere: the crate believes
    /// an answer of IPv6 only if that says that it replaces what was known.
    pub fn hears(&mut self, frame: &[u8], own: EthernetAddress, addresses: &[IpAddr]) -> Option<Vec<u8>> {
        let Answer { address, hardware } = Answer::of(frame, own, addresses)?;
        if let Some(asked) = self.asked.iter_mut().find(|asked| asked.address == address) {
            asked.is_there = true;
        }
        self.known.retain(|known| known.address != address);
        if self.known.len() >= KNOWN_MAX {
            self.known.remove(0);
        }
        self.known.push(Known { address, since: None });
        let place = self.silent.iter().position(|silent| silent.address == address)?;
        self.silent.remove(place);
        Some(told(own, hardware, address))
    }

    /// Looks at a frame of the crate's that is for several machines. False if it is not to be sent, since it asks for a neighbour that has been asked for in the last second, or is nowhere.
    pub fn passes(&mut self, frame: &[u8]) -> bool {
        let Some(address) = wanted(frame) else { return true };
        let (now, next) = (self.now, self.now + AGAIN);
        self.limited_until = next;
        // The crate has forgotten what is known of it.
        self.known.retain(|known| known.address != address);
        if let Some(silent) = self.nowhere(address) {
            silent.is_told = false;
            return false;
        }
        if self.is_asked(address, Reason::Waiting) {
            return false;
        }
        let again = self.release(address);
        let is_due = again <= now;
        if self.has_room(None) {
            let (owner, reason, question) = (None, Reason::Waiting, frame.into());
            let (times, due) = if is_due { (1, next) } else { (0, again) };
            let (is_there, is_heard) = (false, false);
            self.asked.push(Asked { address, owner, reason, question, times, due, is_there, is_heard });
        }
        is_due
    }

    /// Says whether the crate asks for nobody at the moment, since it has asked for somebody in the last second.
    pub fn is_limited(&self) -> bool {
        self.now < self.limited_until
    }

    /// Says whether a frame is for a neighbour that is nowhere.
    pub fn is_for_nobody(frame: &[u8]) -> bool {
        frame.starts_with(&NOWHERE)
    }

    /// The question for a neighbour to which such a frame was to go, if it should be asked again.
    pub fn again(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let number = frame.get(NOWHERE.len())?;
        let silent = self.silent.iter_mut().find(|silent| silent.number == *number)?;
        if self.now < silent.again {
            return None;
        }
        silent.again = self.now + AGAIN;
        Some(silent.question.clone())
    }

    /// Says whether there is a neighbour that is nowhere and of which the stack has not heard yet.
    pub fn has_untold(&self) -> bool {
        self.silent.iter().any(|silent| silent.is_untold(self.now))
    }

    /// The next of these: its hardware address, and until when it is there.
    fn untold(&mut self) -> Option<(IpAddr, EthernetAddress, Instant)> {
        let now = self.now;
        let silent = self.silent.iter_mut().find(|silent| silent.is_untold(now))?;
        silent.is_told = true;
        let [a, b, c, d, e] = NOWHERE;
        Some((silent.address, EthernetAddress([a, b, c, d, e, silent.number]), silent.until))
    }
}

impl Stack {
    /// Lets the stack hear who is nowhere.
    pub(crate) fn follow_neighbours(&mut self) {
        let own = EthernetAddress(self.wire.own());
        while let Some((address, hardware, until)) = self.wire.neighbours.untold() {
            let mut once = Once::new(told(own, hardware, address));
            let in_the_past = until - BELIEVED;
            self.interface.poll_ingress_single(in_the_past, &mut once, &mut self.sockets);
        }
    }
}
