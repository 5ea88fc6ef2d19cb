//! The tests. Each starts the desks that it wants; they end with it.

use crate::desk::{Remote, Request, SERVERS_MAX, Status, numbers, words};
use crate::objects::{self, ADD, Sum};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use rt::api;
use rt::door::{self, Door};
use rt::thread::{Handle, spawn};
use sys::{Error, Rights, thread_state};

type Outcome = Result<(), String>;
type Case = (&'static str, fn() -> Outcome);

/// All tests.
pub const ALL: [Case; 13] = [
    ("words_and_labels_come_and_go", words_and_labels_come_and_go),
    ("dropped_when_nobody_refers_to_it", dropped_when_nobody_refers_to_it),
    ("references_are_handed_on", references_are_handed_on),
    ("some_may_not_be_handed_on", some_may_not_be_handed_on),
    ("who_ends_refers_to_nothing", who_ends_refers_to_nothing),
    ("dropped_after_the_last_call", dropped_after_the_last_call),
    ("revoked", revoked),
    ("objects_call_back", objects_call_back),
    ("the_pool_grows_and_shrinks", the_pool_grows_and_shrinks),
    ("servers_that_are_busy_stay", servers_that_are_busy_stay),
    ("copies_made_at_once", copies_made_at_once),
    ("copies_survive_aborts", copies_survive_aborts),
    ("nothing_is_lost", nothing_is_lost),
];

/// How long something may take that is to happen by itself.
const PATIENCE_NS: u64 = 20_000_000_000;

macro_rules! check {
    ($condition:expr) => {
        if !$condition {
            return Err(format!("line {}: {}", line!(), stringify!($condition)));
        }
    };
}

macro_rules! check_eq {
    ($left:expr, $right:expr) => {{
        let (left, right) = ($left, $right);
        if left != right {
            return Err(format!("line {}: {left:?} instead of {right:?}", line!()));
        }
    }};
}

fn failed(error: Error) -> String {
    format!("{error:?}")
}

fn start(name: &str) -> Result<Remote, String> {
    Remote::start(name).map_err(|failure: api::Failure| format!("{name} does not start: {failure:?}"))
}

/// Waits until a desk is so.
fn until(remote: &Remote, is_so: impl Fn(&Status) -> bool) -> Outcome {
    let end = rt::time::now_ns() + PATIENCE_NS;
    loop {
        let status = remote.status().map_err(failed)?;
        if is_so(&status) {
            return Ok(());
        }
        if rt::time::now_ns() > end {
            return Err(format!("it stays so: {status:?}"));
        }
        let _ = sys::sleep_us(1000);
    }
}

fn threads<T: Send + 'static>(
    count: usize,
    body: impl Fn(usize) -> T + Send + Sync + 'static,
) -> Result<Vec<Handle<T>>, String> {
    let priority = sys::thread_info(sys::myself()).map_or(1, |info| info.priority);
    let body = Arc::new(body);
    let begin = |number| {
        let body = body.clone();
        spawn(priority, move || body(number)).map_err(failed)
    };
    (0..count).map(begin).collect()
}

fn add(door: &Door, amount: u64) -> sys::Result<u64> {
    door.call(ADD, words(amount)).map(|(_, [sum, ..])| sum)
}

fn words_and_labels_come_and_go() -> Outcome {
    let desk = start("desk")?;
    let sum = desk.get(Request::Sum).map_err(failed)?;
    let sent = [1, u64::MAX, 3, 1 << 63, 5, 6, 7, 8];
    for label in [0, 5, u32::MAX] {
        check_eq!(sum.call(label, sent), Ok((!label, sent.map(|word| !word))));
    }
    for i in 1..=10 {
        check_eq!(add(&sum, 2), Ok(2 * i));
    }
    let other = desk.get(Request::Sum).map_err(failed)?;
    check_eq!((add(&other, 7), add(&sum, 1)), (Ok(7), Ok(21)));
    Ok(())
}

fn dropped_when_nobody_refers_to_it() -> Outcome {
    let desk = start("desk")?;
    let before = desk.status().map_err(failed)?;
    for round in 1..=10 {
        let sum = desk.get(Request::Sum).map_err(failed)?;
        let copy = sum.duplicate().map_err(failed)?;
        drop(sum);
        check_eq!(add(&copy, round), Ok(round));
        check_eq!(desk.status().map_err(failed)?.alive, 1);
        drop(copy);
        // The porter has a number in reserve from now on.
        until(&desk, |now| (now.alive, now.dropped, now.numbers) == (0, round, before.numbers + 1))?;
    }
    Ok(())
}

