//! Numbers that others must not guess, though they know all that the crate's own generator draws.

use super::pairs::Pair;
use super::{Host, end};
use crate::Kind;
use crate::random::{Random, TICK_US};
use crate::secrets::seed_of;
use core::net::SocketAddr;
use smoltcp::wire::{DhcpPacket, EthernetFrame, IpProtocol, Ipv4Packet, TcpPacket, UdpPacket};
use std::collections::HashSet;
use std::vec::Vec;

/// Numbers that the interface of a host with this number draws first: the generator of `smoltcp` 0.14, whose seed is the first number of all.
pub fn drawn(number: u64) -> impl Iterator<Item = u32> {
    drawn_of(Random::new(super::seed_of(number)).number())
}

/// Numbers that its generator draws of a seed.
fn drawn_of(seed: u64) -> impl Iterator<Item = u32> {
    let mut state = seed;
    core::iter::repeat_with(move || {
        state = state.wrapping_mul(0xbb2e_fcec_3c39_611d).wrapping_add(0x7590_ef39);
        (state >> (29 - (state >> 61))) as u32
    })
}

/// Numbers of a host's interface that are looked at.
const DRAWN: usize = 10_000;

/// Packet of IPv4 in a frame, if it is of this protocol.
fn payload(frame: &[u8], protocol: IpProtocol) -> Option<&[u8]> {
    let packet = Ipv4Packet::new_checked(EthernetFrame::new_checked(frame).ok()?.payload()).ok()?;
    (packet.next_header() == protocol).then(|| packet.payload())
}

/// The number with which a frame begins a direction of a connection, if it does.
fn begun(frame: &[u8]) -> Option<u32> {
    let segment = TcpPacket::new_checked(payload(frame, IpProtocol::Tcp)?).ok()?;
    segment.syn().then(|| segment.seq_number().0 as u32)
}

/// Ends of a connection that a frame belongs to: where it comes from, and where it goes to.
fn ends_of(frame: &[u8]) -> Option<[SocketAddr; 2]> {
    let packet = Ipv4Packet::new_checked(EthernetFrame::new_checked(frame).ok()?.payload()).ok()?;
    let segment = TcpPacket::new_checked(packet.payload()).ok()?;
    let ends = [(packet.src_addr(), segment.src_port()), (packet.dst_addr(), segment.dst_port())];
    Some(ends.map(|(address, port)| SocketAddr::new(address.into(), port)))
}

/// Interfaces of `smoltcp` draw one number when they are made, then that for which their seed was made, and then others.
#[test]
fn a_seed_draws_its_number_for_the_connection() {
    let mut random = Random::new([9; 32]);
    for number in [0, 1, u32::MAX, 1 << 31, 0x1234_5678].into_iter().chain(0..100_000) {
        let seeds = [(); 2].map(|()| seed_of(number, random.number()));
        let [first, second] = seeds.map(|seed| drawn_of(seed).take(3).collect::<Vec<u32>>());
        assert_eq!((first[1], second[1]), (number, number));
        assert_ne!(first[2], second[2]);
        assert!(
            [first[0], second[0]].iter().all(|drawn| drawn & 0xffff != drawn >> 16),
            "another one is drawn"
        );
    }
}

#[test]
fn connections_begin_with_numbers_that_the_interface_does_not_draw() {
    let known: Vec<HashSet<u32>> = [1, 2].map(|number| drawn(number).take(DRAWN).collect()).into();
    // These are the right ones: numbers of questions for an address are the interface's own.
    let mut host = Host::new(1, None);
    host.stack.set_link(Some([2, 0, 0, 0, 1, 1]));
    host.turn(4);
    let frames: Vec<Vec<u8>> = core::iter::from_fn(|| host.stack.pop()).collect();
    let numbers = frames.iter().filter_map(|frame| {
        let datagram = UdpPacket::new_checked(payload(frame, IpProtocol::Udp)?).ok()?;
        Some(DhcpPacket::new_checked(datagram.payload()).ok()?.transaction_id())
    });
    let numbers: Vec<u32> = numbers.collect();
    assert!(!numbers.is_empty() && numbers.iter().all(|number| known[0].contains(number)), "{numbers:?}");

    let mut pair = Pair::new(0);
    let listener = pair.hosts[1].stack.listen(1, end("0.0.0.0:80"), 4).unwrap();
    let mut all = HashSet::new();
    for _ in 0..8 {
        let client = pair.hosts[0].stack.open(1, Kind::Tcp).unwrap();
        pair.hosts[0].stack.connect(client, end("10.1.0.2:80")).unwrap();
        let mut begun_by = [0; 2];
        for _ in 0..20 {
            for from in 0..2 {
                let now_us = pair.hosts[from].now_us;
                pair.hosts[from].now_us += 10_000;
                pair.hosts[from].stack.turn(now_us);
                while let Some(frame) = pair.hosts[from].stack.pop() {
                    if let Some(number) = begun(&frame) {
                        begun_by[from] += 1;
                        assert!(!known[from].contains(&number), "host {from} begins with a known number");
                        // Both sides' numbers are those of their clocks, when they heard of it.
                        let random = &pair.hosts[from].stack.table.random;
                        let zero = random.beginning(ends_of(&frame).unwrap(), 0);
                        let age_us = u64::from(number.wrapping_sub(zero)) * TICK_US;
                        assert!(age_us <= now_us && now_us < age_us + 2_000_000, "{age_us} at {now_us}");
                        all.insert(number);
                    }
                    pair.hosts[1 - from].stack.push(&frame);
                }
            }
        }
        assert_eq!(begun_by, [1, 1]);
        let server = pair.hosts[1].stack.accept(listener).unwrap();
        pair.hosts[0].stack.close(client);
        pair.hosts[1].stack.close(server);
    }
    assert_eq!(all.len(), 16, "a number came twice");
}

/// The number of one socket tells of no other one, and neither does the port of one.
#[test]
fn sockets_have_numbers_and_ports_of_their_own() {
    let mut host = Host::new(3, None);
    let mut ports = Vec::new();
    let mut ids = HashSet::new();
    for _ in 0..200 {
        let id = host.stack.open(1, Kind::Udp).unwrap();
        host.stack.bind(id, end("0.0.0.0:0")).unwrap();
        assert!(ids.insert(id));
        let other = host.stack.open(2, Kind::Udp).unwrap();
        host.stack.send_to(id, end("127.0.0.1:7"), b"x").unwrap();
        host.stack.bind(other, end("127.0.0.1:7")).unwrap();
        host.turn(4);
        let mut bytes = [0; 4];
        // The datagram was sent before there was a socket for it, or after.
        let from = host.stack.receive_from(other, &mut bytes);
        ports.extend(from.map(|(from, _)| from.port()));
        host.stack.close(id);
        host.stack.close(other);
    }
    let neighbours = ports.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 16).count();
    assert!(ports.len() == 200 && neighbours < 10, "{neighbours} of {} are neighbours", ports.len());
    let unique: HashSet<u16> = ports.iter().copied().collect();
    assert_eq!(unique.len(), 200, "a port came again soon");
}
