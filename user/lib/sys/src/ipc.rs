//! Ipc: the two short forms, the general form, and what is built from it.

use crate::message_asm;
use crate::{Dope, Error, Fpage, Kind, Result, Timeout, Uid, error};
use abi::call::{
    IPC_CALL, IPC_LONG_CALL, IPC_LONG_REPLY_WAIT, IPC_LONG_TAKING_CALL, IPC_REPLY_WAIT, IPC_TAKING_CALL,
    ITEM_WHOLE, NO_BLOCK, NO_ITEM, NOT_DIVERTED, timeouts,
};
use abi::op::{self, Op};

/// A received message.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Kind of the message.
    pub kind: Kind,
    /// Details that came with it.
    pub flags: Flags,
    /// 32 bits that the sender chose.
    pub label: u32,
    /// Sender. The kernel vouches for this one.
    pub sender: Uid,
    /// w0 … w7. With a map item, w6 is the flexpage where it arrived and w7 is 0.
    pub words: [u64; 8],
}

/// Details that came with a [`Message`]: the received `eax`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Flags(pub u32);

impl Flags {
    /// A map item arrived.
    pub const fn has_item(self) -> bool {
        self.0 & NO_ITEM == 0
    }

    /// The message has a part in memory: w0 and w1 are dope and address of the receiver's block.
    pub const fn has_block(self) -> bool {
        self.0 & NO_BLOCK == 0
    }

    /// A map item arrived, but only a part of its pages: this task's quota was exhausted, or σ0's, if it gave them.
    pub const fn item_short(self) -> bool {
        self.0 & ITEM_WHOLE == 0
    }
}

impl Message {
    /// Part that came in memory, and its place, if one did.
    pub const fn block(&self) -> Option<Block> {
        let [dope, address, ..] = self.words;
        if self.flags.has_block() { Some(Block { dope: Dope(dope), address }) } else { None }
    }

    /// The flexpage where a map item arrived, if one did.
    pub const fn item(&self) -> Option<Fpage> {
        if self.flags.has_item() && !self.flags.has_block() { Some(Fpage(self.words[6])) } else { None }
    }

    /// Puts the registers of a finished ipc together; `None` if nothing was to be received.
    #[inline(always)]
    pub fn from_registers(rax: u64, sender: u64, words: [u64; 8]) -> Result<Option<Message>> {
        let eax = rax as u32;
        if eax >> 31 == 0 {
            return if eax == 0 { Ok(None) } else { Err(error(eax as u64)) };
        }
        // An unknown kind can only come from a later kernel; nothing waits for an answer then.
        let kind = Kind::from_eax(eax).unwrap_or(Kind::Reply);
        let label = (rax >> 32) as u32;
        Ok(Some(Message { kind, flags: Flags(eax), label, sender: Uid(sender), words }))
    }
}

/// Sends to `to` and waits for the answer of that thread alone, which brings nothing but words.
#[inline(always)]
pub fn ipc_call(to: Uid, label: u32, words: [u64; 8]) -> Result<Message> {
    short(IPC_CALL, to, label, words)
}

/// Calls like [`ipc_call`], where the answer may bring a part in memory.
#[inline(always)]
pub fn ipc_call_taking(to: Uid, label: u32, words: [u64; 8]) -> Result<Message> {
    short(IPC_TAKING_CALL, to, label, words)
}

/// Sends to `to` if that thread waits for it (otherwise the message is dropped), then waits for anybody.
///
/// With [`Uid::NIL`] it only waits: how a server begins.
#[inline(always)]
pub fn ipc_reply_wait(to: Uid, label: u32, words: [u64; 8]) -> Result<Message> {
    short(IPC_REPLY_WAIT, to, label, words)
}

#[inline(always)]
fn short(operation: u32, to: Uid, label: u32, words: [u64; 8]) -> Result<Message> {
    let (rax, rdx, words) = registers((label as u64) << 32 | operation as u64, to.0, words);
    if rax as u32 >> 31 == 0 {
        return Err(error(rax as u32 as u64));
    }
    match Message::from_registers(rax, rdx, words) {
        Ok(Some(message)) => Ok(message),
        Ok(None) => Err(Error::BadArgument),
        Err(error) => Err(error),
    }
}

/// One of the short forms, or a call through a door, as it is.
#[inline(always)]
pub(crate) fn registers(mut rax: u64, mut rdx: u64, words: [u64; 8]) -> (u64, u64, [u64; 8]) {
    let [mut w0, mut w1, mut w2, mut w3, mut w4, mut w5, mut w6, mut w7] = words;
    // SAFETY: the kernel changes registers only, and all that it changes are named here or saved; and the
    // block that the thread has registered. There is no red zone that the pushes could hit. Memory that the
    // partner shares is the caller's affair; the compiler assumes that it changes.
    unsafe {
        message_asm!(
            "xor ebx, ebx", "xor ebp, ebp", "syscall";
            rax, rdx, [w0, w1, w2, w3, w4, w5, w6, w7];
            inout("r15") 0u64 => _,
            out("rcx") _,
            out("r11") _,
        );
    }
    (rax, rdx, [w0, w1, w2, w3, w4, w5, w6, w7])
}

