//! Calls as text, as strace prints them: `openat(AT_FDCWD, "/etc/passwd", O_RDONLY) = 3`.
//!
//! A call has two parts: [`begin`] prints what is known when it is made, and [`end`] the arguments that it brings, and its result. In reading order: [`memory`],
//! of the process; [`kinds`], [`calls`], [`flags`], `errors`; [`structures`], [`signals`], [`sockets`], [`ipc`].

mod calls;
mod errors;
mod flags;
mod ipc;
mod kinds;
mod memory;
mod signals;
mod sockets;
mod structures;
#[cfg(test)]
mod tests;

pub use memory::Memory;
pub use signals::{Told, information};

use alloc::format;
use alloc::string::String;
use calls::{CALLS, Call, Outcome};
use core::fmt::Write;
use errors::ERRORS;
use flags::Names;
use kinds::Kind;
use linux_raw_sys::general::{self, *};
use structures::structure;

/// Most bytes of a text that are printed, unless it is a path.
pub const TEXT_MAX: usize = 32;

/// Column of the result.
pub const RESULT_COLUMN: usize = 40;

/// Longest path that is printed.
const PATH_MAX: usize = 4096;

/// Arguments of a call.
pub type Arguments = [u64; 6];

/// Name of a call.
pub fn name(number: u64) -> Option<&'static str> {
    find(number).map(|call| call.name)
}

/// Name of a call, or its number if it has none.
pub fn name_or_number(number: u64) -> String {
    name(number).map_or_else(|| format!("syscall_{number:#x}"), String::from)
}

fn find(number: u64) -> Option<&'static Call> {
    let at = CALLS.binary_search_by_key(&number, |call| u64::from(call.number)).ok()?;
    CALLS.get(at)
}

/// Places of the arguments of a call that are descriptors.
pub fn descriptors(number: u64) -> impl Iterator<Item = usize> {
    kinds(number).iter().enumerate().filter(|(_, kind)| matches!(kind, Kind::Fd)).map(|(at, _)| at)
}

/// Name of a signal, such as `SIGINT`.
pub fn signal(number: u32) -> String {
    signals::signal(number)
}

/// The first part of a call, and what the second needs.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Begun {
    /// Name, and arguments up to the first one that the call brings.
    pub text: String,
    /// Arguments in it.
    printed: usize,
    /// A length that the call may change.
    before: Option<u32>,
}

/// The part of a call that is known when it is made.
pub fn begin(number: u64, args: &Arguments, memory: &mut dyn Memory) -> Begun {
    let kinds = kinds(number);
    let mut text = name_or_number(number) + "(";
    let length = kinds.iter().zip(args).find(|(kind, _)| matches!(kind, Kind::Length));
    let before = length.and_then(|(_, at)| memory.numbers(*at)).map(|[length]: [u32; 1]| length);
    let mut argument = Argument { args, memory, at: 0, result: None, before };
    let printed = argument.print_all(kinds, &mut text);
    Begun { text, printed, before }
}

/// Arguments behind those that were printed when a call was made, with the bracket; and its result.
pub fn end(
    number: u64,
    args: &Arguments,
    memory: &mut dyn Memory,
    begun: &Begun,
    result: u64,
) -> (String, String) {
    let call = find(number);
    let mut text = String::new();
    let mut argument =
        Argument { args, memory, at: begun.printed, result: Some(result), before: begun.before };
    argument.print_all(kinds(number), &mut text);
    text.push(')');
    let mut told = String::new();
    print_result(call.map_or(Outcome::Number, |call| call.outcome), result, &mut told);
    if !is_error(result) {
        print_more(number, args, memory, result, &mut told);
    }
    (text, told)
}

/// Whether a call does not return, so that it has no second part.
pub fn returns(number: u64) -> bool {
    find(number).is_none_or(|call| call.outcome != Outcome::None)
}

fn kinds(number: u64) -> &'static [Kind] {
    find(number).map_or(&[Kind::Unknown], |call| call.kinds)
}

