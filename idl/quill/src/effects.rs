//! Attributes and annotations that are understood and of which nothing comes, each with the reason: a warning says so, once for each
//! name, so that nobody waits for an effect. Those of L4's own dialects are in [`crate::l4`].

use crate::codes::Code;
use crate::diag::Diagnostic;
use crate::intern::Symbol;
use crate::session::Session;
use crate::source::Span;

/// Names, and the reason why nothing comes of them.
type Table = [(&'static [&'static str], &'static str)];

/// Attributes of DCE IDL and of its Microsoft descendant, in files and in attribute files.
const OF_DCE: &Table = &[
    (&["represent_as"], "stubs have the type that travels, and the program makes its own of it"),
    (&["allocate", "enable_allocate", "client_memory", "force_allocate", "byte_count", "heap"], MEMORY),
    (&["in_line", "out_of_line", "optimize"], "one stub is made of each operation"),
    (
        &["ignore", "partial_ignore"],
        "a value travels like any other one; one that is to stay behind is no part of the interface",
    ),
    (&["broadcast"], "a call goes to the one server that a client is bound to"),
    (&["notify", "notify_flag"], "a method is told by its own end that it has ended"),
    (&["reflect_deletions"], "memory of both sides is apart"),
    (&["encode", "decode"], "stubs are made for calls and not for values in files"),
    (&["code", "nocode"], "stubs of all operations are made, and those that nobody calls cost nothing"),
    (
        &["cs_char", "cs_stag", "cs_drtag", "cs_rtag"],
        "characters travel as they are, and whoever wants other ones converts them",
    ),
];

/// Attributes of Samba's dialect.
const OF_SAMBA: &Table = &[
    (&["value"], "the program gives this value like any other one"),
    (&["charset"], "characters travel as they are, and whoever wants other ones converts them"),
    (&["flag"], "the form of messages is the affair of what carries them"),
    (&["nopush", "nopull"], "values of all types are written and read by the stubs"),
    (
        &["skip", "skip_noinit"],
        "a value travels like any other one; one that is to stay behind is no part of the interface",
    ),
];

/// Attributes of Samba's dialect that say how a value lies in a message, which messages here cannot follow.
const REFUSED_OF_SAMBA: [(&str, &str); 6] = [
    ("subcontext", "the value with a length of its own before it (`subcontext`),"),
    ("compression", "the value that is made smaller (`compression`),"),
    ("relative", RELATIVE),
    ("relative_short", RELATIVE),
    ("relative_rap_convert", RELATIVE),
    ("nodiscriminant", "the union that does not say which branch it has (`nodiscriminant`),"),
];

/// How a pointer is called that is a distance.
const RELATIVE: &str = "the pointer that is a distance from another value (`relative`),";

/// Annotations of OMG IDL 4.2 and of DDS.
const OF_CORBA: &Table = &[
    (&["default", "default_literal"], "each value travels, so that none is left to its default"),
    (&["try_construct"], "a message with a value that its type does not have is refused as a whole"),
    (
        &["non_serialized"],
        "a value travels like any other one; one that is to stay behind is no part of the interface",
    ),
    (
        &["extensibility", "appendable", "mutable", "must_understand"],
        "a message has the members that the file says, no more and no fewer, and another one is refused",
    ),
    (&["verbatim", "copy_c", "copy_cpp"], "no text of the file becomes a part of stubs"),
    (&["ami"], "clients that wait for several answers at once are the program's own"),
];

/// Why attributes about memory have no effect.
const MEMORY: &str = "who brings memory is said by the program that calls a stub, when it runs";

fn reason(table: &Table, name: &str) -> Option<&'static str> {
    table
        .iter()
        .find(|(names, _)| names.iter().any(|known| known.eq_ignore_ascii_case(name)))
        .map(|(_, why)| *why)
}

/// Reason why nothing comes of an attribute of DCE's or Microsoft's, if that is so.
pub fn of_dce(name: &str) -> Option<&'static str> {
    reason(OF_DCE, name)
}

/// Warns of an attribute of DCE's or Microsoft's without effect, where it stands first. Whether it is one.
pub fn warn_in_dce(s: &mut Session, name: Symbol, span: Span) -> bool {
    let why = of_dce(s.names.text(name));
    warn(s, why, (name, span), "")
}

/// Warns of an attribute of Samba's without effect, where it stands first.
pub fn warn_in_samba(s: &mut Session, name: Symbol, span: Span) {
    let why = reason(OF_SAMBA, s.names.text(name));
    warn(s, why, (name, span), "");
}

/// Warns of an annotation without effect, where it stands first. Whether it is one.
pub fn warn_in_corba(s: &mut Session, name: Symbol, span: Span) -> bool {
    let why = reason(OF_CORBA, s.names.text(name));
    warn(s, why, (name, span), "@")
}

fn warn(s: &mut Session, why: Option<&str>, (name, span): (Symbol, Span), sign: &str) -> bool {
    let Some(why) = why else { return false };
    if s.told.insert(name) {
        let message = format!("`{sign}{}` has no effect: {why}", s.names.text(name));
        s.diags.push(Diagnostic::warning(Code::Attribute, span, message));
    }
    true
}

/// How a value with an attribute of Samba's is called that stubs cannot carry, if it has one.
pub fn refused_in_samba<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    names.find_map(|name| REFUSED_OF_SAMBA.iter().find(|(known, _)| *known == name).map(|(_, what)| *what))
}
