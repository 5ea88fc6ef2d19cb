//! Rust over Tern, by ipc ([`ipc`]) or through doors ([`door`]): a client whose methods are inlined down to one system call, and a table
//! of handlers.
//!
//! The messages are the same, and so is nearly all of the text. What differs is how a client's server is called, what calls
//! a handler, and where it finds the server's data: that is a [`Way`].
//!
//! What all stubs share is the crate `stub`. A value that has a register of its own is moved there and nothing else; its
//! place is a constant in the text, so `Piece::put` and `Piece::get` leave a move, or a shift where values share.
//! A handler is a plain function whose first words arrive as arguments; generated code needs no unsafe block.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, format_ident, quote};

use super::leaves::{chunk_variable, slot_variable};
use super::{
    Element, Emitter, InterfaceParts, MethodParts, Part, Raised, Runtime, Side, name, selftest, tuple,
};
use crate::layout::{Chunk, Message, Method, Place, Room};
use crate::model::{Field, InterfaceId, Type, TypeId, bits_of};
use crate::plan::{self, Block, Content, KEPT_WORDS_MAX, Memory, Plan, Step, Variable, What, Word};
use crate::sizes::for_all_types;

mod bound;
mod client;
pub mod door;
pub(super) mod general;
pub mod ipc;
mod pack;
mod pieces;
mod references;
mod server;
mod unpack;

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

    /// The offer that a client makes of a list, and forgets at the end of a call; nothing if there is no such thing.
    fn offer(&self, list: &Ident) -> Option<TokenStream>;

    /// Statements of a handler that get a list for which there may be an offer, of at most so many bytes, or end with `declined` if the offer cannot
    /// be taken; and those behind the method.
    fn take_offer(
        &self,
        list: &Ident,
        offer: &Ident,
        bound: &Literal,
        declined: &TokenStream,
    ) -> (TokenStream, TokenStream);

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

    fn carries(&self, _: &Emitter, _: TypeId) -> bool {
        true
    }

    fn refuses(&self, emitter: &Emitter, method: &Method) -> Option<String> {
        let is_large = |message: &Message, lies: Lies| lies.words(message) > KEPT_WORDS_MAX;
        if method.exceptions.iter().any(|(_, message)| is_large(message, Lies::Nowhere)) {
            return Some(format!("an exception has more than {} bytes", 8 * KEPT_WORDS_MAX));
        }
        let large = |chunk: &&Chunk| emitter.owned_bytes(chunk.ty) > OWNED_BYTES_MAX;
        if method.messages().any(|message| message.copies && is_large(message, Lies::WithServer)) {
            return Some(format!("a message has more than {} bytes to be copied", 8 * KEPT_WORDS_MAX));
        }
        let mut owned = method.messages().flat_map(|message| {
            message.chunks.iter().filter(|chunk| chunk.element.is_none() || message.copies)
        });
        if let Some(large) = owned.find(large) {
            let path = large.path.join(".");
            return Some(format!(
                "`{path}` may have more than the {OWNED_BYTES_MAX} bytes that fit on a stack"
            ));
        }
        method.messages().find_map(|message| plan::refusal(emitter.model, &emitter.sizes, message))
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

    fn packing(&self, rt: &TokenStream) -> TokenStream {
        let most = Literal::usize_unsuffixed(PACKED_WORDS_MAX);
        quote! {
            fn pack<T: #rt::Wire>(value: &T) -> __Option<#rt::Vec<__u8>> {
                let mut words = #rt::Vec::new();
                let mut room = 32;
                let count = loop {
                    words.resize(room, 0u64);
                    let mut out = #rt::Out::new(&mut words);
                    #rt::Wire::put(value, &mut out);
                    match out.finish() {
                        Some(count) => break count,
                        None if room < #most => room *= 4,
                        None => return None,
                    }
                };
                Some(words.iter().take(count).flat_map(|word| word.to_le_bytes()).collect())
            }
            pub(super) fn unpack<T: #rt::Wire>(bytes: &[__u8]) -> __Option<T> {
                let word = |bytes: &[__u8]| bytes.try_into().ok().map(<__u64>::from_le_bytes);
                let words: #rt::Vec<__u64> = bytes.chunks(8).map(word).collect::<__Option<_>>()?;
                let mut from = #rt::In::new(&words);
                let value = #rt::Wire::get(&mut from).ok()?;
                from.finish().ok()?;
                Some(value)
            }
        }
    }

    fn owns(&self, emitter: &Emitter, ty: TypeId) -> bool {
        emitter.owned_bytes(ty) <= OWNED_BYTES_MAX
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
        if !method.needs_inbox() {
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
        let blank = emitter.blank(from, ty);
        if emitter.refers(ty) {
            let (wire, gives) = (emitter.wire(from, ty), emitter.gives(from, ty));
            return quote! { #blank #wire #gives };
        }
        let (piece, flat) = (emitter.piece(from, ty), emitter.flat(from, ty));
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
        let client = methods.iter().map(|method| emitter.register_client(self.0, from, rt, method));
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
        items.extend(emitter.bound(interface));
        items.extend(self.0.server(emitter, interface));
        items
    }

    fn selftest(&self) -> &'static dyn selftest::SelfTest {
        self.0.selftest()
    }
}

