//! Addresses of sockets as programs have them: `struct sockaddr_in` and `struct sockaddr_in6`.

use crate::errno::{EAFNOSUPPORT, EINVAL, Result};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use linux_raw_sys::net::{AF_INET, AF_INET6, AF_UNSPEC};

/// Bytes of an address of IPv4.
const FOUR_BYTES: usize = 16;

/// Bytes of an address of IPv6 without a scope, which need not be there.
const SIX_BYTES_MIN: usize = 24;

/// Family of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    Four,
    /// IPv6, and IPv4 by addresses that stand for those.
    Six,
}

impl Family {
    /// Family of a number.
    pub const fn of(number: u32) -> Option<Family> {
        match number {
            AF_INET => Some(Family::Four),
            AF_INET6 => Some(Family::Six),
            _ => None,
        }
    }

    /// Number of the family in Linux.
    pub const fn number(self) -> u32 {
        match self {
            Family::Four => AF_INET,
            Family::Six => AF_INET6,
        }
    }

    /// The address that means all of this machine.
    pub const fn any(self) -> IpAddr {
        match self {
            Family::Four => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Family::Six => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        }
    }

    /// Whether sockets of the family can talk with an address.
    pub const fn has(self, address: IpAddr, is_six_only: bool) -> bool {
        match (self, address) {
            (Family::Four, IpAddr::V4(_)) | (Family::Six, IpAddr::V6(_)) => true,
            (Family::Four, IpAddr::V6(_)) => false,
            (Family::Six, IpAddr::V4(_)) => !is_six_only,
        }
    }
}

/// An address that a program names for a socket of a family. None: it is of no family.
///
/// `EINVAL`: too short. `EAFNOSUPPORT`: of another family.
pub fn parse(family: Family, bytes: &[u8]) -> Result<Option<SocketAddr>> {
    let [low, high, rest @ ..] = bytes else { return Err(EINVAL) };
    let number = u32::from(u16::from_le_bytes([*low, *high]));
    if number == AF_UNSPEC {
        return Ok(None);
    }
    let least = if family == Family::Four { FOUR_BYTES } else { SIX_BYTES_MIN };
    if bytes.len() < least {
        return Err(EINVAL);
    }
    if number != family.number() {
        return Err(EAFNOSUPPORT);
    }
    let [high, low, rest @ ..] = rest else { return Err(EINVAL) };
    let port = u16::from_be_bytes([*high, *low]);
    let address = match family {
        Family::Four => {
            let octets: [u8; 4] = rest.get(..4).and_then(|octets| octets.try_into().ok()).ok_or(EINVAL)?;
            IpAddr::from(octets)
        }
        Family::Six => {
            let octets: [u8; 16] = rest.get(4..20).and_then(|octets| octets.try_into().ok()).ok_or(EINVAL)?;
            let address = Ipv6Addr::from(octets);
            address.to_ipv4_mapped().map_or(address.into(), IpAddr::from)
        }
    };
    Ok(Some(SocketAddr::new(address, port)))
}

/// Bytes of an address as a socket of a family has it.
pub fn address_bytes(family: Family, at: SocketAddr) -> Vec<u8> {
    let mut bytes = (family.number() as u16).to_le_bytes().to_vec();
    bytes.extend_from_slice(&at.port().to_be_bytes());
    match (family, at.ip()) {
        (Family::Four, IpAddr::V4(address)) => {
            bytes.extend_from_slice(&address.octets());
            bytes.extend_from_slice(&[0; 8]);
        }
        // Sockets of IPv4 have no other addresses but the one that means all.
        (Family::Four, IpAddr::V6(_)) => bytes.extend_from_slice(&[0; 12]),
        (Family::Six, address) => {
            let address = match address {
                IpAddr::V4(address) => address.to_ipv6_mapped(),
                IpAddr::V6(address) => address,
            };
            bytes.extend_from_slice(&[0; 4]);
            bytes.extend_from_slice(&address.octets());
            bytes.extend_from_slice(&[0; 4]);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{Family, address_bytes, parse};
    use crate::errno::{EAFNOSUPPORT, EINVAL};
    use core::net::SocketAddr;

    #[test]
    fn addresses_come_back_as_they_were() {
        for (family, text, len) in [
            (Family::Four, "10.0.2.15:80", 16),
            (Family::Six, "[::1]:65535", 28),
            (Family::Six, "[fe80::1]:1", 28),
            (Family::Six, "127.0.0.1:8080", 28),
        ] {
            let at: SocketAddr = text.parse().unwrap();
            let bytes = address_bytes(family, at);
            assert_eq!((bytes.len(), parse(family, &bytes)), (len, Ok(Some(at))), "{text}");
            for short in 2..if family == Family::Four { 16 } else { 24 } {
                assert_eq!(parse(family, &bytes[..short]), Err(EINVAL), "{text}");
            }
        }
        let mapped = address_bytes(Family::Six, "1.2.3.4:5".parse().unwrap());
        assert_eq!(mapped[18..24], [0xff, 0xff, 1, 2, 3, 4]);
        assert_eq!(parse(Family::Four, &mapped), Err(EAFNOSUPPORT));
        assert_eq!(parse(Family::Six, &[0; 28]), Ok(None));
        assert_eq!(parse(Family::Six, &[0]), Err(EINVAL));
    }
}
