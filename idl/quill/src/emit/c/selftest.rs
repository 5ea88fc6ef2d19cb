//! The self-test of interfaces over L4's V4 API: a program for each, with a client, a server, and a kernel of its own that runs
//! on the host.
//!
//! Both sides make their values from the number of the call, as in the self-test in Rust. What L4's stubs carry is little
//! enough that a value is made and compared where it is wanted, without functions for types.

use super::interface::{Interface, status};
use super::l4_v4::{needs_buffers, needs_room};
use super::tree::{Expr, Item, Stmt, Ty, call, name, text};
use super::{Emitter, any, binding, tree, word};
use crate::any::TESTED_MAX;
use crate::codes::Code;
use crate::diag::Diagnostic;
use crate::emit::travel::{endless, holding_any};
use crate::kernel::table_bits;
use crate::layout::{InterfaceLayout, Method};
use crate::model::{Binding, Direction, Model, Operation, Shown, Type, TypeId, bits_of, most_units};

const BEGIN: &str = include_str!("selftest_begin.h");
const END: &str = include_str!("selftest_end.h");
const KERNEL: &str = include_str!("l4_v4_host.h");

/// What stands in the file besides.
pub const TEXTS: [&str; 3] = [BEGIN, END, KERNEL];

/// A text without a bound has no more characters here.
const CHARACTERS: u64 = 100;

/// What goes behind the stubs: `QUILL_INTERFACE` says which of the interfaces is tested.
pub fn programs(e: &Emitter, layouts: &[InterfaceLayout]) -> String {
    let mut all = String::from(KERNEL) + BEGIN;
    if e.model.has_any() {
        all += &text(&[values_of_any(e)]);
    }
    for (number, layout) in layouts.iter().enumerate() {
        let interface = &e.model.interfaces[layout.interface.0 as usize].name;
        let c = Interface { emitter: e, interface };
        let operations = e.model.operations(layout.interface);
        let mut items = vec![Item::Text(format!("#if QUILL_INTERFACE == {number}\n"))];
        items.extend(program(&c, &operations, &layout.methods));
        items.push(Item::Text("#endif\n".into()));
        all += &text(&items);
    }
    all + END
}

/// Refuses operations for which no values are made here: unions, what may be absent, and lists that agree with numbers beside them.
pub fn untestable(model: &Model) -> Vec<Diagnostic> {
    let own = model.interfaces.iter().filter(|interface| !interface.imported && !interface.local);
    let refused = own.flat_map(|interface| &interface.operations).filter(|operation| {
        let raised = operation.raises.iter().flat_map(|id| &model.exceptions[id.0 as usize].fields);
        let values = operation.params.iter().map(|param| param.ty).chain([operation.result]);
        !operation.agreements.is_empty()
            || has_choice(model, values.chain(raised.map(|field| field.ty)).collect())
    });
    let message = |operation: &Operation| {
        let name = &operation.name;
        let message = format!(
            "`{name}` cannot be tested over `l4-v4`: no values are made of unions, of what may be absent, or of lists with a number beside them"
        );
        Diagnostic::error(Code::Unsupported, operation.span, message)
    };
    refused.map(message).collect()
}

/// Whether a part of such types is a union, may be absent, or agrees with something beside it.
fn has_choice(model: &Model, mut types: Vec<TypeId>) -> bool {
    let mut seen = vec![false; model.types_len()];
    while let Some(id) = types.pop() {
        let id = model.resolved(id);
        if std::mem::replace(&mut seen[id.0 as usize], true) {
            continue;
        }
        match model.ty(id) {
            Type::Union { .. } | Type::Optional(_) | Type::Shared(_) => return true,
            Type::Struct(..) if model.agreements.contains_key(&id) => return true,
            Type::Struct(_, fields) if !model.is_any(id) => types.extend(fields.iter().map(|field| field.ty)),
            Type::Sequence(of, _) | Type::Array(of, _) => types.push(*of),
            _ => {}
        }
    }
    false
}

fn random() -> Expr {
    name("_r")
}

fn from_random(function: &str) -> Expr {
    call(function, [random()])
}

/// The bound of a list within others, or of others: a few, so that all of them fit into a message.
fn few(bound: Option<u64>, few: u64) -> Option<u64> {
    Some(bound.map_or(few, |bound| bound.min(few)))
}

fn bound_of(bound: Option<u64>, otherwise: u64) -> Expr {
    Expr::Int(bound.unwrap_or(otherwise).into())
}

