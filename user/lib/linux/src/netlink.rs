//! Sockets of netlink, at which programs ask for interfaces, addresses and ways: `NETLINK_ROUTE`. In reading order: [`message`], how requests and answers look;
//! [`answers`], what is answered; `routes`, the ways.
//!
//! A request is answered while it is sent, and answers wait in the socket, in order. All of a list is there at once, so it shows one moment; a socket takes all of it, or
//! none, and tells its program once that something was lost (`ENOBUFS`), as Linux does. Nobody is told of changes: a group of receivers can be joined, and is silent.
//! Notices of messages in queues of POSIX come beside answers, and have their room from the beginning.

pub mod answers;
pub mod message;
mod routes;

use crate::budget::{Budget, Share};
use crate::errno::{EADDRINUSE, EAGAIN, EINVAL, ENOBUFS, Errno, Result};
use crate::places::shorten_queue;
use crate::socket::{READABLE, SIZE, WRITABLE, charge};
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::ops::Range;
use linux_raw_sys::general::POLLERR;
use linux_raw_sys::net::AF_NETLINK;
use linux_raw_sys::netlink::{NETLINK_NO_ENOBUFS, sockaddr_nl};
use message::{half, word};

/// Bytes of the budget that a socket counts for, beside answers that wait.
pub const NETLINK_BYTES: usize = 512;

/// Bytes of an address.
pub const ADDRESS_BYTES: usize = size_of::<sockaddr_nl>();

/// Groups of receivers: `RTNLGRP_MAX`.
const GROUPS: u32 = 39;

/// Bytes of the sets of groups that a program is told of: one bit for each, in whole words.
pub const GROUPS_BYTES: usize = GROUPS.div_ceil(32) as usize * 4;

/// Ports of sockets whose process has given its own number to another one: those that are negative as numbers with a sign, below the last page.
const CHOSEN: Range<u32> = 1 << 31..0xffff_f001;

/// Ports of all sockets.
#[derive(Debug, Default)]
pub struct Ports {
    used: BTreeSet<u32>,
    /// The one that was chosen last.
    last: u32,
}

impl Ports {
    /// Takes a port. Port 0: that with the number of the process, or any that is free. `EADDRINUSE`: another socket has it.
    pub fn take(&mut self, wanted: u32, process: u32) -> Result<u32> {
        let mut port = wanted;
        if wanted == 0 {
            port = process;
            while self.used.contains(&port) {
                self.last = if self.last > CHOSEN.start { self.last - 1 } else { CHOSEN.end - 1 };
                port = self.last;
            }
        }
        if self.used.insert(port) { Ok(port) } else { Err(EADDRINUSE) }
    }

    /// A socket with a port is closed.
    pub fn leave(&mut self, port: u32) {
        self.used.remove(&port);
    }
}

/// Messages that wait to be received together.
#[derive(Debug)]
struct Answer {
    bytes: Vec<u8>,
    share: Share,
}

/// Room of a socket for a message that comes later. It counts for the socket as one that waits to be received.
#[derive(Debug)]
pub struct Reserved(Share);

#[cfg(test)]
impl Reserved {
    /// Bytes of the budget that it counts for.
    pub fn held(&self) -> usize {
        self.0.bytes()
    }
}

/// A socket.
#[derive(Debug)]
pub struct Netlink {
    /// Number that no other has.
    pub number: u64,
    /// Number of its kind in Linux. All kinds behave alike.
    pub kind: u32,
    /// Its port; 0: it has none yet.
    pub port: Cell<u32>,
    /// Groups of receivers that it has joined: the first one is the lowest bit.
    groups: Cell<u64>,
    /// Options that are set: bits by their numbers.
    options: Cell<u32>,
    /// Bytes that a message to be sent may have, with its head: `SO_SNDBUF`.
    pub send_size: Cell<usize>,
    /// Bytes of answers behind which no more are taken: `SO_RCVBUF`.
    pub receive_size: Cell<usize>,
    /// Longest wait to receive and to send in nanoseconds; 0: for ever. Nobody waits to send.
    pub timeouts: [Cell<u64>; 2],
    /// Says if receivers want to know the sender.
    pub tells_sender: Cell<bool>,
    /// An error to be told once.
    pub error: Cell<Option<Errno>>,
    queue: RefCell<VecDeque<Answer>>,
    /// Bytes that are charged for what is in the queue.
    waiting: Cell<usize>,
    budget: Budget,
}

impl Netlink {
    /// A socket of a kind, without a port. Answers have shares of a budget.
    pub fn new(number: u64, kind: u32, budget: &Budget) -> Netlink {
        Netlink {
            number,
            kind,
            port: Cell::new(0),
            groups: Cell::new(0),
            options: Cell::new(0),
            send_size: Cell::new(SIZE),
            receive_size: Cell::new(SIZE),
            timeouts: Default::default(),
            tells_sender: Cell::new(false),
            error: Cell::new(None),
            queue: RefCell::default(),
            waiting: Cell::new(0),
            budget: budget.clone(),
        }
    }

