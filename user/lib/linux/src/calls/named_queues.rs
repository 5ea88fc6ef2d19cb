//! Queues of messages of POSIX: `mq_open` and its like. They have names of their own, which no file system shows, and descriptors, which are polled as all others are.
//!
//! `notify` is how a process hears of a message. A queue without a name is there until the last descriptor of it is closed. The message that was sent first comes first, of those with the highest priority.

mod notify;

use super::ipc::Unsent;
use super::number;
use super::permissions::Subject;
use crate::errno::{
    EACCES, EAGAIN, EBADF, EEXIST, EFAULT, EINVAL, EMFILE, EMSGSIZE, ENOENT, ENOMEM, ENOSPC, EPERM,
    ETIMEDOUT, Result,
};
use crate::frames::{Bytes, PAGE};
use crate::ipc::{LastingShare, OBJECTS_MAX};
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::process::Event;
use crate::socket::{READABLE, WRITABLE};
use crate::system::{Answer, DONE, Outcome, System};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::cmp::Reverse;
use linux_raw_sys::general::{
    CAP_FOWNER, CAP_SYS_RESOURCE, O_ACCMODE, O_CREAT, O_EXCL, O_NONBLOCK, O_RDONLY, O_WRONLY, POLLOUT,
    POLLWRNORM, R_OK, RLIMIT_MSGQUEUE, W_OK,
};
use notify::Notice;
use vfs::FileSystem;

/// Longest name, with the zero behind it.
const NAME_MAX: usize = 256;

/// Queues that others than `root` may make, at most, with those of `root`.
const QUEUES_MAX: usize = 256;

/// Messages of a queue, and bytes of each: if nothing is said, and at most if it is not `root` who says it.
const USUAL: [u64; 2] = [10, 8192];

/// Messages of a queue of `root`, and bytes of each, at most.
const MOST: [u64; 2] = [65_536, 16 << 20];

/// Bytes that each message counts for in the limit of a user, beside its text.
const LIMIT_BYTES: u64 = 96;

/// Bytes of the budget that a queue counts for, beside its name.
const QUEUE_BYTES: usize = 512;

/// Bytes of the budget that a message counts for, beside its text.
const MESSAGE_BYTES: usize = 160;

/// Priorities are below this.
const PRIORITIES: u64 = 32_768;

/// Bytes of `struct mq_attr`: flags, most messages, most bytes of each, messages that there are, and four words without a meaning.
const ATTRIBUTES: usize = 64;

/// Mark of a thread that waits for a message. See [`Blocked::bits`](crate::process::Blocked::bits).
const RECEIVES: u32 = 1;
/// Mark of a thread that waits for room, in the same way.
const SENDS: u32 = 2;

/// Bytes that queues count for in the limits of users.
type Limits = Rc<RefCell<BTreeMap<u32, u64>>>;

/// All queues that have names.
#[derive(Debug, Default)]
pub struct NamedQueues {
    named: BTreeMap<Vec<u8>, Rc<NamedQueue>>,
    /// Also those without a name that are still open.
    limits: Limits,
}

impl NamedQueues {
    /// All queues that have names.
    #[cfg(test)]
    pub fn all(&self) -> impl Iterator<Item = &Rc<NamedQueue>> {
        self.named.values()
    }
}

/// Bytes that a queue counts for in the limit of a user.
#[derive(Debug)]
struct Charge {
    limits: Limits,
    owner: u32,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut limits = self.limits.borrow_mut();
        if let Some(used) = limits.get_mut(&self.owner) {
            *used = used.saturating_sub(self.bytes);
            if *used == 0 {
                limits.remove(&self.owner);
            }
        }
    }
}

#[derive(Debug)]
struct Message {
    text: Vec<u8>,
    _share: LastingShare,
}

