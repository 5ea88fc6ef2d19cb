//! The tests.

use crate::{Outcome, check};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use rt::api::process::{self, ARGUMENTS_LEN_MAX};
use rt::api::{Failure, Name, Status};
use rt::sync::channel::{NotReceived, NotSent, channel};
use rt::sync::{Condvar, Mutex, RwLock};
use rt::sys::{self, Uid};
use rt::thread::{Handle, spawn};
use rt::{environment, random, time};

/// A test, and its name.
type Case = (&'static str, fn() -> Outcome);

/// All tests.
pub const ALL: [Case; 10] = [
    ("condition_variables_wake", condition_variables_wake),
    ("waits_end_in_time", waits_end_in_time),
    ("alerts_for_something_else_stay", alerts_for_something_else_stay),
    ("readers_share_and_writers_do_not", readers_share_and_writers_do_not),
    ("channels_keep_order_and_end", channels_keep_order_and_end),
    ("channels_share_work", channels_share_work),
    ("a_full_channel_makes_senders_wait", a_full_channel_makes_senders_wait),
    ("random_numbers_are_spread", random_numbers_are_spread),
    ("nothing_is_set_unless_somebody_does", nothing_is_set_unless_somebody_does),
    ("a_program_without_authority_starts_nothing", a_program_without_authority_starts_nothing),
];

/// Like the first thread's.
const PRIORITY: u8 = 32;
const THREADS: usize = 4;
const TURNS: usize = 500;

fn start<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> Result<Handle<T>, &'static str> {
    spawn(PRIORITY, body).map_err(|_| "a thread cannot be made")
}

/// Two groups take turns at one number: every wake has to arrive.
fn condition_variables_wake() -> Outcome {
    let turn = Arc::new((Mutex::new(0), Condvar::new()));
    let mut threads = Vec::new();
    for own in 0..THREADS {
        let turn = turn.clone();
        threads.push(start(move || {
            let (number, changed) = &*turn;
            for _ in 0..TURNS {
                let mut number = number.lock();
                while *number % THREADS != own {
                    changed.wait(&mut number);
                }
                *number += 1;
                changed.notify_all();
            }
        })?);
    }
    for thread in threads {
        check!(thread.join().is_some());
    }
    check!(*turn.0.lock() == THREADS * TURNS);
    check!(!turn.1.notify_one());
    Ok(())
}

fn waits_end_in_time() -> Outcome {
    let (number, changed) = (Mutex::new(()), Condvar::new());
    let patience = Duration::from_millis(3);
    let begin = time::now();
    check!(!changed.wait_for(&mut number.lock(), patience));
    check!(time::now() - begin >= patience);
    let (sender, receiver) = channel::<u8>(1);
    let begin = time::now();
    check!(receiver.receive_for(patience) == Err(NotReceived::Empty));
    check!(time::now() - begin >= patience);
    drop(sender);
    check!(receiver.receive_for(patience) == Err(NotReceived::Closed));
    Ok(())
}

/// A server that waits in a condition variable must not lose its caller's alert, nor be kept from sleeping by it.
fn alerts_for_something_else_stay() -> Outcome {
    let (number, changed) = (Mutex::new(()), Condvar::new());
    for is_alerted in [true, false] {
        if is_alerted {
            check!(sys::alert(Uid::NIL) == Ok(false));
        }
        check!(!changed.wait_for(&mut number.lock(), Duration::from_millis(2)));
        check!(sys::clear_alert(Uid::NIL) == Ok(is_alerted));
    }
    Ok(())
}

