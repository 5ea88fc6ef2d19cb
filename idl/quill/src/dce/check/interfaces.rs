//! Interfaces, operations, parameters.

use super::carried::Stands;
use super::types::UNSAID;
use super::*;
use crate::model::{Agreement, Called, Rule, Statuses, Told};

/// Why an operation that a server calls while a client waits for it is not translated.
const CALLBACK: &str = "a callback would be called by the server in the middle of a call, and a client that waits \
                        answers nothing; a client that is called serves an interface of its own";

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
            binding: None,
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
        self.model.interfaces[id.0 as usize].number = self.interface_number(&item.attrs);
        self.model.interfaces[id.0 as usize].binding = attrs::binding(self.s, &item.attrs);
        let mut operations = Vec::new();
        let objects = ["object", "odl", "dual", "oleautomation", "local"];
        self.of_objects = interface.dispatch || objects.iter().any(|a| has(self.s, &item.attrs, a));
        let declarators = interface.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Function(_, declarator, _) => declarator.name,
            _ => None,
        });
        self.functions = declarators.map(|name| name.name).collect();
        let default = self.default_pointer(&item.attrs);
        let outer = std::mem::replace(&mut self.pointer_default, default);
        for item in &interface.items {
            if self.s.diags.stop() {
                return;
            }
            self.item(item, Some((interface, &mut operations, local)));
        }
        self.pointer_default = outer;
        self.of_objects = false;
        self.overloads(interface);
        self.model.interfaces[id.0 as usize].operations = operations;
    }

    /// Number of an interface that stands where an identifier does; 0 if nothing.
    fn interface_number(&mut self, attrs: &[Attr]) -> u16 {
        let Some(uuid) = find(self.s, attrs, "uuid").filter(|_| self.s.l4).cloned() else { return 0 };
        let tokens = uuid.arguments.as_deref().unwrap_or(&[]);
        if !attrs::is_number(tokens) {
            return 0;
        }
        let Ok(value) = attrs::expression(self.s, tokens, &uuid) else { return 0 };
        let Value::Int(number) = self.eval(&value) else { return 0 };
        l4::number(number).unwrap_or_else(|message| {
            self.error(Code::AttributeForm, uuid.span, message);
            0
        })
    }

    /// An exception, as IDL4's files have it.
    pub(super) fn exception(&mut self, name: Ident, members: &[Field]) {
        if let Some(&(_, first, _)) = self.ordinary.get(&name.name) {
            return self.twice(name, first);
        }
        let fields = self.fields_of(members);
        let id = ExceptionId(self.model.exceptions.len() as u32);
        self.model.exceptions.push(Exception { name: self.owned(name.name), fields });
        self.declare(name, Entry::Exception(id), false);
    }

    /// Exceptions with these names.
    pub(super) fn raises(&mut self, names: &[Ident]) -> Vec<ExceptionId> {
        let mut all = Vec::new();
        for &name in names {
            match self.ordinary.get(&name.name) {
                Some(&(Entry::Exception(id), ..)) if !all.contains(&id) => all.push(id),
                Some(&(Entry::Exception(_), ..)) => {}
                _ if self.poisoned.contains(&name.name) => {}
                _ => {
                    let message = format!("`{}` is no exception", self.text(name.name));
                    self.error(Code::Raises, name.span, message);
                }
            }
        }
        all
    }

    /// An operation with its exceptions, of which nobody hears if nothing comes back.
    pub(super) fn raising(&mut self, operation: Operation, raises: Vec<ExceptionId>) -> Operation {
        if !operation.oneway || raises.is_empty() {
            return Operation { raises, ..operation };
        }
        let message = format!("`{}` is oneway, so nobody hears what it raises", operation.name);
        self.s.diags.push(Diagnostic::warning(Code::Oneway, operation.span, message));
        operation
    }

    /// Kind of pointer that `pointer_default` names.
    fn default_pointer(&self, attrs: &[Attr]) -> Pointer {
        let arguments = find(self.s, attrs, "pointer_default").and_then(|attr| attr.arguments.as_ref());
        match arguments.and_then(|arguments| arguments.first()).map(|token| self.s.text(token)) {
            Some("ref") => Pointer::Ref,
            Some("ptr" | "full") => Pointer::Full,
            _ => Pointer::Unique,
        }
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
            let ItemKind::Function(_, declarator, _) = &item.kind else { continue };
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
        let param_list = params;
        let mut result = self.spec(spec, &item.attrs, item.header);
        for step in &declarator.derived {
            if matches!(step, Derived::Pointer) {
                result = self.model.add(Type::Pointer(Pointer::Unsaid, result));
            }
        }
        if !item.header {
            self.pipe_as_result(result, name);
        }
        if !item.header && !self.samba {
            result = self.carried(result, &item.attrs, Stands::Field).0;
        }
        let names: Vec<Symbol> = params.iter().filter_map(|p| p.declarator.name).map(|n| n.name).collect();
        self.siblings.push(names.iter().copied().collect());
        let (mut list, mut rules) = (Vec::new(), Vec::new());
        let mut seen: HashMap<Symbol, Span> = HashMap::new();
        for param in params {
            if let Some(name) = param.declarator.name
                && let Some(first) = seen.insert(name.name, name.span)
            {
                self.twice(name, first);
            }
            let symbol = param.declarator.name.map_or(Symbol::default(), |name| name.name);
            let (param, param_rules) = self.param(param, local, item.header);
            // Which server is called is the stub's business; nothing of it travels.
            let handle = Type::Foreign("the type", "handle_t".into());
            if local || *self.model.ty(self.model.resolved(param.ty)) != handle {
                list.push(param);
                rules.push((symbol, param_rules));
            }
        }
        self.siblings.pop();
        for attr in item.attrs.iter().filter(|_| !item.header) {
            if self.text(attr.name) == "call_as" {
                self.call_as(attr);
            }
        }
        self.operations.insert(name.name, names);
        let called = match list.len() < params.len() {
            true => Called::Said,
            false => self.own_handle(param_list, &list),
        };
        let (span, name) = (name.span, self.owned(name.name));
        let oneway = self.is_oneway(&item.attrs);
        let agreements = self.agree_params(&mut list, rules);
        let (params, raises) = (list, Vec::new());
        let statuses = self.statuses(&item.attrs, param_list, &params, result);
        let refused = has(self.s, &item.attrs, "callback").then_some(CALLBACK);
        Some(Operation { name, oneway, result, params, raises, agreements, statuses, called, refused, span })
    }

    /// Binding that the first parameter is, if it goes to the server and has a type that is a handle of the file's own.
    fn own_handle(&mut self, params: &[Param], checked: &[model::Param]) -> Called {
        let (Some(param), Some(first)) = (params.first(), checked.first()) else { return Called::Bound };
        let SpecKind::Named(ty) = &param.spec.kind else { return Called::Bound };
        let Some(&(Entry::Type(id), ..)) = self.ordinary.get(&ty.name) else { return Called::Bound };
        if !self.handles.contains(&id) || first.direction == Direction::Out {
            return Called::Bound;
        }
        // Texts and structs are given as pointers, present or not; anything else as a value, if it is there.
        let kind = |ty: TypeId| self.model.ty(self.model.resolved(ty));
        if let Type::Optional(of) | Type::Shared(of) = kind(first.ty)
            && !matches!(kind(*of), Type::Str { .. } | Type::Struct(..) | Type::Union { .. })
        {
            let name = &first.name;
            let message =
                format!("`{name}` says which server is called, and is no text or struct that may be absent");
            self.error(Code::AttributeForm, param.spec.span, message);
        }
        Called::Found(self.owned(ty.name))
    }

    /// Places for failures that the interface file itself names: a result or a parameter of 32 bits that comes back.
    fn statuses(
        &mut self,
        attrs: &[Attr],
        params: &[Param],
        checked: &[model::Param],
        result: TypeId,
    ) -> Statuses {
        let mut all = Statuses::default();
        for (attribute, is_comm) in [("comm_status", true), ("fault_status", false)] {
            let named = params.iter().find_map(|param| Some((find(self.s, &param.attrs, attribute)?, param)));
            let (span, told, ty) = match (find(self.s, attrs, attribute), named) {
                (Some(attr), _) => (attr.span, Told::Result, Some(result)),
                (None, Some((attr, param))) => {
                    let name = param.declarator.name.map_or(String::new(), |name| self.owned(name.name));
                    let comes_back = |p: &&model::Param| p.name == name && p.direction != Direction::In;
                    (attr.span, Told::Param(name.clone()), checked.iter().find(comes_back).map(|p| p.ty))
                }
                (None, None) => continue,
            };
            let is_place =
                |ty: TypeId| matches!(self.model.ty(self.model.resolved(ty)), Type::Int { bits: 32, .. });
            if !ty.is_some_and(is_place) {
                let message = format!("`{attribute}` needs a place of 32 bits that comes back");
                self.error(Code::AttributeForm, span, message);
                continue;
            }
            *(if is_comm { &mut all.comm } else { &mut all.fault }) = Some(told);
        }
        all
    }

    /// Whether nothing comes back, as attributes of an operation say; warns of a number among them.
    fn is_oneway(&mut self, attrs: &[Attr]) -> bool {
        if let Some(uuid) = find(self.s, attrs, "uuid") {
            let (name, span) = (uuid.name, uuid.span);
            l4::warn_of_number(self.s, name, span);
        }
        ["maybe", "oneway"].iter().any(|attr| has(self.s, attrs, attr))
    }

    /// How parameters have to agree. One that agrees with something that is no number beside it cannot travel.
    fn agree_params(
        &mut self,
        params: &mut [model::Param],
        rules: Vec<(Symbol, Vec<Vec<Rule>>)>,
    ) -> Vec<Agreement> {
        let named = params.iter().zip(rules).map(|(param, (name, rules))| (name, param.ty, rules));
        match self.agreements(named.collect()) {
            Ok(agreements) => agreements,
            Err(place) => {
                params[place].ty = self.model.add(Type::Foreign(UNSAID, params[place].name.clone()));
                Vec::new()
            }
        }
    }

    pub(super) fn call_as(&mut self, attr: &Attr) {
        let Some(target) = attr.arguments.iter().flatten().next() else { return };
        if !self.functions.contains(&target.text) && !self.poisoned.contains(&target.text) {
            let message = format!("`{}` is no operation of this interface", self.s.text(target));
            self.s.diags.push(Diagnostic::warning(Code::SizeExpression, target.span, message));
        }
    }

    /// A parameter, and how it has to agree with others.
    pub(super) fn param(
        &mut self,
        param: &Param,
        local: bool,
        header: bool,
    ) -> (model::Param, Vec<Vec<Rule>>) {
        self.unsized_array = false;
        if !header {
            self.attributes(&param.attrs, "a parameter");
        }
        let unsized_array = self.unsized_array;
        let base = self.spec(&param.spec, &param.attrs, header);
        let mut ty = self.derive(base, &param.declarator, &param.attrs, header);
        if self.s.l4 {
            ty = self.behind_out(ty, &param.attrs);
        }
        if unsized_array {
            ty = self
                .model
                .add(Type::Foreign("the array of unknown size", format!("{}[]", self.model.show(ty))));
        }
        let span = param.declarator.name.map_or(param.spec.span, |n| n.span);
        self.pointer_attributes(&param.attrs, ty);
        self.pipe_as_parameter(ty, &param.attrs, span);
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
        let mut rules = Vec::new();
        let is_foreign = matches!(self.model.ty(self.model.resolved(ty)), Type::Foreign(..));
        if !header && !self.samba && !is_foreign {
            (ty, rules) = self.carried(ty, &param.attrs, Stands::Parameter);
        }
        ty = self.refused_in_samba(&param.attrs, ty, param.declarator.name);
        let mut checked = model::Param::new(name, ty, direction);
        if !header {
            self.hints(&param.attrs, &mut checked);
        }
        (checked, rules)
    }

    /// Type of a list or text that comes back, where L4's dialects have a pointer to the pointer: its outer one says where the inner
    /// one is put.
    fn behind_out(&self, ty: TypeId, attrs: &[Attr]) -> TypeId {
        let sizes = ["string", "size_is", "length_is", "max_is"];
        let is_list = has(self.s, attrs, "out") && sizes.iter().any(|size| has(self.s, attrs, size));
        match self.model.ty(ty) {
            Type::Pointer(_, to) if is_list && matches!(self.model.ty(*to), Type::Pointer(..)) => *to,
            _ => ty,
        }
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

    /// Follows `max_value`: only so many bits matter as the greatest value has.
    fn max_value(&mut self, attr: &Attr, param: &mut model::Param) {
        let tokens = attr.arguments.as_deref().unwrap_or(&[]);
        let Ok(value) = attrs::expression(self.s, tokens, attr) else { return };
        let Value::Int(most) = self.eval(&value) else { return };
        if let Err(message) = hints::max_value(&mut self.model, param, most) {
            self.error(Code::AttributeForm, attr.span, message);
        }
    }

    /// What attributes say about a parameter besides its type; see [`hints`].
    fn hints(&mut self, attrs: &[Attr], param: &mut model::Param) {
        for attr in attrs {
            let name = self.owned(attr.name);
            hints::mark(&self.model, param, &name);
            if name == "max_value" && self.s.l4 {
                self.max_value(attr, param);
                continue;
            }
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
