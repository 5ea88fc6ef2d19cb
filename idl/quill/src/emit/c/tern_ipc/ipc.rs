//! By ipc: a client calls a thread, and a server answers and waits in one system call.
//!
//! A server is one function for each interface, with its methods in it, written as text because the words stay in their registers between
//! system calls. Each method has a stretch of code from its request to the next one, to which it jumps by a table in the function's stack
//! frame. That loop can neither send nor get pages: see [`pages`].

use std::fmt::Write;

use super::*;

/// Calls to threads.
#[derive(Debug)]
pub struct Ipc;

impl Way for Ipc {
    fn runtime(&self) -> &'static str {
        runtime!()
    }

    fn hands_references(&self) -> bool {
        false
    }

    fn takes_offers(&self) -> bool {
        false
    }

    fn callee(&self, _: &Emitter, _: &InterfaceLayout) -> Ty {
        Ty::named("tern_uid")
    }

    fn caller(&self) -> Option<(Ty, String)> {
        Some((Ty::named("tern_uid"), "_from".into()))
    }

    fn clients(&self, c: &Interface, layout: &InterfaceLayout, of: (&Operation, &Method)) -> Vec<Item> {
        vec![client(self, c, layout, of)]
    }

    fn client_name(&self, c: &Interface, operation: &Operation, _: &Method) -> String {
        c.operation(operation)
    }

    /// Items go where the call says.
    fn call(&self, method: &Method) -> Expr {
        let to = [name("_server"), Expr::Int(method.request.label.into()), words()];
        let kind = if method.request.long { "_long" } else { "" };
        let taking = if method.needs_inbox() { "_taking" } else { "" };
        if !method.hands_pages() {
            return match method.oneway {
                true => call(format!("quill_ipc_send{kind}"), to),
                false => called(format!("quill_ipc_call{kind}{taking}"), to, method, None),
            };
        }
        let given = method.request.pages.as_ref();
        let item = given.map_or(Expr::Int(0), |given| handed(given, name(word(&given.param))));
        let to = to.into_iter().chain([item]);
        if method.oneway {
            return call("quill_ipc_send_pages", to);
        }
        let window = method.reply.pages.as_ref().map_or(Expr::Int(0), |_| name(references::WINDOW));
        call(format!("quill_ipc_call_pages{taking}"), to.chain([window]))
    }

    fn constants(&self) -> &'static str {
        "QUILL_"
    }

    fn arrival<'r>(&self, room: &'r Room) -> Arrival<'r> {
        Arrival::Own(room)
    }

    fn room(&self, c: &Interface, layout: &InterfaceLayout, room: &Room) -> Vec<Item> {
        let mut requests = layout.methods.iter().map(|method| &method.request);
        let memory = requests.any(|request| needs_memory(c.emitter, request));
        if room.needed { room_record(c, room, "room", memory) } else { Vec::new() }
    }

    fn server(&self, c: &Interface, layout: &InterfaceLayout, operations: &[&Operation]) -> Vec<Item> {
        let mut items = vec![dispatch(c, operations, &layout.methods)];
        items.extend(unless_own_ipc(serve(c, operations, layout, &layout.room())));
        items
    }

    /// One some of whose methods hand over pages.
    fn unusual(&self, c: &Interface, layout: &InterfaceLayout, all: &[&Operation]) -> Option<Vec<Item>> {
        layout.methods.iter().any(Method::hands_pages).then(|| handing_pages(c, layout, all))
    }
}

/// An interface by ipc some of whose methods hand over pages.
fn handing_pages(c: &Interface, layout: &InterfaceLayout, operations: &[&Operation]) -> Vec<Item> {
    let has_server = layout.methods.iter().all(Method::is_general);
    let mut items = if has_server {
        c.declarations(operations, Ipc.caller().as_ref())
    } else {
        let comment = format!("The interface {}, of which there are clients only.", c.interface);
        [vec![Item::Comment(comment)], c.unions(operations)].concat()
    };
    let replies = layout.replies();
    if replies.needed {
        items.extend(room_record(c, &replies, "replies", replies_need_memory(c, layout)));
    }
    let methods = operations.iter().zip(&layout.methods);
    items.extend(methods.map(|(operation, method)| client(&Ipc, c, layout, (operation, method))));
    if replies.needed {
        items.extend(unless_own_ipc(open(c, &replies)));
    }
    if has_server {
        items.extend(pages::server(c, operations, &layout.methods));
    }
    items
}

/// The function that finds the method for a request: by the first bits of the label, as many as there are places. A request
/// with a part in memory comes with the room that it is in.
fn dispatch(c: &Interface, operations: &[&Operation], methods: &[Method]) -> Item {
    let mut parameters = dispatch_parameters();
    parameters.extend([
        (Ty::named("void *"), "_room".into()),
        (Ty::named("uint64_t").to(), "_kept".into()),
        (Ty::named("bool").to(), "_long".into()),
    ]);
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
fn serve(c: &Interface, operations: &[&Operation], layout: &InterfaceLayout, room: &Room) -> String {
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
