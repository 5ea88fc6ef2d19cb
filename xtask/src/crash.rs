//! Tells where a program crashed: functions, files and lines, from what the guest reports and from the program's ELF file.
//!
//! A report is a few control sequences on the serial line, which terminals ignore (see `user/lib/rt/src/crash.rs`, which writes
//! them): registers, a piece of the stack, an end. The stack is walked here, by the call frame information that the compilers
//! write for debuggers, so programs carry none of it, need no frame pointers, and run the same instructions with or without.

use crate::archive::strip;
use crate::build::System;
use crate::{paths, programs};
use addr2line::Context;
use gimli::{
    BaseAddresses, CfaRule, DebugFrame, Dwarf, EhFrame, EndianSlice, LittleEndian, Register, RegisterRule,
    SectionId, UnwindContext, UnwindSection, UnwindTableRow, X86_64,
};
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::path::Path;

/// Most calls that are shown.
const DEPTH_MAX: usize = 32;

/// The registers of a report, in its order: those that functions give back as they found them, and where the program is.
const REGISTERS: [Register; 8] =
    [X86_64::RA, X86_64::RSP, X86_64::RBP, X86_64::RBX, X86_64::R12, X86_64::R13, X86_64::R14, X86_64::R15];

/// Report of a guest about a program that crashed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Report {
    program: String,
    registers: BTreeMap<u16, u64>,
    stack: Stack,
}

/// A piece of a program's stack, by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Stack(BTreeMap<u64, u8>);

impl Stack {
    fn word(&self, address: u64) -> Option<u64> {
        let byte = |at: u64| self.0.get(&address.checked_add(at)?).copied();
        let bytes: Option<Vec<u8>> = (0..8).map(byte).collect();
        Some(u64::from_le_bytes(bytes?.try_into().ok()?))
    }
}

/// Puts reports together from their sequences.
#[derive(Debug)]
pub struct Reports<'a> {
    system: &'a System,
    begun: Option<Report>,
}

impl Reports<'_> {
    /// Nothing reported yet. The programs are those of this system.
    pub fn of(system: &System) -> Reports<'_> {
        Reports { system, begun: None }
    }

    /// Takes the text of the next sequence. When it ends a report, gives back what that means, for a person; nothing if the
    /// program's ELF file is not the one that runs.
    pub fn push(&mut self, words: &str) -> Option<String> {
        let mut words = words.split(' ');
        match words.next()? {
            "crash" => self.begun = begin(words),
            "stack" => {
                let line = stack_line(words);
                self.begun = self.begun.take().zip(line).map(|(mut report, line)| {
                    report.stack.0.extend(line);
                    report
                });
            }
            "crashed" => {
                let report = self.begun.take()?;
                let image = self.image(&report.program)?;
                return Some(Program::read(&image)?.describe(&report));
            }
            _ => {}
        }
        None
    }

    /// The program's ELF file, if it is the one that was booted.
    fn image(&self, program: &str) -> Option<Vec<u8>> {
        let archive = std::fs::read(&self.system.archive).ok()?;
        let booted = abi::archive::find(&archive, program)?.data;
        let files = programs::elf_files(program);
        files.iter().filter_map(|file| std::fs::read(file).ok()).find(|image| strip(image) == booted)
    }
}

fn hex(word: &str) -> Option<u64> {
    u64::from_str_radix(word, 16).ok()
}

/// Reads "PROGRAM REGISTER...".
fn begin<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Report> {
    let program = words.next()?.to_string();
    let values: Option<Vec<u64>> = words.map(hex).collect();
    let values = values.filter(|values| values.len() == REGISTERS.len())?;
    let registers = REGISTERS.iter().map(|register| register.0).zip(values).collect();
    Some(Report { program, registers, stack: Stack::default() })
}

/// Reads "ADDRESS BYTES".
fn stack_line<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Vec<(u64, u8)>> {
    let (address, bytes) = (hex(words.next()?)?, words.next()?);
    let byte = |at: usize| u8::from_str_radix(bytes.get(2 * at..2 * at + 2)?, 16).ok();
    (0..bytes.len() / 2).map(|at| Some((address.checked_add(at as u64)?, byte(at)?))).collect()
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Code of a program, as its ELF file describes it.
struct Program<'a> {
    lines: Context<Slice<'a>>,
    debug_frame: DebugFrame<Slice<'a>>,
    eh_frame: EhFrame<Slice<'a>>,
    bases: BaseAddresses,
}

