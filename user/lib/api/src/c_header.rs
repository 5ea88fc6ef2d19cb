//! The C header repeats what `abi` and this crate define. These tests hold the one against the other.

use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::vec::Vec;
use sys::abi::call::{self, Kind, vector};
use sys::abi::op;
use sys::{Error, Fpage, Rights, Uid, abi};

const HEADER: &str = include_str!("../../c/include/tern.h");

/// A C number: decimal or hexadecimal with suffixes, `1u << 8`, or `~0ul`.
fn number(text: &str) -> Option<u64> {
    let text = text.trim().trim_start_matches('(').trim_end_matches(')');
    if let Some((one, shift)) = text.split_once("<<") {
        return Some(number(one)? << number(shift)?);
    }
    if let Some(rest) = text.strip_prefix('~') {
        return Some(!number(rest)?);
    }
    let digits = text.trim_end_matches(['u', 'l']);
    match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    }
}

/// All `#define NAME number` of the header.
fn defines() -> BTreeMap<&'static str, u64> {
    let lines = HEADER.lines().filter_map(|line| line.strip_prefix("#define "));
    let pairs = lines.filter_map(|line| line.split_once(' '));
    pairs.filter_map(|(name, value)| Some((name, number(value.split("/*").next()?)?))).collect()
}

/// All `enum { NAME, ... }` of the header, with their values.
fn enumerations() -> BTreeMap<&'static str, u64> {
    let bodies = HEADER.split("enum {").skip(1).filter_map(|rest| rest.split('}').next());
    bodies.flat_map(|body| body.split(',').map(str::trim).filter(|name| !name.is_empty()).zip(0..)).collect()
}

#[test]
fn constants_are_the_kernels() {
    let expected = [
        ("TERN_ABI_VERSION", abi::VERSION as u64),
        ("TERN_PAGE_SIZE", abi::PAGE_SIZE),
        ("TERN_USER_END", abi::USER_END),
        ("TERN_INFO_PAGE", abi::INFO_PAGE),
        ("TERN_NIL", Uid::NIL.0),
        ("TERN_ANY", Uid::ANY.0),
        ("TERN_IPC_CALL", call::IPC_CALL as u64),
        ("TERN_IPC_REPLY_WAIT", call::IPC_REPLY_WAIT as u64),
        ("TERN_NULL", call::NULL as u64),
        ("TERN_DOOR_CALL", call::DOOR_CALL as u64),
        ("TERN_DOOR_RETURN", call::DOOR_RETURN as u64),
        ("TERN_ITEM", op::ITEM as u64),
        ("TERN_TAKES_BLOCK", op::TAKES_BLOCK as u64),
        ("TERN_BLOCK", op::BLOCK as u64),
        ("TERN_TAKES_ITEM", op::TAKES_ITEM as u64),
        ("TERN_ALERTABLE", op::ALERTABLE as u64),
        ("TERN_SHOWN", op::SHOWN as u64),
        ("TERN_TAKES_FOREIGN", op::TAKES_FOREIGN as u64),
        ("TERN_ABSOLUTE", op::ABSOLUTE as u64),
        ("TERN_FLUSH_SELF", call::FLUSH_SELF),
        ("TERN_KIND_REPLY", Kind::Reply as u64),
        ("TERN_KIND_REQUEST", Kind::Request as u64),
        ("TERN_KIND_FAULT", Kind::Fault as u64),
        ("TERN_KIND_EXCEPTION", Kind::Exception as u64),
        ("TERN_KIND_INTERRUPT", Kind::Interrupt as u64),
        ("TERN_KIND_DOOR_CALL", Kind::DoorCall as u64),
        ("TERN_KIND_DOOR_RETURN", Kind::DoorReturn as u64),
        ("TERN_KIND_UNREFERENCED", Kind::Unreferenced as u64),
        ("TERN_NO_ITEM", call::NO_ITEM as u64),
        ("TERN_ITEM_WHOLE", call::ITEM_WHOLE as u64),
        ("TERN_RESUME", call::RESUME as u64),
        ("TERN_UNRESOLVABLE", crate::wire::UNRESOLVABLE as u64),
        ("TERN_VECTOR_SYSCALL", vector::SYSCALL),
        ("TERN_VECTOR_UNRESOLVED_FAULT", vector::UNRESOLVED_FAULT),
        ("TERN_STATE_BYTES", abi::ThreadState::LEN_BYTES),
        ("TERN_STATE_X87", abi::state::STATE_X87),
        ("TERN_STATE_SSE", abi::state::STATE_SSE),
        ("TERN_STATE_AVX", abi::state::STATE_AVX),
        ("TERN_STATE_GS", abi::state::STATE_GS),
        ("TERN_NEVER", sys::Timeout::NEVER.0 as u64),
        ("TERN_R", Rights::R.0 as u64),
        ("TERN_W", Rights::W.0 as u64),
        ("TERN_X", Rights::X.0 as u64),
        ("TERN_GRANT", Rights::GRANT.0 as u64),
    ];
    let defines = defines();
    for (name, value) in expected {
        assert_eq!(defines.get(name), Some(&value), "{name}");
    }
    for (call, name) in call::Call::ALL {
        let name = format!("TERN_{}", name.to_uppercase());
        assert_eq!(defines.get(name.as_str()), Some(&(call as u64)), "{name}");
    }
}

