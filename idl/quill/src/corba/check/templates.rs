//! Instances of template modules (OMG IDL 4.2, 7.4.12).
//!
//! An instance is a module in which the formal parameters stand for the actual ones, and in which the template's body is then checked as
//! if it were written there. Names in the body that are neither are looked up around the template; the actual parameters are
//! looked up around the instance.

use std::rc::Rc;

use super::*;
use crate::corba::ast::{Actual, FormalKind, Instance, Template};

impl Checker<'_> {
    pub(super) fn template(&mut self, template: &Rc<Template>) {
        let scope = self.current;
        if self.declare(template.name, Entry::Template(self.templates.len())) {
            self.templates.push((Rc::clone(template), scope));
        }
    }

    pub(super) fn instance(&mut self, instance: &Instance) {
        let name = last(&instance.template);
        let index = match self.resolve(&instance.template) {
            Entry::Template(index) => index,
            entry => {
                if entry != Entry::Poison {
                    let message = format!("`{}` is no template module", self.text(name.name));
                    self.error(Code::NotTemplate, instance.template.span, message);
                }
                self.declare(instance.name, Entry::Poison);
                return;
            }
        };
        let (template, around) = (Rc::clone(&self.templates[index].0), self.templates[index].1);
        let (wanted, given) = (template.formals.len(), instance.actuals.len());
        if wanted != given {
            let message = format!("`{}` has {wanted} parameters, not {given}", self.text(name.name));
            let diagnostic = Diagnostic::error(Code::Parameter, instance.template.span, message);
            self.s.diags.push(diagnostic.note(template.name.span, "it is declared here"));
            self.declare(instance.name, Entry::Poison);
            return;
        }
        if !self.may_instantiate(index, template.size, instance) {
            return;
        }
        let scope = self.open(ScopeKind::Module, instance.name);
        if !self.declare(instance.name, Entry::Module(scope)) {
            return;
        }
        self.scopes[scope].parent = around;
        for (formal, actual) in template.formals.iter().zip(&instance.actuals) {
            let entry = self.argument(&formal.kind, actual, scope);
            self.declare_in(scope, formal.name, entry);
        }
        let site = self.s.diags.site.unwrap_or(instance.name.span);
        let outer = self.s.diags.site.replace(site);
        self.instances.push(index);
        self.within(scope, |c| c.decls(&template.body));
        self.instances.pop();
        self.s.diags.site = outer;
    }

    /// Whether there is an end to it, in time.
    fn may_instantiate(&mut self, index: usize, size: usize, instance: &Instance) -> bool {
        if self.instances.contains(&index) {
            let message = format!("`{}` contains itself", self.text(last(&instance.template).name));
            self.error(Code::Incomplete, instance.template.span, message);
            return false;
        }
        self.instance_tokens += size;
        if self.instance_tokens > limits::INSTANCE_TOKENS_MAX {
            let max = limits::INSTANCE_TOKENS_MAX;
            let message = format!("the instances of template modules take more than {max} words");
            self.s.diags.fatal(Diagnostic::error(Code::Limit, instance.name.span, message));
            return false;
        }
        true
    }

    /// What a formal parameter stands for in the scope of an instance.
    fn argument(&mut self, kind: &FormalKind, actual: &Actual, scope: usize) -> Entry {
        match (kind, actual) {
            (FormalKind::Const(ty), _) => self.constant_argument(ty, actual, scope),
            (_, Actual::Type(ty)) => self.type_argument(kind, ty, scope),
            (_, Actual::Value(value)) => {
                self.error(Code::Parameter, value.span, format!("{} is needed here", needed(kind)));
                Entry::Poison
            }
        }
    }

    fn constant_argument(&mut self, ty: &ast::Type, actual: &Actual, scope: usize) -> Entry {
        let named;
        let expr = match actual {
            Actual::Value(expr) => expr,
            Actual::Type(ast::Type { kind: TypeKind::Named(name), span }) => {
                named = Expr { items: vec![(Item::Name(name.clone()), *span)], span: *span };
                &named
            }
            Actual::Type(ty) => {
                self.error(Code::Parameter, ty.span, "a constant is needed here");
                return Entry::Poison;
            }
        };
        let id = self.within(scope, |c| c.constant_type(ty));
        let value = self.eval(expr, id);
        let value = value::convert(&self.model, &mut self.s.diags, value, id, expr.span);
        self.arguments.push(value);
        Entry::Argument(self.arguments.len() - 1)
    }

    fn type_argument(&mut self, kind: &FormalKind, ty: &ast::Type, scope: usize) -> Entry {
        let entry = match &ty.kind {
            TypeKind::Named(name) => self.resolve(name),
            TypeKind::Constructed(..) => {
                let message = "a type with a body cannot stand here without a name";
                self.error(Code::Anonymous, ty.span, message);
                return Entry::Poison;
            }
            _ => {
                let id = self.ty(ty);
                if matches!(self.model.ty(id), Type::Void) {
                    self.no_void(id, ty.span, "a parameter of a template module");
                    return Entry::Poison;
                }
                Entry::Type(id, None)
            }
        };
        if entry == Entry::Poison || self.fits(kind, entry, scope) {
            return entry;
        }
        self.error(Code::Parameter, ty.span, format!("{} is needed here", needed(kind)));
        Entry::Poison
    }

    fn fits(&mut self, kind: &FormalKind, entry: Entry, scope: usize) -> bool {
        let of = match entry {
            Entry::Type(id, _) => Some(self.model.resolved(id)),
            _ => None,
        };
        let of = of.map(|id| self.model.ty(id).clone());
        match (kind, entry, of) {
            (_, Entry::Type(..), Some(Type::Error)) => true,
            (FormalKind::Type, Entry::Type(..) | Entry::Interface(..) | Entry::Value(..), _) => true,
            (FormalKind::Interface, Entry::Interface(..), _) => true,
            (FormalKind::Value, Entry::Value(..), _) => true,
            (FormalKind::Exception, Entry::Exception(..), _) => true,
            (FormalKind::Struct, _, Some(Type::Struct(..))) => true,
            (FormalKind::Union, _, Some(Type::Union { .. } | Type::Flat(..))) => true,
            (FormalKind::Enum, _, Some(Type::Enum(..))) => true,
            (FormalKind::Sequence(None), _, Some(Type::Sequence(..))) => true,
            (FormalKind::Sequence(Some(wanted)), _, Some(Type::Sequence(element, bound))) => {
                let wanted = self.within(scope, |c| c.ty(wanted));
                let Type::Sequence(of, limit) = *self.model.ty(wanted) else { return true };
                let shown = |c: &Self, id| c.model.show(c.model.resolved(id));
                bound == limit && shown(self, of) == shown(self, element)
            }
            _ => false,
        }
    }
}

fn needed(kind: &FormalKind) -> &'static str {
    match kind {
        FormalKind::Type => "a type",
        FormalKind::Interface => "an interface",
        FormalKind::Value => "a value type",
        FormalKind::Struct => "a struct",
        FormalKind::Union => "a union",
        FormalKind::Enum => "an enum",
        FormalKind::Exception => "an exception",
        FormalKind::Sequence(None) => "a sequence",
        FormalKind::Sequence(Some(_)) => "a sequence of just that type",
        FormalKind::Const(_) => "a constant",
    }
}
