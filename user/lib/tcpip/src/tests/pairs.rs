//! Two stacks over a wire that loses frames; and one with a server that gives addresses.

use super::offload::crate_finds_sound;
use super::{Host, SECOND_US, end};
use crate::{Fallback, Id, Kind, Refusal, State, readiness};
use core::net::{IpAddr, Ipv4Addr};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    DhcpMessageType, DhcpPacket, DhcpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr,
    IpProtocol, Ipv4Packet, Ipv4Repr, UdpPacket, UdpRepr,
};
use std::vec;
use std::vec::Vec;

/// Two hosts, 10.1.0.1 and 10.1.0.2.
pub struct Pair {
    pub hosts: [Host; 2],
    random: u64,
    /// One frame in so many is lost; 0: none.
    pub loss: u64,
    /// One frame in so many has a bit changed above IP; 0: none.
    pub damage: u64,
    /// One frame in so many comes twice; 0: none.
    pub doubles: u64,
    /// One frame in so many comes after those of the next turn; 0: none.
    pub delays: u64,
    /// Frames that are late, for each host.
    late: [Vec<Vec<u8>>; 2],
    /// Frames that were on the wire.
    pub seen: u64,
}

impl Pair {
    pub fn new(loss: u64) -> Pair {
        let host = |number: u8| {
            let fallback = Fallback { address: (Ipv4Addr::new(10, 1, 0, number), 24), router: None };
            let mut host = Host::new(number.into(), Some(fallback));
            host.stack.set_link(Some([2, 0, 0, 0, 1, number]));
            host
        };
        let mut pair = Pair {
            hosts: [host(1), host(2)],
            random: 1,
            loss,
            damage: 0,
            doubles: 0,
            delays: 0,
            late: Default::default(),
            seen: 0,
        };
        // Nobody gives addresses.
        pair.run(600);
        assert_eq!(pair.hosts[0].stack.address_at(0), Some((IpAddr::from([10, 1, 0, 1]), 24)));
        pair
    }

    fn is_chosen(&mut self, one_in: u64) -> bool {
        self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        one_in > 0 && (self.random >> 33).is_multiple_of(one_in)
    }

    /// Time goes on, ten milliseconds a turn.
    pub fn run(&mut self, turns: usize) {
        for _ in 0..turns {
            for from in 0..2 {
                let now_us = self.hosts[from].now_us;
                self.hosts[from].now_us += SECOND_US / 100;
                self.hosts[from].stack.turn(now_us);
                let mut late = Vec::new();
                while let Some(mut frame) = self.hosts[from].stack.pop() {
                    assert!(!crate::wire::is_martian(&frame) && crate_finds_sound(&frame));
                    self.seen += 1;
                    if self.is_chosen(self.damage) && frame.len() > 54 {
                        let at = 34 + (self.random >> 40) as usize % (frame.len() - 34);
                        frame[at] ^= 1 << (self.random >> 37 & 7);
                    }
                    if self.is_chosen(self.loss) {
                        continue;
                    }
                    if self.is_chosen(self.delays) {
                        late.push(frame);
                        continue;
                    }
                    for _ in 0..1 + usize::from(self.is_chosen(self.doubles)) {
                        self.hosts[1 - from].stack.push(&frame);
                    }
                }
                for frame in core::mem::replace(&mut self.late[1 - from], late) {
                    self.hosts[1 - from].stack.push(&frame);
                }
            }
        }
    }

    /// A connection from the first to the second.
    pub fn connect(&mut self, port: u16) -> (Id, Id, Id) {
        let listener = self.hosts[1].stack.listen(1, end(&std::format!("0.0.0.0:{port}")), 2).unwrap();
        let client = self.hosts[0].stack.open(1, Kind::Tcp).unwrap();
        self.hosts[0].stack.connect(client, end(&std::format!("10.1.0.2:{port}"))).unwrap();
        for _ in 0..5000 {
            self.run(1);
            if let Ok(server) = self.hosts[1].stack.accept(listener) {
                return (listener, client, server);
            }
        }
        panic!("nobody has connected");
    }
}

