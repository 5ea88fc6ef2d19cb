//! What stands in brackets: names, sizes, pointers.

use super::*;

impl Checker<'_> {
    pub(super) fn attributes(&mut self, attrs: &[Attr], place: &str) {
        for attr in attrs {
            if !self.in_main(attr.span) {
                // A reader of that file itself is told.
            } else if self.samba {
                effects::warn_in_samba(self.s, attr.name, attr.span);
            } else {
                attrs::check_name(self.s, attr);
            }
            attrs::check_form(self.s, attr);
            let name = self.owned(attr.name);
            if matches!(name.as_str(), "in" | "out") && place == "a field" {
                let message = format!("`{name}` belongs to a parameter, not to a field");
                self.error(Code::AttributeForm, attr.span, message);
            }
            let elsewhere = place != "a parameter" && name != "flat";
            if hints::is_known(&name) && elsewhere && !self.samba && self.in_main(attr.span) {
                let message = format!("`{name}` belongs to a parameter and has no effect on anything else");
                self.s.diags.push(Diagnostic::warning(Code::Attribute, attr.span, message));
            }
            if attrs::SIZES.contains(&name.as_str()) && matches!(place, "a field" | "a parameter") {
                self.size_expression(attr);
            }
            if name == "range" && matches!(place, "a field" | "a parameter" | "a typedef") {
                self.range(attr);
            }
        }
        self.rivals(attrs);
        let kinds: Vec<&Attr> =
            attrs.iter().filter(|a| matches!(self.text(a.name), "ref" | "unique" | "ptr")).collect();
        if let [first, second, ..] = kinds[..]
            && first.name != second.name
        {
            let message =
                format!("a pointer is either `{}` or `{}`", self.text(first.name), self.text(second.name));
            let diagnostic = Diagnostic::error(Code::AttributeForm, second.span, message);
            self.s.diags.push(diagnostic.note(first.span, "the other is here"));
        }
    }

    /// Type of a value that messages cannot carry as an attribute of Samba's says, if it has such a one.
    pub(super) fn refused_in_samba(&mut self, attrs: &[Attr], ty: TypeId, name: Option<Ident>) -> TypeId {
        let refused = effects::refused_in_samba(attrs.iter().map(|attr| self.s.names.text(attr.name)));
        let Some(what) = refused.filter(|_| self.samba) else { return ty };
        let name = name.map_or_else(|| self.model.show(ty), |name| self.owned(name.name));
        self.model.add(Type::Foreign(what, name))
    }

    /// Attributes that say the same thing in two ways.
    fn rivals(&mut self, attrs: &[Attr]) {
        for (one, other) in [("size_is", "max_is"), ("length_is", "last_is")] {
            let (Some(first), Some(second)) = (find(self.s, attrs, one), find(self.s, attrs, other)) else {
                continue;
            };
            if self.s.l4 && other == "max_is" {
                continue;
            }
            let (first, second) = (first.span, second.span);
            let message =
                format!("`{one}` and `{other}` say the same thing in two ways; only one can stand here");
            let diagnostic = self.severity()(Code::AttributeForm, second, message);
            self.s.diags.push(diagnostic.note(first, "the other is here"));
        }
    }

    /// Checks that values can be within `range(…)`.
    fn range(&mut self, attr: &Attr) {
        let (first, rest) = attrs::split_first(self.s, attr.arguments.as_deref().unwrap_or(&[]));
        let Some((second, None)) = rest.map(|rest| attrs::split_first(self.s, rest)) else {
            return self.error(Code::AttributeForm, attr.span, "`range` takes a least and a greatest value");
        };
        let [Ok(least), Ok(most)] = [first, second].map(|tokens| attrs::expression(self.s, tokens, attr))
        else {
            return;
        };
        if let (Value::Int(least), Value::Int(most)) = (self.eval(&least), self.eval(&most))
            && least > most
        {
            let message = format!("no value can be within this range: {least} is greater than {most}");
            self.error(Code::Range, attr.span, message);
        }
    }

    /// Checks a size that has no names in it, and divisions by a literal zero in one that has.
    fn size_value(&mut self, expr: &Expr, attr: &Attr) {
        let by_zero = |pair: &[(Step, Span)]| {
            matches!(pair, [(Step::Int(0), _), (Step::Binary("/" | "%"), _)]).then_some(pair[1].1)
        };
        if let Some(span) = expr.items.windows(2).find_map(by_zero) {
            return self.error(Code::Arithmetic, span, "division by zero");
        }
        let has_names = |(step, _): &(Step, Span)| matches!(step, Step::Name(_) | Step::Grouped(_));
        if expr.items.iter().any(has_names) {
            return;
        }
        if let Value::Int(size @ ..0) = self.eval(expr)
            && matches!(self.text(attr.name), "size_is" | "length_is")
        {
            self.error(Code::Range, attr.span, format!("`{}` is below zero: {size}", self.text(attr.name)));
        }
    }

    /// Checks the names in `size_is(…)` and its like.
    pub(super) fn size_expression(&mut self, attr: &Attr) {
        if attr.arguments.as_ref().is_none_or(|a| a.is_empty()) {
            let message = format!("`{}` needs a value in parentheses", self.text(attr.name));
            return self.error(Code::AttributeForm, attr.span, message);
        }
        let mut rest = attr.arguments.as_deref();
        while let Some(arguments) = rest {
            let (tokens, behind) = attrs::split_first(self.s, arguments);
            rest = behind.filter(|_| !self.s.diags.stop());
            let star = tokens.len() == 1 && self.s.text(&tokens[0]) == "*";
            if tokens.is_empty() || star || self.samba {
                continue;
            }
            let Ok(expr) = attrs::expression(self.s, tokens, attr) else { continue };
            self.size_value(&expr, attr);
            for (step, span) in &expr.items {
                match step {
                    Step::Grouped(name) if self.is_type(name.parts[0].name) => {}
                    Step::Name(name) | Step::Grouped(name) if name.parts.len() == 1 => {
                        self.size_name(name.parts[0], *span, attr);
                    }
                    _ => {}
                }
            }
        }
    }

    pub(super) fn size_name(&mut self, part: Ident, span: Span, attr: &Attr) {
        if self.is_sibling(part.name) || self.poisoned.contains(&part.name) || self.s.incomplete {
            return;
        }
        match self.ordinary.get(&part.name) {
            Some((Entry::Const(_) | Entry::Enumerator(_) | Entry::Unread, ..)) => return,
            _ if predefined::constant(self.text(part.name)).is_some() => return,
            _ => {}
        }
        let text = self.owned(part.name);
        let near = if self.s.diags.full() {
            None
        } else {
            nearest(&text, self.siblings.iter().flatten().map(|&n| self.s.names.text(n)))
        };
        let message = format!(
            "`{}` names `{text}`, which is no field, parameter or constant here",
            self.text(attr.name)
        );
        let make = self.severity();
        self.unsized_array = true;
        self.s.diags.push(make(Code::SizeExpression, span, message).maybe(near));
    }

    /// Whether a name is that of a field or parameter beside what is being checked.
    pub(super) fn is_sibling(&self, name: Symbol) -> bool {
        self.siblings.iter().any(|list| list.contains(&name))
    }

    /// How a mistake counts that the compilers of COM let pass.
    pub(super) fn severity(&self) -> fn(Code, Span, String) -> Diagnostic {
        if self.of_objects { Diagnostic::warning } else { Diagnostic::error }
    }

    /// What `string`, `ref` and the like ask of the type that they are applied to.
    pub(super) fn pointer_attributes(&mut self, attrs: &[Attr], ty: TypeId) {
        let kind = ["ref", "unique", "ptr"].iter().find_map(|kind| find(self.s, attrs, kind));
        let plain = matches!(
            self.model.ty(self.model.resolved(ty)),
            Type::Int { .. } | Type::Float(_) | Type::Bool | Type::Char | Type::Octet | Type::WideChar
        );
        if let Some(kind) = kind
            && plain
            && !self.samba
        {
            let message =
                format!("`{}` is for pointers, not for `{}`", self.text(kind.name), self.model.show(ty));
            self.error(Code::AttributeForm, kind.span, message);
        }
        let Some(string) = find(self.s, attrs, "string") else { return };
        let mut id = self.model.resolved(ty);
        let mut steps = 0;
        while let Type::Pointer(_, to) | Type::Array(to, _) | Type::Open(to) = self.model.ty(id) {
            id = self.model.resolved(*to);
            steps += 1;
            if steps > limits::NESTING_MAX {
                return;
            }
        }
        let wrong = matches!(
            self.model.ty(id),
            Type::Int { bits: 32 | 64, .. }
                | Type::Float(_)
                | Type::Bool
                | Type::Union { .. }
                | Type::Flat(..)
        );
        if wrong && !self.samba {
            let message = format!("`string` is for arrays of characters, not of `{}`", self.model.show(id));
            self.error(Code::AttributeForm, string.span, message);
        }
    }
}
