//! Functions that give back all references in a value: for each declared type with some in it, where references go beside all values.

use super::tree::{Expr, Item, Stmt, Ty, call, name};
use super::{Emitter, word};
use crate::model::{Type, TypeId};

/// The name of the function for a type, as its values are called in C.
fn function_name(of: &str) -> String {
    format!("quill_release_{of}")
}

/// Statements that give back the references in a value.
pub fn release(e: &Emitter, ty: TypeId, value: Expr, depth: usize) -> Vec<Stmt> {
    if !e.refers(ty) {
        return Vec::new();
    }
    match e.kind(ty) {
        Type::Object(_) => vec![Stmt::Do(call("tern_release", [value.field("number")]))],
        Type::Array(of, dims) => each(dims, value, depth, &|element, depth| release(e, *of, element, depth)),
        Type::Optional(of) | Type::Shared(of) => {
            let there = value.clone().with("!=", name("NULL"));
            vec![Stmt::If(there, release(e, *of, value.deref(), depth))]
        }
        _ => vec![Stmt::Do(call(function_name(&e.mangled(ty)), [value.address()]))],
    }
}

/// Loops over all elements of an array.
pub fn each(dims: &[u64], value: Expr, depth: usize, body: &dyn Fn(Expr, usize) -> Vec<Stmt>) -> Vec<Stmt> {
    let Some((&first, rest)) = dims.split_first() else { return body(value, depth) };
    let index = format!("_i{depth}");
    let element = value.index(name(&index));
    vec![Stmt::For(index, Expr::Int(first.into()), each(rest, element, depth + 1, body))]
}

/// A parameter: its type and its name.
pub type Parameter = (Ty, String);

/// The function for a type: its name, its parameters, what it does.
pub fn function(e: &Emitter, id: TypeId) -> Option<(String, Vec<Parameter>, Vec<Stmt>)> {
    if !e.refers(id) {
        return None;
    }
    let value = || name("_value").deref();
    let body = match e.model.ty(id) {
        Type::Struct(_, fields) => {
            let field = |f: &crate::model::Field| release(e, f.ty, value().field(word(&f.name)), 0);
            fields.iter().flat_map(field).collect()
        }
        Type::Sequence(of, bound) => {
            let element = value().field("_buffer").index(name("_e"));
            let (length, body) = (value().field("_length"), release(e, *of, element, 0));
            // Whatever its length says, there are no more than it has room for.
            vec![match bound.filter(|_| e.inside(*bound)) {
                Some(most) => {
                    let is_one = name("_e").with("<", length);
                    Stmt::For("_e".into(), Expr::Int(most.into()), vec![Stmt::If(is_one, body)])
                }
                None => Stmt::For("_e".into(), length, body),
            }]
        }
        Type::Union { switch, branches, .. } => {
            let (mut cases, mut rest) = (Vec::new(), Vec::new());
            for branch in branches {
                let body =
                    release(e, branch.field.ty, value().field("_u").field(word(&branch.field.name)), 0);
                if branch.is_default {
                    rest.clone_from(&body);
                }
                if !branch.labels.is_empty() {
                    cases.push((branch.labels.clone(), body));
                }
            }
            vec![Stmt::Switch(e.discriminator(*switch, value().field("_d")), cases, rest)]
        }
        _ => return None,
    };
    Some((function_name(&e.mangled(id)), vec![(e.ty(id).to().constant(), "_value".into())], body))
}

/// The functions for exceptions.
pub fn exceptions(e: &Emitter) -> Vec<Item> {
    let of = |(exception, own): (&crate::model::Exception, &String)| {
        let travels = exception.fields.iter().all(|f| e.travels[f.ty.0 as usize]);
        let value = |f: &crate::model::Field| name("_value").deref().field(word(&f.name));
        let body: Vec<Stmt> = exception.fields.iter().flat_map(|f| release(e, f.ty, value(f), 0)).collect();
        let parameters = vec![(Ty::named(own.clone()).to().constant(), "_value".into())];
        let function = Item::Function(Ty::named("void"), function_name(own), parameters, body);
        let refers = exception.fields.iter().any(|f| e.refers(f.ty));
        (travels && refers).then_some(function)
    };
    e.model.exceptions.iter().zip(&e.names.exceptions).filter_map(of).collect()
}

/// Other names of these functions: by those that the file gives a list.
pub fn other_names(e: &Emitter) -> Vec<Item> {
    let alias = |id: TypeId| {
        let own = e.names.types.get(&id).filter(|_| e.refers(id))?;
        let is_list = matches!(e.model.ty(id), Type::Alias(..)) && matches!(e.kind(id), Type::Sequence(..));
        is_list.then(|| Item::Define(function_name(own), function_name(&e.mangled(id))))
    };
    e.model.ids().filter_map(alias).collect()
}
