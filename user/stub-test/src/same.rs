//! One client for three servers: an object of its own task, which it calls without a message; one behind a door, or behind the door of
//! another that stands in between; and a thread, by ipc. The client is generic over the interface's trait and knows nothing of that.
//!
//! Who stands in between may be made from the interface alone: [`watch`].

use crate::{purse_door, purse_ipc, spawn};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::fmt::Write;
use purse_door::Bank::Overdrawn;
use purse_door::Bank::Purse::{Client, DrawError, Object, Server, Watched};
use rt::door;
use rt::println;
use rt::sync::Mutex;
use rt::sys::clock;
use stub::{Argument, Called, Failure, Watch};

/// The client.
fn spend(purse: &impl Server) -> Result<(), DrawError> {
    purse.put(30)?;
    match (purse.draw(10)?, purse.draw(50)) {
        (20, Err(DrawError::Overdrawn(Overdrawn { by: 30 }))) => Ok(()),
        _ => Err(Failure::Malformed.into()),
    }
}

/// The object.
struct Own(Mutex<i32>);

impl Server for Own {
    fn put(&self, amount: i32) -> Result<(), Failure> {
        *self.0.lock() += amount;
        Ok(())
    }
    fn draw(&self, amount: i32) -> Result<i32, DrawError> {
        let mut holds = self.0.lock();
        if amount > *holds {
            return Err(DrawError::Overdrawn(Overdrawn { by: amount - *holds }));
        }
        *holds -= amount;
        Ok(*holds)
    }
}

/// The same as a thread serves it.
impl purse_ipc::Bank::Purse::Server for Own {
    fn put(&mut self, amount: i32) -> Result<(), Failure> {
        Server::put(self, amount)
    }
    fn draw(&mut self, amount: i32) -> Result<i32, purse_ipc::Bank::Purse::DrawError> {
        Server::draw(self, amount).map_err(|error| match error {
            DrawError::Overdrawn(Overdrawn { by }) => purse_ipc::Bank::Overdrawn { by }.into(),
            DrawError::Failure(failure) => failure.into(),
        })
    }
}

impl From<purse_ipc::Bank::Overdrawn> for purse_ipc::Bank::Purse::DrawError {
    fn from(overdrawn: purse_ipc::Bank::Overdrawn) -> Self {
        purse_ipc::Bank::Purse::DrawError::Overdrawn(overdrawn)
    }
}

/// Lets the client spend in all three ways; says whether that failed, as 1.
pub fn test() -> i32 {
    let empty = || Own(Mutex::new(0));
    let local = spend(&empty());
    let served = door::serve(Object(empty())).and_then(|door| {
        // Who refers to an object is one, too.
        let reference = Client { server: &*Box::leak(Box::new(door)) };
        Ok((reference, door::serve(Object(reference))?))
    });
    let by_door = match served {
        Ok((reference, between)) => {
            let emptied = |purse: Result<i32, DrawError>| purse.map(drop);
            spend(&reference)
                .and_then(|()| emptied(reference.draw(20)))
                .and_then(|()| spend(&Client { server: &between }))
        }
        Err(error) => Err(Failure::Kernel(error).into()),
    };
    let by_ipc = match spawn(move || -> () { purse_ipc::Bank::Purse::serve(&mut empty()) }) {
        Some(server) => spend(&Client { server }),
        None => Err(Failure::Malformed.into()),
    };
    let good = local.is_ok() && by_door.is_ok() && by_ipc.is_ok();
    println!("SELFTEST one client for three servers: {}", if good { "ok" } else { "FAILED" });
    if !good {
        println!("  {local:?}, by door {by_door:?}, by ipc {by_ipc:?}");
    }
    let watched = watched();
    println!("SELFTEST a watch between client and object: {}", if watched.is_ok() { "ok" } else { "FAILED" });
    if let Err(why) = &watched {
        println!("  {why}");
    }
    i32::from(!good) + i32::from(watched.is_err())
}

/// Writes down what is called and how that ended, and lets what it is told to fail.
struct Recorder {
    lines: Mutex<Vec<String>>,
    /// The method that fails.
    broken: Mutex<Option<&'static str>>,
}

impl Watch for Recorder {
    /// When it began, and how it was called.
    type Note = (u64, String);

    fn begins(&self, called: Called, arguments: &[Argument]) -> Result<(u64, String), Failure> {
        if *self.broken.lock() == Some(called.method) {
            return Err(Failure::Refused(7));
        }
        let mut line = String::from(called.interface);
        // It cannot fail: there is memory for some words.
        let _ = write!(line, ".{}", called.method);
        for (name, value) in arguments {
            let _ = write!(line, " {name}={value:?}");
        }
        Ok((clock(), line))
    }

    fn ended(&self, _: Called, (since, mut line): (u64, String), result: Result<&[Argument], &dyn Debug>) {
        let _ = write!(line, " -> {result:?}");
        let ran_backwards = clock() < since;
        self.lines.lock().push(if ran_backwards { String::from("time runs backwards") } else { line });
    }
}

/// A client that notices nothing calls through the door of somebody who was made from the interface alone.
fn watched() -> Result<(), String> {
    const SPENT: [&str; 3] = [
        "Bank::Purse.put amount=30 -> Ok([])",
        "Bank::Purse.draw amount=10 -> Ok([(\"result\", 20)])",
        "Bank::Purse.draw amount=50 -> Err(Overdrawn(Overdrawn { by: 30 }))",
    ];
    let recorder: &Recorder =
        Box::leak(Box::new(Recorder { lines: Mutex::new(Vec::new()), broken: Mutex::new(None) }));
    let shown = |error: &dyn Debug| alloc::format!("{error:?}");
    let object = door::serve(Object(Own(Mutex::new(0)))).map_err(|error| shown(&error))?;
    let server = Client { server: &*Box::leak(Box::new(object)) };
    let between = door::serve(Object(Watched { server, watch: recorder })).map_err(|error| shown(&error))?;
    let client = Client { server: &between };
    spend(&client).map_err(|error| shown(&error))?;
    *recorder.broken.lock() = Some("put");
    match client.put(1) {
        Err(Failure::Refused(7)) => {}
        other => return Err(shown(&other)),
    }
    // The object has heard nothing of that.
    match client.draw(20) {
        Ok(0) => {}
        other => return Err(shown(&other)),
    }
    let lines = recorder.lines.lock();
    if lines.len() == SPENT.len() + 1 && lines.iter().zip(SPENT).all(|(line, spent)| line == spent) {
        return Ok(());
    }
    Err(shown(&*lines))
}
