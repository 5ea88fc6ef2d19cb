//! Which types values can travel of at all, in whatever language.

use crate::limits;
use crate::marshal::Lying;
use crate::model::{Model, Type, TypeId};
use crate::sizes::{Sizes, for_all_types};

/// What a type consists of.
fn inner(model: &Model, id: TypeId) -> Vec<TypeId> {
    match model.ty(id) {
        Type::Alias(_, to) | Type::Sequence(to, _) | Type::Array(to, _) => vec![*to],
        Type::Optional(to) | Type::Shared(to) => vec![*to],
        Type::Struct(_, fields) | Type::Flat(_, fields) => fields.iter().map(|f| f.ty).collect(),
        Type::Union { switch, branches, .. } => {
            branches.iter().map(|b| b.field.ty).chain([*switch]).collect()
        }
        _ => Vec::new(),
    }
}

/// Marks of types with references to objects in them.
pub fn referring(model: &Model) -> Vec<bool> {
    having(model, |id| matches!(model.ty(id), Type::Object(_)))
}

/// Marks of types with an `any` in them.
pub fn holding_any(model: &Model) -> Vec<bool> {
    having(model, |id| model.is_any(id))
}

/// Which types are unions, lists of what has no fixed size, those that are `marked`, or parts of these: what may be read piece by piece.
pub fn streamed(model: &Model, sizes: &Sizes, lying: Lying, marked: &[bool]) -> Vec<bool> {
    let mut streamed = vec![false; model.types_len()];
    let mut found = Vec::new();
    for index in 0..model.types_len() {
        let id = TypeId(index as u32);
        match model.ty(id) {
            _ if marked.get(index) == Some(&true) => found.push(id),
            Type::Union { .. } | Type::Optional(_) | Type::Shared(_) => found.push(id),
            Type::Sequence(of, _) | Type::Array(of, _) if sizes.fixed(*of).is_none() => found.push(id),
            Type::Sequence(of, bound) if sizes.is_looked_at(*of, *bound) => found.push(id),
            Type::Sequence(of, _) | Type::Array(of, _) if lying == Lying::All && !sizes.flat(*of) => {
                found.push(id);
            }
            _ => {}
        }
    }
    while let Some(id) = found.pop() {
        // The bytes of a flat union are read as they are.
        if !std::mem::replace(&mut streamed[id.0 as usize], true) && !matches!(model.ty(id), Type::Flat(..)) {
            found.extend(inner(model, id));
        }
    }
    streamed
}

/// Which types contain themselves, where lists for which `inside` holds lie in their values.
pub fn endless(model: &Model, inside: impl Fn(Option<u64>) -> bool) -> Vec<bool> {
    let about = |ty: TypeId, of: &mut dyn FnMut(TypeId) -> bool| match model.ty(ty) {
        Type::Sequence(element, bound) => inside(*bound) && of(*element),
        Type::Array(element, _) => of(*element),
        Type::Struct(_, fields) => fields.iter().any(|f| of(f.ty)),
        Type::Union { branches, .. } => branches.iter().any(|b| of(b.field.ty)),
        _ => false,
    };
    for_all_types(model, true, &about)
}

/// Those types that operations of local interfaces use and that cannot travel, but that programs can hold: addresses of which nobody
/// looks at what is there stand for what has no form of its own.
pub fn held(model: &Model, sizes: &Sizes, travels: &[bool]) -> Vec<bool> {
    let local = model.interfaces.iter().filter(|i| i.local && !i.imported).flat_map(|i| &i.operations);
    let mut stack: Vec<TypeId> =
        local.flat_map(|o| o.params.iter().map(|p| p.ty).chain([o.result])).collect();
    let mut used = vec![false; model.types_len()];
    while let Some(id) = stack.pop() {
        if !std::mem::replace(&mut used[id.0 as usize], true) {
            stack.extend(inner(model, id));
        }
    }
    let is_whole = |id: TypeId| match model.ty(id) {
        Type::Union { switch, .. } => !matches!(model.ty(model.resolved(*switch)), Type::Error),
        Type::Enum(_, members) => !members.is_empty(),
        Type::Flat(..) => sizes.fixed(id).is_some(),
        Type::Fixed(..) => sizes.fixed(id).is_some(),
        Type::Error | Type::Void | Type::Float(128) | Type::Fpage => false,
        _ => true,
    };
    let whole = spread(model, |id| !is_whole(id));
    let all = used.into_iter().zip(travels).zip(whole);
    all.map(|((used, travels), whole)| used && !travels && whole).collect()
}

