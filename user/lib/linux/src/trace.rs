//! Calls as `strace` tells of them: each as a line, signals and ends of processes between them; and a table of all calls at the end.
//!
//! A call is printed when it is made, up to what only its end tells. If somebody else has something to print meanwhile, the line ends with
//! `<unfinished ...>`, and another one goes on with it. Nothing of it is done, and nothing is kept, unless [`System::trace`] is there: a call then costs one
//! branch that is always taken in the same way.

mod profile;
#[cfg(test)]
mod tests;

use crate::calls;
use crate::decode::{self, Begun, Memory, RESULT_COLUMN, Told};
use crate::frames::Bytes;
use crate::machine::{Machine, Registers, Tid};
use crate::process::{Shared, Status};
use crate::signal::{Cause, Signal};
use crate::store::Store;
use crate::system::{Answer, Outcome, System};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use linux_raw_sys::general::{__NR_execve, __NR_execveat, __NR_rt_sigreturn};
use profile::Profile;
use vfs::FileSystem;

/// Result of a call that begins anew when a signal was handled, if its handler allows that.
const BEGINS_ANEW: u64 = 512;
/// See [`BEGINS_ANEW`]: if no handler was there.
const UNLESS_HANDLED: u64 = 514;

/// A call that goes on.
#[derive(Debug)]
struct Call {
    number: u64,
    arguments: [u64; 6],
    begun: Begun,
}

/// State of lines and counts.
#[derive(Debug)]
pub struct Trace {
    /// Whether each call is a line.
    has_lines: bool,
    profile: Option<Profile>,
    /// Calls that go on.
    calls: BTreeMap<Tid, Call>,
    /// The thread whose call is the line that has no end yet.
    open: Option<Tid>,
    /// Bytes of that line.
    column: usize,
    /// The thread whose call is being made.
    making: Option<Tid>,
    /// Lines about threads for behind their calls.
    later: Vec<(Tid, String)>,
    /// Text that was not shown yet.
    text: String,
}

impl Trace {
    /// Tells of each call in a line, at the end of all of them in a table, or both.
    pub fn new(has_lines: bool, has_table: bool) -> Box<Trace> {
        Box::new(Trace {
            has_lines,
            profile: has_table.then(Profile::default),
            calls: BTreeMap::new(),
            open: None,
            column: 0,
            making: None,
            later: Vec::new(),
            text: String::new(),
        })
    }

    /// Ends the line of a call that goes on.
    fn cut(&mut self) {
        if self.open.take().is_some() {
            self.text.push_str(" <unfinished ...>\n");
        }
    }

    /// Adds a line.
    fn line(&mut self, prefix: &str, line: &str) {
        self.cut();
        self.text.push_str(prefix);
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A call begins.
    fn begin(&mut self, tid: Tid, prefix: &str, call: Call) {
        if self.has_lines {
            self.cut();
            self.text.push_str(prefix);
            self.text.push_str(&call.begun.text);
            self.column = prefix.len() + call.begun.text.len();
            self.open = Some(tid);
        }
        self.calls.insert(tid, call);
    }

    /// A call ends: the rest of its arguments, and its result.
    fn end(&mut self, tid: Tid, prefix: &str, call: &Call, rest: &str, result: &str) {
        if !self.has_lines {
            return;
        }
        if self.open != Some(tid) {
            self.cut();
            let resumed = format!("{prefix}<... {} resumed>", decode::name_or_number(call.number));
            self.text.push_str(&resumed);
            self.column = resumed.len();
        }
        self.open = None;
        self.text.push_str(rest);
        self.text.push(' ');
        let column = self.column + rest.len() + 1;
        self.text.extend((column..RESULT_COLUMN).map(|_| ' '));
        self.text.push_str("= ");
        self.text.push_str(result);
        self.text.push('\n');
    }
}

/// Memory of a process, if it has some.
struct Own<'a, B, F> {
    store: &'a mut Store<B, F>,
    room: Option<Shared>,
}

