//! A hostile program that may not use the servers that its arguments name. `root` does not tell it where they are, so it asks for the threads of each program, and guesses the uids of all
//! others; and it calls objects by numbers that nobody gave to it. It may not use the console either, so its status says how that went: 0 if everybody has refused, else see [`Got`].
//!
//! `stranger PROGRAM=NAME …`: the program, and a name that it serves. `PROGRAM/NAME` if this program may use another name of that one: then one of the threads refuses it.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use rt::api::{Failure, Name, Status, names, process};
use rt::sys::abi::call::DOORS_MAX;
use rt::sys::{self, Ipc, Kind, Message, Timeout, Uid};
use rt::thread::spawn;

rt::entry!(main);

/// Interfaces have smaller numbers, and so have the methods of each.
const INTERFACES: u32 = 48;
/// See [`INTERFACES`].
const METHODS: u32 = 24;

/// The interface `Watches::Waiting`, which is not asked: who has the ticket of a watch may ask whether that has something to tell, wherever he has it from, and all others are told that nothing
/// will come.
const WATCHES: u32 = 26;

/// Patience with a thread that may take no messages, or give no answer.
const PATIENCE: Timeout = Timeout::from_us(2000);

/// Requests without an answer, beyond which a thread is left alone.
const MISSED_MAX: usize = 10;

/// Slots and generations of the uids that are guessed.
const SLOTS: u32 = 256;
/// See [`SLOTS`].
const GENERATIONS: u32 = 4;

/// Label of an answer that is a success.
const DONE: u32 = u32::MAX;

/// A thing that a stranger should not get; or the reason why he does not know.
#[derive(Clone, Copy)]
enum Got {
    /// The arguments make no sense, or there is no second thread.
    Nothing = 2,
    /// A name that is told.
    Name,
    /// A server answers.
    Answer,
    /// No thread of a server has refused anything.
    NoRefusal,
    /// A thread answers whose uid was guessed.
    Guess,
    /// An object answers that nobody gave to this program.
    Object,
}

fn main() -> i32 {
    let arguments = rt::arguments();
    // A second thread is a stranger as well.
    let others = arguments.clone();
    let second = spawn(20, move || others.iter().try_for_each(|server| refused(server)));
    let first = arguments.iter().try_for_each(|server| refused(server));
    let second = second.ok().and_then(|thread| thread.join()).unwrap_or(Err(Got::Nothing));
    // Among all others there is the one that this program may use.
    let may_guess = !arguments.iter().any(|server| is_half(server));
    match first.and(second).and_then(|()| if may_guess { guesses() } else { Ok(()) }).and_then(|()| doors()) {
        Ok(()) => 0,
        Err(got) => got as i32,
    }
}

/// Whether an argument is of a program of which another name may be used.
fn is_half(server: &str) -> bool {
    server.contains('/')
}

/// A server refuses whatever it is asked.
fn refused(server: &str) -> Result<(), Got> {
    let (program, name) = server.split_once(['=', '/']).ok_or(Got::Nothing)?;
    let name = Name::new(name).ok_or(Got::Nothing)?;
    let told = names::resolve(rt::home(), &name);
    if told != Err(Failure::Refused(Status::Denied)) {
        return Err(Got::Name);
    }
    let (mut place, mut has_refused) = (0, false);
    while let Ok(Some(entry)) = process::task_at(rt::home(), place) {
        place += 1;
        let mut thread = Uid::NIL;
        while entry.program().as_str() == program
            && let Ok(Some(next)) = process::thread_after(rt::home(), entry.id(), thread)
        {
            thread = next.uid;
            let Asked { refusals, answers } = asked(thread);
            if answers > 0 && !is_half(server) {
                return Err(Got::Answer);
            }
            has_refused |= refusals > 0 && answers == 0;
        }
    }
    if has_refused { Ok(()) } else { Err(Got::NoRefusal) }
}

/// How often a thread has refused what it was asked, and how often not.
#[derive(Default)]
struct Asked {
    refusals: usize,
    answers: usize,
}

/// Asks a thread for everything, but of [`WATCHES`].
fn asked(thread: Uid) -> Asked {
    let (mut asked, mut missed) = (Asked::default(), 0);
    for number in 0..INTERFACES * METHODS {
        if number / METHODS == WATCHES {
            continue;
        }
        match request(thread, number / METHODS, number % METHODS) {
            None => missed += 1,
            Some(answer) => {
                asked.refusals += usize::from(answer.label == Status::Denied as u32);
                asked.answers += usize::from(is_success(&answer));
            }
        }
        if missed > MISSED_MAX {
            break;
        }
    }
    asked
}

fn is_success(answer: &Message) -> bool {
    answer.kind == Kind::Reply && answer.label == DONE
}

fn request(thread: Uid, interface: u32, method: u32) -> Option<Message> {
    // A number of a thread, a length and a text that are possible.
    let words = [1, 8, u64::from_le_bytes(*b"stranger"), 1, 1, 1, 0, 0];
    // Methods are counted from the upper end.
    let label = interface | method.reverse_bits();
    let send = Ipc { to: thread, label, words, send_timeout: PATIENCE, ..Ipc::NONE };
    Ipc { from: thread, receive_timeout: PATIENCE, ..send }.run().ok()?
}

/// Uids that are made up lead to nobody who gives anything.
fn guesses() -> Result<(), Got> {
    let own = sys::myself();
    // The services of `root` and the memory manager are for all programs, so for this one as well.
    let (root, pager) = (rt::home(), rt::own_pager());
    for number in 0..SLOTS * GENERATIONS {
        let uid = Uid::thread(number % SLOTS, number / SLOTS, own.clan());
        if [own, root, pager].contains(&uid) {
            continue;
        }
        // The first methods of interfaces that give something: see `idl/interfaces`.
        for interface in (0..INTERFACES).filter(|&interface| interface != WATCHES) {
            match request(uid, interface, 0) {
                None => break,
                Some(answer) if is_success(&answer) => return Err(Got::Guess),
                Some(_) => {}
            }
        }
    }
    Ok(())
}

/// Numbers in the place of references lead nowhere: nobody has given one to this program.
fn doors() -> Result<(), Got> {
    for number in 0..DOORS_MAX {
        if sys::door_call(number, 0, [0; 8]).is_ok() {
            return Err(Got::Object);
        }
    }
    Ok(())
}
