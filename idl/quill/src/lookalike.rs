//! Languages that share the suffix `.idl` and are none of ours.
//!
//! A file of such a language fails with dozens of errors that help nobody. [`find`] looks for what only that language
//! has, and [`crate::driver`] then says its name instead. It is asked only about files that were rejected, so a word
//! that is also a sensible name can do no harm.

use crate::lex::{Kind, Token};
use crate::session::Session;
use crate::source::Span;

/// A language that was recognised, and the place that gave it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookalike {
    /// What it is called.
    pub name: &'static str,
    /// The place.
    pub span: Span,
}

/// The first sign of another language in the files of a run.
pub fn find(session: &Session, tokens: &[Token]) -> Option<Lookalike> {
    let word = |i: usize| match tokens.get(i) {
        Some(token) if matches!(token.kind, Kind::Ident | Kind::Punct) => session.names.text(token.text),
        _ => "",
    };
    let is = |i: usize, kind: Kind| tokens.get(i).is_some_and(|t| t.kind == kind);
    (0..tokens.len()).find_map(|i| {
        let sign = tokens[i];
        let name = match (word(i), word(i + 1), word(i + 2)) {
            ("%", "{", "C") if sign.line_start => "XPIDL",
            ("[", "scriptable" | "noscript" | "builtinclass", "," | "]") => "XPIDL",
            ("nsISupports", ..) => "XPIDL",
            ("[", "Exposed", "=") | ("partial", "interface" | "dictionary" | "namespace", _) => "Web IDL",
            ("interface", "mixin", _) | ("callback", "interface", _) => "Web IDL",
            ("dictionary", _, "{" | ":") if is(i + 1, Kind::Ident) => "Web IDL",
            ("enum", _, "{") if is(i + 3, Kind::Str) => "Web IDL",
            ("callback", _, "=") | (_, "includes", _) if is(i, Kind::Ident) && word(i + 3) == ";" => {
                "Web IDL"
            }
            ("DOMString" | "USVString" | "Promise", ..) => "Web IDL",
            (
                "published",
                "interface" | "exception" | "service" | "singleton" | "struct" | "enum" | "constants"
                | "typedef",
                _,
            ) => "UNO IDL",
            ("service" | "singleton" | "constants", _, ":" | "{" | ";") if is(i + 1, Kind::Ident) => {
                "UNO IDL"
            }
            ("{", "get", ";") | ("{", "set", ";") => "MIDL 3.0",
            ("quote", "(", "mli" | "ml" | "mlmli" | "h" | "c") => "CamlIDL",
            ("quote", "(", _) if is(i + 2, Kind::Str) => "CamlIDL",
            ("sequenceable", _, "." | ";" | "..") => "OpenHarmony IDL",
            _ => return None,
        };
        Some(Lookalike { name, span: sign.span })
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::driver::compile_text;
    use crate::session::Options;

    /// Checks that a rejected text gets exactly one message, which names the language; `""`: it is accepted.
    fn check(text: &str, name: &str) {
        let out = compile_text(Path::new("t.idl"), text.as_bytes(), Options::default());
        let messages = out.messages();
        assert_eq!(out.accepted(), name.is_empty(), "{text}\n{messages}");
        if !name.is_empty() {
            assert_eq!(out.session.diags.errors(), 1, "{text}\n{messages}");
            assert!(messages.contains(&format!("this is {name}")), "{text}\n{messages}");
        }
    }

    #[test]
    fn other_languages() {
        check("%{C++\nclass X;\n%}\ninterface nsIX : nsISupports { void f(in AString s); };", "XPIDL");
        check("[scriptable, uuid(1)] interface nsIX { attribute jsval v; };", "XPIDL");
        check("[Exposed=Window] interface Node : EventTarget { undefined f(DOMString s); };", "Web IDL");
        check("dictionary Init : Base { boolean bubbles = false; };", "Web IDL");
        check("enum Mode { \"open\", \"closed\" };", "Web IDL");
        check("Document includes ParentNode;", "Web IDL");
        check("module a { published interface XB: ::a::XA { void f( [in] long n ); }; };", "UNO IDL");
        check("module a { service B : XC; };", "UNO IDL");
        check("namespace A { runtimeclass B { String Name { get; }; } }", "MIDL 3.0");
        check("quote(mli, \"x\") struct s { int x; };", "CamlIDL");
        // Words that mean nothing special in a file that is one of ours.
        check("struct service { long published; }; struct X { service constants; };", "");
        check("typedef long DOMString; interface mixin { void f(in DOMString includes); };", "");
    }
}