/// A queue.
#[derive(Debug)]
pub struct NamedQueue {
    /// Number that no other has.
    pub number: u64,
    /// Its name, with a slash in front, also when it has been removed.
    pub name: Vec<u8>,
    /// Owner, group and permissions.
    pub(super) owner: (u32, u32),
    pub(super) permissions: u32,
    /// Most messages, and most bytes of each.
    most: [u64; 2],
    /// By priority and number.
    messages: RefCell<BTreeMap<(Reverse<u32>, u64), Message>>,
    /// Messages that there were.
    sent: Cell<u64>,
    notice: RefCell<Option<Notice>>,
    _charge: Charge,
    _share: LastingShare,
}

impl NamedQueue {
    fn len(&self) -> u64 {
        self.messages.borrow().len() as u64
    }

    /// Whether it has a message, and whether it has room for one: bits of `poll`.
    pub(super) fn ready(&self) -> u32 {
        let input = if self.len() > 0 { READABLE } else { 0 };
        let output = if self.len() < self.most[0] { POLLOUT | POLLWRNORM } else { 0 };
        input | output
    }

    /// Text that a read of its descriptor gives: bytes that wait in it, and who hears of the next message, and how.
    pub(super) fn text(&self) -> String {
        let bytes: usize = self.messages.borrow().values().map(|message| message.text.len()).sum();
        let (way, signal, process) = self.notice.borrow().as_ref().map_or((0, 0, 0), Notice::told);
        format!("QSIZE:{bytes:<10} NOTIFY:{way:<5} SIGNO:{signal:<5} NOTIFY_PID:{process:<6}\n")
    }

    fn attributes(&self, open: &Open) -> [u64; 8] {
        [u64::from(open.flags.get() & O_NONBLOCK), self.most[0], self.most[1], self.len(), 0, 0, 0, 0]
    }

    /// Bytes of the budget that it counts for.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        let texts =
            self.messages.borrow().values().map(|message| MESSAGE_BYTES + message.text.len()).sum::<usize>();
        let notice = self.notice.borrow().as_ref().map_or(0, Notice::held);
        QUEUE_BYTES + self.name.len() + texts + notice
    }
}

