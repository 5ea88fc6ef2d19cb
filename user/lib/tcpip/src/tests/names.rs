//! Names, and a server that is asked for their addresses: one that answers, one that does not, and one that lies.

use super::leases::Town;
use super::pairs::{SERVER, datagram, leased};
use super::secrets::drawn;
use super::{Host, SECOND_US};
use crate::{Id, Refusal};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use lan::leases::Manner;
use lan::names::{self, LIE, Record};
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr,
    Ipv4Packet, UdpPacket,
};
use std::vec;
use std::vec::Vec;

const OWN: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);

/// The server that is told of with the lease.
const NAMES: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);
const PORT: u16 = 53;

/// Time between two turns.
const TURN_US: u64 = SECOND_US / 20;

/// Turns after which a question is over, whatever the server does.
const TURNS: usize = 20 * 60;

/// Bytes in front of the question, and behind the name: its kind and class.
const HEADER: usize = 12;
const BEHIND_NAME: usize = 4;

/// Says who has an address, if a frame asks for that.
fn neighbour(frame: &[u8]) -> Option<Vec<u8>> {
    let asked =
        ArpRepr::parse(&ArpPacket::new_checked(EthernetFrame::new_checked(frame).ok()?.payload()).ok()?);
    let ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Request,
        source_protocol_addr,
        target_protocol_addr,
        ..
    } = asked.ok()?
    else {
        return None;
    };
    let answer = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Reply,
        source_hardware_addr: SERVER,
        source_protocol_addr: target_protocol_addr,
        target_hardware_addr: EthernetAddress(OWN),
        target_protocol_addr: source_protocol_addr,
    };
    // Nobody but the servers is there.
    if target_protocol_addr == ADDRESS {
        return None;
    }
    let ethernet =
        EthernetRepr { src_addr: SERVER, dst_addr: EthernetAddress(OWN), ethertype: EthernetProtocol::Arp };
    let mut bytes = vec![0; ethernet.buffer_len() + answer.buffer_len()];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    ethernet.emit(&mut frame);
    answer.emit(&mut ArpPacket::new_unchecked(frame.payload_mut()));
    Some(bytes)
}

/// The message of a question, and the port that it comes from, if a frame has one.
fn question(frame: &[u8]) -> Option<(Vec<u8>, u16)> {
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    let ip = Ipv4Packet::new_checked(ethernet.payload()).ok()?;
    let udp = UdpPacket::new_checked(ip.payload()).ok().filter(|udp| udp.dst_port() == PORT)?;
    (ip.dst_addr() == NAMES).then(|| (udp.payload().to_vec(), udp.src_port()))
}

/// An answer to a question: a code, and addresses for its name.
fn answer<const LEN: usize>(question: &[u8], code: u8, addresses: &[[u8; LEN]]) -> Vec<u8> {
    let name = question[HEADER..].iter().position(|byte| *byte == 0).unwrap() + 1;
    let mut message = question[..HEADER + name + BEHIND_NAME].to_vec();
    message[2..HEADER].copy_from_slice(&[0x81, 0x80 | code, 0, 1, 0, addresses.len() as u8, 0, 0, 0, 0]);
    for address in addresses {
        // The name is that of the question; an address (A or AAAA), of the internet, for a minute, of so many bytes.
        let kind = if LEN == 4 { 1 } else { 28 };
        message.extend([0xc0, HEADER as u8, 0, kind, 0, 1, 0, 0, 0, 60, 0, LEN as u8]);
        message.extend(address);
    }
    message
}

/// A host with an address, and the turns of its questions.
struct Asking {
    host: Host,
    asked: usize,
}

impl Asking {
    fn new(seed: u64) -> Asking {
        let mut host = Host::new(seed, None);
        host.stack.set_link(Some(OWN));
        let mut asking = Asking { host, asked: 0 };
        asking.turn(400, |_| Vec::new());
        assert_eq!(asking.host.stack.status().servers, [NAMES]);
        asking
    }

    /// Time goes on, with servers that give an address and answer questions as `answers` says.
    fn turn(&mut self, turns: usize, mut answers: impl FnMut(&[u8]) -> Vec<Vec<u8>>) {
        for _ in 0..turns {
            self.host.stack.turn(self.host.now_us);
            self.host.now_us += TURN_US;
            while let Some(frame) = self.host.stack.pop() {
                for back in leased(&frame, ADDRESS).into_iter().chain(neighbour(&frame)) {
                    self.host.stack.push(&back);
                }
                let Some((message, port)) = question(&frame) else { continue };
                self.asked += 1;
                for said in answers(&message) {
                    let to = EthernetAddress(OWN);
                    self.host.stack.push(&datagram(to, (NAMES, PORT), (ADDRESS, port), &said));
                }
            }
        }
    }

