//! Requests of `ioctl` about interfaces, as C libraries, `ifconfig` and `route` make them, over a network in memory.

use super::*;
use crate::calls::rig::{FIRST, Rig};
use crate::errno::{EFAULT, Errno};
use crate::network::loopback::{HARDWARE, Loopback};
use crate::network::{Below, ITSELF, Presence};
use crate::tests::random::Random;
use linux_raw_sys::general::{self as nr, O_NONBLOCK};
use linux_raw_sys::net::{AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, SOCK_DGRAM, SOCK_RAW};
use std::rc::Rc;
use std::vec;

/// Bytes behind a name, or an error.
type Told = core::result::Result<Vec<u8>, i64>;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

/// A sandbox with a network.
fn rig() -> Rig {
    let mut rig = Rig::begun();
    rig.system.sockets.network = Below(Rc::new(Loopback::default()));
    rig
}

fn socket(rig: &mut Rig, family: u32) -> u64 {
    let kind = if family == AF_NETLINK { SOCK_RAW } else { SOCK_DGRAM };
    let fd = rig.call(nr::__NR_socket, &[family.into(), (kind | O_NONBLOCK).into(), 0]);
    assert!(fd >= 0, "{fd}");
    fd as u64
}

/// Makes a request about a name. What comes back behind the name; or an error.
fn ask_with(rig: &mut Rig, fd: u64, kind: u32, name: &str, value: &[u8]) -> Told {
    let mut request = [0xee; REQUEST_BYTES];
    request[..name.len()].copy_from_slice(name.as_bytes());
    request[name.len()] = 0;
    request[16..16 + value.len()].copy_from_slice(value);
    let at = rig.put(&request);
    match rig.call(nr::__NR_ioctl, &[fd, kind.into(), at]) {
        0 => Ok(rig.get(FIRST, at + 16, 24)),
        refused => Err(refused),
    }
}

fn ask(rig: &mut Rig, fd: u64, kind: u32, name: &str) -> Told {
    ask_with(rig, fd, kind, name, &[])
}

#[test]
fn interfaces_have_numbers_names_and_more() {
    let mut rig = rig();
    // Libraries take any socket that they get.
    for family in [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK] {
        let fd = socket(&mut rig, family);
        for (name, number, flags, mtu) in
            [("lo", 1, 0x49, 65_536), ("eth0", 2, 0x1043, 1500), ("eth0:1", 2, 0x1043, 1500)]
        {
            for (kind, expected) in
                [(SIOCGIFINDEX, number), (SIOCGIFMTU, mtu), (SIOCGIFTXQLEN, 1000), (SIOCGIFMETRIC, 0)]
            {
                let value = ask(&mut rig, fd, kind, name).unwrap();
                assert_eq!(
                    (&value[..4], value[4]),
                    (&u32::to_le_bytes(expected)[..], 0xee),
                    "{name} {kind:x}"
                );
            }
            let value = ask(&mut rig, fd, SIOCGIFFLAGS, name).unwrap();
            assert_eq!((&value[..2], value[2]), (&u16::to_le_bytes(flags)[..], 0xee));
            assert_eq!(ask(&mut rig, fd, SIOCGIFMAP, name), Ok(vec![0; 24]));
        }
        let value = ask(&mut rig, fd, SIOCGIFHWADDR, "eth0").unwrap();
        assert_eq!((&value[..2], &value[2..8], &value[8..16]), (&[1, 0][..], &HARDWARE[..], &[0; 8][..]));
        assert_eq!(ask(&mut rig, fd, SIOCGIFHWADDR, "lo").unwrap()[..8], [4, 3, 0, 0, 0, 0, 0, 0]);
        for (number, expected) in
            [(1u32, Ok(&b"lo"[..])), (2, Ok(&b"eth0"[..])), (0, Err(ENODEV)), (3, Err(ENODEV))]
        {
            let at = rig.put(&[&[0xee; 16][..], &number.to_le_bytes(), &[0; 20]].concat());
            let outcome = rig.call(nr::__NR_ioctl, &[fd, SIOCGIFNAME.into(), at]);
            assert_eq!(outcome, expected.map_or_else(error, |_| 0), "{number}");
            if let Ok(name) = expected {
                let mut bytes = name.to_vec();
                bytes.resize(16, 0);
                assert_eq!(rig.get(FIRST, at, 16), bytes);
            }
        }
        for name in ["", "eth1", "l", "loo", "a name of fifteen"] {
            assert_eq!(ask(&mut rig, fd, SIOCGIFINDEX, name), Err(error(ENODEV)), "{name}");
        }
        rig.call(nr::__NR_close, &[fd]);
    }
}

