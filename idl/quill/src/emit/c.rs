//! C: a header with the types, and for each interface functions for its clients and a dispatcher for its servers.
//!
//! Names follow the C mapping of CORBA: `A::B::c` is `A_B_c`. Everything is `static inline`, so a header is all there is,
//! calls are inlined, and two files may include the same one. A name that is a keyword, or a macro of common headers, or
//! taken, gets an underscore.
//!
//! | in the interface | in C |
//! |---|---|
//! | `boolean`, `octet`, `char`, numbers | `bool`, `uint8_t`, `char`, `int16_t` … |
//! | `wchar`; `string` | `uint32_t`; `char *`, with a zero at its end, or `quill_text` if an attribute file says so |
//! | `sequence<T>` | a struct of `_length` and `_buffer` |
//! | `enum`, `bitmask` | a number, and names for its values |
//! | `union`; without a discriminator | a struct of `_d` and a union `_u`; a union, all bytes of which are `_bits` |
//! | `any` | `quill_any`, and functions for each kind and each type of the file |
//! | `Object`, an interface; through doors | a number; a struct for each, with the number of an identifier |
//! | result, `out`, `inout` | pointers; the function returns how it ended |

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};

use crate::any::Codes;
use crate::codes::Code;
use crate::diag::Diagnostic;
use crate::emit::travel::{endless, held, is_opaque, referring, sharing, travelling, why};
use crate::kernel::KernelPart;
use crate::layout::{self, InterfaceLayout, Method, RESULT};
use crate::limits;
use crate::model::{Direction, InterfaceId, Model, Operation, Shown, Type, TypeId};
use crate::sizes::Sizes;
use crate::source;
use crate::type_code;

mod agree;
mod any;
mod binding;
mod constants;
pub mod interface;
pub mod l4_v4;
pub mod linux;
mod names;
mod pieces;
mod relay;
mod release;
mod selftest;
mod status;
pub mod tern_ipc;
pub mod tree;
mod types;
pub mod values;

use names::{Names, unique, word};
use tree::{Expr, Item, Ty, name};

/// What a kernel part adds to the C that is the same for all kernels.
pub trait Part: Sync {
    /// What stubs share, in front of everything.
    fn runtime(&self) -> &'static str;

    /// Where the elements of strings and sequences are.
    fn lists(&self) -> Lists;

    /// Whether references to objects are handed over beside all values, and have a type for each interface.
    fn hands_references(&self) -> bool {
        false
    }

    /// Whether a type can be in a message, as far as this part is concerned.
    fn carries(&self, emitter: &Emitter, ty: TypeId) -> bool;

    /// Why an operation cannot be translated, although each of its types can travel.
    fn refuses(&self, _emitter: &Emitter, _operation: &Operation, _method: &Method) -> Option<String> {
        None
    }

    /// Whether what several pointers share is told once.
    fn keeps_shared(&self) -> bool {
        true
    }

    /// Types that others may have in them, and that no file declares.
    fn types(&self, _emitter: &Emitter) -> Vec<Item> {
        Vec::new()
    }

    /// Functions that write and read values of declared types.
    fn values(&self, emitter: &Emitter) -> Vec<Item>;

    /// The functions of an interface.
    fn interface(&self, emitter: &Emitter, layout: &InterfaceLayout, operations: &[&Operation]) -> Vec<Item>;
}

/// Where the elements of strings and sequences are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// Elsewhere.
    Pointers,
    /// In the value, which has room for as many as there may be; elsewhere, where there may be more than so many.
    Inside(u64),
}

/// The C text for a model that was laid out for a kernel, by the part that writes its code.
pub fn emit(
    model: &Model,
    kernel: &dyn KernelPart,
    part: &'static dyn Part,
) -> Result<String, Vec<Diagnostic>> {
    let text = emit_with(model, (kernel, part), "", |_, _| String::new())?;
    Ok(text + &quotes(model))
}