/// Everything arrives, in order, whatever the wire loses.
#[test]
fn a_wire_that_loses_frames_loses_no_bytes() {
    for loss in [0, 20, 8] {
        let mut pair = Pair::new(loss);
        let (_, client, server) = pair.connect(80);
        let all: Vec<u8> = (0..100_000u32).map(|at| ((at * 7) >> 3) as u8).collect();
        let (mut written, mut read, mut bytes) = (0, Vec::new(), [0; 4096]);
        for _ in 0..100_000 {
            if written < all.len() {
                match pair.hosts[0].stack.write(client, &all[written..]) {
                    Ok(len) => written += len,
                    Err(error) => assert_eq!(error, Refusal::Again),
                }
            } else {
                pair.hosts[0].stack.shutdown(client).unwrap();
            }
            pair.run(1);
            match pair.hosts[1].stack.read(server, &mut bytes) {
                Ok(0) => break,
                Ok(len) => read.extend_from_slice(&bytes[..len]),
                Err(error) => assert_eq!(error, Refusal::Again),
            }
        }
        assert!(read == all, "loss 1/{loss}: {} of {} bytes", read.len(), all.len());
    }
}

/// A connection stays while nobody needs it, however long that is; and it ends when the other machine is not there any more.
#[test]
fn an_idle_connection_stays() {
    let mut pair = Pair::new(0);
    let (_, client, server) = pair.connect(80);
    let (_, near, far) = super::connection(&mut pair.hosts[0], "127.0.0.1:81");
    for seconds in [10, 59, 61, 600] {
        pair.run(100 * seconds);
        for ((from, id), (to, other)) in
            [((0, client), (1, server)), ((1, server), (0, client)), ((0, near), (0, far))]
        {
            assert_eq!(pair.hosts[from].stack.write(id, b"still there"), Ok(11), "{seconds} s");
            pair.run(100);
            let mut bytes = [0; 20];
            assert_eq!(pair.hosts[to].stack.read(other, &mut bytes), Ok(11), "{seconds} s");
        }
    }
    let seen = pair.seen;
    pair.run(100 * 600);
    // A question and its answer, from each side, and as much to find the neighbour again.
    assert!(pair.seen - seen < 300, "{} frames in ten minutes", pair.seen - seen);
    pair.loss = 1;
    pair.run(100 * 70);
    let [near, far] = &mut pair.hosts;
    for (host, id) in [(near, client), (far, server)] {
        assert_eq!(host.stack.state(id).unwrap().0, State::Closed);
        assert_eq!(host.stack.write(id, b"x"), Err(Refusal::Closed));
    }
}

/// `smoltcp` gives up the timer of an end (FIN) that is lost when three acknowledgements come of what was before it.
#[test]
fn an_end_that_is_lost_is_sent_again() {
    let mut pair = Pair::new(0);
    let (_, client, server) = pair.connect(80);
    pair.run(100);
    let [near, far] = &mut pair.hosts;
    near.stack.write(client, b"all").unwrap();
    near.stack.turn(near.now_us);
    while let Some(frame) = near.stack.pop() {
        far.stack.push(&frame);
    }
    // It waits a little for bytes of its own to send with that.
    for _ in 0..2 {
        far.now_us += SECOND_US / 10;
        far.stack.turn(far.now_us);
    }
    let told = far.stack.pop().expect("it acknowledges the bytes");
    assert_eq!(far.stack.pop(), None);
    near.stack.push(&told);
    near.stack.turn(near.now_us);
    near.stack.shutdown(client).unwrap();
    near.stack.turn(near.now_us);
    assert!(near.stack.pop().is_some() && near.stack.pop().is_none(), "the end, which is lost");
    for _ in 0..5 {
        near.stack.push(&told);
        near.stack.turn(near.now_us);
    }
    assert_eq!(far.stack.read(server, &mut [0; 9]), Ok(3));
    pair.run(500);
    assert_eq!(pair.hosts[1].stack.read(server, &mut [0; 9]), Ok(0), "the end has come");
    pair.hosts[1].stack.write(server, b"answer").unwrap();
    pair.hosts[1].stack.shutdown(server).unwrap();
    pair.run(100);
    assert_eq!(pair.hosts[0].stack.read(client, &mut [0; 9]), Ok(6));
}

