//! Settings of a terminal, as `tcgetattr` and `tcsetattr` hand them over.

use crate::errno::{EINVAL, Result};
use linux_raw_sys::general::*;

/// Bytes of `struct termios`, of the kernel, not of the C library.
pub const TERMIOS_BYTES: usize = 36;

/// Bytes of `struct termios2`, which has speeds besides.
pub const TERMIOS2_BYTES: usize = 44;

/// Number of special characters.
const CHARACTERS: usize = NCCS as usize;

/// Settings of a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Treatment of input: `c_iflag`.
    pub input: u32,
    /// Treatment of output: `c_oflag`.
    pub output: u32,
    /// The line, none of which matters here: `c_cflag`.
    pub control: u32,
    /// Editing, echo, signals: `c_lflag`.
    pub local: u32,
    /// Number of the line discipline: `c_line`.
    pub discipline: u8,
    /// Special characters: `c_cc`. 0 is none.
    pub characters: [u8; CHARACTERS],
    /// Bits in a second, in and out.
    pub speeds: (u32, u32),
}

impl Default for Settings {
    /// Those that terminals begin with in Linux.
    fn default() -> Settings {
        let mut characters = [0; CHARACTERS];
        for (index, character) in [
            (VINTR, b'C' - 0x40),
            (VQUIT, b'\\' - 0x40),
            (VERASE, 0x7f),
            (VKILL, b'U' - 0x40),
            (VEOF, b'D' - 0x40),
            (VMIN, 1),
            (VSTART, b'Q' - 0x40),
            (VSTOP, b'S' - 0x40),
            (VSUSP, b'Z' - 0x40),
            (VREPRINT, b'R' - 0x40),
            (VDISCARD, b'O' - 0x40),
            (VWERASE, b'W' - 0x40),
            (VLNEXT, b'V' - 0x40),
        ] {
            characters[index as usize] = character;
        }
        Settings {
            input: ICRNL | IXON,
            output: OPOST | ONLCR,
            control: B38400 | CS8 | CREAD,
            local: ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
            discipline: 0,
            characters,
            speeds: (38400, 38400),
        }
    }
}

impl Settings {
    /// Bytes of `struct termios2`, the first [`TERMIOS_BYTES`] of which are `struct termios`.
    pub fn bytes(&self) -> [u8; TERMIOS2_BYTES] {
        let mut bytes = [0; TERMIOS2_BYTES];
        let words = [self.input, self.output, self.control, self.local];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes[16] = self.discipline;
        bytes[17..TERMIOS_BYTES].copy_from_slice(&self.characters);
        bytes[36..40].copy_from_slice(&self.speeds.0.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.speeds.1.to_le_bytes());
        bytes
    }

    /// From `struct termios` or `struct termios2`, by its length; `EINVAL` if it is neither.
    /// Speeds that `struct termios` does not say stay those of `self`.
    pub fn changed(&self, bytes: &[u8]) -> Result<Settings> {
        let mut all = self.bytes();
        match bytes.len() {
            TERMIOS_BYTES | TERMIOS2_BYTES => all[..bytes.len()].copy_from_slice(bytes),
            _ => return Err(EINVAL),
        }
        let word = |index: usize| {
            let at = 4 * index;
            u32::from_le_bytes([all[at], all[at + 1], all[at + 2], all[at + 3]])
        };
        let mut characters = [0; CHARACTERS];
        characters.copy_from_slice(&all[17..TERMIOS_BYTES]);
        let control = word(2);
        let output = speed(control & CBAUD).unwrap_or(word(10));
        let input = match (control >> IBSHIFT) & CBAUD {
            // Input is as fast as output.
            B0 => output,
            code => speed(code).unwrap_or(word(9)),
        };
        Ok(Settings {
            input: word(0),
            output: word(1),
            control,
            local: word(3),
            discipline: all[16],
            characters,
            speeds: (input, output),
        })
    }

    /// Whether bits of `c_iflag` are set.
    pub(super) fn input(&self, bits: u32) -> bool {
        self.input & bits == bits
    }

    /// Whether bits of `c_oflag` are set.
    pub(super) fn output(&self, bits: u32) -> bool {
        self.output & bits == bits
    }

    /// Whether bits of `c_lflag` are set.
    pub(super) fn local(&self, bits: u32) -> bool {
        self.local & bits == bits
    }

    /// Whether a byte is a special character.
    pub(super) fn is(&self, byte: u8, index: u32) -> bool {
        byte != 0 && self.characters[index as usize] == byte
    }

    /// Whether a byte goes on with a character that began before it.
    pub(super) fn continues(&self, byte: u8) -> bool {
        self.input(IUTF8) && byte & 0xc0 == 0x80
    }
}

/// Speeds of the codes from 0 on, and of those from [`CBAUDEX`] + 1 on.
const SPEEDS: [u32; 16] =
    [0, 50, 75, 110, 134, 150, 200, 300, 600, 1200, 1800, 2400, 4800, 9600, 19200, 38400];
/// See [`SPEEDS`].
const MORE_SPEEDS: [u32; 15] = [
    57600, 115200, 230400, 460800, 500000, 576000, 921600, 1000000, 1152000, 1500000, 2000000, 2500000,
    3000000, 3500000, 4000000,
];

/// Speed of a code; none if it is said in a number of its own.
fn speed(code: u32) -> Option<u32> {
    if code & CBAUDEX == 0 {
        return SPEEDS.get(code as usize).copied();
    }
    MORE_SPEEDS.get((code & !CBAUDEX).checked_sub(1)? as usize).copied()
}
