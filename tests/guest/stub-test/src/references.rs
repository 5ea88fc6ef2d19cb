//! References to objects go through doors, there and back, kept by who sends them or not; an object that is known by one of its
//! interfaces is called by it, and asked for others; and it ends with the last reference, wherever that was.

use crate::mint::Mint::{Chief, Closed, Counted, Named, Office, Register, Teller};
use alloc::format;
use alloc::string::String;
use core::sync::atomic::{AtomicI64, Ordering};
use rt::door::{self, NotNarrowed, Reference};
use rt::println;
use rt::sync::Mutex;
use stub::narrow::NARROW;
use stub::{Anything, Callee, Failure, View, Watch};
use sys::{Error, Fpage};

/// Says whether that failed, as 1.
pub fn test() -> i32 {
    let before = door::numbers_in_use() - door::servers() as u32;
    let outcome = office()
        .and_then(|office| handed_around(&office))
        .and_then(|()| beside_memory(&office()?, &book()?, ROOM.take().ok_or("no room")?))
        .and_then(|()| seen_otherwise())
        .and_then(|()| watched())
        .and_then(|()| hostile());
    let outcome = outcome.and_then(|()| all_gone(before));
    println!("SELFTEST references through doors: {}", if outcome.is_ok() { "ok" } else { "FAILED" });
    if let Err(why) = &outcome {
        println!("  {why}");
    }
    i32::from(outcome.is_err())
}

/// Who serves has room for what is asked here. To be said before the program has its first object.
pub fn make_room() -> sys::Result<()> {
    door::make_room::<Office::Object<Places>>()?;
    door::make_room::<Register::Object<Book>>()
}

/// How many tellers there are.
static TELLERS: AtomicI64 = AtomicI64::new(0);

/// A teller, or a chief: its name, and what it counts.
struct Person(Mutex<(u32, i32)>);

