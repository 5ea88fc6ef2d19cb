//! Through doors: each object has a door, calls begin with it on whatever thread serves, several at a time. So a server's methods have
//! a shared reference, and a client that holds a reference to an object is itself something that has the object's methods.
//!
//! But where replies have a part in memory, a client's results lie in an inbox, and a server's have to lie somewhere until the return, which
//! does not come back. So what is behind a door has the methods with a further parameter, something of the thread that serves: that is
//! a trait of its own, `Relay`. Whatever is a `Server` is one, and never looks at that parameter; a client puts its inbox there.

use std::collections::HashSet;

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::super::{Emitter, InterfaceParts, MethodParts, Side, name, selftest, tuple};
use super::{Handling, Way, has_memory, is_in_room};
use crate::kernel::{KernelPart, TernDoor, table_bits};
use crate::layout::{Handed, Method, interface_id};
use crate::model::{InterfaceId, Type, TypeId};
use crate::plan::{self, Kind, Stands};

/// Calls to objects.
#[derive(Debug)]
pub struct Door;

/// Words of a request that a handler gets as arguments.
const ARGUMENTS: u32 = 4;

/// Whether a method's words go past the registers of a function, so that it has a frame.
fn has_frame(parts: &MethodParts) -> bool {
    let (request, given) = (&parts.method.request, parts.method.given());
    request.long || request.words() > ARGUMENTS || given > 1 || parts.outgoing() > 0
}

/// Whether results may lie where they have to stay for a while.
fn has_relay(interface: &InterfaceParts) -> bool {
    interface.methods.iter().any(|parts| parts.method.needs_inbox())
}

/// What an interface is called among objects.
fn id(interface: &str) -> Literal {
    Literal::u64_unsuffixed(interface_id(interface))
}

/// The refusal in a place of the table for a kind that has no method there.
fn refusal(stands: Stands, kind: Kind) -> TokenStream {
    match (stands, kind) {
        (Stands::Mismatch, Kind::LONG_ITEM) => quote! { MismatchOfLongItem },
        (Stands::Mismatch, Kind::ITEM) => quote! { MismatchOfItem },
        (Stands::Mismatch, _) => quote! { Mismatch },
        (_, Kind::LONG_ITEM) => quote! { NoMethodForLongItem },
        (_, Kind::ITEM) => quote! { NoMethodForItem },
        _ => quote! { NoMethod },
    }
}

