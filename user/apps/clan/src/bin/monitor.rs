//! A reference monitor: it puts a program into a clan of its own, hears every message that leaves the clan, and decides.
//!
//! The client knows nothing of it. It calls the clock, the console and `root` by their uids, and its calls come here: each
//! with the client's true uid, vouched for by the kernel, and with the uid of the one who was called. The monitor writes down
//! what it hears, and passes on what its rules allow, as itself. The answer goes back under the name of the one who was called, so that the client finds what
//! it waits for. What is not allowed is answered by the monitor, and the server never hears of it.
//!
//! Its guarantee: nothing leaves the clan but by a rule. What it cannot: that clients inside of one clan do not talk to each other. Whoever is
//! to be kept apart gets a clan of its own.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

use clan::{Clan, Own, REPORT, report};
use rt::api::{self, Failure, Name, Status, clock, console, names};
use rt::println;
use sys::{Kind, Message, Uid};

rt::entry!(main);

/// A server that clients may know.
struct Server {
    name: &'static str,
    uid: Uid,
    /// How many requests a client may make of it.
    allowance: u32,
}

fn main() -> i32 {
    match supervise() {
        Ok(()) => 0,
        Err(failure) => {
            println!("monitor: {failure}");
            1
        }
    }
}

fn supervise() -> api::Result<()> {
    let find = |name| Name::new(name).map_or(Ok(Uid::NIL), |name| names::resolve(rt::home(), &name));
    let mut servers = [
        Server { name: clock::NAME, uid: find(clock::NAME)?, allowance: 2 },
        Server { name: console::NAME, uid: find(console::NAME)?, allowance: 0 },
        Server { name: "root", uid: rt::home(), allowance: 0 },
    ];
    let clan = Clan::new().map_err(Failure::Kernel)?;
    let arguments = [sys::myself().0, servers[0].uid.0, servers[1].uid.0, servers[2].uid.0];
    let client = clan.ward(client, arguments).map_err(Failure::Kernel)?;
    let mut next = clan.hear(Uid::NIL, Uid::NIL, 0, [0; 5]);
    loop {
        let (message, meant_for) = next.map_err(Failure::Kernel)?;
        if message.label == REPORT && message.sender == client.thread && meant_for.is_nil() {
            return conclude(message.words);
        }
        let answer = decide(&mut servers, &message, meant_for);
        let [a, b, c, d, e, ..] = answer.words;
        next = clan.hear(message.sender, meant_for, answer.label, [a, b, c, d, e]);
    }
}

/// Writes down what was said to whom, and passes it on or not.
fn decide(servers: &mut [Server], message: &Message, meant_for: Uid) -> api::Reply {
    let server = servers.iter_mut().find(|server| server.uid == meant_for);
    let name = server.as_ref().map_or("somebody", |server| server.name);
    let said = (message.sender, message.label, message.words[0]);
    let allowance = server.map(|server| &mut server.allowance).filter(|allowance| **allowance > 0);
    let (Some(allowance), Kind::Request) = (allowance, message.kind) else {
        println!("monitor: {:?} says {:#x} {:#x} to {name}: refused", said.0, said.1, said.2);
        return Status::Denied.into();
    };
    *allowance -= 1;
    let answer = sys::ipc_call(meant_for, message.label, message.words);
    println!("monitor: {:?} says {:#x} {:#x} to {name}: passed on", said.0, said.1, said.2);
    match answer {
        Ok(answer) => api::Reply { label: answer.label, words: answer.words, item: None },
        Err(_) => Status::NotFound.into(),
    }
}

/// Findings of the client.
fn conclude([answered, refused, sender_was_right, _, ..]: [u64; 8]) -> api::Result<()> {
    println!(
        "monitor: the client got {answered} answers and {refused} refusals, each from whom it had called"
    );
    let as_expected = (answered, refused, sender_was_right) == (2, 3, 1);
    if as_expected { Ok(()) } else { Err(Failure::Refused(Status::BadRequest)) }
}

/// An ordinary client. It asks the clock three times, writes to the console, and asks `root` for a name.
extern "C" fn client(own: &mut Own) -> ! {
    let [chief, clock, console, root] = own.arguments.map(Uid);
    let (mut answered, mut refused) = (0, 0);
    let mut count = |outcome: api::Result<()>| match outcome {
        Ok(()) => answered += 1,
        Err(Failure::Refused(Status::Denied)) => refused += 1,
        Err(_) => {}
    };
    for _ in 0..3 {
        count(clock::now(clock).map(drop));
    }
    count(console::write(console, b"a secret\n"));
    let sender = sys::ipc_call(root, 0xffff, [7; 8]).map(|message| message.sender);
    count(Err(Failure::Refused(Status::Denied)));
    report(chief, [answered, refused, (sender == Ok(root)) as u64, 0]);
}
