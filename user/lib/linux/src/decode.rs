//! Calls as text, as strace prints them: `openat(AT_FDCWD, "/etc/passwd", O_RDONLY) = 3`.
//!
//! Structures are addresses here, for the memory of the process is not read; paths and bytes are handed in. In reading order: [`calls`], [`flags`], `errors`.

mod calls;
mod errors;
mod flags;
#[cfg(test)]
mod tests;

use alloc::format;
use alloc::string::String;
use calls::{CALLS, Call, Kind, Outcome};
use core::fmt::Write;
use errors::ERRORS;
use flags::Names;
use linux_raw_sys::general::*;

/// Most bytes of a text that are printed, unless it is a path.
pub const TEXT_MAX: usize = 32;

/// Column of the result.
const RESULT_COLUMN: usize = 40;

/// Arguments of a call.
pub type Arguments = [u64; 6];

/// Texts that belong to arguments, as far as they could be read: paths without their zero, and bytes, of which [`TEXT_MAX`] are enough.
pub type Texts<'a> = [Option<&'a [u8]>; 6];

/// Name of a call.
pub fn name(number: u64) -> Option<&'static str> {
    find(number).map(|call| call.name)
}

fn find(number: u64) -> Option<&'static Call> {
    let at = CALLS.binary_search_by_key(&number, |call| u64::from(call.number)).ok()?;
    CALLS.get(at)
}

/// A call and its result as a line without an end; the result is none while it goes on.
pub fn format(number: u64, args: &Arguments, texts: &Texts, result: Option<u64>) -> String {
    let call = find(number);
    let mut line = match call {
        Some(call) => format!("{}(", call.name),
        None => format!("syscall_{number:#x}("),
    };
    let kinds = call.map_or(&[Kind::Unknown][..], |call| call.kinds);
    let result_bytes = result.filter(|&result| !is_error(result)).unwrap_or(0);
    for (at, &kind) in kinds.iter().enumerate() {
        let before = line.len();
        if at > 0 {
            line.push_str(", ");
        }
        let there = line.len();
        let printed = Argument { args, texts, at, result_bytes }.print(kind, &mut line);
        if line.len() == there {
            line.truncate(before);
        }
        if printed == Rest::Done {
            break;
        }
    }
    let Some(result) = result else {
        line.push_str(" <unfinished ...>");
        return line;
    };
    line.push_str(") ");
    while line.len() < RESULT_COLUMN {
        line.push(' ');
    }
    line.push_str("= ");
    let outcome = call.map_or(Outcome::Number, |call| call.outcome);
    print_result(outcome, result, &mut line);
    if number == u64::from(__NR_fcntl) && !is_error(result) {
        print_flags_of_result(args[1], result, &mut line);
    }
    line
}

/// Whether a result is an error's number, negated.
fn is_error(result: u64) -> bool {
    result > u64::MAX - 4095
}

fn print_result(outcome: Outcome, result: u64, line: &mut String) {
    if outcome == Outcome::None && !is_error(result) {
        line.push('?');
        return;
    }
    if is_error(result) {
        let number = result.wrapping_neg();
        let found = ERRORS.iter().find(|(error, ..)| u64::from(*error) == number);
        let sign = if number >= 512 { "?" } else { "-1" };
        match found {
            Some((_, name, text)) => add(line, format_args!("{sign} {name} ({text})")),
            None => add(line, format_args!("-1 ERRNO_{number} (Unknown error {number})")),
        }
        return;
    }
    match outcome {
        Outcome::Address => add(line, format_args!("{result:#x}")),
        Outcome::Mode => print_octal(result, line),
        _ => add(line, format_args!("{}", result as i64)),
    }
}

/// Results of `fcntl` that are flags.
fn print_flags_of_result(command: u64, result: u64, line: &mut String) {
    let is_of_file = command == u64::from(F_GETFL);
    if !is_of_file && (command != u64::from(F_GETFD) || result == 0) {
        return;
    }
    let number = line.rfind("= ").map_or(line.len(), |at| at + 2);
    line.truncate(number);
    add(line, format_args!("{result:#x} (flags "));
    if is_of_file {
        print_open(result, line)
    } else {
        print_flags(&flags::DESCRIPTOR, result, line)
    }
    line.push(')');
}

/// Whether further arguments are to be printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Follows,
    Done,
}

/// An argument of a call, between the others.
struct Argument<'a> {
    args: &'a Arguments,
    texts: &'a Texts<'a>,
    at: usize,
    /// Bytes that the call has handed out.
    result_bytes: u64,
}

