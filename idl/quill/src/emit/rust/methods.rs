//! Methods as all kernel parts have them: names, errors, signatures, and what cannot be one.

use std::collections::HashSet;

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::*;

impl Emitter<'_> {
    /// What Rust cannot hold, of what the layout can carry.
    pub(super) fn untranslatable(&self, operation: &Operation, local: bool) -> Option<String> {
        let void = matches!(self.model.ty(self.model.resolved(operation.result)), Type::Void);
        let result = (!void).then_some(operation.result);
        let types = operation.params.iter().map(|p| p.ty).chain(result);
        let mut stack: Vec<TypeId> = types.collect();
        stack.extend(
            operation.raises.iter().flat_map(|id| &self.model.exceptions[id.0 as usize].fields).map(|f| f.ty),
        );
        self.unfit(stack, local)
    }

    /// The first thing that Rust cannot hold, of these types and of all that they consist of.
    pub(super) fn unfit(&self, mut stack: Vec<TypeId>, local: bool) -> Option<String> {
        let mut seen = HashSet::new();
        while let Some(ty) = stack.pop() {
            let ty = self.model.resolved(ty);
            // A flexpage is no part of anything, and goes beside all values. So does a reference that somebody owns.
            if !seen.insert(ty) || matches!(self.model.ty(ty), Type::Fpage) || self.is_owned_reference(ty) {
                continue;
            }
            let is_held = local && self.held[ty.0 as usize];
            if is_held && is_opaque(self.model.ty(ty)) {
                continue;
            }
            if !self.travels[ty.0 as usize] && !is_held {
                return Some(why(self.model, &self.travels, ty));
            }
            match self.model.ty(ty) {
                Type::Array(of, dims) => {
                    let count = dims.iter().fold(1u64, |n, &d| n.saturating_mul(d));
                    let size = self.sizes.fixed(*of).map_or(24, |f| f.size);
                    if count.saturating_mul(size) > ARRAY_BYTES_MAX {
                        let show = self.model.show(ty);
                        return Some(format!(
                            "an array of that size (`{show}`) does not fit on a stack; use a sequence"
                        ));
                    }
                    stack.push(*of);
                }
                Type::Sequence(of, _) | Type::Optional(of) | Type::Shared(of) => stack.push(*of),
                Type::Flat(name, _) if self.sizes.fixed(ty).is_some_and(|f| f.size > ARRAY_BYTES_MAX) => {
                    return Some(format!("a union of that size (`{name}`) does not fit on a stack"));
                }
                Type::Struct(name, fields) | Type::Flat(name, fields) => {
                    if !self.emitted.contains(&ty) {
                        return Some(taken(name));
                    }
                    stack.extend(fields.iter().map(|f| f.ty));
                }
                Type::Union { name, branches, .. } => {
                    if !self.emitted.contains(&ty) {
                        return Some(taken(name));
                    }
                    stack.extend(branches.iter().map(|b| b.field.ty));
                }
                _ => {}
            }
        }
        None
    }

    /// The error of a method: the runtime's failures, or an enum with the exceptions beside them.
    pub(super) fn error_type(
        &mut self,
        from: &[String],
        rt: &TokenStream,
        operation: &Operation,
        all: &[String],
        rust: &str,
        errors: &mut Vec<TokenStream>,
    ) -> TokenStream {
        if operation.raises.is_empty() {
            return quote! { #rt::Failure };
        }
        // Names of methods may differ in nothing but what Rust leaves out of names of types.
        let same = all.iter().take_while(|other| *other != rust).filter(|other| camel(other) == camel(rust));
        let error = format!("{}Error{}", camel(rust), "_".repeat(same.count()));
        let error = self.own_name(from, &error);
        let variants = self.variants(operation).into_iter().map(|(variant, exception)| {
            let path = self.path(from, &exception);
            quote! { #variant(#path) }
        });
        let variants: Vec<TokenStream> = variants.collect();
        let doc = format!(" What `{}` can fail with.", operation.name);
        errors.push(quote! {
            #[doc = #doc]
            #[derive(Debug)]
            pub enum #error { #(#variants,)* Failure(#rt::Failure) }
            impl __From<#rt::Failure> for #error {
                fn from(failure: #rt::Failure) -> #error { #error::Failure(failure) }
            }
            impl __From<#rt::Malformed> for #error {
                fn from(_: #rt::Malformed) -> #error { #error::Failure(#rt::Failure::Malformed) }
            }
        });
        quote! { #error }
    }

    /// The exceptions of an operation with the names of their variants, made distinct.
    pub(super) fn variants(&self, operation: &Operation) -> Vec<(Ident, String)> {
        let mut taken = HashSet::from(["Failure".to_owned()]);
        let exceptions = operation.raises.iter().map(|id| self.model.exceptions[id.0 as usize].name.clone());
        exceptions
            .map(|path| {
                let mut variant = names::escaped(&camel(path.rsplit("::").next().unwrap_or("")));
                while !taken.insert(variant.clone()) {
                    variant.push('_');
                }
                (name(&variant), path)
            })
            .collect()
    }

    /// The exceptions of a method.
    pub(super) fn raised<'p>(&self, from: &[String], parts: &MethodParts<'p>) -> Vec<Raised<'p>> {
        let MethodParts { operation, method, error, .. } = parts;
        let exceptions = self.variants(operation).into_iter().zip(&method.exceptions).zip(&operation.raises);
        exceptions
            .map(|(((variant, path), (_, message)), id)| {
                let fields = fields_of(&self.model.exceptions[id.0 as usize].fields);
                let names = fields.iter().map(|(n, _)| name(n));
                let path = self.path(from, &path);
                let error = quote! { #error::#variant(#path { #(#names),* }) };
                Raised { message, fields, error }
            })
            .collect()
    }

    pub(super) fn results(&self, operation: &Operation) -> Vec<(String, TypeId)> {
        let mut results = Vec::new();
        if !matches!(self.model.ty(self.model.resolved(operation.result)), Type::Void) {
            results.push(("_result".to_owned(), operation.result));
        }
        let outs = operation.params.iter().filter(|p| p.direction != Direction::In);
        results.extend(outs.map(|p| (p.name.clone(), p.ty)));
        results
    }

    pub(super) fn inputs(&self, operation: &Operation) -> Vec<(String, TypeId)> {
        let ins = operation.params.iter().filter(|p| p.direction != Direction::Out);
        ins.map(|p| (p.name.clone(), p.ty)).collect()
    }

    /// Whether a type is a reference to an object that its holder owns.
    pub(super) fn is_owned_reference(&self, ty: TypeId) -> bool {
        match self.model.ty(self.model.resolved(ty)) {
            Type::Object(to) => self.part.reference(self, &[], *to).is_some(),
            _ => false,
        }
    }

    /// Whether who calls keeps a reference that is an argument, or a part of one.
    pub(super) fn is_lent(&self, operation: &Operation, param: &str) -> bool {
        let lent = |p: &Param| p.name == param && p.grant != Some(true) && self.refers(p.ty);
        operation.params.iter().any(lent)
    }

    pub(super) fn signature(
        &self,
        from: &[String],
        (operation, method): (&Operation, &Method),
        rust: &str,
        error: &TokenStream,
        side: Side,
    ) -> TokenStream {
        let needs = match side {
            Side::Client => self.part.client_needs(self, from, method),
            Side::Server => self.part.server_needs(self, method),
        };
        self.signature_with(needs, from, (operation, method), rust, error, side)
    }

    /// A method's signature with other generic parameters, and another receiver.
    pub(super) fn signature_with(
        &self,
        (generics, receiver): (TokenStream, TokenStream),
        from: &[String],
        (operation, method): (&Operation, &Method),
        rust: &str,
        error: &TokenStream,
        side: Side,
    ) -> TokenStream {
        let argument = |(n, ty): &(String, TypeId)| {
            let Argument { declared, .. } = self.argument(from, n, *ty);
            let (ident, whole) = (name(n), self.ty(from, *ty));
            match side {
                Side::Client if self.is_owned_reference(*ty) && self.is_lent(operation, n) => {
                    quote! { #ident: &#whole }
                }
                // References are the server's from then on.
                Side::Server if self.has_references(*ty) => quote! { #ident: #whole },
                _ => declared,
            }
        };
        let arguments: Vec<TokenStream> = self.inputs(operation).iter().map(argument).collect();
        let result = self.result_of(from, (operation, method), side);
        let ident = name(rust);
        quote! { fn #ident #generics(#receiver, #(#arguments),*) -> __Result<#result, #error> }
    }

    /// What a method gives back if it succeeds.
    pub(super) fn result_of(
        &self,
        from: &[String],
        (operation, method): (&Operation, &Method),
        side: Side,
    ) -> TokenStream {
        let results = self.results(operation);
        let results: Vec<TokenStream> = results
            .iter()
            .map(|(result, ty)| self.part.result(self, from, method, (result, *ty), side))
            .collect();
        tuple(&results)
    }
}

/// Why a type is not there.
fn taken(name: &str) -> String {
    format!(
        "two types are called `{name}`, and Rust has one name for both, whether it is a tag or not: one of them needs another name"
    )
}

/// Names of methods: attributes become `name` and `set_name`, and whatever would then be there twice gets an underscore.
pub(super) fn method_names(operations: &[&Operation], own: &[&str]) -> Vec<String> {
    let is_free = |name: &str| names::escaped(name) == name && !own.contains(&name);
    let plain = operations.iter().map(|o| o.name.clone()).filter(|name| is_free(name));
    let mut taken: HashSet<String> = plain.chain(own.iter().map(|&own| own.to_owned())).collect();
    let mut names = Vec::new();
    for operation in operations {
        let attribute = |of: &str| operation.name.strip_prefix(of);
        let plain = match (attribute("_get_"), attribute("_set_")) {
            (Some(attribute), _) => names::escaped(attribute),
            (_, Some(attribute)) => format!("set_{attribute}"),
            _ if is_free(&operation.name) => {
                names.push(operation.name.clone());
                continue;
            }
            _ => names::escaped(&operation.name),
        };
        let mut unique = plain;
        while !taken.insert(unique.clone()) {
            unique.push('_');
        }
        names.push(unique);
    }
    names
}
