//! Pages that a call shows and does not copy: by generated stubs, and by hand, where somebody writes in the middle. The program starts itself for the other
//! side: `stub-test offers 0 0` has the objects, and `stub-test offers 1 0` makes an offer and ends.

use crate::shown::Pages::{Found, Reader};
use crate::{begin, end, hand_out, handed_out};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use rt::api::offers;
use rt::api::{self, Name, names, process};
use rt::door::{self, Door};
use rt::layout;
use rt::offer::{Buffer, Offer, PAGES_MIN, Taken};
use rt::println;
use rt::region::Region;
use rt::sync::Mutex;
use stub::Failure;
use sys::{TaskId, Uid};

const PAGE: usize = 4096;

/// Says whether that failed, as 1.
pub fn test() -> i32 {
    let outcome = generated().and_then(|()| by_hand()).and_then(|()| little_kernel_memory());
    println!("SELFTEST pages that a call shows: {}", if outcome.is_ok() { "ok" } else { "FAILED" });
    if let Err(why) = &outcome {
        println!("  {why}");
    }
    i32::from(outcome.is_err())
}

/// The object: it says where the bytes lie that it gets.
struct Own;

fn look(data: &[u8]) -> Found {
    Found {
        is_offer: layout::OFFERS.contains(&(data.as_ptr() as u64)),
        sum: data.iter().map(|&byte| u64::from(byte)).sum(),
    }
}

impl Reader::Server for Own {
    fn read(&self, name: &str, data: &[u8]) -> Result<Found, Failure> {
        if name == "nobody" { Err(Failure::Refused(7)) } else { Ok(look(data)) }
    }
    fn hand_on(&self, data: &[u8]) -> Result<Found, Failure> {
        let other = door::serve(Reader::Object(Own)).map_err(Failure::Kernel)?;
        Reader::Client { server: &other }.read("the next", data)
    }
    fn both(&self, first: &[u8], second: &[u8]) -> Result<Found, Failure> {
        let (first, second) = (look(first), look(second));
        Ok(Found { is_offer: first.is_offer && second.is_offer, sum: first.sum + 1000 * second.sum })
    }
    fn leave(&self, _: &[u8]) -> Result<(), Failure> {
        rt::exit(0)
    }
}

/// Questions to the object by hand.
mod ask {
    /// Takes the offer with the number in w0, and keeps it. Gives back whether it could.
    pub const TAKE: u32 = 1;
    /// Reads the first byte of page w0 of what it took last.
    pub const READ: u32 = 2;
    /// Writes w1 to it.
    pub const WRITE: u32 = 3;
    /// Gives all back.
    pub const LEAVE: u32 = 4;
    /// Leaves the task w0 frames of kernel memory, or one less. Gives back how many are left.
    pub const STARVE: u32 = 5;
}

/// The object by hand: all that it has taken.
struct Keeper(Mutex<Vec<Taken<'static>>>);

impl door::Object for Keeper {
    fn call(&self, label: u32, words: [u64; 8]) -> (u32, [u64; 8]) {
        let mut kept = self.0.lock();
        let at = words[0] as usize * PAGE;
        let answer = match label {
            ask::TAKE => match Taken::new(words[0], &[], 1 << 20) {
                Some(taken) => {
                    kept.push(taken);
                    1
                }
                None => 0,
            },
            ask::READ => kept.last().and_then(|taken| taken.get(at)).map_or(u64::MAX, |&byte| byte.into()),
            ask::WRITE => {
                let page = kept.last_mut().and_then(Taken::bytes_mut).and_then(|bytes| bytes.get_mut(at));
                page.map_or(u64::MAX, |byte| {
                    *byte = words[1] as u8;
                    1
                })
            }
            ask::STARVE => starve(words[0]).unwrap_or(u64::MAX),
            _ => {
                kept.clear();
                1
            }
        };
        (0, [answer, 0, 0, 0, 0, 0, 0, 0])
    }
}

/// Gives a task that does nothing all kernel memory but so much.
fn starve(frames: u64) -> sys::Result<u64> {
    let left = || sys::task_info(TaskId::NIL).map(|info| info.quota - info.used);
    let heir = sys::task_create(2, 1)?;
    let own = sys::task_info(heir)?.quota;
    sys::task_set_quota(heir, own + left()?.saturating_sub(frames))?;
    left()
}

/// The other side. Level 0 has the objects; level 1 makes an offer, lets it be taken, and ends.
pub fn serve(level: usize) -> i32 {
    let Some(name) = Name::new(if level == 0 { "offers" } else { "offerer" }) else { return 1 };
    if level > 0 {
        return i32::from(offer_and_end().is_err());
    }
    let objects = door::serve(Reader::Object(Own))
        .and_then(|reader| Ok([reader, door::export(Keeper(Mutex::new(Vec::new())))?]));
    let Ok(objects) = objects else { return 1 };
    if names::register(rt::home(), &name).is_err() {
        return 1;
    }
    hand_out(&objects)
}

fn offer_and_end() -> Result<(), String> {
    let directory = Name::new("offers").and_then(|name| names::resolve(rt::home(), &name).ok());
    let keeper =
        Hand(handed_out(directory.unwrap_or(Uid::NIL), 1).map_err(|error| format!("no door: {error}"))?);
    let region = Region::new(15).ok_or("no memory")?;
    region.write(3 * PAGE, &[44]);
    let offer = Offer::of_region(region).ok_or("no offer")?;
    let taken = keeper.ask(ask::TAKE, offer.number(), 0);
    region.write(3 * PAGE, &[45]);
    if taken == Ok(1) { Ok(()) } else { Err(format!("{taken:?}")) }
}

/// Client of the object by hand.
struct Hand(Door);

impl Hand {
    fn ask(&self, label: u32, first: u64, second: u64) -> Result<u64, String> {
        let answer = self.0.call(label, [first, second, 0, 0, 0, 0, 0, 0]);
        answer.map(|(_, words)| words[0]).map_err(|error| format!("call {label}: {error}"))
    }
}

fn start() -> Result<(TaskId, Uid), String> {
    let name = Name::new("offers").ok_or("no name")?;
    begin("offers", 0, 0, &name).map_err(|failure| format!("no server: {failure:?}"))
}

fn expect<T: PartialEq + core::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?} and not {expected:?}")) }
}

