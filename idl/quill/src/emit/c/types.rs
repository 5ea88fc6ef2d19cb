//! Declarations of types: enums and bitmasks, records in an order in which C can define them, other names.

use std::collections::HashSet;

use super::tree::{Item, Ty};
use super::{Emitter, unique, word};
use crate::model::{Branch, Field, Type, TypeId};

impl Emitter<'_> {
    /// All types that can travel.
    pub(super) fn declarations(&self) -> Vec<Item> {
        let (mut numbers, mut announced, mut records, mut aliases) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut done = HashSet::new();
        for index in 0..self.model.types_len() {
            let id = TypeId(index as u32);
            if !self.travels[index] || self.model.is_any_kind(id) {
                continue;
            }
            match self.model.ty(id) {
                Type::Enum(path, members) => {
                    let names = members.iter().enumerate().map(|(i, m)| (self.member(path, &m.0), i as i128));
                    numbers.push(Item::Typedef(Ty::named("uint32_t"), self.types[&id].clone()));
                    numbers.push(Item::Enum(names.collect()));
                }
                Type::Bitmask(path, bits, members) => {
                    numbers.push(Item::Typedef(Ty::named(format!("uint{bits}_t")), self.types[&id].clone()));
                    for (member, position) in members {
                        let value = format!("((uint{bits}_t)1 << {position})");
                        numbers.push(Item::Define(self.member(path, member), value));
                    }
                }
                Type::Struct(..)
                | Type::Flat(..)
                | Type::Union { .. }
                | Type::Sequence(..)
                | Type::Str { .. } => {
                    self.define(id, &mut announced, &mut records, &mut done);
                }
                Type::Alias(..) => {
                    if let Some(name) = self.types.get(&id) {
                        aliases.push(Item::Typedef(self.ty(id), name.clone()));
                    }
                }
                _ => {}
            }
        }
        for (index, exception) in self.model.exceptions.iter().enumerate() {
            if exception.fields.iter().all(|f| self.travels[f.ty.0 as usize]) {
                let name = self.exceptions[index].clone();
                announced.push(Item::Announce("struct", name.clone()));
                records.push(Item::Record("struct", name, self.fields(&exception.fields)));
            }
        }
        numbers.into_iter().chain(announced).chain(records).chain(aliases).collect()
    }

    /// The name of an enum's or bitmask's member, which lives beside its type.
    fn member(&self, path: &str, member: &str) -> String {
        let path = match path.rsplit_once("::") {
            Some((scope, _)) => format!("{scope}::{member}"),
            None => member.to_owned(),
        };
        unique(&mut self.taken.borrow_mut(), &path)
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
        if !self.travels[id.0 as usize] {
            return;
        }
        match self.model.ty(id) {
            _ if self.model.is_any(id) => {}
            Type::Array(of, _) => self.define(*of, announced, records, done),
            Type::Struct(_, fields) if done.insert(name.clone()) => {
                announced.push(Item::Announce("struct", name.clone()));
                fields.iter().for_each(|f| self.define(f.ty, announced, records, done));
                records.push(Item::Record("struct", name, self.fields(fields)));
            }
            Type::Flat(_, members) if done.insert(name.clone()) => {
                announced.push(Item::Announce("union", name.clone()));
                members.iter().for_each(|m| self.define(m.ty, announced, records, done));
                let mut fields = self.fields(members);
                if let Some(fixed) = self.sizes.fixed(id) {
                    // First, so that `{ 0 }` makes all of it zero; and as large as the message has it on any processor.
                    let ty = Ty::named(format!("uint{}_t", 8 * fixed.align));
                    fields.insert(0, (Ty { dims: vec![fixed.size / fixed.align], ..ty }, "_bits".into()));
                }
                records.push(Item::Record("union", name, fields));
            }
            Type::Union { switch, branches, .. } if done.insert(name.clone()) => {
                announced.push(Item::Announce("struct", name.clone()));
                branches.iter().for_each(|b| self.define(b.field.ty, announced, records, done));
                let inner = format!("{name}_u");
                announced.push(Item::Announce("union", inner.clone()));
                let content = branches.iter().map(|b: &Branch| (self.ty(b.field.ty), word(&b.field.name)));
                records.push(Item::Record("union", inner.clone(), content.collect()));
                let fields = vec![(self.ty(*switch), "_d".into()), (Ty::named(inner), "_u".into())];
                records.push(Item::Record("struct", name, fields));
            }
            // Its name says what it is, and begins with what is quill's own.
            Type::Str { bound: Some(bound), .. }
                if self.counted(id) && self.text_inside(id) && done.insert(name.clone()) =>
            {
                announced.push(Item::Announce("struct", name.clone()));
                let room = Ty { dims: vec![(4 * bound).max(1)], ..Ty::named("char") };
                let fields = vec![(Ty::named("uint32_t"), "_length".into()), (room, "_buffer".into())];
                let guard = format!("QUILL_TYPE_{name}");
                records.push(Item::Once(guard, vec![Item::Record("struct", name, fields)]));
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
                let fields = vec![(Ty::named("uint32_t"), "_length".into()), (element, "_buffer".into())];
                // Its name says what it is, so two headers may have the same one.
                let guard = format!("QUILL_TYPE_{name}");
                records.push(Item::Once(guard, vec![Item::Record("struct", name, fields)]));
            }
            _ => {}
        }
    }
}
