//! Painters: agents that make system calls with every register beside the message full of a number of their own, and see afterwards whose number
//! they find there.
//!
//! A paint is in x87, SSE and AVX registers, both control words, and, where the processor has instructions for it, in the FS base. All of it has
//! to be of one thread, since it changes hands as a whole.

use super::{Agent, Frame, Outcome};
use crate::kit::check::Failure;
use core::arch::x86_64::__cpuid_count;
use core::cell::UnsafeCell;
use sys::TaskId;

/// Words of an image of FXSAVE, and in it: control word, MXCSR, the first x87 register and the first XMM register. Registers are two words apart.
const IMAGE: usize = 64;
const FCW: usize = 0;
const MXCSR: usize = 3;
const ST0: usize = 4;
const XMM0: usize = 20;

/// Abilities of the processor: AVX, and instructions for the FS base.
const AVX: u64 = 1;
const BASES: u64 = 2;

/// Order for `suite_painted`, which knows where everything is in it.
#[repr(C, align(64))]
struct Paint {
    image: [u64; IMAGE],
    seen: [u64; IMAGE],
    /// Upper halves of the YMM registers.
    upper: [u64; 32],
    fs_base: u64,
    seen_fs_base: u64,
    abilities: u64,
    frame: *mut Frame,
}

/// Order with the registers of its system call.
struct Place(UnsafeCell<(Paint, Frame)>);

// SAFETY: a place belongs to one painter, and of its two threads one waits for the other.
unsafe impl Sync for Place {}

/// Numbers of painters are 1 to 8.
pub const PAINTERS: usize = 8;

static PLACES: [Place; PAINTERS + 1] = [const {
    Place(UnsafeCell::new((
        Paint {
            image: [0; IMAGE],
            seen: [0; IMAGE],
            upper: [0; 32],
            fs_base: 0,
            seen_fs_base: 0,
            abilities: 0,
            frame: core::ptr::null_mut(),
        },
        Frame::ZERO,
    )))
}; PAINTERS + 1];

/// Thread whose number all registers have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Nobody's: they are initial.
    Initial,
    /// That of the painter with this number.
    Of(u64),
    /// They are not of one thread.
    Mixed,
}

/// Word that a register of a painter has.
fn word(number: u64, register: usize) -> u64 {
    if number == 0 { 0 } else { number << 48 | 0x5ec_4e70_0000 | register as u64 }
}

/// Bits of MXCSR and of the control word beyond their initial ones: how a painter rounds.
fn rounding(number: u64) -> u64 {
    number & 3
}

impl Paint {
    fn fill(&mut self, number: u64, abilities: u64) {
        self.image = [0; IMAGE];
        // All eight x87 registers are in use.
        self.image[FCW] = 0x37f & !(3 << 10) | rounding(number) << 10 | 0xff << 32;
        self.image[MXCSR] = 0x1f80 | rounding(number) << 13;
        for register in 0..8 {
            // A mantissa has its highest bit set.
            self.image[ST0 + 2 * register] = word(number, register) | 1 << 63;
            self.image[ST0 + 2 * register + 1] = 0x3fff;
        }
        for register in 0..32 {
            self.image[XMM0 + register] = word(number, register);
        }
        (self.seen, self.upper) = ([!0; IMAGE], [!0; 32]);
        (self.fs_base, self.seen_fs_base) = (fs_base(number), !0);
        self.abilities = abilities;
    }

    fn is_of(&self, number: u64) -> bool {
        let seen = &self.seen;
        let (fcw, mxcsr) = (0x37f | rounding(number) << 10, 0x1f80 | rounding(number) << 13);
        let control = seen[FCW] as u16 as u64 == fcw && seen[MXCSR] as u32 as u64 == mxcsr;
        let mantissa = |register| if number == 0 { 0 } else { word(number, register) | 1 << 63 };
        let x87 = (0..8).all(|register| seen[ST0 + 2 * register] == mantissa(register));
        let sse = (0..32).all(|register| seen[XMM0 + register] == word(number, register));
        let has = |ability| self.abilities & ability != 0;
        let avx = !has(AVX) || (0..32).all(|register| self.upper[register] == word(number, register));
        control && x87 && sse && avx && (!has(BASES) || self.seen_fs_base == fs_base(number))
    }
}

fn fs_base(number: u64) -> u64 {
    if number == 0 { 0 } else { 0x5000_0000_0000 | number << 12 }
}

fn abilities() -> u64 {
    let (features, more) = (__cpuid_count(1, 0).ecx, __cpuid_count(7, 0).ebx);
    let has_more = __cpuid_count(0, 0).eax >= 7;
    // OSXSAVE and AVX: the kernel turns on whatever of XSAVE it knows.
    let avx = features & 3 << 27 == 3 << 27;
    (u64::from(avx) * AVX) | (u64::from(has_more && more & 1 != 0) * BASES)
}

/// An agent with a number.
pub struct Painter {
    /// The agent.
    pub agent: Agent,
    number: u64,
}

impl Painter {
    /// A painter in a task (nil: the suite's own). No two at a time have one number.
    pub fn new(task: TaskId, number: u64) -> Outcome<Painter> {
        Ok(Painter { agent: Agent::new(task)?, number })
    }

    /// Outcome if it finds its own number.
    pub fn own(&self) -> Found {
        Found::Of(self.number)
    }

    fn place(&self) -> *mut (Paint, Frame) {
        PLACES[self.number as usize].0.get()
    }

    /// Orders a system call, and does not wait for its end.
    pub fn start(&mut self, frame: Frame) {
        unsafe extern "C" {
            fn suite_painted(paint: u64) -> u64;
        }
        extern "C" fn painted(paint: u64) -> u64 {
            // SAFETY: the place is this thread's until it is done.
            unsafe { suite_painted(paint) }
        }
        let place = self.place();
        // SAFETY: the agent has no order, so the place is the test's.
        unsafe {
            (*place).0.fill(self.number, abilities());
            (*place).1 = frame;
            (*place).0.frame = &raw mut (*place).1;
        }
        self.agent.start_apply(painted, place as u64);
    }

    /// Orders a system call, and waits until the painter is blocked in it.
    #[track_caller]
    pub fn block(&mut self, frame: Frame) -> Outcome {
        self.start(frame);
        if self.agent.settle()? {
            return Ok(());
        }
        let (frame, found) = self.wait()?;
        Err(Failure::new(format_args!("painter did not block: {:?} {found:?}", frame.error())))
    }

    /// Waits for the end of the system call: its registers, and whose number the others have.
    #[track_caller]
    pub fn wait(&mut self) -> Outcome<(Frame, Found)> {
        self.agent.result()?;
        // SAFETY: the agent is done.
        let (paint, frame) = unsafe { &*self.place() };
        let of_painter = (1..=PAINTERS as u64).find(|&number| paint.is_of(number)).map(Found::Of);
        let initial = paint.is_of(0).then_some(Found::Initial);
        Ok((*frame, of_painter.or(initial).unwrap_or(Found::Mixed)))
    }

    /// Makes a system call that ends.
    #[track_caller]
    pub fn run(&mut self, frame: Frame) -> Outcome<(Frame, Found)> {
        self.start(frame);
        self.wait()
    }
}
