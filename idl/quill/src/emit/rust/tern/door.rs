//! Through doors: each object has a door, calls begin with it on whatever thread serves, several at a time. So a server's methods have
//! a shared reference, and a client that holds a reference to an object is itself something that has the object's methods.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::super::{Emitter, InterfaceParts, MethodParts, Side, name, selftest, tuple};
use super::{Handling, Stands, Way};

/// Calls to objects.
#[derive(Debug)]
pub struct Door;

/// Words of a request that a handler gets as arguments.
const ARGUMENTS: u32 = 4;

/// Whether a method's words go past the registers of a function, so that it has a frame.
fn has_frame(parts: &MethodParts) -> bool {
    let request = &parts.method.request;
    request.long || request.registers > ARGUMENTS || parts.given() > 1 || parts.outgoing() > 0
}

/// What can be behind a door.
fn bounds(interface: &InterfaceParts) -> TokenStream {
    let server_trait = &interface.server_trait;
    quote! { #server_trait + ::core::marker::Send + ::core::marker::Sync + 'static }
}

impl Way for Door {
    fn callee(&self, rt: &TokenStream) -> (TokenStream, &'static str) {
        (
            quote! { #rt::Door },
            " The identifier of the object's door; or a thread that serves the same interface by ipc.",
        )
    }

    fn receiver(&self, lifetime: Option<TokenStream>) -> TokenStream {
        match lifetime {
            Some(lifetime) => quote! { &#lifetime self },
            None => quote! { &self },
        }
    }

    /// Nobody knows who calls, and nothing but calls comes.
    fn server_extras(&self, _: &TokenStream) -> TokenStream {
        TokenStream::new()
    }

    fn server(&self, emitter: &Emitter, interface: &InterfaceParts) -> Vec<TokenStream> {
        let mut items = emitter.door_server(self, interface);
        items.extend(emitter.client_as_server(interface));
        items.push(emitter.watched(interface));
        items
    }

    fn handling(&self, emitter: &Emitter, interface: &InterfaceParts, parts: &MethodParts) -> Handling {
        let InterfaceParts { from, rt, .. } = interface;
        let object = emitter.own_name(from, "Object");
        let frame = emitter.door_frame(interface, parts);
        let words = if has_frame(parts) {
            quote! { let [_, _, _, _, _w4, _w5, _w6, _w7, _w8, _w9, _w10] = _frame.words; }
        } else {
            quote! { let [_w4, _w5, _w6, _w7, _w8, _w9, _w10] = [0; #rt::WORDS - 4]; }
        };
        Handling {
            bounds: bounds(interface),
            parameters: quote! {
                _w0: __u64,
                _w1: __u64,
                _rdx: &#rt::door::Behind<#object<S>>,
                _frame: &mut #frame,
                _w2: __u64,
                _w3: __u64,
            },
            answer: quote! { #rt::door::Answer },
            words,
            server: quote! { &_rdx.object.0 },
            before: TokenStream::new(),
        }
    }

    fn answer(&self, rt: &TokenStream, given: &Literal, label: Option<u32>) -> TokenStream {
        match label {
            None => quote! { #rt::door::Answer::done::<#given>(_frame, &_out) },
            Some(label) => quote! { #rt::door::Answer::label::<#given>(_frame, &_out, #label) },
        }
    }

    fn nothing(&self, rt: &TokenStream) -> TokenStream {
        quote! { #rt::door::Answer::done::<0>(_frame, &[0; #rt::WORDS]) }
    }

    fn fail(&self, rt: &TokenStream, failure: &TokenStream) -> TokenStream {
        quote! { #rt::door::fail(_frame, #failure) }
    }

    fn selftest(&self) -> &'static dyn selftest::SelfTest {
        &selftest::TernDoor
    }
}

impl Emitter<'_> {
    /// What a handler keeps on the stack.
    fn door_frame(&self, interface: &InterfaceParts, parts: &MethodParts) -> TokenStream {
        let InterfaceParts { from, rt, .. } = interface;
        if !has_frame(parts) {
            return quote! { #rt::door::NoFrame };
        }
        let room = if parts.method.request.long {
            let room = self.own_name(from, "Room");
            quote! { #rt::door::Place<#room> }
        } else {
            quote! { () }
        };
        let outgoing = Literal::u64_unsuffixed(parts.outgoing());
        quote! { #rt::door::Frame<#room, [__u64; #outgoing]> }
    }

    /// The handlers, the table, and the object that has it.
    fn door_server(&self, way: &dyn Way, interface: &InterfaceParts) -> Vec<TokenStream> {
        let InterfaceParts { from, rt, methods, .. } = interface;
        let (object, handler) = (self.own_name(from, "Object"), self.own_name(from, "Method"));
        let bounds = bounds(interface);
        let (places, bits) = Emitter::places(interface);
        let places = places.iter().map(|stands| match stands {
            Stands::Method(number) => quote! { #rt::door::method::<#handler<S, #number>>() },
            Stands::Mismatch => quote! { #rt::door::method::<#rt::door::Mismatch<#object<S>>>() },
            Stands::Nothing => quote! { #rt::door::method::<#rt::door::NoMethod<#object<S>>>() },
        });
        let shift = 64 - bits;
        let length = Literal::usize_unsuffixed(places.len());
        let (room_items, room) = self.door_room(interface);
        let mut items = vec![
            room_items,
            quote! {
                /// An object behind a door: whatever has the interface's methods.
                #[derive(Debug)]
                pub struct #object<S>(pub S);
            },
            quote! {
                impl<S: #bounds> #rt::door::Object for #object<S> {
                    type Table = [#rt::door::Entry; #length];
                    const TABLE: &'static [#rt::door::Entry; #length] = &[#(#places),*];
                    const SHIFT: __u32 = #shift;
                    const ROOM: __Option<&'static [__u32]> = #room;
                }
            },
            quote! { struct #handler<S, const NUMBER: __u32>(::core::marker::PhantomData<S>); },
        ];
        for (number, parts) in methods.iter().enumerate() {
            let number = number as u32;
            let (Handling { parameters, answer, .. }, handle) = self.register_handle(way, interface, parts);
            let taken = Literal::u32_unsuffixed(parts.method.request.registers);
            let given = Literal::u32_unsuffixed(parts.given());
            let long = parts.method.request.long;
            let frame = self.door_frame(interface, parts);
            items.push(quote! {
                impl<S: #bounds> #rt::door::Handler for #handler<S, #number> {
                    type Object = #object<S>;
                    const IN: __usize = #taken;
                    const OUT: __usize = #given;
                    const LONG: __bool = #long;
                    type Frame = #frame;
                    extern "sysv64" fn handle(#parameters) -> #answer { #handle }
                }
            });
        }
        items
    }

    /// The type of memory for requests, and the bounds of strings in it.
    fn door_room(&self, interface: &InterfaceParts) -> (TokenStream, TokenStream) {
        let InterfaceParts { from, rt, room, .. } = interface;
        if !room.needed {
            return (TokenStream::new(), quote! { None });
        }
        let (ty, strings) = (self.own_name(from, "Room"), self.own_name(from, "Strings"));
        let strings_items = self.strings_items(rt, room, "requests", &strings);
        let items = quote! {
            #strings_items
            /// Memory for requests that do not fit into registers.
            type #ty = #rt::door::Room<#strings>;
        };
        (items, quote! { Some(<#strings as #rt::Strings>::CAPACITIES) })
    }

    /// Whoever refers to an object can be used, and served, like the object; unless its replies need an inbox.
    fn client_as_server(&self, interface: &InterfaceParts) -> Option<TokenStream> {
        let InterfaceParts { from, rt, server_trait, client_struct, methods, .. } = interface;
        if methods.iter().any(|parts| parts.method.replies().any(|reply| reply.long)) {
            return None;
        }
        let methods = methods.iter().map(|MethodParts { operation, method, rust, error, .. }| {
            let signature = self.signature(from, (operation, method), rust, error, Side::Server);
            let (method, inputs) = (name(rust), self.inputs(operation));
            let arguments = inputs.iter().map(|(n, _)| name(n));
            quote! { #[inline(always)] #signature { #client_struct::#method(self, #(#arguments),*) } }
        });
        Some(quote! { impl<S: #rt::Callee> #server_trait for #client_struct<S> { #(#methods)* } })
    }

    /// An object before which somebody stands who hears of each call.
    fn watched(&self, interface: &InterfaceParts) -> TokenStream {
        let InterfaceParts { from, rt, server_trait, methods, .. } = interface;
        let watched = self.own_name(from, "Watched");
        let path = from.join("::");
        let methods = methods.iter().map(|MethodParts { operation, method, rust, error, .. }| {
            let signature = self.signature(from, (operation, method), rust, error, Side::Server);
            let (ident, inputs, called) = (name(rust), self.inputs(operation), &operation.name);
            let values: Vec<_> = inputs.iter().map(|(n, _)| name(n)).collect();
            let names = inputs.iter().map(|(n, _)| n);
            let outputs = self.results(operation);
            let results: Vec<_> = outputs.iter().map(|(n, _)| name(n)).collect();
            let given = outputs.iter().map(|(n, _)| n.trim_start_matches('_'));
            let pattern = tuple(&results);
            quote! {
                #signature {
                    let _called = #rt::Called { interface: #path, method: #called };
                    let _note = self.watch.begins(_called, &[#((#names, &#values)),*])?;
                    let _result = #server_trait::#ident(&self.server, #(#values),*);
                    match &_result {
                        Ok(#pattern) => self.watch.ended(_called, _note, Ok(&[#((#given, #results)),*])),
                        Err(_error) => self.watch.ended(_called, _note, Err(_error)),
                    }
                    _result
                }
            }
        });
        quote! {
            /// Whatever has the interface's methods, and somebody who hears of each call.
            #[derive(Clone, Copy, Debug)]
            pub struct #watched<S, W> {
                /// Who is called.
                pub server: S,
                /// Who hears of it.
                pub watch: W,
            }
            impl<S: #server_trait, W: #rt::Watch> #server_trait for #watched<S, W> { #(#methods)* }
        }
    }
}
