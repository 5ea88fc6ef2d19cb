//! Options of sockets of netlink, as calls ask for them.

use crate::calls::done;
use crate::calls::sockets::time_bytes;
use crate::errno::{EINVAL, ENOPROTOOPT, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::netlink::Netlink;
use crate::socket::{Credentials, SIZES_MIN, buffer_bytes};
use crate::system::{Answer, System};
use alloc::vec::Vec;
use linux_raw_sys::net::{
    AF_NETLINK, SO_ACCEPTCONN, SO_BROADCAST, SO_DEBUG, SO_DOMAIN, SO_DONTROUTE, SO_ERROR, SO_KEEPALIVE,
    SO_LINGER, SO_MARK, SO_OOBINLINE, SO_PASSCRED, SO_PEERCRED, SO_PRIORITY, SO_PROTOCOL, SO_RCVBUF,
    SO_RCVBUFFORCE, SO_RCVLOWAT, SO_RCVTIMEO_NEW, SO_RCVTIMEO_OLD, SO_REUSEADDR, SO_REUSEPORT, SO_SNDBUF,
    SO_SNDBUFFORCE, SO_SNDLOWAT, SO_SNDTIMEO_NEW, SO_SNDTIMEO_OLD, SO_TIMESTAMP, SO_TYPE, SOL_NETLINK,
    SOL_SOCKET,
};
use linux_raw_sys::netlink::{
    NETLINK_ADD_MEMBERSHIP, NETLINK_BROADCAST_ERROR, NETLINK_CAP_ACK, NETLINK_DROP_MEMBERSHIP,
    NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK, NETLINK_LIST_MEMBERSHIPS, NETLINK_LISTEN_ALL_NSID,
    NETLINK_NO_ENOBUFS, NETLINK_PKTINFO, NETLINK_ROUTE,
};
use vfs::FileSystem;

/// Options that are set or not. Texts beside errors (`NETLINK_EXT_ACK`) are never there, so nobody gets any.
const SWITCHES: [u32; 7] = [
    NETLINK_PKTINFO,
    NETLINK_BROADCAST_ERROR,
    NETLINK_NO_ENOBUFS,
    NETLINK_LISTEN_ALL_NSID,
    NETLINK_CAP_ACK,
    NETLINK_EXT_ACK,
    NETLINK_GET_STRICT_CHK,
];

/// Options of all sockets that have no effect on these.
const WITHOUT_EFFECT: [u32; 11] = [
    SO_REUSEADDR,
    SO_REUSEPORT,
    SO_KEEPALIVE,
    SO_BROADCAST,
    SO_LINGER,
    SO_PRIORITY,
    SO_OOBINLINE,
    SO_DEBUG,
    SO_DONTROUTE,
    SO_TIMESTAMP,
    SO_MARK,
];

/// Bytes of an option, of which a program has room for so many: a number of netlink is told as a whole or not at all (`EINVAL`).
pub fn netlink_option(socket: &Netlink, level: u32, name: u32, room: usize) -> Result<Vec<u8>> {
    let value = match (level, name) {
        (SOL_SOCKET, SO_TYPE) => socket.kind,
        (SOL_SOCKET, SO_DOMAIN) => AF_NETLINK,
        (SOL_SOCKET, SO_PROTOCOL) => NETLINK_ROUTE,
        (SOL_SOCKET, SO_ERROR) => socket.error.take().map_or(0, |error| error.0.into()),
        (SOL_SOCKET, SO_SNDBUF) => socket.send_size.get() as u32,
        (SOL_SOCKET, SO_RCVBUF) => socket.receive_size.get() as u32,
        (SOL_SOCKET, SO_PASSCRED) => socket.tells_sender.get().into(),
        (SOL_SOCKET, SO_RCVLOWAT | SO_SNDLOWAT) => 1,
        (SOL_SOCKET, SO_LINGER) => return Ok([0; 8].to_vec()),
        (SOL_SOCKET, SO_PEERCRED) => return Ok(Credentials::NOBODY.bytes()),
        (SOL_SOCKET, SO_RCVTIMEO_OLD | SO_RCVTIMEO_NEW) => return Ok(time_bytes(socket.timeouts[0].get())),
        (SOL_SOCKET, SO_SNDTIMEO_OLD | SO_SNDTIMEO_NEW) => return Ok(time_bytes(socket.timeouts[1].get())),
        (SOL_SOCKET, SO_ACCEPTCONN) => 0,
        (SOL_SOCKET, name) if WITHOUT_EFFECT.contains(&name) => 0,
        (SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS) => return Ok(socket.groups()),
        (SOL_NETLINK, name) if SWITCHES.contains(&name) => {
            if room < size_of::<u32>() {
                return Err(EINVAL);
            }
            socket.has(name).into()
        }
        _ => return Err(ENOPROTOOPT),
    };
    Ok(value.to_le_bytes().to_vec())
}

/// Sets an option that is a number.
fn set(socket: &Netlink, level: u32, name: u32, value: i32) -> Result<()> {
    match (level, name) {
        (SOL_SOCKET, SO_SNDBUF | SO_SNDBUFFORCE) => socket.send_size.set(buffer_bytes(value, SIZES_MIN[0])),
        (SOL_SOCKET, SO_RCVBUF | SO_RCVBUFFORCE) => {
            socket.receive_size.set(buffer_bytes(value, SIZES_MIN[1]));
        }
        (SOL_SOCKET, SO_PASSCRED) => socket.tells_sender.set(value != 0),
        (SOL_SOCKET, SO_RCVLOWAT) => {}
        (SOL_SOCKET, name) if WITHOUT_EFFECT.contains(&name) => {}
        (SOL_NETLINK, NETLINK_ADD_MEMBERSHIP) => return socket.set_member(value, true),
        (SOL_NETLINK, NETLINK_DROP_MEMBERSHIP) => return socket.set_member(value, false),
        (SOL_NETLINK, name) if SWITCHES.contains(&name) => socket.set_option(name, value != 0),
        _ => return Err(ENOPROTOOPT),
    }
    Ok(())
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Sets an option.
    pub(in crate::calls) fn set_netlink_option(
        &mut self,
        tid: Tid,
        socket: &Netlink,
        (level, name): (u32, u32),
        (at, len): (u64, u64),
    ) -> Answer {
        match (level, name) {
            (SOL_SOCKET, SO_RCVTIMEO_OLD | SO_RCVTIMEO_NEW) => {
                return self.set_timeout(tid, &socket.timeouts[0], (at, len));
            }
            (SOL_SOCKET, SO_SNDTIMEO_OLD | SO_SNDTIMEO_NEW) => {
                return self.set_timeout(tid, &socket.timeouts[1], (at, len));
            }
            _ => {}
        }
        // One of netlink that is too short is 0.
        let mut bytes = [0; 4];
        if len as i32 >= 4 {
            self.read(tid, at, &mut bytes)?;
        } else if level == SOL_SOCKET {
            return Err(EINVAL);
        }
        done(set(socket, level, name, i32::from_le_bytes(bytes)))
    }
}
