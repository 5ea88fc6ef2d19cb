//! Options of sockets of networks. Few of them change anything here; the others are kept, so that a program reads what it has set.

use super::Family;
use crate::errno::{EINVAL, ENOPROTOOPT, Result};
use crate::network::Head;
use alloc::collections::BTreeMap;
use core::cell::RefCell;
use linux_raw_sys::net::*;

/// Levels of options: sockets, and protocols by their numbers.
pub const LEVEL_IP: u32 = 0;
/// See [`LEVEL_IP`].
pub const LEVEL_TCP: u32 = 6;
/// See [`LEVEL_IP`].
pub const LEVEL_UDP: u32 = 17;
/// See [`LEVEL_IP`].
pub const LEVEL_IPV6: u32 = 41;
/// See [`LEVEL_IP`].
pub const LEVEL_LITE: u32 = 136;

/// Bytes that the checksum of a datagram covers which is sent: `UDPLITE_SEND_CSCOV`.
pub const SEND_COVERAGE: u32 = 10;

/// Bytes that the checksum of a datagram covers at least which is received: `UDPLITE_RECV_CSCOV`.
pub const RECEIVE_COVERAGE: u32 = 11;

/// Bytes of the head of a datagram, which each checksum covers.
const COVERED_MIN: i32 = 8;

/// Bytes that a socket may have on the way, as Linux says it by default. The network keeps fewer.
const SIZE: u32 = 212_992;

/// Hops that a packet may make.
const HOPS: u32 = 64;

/// Values that an option may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Values {
    /// Set or not: everything else than 0 is 1.
    Flag,
    /// These; -1 is the value that it has to begin with.
    Between(i32, i32),
    /// Any, of which a byte is kept.
    Byte,
    /// Any.
    Any,
}

use Values::{Any, Between, Byte, Flag};

/// Options for the date at which a datagram has come. A socket has one of them at most, or none.
const DATES: [u32; 4] = [SO_TIMESTAMP, SO_TIMESTAMPNS, SO_TIMESTAMP_NEW, SO_TIMESTAMPNS_NEW];

/// Place of that one.
const DATE: (u32, u32) = (SOL_SOCKET, SO_TIMESTAMP);

