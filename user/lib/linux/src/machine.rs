//! The machine below: address spaces, threads, time, and the registers of a thread.

use crate::errno::Result;
use abi::ThreadState;

pub use abi::foreign::Registers;

/// Number of a thread; that of a process is the number of its first thread.
pub type Tid = u32;

/// An address space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Space(pub u64);

/// The machine, as far as processes need it.
pub trait Machine {
    /// Makes an empty address space.
    fn make_space(&mut self) -> Result<Space>;

    /// Ends an address space, and all threads in it.
    fn end_space(&mut self, space: Space);

    /// Makes a thread that does not run yet. One that has the number already is ended.
    fn make_thread(&mut self, space: Space, thread: Tid) -> Result<()>;

    /// Ends a thread.
    fn end_thread(&mut self, thread: Tid);

    /// Writes down all that a thread has in the processor, if it stands still: it waits for the end of a call, then the registers that its handler has
    /// are zeros; or it is stopped. False if it does not stand still, or is gone.
    fn state(&mut self, thread: Tid, to: &mut ThreadState) -> bool;

    /// Does as [`Machine::state`], for the thread whose call came last, while this call is being made.
    fn state_in_call(&mut self, thread: Tid, to: &mut ThreadState) -> bool {
        self.state(thread, to)
    }

    /// Ends the call that came last so that its thread goes on with a state. `registers`: those of the call; true if it is to be
    /// [answered](crate::system::Next::Answer) with what stands there now, false if the thread goes on already. `is_whole`: vector registers of the
    /// state, and those that a call overwrites, may be others than [`Machine::state_in_call`] has said. FS and GS base are as they were.
    fn end_call(
        &mut self,
        thread: Tid,
        state: &ThreadState,
        _registers: &mut Registers,
        _is_whole: bool,
    ) -> Result<bool> {
        self.go_on(thread, state).map(|()| false)
    }

    /// Does as [`Machine::state`], for the thread whose fault or exception came last, while this is being dealt with.
    fn state_in_fault(&mut self, thread: Tid, to: &mut ThreadState) -> bool {
        self.state(thread, to)
    }

    /// Lets a thread that is new, or waits for the end of a call, go on with a state.
    fn go_on(&mut self, thread: Tid, state: &ThreadState) -> Result<()>;

    /// Lets a thread that waits for the end of a call, or stands still in a fault, go on with the general registers of a state. All others are as they were, and as the
    /// state says.
    fn go_on_elsewhere(&mut self, thread: Tid, state: &ThreadState) -> Result<()> {
        self.go_on(thread, state)
    }

    /// Ends a call that waits: the thread goes on behind it, with these registers.
    fn answer(&mut self, thread: Tid, registers: &Registers);

    /// Ends the call that came last as [`Machine::answer`] ends one that waits, but its thread goes on behind all others that could run now.
    fn answer_behind_others(&mut self, thread: Tid, registers: &Registers) {
        self.answer(thread, registers);
    }

    /// Stops a thread that runs its own code, and writes down its state. False if it is just making a call, or a fault: then it goes on.
    fn interrupt(&mut self, thread: Tid, to: &mut ThreadState) -> bool;

    /// Lets a thread that was [interrupted](Machine::interrupt) go on, with the general registers of a state. All others are as they were.
    fn return_from(&mut self, thread: Tid, state: &ThreadState);

    /// Keeps a thread from running its own code, or lets it.
    fn pause(&mut self, thread: Tid, is_paused: bool);

    /// Gives a thread so much of the processor beside others that compute: parts of which others have [`USUAL_SHARE`](crate::calls::niceness::USUAL_SHARE).
    fn set_share(&mut self, _thread: Tid, _share: u32) {}

    /// Abilities of the processor, as CPUID leaf 1 says in EDX.
    fn features(&self) -> u64;

    /// Nanoseconds since it began.
    fn now(&self) -> u64;

    /// Nanoseconds since 1970.
    fn date(&self) -> u64;

    /// CPU time of a thread in nanoseconds.
    fn used(&self, thread: Tid) -> u64;

    /// Fills bytes with numbers that nobody guesses.
    fn random(&mut self, to: &mut [u8]);

    /// Prints on the terminal.
    fn print(&mut self, bytes: &[u8]);

    /// Tells whoever runs all of this.
    fn log(&mut self, text: core::fmt::Arguments);

    /// Shows whoever runs all of this a part of what [`crate::trace`] tells.
    fn trace(&mut self, _: &[u8]) {}

    /// Calls [`crate::system::System::time`] at that time, or never. The last request counts.
    fn wake_at(&mut self, at: Option<u64>);
}
