//! Asynchronous input and output: `io_setup` and its like, as libaio makes them.
//!
//! A request is done while it is submitted, as Linux does those for files that it has in memory, and its outcome comes into the ring of its context. That is memory of the
//! process, from which a program may take outcomes without a call, so nothing is kept of a context but where its ring is. A request for a pipe or a socket waits as a read or a
//! write does, if it is the first of a call, and is left to the next call otherwise. Requests that wait for readiness (`IOCB_CMD_POLL`) are not there, as in Linux before 4.18.

use super::files::position;
use super::number;
use super::pieces::Piece;
use super::splice::check_flags;
use super::time::SECOND;
use crate::budget::Share;
use crate::errno::{EAGAIN, EBADF, EFAULT, EINVAL, ENOMEM, Result};
use crate::frames::{Bytes, PAGE};
use crate::machine::{Machine, Tid};
use crate::memory::{END, Kind, Rights};
use crate::open::{Object, Open};
use crate::process::Event;
use crate::socket::READABLE;
use crate::system::{Answer, DONE, Outcome, System};
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use vfs::FileSystem;

/// Requests of all contexts together, as they are asked for: what `/proc/sys/fs/aio-max-nr` says at first.
const REQUESTS_MAX: u64 = 65_536;

/// Outcomes for which a ring has room at least, and at most.
const OUTCOMES: [u64; 2] = [8, 0x1000_0000 / OUTCOME_BYTES];

/// Bytes of the budget that a context counts for.
const CONTEXT_BYTES: usize = 192;

/// Bytes of the head of a ring: `struct aio_ring`.
const HEAD_BYTES: u64 = 32;

/// Places in it: of the slot from which the next outcome is taken, and of that which gets the next one.
const NEXT_AT: u64 = 8;
/// See [`NEXT_AT`].
const FREE_AT: u64 = 12;

/// Mark of a ring in this form.
const MAGIC: u64 = 0xa10a_10a1;

/// Bytes of an outcome: `struct io_event`.
const OUTCOME_BYTES: u64 = 32;

/// Work behind which a call leaves other requests to the next one, since all processes stand still meanwhile: bytes that are moved, and for each request some more.
const WORK_MAX: u64 = 1 << 20;
/// Bytes that a request counts for, beside those that it moves.
const REQUEST_WORK: u64 = 4 << 10;
/// Bytes that a request counts for which is written to the disk.
const SYNC_WORK: u64 = 128 << 10;

/// Outcomes that are copied at once, at most.
const COPIED_MAX: u64 = 128;

/// Place of the key in a request.
const KEY_AT: u64 = 8;

/// Flag of a request: a counter (`eventfd`) hears of its outcome.
const TELLS_COUNTER: u32 = 1;

/// Operations: those of `pread`, `pwrite`, `fsync`, `fdatasync`, `preadv` and `pwritev`.
const READ: u16 = 0;
const WRITE: u16 = 1;
const SYNC: u16 = 2;
const SYNC_DATA: u16 = 3;
const READ_PIECES: u16 = 7;
const WRITE_PIECES: u16 = 8;

/// All contexts, by process and identifier, which is the address of the ring.
#[derive(Debug, Default)]
pub struct Contexts {
    all: BTreeMap<(Tid, u64), Context>,
    /// Requests for which there are contexts.
    requests: u64,
}

#[cfg(test)]
impl Contexts {
    /// Bytes of the budget that they count for.
    pub fn held(&self) -> usize {
        self.all.len() * CONTEXT_BYTES
    }
}

/// A context.
#[derive(Debug)]
struct Context {
    /// Number of what waiting threads wait for.
    number: u64,
    /// Requests for which it was made.
    requests: u64,
    /// Bytes of the ring.
    len: u64,
    /// Slots of the ring. One of them is always empty.
    slots: u32,
    /// The slot that gets the next outcome.
    free: u32,
    _share: Share,
}

/// Where outcomes are in a ring.
struct Ring {
    number: u64,
    slots: u32,
    next: u32,
    free: u32,
}

impl Ring {
    /// Outcomes that there are.
    fn len(&self) -> u32 {
        (self.free + self.slots - self.next) % self.slots
    }
}

/// A request: `struct iocb`.
struct Request {
    /// Number that its outcome brings back.
    data: u64,
    /// Flags, as those of `preadv2`.
    flags: u32,
    operation: u16,
    fd: u32,
    /// Address and bytes, or number of pieces.
    memory: Piece,
    offset: u64,
    /// The counter that hears of the outcome.
    counter: Option<u32>,
}

