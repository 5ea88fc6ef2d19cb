//! A thread's user registers, as the entry code stores them, and the use of each: the one file that gives registers their meaning.
//!
//! These are x86-64's; the simulated machine has the same ones. A port writes a twin with the same functions and constants. Code above
//! says [`Frame::partner`] or [`Frame::argument`], and never the name of a register. What a register carries at a system call is the ABI's
//! (`abi/src/call.rs`); how the entry code finds a field is its own (`offset_of!`).

use abi::call::FLAGS;
use abi::foreign;
use abi::op::Op;
use abi::state::REGISTERS;
use core::cell::Cell;

/// Number of words of a message that travel in registers; eight for everyone, three more on the short forms.
pub const WORDS: usize = 11;

/// Flags that a user may change: arithmetic flags, direction, trap, resume, alignment check, identification.
pub const USER_FLAGS: u64 = 0x0025_0dd5;

/// Selector of user code in a frame, with the user's privilege level.
pub const USER_CODE: u16 = 0x28 | 3;

/// Selector of user data in a frame, with the user's privilege level.
pub const USER_DATA: u16 = 0x20 | 3;

/// The flag of a thread that is stepped (TF).
const STEP: u64 = 1 << 8;

/// Number of registers that a return from a foreign call sets.
pub const RETURNED: usize = size_of::<foreign::Registers>() / 8;

/// A thread's user registers.
#[repr(C)]
pub struct Frame {
    /// `rdi rsi r8 r9 r10 r12 r13 r14 rbx rbp r15`: message words in order.
    pub w: [Cell<u64>; WORDS],
    /// Destination or sender.
    pub rdx: Cell<u64>,
    /// Operation, result.
    pub rax: Cell<u64>,
    /// Overwritten by SYSCALL, with the flags.
    pub r11: Cell<u64>,
    /// Overwritten by SYSCALL, with the address to go on at.
    pub rcx: Cell<u64>,
    /// How to leave the kernel: [`Frame::SYSRET`], [`Frame::BUSY`], [`Frame::IDLE`], or anything else for IRET.
    pub mode: Cell<u64>,
    /// Error code of an exception.
    pub error: Cell<u64>,
    /// Valid if the mode is IRET; otherwise the instruction pointer is in the thread's hot line.
    pub rip: Cell<u64>,
    /// Code segment.
    pub cs: Cell<u64>,
    /// Flags.
    pub rflags: Cell<u64>,
    /// Valid if the mode is IRET; otherwise the stack pointer is in the thread's hot line.
    pub rsp: Cell<u64>,
    /// Stack segment.
    pub ss: Cell<u64>,
}

/// Modes in which a frame leaves the kernel, and the index of each register among its words.
impl Frame {
    /// Mode: leave by `sysret`; `rcx` and `r11` are dead.
    pub const SYSRET: u64 = 0;
    /// Flag of a mode: do not leave yet; look for interrupts, then continue the thread's operation.
    pub const BUSY: u64 = 1 << 63;
    /// Mode: nothing to run; wait for an interrupt.
    pub const IDLE: u64 = 1 << 63 | 1;
    /// Mode: leave by `iret`; the vector is in the low byte.
    pub const TRAP: u64 = 0x100;
    /// Mode: leave by `iret`, of a frame that no vector made.
    pub const COMPLETE: u64 = Frame::TRAP | 0xff;

    /// Index of `rdi` in `w`.
    pub const RDI: usize = 0;
    /// Index of `rsi` in `w`.
    pub const RSI: usize = 1;
    /// Index of `r8` in `w`.
    pub const R8: usize = 2;
    /// Index of `r9` in `w`.
    pub const R9: usize = 3;
    /// Index of `r10` in `w`.
    pub const R10: usize = 4;
    /// Index of `rbx` in `w`.
    pub const RBX: usize = 8;
    /// Index of `rbp` in `w`.
    pub const RBP: usize = 9;
    /// Index of `r15` in `w`.
    pub const R15: usize = 10;
}

/// The registers of a system call.
impl Frame {
    /// The operation that the thread asked for, until it is answered.
    #[inline(always)]
    pub fn op(&self) -> Op {
        Op::of(self.head())
    }

    /// The head: operation and label on the way in, result and label on the way out.
    #[inline(always)]
    pub fn head(&self) -> u64 {
        self.rax.get()
    }

    /// Changes the head.
    #[inline(always)]
    pub fn set_head(&self, head: u64) {
        self.rax.set(head);
    }

