//! Handlers of random foreign calls: they answer at once, late, in another order, with other registers, to another place, or never.
//!
//! An answer adds one number to all registers of its call, and returns that number's negative. So a caller sees whether all of an answer is of one
//! piece, and whether it is the answer to its call.

use super::super::random;
use super::{CALLERS, CHANGE_MAX, NAMES, RELEASE, is_carrier, suite_redirected_elsewhere, words};
use crate::check;
use crate::kit::{Outcome, Random, caught};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use rt::println;
use sys::abi::call::{RESUME, RESUME_AS_IS, vector};
use sys::foreign::{Arrival, Handler, Registers, answer_later, resume};
use sys::{Ipc, Kind, Message, Result, ThreadState, Timeout, Uid};

/// Names of the counts.
const NAMES_OF_COUNTS: [&str; 14] = [
    "taken",
    "strange",
    "at_once",
    "kept",
    "never",
    "late",
    "late_refused",
    "to_nobody",
    "to_elsewhere",
    "states_got",
    "states_set",
    "by_state",
    "exceptions",
    "in_doubt",
];

#[derive(Clone, Copy)]
enum Count {
    Taken,
    /// Calls with registers that are no caller's.
    Strange,
    AtOnce,
    Kept,
    Never,
    Late,
    LateRefused,
    /// Returns behind a late return: nobody waits for them.
    ToNobody,
    ToElsewhere,
    StatesGot,
    StatesSet,
    ByState,
    Exceptions,
    /// Registers that may have been set in the middle of a later call.
    InDoubt,
}

static COUNTS: [AtomicU64; NAMES_OF_COUNTS.len()] = [const { AtomicU64::new(0) }; NAMES_OF_COUNTS.len()];

fn count(what: Count) {
    COUNTS[what as usize].fetch_add(1, Relaxed);
}

/// Vector of a single step.
const DEBUG: u64 = 1;

/// The way of an answer before which somebody else works on the caller's shuttle. The last four bits of an answer's change are its way.
pub const ASKS: u64 = 7;

/// How long a handler waits for somebody whom it asks in the middle of a call.
const PATIENCE: Timeout = Timeout::from_us(300);

/// Knowledge of one handler.
struct Work {
    random: Random,
    /// Answers to calls that were left unanswered, and the first register of each call.
    kept: [Option<(Registers, u64)>; CALLERS],
}

/// The body of a handler.
pub extern "C" fn serve(seed: u64) -> u64 {
    let mut work = Work { random: Random::new(seed), kept: [None; CALLERS] };
    let mut handler = Handler::default();
    let mut arrival = handler.wait();
    loop {
        arrival = match arrival {
            Ok(Arrival::Call(label)) => work.call(label as usize & 0xff, &mut handler),
            Ok(Arrival::Message(message)) => {
                work.message(message);
                handler.wait()
            }
            Err(_) => {
                work.release();
                handler.wait()
            }
        }
    }
}

/// The name of a caller. Nil would be the handler itself, so who is not there is nobody.
fn uid(index: usize) -> Uid {
    let name = NAMES.get(index).map_or(0, |name| name.load(Relaxed));
    if name == 0 { Uid::ANY } else { Uid(name) }
}

/// The caller that makes a call with these registers, if they follow from one number as a caller's do.
fn caller(it: &Registers) -> Option<usize> {
    let all = [it.rsi, it.rdx, it.r10, it.r8, it.r9, it.rbx, it.rbp, it.r12, it.r13, it.r14, it.r15];
    let is_whole = all.iter().zip(1..).all(|(register, more)| *register == it.rdi.wrapping_add(more));
    let index = it.rdi as usize & 0xff;
    (is_whole && index < CALLERS).then_some(index)
}

/// The answer to a call: its registers with a number added.
fn change(it: &mut Registers, number: u64) {
    let Registers { rdi, rsi, rdx, r10, r8, r9, rbx, rbp, r12, r13, r14, r15, rax } = it;
    for register in [rdi, rsi, rdx, r10, r8, r9, rbx, rbp, r12, r13, r14, r15] {
        *register = register.wrapping_add(number);
    }
    *rax = number.wrapping_neg();
}

impl Work {
    /// Does something about a call.
    fn call(&mut self, label: usize, handler: &mut Handler) -> Result<Arrival> {
        count(Count::Taken);
        if handler.registers.rax as u32 == RELEASE {
            let _ = sys::thread_deny_native(uid(label), 0);
            return handler.answer();
        }
        let Some(index) = caller(&handler.registers) else {
            // A player's, or one whose registers somebody has set.
            count(Count::Strange);
            return handler.answer();
        };
        let sent = handler.registers.rdi;
        self.kept[index] = None;
        let way = self.random.below(16);
        change(&mut handler.registers, (1 + self.random.below(CHANGE_MAX / 16 - 1)) * 16 + way);
        let answer = (handler.registers, sent);
        match way {
            0..7 => {
                count(Count::AtOnce);
                return handler.answer();
            }
            ASKS => {
                // Somebody else works on the caller's shuttle meanwhile.
                self.ask();
                count(Count::AtOnce);
                return handler.answer();
            }
            8..12 => {
                count(Count::Kept);
                self.kept[index] = Some(answer);
            }
            12 => count(Count::Never),
            13 => {
                late(index, &answer.0);
                count(Count::ToNobody);
                return handler.answer();
            }
            14 => elsewhere(index, &answer.0),
            _ => by_state(index, answer),
        }
        if self.random.below(4) == 0 {
            self.release();
        }
        handler.wait()
    }

