//! Clients that are told in DCE's way how a call failed: by a result or a parameter, as an attribute file says.
//!
//! Each such function stands in front of the one that the kernel part made, which gets another name. What fails otherwise, and
//! exceptions, are told by the function's own result as always.

use super::interface::{Interface, status};
use super::tree::{Expr, Item, Parameters, Stmt, Ty, call, name};
use super::{Emitter, word};
use crate::layout::{InterfaceLayout, RESULT};
use crate::model::{Operation, Told};

/// The items of an interface, with such functions in the place of those that they call.
pub fn told(
    emitter: &Emitter,
    layout: &InterfaceLayout,
    operations: &[&Operation],
    items: Vec<Item>,
) -> Vec<Item> {
    let c = Interface { emitter, interface: &emitter.model.interfaces[layout.interface.0 as usize].name };
    let mut all = Vec::new();
    for item in items {
        let Item::Function(ty, function, parameters, body) = item else {
            all.push(item);
            continue;
        };
        let is_client = |operation: &&&Operation| c.operation(operation) == function;
        match operations.iter().find(is_client).filter(|operation| has_place(operation)) {
            Some(operation) => {
                let inner = c.function(&format!("{}_told", operation.name));
                let outer = client(operation, &inner, function, parameters.clone());
                all.extend([Item::Function(ty, inner, parameters, body), outer]);
            }
            None => all.push(Item::Function(ty, function, parameters, body)),
        }
    }
    all
}

fn has_place(operation: &Operation) -> bool {
    operation.statuses.comm.is_some() || operation.statuses.fault.is_some()
}

/// The function that programs call.
fn client(operation: &Operation, inner: &str, function: String, mut parameters: Parameters) -> Item {
    let arguments: Vec<Expr> = parameters.iter().map(|(_, parameter)| name(parameter)).collect();
    let mut body = vec![Stmt::Let(status(), "_status".into(), Some(call(inner, arguments)))];
    let mut added: Vec<&String> = Vec::new();
    for told in [&operation.statuses.comm, &operation.statuses.fault].into_iter().flatten() {
        if let Told::Added(parameter) = told
            && !added.contains(&parameter)
        {
            added.push(parameter);
            parameters.push((Ty::named("uint32_t").to(), word(parameter)));
            body.push(Stmt::Set(name(word(parameter)).deref(), Expr::Int(0)));
        }
    }
    let exceptions = Expr::Int(operation.raises.len() as i128);
    let comm = call("QUILL_IS_COMM", [name("_status")]);
    let fault = call("QUILL_IS_FAULT", [name("_status"), exceptions]);
    for (told, failed) in [(&operation.statuses.comm, comm), (&operation.statuses.fault, fault)] {
        let place = match told {
            Some(Told::Result) => name(RESULT),
            Some(Told::Param(parameter) | Told::Added(parameter)) => name(word(parameter)),
            None => continue,
        };
        let tell = Stmt::Set(place.deref(), name("_status"));
        body.push(Stmt::If(failed, vec![tell, Stmt::Return(Some(name("QUILL_OK")))]));
    }
    body.push(Stmt::Return(Some(name("_status"))));
    Item::Function(status(), function, parameters, body)
}