    /// Says if an option is set.
    pub fn has(&self, option: u32) -> bool {
        self.options.get() & 1 << option != 0
    }

    /// Sets an option, or takes it back.
    pub fn set_option(&self, option: u32, is_set: bool) {
        let others = self.options.get() & !(1 << option);
        self.options.set(others | u32::from(is_set) << option);
    }

    /// Joins a group of receivers, or leaves it. `EINVAL`: there is no such.
    pub fn set_member(&self, group: i32, is_member: bool) -> Result<()> {
        let group = u32::try_from(group).ok().filter(|group| (1..=GROUPS).contains(group)).ok_or(EINVAL)?;
        let bit = 1 << (group - 1);
        self.groups.set(if is_member { self.groups.get() | bit } else { self.groups.get() & !bit });
        Ok(())
    }

    /// Joins those of the first 32 groups that are set, and leaves the others of them.
    pub fn set_groups(&self, groups: u32) {
        self.groups.set(self.groups.get() >> 32 << 32 | u64::from(groups));
    }

    /// Groups that it has joined, as bytes.
    pub fn groups(&self) -> Vec<u8> {
        self.groups.get().to_le_bytes().iter().take(GROUPS_BYTES).copied().collect()
    }

    /// Its address. None of the groups above the first 32 is in it.
    pub fn address(&self) -> Vec<u8> {
        address_bytes(self.port.get(), self.groups.get() as u32)
    }

    /// Readiness: bits of `poll`. It can be written at any time.
    pub fn poll(&self) -> u32 {
        let input = if self.queue.borrow().is_empty() { 0 } else { READABLE };
        let error = if self.error.get().is_some() { POLLERR } else { 0 };
        input | error | WRITABLE
    }

    /// Answers arrive. `ENOBUFS`: there is no room, and they are lost, which a program that has not asked to be spared (`NETLINK_NO_ENOBUFS`) hears when it receives.
    pub fn arrive(&self, answers: Vec<Vec<u8>>) -> Result<()> {
        if answers.is_empty() {
            return Ok(());
        }
        let has_room = !self.is_full();
        let with_share =
            |bytes: Vec<u8>| Some(Answer { share: self.budget.take(charge(bytes.len()))?, bytes });
        let taken: Option<Vec<Answer>> =
            if has_room { answers.into_iter().map(with_share).collect() } else { None };
        let Some(taken) = taken else {
            if !self.has(NETLINK_NO_ENOBUFS) {
                self.error.set(Some(ENOBUFS));
            }
            return Err(ENOBUFS);
        };
        let more: usize = taken.iter().map(|answer| answer.share.bytes()).sum();
        self.waiting.set(self.waiting.get() + more);
        self.queue.borrow_mut().extend(taken);
        Ok(())
    }

    /// Whether no more is taken before something was received.
    pub fn is_full(&self) -> bool {
        self.waiting.get() >= self.receive_size.get()
    }

    /// Room for a message of so many bytes that comes later, and that is [taken](Self::fill) then whatever else waits. None: the budget has none.
    pub fn reserve(&self, len: usize) -> Option<Reserved> {
        let share = self.budget.take(charge(len))?;
        self.waiting.set(self.waiting.get() + share.bytes());
        Some(Reserved(share))
    }

    /// A message comes for which there was room.
    pub fn fill(&self, Reserved(share): Reserved, bytes: Vec<u8>) {
        self.queue.borrow_mut().push_back(Answer { bytes, share });
    }

    /// Receives at most so many bytes of what has waited longest, and how many it had. `peeks`: it stays.
    ///
    /// `EAGAIN`: nothing is there. Other errors are those that were to be told.
    pub fn receive(&self, room: usize, peeks: bool) -> Result<(Vec<u8>, usize)> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut queue = self.queue.borrow_mut();
        if peeks {
            let first = queue.front().ok_or(EAGAIN)?;
            let len = first.bytes.len();
            return Ok((first.bytes.iter().take(room).copied().collect(), len));
        }
        let Answer { mut bytes, share } = queue.pop_front().ok_or(EAGAIN)?;
        shorten_queue(&mut queue);
        self.waiting.set(self.waiting.get().saturating_sub(share.bytes()));
        let len = bytes.len();
        bytes.truncate(room);
        Ok((bytes, len))
    }

    /// Bytes of the budget that its answers have.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.queue.borrow().iter().map(|answer| charge(answer.bytes.len())).sum()
    }
}

/// Bytes of an address. That of the kernel, which answers, is all zeros behind its family.
pub fn address_bytes(port: u32, groups: u32) -> Vec<u8> {
    // A family has two bytes, and two without a meaning are behind it.
    [AF_NETLINK, port, groups].map(u32::to_le_bytes).concat()
}

