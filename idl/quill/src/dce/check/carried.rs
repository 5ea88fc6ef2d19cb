//! Values that travel for a type as C has it: of a pointer that is never null, what is behind it; of one that may be, a value that may be
//! absent; of an array with a size beside it, a list; of characters with a zero at their end, a text.
//!
//! Sizes stay values of their own, and have to agree with the lists: that is an [`Agreement`], which every stub checks. Pointers
//! count their levels from the outside, and so do the commas in `size_is(…)`.

use super::*;
use crate::model::{Agreement, Rule, Size};

/// Why something cannot travel: the words that stand before its name.
type Refused = &'static str;

/// Where a type stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    /// It is a parameter, whose outermost pointer is no null unless somebody says so.
    Parameter,
    /// It is a field.
    Field,
}

/// Attributes of one field or parameter.
struct Said {
    stands: Stands,
    /// By attribute of [`DIMENSIONS`], then by level.
    sizes: Vec<Vec<Option<Expr>>>,
    switch: Option<Expr>,
    string: bool,
    /// It is an interface that another parameter names.
    named_interface: bool,
    kind: Option<Pointer>,
    /// Rules that have been found so far.
    rules: Vec<Vec<Rule>>,
}

/// Steps of a size. Nobody reads a longer one.
const STEPS_MAX: usize = 64;

/// Attributes with a value for each level.
const DIMENSIONS: [&str; 5] = ["size_is", "max_is", "length_is", "first_is", "last_is"];

impl Said {
    fn size(&self, attribute: usize, level: usize) -> Option<&Expr> {
        self.sizes[attribute].get(level)?.as_ref()
    }

    fn is_sized(&self, level: usize) -> bool {
        (0..DIMENSIONS.len()).any(|attribute| self.size(attribute, level).is_some())
    }
}

