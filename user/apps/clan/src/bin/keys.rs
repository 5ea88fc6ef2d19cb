//! The key server of "On µ-Kernel Construction" (section 2), as a test of what the kernel must make possible (row C23).
//!
//! A key server delivers pairs of RSA keys. It guarantees that each has the RSA property, that each is delivered only once, and
//! only to the one who asked. It *can* guarantee that if (a) nobody disturbs its code and data: independence; (b) nobody else reads or changes the key on its way; and (c)
//! who asks can tell that the key comes from the key server: integrity. Here it works among two honest clients and a spy, who all are tasks of one clan, so
//! that they talk directly. The spy tries, one after another, what it can.
//!
//! The keys are toys (64 bits): the subject is not arithmetic.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use clan::{Clan, Own, REPORT, report};
use rt::println;
use sys::{Error, Kind, Timeout, Uid};

rt::entry!(main);

/// Label of a request for a pair, and of the answer: modulus, public and secret exponent.
const PAIR: u32 = 1;
/// Label by which a client tells its chief the modulus of a pair that it got.
const DELIVERED: u32 = 2;
/// Pairs that each client asks for.
const PAIRS: u64 = 20;
/// Everybody's public exponent.
const PUBLIC: u64 = 65537;

fn main() -> i32 {
    match act() {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(error) => {
            println!("keys: {error}");
            1
        }
    }
}

/// Runs all four, and judges what they report. With the argument `careless`, the server delivers a pair twice, and the program
/// has to find it.
fn act() -> sys::Result<bool> {
    let clan = Clan::new()?;
    let chief = sys::myself().0;
    let is_careless = rt::arguments() == ["careless"];
    let server = clan.ward(serve, [chief, is_careless as u64, 0, 0])?;
    // The name of the server comes from one whom everybody trusts: here, the chief.
    let first = clan.ward(demand, [chief, server.thread.0, 0, 0])?;
    clan.ward(demand, [chief, server.thread.0, 0, 0])?;
    let spy = clan.ward(spy, [chief, server.thread.0, first.thread.0, 0])?;
    let (mut right, mut reports) = (true, 0);
    let mut delivered = Vec::new();
    let mut next = clan.hear(Uid::NIL, Uid::NIL, 0, [0; 5])?;
    while reports < 3 {
        let (message, meant_for) = next;
        let mut answered = Uid::NIL;
        let [a, b, c, ..] = message.words;
        match message.label {
            DELIVERED if meant_for.is_nil() => {
                delivered.push(a);
                answered = message.sender;
            }
            // Nobody who has reported gets an answer.
            REPORT if meant_for.is_nil() => {
                reports += 1;
                if message.sender == spy.thread {
                    println!("keys: the spy tried {a} things, and {b} worked; it read {c} words of somebody");
                    right &= b == 0 && c == 0;
                } else {
                    println!("keys: a client got {a} pairs, {b} of them right, all by the key server");
                    right &= (a, b) == (PAIRS, PAIRS);
                }
            }
            _ => {}
        }
        if reports < 3 {
            next = clan.hear(answered, Uid::NIL, 0, [0; 5])?;
        }
    }
    let count = delivered.len();
    delivered.sort_unstable();
    delivered.dedup();
    let twice = count - delivered.len();
    match twice {
        0 => println!("keys: of {count} pairs no pair was delivered twice"),
        _ => println!("keys: of {count} pairs {twice} had been delivered before"),
    }
    Ok(right && twice == 0 && count as u64 == 2 * PAIRS)
}

// --- the key server -----------------------------------------------------------------------------------------

/// It keeps in its memory the last prime that was used, which is never used again, so no pair can come twice; and, carelessly, the last
/// pair. If it is told to be careless, it delivers that once more, in the middle of its work.
extern "C" fn serve(own: &mut Own) -> ! {
    let [_, is_careless, ..] = own.arguments;
    let mut requests = 0;
    own.words[0] = 0x8000_0000 | random() as u32 as u64 >> 2;
    let mut message = sys::ipc_reply_wait(Uid::NIL, 0, [0; 8]);
    loop {
        message = match message {
            Ok(asked) if asked.kind == Kind::Request && asked.label == PAIR => {
                requests += 1;
                if is_careless == 0 || requests != PAIRS {
                    let [p, q] = [next_prime(&mut own.words[0]), next_prime(&mut own.words[0])];
                    own.words[1..4].copy_from_slice(&[p * q, PUBLIC, inverse(PUBLIC, (p - 1) * (q - 1))]);
                }
                let [modulus, public, secret] = [own.words[1], own.words[2], own.words[3]];
                // The kernel gives the answer to this thread and to no other.
                sys::ipc_reply_wait(asked.sender, PAIR, [modulus, public, secret, 0, 0, 0, 0, 0])
            }
            Ok(asked) => sys::ipc_reply_wait(asked.sender, 0, [0; 8]),
            Err(_) => sys::ipc_reply_wait(Uid::NIL, 0, [0; 8]),
        };
    }
}