impl<'a> Program<'a> {
    fn read(image: &'a [u8]) -> Option<Program<'a>> {
        let file = object::File::parse(image).ok()?;
        let section = |name: &str| file.section_by_name(name);
        let bytes = |name: &str| section(name).and_then(|section| section.data().ok()).unwrap_or_default();
        let address = |name: &str| section(name).map_or(0, |section| section.address());
        let dwarf = Dwarf::load(|id: SectionId| {
            Ok::<_, gimli::Error>(EndianSlice::new(bytes(id.name()), LittleEndian))
        });
        let mut debug_frame = DebugFrame::new(bytes(".debug_frame"), LittleEndian);
        let mut eh_frame = EhFrame::new(bytes(".eh_frame"), LittleEndian);
        debug_frame.set_address_size(8);
        eh_frame.set_address_size(8);
        let bases = BaseAddresses::default().set_text(address(".text")).set_eh_frame(address(".eh_frame"));
        Some(Program { lines: Context::from_dwarf(dwarf.ok()?).ok()?, debug_frame, eh_frame, bases })
    }

    /// One line for each call, the innermost first.
    fn describe(&self, report: &Report) -> String {
        let mut calls: Vec<String> = Vec::new();
        let mut registers = report.registers.clone();
        for depth in 0..4 * DEPTH_MAX {
            let Some(&ip) = registers.get(&X86_64::RA.0).filter(|ip| **ip != 0) else { break };
            // Behind a call that does not return another function may begin.
            self.functions(if depth == 0 { ip } else { ip - 1 }, &mut calls);
            let Some(caller) = self.caller(&registers, &report.stack, depth) else { break };
            registers = caller;
        }
        let mut lines = without_repetition(without_panic(&calls));
        if lines.len() > DEPTH_MAX {
            lines.truncate(DEPTH_MAX);
            lines.push("...".into());
        }
        let prefixes = ["in"].into_iter().chain(std::iter::repeat("by"));
        lines.iter().zip(prefixes).map(|(line, prefix)| format!("    {prefix} {line}\n")).collect()
    }

    /// The function at an address, and those that it was inlined into, the innermost first.
    fn functions(&self, address: u64, out: &mut Vec<String>) {
        let Ok(mut frames) = self.lines.find_frames(address).skip_all_loads() else { return };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|name| name.demangle().ok().map(String::from));
            let place =
                frame.location.and_then(|place| Some((shorter(place.file?), place.line.unwrap_or(0))));
            let (Some(name), Some((file, line))) = (name, place) else { continue };
            out.push(format!("{} ({file}:{line})", without_hash(&name)));
        }
    }

    /// The registers as they will be when the function returns.
    fn caller(
        &self,
        registers: &BTreeMap<u16, u64>,
        stack: &Stack,
        depth: usize,
    ) -> Option<BTreeMap<u16, u64>> {
        let ip = *registers.get(&X86_64::RA.0)?;
        let mut context = UnwindContext::new();
        let address = if depth == 0 { ip } else { ip - 1 };
        let row = unwind_row(&self.debug_frame, &self.bases, &mut context, address)
            .or_else(|| unwind_row(&self.eh_frame, &self.bases, &mut context, address));
        match row {
            Some(row) => unwind(&row, registers, stack),
            // It went where there is no function: whoever called that is on top of the stack.
            None if depth == 0 => {
                let at = *registers.get(&X86_64::RSP.0)?;
                let mut caller = registers.clone();
                caller.insert(X86_64::RA.0, stack.word(at)?);
                caller.insert(X86_64::RSP.0, at + 8);
                Some(caller)
            }
            None => None,
        }
    }
}

/// Call frame information for an address.
fn unwind_row<'a, S: UnwindSection<Slice<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    context: &mut UnwindContext<usize>,
    address: u64,
) -> Option<UnwindTableRow<usize>> {
    section.unwind_info_for_address(bases, context, address, S::cie_from_offset).ok().cloned()
}

