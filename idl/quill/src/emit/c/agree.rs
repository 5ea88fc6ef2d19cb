//! How values have to agree with one another, as statements: lists with the numbers that say how long they are, unions with their
//! discriminators. Numbers are 64 bits wide, and what does not fit wraps around, so that no number of a message is a danger.

use super::tree::{Expr, Stmt, Ty, name};
use super::{Emitter, word};
use crate::model::{Direction, Operation, Rule, Size, Type, TypeId};

/// Finds the expression for a field or parameter with some place, and its type.
type Beside<'a> = &'a dyn Fn(usize) -> (Expr, TypeId);

/// Makes what is done about values that do not agree.
type Fail<'a> = &'a dyn Fn() -> Stmt;

/// Statements that check whether the fields of a struct agree, and those of the structs in it.
pub fn fields(e: &Emitter, ty: TypeId, value: &Expr, fail: Fail, depth: usize) -> Vec<Stmt> {
    let id = e.model.resolved(ty);
    let Type::Struct(_, fields_of) = e.model.ty(id) else { return Vec::new() };
    if depth > crate::limits::NESTING_MAX {
        return Vec::new();
    }
    let mut body = own_fields(e, id, value, fail);
    for field in fields_of {
        body.extend(fields(e, field.ty, &value.clone().field(word(&field.name)), fail, depth + 1));
    }
    body
}

/// Statements that check whether the fields of a struct agree.
pub fn own_fields(e: &Emitter, id: TypeId, value: &Expr, fail: Fail) -> Vec<Stmt> {
    let Type::Struct(_, fields) = e.model.ty(id) else { return Vec::new() };
    let beside = |of: usize| (value.clone().field(word(&fields[of].name)), fields[of].ty);
    let agreements = e.model.agreements.get(&id).into_iter().flatten();
    let checks = agreements.flat_map(|agreement| {
        let (value, ty) = beside(agreement.of);
        check(e, value, ty, &agreement.rules, &beside, fail, 0)
    });
    checks.collect()
}

/// Statements that check whether the parameters of an operation agree, in a request or in its reply, as far as they are known then.
pub fn parameters(
    e: &Emitter,
    operation: &Operation,
    reply: bool,
    value: &dyn Fn(usize) -> Expr,
    fail: Fail,
) -> Vec<Stmt> {
    let not = if reply { Direction::In } else { Direction::Out };
    let travels = |of: usize| operation.params[of].direction != not;
    let beside = |of: usize| (value(of), operation.params[of].ty);
    let there = operation.agreements.iter().filter(|agreement| travels(agreement.of));
    let checks = there.flat_map(|agreement| {
        let known = |rule: &&Rule| reply || rule.size().names().into_iter().all(travels);
        let rules: Vec<Vec<Rule>> =
            agreement.rules.iter().map(|rules| rules.iter().filter(known).cloned().collect()).collect();
        let (value, ty) = beside(agreement.of);
        check(e, value, ty, &rules, &beside, fail, 0)
    });
    checks.collect()
}

/// Statements that check whether a value keeps its rules.
fn check(
    e: &Emitter,
    value: Expr,
    ty: TypeId,
    rules: &[Vec<Rule>],
    beside: Beside,
    fail: Fail,
    depth: usize,
) -> Vec<Stmt> {
    let within = |value: Expr, of: TypeId, rules| check(e, value, of, rules, beside, fail, depth + 1);
    let index = format!("_a{depth}");
    match e.kind(ty) {
        Type::Optional(of) | Type::Shared(of) => {
            let there = value.clone().with("!=", name("NULL"));
            let inner = if e.is_text_pointer(*of) { value } else { value.deref() };
            if_any(there, within(inner, *of, rules))
        }
        Type::Array(of, dims) => {
            let mut element = value;
            let indices: Vec<String> = (0..dims.len()).map(|dim| format!("_a{depth}_{dim}")).collect();
            for index in &indices {
                element = element.index(name(index));
            }
            let mut body = within(element, *of, rules);
            for (index, &dim) in indices.into_iter().zip(dims).rev() {
                if body.is_empty() {
                    return body;
                }
                body = vec![Stmt::For(index, Expr::Int(dim.into()), body)];
            }
            body
        }
        kind => {
            let Some((own, rest)) = rules.split_first() else { return Vec::new() };
            let mut body: Vec<Stmt> =
                own.iter().map(|rule| keeps(e, &value, ty, rule, beside, fail)).collect();
            if let Type::Sequence(of, _) = kind {
                let element = value.clone().field("_buffer").index(name(&index));
                let inner = within(element, *of, rest);
                if !inner.is_empty() {
                    body.push(Stmt::For(index, value.field("_length"), inner));
                }
            }
            body
        }
    }
}

fn if_any(condition: Expr, body: Vec<Stmt>) -> Vec<Stmt> {
    if body.is_empty() { body } else { vec![Stmt::If(condition, body)] }
}

/// A statement that fails if a list, text or union does not keep a rule.
fn keeps(e: &Emitter, value: &Expr, ty: TypeId, rule: &Rule, beside: Beside, fail: Fail) -> Stmt {
    let wide = |value: Expr| value.cast(Ty::named("int64_t"));
    let (found, wrong) = match rule {
        Rule::Exactly(_) => (wide(value.clone().field("_length")), "!="),
        Rule::AtMost(_) => (wide(value.clone().field("_length")), ">"),
        Rule::Below(_) => {
            let characters = if e.counted(ty) {
                let text = [value.clone().field("_buffer"), value.clone().field("_length")];
                super::tree::call("quill_characters_of", text)
            } else {
                super::tree::call("quill_text_characters", [value.clone()])
            };
            (characters, ">=")
        }
        Rule::Label(_) => (wide(value.clone().field("_d")), "!="),
    };
    Stmt::If(found.with(wrong, name(size(e, rule.size(), beside))), vec![fail()])
}

/// The text of a size.
fn size(e: &Emitter, of: &Size, beside: Beside) -> String {
    let inner = |of: &Size| size(e, of, beside);
    match of {
        Size::Number(number) => format!("(int64_t)({})", super::tree::integer((*number).into())),
        Size::Of(place) => {
            let (value, ty) = beside(*place);
            if let Type::Optional(_) | Type::Shared(_) = e.kind(ty) {
                let (there, value) = (value.tight(), value.clone().deref().tight());
                return format!("({there} != NULL ? (int64_t){value} : 0)");
            }
            format!("(int64_t){}", value.tight())
        }
        Size::One(operator @ "!", of) => format!("(int64_t)({operator}{})", inner(of)),
        Size::One("-", of) => format!("(int64_t)(0 - (uint64_t)({}))", inner(of)),
        Size::One(operator, of) => format!("({operator}({}))", inner(of)),
        Size::Two(operator @ ("+" | "-" | "*"), both) => {
            let [left, right] = [&both[0], &both[1]].map(inner);
            format!("(int64_t)((uint64_t)({left}) {operator} (uint64_t)({right}))")
        }
        Size::Two(operator, both) => {
            let [left, right] = [&both[0], &both[1]].map(inner);
            format!("(int64_t)(({left}) {operator} ({right}))")
        }
        Size::Choice(three) => {
            let [condition, yes, no] = [&three[0], &three[1], &three[2]].map(inner);
            format!("(({condition}) != 0 ? ({yes}) : ({no}))")
        }
    }
}