impl MethodParts<'_> {
    /// Words that a server keeps for a reply.
    fn outgoing(&self) -> u64 {
        let exceptions = self.method.exceptions.iter().map(|(_, message)| Lies::Nowhere.words(message));
        exceptions.fold(Lies::WithServer.words(&self.method.reply), u64::max)
    }
}

/// Variable for the number of the offer that may stand for the bytes of a list.
fn offer_of(path: &[String]) -> Ident {
    format_ident!("_offer_{}", path.join("_"))
}

/// How many strings and parameters a part in memory describes.
fn described(rt: &TokenStream, block: Block) -> TokenStream {
    let strings = Literal::u64_unsuffixed(block.strings);
    match block.items {
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
    let window = method.reply.pages.as_ref().filter(|_| !method.reply.long);
    let window = window.map(|handed| match emitter.is_owned_reference(handed.ty) {
        true => quote! { .window(_place.window()) },
        false => quote! { .window(_window) },
    });
    let taking = method.needs_inbox().then(|| quote! { .taking() });
    Some(quote! { #rt::Pages::NONE #long #given #window #taking })
}

/// Whether a part of a parameter or result is a list in memory. What brings references is its holder's, wherever it has been.
fn has_memory(message: &Message, param: &str) -> bool {
    let mut lists = message.chunks.iter().filter(|chunk| chunk.references == 0);
    lists.any(|chunk| chunk.path.first().is_some_and(|first| first == param))
}

/// Whether a parameter or result is a list that is used where it has arrived.
fn is_in_room(message: &Message, param: &str) -> bool {
    let mut lists = message.chunks.iter().filter(|chunk| chunk.element.is_some() && !message.copies);
    lists.any(|chunk| matches!(&chunk.path[..], [path] if path == param))
}

/// Bytes of what is known of a value that lies elsewhere.
const ELSEWHERE_BYTES: u64 = 24;

/// Words of a packed value: more than the content of an `any` has in a message.
const PACKED_WORDS_MAX: usize = 32 << 6;

/// Bytes of something that is read piece by piece, as its reader has it: on the stack.
const OWNED_BYTES_MAX: u64 = 32 << 10;

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
        let found = quote! { let mut _items = _frame.room.items(_w0); };
        match &references[..] {
            [] if request.hands_from_memory() => {
                Handover { found, taken: TokenStream::new(), let_go: quote! { _items.let_go(); } }
            }
            [] => Handover::default(),
            _ if request.long => {
                let numbers = (0..references.len()).map(Literal::usize_unsuffixed);
                Handover {
                    found,
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

/// The pattern for the words of a packed reply, and the answer with whatever else it brings; a handler whose method gives no flexpage
/// ends with `failed`.
fn packed_answer(
    emitter: &Emitter,
    rt: &TokenStream,
    message: &Message,
    answer: TokenStream,
    failed: &TokenStream,
) -> (TokenStream, TokenStream) {
    let (packed, answer) = match &message.pages {
        _ if message.hands_from_memory() => {
            let gone = emitter.all_gone(rt, message);
            (quote! { Ok(_out) }, quote! { { #gone #answer } })
        }
        Some(handed) if !emitter.is_owned_reference(handed.ty) => {
            let page = general::handed(rt, handed);
            let give = quote! {
                let _page: #rt::Fpage = #page;
                if !_page.is_valid() {
                    return #failed;
                }
                (_out[6], _out[7]) = (_page.0, 0);
            };
            (quote! { Ok(mut _out) }, quote! { #give #answer.with_item() })
        }
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

impl Lies {
    /// Whether lists are copied by who makes a message.
    fn are_copied(self, message: &Message) -> bool {
        self == Lies::Nowhere || message.copies
    }

    /// Words of memory in which a message is made.
    fn words(self, message: &Message) -> u64 {
        plan::words(message, |_| self.are_copied(message))
    }
}

/// The type of a count.
fn count_type(step: &Step) -> Ident {
    format_ident!("__u{}", (8 * step.bytes).to_string())
}

impl Emitter<'_> {
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

    fn is_text(&self, ty: TypeId) -> bool {
        matches!(self.kind(ty), Type::Str { .. })
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
}
