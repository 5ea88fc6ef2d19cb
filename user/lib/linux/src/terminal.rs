//! The line discipline of a terminal: what becomes of keys until a process reads them, and of bytes until they are shown.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use linux_raw_sys::general::{
    B38400, CREAD, CS8, ECHO, ECHOCTL, ECHOE, ECHOK, ECHOKE, ECHONL, HUPCL, ICANON, ICRNL, IEXTEN, IGNCR,
    INLCR, ISIG, IUTF8, IXON, NOFLSH, OCRNL, ONLCR, ONLRET, ONOCR, OPOST, SIGINT, SIGQUIT, SIGTSTP, TAB0,
    TABDLY, VEOF, VEOL, VEOL2, VERASE, VINTR, VKILL, VLNEXT, VMIN, VQUIT, VREPRINT, VSTART, VSTOP, VSUSP,
    VWERASE, XTABS,
};

/// Bytes of `struct termios`.
pub const SETTINGS_BYTES: usize = 36;
/// Bytes of `struct termios2`, which has speeds behind.
pub const SETTINGS2_BYTES: usize = 44;

/// Control characters.
const KEYS: usize = 19;

/// Bytes that wait to be read, at most: what is typed beyond is dropped, but the end of a line always fits.
const INPUT_MAX: usize = 4096;

/// Columns between stops of the tabulator.
const TAB: usize = 8;

/// A key that a control character of 0 would be: there is none.
const NO_KEY: u8 = 0;

/// What `tcgetattr` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Settings {
    input: u32,
    output: u32,
    control: u32,
    local: u32,
    line: u8,
    keys: [u8; KEYS],
}

impl Settings {
    /// As Linux begins a terminal.
    const fn new() -> Settings {
        let mut keys = [NO_KEY; KEYS];
        keys[VINTR as usize] = 3;
        keys[VQUIT as usize] = 0x1c;
        keys[VERASE as usize] = 0x7f;
        keys[VKILL as usize] = 0x15;
        keys[VEOF as usize] = 4;
        keys[VMIN as usize] = 1;
        keys[VSTART as usize] = 0x11;
        keys[VSTOP as usize] = 0x13;
        keys[VSUSP as usize] = 0x1a;
        keys[VREPRINT as usize] = 0x12;
        keys[VWERASE as usize] = 0x17;
        keys[VLNEXT as usize] = 0x16;
        Settings {
            input: ICRNL | IXON | IUTF8,
            output: OPOST | ONLCR | TAB0,
            control: B38400 | CS8 | CREAD | HUPCL,
            local: ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
            line: 0,
            keys,
        }
    }

    fn bytes(&self) -> [u8; SETTINGS_BYTES] {
        let mut bytes = [0; SETTINGS_BYTES];
        for (place, word) in
            bytes.chunks_exact_mut(4).zip([self.input, self.output, self.control, self.local])
        {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[16] = self.line;
        bytes[17..].copy_from_slice(&self.keys);
        bytes
    }

    /// Reads what [`Settings::bytes`] has written, or the longer form.
    fn read(bytes: &[u8]) -> Option<Settings> {
        let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        Some(Settings {
            input: word(0)?,
            output: word(4)?,
            control: word(8)?,
            local: word(12)?,
            line: *bytes.get(16)?,
            keys: bytes.get(17..17 + KEYS)?.try_into().ok()?,
        })
    }

    fn is_key(&self, byte: u8, key: u32) -> bool {
        byte != NO_KEY && self.keys[key as usize] == byte
    }

    const fn has(&self, flag: u32) -> bool {
        self.local & flag != 0
    }
}

/// A terminal.
#[derive(Debug)]
pub struct Terminal {
    settings: Settings,
    /// Rows, columns, and the size in pixels.
    window: [u16; 4],
    /// Bytes that can be read.
    ready: VecDeque<u8>,
    /// Lengths of the lines among them: each ends with a new line, or with an end of file.
    ends: VecDeque<usize>,
    /// The line that is being typed.
    line: Vec<u8>,
    /// Whether the next key is taken as it is.
    is_literal: bool,
    /// Whether output stands still.
    is_stopped: bool,
    /// Column of the cursor, as far as it is known, and that in which the line begins.
    column: usize,
    line_column: usize,
}

impl Default for Terminal {
    fn default() -> Terminal {
        Terminal {
            settings: Settings::new(),
            window: [24, 80, 0, 0],
            ready: VecDeque::new(),
            ends: VecDeque::new(),
            line: Vec::new(),
            is_literal: false,
            is_stopped: false,
            column: 0,
            line_column: 0,
        }
    }
}

impl Terminal {
    /// `struct termios`.
    pub fn settings_bytes(&self) -> [u8; SETTINGS_BYTES] {
        self.settings.bytes()
    }

