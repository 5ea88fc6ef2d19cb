//! A hostile partner of `registers-c`, a program in C: in each message that it sends, the registers beside the message are as no compiler wants them (all
//! exceptions of MXCSR and x87 unmasked, one pending, other rounding, all registers in use, a thread pointer to nowhere), and it looks what
//! it finds in them itself. It is the other's server and client, by ipc and through doors; and it is a thread whose pager is in C.
//!
//! Prints `HOSTILE ok`, or why not. This program is in Rust, so it has no use for these registers itself: see [`registers`].

#![no_std]
#![no_main]

extern crate alloc;

mod registers;

use alloc::format;
use alloc::string::String;
use core::arch::asm;
use core::ptr::with_exposed_provenance;
use registers::{Paint, SECRET, Seen, look, paint};
use rt::api::process::End;
use rt::api::{Failure, Name, names, process};
use rt::door::{self, Door, Object, Room};
use rt::println;
use rt::sync::Mutex;
use sys::{Error, Ipc, Kind, Message, Rights, Uid};

rt::entry!(main);

type Outcome<T = ()> = Result<T, String>;

/// Labels of the other's messages. Those with other labels are echoed, as a stub's answer: a request of the one method has the label 0.
const BEGIN: u32 = 1;
const YOUR_TURN: u32 = 2;

/// Label of a stub's answer that brings a result, by ipc and through doors.
const SUCCESS: u32 = u32::MAX;

/// How often each server of the other is called, and how often its pager and handler are.
const ROUNDS: u64 = 20;

/// Where nothing is mapped.
const NOWHERE: u64 = 0x7000_0000_0000;

/// The first thing that was found and should not have been there.
static WRONG: Mutex<Option<String>> = Mutex::new(None);

fn failed(error: Error) -> String {
    format!("{error:?}")
}

fn refused(failure: Failure) -> String {
    format!("{failure:?}")
}

/// Notes if the partner has not hidden its vector registers.
fn judge(seen: &Seen, place: &str) {
    let why = match seen {
        seen if seen.has(SECRET) => "the secret of the program in C",
        seen if !seen.vectors_are_zero() => "something",
        _ => return,
    };
    WRONG.lock().get_or_insert_with(|| format!("{why} is in the vector registers, {place}"));
}

/// Object behind a door that echoes.
struct Echo;

impl Object for Echo {
    fn call(&self, _label: u32, words: [u64; 8]) -> (u32, [u64; 8]) {
        judge(&look(), "behind a door");
        paint(&Paint::HOSTILE);
        (SUCCESS, words)
    }
}

fn main() -> i32 {
    match exchange() {
        Ok(()) => {
            println!("HOSTILE ok");
            0
        }
        Err(why) => {
            println!("HOSTILE FAILED: {why}");
            1
        }
    }
}

fn exchange() -> Outcome {
    let names = [Name::new("hostile"), Name::new("registers-c")];
    let [Some(own), Some(program)] = names else { return Err("no name".into()) };
    names::register(rt::home(), &own).map_err(refused)?;
    let task = process::start(rt::home(), &program, "").map_err(refused)?;
    let echo = door::export(Echo).map_err(failed)?;
    let rooms = [Room::new().map_err(failed)?, Room::new().map_err(failed)?];
    let begin = Ipc { from: Uid::ANY, window: rooms[0].window(), ..Ipc::NONE }.run().map_err(failed)?;
    let begin = begin.filter(|begin| begin.label == BEGIN).ok_or("no beginning")?;
    let second = Ipc {
        to: begin.sender,
        item: Some(echo.item(Rights::RW)),
        from: Uid::ANY,
        window: rooms[1].window(),
        ..Ipc::NONE
    };
    paint(&Paint::HOSTILE);
    let second = second.run().map_err(failed)?.ok_or("no second message")?;
    let doors = rooms.map(Room::into_door);
    let last = serve(second)?;
    let outcome = call_servers(&begin, &doors).and_then(|()| fault(Uid(begin.words[3])));
    Ipc { to: last.sender, ..Ipc::NONE }.run().map_err(failed)?;
    let end = process::wait(rt::home(), task, u64::MAX).map_err(refused)?.map(|outcome| outcome.end);
    outcome?;
    match (WRONG.lock().take(), end) {
        (Some(why), _) => Err(why),
        (None, Some(End::Exited(0))) => Ok(()),
        (None, end) => Err(format!("the program in C ended so: {end:?}")),
    }
}

