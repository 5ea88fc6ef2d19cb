//! C over `tern-ipc`: values between variables and the words of a short message.
//!
//! Words are an array of constant indices, which compilers keep in registers. Lists lie inside their structs and texts in
//! arrays, with room for as much as their bounds allow, so nobody allocates: a caller brings the room.

use super::tree::{Expr, Item, Parameters, Stmt, Ty, call, name};
use super::{Emitter, Lists, Part, interface};
use crate::kernel::table_bits;
use crate::layout::{InterfaceLayout, Leaf, Message, Method, Place, Slot};
use crate::model::{Operation, Type, TypeId};

use interface::{Interface, Spot, borrowed, status};

/// C over Tern's ipc.
#[derive(Clone, Copy, Debug)]
pub struct TernIpc;

impl Part for TernIpc {
    fn runtime(&self) -> &'static str {
        include_str!("tern_ipc_runtime.h")
    }

    fn lists(&self) -> Lists {
        Lists::Inside
    }

    fn carries(&self, emitter: &Emitter, ty: TypeId) -> bool {
        let flat = |of: TypeId| emitter.sizes.fixed(of).is_some() && emitter.sizes.flat(of);
        match emitter.model.ty(emitter.model.resolved(ty)) {
            Type::Str { bound, .. } => bound.is_some_and(|bound| bound <= ELEMENTS_MAX),
            Type::Sequence(of, bound) => flat(*of) && bound.is_some_and(|bound| bound <= ELEMENTS_MAX),
            // An array is copied as it is, so whatever its bytes are must be a value.
            Type::Array(of, _) => flat(*of),
            Type::Union { .. } => false,
            _ => true,
        }
    }

    fn values(&self, _: &Emitter) -> Vec<Item> {
        Vec::new()
    }

    fn interface(&self, emitter: &Emitter, layout: &InterfaceLayout, operations: &[&Operation]) -> Vec<Item> {
        let c = Interface { emitter, interface: &emitter.model.interfaces[layout.interface.0 as usize].name };
        let caller = (Ty::named("tern_uid"), "_from".into());
        let mut items = c.declarations(operations, &caller);
        for (operation, method) in operations.iter().zip(&layout.methods) {
            items.push(client(&c, operation, method));
            items.push(answer(&c, operation, method));
        }
        items.push(dispatch(&c, operations));
        items
    }
}

/// Elements of a list that could ever be in registers.
const ELEMENTS_MAX: u64 = 88;

fn words() -> Expr {
    name("_words")
}

fn malformed() -> Vec<Stmt> {
    vec![Stmt::Return(Some(name("QUILL_MALFORMED")))]
}

/// The place of a slot: word and byte.
fn place(slot: &Slot) -> (u32, u32) {
    match slot.place {
        Place::Register(word, byte) => (word, byte),
        // The layout refused what needs memory.
        Place::Memory(_) => (0, 0),
    }
}

/// The address of a slot in the words.
fn address(slot: &Slot) -> Expr {
    let (word, byte) = place(slot);
    words().cast(Ty::named("char *")).with("+", Expr::Int((word * 8 + byte).into()))
}

/// The address of a value's first byte; an array is one.
fn start(e: &Emitter, ty: TypeId, value: Expr) -> Expr {
    if matches!(e.kind(ty), Type::Array(..)) { value } else { value.address() }
}

/// A condition under which a number is no value of its type.
fn wrong(e: &Emitter, ty: TypeId, value: &Expr) -> Option<Expr> {
    match e.kind(ty) {
        Type::WideChar => Some(Expr::Not(Box::new(call("quill_is_scalar", [value.clone()])))),
        _ => super::linux::values::wrong(e, ty, value.clone()),
    }
}

