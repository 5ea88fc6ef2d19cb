//! Output of a terminal: what becomes of bytes on their way to the screen, and in which column they are.

use super::settings::Settings;
use alloc::vec::Vec;
use linux_raw_sys::general::{OCRNL, OLCUC, ONLCR, ONLRET, ONOCR, OPOST, TABDLY, XTABS};

/// Most bytes that one becomes: a tab.
pub const GROWTH_MAX: usize = 8;

/// Where the next byte goes.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Column {
    /// From 0 on.
    pub now: usize,
    /// Where the line that is being typed began.
    pub line: usize,
}

/// Whether a byte is a control character.
pub(super) fn is_control(byte: u8) -> bool {
    byte < b' ' || byte == 0x7f
}

impl Column {
    /// Puts a byte on the screen, as the settings say.
    pub fn put(&mut self, settings: &Settings, byte: u8, to: &mut Vec<u8>) {
        if !settings.output(OPOST) {
            to.push(byte);
            return;
        }
        match byte {
            b'\n' => self.end_line(settings, to),
            b'\r' if settings.output(ONOCR) && self.now == 0 => {}
            b'\r' if settings.output(OCRNL) => {
                if settings.output(ONLRET) {
                    *self = Column::default();
                }
                to.push(b'\n');
            }
            b'\r' => {
                *self = Column::default();
                to.push(b'\r');
            }
            b'\t' => {
                let width = 8 - self.now % 8;
                self.now += width;
                if settings.output & TABDLY == XTABS {
                    to.extend_from_slice(&[b' '; 8][..width]);
                } else {
                    to.push(b'\t');
                }
            }
            8 => {
                self.now = self.now.saturating_sub(1);
                to.push(8);
            }
            _ if is_control(byte) => to.push(byte),
            _ => {
                if !settings.continues(byte) {
                    self.now += 1;
                }
                to.push(if settings.output(OLCUC) { byte.to_ascii_uppercase() } else { byte });
            }
        }
    }

    fn end_line(&mut self, settings: &Settings, to: &mut Vec<u8>) {
        if settings.output(ONLRET) {
            self.now = 0;
        }
        if settings.output(ONLCR) {
            self.now = 0;
            to.push(b'\r');
        }
        self.line = self.now;
        to.push(b'\n');
    }

    /// Puts a typed byte on the screen: `visible`: control characters as `^X`.
    pub fn echo(&mut self, settings: &Settings, byte: u8, visible: bool, to: &mut Vec<u8>) {
        if visible && is_control(byte) && byte != b'\t' {
            to.extend_from_slice(&[b'^', byte ^ 0x40]);
            self.now += 2;
        } else {
            self.put(settings, byte, to);
        }
    }

    /// Takes a tab from the screen that stands behind so many columns of the line that is typed, or of the tab before it.
    pub fn erase_tab(&mut self, columns: usize, follows_tab: bool, to: &mut Vec<u8>) {
        let at = if follows_tab { columns } else { columns + self.line };
        let width = 8 - at % 8;
        to.extend_from_slice(&[8; 8][..width]);
        self.now = self.now.saturating_sub(width);
    }

    /// Takes a character of one column from the screen.
    pub fn erase(&mut self, to: &mut Vec<u8>) {
        to.extend_from_slice(b"\x08 \x08");
        self.now = self.now.saturating_sub(1);
    }
}
