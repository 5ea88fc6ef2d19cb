//! All registers of a thread at once, for `thread_control` (row C8, decision 0083): those of its frame, and its extended state as an image.
//!
//! Between the caller's memory and the thread there is a place that no user sees: the kernel stack of the thread, which does not run. What
//! comes in is copied there first, checked there, and stored from there, so that nothing can change between check and use, and a state
//! that was set half is never run. A page of the caller's that is not there is an ordinary page fault of the caller's; afterwards the call
//! begins anew.
//!
//! A short block has the general registers alone. Those are nobody's but the thread's, whoever works on its shuttle.

use super::registers::{complete, fs_base, stands_still};
use super::thread_control::keep_fs;
use crate::arch::extended::{Extended, has_bases, is_fit, parts};
use crate::arch::image::Image;
use crate::args::{Args, done};
use crate::ipc::fault;
use crate::kernel::Kernel;
use crate::object::ThreadRef;
use crate::object::thread::{Errand, Frame, Operation, STATE_WORDS, State, special};
use crate::processor::{self, copy, extended};
use crate::sched::Next;
use abi::state::STATE_GS;
use abi::{Error, Rights, ThreadState};
use core::cell::Cell;
use core::mem::offset_of;

/// A state as words; each of these constants is an index.
type Words = [Cell<u64>; STATE_WORDS];

const LEN_BYTES: usize = offset_of!(ThreadState, len_bytes) / 8;
const PARTS: usize = offset_of!(ThreadState, parts) / 8;
const FIRST_REGISTER: usize = offset_of!(ThreadState, registers) / 8;
const FS_BASE: usize = offset_of!(ThreadState, fs_base) / 8;
const GS_BASE: usize = offset_of!(ThreadState, gs_base) / 8;
const RESERVED: usize = offset_of!(ThreadState, reserved) / 8;
const IMAGE: usize = offset_of!(ThreadState, image) / 8;

/// Gives the caller the state of a thread.
pub fn get(k: &Kernel, current: ThreadRef, thread: ThreadRef, args: &Args) -> Next {
    let block = match block(args) {
        Ok(block) if stands_still(thread) && block.may_be_of(k, thread) => block,
        Ok(_) => return done(current, Err(Error::BadState)),
        Err(error) => return done(current, Err(error)),
    };
    complete(thread);
    let words = match block.is_short {
        true => {
            let registers = general(place(thread));
            registers.iter().zip(thread.tcb().frame.registers()).for_each(|(word, of)| word.set(of.get()));
            registers
        }
        false => {
            extended::with(k, thread, |extended| gather(thread, extended, place(thread)));
            place(thread)
        }
    };
    match copy::store(block.address, words) {
        Ok(()) => done(current, Ok(())),
        Err(at) => wait_for_page(k, current, at, Rights::W),
    }
}

/// Sets the state of a thread. One that has never run is stopped afterwards.
pub fn set(k: &Kernel, current: ThreadRef, thread: ThreadRef, args: &Args) -> Next {
    let block = match block(args) {
        Ok(block) if may_be_set(k, thread, &block) => block,
        Ok(_) => return done(current, Err(Error::BadState)),
        Err(error) => return done(current, Err(error)),
    };
    let words = place(thread);
    let from = if block.is_short { general(words) } else { words };
    if let Err(at) = copy::load(block.address, from) {
        return wait_for_page(k, current, at, Rights::R);
    }
    let result = match block.is_short {
        true => check_general(general(words)).map(|()| store_general(thread, words)),
        false => check(words).map(|()| store(k, thread, words)),
    };
    done(current, result)
}

/// Whether a thread stands still, and nobody else works with what would be changed; or it never ran, and gets a whole state.
fn may_be_set(k: &Kernel, thread: ThreadRef, block: &Block) -> bool {
    let never_ran = thread.state.get() == State::Inactive;
    never_ran && !block.is_short || stands_still(thread) && block.may_be_of(k, thread)
}

/// A block in the caller's memory.
struct Block {
    address: u64,
    /// Whether it has the general registers alone.
    is_short: bool,
}

impl Block {
    /// Whether nobody but the thread has what the block holds.
    fn may_be_of(&self, k: &Kernel, thread: ThreadRef) -> bool {
        self.is_short || !extended::is_with_another(k, thread)
    }
}