    /// Asks for a name until it is decided.
    fn ask(&mut self, name: &str, mut answers: impl FnMut(&[u8]) -> Vec<Vec<u8>>) -> Result<IpAddr, Refusal> {
        let query: Id = self.host.stack.resolve(1, name).unwrap();
        let mut found = Err(Refusal::Again);
        for _ in 0..TURNS {
            self.turn(1, &mut answers);
            found = self.host.stack.found(query);
            if found != Err(Refusal::Again) {
                break;
            }
        }
        self.host.stack.close(query);
        found
    }
}

const FOUND: [u8; 4] = [192, 0, 2, 7];

#[test]
fn a_name_has_the_address_that_a_server_says() {
    let mut asking = Asking::new(1);
    let found = asking.ask("tern.example", |question| vec![answer(question, 0, &[FOUND, [192, 0, 2, 8]])]);
    assert_eq!(found, Ok(FOUND.into()));
    assert_eq!(asking.asked, 2);
    // 3: there is no such name. 2: the server has a problem.
    for code in [3, 2] {
        assert_eq!(
            asking.ask("nosuch.example", |question| vec![answer::<4>(question, code, &[])]),
            Err(Refusal::NotFound)
        );
    }
    // There is such a name, without an address.
    assert_eq!(
        asking.ask("none.example", |question| vec![answer::<4>(question, 0, &[])]),
        Err(Refusal::NotFound)
    );
    assert_eq!((asking.host.stack.kept(), asking.host.stack.owned(1)), (0, 0));
}

/// All numbers that the interface draws tell neither number nor port of a question, so nobody who knows them answers it for the server.
#[test]
fn questions_have_numbers_that_the_interface_does_not_draw() {
    let folded = |number: u32| (number ^ number >> 16) as u16;
    let drawn: Vec<u16> = drawn(1).take(10_000).map(folded).collect();
    let mut asking = Asking::new(1);
    let mut asked = Vec::new();
    for number in 0..20 {
        let query = asking.host.stack.resolve(1, &std::format!("name-{number}.example")).unwrap();
        for _ in 0..20 {
            asking.host.stack.turn(asking.host.now_us);
            asking.host.now_us += TURN_US;
            while let Some(frame) = asking.host.stack.pop() {
                if let Some(back) = neighbour(&frame) {
                    asking.host.stack.push(&back);
                }
                asked.extend(
                    question(&frame)
                        .map(|(message, port)| [u16::from_be_bytes([message[0], message[1]]), port]),
                );
            }
        }
        asking.host.stack.close(query);
    }
    asked.dedup();
    assert!(asked.len() >= 40, "{} questions", asked.len());
    let known = asked.iter().filter(|asked| drawn.windows(2).any(|pair| pair == **asked)).count();
    assert_eq!(known, 0, "of {} questions", asked.len());
}

/// Whether a question is for addresses of IPv6.
fn is_for_v6(question: &[u8]) -> bool {
    let name = question[HEADER..].iter().position(|byte| *byte == 0).unwrap() + 1;
    question[HEADER + name..][..2] == [0, 28]
}

#[test]
fn a_name_without_an_address_of_ipv4_has_one_of_ipv6() {
    let mut asking = Asking::new(5);
    let address = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
    // 3: there is no such name. 0: there is, without an address.
    for code in [0, 3] {
        let found = asking.ask("six.example", |question| {
            vec![if is_for_v6(question) {
                answer(question, 0, &[address])
            } else {
                answer::<4>(question, code, &[])
            }]
        });
        assert_eq!(found, Ok(address.into()));
    }
    // Where both are there, that of IPv4 is it, whichever comes first.
    let found = asking.ask("both.example", |question| {
        if is_for_v6(question) {
            vec![answer(question, 0, &[address])]
        } else {
            vec![answer(question, 0, &[FOUND])]
        }
    });
    assert_eq!(found, Ok(FOUND.into()));
    // A question that its owner closes leaves nothing.
    let query = asking.host.stack.resolve(1, "six.example").unwrap();
    asking.turn(
        3,
        |question| {
            if is_for_v6(question) { Vec::new() } else { vec![answer::<4>(question, 0, &[])] }
        },
    );
    assert_eq!(asking.host.stack.found(query), Err(Refusal::Again));
    asking.host.stack.close(query);
    asking.turn(20, |question| vec![answer(question, 0, &[address])]);
    assert_eq!((asking.host.stack.kept(), asking.host.stack.owned(1)), (0, 0));
}

#[test]
fn a_question_that_is_lost_is_asked_again() {
    let mut asking = Asking::new(2);
    let mut lost = 2;
    let found = asking.ask("tern.example", |question| {
        lost -= 1;
        if lost >= 0 { Vec::new() } else { vec![answer(question, 0, &[FOUND])] }
    });
    assert_eq!(found, Ok(FOUND.into()));
    assert_eq!(asking.ask("nobody.example", |_| Vec::new()), Err(Refusal::NotFound), "it ends");
}

