//! The server's half: answer a client, wait for the next, find its method, all in one stretch of code for each method.
//!
//! There is no loop. A [`thunk`] calls its method's handler, clears or loads the words of the reply, answers and waits with
//! one system call, and jumps through the table to the next request's thunk. What it needs lies in a [`Frame`] at the
//! stack pointer, the only register that survives.
//!
//! **Nothing leaks into a reply.** A handler is a function like any other, so what it leaves in `rdi rsi r8 r9 r10` is
//! overwritten, and in the six words that functions preserve the client finds what it sent itself.
//!
//! **Dispatch** is one shift: the label's top bits select a place in a table of 2^k entries, so no label lies outside of
//! it. Places without a method hold [`NoMethod`].

#![allow(unsafe_code)]

use crate::{Failure, MALFORMED, NO_METHOD, Reply, Room, Strings, WORDS, Words, done};
use core::arch::{asm, naked_asm};
use core::marker::PhantomData;
use core::mem::offset_of;
use sys::abi::call::{IPC_CALL, IPC_LONG_CALL, IPC_LONG_REPLY_WAIT, IPC_REPLY_WAIT, Kind, NO_BLOCK};
use sys::{Dope, Error, Flags, Ipc, Message, Registered, Timeout, Uid};

/// Frame that a server keeps at its stack pointer.
///
/// The table lies here, and not where the compiler put it, because what is at the stack pointer is found without a
/// register. It also means that a server can replace a method while it runs.
#[repr(C, align(16))]
pub struct Frame<'a, L: Loop> {
    /// The server's own data.
    pub server: &'a mut L::Server,
    /// Words of the request from w4 on, if the method has so many; then those of the reply.
    pub words: Words,
    /// Where the code of each method begins, by the first bits of a request's label; then the same for requests with a part
    /// in memory, if there are such methods.
    pub table: L::Table,
    /// Where such requests arrive.
    pub room: &'a mut L::Room,
    /// Part of a reply in memory, as far as it lies nowhere else: it is sent when the handler has returned.
    pub outgoing: L::Outgoing,
}

/// Answer of a handler.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Answer {
    /// A label with the operation *reply and wait*.
    pub rax: u64,
    /// Thread to answer; 0: nobody.
    pub to: u64,
}

impl Answer {
    /// Success.
    #[inline(always)]
    pub const fn done(to: u64) -> Answer {
        Answer { rax: done(IPC_REPLY_WAIT), to }
    }

    /// An exception or an error.
    #[inline(always)]
    pub const fn label(to: u64, label: u32) -> Answer {
        Answer { rax: (label as u64) << 32 | IPC_REPLY_WAIT as u64, to }
    }

    /// This answer with a part in memory, of which the first two words say what it is and where.
    #[inline(always)]
    pub const fn with_memory(self) -> Answer {
        Answer { rax: self.rax & !(NO_BLOCK as u64), to: self.to }
    }
}

/// A place in a table: where the code for a method begins.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Entry(unsafe extern "C" fn());

/// Loop of a server: the part that all methods of an interface have in common.
pub trait Loop {
    /// The server's own data.
    type Server;
    /// An array of [`Entry`], as long as a power of two, or twice that if there are methods whose requests have a part in
    /// memory.
    type Table: Copy + AsRef<[Entry]>;
    /// 64 less the logarithm of that power of two.
    const SHIFT: u32;
    /// Where requests with a part in memory arrive.
    type Room: Receive;
    /// An array of words: what replies have in memory that lies nowhere else.
    type Outgoing: AsMut<[u64]>;
    /// Zeros.
    const OUTGOING: Self::Outgoing;
    /// Treatment of a message that is no plain request.
    fn other(server: &mut Self::Server, message: &Message) -> Option<Reply>;
}

/// A place for the parts of messages in memory.
pub trait Receive {
    /// Whether there are such messages.
    const LONG: bool;
    /// Makes it the place where messages to this thread arrive. Says where they did before.
    fn register(&mut self) -> Result<Registered, Error>;
    /// Where it is.
    fn address(&self) -> u64;
}

