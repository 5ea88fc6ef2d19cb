//! Interfaces, their operations, and what they inherit; value types and components.

use super::*;

impl Checker<'_> {
    pub(super) fn exception(&mut self, name: Ident, members: &[ast::Member]) {
        let id = ExceptionId(self.model.exceptions.len() as u32);
        self.model.exceptions.push(Exception { name: self.path(name), fields: Vec::new() });
        let scope = self.open(ScopeKind::Record, name);
        self.declare(name, Entry::Exception(id, scope));
        let mut fields = Vec::new();
        self.within(scope, |c| c.members(members, &mut fields));
        self.model.exceptions[id.0 as usize].fields = fields;
    }

    pub(super) fn interface_entry(&mut self, name: Ident, flavour: ast::Flavour) -> (InterfaceId, usize) {
        let folded = self.fold(name.name);
        if let Some(&(Entry::Interface(id, scope), first)) = self.scopes[self.current].entries.get(&folded)
            && first.name == name.name
        {
            let interface = &self.model.interfaces[id.0 as usize];
            let same = interface.local == (flavour == ast::Flavour::Local)
                && interface.is_abstract == (flavour == ast::Flavour::Abstract);
            if !same {
                let message = format!(
                    "`{}` is declared in two ways: `local`, `abstract` or neither",
                    self.text(name.name)
                );
                let diagnostic = Diagnostic::error(Code::Flavour, name.span, message);
                self.s.diags.push(diagnostic.note(first.span, "the other declaration is here"));
            }
            return (id, scope);
        }
        let id = InterfaceId(self.model.interfaces.len() as u32);
        let interface = Interface {
            name: self.path(name),
            bases: Vec::new(),
            operations: Vec::new(),
            number: 0,
            binding: None,
            local: flavour == ast::Flavour::Local,
            is_abstract: flavour == ast::Flavour::Abstract,
            defined: false,
            imported: self.imported(name.span),
            span: name.span,
        };
        self.model.interfaces.push(interface);
        let ty = self.model.add(Type::Object(Some(id)));
        self.interface_types.insert(id, ty);
        let scope = self.open(ScopeKind::Interface, name);
        self.interface_scopes.insert(id, scope);
        self.declare(name, Entry::Interface(id, scope));
        self.forward_interfaces.push((id, name));
        (id, scope)
    }

    pub(super) fn interface(&mut self, interface: &ast::Interface, annotations: &[ast::Annotation]) {
        let (mut id, mut scope) = self.interface_entry(interface.name, interface.flavour);
        if self.model.interfaces[id.0 as usize].defined {
            let first = self.model.interfaces[id.0 as usize].span;
            let message = format!("`{}` is defined twice", self.text(interface.name.name));
            let diagnostic = Diagnostic::error(Code::Duplicate, interface.name.span, message);
            self.s.diags.push(diagnostic.note(first, "first defined here"));
            // The second body is still checked, on its own.
            id = InterfaceId(self.model.interfaces.len() as u32);
            let copy = Interface {
                bases: Vec::new(),
                operations: Vec::new(),
                ..self.model.interfaces[id.0 as usize - 1].clone()
            };
            self.model.interfaces.push(copy);
            let ty = self.model.add(Type::Object(Some(id)));
            self.interface_types.insert(id, ty);
            scope = self.open(ScopeKind::Interface, interface.name);
        }
        let imported = self.imported(interface.name.span);
        self.l4_attributes(annotations, false);
        let entry = &mut self.model.interfaces[id.0 as usize];
        entry.defined = true;
        entry.span = interface.name.span;
        entry.imported = imported;
        self.model.interfaces[id.0 as usize].number = self.interface_number(annotations);
        self.bases(id, scope, interface);
        let operations = self.within(scope, |c| c.interface_body(&interface.body));
        self.model.interfaces[id.0 as usize].operations = operations;
    }

    /// What `@id` says about an interface; 0 if nothing.
    fn interface_number(&mut self, annotations: &[ast::Annotation]) -> u16 {
        if let Some(expr) = annotation(self.s, annotations, "uuid").filter(|_| self.s.l4) {
            let number = self.number(expr).map_or(Ok(0), l4::number);
            return number.unwrap_or_else(|message| {
                self.error(Code::AttributeForm, expr.span, message);
                0
            });
        }
        let Some(expr) = annotation(self.s, annotations, "id") else { return 0 };
        let Some(value) = self.number(expr) else { return 0 };
        match u16::try_from(value) {
            Ok(number @ 1..) => number,
            _ => {
                let message = format!("the `id` of an interface is a whole number from 1 to {}", u16::MAX);
                self.error(Code::AttributeForm, expr.span, message);
                0
            }
        }
    }

    pub(super) fn interface_body(&mut self, body: &[Decl]) -> Vec<Operation> {
        let mut operations = Vec::new();
        for decl in body {
            if self.s.diags.stop() {
                break;
            }
            if let DeclKind::Operation(_) | DeclKind::Attribute(_) = decl.kind {
                self.l4_attributes(&decl.annotations, true);
            }
            match &decl.kind {
                DeclKind::Operation(operation) => operations.extend(self.operation(operation)),
                DeclKind::Attribute(attribute) => operations.extend(self.attribute(attribute)),
                _ => self.decl(decl),
            }
        }
        operations
    }

    pub(super) fn bases(&mut self, id: InterfaceId, scope: usize, interface: &ast::Interface) {
        let mut direct: Vec<InterfaceId> = Vec::new();
        let mut above = HashSet::new();
        for base in &interface.bases {
            let entry = self.resolve(base);
            let name = self.text(last(base).name).to_owned();
            let (base_id, base_scope) = match entry {
                Entry::Interface(id, scope) => (id, scope),
                Entry::Poison => continue,
                Entry::Type(ty, _) if self.interface_of(ty).is_some() => {
                    let Some(found) = self.interface_of(ty) else { continue };
                    found
                }
                _ => {
                    let message = format!("`{name}` is no interface and cannot be inherited from");
                    self.error(Code::BadBase, base.span, message);
                    continue;
                }
            };
            let other = &self.model.interfaces[base_id.0 as usize];
            let (other_span, other_local, other_abstract) = (other.span, other.local, other.is_abstract);
            if !other.defined {
                self.late_bases.push((id, base_id, base.span));
                continue;
            }
            if base_id == id {
                self.error(Code::BadBase, base.span, format!("`{name}` cannot inherit itself"));
                continue;
            }
            if direct.contains(&base_id) {
                self.error(Code::BadBase, base.span, format!("`{name}` is inherited twice"));
                continue;
            }
            if interface.flavour != ast::Flavour::Local && other_local {
                let message = format!("an interface that is not local cannot inherit the local `{name}`");
                let diagnostic = Diagnostic::error(Code::BadBase, base.span, message);
                self.s.diags.push(diagnostic.note(other_span, "it is declared local here"));
            }
            if interface.flavour == ast::Flavour::Abstract && !other_abstract {
                let message = format!("an abstract interface cannot inherit `{name}`, which is not abstract");
                self.error(Code::BadBase, base.span, message);
            }
            direct.push(base_id);
            above.insert(base_id);
            above.extend(self.ancestors.get(&base_id).into_iter().flatten().copied());
            if above.len() > limits::BASES_MAX {
                let message =
                    format!("an interface with more than {} interfaces above it", limits::BASES_MAX);
                self.s.diags.fatal(Diagnostic::error(Code::Limit, base.span, message));
                return;
            }
            self.inherit(scope, base_scope, base);
        }
        self.inherited_total += above.len();
        self.ancestors.insert(id, above);
        self.model.interfaces[id.0 as usize].bases = direct;
    }

    /// The interface that a typedef names.
    pub(super) fn interface_of(&self, ty: TypeId) -> Option<(InterfaceId, usize)> {
        let Type::Object(Some(id)) = self.model.ty(self.model.resolved(ty)) else { return None };
        Some((*id, *self.interface_scopes.get(id)?))
    }

    /// Copies the names of a base.
    pub(super) fn inherit(&mut self, scope: usize, from: usize, base: &ScopedName) {
        let source = &self.scopes[from];
        let own = source.entries.iter().filter(|(_, (e, _))| !matches!(e, Entry::Use | Entry::Own));
        let own = own.map(|(&n, &(entry, ident))| (n, Inherited { entry, ident, rival: None }));
        let hidden =
            |n: &Symbol| source.entries.get(n).is_some_and(|e| !matches!(e.0, Entry::Use | Entry::Own));
        let above = source.inherited.iter().filter(|(n, _)| !hidden(n)).map(|(&n, &i)| (n, i));
        let mut all: Vec<(Symbol, Inherited)> = own.chain(above).collect();
        all.sort_by_key(|(_, i)| i.ident.span.lo);
        self.inherited_total += all.len();
        if self.inherited_total > limits::INHERITED_NAMES_MAX {
            let message =
                format!("interfaces of this file inherit more than {} names", limits::INHERITED_NAMES_MAX);
            self.s.diags.fatal(Diagnostic::error(Code::Limit, base.span, message));
            return;
        }
        for (name, found) in all {
            let Some(old) = self.scopes[scope].inherited.get_mut(&name) else {
                self.scopes[scope].inherited.insert(name, found);
                continue;
            };
            if old.ident == found.ident {
                continue;
            }
            let rival = old.ident;
            old.rival = Some(found.ident);
            if old.entry == Entry::Callable || found.entry == Entry::Callable {
                let message =
                    format!("`{}` is inherited from two interfaces", self.s.names.text(found.ident.name));
                let diagnostic = Diagnostic::error(Code::Inherited, base.span, message);
                let diagnostic =
                    diagnostic.note(rival.span, "one is here").note(found.ident.span, "the other is here");
                self.s.diags.push(diagnostic);
            }
        }
    }

    pub(super) fn operation(&mut self, operation: &ast::Operation) -> Option<Operation> {
        let result = match &operation.result {
            Some(ty) => self.param_type(ty, true),
            None => self.basic(Base::Void),
        };
        let fresh = self.declare(operation.name, Entry::Callable);
        let scope = self.open(ScopeKind::Operation, operation.name);
        let mut params = Vec::new();
        self.within(scope, |c| {
            for param in &operation.params {
                let ty = c.param_type(&param.ty, false);
                let direction = match param.direction {
                    ast::Direction::In => Direction::In,
                    ast::Direction::Out => Direction::Out,
                    ast::Direction::InOut => Direction::InOut,
                };
                if let Some(span) = operation.oneway
                    && direction != Direction::In
                {
                    let message = "a oneway operation brings nothing back";
                    let diagnostic = Diagnostic::error(Code::Oneway, param.name.span, message);
                    c.s.diags.push(diagnostic.note(span, "it is oneway"));
                }
                c.declare(param.name, Entry::Instance);
                let mut checked = Param::new(c.text(param.name.name), ty, direction);
                c.l4_attributes(&param.annotations, false);
                c.hints(&param.annotations, &mut checked);
                c.limits(&param.annotations, ty);
                checked.ty = c.optional(&param.annotations, checked.ty);
                params.push(checked);
            }
        });
        let raises = self.raises(&operation.raises);
        if let Some(span) = operation.oneway {
            if !matches!(self.model.ty(result), Type::Void | Type::Error) {
                let message = "the result of a oneway operation is `void`";
                self.error(Code::Oneway, operation.result.as_ref().map_or(span, |t| t.span), message);
            }
            if let Some(first) = operation.raises.first() {
                self.error(Code::Oneway, first.span, "a oneway operation raises nothing");
            }
        }
        let name = self.text(operation.name.name).to_owned();
        let oneway = operation.oneway.is_some();
        fresh.then_some(Operation {
            name,
            oneway,
            result,
            params,
            raises,
            agreements: Vec::new(),
            statuses: Default::default(),
            called: Called::default(),
            refused: None,
            span: operation.name.span,
        })
    }

    /// Follows `max_value`: only so many bits matter as the greatest value has.
    fn max_value(&mut self, annotation: &ast::Annotation, param: &mut Param) {
        let Some((_, value)) = annotation.arguments.first() else {
            return self.error(
                Code::AttributeForm,
                annotation.span,
                "`max_value` needs a value in parentheses",
            );
        };
        let Some(most) = self.number(value) else { return };
        if let Err(message) = hints::max_value(&mut self.model, param, most) {
            self.error(Code::AttributeForm, annotation.span, message);
        }
    }

    /// Warns of attributes of L4's dialects without effect; for an operation, its number is one.
    pub(super) fn l4_attributes(&mut self, annotations: &[ast::Annotation], is_operation: bool) {
        for annotation in annotations {
            l4::warn(self.s, annotation.name.name, annotation.span);
            if is_operation && self.text(annotation.name.name) == "uuid" {
                l4::warn_of_number(self.s, annotation.name.name, annotation.span);
            }
        }
    }

    /// What annotations say about a parameter; see [`hints`].
    fn hints(&mut self, annotations: &[ast::Annotation], param: &mut Param) {
        for annotation in annotations {
            let name = self.text(annotation.name.name).to_owned();
            hints::mark(&self.model, param, &name);
            if name == "max_value" && self.s.l4 {
                self.max_value(annotation, param);
                continue;
            }
            if !hints::SIZES.contains(&name.as_str()) {
                continue;
            }
            let wrong = match annotation.arguments.first() {
                Some((_, value)) => {
                    self.number(value).and_then(|n| hints::apply(&mut self.model, param, &name, n).err())
                }
                None => Some(format!("`{name}` needs a value in parentheses")),
            };
            if let Some(message) = wrong {
                self.error(Code::AttributeForm, annotation.span, message);
            }
        }
    }

    pub(super) fn attribute(&mut self, attribute: &ast::Attribute) -> Vec<Operation> {
        let ty = self.param_type(&attribute.ty, false);
        let get = self.raises(&attribute.get_raises);
        let set = self.raises(&attribute.set_raises);
        let void = self.basic(Base::Void);
        let mut operations = Vec::new();
        for &ident in &attribute.names {
            if !self.declare(ident, Entry::Callable) {
                continue;
            }
            let name = self.text(ident.name).to_owned();
            let make = |prefix: &str, result, params, raises| Operation {
                name: format!("{prefix}{name}"),
                oneway: false,
                result,
                params,
                raises,
                agreements: Vec::new(),
                statuses: Default::default(),
                called: Called::default(),
                refused: None,
                span: ident.span,
            };
            operations.push(make("_get_", ty, Vec::new(), get.clone()));
            if !attribute.readonly {
                let value = Param::new("value", ty, Direction::In);
                operations.push(make("_set_", void, vec![value], set.clone()));
            }
        }
        operations
    }

    pub(super) fn raises(&mut self, names: &[ScopedName]) -> Vec<ExceptionId> {
        let mut ids = Vec::new();
        for name in names {
            match self.resolve(name) {
                Entry::Exception(id, _) if ids.contains(&id) => {
                    let message = format!("`{}` is listed twice", self.text(last(name).name));
                    self.s.diags.push(Diagnostic::warning(Code::Raises, name.span, message));
                }
                Entry::Exception(id, _) => ids.push(id),
                Entry::Poison => {}
                // Standard exceptions of the ORB, and native ones.
                Entry::Type(id, _) if matches!(self.model.ty(id), Type::Foreign(..)) => {}
                _ => {
                    let message = format!("`{}` is no exception", self.text(last(name).name));
                    let help = "only what is declared with `exception` can be raised";
                    self.s.diags.push(Diagnostic::error(Code::Raises, name.span, message).help(help));
                }
            }
        }
        ids
    }

    // --- value types, components

    pub(super) fn value(&mut self, value: &ast::Value) {
        let folded = self.fold(value.name.name);
        let existing = match self.scopes[self.current].entries.get(&folded) {
            Some(&(Entry::Value(id, scope), first)) if first.name == value.name.name => Some((id, scope)),
            _ => None,
        };
        let forward = existing.is_some_and(|(id, _)| matches!(self.model.ty(id), Type::Forward(_)));
        let (id, scope) = match existing {
            Some((id, scope)) if forward || value.forward => (id, scope),
            _ => {
                let id = self.model.add(Type::Forward(self.path(value.name)));
                let scope = self.open(ScopeKind::Value, value.name);
                self.value_forwards.insert(id);
                self.declare(value.name, Entry::Value(id, scope));
                (id, scope)
            }
        };
        if value.forward {
            self.defines -= 1;
            return;
        }
        if let Some(boxed) = &value.boxed {
            self.model.define(id, Type::Foreign("the value type", self.path(value.name)));
            let content = self.within(scope, |c| c.value_type(boxed, "a boxed value"));
            if self.can_be_boxed(id, content) {
                self.model.define(id, Type::Shared(content));
            }
            return;
        }
        let inherited = self.inherit_values(id, scope, &value.bases);
        self.support_interfaces(scope, &value.supports);
        let path = self.path(value.name);
        // A value is held by reference, so it may stand in itself.
        let state = match (value.special, &inherited) {
            (Some("abstract"), _) => Err("the abstract value type"),
            (None, Some(_)) => Ok(self.model.add(Type::Forward(path.clone()))),
            _ => Err("the custom value type"),
        };
        self.model.define(
            id,
            match state {
                Ok(state) => Type::Shared(state),
                Err(what) => Type::Foreign(what, path.clone()),
            },
        );
        let mut fields = inherited.unwrap_or_default();
        self.within(scope, |c| {
            // Its state may be of its own types.
            c.interface_body(&value.body);
            c.members(&value.state, &mut fields);
        });
        if let Ok(state) = state {
            self.model.define(state, Type::Struct(path, fields));
            self.name_type(state, value.name.span);
        }
    }

    /// Whether a box has a content that can be written out: not the box itself, and no other value where nothing between them has a name.
    fn can_be_boxed(&self, id: TypeId, content: TypeId) -> bool {
        let mut inner = content;
        for _ in 0..limits::NESTING_MAX {
            inner = match self.model.ty(inner) {
                Type::Forward(_) | Type::Shared(_) => return false,
                Type::Sequence(of, _) | Type::Array(of, _) | Type::Alias(_, of) | Type::Optional(of) => *of,
                _ => return inner != id,
            };
        }
        false
    }

    /// Takes the names of the value types that the value type `id`, with its scope, inherits; gives back the state that it begins with, if
    /// that is known.
    fn inherit_values(&mut self, id: TypeId, scope: usize, bases: &[ScopedName]) -> Option<Vec<Field>> {
        let mut fields = Some(Vec::new());
        for base in bases {
            match self.resolve(base) {
                Entry::Value(base_id, base_scope) if base_id != id => {
                    if matches!(self.model.ty(base_id), Type::Forward(_)) {
                        let message =
                            format!("`{}` is not defined yet, only declared", self.text(last(base).name));
                        self.error(Code::Incomplete, base.span, message);
                    }
                    self.inherit(scope, base_scope, base);
                    let state = self.state(base_id, base);
                    fields = fields.zip(state).map(|(fields, state)| [fields, state].concat());
                }
                Entry::Poison => {}
                _ => {
                    let message =
                        format!("`{}` is no value type that can be inherited", self.text(last(base).name));
                    self.error(Code::BadBase, base.span, message);
                }
            }
        }
        fields
    }

    /// The state of a value type that another one begins with: none of an abstract one, unknown of a custom one.
    fn state(&mut self, id: TypeId, base: &ScopedName) -> Option<Vec<Field>> {
        let state = match self.model.ty(id) {
            Type::Shared(state) => *state,
            Type::Foreign(what, _) if !what.contains("abstract") => return None,
            _ => return Some(Vec::new()),
        };
        let Type::Struct(_, fields) = self.model.ty(state) else { return Some(Vec::new()) };
        let fields = fields.clone();
        self.inherited_total += fields.len();
        if self.inherited_total > limits::INHERITED_NAMES_MAX {
            let message = "value types inherit too much state in this file";
            self.s.diags.fatal(Diagnostic::error(Code::Limit, base.span, message));
        }
        Some(fields)
    }

    /// Takes the names of the interfaces that a value type supports.
    fn support_interfaces(&mut self, scope: usize, interfaces: &[ScopedName]) {
        for base in interfaces {
            match self.resolve(base) {
                Entry::Interface(_, base_scope) => self.inherit(scope, base_scope, base),
                Entry::Poison => {}
                _ => {
                    let message =
                        format!("`{}` is no interface that can be supported", self.text(last(base).name));
                    self.error(Code::BadBase, base.span, message);
                }
            }
        }
    }

    pub(super) fn assembly(&mut self, assembly: &ast::Assembly) {
        let folded = self.fold(assembly.name.name);
        let scope = match self.scopes[self.current].entries.get(&folded) {
            Some(&(Entry::Assembly(scope), first)) if first.name == assembly.name.name => scope,
            _ => {
                let scope = self.open(ScopeKind::Interface, assembly.name);
                self.declare(assembly.name, Entry::Assembly(scope));
                scope
            }
        };
        if assembly.forward {
            return;
        }
        for name in &assembly.uses {
            self.resolve(name);
        }
        self.within(scope, |c| {
            for &port in &assembly.ports {
                c.declare(port, Entry::Instance);
            }
            c.interface_body(&assembly.body);
        });
    }

    /// Bases that were inherited before their definition: by the book an error, but some compilers look ahead, so it is
    /// one only when the definition never comes or closes a circle.
    pub(super) fn late_bases(&mut self) {
        for (id, base, span) in std::mem::take(&mut self.late_bases) {
            let found = &self.model.interfaces[base.0 as usize];
            let (declared, name) = (found.span, found.name.clone());
            let circle = self.reaches(base, id);
            if found.defined && !circle {
                let message = format!("`{name}` is inherited before it is defined");
                self.s.diags.push(
                    Diagnostic::warning(Code::Incomplete, span, message).note(declared, "defined here"),
                );
                self.model.interfaces[id.0 as usize].bases.push(base);
                continue;
            }
            let message = if circle {
                format!("`{name}` inherits this interface in turn")
            } else {
                format!("`{name}` is not defined, only declared")
            };
            let diagnostic = Diagnostic::error(Code::Incomplete, span, message);
            self.s.diags.push(diagnostic.note(declared, "it is declared here"));
        }
    }

    /// Whether `to` is `from` or above it.
    pub(super) fn reaches(&self, from: InterfaceId, to: InterfaceId) -> bool {
        let (mut stack, mut seen) = (vec![from], HashSet::new());
        while let Some(id) = stack.pop() {
            if id == to {
                return true;
            }
            if seen.insert(id) {
                stack.extend(&self.model.interfaces[id.0 as usize].bases);
            }
        }
        false
    }
}
