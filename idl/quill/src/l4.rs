//! Dialects of L4's own interface compilers: IDL4, which extends both languages, and DICE, which extends DCE's.
//!
//! A file is in one of them if it says something that only these have. Then their types are known, attributes stand in brackets
//! before what they are about in both languages, and what has no meaning for stubs here is a warning that says why.

use crate::codes::Code;
use crate::diag::Diagnostic;
use crate::intern::Symbol;
use crate::lex::{Kind, Token};
use crate::model::{Shown, Type};
use crate::session::Session;
use crate::source::Span;

/// Attributes with an argument that only these dialects have, and those without one.
const MARKS: [&[&str]; 2] = [
    &["kernelmsg", "error_function", "default_function", "init_rcvstring", "max_value"],
    &[
        "prealloc",
        "prealloc_client",
        "prealloc_server",
        "init_with_in",
        "allow_reply_only",
        "server_parameter",
        "noopcode",
        "noexceptions",
        "no_interface_uuid",
        "sched_donate",
        "dedicated_partner",
    ],
];

/// Whether a file is in one of these dialects.
pub fn is_l4(s: &Session, tokens: &[Token]) -> bool {
    let text = |i: usize| tokens.get(i).map_or("", |t| s.names.text(t.text));
    let kind = |i: usize| tokens.get(i).map_or(Kind::Eof, |t| t.kind);
    (0..tokens.len()).any(|i| {
        if kind(i) != Kind::Ident {
            return false;
        }
        let word = text(i);
        let stands_alone = i > 0 && matches!(text(i - 1), "[" | ",") && matches!(text(i + 1), "]" | ",");
        match word {
            "uuid" => text(i + 1) == "(" && kind(i + 2) == Kind::Number && text(i + 3) == ")",
            "import" => text(i + 1) == "<" && kind(i + 1) == Kind::Punct,
            "threadid" | "flexpage" | "signed_word" | "refstring" => kind(i + 1) == Kind::Ident,
            _ if word.starts_with("L4_") || word.starts_with("l4_") => ty(word).is_some(),
            _ => MARKS[0].contains(&word) && text(i + 1) == "(" || MARKS[1].contains(&word) && stands_alone,
        }
    })
}

/// Whether such a file says which way parameters go without brackets, as CORBA's do; `None` if it has no parameters.
pub fn is_corba(s: &Session, tokens: &[Token]) -> Option<bool> {
    let text = |i: usize| tokens.get(i).map_or("", |t| s.names.text(t.text));
    let direction = (1..tokens.len()).find(|&i| {
        matches!(text(i), "in" | "out" | "inout") && matches!(text(i - 1), "(" | "," | "[" | "]")
    })?;
    let opens = (0..direction).rev().find(|&i| matches!(text(i), "(" | "["))?;
    Some(text(opens) == "(" && !matches!(text(direction + 1), "," | "]"))
}

/// A type that these dialects or L4's headers have. A machine's word has 64 bits in messages, whatever the machine.
pub fn ty(name: &str) -> Option<Type> {
    let int = |bits, signed| Some(Type::Int { bits, signed });
    match name {
        "word" | "L4_Word_t" | "l4_umword_t" | "l4_addr_t" | "l4_size_t" | "L4_Fpage_t" | "l4_fpage_t"
        | "L4_Time_t" | "l4_timeout_t" | "l4_offs_t" => int(64, false),
        "signed_word" | "L4_SignedWord_t" | "l4_mword_t" | "l4_ssize_t" => int(64, true),
        "L4_Word64_t" | "l4_uint64_t" | "L4_Clock_t" => int(64, false),
        "L4_Word32_t" | "l4_uint32_t" => int(32, false),
        "L4_Word16_t" | "l4_uint16_t" => int(16, false),
        "L4_Word8_t" | "l4_uint8_t" => int(8, false),
        "l4_int64_t" => int(64, true),
        "l4_int32_t" => int(32, true),
        "l4_int16_t" => int(16, true),
        "l4_int8_t" => int(8, true),
        "threadid" | "L4_ThreadId_t" | "l4_threadid_t" | "l4_taskid_t" => Some(Type::Object(None)),
        "flexpage" | "l4_snd_fpage_t" => Some(Type::Fpage),
        "refstring" | "string" => Some(Type::Str { wide: false, bound: None, shown: Shown::default() }),
        "octet" => Some(Type::Octet),
        _ => None,
    }
}

