//! Programs that say what the constants and the members of enums and bitmasks of a file are, one in each language: each line has the
//! file's own name of it and its bytes as they travel over sockets of the host. What is not the same in both is a mistake.

use crate::model::{Const, Model, Type, TypeId, Value};

/// The names of all that has a value: those of the file, and where they are found.
pub struct Named {
    /// The file's name.
    pub path: String,
    /// Its type; without one it is a text.
    pub ty: Option<TypeId>,
    /// The constant's place in the model, or the type's and the member's.
    pub place: Place,
}

/// Where something with a value is found.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// A constant, by its place in the model.
    Constant(usize),
    /// A member of a type, by its place there.
    Member(TypeId, usize),
}

/// Everything in a file that has a value in both languages, in the order of the file.
pub fn all(model: &Model) -> Vec<Named> {
    let mut all = Vec::new();
    for id in model.ids().filter(|&id| !model.is_any_kind(id)) {
        let (Type::Enum(path, members) | Type::Bitmask(path, _, members)) = model.ty(id) else { continue };
        all.extend(members.iter().enumerate().map(|(number, (member, _))| Named {
            path: format!("{path}::{member}"),
            ty: Some(id),
            place: Place::Member(id, number),
        }));
    }
    let constants = model.consts.iter().enumerate().filter_map(|(number, constant)| {
        let ty = travels(model, constant)?;
        Some(Named { path: constant.name.clone(), ty, place: Place::Constant(number) })
    });
    all.extend(constants);
    all
}

/// The type of a constant that both languages have, if it is no text.
fn travels(model: &Model, constant: &Const) -> Option<Option<TypeId>> {
    match (&constant.value, model.ty(model.resolved(constant.ty))) {
        (Value::Str(_) | Value::WideStr(_), _) => Some(None),
        (Value::Int(_), Type::Int { .. } | Type::Octet | Type::Bitmask(..) | Type::Enum(..))
        | (Value::Enum(..), Type::Enum(..))
        | (Value::Float(_), Type::Float(32 | 64))
        | (Value::Bool(_), Type::Bool)
        | (Value::Char(_), Type::Char)
        | (Value::WideChar(_), Type::WideChar) => Some(Some(constant.ty)),
        _ => None,
    }
}
