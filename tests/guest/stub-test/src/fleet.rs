//! References to objects as parts of something, and several in an answer: to an object, through somebody who stands before it, and to and from who lies.
//! No object lives, whatever becomes of a call, longer than somebody knows of it.

use crate::fleet_door::Harbour::{Berth, Closed, Port, Ship, Sign, Taken};
use crate::references::{Counter, failed, same};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use rt::door::{self, Door, Reference};
use rt::println;
use rt::sync::Mutex;
use stub::{Blank, Callee, Failure, Hold, Inbox, Interface, List, Text, View};
use sys::{Error, Fpage, Rights};

/// Says whether that failed, as 1.
pub fn test() -> i32 {
    let outcome = straight()
        .and_then(|()| between())
        .and_then(|()| hostile())
        .and_then(|()| nonsense())
        .and_then(|()| all_gone());
    println!("SELFTEST references within values: {}", if outcome.is_ok() { "ok" } else { "FAILED" });
    if let Err(why) = &outcome {
        println!("  {why}");
    }
    i32::from(outcome.is_err())
}

/// Gives servers room for what is asked here. To be said before the program has its first object.
pub fn make_room() -> sys::Result<()> {
    door::make_room::<Port::Object<Docks>>()?;
    door::make_room::<Liar>()
}

/// Number of ships.
static SHIPS: AtomicI64 = AtomicI64::new(0);

/// A ship, with some cargo.
struct Hull(AtomicI64);

impl Drop for Hull {
    fn drop(&mut self) {
        SHIPS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Ship::Server for Hull {
    fn cargo(&self) -> Result<u32, Failure> {
        Ok(self.0.load(Ordering::Relaxed) as u32)
    }
    fn load(&self, more: i32) -> Result<(), Failure> {
        self.0.fetch_add(more.into(), Ordering::Relaxed);
        Ok(())
    }
}

type Held = Reference<Ship::Client<View>>;

fn ship(cargo: i64) -> Result<Held, Failure> {
    SHIPS.fetch_add(1, Ordering::Relaxed);
    door::serve(Ship::Object(Hull(AtomicI64::new(cargo)))).map(Held::from).map_err(Failure::Kernel)
}

fn another(ship: &Held) -> Result<Held, Failure> {
    if ship.is_nobody() { Ok(Held::NOBODY) } else { ship.duplicate().map_err(Failure::Kernel) }
}

fn keeper(name: &str) -> Result<Text<80>, Failure> {
    Text::new(name).ok_or(Failure::TooLong)
}

/// Ships of the last list, and the one that is moored.
#[derive(Default)]
struct Docks {
    fleet: Mutex<Vec<Held>>,
    moored: Mutex<Option<Held>>,
}

impl Port::Relay for Docks {
    fn load(&self, all: Vec<Held>, more: i32) -> Result<u32, Failure> {
        let mut sum = 0;
        for ship in all.iter().filter(|ship| !ship.is_nobody()) {
            ship.load(more)?;
            sum += ship.cargo()?;
        }
        *self.fleet.lock() = all;
        Ok(sum)
    }

    fn moor<'a>(
        &'a self,
        _: &'a mut Hold<'a, Port::Replies>,
        wanted: Berth,
    ) -> Result<Berth, Port::MoorError> {
        match wanted.number {
            0 => Err(Port::MoorError::Closed(Closed { since: 1990 })),
            1..100 => {
                let before = self.moored.lock().replace(wanted.moored).unwrap_or(Held::NOBODY);
                Ok(Berth { number: wanted.number + 1, moored: before, keeper: wanted.keeper })
            }
            _ => {
                let here = Berth { number: 7, moored: Held::NOBODY, keeper: keeper("nobody")? };
                Err(Port::MoorError::Taken(Taken { by: wanted.moored, place: here }))
            }
        }
    }

    fn build<'a>(
        &'a self,
        hold: &'a mut Hold<'a, Port::Replies>,
        cargo: u32,
    ) -> Result<(Held, Held, &'a str), Failure> {
        Ok((ship(cargo.into())?, ship(1)?, hold.keep(format!("with {cargo}").as_str())?))
    }