/// Nothing comes.
#[derive(Clone, Copy, Debug)]
pub struct NoRoom;

impl Receive for NoRoom {
    const LONG: bool = false;
    fn register(&mut self) -> Result<Registered, Error> {
        Ok(Registered { address: 0, room: Dope::NONE, patience: Timeout::NEVER })
    }
    fn address(&self) -> u64 {
        0
    }
}

/// How long a transfer waits for the pager of the partner that sends.
const PATIENCE_US: u64 = 1_000_000;

impl<S: Strings, const WORDS: usize, const STRINGS: usize, const BYTES: usize> Receive
    for Room<S, WORDS, STRINGS, BYTES>
{
    const LONG: bool = true;
    fn register(&mut self) -> Result<Registered, Error> {
        let address = self.describe();
        sys::thread_set_block(Uid::NIL, address, Dope(Self::DOPE), Timeout::from_us(PATIENCE_US))
    }
    #[inline(always)]
    fn address(&self) -> u64 {
        (&raw const *self).addr() as u64
    }
}

/// The method for a place of the table.
pub trait Handler {
    /// The interface.
    type Loop: Loop;
    /// Words of the request.
    const IN: usize;
    /// Words of the longest reply.
    const OUT: usize;
    /// Reads the request, calls the method, stores the reply. Words from w4 on are in the frame.
    extern "sysv64" fn handle(
        w0: u64,
        w1: u64,
        from: u64,
        frame: &mut Frame<Self::Loop>,
        w2: u64,
        w3: u64,
    ) -> Answer;
}

/// Stores the words of a reply.
#[inline(always)]
pub fn store<L: Loop, const OUT: usize>(frame: &mut Frame<L>, words: &Words) {
    let mut i = 0;
    while i < OUT {
        frame.words[i] = words[i];
        i += 1;
    }
}

/// Answers with an error, and with no word that is left from before.
#[cold]
pub fn fail<L: Loop>(frame: &mut Frame<L>, to: u64, failure: Failure) -> Answer {
    frame.words = [0; WORDS];
    Answer::label(to, failure.label())
}

/// Handler where the table has no method.
pub type NoMethod<L> = Refusal<L, NO_METHOD>;

/// Handler where the table has a method whose requests are of the other kind: all in registers, or not.
pub type Mismatch<L> = Refusal<L, MALFORMED>;

/// Answers with a label, and does nothing.
#[derive(Debug)]
pub struct Refusal<L, const LABEL: u32>(PhantomData<L>);

impl<L: Loop, const LABEL: u32> Handler for Refusal<L, LABEL> {
    type Loop = L;
    const IN: usize = 0;
    const OUT: usize = 0;
    extern "sysv64" fn handle(_: u64, _: u64, from: u64, _: &mut Frame<L>, _: u64, _: u64) -> Answer {
        Answer::label(from, LABEL)
    }
}

/// The place for a method.
pub const fn entry<H: Handler>() -> Entry {
    Entry(thunk::<H>)
}

/// Answers requests, forever. `table` is that of an interface's module. Nothing arrives in memory any more, whatever the thread has
/// registered for that.
pub fn serve<L: Loop<Room = NoRoom>>(server: &mut L::Server, table: &L::Table) -> ! {
    // It cannot fail: no memory is asked for.
    let _ = sys::thread_set_block(Uid::NIL, 0, Dope::NONE, Timeout::ZERO);
    run::<L>(server, &mut NoRoom, table)
}

/// Serves an interface with requests that have a part in memory. Comes back only if it cannot begin, because the kernel
/// does not accept `room`.
pub fn serve_in<L: Loop>(server: &mut L::Server, room: &mut L::Room, table: &L::Table) -> Failure {
    match room.register() {
        Ok(_) => run::<L>(server, room, table),
        Err(error) => Failure::Kernel(error),
    }
}

