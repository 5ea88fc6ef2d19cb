//! Values that are put together from their leaves, and checks of what their types cannot say.

use super::*;
use crate::plan::{Plan, Step, What};

/// The variable for what a step of the fixed part reads.
pub(super) fn slot_variable(number: usize) -> Ident {
    format_ident!("_slot_{}", number.to_string())
}

/// The variable for what a step of the variable part reads.
pub(super) fn chunk_variable(number: usize) -> Ident {
    format_ident!("_chunk_{}", number.to_string())
}

/// The variables for all values that a plan reads.
fn variables<'m>(plan: &Plan<'m>) -> HashMap<&'m [String], Ident> {
    let is_value = |step: &&Step| matches!(step.what, What::Value | What::Elements(..));
    let fixed = plan.fixed.iter().filter(is_value).map(|step| (step.path, slot_variable(step.number)));
    let variable = plan.variable.iter().map(|part| (&part.chunk.path[..], chunk_variable(part.number)));
    fixed.chain(variable).collect()
}

impl Emitter<'_> {
    /// An expression for the leaf at a path.
    pub(super) fn leaf(path: &[String]) -> TokenStream {
        let mut parts = path.iter().map(|p| name(p));
        let first = parts.next();
        quote! { #first #(.#parts)* }
    }

    /// Statements that put values together from their leaves and check what their types cannot say.
    pub(super) fn build_values(
        &self,
        from: &[String],
        values: &[(String, TypeId)],
        plan: &Plan,
        failed: &TokenStream,
    ) -> TokenStream {
        let variables = &variables(plan);
        let statements = values.iter().map(|(param, ty)| {
            let value = self.build(from, &mut vec![param.clone()], *ty, variables, 0);
            let ident = name(param);
            let own = self.bounds(*ty, &quote! { #ident }, failed, 0);
            let inner = self.struct_bounds(*ty, &quote! { #ident }, failed, 0);
            quote! { let #ident = #value; #own #inner }
        });
        quote! { #(#statements)* }
    }

    /// Puts a value together from its leaves.
    pub(super) fn build(
        &self,
        from: &[String],
        path: &mut Vec<String>,
        ty: TypeId,
        variables: &HashMap<&[String], Ident>,
        depth: usize,
    ) -> TokenStream {
        if let Some(variable) = variables.get(path.as_slice()) {
            return quote! { #variable };
        }
        let Type::Struct(_, fields) = self.model.ty(self.model.resolved(ty)) else { return quote! { () } };
        if depth > crate::limits::NESTING_MAX {
            return quote! { () };
        }
        let ty = self.ty(from, ty);
        let fields = fields.iter().map(|field| {
            path.push(field.name.clone());
            let value = self.build(from, path, field.ty, variables, depth + 1);
            path.pop();
            let ident = name(&field.name);
            quote! { #ident: #value }
        });
        let fields: Vec<TokenStream> = fields.collect();
        quote! { #ty { #(#fields),* } }
    }

    /// Statements that check the bounds of a message's values, which are variables.
    pub(super) fn all_bounds(&self, values: &[(String, TypeId)], failed: &TokenStream) -> TokenStream {
        let bounds = values.iter().map(|(param, ty)| {
            let value = name(param);
            let own = self.bounds(*ty, &quote! { #value }, failed, 0);
            let inner = self.struct_bounds(*ty, &quote! { #value }, failed, 0);
            quote! { #own #inner }
        });
        quote! { #(#bounds)* }
    }

    /// The bounds of fields, for a struct that is taken apart and so never passes through its own `get`.
    pub(super) fn struct_bounds(
        &self,
        ty: TypeId,
        value: &TokenStream,
        failed: &TokenStream,
        depth: usize,
    ) -> TokenStream {
        let Type::Struct(_, fields) = self.model.ty(self.model.resolved(ty)) else {
            return TokenStream::new();
        };
        if depth > crate::limits::NESTING_MAX {
            return TokenStream::new();
        }
        let checks = fields.iter().map(|field| {
            let ident = name(&field.name);
            let value = quote! { #value.#ident };
            let own = self.bounds(field.ty, &value, failed, 0);
            let inner = self.struct_bounds(field.ty, &value, failed, depth + 1);
            quote! { #own #inner }
        });
        quote! { #(#checks)* }
    }

    /// Statements that check the bounds of what a message holds; `failed` is the expression for one that is not kept.
    pub(super) fn bounds(
        &self,
        ty: TypeId,
        value: &TokenStream,
        failed: &TokenStream,
        depth: usize,
    ) -> TokenStream {
        let item = format_ident!("e{}", depth.to_string());
        match self.model.ty(self.model.resolved(ty)) {
            _ if self.model.is_any(ty) => quote! { if !#value.is_sound() { return Err(#failed); } },
            Type::Struct(..) if self.model.agreements.contains_key(&self.model.resolved(ty)) => {
                quote! { if !#value._agrees() { return Err(#failed); } }
            }
            kind @ (Type::Optional(of) | Type::Shared(of)) => {
                let inner = self.bounds(*of, &quote! { #item }, failed, depth + 1);
                match kind {
                    _ if inner.is_empty() => inner,
                    Type::Shared(_) => quote! { if let Some(#item) = #value.as_deref() { #inner } },
                    _ => quote! { if let Some(#item) = #value.as_ref() { #inner } },
                }
            }
            Type::Str { bound: Some(bound), .. } => {
                let bound = proc_macro2::Literal::u64_unsuffixed(*bound);
                quote! { if #value.chars().count() > #bound { return Err(#failed); } }
            }
            Type::Sequence(of, bound) => {
                let inner = self.bounds(*of, &quote! { #item }, failed, depth + 1);
                let inner = if inner.is_empty() {
                    inner
                } else {
                    quote! { for #item in #value.iter() { #inner } }
                };
                let own = bound.map(|bound| {
                    let bound = proc_macro2::Literal::u64_unsuffixed(bound);
                    quote! { if #value.len() > #bound { return Err(#failed); } }
                });
                quote! { #own #inner }
            }
            Type::Array(of, dims) => {
                let mut item_value = quote! { #item };
                let mut inner = self.bounds(*of, &item_value, failed, depth + 1);
                if inner.is_empty() {
                    return inner;
                }
                for level in (0..dims.len()).rev() {
                    item_value = if level == 0 {
                        quote! { #value }
                    } else {
                        quote! { #item }
                    };
                    inner = quote! { for #item in #item_value.iter() { #inner } };
                }
                inner
            }
            _ => TokenStream::new(),
        }
    }
}