/// Statements for each element of an array.
fn each(dims: &[u64], at: &[Expr], depth: usize, body: &dyn Fn(&[Expr], usize) -> Vec<Stmt>) -> Vec<Stmt> {
    let Some((&first, rest)) = dims.split_first() else { return body(at, depth) };
    let variable = format!("_e{depth}");
    let inner: Vec<Expr> = at.iter().map(|at| at.clone().index(name(&variable))).collect();
    vec![Stmt::For(variable, Expr::Int(first.into()), each(rest, &inner, depth + 1, body))]
}

/// Statements that make a random value.
fn fill(e: &Emitter, ty: TypeId, place: Expr, depth: usize) -> Vec<Stmt> {
    let set = |value: Expr| vec![Stmt::Set(place.clone(), value)];
    let number = |ty: Ty| from_random("selftest_number").cast(ty);
    match e.kind(ty) {
        _ if e.model.is_any(ty) => set(from_random("selftest_any")),
        Type::Bool => set(call("selftest_below", [random(), Expr::Int(2)]).with("==", Expr::Int(1))),
        Type::Enum(_, members) => {
            let values: Vec<String> = members.iter().map(|m| tree::integer(m.1)).collect();
            let list = name(format!("((const int64_t[]){{ {} }})", values.join(", ")));
            let some = call("selftest_below", [random(), Expr::Int(members.len() as i128)]);
            set(list.index(some).cast(e.ty(ty)))
        }
        Type::WideChar => set(from_random("selftest_letter")),
        Type::Float(32) => set(from_random("selftest_single")),
        Type::Float(_) => set(from_random("selftest_real")),
        Type::Bitmask(_, bits, members) => {
            let all = name(format!("{}ull", bits_of(members)));
            set(from_random("selftest_number").with("&", all).cast(Ty::named(format!("uint{bits}_t"))))
        }
        Type::Fixed(_, digits, _) => {
            set(call("selftest_within", [random(), Expr::Int(most_units(*digits).into())]))
        }
        Type::Str { bound, shown, .. } => {
            let most = if depth > 0 { few(*bound, 8) } else { *bound };
            let some = call("selftest_some_text", [random(), bound_of(most, CHARACTERS)]);
            if *shown == Shown::Terminated {
                return set(some);
            }
            let buffer = place.clone().field("_buffer");
            let length = call("strlen", [buffer.clone()]).cast(Ty::named("uint32_t"));
            vec![Stmt::Set(buffer, some), Stmt::Set(place.field("_length"), length)]
        }
        Type::Sequence(of, bound) => {
            let (buffer, length) = (place.clone().field("_buffer"), place.field("_length"));
            let size = call("sizeof", [buffer.clone().deref()]);
            let most = match e.sizes.fixed(*of) {
                Some(_) if depth == 0 => *bound,
                _ => few(*bound, if depth == 0 { 6 } else { 3 }),
            };
            let how_many = [random(), bound_of(most, CHARACTERS), size.clone()];
            let room = [random(), bound_of(*bound, CHARACTERS), size];
            let element = buffer.clone().index(name(format!("_e{depth}")));
            vec![
                Stmt::Set(length.clone(), call("selftest_list_length", how_many)),
                Stmt::Set(buffer, call("selftest_list_room", room)),
                Stmt::For(format!("_e{depth}"), length, fill(e, *of, element, depth + 1)),
            ]
        }
        Type::Array(of, dims) => each(dims, &[place], depth, &|at, depth| fill(e, *of, at[0].clone(), depth)),
        Type::Struct(_, fields) => {
            fields.iter().flat_map(|f| fill(e, f.ty, place.clone().field(word(&f.name)), depth)).collect()
        }
        Type::Flat(..) => {
            let Some(fixed) = e.sizes.fixed(ty) else { return Vec::new() };
            let bits = place.field("_bits").index(name(format!("_e{depth}")));
            let value = number(Ty::named(format!("uint{}_t", 8 * fixed.align)));
            let count = Expr::Int((fixed.size / fixed.align).into());
            vec![Stmt::For(format!("_e{depth}"), count, vec![Stmt::Set(bits, value)])]
        }
        _ => set(number(e.ty(ty))),
    }
}

/// Bytes of a value of the file's types in an `any`: what is longer is left out.
const DESCRIBED_BYTES: i128 = 512;