/// The part of a message that lies in memory; see [`abi::message`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// How long its parts are.
    pub dope: Dope,
    /// Where it lies.
    pub address: u64,
}

/// Why a long message failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LongError {
    /// Result of the call.
    pub error: Error,
    /// Bytes of direct words and strings that were transferred before.
    pub moved: u64,
}

/// Sends a message with a block to `to` and waits for the answer of that thread alone, which brings nothing but words. The words
/// are w2 … w7.
#[inline(always)]
pub fn ipc_call_long(
    to: Uid,
    label: u32,
    block: Block,
    words: [u64; 6],
) -> core::result::Result<Message, LongError> {
    long(IPC_LONG_CALL, to, label, block, words)
}

/// Calls like [`ipc_call_long`], where the answer may bring one, too.
#[inline(always)]
pub fn ipc_call_long_taking(
    to: Uid,
    label: u32,
    block: Block,
    words: [u64; 6],
) -> core::result::Result<Message, LongError> {
    long(IPC_LONG_TAKING_CALL, to, label, block, words)
}

/// Answers `to` with a block if that thread waits for it, then waits for anybody.
#[inline(always)]
pub fn ipc_reply_wait_long(
    to: Uid,
    label: u32,
    block: Block,
    words: [u64; 6],
) -> core::result::Result<Message, LongError> {
    long(IPC_LONG_REPLY_WAIT, to, label, block, words)
}

#[inline(always)]
fn long(
    operation: u32,
    to: Uid,
    label: u32,
    block: Block,
    [w2, w3, w4, w5, w6, w7]: [u64; 6],
) -> core::result::Result<Message, LongError> {
    let words = [block.dope.0, block.address, w2, w3, w4, w5, w6, w7];
    let (rax, rdx, words) = registers((label as u64) << 32 | operation as u64, to.0, words);
    let failed = |error| Err(LongError { error, moved: words[0] });
    if rax as u32 >> 31 == 0 {
        return failed(error(rax as u32 as u64));
    }
    match Message::from_registers(rax, rdx, words) {
        Ok(Some(message)) => Ok(message),
        Ok(None) => failed(Error::BadArgument),
        Err(error) => failed(error),
    }
}

/// The general form: send to `to` (unless nil), then receive from `from` (unless nil).
#[derive(Clone, Copy, Debug)]
pub struct Ipc {
    /// Destination; nil: do not send.
    pub to: Uid,
    /// 32 bits that travel with the message.
    pub label: u32,
    /// w0 … w7. A map item replaces w6 and w7.
    pub words: [u64; 8],
    /// Pages, ports or interrupts to hand over, with the rights to give, and the hot spot.
    pub item: Option<(Fpage, u64)>,
    /// The part of the message that lies in memory. It replaces w0 and w1, and an item in registers.
    pub block: Option<Block>,
    /// Source to receive from: a thread, an interrupt, [`Uid::ANY`]; nil: do not receive.
    pub from: Uid,
    /// Whether what is received may have a part in memory.
    pub takes_block: bool,
    /// Where a received map item may go; [`Fpage::NIL`]: nowhere.
    pub window: Fpage,
    /// How long to wait for the receiver.
    pub send_timeout: Timeout,
    /// How long to wait for a message.
    pub receive_timeout: Timeout,
    /// Whether an alert ends it, see [`alert`](crate::alert).
    pub alertable: bool,
    /// Until when to wait at most in either phase, in nanoseconds on the kernel's clock; replaces both timeouts.
    pub until_ns: Option<u64>,
}

impl Ipc {
    /// An ipc that neither sends nor receives and never times out: fill in what is wanted.
    pub const NONE: Ipc = Ipc {
        to: Uid::NIL,
        label: 0,
        words: [0; 8],
        item: None,
        block: None,
        from: Uid::NIL,
        takes_block: false,
        window: Fpage::NIL,
        send_timeout: Timeout::NEVER,
        receive_timeout: Timeout::NEVER,
        alertable: false,
        until_ns: None,
    };

    /// Does it. `None` if nothing was to be received.
    #[inline]
    pub fn run(&self) -> Result<Option<Message>> {
        let [mut w0, mut w1, mut w2, mut w3, mut w4, mut w5, mut w6, mut w7] = self.words;
        let mut op = Op::GENERAL;
        if let Some(block) = self.block {
            op = op.with(op::BLOCK);
            (w0, w1) = (block.dope.0, block.address);
        } else if let Some((fpage, hot_spot)) = self.item {
            op = op.with(op::ITEM);
            (w6, w7) = (fpage.0, hot_spot);
        }
        if self.takes_block {
            op = op.with(op::TAKES_BLOCK);
        }
        if self.alertable {
            op = op.with(op::ALERTABLE);
        }
        let mut times = timeouts(self.send_timeout, self.receive_timeout);
        if let Some(until) = self.until_ns {
            op = op.with(op::ABSOLUTE);
            times = until;
        }
        let mut rax = (self.label as u64) << 32 | op.0 as u64;
        let mut rdx = self.to.0;
        // The two registers that the compiler will not give away travel in rcx and r11, which are lost anyway.
        // SAFETY: as in `short`. A map item changes mappings only inside the caller's window.
        unsafe {
            message_asm!(
                "mov rbx, rcx", "mov rbp, r11", "syscall";
                rax, rdx, [w0, w1, w2, w3, w4, w5, w6, w7];
                inout("r15") times => _,
                inout("rcx") self.from.0 => _,
                inout("r11") self.window.0 => _,
            );
        }
        Message::from_registers(rax, rdx, [w0, w1, w2, w3, w4, w5, w6, w7])
    }
}

