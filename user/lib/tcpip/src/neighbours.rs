//! Neighbours: machines of this network, of which the stack has to be told something.
//!
//! `smoltcp` 0.14 asks for a neighbour once in a second, for as long as some socket has something for it, and that socket sends nothing else meanwhile. So a datagram to a machine that is not there would keep its
//! socket from all others for ever. A neighbour that has been asked for in vain for a while is therefore said to be nowhere: at a hardware address that nobody has. Sockets send there what they have for it; the wire drops that,
//! has its senders told, and asks for the neighbour again in the stack's words.
//!
//! The surprise is how the stack comes to forget after some seconds that somebody is nowhere, since it believes what it hears of a neighbour for a minute: it hears of this in the past.

use crate::frames::{self, v4_at, v6_at};
use crate::once::Once;
use crate::stack::Stack;
use crate::wire::{ARP, HEADER, ICMPV6, IPV6};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{ArpOperation, ArpRepr, EthernetAddress, NdiscNeighborFlags, NdiscRepr};

/// How long a neighbour may take to answer, and how often it is asked for before it is given up.
const PATIENCE: Duration = Duration::from_secs(3);
/// See [`PATIENCE`].
const TIMES_MIN: u32 = 3;

/// Time between two questions for a neighbour, at most: others may be asked for meanwhile. When more has passed it has answered since then, or nobody needed it.
const PAUSE_MAX: Duration = Duration::from_secs(6);

/// How long the stack believes what it hears of a neighbour, and how long that one is nowhere: long enough for others to be asked for, some of which are not there either.
const BELIEVED: Duration = Duration::from_secs(60);
/// See [`BELIEVED`].
const NOWHERE_FOR: Duration = Duration::from_secs(10);

/// Time between two questions of the wire's for a neighbour that is nowhere, at least.
const AGAIN: Duration = Duration::from_secs(1);

/// Neighbours that are remembered of each kind, at most. The stack asks for one in a second, so there are fewer.
const REMEMBERED_MAX: usize = 32;

/// First bytes of hardware addresses at which nobody is, each for one machine and by its second bit of somebody's own making. The last byte tells them apart.
const NOWHERE: [u8; 5] = *b"nobod";

/// Number of a message of ICMP for IPv6 that asks for a neighbour, and places in a frame: of that number, and of the address.
const SOLICIT: u8 = 135;
/// See [`SOLICIT`].
const SOLICIT_AT: usize = HEADER + 40;
/// See [`SOLICIT`].
const TARGET_AT: usize = HEADER + 48;

/// The neighbour for whose hardware address a frame asks.
fn wanted(frame: &[u8]) -> Option<IpAddr> {
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

/// A neighbour for which the stack has asked.
#[derive(Debug)]
struct Asked {
    address: IpAddr,
    first: Instant,
    last: Instant,
    times: u32,
}

/// A neighbour that is nowhere.
#[derive(Debug)]
struct Silent {
    address: IpAddr,
    /// Last byte of the hardware address at which it is said to be.
    number: u8,
    /// The stack's question for it, and when it was asked last.
    question: Vec<u8>,
    asked: Instant,
    until: Instant,
    /// Says whether the stack has heard of it.
    is_told: bool,
}

/// Neighbours that have not answered yet, and those that are nowhere.
#[derive(Debug)]
pub(crate) struct Neighbours {
    now: Instant,
    asked: Vec<Asked>,
    silent: Vec<Silent>,
    next: u8,
}

impl Default for Neighbours {
    fn default() -> Neighbours {
        Neighbours { now: Instant::ZERO, asked: Vec::new(), silent: Vec::new(), next: 0 }
    }
}

impl Neighbours {
    /// A turn begins.
    pub fn begin(&mut self, now: Instant) {
        self.now = now;
        self.asked.retain(|asked| now <= asked.last + PAUSE_MAX);
        self.silent.retain(|silent| now < silent.until);
    }

    /// Forgets all, as the stack does.
    pub fn forget(&mut self) {
        self.asked.clear();
        self.silent.clear();
    }

    /// A machine is there, whatever else the stack forgets, so it has not been asked for in vain.
    pub fn heard(&mut self, address: IpAddr) {
        self.asked.retain(|asked| asked.address != address);
    }

    /// Says whether some have not answered yet.
    pub fn awaits(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Looks at a frame of the stack's that is for several machines.
    pub fn sent(&mut self, frame: &[u8]) {
        let Some(address) = wanted(frame) else { return };
        let now = self.now;
        let Some(place) = self.asked.iter().position(|asked| asked.address == address) else {
            if self.asked.len() < REMEMBERED_MAX {
                self.asked.push(Asked { address, first: now, last: now, times: 1 });
            }
            return;
        };
        let asked = &mut self.asked[place];
        (asked.last, asked.times) = (now, asked.times + 1);
        let is_silent = asked.times >= TIMES_MIN && asked.first + PATIENCE <= now;
        if is_silent && self.silent.len() < REMEMBERED_MAX {
            self.asked.remove(place);
            self.silent.retain(|silent| silent.address != address);
            self.next = self.next.wrapping_add(1);
            self.silent.push(Silent {
                address,
                number: self.next,
                question: frame.into(),
                asked: now,
                until: now + NOWHERE_FOR,
                is_told: false,
            });
        }
    }

    /// Says whether a frame is for a neighbour that is nowhere.
    pub fn is_for_nobody(frame: &[u8]) -> bool {
        frame.starts_with(&NOWHERE)
    }

    /// The question for a neighbour to which such a frame was to go, if it should be asked again.
    pub fn again(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let number = frame.get(NOWHERE.len())?;
        let silent = self.silent.iter_mut().find(|silent| silent.number == *number)?;
        if self.now < silent.asked + AGAIN {
            return None;
        }
        silent.asked = self.now;
        Some(silent.question.clone())
    }

    /// The next neighbour that is nowhere and of which the stack has not heard yet, with its hardware address.
    fn untold(&mut self) -> Option<(IpAddr, EthernetAddress)> {
        let silent = self.silent.iter_mut().find(|silent| !silent.is_told)?;
        silent.is_told = true;
        let [a, b, c, d, e] = NOWHERE;
        Some((silent.address, EthernetAddress([a, b, c, d, e, silent.number])))
    }
}

impl Stack {
    /// Lets the stack hear who is nowhere. Says whether there was somebody.
    pub(crate) fn follow_neighbours(&mut self) -> bool {
        let own = EthernetAddress(self.wire.own());
        let mut has_heard = false;
        while let Some((address, hardware)) = self.wire.neighbours.untold() {
            let mut once = Once::new(told(own, hardware, address));
            let in_the_past = self.now - (BELIEVED - NOWHERE_FOR);
            self.interface.poll_ingress_single(in_the_past, &mut once, &mut self.sockets);
            has_heard = true;
        }
        has_heard
    }
}
