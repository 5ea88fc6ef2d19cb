//! Requests of `ioctl` at sockets: which interfaces there are, and what is known of each. Nothing of them can be changed.

use super::done;
use crate::errno::{EADDRNOTAVAIL, ENODEV, ENOTTY, EPERM, Result};
use crate::frames::Bytes;
use crate::inet::{Family, address_bytes};
use crate::machine::{Machine, Tid};
use crate::network::layout::{Interface, Layout, QUEUE, broadcast_of, mask};
use crate::open::{Object, Open};
use crate::system::{Answer, System};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use linux_raw_sys::ioctl::{
    SIOCADDMULTI, SIOCADDRT, SIOCDARP, SIOCDELMULTI, SIOCDELRT, SIOCGIFADDR, SIOCGIFBRDADDR, SIOCGIFCONF,
    SIOCGIFDSTADDR, SIOCGIFFLAGS, SIOCGIFHWADDR, SIOCGIFINDEX, SIOCGIFMAP, SIOCGIFMETRIC, SIOCGIFMTU,
    SIOCGIFNAME, SIOCGIFNETMASK, SIOCGIFTXQLEN, SIOCSARP, SIOCSIFADDR, SIOCSIFBRDADDR, SIOCSIFDSTADDR,
    SIOCSIFFLAGS, SIOCSIFHWADDR, SIOCSIFHWBROADCAST, SIOCSIFLINK, SIOCSIFMAP, SIOCSIFMETRIC, SIOCSIFMTU,
    SIOCSIFNAME, SIOCSIFNETMASK, SIOCSIFTXQLEN,
};
use linux_raw_sys::net::{IFNAMSIZ, ifmap};
use vfs::FileSystem;

/// Bytes of a name with the zero behind it, which is in front of what is asked for.
const NAME_BYTES: usize = IFNAMSIZ as usize;

/// Bytes of a request: `struct ifreq`, whose longest part behind the name is a map of memory. The crate's has longer addresses.
const REQUEST_BYTES: usize = NAME_BYTES + size_of::<ifmap>();
const _: () = assert!(REQUEST_BYTES == 40);

/// Requests about addresses, which sockets of IPv4 alone have.
const OF_ADDRESSES: [u32; 4] = [SIOCGIFADDR, SIOCGIFDSTADDR, SIOCGIFBRDADDR, SIOCGIFNETMASK];

/// Requests that all sockets have.
const OF_ALL: [u32; 9] = [
    SIOCGIFCONF,
    SIOCGIFNAME,
    SIOCGIFINDEX,
    SIOCGIFFLAGS,
    SIOCGIFMETRIC,
    SIOCGIFMTU,
    SIOCGIFHWADDR,
    SIOCGIFTXQLEN,
    SIOCGIFMAP,
];

/// Requests that would change something.
const CHANGES: [u32; 19] = [
    SIOCADDRT,
    SIOCDELRT,
    SIOCSARP,
    SIOCDARP,
    SIOCADDMULTI,
    SIOCDELMULTI,
    SIOCSIFADDR,
    SIOCSIFBRDADDR,
    SIOCSIFDSTADDR,
    SIOCSIFFLAGS,
    SIOCSIFHWADDR,
    SIOCSIFHWBROADCAST,
    SIOCSIFLINK,
    SIOCSIFMAP,
    SIOCSIFMETRIC,
    SIOCSIFMTU,
    SIOCSIFNAME,
    SIOCSIFNETMASK,
    SIOCSIFTXQLEN,
];

/// The name in a request, up to its zero.
fn name_of(request: &[u8; REQUEST_BYTES]) -> &[u8] {
    let name = request.get(..NAME_BYTES - 1).unwrap_or_default();
    name.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Subject of a request, behind its name.
fn value_of(request: &[u8; REQUEST_BYTES]) -> &[u8] {
    request.get(NAME_BYTES..).unwrap_or_default()
}

/// Bytes of a name, with zeros behind it.
fn name_bytes(interface: &Interface) -> [u8; NAME_BYTES] {
    let mut bytes = [0; NAME_BYTES];
    bytes.iter_mut().zip(interface.name.as_bytes()).for_each(|(to, byte)| *to = *byte);
    bytes
}

/// Bytes of an address of IPv4.
fn socket_address(address: Ipv4Addr) -> Vec<u8> {
    address_bytes(Family::Four, SocketAddr::new(IpAddr::V4(address), 0))
}

/// The interface that a request means: by its number, or by its name, in which a second one may be behind a colon.
fn meant<'a>(layout: &'a Layout, kind: u32, request: &[u8; REQUEST_BYTES]) -> Result<&'a Interface> {
    let found = if kind == SIOCGIFNAME {
        let number = value_of(request).first_chunk().map_or(0, |number| u32::from_le_bytes(*number));
        layout.numbered(number)
    } else {
        layout.named(name_of(request).split(|byte| *byte == b':').next().unwrap_or_default())
    };
    found.ok_or(ENODEV)
}

