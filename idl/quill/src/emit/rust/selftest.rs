//! The self-test of an interface: a client and a server that send one another random values and know which to expect.
//!
//! Both sides make their values from the number of the call, so the server knows what it must have been given, and the
//! client what it must get back, exceptions included. Then requests are cut and damaged: the server has to answer all of
//! them. What does not depend on the interface is in `selftest/`.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, format_ident, quote};

pub use self::kernels::{Linux, TernDoor, TernIpc};
use self::kernels::{lies_elsewhere, tern_needs, tern_value};
use super::{Emitter, InterfaceParts, MethodParts, Side, fields_of, name, tuple};
use crate::layout::{Message, Method};
use crate::model::{Agreement, Operation, Type, TypeId};

mod kernels;
mod values;

/// What a self-test needs of a kernel part.
pub trait SelfTest: Sync {
    /// What does not depend on the interface.
    fn common(&self) -> &'static str;

    /// Whether what is long is used where it lies in memory, as over Tern.
    fn uses_memory(&self) -> bool {
        false
    }

    /// Whether there are servers of interfaces that hand pages over and have messages with a part in memory.
    fn has_pages_beside_memory(&self) -> bool {
        false
    }

    /// The type of a value of the test's own.
    fn value_type(&self, emitter: &Emitter, ty: TypeId) -> TokenStream {
        if self.uses_memory() { tern_value(emitter, ty) } else { emitter.ty(&module(), ty) }
    }

    /// What a server has that the test needs to know.
    fn known(&self) -> TokenStream {
        quote! { Known }
    }

    /// A statement that leaves a mutable reference to it in `_known`.
    fn state(&self) -> TokenStream {
        quote! { let _known = &mut self.0; }
    }

    /// Whether a result is a reference: into the server's memory, or to where it has arrived.
    fn borrows(&self, method: &Method, result: &str, side: Side) -> bool {
        self.uses_memory() && lies_elsewhere(method, result, side)
    }

    /// What a call needs besides its arguments.
    fn call_needs(&self, _emitter: &Emitter, method: &Method) -> TokenStream {
        if self.uses_memory() { tern_needs(method) } else { TokenStream::new() }
    }

    /// The function that tests an interface, and whatever else stands beside it. `server` implements its trait.
    fn run(
        &self,
        emitter: &Emitter,
        interface: &InterfaceParts,
        server: &Ident,
        number: usize,
    ) -> TokenStream;

    /// What tests all interfaces.
    fn all(&self, interfaces: &[String]) -> TokenStream;
}