    fn swap<'a>(
        &'a self,
        _: &'a mut Hold<'a, Port::Replies>,
        all: List<Berth, 3>,
        one: Held,
        convoy: List<Held, 4>,
    ) -> Result<(List<Berth, 3>, List<Held, 4>), Failure> {
        let mut ships: Vec<Held> = convoy.into_iter().collect();
        ships.reverse();
        ships.push(one);
        let convoy = List::of(ships).ok_or(Failure::TooLong)?;
        let mut berths: Vec<Berth> = all.into_iter().collect();
        berths.iter_mut().for_each(|berth| berth.number += 1);
        Ok((List::of(berths).ok_or(Failure::TooLong)?, convoy))
    }

    fn signal<'a>(
        &'a self,
        _: &'a mut Hold<'a, Port::Replies>,
        sign: Sign,
        who: &str,
    ) -> Result<Sign, Failure> {
        Ok(match sign {
            Sign::one(ship) => Sign::several(3, List::of([another(&ship)?, ship]).ok_or(Failure::TooLong)?),
            Sign::several(_, ships) => Sign::one(ships.into_iter().next().ok_or(Failure::Refused(5))?),
            Sign::words(number, _) => Sign::words(number, Text::new(who).ok_or(Failure::TooLong)?),
        })
    }

    fn list<'a>(&'a self, _: &'a mut Hold<'a, Port::Replies>) -> Result<Vec<Held>, Failure> {
        self.fleet.lock().iter().map(another).collect()
    }

    fn first(&self, number: u32) -> Result<Held, Failure> {
        self.fleet.lock().get(number as usize).map_or(Err(Failure::Refused(4)), another)
    }

    fn pass(&self, convoy: List<Held, 4>) -> Result<(), Failure> {
        *self.fleet.lock() = Vec::new();
        convoy.iter().try_for_each(|ship| ship.load(1000))
    }
}

/// Calls of all methods of a port.
pub fn call_at<S: Callee>(port: &Port::Client<S>, inbox: &mut Inbox<Port::Replies>) -> Result<(), String> {
    let ships = [1, 2, 3].map(ship);
    let [first, second, third] = ships;
    let (first, second, third) = (first.map_err(failed)?, second.map_err(failed)?, third.map_err(failed)?);
    lists(port, inbox, [&first, &second, &third])?;
    structs(port, inbox, [&first, &second])?;
    let (built, tug, name) = port.build(inbox, 77).map_err(failed)?;
    same("built", (built.cargo(), tug.cargo(), name), (Ok(77), Ok(1), "with 77"))?;
    signs(port, inbox, [&first, &second])?;
    let convoy = [another(&first).map_err(failed)?, another(&third).map_err(failed)?];
    let before = (first.cargo().map_err(failed)?, third.cargo().map_err(failed)?);
    port.pass(&convoy).map_err(failed)?;
    same("passed", (first.cargo(), third.cargo()), (Ok(before.0 + 1000), Ok(before.1 + 1000)))?;
    same("nothing is kept", port.list(inbox).map(|all| all.len()).map_err(failed)?, 0)
}

/// Lists of references, with one among them that is none, and as many as a message holds.
fn lists<S: Callee>(
    port: &Port::Client<S>,
    inbox: &mut Inbox<Port::Replies>,
    [first, second, third]: [&Held; 3],
) -> Result<(), String> {
    let all = [another(first), another(second), Ok(Held::NOBODY), another(third)];
    let all: Result<Vec<Held>, Failure> = all.into_iter().collect();
    same("load", port.load(&all.map_err(failed)?, 10), Ok(36))?;
    let back = port.list(inbox).map_err(failed)?;
    let there: Vec<bool> = back.iter().map(|ship| !ship.is_nobody()).collect();
    same("those that are there", &there[..], &[true, true, false, true][..])?;
    same("the last", back[3].cargo(), Ok(13))?;
    same("the first", port.first(0).map_err(failed)?.cargo(), Ok(11))?;
    same("the next to none", port.first(4).err(), Some(Failure::Refused(4)))?;
    for (count, expected) in [(0, Ok(0)), (16, Ok(16 * 11)), (17, Err(Failure::TooLong))] {
        let many: Result<Vec<Held>, Failure> = (0..count).map(|_| another(first)).collect();
        let sum = port.load(&many.map_err(failed)?, 0);
        same("as many as there may be", sum, expected)?;
        let kept = port.list(inbox).map_err(failed)?;
        same("as many come back", kept.len(), if count == 17 { 16 } else { count })?;
    }
    Ok(())
}

