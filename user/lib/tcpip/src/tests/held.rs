//! Datagrams that are held back, since they may be for several sockets: they pass the checks of all others.

use super::groups::{received, shared};
use super::pairs::Pair;
use super::{Host, end};
use core::net::IpAddr;
use smoltcp::wire::EthernetAddress;
use std::vec::Vec;

/// Hardware addresses: of the machine, of another one, and those of two groups.
const OWN: [u8; 6] = [2, 0, 0, 0, 1, 2];
/// See [`OWN`].
const OTHER: [u8; 6] = [2, 0, 0, 0, 6, 6];
/// See [`OWN`].
const FOUR: [u8; 6] = [1, 0, 0x5e, 0, 0, 251];
/// See [`OWN`].
const SIX: [u8; 6] = [0x33, 0x33, 0, 0, 0, 0xfb];

/// A frame from another machine.
fn frame(to_hardware: [u8; 6], from: &str, to: &str) -> Vec<u8> {
    let hardware = [OTHER, to_hardware].map(EthernetAddress);
    crate::frames::datagram(hardware, end(from), end(to), b"who is there?").unwrap()
}

/// Puts options before a datagram of IPv6.
fn with_options(frame: &[u8], options: [u8; 6]) -> Vec<u8> {
    let (head, datagram) = frame.split_at(54);
    let mut all = [head, &[17, 0], &options, datagram].concat();
    let len = u16::from_be_bytes([head[18], head[19]]) + 8;
    all[18..20].copy_from_slice(&len.to_be_bytes());
    all[20] = 0;
    all
}

/// How many sockets have a frame, of two that share a port and have joined the groups.
fn heirs(host: &mut Host, all: [u64; 2], frame: &[u8]) -> usize {
    host.stack.push(frame);
    host.turn(2);
    all.iter().map(|id| received(host, *id).len()).sum()
}

#[test]
fn what_is_held_back_is_checked() {
    let mut pair = Pair::new(0);
    let host = &mut pair.hosts[1];
    let all = [1, 2].map(|owner| shared(host, owner, "0.0.0.0:5353"));
    for id in all {
        for group in ["224.0.0.251", "ff02::fb"] {
            host.stack.join(id, group.parse::<IpAddr>().unwrap()).unwrap();
        }
    }
    for (to_hardware, from, to, expected) in [
        (OWN, "10.1.0.9:1", "10.1.0.2:5353", 1),
        (OWN, "[fe80::9]:1", "[fe80::ff:fe00:102]:5353", 1),
        (FOUR, "10.1.0.9:1", "224.0.0.251:5353", 2),
        (SIX, "[fe80::9]:1", "[ff02::fb]:5353", 2),
        ([0xff; 6], "10.1.0.9:1", "10.1.0.255:5353", 2),
        // It is for another machine, by one of its addresses.
        (OTHER, "10.1.0.9:1", "10.1.0.2:5353", 0),
        (OTHER, "10.1.0.9:1", "224.0.0.251:5353", 0),
        (OTHER, "[fe80::9]:1", "[ff02::fb]:5353", 0),
        (OWN, "10.1.0.9:1", "10.1.0.3:5353", 0),
        (OWN, "[fe80::9]:1", "[fe80::3]:5353", 0),
        // Nobody has joined the group.
        (FOUR, "10.1.0.9:1", "224.0.0.252:5353", 0),
        // Nobody sends from an address that is for many.
        (OWN, "10.1.0.255:1", "10.1.0.2:5353", 0),
        (FOUR, "10.1.0.255:1", "224.0.0.251:5353", 0),
        (FOUR, "255.255.255.255:1", "224.0.0.251:5353", 0),
        (FOUR, "224.0.0.1:1", "224.0.0.251:5353", 0),
        (SIX, "[ff02::1]:1", "[ff02::fb]:5353", 0),
        (SIX, "[::]:1", "[ff02::fb]:5353", 0),
    ] {
        assert_eq!(heirs(host, all, &frame(to_hardware, from, to)), expected, "{to_hardware:?} {from} {to}");
    }
    let six = frame(SIX, "[fe80::9]:1", "[ff02::fb]:5353");
    // Padding, and an option that whoever does not know it is to drop the packet for.
    for (options, expected) in [([1, 4, 0, 0, 0, 0], 2), ([0x41, 4, 0, 0, 0, 0], 0)] {
        assert_eq!(heirs(host, all, &with_options(&six, options)), expected, "{options:?}");
    }
    // Sums of the header, of the datagram.
    let four = frame(FOUR, "10.1.0.9:1", "224.0.0.251:5353");
    for at in [24, 22, 40, 50] {
        let mut damaged = four.clone();
        damaged[at] ^= 1;
        assert_eq!(heirs(host, all, &damaged), 0, "{at}");
    }
    assert_eq!(heirs(host, all, &four), 2);
}
