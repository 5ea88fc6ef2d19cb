//! Structs, unions, enums and the other types.

use super::*;

impl Checker<'_> {
    pub(super) fn name_type(&mut self, id: TypeId, span: Span) {
        let imported = self.imported(span);
        self.model.named.push((id, imported));
    }

    pub(super) fn forward(&mut self, name: Ident, kind: ForwardKind) {
        let folded = self.fold(name.name);
        if let Some(&(Entry::Type(id, _), first)) = self.scopes[self.current].entries.get(&folded)
            && first.name == name.name
        {
            let declared = self.forwards.get(&id).map(|f| f.1);
            let same = match self.model.ty(id) {
                Type::Struct(..) => kind == ForwardKind::Struct,
                Type::Union { .. } | Type::Flat(..) => kind == ForwardKind::Union,
                Type::Forward(_) => declared == Some(kind),
                _ => false,
            };
            if same {
                return;
            }
        }
        let id = self.model.add(Type::Forward(self.path(name)));
        let scope = self.open(ScopeKind::Record, name);
        if self.declare(name, Entry::Type(id, Some(scope))) {
            self.forwards.insert(id, (name, kind));
        }
    }

    /// The type and scope for the body of a struct or union: those of its forward declaration, or new ones.
    pub(super) fn begin_record(&mut self, name: Ident, kind: ForwardKind) -> (TypeId, usize) {
        let folded = self.fold(name.name);
        if let Some(&(Entry::Type(id, Some(scope)), first)) = self.scopes[self.current].entries.get(&folded)
            && first.name == name.name
            && matches!(self.model.ty(id), Type::Forward(_))
            && self.forwards.get(&id).is_some_and(|f| f.1 == kind)
        {
            self.forwards.remove(&id);
            return (id, scope);
        }
        let id = self.model.add(Type::Forward(self.path(name)));
        let scope = self.open(ScopeKind::Record, name);
        self.declare(name, Entry::Type(id, Some(scope)));
        (id, scope)
    }

    pub(super) fn constructed(
        &mut self,
        constructed: &Constructed,
        annotations: &[ast::Annotation],
    ) -> TypeId {
        match constructed {
            Constructed::Struct { name, base, members, inner } => {
                self.structure(*name, base.as_ref(), members, inner)
            }
            Constructed::Union { name, switch, cases } => {
                if let Some(flat) = annotations.iter().find(|a| self.text(a.name.name) == "flat") {
                    let message = hints::flat_for_nothing(self.text(name.name));
                    self.s.diags.push(Diagnostic::warning(Code::Attribute, flat.span, message));
                }
                self.union(*name, switch, cases)
            }
            Constructed::Flat { name, members } => {
                // L4's dialect copies it as it is.
                if !self.s.l4 && !annotations.iter().any(|a| self.text(a.name.name) == "flat") {
                    let message = format!("the union `{}` has no discriminator", self.text(name.name));
                    let help = "`switch (…)` behind its name gives it one; `@flat` before `union` says that it has none";
                    self.s.diags.push(Diagnostic::error(Code::Switch, name.span, message).help(help));
                }
                self.flat_union(*name, members)
            }
            Constructed::Enum { name, members } => self.enumeration(*name, members, annotations),
            Constructed::Bitmask { name, members } => self.bitmask(*name, members, annotations),
            Constructed::Bitset { name, base, fields } => self.bitset(*name, base.as_ref(), fields),
        }
    }

    pub(super) fn structure(
        &mut self,
        name: Ident,
        base: Option<&ScopedName>,
        members: &[ast::Member],
        inner: &[Decl],
    ) -> TypeId {
        let mut fields = Vec::new();
        let base = base.map(|base| (base, self.resolve(base)));
        let (id, scope) = self.begin_record(name, ForwardKind::Struct);
        if let Some((base, entry)) = base {
            fields = self.base_fields(base, entry, scope);
        }
        self.within(scope, |c| {
            c.decls(inner);
            c.members(members, &mut fields);
        });
        self.model.define(id, Type::Struct(self.path(name), fields));
        self.name_type(id, name.span);
        id
    }

    pub(super) fn base_fields(&mut self, base: &ScopedName, entry: Entry, scope: usize) -> Vec<Field> {
        match entry {
            Entry::Poison => Vec::new(),
            Entry::Type(id, base_scope)
                if matches!(self.model.ty(self.model.resolved(id)), Type::Struct(..)) =>
            {
                let Type::Struct(_, fields) = self.model.ty(self.model.resolved(id)) else {
                    return Vec::new();
                };
                let fields = fields.clone();
                self.inherited_total += fields.len();
                if self.inherited_total > limits::INHERITED_NAMES_MAX {
                    let message = "structs inherit too many fields in this file";
                    self.s.diags.fatal(Diagnostic::error(Code::Limit, base.span, message));
                }
                if let Some(from) = base_scope {
                    let entries: Vec<_> = self.scopes[from].entries.values().copied().collect();
                    for (entry, ident) in entries.into_iter().filter(|e| e.0 == Entry::Instance) {
                        self.declare_in(scope, ident, entry);
                    }
                }
                fields
            }
            _ => {
                let message =
                    format!("`{}` is no struct that can be extended here", self.text(last(base).name));
                self.error(Code::BadBase, base.span, message);
                Vec::new()
            }
        }
    }

    pub(super) fn members(&mut self, members: &[ast::Member], fields: &mut Vec<Field>) {
        let mut numbers = HashMap::new();
        for member in members {
            self.member_number(&member.annotations, &member.names, &mut numbers);
            // An external field is held by reference, so its type may still be open.
            let external = member.annotations.iter().any(|a| self.text(a.name.name) == "external");
            let ty =
                if external { self.external(&member.ty) } else { self.value_type(&member.ty, "a field") };
            self.limits(&member.annotations, ty);
            for declarator in &member.names {
                let ty = self.array(ty, declarator);
                let ty = self.optional(&member.annotations, ty);
                if self.declare(declarator.name, Entry::Instance) {
                    fields.push(Field { name: self.text(declarator.name.name).to_owned(), ty });
                }
            }
        }
    }

    /// How many bits an annotation gives the values of a type.
    fn bit_bound(&mut self, annotations: &[ast::Annotation], most: i128, what: &str) -> Option<i128> {
        let mut bounds = annotations.iter().filter(|a| self.text(a.name.name) == "bit_bound");
        let (first, second) = (bounds.next()?, bounds.next());
        let (first_span, second_span) = (first.span, second.map(|a| a.span));
        let value = first.arguments.first().and_then(|(_, value)| self.number(value));
        if let Some(span) = second_span {
            let diagnostic = Diagnostic::error(Code::Duplicate, span, "`@bit_bound` appears twice");
            self.s.diags.push(diagnostic.note(first_span, "the first is here"));
        }
        let value = value?;
        if (1..=most).contains(&value) {
            return Some(value);
        }
        self.error(Code::Range, first_span, format!("{what} has 1 to {most} bits"));
        None
    }

    pub(super) fn enumeration(
        &mut self,
        name: Ident,
        members: &[(Ident, Vec<ast::Annotation>)],
        annotations: &[ast::Annotation],
    ) -> TypeId {
        let bits = self.bit_bound(annotations, 32, "an enum").unwrap_or(32);
        let path = self.path(name);
        let id = self.model.add(Type::Enum(path.clone(), Vec::new()));
        let scope = self.open(ScopeKind::Record, name);
        self.declare(name, Entry::Type(id, Some(scope)));
        let mut list = Vec::new();
        let mut next = 0i128;
        let mut taken: HashMap<i128, Span> = HashMap::new();
        for (member, annotations) in members {
            if let Some(expr) = annotation(self.s, annotations, "value")
                && let Some(value) = self.number(expr)
            {
                next = value;
            }
            let number = self.enumerator(*member, next, bits);
            if let Some(first) = taken.insert(number, member.span) {
                let message = format!("`{}` has a number that is taken, {number}", self.text(member.name));
                let diagnostic = Diagnostic::error(Code::Range, member.span, message);
                self.s.diags.push(diagnostic.note(first, "by this one"));
            }
            if self.declare(*member, Entry::Enumerator(id, number)) {
                let folded = self.fold(member.name);
                self.scopes[scope].entries.entry(folded).or_insert((Entry::Enumerator(id, number), *member));
                list.push((self.text(member.name).to_owned(), number));
            }
            next = number + 1;
        }
        self.model.define(id, Type::Enum(path, list));
        self.name_type(id, name.span);
        id
    }

    /// A number of an enum, which is a signed one of so many bits.
    fn enumerator(&mut self, member: Ident, number: i128, bits: i128) -> i128 {
        let half = 1i128 << (bits - 1);
        if (-half..half).contains(&number) {
            return number;
        }
        let message = format!("`{}` has the number {number}, which is out of range", self.text(member.name));
        let help = format!("the numbers of this enum are {} to {}", -half, half - 1);
        self.s.diags.push(Diagnostic::error(Code::Range, member.span, message).help(help));
        number.clamp(-half, half - 1)
    }

    pub(super) fn bitmask(
        &mut self,
        name: Ident,
        members: &[(Ident, Vec<ast::Annotation>)],
        annotations: &[ast::Annotation],
    ) -> TypeId {
        let bound = self.bit_bound(annotations, 64, "a bitmask").unwrap_or(32);
        let bits = match bound {
            ..=8 => 8,
            9..=16 => 16,
            17..=32 => 32,
            _ => 64,
        };
        let path = self.path(name);
        let id = self.model.add(Type::Bitmask(path.clone(), bits, Vec::new()));
        let scope = self.open(ScopeKind::Record, name);
        self.declare(name, Entry::Type(id, Some(scope)));
        let mut list = Vec::new();
        let mut next = 0i128;
        let mut taken = HashSet::new();
        for (member, annotations) in members {
            if let Some(expr) = annotation(self.s, annotations, "position")
                && let Some(value) = self.number(expr)
            {
                next = value;
            }
            if !(0..bound).contains(&next) || !taken.insert(next) {
                let message = format!("position {next} is taken or outside of the bitmask's {bound} bits");
                self.error(Code::Range, member.span, message);
            }
            let value = 1i128 << next.clamp(0, 63);
            if self.declare(*member, Entry::Enumerator(id, value)) {
                let folded = self.fold(member.name);
                self.scopes[scope].entries.entry(folded).or_insert((Entry::Enumerator(id, value), *member));
                list.push((self.text(member.name).to_owned(), value));
            }
            next = next.clamp(0, 64) + 1;
        }
        self.model.define(id, Type::Bitmask(path, bits, list));
        self.name_type(id, name.span);
        id
    }

    pub(super) fn union(&mut self, name: Ident, switch: &ast::Type, cases: &[ast::Case]) -> TypeId {
        let (id, scope) = self.begin_record(name, ForwardKind::Union);
        let mut branches = Vec::new();
        let switch_id = self.within(scope, |c| {
            let switch_id = c.ty(switch);
            let resolved = c.model.resolved(switch_id);
            let ok = matches!(
                c.model.ty(resolved),
                Type::Int { .. }
                    | Type::Bool
                    | Type::Char
                    | Type::WideChar
                    | Type::Octet
                    | Type::Enum(..)
                    | Type::Bitmask(..)
            );
            let ok = ok && !c.model.is_bitset(resolved);
            let known = ok || matches!(c.model.ty(resolved), Type::Error);
            if !known {
                let message = format!("`{}` cannot choose the branch of a union", c.model.show(switch_id));
                let help = "it can be a whole number, a character, `boolean` or an enum";
                c.s.diags.push(Diagnostic::error(Code::Switch, switch.span, message).help(help));
            }
            let switch_id = if ok { switch_id } else { c.error };
            c.branches(switch_id, cases, &mut branches);
            switch_id
        });
        self.model.define(id, Type::Union { name: self.path(name), switch: switch_id, branches });
        self.name_type(id, name.span);
        id
    }

    /// A union of which nothing says what it holds.
    fn flat_union(&mut self, name: Ident, members: &[ast::Member]) -> TypeId {
        let mut fields = Vec::new();
        let (id, scope) = self.begin_record(name, ForwardKind::Union);
        self.within(scope, |c| c.members(members, &mut fields));
        self.model.define(id, Type::Flat(self.path(name), fields));
        self.name_type(id, name.span);
        id
    }

    pub(super) fn branches(&mut self, switch: TypeId, cases: &[ast::Case], branches: &mut Vec<Branch>) {
        let mut seen: HashMap<i128, Span> = HashMap::new();
        let mut default: Option<Span> = None;
        let mut numbers = HashMap::new();
        let resolved = self.model.resolved(switch);
        let names: HashMap<Symbol, i128> = match self.model.ty(resolved) {
            Type::Enum(_, members) | Type::Bitmask(_, _, members) => {
                members.iter().filter_map(|(n, v)| Some((self.s.names.find(n)?, *v))).collect()
            }
            _ => HashMap::new(),
        };
        for case in cases {
            let mut branch = Branch {
                labels: Vec::new(),
                is_default: false,
                field: Field { name: String::new(), ty: self.error },
            };
            for (label, span) in &case.labels {
                let Some(expr) = label else {
                    branch.is_default = true;
                    self.once("`default` appears twice", *span, default.replace(*span));
                    continue;
                };
                let Some(value) = self.label(switch, &names, expr) else { continue };
                if self.once("this label appears twice", *span, seen.insert(value, *span)) {
                    branch.labels.push(value);
                }
            }
            let member = &case.member;
            let ty = self.value_type(&member.ty, "a branch");
            self.member_number(&member.annotations, &member.names, &mut numbers);
            self.limits(&member.annotations, ty);
            for (i, declarator) in member.names.iter().enumerate() {
                if i > 0 {
                    self.error(Code::Syntax, declarator.name.span, "a branch of a union has one field");
                    break;
                }
                let ty = self.array(ty, declarator);
                let ty = self.optional(&member.annotations, ty);
                self.declare(declarator.name, Entry::Instance);
                branch.field = Field { name: self.text(declarator.name.name).to_owned(), ty };
            }
            branches.push(branch);
        }
        let all = match self.model.ty(self.model.resolved(switch)) {
            Type::Bool => Some(2),
            Type::Enum(_, members) => Some(members.len()),
            _ => None,
        };
        if let Some(span) = default
            && all.is_some_and(|n| n > 0 && seen.len() >= n)
        {
            let message = "this `default` is never taken: the labels cover every value";
            self.s.diags.push(Diagnostic::warning(Code::Label, span, message));
        }
    }

    /// Whether nothing like a label stands before it; reports it if the `first` does.
    fn once(&mut self, message: &str, span: Span, first: Option<Span>) -> bool {
        if let Some(first) = first {
            let diagnostic = Diagnostic::error(Code::Label, span, message);
            self.s.diags.push(diagnostic.note(first, "the first is here"));
        }
        first.is_none()
    }

    /// The number of a label, converted to the type of the discriminator.
    pub(super) fn label(
        &mut self,
        switch: TypeId,
        names: &HashMap<Symbol, i128>,
        expr: &Expr,
    ) -> Option<i128> {
        // A plain name is first looked for among the names of the enum, wherever that is declared.
        if let Some(name) = expr.name()
            && let [part] = name.parts[..]
            && let Some(&value) = names.get(&part.name)
        {
            return Some(value);
        }
        let value = self.eval(expr, switch);
        let value = match value::convert(&self.model, &mut self.s.diags, value, switch, expr.span) {
            Value::Int(v) | Value::Enum(_, v) => v,
            Value::Bool(v) => v.into(),
            Value::Char(v) | Value::WideChar(v) => v.into(),
            _ => return None,
        };
        Some(value)
    }

    pub(super) fn basic(&mut self, base: Base) -> TypeId {
        let (key, ty) = match base {
            Base::Void => ((0, 0), Type::Void),
            Base::Int(bits, signed) => ((1 + u8::from(signed), bits), Type::Int { bits, signed }),
            Base::Float(bits) => ((3, bits), Type::Float(bits)),
            Base::Boolean => ((4, 0), Type::Bool),
            Base::Octet => ((5, 0), Type::Octet),
            Base::Char => ((6, 0), Type::Char),
            Base::WideChar => ((7, 0), Type::WideChar),
            Base::Any => return self.model.any(),
            Base::Object => ((8, 0), Type::Object(None)),
            Base::ValueBase => ((9, 0), Type::Foreign("the type", "ValueBase".into())),
        };
        if let Some(&id) = self.basics.get(&key) {
            return id;
        }
        let id = self.model.add(ty);
        self.basics.insert(key, id);
        id
    }

    pub(super) fn ty(&mut self, ty: &ast::Type) -> TypeId {
        match &ty.kind {
            TypeKind::Base(base) => self.basic(*base),
            TypeKind::Named(name) => self.named_type(name),
            TypeKind::String(wide, bound) => {
                let bound = bound.as_ref().and_then(|b| self.positive(b, "the bound of a string"));
                self.model.add(Type::Str { wide: *wide, bound, shown: Shown::default() })
            }
            TypeKind::Sequence(of, bound) => {
                let of_id = self.ty(of);
                self.no_void(of_id, of.span, "an element");
                let bound = bound.as_ref().and_then(|b| self.positive(b, "the bound of a sequence"));
                self.model.add(Type::Sequence(of_id, bound))
            }
            TypeKind::Map(key, value, bound) => {
                let key_id = self.value_type(key, "a key");
                // As in a sequence: there may be none, so a type that is not complete yet has an end.
                let value_id = self.ty(value);
                self.no_void(value_id, value.span, "a value");
                let bound = bound.as_ref().and_then(|bound| self.positive(bound, "the bound of a map"));
                let bound = bound.map_or(String::new(), |bound| format!(", {bound}"));
                let name = format!("map<{}, {}{bound}>", self.model.show(key_id), self.model.show(value_id));
                self.model.add(Type::Foreign("the type", name))
            }
            TypeKind::Ref(to) => {
                let to = self.ty(to);
                let name = self.model.show(to);
                self.model.add(Type::Foreign("the address of a value of type", name))
            }
            TypeKind::Fixed(None) => self.model.fixed(0, 0),
            TypeKind::Fixed(Some((digits, scale))) => self.fixed(digits, scale),
            TypeKind::Constructed(constructed, annotations) => self.constructed(constructed, annotations),
        }
    }

    pub(super) fn fixed(&mut self, digits: &Expr, scale: &Expr) -> TypeId {
        let digits_value = self.number(digits).unwrap_or(31);
        let scale_value = self.number(scale).unwrap_or(0);
        if !(1..=31).contains(&digits_value) {
            self.error(Code::Range, digits.span, "a fixed-point type has 1 to 31 digits");
            return self.error;
        }
        if !(0..=digits_value).contains(&scale_value) {
            let message =
                format!("this type has {digits_value} digits; not {scale_value} can stand behind the point");
            self.error(Code::Range, scale.span, message);
            return self.error;
        }
        self.model.fixed(digits_value as u32, scale_value as u32)
    }

    pub(super) fn named_type(&mut self, name: &ScopedName) -> TypeId {
        let what = match self.resolve(name) {
            Entry::Type(id, _) | Entry::Value(id, _) => return id,
            Entry::Interface(id, _) => return self.interface_types[&id],
            Entry::Assembly(_) => {
                let path = self.text(last(name).name).to_owned();
                return self.model.add(Type::Foreign("the component", path));
            }
            Entry::Poison => return self.error,
            Entry::Exception(..) => "an exception",
            Entry::Module(_) => "a module",
            Entry::Template(_) => "a template module",
            Entry::Const(_) | Entry::Argument(_) => "a constant",
            Entry::Enumerator(..) => "a name of an enum",
            Entry::Instance => "a field or parameter",
            Entry::Callable => "an operation or attribute",
            Entry::Own | Entry::Use => "no declaration of its own",
        };
        let message = format!("`{}` is no type but {what}", self.text(last(name).name));
        self.error(Code::NotType, name.span, message);
        self.error
    }

    /// The type of a field: it has a value, and its size is known.
    pub(super) fn value_type(&mut self, ty: &ast::Type, what: &str) -> TypeId {
        let id = self.ty(ty);
        self.no_void(id, ty.span, what);
        if let Type::Forward(name) = self.model.ty(self.model.resolved(id)) {
            // A value type is held by reference, so it may still be open.
            if !self.value_forwards.contains(&self.model.resolved(id)) {
                let message = format!("`{}` is not complete here", name.clone());
                let help = "a type can contain itself only through a sequence";
                self.s.diags.push(Diagnostic::error(Code::Incomplete, ty.span, message).help(help));
            }
        }
        id
    }

    /// The type of an external field. One that is not complete yet may lead back to the struct around it, which no
    /// stub can hold by value.
    pub(super) fn external(&mut self, ty: &ast::Type) -> TypeId {
        let id = self.ty(ty);
        self.no_void(id, ty.span, "a field");
        match self.model.ty(self.model.resolved(id)) {
            Type::Forward(name) => {
                let foreign = Type::Foreign("the external", name.clone());
                self.model.add(foreign)
            }
            _ => id,
        }
    }

    pub(super) fn no_void(&mut self, id: TypeId, span: Span, what: &str) {
        if matches!(self.model.ty(id), Type::Void) {
            self.error(Code::NotType, span, format!("{what} cannot be `void`"));
        }
    }

    /// The type of a parameter or result, which must have a name.
    pub(super) fn param_type(&mut self, ty: &ast::Type, result: bool) -> TypeId {
        let what = match &ty.kind {
            TypeKind::Sequence(..) => "a sequence",
            TypeKind::Map(..) => "a map",
            TypeKind::Constructed(..) => "a type with a body",
            _ => "",
        };
        if !what.is_empty() {
            let message = format!("{what} cannot stand here without a name");
            let help = "give it a name with `typedef` and use that";
            self.s.diags.push(Diagnostic::error(Code::Anonymous, ty.span, message).help(help));
        }
        let id = self.ty(ty);
        if !result {
            self.no_void(id, ty.span, "a parameter or attribute");
        }
        id
    }

    pub(super) fn array(&mut self, of: TypeId, declarator: &ast::Declarator) -> TypeId {
        if declarator.dims.is_empty() {
            return of;
        }
        self.no_void(of, declarator.name.span, "an element");
        let mut dims = Vec::new();
        let mut total = 1u64;
        for dim in &declarator.dims {
            let Some(size) = self.positive(dim, "the size of an array") else { return self.error };
            total = total.saturating_mul(size);
            dims.push(size);
        }
        if total > 1 << 40 {
            self.error(Code::Range, declarator.name.span, "this array has more than 2^40 elements");
            return self.error;
        }
        self.model.add(Type::Array(of, dims))
    }

    pub(super) fn scope_of_type(&mut self, ty: &ast::Type) -> Option<usize> {
        let TypeKind::Named(name) = &ty.kind else { return None };
        match self.resolve(name) {
            Entry::Type(_, scope) => scope,
            Entry::Interface(_, scope) | Entry::Value(_, scope) => Some(scope),
            _ => None,
        }
    }
}
