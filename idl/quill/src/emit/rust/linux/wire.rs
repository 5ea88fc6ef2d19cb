//! How values of declared types are written and read: implementations of the runtime's `Wire`, with every check.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::super::{Emitter, name};
use crate::model::{Branch, Field, Type, TypeId, bits_of};

impl Emitter<'_> {
    /// How values of a declared type are written and read.
    pub(in crate::emit::rust) fn wire(&self, from: &[String], id: TypeId) -> TokenStream {
        match self.model.ty(id) {
            Type::Struct(path, fields) => self.structure_wire(from, path, fields, id),
            Type::Flat(path, _) => self.flat_wire(from, path, id),
            Type::Enum(path, members) => self.enumeration_wire(from, path, members),
            Type::Bitmask(path, bits, members) => self.bitmask_wire(from, path, *bits, members),
            Type::Fixed(path, ..) => self.decimal_wire(from, path),
            Type::Union { name, switch, branches } => self.union_wire(from, name, *switch, branches),
            _ => TokenStream::new(),
        }
    }

    fn structure_wire(&self, from: &[String], path: &str, fields: &[Field], id: TypeId) -> TokenStream {
        let rt = self.runtime(from);
        let ident = name(&self.place(path).1);
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
            let (ident, ty) = (name(&field.name), self.ty(from, field.ty));
            let bounds = self.bounds(field.ty, &quote! { #ident }, &failed, 0);
            quote! { let #ident = <#ty as #rt::Wire>::get(_from)?; #bounds }
        });
        let checked = match self.model.agreements.contains_key(&id) {
            true => quote! {
                let _value = #ident { #(#names),* };
                if _value._agrees() { Ok(_value) } else { Err(#failed) }
            },
            false => quote! { Ok(#ident { #(#names),* }) },
        };
        quote! {
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
                    #checked
                }
            }
        }
    }

    fn flat_wire(&self, from: &[String], path: &str, id: TypeId) -> TokenStream {
        let (rt, ident) = (self.runtime(from), name(&self.place(path).1));
        let align = self.sizes.fixed(id).map_or(1, |fixed| fixed.align);
        let align = Literal::u64_unsuffixed(align);
        quote! {
            impl #rt::Wire for #ident {
                fn put(&self, _out: &mut #rt::Out) {
                    _out.align(#align);
                    #rt::Wire::put(&self.bits, _out);
                }
                fn get(_from: &mut #rt::In) -> __Result<#ident, #rt::Malformed> {
                    _from.align(#align)?;
                    #rt::Wire::get(_from).map(|bits| #ident { bits })
                }
            }
        }
    }

    fn enumeration_wire(&self, from: &[String], path: &str, members: &[(String, i128)]) -> TokenStream {
        let rt = self.runtime(from);
        let ident = name(&self.place(path).1);
        let (numbers, names) = Emitter::numbers(members);
        quote! {
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

    fn bitmask_wire(&self, from: &[String], path: &str, bits: u8, members: &[(String, i128)]) -> TokenStream {
        let rt = self.runtime(from);
        let ident = name(&self.place(path).1);
        let number = quote::format_ident!("__u{}", bits.to_string());
        let all = Literal::u64_unsuffixed(bits_of(members));
        quote! {
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

    fn union_wire(&self, from: &[String], path: &str, switch: TypeId, branches: &[Branch]) -> TokenStream {
        let rt = self.runtime(from);
        let ident = name(&self.place(path).1);
        let tag = self.ty(from, switch);
        let (mut puts, mut gets, mut last) = (Vec::new(), Vec::new(), None);
        let failed = quote! { #rt::Malformed };
        for branch in branches {
            let (variant, ty) = (name(&branch.field.name), self.ty(from, branch.field.ty));
            let labels: Vec<_> = branch.labels.iter().filter_map(|&l| self.label(from, switch, l)).collect();
            let bounds = self.bounds(branch.field.ty, &quote! { value }, &failed, 0);
            let get = quote! { let value = <#ty as #rt::Wire>::get(_from)?; #bounds };
            if self.keeps_label(from, switch, branch) {
                puts.push(quote! { #ident::#variant(label, value) => { label.put(_out); value.put(_out); } });
                let arm = quote! { { #get Ok(#ident::#variant(label, value)) } };
                if branch.is_default {
                    last = Some(quote! { _ => #arm });
                } else {
                    gets.push(quote! { #(#labels)|* => #arm });
                }
            } else {
                puts.push(quote! { #ident::#variant(value) => { #(<#tag as #rt::Wire>::put(&#labels, _out);)* value.put(_out); } });
                gets.push(quote! { #(#labels)|* => { #get Ok(#ident::#variant(value)) } });
            }
        }
        let last = last.unwrap_or_else(|| {
            let none = Emitter::no_branch(branches);
            puts.push(quote! { #ident::#none(label) => label.put(_out), });
            quote! { _ => Ok(#ident::#none(label)), }
        });
        quote! {
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
