//! Clients that find their server themselves: DCE's implicit and automatic binding, and handles of a file's own types.
//!
//! A program implements a trait, `Binding`, for whatever says whom a call is for; `Bound` has the methods of a client, asks it before each call, and
//! tells it afterwards if it was for a handle. It is the client of the kernel part with a step before and one behind it.

use std::collections::HashSet;

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::super::{Emitter, InterfaceParts, MethodParts, name};
use crate::model::{Called, Type};

/// A source of whom a method's calls are for.
enum Asked {
    /// The program, whatever the arguments.
    Nothing,
    /// A handle, by functions with these names.
    Handle { bind: Ident, unbind: Ident, handle: Ident },
}

impl Emitter<'_> {
    /// Finds what is asked before a call of a method, if something is.
    fn asked(&self, interface: &InterfaceParts, parts: &MethodParts) -> Option<Asked> {
        let of = &self.model.interfaces[interface.layout.interface.0 as usize];
        let Called::Found(ty) = &parts.operation.called else {
            let is_bound = of.binding.is_some() && parts.operation.called == Called::Bound;
            return is_bound.then_some(Asked::Nothing);
        };
        let (handle, absent) = (parts.operation.params.first()?, "optional_");
        let absent = match self.kind(handle.ty) {
            Type::Optional(_) | Type::Shared(_) => absent,
            _ => "",
        };
        let function = |what: &str| format_ident!("{what}_{absent}{ty}");
        Some(Asked::Handle { bind: function("bind"), unbind: function("unbind"), handle: name(&handle.name) })
    }

    /// The trait of what is asked, and the client that asks; nothing, if calls say themselves whom they are for.
    pub(super) fn bound(&self, interface: &InterfaceParts) -> Vec<TokenStream> {
        let InterfaceParts { from, rt, methods, .. } = interface;
        let asking: Vec<(&MethodParts, Asked)> =
            methods.iter().filter_map(|parts| Some((parts, self.asked(interface, parts)?))).collect();
        if asking.is_empty() {
            return Vec::new();
        }
        let (binding, bound) = (self.own_name(from, "Binding"), self.own_name(from, "Bound"));
        let mut seen = HashSet::new();
        let asked = asking.iter().map(|(parts, asked)| match asked {
            Asked::Nothing if !seen.insert("server".to_owned()) => TokenStream::new(),
            Asked::Nothing => quote! {
                /// Says whom a call is for whose arguments do not say it.
                fn server(&self) -> __Result<Self::Server, #rt::Failure>;
            },
            Asked::Handle { bind, .. } if !seen.insert(bind.to_string()) => TokenStream::new(),
            Asked::Handle { bind, unbind, .. } => {
                let ty = parts.operation.params[0].ty;
                let handle = self.argument(from, "_handle", ty).declared;
                quote! {
                    /// Says whom a call is for that has this handle.
                    fn #bind(&self, #handle) -> __Result<Self::Server, #rt::Failure>;
                    /// Hears that a call for this handle is over.
                    fn #unbind(&self, #handle, _server: Self::Server) {}
                }
            }
        });
        let asked: TokenStream = asked.collect();
        let calls = asking.iter().map(|(parts, asked)| self.bound_call(interface, parts, asked, &binding));
        let calls: TokenStream = calls.collect();
        vec![
            quote! {
                /// Says whom the calls of a [`Bound`] are for.
                pub trait #binding {
                    /// Servers that are called.
                    type Server: #rt::Callee;
                    #asked
                }
            },
            quote! {
                /// Calls whomever a [`Binding`] says. If it says nobody, nobody is called.
                #[derive(Clone, Copy, Debug)]
                pub struct #bound<B>(pub B);
            },
            quote! { impl<B: #binding> #bound<B> { #calls } },
        ]
    }

    /// A method of the client that asks.
    fn bound_call(
        &self,
        interface: &InterfaceParts,
        parts: &MethodParts,
        asked: &Asked,
        binding: &Ident,
    ) -> TokenStream {
        let (client, signature, method) = (&interface.client_struct, &parts.signature, name(&parts.rust));
        let inbox = parts.method.needs_inbox().then(|| quote! { _inbox, });
        let handed = parts.method.reply.pages.as_ref();
        let window = handed.filter(|handed| !self.is_owned_reference(handed.ty)).map(|_| quote! { _window, });
        let arguments = self.inputs(parts.operation).into_iter().map(|(argument, _)| name(&argument));
        let call = quote! { #client { server: _server }.#method(#inbox #window #(#arguments),*) };
        let body = match asked {
            Asked::Nothing => quote! { let _server = #binding::server(&self.0)?; #call },
            Asked::Handle { bind, unbind, handle } => quote! {
                let _server = #binding::#bind(&self.0, #handle)?;
                let _result = #call;
                #binding::#unbind(&self.0, #handle, _server);
                _result
            },
        };
        quote! { #[inline] #signature { #body } }
    }
}
