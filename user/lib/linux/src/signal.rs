//! Signals: sets of them, what a process does with each, and the frame with which a handler begins.

use crate::budget::Share;
use crate::errno::{EFAULT, Result};
use abi::ThreadState;
use abi::state::{IMAGE_HEADER, IMAGE_MXCSR, IMAGE_WORDS, STATE_AVX, STATE_SSE, STATE_X87, register};
use alloc::collections::VecDeque;
use linux_raw_sys::general;

/// Number of a signal, from 1 to 64.
pub type Signal = u32;

/// Signals, the first in the lowest bit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Set(pub u64);

impl Set {
    /// A signal alone.
    pub const fn of(signal: Signal) -> Set {
        Set(1 << (signal - 1))
    }

    /// Whether a signal is in it.
    pub const fn has(self, signal: Signal) -> bool {
        self.0 & Set::of(signal).0 != 0
    }

    /// Signals that nobody blocks, handles or ignores.
    const ALWAYS: Set = Set(Set::of(general::SIGKILL).0 | Set::of(general::SIGSTOP).0);

    /// It, without those that nobody blocks.
    pub const fn as_mask(self) -> Set {
        Set(self.0 & !Set::ALWAYS.0)
    }

    /// The lowest signal in it.
    pub const fn first(self) -> Option<Signal> {
        if self.0 == 0 { None } else { Some(self.0.trailing_zeros() + 1) }
    }
}

/// Effect of a signal of which a process says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Usual {
    /// The process ends.
    End,
    /// The process stands still.
    Stop,
    /// It goes on, if it stands still.
    Continue,
    /// Nothing.
    Nothing,
}

/// See [`Usual`].
pub const fn usual(signal: Signal) -> Usual {
    match signal {
        general::SIGCHLD | general::SIGURG | general::SIGWINCH => Usual::Nothing,
        general::SIGCONT => Usual::Continue,
        general::SIGSTOP | general::SIGTSTP | general::SIGTTIN | general::SIGTTOU => Usual::Stop,
        _ => Usual::End,
    }
}

/// Choice of a process for a signal: as `rt_sigaction` has it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Action {
    /// Address of the function; 0 for the default, 1 to ignore it.
    pub handler: u64,
    /// Bits `SA_…`.
    pub flags: u64,
    /// Where the handler returns to.
    pub restorer: u64,
    /// Signals that are blocked meanwhile.
    pub mask: Set,
}

/// Bytes of an [`Action`].
pub const ACTION_BYTES: usize = 32;

impl Action {
    /// From the bytes of a process.
    pub fn read([handler, flags, restorer, mask]: [u64; 4]) -> Action {
        Action { handler, flags, restorer, mask: Set(mask).as_mask() }
    }

    /// Words that a process sees.
    pub const fn words(&self) -> [u64; 4] {
        [self.handler, self.flags, self.restorer, self.mask.0]
    }

    /// Whether a signal has no effect at all.
    pub const fn ignores(&self, signal: Signal) -> bool {
        self.handler == 1 || self.handler == 0 && matches!(usual(signal), Usual::Nothing)
    }

    /// Whether it has a bit.
    pub const fn has(&self, flag: u32) -> bool {
        self.flags & flag as u64 != 0
    }
}

/// Why a signal was sent: what a handler finds in its `siginfo`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cause {
    /// `si_code`.
    pub code: i32,
    /// Sender and its owner; or the child that changed.
    pub sender: (u32, u32),
    /// Address of a fault, a value, or the status of a child.
    pub value: u64,
}

impl Cause {
    /// A process has sent it by `kill`.
    pub const fn process(pid: u32, owner: u32) -> Cause {
        Cause { code: 0, sender: (pid, owner), value: 0 }
    }

    /// The kernel has sent it.
    pub const KERNEL: Cause = Cause { code: general::SI_KERNEL as i32, sender: (0, 0), value: 0 };
}

/// Signals that wait. Each of the first 31 waits once; others queue up.
#[derive(Default, Debug)]
pub struct Pending {
    set: Set,
    causes: VecDeque<(Signal, Cause)>,
    added: u64,
    /// Share of the budget that more than [`CAUSES_FREE`] causes have.
    share: Option<Share>,
}

/// Causes for which there is always room: one of each signal that waits once.
const CAUSES_FREE: usize = 32;

/// Signals that wait at once, at most.
const PENDING_MAX: usize = 1024;

impl Pending {
    /// None. Those that wait have a share that is empty yet.
    pub fn within(share: Share) -> Pending {
        Pending { share: Some(share), ..Pending::default() }
    }

    /// Bytes of the list, as far as they count.
    pub fn list_bytes(&self) -> usize {
        let places = self.causes.capacity();
        if places > CAUSES_FREE { places * size_of::<(Signal, Cause)>() } else { 0 }
    }

