//! Servers: what answers a request for each method, and the function that is the whole of a server, written as text because the words stay in their registers between system calls.

use std::fmt::Write;

use super::*;

/// The function that answers a request for a method.
pub(super) fn answer(
    way: &Way,
    c: &Interface,
    operation: &Operation,
    method: &Method,
    room: Arrival,
) -> Vec<Item> {
    let parameters = answer_parameters(way, c, method, room);
    let request = &method.request;
    let result = inlined(status());
    let lists = || request.chunks.iter().filter(|c| c.element.is_some());
    let in_room = |param: &str| lists().any(|c| matches!(&c.path[..], [path] if path == param));
    let mut body = c.variables(operation, in_room);
    let inputs = c.local(c.inputs(operation));
    let outputs = c.local(c.outputs(operation));
    if method.needs_inbox() {
        body.push(Stmt::Do(name("_kept").cast(Ty::named("void"))));
    }
    if method.request.long && method.request.chunks.is_empty() {
        body.push(Stmt::Do(name("_room").cast(Ty::named("void"))));
    }
    let comes = way.begins && several::comes(method);
    if comes {
        body.extend(several::own(request, &borrowed(&inputs), false));
    }
    body.extend(take(c, request, &borrowed(&inputs), room, Maker::Server));
    let (variable, wrong) = (|of: usize| name(word(&operation.params[of].name)), || malformed().remove(0));
    body.extend(agree::parameters(c.emitter, operation, false, &variable, &wrong));
    body.extend(offers::take(way, c.emitter, method, &borrowed(&inputs)));
    if let Some(handed) = references::single(method) {
        body.push(references::taken(handed, &borrowed(&inputs)));
    }
    if comes {
        body.extend(several::all_there(request, false));
    }
    let given = std::iter::once("_self".to_owned()).chain(caller(way).map(|(_, from)| from));
    let called = c.call_method(operation, given.map(name).collect());
    let function = c.function(&format!("{}_answer", operation.name));
    if operation.oneway {
        // It may have no parameters.
        body.push(Stmt::Do(words().cast(Ty::named("void"))));
        body.push(Stmt::Do(called.cast(Ty::named("void"))));
        body.push(Stmt::Return(Some(name("QUILL_SILENT"))));
        return vec![Item::Function(result, function, parameters, body)];
    }
    body.push(Stmt::Let(status(), "_status".into(), Some(called)));
    body.push(Stmt::Do(call("quill_clear", [words()])));
    if method.replies_from_memory() {
        let parameter = |of: usize| c.parameter(operation, of);
        let cases = replies(
            way,
            c,
            (operation, method),
            [&[], &c.outputs(operation)],
            &parameter,
            &name("_raised").deref(),
        );
        body.extend(several::replied(c, operation, method));
        return vec![several::reply(c, operation, cases), Item::Function(result, function, parameters, body)];
    }
    let spots = [&borrowed(&inputs)[..], &borrowed(&outputs)];
    let cases = replies(way, c, (operation, method), spots, &variable, &name("_raised"));
    body.push(Stmt::Switch(name("_status"), cases, Vec::new()));
    body.push(Stmt::Return(Some(name("_status"))));
    vec![Item::Function(result, function, parameters, body)]
}

