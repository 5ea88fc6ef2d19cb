//! `ioctl`: what terminals, and some files, do beside reading and writing.

use super::fifo::Fifo;
use super::{done, number};
use crate::errno::{EINVAL, EIO, ENOTTY, EPERM, ESRCH, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Tid};
use crate::open::{Object, Open};
use crate::process::Event;
use crate::sessions::Loss;
use crate::signal::{Cause, Signal};
use crate::special::Special;
use crate::system::{Answer, DONE, Outcome, System};
use crate::terminal::{Change, TERMIOS_BYTES, TERMIOS2_BYTES, Window};
use crate::terminals::SYSTEM;
use alloc::vec;
use linux_raw_sys::general::{
    CAP_SYS_ADMIN, FASYNC, O_CLOEXEC, O_NONBLOCK, SIGTTIN, SIGTTOU, TCIFLUSH, TCIOFLUSH, TCOFLUSH,
};
use linux_raw_sys::ioctl::{
    FIOASYNC, FIOCLEX, FIONBIO, FIONCLEX, FIONREAD, TCFLSH, TCGETS, TCGETS2, TCSBRK, TCSBRKP, TCSETS,
    TCSETS2, TCSETSF, TCSETSF2, TCSETSW, TCSETSW2, TCXONC, TIOCGPGRP, TIOCGPTLCK, TIOCGPTN, TIOCGPTPEER,
    TIOCGSID, TIOCGWINSZ, TIOCNOTTY, TIOCOUTQ, TIOCPKT, TIOCSCTTY, TIOCSPGRP, TIOCSPTLCK, TIOCSWINSZ,
};
use vfs::FileSystem;

/// Bytes of `struct winsize`.
const WINDOW_BYTES: usize = 8;