/// Never inlined: the stack below the frame is lost, so the server must not lie in the same stack frame.
#[inline(never)]
fn run<L: Loop>(server: &mut L::Server, room: &mut L::Room, table: &L::Table) -> ! {
    const {
        let places = size_of::<L::Table>() / size_of::<Entry>();
        assert!(L::SHIFT < 64 && places == (1 + L::Room::LONG as usize) << (64 - L::SHIFT));
    }
    let mut frame: Frame<L> = Frame { server, words: [0; WORDS], table: *table, room, outgoing: L::OUTGOING };
    // SAFETY: 1. A label's first bits select an entry of the table. 2. This function is not left, so `frame` lives on.
    // Memory below it is this function's own, and used no more; the server is the caller's, and lies above.
    unsafe {
        asm!("mov rsp, {frame}", "jmp {begin}", frame = in(reg) &raw mut frame, begin = sym begin::<L>, options(noreturn))
    }
}

/// Waits for the first message.
#[unsafe(naked)]
unsafe extern "C" fn begin<L: Loop>() {
    naked_asm!(
        "xor edi, edi",
        "xor esi, esi",
        "xor r8d, r8d",
        "xor r9d, r9d",
        "xor r10d, r10d",
        "xor r12d, r12d",
        "xor r13d, r13d",
        "xor r14d, r14d",
        "xor ebx, ebx",
        "xor ebp, ebp",
        "xor r15d, r15d",
        "xor edx, edx",                             // nobody is answered
        "mov eax, {reply_wait}",
        "syscall",
        "jmp {odd}",
        reply_wait = const IPC_REPLY_WAIT,
        odd = sym odd::<L>,
    )
}

/// A method: from its request to the next request.
///
/// In: words, sender in `rdx`, frame at `rsp`, which is a multiple of 16. Never returns.
#[unsafe(naked)]
unsafe extern "C" fn thunk<H: Handler>() {
    naked_asm!(
        ".if {input} > 4", "mov [rsp + {words} + 32], r10", ".endif",
        ".if {input} > 5", "mov [rsp + {words} + 40], r12", ".endif",
        ".if {input} > 6", "mov [rsp + {words} + 48], r13", ".endif",
        ".if {input} > 7", "mov [rsp + {words} + 56], r14", ".endif",
        ".if {input} > 8", "mov [rsp + {words} + 64], rbx", ".endif",
        ".if {input} > 9", "mov [rsp + {words} + 72], rbp", ".endif",
        ".if {input} > 10", "mov [rsp + {words} + 80], r15", ".endif",
        "mov rcx, rsp",
        "call {handle}",                            // rax and rdx are what it answers
        ".if {output} > 0", "mov rdi, [rsp + {words}]", ".else", "xor edi, edi", ".endif",
        ".if {output} > 1", "mov rsi, [rsp + {words} + 8]", ".else", "xor esi, esi", ".endif",
        ".if {output} > 2", "mov r8, [rsp + {words} + 16]", ".else", "xor r8d, r8d", ".endif",
        ".if {output} > 3", "mov r9, [rsp + {words} + 24]", ".else", "xor r9d, r9d", ".endif",
        ".if {output} > 4", "mov r10, [rsp + {words} + 32]", ".else", "xor r10d, r10d", ".endif",
        ".if {output} > 5", "mov r12, [rsp + {words} + 40]", ".endif",
        ".if {output} > 6", "mov r13, [rsp + {words} + 48]", ".endif",
        ".if {output} > 7", "mov r14, [rsp + {words} + 56]", ".endif",
        ".if {output} > 8", "mov rbx, [rsp + {words} + 64]", ".endif",
        ".if {output} > 9", "mov rbp, [rsp + {words} + 72]", ".endif",
        ".if {output} > 10", "mov r15, [rsp + {words} + 80]", ".endif",
        "syscall",
        "cmp eax, {request}",
        "jne {odd}",
        "shr rax, {shift}",
        "jmp [rsp + {table} + rax * 8]",
        input = const H::IN,
        output = const H::OUT,
        words = const offset_of!(Frame<H::Loop>, words),
        table = const offset_of!(Frame<H::Loop>, table),
        shift = const <H::Loop as Loop>::SHIFT,
        request = const IPC_CALL as i32,
        handle = sym <H as Handler>::handle,
        odd = sym odd::<H::Loop>,
    )
}