/// Statements that make each reply of a method, by what it has said: its results, parameters by their numbers, and what it has raised.
fn replies(
    way: &Way,
    c: &Interface,
    (operation, method): (&Operation, &Method),
    [inputs, outputs]: [&[Spot]; 2],
    parameter: &dyn Fn(usize) -> Expr,
    raised: &Expr,
) -> Vec<(Vec<i128>, Vec<Stmt>)> {
    let make = |message: &Message, spots: &[Spot]| {
        let given = references::in_registers(message);
        let mut made: Vec<Stmt> =
            given.into_iter().map(|handed| references::given(c.emitter, handed, spots)).collect();
        made.extend(offers::apart(way, c.emitter, method, message, [inputs, spots]));
        made.extend(pack(c, message, spots, Making::of(Maker::Server)));
        made.extend(several::leave(c.emitter, message, spots));
        if message.long {
            made.push(Stmt::Set(name("_long").deref(), name("true")));
        }
        made
    };
    let mut good = agree::parameters(c.emitter, operation, true, parameter, &refused);
    good.extend(make(&method.reply, outputs));
    let mut cases = vec![(vec![0], good)];
    for (number, (_, message)) in method.exceptions.iter().enumerate() {
        let spots = c.exception_spots(operation, number, raised.clone());
        cases.push((vec![message.label.into()], make(message, &borrowed(&spots))));
    }
    cases
}

fn answer_parameters(way: &Way, c: &Interface, method: &Method, room: Arrival) -> Parameters {
    let mut parameters = vec![
        (Ty::named(c.function("server")).to().constant(), "_methods".into()),
        (Ty::named("void *"), "_self".into()),
    ];
    parameters.extend(caller(way));
    parameters.push((Ty::named("uint64_t").to(), "_words".into()));
    if method.request.long {
        parameters.push((Ty::named(room.record(c)).to(), "_room".into()));
    }
    if method.needs_inbox() {
        parameters.push((Ty::named("uint64_t").to(), "_kept".into()));
        parameters.push((Ty::named("bool").to(), "_long".into()));
    }
    if plan::looks_twice(c.emitter.model, &method.request) {
        parameters.push((Ty::named("bool"), "_again".into()));
    }
    if references::has_item(method) {
        parameters.push((Ty::named("quill_item").to(), references::ITEM.into()));
    }
    if way.begins && several::is_carried(method) {
        parameters.push(several::carried());
    }
    if offers::taken(way, method) > 0 {
        parameters.push(offers::place_for_taken());
    }
    parameters
}

/// The result of a function that has to be part of whatever calls it, so that words stay in registers.
pub(super) fn inlined(result: Ty) -> Ty {
    Ty::named(format!("__attribute__((always_inline)) {}", result.base))
}

/// The function that finds the method for a request: by the first bits of the label, as many as there are places. A request
/// with a part in memory comes with the room that it is in.
pub(super) fn dispatch(c: &Interface, operations: &[&Operation], methods: &[Method]) -> Item {
    let parameters = vec![
        (Ty::named("const void *"), "_methods".into()),
        (Ty::named("void *"), "_self".into()),
        (Ty::named("tern_uid"), "_from".into()),
        (Ty::named("uint32_t"), "_label".into()),
        (Ty::named("uint64_t").to(), "_words".into()),
        (Ty::named("void *"), "_room".into()),
        (Ty::named("uint64_t").to(), "_kept".into()),
        (Ty::named("bool").to(), "_long".into()),
    ];
    let bits = table_bits(operations.len());
    let cases = operations.iter().zip(methods).enumerate().map(|(number, (operation, method))| {
        let function = c.function(&format!("{}_answer", operation.name));
        let mut arguments = ["_methods", "_self", "_from", "_words"].map(name).to_vec();
        let other = if method.request.long {
            arguments.push(name("_room"));
            Expr::Not(Box::new(name("_room")))
        } else {
            name("_room")
        };
        if method.needs_inbox() {
            arguments.extend(["_kept", "_long"].map(name));
        }
        let place = plan::place(number as u32, bits);
        let mut body = vec![Stmt::If(other, malformed())];
        if plan::looks_twice(c.emitter.model, &method.request) {
            let look = |again: &str, mut arguments: Vec<Expr>| {
                arguments.push(name(again));
                call(function.clone(), arguments)
            };
            let first = look("false", arguments.clone());
            body.push(Stmt::Let(status(), "_status".into(), Some(first)));
            let again = name("_status").with("==", name("QUILL_AGAIN"));
            body.push(Stmt::If(again, vec![Stmt::Return(Some(look("true", arguments)))]));
            body.push(Stmt::Return(Some(name("_status"))));
        } else {
            body.push(Stmt::Return(Some(call(function, arguments))));
        }
        (vec![i128::from(place)], body)
    });
    let place = name("_label").with(">>", Expr::Int((32 - bits).into()));
    let none = vec![Stmt::Return(Some(name("QUILL_NO_METHOD")))];
    // An interface may have no methods.
    let mut body: Vec<Stmt> =
        parameters.iter().map(|(_, unused)| Stmt::Do(name(unused).cast(Ty::named("void")))).collect();
    body.push(Stmt::Switch(place, cases.collect(), none));
    Item::Function(status(), c.function("dispatch"), parameters, body)
}

