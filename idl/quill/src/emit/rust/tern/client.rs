//! Clients: a method packs, calls, and takes out of the reply what comes back.

use super::*;

impl Emitter<'_> {
    /// A method of the client.
    pub(super) fn register_client(
        &self,
        way: &dyn Way,
        from: &[String],
        rt: &TokenStream,
        parts: &MethodParts,
    ) -> TokenStream {
        let MethodParts { operation, method, signature, .. } = parts;
        let label = Literal::u32_unsuffixed(method.request.label);
        let failed = quote! { #rt::Failure::TooLong.into() };
        let inputs = general::values(&self.inputs(operation), &method.request);
        let agreed = self.agreed(operation, false, &failed);
        let pack = self.pack(rt, &method.request, &inputs, &failed, Lies::WithCaller);
        let words = Literal::u32_unsuffixed(method.registers());
        let pages = client_pages(self, rt, method);
        let takes = method.needs_inbox();
        let (call, send) = match () {
            () if pages.is_some() => (quote! { call_pages }, quote! { send_pages }),
            () if method.request.long => (quote! { call_long::<#words, #takes> }, quote! { send_long }),
            () => (quote! { call::<#words, #takes> }, quote! { send }),
        };
        if operation.oneway {
            return quote! {
                #[inline]
                #signature {
                    #agreed
                    #pack
                    #rt::Callee::#send(self.server, #label, _out, #pages)
                }
            };
        }
        let called = quote! { #rt::Callee::#call(self.server, #label, _out, #pages) };
        let (called, over) = self.with_offers(way, &method.request, (&pack, &called), &failed);
        let results = self.results(operation);
        let read = general::values(&results, &method.reply);
        let mut unpack = self.unpack_reply(from, rt, &method.reply, &read, false);
        let (place, short, done) = self.client_handed(rt, method, &mut unpack);
        let rax = Emitter::answer_word(rt, &method.reply);
        unpack.extend(self.agreed(operation, true, &quote! { #rt::Failure::Malformed.into() }));
        let value = tuple(&results.iter().map(|(n, _)| name(n)).collect::<Vec<_>>());
        let failure = self.client_failure(from, rt, parts);
        quote! {
            #[inline(always)]
            #signature {
                #agreed
                #place
                #called
                if #rax != <S as #rt::Callee>::#done {
                    #short
                    return #failure;
                }
                #over
                #unpack
                Ok(#value)
            }
        }
    }

    /// Statements of a client that leave the answer to a request in `_rax` and `_in`, and those that are in place when the method has succeeded.
    /// Lists that may be offered are offered, and sent if the offer is declined.
    fn with_offers(
        &self,
        way: &dyn Way,
        request: &Message,
        (pack, called): (&TokenStream, &TokenStream),
        failed: &TokenStream,
    ) -> (TokenStream, TokenStream) {
        let lists: Vec<&Chunk> = request.offers().collect();
        let numbers: Vec<Ident> = lists.iter().map(|list| offer_of(&list.path)).collect();
        let offered = |list: &&Chunk| way.offer(&name(&list.path.join("_")));
        let offers: Vec<TokenStream> = lists.iter().filter_map(offered).collect();
        if offers.is_empty() {
            let none = quote! { #(let #numbers: __u64 = 0;)* };
            return (quote! { #none #pack let (_rax, _in) = #called; }, TokenStream::new());
        }
        let params: Vec<Ident> = lists.iter().map(|list| name(&list.path.join("_"))).collect();
        let bounds = lists.iter().map(|list| Literal::u64_unsuffixed(list.bound.unwrap_or(0)));
        let held: Vec<Ident> = numbers.iter().map(|number| format_ident!("_made{number}")).collect();
        let call = quote! {
            #(if #params.len() > #bounds { return Err(#failed); })*
            #(let mut #held = #offers;)*
            let (_rax, _in) = loop {
                #(let (#numbers, #params) = (#held.number(), #held.sent(#params));)*
                #pack
                let (_rax, _in) = #called;
                if !(false #(| #held.is_declined::<S>(_rax))*) {
                    break (_rax, _in);
                }
            };
        };
        (call, quote! { #(#held.is_over();)* })
    }

    /// Statements of a client for what a reply hands over: a place for it, what is done if that has not come, and the name of `rax` if it
    /// has. What finds it is behind `unpack`.
    pub(super) fn client_handed(
        &self,
        rt: &TokenStream,
        method: &Method,
        unpack: &mut TokenStream,
    ) -> (TokenStream, TokenStream, TokenStream) {
        let none = TokenStream::new;
        let Some(handed) = method.reply.pages.as_ref().filter(|_| !method.reply.long) else {
            let done = if method.reply.long {
                quote! { LONG_DONE }
            } else {
                quote! { DONE }
            };
            return (Emitter::arrivals(rt, method).unwrap_or_default(), none(), done);
        };
        let given = name(&handed.param);
        let short = quote! { if #rt::came_short::<S>(_rax) { return Err(#rt::Failure::PagesShort.into()); } };
        let is_owned = self.is_owned_reference(handed.ty);
        unpack.extend(match is_owned {
            true => quote! { let #given = _place.into_reference(_in[7]); },
            false => quote! { let #given = #rt::Fpage(_in[6]); },
        });
        let place = is_owned.then(|| {
            quote! { let _place = ::rt::door::Room::new().map_err(#rt::Failure::Kernel)?; }
        });
        (place.unwrap_or_default(), short, quote! { PAGES_DONE })
    }

    /// The word of an answer that says what it is, whether or not references have come with it if they may.
    fn answer_word(rt: &TokenStream, reply: &Message) -> TokenStream {
        match reply.hands_from_memory() {
            true => quote! { #rt::apart_from_items(_rax) },
            false => quote! { _rax },
        }
    }

    /// The result of a client's method for a reply that is no success.
    pub(super) fn client_failure(
        &self,
        from: &[String],
        rt: &TokenStream,
        parts: &MethodParts,
    ) -> TokenStream {
        let MethodParts { operation, method, .. } = parts;
        if operation.raises.is_empty() {
            return quote! { Err(#rt::failure::<S>(_rax)) };
        }
        let long = method.exceptions.iter().any(|(_, message)| message.long);
        let arms = self.raised(from, parts).into_iter().map(|Raised { message, fields, error }| {
            let (label, in_memory) = (message.label, message.long);
            let label = if long {
                quote! { (#label, #in_memory) }
            } else {
                quote! { #label }
            };
            let fields = general::values(&fields, message);
            let unpack = self.unpack_reply(from, rt, message, &fields, true);
            quote! { #label => { #unpack Err(#error) } }
        });
        if long {
            let handing = method.exceptions.iter().find(|(_, message)| message.hands_from_memory());
            let rax = handing.map_or_else(|| quote! { _rax }, |(_, it)| Emitter::answer_word(rt, it));
            quote! {
                match #rt::reply_of::<S>(#rax)? {
                    #(#arms)*
                    (_label, false) => Err(#rt::Failure::Refused(_label).into()),
                    _ => Err(#rt::Failure::Malformed.into()),
                }
            }
        } else {
            quote! {
                match #rt::label_of::<S>(_rax)? {
                    #(#arms)*
                    _label => Err(#rt::Failure::Refused(_label).into()),
                }
            }
        }
    }

    /// Statements that read a reply, where it has arrived. What is `owned` is copied out of the inbox.
    pub(super) fn unpack_reply(
        &self,
        from: &[String],
        rt: &TokenStream,
        reply: &Message,
        results: &[(String, TypeId)],
        owned: bool,
    ) -> TokenStream {
        let unpack = self.unpack(from, rt, reply, results, owned);
        let room = reply.long.then(|| {
            quote! {
                let _room = _inbox.arrived(_in[1])?;
                let _which = #rt::Texts::Once;
            }
        });
        let (came, taken) = self.arrived(reply);
        quote! { #room #came #unpack #taken }
    }
}
