//! `any`: a struct whose fields nobody else can set, with functions that make one of a value and give the value back;
//! and such functions beside each type of a file that has an `any`.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::{Emitter, name};
use crate::any;
use crate::emit::travel::holding_any;
use crate::model::{Field, TypeId};

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
        let list = self.ty(&from, fields[2].ty);
        let most = Literal::u64_unsuffixed(any::CHARACTERS_MAX);
        let functions = values().into_iter().map(|(of, ty, put, get)| {
            let (make, ask, tk) = (format_ident!("from_{of}"), name(of), format_ident!("tk_{of}"));
            let (make_doc, ask_doc) = (format!(" A {of}."), format!(" Its value, if it is a {of}."));
            quote! {
                #[doc = #make_doc]
                pub fn #make(value: #ty) -> #ident {
                    #ident { kind: #kind::#tk, bits: #put, content: <#list>::new() }
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
        let (described, packing) = (self.described(&from, &ident, fields), self.part.packing(&rt));
        quote! {
            /// A value that brings its type along.
            #[derive(Clone, Debug, PartialEq)]
            pub struct #ident { #(#declared),* }
            impl #ident {
                /// What it is.
                pub fn kind(&self) -> #kind { self.kind }
                /// Nothing.
                pub fn null() -> #ident { #ident { kind: #kind::tk_null, bits: 0, content: <#list>::new() } }
                #(#functions)*
                /// A string, if it is not too long and has no zero.
                pub fn from_string(text: &__str) -> __Option<#ident> {
                    let mut content = <#list>::from(text.as_bytes());
                    content.push(0);
                    let any = #ident { kind: #kind::tk_string, bits: 0, content };
                    if any.is_sound() { Some(any) } else { None }
                }
                /// Its value, if it is a string.
                pub fn string(&self) -> __Option<&__str> {
                    let (last, text) = self.content.split_last()?;
                    let is_text = self.kind == #kind::tk_string && *last == 0 && !text.contains(&0);
                    if is_text { ::core::str::from_utf8(text).ok() } else { None }
                }
                /// Whether the parts go together: a value that its kind has, and a content only where there is one.
                pub(super) fn is_sound(&self) -> __bool {
                    let width: __u32 = match self.kind { #(#widths),* };
                    let above = self.bits.checked_shr(width).unwrap_or(0);
                    above == 0 && match self.kind {
                        #kind::tk_string => self.string().is_some_and(|text| text.chars().count() <= #most),
                        #kind::tk_described => self.type_code_bytes().is_some(),
                        #kind::tk_wchar => self.content.is_empty() && <__char>::from_u32(self.bits as __u32).is_some(),
                        _ => self.content.is_empty(),
                    }
                }
                #described
                #packing
            }
        }
    }

    /// The functions for values of types of the file.
    fn described(&self, from: &[String], ident: &Ident, fields: &[Field]) -> TokenStream {
        let (rt, kind) = (self.runtime(from), self.ty(from, fields[0].ty));
        let (list, type_code) = (self.ty(from, fields[2].ty), self.type_code(from, &kind));
        quote! {
            /// The value's bits and its content, to be handed on by a program that does not know its type: see [`from_parts`](Self::from_parts).
            pub fn parts(&self) -> (#kind, __u64, &[__u8]) { (self.kind, self.bits, &self.content) }
            /// An any of such parts, if they go together.
            pub fn from_parts(kind: #kind, bits: __u64, content: &[__u8]) -> __Option<#ident> {
                let any = #ident { kind, bits, content: content.into() };
                if any.is_sound() { Some(any) } else { None }
            }
            /// The packed type code of a value of a type of the file; `None` if it is of a basic type.
            pub fn type_code_bytes(&self) -> __Option<&[__u8]> {
                let code = self.content.get(..self.bits as __usize)?;
                let is_whole = |bytes: &[__u8]| bytes.len() % 8 == 0;
                let is_described = self.kind == #kind::tk_described && !code.is_empty();
                if is_described && is_whole(code) && is_whole(&self.content) { Some(code) } else { None }
            }
            #type_code
            /// A value whose type has that code, if it is not too long.
            pub(super) fn describe<T: #rt::Wire>(code: &[__u8], value: &T) -> __Option<#ident> {
                let value = Self::pack(value)?;
                let mut content = <#list>::from(code);
                content.extend_from_slice(&value);
                Some(#ident { kind: #kind::tk_described, bits: code.len() as __u64, content })
            }
            /// The value, if its type has that code and its bytes are one of it.
            pub(super) fn value<T: #rt::Wire>(&self, code: &[__u8]) -> __Option<T> {
                let is_it = self.type_code_bytes()? == code;
                if is_it { Self::unpack(self.content.get(code.len()..)?) } else { None }
            }
        }
    }

    /// The function that says what type a value has, if the file has descriptions of types that can travel.
    fn type_code(&self, from: &[String], kind: &TokenStream) -> Option<TokenStream> {
        let code = self.type_code_type(from)?;
        let basic = any::KINDS.iter().filter(|(tk, _)| *tk != any::DESCRIBED).map(|&(tk, _)| {
            let (bytes, tk) = (any::basic_code(tk), name(tk));
            let bytes = Literal::byte_string(&bytes);
            quote! { #kind::#tk => #bytes }
        });
        Some(quote! {
            /// The type of its value; `None` if nobody can say that a type has that code.
            pub fn type_code(&self) -> __Option<#code> {
                let basic: &[__u8; 8] = match self.kind {
                    #kind::tk_described => return Self::unpack(self.type_code_bytes()?),
                    #(#basic),*
                };
                Self::unpack(basic)
            }
        })
    }

    /// The type of descriptions of types.
    fn type_code_type(&self, from: &[String]) -> Option<TokenStream> {
        let (_, code) = self.model.type_code.filter(|(_, code)| self.travels[code.0 as usize])?;
        Some(self.ty(from, code))
    }

    /// Functions for those types of the file whose values an `any` can hold.
    pub(super) fn any_functions(&mut self) {
        let codes = std::mem::take(&mut self.codes);
        for (id, code) in &codes.types {
            if self.is_held_by_any(*id)
                && let Some(path) = self.model.ty(*id).name()
            {
                let path = path.to_owned();
                self.functions_of_any(&path, Some(*id), code);
            }
        }
        for (id, code) in &codes.exceptions {
            let exception = &self.model.exceptions[id.0 as usize];
            if self.exceptions.contains(id) && exception.fields.iter().all(|f| self.is_held_by_any(f.ty)) {
                let (path, fields) = (exception.name.clone(), exception.fields.clone());
                self.exception_wire(&path, &fields);
                self.functions_of_any(&path, None, code);
            }
        }
        self.codes = codes;
    }

    /// Whether values of a type can be in an `any`: they travel, have nothing beside their bytes, and fit on a stack.
    fn is_held_by_any(&self, id: TypeId) -> bool {
        let is_there = match self.model.ty(id).name() {
            Some(_) => self.emitted.contains(&id),
            None => true,
        };
        let carried = self.travels[id.0 as usize] && !self.refers(id);
        is_there && carried && self.unfit(vec![id], false).is_none() && self.part.owns(self, id)
    }

    /// An exception as a value in an `any`: its fields one behind the other.
    fn exception_wire(&mut self, path: &str, fields: &[Field]) {
        let (modules, item) = self.place(path);
        let (rt, ident) = (self.runtime(&modules), name(&item));
        let names: Vec<Ident> = fields.iter().map(|field| name(&field.name)).collect();
        let failed = quote! { #rt::Malformed };
        let gets = fields.iter().map(|field| {
            let (ident, ty) = (name(&field.name), self.ty(&modules, field.ty));
            let bounds = self.bounds(field.ty, &quote! { #ident }, &failed, 0);
            quote! { let #ident = <#ty as #rt::Wire>::get(_from)?; #bounds }
        });
        let item = quote! {
            impl #rt::Wire for #ident {
                fn put(&self, _out: &mut #rt::Out) { #(#rt::Wire::put(&self.#names, _out);)* }
                fn get(_from: &mut #rt::In) -> __Result<#ident, #rt::Malformed> {
                    #(#gets)*
                    Ok(#ident { #(#names),* })
                }
            }
        };
        self.root.at(&modules).items.push(item);
    }

    /// Names of the functions for a type.
    pub(super) fn names_in_any(&self, path: &str) -> [Ident; 3] {
        let (modules, item) = self.place(path);
        ["to_any", "from_any", "type_code"].map(|what| self.own_name(&modules, &format!("{item}_{what}")))
    }

    fn functions_of_any(&mut self, path: &str, id: Option<TypeId>, code: &[u8]) {
        let (modules, item) = self.place(path);
        let ident = name(&item);
        let Some(any) = self.model.any else { return };
        let (any, code) = (self.ty(&modules, any), Literal::byte_string(code));
        let [to_any, from_any, type_code] = self.names_in_any(path);
        let (ty, checks) = match id {
            Some(id) => (self.ty(&modules, id), self.unkept(id)),
            None => (quote! { #ident }, TokenStream::new()),
        };
        let described = self.type_code_type(&modules).map(|of| {
            let doc = format!(" The type `{path}`.");
            quote! {
                #[doc = #doc]
                #[allow(non_snake_case, dead_code)]
                pub fn #type_code() -> __Option<#of> { #any::unpack(#code) }
            }
        });
        let docs = [
            format!(" An any of a `{path}`; `None` of one that breaks its type's bounds, or is too long."),
            format!(
                " The `{path}` in an any; `None` if it is of another type, or its bytes are no value of it."
            ),
        ];
        let [to_doc, from_doc] = &docs;
        let item = quote! {
            #[doc = #to_doc]
            #[allow(non_snake_case, dead_code, clippy::ptr_arg)]
            pub fn #to_any(_value: &#ty) -> __Option<#any> {
                #checks
                #any::describe(#code, _value)
            }
            #[doc = #from_doc]
            #[allow(non_snake_case, dead_code)]
            pub fn #from_any(_any: &#any) -> __Option<#ty> {
                let _value: #ty = _any.value(#code)?;
                {
                    let _value = &_value;
                    #checks
                }
                Some(_value)
            }
            #described
        };
        self.root.at(&modules).items.push(item);
    }

    /// Statements that give nothing for a value that breaks bounds of its type: of which `_value` is the address.
    fn unkept(&self, id: TypeId) -> TokenStream {
        let failed = quote! { () };
        let value = quote! { _value };
        let (own, inner) = (self.bounds(id, &value, &failed, 0), self.struct_bounds(id, &value, &failed, 0));
        if own.is_empty() && inner.is_empty() {
            return TokenStream::new();
        }
        quote! {
            let _kept = || -> __Result<(), ()> { #own #inner Ok(()) };
            _kept().ok()?;
        }
    }

    /// Expressions for random values of types of the file: those that fit into each message, read and written once more.
    fn random_described(&self, any: &TokenStream) -> Vec<TokenStream> {
        let module = super::selftest::module();
        let holding = holding_any(self.model);
        let is_tested = |id: TypeId| self.is_held_by_any(id) && !holding[id.0 as usize];
        let types = self.codes.types.iter().filter(|(id, _)| is_tested(*id));
        let all = types.take(any::TESTED_MAX).filter_map(|(id, _)| {
            let path = self.model.ty(*id).name()?;
            let [to_any, from_any, _] = self.names_in_any(path);
            let (modules, _) = self.place(path);
            let within = |function: Ident| {
                let path: Vec<String> = modules.iter().cloned().chain([function.to_string()]).collect();
                self.path(&module, &path.join("::"))
            };
            let (to_any, from_any) = (within(to_any), within(from_any));
            let (ty, value) = (self.ty(&module, *id), self.random(*id));
            Some(quote! {
                {
                    let value: #ty = #value;
                    let made = #to_any(&value).filter(|made| made.parts().2.len() <= 1024);
                    let made = made.unwrap_or_else(#any::null);
                    let again = #from_any(&made).and_then(|value| #to_any(&value));
                    assert!(again.is_none_or(|again| again == made), "a value in an any is another one");
                    made
                }
            })
        });
        all.collect()
    }

    /// An expression for a random value of some kind.
    pub(super) fn random_any(&self, ty: &TokenStream) -> TokenStream {
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
            .chain(self.random_described(ty))
            .collect();
        let (most, bound) = (Literal::u64_unsuffixed(any::CHARACTERS_MAX), Some(any::CHARACTERS_MAX));
        let rt = self.runtime(&super::selftest::module());
        let text = self.part.list(&rt, super::Element::Text, bound);
        let numbers = (0..choices.len()).map(Literal::usize_unsuffixed);
        let (last, count) =
            (Literal::usize_unsuffixed(choices.len()), Literal::usize_unsuffixed(choices.len() + 2));
        quote! {
            match _r.below(#count) {
                #(#numbers => #choices,)*
                #last => #ty::null(),
                _ => {
                    let text: #text = _r.text(#most);
                    #ty::from_string(&text).unwrap_or_else(#ty::null)
                }
            }
        }
    }
}