/// The caller's block, if it may be one.
fn block(args: &Args) -> Result<Block, Error> {
    let (address, room) = (args.second(), args.third());
    let is_short = room == ThreadState::GENERAL_BYTES;
    let (len, align) = match is_short {
        true => (ThreadState::GENERAL_BYTES, align_of::<u64>()),
        false => (ThreadState::LEN_BYTES, align_of::<ThreadState>()),
    };
    let is_aligned = address.is_multiple_of(align as u64);
    let is_user = address <= abi::USER_END - len;
    if is_aligned && is_user && room >= len {
        Ok(Block { address, is_short })
    } else {
        Err(Error::BadArgument)
    }
}

/// The place between the caller's memory and a thread that does not run.
pub(super) fn place(thread: ThreadRef) -> &'static Words {
    debug_assert!(thread != processor::current(), "a kernel stack that is in use");
    thread.tcb().place_for_state()
}

/// Raises the page fault of the current thread, at a page of its block. Afterwards the call begins anew.
#[cold]
pub(super) fn wait_for_page(k: &Kernel, current: ThreadRef, address: u64, rights: Rights) -> Next {
    current.operation.set(Operation::CopyState);
    k.set_busy(current);
    fault::fault_in_call(k, current, address, rights)
}

/// Parts of a state on this processor.
fn available() -> u64 {
    parts() | if has_bases() { STATE_GS } else { 0 }
}

fn image(words: &Words) -> &Image {
    words.last_chunk().expect("an image is a part of a state")
}

/// Words of the general registers.
fn general(words: &Words) -> &[Cell<u64>] {
    &words[FIRST_REGISTER..FS_BASE]
}

/// Writes down the state of a thread whose frame is complete.
fn gather(thread: ThreadRef, extended: &Extended, words: &Words) {
    words[LEN_BYTES].set(ThreadState::LEN_BYTES);
    words[PARTS].set(available());
    let frame = thread.tcb().frame.registers();
    general(words).iter().zip(frame).for_each(|(word, register)| word.set(register.get()));
    words[FS_BASE].set(fs_base(thread, extended).get());
    words[GS_BASE].set(if has_bases() { extended.gs_base.get() } else { 0 });
    words[RESERVED..IMAGE].iter().for_each(|word| word.set(0));
    extended.read(image(words));
}

/// Checks a state that is to be set. Of its flags those remain that a user may have.
fn check(words: &Words) -> Result<(), Error> {
    let parts = words[PARTS].get();
    let is_known = words[LEN_BYTES].get() == ThreadState::LEN_BYTES && parts & !available() == 0;
    let is_plain = words[RESERVED..IMAGE].iter().all(|word| word.get() == 0);
    let [first, second] = [FS_BASE, GS_BASE].map(|base| words[base].get());
    let fs_fits = if has_bases() { is_canonical(first) } else { first >> 47 == 0 };
    let gs_fits = if parts & STATE_GS != 0 { is_canonical(second) } else { second == 0 };
    if !(is_known && is_plain && fs_fits && gs_fits && is_fit(image(words))) {
        return Err(Error::BadArgument);
    }
    check_general(general(words))
}

/// Checks general registers that are to be set, in the order of a state.
fn check_general(registers: &[Cell<u64>]) -> Result<(), Error> {
    let group: [u64; 4] = core::array::from_fn(|i| registers[i].get());
    let group = Frame::checked_group(0, group).ok_or(Error::BadArgument)?;
    registers.iter().zip(group).for_each(|(word, value)| word.set(value));
    Ok(())
}

/// Whether a register for addresses holds the value: its upper bits are copies of bit 47.
fn is_canonical(address: u64) -> bool {
    (address as i64) << 16 >> 16 == address as i64
}

/// Gives a thread a state that was checked.
fn store(k: &Kernel, thread: ThreadRef, words: &Words) {
    store_general(thread, words);
    extended::with(k, thread, |extended| {
        extended.write(image(words));
        if has_bases() {
            extended.fs_base.set(words[FS_BASE].get());
            extended.gs_base.set(words[GS_BASE].get());
        }
    });
    if !has_bases() {
        keep_fs(thread, words[FS_BASE].get());
    }
    if thread.state.get() == State::Inactive {
        thread.operation.set(Operation::None);
        thread.errand.set(Errand::Ipc);
        thread.set_special(special::STOPPED, 0);
        thread.set_ready();
    }
}

/// Gives a thread general registers that were checked.
fn store_general(thread: ThreadRef, words: &Words) {
    complete(thread);
    let frame = thread.tcb().frame.registers();
    frame.iter().zip(general(words)).for_each(|(register, word)| register.set(word.get()));
}
