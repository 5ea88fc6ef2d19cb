use super::Scope;
use std::vec::Vec;

fn scope(text: &str) -> Scope {
    let (at, is_six_only) = text.strip_suffix(" only").map_or((text, false), |at| (at, true));
    Scope { at: at.parse().unwrap(), is_six_only }
}

/// Pairs of addresses, and whether Linux lets both be bound to without an option (`ipv6_rcv_saddr_equal` in `net/ipv4/inet_connection_sock.c`).
#[test]
fn scopes_that_meet() {
    let all = ["0.0.0.0:1", "[::]:1", "[::]:1 only", "127.0.0.1:1", "10.0.2.15:1", "[::1]:1", "[::1]:1 only"];
    let expected = [
        [true, true, false, true, true, false, false],
        [true, true, true, true, true, true, true],
        [false, true, true, false, false, true, true],
        [true, true, false, true, false, false, false],
        [true, true, false, false, true, false, false],
        [false, true, true, false, false, true, true],
        [false, true, true, false, false, true, true],
    ];
    for (one, expected) in all.iter().zip(expected) {
        let found: Vec<bool> = all.iter().map(|other| scope(one).meets(&scope(other))).collect();
        assert_eq!(found, expected, "{one}");
    }
    assert!(!scope("0.0.0.0:1").meets(&scope("0.0.0.0:2")));
}