/// Whether a file that is imported is one of L4's headers, of which nothing but types is wanted that are known anyway.
pub fn is_header(name: &str) -> bool {
    name.ends_with(".h") && (name.starts_with("l4/") || name == "l4.h")
}

/// Warns of such a header that is not there.
pub fn warn_of_header(s: &mut Session, name: &str, span: Span) {
    let message = format!("the header `{name}` is not found; L4's own types are known without it");
    s.diags.push(Diagnostic::warning(Code::NotFound, span, message));
}

/// Attributes that stubs cannot follow, and why.
const WITHOUT_EFFECT: [(&[&str], &str); 6] = [
    (
        &["kernelmsg"],
        "messages of the kernel arrive where a server looks at whatever else comes; this operation is one like any other",
    ),
    (
        &["prealloc", "prealloc_client", "prealloc_server", "init_with_in", "init_rcvstring"],
        "who brings memory is the affair of what carries the messages",
    ),
    (
        &[
            "error_function",
            "error_function_client",
            "error_function_server",
            "default_function",
            "server_parameter",
        ],
        "a call returns how it ended, and a server's loop answers what no method is for",
    ),
    (&["allow_reply_only"], "a method that answers later is written without the loop"),
    (&["noopcode", "noexceptions", "no_interface_uuid"], "each message has a label, and no more than that"),
    (
        &["sched_donate", "dedicated_partner", "default_timeout"],
        "how ipc is done is the affair of what carries the messages",
    ),
];

/// Why an attribute has no effect, if it is one of these dialects.
pub fn without_effect(name: &str) -> Option<&'static str> {
    WITHOUT_EFFECT.iter().find(|(names, _)| names.contains(&name)).map(|(_, why)| *why)
}

/// Warns of an attribute without effect, where it stands first. Whether it is one.
pub fn warn(s: &mut Session, name: Symbol, span: Span) -> bool {
    let text = s.names.text(name);
    let Some(why) = without_effect(text).filter(|_| s.l4) else { return false };
    let message = format!("`{text}` has no effect: {why}");
    if s.told.insert(name) {
        s.diags.push(Diagnostic::warning(Code::Attribute, span, message));
    }
    true
}

/// Warns of a number for an operation, the first time.
pub fn warn_of_number(s: &mut Session, name: Symbol, span: Span) {
    let message = "the number of an operation has no effect: labels follow from the order of operations";
    if s.l4 && s.told.insert(name) {
        s.diags.push(Diagnostic::warning(Code::Attribute, span, message));
    }
}

/// Whether an attribute in brackets is known to these dialects.
pub fn is_known(name: &str) -> bool {
    without_effect(name).is_some() || ["uuid", "handle", "max_value"].contains(&name)
}

/// Number of an interface, and why a value is none. 0 is that of interfaces without one.
pub fn number(value: i128) -> Result<u16, String> {
    u16::try_from(value)
        .map_err(|_| format!("the number of an interface is a whole one from 0 to {}", u16::MAX))
}

/// Bits that matter of a number that is never greater than `most`, with the one for its sign.
pub fn bits(most: i128, signed: bool) -> i128 {
    i128::from(128 - most.max(1).leading_zeros() + u32::from(signed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greatest_values_have_bits() {
        assert_eq!(
            [(0, false), (1, false), (7, true), (255, false), (255, true)].map(|(n, s)| bits(n, s)),
            [1, 1, 4, 8, 9]
        );
    }

    #[test]
    fn all_marks_are_explained_or_mean_something() {
        let all = MARKS.iter().flat_map(|marks| marks.iter());
        let odd: Vec<_> =
            all.filter(|mark| **mark != "max_value" && without_effect(mark).is_none()).collect();
        assert!(odd.is_empty(), "{odd:?}");
    }
}
