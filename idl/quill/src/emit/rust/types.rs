//! Structs, enums, unions, bitmasks and exceptions, and how each is written and read.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::{Emitter, name};
use crate::model::{Branch, ExceptionId, Field, Type, TypeId};

impl Emitter<'_> {
    /// Emits every type that can travel. One that cannot is left out; an operation that uses it was refused already.
    pub(super) fn types(&mut self) {
        let travels = self.travelling();
        self.travels.clone_from(&travels);
        for (index, _) in travels.iter().enumerate().filter(|(_, travels)| **travels) {
            self.declare(TypeId(index as u32));
        }
        for index in 0..self.model.exceptions.len() {
            self.exception(ExceptionId(index as u32), &travels);
        }
    }

    /// Which types contain nothing that cannot travel: found by taking away until nothing changes.
    fn travelling(&self) -> Vec<bool> {
        let count = self.model.types_len();
        let inner = |id: TypeId| -> Vec<TypeId> {
            match self.model.ty(id) {
                Type::Alias(_, to) | Type::Sequence(to, _) | Type::Array(to, _) => vec![*to],
                Type::Struct(_, fields) => fields.iter().map(|f| f.ty).collect(),
                Type::Union { switch, branches, .. } => {
                    branches.iter().map(|b| b.field.ty).chain([*switch]).collect()
                }
                _ => Vec::new(),
            }
        };
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut travels = vec![true; count];
        let mut lost = Vec::new();
        let mut depths = vec![0usize; count];
        for index in 0..count {
            let id = TypeId(index as u32);
            // Types without a name of their own are written out within one another: that must end somewhere.
            if let Type::Alias(_, to) | Type::Sequence(to, _) | Type::Array(to, _) = self.model.ty(id) {
                depths[index] = depths[to.0 as usize] + 1;
            }
            if depths[index] > crate::limits::NESTING_MAX {
                lost.push(index);
            }
            for ty in inner(id) {
                users[ty.0 as usize].push(index);
            }
            let bad = match self.model.ty(id) {
                Type::Error
                | Type::Void
                | Type::Fixed(..)
                | Type::Object(_)
                | Type::Forward(_)
                | Type::Foreign(..) => true,
                Type::Pointer(..) | Type::Open(_) | Type::Float(128) => true,
                Type::Enum(_, members) => members.is_empty(),
                _ => false,
            };
            if bad {
                lost.push(index);
            }
        }
        while let Some(index) = lost.pop() {
            if std::mem::replace(&mut travels[index], false) {
                lost.extend(&users[index]);
            }
        }
        travels
    }

    fn declare(&mut self, id: TypeId) {
        let (path, item) = match self.model.ty(id) {
            Type::Struct(path, fields) => (path.clone(), self.structure(path, fields, id)),
            Type::Enum(path, members) => (path.clone(), self.enumeration(path, members)),
            Type::Bitmask(path, bits, members) => (path.clone(), self.bitmask(path, *bits, members)),
            Type::Union { name, switch, branches } => (name.clone(), self.union(name, *switch, branches)),
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
        self.root.at(&modules).items.push(item);
    }

    fn exception(&mut self, id: ExceptionId, travels: &[bool]) {
        let exception = &self.model.exceptions[id.0 as usize];
        if exception.fields.iter().any(|f| !travels[f.ty.0 as usize]) {
            return;
        }
        let (modules, item) = self.place(&exception.name);
        let fields = self.fields(&modules, &exception.fields);
        let (ident, doc) = (name(&item), format!(" The exception `{}`.", exception.name));
        self.root.at(&modules).items.push(quote! {
            #[doc = #doc]
            #[derive(Clone, Debug, PartialEq)]
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

    fn structure(&self, path: &str, fields: &[Field], id: TypeId) -> TokenStream {
        let (from, item) = self.place(path);
        let rt = self.runtime(&from);
        let (ident, doc) = (name(&item), format!(" The struct `{path}`."));
        let declared = self.fields(&from, fields);
        let names: Vec<_> = fields.iter().map(|f| name(&f.name)).collect();
        // Fixed-size structs begin and end aligned, so that an array of them has the same distance between all.
        let align = self.sizes.fixed(id).map(|f| Literal::u64_unsuffixed(f.align));
        let (put_align, get_align) = match align {
            Some(align) => (quote! { _out.align(#align); }, quote! { _from.align(#align)?; }),
            // A struct without fields takes a byte, so that a count of them is bounded by the message.
            None if fields.is_empty() => {
                (quote! { 0u8.put(_out); }, quote! { <__u8 as #rt::Wire>::get(_from)?; })
            }
            None => (TokenStream::new(), TokenStream::new()),
        };
        let (put_end, get_end) = if self.sizes.fixed(id).is_some() {
            (put_align.clone(), get_align.clone())
        } else {
            (TokenStream::new(), TokenStream::new())
        };
        let failed = quote! { #rt::Malformed };
        let gets = fields.iter().map(|field| {
            let (ident, ty) = (name(&field.name), self.ty(&from, field.ty));
            let bounds = self.bounds(field.ty, &quote! { #ident }, &failed, 0);
            quote! { let #ident = <#ty as #rt::Wire>::get(_from)?; #bounds }
        });
        quote! {
            #[doc = #doc]
            #[derive(Clone, Debug, PartialEq)]
            pub struct #ident { #(#declared),* }
            impl #rt::Wire for #ident {
                fn put(&self, _out: &mut #rt::Out) {
                    #put_align
                    #(#rt::Wire::put(&self.#names, _out);)*
                    #put_end
                }
                fn get(_from: &mut #rt::In) -> __Result<#ident, #rt::Malformed> {
                    #get_align
                    #(#gets)*
                    #get_end
                    Ok(#ident { #(#names),* })
                }
            }
        }
    }

    fn enumeration(&self, path: &str, members: &[(String, i128)]) -> TokenStream {
        let (from, item) = self.place(path);
        let rt = self.runtime(&from);
        let (ident, doc) = (name(&item), format!(" The enum `{path}`."));
        let names: Vec<_> = members.iter().map(|m| name(&m.0)).collect();
        // By position: a file may give two names one number, which Rust's enums cannot.
        let numbers: Vec<_> = (0..members.len()).map(Literal::usize_unsuffixed).collect();
        let docs = members.iter().map(|m| format!(" `{}`, number {}", m.0, m.1));
        quote! {
            #[doc = #doc]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub enum #ident { #(#[doc = #docs] #names),* }
            impl #rt::Wire for #ident {
                fn put(&self, _out: &mut #rt::Out) {
                    (*self as __u32).put(_out);
                }
                fn get(_from: &mut #rt::In) -> __Result<#ident, #rt::Malformed> {
                    match <__u32 as #rt::Wire>::get(_from)? {
                        #(#numbers => Ok(#ident::#names),)*
                        _ => Err(#rt::Malformed),
                    }
                }
            }
        }
    }

    fn bitmask(&self, path: &str, bits: u8, members: &[(String, i128)]) -> TokenStream {
        let (from, item) = self.place(path);
        let rt = self.runtime(&from);
        let (ident, doc) = (name(&item), format!(" The bitmask `{path}`."));
        let number = quote::format_ident!("__u{}", bits.to_string());
        let names = members.iter().map(|m| name(&m.0));
        let values = members.iter().map(|m| Literal::u128_unsuffixed(1u128 << m.1.clamp(0, 63)));
        let docs = members.iter().map(|m| format!(" `{}`", m.0));
        let all = members.iter().fold(0u128, |all, m| all | 1 << m.1.clamp(0, 63));
        let all = Literal::u128_unsuffixed(all);
        quote! {
            #[doc = #doc]
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            pub struct #ident(pub #number);
            impl #ident { #(#[doc = #docs] pub const #names: #ident = #ident(#values);)* }
            impl #rt::Wire for #ident {
                fn put(&self, _out: &mut #rt::Out) {
                    self.0.put(_out);
                }
                fn get(_from: &mut #rt::In) -> __Result<#ident, #rt::Malformed> {
                    let bits = <#number as #rt::Wire>::get(_from)?;
                    if bits & !#all == 0 { Ok(#ident(bits)) } else { Err(#rt::Malformed) }
                }
            }
        }
    }

    /// A value of the discriminator as Rust writes it.
    fn label(&self, from: &[String], switch: TypeId, value: i128) -> Option<TokenStream> {
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
    fn union(&self, path: &str, switch: TypeId, branches: &[Branch]) -> TokenStream {
        let (from, item) = self.place(path);
        let rt = self.runtime(&from);
        let (ident, doc) = (name(&item), format!(" The union `{path}`."));
        let tag = self.ty(&from, switch);
        let (mut variants, mut puts, mut gets, mut last) = (Vec::new(), Vec::new(), Vec::new(), None);
        let failed = quote! { #rt::Malformed };
        for branch in branches {
            let (variant, ty) = (name(&branch.field.name), self.ty(&from, branch.field.ty));
            let labels: Vec<_> = branch.labels.iter().filter_map(|&l| self.label(&from, switch, l)).collect();
            let bounds = self.bounds(branch.field.ty, &quote! { value }, &failed, 0);
            let get = quote! { let value = <#ty as #rt::Wire>::get(_from)?; #bounds };
            let variant_doc = format!(" `{}`", branch.field.name);
            match (labels.as_slice(), branch.is_default) {
                ([label], false) => {
                    variants.push(quote! { #[doc = #variant_doc] #variant(#ty) });
                    puts.push(quote! { #ident::#variant(value) => { #rt::Wire::put(&#label, _out); value.put(_out); } });
                    gets.push(quote! { #label => { #get Ok(#ident::#variant(value)) } });
                }
                (labels, is_default) => {
                    variants.push(quote! { #[doc = #variant_doc] #variant(#tag, #ty) });
                    puts.push(
                        quote! { #ident::#variant(label, value) => { label.put(_out); value.put(_out); } },
                    );
                    let arm = quote! { { #get Ok(#ident::#variant(label, value)) } };
                    if is_default {
                        last = Some(quote! { _ => #arm });
                    } else {
                        gets.push(quote! { #(#labels)|* => #arm });
                    }
                }
            }
        }
        if last.is_none() {
            let taken = |n: &str| branches.iter().any(|b| b.field.name == n);
            let mut none = "none".to_owned();
            while taken(&none) {
                none.push('_');
            }
            let none = name(&none);
            variants.push(quote! { #[doc = " A value without a branch."] #none(#tag) });
            puts.push(quote! { #ident::#none(label) => label.put(_out), });
            last = Some(quote! { _ => Ok(#ident::#none(label)), });
        }
        quote! {
            #[doc = #doc]
            #[derive(Clone, Debug, PartialEq)]
            pub enum #ident { #(#variants),* }
            impl #rt::Wire for #ident {
                fn put(&self, _out: &mut #rt::Out) {
                    match self { #(#puts)* }
                }
                #[allow(unreachable_patterns)]
                fn get(_from: &mut #rt::In) -> __Result<#ident, #rt::Malformed> {
                    let label = <#tag as #rt::Wire>::get(_from)?;
                    match label { #(#gets)* #last }
                }
            }
        }
    }
}