    /// `struct termios2`.
    pub fn settings2_bytes(&self) -> [u8; SETTINGS2_BYTES] {
        let mut bytes = [0; SETTINGS2_BYTES];
        bytes[..SETTINGS_BYTES].copy_from_slice(&self.settings.bytes());
        for speed in bytes[SETTINGS_BYTES..].chunks_exact_mut(4) {
            speed.copy_from_slice(&38_400u32.to_le_bytes());
        }
        bytes
    }

    /// Changes all of it. A terminal that is not used line by line any more gives out what has been typed of a line.
    pub fn set_settings_bytes(&mut self, bytes: &[u8]) {
        let Some(settings) = Settings::read(bytes) else { return };
        let was_by_line = self.settings.has(ICANON);
        self.settings = settings;
        if was_by_line && !settings.has(ICANON) {
            self.ready.extend(self.line.drain(..));
            self.ends.clear();
        }
        if settings.input & IXON == 0 {
            self.is_stopped = false;
        }
    }

    /// `struct winsize`.
    pub fn window_bytes(&self) -> [u8; 8] {
        let mut bytes = [0; 8];
        for (place, word) in bytes.chunks_exact_mut(2).zip(self.window) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Changes the size. Whether it is another one now.
    pub fn set_window_bytes(&mut self, bytes: &[u8; 8]) -> bool {
        let before = self.window;
        for (word, place) in self.window.iter_mut().zip(bytes.chunks_exact(2)) {
            *word = u16::from_le_bytes([place[0], place[1]]);
        }
        before != self.window
    }

    /// Forgets what has been typed and not been read, if that is meant.
    pub fn flush(&mut self, input: bool) {
        if input {
            self.ready.clear();
            self.ends.clear();
            self.line.clear();
        }
    }

    /// Whether a read would not wait.
    pub fn is_readable(&self) -> bool {
        match self.settings.has(ICANON) {
            true => !self.ends.is_empty(),
            false => self.ready.len() >= usize::from(self.settings.keys[VMIN as usize]).clamp(1, INPUT_MAX),
        }
    }

    /// Bytes that a read would give.
    pub fn readable_bytes(&self) -> usize {
        match self.settings.has(ICANON) {
            true => self.ends.front().copied().unwrap_or(0),
            false => self.ready.len(),
        }
    }

    /// Reads a line, or a part of it; or what there is. None if there is nothing yet. An end of file is no bytes.
    pub fn read(&mut self, to: &mut [u8]) -> Option<usize> {
        if !self.settings.has(ICANON) {
            let at_once = self.settings.keys[VMIN as usize] == 0;
            if !self.is_readable() {
                return (at_once && self.ready.is_empty()).then_some(0);
            }
            return Some(self.take(to, usize::MAX));
        }
        let end = self.ends.front_mut()?;
        let len = *end;
        let count = len.min(to.len());
        *end -= count;
        if *end == 0 {
            self.ends.pop_front();
        }
        Some(self.take(to, count))
    }

    fn take(&mut self, to: &mut [u8], len_max: usize) -> usize {
        let count = to.len().min(len_max).min(self.ready.len());
        for (to, from) in to.iter_mut().zip(self.ready.drain(..count)) {
            *to = from;
        }
        count
    }

    /// A key. What is to be shown for it goes to `echo`; the signal for the processes in front, if there is one, is given back.
    pub fn input(&mut self, byte: u8, echo: &mut Vec<u8>) -> Option<u32> {
        let settings = self.settings;
        if core::mem::take(&mut self.is_literal) {
            self.add(byte, echo);
            return None;
        }
        if let Some(signal) = self.signal_of(byte) {
            if !settings.has(NOFLSH) {
                self.flush(true);
            }
            self.show(byte, echo);
            return Some(signal);
        }
        if settings.input & IXON != 0 && (settings.is_key(byte, VSTOP) || settings.is_key(byte, VSTART)) {
            self.is_stopped = settings.is_key(byte, VSTOP);
            return None;
        }
        let byte = match byte {
            b'\r' if settings.input & IGNCR != 0 => return None,
            b'\r' if settings.input & ICRNL != 0 => b'\n',
            b'\n' if settings.input & INLCR != 0 => b'\r',
            byte => byte,
        };
        match settings.has(ICANON) {
            true => self.edit(byte, echo),
            false => self.add(byte, echo),
        }
        None
    }

    fn signal_of(&self, byte: u8) -> Option<u32> {
        let keys = [(VINTR, SIGINT), (VQUIT, SIGQUIT), (VSUSP, SIGTSTP)];
        let found = keys.into_iter().find(|(key, _)| self.settings.is_key(byte, *key));
        found.filter(|_| self.settings.has(ISIG)).map(|(_, signal)| signal)
    }

    /// A key of a line.
    fn edit(&mut self, byte: u8, echo: &mut Vec<u8>) {
        let settings = self.settings;
        let is_more = settings.has(IEXTEN);
        match byte {
            byte if settings.is_key(byte, VERASE) => self.erase(echo),
            byte if settings.is_key(byte, VKILL) => {
                while !self.line.is_empty() {
                    self.erase(echo);
                }
            }
            byte if is_more && settings.is_key(byte, VWERASE) => self.erase_word(echo),
            byte if is_more && settings.is_key(byte, VLNEXT) => {
                self.is_literal = true;
                if settings.has(ECHO) && settings.has(ECHOCTL) {
                    echo.extend(b"^\x08");
                }
            }
            byte if is_more && settings.is_key(byte, VREPRINT) => {
                self.show(byte, echo);
                self.output(b"\n", echo);
                for byte in self.line.clone() {
                    self.show(byte, echo);
                }
            }
            byte if settings.is_key(byte, VEOF) => self.end_line(),
            b'\n' => {
                if settings.has(ECHO) || settings.has(ECHONL) {
                    self.output(b"\n", echo);
                }
                self.line.push(b'\n');
                self.end_line();
            }
            byte if settings.is_key(byte, VEOL) || is_more && settings.is_key(byte, VEOL2) => {
                self.add(byte, echo);
                self.end_line();
            }
            byte => self.add(byte, echo),
        }
    }

    /// The line can be read. Without bytes it is an end of file.
    fn end_line(&mut self) {
        self.ends.push_back(self.line.len());
        self.ready.extend(self.line.drain(..));
    }

    fn add(&mut self, byte: u8, echo: &mut Vec<u8>) {
        if self.ready.len() + self.line.len() >= INPUT_MAX {
            return;
        }
        if self.line.is_empty() {
            self.line_column = self.column;
        }
        self.show(byte, echo);
        match self.settings.has(ICANON) {
            true => self.line.push(byte),
            false => self.ready.push_back(byte),
        }
    }

    /// Shows a key.
    fn show(&mut self, byte: u8, echo: &mut Vec<u8>) {
        if !self.settings.has(ECHO) {
            return;
        }
        if is_control(byte) && self.settings.has(ECHOCTL) {
            self.output(&[b'^', byte ^ 0x40], echo);
        } else {
            self.output(&[byte], echo);
        }
    }

    /// Takes the last letter of a line back.
    fn erase(&mut self, echo: &mut Vec<u8>) {
        let before = self.width();
        loop {
            let Some(byte) = self.line.pop() else { return };
            // The bytes of a letter go together.
            if self.settings.input & IUTF8 == 0 || byte & 0xc0 != 0x80 {
                break;
            }
        }
        if self.settings.has(ECHO) && self.settings.has(ECHOE) {
            let columns = before - self.width().min(before);
            for _ in 0..columns {
                echo.extend(b"\x08 \x08");
            }
            self.column = self.column.saturating_sub(columns);
        }
    }

    fn erase_word(&mut self, echo: &mut Vec<u8>) {
        let is_word = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80)
        };
        while !self.line.is_empty() && !is_word(self.line.last()) {
            self.erase(echo);
        }
        while is_word(self.line.last()) {
            self.erase(echo);
        }
    }

