//! Between a client and an object behind a door stands somebody who was made from the interface alone: he hears of every call and
//! may let it fail, and neither side notices.

use crate::purse_door::Bank::Purse::{Client, Object, Watched};
use crate::same::{Own, spend};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Debug, Write};
use rt::door;
use rt::println;
use rt::sync::Mutex;
use stub::{Argument, Called, Failure, Watch};
use sys::clock;

/// Says whether that failed, as 1.
pub fn test() -> i32 {
    let outcome = watched();
    println!("SELFTEST a watch between client and object: {}", if outcome.is_ok() { "ok" } else { "FAILED" });
    if let Err(why) = &outcome {
        println!("  {why}");
    }
    i32::from(outcome.is_err())
}

/// Writes down what is called and how that ended, and lets what it is told to fail.
struct Recorder {
    lines: Mutex<Vec<String>>,
    /// The method that fails.
    broken: Mutex<Option<&'static str>>,
}

/// How a method was called.
pub fn line(called: Called, arguments: &[Argument]) -> String {
    let mut line = format!("{}.{}", called.interface, called.method);
    for (name, value) in arguments {
        // It cannot fail: there is memory for some words.
        let _ = write!(line, " {name}={value:?}");
    }
    line
}

impl Watch for Recorder {
    /// When it began, and how it was called.
    type Note = (u64, String);

    fn begins(&self, called: Called, arguments: &[Argument]) -> Result<(u64, String), Failure> {
        if *self.broken.lock() == Some(called.method) {
            return Err(Failure::Refused(7));
        }
        Ok((clock(), line(called, arguments)))
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
    let shown = |error: &dyn Debug| format!("{error:?}");
    let object = door::serve(Object(Own::default())).map_err(|error| shown(&error))?;
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