fn references_are_handed_on() -> Outcome {
    let (desk, other) = (start("desk")?, start("other")?);
    let sum = desk.get(Request::Sum).map_err(failed)?;
    check_eq!(add(&sum, 1), Ok(1));
    other.keep(&sum, Rights::RW).map_err(failed)?;
    check_eq!(other.ask(Request::Add, 10), Ok(11));
    drop(sum);
    check_eq!(other.ask(Request::Add, 10), Ok(21));
    // Home again, to the task that made it: that is a reference like another one.
    let sum = other.get(Request::Pass).map_err(failed)?;
    check_eq!(other.ask(Request::Add, 10), Err(Error::NoSuch));
    desk.keep(&sum, Rights::RW).map_err(failed)?;
    drop(sum);
    check_eq!(desk.ask(Request::Add, 10), Ok(31));
    check_eq!(desk.status().map_err(failed)?.alive, 1);
    desk.ask(Request::Forget, 0).map_err(failed)?;
    until(&desk, |now| now.alive == 0)
}

fn some_may_not_be_handed_on() -> Outcome {
    let (desk, other) = (start("desk")?, start("other")?);
    let sum = desk.get(Request::Sum).map_err(failed)?;
    other.keep(&sum, Rights::R).map_err(failed)?;
    check_eq!(other.ask(Request::Add, 1), Ok(1));
    let nothing = other.get(Request::Pass).map_err(failed)?;
    check_eq!(add(&nothing, 1), Err(Error::NoSuch));
    check_eq!(add(&sum, 1), Ok(2));
    drop(sum);
    // It could not be moved, so the other one has it until it has answered something else.
    other.ask(Request::Forget, 0).map_err(failed)?;
    until(&desk, |now| now.alive == 0)
}

fn who_ends_refers_to_nothing() -> Outcome {
    let (desk, other) = (start("desk")?, start("other")?);
    for _ in 0..20 {
        let sum = desk.get(Request::Sum).map_err(failed)?;
        other.keep(&sum, Rights::RW).map_err(failed)?;
    }
    check_eq!(desk.status().map_err(failed)?.alive, 20);
    drop(other);
    until(&desk, |now| (now.alive, now.dropped) == (0, 20))?;
    // And objects end with who made them.
    let sum = desk.get(Request::Sum).map_err(failed)?;
    drop(desk);
    check_eq!(add(&sum, 1), Err(Error::NoSuch));
    Ok(())
}

fn dropped_after_the_last_call() -> Outcome {
    let desk = start("desk")?;
    let gate = desk.get(Request::Gate).map_err(failed)?;
    let inside = gate.duplicate().map_err(failed)?;
    let callers = threads(1, move |_| inside.call(3, words(5)))?;
    until(&desk, |now| now.inside == 1)?;
    // The caller ends its call, which goes on; nobody has a reference any more.
    sys::thread_abort(callers[0].uid()).map_err(failed)?;
    for caller in callers {
        check_eq!(caller.join(), Some(Err(Error::ReceiveAborted)));
    }
    drop(gate);
    check_eq!(desk.status().map_err(failed)?.alive, 1);
    desk.ask(Request::SetGate, 1).map_err(failed)?;
    until(&desk, |now| (now.alive, now.inside) == (0, 0))
}

fn revoked() -> Outcome {
    let (desk, other) = (start("desk")?, start("other")?);
    let sum = desk.get(Request::Revocable).map_err(failed)?;
    other.keep(&sum, Rights::RW).map_err(failed)?;
    check_eq!((add(&sum, 1), other.ask(Request::Add, 1)), (Ok(1), Ok(2)));
    desk.ask(Request::Revoke, 0).map_err(failed)?;
    check_eq!((add(&sum, 1), other.ask(Request::Add, 1)), (Err(Error::NoSuch), Err(Error::NoSuch)));
    until(&desk, |now| (now.alive, now.dropped) == (0, 1))?;
    // In the task that made it, too, and when the object is gone already.
    let (own, revoker) = objects::revocable().map_err(failed)?;
    let copy = own.duplicate().map_err(failed)?;
    revoker.revoke();
    check_eq!((add(&own, 1), add(&copy, 1)), (Err(Error::NoSuch), Err(Error::NoSuch)));
    none_alive_here()?;
    revoker.revoke();
    Ok(())
}

