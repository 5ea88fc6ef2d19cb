//! `ioctl`: what terminals, and some files, do beside reading and writing.

use super::done;
use crate::errno::{EINVAL, ENOTTY, EPERM, ESRCH, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::process::Event;
use crate::signal::{Cause, Set, Signal};
use crate::system::{Answer, DONE, System};
use crate::terminal::{SETTINGS_BYTES, SETTINGS2_BYTES};
use alloc::vec;
use linux_raw_sys::general::{O_NONBLOCK, SIGTTOU, SIGWINCH};
use linux_raw_sys::ioctl::{
    FIOCLEX, FIONBIO, FIONCLEX, FIONREAD, TCFLSH, TCGETS, TCGETS2, TCSBRK, TCSBRKP, TCSETS, TCSETS2, TCSETSF,
    TCSETSF2, TCSETSW, TCSETSW2, TCXONC, TIOCGPGRP, TIOCGSID, TIOCGWINSZ, TIOCNOTTY, TIOCSCTTY, TIOCSPGRP,
    TIOCSWINSZ,
};
use vfs::FileSystem;

/// Bytes of `struct winsize`.
const WINDOW_BYTES: usize = 8;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_ioctl(&mut self, tid: Tid, [fd, request, argument, ..]: [u64; 6]) -> Answer {
        let open = self.open_file(tid, fd)?;
        match request as u32 {
            FIOCLEX | FIONCLEX => {
                self.process(tid)?.descriptors.get_mut(fd as u32)?.closes = request as u32 == FIOCLEX;
                DONE
            }
            FIONBIO => {
                let mut on = [0; 4];
                self.read(tid, argument, &mut on)?;
                let flags = open.flags.get() & !O_NONBLOCK;
                open.flags.set(if on == [0; 4] { flags } else { flags | O_NONBLOCK });
                DONE
            }
            FIONREAD => {
                let count = self.readable(&open)?;
                done(self.write(tid, argument, &(count as u32).to_le_bytes()))
            }
            request => match &open.object {
                Object::Terminal { .. } => self.terminal_request(tid, request, argument),
                _ => Err(ENOTTY),
            },
        }
    }

    /// Bytes that can be read from something open.
    fn readable(&mut self, open: &Open) -> Result<usize> {
        match &open.object {
            Object::Reader(ends) | Object::Writer(ends) => Ok(ends.pipe.borrow().len()),
            Object::Terminal { .. } => Ok(self.terminal.readable_bytes()),
            Object::File { inode, .. } => {
                Ok(self.store.volume.len(*inode)?.saturating_sub(open.offset.get()) as usize)
            }
            _ => Err(ENOTTY),
        }
    }

    fn terminal_request(&mut self, tid: Tid, request: u32, argument: u64) -> Answer {
        match request {
            TCGETS => {
                let bytes = self.terminal.settings_bytes();
                done(self.write(tid, argument, &bytes))
            }
            TCGETS2 => {
                let bytes = self.terminal.settings2_bytes();
                done(self.write(tid, argument, &bytes))
            }
            TCSETS | TCSETSW | TCSETSF => {
                let mut bytes = [0; SETTINGS_BYTES];
                self.read(tid, argument, &mut bytes)?;
                self.set_terminal(tid, &bytes, request == TCSETSF)
            }
            TCSETS2 | TCSETSW2 | TCSETSF2 => {
                let mut bytes = [0; SETTINGS2_BYTES];
                self.read(tid, argument, &mut bytes)?;
                self.set_terminal(tid, &bytes, request == TCSETSF2)
            }
            TIOCGWINSZ => {
                let bytes = self.terminal.window_bytes();
                done(self.write(tid, argument, &bytes))
            }
            TIOCSWINSZ => {
                let mut bytes = [0; WINDOW_BYTES];
                self.read(tid, argument, &mut bytes)?;
                if self.terminal.set_window_bytes(&bytes) {
                    let group = self.foreground;
                    self.send_to_group(group, SIGWINCH, Cause::KERNEL);
                }
                DONE
            }
            TIOCGPGRP if self.process(tid)?.has_terminal => {
                let group = self.foreground;
                done(self.write(tid, argument, &group.to_le_bytes()))
            }
            TIOCSPGRP => self.set_foreground(tid, argument),
            TIOCGSID => {
                let session = self.process(tid)?.session;
                done(self.write(tid, argument, &session.to_le_bytes()))
            }
            TIOCSCTTY => {
                let pid = self.pid(tid)?;
                let process = self.process(tid)?;
                if process.session != pid {
                    return Err(EPERM);
                }
                process.has_terminal = true;
                self.foreground = process.group;
                DONE
            }
            TIOCNOTTY => {
                self.process(tid)?.has_terminal = false;
                DONE
            }
            TCFLSH => {
                self.terminal.flush(argument != 1);
                DONE
            }
            TCSBRK | TCSBRKP | TCXONC => DONE,
            TIOCGPGRP => Err(ENOTTY),
            _ => Err(EINVAL),
        }
    }

    fn set_terminal(&mut self, tid: Tid, bytes: &[u8], flushes: bool) -> Answer {
        if let Some(stopped) = self.keep_from_terminal(tid, SIGTTOU)? {
            return Ok(stopped);
        }
        if flushes {
            self.terminal.flush(true);
        }
        self.terminal.set_settings_bytes(bytes);
        self.tell(Event::Input);
        DONE
    }

    /// A process in the background stops when it changes the terminal, or reads from it.
    pub fn keep_from_terminal(&mut self, tid: Tid, signal: Signal) -> Result<Option<crate::system::Outcome>> {
        let foreground = self.foreground;
        let process = self.process(tid)?;
        let group = process.group;
        if !process.has_terminal || group == foreground || foreground == 0 {
            return Ok(None);
        }
        let is_ignored =
            process.actions[signal as usize - 1].handler == 1 || self.thread(tid)?.mask.has(signal);
        if is_ignored {
            return if signal == SIGTTOU { Ok(None) } else { Err(crate::errno::EIO) };
        }
        self.send_to_group(group, signal, Cause::KERNEL);
        // The call is made again when the process goes on.
        Ok(Some(crate::system::Outcome::Wait(vec![Event::Input], None)))
    }

    fn set_foreground(&mut self, tid: Tid, argument: u64) -> Answer {
        let mut bytes = [0; 4];
        self.read(tid, argument, &mut bytes)?;
        let group = u32::from_le_bytes(bytes);
        let session = self.process(tid)?.session;
        let Some(other) = self.processes.values().find(|process| process.group == group) else {
            return Err(ESRCH);
        };
        if other.session != session {
            return Err(EPERM);
        }
        if let Some(stopped) = self.keep_from_terminal(tid, SIGTTOU)? {
            return Ok(stopped);
        }
        self.foreground = group;
        self.tell(Event::Input);
        DONE
    }

    /// Keys were typed.
    pub fn input(&mut self, bytes: &[u8]) {
        let mut echo = vec![];
        let mut signals = Set(0);
        for byte in bytes {
            if let Some(signal) = self.terminal.input(*byte, &mut echo) {
                signals.0 |= Set::of(signal).0;
            }
        }
        if !echo.is_empty() {
            self.machine.print(&echo);
        }
        let group = self.foreground;
        while let Some(signal) = signals.first() {
            signals.0 &= !Set::of(signal).0;
            self.send_to_group(group, signal, Cause::KERNEL);
        }
        self.tell(Event::Input);
        self.settle();
    }
}