fn readers_share_and_writers_do_not() -> Outcome {
    let table = Arc::new(RwLock::new((0usize, 0usize)));
    let inside = Arc::new(AtomicUsize::new(0));
    {
        let (first, second) = (table.read(), table.try_read());
        check!(second.is_some() && table.try_write().is_none() && first.0 == 0);
    }
    let mut threads = Vec::new();
    for own in 0..THREADS {
        let (table, inside) = (table.clone(), inside.clone());
        threads.push(start(move || {
            let mut is_right = true;
            for turn in 0..TURNS {
                if (turn + own) % 4 == 0 {
                    let mut table = table.write();
                    is_right &= inside.fetch_add(1, Ordering::AcqRel) == 0;
                    table.0 += 1;
                    let _ = sys::thread_switch(Uid::NIL);
                    table.1 += 1;
                    inside.fetch_sub(1, Ordering::AcqRel);
                } else {
                    let table = table.read();
                    is_right &= table.0 == table.1 && inside.load(Ordering::Acquire) == 0;
                }
            }
            is_right
        })?);
    }
    for thread in threads {
        check!(thread.join() == Some(true));
    }
    check!(*table.read() == (THREADS * TURNS / 4, THREADS * TURNS / 4));
    Ok(())
}

fn channels_keep_order_and_end() -> Outcome {
    let (sender, receiver) = channel(3);
    let thread = start(move || (0..TURNS).all(|number| sender.send(number).is_ok()))?;
    check!(receiver.eq(0..TURNS));
    check!(thread.join() == Some(true));
    let (sender, receiver) = channel(1);
    drop(receiver);
    check!(sender.send(5) == Err(5) && sender.try_send(6) == Err(NotSent::Closed(6)));
    Ok(())
}

fn channels_share_work() -> Outcome {
    let (sender, work) = channel(2);
    let (done, results) = channel(usize::MAX);
    let mut threads = Vec::new();
    for _ in 0..THREADS {
        let (work, done) = (work.clone(), done.clone());
        threads.push(start(move || {
            work.map(|number: usize| done.send(number * number)).all(|sent| sent.is_ok())
        })?);
    }
    drop((work, done));
    for number in 0..TURNS {
        check!(sender.send(number) == Ok(()));
    }
    drop(sender);
    check!(results.sum::<usize>() == (0..TURNS).map(|number| number * number).sum());
    for thread in threads {
        check!(thread.join() == Some(true));
    }
    Ok(())
}

fn a_full_channel_makes_senders_wait() -> Outcome {
    let (sender, receiver) = channel(1);
    check!(sender.try_send(1) == Ok(()) && sender.try_send(2) == Err(NotSent::Full(2)));
    let sent = Arc::new(AtomicUsize::new(0));
    let theirs = sent.clone();
    let thread = start(move || {
        let outcome = sender.send(2);
        theirs.store(1, Ordering::Release);
        outcome
    })?;
    time::sleep(Duration::from_millis(2));
    check!(sent.load(Ordering::Acquire) == 0);
    check!(receiver.receive() == Ok(1) && receiver.receive() == Ok(2));
    check!(thread.join() == Some(Ok(())));
    check!(receiver.try_receive() == Err(NotReceived::Closed));
    Ok(())
}

fn random_numbers_are_spread() -> Outcome {
    // The machine of the tests has them.
    let random = random::generator().map_err(|reason| alloc::format!("{reason}"))?;
    let mut counts = [0usize; 8];
    for _ in 0..8000 {
        counts[random.below(8) as usize] += 1;
    }
    // Ten standard deviations: no seed comes here.
    check!(counts.iter().all(|count| (700..1300).contains(count)));
    check!(random.below(0) == 0 && random.below(1) == 0);
    let mut bytes = [[0; 32]; 2];
    bytes.iter_mut().for_each(|bytes| random.fill(bytes));
    check!(bytes[0] != bytes[1] && random.number() != random.number());
    check!(random.sources().processor);
    Ok(())
}

fn nothing_is_set_unless_somebody_does() -> Outcome {
    check!(environment::variables().is_empty() && environment::variable("LOG").is_none());
    Ok(())
}

/// A program that may start nothing leaves no arguments in `root` either, however many it brings.
fn a_program_without_authority_starts_nothing() -> Outcome {
    let name = Name::new("hello-rust").ok_or("it is a name")?;
    let long = "x".repeat(ARGUMENTS_LEN_MAX);
    for text in ["", "x", &long] {
        check!(process::start(rt::home(), &name, text) == Err(Failure::Refused(Status::Denied)));
    }
    let longer = long + "x";
    check!(process::start(rt::home(), &name, &longer) == Err(Failure::Refused(Status::TooLarge)));
    Ok(())
}
