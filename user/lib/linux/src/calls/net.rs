//! Files of `/proc/net`: sockets of all processes, interfaces, and ways to other networks, as Linux prints them. Only what is known here is in them: nobody counts bytes of
//! interfaces, and sockets that are on the way in messages, or that nobody has accepted, are missing.

use super::proc::TEXT_MAX;
use crate::frames::Bytes;
use crate::inet::{Family, Inet, Protocol, head};
use crate::machine::Machine;
use crate::network::layout::{CARD_NAME, mask};
use crate::network::{ITSELF, Interface, Layout, Network, Presence};
use crate::open::Object;
use crate::process::Event;
use crate::socket::Socket;
use crate::system::{Outcome, System};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use vfs::FileSystem;

/// Lines in front of the interfaces.
const INTERFACES: &str = "Inter-|   Receive                                                |  Transmit\n \
                          face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n";

/// The line in front of the ways, without the spaces behind it.
const ROUTES: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT";

/// Characters of a line about a way, which spaces fill up.
const ROUTE_WIDTH: usize = 127;

/// Flags of a way: it is there; a router leads there; it leads to one machine.
mod route {
    pub const UP: u32 = 1;
    pub const GATEWAY: u32 = 2;
    pub const HOST: u32 = 4;
}

/// Flag of a socket of `AF_UNIX` that listens.
const ACCEPTS: u32 = 1 << 16;

/// States of such a socket: without another end, and with one.
const UNCONNECTED: u32 = 1;
/// See [`UNCONNECTED`].
const CONNECTED: u32 = 3;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Things of one kind that are open, each once, by their numbers.
    fn open_things<'a, T>(&'a self, of: impl Fn(&'a Object) -> Option<(u64, &'a T)>) -> Vec<&'a T> {
        let descriptors = self.processes.values().flat_map(|process| process.descriptors.iter());
        let held = self.threads.values().flat_map(|thread| &thread.held);
        let all = descriptors.map(|(_, descriptor)| &descriptor.open).chain(held.map(|(_, open)| open));
        all.filter_map(|open| of(&open.object)).collect::<BTreeMap<_, _>>().into_values().collect()
    }

    /// Text of `tcp`, `udp`, `tcp6` and `udp6`.
    pub(super) fn inet_text(&self, protocol: Protocol, family: Family) -> String {
        let is_meant = |inet: &Inet| inet.protocol == protocol && inet.family == family;
        let all = self.open_things(|object| match object {
            Object::Inet(inet) if is_meant(inet) => Some((inet.number, inet)),
            _ => None,
        });
        // Those that listen come first, as in Linux.
        let (first, others): (Vec<&Rc<Inet>>, Vec<_>) = all.into_iter().partition(|inet| inet.is_listening());
        let mut text = head(protocol, family);
        let mut place = 0;
        for inet in first.into_iter().chain(others) {
            if let Some(line) = inet.line(place) {
                text += &line;
                place += 1;
            }
        }
        text
    }

    /// Text of `unix`.
    pub(super) fn unix_text(&self) -> Vec<u8> {
        let all = self.open_things(|object| match object {
            Object::Socket(socket) => Some((socket.number, socket)),
            _ => None,
        });
        let mut text = b"Num       RefCount Protocol Flags    Type St Inode Path\n".to_vec();
        for socket in all {
            text.extend(unix_line(socket));
            if text.len() > TEXT_MAX {
                break;
            }
        }
        text
    }

    /// The network, which is looked for from now on if nobody has asked for it yet.
    fn known_network(&self) -> Rc<dyn Network> {
        let network = self.sockets.network.0.clone();
        network.presence();
        network
    }

    /// Layout of the network.
    pub(super) fn layout(&self) -> Layout {
        Layout::of(&*self.known_network())
    }

    /// A wait until it is known what network there is, if it is not.
    pub(super) fn awaits_network(&self) -> Option<Outcome> {
        let is_known = self.sockets.network.0.presence() == Presence::Known;
        (!is_known).then(|| Outcome::Wait(Vec::from([Event::Ring(ITSELF)]), None))
    }

    /// Text of `dev`.
    pub(super) fn interfaces_text(&self) -> String {
        let line = |Interface { name, .. }: &Interface| {
            format!(
                "{name:>6}: {0:7} {0:7} {0:4} {0:4} {0:4} {0:5} {0:10} {0:9} {0:8} {0:7} {0:4} {0:4} {0:4} {0:5} {0:7} {0:10}\n",
                0
            )
        };
        self.layout().interfaces.iter().map(line).fold(String::from(INTERFACES), |text, line| text + &line)
    }

    /// Text of `route`.
    pub(super) fn routes_text(&self) -> String {
        let network = self.known_network();
        let mut text = format!("{ROUTES:ROUTE_WIDTH$}\n");
        if let Some(router) = network.router() {
            text += &route_line(Ipv4Addr::UNSPECIFIED, 0, Some(router));
        }
        for (address, prefix) in network.addresses() {
            if let IpAddr::V4(address) = address
                && !address.is_loopback()
            {
                text += &route_line(address, prefix, None);
            }
        }
        text
    }
}

/// A line about the way to the network of an address.
fn route_line(to: Ipv4Addr, prefix: u8, router: Option<Ipv4Addr>) -> String {
    let mask = mask(prefix);
    // In the order of the bytes in memory.
    let shown = |address: u32| u32::from_le_bytes(address.to_be_bytes());
    let gateway = router.map_or(0, |_| route::GATEWAY);
    let host = if mask == u32::MAX { route::HOST } else { 0 };
    let line = format!(
        "{CARD_NAME}\t{:08X}\t{:08X}\t{:04X}\t0\t0\t0\t{:08X}\t0\t0\t0",
        shown(to.to_bits() & mask),
        shown(router.map_or(0, Ipv4Addr::to_bits)),
        route::UP | gateway | host,
        shown(mask)
    );
    format!("{line:ROUTE_WIDTH$}\n")
}

/// A line about a socket of `AF_UNIX`.
fn unix_line(socket: &Socket) -> Vec<u8> {
    let (count, state) = if socket.is_connected() { (3, CONNECTED) } else { (2, UNCONNECTED) };
    let flags = if socket.is_listening() { ACCEPTS } else { 0 };
    let (kind, number) = (socket.kind.number(), socket.number);
    let line = format!("{:016x}: {count:08X} {:08X} {flags:08X} {kind:04X} {state:02X} {number:5}", 0, 0);
    let mut line = line.into_bytes();
    if let Some(name) = &*socket.name.borrow() {
        line.push(b' ');
        line.extend(name.iter().map(|byte| if *byte == 0 { b'@' } else { *byte }));
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests;