/// A message that need not be a plain request.
#[unsafe(naked)]
unsafe extern "C" fn odd<L: Loop>() {
    naked_asm!(
        "2:",
        ".if {long}",
        "cmp eax, {long_request}",
        "je 4f",
        ".endif",
        "cmp eax, {request}",
        "je 3f",
        "cmp eax, {reply}",                         // from a sender that waits for nothing: a oneway request
        "je 3f",
        ".if {long}",
        "cmp eax, {long_reply}",
        "je 4f",
        ".endif",
        "mov [rsp + {words}], rdi",
        "mov [rsp + {words} + 8], rsi",
        "mov [rsp + {words} + 16], r8",
        "mov [rsp + {words} + 24], r9",
        "mov [rsp + {words} + 32], r10",
        "mov [rsp + {words} + 40], r12",
        "mov [rsp + {words} + 48], r13",
        "mov [rsp + {words} + 56], r14",
        "mov rdi, rsp",
        "mov rsi, rax",
        "call {other}",
        "mov rdi, [rsp + {words}]",
        "mov rsi, [rsp + {words} + 8]",
        "mov r8, [rsp + {words} + 16]",
        "mov r9, [rsp + {words} + 24]",
        "mov r10, [rsp + {words} + 32]",
        "mov r12, [rsp + {words} + 40]",
        "mov r13, [rsp + {words} + 48]",
        "mov r14, [rsp + {words} + 56]",
        "syscall",
        "jmp 2b",
        "3:",
        "shr rax, {shift}",
        "jmp [rsp + {table} + rax * 8]",
        ".if {long}",
        "4:",
        "shr rax, {shift}",
        "jmp [rsp + {long_table} + rax * 8]",
        ".endif",
        words = const offset_of!(Frame<L>, words),
        table = const offset_of!(Frame<L>, table),
        long_table = const offset_of!(Frame<L>, table) + (8 << (64 - L::SHIFT)),
        shift = const L::SHIFT,
        long = const L::Room::LONG as u32,
        request = const IPC_CALL as i32,
        reply = const IPC_REPLY_WAIT as i32,
        long_request = const IPC_LONG_CALL as i32,
        long_reply = const IPC_LONG_REPLY_WAIT as i32,
        other = sym other::<L>,
    )
}

/// Asks the server about a message; leaves the words of the reply in the frame.
extern "sysv64" fn other<L: Loop>(frame: &mut Frame<L>, rax: u64, from: u64) -> Answer {
    let [w0, w1, w2, w3, w4, w5, w6, w7, ..] = frame.words;
    frame.words = [0; WORDS];
    let eax = rax as u32;
    let Some(kind) = Kind::from_eax(eax) else { return Answer::label(0, 0) };
    let words = [w0, w1, w2, w3, w4, w5, w6, w7];
    let message = Message { kind, flags: Flags(eax), label: (rax >> 32) as u32, sender: Uid(from), words };
    match L::other(frame.server, &message) {
        // A message that hands pages over is another form of ipc, which waits for nothing here.
        Some(Reply { label, words, item: item @ Some(_) }) => {
            let to = Uid(from);
            let _ = Ipc { to, label, words, item, send_timeout: Timeout::ZERO, ..Ipc::NONE }.run();
            Answer::label(0, 0)
        }
        Some(reply) => {
            frame.words[..8].copy_from_slice(&reply.words);
            Answer::label(from, reply.label)
        }
        None => Answer::label(0, 0),
    }
}