/// Waits until this task has no object any more.
fn none_alive_here() -> Outcome {
    let end = rt::time::now_ns() + PATIENCE_NS;
    while objects::count().0 != 0 {
        if rt::time::now_ns() > end {
            return Err(format!("it stays so: {:?}", objects::count()));
        }
        let _ = sys::sleep_us(1000);
    }
    Ok(())
}

/// Waits until this task has no object any more, so many were dropped, and so many numbers are in use.
fn none_left_here(dropped: u64, in_use: u64) -> Outcome {
    none_alive_here()?;
    let end = rt::time::now_ns() + PATIENCE_NS;
    while (objects::count().1, numbers()) != (dropped, in_use) {
        if rt::time::now_ns() > end {
            let (now, dropped) = ((objects::count().1, numbers()), (dropped, in_use));
            return Err(format!("it stays so: {now:?} instead of {dropped:?}"));
        }
        let _ = sys::sleep_us(1000);
    }
    Ok(())
}

/// From here through the desk's object to an object of this task, and on through the other desk's.
fn objects_call_back() -> Outcome {
    let (desk, other) = (start("desk")?, start("other")?);
    let own = door::export(Sum::new()).map_err(failed)?;
    let there = desk.forwarder(&own).map_err(failed)?;
    drop(own);
    check_eq!(add(&there, 5), Ok(5));
    let further = other.forwarder(&there).map_err(failed)?;
    drop(there);
    check_eq!((add(&further, 5), objects::count().0), (Ok(10), 1));
    // One end brings about the next.
    drop(further);
    until(&other, |now| now.alive == 0)?;
    until(&desk, |now| now.alive == 0)?;
    none_alive_here()
}

fn the_pool_grows_and_shrinks() -> Outcome {
    const CALLERS: u64 = 9;
    let desk = start("desk")?;
    for _ in 0..2 {
        let gate = Arc::new(desk.get(Request::Gate).map_err(failed)?);
        desk.ask(Request::SetGate, 0).map_err(failed)?;
        let theirs = gate.clone();
        let callers = threads(CALLERS as usize, move |number| theirs.call(3, words(number as u64)))?;
        until(&desk, |now| (now.inside, now.servers) == (SERVERS_MAX, SERVERS_MAX))?;
        // It stays so: that is its limit.
        for _ in 0..20 {
            let _ = sys::sleep_us(10_000);
            let now = desk.status().map_err(failed)?;
            check_eq!((now.inside, now.servers), (SERVERS_MAX, SERVERS_MAX));
        }
        desk.ask(Request::SetGate, 1).map_err(failed)?;
        for (number, caller) in callers.into_iter().enumerate() {
            check_eq!(caller.join(), Some(Ok((3, words(number as u64)))));
        }
        until(&desk, |now| now.servers == 1)?;
        check_eq!(gate.call(3, words(9)), Ok((3, words(9))));
        drop(gate);
        until(&desk, |now| now.alive == 0)?;
    }
    Ok(())
}

/// For longer than idle servers live.
fn servers_that_are_busy_stay() -> Outcome {
    let desk = start("desk")?;
    let gate = Arc::new(desk.get(Request::Gate).map_err(failed)?);
    let sum = desk.get(Request::Sum).map_err(failed)?;
    let theirs = gate.clone();
    let callers = threads(SERVERS_MAX as usize - 1, move |number| theirs.call(3, words(number as u64)))?;
    until(&desk, |now| now.inside == SERVERS_MAX - 1)?;
    // One more, which has something to do often enough, or not.
    for i in 1..=10 {
        check_eq!(add(&sum, 1), Ok(i));
        let _ = sys::sleep_us(200_000);
        let now = desk.status().map_err(failed)?;
        check!(now.inside == SERVERS_MAX - 1 && now.servers >= SERVERS_MAX - 1);
    }
    desk.ask(Request::SetGate, 1).map_err(failed)?;
    for (number, caller) in callers.into_iter().enumerate() {
        // w1 says how often something was aborted there.
        check_eq!(caller.join(), Some(Ok((3, words(number as u64)))));
    }
    until(&desk, |now| now.servers == 1)
}

/// Several threads copy and drop references to one object, which is dropped once, at the end.
fn copies_made_at_once() -> Outcome {
    const THREADS: usize = 4;
    const ROUNDS: u64 = 100;
    let (_, before) = objects::count();
    let numbers = numbers();
    let sum = Arc::new(door::export(Sum::new()).map_err(failed)?);
    let theirs = sum.clone();
    let copiers = threads(THREADS, move |_| {
        let mut copy = theirs.duplicate()?;
        drop(theirs.duplicate()?);
        for _ in 0..ROUNDS {
            copy = copy.duplicate()?;
            add(&copy, 1)?;
        }
        Ok(())
    })?;
    for copier in copiers {
        check_eq!(copier.join(), Some(Ok::<(), Error>(())));
    }
    check_eq!(add(&sum, 0), Ok(THREADS as u64 * ROUNDS));
    check_eq!(objects::count(), (1, before));
    drop(sum);
    none_left_here(before + 1, numbers)
}