/// A function for a random value in an `any`, of a basic type or of one of the file for which a value is made here.
fn values_of_any(e: &Emitter) -> Item {
    let (recursive, holding) = (endless(e.model, |_| true), holding_any(e.model));
    let is_tested =
        |id: TypeId| !recursive[id.0 as usize] && !has_choice(e.model, vec![id]) && !holding[id.0 as usize];
    let tested = any::makers(e).filter(|(id, _)| is_tested(*id));
    let case = |(number, (id, make)): (i128, (TypeId, String))| {
        let value = name("_value");
        let given = if super::is_record(e.kind(id)) { value.clone().address() } else { value.clone() };
        let bytes = || Expr::Int(DESCRIBED_BYTES);
        let arguments = [given, name("_room"), bytes(), name("_any").address()];
        let room = Some(call("selftest_place", [random(), bytes()]));
        let mut body = vec![Stmt::Announce(e.ty(id), "_value".into())];
        body.extend(fill(e, id, value, 1));
        body.push(Stmt::Let(Ty::named("void *"), "_room".into(), room));
        body.push(Stmt::If(call(make, arguments), vec![Stmt::Return(Some(name("_any")))]));
        (vec![number], body)
    };
    let cases: Vec<_> = (0..).zip(tested.take(TESTED_MAX)).map(case).collect();
    let which = call("selftest_below", [random(), Expr::Int(2 * cases.len() as i128 + 1)]);
    let body = vec![
        Stmt::Announce(Ty::named("quill_any"), "_any".into()),
        Stmt::Switch(which, cases, Vec::new()),
        Stmt::Return(Some(from_random("selftest_some_any"))),
    ];
    let parameters = vec![(Ty::named("struct selftest_random").to(), "_r".into())];
    Item::Function(Ty::named("quill_any"), "selftest_any".into(), parameters, body)
}

/// Statements that look whether two values are the same, and leave it in `_same`.
fn compare(e: &Emitter, ty: TypeId, one: Expr, other: Expr, depth: usize) -> Vec<Stmt> {
    let and = |same: Expr| vec![Stmt::Set(name("_same"), name("_same").with("&", same))];
    match e.kind(ty) {
        _ if e.model.is_any(ty) => and(call("selftest_same_any", [one, other])),
        Type::Str { shown: Shown::Terminated, .. } => and(call("selftest_same_text", [one, other])),
        Type::Str { .. } => and(call("selftest_same_counted", [one, other])),
        Type::Sequence(of, _) => {
            let length = |list: &Expr| list.clone().field("_length");
            let element = |list: &Expr| list.clone().field("_buffer").index(name(format!("_e{depth}")));
            let all = compare(e, *of, element(&one), element(&other), depth + 1);
            let elements = Stmt::For(format!("_e{depth}"), length(&one), all);
            let mut body = and(length(&one).with("==", length(&other)));
            body.push(Stmt::If(name("_same"), vec![elements]));
            body
        }
        Type::Array(of, dims) => each(dims, &[one, other], depth, &|at, depth| {
            compare(e, *of, at[0].clone(), at[1].clone(), depth)
        }),
        Type::Struct(_, fields) => fields
            .iter()
            .flat_map(|f| {
                let field = |of: &Expr| of.clone().field(word(&f.name));
                compare(e, f.ty, field(&one), field(&other), depth)
            })
            .collect(),
        Type::Flat(..) => {
            let Some(fixed) = e.sizes.fixed(ty) else { return Vec::new() };
            let bits = |of: Expr| of.field("_bits").index(name(format!("_e{depth}")));
            let same = and(bits(one).with("==", bits(other)));
            vec![Stmt::For(format!("_e{depth}"), Expr::Int((fixed.size / fixed.align).into()), same)]
        }
        _ => and(one.with("==", other)),
    }
}

/// Statements that bring room for what comes back.
fn bring_room(e: &Emitter, ty: TypeId, place: Expr) -> Vec<Stmt> {
    match e.kind(ty) {
        Type::Str { bound, shown, .. } => {
            let room = call("selftest_text_room", [random(), bound_of(*bound, CHARACTERS)]);
            let place = if *shown == Shown::Terminated { place } else { place.field("_buffer") };
            vec![Stmt::Set(place, room)]
        }
        Type::Sequence(_, bound) => {
            let buffer = place.field("_buffer");
            let size = call("sizeof", [buffer.clone().deref()]);
            let room = call("selftest_list_room", [random(), bound_of(*bound, CHARACTERS), size]);
            vec![Stmt::Set(buffer, room)]
        }
        Type::Struct(_, fields) => {
            fields.iter().flat_map(|f| bring_room(e, f.ty, place.clone().field(word(&f.name)))).collect()
        }
        _ => Vec::new(),
    }
}

