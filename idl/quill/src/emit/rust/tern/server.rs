//! Servers: the rooms in which requests arrive, what handles each method, and what it answers.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, quote};

use super::*;

impl Emitter<'_> {
    /// The type of memory for messages of one direction.
    pub(super) fn room_items(
        &self,
        rt: &TokenStream,
        room: &Room,
        (what, ty): (&str, &Ident),
        strings: &Ident,
    ) -> TokenStream {
        if !room.needed {
            return TokenStream::new();
        }
        let words = Literal::u64_unsuffixed(room.words_bytes / 8);
        let count = Literal::usize_unsuffixed(room.capacities.len() + room.windows as usize);
        let bytes = Literal::u64_unsuffixed(room.buffers_bytes());
        let strings_items = self.strings_items(rt, room, what, strings);
        let doc = format!(" Memory for {what} that do not fit into registers.");
        quote! {
            #strings_items
            #[doc = #doc]
            pub type #ty = #rt::Room<#strings, #words, #count, #bytes>;
        }
    }

    /// How long strings may be that arrive in such memory.
    pub(super) fn strings_items(
        &self,
        rt: &TokenStream,
        room: &Room,
        what: &str,
        strings: &Ident,
    ) -> TokenStream {
        let capacities = room.capacities.iter().map(|&bytes| Literal::u64_unsuffixed(bytes));
        let doc = format!(" How long the strings of {what} may be.");
        let windows = (room.windows > 0).then(|| {
            let windows = Literal::u64_unsuffixed(room.windows);
            quote! { const WINDOWS: __usize = #windows; }
        });
        quote! {
            #[doc = #doc]
            #[derive(Clone, Copy, Debug)]
            pub struct #strings;
            impl #rt::Strings for #strings {
                const CAPACITIES: &'static [__u32] = &[#(#capacities),*];
                #windows
            }
        }
    }

    /// The body of a handler: it reads the request, calls the method, answers.
    pub(super) fn register_handle(
        &self,
        way: &dyn Way,
        interface: &InterfaceParts,
        parts: &MethodParts,
    ) -> (Handling, TokenStream) {
        let InterfaceParts { from, rt, .. } = interface;
        let MethodParts { operation, method, .. } = parts;
        let inputs = self.inputs(operation);
        let read = general::values(&inputs, &method.request);
        let given = Literal::u32_unsuffixed(method.given());
        let mut unpack = self.unpack(from, rt, &method.request, &read, false);
        unpack.extend(self.agreed(operation, false, &quote! { #rt::Malformed }));
        let offers = || method.request.offers().map(|list| offer_of(&list.path));
        let value = read.iter().map(|(n, _)| name(n)).chain(offers());
        let value = tuple(&value.collect::<Vec<_>>());
        let types = read.iter().map(|(n, ty)| self.handled(from, &method.request, n, *ty));
        let types = tuple(&types.chain(offers().map(|_| quote! { __u64 })).collect::<Vec<_>>());
        let passed = inputs.iter().map(|(n, ty)| match self.has_references(*ty) {
            true => name(n).to_token_stream(),
            false => self.argument(from, n, *ty).passed,
        });
        let passed: Vec<_> = passed.collect();
        let method_name = name(&parts.rust);
        let (read, reading) = self.register_reading(interface, method, (&types, &value, &unpack));
        let handling = way.handling(self, interface, parts);
        let Handling { bounds, parameters, answer: answer_type, words, methods, server, lent, before } =
            &handling;
        let answer = self.register_answers(way, from, rt, parts, &given);
        let failed = way.fail(rt, &quote! { #rt::Failure::Malformed });
        let Handover { found, taken, let_go } = Handover::of(rt, &method.request, &failed);
        let (offered, over) = register_offers(way, rt, &method.request);
        let body = |otherwise: TokenStream| {
            quote! {
                #words
                #found
                let _in: #rt::Words = [_w0, _w1, _w2, _w3, _w4, _w5, _w6, _w7, _w8, _w9, _w10];
                #read
                let #value = match #reading {
                    Ok(_values) => _values,
                    Err(_) => #otherwise,
                };
                #taken
                #(#offered)*
                #before
                let _result = #methods::#method_name(#server, #lent #(#passed),*);
                #(#over)*
                #answer
            }
        };
        let failed = quote! { { #let_go return #failed } };
        let handle = if plan::looks_twice(self.model, &method.request) {
            let (first, second) = (body(second_look(&method.request)), body(failed));
            quote! {
                #[inline(never)]
                extern "sysv64" fn _again<S: #bounds>(#parameters) -> #answer_type {
                    let _which = #rt::Texts::All;
                    #second
                }
                let _which = #rt::Texts::Ascii;
                #first
            }
        } else {
            let which = method.request.long.then(|| quote! { let _which = #rt::Texts::All; });
            let body = body(failed);
            quote! { #which #body }
        };
        (handling, handle)
    }

    /// What reads the values of a request, and how it is called.
    pub(super) fn register_reading(
        &self,
        interface: &InterfaceParts,
        method: &Method,
        (types, value, unpack): (&TokenStream, &TokenStream, &TokenStream),
    ) -> (TokenStream, TokenStream) {
        let rt = &interface.rt;
        if !method.request.long {
            let read = quote! {
                let _read = || -> __Result<#types, #rt::Malformed> { #unpack Ok(#value) };
            };
            return (read, quote! { _read() });
        }
        let room = self.own_name(&interface.from, "Room");
        let (parameter, argument) = Emitter::reading_arrivals(&method.request);
        let read = quote! {
            #[inline(always)]
            fn _read<'a>(
                _in: #rt::Words,
                _room: &'a mut #room,
                _which: #rt::Texts
                #parameter
            ) -> __Result<#types, #rt::Malformed> {
                #unpack
                Ok(#value)
            }
        };
        (read, quote! { _read(_in, &mut *_frame.room, _which #argument) })
    }

    /// What a handler does with the result of its method.
    pub(super) fn register_answers(
        &self,
        way: &dyn Way,
        from: &[String],
        rt: &TokenStream,
        parts: &MethodParts,
        given: &Literal,
    ) -> TokenStream {
        let MethodParts { operation, method, error, .. } = parts;
        if operation.oneway {
            let nothing = way.nothing(rt);
            return quote! { let _ = _result; #nothing };
        }
        let results = self.results(operation);
        let values: Vec<Ident> = results.iter().map(|(n, _)| name(n)).collect();
        let pattern = tuple(&values);
        let too_long = way.fail(rt, &quote! { #rt::Failure::TooLong });
        // What the server returns is checked like what it is given: a reply never breaks its own type.
        let reply = |message: &Message, values: &[(String, TypeId)], label: Option<u32>, lies: Lies| {
            let failed = quote! { () };
            let agreed = label.is_none().then(|| self.agreed(operation, true, &failed));
            let pack = self.pack(rt, message, &general::values(values, message), &failed, lies);
            let (done, answer) = packed_answer(self, rt, message, way.answer(rt, given, label), &too_long);
            let mutable = (lies.words(message) > 0).then(|| quote! { mut });
            quote! {
                let #mutable _pack = || -> __Result<#rt::Words, ()> { #agreed #pack Ok(_out) };
                match _pack() {
                    #done => { #answer }
                    Err(()) => #too_long,
                }
            }
        };
        let done = reply(&method.reply, &results, None, Lies::WithServer);
        let exceptions = self.raised(from, parts).into_iter().map(|Raised { message, fields, error }| {
            let reply = reply(message, &fields, Some(message.label), Lies::Nowhere);
            quote! { Err(#error) => { #reply } }
        });
        let failure = if operation.raises.is_empty() {
            quote! { Err(_failure) }
        } else {
            quote! { Err(#error::Failure(_failure)) }
        };
        let failed = way.fail(rt, &quote! { _failure });
        quote! {
            match _result {
                Ok(#pattern) => { #done }
                #(#exceptions)*
                #failure => #failed,
            }
        }
    }
}

/// Statements of a handler for the offers of its request: those before its method, and those behind it.
fn register_offers(
    way: &dyn Way,
    rt: &TokenStream,
    request: &Message,
) -> (Vec<TokenStream>, Vec<TokenStream>) {
    let declined = way.fail(rt, &quote! { #rt::Failure::Refused(#rt::DECLINED) });
    let offered = request.offers().map(|list| {
        let bound = Literal::u64_unsuffixed(list.bound.unwrap_or(0));
        way.take_offer(&name(&list.path.join("_")), &offer_of(&list.path), &bound, &declined)
    });
    offered.unzip()
}