/// The macro that defines a server's function. The methods are a constant, so that calls of them are plain calls, or none.
pub(super) fn serve(
    c: &Interface,
    operations: &[&Operation],
    layout: &InterfaceLayout,
    room: &Room,
) -> String {
    let methods = &layout.methods;
    let mut text = String::new();
    let all = || operations.iter().zip(methods).enumerate();
    for (number, (operation, method)) in
        all().filter(|(_, (_, m))| plan::looks_twice(c.emitter.model, &m.request))
    {
        text += &second_look(c, operation, method, number);
    }
    let (result, declared) = if room.needed {
        ("quill_status", format!(", {} *quill_room", c.function("room")))
    } else {
        ("void", String::new())
    };
    let _ = writeln!(
        text,
        "static __attribute__((noinline, unused)) {result} name(void *quill_self{declared})\n{{"
    );
    // Without methods nothing else would use them.
    text += "    (void)&(methods), (void)quill_self;\n";
    text += &register(room);
    let kept = methods.iter().flat_map(Method::replies).map(|reply| kept_words(c.emitter, reply)).max();
    if methods.iter().any(Method::needs_inbox) {
        let _ = writeln!(text, "    uint64_t quill_kept[{}];", kept.unwrap_or(0).max(1));
    }
    text += &wait(layout, room);
    for (number, (operation, method)) in all() {
        text += &stretch(c, operation, method, (number, table_bits(operations.len())));
    }
    text += "}";
    let lines: Vec<&str> = text.lines().collect();
    let returns =
        if room.needed { "; it returns only if the kernel\n * does not accept the room" } else { "" };
    let (macro_name, lines) = (c.function("SERVE"), lines.join(" \\\n"));
    let comment = format!(
        "Defines the function `name`, which answers requests with `methods`, a constant, forever{returns}."
    );
    format!("/* {comment} */\n#define {macro_name}(name, methods) \\\n{lines}\n")
}

/// The arguments of a method's `answer`; `message` has the partner.
fn answer_arguments(method: &Method, message: &str, words: &str, in_memory: &str) -> String {
    let room = if method.request.long { ", quill_room" } else { "" };
    let kept = if method.needs_inbox() { format!(", quill_kept, {in_memory}") } else { String::new() };
    format!("&(methods), quill_self, {message}partner, {words}{room}{kept}")
}

/// The function that looks at a request again, and its registers: a function of its own, so that nothing else saves any.
fn second_look(c: &Interface, operation: &Operation, method: &Method, number: usize) -> String {
    let room =
        if method.request.long { format!(", {} *quill_room", c.function("room")) } else { String::new() };
    let kept = if method.needs_inbox() { ", uint64_t *quill_kept, bool *quill_in_memory" } else { "" };
    let arguments = answer_arguments(method, "quill_now->", "quill_now->words", "quill_in_memory");
    let answer = c.function(&format!("{}_answer", operation.name));
    format!(
        "static __attribute__((noinline, cold, unused)) quill_status name##_{number}_again(\n    \
             void *quill_self, quill_message *quill_now{room}{kept})\n\
         {{\n    return {answer}({arguments}, true);\n}}\n"
    )
}

