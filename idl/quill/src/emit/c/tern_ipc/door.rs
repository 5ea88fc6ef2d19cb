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

use super::*;
use crate::kernel::{KernelPart, TernDoor};
use crate::layout::interface_id;
use crate::plan::Kind;

/// Calls to objects.
#[derive(Debug)]
pub struct Door;

impl Way for Door {
    fn runtime(&self) -> &'static str {
        runtime!(
            "\n",
            include_str!("../tern_references.h"),
            "\n",
            include_str!("../tern_handing.h"),
            "\n",
            include_str!("../tern_offers.h")
        )
    }

    fn hands_references(&self) -> bool {
        true
    }

    fn takes_offers(&self) -> bool {
        true
    }

    /// A reference to an object.
    fn callee(&self, e: &Emitter, layout: &InterfaceLayout) -> Ty {
        Ty::named(e.reference(Some(layout.interface)))
    }

    fn caller(&self) -> Option<(Ty, String)> {
        None
    }

    fn clients(&self, c: &Interface, layout: &InterfaceLayout, of: (&Operation, &Method)) -> Vec<Item> {
        let (operation, method) = of;
        let mut items = vec![client(self, c, layout, of)];
        items.extend(references::owner(c, layout, operation, method));
        let inner = items.last().and_then(|inner| offers::client(c, operation, method, inner));
        items.extend(inner);
        items
    }

    fn client_name(&self, c: &Interface, operation: &Operation, method: &Method) -> String {
        references::client_name(c, operation, method)
    }

    fn call(&self, method: &Method) -> Expr {
        let (server, label) = (name("_server"), Expr::Int(method.request.label.into()));
        let label = label.with("|", server.clone().field("view"));
        let kind = match () {
            () if method.request.long => "_long",
            () if method.request.pages.is_some() => "_item",
            () => "",
        };
        let takes_item = references::in_registers(&method.reply).is_some();
        let takes = [(method.needs_inbox(), "TERN_TAKES_BLOCK"), (takes_item, "TERN_TAKES_ITEM")];
        let takes = takes.into_iter().filter(|(takes, _)| *takes).map(|(_, what)| name(what));
        let takes = takes.reduce(|all, what| all.with("|", what));
        let taking = if takes.is_some() { "_taking" } else { "" };
        let to = [server.field("number"), label, words()];
        let called = called(format!("quill_door_call{kind}{taking}"), to, method, takes);
        if method.oneway { call("quill_door_sent", [called]) } else { called }
    }

    fn in_window(&self, e: &Emitter, handed: &Handed, called: Stmt) -> Vec<Stmt> {
        references::in_window(e, handed, called).into()
    }

    fn constants(&self) -> &'static str {
        "QUILL_DOOR_"
    }

    fn reply(&self, rax: Expr) -> Expr {
        call("quill_door_reply", [rax])
    }

    fn arrival<'r>(&self, _: &'r Room) -> Arrival<'r> {
        Arrival::Shared
    }

    fn room(&self, c: &Interface, layout: &InterfaceLayout, room: &Room) -> Vec<Item> {
        room_constants(c, room, layout.windows())
    }

    fn server(&self, c: &Interface, layout: &InterfaceLayout, operations: &[&Operation]) -> Vec<Item> {
        vec![references::narrow(c, layout), Item::Text(server(c, operations, layout))]
    }
}

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

/// How much room the strings of requests need, and how many windows references do.
fn room_constants(c: &Interface, room: &Room, windows: u64) -> Vec<Item> {
    if !room.needed {
        return Vec::new();
    }
    let comment = "Strings that a request has at most, and bytes of the longest: for quill_receive.";
    let most = room.capacities.iter().max().unwrap_or(&0);
    let mut items = vec![
        Item::Comment(comment.into()),
        Item::Define(c.function("STRINGS"), room.capacities.len().to_string()),
        Item::Define(c.function("STRING_BYTES"), most.to_string()),
    ];
    if windows > 0 {
        items.push(Item::Comment(
            "References that a message has in memory at most: for quill_receive_several.".into(),
        ));
        items.push(Item::Define(c.function("WINDOWS"), windows.to_string()));
    }
    items
}

