//! What an interface says about a parameter besides its type: attributes for microkernels, as IDL4 has them. In DCE they
//! stand in brackets, in CORBA they are annotations.
//!
//! | | |
//! |---|---|
//! | `max_size(n)` | at most so many elements or characters: a bound, as if it stood in the type |
//! | `typ_size(n)` | so many most of the time; the layout decides by it where a list travels |
//! | `relevant_bits(n)` | only the lowest bits matter: the number has the narrowest type that holds them |
//! | `caches(n)` | its content is to take new lines of the caches nearest to the processor only, of so many levels |
//! | `map` | of a flexpage: the sender keeps the pages, too, and can take them back |
//! | `grant` | of a flexpage: the sender loses them; with neither, the flexpage itself says what happens |
//! | `copy_on_write` | the pages of this list may be shown to the receiver instead of copied, and are copied when somebody writes |
//! | `map`, `grant` | of a reference to an object, through doors: the sender keeps one, too, or loses it; with neither it keeps one |
//!
//! The others mean something that no kernel part can do yet. They are no mistakes, so a file with them is accepted; stubs
//! are refused by name, rather than made as if nothing had been said.

use crate::l4;
use crate::model::{Direction, Model, Param, Type};

/// Attributes with a number.
pub const SIZES: [&str; 4] = ["max_size", "typ_size", "relevant_bits", "caches"];

/// Attributes that stubs cannot follow, and why.
const UNSUPPORTED: [(&str, &str); 5] = [
    (
        COPY_ON_WRITE,
        "only a sequence of octets that goes to the server, and not back, can be shown as it lies",
    ),
    ("flat", "a union is flat or not where it is declared, for all its parameters"),
    ("fpage", "pages are handed over by a parameter of the type `fpage`"),
    ("map", "only a flexpage or a reference to an object is handed over"),
    ("grant", "only a flexpage or a reference to an object is handed over"),
];

/// The attribute of a list whose pages may be shown instead of copied.
const COPY_ON_WRITE: &str = "copy_on_write";

/// No processor has more levels of caches.
const CACHE_LEVELS_MAX: u8 = 8;

/// Whether an attribute is one of those here. They belong to parameters.
pub fn is_known(name: &str) -> bool {
    SIZES.contains(&name) || UNSUPPORTED.iter().any(|(unsupported, _)| *unsupported == name)
}

/// What is said of `flat` where nothing comes of it.
pub fn flat_for_nothing(name: &str) -> String {
    format!("`flat` is for unions without a discriminator and has no effect on `{name}`")
}

/// Why there can be no stub for an operation with a parameter that has such an attribute.
pub fn refusal(param: &Param) -> Option<String> {
    let (name, why) = UNSUPPORTED.iter().find(|(name, _)| param.unsupported == Some(name))?;
    Some(format!("`{}` has the attribute `{name}`: {why}", param.name))
}

/// Gives a parameter an attribute without a number: a way to hand pages over, or one that stubs cannot follow.
pub fn mark(model: &Model, param: &mut Param, name: &str) {
    if let ("map" | "grant", Type::Fpage | Type::Object(_)) = (name, model.ty(model.resolved(param.ty))) {
        param.grant = Some(name == "grant");
        return;
    }
    if let ("flat", Type::Flat(..)) = (name, model.ty(model.resolved(param.ty))) {
        return;
    }
    if name == COPY_ON_WRITE && param.direction == Direction::In && is_octets(model, param) {
        param.copy_on_write = true;
        return;
    }
    let known = UNSUPPORTED.iter().find(|(unsupported, _)| *unsupported == name);
    param.unsupported = known.map(|(name, _)| *name).or(param.unsupported);
}

/// Whether a parameter is a sequence of bytes without meaning.
fn is_octets(model: &Model, param: &Param) -> bool {
    match model.ty(model.resolved(param.ty)) {
        Type::Sequence(of, _) => *model.ty(model.resolved(*of)) == Type::Octet,
        _ => false,
    }
}

/// Gives a number the type of those bits that matter if it is never greater than `most`. The error is a message.
pub fn max_value(model: &mut Model, param: &mut Param, most: i128) -> Result<(), String> {
    let signed = match model.ty(model.resolved(param.ty)) {
        Type::Int { signed, .. } => *signed,
        Type::Char | Type::Octet | Type::Error => return Ok(()),
        _ => return Err("`max_value` is for whole numbers".into()),
    };
    if most < 0 {
        return Err("`max_value` takes a whole number from 0 on".into());
    }
    apply(model, param, "relevant_bits", l4::bits(most, signed).min(64))
}

/// Gives a parameter one of the attributes of [`SIZES`]. The error is a message.
pub fn apply(model: &mut Model, param: &mut Param, name: &str, value: i128) -> Result<(), String> {
    let ty = model.ty(model.resolved(param.ty)).clone();
    if let Type::Error | Type::Foreign(..) = ty {
        return Ok(());
    }
    let (least, limit) = match name {
        "relevant_bits" => (1, 64),
        "caches" => (0, CACHE_LEVELS_MAX.into()),
        _ => (1, u32::MAX.into()),
    };
    let Some(number) = u64::try_from(value).ok().filter(|n| (least..=limit).contains(n)) else {
        return Err(format!("`{name}` takes a whole number from {least} to {limit}"));
    };
    if name == "caches" {
        param.caches = u8::try_from(number).ok();
        return Ok(());
    }
    let smaller = |bound: Option<u64>| Some(bound.map_or(number, |bound| bound.min(number)));
    let new = match (name, ty) {
        ("max_size", Type::Str { wide, bound, shown }) => Type::Str { wide, bound: smaller(bound), shown },
        ("max_size", Type::Sequence(of, bound)) => Type::Sequence(of, smaller(bound)),
        ("typ_size", Type::Str { .. } | Type::Sequence(..)) => {
            param.typical = Some(number);
            return Ok(());
        }
        ("relevant_bits", Type::Int { bits, signed }) => {
            let narrow = [8u8, 16, 32, 64].into_iter().find(|&narrow| u64::from(narrow) >= number);
            Type::Int { bits: narrow.map_or(bits, |narrow| narrow.min(bits)), signed }
        }
        ("relevant_bits", _) => return Err(format!("`{name}` is for whole numbers")),
        _ => return Err(format!("`{name}` is for strings and sequences")),
    };
    param.ty = model.add(new);
    Ok(())
}
