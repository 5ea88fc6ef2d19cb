//! Elements of arrays and short lists that travel in words as they lie in their values, although not every bit pattern is one of their values.

use super::*;
use crate::layout::Leaf;

/// The type of a list's elements.
fn element(e: &Emitter, ty: TypeId) -> Option<TypeId> {
    match e.kind(ty) {
        Type::Sequence(of, _) | Type::Array(of, _) => Some(*of),
        _ => None,
    }
}

/// Whether values have bytes that belong to none of their fields: these would be sent as they happen to be.
fn has_holes(e: &Emitter, ty: TypeId) -> bool {
    match e.kind(ty) {
        Type::Struct(_, fields) => {
            let bytes: u64 = fields.iter().filter_map(|f| e.sizes.fixed(f.ty)).map(|f| f.size).sum();
            let size = e.sizes.fixed(e.model.resolved(ty)).map_or(0, |fixed| fixed.size);
            bytes != size || fields.iter().any(|f| has_holes(e, f.ty))
        }
        Type::Array(of, _) => has_holes(e, *of),
        _ => false,
    }
}

/// Why a method cannot be translated: its elements would be used where they have arrived, or have bytes that mean nothing.
pub(super) fn refused(e: &Emitter, method: &Method) -> Option<String> {
    let has_holes = |ty: TypeId| element(e, ty).is_some_and(|of| !e.sizes.flat(of) && has_holes(e, of));
    let holed = |message: &Message| {
        let holed = message.slots.iter().find(|slot| match slot.leaf {
            Leaf::Value(ty) | Leaf::Elements(ty, _) => has_holes(ty),
            _ => false,
        });
        let path = holed?.path.join(".");
        Some(format!("`{path}` is copied as it is, but its elements have bytes between their fields"))
    };
    let mut messages = method.messages();
    messages.find_map(|message| plan::refusal(e.model, &e.sizes, message).or_else(|| holed(message)))
}

/// Statements that look at each element of an array or list, wherever one may be wrong.
pub(super) fn look(e: &Emitter, ty: TypeId, value: &Expr, depth: usize) -> Vec<Stmt> {
    let if_wrong = |wrong: Expr| vec![Stmt::If(wrong, malformed())];
    match e.kind(ty) {
        _ if e.sizes.flat(ty) => Vec::new(),
        // Compilers take any byte of a truth value for 0 or 1.
        Type::Bool => {
            let byte = value.clone().address().cast(Ty::named("uint8_t").to()).deref();
            if_wrong(byte.with(">", Expr::Int(1)))
        }
        Type::Array(of, dims) => look_at_array(e, *of, dims, value, depth),
        Type::Sequence(of, _) => {
            let index = format!("_e{depth}");
            let body = look(e, *of, &value.clone().field("_buffer").index(name(&index)), depth + 1);
            if body.is_empty() { body } else { vec![Stmt::For(index, value.clone().field("_length"), body)] }
        }
        Type::Struct(_, fields) => {
            let field = |f: &Field| look(e, f.ty, &value.clone().field(word(&f.name)), depth);
            fields.iter().flat_map(field).collect()
        }
        _ => wrong_bits(e, ty, value).map(if_wrong).unwrap_or_default(),
    }
}

/// Statements that look at each element of an array, dimension by dimension.
fn look_at_array(e: &Emitter, of: TypeId, dims: &[u64], value: &Expr, depth: usize) -> Vec<Stmt> {
    let Some((&first, rest)) = dims.split_first() else { return look(e, of, value, depth) };
    let index = format!("_e{depth}");
    let body = look_at_array(e, of, rest, &value.clone().index(name(&index)), depth + 1);
    if body.is_empty() { body } else { vec![Stmt::For(index, Expr::Int(first.into()), body)] }
}
