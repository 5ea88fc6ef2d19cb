//! `ioctl`: what terminals, and some files, do beside reading and writing.

use super::done;
use super::files::Taken;
use crate::epoll::INPUT;
use crate::errno::{EINVAL, ENOTTY, EPERM, ESRCH, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::process::Event;
use crate::signal::{Cause, Signal};
use crate::socket::{READABLE, WRITABLE};
use crate::system::{Answer, DONE, System};
use crate::terminal::{Change, Happened, Read, TERMIOS_BYTES, TERMIOS2_BYTES, Window};
use alloc::vec;
use linux_raw_sys::general::{O_NONBLOCK, SIGTTOU};
use linux_raw_sys::ioctl::{
    FIOCLEX, FIONBIO, FIONCLEX, FIONREAD, TCFLSH, TCGETS, TCGETS2, TCSBRK, TCSBRKP, TCSETS, TCSETS2, TCSETSF,
    TCSETSF2, TCSETSW, TCSETSW2, TCXONC, TIOCGPGRP, TIOCGSID, TIOCGWINSZ, TIOCNOTTY, TIOCOUTQ, TIOCSCTTY,
    TIOCSPGRP, TIOCSWINSZ,
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
                Object::Socket(socket) if request == TIOCOUTQ => {
                    done(self.write(tid, argument, &(socket.sent() as u32).to_le_bytes()))
                }
                _ => Err(ENOTTY),
            },
        }
    }

    /// Bytes that can be read from something open.
    fn readable(&mut self, open: &Open) -> Result<usize> {
        match &open.object {
            Object::Reader(ends) | Object::Writer(ends) => Ok(ends.pipe.borrow().len()),
            Object::Terminal { .. } => Ok(self.terminal.bytes_to_read()),
            Object::File { inode, .. } => {
                Ok(self.store.volume.len(*inode)?.saturating_sub(open.offset.get()) as usize)
            }
            Object::Socket(socket) if socket.is_listening() => Err(EINVAL),
            Object::Socket(socket) => Ok(socket.len()),
            _ => Err(ENOTTY),
        }
    }

    fn terminal_request(&mut self, tid: Tid, request: u32, argument: u64) -> Answer {
        match request {
            TCGETS | TCGETS2 => {
                let bytes = self.terminal.settings_bytes();
                let len = if request == TCGETS { TERMIOS_BYTES } else { TERMIOS2_BYTES };
                done(self.write(tid, argument, &bytes[..len]))
            }
            TCSETS | TCSETSW | TCSETSF => {
                let mut bytes = [0; TERMIOS_BYTES];
                self.read(tid, argument, &mut bytes)?;
                self.set_terminal(tid, &bytes, request == TCSETSF)
            }
            TCSETS2 | TCSETSW2 | TCSETSF2 => {
                let mut bytes = [0; TERMIOS2_BYTES];
                self.read(tid, argument, &mut bytes)?;
                self.set_terminal(tid, &bytes, request == TCSETSF2)
            }
            TIOCGWINSZ => {
                let bytes = self.terminal.window().bytes();
                done(self.write(tid, argument, &bytes))
            }
            TIOCSWINSZ => {
                let mut bytes = [0; WINDOW_BYTES];
                self.read(tid, argument, &mut bytes)?;
                let happened = self.terminal.set_window(Window::read(bytes));
                self.apply(happened);
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
                let happened = self.terminal.flush(argument as u32)?;
                self.apply(happened);
                DONE
            }
            TCXONC => {
                let happened = self.terminal.flow(argument as u32)?;
                self.apply(happened);
                DONE
            }
            TCSBRK | TCSBRKP => DONE,
            TIOCGPGRP => Err(ENOTTY),
            _ => Err(EINVAL),
        }
    }

    fn set_terminal(&mut self, tid: Tid, bytes: &[u8], flushes: bool) -> Answer {
        if let Some(stopped) = self.keep_from_terminal(tid, SIGTTOU)? {
            return Ok(stopped);
        }
        let change = if flushes { Change::Flush } else { Change::Keep };
        let happened = self.terminal.set_settings(bytes, change)?;
        self.apply(happened);
        self.tell(Event::Input);
        self.hear(INPUT, READABLE | WRITABLE);
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
        let now = self.machine.now();
        for byte in bytes {
            let happened = self.terminal.input(*byte, now);
            self.apply(happened);
        }
        self.settle();
    }

    /// Does what a change of the terminal asks for.
    fn apply(&mut self, happened: Happened) {
        if !happened.echo.is_empty() {
            self.machine.print(&happened.echo);
        }
        if let Some(signal) = happened.signal {
            let group = self.foreground;
            self.send_to_group(group, signal.number(), Cause::KERNEL);
        }
        if happened.wakes_readers || happened.wakes_writers {
            self.tell(Event::Input);
            let read = if happened.wakes_readers { READABLE } else { 0 };
            let write = if happened.wakes_writers { WRITABLE } else { 0 };
            self.hear(INPUT, read | write);
        }
    }

    /// Reads from the terminal, for the thread whose call is made.
    pub(super) fn read_terminal(&mut self, to: &mut [u8]) -> Result<Taken> {
        let now = self.machine.now();
        let thread = self.current.and_then(|tid| self.threads.get_mut(&tid)).ok_or(ESRCH)?;
        let began = *thread.began.get_or_insert(now);
        let (read, happened) = self.terminal.read(to, began, now);
        self.apply(happened);
        Ok(match read {
            Read::Bytes(count) => Taken::Bytes(count),
            Read::Wait { until_ns } => Taken::Nothing(until_ns),
        })
    }
}
