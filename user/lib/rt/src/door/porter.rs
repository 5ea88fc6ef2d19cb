//! The porter: a thread that receives what the program hands on to itself, since the kernel maps an identifier only from
//! one thread to another. In between it sends idle servers home.
//!
//! A copy is lost on no way: if whoever asked for it was torn from its wait, the porter keeps it until it is asked again.

use super::{Room, pool};
use crate::server;
use crate::sync::Mutex;
use alloc::vec::Vec;
use api::Reply;
use sys::{Error, Fpage, Ipc, Message, Result, Rights, Uid};

/// A request's label: here is an identifier, make it two.
const COPY: u32 = 1;
/// Question: did my last [`COPY`] succeed?
const CLAIM: u32 = 2;
/// There are more servers than before.
const GROWN: u32 = 3;

/// An answer's label beside [`Reply::DONE`]'s.
const FAILED: u32 = 0;

/// Nil: it has not begun.
static PORTER: Mutex<Uid> = Mutex::new(Uid::NIL);

/// The porter; it begins when it is wanted for the first time.
fn porter() -> Result<Uid> {
    let mut porter = PORTER.lock();
    if porter.is_nil() {
        let thread = crate::thread::spawn(super::own_priority(), || -> () { carry() })?;
        *porter = thread.uid();
        thread.detach();
    }
    Ok(*porter)
}

/// This program has the identifier once more, in the room that comes back.
pub fn copy(number: u32) -> Result<Room> {
    let porter = porter()?;
    let item = (Fpage::doors(number, 0, Rights::RW), 0);
    let mut request = Ipc { to: porter, label: COPY, item: Some(item), from: porter, ..Ipc::NONE };
    loop {
        match request.run() {
            Ok(Some(Message { label, words: [number, ..], .. })) if label == Reply::DONE.label => {
                return Ok(Room { number: number as u32 });
            }
            Ok(_) => return Err(Error::NoMemory),
            Err(Error::SendAborted) => {}
            // It has the request.
            Err(Error::ReceiveAborted) => (request.label, request.item) = (CLAIM, None),
            Err(error) => return Err(error),
        }
    }
}

/// The porter may have to look after the servers.
pub fn tell_of_growth() {
    if let Ok(porter) = porter() {
        let _ = sys::ipc_call(porter, GROWN, [0; 8]);
    }
}

/// Loop of the porter.
fn carry() -> ! {
    let own = sys::identity().task;
    let mut kept: Vec<(Uid, Room)> = Vec::new();
    let mut room = None;
    let mut look_ns = u64::MAX;
    loop {
        room = room.or_else(|| Room::new().ok());
        let window = room.as_ref().map_or(Fpage::NIL, Room::window);
        let until_ns = Some(look_ns).filter(|&ns| ns != u64::MAX);
        let message = match (Ipc { from: Uid::ANY, window, until_ns, ..Ipc::NONE }).run() {
            Ok(Some(message)) => message,
            Err(Error::ReceiveTimeout) => {
                let is_large = pool::shrink();
                look_ns = if is_large { crate::time::now_ns() + pool::IDLE_NS } else { u64::MAX };
                continue;
            }
            // It was aborted, or what came did not fit.
            Ok(None) | Err(_) => continue,
        };
        let sender = message.sender;
        let arrived = message.item().and_then(|_| room.take()).filter(|_| !message.flags.item_short());
        // Strangers get nothing, and what they send is gone.
        if !sys::thread_info(sender).is_ok_and(|info| info.task == own) {
            continue;
        }
        let copied = match message.label {
            COPY => arrived,
            CLAIM => {
                let place = kept.iter().position(|&(of, _)| of == sender);
                place.map(|place| kept.swap_remove(place).1)
            }
            GROWN => {
                look_ns = look_ns.min(crate::time::now_ns() + pool::IDLE_NS);
                let _ = server::reply(sender, &Reply::DONE);
                continue;
            }
            _ => None,
        };
        let Some(copied) = copied else {
            let _ = server::reply(sender, &Reply { label: FAILED, ..Reply::DONE });
            continue;
        };
        let words = [copied.number as u64, 0, 0, 0, 0, 0, 0, 0];
        match server::reply(sender, &Reply { words, ..Reply::DONE }) {
            Ok(()) => copied.leave(),
            Err(_) => kept.push((sender, copied)),
        }
    }
}