impl Request {
    /// A request of these words. `EINVAL`: it has a part that is not known, or is too long.
    fn of([data, key, operation, address, len, offset, reserved, told]: [u64; 8]) -> Result<Request> {
        if reserved != 0 || len > i64::MAX as u64 {
            return Err(EINVAL);
        }
        Ok(Request {
            data,
            flags: (key >> 32) as u32,
            operation: operation as u16,
            fd: (operation >> 32) as u32,
            memory: (address, len),
            offset,
            counter: (told as u32 & TELLS_COUNTER != 0).then_some((told >> 32) as u32),
        })
    }
}

/// State of a request that was submitted.
enum Submitted {
    /// It is done. Work that it has been, as [`WORK_MAX`] counts it.
    Done(u64),
    /// The call waits with it, or ends otherwise.
    Waits(Outcome),
}

/// Whether something has positions, so that nobody waits at it.
fn has_places(open: &Open) -> bool {
    let object = &open.object;
    matches!(object, Object::File { .. } | Object::Memory(_) | Object::Text { .. } | Object::Device { .. })
}

/// Whether it is read or written in one way with others, as requests want it.
fn is_able(open: &Open, writes: bool) -> bool {
    match open.object {
        Object::Counter { .. } => !writes,
        Object::Reader(_) | Object::Writer(_) | Object::Fifo(_) => true,
        Object::Socket(_) | Object::Inet(_) | Object::Netlink(_) => true,
        Object::Terminal { .. } | Object::Master { .. } => true,
        _ => has_places(open),
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// The ring of a context of a thread's process. `EINVAL`: there is none, or its memory is gone.
    fn ring_of(&mut self, tid: Tid, id: u64) -> Result<Ring> {
        let pid = self.pid(tid)?;
        let context = self.kept.aio.all.get(&(pid, id)).ok_or(EINVAL)?;
        let (number, slots, free) = (context.number, context.slots, context.free);
        let mut next = [0; 4];
        self.read(tid, id + NEXT_AT, &mut next).map_err(|_| EINVAL)?;
        Ok(Ring { number, slots, next: u32::from_le_bytes(next) % slots, free })
    }

    pub(crate) fn sys_io_setup(&mut self, tid: Tid, [count, to, ..]: [u64; 6]) -> Answer {
        let [before] = self.words(tid, to)?;
        let requests = u64::from(count as u32);
        if before != 0 || requests == 0 {
            return Err(EINVAL);
        }
        let outcomes = (requests * 2).max(OUTCOMES[0]);
        if outcomes > OUTCOMES[1] {
            return Err(EINVAL);
        }
        if self.kept.aio.requests + requests > REQUESTS_MAX {
            return Err(EAGAIN);
        }
        let share = self.budget.take(CONTEXT_BYTES).ok_or(ENOMEM)?;
        // One slot is empty, and one more is for luck, as in Linux.
        let len = (HEAD_BYTES + (outcomes + 2) * OUTCOME_BYTES).next_multiple_of(PAGE);
        let slots = ((len - HEAD_BYTES) / OUTCOME_BYTES) as u32;
        self.check_limit(tid, len)?;
        let (pid, room) = (self.pid(tid)?, self.room(tid)?);
        let kind = Kind::private(Rights::READ_WRITE);
        let id = room.borrow_mut().memory.map_near(&mut self.store.frames, 0, len, kind)?;
        let context = Context { number: self.ring(), requests, len, slots, free: 0, _share: share };
        self.kept.aio.all.insert((pid, id), context);
        self.kept.aio.requests += requests;
        // Its number, slots, the next outcome and the free slot; its form, and the length of this.
        let head = [u64::from(slots) << 32, 0, 1 << 32 | MAGIC, HEAD_BYTES << 32];
        let told = self.write_words(tid, id, &head).and_then(|()| self.write_words(tid, to, &[id]));
        if let Err(error) = told {
            self.forget_context(pid, id);
            let _ = room.borrow_mut().memory.unmap(&mut self.store.frames, id, len);
            return Err(error);
        }
        DONE
    }

    /// A context is there no more. Bytes of its ring.
    fn forget_context(&mut self, pid: Tid, id: u64) -> Option<u64> {
        let context = self.kept.aio.all.remove(&(pid, id))?;
        self.kept.aio.requests -= context.requests;
        self.tell(Event::Ring(context.number));
        Some(context.len)
    }

    /// A process has ended, or begins another program: its contexts are gone with its memory.
    pub(crate) fn forget_contexts(&mut self, pid: Tid) {
        let own = self.kept.aio.all.range((pid, 0)..=(pid, u64::MAX));
        let ids: Vec<u64> = own.map(|((_, id), _)| *id).collect();
        for id in ids {
            self.forget_context(pid, id);
        }
    }

    pub(crate) fn sys_io_destroy(&mut self, tid: Tid, [id, ..]: [u64; 6]) -> Answer {
        self.ring_of(tid, id)?;
        let (pid, room) = (self.pid(tid)?, self.room(tid)?);
        let len = self.forget_context(pid, id).ok_or(EINVAL)?;
        // A process may have unmapped it.
        let _ = room.borrow_mut().memory.unmap(&mut self.store.frames, id, len);
        DONE
    }

    /// No request is on its way.
    pub(crate) fn sys_io_cancel(&mut self, tid: Tid, [_, request, ..]: [u64; 6]) -> Answer {
        self.read(tid, request.wrapping_add(KEY_AT), &mut [0; 4])?;
        Err(EINVAL)
    }

    pub(crate) fn sys_io_submit(&mut self, tid: Tid, [id, count, list, ..]: [u64; 6]) -> Answer {
        if (count as i64) < 0 {
            return Err(EINVAL);
        }
        let slots = self.ring_of(tid, id)?.slots;
        let count = count.min(slots.into());
        let (mut index, mut work) = (0, 0);
        while index < count && work < WORK_MAX {
            let at = list.wrapping_add(index * 8);
            match self.submit(tid, id, at, index == 0) {
                Ok(Submitted::Done(more)) => work += more,
                Ok(Submitted::Waits(outcome)) => return Ok(outcome),
                Err(error) => return if index > 0 { number(Ok(index)) } else { Err(error) },
            }
            index += 1;
        }
        number(Ok(index))
    }

    /// Does the request whose address is at a place. The first one of a call alone waits.
    fn submit(&mut self, tid: Tid, id: u64, at: u64, is_first: bool) -> Result<Submitted> {
        let [address] = self.words(tid, at)?;
        let request = Request::of(self.words(tid, address)?)?;
        let ring = self.ring_of(tid, id)?;
        if ring.len() + 1 >= ring.slots {
            return Err(EAGAIN);
        }
        let open = self.open_file(tid, request.fd.into())?;
        let counter = match request.counter {
            Some(fd) => Some(self.open_file(tid, fd.into())?),
            None => None,
        };
        if counter.as_ref().is_some_and(|open| !matches!(open.object, Object::Counter { .. })) {
            return Err(EINVAL);
        }
        self.write(tid, address.wrapping_add(KEY_AT), &[0; 4])?;
        if !is_first && !has_places(&open) {
            return Err(EAGAIN);
        }
        let result = match self.perform(tid, &open, &request)? {
            Ok(Outcome::Value(value)) => value,
            Ok(Outcome::Wait(on, until)) => match core::mem::take(&mut self.thread(tid)?.done) {
                0 => return Ok(Submitted::Waits(Outcome::Wait(on, until))),
                // A part that is done is the outcome.
                done => done,
            },
            Ok(other) => return Ok(Submitted::Waits(other)),
            Err(error) => error.result(),
        };
        self.bring_outcome(tid, id, [request.data, address, result]);
        if let Some(Object::Counter { value, number, .. }) = counter.as_ref().map(|open| &open.object) {
            value.set(value.get().saturating_add(1));
            self.happened(*number, READABLE);
        }
        let work = match request.operation {
            SYNC | SYNC_DATA => SYNC_WORK,
            // An error is no number of bytes.
            _ => REQUEST_WORK + u64::try_from(result.cast_signed()).unwrap_or(0),
        };
        Ok(Submitted::Done(work))
    }

    /// Does what a request asks for. An error here is one of the call; that of the operation itself is its outcome.
    fn perform(&mut self, tid: Tid, open: &Rc<Open>, request: &Request) -> Result<Answer> {
        if matches!(request.operation, SYNC | SYNC_DATA) {
            let has_more = request.memory != (0, 0) || request.offset != 0 || request.flags != 0;
            if has_more {
                return Err(EINVAL);
            }
            return match self.sys_fsync(tid, [request.fd.into(), 0, 0, 0, 0, 0]) {
                // It is none of what is written back.
                Err(EINVAL) => Err(EINVAL),
                answer => Ok(answer),
            };
        }
        let writes = match request.operation {
            READ | READ_PIECES => false,
            WRITE | WRITE_PIECES => true,
            _ => return Err(EINVAL),
        };
        check_flags(request.flags.into())?;
        let is_open = if writes { open.is_writable() } else { open.is_readable() };
        if !is_open {
            return Err(EBADF);
        }
        if !is_able(open, writes) {
            return Err(EINVAL);
        }
        let pieces = self.pieces_of_request(tid, request)?;
        let offset = position(request.offset)?;
        let place = has_places(open).then_some(offset);
        if !writes {
            return Ok(self.read_into(tid, open, &pieces, place));
        }
        let written = self.write_from(tid, open, &pieces, place);
        Ok(self.synced(tid, request.fd.into(), request.flags, written))
    }

    fn pieces_of_request(&mut self, tid: Tid, request: &Request) -> Result<Vec<Piece>> {
        let (address, len) = request.memory;
        if matches!(request.operation, READ_PIECES | WRITE_PIECES) {
            return self.pieces(tid, address, len);
        }
        let end = address.checked_add(len).filter(|end| *end <= END);
        end.map(|_| Vec::from([(address, len)])).ok_or(EFAULT)
    }

    /// An outcome comes into the ring of a context.
    fn bring_outcome(&mut self, tid: Tid, id: u64, [data, request, result]: [u64; 3]) {
        let Ok(pid) = self.pid(tid) else { return };
        let Some(context) = self.kept.aio.all.get_mut(&(pid, id)) else { return };
        let slot = u64::from(context.free);
        context.free = (context.free + 1) % context.slots;
        let (free, number) = (context.free, context.number);
        // Memory that the process has given up gets nothing.
        let _ = self.write_words(tid, id + HEAD_BYTES + slot * OUTCOME_BYTES, &[data, request, result, 0]);
        let _ = self.write(tid, id + FREE_AT, &free.to_le_bytes());
        self.tell(Event::Ring(number));
    }

    /// When a call for outcomes waits no longer. A call that is made again has begun before.
    fn outcomes_until(&mut self, tid: Tid, timeout: u64) -> Result<Option<u64>> {
        if let Some(until) = self.thread(tid)?.until {
            return Ok(until);
        }
        if timeout == 0 {
            return Ok(None);
        }
        let [seconds, rest] = self.words::<2>(tid, timeout)?.map(u64::cast_signed);
        let time = seconds.saturating_mul(SECOND as i64).saturating_add(rest).max(0);
        Ok(Some(self.machine.now().saturating_add(time.cast_unsigned())))
    }

    pub(crate) fn sys_io_getevents(
        &mut self,
        tid: Tid,
        [id, least, most, to, timeout, _]: [u64; 6],
    ) -> Answer {
        let until = self.outcomes_until(tid, timeout)?;
        self.get_outcomes(tid, id, [least, most, to], until)
    }

    pub(crate) fn sys_io_pgetevents(
        &mut self,
        tid: Tid,
        [id, least, most, to, timeout, mask]: [u64; 6],
    ) -> Answer {
        let until = self.outcomes_until(tid, timeout)?;
        // It is read once, as the time.
        if mask != 0 && self.thread(tid)?.until.is_none() {
            let [set, bytes] = self.words(tid, mask)?;
            self.mask_meanwhile(tid, set, bytes)?;
        }
        self.get_outcomes(tid, id, [least, most, to], until)
    }

    /// Gives a thread outcomes: at least and at most so many, to an address. What it has already stays if it goes on to wait.
    fn get_outcomes(&mut self, tid: Tid, id: u64, [least, most, to]: [u64; 3], until: Option<u64>) -> Answer {
        let had = self.thread(tid)?.done;
        let ring = match self.ring_of(tid, id) {
            // The context went while the call has waited.
            Err(_) if had > 0 => return number(Ok(had)),
            ring => ring?,
        };
        if least > i64::MAX as u64 || least as i64 > most as i64 {
            return Err(EINVAL);
        }
        let event = Event::Ring(ring.number);
        let place = (to.wrapping_add(had.wrapping_mul(OUTCOME_BYTES)), most - had);
        let taken = match self.take_outcomes(tid, id, ring, place) {
            Err(_) if had > 0 => return number(Ok(had)),
            taken => taken?,
        };
        let all = had + taken;
        if all >= least || until.is_some_and(|until| until <= self.machine.now()) {
            return number(Ok(all));
        }
        self.thread(tid)?.done = all;
        Ok(Outcome::Wait(Vec::from([event]), until))
    }

    /// Takes outcomes out of a ring, at most so many, and writes them to an address. How many those were.
    fn take_outcomes(&mut self, tid: Tid, id: u64, mut ring: Ring, (to, most): (u64, u64)) -> Result<u64> {
        let count = u64::from(ring.len()).min(most);
        let mut taken = 0;
        while taken < count {
            let piece = (count - taken).min(u64::from(ring.slots - ring.next)).min(COPIED_MAX);
            let mut bytes = vec![0; (piece * OUTCOME_BYTES) as usize];
            self.read(tid, id + HEAD_BYTES + u64::from(ring.next) * OUTCOME_BYTES, &mut bytes)?;
            self.write(tid, to.wrapping_add(taken * OUTCOME_BYTES), &bytes)?;
            ring.next = (ring.next + piece as u32) % ring.slots;
            taken += piece;
        }
        if count > 0 {
            self.write(tid, id + NEXT_AT, &ring.next.to_le_bytes())?;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
