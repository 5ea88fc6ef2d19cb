//! Marshal operations: what a message is made of, in order, before anybody knows where it will lie.
//!
//! Parameters are taken apart into values of fixed size (record partitioning): whole numbers and the like, short arrays,
//! the counts of strings and sequences. A struct without holes and without anything to check stays in one piece, and so
//! does a flat union. What has no fixed size becomes a **block** when its length is known before its
//! first byte is read, and a **stream** otherwise. This depends neither on a language nor, but for [references to objects](References), on a
//! kernel; what no stub can carry ends here, by name.

use crate::hints;
use crate::limits;
use crate::model::{DIGITS_MAX, Direction, ExceptionId, Field, Model, Operation, Param, Type, TypeId};
use crate::sizes::{Fixed, Sizes, for_all_types};

/// What the result of an operation is called; no name of a file starts with an underscore.
pub const RESULT: &str = "_result";

/// How references to objects are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum References {
    /// As a word: there is a name for each object that means the same to everybody.
    Words,
    /// As something that the kernel hands over beside the words, as it does with pages: what it is called is every task's own affair.
    Handed,
}

/// Choice of those lists and arrays of elements of a fixed size that are used as they lie in a message, so that they go piece by piece unless every bit
/// pattern is a value of their elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lying {
    /// None: each element is read.
    None,
    /// Lists that are too long for a value that holds its elements itself.
    Long,
    /// All.
    All,
}

impl Lying {
    /// Whether each element of a list has to be looked at by itself.
    fn looks_at(self, sizes: &Sizes, of: TypeId, bound: Option<u64>) -> bool {
        match self {
            Lying::None => false,
            Lying::Long => sizes.is_looked_at(of, bound),
            Lying::All => !sizes.flat(of),
        }
    }
}

/// A step of marshalling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// The parameter, and the fields below it.
    pub path: Vec<String>,
    /// Its type.
    pub ty: TypeId,
    /// What is done with it.
    pub what: What,
    /// It travels both ways, so it should lie in the same place in both.
    pub stays: bool,
    /// How many elements a list has most of the time; only of one whose value can hold all of them itself.
    pub typical: Option<u64>,
    /// How many levels of caches its content may take new lines of, if the interface says so.
    pub caches: Option<u8>,
}

impl Op {
    /// Whether something is handed over in it.
    pub fn hands_over(&self) -> bool {
        match self.what {
            What::Pages { .. } => true,
            What::Stream { references, .. } => references > 0,
            _ => false,
        }
    }
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Copies a value of fixed size.
    Value(Fixed),
    /// Copies the number of elements of a string or sequence; 32 bits.
    Count,
    /// Copies elements whose number is known.
    Block {
        /// The size of each.
        element: Fixed,
        /// How many there are at most.
        bound: Option<u64>,
    },
    /// Copies something element by element.
    Stream {
        /// How many bytes at most.
        bytes_max: Option<u64>,
        /// How many references to objects are handed over with it at most; all that there are, if there is no end to them.
        references: u64,
    },
    /// Copies the number of an offer, which stands for the bytes of a list; 64 bits.
    Offer,
    /// Hands over pages, ports or interrupts; or a reference to an object.
    Pages {
        /// Whether the sender loses them; if nothing is said, the flexpage says it.
        grant: Option<bool>,
    },
}

/// The steps of all messages of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// To the server.
    pub request: Vec<Op>,
    /// From the server.
    pub reply: Vec<Op>,
    /// From the server, for each exception.
    pub exceptions: Vec<(ExceptionId, Vec<Op>)>,
}

impl Call {
    /// The steps of the request, of the reply, and of each exception.
    pub fn messages(&self) -> impl Iterator<Item = &[Op]> {
        let exceptions = self.exceptions.iter().map(|(_, ops)| ops);
        [&self.request, &self.reply].into_iter().chain(exceptions).map(Vec::as_slice)
    }