/// The variable with what a value has to be, made and compared.
fn expect(e: &Emitter, ty: TypeId, value: Expr) -> Vec<Stmt> {
    let expected = || name("_expected");
    let mut body = vec![Stmt::Let(e.ty(ty), "_expected".into(), None)];
    body.extend(fill(e, ty, expected(), 0));
    body.extend(compare(e, ty, value, expected(), 0));
    // A block of its own, as the only case of a switch that has no other.
    vec![Stmt::If(name("true"), body)]
}

fn values_of(values: &str) -> Vec<Stmt> {
    let made = call("selftest_values_of", [name("selftest_call_number"), name(values)]);
    vec![
        Stmt::Let(Ty::named("struct selftest_random"), "_random".into(), Some(made)),
        Stmt::Let(Ty::named("struct selftest_random").to(), "_r".into(), Some(name("_random").address())),
        Stmt::Let(Ty::named("bool"), "_same".into(), Some(name("true"))),
    ]
}

fn program(c: &Interface, operations: &[&Operation], methods: &[Method]) -> Vec<Item> {
    let mut items = Vec::new();
    let binding = operations.iter().find_map(|operation| binding::of(c, operation));
    items.extend(binding.map(|binding| {
        let says = match binding {
            Binding::Named(variable) => format!("quill_thread {} = SERVER;\n", word(variable)),
            Binding::Asked => {
                format!("quill_thread {}(void)\n{{\n    return SERVER;\n}}\n", c.function("binding"))
            }
        };
        Item::Text(says)
    }));
    for finder in binding::Finder::all(c, operations, &Ty::named("quill_thread")) {
        let [bind, unbind] = finder.declared();
        items.push(Item::Text(format!(
            "{bind}\n{{\n    (void)_handle;\n    return SERVER;\n}}\n\
             {unbind}\n{{\n    (void)_handle;\n    (void)_server;\n}}\n"
        )));
    }
    for (&operation, method) in operations.iter().zip(methods) {
        items.push(server_method(c, operation));
        items.push(client_method(c, operation, method));
    }
    let method = |operation: &&Operation| format!("selftest_serve_{}", c.emitter.method(operation));
    let table: Vec<String> = operations.iter().map(method).collect();
    let calls = operations.iter().map(|o| format!("    selftest_try_{}();\n", c.emitter.method(o)));
    let calls: String = calls.collect();
    let bits = table_bits(methods.len());
    let oneway = methods.iter().filter(|method| method.oneway);
    let cases = oneway.map(|m| format!(" || label >> {} == {}", 16 - bits, m.request.label >> (16 - bits)));
    let cases: String = cases.collect();
    // A server has buffers if something comes as an item.
    let (buffers, argument) = match methods.iter().any(needs_buffers) {
        true => (format!("    static {} buffers;\n", c.function("buffers")), ", &buffers"),
        false => (String::new(), ""),
    };
    let (methods, serve) = (c.function("server"), c.function("serve"));
    items.push(Item::Text(format!(
        "static const {methods} selftest_methods = {{ {} }};\n\
         static void server(void)\n{{\n{buffers}    {serve}(&selftest_methods, NULL{argument});\n}}\n\
         static void selftest_all_methods(void)\n{{\n{calls}}}\n\
         static bool selftest_is_oneway(uint32_t label)\n{{\n    (void)label;\n    return false{cases};\n}}\n\
         #define QUILL_TITLE \"{}\"\n",
        table.join(", "),
        c.interface
    )));
    items
}

/// A method of the server: compares what it is given, and makes what it gives back.
fn server_method(c: &Interface, operation: &Operation) -> Item {
    let e = c.emitter;
    let mut parameters =
        vec![(Ty::named("void *"), "_self".into()), (Ty::named("quill_thread"), "_from".into())];
    parameters.extend(c.parameters(operation));
    let mut body = values_of("selftest_server_values");
    body.extend(["_self", "_from"].map(|unused| Stmt::Do(name(unused).cast(Ty::named("void")))));
    for (_, ty, value) in c.inputs(operation) {
        body.extend(expect(e, ty, value));
    }
    let wrong = Expr::Not(Box::new(name("_same"))).with("&", name("selftest_sane"));
    // Nobody hears how a oneway method ends.
    let wrongs = || name("selftest_wrong");
    let noted = operation.oneway.then(|| Stmt::Set(wrongs(), wrongs().with("+", Expr::Int(1))));
    let returned = Stmt::Return(Some(name("QUILL_TEST_WRONG")));
    body.push(Stmt::If(wrong, noted.into_iter().chain([returned]).collect()));
    if !operation.oneway {
        body.extend(outcome(operation, |number| {
            let spots = c.exception_spots(operation, number, name("_raised").deref());
            let mut raise: Vec<Stmt> = spots.into_iter().flat_map(|(_, ty, at)| fill(e, ty, at, 0)).collect();
            raise.push(Stmt::Return(Some(Expr::Int(number as i128 + 1))));
            raise
        }));
        for (_, ty, place) in c.outputs(operation) {
            body.extend(fill(e, ty, place, 0));
        }
    }
    body.push(Stmt::Return(Some(name("QUILL_OK"))));
    Item::Function(status(), format!("selftest_serve_{}", c.emitter.method(operation)), parameters, body)
}