/// The macro that defines an entry.
fn server(c: &Interface, operations: &[&Operation], layout: &InterfaceLayout) -> String {
    let mut text = String::new();
    for (number, (operation, method)) in operations.iter().zip(&layout.methods).enumerate() {
        if plan::looks_twice(c.emitter.model, &method.request) {
            text += &begun(c, operation, method, number, true);
        }
        text += &begun(c, operation, method, number, false);
        text += &thunk(c, method, number);
    }
    text += &narrow(c, layout);
    text += &entry(layout);
    let lines: Vec<&str> = text.lines().collect();
    let (macro_name, lines) = (c.function("ENTRY"), lines.join(" \\\n"));
    let comment = "Defines the entry `name`, for tern_door_create with a datum that methods get as `_self`. `methods` is a constant, \
                   or an expression\n * of `quill_self`, which is the same. `unreferenced(datum)`, if it is not NULL, is called when \
                   nobody has an identifier any more.";
    format!("/* {comment} */\n#define {macro_name}(name, methods, unreferenced) \\\n{lines}\n")
}

/// Words that the frame has room for, before what the server keeps for a reply.
fn frame_words(method: &Method) -> u32 {
    let given = if method.replies_from_memory() { 2 } else { u32::from(gives(method)) };
    words_of_frame(method) + given
}

/// Those of messages.
fn words_of_frame(method: &Method) -> u32 {
    let (there, back) = (method.request.words(), method.given());
    let there = if there > ARGUMENTS { there } else { 0 };
    let back = if back > RETURNED { back } else { 0 };
    there.max(back)
}

/// Whether a reply hands a reference over in registers. The last word of the frame says which, as long as it is not known that it has left.
fn gives(method: &Method) -> bool {
    references::in_registers(&method.reply).is_some()
}

/// What a request hands over, and then the reply.
fn item(method: &Method) -> String {
    const ROOM: &str = "quill_w0, (quill_door_room *)(uintptr_t)quill_w1";
    let found = match references::single(method) {
        None => "{ 0, 0, NULL }".into(),
        Some(_) if method.request.long => format!("quill_item_in({ROOM})"),
        Some(_) => "{ quill_words[6], quill_words[7], NULL }".into(),
    };
    let mut text = String::new();
    if references::has_item(method) {
        let _ = writeln!(text, "    quill_item quill_handed = {found};");
    }
    if several::is_carried(method) {
        let _ = writeln!(text, "    quill_carried quill_came = quill_carried_in({ROOM});");
    }
    text
}

