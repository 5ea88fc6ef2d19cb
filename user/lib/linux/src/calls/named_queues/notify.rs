//! Notices of messages: `mq_notify`. A process hears of the next message that comes into an empty queue and that nobody waits for: by a signal, or by a message at a socket of
//! netlink. By that, C libraries begin threads (`SIGEV_THREAD`): it has 32 bytes of theirs, and the last one says what has happened.
//!
//! The socket has room for its message from the beginning, so that it comes whatever else is there by then. If the socket is closed, nobody hears.

use super::{NamedQueue, RECEIVES, queue_of};
use crate::errno::{EBUSY, EFAULT, EINVAL, ENOMEM, ENOTSOCK, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::netlink::Reserved;
use crate::open::{Object, Open};
use crate::process::{Event, SIGNALS};
use crate::signal::{Cause, Signal};
use crate::socket::READABLE;
use crate::system::{Answer, DONE, Outcome, System};
use alloc::boxed::Box;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use linux_raw_sys::general::{SI_MESGQ, SIGEV_NONE, SIGEV_SIGNAL, SIGEV_THREAD};
use vfs::FileSystem;

/// Bytes of a message of netlink: `NOTIFY_COOKIE_LEN`.
const COOKIE_BYTES: usize = 32;

/// Last byte of it: a message has come into the queue.
const WOKEN_UP: u8 = 1;
/// The process hears of no message any more, in the same place.
const REMOVED: u8 = 2;

/// Words of `struct sigevent`.
const EVENT_WORDS: usize = 8;

/// A process that hears of the next message.
#[derive(Debug)]
pub(super) struct Notice {
    process: Tid,
    told: Told,
}

/// By what a process is told of a message.
#[derive(Debug)]
enum Told {
    /// It is not told, and no other process can ask meanwhile.
    Nothing,
    /// A signal with a value. It is for the program that has asked, of those that the process has had by their count: another one hears nothing.
    Signal { program: u64, signal: Signal, value: u64 },
    /// A message of netlink.
    Cookie(Box<Cookie>),
}

/// A message of netlink that comes later.
#[derive(Debug)]
struct Cookie {
    bytes: [u8; COOKIE_BYTES],
    socket: Weak<Open>,
    room: Reserved,
}

/// Notice that a process asks for by `struct sigevent`.
enum Wanted {
    Nothing,
    Signal(Signal, u64),
    Cookie([u8; COOKIE_BYTES], Rc<Open>),
}

impl Notice {
    /// How a process is told (`SIGEV_NONE` and its like), by which signal, and which process it is.
    pub(super) fn told(&self) -> (u32, u32, Tid) {
        let (way, signal) = match &self.told {
            Told::Nothing => (SIGEV_NONE, 0),
            Told::Signal { signal, .. } => (SIGEV_SIGNAL, *signal),
            Told::Cookie(_) => (SIGEV_THREAD, 0),
        };
        (way, signal, self.process)
    }
}

#[cfg(test)]
impl Notice {
    /// Bytes of the budget that it counts for.
    pub(super) fn held(&self) -> usize {
        match &self.told {
            Told::Cookie(cookie) => cookie.room.held(),
            _ => 0,
        }
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Somebody hears of a message if it is the only one, and nobody waits for it.
    pub(super) fn notify_of_message(&mut self, tid: Tid, queue: &NamedQueue) -> Result<()> {
        let receivers = self.waiters(Event::Ring(queue.number));
        if queue.len() != 1 || receivers.iter().any(|(_, bits)| *bits == RECEIVES) {
            return Ok(());
        }
        let Some(Notice { process, told }) = queue.notice.take() else { return Ok(()) };
        match told {
            Told::Nothing => {}
            Told::Signal { program, signal, value } => {
                let sender = (self.pid(tid)?, self.process(tid)?.owners.owner[0]);
                if self.processes.get(&process).is_some_and(|found| found.programs == program) {
                    // One that has ended hears nothing.
                    let _ = self.send(process, signal, Cause { code: SI_MESGQ, sender, value });
                }
            }
            Told::Cookie(cookie) => self.send_cookie(*cookie, WOKEN_UP),
        }
        Ok(())
    }

    /// A process has closed a descriptor of a queue, or ended, or does not want to hear any more. A socket is told that it hears of no message.
    pub(crate) fn forget_notice(&mut self, queue: &NamedQueue, process: Tid) {
        let is_its_own = |notice: &mut Notice| notice.process == process;
        let notice = queue.notice.borrow_mut().take_if(is_its_own);
        if let Some(Notice { told: Told::Cookie(cookie), .. }) = notice {
            self.send_cookie(*cookie, REMOVED);
        }
    }

    fn send_cookie(&mut self, cookie: Cookie, last: u8) {
        let Some(open) = cookie.socket.upgrade() else { return };
        let Object::Netlink(socket) = &open.object else { return };
        let mut bytes = cookie.bytes;
        bytes[COOKIE_BYTES - 1] = last;
        socket.fill(cookie.room, bytes.to_vec());
        self.happened(socket.number, READABLE);
    }

    /// Reads what a process asks for. `ENOTSOCK`: the descriptor of a socket leads to something else; `EINVAL`: to another kind of sockets.
    fn wanted_notice(&mut self, tid: Tid, at: u64) -> Result<Wanted> {
        let [value, kind, ..]: [u64; EVENT_WORDS] = self.words(tid, at).map_err(|_| EFAULT)?;
        let (signal, kind) = (kind as u32, (kind >> 32) as u32);
        match kind {
            SIGEV_NONE => Ok(Wanted::Nothing),
            // A signal without a number is none, as in Linux.
            SIGEV_SIGNAL if signal == 0 => Ok(Wanted::Nothing),
            SIGEV_SIGNAL if signal <= SIGNALS as u32 => Ok(Wanted::Signal(signal, value)),
            SIGEV_THREAD => {
                let mut bytes = [0; COOKIE_BYTES];
                self.read(tid, value, &mut bytes)?;
                let open = self.open_file(tid, signal.into())?;
                match &open.object {
                    Object::Netlink(_) => Ok(Wanted::Cookie(bytes, open)),
                    Object::Socket(_) | Object::Inet(_) => Err(EINVAL),
                    _ => Err(ENOTSOCK),
                }
            }
            _ => Err(EINVAL),
        }
    }

    /// Way in which a process is told later. `ENOMEM`: a message of netlink cannot be kept.
    fn told(&mut self, tid: Tid, wanted: Wanted) -> Result<Told> {
        match wanted {
            Wanted::Nothing => Ok(Told::Nothing),
            Wanted::Signal(signal, value) => {
                Ok(Told::Signal { program: self.process(tid)?.programs, signal, value })
            }
            Wanted::Cookie(bytes, open) => {
                let Object::Netlink(socket) = &open.object else { return Err(ENOTSOCK) };
                let room = socket.reserve(COOKIE_BYTES).ok_or(ENOMEM)?;
                Ok(Told::Cookie(Box::new(Cookie { bytes, socket: Rc::downgrade(&open), room })))
            }
        }
    }

    pub(crate) fn sys_mq_notify(&mut self, tid: Tid, [fd, event, ..]: [u64; 6]) -> Answer {
        let wanted = match event {
            0 => None,
            at => Some(self.wanted_notice(tid, at)?),
        };
        if let Some(Wanted::Cookie(_, open)) = &wanted
            && let Object::Netlink(socket) = &open.object
            && socket.is_full()
        {
            return Ok(Outcome::Wait(Vec::from([Event::Ring(socket.number)]), None));
        }
        let process = self.pid(tid)?;
        let queue = queue_of(&*self.open_file(tid, fd)?)?;
        match wanted {
            None => self.forget_notice(&queue, process),
            Some(_) if queue.notice.borrow().is_some() => return Err(EBUSY),
            Some(wanted) => {
                let told = self.told(tid, wanted)?;
                queue.notice.replace(Some(Notice { process, told }));
            }
        }
        DONE
    }
}

#[cfg(test)]
mod tests;