    /// Makes room for one more. False if there is none.
    fn grow(&mut self, is_once: bool) -> bool {
        let (count, places) = (self.causes.len(), self.causes.capacity());
        if count >= PENDING_MAX && !is_once {
            return false;
        }
        if count < places {
            return true;
        }
        let places = if places == 0 { CAUSES_FREE / 8 } else { 2 * places };
        let bytes = if places > CAUSES_FREE { places * size_of::<(Signal, Cause)>() } else { 0 };
        if let Some(share) = &mut self.share {
            // A signal that waits once is never lost.
            if is_once {
                share.set(bytes);
            } else if !share.resize(bytes) {
                return false;
            }
        }
        self.causes.reserve_exact(places - count);
        true
    }

    /// A list that is empty and was long is given back.
    fn shrink(&mut self) {
        if self.causes.is_empty() && self.causes.capacity() > CAUSES_FREE {
            self.causes = VecDeque::new();
            if let Some(share) = &mut self.share {
                share.set(0);
            }
        }
    }

    /// Adds one. False if there are too many, which can only be of those that queue up.
    pub fn add(&mut self, signal: Signal, cause: Cause) -> bool {
        let is_once = signal < general::SIGRTMIN;
        if self.set.has(signal) && is_once {
            return true;
        }
        if !self.grow(is_once) {
            return false;
        }
        self.set.0 |= Set::of(signal).0;
        self.causes.push_back((signal, cause));
        self.added += 1;
        true
    }

    /// The signal of a timer, if it still waits, was missed so often more. How often that is.
    pub fn miss(&mut self, timer: u32, more: u32) -> Option<u32> {
        let is_its = |cause: &&mut Cause| cause.code == general::SI_TIMER && cause.sender.0 == timer;
        let cause = self.causes.iter_mut().map(|(_, cause)| cause).find(is_its)?;
        cause.sender.1 = cause.sender.1.saturating_add(more);
        Some(cause.sender.1)
    }

    /// Signals that have been added so far.
    pub const fn added(&self) -> u64 {
        self.added
    }

    /// Those that wait.
    pub const fn set(&self) -> Set {
        self.set
    }

    /// Takes the first that is not blocked.
    pub fn take(&mut self, blocked: Set) -> Option<(Signal, Cause)> {
        self.take_of(Set(!blocked.0))
    }

    /// Takes the first of a set.
    pub fn take_of(&mut self, wanted: Set) -> Option<(Signal, Cause)> {
        let signal = Set(self.set.0 & wanted.0).first()?;
        let at = self.causes.iter().position(|(other, _)| *other == signal)?;
        let (_, cause) = self.causes.remove(at)?;
        if !self.causes.iter().any(|(other, _)| *other == signal) {
            self.set.0 &= !Set::of(signal).0;
        }
        self.shrink();
        Some((signal, cause))
    }

    /// Forgets a signal.
    pub fn forget(&mut self, signal: Signal) {
        self.set.0 &= !Set::of(signal).0;
        self.causes.retain(|(other, _)| *other != signal);
        self.shrink();
    }
}

/// A stack for handlers: `sigaltstack`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stack {
    /// Its lowest address.
    pub address: u64,
    /// `SS_…`.
    pub flags: u32,
    /// Bytes.
    pub len: u64,
}

impl Stack {
    /// None.
    pub const NONE: Stack = Stack { address: 0, flags: general::SS_DISABLE, len: 0 };

    /// Whether a stack pointer is on it.
    pub const fn has(&self, sp: u64) -> bool {
        sp.wrapping_sub(self.address).wrapping_sub(1) < self.len
    }

    /// Words that a process sees whose stack pointer is there.
    pub const fn words(&self, sp: u64) -> [u64; 3] {
        let on = if self.len > 0 && self.has(sp) { general::SS_ONSTACK } else { 0 };
        [self.address, (self.flags | on) as u64, self.len]
    }
}