/// Level, name, value to begin with, values.
const KNOWN: [(u32, u32, u32, Values); 54] = [
    (SOL_SOCKET, SO_REUSEADDR, 0, Flag),
    (SOL_SOCKET, SO_REUSEPORT, 0, Flag),
    (SOL_SOCKET, SO_KEEPALIVE, 0, Flag),
    (SOL_SOCKET, SO_BROADCAST, 0, Flag),
    (SOL_SOCKET, SO_DONTROUTE, 0, Flag),
    (SOL_SOCKET, SO_OOBINLINE, 0, Flag),
    (SOL_SOCKET, SO_DEBUG, 0, Flag),
    (SOL_SOCKET, SO_NO_CHECK, 0, Flag),
    (SOL_SOCKET, SO_PRIORITY, 0, Any),
    (SOL_SOCKET, SO_MARK, 0, Any),
    (SOL_SOCKET, SO_RCVLOWAT, 1, Any),
    (SOL_SOCKET, SO_SNDBUF, SIZE, Any),
    (SOL_SOCKET, SO_RCVBUF, SIZE, Any),
    (LEVEL_IP, IP_TOS, 0, Byte),
    (LEVEL_IP, IP_TTL, HOPS, Between(1, 255)),
    (LEVEL_IP, IP_MTU_DISCOVER, 1, Between(0, 5)),
    (LEVEL_IP, IP_RECVERR, 0, Flag),
    (LEVEL_IP, IP_RECVTTL, 0, Flag),
    (LEVEL_IP, IP_RECVTOS, 0, Flag),
    (LEVEL_IP, IP_RETOPTS, 0, Flag),
    (LEVEL_IP, IP_PKTINFO, 0, Flag),
    (LEVEL_IP, IP_FREEBIND, 0, Flag),
    (LEVEL_IP, IP_BIND_ADDRESS_NO_PORT, 0, Flag),
    (LEVEL_IP, IP_MULTICAST_TTL, 1, Between(0, 255)),
    (LEVEL_IP, IP_MULTICAST_LOOP, 1, Flag),
    (LEVEL_IP, IP_MULTICAST_ALL, 1, Flag),
    (LEVEL_TCP, TCP_NODELAY, 0, Flag),
    (LEVEL_TCP, TCP_CORK, 0, Flag),
    (LEVEL_TCP, TCP_QUICKACK, 1, Flag),
    (LEVEL_TCP, TCP_KEEPIDLE, 7200, Between(1, 32767)),
    (LEVEL_TCP, TCP_KEEPINTVL, 75, Between(1, 32767)),
    (LEVEL_TCP, TCP_KEEPCNT, 9, Between(1, 127)),
    (LEVEL_TCP, TCP_SYNCNT, 6, Between(1, 127)),
    (LEVEL_TCP, TCP_LINGER2, 60, Any),
    (LEVEL_TCP, TCP_DEFER_ACCEPT, 0, Any),
    (LEVEL_TCP, TCP_WINDOW_CLAMP, 0, Any),
    (LEVEL_TCP, TCP_USER_TIMEOUT, 0, Between(0, i32::MAX)),
    (LEVEL_TCP, TCP_NOTSENT_LOWAT, 0, Any),
    (LEVEL_TCP, TCP_MAXSEG, 536, Between(88, 32767)),
    (LEVEL_IPV6, IPV6_V6ONLY, 0, Flag),
    (LEVEL_IPV6, IPV6_UNICAST_HOPS, HOPS, Between(0, 255)),
    (LEVEL_IPV6, IPV6_MULTICAST_HOPS, 1, Between(0, 255)),
    (LEVEL_IPV6, IPV6_MULTICAST_LOOP, 1, Flag),
    (LEVEL_IPV6, IPV6_MULTICAST_ALL, 1, Flag),
    (LEVEL_IPV6, IPV6_MTU_DISCOVER, 1, Between(0, 5)),
    (LEVEL_IPV6, IPV6_RECVERR, 0, Flag),
    (LEVEL_IPV6, IPV6_RECVPKTINFO, 0, Flag),
    (LEVEL_IPV6, IPV6_RECVHOPLIMIT, 0, Flag),
    (LEVEL_IPV6, IPV6_RECVTCLASS, 0, Flag),
    (LEVEL_IPV6, IPV6_TCLASS, 0, Between(0, 255)),
    (LEVEL_IPV6, IPV6_DONTFRAG, 0, Flag),
    (LEVEL_IPV6, IPV6_AUTOFLOWLABEL, 1, Flag),
    (LEVEL_IPV6, IPV6_FREEBIND, 0, Flag),
    (LEVEL_IPV6, IPV6_ADDR_PREFERENCES, 0, Any),
];

/// Options of a socket.
#[derive(Debug, Default)]
pub struct Options {
    /// Those that have another value than to begin with, by level and name.
    changed: RefCell<BTreeMap<(u32, u32), u32>>,
}

/// Value to begin with, and values, of an option that a socket has.
fn known(family: Family, is_stream: bool, (level, name): (u32, u32)) -> Result<(u32, Values)> {
    let is_other = level == LEVEL_TCP && !is_stream || level == LEVEL_IPV6 && family == Family::Four;
    let found = KNOWN.iter().find(|known| (known.0, known.1) == (level, name) && !is_other);
    found.map(|(_, _, value, values)| (*value, *values)).ok_or(ENOPROTOOPT)
}

impl Options {
    /// Value of an option. `ENOPROTOOPT`: there is none.
    pub fn get(&self, family: Family, is_stream: bool, option: (u32, u32)) -> Result<u32> {
        if let (SOL_SOCKET, name) = option
            && DATES.contains(&name)
        {
            return Ok(self.asks_date(name).into());
        }
        let (value, _) = known(family, is_stream, option)?;
        Ok(self.changed.borrow().get(&option).copied().unwrap_or(value))
    }

    /// Sets an option. `ENOPROTOOPT`: there is none. `EINVAL`: it cannot have the value.
    pub fn set(&self, family: Family, is_stream: bool, option: (u32, u32), value: i32) -> Result<()> {
        if let (SOL_SOCKET, name) = option
            && DATES.contains(&name)
        {
            self.changed.borrow_mut().insert(DATE, if value == 0 { 0 } else { name });
            return Ok(());
        }
        let (first, values) = known(family, is_stream, option)?;
        let value = match values {
            Flag => u32::from(value != 0),
            Any => value.cast_unsigned(),
            Byte => u32::from(value as u8),
            Between(..) if value == -1 => first,
            Between(least, most) if (least..=most).contains(&value) => value.cast_unsigned(),
            Between(..) => return Err(EINVAL),
        };
        self.changed.borrow_mut().insert(option, value);
        Ok(())
    }

