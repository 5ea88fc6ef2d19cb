//! Tests generated stubs in the booted system, by ipc and through doors: for each interface a server in a task of its own, and a
//! client that knows what the server must answer. The server's task also has a thread, or an object, that answers with nonsense.
//!
//! Prints a line for each interface: `SELFTEST name: … ok`, through doors `SELFTEST name through a door: … ok`, and with stubs of which nothing
//! is optimised `SELFTEST name through a plain door: … ok`. The clients and servers are quill's (`quill test`). The program starts itself as the server: `stub-test serve NUMBER SEED`, or `serve-door`.
//! Its own arguments are `rounds=NUMBER` and `seed=NUMBER`. What comes first is [`same`], one client for everything.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use rt::api::{self, Name, names, process};
use rt::door::{Door, Room};
use rt::println;
use sys::{Ipc, Rights, TaskId, Timeout, Uid};

mod film_in_c;
mod fleet;
mod fleet_in_c;
mod gallery;
mod in_c;
mod offers;
mod references;
mod same;
mod several;
mod watched;

/// The interface of `same`, as a client and objects have it.
#[allow(missing_docs)]
mod purse_door {
    include!(concat!(env!("OUT_DIR"), "/tern-door/purse.rs"));
}

/// The interfaces of `references`.
#[allow(missing_docs)]
mod mint {
    include!(concat!(env!("OUT_DIR"), "/office.rs"));
}

/// The interfaces of `gallery`.
#[allow(missing_docs)]
mod found {
    include!(concat!(env!("OUT_DIR"), "/gallery.rs"));
}

/// The interfaces of `fleet`.
#[allow(missing_docs)]
mod fleet_door {
    include!(concat!(env!("OUT_DIR"), "/fleet.rs"));
}

/// The interfaces of `film_in_c`.
#[allow(missing_docs)]
mod cinema {
    include!(concat!(env!("OUT_DIR"), "/film.rs"));
}

/// The interfaces of `several`.
#[allow(missing_docs)]
mod house {
    include!(concat!(env!("OUT_DIR"), "/lift.rs"));
}

/// The interfaces of `offers`.
#[allow(missing_docs)]
mod shown {
    include!(concat!(env!("OUT_DIR"), "/offers.rs"));
}

/// The interfaces of `purse_door`, as a thread serves them.
#[allow(missing_docs)]
mod purse_ipc {
    include!(concat!(env!("OUT_DIR"), "/tern-ipc/purse.rs"));
}

include!(concat!(env!("OUT_DIR"), "/tests.rs"));

/// How often each method is called, if nobody says.
const ROUNDS: u64 = 100;

/// The name of this program, and of its server's first thread.
const NAME: &str = "stub-test";

/// How often the client looks whether the server is there, and how long it waits in between.
const LOOKS: u32 = 1000;
const PAUSE_US: u64 = 10_000;

rt::entry!(main);

fn main() -> i32 {
    let arguments = rt::arguments();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [how, number, seed] = words[..] {
        let (number, seed) = (number.parse().unwrap_or(0), seed.parse().unwrap_or(0));
        match how {
            "serve" => return serve(number, seed),
            "serve-door" => return serve_door(number, seed),
            "gallery" => return gallery::serve(number),
            "offers" => return offers::serve(number),
            "film" => return film_in_c::serve(),
            _ => {}
        }
    }
    let number = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.parse().ok());
    let (rounds, seed) = (number("rounds=").unwrap_or(ROUNDS), number("seed=").unwrap_or(1));
    let rooms =
        references::make_room().and_then(|()| gallery::make_room()).and_then(|()| several::make_room());
    let rooms = rooms.and_then(|()| fleet::make_room());
    let no_room = i32::from(rooms.is_err());
    let failed = no_room
        + same::test()
        + watched::test()
        + references::test()
        + several::test()
        + fleet::test()
        + gallery::test()
        + in_c::test()
        + fleet_in_c::test()
        + offers::test()
        + film_in_c::test()
        + test(rounds, seed)
        + test_doors(rounds, seed);
    println!("SELFTEST-END failed={failed}");
    failed.min(1)
}