impl Argument<'_> {
    fn arg(&self, at: usize) -> u64 {
        self.args.get(at).copied().unwrap_or(0)
    }

    fn print(&self, kind: Kind, line: &mut String) -> Rest {
        let value = self.arg(self.at);
        match kind {
            Kind::Fd | Kind::Int => add(line, format_args!("{}", value as i32)),
            Kind::Dir if value as i32 == AT_FDCWD => line.push_str("AT_FDCWD"),
            Kind::Dir => add(line, format_args!("{}", value as i32)),
            Kind::Uint => add(line, format_args!("{}", value as u32)),
            Kind::Size => add(line, format_args!("{value}")),
            Kind::Off => add(line, format_args!("{}", value as i64)),
            Kind::Hex => add(line, format_args!("{value:#x}")),
            Kind::Hex0 => print_hex(value, line),
            Kind::Octal => print_octal(value & 0xffff_ffff, line),
            Kind::Signal => print_signal(value as u32, line),
            Kind::Ptr => print_address(value, line),
            Kind::Path | Kind::Bytes | Kind::Read => self.print_text(kind, line),
            Kind::Flags(names) => print_flags(names, value & 0xffff_ffff, line),
            Kind::One(names) => print_one(names, i64::from(value as i32) as u64, line),
            Kind::Open => print_open(value & 0xffff_ffff, line),
            Kind::Mode => {
                let flags = self.arg(self.at.wrapping_sub(1)) as u32;
                if flags & O_CREAT != 0 || flags & O_TMPFILE == O_TMPFILE {
                    print_octal(value & 0xffff_ffff, line);
                }
            }
            Kind::Map => print_map(value & 0xffff_ffff, line),
            Kind::Moved => {
                if self.arg(self.at.wrapping_sub(1)) as u32 & MREMAP_FIXED != 0 {
                    print_address(value, line);
                }
            }
            Kind::Ioctl => print_ioctl(value & 0xffff_ffff, line),
            Kind::Clone => self.print_clone(line),
            Kind::Fcntl => return self.print_fcntl(line),
            Kind::Futex => return self.print_futex(line),
            Kind::Unknown => {
                let all = self.args.map(|arg| format!("{arg:#x}"));
                line.push_str(&all.join(", "));
            }
        }
        Rest::Follows
    }

    fn print_text(&self, kind: Kind, line: &mut String) {
        let value = self.arg(self.at);
        let Some(text) = self.texts.get(self.at).copied().flatten() else {
            return print_address(value, line);
        };
        let len = match kind {
            Kind::Path => return print_quoted(text, line),
            Kind::Read => self.result_bytes,
            _ => self.arg(self.at + 1),
        };
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        print_quoted(&text[..text.len().min(TEXT_MAX).min(len)], line);
        if len > TEXT_MAX {
            line.push_str("...");
        }
    }

    fn print_clone(&self, line: &mut String) {
        let [flags, stack, parent, child, tls, _] = *self.args;
        line.push_str("child_stack=");
        print_address(stack, line);
        line.push_str(", flags=");
        let (bits, signal) = (flags & 0xffff_ff00, flags as u32 & 0xff);
        if bits != 0 {
            print_flags(&flags::CLONE, bits, line);
        }
        if signal != 0 || bits == 0 {
            line.push_str(if bits != 0 { "|" } else { "" });
            print_signal(signal, line);
        }
        let has = |bit: u32| flags & u64::from(bit) != 0;
        for (is_there, name, value) in [
            (has(CLONE_PARENT_SETTID | CLONE_PIDFD), "parent_tid", parent),
            (has(CLONE_SETTLS), "tls", tls),
            (has(CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID), "child_tidptr", child),
        ] {
            if is_there {
                add(line, format_args!(", {name}="));
                print_address(value, line);
            }
        }
    }

    fn print_fcntl(&self, line: &mut String) -> Rest {
        let (command, argument) = (self.arg(1), self.arg(2));
        print_one(&flags::FCNTL, command & 0xffff_ffff, line);
        match command as u32 {
            F_GETFD | F_GETFL | F_GETOWN | F_GETSIG | F_GETLEASE | F_GETPIPE_SZ | F_GET_SEALS => {
                return Rest::Done;
            }
            F_SETFD => {
                line.push_str(", ");
                print_flags(&flags::DESCRIPTOR, argument, line);
            }
            F_SETFL => {
                line.push_str(", ");
                print_open(argument, line);
            }
            F_DUPFD | F_DUPFD_CLOEXEC | F_SETOWN | F_SETPIPE_SZ => {
                add(line, format_args!(", {}", argument as i32));
            }
            _ => return Rest::Follows,
        }
        Rest::Done
    }

    fn print_futex(&self, line: &mut String) -> Rest {
        print_one(&flags::FUTEX, self.arg(1) & 0xffff_ffff, line);
        let (value, timeout) = (self.arg(2), self.arg(3));
        match self.arg(1) as u32 & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME) {
            FUTEX_WAIT => {
                add(line, format_args!(", {}, ", value as u32));
                print_address(timeout, line);
            }
            FUTEX_WAKE => add(line, format_args!(", {}", value as u32 as i32)),
            _ => return Rest::Follows,
        }
        Rest::Done
    }
}