/// An answer to another question, or to nobody's, is none.
#[test]
fn answers_to_other_questions_do_not_count() {
    let mut asking = Asking::new(3);
    let mut round = 0;
    let found = asking.ask("tern.example", |question| {
        round += 1;
        let mut wrong = answer(question, 0, &[[6, 6, 6, 6]]);
        match round {
            // Another number.
            1 => wrong[0] ^= 1,
            // Another name.
            2 => wrong[HEADER + 1] ^= 1,
            // A question, and no answer.
            3 => wrong[2] &= 0x7f,
            _ => return vec![answer(question, 0, &[FOUND])],
        }
        vec![wrong]
    });
    assert!(found == Ok(FOUND.into()) || found == Err(Refusal::NotFound), "{found:?}");
}

/// Bytes of an answer are changed, cut and added at random, names that point to themselves among them. Each question is decided.
#[test]
fn damaged_answers_do_no_harm() {
    let mut asking = Asking::new(4);
    let mut random = 1u64;
    let mut below = |end: usize| {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (random >> 33) as usize % end
    };
    let mut found = 0;
    for _ in 0..300 {
        let outcome = asking.ask("tern.example", |question| {
            let mut said = answer(question, 0, &[FOUND, FOUND]);
            for _ in 0..below(4) {
                let at = below(said.len());
                said[at] = [0xc0, HEADER as u8, 0xff, 0, below(256) as u8][below(5)];
            }
            match below(6) {
                0 => said.truncate(below(said.len() + 1)),
                1 => said.extend([0xc0; 300]),
                _ => {}
            }
            vec![said]
        });
        assert_ne!(outcome, Err(Refusal::Again), "it goes on for ever");
        found += usize::from(outcome == Ok(FOUND.into()));
    }
    assert!(found > 50, "{found}");
}

/// Addresses of names that the servers of a town know.
const KNOWN: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const KNOWN_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);

/// A host with an address, in a town whose servers know some names.
fn town() -> Town {
    let mut town = Town::new(6, Manner::Honest);
    town.lan.leases.seconds = u32::MAX;
    let alias = |name, other| (name, Record::Alias(other));
    town.lan.names.records = vec![
        ("tern.test", Record::V4(KNOWN)),
        ("six.test", Record::V6(KNOWN_V6)),
        alias("first.test", "second.test"),
        alias("second.test", "third.test"),
        alias("third.test", "tern.test"),
        alias("round.test", "about.test"),
        alias("about.test", "round.test"),
    ];
    town.run(2);
    town
}

/// Asks for a name until it is decided, and says after how many seconds.
pub(super) fn ask(town: &mut Town, name: &str) -> (Result<IpAddr, Refusal>, u64) {
    let query = town.host.stack.resolve(1, name).unwrap();
    let mut seconds = 0;
    while town.host.stack.found(query) == Err(Refusal::Again) {
        town.run(1);
        seconds += 1;
        assert!(seconds < 60, "{name} is never decided");
    }
    let found = town.host.stack.found(query);
    town.host.stack.close(query);
    (found, seconds)
}

#[test]
fn chains_of_names_are_followed() {
    let mut town = town();
    for (name, expected) in [
        ("tern.test", Ok(KNOWN.into())),
        ("six.test", Ok(KNOWN_V6.into())),
        ("first.test", Ok(KNOWN.into())),
        ("round.test", Err(Refusal::NotFound)),
        ("nosuch.test", Err(Refusal::NotFound)),
    ] {
        let (found, seconds) = ask(&mut town, name);
        assert!(found == expected && seconds <= 2, "{name}: {found:?} after {seconds} s");
    }
}

/// Each lie is decided in the time that a server has which says nothing, and nothing of it is believed or stays: the next question has the right answer.
#[test]
fn lies_about_names_are_not_believed() {
    let mut town = town();
    for manner in names::Manner::HOSTILE {
        town.lan.names.manner = manner;
        let (found, seconds) = ask(&mut town, "tern.test");
        assert_eq!(found, Err(Refusal::NotFound), "{manner:?}");
        assert!(seconds <= 17, "{manner:?}: {seconds} s");
        town.lan.names.manner = names::Manner::Honest;
        assert_eq!(ask(&mut town, "first.test").0, Ok(KNOWN.into()), "{manner:?}");
        assert_eq!((town.host.stack.kept(), town.host.stack.owned(1)), (0, 0));
    }
}

/// A lie of somebody else does not end a question: the answer comes when it is asked again.
#[test]
fn a_question_outlives_lies() {
    use names::Manner::{Cut, Endless, Loop, OtherQuestion, Silent, Stranger, WrongNumber};
    let mut town = town();
    for manner in [Cut, Endless, Loop, OtherQuestion, Silent, Stranger, WrongNumber] {
        town.lan.names.manner = manner;
        let query = town.host.stack.resolve(1, "tern.test").unwrap();
        town.run(2);
        assert_eq!(town.host.stack.found(query), Err(Refusal::Again), "{manner:?}");
        town.lan.names.manner = names::Manner::Honest;
        town.run(8);
        let found = town.host.stack.found(query);
        assert_eq!(found, Ok(KNOWN.into()), "{manner:?}");
        assert_ne!(found, Ok(LIE.into()));
        town.host.stack.close(query);
    }
}