/// The places of the table, the first wait, and what happens to a message that no method takes.
fn wait(layout: &InterfaceLayout, room: &Room) -> String {
    let bits = table_bits(layout.methods.len());
    let (shift, half) = (64 - bits, 1u32 << bits);
    let all = plan::kinds(layout).flat_map(|kind| plan::places(&layout.methods, kind, bits, Some));
    let places = all.map(|stands| match stands {
        Stands::Method(number) => format!("&&quill_{number}"),
        Stands::Mismatch => "&&quill_mismatch".into(),
        Stands::Nothing => "&&quill_no_method".into(),
    });
    let places: Vec<String> = places.collect();
    let (count, list) = (places.len(), places.join(", "));
    let no_method = if list.contains("quill_no_method") {
        "quill_no_method:\n    QUILL_REFUSE(QUILL_NO_METHOD);\n    goto quill_wait;\n"
    } else {
        ""
    };
    let long = |kind: &str| {
        let jump = format!("goto *quill_places[{half} + (quill_rax >> {shift})];\n");
        let check = format!("    if ((uint32_t)quill_rax == {kind})\n        {jump}");
        if room.needed { check } else { String::new() }
    };
    let (call, reply) = (long("QUILL_IPC_LONG_CALL"), long("QUILL_IPC_LONG_REPLY_WAIT"));
    // The table is in memory that the compiler does not know, so one instruction finds a place and jumps.
    format!(
        r#"    void *quill_places[{count}] = {{ {list} }};
    QUILL_REGISTERS;
    __asm__("" : "+m"(quill_places));
    quill_rdx = TERN_NIL;
    QUILL_REFUSE(QUILL_OK);
quill_wait:
    QUILL_REPLY_WAIT(-1);
quill_odd:
{call}    if ((uint32_t)quill_rax == TERN_IPC_CALL || (uint32_t)quill_rax == TERN_IPC_REPLY_WAIT)
        goto *quill_places[quill_rax >> {shift}];
{reply}    if (!quill_is_request(quill_rax))
        quill_rdx = TERN_NIL;
    goto quill_mismatch;
quill_mismatch:
    QUILL_REFUSE(QUILL_MALFORMED);
    goto quill_wait;
{no_method}"#
    )
}

/// From a request for a method to the next request.
fn stretch(c: &Interface, operation: &Operation, method: &Method, (number, bits): (usize, u32)) -> String {
    let twice = plan::looks_twice(c.emitter.model, &method.request);
    let long = method.needs_inbox();
    let answer = c.function(&format!("{}_answer", operation.name));
    let again = if twice { ", false" } else { "" };
    let arguments = answer_arguments(method, "quill_now.", "quill_words", "&quill_in_memory");
    let (flag, in_memory) =
        if long { ("        bool quill_in_memory = false;\n", "quill_in_memory") } else { ("", "false") };
    let done = if operation.oneway { "QUILL_SILENT" } else { "QUILL_OK" };
    let (hand, look) = if twice { look_again(c.emitter, method, number) } else { Default::default() };
    let given = method.given();
    let finish = if operation.oneway {
        "quill_silent(&quill_now)".into()
    } else {
        format!("quill_done(&quill_now, quill_words, {given}, {in_memory})")
    };
    let shift = 64 - bits;
    format!(
        r#"quill_{number}: {{
        quill_message quill_now = QUILL_ARRIVED;
        uint64_t quill_words[QUILL_WORDS];
        quill_status quill_state;
{flag}        quill_copy(quill_words, quill_now.words);
        quill_state = {answer}({arguments}{again});
        if (__builtin_expect(quill_state != {done}, 0)) {{
{hand}            quill_otherwise(&quill_now, quill_words, quill_state, {in_memory});
            QUILL_LEAVES(quill_now);
            goto quill_wait;
        }}
        {finish};
        QUILL_NEXT(quill_now, {number}, {shift});
    }}
{look}"#
    )
}

