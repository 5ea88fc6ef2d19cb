//! Rust over `linux`: a file with the types, and for each interface a module with `Client`, `Server` and `dispatch`.
//!
//! Modules and interfaces become modules; what is declared inside a struct gets the struct's name before its own. All
//! types implement the runtime's `Wire`, which reads with every check: a truth value is 0 or 1, an enum one of its
//! names, a discriminator one of its labels, a length within its bound and within the message. The layout says in which
//! order and where; this file never computes an offset.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};

use crate::codes::Code;
use crate::diag::Diagnostic;
use crate::layout::{InterfaceLayout, Leaf, Message, Method, Place, Sizes};
use crate::limits;
use crate::model::{Const, Direction, ExceptionId, Field, Model, Operation, Type, TypeId, Value};
use crate::source;

mod types;

/// The runtime, copied into each file so that a file depends on nothing.
const RUNTIME: &str = include_str!("rust/runtime.rs");

/// Arrays from this size on would lie on the stack of whoever reads them.
const ARRAY_BYTES_MAX: u64 = 64 << 10;

/// The Rust text for a model that was laid out for `linux`.
pub fn emit(model: &Model, layouts: &[InterfaceLayout]) -> Result<String, Vec<Diagnostic>> {
    if model.types_len() > limits::TYPES_MAX {
        let message = format!("the file has more than {} types, too many for Rust output", limits::TYPES_MAX);
        return Err(vec![Diagnostic::error(Code::Limit, source::Span::default(), message)]);
    }
    let mut emitter = Emitter::new(model);
    emitter.types();
    for layout in layouts {
        emitter.interface(layout);
    }
    emitter.constants();
    if !emitter.refused.is_empty() {
        return Err(emitter.refused);
    }
    let items = spell_out(emitter.root.tokens(true), &emitter.words);
    let allow = allowances();
    let runtime = RUNTIME.replace("pub mod rt {", &format!("pub mod {} {{", emitter.runtime_name));
    let runtime: TokenStream = runtime.parse().unwrap_or_default();
    let tokens = quote! { #items #allow #runtime };
    match syn::parse2::<syn::File>(tokens) {
        Ok(file) => {
            let text = prettyplease::unparse(&file);
            Ok(format!("// Made by quill from an interface file. Changes here are lost.\n\n{text}"))
        }
        Err(error) => {
            let message = format!("the Rust output cannot be formed: {error}");
            Err(vec![Diagnostic::error(Code::Unsupported, source::Span::default(), message)])
        }
    }
}

/// Replaces the marks of Rust's own names (`__Vec`) by these, or by their full path where the file declares a name that
/// would hide them.
fn spell_out(tokens: TokenStream, declared: &HashSet<String>) -> TokenStream {
    let mut out = TokenStream::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let inner = spell_out(group.stream(), declared);
                out.extend([TokenTree::Group(Group::new(group.delimiter(), inner))]);
            }
            TokenTree::Ident(ident) => {
                let text = ident.to_string();
                let path = text.strip_prefix("__").and_then(|short| {
                    let path = match short {
                        "Result" => "::core::result::Result",
                        "Option" => "::core::option::Option",
                        "Vec" => "::std::vec::Vec",
                        "String" => "::std::string::String",
                        "From" => "::core::convert::From",
                        _ if PRIMITIVES.contains(&short) => "::core::primitive::",
                        _ => return None,
                    };
                    let own = if path.ends_with("::") { short } else { "" };
                    Some(if declared.contains(short) { format!("{path}{own}") } else { short.to_owned() })
                });
                match path {
                    Some(path) => out.extend(path.parse::<TokenStream>().unwrap_or_default()),
                    None => out.extend([TokenTree::Ident(ident)]),
                }
            }
            token => out.extend([token]),
        }
    }
    out
}