/// Minutes of the bad wire, plain and full.
const MINUTES: [u64; 2] = [1, 60];

/// A client's question that is longer than all buffers and its answer, whatever the wire does to the frames. False if the answer did not come.
fn talk(pair: &mut Pair, listener: Id, len: usize) -> bool {
    let client = pair.hosts[0].stack.open(1, Kind::Tcp).unwrap();
    pair.hosts[0].stack.connect(client, end("10.1.0.2:80")).unwrap();
    let all: Vec<u8> = (0..len).map(|at| ((at * 7) >> 3) as u8).collect();
    let (mut server, mut bytes) = (None, [0; 4096]);
    let (mut asked, mut heard, mut answered, mut is_told) = (0, Vec::new(), Vec::new(), false);
    for _ in 0..20_000 {
        pair.run(1);
        let [near, far] = &mut pair.hosts;
        match near.stack.write(client, &all[asked..]) {
            Ok(0) => near.stack.shutdown(client).unwrap(),
            Ok(len) => asked += len,
            Err(_) => {}
        }
        server = server.or_else(|| far.stack.accept(listener).ok());
        let Some(server) = server else { continue };
        match far.stack.read(server, &mut bytes) {
            Ok(0) if !is_told => {
                is_told = far.stack.write(server, &heard.len().to_le_bytes()) == Ok(8);
                far.stack.shutdown(server).unwrap();
            }
            Ok(len) => heard.extend_from_slice(&bytes[..len]),
            Err(_) => {}
        }
        match near.stack.read(client, &mut bytes) {
            Ok(0) => break,
            Ok(len) => answered.extend_from_slice(&bytes[..len]),
            Err(_) => {}
        }
    }
    pair.hosts[0].stack.close(client);
    server.into_iter().for_each(|server| pair.hosts[1].stack.close(server));
    assert!(heard == all, "{} of {len} bytes", heard.len());
    assert!(answered.is_empty() || answered == len.to_le_bytes());
    !answered.is_empty()
}

/// A wire that loses frames, changes them, brings them twice and in another order: all bytes arrive, and when the connections are over nothing is kept.
#[test]
fn a_bad_wire_leaves_nothing() {
    let full = std::env::var_os("TERN_FULL").is_some_and(|value| value == "1");
    let mut pair = Pair::new(30);
    (pair.damage, pair.doubles, pair.delays) = (50, 10, 10);
    let listener = pair.hosts[1].stack.listen(1, end("0.0.0.0:80"), 4).unwrap();
    let until_us = pair.hosts[0].now_us + MINUTES[usize::from(full)] * 60 * SECOND_US;
    let (mut talks, mut broken) = (0, 0);
    while pair.hosts[0].now_us < until_us {
        let len = 1 + (pair.random >> 30) as usize % 60_000;
        broken += usize::from(!talk(&mut pair, listener, len));
        talks += 1;
    }
    assert!(talks > 3 && broken == 0, "{broken} of {talks} ended by silence");
    pair.hosts[1].stack.close(listener);
    pair.run(20_000);
    assert_eq!((pair.hosts[0].stack.kept(), pair.hosts[1].stack.kept()), (0, 0));
}

#[test]
fn a_card_that_goes_and_comes_back_keeps_connections() {
    let mut pair = Pair::new(0);
    let (_, client, server) = pair.connect(80);
    pair.hosts[0].stack.set_link(None);
    assert_eq!(pair.hosts[0].stack.write(client, b"later"), Ok(5));
    pair.run(200);
    pair.hosts[0].stack.set_link(Some([2, 0, 0, 0, 1, 1]));
    pair.run(2000);
    assert_eq!(pair.hosts[1].stack.read(server, &mut [0; 9]), Ok(5));
    assert_eq!(pair.hosts[0].stack.state(client).unwrap().0, State::Open);
}

