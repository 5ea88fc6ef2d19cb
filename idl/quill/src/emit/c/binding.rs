//! Clients in C that find their server themselves: by a variable, or by asking a function, both of which are the program's.
//!
//! Such a function is the one that the kernel part made, but for its first parameter, which is a variable of its own. Where the program finds
//! the server for a handle of a type of the file's own, it stands in front of that one, which gets another name.

use std::collections::HashSet;

use super::interface::{Interface, status};
use super::tree::{Expr, Item, Parameters, Stmt, Ty, call, name};
use super::{Emitter, word};
use crate::layout::InterfaceLayout;
use crate::model::{Binding, Called, Direction, Operation, Type};

/// The binding that an operation's function follows, if its first parameter does not say who is called.
pub fn of<'a>(c: &Interface<'a>, operation: &Operation) -> Option<&'a Binding> {
    let interface = c.emitter.model.interfaces.iter().find(|interface| interface.name == c.interface)?;
    interface.binding.as_ref().filter(|_| operation.called == Called::Bound)
}

/// Whether the first parameter of an operation's function says who is called.
pub fn is_said(c: &Interface, operation: &Operation) -> bool {
    of(c, operation).is_none() && !matches!(operation.called, Called::Found(_))
}

/// Functions of the program for handles of a type of the file's own: one finds the server for a handle, and one is told that the call is over.
pub struct Finder {
    bind: String,
    unbind: String,
    /// The handle, as they are given it.
    given: Ty,
    callee: Ty,
}

impl Finder {
    /// The functions for an operation, if there are some, and the handle in its function.
    fn of(c: &Interface, operation: &Operation, callee: &Ty) -> Option<(Finder, Expr)> {
        let Called::Found(of) = &operation.called else { return None };
        // A reference is one to an object with this interface, so other interfaces have functions of their own.
        let function = |what: &str| match c.emitter.hands_references {
            true => c.function(&format!("{}_{what}", word(of))),
            false => c.emitter.beside(&word(of), what),
        };
        let handle = operation.params.first()?.ty;
        let (present, may_be_absent) = match c.emitter.kind(handle) {
            Type::Optional(of) | Type::Shared(of) => (*of, true),
            _ => (handle, false),
        };
        let given = c.emitter.parameter(present, Direction::In);
        let value = c.parameter(operation, 0);
        let is_address = given.pointer && given.dims.is_empty() && !may_be_absent;
        let value = if is_address { value.address() } else { value };
        let (bind, unbind) = (function("bind"), function("unbind"));
        Some((Finder { bind, unbind, given, callee: callee.clone() }, value))
    }

    /// The functions for an interface, each once.
    pub fn all(c: &Interface, operations: &[&Operation], callee: &Ty) -> Vec<Finder> {
        let found = operations.iter().filter_map(|operation| Finder::of(c, operation, callee));
        let mut seen = HashSet::new();
        found.map(|(finder, _)| finder).filter(|finder| seen.insert(finder.bind.clone())).collect()
    }

    /// How both are declared.
    pub fn declared(&self) -> [String; 2] {
        let (given, callee) = (self.given.declare("_handle"), &self.callee);
        let unbind = format!("{}({given}, {})", self.unbind, callee.declare("_server"));
        [callee.declare(&format!("{}({given})", self.bind)), Ty::named("void").declare(&unbind)]
    }

    /// The function that programs call, in front of the one that calls the server. Nobody is called if no server is found.
    fn function(
        &self,
        handle: Expr,
        inner: String,
        ty: Ty,
        function: String,
        parameters: Parameters,
    ) -> Item {
        let server = parameters[0].1.clone();
        let arguments: Vec<Expr> = parameters.iter().map(|(_, parameter)| name(parameter)).collect();
        let found = call(&self.bind, [handle.clone()]);
        let mut body = vec![Stmt::Let(self.callee.clone(), server.clone(), Some(found))];
        if self.callee.pointer {
            let none = Expr::Not(Box::new(name(&server)));
            body.push(Stmt::If(none, vec![Stmt::Return(Some(name("QUILL_IO")))]));
        }
        body.push(Stmt::Let(status(), "_status".into(), Some(call(inner, arguments))));
        body.push(Stmt::Do(call(&self.unbind, [handle, name(server)])));
        body.push(Stmt::Return(Some(name("_status"))));
        Item::Function(ty, function, parameters[1..].to_vec(), body)
    }
}

/// The server that a binding says, and what declares it.
pub fn server(c: &Interface, binding: &Binding, callee: &Ty) -> (Expr, String) {
    match binding {
        Binding::Named(variable) => {
            let variable = word(variable);
            (name(&variable), format!("extern {}", callee.declare(&variable)))
        }
        Binding::Asked => {
            let function = c.function("binding");
            let declared = callee.declare(&format!("{function}(void)"));
            (call(function, []), declared)
        }
    }
}

/// The items of an interface, with functions that are so bound.
pub fn bound(
    emitter: &Emitter,
    layout: &InterfaceLayout,
    operations: &[&Operation],
    items: Vec<Item>,
) -> Vec<Item> {
    let interface = &emitter.model.interfaces[layout.interface.0 as usize];
    let c = Interface { emitter, interface: &interface.name };
    let mut all = Vec::new();
    let mut announced = HashSet::new();
    for item in items {
        let Item::Function(ty, function, mut parameters, mut body) = item else {
            all.push(item);
            continue;
        };
        let mut announce = |all: &mut Vec<Item>, declared: Vec<String>| {
            if announced.insert(declared.clone()) {
                all.push(Item::Comment("The program says whom the next functions call.".into()));
                all.extend(declared.into_iter().map(|declared| Item::Text(format!("{declared};\n"))));
            }
        };
        let is_client = |operation: &&&Operation| c.operation(operation) == function;
        let Some(operation) = operations.iter().find(is_client) else {
            all.push(Item::Function(ty, function, parameters, body));
            continue;
        };
        if let Some((finder, handle)) = Finder::of(&c, operation, &parameters[0].0) {
            announce(&mut all, finder.declared().into());
            let inner = c.function(&format!("{}_bound", operation.name));
            let outer = finder.function(handle, inner.clone(), ty.clone(), function, parameters.clone());
            all.extend([Item::Function(ty, inner, parameters, body), outer]);
            continue;
        }
        if let Some(binding) = of(&c, operation) {
            let (callee, parameter) = parameters.remove(0);
            let (server, declared) = server(&c, binding, &callee);
            announce(&mut all, vec![declared]);
            body.insert(0, Stmt::Let(callee, parameter, Some(server)));
        }
        all.push(Item::Function(ty, function, parameters, body));
    }
    all
}
