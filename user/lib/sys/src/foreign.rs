//! Foreign calls: system calls of another system that a handler does for its threads.
//!
//! A thread to which native calls are denied ([`thread_redirect`]) makes system calls with numbers of its own; each arrives with the thread's
//! handler in all registers. A [`Handler`] takes them one after the other, and may leave one unanswered; [`serve`] does them by a table, and is
//! the fast way.
//!
//! The surprise: a foreign call changes neither FS base nor vector registers, so a handler runs with those of the thread. It has to be
//! compiled without either, as this library is, or to put them back.

use crate::{Error, Fpage, Message, Result, Uid, control, error, thread_set_registers};
use abi::Timeout;
use abi::call::{FOREIGN, FOREIGN_RETURN, RESUME_AS_IS, thread_op, timeouts};
use abi::op::{self, Op};
use core::arch::global_asm;
use core::mem::offset_of;

pub use abi::foreign::Registers;

/// Message that ends a wait for foreign calls.
#[derive(Clone, Copy, Debug)]
pub enum Arrival {
    /// A foreign call, of a thread with this label; its registers are in [`Handler::registers`].
    Call(u32),
    /// An ordinary message.
    Message(Message),
}

/// A handler of foreign calls, for one thread. It must stay where it is while it is used: the kernel knows its address as a stack.
#[repr(C)]
#[derive(Default)]
pub struct Handler {
    origin: u64,
    /// Registers of the call that came last, and of the answer to it.
    pub registers: Registers,
    stack: u64,
}

/// Form of a wait for foreign calls and messages.
const WAIT: Op = Op::GENERAL.with(op::TAKES_BLOCK | op::TAKES_FOREIGN);

/// Denies native calls to a thread, whose foreign calls then arrive with its handler, with this label of 31 bits.
pub fn thread_redirect(target: Uid, label: u32) -> Result<()> {
    control::thread(thread_op::DENY_NATIVE, [target.0, 1, label.into(), 0, 0, 0]).map(drop)
}

impl Handler {
    /// Waits for a foreign call or a message. A call that came before and was not answered stays unanswered: [`resume`] does that.
    pub fn wait(&mut self) -> Result<Arrival> {
        self.wait_for_call();
        self.arrival()
    }

    /// Answers the call that came last with [`Handler::registers`], then waits as [`Handler::wait`] does.
    ///
    /// # Errors
    ///
    /// `BadState`: this thread has never waited for foreign calls.
    pub fn answer(&mut self) -> Result<Arrival> {
        if self.stack == 0 {
            return Err(Error::BadState);
        }
        self.answer_call();
        self.arrival()
    }

    /// Waits as [`Handler::wait`] does. The label of the thread whose call came; none if a [message](Handler::message) did.
    pub fn wait_for_call(&mut self) -> Option<u32> {
        // SAFETY: the function keeps all registers that C wants kept, and writes to the handler only.
        unsafe { tern_foreign_wait(self) };
        self.caller()
    }

    /// Answers the call that came last as [`Handler::answer`] does, and returns as [`Handler::wait_for_call`] does. Without one it waits.
    pub fn answer_call(&mut self) -> Option<u32> {
        if self.stack == 0 {
            return self.wait_for_call();
        }
        // SAFETY: as above.
        unsafe { tern_foreign_answer(self) };
        self.caller()
    }

    /// Answers a thread that waits for one, such as to a fault, with a label and perhaps a map item, all at once with [`Handler::wait_for_call`]. One that does not
    /// wait gets nothing; then nothing has come, and [`Handler::message`] is an error.
    pub fn reply_and_wait(&mut self, to: Uid, label: u32, item: Option<(Fpage, u64)>) -> Option<u32> {
        let form = if item.is_some() { WAIT.with(op::ITEM) } else { WAIT };
        let (fpage, hot_spot) = item.map_or((0, 0), |(fpage, hot_spot)| (fpage.0, hot_spot));
        let form = u64::from(label) << 32 | u64::from(form.0);
        // SAFETY: as in `wait_for_call`. A map item changes mappings of the other thread's task alone.
        unsafe { tern_foreign_reply(self, to.0, form, fpage, hot_spot) };
        self.caller()
    }

    /// The message that came last, if it was no call.
    pub fn message(&self) -> Result<Message> {
        match self.arrival()? {
            Arrival::Message(message) => Ok(message),
            Arrival::Call(_) => Err(Error::BadState),
        }
    }