    /// Columns of the line on the screen.
    fn width(&self) -> usize {
        let mut column = self.line_column;
        for byte in &self.line {
            column += match *byte {
                b'\t' => TAB - column % TAB,
                byte if is_control(byte) => 2 * usize::from(self.settings.has(ECHOCTL)),
                byte if self.settings.input & IUTF8 != 0 && byte & 0xc0 == 0x80 => 0,
                _ => 1,
            };
        }
        column - self.line_column
    }

    /// What bytes of a process look like on the wire.
    pub fn output(&mut self, from: &[u8], to: &mut Vec<u8>) {
        let flags = self.settings.output;
        let has = |flag: u32| flags & OPOST != 0 && flags & flag != 0;
        for &byte in from {
            match byte {
                b'\n' if has(ONLCR) => {
                    to.extend(b"\r\n");
                    self.column = 0;
                }
                b'\n' => {
                    to.push(byte);
                    if has(ONLRET) {
                        self.column = 0;
                    }
                }
                b'\r' if has(ONOCR) && self.column == 0 => {}
                b'\r' if has(OCRNL) => to.push(b'\n'),
                b'\r' => {
                    to.push(byte);
                    self.column = 0;
                }
                b'\t' => {
                    let columns = TAB - self.column % TAB;
                    if flags & OPOST != 0 && flags & TABDLY == XTABS {
                        to.extend(core::iter::repeat_n(b' ', columns));
                    } else {
                        to.push(byte);
                    }
                    self.column += columns;
                }
                8 => {
                    to.push(byte);
                    self.column = self.column.saturating_sub(1);
                }
                byte => {
                    to.push(byte);
                    if byte >= b' ' && byte & 0xc0 != 0x80 {
                        self.column += 1;
                    }
                }
            }
        }
    }
}

