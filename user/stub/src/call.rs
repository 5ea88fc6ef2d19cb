//! The client's half: one system call, inlined into whoever calls.
//!
//! Every word travels, so words without a value are cleared; and everything but the stack pointer is lost. The compiler
//! keeps `rbx` and `rbp` for itself, so these two are saved around the call.

#![allow(unsafe_code)]

use crate::{DONE, Malformed, WORDS, Words};
use sys::abi::call::{IPC_CALL, IPC_LONG_CALL, Kind, NO_BLOCK};
use sys::{Block, Dope, Error, Ipc, Timeout, Uid, message_asm};

/// Why a call failed, other than by an exception of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The message or its reply did not get through.
    Kernel(Error),
    /// The reply is no valid message.
    Malformed,
    /// The server refused the request: [`MALFORMED`](crate::MALFORMED), [`NO_METHOD`](crate::NO_METHOD), or an error of
    /// its own.
    Refused(u32),
    /// An argument is too long for its type.
    TooLong,
    /// The reply is not where it was to arrive: another [`Inbox`](crate::Inbox) was opened after the one that was given.
    OtherInbox,
}

impl Failure {
    /// The label of the reply with which a server's method fails.
    pub const fn label(self) -> u32 {
        match self {
            Failure::Refused(label) => label,
            _ => crate::MALFORMED,
        }
    }
}

impl From<Malformed> for Failure {
    fn from(_: Malformed) -> Failure {
        Failure::Malformed
    }
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self {
            Failure::Kernel(error) => error.fmt(f),
            Failure::Malformed => f.write_str("the reply is malformed"),
            Failure::Refused(label) => write!(f, "the server refused the request ({label:#x})"),
            Failure::TooLong => f.write_str("an argument is too long"),
            Failure::OtherInbox => f.write_str("the reply arrived in another inbox"),
        }
    }
}

/// Sends a request of up to `IN` words and waits for the reply: `rax`, and the words. [`DONE`] in `rax` is success.
#[inline(always)]
pub fn call<const IN: usize>(to: Uid, label: u32, words: Words) -> (u64, Words) {
    invoke::<IN, IPC_CALL>(to, label, words)
}

/// The same with a part in memory, of which the first two words say what it is and where. The last word is lost.
#[inline(always)]
pub fn call_long<const IN: usize>(to: Uid, label: u32, words: Words) -> (u64, Words) {
    invoke::<IN, IPC_LONG_CALL>(to, label, words)
}

#[inline(always)]
fn invoke<const IN: usize, const OPERATION: u32>(to: Uid, label: u32, words: Words) -> (u64, Words) {
    let [mut w0, mut w1, mut w2, mut w3, mut w4, mut w5, mut w6, mut w7, mut w8, mut w9, mut w10] = words;
    let (mut rax, mut rdx) = ((label as u64) << 32 | OPERATION as u64, to.0);
    // SAFETY: the kernel changes registers only, and all that it changes are named here or saved; and the block that the thread
    // has registered. There is no red zone that the pushes could hit. The compiler assumes that memory changes, which a partner may share.
    unsafe {
        if const { IN > 8 } {
            message_asm!(
                "mov rbx, rcx", "mov rbp, r11", "syscall", "mov rcx, rbx", "mov r11, rbp";
                rax, rdx, [w0, w1, w2, w3, w4, w5, w6, w7];
                inout("rcx") w8,
                inout("r11") w9,
                inout("r15") w10,
            );
        } else if const { OPERATION == IPC_CALL } {
            message_asm!(
                "xor ebx, ebx", "xor ebp, ebp", "syscall";
                rax, rdx, [w0, w1, w2, w3, w4, w5, w6, w7];
                inout("r15") 0u64 => _,
                out("rcx") _,
                out("r11") _,
            );
            (w8, w9, w10) = (0, 0, 0);
        } else {
            // The last word is lost, whatever it is.
            message_asm!(
                "xor ebx, ebx", "xor ebp, ebp", "syscall";
                rax, rdx, [w0, w1, w2, w3, w4, w5, w6, w7];
                out("r15") _,
                out("rcx") _,
                out("r11") _,
            );
            (w8, w9, w10) = (0, 0, 0);
        }
    }
    // Whose message it is, the caller knows.
    let _ = rdx;
    (rax, [w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10])
}

/// Sends a request to which nothing comes back; waits until the server takes it.
#[inline]
pub fn send(to: Uid, label: u32, words: Words) -> Result<(), Failure> {
    let [w0, w1, w2, w3, w4, w5, w6, w7, ..] = words;
    sys::send(to, label, [w0, w1, w2, w3, w4, w5, w6, w7], Timeout::NEVER).map_err(Failure::Kernel)
}

/// The same with a part in memory, of which the first two words say what it is and where.
#[inline]
pub fn send_long(to: Uid, label: u32, words: Words) -> Result<(), Failure> {
    let [dope, address, w2, w3, w4, w5, w6, w7, ..] = words;
    let words = [0, 0, w2, w3, w4, w5, w6, w7];
    let block = Some(Block { dope: Dope(dope), address });
    Ipc { to, label, words, block, ..Ipc::NONE }.run().map(drop).map_err(Failure::Kernel)
}

/// The label of a reply that is not the expected one, and whether it has a part in memory; or why there is none.
#[cold]
pub fn reply_of(rax: u64) -> Result<(u32, bool), Failure> {
    let (eax, label) = (rax as u32, (rax >> 32) as u32);
    if eax >> 31 == 0 {
        return Err(Failure::Kernel(Error::from_code(eax).unwrap_or(Error::BadArgument)));
    }
    // Whoever asks, faults or sends pages in the middle of a call did not answer; nor is it an answer if something is in memory
    // that should be in registers, or the other way round.
    let is_reply = eax | NO_BLOCK == Kind::Reply as u32 && label != (DONE >> 32) as u32;
    if is_reply { Ok((label, eax & NO_BLOCK == 0)) } else { Err(Failure::Malformed) }
}

/// The label of a reply that is not the expected one and is all in registers, or why there is none.
#[cold]
pub fn label_of(rax: u64) -> Result<u32, Failure> {
    match reply_of(rax)? {
        (label, false) => Ok(label),
        _ => Err(Failure::Malformed),
    }
}

/// What a reply without success means when the method raises no exceptions.
#[cold]
pub fn failure(rax: u64) -> Failure {
    match label_of(rax) {
        Ok(label) => Failure::Refused(label),
        Err(failure) => failure,
    }
}

const _: () = assert!(WORDS == 11, "eleven registers are named above");
