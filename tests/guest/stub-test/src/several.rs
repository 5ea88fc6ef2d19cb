//! Several references to objects in one request, lent or handed away, to the object and through somebody who stands before it. Whatever
//! becomes of the call, no object lives longer than somebody knows of it.

use crate::house::House::{Guest, Lift};
use crate::references::Counter;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::sync::atomic::{AtomicI32, AtomicI64, Ordering};
use rt::door::{self, Reference};
use rt::println;
use rt::sync::Mutex;
use stub::{Anything, Callee, Failure, Interface, View};
use sys::Error;

/// Says whether that failed, as 1.
pub fn test() -> i32 {
    let outcome = straight().and_then(|()| between()).and_then(|()| hostile()).and_then(|()| all_gone());
    println!("SELFTEST several references in a request: {}", if outcome.is_ok() { "ok" } else { "FAILED" });
    if let Err(why) = &outcome {
        println!("  {why}");
    }
    i32::from(outcome.is_err())
}

/// Who serves has room for what is asked here. To be said before the program has its first object.
pub fn make_room() -> sys::Result<()> {
    door::make_room::<Lift::Object<Cabin>>()
}

/// How many guests there are.
static GUESTS: AtomicI64 = AtomicI64::new(0);

/// A guest, on some floor.
struct Person(AtomicI32);

impl Drop for Person {
    fn drop(&mut self) {
        GUESTS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Guest::Server for Person {
    fn floor(&self) -> Result<u32, Failure> {
        Ok(self.0.load(Ordering::Relaxed) as u32)
    }
    fn ride(&self, floors: i32) -> Result<(), Failure> {
        self.0.fetch_add(floors, Ordering::Relaxed);
        Ok(())
    }
}

type Held = Reference<Guest::Client<View>>;

fn guest(floor: i32) -> Result<Held, String> {
    GUESTS.fetch_add(1, Ordering::Relaxed);
    door::serve(Guest::Object(Person(AtomicI32::new(floor)))).map(Held::from).map_err(failed)
}

#[derive(Default)]
struct Cabin(Mutex<Vec<Held>>);

impl Lift::Server for Cabin {
    fn highest(&self, one: Held, other: Held) -> Result<u32, Failure> {
        Ok(one.floor()?.max(other.floor()?))
    }
    fn enter(&self, who: &str, first: Held, second: Held, third: Held, more: i32) -> Result<(), Failure> {
        if who.is_empty() {
            return Err(Failure::Refused(9));
        }
        for (guest, floors) in [&first, &second, &third].into_iter().zip(more..) {
            guest.ride(floors)?;
        }
        self.0.lock().extend([first, third]);
        Ok(())
    }
    fn go(&self, floors: i32) -> Result<u32, Failure> {
        let guests = self.0.lock();
        guests.iter().try_for_each(|guest| guest.ride(floors))?;
        Ok(guests.len() as u32)
    }
    fn leave(&self, one: Held, other: Reference<Anything>, third: Held) -> Result<(), Failure> {
        self.0.lock().clear();
        let other = other.narrow::<Guest::Client<View>>().map_err(|_| Failure::Malformed)?;
        [one, other, third].iter().try_for_each(|guest| guest.ride(100))
    }
}

fn failed(error: impl Debug) -> String {
    format!("{error:?}")
}

fn same<T: PartialEq + Debug>(what: &str, got: T, expected: T) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{what}: {got:?} instead of {expected:?}")) }
}

/// What one does with a lift.
fn ride<S: Callee>(lift: &Lift::Client<S>) -> Result<(), String> {
    let [low, high] = [guest(2)?, guest(7)?];
    same("highest", (lift.highest(&low, &high), lift.highest(&high, &low)), (Ok(7), Ok(7)))?;
    same("the same twice", lift.highest(&low, &low), Ok(2))?;
    let [first, third] = [&low, &high].map(Held::duplicate);
    let second = guest(20)?;
    lift.enter("three of them", first.map_err(failed)?, &second, third.map_err(failed)?, 10)
        .map_err(failed)?;
    same("floors", (low.floor(), second.floor(), high.floor()), (Ok(12), Ok(31), Ok(19)))?;
    same("ride", (lift.go(1), low.floor(), high.floor()), (Ok(2), Ok(13), Ok(20)))?;
    // What is handed away is gone, whatever becomes of the call.
    same("nobody", lift.enter("", guest(1)?, &second, guest(1)?, 1), Err(Failure::Refused(9)))?;
    let anything = second.duplicate().map_err(failed)?.narrow::<Anything>().map_err(failed)?;
    lift.leave(&low, &anything, &high).map_err(failed)?;
    same("left", (low.floor(), second.floor(), high.floor()), (Ok(113), Ok(131), Ok(120)))?;
    same("empty", lift.go(1), Ok(0))
}

fn lift() -> Result<Reference<Lift::Client<View>>, String> {
    door::serve(Lift::Object(Cabin::default())).map(Reference::from).map_err(failed)
}

fn straight() -> Result<(), String> {
    let lift = lift()?;
    (0..20).try_for_each(|_| ride(&lift))
}

fn between() -> Result<(), String> {
    static CALLS: Counter = Counter(AtomicI64::new(0));
    let lift = Box::leak(Box::new(lift()?));
    let watched = Lift::Watched { server: Lift::Client { server: lift.view() }, watch: &CALLS };
    let between = door::serve(Lift::Object(watched)).map_err(failed)?;
    ride(&Lift::Client { server: &between })?;
    same("calls", CALLS.0.load(Ordering::Relaxed), 8)
}

/// What no stub sends: up to three references, to methods that want another number of them, and more or less beside.
fn hostile() -> Result<(), String> {
    let lift = lift()?;
    let one = guest(1)?;
    let (place, first) = one.item(false);
    for label in (0..8).map(u32::reverse_bits) {
        for items in 0..4 {
            for words in [0, 1] {
                let mut block = [0; 12];
                for item in block[words..].chunks_exact_mut(2).take(items) {
                    (item[0], item[1]) = (place.0, first);
                }
                let mut message = [1; stub::WORDS];
                (message[0], message[1]) =
                    (stub::dope(words as u64, items as u64 * stub::ITEM), stub::address(&block));
                let (answer, _) = lift.server.call_pages(label, message, stub::Pages::NONE.long());
                same("somebody died", answer as u32 == Error::PartnerDied as u32, false)?;
            }
        }
    }
    // One of them leads nowhere, or may not be handed on.
    let gone = {
        let person = Person(AtomicI32::new(0));
        GUESTS.fetch_add(1, Ordering::Relaxed);
        let (door, revoker) = door::serve_revocable(Guest::Object(person)).map_err(failed)?;
        revoker.revoke();
        Held::from(door)
    };
    same("gone", (lift.highest(&one, &gone).is_err(), lift.highest(&gone, &one).is_err()), (true, true))?;
    ride(&lift)
}

/// No guest is left.
fn all_gone() -> Result<(), String> {
    const LOOKS: u32 = 1000;
    for _ in 0..LOOKS {
        if GUESTS.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let _ = sys::sleep_us(1000);
    }
    Err(format!("guests left: {}", GUESTS.load(Ordering::Relaxed)))
}
