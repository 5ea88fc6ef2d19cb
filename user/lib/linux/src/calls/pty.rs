//! Pseudo-terminals: how they begin and end, and bytes at both sides.

use super::files::{TERMINAL_MAX, Taken};
use crate::errno::{EAGAIN, EIO, ENOMEM, ENXIO, ESRCH, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::special::{Device, Special};
use crate::system::System;
use crate::terminal::{Happened, Read, Signal};
use crate::terminals::{OUTPUT_MAX, PAIR_BYTES, SYSTEM};
use alloc::rc::Rc;
use alloc::vec::Vec;
use linux_raw_sys::general::{
    O_CREAT, O_EXCL, O_NOCTTY, O_TRUNC, POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM, TOSTOP,
};
use vfs::FileSystem;

/// Readiness to read, and to write.
const INPUT: u32 = POLLIN | POLLRDNORM;
/// See [`INPUT`].
const OUTPUT: u32 = POLLOUT | POLLWRNORM;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Opens a terminal, or a new pseudo-terminal.
    pub(super) fn open_terminal(&mut self, tid: Tid, special: Special, flags: u32) -> Result<Rc<Open>> {
        let inode = special.inode();
        let number = match special {
            Special::Device(Device::Ptmx) => {
                let owners = &self.process(tid)?.owners;
                let owner = (owners.owner[1], owners.group[1]);
                let share = self.budget.take(PAIR_BYTES).ok_or(ENOMEM)?;
                let number = self.terminals.make(owner, share)?;
                self.store.view.borrow_mut().terminals.insert(number, owner);
                return Ok(Open::new(Object::Master { inode, number }, kept(flags)));
            }
            Special::Device(Device::Tty) => self.process(tid)?.terminal.ok_or(ENXIO)?,
            Special::Terminal(number) => number,
            _ => SYSTEM,
        };
        self.open_slave(tid, special, number, flags)
    }

    /// Opens a terminal with a number, at the side of programs.
    pub(super) fn open_slave(
        &mut self,
        tid: Tid,
        special: Special,
        number: u32,
        flags: u32,
    ) -> Result<Rc<Open>> {
        let line = self.terminals.line(number)?;
        if let Some(pair) = &mut line.pair {
            if pair.is_locked || !pair.has_master {
                return Err(EIO);
            }
            pair.slaves = pair.slaves.saturating_add(1);
            pair.is_left = false;
        }
        let is_free = line.session == 0;
        let inode = special.inode();
        let open = Open::new(Object::Terminal { inode, number }, kept(flags));
        let pid = self.pid(tid)?;
        let process = self.process(tid)?;
        let wants = process.session == pid && process.terminal.is_none() && flags & O_NOCTTY == 0;
        if wants && is_free && open.is_readable() {
            self.take_control(pid, number)?;
        }
        Ok(open)
    }

    /// An open file of a terminal is closed.
    pub(crate) fn close_slave(&mut self, number: u32) {
        let Ok(pair) = self.terminals.pair(number) else { return };
        pair.slaves = pair.slaves.saturating_sub(1);
        pair.is_left = pair.slaves == 0;
        self.terminal_changed(number);
        self.terminals.forget(number);
    }

    /// The master of a pseudo-terminal is closed: that ends it.
    pub(crate) fn close_master(&mut self, number: u32) {
        self.store.view.borrow_mut().terminals.remove(&number);
        let Ok(line) = self.terminals.line(number) else { return };
        if let Some(pair) = &mut line.pair {
            pair.has_master = false;
            pair.clear();
        }
        let happened = line.terminal.hang_up();
        self.apply(number, happened);
        self.terminals.forget(number);
    }

    /// Does what a change of a terminal asks for.
    pub(super) fn apply(&mut self, number: u32, happened: Happened) {
        if !happened.echo.is_empty() {
            match self.terminals.pair(number) {
                Ok(pair) => {
                    // Bytes that are at the master already are not dropped.
                    pair.echo(&happened.echo);
                    self.terminal_changed(number);
                }
                Err(_) => self.machine.print(&happened.echo),
            }
        }
        match happened.signal {
            None => {}
            Some(Signal::HungUp) => self.lose_terminal(number),
            Some(signal) => {
                let group = self.terminals.get(number).map_or(0, |line| line.foreground);
                self.send_to_group(group, signal.number(), crate::signal::Cause::KERNEL);
            }
        }
        if happened.wakes_readers || happened.wakes_writers {
            self.terminal_changed(number);
        }
    }

    /// Reads from a terminal, for the thread whose call is made.
    pub(super) fn read_terminal(&mut self, number: u32, to: &mut [u8]) -> Result<Taken> {
        let now = self.machine.now();
        let thread = self.current.and_then(|tid| self.threads.get_mut(&tid)).ok_or(ESRCH)?;
        let began = *thread.began.get_or_insert(now);
        let line = self.terminals.line(number)?;
        let (read, happened) = line.terminal.read(to, began, now);
        // There is room again for who writes to the master.
        let has_writer = line.pair.is_some();
        self.apply(number, happened);
        Ok(match read {
            Read::Bytes(count) => {
                if has_writer && count > 0 {
                    self.terminal_changed(number);
                }
                Taken::Bytes(count)
            }
            Read::Wait { until_ns } => Taken::Nothing(until_ns),
        })
    }

    /// Writes to a terminal: as many bytes as it takes now.
    pub(super) fn write_terminal(&mut self, number: u32, from: &[u8]) -> Result<usize> {
        let line = self.terminals.line(number)?;
        let room = line.room();
        // The system's line takes little at once, since all processes stand still meanwhile.
        let from = if line.pair.is_some() { from } else { &from[..from.len().min(TERMINAL_MAX)] };
        let mut out = Vec::with_capacity(from.len().min(OUTPUT_MAX) + 16);
        let count = line.terminal.write(from, room, &mut out)?;
        match &mut line.pair {
            Some(pair) => {
                pair.put(&out);
                self.terminal_changed(number);
            }
            None => self.machine.print(&out),
        }
        Ok(count)
    }

    /// Whether a terminal stops processes in the background that write.
    pub(super) fn stops_writers(&self, number: u32) -> bool {
        self.terminals.get(number).is_some_and(|line| line.terminal.settings().local & TOSTOP != 0)
    }

    /// Takes bytes that a slave has written.
    pub(super) fn read_master(&mut self, number: u32, to: &mut [u8]) -> Result<Taken> {
        let pair = self.terminals.pair(number)?;
        if pair.is_empty() {
            return if pair.is_left { Err(EIO) } else { Ok(Taken::Nothing(None)) };
        }
        let count = pair.take(to);
        self.terminal_changed(number);
        Ok(Taken::Bytes(count))
    }

    /// Types bytes at a slave: as many as it takes now.
    pub(super) fn write_master(&mut self, number: u32, from: &[u8]) -> Result<usize> {
        let now = self.machine.now();
        let mut count = 0;
        for byte in from.iter().take(TERMINAL_MAX) {
            let line = self.terminals.line(number)?;
            if line.terminal.room() == 0 {
                break;
            }
            let happened = line.terminal.input(*byte, now);
            self.apply(number, happened);
            count += 1;
        }
        if count == 0 && !from.is_empty() { Err(EAGAIN) } else { Ok(count) }
    }

    /// Readiness of a terminal.
    pub(super) fn terminal_ready(&self, number: u32) -> u32 {
        let Some(line) = self.terminals.get(number).filter(|line| !line.terminal.is_hung_up()) else {
            return INPUT | OUTPUT | POLLERR | POLLHUP;
        };
        let input = if line.terminal.is_readable() { INPUT } else { 0 };
        let output = if line.is_writable() { OUTPUT } else { 0 };
        input | output
    }

    /// Readiness of the master of a pseudo-terminal.
    pub(super) fn master_ready(&self, number: u32) -> u32 {
        let line = self.terminals.get(number);
        let Some((line, pair)) = line.and_then(|line| Some((line, line.pair.as_ref()?))) else {
            return POLLERR | POLLHUP;
        };
        let input = if pair.is_empty() { 0 } else { INPUT };
        let output = if line.terminal.room() > 0 { OUTPUT } else { 0 };
        let end = if pair.is_left { POLLHUP } else { 0 };
        input | output | end
    }
}

/// Whether so many bytes are as many as are typed at a pseudo-terminal at once: each may be the work of a long line, and others have their turn before there are more.
pub(super) fn is_typed(open: &Open, len: usize) -> bool {
    len >= TERMINAL_MAX && matches!(open.object, Object::Master { .. })
}

/// Flags that stay with an open file.
fn kept(flags: u32) -> u32 {
    flags & !(O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC)
}
