//! Lists that are offered as pages go between a program in Rust and one in C (`tests/guest/film-c`): both have a projector, and each calls the other's. What the one
//! offers the other takes, or declines since it has no place left; and is sent numbers that nobody has made. The Rust half is a task of its own, too:
//! `stub-test film 0 0`, so that its threads have room for such lists and others have not.

use crate::cinema::Cinema::{Projector, Seen, Torn};
use crate::in_c::receive;
use crate::references::{failed, same};
use alloc::string::String;
use alloc::vec::Vec;
use rt::api::process::End;
use rt::api::{Name, names, process};
use rt::door::{self, Door, Reference, Room};
use rt::layout;
use rt::offer::{Buffer, PAGES_MIN};
use rt::println;
use stub::{Callee, Failure, Inbox, View};
use sys::{Ipc, Rights};

/// Bytes of a page.
const PAGE: usize = 4096;

/// Places in which a program looks at what is offered.
const PLACES: u32 = 15;

/// Pages of a film, as the other half has them.
const PAGES: usize = 16;

/// Says whether that failed, as 1.
pub fn test() -> i32 {
    let outcome = half();
    println!(
        "SELFTEST pages that a call shows to and from C: {}",
        if outcome.is_ok() { "ok" } else { "FAILED" }
    );
    if let Err(why) = &outcome {
        println!("  {why}");
    }
    i32::from(outcome.is_err())
}

/// Starts the Rust half, and awaits its end.
fn half() -> Result<(), String> {
    let program = Name::new("stub-test").ok_or("no name")?;
    let task = process::start(rt::home(), &program, "film 0 0").map_err(failed)?;
    let end = process::wait(rt::home(), task, u64::MAX).map_err(failed)?.map(|outcome| outcome.end);
    same("the end of the half in Rust", end, Some(End::Exited(0)))
}

/// The Rust half.
pub fn serve() -> i32 {
    let outcome = both_ways();
    if let Err(why) = &outcome {
        println!("  {why}");
    }
    i32::from(outcome.is_err())
}

/// Fills whole pages as the other half does.
fn fill(bytes: &mut [u8], seed: u8) -> u64 {
    bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / PAGE + at % 7) as u8 ^ seed);
    sum_of(bytes)
}

fn sum_of(bytes: &[u8]) -> u64 {
    bytes.iter().map(|&byte| u64::from(byte)).sum()
}

/// Whether something lies where the memory manager shows what is offered.
fn is_shown(at: u64) -> bool {
    layout::OFFERS.contains(&at)
}

/// Projector: it gives back parts of its own film, which its clients' has to be.
struct Own {
    film: Vec<u8>,
}

impl Projector::Server for Own {
    fn show(&self, title: &str, film: &[u8]) -> Result<Seen, Projector::ShowError> {
        match title {
            "torn" => Err(Projector::ShowError::Torn(Torn { frame: 24 })),
            _ => Ok(Seen { at: film.as_ptr() as u64, sum: sum_of(film) }),
        }
    }
    fn both(&self, first: &[u8], second: &[u8]) -> Result<Seen, Failure> {
        let are_shown = is_shown(first.as_ptr() as u64) && is_shown(second.as_ptr() as u64);
        Ok(Seen { at: are_shown.into(), sum: sum_of(first) + 1000 * sum_of(second) })
    }
    fn cut(&self, film: &[u8], from: u32, count: u32) -> Result<&[u8], Failure> {
        let (from, count) = (from as usize, count as usize);
        let is_known = from > 0 && film == self.film;
        self.film.get(from..from + count).filter(|_| is_known).ok_or(Failure::Refused(5))
    }
    fn next(&self, _: &[u8]) -> Result<Reference<Projector::Client<View>>, Failure> {
        Ok(projector().map_err(Failure::Kernel)?.into())
    }
    fn occupy(&self, _: u32) -> Result<u32, Failure> {
        Ok(0)
    }
}

fn projector() -> sys::Result<Door> {
    let mut film = alloc::vec![0; PAGES * PAGE];
    fill(&mut film, 5);
    door::serve(Projector::Object(Own { film }))
}

fn both_ways() -> Result<(), String> {
    let [Some(own_name), Some(program)] = [Name::new("film"), Name::new("film-c")] else {
        return Err("no name".into());
    };
    let own = projector().map_err(failed)?;
    names::register(rt::home(), &own_name).map_err(failed)?;
    let task = process::start(rt::home(), &program, "").map_err(failed)?;
    let (message, room) = receive(Room::new().map_err(failed)?)?;
    message.item().ok_or("nothing is handed over")?;
    let its = room.into_door();
    Ipc { to: message.sender, item: Some(own.item(Rights::RW)), ..Ipc::NONE }.run().map_err(failed)?;
    let outcome =
        taken(&its).and_then(|()| results(&its)).and_then(|()| declined(&its)).and_then(|()| hostile(&its));
    let done = receive(Room::new().map_err(failed)?)?.0;
    Ipc { to: done.sender, ..Ipc::NONE }.run().map_err(failed)?;
    let end = process::wait(rt::home(), task, u64::MAX).map_err(failed)?.map(|outcome| outcome.end);
    outcome?;
    same("failures of its client", done.label, 0)?;
    same("its end", end, Some(End::Exited(0)))
}

