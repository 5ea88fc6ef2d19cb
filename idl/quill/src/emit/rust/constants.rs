//! Constants.

use proc_macro2::TokenStream;
use quote::quote;

use super::{Emitter, name};
use crate::model::{Const, Type, Value};

impl Emitter<'_> {
    /// Emits every constant whose type Rust has.
    pub(super) fn constants(&mut self) {
        for constant in &self.model.consts {
            let Some((ty, value)) = self.constant(constant) else { continue };
            let (modules, item) = self.place(&constant.name);
            let ident = name(&item);
            let doc = format!(" The constant `{}`.", constant.name);
            self.root.at(&modules).items.push(quote! { #[doc = #doc] pub const #ident: #ty = #value; });
        }
    }

    fn constant(&self, constant: &Const) -> Option<(TokenStream, TokenStream)> {
        let (from, _) = self.place(&constant.name);
        let ty = self.ty(&from, constant.ty);
        Some(match &constant.value {
            Value::Int(v) => {
                let literal = proc_macro2::Literal::i128_unsuffixed(*v);
                match self.model.ty(self.model.resolved(constant.ty)) {
                    Type::Int { .. } | Type::Octet => (ty, quote! { #literal }),
                    Type::Bitmask(..) => (ty.clone(), quote! { #ty(#literal) }),
                    Type::Enum(_, members) => {
                        let member = name(&members.iter().find(|m| m.1 == *v)?.0);
                        (ty.clone(), quote! { #ty::#member })
                    }
                    _ => return None,
                }
            }
            Value::Float(v)
                if matches!(self.model.ty(self.model.resolved(constant.ty)), Type::Float(32 | 64)) =>
            {
                let literal = proc_macro2::Literal::f64_unsuffixed(*v);
                (ty, quote! { #literal })
            }
            Value::Bool(v) => (ty, quote! { #v }),
            Value::Char(v) => {
                let literal = proc_macro2::Literal::u32_unsuffixed(*v);
                (ty, quote! { #literal })
            }
            Value::WideChar(v) => {
                let literal = proc_macro2::Literal::character(char::from_u32(*v)?);
                (ty, quote! { #literal })
            }
            Value::Str(v) | Value::WideStr(v) => {
                let text: Option<String> = v.iter().map(|&c| char::from_u32(c)).collect();
                let text = text?;
                (quote! { &__str }, quote! { #text })
            }
            Value::Enum(of, v) => {
                let Type::Enum(_, members) = self.model.ty(*of) else { return None };
                let (member, _) = members.iter().find(|m| m.1 == *v)?;
                let (path, member) = (self.ty(&from, *of), name(member));
                (path.clone(), quote! { #path::#member })
            }
            _ => return None,
        })
    }
}
