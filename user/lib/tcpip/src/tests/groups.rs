//! Groups of receivers, and ports that sockets share.

use super::pairs::Pair;
use super::{Host, end};
use crate::sockets::{FEW_MAX, GROUPS_MAX, OWN_GROUPS_MAX};
use crate::{Id, Kind, Passage, Refusal, Sending, readiness};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::format;
use std::vec::Vec;

/// Groups of each kind, as names are asked for in a network without a server.
const GROUPS: [&str; 2] = ["224.0.0.251", "ff02::fb"];

fn group(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Sends from this address, so far, and to this machine, too, or not.
fn sending(from: &str, hops: u8, loops: bool) -> Sending {
    Sending { from: from.parse().unwrap(), passage: Passage { hops, loops } }
}

/// A socket of an owner's that shares a port.
pub fn shared(host: &mut Host, owner: u64, at: &str) -> Id {
    let id = host.stack.open(owner, Kind::Udp).unwrap();
    host.stack.share(id, end(at)).unwrap();
    id
}

/// All datagrams that have come.
pub fn received(host: &mut Host, id: Id) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut bytes = [0; 100];
    let mut all = Vec::new();
    while let Ok((from, len)) = host.stack.receive_from(id, &mut bytes) {
        all.push((from, bytes[..len].to_vec()));
    }
    all
}

fn texts(host: &mut Host, id: Id) -> Vec<Vec<u8>> {
    received(host, id).into_iter().map(|(_, bytes)| bytes).collect()
}

#[test]
fn all_members_of_a_group_have_what_is_sent_there() {
    for text in GROUPS {
        let mut pair = Pair::new(0);
        let to = SocketAddr::new(group(text), 5353);
        let second = &mut pair.hosts[1];
        let members = [1, 1, 2].map(|owner| shared(second, owner, "0.0.0.0:5353"));
        let (stranger, elsewhere) = (shared(second, 3, "0.0.0.0:5353"), shared(second, 1, "0.0.0.0:5354"));
        for id in members.into_iter().chain([elsewhere]) {
            second.stack.join(id, to.ip()).unwrap();
        }
        let own = shared(second, 2, &format!("{}", to));
        second.stack.join(own, to.ip()).unwrap();
        let sender = pair.hosts[0].stack.open(1, Kind::Udp).unwrap();
        pair.hosts[0].stack.send_to(sender, to, b"who is there?").unwrap();
        pair.run(5);
        for id in members.into_iter().chain([own]) {
            assert_eq!(texts(&mut pair.hosts[1], id), [b"who is there?"], "{text}");
        }
        for id in [stranger, elsewhere] {
            assert_eq!(texts(&mut pair.hosts[1], id).len(), 0, "{text}");
        }
        // Those of this machine have it, too.
        pair.hosts[1].stack.send_to(stranger, to, b"me").unwrap();
        pair.run(5);
        assert_eq!(texts(&mut pair.hosts[1], members[0]), [b"me"]);
        assert_eq!(texts(&mut pair.hosts[0], sender).len(), 0);
        // A socket that has left has nothing more of it.
        pair.hosts[1].stack.leave(members[0], to.ip()).unwrap();
        pair.hosts[0].stack.send_to(sender, to, b"again").unwrap();
        pair.run(5);
        assert_eq!(texts(&mut pair.hosts[1], members[0]).len(), 0);
        assert_eq!(texts(&mut pair.hosts[1], members[1]), [&b"me"[..], b"again"]);
    }
}

/// Without a card, what is sent from the address of loopback goes to members in this machine.
#[test]
fn groups_are_of_use_without_a_card() {
    let mut host = Host::new(1, None);
    let to = end("239.1.2.3:700");
    let (member, sender) = (shared(&mut host, 1, "0.0.0.0:700"), host.stack.open(2, Kind::Udp).unwrap());
    host.stack.join(member, to.ip()).unwrap();
    assert_eq!(host.stack.send_to(sender, to, b"x"), Err(Refusal::Unreachable));
    assert_eq!(host.stack.set_sending(sender, sending("10.9.9.9", 1, true)), Err(Refusal::Bad));
    host.stack.set_sending(sender, sending("127.0.0.1", 1, true)).unwrap();
    host.stack.send_to(sender, to, b"x").unwrap();
    host.turn(4);
    assert_eq!(host.stack.ready(member), Ok(readiness::READABLE | readiness::WRITABLE));
    let all = received(&mut host, member);
    assert_eq!(all.iter().map(|(from, _)| from.ip()).collect::<Vec<_>>(), [IpAddr::from([127, 0, 0, 1])]);
    assert_eq!(host.stack.pop(), None, "nothing leaves");
}

