//! The client's half: one system call, inlined into whoever calls.
//!
//! Every word travels, so words without a value are cleared; and everything but the stack pointer is lost. The compiler
//! keeps `rbx` and `rbp` for itself, so these two are saved around the call.

#![allow(unsafe_code)]

use crate::general::words_of;
use crate::{Malformed, WORDS, Words, done};
use sys::abi::call::{
    IPC_CALL, IPC_LONG_CALL, IPC_LONG_TAKING_CALL, IPC_TAKING_CALL, ITEM_WHOLE, Kind, NO_BLOCK, NO_ITEM,
};
use sys::{Block, Dope, Error, Fpage, Ipc, Timeout, Uid, message_asm};

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
    /// The reply hands pages over, and only a part of them arrived: somebody's quota is exhausted.
    PagesShort,
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
            Failure::PagesShort => f.write_str("only a part of the pages arrived"),
        }
    }
}

/// Callee of a call: a thread by ipc, or an object [behind a door](crate::door).
pub trait Callee: Copy {
    /// The kind of a plain reply.
    const REPLY: Kind;
    /// Value of `rax` when a call has succeeded: the label of success, and the kind of a plain reply below it.
    const DONE: u64 = done(Self::REPLY as u32);
    /// Value of `rax` for a reply with a part in memory.
    const LONG_DONE: u64 = Self::DONE & !(NO_BLOCK as u64);
    /// Value of `rax` for a reply that hands pages over, all of which have arrived.
    const PAGES_DONE: u64 = Self::DONE & !(NO_ITEM as u64);

    /// Sends a request of up to `IN` words and waits for the reply: `rax`, and the words. [`DONE`](Callee::DONE) in `rax` is
    /// success. Unless it `TAKES` more, the reply is nothing but words, whatever the server sends: so what has arrived in an
    /// [`Inbox`](crate::Inbox) before stays as it is while somebody looks at it.
    fn call<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words);
    /// [`call`](Callee::call) with a part in memory, of which the first two words say what it is and where. The last word is lost.
    fn call_long<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words);
    /// [`call`](Callee::call) where the request or the reply hands pages over. [`PAGES_DONE`](Callee::PAGES_DONE) in `rax` is success with
    /// pages, which w6 then names.
    fn call_pages(self, label: u32, words: Words, pages: Pages) -> (u64, Words);
    /// Sends a request to which nothing comes back; waits until the server takes it.
    fn send(self, label: u32, words: Words) -> Result<(), Failure>;
    /// [`send`](Callee::send) with a part in memory, of which the first two words say what it is and where.
    fn send_long(self, label: u32, words: Words) -> Result<(), Failure>;
    /// [`send`](Callee::send) with pages.
    fn send_pages(self, label: u32, words: Words, pages: Pages) -> Result<(), Failure>;
}

/// Pages that a call hands over, or a reference to an object.
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    /// Those of the request, and w7 beside them.
    pub(crate) given: Option<(Fpage, u64)>,
    /// Where those of the reply may go.
    pub(crate) window: Fpage,
    /// The request has a part in memory, where `given` is described, if there is something.
    pub(crate) long: bool,
    /// The reply may have a part in memory.
    pub(crate) takes: bool,
}

impl Pages {
    /// None.
    pub const NONE: Pages = Pages { given: None, window: Fpage::NIL, long: false, takes: false };

    /// The request has a part in memory, which describes what it hands over, if it does.
    #[inline]
    pub fn long(self) -> Pages {
        Pages { long: true, ..self }
    }

    /// The reply may have a part in memory.
    #[inline]
    pub fn taking(self) -> Pages {
        Pages { takes: true, ..self }
    }

    /// The request maps or grants these.
    #[inline]
    pub fn give(self, pages: Fpage) -> Pages {
        self.hand((pages, 0))
    }

    /// The request hands over this item.
    #[inline]
    pub fn hand(self, item: (Fpage, u64)) -> Pages {
        Pages { given: Some(item), ..self }
    }

