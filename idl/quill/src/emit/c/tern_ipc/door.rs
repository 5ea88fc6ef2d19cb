//! Objects behind doors: what a call begins with, and how it ends.
//!
//! A call through a door has no other before it and none behind it, so nothing is saved and nothing restored: it begins at the
//! interface's entry, with the words in the kernel's registers, finds the method's thunk in a table by the label's first bits, and
//! ends in *door return*. A thunk calls the method's function with the words that functions have in registers, where the kernel
//! has them, too; the others it puts into a frame. The functions that read a request and make a reply are those of ipc.
//!
//! All of it is in a macro, with the methods for an argument: they are a constant, and parts of the methods' functions then, or
//! what the object has at the time.

use std::fmt::Write;

use super::super::interface::Interface;
use super::super::tree::Item;
use super::{given, has_long_reply, kept_words, looks_twice};
use crate::kernel::{KernelPart, TernDoor, table_bits};
use crate::layout::{InterfaceLayout, Method, Room, interface_id};
use crate::model::Operation;

/// Words of a request that are a function's arguments; the frame has the others.
const ARGUMENTS: u32 = 4;

/// Words of a reply that a function returns.
const RETURNED: u32 = 1;

/// The kernel's registers for words, and their lower halves.
const REGISTERS: [(&str, &str); 11] = [
    ("rdi", "edi"),
    ("rsi", "esi"),
    ("r8", "r8d"),
    ("r9", "r9d"),
    ("r10", "r10d"),
    ("r12", "r12d"),
    ("r13", "r13d"),
    ("r14", "r14d"),
    ("rbx", "ebx"),
    ("rbp", "ebp"),
    ("r15", "r15d"),
];

/// Those from here on functions preserve: where no word goes back, the caller has what it sent.
const PRESERVED: u32 = 5;

/// How much room the strings of requests need.
pub fn room(c: &Interface, room: &Room) -> Vec<Item> {
    if !room.needed {
        return Vec::new();
    }
    let comment = "Strings that a request has at most, and bytes of the longest: for quill_receive.";
    let most = room.capacities.iter().max().unwrap_or(&0);
    vec![
        Item::Comment(comment.into()),
        Item::Define(c.function("STRINGS"), room.capacities.len().to_string()),
        Item::Define(c.function("STRING_BYTES"), most.to_string()),
    ]
}

/// The macro that defines an entry.
pub fn server(c: &Interface, operations: &[&Operation], layout: &InterfaceLayout, room: &Room) -> String {
    let mut text = String::new();
    for (number, (operation, method)) in operations.iter().zip(&layout.methods).enumerate() {
        if looks_twice(c, &method.request) {
            text += &begun(c, operation, method, number, true);
        }
        text += &begun(c, operation, method, number, false);
        text += &thunk(c, operation, method, number);
    }
    text += &narrow(c, layout);
    text += &entry(layout, room);
    let lines: Vec<&str> = text.lines().collect();
    let (macro_name, lines) = (c.function("ENTRY"), lines.join(" \\\n"));
    let comment = "Defines the entry `name`, for tern_door_create with a datum that methods get as `_self`. `methods` is a constant, \
                   or an expression\n * of `quill_self`, which is the same. `unreferenced(datum)`, if it is not NULL, is called when \
                   nobody has an identifier any more.";
    format!("/* {comment} */\n#define {macro_name}(name, methods, unreferenced) \\\n{lines}\n")
}

/// Words that the frame has room for, before what the server keeps for a reply.
fn frame_words(operation: &Operation, method: &Method) -> u32 {
    let (there, back) = (method.request.registers, given(operation, method));
    let there = if there > ARGUMENTS { there } else { 0 };
    let back = if back > RETURNED { back } else { 0 };
    there.max(back)
}

