//! Doors: to make one, to serve, to call, to give identifiers back.
//!
//! An identifier is a number that the program chooses; how one comes into another task is a matter of map items, see
//! [`Fpage::doors`]. Who wants objects with a life of their own takes the module `door` of `rt` instead of this.

use crate::control::control;
use crate::ipc::registers;
use crate::{Fpage, Result, Rights, error, flush, flush_self};
use abi::Error;
use abi::call::{Call, DOOR_CALL, door_op};
use abi::op::{self, Op};
use core::arch::global_asm;
use core::sync::atomic::AtomicU64;

const fn operation(op: u32) -> u32 {
    Call::DoorControl as u32 | op << 8
}

/// One identifier, with all that can be taken.
const fn one(identifier: u32) -> Fpage {
    Fpage::doors(identifier, 0, Rights::RW)
}

/// Makes a door (row D1): this task has it as `number`, its calls arrive at `entry` with `datum` in `rdx`.
///
/// Errors: [`Error::BadArgument`] for a number or entry that there cannot be, [`Error::BadState`] if the number is in use,
/// [`Error::NoMemory`].
///
/// # Safety
///
/// The code at `entry` must be sound to run on the stacks of this task's servers, with whatever words somebody calls with.
/// It must end in *door return*.
pub unsafe fn door_create(number: u32, entry: u64, datum: u64) -> Result<()> {
    control(operation(door_op::CREATE), [number as u64, entry, datum, 0, 0, 0]).map(drop)
}

/// The calling thread serves its task's doors (row D7) until somebody aborts its wait. Then, or if it cannot begin, it
/// comes back with the reason: [`Error::ReceiveAborted`]; [`Error::BadState`] if it serves already, [`Error::Limit`] if
/// [`SERVERS_MAX`](abi::call::SERVERS_MAX) others do.
///
/// Each call begins at its door's entry with a stack pointer that is a multiple of 16 and stands in `stack` from now on. There lies the
/// address of `stack`, by which an entry finds what belongs to the thread. It owns what lies below, and nothing from there on.
///
/// # Safety
///
/// The entries of the task's doors must be sound to run on this thread with whatever `stack` is a part of.
pub unsafe fn door_serve(stack: &AtomicU64) -> Error {
    // SAFETY: the function keeps the registers that a function keeps. What entries do in between, below its stack pointer, hits
    // nothing; the rest is the caller's promise.
    error(unsafe { tern_door_serve(stack) })
}

/// The instruction pointer of a server that waits for the first call of its life. Later ones wait where their last return is.
pub fn door_serve_ip() -> u64 {
    &raw const tern_door_served as u64
}

unsafe extern "C" {
    fn tern_door_serve(stack: &AtomicU64) -> u64;
    static tern_door_served: u8;
}

global_asm!(
    // In: rdi where to leave the stack pointer. Out: rax the error. The kernel comes back with all other registers changed but rsp. One line, so
    // that who is back cannot fault before it has got somewhere.
    ".balign 64",
    "tern_door_serve:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "push rdi",
    "mov [rdi], rsp",
    "mov eax, {serve}",
    "syscall",
    "tern_door_served:",
    "pop rdi",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    serve = const operation(door_op::SERVE),
);

/// Waits until a caller has to wait for a server of this task, and says how many servers there are (row D7).
///
/// Errors: [`Error::BadState`] if another thread of the task watches already, [`Error::ReceiveAborted`].
pub fn door_shortage() -> Result<u32> {
    control(operation(door_op::SHORTAGE), [0; 6]).map(|[servers, ..]| servers as u32)
}

/// Calls through a door and waits for the return (rows D1, D3, D11): label and words there, label and words back. Words w8 … w10
/// are sent as 0.
///
/// Errors: [`Error::NoSuch`] if this task has no such identifier, [`Error::PartnerDied`] if the server or its task has ended.
/// [`Error::SendAborted`] and [`Error::ReceiveAborted`] say that somebody ended the call before a server had it, or
/// after; then it goes on and returns to nobody.
#[inline(always)]
pub fn door_call(identifier: u32, label: u32, words: [u64; 8]) -> Result<(u32, [u64; 8])> {
    call_as(DOOR_CALL, identifier, label, words)
}

/// Calls like [`door_call`], ended by an alert of the calling thread (row D9): with [`Error::SendAborted`] before a server has the call, also if the
/// thread was alerted already, with [`Error::ReceiveAborted`] after that. Then it goes on, alerted, and returns to nobody.
pub fn door_call_alertable(identifier: u32, label: u32, words: [u64; 8]) -> Result<(u32, [u64; 8])> {
    call_as(Op::DOOR_CALL.with(op::ALERTABLE).0, identifier, label, words)
}

#[inline(always)]
fn call_as(form: u32, identifier: u32, label: u32, words: [u64; 8]) -> Result<(u32, [u64; 8])> {
    let (rax, _, words) = registers((label as u64) << 32 | form as u64, identifier as u64, words);
    if rax as u32 >> 31 == 0 {
        return Err(error(rax as u32 as u64));
    }
    Ok(((rax >> 32) as u32, words))
}

/// This task has the identifier no more, if it had it (row D4). For the door's maker the door is gone, and with it everybody's
/// identifiers; calls that run go on (row D5).
///
/// Error: [`Error::BadArgument`] if there cannot be such an identifier.
pub fn door_release(identifier: u32) -> Result<()> {
    // SAFETY: an identifier is no memory.
    unsafe { flush_self(one(identifier)) }.map(drop)
}

/// Takes all identifiers of a door that this task made (row D5) but the maker's own. Calls that run go on; afterwards the
/// door is unreferenced. On an identifier that came from elsewhere it has no effect.
///
/// Error: as for [`door_release`].
pub fn door_revoke(number: u32) -> Result<()> {
    flush(one(number)).map(drop)
}