/// Bytes of `siginfo`.
pub const INFO_BYTES: usize = 128;
/// Bytes of the frame in front of it: address of the restorer, then `ucontext`.
const CONTEXT_BYTES: usize = 8 + 304;
/// Bytes of the vector registers, with the word behind them.
const VECTOR_BYTES: usize = IMAGE_WORDS * 8 + 4;
/// Offset of the vector registers in the frame. A frame begins where a stack is after a call; they are aligned to 64 bytes.
const VECTOR_OFFSET: usize = (CONTEXT_BYTES + INFO_BYTES).next_multiple_of(64) + 8;
/// Bytes of the frame.
const FRAME_BYTES: usize = VECTOR_OFFSET + VECTOR_BYTES;
/// Bytes below the stack pointer that a function may use.
const RED_ZONE: u64 = 128;
/// Words behind the instruction pointer and so on, as `sigcontext` orders them.
const ORDER: [usize; 17] = [
    register::R8,
    register::R9,
    register::R10,
    register::R11,
    register::R12,
    register::R13,
    register::R14,
    register::R15,
    register::RDI,
    register::RSI,
    register::RBP,
    register::RBX,
    register::RDX,
    register::RAX,
    register::RCX,
    register::RSP,
    register::RIP,
];
/// Offset of the registers in `ucontext`.
const REGISTERS_AT: usize = 40;
/// Offset of the pointer to the vector registers in `ucontext`.
const VECTOR_AT: usize = REGISTERS_AT + 8 * 23;
/// Offset of the blocked signals in `ucontext`.
const MASK_AT: usize = 296;
/// Offset in the vector registers of the words for software.
const SOFTWARE_AT: usize = 464;
/// The first of these words where the long form follows, and the word behind that.
const LONG_FORM: [u32; 2] = [0x4650_5853, 0x4650_5845];
/// Segments of a program of 64 bits: code, and stack.
const SEGMENTS: u64 = 0x33 | 0x2b << 48;
/// Flags that a handler begins without: direction, trap, resume.
const FLAGS_CLEARED: u64 = 1 << 10 | 1 << 8 | 1 << 16;
/// Flags that a process may set.
const FLAGS_OWN: u64 = 0x0005_0dd5;

/// Room for a frame, as it is written to the stack and read again. It is kept, since a frame is longer than what is new in it.
#[derive(Debug)]
pub struct Frame(pub [u8; FRAME_BYTES]);

impl Frame {
    /// An empty one.
    pub const EMPTY: Frame = Frame([0; FRAME_BYTES]);

    /// Room for the part at a frame's `ucontext` that [`restore`] needs.
    pub fn restored(&mut self) -> &mut [u8; RESTORED_BYTES] {
        self.0.first_chunk_mut().expect("a frame is longer")
    }

    /// Room for the vector registers that [`restore_vector`] needs.
    pub fn vector(&mut self) -> &mut [u8; RESTORED_VECTOR_BYTES] {
        self.0[VECTOR_OFFSET..].first_chunk_mut().expect("a frame is longer")
    }
}

/// Bytes of `siginfo`.
pub fn info(signal: Signal, cause: &Cause) -> [u8; INFO_BYTES] {
    let mut bytes = [0; INFO_BYTES];
    bytes[..4].copy_from_slice(&signal.to_le_bytes());
    bytes[8..12].copy_from_slice(&cause.code.to_le_bytes());
    let is_fault = cause.code > 0
        && cause.code < general::SI_KERNEL as i32
        && matches!(
            signal,
            general::SIGSEGV | general::SIGBUS | general::SIGILL | general::SIGFPE | general::SIGTRAP
        );
    if is_fault {
        bytes[16..24].copy_from_slice(&cause.value.to_le_bytes());
    } else {
        bytes[16..20].copy_from_slice(&cause.sender.0.to_le_bytes());
        bytes[20..24].copy_from_slice(&cause.sender.1.to_le_bytes());
        bytes[24..32].copy_from_slice(&cause.value.to_le_bytes());
    }
    bytes
}

/// The frame for a handler, of a thread in a state, which becomes the one with which the handler begins; gives back where it begins. `mask`: what is blocked when the handler returns.
/// `fault`: address, error code and vector of a fault. `EFAULT`: it would lie outside of a stack for handlers on which the thread is, or is going to be.
pub fn frame(
    Frame(bytes): &mut Frame,
    state: &mut ThreadState,
    action: &Action,
    (signal, cause): (Signal, &Cause),
    stack: &Stack,
    mask: Set,
    fault: [u64; 3],
) -> Result<u64> {
    let sp = state.registers[register::RSP];
    let uses_other = action.has(general::SA_ONSTACK) && stack.len > 0 && !stack.has(sp);
    let top = if uses_other { stack.address.wrapping_add(stack.len) } else { sp.wrapping_sub(RED_ZONE) };
    let vector_at = top.wrapping_sub(VECTOR_BYTES as u64) & !63;
    let address = vector_at.wrapping_sub(VECTOR_OFFSET as u64);
    if (uses_other || stack.has(sp)) && !stack.has(address) {
        return Err(EFAULT);
    }

    let mut places = bytes.as_chunks_mut().0.iter_mut();
    let mut word = |value: u64| {
        if let Some(place) = places.next() {
            *place = value.to_le_bytes();
        }
    };
    word(action.restorer);
    // Flags: vector registers in the long form, and a stack segment to be kept.
    word(7);
    word(0);
    stack.words(sp).into_iter().for_each(&mut word);
    ORDER.into_iter().for_each(|index| word(state.registers[index]));
    word(state.registers[register::RFLAGS]);
    word(SEGMENTS);
    let [fault_address, code, number] = fault;
    [code, number, mask.0, fault_address, vector_at].into_iter().for_each(&mut word);
    (0..8).for_each(|_| word(0));
    word(mask.0);
    bytes[CONTEXT_BYTES..CONTEXT_BYTES + INFO_BYTES].copy_from_slice(&info(signal, cause));
    put_vector(state, &mut bytes[VECTOR_OFFSET..]);

    let registers = &mut state.registers;
    registers[register::RDI] = signal.into();
    registers[register::RSI] = address.wrapping_add(CONTEXT_BYTES as u64);
    registers[register::RDX] = address.wrapping_add(8);
    registers[register::RAX] = 0;
    registers[register::RIP] = action.handler;
    registers[register::RSP] = address;
    registers[register::RFLAGS] &= !FLAGS_CLEARED;
    Ok(address)
}

