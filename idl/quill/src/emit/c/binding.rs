//! Clients in C that find their server themselves: by a variable, or by asking a function, both of which are the program's.
//!
//! Such a function is the one that the kernel part made, but for its first parameter, which is a variable of its own.

use super::interface::Interface;
use super::tree::{Expr, Item, Stmt, Ty, call, name};
use super::{Emitter, word};
use crate::layout::InterfaceLayout;
use crate::model::{Binding, Operation};

/// The binding that an operation's function follows, if its first parameter does not say who is called.
pub fn of<'a>(c: &Interface<'a>, operation: &Operation) -> Option<&'a Binding> {
    let interface = c.emitter.model.interfaces.iter().find(|interface| interface.name == c.interface)?;
    interface.binding.as_ref().filter(|_| !operation.has_handle)
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
    if interface.binding.is_none() {
        return items;
    }
    let c = Interface { emitter, interface: &interface.name };
    let mut all = Vec::new();
    let mut is_announced = false;
    for item in items {
        let Item::Function(ty, function, mut parameters, mut body) = item else {
            all.push(item);
            continue;
        };
        let is_client = |operation: &&&Operation| c.operation(operation) == function;
        if let Some(binding) = operations.iter().find(is_client).and_then(|operation| of(&c, operation)) {
            let (callee, parameter) = parameters.remove(0);
            let (server, declared) = server(&c, binding, &callee);
            if !std::mem::replace(&mut is_announced, true) {
                all.push(Item::Comment("The program says whom the next functions call.".into()));
                all.push(Item::Text(format!("{declared};\n")));
            }
            body.insert(0, Stmt::Let(callee, parameter, Some(server)));
        }
        all.push(Item::Function(ty, function, parameters, body));
    }
    all
}