/// The function that a method's thunk calls, or the second look, which is given the same.
fn begun(c: &Interface, operation: &Operation, method: &Method, number: usize, again: bool) -> String {
    let words: Vec<String> = (0..method.request.words())
        .map(|word| if word < ARGUMENTS { format!("quill_w{word}") } else { format!("quill_frame[{word}]") })
        .collect();
    let words = if words.is_empty() { "0".into() } else { words.join(", ") };
    let mut arguments = String::from("&(methods), quill_self, quill_words");
    if method.request.long {
        arguments += ", (quill_door_room *)(uintptr_t)quill_w1";
    }
    let (flag, in_memory) = if method.needs_inbox() {
        let kept = frame_words(method);
        let _ = write!(arguments, ", quill_frame + {kept}, &quill_in_memory");
        ("    bool quill_in_memory = false;\n", "quill_in_memory")
    } else {
        ("", "false")
    };
    let twice = plan::looks_twice(c.emitter.model, &method.request);
    if twice {
        arguments += if again { ", true" } else { ", false" };
    }
    let mut item = item(method);
    let (mut leaves, mut with_item) = (String::new(), String::new());
    if references::has_item(method) {
        arguments += ", &quill_handed";
        (leaves, with_item) = leaving(method);
    }
    if several::is_carried(method) {
        arguments += ", &quill_came";
        leaves += &carried_away(method);
    }
    let offered = offers::taken(&Door, method);
    if offered > 0 {
        arguments += ", quill_taken";
        let _ = writeln!(item, "    struct tern_taken quill_taken[{offered}] = {{ {{ 0, 0, 0 }} }};");
        let _ = writeln!(leaves, "    quill_taken_over(quill_taken, {offered});");
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
    let given = method.given();
    let end = format!("quill_end(quill_frame, quill_words, {given}, quill_state, {in_memory})");
    let end = if with_item.is_empty() {
        format!("    return {end};\n")
    } else {
        format!("    quill_ended quill_now = {end};\n{with_item}    return quill_now;\n")
    };
    format!(
        "static __attribute__(({attributes})) quill_ended name##_{number}_{stem}(uint64_t quill_w0, uint64_t quill_w1,\n    \
             void *quill_self, uint64_t *quill_frame, uint64_t quill_w2, uint64_t quill_w3)\n\
         {{\n    uint64_t quill_words[QUILL_WORDS] = {{ {words} }};\n    quill_status quill_state;\n{flag}{item}    \
             (void)quill_w0, (void)quill_w1, (void)quill_frame, (void)quill_w2, (void)quill_w3;\n    \
             quill_state = {answer}({arguments});\n{look}{leaves}{end}}}\n"
    )
}

/// Statements for what leaves with a reply or is let go, and for whether the return brings something.
fn leaving(method: &Method) -> (String, String) {
    let leaving = "quill_leaves(&quill_handed, quill_state, quill_words)";
    let mut further = String::new();
    if references::single(method).is_some() && method.request.long {
        further += "    if (__builtin_expect(quill_state >= QUILL_KERNEL, 0))\n        \
                    quill_further_unwanted(quill_w0, (quill_door_room *)(uintptr_t)quill_w1);\n";
    }
    if !gives(method) {
        return (format!("    {leaving};\n{further}"), String::new());
    }
    let at = words_of_frame(method);
    (
        format!("    quill_frame[{at}] = {leaving};\n{further}"),
        format!("    if (quill_frame[{at}] != 0)\n        quill_now.rax &= ~(uint64_t)TERN_NO_ITEM;\n"),
    )
}

/// Statements for references that have come and no method has, and for the words of the frame that say which windows leave.
fn carried_away(method: &Method) -> String {
    let mut text = String::new();
    if several::comes(method) {
        text += "    quill_let_go_of_carried(&quill_came);\n";
    }
    if method.replies_from_memory() {
        let at = words_of_frame(method);
        let _ = writeln!(
            text,
            "    quill_frame[{at}] = quill_address(quill_came.windows);\n    quill_frame[{}] = quill_came.given;",
            at + 1
        );
    }
    text
}

/// From a method's call to its return.
fn thunk(c: &Interface, method: &Method, number: usize) -> String {
    let kept = method.replies().map(|reply| kept_words(c.emitter, reply)).max();
    let kept = if method.needs_inbox() { kept.unwrap_or(0).max(1) } else { 0 };
    // Functions find the stack as after a call: eight bytes from a multiple of 16.
    let bytes = (8 * (u64::from(frame_words(method)) + kept)).next_multiple_of(16);
    let mut lines = Vec::new();
    if bytes > 0 {
        lines.push(format!("sub ${bytes}, %%rsp"));
        let there = (ARGUMENTS..method.request.words()).map(|word| (word, REGISTERS[word as usize].0));
        lines.extend(there.map(|(word, register)| format!("mov %%{register}, {}(%%rsp)", 8 * word)));
        lines.push("mov %%rsp, %%rcx".into());
    }
    lines.push("call %P0".into());
    lines.extend(returned(method.given()));
    let mut operands = format!("\"i\"(name##_{number}_begun)");
    let mut end = String::from("QUILL_RETURN_SYSCALL \"\\n\\tud2\"");
    // A return with more than words comes back if nobody gets it.
    if gives(method) {
        let at = 8 * words_of_frame(method);
        end = format!(
            "QUILL_RETURN_SYSCALL \"\\n\\tmov {at}(%%rsp), %%rdi\\n\\tcall %P2\\n\\tmov %1, %%eax\\n\\t\" QUILL_RETURN_NOTHING"
        );
        operands += ", \"i\"(TERN_DOOR_RETURN), \"i\"(quill_let_go)";
    } else if method.replies_from_memory() {
        let at = 8 * words_of_frame(method);
        end = format!(
            "QUILL_RETURN_SYSCALL \"\\n\\tlea {at}(%%rsp), %%rdi\\n\\tcall %P2\\n\\tmov %1, %%eax\\n\\t\" QUILL_RETURN_NOTHING"
        );
        operands += ", \"i\"(TERN_DOOR_RETURN), \"i\"(quill_let_go_of_given)";
    } else if method.needs_inbox() {
        end = "QUILL_RETURN_SYSCALL \"\\n\\t\" \"mov %1, %%eax\\n\\t\" QUILL_RETURN_NOTHING".into();
        operands += ", \"i\"(TERN_DOOR_RETURN)";
    }
    naked(&format!("name##_{number}_thunk"), &lines, &end, &operands)
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

/// A function of assembly that goes on where the entry of a door leads to.
fn naked(function: &str, lines: &[String], end: &str, operands: &str) -> String {
    assembly(function, "", lines, end, operands)
}

/// A function of assembly. `begin` and `end` are strings of C.
fn assembly(function: &str, begin: &str, lines: &[String], end: &str, operands: &str) -> String {
    let lines: String = lines.iter().map(|line| format!("        \"{line}\\n\\t\"\n")).collect();
    format!(
        "static __attribute__((naked, unused)) void {function}(void)\n\
         {{\n    __asm__ volatile(\n{begin}{lines}        {end}\n        : : {operands});\n}}\n"
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
    function
        + &naked("name##_narrow_thunk", &lines, "QUILL_RETURN_SYSCALL \"\\n\\tud2\"", "\"i\"(name##_narrow)")
}

/// Functions that refuse requests of a kind: where there is no method, and where there is one whose requests are of another kind.
fn refusals(kind: Kind) -> [&'static str; 2] {
    match kind {
        Kind::ITEM => ["quill_door_no_method_for_item", "quill_door_item_mismatch"],
        Kind::LONG_ITEM => ["quill_door_no_method_for_long_item", "quill_door_long_item_mismatch"],
        _ => ["quill_door_no_method", "quill_door_mismatch"],
    }
}

/// The kind of a message, as a constant.
fn constant(kind: Kind) -> String {
    let words = if kind.long { "QUILL_DOOR_LONG_CALL" } else { "TERN_DOOR_CALL" };
    if kind.item { format!("({words} & ~TERN_NO_ITEM)") } else { words.into() }
}

/// The table of thunks, and the entry, which finds one.
fn entry(layout: &InterfaceLayout) -> String {
    let bits = table_bits(layout.numbers_end() as usize + 1);
    let length = 1u32 << bits;
    let place = |kind: Kind, stands: Stands| {
        let [nothing, mismatch] = refusals(kind);
        match stands {
            Stands::Nothing => nothing.into(),
            Stands::Mismatch => mismatch.into(),
            Stands::Method(own) => format!("name##_{own}_thunk"),
        }
    };
    let mut places: Vec<String> = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    let mut operands = String::new();
    // The labels 2, 3, 4 and so on: 0b and 1b would be numbers.
    for (kind, number) in plan::kinds(layout).zip(0..) {
        let offset = if number > 0 { (8 * places.len()).to_string() } else { String::new() };
        let all = plan::places(&layout.methods, kind, bits, |number| layout.method_at(number));
        places.extend(all.map(|stands| place(kind, stands)));
        lines.extend([
            format!("cmp %[call_{number}], %%eax"),
            format!("jne {}f", number + 2),
            format!("shr ${}, %%rax", 64 - bits),
            "lea %P[thunks](%%rip), %%rcx".into(),
            format!("jmp *{offset}(%%rcx,%%rax,8)"),
            format!("{}:", number + 2),
        ]);
        let _ = write!(operands, "[call_{number}] \"i\"((int32_t){}), ", constant(kind));
    }
    places[length as usize - 1] = "name##_narrow_thunk".into();
    // w0, w1 and w6 are to be a function's third argument and those behind it.
    lines.extend(
        ["mov %%rdi, %%r9", "mov %%rax, %%rdi", "mov %%rsi, %%rcx", "mov %%rdx, %%rsi"].map(String::from),
    );
    lines.extend(["mov %%r9, %%rdx", "mov %%r13, %%r8", "call %P[otherwise]"].map(String::from));
    operands += "\n          [thunks] \"i\"(name##_thunks), [otherwise] \"i\"(name##_otherwise)";
    let places: String = places.iter().map(|place| format!("    {place},\n")).collect();
    format!(
        "static void (*const name##_thunks[])(void) __attribute__((unused)) = {{\n{places}}};\n\
         static __attribute__((noinline, cold, unused)) uint64_t name##_otherwise(uint64_t quill_rax, void *quill_self,\n    \
             uint64_t quill_dope, quill_door_room *quill_room, tern_fpage quill_place)\n\
         {{\n    return quill_door_otherwise(quill_rax, quill_self, quill_dope, quill_room, quill_place, unreferenced);\n}}\n{}",
        assembly(
            "name",
            "        QUILL_DOOR_RESTORE \"\\n\\t\"\n",
            &lines,
            "QUILL_RETURN_NOTHING",
            &operands
        )
    )
}
