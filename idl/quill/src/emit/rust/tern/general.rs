//! Servers that look at each message themselves: because one thread serves several interfaces, because an answer comes later,
//! or because pages are handed over, which the loop of [`ipc`](super::ipc) cannot do.
//!
//! They get an enum `Request` with what messages say, an enum `Answer` with what replies say, and `dispatch`, which asks the
//! methods of a `Server` for the one with the other. All of it is for messages that fit into the registers of the general
//! form of ipc; an interface with a longer one has nothing of this.

use std::collections::HashSet;

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, quote};

use super::super::names::escaped;
use super::super::{Emitter, InterfaceParts, MethodParts, Raised, camel, name, tuple};
use super::Lies;
use crate::layout::{Handed, Message};

/// The names that an interface's requests and answers have in the output.
struct Names {
    request: Ident,
    answer: Ident,
    dispatch: Ident,
    /// One for each method.
    variants: Vec<Ident>,
}

/// The fields of a variant in their braces; one without fields has none.
fn in_braces(fields: impl ExactSizeIterator<Item = impl ToTokens>) -> TokenStream {
    if fields.len() == 0 {
        return TokenStream::new();
    }
    quote! { { #(#fields),* } }
}

impl Emitter<'_> {
    /// Requests, answers and `dispatch`; and `serve`, if pages are handed over.
    pub(in crate::emit::rust) fn general(&self, interface: &InterfaceParts) -> Vec<TokenStream> {
        let InterfaceParts { from, methods, .. } = interface;
        if !methods.iter().all(|parts| parts.method.is_general()) {
            return Vec::new();
        }
        let mut taken = HashSet::new();
        let variants = methods.iter().map(|parts| {
            let mut variant = escaped(&camel(&parts.rust));
            while !taken.insert(variant.clone()) {
                variant.push('_');
            }
            name(&variant)
        });
        let names = Names {
            request: self.own_name(from, "Request"),
            answer: self.own_name(from, "Answer"),
            dispatch: self.own_name(from, "dispatch"),
            variants: variants.collect(),
        };
        let mut items = self.requests(interface, &names);
        items.extend(self.number(interface));
        items.extend(self.answers(interface, &names));
        items.push(self.dispatch(interface, &names));
        if interface.hands_pages() {
            items.push(self.serve_pages(interface, &names));
        }
        items
    }

    /// The number of the interface, for a thread that serves several.
    fn number(&self, interface: &InterfaceParts) -> Option<TokenStream> {
        let path = interface.from.join("::");
        let number = self.model.interfaces.iter().find(|i| i.name == path)?.number;
        let (constant, literal) = (self.own_name(&interface.from, "NUMBER"), Literal::u16_unsuffixed(number));
        (number > 0).then(|| {
            quote! {
                /// What [`interface_of`](::stub::interface_of) says of requests for this interface.
                pub const #constant: __u16 = #literal;
            }
        })
    }

    /// What a message asks for.
    fn requests(&self, interface: &InterfaceParts, names: &Names) -> Vec<TokenStream> {
        let InterfaceParts { from, rt, methods, .. } = interface;
        let Names { request, variants, .. } = names;
        let both = || methods.iter().zip(variants);
        let declared = both().map(|(parts, variant)| {
            let doc = format!(" The operation `{}`.", parts.operation.name);
            let inputs = self.inputs(parts.operation);
            let fields = inputs.iter().map(|(n, ty)| (name(n), self.ty(from, *ty)));
            let fields = in_braces(fields.map(|(n, ty)| quote! { #n: #ty }));
            quote! { #[doc = #doc] #variant #fields }
        });
        let read = both().map(|(MethodParts { operation, method, .. }, variant)| {
            let label = Literal::u32_unsuffixed(method.request.label);
            let inputs = self.inputs(operation);
            let unpack = self.unpack(from, rt, &method.request, &values(&inputs, &method.request), false);
            let agreed = self.agreed(operation, false, &quote! { #rt::Failure::Malformed });
            let fields = in_braces(inputs.iter().map(|(n, _)| name(n)));
            // Who sends a oneway request does not wait; who waits for the answer to one would do so in vain.
            let kind = if operation.oneway {
                quote! { #rt::Kind::Reply }
            } else {
                quote! { #rt::Kind::Request }
            };
            let pages = match &method.request.pages {
                Some(pages) => {
                    let page = name(&pages.param);
                    quote! { let #page = #rt::pages_of(_message, #kind)?; }
                }
                None => quote! { #rt::no_pages(_message, #kind)?; },
            };
            quote! { #label => { #pages #unpack #agreed Ok(#request::#variant #fields) } }
        });
        vec![
            quote! {
                /// What a message asks for.
                #[derive(Clone, Debug)]
                #[allow(missing_docs)]
                pub enum #request { #(#declared),* }
            },
            quote! {
                impl #request {
                    /// Reads a message, with every check. The failure is what to answer.
                    pub fn read(_message: &#rt::Message) -> __Result<#request, #rt::Failure> {
                        let _in = #rt::words_of(_message);
                        match _message.label {
                            #(#read)*
                            _ => Err(#rt::Failure::Refused(#rt::NO_METHOD)),
                        }
                    }
                }
            },
        ]
    }

    /// What a method gives back.
    fn answers(&self, interface: &InterfaceParts, names: &Names) -> Vec<TokenStream> {
        let InterfaceParts { from, rt, methods, .. } = interface;
        let Names { answer, variants, .. } = names;
        let both = || methods.iter().zip(variants).filter(|(parts, _)| !parts.operation.oneway);
        let declared = both().map(|(parts, variant)| {
            let doc = format!(" Of the operation `{}`.", parts.operation.name);
            let results = self.results(parts.operation);
            let types: Vec<_> = results.iter().map(|(_, ty)| self.ty(from, *ty)).collect();
            let content = match &types[..] {
                _ if !parts.operation.raises.is_empty() => {
                    let (result, error) = (tuple(&types), &parts.error);
                    quote! { (__Result<#result, #error>) }
                }
                [] => quote! {},
                types => quote! { (#(#types),*) },
            };
            quote! { #[doc = #doc] #variant #content }
        });
        let written = both().map(|(parts, variant)| self.answer(interface, parts, (answer, variant)));
        vec![
            quote! {
                /// What a reply says.
                #[derive(Debug)]
                pub enum #answer { #(#declared),* }
            },
            quote! {
                impl __From<#answer> for #rt::Reply {
                    fn from(_answer: #answer) -> #rt::Reply {
                        let _write = || -> __Result<#rt::Reply, #rt::Failure> {
                            match _answer { #(#written)* }
                        };
                        _write().unwrap_or_else(#rt::Reply::from)
                    }
                }
            },
        ]
    }

    /// What makes replies of a method's answers.
    fn answer(
        &self,
        interface: &InterfaceParts,
        parts: &MethodParts,
        (answer, variant): (&Ident, &Ident),
    ) -> TokenStream {
        let InterfaceParts { from, rt, .. } = interface;
        let MethodParts { operation, method, error, .. } = parts;
        let failed = quote! { #rt::Failure::TooLong };
        let reply = |message: &Message, all: &[(String, _)]| {
            let label = Literal::u32_unsuffixed(message.label);
            let pack = self.pack(rt, message, &values(all, message), &failed, Lies::WithCaller);
            let pages = message.pages.as_ref().map(|pages| {
                let page = handed(rt, pages);
                quote! { .with_pages(#page) }
            });
            quote! { { #pack Ok(#rt::Reply::of(#label, &_out) #pages) } }
        };
        let results = self.results(operation);
        let names: Vec<Ident> = results.iter().map(|(n, _)| name(n)).collect();
        let done = reply(&method.reply, &results);
        if operation.raises.is_empty() {
            let pattern = if names.is_empty() {
                quote! {}
            } else {
                quote! { (#(#names),*) }
            };
            return quote! { #answer::#variant #pattern => #done };
        }
        let pattern = tuple(&names);
        let raised = self.raised(from, parts).into_iter().map(|Raised { message, fields, error }| {
            let reply = reply(message, &fields);
            quote! { #answer::#variant(Err(#error)) => #reply }
        });
        quote! {
            #answer::#variant(Ok(#pattern)) => #done
            #(#raised)*
            #answer::#variant(Err(#error::Failure(_failure))) => Err(_failure),
        }
    }

    /// What asks a server's methods.
    fn dispatch(&self, interface: &InterfaceParts, names: &Names) -> TokenStream {
        let InterfaceParts { from, rt, server_trait, methods, .. } = interface;
        let Names { request, answer, dispatch, variants } = names;
        let arms = methods.iter().zip(variants).map(|(MethodParts { operation, rust, .. }, variant)| {
            let inputs = self.inputs(operation);
            let fields = in_braces(inputs.iter().map(|(n, _)| name(n)));
            let passed = inputs.iter().map(|(n, ty)| self.argument(from, n, *ty).passed);
            let method = name(rust);
            let result = quote! { #server_trait::#method(_server, #(#passed),*) };
            let results: Vec<Ident> = self.results(operation).iter().map(|(n, _)| name(n)).collect();
            let pattern = tuple(&results);
            let content = if results.is_empty() {
                quote! {}
            } else {
                quote! { (#(#results),*) }
            };
            let body = if operation.oneway {
                quote! { { let _ = #result; None } }
            } else if operation.raises.is_empty() {
                quote! {
                    Some(match #result {
                        Ok(#pattern) => #answer::#variant #content.into(),
                        Err(_failure) => _failure.into(),
                    })
                }
            } else {
                quote! { Some(#answer::#variant(#result).into()) }
            };
            quote! { Ok(#request::#variant #fields) => #body, }
        });
        let oneway = methods.iter().filter(|parts| parts.operation.oneway);
        let oneway: Vec<_> =
            oneway.map(|parts| Literal::u32_unsuffixed(parts.method.request.label)).collect();
        let oneway = (!oneway.is_empty()).then(|| {
            quote! { && !(_message.kind == #rt::Kind::Reply && matches!(_message.label, #(#oneway)|*)) }
        });
        let none = methods.is_empty().then(|| quote! { Ok(_) => None, });
        quote! {
            /// Asks a server about a message; what it answers, if it answers at once.
            pub fn #dispatch<S: #server_trait>(_server: &mut S, _message: &#rt::Message) -> __Option<#rt::Reply> {
                let _waits = _message.kind == #rt::Kind::Request;
                if !_waits #oneway {
                    return #server_trait::other(_server, _message);
                }
                #server_trait::caller(_server, _message.sender);
                match #request::read(_message) {
                    #(#arms)*
                    #none
                    Err(_failure) => _waits.then(|| _failure.into()),
                }
            }
        }
    }

    /// The loop of a server that hands pages over, or gets some.
    fn serve_pages(&self, interface: &InterfaceParts, names: &Names) -> TokenStream {
        let InterfaceParts { from, rt, server_trait, .. } = interface;
        let (serve, dispatch) = (self.own_name(from, "serve"), &names.dispatch);
        quote! {
            /// Answers requests, forever; returns only if `_window` is no flexpage. Pages arrive there, in the place of those that
            /// came before.
            pub fn #serve<S: #server_trait>(_server: &mut S, _window: #rt::Fpage) -> #rt::Failure {
                #rt::serve_general(_window, |_message| #dispatch(_server, _message))
            }
        }
    }
}

/// The values of a message besides the pages that it hands over.
pub(super) fn values<T: Copy>(all: &[(String, T)], message: &Message) -> Vec<(String, T)> {
    let is_value = |n: &str| message.handed().all(|handed| handed.param != n);
    all.iter().filter(|(n, _)| is_value(n)).cloned().collect()
}

/// The flexpage of a map item.
pub(super) fn handed(rt: &TokenStream, pages: &Handed) -> TokenStream {
    let page = name(&pages.param);
    match pages.grant {
        None => quote! { #page },
        Some(false) => quote! { #rt::mapped(#page) },
        Some(true) => quote! { #rt::granted(#page) },
    }
}