/// Statements that put a message into the words, which are zero.
fn pack(c: &Interface, message: &Message, spots: &[Spot]) -> Vec<Stmt> {
    let e = c.emitter;
    let mut body = Vec::new();
    for (i, slot) in message.slots.iter().enumerate() {
        let value = Interface::at(spots, &slot.path);
        let (word, byte) = place(slot);
        let here = || words().index(Expr::Int(word.into()));
        let merge = |bits: Expr| {
            let bits = if byte > 0 { bits.with("<<", Expr::Int((byte * 8).into())) } else { bits };
            Stmt::Set(here(), here().with("|", bits))
        };
        let long = Ty::named("uint64_t");
        match slot.leaf {
            Leaf::Value(ty) => {
                if let Some(wrong) = wrong(e, ty, &value) {
                    body.push(Stmt::If(wrong, malformed()));
                }
                let narrow =
                    |bits: u8| value.clone().cast(Ty::named(format!("uint{bits}_t"))).cast(long.clone());
                let bits = match e.kind(ty) {
                    Type::Bool | Type::Octet | Type::Char => narrow(8),
                    Type::WideChar | Type::Enum(..) => narrow(32),
                    Type::Int { bits, .. } | Type::Bitmask(_, bits, _) => narrow(*bits),
                    Type::Float(32) => call("quill_bits_f32", [value]),
                    Type::Float(_) => call("quill_bits_f64", [value]),
                    _ => {
                        let size = Expr::Int(slot.fixed.size.into());
                        body.push(Stmt::Do(call(
                            "__builtin_memcpy",
                            [address(slot), start(e, ty, value), size],
                        )));
                        continue;
                    }
                };
                body.push(merge(bits));
            }
            Leaf::Count(ty) => {
                let count = format!("_length_{i}");
                let (length, limit) = match e.kind(ty) {
                    Type::Str { bound, .. } => {
                        let bound = bound.unwrap_or(0);
                        (call("quill_text_bytes", [value, Expr::Int(bound.into())]), 4 * bound)
                    }
                    Type::Sequence(_, bound) => (value.field("_length"), bound.unwrap_or(0)),
                    _ => continue,
                };
                body.push(Stmt::Let(Ty::named("uint32_t"), count.clone(), Some(length)));
                let too_long = name(&count).with(">", Expr::Int(limit.into()));
                body.push(Stmt::If(too_long, vec![Stmt::Return(Some(name("QUILL_TOO_LONG")))]));
                body.push(merge(name(&count).cast(long)));
            }
            Leaf::Elements(ty, element) => {
                let count = message
                    .slots
                    .iter()
                    .position(|s| matches!(s.leaf, Leaf::Count(_)) && s.path == slot.path);
                let count = name(format!("_length_{}", count.unwrap_or(0)));
                let from =
                    if matches!(e.kind(ty), Type::Str { .. }) { value } else { value.field("_buffer") };
                let size = count.with("*", Expr::Int(element.size.into()));
                body.push(Stmt::Do(call("__builtin_memcpy", [address(slot), from, size])));
            }
        }
    }
    body
}

/// Statements that take a message out of the words, with every check.
fn unpack(c: &Interface, message: &Message, spots: &[Spot]) -> Vec<Stmt> {
    let e = c.emitter;
    let mut body = Vec::new();
    for (i, slot) in message.slots.iter().enumerate() {
        let value = Interface::at(spots, &slot.path);
        let (word, byte) = place(slot);
        let here = words().index(Expr::Int(word.into()));
        let bits = if byte > 0 { here.with(">>", Expr::Int((byte * 8).into())) } else { here };
        match slot.leaf {
            Leaf::Value(ty) => {
                let as_type = |base: String| bits.clone().cast(Ty::named(base));
                let found = match e.kind(ty) {
                    Type::Bool => {
                        let raw = as_type("uint8_t".into());
                        body.push(Stmt::If(raw.clone().with(">", Expr::Int(1)), malformed()));
                        raw.with("!=", Expr::Int(0))
                    }
                    Type::Float(32) => call("quill_f32", [bits]),
                    Type::Float(_) => call("quill_f64", [bits]),
                    Type::Struct(..) | Type::Array(..) => {
                        let size = Expr::Int(slot.fixed.size.into());
                        body.push(Stmt::Do(call(
                            "__builtin_memcpy",
                            [start(e, ty, value), address(slot), size],
                        )));
                        continue;
                    }
                    _ => as_type(e.ty(ty).base),
                };
                body.push(Stmt::Set(value.clone(), found));
                if let Some(wrong) = wrong(e, ty, &value) {
                    body.push(Stmt::If(wrong, malformed()));
                }
            }
            Leaf::Count(_) => {
                let found = bits.cast(Ty::named("uint32_t"));
                body.push(Stmt::Let(Ty::named("uint32_t"), format!("_count_{i}"), Some(found)));
            }
            Leaf::Elements(ty, element) => {
                let count = message
                    .slots
                    .iter()
                    .position(|s| matches!(s.leaf, Leaf::Count(_)) && s.path == slot.path);
                let count = name(format!("_count_{}", count.unwrap_or(0)));
                match e.kind(ty) {
                    Type::Str { bound, .. } => {
                        let bound = Expr::Int(bound.unwrap_or(0).into());
                        let text = call("quill_get_text", [value, address(slot), count, bound]);
                        body.push(Stmt::If(Expr::Not(Box::new(text)), malformed()));
                    }
                    Type::Sequence(_, bound) => {
                        let bound = Expr::Int(bound.unwrap_or(0).into());
                        body.push(Stmt::If(count.clone().with(">", bound), malformed()));
                        body.push(Stmt::Set(value.clone().field("_length"), count.clone()));
                        let size = count.with("*", Expr::Int(element.size.into()));
                        let to = value.field("_buffer");
                        body.push(Stmt::Do(call("__builtin_memcpy", [to, address(slot), size])));
                    }
                    _ => {}
                }
            }
        }
    }
    body
}

/// All words, zero.
fn fresh() -> Stmt {
    Stmt::Let(Ty { dims: vec![11], ..Ty::named("uint64_t") }, "_words".into(), None)
}