/// Structs with references, one by one and in lists, and exceptions with both.
fn structs<S: Callee>(
    port: &Port::Client<S>,
    inbox: &mut Inbox<Port::Replies>,
    [first, second]: [&Held; 2],
) -> Result<(), String> {
    let berth = |number, ship: &Held| {
        Ok::<_, Failure>(Berth { number, moored: another(ship)?, keeper: keeper("Ågot")? })
    };
    let [one, other] = [berth(1, first).map_err(failed)?, berth(5, second).map_err(failed)?];
    // Somebody may have moored here before.
    drop(port.moor(inbox, &one).map_err(failed)?);
    let was = port.moor(inbox, &other).map_err(failed)?;
    same("moored before", (was.number, was.moored.cargo(), &*was.keeper), (6, first.cargo(), "Ågot"))?;
    match port.moor(inbox, &Berth { number: 0, moored: Held::NOBODY, keeper: keeper("").map_err(failed)? }) {
        Err(Port::MoorError::Closed(Closed { since: 1990 })) => {}
        other => return Err(format!("a closed port: {other:?}")),
    }
    match port.moor(inbox, &berth(100, second).map_err(failed)?) {
        Err(Port::MoorError::Taken(Taken { by, place })) => {
            same("taken", (by.cargo(), place.number, place.moored.is_nobody()), (second.cargo(), 7, true))?;
        }
        other => return Err(format!("a berth that is taken: {other:?}")),
    }
    let convoy = [another(first).map_err(failed)?, another(second).map_err(failed)?];
    let given = ship(500).map_err(failed)?;
    let (berths, back) = port.swap(inbox, &[one, other], given, &convoy).map_err(failed)?;
    same("berths", (berths.len(), berths[1].number, berths[1].moored.cargo()), (2, 6, second.cargo()))?;
    let cargo: Vec<_> = back.iter().map(|ship| ship.cargo()).collect();
    same("a convoy turned round", &cargo[..], &[second.cargo(), first.cargo(), Ok(500)][..])
}

/// Unions with one, several and none.
fn signs<S: Callee>(
    port: &Port::Client<S>,
    inbox: &mut Inbox<Port::Replies>,
    [first, second]: [&Held; 2],
) -> Result<(), String> {
    match port.signal(inbox, &Sign::one(another(first).map_err(failed)?), "é").map_err(failed)? {
        Sign::several(3, ships) if ships.len() == 2 => {
            same("twice the same", ships[1].cargo(), first.cargo())?;
        }
        other => return Err(format!("signals {other:?}")),
    }
    let both = [another(second).map_err(failed)?, another(first).map_err(failed)?];
    match port.signal(inbox, &Sign::several(2, List::of(both).ok_or("too many")?), "a").map_err(failed)? {
        Sign::one(ship) => same("the first of them", ship.cargo(), second.cargo())?,
        other => return Err(format!("signals {other:?}")),
    }
    match port.signal(inbox, &Sign::words(9, Text::BLANK), "wörds").map_err(failed)? {
        Sign::words(9, words) => same("words", &*words, "wörds"),
        other => Err(format!("signals {other:?}")),
    }
}

/// A port.
pub fn port() -> Result<Reference<Port::Client<View>>, String> {
    door::serve(Port::Object(Docks::default())).map(Reference::from).map_err(failed)
}

