//! The border between the kernel and the machine: what the floor imports, what is used of it, and which names portable code may say.

use super::imports::{self, File, is_name};
use super::text;
use std::collections::BTreeSet;

/// Modules of the kernel that files below `kernel/src/arch` may import.
const BELOW: [&str; 4] = ["arch", "kprintln", "layout", "param"];

/// Files of a machine, and of the tests of the simulated one: they may use all of their machine.
const MACHINES: [&str; 3] = ["arch/", "entry/", "sim.rs"];

/// Files of the kernel that are not a machine's own.
fn portable() -> Vec<File> {
    let is_machine = |file: &File| MACHINES.iter().any(|machine| file.name.starts_with(machine));
    imports::kernel().into_iter().filter(|file| !is_machine(file)).collect()
}

/// The words after a path such as `crate::`, wherever it stands: the first of each, and all of a list in braces.
fn after(code: &str, path: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(path) {
        let is_whole = !code[..at].ends_with(|c: char| is_name(c) || c == ':' || c == '$');
        if is_whole {
            found.extend(heads(&code[at + path.len()..]));
        }
    }
    found
}

/// The first names of what follows a path: one name, or those of a list.
fn heads(rest: &str) -> Vec<String> {
    let name = |part: &str| -> String { part.trim_start().chars().take_while(|c| is_name(*c)).collect() };
    let Some(list) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                found.push(name(&list[start..at]));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    found.retain(|name| !name.is_empty() && name != "self");
    found
}

#[test]
fn the_machine_imports_nothing_of_the_kernel() {
    let below: BTreeSet<String> = BELOW.map(String::from).into();
    for file in imports::kernel().iter().filter(|file| file.name.starts_with("arch/")) {
        let (name, imports) = (&file.name, file.heads());
        let more: Vec<_> = imports.difference(&below).cloned().collect();
        assert!(
            more.is_empty(),
            "kernel/src/{name} imports {more:?}; the machine is given words, tables and pointers"
        );
    }
}

#[test]
fn nothing_but_a_machines_own_code_calls_its_entries() {
    for file in imports::kernel().iter().filter(|file| !file.name.starts_with("entry/")) {
        assert!(!file.heads().contains("entry"), "kernel/src/{} calls up into the entries", file.name);
    }
}

/// Names in links of the list, `[`name`]`.
fn listed(page: &str) -> BTreeSet<String> {
    let list = page.split("# What the kernel uses").nth(1).expect("the list of names");
    let items = list.lines().skip(1).take_while(|line| line.starts_with("//!"));
    let items = items.filter_map(|line| line.strip_prefix("//! * [`")?.split("`]: ").next());
    items.map(String::from).collect()
}

#[test]
fn the_list_of_what_the_kernel_uses_of_the_machine_is_complete() {
    let listed = listed(&text("kernel/src/arch/mod.rs"));
    assert!(listed.len() > 20, "{listed:?}");
    let mut used = BTreeSet::new();
    for File { code, .. } in portable() {
        used.extend(after(&code, "crate::arch::"));
        used.extend(after(&code, "arch::"));
    }
    // Of what is for people, the macros are used.
    used.insert("print".into());
    super::lists::same("kernel/src/arch/mod.rs", &listed, &used);
}

/// Registers of x86-64, in the widths that have names of their own.
const REGISTERS: &str = "rax rbx rcx rdx rsi rdi rbp rsp rip rflags eax ebx ecx edx esi edi ebp esp eip eflags \
    r8 r9 r10 r11 r12 r13 r14 r15 cr0 cr2 cr3 cr4 cr8 xcr0 efer dr0 dr1 dr2 dr3 dr6 dr7 cs ds es fs gs ss \
    gdtr idtr ldtr tr tss mxcsr";

/// Lines of a code that name a register.
fn lines_with_registers(code: &str) -> Vec<&str> {
    let is_register = |word: &str| REGISTERS.split_whitespace().any(|name| word.eq_ignore_ascii_case(name));
    code.lines().filter(|line| line.split(|c| !is_name(c)).any(is_register)).collect()
}

#[test]
fn portable_code_names_no_register() {
    for File { name, code, .. } in portable() {
        let lines = lines_with_registers(&code);
        assert!(lines.is_empty(), "kernel/src/{name} names registers: {lines:#?}");
    }
}

/// Lines of a code that make a bit, `1 << 63`, outside of a constant with a name. Divisors are units: `% (1 << 30)`.
fn lines_with_bits(code: &str) -> Vec<&str> {
    let makes_bit = |line: &str| {
        line.match_indices("1 << ").any(|(at, shift)| {
            let is_one = !line[..at].ends_with(|c: char| is_name(c) || c == '.');
            let is_number = line[at + shift.len()..].starts_with(|c: char| c.is_ascii_digit());
            is_one && is_number && !line[..at].ends_with("% (")
        })
    };
    let (mut in_constant, mut found) = (false, Vec::new());
    for line in code.lines() {
        in_constant |= line.contains("const ");
        if makes_bit(line) && !in_constant {
            found.push(line);
        }
        in_constant &= !line.ends_with([';', '{', '}']);
    }
    found
}

/// The bits of entries are those of the machine: portable code asks functions of `arch::pte`.
#[test]
fn portable_code_makes_no_bits_without_a_name() {
    for File { name, code, .. } in portable().iter().filter(|file| !file.name.ends_with("tests.rs")) {
        let lines = lines_with_bits(code);
        assert!(lines.is_empty(), "kernel/src/{name} makes bits in the middle of a function: {lines:#?}");
    }
}

#[test]
fn registers_and_bits_are_found() {
    let registers = "let edx = 1;\nlet (a, CR2) = x;\nlet model = 2;\nlet access = dr7;";
    assert_eq!(lines_with_registers(registers).len(), 3);
    let bits =
        "let entry = e | 1 << 63;\nconst A: u64 =\n    1 << 2;\nlet b = 1 << 2;\nx % (1 << 30);\n11 << 2;";
    assert_eq!(lines_with_bits(bits), ["let entry = e | 1 << 63;", "let b = 1 << 2;"]);
}

#[test]
fn names_after_a_path_are_found() {
    let names = |code: &str| after(code, "crate::").into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(names("use crate::{arch::{a, b}, layout};\nlet x = crate::sched::Next;"), "arch layout sched");
    assert_eq!(names("$crate::arch::print"), "");
    assert_eq!(
        after("arch::four_level::x; core::arch::asm!()", "arch::").into_iter().next().unwrap(),
        "four_level"
    );
}