    /// Adds a word to the request for each list whose pages may be offered, if it can be longer than a page. A request that hands something over has
    /// none, since it cannot be made twice, as one is whose offer is declined. Nor has one to which nothing comes back.
    pub fn with_offers(&mut self, operation: &Operation) {
        // The lengths of lists have to agree with other values, which is looked at before an offer is taken.
        if operation.oneway || !operation.agreements.is_empty() {
            return;
        }
        if self.request.iter().any(Op::hands_over) {
            return;
        }
        for param in operation.params.iter().filter(|param| param.copy_on_write) {
            let is_long = |op: &&Op| {
                let is_its = op.path.len() == 1 && op.path[0] == param.name;
                is_its
                    && matches!(op.what, What::Block { bound: Some(bound), .. } if bound > limits::PAGE_BYTES)
            };
            let Some(list) = self.request.iter().find(is_long) else { continue };
            let offer = Op { what: What::Offer, typical: None, caches: None, ..list.clone() };
            self.request.push(offer);
        }
    }
}

/// The steps of an operation for a kernel that sends references to objects in this way, of which receivers use such lists as they
/// lie, and over which a struct of so many bytes may stay in one piece; or why there are none.
pub fn call(
    model: &Model,
    sizes: &Sizes,
    operation: &Operation,
    references: References,
    lying: Lying,
    struct_bytes_max: u64,
) -> Result<Call, String> {
    let steps = |is_request| {
        let ops = Vec::new();
        Steps { model, sizes, references, lying, struct_bytes_max, is_request, ops }
    };
    if let Some(why) = operation.refused {
        return Err(why.into());
    }
    let (mut request, mut reply) = (steps(true), steps(false));
    if !matches!(model.ty(model.resolved(operation.result)), Type::Void) {
        reply.parameter(RESULT, operation.result, false, None, None)?;
    }
    for param in &operation.params {
        if let Some(what) = hints::refusal(param) {
            return Err(what);
        }
        let stays = param.direction == Direction::InOut;
        if param.direction != Direction::Out {
            request.with_hints(param, stays)?;
        }
        if param.direction != Direction::In {
            reply.with_hints(param, stays)?;
        }
    }
    let mut exceptions = Vec::new();
    for &id in &operation.raises {
        let mut steps = steps(false);
        for field in &model.exceptions[id.0 as usize].fields {
            steps.parameter(&field.name, field.ty, false, None, None)?;
        }
        let is_page = |op: &&Op| matches!(model.ty(model.resolved(op.ty)), Type::Fpage);
        if let (References::Handed, Some(op)) = (references, steps.ops.iter().find(is_page)) {
            return Err(format!("`{}` is a flexpage, and no exception brings one", op.path.join(".")));
        }
        exceptions.push((id, steps.ops));
    }
    Ok(Call { request: request.ops, reply: reply.ops, exceptions })
}

/// The first type among those that another consists of, however deep, for which that holds.
fn part_of(model: &Model, whole: TypeId, holds: impl Fn(&Type) -> bool) -> Option<TypeId> {
    let (mut seen, mut stack) = (vec![false; model.types_len()], vec![whole]);
    while let Some(id) = stack.pop() {
        let id = model.resolved(id);
        if std::mem::replace(&mut seen[id.0 as usize], true) {
            continue;
        }
        match model.ty(id) {
            ty if holds(ty) => return Some(id),
            Type::Struct(_, fields) => stack.extend(fields.iter().map(|f| f.ty)),
            Type::Union { branches, .. } => stack.extend(branches.iter().map(|b| b.field.ty)),
            Type::Sequence(of, _) | Type::Array(of, _) | Type::Optional(of) | Type::Shared(of) => {
                stack.push(*of)
            }
            _ => {}
        }
    }
    None
}

/// How many references to objects a value of a type has at most; all that there are, if there is no end to them.
fn references_in(model: &Model, ty: TypeId) -> u64 {
    if part_of(model, ty, |part| matches!(part, Type::Object(_))).is_none() {
        return 0;
    }
    let count = |ty: TypeId, of: &mut dyn FnMut(TypeId) -> u64| match model.ty(ty) {
        Type::Object(_) => 1,
        Type::Sequence(element, bound) => of(*element).saturating_mul(bound.unwrap_or(u64::MAX)),
        Type::Array(element, dims) => dims.iter().fold(of(*element), |all, &n| all.saturating_mul(n)),
        Type::Optional(inner) | Type::Shared(inner) => of(*inner),
        Type::Struct(_, fields) => fields.iter().map(|f| of(f.ty)).fold(0, u64::saturating_add),
        Type::Union { branches, .. } => branches.iter().map(|b| of(b.field.ty)).fold(0, u64::max),
        _ => 0,
    };
    for_all_types(model, u64::MAX, &count)[ty.0 as usize]
}

/// Arrays and flat structs up to this size are values. A longer array is a block, a longer struct is taken apart.
pub const VALUE_BYTES_MAX: u64 = 64;

