//! Threads that make foreign calls, one after the other: the registers of each call follow from those with which the last one came back, and
//! from its flags. So a register that is not as it should be shows in the next call.
//!
//! A caller has no memory and never waits for itself: it is in a call, or stopped.

use crate::kit::{Outcome, is_blocked, pager};
use core::arch::global_asm;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use sys::foreign::Registers;
use sys::{TaskId, Uid};

/// Number of callers.
pub const CALLERS: usize = 4;

// Its own name, in rsi, and that of its task, in rdx, are others in each story. Of the result only what is left of an agent's stack pointer without the place of the stack; numbers are those of no error.
global_asm!(
    "
    .section .text.suite_transcript, \"ax\", @progbits
    .globl suite_transcript_caller
suite_transcript_caller:
    xor esi, esi
    xor edx, edx
    xor r11d, r11d
1:  and eax, 0xfff
    add rdi, r11
    add rsi, rax
    add rdx, rdi
    add r10, rsi
    add r8, rdx
    add r9, r10
    add rbx, r8
    add rbp, r9
    add r12, rbx
    add r13, rbp
    add r14, r12
    add r15, r13
    mov rax, r14
    and eax, 0xfffffff
    or eax, 0x40000000
    mov rcx, r15
    shl rcx, 32
    or rax, rcx
    add r15, r14
    syscall
    jmp 1b
    .text
    "
);

unsafe extern "C" {
    fn suite_transcript_caller();
}

/// Registers of a late return: the words, and one of them once more as the result.
pub fn registers(words: [u64; 11]) -> u64 {
    static BLOCK: [AtomicU64; size_of::<Registers>() / 8] =
        [const { AtomicU64::new(0) }; size_of::<Registers>() / 8];
    let all = words.into_iter().chain([words[0] ^ 1, words[1] ^ 1]);
    BLOCK.iter().zip(all).for_each(|(cell, word)| cell.store(word, Relaxed));
    BLOCK.as_ptr() as u64
}

/// A thread that makes foreign calls. It ends when this value is dropped.
pub struct Caller {
    pub uid: Uid,
    pub label: Cell<u32>,
    pub handler: Cell<Uid>,
}

impl Caller {
    /// A caller in a task, whose calls go to `handler` with a label; it begins at once.
    pub fn new(task: TaskId, handler: Uid, label: u32) -> Outcome<Caller> {
        let uid = sys::thread_create(task, pager::priority(), pager::uid(), handler)?;
        let caller = Caller { uid, label: Cell::new(0), handler: Cell::new(handler) };
        caller.redirect(handler, label)?;
        // SAFETY: it has no memory.
        unsafe { sys::thread_start(uid, suite_transcript_caller as *const () as usize as u64, 0x8000, 7)? };
        Ok(caller)
    }

    /// Lets `handler` have its calls from now on, with this label.
    pub fn redirect(&self, handler: Uid, label: u32) -> sys::Result<()> {
        self.label.set(label);
        self.handler.set(handler);
        sys::thread_set_pager(self.uid, pager::uid(), handler)?;
        sys::foreign::thread_redirect(self.uid, label)
    }

    /// Whether it is in a call or stopped.
    pub fn rests(&self) -> sys::Result<bool> {
        is_blocked(self.uid)
    }

    /// Lets it run until it is.
    pub fn settle(&self) -> sys::Result<()> {
        while !self.rests()? {
            sys::thread_switch(self.uid)?;
        }
        Ok(())
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        // Its task may have ended before.
        let _ = sys::thread_destroy(self.uid);
    }
}
