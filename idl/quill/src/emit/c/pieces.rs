//! How values are written and read piece by piece, whatever carries them: statements for a value, functions for each declared type that needs one.

use std::collections::HashSet;

use super::agree;
use super::release::{self, each};
use super::tree::{Expr, Item, Stmt, Ty, call, name};
use super::{Emitter, word};
use crate::layout::{Leaf, Message, Slot};
use crate::model::{Type, TypeId, bits_of, most_units};

/// A bound as an argument.
pub fn bound(bound: Option<u64>) -> Expr {
    bound.map_or_else(|| name("UINT64_MAX"), |b| Expr::Int(b.into()))
}

/// The condition under which the parts of an `any` do not go together.
pub fn unsound(any: Expr) -> Expr {
    Expr::Not(Box::new(call("quill_any_is_sound", [any.address()])))
}

/// Those among the values of a message that are an `any` and have been taken apart.
pub fn anys<'m>(e: &'m Emitter, message: &'m Message) -> impl Iterator<Item = &'m [String]> {
    let kind = |slot: &&Slot| matches!(slot.leaf, Leaf::Value(ty) if e.model.is_any_kind(ty));
    message.slots.iter().filter(kind).filter_map(|slot| Some(slot.path.split_last()?.1))
}

/// Statements about what has been read, which is nothing if something was wrong.
pub fn unless_failed(body: Vec<Stmt>) -> Option<Stmt> {
    let good = Expr::Not(Box::new(name("_in").deref().field("failed")));
    (!body.is_empty()).then_some(Stmt::If(good, body))
}

/// Gives a message up.
pub fn failed() -> Stmt {
    Stmt::Set(name("_in").deref().field("failed"), name("true"))
}

/// The number of elements or bytes of a string or sequence.
pub fn count(e: &Emitter, ty: TypeId, value: Expr) -> Expr {
    match e.kind(ty) {
        Type::Str { .. } if !e.counted(ty) => call("quill_bytes_of", [value]).cast(Ty::named("uint32_t")),
        _ => value.field("_length"),
    }
}

/// Statements that refuse a string or sequence that is too long.
pub fn check(e: &Emitter, ty: TypeId, value: Expr) -> Vec<Stmt> {
    match e.kind(ty) {
        Type::Str { bound: b, .. } if e.counted(ty) => {
            let (text, length) = (value.clone().field("_buffer"), value.field("_length"));
            vec![Stmt::Do(call("quill_check_counted", [name("_out"), text, length, bound(*b)]))]
        }
        Type::Str { bound: b, .. } => {
            vec![Stmt::Do(call("quill_check_text", [name("_out"), value, bound(*b)]))]
        }
        Type::Sequence(_, Some(b)) => {
            let fail = Stmt::Do(call("quill_fail", [name("_out"), name("QUILL_TOO_LONG")]));
            vec![Stmt::If(value.field("_length").with(">", Expr::Int((*b).into())), vec![fail])]
        }
        _ => Vec::new(),
    }
}

/// The functions for numbers of a type, by the end of their names, and the type they have.
fn number(e: &Emitter, ty: TypeId) -> Option<String> {
    Some(match e.kind(ty) {
        Type::Bool => "bool".into(),
        Type::Octet | Type::Char => "u8".into(),
        Type::WideChar => "wchar".into(),
        Type::Int { bits, signed } => format!("{}{bits}", if *signed { "i" } else { "u" }),
        Type::Float(bits) => format!("f{bits}"),
        Type::Enum(..) => "u32".into(),
        Type::Bitmask(_, bits, _) => format!("u{bits}"),
        Type::Fixed(..) => "i64".into(),
        // Where it is not handed over beside all values, it is a number.
        Type::Object(_) if !e.is_handed(ty) => "u64".into(),
        _ => return None,
    })
}

/// The condition under which a number is no value of its type.
pub fn wrong(e: &Emitter, ty: TypeId, value: Expr) -> Option<Expr> {
    match e.kind(ty) {
        Type::Enum(_, members) => Some(e.no_member(ty, members, value)),
        Type::Fixed(_, digits, _) => {
            let most = i128::from(most_units(*digits));
            let below = value.clone().with("<", Expr::Int(-most));
            Some(below.with("||", value.with(">", Expr::Int(most))))
        }
        Type::Bitmask(_, bits, members) => {
            let none = u128::from(!bits_of(members)) & ((1u128 << bits) - 1);
            (none != 0).then(|| value.with("&", Expr::Int(none as i128)).with("!=", Expr::Int(0)))
        }
        _ => None,
    }
}