impl Person {
    fn new(name: u32, count: i32) -> Person {
        TELLERS.fetch_add(1, Ordering::Relaxed);
        Person(Mutex::new((name, count)))
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        TELLERS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Teller::Server for Person {
    fn name(&self) -> Result<u32, Failure> {
        Ok(self.0.lock().0)
    }
    fn rename(&self, to: u32) -> Result<(), Failure> {
        self.0.lock().0 = to;
        Ok(())
    }
    fn count(&self) -> Result<i32, Failure> {
        Ok(self.0.lock().1)
    }
    fn add(&self, more: i32, times: u8) -> Result<i32, Failure> {
        let mut own = self.0.lock();
        own.1 += more * i32::from(times);
        Ok(own.1)
    }
    fn reset(&self) -> Result<(), Failure> {
        self.0.lock().1 = 0;
        Ok(())
    }
    fn close(&self) -> Result<(), Teller::CloseError> {
        Err(Closed { since: self.0.lock().1 }.into())
    }
}

impl Chief::Server for Person {
    fn name(&self) -> Result<u32, Failure> {
        Teller::Server::name(self)
    }
    fn rename(&self, to: u32) -> Result<(), Failure> {
        Teller::Server::rename(self, to)
    }
    fn count(&self) -> Result<i32, Failure> {
        Teller::Server::count(self)
    }
    fn add(&self, more: i32, times: u8) -> Result<i32, Failure> {
        Teller::Server::add(self, more, times)
    }
    fn reset(&self) -> Result<(), Failure> {
        Teller::Server::reset(self)
    }
    fn close(&self) -> Result<(), Chief::CloseError> {
        Err(Closed { since: -1 }.into())
    }
    /// A chief rules whoever is called less than it.
    fn rules(&self, whom: Reference<Anything>) -> Result<bool, Failure> {
        let Ok(whom) = whom.narrow::<Named::Client<View>>() else { return Ok(false) };
        Ok(whom.name()? < self.0.lock().0)
    }
}

impl From<Closed> for Teller::CloseError {
    fn from(closed: Closed) -> Self {
        Teller::CloseError::Closed(closed)
    }
}

impl From<Closed> for Chief::CloseError {
    fn from(closed: Closed) -> Self {
        Chief::CloseError::Closed(closed)
    }
}

/// What an office keeps.
type Kept = Option<Reference<Named::Client<View>>>;

/// An office with some places.
#[derive(Default)]
struct Places {
    places: Mutex<[Kept; 3]>,
    bound: Mutex<Option<(String, Reference<Named::Client<View>>)>>,
}

impl Places {
    fn put(&self, place: u32, it: Kept) -> Result<Kept, Failure> {
        let mut places = self.places.lock();
        let place = places.get_mut(place as usize).ok_or(Failure::Refused(77))?;
        Ok(core::mem::replace(place, it))
    }
}

pub fn teller(name: u32, count: i32) -> Result<Reference<Teller::Client<View>>, Failure> {
    Ok(door::serve(Teller::Object(Person::new(name, count))).map_err(Failure::Kernel)?.into())
}

impl Office::Server for Places {
    fn open(&self, name: u32, first: i32) -> Result<Reference<Teller::Client<View>>, Office::OpenError> {
        if first < 0 {
            return Err(Office::OpenError::Closed(Closed { since: first }));
        }
        Ok(teller(name, first)?)
    }
    fn twice(&self, it: Reference<Counted::Client<View>>, more: i32, times: u8) -> Result<i32, Failure> {
        it.add(more, times)?;
        it.add(more, times)
    }
    fn keep(&self, place: u32, it: Reference<Named::Client<View>>) -> Result<(), Failure> {
        self.put(place, Some(it)).map(drop)
    }
    fn swap(
        &self,
        place: u32,
        it: Reference<Counted::Client<View>>,
    ) -> Result<Reference<Named::Client<View>>, Failure> {
        let it = it.narrow().map_err(|_| Failure::Refused(78))?;
        self.put(place, Some(it))?.ok_or(Failure::Refused(79))
    }
    fn exchange(
        &self,
        it: Reference<Teller::Client<View>>,
    ) -> Result<Reference<Teller::Client<View>>, Failure> {
        let (name, count) = (it.name()?, it.count()?);
        teller(name + 1, count + 1)
    }
    fn bind(&self, who: &str, it: Reference<Named::Client<View>>) -> Result<(), Failure> {
        *self.bound.lock() = Some((String::from(who), it));
        Ok(())
    }
    fn resolve(&self, who: &str) -> Result<Reference<Named::Client<View>>, Office::ResolveError> {
        match &*self.bound.lock() {
            Some((name, it)) if name == who => Ok(it.duplicate().map_err(Failure::Kernel)?),
            _ => Err(Office::ResolveError::Closed(Closed { since: who.len() as i32 })),
        }
    }
}

/// A name that does not fit into registers.
const LONG: &str =
    "nobody whom anybody would know by a name that is shorter than what a message has besides its memory";

/// Knows names.
struct Book;

impl Register::Server for Book {
    fn called(&self, it: Reference<Named::Client<View>>) -> Result<&str, Failure> {
        match it.name()? {
            0..100 => Ok("somebody"),
            _ => Ok(LONG),
        }
    }
    fn sum(
        &self,
        it: Reference<Counted::Client<View>>,
        all: &[stub::Text<32>],
        more: i32,
    ) -> Result<i32, Failure> {
        let letters: usize = all.iter().map(|tag| tag.len()).sum();
        it.add(letters as i32, all.len() as u8).map(|sum| sum + more)
    }
}

pub fn office() -> Result<Reference<Office::Client<View>>, String> {
    let office = door::serve(Office::Object(Places::default()));
    office.map(Reference::from).map_err(|error| format!("no office: {error}"))
}

pub fn book() -> Result<Reference<Register::Client<View>>, String> {
    let book = door::serve(Register::Object(Book));
    book.map(Reference::from).map_err(|error| format!("no register: {error}"))
}

/// Something should be like this, and is not.
pub fn same<T: PartialEq + core::fmt::Debug>(what: &str, got: T, expected: T) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{what}: {got:?} instead of {expected:?}")) }
}

pub fn failed(error: impl core::fmt::Debug) -> String {
    format!("{error:?}")
}

pub fn handed_around(office: &Reference<Office::Client<View>>) -> Result<(), String> {
    let first = office.open(10, 100).map_err(failed)?;
    same("name", first.name(), Ok(10))?;
    // A base is first asked for; here it is the second.
    let counted = first.duplicate().map_err(failed)?.narrow::<Counted::Client<View>>().map_err(failed)?;
    for round in 0..20 {
        same("lent", office.twice(&counted, 3, 2), Ok(112 + 12 * round))?;
    }
    same("still there", counted.count(), Ok(340))?;
    match office.open(1, -5) {
        Err(Office::OpenError::Closed(Closed { since: -5 })) => {}
        other => return Err(format!("an office that is closed gives {other:?}")),
    }
    let mut held = first;
    for round in 1..20 {
        office.exchange(&held).map(|other| held = other).map_err(failed)?;
        same("another name", held.name(), Ok(10 + round))?;
    }
    let named = held.narrow::<Named::Client<View>>().map_err(failed)?;
    office.keep(1, named).map_err(failed)?;
    let back = office.swap(1, &counted).map_err(failed)?;
    same("the kept one", back.name(), Ok(29))?;
    let again = office.swap(1, &counted).map_err(failed)?;
    same("the swapped one", again.name(), Ok(10))?;
    same("a place that is not there", office.swap(7, &counted).err(), Some(Failure::Refused(77)))?;
    same("an empty place", office.swap(2, &counted).err(), Some(Failure::Refused(79)))
}

/// Where replies of a register arrive.
static ROOM: stub::Once<Register::Replies> = stub::Once::new(Register::Replies::new());

/// A reference beside what a request or its answer has in memory.
pub fn beside_memory(
    office: &Reference<Office::Client<View>>,
    book: &Reference<Register::Client<View>>,
    room: &'static mut Register::Replies,
) -> Result<(), String> {
    let mut first = teller(30, 3).map_err(failed)?;
    for (round, name) in ["short", LONG, "Bärenhöhle", ""].into_iter().cycle().take(12).enumerate() {
        let named = first.duplicate().map_err(failed)?.narrow::<Named::Client<View>>().map_err(failed)?;
        office.bind(name, named).map_err(failed)?;
        match office.resolve("nobody") {
            Err(Office::ResolveError::Closed(Closed { since: 6 })) => {}
            other => return Err(format!("nobody is {other:?}")),
        }
        let found = office.resolve(name).map_err(failed)?;
        found.rename(31 + round as u32).map_err(failed)?;
        same("the bound one", first.name(), Ok(31 + round as u32))?;
        first = found.narrow().map_err(failed)?;
    }
    for (name, expected) in [(99, "somebody"), (100, LONG)] {
        first.rename(name).map_err(failed)?;
        let named = first.duplicate().map_err(failed)?.narrow::<Named::Client<View>>().map_err(failed)?;
        stub::Inbox::open(&mut *room, |inbox| same("called", book.called(inbox, &named), Ok(expected)))
            .map_err(failed)??;
    }
    let counted = first.narrow::<Counted::Client<View>>().map_err(failed)?;
    let tag = |text: &str| stub::Text::new(text).ok_or("too long");
    for tags in [alloc::vec![tag("abc")?, tag("")?, tag("öä")?], alloc::vec![]] {
        let letters: usize = tags.iter().map(|tag| tag.len()).sum();
        let (before, added) = (counted.count().map_err(failed)?, (letters * tags.len()) as i32);
        same("sum", book.sum(&counted, &tags, 1000), Ok(before + added + 1000))?;
    }
    Ok(())
}

/// An object is what its interface says, and all that this inherits from.
fn seen_otherwise() -> Result<(), String> {
    let chief = door::serve(Chief::Object(Person::new(50, 5))).map_err(failed)?;
    let chief: Reference<Chief::Client<View>> = chief.into();
    let as_teller = chief.duplicate().map_err(failed)?.narrow::<Teller::Client<View>>().map_err(failed)?;
    let as_named = as_teller.duplicate().map_err(failed)?.narrow::<Named::Client<View>>().map_err(failed)?;
    let as_counted =
        as_named.duplicate().map_err(failed)?.narrow::<Counted::Client<View>>().map_err(failed)?;
    same("teller", (as_teller.name(), as_teller.count()), (Ok(50), Ok(5)))?;
    same(
        "teller closes",
        matches!(as_teller.close(), Err(Teller::CloseError::Closed(Closed { since: -1 }))),
        true,
    )?;
    as_named.rename(60).map_err(failed)?;
    same("named", as_named.name(), Ok(60))?;
    same("counted", (as_counted.add(2, 3), as_counted.count()), (Ok(11), Ok(11)))?;
    same("chief", (chief.name(), chief.count()), (Ok(60), Ok(11)))?;
    let low = teller(59, 0).map_err(failed)?.narrow::<Anything>().map_err(failed)?;
    let high = teller(61, 0).map_err(failed)?.narrow::<Anything>().map_err(failed)?;
    same("rules", (chief.rules(&low), chief.rules(&high)), (Ok(true), Ok(false)))?;
    // And back from where nothing is known.
    let NotNarrowed { reference: low, failure } =
        low.narrow::<Chief::Client<View>>().err().ok_or("a teller is taken for a chief")?;
    same("a teller is no chief", failure, Failure::Refused(stub::NO_METHOD))?;
    let low = low.narrow::<Teller::Client<View>>().map_err(failed)?;
    same("a teller again", low.name(), Ok(59))?;
    let as_chief = as_counted.narrow::<Chief::Client<View>>().map_err(failed)?;
    same("a chief again", as_chief.name(), Ok(60))?;
    let office = office()?.narrow::<Anything>().map_err(failed)?;
    same("rules what has no name", as_chief.rules(&office), Ok(false))
}

/// Calls an object as no stub does: methods that want a reference get none, and those that want none get one, with words or beside what
/// is in memory.
pub fn unwanted(object: View, (place, first): (Fpage, u64)) -> Result<(), String> {
    let block = [place.0, first];
    let mut in_memory = [1; 11];
    (in_memory[0], in_memory[1]) = (stub::dope(0, stub::ITEM), stub::address(&block));
    for label in (0..8).map(u32::reverse_bits).chain([NARROW]) {
        let answers = [
            object.call_pages(label, [1; 11], stub::Pages::NONE.hand((place, first))).0,
            object.call_pages(label, in_memory, stub::Pages::NONE.long()).0,
            object.call::<11, true>(label, [3; 11]).0,
        ];
        let died = answers.iter().any(|&answer| answer as u32 == Error::PartnerDied as u32);
        same("somebody died", died, false)?;
    }
    Ok(())
}

/// Counts calls.
pub struct Counter(pub AtomicI64);

impl Watch for Counter {
    type Note = ();
    fn begins(&self, _: stub::Called, _: &[stub::Argument]) -> Result<(), Failure> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    fn ended(&self, _: stub::Called, (): (), _: Result<&[stub::Argument], &dyn core::fmt::Debug>) {}
}

/// References pass somebody who stands in between.
fn watched() -> Result<(), String> {
    static CALLS: Counter = Counter(AtomicI64::new(0));
    let office = alloc::boxed::Box::leak(alloc::boxed::Box::new(office()?));
    let watched = Office::Watched { server: Office::Client { server: office.server }, watch: &CALLS };
    let between: Reference<Office::Client<View>> =
        door::serve(Office::Object(watched)).map_err(failed)?.into();
    let first = between.open(7, 70).map_err(failed)?;
    let counted = first.duplicate().map_err(failed)?.narrow::<Counted::Client<View>>().map_err(failed)?;
    same("lent twice", between.twice(&counted, 1, 1), Ok(72))?;
    between.keep(0, first.narrow().map_err(failed)?).map_err(failed)?;
    let back = between.swap(0, &counted).map_err(failed)?;
    same("kept", (back.name(), CALLS.0.load(Ordering::Relaxed)), (Ok(7), 4))?;
    let _ = between.swap(0, &back.narrow().map_err(failed)?).map_err(failed)?;
    Ok(())
}

/// What no stub sends.
fn hostile() -> Result<(), String> {
    let office = office()?;
    let one = teller(1, 1).map_err(failed)?;
    let raw = office.server;
    let refused = |label: u32, words: [u64; 11]| stub::failure::<View>(raw.call::<11, true>(label, words).0);
    unwanted(raw, one.item(false))?;
    same("no such interface", refused(NARROW, [5; 11]), Failure::Refused(stub::NO_METHOD))?;
    // One that leads nowhere; and bits that nobody was told: some method is called with what is another one's, or none.
    let gone = {
        let (door, revoker) = door::serve_revocable(Teller::Object(Person::new(3, 3))).map_err(failed)?;
        revoker.revoke();
        Reference::<Counted::Client<View>>::from(door)
    };
    same("gone", office.twice(&gone, 1, 1).is_err(), true)?;
    // An object that is gone has not said that it lacks an interface.
    let kept = gone.narrow::<Teller::Client<View>>().err().ok_or("nobody is a teller")?;
    same("gone before it was asked", kept.failure, Failure::Kernel(Error::NoSuch))?;
    same("gone and called", kept.reference.count(), Err(Failure::Kernel(Error::NoSuch)))?;
    let odd = Counted::Client { server: View { first: 0x1234_5678, ..one.server } };
    let _ = odd.add(1, 1);
    same("it lives still", office.open(4, 4).map_err(failed)?.name(), Ok(4))?;
    Ok(())
}

/// Nothing is left but the watched office and the teller there, with a number for each and another one for the reference to it.
pub fn all_gone(before: u32) -> Result<(), String> {
    const LOOKS: u32 = 1000;
    const KEPT: u32 = 4;
    let now = || (TELLERS.load(Ordering::Relaxed), door::numbers_in_use() - door::servers() as u32);
    for _ in 0..LOOKS {
        let (tellers, numbers) = now();
        if tellers == 1 && numbers <= before + KEPT {
            return Ok(());
        }
        let _ = sys::sleep_us(1000);
    }
    Err(format!("tellers and numbers left: {:?}, of {before} before", now()))
}
