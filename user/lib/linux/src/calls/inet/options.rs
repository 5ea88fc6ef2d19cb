//! Options of sockets of networks, as calls ask for them.

use crate::calls::sockets::time_bytes;
use crate::errno::{EINVAL, ENOPROTOOPT, ENOTCONN, Result};
use crate::frames::Bytes;
use crate::inet::groups::{self, Way};
use crate::inet::options::{LEVEL_IP, LEVEL_IPV6, LEVEL_LITE, LEVEL_UDP, RECEIVE_COVERAGE, SEND_COVERAGE};
use crate::inet::{Family, Inet, Protocol, Stage};
use crate::machine::{Machine, Tid};
use crate::socket::{Credentials, SIZES_MIN, buffer_bytes};
use crate::system::{Answer, System};
use alloc::vec::Vec;
use linux_raw_sys::net::*;
use vfs::FileSystem;

/// Bytes that a packet may have on the way, with its head.
const MTU: u32 = 1500;

/// Options about groups of receivers whose values are structures.
const GROUPS: [(u32, u32); 6] = [
    (LEVEL_IP, IP_ADD_MEMBERSHIP),
    (LEVEL_IP, IP_DROP_MEMBERSHIP),
    (LEVEL_IP, IP_MULTICAST_IF),
    (LEVEL_IPV6, IPV6_ADD_MEMBERSHIP),
    (LEVEL_IPV6, IPV6_DROP_MEMBERSHIP),
    (LEVEL_IPV6, IPV6_MULTICAST_IF),
];