/// Bytes of which each page has another one.
fn fill(bytes: &mut [u8], seed: u8) -> u64 {
    bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / PAGE + at % 7) as u8 ^ seed);
    bytes.iter().map(|&byte| u64::from(byte)).sum()
}

/// By stubs: whatever way the bytes take, they are those of the client.
fn generated() -> Result<(), String> {
    let (task, directory) = start()?;
    let door = handed_out(directory, 0).map_err(|error| format!("no door: {error}"))?;
    let reader = Reader::Client { server: &door };
    let failed = |failure: Failure| format!("{failure:?}");
    for pages in [1, PAGES_MIN - 1, PAGES_MIN, 16, 256] {
        let mut bytes = Buffer::zeroed(pages).ok_or("no memory")?;
        for round in 0..if pages > 16 { 1 } else { 3 } {
            let sum = fill(&mut bytes, round);
            let Found { is_offer, sum: found } = reader.read("whole pages", &bytes).map_err(failed)?;
            expect("sum", found, sum)?;
            expect("offered", is_offer, pages >= PAGES_MIN)?;
            // Pages that nobody wrote to are offered again.
            expect("sum again", reader.read("again", &bytes).map_err(failed)?.sum, sum)?;
            // A part of a page would show what lies beside it.
            let part = reader.read("a part", &bytes[1..]).map_err(failed)?;
            expect("part", (part.is_offer, part.sum), (false, sum - u64::from(bytes[0])))?;
        }
    }
    let mut bytes = Buffer::zeroed(16).ok_or("no memory")?;
    let sum = fill(&mut bytes, 9);
    let other: Vec<u8> = vec![1; 100];
    expect("refused", reader.read("nobody", &bytes).map(|_| ()), Err(Failure::Refused(7)))?;
    let handed = reader.hand_on(&bytes).map_err(failed)?;
    expect("handed on", (handed.is_offer, handed.sum), (false, sum))?;
    let both = reader.both(&bytes, &other).map_err(failed)?;
    expect("one of two", (both.is_offer, both.sum), (false, sum + 100_000))?;
    let both = reader.both(&bytes, &bytes).map_err(failed)?;
    expect("the same twice", (both.is_offer, both.sum), (true, 1001 * sum))?;
    let long = Buffer::zeroed(257).ok_or("no memory")?;
    expect("too long", reader.read("too long", &long).map(|_| ()), Err(Failure::TooLong))?;
    // The object's task ends in the middle of a call.
    expect("an end", reader.leave(&bytes), Err(Failure::Kernel(sys::Error::PartnerDied)))?;
    end(task);
    bytes[5 * PAGE] = 1;
    expect("the own bytes", bytes[6 * PAGE], ((6 + 6 * PAGE % 7) as u8) ^ 9)
}

