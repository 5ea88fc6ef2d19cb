//! Declarations of types: enums and bitmasks, records in an order in which C can define them, other names.

use std::collections::HashSet;

use super::tree::{Expr, Item, Stmt, Ty, call, name};
use super::{Emitter, word};
use crate::model::{Branch, Field, Type, TypeId, values_of};

impl Emitter<'_> {
    /// All types that can travel.
    pub(super) fn declarations(&self) -> Vec<Item> {
        let (mut numbers, mut announced, mut records, mut aliases) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut done = HashSet::new();
        for index in 0..self.model.types_len() {
            let id = TypeId(index as u32);
            if !(self.travels[index] || self.held[index]) || self.model.is_any_kind(id) {
                continue;
            }
            match self.model.ty(id) {
                Type::Enum(_, members) => {
                    let names = self.names.members[&id].iter().cloned().zip(members.iter().map(|m| m.1));
                    let ty = Ty::named(number_of(members));
                    let items =
                        [Item::Typedef(ty, self.names.types[&id].clone()), Item::Enum(names.collect())];
                    let items = items.into_iter().chain(self.is_value(id, members));
                    numbers.extend(once(self.shared_guard(id), items));
                }
                Type::Bitmask(_, bits, members) => {
                    numbers.push(Item::Typedef(
                        Ty::named(format!("uint{bits}_t")),
                        self.names.types[&id].clone(),
                    ));
                    for ((_, mask), member) in members.iter().zip(&self.names.members[&id]) {
                        let value = format!("((uint{bits}_t){})", super::tree::integer(*mask));
                        numbers.push(Item::Define(member.clone(), value));
                    }
                }
                // Each header may have it.
                Type::Fixed(..) => {
                    let name = self.names.types[&id].clone();
                    let guard = format!("QUILL_TYPE_{name}");
                    numbers.push(Item::Once(guard, vec![Item::Typedef(Ty::named("int64_t"), name)]));
                }
                Type::Struct(..)
                | Type::Flat(..)
                | Type::Union { .. }
                | Type::Sequence(..)
                | Type::Str { .. } => {
                    self.define(id, &mut announced, &mut records, &mut done);
                }
                Type::Alias(..) => {
                    if let Some(name) = self.names.types.get(&id) {
                        aliases.push(Item::Typedef(self.ty(id), name.clone()));
                    }
                }
                _ => {}
            }
        }
        for (index, exception) in self.model.exceptions.iter().enumerate() {
            if exception.fields.iter().all(|f| self.travels[f.ty.0 as usize]) {
                let name = self.names.exceptions[index].clone();
                announced.push(Item::Announce("struct", name.clone()));
                records.push(Item::Record("struct", name, self.fields(&exception.fields)));
            }
        }
        numbers.into_iter().chain(announced).chain(records).chain(aliases).collect()
    }

    /// The function that knows the values of an enum, if these are not all numbers between two.
    fn is_value(&self, id: TypeId, members: &[(String, i128)]) -> Option<Item> {
        if run(members).is_some() {
            return None;
        }
        let answer = |truth: &str| vec![Stmt::Return(Some(name(truth)))];
        let labels = values_of(members).map(|m| m.1).collect();
        let value = (self.ty(id), "_value".to_owned());
        let body = vec![Stmt::Switch(name("_value"), vec![(labels, answer("true"))], answer("false"))];
        Some(Item::Function(Ty::named("bool"), self.checker(id), vec![value], body))
    }

    /// The name of that function.
    fn checker(&self, id: TypeId) -> String {
        self.beside(&self.ty(id).base, "is_value")
    }

    /// The condition under which a number is no value of an enum.
    pub(super) fn no_member(&self, id: TypeId, members: &[(String, i128)], value: Expr) -> Expr {
        let Some((low, high)) = run(members) else {
            return Expr::Not(Box::new(call(self.checker(self.model.resolved(id)), [value])));
        };
        let signed = low < 0;
        let (least, most) = if signed { (i32::MIN.into(), i32::MAX.into()) } else { (0, u32::MAX.into()) };
        let below = (low > least).then(|| value.clone().with("<", Expr::Int(low)));
        // Where nothing is above, a compiler would say so.
        let above = (high < most).then(|| value.with(">", Expr::Int(high)));
        match (below, above) {
            (Some(below), Some(above)) => below.with("||", above),
            (below, above) => below.or(above).unwrap_or_else(|| name("false")),
        }
    }

    fn fields(&self, fields: &[Field]) -> Vec<(Ty, String)> {
        if fields.is_empty() {
            return vec![(Ty::named("char"), "_nothing".into())];
        }
        fields.iter().map(|f| (self.ty(f.ty), word(&f.name))).collect()
    }

    /// Defines a record after those that it contains.
    fn define(
        &self,
        id: TypeId,
        announced: &mut Vec<Item>,
        records: &mut Vec<Item>,
        done: &mut HashSet<String>,
    ) {
        let id = self.model.resolved(id);
        let name = self.ty(id).base;
        if !(self.travels[id.0 as usize] || self.held[id.0 as usize]) {
            return;
        }
        match self.model.ty(id) {
            _ if self.model.is_any(id) => {}
            Type::Array(of, _) => self.define(*of, announced, records, done),
            Type::Struct(_, fields) if done.insert(name.clone()) => {
                announced.push(Item::Announce("struct", name.clone()));
                fields.iter().for_each(|f| self.define(f.ty, announced, records, done));
                let record = Item::Record("struct", name, self.fields(fields));
                records.extend(once(self.shared_guard(id), [record]));
            }
            Type::Flat(_, members) if done.insert(name.clone()) => {
                announced.push(Item::Announce("union", name.clone()));
                members.iter().for_each(|m| self.define(m.ty, announced, records, done));
                records.push(Item::Record("union", name, self.flat_fields(id, members)));
            }
            Type::Union { switch, branches, .. } if done.insert(name.clone()) => {
                announced.push(Item::Announce("struct", name.clone()));
                branches.iter().for_each(|b| self.define(b.field.ty, announced, records, done));
                let inner = self.beside(&name, "u");
                announced.push(Item::Announce("union", inner.clone()));
                let content = branches.iter().map(|b: &Branch| (self.ty(b.field.ty), word(&b.field.name)));
                let content = Item::Record("union", inner.clone(), content.collect());
                let fields = vec![(self.ty(*switch), "_d".into()), (Ty::named(inner), "_u".into())];
                records.extend(once(self.shared_guard(id), [content, Item::Record("struct", name, fields)]));
            }
            Type::Str { bound: Some(bound), .. }
                if self.counted(id) && self.text_inside(id) && done.insert(name.clone()) =>
            {
                announced.push(Item::Announce("struct", name.clone()));
                let room = Ty { dims: vec![(4 * bound).max(1)], ..Ty::named("char") };
                records.push(list_record(name, room));
            }
            Type::Sequence(of, bound) if done.insert(name.clone()) => {
                announced.push(Item::Announce("struct", name.clone()));
                // A pointer to a record needs no definition; a pointer to an array of them does.
                let inside = self.inside(*bound);
                if inside || matches!(self.kind(*of), Type::Array(..)) {
                    self.define(*of, announced, records, done);
                }
                let mut element = self.ty(*of);
                if inside {
                    element.dims.insert(0, bound.unwrap_or(1).max(1));
                } else {
                    element = element.to();
                }
                records.push(list_record(name, element));
            }
            _ => {}
        }
    }

    /// The fields of a union whose bytes travel as they are.
    fn flat_fields(&self, id: TypeId, members: &[Field]) -> Vec<(Ty, String)> {
        let mut fields = self.fields(members);
        if let Some(fixed) = self.sizes.fixed(id) {
            // First, so that `{ 0 }` makes all of it zero; and as large as the message has it on any processor.
            let ty = Ty::named(format!("uint{}_t", 8 * fixed.align));
            fields.insert(0, (Ty { dims: vec![fixed.size / fixed.align], ..ty }, "_bits".into()));
        }
        fields
    }
}

/// Items that another header may have brought already, if there is something that says so.
fn once(guard: Option<String>, items: impl IntoIterator<Item = Item>) -> Vec<Item> {
    let items = items.into_iter().collect();
    match guard {
        Some(guard) => vec![Item::Once(guard, items)],
        None => items,
    }
}

/// A record of elements with their number. Its name says what it is, and begins with what is quill's own, so two headers may
/// have the same one.
fn list_record(name: String, elements: Ty) -> Item {
    let guard = format!("QUILL_TYPE_{name}");
    let fields = vec![(Ty::named("uint32_t"), "_length".into()), (elements, "_buffer".into())];
    Item::Once(guard, vec![Item::Record("struct", name, fields)])
}

/// The least and the greatest value of an enum, if all numbers between them are values, too.
fn run(members: &[(String, i128)]) -> Option<(i128, i128)> {
    let low = members.iter().map(|m| m.1).min()?;
    let high = members.iter().map(|m| m.1).max()?;
    (values_of(members).count() as i128 == high - low + 1).then_some((low, high))
}

/// The type of an enum's numbers.
fn number_of(members: &[(String, i128)]) -> &'static str {
    if members.iter().any(|m| m.1 < 0) { "int32_t" } else { "uint32_t" }
}