/// Whether a key has no picture. Tabulators and ends of lines are what they are.
const fn is_control(byte: u8) -> bool {
    byte < b' ' && byte != b'\t' && byte != b'\n' || byte == 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn typed(terminal: &mut Terminal, keys: &[u8]) -> (String, Vec<u32>) {
        let mut echo = Vec::new();
        let signals = keys.iter().filter_map(|key| terminal.input(*key, &mut echo)).collect();
        (String::from_utf8_lossy(&echo).into_owned(), signals)
    }

    fn read(terminal: &mut Terminal) -> Option<String> {
        let mut bytes = [0; 64];
        let count = terminal.read(&mut bytes)?;
        Some(String::from_utf8_lossy(&bytes[..count]).into_owned())
    }

    #[test]
    fn lines_are_read_when_they_end() {
        let mut terminal = Terminal::default();
        assert_eq!(typed(&mut terminal, b"ab"), ("ab".into(), Vec::new()));
        assert_eq!(read(&mut terminal), None);
        assert_eq!(typed(&mut terminal, b"\rnext\n").0, "\r\nnext\r\n");
        assert_eq!(read(&mut terminal).as_deref(), Some("ab\n"));
        assert!(terminal.is_readable());
        let mut two = [0; 2];
        assert_eq!((terminal.read(&mut two), two), (Some(2), *b"ne"));
        assert_eq!(read(&mut terminal).as_deref(), Some("xt\n"));
        assert_eq!(read(&mut terminal), None);
        typed(&mut terminal, b"\x04");
        assert_eq!(read(&mut terminal).as_deref(), Some(""), "an end of file");
        typed(&mut terminal, b"part\x04");
        assert_eq!(read(&mut terminal).as_deref(), Some("part"));
        assert_eq!(read(&mut terminal), None);
    }

    #[test]
    fn keys_edit_the_line() {
        let mut terminal = Terminal::default();
        assert_eq!(typed(&mut terminal, b"abx\x7fc\n").0, "abx\x08 \x08c\r\n");
        assert_eq!(read(&mut terminal).as_deref(), Some("abc\n"));
        // A letter of two bytes, a control character of two columns, and nothing in front of the line.
        assert_eq!(typed(&mut terminal, "ä\u{7f}".as_bytes()).0, "ä\x08 \x08");
        assert_eq!(typed(&mut terminal, b"\x01\x7f\x7f").0, "^A\x08 \x08\x08 \x08");
        typed(&mut terminal, b"one two  \x17three\x15four\n");
        assert_eq!(read(&mut terminal).as_deref(), Some("four\n"));
        typed(&mut terminal, b"\x16\x03\n");
        assert_eq!(read(&mut terminal).as_deref(), Some("\x03\n"));
    }

    #[test]
    fn keys_are_signals() {
        let mut terminal = Terminal::default();
        assert_eq!(
            typed(&mut terminal, b"lost\x03\x1a\x1c"),
            ("lost^C^Z^\\".into(), Vec::from([SIGINT, SIGTSTP, SIGQUIT]))
        );
        typed(&mut terminal, b"kept\n");
        assert_eq!(read(&mut terminal).as_deref(), Some("kept\n"));
    }

    #[test]
    fn raw_keys_are_read_at_once() {
        let mut terminal = Terminal::default();
        typed(&mut terminal, b"half");
        let mut settings = terminal.settings_bytes();
        settings[12..16].fill(0);
        settings[0..4].fill(0);
        settings[17 + VMIN as usize] = 2;
        terminal.set_settings_bytes(&settings);
        assert_eq!(terminal.settings_bytes(), settings);
        assert_eq!(read(&mut terminal).as_deref(), Some("half"));
        assert_eq!(typed(&mut terminal, b"\x03"), (String::new(), Vec::new()));
        assert_eq!(read(&mut terminal), None, "two are wanted");
        typed(&mut terminal, b"\r");
        assert_eq!(read(&mut terminal).as_deref(), Some("\x03\r"));
    }

    #[test]
    fn input_is_bounded_and_lines_end() {
        let mut terminal = Terminal::default();
        for _ in 0..3 * INPUT_MAX {
            typed(&mut terminal, b"x");
        }
        typed(&mut terminal, b"\n");
        let mut bytes = [0; 2 * INPUT_MAX];
        assert_eq!(terminal.read(&mut bytes), Some(INPUT_MAX + 1));
        assert_eq!(bytes[INPUT_MAX], b'\n');
    }
}