/// Half of the calls of a method that can raise something end so.
fn outcome(operation: &Operation, raise: impl Fn(usize) -> Vec<Stmt>) -> Vec<Stmt> {
    let count = operation.raises.len();
    if count == 0 {
        return Vec::new();
    }
    let which = call("selftest_below", [random(), Expr::Int(2 * count as i128)]);
    let cases = (0..count).map(|number| (vec![number as i128], raise(number)));
    vec![Stmt::Switch(which, cases.collect(), vec![Stmt::Do(name("(void)0"))])]
}

/// A call of a method, with what comes back compared.
fn client_method(c: &Interface, operation: &Operation, method: &Method) -> Item {
    let e = c.emitter;
    let mut body =
        vec![Stmt::Set(name("selftest_call_number"), name("selftest_call_number").with("+", Expr::Int(1)))];
    body.extend(values_of("selftest_client_values"));
    body.extend(c.variables(operation, |_| false));
    for param in &operation.params {
        let place = name(word(&param.name));
        body.extend(match param.direction {
            Direction::Out => Vec::new(),
            _ => fill(e, param.ty, place, 0),
        });
    }
    // Behind everything that the server makes, too, of which both sides make the same.
    for (_, ty, place) in c.local(c.outputs(operation)).iter().filter(|(n, ..)| !goes_in(operation, n)) {
        body.extend(bring_room(e, *ty, place.clone()));
    }
    let mut arguments = Vec::new();
    if binding::is_said(c, operation) {
        arguments.push(name("SERVER"));
    }
    if needs_room(method) {
        let room = Ty::named(format!("static {}", c.function("replies")));
        body.push(Stmt::Announce(room, "_room".into()));
        arguments.push(name("_room").address());
    }
    for (ty, parameter) in c.parameters(operation) {
        let value = name(parameter);
        arguments.push(if ty.pointer && ty.dims.is_empty() { value.address() } else { value });
    }
    body.push(Stmt::Let(status(), "_status".into(), Some(call(c.operation(operation), arguments))));
    let title = name(format!("\"{}\"", operation.name));
    let called = |same: Expr, exception: &str| {
        Stmt::Do(call("selftest_called", [title.clone(), same, name(exception)]))
    };
    let done = |label: Expr| name("_status").with("==", label);
    if operation.oneway {
        body.push(called(done(name("QUILL_OK")), "false"));
    } else {
        body.push(Stmt::Do(call("selftest_keep_request", [])));
        body.extend(outcome(operation, |number| {
            let spots = c.exception_spots(operation, number, name("_raised"));
            let mut raised = vec![Stmt::Set(name("_same"), done(Expr::Int(number as i128 + 1)))];
            let fields = spots.into_iter().flat_map(|(_, ty, value)| expect(e, ty, value)).collect();
            raised.push(Stmt::If(name("_same"), fields));
            raised.extend([called(name("_same"), "true"), Stmt::Return(None)]);
            raised
        }));
        body.push(Stmt::Set(name("_same"), done(name("QUILL_OK"))));
        let outputs = c.local(c.outputs(operation));
        let results = outputs.into_iter().flat_map(|(_, ty, value)| expect(e, ty, value)).collect();
        body.push(Stmt::If(name("_same"), results));
        body.push(called(name("_same"), "false"));
    }
    let function = format!("selftest_try_{}", c.emitter.method(operation));
    Item::Function(Ty::named("void"), function, Vec::new(), body)
}

/// Whether a value goes to the server, too, so that its sender has made it.
fn goes_in(operation: &Operation, value: &str) -> bool {
    operation.params.iter().any(|p| p.name == value && p.direction == Direction::InOut)
}
