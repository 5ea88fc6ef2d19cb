//! By ipc: a server is a thread that answers and waits in one system call. Its data and what it receives into lie in a frame at its
//! stack pointer.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::super::{Emitter, InterfaceParts, MethodParts, selftest};
use super::{Handling, Way};
use crate::kernel::table_bits;
use crate::model::InterfaceId;
use crate::plan::{self, Stands};

/// Calls to threads.
#[derive(Debug)]
pub struct Ipc;

impl Way for Ipc {
    fn callee(&self, rt: &TokenStream) -> (TokenStream, &'static str) {
        (quote! { #rt::Uid }, " The thread that serves; or one with how long to wait for it.")
    }

    fn receiver(&self, lifetime: Option<TokenStream>) -> TokenStream {
        match lifetime {
            Some(lifetime) => quote! { &#lifetime mut self },
            None => quote! { &mut self },
        }
    }

    fn reference(&self, _: &Emitter, _: &[String], _: Option<InterfaceId>) -> Option<TokenStream> {
        None
    }

    fn server_extras(&self, rt: &TokenStream) -> TokenStream {
        quote! {
            /// Hears who calls, before each method.
            #[inline(always)]
            fn caller(&mut self, _from: #rt::Uid) {}
            /// Answers a message that is no request of the interface's: a fault, an interrupt, one with pages that nobody asked for.
            fn other(&mut self, _message: &#rt::Message) -> __Option<#rt::Reply> {
                #rt::decline(_message)
            }
        }
    }

    fn methods(&self) -> &'static [&'static str] {
        &["caller", "other"]
    }

    fn server(&self, emitter: &Emitter, interface: &InterfaceParts) -> Vec<TokenStream> {
        let mut items = Vec::new();
        if !interface.hands_pages() {
            items = emitter.ipc_server(self, interface);
        }
        items.extend(emitter.general(interface));
        items
    }

    fn handling(&self, emitter: &Emitter, interface: &InterfaceParts, _: &MethodParts) -> Handling {
        let InterfaceParts { from, rt, server_trait, .. } = interface;
        let table = emitter.own_name(from, "Table");
        Handling {
            bounds: quote! { #server_trait },
            parameters: quote! {
                _w0: __u64,
                _w1: __u64,
                _rdx: __u64,
                _frame: &mut #rt::Frame<#table<S>>,
                _w2: __u64,
                _w3: __u64,
            },
            answer: quote! { #rt::Answer },
            words: quote! { let [_, _, _, _, _w4, _w5, _w6, _w7, _w8, _w9, _w10] = _frame.words; },
            server: quote! { _frame.server },
            methods: server_trait.clone(),
            lent: TokenStream::new(),
            before: quote! { #server_trait::caller(_frame.server, #rt::Uid(_rdx)); },
        }
    }

    fn answer(&self, rt: &TokenStream, given: &Literal, label: Option<u32>) -> TokenStream {
        let answer = match label {
            None => quote! { done(_rdx) },
            Some(label) => quote! { label(_rdx, #label) },
        };
        quote! { #rt::store::<_, #given>(_frame, &_out); #rt::Answer::#answer }
    }

    fn nothing(&self, rt: &TokenStream) -> TokenStream {
        quote! { #rt::Answer::done(0) }
    }

    fn fail(&self, rt: &TokenStream, failure: &TokenStream) -> TokenStream {
        quote! { #rt::fail(_frame, _rdx, #failure) }
    }

    /// Threads that serve by ipc take none.
    fn offer(&self, _: &Ident) -> Option<TokenStream> {
        None
    }

    fn take_offer(
        &self,
        _: &Ident,
        offer: &Ident,
        _: &Literal,
        declined: &TokenStream,
    ) -> (TokenStream, TokenStream) {
        (quote! { if #offer != 0 { return #declined; } }, TokenStream::new())
    }

    fn selftest(&self) -> &'static dyn selftest::SelfTest {
        &selftest::TernIpc
    }
}

impl Emitter<'_> {
    /// The handlers, the table, and `serve`.
    fn ipc_server(&self, way: &dyn Way, interface: &InterfaceParts) -> Vec<TokenStream> {
        let InterfaceParts { from, rt, server_trait, methods, .. } = interface;
        let (table, handler) = (self.own_name(from, "Table"), self.own_name(from, "Method"));
        let bits = table_bits(methods.len());
        let layout = interface.layout;
        let all = plan::kinds(layout).flat_map(|kind| plan::places(&layout.methods, kind, bits, Some));
        let places = all.map(|stands| match stands {
            Stands::Method(number) => quote! { #rt::entry::<#handler<S, #number>>() },
            Stands::Mismatch => quote! { #rt::entry::<#rt::Mismatch<#table<S>>>() },
            Stands::Nothing => quote! { #rt::entry::<#rt::NoMethod<#table<S>>>() },
        });
        let places: Vec<TokenStream> = places.collect();
        let (shift, room) = (64 - bits, &interface.room);
        let length = Literal::usize_unsuffixed(places.len());
        let room_type = self.own_name(from, "Room");
        let room_items = self.room_items(rt, room, ("requests", &room_type), &self.own_name(from, "Strings"));
        let outgoing = methods.iter().map(MethodParts::outgoing).max().unwrap_or(0);
        let outgoing = Literal::u64_unsuffixed(outgoing);
        let serve_function = self.serve(interface, &table, &room_type);
        let room_type = if room.needed {
            quote! { #room_type }
        } else {
            quote! { #rt::NoRoom }
        };
        let mut items = vec![
            room_items,
            quote! {
                /// Where the code of each method begins, by the first bits of a request's label.
                #[derive(Debug)]
                pub struct #table<S>(::core::marker::PhantomData<S>);
            },
            quote! {
                impl<S: #server_trait> #table<S> {
                    /// The places. Those without a method refuse.
                    pub const PLACES: [#rt::Entry; #length] = [#(#places),*];
                }
            },
            quote! {
                impl<S: #server_trait> #rt::Loop for #table<S> {
                    type Server = S;
                    type Table = [#rt::Entry; #length];
                    type Room = #room_type;
                    type Outgoing = [__u64; #outgoing];
                    const OUTGOING: [__u64; #outgoing] = [0; #outgoing];
                    const SHIFT: __u32 = #shift;
                    fn other(_server: &mut S, _message: &#rt::Message) -> __Option<#rt::Reply> {
                        #server_trait::other(_server, _message)
                    }
                }
            },
            serve_function,
            quote! { struct #handler<S, const NUMBER: __u32>(::core::marker::PhantomData<S>); },
        ];
        items.extend(methods.iter().zip(0u32..).map(|(method, number)| {
            let handle = self.ipc_handle(way, interface, method, &table);
            quote! { impl<S: #server_trait> #rt::Handler for #handler<S, #number> { #handle } }
        }));
        items
    }

    /// The function that answers requests.
    fn serve(&self, interface: &InterfaceParts, table: &Ident, room: &Ident) -> TokenStream {
        let InterfaceParts { from, rt, server_trait, .. } = interface;
        let serve = self.own_name(from, "serve");
        if interface.room.needed {
            quote! {
                /// Answers requests, forever; returns only if the kernel does not accept the room.
                pub fn #serve<S: #server_trait>(_server: &mut S, _room: &mut #room) -> #rt::Failure {
                    #rt::serve_in::<#table<S>>(_server, _room, &#table::<S>::PLACES)
                }
            }
        } else {
            quote! {
                /// Answers requests, forever.
                pub fn #serve<S: #server_trait>(_server: &mut S) -> ! {
                    #rt::serve::<#table<S>>(_server, &#table::<S>::PLACES)
                }
            }
        }
    }

    /// The items of the handler of a method.
    fn ipc_handle(
        &self,
        way: &dyn Way,
        interface: &InterfaceParts,
        parts: &MethodParts,
        table: &Ident,
    ) -> TokenStream {
        let (Handling { parameters, answer, .. }, handle) = self.register_handle(way, interface, parts);
        let taken = Literal::u32_unsuffixed(parts.method.request.registers);
        let given = Literal::u32_unsuffixed(parts.method.given());
        quote! {
            type Loop = #table<S>;
            const IN: __usize = #taken;
            const OUT: __usize = #given;
            extern "sysv64" fn handle(#parameters) -> #answer { #handle }
        }
    }
}
