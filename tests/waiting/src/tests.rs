//! The tests. A wake that is lost shows as threads that all wait, which loom reports; so does a thread that never ends.

use crate::channel::{NotReceived, channel};
use crate::condvar::Condvar;
use crate::line::Line;
use crate::rwlock::{RawReadersLock, State};
use crate::system::{Mutex, alert, clear_alert, explore, myself};
use core::time::Duration;
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

/// Preemptions in a run: three find what two threads can do to each other at three places.
const PREEMPTIONS: usize = 3;

fn condvar() -> Condvar {
    Condvar { line: Mutex::new(Line::new()) }
}

/// A number, and a way to wait for it.
struct Gate {
    number: Mutex<usize>,
    changed: Condvar,
}

fn gate() -> Arc<Gate> {
    Arc::new(Gate { number: Mutex::new(0), changed: condvar() })
}

impl Gate {
    fn await_number(&self, number: usize) {
        let mut guard = self.number.lock();
        while *guard < number {
            self.changed.wait(&mut guard);
        }
    }
}

#[test]
fn no_wake_is_lost() {
    explore(PREEMPTIONS, || {
        let gate = gate();
        let theirs = gate.clone();
        let waiter = thread::spawn(move || {
            theirs.await_number(1);
            // The wake's alert goes with the wait.
            assert!(!clear_alert());
        });
        *gate.number.lock() += 1;
        gate.changed.notify_one();
        waiter.join().expect("it ends");
    });
}

#[test]
fn each_waiter_is_woken() {
    explore(2, || {
        let gate = gate();
        let waiters = [(); 2].map(|()| {
            let theirs = gate.clone();
            thread::spawn(move || theirs.await_number(1))
        });
        *gate.number.lock() += 1;
        gate.changed.notify_all();
        waiters.into_iter().for_each(|waiter| waiter.join().expect("it ends"));
    });
}

#[test]
fn one_wake_goes_to_one() {
    explore(2, || {
        let gate = gate();
        let waiters = [(); 2].map(|()| {
            let theirs = gate.clone();
            thread::spawn(move || {
                let mut guard = theirs.number.lock();
                while *guard == 0 {
                    theirs.changed.wait(&mut guard);
                }
                *guard -= 1;
            })
        });
        for _ in 0..2 {
            *gate.number.lock() += 1;
            gate.changed.notify_one();
        }
        waiters.into_iter().for_each(|waiter| waiter.join().expect("it ends"));
        assert_eq!(*gate.number.lock(), 0);
    });
}

#[test]
fn a_wait_that_times_out_leaves_nothing() {
    explore(PREEMPTIONS, || {
        let gate = gate();
        let theirs = gate.clone();
        let waiter = thread::spawn(move || {
            let mut guard = theirs.number.lock();
            let was_woken = theirs.changed.wait_for(&mut guard, Duration::from_nanos(1));
            drop(guard);
            assert!(!clear_alert());
            was_woken
        });
        *gate.number.lock() += 1;
        let woke = gate.changed.notify_one();
        assert_eq!(waiter.join().expect("it ends"), woke);
        assert!(!gate.changed.notify_one(), "nobody is in line");
    });
}

#[test]
fn an_alert_for_something_else_survives() {
    explore(PREEMPTIONS, || {
        let gate = gate();
        let theirs = gate.clone();
        let waiter = thread::spawn(move || {
            alert(myself());
            theirs.await_number(1);
            assert!(clear_alert());
        });
        *gate.number.lock() += 1;
        gate.changed.notify_one();
        waiter.join().expect("it ends");
    });
}

/// A number that only those who are inside touch; loom finds who touches it beside a writer.
struct Guarded {
    lock: RawReadersLock,
    value: UnsafeCell<usize>,
}

fn guarded() -> Arc<Guarded> {
    let lock = RawReadersLock { state: Mutex::new(State::new()) };
    Arc::new(Guarded { lock, value: UnsafeCell::new(0) })
}

#[allow(unsafe_code)]
// SAFETY: the lock is what is tested, and loom checks each access.
unsafe impl Sync for Guarded {}

impl Guarded {
    #[allow(unsafe_code)]
    fn write(&self) {
        self.lock.enter_alone();
        // SAFETY: loom panics instead if somebody else is here.
        self.value.with_mut(|value| unsafe { *value += 1 });
        self.lock.leave_alone();
    }

    #[allow(unsafe_code)]
    fn read(&self) -> usize {
        self.lock.enter_shared();
        // SAFETY: loom panics instead if a writer is here.
        let value = self.value.with(|value| unsafe { *value });
        self.lock.leave_shared();
        value
    }
}

#[test]
fn a_writer_is_alone() {
    explore(2, || {
        let guarded = guarded();
        let theirs = [guarded.clone(), guarded.clone()];
        let threads = [
            thread::spawn({
                let guarded = theirs[0].clone();
                move || guarded.write()
            }),
            thread::spawn({
                let guarded = theirs[1].clone();
                move || assert!(guarded.read() <= 2)
            }),
        ];
        guarded.write();
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        assert_eq!(guarded.read(), 2);
    });
}

#[test]
fn readers_are_not_alone() {
    explore(PREEMPTIONS, || {
        let guarded = guarded();
        guarded.lock.enter_shared();
        assert!(guarded.lock.try_enter_shared() && !guarded.lock.try_enter_alone());
        guarded.lock.leave_shared();
        let theirs = guarded.clone();
        let writer = thread::spawn(move || theirs.write());
        guarded.lock.leave_shared();
        assert!(guarded.read() <= 1);
        writer.join().expect("it ends");
        assert!(guarded.lock.try_enter_alone() && !guarded.lock.try_enter_shared());
    });
}

#[test]
fn values_arrive_in_order_and_then_the_end() {
    explore(PREEMPTIONS, || {
        let (sender, receiver) = channel(1);
        let theirs = thread::spawn(move || {
            for number in 0..2 {
                assert_eq!(sender.send(number), Ok(()));
            }
        });
        assert_eq!(receiver.receive(), Ok(0));
        assert_eq!(receiver.receive(), Ok(1));
        assert_eq!(receiver.receive(), Err(NotReceived::Closed));
        theirs.join().expect("it ends");
    });
}

#[test]
fn each_value_goes_to_one() {
    explore(2, || {
        let (sender, receiver) = channel(2);
        let receivers = [receiver.clone(), receiver].map(|mine| thread::spawn(move || mine.sum::<usize>()));
        assert_eq!((sender.send(1), sender.send(2)), (Ok(()), Ok(())));
        drop(sender);
        assert_eq!(receivers.map(|receiver| receiver.join().expect("it ends")).iter().sum::<usize>(), 3);
    });
}

#[test]
fn who_waits_for_room_hears_of_the_end() {
    explore(PREEMPTIONS, || {
        let (sender, receiver) = channel(1);
        assert_eq!(sender.send(1), Ok(()));
        let theirs = thread::spawn(move || sender.send(2));
        drop(receiver);
        assert_eq!(theirs.join().expect("it ends"), Err(2));
    });
}

#[test]
fn a_value_is_received_or_still_there() {
    explore(PREEMPTIONS, || {
        let (sender, receiver) = channel(1);
        let own = receiver.clone();
        let theirs = thread::spawn(move || receiver.receive_for(Duration::from_nanos(1)));
        assert_eq!(sender.send(5), Ok(()));
        match theirs.join().expect("it ends") {
            Ok(value) => assert_eq!((value, own.try_receive()), (5, Err(NotReceived::Empty))),
            Err(why) => assert_eq!((why, own.try_receive()), (NotReceived::Empty, Ok(5))),
        }
    });
}