fn unwind(
    row: &UnwindTableRow<usize>,
    registers: &BTreeMap<u16, u64>,
    stack: &Stack,
) -> Option<BTreeMap<u16, u64>> {
    let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return None };
    let frame = registers.get(&register.0)?.wrapping_add_signed(*offset);
    let mut caller = registers.clone();
    // Unknown parts of the caller are not guessed; without a return address there is no caller.
    caller.remove(&X86_64::RA.0);
    for (register, rule) in row.registers() {
        let value = match rule {
            RegisterRule::Offset(offset) => stack.word(frame.wrapping_add_signed(*offset)),
            RegisterRule::ValOffset(offset) => Some(frame.wrapping_add_signed(*offset)),
            RegisterRule::Register(other) => registers.get(&other.0).copied(),
            RegisterRule::SameValue => continue,
            _ => None,
        };
        match value {
            Some(value) => drop(caller.insert(register.0, value)),
            None => drop(caller.remove(&register.0)),
        }
    }
    caller.insert(X86_64::RSP.0, frame);
    caller.contains_key(&X86_64::RA.0).then_some(caller)
}

/// A path as a person looks for it: within the checkout, the standard library, or a crate.
fn shorter(file: &str) -> String {
    let path = Path::new(file);
    if let Ok(inside) = path.strip_prefix(paths::root()) {
        return inside.display().to_string();
    }
    let parts: Vec<&str> = file.split('/').collect();
    let from = match file {
        _ if file.starts_with("/rustc/") => 3,
        _ => parts.iter().position(|part| *part == "registry").map_or(0, |at| at + 3),
    };
    parts.get(from..).map_or_else(|| file.into(), |parts| parts.join("/"))
}

/// The name without the number that makes it unique.
fn without_hash(name: &str) -> &str {
    name.rsplit_once("::h").filter(|(_, hash)| hash.len() == 16).map_or(name, |(name, _)| name)
}

/// Leaves out how a panic is made of what the program did wrong.
fn without_panic(calls: &[String]) -> &[String] {
    let is_panic = |call: &&String| {
        ["core::panicking::", "core::option::", "core::result::", "alloc::alloc::handle_alloc_error"]
            .iter()
            .any(|start| call.starts_with(start))
    };
    let begins = calls.iter().position(|call| call.starts_with("core::panicking::"));
    let Some(begins) = begins else { return calls };
    let of_panic = calls[begins..].iter().take_while(is_panic).count();
    &calls[begins + of_panic..]
}

/// Says how often a call repeats instead of repeating it.
fn without_repetition(calls: &[String]) -> Vec<String> {
    calls
        .chunk_by(|one, other| one == other)
        .map(|same| match same.len() {
            1 => same[0].clone(),
            count => format!("{}, {count} times", same[0]),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_reports_are_none() {
        let good = "rubbish 401000 3c0 0 0 0 0 0 0";
        assert!(begin(good.split(' ')).is_some());
        for bad in ["", "rubbish", "rubbish 1 2 3", "rubbish 1 2 3 4 5 6 7 x", "rubbish 1 2 3 4 5 6 7 8 9"] {
            assert!(begin(bad.split(' ')).is_none(), "{bad}");
        }
        assert_eq!(stack_line("10 0102".split(' ')), Some(vec![(16, 1), (17, 2)]));
        for bad in ["", "10", "x 00", "10 0x", "ffffffffffffffff 0102", "10 é0"] {
            assert_eq!(stack_line(bad.split(' ')), None, "{bad}");
        }
        let system = System { kernel: "/nonexistent".into(), archive: "/nonexistent".into() };
        let mut reports = Reports::of(&system);
        for words in ["crashed", "stack 10 00", "crash no", "crashed", "", " "] {
            assert_eq!(reports.push(words), None);
        }
    }

    #[test]
    fn names_and_places_are_for_people() {
        assert_eq!(without_hash("a::b::h0123456789abcdef"), "a::b");
        assert_eq!(without_hash("a::help"), "a::help");
        let inside = paths::root().join("tests/guest/crash/src/main.rs");
        assert_eq!(shorter(inside.to_str().unwrap()), "tests/guest/crash/src/main.rs");
        assert_eq!(shorter("/rustc/0123/library/core/src/panicking.rs"), "library/core/src/panicking.rs");
        assert_eq!(shorter("/home/x/.cargo/registry/src/y/talc-5.1.0/src/lib.rs"), "talc-5.1.0/src/lib.rs");
    }

    #[test]
    fn what_repeats_is_counted() {
        let calls = ["a", "a", "b", "a"].map(String::from);
        assert_eq!(without_repetition(&calls), ["a, 2 times", "b", "a"]);
        let calls = ["rt::panic", "core::panicking::panic_fmt", "core::option::expect_failed", "main"];
        assert_eq!(without_panic(&calls.map(String::from)), ["main"]);
        assert_eq!(without_panic(&["main".to_string()]), ["main"]);
    }
}