/// The queue of a descriptor.
fn queue_of(open: &Open) -> Result<Rc<NamedQueue>> {
    match &open.object {
        Object::Queue(queue) => Ok(queue.clone()),
        _ => Err(EBADF),
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// A name of a process, with a slash in front.
    fn queue_name(&mut self, tid: Tid, at: u64) -> Result<Vec<u8>> {
        let room = self.room(tid)?;
        let name = self.store.text(&mut room.borrow_mut().memory, at, NAME_MAX)?;
        match name.as_slice() {
            b"" => Err(ENOENT),
            b"." | b".." => Err(EACCES),
            name if name.contains(&b'/') => Err(EACCES),
            name => Ok([b"/", name].concat()),
        }
    }

    pub(crate) fn sys_mq_open(&mut self, tid: Tid, [name, flags, mode, attributes, ..]: [u64; 6]) -> Answer {
        let flags = flags as u32;
        let most = match attributes {
            0 => None,
            at => {
                let [_, messages, bytes, _] = self.words(tid, at)?;
                Some([messages, bytes])
            }
        };
        let name = self.queue_name(tid, name)?;
        let found = self.kept.ipc.named.named.get(&name).cloned();
        let queue = match found {
            None if flags & O_CREAT == 0 => return Err(ENOENT),
            None => self.make_queue(tid, name.clone(), mode as u32, most)?,
            Some(_) if flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL => return Err(EEXIST),
            Some(queue) => {
                let wanted = match flags & O_ACCMODE {
                    O_RDONLY => R_OK,
                    O_WRONLY => W_OK,
                    O_ACCMODE => return Err(EINVAL),
                    _ => R_OK | W_OK,
                };
                let may = |subject: &Subject| subject.may(queue.permissions, queue.owner, wanted);
                if !self.subject(tid)?.as_ref().is_none_or(may) {
                    return Err(EACCES);
                }
                queue
            }
        };
        let open = Open::new(Object::Queue(queue.clone()), flags & (O_ACCMODE | O_NONBLOCK));
        let fd = self.add_descriptor(tid, open, true, 0)?;
        self.kept.ipc.named.named.entry(name).or_insert(queue);
        number(Ok(fd))
    }

    fn make_queue(
        &mut self,
        tid: Tid,
        name: Vec<u8>,
        mode: u32,
        most: Option<[u64; 2]>,
    ) -> Result<Rc<NamedQueue>> {
        let process = self.process(tid)?;
        let (limit, owners) = (process.limits[RLIMIT_MSGQUEUE as usize][0], &process.owners);
        let (payer, owner) = (owners.owner[0], (owners.owner[1], owners.group[1]));
        let permissions = mode & !process.umask() & 0o777;
        let is_root = self.can(tid, CAP_SYS_RESOURCE);
        let all = &self.kept.ipc.named;
        if all.named.len() >= if is_root { OBJECTS_MAX } else { QUEUES_MAX } {
            return Err(ENOSPC);
        }
        let most = most.unwrap_or(USUAL);
        let allowed = if is_root { MOST } else { USUAL };
        if most.iter().zip(allowed).any(|(wanted, allowed)| !(1..=allowed).contains(wanted)) {
            return Err(EINVAL);
        }
        let bytes = most[0] * (most[1] + LIMIT_BYTES);
        let used = all.limits.borrow().get(&payer).copied().unwrap_or(0);
        if used.saturating_add(bytes) > limit {
            return Err(EMFILE);
        }
        let share = self.kept.ipc.lasting.take(&self.budget, QUEUE_BYTES + name.len()).ok_or(ENOSPC)?;
        let limits = self.kept.ipc.named.limits.clone();
        *limits.borrow_mut().entry(payer).or_default() += bytes;
        Ok(Rc::new(NamedQueue {
            number: self.ring(),
            name,
            owner,
            permissions,
            most,
            messages: RefCell::default(),
            sent: Cell::new(0),
            notice: RefCell::new(None),
            _charge: Charge { limits, owner: payer, bytes },
            _share: share,
        }))
    }

    pub(crate) fn sys_mq_unlink(&mut self, tid: Tid, [name, ..]: [u64; 6]) -> Answer {
        let name = self.queue_name(tid, name)?;
        let queue = self.kept.ipc.named.named.get(&name).ok_or(ENOENT)?;
        // They are in a directory of `root`'s that keeps what is others'.
        let owners = [queue.owner.0, 0];
        if !owners.contains(&self.process(tid)?.owners.owner[1]) && !self.can(tid, CAP_FOWNER) {
            return Err(EPERM);
        }
        self.kept.ipc.named.named.remove(&name);
        DONE
    }

    /// A wait for a message, or for room: nobody waits with a descriptor that says so, or after a time.
    fn wait_at_queue(&self, open: &Open, queue: &NamedQueue, until: Option<u64>) -> Answer {
        if open.has(O_NONBLOCK) {
            return Err(EAGAIN);
        }
        if until.is_some_and(|until| until <= self.machine.now()) {
            return Err(ETIMEDOUT);
        }
        Ok(Outcome::Wait(Vec::from([Event::Ring(queue.number)]), until))
    }

    pub(crate) fn sys_mq_timedsend(
        &mut self,
        tid: Tid,
        [fd, from, len, priority, timeout, _]: [u64; 6],
    ) -> Answer {
        let until = self.absolute_deadline(tid, timeout, true)?;
        let priority = u64::from(priority as u32);
        if priority >= PRIORITIES {
            return Err(EINVAL);
        }
        let open = self.open_file(tid, fd)?;
        let queue = queue_of(&open)?;
        if !open.is_writable() {
            return Err(EBADF);
        }
        if len > queue.most[1] {
            return Err(EMSGSIZE);
        }
        let kept = self.thread(tid)?.unsent.take();
        let len = len as usize;
        if queue.len() >= queue.most[0] {
            // An address that is wrong is told before anything else, and who does not wait keeps nothing.
            if kept.is_none() {
                self.check_readable(tid, from, len as u64)?;
            }
            let wait = self.wait_at_queue(&open, &queue, until)?;
            let unsent = match kept {
                Some(unsent) => unsent,
                None => {
                    let share = self.share_of_unsent(len)?;
                    Box::new(Unsent { kind: 0, text: self.text_at(tid, from, len)?, share })
                }
            };
            let thread = self.thread(tid)?;
            (thread.bits, thread.unsent) = (SENDS, Some(unsent));
            return Ok(wait);
        }
        let kept = kept.map(|unsent| unsent.text);
        let share = self.kept.ipc.lasting.take(&self.budget, MESSAGE_BYTES + len).ok_or(ENOMEM)?;
        let text = match kept {
            Some(text) => text,
            None => self.text_at(tid, from, len)?,
        };
        queue.sent.set(queue.sent.get() + 1);
        let place = (Reverse(priority as u32), queue.sent.get());
        queue.messages.borrow_mut().insert(place, Message { text, _share: share });
        self.notify_of_message(tid, &queue)?;
        self.happened(queue.number, READABLE);
        DONE
    }

    /// Fails unless all of some memory can be read.
    fn check_readable(&mut self, tid: Tid, from: u64, len: u64) -> Result<()> {
        let (mut at, end) = (from, from.checked_add(len).ok_or(EFAULT)?);
        while at < end {
            self.read(tid, at, &mut [0])?;
            at = (at / PAGE + 1) * PAGE;
        }
        Ok(())
    }

    /// Text of a message, as a process has it.
    fn text_at(&mut self, tid: Tid, from: u64, len: usize) -> Result<Vec<u8>> {
        let mut text = vec![0; len];
        self.read(tid, from, &mut text)?;
        Ok(text)
    }

    pub(crate) fn sys_mq_timedreceive(
        &mut self,
        tid: Tid,
        [fd, to, len, priority, timeout, _]: [u64; 6],
    ) -> Answer {
        let until = self.absolute_deadline(tid, timeout, true)?;
        let open = self.open_file(tid, fd)?;
        let queue = queue_of(&open)?;
        if !open.is_readable() {
            return Err(EBADF);
        }
        if len < queue.most[1] {
            return Err(EMSGSIZE);
        }
        let mut messages = queue.messages.borrow_mut();
        let Some(first) = messages.first_entry() else {
            drop(messages);
            let wait = self.wait_at_queue(&open, &queue, until)?;
            self.thread(tid)?.bits = RECEIVES;
            return Ok(wait);
        };
        let (Reverse(found), _) = *first.key();
        // A message that cannot be given to the process stays.
        self.write(tid, to, &first.get().text)?;
        if priority != 0 {
            self.write(tid, priority, &found.to_le_bytes())?;
        }
        let message = first.remove();
        drop(messages);
        self.happened(queue.number, WRITABLE);
        number(Ok(message.text.len() as u64))
    }

    pub(crate) fn sys_mq_getsetattr(&mut self, tid: Tid, [fd, new, old, ..]: [u64; 6]) -> Answer {
        let flags = match new {
            0 => None,
            at => {
                let mut bytes = [0; ATTRIBUTES];
                self.read(tid, at, &mut bytes)?;
                let flags = bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
                Some(u32::try_from(flags).ok().filter(|flags| flags & !O_NONBLOCK == 0).ok_or(EINVAL)?)
            }
        };
        let open = self.open_file(tid, fd)?;
        let queue = queue_of(&open)?;
        let attributes = queue.attributes(&open);
        if old != 0 {
            self.write_words(tid, old, &attributes)?;
        }
        if let Some(flags) = flags {
            open.flags.set(open.flags.get() & !O_NONBLOCK | flags);
        }
        DONE
    }
}

#[cfg(test)]
mod tests;