/// The fields or parameters that others have to agree with.
fn sizes_of(agreements: &[Agreement]) -> Vec<usize> {
    let rules = agreements.iter().flat_map(|a| &a.rules).flatten();
    let mut all: Vec<usize> = rules.flat_map(|rule| rule.size().names()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Elements of a list that have no fixed size.
pub(super) const FEW: u64 = 20;

/// Elements of a list that bring references to objects, of which a message holds a few.
pub(super) const FEW_OBJECTS: u64 = 3;

/// The module with the self-test, which no interface file will think of.
pub const MODULE: &str = "quill_selftest";

pub(super) fn module() -> Vec<String> {
    vec![MODULE.to_owned()]
}

impl Emitter<'_> {
    /// The module with the self-test of all interfaces that have servers.
    pub(super) fn selftest(&self, test: &dyn SelfTest, interfaces: &[InterfaceParts]) -> TokenStream {
        let common: TokenStream = [include_str!("selftest/common.rs"), test.common()]
            .iter()
            .map(|text| text.parse::<TokenStream>().unwrap_or_default())
            .collect();
        let pages = |message: &Message| message.pages.as_ref().is_some_and(|handed| self.is_page(handed.ty));
        let hands_pages = |method: &Method| pages(&method.request) || method.replies().any(pages);
        let has_server = |i: &&InterfaceParts| {
            let mut methods = i.methods.iter().map(|parts| parts.method);
            test.has_pages_beside_memory()
                || !methods.clone().any(hands_pages)
                || methods.all(Method::is_general)
        };
        let interfaces: Vec<&InterfaceParts> = interfaces.iter().filter(has_server).collect();
        let rt = self.runtime(&module());
        // Values of a type that only a local interface can use are made by nobody.
        let travelling = self.emitted_types().into_iter().filter(|id| self.travels[id.0 as usize]);
        let values = travelling.map(|id| self.random_function(id));
        let tests = interfaces.iter().enumerate().map(|(number, interface)| {
            let server = format_ident!("Server{}", number.to_string());
            let implementation = self.test_server(test, interface, &server);
            let run = test.run(self, interface, &server, number);
            quote! { #implementation #run }
        });
        let names: Vec<String> = interfaces.iter().map(|i| i.from.join("::")).collect();
        let all = test.all(&names);
        quote! {
            #[allow(dead_code, non_snake_case, unused_imports, unused_variables, unused_mut, clippy::all)]
            pub mod quill_selftest {
                use #rt as rt;
                #common
                #(#values)*
                #(#tests)*
                #all
            }
        }
    }

    fn is_page(&self, ty: TypeId) -> bool {
        matches!(self.model.ty(self.model.resolved(ty)), Type::Fpage)
    }

    /// What is handed over is no value: pages are known by a number that they hold, objects by one that they say.
    fn is_handed(&self, ty: TypeId) -> bool {
        self.is_page(ty) || self.is_owned_reference(ty)
    }

    /// An expression for something to be sent.
    fn random_given(&self, ty: TypeId) -> TokenStream {
        if self.is_page(ty) {
            quote! { GIVEN.hold(_r.next()) }
        } else if self.is_owned_reference(ty) {
            quote! { token(_r.next()) }
        } else {
            self.random(ty)
        }
    }

    /// An expression for what has to arrive then.
    fn random_expected(&self, ty: TypeId) -> TokenStream {
        if self.is_handed(ty) {
            quote! { _r.next() }
        } else {
            self.random(ty)
        }
    }

    /// The server: compares what it is given with what it must be given.
    fn test_server(&self, test: &dyn SelfTest, interface: &InterfaceParts, server: &Ident) -> TokenStream {
        let from = module();
        let path = |item: &Ident| {
            let parts = interface.from.iter().map(|p| name(p));
            quote! { super::#(#parts::)*#item }
        };
        let server_trait = path(&interface.server_trait);
        let state = test.state();
        let methods = interface.methods.iter().map(|parts| {
            let operation = parts.operation;
            let error = self.error_path(interface, parts);
            let signature =
                self.signature(&from, (operation, parts.method), &parts.rust, &error, Side::Server);
            let inputs = self.inputs(operation);
            let plain = inputs.iter().enumerate().map(|(i, (param, ty))| {
                let value = self.random_expected(*ty);
                let owned = if self.is_handed(*ty) {
                    quote! { __u64 }
                } else {
                    test.value_type(self, *ty)
                };
                let same = self.same_input(operation, &name(param), *ty);
                let number = Literal::u32_unsuffixed(i as u32 + 1);
                quote! {
                    let _expected: #owned = #value;
                    if !#same && *_wrong == 0 { *_wrong = #number; }
                }
            });
            let checks = self.expected_inputs(test, parts).unwrap_or_else(|| plain.collect());
            let answer = if operation.oneway {
                quote! { Ok(()) }
            } else {
                let outcome = self.random_outcome(interface, parts, &self.kept_results(test, parts));
                quote! {
                    match ::core::mem::take(_wrong) {
                        0 => { #outcome }
                        _wrong => Err(rt::Failure::Refused(WRONG + _wrong).into()),
                    }
                }
            };
            quote! {
                #signature {
                    #state
                    let Known { seed: _seed, calls: _calls, wrong: _wrong, kept: _kept } = _known;
                    let mut _random = Random::new(*_seed, *_calls);
                    let _r = &mut _random;
                    *_calls += 1;
                    #checks
                    #answer
                }
            }
        });
        let known = test.known();
        quote! {
            /// Knows what it must be given.
            struct #server(#known);
            impl #server_trait for #server { #(#methods)* }
        }
    }

    /// Statements that compare what a server of an operation whose parameters agree is given with what it has to be given.
    fn expected_inputs(&self, test: &dyn SelfTest, parts: &MethodParts) -> Option<TokenStream> {
        let operation = parts.operation;
        if operation.agreements.is_empty() {
            return None;
        }
        let inputs = self.inputs(operation);
        let types = |_: &str, ty: TypeId| test.value_type(self, ty);
        let all = self.random_agreed(operation, false, &inputs, &types);
        let given = inputs.iter().map(|(n, _)| format_ident!("_given_{n}"));
        let names: Vec<Ident> = inputs.iter().map(|(n, _)| name(n)).collect();
        let kept = names.iter().zip(given.clone()).map(|(ident, given)| quote! { let #given = #ident; });
        let made = all.iter().map(|(_, made)| made);
        let compared = inputs.iter().zip(given).zip(1u32..).map(|(((n, ty), given), number)| {
            let (expected, same) = (name(n), self.same_input(operation, &given, *ty));
            let number = Literal::u32_unsuffixed(number);
            quote! { { let _expected = &#expected; if !#same && *_wrong == 0 { *_wrong = #number; } } }
        });
        Some(quote! { #(#kept)* #(#made)* #(#compared)* })
    }

    /// An expression for whether what two values have in common is the same in both; none if there can be no such thing.
    fn alike(&self, ty: TypeId, one: &TokenStream, other: &TokenStream) -> Option<TokenStream> {
        let shares = self.shares[self.model.resolved(ty).0 as usize];
        shares.then(|| match self.model.ty(self.model.resolved(ty)) {
            Type::Sequence(..) => quote! { && alike_lists(#one, #other) },
            _ => quote! { && alike(#one, #other) },
        })
    }

    /// An expression for whether a server is given what is `_expected`.
    fn same_input(&self, operation: &Operation, ident: &Ident, ty: TypeId) -> TokenStream {
        let same = self.equal_input(operation, ident, ty);
        match self.alike(ty, &quote! { #ident }, &quote! { &_expected }) {
            Some(alike) => quote! { (#same #alike) },
            None => same,
        }
    }

    fn equal_input(&self, operation: &Operation, ident: &Ident, ty: TypeId) -> TokenStream {
        match self.model.ty(self.model.resolved(ty)) {
            // Who sends a oneway request does not wait before the pages have something else to hold.
            Type::Fpage if operation.oneway => quote! { WINDOW.is(#ident) },
            Type::Fpage => quote! { WINDOW.holds(#ident, _expected) },
            _ if self.is_owned_reference(ty) => quote! { (number_of(&#ident) == _expected) },
            _ if self.has_references(ty) => self.same_objects(ty, &quote! { #ident }, &quote! { _expected }),
            _ if self.is_small(ty) => quote! { same(&#ident, &_expected) },
            Type::Str { .. } => quote! { same::<__str>(#ident, &_expected) },
            Type::Sequence(of, _) => {
                let of = self.ty(&module(), *of);
                quote! { same::<[#of]>(#ident, &_expected) }
            }
            _ => quote! { same(#ident, &_expected) },
        }
    }

    /// An expression for whether two values are the same but for the references in them, and these lead to objects that say the same.
    fn same_objects(&self, ty: TypeId, one: &TokenStream, other: &TokenStream) -> TokenStream {
        match self.model.ty(self.model.resolved(ty)) {
            _ if self.is_owned_reference(ty) => quote! { (number_of(&#one) == number_of(&#other)) },
            Type::Sequence(..) => quote! { same_objects(&#one[..], &#other[..]) },
            _ if self.has_references(ty) => {
                quote! { same_objects(::core::slice::from_ref(&#one), ::core::slice::from_ref(&#other)) }
            }
            _ => quote! { (#one == #other) },
        }
    }

    /// The path to the error of a method, as seen from the self-test.
    fn error_path(&self, interface: &InterfaceParts, parts: &MethodParts) -> TokenStream {
        if parts.operation.raises.is_empty() {
            return quote! { rt::Failure };
        }
        let error = &parts.error;
        let modules = interface.from.iter().map(|p| name(p));
        quote! { super::#(#modules::)*#error }
    }

    /// An expression for random results.
    fn random_results(&self, test: &dyn SelfTest, parts: &MethodParts) -> TokenStream {
        if !parts.operation.agreements.is_empty() {
            return self.agreed_results(test, parts, Side::Client);
        }
        let results: Vec<TokenStream> =
            self.results(parts.operation).iter().map(|(_, ty)| self.random_expected(*ty)).collect();
        tuple(&results)
    }

    /// Random results of a server, which keeps what it gives references to.
    fn kept_results(&self, test: &dyn SelfTest, parts: &MethodParts) -> TokenStream {
        if !parts.operation.agreements.is_empty() {
            return self.agreed_results(test, parts, Side::Server);
        }
        let all = self.results(parts.operation);
        let borrows = |result: &str| test.borrows(parts.method, result, Side::Server);
        if !all.iter().any(|(result, _)| borrows(result)) {
            let results: Vec<TokenStream> = all.iter().map(|(_, ty)| self.random_given(*ty)).collect();
            return tuple(&results);
        }
        // Values with references are given away, and nothing of them stays.
        let is_kept = |(_, ty): &&(String, TypeId)| !self.refers(*ty);
        let made = all.iter().enumerate().map(|(number, (_, ty))| {
            let (value, made) = (format_ident!("_value{}", number.to_string()), self.random_given(*ty));
            let owned = if self.refers(*ty) {
                quote! { _ }
            } else {
                test.value_type(self, *ty)
            };
            quote! { let #value: #owned = #made; }
        });
        let numbers: Vec<usize> = (0..all.len()).filter(|&number| is_kept(&&all[number])).collect();
        let types = numbers.iter().map(|&number| test.value_type(self, all[number].1));
        let values = numbers.iter().map(|number| format_ident!("_value{}", number.to_string()));
        let given = all.iter().enumerate().map(|(number, (result, ty))| {
            match numbers.iter().position(|&kept| kept == number) {
                Some(kept) => self.kept_result(borrows(result), *ty, &Literal::usize_unsuffixed(kept)),
                None => format_ident!("_value{}", number.to_string()).to_token_stream(),
            }
        });
        let given = tuple(&given.collect::<Vec<_>>());
        quote! { { #(#made)* let _kept: &(#(#types,)*) = keep(_kept, (#(#values,)*)); #given } }
    }

    /// Random results that agree, with the arguments, too: those that are given, by a server that keeps what it gives references to, or
    /// those that a client has to get.
    fn agreed_results(&self, test: &dyn SelfTest, parts: &MethodParts, side: Side) -> TokenStream {
        let results = self.results(parts.operation);
        let borrows = |result: &str| test.borrows(parts.method, result, side);
        let types = |result: &str, ty: TypeId| match side {
            Side::Client if !borrows(result) => self.ty(&module(), ty),
            _ => test.value_type(self, ty),
        };
        let all = self.random_agreed(parts.operation, true, &results, &types);
        let made = all.iter().map(|(_, made)| made);
        let names: Vec<Ident> = results.iter().map(|(n, _)| name(n)).collect();
        let whole = tuple(&names);
        if side == Side::Client || !results.iter().any(|(result, _)| borrows(result)) {
            return match results.is_empty() {
                true => quote! { () },
                false => quote! { { #(#made)* #whole } },
            };
        }
        let types = results.iter().map(|(_, ty)| test.value_type(self, *ty));
        let given = results.iter().zip(0..).map(|((result, ty), number)| {
            self.kept_result(borrows(result), *ty, &Literal::usize_unsuffixed(number))
        });
        let given = tuple(&given.collect::<Vec<_>>());
        quote! { { #(#made)* let _kept: &(#(#types,)*) = keep(_kept, (#(#names,)*)); #given } }
    }

    /// An expression for one of the results that a server has kept.
    fn kept_result(&self, borrowed: bool, ty: TypeId, number: &Literal) -> TokenStream {
        match self.model.ty(self.model.resolved(ty)) {
            _ if !borrowed => quote! { _kept.#number.clone() },
            Type::Str { .. } | Type::Sequence(..) => quote! { &_kept.#number[..] },
            _ => quote! { &_kept.#number },
        }
    }

    /// An expression for what a method returns: its results, or one of its exceptions.
    fn random_outcome(
        &self,
        interface: &InterfaceParts,
        parts: &MethodParts,
        good: &TokenStream,
    ) -> TokenStream {
        let error = self.error_path(interface, parts);
        let exceptions = self.variants(parts.operation).into_iter().zip(&parts.operation.raises);
        let bad: Vec<TokenStream> = exceptions
            .map(|((variant, path), id)| {
                let fields = fields_of(&self.model.exceptions[id.0 as usize].fields);
                let names = fields.iter().map(|(n, _)| name(n));
                let values = fields.iter().map(|(_, ty)| self.random(*ty));
                let path = self.path(&module(), &path);
                quote! { Err(#error::#variant(#path { #(#names: #values),* })) }
            })
            .collect();
        if bad.is_empty() {
            return quote! { Ok(#good) };
        }
        let numbers = (0..bad.len()).map(Literal::usize_unsuffixed);
        // Half of the calls succeed.
        let count = Literal::usize_unsuffixed(2 * bad.len());
        quote! {
            match _r.below(#count) {
                #(#numbers => #bad,)*
                _ => Ok(#good),
            }
        }
    }

    /// Statements that leave the arguments of a call in variables.
    fn random_inputs(
        &self,
        test: &dyn SelfTest,
        operation: &Operation,
        inputs: &[(String, TypeId)],
    ) -> Vec<TokenStream> {
        if !operation.agreements.is_empty() {
            let types = |_: &str, ty: TypeId| test.value_type(self, ty);
            let all = self.random_agreed(operation, false, inputs, &types);
            return all.into_iter().map(|(_, made)| made).collect();
        }
        let plain = inputs.iter().map(|(param, ty)| {
            let (ident, value, owned) = (name(param), self.random_given(*ty), test.value_type(self, *ty));
            quote! { let #ident: #owned = #value; }
        });
        plain.collect()
    }

    /// Statements that call a method and compare what comes back; they leave `_good` and `_exception`.
    pub(super) fn test_call(
        &self,
        test: &dyn SelfTest,
        interface: &InterfaceParts,
        parts: &MethodParts,
    ) -> TokenStream {
        let from = module();
        let operation = parts.operation;
        let inputs = self.inputs(operation);
        let values = self.random_inputs(test, operation, &inputs);
        let passed = inputs.iter().map(|(n, ty)| self.passed(operation, n, *ty));
        let method = name(&parts.rust);
        let error = self.error_path(interface, parts);
        let results = self.results(operation);
        let borrows = |result: &str| test.borrows(parts.method, result, Side::Client);
        let types = results.iter().map(|(result, ty)| match () {
            () if self.is_handed(*ty) => quote! { __u64 },
            () if borrows(result) => test.value_type(self, *ty),
            () => self.ty(&from, *ty),
        });
        let result = tuple(&types.collect::<Vec<_>>());
        let outcome = if operation.oneway {
            quote! { Ok(()) }
        } else {
            self.random_outcome(interface, parts, &self.random_results(test, parts))
        };
        let needs = test.call_needs(self, parts.method);
        let raised = self.variants(operation).into_iter().zip(&operation.raises);
        let arms = raised.map(|((variant, _), id)| {
            let fields = &self.model.exceptions[id.0 as usize].fields;
            let same = if fields.iter().any(|field| self.refers(field.ty)) {
                let each = fields.iter().map(|field| {
                    let field_name = name(&field.name);
                    self.same_objects(field.ty, &quote! { _a.#field_name }, &quote! { _b.#field_name })
                });
                quote! { true #(&& #each)* }
            } else {
                quote! { _a == _b }
            };
            quote! { (Err(#error::#variant(_a)), Err(#error::#variant(_b))) => #same, }
        });
        // Value by value: long tuples cannot be compared.
        let names = |prefix: &str| -> Vec<Ident> {
            (0..results.len()).map(|i| format_ident!("_{prefix}{}", i.to_string())).collect()
        };
        let (given, expected) = (names("a"), names("b"));
        let (given_pattern, expected_pattern) = (tuple(&given), tuple(&expected));
        let equal = results
            .iter()
            .zip(given.iter().zip(&expected))
            .map(|((result, ty), pair)| self.same_result(*ty, borrows(result), pair));
        quote! {
            let mut _random = Random::new(_seed, _call);
            let _r = &mut _random;
            _call += 1;
            #(#values)*
            let _given = _client.#method(#needs #(#passed),*);
            let _expected: __Result<#result, #error> = #outcome;
            let _exception = _expected.is_err();
            let _good = match (&_given, &_expected) {
                (Ok(#given_pattern), Ok(#expected_pattern)) => true #(&& #equal)*,
                #(#arms)*
                _ => false,
            };
        }
    }

    /// An argument of a call: the variable of a parameter, or of what is lent, a reference to it.
    fn passed(&self, operation: &Operation, param: &str, ty: TypeId) -> TokenStream {
        if self.is_lent(operation, param) {
            let lent = name(param);
            return quote! { &#lent };
        }
        self.argument(&module(), param, ty).passed
    }

    /// An expression for whether a result, which may be borrowed, is the expected one.
    fn same_result(&self, ty: TypeId, borrowed: bool, pair: (&Ident, &Ident)) -> TokenStream {
        let same = self.equal_result(ty, borrowed, pair);
        let alike = self.alike(ty, &pair.0.to_token_stream(), &pair.1.to_token_stream());
        quote! { #same #alike }
    }

    fn equal_result(&self, ty: TypeId, borrowed: bool, (given, expected): (&Ident, &Ident)) -> TokenStream {
        match self.model.ty(self.model.resolved(ty)) {
            Type::Fpage => quote! { WINDOW.holds(*#given, *#expected) },
            _ if self.is_owned_reference(ty) => quote! { number_of(#given) == *#expected },
            _ if self.has_references(ty) => {
                self.same_objects(ty, &quote! { (*#given) }, &quote! { (*#expected) })
            }
            _ if !borrowed => quote! { #given == #expected },
            Type::Str { .. } => quote! { same::<__str>(#given, #expected) },
            Type::Sequence(of, _) => {
                let of = self.ty(&module(), *of);
                quote! { same::<[#of]>(#given, #expected) }
            }
            _ => quote! { same(*#given, #expected) },
        }
    }

    /// How many bytes a request has, and whether that is all.
    pub(super) fn test_size(message: &Message) -> (Literal, bool) {
        (Literal::u64_unsuffixed(message.memory_bytes), message.chunks.is_empty())
    }
}