/// With an inbox, which is too large for a stack.
pub fn with_inbox<T>(with: impl FnOnce(&mut Inbox<Port::Replies>) -> Result<T, String>) -> Result<T, String> {
    let mut memory = alloc::vec![0u128; size_of::<Port::Replies>().div_ceil(16)];
    let replies = Port::Replies::in_place(&mut memory).ok_or("there is enough")?;
    Inbox::open(replies, with).map_err(failed)?
}

fn straight() -> Result<(), String> {
    let port = port()?;
    with_inbox(|inbox| (0..10).try_for_each(|_| call_at(&port, inbox)))
}

fn between() -> Result<(), String> {
    static CALLS: Counter = Counter(AtomicI64::new(0));
    let port = Box::leak(Box::new(port()?));
    let watched = Port::Watched { server: Port::Client { server: port.view() }, watch: &CALLS };
    let between = door::serve(Port::Object(watched)).map_err(failed)?;
    with_inbox(|inbox| (0..3).try_for_each(|_| call_at(&Port::Client { server: &between }, inbox)))?;
    same("calls", CALLS.0.load(Ordering::Relaxed) > 0, true)?;
    // Ships that it keeps go, since it stays itself.
    let _ = port.pass(&[]);
    with_inbox(|inbox| {
        let none = Berth { number: 1, moored: Held::NOBODY, keeper: keeper("").map_err(failed)? };
        port.moor(inbox, &none).map(drop).map_err(failed)
    })
}

fn hostile() -> Result<(), String> {
    let port = port()?;
    hostile_to(&port)?;
    with_inbox(|inbox| call_at(&port, inbox))
}

/// Sends as no stub does: other numbers of references than the words beside them claim, and words that lie.
pub fn hostile_to(port: &Reference<Port::Client<View>>) -> Result<(), String> {
    let one = ship(1).map_err(failed)?;
    let (place, first) = one.item(false);
    let claims: [&[u64]; 8] = [
        &[],
        &[0],
        &[1, 0x01],
        // Two elements, of which the first is none; a byte that is neither; elements without end.
        &[2, 0x0100],
        &[1, 0x02],
        &[u32::MAX as u64, u64::MAX],
        &[3, 0x0001_0101],
        &[0x0101_0101_0101_0101, 0x0101_0101_0101_0101],
    ];
    for label in (0..16u32).map(|number| number << 28) {
        for items in 0..4 {
            for words in claims {
                let mut block = [0; 24];
                block[..words.len()].copy_from_slice(words);
                for item in block[words.len()..].chunks_exact_mut(2).take(items) {
                    (item[0], item[1]) = (place.0, first);
                }
                let mut message = [1; stub::WORDS];
                let dope = stub::dope(words.len() as u64, items as u64 * stub::ITEM);
                (message[0], message[1]) = (dope, stub::address(&block));
                let (answer, _) = port.server.call_pages(label, message, stub::Pages::NONE.long());
                same("somebody died", answer as u32 == Error::PartnerDied as u32, false)?;
            }
        }
    }
    // One of them leads nowhere.
    let gone = {
        SHIPS.fetch_add(1, Ordering::Relaxed);
        let hull = Ship::Object(Hull(AtomicI64::new(0)));
        let (door, revoker) = door::serve_revocable(hull).map_err(failed)?;
        revoker.revoke();
        Held::from(door)
    };
    let all = [another(&one).map_err(failed)?, gone];
    same("gone", port.load(&all, 1).is_err(), true)?;
    wrong_kind(port)
}

/// A page in the place of a reference does not arrive; an object that has another interface does, and its answers make no sense to who calls it.
fn wrong_kind(port: &Reference<Port::Client<View>>) -> Result<(), String> {
    let block = [1, 0x01, Fpage::memory(0, 12, Rights::R).0, 0];
    let mut message = [1; stub::WORDS];
    (message[0], message[1]) = (stub::dope(2, stub::ITEM), stub::address(&block));
    let (answer, _) = port.server.call_pages(0, message, stub::Pages::NONE.long());
    same("a page", answer as u32, Error::NoWindow as u32)?;
    let other = Held::from(liar()?);
    let _ = port.load(&[another(&other).map_err(failed)?, other], 1);
    Ok(())
}

/// An object whose answers claim other references than they bring.
struct Liar(Held, AtomicUsize);

