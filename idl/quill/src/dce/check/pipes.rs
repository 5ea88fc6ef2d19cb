//! Pipes: elements that come one chunk after the other. Where a chunk ends means nothing, so they travel as a list.
//!
//! A pipe is a parameter and always there. Anywhere else it is a mistake, as it is in DCE.

use super::carried::Stands;
use super::*;

impl Checker<'_> {
    /// The list that a pipe of such elements is.
    pub(super) fn pipe(&mut self, of: &Spec, header: bool) -> TypeId {
        let mut element = self.spec(of, &[], header);
        if header {
            return self.model.add(Type::Foreign("the pipe", String::new()));
        }
        self.complete(element, of.span);
        if self.model.resolved(element) == self.void {
            self.error(Code::NotType, of.span, "the elements of a pipe cannot be `void`");
            element = self.error;
        }
        if self.piped(element).is_some() {
            self.error(Code::AttributeForm, of.span, "the elements of a pipe cannot be pipes");
            element = self.error;
        }
        // Each element is there, as a parameter is.
        let element = self.carried(element, &[], Stands::Parameter).0;
        let pipe = self.model.add(Type::Sequence(element, None));
        self.pipes.insert(pipe);
        pipe
    }

    /// Levels of pointers and arrays between a type and the pipe that it leads to, if it leads to one.
    fn piped(&self, ty: TypeId) -> Option<Vec<&Type>> {
        let (mut id, mut levels) = (self.model.resolved(ty), Vec::new());
        while levels.len() <= limits::NESTING_MAX {
            if self.pipes.contains(&id) {
                return Some(levels);
            }
            let level = self.model.ty(id);
            let (Type::Pointer(_, to) | Type::Array(to, _) | Type::Open(to)) = level else { return None };
            levels.push(level);
            id = self.model.resolved(*to);
        }
        None
    }

    /// Reports a pipe that is a field.
    pub(super) fn pipe_within(&mut self, ty: TypeId, name: Ident) {
        if self.piped(ty).is_some() {
            let message =
                format!("`{}` is a pipe, and a pipe is a parameter of its own", self.text(name.name));
            let help = "a list has a size beside it: a pointer with `size_is`";
            self.s.diags.push(Diagnostic::error(Code::AttributeForm, name.span, message).help(help));
        }
    }

    /// Reports a result that is a pipe.
    pub(super) fn pipe_as_result(&mut self, result: TypeId, name: Ident) {
        if self.piped(result).is_some() {
            let message = format!("`{}` cannot return a pipe", self.text(name.name));
            let help = "a pipe comes back as an `out` parameter";
            self.s.diags.push(Diagnostic::error(Code::AttributeForm, name.span, message).help(help));
        }
    }

    /// Reports a pipe that may be absent, or of which there are several.
    pub(super) fn pipe_as_parameter(&mut self, ty: TypeId, attrs: &[Attr], span: Span) {
        let Some(levels) = self.piped(ty) else { return };
        let is_there = match levels[..] {
            [] => true,
            [Type::Pointer(kind, _)] => matches!(kind, Pointer::Ref | Pointer::Unsaid),
            _ => false,
        };
        let sized = ["size_is", "max_is", "length_is", "first_is", "last_is", "string"];
        if !is_there || sized.iter().any(|attr| has(self.s, attrs, attr)) {
            let message = "a pipe is one parameter: it is always there, and no array";
            let help = "it says itself how much it brings; `max_size` says how much that is at most";
            self.s.diags.push(Diagnostic::error(Code::AttributeForm, span, message).help(help));
        }
    }
}
