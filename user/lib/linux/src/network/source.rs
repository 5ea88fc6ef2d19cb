//! Own addresses from which others are reached.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether there is a way to all other networks, of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ways {
    /// Of IPv4.
    pub v4: bool,
    /// Of IPv6.
    pub v6: bool,
}

/// The address from which another one is reached, of those that this machine has, each with the length of its network's prefix: that of the same network, or where a way leads to other
/// networks, the first one that they know. `None` if no way leads there.
pub fn source(own: &[(IpAddr, u8)], ways: impl FnOnce() -> Option<Ways>, to: IpAddr) -> Option<IpAddr> {
    if to.is_loopback() {
        return Some(if to.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    if own.iter().any(|(own, _)| *own == to) {
        return Some(to);
    }
    let others = own.iter().filter(|(own, _)| own.is_ipv4() == to.is_ipv4() && !own.is_loopback());
    if let Some((own, _)) = others.clone().find(|own| is_near(to, **own)) {
        return Some(*own);
    }
    let mut others = others.map(|(own, _)| *own);
    match to {
        IpAddr::V4(to) if to.is_broadcast() || to.is_multicast() => others.next(),
        IpAddr::V4(_) => others.next().filter(|_| ways().is_some_and(|ways| ways.v4)),
        // The second half of its second byte is how far it goes: as far as the wire, or beyond.
        IpAddr::V6(to) if to.is_multicast() => match to.octets()[1] & 0xf {
            0..=2 => others.find(|own| !is_wide(*own)),
            _ => others.find(|own| is_wide(*own)),
        },
        IpAddr::V6(_) if is_wide(to) => {
            others.find(|own| is_wide(*own)).filter(|_| ways().is_some_and(|ways| ways.v6))
        }
        IpAddr::V6(_) => None,
    }
}

/// Whether an address of IPv6 is one that other networks may know: of the internet, or of one owner's networks.
fn is_wide(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => {
            let [first, ..] = address.octets();
            first >> 5 == 1 || address.is_unique_local()
        }
    }
}

/// Whether an address is one of the network of another, whose prefix has this length.
fn is_near(to: IpAddr, (own, prefix): (IpAddr, u8)) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let ((to_bits, len), (own_bits, _)) = (bits(to), bits(own));
    let behind = 128 - u32::from(prefix.min(len));
    to_bits.checked_shr(behind).unwrap_or(0) == own_bits.checked_shr(behind).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: [(&str, u8); 6] = [
        ("10.0.2.15", 24),
        ("2001:db8::15", 64),
        ("fd00::15", 128),
        ("fe80::15", 64),
        ("127.0.0.1", 8),
        ("::1", 128),
    ];

    fn check(own: &[(&str, u8)], [v4, v6]: [bool; 2], to: &str, expected: Option<&str>) {
        let own: alloc::vec::Vec<(IpAddr, u8)> =
            own.iter().map(|(address, len)| (address.parse().unwrap(), *len)).collect();
        let found = source(&own, || Some(Ways { v4, v6 }), to.parse().unwrap());
        assert_eq!(found, expected.map(|address| address.parse().unwrap()), "{to} with ways {v4} {v6}");
    }

    #[test]
    fn ways_of_each_kind_lead_to_other_networks_of_it() {
        for (to, near) in [
            ("127.0.0.9", "127.0.0.1"),
            ("::1", "::1"),
            ("10.0.2.15", "10.0.2.15"),
            ("fe80::15", "fe80::15"),
            ("10.0.2.2", "10.0.2.15"),
            ("2001:db8::2", "2001:db8::15"),
            ("fe80::2", "fe80::15"),
            ("255.255.255.255", "10.0.2.15"),
            ("224.0.0.251", "10.0.2.15"),
            ("ff02::fb", "fe80::15"),
            ("ff05::2", "2001:db8::15"),
        ] {
            check(&OWN, [false; 2], to, Some(near));
        }
        for (to, far, ways) in [
            ("192.0.2.1", "10.0.2.15", [true, false]),
            ("2001:db8:1::1", "2001:db8::15", [false, true]),
            ("fd01::1", "2001:db8::15", [false, true]),
            // Nobody has said that others of its network are on the wire.
            ("fd00::16", "2001:db8::15", [false, true]),
        ] {
            check(&OWN, ways, to, Some(far));
            check(&OWN, ways.map(|has| !has), to, None);
        }
        // An address that other networks do not know leads no answer back, and one that they do not have is none of theirs.
        check(&OWN[3..], [true; 2], "2001:db8::1", None);
        check(&OWN, [true; 2], "fe81::1", None);
        check(&OWN[1..], [true; 2], "192.0.2.1", None);
        check(&OWN[4..], [true; 2], "192.0.2.1", None);
        check(&OWN[4..], [true; 2], "255.255.255.255", None);
    }
}
