//! How values get into a message: into words, beside them, and in pieces.

use super::*;

impl Emitter<'_> {
    /// Statements that check values and leave the words of a message in `_out`.
    pub(super) fn pack(
        &self,
        rt: &TokenStream,
        message: &Message,
        values: &[(String, TypeId)],
        failed: &TokenStream,
        lies: Lies,
    ) -> TokenStream {
        let bounds = self.all_bounds(values, failed);
        let plan = Plan::keeping(self.model, message, |_| lies.are_copied(message));
        let fixed = plan.fixed.iter().map(|step| self.pack_step(rt, step));
        let mutable = (!plan.fixed.is_empty() || plan.memory != Memory::None).then(|| quote! { mut });
        let (words, block) = (Literal::u64_unsuffixed(plan.words), plan.block());
        let memory = match lies {
            Lies::WithCaller if plan.words == 0 => block.map(|_| quote! { let _block: [__u64; 0] = []; }),
            Lies::WithCaller => Some(quote! { let mut _block = [0; #words]; }),
            Lies::WithServer | Lies::Nowhere => (plan.words > 0).then(|| {
                let fixed = Literal::u64_unsuffixed(block.map_or(0, |block| block.fixed));
                quote! { let _block = &mut _frame.outgoing; _block[..#fixed].fill(0); }
            }),
        };
        let pieces = self.pack_pieces(rt, &plan, failed, lies);
        let block = self.pack_memory(rt, &plan, failed, lies);
        quote! {
            #bounds
            let #mutable _out: #rt::Words = [0; #rt::WORDS];
            #memory
            #(#fixed)*
            #pieces
            #block
        }
    }

    /// The statement that puts a value of the fixed part into its place.
    fn pack_step(&self, rt: &TokenStream, step: &Step) -> TokenStream {
        let value = Emitter::leaf(step.path);
        let (words, at) = match step.place {
            Place::Register(word, byte) => (quote! { &mut _out }, Literal::u32_unsuffixed(word * 8 + byte)),
            Place::Memory(at) => (quote! { &mut _block[..] }, Literal::u64_unsuffixed(at)),
        };
        let piece = match step.what {
            // A method, so that it does not matter whether the value is there or a reference to it.
            What::Value => return quote! { { use #rt::Piece as _; #value.put(#words, #at); } },
            What::Elements(..) if self.is_text(step.ty) => {
                return quote! { #rt::put_list(#value.as_bytes(), #words, #at); };
            }
            What::Elements(..) => return quote! { #rt::put_list(&#value, #words, #at); },
            What::Count(_) => {
                let number = count_type(step);
                quote! { (#value.len() as #number) }
            }
            What::Tail(_) => {
                let list = self.as_list(&value, step.ty);
                quote! { #rt::tail(#list) }
            }
            What::Offer(..) => offer_of(step.path).to_token_stream(),
        };
        quote! { #rt::Piece::put(&#piece, #words, #at); }
    }

    /// Statements that write what is read piece by piece behind the fixed part in memory, and leave in `_words` how many
    /// words there are then.
    fn pack_pieces(&self, rt: &TokenStream, plan: &Plan, failed: &TokenStream, lies: Lies) -> TokenStream {
        let Some((block, end)) = plan.block().and_then(|block| Some((block, block.pieces_end?))) else {
            return TokenStream::new();
        };
        let values = plan.pieces().map(|Variable { chunk, .. }| {
            let value = Emitter::leaf(&chunk.path);
            match self.kind(chunk.ty) {
                Type::Sequence(..) => quote! { #rt::put_elements(&#value, &mut _stream); },
                _ => quote! { { use #rt::Wire as _; #value.put(&mut _stream); } },
            }
        });
        let (begin, end) = (Literal::u64_unsuffixed(block.fixed), Literal::u64_unsuffixed(end));
        let stream = Emitter::begin_stream(rt, block, (&begin, &end), lies);
        quote! {
            #stream
            #(_stream.align(8); #values)*
            let Some(_words) = _stream.finish() else { return Err(#failed) };
            let _words = #begin + _words;
        }
    }

    /// Statements that say which lists go from where they lie, and leave dope and address in the first two words.
    fn pack_memory(&self, rt: &TokenStream, plan: &Plan, failed: &TokenStream, lies: Lies) -> TokenStream {
        let checks = plan.lists().filter(|list| list.content != Content::Array).map(|list| {
            let (value, bound) = (Emitter::leaf(&list.chunk.path), Literal::u64_unsuffixed(list.most()));
            quote! { if #value.len() > #bound { return Err(#failed); } }
        });
        let lists = plan.lists().map(|list| self.pack_list(rt, list));
        let (lists, end) = match plan.memory {
            Memory::None => return TokenStream::new(),
            Memory::List => (quote! { #(#lists)* }, TokenStream::new()),
            Memory::Block(block) => {
                let (items, mut parts) = (Emitter::pack_items(plan, block, lies), described(rt, block));
                if block.within > 0 {
                    parts.extend(quote! { + _handing.count() * #rt::ITEM });
                }
                let words = Literal::u64_unsuffixed(block.fixed);
                let dope = match block.pieces_end {
                    Some(_) => quote! { #rt::dope(_words as __u64, #parts) },
                    None => quote! { const { #rt::dope(#words, #parts) } },
                };
                let end = quote! { #items _out[0] = #dope; _out[1] = #rt::address(&_block[..]); };
                (quote! { #(#lists)* }, end)
            }
        };
        quote! { #(#checks)* #lists #end }
    }

    /// Statements that describe a list: as a string, or in the first words as all that the message has in memory.
    fn pack_list(&self, rt: &TokenStream, list: &Variable) -> TokenStream {
        let elements = self.as_list(&Emitter::leaf(&list.chunk.path), list.chunk.ty);
        let (keep, lies) = match list.kept {
            Some(begin) => {
                let begin = (begin > 0).then(|| Literal::u64_unsuffixed(begin));
                (quote! { #rt::keep(#elements, &mut _block[#begin..]); }, quote! { &_block[#begin..] })
            }
            None => (TokenStream::new(), elements.clone()),
        };
        let Some((_, at)) = list.string else {
            return quote! { _out[0] = #rt::whole_words(#elements); #keep _out[1] = #rt::address(#lies); };
        };
        let (at, next) = (word(at), word(at.next()));
        quote! { #keep _block[#at] = #rt::address(#lies); _block[#next] = #rt::string_len(#elements); }
    }
}

/// The place of a word in memory.
pub(super) fn word(at: Word) -> TokenStream {
    match at {
        Word::At(place) => Literal::u64_unsuffixed(place).to_token_stream(),
        Word::Behind(words) => {
            let words = Literal::u64_unsuffixed(words);
            quote! { _words + #words }
        }
    }
}
