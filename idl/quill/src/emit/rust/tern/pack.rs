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
        let slots = message.slots.iter().map(|slot| {
            let value = Emitter::leaf(&slot.path);
            let (words, at) = Emitter::leaf_place(slot, "_out", "_block");
            let words = if matches!(slot.place, Place::Memory(_)) {
                quote! { #words[..] }
            } else {
                quote! { #words }
            };
            match slot.leaf {
                // As a method, so that it does not matter whether the value is there or a reference to it.
                Leaf::Value(_) => quote! { { use #rt::Piece as _; #value.put(&mut #words, #at); } },
                Leaf::Count(_) => {
                    let number = Emitter::count_type(slot);
                    quote! { #rt::Piece::put(&(#value.len() as #number), &mut #words, #at); }
                }
                Leaf::Tail(ty) => {
                    let list = self.as_list(&value, ty);
                    quote! { #rt::Piece::put(&#rt::tail(#list), &mut #words, #at); }
                }
                Leaf::Offer(_) => {
                    let offer = offer_of(&slot.path);
                    quote! { #rt::Piece::put(&#offer, &mut #words, #at); }
                }
                Leaf::Elements(ty, _) if self.is_text(ty) => {
                    quote! { #rt::put_list(#value.as_bytes(), &mut #words, #at); }
                }
                Leaf::Elements(..) => quote! { #rt::put_list(&#value, &mut #words, #at); },
            }
        });
        let streams = self.pack_streams(rt, message, failed, lies);
        let mutable = if message.slots.is_empty() && !message.long {
            quote! {}
        } else {
            quote! { mut }
        };
        let block = self.pack_block(rt, message, failed, lies);
        let words = Literal::u64_unsuffixed(Emitter::outgoing(message, false));
        let fixed = Literal::u64_unsuffixed(message.memory_bytes / 8);
        let memory = match lies {
            Lies::WithCaller if message.block_words() > 0 => quote! { let mut _block = [0; #words]; },
            Lies::WithCaller if message.long && message.chunks.is_empty() => {
                quote! { let _block: [__u64; 0] = []; }
            }
            Lies::WithServer | Lies::Nowhere if Emitter::outgoing(message, lies == Lies::Nowhere) > 0 => {
                quote! { let _block = &mut _frame.outgoing; _block[..#fixed].fill(0); }
            }
            _ => TokenStream::new(),
        };
        quote! {
            #bounds
            let #mutable _out: #rt::Words = [0; #rt::WORDS];
            #memory
            #(#slots)*
            #streams
            #block
        }
    }

    /// Statements that write what is read piece by piece behind the fixed part in memory, and leave in `_words` how many
    /// words there are then.
    pub(super) fn pack_streams(
        &self,
        rt: &TokenStream,
        message: &Message,
        failed: &TokenStream,
        lies: Lies,
    ) -> TokenStream {
        if message.streams().next().is_none() {
            return TokenStream::new();
        }
        let values = message.streams().map(|chunk| {
            let value = Emitter::leaf(&chunk.path);
            match self.kind(chunk.ty) {
                Type::Sequence(..) => quote! { #rt::put_elements(&#value, &mut _stream); },
                _ => quote! { { use #rt::Wire as _; #value.put(&mut _stream); } },
            }
        });
        let begin = Literal::u64_unsuffixed(message.memory_bytes / 8);
        let end = Literal::u64_unsuffixed((message.memory_bytes + message.stream_bytes) / 8);
        let stream = Emitter::begin_stream(rt, message, (&begin, &end), lies);
        quote! {
            #stream
            #(_stream.align(8); #values)*
            let Some(_words) = _stream.finish() else { return Err(#failed) };
            let _words = #begin + _words;
        }
    }

    /// Statements that say which lists go from where they lie, and leave dope and address in the first two words.
    pub(super) fn pack_block(
        &self,
        rt: &TokenStream,
        message: &Message,
        failed: &TokenStream,
        lies: Lies,
    ) -> TokenStream {
        if !message.long {
            return TokenStream::new();
        }
        let lists = || message.chunks.iter().filter(|chunk| chunk.element.is_some());
        let checks = lists().filter(|chunk| !self.is_array(chunk.ty)).map(|chunk| {
            let value = Emitter::leaf(&chunk.path);
            let bound = Literal::u64_unsuffixed(chunk.bound.unwrap_or(0));
            quote! { if #value.len() > #bound { return Err(#failed); } }
        });
        let list = |chunk: &Chunk| self.as_list(&Emitter::leaf(&chunk.path), chunk.ty);
        if let [chunk] = &message.chunks[..]
            && chunk.carrier == Carrier::Direct
        {
            let direct = pack_directly(rt, &list(chunk), lies);
            return quote! { #(#checks)* #direct };
        }
        let items = Emitter::pack_items(message, lies);
        let mut kept = message.block_words();
        let strings = lists().zip(0u64..).map(|(chunk, number)| {
            let list = list(chunk);
            let place = |number| Emitter::behind_words(message, number);
            let (at, next) = (place(2 * number), place(2 * number + 1));
            let address = match lies {
                _ if lies == Lies::Nowhere || message.copies => {
                    let begin = Literal::u64_unsuffixed(kept);
                    kept += chunk.bytes_max().unwrap_or(0).div_ceil(8);
                    quote! {
                        #rt::keep(#list, &mut _block[#begin..]);
                        _block[#at] = #rt::address(&_block[#begin..]);
                    }
                }
                _ => quote! { _block[#at] = #rt::address(#list); },
            };
            quote! { #address _block[#next] = #rt::string_len(#list); }
        });
        let strings: Vec<TokenStream> = strings.collect();
        let (words, count) =
            (Literal::u64_unsuffixed(message.memory_bytes / 8), parts_in_memory(rt, message));
        let count = match message.references_within() {
            0 => count,
            _ => quote! { #count + _handing.count() * #rt::ITEM },
        };
        let dope = if has_streams(message) {
            quote! { #rt::dope(_words as __u64, #count) }
        } else {
            quote! { const { #rt::dope(#words, #count) } }
        };
        quote! {
            #(#checks)*
            #(#strings)*
            #items
            _out[0] = #dope;
            _out[1] = #rt::address(&_block[..]);
        }
    }

    /// The place of a word in memory that is so many words behind those of the message, however many these are.
    pub(super) fn behind_words(message: &Message, number: u64) -> TokenStream {
        if has_streams(message) {
            let number = Literal::u64_unsuffixed(number);
            return quote! { _words + #number };
        }
        let place = Literal::u64_unsuffixed(message.memory_bytes / 8 + number);
        quote! { #place }
    }

    /// Words in which a message is made, which a server keeps for a reply: all that lies nowhere else, which is everything of an exception.
    pub(super) fn outgoing(message: &Message, everything: bool) -> u64 {
        let is_copied = everything || message.copies;
        let lists = message.chunks.iter().filter(|_| is_copied).filter_map(Chunk::bytes_max);
        lists.fold(message.block_words(), |sum, bytes| sum.saturating_add(bytes.div_ceil(8)))
    }
}
