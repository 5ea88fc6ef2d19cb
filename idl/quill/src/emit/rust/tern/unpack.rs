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
        let plan = Plan::of(self.model, message);
        let memory = unpack_memory(rt, &plan);
        let fixed = plan.fixed.iter().map(|step| self.unpack_step(from, rt, step));
        let parts = plan.variable.iter().map(|part| {
            let variable = chunk_variable(part.number);
            let value = self.unpack_chunk(from, rt, part, owned || message.copies);
            quote! { let #variable = #value; }
        });
        let finish = plan.pieces().next().map(|_| quote! { _stream.finish()?; });
        let values = self.build_values(from, values, &plan, &quote! { #rt::Malformed.into() });
        quote! { #memory #(#fixed)* #(#parts)* #finish #values }
    }

    /// The statement that takes a value of the fixed part out of its place.
    fn unpack_step(&self, from: &[String], rt: &TokenStream, step: &Step) -> TokenStream {
        let (words, at) = match step.place {
            Place::Register(word, byte) => (quote! { &_in }, Literal::u32_unsuffixed(word * 8 + byte)),
            Place::Memory(at) => (quote! { _memory }, Literal::u64_unsuffixed(at)),
        };
        let mut variable = slot_variable(step.number);
        let ty = match step.what {
            What::Value => self.ty(from, step.ty),
            What::Count(_) => count_type(step).to_token_stream(),
            What::Tail(_) => quote! { __u64 },
            What::Offer(..) => {
                variable = offer_of(step.path);
                quote! { __u64 }
            }
            What::Elements(_, count) => {
                let (ty, count) = (self.ty(from, step.ty), count.map(slot_variable));
                let get = format_ident!("{}", if self.is_text(step.ty) { "get_text" } else { "get_list" });
                return quote! { let #variable: #ty = #rt::#get(#words, #at, #count)?; };
            }
        };
        quote! { let #variable = <#ty as #rt::Piece>::get(#words, #at)?; }
    }

    /// A list that lies in the room. One that is a parameter is used there; a part of one is copied, and so is what is read
    /// piece by piece.
    fn unpack_chunk(&self, from: &[String], rt: &TokenStream, part: &Variable, owned: bool) -> TokenStream {
        let ty = self.ty(from, part.chunk.ty);
        let element = match part.content {
            Content::Pieces => {
                return quote! { { _stream.align(8)?; <#ty as #rt::Wire>::get(&mut _stream)? } };
            }
            Content::Text(_) => quote! { __u8 },
            Content::List(of) => self.ty(from, of),
            Content::Array => ty.clone(),
        };
        let bound = Literal::u64_unsuffixed(part.most());
        let there = if let Some((number, _)) = part.string {
            let number = Literal::u32_unsuffixed(number);
            let list = quote! { _room.string::<#element, #number>(#bound)? };
            if matches!(part.content, Content::Text(_)) {
                quote! { #rt::text(#list, _which)? }
            } else {
                list
            }
        } else {
            let read = |step: Option<usize>, otherwise: TokenStream| {
                step.map_or(otherwise, |step| slot_variable(step).to_token_stream())
            };
            let (count, tail) = (read(part.count, quote! { 1 }), read(part.tail, quote! { 0 }));
            match part.content {
                Content::Text(_) => quote! { _room.text(_in[0], #count, #bound, #tail, _which)? },
                _ => quote! { _room.list::<#element>(_in[0], #count, #bound, #tail)? },
            }
        };
        let parameter = part.chunk.path.len() == 1 && !owned;
        match self.kind(part.chunk.ty) {
            Type::Array(..) if parameter => quote! { #there.first().ok_or(#rt::Malformed)? },
            Type::Array(..) => quote! { #there.first().cloned().ok_or(#rt::Malformed)? },
            _ if parameter => there,
            Type::Str { bound: None, .. } | Type::Sequence(_, None) => quote! { <#ty>::from(#there) },
            _ => quote! { <#ty>::new(#there).ok_or(#rt::Malformed)? },
        }
    }
}

/// Statements that find the parts of a message in memory and check how many these are.
fn unpack_memory(rt: &TokenStream, plan: &Plan) -> Option<TokenStream> {
    let block = plan.block()?;
    let (words, parts) = (Literal::u64_unsuffixed(block.fixed), described(rt, block));
    Some(if block.within > 0 {
        let strings = Literal::u64_unsuffixed(block.strings);
        quote! { let (_memory, mut _stream) = _room.streams_with(_in[0], #words, #strings, &mut _arrivals)?; }
    } else if block.pieces_end.is_some() {
        quote! { let (_memory, mut _stream) = _room.streams(_in[0], #words, #parts)?; }
    } else {
        quote! { let _memory = _room.words(_in[0], #words, #parts)?; }
    })
}
