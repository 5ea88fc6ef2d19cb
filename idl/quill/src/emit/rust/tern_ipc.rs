//! Rust over `tern-ipc`: a client whose methods are inlined down to one system call, and a table of handlers.
//!
//! What all stubs share is the crate `stub`. A value that has a register of its own is moved there and nothing else; its
//! place is a constant in the text, so `Piece::put` and `Piece::get` leave a move, or a shift where values share.
//! A handler is a plain function whose first words arrive as arguments; generated code needs no unsafe block.

use std::collections::HashMap;

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::{Element, Emitter, InterfaceParts, MethodParts, Part, Runtime, fields_of, name, selftest, tuple};
use crate::kernel::table_bits;
use crate::layout::{Leaf, Message, Place, Slot};
use crate::model::{Field, Type, TypeId};

/// The crate that stubs share.
const CRATE: &str = "stub";

/// Rust over Tern's ipc.
#[derive(Clone, Copy, Debug)]
pub struct TernIpc;

impl Part for TernIpc {
    fn runtime(&self) -> Runtime {
        Runtime::Crate(CRATE)
    }

    fn carries(&self, emitter: &Emitter, ty: TypeId) -> bool {
        match emitter.model.ty(emitter.model.resolved(ty)) {
            Type::Str { bound, .. } => bound.is_some_and(|bound| bound <= ELEMENTS_MAX),
            Type::Sequence(of, bound) => {
                emitter.sizes.fixed(*of).is_some() && bound.is_some_and(|bound| bound <= ELEMENTS_MAX)
            }
            Type::Union { .. } => false,
            _ => true,
        }
    }