/// Frames that one datagram to a group leaves as: how many, and their hops.
fn hops(text: &str, sending: Sending) -> (Vec<u8>, usize) {
    let mut pair = Pair::new(0);
    let to = SocketAddr::new(group(text), 700);
    let first = &mut pair.hosts[0];
    let (member, sender) = (shared(first, 1, "0.0.0.0:700"), first.stack.open(2, Kind::Udp).unwrap());
    first.stack.join(member, to.ip()).unwrap();
    first.turn(4);
    while first.stack.pop().is_some() {}
    first.stack.set_sending(sender, sending).unwrap();
    first.stack.send_to(sender, to, b"x").unwrap();
    first.turn(4);
    let own = (0..8).filter_map(|place| first.stack.address_at(place)).map(|(address, _)| address);
    let own: Vec<IpAddr> = own.collect();
    let mut hops = Vec::new();
    while let Some(frame) = first.stack.pop() {
        assert!(super::offload::crate_finds_sound(&frame));
        let (protocol, left, port_at) =
            if to.is_ipv4() { (frame[23], frame[22], 36) } else { (frame[20], frame[21], 56) };
        // The host also asks for an address, by datagrams to another port.
        if protocol == 17 && frame[port_at..port_at + 2] == to.port().to_be_bytes() {
            let from = crate::held::Datagram::of(&frame).unwrap().from;
            assert!(own.contains(&from.ip()), "{from}");
            hops.push(left);
        }
    }
    let all = received(first, member);
    assert!(all.iter().all(|(from, _)| own.contains(&from.ip())), "{all:?}");
    (hops, all.len())
}

#[test]
fn a_sender_says_how_far_datagrams_go() {
    let [four, six] = GROUPS;
    assert_eq!(hops(four, Sending::default()), (std::vec![1], 1));
    assert_eq!(hops(four, sending("::", 255, false)), (std::vec![255], 0));
    assert_eq!(hops(four, sending("::", 0, true)), (std::vec![], 1));
    assert_eq!(hops(four, sending("10.1.0.1", 7, true)), (std::vec![7], 1));
    assert_eq!(hops(six, Sending::default()), (std::vec![1], 1));
    assert_eq!(hops(six, sending("::", 255, false)), (std::vec![255], 0));
    assert_eq!(hops(six, sending("::", 0, true)), (std::vec![], 1));
    assert_eq!(hops(six, sending("fe80::ff:fe00:101", 7, true)), (std::vec![7], 1));
    // From the address of loopback it stays in the machine, and those of the other kind mean any.
    assert_eq!(hops(six, sending("::1", 7, true)), (std::vec![], 1));
    assert_eq!(hops(six, sending("10.1.0.1", 7, true)), (std::vec![7], 1));
}

/// A note is taken out of frames that have one, and of no others; one with an address that the machine has lost goes nowhere.
#[test]
fn notes_stay_in_the_machine() {
    let hardware = [[2; 6], [0x33, 0x33, 0, 0, 0, 0xfb]].map(smoltcp::wire::EthernetAddress);
    let frame = |from: Ipv6Addr| {
        let from = SocketAddr::new(from.into(), 9);
        crate::frames::datagram(hardware, from, end("[ff02::fb]:9"), b"x").unwrap()
    };
    let own: Ipv6Addr = "fe80::ff:fe00:101".parse().unwrap();
    for (hops, loops) in [(0, false), (1, true), (255, false)] {
        let passage = Passage { hops, loops };
        let (plain, mut noted) = (frame(own), frame(passage.noted(own)));
        let all = [IpAddr::from([10, 1, 0, 1]), Ipv6Addr::LOCALHOST.into(), own.into()];
        assert_eq!(Passage::take_note(&mut noted, &all), Some(passage));
        // The sum is made when the frame leaves.
        assert_eq!((&noted[..60], &noted[62..]), (&plain[..60], &plain[62..]));
        for frame in [&mut noted, &mut frame("2001:db8::1".parse().unwrap())] {
            let before = frame.clone();
            assert_eq!(Passage::take_note(frame, &all), None);
            assert_eq!(*frame, before);
        }
        let lost = Passage::take_note(&mut frame(passage.noted(own)), &all[..2]);
        assert_eq!(lost, Some(Passage { hops: 0, loops: false }));
    }
    for len in 0..54 {
        assert_eq!(Passage::take_note(&mut frame(own)[..len], &[own.into()]), None);
    }
}

