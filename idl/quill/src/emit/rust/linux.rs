//! Rust over `linux`: `Client` and `dispatch`, with the runtime in the file itself.
//!
//! All types implement the runtime's `Wire`, which reads with every check: a truth value is 0 or 1, an enum one of its
//! names, a discriminator one of its labels, a length within its bound and within the message.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::leaves::{chunk_variable, slot_variable};
use super::{
    Element, Emitter, InterfaceParts, MethodParts, Part, Raised, Runtime, contexts, name, selftest, tuple,
};
use crate::layout::{Message, Method};
use crate::model::{Type, TypeId};
use crate::plan::{Content, Plan, Variable, What};

pub(super) mod wire;

/// The runtime, a module of each output.
const RUNTIME: &str = concat!(include_str!("linux/runtime.rs"), include_str!("linux/way.rs"));

/// Rust over Unix-domain sockets.
#[derive(Clone, Copy, Debug)]
pub struct Linux;

impl Part for Linux {
    fn runtime(&self) -> Runtime {
        Runtime::Inside { text: RUNTIME, for_any: include_str!("linux/packed.rs") }
    }
    fn carries(&self, _: &Emitter, _: TypeId) -> bool {
        true
    }
    fn object(&self, rt: &TokenStream) -> TokenStream {
        quote! { #rt::Object }
    }
    fn refuses(&self, _: &Emitter, _: &Method) -> Option<String> {
        None
    }

    fn list(&self, _: &TokenStream, element: Element, _: Option<u64>) -> TokenStream {
        match element {
            Element::Text => quote! { __String },
            Element::Of(of) => quote! { __Vec<#of> },
        }
    }
    fn packing(&self, rt: &TokenStream) -> TokenStream {
        quote! {
            fn pack<T: #rt::Wire>(value: &T) -> __Option<__Vec<__u8>> { #rt::pack(value) }
            pub(super) fn unpack<T: #rt::Wire>(bytes: &[__u8]) -> __Option<T> { #rt::unpack(bytes) }
        }
    }
    fn implement(&self, emitter: &Emitter, from: &[String], ty: TypeId) -> TokenStream {
        emitter.wire(from, ty)
    }
    fn server_extras(&self, _: &TokenStream) -> TokenStream {
        TokenStream::new()
    }
    fn runs_down(&self) -> bool {
        true
    }
    fn interface(&self, emitter: &Emitter, interface: &InterfaceParts) -> Vec<TokenStream> {
        emitter.socket_interface(interface)
    }
    fn selftest(&self) -> &'static dyn selftest::SelfTest {
        &selftest::Linux
    }
}

impl Emitter<'_> {
    /// Statements that write a message into `out`. The values are variables called like the first part of each path.
    fn write(
        &self,
        rt: &TokenStream,
        message: &Message,
        values: &[(String, TypeId)],
        failed: &TokenStream,
    ) -> TokenStream {
        let bounds = self.all_bounds(values, failed);
        let plan = Plan::of(self.model, message);
        let fixed = plan.fixed.iter().map(|step| {
            let value = Emitter::leaf(step.path);
            let put = match step.what {
                // As a method, so that it does not matter whether the value is there or a reference to it.
                What::Value => quote! { { use #rt::Wire as _; #value.put(&mut _out); } },
                What::Count(_) => quote! { #rt::put_count(#value.len(), &mut _out); },
                // Only registers hold elements and tails, and there are none here.
                What::Elements(..) | What::Tail(_) | What::Offer(..) => return TokenStream::new(),
            };
            let at = Literal::u64_unsuffixed(step.offset());
            quote! { _out.at(#at); #put }
        });
        let end = Literal::u64_unsuffixed(message.memory_bytes);
        let variable = plan.variable.iter().map(|Variable { chunk, content, .. }| {
            let value = Emitter::leaf(&chunk.path);
            match (content, self.model.ty(self.model.resolved(chunk.ty))) {
                (Content::Text(_), _) => quote! { #rt::put_text(&#value, &mut _out); },
                (Content::List(_), _) => quote! { #rt::put_elements(&#value, &mut _out); },
                (_, Type::Sequence(..)) => {
                    quote! { #rt::put_count(#value.len(), &mut _out); #rt::put_elements(&#value, &mut _out); }
                }
                _ => quote! { { use #rt::Wire as _; #value.put(&mut _out); } },
            }
        });
        quote! {
            #bounds
            let mut _out = #rt::Out::default();
            #(#fixed)*
            _out.at(#end);
            #(_out.align(8); #variable)*
        }
    }

    /// Statements that read a message from `body` and leave its values in variables.
    fn read(
        &self,
        from: &[String],
        rt: &TokenStream,
        message: &Message,
        values: &[(String, TypeId)],
    ) -> TokenStream {
        let plan = Plan::of(self.model, message);
        let fixed = plan.fixed.iter().map(|step| {
            let (variable, at) = (slot_variable(step.number), Literal::u64_unsuffixed(step.offset()));
            let ty = self.ty(from, step.ty);
            let read = match step.what {
                What::Value => quote! { <#ty as #rt::Wire>::get(&mut _body)? },
                What::Count(_) => quote! { <__u32 as #rt::Wire>::get(&mut _body)? as __usize },
                What::Elements(..) | What::Tail(_) | What::Offer(..) => return TokenStream::new(),
            };
            quote! { _body.at(#at)?; let #variable = #read; }
        });
        let end = Literal::u64_unsuffixed(message.memory_bytes);
        let variable = plan.variable.iter().map(|part| self.read_chunk(from, rt, part));
        let values = self.build_values(from, values, &plan, &quote! { #rt::Malformed.into() });
        quote! { #(#fixed)* _body.at(#end)?; #(#variable)* _body.finish()?; #values }
    }

    /// Statements that read a list, or what is made of pieces, behind the fixed part.
    fn read_chunk(&self, from: &[String], rt: &TokenStream, part: &Variable) -> TokenStream {
        let Variable { chunk, count, .. } = part;
        let (ty, variable, count) =
            (self.ty(from, chunk.ty), chunk_variable(part.number), count.map(slot_variable));
        match part.content {
            Content::Text(_) => quote! { _body.align(8)?; let #variable: #ty = _body.text(#count)?; },
            Content::List(_) => {
                let size = Literal::u64_unsuffixed(part.element());
                // Before the check of what is there, the one of what may be there: a length is refused at once.
                let bound = chunk.bound.map(|bound| {
                    let bound = Literal::u64_unsuffixed(bound);
                    quote! { if #count > #bound { return Err(#rt::Malformed.into()); } }
                });
                quote! {
                    #bound
                    _body.align(8)?;
                    _body.has(#count, #size)?;
                    let #variable: #ty = _body.elements(#count)?;
                }
            }
            _ => quote! { _body.align(8)?; let #variable = <#ty as #rt::Wire>::get(&mut _body)?; },
        }
    }

    /// The client, and what answers requests.
    fn socket_interface(&self, interface: &InterfaceParts) -> Vec<TokenStream> {
        let InterfaceParts { from, rt, server_trait, client_struct, methods, .. } = interface;
        let client = methods.iter().map(|method| self.client_method(from, rt, method));
        let arms = methods.iter().map(|method| self.dispatch_arm(interface, method));
        let dispatch = self.own_name(from, "dispatch");
        let dispatch_checked = self.own_name(from, "dispatch_checked");
        let (none, contexts) = match interface.rundowns.is_empty() {
            true => (TokenStream::new(), TokenStream::new()),
            false => (quote! { None, }, quote! { _contexts: __Option<&mut #rt::Contexts>, }),
        };
        vec![
            quote! {
                /// Calls a server.
                #[derive(Debug)]
                pub struct #client_struct<T> {
                    /// The way to it.
                    pub transport: T,
                }
            },
            quote! { impl<T: #rt::Transport> #client_struct<T> { #(#client)* } },
            quote! {
                /// Answers a request: checks it, calls the method, writes the reply. Nothing comes back from a oneway one.
                pub fn #dispatch<S: #server_trait + ?Sized>(_server: &mut S, label: __u32, _body: &[__u8]) -> __Option<(__u32, __Vec<__u8>)> {
                    let answer = #dispatch_checked(_server, #none label, _body);
                    match answer {
                        Ok(reply) => reply,
                        Err(#rt::Malformed) => Some((#rt::MALFORMED, __Vec::new())),
                    }
                }
            },
            quote! {
                fn #dispatch_checked<S: #server_trait + ?Sized>(
                    _server: &mut S,
                    #contexts
                    _label: __u32,
                    _body: &[__u8],
                ) -> __Result<__Option<(__u32, __Vec<__u8>)>, #rt::Malformed> {
                    let mut _body = #rt::In::new(_body);
                    match _label {
                        #(#arms)*
                        _ => Ok(Some((#rt::NO_METHOD, __Vec::new()))),
                    }
                }
            },
            contexts::functions(self, interface),
        ]
    }

    fn client_method(&self, from: &[String], rt: &TokenStream, parts: &MethodParts) -> TokenStream {
        let MethodParts { operation, method, signature, .. } = parts;
        let label = method.request.label;
        let failed = quote! { #rt::Failure::TooLong.into() };
        let write = self.write(rt, &method.request, &self.inputs(operation), &failed);
        let agreed = self.agreed(operation, false, &failed);
        if operation.oneway {
            return quote! {
                #signature {
                    #agreed
                    #write
                    self.transport.tell(#label, &mut _out)
                }
            };
        }
        let results = self.results(operation);
        let read = self.read(from, rt, &method.reply, &results);
        let replied = self.agreed(operation, true, &quote! { #rt::Failure::Malformed.into() });
        let values: Vec<Ident> = results.iter().map(|(n, _)| name(n)).collect();
        let value = tuple(&values);
        let exceptions = self.raised(from, parts).into_iter().map(|Raised { message, fields, error }| {
            let label = message.label;
            let read = self.read(from, rt, message, &fields);
            quote! { #label => { #read Err(#error) } }
        });
        quote! {
            #signature {
                #agreed
                #write
                self.transport.exchange(#label, &mut _out, |_label, _reply| {
                    let mut _body = #rt::In::new(_reply);
                    match _label {
                        0 => { #read #replied Ok(#value) }
                        #(#exceptions)*
                        _ => Err(#rt::Failure::Refused(_label).into()),
                    }
                })
            }
        }
    }

    fn dispatch_arm(&self, interface: &InterfaceParts, parts: &MethodParts) -> TokenStream {
        let InterfaceParts { from, rt, server_trait, .. } = interface;
        let MethodParts { operation, method, rust, error, .. } = parts;
        let label = method.request.label;
        let inputs = self.inputs(operation);
        let read = self.read(from, rt, &method.request, &inputs);
        let agreed = self.agreed(operation, false, &quote! { #rt::Malformed });
        let arguments: Vec<TokenStream> =
            inputs.iter().map(|(n, ty)| self.argument(from, n, *ty).passed).collect();
        let ident = name(rust);
        let call = quote! { #server_trait::#ident(_server, #(#arguments),*) };
        let known = contexts::check(self, interface, operation);
        if operation.oneway {
            // Nobody waits for a reply, so not even an error is one: the client would take it for the next call's.
            let values: Vec<Ident> = inputs.iter().map(|(n, _)| name(n)).collect();
            let (value, types) = (tuple(&values), inputs.iter().map(|(_, ty)| self.ty(from, *ty)));
            let types = tuple(&types.collect::<Vec<_>>());
            return quote! {
                #label => {
                    let mut _read = || -> __Result<#types, #rt::Malformed> { #read #agreed Ok(#value) };
                    if let Ok(#value) = _read() { #known let _ = #call; }
                    Ok(None)
                }
            };
        }
        let results = self.results(operation);
        let values: Vec<Ident> = results.iter().map(|(n, _)| name(n)).collect();
        let pattern = tuple(&values);
        // What the server returns is checked like what it is given: a reply never breaks its own type.
        let failed = quote! { #rt::Malformed };
        let write = self.write(rt, &method.reply, &results, &failed);
        let failure = quote! {
            let _label = match _failure { #rt::Failure::Refused(label) => label, _ => #rt::MALFORMED };
            Ok(Some((_label, __Vec::new())))
        };
        let finish = |label: u32| quote! { _out.finish().map(|bytes| Some((#label, bytes))).map_err(|_| #rt::Malformed) };
        let noted = contexts::note(self, interface, operation);
        let (ok, replied) = (finish(0), self.agreed(operation, true, &failed));
        let failures = if operation.raises.is_empty() {
            quote! { Err(_failure) => { #failure } }
        } else {
            let exceptions = self.raised(from, parts).into_iter().map(|Raised { message, fields, error }| {
                let write = self.write(rt, message, &fields, &failed);
                let finish = finish(message.label);
                quote! { Err(#error) => { #write #finish } }
            });
            quote! { #(#exceptions)* Err(#error::Failure(_failure)) => { #failure } }
        };
        quote! {
            #label => {
                #read
                #agreed
                #known
                match #call {
                    Ok(#pattern) => { #noted #replied #write #ok }
                    #failures
                }
            }
        }
    }
}
