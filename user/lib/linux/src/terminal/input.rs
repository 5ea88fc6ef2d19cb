//! Input of a terminal: what a typed byte does.

use super::output::is_control;
use super::settings::Settings;
use super::{Cell, End, Happened, QUEUE_MAX, Signal, Terminal};
use linux_raw_sys::general::*;

/// How much a special character erases.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Erase {
    Character,
    Word,
    Line,
}

/// Whether a byte belongs to a word: letters of Latin-1, so that the first bytes of characters in UTF-8 do, too.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0xc0 && byte != 0xd7 && byte != 0xf7
}

impl Terminal {
    /// A byte is typed, or written by the master of a pseudo terminal. `now_ns`: time, by any clock that runs on, which is the one of [`Terminal::read`].
    pub fn input(&mut self, byte: u8, now_ns: u64) -> Happened {
        let mut happened = Happened::default();
        if self.is_hung_up {
            return happened;
        }
        self.last_ns = now_ns;
        let byte = if self.settings.input(ISTRIP) { byte & 0x7f } else { byte };
        let byte = match byte {
            _ if self.is_literal => byte,
            _ if self.settings.input(IUCLC) && self.settings.local(IEXTEN) => byte.to_ascii_lowercase(),
            _ => byte,
        };
        if core::mem::take(&mut self.is_literal) {
            self.accept(byte, &mut happened);
        } else if !self.control_flow(byte, &mut happened) && !self.send_signal(byte, &mut happened) {
            self.translate(byte, &mut happened);
        }
        happened.echo = self.release(core::mem::take(&mut happened.echo));
        self.throttle(&mut happened);
        happened
    }

    /// Stops and starts output. Whether it was for that.
    fn control_flow(&mut self, byte: u8, happened: &mut Happened) -> bool {
        if !self.settings.input(IXON) {
            return false;
        }
        let (starts, stops) = (self.settings.is(byte, VSTART), self.settings.is(byte, VSTOP));
        if starts {
            self.start(happened);
        } else if stops {
            self.is_stopped = true;
        }
        starts || stops
    }

    /// Sends the signal of a byte. Whether it has one.
    fn send_signal(&mut self, byte: u8, happened: &mut Happened) -> bool {
        let settings = self.settings;
        let of = [(VINTR, Signal::Interrupt), (VQUIT, Signal::Quit), (VSUSP, Signal::Suspend)];
        let found = of.into_iter().find(|(index, _)| settings.is(byte, *index));
        let Some((_, signal)) = found.filter(|_| settings.local(ISIG)) else {
            if settings.input(IXON | IXANY) {
                self.start(happened);
            }
            return false;
        };
        happened.signal = Some(signal);
        if !settings.local(NOFLSH) {
            self.flush_input(happened);
            self.held.clear();
            (happened.wakes_writers, happened.drops_output) = (true, true);
        }
        if settings.input(IXON) {
            self.start(happened);
        }
        if settings.local(ECHO) {
            self.echo(byte, happened);
        }
        true
    }

    /// Bytes that are neither for the flow nor signals.
    fn translate(&mut self, byte: u8, happened: &mut Happened) {
        let settings = self.settings;
        let made = match byte {
            b'\r' if settings.input(IGNCR) => return,
            b'\r' if settings.input(ICRNL) => b'\n',
            b'\n' if settings.input(INLCR) => b'\r',
            _ => byte,
        };
        if settings.local(ICANON) {
            if !self.edit(made, happened) {
                self.accept(made, happened);
            }
        } else if made == b'\n' && byte != b'\n' {
            // Linux shows such an end of a line as one, and one that was typed as ^J.
            if settings.local(ECHO) {
                self.column.put(&settings, made, &mut happened.echo);
            }
            self.put(made, happened);
        } else {
            self.accept(made, happened);
        }
    }

