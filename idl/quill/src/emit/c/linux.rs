//! C over `linux`: the same messages as Rust's.

use super::agree;
use super::interface::{Interface, Spot, borrowed, status};
use super::pieces;
use super::tree::{Expr, Item, Stmt, Ty, call, name};
use super::{Emitter, Lists, Part, word};
use crate::layout::{InterfaceLayout, Message, Method};
use crate::model::{Operation, TypeId};
use crate::plan::{Content, Plan, Variable, What};

mod contexts;

/// C over Unix-domain sockets.
#[derive(Clone, Copy, Debug)]
pub struct Linux;

impl Part for Linux {
    fn runtime(&self) -> &'static str {
        concat!(
            include_str!("utf8.h"),
            include_str!("linux_message.h"),
            include_str!("stream.h"),
            include_str!("linux_shared.h"),
            include_str!("stream_shared.h"),
            include_str!("linux_runtime.h")
        )
    }

    fn lists(&self) -> Lists {
        Lists::Pointers
    }

    fn carries(&self, _: &Emitter, _: TypeId) -> bool {
        true
    }

    fn values(&self, emitter: &Emitter) -> Vec<Item> {
        pieces::functions(emitter, |_| true)
    }

    fn interface(&self, emitter: &Emitter, layout: &InterfaceLayout, operations: &[&Operation]) -> Vec<Item> {
        let interface = &emitter.model.interfaces[layout.interface.0 as usize].name;
        let c = Interface { emitter, interface };
        let methods = c.function("server");
        let memory = (Ty::named("quill_memory").to(), "_memory".into());
        let mut items = c.declarations_with(operations, Some(&memory), contexts::rundowns(&c, operations));
        for (operation, method) in operations.iter().zip(&layout.methods) {
            items.push(c.client(operation, method));
        }
        for (operation, method) in operations.iter().zip(&layout.methods) {
            items.push(c.answer(operation, method, &methods));
        }
        items.push(c.dispatch(operations, &layout.methods));
        items
    }
}

/// The end of a function that has not got what it was to read.
fn failed_as() -> Stmt {
    let why = call("quill_failed_as", [name("_in")]);
    Stmt::If(name("_in").deref().field("failed"), vec![Stmt::Return(Some(why))])
}

