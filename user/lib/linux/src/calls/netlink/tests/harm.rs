//! Requests that were changed at random: each is answered or dropped, answers are whole, and nothing is kept.

use super::*;
use crate::tests::random::Random;

/// Messages of the whole test.
const ROUNDS: usize = 10_000;

/// Requests that make sense.
fn sound() -> Vec<Vec<u8>> {
    let link = [&[0; 4][..], &[2, 0, 0, 0], &[0; 8]].concat();
    let name = [&[0; 16][..], &[7, 0, 3, 0, b'l', b'o', 0, 0]].concat();
    let address = [&[10, 0, 0, 0, 2, 0, 0, 0, 20, 0, 1, 0, 0xfe, 0x80][..], &[0; 13], &[0x15]].concat();
    let way = [2, 32, 0, 0, 254, 0, 0, 0, 0, 0, 0, 0];
    let route = [&way[..], &[8, 0, 1, 0, 1, 1, 1, 1], &[8, 0, 15, 0, 255, 0, 0, 0]].concat();
    Vec::from([
        request(GET_LINK, ALL, 1, &[0; 4]),
        request(GET_LINK, NLM_F_REQUEST, 2, &link),
        request(GET_LINK, NLM_F_REQUEST | NLM_F_ACK, 3, &name),
        request(GET_ADDRESS, ALL, 4, &[0; 8]),
        request(GET_ADDRESS, NLM_F_REQUEST, 5, &address),
        request(GET_ROUTE, ALL, 6, &route),
        request(GET_ROUTE, NLM_F_REQUEST, 7, &route),
        request(NEW_ADDRESS, NLM_F_REQUEST | NLM_F_ACK, 8, &address),
        request(FAILED, NLM_F_ACK, 9, &link),
    ])
}

/// Changes some bytes: takes away, puts in between, cuts off, or writes others.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.below(6) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        let byte = random.of(&[0, 1, 2, 3, 4, 8, 15, 16, 127, 128, 254, 255]) as u8;
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, byte),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            _ => {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
        }
    }
}

#[test]
fn requests_that_were_changed_are_answered_or_dropped() {
    let mut random = Random(23);
    let mut net = Net::begun();
    let fd = net.socket();
    let seeds = sound();
    let (mut told, mut silent) = (0, 0);
    for round in 0..ROUNDS {
        let mut bytes = Vec::new();
        for _ in 0..=random.below(3) {
            bytes.extend_from_slice(&seeds[random.below(seeds.len() as u64) as usize]);
        }
        mutate(&mut bytes, &mut random);
        if round % 100 == 0 {
            let before = net.rig.free;
            let value = (round / 100 % 2) as u32;
            assert_eq!(net.set(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, value), 0);
            assert_eq!(net.set(fd, SOL_NETLINK, NETLINK_CAP_ACK, value), 0);
            net.rig.free = before;
        }
        let expected = if bytes.is_empty() { error(ENODATA) } else { bytes.len() as i64 };
        assert_eq!(net.send(fd, &bytes), expected, "round {round}");
        let before = told;
        while let Ok(datagram) = net.receive(fd) {
            let messages = split(&datagram);
            assert!(!messages.is_empty(), "round {round}");
            for message in messages {
                let kind = half(&message, 4);
                let known = [NEW_LINK, NEW_ADDRESS, NEW_ROUTE, DONE, FAILED];
                assert!(known.contains(&kind), "round {round}: {kind}");
                assert_eq!(word(&message, 12), FIRST, "round {round}");
                assert!(message.len() >= 20, "round {round}");
            }
            told += 1;
        }
        silent += usize::from(told == before);
    }
    assert!(told > ROUNDS / 2 && silent > ROUNDS / 100, "{told} answers, and {silent} messages without any");
    let open = net.rig.system.processes[&FIRST].descriptors.get(fd as u32).unwrap().open.clone();
    let Object::Netlink(socket) = &open.object else { panic!("no socket") };
    assert_eq!((socket.held(), net.rig.poll(fd)), (0, 0x304));
}