/// Details that some calls have beside their result.
fn print_more(number: u64, args: &Arguments, memory: &mut dyn Memory, result: u64, line: &mut String) {
    let [first, second, third, fourth, ..] = *args;
    match u32::try_from(number).unwrap_or(u32::MAX) {
        general::__NR_fcntl => print_flags_of_result(second, result, line),
        general::__NR_poll | general::__NR_ppoll | general::__NR_select | general::__NR_pselect6
            if result == 0 =>
        {
            line.push_str(" (Timeout)")
        }
        general::__NR_poll | general::__NR_ppoll => {
            if let Some(ready) = structures::polls(memory, first, second, true) {
                add(line, format_args!(" ({ready})"));
            }
        }
        general::__NR_select | general::__NR_pselect6 => {
            let sets = [("in", second), ("out", third), ("except", fourth)];
            let shown = sets.into_iter().filter_map(|(name, at)| {
                let found = structures::descriptors(memory, at, first).filter(|_| at != 0)?;
                (found != "[]").then(|| format!("{name} {found}"))
            });
            let shown: alloc::vec::Vec<String> = shown.collect();
            add(line, format_args!(" ({})", shown.join(", ")));
        }
        general::__NR_rt_sigtimedwait => add(line, format_args!(" ({})", signal(result as u32))),
        _ => {}
    }
}

/// Whether a result is an error's number, negated.
pub(crate) fn is_error(result: u64) -> bool {
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
    line.clear();
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
    memory: &'a mut dyn Memory,
    at: usize,
    /// Result of the call, if it has ended.
    result: Option<u64>,
    /// A length as it was before.
    before: Option<u32>,
}