/// The places of the table for requests of a kind. An object and its handlers have these names.
fn door_places(
    interface: &InterfaceParts,
    kind: Kind,
    bits: u32,
    (object, handler): (&Ident, &Ident),
) -> Vec<TokenStream> {
    let rt = &interface.rt;
    let layout = interface.layout;
    let all = plan::places(&layout.methods, kind, bits, |number| layout.method_at(number));
    let place = |stands| {
        let handler = match stands {
            Stands::Method(number) => quote! { #handler<S, #number> },
            _ => {
                let refusal = refusal(stands, kind);
                quote! { #rt::door::#refusal<#object<S>> }
            }
        };
        quote! { #rt::door::method::<#handler>() }
    };
    all.map(place).collect()
}

/// How many windows a server has for references, if a message brings several: those of an answer leave from there.
fn windows(interface: &InterfaceParts) -> Option<TokenStream> {
    let windows = interface.layout.windows();
    let count = Literal::u64_unsuffixed(windows);
    (windows > 1).then(|| quote! { const WINDOWS: __usize = #count; })
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

    /// The client of the object, with an identifier that is given back in the end.
    fn reference(&self, emitter: &Emitter, from: &[String], to: Option<InterfaceId>) -> Option<TokenStream> {
        let rt = emitter.runtime(from);
        // Of an interface of another file, or of one that is not called by messages, nothing is known here.
        let known = to.map(|to| &emitter.model.interfaces[to.0 as usize]);
        let Some(known) = known.filter(|to| to.defined && !to.imported && !to.local) else {
            return Some(quote! { ::rt::door::Reference<#rt::Anything> });
        };
        let interface = &known.name;
        let modules: Vec<String> = interface.split("::").map(str::to_owned).collect();
        let client = emitter.own_name(&modules, "Client");
        let client = emitter.path(from, &format!("{interface}::{client}"));
        Some(quote! { ::rt::door::Reference<#client<#rt::View>> })
    }

    /// Nobody knows who calls, and nothing but calls comes.
    fn server_extras(&self, _: &TokenStream) -> TokenStream {
        TokenStream::new()
    }

    fn methods(&self) -> &'static [&'static str] {
        &[]
    }

    fn server(&self, emitter: &Emitter, interface: &InterfaceParts) -> Vec<TokenStream> {
        let mut items = emitter.door_server(self, interface);
        items.extend(emitter.relay(interface));
        if emitter.can_hand_on(interface) {
            items.push(emitter.client_as_object(interface));
        }
        items.push(emitter.watched(interface));
        items.push(emitter.interface_of_objects(interface));
        items
    }

    fn handling(&self, emitter: &Emitter, interface: &InterfaceParts, parts: &MethodParts) -> Handling {
        let InterfaceParts { from, rt, .. } = interface;
        let object = emitter.own_name(from, "Object");
        let frame = emitter.door_frame(interface, parts);
        let words = if has_frame(parts) {
            // Dope of what the thread has to let go of, if a reply does not arrive.
            let nothing = parts.method.replies_from_memory().then(|| quote! { _frame.words[0] = 0; });
            quote! { let [_, _, _, _, _w4, _w5, _w6, _w7, _w8, _w9, _w10] = _frame.words; #nothing }
        } else {
            quote! { let [_w4, _w5, _w6, _w7, _w8, _w9, _w10] = [0; #rt::WORDS - 4]; }
        };
        let (lent, before) = if parts.method.needs_inbox() {
            (
                quote! { &mut _hold, },
                quote! { let mut _hold = #rt::Hold::new(&mut _frame.turn, ::rt::door::memory); },
            )
        } else {
            Default::default()
        };
        Handling {
            bounds: emitter.behind_doors(interface),
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
            methods: emitter.objects_trait(interface),
            server: quote! { &_rdx.object.0 },
            lent,
            before,
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

    fn offer(&self, list: &Ident) -> Option<TokenStream> {
        Some(quote! { ::rt::offer::Offer::new::<S>(#list) })
    }

    fn take_offer(
        &self,
        list: &Ident,
        offer: &Ident,
        bound: &Literal,
        declined: &TokenStream,
    ) -> (TokenStream, TokenStream) {
        let taken = quote! {
            let Some(#offer) = ::rt::offer::Taken::new(#offer, #list, #bound) else { return #declined };
            let #list: &[__u8] = &#offer;
        };
        (taken, quote! { ::core::mem::drop(#offer); })
    }

    fn selftest(&self) -> &'static dyn selftest::SelfTest {
        &selftest::TernDoor
    }
}

impl Emitter<'_> {
    /// The trait of what can be behind a door.
    fn objects_trait(&self, interface: &InterfaceParts) -> Ident {
        if has_relay(interface) {
            self.own_name(&interface.from, "Relay")
        } else {
            interface.server_trait.clone()
        }
    }

    /// What can be behind a door.
    fn behind_doors(&self, interface: &InterfaceParts) -> TokenStream {
        let has_methods = self.objects_trait(interface);
        quote! { #has_methods + ::core::marker::Send + ::core::marker::Sync + 'static }
    }

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
        let bounds = self.behind_doors(interface);
        // The last place is kept for a question that each object answers.
        let layout = interface.layout;
        let bits = table_bits(layout.numbers_end() as usize + 1);
        let kinds: Vec<Kind> = plan::kinds(layout).collect();
        let places = |kind: &Kind| door_places(interface, *kind, bits, (&object, &handler));
        let mut table: Vec<TokenStream> = kinds.iter().flat_map(places).collect();
        table[(1 << bits) - 1] = quote! { #rt::door::method::<#rt::narrow::Narrow<#object<S>>>() };
        let (takes, takes_long) = (kinds.contains(&Kind::ITEM), kinds.contains(&Kind::LONG_ITEM));
        let windows = windows(interface);
        let shift = 64 - bits;
        let length = Literal::usize_unsuffixed(table.len());
        let views = layout.views.iter().map(|view| {
            let id = id(&self.model.interfaces[view.interface.0 as usize].name);
            let first = Literal::u32_unsuffixed(TernDoor.request_label(view.first, 0));
            quote! { (#id, #first) }
        });
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
                    const TABLE: &'static [#rt::door::Entry; #length] = &[#(#table),*];
                    const SHIFT: __u32 = #shift;
                    const ROOM: __Option<&'static [__u32]> = #room;
                    const ITEMS: __bool = #takes;
                    const LONG_ITEMS: __bool = #takes_long;
                    #windows
                    const VIEWS: &'static [(__u64, __u32)] = &[#(#views),*];
                }
            },
            quote! { struct #handler<S, const NUMBER: __u32>(::core::marker::PhantomData<S>); },
        ];
        items.extend(methods.iter().zip(0u32..).map(|(parts, number)| {
            let handle = self.door_handle(way, interface, parts, &object);
            quote! { impl<S: #bounds> #rt::door::Handler for #handler<S, #number> { #handle } }
        }));
        items
    }

    /// The items of the handler of a method.
    fn door_handle(
        &self,
        way: &dyn Way,
        interface: &InterfaceParts,
        parts: &MethodParts,
        object: &Ident,
    ) -> TokenStream {
        let (Handling { parameters, answer, .. }, handle) = self.register_handle(way, interface, parts);
        let taken = Literal::u32_unsuffixed(parts.method.request.words());
        let given = Literal::u32_unsuffixed(parts.method.given());
        let (long, grants) = (parts.method.request.long, self.gives_reference(parts.method));
        let grants_many = parts.method.replies_from_memory().then(|| {
            quote! { const GRANTS_MANY: __bool = true; }
        });
        let frame = self.door_frame(interface, parts);
        quote! {
            type Object = #object<S>;
            const IN: __usize = #taken;
            const OUT: __usize = #given;
            const LONG: __bool = #long;
            const GRANTS: __bool = #grants;
            #grants_many
            type Frame = #frame;
            extern "sysv64" fn handle(#parameters) -> #answer { #handle }
        }
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

    /// A method of the trait of what can be behind a door.
    fn relay_signature(&self, interface: &InterfaceParts, parts: &MethodParts) -> TokenStream {
        let InterfaceParts { from, rt, .. } = interface;
        let MethodParts { operation, method, rust, error, .. } = parts;
        if !method.needs_inbox() {
            return self.signature(from, (operation, method), rust, error, Side::Server);
        }
        let replies = self.own_name(from, "Replies");
        let hold = quote! { &'a self, _hold: &'a mut #rt::Hold<'a, #replies> };
        self.signature_with((quote! { <'a> }, hold), from, (operation, method), rust, error, Side::Server)
    }

    /// What can be behind a door, if that is more than servers.
    fn relay(&self, interface: &InterfaceParts) -> Vec<TokenStream> {
        if !has_relay(interface) {
            return Vec::new();
        }
        let (relay, server_trait) = (self.objects_trait(interface), &interface.server_trait);
        let methods = interface.methods.iter().map(|parts| (parts, self.relay_signature(interface, parts)));
        let declared = methods.clone().map(|(parts, signature)| {
            let doc = format!(" The operation `{}`.", parts.operation.name);
            quote! { #[doc = #doc] #signature; }
        });
        let served = methods.map(|(parts, signature)| {
            let (method, inputs) = (name(&parts.rust), self.inputs(parts.operation));
            let arguments = inputs.iter().map(|(n, _)| name(n));
            quote! { #[inline(always)] #signature { #server_trait::#method(self, #(#arguments),*) } }
        });
        vec![
            quote! {
                /// What can be behind a door: a server; or one whose answers lie nowhere until they have left, since its state is behind a
                /// lock, or since it hands on what the object of another door answers. These are kept in the `Hold` of the calling thread.
                pub trait #relay { #(#declared)* }
            },
            quote! { impl<S: #server_trait> #relay for S { #(#served)* } },
        ]
    }

    /// Whether a reply brings a reference to an object beside words in registers.
    fn gives_reference(&self, method: &Method) -> bool {
        let handed = method.reply.pages.as_ref().filter(|_| !method.reply.long);
        handed.is_some_and(|handed| self.is_owned_reference(handed.ty))
    }

    /// Whether who stands between a client and an object can hand on what that answers: memory of a thread is used again and nobody
    /// gives back what lies on the heap; and pages would need a window there.
    pub(in crate::emit::rust) fn can_hand_on(&self, interface: &InterfaceParts) -> bool {
        let kept = |parts: &MethodParts| {
            let reply = &parts.method.reply;
            let results = self.results(parts.operation);
            let kept = results.iter().filter(|(n, _)| has_memory(reply, n) && !is_in_room(reply, n));
            kept.map(|(_, ty)| *ty).collect::<Vec<_>>()
        };
        let is_page = |handed: &Handed| !self.is_owned_reference(handed.ty);
        let has_pages = |parts: &MethodParts| parts.method.reply.pages.as_ref().is_some_and(is_page);
        !interface.methods.iter().any(has_pages)
            && interface.methods.iter().flat_map(kept).all(|ty| !self.is_on_heap(ty))
    }

    /// Whether a part of a value lies on the heap.
    fn is_on_heap(&self, ty: TypeId) -> bool {
        let (mut stack, mut seen) = (vec![ty], HashSet::new());
        while let Some(ty) = stack.pop() {
            let ty = self.model.resolved(ty);
            if !seen.insert(ty) {
                continue;
            }
            match self.model.ty(ty) {
                Type::Str { bound: None, .. } | Type::Sequence(_, None) | Type::Shared(_) => return true,
                Type::Optional(of) if self.is_boxed(*of) => return true,
                Type::Optional(of) | Type::Sequence(of, _) | Type::Array(of, _) => stack.push(*of),
                Type::Struct(_, fields) => stack.extend(fields.iter().map(|f| f.ty)),
                Type::Union { branches, .. } => stack.extend(branches.iter().map(|b| b.field.ty)),
                _ => {}
            }
        }
        false
    }

    /// Whoever refers to an object can be used, and served, like the object.
    fn client_as_object(&self, interface: &InterfaceParts) -> TokenStream {
        let InterfaceParts { rt, client_struct, methods, .. } = interface;
        let methods = methods.iter().map(|parts| {
            let signature = self.relay_signature(interface, parts);
            let (method, inputs) = (name(&parts.rust), self.inputs(parts.operation));
            let arguments = inputs.iter().map(|(n, _)| {
                let lent = self.is_lent(parts.operation, n).then(|| quote! { & });
                let argument = name(n);
                quote! { #lent #argument }
            });
            if parts.method.needs_inbox() {
                let called = quote! { #client_struct::#method(self, _inbox, #(#arguments),*) };
                let body = self.kept(interface, parts, &called);
                quote! { #signature { #body } }
            } else {
                quote! { #[inline(always)] #signature { #client_struct::#method(self, #(#arguments),*) } }
            }
        });
        let objects_trait = self.objects_trait(interface);
        quote! { impl<S: #rt::Callee> #objects_trait for #client_struct<S> { #(#methods)* } }
    }

    /// What a client's method gives back, as a server's does: what the client owns, and a server has somewhere, is kept beside the inbox.
    fn kept(&self, interface: &InterfaceParts, parts: &MethodParts, called: &TokenStream) -> TokenStream {
        let InterfaceParts { from, rt, .. } = interface;
        let MethodParts { operation, method, error, .. } = parts;
        let results = self.results(operation);
        let is_kept = |n: &str| has_memory(&method.reply, n) && !is_in_room(&method.reply, n);
        let kept: Vec<&(String, TypeId)> = results.iter().filter(|(n, _)| is_kept(n)).collect();
        let (owned, names): (Vec<_>, Vec<_>) =
            kept.iter().map(|(n, ty)| (self.ty(from, *ty), name(n))).unzip();
        let result = self.result_of(from, (operation, method), Side::Server);
        let (space, with) = if kept.is_empty() {
            (quote! { _ }, called.clone())
        } else {
            let values = tuple(&results.iter().map(|(n, _)| name(n)).collect::<Vec<_>>());
            let lies = kept.iter().map(|(n, ty)| {
                let (n, ty) = (name(n), self.reference(from, *ty));
                quote! { let #n: #ty = #n; }
            });
            let with = quote! {
                let #values = #called?;
                let (#(#names,)*) = _space.put((#(#names,)*));
                #(#lies)*
                Ok(#values)
            };
            (quote! { _space }, with)
        };
        quote! {
            _hold.open(
                |_inbox, #space: #rt::Space<'a, (#(#owned,)*)>| -> __Result<#result, #error> { #with },
            )?
        }
    }

    /// What lets clients refer to any object that has the interface.
    fn interface_of_objects(&self, interface: &InterfaceParts) -> TokenStream {
        let InterfaceParts { from, rt, client_struct, .. } = interface;
        let id = id(&from.join("::"));
        quote! {
            impl #rt::Interface for #client_struct<#rt::View> {
                const ID: __u64 = #id;
                const NOBODY: #client_struct<#rt::View> = #client_struct { server: #rt::View::NOBODY };
                fn at(view: #rt::View) -> #client_struct<#rt::View> { #client_struct { server: view } }
                fn view(&self) -> #rt::View { self.server }
            }
        }
    }

    /// An object before which somebody stands who hears of each call.
    fn watched(&self, interface: &InterfaceParts) -> TokenStream {
        let InterfaceParts { from, rt, methods, .. } = interface;
        let objects_trait = self.objects_trait(interface);
        let watched = self.own_name(from, "Watched");
        let path = from.join("::");
        let methods = methods.iter().map(|parts| {
            let MethodParts { operation, method, rust, .. } = parts;
            let signature = self.relay_signature(interface, parts);
            let hold = method.needs_inbox().then(|| quote! { _hold, });
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
                    let _result = #objects_trait::#ident(&self.server, #hold #(#values),*);
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
            impl<S: #objects_trait, W: #rt::Watch> #objects_trait for #watched<S, W> { #(#methods)* }
        }
    }
}
