//! References to objects go between a program in Rust and one in C (`tests/guest/office-c`): both have an office and a register, each calls the
//! other's at the same time, and objects of both sides go back and forth. Afterwards nothing is left.

use crate::mint::Mint::{Chief, Office, Register, Teller};
use crate::references::{beside_memory, book, failed, handed_around, office, same, teller, unwanted};
use alloc::format;
use alloc::string::String;
use rt::api::process::End;
use rt::api::{Name, names, process};
use rt::door::{self, Reference, Room};
use rt::println;
use stub::{Anything, View};
use sys::{Ipc, Message, Uid};

/// Says whether that failed, as 1.
pub fn test() -> i32 {
    // As soon as only one server is left, and has its numbers.
    let before = numbers_at_rest(u32::MAX);
    let outcome = both_ways().and_then(|()| all_gone(before));
    println!("SELFTEST references to and from C: {}", if outcome.is_ok() { "ok" } else { "FAILED" });
    if let Err(why) = &outcome {
        println!("  {why}");
    }
    i32::from(outcome.is_err())
}

/// Where replies of the register arrive.
static ROOM: stub::Once<Register::Replies> = stub::Once::new(Register::Replies::new());

/// Names from here on are those of chiefs.
const CHIEFS: u32 = 1000;

fn both_ways() -> Result<(), String> {
    let names = [Name::new("office"), Name::new("office-c")];
    let [Some(own_name), Some(program)] = names else { return Err("no name".into()) };
    names::register(rt::home(), &own_name).map_err(failed)?;
    let task = process::start(rt::home(), &program, "").map_err(failed)?;
    let own_office = office()?;
    let (peer, room) = get(Uid::NIL, None)?;
    let office: Reference<Office::Client<View>> = room.into_door().into();
    let own_book = book()?;
    let (peer, room) = get(peer, Some(own_office.item(false)))?;
    let book: Reference<Register::Client<View>> = room.into_door().into();
    drop(own_office);
    // From here on the other one has what it needs, too.
    Ipc { to: peer, item: Some(own_book.item(true)), ..Ipc::NONE }.run().map_err(failed)?;
    drop(own_book);
    let outcome = handed_around(&office)
        .and_then(|()| beside_memory(&office, &book, ROOM.take().ok_or("no room")?))
        .and_then(|()| seen_otherwise(&office))
        .and_then(|()| hostile(&office, &book));
    drop((office, book));
    let done = receive(Room::new().map_err(failed)?)?.0;
    Ipc { to: done.sender, ..Ipc::NONE }.run().map_err(failed)?;
    let end = process::wait(rt::home(), task, u64::MAX).map_err(failed)?.map(|outcome| outcome.end);
    outcome?;
    same("failures of its client", done.label, 0)?;
    same("its end", end, Some(End::Exited(0)))
}

/// Answers with an item, if there is one; then the next message brings one.
pub fn get(to: Uid, item: Option<(sys::Fpage, u64)>) -> Result<(Uid, Room), String> {
    if item.is_some() {
        Ipc { to, item, ..Ipc::NONE }.run().map_err(failed)?;
    }
    let (message, room) = receive(Room::new().map_err(failed)?)?;
    message.item().ok_or("nothing is handed over")?;
    Ok((message.sender, room))
}

/// Waits for a message, which may bring an item.
pub fn receive(room: Room) -> Result<(Message, Room), String> {
    let wait = Ipc { from: Uid::ANY, window: room.window(), ..Ipc::NONE };
    wait.run().map_err(failed)?.map(|message| (message, room)).ok_or("no message".into())
}

/// An object in C is what its interface says, and all that this inherits from.
fn seen_otherwise(office: &Reference<Office::Client<View>>) -> Result<(), String> {
    // As a teller, it has another place in its object's table.
    let as_teller = office.open(CHIEFS, 5).map_err(failed)?;
    same("its place", as_teller.server.first == 0, false)?;
    let closed = matches!(as_teller.close(), Err(Teller::CloseError::Closed(closed)) if closed.since == -1);
    same("a chief closes", closed, true)?;
    same("teller", (as_teller.name(), as_teller.count()), (Ok(CHIEFS), Ok(5)))?;
    let chief = as_teller.narrow::<Chief::Client<View>>().map_err(failed)?;
    same("chief", (chief.add(2, 3), chief.name()), (Ok(11), Ok(CHIEFS)))?;
    let low = teller(CHIEFS - 1, 0).map_err(failed)?.narrow::<Anything>().map_err(failed)?;
    let high = teller(CHIEFS + 1, 0).map_err(failed)?.narrow::<Anything>().map_err(failed)?;
    same("rules", (chief.rules(&low), chief.rules(&high)), (Ok(true), Ok(false)))?;
    let own = office.open(7, 7).map_err(failed)?.narrow::<Anything>().map_err(failed)?;
    same("rules one of its own", chief.rules(&own), Ok(true))?;
    let nobody = own.narrow::<Chief::Client<View>>().err().ok_or("a teller is taken for a chief")?;
    same("and rules it still", chief.rules(&nobody.reference), Ok(true))
}

/// What no stub sends: methods that want a reference get none, and others get one, with words or beside what is in memory.
fn hostile(
    office: &Reference<Office::Client<View>>,
    book: &Reference<Register::Client<View>>,
) -> Result<(), String> {
    for raw in [office.server, book.server] {
        let one = teller(1, 1).map_err(failed)?;
        unwanted(raw, one.item(false))?;
    }
    same("it lives still", office.open(4, 4).map_err(failed)?.name(), Ok(4))
}

/// As many numbers as before.
fn all_gone(before: u32) -> Result<(), String> {
    let now = numbers_at_rest(before);
    if now <= before { Ok(()) } else { Err(format!("{now} numbers in use, {before} before")) }
}

/// How many numbers are in use when servers that were wanted for a while have ended; waits for so few.
pub fn numbers_at_rest(most: u32) -> u32 {
    const LOOKS: u32 = 5000;
    for _ in 0..LOOKS {
        if door::servers() == 1 && door::numbers_in_use() <= most {
            break;
        }
        let _ = sys::sleep_us(1000);
    }
    door::numbers_in_use()
}