/// Lines that the file has for headers of C, behind all that they may be about.
fn quotes(model: &Model) -> String {
    if model.quotes.is_empty() {
        return String::new();
    }
    let lines: String = model.quotes.iter().map(|(_, line)| format!("{line}\n")).collect();
    format!("\n#ifndef QUILL_NO_QUOTES\n/* Lines of `cpp_quote` in the interface file. */\n{lines}#endif\n")
}

/// The C text over L4's V4 API, with programs behind it that test the interfaces; see `quill test`.
pub fn emit_selftest(model: &Model) -> Result<String, Vec<Diagnostic>> {
    let refused = selftest::untestable(model);
    if !refused.is_empty() {
        return Err(refused);
    }
    let l4 = (&crate::kernel::L4V4 as &dyn KernelPart, &l4_v4::L4V4 as &'static dyn Part);
    emit_with(model, l4, &selftest::TEXTS.concat(), selftest::programs)
}

/// The C text over sockets, with a program behind it that stands between a client and a server of each interface; see `quill test`.
pub fn emit_relay(model: &Model) -> Result<String, Vec<Diagnostic>> {
    let sockets = (&crate::kernel::Linux as &dyn KernelPart, &linux::Linux as &'static dyn Part);
    let text = emit_with(&relay::plain(model), sockets, relay::TEXT, relay::program)?;
    // It is no header any more.
    Ok(text.replacen("#pragma once\n", "", 1))
}

fn emit_with(
    model: &Model,
    (kernel, part): (&dyn KernelPart, &'static dyn Part),
    extra: &str,
    more: impl Fn(&Emitter, &[InterfaceLayout]) -> String,
) -> Result<String, Vec<Diagnostic>> {
    if model.types_len() > limits::TYPES_MAX {
        let message = format!("the file has more than {} types, too many for C output", limits::TYPES_MAX);
        return Err(vec![Diagnostic::error(Code::Limit, source::Span::default(), message)]);
    }
    let mut model = model.clone();
    type_code::complete(&mut model);
    let codes = Codes::of(&model);
    let any = model.has_any().then(any::runtime);
    let own = [part.runtime(), any.as_deref().unwrap_or_default(), extra].concat();
    let (names, mut model) = names::Names::choose(&model, &own);
    if part.lists() != Lists::Pointers {
        texts_elsewhere(&mut model);
    }
    let (model, layouts) = (&model, &layout::layout(&model, kernel)?);
    let emitter = Emitter { codes, ..Emitter::new(model, names, part) };
    emitter.name_functions(layouts);
    let mut refused = Vec::new();
    let mut items = vec![
        Item::Comment("Made by quill from an interface file. Changes here are lost.".into()),
        Item::Verbatim("#pragma once\n"),
        Item::Verbatim(part.runtime()),
    ];
    items.extend(any.map(Item::Text));
    items.extend(part.types(&emitter));
    items.extend(emitter.declarations());
    items.extend(emitter.constants());
    items.extend(part.values(&emitter));
    if model.has_any() {
        items.extend(any::functions(&emitter));
    }
    for layout in layouts {
        let operations = model.operations(layout.interface);
        let interface = &model.interfaces[layout.interface.0 as usize];
        let methods = if interface.local { &[] } else { &layout.methods[..] };
        refused.extend(refusals(&emitter, part, &operations, methods, interface.local));
        if interface.local {
            items.extend(
                interface::Interface { emitter: &emitter, interface: &interface.name }.direct(&operations),
            );
            continue;
        }

        if refused.is_empty() {
            let made = part.interface(&emitter, layout, &operations);
            let bound = binding::bound(&emitter, layout, &operations, made);
            items.extend(status::told(&emitter, layout, &operations, bound));
        }
    }
    if refused.is_empty() { Ok(tree::text(&items) + &more(&emitter, layouts)) } else { Err(refused) }
}

/// Lets texts that may be absent lie elsewhere, as what else may be absent does: in C, an array is there or it is not.
fn texts_elsewhere(model: &mut Model) {
    for id in model.ids() {
        let (Type::Optional(of) | Type::Shared(of)) = *model.ty(id) else { continue };
        if !matches!(model.ty(model.resolved(of)), Type::Str { shown: Shown::Terminated, .. }) {
            continue;
        }
        let text = model.shown_as(of, Shown::Elsewhere);
        let is_shared = matches!(model.ty(id), Type::Shared(_));
        model.define(id, if is_shared { Type::Shared(text) } else { Type::Optional(text) });
    }
}

/// The operations that cannot be translated. Those of a local interface have no `methods`.
fn refusals(
    emitter: &Emitter,
    part: &dyn Part,
    operations: &[&Operation],
    methods: &[Method],
    local: bool,
) -> Vec<Diagnostic> {
    let mut refused = Vec::new();
    for (number, operation) in operations.iter().enumerate() {
        let by_method = || part.refuses(emitter, operation, methods.get(number)?);
        if let Some(what) = emitter.untranslatable(operation, local).or_else(by_method) {
            let message = format!("`{}` cannot be translated: {what}", operation.name);
            refused.push(Diagnostic::error(Code::Unsupported, operation.span, message));
        }
    }
    refused
}

/// Arrays from this size on would lie on the stack of whoever reads them.
const ARRAY_BYTES_MAX: u64 = 64 << 10;

/// A text with its length beside it, where it lies.
const TEXT: &str = "quill_text";

/// A reference to an object of which nothing is known.
const OBJECT: &str = "quill_object";

/// A header of C in the making.
pub struct Emitter<'a> {
    /// What is translated.
    pub model: &'a Model,
    /// Sizes of its types.
    pub sizes: Sizes,
    lists: Lists,
    hands_references: bool,
    keeps_shared: bool,
    /// What everything is called.
    names: Names,
    /// Type codes of types that an `any` may hold.
    codes: Codes,
    /// Which types can travel.
    travels: Vec<bool>,
    /// Other types that a local interface can use.
    held: Vec<bool>,
    /// Which have lists that lie elsewhere, once somebody has asked.
    elsewhere: OnceCell<Vec<bool>>,
    /// Marks of types with parts that several values may have in common.
    shares: Vec<bool>,
    /// Marks of types with references in them that are handed over beside all values.
    refers: Vec<bool>,
    /// Names that are taken.
    taken: RefCell<HashSet<String>>,
    /// Names of functions, by what they were to be called.
    functions: RefCell<HashMap<String, String>>,
}

impl<'a> Emitter<'a> {
    fn new(model: &'a Model, mut names: Names, part: &'static dyn Part) -> Emitter<'a> {
        let (taken, functions) = (std::mem::take(&mut names.taken), std::mem::take(&mut names.belongings));
        let mut emitter = Emitter {
            model,
            sizes: Sizes::new(model),
            lists: part.lists(),
            hands_references: part.hands_references(),
            keeps_shared: part.keeps_shared(),
            shares: sharing(model),
            refers: if part.hands_references() { referring(model) } else { vec![false; model.types_len()] },
            names,
            codes: Codes::default(),
            travels: Vec::new(),
            held: Vec::new(),
            elsewhere: OnceCell::new(),
            taken: RefCell::new(taken),
            functions: RefCell::new(functions),
        };
        let endless = endless(model, |bound| emitter.inside(bound));
        let carries = |id: TypeId| {
            part.carries(&emitter, id) && !endless[id.0 as usize] && !emitter.points_to_array(id)
        };
        emitter.travels = travelling(model, &emitter.sizes, carries);
        emitter.held = held(model, &emitter.sizes, &emitter.travels);
        for index in 0..emitter.held.len() {
            emitter.held[index] &= !emitter.points_to_array(TypeId(index as u32));
        }
        emitter
    }

    /// The name of an exception's struct.
    pub fn exception(&self, id: crate::model::ExceptionId) -> &str {
        &self.names.exceptions[id.0 as usize]
    }

    /// A type with its aliases looked through.
    pub fn kind(&self, id: TypeId) -> &Type {
        self.model.ty(self.model.resolved(id))
    }

    /// Whether a list with this bound lies in its value.
    pub fn inside(&self, bound: Option<u64>) -> bool {
        matches!((self.lists, bound), (Lists::Inside(most), Some(bound)) if bound <= most)
    }

    /// Whether a text lies in its value: where lists do, unless it is only lent.
    pub fn text_inside(&self, id: TypeId) -> bool {
        let lies = |shown| matches!(shown, Shown::Lent | Shown::Elsewhere);
        matches!(self.kind(id), Type::Str { bound, shown, .. } if !lies(*shown) && self.inside(*bound))
    }

    /// Whether a type is a text that is a pointer, which is null if there is none.
    pub fn is_text_pointer(&self, id: TypeId) -> bool {
        matches!(self.kind(id), Type::Str { .. }) && !self.counted(id) && !self.text_inside(id)
    }

    /// Whether a type is an array that may be absent, of which nothing can be made: C's arrays are no values.
    fn points_to_array(&self, id: TypeId) -> bool {
        match self.model.ty(id) {
            Type::Optional(of) | Type::Shared(of) => {
                matches!(self.kind(*of), Type::Array(..)) || (self.text_inside(*of) && !self.counted(*of))
            }
            _ => false,
        }
    }

    /// Type of the value that several others may share, where that is kept.
    pub fn shared(&self, id: TypeId) -> Option<TypeId> {
        match self.kind(id) {
            Type::Shared(of) if self.keeps_shared => Some(*of),
            _ => None,
        }
    }

    /// Whether a part of a type may be shared.
    pub fn shares(&self, id: TypeId) -> bool {
        self.keeps_shared && self.shares[self.model.resolved(id).0 as usize]
    }

    /// Whether a type has references in it that are handed over beside all values, or is one.
    pub fn refers(&self, id: TypeId) -> bool {
        self.refers[self.model.resolved(id).0 as usize]
    }

    /// Whether a type is such a reference.
    pub fn is_handed(&self, id: TypeId) -> bool {
        self.hands_references && matches!(self.kind(id), Type::Object(_))
    }

    /// Whether a type is a text with its length beside it.
    pub fn counted(&self, id: TypeId) -> bool {
        matches!(self.kind(id), Type::Str { shown: Shown::Counted | Shown::Lent, .. })
    }

    /// A type in C.
    pub fn ty(&self, id: TypeId) -> Ty {
        let id = self.model.resolved(id);
        match self.model.ty(id) {
            Type::Bool => Ty::named("bool"),
            Type::Octet => Ty::named("uint8_t"),
            Type::Char => Ty::named("char"),
            Type::WideChar => Ty::named("uint32_t"),
            Type::Int { bits, signed } => Ty::named(format!("{}int{bits}_t", if *signed { "" } else { "u" })),
            Type::Float(32) => Ty::named("float"),
            Type::Float(_) => Ty::named("double"),
            Type::Str { shown: Shown::Counted, .. } if self.text_inside(id) => Ty::named(self.mangled(id)),
            Type::Str { shown: Shown::Counted | Shown::Lent, .. } => Ty::named(TEXT),
            // Four bytes for each character, and the zero.
            Type::Str { bound: Some(bound), .. } if self.text_inside(id) => {
                Ty { dims: vec![4 * bound + 1], ..Ty::named("char") }
            }
            Type::Str { .. } => Ty::named("char *"),
            Type::Object(to) if self.hands_references => Ty::named(self.reference(*to)),
            // Kernels that have such things have numbers for them.
            Type::Object(_) | Type::Fpage => Ty::named("uint64_t"),
            Type::Sequence(..) => Ty::named(self.mangled(id)),
            Type::Optional(of) | Type::Shared(of) if self.is_text_pointer(*of) => self.ty(*of),
            Type::Optional(of) | Type::Shared(of) => Ty::named(format!("{} *", self.ty(*of).base)),
            Type::Array(of, dims) => {
                let mut ty = self.ty(*of);
                let mut all = dims.clone();
                all.append(&mut ty.dims);
                Ty { dims: all, ..ty }
            }
            kind if is_opaque(kind) => Ty::named("void *"),
            _ => Ty::named(self.names.types.get(&id).cloned().unwrap_or_else(|| "void".into())),
        }
    }

    /// A type as part of a name.
    pub fn mangled(&self, id: TypeId) -> String {
        let id = self.model.resolved(id);
        let bound = |b: &Option<u64>| b.map_or(String::new(), |b| format!("_{b}"));
        match self.model.ty(id) {
            Type::Str { bound: b, shown: Shown::Terminated | Shown::Elsewhere, .. } => {
                format!("string{}", bound(b))
            }
            Type::Str { bound: b, .. } => format!("{TEXT}{}", bound(b)),
            Type::Sequence(of, b) => format!("sequence{}_{}", bound(b), self.mangled(*of)),
            Type::Optional(of) => format!("optional_{}", self.mangled(*of)),
            Type::Shared(of) => format!("shared_{}", self.mangled(*of)),
            Type::Array(of, dims) => {
                let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
                format!("array_{}_{}", dims.join("_"), self.mangled(*of))
            }
            _ => self.ty(id).base,
        }
    }

    /// What C cannot hold, of what the layout can carry.
    fn untranslatable(&self, operation: &Operation, local: bool) -> Option<String> {
        let result = (!self.is_void(operation.result)).then_some(operation.result);
        let mut stack: Vec<TypeId> = operation.params.iter().map(|p| p.ty).chain(result).collect();
        let raised = operation.raises.iter().flat_map(|id| &self.model.exceptions[id.0 as usize].fields);
        stack.extend(raised.map(|f| f.ty));
        self.unfit(stack, local)
    }

    /// The first thing that C cannot hold, of these types and of all that they consist of.
    fn unfit(&self, mut stack: Vec<TypeId>, local: bool) -> Option<String> {
        let mut seen = HashSet::new();
        while let Some(ty) = stack.pop() {
            let ty = self.model.resolved(ty);
            // They are no part of anything, and go beside all values.
            let is_handed = match self.model.ty(ty) {
                Type::Fpage => true,
                Type::Object(_) => self.hands_references,
                _ => false,
            };
            if !seen.insert(ty) || is_handed {
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
                        return Some(format!("an array of that size (`{show}`) does not fit on a stack"));
                    }
                    stack.push(*of);
                }
                Type::Sequence(of, _) | Type::Optional(of) | Type::Shared(of) => stack.push(*of),
                Type::Flat(name, _) if self.sizes.fixed(ty).is_some_and(|f| f.size > ARRAY_BYTES_MAX) => {
                    return Some(format!("a union of that size (`{name}`) does not fit on a stack"));
                }
                Type::Struct(_, fields) | Type::Flat(_, fields) => stack.extend(fields.iter().map(|f| f.ty)),
                Type::Union { branches, .. } => stack.extend(branches.iter().map(|b| b.field.ty)),
                _ => {}
            }
        }
        None
    }

    /// Whether a type is no value.
    pub fn is_void(&self, ty: TypeId) -> bool {
        matches!(self.kind(ty), Type::Void)
    }

    /// The name of something of an interface: a function, or a type that only C has.
    pub fn function(&self, interface: &str, function: &str) -> String {
        let path = format!("{interface}::{function}");
        let mut functions = self.functions.borrow_mut();
        let wanted = format!("{interface}::{}", names::without_underscore(function));
        let name = functions.entry(path);
        name.or_insert_with(|| unique(&mut self.taken.borrow_mut(), &wanted, |_| true)).clone()
    }

    /// Gives functions of operations their names before anything that is called after them: first those that are called like operations of the file, and then
    /// those of attributes.
    fn name_functions(&self, layouts: &[InterfaceLayout]) {
        for of_attributes in [false, true] {
            for layout in layouts {
                let interface = &self.model.interfaces[layout.interface.0 as usize].name;
                for operation in self.model.operations(layout.interface) {
                    if (names::without_underscore(&operation.name) != operation.name) == of_attributes {
                        self.function(interface, &operation.name);
                    }
                }
            }
        }
    }

    /// The name of the pointer to a method.
    pub fn method(&self, operation: &Operation) -> &str {
        self.names.methods.get(&operation.name).map_or("unnamed", String::as_str)
    }

    /// The name of something that belongs to a type of the output, and that the file does not declare.
    pub fn beside(&self, of: &str, what: &str) -> String {
        let mut functions = self.functions.borrow_mut();
        let wanted = || unique(&mut self.taken.borrow_mut(), &format!("{of}_{what}"), |_| true);
        // No interface has a function that is called like that.
        functions.entry(names::belonging(of, what)).or_insert_with(wanted).clone()
    }

    /// The name of something that an interface has besides its operations. It is kept by the interface's path, since `A::B` and `A_B` are two.
    pub fn of_interface(&self, interface: &str, what: &str) -> String {
        let mut functions = self.functions.borrow_mut();
        let path = format!("{interface}::{}", names::without_underscore(what));
        let wanted = || unique(&mut self.taken.borrow_mut(), &path, |_| true);
        functions.entry(names::belonging_to_interface(interface, what)).or_insert_with(wanted).clone()
    }

    /// The type of references to objects with an interface, or to any.
    pub fn reference(&self, to: Option<InterfaceId>) -> String {
        let Some(to) = to else { return OBJECT.into() };
        let path = &self.model.interfaces[to.0 as usize].name;
        let mut functions = self.functions.borrow_mut();
        functions
            .entry(path.clone())
            .or_insert_with_key(|path| unique(&mut self.taken.borrow_mut(), path, |_| true))
            .clone()
    }

    /// The parameters of a function as C has them: those of the operation, then the result.
    pub fn parameters(&self, operation: &Operation) -> Vec<(Ty, String)> {
        let mut parameters: Vec<(Ty, String)> = operation
            .params
            .iter()
            .map(|param| (self.parameter(param.ty, param.direction), word(&param.name)))
            .collect();
        if !self.is_void(operation.result) {
            parameters.push((self.parameter(operation.result, Direction::Out), RESULT.into()));
        }
        parameters
    }

    fn parameter(&self, id: TypeId, direction: Direction) -> Ty {
        let ty = self.ty(id);
        let is_array = !ty.dims.is_empty();
        match (direction, self.kind(id)) {
            (Direction::In, Type::Str { shown: Shown::Terminated, .. }) => Ty::named("const char *"),
            (Direction::In, kind) if is_record(kind) => ty.to().constant(),
            (Direction::In, Type::Array(of, _)) if !matches!(self.kind(*of), Type::Str { .. }) => {
                ty.constant()
            }
            (Direction::In, _) => ty,
            // An array is passed by its address in any case.
            _ if is_array => ty,
            _ => ty.to(),
        }
    }

    /// The expression for a parameter's value inside of the function that has it.
    pub fn value(&self, parameter: &str, id: TypeId, direction: Direction) -> Expr {
        let name = name(parameter);
        let by_pointer = match (direction, self.kind(id)) {
            _ if !self.ty(id).dims.is_empty() => false,
            (Direction::In, kind) if is_record(kind) => true,
            (direction, _) => direction != Direction::In,
        };
        if by_pointer { name.deref() } else { name }
    }

    /// A union's discriminator as what a `switch` compares with labels.
    pub fn discriminator(&self, switch: TypeId, value: Expr) -> Expr {
        match self.kind(switch) {
            Type::Bool => value.cast(Ty::named("int")),
            // Labels are 0 to 255, and a `char` may have a sign.
            Type::Char => value.cast(Ty::named("uint8_t")),
            _ => value,
        }
    }
}

/// Whether values are passed by address.
fn is_record(ty: &Type) -> bool {
    matches!(ty, Type::Struct(..) | Type::Flat(..) | Type::Union { .. } | Type::Sequence(..))
}