/// A client's function.
fn client(c: &Interface, operation: &Operation, method: &Method) -> Item {
    let mut parameters: Parameters = vec![(Ty::named("tern_uid"), "_server".into())];
    parameters.extend(c.parameters(operation));
    let label = Expr::Int(method.request.label.into());
    let mut body = vec![fresh()];
    body.extend(pack(c, &method.request, &c.inputs(operation)));
    let function = c.function(&operation.name);
    if operation.oneway {
        body.push(Stmt::Return(Some(call("quill_ipc_send", [name("_server"), label, words()]))));
        return Item::Function(status(), function, parameters, body);
    }
    let called = call("quill_ipc_call", [name("_server"), label, words()]);
    body.push(Stmt::Let(Ty::named("uint64_t"), "_rax".into(), Some(called)));
    let failed = call("quill_label", [name("_rax")]);
    let mut cases = Vec::new();
    for (number, (_, message)) in method.exceptions.iter().enumerate() {
        let whole = name("_raised").deref().field(&c.variants(operation)[number]);
        let spots = c.exception_spots(operation, number, &whole);
        let mut case = unpack(c, message, &borrowed(&spots));
        case.push(Stmt::Return(Some(Expr::Int(message.label.into()))));
        cases.push((vec![i128::from(message.label)], case));
    }
    let failure = if cases.is_empty() {
        vec![Stmt::Return(Some(failed))]
    } else {
        vec![
            Stmt::Let(status(), "_status".into(), Some(failed)),
            Stmt::Switch(name("_status"), cases, vec![Stmt::Return(Some(name("_status")))]),
        ]
    };
    let done = call("__builtin_expect", [name("_rax").with("!=", name("QUILL_DONE")), Expr::Int(0)]);
    body.push(Stmt::If(done, failure));
    body.extend(unpack(c, &method.reply, &c.outputs(operation)));
    body.push(Stmt::Return(Some(name("QUILL_OK"))));
    Item::Function(status(), function, parameters, body)
}

/// The function that answers a request for a method.
fn answer(c: &Interface, operation: &Operation, method: &Method) -> Item {
    let parameters = vec![
        (Ty::named(c.function("server")).to().constant(), "_methods".into()),
        (Ty::named("void *"), "_self".into()),
        (Ty::named("tern_uid"), "_from".into()),
        (Ty::named("uint64_t").to(), "_words".into()),
    ];
    let mut body = c.variables(operation);
    let inputs = c.local(c.inputs(operation));
    let outputs = c.local(c.outputs(operation));
    body.extend(unpack(c, &method.request, &borrowed(&inputs)));
    let called = c.call_method(operation, vec![name("_self"), name("_from")]);
    let function = c.function(&format!("{}_answer", operation.name));
    if operation.oneway {
        body.push(Stmt::Do(called.cast(Ty::named("void"))));
        body.push(Stmt::Return(Some(name("QUILL_SILENT"))));
        return Item::Function(status(), function, parameters, body);
    }
    body.push(Stmt::Let(status(), "_status".into(), Some(called)));
    body.push(Stmt::Do(call("quill_clear", [words()])));
    let mut cases = vec![(vec![0], pack(c, &method.reply, &borrowed(&outputs)))];
    for (number, (_, message)) in method.exceptions.iter().enumerate() {
        let whole = name("_raised").field(&c.variants(operation)[number]);
        let spots = c.exception_spots(operation, number, &whole);
        cases.push((vec![message.label.into()], pack(c, message, &borrowed(&spots))));
    }
    body.push(Stmt::Switch(name("_status"), cases, Vec::new()));
    body.push(Stmt::Return(Some(name("_status"))));
    Item::Function(status(), function, parameters, body)
}

/// The function that finds the method for a request: by the first bits of the label, as many as there are places.
fn dispatch(c: &Interface, operations: &[&Operation]) -> Item {
    let parameters = vec![
        (Ty::named("const void *"), "_methods".into()),
        (Ty::named("void *"), "_self".into()),
        (Ty::named("tern_uid"), "_from".into()),
        (Ty::named("uint32_t"), "_label".into()),
        (Ty::named("uint64_t").to(), "_words".into()),
    ];
    let bits = table_bits(operations.len());
    let cases = operations.iter().enumerate().map(|(number, operation)| {
        let function = c.function(&format!("{}_answer", operation.name));
        let arguments = ["_methods", "_self", "_from", "_words"].map(name);
        let place = (number as u32).reverse_bits() >> (32 - bits);
        (vec![i128::from(place)], vec![Stmt::Return(Some(call(function, arguments)))])
    });
    let place = name("_label").with(">>", Expr::Int((32 - bits).into()));
    let none = vec![Stmt::Return(Some(name("QUILL_NO_METHOD")))];
    let body = vec![Stmt::Switch(place, cases.collect(), none)];
    Item::Function(status(), c.function("dispatch"), parameters, body)
}