/// What a test has found: how many calls there were, exceptions, answers with nonsense, damaged messages, and refused ones; and
/// how much was wrong, with the first method and its call.
struct Found {
    numbers: [u64; 5],
    wrong: Option<(u64, &'static str, u64)>,
}

/// A report of a file's own type.
macro_rules! found {
    ($report:expr) => {{
        let report = $report;
        Found {
            numbers: [report.calls, report.exceptions, report.nonsense, report.damaged, report.refused],
            wrong: report.first_wrong.map(|(method, call)| (report.wrong, method, call)),
        }
    }};
}

/// Tests a server, and one that answers with nonsense; seed and rounds.
type TestByIpc = dyn Fn(Uid, Uid, u64, u64) -> Found;
/// As [`TestByIpc`], for doors.
type TestByDoor = dyn Fn(&Door, &Door, u64, u64) -> Found;

/// An interface that is tested by ipc: its name, its server, one that answers with nonsense, and what tests it.
struct ByIpc {
    name: &'static str,
    serve: fn(u64) -> !,
    nonsense: fn(u64) -> !,
    test: Box<TestByIpc>,
}

/// One that is tested through doors: to a server, and to an object that answers with nonsense; then to who watches each of them.
struct ByDoor {
    name: &'static str,
    /// A word for the stubs.
    stubs: &'static str,
    serve: fn(u64) -> sys::Result<[Door; 4]>,
    test: Box<TestByDoor>,
}

fn all_by_ipc() -> Vec<ByIpc> {
    #[allow(unused_macros, reason = "`./tern selftest` brings files for one kernel part")]
    macro_rules! list {
        ($file:ident) => {
            Vec::from($file::quill_selftest::ALL.map(|(name, serve, test)| ByIpc {
                name,
                serve,
                nonsense: |seed| $file::quill_selftest::nonsense(seed),
                test: Box::new(move |sane, nonsense, seed, rounds| {
                    found!(test(sane, nonsense, seed, rounds))
                }),
            }))
        };
    }
    Vec::<Vec<ByIpc>>::from(each_file!(list)).into_iter().flatten().collect()
}

fn all_by_door() -> Vec<ByDoor> {
    #[allow(unused_macros, reason = "`./tern selftest` brings files for one kernel part")]
    macro_rules! tests {
        ($stubs:literal, $file:ident) => {
            Vec::from($file::quill_selftest::ALL.map(|(name, serve, test)| ByDoor {
                name,
                stubs: $stubs,
                serve,
                test: Box::new(move |sane, nonsense, seed, rounds| {
                    found!(test(sane, nonsense, seed, rounds))
                }),
            }))
        };
    }
    #[allow(unused_macros, reason = "`./tern selftest` brings files for one kernel part")]
    macro_rules! list {
        ($file:ident) => {
            tests!("", $file)
        };
    }
    #[allow(unused_macros, reason = "`./tern selftest` brings files for one kernel part")]
    macro_rules! plain {
        ($file:ident) => {
            tests!("plain ", $file)
        };
    }
    let usual = Vec::<Vec<ByDoor>>::from(each_door_file!(list));
    usual.into_iter().chain(Vec::<Vec<ByDoor>>::from(each_plain_file!(plain))).flatten().collect()
}

/// Serves one interface; tells the client which threads do.
fn serve(number: usize, seed: u64) -> i32 {
    let interface = all_by_ipc().into_iter().nth(number);
    let threads = interface.map(|ByIpc { serve, nonsense, .. }| {
        [spawn(move || -> () { serve(seed) }), spawn(move || -> () { nonsense(seed) })]
    });
    let (Some([Some(server), Some(nonsense)]), Some(name)) = (threads, Name::new(NAME)) else { return 1 };
    if names::register(rt::home(), &name).is_err() {
        return 1;
    }
    let mut to = Uid::NIL;
    loop {
        let words = [server.0, nonsense.0, 0, 0, 0, 0, 0, 0];
        to = sys::ipc_reply_wait(to, 0, words).map_or(Uid::NIL, |message| message.sender);
    }
}

/// Serves one interface through a door; hands the client all doors, the sane one first.
fn serve_door(number: usize, seed: u64) -> i32 {
    let Some(interface) = all_by_door().into_iter().nth(number) else { return 1 };
    let doors = (interface.serve)(seed).inspect_err(|error| println!("SELFTEST no door: {error}"));
    let (Ok(doors), Some(name)) = (doors, Name::new(NAME)) else { return 1 };
    if names::register(rt::home(), &name).is_err() {
        return 1;
    }
    hand_out(&doors)
}

/// Hands out doors, each to who asks for it by its number.
fn hand_out(doors: &[Door]) -> ! {
    let (mut to, mut item) = (Uid::NIL, None);
    loop {
        let answer = Ipc { to, item, from: Uid::ANY, send_timeout: Timeout::ZERO, ..Ipc::NONE };
        let asked = answer.run().ok().flatten();
        to = asked.map_or(Uid::NIL, |message| message.sender);
        item = asked.and_then(|message| doors.get(message.label as usize)).map(|door| door.item(Rights::RW));
    }
}

/// One of them.
fn handed_out(directory: Uid, number: u32) -> sys::Result<Door> {
    let room = Room::new()?;
    sys::call_item(directory, number, [0; 8], room.window())?;
    Ok(room.into_door())
}

/// Starts a thread that never ends.
fn spawn(serve: impl FnOnce() + Send + 'static) -> Option<Uid> {
    let priority = sys::thread_info(sys::myself()).map_or(1, |info| info.priority);
    let thread = rt::thread::spawn(priority, serve).ok()?;
    let uid = thread.uid();
    thread.detach();
    Some(uid)
}

/// A server's task, and who answers there: sane, and with nonsense.
struct Server<T> {
    task: TaskId,
    sane: T,
    nonsense: T,
}

impl Server<Uid> {
    fn start(number: usize, seed: u64) -> api::Result<Self> {
        let (task, directory) = Self::begin("serve", number, seed)?;
        let answer = sys::ipc_call(directory, 0, [0; 8]).map_err(api::Failure::Kernel)?;
        Ok(Server { task, sane: Uid(answer.words[0]), nonsense: Uid(answer.words[1]) })
    }
}

impl Server<Door> {
    /// `first` is the number of the first door.
    fn start(number: usize, seed: u64, first: u32) -> api::Result<Self> {
        let (task, directory) = Self::begin("serve-door", number, seed)?;
        let get = |number| handed_out(directory, number).map_err(api::Failure::Kernel);
        Ok(Server { task, sane: get(first)?, nonsense: get(first + 1)? })
    }
}

impl<T> Server<T> {
    /// Starts the task; says whom to ask for more.
    fn begin(how: &str, number: usize, seed: u64) -> api::Result<(TaskId, Uid)> {
        let name = Name::new(NAME).ok_or(api::Failure::Garbled)?;
        begin(how, number, seed, &name)
    }

