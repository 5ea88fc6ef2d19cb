//! Flat unions: a struct of bits, with a function for each member that reads it and one that makes a union of it.
//!
//! Rust's own unions are read in unsafe blocks only. Here a member is written into the bytes of a message and these are
//! read as another one, by the same code that messages are read with; for values of a few words nothing of it is left.

use std::collections::HashSet;

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::{Emitter, name};
use crate::model::{Field, TypeId};

impl Emitter<'_> {
    /// The type of the bits: as many numbers of the size of the alignment as there are.
    pub(super) fn bits(&self, id: TypeId) -> Option<TokenStream> {
        let fixed = self.sizes.fixed(id)?;
        let number = format_ident!("__u{}", (8 * fixed.align).to_string());
        let count = Literal::u64_unsuffixed(fixed.size / fixed.align);
        Some(quote! { [#number; #count] })
    }

    pub(super) fn flat_union(&self, id: TypeId, path: &str, members: &[Field]) -> TokenStream {
        let (Some(bits), Some(fixed)) = (self.bits(id), self.sizes.fixed(id)) else {
            return TokenStream::new();
        };
        let (from, item) = self.place(path);
        let (rt, ident, doc) = (self.runtime(&from), name(&item), format!(" The flat union `{path}`."));
        let words = Literal::u64_unsuffixed(fixed.size.div_ceil(8));
        let mut taken: HashSet<String> = members.iter().map(|member| member.name.clone()).collect();
        let functions = members.iter().map(|member| {
            let (get, ty) = (name(&member.name), self.ty(&from, member.ty));
            let make = name(&maker(member, &mut taken));
            let get_doc = format!(" Its bytes as `{}`.", member.name);
            let make_doc = format!(" One that holds `{}`, and zeros behind it.", member.name);
            quote! {
                #[doc = #get_doc]
                #[inline]
                pub fn #get(&self) -> #ty { #rt::view::<_, _, #words>(&self.bits) }
                #[doc = #make_doc]
                #[inline]
                pub fn #make(value: #ty) -> #ident { #ident { bits: #rt::view::<_, _, #words>(&value) } }
            }
        });
        quote! {
            #[doc = #doc]
            #[derive(Clone, Debug, PartialEq)]
            #[repr(C)]
            pub struct #ident {
                /// All its bytes.
                pub bits: #bits,
            }
            impl #ident { #(#functions)* }
        }
    }

    /// An expression for a random value: one of its members, or any bits.
    pub(super) fn random_flat_union(&self, ty: &TokenStream, members: &[Field]) -> TokenStream {
        let mut taken: HashSet<String> = members.iter().map(|member| member.name.clone()).collect();
        let choices = members.iter().map(|member| {
            let (make, value) = (name(&maker(member, &mut taken)), self.random(member.ty));
            quote! { #ty::#make(#value) }
        });
        let numbers = (0..members.len()).map(Literal::usize_unsuffixed);
        let count = Literal::usize_unsuffixed(members.len() + 1);
        quote! {
            match _r.below(#count) {
                #(#numbers => #choices,)*
                _ => #ty { bits: ::core::array::from_fn(|_| _r.number() as _) },
            }
        }
    }
}

/// The name of the function that makes a union of a member.
fn maker(member: &Field, taken: &mut HashSet<String>) -> String {
    let mut make = format!("from_{}", member.name);
    while !taken.insert(make.clone()) {
        make.push('_');
    }
    make
}