/// A socket that shares a port with others takes nothing of theirs.
#[test]
fn what_is_for_one_is_for_the_owner_who_was_first() {
    let mut host = Host::new(2, None);
    let (first, other) = (shared(&mut host, 1, "127.0.0.1:9"), shared(&mut host, 2, "127.0.0.1:9"));
    let sender = host.stack.open(3, Kind::Udp).unwrap();
    host.stack.bind(sender, end("127.0.0.1:8")).unwrap();
    host.stack.connect_datagrams(other, Some(end("127.0.0.1:8"))).unwrap();
    let send = |host: &mut Host| {
        host.stack.send_to(sender, end("127.0.0.1:9"), b"x").unwrap();
        host.turn(4);
    };
    send(&mut host);
    assert_eq!((received(&mut host, first).len(), received(&mut host, other).len()), (1, 0));
    // Of one owner's, the one that is connected to the sender has it.
    let connected = shared(&mut host, 1, "0.0.0.0:9");
    host.stack.connect_datagrams(connected, Some(end("127.0.0.1:8"))).unwrap();
    send(&mut host);
    assert_eq!((received(&mut host, first).len(), received(&mut host, connected).len()), (0, 1));
    for id in [first, connected] {
        host.stack.close(id);
    }
    send(&mut host);
    assert_eq!(received(&mut host, other).len(), 1);
    // A port that somebody has alone is shared by nobody, and one that is shared is had by nobody alone.
    let more = host.stack.open(1, Kind::Udp).unwrap();
    assert_eq!(host.stack.share(more, end("127.0.0.1:8")), Err(Refusal::InUse));
    assert_eq!(host.stack.bind(more, end("0.0.0.0:9")), Err(Refusal::InUse));
}

/// An owner has a port as long as any of his sockets has it, whichever he has closed.
#[test]
fn a_port_stays_whose_it_is() {
    let mut host = Host::new(2, None);
    let (first, other) = (shared(&mut host, 1, "0.0.0.0:9"), shared(&mut host, 2, "127.0.0.1:9"));
    let sender = host.stack.open(3, Kind::Udp).unwrap();
    let heirs = |host: &mut Host, all: &[Id]| {
        host.stack.send_to(sender, end("127.0.0.1:9"), b"x").unwrap();
        host.turn(4);
        all.iter().map(|id| received(host, *id).len()).collect::<Vec<_>>()
    };
    let mut own = first;
    for at in ["127.0.0.1:9", "127.0.0.1:9", "0.0.0.0:9"] {
        // One that has more addresses than those before has had the port since now.
        let is_later = at == "0.0.0.0:9";
        let next = shared(&mut host, 1, at);
        assert_eq!(heirs(&mut host, &[own, next, other]), [1, 0, 0], "{at}");
        host.stack.close(own);
        own = next;
        let expected = if is_later { [0, 1] } else { [1, 0] };
        assert_eq!(heirs(&mut host, &[own, other]), expected, "{at}");
    }
    host.stack.close(other);
    assert_eq!(heirs(&mut host, &[own]), [1]);
}

/// A datagram for an address that none of those who share the port has is refused.
#[test]
fn what_is_for_nobody_is_refused() {
    let mut pair = Pair::new(0);
    shared(&mut pair.hosts[1], 1, "127.0.0.1:9");
    let sender = pair.hosts[0].stack.open(1, Kind::Udp).unwrap();
    pair.hosts[0].stack.connect_datagrams(sender, Some(end("10.1.0.2:9"))).unwrap();
    pair.hosts[0].stack.send_to(sender, end("10.1.0.2:9"), b"x").unwrap();
    pair.run(300);
    assert_eq!(pair.hosts[0].stack.receive_from(sender, &mut []), Err(Refusal::Refused));
}