/// Somebody aborts whatever a thread waits for while it makes and copies objects.
fn copies_survive_aborts() -> Outcome {
    const ROUNDS: u64 = 200;
    let (_, before) = objects::count();
    let numbers = numbers();
    let copiers = threads(1, |_| {
        for _ in 0..ROUNDS {
            let sum = door::export(Sum::new())?;
            let copy = sum.duplicate()?;
            drop(sum);
            // Of a call the abort is to be seen.
            while let Err(Error::SendAborted | Error::ReceiveAborted) = add(&copy, 1) {}
        }
        Ok(())
    })?;
    let copier = copiers[0].uid();
    let mut aborts = 0u64;
    while objects::count().1 < before + ROUNDS
        && let Ok(info) = sys::thread_info(copier)
    {
        // To abort a page fault would be the end of the program.
        let is_aborted = info.state != thread_state::FAULTING && sys::thread_abort(copier).is_ok();
        aborts += u64::from(is_aborted);
        let _ = sys::sleep_us(50 + 37 * (aborts % 8));
    }
    for copier in copiers {
        check_eq!(copier.join(), Some(Ok::<(), Error>(())));
    }
    none_left_here(before + ROUNDS, numbers)
}

/// As many objects and servers as there ever are: tables, stacks and heap are afterwards as large as they get.
fn fill(desk: &Remote, other: &Remote) -> Outcome {
    const OBJECTS: usize = 150;
    for _ in 0..OBJECTS {
        other.keep(&desk.get(Request::Sum).map_err(failed)?, Rights::RW).map_err(failed)?;
    }
    let gate = desk.get(Request::Gate).map_err(failed)?;
    let callers = threads(SERVERS_MAX as usize, {
        let gate = Arc::new(gate);
        move |_| gate.call(3, words(0)).is_ok()
    })?;
    until(desk, |now| now.inside == SERVERS_MAX)?;
    desk.ask(Request::SetGate, 1).map_err(failed)?;
    for caller in callers {
        check_eq!(caller.join(), Some(true));
    }
    other.ask(Request::Forget, 0).map_err(failed)?;
    until(desk, |now| (now.alive, now.servers) == (0, 1))
}

/// Many objects, each of which is copied, called, kept elsewhere, and dropped, by several threads at once.
fn nothing_is_lost() -> Outcome {
    const THREADS: usize = 3;
    const ROUNDS: usize = 1500;
    /// Frames that a task may use more afterwards: a stack may have become deeper. A node of 64 bytes that is lost for each
    /// object would be 70.
    const FRAMES_MORE: u64 = 8;
    let (desk, other) = (Arc::new(start("desk")?), Arc::new(start("other")?));
    fill(&desk, &other)?;
    let statuses = || Ok::<_, Error>([desk.status()?, other.status()?]);
    let before = statuses().map_err(failed)?;
    let (theirs, elsewhere) = (desk.clone(), other.clone());
    let users = threads(THREADS, move |thread| {
        for round in 0..ROUNDS {
            let sum = theirs.get(Request::Sum)?;
            let copy = sum.duplicate()?;
            add(&sum, 1)?;
            drop(sum);
            if (round + thread) % 3 == 0 {
                elsewhere.keep(&copy, Rights::RW)?;
            }
            add(&copy, 1)?;
            if round % 16 == thread {
                elsewhere.ask(Request::Forget, 0)?;
            }
        }
        Ok(())
    })?;
    for user in users {
        check_eq!(user.join(), Some(Ok::<(), Error>(())));
    }
    other.ask(Request::Forget, 0).map_err(failed)?;
    until(&desk, |now| (now.alive, now.servers, now.numbers) == (0, 1, before[0].numbers))?;
    let after = statuses().map_err(failed)?;
    check_eq!(after[0].dropped, before[0].dropped + (THREADS * ROUNDS) as u64);
    for (after, before) in after.iter().zip(&before) {
        check_eq!(after.numbers, before.numbers);
        check!(after.frames <= before.frames + FRAMES_MORE);
    }
    Ok(())
}