#[test]
fn echoes_and_datagrams_cross_the_wire() {
    let mut pair = Pair::new(0);
    let (echo, udp) =
        (pair.hosts[0].stack.open(1, Kind::Echo).unwrap(), pair.hosts[0].stack.open(1, Kind::Udp).unwrap());
    let other = pair.hosts[1].stack.open(1, Kind::Udp).unwrap();
    pair.hosts[1].stack.bind(other, end("0.0.0.0:9")).unwrap();
    for address in ["10.1.0.2", "fe80::ff:fe00:102"] {
        pair.hosts[0].stack.ask_echo(echo, address.parse().unwrap(), 1, b"12345").unwrap();
        pair.run(4);
        assert_eq!(pair.hosts[0].stack.echoed(echo, &mut [0; 9]), Ok((address.parse().unwrap(), 1, 5)));
    }
    assert_eq!(pair.hosts[0].stack.ask_echo(echo, [10, 2, 0, 1].into(), 1, b""), Err(Refusal::Unreachable));
    pair.hosts[0].stack.send_to(udp, end("10.1.0.2:9"), &[7; 1472]).unwrap();
    pair.run(10);
    assert_eq!(pair.hosts[1].stack.ready(other).unwrap() & readiness::READABLE, readiness::READABLE);
    assert_eq!(pair.hosts[1].stack.receive_from(other, &mut [0; 2000]).unwrap().1, 1472);
}

/// Frames to oneself keep nobody from asking for another neighbour.
#[test]
fn own_addresses_need_no_asking() {
    let mut pair = Pair::new(0);
    let echo = pair.hosts[0].stack.open(1, Kind::Echo).unwrap();
    // The second time is long after all neighbours are forgotten.
    for round in 0..2 {
        for address in ["127.0.0.1", "::1", "10.1.0.1", "fe80::ff:fe00:101", "10.1.0.2"] {
            pair.hosts[0].stack.ask_echo(echo, address.parse().unwrap(), round, b"").unwrap();
            pair.run(4);
            let answer = pair.hosts[0].stack.echoed(echo, &mut []);
            assert_eq!(answer, Ok((address.parse().unwrap(), round, 0)), "{address}, round {round}");
        }
        pair.run(10_000);
    }
}

/// A server's answer to a frame with a message of DHCP, if it is one.
pub fn leased(frame: &[u8], address: Ipv4Addr) -> Option<Vec<u8>> {
    let server = Ipv4Addr::new(10, 0, 2, 2);
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    let ip = Ipv4Packet::new_checked(ethernet.payload()).ok()?;
    let udp = UdpPacket::new_checked(ip.payload()).ok()?;
    let packet = DhcpPacket::new_checked(udp.payload()).ok().filter(|_| udp.dst_port() == 67)?;
    let asked = DhcpRepr::parse(&packet).ok()?;
    let message_type = match asked.message_type {
        DhcpMessageType::Discover => DhcpMessageType::Offer,
        _ => DhcpMessageType::Ack,
    };
    let answer = DhcpRepr {
        message_type,
        your_ip: address,
        server_ip: server,
        router: Some(server),
        subnet_mask: Some(Ipv4Addr::new(255, 255, 255, 0)),
        server_identifier: Some(server),
        lease_duration: Some(3600),
        dns_servers: Some([Ipv4Addr::new(10, 0, 2, 3)].into_iter().collect()),
        requested_ip: None,
        client_identifier: None,
        parameter_request_list: None,
        max_size: None,
        ..asked
    };
    let mut bytes = vec![0; answer.buffer_len()];
    answer.emit(&mut DhcpPacket::new_unchecked(&mut bytes)).unwrap();
    Some(datagram(ethernet.src_addr(), (server, 67), (address, 68), &bytes))
}

/// Hardware address of all servers.
pub const SERVER: EthernetAddress = EthernetAddress([2, 0, 0, 0, 9, 9]);