/// Whole pages are offered and taken; all else is sent.
fn taken(its: &Door) -> Result<(), String> {
    let its = Projector::Client { server: its };
    for pages in [1, PAGES_MIN - 1, PAGES_MIN, 16, 256] {
        let mut film = Buffer::zeroed(pages).ok_or("no memory")?;
        for round in 0..if pages > 16 { 1 } else { 3 } {
            let sum = fill(&mut film, round);
            let whole = its.show("whole", &film).map_err(failed)?;
            same("whole", (is_shown(whole.at), whole.sum), (pages >= PAGES_MIN, sum))?;
            let part = its.show("part", &film[1..]).map_err(failed)?;
            same("part", (is_shown(part.at), part.sum), (false, sum - u64::from(film[0])))?;
            let both = its.both(&film, &film).map_err(failed)?;
            same("both", (both.at, both.sum), (u64::from(pages >= PAGES_MIN), 1001 * sum))?;
            let one = its.both(&film[1..], &film).map_err(failed)?;
            same("one of both", (one.at, one.sum), (0, part.sum + 1000 * sum))?;
            let torn = matches!(its.show("torn", &film), Err(Projector::ShowError::Torn(Torn { frame: 24 })));
            same("torn", torn, true)?;
            // Nobody here sees what it paints.
            its.show("painted", &film).map_err(failed)?;
            same("after it was painted", sum_of(&film), sum)?;
        }
    }
    Ok(())
}

/// Results beside what is offered: a list, which does not lie there, and an object.
fn results(its: &Door) -> Result<(), String> {
    let its = Projector::Client { server: its };
    let mut film = Buffer::zeroed(PAGES).ok_or("no memory")?;
    fill(&mut film, 1);
    let mut memory = alloc::vec![0u128; size_of::<Projector::Replies>().div_ceil(16)];
    let replies = Projector::Replies::in_place(&mut memory).ok_or("there is enough")?;
    Inbox::open(replies, |inbox| {
        for pages in [1, PAGES_MIN, PAGES] {
            let film = &film[..pages * PAGE];
            let cut = its.cut(inbox, film, 10, 3000).map_err(failed)?;
            same("cut", cut == &film[10..3010], true)?;
            let own = its.cut(inbox, film, 0, 10).map(<[u8]>::len);
            same("what it was given", own, Err(Failure::Refused(stub::MALFORMED)))?;
        }
        Ok(())
    })
    .map_err(failed)?
    .and_then(|()| {
        let next = its.next(&film).map_err(failed)?;
        same("the next one", next.occupy(0).map_err(failed)?, 0)
    })
}

/// It has no place left, or one: it declines, and the bytes are sent.
fn declined(its: &Door) -> Result<(), String> {
    let its = Projector::Client { server: its };
    let mut film = Buffer::zeroed(PAGES).ok_or("no memory")?;
    let sum = fill(&mut film, 2);
    for (places, [one, two]) in [(PLACES, [false; 2]), (PLACES - 1, [true, false]), (0, [true; 2])] {
        same("places", its.occupy(places).map_err(failed)?, places)?;
        for _ in 0..2 {
            let shown = its.show("one", &film).map_err(failed)?;
            same("one", (is_shown(shown.at), shown.sum), (one, sum))?;
            let both = its.both(&film, &film).map_err(failed)?;
            same("two", (both.at, both.sum), (u64::from(two), 1001 * sum))?;
        }
    }
    Ok(())
}

/// Numbers of offers that nobody has made, and what is no message beside one.
fn hostile(its: &Door) -> Result<(), String> {
    let ask = |label: u32, title: &[u8], numbers: [u64; 2]| {
        let film = [7u8; 64];
        let block = [stub::address(title), title.len() as u64, stub::address(&film), film.len() as u64];
        let mut words = [0; stub::WORDS];
        (words[0], words[1]) = (stub::dope(0, 2), stub::address(&block));
        words[2..4].copy_from_slice(&numbers);
        let (answer, words) = its.call_pages(label, words, stub::Pages::NONE.long());
        (answer >> 32, words)
    };
    for number in [1, 12345, u64::MAX, 1 << 63] {
        for (label, numbers) in [(0, [number, 0]), (1 << 31, [number, 0]), (1 << 31, [0, number])] {
            let (answer, words) = ask(label, b"a title", numbers);
            same("an invented number", answer, stub::DECLINED.into())?;
            same("its words", words[..4].iter().all(|&word| word == 0), true)?;
        }
        same("no message", ask(0, b"caf\xe9", [number, 0]).0, stub::MALFORMED.into())?;
    }
    let its = Projector::Client { server: its };
    let mut film = Buffer::zeroed(PAGES).ok_or("no memory")?;
    fill(&mut film, 3);
    same("it lives still", is_shown(its.show("after", &film).map_err(failed)?.at), true)
}