    /// Those of the reply go there.
    #[inline]
    pub fn window(self, window: Fpage) -> Pages {
        Pages { window, ..self }
    }
}

/// A thread, for which one waits as long as it takes.
impl Callee for Uid {
    const REPLY: Kind = Kind::Reply;
    #[inline(always)]
    fn call<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words) {
        match TAKES {
            false => invoke::<IN, IPC_CALL>(self.0, label, words),
            true => invoke::<IN, IPC_TAKING_CALL>(self.0, label, words),
        }
    }
    #[inline(always)]
    fn call_long<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words) {
        match TAKES {
            false => invoke::<IN, IPC_LONG_CALL>(self.0, label, words),
            true => invoke::<IN, IPC_LONG_TAKING_CALL>(self.0, label, words),
        }
    }
    #[inline]
    fn call_pages(self, label: u32, words: Words, pages: Pages) -> (u64, Words) {
        Within::long_enough(self).call_pages(label, words, pages)
    }
    #[inline]
    fn send(self, label: u32, words: Words) -> Result<(), Failure> {
        Within::long_enough(self).send(label, words)
    }
    #[inline]
    fn send_long(self, label: u32, words: Words) -> Result<(), Failure> {
        Within::long_enough(self).send_long(label, words)
    }
    #[inline]
    fn send_pages(self, label: u32, words: Words, pages: Pages) -> Result<(), Failure> {
        Within::long_enough(self).send_pages(label, words, pages)
    }
}

/// A thread for which one waits so long and no longer: until it takes the request, and again until it answers.
///
/// Requests and replies have eight words at most.
#[derive(Clone, Copy, Debug)]
pub struct Within {
    server: Uid,
    until_taken: Timeout,
    until_answered: Timeout,
}

impl Within {
    /// So many microseconds.
    pub fn us(server: Uid, us: u64) -> Within {
        let timeout = Timeout::from_us(us);
        Within { server, until_taken: timeout, until_answered: timeout }
    }

    /// For a thread that takes the request at once or not at all. Then one waits for the answer.
    pub fn at_once(server: Uid) -> Within {
        Within { server, until_taken: Timeout::ZERO, until_answered: Timeout::NEVER }
    }

    fn long_enough(server: Uid) -> Within {
        Within { server, until_taken: Timeout::NEVER, until_answered: Timeout::NEVER }
    }

    fn ipc(self, label: u32, words: Words) -> Ipc {
        let [w0, w1, w2, w3, w4, w5, w6, w7, ..] = words;
        let words = [w0, w1, w2, w3, w4, w5, w6, w7];
        Ipc { to: self.server, label, words, send_timeout: self.until_taken, ..Ipc::NONE }
    }

    fn run(self, ipc: Ipc) -> (u64, Words) {
        let outcome = Ipc { from: self.server, receive_timeout: self.until_answered, ..ipc }.run();
        match outcome.and_then(|message| message.ok_or(Error::BadArgument)) {
            Ok(message) => ((message.label as u64) << 32 | message.flags.0 as u64, words_of(&message)),
            Err(error) => (error as u64, [0; WORDS]),
        }
    }
}

fn block(words: &Words) -> Option<Block> {
    let [dope, address, ..] = *words;
    Some(Block { dope: Dope(dope), address })
}

