//! A module as its callers see it.

use super::own;
use crate::door::{Door, Object, Room};
use crate::home;
use crate::sync::Mutex;
use alloc::sync::Arc;
use api::stub::{Callee, Failure as Fault, Kind, Pages, WORDS, Words};
use api::{Failure, Name, Result, desk, names};
use sys::Error;

/// How often a call is made of a module that is started anew before its caller hears of it.
const TRIES: usize = 3;

/// A module that is found by name when it is called first, and again when it is gone. Generated clients take a reference
/// to it for their server.
///
/// A call is repeated only if it has not begun. One during which the module ended fails with [`Error::PartnerDied`].
pub struct Service {
    name: &'static str,
    way: Mutex<Option<Way>>,
}

/// How to call it.
#[derive(Clone)]
enum Way {
    /// It is in this task.
    Function(Arc<dyn Object>),
    Door(Arc<Door>),
}

impl Service {
    /// The module of this name; nothing is looked up yet.
    pub const fn new(name: &'static str) -> Service {
        Service { name, way: Mutex::new(None) }
    }

    /// Calls it.
    pub fn call(&self, label: u32, words: [u64; 8]) -> Result<(u32, [u64; 8])> {
        let mut gone = Error::NoSuch;
        for _ in 0..TRIES {
            match self.way()? {
                Way::Function(object) => return Ok(object.call(label, words)),
                Way::Door(door) => match door.call(label, words) {
                    Err(error @ (Error::NoSuch | Error::PartnerDied)) => {
                        *self.way.lock() = None;
                        gone = error;
                        if error == Error::PartnerDied {
                            break;
                        }
                    }
                    outcome => return outcome.map_err(Failure::Kernel),
                },
            }
        }
        Err(Failure::Kernel(gone))
    }

    fn way(&self) -> Result<Way> {
        if let Some(way) = &*self.way.lock() {
            return Ok(way.clone());
        }
        // The lock is free meanwhile: who is asked may have to start first.
        let found = match own(self.name) {
            Some(object) => Way::Function(object?),
            None => Way::Door(Arc::new(ask(self.name)?)),
        };
        *self.way.lock() = Some(found.clone());
        Ok(found)
    }
}

/// Gets an identifier at the desk of a server, a module or another one that answers for [`desk`].
pub fn ask(name: &str) -> Result<Door> {
    let name = Name::new(name).ok_or(Failure::Garbled)?;
    let room = Room::new().map_err(Failure::Kernel)?;
    desk::door(names::resolve(home(), &name)?, room.window())?;
    Ok(room.into_door())
}

/// Objects take and give eight words. What is longer is not sent.
impl Callee for &Service {
    const REPLY: Kind = Kind::Reply;
    fn call<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words) {
        const { assert!(IN <= 8, "a call of a module has eight words at most") };
        let [w0, w1, w2, w3, w4, w5, w6, w7, ..] = words;
        let mut back = [0; WORDS];
        let label = match Service::call(self, label, [w0, w1, w2, w3, w4, w5, w6, w7]) {
            Ok((label, words)) => {
                back[..8].copy_from_slice(&words);
                label
            }
            Err(Failure::Refused(status)) => status as u32,
            Err(Failure::Kernel(error)) => return (error as u64, back),
            Err(Failure::Garbled) => return (Error::BadArgument as u64, back),
        };
        ((label as u64) << 32 | Self::REPLY as u64, back)
    }
    fn call_long<const IN: usize, const TAKES: bool>(self, _: u32, words: Words) -> (u64, Words) {
        (Error::BadArgument as u64, words)
    }
    fn call_pages(self, _: u32, words: Words, _: Pages) -> (u64, Words) {
        (Error::BadArgument as u64, words)
    }
    fn send(self, _: u32, _: Words) -> core::result::Result<(), Fault> {
        Err(Fault::Kernel(Error::BadArgument))
    }
    fn send_long(self, _: u32, _: Words) -> core::result::Result<(), Fault> {
        Err(Fault::Kernel(Error::BadArgument))
    }
    fn send_pages(self, _: u32, _: Words, _: Pages) -> core::result::Result<(), Fault> {
        Err(Fault::Kernel(Error::BadArgument))
    }
}