/// Its answer, to whatever it is asked.
struct Lie<const LONG: bool>;

impl stub::door::Object for Liar {
    type Table = [stub::door::Entry; 4];
    const TABLE: &'static [stub::door::Entry; 4] = &[
        stub::door::method::<Lie<false>>(),
        stub::door::method::<Lie<false>>(),
        stub::door::method::<Lie<true>>(),
        stub::door::method::<Lie<true>>(),
    ];
    const SHIFT: u32 = 63;
    const ROOM: Option<&'static [u32]> = Some(&[]);
}

/// Number of its answers.
const LIES: usize = 8 * 6 * 3;

impl<const LONG: bool> stub::door::Handler for Lie<LONG> {
    type Object = Liar;
    const IN: usize = 0;
    const OUT: usize = 2;
    const LONG: bool = LONG;
    type Frame = stub::door::Frame<stub::door::Place<()>, [u64; 24]>;
    extern "sysv64" fn handle(
        _: u64,
        _: u64,
        behind: &stub::door::Behind<Liar>,
        frame: &mut Self::Frame,
        _: u64,
        _: u64,
    ) -> stub::door::Answer {
        let Liar(ship, turn) = &behind.object;
        let turn = turn.fetch_add(1, Ordering::Relaxed);
        let words: &[u64] = match turn % 8 {
            0 => &[],
            1 => &[0],
            2 => &[1, 0x01],
            3 => &[2, 0x0100],
            4 => &[1, 0x02],
            5 => &[u32::MAX as u64, u64::MAX],
            6 => &[3, 0x0001_0101],
            _ => &[0x0101_0101_0101_0101, 0x0101_0101_0101_0101],
        };
        let items = turn / 8 % 6;
        let label = [u32::MAX, 1, 2][turn / 48 % 3];
        frame.outgoing = [0; 24];
        frame.outgoing[..words.len()].copy_from_slice(words);
        let (place, first): (Fpage, u64) = ship.item(false);
        for item in frame.outgoing[words.len()..].chunks_exact_mut(2).take(items) {
            (item[0], item[1]) = (place.0, first);
        }
        let dope = stub::dope(words.len() as u64, items as u64 * stub::ITEM);
        let mut out = [0; stub::WORDS];
        (out[0], out[1]) = (dope, stub::address(&frame.outgoing));
        stub::door::Answer::label::<2>(frame, &out, label).with_memory()
    }
}

/// Somebody who lies.
pub fn liar() -> Result<Door, String> {
    door::serve(Liar(ship(1).map_err(failed)?, AtomicUsize::new(0))).map_err(failed)
}

/// Calls somebody who lies: each ends, and what came with the answer is the program's or gone.
fn nonsense() -> Result<(), String> {
    let liar = liar()?;
    let port = Port::Client { server: &liar };
    let numbers = door::numbers_in_use();
    with_inbox(|inbox| {
        let berth = Berth { number: 1, moored: Held::NOBODY, keeper: keeper("").map_err(failed)? };
        for _ in 0..LIES {
            let list = port.list(inbox);
            same(
                "what it lists can be called",
                list.iter().flatten().any(|it| it.cargo().is_err() && !it.is_nobody()),
                false,
            )?;
            drop(list);
            drop(port.moor(inbox, &berth));
            drop(port.build(inbox, 1));
            drop(port.signal(inbox, &Sign::words(9, Text::BLANK), "who"));
            let _ = port.load(&[], 1);
        }
        Ok(())
    })?;
    // Threads that serve may come meanwhile, each with a few; what is forgotten would be hundreds.
    same("numbers that are forgotten", door::numbers_in_use() > numbers + 64, false)
}

/// No ship is left.
pub fn all_gone() -> Result<(), String> {
    const LOOKS: u32 = 1000;
    for _ in 0..LOOKS {
        if SHIPS.load(Ordering::Relaxed) == 0 {
            break;
        }
        let _ = sys::sleep_us(1000);
    }
    same("ships that are left", SHIPS.load(Ordering::Relaxed), 0)
}