/// A server that has hardly any kernel memory left does not take what it could not look at, and gets all bytes.
fn little_kernel_memory() -> Result<(), String> {
    let (task, directory) = start()?;
    let doors = [0, 1].map(|number| handed_out(directory, number));
    let [Ok(door), Ok(keeper)] = doors else { return Err("no doors".into()) };
    let (reader, keeper) = (Reader::Client { server: &door }, Hand(keeper));
    let mut bytes = Buffer::zeroed(256).ok_or("no memory")?;
    let sum = fill(&mut bytes, 3);
    let read = |bytes: &[u8]| reader.read("little", bytes).map_err(|failure| format!("{failure:?}"));
    let few = 16 * PAGE;
    expect("offered", read(&bytes[..few])?.is_offer, true)?;
    // Sent once, so that there are pages where bytes arrive.
    expect("sent", read(&bytes[1..])?.is_offer, false)?;
    for frames in [100, 20, 3] {
        let left = keeper.ask(ask::STARVE, frames, 0)?;
        expect("left", left.abs_diff(frames) < 2, true)?;
        for _ in 0..2 {
            let found = read(&bytes)?;
            expect("offered", (found.is_offer, found.sum), (frames == 100, sum))?;
        }
    }
    let found = read(&bytes[..few])?.is_offer;
    expect("offered", found, false)?;
    end(task);
    Ok(())
}

/// By hand, with writes while somebody has the pages.
fn by_hand() -> Result<(), String> {
    let (task, directory) = start()?;
    let keeper = Hand(handed_out(directory, 1).map_err(|error| format!("no door: {error}"))?);
    let region = Region::new(16).ok_or("no memory")?;
    let read = |page: usize| {
        let mut byte = [0];
        region.read(page * PAGE, &mut byte);
        u64::from(byte[0])
    };
    (0..16).for_each(|page| region.write(page * PAGE, &[page as u8]));
    let offer = Offer::of_region(region).ok_or("no offer")?;
    // Before it is taken, and afterwards.
    region.write(0, &[100]);
    expect("taken", keeper.ask(ask::TAKE, offer.number(), 0)?, 1)?;
    region.write(PAGE, &[101]);
    expect("written by the server", keeper.ask(ask::WRITE, 2, 102)?, 1)?;
    region.write(3 * PAGE, &[103]);
    expect("written by both", keeper.ask(ask::WRITE, 3, 104)?, 1)?;
    for (page, (own, theirs)) in [(100, 0), (101, 1), (2, 102), (103, 104), (4, 4)].into_iter().enumerate() {
        expect("the client's", read(page), own)?;
        expect("the server's", keeper.ask(ask::READ, page as u64, 0)?, theirs)?;
    }
    expect("taken twice", keeper.ask(ask::TAKE, offer.number(), 0)?, 0)?;
    offer.is_over();
    expect("given back", keeper.ask(ask::LEAVE, 0, 0)?, 1)?;
    // Invented numbers.
    expect("invented", keeper.ask(ask::TAKE, 12345, 0)?, 0)?;
    let manager = rt::own_pager();
    let denied = Err(api::Failure::Refused(api::Status::Denied));
    expect("a key", offers::offer(manager, 77, region.address(), 1), denied)?;
    expect("a key of a window", offers::take(manager, 77, 1, 1).map(|_| 0), denied)?;
    // Memory of which somebody has the flexpage may be his, too: an offer would take from him what he writes there.
    let lent = Region::new(15).ok_or("no memory")?;
    expect("not lent yet", Offer::of_region(lent).is_some(), true)?;
    let _ = lent.fpage();
    expect("lent", Offer::of_region(lent).is_none(), true)?;
    // More offers than there are windows.
    let many: Vec<Offer> = (0..20).filter_map(|_| Offer::of_region(region)).collect();
    expect("offers", many.len(), 20)?;
    let taken = many.iter().filter(|offer| keeper.ask(ask::TAKE, offer.number(), 0) == Ok(1)).count();
    expect("windows", taken, 15)?;
    expect("the first of the last", keeper.ask(ask::READ, 0, 0)?, 100)?;
    drop(many);
    keeper.ask(ask::LEAVE, 0, 0)?;
    // The client ends while the server has its pages.
    let name = Name::new("stub-test").ok_or("no name")?;
    let giver = process::start(rt::home(), &name, "offers 1 0").map_err(|failure| format!("{failure:?}"))?;
    let ended = process::wait(rt::home(), giver, u64::MAX).map_err(|failure| format!("{failure:?}"))?;
    expect("the giver's end", ended.is_some(), true)?;
    expect("the dead giver's", keeper.ask(ask::READ, 3, 0)?, 44)?;
    keeper.ask(ask::LEAVE, 0, 0)?;
    // The server ends while it has pages of this task.
    let offer = Offer::of_region(region).ok_or("no offer")?;
    expect("taken", keeper.ask(ask::TAKE, offer.number(), 0)?, 1)?;
    end(task);
    region.write(5 * PAGE, &[55]);
    expect("after the server's end", read(5), 55)?;
    drop(offer);
    Ok(())
}
