//! The meaning of a name: by the scopes around it, as the dialects have it, or by what is left if a text is not whole.

use std::collections::{HashMap, HashSet};

use quill::lex::Kind;
use quill::session::{Dialect, Session};

use crate::outline::{Outline, Sort, plain};

/// Declarations by their paths.
pub struct Names {
    paths: HashMap<String, Vec<usize>>,
    /// By the last part of the path alone.
    lasts: HashMap<String, Vec<usize>>,
    dialect: Dialect,
}

/// Interfaces looked at for what they inherit, for one name.
const BASES_MAX: usize = quill::limits::BASES_MAX;

impl Names {
    /// The names of an outline.
    pub fn new(outline: &Outline) -> Names {
        let mut names = Names { paths: HashMap::new(), lasts: HashMap::new(), dialect: outline.dialect };
        for (index, symbol) in outline.symbols.iter().enumerate() {
            let (path, last) = (names.fold(&symbol.path), names.fold(&symbol.name));
            names.paths.entry(path).or_default().push(index);
            // Fields and operations are named only where they are declared.
            if !matches!(symbol.sort, Sort::Field | Sort::Operation | Sort::Attribute) {
                names.lasts.entry(last).or_default().push(index);
            }
        }
        names
    }

    fn fold(&self, name: &str) -> String {
        if self.dialect == Dialect::Corba { name.to_ascii_lowercase() } else { name.to_owned() }
    }

    /// The declaration of the name at token `at` of the list `list`.
    pub fn at(&self, session: &Session, outline: &Outline, list: usize, at: usize) -> Option<usize> {
        let tokens = &outline.lists[list];
        let token = tokens[at];
        if token.kind != Kind::Ident {
            return None;
        }
        if let Some(own) = outline.symbols.iter().position(|s| s.span == token.span) {
            return Some(match outline.symbols[own].sort {
                Sort::Forward => {
                    self.best(outline, self.paths.get(&self.fold(&outline.symbols[own].path))?)?
                }
                _ => own,
            });
        }
        let word = |at: usize| session.text(&tokens[at]);
        let mut parts = vec![plain(word(at), self.dialect).to_owned()];
        let mut from = at;
        while from >= 2 && word(from - 1) == "::" && tokens[from - 2].kind == Kind::Ident {
            from -= 2;
            parts.insert(0, plain(word(from), self.dialect).to_owned());
        }
        let absolute = from >= 1 && word(from - 1) == "::";
        let scope = if absolute { None } else { scope_of(outline, list, at) };
        let found = self.resolve(outline, scope, &parts, &mut HashSet::new());
        found.or_else(|| self.best(outline, self.lasts.get(&self.fold(parts.last()?))?))
    }

    /// Meaning of a name in a scope: there, in what it inherits, or further out.
    fn resolve(
        &self,
        outline: &Outline,
        mut scope: Option<usize>,
        parts: &[String],
        seen: &mut HashSet<usize>,
    ) -> Option<usize> {
        loop {
            if let Some(first) = self.within(outline, scope, &parts[0], seen) {
                return parts[1..].iter().try_fold(first, |scope, part| {
                    self.within(outline, Some(scope), part, &mut HashSet::new())
                });
            }
            scope = outline.symbols[scope?].parent;
        }
    }

    /// Finds a name in a scope or in what that inherits.
    fn within(
        &self,
        outline: &Outline,
        scope: Option<usize>,
        name: &str,
        seen: &mut HashSet<usize>,
    ) -> Option<usize> {
        let Some(scope) = scope else { return self.best(outline, self.paths.get(&self.fold(name))?) };
        let mut waiting = vec![scope];
        let mut budget = BASES_MAX;
        while let Some(scope) = waiting.pop() {
            if !seen.insert(scope) || budget == 0 || seen.len() > BASES_MAX {
                continue;
            }
            budget -= 1;
            let symbol = &outline.symbols[scope];
            let path = self.fold(&format!("{}::{name}", symbol.path));
            if let Some(found) = self.paths.get(&path).and_then(|all| self.best(outline, all)) {
                return Some(found);
            }
            // Bases are named from where the interface stands, and inherit nothing by themselves here.
            let bases = symbol.bases.iter().rev();
            waiting.extend(bases.filter_map(|base| self.outward(outline, symbol.parent, base)));
        }
        None
    }

    /// Meaning of the name of a base, looked for in modules only.
    fn outward(&self, outline: &Outline, mut scope: Option<usize>, parts: &[String]) -> Option<usize> {
        let name = parts.join("::");
        loop {
            let path = match scope {
                Some(scope) => format!("{}::{name}", outline.symbols[scope].path),
                None => name.clone(),
            };
            if let Some(found) = self.paths.get(&self.fold(&path)) {
                return self.best(outline, found);
            }
            scope = outline.symbols[scope?].parent;
        }
    }

    /// The definition among several declarations with one name.
    fn best(&self, outline: &Outline, all: &[usize]) -> Option<usize> {
        let rank = |&&index: &&usize| match outline.symbols[index].sort {
            Sort::Forward => 2,
            // In DCE's files a struct and its other name may be one word.
            Sort::Typedef => 1,
            _ => 0,
        };
        all.iter().min_by_key(rank).copied()
    }
}

/// The innermost body that a token is in.
fn scope_of(outline: &Outline, list: usize, at: usize) -> Option<usize> {
    let around = |body: Option<(usize, usize, usize)>| {
        body.is_some_and(|(of, first, end)| of == list && first <= at && at <= end)
    };
    // Inner bodies stand behind outer ones.
    outline.symbols.iter().rposition(|symbol| around(symbol.body))
}