/// The condition under which the bits of a number, at which nothing else looks, are no value of its type.
pub fn wrong_bits(e: &Emitter, ty: TypeId, value: &Expr) -> Option<Expr> {
    match e.kind(ty) {
        Type::WideChar => Some(Expr::Not(Box::new(call("quill_is_scalar", [value.clone()])))),
        _ => wrong(e, ty, value.clone()),
    }
}

/// The address of a value's first byte; an array is one.
pub fn start(e: &Emitter, ty: TypeId, value: Expr) -> Expr {
    if matches!(e.kind(ty), Type::Array(..)) { value } else { value.address() }
}

/// Statements that write a value to `_out`.
pub fn put(e: &Emitter, ty: TypeId, value: Expr, depth: usize) -> Vec<Stmt> {
    let out = || name("_out");
    if let Some(number) = number(e, ty) {
        let mut body = Vec::new();
        if let Some(wrong) = wrong(e, ty, value.clone()) {
            let fail = Stmt::Do(call("quill_fail", [out(), name("QUILL_MALFORMED")]));
            body.push(Stmt::If(wrong, vec![fail]));
        }
        let value = if matches!(e.kind(ty), Type::Char) { value.cast(Ty::named("uint8_t")) } else { value };
        body.push(Stmt::Do(call(format!("quill_put_{number}"), [out(), value])));
        return body;
    }
    match e.kind(ty) {
        Type::Str { .. } => {
            let mut body = check(e, ty, value.clone());
            body.push(Stmt::Do(if e.counted(ty) {
                let text = [out(), value.clone().field("_buffer"), value.field("_length")];
                call("quill_put_counted", text)
            } else {
                call("quill_put_string", [out(), value])
            }));
            body
        }
        Type::Object(_) => {
            let reference = ["number", "view"].map(|field| value.clone().field(field));
            vec![Stmt::Do(call("quill_put_reference", [out()].into_iter().chain(reference)))]
        }
        Type::Array(of, dims) => each(dims, value, depth, &|element, depth| put(e, *of, element, depth)),
        Type::Shared(of) if e.shared(ty).is_some() => put_shared(e, *of, value, depth),
        Type::Optional(of) | Type::Shared(of) => put_optional(e, *of, value, depth),
        _ => vec![Stmt::Do(call(format!("quill_put_{}", e.mangled(ty)), [out(), value.address()]))],
    }
}

/// Statements that read a value from `_in`.
pub fn get(e: &Emitter, ty: TypeId, place: Expr, depth: usize) -> Vec<Stmt> {
    let from = || name("_in");
    if let Some(number) = number(e, ty) {
        let value = call(format!("quill_get_{number}"), [from()]);
        let value = if matches!(e.kind(ty), Type::Char) { value.cast(Ty::named("char")) } else { value };
        let mut body = vec![Stmt::Set(place.clone(), value)];
        if let Some(wrong) = wrong(e, ty, place) {
            body.push(Stmt::If(wrong, vec![Stmt::Set(from().deref().field("failed"), name("true"))]));
        }
        return body;
    }
    match e.kind(ty) {
        Type::Str { bound: b, .. } if e.counted(ty) => {
            let (text, length) = (place.clone().field("_buffer"), place.field("_length").address());
            vec![if e.text_inside(ty) {
                Stmt::Do(call("quill_get_counted_inside", [from(), text, length, bound(*b)]))
            } else {
                Stmt::Set(text, call("quill_get_counted", [from(), length, bound(*b)]))
            }]
        }
        Type::Str { bound: b, .. } if e.text_inside(ty) => {
            vec![Stmt::Do(call("quill_get_inside", [from(), place, bound(*b)]))]
        }
        Type::Str { bound: b, .. } => {
            vec![Stmt::Set(place, call("quill_get_string", [from(), bound(*b)]))]
        }
        Type::Object(_) => {
            let reference = ["number", "view"].map(|field| place.clone().field(field).address());
            vec![Stmt::Do(call("quill_get_reference", [from()].into_iter().chain(reference)))]
        }
        Type::Array(of, dims) => each(dims, place, depth, &|element, depth| get(e, *of, element, depth)),
        Type::Shared(of) if e.shared(ty).is_some() => get_shared(e, *of, place, depth),
        Type::Optional(of) | Type::Shared(of) => get_optional(e, *of, place, depth),
        _ => vec![Stmt::Do(call(format!("quill_get_{}", e.mangled(ty)), [from(), place.address()]))],
    }
}