/// The function that a method's thunk calls, or the second look, which is given the same.
fn begun(c: &Interface, operation: &Operation, method: &Method, number: usize, again: bool) -> String {
    let words: Vec<String> = (0..method.request.registers)
        .map(|word| if word < ARGUMENTS { format!("quill_w{word}") } else { format!("quill_frame[{word}]") })
        .collect();
    let words = if words.is_empty() { "0".into() } else { words.join(", ") };
    let mut arguments = String::from("&(methods), quill_self, quill_words");
    if method.request.long {
        arguments += ", (quill_door_room *)(uintptr_t)quill_w1";
    }
    let (flag, in_memory) = if has_long_reply(method) {
        let kept = frame_words(operation, method);
        let _ = write!(arguments, ", quill_frame + {kept}, &quill_in_memory");
        ("    bool quill_in_memory = false;\n", "quill_in_memory")
    } else {
        ("", "false")
    };
    let twice = looks_twice(c, &method.request);
    if twice {
        arguments += if again { ", true" } else { ", false" };
    }
    let look = if twice && !again {
        format!(
            "    if (__builtin_expect(quill_state == QUILL_AGAIN, 0))\n        \
             return name##_{number}_again(quill_w0, quill_w1, quill_self, quill_frame, quill_w2, quill_w3);\n"
        )
    } else {
        String::new()
    };
    let (attributes, stem) =
        if again { ("noinline, cold, unused", "again") } else { ("noinline, unused", "begun") };
    let answer = c.function(&format!("{}_answer", operation.name));
    let given = given(operation, method);
    format!(
        "static __attribute__(({attributes})) quill_ended name##_{number}_{stem}(uint64_t quill_w0, uint64_t quill_w1,\n    \
             void *quill_self, uint64_t *quill_frame, uint64_t quill_w2, uint64_t quill_w3)\n\
         {{\n    uint64_t quill_words[QUILL_WORDS] = {{ {words} }};\n    quill_status quill_state;\n{flag}    \
             (void)quill_w0, (void)quill_w1, (void)quill_frame, (void)quill_w2, (void)quill_w3;\n    \
             quill_state = {answer}({arguments});\n{look}    \
             return quill_end(quill_frame, quill_words, {given}, quill_state, {in_memory});\n}}\n"
    )
}

/// From a method's call to its return.
fn thunk(c: &Interface, operation: &Operation, method: &Method, number: usize) -> String {
    let kept = method.replies().map(|reply| kept_words(c.emitter, reply)).max();
    let kept = if has_long_reply(method) { kept.unwrap_or(0).max(1) } else { 0 };
    // Functions find the stack as after a call: eight bytes from a multiple of 16.
    let bytes = (8 * (u64::from(frame_words(operation, method)) + kept)).next_multiple_of(16);
    let mut lines = Vec::new();
    if bytes > 0 {
        lines.push(format!("sub ${bytes}, %%rsp"));
        let there = (ARGUMENTS..method.request.registers).map(|word| (word, REGISTERS[word as usize].0));
        lines.extend(there.map(|(word, register)| format!("mov %%{register}, {}(%%rsp)", 8 * word)));
        lines.push("mov %%rsp, %%rcx".into());
    }
    lines.push("call %P0".into());
    lines.extend(returned(given(operation, method)));
    let end = if has_long_reply(method) {
        // It comes back if nobody gets it.
        "QUILL_SYSCALL \"\\n\\t\" \"mov %1, %%eax\\n\\t\" QUILL_RETURN_NOTHING"
    } else {
        "QUILL_SYSCALL \"\\n\\tud2\""
    };
    let operation_number = if has_long_reply(method) { ", \"i\"(TERN_DOOR_RETURN)" } else { "" };
    let begun = format!("name##_{number}_begun");
    naked(&format!("name##_{number}_thunk"), &lines, end, &format!("\"i\"({begun}){operation_number}"))
}

/// Moves so many words of a reply into registers, and clears those of others.
fn returned(words: u32) -> Vec<String> {
    let mut lines = vec![if words > 0 { "mov %%rdx, %%rdi".into() } else { "xor %%edi, %%edi".into() }];
    for word in RETURNED..REGISTERS.len() as u32 {
        let (whole, half) = REGISTERS[word as usize];
        match () {
            () if word < words => lines.push(format!("mov {}(%%rsp), %%{whole}", 8 * word)),
            () if word < PRESERVED => lines.push(format!("xor %%{half}, %%{half}")),
            () => {}
        }
    }
    lines
}