impl Callee for Within {
    const REPLY: Kind = Kind::Reply;
    fn call<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words) {
        const { assert!(IN <= 8, "a call with a time limit has eight words at most") };
        self.run(Ipc { takes_block: TAKES, ..self.ipc(label, words) })
    }
    fn call_long<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words) {
        const { assert!(IN <= 8, "a call with a time limit has eight words at most") };
        self.run(Ipc { block: block(&words), takes_block: TAKES, ..self.ipc(label, words) })
    }
    fn call_pages(self, label: u32, words: Words, pages: Pages) -> (u64, Words) {
        let block = block(&words).filter(|_| pages.long);
        let (window, takes_block) = (pages.window, pages.takes);
        self.run(Ipc { item: pages.given, block, window, takes_block, ..self.ipc(label, words) })
    }
    fn send(self, label: u32, words: Words) -> Result<(), Failure> {
        self.ipc(label, words).run().map(drop).map_err(Failure::Kernel)
    }
    fn send_long(self, label: u32, words: Words) -> Result<(), Failure> {
        let ipc = Ipc { block: block(&words), ..self.ipc(label, words) };
        ipc.run().map(drop).map_err(Failure::Kernel)
    }
    fn send_pages(self, label: u32, words: Words, pages: Pages) -> Result<(), Failure> {
        let block = block(&words).filter(|_| pages.long);
        let ipc = Ipc { item: pages.given, block, ..self.ipc(label, words) };
        ipc.run().map(drop).map_err(Failure::Kernel)
    }
}

/// A short form of ipc, or of a call through a door: `to` is a thread or an identifier.
#[inline(always)]
pub(crate) fn invoke<const IN: usize, const OPERATION: u32>(
    to: u64,
    label: u32,
    words: Words,
) -> (u64, Words) {
    match OPERATION & NO_BLOCK {
        0 => invoke_form::<IN, true>(to, OPERATION, label, words),
        _ => invoke_form::<IN, false>(to, OPERATION, label, words),
    }
}

/// [`invoke`] where the form is known only when the program runs, but for whether it has a part in memory.
#[inline(always)]
pub(crate) fn invoke_form<const IN: usize, const LONG: bool>(
    to: u64,
    operation: u32,
    label: u32,
    words: Words,
) -> (u64, Words) {
    let [mut w0, mut w1, mut w2, mut w3, mut w4, mut w5, mut w6, mut w7, mut w8, mut w9, mut w10] = words;
    let (mut rax, mut rdx) = ((label as u64) << 32 | operation as u64, to);
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
        } else if const { !LONG } {
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
    // The caller knows the sender of the message.
    let _ = rdx;
    (rax, [w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10])
}

/// The label of a reply that is not the expected one, and whether it has a part in memory; or why there is none.
#[cold]
pub fn reply_of<C: Callee>(rax: u64) -> Result<(u32, bool), Failure> {
    let (eax, label) = (rax as u32, (rax >> 32) as u32);
    if eax >> 31 == 0 {
        return Err(Failure::Kernel(Error::from_code(eax).unwrap_or(Error::BadArgument)));
    }
    // A partner that asks, faults or sends pages in the middle of a call did not answer; nor is it an answer if something is in memory
    // that should be in registers, or the other way round.
    let is_reply = eax | NO_BLOCK == C::REPLY as u32 && label != (C::DONE >> 32) as u32;
    if is_reply { Ok((label, eax & NO_BLOCK == 0)) } else { Err(Failure::Malformed) }
}

/// Word of an answer that says what it is, whether or not references have come with its part in memory.
#[inline(always)]
pub const fn apart_from_items(rax: u64) -> u64 {
    // An error of the kernel is a small number.
    if rax as u32 >> 31 == 0 { rax } else { rax | NO_ITEM as u64 }
}

/// The label of a reply that is not the expected one and is all in registers, or why there is none.
#[cold]
pub fn label_of<C: Callee>(rax: u64) -> Result<u32, Failure> {
    match reply_of::<C>(rax)? {
        (label, false) => Ok(label),
        _ => Err(Failure::Malformed),
    }
}

/// Whether a reply would be a success if all its pages had arrived.
#[cold]
pub fn came_short<C: Callee>(rax: u64) -> bool {
    rax | ITEM_WHOLE as u64 == C::PAGES_DONE
}

/// Failure that a reply without success means when the method raises no exceptions.
#[cold]
pub fn failure<C: Callee>(rax: u64) -> Failure {
    match label_of::<C>(rax) {
        Ok(label) => Failure::Refused(label),
        Err(failure) => failure,
    }
}

const _: () = assert!(WORDS == 11, "eleven registers are named above");