    #[inline]
    fn caller(&self) -> Option<u32> {
        (self.origin & FOREIGN != 0).then_some((self.origin >> 32) as u32 & !(1 << 31))
    }

    fn arrival(&self) -> Result<Arrival> {
        arrival(self.origin, &self.registers)
    }
}

fn arrival(origin: u64, registers: &Registers) -> Result<Arrival> {
    if origin & FOREIGN != 0 {
        return Ok(Arrival::Call((origin >> 32) as u32 & !(1 << 31)));
    }
    let Registers { rdi, rsi, r8, r9, r10, r12, r13, r14, .. } = *registers;
    let words = [rdi, rsi, r8, r9, r10, r12, r13, r14];
    match Message::from_registers(registers.rax, registers.rdx, words)? {
        Some(message) => Ok(Arrival::Message(message)),
        None => Err(error(0)),
    }
}

/// Answers a foreign call that was left unanswered: the thread goes on behind its call, with these registers. A handler that has not waited since the call came
/// has vector registers and an FS base of its own afterwards, and not those of the thread.
///
/// # Errors
///
/// `BadState`: it does not wait for this thread to return.
pub fn answer_later(thread: Uid, registers: &Registers) -> Result<()> {
    let address = core::ptr::from_ref(registers) as u64;
    control::thread(thread_op::FOREIGN_RETURN, [thread.0, address, 0, 0, 0, 0]).map(drop)
}

/// Answers a foreign call that was left unanswered: the thread goes on at `ip`, with these registers, stack pointer and flags.
pub fn resume(thread: Uid, registers: &Registers, [ip, sp, flags]: [u64; 3]) -> Result<()> {
    let Registers { rdi, rsi, rdx, r10, r8, r9, rbx, rbp, r12, r13, r14, rax, .. } = *registers;
    thread_set_registers(thread, 0, [ip, sp, flags, rax])?;
    thread_set_registers(thread, 1, [rbx, ip, rdx, rsi])?;
    thread_set_registers(thread, 2, [rdi, rbp, r8, r9])?;
    thread_set_registers(thread, 3, [r10, flags, r12, r13])?;
    let [.., base, other_base] = crate::thread_registers(thread, 4)?;
    thread_set_registers(thread, 4, [r14, registers.r15, base, other_base])?;
    crate::send(thread, RESUME_AS_IS, [0; 8], Timeout::ZERO)
}

/// A function that does a foreign call: `registers` are the caller's, with the result in `rax` afterwards; the upper half of `origin` is the
/// caller's label, with bit 63 set.
pub type Function = extern "C" fn(registers: &mut Registers, origin: u64);

/// Number of functions in a [`Table`].
pub const FUNCTIONS: usize = 512;

/// Functions by the numbers of calls.
#[repr(C)]
pub struct Table {
    /// For the numbers from 0 on.
    pub functions: [Function; FUNCTIONS],
    /// For all other numbers.
    pub other: Function,
}

/// Does foreign calls by a table until a message comes that is none.
pub fn serve(table: &'static Table) -> Result<Message> {
    let mut registers = Registers::default();
    // SAFETY: the function keeps all registers that C wants kept, and writes to `registers` and its own stack only.
    unsafe { tern_foreign_serve(table, &mut registers) };
    match arrival(0, &registers)? {
        Arrival::Message(message) => Ok(message),
        Arrival::Call(_) => Err(Error::BadArgument),
    }
}

unsafe extern "C" {
    fn tern_foreign_wait(handler: *mut Handler);
    fn tern_foreign_answer(handler: *mut Handler);
    fn tern_foreign_reply(handler: *mut Handler, to: u64, form: u64, fpage: u64, hot_spot: u64);
    fn tern_foreign_serve(table: *const Table, message: *mut Registers);
}

global_asm!(
    include_str!("foreign.s"),
    stack = const offset_of!(Handler, stack),
    registers = const offset_of!(Handler, registers),
    wait = const WAIT.0 as i32,
    forever = const timeouts(Timeout::ZERO, Timeout::NEVER) as i64,
    foreign_return = const FOREIGN_RETURN as i32,
    functions = const FUNCTIONS,
    table = const size_of::<Registers>(),
    other = const offset_of!(Table, other),
);