/// Serves until the other has enough, whose first message this is.
fn serve(mut message: Message) -> Outcome<Message> {
    loop {
        judge(&look(), "with the server");
        if message.label == YOUR_TURN {
            return Ok(message);
        }
        paint(&Paint::HOSTILE);
        message = sys::ipc_reply_wait(message.sender, SUCCESS, message.words).map_err(failed)?;
    }
}

/// Calls the servers of the other, by ipc and through doors. Of either two, the first one is without a stub and answers with the label 0. All of them give
/// back the number that they get.
fn call_servers(begin: &Message, doors: &[Door; 2]) -> Outcome {
    let labels = [0, SUCCESS];
    for round in 0..ROUNDS {
        let words = [(round as f64 * 1.5).to_bits(), 0, 0, 0, 0, 0, 0, 0];
        for (number, (server, label)) in begin.words[..2].iter().zip(labels).enumerate() {
            paint(&Paint::HOSTILE);
            let answer = sys::ipc_call(Uid(*server), 0, words);
            let seen = look();
            judge(&seen, "after a call");
            if number == 0 && !seen.x87_is_zero() {
                return Err("x87 registers were to be hidden".into());
            }
            let answer = answer.map_err(failed)?;
            if (answer.kind, answer.label, answer.words[0]) != (Kind::Reply, label, words[0]) {
                return Err(format!("a server answers {answer:x?}"));
            }
        }
        for (door, wanted) in doors.iter().zip(labels) {
            paint(&Paint::HOSTILE);
            let answer = door.call(0, words);
            judge(&look(), "after a call through a door");
            let (label, back) = answer.map_err(failed)?;
            if (label, back[0]) != (wanted, words[0]) {
                return Err(format!("a door returns {label:x} and {back:x?}"));
            }
        }
    }
    Ok(())
}

/// Reads at an address, perhaps with the help of a pager: what is in the registers afterwards.
#[inline(never)]
fn touch(address: u64, before: &Paint) -> Seen {
    paint(before);
    // SAFETY: a page appears there, or this thread does not go on.
    unsafe { with_exposed_provenance::<u8>(address as usize).read_volatile() };
    look()
}

/// Raises an exception, or does not: what is in the registers behind it.
#[inline(never)]
fn trap(is_wanted: bool, before: &Paint) -> Seen {
    paint(before);
    if is_wanted {
        // SAFETY: the handler goes on behind the instruction.
        unsafe { asm!("ud2", options(nomem, nostack)) };
    }
    look()
}

/// This thread faults and raises exceptions, with a pager and handler in C.
fn fault(pager: Uid) -> Outcome {
    static THERE: u8 = 1;
    let me = sys::identity();
    let paints = [Paint::OWN, Paint::HOSTILE];
    let mut wrong = None;
    // Code and stack are there.
    for paint in &paints {
        let seen = [touch(&raw const THERE as u64, paint), trap(false, paint)];
        wrong = wrong.or(seen.iter().find_map(|seen| difference(seen, paint, "nothing")));
    }
    sys::thread_set_pager(me.uid, pager, pager).map_err(failed)?;
    for round in 0..ROUNDS {
        let paint = &paints[round as usize % 2];
        let seen = touch(NOWHERE + 4096 * round, paint);
        wrong = wrong.or(difference(&seen, paint, "a page fault"));
        let seen = trap(true, paint);
        wrong = wrong.or(difference(&seen, paint, "an exception"));
    }
    sys::thread_set_pager(me.uid, me.pager, me.handler).map_err(failed)?;
    wrong.map_or(Ok(()), |(what, behind)| Err(format!("{what} changed behind {behind}")))
}

/// Part of the registers that is not as it was, and behind what.
fn difference(seen: &Seen, before: &Paint, behind: &'static str) -> Option<(&'static str, &'static str)> {
    seen.differences(before).iter().find(|(_, differs)| *differs).map(|&(what, _)| (what, behind))
}