impl Checker<'_> {
    /// Type that travels for a field or parameter, and how it has to agree with those beside it: for now these are named by their
    /// symbols.
    pub(super) fn carried(&mut self, ty: TypeId, attrs: &[Attr], stands: Stands) -> (TypeId, Vec<Vec<Rule>>) {
        if has(self.s, attrs, "context_handle") {
            return (self.model.add_context(), Vec::new());
        }
        let mut said = self.said(attrs, stands);
        match self.carry(ty, 0, &mut said) {
            Ok(ty) => (ty, said.rules),
            Err(why) => {
                let name = self.model.show(ty);
                (self.model.add(Type::Foreign(why, name)), Vec::new())
            }
        }
    }

    /// Reads attributes. Mistakes in them have been reported.
    fn said(&mut self, attrs: &[Attr], stands: Stands) -> Said {
        let sizes = DIMENSIONS.map(|name| find(self.s, attrs, name).map_or(Vec::new(), |a| self.levels(a)));
        let switch = find(self.s, attrs, "switch_is");
        let switch = switch.and_then(|attr| self.levels(attr).into_iter().next().flatten());
        let kinds = [("ref", Pointer::Ref), ("unique", Pointer::Unique), ("ptr", Pointer::Full)];
        let kind = kinds.into_iter().find(|(name, _)| has(self.s, attrs, name)).map(|(_, kind)| kind);
        Said {
            stands,
            sizes: sizes.into(),
            switch,
            string: has(self.s, attrs, "string"),
            named_interface: has(self.s, attrs, "iid_is"),
            kind,
            rules: Vec::new(),
        }
    }

    /// The expressions between the commas of an attribute.
    fn levels(&mut self, attr: &Attr) -> Vec<Option<Expr>> {
        let mut levels = Vec::new();
        let mut rest = attr.arguments.as_deref();
        let diags = std::mem::take(&mut self.s.diags);
        while let Some(arguments) = rest {
            let (tokens, behind) = attrs::split_first(self.s, arguments);
            rest = behind;
            let is_open = tokens.is_empty() || tokens.len() == 1 && self.s.text(&tokens[0]) == "*";
            levels.push(if is_open { None } else { attrs::expression(self.s, tokens, attr).ok() });
        }
        self.s.diags = diags;
        levels
    }

    /// Type that travels for one at some level of pointers and arrays.
    fn carry(&mut self, ty: TypeId, level: usize, said: &mut Said) -> Result<TypeId, Refused> {
        if level > limits::NESTING_MAX {
            return Err("the pointer without an end");
        }
        said.string |= self.is_string(ty);
        let resolved = self.model.resolved(ty);
        match self.model.ty(resolved).clone() {
            Type::Pointer(kind, to) => {
                let inner = self.behind(to, level, said)?;
                let kind = match (said.kind.filter(|_| level == 0).unwrap_or(kind), said.stands) {
                    (Pointer::Unsaid, Stands::Parameter) if level == 0 => Pointer::Ref,
                    (Pointer::Unsaid, _) => self.pointer_default,
                    (kind, _) => kind,
                };
                // A reference to an object may be none by itself.
                let is_object = matches!(self.model.ty(self.model.resolved(inner)), Type::Object(_));
                let always = kind == Pointer::Ref || is_object;
                Ok(match kind {
                    _ if always => inner,
                    Pointer::Full => self.model.add(Type::Shared(inner)),
                    _ => self.model.add(Type::Optional(inner)),
                })
            }
            Type::Open(to) if said.string || said.is_sized(level) => self.behind(to, level, said),
            Type::Open(_) => Err("the array of unknown size"),
            Type::Array(to, dims) => self.carry_array(ty, (to, dims), level, said),
            Type::Union { .. } => {
                if let Some(switch) = said.switch.take() {
                    let label = self.size(&switch)?;
                    said.rules.push(vec![Rule::Label(label)]);
                }
                Ok(ty)
            }
            _ => Ok(ty),
        }
    }

    fn carry_array(
        &mut self,
        ty: TypeId,
        (to, dims): (TypeId, Vec<u64>),
        level: usize,
        said: &mut Said,
    ) -> Result<TypeId, Refused> {
        if said.string
            && let Some(wide) = self.width(to)
        {
            said.rules.push(Vec::new());
            let bound = Some(dims[0].saturating_sub(1).max(1));
            return Ok(self.model.add(Type::Str { wide, bound, shown: Shown::default() }));
        }
        if said.is_sized(level) {
            // An array of one element whose size is said is open, as C of old has it.
            let open = said.size(0, level).or(said.size(1, level)).is_some();
            return self.list(to, (!open).then_some(dims[0]), level, said);
        }
        let inner = self.carry(to, level + 1, said)?;
        Ok(if inner == to { ty } else { self.model.add(Type::Array(inner, dims)) })
    }

    /// Type behind a pointer, or in an array that does not say how large it is.
    fn behind(&mut self, to: TypeId, level: usize, said: &mut Said) -> Result<TypeId, Refused> {
        if said.string
            && let Some(wide) = self.width(to)
        {
            let room =
                [(0, 0), (1, 1)].map(|(attribute, more)| Some((said.size(attribute, level)?.clone(), more)));
            let (mut rules, mut bound) = (Vec::new(), None);
            if let Some((size, more)) = room.into_iter().flatten().next() {
                let size = self.size(&size)?;
                match self.greatest(&size) {
                    Some(most) => bound = Some(most),
                    None => rules.push(Rule::Below(plus(size, more))),
                }
            }
            said.rules.push(rules);
            return Ok(self.model.add(Type::Str { wide, bound, shown: Shown::default() }));
        }
        if said.is_sized(level) {
            return self.list(to, None, level, said);
        }
        match self.model.ty(self.model.resolved(to)) {
            Type::Void if said.named_interface => Ok(self.model.add(Type::Object(None))),
            Type::Void => Err("the pointer to nothing in particular"),
            Type::Foreign("the function type", _) => Err("the pointer to a function"),
            _ => self.carry(to, level + 1, said),
        }
    }

    /// A list, with its rules.
    fn list(
        &mut self,
        of: TypeId,
        bound: Option<u64>,
        level: usize,
        said: &mut Said,
    ) -> Result<TypeId, Refused> {
        let mut size = |attribute| said.size(attribute, level).map(|expr| self.size(expr)).transpose();
        let [size_is, max_is, length_is, first_is, last_is] =
            [size(0)?, size(1)?, size(2)?, size(3)?, size(4)?];
        let first = first_is.filter(|first| *first != Size::Number(0));
        let behind_first = |end: Size| match &first {
            Some(first) => Size::Two("-", Box::new([end, first.clone()])),
            None => end,
        };
        // L4's dialects say by `max_is` how much there may be, beside how much there is.
        let both = size_is.as_ref().or(length_is.as_ref());
        let limit = both.and(max_is.as_ref()).and_then(|max| self.greatest(max));
        let max_is = max_is.filter(|_| limit.is_none());
        let room = size_is.or(max_is.map(|last| plus(last, 1)));
        let length = length_is.or(last_is.map(|last| behind_first(plus(last, 1))));
        let rules = match (length, room) {
            (Some(length), Some(room)) if length == room => vec![Rule::Exactly(length)],
            (Some(length), Some(room)) => vec![Rule::Exactly(length), Rule::AtMost(behind_first(room))],
            (Some(length), None) => vec![Rule::Exactly(length)],
            (None, Some(room)) => vec![Rule::Exactly(behind_first(room))],
            (None, None) => Vec::new(),
        };
        let exact = rules.first().and_then(|rule| self.greatest(rule.size()));
        let bound = bound.or(limit).or(exact);
        said.rules.push(rules);
        let of = match self.model.ty(self.model.resolved(of)) {
            // So many bytes.
            Type::Void => self.model.add(Type::Octet),
            _ => self.carry(of, level + 1, said)?,
        };
        Ok(self.model.add(Type::Sequence(of, bound)))
    }

    /// Most elements that a constant size allows, in L4's dialects: what has a bound is carried in less room.
    fn greatest(&self, size: &Size) -> Option<u64> {
        match size {
            Size::Number(number @ 1..) if self.s.l4 => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Whether a name stands for a text.
    fn is_string(&self, ty: TypeId) -> bool {
        let mut ty = ty;
        while let Type::Alias(_, to) = self.model.ty(ty) {
            if self.strings.contains(&ty) {
                return true;
            }
            ty = *to;
        }
        false
    }

    /// Whether characters are wide, if a type is one of these.
    fn width(&self, ty: TypeId) -> Option<bool> {
        match self.model.ty(self.model.resolved(ty)) {
            Type::Char | Type::Octet | Type::Int { bits: 8, .. } => Some(false),
            Type::WideChar | Type::Int { bits: 16, .. } => Some(true),
            _ => None,
        }
    }

    /// An expression as a size whose names are symbols.
    fn size(&mut self, expr: &Expr) -> Result<Size, Refused> {
        const REFUSED: Refused = "the array with a size that messages do not say,";
        let mut stack: Vec<Size> = Vec::new();
        if expr.items.len() > STEPS_MAX {
            return Err(REFUSED);
        }
        for (step, _) in &expr.items {
            let mut pop = || stack.pop().ok_or(REFUSED);
            let next = match step {
                Step::Int(number) => Size::Number(i64::try_from(*number).map_err(|_| REFUSED)?),
                Step::Char(number) | Step::WideChar(number) => Size::Number(i64::from(*number)),
                Step::Bool(truth) => Size::Number(i64::from(*truth)),
                Step::SizeOf(name) => Size::Number(self.size_of(*name).ok_or(REFUSED)?),
                Step::Grouped(name) if self.is_type(name.parts[0].name) => return Err(REFUSED),
                Step::Name(name) | Step::Grouped(name) => self.size_named(name.parts[0]).ok_or(REFUSED)?,
                // A parameter is what it points at.
                Step::Unary(Unary::Deref | Unary::Plus | Unary::Convert) => pop()?,
                Step::Unary(Unary::Minus) => Size::One("-", pop()?.into()),
                Step::Unary(Unary::Complement) => Size::One("~", pop()?.into()),
                Step::Unary(Unary::Not) => Size::One("!", pop()?.into()),
                Step::Binary(operator) => {
                    let (right, left) = (pop()?, pop()?);
                    let divides = matches!(*operator, "/" | "%" | "<<" | ">>");
                    if divides && !matches!(right, Size::Number(1..=62)) {
                        return Err(REFUSED);
                    }
                    Size::Two(operator, Box::new([left, right]))
                }
                Step::Conditional => {
                    let (no, yes, condition) = (pop()?, pop()?, pop()?);
                    Size::Choice(Box::new([condition, yes, no]))
                }
                _ => return Err(REFUSED),
            };
            stack.push(next);
        }
        if stack.len() == 1 { stack.pop().ok_or(REFUSED) } else { Err(REFUSED) }
    }

    /// Bytes of a number of C with that name.
    fn size_of(&self, name: Symbol) -> Option<i64> {
        let named = match self.ordinary.get(&name) {
            Some((Entry::Type(id), ..)) => self.model.ty(self.model.resolved(*id)),
            Some(_) => return None,
            None => {
                return match self.text(name) {
                    "char" | "byte" | "boolean" => Some(1),
                    "short" | "wchar_t" => Some(2),
                    "long" | "int" | "float" => Some(4),
                    "hyper" | "double" => Some(8),
                    _ => None,
                };
            }
        };
        match named {
            Type::Int { bits, .. } | Type::Float(bits) => Some(i64::from(*bits) / 8),
            Type::Octet | Type::Char | Type::Bool => Some(1),
            Type::WideChar => Some(2),
            _ => None,
        }
    }

    /// A name in a size: a field or parameter beside, or a constant.
    fn size_named(&mut self, name: Ident) -> Option<Size> {
        if self.siblings.last().is_some_and(|beside| beside.contains(&name.name)) {
            return Some(Size::Of(name.name.0 as usize));
        }
        if self.is_sibling(name.name) {
            return None;
        }
        // Whatever is no constant has been reported.
        let is_known =
            matches!(self.ordinary.get(&name.name), Some((Entry::Const(_) | Entry::Enumerator(_), ..)))
                || predefined::constant(self.text(name.name)).is_some();
        match is_known.then(|| self.constant_named(name))? {
            Value::Int(number) => i64::try_from(number).ok().map(Size::Number),
            _ => None,
        }
    }

    /// Agreements with the places of fields or parameters in the place of their names. What agrees with something that is no number
    /// cannot travel: its place.
    pub(super) fn agreements(
        &self,
        named: Vec<(Symbol, TypeId, Vec<Vec<Rule>>)>,
    ) -> Result<Vec<Agreement>, usize> {
        let is_number = |ty: TypeId| {
            let kind = self.model.ty(self.model.resolved(ty));
            // An absent number is none.
            let kind = match kind {
                Type::Optional(of) | Type::Shared(of) => self.model.ty(self.model.resolved(*of)),
                kind => kind,
            };
            matches!(
                kind,
                Type::Int { .. } | Type::Octet | Type::Char | Type::Bool | Type::Enum(..) | Type::Bitmask(..)
            )
        };
        let place = |symbol: usize| {
            let place = named.iter().position(|(name, ..)| name.0 as usize == symbol)?;
            is_number(named[place].1).then_some(place)
        };
        let mut agreements = Vec::new();
        for (of, (.., rules)) in named.iter().enumerate() {
            if rules.iter().all(Vec::is_empty) {
                continue;
            }
            let rules: Option<Vec<Vec<Rule>>> =
                rules.iter().map(|rules| rules.iter().map(|rule| rule.placed(&place)).collect()).collect();
            agreements.push(Agreement { of, rules: rules.ok_or(of)? });
        }
        Ok(agreements)
    }
}

/// A size and so many more.
fn plus(size: Size, more: i64) -> Size {
    match size {
        size if more == 0 => size,
        Size::Number(number) => Size::Number(number.wrapping_add(more)),
        size => Size::Two("+", Box::new([size, Size::Number(more)])),
    }
}