impl Interface<'_> {
    /// Statements that write a message.
    fn write(&self, message: &Message, places: &[Spot]) -> Vec<Stmt> {
        let out = || name("_out");
        let refuse = || Stmt::Do(call("quill_fail", [name("_out"), name("QUILL_TOO_LONG")]));
        let checks =
            places.iter().flat_map(|(_, ty, value)| agree::fields(self.emitter, *ty, value, &refuse, 0));
        let mut body: Vec<Stmt> = checks.collect();
        for path in pieces::anys(self.emitter, message) {
            let fail = Stmt::Do(call("quill_fail", [out(), name("QUILL_MALFORMED")]));
            body.push(Stmt::If(pieces::unsound(Self::at(places, path)), vec![fail]));
        }
        let plan = Plan::of(self.emitter.model, message);
        for step in &plan.fixed {
            let value = Self::at(places, step.path);
            body.push(Stmt::Do(call("quill_put_at", [out(), Expr::Int(step.offset().into())])));
            match step.what {
                What::Value => body.extend(pieces::put(self.emitter, step.ty, value, 0)),
                What::Count(_) => {
                    let count = pieces::count(self.emitter, step.ty, value.clone());
                    body.extend(pieces::check(self.emitter, step.ty, value));
                    body.push(Stmt::Do(call("quill_put_u32", [out(), count])));
                }
                What::Elements(..) | What::Tail(_) | What::Offer(..) => {}
            }
        }
        body.push(Stmt::Do(call("quill_put_at", [out(), Expr::Int(message.memory_bytes.into())])));
        for Variable { chunk, content, .. } in &plan.variable {
            let value = Self::at(places, &chunk.path);
            body.push(Stmt::Do(call("quill_put_align", [out(), Expr::Int(8)])));
            match content {
                Content::Text(_) if self.emitter.counted(chunk.ty) => {
                    let text = [out(), value.clone().field("_buffer"), value.field("_length")];
                    body.push(Stmt::Do(call("quill_put", text)));
                }
                Content::Text(_) => body.push(Stmt::Do(call("quill_put_text", [out(), value]))),
                Content::List(_) => {
                    let function = format!("quill_put_elements_{}", self.emitter.mangled(chunk.ty));
                    body.push(Stmt::Do(call(function, [out(), value.address()])));
                }
                Content::Array | Content::Pieces => {
                    body.extend(pieces::put(self.emitter, chunk.ty, value, 0))
                }
            }
        }
        body
    }

    /// Statements that read a message to its end.
    fn read(&self, message: &Message, places: &[Spot]) -> Vec<Stmt> {
        let from = || name("_in");
        let mut body = Vec::new();
        let plan = Plan::of(self.emitter.model, message);
        for step in &plan.fixed {
            body.push(Stmt::Do(call("quill_get_at", [from(), Expr::Int(step.offset().into())])));
            match step.what {
                What::Value => {
                    body.extend(pieces::get(self.emitter, step.ty, Self::at(places, step.path), 0));
                }
                What::Count(_) => {
                    let count = format!("_count_{}", step.number);
                    body.push(Stmt::Let(Ty::named("uint32_t"), count, Some(call("quill_get_u32", [from()]))));
                }
                What::Elements(..) | What::Tail(_) | What::Offer(..) => {}
            }
        }
        body.push(Stmt::Do(call("quill_get_at", [from(), Expr::Int(message.memory_bytes.into())])));
        for Variable { chunk, content, count, .. } in &plan.variable {
            let value = Self::at(places, &chunk.path);
            body.push(Stmt::Do(call("quill_get_align", [from(), Expr::Int(8)])));
            let count = name(format!("_count_{}", count.unwrap_or(0)));
            match content {
                Content::Text(bound) if self.emitter.counted(chunk.ty) => {
                    body.push(Stmt::Set(value.clone().field("_length"), count.clone()));
                    let text = call("quill_get_counted_text", [from(), count, pieces::bound(*bound)]);
                    body.push(Stmt::Set(value.field("_buffer"), text));
                }
                Content::Text(bound) => {
                    let text = call("quill_get_text", [from(), count, pieces::bound(*bound)]);
                    body.push(Stmt::Set(value, text));
                }
                Content::List(_) => {
                    let function = format!("quill_get_elements_{}", self.emitter.mangled(chunk.ty));
                    body.push(Stmt::Do(call(function, [from(), value.address(), count])));
                }
                Content::Array | Content::Pieces => {
                    body.extend(pieces::get(self.emitter, chunk.ty, value, 0))
                }
            }
        }
        body.push(Stmt::Do(call("quill_get_end", [from()])));
        let checks = places
            .iter()
            .flat_map(|(_, ty, value)| agree::fields(self.emitter, *ty, value, &pieces::failed, 0));
        body.extend(pieces::unless_failed(checks.collect()));
        for path in pieces::anys(self.emitter, message) {
            body.push(Stmt::If(pieces::unsound(Self::at(places, path)), vec![pieces::failed()]));
        }
        body
    }

    /// A client's function.
    fn client(&self, operation: &Operation, method: &Method) -> Item {
        let mut parameters = vec![(Ty::named("quill_client").to(), "_server".into())];
        parameters.extend(self.parameters(operation));
        let label = Expr::Int(method.request.label.into());
        let socket = name("_server").deref().field("socket");
        let memory = name("_server").deref().field("memory").address();
        let mut body = vec![
            Stmt::Announce(Ty::named("quill_out"), "_message".into()),
            Stmt::Let(
                Ty::named("quill_out").to(),
                "_out".into(),
                Some(call("quill_begin_out", [name("_message").address()])),
            ),
        ];
        let refuse = || Stmt::Do(call("quill_fail", [name("_out"), name("QUILL_TOO_LONG")]));
        let parameter = |of: usize| self.parameter(operation, of);
        body.extend(agree::parameters(self.emitter, operation, false, &parameter, &refuse));
        body.extend(self.write(&method.request, &self.inputs(operation)));
        if operation.oneway {
            body.push(Stmt::Return(Some(call("quill_send", [socket, label, name("_out")]))));
            return Item::Function(status(), self.operation(operation), parameters, body);
        }
        let come = name("_come");
        let called = [name("_server"), label, name("_out"), come.clone().address()];
        body.extend([
            Stmt::Announce(Ty::named("quill_come"), "_come".into()),
            Stmt::Let(Ty::named("quill_in").to(), "_in".into(), Some(come.field("in").address())),
            Stmt::Let(status(), "_label".into(), Some(call("quill_call", called))),
        ]);
        let open = || Stmt::Do(call("quill_open", [name("_come").address(), memory.clone()]));
        let mut read = vec![open()];
        read.extend(self.read(&method.reply, &self.outputs(operation)));
        let agreed = agree::parameters(self.emitter, operation, true, &parameter, &pieces::failed);
        read.extend(pieces::unless_failed(agreed));
        let mut cases = vec![(vec![0], read)];
        body.extend(self.unused_place(operation));
        let raised = name("_raised").deref();
        let read = |message: &Message, places: &[Spot]| {
            let mut all = vec![open()];
            all.extend(self.read(message, places));
            all
        };
        cases.extend(self.exception_cases(operation, method, &raised, read));
        body.push(Stmt::Switch(name("_label"), cases, vec![Stmt::Return(Some(name("_label")))]));
        body.push(failed_as());
        body.push(Stmt::Return(Some(name("_label"))));
        Item::Function(status(), self.operation(operation), parameters, body)
    }

    /// The function that answers a request for a method.
    fn answer(&self, operation: &Operation, method: &Method, methods: &str) -> Item {
        let parameters = vec![
            (Ty::named(methods).to().constant(), "_methods".into()),
            (Ty::named("void *"), "_self".into()),
            (Ty::named("quill_in").to(), "_in".into()),
            (Ty::named("quill_out").to(), "_out".into()),
        ];
        let mut body = self.variables(operation, |_| false);
        let inputs = self.local(self.inputs(operation));
        let outputs = self.local(self.outputs(operation));
        body.extend(self.read(&method.request, &borrowed(&inputs)));
        let variable = |of: usize| name(word(&operation.params[of].name));
        let agreed = agree::parameters(self.emitter, operation, false, &variable, &pieces::failed);
        body.extend(pieces::unless_failed(agreed));
        body.push(failed_as());
        body.extend(contexts::check(self, operation));
        let called = self.call_method(operation, vec![name("_self"), name("_in").deref().field("memory")]);
        body.push(Stmt::Let(status(), "_status".into(), Some(called)));
        if operation.oneway {
            body.push(Stmt::Do(name("_out").cast(Ty::named("void"))));
            body.push(Stmt::Return(Some(name("_status"))));
            return Item::Function(
                status(),
                self.function(&format!("{}_answer", operation.name)),
                parameters,
                body,
            );
        }
        body.extend(contexts::note(self, operation));
        let refuse = || Stmt::Do(call("quill_fail", [name("_out"), name("QUILL_TOO_LONG")]));
        let mut write = agree::parameters(self.emitter, operation, true, &variable, &refuse);
        write.extend(self.write(&method.reply, &borrowed(&outputs)));
        let mut cases = vec![(vec![0], write)];
        let write = |message: &Message, places: &[Spot]| self.write(message, places);
        cases.extend(self.exception_cases(operation, method, &name("_raised"), write));
        body.push(Stmt::Switch(name("_status"), cases, vec![Stmt::Return(Some(name("_status")))]));
        body.push(Stmt::Return(Some(name("_status"))));
        Item::Function(status(), self.function(&format!("{}_answer", operation.name)), parameters, body)
    }

    /// The function that finds the method for a request.
    fn dispatch(&self, operations: &[&Operation], methods: &[Method]) -> Item {
        let parameters = vec![
            (Ty::named("const void *"), "_methods".into()),
            (Ty::named("void *"), "_self".into()),
            (Ty::named("uint32_t"), "_label".into()),
            (Ty::named("quill_in").to(), "_in".into()),
            (Ty::named("quill_out").to(), "_out".into()),
            (Ty::named("bool").to(), "_silent".into()),
        ];
        let cases = operations.iter().zip(methods).map(|(operation, method)| {
            let function = self.function(&format!("{}_answer", operation.name));
            let arguments = ["_methods", "_self", "_in", "_out"].map(name);
            let mut body = Vec::new();
            if operation.oneway {
                body.push(Stmt::Set(name("_silent").deref(), name("true")));
            }
            body.push(Stmt::Set(name("_label"), call(function, arguments)));
            (vec![i128::from(method.request.label)], body)
        });
        let body = vec![
            Stmt::Switch(name("_label"), cases.collect(), vec![Stmt::Return(Some(name("QUILL_NO_METHOD")))]),
            // What a method returns is checked like what it is given; half a reply is none.
            Stmt::If(
                name("_out").deref().field("status").with("!=", name("QUILL_OK")),
                vec![
                    Stmt::Set(name("_out").deref().field("status"), name("QUILL_OK")),
                    Stmt::Set(name("_out").deref().field("length"), Expr::Int(0)),
                    Stmt::Return(Some(name("QUILL_MALFORMED"))),
                ],
            ),
            Stmt::Return(Some(name("_label"))),
        ];
        // An interface may have no methods.
        let unused = parameters.iter().map(|(_, unused)| Stmt::Do(name(unused).cast(Ty::named("void"))));
        let body = unused.chain(body).collect();
        Item::Function(Ty::named("uint32_t"), self.function("dispatch"), parameters, body)
    }
}
