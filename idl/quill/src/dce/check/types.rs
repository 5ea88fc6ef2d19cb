//! Types: structs, unions, enums, and what a declarator makes of them.

use super::carried::Stands;
use super::*;
use crate::model::Rule;

/// Fields or branches of a struct or union whose declarations are read one after the other, with the names and labels that
/// they have so far.
#[derive(Default)]
struct Members {
    fields: Vec<model::Field>,
    /// The name of each field, and how it has to agree with others.
    rules: Vec<(Symbol, Vec<Vec<Rule>>)>,
    branches: Vec<Branch>,
    seen: HashMap<Symbol, Span>,
    labels: HashMap<i128, Span>,
    default: Option<Span>,
}

/// How what agrees with no number beside it is called.
pub(super) const UNSAID: &str = "the array whose size is no number beside it,";

impl Checker<'_> {
    pub(super) fn pointer_kind(&self, attrs: &[Attr]) -> Pointer {
        if has(self.s, attrs, "ref") {
            Pointer::Ref
        } else if has(self.s, attrs, "ptr") {
            Pointer::Full
        } else if has(self.s, attrs, "unique") {
            Pointer::Unique
        } else {
            Pointer::Unsaid
        }
    }

    /// The type of a declared name.
    pub(super) fn derive(
        &mut self,
        base: TypeId,
        declarator: &Declarator,
        attrs: &[Attr],
        header: bool,
    ) -> TypeId {
        let mut ty = base;
        for step in declarator.derived.iter().rev() {
            ty = match step {
                Derived::Pointer => {
                    let kind = self.pointer_kind(attrs);
                    self.model.add(Type::Pointer(kind, ty))
                }
                Derived::Array(None) => self.model.add(Type::Open(ty)),
                Derived::Array(Some(size)) => {
                    let size = if header { self.header_size(size) } else { self.array_size(size) };
                    match size {
                        Some(size) => self.model.add(Type::Array(ty, vec![size])),
                        None => self.model.add(Type::Open(ty)),
                    }
                }
                Derived::Function(params) => {
                    if !header {
                        self.siblings
                            .push(params.iter().filter_map(|p| p.declarator.name).map(|n| n.name).collect());
                        for param in params {
                            self.param(param, true, header);
                        }
                        self.siblings.pop();
                    }
                    self.model.add(Type::Foreign("the function type", String::new()))
                }
                Derived::Bits(width) => {
                    if !header {
                        self.eval(width);
                    }
                    ty
                }
            };
        }
        ty
    }

    /// The size of an array: a constant, or a field that gives it (Samba).
    pub(super) fn array_size(&mut self, size: &Expr) -> Option<u64> {
        let sibling = size.items.iter().any(|(step, _)| match step {
            Step::Name(name) | Step::Grouped(name) => self.is_sibling(name.parts[0].name),
            _ => false,
        });
        if sibling || (self.samba && !matches!(size.items[..], [(Step::Int(_), _)])) {
            return None;
        }
        match self.eval(size) {
            Value::Int(v) if (1..=u32::MAX.into()).contains(&v) => Some(v as u64),
            Value::Int(0) => None,
            Value::Int(v) => {
                self.error(Code::Bound, size.span, format!("the size of an array cannot be {v}"));
                None
            }
            _ => None,
        }
    }

    /// The size of an array in a C header, if that is a number which can be computed.
    fn header_size(&mut self, size: &Expr) -> Option<u64> {
        if !size.items.iter().all(|(step, _)| matches!(step, Step::Int(_) | Step::Binary(_))) {
            return None;
        }
        match self.quiet_eval(size) {
            Value::Int(size) if (1..=u32::MAX.into()).contains(&size) => Some(size as u64),
            _ => None,
        }
    }

    pub(super) fn spec(&mut self, spec: &Spec, attrs: &[Attr], header: bool) -> TypeId {
        match &spec.kind {
            SpecKind::Basic(basic) => {
                let ty = match basic {
                    Basic::Void => return self.void,
                    Basic::Int(bits, signed) => Type::Int { bits: *bits, signed: *signed },
                    Basic::Float(bits) => Type::Float(*bits),
                    Basic::Boolean => Type::Bool,
                    Basic::Byte => Type::Octet,
                    Basic::Char => Type::Char,
                    Basic::WideChar => Type::WideChar,
                    Basic::Handle => Type::Foreign("the type", "handle_t".into()),
                };
                self.model.add(ty)
            }
            SpecKind::Named(name) => self.named(*name, header),
            SpecKind::Generic(name) => {
                self.model.add(Type::Foreign("the generic type", self.owned(name.name)))
            }
            SpecKind::Record(record) => self.record(record, attrs, header),
            SpecKind::Enum(e) => self.enumeration(e, attrs, header),
            SpecKind::Pipe(of) => self.pipe(of, header),
            SpecKind::SafeArray(of) => {
                self.spec(of, &[], header);
                self.model.add(Type::Foreign("the type", "SAFEARRAY".into()))
            }
        }
    }

    pub(super) fn tag(&mut self, tag: Option<Ident>, body: bool, header: bool) -> (TypeId, String, bool) {
        let Some(name) = tag else {
            self.anonymous += 1;
            let name = format!("{ANONYMOUS}{}", self.anonymous);
            return (self.model.add(Type::Forward(name.clone())), name, true);
        };
        let text = self.owned(name.name);
        if let Some(old) = self.tags.get(&name.name).copied() {
            if !body || !old.defined {
                self.tags.insert(name.name, Tag { defined: old.defined || body, ..old });
                return (old.ty, text, true);
            }
            let one_file = self.s.map.file_index(old.span) == self.s.map.file_index(name.span);
            if !header && one_file {
                self.twice(name, old.span);
            }
        }
        let id = self.model.add(Type::Forward(text.clone()));
        self.tags.insert(name.name, Tag { ty: id, defined: body, span: name.span });
        (id, text, true)
    }

    pub(super) fn record(&mut self, record: &Record, attrs: &[Attr], header: bool) -> TypeId {
        let (id, name, _) = self.tag(record.tag, record.body.is_some(), header);
        let Some(body) = &record.body else { return id };
        let mut names: HashSet<Symbol> =
            body.iter().flat_map(|f| &f.names).filter_map(|d| d.name).map(|n| n.name).collect();
        let mut switch_ty = self.error;
        if let Some((ty, tag)) = &record.switch {
            switch_ty = self.spec(ty, &[], header);
            names.insert(tag.name);
        }
        self.siblings.push(names);
        let mut members = Members::default();
        for field in body {
            self.member(record.union, field, header, &mut members);
        }
        let Members { mut fields, mut branches, rules, .. } = members;
        self.siblings.pop();
        self.agree(id, &mut fields, rules);
        // L4's dialects copy a union that nothing tells apart as it is.
        let labelled = |field: &Field| {
            !field.labels.is_empty()
                || ["case", "default"].iter().any(|label| has(self.s, &field.attrs, label))
        };
        let is_plain = self.s.l4 && !body.iter().any(labelled) && !has(self.s, attrs, "switch_type");
        let flat =
            record.union && record.switch.is_none() && !header && (is_plain || has(self.s, attrs, "flat"));
        let ty = if flat {
            // An arm without a field has no bytes.
            let members = branches.into_iter().map(|b| b.field).filter(|f| !f.name.is_empty());
            Type::Flat(name, members.collect())
        } else if record.union {
            if let Some(attr) = find(self.s, attrs, "switch_type").cloned() {
                switch_ty = self.switch_type(&attr);
            }
            // Without labels it is one of C's, of which nothing says what it holds.
            let is_labelled = branches.iter().any(|b| b.is_default || !b.labels.is_empty());
            if switch_ty == self.error && is_labelled {
                switch_ty = self.model.add(Type::Int { bits: 32, signed: true });
            }
            if !self.samba {
                self.fill(&mut branches);
            }
            Type::Union { name, switch: switch_ty, branches }
        } else {
            Type::Struct(name, fields)
        };
        self.model.define(id, ty);
        if record.tag.is_some() {
            let imported = record.tag.is_some_and(|t| !self.in_main(t.span));
            self.model.named.push((id, imported));
        }
        id
    }

    /// Fields of an exception.
    pub(super) fn fields_of(&mut self, declarations: &[Field]) -> Vec<model::Field> {
        let mut members = Members::default();
        for field in declarations {
            self.member(false, field, false, &mut members);
        }
        members.fields
    }

    /// Adds the fields of one declaration in a struct, or the branch that it is in a union.
    fn member(&mut self, union: bool, field: &Field, header: bool, members: &mut Members) {
        if !header {
            self.attributes(&field.attrs, "a field");
        }
        let (values, is_default) = if header {
            (Vec::new(), false)
        } else {
            self.labels(field, &mut members.labels, &mut members.default)
        };
        let base = field.spec.as_ref().map(|s| self.spec(s, &field.attrs, header));
        if let Some(base) = base.filter(|_| !header) {
            self.flat_attribute(&field.attrs, base);
        }
        for declarator in &field.names {
            let ty = self.derive(base.unwrap_or(self.void), declarator, &field.attrs, header);
            if !header {
                self.pointer_attributes(&field.attrs, ty);
                self.complete(ty, declarator.span);
            }
            let Some(name) = declarator.name else { continue };
            if !header {
                self.pipe_within(ty, name);
            }
            if let Some(first) = members.seen.insert(name.name, name.span)
                && !header
                && !(self.samba && union)
            {
                self.twice(name, first);
            }
            let (ty, rules) = match header || self.samba {
                true => (self.refused_in_samba(&field.attrs, ty, Some(name)), Vec::new()),
                false => self.carried(ty, &field.attrs, Stands::Field),
            };
            members.fields.push(model::Field { name: self.owned(name.name), ty });
            members.rules.push((name.name, rules));
        }
        if union {
            let rules = members.rules.pop().map_or(Vec::new(), |(_, rules)| rules);
            let field = match (base, members.fields.pop()) {
                (Some(_), Some(field)) if !rules.iter().all(Vec::is_empty) => {
                    let ty = self.model.add(Type::Foreign(UNSAID, field.name.clone()));
                    model::Field { ty, ..field }
                }
                (Some(_), Some(field)) => field,
                _ => model::Field { name: String::new(), ty: self.void },
            };
            self.branch(&mut members.branches, Branch { labels: values, is_default, field }, &members.seen);
        }
    }

    /// Notes how the fields of a struct have to agree. One that agrees with something that is no number beside it cannot travel.
    fn agree(&mut self, id: TypeId, fields: &mut [model::Field], rules: Vec<(Symbol, Vec<Vec<Rule>>)>) {
        if fields.len() != rules.len() {
            return;
        }
        let named = fields.iter().zip(rules).map(|(field, (name, rules))| (name, field.ty, rules));
        match self.agreements(named.collect()) {
            Ok(agreements) if agreements.is_empty() => {}
            Ok(agreements) => _ = self.model.agreements.insert(id, agreements),
            Err(place) => {
                fields[place].ty = self.model.add(Type::Foreign(UNSAID, fields[place].name.clone()))
            }
        }
    }

    /// Gives branches without a field what they can have in a message: a byte, where there is a default beside them, and nothing
    /// where there is none, since a discriminator without a branch has nothing behind it either.
    fn fill(&mut self, branches: &mut Vec<Branch>) {
        let is_empty = |b: &Branch| b.field.name.is_empty();
        let other_default = branches.iter().any(|b| b.is_default && !is_empty(b));
        if !other_default && branches.iter().any(|b| !is_empty(b)) {
            return branches.retain(|b| !is_empty(b));
        }
        let mut name = "nothing".to_owned();
        while branches.iter().any(|b| b.field.name == name) {
            name.push('_');
        }
        let ty = self.model.add(Type::Octet);
        let mut whole = Branch { labels: Vec::new(), is_default: false, field: model::Field { name, ty } };
        for empty in branches.iter().filter(|b| is_empty(b)) {
            whole.labels.extend(&empty.labels);
            whole.is_default |= empty.is_default;
        }
        branches.retain(|b| !is_empty(b));
        if whole.is_default || !whole.labels.is_empty() {
            branches.push(whole);
        }
    }

    /// Adds a branch. Samba's unions may name a field again for further labels, if it has the type that it had.
    fn branch(&mut self, branches: &mut Vec<Branch>, branch: Branch, seen: &HashMap<Symbol, Span>) {
        let named = |b: &&mut Branch| !b.field.name.is_empty() && b.field.name == branch.field.name;
        let Some(first) = branches.iter_mut().find(named).filter(|_| self.samba) else {
            return branches.push(branch);
        };
        if self.model.show(first.field.ty) == self.model.show(branch.field.ty) {
            first.labels.extend(branch.labels);
            first.is_default |= branch.is_default;
            return;
        }
        let span = self.s.names.find(&branch.field.name).and_then(|name| seen.get(&name).copied());
        let message = format!("the field `{}` has two types", branch.field.name);
        self.error(Code::Duplicate, span.unwrap_or_default(), message);
    }

    /// Says of `flat` that nothing comes of it, if what it stands before is no flat union.
    pub(super) fn flat_attribute(&mut self, attrs: &[Attr], ty: TypeId) {
        if let Some(flat) = find(self.s, attrs, "flat")
            && !matches!(self.model.ty(self.model.resolved(ty)), Type::Flat(..) | Type::Error)
        {
            let message = hints::flat_for_nothing(&self.model.show(ty));
            self.s.diags.push(Diagnostic::warning(Code::Attribute, flat.span, message));
        }
    }

    /// A struct cannot contain itself.
    pub(super) fn complete(&mut self, ty: TypeId, span: Span) {
        let mut id = self.model.resolved(ty);
        let mut steps = 0;
        while let Type::Array(of, _) = self.model.ty(id) {
            id = self.model.resolved(*of);
            steps += 1;
            if steps > limits::NESTING_MAX {
                return;
            }
        }
        if let Type::Forward(name) = self.model.ty(id)
            && !name.starts_with(ANONYMOUS)
            && !self.s.incomplete
            && !self.samba
        {
            let message = format!("`{}` is not complete here", name.clone());
            let help = "a type can contain itself only through a pointer";
            self.s.diags.push(Diagnostic::error(Code::Incomplete, span, message).help(help));
        }
    }

    /// The type in an attribute's parentheses.
    pub(super) fn switch_type(&mut self, attr: &Attr) -> TypeId {
        let mut tokens = attr.arguments.clone().unwrap_or_default();
        let Some(&first) = tokens.first() else { return self.error };
        tokens.push(crate::lex::Token { kind: Kind::Eof, ..first });
        let mut cursor = Cursor::new(self.s, tokens);
        match parse::spec(&mut cursor) {
            Ok(spec) => self.spec(&spec, &[], false),
            Err(_) => self.error,
        }
    }

    /// The labels of a branch: `case X:` or `[case(X, Y)]`.
    pub(super) fn labels(
        &mut self,
        field: &Field,
        seen: &mut HashMap<i128, Span>,
        default: &mut Option<Span>,
    ) -> (Vec<i128>, bool) {
        let mut values = Vec::new();
        let mut is_default = None;
        for (label, span) in &field.labels {
            match label {
                Some(expr) => values.extend(self.one_label(expr, *span, seen)),
                None => is_default = Some(*span),
            }
        }
        if let Some(attr) = find(self.s, &field.attrs, "default") {
            is_default = Some(attr.span);
        }
        if let Some(attr) = find(self.s, &field.attrs, "case") {
            let mut rest = attr.arguments.as_deref();
            while let Some(arguments) = rest {
                let (tokens, behind) = attrs::split_first(self.s, arguments);
                rest = behind;
                if !tokens.is_empty()
                    && let Ok(expr) = attrs::expression(self.s, tokens, attr)
                {
                    values.extend(self.one_label(&expr, attr.span, seen));
                }
            }
        }
        if let Some(span) = is_default
            && let Some(first) = default.replace(span)
        {
            let diagnostic = Diagnostic::error(Code::Label, span, "`default` appears twice");
            self.s.diags.push(diagnostic.note(first, "the first is here"));
        }
        (values, is_default.is_some())
    }

    fn one_label(&mut self, expr: &Expr, span: Span, seen: &mut HashMap<i128, Span>) -> Option<i128> {
        let value = match self.eval(expr) {
            Value::Int(v) => v,
            Value::Char(v) | Value::WideChar(v) => v.into(),
            Value::Bool(v) => v.into(),
            _ => return None,
        };
        if let Some(first) = seen.insert(value, span) {
            let diagnostic = Diagnostic::error(Code::Label, span, "this label appears twice");
            self.s.diags.push(diagnostic.note(first, "the first is here"));
        }
        Some(value)
    }

    /// How many bits a bitmap has: 32, unless an attribute says something else.
    fn bitmap_bits(&mut self, attrs: &[Attr]) -> u8 {
        let sizes = [("bitmap8bit", 8), ("bitmap16bit", 16), ("bitmap32bit", 32), ("bitmap64bit", 64)];
        sizes.into_iter().find(|(name, _)| has(self.s, attrs, name)).map_or(32, |(_, bits)| bits)
    }

    /// Reports numbers that their type does not have. Those of a header are cut to what there is.
    fn in_range(
        &mut self,
        list: &mut [(String, i128)],
        members: &[(Ident, Option<Expr>)],
        (low, high): (i128, i128),
        header: bool,
    ) {
        for ((_, number), (member, _)) in list.iter_mut().zip(members) {
            if (low..=high).contains(number) {
                continue;
            }
            if !header {
                let message =
                    format!("`{}` has the number {number}, which is out of range", self.text(member.name));
                let help = format!("the numbers of this type are {low} to {high}");
                self.s.diags.push(Diagnostic::error(Code::Range, member.span, message).help(help));
            }
            *number = (*number & i128::from(u32::MAX)).clamp(low, high);
        }
    }

    /// A bitmap or an enum with the numbers that its names have.
    fn numbered(
        &mut self,
        e: &Enum,
        attrs: &[Attr],
        members: &[(Ident, Option<Expr>)],
        (name, mut list): (String, Vec<(String, i128)>),
        header: bool,
    ) -> Type {
        if e.bits {
            let bits = self.bitmap_bits(&[attrs, &e.attrs].concat());
            // `~1` is an `int` of C, too.
            let signed = -(1i128 << (bits - 1))..0;
            list.iter_mut().filter(|m| signed.contains(&m.1)).for_each(|m| m.1 += 1 << bits);
            self.in_range(&mut list, members, (0, (1 << bits) - 1), header);
            Type::Bitmask(name, bits, list)
        } else {
            // A number is an `int` of C, unless all of them are none below zero.
            let negative = list.iter().any(|m| m.1 < 0);
            let unsigned = i128::from(u32::MAX);
            let low = if negative { i32::MIN.into() } else { 0 };
            self.in_range(&mut list, members, (low, unsigned), header);
            if negative {
                list.iter_mut().for_each(|m| m.1 = i128::from(m.1 as u32 as i32));
            }
            Type::Enum(name, list)
        }
    }

    pub(super) fn enumeration(&mut self, e: &Enum, attrs: &[Attr], header: bool) -> TypeId {
        let (id, name, _) = self.tag(e.tag, e.members.is_some(), header);
        let Some(members) = &e.members else {
            if matches!(self.model.ty(id), Type::Forward(_)) {
                self.model.define(id, Type::Enum(name, Vec::new()));
            }
            return id;
        };
        let mut list = Vec::new();
        let mut next = 0i128;
        // What an enumerator of a namespace hides while its enum is read, where later ones may refer to it.
        let mut hidden = Vec::new();
        for (member, expr) in members {
            if let Some(expr) = expr
                && let Value::Int(v) = if header { self.quiet_eval(expr) } else { self.eval(expr) }
            {
                next = v;
            }
            let value = next.clamp(i64::MIN.into(), u64::MAX.into());
            if let Some(&(old, first, old_header)) = self.ordinary.get(&member.name) {
                let one_file = self.s.map.file_index(first) == self.s.map.file_index(member.span);
                let clash = matches!(
                    old,
                    Entry::Enumerator(_) | Entry::Type(_) | Entry::Const(_) | Entry::Interface(_)
                );
                let is_own = members.first().is_some_and(|(begin, _)| first.lo >= begin.span.lo);
                if clash && !header && !old_header && one_file && (is_own || !self.in_namespace) {
                    self.twice(*member, first);
                }
            }
            if self.in_namespace {
                hidden.push((member.name, self.ordinary.get(&member.name).copied()));
            }
            self.declare(*member, Entry::Enumerator(value), header);
            list.push((self.owned(member.name), value));
            next = value + 1;
        }
        for (name, old) in hidden.into_iter().rev() {
            match old {
                Some(old) => self.ordinary.insert(name, old),
                None => self.ordinary.remove(&name),
            };
        }
        let ty = self.numbered(e, attrs, members, (name, list), header);
        self.model.define(id, ty);
        if e.tag.is_some_and(|t| self.in_main(t.span)) {
            self.model.named.push((id, false));
        }
        id
    }
}