#[test]
fn groups_have_limits_and_end_with_their_sockets() {
    let mut host = Host::new(3, None);
    let id = shared(&mut host, 1, "0.0.0.0:9");
    for (text, expected) in [
        ("127.0.0.1", Refusal::Bad),
        ("255.255.255.255", Refusal::Bad),
        ("::", Refusal::Bad),
        ("ff02::1:ff00:1", Refusal::Bad),
    ] {
        assert_eq!(host.stack.join(id, group(text)), Err(expected), "{text}");
    }
    assert_eq!(host.stack.leave(id, group("224.0.0.251")), Err(Refusal::NotFound));
    let mut joined = 0;
    for owner in 2..20u8 {
        let own = host.stack.open(owner.into(), Kind::Udp).unwrap();
        for number in 0..=OWN_GROUPS_MAX as u8 {
            joined += usize::from(host.stack.join(own, [239, 0, owner, number].into()).is_ok());
        }
        host.turn(2);
    }
    assert_eq!(joined, GROUPS_MAX);
    assert_eq!(host.stack.join(id, group("239.0.99.1")), Err(Refusal::Limit));
    // A group that is joined already takes no more room, and addresses of the stack's own have theirs.
    assert_eq!(host.stack.join(id, group("239.0.2.0")), Ok(()));
    assert_eq!(host.stack.join(id, group("239.0.2.0")), Err(Refusal::InUse));
    host.stack.set_link(Some([2, 0, 0, 0, 1, 1]));
    host.turn(2000);
    let local: Ipv6Addr = "fe80::ff:fe00:101".parse().unwrap();
    let neighbours: Ipv6Addr = "ff02::1:ff00:101".parse().unwrap();
    assert!(host.stack.address_at(0).is_some() && host.stack.reaches(local.into()).is_ok());
    assert!(host.stack.interface.has_multicast_group(neighbours));
    let two: core::net::Ipv4Addr = [239, 0, 2, 0].into();
    host.stack.close(id);
    assert!(host.stack.interface.has_multicast_group(two), "another socket has joined it");
}

/// Programs that have as many groups as they may leave some for others.
#[test]
fn who_has_many_groups_leaves_some_for_others() {
    let mut host = Host::new(3, None);
    let mut joined = Vec::new();
    for owner in 0..14u8 {
        let id = host.stack.open(owner.into(), Kind::Udp).unwrap();
        let groups = (0..=OWN_GROUPS_MAX as u8).map(|number| IpAddr::from([239, 0, owner, number]));
        joined.push(groups.filter(|group| host.stack.join(id, *group).is_ok()).count());
        host.turn(2);
    }
    let expected = [[OWN_GROUPS_MAX; 4].to_vec(), [FEW_MAX; 8].to_vec(), [0; 2].to_vec()].concat();
    assert_eq!((joined.iter().sum::<usize>(), joined), (GROUPS_MAX, expected));
}

/// Groups that programs leave take no room from others, although the card takes nothing and so the network is not told.
#[test]
fn groups_that_are_left_take_no_room_from_others() {
    let mut pair = Pair::new(0);
    let host = &mut pair.hosts[0];
    let group = |owner: u64, number: u8| IpAddr::from([239, 1, owner as u8, number]);
    let greedy = [2, 3, 4, 5, 6].map(|owner| (owner, host.stack.open(owner, Kind::Udp).unwrap()));
    for (owner, id) in greedy {
        for number in 0..8 {
            let _ = host.stack.join(id, group(owner, number));
        }
    }
    host.turn(2);
    let sender = host.stack.open(1, Kind::Udp).unwrap();
    for _ in 0..100 {
        let _ = host.stack.send_to(sender, end("255.255.255.255:9"), b"x");
        host.turn(1);
    }
    assert!(host.stack.wire.is_choked());
    for round in 0..3 {
        for (owner, id) in greedy {
            for number in 0..8 {
                let _ = host.stack.leave(id, group(owner, 8 * round + number));
            }
            for number in 0..8 {
                let _ = host.stack.join(id, group(owner, 8 * (round + 1) + number));
            }
        }
        host.turn(1);
    }
    let other = host.stack.open(7, Kind::Udp).unwrap();
    for number in 0..FEW_MAX as u8 {
        assert_eq!(host.stack.join(other, group(7, number)), Ok(()));
    }
    // Once the network has been told, all is as before.
    for _ in 0..10 {
        while host.stack.pop().is_some() {}
        host.turn(1);
    }
    let (owner, id) = greedy[0];
    assert_eq!(host.stack.join(id, group(owner, 99)), Ok(()));
}

/// Messages of servers of addresses are the stack's, whoever has its port.
#[test]
fn leases_are_not_held_back() {
    use crate::held::Held;
    let mut held = Held::default();
    held.set(Vec::new(), std::vec![68, 69]);
    let hardware = [[2; 6], [0xff; 6]].map(smoltcp::wire::EthernetAddress);
    for (port, is_held) in [(68, false), (69, true), (70, false)] {
        let to = end(&format!("255.255.255.255:{port}"));
        let frame = crate::frames::datagram(hardware, end("10.1.0.3:67"), to, b"x").unwrap();
        assert_eq!(held.hold(frame).is_none(), is_held, "{port}");
    }
}
