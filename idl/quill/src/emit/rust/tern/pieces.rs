//! Traits of declared types: how they travel in words, and what one of their values is before it has come.

use super::*;

impl Emitter<'_> {
    /// Some value of a type.
    pub(super) fn blank(&self, from: &[String], id: TypeId) -> TokenStream {
        let rt = self.runtime(from);
        let ident = |path: &str| name(&self.place(path).1);
        let blank = |ty: TypeId| {
            let ty = self.ty(from, ty);
            quote! { <#ty as #rt::Blank>::BLANK }
        };
        let (ident, value) = match self.model.ty(id) {
            Type::Struct(path, fields) => {
                let names = fields.iter().map(|f| name(&f.name));
                let values = fields.iter().map(|f| blank(f.ty));
                (ident(path), quote! { Self { #(#names: #values),* } })
            }
            Type::Flat(path, _) => (ident(path), quote! { Self { bits: #rt::Blank::BLANK } }),
            Type::Enum(path, members) => {
                let first = members.first().map(|m| name(&m.0));
                (ident(path), quote! { Self::#first })
            }
            Type::Bitmask(path, ..) | Type::Fixed(path, ..) => (ident(path), quote! { Self(0) }),
            Type::Union { name: path, switch, branches } => {
                let Some(branch) = branches.first() else { return TokenStream::new() };
                let (variant, value) = (name(&branch.field.name), blank(branch.field.ty));
                let label = self.keeps_label(from, *switch, branch).then(|| {
                    let label = branch.labels.iter().find_map(|&l| self.label(from, *switch, l));
                    let label = label.unwrap_or_else(|| blank(*switch));
                    quote! { #label, }
                });
                (ident(path), quote! { Self::#variant(#label #value) })
            }
            _ => return TokenStream::new(),
        };
        quote! { impl #rt::Blank for #ident { const BLANK: #ident = #value; } }
    }

    /// The size of a value, roughly; all that there are if it is too large or has no end.
    pub(super) fn owned_bytes(&self, ty: TypeId) -> u64 {
        let bytes = |ty: TypeId, of: &mut dyn FnMut(TypeId) -> u64| match self.model.ty(ty) {
            Type::Str { bound: None, .. } | Type::Sequence(_, None) => ELSEWHERE_BYTES,
            Type::Str { bound: Some(bound), .. } => bound.saturating_mul(4).saturating_add(8),
            Type::Sequence(element, Some(bound)) => of(*element).saturating_mul(*bound).saturating_add(8),
            Type::Shared(_) => ELSEWHERE_BYTES,
            Type::Optional(of) if self.is_boxed(*of) => ELSEWHERE_BYTES,
            Type::Optional(element) => of(*element).saturating_add(8),
            Type::Array(element, dims) => dims.iter().fold(of(*element), |all, &n| all.saturating_mul(n)),
            Type::Struct(_, fields) => fields.iter().map(|f| of(f.ty)).fold(0, u64::saturating_add),
            Type::Union { branches, .. } => {
                branches.iter().map(|b| of(b.field.ty)).fold(0, u64::max).saturating_add(8)
            }
            _ => self.sizes.fixed(ty).map_or(u64::MAX, |fixed| fixed.size),
        };
        self.owned.get_or_init(|| for_all_types(self.model, u64::MAX, &bytes))[ty.0 as usize]
    }

    /// What makes a type of fixed size travel in words.
    pub(super) fn piece(&self, from: &[String], id: TypeId) -> TokenStream {
        let rt = self.runtime(from);
        let Some(fixed) = self.sizes.fixed(id) else { return TokenStream::new() };
        let bytes = Literal::u64_unsuffixed(fixed.size);
        let ident = |path: &str| name(&self.place(path).1);
        let (ident, put, get) = match self.model.ty(id) {
            Type::Struct(path, fields) => {
                let (put, get) = self.struct_piece(from, &rt, fields);
                (ident(path), put, get)
            }
            Type::Flat(path, _) => (
                ident(path),
                quote! { #rt::Piece::put(&self.bits, _words, _at) },
                quote! { #rt::Piece::get(_words, _at).map(|bits| Self { bits }) },
            ),
            Type::Enum(path, members) => {
                let ident = ident(path);
                let (numbers, names) = Emitter::numbers(members);
                let get = quote! {
                    match <__u32 as #rt::Piece>::get(_words, _at)? {
                        #(#numbers => Ok(#ident::#names),)*
                        _ => Err(#rt::Malformed),
                    }
                };
                let put = quote! { #rt::Piece::put(&(*self as __u32), _words, _at) };
                (ident, put, get)
            }
            Type::Bitmask(path, bits, members) => {
                let ident = ident(path);
                let number = format_ident!("__u{}", bits.to_string());
                let all = Literal::u64_unsuffixed(bits_of(members));
                let get = quote! {
                    let bits = <#number as #rt::Piece>::get(_words, _at)?;
                    if bits & !#all == 0 { Ok(#ident(bits)) } else { Err(#rt::Malformed) }
                };
                (ident, quote! { #rt::Piece::put(&self.0, _words, _at) }, get)
            }
            Type::Fixed(path, ..) => (
                ident(path),
                quote! { #rt::Piece::put(&self.0, _words, _at) },
                quote! { Self::new(<__i64 as #rt::Piece>::get(_words, _at)?).ok_or(#rt::Malformed) },
            ),
            _ => return TokenStream::new(),
        };
        quote! {
            impl #rt::Piece for #ident {
                const BYTES: __usize = #bytes;
                #[inline(always)]
                fn put(&self, _words: &mut [__u64], _at: __usize) { #put }
                #[inline(always)]
                fn get(_words: &[__u64], _at: __usize) -> __Result<#ident, #rt::Malformed> { #get }
            }
        }
    }

    /// What lets a struct or a flat union be used as it lies in memory.
    pub(super) fn flat(&self, from: &[String], id: TypeId) -> TokenStream {
        let (path, types) = match self.model.ty(id) {
            Type::Struct(path, fields) => (path, fields.iter().map(|f| self.ty(from, f.ty)).collect()),
            Type::Flat(path, _) => (path, Vec::from_iter(self.bits(id))),
            _ => return TokenStream::new(),
        };
        if !self.sizes.flat(id) {
            return TokenStream::new();
        }
        let rt = self.runtime(from);
        let ident = name(&self.place(path).1);
        quote! { #rt::flat_struct!(#ident { #(#types),* }); }
    }

    /// How a struct is written, and how it is read.
    pub(super) fn struct_piece(
        &self,
        from: &[String],
        rt: &TokenStream,
        fields: &[Field],
    ) -> (TokenStream, TokenStream) {
        let names: Vec<_> = fields.iter().map(|f| name(&f.name)).collect();
        let types: Vec<_> = fields.iter().map(|f| self.ty(from, f.ty)).collect();
        let offsets: Vec<_> = self.sizes.offsets(fields).into_iter().map(Literal::u64_unsuffixed).collect();
        (
            quote! { #(#rt::Piece::put(&self.#names, _words, _at + #offsets);)* },
            quote! { Ok(Self { #(#names: <#types as #rt::Piece>::get(_words, _at + #offsets)?),* }) },
        )
    }
}