#[test]
fn interfaces_have_addresses() {
    let mut rig = rig();
    let fd = socket(&mut rig, AF_INET);
    for (name, kind, expected) in [
        ("lo", SIOCGIFADDR, [127, 0, 0, 1]),
        ("lo", SIOCGIFNETMASK, [255, 0, 0, 0]),
        ("lo", SIOCGIFBRDADDR, [0; 4]),
        ("eth0", SIOCGIFADDR, [10, 0, 2, 15]),
        ("eth0", SIOCGIFDSTADDR, [10, 0, 2, 15]),
        ("eth0", SIOCGIFNETMASK, [255, 255, 255, 0]),
        ("eth0", SIOCGIFBRDADDR, [10, 0, 2, 255]),
    ] {
        let address = [&[2, 0, 0, 0][..], &expected, &[0; 8]].concat();
        assert_eq!(ask(&mut rig, fd, kind, name).unwrap()[..16], address, "{name} {kind:x}");
        // One that it does not have is no reason to say nothing.
        let other = [2, 0, 0, 0, 1, 2, 3, 4];
        assert_eq!(ask_with(&mut rig, fd, kind, name, &other).unwrap()[..16], address, "{name} {kind:x}");
        assert_eq!(ask(&mut rig, fd, kind, "eth0:1"), Err(error(EADDRNOTAVAIL)));
        assert_eq!(ask(&mut rig, fd, kind, "eth1"), Err(error(ENODEV)));
        for family in [AF_UNIX, AF_INET6, AF_NETLINK] {
            let fd = socket(&mut rig, family);
            assert_eq!(ask(&mut rig, fd, kind, name), Err(error(ENOTTY)), "{family}");
            rig.call(nr::__NR_close, &[fd]);
        }
    }
    rig.system.sockets.network = Below::default();
    assert_eq!(ask(&mut rig, fd, SIOCGIFADDR, "lo"), Err(error(EADDRNOTAVAIL)));
    assert_eq!(ask(&mut rig, fd, SIOCGIFADDR, "eth0"), Err(error(ENODEV)));
    assert_eq!(ask(&mut rig, fd, SIOCGIFFLAGS, "lo").unwrap()[..2], [8, 0]);
}

#[test]
fn addresses_are_listed() {
    let mut rig = rig();
    let fd = socket(&mut rig, AF_INET);
    let entry = |name: &[u8], address: [u8; 4]| {
        let mut bytes = name.to_vec();
        bytes.resize(16, 0);
        bytes.extend([&[2, 0, 0, 0][..], &address, &[0; 16]].concat());
        bytes
    };
    let all = [entry(b"lo", [127, 0, 0, 1]), entry(b"eth0", [10, 0, 2, 15])].concat();
    for (room, expected) in [(1000, 80), (80, 80), (79, 40), (40, 40), (39, 0), (0, 0), (u32::MAX, 0)] {
        let to = rig.put(&[0xee; 100]);
        let at = rig.put(&[u64::from(room), to].map(u64::to_le_bytes).concat());
        assert_eq!(rig.call(nr::__NR_ioctl, &[fd, SIOCGIFCONF.into(), at]), 0);
        assert_eq!(rig.half(at), expected, "{room}");
        let expected = expected as usize;
        let found = rig.get(FIRST, to, 100);
        assert_eq!((&found[..expected], found[expected]), (&all[..expected], 0xee), "{room}");
    }
    // Without a place it says how much there is.
    let at = rig.put(&[0; 16]);
    assert_eq!((rig.call(nr::__NR_ioctl, &[fd, SIOCGIFCONF.into(), at]), rig.half(at)), (0, 80));
    let at = rig.put(&[1000, u64::MAX - 100].map(u64::to_le_bytes).concat());
    assert_eq!(rig.call(nr::__NR_ioctl, &[fd, SIOCGIFCONF.into(), at]), error(EFAULT));
    assert_eq!(rig.call(nr::__NR_ioctl, &[fd, SIOCGIFCONF.into(), 8]), error(EFAULT));
}

#[test]
fn nothing_is_changed() {
    let mut rig = rig();
    let file = rig.open("/tmp/file") as u64;
    for family in [AF_UNIX, AF_INET, AF_NETLINK] {
        let fd = socket(&mut rig, family);
        for kind in CHANGES {
            assert_eq!(ask(&mut rig, fd, kind, "lo"), Err(error(EPERM)), "{kind:x}");
            assert_eq!(ask(&mut rig, file, kind, "lo"), Err(error(ENOTTY)), "{kind:x}");
        }
        for kind in [0x5401, 0x8938, 0x8946, 0x89f0, 0, u32::MAX] {
            assert_eq!(ask(&mut rig, fd, kind, "lo"), Err(error(ENOTTY)), "{kind:x}");
        }
        assert_eq!(rig.call(nr::__NR_ioctl, &[fd, SIOCGIFINDEX.into(), u64::MAX - 20]), error(EFAULT));
    }
    assert_eq!(ask(&mut rig, file, SIOCGIFINDEX, "lo"), Err(error(ENOTTY)));
}

#[test]
fn a_request_waits_for_the_network() {
    let mut rig = Rig::begun();
    let network = Rc::new(Loopback::default());
    rig.system.sockets.network = Below(network.clone());
    network.presence.set(Presence::Unknown);
    let fd = socket(&mut rig, AF_UNIX);
    let at = rig.put(&[&b"eth0\0"[..], &[0; 35]].concat());
    assert_eq!(rig.try_by(FIRST, nr::__NR_ioctl, &[fd, SIOCGIFINDEX.into(), at]), None);
    network.presence.set(Presence::Known);
    rig.system.network_happened(ITSELF, 0);
    assert_eq!((rig.answer(FIRST), rig.half(at + 16)), (Some(0), 2));
}

/// Bytes that make no sense are an error or another interface, and never the end of it all.
#[test]
fn requests_of_any_bytes() {
    let mut random = Random(29);
    let mut rig = rig();
    let fd = socket(&mut rig, AF_INET);
    for _ in 0..4000 {
        let before = rig.free;
        let mut request = [0; REQUEST_BYTES];
        for byte in &mut request {
            *byte = random.of(&[0, 0, 1, 2, b'e'.into(), b'l'.into(), b'o'.into(), b':'.into(), 255]) as u8;
        }
        let at = rig.put(&request);
        let kind = 0x8910 + random.below(0x70);
        let outcome = rig.call(nr::__NR_ioctl, &[fd, kind, at]);
        let known = [0, error(ENODEV), error(ENOTTY), error(EPERM), error(EADDRNOTAVAIL), error(EFAULT)];
        assert!(known.contains(&outcome), "{kind:x}: {outcome}");
        rig.free = before;
    }
}