    /// The label of the message, in the upper half of a word, as it stands in the head.
    #[inline(always)]
    pub fn label(&self) -> u64 {
        self.head() >> 32 << 32
    }

    /// Partner of a message, its destination or its sender: a uid, an identifier, or a door's datum.
    #[inline(always)]
    pub fn partner(&self) -> u64 {
        self.rdx.get()
    }

    /// Names the partner.
    #[inline(always)]
    pub fn set_partner(&self, partner: u64) {
        self.rdx.set(partner);
    }

    /// Ends a call: the head of its answer, and flags as a call leaves them.
    #[inline(always)]
    pub fn finish(&self, head: u64) {
        self.rax.set(head);
        self.r11.set(FLAGS);
    }

    /// Window of a general form: the region in which an item may arrive.
    #[inline(always)]
    pub fn window(&self) -> u64 {
        self.w[Frame::RBP].get()
    }

    /// Partner of the receive that follows the send of a general form.
    #[inline(always)]
    pub fn then_from(&self) -> u64 {
        self.w[Frame::RBX].get()
    }

    /// Timeouts of a general form, or the point in time that stands for one.
    #[inline(always)]
    pub fn timeouts(&self) -> u64 {
        self.w[Frame::R15].get()
    }

    #[inline(always)]
    fn arguments(&self) -> [&Cell<u64>; 6] {
        let w = &self.w;
        [&w[Frame::RDI], &w[Frame::RSI], &self.rdx, &w[Frame::R10], &w[Frame::R8], &w[Frame::R9]]
    }

    /// Argument of any call but ipc, by its number: 0 to 5.
    #[inline(always)]
    pub fn argument(&self, number: usize) -> u64 {
        self.arguments()[number].get()
    }

    /// Stores results of any call but ipc where the arguments were, in order.
    #[inline(always)]
    pub fn give<const N: usize>(&self, results: [u64; N]) {
        for (register, result) in self.arguments().into_iter().zip(results) {
            register.set(result);
        }
    }
}

/// The registers of a thread that left user mode by an exception or an interrupt, or has never been there.
impl Frame {
    /// Makes the frame that of a thread at its first instruction, with three arguments and all other registers zero.
    pub fn begin(&self, ip: u64, sp: u64, arguments: [u64; 3]) {
        self.w.iter().for_each(|word| word.set(0));
        [&self.rax, &self.rcx, &self.r11].iter().for_each(|register| register.set(0));
        self.give(arguments);
        self.rflags.set(FLAGS);
        self.complete(ip, sp);
    }

    /// Turns the frame into a trap's, from which all registers are loaded. Its flags are set already.
    fn complete(&self, ip: u64, sp: u64) {
        self.rip.set(ip);
        self.rsp.set(sp);
        self.mode.set(Frame::COMPLETE);
        self.set_user_segments();
    }

    /// Turns the frame of a thread in a system call into a trap's. `ip` and `sp`: where the thread goes on.
    pub fn complete_call(&self, ip: u64, sp: u64) {
        self.rflags.set(Frame::user_flags(self.r11.get()));
        self.rcx.set(ip);
        self.complete(ip, sp);
    }

    /// Turns the frame of a call that does not exist into a trap's, with the head as error code. `has_flags`: `r11` holds the user's flags.
    pub fn complete_refused(&self, ip: u64, sp: u64, has_flags: bool) {
        self.r11.set(if has_flags { Frame::user_flags(self.r11.get()) } else { FLAGS });
        self.rcx.set(ip);
        self.error.set(self.rax.get());
        self.rflags.set(self.r11.get());
        self.complete(ip, sp);
    }

    /// Turns the frame of a thread in a foreign call, whose other registers are with its handler, into a trap's. They are zero here.
    pub fn complete_foreign(&self, ip: u64, sp: u64, flags: u64) {
        self.w.iter().chain([&self.rdx, &self.rax]).for_each(|register| register.set(0));
        self.r11.set(flags);
        self.complete_refused(ip, sp, true);
    }

    /// Flags of the user in a call that the kernel does not know, as a trap's frame for it has them.
    pub fn call_flags(&self) -> u64 {
        self.rflags.get()
    }

    /// Takes all registers of a foreign call, or of the return from one, but the stack pointer, and the head apart.
    pub fn take_registers(&self, from: &Frame, head: u64) {
        self.w.iter().zip(&from.w).for_each(|(to, from)| to.set(from.get()));
        self.rdx.set(from.rdx.get());
        self.rax.set(head);
    }

