//! Spelling: Rust's own names where a file hides them, names that Rust does not have, and its form of names of types.

use super::*;

/// Replaces the marks of Rust's own names (`__Vec`) by these, or by their full path where the file declares a name that
/// would hide them.
pub(super) fn spell_out(tokens: TokenStream, declared: &HashSet<String>) -> TokenStream {
    let mut out = TokenStream::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let inner = spell_out(group.stream(), declared);
                out.extend([TokenTree::Group(Group::new(group.delimiter(), inner))]);
            }
            TokenTree::Ident(ident) => {
                let text = ident.to_string();
                let path = text.strip_prefix("__").and_then(|short| {
                    let path = match short {
                        "Result" => "::core::result::Result",
                        "Option" => "::core::option::Option",
                        "Vec" => "::std::vec::Vec",
                        "Box" => "::std::boxed::Box",
                        "String" => "::std::string::String",
                        "From" => "::core::convert::From",
                        _ if PRIMITIVES.contains(&short) => "::core::primitive::",
                        _ => return None,
                    };
                    let own = if path.ends_with("::") { short } else { "" };
                    Some(if declared.contains(short) { format!("{path}{own}") } else { short.to_owned() })
                });
                match path {
                    Some(path) => out.extend(path.parse::<TokenStream>().unwrap_or_default()),
                    None => out.extend([TokenTree::Ident(ident)]),
                }
            }
            token => out.extend([token]),
        }
    }
    out
}

pub(super) const PRIMITIVES: [&str; 14] =
    ["bool", "char", "str", "usize", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64"];

/// Names keep the form that the interface file gives them, in each item: a file that is included has no place for something about all of it.
pub(super) fn allow(item: &mut syn::Item) {
    let attributes = match item {
        syn::Item::Const(item) => &mut item.attrs,
        syn::Item::Enum(item) => &mut item.attrs,
        syn::Item::Impl(item) => &mut item.attrs,
        syn::Item::Mod(item) => &mut item.attrs,
        syn::Item::Struct(item) => &mut item.attrs,
        syn::Item::Trait(item) => &mut item.attrs,
        syn::Item::Type(item) => &mut item.attrs,
        _ => return,
    };
    let allowed = syn::parse_quote! {
        #[allow(dead_code, non_snake_case, non_camel_case_types, non_upper_case_globals, unused_imports, unused_parens, clippy::all)]
    };
    attributes.insert(0, allowed);
}

/// A Rust name; keywords become raw. Modules and methods may still have a name that cannot be raw, which gets an underscore.
pub(super) fn name(text: &str) -> Ident {
    let text = &*names::escaped(text);
    // A keyword since the edition of 2024.
    if text == "gen" {
        return Ident::new_raw(text, Span::call_site());
    }
    syn::parse_str::<Ident>(text).unwrap_or_else(|_| {
        let clean = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if clean && starts { Ident::new_raw(text, Span::call_site()) } else { format_ident!("unnamed") }
    })
}

/// Name of a module in Rust: a keyword becomes raw, or gets an underscore where that cannot be.
pub fn module_name(text: &str) -> String {
    name(text).to_string()
}

/// The form that Rust gives the names of types.
pub(super) fn camel(text: &str) -> String {
    let mut out = String::new();
    for part in text.split('_').filter(|p| !p.is_empty()) {
        let (first, rest) = part.split_at(part.chars().next().map_or(0, char::len_utf8));
        out.push_str(&first.to_uppercase());
        out.push_str(rest);
    }
    if !out.starts_with(|c: char| c.is_ascii_alphabetic()) {
        out.insert(0, 'N');
    }
    out
}