#[test]
fn errors_and_operations_are_the_kernels() {
    let enumerations = enumerations();
    for (error, _) in Error::ALL {
        let mut name = String::from("TERN");
        for character in format!("{error:?}").chars() {
            if character.is_uppercase() {
                name.push('_');
            }
            name.extend(character.to_uppercase());
        }
        assert_eq!(enumerations.get(name.as_str()), Some(&(error as u64)), "{name}");
    }
    use call::{door_op, task_op, thread_op};
    let count = |prefix: &str| enumerations.keys().filter(|name| name.starts_with(prefix)).count() as u32;
    assert_eq!((count("TERN_THREAD_"), count("TERN_TASK_")), (thread_op::COUNT, task_op::COUNT));
    assert_eq!(count("TERN_DOOR_"), door_op::COUNT);
    let some = [
        ("TERN_DOOR_SERVE", door_op::SERVE),
        ("TERN_THREAD_SET_FS", thread_op::SET_FS),
        ("TERN_THREAD_ALERT", thread_op::ALERT),
        ("TERN_THREAD_SET_STATE", thread_op::SET_STATE),
        ("TERN_THREAD_SET_WINDOW", thread_op::SET_WINDOW),
    ];
    for (name, value) in some.into_iter().chain([("TERN_TASK_SELF", task_op::SELF)]) {
        assert_eq!(enumerations.get(name), Some(&(value as u64)), "{name}");
    }
}

/// Registers of a state stand in the kernel's order; the header itself asserts the size.
#[test]
fn states_are_laid_out_alike() {
    use abi::state::{IMAGE_WORDS, register};
    let body = HEADER.split_once("struct tern_state {").unwrap().1.split_once('}').unwrap().0;
    let registers = body.lines().find(|line| line.contains(" rip,")).unwrap();
    let names: Vec<&str> = registers
        .trim()
        .trim_start_matches("uint64_t")
        .trim_end_matches(';')
        .split(',')
        .map(str::trim)
        .collect();
    assert_eq!(names, register::NAMES);
    assert!(body.contains(&format!("image[{IMAGE_WORDS}]")));
    // The order is that in which groups of registers are handed over.
    let groups = call::REGISTERS.into_iter().flatten().take(register::NAMES.len());
    assert!(groups.eq(register::NAMES));
}

#[test]
fn flexpages_are_packed_alike() {
    // The macros in numbers, as the header has them.
    assert_eq!(Fpage::ports(0x3f8, 3).0, 0x3f8 << 12 | 1 << 10 | 3 << 4 | 3);
    assert_eq!(Fpage::interrupt(4).0, 4 << 12 | 2 << 10 | 3);
    assert_eq!(Fpage::memory(0x1234_5000, 12, Rights::RX).0, 0x1234_5000 | 12 << 4 | 5);
    assert_eq!(Fpage::doors(0x1234, 2, Rights::RW).0, 0x1234 << 12 | 3 << 10 | 2 << 4 | 3);
    assert_eq!(Uid::interrupt(4).0, 4 << 12 | 1);
}

/// Errors are called the same in C.
#[test]
fn errors_have_the_same_words() {
    const SOURCE: &str = include_str!("../../c/lib/errors.c");
    let (kernel, refusals) = SOURCE.split_once("const char *tern_refusal_text").unwrap();
    let table = kernel.split_once("kernel[] = {").unwrap().1.split_once('}').unwrap().0;
    let words = |line: &'static str| line.trim().trim_end_matches(',').trim_matches('"');
    let texts: Vec<&str> = table.trim().lines().map(words).collect();
    let expected: Vec<&str> =
        ["no error"].into_iter().chain(Error::ALL.iter().map(|(_, text)| *text)).collect();
    assert_eq!(texts, expected);
    for (status, text) in crate::wire::Status::ALL {
        let case = format!("case {}:\n        return \"{text}\";", status as u32);
        assert!(refusals.contains(&case), "{status:?}");
    }
    assert_eq!(refusals.matches("case ").count(), crate::wire::Status::ALL.len() + 1, "a case too many");
}

/// The assembly of the C library has numbers, for which the header has names.
#[test]
fn assembly_has_the_kernels_numbers() {
    const ASSEMBLY: &str = include_str!("../../c/lib/door.S");
    let serve = call::Call::DoorControl as u32 | call::door_op::SERVE << 8;
    assert!(ASSEMBLY.contains(&format!("mov ${serve:#x}, %eax")));
    assert!(ASSEMBLY.contains(&format!("movl ${:#x}, (%rsp)", call::DOOR_RETURN)));
}