/// The side of a terminal at which something is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    /// That of programs.
    Slave,
    /// The master of a pseudo-terminal.
    Master,
}

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
            FIOASYNC => {
                let mut on = [0; 4];
                self.read(tid, argument, &mut on)?;
                let before = open.flags.get();
                let flags = if on == [0; 4] { before & !FASYNC } else { before | FASYNC };
                if flags != before && !open.can_be_asynchronous() {
                    return Err(ENOTTY);
                }
                open.flags.set(flags);
                DONE
            }
            FIONREAD => {
                let count = self.readable(&open)?;
                done(self.write(tid, argument, &(count as u32).to_le_bytes()))
            }
            request => match &open.object {
                Object::Terminal { number, .. } => self.slave_request(tid, *number, request, argument),
                Object::Master { number, .. } => self.master_request(tid, *number, request, argument),
                Object::Socket(socket) if request == TIOCOUTQ => {
                    done(self.write(tid, argument, &(socket.sent() as u32).to_le_bytes()))
                }
                Object::Socket(_) | Object::Inet(_) | Object::Netlink(_) => {
                    self.interface_request(tid, &open, request, argument)
                }
                _ => Err(ENOTTY),
            },
        }
    }

    /// Bytes that can be read from something open.
    fn readable(&mut self, open: &Open) -> Result<usize> {
        match &open.object {
            Object::Reader(ends) | Object::Writer(ends) | Object::Fifo(Fifo { ends, .. }) => {
                Ok(ends.pipe.borrow().len())
            }
            Object::Terminal { number, .. } => {
                let terminal = &self.terminals.line(*number)?.terminal;
                if terminal.is_hung_up() { Err(EIO) } else { Ok(terminal.bytes_to_read()) }
            }
            Object::Master { number, .. } => Ok(self.terminals.pair(*number)?.len()),
            Object::File { inode, .. } => {
                Ok(self.store.volume.len(*inode)?.saturating_sub(open.offset.get()) as usize)
            }
            Object::Inotify(list) => Ok(list.len()),
            Object::Socket(socket) if socket.is_listening() => Err(EINVAL),
            Object::Socket(socket) => Ok(socket.len()),
            Object::Inet(inet) if inet.is_listening() => Err(EINVAL),
            Object::Inet(inet) => Ok(inet.len(&*self.sockets.network.0)),
            _ => Err(ENOTTY),
        }
    }

    fn slave_request(&mut self, tid: Tid, line: u32, request: u32, argument: u64) -> Answer {
        if self.terminals.line(line)?.terminal.is_hung_up() {
            return Err(if request == TIOCSPGRP { ENOTTY } else { EIO });
        }
        match request {
            TIOCNOTTY => self.give_up_terminal(tid, line),
            TCFLSH => {
                if let Some(stopped) = self.keep_from_terminal(tid, line, SIGTTOU)? {
                    return Ok(stopped);
                }
                let happened = self.terminals.line(line)?.terminal.flush(argument as u32)?;
                self.apply(line, happened);
                DONE
            }
            TCXONC => {
                if let Some(stopped) = self.keep_from_terminal(tid, line, SIGTTOU)? {
                    return Ok(stopped);
                }
                let happened = self.terminals.line(line)?.terminal.flow(argument as u32)?;
                self.apply(line, happened);
                DONE
            }
            // Output is shown at once, or at the master.
            TCSBRK | TCSBRKP => Ok(self.keep_from_terminal(tid, line, SIGTTOU)?.unwrap_or(Outcome::Value(0))),
            request => self.terminal_request(tid, (line, Side::Slave), request, argument),
        }
    }

    fn master_request(&mut self, tid: Tid, line: u32, request: u32, argument: u64) -> Answer {
        match request {
            TIOCGPTN => done(self.write(tid, argument, &line.to_le_bytes())),
            TIOCSPTLCK => {
                let mut locked = [0; 4];
                self.read(tid, argument, &mut locked)?;
                self.terminals.pair(line)?.is_locked = locked != [0; 4];
                DONE
            }
            TIOCGPTLCK => {
                let is_locked = u32::from(self.terminals.pair(line)?.is_locked);
                done(self.write(tid, argument, &is_locked.to_le_bytes()))
            }
            TIOCGPTPEER => {
                let flags = u32::try_from(argument).map_err(|_| EINVAL)?;
                let open = self.open_slave(tid, Special::Terminal(line), line, flags)?;
                number(self.add_descriptor(tid, open, flags & O_CLOEXEC != 0, 0))
            }
            // Bytes without packets are all that there is.
            TIOCPKT => {
                let mut on = [0; 4];
                self.read(tid, argument, &mut on)?;
                if on == [0; 4] { DONE } else { Err(EINVAL) }
            }
            TCFLSH => {
                match argument as u32 {
                    TCIFLUSH | TCIOFLUSH => {
                        self.terminals.pair(line)?.clear();
                        self.terminal_changed(line);
                    }
                    // Bytes for the slave have been typed already.
                    TCOFLUSH => {}
                    _ => return Err(EINVAL),
                }
                DONE
            }
            TCSBRK | TCSBRKP | TCXONC => DONE,
            TIOCNOTTY => Err(ENOTTY),
            request => self.terminal_request(tid, (line, Side::Master), request, argument),
        }
    }

    /// Requests that mean one terminal, whichever side is asked.
    fn terminal_request(
        &mut self,
        tid: Tid,
        (line, side): (u32, Side),
        request: u32,
        argument: u64,
    ) -> Answer {
        match request {
            TCGETS | TCGETS2 => {
                let bytes = self.terminals.line(line)?.terminal.settings_bytes();
                let len = if request == TCGETS { TERMIOS_BYTES } else { TERMIOS2_BYTES };
                done(self.write(tid, argument, &bytes[..len]))
            }
            TCSETS | TCSETSW | TCSETSF => {
                let mut bytes = [0; TERMIOS_BYTES];
                self.read(tid, argument, &mut bytes)?;
                self.set_terminal(tid, line, &bytes, request == TCSETSF)
            }
            TCSETS2 | TCSETSW2 | TCSETSF2 => {
                let mut bytes = [0; TERMIOS2_BYTES];
                self.read(tid, argument, &mut bytes)?;
                self.set_terminal(tid, line, &bytes, request == TCSETSF2)
            }
            TIOCGWINSZ => {
                let bytes = self.terminals.line(line)?.terminal.window().bytes();
                done(self.write(tid, argument, &bytes))
            }
            TIOCSWINSZ => {
                let mut bytes = [0; WINDOW_BYTES];
                self.read(tid, argument, &mut bytes)?;
                let happened = self.terminals.line(line)?.terminal.set_window(Window::read(bytes));
                self.apply(line, happened);
                DONE
            }
            TIOCGPGRP => {
                self.check_control(tid, line, side)?;
                let group = self.terminals.line(line)?.foreground;
                done(self.write(tid, argument, &group.to_le_bytes()))
            }
            TIOCGSID => {
                self.check_control(tid, line, side)?;
                match self.terminals.line(line)?.session {
                    0 => Err(ENOTTY),
                    session => done(self.write(tid, argument, &session.to_le_bytes())),
                }
            }
            TIOCSPGRP => self.set_foreground(tid, line, argument),
            TIOCSCTTY => self.control_terminal(tid, line, argument),
            TIOCOUTQ => done(self.write(tid, argument, &[0; 4])),
            _ => Err(ENOTTY),
        }
    }

    /// A master may be asked by everybody; a terminal by processes that it controls.
    fn check_control(&mut self, tid: Tid, line: u32, side: Side) -> Result<()> {
        let is_own = self.process(tid)?.terminal == Some(line);
        if is_own || side == Side::Master { Ok(()) } else { Err(ENOTTY) }
    }

    fn control_terminal(&mut self, tid: Tid, line: u32, argument: u64) -> Answer {
        let pid = self.pid(tid)?;
        let process = self.process(tid)?;
        let (session, terminal) = (process.session, process.terminal);
        let is_leader = session == pid;
        let owner = self.terminals.line(line)?.session;
        if is_leader && owner == session {
            return DONE;
        }
        if !is_leader || terminal.is_some() {
            return Err(EPERM);
        }
        if owner != 0 {
            // `root` may take it from another session.
            if argument != 1 || !self.can(tid, CAP_SYS_ADMIN) {
                return Err(EPERM);
            }
            self.take_from_session(line);
        }
        done(self.take_control(pid, line))
    }

    fn give_up_terminal(&mut self, tid: Tid, line: u32) -> Answer {
        let pid = self.pid(tid)?;
        let process = self.process(tid)?;
        if process.terminal != Some(line) {
            return Err(ENOTTY);
        }
        if process.session == pid {
            let (_, foreground) = self.take_from_session(line);
            self.losses.push(Loss::Group(foreground));
        } else {
            process.terminal = None;
        }
        DONE
    }

    fn set_terminal(&mut self, tid: Tid, line: u32, bytes: &[u8], flushes: bool) -> Answer {
        if let Some(stopped) = self.keep_from_terminal(tid, line, SIGTTOU)? {
            return Ok(stopped);
        }
        let change = if flushes { Change::Flush } else { Change::Keep };
        let happened = self.terminals.line(line)?.terminal.set_settings(bytes, change)?;
        self.apply(line, happened);
        self.terminal_changed(line);
        DONE
    }

    /// A process in the background stops when it changes its terminal, or reads from it.
    pub(super) fn keep_from_terminal(
        &mut self,
        tid: Tid,
        line: u32,
        signal: Signal,
    ) -> Result<Option<Outcome>> {
        let foreground = self.terminals.line(line)?.foreground;
        let process = self.process(tid)?;
        let group = process.group;
        if process.terminal != Some(line) || group == foreground || foreground == 0 {
            return Ok(None);
        }
        let is_ignored =
            process.actions[signal as usize - 1].handler == 1 || self.thread(tid)?.mask.has(signal);
        if is_ignored && signal != SIGTTIN {
            return Ok(None);
        }
        if is_ignored || self.is_orphaned(group) {
            return Err(EIO);
        }
        self.send_to_group(group, signal, Cause::KERNEL);
        // The call is made again when the process goes on.
        Ok(Some(Outcome::Wait(vec![Event::Terminal(line)], None)))
    }

    fn set_foreground(&mut self, tid: Tid, line: u32, argument: u64) -> Answer {
        match self.keep_from_terminal(tid, line, SIGTTOU) {
            Ok(None) => {}
            Ok(Some(stopped)) => return Ok(stopped),
            Err(_) => return Err(ENOTTY),
        }
        let mut bytes = [0; 4];
        self.read(tid, argument, &mut bytes)?;
        let group = u32::from_le_bytes(bytes);
        if (group as i32) < 0 {
            return Err(EINVAL);
        }
        let process = self.process(tid)?;
        let (session, terminal) = (process.session, process.terminal);
        if terminal != Some(line) || self.terminals.line(line)?.session != session {
            return Err(ENOTTY);
        }
        let other = self.processes.values().find(|process| process.group == group).ok_or(ESRCH)?;
        if other.session != session {
            return Err(EPERM);
        }
        self.terminals.line(line)?.foreground = group;
        self.terminal_changed(line);
        DONE
    }

    /// The window of the system's terminal has this size. Whoever is in front hears of it.
    pub fn resize(&mut self, window: Window) {
        if let Ok(line) = self.terminals.line(SYSTEM) {
            let happened = line.terminal.set_window(window);
            self.apply(SYSTEM, happened);
        }
        self.settle();
    }

    /// Keys were typed at the system's terminal.
    pub fn input(&mut self, bytes: &[u8]) {
        let now = self.machine.now();
        for byte in bytes {
            if let Ok(line) = self.terminals.line(SYSTEM) {
                let happened = line.terminal.input(*byte, now);
                self.apply(SYSTEM, happened);
            }
        }
        self.settle();
    }
}
