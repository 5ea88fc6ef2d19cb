//! Modules (row D19): a server is a library that makes an object, and which of them share a task is said by the
//! system description alone.
//!
//! [`run`] is a program's whole `main`: it makes the modules that the arguments name. Each has a *desk*, the thread that is
//! registered under its name: it hands out identifiers of the module's door, and answers calls by ipc itself, for clients that have no
//! doors or a chief who wants to hear them.
//!
//! A caller of a module has a [`Service`], and does not say where the module is. In the same task the call is a function's, without
//! a system call; else it goes through the door.
//!
//! The surprise: a module is not dropped while its task lives, since its desk can always hand out one more reference. What *it*
//! hands out is another matter: objects of [`door`](crate::door), with lives of their own.

mod service;

pub use service::{Service, ask};

use crate::admission::Admission;
use crate::door::{self, Door, Object};
use crate::server;
use crate::sync::Mutex;
use crate::thread::spawn;
use crate::{exit, home, println};
use alloc::sync::Arc;
use alloc::vec::Vec;
use api::stub::{Failure as Fault, no_pages};
use api::{Failure, Name, Reply, Result, Status, desk, interface_of, names};
use sys::{Fpage, Kind, Message, Rights, Uid};

/// A server as a library.
#[derive(Debug)]
pub struct Module {
    /// The name under which others find it.
    pub name: &'static str,
    /// Makes it, once in a task. It may get devices. Other modules are there when it is called, and not before.
    pub make: fn() -> Result<Arc<dyn Object>>,
}

/// The modules of this task.
static OWN: Mutex<Vec<Own>> = Mutex::new(Vec::new());

struct Own {
    name: &'static str,
    /// None until it is made.
    object: Option<Arc<dyn Object>>,
}

/// Runs those of `known` that the program's arguments name. It comes back with the program's status if that cannot be.
pub fn run(known: &[&'static Module]) -> i32 {
    let mut modules = Vec::new();
    for name in crate::arguments().iter() {
        let Some(module) = known.iter().find(|module| module.name == name) else {
            println!("modules: {name}: this program has no such module");
            return 1;
        };
        modules.push(module);
    }
    *OWN.lock() = modules.iter().map(|module| Own { name: module.name, object: None }).collect();
    // All are made before anybody can call one.
    for module in &modules {
        match (module.make)() {
            Ok(object) => put(module.name, object),
            Err(failure) => return told(module.name, failure),
        }
    }
    let mut desks = Vec::new();
    for module in &modules {
        match Desk::new(module.name) {
            Ok(desk) => desks.push(desk),
            Err(failure) => return told(module.name, failure),
        }
    }
    let Some(last) = desks.pop() else { return 0 };
    for desk in desks {
        let name = desk.name;
        match spawn(door::own_priority(), move || exit(desk.open())) {
            Ok(thread) => thread.detach(),
            Err(error) => return told(name, Failure::Kernel(error)),
        }
    }
    last.open()
}

/// The status of a program that ends because of a module.
fn told(name: &str, failure: Failure) -> i32 {
    println!("modules: {name}: {failure}");
    1
}

fn put(name: &str, object: Arc<dyn Object>) {
    if let Some(own) = OWN.lock().iter_mut().find(|own| own.name == name) {
        own.object = Some(object);
    }
}

/// The module of this name, if this task has it. One that is not made yet is busy.
fn own(name: &str) -> Option<Result<Arc<dyn Object>>> {
    let own = OWN.lock();
    let found = own.iter().find(|own| own.name == name)?;
    Some(found.object.clone().ok_or(Failure::Refused(Status::Busy)))
}

/// A module that others can come to.
struct Desk {
    name: &'static str,
    object: Arc<dyn Object>,
    door: Door,
    clients: Admission,
}

/// A module behind a door: callers from elsewhere have one part in it, those of this task the other.
struct Shared(Arc<dyn Object>);

impl Object for Shared {
    fn call(&self, label: u32, words: [u64; 8]) -> (u32, [u64; 8]) {
        self.0.call(label, words)
    }
}

impl Desk {
    fn new(name: &'static str) -> Result<Desk> {
        let object = own(name).ok_or(Failure::Refused(Status::NotFound))??;
        let door = door::export(Shared(object.clone())).map_err(Failure::Kernel)?;
        Ok(Desk { name, object, door, clients: Admission::new() })
    }

    /// Serves at this desk. Comes back, with the program's status, if the name is not to be had.
    fn open(&self) -> i32 {
        let registered =
            Name::new(self.name).ok_or(Failure::Garbled).and_then(|name| names::register(home(), &name));
        match registered {
            Ok(()) => server::serve(|message| self.answer(message)),
            Err(failure) => told(self.name, failure),
        }
    }

    fn answer(&self, message: &Message) -> Option<Reply> {
        if message.kind != Kind::Request {
            return None;
        }
        if let Err(status) = self.clients.admit(message.sender) {
            return Some(status.into());
        }
        if interface_of(message) == desk::NUMBER {
            return Some(match desk::Request::read(message) {
                Ok(desk::Request::Door) => desk::Answer::Door(self.identifier()).into(),
                Err(fault) => fault.into(),
            });
        }
        if no_pages(message, Kind::Request).is_err() {
            return Some(Fault::Malformed.into());
        }
        let (label, words) = self.object.call(message.label, message.words);
        Some(Reply { label, words, item: None })
    }

    /// To call and to hand on; this task keeps its own.
    fn identifier(&self) -> Fpage {
        self.door.item(Rights::RW).0
    }
}

/// Answer of a generated `dispatch` to a call.
pub fn answer(
    label: u32,
    words: [u64; 8],
    dispatch: impl FnOnce(&Message) -> Option<Reply>,
) -> (u32, [u64; 8]) {
    let kind = Kind::Request;
    let message = Message { kind, flags: sys::Flags(kind as u32), label, sender: Uid::NIL, words };
    let Reply { label, words, .. } = dispatch(&message).unwrap_or(Fault::Malformed.into());
    (label, words)
}
