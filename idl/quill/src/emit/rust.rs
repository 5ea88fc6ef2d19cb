//! Rust: a file with the types, and for each interface a module with a trait `Server`, a struct `Client` and what a kernel
//! part adds.
//!
//! Modules and interfaces become modules; what is declared inside a struct gets the struct's name before its own. What is
//! the same for all kernels is here: names, types, signatures, errors. How values get into messages and messages to
//! servers is the business of a [`Part`]: [`linux`], [`tern`]. The layout says where every value lies; nothing here
//! computes a place.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};

use self::contexts::rundowns;
use crate::codes::Code;
use crate::diag::Diagnostic;
use crate::emit::travel::{is_opaque, sharing, streamed, why};
use crate::kernel::KernelPart;
use crate::layout::{self, InterfaceLayout, Message, Method, Room};
use crate::limits;
use crate::marshal::Lying;
use crate::model::{Direction, ExceptionId, Field, InterfaceId, Model, Operation, Param, Type, TypeId};
use crate::sizes::Sizes;
use crate::source;

mod agree;
mod any;
mod constants;
mod contexts;
mod flat;
pub mod linux;
mod names;
pub mod selftest;
pub mod tern;
mod types;
pub mod values;

/// What a kernel part adds to the Rust that is the same for all kernels.
pub trait Part: Sync {
    /// What stubs share: text of a module for the file itself, or the path of a crate.
    fn runtime(&self) -> Runtime;

    /// Whether a type can be in a message, as far as this part is concerned.
    fn carries(&self, emitter: &Emitter, ty: TypeId) -> bool;

    /// Why there can be no code for a method, if the layout has places for its messages.
    fn refuses(&self, emitter: &Emitter, method: &Method) -> Option<String>;

    /// The owned form of a string or sequence, of at most so many elements.
    fn list(&self, rt: &TokenStream, element: Element, bound: Option<u64>) -> TokenStream;