fn add(line: &mut String, text: core::fmt::Arguments) {
    // A string takes everything.
    let _ = line.write_fmt(text);
}

fn print_hex(value: u64, line: &mut String) {
    if value == 0 { line.push('0') } else { add(line, format_args!("{value:#x}")) }
}

fn print_address(value: u64, line: &mut String) {
    if value == 0 { line.push_str("NULL") } else { add(line, format_args!("{value:#x}")) }
}

/// Modes have three digits at least.
fn print_octal(value: u64, line: &mut String) {
    add(line, format_args!("0{value:02o}"));
}

fn print_signal(number: u32, line: &mut String) {
    match flags::SIGNALS.entries.iter().find(|(signal, _)| *signal == u64::from(number)) {
        Some((_, name)) => line.push_str(name),
        None if (32..=64).contains(&number) => match number - 32 {
            0 => line.push_str("SIGRTMIN"),
            above => add(line, format_args!("SIGRT_{above}")),
        },
        None => add(line, format_args!("{number}")),
    }
}

fn print_one(names: &Names, value: u64, line: &mut String) {
    match names.entries.iter().find(|(known, _)| *known == value) {
        Some((_, name)) => line.push_str(name),
        None => add(line, format_args!("{value:#x} /* {} */", names.unknown)),
    }
}

/// Flags with bars between them; what has no name is a number behind the others.
fn print_flags(names: &Names, value: u64, line: &mut String) {
    if let Some((_, name)) = names.entries.iter().find(|(known, _)| *known == value) {
        line.push_str(name);
        return;
    }
    if value == 0 {
        line.push('0');
        return;
    }
    let left = print_known(names, value, "", line);
    if left == value {
        add(line, format_args!("{value:#x} /* {} */", names.unknown));
    } else if left != 0 {
        add(line, format_args!("|{left:#x}"));
    }
}

/// Names of the flags that have one; the others.
fn print_known(names: &Names, value: u64, mut separator: &str, line: &mut String) -> u64 {
    let mut left = value;
    for &(known, name) in names.entries {
        if known != 0 && left & known == known {
            add(line, format_args!("{separator}{name}"));
            separator = "|";
            left &= !known;
        }
    }
    left
}

/// Flags behind one of several kinds, each of which has a bit pattern in a mask.
fn print_behind(kinds: &Names, mask: u64, names: &Names, value: u64, line: &mut String) {
    print_one(kinds, value & mask, line);
    let left = print_known(names, value & !mask, "|", line);
    if left != 0 {
        add(line, format_args!("|{left:#x}"));
    }
}

fn print_open(value: u64, line: &mut String) {
    print_behind(&flags::ACCESS_MODES, u64::from(O_ACCMODE), &flags::OPEN, value, line);
}

fn print_map(value: u64, line: &mut String) {
    print_behind(&flags::MAP_KINDS, u64::from(MAP_TYPE), &flags::MAP, value, line);
}

fn print_ioctl(value: u64, line: &mut String) {
    match flags::IOCTLS.entries.iter().find(|(known, _)| *known == value) {
        Some((_, name)) => line.push_str(name),
        None => {
            let direction = match value >> 30 {
                0 => "_IOC_NONE",
                1 => "_IOC_WRITE",
                2 => "_IOC_READ",
                _ => "_IOC_READ|_IOC_WRITE",
            };
            let (kind, number, size) = (value >> 8 & 0xff, value & 0xff, value >> 16 & 0x3fff);
            add(line, format_args!("_IOC({direction}, {kind:#x}, {number:#x}, {size:#x})"));
        }
    }
}

/// Text in quotes, as a string of C.
fn print_quoted(text: &[u8], line: &mut String) {
    line.push('"');
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'"' | b'\\' => add(line, format_args!("\\{}", char::from(byte))),
            b'\n' => line.push_str("\\n"),
            b'\t' => line.push_str("\\t"),
            b'\r' => line.push_str("\\r"),
            0x0b => line.push_str("\\v"),
            0x0c => line.push_str("\\f"),
            b' '..=b'~' => line.push(char::from(byte)),
            // Three digits where another one follows.
            _ if text.get(at + 1).is_some_and(u8::is_ascii_digit) => add(line, format_args!("\\{byte:03o}")),
            _ => add(line, format_args!("\\{byte:o}")),
        }
    }
    line.push('"');
}