    /// Edits the line. Whether the byte was for that.
    fn edit(&mut self, byte: u8, happened: &mut Happened) -> bool {
        let settings = self.settings;
        let is_extended = settings.local(IEXTEN);
        let has_echo = settings.local(ECHO);
        if settings.is(byte, VERASE) {
            self.erase(Erase::Character, happened);
        } else if settings.is(byte, VKILL) {
            self.erase(Erase::Line, happened);
        } else if settings.is(byte, VWERASE) && is_extended {
            self.erase(Erase::Word, happened);
        } else if settings.is(byte, VLNEXT) && is_extended {
            self.is_literal = true;
            if has_echo && settings.local(ECHOCTL) {
                happened.echo.push(b'^');
                happened.echo.push(8);
            }
        } else if settings.is(byte, VREPRINT) && is_extended && has_echo {
            self.echo(byte, happened);
            self.column.put(&settings, b'\n', &mut happened.echo);
            for at in self.whole..self.queue.len() {
                let byte = self.queue[at].byte;
                self.echo(byte, happened);
            }
        } else if byte == b'\n' {
            if has_echo || settings.local(ECHONL) {
                self.column.put(&settings, b'\n', &mut happened.echo);
            }
            self.end_line(Cell { byte, end: End::Line }, happened);
        } else if settings.is(byte, VEOF) {
            self.end_line(Cell { byte: 0, end: End::File }, happened);
        } else if settings.is(byte, VEOL) || settings.is(byte, VEOL2) && is_extended {
            if has_echo {
                self.begin_echo();
                self.echo(byte, happened);
            }
            self.end_line(Cell { byte, end: End::Line }, happened);
        } else {
            return false;
        }
        true
    }

    /// The first byte of a line is where tabs are counted from.
    fn begin_echo(&mut self) {
        if self.whole == self.queue.len() {
            self.column.line = self.column.now;
        }
    }

    fn echo(&mut self, byte: u8, happened: &mut Happened) {
        let is_visible = self.settings.local(ECHOCTL);
        self.column.echo(&self.settings, byte, is_visible, &mut happened.echo);
    }

    /// A byte of the text that is typed.
    fn accept(&mut self, byte: u8, happened: &mut Happened) {
        if self.settings.local(ECHO) {
            self.begin_echo();
            self.echo(byte, happened);
        }
        self.put(byte, happened);
    }

    fn put(&mut self, byte: u8, happened: &mut Happened) {
        // The last place of the queue is for the end of a line.
        let is_line = self.settings.local(ICANON);
        if self.queue.len() < QUEUE_MAX - usize::from(is_line) {
            self.queue.push_back(Cell { byte, end: End::None });
            happened.wakes_readers |= !is_line;
        }
    }

    fn end_line(&mut self, end: Cell, happened: &mut Happened) {
        if self.queue.len() < QUEUE_MAX {
            self.queue.push_back(end);
        }
        self.whole = self.queue.len();
        happened.wakes_readers = true;
    }

    /// Erases from the end of the line that is typed.
    fn erase(&mut self, what: Erase, happened: &mut Happened) {
        let settings = self.settings;
        if self.queue.len() == self.whole {
            return;
        }
        if what == Erase::Line && !settings.local(ECHO | ECHOK | ECHOKE | ECHOE) {
            self.queue.truncate(self.whole);
            if settings.local(ECHO) {
                self.echo(settings.characters[VKILL as usize], happened);
                if settings.local(ECHOK) {
                    self.column.put(&settings, b'\n', &mut happened.echo);
                }
            }
            return;
        }
        let mut is_in_word = false;
        while let Some((start, first)) = self.last_character() {
            if what == Erase::Word && is_of_word(first) {
                is_in_word = true;
            } else if is_in_word {
                break;
            }
            self.queue.truncate(start);
            if settings.local(ECHO) {
                self.erase_from_screen(what, first, happened);
            }
            if what == Erase::Character {
                break;
            }
        }
    }

    /// Where the last character of the line that is typed begins, and its first byte. None if there is none, or if it is not whole.
    fn last_character(&self) -> Option<(usize, u8)> {
        let mut line = (self.whole..self.queue.len()).rev().map(|at| (at, self.queue[at].byte));
        line.find(|(_, byte)| !self.settings.continues(*byte))
    }

    fn erase_from_screen(&mut self, what: Erase, first: u8, happened: &mut Happened) {
        let settings = self.settings;
        if what == Erase::Character && !settings.local(ECHOE) {
            self.echo(settings.characters[VERASE as usize], happened);
        } else if first == b'\t' {
            let (columns, follows_tab) = self.columns(&settings);
            self.column.erase_tab(columns, follows_tab, &mut happened.echo);
        } else {
            let columns = match is_control(first) {
                false => 1,
                true if settings.local(ECHOCTL) => 2,
                true => 0,
            };
            (0..columns).for_each(|_| self.column.erase(&mut happened.echo));
        }
    }

    /// Columns of the line that is typed, from its last tab on if it has one.
    fn columns(&self, settings: &Settings) -> (usize, bool) {
        let mut columns = 0;
        for at in (self.whole..self.queue.len()).rev() {
            match self.queue[at].byte {
                b'\t' => return (columns, true),
                byte if is_control(byte) => columns += if settings.local(ECHOCTL) { 2 } else { 0 },
                byte if settings.continues(byte) => {}
                _ => columns += 1,
            }
        }
        (columns, false)
    }
}
