//! `any`: a struct whose fields nobody else can set, with functions that make one of a value and give the value back.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::{Emitter, name};
use crate::any;
use crate::model::Field;

/// Kinds with a value in bits, its type, and how it gets there and back.
fn values() -> Vec<(&'static str, TokenStream, TokenStream, TokenStream)> {
    let whole = |unsigned: TokenStream, own: TokenStream| {
        (own.clone(), quote! { value as #unsigned as __u64 }, quote! { Some(self.bits as #own) })
    };
    let rows = [
        ("boolean", (quote! { __bool }, quote! { value as __u64 }, quote! { Some(self.bits != 0) })),
        ("char", whole(quote! { __u8 }, quote! { __u8 })),
        ("octet", whole(quote! { __u8 }, quote! { __u8 })),
        ("short", whole(quote! { __u16 }, quote! { __i16 })),
        ("ushort", whole(quote! { __u16 }, quote! { __u16 })),
        ("long", whole(quote! { __u32 }, quote! { __i32 })),
        ("ulong", whole(quote! { __u32 }, quote! { __u32 })),
        ("longlong", whole(quote! { __u64 }, quote! { __i64 })),
        ("ulonglong", whole(quote! { __u64 }, quote! { __u64 })),
        (
            "float",
            (
                quote! { __f32 },
                quote! { value.to_bits() as __u64 },
                quote! { Some(<__f32>::from_bits(self.bits as __u32)) },
            ),
        ),
        (
            "double",
            (quote! { __f64 }, quote! { value.to_bits() }, quote! { Some(<__f64>::from_bits(self.bits)) }),
        ),
        (
            "wchar",
            (
                quote! { __char },
                quote! { value as __u32 as __u64 },
                quote! { <__char>::from_u32(self.bits as __u32) },
            ),
        ),
    ];
    rows.into_iter().map(|(kind, (ty, put, get))| (kind, ty, put, get)).collect()
}

impl Emitter<'_> {
    pub(super) fn any(&self, path: &str, fields: &[Field]) -> TokenStream {
        let (from, item) = self.place(path);
        let (rt, ident) = (self.runtime(&from), name(&item));
        let kind = self.ty(&from, fields[0].ty);
        let declared = fields.iter().map(|field| {
            let (field, ty) = (name(&field.name), self.ty(&from, field.ty));
            quote! { pub(super) #field: #ty }
        });
        let none = self.part.owned_text(&rt, None);
        let text = self.part.owned_text(&rt, Some(quote! { text }));
        let most = Literal::u64_unsuffixed(any::CHARACTERS_MAX);
        let functions = values().into_iter().map(|(of, ty, put, get)| {
            let (make, ask, tk) = (format_ident!("from_{of}"), name(of), format_ident!("tk_{of}"));
            let (make_doc, ask_doc) = (format!(" A {of}."), format!(" Its value, if it is a {of}."));
            quote! {
                #[doc = #make_doc]
                pub fn #make(value: #ty) -> #ident {
                    #ident { kind: #kind::#tk, bits: #put, text: #none }
                }
                #[doc = #ask_doc]
                pub fn #ask(&self) -> __Option<#ty> {
                    if self.kind == #kind::#tk { #get } else { None }
                }
            }
        });
        let widths = any::KINDS.iter().map(|&(tk, bits)| {
            let (tk, bits) = (name(tk), Literal::u32_unsuffixed(bits));
            quote! { #kind::#tk => #bits }
        });
        quote! {
            /// A value that brings its type along.
            #[derive(Clone, Debug, PartialEq)]
            pub struct #ident { #(#declared),* }
            impl #ident {
                /// What it is.
                pub fn kind(&self) -> #kind { self.kind }
                /// Nothing.
                pub fn null() -> #ident { #ident { kind: #kind::tk_null, bits: 0, text: #none } }
                #(#functions)*
                /// A string, if it is not too long.
                pub fn from_string(text: &__str) -> __Option<#ident> {
                    let fits = text.chars().count() <= #most;
                    if fits { Some(#ident { kind: #kind::tk_string, bits: 0, text: #text }) } else { None }
                }
                /// Its value, if it is a string.
                pub fn string(&self) -> __Option<&__str> {
                    if self.kind == #kind::tk_string { Some(&self.text) } else { None }
                }
                /// Whether the parts go together: a value that its kind has, and a text only where there is one.
                pub(super) fn is_sound(&self) -> __bool {
                    let width: __u32 = match self.kind { #(#widths),* };
                    let above = self.bits.checked_shr(width).unwrap_or(0);
                    let scalar = self.kind != #kind::tk_wchar || <__char>::from_u32(self.bits as __u32).is_some();
                    above == 0 && scalar && (self.kind == #kind::tk_string || self.text.len() == 0)
                }
            }
        }
    }

    /// An expression for a random value of some kind.
    pub(super) fn random_any(&self, ty: &TokenStream, fields: &[Field]) -> TokenStream {
        let choices: Vec<TokenStream> = values()
            .into_iter()
            .map(|(of, own, ..)| {
                let make = format_ident!("from_{of}");
                let value = match of {
                    "boolean" => quote! { _r.truth() },
                    "float" => quote! { _r.single() },
                    "double" => quote! { _r.double() },
                    "wchar" => quote! { _r.character() },
                    _ => quote! { _r.number() as #own },
                };
                quote! { #ty::#make(#value) }
            })
            .collect();
        let text = self.ty(&super::selftest::module(), fields[2].ty);
        let random = self.random(fields[2].ty);
        let numbers = (0..choices.len()).map(Literal::usize_unsuffixed);
        let (last, count) =
            (Literal::usize_unsuffixed(choices.len()), Literal::usize_unsuffixed(choices.len() + 2));
        quote! {
            match _r.below(#count) {
                #(#numbers => #choices,)*
                #last => #ty::null(),
                _ => {
                    let text: #text = #random;
                    #ty::from_string(&text).unwrap_or_else(#ty::null)
                }
            }
        }
    }
}
