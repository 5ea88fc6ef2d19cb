//! Context handles over sockets: which of them a client may use, and what becomes of those that it leaves open.
//!
//! A handle belongs to the connection on which a method gave it back. Whoever serves a connection keeps a table of them (`rt::Contexts`); what
//! is open when the client is gone is told to the server, method by method for each type of handles.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::{Emitter, InterfaceParts, name};
use crate::model::{Direction, Operation, TypeId};

/// How a server is told of a handle of some type that nobody will close.
pub(super) struct Rundown {
    /// The type's name in the file.
    context: String,
    /// The method.
    method: Ident,
}

impl Rundown {
    /// The method in the server's trait, which a server may leave out.
    pub(super) fn declared(&self) -> TokenStream {
        let (method, doc) =
            (&self.method, format!(" The client that had this `{}` open is gone.", self.context));
        quote! { #[doc = #doc] fn #method(&mut self, _handle: __u64) {} }
    }
}

/// Methods for all types of context handles that operations have, with names that no operation has.
pub(super) fn rundowns(emitter: &Emitter, operations: &[&Operation], taken: &[String]) -> Vec<Rundown> {
    if !emitter.part.runs_down() {
        return Vec::new();
    }
    let contexts = emitter.model.contexts_of(operations.iter().copied());
    let rundown = |context: &str| {
        let last = context.rsplit("::").next().unwrap_or(context);
        let mut method = format!("{last}_rundown");
        while taken.contains(&method) {
            method.push('_');
        }
        Rundown { context: context.into(), method: name(&method) }
    };
    contexts.into_iter().map(rundown).collect()
}

/// Whether such a parameter, or the result, is a context handle: the number of its type, and its variable.
fn handle(
    emitter: &Emitter,
    interface: &InterfaceParts,
    (param, ty): (&str, TypeId),
) -> Option<(Literal, Ident)> {
    let context = emitter.model.context(ty)?;
    let kind = interface.rundowns.iter().position(|rundown| rundown.context == context)?;
    Some((Literal::usize_unsuffixed(kind), name(param)))
}

/// Variable with the handle that went to the server in a parameter that comes back.
fn before(param: &Ident) -> Ident {
    format_ident!("_was_{}", param.to_string().trim_start_matches("r#"))
}

/// Statements that refuse a request with handles that the client has not open.
pub(super) fn check(emitter: &Emitter, interface: &InterfaceParts, operation: &Operation) -> TokenStream {
    let rt = &interface.rt;
    let refused = match operation.oneway {
        true => quote! { Ok(None) },
        false => quote! { Ok(Some((#rt::NO_CONTEXT, __Vec::new()))) },
    };
    let checks = operation.params.iter().filter(|p| p.direction != Direction::Out).filter_map(|param| {
        let (kind, ident) = handle(emitter, interface, (&param.name, param.ty))?;
        let kept = (param.direction == Direction::InOut).then(|| {
            let before = before(&ident);
            quote! { let #before = #ident; }
        });
        Some(quote! {
            if _contexts.as_ref().is_some_and(|_contexts| !_contexts.holds(#kind, #ident)) { return #refused; }
            #kept
        })
    });
    quote! { #(#checks)* }
}

/// Statements that note which handles a method has opened and closed.
pub(super) fn note(emitter: &Emitter, interface: &InterfaceParts, operation: &Operation) -> TokenStream {
    let params = operation.params.iter().filter(|p| p.direction != Direction::In);
    let params = params.filter_map(|param| {
        let (kind, ident) = handle(emitter, interface, (&param.name, param.ty))?;
        let before = match param.direction {
            Direction::InOut => {
                let before = before(&ident);
                quote! { #before }
            }
            _ => quote! { 0 },
        };
        Some(quote! { _contexts.change(#kind, #before, #ident); })
    });
    let result = handle(emitter, interface, ("_result", operation.result));
    let result = result.map(|(kind, ident)| quote! { _contexts.change(#kind, 0, #ident); });
    let all: Vec<TokenStream> = params.chain(result).collect();
    if all.is_empty() {
        TokenStream::new()
    } else {
        quote! { if let Some(_contexts) = _contexts { #(#all)* } }
    }
}

/// Functions of an interface with context handles: a dispatcher for one client, the end of a client, and the loop that has both.
pub(super) fn functions(emitter: &Emitter, interface: &InterfaceParts) -> TokenStream {
    let InterfaceParts { from, rt, server_trait, rundowns, .. } = interface;
    if rundowns.is_empty() {
        return TokenStream::new();
    }
    let [dispatch_in, run_down, serve, checked] =
        ["dispatch_in", "run_down", "serve", "dispatch_checked"].map(|own| emitter.own_name(from, own));
    let arms = rundowns.iter().zip(0usize..).map(|(rundown, kind)| {
        let (kind, method) = (Literal::usize_unsuffixed(kind), &rundown.method);
        quote! { #kind => #server_trait::#method(_server, _handle), }
    });
    quote! {
        /// Answers a request of one client, which can use those context handles that it has open, and no others.
        pub fn #dispatch_in<S: #server_trait + ?Sized>(
            _server: &mut S,
            _contexts: &mut #rt::Contexts,
            _label: __u32,
            _body: &[__u8],
        ) -> __Option<(__u32, __Vec<__u8>)> {
            match #checked(_server, Some(_contexts), _label, _body) {
                Ok(reply) => reply,
                Err(#rt::Malformed) => Some((#rt::MALFORMED, __Vec::new())),
            }
        }

        /// The end of a client: tells the server of each context handle that it has left open.
        pub fn #run_down<S: #server_trait + ?Sized>(_server: &mut S, _contexts: &mut #rt::Contexts) {
            while let Some((_kind, _handle)) = _contexts.next() {
                match _kind { #(#arms)* _ => {} }
            }
        }

        /// Serves one connection until the client closes it or it fails, and tells the server of each context handle that is still open then.
        pub fn #serve<S: #server_trait + ?Sized>(
            _server: &mut S,
            _stream: &mut (impl ::std::io::Read + ::std::io::Write),
        ) -> __Result<(), #rt::Failure> {
            let mut _contexts = #rt::Contexts::default();
            let _ended = #rt::serve(_stream, |_label, _body| #dispatch_in(_server, &mut _contexts, _label, _body));
            #run_down(_server, &mut _contexts);
            _ended
        }
    }
}