/// Statements that write a value that may be absent.
fn put_optional(e: &Emitter, of: TypeId, value: Expr, depth: usize) -> Vec<Stmt> {
    let out = || name("_out");
    let there = || value.clone().with("!=", name("NULL"));
    let mut body = vec![Stmt::Do(call("quill_put_bool", [out(), there()]))];
    if e.is_text_pointer(of) {
        body.push(Stmt::If(there(), put(e, of, value.clone(), depth)));
        return body;
    }
    let mut inner = put(e, of, value.clone().deref(), depth);
    inner.push(Stmt::Do(call("quill_put_leave", [out()])));
    body.push(Stmt::If(there().with("&&", call("quill_put_enter", [out()])), inner));
    body
}

/// Statements that read a value that may be absent.
fn get_optional(e: &Emitter, of: TypeId, place: Expr, depth: usize) -> Vec<Stmt> {
    let from = || name("_in");
    let there = call("quill_get_bool", [from()]);
    let nothing = Stmt::Set(place.clone(), name("NULL"));
    if e.is_text_pointer(of) {
        return vec![nothing, Stmt::If(there, get(e, of, place, depth))];
    }
    let size = call("sizeof", [place.clone().deref()]);
    let room = call("quill_get_room", [from(), Expr::Int(1), Expr::Int(least(e, of, 0).into()), size]);
    let inner = vec![
        Stmt::Set(place.clone(), room),
        Stmt::If(place.clone().with("!=", name("NULL")), get(e, of, place.deref(), depth)),
        Stmt::Do(call("quill_leave", [from()])),
    ];
    vec![nothing, Stmt::If(there.with("&&", call("quill_enter", [from()])), inner)]
}

/// Number of a type among those of which values may be shared, the same in all headers.
fn kind(e: &Emitter, of: TypeId) -> Expr {
    name(format!("0x{:x}ull", crate::layout::interface_id(&e.mangled(of))))
}

/// Statements that write a value that others may share.
fn put_shared(e: &Emitter, of: TypeId, value: Expr, depth: usize) -> Vec<Stmt> {
    let inner = if e.is_text_pointer(of) { value.clone() } else { value.clone().deref() };
    let mut body = put(e, of, inner, depth);
    body.push(Stmt::Do(call("quill_put_shared_end", [name("_out")])));
    vec![Stmt::If(call("quill_put_shared", [name("_out"), value, kind(e, of)]), body)]
}

/// Statements that read a value that others may share.
fn get_shared(e: &Emitter, of: TypeId, place: Expr, depth: usize) -> Vec<Stmt> {
    let from = || name("_in");
    let there = || place.clone().with("!=", name("NULL"));
    let mut body = vec![Stmt::Set(place.clone(), call("quill_get_shared", [from(), kind(e, of)]))];
    let mut fresh = if e.is_text_pointer(of) {
        body.extend(if_any(there(), look_again(e, of, place.clone(), depth)));
        get(e, of, place.clone(), depth)
    } else {
        body.extend(if_any(there(), look_again(e, of, place.clone().deref(), depth)));
        let size = call("sizeof", [place.clone().deref()]);
        let room = call("quill_get_room", [from(), Expr::Int(1), Expr::Int(least(e, of, 0).into()), size]);
        vec![Stmt::Set(place.clone(), room), Stmt::If(there(), get(e, of, place.clone().deref(), depth))]
    };
    fresh.push(Stmt::Do(call("quill_get_shared_end", [from(), place.clone()])));
    body.push(Stmt::If(call("quill_is_fresh", [from()]), fresh));
    body
}

fn if_any(condition: Expr, body: Vec<Stmt>) -> Option<Stmt> {
    (!body.is_empty()).then_some(Stmt::If(condition, body))
}

