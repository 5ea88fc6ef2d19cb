//! Self-tests over each kernel: who serves, how a client comes to it, and what is damaged on the way.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::super::{Emitter, InterfaceParts, MethodParts, Side, name};
use super::{SelfTest, module};
use crate::kernel::table_bits;
use crate::layout::{Chunk, Method};
use crate::model::{Type, TypeId};

/// Over sockets.
#[derive(Clone, Copy, Debug)]
pub struct Linux;

impl SelfTest for Linux {
    fn common(&self) -> &'static str {
        include_str!("linux.rs")
    }

    fn run(
        &self,
        emitter: &Emitter,
        interface: &InterfaceParts,
        server: &Ident,
        number: usize,
    ) -> TokenStream {
        let modules: Vec<Ident> = interface.from.iter().map(|p| name(p)).collect();
        let dispatch = emitter.own_name(&interface.from, "dispatch");
        let client = &interface.client_struct;
        let function = format_ident!("interface_{}", number.to_string());
        let tap = quote! {
            Tap {
                stream: _near.try_clone().expect("a socket can be shared"),
                kept: &mut _kept,
                damage: _damages.then_some(&mut _damage),
            }
        };
        let calls = interface.methods.iter().map(|parts| {
            let call = emitter.test_call(self, interface, parts);
            let title = &parts.operation.name;
            let (size, exact) = Emitter::test_size(&parts.method.request);
            let damaged = match parts.operation.oneway {
                true => TokenStream::new(),
                false => quote! { if _damages { _report.damaged_reply(_given.is_err()); } },
            };
            quote! {
                {
                    #call
                    drop(_client);
                    _report.call(#title, _good || _damages, _exception);
                    _report.size(#title, _kept.last(), #size, #exact);
                    #damaged
                    _client = super::#(#modules::)*#client { transport: #tap };
                }
            }
        });
        let path = &emitter.model.interfaces[interface.layout.interface.0 as usize].name;
        quote! {
            fn #function(_seed: __u64, _rounds: __u64, _program: __Option<&__str>) -> Report {
                let mut _report = Report::default();
                let mut _kept = ::std::vec::Vec::new();
                let (_near, mut _far, _between) = way(_program, #path);
                let _thread = ::std::thread::spawn(move || {
                    let mut _server = #server(Known::new(_seed));
                    rt::serve(&mut _far, |_label, _body| super::#(#modules::)*#dispatch(&mut _server, _label, _body)).is_ok()
                });
                let (mut _call, mut _damage) = (0, Random::new(_seed, __u64::MAX - 2));
                // A second time, replies are damaged: a client refuses them, or gets something else.
                for _damages in [false, true] {
                    let mut _client = super::#(#modules::)*#client { transport: #tap };
                    for _ in 0.._rounds { #(#calls)* }
                }
                drop(_near);
                _report.end(_between);
                if !_thread.join().unwrap_or(false) {
                    _report.wrong.push("the server did not end well".into());
                }
                _kept.truncate(400);
                if let Some(_program) = _program {
                    _kept.truncate(100);
                    _report.damage_between(_seed, &_kept, (_program, #path), move |_label, _body| {
                        super::#(#modules::)*#dispatch(&mut #server(Known::new(_seed)), _label, _body)
                    });
                    return _report;
                }
                let mut _server = #server(Known::new(_seed));
                let mut _dispatch = |_label: __u32, _body: &[__u8]| super::#(#modules::)*#dispatch(&mut _server, _label, _body);
                _report.nothing_is_lost(&_kept, &mut _dispatch);
                _report.damage(_seed, &_kept, _dispatch);
                _report
            }
        }
    }

    fn all(&self, interfaces: &[String]) -> TokenStream {
        let functions = (0..interfaces.len()).map(|number| format_ident!("interface_{}", number.to_string()));
        let again = functions.clone();
        let titles = interfaces.iter().map(|interface| format!("{interface} through C"));
        quote! {
            /// Tests all interfaces; prints a line for each. Whether all is well.
            pub fn all(seed: __u64, rounds: __u64) -> __bool {
                let mut good = true;
                #(good &= #functions(seed, rounds, None).print(#interfaces);)*
                good
            }

            /// Tests all interfaces once more, with this program in C between client and server.
            pub fn all_between(seed: __u64, rounds: __u64, program: &__str) -> __bool {
                let mut good = true;
                #(good &= #again(seed, rounds, Some(program)).print(#titles);)*
                good
            }
        }
    }
}

/// Whether a result of Tern's is a reference: into the server's memory, or to where it has arrived.
pub(super) fn lies_elsewhere(method: &Method, result: &str, side: Side) -> bool {
    let is_used_there = |chunk: &Chunk| chunk.element.is_some() && !method.reply.copies;
    method.reply.chunks.iter().any(|chunk| match side {
        Side::Client => is_used_there(chunk) && matches!(&chunk.path[..], [path] if path == result),
        Side::Server => chunk.references == 0 && chunk.path.first().is_some_and(|first| first == result),
    })
}

/// What a call needs over Tern besides its arguments.
pub(super) fn tern_needs(method: &Method) -> TokenStream {
    if method.reply.pages.is_some() {
        return quote! { WINDOW.page(), };
    }
    inbox_needs(method)
}

/// The need of such a call besides a window: an inbox, or nothing.
pub(super) fn inbox_needs(method: &Method) -> TokenStream {
    match method.replies().find(|reply| reply.long) {
        Some(_) => quote! { &mut *_inbox, },
        None => TokenStream::new(),
    }
}

/// Over Tern, long lists have no place on a stack.
pub(super) fn tern_value(emitter: &Emitter, ty: TypeId) -> TokenStream {
    match emitter.model.ty(emitter.model.resolved(ty)) {
        Type::Sequence(of, bound) if bound.is_none_or(|bound| bound > 88) => {
            let of = emitter.ty(&module(), *of);
            quote! { alloc::vec::Vec<#of> }
        }
        _ => emitter.ty(&module(), ty),
    }
}

/// The function that tests an interface over Tern, by calls to a `callee`. It wants two: who serves it, and who answers with nonsense.
pub(super) fn tern_run(
    test: &dyn SelfTest,
    emitter: &Emitter,
    interface: &InterfaceParts,
    (number, callee): (usize, TokenStream),
    waits: impl Fn(&MethodParts) -> bool,
) -> TokenStream {
    let modules: Vec<Ident> = interface.from.iter().map(|p| name(p)).collect();
    let client = &interface.client_struct;
    let function = format_ident!("interface_{}", number.to_string());
    let calls = interface.methods.iter().map(|parts| {
        let call = emitter.test_call(test, interface, parts);
        let title = &parts.operation.name;
        quote! { { #call _report.call(#title, _sane, _good, _exception); } }
    });
    // Methods, and places of the table without one.
    let methods = &interface.methods;
    let places = 1u32 << table_bits(methods.len());
    let labels = (0..places).filter_map(|n| match methods.get(n as usize) {
        Some(parts) => (!waits(parts)).then_some(parts.method.request.label),
        None => Some(n.reverse_bits()),
    });
    let labels: Vec<u32> = labels.collect();
    let damage = (!labels.is_empty())
        .then(|| quote! { _report.damage(_seed, _server, &[#(#labels),*], 20 * _rounds); });
    let replies = if interface.replies.needed {
        let replies = emitter.own_name(&interface.from, "Replies");
        quote! { super::#(#modules::)*#replies }
    } else {
        // Somebody may answer with memory all the same.
        quote! { rt::Room<(), 8, 0, 0> }
    };
    quote! {
        fn #function(_server: #callee, _nonsense: #callee, _seed: __u64, _rounds: __u64) -> Report {
            let mut _memory = alloc::vec![0u128; ::core::mem::size_of::<#replies>().div_ceil(16)];
            let _replies = <#replies>::in_place(&mut _memory).unwrap_or_else(|| panic!("there is enough"));
            let mut _report = Report::default();
            let _opened = rt::Inbox::open(_replies, |_inbox| {
                for (_server, _sane) in [(_server, true), (_nonsense, false)] {
                    let _client = super::#(#modules::)*#client { server: _server };
                    let mut _call = 0;
                    for _ in 0.._rounds { #(#calls)* }
                }
                // Its answers may have a part in memory, too.
                #damage
            });
            _report.call("the inbox", true, _opened.is_ok(), false);
            _report
        }
    }
}

/// The table of all interfaces' tests over Tern. `serves` is what a server's function gives back, `callee` who is called.
pub(super) fn tern_all(interfaces: &[String], serves: &TokenStream, callee: &TokenStream) -> TokenStream {
    let numbers = || (0..interfaces.len()).map(|number| number.to_string());
    let functions = numbers().map(|number| format_ident!("interface_{number}"));
    let servers = numbers().map(|number| format_ident!("serve_{number}"));
    let count = Literal::usize_unsuffixed(interfaces.len());
    quote! {
        /// An interface's name, its server, and what tests it, which wants the server and one that answers with nonsense.
        pub type Test = (&'static __str, fn(__u64) -> #serves, fn(#callee, #callee, __u64, __u64) -> Report);
        /// All interfaces.
        pub const ALL: [Test; #count] = [#((#interfaces, #servers, #functions)),*];
    }
}

/// Over Tern's ipc.
#[derive(Clone, Copy, Debug)]
pub struct TernIpc;

impl SelfTest for TernIpc {
    fn common(&self) -> &'static str {
        concat!(include_str!("tern.rs"), include_str!("tern_pages.rs"), include_str!("tern_ipc.rs"))
    }

    fn uses_memory(&self) -> bool {
        true
    }

    fn run(
        &self,
        emitter: &Emitter,
        interface: &InterfaceParts,
        server: &Ident,
        number: usize,
    ) -> TokenStream {
        let modules: Vec<Ident> = interface.from.iter().map(|p| name(p)).collect();
        let serve = emitter.own_name(&interface.from, "serve");
        let serve_function = format_ident!("serve_{}", number.to_string());
        let server_value = quote! { #server(Known::new(_seed)) };
        let serving = if interface.hands_pages() {
            quote! {
                let _failure = super::#(#modules::)*#serve(&mut #server_value, WINDOW.page());
                panic!("the kernel does not accept the window: {_failure}")
            }
        } else if interface.room.needed {
            let room_type = emitter.own_name(&interface.from, "Room");
            quote! {
                static ROOM: rt::Once<super::#(#modules::)*#room_type> = rt::Once::new(super::#(#modules::)*#room_type::new());
                let _room = ROOM.take().unwrap_or_else(|| panic!("one server at a time"));
                let _failure = super::#(#modules::)*#serve(&mut #server_value, _room);
                panic!("the kernel does not accept the room: {_failure}")
            }
        } else {
            quote! { super::#(#modules::)*#serve(&mut #server_value) }
        };
        // Who calls a oneway method waits in vain, as he must, and so does who has no window for the pages that come back.
        let waits = |parts: &MethodParts| parts.operation.oneway || parts.method.reply.pages.is_some();
        let run = tern_run(self, emitter, interface, (number, quote! { rt::Uid }), waits);
        quote! {
            fn #serve_function(_seed: __u64) -> ! { #serving }
            #run
        }
    }

    fn all(&self, interfaces: &[String]) -> TokenStream {
        tern_all(interfaces, &quote! { ! }, &quote! { rt::Uid })
    }
}

/// Statements that put a watch between an object and its client; none, if nobody can hand on what comes back.
pub(super) fn between(hands_on: bool, [object, watched, client]: [&TokenStream; 3]) -> TokenStream {
    if !hands_on {
        return quote! { _door.duplicate() };
    }
    quote! {
        let _door = alloc::boxed::Box::leak(alloc::boxed::Box::new(_door.duplicate()?));
        ::rt::door::serve(#object(#watched { server: #client { server: &*_door }, watch: Listener }))
    }
}

/// Through Tern's doors.
#[derive(Clone, Copy, Debug)]
pub struct TernDoor;

impl SelfTest for TernDoor {
    fn common(&self) -> &'static str {
        concat!(include_str!("tern.rs"), include_str!("tern_pages.rs"), include_str!("tern_door.rs"))
    }

    fn known(&self) -> TokenStream {
        quote! { ::rt::sync::Mutex<Known> }
    }

    fn state(&self) -> TokenStream {
        quote! { let _known = &mut *self.0.lock(); }
    }

    fn uses_memory(&self) -> bool {
        true
    }

    fn has_pages_beside_memory(&self) -> bool {
        true
    }

    fn call_needs(&self, emitter: &Emitter, method: &Method) -> TokenStream {
        let inbox = inbox_needs(method);
        match &method.reply.pages {
            Some(handed) if emitter.is_page(handed.ty) => quote! { #inbox WINDOW.page(), },
            _ => inbox,
        }
    }

    fn run(
        &self,
        emitter: &Emitter,
        interface: &InterfaceParts,
        server: &Ident,
        number: usize,
    ) -> TokenStream {
        let modules = interface.from.iter().map(|p| name(p));
        let [object, watched, client] = ["Object", "Watched", "Client"].map(|own| {
            let (modules, own) = (modules.clone(), emitter.own_name(&interface.from, own));
            quote! { super::#(#modules::)*#own }
        });
        let serve_function = format_ident!("serve_{}", number.to_string());
        let run = tern_run(self, emitter, interface, (number, quote! { &::rt::door::Door }), |_| false);
        let between = between(emitter.can_hand_on(interface), [&object, &watched, &client]);
        quote! {
            fn #serve_function(_seed: __u64) -> ::sys::Result<[::rt::door::Door; 4]> {
                ::rt::door::make_room::<#object<#server>>()?;
                ::rt::door::make_room::<Nonsense>()?;
                let _server = #server(::rt::sync::Mutex::new(Known::new(_seed)));
                let [_sane, _nonsense] =
                    [::rt::door::serve(#object(_server))?, ::rt::door::serve(Nonsense::new(_seed))?];
                let _between = |_door: &::rt::door::Door| {
                    #between
                };
                let _watched = [_between(&_sane)?, _between(&_nonsense)?];
                let [_watched, _watched_nonsense] = _watched;
                Ok([_sane, _nonsense, _watched, _watched_nonsense])
            }
            #run
        }
    }

    fn all(&self, interfaces: &[String]) -> TokenStream {
        tern_all(interfaces, &quote! { ::sys::Result<[::rt::door::Door; 4]> }, &quote! { &::rt::door::Door })
    }
}