/// A list that has no more elements is a value that holds them itself, in all languages.
pub const HELD_ELEMENTS_MAX: u64 = 88;

/// Steps of one message. Beyond it nobody would read the layout, or call the method.
const OPS_MAX: usize = 4_096;

struct Steps<'a> {
    model: &'a Model,
    sizes: &'a Sizes,
    references: References,
    lying: Lying,
    struct_bytes_max: u64,
    is_request: bool,
    ops: Vec<Op>,
}

impl<'a> Steps<'a> {
    /// A parameter, and what the interface says about it.
    fn with_hints(&mut self, param: &Param, stays: bool) -> Result<(), String> {
        let begin = self.ops.len();
        self.parameter(&param.name, param.ty, stays, param.typical, param.grant)?;
        self.ops[begin..].iter_mut().for_each(|op| op.caches = param.caches);
        Ok(())
    }

    fn parameter(
        &mut self,
        name: &str,
        ty: TypeId,
        stays: bool,
        typical: Option<u64>,
        grant: Option<bool>,
    ) -> Result<(), String> {
        let begin = self.ops.len();
        let is_handed = match (self.model.ty(self.model.resolved(ty)), self.references) {
            (Type::Fpage, References::Handed) if self.is_request => {
                return Err(
                    "who serves objects has one window, and that is for references: pages come back, and go there by ipc"
                        .into(),
                );
            }
            (Type::Fpage, _) | (Type::Object(_), References::Handed) => true,
            (Type::Object(_), References::Words) if grant.is_some() => {
                return Err(format!(
                    "`{name}` is a word that says where an object is: nobody has it or loses it"
                ));
            }
            _ => false,
        };
        if is_handed {
            let what = What::Pages { grant };
            let path = vec![name.to_owned()];
            self.ops.push(Op { path, ty, what, stays: false, typical: None, caches: None });
            return Ok(());
        }
        if self.references == References::Handed {
            let references = references_in(self.model, ty);
            if references > 0 {
                return self.with_references(name, ty, references);
            }
        }
        self.take_apart(&mut vec![name.to_owned()], ty, stays, 0)?;
        let elements = match self.model.ty(self.model.resolved(ty)) {
            Type::Str { bound, .. } | Type::Sequence(_, bound) => *bound,
            _ => None,
        };
        if elements.is_some_and(|elements| elements <= HELD_ELEMENTS_MAX) {
            self.ops[begin..].iter_mut().for_each(|op| op.typical = typical);
        }
        Ok(())
    }

    /// A parameter with references to objects in it is read piece by piece: the references are handed over in the order in which they stand there.
    fn with_references(&mut self, name: &str, ty: TypeId, references: u64) -> Result<(), String> {
        let reaches = |part: &Type| matches!(part, Type::Shared(of) if references_in(self.model, *of) > 0);
        if part_of(self.model, ty, reaches).is_some() {
            return Err(format!(
                "`{name}` has a part that several pointers may share, with a reference to an object in it: who gets \
                 it could not say which of them has the reference"
            ));
        }
        self.carried(ty)?;
        let what = What::Stream { bytes_max: self.sizes.stream_bytes_max(ty), references };
        let path = vec![name.to_owned()];
        self.ops.push(Op { path, ty, what, stays: false, typical: None, caches: None });
        Ok(())
    }

