//! Structs, enums, unions, bitmasks and exceptions.

use std::collections::HashMap;

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::{Emitter, name};
use crate::emit::travel::{endless, held, referring, streamed, travelling};
use crate::marshal::Lying;
use crate::model::{Branch, ExceptionId, Field, Type, TypeId, counts_up, values_of};

/// Traits that a struct, union or exception derives. Nobody copies a reference by the way, or compares it.
fn derived(refers: bool) -> TokenStream {
    match refers {
        true => quote! { #[derive(Debug)] },
        false => quote! { #[derive(Clone, Debug, PartialEq)] },
    }
}

impl Emitter<'_> {
    /// Whether a type has references to objects in it that their holder owns.
    pub(super) fn refers(&self, ty: TypeId) -> bool {
        self.referring.get(self.model.resolved(ty).0 as usize) == Some(&true)
    }

    /// Whether references to objects are parts of a type, rather than all of it.
    pub(super) fn has_references(&self, ty: TypeId) -> bool {
        self.refers(ty) && !self.is_owned_reference(ty)
    }

    /// Emits every type that can travel. One that cannot is left out; an operation that uses it was refused already.
    pub(super) fn types(&mut self) {
        let part = self.part;
        if part.reference(self, &[], None).is_some() {
            self.referring = referring(self.model);
            self.streamed = streamed(self.model, &self.sizes, Lying::Long, &self.referring);
        }
        if self.model.has_any() {
            // Each of them may be in one.
            self.streamed.fill(true);
        }
        let endless = endless(self.model, |bound| part.holds(bound));
        let carries = |id: TypeId| part.carries(self, id) && !endless[id.0 as usize];
        let travels = travelling(self.model, &self.sizes, carries);
        self.travels.clone_from(&travels);
        self.held = held(self.model, &self.sizes, &travels);
        for (index, _) in travels
            .iter()
            .enumerate()
            .filter(|(index, travels)| **travels || self.held[*index])
            .map(|(index, _)| (index, ()))
            .collect::<Vec<_>>()
        {
            self.declare(TypeId(index as u32));
        }
        for index in 0..self.model.exceptions.len() {
            self.exception(ExceptionId(index as u32), &travels);
        }
        self.any_functions();
    }

    fn declare(&mut self, id: TypeId) {
        let (path, item) = match self.model.ty(id) {
            Type::Struct(path, fields) if self.model.is_any(id) => (path.clone(), self.any(path, fields)),
            Type::Struct(path, fields) => (path.clone(), self.structure(id, path, fields)),
            Type::Flat(path, members) => (path.clone(), self.flat_union(id, path, members)),
            Type::Enum(path, members) => (path.clone(), self.enumeration(path, members)),
            Type::Bitmask(path, bits, members) => (path.clone(), self.bitmask(path, *bits, members)),
            Type::Fixed(path, digits, scale) => (path.clone(), self.decimal(path, *digits, *scale)),
            Type::Union { name, switch, branches } => {
                (name.clone(), self.union(name, *switch, branches, derived(self.refers(id))))
            }
            // What stands behind an alias is written out wherever it is used, so one whose name is taken is not missed.
            Type::Alias(path, _) if self.type_names.contains(path) || self.taken.contains(path) => return,
            Type::Alias(path, to) => {
                let (from, item) = self.place(path);
                let (ident, to) = (name(&item), self.ty(&from, *to));
                let doc = format!(" The type `{path}`.");
                (path.clone(), quote! { #[doc = #doc] pub type #ident = #to; })
            }
            _ => return,
        };
        if !self.taken.insert(path.clone()) {
            return;
        }
        self.emitted.insert(id);
        let (modules, _) = self.place(&path);
        let implemented = match self.model.ty(id) {
            Type::Alias(..) => TokenStream::new(),
            _ if self.held[id.0 as usize] => TokenStream::new(),
            _ => self.part.implement(self, &modules, id),
        };
        let agreeing = self.agreeing(&modules, id);
        self.root.at(&modules).items.push(quote! { #item #implemented #agreeing });
    }

    fn exception(&mut self, id: ExceptionId, travels: &[bool]) {
        let exception = &self.model.exceptions[id.0 as usize];
        if exception.fields.iter().any(|f| !travels[f.ty.0 as usize]) {
            return;
        }
        let (modules, item) = self.place(&exception.name);
        let fields = self.fields(&modules, &exception.fields);
        let (ident, doc) = (name(&item), format!(" The exception `{}`.", exception.name));
        let derived = derived(exception.fields.iter().any(|field| self.refers(field.ty)));
        self.root.at(&modules).items.push(quote! {
            #[doc = #doc]
            #derived
            pub struct #ident { #(#fields),* }
        });
        self.exceptions.insert(id);
    }

    fn fields(&self, from: &[String], fields: &[Field]) -> Vec<TokenStream> {
        let each = fields.iter().map(|field| {
            let (ident, ty) = (name(&field.name), self.ty(from, field.ty));
            let doc = format!(" `{}`", field.name);
            quote! { #[doc = #doc] pub #ident: #ty }
        });
        each.collect()
    }

    fn structure(&self, id: TypeId, path: &str, fields: &[Field]) -> TokenStream {
        let (from, item) = self.place(path);
        let (ident, doc) = (name(&item), format!(" The struct `{path}`."));
        let (declared, derived) = (self.fields(&from, fields), derived(self.refers(id)));
        quote! {
            #[doc = #doc]
            #derived
            #[repr(C)]
            pub struct #ident { #(#declared),* }
        }
    }

    fn enumeration(&self, path: &str, members: &[(String, i128)]) -> TokenStream {
        let (_, item) = self.place(path);
        let (ident, doc) = (name(&item), format!(" The enum `{path}`."));
        let doc_of = |m: &(String, i128)| format!(" `{}`, number {}", m.0, m.1);
        let counts = counts_up(members);
        let variants = values_of(members).map(|m| {
            let (variant, doc, number) = (name(&m.0), doc_of(m), Literal::i128_unsuffixed(m.1));
            let number = (!counts).then(|| quote! { = #number });
            quote! { #[doc = #doc] #variant #number }
        });
        let variants: Vec<TokenStream> = variants.collect();
        // Rust's enums have each number once.
        let firsts: HashMap<i128, &str> = values_of(members).map(|m| (m.1, m.0.as_str())).collect();
        let others = members.iter().filter(|m| firsts[&m.1] != m.0).map(|m| {
            let (other, doc, first) = (name(&m.0), doc_of(m), name(firsts[&m.1]));
            quote! { #[doc = #doc] pub const #other: #ident = #ident::#first; }
        });
        let others: Vec<TokenStream> = others.collect();
        let others = (!others.is_empty()).then(|| quote! { impl #ident { #(#others)* } });
        let repr = match () {
            () if counts => TokenStream::new(),
            () if members.iter().any(|m| m.1 < 0) => quote! { #[repr(i32)] },
            () => quote! { #[repr(u32)] },
        };
        quote! {
            #[doc = #doc]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            #repr
            pub enum #ident { #(#variants),* }
            #others
        }
    }

    /// Patterns for the numbers of an enum's values as they travel, and the names of the values.
    pub(super) fn numbers(members: &[(String, i128)]) -> (Vec<Literal>, Vec<Ident>) {
        let both = values_of(members).map(|m| (Literal::u32_unsuffixed(m.1 as u32), name(&m.0)));
        both.unzip()
    }

    fn bitmask(&self, path: &str, bits: u8, members: &[(String, i128)]) -> TokenStream {
        let (_, item) = self.place(path);
        let (ident, doc) = (name(&item), format!(" The bitmask `{path}`."));
        let number = quote::format_ident!("__u{}", bits.to_string());
        let names = members.iter().map(|m| name(&m.0));
        let values = members.iter().map(|m| Literal::u64_unsuffixed(m.1 as u64));
        let docs = members.iter().map(|m| format!(" `{}`", m.0));
        quote! {
            #[doc = #doc]
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            pub struct #ident(pub #number);
            impl #ident { #(#[doc = #docs] pub const #names: #ident = #ident(#values);)* }
        }
    }

    /// A value of the discriminator as Rust writes it.
    pub(super) fn label(&self, from: &[String], switch: TypeId, value: i128) -> Option<TokenStream> {
        let literal = Literal::i128_unsuffixed(value);
        Some(match self.model.ty(self.model.resolved(switch)) {
            Type::Bool => {
                let truth = value != 0;
                quote! { #truth }
            }
            Type::WideChar => {
                let character = Literal::character(char::from_u32(u32::try_from(value).ok()?)?);
                quote! { #character }
            }
            Type::Enum(_, members) => {
                let (member, _) = members.iter().find(|m| m.1 == value)?;
                let (path, member) = (self.ty(from, switch), name(member));
                quote! { #path::#member }
            }
            Type::Bitmask(..) => {
                let path = self.ty(from, switch);
                quote! { #path(#literal) }
            }
            _ => quote! { #literal },
        })
    }

    /// A union: a branch with one label is a variant with its field; with several, or for the rest, the variant keeps the
    /// discriminator too. A discriminator without a branch is a variant of its own, as the language has it.
    fn union(&self, path: &str, switch: TypeId, branches: &[Branch], derived: TokenStream) -> TokenStream {
        let (from, item) = self.place(path);
        let (ident, doc) = (name(&item), format!(" The union `{path}`."));
        let tag = self.ty(&from, switch);
        let mut variants = Vec::new();
        for branch in branches {
            let (variant, ty) = (name(&branch.field.name), self.ty(&from, branch.field.ty));
            let variant_doc = format!(" `{}`", branch.field.name);
            let content = if self.keeps_label(&from, switch, branch) {
                quote! { (#tag, #ty) }
            } else {
                quote! { (#ty) }
            };
            variants.push(quote! { #[doc = #variant_doc] #variant #content });
        }
        if !branches.iter().any(|b| b.is_default) {
            let none = Emitter::no_branch(branches);
            variants.push(quote! { #[doc = " A value without a branch."] #none(#tag) });
        }
        quote! {
            #[doc = #doc]
            #derived
            pub enum #ident { #(#variants),* }
        }
    }

    /// Whether a variant holds the discriminator beside its field.
    pub(super) fn keeps_label(&self, from: &[String], switch: TypeId, branch: &Branch) -> bool {
        let labels = branch.labels.iter().filter(|&&l| self.label(from, switch, l).is_some()).count();
        branch.is_default || labels != 1
    }

    /// The variant for discriminators without a branch.
    pub(super) fn no_branch(branches: &[Branch]) -> proc_macro2::Ident {
        let mut none = "none".to_owned();
        while branches.iter().any(|b| b.field.name == none) {
            none.push('_');
        }
        name(&none)
    }
}