/// Sends to `to`, waiting at most `timeout` until it receives.
pub fn send(to: Uid, label: u32, words: [u64; 8], timeout: Timeout) -> Result<()> {
    Ipc { to, label, words, send_timeout: timeout, ..Ipc::NONE }.run().map(drop)
}

/// Sends a map item to `to` in w6 and w7.
pub fn send_item(to: Uid, label: u32, words: [u64; 8], item: (Fpage, u64), timeout: Timeout) -> Result<()> {
    Ipc { to, label, words, item: Some(item), send_timeout: timeout, ..Ipc::NONE }.run().map(drop)
}

/// Waits for a message from `from` (a thread, an interrupt, [`Uid::ANY`]), at most `timeout`. It has no part in memory.
pub fn receive(from: Uid, timeout: Timeout) -> Result<Message> {
    receive_item(from, Fpage::NIL, timeout)
}

/// Like [`receive`], and lets a map item into `window`.
pub fn receive_item(from: Uid, window: Fpage, timeout: Timeout) -> Result<Message> {
    if from.is_nil() {
        return Err(Error::NoSuch);
    }
    match (Ipc { from, window, receive_timeout: timeout, ..Ipc::NONE }).run() {
        Ok(message) => message.ok_or(Error::BadArgument),
        Err(error) => Err(error),
    }
}

/// Calls `to` and lets a map item of the answer into `window`.
pub fn call_item(to: Uid, label: u32, words: [u64; 8], window: Fpage) -> Result<Message> {
    match (Ipc { to, label, words, from: to, window, ..Ipc::NONE }).run() {
        Ok(message) => message.ok_or(Error::BadArgument),
        Err(error) => Err(error),
    }
}

/// Answers `to` with a map item if it waits, then waits for anybody, and takes what comes: the loop of a pager.
pub fn reply_item_wait(to: Uid, label: u32, words: [u64; 8], item: (Fpage, u64)) -> Result<Message> {
    let send_timeout = Timeout::ZERO;
    let ipc = Ipc {
        to,
        label,
        words,
        item: Some(item),
        from: Uid::ANY,
        takes_block: true,
        send_timeout,
        ..Ipc::NONE
    };
    match ipc.run() {
        Ok(message) => message.ok_or(Error::BadArgument),
        Err(error) => Err(error),
    }
}

/// Daily work of a chief: answers `to` (nil: nobody) with w0 … w4, shown as `shown` (nil: as the caller itself), then waits
/// for anybody, and takes what comes. Beside the message it learns for whom it was meant; nil if for the caller itself.
pub fn supervise(to: Uid, shown: Uid, label: u32, words: [u64; 5]) -> Result<(Message, Uid)> {
    let mut op = Op::GENERAL.with(op::TAKES_BLOCK);
    if !shown.is_nil() {
        op = op.with(op::SHOWN);
    }
    let mut rax = (label as u64) << 32 | op.0 as u64;
    let mut rdx = to.0;
    let mut meant_for = timeouts(Timeout::ZERO, Timeout::NEVER);
    let [mut w0, mut w1, mut w2, mut w3, mut w4] = words;
    let (mut w5, mut w6, mut w7) = (shown.0, 0u64, 0u64);
    // SAFETY: as in `Ipc::run`; no window is open.
    unsafe {
        message_asm!(
            "mov rbx, rcx", "xor ebp, ebp", "syscall";
            rax, rdx, [w0, w1, w2, w3, w4, w5, w6, w7];
            inout("r15") meant_for,
            inout("rcx") Uid::ANY.0 => _,
            out("r11") _,
        );
    }
    let message = Message::from_registers(rax, rdx, [w0, w1, w2, w3, w4, w5, w6, w7])?;
    let message = message.ok_or(Error::BadArgument)?;
    let is_diverted = message.flags.0 & NOT_DIVERTED == 0;
    Ok((message, if is_diverted { Uid(meant_for) } else { Uid::NIL }))
}

/// Sleeps: waits, with a timeout, for a message from oneself, which cannot come.
///
/// Returns early, with [`Error::ReceiveAborted`], if somebody aborts the thread's ipc.
pub fn sleep_us(us: u64) -> Result<()> {
    match receive(crate::myself(), Timeout::from_us(us)) {
        Err(Error::ReceiveTimeout) | Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}
