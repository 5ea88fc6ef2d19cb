//! C headers that a file imports: their types are those of the scope around the import.

use super::*;
use crate::dce;
use crate::pp;

impl Checker<'_> {
    /// Takes the types of a C header. Of other files nothing is looked up.
    pub(super) fn import(&mut self, literal: Symbol, span: Span) {
        let name = self.text(literal).trim_matches('"').to_owned();
        if !pp::is_header(std::path::Path::new(&name)) {
            return;
        }
        let includers: Vec<_> =
            self.s.map.file_index(span).map(|i| self.s.map.file(i).path.clone()).into_iter().collect();
        let Some(path) = pp::find(self.s, &name, false, &includers, false) else {
            if self.s.l4 && l4::is_header(&name) {
                return l4::warn_of_header(self.s, &name, span);
            }
            return pp::not_found(self.s, &name, span, false);
        };
        let file = match self.s.load(&path, Some(span)) {
            Ok(file) => file,
            Err(why) => {
                let message = format!("cannot read `{}`: {why}", path.display());
                return self.error(Code::Unreadable, span, message);
            }
        };
        let source = pp::preprocess(self.s, file);
        let (types, names) = dce::header(self.s, source);
        let first = self.model.absorb(types);
        for (name, id) in names {
            let folded = self.fold(name);
            // Declarations of the file itself go before, and one header may be imported often.
            if !self.scopes[self.current].entries.contains_key(&folded) {
                self.declare(Ident { name, span }, Entry::Type(TypeId(first + id.0), None));
            }
        }
    }
}