/// Statements that hand a request to the second look, and that look. The words lie for it as if the request had just come, so
/// that they need no other place until then; those that it does not read need none at all.
fn look_again(e: &Emitter, method: &Method, number: usize) -> (String, String) {
    let request = &method.request;
    let unread = (1..11).filter(|&word| !request.reads_again(word));
    let cleared: String = unread.map(|word| format!("quill_now.words[{word}] = ")).collect();
    let first = checked_dope(e, request).unwrap_or_default();
    let room = if method.request.long { ", quill_room" } else { "" };
    let (flag, kept, in_memory) = if method.needs_inbox() {
        ("        bool quill_in_memory = false;\n", ", quill_kept, &quill_in_memory", "quill_in_memory")
    } else {
        ("", "", "false")
    };
    let hand = format!(
        r#"            if (quill_state == QUILL_AGAIN) {{
                quill_now.rax = {cleared}0;
                {first}QUILL_LEAVES(quill_now);
                goto quill_{number}_again;
            }}
"#
    );
    let look = format!(
        r#"quill_{number}_again: {{
        quill_message quill_now = QUILL_ARRIVED;
{flag}        quill_status quill_state = name##_{number}_again(quill_self, &quill_now{room}{kept});
        quill_otherwise(&quill_now, quill_now.words, quill_state, {in_memory});
        QUILL_LEAVES(quill_now);
        goto quill_wait;
    }}
"#
    );
    (hand, look)
}

/// A statement that sets a request's first word to what it is known to be, so that it needs no register until then.
fn checked_dope(e: &Emitter, request: &Message) -> Option<String> {
    let plan = Plan::of(e.model, request);
    let known = match plan.memory {
        Memory::Block(block) if block.pieces_end.is_none() => dope(block).to_string(),
        Memory::List => match &plan.fixed[plan.lists().next()?.count?] {
            Step { place: Place::Register(word, byte), bytes, .. } => {
                let count = format!("(uint{}_t)(quill_now.words[{word}] >> {})", 8 * bytes, 8 * byte);
                format!("quill_words_again({count})")
            }
            _ => return None,
        },
        _ => return None,
    };
    Some(format!("quill_now.words[0] = {known};\n{}", " ".repeat(16)))
}

/// The statements with which a server says where it receives, if it does.
fn register(room: &Room) -> String {
    if !room.needed {
        return String::new();
    }
    let (lists, arguments) = registration(room, "quill_room");
    format!(
        "{lists}    quill_status quill_registered = quill_register({arguments}, NULL);\n    \
         if (quill_registered != QUILL_OK)\n        return quill_registered;\n"
    )
}

/// The function with which a client says where it receives.
pub(super) fn open(c: &Interface, replies: &Room) -> String {
    let (function, record) = (c.function("open"), c.function("replies"));
    let (lists, arguments) = registration(replies, "room");
    format!(
        "/* Lets replies arrive in `room`, until `quill_close(before)`. */\n\
         static inline __attribute__((unused)) quill_status {function}({record} *room, quill_inbox *before)\n{{\n\
         {lists}    return quill_register({arguments}, before);\n}}\n"
    )
}

/// Lists of capacities, and the arguments of `quill_register`.
fn registration(room: &Room, variable: &str) -> (String, String) {
    let list = |all: Vec<String>| if all.is_empty() { "0".into() } else { all.join(", ") };
    let capacities = list(room.capacities.iter().map(u64::to_string).collect());
    let begins = list((0..room.capacities.len()).map(|n| begin(room, n as u32).to_string()).collect());
    let (words, count) = (room_words(room), room.capacities.len());
    let windows = room.windows;
    let arguments = format!(
        "{variable}, {words}, {count}, {windows}, {variable}->strings, {variable}->buffers, quill_capacities, quill_begins"
    );
    let lists = format!(
        "    static const uint32_t quill_capacities[] = {{ {capacities} }}, quill_begins[] = {{ {begins} }};\n"
    );
    (lists, arguments)
}