/// Statements that take notice of what is looked at once more when something agrees with it: lists and texts, as far as declared types.
fn look_again(e: &Emitter, of: TypeId, value: Expr, depth: usize) -> Vec<Stmt> {
    let again = |bytes: Expr| Stmt::Do(call("quill_look_again", [name("_in"), bytes]));
    match e.kind(of) {
        Type::Str { .. } => vec![again(count(e, of, value))],
        Type::Sequence(element, _) => {
            let (each, index) = (element_of(&value), format!("_w{depth}"));
            let length = value.clone().field("_length");
            let size = call("sizeof", [each]);
            let mut body = vec![again(length.clone().cast(Ty::named("uint64_t")).with("*", size))];
            let inner = look_again(e, *element, value.field("_buffer").index(name(&index)), depth + 1);
            if !inner.is_empty() {
                body.push(Stmt::For(index, length, inner));
            }
            body
        }
        Type::Array(element, dims) => {
            match look_again(e, *element, value.clone(), depth + dims.len()).is_empty() {
                true => Vec::new(),
                false => each(dims, value, depth, &|value, depth| look_again(e, *element, value, depth)),
            }
        }
        Type::Optional(inner) | Type::Shared(inner) => {
            let there = value.clone().with("!=", name("NULL"));
            let behind = if e.is_text_pointer(*inner) { value } else { value.deref() };
            if_any(there, look_again(e, *inner, behind, depth)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The fewest bytes of a value in a message: how many of them a message can hold at most.
fn least(e: &Emitter, ty: TypeId, depth: usize) -> u64 {
    if let Some(fixed) = e.sizes.fixed(ty).filter(|_| !e.refers(ty)) {
        return fixed.size;
    }
    if depth > 8 {
        return 1;
    }
    match e.kind(ty) {
        Type::Str { .. } | Type::Sequence(..) => 4,
        Type::Struct(_, fields) => fields.iter().map(|f| least(e, f.ty, depth + 1)).sum::<u64>().max(1),
        Type::Union { switch, .. } => least(e, *switch, depth + 1),
        Type::Array(of, dims) => dims.iter().product::<u64>().saturating_mul(least(e, *of, depth + 1)).max(1),
        _ => 1,
    }
}

/// Functions for those structs, unions and sequences that can travel and are `wanted`.
pub fn functions(e: &Emitter, wanted: impl Fn(TypeId) -> bool) -> Vec<Item> {
    let (mut prototypes, mut functions) = (Vec::new(), Vec::new());
    let mut done = HashSet::new();
    for index in 0..e.model.types_len() {
        let id = TypeId(index as u32);
        if !e.travels[index] || e.model.resolved(id) != id || !wanted(id) {
            continue;
        }
        let made = match e.model.ty(id) {
            Type::Struct(..) => structure(e, id),
            Type::Flat(..) => flat(e, id),
            Type::Union { .. } => union(e, id),
            Type::Sequence(..) => sequence(e, id),
            _ => continue,
        };
        if !done.insert(e.mangled(id)) {
            continue;
        }
        let void = || Ty::named("void");
        let mut items = Vec::new();
        for (function, parameters, body) in made.into_iter().chain(release::function(e, id)) {
            prototypes.push(Item::Prototype(void(), function.clone(), parameters.clone()));
            items.push(Item::Function(void(), function, parameters, body));
        }
        let is_everywhere = e.model.is_any(id) || e.shared_guard(id).is_some();
        if matches!(e.model.ty(id), Type::Sequence(..)) || is_everywhere {
            functions.push(Item::Once(format!("QUILL_VALUES_{}", e.mangled(id)), items));
        } else {
            functions.append(&mut items);
        }
    }
    prototypes.into_iter().chain(functions).collect()
}

type Function = (String, Vec<(Ty, String)>, Vec<Stmt>);

/// A function that writes and one that reads.
fn pair(e: &Emitter, id: TypeId, put: Vec<Stmt>, get: Vec<Stmt>) -> [Function; 2] {
    let mangled = e.mangled(id);
    let out = (Ty::named("quill_out").to(), "_out".to_owned());
    let from = (Ty::named("quill_in").to(), "_in".to_owned());
    let value = (e.ty(id).to().constant(), "_value".to_owned());
    let place = (e.ty(id).to(), "_value".to_owned());
    [
        (format!("quill_put_{mangled}"), vec![out, value], put),
        (format!("quill_get_{mangled}"), vec![from, place], get),
    ]
}

fn structure(e: &Emitter, id: TypeId) -> Vec<Function> {
    let Type::Struct(_, fields) = e.model.ty(id) else { return Vec::new() };
    let value = || name("_value").deref();
    let (mut puts, mut gets) = (Vec::new(), Vec::new());
    // Fixed-size structs begin and end aligned, so that an array of them has the same distance between all.
    let align = e.sizes.fixed(id).map(|f| Expr::Int(f.align.into()));
    let ends = |function: &str, message: &str| {
        align.clone().map(|align| Stmt::Do(call(function, [name(message), align])))
    };
    puts.extend(ends("quill_put_align", "_out"));
    gets.extend(ends("quill_get_align", "_in"));
    let refuse = || Stmt::Do(call("quill_fail", [name("_out"), name("QUILL_TOO_LONG")]));
    puts.extend(agree::own_fields(e, id, &value(), &refuse));
    for field in fields {
        let place = value().field(word(&field.name));
        puts.extend(put(e, field.ty, place.clone(), 0));
        gets.extend(get(e, field.ty, place, 0));
    }
    if fields.is_empty() {
        puts.extend([
            Stmt::Do(name("_value").cast(Ty::named("void"))),
            Stmt::Do(call("quill_put_u8", [name("_out"), Expr::Int(0)])),
        ]);
        gets.push(Stmt::Set(
            value().field("_nothing"),
            call("quill_get_u8", [name("_in")]).cast(Ty::named("char")),
        ));
    }
    puts.extend(ends("quill_put_align", "_out"));
    gets.extend(ends("quill_get_align", "_in"));
    gets.extend(unless_failed(agree::own_fields(e, id, &value(), &failed)));
    if e.model.is_any(id) {
        let fail = call("quill_fail", [name("_out"), name("QUILL_MALFORMED")]);
        puts.insert(0, Stmt::If(unsound(value()), vec![Stmt::Do(fail)]));
        gets.push(Stmt::If(unsound(value()), vec![failed()]));
    }
    pair(e, id, puts, gets).into()
}

/// A flat union: its bytes, of which all are values.
fn flat(e: &Emitter, id: TypeId) -> Vec<Function> {
    let Some(fixed) = e.sizes.fixed(id) else { return Vec::new() };
    let align = Expr::Int(fixed.align.into());
    let bits = name("_value").deref().field("_bits");
    let size = Expr::Int(fixed.size.into());
    let puts = vec![
        Stmt::Do(call("quill_put_align", [name("_out"), align.clone()])),
        Stmt::Do(call("quill_put", [name("_out"), bits.clone(), size.clone()])),
    ];
    let gets = vec![
        Stmt::Do(call("quill_get_align", [name("_in"), align])),
        Stmt::Do(call("quill_get_bytes", [name("_in"), bits, size])),
    ];
    pair(e, id, puts, gets).into()
}

fn union(e: &Emitter, id: TypeId) -> Vec<Function> {
    let Type::Union { switch, branches, .. } = e.model.ty(id) else { return Vec::new() };
    let value = || name("_value").deref();
    let mut puts = put(e, *switch, value().field("_d"), 0);
    let mut gets = get(e, *switch, value().field("_d"), 0);
    let (mut put_cases, mut get_cases) = (Vec::new(), Vec::new());
    let (mut put_rest, mut get_rest) = (Vec::new(), Vec::new());
    for branch in branches {
        let place = value().field("_u").field(word(&branch.field.name));
        let (put, get) = (put(e, branch.field.ty, place.clone(), 0), get(e, branch.field.ty, place, 0));
        let labels = branch.labels.clone();
        if branch.is_default {
            (put_rest, get_rest) = (put.clone(), get.clone());
        }
        if !labels.is_empty() {
            put_cases.push((labels.clone(), put));
            get_cases.push((labels, get));
        }
    }
    // A message that is wrong already has no discriminator to go by.
    gets.push(Stmt::If(name("_in").deref().field("failed"), vec![Stmt::Return(None)]));
    let discriminator = || e.discriminator(*switch, value().field("_d"));
    puts.push(Stmt::Switch(discriminator(), put_cases, put_rest));
    gets.push(Stmt::Switch(discriminator(), get_cases, get_rest));
    pair(e, id, puts, gets).into()
}

/// Bytes of a number of which any are a value: a list of such is copied as it lies.
fn plain_bytes(e: &Emitter, of: TypeId) -> Option<u64> {
    match e.kind(of) {
        Type::Octet | Type::Char => Some(1),
        Type::Int { bits, .. } | Type::Float(bits) => Some(u64::from(*bits) / 8),
        _ => None,
    }
}

/// A statement that copies so many numbers of that size, if there are any: nothing is aligned where nothing follows.
fn copied(message: &str, [align, copy]: [&str; 2], list: Expr, (count, size): (Expr, u64)) -> Stmt {
    let bytes = count.clone().cast(Ty::named("size_t")).with("*", Expr::Int(size.into()));
    let body = vec![
        Stmt::Do(call(align, [name(message), Expr::Int(size.into())])),
        Stmt::Do(call(copy, [name(message), list, bytes])),
    ];
    Stmt::If(count.with(">", Expr::Int(0)), body)
}

fn sequence(e: &Emitter, id: TypeId) -> Vec<Function> {
    let Type::Sequence(of, b) = e.model.ty(id) else { return Vec::new() };
    let mangled = e.mangled(id);
    let value = || name("_value").deref();
    let from = || name("_in");
    let element = || value().field("_buffer").index(name("_e"));
    let plain = plain_bytes(e, *of);
    let length = || value().field("_length");
    let put_elements = vec![match plain {
        Some(size) => {
            let functions = ["quill_put_align", "quill_put"];
            copied("_out", functions, value().field("_buffer"), (length(), size))
        }
        None => Stmt::For("_e".into(), length(), put(e, *of, element(), 0)),
    }];
    let mut get_elements = Vec::new();
    let failed = || from().deref().field("failed");
    if let Some(b) = b {
        let too_many = name("_count").with(">", Expr::Int((*b).into()));
        get_elements.push(Stmt::If(too_many, vec![Stmt::Set(failed(), name("true"))]));
    }
    get_elements.push(Stmt::Set(value().field("_length"), Expr::Int(0)));
    if !e.inside(*b) {
        let wire = Expr::Int(least(e, *of, 0).into());
        let size = call("sizeof", [element_of(&value())]);
        let room = call("quill_get_room", [from(), name("_count"), wire, size]);
        get_elements.push(Stmt::Set(value().field("_buffer"), room));
    }
    get_elements.extend([
        Stmt::If(failed(), vec![Stmt::Return(None)]),
        Stmt::Set(length(), name("_count")),
        match plain {
            Some(size) => {
                let functions = ["quill_get_align", "quill_get_bytes"];
                copied("_in", functions, value().field("_buffer"), (name("_count"), size))
            }
            None => Stmt::For("_e".into(), name("_count"), {
                let mut body = get(e, *of, element(), 0);
                body.push(Stmt::If(failed(), vec![Stmt::Return(None)]));
                body
            }),
        },
    ]);
    let mut puts = check(e, id, value());
    if e.inside(*b) {
        // Whatever its length says, there is no more.
        let failed = name("_out").deref().field("status").with("!=", name("QUILL_OK"));
        puts.push(Stmt::If(failed, vec![Stmt::Return(None)]));
    }
    puts.push(Stmt::Do(call("quill_put_u32", [name("_out"), value().field("_length")])));
    puts.push(Stmt::Do(call(format!("quill_put_elements_{mangled}"), [name("_out"), name("_value")])));
    let count = Stmt::Let(Ty::named("uint32_t"), "_count".into(), Some(call("quill_get_u32", [from()])));
    let elements = call(format!("quill_get_elements_{mangled}"), [from(), name("_value"), name("_count")]);
    let leave = Stmt::Do(call("quill_leave", [from()]));
    // A list that lies in its value cannot contain itself.
    let gets = if e.inside(*b) {
        vec![count, Stmt::Do(elements)]
    } else {
        vec![count, Stmt::If(call("quill_enter", [from()]), vec![Stmt::Do(elements), leave])]
    };
    let mut functions = pair(e, id, put_elements, get_elements);
    functions[0].0 = format!("quill_put_elements_{mangled}");
    functions[1].0 = format!("quill_get_elements_{mangled}");
    functions[1].1.push((Ty::named("uint32_t"), "_count".into()));
    functions.into_iter().chain(pair(e, id, puts, gets)).collect()
}

/// An element, as far as its size goes.
fn element_of(sequence: &Expr) -> Expr {
    sequence.clone().field("_buffer").deref()
}