/// Writes down the vector registers as a handler sees them.
fn put_vector(state: &ThreadState, bytes: &mut [u8]) {
    bytes
        .as_chunks_mut()
        .0
        .iter_mut()
        .zip(&state.image)
        .for_each(|(place, word)| *place = word.to_le_bytes());
    let parts = state.parts & (STATE_X87 | STATE_SSE | STATE_AVX);
    let software = [LONG_FORM[0], VECTOR_BYTES as u32, parts as u32, 0, (IMAGE_WORDS * 8) as u32];
    for (at, value) in (SOFTWARE_AT..).step_by(4).zip(software) {
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    bytes[IMAGE_WORDS * 8..].copy_from_slice(&LONG_FORM[1].to_le_bytes());
}

/// Bytes at a frame's `ucontext` that [`restore`] needs.
pub const RESTORED_BYTES: usize = MASK_AT + 8;

/// Puts the registers of a frame into a state. Gives back which signals are blocked then, the alternate stack, and where the vector registers are.
pub fn restore(context: &[u8; RESTORED_BYTES], state: &mut ThreadState) -> Result<(Set, Stack, u64)> {
    let word = |at: usize| {
        context.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
    };
    for (index, at) in ORDER.into_iter().zip((REGISTERS_AT..).step_by(8)) {
        state.registers[index] = word(at);
    }
    let flags = word(REGISTERS_AT + 8 * ORDER.len());
    let kept = state.registers[register::RFLAGS] & !FLAGS_OWN;
    state.registers[register::RFLAGS] = kept | flags & FLAGS_OWN;
    let stack = Stack { address: word(16), flags: word(24) as u32 & !general::SS_ONSTACK, len: word(32) };
    if state.registers[register::RIP] >= crate::memory::END || state.registers[register::RSP] >= 1 << 47 {
        return Err(EFAULT);
    }
    Ok((Set(word(MASK_AT)).as_mask(), stack, word(VECTOR_AT)))
}

/// The first word of the old part of an image that the processor does not write.
const UNWRITTEN: usize = 52;

/// Bytes of vector registers that [`restore_vector`] needs.
pub const RESTORED_VECTOR_BYTES: usize = IMAGE_WORDS * 8;

/// Puts vector registers into a state, whose parts the machine has.
pub fn restore_vector(bytes: &[u8; RESTORED_VECTOR_BYTES], state: &mut ThreadState) {
    let allowed = state.image[IMAGE_MXCSR] >> 32;
    let has_long = bytes[SOFTWARE_AT..].first_chunk() == Some(&LONG_FORM[0].to_le_bytes());
    let count = if has_long { IMAGE_WORDS } else { IMAGE_HEADER };
    let parts = state.parts & (STATE_X87 | STATE_SSE | STATE_AVX);
    for (image, bytes) in state.image.iter_mut().zip(bytes.as_chunks().0).take(count) {
        *image = u64::from_le_bytes(*bytes);
    }
    state.image[IMAGE_MXCSR] = (state.image[IMAGE_MXCSR] & 0xffff_ffff & allowed) | allowed << 32;
    // Words that the processor does not write stay zeros, or the next frame of another process would have them: those that are reserved or for software, what the header has
    // beside its first word, and the part that the machine has not.
    state.image[UNWRITTEN..IMAGE_HEADER].fill(0);
    if parts & STATE_AVX == 0 {
        state.image[IMAGE_HEADER + 8..].fill(0);
    }
    state.image[IMAGE_HEADER] &= parts;
    state.image[IMAGE_HEADER + 1..IMAGE_HEADER + 8].fill(0);
    if !has_long {
        state.image[IMAGE_HEADER] = parts & (STATE_X87 | STATE_SSE);
    }
}