/// Bytes of the longest of these.
const GROUP_MAX: usize = 20;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Sets an option about groups.
    fn set_group_option(
        &mut self,
        tid: Tid,
        inet: &Inet,
        (level, name): (u32, u32),
        (at, len): (u64, u64),
    ) -> Result<()> {
        // A socket of IPv4 has no others, and one of IPv6 joins groups of IPv4, too.
        if level == LEVEL_IPV6 && inet.family == Family::Four {
            return Err(ENOPROTOOPT);
        }
        if (len as i32) < 4 {
            return Err(EINVAL);
        }
        let family = if level == LEVEL_IP { Family::Four } else { Family::Six };
        let len = usize::try_from(len as u32).unwrap_or(GROUP_MAX).min(GROUP_MAX);
        let mut bytes = [0; GROUP_MAX];
        let bytes = bytes.get_mut(..len).ok_or(EINVAL)?;
        self.read(tid, at, bytes)?;
        let network = self.network();
        let way = match (name, family) {
            // An address, or a group with the address and maybe the number of an interface.
            (IP_MULTICAST_IF, Family::Four) if len < 8 => Way::of(bytes),
            (IP_MULTICAST_IF, Family::Four) => bytes.get(4..).and_then(Way::of),
            (IPV6_MULTICAST_IF, Family::Six) => {
                let number = bytes.first_chunk().map(|number| u32::from_le_bytes(*number));
                number.map(|interface| Way { interface, address: None })
            }
            _ => {
                let joins = [IP_ADD_MEMBERSHIP, IPV6_ADD_MEMBERSHIP].contains(&name);
                return inet.set_member(&*network, groups::parse(family, bytes)?, joins);
            }
        };
        inet.set_way(&*network, way.ok_or(EINVAL)?)
    }

    /// Bytes of an option.
    pub(in crate::calls) fn inet_option(&mut self, inet: &Inet, level: u32, name: u32) -> Result<Vec<u8>> {
        inet.follow(&*self.network(), self.machine.now());
        if (level, name) == (SOL_SOCKET, SO_ERROR) {
            // Below, a refusal is told to who looks for a datagram.
            inet.look(&*self.network());
        }
        let value = match (level, name) {
            (SOL_SOCKET, SO_TYPE) => inet.kind.number(),
            (SOL_SOCKET, SO_DOMAIN) => inet.family.number(),
            (SOL_SOCKET, SO_PROTOCOL) => inet.protocol.number(inet.family),
            (SOL_SOCKET, SO_ERROR) => inet.error.take().map_or(0, |error| error.0.into()),
            (SOL_SOCKET, SO_ACCEPTCONN) => inet.is_listening().into(),
            (SOL_SOCKET, SO_SNDLOWAT) => 1,
            (SOL_SOCKET, SO_LINGER) => return Ok([0; 8].to_vec()),
            (SOL_SOCKET, SO_PEERCRED) => return Ok(Credentials::NOBODY.bytes()),
            (SOL_SOCKET, SO_RCVTIMEO_OLD | SO_RCVTIMEO_NEW) => return Ok(time_bytes(inet.timeouts[0].get())),
            (SOL_SOCKET, SO_SNDTIMEO_OLD | SO_SNDTIMEO_NEW) => return Ok(time_bytes(inet.timeouts[1].get())),
            (LEVEL_IP, IP_MTU) | (LEVEL_IPV6, IPV6_MTU) => {
                if inet.stage.get() == Stage::Connected {
                    MTU
                } else {
                    return Err(ENOTCONN);
                }
            }
            (LEVEL_UDP | LEVEL_LITE, SEND_COVERAGE | RECEIVE_COVERAGE)
                if matches!(inet.protocol, Protocol::Udp | Protocol::Lite) =>
            {
                inet.options.coverage(name)
            }
            (LEVEL_IP, IP_MULTICAST_IF) => {
                let address = inet.groups.way.get().address.map_or([0; 4], |address| address.octets());
                return Ok(address.to_vec());
            }
            (LEVEL_IPV6, IPV6_MULTICAST_IF) if inet.family == Family::Six => inet.groups.way.get().interface,
            option => inet.options.get(inet.family, inet.is_stream(), option)?,
        };
        Ok(value.to_le_bytes().to_vec())
    }

    /// Sets an option.
    pub(in crate::calls) fn set_inet_option(
        &mut self,
        tid: Tid,
        inet: &Inet,
        (level, name): (u32, u32),
        (at, len): (u64, u64),
    ) -> Answer {
        match (level, name) {
            (SOL_SOCKET, SO_RCVTIMEO_OLD | SO_RCVTIMEO_NEW) => {
                return self.set_timeout(tid, &inet.timeouts[0], (at, len));
            }
            (SOL_SOCKET, SO_SNDTIMEO_OLD | SO_SNDTIMEO_NEW) => {
                return self.set_timeout(tid, &inet.timeouts[1], (at, len));
            }
            _ => {}
        }
        if GROUPS.contains(&(level, name)) && inet.protocol == Protocol::Udp {
            return super::done(self.set_group_option(tid, inet, (level, name), (at, len)));
        }
        // Options of protocols may be a byte.
        let is_byte = level != SOL_SOCKET && (1..4).contains(&(len as i32));
        if (len as i32) < 4 && !is_byte {
            return Err(EINVAL);
        }
        let mut bytes = [0; 4];
        let room = if is_byte { 1 } else { 4 };
        self.read(tid, at, bytes.get_mut(..room).unwrap_or_default())?;
        let value = i32::from_le_bytes(bytes);
        let size = |min: usize| i32::try_from(buffer_bytes(value, min)).unwrap_or(i32::MAX);
        let (name, value) = match (level, name) {
            (SOL_SOCKET, SO_SNDBUF | SO_SNDBUFFORCE) => (SO_SNDBUF, size(SIZES_MIN[0])),
            (SOL_SOCKET, SO_RCVBUF | SO_RCVBUFFORCE) => (SO_RCVBUF, size(SIZES_MIN[1])),
            // A stream that is closed goes on sending anyway, and nobody waits for it.
            (SOL_SOCKET, SO_LINGER) => return crate::system::DONE,
            (SOL_SOCKET, SO_TYPE | SO_DOMAIN | SO_PROTOCOL | SO_ERROR | SO_ACCEPTCONN) => {
                return Err(ENOPROTOOPT);
            }
            (LEVEL_UDP | LEVEL_LITE, SEND_COVERAGE | RECEIVE_COVERAGE) if inet.is_lite() => {
                inet.options.set_coverage(name, value);
                return crate::system::DONE;
            }
            (LEVEL_IPV6, IPV6_V6ONLY) if inet.local.get().is_some() => return Err(EINVAL),
            (_, name) => (name, value),
        };
        inet.options.set(inet.family, inet.is_stream(), (level, name), value)?;
        self.sockets.wants_dates |= inet.options.date_option().is_some();
        crate::system::DONE
    }
}
