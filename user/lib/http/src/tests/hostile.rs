//! Mutations of requests and answers: whatever comes, there is an answer or a refusal, and no path that leads out.

use super::Files;
use crate::HEAD_MAX;
use crate::answer::answer;
use crate::reply::Reply;
use crate::request::{Reading, read};
use std::vec::Vec;

/// Mutations, plain and full.
const COUNTS: [usize; 2] = [20_000, 2_000_000];

const SEEDS: [&str; 9] = [
    "PUT /b%20c HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    "DELETE /d HTTP/1.1\r\nHost: t\r\n\r\n",
    "GET / HTTP/1.0\r\n\r\n",
    "GET /b%20c HTTP/1.1\r\nHost: t\r\n\r\n",
    "GET /a/../b%20c/%2e%2e/d?e HTTP/1.1\r\nHost: t\r\nConnection: keep-alive, close\r\n\r\n",
    "HEAD http://t:80/a//./b/ HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc",
    "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\nff\r\n",
    "HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\nX-Y: z\r\n\r\nabc",
];

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % end
    }
}

fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    const WORDS: [&[u8]; 10] =
        [b"/", b"..", b"%2f", b"%2e", b"\r\n", b"%", b"\0", b"Host: u\r\n", b" ", b"GET / HTTP/1.1\r\n\r\n"];
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() + 1);
        match random.below(8) {
            0 | 1 if at < bytes.len() => bytes[at] = random.below(256) as u8,
            2 | 3 if at < bytes.len() => drop(bytes.remove(at)),
            4 => bytes.truncate(at.max(1)),
            _ => drop(bytes.splice(at..at, WORDS[random.below(WORDS.len())].iter().copied())),
        }
    }
}

#[test]
fn mutations_do_no_harm() {
    let is_full = std::env::var_os("TERN_FULL").is_some_and(|value| value == "1");
    let mut random = Random(0x7e57);
    let mut files = Files::of(&[("a/x", ""), ("d", "text"), ("b c/y", "")]);
    files.is_writable = true;
    let (mut answered, mut refused) = (0, 0);
    for turn in 0..COUNTS[usize::from(is_full)] {
        let mut bytes = SEEDS[turn % SEEDS.len()].as_bytes().to_vec();
        mutate(&mut random, &mut bytes);
        match read(&bytes) {
            Reading::Whole(request, len) => {
                assert!(len <= bytes.len().min(HEAD_MAX), "{bytes:?}");
                for name in request.path.names() {
                    let is_name =
                        !matches!(name, b"" | b"." | b"..") && !name.iter().any(|&c| c == b'/' || c == 0);
                    assert!(is_name, "{bytes:?}");
                }
                let answer = answer(&request, &mut files);
                // One empty line, and it is the end: nothing of the request is a field of the answer.
                let head = std::str::from_utf8(&answer.head).unwrap();
                assert_eq!(head.find("\r\n\r\n"), Some(head.len() - 4), "{bytes:?}");
                assert!(head.split("\r\n").all(|line| !line.contains(['\r', '\n'])), "{bytes:?}");
                answered += 1;
            }
            Reading::Refused(_) => refused += 1,
            Reading::More => {}
        }
        let (mut reply, mut body) = (Reply::default(), Vec::new());
        let _ = bytes.chunks(1 + random.below(40)).try_for_each(|piece| reply.push(piece, &mut body));
        assert!(body.len() <= bytes.len());
    }
    assert!(answered > 1000 && refused > 1000, "{answered} answered, {refused} refused");
}
