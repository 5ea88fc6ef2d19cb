//! The network server: sockets, each an object behind a door, over the stack of the library `tcpip`.
//!
//! Reading order: [`shared`], the stack and the rings of the card, behind one lock; [`flows`], connections whose bytes go through memory; [`objects`], what
//! clients call; [`card`], a thread that finds the card's driver and waits for it; [`clients`], whose a socket is.
//!
//! **Nobody waits inside.** Objects do what can be done now, on their caller's time, and poke the first thread if the stack has something to do. That one
//! takes the stack's turns, and answers who waits for a socket when it is ready: a client waits in a call by ipc, so it keeps no thread busy here, and if
//! it ends nothing is left but an answer that finds nobody.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod card;
mod clients;
mod flows;
mod objects;
mod shared;

use alloc::string::String;
use alloc::vec::Vec;
use clients::Clients;
use core::net::Ipv4Addr;
use net::link;
use net::sockets::Entrance::{Answer, Request};
use net::sockets::NAME;
use rt::admission::Admission;
use rt::api::{Failure, Name, Reply, Status, names};
use rt::random;
use rt::sys::{Ipc, Kind, Message, Rights, Uid};
use rt::{println, server, time};
use shared::Shared;
use tcpip::random::SEED;
use tcpip::sockets::Limits;
use tcpip::{Fallback, Refusal, Stack, Waiters};

rt::entry!(main);

/// Threads that come before it is known which addresses there are, at most.
const EARLY_MAX: usize = 64;

fn main() -> i32 {
    let Some(limits) = limits(&rt::arguments()) else {
        println!(
            "network: expected no arguments, or how many sockets there may be, and how many of them one client's"
        );
        return 1;
    };
    let stack = Stack::new(time::now_ns() / 1000, seed(), limits, fallback());
    let shared = Shared::new(stack, rt::sys::myself());
    let prepared = objects::make_room().map_err(Failure::Kernel);
    let prepared = prepared.and_then(|()| card::begin(&shared).map_err(Failure::Kernel));
    let named = Name::new(NAME).ok_or(Failure::Garbled).and_then(|name| names::register(rt::home(), &name));
    match prepared.and(named) {
        Ok(()) => Server {
            clients: Clients::new(shared.clone()),
            shared,
            admission: Admission::new(),
            waiters: Waiters::default(),
            early: Vec::new(),
        }
        .serve(),
        Err(failure) => {
            println!("network: {failure}");
            1
        }
    }
}

/// How many sockets there may be, as the arguments say: all, and those of one client, if it is not to have an eighth of what is free. `None` if they make no sense.
fn limits(arguments: &[String]) -> Option<Limits> {
    match arguments {
        // Without arguments of its own an entry has the names that it serves.
        [] => Some(Limits::default()),
        [name] if name == NAME => Some(Limits::default()),
        [all] => {
            let all: usize = all.parse().ok()?;
            (all > 0).then_some(Limits { all, ..Limits::default() })
        }
        [all, own] => {
            let (all, own): (usize, usize) = (all.parse().ok()?, own.parse().ok()?);
            (1..=all).contains(&own).then_some(Limits { all, own: Some(own), ..Limits::default() })
        }
        _ => None,
    }
}

/// Seed of all numbers that others must not guess. On a machine without random numbers it is one that takes them some effort.
fn seed() -> [u8; SEED] {
    let mut seed = [0; SEED];
    match random::generator() {
        Ok(generator) => generator.fill(&mut seed),
        Err(_) => seed
            .chunks_exact_mut(8)
            .for_each(|part| part.copy_from_slice(&random::weak_number().to_le_bytes())),
    }
    seed
}

/// Address that is used if no server gives one, as the environment says: `ADDRESS=10.0.2.15/24`, `ROUTER=10.0.2.2`.
fn fallback() -> Option<Fallback> {
    let address = rt::environment::variable("ADDRESS")?;
    let (address, len) = address.split_once('/')?;
    let router: Option<Ipv4Addr> = rt::environment::variable("ROUTER").and_then(|router| router.parse().ok());
    Some(Fallback { address: (address.parse().ok()?, len.parse().ok()?), router })
}

struct Server {
    shared: Shared,
    clients: Clients,
    admission: Admission,
    waiters: Waiters<Uid>,
    /// Threads that came before it was known which addresses there are.
    early: Vec<Uid>,
}

impl Server {
    fn serve(mut self) -> ! {
        loop {
            let (kick, next_us) = self.shared.turn();
            if let Some(driver) = kick
                && link::kick(driver).is_err()
            {
                self.shared.could_not_kick();
            }
            if !self.early.is_empty() && self.shared.is_settled() {
                for thread in core::mem::take(&mut self.early) {
                    self.open(thread);
                }
            }
            let until_ns = self.answer_waiters(next_us);
            let ipc = Ipc { from: Uid::ANY, until_ns, ..Ipc::NONE };
            if let Ok(Some(message)) = ipc.run()
                && message.kind == Kind::Request
                && let Err(status) = self.take(&message)
            {
                let _ = server::reply(message.sender, &Reply::from(status));
            }
        }
    }

    /// Gives a thread an object that makes sockets.
    fn open(&self, thread: Uid) {
        let made = self.clients.open(thread);
        let reply = match &made {
            Ok(door) => Answer::Open(door.item(Rights::RW.or(Rights::GRANT)).0).into(),
            Err(status) => Reply::from(*status),
        };
        // Moved to the client with the answer; what is left of it goes.
        let _ = server::reply(thread, &reply);
    }

    /// Does what a message asks for, or keeps it for later.
    fn take(&mut self, message: &Message) -> Result<(), Status> {
        let thread = message.sender;
        self.admission.admit(thread)?;
        match Request::read(message)? {
            Request::Open if self.shared.is_settled() => self.open(thread),
            Request::Open => {
                self.early.retain(|early| *early != thread);
                if self.early.len() >= EARLY_MAX {
                    return Err(Status::Busy);
                }
                self.early.push(thread);
            }
            Request::Wait { ticket, events, patience_ms } => {
                let patience_ns = patience_ms.saturating_mul(1_000_000);
                let until_ns = time::now_ns().saturating_add(patience_ns);
                self.waiters.add(thread, ticket, events, until_ns).map_err(|refusal| match refusal {
                    Refusal::Limit => Status::Exhausted,
                    _ => Status::BadRequest,
                })?;
            }
            // The turn comes before the next message.
            Request::Poke => {}
        }
        Ok(())
    }

    /// Answers those whose sockets are ready, or whose patience is over. Says when there is something to do again.
    fn answer_waiters(&mut self, next_us: Option<u64>) -> Option<u64> {
        let now_ns = time::now_ns();
        let next_ns = next_us.map(|us| now_ns.saturating_add(us.saturating_mul(1000)));
        let shared = &self.shared;
        let ready = |ticket| shared.ready(ticket);
        let reply = |thread, events| {
            let _ = server::reply(thread, &Answer::Wait(events).into());
        };
        let until_ns = self.waiters.answer(now_ns, ready, reply);
        [next_ns, until_ns].into_iter().flatten().min()
    }
}