impl Argument<'_> {
    fn arg(&self, at: usize) -> u64 {
        self.args.get(at).copied().unwrap_or(0)
    }

    /// Bytes that the call has handed out.
    fn brought(&self) -> u64 {
        self.result.filter(|&result| !is_error(result)).unwrap_or(0)
    }

    /// Prints arguments from [`Self::at`] on; before the call has ended, those in front of what it brings. Says how many are printed then.
    fn print_all(&mut self, kinds: &[Kind], line: &mut String) -> usize {
        let first = self.at;
        while let Some(&kind) = kinds.get(self.at) {
            let before = line.len();
            if self.at > first {
                line.push_str(", ");
            }
            if self.result.is_none() && kind.is_brought() {
                return self.at;
            }
            let there = line.len();
            let printed = self.print(kind, line);
            if line.len() == there {
                line.truncate(before);
            }
            if printed == Rest::Done {
                return kinds.len();
            }
            self.at += 1;
        }
        kinds.len()
    }

    fn print(&mut self, kind: Kind, line: &mut String) -> Rest {
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
            Kind::Key if value as u32 == 0 => line.push_str("IPC_PRIVATE"),
            Kind::Key => add(line, format_args!("{:#x}", value as u32)),
            Kind::MadeLimits if self.arg(1) as u32 & O_CREAT == 0 => {}
            Kind::Made(names) => ipc::print_made(names, value & 0xffff_ffff, line),
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
            Kind::Prctl => return self.print_prctl(line),
            Kind::NodeMode => line.push_str(&structures::mode(value as u32)),
            Kind::SocketType => sockets::print_kind(value & 0xffff_ffff, line),
            Kind::Protocol => sockets::print_protocol(self.arg(0), value, line),
            Kind::SocketOption => sockets::print_option(self.arg(1), value, line),
            Kind::Hidden => {}
            Kind::Unknown => {
                let all = self.args.map(|arg| format!("{arg:#x}"));
                line.push_str(&all.join(", "));
            }
            _ => self.print_structure(kind, line),
        }
        Rest::Follows
    }

    /// A structure, or its address, if it cannot be read or was not brought.
    fn print_structure(&mut self, kind: Kind, line: &mut String) {
        let at = self.arg(self.at);
        let is_missing =
            self.result.is_some_and(is_error) && kind.is_brought() && !matches!(kind, Kind::Terminal);
        if at == 0 || is_missing {
            return print_address(at, line);
        }
        let around = [self.arg(0), self.arg(self.at.wrapping_sub(1)), self.arg(self.at + 1)];
        let brought = self.brought();
        let found = match kind {
            Kind::Length => self.memory.numbers(at).map(|[length]: [u32; 1]| match self.before {
                Some(before) if before != length => format!("[{before} => {length}]"),
                _ => format!("[{length}]"),
            }),
            Kind::Value | Kind::ValueOut => self.option(kind, at, around[2]),
            _ => structure(kind, at, around, brought, self.memory),
        };
        match found {
            Some(text) => line.push_str(&text),
            None => print_address(at, line),
        }
    }

    fn option(&mut self, kind: Kind, at: u64, next: u64) -> Option<String> {
        let option = [self.arg(1), self.arg(2)];
        let len = match kind {
            Kind::Value => next & 0xffff_ffff,
            _ => self.memory.numbers(next).map(|[len]: [u32; 1]| len.into())?,
        };
        sockets::option(self.memory, option, at, len)
    }

    fn print_text(&mut self, kind: Kind, line: &mut String) {
        let value = self.arg(self.at);
        if matches!(kind, Kind::Path) {
            return match self.memory.text(value, PATH_MAX).filter(|_| value != 0) {
                Some((path, _)) => print_quoted(&path, line),
                None => print_address(value, line),
            };
        }
        let is_brought = kind.is_brought();
        let len = if is_brought { self.brought() } else { self.arg(self.at + 1) };
        if value == 0 || is_brought && self.result.is_none_or(is_error) {
            return print_address(value, line);
        }
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        match self.memory.some(value, len.min(TEXT_MAX)) {
            Some(text) => print_quoted(&text, line),
            None => return print_address(value, line),
        }
        if len > TEXT_MAX {
            line.push_str("...");
        }
    }

    fn print_prctl(&mut self, line: &mut String) -> Rest {
        use linux_raw_sys::prctl;
        let (command, value) = (self.arg(0) as u32, self.arg(1));
        match command {
            prctl::PR_SET_NAME => {
                line.push_str("PR_SET_NAME, ");
                match self.memory.text(value, 15) {
                    Some((name, _)) => print_quoted(&name, line),
                    None => print_address(value, line),
                }
            }
            prctl::PR_SET_NO_NEW_PRIVS => add(line, format_args!("PR_SET_NO_NEW_PRIVS, {value}")),
            prctl::PR_GET_NO_NEW_PRIVS => line.push_str("PR_GET_NO_NEW_PRIVS"),
            prctl::PR_GET_SECCOMP => line.push_str("PR_GET_SECCOMP"),
            prctl::PR_SET_SECCOMP => {
                line.push_str("PR_SET_SECCOMP, ");
                print_one(&flags::RESTRICTION_MODES, value & 0xffff_ffff, line);
                if value == 2 {
                    line.push_str(", ");
                    let at = self.arg(2);
                    match structures::filter(self.memory, at) {
                        Some(program) => line.push_str(&program),
                        None => print_address(at, line),
                    }
                }
            }
            prctl::PR_GET_DUMPABLE => line.push_str("PR_GET_DUMPABLE"),
            prctl::PR_SET_DUMPABLE => add(line, format_args!("PR_SET_DUMPABLE, {value}")),
            prctl::PR_SET_PDEATHSIG => {
                line.push_str("PR_SET_PDEATHSIG, ");
                print_signal(value as u32, line);
            }
            _ => add(line, format_args!("{command:#x}, {value:#x}, {:#x}, {:#x}", self.arg(2), self.arg(3))),
        }
        Rest::Done
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

    fn print_fcntl(&mut self, line: &mut String) -> Rest {
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
            F_GETLK | F_SETLK | F_SETLKW | F_OFD_GETLK | F_OFD_SETLK | F_OFD_SETLKW => {
                line.push_str(", ");
                match structures::lock(self.memory, argument) {
                    Some(lock) => line.push_str(&lock),
                    None => print_address(argument, line),
                }
            }
            F_DUPFD | F_DUPFD_CLOEXEC | F_SETOWN | F_SETPIPE_SZ => {
                add(line, format_args!(", {}", argument as i32));
            }
            _ => return Rest::Follows,
        }
        Rest::Done
    }

    fn print_futex(&mut self, line: &mut String) -> Rest {
        print_one(&flags::FUTEX, self.arg(1) & 0xffff_ffff, line);
        let (value, timeout) = (self.arg(2), self.arg(3));
        match self.arg(1) as u32 & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME) {
            FUTEX_WAIT => {
                add(line, format_args!(", {}, ", value as u32));
                match structure(Kind::Time, timeout, [0; 3], 0, self.memory).filter(|_| timeout != 0) {
                    Some(time) => line.push_str(&time),
                    None => print_address(timeout, line),
                }
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
