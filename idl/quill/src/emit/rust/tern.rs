//! Rust over Tern, by ipc ([`ipc`]) or through doors ([`door`]): a client whose methods are inlined down to one system call, and a table
//! of handlers.
//!
//! The messages are the same, and so is nearly all of the text. What differs is how a client's server is called, what calls
//! a handler, and where it finds the server's data: that is a [`Way`].
//!
//! What all stubs share is the crate `stub`. A value that has a register of its own is moved there and nothing else; its
//! place is a constant in the text, so `Piece::put` and `Piece::get` leave a move, or a shift where values share.
//! A handler is a plain function whose first words arrive as arguments; generated code needs no unsafe block.

use std::collections::HashMap;

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::{
    Element, Emitter, InterfaceParts, MethodParts, Part, Raised, Runtime, Side, name, selftest, tuple,
};
use crate::layout::{Carrier, Chunk, Leaf, Message, Method, Place, Room, Slot};
use crate::model::{Field, InterfaceId, Type, TypeId, bits_of};
use crate::sizes::for_all_types;

pub mod door;
pub(super) mod general;
pub mod ipc;

/// The crate that stubs share.
const CRATE: &str = "stub";

/// Rust over Tern, in one of its ways.
#[derive(Debug)]
pub struct Tern(pub &'static dyn Way);

/// How a message gets to a server and into a method.
pub trait Way: Sync + std::fmt::Debug {
    /// Whom a client calls if nobody says otherwise, and what that is.
    fn callee(&self, rt: &TokenStream) -> (TokenStream, &'static str);

    /// How a method of a server has the server.
    fn receiver(&self, lifetime: Option<TokenStream>) -> TokenStream;

    /// What a reference to an object is, if its holder owns it and it is handed over.
    fn reference(&self, emitter: &Emitter, from: &[String], to: Option<InterfaceId>) -> Option<TokenStream>;

    /// What the trait of a server has besides the methods of its interface.
    fn server_extras(&self, rt: &TokenStream) -> TokenStream;

    /// The names of these.
    fn methods(&self) -> &'static [&'static str];

    /// What answers requests.
    fn server(&self, emitter: &Emitter, interface: &InterfaceParts) -> Vec<TokenStream>;

    /// What a handler is, besides what it does.
    fn handling(&self, emitter: &Emitter, interface: &InterfaceParts, parts: &MethodParts) -> Handling;

    /// What a handler answers when the words of a reply are in `_out`: success, or something with a label.
    fn answer(&self, rt: &TokenStream, given: &Literal, label: Option<u32>) -> TokenStream;

    /// What a handler does at the end of a method to which nothing comes back.
    fn nothing(&self, rt: &TokenStream) -> TokenStream;

    /// What a handler answers when its method has failed.
    fn fail(&self, rt: &TokenStream, failure: &TokenStream) -> TokenStream;

    /// The self-test.
    fn selftest(&self) -> &'static dyn selftest::SelfTest;
}

/// A handler, besides what it does.
pub struct Handling {
    /// What its server is.
    bounds: TokenStream,
    /// Its parameters: `_w0`, `_w1`, `_rdx`, `_frame`, `_w2` and `_w3`.
    parameters: TokenStream,
    /// What it gives back.
    answer: TokenStream,
    /// Statements that leave all words of a request in `_w0` … `_w10`.
    words: TokenStream,
    /// The trait whose methods are called.
    methods: Ident,
    /// The server, as its methods have it.
    server: TokenStream,
    /// What they get besides their arguments.
    lent: TokenStream,
    /// What is said to the server before each method.
    before: TokenStream,
}

impl Part for Tern {
    fn runtime(&self) -> Runtime {
        Runtime::Crate(CRATE)
    }

    fn carries(&self, emitter: &Emitter, ty: TypeId) -> bool {
        !matches!(emitter.kind(ty), Type::Object(_)) || !emitter.is_owned_reference(ty)
    }

    fn refuses(&self, emitter: &Emitter, method: &Method) -> Option<String> {
        if method.exceptions.iter().any(|(_, message)| Emitter::outgoing(message, true) > OUTGOING_WORDS_MAX)
        {
            return Some(format!("an exception has more than {} bytes", 8 * OUTGOING_WORDS_MAX));
        }
        let large = |chunk: &&Chunk| emitter.owned_bytes(chunk.ty) > OWNED_BYTES_MAX;
        let mut messages = method.replies().chain([&method.request]);
        if let Some(large) = messages.find_map(|message| message.streams().find(large)) {
            let path = large.path.join(".");
            return Some(format!(
                "`{path}` may have more than the {OWNED_BYTES_MAX} bytes that fit on a stack"
            ));
        }
        let mixed = |chunk: &&Chunk| match emitter.kind(chunk.ty) {
            Type::Sequence(of, _) | Type::Array(of, _) => !emitter.sizes.flat(*of),
            _ => false,
        };
        let mixed = |chunk: &&Chunk| chunk.element.is_some() && mixed(chunk);
        let mixed = method.replies().chain([&method.request]).flat_map(|m| &m.chunks).find(mixed)?;
        let path = mixed.path.join(".");
        Some(format!(
            "`{path}` is used as it lies in memory, but not every bit pattern is a value of its elements"
        ))
    }

    fn list(&self, rt: &TokenStream, element: Element, bound: Option<u64>) -> TokenStream {
        // How much a list without a bound may hold depends on what else a message has: it lies elsewhere.
        match (element, bound) {
            (Element::Text, None) => quote! { #rt::String },
            (Element::Text, Some(characters)) => {
                let bytes = Literal::u64_unsuffixed(characters.saturating_mul(4));
                quote! { #rt::Text<#bytes> }
            }
            (Element::Of(of), None) => quote! { #rt::Vec<#of> },
            (Element::Of(of), Some(bound)) => {
                let bound = Literal::u64_unsuffixed(bound);
                quote! { #rt::List<#of, #bound> }
            }
        }
    }

    fn elsewhere(&self, rt: &TokenStream, of: TokenStream) -> TokenStream {
        quote! { #rt::Box<#of> }
    }

    fn owned_text(&self, rt: &TokenStream, text: Option<TokenStream>) -> TokenStream {
        match text {
            Some(text) => quote! { #rt::Text::new(#text).unwrap_or(#rt::Blank::BLANK) },
            None => quote! { #rt::Blank::BLANK },
        }
    }

    /// A list in memory is used where it arrives, and sent from where the server has it.
    fn result(
        &self,
        emitter: &Emitter,
        from: &[String],
        method: &Method,
        (result, ty): (&str, TypeId),
        side: Side,
    ) -> TokenStream {
        match side {
            Side::Client => emitter.handled(from, &method.reply, result, ty),
            Side::Server if has_memory(&method.reply, result) => emitter.reference(from, ty),
            Side::Server => emitter.ty(from, ty),
        }
    }

    fn client_needs(
        &self,
        emitter: &Emitter,
        from: &[String],
        method: &Method,
    ) -> (TokenStream, TokenStream) {
        let rt = emitter.runtime(from);
        let handed = method.reply.pages.as_ref().filter(|handed| !emitter.is_owned_reference(handed.ty));
        let window = handed.map(|_| quote! { , _window: #rt::Fpage });
        if !needs_inbox(method) {
            return (TokenStream::new(), quote! { &self #window });
        }
        let replies = emitter.own_name(from, "Replies");
        (quote! { <'a> }, quote! { &self, _inbox: &'a mut #rt::Inbox<'_, #replies> #window })
    }

    fn server_needs(&self, _: &Emitter, method: &Method) -> (TokenStream, TokenStream) {
        if method.reply.chunks.is_empty() {
            return (TokenStream::new(), self.0.receiver(None));
        }
        (quote! { <'a> }, self.0.receiver(Some(quote! { 'a })))
    }

    fn implement(&self, emitter: &Emitter, from: &[String], ty: TypeId) -> TokenStream {
        let (blank, piece, flat) = (emitter.blank(from, ty), emitter.piece(from, ty), emitter.flat(from, ty));
        let wire = emitter.streamed[ty.0 as usize].then(|| emitter.wire(from, ty));
        quote! { #blank #piece #flat #wire }
    }

    fn reference(&self, emitter: &Emitter, from: &[String], to: Option<InterfaceId>) -> Option<TokenStream> {
        self.0.reference(emitter, from, to)
    }

    fn server_extras(&self, rt: &TokenStream) -> TokenStream {
        self.0.server_extras(rt)
    }

    fn methods(&self) -> &'static [&'static str] {
        self.0.methods()
    }

    fn holds(&self, bound: Option<u64>) -> bool {
        bound.is_some()
    }

    fn interface(&self, emitter: &Emitter, interface: &InterfaceParts) -> Vec<TokenStream> {
        let InterfaceParts { from, rt, client_struct, methods, .. } = interface;
        let client = methods.iter().map(|method| emitter.register_client(from, rt, method));
        let (callee, doc) = self.0.callee(rt);
        let replies = (emitter.own_name(from, "Replies"), emitter.own_name(from, "ReplyStrings"));
        let mut items = vec![
            quote! {
                /// Calls a server.
                #[derive(Clone, Copy, Debug)]
                pub struct #client_struct<S = #callee> {
                    #[doc = #doc]
                    pub server: S,
                }
            },
            quote! { impl<S: #rt::Callee> #client_struct<S> { #(#client)* } },
            emitter.room_items(rt, &interface.replies, ("replies", &replies.0), &replies.1),
        ];
        items.extend(self.0.server(emitter, interface));
        items
    }

    fn selftest(&self) -> &'static dyn selftest::SelfTest {
        self.0.selftest()
    }
}

impl MethodParts<'_> {
    /// Words of the longest reply.
    fn given(&self) -> u32 {
        let replies = self.method.replies().filter(|_| !self.operation.oneway);
        replies.map(words_of).max().unwrap_or(0)
    }

    /// Words of the request.
    fn taken(&self) -> u32 {
        words_of(&self.method.request)
    }

    /// Words that a server keeps for a reply.
    fn outgoing(&self) -> u64 {
        let exceptions = self.method.exceptions.iter();
        let exceptions = exceptions.map(|(_, message)| Emitter::outgoing(message, true));
        exceptions.fold(Emitter::outgoing(&self.method.reply, false), u64::max)
    }
}

/// Words of a message. An item is the last of eight, if it is not in memory.
fn words_of(message: &Message) -> u32 {
    if message.pages.is_some() && !message.long { general::WORDS } else { message.registers }
}

/// How many strings are in memory, and whether something is handed over from there.
fn parts_in_memory(rt: &TokenStream, message: &Message) -> TokenStream {
    let strings = Literal::u64_unsuffixed(message.strings().count() as u64);
    match message.handed().count() as u64 {
        0 => quote! { #strings },
        1 => quote! { #strings + #rt::ITEM },
        count => {
            let count = Literal::u64_unsuffixed(count);
            quote! { #strings + #count * #rt::ITEM }
        }
    }
}

/// What a client's method says about pages, if its call hands some over.
fn client_pages(emitter: &Emitter, rt: &TokenStream, method: &Method) -> Option<TokenStream> {
    if !method.hands_pages() {
        return None;
    }
    let long = method.request.long.then(|| quote! { .long() });
    let given = method.request.pages.as_ref().filter(|_| !method.request.long);
    let given = given.map(|handed| match emitter.is_owned_reference(handed.ty) {
        true => {
            let (reference, granted) = (name(&handed.param), handed.grant == Some(true));
            quote! { .hand(#reference.item(#granted)) }
        }
        false => {
            let page = general::handed(rt, handed);
            quote! { .give(#page) }
        }
    });
    let window = method.reply.pages.as_ref().map(|handed| match emitter.is_owned_reference(handed.ty) {
        true => quote! { .window(_place.window()) },
        false => quote! { .window(_window) },
    });
    let taking = needs_inbox(method).then(|| quote! { .taking() });
    Some(quote! { #rt::Pages::NONE #long #given #window #taking })
}

/// Whether something that can come back has a part in memory.
fn needs_inbox(method: &Method) -> bool {
    method.replies().any(|reply| reply.long)
}

/// Whether a part of a parameter or result is a list in memory.
fn has_memory(message: &Message, param: &str) -> bool {
    message.chunks.iter().any(|chunk| chunk.path.first().is_some_and(|first| first == param))
}

/// Whether a parameter or result is a list that is used where it has arrived.
fn is_in_room(message: &Message, param: &str) -> bool {
    let mut lists = message.chunks.iter().filter(|chunk| chunk.element.is_some());
    lists.any(|chunk| matches!(&chunk.path[..], [path] if path == param))
}

/// Words that a server keeps for its replies, on its stack.
const OUTGOING_WORDS_MAX: u64 = 4096;

/// Bytes of what is known of a value that lies elsewhere.
const ELSEWHERE_BYTES: u64 = 24;

/// Bytes of something that is read piece by piece, as its reader has it: on the stack.
const OWNED_BYTES_MAX: u64 = 32 << 10;

/// Statements that make a list the words of a message.
fn pack_directly(rt: &TokenStream, list: &TokenStream, lies: Lies) -> TokenStream {
    let address = match lies {
        Lies::Nowhere => quote! { #rt::keep(#list, &mut _block[..]); _out[1] = #rt::address(&_block[..]); },
        _ => quote! { _out[1] = #rt::address(#list); },
    };
    quote! { _out[0] = #rt::whole_words(#list); #address }
}

/// Statements that find the parts of a message in memory and check how many these are.
fn unpack_memory(rt: &TokenStream, message: &Message) -> Option<TokenStream> {
    if !message.long || message.chunks.iter().any(|c| c.carrier == Carrier::Direct) {
        return None;
    }
    let words = Literal::u64_unsuffixed(message.memory_bytes / 8);
    let strings = parts_in_memory(rt, message);
    Some(if has_streams(message) {
        quote! { let (_memory, mut _stream) = _room.streams(_in[0], #words, #strings)?; }
    } else {
        quote! { let _memory = _room.words(_in[0], #words, #strings)?; }
    })
}

/// Whether something is read piece by piece from a message.
fn has_streams(message: &Message) -> bool {
    message.streams().next().is_some()
}

/// Statements of a handler for what a request hands over: taken when everything else is well, and let go if it is not.
#[derive(Default)]
struct Handover {
    found: TokenStream,
    taken: TokenStream,
    let_go: TokenStream,
}

impl Handover {
    /// Those for a request; a handler that cannot take something ends with `failed`.
    fn of(rt: &TokenStream, request: &Message, failed: &TokenStream) -> Handover {
        let references: Vec<Ident> = request.handed().map(|handed| name(&handed.param)).collect();
        match &references[..] {
            [] => Handover::default(),
            _ if request.long => {
                let numbers = (0..references.len()).map(Literal::usize_unsuffixed);
                Handover {
                    found: quote! { let mut _items = _frame.room.items(_w0); },
                    // All of them, so that those go that have arrived if another one has not.
                    taken: quote! {
                        let (#(#references,)*) = (#(::rt::door::take_from(&mut _items, #numbers),)*);
                        let (#(Some(#references),)*) = (#(#references,)*) else { return #failed };
                    },
                    let_go: quote! { _items.let_go(); },
                }
            }
            [reference, ..] => Handover {
                found: TokenStream::new(),
                taken: quote! { let Some(#reference) = ::rt::door::take(_w6, _w7) else { return #failed }; },
                let_go: quote! { #rt::door::let_go(_w6); },
            },
        }
    }
}

/// The call that begins the second look at a request. A word that it does not read needs no register until then.
fn second_look(request: &Message) -> TokenStream {
    let [w0, w1, w2, w3] = [0, 1, 2, 3].map(|word| {
        let ident = format_ident!("_w{word}");
        if request.reads_again(word) {
            quote! { #ident }
        } else {
            quote! { 0 }
        }
    });
    quote! { return _again::<S>(#w0, #w1, _rdx, _frame, #w2, #w3) }
}

/// The pattern for the words of a packed reply, and the answer with whatever else it brings.
fn packed_answer(message: &Message, answer: TokenStream) -> (TokenStream, TokenStream) {
    let (packed, answer) = match &message.pages {
        Some(handed) => {
            let reference = name(&handed.param);
            let give = quote! {
                let _item = ::rt::door::give(#reference);
                (_out[6], _out[7]) = (_item.0.0, _item.1);
            };
            (quote! { Ok(mut _out) }, quote! { #give #answer.with_item() })
        }
        None => (quote! { Ok(_out) }, answer),
    };
    let answer = if message.long {
        quote! { #answer.with_memory() }
    } else {
        answer
    };
    (packed, answer)
}

/// What stands in a place of a table.
#[derive(Clone, Copy)]
enum Stands {
    /// A method.
    Method(u32),
    /// A method whose requests are of another kind.
    Mismatch,
    /// No method.
    Nothing,
}

/// What a request has besides words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing.
    Words,
    /// A part in memory.
    Long,
    /// Something that is handed over.
    Item,
    /// Both.
    LongItem,
}

impl Kind {
    fn of(parts: &MethodParts) -> Kind {
        match &parts.method.request {
            request if request.long && request.pages.is_some() => Kind::LongItem,
            request if request.long => Kind::Long,
            request if request.pages.is_some() => Kind::Item,
            _ => Kind::Words,
        }
    }
}

/// Where the values of a message are that is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lies {
    /// They are the arguments of who makes it, and stay where they are until it is sent.
    WithCaller,
    /// Lists are the server's own, and stay where they are; everything else has to be kept.
    WithServer,
    /// They are a handler's, and all of them have to be kept.
    Nowhere,
}

impl Emitter<'_> {
    /// Some value of a type.
    fn blank(&self, from: &[String], id: TypeId) -> TokenStream {
        let rt = self.runtime(from);
        let ident = |path: &str| name(&self.place(path).1);
        let blank = |ty: TypeId| {
            let ty = self.ty(from, ty);
            quote! { <#ty as #rt::Blank>::BLANK }
        };
        let (ident, value) = match self.model.ty(id) {
            Type::Struct(path, fields) => {
                let names = fields.iter().map(|f| name(&f.name));
                let values = fields.iter().map(|f| blank(f.ty));
                (ident(path), quote! { Self { #(#names: #values),* } })
            }
            Type::Flat(path, _) => (ident(path), quote! { Self { bits: #rt::Blank::BLANK } }),
            Type::Enum(path, members) => {
                let first = members.first().map(|m| name(&m.0));
                (ident(path), quote! { Self::#first })
            }
            Type::Bitmask(path, ..) => (ident(path), quote! { Self(0) }),
            Type::Union { name: path, switch, branches } => {
                let Some(branch) = branches.first() else { return TokenStream::new() };
                let (variant, value) = (name(&branch.field.name), blank(branch.field.ty));
                let label = self.keeps_label(from, *switch, branch).then(|| {
                    let label = branch.labels.iter().find_map(|&l| self.label(from, *switch, l));
                    let label = label.unwrap_or_else(|| blank(*switch));
                    quote! { #label, }
                });
                (ident(path), quote! { Self::#variant(#label #value) })
            }
            _ => return TokenStream::new(),
        };
        quote! { impl #rt::Blank for #ident { const BLANK: #ident = #value; } }
    }

    /// The size of a value, roughly; all that there are if it is too large or has no end.
    fn owned_bytes(&self, ty: TypeId) -> u64 {
        let bytes = |ty: TypeId, of: &mut dyn FnMut(TypeId) -> u64| match self.model.ty(ty) {
            Type::Str { bound: None, .. } | Type::Sequence(_, None) => ELSEWHERE_BYTES,
            Type::Str { bound: Some(bound), .. } => bound.saturating_mul(4).saturating_add(8),
            Type::Sequence(element, Some(bound)) => of(*element).saturating_mul(*bound).saturating_add(8),
            Type::Shared(_) => ELSEWHERE_BYTES,
            Type::Optional(of) if self.is_boxed(*of) => ELSEWHERE_BYTES,
            Type::Optional(element) => of(*element).saturating_add(8),
            Type::Array(element, dims) => dims.iter().fold(of(*element), |all, &n| all.saturating_mul(n)),
            Type::Struct(_, fields) => fields.iter().map(|f| of(f.ty)).fold(0, u64::saturating_add),
            Type::Union { branches, .. } => {
                branches.iter().map(|b| of(b.field.ty)).fold(0, u64::max).saturating_add(8)
            }
            _ => self.sizes.fixed(ty).map_or(u64::MAX, |fixed| fixed.size),
        };
        self.owned.get_or_init(|| for_all_types(self.model, u64::MAX, &bytes))[ty.0 as usize]
    }

    /// What makes a type of fixed size travel in words.
    fn piece(&self, from: &[String], id: TypeId) -> TokenStream {
        let rt = self.runtime(from);
        let Some(fixed) = self.sizes.fixed(id) else { return TokenStream::new() };
        let bytes = Literal::u64_unsuffixed(fixed.size);
        let ident = |path: &str| name(&self.place(path).1);
        let (ident, put, get) = match self.model.ty(id) {
            Type::Struct(path, fields) => {
                let (put, get) = self.struct_piece(from, &rt, fields);
                (ident(path), put, get)
            }
            Type::Flat(path, _) => (
                ident(path),
                quote! { #rt::Piece::put(&self.bits, _words, _at) },
                quote! { #rt::Piece::get(_words, _at).map(|bits| Self { bits }) },
            ),
            Type::Enum(path, members) => {
                let ident = ident(path);
                let (numbers, names) = Emitter::numbers(members);
                let get = quote! {
                    match <__u32 as #rt::Piece>::get(_words, _at)? {
                        #(#numbers => Ok(#ident::#names),)*
                        _ => Err(#rt::Malformed),
                    }
                };
                let put = quote! { #rt::Piece::put(&(*self as __u32), _words, _at) };
                (ident, put, get)
            }
            Type::Bitmask(path, bits, members) => {
                let ident = ident(path);
                let number = format_ident!("__u{}", bits.to_string());
                let all = Literal::u64_unsuffixed(bits_of(members));
                let get = quote! {
                    let bits = <#number as #rt::Piece>::get(_words, _at)?;
                    if bits & !#all == 0 { Ok(#ident(bits)) } else { Err(#rt::Malformed) }
                };
                (ident, quote! { #rt::Piece::put(&self.0, _words, _at) }, get)
            }
            _ => return TokenStream::new(),
        };
        quote! {
            impl #rt::Piece for #ident {
                const BYTES: __usize = #bytes;
                #[inline(always)]
                fn put(&self, _words: &mut [__u64], _at: __usize) { #put }
                #[inline(always)]
                fn get(_words: &[__u64], _at: __usize) -> __Result<#ident, #rt::Malformed> { #get }
            }
        }
    }

    /// What lets a struct or a flat union be used as it lies in memory.
    fn flat(&self, from: &[String], id: TypeId) -> TokenStream {
        let (path, types) = match self.model.ty(id) {
            Type::Struct(path, fields) => (path, fields.iter().map(|f| self.ty(from, f.ty)).collect()),
            Type::Flat(path, _) => (path, Vec::from_iter(self.bits(id))),
            _ => return TokenStream::new(),
        };
        if !self.sizes.flat(id) {
            return TokenStream::new();
        }
        let rt = self.runtime(from);
        let ident = name(&self.place(path).1);
        quote! { #rt::flat_struct!(#ident { #(#types),* }); }
    }

    /// How a struct is written, and how it is read.
    fn struct_piece(
        &self,
        from: &[String],
        rt: &TokenStream,
        fields: &[Field],
    ) -> (TokenStream, TokenStream) {
        let names: Vec<_> = fields.iter().map(|f| name(&f.name)).collect();
        let types: Vec<_> = fields.iter().map(|f| self.ty(from, f.ty)).collect();
        let offsets: Vec<_> = self.sizes.offsets(fields).into_iter().map(Literal::u64_unsuffixed).collect();
        (
            quote! { #(#rt::Piece::put(&self.#names, _words, _at + #offsets);)* },
            quote! { Ok(Self { #(#names: <#types as #rt::Piece>::get(_words, _at + #offsets)?),* }) },
        )
    }

    /// A method of the client.
    fn register_client(&self, from: &[String], rt: &TokenStream, parts: &MethodParts) -> TokenStream {
        let MethodParts { operation, method, signature, .. } = parts;
        let label = Literal::u32_unsuffixed(method.request.label);
        let failed = quote! { #rt::Failure::TooLong.into() };
        let inputs = general::values(&self.inputs(operation), &method.request);
        let agreed = self.agreed(operation, false, &failed);
        let pack = self.pack(rt, &method.request, &inputs, &failed, Lies::WithCaller);
        let words = Literal::u32_unsuffixed(method.registers());
        let pages = client_pages(self, rt, method);
        let takes = needs_inbox(method);
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
        let results = self.results(operation);
        let read = general::values(&results, &method.reply);
        let mut unpack = self.unpack_reply(from, rt, &method.reply, &read, false);
        let (place, short, done) = self.client_handed(rt, method, &mut unpack);
        unpack.extend(self.agreed(operation, true, &quote! { #rt::Failure::Malformed.into() }));
        let value = tuple(&results.iter().map(|(n, _)| name(n)).collect::<Vec<_>>());
        let failure = self.client_failure(from, rt, parts);
        quote! {
            #[inline(always)]
            #signature {
                #agreed
                #pack
                #place
                let (_rax, _in) = #rt::Callee::#call(self.server, #label, _out, #pages);
                if _rax != <S as #rt::Callee>::#done {
                    #short
                    return #failure;
                }
                #unpack
                Ok(#value)
            }
        }
    }

    /// Statements of a client for what a reply hands over: a place for it, what is done if that has not come, and the name of `rax` if it
    /// has. What finds it is behind `unpack`.
    fn client_handed(
        &self,
        rt: &TokenStream,
        method: &Method,
        unpack: &mut TokenStream,
    ) -> (TokenStream, TokenStream, TokenStream) {
        let none = TokenStream::new;
        let Some(handed) = &method.reply.pages else {
            let done = if method.reply.long {
                quote! { LONG_DONE }
            } else {
                quote! { DONE }
            };
            return (none(), none(), done);
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

    /// The result of a client's method for a reply that is no success.
    fn client_failure(&self, from: &[String], rt: &TokenStream, parts: &MethodParts) -> TokenStream {
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
            let unpack = self.unpack_reply(from, rt, message, &fields, true);
            quote! { #label => { #unpack Err(#error) } }
        });
        if long {
            quote! {
                match #rt::reply_of::<S>(_rax)? {
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
    fn unpack_reply(
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
        quote! { #room #unpack }
    }

    /// The words that a leaf lies in, and where it begins, in bytes from the first of them.
    fn leaf_place(slot: &Slot, registers: &str, memory: &str) -> (Ident, Literal) {
        match slot.place {
            Place::Register(word, byte) => {
                (format_ident!("{registers}"), Literal::u32_unsuffixed(word * 8 + byte))
            }
            Place::Memory(at) => (format_ident!("{memory}"), Literal::u64_unsuffixed(at)),
        }
    }

    /// The type of a count.
    fn count_type(slot: &Slot) -> Ident {
        format_ident!("__u{}", (8 * slot.fixed.size).to_string())
    }

    /// Statements that check values and leave the words of a message in `_out`.
    fn pack(
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
                Leaf::Elements(ty, _) if self.is_text(ty) => {
                    quote! { #rt::put_list(#value.as_bytes(), &mut #words, #at); }
                }
                Leaf::Elements(..) => quote! { #rt::put_list(&#value, &mut #words, #at); },
            }
        });
        let streams = self.pack_streams(rt, message, failed);
        let mutable = if message.slots.is_empty() && !message.long {
            quote! {}
        } else {
            quote! { mut }
        };
        let block = self.pack_block(rt, message, failed, lies);
        let words = Literal::u64_unsuffixed(message.block_words());
        let fixed = Literal::u64_unsuffixed(message.memory_bytes / 8);
        let memory = match lies {
            Lies::WithCaller if message.block_words() > 0 => quote! { let mut _block = [0; #words]; },
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
    fn pack_streams(&self, rt: &TokenStream, message: &Message, failed: &TokenStream) -> TokenStream {
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
        quote! {
            let mut _stream = #rt::Out::new(&mut _block[#begin..#end]);
            #(_stream.align(8); #values)*
            let Some(_words) = _stream.finish() else { return Err(#failed) };
            let _words = #begin + _words;
        }
    }

    /// Statements that say which lists go from where they lie, and leave dope and address in the first two words.
    fn pack_block(
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
        let items = Emitter::pack_items(message);
        let mut kept = message.block_words();
        let strings = lists().zip(0u64..).map(|(chunk, number)| {
            let list = list(chunk);
            let place = |number| Emitter::behind_words(message, number);
            let (at, next) = (place(2 * number), place(2 * number + 1));
            let address = match lies {
                Lies::Nowhere => {
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

    /// Statements that hand over references behind the strings.
    fn pack_items(message: &Message) -> TokenStream {
        let items = message.handed().zip(message.strings().count() as u64..).map(|(handed, number)| {
            let (reference, granted) = (name(&handed.param), handed.grant == Some(true));
            let at = Emitter::behind_words(message, 2 * number);
            quote! {
                let _item = #reference.item(#granted);
                (_block[#at], _block[#at + 1]) = (_item.0.0, _item.1);
            }
        });
        quote! { #(#items)* }
    }

    /// The place of a word in memory that is so many words behind those of the message, however many these are.
    fn behind_words(message: &Message, number: u64) -> TokenStream {
        if has_streams(message) {
            let number = Literal::u64_unsuffixed(number);
            return quote! { _words + #number };
        }
        let place = Literal::u64_unsuffixed(message.memory_bytes / 8 + number);
        quote! { #place }
    }

    /// Words that a server keeps for a reply: all that lies nowhere else, which is everything of an exception.
    fn outgoing(message: &Message, everything: bool) -> u64 {
        let lists = message.chunks.iter().filter(|_| everything).filter_map(Chunk::bytes_max);
        lists.fold(message.block_words(), |sum, bytes| sum.saturating_add(bytes.div_ceil(8)))
    }

    /// The elements of a string, sequence or array as a slice.
    fn as_list(&self, value: &TokenStream, ty: TypeId) -> TokenStream {
        if self.is_text(ty) {
            quote! { #value.as_bytes() }
        } else {
            quote! { &#value[..] }
        }
    }

    fn kind(&self, ty: TypeId) -> &Type {
        self.model.ty(self.model.resolved(ty))
    }

    fn is_array(&self, ty: TypeId) -> bool {
        matches!(self.kind(ty), Type::Array(..))
    }

    fn is_text(&self, ty: TypeId) -> bool {
        matches!(self.kind(ty), Type::Str { .. })
    }

    /// Statements that read the words in `_in` with every check and leave the values in variables.
    ///
    /// Bounds of lists need no check of their own when a message is read: they are those of the lists' types. Bounds of
    /// text, in characters, do.
    fn unpack(
        &self,
        from: &[String],
        rt: &TokenStream,
        message: &Message,
        values: &[(String, TypeId)],
        owned: bool,
    ) -> TokenStream {
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
    fn unpack_chunk(
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

    /// What a handler hands its method a reference to: the type of a list in the room, or of something of its own.
    fn handled(&self, from: &[String], message: &Message, param: &str, ty: TypeId) -> TokenStream {
        if is_in_room(message, param) { self.reference(from, ty) } else { self.ty(from, ty) }
    }

    /// A reference to a value that lies elsewhere.
    fn reference(&self, from: &[String], ty: TypeId) -> TokenStream {
        let owned = self.ty(from, ty);
        match self.kind(ty) {
            Type::Str { .. } => quote! { &'a __str },
            Type::Sequence(of, _) => {
                let of = self.ty(from, *of);
                quote! { &'a [#of] }
            }
            _ => quote! { &'a #owned },
        }
    }

    /// What stands in the places of an interface's table that are for requests of one kind. So many bits of a label say which place; what
    /// number of a method they are, and which method that is, `method_at` says.
    fn places(
        interface: &InterfaceParts,
        kind: Kind,
        bits: u32,
        method_at: impl Fn(u32) -> Option<u32>,
    ) -> Vec<Stands> {
        let place = |place: u32| {
            let Some(method) = method_at(place.reverse_bits() >> (32 - bits)) else { return Stands::Nothing };
            match interface.methods.get(method as usize) {
                Some(parts) if Kind::of(parts) == kind => Stands::Method(method),
                Some(_) => Stands::Mismatch,
                None => Stands::Nothing,
            }
        };
        (0..1u32 << bits).map(place).collect()
    }

    /// The type of memory for messages of one direction.
    fn room_items(
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
        let count = Literal::usize_unsuffixed(room.capacities.len());
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
    fn strings_items(&self, rt: &TokenStream, room: &Room, what: &str, strings: &Ident) -> TokenStream {
        let capacities = room.capacities.iter().map(|&bytes| Literal::u64_unsuffixed(bytes));
        let doc = format!(" How long the strings of {what} may be.");
        quote! {
            #[doc = #doc]
            #[derive(Clone, Copy, Debug)]
            pub struct #strings;
            impl #rt::Strings for #strings {
                const CAPACITIES: &'static [__u32] = &[#(#capacities),*];
            }
        }
    }

    /// The body of a handler: it reads the request, calls the method, answers.
    fn register_handle(
        &self,
        way: &dyn Way,
        interface: &InterfaceParts,
        parts: &MethodParts,
    ) -> (Handling, TokenStream) {
        let InterfaceParts { from, rt, .. } = interface;
        let MethodParts { operation, method, .. } = parts;
        let inputs = self.inputs(operation);
        let read = general::values(&inputs, &method.request);
        let given = Literal::u32_unsuffixed(parts.given());
        let mut unpack = self.unpack(from, rt, &method.request, &read, false);
        unpack.extend(self.agreed(operation, false, &quote! { #rt::Malformed }));
        let value = tuple(&read.iter().map(|(n, _)| name(n)).collect::<Vec<_>>());
        let types = read.iter().map(|(n, ty)| self.handled(from, &method.request, n, *ty));
        let types = tuple(&types.collect::<Vec<_>>());
        let passed: Vec<_> = inputs.iter().map(|(n, ty)| self.argument(from, n, *ty).passed).collect();
        let method_name = name(&parts.rust);
        let (read, reading) = self.register_reading(interface, method, (&types, &value, &unpack));
        let handling = way.handling(self, interface, parts);
        let Handling { bounds, parameters, answer: answer_type, words, methods, server, lent, before } =
            &handling;
        let answer = self.register_answers(way, from, rt, parts, &given);
        let failed = way.fail(rt, &quote! { #rt::Failure::Malformed });
        let Handover { found, taken, let_go } = Handover::of(rt, &method.request, &failed);
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
                #before
                let _result = #methods::#method_name(#server, #lent #(#passed),*);
                #answer
            }
        };
        let failed = quote! { { #let_go return #failed } };
        let handle = if method.request.chunks.iter().any(|chunk| self.is_text(chunk.ty)) {
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
    fn register_reading(
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
        let read = quote! {
            #[inline(always)]
            fn _read<'a>(
                _in: #rt::Words,
                _room: &'a mut #room,
                _which: #rt::Texts,
            ) -> __Result<#types, #rt::Malformed> {
                #unpack
                Ok(#value)
            }
        };
        (read, quote! { _read(_in, &mut *_frame.room, _which) })
    }

    /// What a handler does with the result of its method.
    fn register_answers(
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
            let (done, answer) = packed_answer(message, way.answer(rt, given, label));
            let mutable = (Emitter::outgoing(message, lies == Lies::Nowhere) > 0).then(|| quote! { mut });
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