    /// The owned form of a value that lies elsewhere.
    fn elsewhere(&self, _rt: &TokenStream, of: TokenStream) -> TokenStream {
        quote! { __Box<#of> }
    }

    /// An expression for the owned form of a text that is known to fit, `text`; the empty one without.
    fn owned_text(&self, rt: &TokenStream, text: Option<TokenStream>) -> TokenStream;

    /// What a method gives back for a result: to its caller, or from the server.
    fn result(
        &self,
        emitter: &Emitter,
        from: &[String],
        _method: &Method,
        (_result, ty): (&str, TypeId),
        _side: Side,
    ) -> TokenStream {
        emitter.ty(from, ty)
    }

    /// What a method of the client needs besides its arguments: generic parameters, the client itself and more.
    fn client_needs(
        &self,
        _emitter: &Emitter,
        _from: &[String],
        _method: &Method,
    ) -> (TokenStream, TokenStream) {
        (TokenStream::new(), quote! { &mut self })
    }

    /// What a method of the server is given besides its arguments.
    fn server_needs(&self, _emitter: &Emitter, _method: &Method) -> (TokenStream, TokenStream) {
        (TokenStream::new(), quote! { &mut self })
    }

    /// What a declared type implements.
    fn implement(&self, emitter: &Emitter, from: &[String], ty: TypeId) -> TokenStream;

    /// What a reference to an object is, if its holder owns it and it is handed over; else it is a word that says where the object is.
    fn reference(&self, _: &Emitter, _from: &[String], _to: Option<InterfaceId>) -> Option<TokenStream> {
        None
    }

    /// A word that says where an object is.
    fn object(&self, rt: &TokenStream) -> TokenStream {
        quote! { #rt::Uid }
    }

    /// Names of methods that servers have besides those of their interface.
    fn methods(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether a list with this bound lies in its value.
    fn holds(&self, _bound: Option<u64>) -> bool {
        false
    }

    /// What the trait of a server has besides the methods of its interface.
    fn server_extras(&self, rt: &TokenStream) -> TokenStream;

    /// Whether servers are told which context handles a client has left open when it is gone.
    fn runs_down(&self) -> bool {
        false
    }

    /// The client, and what answers requests.
    fn interface(&self, emitter: &Emitter, interface: &InterfaceParts) -> Vec<TokenStream>;

    /// The self-test.
    fn selftest(&self) -> &'static dyn selftest::SelfTest;
}

/// One side of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It gets the results.
    Client,
    /// It gives them.
    Server,
}

/// What stubs share.
#[derive(Clone, Copy, Debug)]
pub enum Runtime {
    /// A module `rt`, copied into each file so that a file depends on nothing.
    Inside(&'static str),
    /// A crate.
    Crate(&'static str),
}

/// What a list consists of.
#[derive(Clone, Debug)]
pub enum Element {
    /// Characters.
    Text,
    /// Values of a type.
    Of(TokenStream),
}

/// Arrays from this size on would lie on the stack of whoever reads them.
const ARRAY_BYTES_MAX: u64 = 64 << 10;

/// What the text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be used.
    Stubs,
    /// To be tested: with a module that tests all interfaces.
    SelfTest,
}

/// The Rust text for a model that was laid out for a kernel.
pub fn emit(model: &Model, kernel: &dyn KernelPart, purpose: Purpose) -> Result<String, Vec<Diagnostic>> {
    let Some(part) = kernel.rust() else {
        let message = format!("the kernel part `{}` has no Rust", kernel.name());
        return Err(vec![Diagnostic::error(Code::Unsupported, source::Span::default(), message)]);
    };
    if model.types_len() > limits::TYPES_MAX {
        let message = format!("the file has more than {} types, too many for Rust output", limits::TYPES_MAX);
        return Err(vec![Diagnostic::error(Code::Limit, source::Span::default(), message)]);
    }
    let model = &names::renamed(model);
    let layouts = &layout::layout(model, kernel)?;
    let mut emitter = Emitter::new(model, part);
    emitter.types();
    let (mut interfaces, mut direct) = (Vec::new(), Vec::new());
    for layout in layouts {
        match model.interfaces[layout.interface.0 as usize].local {
            true => direct.push(layout.interface),
            false => interfaces.push(emitter.interface(layout)),
        }
    }
    direct.into_iter().for_each(|interface| emitter.direct(interface));
    emitter.constants();
    if !emitter.refused.is_empty() {
        return Err(emitter.refused);
    }
    let mut items = emitter.root.tokens();
    if purpose == Purpose::SelfTest {
        items.extend(emitter.selftest(part.selftest(), &interfaces));
    }
    let items = spell_out(items, &emitter.words);
    let runtime = match part.runtime() {
        Runtime::Inside(text) => {
            let text = text.replace("pub mod rt {", &format!("pub mod {} {{", emitter.runtime_name));
            let module: TokenStream = text.parse().unwrap_or_default();
            module
        }
        Runtime::Crate(_) => TokenStream::new(),
    };
    let tokens = quote! { #items #runtime };
    match syn::parse2::<syn::File>(tokens) {
        Ok(mut file) => {
            file.items.iter_mut().for_each(allow);
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
                        "Box" => "::std::boxed::Box",
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

/// Names keep the form that the interface file gives them, in each item: a file that is included has no place for something about all of it.
fn allow(item: &mut syn::Item) {
    let attributes = match item {
        syn::Item::Const(item) => &mut item.attrs,
        syn::Item::Enum(item) => &mut item.attrs,
        syn::Item::Impl(item) => &mut item.attrs,
        syn::Item::Mod(item) => &mut item.attrs,
        syn::Item::Struct(item) => &mut item.attrs,
        syn::Item::Trait(item) => &mut item.attrs,
        syn::Item::Type(item) => &mut item.attrs,
        _ => return,
    };
    let allowed = syn::parse_quote! {
        #[allow(dead_code, non_snake_case, non_camel_case_types, non_upper_case_globals, unused_imports, unused_parens, clippy::all)]
    };
    attributes.insert(0, allowed);
}

/// A Rust name; keywords become raw. Modules and methods may still have a name that cannot be raw, which gets an underscore.
fn name(text: &str) -> Ident {
    let text = &*names::escaped(text);
    // A keyword since the edition of 2024.
    if text == "gen" {
        return Ident::new_raw(text, Span::call_site());
    }
    syn::parse_str::<Ident>(text).unwrap_or_else(|_| {
        let clean = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if clean && starts { Ident::new_raw(text, Span::call_site()) } else { format_ident!("unnamed") }
    })
}

/// Name of a module in Rust: a keyword becomes raw, or gets an underscore where that cannot be.
pub fn module_name(text: &str) -> String {
    name(text).to_string()
}

/// The form that Rust gives the names of types.
fn camel(text: &str) -> String {
    let mut out = String::new();
    for part in text.split('_').filter(|p| !p.is_empty()) {
        let (first, rest) = part.split_at(part.chars().next().map_or(0, char::len_utf8));
        out.push_str(&first.to_uppercase());
        out.push_str(rest);
    }
    if !out.starts_with(|c: char| c.is_ascii_alphabetic()) {
        out.insert(0, 'N');
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

    fn tokens(&self) -> TokenStream {
        let items = &self.items;
        let modules = self.modules.iter().map(|(module, content)| {
            let (module, content) = (name(module), content.tokens());
            quote! { pub mod #module { #content } }
        });
        quote! { #(#items)* #(#modules)* }
    }
}

/// A file of Rust in the making.
pub struct Emitter<'a> {
    model: &'a Model,
    part: &'static dyn Part,
    sizes: Sizes,
    root: Module,
    /// Names that are types and not modules, to tell `M::S::Inner` from `M::N::T`.
    type_names: HashSet<String>,
    /// All names that the file declares, with the modules around them.
    declared: HashSet<String>,
    /// Each part of these names on its own.
    words: HashSet<String>,
    /// What the runtime's module is called.
    runtime_name: String,
    /// Names that the output has, by place: a tag and a typedef of DCE may share one.
    taken: HashSet<String>,
    /// Types that travel, so that the output has them.
    emitted: HashSet<TypeId>,
    /// Which types can travel at all.
    travels: Vec<bool>,
    /// Other types that a local interface can use.
    held: Vec<bool>,
    /// Which of them may be read piece by piece.
    streamed: Vec<bool>,
    /// Which have parts that several values may have in common.
    shares: Vec<bool>,
    /// How large their values are, once somebody has asked.
    owned: OnceCell<Vec<u64>>,
    refused: Vec<Diagnostic>,
    exceptions: HashSet<ExceptionId>,
}

/// One parameter as a method of Rust has it.
struct Argument {
    declared: TokenStream,
    /// The expression that a server's method is given for the owned value.
    passed: TokenStream,
}

/// An interface, as far as all kernels have it in common.
pub struct InterfaceParts<'a> {
    /// The modules down to its own.
    from: Vec<String>,
    /// The path to the runtime.
    rt: TokenStream,
    /// Names of the output in the module.
    server_trait: Ident,
    client_struct: Ident,
    methods: Vec<MethodParts<'a>>,
    layout: &'a InterfaceLayout,
    /// Memory for its requests, where these need some.
    room: Room,
    /// Memory for their replies.
    replies: Room,
    /// How its servers are told of context handles that a client has left open, if they are.
    rundowns: Vec<contexts::Rundown>,
}

impl InterfaceParts<'_> {
    /// Whether a call of one of its methods hands pages over.
    fn hands_pages(&self) -> bool {
        self.methods.iter().any(|parts| parts.method.hands_pages())
    }
}

/// A method, as far as all kernels have it in common.
pub struct MethodParts<'a> {
    operation: &'a Operation,
    method: &'a Method,
    /// Its name in Rust.
    rust: String,
    /// The type of its error.
    error: TokenStream,
    /// `fn`, name, parameters, result.
    signature: TokenStream,
}

/// An exception that a method raises.
struct Raised<'a> {
    message: &'a Message,
    fields: Vec<(String, TypeId)>,
    /// The error that it is: an expression, or a pattern, of variables with the names of its fields.
    error: TokenStream,
}

impl<'a> Emitter<'a> {
    fn new(model: &'a Model, part: &'static dyn Part) -> Emitter<'a> {
        let type_names = names::type_names(model);
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
            part,
            declared,
            words,
            runtime_name,
            taken: HashSet::new(),
            sizes: Sizes::new(model),
            root: Module::default(),
            type_names,
            emitted: HashSet::new(),
            travels: Vec::new(),
            held: Vec::new(),
            shares: sharing(model),
            streamed: streamed(model, &Sizes::new(model), Lying::Long),
            owned: OnceCell::new(),
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
        names::place(&self.type_names, path)
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
        if let Runtime::Crate(path) = self.part.runtime() {
            let path = name(path);
            return quote! { ::#path };
        }
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
            Type::Str { bound, .. } => self.part.list(&self.runtime(from), Element::Text, *bound),
            Type::Sequence(of, bound) => {
                let of = Element::Of(self.ty(from, *of));
                self.part.list(&self.runtime(from), of, *bound)
            }
            Type::Optional(of) => {
                let inner = self.ty(from, *of);
                let inner = match self.is_boxed(*of) {
                    true => self.part.elsewhere(&self.runtime(from), inner),
                    false => inner,
                };
                quote! { __Option<#inner> }
            }
            Type::Shared(of) => {
                let (rt, inner) = (self.runtime(from), self.ty(from, *of));
                quote! { __Option<#rt::Shared<#inner>> }
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
            | Type::Flat(name, _)
            | Type::Enum(name, _)
            | Type::Bitmask(name, ..)
            | Type::Union { name, .. } => self.path(from, name),
            Type::Object(to) => {
                self.part.reference(self, from, *to).unwrap_or_else(|| self.part.object(&self.runtime(from)))
            }
            Type::Fpage => {
                let rt = self.runtime(from);
                quote! { #rt::Fpage }
            }
            kind if is_opaque(kind) => quote! { *mut ::core::ffi::c_void },
            _ => quote! { () },
        }
    }

    /// Whether a value that may be absent lies elsewhere: it may be large, or contain others of its type.
    fn is_boxed(&self, of: TypeId) -> bool {
        matches!(
            self.model.ty(self.model.resolved(of)),
            Type::Struct(..) | Type::Union { .. } | Type::Flat(..) | Type::Array(..)
        )
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
                | Type::Object(_)
                | Type::Fpage
        ) || is_opaque(self.model.ty(self.model.resolved(ty)))
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

    // --- what all kernel parts share

    /// An expression for the leaf at a path.
    fn leaf(path: &[String]) -> TokenStream {
        let mut parts = path.iter().map(|p| name(p));
        let first = parts.next();
        quote! { #first #(.#parts)* }
    }

    /// Statements that put values together from their leaves and check what their types cannot say.
    fn build_values(
        &self,
        from: &[String],
        values: &[(String, TypeId)],
        variables: &HashMap<&[String], Ident>,
        failed: &TokenStream,
    ) -> TokenStream {
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

    /// Statements that check the bounds of a message's values, which are variables.
    fn all_bounds(&self, values: &[(String, TypeId)], failed: &TokenStream) -> TokenStream {
        let bounds = values.iter().map(|(param, ty)| {
            let value = name(param);
            let own = self.bounds(*ty, &quote! { #value }, failed, 0);
            let inner = self.struct_bounds(*ty, &quote! { #value }, failed, 0);
            quote! { #own #inner }
        });
        quote! { #(#bounds)* }
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

    /// Statements that check the bounds of what a message holds; `failed` is the expression for one that is not kept.
    fn bounds(&self, ty: TypeId, value: &TokenStream, failed: &TokenStream, depth: usize) -> TokenStream {
        let item = format_ident!("e{}", depth.to_string());
        match self.model.ty(self.model.resolved(ty)) {
            _ if self.model.is_any(ty) => quote! { if !#value.is_sound() { return Err(#failed); } },
            Type::Struct(..) if self.model.agreements.contains_key(&self.model.resolved(ty)) => {
                quote! { if !#value._agrees() { return Err(#failed); } }
            }
            Type::Optional(of) => {
                let inner = self.bounds(*of, &quote! { #item }, failed, depth + 1);
                if inner.is_empty() {
                    return inner;
                }
                quote! { if let Some(#item) = #value.as_ref() { #inner } }
            }
            Type::Shared(of) => {
                let inner = self.bounds(*of, &quote! { #item }, failed, depth + 1);
                if inner.is_empty() {
                    return inner;
                }
                quote! { if let Some(#item) = #value.as_deref() { #inner } }
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

    fn interface(&mut self, layout: &'a InterfaceLayout) -> InterfaceParts<'a> {
        let model = self.model;
        let interface = &model.interfaces[layout.interface.0 as usize];
        let from: Vec<String> = interface.name.split("::").map(str::to_owned).collect();
        let rt = self.runtime(&from);
        let operations = model.operations(layout.interface);
        let names = method_names(&operations, self.part.methods());
        let (mut server, mut methods, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for ((&operation, method), rust) in operations.iter().zip(&layout.methods).zip(names.iter().cloned())
        {
            if let Some(what) =
                self.untranslatable(operation, false).or_else(|| self.part.refuses(self, method))
            {
                self.refuse(operation, what);
                continue;
            }
            let error = self.error_type(&from, &rt, operation, &names, &rust, &mut errors);
            let doc = format!(" The operation `{}`.", operation.name);
            let declared = self.signature(&from, (operation, method), &rust, &error, Side::Server);
            server.push(quote! { #[doc = #doc] #declared; });
            let signature = self.signature(&from, (operation, method), &rust, &error, Side::Client);
            let signature = quote! { #[doc = #doc] pub #signature };
            // A plain name, so that only what the file declares can be in its way.
            methods.push(MethodParts { operation, method, rust, error, signature });
        }
        let doc = format!(" The interface `{}`.", interface.name);
        let server_trait = self.own_name(&from, "Server");
        let client_struct = self.own_name(&from, "Client");
        let extras = self.part.server_extras(&rt);
        let rundowns = rundowns(self, &operations, &names);
        let told = rundowns.iter().map(|rundown| rundown.declared());
        let told: Vec<TokenStream> = told.collect();
        let (room, replies) = (layout.room(), layout.replies());
        let parts = InterfaceParts {
            from,
            rt,
            server_trait,
            client_struct,
            methods,
            layout,
            room,
            replies,
            rundowns,
        };
        let items = self.part.interface(self, &parts);
        let server_trait = &parts.server_trait;
        let module = self.root.at(&parts.from);
        let server = quote! {
            #[doc = #doc]
            pub trait #server_trait { #extras #(#server)* #(#told)* }
        };
        module.items.insert(0, server);
        module.items.extend(items);
        module.items.extend(errors);
        parts
    }

    /// A local interface: the trait, and a client that calls its methods with what it is given, where it lies. Nothing is
    /// looked at, since caller and server trust each other.
    fn direct(&mut self, id: InterfaceId) {
        let model = self.model;
        let interface = &model.interfaces[id.0 as usize];
        let from: Vec<String> = interface.name.split("::").map(str::to_owned).collect();
        let rt = self.runtime(&from);
        let operations = model.operations(id);
        let names = method_names(&operations, self.part.methods());
        let server_trait = self.own_name(&from, "Server");
        let client = self.own_name(&from, "Client");
        let (mut server, mut calls, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for (&operation, rust) in operations.iter().zip(names.iter().cloned()) {
            if let Some(what) = self.untranslatable(operation, true) {
                self.refuse(operation, what);
                continue;
            }
            let error = self.error_type(&from, &rt, operation, &names, &rust, &mut errors);
            let doc = format!(" The operation `{}`.", operation.name);
            let (method, inputs) = (name(&rust), self.inputs(operation));
            let given = inputs.iter().map(|(n, ty)| self.argument(&from, n, *ty).declared);
            let results: Vec<TokenStream> =
                self.results(operation).iter().map(|(_, ty)| self.ty(&from, *ty)).collect();
            let result = tuple(&results);
            let declared = quote! { fn #method(&mut self, #(#given),*) -> __Result<#result, #error> };
            server.push(quote! { #[doc = #doc] #declared; });
            let arguments = inputs.iter().map(|(n, _)| name(n));
            calls.push(quote! {
                #[doc = #doc]
                #[inline(always)]
                pub #declared { #server_trait::#method(self.server, #(#arguments),*) }
            });
        }
        let doc = format!(" The interface `{}`, which is local.", interface.name);
        let module = self.root.at(&from);
        module.items.push(quote! { #[doc = #doc] pub trait #server_trait { #(#server)* } });
        module.items.push(quote! {
            /// Calls a server of the same task, without a message.
            #[derive(Debug)]
            pub struct #client<'a, S: ?Sized> {
                /// Who serves.
                pub server: &'a mut S,
            }
        });
        module.items.push(quote! { impl<S: #server_trait + ?Sized> #client<'_, S> { #(#calls)* } });
        module.items.extend(errors);
    }

    /// What Rust cannot hold, of what the layout can carry.
    fn untranslatable(&self, operation: &Operation, local: bool) -> Option<String> {
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
            // A flexpage is no part of anything, and goes beside all values. So does a reference that somebody owns.
            if !seen.insert(ty) || matches!(self.model.ty(ty), Type::Fpage) || self.is_owned_reference(ty) {
                continue;
            }
            let is_held = local && self.held[ty.0 as usize];
            if is_held && is_opaque(self.model.ty(ty)) {
                continue;
            }
            if !self.travels[ty.0 as usize] && !is_held {
                let why = why(self.model, &self.travels, ty);
                return Some(format!("`{}` cannot be written in Rust: {why}", self.model.show(ty)));
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
                        return Some(format!("`{name}` cannot be written in Rust"));
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
    fn variants(&self, operation: &Operation) -> Vec<(Ident, String)> {
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
    fn raised<'p>(&self, from: &[String], parts: &MethodParts<'p>) -> Vec<Raised<'p>> {
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

    /// Whether a type is a reference to an object that its holder owns.
    fn is_owned_reference(&self, ty: TypeId) -> bool {
        match self.model.ty(self.model.resolved(ty)) {
            Type::Object(to) => self.part.reference(self, &[], *to).is_some(),
            _ => false,
        }
    }

    /// Whether who calls keeps a reference that is an argument.
    fn is_lent(&self, operation: &Operation, param: &str) -> bool {
        let lent = |p: &Param| p.name == param && p.grant != Some(true) && self.is_owned_reference(p.ty);
        operation.params.iter().any(lent)
    }

    fn signature(
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
    fn signature_with(
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
            if side == Side::Client && self.is_lent(operation, n) {
                let (n, ty) = (name(n), self.ty(from, *ty));
                return quote! { #n: &#ty };
            }
            declared
        };
        let arguments: Vec<TokenStream> = self.inputs(operation).iter().map(argument).collect();
        let result = self.result_of(from, (operation, method), side);
        let ident = name(rust);
        quote! { fn #ident #generics(#receiver, #(#arguments),*) -> __Result<#result, #error> }
    }

    /// What a method gives back if it succeeds.
    fn result_of(
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
fn method_names(operations: &[&Operation], own: &[&str]) -> Vec<String> {
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