impl<B: Bytes, F: FileSystem> Memory for Own<'_, B, F> {
    fn peek(&mut self, address: u64, to: &mut [u8]) -> usize {
        let Some(mut room) = self.room.as_ref().and_then(|room| room.try_borrow_mut().ok()) else { return 0 };
        self.store.read_some(&mut room.memory, address, to)
    }
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Makes a call and tells of it.
    #[cold]
    #[inline(never)]
    pub(crate) fn traced(&mut self, tid: Tid, registers: &Registers) -> Answer {
        let outside = self.trace.as_mut().and_then(|trace| trace.making.replace(tid));
        self.trace_begin(tid, registers);
        let before = self.machine.now();
        let answer = calls::make(self, tid, registers);
        let took = self.machine.now().saturating_sub(before);
        if let Some(profile) = self.trace.as_mut().and_then(|trace| trace.profile.as_mut()) {
            profile.spend(registers.rax, took);
        }
        match &answer {
            Ok(Outcome::Value(value)) => self.trace_result(tid, *value),
            Err(error) => self.trace_result(tid, error.result()),
            // The end of its process is told.
            Ok(Outcome::Gone) if self.is_killed(tid) => {}
            Ok(Outcome::Gone | Outcome::Registers) => self.trace_result(tid, 0),
            Ok(Outcome::Wait(..)) => {}
        }
        if let Some(trace) = &mut self.trace {
            trace.making = outside;
        }
        if !matches!(answer, Ok(Outcome::Wait(..))) {
            self.trace_later(|of| of == tid);
        }
        self.show_trace();
        answer
    }

    /// Tells of the beginning of a call, unless it is one that is made again.
    fn trace_begin(&mut self, tid: Tid, registers: &Registers) {
        let (number, arguments) = (registers.rax, registers.arguments());
        let goes_on = |call: &Call| call.number == number && call.arguments == arguments;
        let known = self.trace.as_ref().and_then(|trace| trace.calls.get(&tid));
        if known.is_some_and(goes_on) {
            return;
        }
        self.trace_later(|_| true);
        let prefix = self.trace_prefix(tid);
        let room = self.room(tid).ok();
        let Some(trace) = &mut self.trace else { return };
        let begun = match trace.has_lines {
            true => decode::begin(number, &arguments, &mut Own { store: &mut self.store, room }),
            false => Begun::default(),
        };
        trace.begin(tid, &prefix, Call { number, arguments, begun });
        if !decode::returns(number) && number != u64::from(__NR_rt_sigreturn) {
            self.trace_result(tid, 0);
        }
        self.show_trace();
    }

    /// Tells of the result of a call.
    fn trace_result(&mut self, tid: Tid, result: u64) {
        let prefix = self.trace_prefix(tid);
        let room = self.room(tid).ok();
        let Some(trace) = &mut self.trace else { return };
        let Some(call) = trace.calls.remove(&tid) else { return };
        if let Some(profile) = &mut trace.profile {
            profile.count(call.number, decode::is_error(result));
        }
        if trace.has_lines {
            // Memory of a program is gone when another has begun in its place.
            let is_program =
                [__NR_execve, __NR_execveat].iter().any(|number| u64::from(*number) == call.number);
            let room = room.filter(|_| !is_program);
            let memory = &mut Own { store: &mut self.store, room };
            let (rest, told) = decode::end(call.number, &call.arguments, memory, &call.begun, result);
            trace.end(tid, &prefix, &call, &rest, &told);
        }
    }

    /// A wait of a thread ends by a signal, when so many bytes were done.
    pub(crate) fn trace_interrupted(&mut self, tid: Tid, done: u64, begins_anew: bool) {
        if self.trace.is_some() {
            let error = if begins_anew { BEGINS_ANEW } else { UNLESS_HANDLED };
            self.trace_result(tid, if done > 0 { done } else { error.wrapping_neg() });
            self.trace_later(|of| of == tid);
            self.show_trace();
        }
    }

    /// Tells what was kept for behind calls, of threads that are meant.
    pub(crate) fn trace_later(&mut self, is_meant: impl Fn(Tid) -> bool) {
        let Some(trace) = &mut self.trace else { return };
        let (now, later) = core::mem::take(&mut trace.later).into_iter().partition(|(of, _)| is_meant(*of));
        trace.later = later;
        let now: Vec<(Tid, String)> = now;
        for (tid, line) in now {
            self.trace_line(tid, &line);
        }
    }

    /// A thread takes a signal.
    pub(crate) fn trace_signal(&mut self, tid: Tid, signal: Signal, cause: &Cause) {
        if self.trace.is_some() {
            let Cause { code, sender, value } = *cause;
            let told = decode::information(&Told { signal, code, sender, value });
            self.trace_beside(tid, format!("--- {} {told} ---", decode::signal(signal)));
        }
    }

    /// A thread stands still by a signal.
    pub(crate) fn trace_stop(&mut self, tid: Tid, signal: Signal) {
        if self.trace.is_some() {
            self.trace_beside(tid, format!("--- stopped by {} ---", decode::signal(signal)));
        }
    }

    /// Threads end.
    pub(crate) fn trace_end(&mut self, threads: &[Tid], status: Status) {
        if self.trace.is_none() {
            return;
        }
        let signal = status.0 & 0x7f;
        let line = match signal {
            0 => format!("+++ exited with {} +++", status.0 >> 8 & 0xff),
            _ => format!("+++ killed by {} +++", decode::signal(signal)),
        };
        for &tid in threads {
            let prefix = self.trace_prefix(tid);
            if let Some(trace) = &mut self.trace
                && let Some(call) = trace.calls.remove(&tid)
            {
                // It goes on no more.
                trace.end(tid, &prefix, &call, ")", "?");
            }
            // Signals stand in front.
            self.trace_later(|of| of == tid);
            self.trace_line(tid, &line);
        }
        self.show_trace();
    }

    /// The end of all: the table, if there is one.
    pub fn end_trace(&mut self) {
        let Some(trace) = &mut self.trace else { return };
        trace.cut();
        if let Some(profile) = &trace.profile {
            trace.text.push_str(&profile.table());
        }
        self.show_trace();
    }

    /// A line about a thread; behind its call, if that is being made, or waits.
    fn trace_beside(&mut self, tid: Tid, line: String) {
        let waits = self.threads.get(&tid).is_some_and(|thread| thread.blocked.is_some());
        match &mut self.trace {
            Some(trace) if trace.making == Some(tid) || waits => trace.later.push((tid, line)),
            _ => {
                self.trace_line(tid, &line);
                self.show_trace();
            }
        }
    }

    fn trace_line(&mut self, tid: Tid, line: &str) {
        let prefix = self.trace_prefix(tid);
        if let Some(trace) = self.trace.as_mut().filter(|trace| trace.has_lines) {
            trace.line(&prefix, line);
        }
    }

    /// Text in front of a line, which says whose it is if there are several.
    fn trace_prefix(&self, tid: Tid) -> String {
        if self.threads.len() > 1 { format!("[pid {tid:5}] ") } else { String::new() }
    }

    fn show_trace(&mut self) {
        if let Some(trace) = &mut self.trace
            && !trace.text.is_empty()
        {
            self.machine.trace(trace.text.as_bytes());
            trace.text.clear();
        }
    }
}