    fn take_apart(
        &mut self,
        path: &mut Vec<String>,
        ty: TypeId,
        stays: bool,
        depth: usize,
    ) -> Result<(), String> {
        if depth > limits::NESTING_MAX || self.ops.len() > OPS_MAX {
            return Err("its parameters are too large to be taken apart".into());
        }
        let stream = What::Stream { bytes_max: self.sizes.stream_bytes_max(ty), references: 0 };
        let mut op =
            |what| self.ops.push(Op { path: path.clone(), ty, what, stays, typical: None, caches: None });
        let resolved = self.model.resolved(ty);
        let looked_at = self.lying == Lying::All && !self.sizes.flat(resolved);
        match self.model.ty(resolved) {
            Type::Struct(_, fields) => {
                let fixed = self.sizes.fixed(resolved).filter(|_| self.sizes.flat(resolved));
                if let Some(fixed) = fixed.filter(|f| f.size <= self.struct_bytes_max) {
                    op(What::Value(fixed));
                    return Ok(());
                }
                return self.take_fields_apart(path, fields, stays, depth);
            }
            Type::Array(..) => match self.sizes.fixed(resolved).filter(|_| !looked_at) {
                Some(size) if size.size <= VALUE_BYTES_MAX => op(What::Value(size)),
                Some(size) => op(What::Block { element: size, bound: Some(1) }),
                None => {
                    op(stream);
                    self.carried(ty)?;
                }
            },
            // Text of either kind is UTF-8 on the way, so a character has up to four bytes.
            Type::Str { bound, .. } => {
                op(What::Count);
                let bound = bound.map(|characters| characters.saturating_mul(4));
                op(What::Block { element: Fixed { size: 1, align: 1 }, bound });
            }
            Type::Sequence(of, bound) => match self.sizes.fixed(*of) {
                Some(element) if !self.lying.looks_at(self.sizes, *of, *bound) => {
                    op(What::Count);
                    op(What::Block { element, bound: *bound });
                }
                _ => {
                    op(stream);
                    self.carried(ty)?;
                }
            },
            Type::Union { .. } | Type::Optional(_) | Type::Shared(_) => {
                op(stream);
                self.carried(ty)?;
            }
            _ => match self.sizes.fixed(resolved) {
                Some(size) => op(What::Value(size)),
                None => self.carried(ty)?,
            },
        }
        Ok(())
    }

    fn take_fields_apart(
        &mut self,
        path: &mut Vec<String>,
        fields: &[Field],
        stays: bool,
        depth: usize,
    ) -> Result<(), String> {
        for field in fields {
            path.push(field.name.clone());
            self.take_apart(path, field.ty, stays, depth + 1)?;
            path.pop();
        }
        Ok(())
    }

    /// Refuses what a stream cannot carry, wherever it stands in a type.
    fn carried(&self, ty: TypeId) -> Result<(), String> {
        let mut seen = vec![false; self.model.types_len()];
        let mut stack = vec![ty];
        while let Some(id) = stack.pop() {
            let id = self.model.resolved(id);
            if std::mem::replace(&mut seen[id.0 as usize], true) {
                continue;
            }
            match self.model.ty(id) {
                Type::Struct(_, fields) => stack.extend(fields.iter().map(|f| f.ty)),
                Type::Union { switch, branches, .. } => {
                    stack.push(*switch);
                    stack.extend(branches.iter().map(|b| b.field.ty));
                }
                Type::Flat(name, members) => {
                    let Some(member) = members.iter().find(|member| !self.sizes.plain(member.ty)) else {
                        return Err(format!("the flat union `{name}` is larger than a message can be"));
                    };
                    let (member, show) = (&member.name, self.model.show(member.ty));
                    return Err(format!(
                        "`{member}` of the flat union `{name}` would need a look at its bytes (`{show}`), and no \
                         discriminator says when"
                    ));
                }
                Type::Sequence(of, _) | Type::Optional(of) | Type::Shared(of) => stack.push(*of),
                Type::Array(of, dims) => {
                    let elements = dims.iter().fold(1u64, |n, &d| n.saturating_mul(d));
                    if elements > limits::ELEMENTS_MAX {
                        let show = self.model.show(id);
                        return Err(format!("`{show}` is larger than a message can be"));
                    }
                    stack.push(*of);
                }
                Type::Foreign(what, name) => {
                    return Err(format!("{what} `{name}` is nothing that stubs can carry"));
                }
                Type::Fpage => {
                    return Err("a flexpage is a parameter of its own, and no part of another one".into());
                }
                Type::Fixed(..) if self.sizes.fixed(id).is_none() => {
                    let show = self.model.show(id);
                    return Err(format!(
                        "`{show}` has more than the {DIGITS_MAX} digits for which a number of 64 bits has room"
                    ));
                }
                Type::Float(128) => {
                    return Err("`long double` cannot be sent: it differs between machines".into());
                }
                Type::Pointer(..) | Type::Open(_) => {
                    let show = self.model.show(id);
                    return Err(format!(
                        "nothing says what travels for `{show}`: it stands in a C header, or in Samba's dialect, whose sizes are code in C. \
                         Say it in a file in DCE IDL, where `ref` or `unique` and `string` or `size_is` tell what is behind a pointer"
                    ));
                }
                Type::Forward(name) => return Err(format!("`{name}` is declared and never defined")),
                _ => {}
            }
        }
        Ok(())
    }
}