    /// Sets the registers of a return from a foreign call, in the order of [`abi::foreign::Registers`].
    pub fn set_returned(&self, words: &[Cell<u64>; RETURNED]) {
        let [rdi, rsi, r8, r9, r10, r12, r13, r14, rbx, rbp, r15] = &self.w;
        let registers = [rdi, rsi, &self.rdx, r10, r8, r9, rbx, rbp, r12, r13, r14, r15, &self.rax];
        registers.iter().zip(words).for_each(|(register, word)| register.set(word.get()));
    }

    /// Leaves the kernel with `flags` as a system call does; their upper half, which are no flags, the user finds beside them.
    pub fn leave_with_flags(&self, flags: u64) {
        self.r11.set(flags);
        self.mode.set(Frame::SYSRET);
    }

    /// Registers of a trap's frame that a handler is told and may change: instruction pointer, stack pointer, flags and head.
    pub fn at_trap(&self) -> [u64; 4] {
        [self.rip.get(), self.rsp.get(), self.rflags.get(), self.rax.get()]
    }

    /// Stores the registers of [`Frame::at_trap`], of which the caller answers that they are fit for user mode.
    pub fn set_at_trap(&self, [ip, sp, flags, head]: [u64; 4]) {
        self.rip.set(ip);
        self.rsp.set(sp);
        self.rflags.set(flags);
        self.rax.set(head);
    }

    /// The instruction pointer, of a trap's frame.
    #[inline(always)]
    pub fn ip(&self) -> u64 {
        self.rip.get()
    }

    /// The stack pointer, of a trap's frame.
    #[inline(always)]
    pub fn sp(&self) -> u64 {
        self.rsp.get()
    }

    /// Flags as a user may have them: of `flags` those that it may change, the others as the kernel wants them.
    pub const fn user_flags(flags: u64) -> u64 {
        flags & USER_FLAGS | FLAGS
    }

    /// Sets the selectors of user mode.
    pub fn set_user_segments(&self) {
        self.cs.set(USER_CODE as u64);
        self.ss.set(USER_DATA as u64);
    }

    /// Whether the processor was in user mode when the frame was made.
    #[inline(always)]
    pub fn is_user(&self) -> bool {
        self.cs.get() & 3 == 3
    }

    /// Sets or clears the flag that ends each instruction of the thread in an exception. `trapped`: the frame is a trap's.
    pub fn set_stepped(&self, trapped: bool, on: bool) {
        let flags = if trapped { &self.rflags } else { &self.r11 };
        flags.set(flags.get() & !STEP | if on { STEP } else { 0 });
    }

    /// All registers, in the order of a [`ThreadState`](abi::ThreadState).
    pub fn registers(&self) -> [&Cell<u64>; REGISTERS] {
        let [rdi, rsi, r8, r9, r10, r12, r13, r14, rbx, rbp, r15] = &self.w;
        let Frame { rip, rsp, rflags, rax, rcx, rdx, r11, .. } = self;
        [rip, rsp, rflags, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15]
    }

    /// The registers of a group, in the order of [`REGISTERS`](abi::call::REGISTERS). The last group has two more, which are no
    /// registers of a frame.
    pub fn group(&self, number: usize) -> [Option<&Cell<u64>>; 4] {
        let [rdi, rsi, r8, r9, r10, r12, r13, r14, rbx, rbp, r15] = &self.w;
        match number {
            0 => [&self.rip, &self.rsp, &self.rflags, &self.rax].map(Some),
            1 => [rbx, &self.rcx, &self.rdx, rsi].map(Some),
            2 => [rdi, rbp, r8, r9].map(Some),
            3 => [r10, &self.r11, r12, r13].map(Some),
            _ => [Some(r14), Some(r15), None, None],
        }
    }

    /// Checks a group's values, as a debugger gives them, and corrects the flags. `None`: no thread may have such values.
    pub fn checked_group(number: usize, [a, b, c, d]: [u64; 4]) -> Option<[u64; 4]> {
        match number {
            0 if a >= abi::USER_END || b >> 47 != 0 => None,
            0 => Some([a, b, Frame::user_flags(c), d]),
            _ => Some([a, b, c, d]),
        }
    }
}

const _: () = assert!(size_of::<Frame>() == 176);