    /// Takes over those of another socket: that of the one at which a connection has arrived.
    pub fn copy(&self, from: &Options) {
        self.changed.replace(from.changed.borrow().clone());
    }

    /// Whether an option for dates seems to be set: that for microseconds in its new form is so by that for nanoseconds, too.
    fn asks_date(&self, name: u32) -> bool {
        match self.date_option() {
            Some(SO_TIMESTAMPNS_NEW) => matches!(name, SO_TIMESTAMP_NEW | SO_TIMESTAMPNS_NEW),
            own => own == Some(name),
        }
    }

    /// Bytes that are covered by an option of UDP-Lite, and 0 if it was not set.
    pub fn coverage(&self, name: u32) -> u32 {
        self.changed.borrow().get(&(LEVEL_LITE, name)).copied().unwrap_or(0)
    }

    /// Sets an option of UDP-Lite. Nothing fewer than the head can be covered.
    pub fn set_coverage(&self, name: u32, value: i32) {
        let value = if value == 0 { 0 } else { value.clamp(COVERED_MIN, u16::MAX.into()) };
        self.changed.borrow_mut().insert((LEVEL_LITE, name), value.cast_unsigned());
    }

    /// Bytes of a datagram with so many that are covered when it is sent; 0: all.
    pub fn covered(&self, len: usize) -> u16 {
        let covered = self.coverage(SEND_COVERAGE);
        let all = COVERED_MIN as usize + len;
        if covered as usize >= all { 0 } else { covered as u16 }
    }

    /// Whether a socket takes a datagram of which so many bytes are covered, 0 being all. One that has asked for 0 takes no others.
    pub fn takes(&self, covered: u16) -> bool {
        covered == 0
            || match self.changed.borrow().get(&(LEVEL_LITE, RECEIVE_COVERAGE)) {
                None => true,
                Some(least) => *least != 0 && u32::from(covered) >= *least,
            }
    }

    /// The option by which the socket wants the date at which a datagram has come.
    pub fn date_option(&self) -> Option<u32> {
        self.changed.borrow().get(&DATE).copied().filter(|name| *name != 0)
    }

    /// Whether any option was set.
    pub fn are_changed(&self) -> bool {
        !self.changed.borrow().is_empty()
    }

    /// Numbers in the heads of packets to an address of a family.
    pub fn head(&self, family: Family) -> Head {
        let names = match family {
            Family::Four => [(LEVEL_IP, IP_TTL), (LEVEL_IP, IP_TOS)],
            Family::Six => [(LEVEL_IPV6, IPV6_UNICAST_HOPS), (LEVEL_IPV6, IPV6_TCLASS)],
        };
        let changed = self.changed.borrow();
        let [hops, class] = names.map(|name| changed.get(&name).map(|value| *value as u8));
        Head { hops: hops.unwrap_or(HOPS as u8), class: class.unwrap_or(0) }
    }

    /// Whether an option that is not set to begin with is set.
    pub fn is_set(&self, option: (u32, u32)) -> bool {
        self.changed.borrow().get(&option).is_some_and(|value| *value != 0)
    }

    /// Whether a socket of IPv6 does not stand for IPv4, too.
    pub fn is_six_only(&self) -> bool {
        self.is_set((LEVEL_IPV6, IPV6_V6ONLY))
    }

    /// Whether others may have the address, too: by `SO_REUSEADDR`, by `SO_REUSEPORT`.
    pub fn shares(&self) -> [bool; 2] {
        [SO_REUSEADDR, SO_REUSEPORT].map(|name| self.is_set((SOL_SOCKET, name)))
    }

    /// How datagrams to groups are sent: for how many hops, and whether this machine gets them, too.
    pub fn to_groups(&self, family: Family) -> (u8, bool) {
        let [hops, loops] = match family {
            Family::Four => [IP_MULTICAST_TTL, IP_MULTICAST_LOOP].map(|name| (LEVEL_IP, name)),
            Family::Six => [IPV6_MULTICAST_HOPS, IPV6_MULTICAST_LOOP].map(|name| (LEVEL_IPV6, name)),
        };
        let value = |option| self.get(family, false, option).unwrap_or(1);
        (u8::try_from(value(hops)).unwrap_or(u8::MAX), value(loops) != 0)
    }

    /// Whether it may send to all.
    pub fn may_broadcast(&self) -> bool {
        self.is_set((SOL_SOCKET, SO_BROADCAST))
    }
}
