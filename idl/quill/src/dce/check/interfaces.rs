//! Interfaces, operations, parameters.

use super::*;

impl Checker<'_> {
    pub(super) fn near_interface(&self, name: Symbol) -> Option<String> {
        if self.s.diags.full() {
            return None;
        }
        let entries = self.ordinary.iter().filter(|(_, (e, ..))| matches!(e, Entry::Interface(_)));
        let mut names: Vec<&str> = entries.map(|(&n, _)| self.s.names.text(n)).collect();
        names.sort_unstable();
        nearest(self.text(name), names).map(str::to_owned)
    }

    pub(super) fn interface_entry(&mut self, name: Ident) -> InterfaceId {
        if let Some(&(Entry::Interface(id), ..)) = self.ordinary.get(&name.name) {
            return id;
        }
        let id = InterfaceId(self.model.interfaces.len() as u32);
        self.model.interfaces.push(ModelInterface {
            name: self.owned(name.name),
            bases: Vec::new(),
            operations: Vec::new(),
            local: false,
            number: 0,
            is_abstract: false,
            defined: false,
            imported: !self.in_main(name.span),
            span: name.span,
        });
        self.declare(name, Entry::Interface(id), false);
        id
    }

    pub(super) fn interface(&mut self, interface: &Interface, item: &Item) {
        let id = self.interface_entry(interface.name);
        let entry = &self.model.interfaces[id.0 as usize];
        let (defined, first) = (entry.defined, entry.span);
        // What a C header says of it is nothing that it could be compared with.
        let from_header = self.s.map.file_index(first).is_some_and(|file| self.is_header(file));
        if defined && !item.header && !from_header {
            self.twice(interface.name, first);
        }
        let mut bases = Vec::new();
        for &base in &interface.bases {
            if self.s.diags.stop() {
                return;
            }
            bases.extend(self.base(id, base));
        }
        let local = has(self.s, &item.attrs, "local");
        let imported = !self.in_main(interface.name.span);
        let entry = &mut self.model.interfaces[id.0 as usize];
        entry.defined = true;
        entry.local = local;
        entry.imported = imported;
        entry.span = interface.name.span;
        entry.bases = bases;
        let mut operations = Vec::new();
        let objects = ["object", "odl", "dual", "oleautomation", "local"];
        self.of_objects = interface.dispatch || objects.iter().any(|a| has(self.s, &item.attrs, a));
        let declarators = interface.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Function(_, declarator) => declarator.name,
            _ => None,
        });
        self.functions = declarators.map(|name| name.name).collect();
        for item in &interface.items {
            if self.s.diags.stop() {
                return;
            }
            self.item(item, Some((interface, &mut operations, local)));
        }
        self.of_objects = false;
        self.overloads(interface);
        self.model.interfaces[id.0 as usize].operations = operations;
    }

    /// The base of an interface with that name; reports one that is none.
    fn base(&mut self, derived: InterfaceId, base: Ident) -> Option<InterfaceId> {
        match self.ordinary.get(&base.name) {
            Some(&(Entry::Interface(id), ..)) if id == derived => {
                let message = format!("`{}` cannot inherit itself", self.text(base.name));
                self.error(Code::BadBase, base.span, message);
            }
            Some(&(Entry::Interface(id), ..)) => return Some(id),
            Some(&(Entry::Unread | Entry::Type(_), ..)) => {}
            Some(_) => {
                let message = format!("`{}` is no interface", self.text(base.name));
                self.error(Code::BadBase, base.span, message);
            }
            None if self.s.incomplete || self.poisoned.contains(&base.name) => {}
            // A type library that a library imports declares these two.
            None if matches!(self.text(base.name), "IUnknown" | "IDispatch") && self.in_library => {}
            None => {
                let message = format!("the interface `{}` is not declared", self.text(base.name));
                let near = self.near_interface(base.name);
                self.undeclared(base, message, near);
            }
        }
        None
    }

    /// Reports operations that share a name and are not the two halves of a property.
    pub(super) fn overloads(&mut self, interface: &Interface) {
        if interface.dispatch {
            return;
        }
        let mut seen: HashMap<Symbol, Span> = HashMap::new();
        for item in &interface.items {
            let ItemKind::Function(_, declarator) = &item.kind else { continue };
            let Some(name) = declarator.name else { continue };
            let special =
                ["propget", "propput", "propputref", "overload", "eventadd", "eventremove", "local"];
            if special.iter().any(|a| has(self.s, &item.attrs, a)) {
                continue;
            }
            if let Some(&first) = seen.get(&name.name) {
                self.twice(name, first);
            } else {
                seen.insert(name.name, name.span);
            }
        }
    }

    pub(super) fn operation(
        &mut self,
        item: &Item,
        spec: &Spec,
        declarator: &Declarator,
        around: &Interface,
        local: bool,
    ) -> Option<Operation> {
        let name = declarator.name?;
        let params = declarator.derived.iter().find_map(|d| match d {
            Derived::Function(params) => Some(params),
            _ => None,
        })?;
        let local = local
            || has(self.s, &item.attrs, "local")
            || around.dispatch
            || has(self.s, &item.attrs, "callback");
        let mut result = self.spec(spec, &item.attrs, item.header);
        for step in &declarator.derived {
            if matches!(step, Derived::Pointer) {
                result = self.model.add(Type::Pointer(Pointer::Unique, result));
            }
        }
        let names: Vec<Symbol> = params.iter().filter_map(|p| p.declarator.name).map(|n| n.name).collect();
        self.siblings.push(names.iter().copied().collect());
        let mut list = Vec::new();
        let mut seen: HashMap<Symbol, Span> = HashMap::new();
        for param in params {
            if let Some(name) = param.declarator.name
                && let Some(first) = seen.insert(name.name, name.span)
            {
                self.twice(name, first);
            }
            let param = self.param(param, local, item.header);
            // Which server is called is the stub's business; nothing of it travels.
            let handle = Type::Foreign("the type", "handle_t".into());
            if local || *self.model.ty(self.model.resolved(param.ty)) != handle {
                list.push(param);
            }
        }
        self.siblings.pop();
        for attr in item.attrs.iter().filter(|_| !item.header) {
            if self.text(attr.name) == "call_as" {
                self.call_as(attr);
            }
        }
        self.operations.insert(name.name, names);
        let name_text = self.owned(name.name);
        let oneway = has(self.s, &item.attrs, "maybe");
        Some(Operation { name: name_text, oneway, result, params: list, raises: Vec::new(), span: name.span })
    }

    pub(super) fn call_as(&mut self, attr: &Attr) {
        let Some(target) = attr.arguments.iter().flatten().next() else { return };
        if !self.functions.contains(&target.text) && !self.poisoned.contains(&target.text) {
            let message = format!("`{}` is no operation of this interface", self.s.text(target));
            self.s.diags.push(Diagnostic::warning(Code::SizeExpression, target.span, message));
        }
    }

    pub(super) fn param(&mut self, param: &Param, local: bool, header: bool) -> model::Param {
        self.unsized_array = false;
        if !header {
            self.attributes(&param.attrs, "a parameter");
        }
        let unsized_array = self.unsized_array;
        let base = self.spec(&param.spec, &param.attrs, header);
        let mut ty = self.derive(base, &param.declarator, &param.attrs, header);
        if unsized_array {
            ty = self
                .model
                .add(Type::Foreign("the array of unknown size", format!("{}[]", self.model.show(ty))));
        }
        let span = param.declarator.name.map_or(param.spec.span, |n| n.span);
        self.pointer_attributes(&param.attrs, ty);
        let out = has(self.s, &param.attrs, "out");
        let inward = has(self.s, &param.attrs, "in") || !out;
        if out && !local && !self.samba && self.is_by_value(ty) {
            let name =
                param.declarator.name.map_or("this parameter".into(), |n| format!("`{}`", self.text(n.name)));
            let message = format!("{name} is `out` but neither a pointer nor an array");
            let help = "the server needs something to write to: add a `*`";
            let make = self.severity();
            self.s.diags.push(make(Code::Pointer, span, message).help(help));
        }
        if self.model.resolved(ty) == self.void && !header {
            self.error(Code::NotType, span, "a parameter cannot be `void`");
        }
        let direction = match (inward, out) {
            (true, true) => Direction::InOut,
            (false, true) => Direction::Out,
            _ => Direction::In,
        };
        let name = param.declarator.name.map_or(String::new(), |n| self.owned(n.name));
        if !local && !header && !self.samba {
            ty = self.behind(ty, &param.attrs, out);
        }
        let mut checked = model::Param::new(name, ty, direction);
        if !header {
            self.hints(&param.attrs, &mut checked);
        }
        checked
    }

    /// Whether C passes values of a type as copies.
    fn is_by_value(&self, ty: TypeId) -> bool {
        matches!(
            self.model.ty(self.model.resolved(ty)),
            Type::Int { .. }
                | Type::Float(_)
                | Type::Bool
                | Type::Char
                | Type::WideChar
                | Type::Octet
                | Type::Struct(..)
                | Type::Union { .. }
                | Type::Flat(..)
                | Type::Enum(..)
        )
    }

    /// What travels for a parameter that C passes by pointer: of one that cannot be null, the value; of characters with a
    /// zero at their end, the text.
    fn behind(&mut self, ty: TypeId, attrs: &[Attr], out: bool) -> TypeId {
        let (to, elements) = match self.model.ty(ty) {
            Type::Pointer(_, to) => (*to, None),
            Type::Open(to) => (*to, None),
            Type::Array(to, dims) if dims.len() == 1 => (*to, Some(dims[0])),
            _ => return ty,
        };
        let pointer = matches!(self.model.ty(ty), Type::Pointer(..));
        let inner = self.model.ty(self.model.resolved(to));
        if has(self.s, attrs, "string") {
            let wide = match inner {
                Type::Char | Type::Octet | Type::Int { bits: 8, .. } => false,
                Type::WideChar => true,
                _ => return ty,
            };
            let optional = has(self.s, attrs, "unique") || has(self.s, attrs, "ptr");
            let bound = elements.map(|elements| elements.saturating_sub(1).max(1));
            return if optional {
                ty
            } else {
                self.model.add(Type::Str { wide, bound, shown: Shown::default() })
            };
        }
        let counted = attrs::SIZES.iter().any(|name| has(self.s, attrs, name));
        let value = !matches!(inner, Type::Void | Type::Foreign(..) | Type::Object(_) | Type::Pointer(..));
        if pointer && (out || has(self.s, attrs, "ref")) && !counted && value { to } else { ty }
    }

    /// What attributes say about a parameter besides its type; see [`hints`].
    fn hints(&mut self, attrs: &[Attr], param: &mut model::Param) {
        for attr in attrs {
            let name = self.owned(attr.name);
            hints::mark(&self.model, param, &name);
            if !hints::SIZES.contains(&name.as_str()) {
                continue;
            }
            let tokens = attr.arguments.as_deref().unwrap_or(&[]);
            let Ok(value) = attrs::expression(self.s, tokens, attr) else { continue };
            if let Value::Int(number) = self.eval(&value)
                && let Err(message) = hints::apply(&mut self.model, param, &name, number)
            {
                self.error(Code::AttributeForm, attr.span, message);
            }
        }
    }
}
