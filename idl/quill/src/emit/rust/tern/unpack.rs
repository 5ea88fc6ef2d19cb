//! How values come out of a message: out of words, out of what has arrived in memory, and out of pieces.

use super::*;

impl Emitter<'_> {
    /// Statements that read the words in `_in` with every check and leave the values in variables.
    ///
    /// Bounds of lists need no check of their own when a message is read: they are those of the lists' types. Bounds of
    /// text, in characters, do.
    pub(super) fn unpack(
        &self,
        from: &[String],
        rt: &TokenStream,
        message: &Message,
        values: &[(String, TypeId)],
        owned: bool,
    ) -> TokenStream {
        let owned = owned || message.copies;
        let mut variables: HashMap<&[String], Ident> = HashMap::new();
        let mut counts: HashMap<&[String], Ident> = HashMap::new();
        let mut tail = quote! { 0 };
        let mut statements: Vec<TokenStream> = unpack_memory(rt, message).into_iter().collect();
        for (i, slot) in message.slots.iter().enumerate() {
            let variable = format_ident!("_slot_{}", i.to_string());
            let (words, at) = Emitter::leaf_place(slot, "_in", "_memory");
            let words = if matches!(slot.place, Place::Register(..)) {
                quote! { &#words }
            } else {
                quote! { #words }
            };
            match slot.leaf {
                Leaf::Value(ty) => {
                    let ty = self.ty(from, ty);
                    statements.push(quote! { let #variable = <#ty as #rt::Piece>::get(#words, #at)?; });
                    variables.insert(&slot.path, variable);
                }
                Leaf::Count(_) => {
                    let number = Emitter::count_type(slot);
                    statements.push(quote! { let #variable = <#number as #rt::Piece>::get(#words, #at)?; });
                    counts.insert(&slot.path, variable);
                }
                Leaf::Tail(_) => {
                    statements.push(quote! { let #variable = <__u64 as #rt::Piece>::get(#words, #at)?; });
                    tail = quote! { #variable };
                }
                Leaf::Offer(_) => {
                    let offer = offer_of(&slot.path);
                    statements.push(quote! { let #offer = <__u64 as #rt::Piece>::get(#words, #at)?; });
                }
                Leaf::Elements(ty, _) => {
                    let count = counts.get(slot.path.as_slice());
                    let get = format_ident!("{}", if self.is_text(ty) { "get_text" } else { "get_list" });
                    let ty = self.ty(from, ty);
                    statements.push(quote! { let #variable: #ty = #rt::#get(#words, #at, #count)?; });
                    variables.insert(&slot.path, variable);
                }
            }
        }
        for (i, chunk) in message.chunks.iter().enumerate() {
            let variable = format_ident!("_chunk_{}", i.to_string());
            let count = counts.get(chunk.path.as_slice());
            let value = self.unpack_chunk(from, rt, chunk, count, &tail, owned);
            statements.push(quote! { let #variable = #value; });
            variables.insert(&chunk.path, variable);
        }
        if has_streams(message) {
            statements.push(quote! { _stream.finish()?; });
        }
        let values = self.build_values(from, values, &variables, &quote! { #rt::Malformed.into() });
        quote! { #(#statements)* #values }
    }

    /// A list that lies in the room. One that is a parameter is used there; a part of one is copied, and so is what is read
    /// piece by piece.
    pub(super) fn unpack_chunk(
        &self,
        from: &[String],
        rt: &TokenStream,
        chunk: &Chunk,
        count: Option<&Ident>,
        tail: &TokenStream,
        owned: bool,
    ) -> TokenStream {
        if chunk.element.is_none() {
            let ty = self.ty(from, chunk.ty);
            return quote! { { _stream.align(8)?; <#ty as #rt::Wire>::get(&mut _stream)? } };
        }
        let bound = Literal::u64_unsuffixed(chunk.bound.unwrap_or(0));
        let count = count.map_or_else(|| quote! { 1 }, |count| quote! { #count });
        let element = match self.kind(chunk.ty) {
            Type::Sequence(of, _) => self.ty(from, *of),
            Type::Str { .. } => quote! { __u8 },
            _ => self.ty(from, chunk.ty),
        };
        let there = match chunk.carrier {
            Carrier::Direct if self.is_text(chunk.ty) => {
                quote! { _room.text(_in[0], #count, #bound, #tail, _which)? }
            }
            Carrier::Direct => quote! { _room.list::<#element>(_in[0], #count, #bound, #tail)? },
            // The layout has nothing else for this kernel.
            Carrier::String(_) | Carrier::Behind => {
                let number = if let Carrier::String(number) = chunk.carrier { number } else { 0 };
                let number = Literal::u32_unsuffixed(number);
                let list = quote! { _room.string::<#element, #number>(#bound)? };
                if self.is_text(chunk.ty) {
                    quote! { #rt::text(#list, _which)? }
                } else {
                    list
                }
            }
        };
        let parameter = chunk.path.len() == 1 && !owned;
        let ty = self.ty(from, chunk.ty);
        match self.kind(chunk.ty) {
            Type::Array(..) if parameter => quote! { #there.first().ok_or(#rt::Malformed)? },
            Type::Array(..) => quote! { #there.first().cloned().ok_or(#rt::Malformed)? },
            _ if parameter => there,
            Type::Str { bound: None, .. } | Type::Sequence(_, None) => quote! { <#ty>::from(#there) },
            _ => quote! { <#ty>::new(#there).ok_or(#rt::Malformed)? },
        }
    }
}