/// A function of assembly.
fn naked(function: &str, lines: &[String], end: &str, operands: &str) -> String {
    let lines: String = lines.iter().map(|line| format!("        \"{line}\\n\\t\"\n")).collect();
    format!(
        "static __attribute__((naked, unused)) void {function}(void)\n\
         {{\n    __asm__ volatile(\n{lines}        {end}\n        : : {operands});\n}}\n"
    )
}

/// What answers the question where in the table an interface is: in the last place, which no method has.
fn narrow(c: &Interface, layout: &InterfaceLayout) -> String {
    let cases = layout.views.iter().map(|view| {
        let interface = &c.emitter.model.interfaces[view.interface.0 as usize].name;
        let (id, first) = (interface_id(interface), TernDoor.request_label(view.first, 0));
        format!("    case {id:#x}ull:\n        return (quill_ended){{ QUILL_DOOR_DONE, {first}u }};\n")
    });
    let cases: String = cases.collect();
    let refused = "(quill_ended){ (uint64_t)QUILL_NO_METHOD << 32 | TERN_DOOR_RETURN, 0 }";
    let function = format!(
        "static __attribute__((noinline, cold, unused)) quill_ended name##_narrow(uint64_t quill_interface)\n\
         {{\n    switch (quill_interface) {{\n{cases}    default:\n        return {refused};\n    }}\n}}\n"
    );
    let mut lines = vec!["call %P0".to_owned()];
    lines.extend(returned(1));
    // It is a refusal, too: nothing of the request goes back.
    lines.extend(REGISTERS[PRESERVED as usize..].iter().map(|(_, half)| format!("xor %%{half}, %%{half}")));
    function + &naked("name##_narrow_thunk", &lines, "QUILL_SYSCALL \"\\n\\tud2\"", "\"i\"(name##_narrow)")
}

/// The table of thunks, and the entry, which finds one.
fn entry(layout: &InterfaceLayout, room: &Room) -> String {
    let bits = table_bits(layout.numbers_end() as usize + 1);
    let half = 1u32 << bits;
    let place = |place: u32| {
        let number = (place % half).reverse_bits() >> (32 - bits);
        let Some(own) = layout.method_at(number) else { return "quill_door_no_method".into() };
        match layout.methods[own as usize].request.long == (place >= half) {
            true => format!("name##_{own}_thunk"),
            false => "quill_door_mismatch".into(),
        }
    };
    let mut places: Vec<String> = (0..if room.needed { 2 * half } else { half }).map(place).collect();
    places[half as usize - 1] = "name##_narrow_thunk".into();
    let mut lines: Vec<String> = Vec::new();
    let mut find = |kind: &str, label: u32, offset: u32| {
        let offset = if offset > 0 { offset.to_string() } else { String::new() };
        lines.extend([
            format!("cmp %[{kind}], %%eax"),
            format!("jne {label}f"),
            format!("shr ${}, %%rax", 64 - bits),
            "lea %P[thunks](%%rip), %%rcx".into(),
            format!("jmp *{offset}(%%rcx,%%rax,8)"),
            format!("{label}:"),
        ]);
    };
    find("call", 2, 0);
    if room.needed {
        find("long_call", 3, 8 * half);
    }
    lines.extend(["mov %%rax, %%rdi", "mov %%rdx, %%rsi", "call %P[otherwise]"].map(String::from));
    let operands = "[call] \"i\"((int32_t)TERN_DOOR_CALL), [long_call] \"i\"((int32_t)QUILL_DOOR_LONG_CALL),\n          \
                    [thunks] \"i\"(name##_thunks), [otherwise] \"i\"(name##_otherwise)";
    let places: String = places.iter().map(|place| format!("    {place},\n")).collect();
    format!(
        "static void (*const name##_thunks[])(void) __attribute__((unused)) = {{\n{places}}};\n\
         static __attribute__((noinline, cold, unused)) uint64_t name##_otherwise(uint64_t quill_rax, void *quill_self)\n\
         {{\n    return quill_door_otherwise(quill_rax, quill_self, unreferenced);\n}}\n{}",
        naked("name", &lines, "QUILL_RETURN_NOTHING", operands)
    )
}
