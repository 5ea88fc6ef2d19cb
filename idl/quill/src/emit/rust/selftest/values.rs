//! Random values: expressions and functions that make them, so that what has to agree agrees.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::super::{Emitter, name};
use super::{FEW, FEW_OBJECTS, module, sizes_of};
use crate::model::{Agreement, Branch, Field, Operation, Type, TypeId, bits_of};

impl Emitter<'_> {
    pub(in crate::emit::rust) fn emitted_types(&self) -> Vec<TypeId> {
        let mut ids: Vec<TypeId> = self.emitted.iter().copied().collect();
        ids.sort_by_key(|id| id.0);
        ids.retain(|&id| !matches!(self.model.ty(id), Type::Alias(..)));
        ids
    }

    /// An expression for a random value of a type.
    pub(in crate::emit::rust) fn random(&self, ty: TypeId) -> TokenStream {
        let ty = self.model.resolved(ty);
        let bound = |bound: &Option<u64>| {
            bound.map_or_else(
                || quote! { ::core::primitive::usize::MAX },
                |b| {
                    let literal = Literal::u64_unsuffixed(b);
                    quote! { #literal }
                },
            )
        };
        match self.model.ty(ty) {
            Type::Bool => quote! { _r.truth() },
            Type::Octet | Type::Char => quote! { _r.number() as __u8 },
            Type::WideChar => quote! { _r.character() },
            Type::Object(_) if self.is_owned_reference(ty) => quote! { token(_r.next()) },
            Type::Object(_) => {
                let uid = self.ty(&module(), ty);
                quote! { #uid(_r.number()) }
            }
            Type::Int { .. } => {
                let number = self.ty(&module(), ty);
                quote! { _r.number() as #number }
            }
            Type::Float(32) => quote! { _r.single() },
            Type::Float(_) => quote! { _r.double() },
            Type::Str { bound: b, .. } => {
                let bound = bound(b);
                quote! { _r.text(#bound) }
            }
            Type::Sequence(of, b) => {
                // Of what may be long itself a message has room for a few.
                let few = if self.refers(*of) { FEW_OBJECTS } else { FEW };
                let few = Some(b.map_or(few, |b| b.min(few)));
                let most = if self.sizes.fixed(*of).is_some() && !self.refers(*of) { b } else { &few };
                let (value, bound) = (self.random(*of), bound(most));
                quote! { _r.list(#bound, |_r| #value) }
            }
            Type::Optional(of) => {
                let value = self.random(*of);
                self.random_optional(*of, &value)
            }
            Type::Shared(of) => {
                let value = self.random(*of);
                quote! { _r.shared(|_r| #value) }
            }
            Type::Array(of, dims) => {
                let value = self.random(*of);
                dims.iter().fold(value, |value, _| quote! { ::core::array::from_fn(|_| #value) })
            }
            _ => {
                let function = format_ident!("value_{}", ty.0.to_string());
                quote! { #function(_r) }
            }
        }
    }

    /// An expression for a value that may be absent.
    pub(in crate::emit::rust) fn random_optional(&self, of: TypeId, value: &TokenStream) -> TokenStream {
        if self.is_boxed(of) {
            quote! { _r.maybe(|_r| Boxed::new(#value)) }
        } else {
            quote! { _r.maybe(|_r| #value) }
        }
    }

    /// An expression for a random value of a struct whose fields have to agree.
    pub(in crate::emit::rust) fn random_agreeing(
        &self,
        ty: &TokenStream,
        fields: &[Field],
        agreements: &[Agreement],
    ) -> TokenStream {
        let beside = |of: usize| {
            let field = name(&fields[of].name);
            (quote! { #field }, fields[of].ty)
        };
        let fresh = sizes_of(agreements);
        let sizes = self.random_sizes(agreements, &[], &beside, &fresh);
        let rest = fields.iter().enumerate().filter(|(of, _)| !fresh.contains(of)).map(|(of, field)| {
            let rules = agreements.iter().find(|a| a.of == of).map_or(&[][..], |a| &a.rules);
            let (ident, value) = (name(&field.name), self.random_keeping(field.ty, rules, &beside));
            quote! { let #ident = #value; }
        });
        let names = fields.iter().map(|f| name(&f.name));
        quote! { #sizes #(#rest)* #ty { #(#names),* } }
    }

    /// Statements that give values to those parameters of an operation that are in a request, or in its reply, so that all of them
    /// agree: variables of these types. Sizes come first.
    pub(in crate::emit::rust) fn random_agreed(
        &self,
        operation: &Operation,
        reply: bool,
        values: &[(String, TypeId)],
        types: &dyn Fn(&str, TypeId) -> TokenStream,
    ) -> Vec<(String, TokenStream)> {
        let agreements = Emitter::agreements_of(operation, reply);
        let beside = |of: usize| {
            let param = name(&operation.params[of].name);
            (quote! { #param }, operation.params[of].ty)
        };
        let place = |param: &str| operation.params.iter().position(|p| p.name == param);
        let sizes = sizes_of(&operation.agreements);
        let fresh: Vec<usize> =
            values.iter().filter_map(|(n, _)| place(n)).filter(|of| sizes.contains(of)).collect();
        let later = if reply { &[][..] } else { &operation.agreements };
        let mut all = vec![(String::new(), self.random_sizes(&agreements, later, &beside, &fresh))];
        for (param, ty) in values {
            let of = place(param);
            let (ident, declared) = (name(param), types(param, *ty));
            let value = match of {
                Some(of) if fresh.contains(&of) => quote! { #ident },
                Some(of) => {
                    let rules = agreements.iter().find(|a| a.of == of).map_or(&[][..], |a| &a.rules);
                    self.random_keeping(*ty, rules, &beside)
                }
                None => self.random(*ty),
            };
            all.push((param.clone(), quote! { let #ident: #declared = #value; }));
        }
        all
    }

    /// A function that makes random values of a declared type.
    pub(in crate::emit::rust) fn random_function(&self, id: TypeId) -> TokenStream {
        let function = format_ident!("value_{}", id.0.to_string());
        let ty = self.ty(&module(), id);
        let body = match self.model.ty(id) {
            Type::Struct(..) if self.model.is_any(id) => self.random_any(&ty),
            Type::Struct(_, fields) if self.model.agreements.contains_key(&id) => {
                self.random_agreeing(&ty, fields, &self.model.agreements[&id])
            }
            Type::Struct(_, fields) => {
                let names = fields.iter().map(|f| name(&f.name));
                let values = fields.iter().map(|f| self.random(f.ty));
                quote! { #ty { #(#names: #values),* } }
            }
            Type::Flat(_, members) => self.random_flat_union(&ty, members),
            Type::Enum(_, members) => {
                let names = members.iter().map(|m| name(&m.0));
                let count = Literal::usize_unsuffixed(members.len());
                quote! { [#(#ty::#names),*][_r.below(#count)] }
            }
            Type::Bitmask(_, bits, members) => {
                let number = format_ident!("__u{}", bits.to_string());
                let all = Literal::u64_unsuffixed(bits_of(members));
                quote! { #ty(_r.number() as #number & #all) }
            }
            Type::Fixed(..) => quote! {
                let most = #ty::MOST;
                #ty::new((_r.number() % (2 * most as __u64 + 1)) as __i64 - most).unwrap_or_default()
            },
            Type::Union { switch, branches, .. } => self.random_union(&ty, *switch, branches),
            _ => return TokenStream::new(),
        };
        quote! { fn #function(_r: &mut Random) -> #ty { #body } }
    }

    pub(in crate::emit::rust) fn random_union(
        &self,
        ty: &TokenStream,
        switch: TypeId,
        branches: &[Branch],
    ) -> TokenStream {
        let mut choices = Vec::new();
        let spare = self.spare_label(switch, branches);
        for branch in branches {
            let (variant, value) = (name(&branch.field.name), self.random(branch.field.ty));
            let labels = branch.labels.iter().filter_map(|&l| self.label(&module(), switch, l));
            let labels: Vec<_> = labels.chain(spare.clone().filter(|_| branch.is_default)).collect();
            if self.keeps_label(&module(), switch, branch) {
                choices.extend(labels.into_iter().map(|label| quote! { #ty::#variant(#label, #value) }));
            } else {
                choices.push(quote! { #ty::#variant(#value) });
            }
        }
        if let (Some(spare), false) = (spare, branches.iter().any(|b| b.is_default)) {
            let none = Emitter::no_branch(branches);
            choices.push(quote! { #ty::#none(#spare) });
        }
        let numbers = (0..choices.len()).map(Literal::usize_unsuffixed);
        let count = Literal::usize_unsuffixed(choices.len());
        quote! {
            _r.depth += 1;
            let value = match _r.below(#count) {
                #(#numbers => #choices,)*
                _ => unreachable!("it is below"),
            };
            _r.depth -= 1;
            value
        }
    }

    /// A discriminator for which no branch is named, if there is one.
    pub(in crate::emit::rust) fn spare_label(
        &self,
        switch: TypeId,
        branches: &[Branch],
    ) -> Option<TokenStream> {
        let named = |value: i128| branches.iter().any(|b| b.labels.contains(&value));
        let candidates: Vec<i128> = match self.model.ty(self.model.resolved(switch)) {
            Type::Enum(_, members) => members.iter().map(|m| m.1).collect(),
            Type::Bool => vec![0, 1],
            Type::WideChar => (97..1097).collect(),
            _ => (0..127).collect(),
        };
        let free = candidates.into_iter().find(|&value| !named(value))?;
        self.label(&module(), switch, free)
    }
}
