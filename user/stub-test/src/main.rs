//! Tests generated stubs in the booted system: for each interface a server in a task of its own, and a client that knows what
//! the server must answer. The server's task also has a thread that answers with nonsense.
//!
//! Prints a line for each interface: `SELFTEST name: … ok`. The clients and servers are quill's (`quill test`). The program
//! starts itself as the server: `stub-test serve NUMBER SEED`. Its own arguments are `rounds=NUMBER` and `seed=NUMBER`.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use rt::api::{self, Name, names, process};
use rt::println;
use sys::{TaskId, Uid};

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
    let words: alloc::vec::Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["serve", number, seed] = words[..] {
        return serve(number.parse().unwrap_or(0), seed.parse().unwrap_or(0));
    }
    let number = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.parse().ok());
    test(number("rounds=").unwrap_or(ROUNDS), number("seed=").unwrap_or(1))
}

/// Serves one interface; tells the client which threads do.
fn serve(number: usize, seed: u64) -> i32 {
    let mut interfaces = 0;
    let mut threads = None;
    macro_rules! look {
        ($file:ident) => {
            for (_, serve, _) in $file::quill_selftest::ALL {
                if interfaces == number {
                    threads = Some((
                        spawn(move || -> () { serve(seed) }),
                        spawn(move || -> () { $file::quill_selftest::nonsense(seed) }),
                    ));
                }
                interfaces += 1;
            }
        };
    }
    each_file!(look);
    let (Some((Some(server), Some(nonsense))), Some(name)) = (threads, Name::new(NAME)) else { return 1 };
    if names::register(rt::home(), &name).is_err() {
        return 1;
    }
    let mut to = Uid::NIL;
    loop {
        let words = [server.0, nonsense.0, 0, 0, 0, 0, 0, 0];
        to = sys::ipc_reply_wait(to, 0, words).map_or(Uid::NIL, |message| message.sender);
    }
}

/// Starts a thread that never ends.
fn spawn(serve: impl FnOnce() + Send + 'static) -> Option<Uid> {
    let priority = sys::thread_info(sys::myself()).map_or(1, |info| info.priority);
    let thread = rt::thread::spawn(priority, serve).ok()?;
    let uid = thread.uid();
    thread.detach();
    Some(uid)
}

/// A server's task, and its threads.
struct Server {
    task: TaskId,
    sane: Uid,
    nonsense: Uid,
}

impl Server {
    fn start(number: usize, seed: u64) -> api::Result<Server> {
        let name = Name::new(NAME).ok_or(api::Failure::Garbled)?;
        let task = process::start(rt::home(), &name, &format!("serve {number} {seed}"))?;
        let mut looks = 0;
        let directory = loop {
            match names::resolve(rt::home(), &name) {
                Ok(directory) => break directory,
                Err(failure) if looks == LOOKS => return Err(failure),
                Err(_) => looks += 1,
            }
            let _ = sys::sleep_us(PAUSE_US);
        };
        let answer = sys::ipc_call(directory, 0, [0; 8]).map_err(api::Failure::Kernel)?;
        Ok(Server { task, sane: Uid(answer.words[0]), nonsense: Uid(answer.words[1]) })
    }

    /// Whether it still ran.
    fn end(self) -> bool {
        let runs = matches!(process::wait(rt::home(), self.task, 0), Ok(None));
        let _ = process::kill(rt::home(), self.task);
        runs && matches!(process::wait(rt::home(), self.task, u64::MAX), Ok(Some(_)))
    }
}

/// Tests all interfaces; says how many failed.
fn test(rounds: u64, seed: u64) -> i32 {
    let (mut number, mut failed) = (0, 0);
    macro_rules! run {
        ($file:ident) => {
            for (name, _, test) in $file::quill_selftest::ALL {
                match Server::start(number, seed) {
                    Ok(server) => {
                        let report = test(server.sane, server.nonsense, seed, rounds);
                        let lives = server.end();
                        let good = lives && report.wrong == 0;
                        let verdict = if good { "ok" } else { "FAILED" };
                        println!(
                            "SELFTEST {name}: {} calls, {} exceptions, {} answered with nonsense, {} damaged \
                             messages, {} refused: {verdict}",
                            report.calls, report.exceptions, report.nonsense, report.damaged, report.refused
                        );
                        if let Some((method, call)) = report.first_wrong {
                            println!("  {} wrong, first {method}, call {call}", report.wrong);
                        }
                        if !lives {
                            println!("  the server did not live");
                        }
                        failed += i32::from(!good);
                    }
                    Err(failure) => {
                        println!("SELFTEST {name}: no server: {failure:?}");
                        failed += 1;
                    }
                }
                number += 1;
            }
        };
    }
    each_file!(run);
    println!("SELFTEST-END failed={failed}");
    failed.min(1)
}
