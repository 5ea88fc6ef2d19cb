//! The end of a kernel that found itself wrong: message, registers, and a backtrace.
//!
//! Functions are named by a table in the image that is filled in after linking. Little-endian:
//!
//! ```text
//!  0       4       8              8 + 8 count
//! +-------+-------+--------------+-----------------------------+
//! | TSYM  | count | count pairs  | names, each ended by a zero |
//! +-------+-------+--------------+-----------------------------+
//! ```
//!
//! A pair is a function's address, as offset from [`layout::IMAGE`], and the offset of its name from the start of
//! the table; pairs are sorted by address. An empty or damaged table gives no names, and nothing worse.

use crate::layout;

/// Bytes that the image reserves for the table.
pub const SYMBOLS_SIZE: usize = 128 << 10;

/// First word of the table: "TSYM".
const MAGIC: u32 = 0x4d59_5354;

/// The table of function names.
#[derive(Clone, Copy)]
pub struct Symbols<'a>(pub &'a [u8]);

impl<'a> Symbols<'a> {
    fn word(self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.0.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }

    /// The function that holds an address of the image, and the distance from its start.
    pub fn find(self, address: u64) -> Option<(&'a str, u64)> {
        let offset = u32::try_from(address.checked_sub(layout::IMAGE)?).ok()?;
        if self.word(0)? != MAGIC {
            return None;
        }
        let (mut below, mut above) = (0, self.word(4)? as usize);
        while below < above {
            let middle = below + (above - below) / 2;
            if self.word(8 + 8 * middle)? <= offset {
                below = middle + 1;
            } else {
                above = middle;
            }
        }
        let pair = 8 + 8 * below.checked_sub(1)?;
        let name = self.0.get(self.word(pair + 4)? as usize..)?.split(|&byte| byte == 0).next()?;
        Some((core::str::from_utf8(name).ok()?, u64::from(offset - self.word(pair)?)))
    }
}

#[cfg(target_os = "none")]
pub use machine::fatal;

#[cfg(target_os = "none")]
mod machine {
    use super::{SYMBOLS_SIZE, Symbols};
    use crate::arch::{end_of_machine, frame_pointer, read_mapped, registers_at_panic};
    use crate::{kprint, kprintln};
    use core::fmt::Arguments;
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

    unsafe extern "C" {
        /// The table; the boot assembly reserves it.
        static KSYMS: [u8; SYMBOLS_SIZE];
    }

    /// Frames that a backtrace shows.
    const DEPTH_MAX: usize = 32;

    #[panic_handler]
    fn panic(info: &core::panic::PanicInfo) -> ! {
        let place = info.location();
        let (file, line) = place.map_or(("?", 0), |place| (place.file(), place.line()));
        end(&[], None, frame_pointer(), format_args!("{} ({file}:{line})", info.message()))
    }

    /// Reports an exception that the kernel cannot survive, and ends the machine. `registers` are printed by name;
    /// the backtrace starts at `instruction` and follows `frame`, the frame pointer.
    pub fn fatal(registers: &[(&str, u64)], instruction: u64, frame: u64, message: Arguments) -> ! {
        end(registers, Some(instruction), frame, message)
    }

    fn end(registers: &[(&str, u64)], instruction: Option<u64>, frame: u64, message: Arguments) -> ! {
        static DEPTH: AtomicU32 = AtomicU32::new(0);
        // A failure during a report must not be reported again and again.
        match DEPTH.fetch_add(1, Relaxed) {
            0 => report(registers, instruction, frame, message),
            1 => kprintln!("\nKERNEL PANIC during a panic: {message}"),
            _ => {}
        }
        end_of_machine()
    }

    fn report(registers: &[(&str, u64)], instruction: Option<u64>, frame: u64, message: Arguments) {
        kprintln!("\nKERNEL PANIC: {message}");
        let machine = registers_at_panic();
        for (index, (name, value)) in registers.iter().chain(&machine).enumerate() {
            kprint!("{}{name:>8} {value:016x}", if index % 3 == 0 && index > 0 { "\n" } else { "" });
        }
        kprintln!("\nbacktrace:");
        if let Some(address) = instruction {
            print_frame(address);
        }
        walk(frame);
    }

    /// Follows the chain of frame pointers: each points to the caller's, with the return address above.
    fn walk(mut frame: u64) {
        for _ in 0..DEPTH_MAX {
            let caller = read_mapped(frame);
            let Some(address) = read_mapped(frame.wrapping_add(8)) else { return };
            if address == 0 {
                return;
            }
            // The address is that of the call; the instruction behind it may belong to the next function.
            print_frame(address - 1);
            match caller {
                Some(caller) if caller > frame => frame = caller,
                _ => return,
            }
        }
    }

    fn print_frame(address: u64) {
        // SAFETY: the object is in read-only memory. It was filled in after linking, behind the compiler's back,
        // so nothing may be assumed about its content; every byte is valid.
        let symbols = Symbols(unsafe { &KSYMS });
        match symbols.find(address) {
            Some((name, offset)) => kprintln!("  {address:016x} {name}+{offset:#x}"),
            None => kprintln!("  {address:016x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn table(functions: &[(u32, &str)]) -> Vec<u8> {
        let mut table = MAGIC.to_le_bytes().to_vec();
        table.extend((functions.len() as u32).to_le_bytes());
        let mut at = 8 + 8 * functions.len();
        for (offset, name) in functions {
            table.extend(offset.to_le_bytes());
            table.extend((at as u32).to_le_bytes());
            at += name.len() + 1;
        }
        for (_, name) in functions {
            table.extend(name.bytes().chain([0]));
        }
        table
    }

    #[test]
    fn names_of_addresses() {
        let bytes = table(&[(0x100, "first"), (0x180, "second"), (0x400, "third")]);
        let find = |offset| Symbols(&bytes).find(layout::IMAGE + offset);
        assert_eq!(find(0xff), None);
        assert_eq!(find(0x100), Some(("first", 0)));
        assert_eq!(find(0x17f), Some(("first", 0x7f)));
        assert_eq!(find(0x180), Some(("second", 0)));
        assert_eq!(find(0x4000), Some(("third", 0x3c00)));
        assert_eq!(Symbols(&bytes).find(0x100), None);
        assert_eq!(Symbols(&bytes).find(u64::MAX), Some(("third", 0x7fff_ffff - 0x400)));
    }

    #[test]
    fn damaged_tables_give_no_names() {
        assert_eq!(Symbols(&[0; 64]).find(layout::IMAGE + 5), None);
        assert_eq!(Symbols(&[]).find(layout::IMAGE + 5), None);
        let bytes = table(&[(0x100, "first"), (0x180, "second")]);
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bad = bytes.clone();
                bad[at] = value;
                let _ = Symbols(&bad).find(layout::IMAGE + 0x190);
                let _ = Symbols(&bytes[..at]).find(layout::IMAGE + 0x190);
            }
        }
    }
}