/// Port and groups of an address. `EINVAL`: it is too short, or of another family.
pub fn parse(bytes: &[u8]) -> Result<(u32, u32)> {
    if bytes.len() < ADDRESS_BYTES || u32::from(half(bytes, 0)) != AF_NETLINK {
        return Err(EINVAL);
    }
    Ok((word(bytes, 4), word(bytes, 8)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn socket(budget: &Budget) -> Netlink {
        Netlink::new(1, 3, budget)
    }

    #[test]
    fn ports_are_numbers_of_processes_first() {
        let mut ports = Ports::default();
        for expected in [7, 0xffff_f000, 0xffff_efff] {
            assert_eq!(ports.take(0, 7), Ok(expected));
        }
        assert_eq!((ports.take(7, 8), ports.take(9, 8)), (Err(EADDRINUSE), Ok(9)));
        ports.leave(7);
        assert_eq!((ports.take(0, 7), ports.take(0, 9)), (Ok(7), Ok(0xffff_effe)));
        ports.last = CHOSEN.start;
        assert_eq!((ports.take(0, 7), ports.take(0, 7)), (Ok(0xffff_effd), Ok(0xffff_effc)));
    }

    #[test]
    fn addresses_have_a_port_and_groups() {
        let bytes = address_bytes(0x0102_0304, 5);
        assert_eq!(bytes, [16, 0, 0, 0, 4, 3, 2, 1, 5, 0, 0, 0]);
        assert_eq!(parse(&bytes), Ok((0x0102_0304, 5)));
        for short in 0..ADDRESS_BYTES {
            assert_eq!(parse(&bytes[..short]), Err(EINVAL));
        }
        assert_eq!(parse(&[0; 12]), Err(EINVAL));
    }

    #[test]
    fn a_socket_takes_answers_until_it_is_full() {
        let budget = Budget::new(1 << 20);
        let netlink = socket(&budget);
        netlink.receive_size.set(2304);
        assert_eq!((netlink.poll(), netlink.receive(9, false)), (WRITABLE, Err(EAGAIN)));
        assert_eq!(netlink.arrive(vec![vec![1; 3000], vec![2; 20]]), Ok(()));
        assert_eq!(netlink.poll(), WRITABLE | READABLE);
        assert_eq!((budget.used(), netlink.waiting.get()), (netlink.held(), netlink.held()));
        assert_eq!(netlink.arrive(vec![vec![3]]), Err(ENOBUFS));
        assert_eq!(netlink.poll(), WRITABLE | READABLE | POLLERR);
        assert_eq!(netlink.receive(0, true), Err(ENOBUFS));
        assert_eq!(netlink.receive(0, true), Ok((vec![], 3000)));
        assert_eq!(netlink.receive(2, true), Ok((vec![1; 2], 3000)));
        assert_eq!(netlink.receive(2, false), Ok((vec![1; 2], 3000)));
        assert_eq!(netlink.receive(100, false), Ok((vec![2; 20], 20)));
        assert_eq!((netlink.receive(9, false), budget.used(), netlink.held()), (Err(EAGAIN), 0, 0));
        // Room that was asked for is there, and nobody else has it.
        let room = netlink.reserve(32).unwrap();
        assert_eq!((room.held(), netlink.is_full()), (charge(32), false));
        assert_eq!((netlink.arrive(vec![vec![1; 3000]]), netlink.is_full()), (Ok(()), true));
        netlink.fill(room, vec![3; 32]);
        assert_eq!(budget.used(), netlink.held());
        assert_eq!(netlink.receive(1, false), Ok((vec![1], 3000)));
        assert_eq!(netlink.receive(100, false), Ok((vec![3; 32], 32)));
        assert_eq!((netlink.waiting.get(), budget.used()), (0, 0));
        // A program may ask not to hear of what is lost.
        netlink.set_option(NETLINK_NO_ENOBUFS, true);
        budget.set_max(1000);
        assert_eq!(netlink.arrive(vec![vec![1; 20], vec![2; 2000]]), Err(ENOBUFS));
        assert_eq!((netlink.poll(), budget.used()), (WRITABLE, 0));
        assert_eq!(netlink.arrive(vec![vec![1; 20]]), Ok(()));
        drop(netlink);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn groups_are_kept() {
        let netlink = socket(&Budget::default());
        assert_eq!((netlink.set_member(1, true), netlink.set_member(39, true)), (Ok(()), Ok(())));
        for bad in [0, 40, -1, i32::MIN, i32::MAX] {
            assert_eq!(netlink.set_member(bad, true), Err(EINVAL));
        }
        assert_eq!(netlink.groups(), [1, 0, 0, 0, 0x40, 0, 0, 0]);
        netlink.set_groups(0x8000_0010);
        assert_eq!(netlink.address()[8..], [0x10, 0, 0, 0x80]);
        netlink.set_member(5, false).unwrap();
        assert_eq!(netlink.groups(), [0, 0, 0, 0x80, 0x40, 0, 0, 0]);
        assert!(!netlink.has(3));
        netlink.set_option(3, true);
        netlink.set_option(12, true);
        netlink.set_option(3, false);
        assert!(!netlink.has(3) && netlink.has(12));
    }
}