const PRIMITIVES: [&str; 14] =
    ["bool", "char", "str", "usize", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64"];

/// Names keep the form that the interface file gives them.
fn allowances() -> TokenStream {
    quote! { #[allow(dead_code, non_snake_case, non_camel_case_types, non_upper_case_globals, unused_imports, clippy::all)] }
}

/// A Rust name; keywords become raw, and the few that cannot be raw get an underscore.
fn name(text: &str) -> Ident {
    match text {
        "self" | "Self" | "super" | "crate" | "_" => format_ident!("{text}_"),
        _ => syn::parse_str::<Ident>(text).unwrap_or_else(|_| {
            let clean = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            if clean && starts { Ident::new_raw(text, Span::call_site()) } else { format_ident!("unnamed") }
        }),
    }
}

/// The form that Rust gives the names of types.
fn camel(text: &str) -> String {
    let mut out = String::new();
    for part in text.split('_').filter(|p| !p.is_empty()) {
        let (first, rest) = part.split_at(part.chars().next().map_or(0, char::len_utf8));
        out.push_str(&first.to_uppercase());
        out.push_str(rest);
    }
    out
}

/// A module of the output.
#[derive(Default)]
struct Module {
    modules: Vec<(String, Module)>,
    items: Vec<TokenStream>,
}

impl Module {
    fn at(&mut self, path: &[String]) -> &mut Module {
        let Some((first, rest)) = path.split_first() else { return self };
        let index = self.modules.iter().position(|(n, _)| n == first).unwrap_or_else(|| {
            self.modules.push((first.clone(), Module::default()));
            self.modules.len() - 1
        });
        self.modules[index].1.at(rest)
    }

    fn tokens(&self, top: bool) -> TokenStream {
        let allow = if top { allowances() } else { TokenStream::new() };
        let items = self.items.iter().map(|item| quote! { #allow #item });
        let modules = self.modules.iter().map(|(module, content)| {
            let (module, content) = (name(module), content.tokens(false));
            quote! { #allow pub mod #module { #content } }
        });
        quote! { #(#items)* #(#modules)* }
    }
}

struct Emitter<'a> {
    model: &'a Model,
    sizes: Sizes,
    root: Module,
    /// Names that are types and not modules, to tell `M::S::Inner` from `M::N::T`.
    type_names: HashSet<String>,
    /// All names that the file declares, with the modules around them.
    declared: HashSet<String>,
    /// The same, each part on its own.
    words: HashSet<String>,
    /// What the runtime's module is called.
    runtime_name: String,
    /// Names that the output has, by place: a tag and a typedef of DCE may share one.
    taken: HashSet<String>,
    /// Types that travel, so that the output has them.
    emitted: HashSet<TypeId>,
    /// Which types can travel at all.
    travels: Vec<bool>,
    refused: Vec<Diagnostic>,
    exceptions: HashSet<ExceptionId>,
}

/// One parameter as a method of Rust has it.
struct Argument {
    declared: TokenStream,
    /// The expression that a server's method is given for the owned value.
    passed: TokenStream,
}

impl<'a> Emitter<'a> {
    fn new(model: &'a Model) -> Emitter<'a> {
        let mut type_names: HashSet<String> = model.exceptions.iter().map(|e| e.name.clone()).collect();
        for index in 0..model.types_len() {
            match model.ty(TypeId(index as u32)) {
                Type::Struct(name, _)
                | Type::Enum(name, _)
                | Type::Bitmask(name, ..)
                | Type::Union { name, .. } => {
                    type_names.insert(name.clone());
                }
                _ => {}
            }
        }
        let mut declared = type_names.clone();
        declared.extend(model.consts.iter().map(|c| c.name.clone()));
        declared.extend(model.interfaces.iter().map(|i| i.name.clone()));
        for index in 0..model.types_len() {
            if let Type::Alias(name, _) = model.ty(TypeId(index as u32)) {
                declared.insert(name.clone());
            }
        }
        let words: HashSet<String> = declared.iter().flat_map(|n| n.split("::")).map(str::to_owned).collect();
        let mut runtime_name = "rt".to_owned();
        while words.contains(&runtime_name) {
            runtime_name.push('_');
        }
        Emitter {
            model,
            declared,
            words,
            runtime_name,
            taken: HashSet::new(),
            sizes: Sizes::new(model),
            root: Module::default(),
            type_names,
            emitted: HashSet::new(),
            travels: Vec::new(),
            refused: Vec::new(),
            exceptions: HashSet::new(),
        }
    }

    fn refuse(&mut self, operation: &Operation, what: String) {
        let message = format!("`{}` cannot be translated: {what}", operation.name);
        self.refused.push(Diagnostic::error(Code::Unsupported, operation.span, message));
    }

    // --- names and types

    /// The modules around a name, and the name in Rust.
    fn place(&self, path: &str) -> (Vec<String>, String) {
        let parts: Vec<&str> = path.split("::").collect();
        let mut modules = Vec::new();
        let mut prefix = String::new();
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                prefix.push_str("::");
            }
            prefix.push_str(part);
            if i + 1 == parts.len() || self.type_names.contains(&prefix) {
                return (modules, parts[i..].join("_"));
            }
            modules.push((*part).to_owned());
        }
        (modules, String::new())
    }

    /// The path to a name, as seen from a module.
    fn path(&self, from: &[String], to: &str) -> TokenStream {
        let (modules, item) = self.place(to);
        let common = from.iter().zip(&modules).take_while(|(a, b)| a == b).count();
        let up = from[common..].iter().map(|_| quote! { super:: });
        let down = modules[common..].iter().map(|m| {
            let m = name(m);
            quote! { #m:: }
        });
        let item = name(&item);
        quote! { #(#up)* #(#down)* #item }
    }

    fn runtime(&self, from: &[String]) -> TokenStream {
        let up = from.iter().map(|_| quote! { super:: });
        let module = name(&self.runtime_name);
        quote! { #(#up)* #module }
    }

    /// A name of our own in an interface's module, kept apart from those that the file declares there.
    fn own_name(&self, from: &[String], wanted: &str) -> Ident {
        let mut own = wanted.to_owned();
        while self.declared.contains(&format!("{}::{own}", from.join("::"))) {
            own.push('_');
        }
        name(&own)
    }

    /// A type, as seen from a module.
    fn ty(&self, from: &[String], ty: TypeId) -> TokenStream {
        let ty = self.model.resolved(ty);
        match self.model.ty(ty) {
            Type::Bool => quote! { __bool },
            Type::Octet | Type::Char => quote! { __u8 },
            Type::WideChar => quote! { __char },
            Type::Int { bits, signed } => {
                let ident = format_ident!("__{}{}", if *signed { "i" } else { "u" }, bits.to_string());
                quote! { #ident }
            }
            Type::Float(bits) => {
                let ident = format_ident!("__f{}", bits.to_string());
                quote! { #ident }
            }
            Type::Str { .. } => quote! { __String },
            Type::Sequence(of, _) => {
                let of = self.ty(from, *of);
                quote! { __Vec<#of> }
            }
            Type::Array(of, dims) => {
                let mut of = self.ty(from, *of);
                for dim in dims.iter().rev() {
                    let dim = proc_macro2::Literal::usize_unsuffixed(*dim as usize);
                    of = quote! { [#of; #dim] };
                }
                of
            }
            Type::Struct(name, _)
            | Type::Enum(name, _)
            | Type::Bitmask(name, ..)
            | Type::Union { name, .. } => self.path(from, name),
            _ => quote! { () },
        }
    }

    /// Whether values are passed by copy.
    fn is_small(&self, ty: TypeId) -> bool {
        matches!(
            self.model.ty(self.model.resolved(ty)),
            Type::Bool
                | Type::Octet
                | Type::Char
                | Type::WideChar
                | Type::Int { .. }
                | Type::Float(_)
                | Type::Enum(..)
                | Type::Bitmask(..)
        )
    }

    fn argument(&self, from: &[String], param: &str, ty: TypeId) -> Argument {
        let name = name(param);
        let owned = self.ty(from, ty);
        let (declared, passed) = match self.model.ty(self.model.resolved(ty)) {
            _ if self.is_small(ty) => (quote! { #name: #owned }, quote! { #name }),
            Type::Str { .. } => (quote! { #name: &__str }, quote! { &#name }),
            Type::Sequence(of, _) => {
                let of = self.ty(from, *of);
                (quote! { #name: &[#of] }, quote! { &#name })
            }
            _ => (quote! { #name: &#owned }, quote! { &#name }),
        };
        Argument { declared, passed }
    }

    // --- messages

    /// An expression for the leaf at a path.
    fn leaf(path: &[String]) -> TokenStream {
        let mut parts = path.iter().map(|p| name(p));
        let first = parts.next();
        quote! { #first #(.#parts)* }
    }

    /// Statements that check the bounds of what a message holds; `failed` is the expression for one that is not kept.
    fn bounds(&self, ty: TypeId, value: &TokenStream, failed: &TokenStream, depth: usize) -> TokenStream {
        let item = format_ident!("e{}", depth.to_string());
        match self.model.ty(self.model.resolved(ty)) {
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

    /// Statements that write a message into `out`. The values are variables called like the first part of each path.
    fn write(
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
            let Place::Memory(at) = slot.place else { return TokenStream::new() };
            let at = proc_macro2::Literal::u64_unsuffixed(at);
            match slot.leaf {
                Leaf::Value(_) => quote! { _out.at(#at); #rt::Wire::put(&#value, &mut _out); },
                Leaf::Count(_) => quote! { _out.at(#at); #rt::put_count(#value.len(), &mut _out); },
            }
        });
        let fixed = proc_macro2::Literal::u64_unsuffixed(message.memory_bytes);
        let chunks = message.chunks.iter().map(|chunk| {
            let value = Emitter::leaf(&chunk.path);
            match (self.model.ty(self.model.resolved(chunk.ty)), chunk.element) {
                (Type::Str { .. }, _) => quote! { _out.align(8); #rt::put_text(&#value, &mut _out); },
                (Type::Sequence(..), Some(_)) => quote! { _out.align(8); #rt::put_elements(&#value, &mut _out); },
                (Type::Sequence(..), None) => {
                    quote! { _out.align(8); #rt::put_count(#value.len(), &mut _out); #rt::put_elements(&#value, &mut _out); }
                }
                _ => quote! { _out.align(8); { use #rt::Wire as _; #value.put(&mut _out); } },
            }
        });
        quote! {
            #(#bounds)*
            let mut _out = #rt::Out::default();
            #(#slots)*
            _out.at(#fixed);
            #(#chunks)*
        }
    }

    /// The bounds of fields, for a struct that is taken apart and so never passes through its own `get`.
    fn struct_bounds(
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

    /// Statements that read a message from `body` and leave its values in variables.
    fn read(
        &self,
        from: &[String],
        rt: &TokenStream,
        message: &Message,
        values: &[(String, TypeId)],
    ) -> TokenStream {
        let mut variables: HashMap<&[String], Ident> = HashMap::new();
        let mut counts: HashMap<&[String], Ident> = HashMap::new();
        let mut statements = Vec::new();
        for (i, slot) in message.slots.iter().enumerate() {
            let variable = format_ident!("_slot_{}", i.to_string());
            let Place::Memory(at) = slot.place else { continue };
            let at = proc_macro2::Literal::u64_unsuffixed(at);
            match slot.leaf {
                Leaf::Value(ty) => {
                    let ty = self.ty(from, ty);
                    statements.push(
                        quote! { _body.at(#at)?; let #variable = <#ty as #rt::Wire>::get(&mut _body)?; },
                    );
                    variables.insert(&slot.path, variable);
                }
                Leaf::Count(_) => {
                    statements.push(quote! { _body.at(#at)?; let #variable = <__u32 as #rt::Wire>::get(&mut _body)? as __usize; });
                    counts.insert(&slot.path, variable);
                }
            }
        }
        let fixed = proc_macro2::Literal::u64_unsuffixed(message.memory_bytes);
        statements.push(quote! { _body.at(#fixed)?; });
        for (i, chunk) in message.chunks.iter().enumerate() {
            let variable = format_ident!("_chunk_{}", i.to_string());
            let ty = self.ty(from, chunk.ty);
            let count = counts.get(chunk.path.as_slice());
            statements.push(match (self.model.ty(self.model.resolved(chunk.ty)), chunk.element) {
                (Type::Str { .. }, _) => {
                    quote! { _body.align(8)?; let #variable: #ty = _body.text(#count)?; }
                }
                (Type::Sequence(..), Some(element)) => {
                    let size = proc_macro2::Literal::u64_unsuffixed(element.size);
                    // Before the check of what is there, the one of what may be there: a length is refused at once.
                    let bound = chunk.bound.map(|bound| {
                        let bound = proc_macro2::Literal::u64_unsuffixed(bound);
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
            });
            variables.insert(&chunk.path, variable);
        }
        statements.push(quote! { _body.finish()?; });
        let failed = quote! { #rt::Malformed.into() };
        for (param, ty) in values {
            let value = self.build(from, &mut vec![param.clone()], *ty, &variables, 0);
            let ident = name(param);
            let own = self.bounds(*ty, &quote! { #ident }, &failed, 0);
            let inner = self.struct_bounds(*ty, &quote! { #ident }, &failed, 0);
            statements.push(quote! { let #ident = #value; #own #inner });
        }
        quote! { #(#statements)* }
    }

    /// Puts a value together from its leaves.
    fn build(
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

    // --- interfaces

    fn interface(&mut self, layout: &InterfaceLayout) {
        let model = self.model;
        let interface = &model.interfaces[layout.interface.0 as usize];
        let from: Vec<String> = interface.name.split("::").map(str::to_owned).collect();
        let rt = self.runtime(&from);
        let operations = model.operations(layout.interface);
        let names = method_names(&operations);
        let (mut client, mut server, mut arms, mut errors) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for ((operation, method), rust) in operations.iter().zip(&layout.methods).zip(&names) {
            if let Some(what) = self.untranslatable(operation) {
                self.refuse(operation, what);
                continue;
            }
            let error = self.error_type(&from, &rt, operation, rust, &mut errors);
            let signature = self.signature(&from, operation, rust, &error);
            let doc = format!(" The operation `{}`.", operation.name);
            server.push(quote! { #[doc = #doc] #signature; });
            let method_tokens = self.client_method(&from, &rt, operation, method, &signature, &error);
            client.push(quote! { #[doc = #doc] #method_tokens });
            arms.push(self.dispatch_arm(&from, &rt, operation, method, rust));
        }
        let doc = format!(" The interface `{}`.", interface.name);
        let server_trait = self.own_name(&from, "Server");
        let client_struct = self.own_name(&from, "Client");
        let dispatch = self.own_name(&from, "dispatch");
        let dispatch_checked = self.own_name(&from, "dispatch_checked");
        let module = self.root.at(&from);
        module.items.insert(
            0,
            quote! {
                #[doc = #doc]
                pub trait #server_trait { #(#server)* }
            },
        );
        module.items.push(quote! {
            /// Calls a server.
            #[derive(Debug)]
            pub struct #client_struct<T> {
                /// The way to it.
                pub transport: T,
            }
        });
        module.items.push(quote! { impl<T: #rt::Transport> #client_struct<T> { #(#client)* } });
        module.items.extend(errors);
        module.items.push(quote! {
            /// Answers a request: checks it, calls the method, writes the reply. Nothing comes back from a oneway one.
            pub fn #dispatch<S: #server_trait + ?Sized>(_server: &mut S, label: __u32, _body: &[__u8]) -> __Option<(__u32, __Vec<__u8>)> {
                let answer = #dispatch_checked(_server, label, _body);
                match answer {
                    Ok(reply) => reply,
                    Err(#rt::Malformed) => Some((#rt::MALFORMED, __Vec::new())),
                }
            }
        });
        module.items.push(quote! {
            fn #dispatch_checked<S: #server_trait + ?Sized>(
                _server: &mut S,
                _label: __u32,
                _body: &[__u8],
            ) -> __Result<__Option<(__u32, __Vec<__u8>)>, #rt::Malformed> {
                let mut _body = #rt::In::new(_body);
                match _label {
                    #(#arms)*
                    _ => Ok(Some((#rt::NO_METHOD, __Vec::new()))),
                }
            }
        });
    }

    /// What Rust cannot hold, of what the layout can carry.
    fn untranslatable(&self, operation: &Operation) -> Option<String> {
        let void = matches!(self.model.ty(self.model.resolved(operation.result)), Type::Void);
        let result = (!void).then_some(operation.result);
        let types = operation.params.iter().map(|p| p.ty).chain(result);
        let mut stack: Vec<TypeId> = types.collect();
        stack.extend(
            operation.raises.iter().flat_map(|id| &self.model.exceptions[id.0 as usize].fields).map(|f| f.ty),
        );
        let mut seen = HashSet::new();
        while let Some(ty) = stack.pop() {
            let ty = self.model.resolved(ty);
            if !seen.insert(ty) {
                continue;
            }
            if !self.travels[ty.0 as usize] {
                return Some(format!("`{}` cannot be written in Rust", self.model.show(ty)));
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
                Type::Sequence(of, _) => stack.push(*of),
                Type::Struct(name, fields) => {
                    if !self.emitted.contains(&ty) {
                        return Some(format!("the struct `{name}` cannot be written in Rust"));
                    }
                    stack.extend(fields.iter().map(|f| f.ty));
                }
                Type::Union { name, branches, .. } => {
                    if !self.emitted.contains(&ty) {
                        return Some(format!("the union `{name}` cannot be written in Rust"));
                    }
                    stack.extend(branches.iter().map(|b| b.field.ty));
                }
                _ => {}
            }
        }
        None
    }

    /// The error of a method: the runtime's failures, or an enum with the exceptions beside them.
    fn error_type(
        &mut self,
        from: &[String],
        rt: &TokenStream,
        operation: &Operation,
        rust: &str,
        errors: &mut Vec<TokenStream>,
    ) -> TokenStream {
        if operation.raises.is_empty() {
            return quote! { #rt::Failure };
        }
        let error = self.own_name(from, &format!("{}Error", camel(rust)));
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
    fn variants(&self, operation: &Operation) -> Vec<(Ident, String)> {
        let mut taken = HashSet::from(["Failure".to_owned()]);
        let exceptions = operation.raises.iter().map(|id| self.model.exceptions[id.0 as usize].name.clone());
        exceptions
            .map(|path| {
                let mut variant = camel(path.rsplit("::").next().unwrap_or(""));
                while !taken.insert(variant.clone()) {
                    variant.push('_');
                }
                (name(&variant), path)
            })
            .collect()
    }

    fn results(&self, operation: &Operation) -> Vec<(String, TypeId)> {
        let mut results = Vec::new();
        if !matches!(self.model.ty(self.model.resolved(operation.result)), Type::Void) {
            results.push(("_result".to_owned(), operation.result));
        }
        let outs = operation.params.iter().filter(|p| p.direction != Direction::In);
        results.extend(outs.map(|p| (p.name.clone(), p.ty)));
        results
    }

    fn inputs(&self, operation: &Operation) -> Vec<(String, TypeId)> {
        let ins = operation.params.iter().filter(|p| p.direction != Direction::Out);
        ins.map(|p| (p.name.clone(), p.ty)).collect()
    }

    fn signature(
        &self,
        from: &[String],
        operation: &Operation,
        rust: &str,
        error: &TokenStream,
    ) -> TokenStream {
        let arguments: Vec<TokenStream> =
            self.inputs(operation).iter().map(|(n, ty)| self.argument(from, n, *ty).declared).collect();
        let results: Vec<TokenStream> =
            self.results(operation).iter().map(|(_, ty)| self.ty(from, *ty)).collect();
        let result = tuple(&results);
        let ident = name(rust);
        quote! { fn #ident(&mut self, #(#arguments),*) -> __Result<#result, #error> }
    }

    fn client_method(
        &self,
        from: &[String],
        rt: &TokenStream,
        operation: &Operation,
        method: &Method,
        signature: &TokenStream,
        error: &TokenStream,
    ) -> TokenStream {
        let label = method.request.label;
        let failed = quote! { #rt::Failure::TooLong.into() };
        let write = self.write(rt, &method.request, &self.inputs(operation), &failed);
        if operation.oneway {
            return quote! {
                pub #signature {
                    #write
                    self.transport.send(#label, &_out.finish()?)
                }
            };
        }
        let results = self.results(operation);
        let read = self.read(from, rt, &method.reply, &results);
        let values: Vec<Ident> = results.iter().map(|(n, _)| name(n)).collect();
        let value = tuple(&values);
        let exceptions =
            self.variants(operation).into_iter().zip(&method.exceptions).zip(&operation.raises).map(
                |(((variant, path), (_, message)), id)| {
                    let label = message.label;
                    let fields = fields_of(&self.model.exceptions[id.0 as usize].fields);
                    let read = self.read(from, rt, message, &fields);
                    let names = fields.iter().map(|(n, _)| name(n));
                    let path = self.path(from, &path);
                    quote! { #label => { #read Err(#error::#variant(#path { #(#names),* })) } }
                },
            );
        quote! {
            pub #signature {
                #write
                let (_label, _reply) = self.transport.call(#label, &_out.finish()?)?;
                let mut _body = #rt::In::new(&_reply);
                match _label {
                    0 => { #read Ok(#value) }
                    #(#exceptions)*
                    _ => Err(#rt::Failure::Refused(_label).into()),
                }
            }
        }
    }

    fn dispatch_arm(
        &self,
        from: &[String],
        rt: &TokenStream,
        operation: &Operation,
        method: &Method,
        rust: &str,
    ) -> TokenStream {
        let label = method.request.label;
        let inputs = self.inputs(operation);
        let read = self.read(from, rt, &method.request, &inputs);
        let arguments: Vec<TokenStream> =
            inputs.iter().map(|(n, ty)| self.argument(from, n, *ty).passed).collect();
        let ident = name(rust);
        let server_trait = self.own_name(from, "Server");
        let call = quote! { #server_trait::#ident(_server, #(#arguments),*) };
        if operation.oneway {
            return quote! { #label => { #read let _ = #call; Ok(None) } };
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
        let ok = finish(0);
        let failures = if operation.raises.is_empty() {
            quote! { Err(_failure) => { #failure } }
        } else {
            let error = self.own_name(from, &format!("{}Error", camel(rust)));
            let exceptions =
                self.variants(operation).into_iter().zip(&method.exceptions).zip(&operation.raises).map(
                    |(((variant, path), (_, message)), id)| {
                        let fields = fields_of(&self.model.exceptions[id.0 as usize].fields);
                        let write = self.write(rt, message, &fields, &failed);
                        let names = fields.iter().map(|(n, _)| name(n));
                        let path = self.path(from, &path);
                        let finish = finish(message.label);
                        quote! { Err(#error::#variant(#path { #(#names),* })) => { #write #finish } }
                    },
                );
            quote! { #(#exceptions)* Err(#error::Failure(_failure)) => { #failure } }
        };
        quote! {
            #label => {
                #read
                match #call {
                    Ok(#pattern) => { #write #ok }
                    #failures
                }
            }
        }
    }

    // --- constants

    fn constants(&mut self) {
        for constant in &self.model.consts {
            let Some((ty, value)) = self.constant(constant) else { continue };
            let (modules, item) = self.place(&constant.name);
            let ident = name(&item);
            let doc = format!(" The constant `{}`.", constant.name);
            self.root.at(&modules).items.push(quote! { #[doc = #doc] pub const #ident: #ty = #value; });
        }
    }

    fn constant(&self, constant: &Const) -> Option<(TokenStream, TokenStream)> {
        let (from, _) = self.place(&constant.name);
        let ty = self.ty(&from, constant.ty);
        Some(match &constant.value {
            Value::Int(v) => {
                let literal = proc_macro2::Literal::i128_unsuffixed(*v);
                match self.model.ty(self.model.resolved(constant.ty)) {
                    Type::Int { .. } | Type::Octet => (ty, quote! { #literal }),
                    Type::Bitmask(..) => (ty.clone(), quote! { #ty(#literal) }),
                    _ => return None,
                }
            }
            Value::Float(v)
                if matches!(self.model.ty(self.model.resolved(constant.ty)), Type::Float(32 | 64)) =>
            {
                let literal = proc_macro2::Literal::f64_unsuffixed(*v);
                (ty, quote! { #literal })
            }
            Value::Bool(v) => (ty, quote! { #v }),
            Value::Char(v) => {
                let literal = proc_macro2::Literal::u32_unsuffixed(*v);
                (ty, quote! { #literal })
            }
            Value::WideChar(v) => {
                let literal = proc_macro2::Literal::character(char::from_u32(*v)?);
                (ty, quote! { #literal })
            }
            Value::Str(v) | Value::WideStr(v) => {
                let text: Option<String> = v.iter().map(|&c| char::from_u32(c)).collect();
                let text = text?;
                (quote! { &__str }, quote! { #text })
            }
            Value::Enum(of, v) => {
                let Type::Enum(_, members) = self.model.ty(*of) else { return None };
                let (member, _) = members.iter().find(|m| m.1 == *v)?;
                let (path, member) = (self.ty(&from, *of), name(member));
                (path.clone(), quote! { #path::#member })
            }
            _ => return None,
        })
    }
}

fn fields_of(fields: &[Field]) -> Vec<(String, TypeId)> {
    fields.iter().map(|f| (f.name.clone(), f.ty)).collect()
}

fn tuple<T: quote::ToTokens>(parts: &[T]) -> TokenStream {
    match parts {
        [one] => quote! { #one },
        parts => quote! { (#(#parts),*) },
    }
}

/// Names of methods: attributes become `name` and `set_name`, and whatever would then be there twice gets an underscore.
fn method_names(operations: &[&Operation]) -> Vec<String> {
    let mut taken: HashSet<String> = operations.iter().map(|o| o.name.clone()).collect();
    let mut names = Vec::new();
    for operation in operations {
        let plain = match operation.name.strip_prefix("_get_") {
            Some(attribute) => attribute.to_owned(),
            None => match operation.name.strip_prefix("_set_") {
                Some(attribute) => format!("set_{attribute}"),
                None => {
                    names.push(operation.name.clone());
                    continue;
                }
            },
        };
        let mut unique = plain;
        while !taken.insert(unique.clone()) {
            unique.push('_');
        }
        names.push(unique);
    }
    names
}
