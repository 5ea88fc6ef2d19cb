//! Messages of ICMP as programs have them at sockets for echo requests: without the head of IP, and with a number for the socket that is its port.

use super::Family;
use crate::errno::{EINVAL, Result};
use alloc::vec::Vec;

/// Bytes of a message before those that come back.
const HEAD: usize = 8;

/// Kinds of an echo request and of its answer.
const fn kinds(family: Family) -> [u8; 2] {
    match family {
        Family::Four => [8, 0],
        Family::Six => [128, 129],
    }
}

/// Number and bytes of an echo request that a program sends. The number of the socket in it, and its sum, are not the program's to say.
///
/// `EINVAL`: it is none.
pub fn request(family: Family, message: &[u8]) -> Result<(u16, &[u8])> {
    let [wanted, _] = kinds(family);
    match message {
        [kind, 0, _, _, _, _, high, low, bytes @ ..] if *kind == wanted => {
            Ok((u16::from_be_bytes([*high, *low]), bytes))
        }
        _ => Err(EINVAL),
    }
}

/// Message with the answer to a request of a socket with this port.
pub fn answer(family: Family, port: u16, number: u16, bytes: &[u8]) -> Vec<u8> {
    let [_, kind] = kinds(family);
    let mut message = Vec::with_capacity(HEAD + bytes.len());
    for part in [&[kind, 0, 0, 0], &port.to_be_bytes()[..], &number.to_be_bytes(), bytes] {
        message.extend_from_slice(part);
    }
    // With IPv6 addresses are summed up, too, and whoever receives at such a socket does not look at a sum that has been checked.
    if family == Family::Four
        && let Some(place) = message.get(2..4).map(|_| sum(&message))
        && let Some(to) = message.get_mut(2..4)
    {
        to.copy_from_slice(&place.to_be_bytes());
    }
    message
}

/// The internet's checksum.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        [high] => u32::from(*high) << 8,
        _ => 0,
    });
    // A message has fewer words than would overflow this.
    let total: u32 = words.sum();
    let folded = (total & 0xffff) + (total >> 16);
    !(((folded & 0xffff) + (folded >> 16)) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_those_of_linux() {
        let asked = [8, 0, 1, 2, 3, 4, 0, 5, b'x'];
        assert_eq!(request(Family::Four, &asked), Ok((5, &b"x"[..])));
        assert_eq!(request(Family::Six, &asked), Err(EINVAL));
        assert_eq!(request(Family::Six, &[128, 0, 0, 0, 0, 0, 1, 0]), Ok((256, &b""[..])));
        for bad in [&asked[..7], &[8, 1, 0, 0, 0, 0, 0, 0], &[0; 8], &[13, 0, 0, 0, 0, 0, 0, 0], &[]] {
            assert_eq!(request(Family::Four, bad), Err(EINVAL));
        }
        let answered = answer(Family::Four, 0x0304, 5, b"odd");
        assert_eq!((&answered[..2], &answered[4..]), (&[0, 0][..], &[3, 4, 0, 5, b'o', b'd', b'd'][..]));
        assert_eq!(sum(&answered), 0, "it is right");
        assert_eq!(answer(Family::Six, 1, 2, b"")[..], [129, 0, 0, 0, 0, 1, 0, 2]);
    }
}
