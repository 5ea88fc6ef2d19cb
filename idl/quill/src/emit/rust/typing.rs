//! How types look in Rust, and how their values are passed.

use super::*;

impl Emitter<'_> {
    /// A type, as seen from a module.
    pub(super) fn ty(&self, from: &[String], ty: TypeId) -> TokenStream {
        let ty = self.model.resolved(ty);
        match self.model.ty(ty) {
            Type::Bool => quote! { __bool },
            Type::Octet | Type::Char => quote! { __u8 },
            Type::WideChar => quote! { __char },
            Type::Int { bits, signed } => {
                let ident = format_ident!("__{}{}", if *signed { "i" } else { "u" }, bits.to_string());
                quote! { #ident }
            }
            Type::Float(bits) => {
                let ident = format_ident!("__f{}", bits.to_string());
                quote! { #ident }
            }
            Type::Str { bound, .. } => self.part.list(&self.runtime(from), Element::Text, *bound),
            Type::Sequence(of, bound) => {
                let of = Element::Of(self.ty(from, *of));
                self.part.list(&self.runtime(from), of, *bound)
            }
            Type::Optional(of) => {
                let inner = self.ty(from, *of);
                let inner = match self.is_boxed(*of) {
                    true => self.part.elsewhere(&self.runtime(from), inner),
                    false => inner,
                };
                quote! { __Option<#inner> }
            }
            Type::Shared(of) => {
                let (rt, inner) = (self.runtime(from), self.ty(from, *of));
                quote! { __Option<#rt::Shared<#inner>> }
            }
            Type::Array(of, dims) => {
                let mut of = self.ty(from, *of);
                for dim in dims.iter().rev() {
                    let dim = proc_macro2::Literal::usize_unsuffixed(*dim as usize);
                    of = quote! { [#of; #dim] };
                }
                of
            }
            Type::Struct(name, _)
            | Type::Flat(name, _)
            | Type::Enum(name, _)
            | Type::Bitmask(name, ..)
            | Type::Fixed(name, ..)
            | Type::Union { name, .. } => self.path(from, name),
            Type::Object(to) => {
                self.part.reference(self, from, *to).unwrap_or_else(|| self.part.object(&self.runtime(from)))
            }
            Type::Fpage => {
                let rt = self.runtime(from);
                quote! { #rt::Fpage }
            }
            kind if is_opaque(kind) => quote! { *mut ::core::ffi::c_void },
            _ => quote! { () },
        }
    }

    /// Whether a value that may be absent lies elsewhere: it may be large, or contain others of its type.
    pub(super) fn is_boxed(&self, of: TypeId) -> bool {
        matches!(
            self.model.ty(self.model.resolved(of)),
            Type::Struct(..) | Type::Union { .. } | Type::Flat(..) | Type::Array(..)
        )
    }

    /// Whether values are passed by copy.
    pub(super) fn is_small(&self, ty: TypeId) -> bool {
        matches!(
            self.model.ty(self.model.resolved(ty)),
            Type::Bool
                | Type::Octet
                | Type::Char
                | Type::WideChar
                | Type::Int { .. }
                | Type::Float(_)
                | Type::Enum(..)
                | Type::Bitmask(..)
                | Type::Fixed(..)
                | Type::Object(_)
                | Type::Fpage
        ) || is_opaque(self.model.ty(self.model.resolved(ty)))
    }

    pub(super) fn argument(&self, from: &[String], param: &str, ty: TypeId) -> Argument {
        let name = name(param);
        let owned = self.ty(from, ty);
        let (declared, passed) = match self.model.ty(self.model.resolved(ty)) {
            _ if self.is_small(ty) => (quote! { #name: #owned }, quote! { #name }),
            Type::Str { .. } => (quote! { #name: &__str }, quote! { &#name }),
            Type::Sequence(of, _) => {
                let of = self.ty(from, *of);
                (quote! { #name: &[#of] }, quote! { &#name })
            }
            _ => (quote! { #name: &#owned }, quote! { &#name }),
        };
        Argument { declared, passed }
    }

    // --- what all kernel parts share
}