/// Not much, but it differs from run to run.
fn random() -> u64 {
    sys::clock().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}

/// The next prime after `candidate` for which the public exponent has an inverse.
fn next_prime(candidate: &mut u64) -> u64 {
    let is_prime = |n: u64| (3..).step_by(2).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
    *candidate |= 1;
    loop {
        *candidate += 2;
        if is_prime(*candidate) && !(*candidate - 1).is_multiple_of(PUBLIC) {
            return *candidate;
        }
    }
}

/// The inverse of `a` modulo `m`, which have no common divisor.
fn inverse(a: u64, m: u64) -> u64 {
    let (mut r, mut s) = ((m as i128, a as i128), (0i128, 1i128));
    while r.1 != 0 {
        let quotient = r.0 / r.1;
        r = (r.1, r.0 - quotient * r.1);
        s = (s.1, s.0 - quotient * s.1);
    }
    s.0.rem_euclid(m as i128) as u64
}

/// `base` to the power of `exponent` modulo `n`.
fn power(base: u64, mut exponent: u64, n: u64) -> u64 {
    let (mut result, mut base) = (1, base as u128 % n as u128);
    while exponent != 0 {
        if exponent & 1 != 0 {
            result = result * base % n as u128;
        }
        base = base * base % n as u128;
        exponent >>= 1;
    }
    result as u64
}

// --- its clients ----------------------------------------------------------------------------------------------

/// Asks for pairs and checks each: from the key server, and with the RSA property.
extern "C" fn demand(own: &mut Own) -> ! {
    let [chief, server, ..] = own.arguments.map(Uid);
    let (mut got, mut right) = (0, 0);
    for _ in 0..PAIRS {
        let Ok(answer) = sys::ipc_call(server, PAIR, [0; 8]) else { continue };
        let [modulus, public, secret, ..] = answer.words;
        got += (answer.sender == server && answer.label == PAIR) as u64;
        let is_pair = [2, 3, 0x1234_5678, modulus - 2]
            .iter()
            .all(|&text| power(power(text, public, modulus), secret, modulus) == text);
        right += is_pair as u64;
        // The chief alone sees what both clients got.
        let _ = sys::ipc_call(chief, DELIVERED, [modulus, 0, 0, 0, 0, 0, 0, 0]);
    }
    report(chief, [got, right, 0, 0]);
}

/// Tries to get at keys, to give false ones, and to stop the server.
extern "C" fn spy(own: &mut Own) -> ! {
    let [chief, server, victim, ..] = own.arguments.map(Uid);
    let (mut tried, mut worked) = (0, 0);
    let mut attempt = |success: bool| {
        tried += 1;
        worked += success as u64;
    };
    for _ in 0..200 {
        // A false key for a client, which waits for the server or for nobody.
        let false_key = sys::send(victim, PAIR, [15, 3, 3, 0, 0, 0, 0, 0], Timeout::ZERO);
        attempt(false_key.is_ok());
        // A message in the place of the client's own, to be answered there.
        attempt(sys::receive(server, Timeout::ZERO).is_ok());
        attempt(sys::thread_stop(server) != Err(Error::Denied));
        attempt(sys::thread_abort(server) != Err(Error::Denied));
        attempt(sys::thread_destroy(server) != Err(Error::Denied));
        attempt(sys::thread_registers(server, 0) != Err(Error::Denied));
        attempt(sys::thread_set_pager(server, sys::myself(), sys::myself()) != Err(Error::Denied));
        let _ = sys::thread_switch(Uid::NIL);
    }
    // Where the server has its variables, the spy has its own.
    let read = own.words.iter().filter(|word| **word != 0).count();
    report(chief, [tried, worked, read as u64, 0]);
}