/// A frame with a datagram from a server.
pub fn datagram(
    to: EthernetAddress,
    (server, src_port): (Ipv4Addr, u16),
    (client, dst_port): (Ipv4Addr, u16),
    payload: &[u8],
) -> Vec<u8> {
    let udp = UdpRepr { src_port, dst_port };
    let payload_len = udp.header_len() + payload.len();
    let ip = Ipv4Repr {
        src_addr: server,
        dst_addr: client,
        next_header: IpProtocol::Udp,
        payload_len,
        hop_limit: 64,
    };
    let ethernet = EthernetRepr { src_addr: SERVER, dst_addr: to, ethertype: EthernetProtocol::Ipv4 };
    let sums = ChecksumCapabilities::default();
    let mut bytes = vec![0; ethernet.buffer_len() + ip.buffer_len() + payload_len];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    ethernet.emit(&mut frame);
    let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
    ip.emit(&mut packet, &sums);
    let mut datagram = UdpPacket::new_unchecked(packet.payload_mut());
    let (from, to) = (server.into(), client.into());
    udp.emit(&mut datagram, &from, &to, payload.len(), |bytes| bytes.copy_from_slice(payload), &sums);
    bytes
}

/// Lets a server answer for some seconds.
fn serve(host: &mut Host, address: Ipv4Addr, seconds: u64) {
    for _ in 0..seconds * 20 {
        host.stack.turn(host.now_us);
        host.now_us += SECOND_US / 20;
        while let Some(frame) = host.stack.pop() {
            if let Some(answer) = leased(&frame, address) {
                host.stack.push(&answer);
            }
        }
    }
}

#[test]
fn an_address_comes_from_a_server() {
    let mut host = Host::new(9, None);
    host.stack.set_link(Some([0x52, 0x54, 0, 0x12, 0x34, 0x56]));
    serve(&mut host, Ipv4Addr::new(10, 0, 2, 15), 20);
    assert_eq!(host.stack.address_at(0), Some((IpAddr::from([10, 0, 2, 15]), 24)));
    let status = host.stack.status();
    assert_eq!((status.is_leased, status.router), (true, Some(Ipv4Addr::new(10, 0, 2, 2))));
    assert_eq!(status.servers, [Ipv4Addr::new(10, 0, 2, 3)]);
    host.stack.set_link(None);
    host.stack.turn(host.now_us);
    assert_eq!(host.stack.address_at(0), Some((IpAddr::from([10, 0, 2, 15]), 24)), "the card may come back");
    host.stack.set_link(Some([0x52, 0x54, 0, 0x12, 0x34, 0x57]));
    assert_ne!(host.stack.address_at(0), Some((IpAddr::from([10, 0, 2, 15]), 24)), "it is another card");
}

/// A server that is late has the last word; and nobody can give an address that none can have.
#[test]
fn a_lease_comes_after_the_fallback() {
    let mut host = Host::new(10, None);
    host.stack.set_link(Some([0x52, 0x54, 0, 0x12, 0x34, 0x56]));
    host.turn(20);
    while host.stack.pop().is_some() {}
    assert_eq!(host.stack.address_at(0), Some((IpAddr::from([169, 254, 0x34, 0x56]), 16)));
    serve(&mut host, Ipv4Addr::new(10, 0, 2, 15), 200);
    assert_eq!(host.stack.address_at(0), Some((IpAddr::from([10, 0, 2, 15]), 24)));
    for bad in [[127, 0, 0, 1], [224, 0, 0, 1], [255, 255, 255, 255], [0, 0, 0, 0]] {
        let mut host = Host::new(11, None);
        host.stack.set_link(Some([0x52, 0x54, 0, 0x12, 0x34, 0x56]));
        serve(&mut host, bad.into(), 30);
        let addresses: Vec<_> = (0..8).map_while(|place| host.stack.address_at(place)).collect();
        assert!(
            addresses.iter().all(|(address, len)| *address != IpAddr::from(bad) || *len == 8),
            "{addresses:?}"
        );
    }
}
