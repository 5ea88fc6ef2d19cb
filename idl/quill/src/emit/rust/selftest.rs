//! The self-test of an interface: a client and a server that send one another random values and know which to expect.
//!
//! Both sides make their values from the number of the call, so the server knows what it must have been given, and the
//! client what it must get back, exceptions included. Then requests are cut and damaged: the server has to answer all of
//! them. What does not depend on the interface is in `selftest/`.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, format_ident, quote};

use super::tern::general;
use super::{Emitter, InterfaceParts, MethodParts, Side, fields_of, name, tuple};
use crate::kernel::table_bits;
use crate::layout::{Message, Method};
use crate::model::{Agreement, Branch, Field, Operation, Type, TypeId, bits_of};

/// What a self-test needs of a kernel part.
pub trait SelfTest: Sync {
    /// What does not depend on the interface.
    fn common(&self) -> &'static str;

    /// Whether what is long is used where it lies in memory, as over Tern.
    fn uses_memory(&self) -> bool {
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
    fn call_needs(&self, method: &Method) -> TokenStream {
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
const FEW: u64 = 20;

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
            !methods.clone().any(hands_pages) || methods.all(general::fits)
        };
        let interfaces: Vec<&InterfaceParts> = interfaces.iter().filter(has_server).collect();
        let rt = self.runtime(&module());
        let values = self.emitted_types().into_iter().map(|id| self.random_function(id));
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

    fn emitted_types(&self) -> Vec<TypeId> {
        let mut ids: Vec<TypeId> = self.emitted.iter().copied().collect();
        ids.sort_by_key(|id| id.0);
        ids.retain(|&id| !matches!(self.model.ty(id), Type::Alias(..)));
        ids
    }

    /// An expression for a random value of a type.
    pub(super) fn random(&self, ty: TypeId) -> TokenStream {
        let ty = self.model.resolved(ty);
        let bound = |bound: &Option<u64>| {
            bound.map_or_else(
                || quote! { ::core::primitive::usize::MAX },
                |b| {
                    let literal = Literal::u64_unsuffixed(b);
                    quote! { #literal }
                },
            )
        };
        match self.model.ty(ty) {
            Type::Bool => quote! { _r.truth() },
            Type::Octet | Type::Char => quote! { _r.number() as __u8 },
            Type::WideChar => quote! { _r.character() },
            Type::Object(_) => {
                let uid = self.ty(&module(), ty);
                quote! { #uid(_r.number()) }
            }
            Type::Int { .. } => {
                let number = self.ty(&module(), ty);
                quote! { _r.number() as #number }
            }
            Type::Float(32) => quote! { _r.single() },
            Type::Float(_) => quote! { _r.double() },
            Type::Str { bound: b, .. } => {
                let bound = bound(b);
                quote! { _r.text(#bound) }
            }
            Type::Sequence(of, b) => {
                // Of what may be long itself a message has room for a few.
                let few = Some(b.map_or(FEW, |b| b.min(FEW)));
                let most = if self.sizes.fixed(*of).is_some() { b } else { &few };
                let (value, bound) = (self.random(*of), bound(most));
                quote! { _r.list(#bound, |_r| #value) }
            }
            Type::Optional(of) => {
                let value = self.random(*of);
                self.random_optional(*of, &value)
            }
            Type::Shared(of) => {
                let value = self.random(*of);
                quote! { _r.shared(|_r| #value) }
            }
            Type::Array(of, dims) => {
                let value = self.random(*of);
                dims.iter().fold(value, |value, _| quote! { ::core::array::from_fn(|_| #value) })
            }
            _ => {
                let function = format_ident!("value_{}", ty.0.to_string());
                quote! { #function(_r) }
            }
        }
    }

    /// An expression for a value that may be absent.
    pub(super) fn random_optional(&self, of: TypeId, value: &TokenStream) -> TokenStream {
        if self.is_boxed(of) {
            quote! { _r.maybe(|_r| Boxed::new(#value)) }
        } else {
            quote! { _r.maybe(|_r| #value) }
        }
    }

    /// An expression for a random value of a struct whose fields have to agree.
    fn random_agreeing(&self, ty: &TokenStream, fields: &[Field], agreements: &[Agreement]) -> TokenStream {
        let beside = |of: usize| {
            let field = name(&fields[of].name);
            (quote! { #field }, fields[of].ty)
        };
        let fresh = sizes_of(agreements);
        let sizes = self.random_sizes(agreements, &[], &beside, &fresh);
        let rest = fields.iter().enumerate().filter(|(of, _)| !fresh.contains(of)).map(|(of, field)| {
            let rules = agreements.iter().find(|a| a.of == of).map_or(&[][..], |a| &a.rules);
            let (ident, value) = (name(&field.name), self.random_keeping(field.ty, rules, &beside));
            quote! { let #ident = #value; }
        });
        let names = fields.iter().map(|f| name(&f.name));
        quote! { #sizes #(#rest)* #ty { #(#names),* } }
    }

    /// Statements that give values to those parameters of an operation that are in a request, or in its reply, so that all of them
    /// agree: variables of these types. Sizes come first.
    fn random_agreed(
        &self,
        operation: &Operation,
        reply: bool,
        values: &[(String, TypeId)],
        types: &dyn Fn(&str, TypeId) -> TokenStream,
    ) -> Vec<(String, TokenStream)> {
        let agreements = Emitter::agreements_of(operation, reply);
        let beside = |of: usize| {
            let param = name(&operation.params[of].name);
            (quote! { #param }, operation.params[of].ty)
        };
        let place = |param: &str| operation.params.iter().position(|p| p.name == param);
        let sizes = sizes_of(&operation.agreements);
        let fresh: Vec<usize> =
            values.iter().filter_map(|(n, _)| place(n)).filter(|of| sizes.contains(of)).collect();
        let later = if reply { &[][..] } else { &operation.agreements };
        let mut all = vec![(String::new(), self.random_sizes(&agreements, later, &beside, &fresh))];
        for (param, ty) in values {
            let of = place(param);
            let (ident, declared) = (name(param), types(param, *ty));
            let value = match of {
                Some(of) if fresh.contains(&of) => quote! { #ident },
                Some(of) => {
                    let rules = agreements.iter().find(|a| a.of == of).map_or(&[][..], |a| &a.rules);
                    self.random_keeping(*ty, rules, &beside)
                }
                None => self.random(*ty),
            };
            all.push((param.clone(), quote! { let #ident: #declared = #value; }));
        }
        all
    }

    /// A function that makes random values of a declared type.
    fn random_function(&self, id: TypeId) -> TokenStream {
        let function = format_ident!("value_{}", id.0.to_string());
        let ty = self.ty(&module(), id);
        let body = match self.model.ty(id) {
            Type::Struct(_, fields) if self.model.is_any(id) => self.random_any(&ty, fields),
            Type::Struct(_, fields) if self.model.agreements.contains_key(&id) => {
                self.random_agreeing(&ty, fields, &self.model.agreements[&id])
            }
            Type::Struct(_, fields) => {
                let names = fields.iter().map(|f| name(&f.name));
                let values = fields.iter().map(|f| self.random(f.ty));
                quote! { #ty { #(#names: #values),* } }
            }
            Type::Flat(_, members) => self.random_flat_union(&ty, members),
            Type::Enum(_, members) => {
                let names = members.iter().map(|m| name(&m.0));
                let count = Literal::usize_unsuffixed(members.len());
                quote! { [#(#ty::#names),*][_r.below(#count)] }
            }
            Type::Bitmask(_, bits, members) => {
                let number = format_ident!("__u{}", bits.to_string());
                let all = Literal::u64_unsuffixed(bits_of(members));
                quote! { #ty(_r.number() as #number & #all) }
            }
            Type::Union { switch, branches, .. } => self.random_union(&ty, *switch, branches),
            _ => return TokenStream::new(),
        };
        quote! { fn #function(_r: &mut Random) -> #ty { #body } }
    }

    fn random_union(&self, ty: &TokenStream, switch: TypeId, branches: &[Branch]) -> TokenStream {
        let mut choices = Vec::new();
        let spare = self.spare_label(switch, branches);
        for branch in branches {
            let (variant, value) = (name(&branch.field.name), self.random(branch.field.ty));
            let labels = branch.labels.iter().filter_map(|&l| self.label(&module(), switch, l));
            let labels: Vec<_> = labels.chain(spare.clone().filter(|_| branch.is_default)).collect();
            if self.keeps_label(&module(), switch, branch) {
                choices.extend(labels.into_iter().map(|label| quote! { #ty::#variant(#label, #value) }));
            } else {
                choices.push(quote! { #ty::#variant(#value) });
            }
        }
        if let (Some(spare), false) = (spare, branches.iter().any(|b| b.is_default)) {
            let none = Emitter::no_branch(branches);
            choices.push(quote! { #ty::#none(#spare) });
        }
        let numbers = (0..choices.len()).map(Literal::usize_unsuffixed);
        let count = Literal::usize_unsuffixed(choices.len());
        quote! {
            _r.depth += 1;
            let value = match _r.below(#count) {
                #(#numbers => #choices,)*
                _ => unreachable!("it is below"),
            };
            _r.depth -= 1;
            value
        }
    }

    /// A discriminator for which no branch is named, if there is one.
    fn spare_label(&self, switch: TypeId, branches: &[Branch]) -> Option<TokenStream> {
        let named = |value: i128| branches.iter().any(|b| b.labels.contains(&value));
        let candidates: Vec<i128> = match self.model.ty(self.model.resolved(switch)) {
            Type::Enum(_, members) => members.iter().map(|m| m.1).collect(),
            Type::Bool => vec![0, 1],
            Type::WideChar => (97..1097).collect(),
            _ => (0..127).collect(),
        };
        let free = candidates.into_iter().find(|&value| !named(value))?;
        self.label(&module(), switch, free)
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
            _ if self.is_small(ty) => quote! { same(&#ident, &_expected) },
            Type::Str { .. } => quote! { same::<__str>(#ident, &_expected) },
            Type::Sequence(of, _) => {
                let of = self.ty(&module(), *of);
                quote! { same::<[#of]>(#ident, &_expected) }
            }
            _ => quote! { same(#ident, &_expected) },
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
        let types = all.iter().map(|(_, ty)| test.value_type(self, *ty));
        let values = all.iter().map(|(_, ty)| self.random(*ty));
        let given = all
            .iter()
            .enumerate()
            .map(|(i, (result, ty))| self.kept_result(borrows(result), *ty, &Literal::usize_unsuffixed(i)));
        let given: Vec<TokenStream> = given.collect();
        let given = tuple(&given);
        quote! { { let _kept: &(#(#types,)*) = keep(_kept, (#(#values,)*)); #given } }
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
        let needs = test.call_needs(parts.method);
        let arms = self.variants(operation).into_iter().map(|(variant, _)| {
            quote! { (Err(#error::#variant(_a)), Err(#error::#variant(_b))) => _a == _b, }
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

/// Over sockets.
#[derive(Clone, Copy, Debug)]
pub struct Linux;

impl SelfTest for Linux {
    fn common(&self) -> &'static str {
        include_str!("selftest/linux.rs")
    }

    fn run(
        &self,
        emitter: &Emitter,
        interface: &InterfaceParts,
        server: &Ident,
        number: usize,
    ) -> TokenStream {
        let modules: Vec<Ident> = interface.from.iter().map(|p| name(p)).collect();
        let dispatch = emitter.own_name(&interface.from, "dispatch");
        let client = &interface.client_struct;
        let function = format_ident!("interface_{}", number.to_string());
        let calls = interface.methods.iter().map(|parts| {
            let call = emitter.test_call(self, interface, parts);
            let title = &parts.operation.name;
            let (size, exact) = Emitter::test_size(&parts.method.request);
            quote! {
                {
                    #call
                    drop(_client);
                    _report.call(#title, _good, _exception);
                    _report.size(#title, _kept.last(), #size, #exact);
                    _client = super::#(#modules::)*#client {
                        transport: Tap { stream: _near.try_clone().expect("a socket can be shared"), kept: &mut _kept },
                    };
                }
            }
        });
        quote! {
            fn #function(_seed: __u64, _rounds: __u64) -> Report {
                let mut _report = Report::default();
                let mut _kept = ::std::vec::Vec::new();
                let (_near, mut _far) = ::std::os::unix::net::UnixStream::pair().expect("a socket can be made");
                let _thread = ::std::thread::spawn(move || {
                    let mut _server = #server(Known::new(_seed));
                    rt::serve(&mut _far, |_label, _body| super::#(#modules::)*#dispatch(&mut _server, _label, _body)).is_ok()
                });
                let mut _call = 0;
                {
                    let mut _client = super::#(#modules::)*#client {
                        transport: Tap { stream: _near.try_clone().expect("a socket can be shared"), kept: &mut _kept },
                    };
                    for _ in 0.._rounds { #(#calls)* }
                }
                drop(_near);
                if !_thread.join().unwrap_or(false) {
                    _report.wrong.push("the server did not end well".into());
                }
                let mut _server = #server(Known::new(_seed));
                _kept.truncate(400);
                _report.damage(_seed, &_kept, |_label, _body| super::#(#modules::)*#dispatch(&mut _server, _label, _body));
                _report
            }
        }
    }

    fn all(&self, interfaces: &[String]) -> TokenStream {
        let functions = (0..interfaces.len()).map(|number| format_ident!("interface_{}", number.to_string()));
        quote! {
            /// Tests all interfaces; prints a line for each. Whether all is well.
            pub fn all(seed: __u64, rounds: __u64) -> __bool {
                let mut good = true;
                #(good &= #functions(seed, rounds).print(#interfaces);)*
                good
            }
        }
    }
}

/// Whether a result of Tern's is a reference: into the server's memory, or to where it has arrived.
fn lies_elsewhere(method: &Method, result: &str, side: Side) -> bool {
    method.reply.chunks.iter().any(|chunk| match side {
        Side::Client => chunk.element.is_some() && matches!(&chunk.path[..], [path] if path == result),
        Side::Server => chunk.path.first().is_some_and(|first| first == result),
    })
}

/// What a call needs over Tern besides its arguments.
fn tern_needs(method: &Method) -> TokenStream {
    if method.reply.pages.is_some() {
        return quote! { WINDOW.page(), };
    }
    inbox_needs(method)
}

/// What such a call needs if no pages come back: an inbox, or nothing.
fn inbox_needs(method: &Method) -> TokenStream {
    match method.replies().find(|reply| reply.long) {
        Some(_) => quote! { &mut *_inbox, },
        None => TokenStream::new(),
    }
}

/// Over Tern, long lists have no place on a stack.
fn tern_value(emitter: &Emitter, ty: TypeId) -> TokenStream {
    match emitter.model.ty(emitter.model.resolved(ty)) {
        Type::Sequence(of, bound) if bound.is_none_or(|bound| bound > 88) => {
            let of = emitter.ty(&module(), *of);
            quote! { alloc::vec::Vec<#of> }
        }
        _ => emitter.ty(&module(), ty),
    }
}

/// The function that tests an interface over Tern, by calls to a `callee`. It wants two: who serves it, and who answers with nonsense.
fn tern_run(
    test: &dyn SelfTest,
    emitter: &Emitter,
    interface: &InterfaceParts,
    (number, callee): (usize, TokenStream),
    waits: impl Fn(&MethodParts) -> bool,
) -> TokenStream {
    let modules: Vec<Ident> = interface.from.iter().map(|p| name(p)).collect();
    let client = &interface.client_struct;
    let function = format_ident!("interface_{}", number.to_string());
    let calls = interface.methods.iter().map(|parts| {
        let call = emitter.test_call(test, interface, parts);
        let title = &parts.operation.name;
        quote! { { #call _report.call(#title, _sane, _good, _exception); } }
    });
    // Methods, and places of the table without one.
    let methods = &interface.methods;
    let places = 1u32 << table_bits(methods.len());
    let labels = (0..places).filter_map(|n| match methods.get(n as usize) {
        Some(parts) => (!waits(parts)).then_some(parts.method.request.label),
        None => Some(n.reverse_bits()),
    });
    let labels: Vec<u32> = labels.collect();
    let damage = (!labels.is_empty())
        .then(|| quote! { _report.damage(_seed, _server, &[#(#labels),*], 20 * _rounds); });
    let replies = if interface.replies.needed {
        let replies = emitter.own_name(&interface.from, "Replies");
        quote! { super::#(#modules::)*#replies }
    } else {
        // Somebody may answer with memory all the same.
        quote! { rt::Room<(), 8, 0, 0> }
    };
    quote! {
        fn #function(_server: #callee, _nonsense: #callee, _seed: __u64, _rounds: __u64) -> Report {
            let mut _memory = alloc::vec![0u128; ::core::mem::size_of::<#replies>().div_ceil(16)];
            let _replies = <#replies>::in_place(&mut _memory).unwrap_or_else(|| panic!("there is enough"));
            let mut _report = Report::default();
            let _opened = rt::Inbox::open(_replies, |_inbox| {
                for (_server, _sane) in [(_server, true), (_nonsense, false)] {
                    let _client = super::#(#modules::)*#client { server: _server };
                    let mut _call = 0;
                    for _ in 0.._rounds { #(#calls)* }
                }
                // Its answers may have a part in memory, too.
                #damage
            });
            _report.call("the inbox", true, _opened.is_ok(), false);
            _report
        }
    }
}

/// The table of all interfaces' tests over Tern. `serves` is what a server's function gives back, `callee` who is called.
fn tern_all(interfaces: &[String], serves: &TokenStream, callee: &TokenStream) -> TokenStream {
    let numbers = || (0..interfaces.len()).map(|number| number.to_string());
    let functions = numbers().map(|number| format_ident!("interface_{number}"));
    let servers = numbers().map(|number| format_ident!("serve_{number}"));
    let count = Literal::usize_unsuffixed(interfaces.len());
    quote! {
        /// An interface's name, its server, and what tests it, which wants the server and one that answers with nonsense.
        pub type Test = (&'static __str, fn(__u64) -> #serves, fn(#callee, #callee, __u64, __u64) -> Report);
        /// All interfaces.
        pub const ALL: [Test; #count] = [#((#interfaces, #servers, #functions)),*];
    }
}

/// Over Tern's ipc.
#[derive(Clone, Copy, Debug)]
pub struct TernIpc;

impl SelfTest for TernIpc {
    fn common(&self) -> &'static str {
        concat!(include_str!("selftest/tern.rs"), include_str!("selftest/tern_ipc.rs"))
    }

    fn uses_memory(&self) -> bool {
        true
    }

    fn run(
        &self,
        emitter: &Emitter,
        interface: &InterfaceParts,
        server: &Ident,
        number: usize,
    ) -> TokenStream {
        let modules: Vec<Ident> = interface.from.iter().map(|p| name(p)).collect();
        let serve = emitter.own_name(&interface.from, "serve");
        let serve_function = format_ident!("serve_{}", number.to_string());
        let server_value = quote! { #server(Known::new(_seed)) };
        let serving = if interface.hands_pages() {
            quote! {
                let _failure = super::#(#modules::)*#serve(&mut #server_value, WINDOW.page());
                panic!("the kernel does not accept the window: {_failure}")
            }
        } else if interface.room.needed {
            let room_type = emitter.own_name(&interface.from, "Room");
            quote! {
                static ROOM: rt::Once<super::#(#modules::)*#room_type> = rt::Once::new(super::#(#modules::)*#room_type::new());
                let _room = ROOM.take().unwrap_or_else(|| panic!("one server at a time"));
                let _failure = super::#(#modules::)*#serve(&mut #server_value, _room);
                panic!("the kernel does not accept the room: {_failure}")
            }
        } else {
            quote! { super::#(#modules::)*#serve(&mut #server_value) }
        };
        // Who calls a oneway method waits in vain, as he must, and so does who has no window for the pages that come back.
        let waits = |parts: &MethodParts| parts.operation.oneway || parts.method.reply.pages.is_some();
        let run = tern_run(self, emitter, interface, (number, quote! { rt::Uid }), waits);
        quote! {
            fn #serve_function(_seed: __u64) -> ! { #serving }
            #run
        }
    }

    fn all(&self, interfaces: &[String]) -> TokenStream {
        tern_all(interfaces, &quote! { ! }, &quote! { rt::Uid })
    }
}

/// Statements that put a watch between an object and its client; none, if nobody can hand on what comes back.
fn between(hands_on: bool, [object, watched, client]: [&TokenStream; 3]) -> TokenStream {
    if !hands_on {
        return quote! { _door.duplicate() };
    }
    quote! {
        let _door = alloc::boxed::Box::leak(alloc::boxed::Box::new(_door.duplicate()?));
        ::rt::door::serve(#object(#watched { server: #client { server: &*_door }, watch: Listener }))
    }
}

/// Through Tern's doors.
#[derive(Clone, Copy, Debug)]
pub struct TernDoor;

impl SelfTest for TernDoor {
    fn common(&self) -> &'static str {
        concat!(include_str!("selftest/tern.rs"), include_str!("selftest/tern_door.rs"))
    }

    fn known(&self) -> TokenStream {
        quote! { ::rt::sync::Mutex<Known> }
    }

    fn state(&self) -> TokenStream {
        quote! { let _known = &mut *self.0.lock(); }
    }

    fn uses_memory(&self) -> bool {
        true
    }

    fn call_needs(&self, method: &Method) -> TokenStream {
        inbox_needs(method)
    }

    fn run(
        &self,
        emitter: &Emitter,
        interface: &InterfaceParts,
        server: &Ident,
        number: usize,
    ) -> TokenStream {
        let modules = interface.from.iter().map(|p| name(p));
        let [object, watched, client] = ["Object", "Watched", "Client"].map(|own| {
            let (modules, own) = (modules.clone(), emitter.own_name(&interface.from, own));
            quote! { super::#(#modules::)*#own }
        });
        let serve_function = format_ident!("serve_{}", number.to_string());
        let run = tern_run(self, emitter, interface, (number, quote! { &::rt::door::Door }), |_| false);
        let between = between(emitter.can_hand_on(interface), [&object, &watched, &client]);
        quote! {
            fn #serve_function(_seed: __u64) -> ::sys::Result<[::rt::door::Door; 4]> {
                ::rt::door::make_room::<#object<#server>>()?;
                ::rt::door::make_room::<Nonsense>()?;
                let _server = #server(::rt::sync::Mutex::new(Known::new(_seed)));
                let [_sane, _nonsense] =
                    [::rt::door::serve(#object(_server))?, ::rt::door::serve(Nonsense::new(_seed))?];
                let _between = |_door: &::rt::door::Door| {
                    #between
                };
                let _watched = [_between(&_sane)?, _between(&_nonsense)?];
                let [_watched, _watched_nonsense] = _watched;
                Ok([_sane, _nonsense, _watched, _watched_nonsense])
            }
            #run
        }
    }

    fn all(&self, interfaces: &[String]) -> TokenStream {
        tern_all(interfaces, &quote! { ::sys::Result<[::rt::door::Door; 4]> }, &quote! { &::rt::door::Door })
    }
}