/// Whether something has no form in a language but an address.
pub fn is_opaque(ty: &Type) -> bool {
    matches!(ty, Type::Pointer(..) | Type::Open(_) | Type::Foreign(..) | Type::Forward(_))
}

/// Finds the types that contain nothing that cannot travel.
pub fn travelling(model: &Model, sizes: &Sizes, carries: impl Fn(TypeId) -> bool) -> Vec<bool> {
    spread(model, |id| match model.ty(id) {
        Type::Error | Type::Void | Type::Fpage | Type::Forward(_) | Type::Foreign(..) => true,
        Type::Pointer(..) | Type::Open(_) | Type::Float(128) => true,
        Type::Enum(_, members) => members.is_empty(),
        Type::Flat(..) | Type::Fixed(..) => sizes.fixed(id).is_none(),
        _ => !carries(id),
    })
}

/// Why a type does not travel: what stands in it that cannot.
pub fn why(model: &Model, travels: &[bool], ty: TypeId) -> String {
    let (culprit, why) = first_cause(model, travels, ty);
    match culprit == model.resolved(ty) {
        true => why,
        false => format!("`{}` has a part that cannot travel: {why}", model.show(model.resolved(ty))),
    }
}

/// The part of a type that cannot travel by itself, and why it cannot.
fn first_cause(model: &Model, travels: &[bool], ty: TypeId) -> (TypeId, String) {
    let mut culprit = model.resolved(ty);
    for _ in 0..limits::NESTING_MAX {
        // Where a union has no discriminator, the type of that one is no type.
        let inside = inner(model, culprit).into_iter().map(|ty| model.resolved(ty));
        let mut inside = inside.filter(|ty| !matches!(model.ty(*ty), Type::Error));
        let Some(next) = inside.find(|ty| !travels[ty.0 as usize]) else { break };
        if next == culprit {
            break;
        }
        culprit = next;
    }
    let show = model.show(culprit);
    let why = match model.ty(culprit) {
        Type::Optional(_) | Type::Shared(_) => {
            format!("an array that may be absent (`{show}`) has no form of its own")
        }
        Type::Foreign(what, name) => format!("{what} `{name}` has no form of its own"),
        Type::Union { switch, .. } if matches!(model.ty(model.resolved(*switch)), Type::Error) => format!(
            "nothing says which member the union `{show}` holds: its members want labels (`case`), and its place `switch_is`; or say `[flat]`, and its bytes travel"
        ),
        Type::Union { .. } => format!("`{show}` contains itself"),
        Type::Struct(..) => format!("`{show}` contains itself where lists lie in their values"),
        Type::Enum(..) => format!("the enum `{show}` has no values"),
        Type::Void => "`void` is no value".into(),
        _ => format!("`{show}` has no form of its own"),
    };
    (culprit, why)
}

/// Marks of types with parts that several values may have in common.
pub fn sharing(model: &Model) -> Vec<bool> {
    having(model, |id| matches!(model.ty(id), Type::Shared(_)))
}

/// Marks of types that are, or contain, something that `is` so.
fn having(model: &Model, is: impl Fn(TypeId) -> bool) -> Vec<bool> {
    spread(model, is).into_iter().map(|without| !without).collect()
}

/// Finds the types that contain nothing that is `bad`: found by taking away until nothing changes.
fn spread(model: &Model, bad: impl Fn(TypeId) -> bool) -> Vec<bool> {
    let count = model.types_len();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut good = vec![true; count];
    let mut lost = Vec::new();
    let mut depths = vec![0usize; count];
    for index in 0..count {
        let id = TypeId(index as u32);
        // Types without a name of their own are written out within one another: that must end somewhere.
        if let Type::Alias(_, to)
        | Type::Sequence(to, _)
        | Type::Array(to, _)
        | Type::Optional(to)
        | Type::Shared(to) = model.ty(id)
        {
            depths[index] = depths[to.0 as usize] + 1;
        }
        if depths[index] > limits::NESTING_MAX {
            lost.push(index);
        }
        for ty in inner(model, id) {
            users[ty.0 as usize].push(index);
        }
        if bad(id) {
            lost.push(index);
        }
    }
    while let Some(index) = lost.pop() {
        if std::mem::replace(&mut good[index], false) {
            lost.extend(&users[index]);
        }
    }
    good
}