    /// Calls somebody who answers as a rule.
    fn ask(&mut self) {
        let to = Uid(random::answerer(&mut self.random));
        let ask = Ipc { to, from: to, send_timeout: PATIENCE, receive_timeout: PATIENCE, ..Ipc::NONE };
        let _ = ask.run();
    }

    fn message(&mut self, message: Message) {
        match message.kind {
            Kind::Exception => exception(&message),
            Kind::Request => {
                self.release();
                let _ = sys::send(message.sender, 0, [0; 8], Timeout::ZERO);
            }
            _ => self.release(),
        }
    }

    /// Answers some of the calls that were kept, in any order, and one that was not.
    fn release(&mut self) {
        for _ in 0..CALLERS {
            let index = self.random.below(CALLERS as u64) as usize;
            match (self.kept[index].take(), self.random.below(16)) {
                (Some(_), 0) => _ = sys::thread_abort(uid(index)),
                (Some((registers, _)), 1 | 2) => elsewhere(index, &registers),
                (Some(answer), 3 | 4) => by_state(index, answer),
                (Some((registers, _)), _) => late(index, &registers),
                (None, 0) => late(index, &Registers::default()),
                _ => {}
            }
        }
    }
}

fn late(index: usize, registers: &Registers) {
    count(if answer_later(uid(index), registers).is_ok() { Count::Late } else { Count::LateRefused });
}

/// Lets a caller go on at another place.
fn elsewhere(index: usize, registers: &Registers) {
    let thread = uid(index);
    let place = suite_redirected_elsewhere as *const () as usize as u64;
    let result = sys::thread_registers(thread, 0)
        .and_then(|[_, sp, flags, _]| resume(thread, registers, [place, sp, flags]));
    if result.is_ok() {
        count(Count::ToElsewhere);
    }
}

/// Lets a caller go on with its whole state, in which the registers of the answer are.
fn by_state(index: usize, (registers, sent): (Registers, u64)) {
    let thread = uid(index);
    let mut state = ThreadState::ZERO;
    if sys::thread_get_state(thread, &mut state).is_err() {
        return;
    }
    count(Count::StatesGot);
    registers.put(&mut state);
    if sys::thread_set_state(thread, &state).is_ok() {
        count(Count::StatesSet);
    }
    if words(index).sent.load(Relaxed) != sent {
        count(Count::InDoubt);
    }
    if sys::send(thread, RESUME_AS_IS, [0; 8], Timeout::ZERO).is_ok() {
        count(Count::ByState);
    }
}

/// Answers an exception: a native call of somebody to whom that is denied, a foreign one of somebody to whom it is not, a single step.
fn exception(message: &Message) {
    count(Count::Exceptions);
    let thread = message.sender;
    let index = (0..CALLERS).find(|&index| uid(index) == thread);
    match (message.words[0], index) {
        (vector::SYSCALL, Some(index)) if !is_carrier(index) => {
            let _ = sys::foreign::thread_redirect(thread, index as u32);
        }
        (vector::SYSCALL, _) => _ = sys::thread_deny_native(thread, 0),
        (DEBUG, _) => {}
        _ => return,
    }
    let (label, words) = match caught(thread, message.words) {
        Some((ip, sp)) => (RESUME, [0, 0, ip, sp, 0x202, 0, 0, 0]),
        None => (RESUME_AS_IS, [0; 8]),
    };
    let _ = sys::send(thread, label, words, Timeout::ZERO);
}

/// Forgets what was counted.
pub fn forget() {
    COUNTS.iter().for_each(|count| count.store(0, Relaxed));
}

fn counts() -> [u64; NAMES_OF_COUNTS.len()] {
    COUNTS.each_ref().map(|count| count.load(Relaxed))
}

/// Says what was done.
pub fn tell() {
    for (name, count) in NAMES_OF_COUNTS.iter().zip(counts()) {
        println!("HANDLER {name}: {count}");
    }
}

/// Judges what was done beside `calls` of the players. Returns how many answers may have gone to later calls.
pub fn judge(calls: u64) -> Outcome<u64> {
    let counts = counts();
    let least = |what: Count, least: u64| {
        let (name, count) = (NAMES_OF_COUNTS[what as usize], counts[what as usize]);
        check!(count > least, "calls of which next to none were {name}: {count}");
        Ok(())
    };
    for what in [Count::Late, Count::AtOnce, Count::Kept] {
        least(what, calls / 1000)?;
    }
    for what in [Count::Never, Count::LateRefused, Count::ToElsewhere, Count::ToNobody] {
        least(what, calls / 10_000)?;
    }
    for what in [Count::StatesGot, Count::StatesSet, Count::ByState, Count::Exceptions] {
        least(what, calls / 10_000)?;
    }
    Ok(counts[Count::InDoubt as usize])
}