    /// Whether it still ran.
    fn end(&self) -> bool {
        end(self.task)
    }
}

/// Starts this program as something else, which tells that name when it is ready. Says whom to ask for more.
fn begin(how: &str, number: usize, seed: u64, ready: &Name) -> api::Result<(TaskId, Uid)> {
    let name = Name::new(NAME).ok_or(api::Failure::Garbled)?;
    let task = process::start(rt::home(), &name, &format!("{how} {number} {seed}"))?;
    let mut looks = 0;
    let directory = loop {
        match names::resolve(rt::home(), ready) {
            Ok(directory) => break directory,
            Err(failure) if looks == LOOKS => return Err(failure),
            Err(_) => looks += 1,
        }
        let _ = sys::sleep_us(PAUSE_US);
    };
    Ok((task, directory))
}

/// Ends a task. Whether it still ran.
fn end(task: TaskId) -> bool {
    let runs = matches!(process::wait(rt::home(), task, 0), Ok(None));
    let _ = process::kill(rt::home(), task);
    runs && matches!(process::wait(rt::home(), task, u64::MAX), Ok(Some(_)))
}

/// Prints what became of an interface's test, if it could begin; 1 if it failed.
fn judge(title: &str, outcome: api::Result<(Found, bool)>) -> i32 {
    let (found, lives) = match outcome {
        Ok(outcome) => outcome,
        Err(failure) => {
            println!("SELFTEST {title}: no server: {failure:?}");
            return 1;
        }
    };
    let good = lives && found.wrong.is_none();
    let [calls, exceptions, nonsense, damaged, refused] = found.numbers;
    println!(
        "SELFTEST {title}: {calls} calls, {exceptions} exceptions, {nonsense} answered with nonsense, {damaged} \
         damaged messages, {refused} refused: {}",
        if good { "ok" } else { "FAILED" }
    );
    if let Some((wrong, method, call)) = found.wrong {
        println!("  {wrong} wrong, first {method}, call {call}");
    }
    if !lives {
        println!("  the server did not live");
    }
    i32::from(!good)
}

/// Tests all interfaces by ipc; says how many failed.
fn test(rounds: u64, seed: u64) -> i32 {
    let tested = all_by_ipc().into_iter().enumerate().map(|(number, ByIpc { name, test, .. })| {
        let server = Server::<Uid>::start(number, seed);
        judge(name, server.map(|server| (test(server.sane, server.nonsense, seed, rounds), server.end())))
    });
    tested.sum()
}

/// Tests all interfaces through doors, and through those of who stands in between; says how many failed.
fn test_doors(rounds: u64, seed: u64) -> i32 {
    let tested = all_by_door().into_iter().enumerate().map(|(number, ByDoor { name, stubs, test, .. })| {
        let one = |way: &str, first: u32| {
            let server = Server::<Door>::start(number, seed, first);
            let outcome =
                server.map(|server| (test(&server.sane, &server.nonsense, seed, rounds), server.end()));
            judge(&format!("{name} through a {stubs}door{way}"), outcome)
        };
        one("", 0) + one(" and a watch", 2)
    });
    tested.sum()
}