/// Answer to a request about an address of an interface: the one that the request has, if it is one of them, or else the first.
fn about_address(interface: &Interface, kind: u32, request: &[u8; REQUEST_BYTES]) -> Result<Vec<u8>> {
    // Addresses have the name of their interface, and none another one beside it.
    if name_of(request) != interface.name.as_bytes() {
        return Err(EADDRNOTAVAIL);
    }
    let is_named = |(own, _): &(Ipv4Addr, u8)| value_of(request).starts_with(&socket_address(*own)[..8]);
    let found = interface.addresses_v4().find(is_named).or_else(|| interface.addresses_v4().next());
    let (own, prefix) = found.ok_or(EADDRNOTAVAIL)?;
    Ok(socket_address(match kind {
        SIOCGIFBRDADDR => broadcast_of(own, prefix).unwrap_or(Ipv4Addr::UNSPECIFIED),
        SIOCGIFNETMASK => Ipv4Addr::from_bits(mask(prefix)),
        _ => own,
    }))
}

/// Answer to a request about an interface, which is behind its name.
fn about(interface: &Interface, kind: u32) -> Vec<u8> {
    match kind {
        SIOCGIFINDEX => interface.number.to_le_bytes().to_vec(),
        SIOCGIFFLAGS => (interface.flags as u16).to_le_bytes().to_vec(),
        SIOCGIFMTU => interface.mtu.to_le_bytes().to_vec(),
        SIOCGIFTXQLEN => QUEUE.to_le_bytes().to_vec(),
        SIOCGIFHWADDR => {
            let mut bytes = interface.kind.to_le_bytes().to_vec();
            bytes.extend_from_slice(&interface.hardware);
            bytes.resize(16, 0);
            bytes
        }
        SIOCGIFMAP => [0; size_of::<ifmap>()].to_vec(),
        // A metric; no interface has one.
        _ => [0; 4].to_vec(),
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// A request at a socket. `ENOTTY`: it has no such. `ENODEV`: there is no such interface. `EADDRNOTAVAIL`: it has no such address.
    pub(super) fn interface_request(&mut self, tid: Tid, open: &Open, kind: u32, at: u64) -> Answer {
        let has_addresses = matches!(&open.object, Object::Inet(inet) if inet.family == Family::Four);
        let is_about_address = has_addresses && OF_ADDRESSES.contains(&kind);
        if CHANGES.contains(&kind) {
            return Err(EPERM);
        }
        if !OF_ALL.contains(&kind) && !is_about_address {
            return Err(ENOTTY);
        }
        if let Some(wait) = self.awaits_network() {
            return Ok(wait);
        }
        let layout = self.layout();
        if kind == SIOCGIFCONF {
            return self.list_addresses(tid, &layout, at);
        }
        let mut request = [0; REQUEST_BYTES];
        self.read(tid, at, &mut request)?;
        let interface = meant(&layout, kind, &request)?;
        let (place, bytes) = match kind {
            SIOCGIFNAME => (0, name_bytes(interface).to_vec()),
            _ if is_about_address => (NAME_BYTES, about_address(interface, kind, &request)?),
            _ => (NAME_BYTES, about(interface, kind)),
        };
        done(self.write(tid, at.wrapping_add(place as u64), &bytes))
    }

    /// Lists addresses of IPv4 with the names of their interfaces, as many as there is room for; without a place for them, it says how many bytes they are.
    fn list_addresses(&mut self, tid: Tid, layout: &Layout, at: u64) -> Answer {
        let [len, to] = self.words(tid, at)?;
        let mut all = Vec::new();
        for interface in &layout.interfaces {
            for (own, _) in interface.addresses_v4() {
                let end = all.len() + REQUEST_BYTES;
                all.extend_from_slice(&name_bytes(interface));
                all.extend_from_slice(&socket_address(own));
                all.resize(end, 0);
            }
        }
        if to != 0 {
            let room = usize::try_from(len as i32).unwrap_or(0);
            all.truncate(room / REQUEST_BYTES * REQUEST_BYTES);
            self.write(tid, to, &all)?;
        }
        done(self.write(tid, at, &(all.len() as u32).to_le_bytes()))
    }
}

#[cfg(test)]
mod tests;
