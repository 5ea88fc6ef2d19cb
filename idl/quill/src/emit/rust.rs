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
use self::methods::method_names;
pub use self::spelling::module_name;
use self::spelling::{allow, camel, name, spell_out};
use crate::any::Codes;
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
use crate::type_code;

mod agree;
mod any;
mod constants;
mod contexts;
mod decimals;
mod flat;
mod leaves;
pub mod linux;
mod methods;
mod names;
pub mod selftest;
mod spelling;
pub mod tern;
mod types;
mod typing;
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

    /// Functions `pack` and `unpack` of `any`: the bytes of a value as they stand there, and the value of such bytes.
    fn packing(&self, rt: &TokenStream) -> TokenStream;

    /// Whether a value of a type is small enough for who owns it.
    fn owns(&self, _emitter: &Emitter, _ty: TypeId) -> bool {
        true
    }

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
    Inside {
        /// The text; lines that end in `// any` are for values in an `any`, and left out of files that have none.
        text: &'static str,
        /// The rest of it, in files that have one.
        for_any: &'static str,
    },
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

/// The Rust text for a model that was laid out for a kernel, by the part that writes its code.
pub fn emit(
    model: &Model,
    kernel: &dyn KernelPart,
    part: &'static dyn Part,
    purpose: Purpose,
) -> Result<String, Vec<Diagnostic>> {
    if model.types_len() > limits::TYPES_MAX {
        let message = format!("the file has more than {} types, too many for Rust output", limits::TYPES_MAX);
        return Err(vec![Diagnostic::error(Code::Limit, source::Span::default(), message)]);
    }
    let mut model = model.clone();
    type_code::complete(&mut model);
    let codes = Codes::of(&model);
    let model = &names::renamed(&model);
    let layouts = &layout::layout(model, kernel)?;
    let mut emitter = Emitter { codes, ..Emitter::new(model, part) };
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
        Runtime::Inside { text, for_any } => inside(&emitter, text, for_any),
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

/// The module of what stubs share.
fn inside(emitter: &Emitter, text: &str, for_any: &str) -> TokenStream {
    let has_any = emitter.model.has_any();
    let lines = text.lines().filter(|line| has_any || !line.ends_with("// any"));
    let lines = lines.chain(for_any.lines().filter(|_| has_any));
    let content: String = lines.flat_map(|line| [line, "\n"]).collect();
    let (name, content): (_, TokenStream) =
        (name(&emitter.runtime_name), content.parse().unwrap_or_default());
    let doc =
        " What all stubs of this file share: messages, their values, and the way over a Unix-domain socket.";
    quote! {
        #[doc = #doc]
        pub mod #name { #content }
    }
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
    /// Marks of types with references to objects in them that their holder owns.
    referring: Vec<bool>,
    /// Marks of types with parts that several values may have in common.
    shares: Vec<bool>,
    /// How large their values are, once somebody has asked.
    owned: OnceCell<Vec<u64>>,
    refused: Vec<Diagnostic>,
    exceptions: HashSet<ExceptionId>,
    /// Type codes of types that an `any` may hold.
    codes: Codes,
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
            referring: Vec::new(),
            streamed: streamed(model, &Sizes::new(model), Lying::Long, &[]),
            owned: OnceCell::new(),
            refused: Vec::new(),
            exceptions: HashSet::new(),
            codes: Codes::default(),
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
