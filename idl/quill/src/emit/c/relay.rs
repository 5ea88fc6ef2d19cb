//! The program in C that `quill test` puts between a client and a server in Rust: each method of its servers calls the same method by its own
//! client.
//!
//! So C's stubs are tested with whatever values the self-test in Rust makes, and make none themselves. How a client finds its server and is told
//! of failures is left out: the program has one server, and hands on how a call ended.

use super::Emitter;
use super::interface::{Interface, status};
use super::tree::{Item, Stmt, Ty, call, name, text};
use crate::layout::InterfaceLayout;
use crate::model::{Called, Model, Operation, Statuses};

/// Text that every such program has.
pub const TEXT: &str = include_str!("relay.h");

/// A model whose clients are all given their server, and say by their result how a call ended.
pub fn plain(model: &Model) -> Model {
    let mut model = model.clone();
    for interface in &mut model.interfaces {
        interface.binding = None;
        for operation in &mut interface.operations {
            operation.called = Called::Said;
            operation.statuses = Statuses::default();
        }
    }
    model
}

/// The text behind the stubs: methods, and a program that is told the interface's name.
pub fn program(emitter: &Emitter, layouts: &[InterfaceLayout]) -> String {
    let mut all = String::from(TEXT);
    let mut choices = String::new();
    for (number, layout) in layouts.iter().enumerate() {
        let interface = &emitter.model.interfaces[layout.interface.0 as usize];
        if interface.local {
            continue;
        }
        let c = Interface { emitter, interface: &interface.name };
        let operations = emitter.model.operations(layout.interface);
        let method = |operation: &Operation| format!("quill_relay_{number}_{}", emitter.method(operation));
        let items: Vec<Item> = operations.iter().map(|o| handed_on(&c, o, method(o))).collect();
        all += &text(&items);
        let table: Vec<String> = operations.iter().map(|o| method(o)).collect();
        let (methods, dispatch) = (c.function("server"), c.function("dispatch"));
        all += &format!("static const {methods} quill_relay_{number} = {{ {} }};\n", table.join(", "));
        choices += &format!(
            "    if (strcmp(interface, \"{}\") == 0)\n        return quill_relay({dispatch}, &quill_relay_{number});\n",
            interface.name
        );
    }
    all + "int main(int count, char **words)\n{\n    const char *interface = count > 1 ? words[1] : \"\";\n\n"
        + &choices
        + "    return 2;\n}\n"
}

/// A method of a server, which has a client for itself.
fn handed_on(c: &Interface, operation: &Operation, function: String) -> Item {
    let memory = (Ty::named("quill_memory").to(), "_memory".to_owned());
    let mut parameters = vec![(Ty::named("void *"), "_self".to_owned()), memory];
    parameters.extend(c.parameters(operation));
    let mut arguments = vec![name("_self")];
    arguments.extend(c.parameters(operation).iter().map(|(_, parameter)| name(parameter)));
    let body = vec![
        Stmt::Do(name("_memory").cast(Ty::named("void"))),
        Stmt::Return(Some(call(c.operation(operation), arguments))),
    ];
    Item::Function(status(), function, parameters, body)
}