    fn list(&self, rt: &TokenStream, element: Element, bound: Option<u64>) -> TokenStream {
        let bound = bound.unwrap_or(0);
        match element {
            Element::Text => {
                let bytes = Literal::u64_unsuffixed(bound.saturating_mul(4));
                quote! { #rt::Text<#bytes> }
            }
            Element::Of(of) => {
                let bound = Literal::u64_unsuffixed(bound);
                quote! { #rt::List<#of, #bound> }
            }
        }
    }

    fn client_is_exclusive(&self) -> bool {
        false
    }

    fn implement(&self, emitter: &Emitter, from: &[String], ty: TypeId) -> TokenStream {
        emitter.piece(from, ty)
    }

    fn server_extras(&self, rt: &TokenStream) -> TokenStream {
        quote! {
            /// Hears who calls, before each method.
            #[inline(always)]
            fn caller(&mut self, _from: #rt::Uid) {}
            /// Answers a message that is no plain request: a fault, an interrupt, one with a map item.
            fn other(&mut self, _message: &#rt::Message) -> __Option<#rt::Reply> {
                #rt::decline(_message)
            }
        }
    }

    fn interface(&self, emitter: &Emitter, interface: &InterfaceParts) -> Vec<TokenStream> {
        let InterfaceParts { from, rt, client_struct, methods, .. } = interface;
        let client = methods.iter().map(|method| emitter.register_client(from, rt, method));
        let mut items = vec![
            quote! {
                /// Calls a server.
                #[derive(Clone, Copy, Debug)]
                pub struct #client_struct {
                    /// The thread that serves.
                    pub server: #rt::Uid,
                }
            },
            quote! { impl #client_struct { #(#client)* } },
        ];
        items.extend(emitter.register_server(interface));
        items
    }
    fn selftest(&self) -> &'static dyn selftest::SelfTest {
        &selftest::TernIpc
    }
}

/// Elements of a list that could ever be in registers.
const ELEMENTS_MAX: u64 = 88;

impl Emitter<'_> {
    /// What makes a type of fixed size travel in words.
    fn piece(&self, from: &[String], id: TypeId) -> TokenStream {
        let rt = self.runtime(from);
        let Some(fixed) = self.sizes.fixed(id) else { return TokenStream::new() };
        let bytes = Literal::u64_unsuffixed(fixed.size);
        let ident = |path: &str| name(&self.place(path).1);
        let (ident, any, put, get) = match self.model.ty(id) {
            Type::Struct(path, fields) => {
                let (any, put, get) = self.struct_piece(from, &rt, fields);
                (ident(path), any, put, get)
            }
            Type::Enum(path, members) => {
                let ident = ident(path);
                let names: Vec<_> = members.iter().map(|m| name(&m.0)).collect();
                let numbers = (0..names.len()).map(Literal::usize_unsuffixed);
                let first = &names[0];
                let get = quote! {
                    match <__u32 as #rt::Piece>::get(_words, _at)? {
                        #(#numbers => Ok(#ident::#names),)*
                        _ => Err(#rt::Malformed),
                    }
                };
                let put = quote! { #rt::Piece::put(&(*self as __u32), _words, _at) };
                (ident.clone(), quote! { #ident::#first }, put, get)
            }
            Type::Bitmask(path, bits, members) => {
                let ident = ident(path);
                let number = format_ident!("__u{}", bits.to_string());
                let all = Literal::u128_unsuffixed(Emitter::bits_of(members));
                let get = quote! {
                    let bits = <#number as #rt::Piece>::get(_words, _at)?;
                    if bits & !#all == 0 { Ok(#ident(bits)) } else { Err(#rt::Malformed) }
                };
                (ident.clone(), quote! { #ident(0) }, quote! { #rt::Piece::put(&self.0, _words, _at) }, get)
            }
            _ => return TokenStream::new(),
        };
        quote! {
            impl #rt::Piece for #ident {
                const BYTES: __usize = #bytes;
                const ANY: #ident = #any;
                #[inline(always)]
                fn put(&self, _words: &mut #rt::Words, _at: __usize) { #put }
                #[inline(always)]
                fn get(_words: &#rt::Words, _at: __usize) -> __Result<#ident, #rt::Malformed> { #get }
            }
        }
    }

    /// Some value of a struct, how it is written, and how it is read.
    fn struct_piece(
        &self,
        from: &[String],
        rt: &TokenStream,
        fields: &[Field],
    ) -> (TokenStream, TokenStream, TokenStream) {
        let names: Vec<_> = fields.iter().map(|f| name(&f.name)).collect();
        let types: Vec<_> = fields.iter().map(|f| self.ty(from, f.ty)).collect();
        let offsets: Vec<_> = self.sizes.offsets(fields).into_iter().map(Literal::u64_unsuffixed).collect();
        (
            quote! { Self { #(#names: <#types as #rt::Piece>::ANY),* } },
            quote! { #(#rt::Piece::put(&self.#names, _words, _at + #offsets);)* },
            quote! { Ok(Self { #(#names: <#types as #rt::Piece>::get(_words, _at + #offsets)?),* }) },
        )
    }

    /// A method of the client.
    fn register_client(&self, from: &[String], rt: &TokenStream, parts: &MethodParts) -> TokenStream {
        let MethodParts { operation, method, error, signature, .. } = parts;
        let label = Literal::u32_unsuffixed(method.request.label);
        let failed = quote! { #rt::Failure::TooLong.into() };
        let pack = self.pack(rt, &method.request, &self.inputs(operation), &failed);
        let words = Literal::u32_unsuffixed(method.request.registers);
        if operation.oneway {
            return quote! {
                #[inline]
                #signature {
                    #pack
                    #rt::send(self.server, #label, _out)
                }
            };
        }
        let results = self.results(operation);
        let unpack = self.unpack(from, rt, &method.reply, &results);
        let values: Vec<Ident> = results.iter().map(|(n, _)| name(n)).collect();
        let value = tuple(&values);
        let failure = if operation.raises.is_empty() {
            quote! { Err(#rt::failure(_rax)) }
        } else {
            let exceptions =
                self.variants(operation).into_iter().zip(&method.exceptions).zip(&operation.raises);
            let arms = exceptions.map(|(((variant, path), (_, message)), id)| {
                let label = message.label;
                let fields = fields_of(&self.model.exceptions[id.0 as usize].fields);
                let unpack = self.unpack(from, rt, message, &fields);
                let names = fields.iter().map(|(n, _)| name(n));
                let path = self.path(from, &path);
                quote! { #label => { #unpack Err(#error::#variant(#path { #(#names),* })) } }
            });
            quote! {
                match #rt::label_of(_rax)? {
                    #(#arms)*
                    _label => Err(#rt::Failure::Refused(_label).into()),
                }
            }
        };
        quote! {
            #[inline(always)]
            #signature {
                #pack
                let (_rax, _in) = #rt::call::<#words>(self.server, #label, _out);
                if _rax != #rt::DONE {
                    return #failure;
                }
                #unpack
                Ok(#value)
            }
        }
    }

    /// Where a leaf begins, in bytes from the first word.
    fn register_offset(slot: &Slot) -> Literal {
        match slot.place {
            Place::Register(word, byte) => Literal::u32_unsuffixed(word * 8 + byte),
            // The layout refused what needs memory.
            Place::Memory(_) => Literal::u32_unsuffixed(0),
        }
    }

    /// Statements that check values and leave the words of a message in `_out`.
    fn pack(
        &self,
        rt: &TokenStream,
        message: &Message,
        values: &[(String, TypeId)],
        failed: &TokenStream,
    ) -> TokenStream {
        let bounds = values.iter().map(|(param, ty)| {
            let value = name(param);
            let own = self.bounds(*ty, &quote! { #value }, failed, 0);
            let inner = self.struct_bounds(*ty, &quote! { #value }, failed, 0);
            quote! { #own #inner }
        });
        let slots = message.slots.iter().map(|slot| {
            let value = Emitter::leaf(&slot.path);
            let at = Emitter::register_offset(slot);
            match slot.leaf {
                // As a method, so that it does not matter whether the value is there or a reference to it.
                Leaf::Value(_) => quote! { { use #rt::Piece as _; #value.put(&mut _out, #at); } },
                Leaf::Count(_) => quote! { #rt::Piece::put(&(#value.len() as __u32), &mut _out, #at); },
                Leaf::Elements(ty, _) if self.is_text(ty) => {
                    quote! { #rt::put_list(#value.as_bytes(), &mut _out, #at); }
                }
                Leaf::Elements(..) => quote! { #rt::put_list(&#value, &mut _out, #at); },
            }
        });
        let mutable = if message.slots.is_empty() {
            quote! {}
        } else {
            quote! { mut }
        };
        quote! {
            #(#bounds)*
            let #mutable _out: #rt::Words = [0; #rt::WORDS];
            #(#slots)*
        }
    }

    fn is_text(&self, ty: TypeId) -> bool {
        matches!(self.model.ty(self.model.resolved(ty)), Type::Str { .. })
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
    ) -> TokenStream {
        let mut variables: HashMap<&[String], Ident> = HashMap::new();
        let mut counts: HashMap<&[String], Ident> = HashMap::new();
        let mut statements = Vec::new();
        let failed = quote! { #rt::Malformed.into() };
        for (i, slot) in message.slots.iter().enumerate() {
            let variable = format_ident!("_slot_{}", i.to_string());
            let at = Emitter::register_offset(slot);
            match slot.leaf {
                Leaf::Value(ty) => {
                    let ty = self.ty(from, ty);
                    statements.push(quote! { let #variable = <#ty as #rt::Piece>::get(&_in, #at)?; });
                    variables.insert(&slot.path, variable);
                }
                Leaf::Count(_) => {
                    statements.push(quote! { let #variable = <__u32 as #rt::Piece>::get(&_in, #at)?; });
                    counts.insert(&slot.path, variable);
                }
                Leaf::Elements(ty, _) => {
                    let count = counts.get(slot.path.as_slice());
                    let text = self.is_text(ty);
                    let ty = self.ty(from, ty);
                    let get = if text {
                        quote! { get_text }
                    } else {
                        quote! { get_list }
                    };
                    statements.push(quote! { let #variable: #ty = #rt::#get(&_in, #at, #count)?; });
                    variables.insert(&slot.path, variable);
                }
            }
        }
        for (param, ty) in values {
            let value = self.build(from, &mut vec![param.clone()], *ty, &variables, 0);
            let ident = name(param);
            let own = self.bounds(*ty, &quote! { #ident }, &failed, 0);
            let inner = self.struct_bounds(*ty, &quote! { #ident }, &failed, 0);
            statements.push(quote! { let #ident = #value; #own #inner });
        }
        quote! { #(#statements)* }
    }

    /// The handlers, the table, and `serve`.
    fn register_server(&self, interface: &InterfaceParts) -> Vec<TokenStream> {
        let InterfaceParts { from, rt, server_trait, methods, .. } = interface;
        let (table, handler, serve) =
            (self.own_name(from, "Table"), self.own_name(from, "Method"), self.own_name(from, "serve"));
        let bits = table_bits(methods.len());
        let shift = 64 - bits;
        let places = (0..1u32 << bits).map(|place| {
            let number = place.reverse_bits() >> (32 - bits);
            if (number as usize) < methods.len() {
                quote! { #rt::entry::<#handler<S, #number>>() }
            } else {
                quote! { #rt::entry::<#rt::NoMethod<#table<S>>>() }
            }
        });
        let length = Literal::u32_unsuffixed(1 << bits);
        let mut items = vec![
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
                    const SHIFT: __u32 = #shift;
                    fn other(_server: &mut S, _message: &#rt::Message) -> __Option<#rt::Reply> {
                        #server_trait::other(_server, _message)
                    }
                }
            },
            quote! {
                /// Answers requests, forever.
                pub fn #serve<S: #server_trait>(_server: &mut S) -> ! {
                    #rt::serve::<#table<S>>(_server, &#table::<S>::PLACES)
                }
            },
            quote! { struct #handler<S, const NUMBER: __u32>(::core::marker::PhantomData<S>); },
        ];
        for (number, method) in methods.iter().enumerate() {
            items.push(self.register_handler(interface, &table, &handler, number as u32, method));
        }
        items
    }

    /// What stands in the table for a method.
    fn register_handler(
        &self,
        interface: &InterfaceParts,
        table: &Ident,
        handler: &Ident,
        number: u32,
        parts: &MethodParts,
    ) -> TokenStream {
        let InterfaceParts { from, rt, server_trait, .. } = interface;
        let MethodParts { operation, method, .. } = parts;
        let inputs = self.inputs(operation);
        let taken = Literal::u32_unsuffixed(method.request.registers);
        let replies = method.exceptions.iter().map(|(_, message)| message).chain([&method.reply]);
        let given = replies.map(|m| m.registers).max().unwrap_or(0);
        let given = Literal::u32_unsuffixed(if operation.oneway { 0 } else { given });
        let unpack = self.unpack(from, rt, &method.request, &inputs);
        let values: Vec<Ident> = inputs.iter().map(|(n, _)| name(n)).collect();
        let value = tuple(&values);
        let types: Vec<TokenStream> = inputs.iter().map(|(_, ty)| self.ty(from, *ty)).collect();
        let types = tuple(&types);
        let passed = inputs.iter().map(|(n, ty)| self.argument(from, n, *ty).passed);
        let method_name = name(&parts.rust);
        let call = quote! {
            let #value = match _read() {
                Ok(_values) => _values,
                Err(_) => return #rt::fail(_frame, _from, #rt::Failure::Malformed),
            };
            #server_trait::caller(_frame.server, #rt::Uid(_from));
            let _result = #server_trait::#method_name(_frame.server, #(#passed),*);
        };
        let answer = if operation.oneway {
            quote! { let _ = _result; #rt::Answer::done(0) }
        } else {
            self.register_answers(from, rt, parts, &given)
        };
        quote! {
            impl<S: #server_trait> #rt::Handler for #handler<S, #number> {
                type Loop = #table<S>;
                const IN: __usize = #taken;
                const OUT: __usize = #given;
                extern "sysv64" fn handle(
                    _w0: __u64,
                    _w1: __u64,
                    _from: __u64,
                    _frame: &mut #rt::Frame<#table<S>>,
                    _w2: __u64,
                    _w3: __u64,
                ) -> #rt::Answer {
                    let [_, _, _, _, _w4, _w5, _w6, _w7, _w8, _w9, _w10] = _frame.words;
                    let _in: #rt::Words = [_w0, _w1, _w2, _w3, _w4, _w5, _w6, _w7, _w8, _w9, _w10];
                    let _read = || -> __Result<#types, #rt::Malformed> { #unpack Ok(#value) };
                    #call
                    #answer
                }
            }
        }
    }

    /// What a handler does with the result of its method.
    fn register_answers(
        &self,
        from: &[String],
        rt: &TokenStream,
        parts: &MethodParts,
        given: &Literal,
    ) -> TokenStream {
        let MethodParts { operation, method, error, .. } = parts;
        let results = self.results(operation);
        let values: Vec<Ident> = results.iter().map(|(n, _)| name(n)).collect();
        let pattern = tuple(&values);
        // What the server returns is checked like what it is given: a reply never breaks its own type.
        let reply = |message: &Message, values: &[(String, TypeId)], answer: TokenStream| {
            let failed = quote! { () };
            let pack = self.pack(rt, message, values, &failed);
            quote! {
                let _pack = || -> __Result<#rt::Words, ()> { #pack Ok(_out) };
                match _pack() {
                    Ok(_out) => {
                        #rt::store::<_, #given>(_frame, &_out);
                        #answer
                    }
                    Err(()) => #rt::fail(_frame, _from, #rt::Failure::TooLong),
                }
            }
        };
        let done = reply(&method.reply, &results, quote! { #rt::Answer::done(_from) });
        let exceptions = self.variants(operation).into_iter().zip(&method.exceptions).zip(&operation.raises);
        let exceptions: Vec<TokenStream> = exceptions
            .map(|(((variant, path), (_, message)), id)| {
                let fields = fields_of(&self.model.exceptions[id.0 as usize].fields);
                let label = message.label;
                let reply = reply(message, &fields, quote! { #rt::Answer::label(_from, #label) });
                let names = fields.iter().map(|(n, _)| name(n));
                let path = self.path(from, &path);
                quote! { Err(#error::#variant(#path { #(#names),* })) => { #reply } }
            })
            .collect();
        let failure = if operation.raises.is_empty() {
            quote! { Err(_failure) }
        } else {
            quote! { Err(#error::Failure(_failure)) }
        };
        quote! {
            match _result {
                Ok(#pattern) => { #done }
                #(#exceptions)*
                #failure => #rt::fail(_frame, _from, _failure),
            }
        }
    }
}
