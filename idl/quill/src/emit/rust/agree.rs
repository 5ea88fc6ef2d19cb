//! How values have to agree with one another, as expressions: lists with the numbers that say how long they are, unions with their
//! discriminators. Numbers are 64 bits wide, and what does not fit wraps around, so that no number of a message is a danger.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::selftest::{FEW, FEW_OBJECTS};
use super::{Emitter, name};
use crate::model::{Agreement, Branch, Direction, Operation, Rule, Size, Type, TypeId};

/// Elements of a list whose length the self-test computes, at most.
const LENGTH_MAX: u64 = 63;

/// Bytes of such a list, at most: a quarter of what has room where there is no bound.
const LIST_BYTES: u64 = 1024;

/// Finds the expression for a field or parameter with some place, and its type.
pub(super) type Beside<'a> = &'a dyn Fn(usize) -> (TokenStream, TypeId);

impl Emitter<'_> {
    /// Items of a declared type to tell whether its parts go together.
    pub(super) fn agreeing(&self, from: &[String], id: TypeId) -> TokenStream {
        match self.model.ty(id) {
            Type::Struct(path, fields) => {
                let Some(agreements) = self.model.agreements.get(&id) else { return TokenStream::new() };
                let ident = name(&self.place(path).1);
                let beside = |of: usize| {
                    let field = name(&fields[of].name);
                    (quote! { self.#field }, fields[of].ty)
                };
                let holds = agreements.iter().filter_map(|agreement| {
                    let (value, ty) = beside(agreement.of);
                    self.holds(value, ty, &agreement.rules, &beside, 0)
                });
                quote! {
                    impl #ident {
                        #[doc(hidden)]
                        pub fn _agrees(&self) -> __bool { true #(&& #holds)* }
                    }
                }
            }
            Type::Union { name: path, switch, branches } if self.is_labelled(id) => {
                self.labelling(from, path, *switch, branches)
            }
            _ => TokenStream::new(),
        }
    }

    /// The fields or parameters that rules compute sizes from, and their values before any of the lists: small ones, with which all
    /// rules can be kept. They become variables with their names.
    pub(super) fn random_sizes(
        &self,
        agreements: &[Agreement],
        later: &[Agreement],
        beside: Beside,
        fresh: &[usize],
    ) -> TokenStream {
        let names: Vec<usize> = fresh.to_vec();
        if names.is_empty() {
            return TokenStream::new();
        }
        let variables: Vec<TokenStream> = names.iter().map(|&of| beside(of).0).collect();
        let values = names.iter().map(|&of| {
            self.random_label(agreements, beside, of).unwrap_or_else(|| self.random_size(beside(of).1))
        });
        // A request may ask for a reply, so long as there can be one.
        let known = |rule: &Rule| rule.size().names().iter().all(|of| fresh.contains(of));
        let now = agreements.iter().flat_map(|a| self.possible(a, beside, &|_| true));
        let in_time = later.iter().flat_map(|a| self.possible(a, beside, &known));
        let possible: Vec<TokenStream> = now.chain(in_time).collect();
        // Not every value of a discriminator's type may be one of a branch.
        let labelled = agreements.iter().filter_map(|agreement| {
            let rule = agreement.rules.iter().flatten().find(|rule| matches!(rule, Rule::Label(_)))?;
            let (label, value) =
                (self.size(rule.size(), beside), self.random(self.innermost(beside(agreement.of).1)));
            Some(quote! { _r.can(|_r| #value, |_u| _u._label() == #label) })
        });
        // Lengths and the room for them.
        let together = agreements.iter().flat_map(|a| &a.rules).filter_map(|rules| match &rules[..] {
            [Rule::Exactly(length), Rule::AtMost(room)] => {
                let (length, room) = (self.size(length, beside), self.size(room, beside));
                Some(quote! { #length <= #room })
            }
            _ => None,
        });
        quote! {
            let mut _tries = 0;
            let (#(#variables,)*) = loop {
                _tries += 1;
                let (#(#variables,)*) = (#(#values,)*);
                if true #(&& #possible)* #(&& #together)* #(&& #labelled)* { break (#(#variables,)*); }
            };
        }
    }

    /// Conditions for those rules of a list, a text or what is in it that `is_known` allows to be looked at: that there is such a length, and that
    /// the type and a message have room for it.
    fn possible(
        &self,
        agreement: &Agreement,
        beside: Beside,
        is_known: &dyn Fn(&Rule) -> bool,
    ) -> Vec<TokenStream> {
        let mut ty = beside(agreement.of).1;
        let mut all = Vec::new();
        for (depth, rules) in agreement.rules.iter().enumerate() {
            ty = self.without_wrappers(ty);
            // Lists of lists are as long as both lengths together.
            let most = self.elements_max(ty).min(if depth > 0 { FEW } else { LENGTH_MAX });
            let most = Literal::u64_unsuffixed(most);
            // A number that is in the file is no matter of chance.
            let open = rules.iter().filter(|rule| is_known(rule) && !rule.size().names().is_empty());
            for rule in open {
                let size = self.size(rule.size(), beside);
                all.push(match rule {
                    Rule::Exactly(_) => quote! { (0..=#most).contains(&#size) },
                    Rule::AtMost(_) => quote! { #size >= 0 },
                    Rule::Below(_) => quote! { #size >= 1 },
                    Rule::Label(_) => quote! { true },
                });
            }
            if let Type::Sequence(of, _) = self.model.ty(ty) {
                ty = *of;
            }
        }
        all
    }

    /// The most elements of a list whose length is computed from numbers beside it: its bound, and no more than a message has room for beside
    /// others.
    fn elements_max(&self, ty: TypeId) -> u64 {
        let Type::Sequence(of, bound) = self.model.ty(ty) else { return LENGTH_MAX };
        let room = match self.sizes.fixed(*of) {
            _ if self.refers(*of) => FEW_OBJECTS,
            Some(element) => LENGTH_MAX.min(LIST_BYTES / element.size.max(1)),
            None => FEW,
        };
        bound.map_or(room, |bound| bound.min(room))
    }

    /// One of the labels of a union that has to have this number.
    fn random_label(&self, agreements: &[Agreement], beside: Beside, of: usize) -> Option<TokenStream> {
        let says = |rule: &Rule| *rule == Rule::Label(Size::Of(of));
        let agreement = agreements.iter().find(|a| a.rules.iter().flatten().any(says))?;
        let Type::Union { branches, .. } = self.model.ty(self.innermost(beside(agreement.of).1)) else {
            return None;
        };
        let number = match self.model.ty(self.model.resolved(beside(of).1)) {
            Type::Int { .. } | Type::Octet | Type::Char => self.ty(&super::selftest::module(), beside(of).1),
            _ => return None,
        };
        let labels: Vec<Literal> = branches
            .iter()
            .flat_map(|b| &b.labels)
            .map(|&label| Literal::i64_suffixed(label as i64))
            .collect();
        let count = Literal::usize_unsuffixed(labels.len());
        (!labels.is_empty()).then(|| quote! { [#(#labels),*][_r.below(#count)] as #number })
    }

    /// A small number of a type, or one of its values.
    fn random_size(&self, ty: TypeId) -> TokenStream {
        let number = self.ty(&super::selftest::module(), ty);
        match self.model.ty(self.model.resolved(ty)) {
            Type::Int { .. } | Type::Octet | Type::Char => quote! { _r.size(_tries) as #number },
            Type::Optional(of) => {
                let some = self.random_size(*of);
                quote! { Some(#some) }
            }
            Type::Shared(of) => {
                let some = self.random_size(*of);
                quote! { Some(rt::Shared::new(#some)) }
            }
            _ => self.random(ty),
        }
    }

    /// An expression for a random value that keeps its rules, where the sizes are variables.
    pub(super) fn random_keeping(&self, ty: TypeId, rules: &[Vec<Rule>], beside: Beside) -> TokenStream {
        match self.model.ty(self.model.resolved(ty)) {
            Type::Optional(of) => {
                let value = self.random_keeping(*of, rules, beside);
                self.random_optional(*of, &value)
            }
            // A value with rules of its own is nobody else's.
            Type::Shared(of) => {
                let value = self.random_keeping(*of, rules, beside);
                quote! { _r.maybe(|_r| rt::Shared::new(#value)) }
            }
            Type::Array(of, dims) => {
                let value = self.random_keeping(*of, rules, beside);
                dims.iter().fold(value, |value, _| quote! { ::core::array::from_fn(|_| #value) })
            }
            Type::Sequence(of, _) if !rules.is_empty() => {
                let exact = rules[0].iter().find(|rule| matches!(rule, Rule::Exactly(_)));
                let Some(exact) = exact.or(rules[0].first()) else { return self.random(ty) };
                let (value, length) =
                    (self.random_keeping(*of, &rules[1..], beside), self.size(exact.size(), beside));
                let most = Literal::u64_unsuffixed(self.elements_max(self.model.resolved(ty)));
                let most = (!matches!(exact, Rule::Exactly(_))).then(|| quote! { .min(#most) });
                quote! { _r.exactly((#length as __usize) #most, |_r| #value) }
            }
            Type::Str { bound, .. } => match rules.first().and_then(|rules| rules.first()) {
                Some(rule) => {
                    let room = self.size(rule.size(), beside);
                    let most = bound.map(Literal::u64_unsuffixed);
                    let most = most.map(|most| quote! { .min(#most) });
                    quote! { _r.text((#room as __usize - 1) #most) }
                }
                None => self.random(ty),
            },
            Type::Union { .. } => match rules.first().and_then(|rules| rules.first()) {
                Some(rule) => {
                    let (label, value) = (self.size(rule.size(), beside), self.random(ty));
                    quote! { _r.labelled(|_r| #value, |_u| _u._label() == #label) }
                }
                None => self.random(ty),
            },
            _ => self.random(ty),
        }
    }

    /// Whether the discriminator of a union has to be that of a number beside it.
    fn is_labelled(&self, id: TypeId) -> bool {
        let labels = |rules: &Vec<Rule>| rules.iter().any(|rule| matches!(rule, Rule::Label(_)));
        let labels = |agreement: &Agreement| agreement.rules.iter().any(labels);
        let structs = self.model.agreements.iter().flat_map(|(id, all)| {
            let Type::Struct(_, fields) = self.model.ty(*id) else { return Vec::new() };
            all.iter().filter(|a| labels(a)).map(|a| fields[a.of].ty).collect()
        });
        let operations = self.model.interfaces.iter().flat_map(|i| &i.operations);
        let params =
            operations.flat_map(|o| o.agreements.iter().filter(|a| labels(a)).map(|a| o.params[a.of].ty));
        structs.chain(params).any(|ty| self.innermost(ty) == id)
    }

    /// Type of what is in a list of lists, perhaps an absent one.
    fn innermost(&self, ty: TypeId) -> TypeId {
        let mut ty = self.without_wrappers(ty);
        while let Type::Sequence(of, _) = self.model.ty(ty) {
            ty = self.without_wrappers(*of);
        }
        ty
    }

    /// Type of what may be absent, or is in an array.
    fn without_wrappers(&self, ty: TypeId) -> TypeId {
        let mut ty = self.model.resolved(ty);
        while let Type::Optional(of) | Type::Shared(of) | Type::Array(of, _) = self.model.ty(ty) {
            ty = self.model.resolved(*of);
        }
        ty
    }

    /// Function that says the discriminator of a union.
    fn labelling(&self, from: &[String], path: &str, switch: TypeId, branches: &[Branch]) -> TokenStream {
        let ident = name(&self.place(path).1);
        let number = |label: TokenStream| self.as_number(label, switch);
        let mut arms = Vec::new();
        for branch in branches {
            let variant = name(&branch.field.name);
            arms.push(if self.keeps_label(from, switch, branch) {
                let label = number(quote! { (*label) });
                quote! { #ident::#variant(label, _) => #label, }
            } else {
                let known = branch.labels.iter().find(|&&l| self.label(from, switch, l).is_some());
                let label = Literal::i64_suffixed(known.map_or(0, |&label| label as i64));
                quote! { #ident::#variant(_) => #label, }
            });
        }
        if !branches.iter().any(|b| b.is_default) {
            let (none, label) = (Emitter::no_branch(branches), number(quote! { (*label) }));
            arms.push(quote! { #ident::#none(label) => #label, });
        }
        quote! {
            impl #ident {
                #[doc(hidden)]
                pub fn _label(&self) -> __i64 { match self { #(#arms)* } }
            }
        }
    }

    /// A number, truth value or enum as a number.
    fn as_number(&self, value: TokenStream, ty: TypeId) -> TokenStream {
        match self.model.ty(self.model.resolved(ty)) {
            Type::Bitmask(..) => quote! { (#value.0 as __i64) },
            Type::Optional(of) => {
                let inner = self.as_number(quote! { _n }, *of);
                quote! { #value.map_or(0, |_n| #inner) }
            }
            Type::Shared(of) => {
                let inner = self.as_number(quote! { (*_n) }, *of);
                quote! { #value.as_deref().map_or(0, |_n| #inner) }
            }
            _ => quote! { (#value as __i64) },
        }
    }

    /// An expression for a size.
    pub(super) fn size(&self, size: &Size, beside: Beside) -> TokenStream {
        let of = |size: &Size| self.size(size, beside);
        match size {
            Size::Number(number) => {
                let number = Literal::i64_suffixed(*number);
                quote! { (#number) }
            }
            Size::Of(place) => {
                let (value, ty) = beside(*place);
                self.as_number(value, ty)
            }
            Size::One(operator, inner) => {
                let inner = of(inner);
                match *operator {
                    "-" => quote! { __i64::wrapping_neg(#inner) },
                    "~" => quote! { (!#inner) },
                    _ => quote! { __i64::from(#inner == 0) },
                }
            }
            Size::Two(operator, both) => {
                let (left, right) = (of(&both[0]), of(&both[1]));
                let wrapping = match *operator {
                    "+" => "wrapping_add",
                    "-" => "wrapping_sub",
                    "*" => "wrapping_mul",
                    "&&" => return quote! { __i64::from(#left != 0 && #right != 0) },
                    "||" => return quote! { __i64::from(#left != 0 || #right != 0) },
                    operator => {
                        let token: TokenStream = operator.parse().unwrap_or_default();
                        return match operator {
                            "==" | "!=" | "<" | ">" | "<=" | ">=" => {
                                quote! { __i64::from(#left #token #right) }
                            }
                            _ => quote! { (#left #token #right) },
                        };
                    }
                };
                let function = format_ident!("{wrapping}");
                quote! { __i64::#function(#left, #right) }
            }
            Size::Choice(three) => {
                let [condition, yes, no] = [&three[0], &three[1], &three[2]].map(of);
                quote! { (if #condition != 0 { #yes } else { #no }) }
            }
        }
    }

    /// An expression for whether a value keeps its rules; none if there are no rules.
    fn holds(
        &self,
        value: TokenStream,
        ty: TypeId,
        rules: &[Vec<Rule>],
        beside: Beside,
        depth: usize,
    ) -> Option<TokenStream> {
        let inner = format_ident!("_v{}", depth.to_string());
        let within = |of: TypeId, rules| self.holds(quote! { #inner }, of, rules, beside, depth + 1);
        match self.model.ty(self.model.resolved(ty)) {
            Type::Optional(of) => {
                let inner_holds = within(*of, rules)?;
                Some(quote! { #value.as_ref().is_none_or(|#inner| #inner_holds) })
            }
            Type::Shared(of) => {
                let inner_holds = within(*of, rules)?;
                Some(quote! { #value.as_deref().is_none_or(|#inner| #inner_holds) })
            }
            Type::Array(of, dims) => {
                let mut all = within(*of, rules)?;
                for level in (0..dims.len()).rev() {
                    let list = if level == 0 {
                        value.clone()
                    } else {
                        quote! { #inner }
                    };
                    all = quote! { #list.iter().all(|#inner| #all) };
                }
                Some(all)
            }
            kind => {
                let (own, rest) = rules.split_first()?;
                let mut all: Vec<TokenStream> =
                    own.iter().map(|rule| self.keeps(&value, rule, beside)).collect();
                if let Type::Sequence(of, _) = kind {
                    all.extend(within(*of, rest).map(|holds| quote! { #value.iter().all(|#inner| #holds) }));
                }
                match &all[..] {
                    [] => None,
                    [one] => Some(one.clone()),
                    all => Some(quote! { (#(#all)&&*) }),
                }
            }
        }
    }

    /// An expression for whether a list, text or union keeps a rule.
    fn keeps(&self, value: &TokenStream, rule: &Rule, beside: Beside) -> TokenStream {
        let size = self.size(rule.size(), beside);
        match rule {
            Rule::Exactly(_) => quote! { (#value.len() as __i64) == #size },
            Rule::AtMost(_) => quote! { (#value.len() as __i64) <= #size },
            Rule::Below(_) => quote! { (#value.chars().count() as __i64) < #size },
            Rule::Label(_) => quote! { #value._label() == #size },
        }
    }

    /// Those agreements of an operation that can be checked in a request, or in its reply: where everything is there, or was there before.
    pub(super) fn agreements_of(operation: &Operation, reply: bool) -> Vec<Agreement> {
        let travels = |of: usize, not: Direction| operation.params[of].direction != not;
        let not = if reply { Direction::In } else { Direction::Out };
        let known = |rule: &&Rule| reply || rule.size().names().into_iter().all(|of| travels(of, not));
        let there = operation.agreements.iter().filter(|agreement| travels(agreement.of, not));
        there
            .map(|agreement| Agreement {
                of: agreement.of,
                rules: agreement.rules.iter().map(|r| r.iter().filter(known).cloned().collect()).collect(),
            })
            .collect()
    }

    /// Statements that refuse a request, or a reply, whose values do not agree. They are variables with the names of their
    /// parameters; `failed` is the expression for the failure.
    pub(super) fn agreed(&self, operation: &Operation, reply: bool, failed: &TokenStream) -> TokenStream {
        let beside = |of: usize| {
            let param = &operation.params[of];
            let ident = name(&param.name);
            (quote! { #ident }, param.ty)
        };
        let agreements = Emitter::agreements_of(operation, reply);
        let holds: Vec<TokenStream> = agreements
            .iter()
            .filter_map(|agreement| {
                let (value, ty) = beside(agreement.of);
                self.holds(value, ty, &agreement.rules, &beside, 0)
            })
            .collect();
        if holds.is_empty() {
            return TokenStream::new();
        }
        quote! { if !(#(#holds)&&*) { return Err(#failed); } }
    }
}
