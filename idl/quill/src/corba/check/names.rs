//! Scopes, and what a name in them stands for.

use super::*;

impl Checker<'_> {
    pub(super) fn open(&mut self, kind: ScopeKind, ident: Ident) -> usize {
        let path = self.path(ident);
        if path.len() > limits::PATH_BYTES_MAX {
            let max = limits::PATH_BYTES_MAX;
            let message = format!("this name and those of the modules around it have more than {max} bytes");
            self.s.diags.fatal(Diagnostic::error(Code::Limit, ident.span, message));
        }
        let mut entries = HashMap::new();
        if kind != ScopeKind::Operation {
            entries.insert(self.fold(ident.name), (Entry::Own, ident));
        }
        self.scopes.push(Scope { parent: self.current, kind, path, entries, inherited: HashMap::new() });
        self.scopes.len() - 1
    }

    pub(super) fn within<T>(&mut self, scope: usize, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.current, scope);
        let result = work(self);
        self.current = outer;
        result
    }

    /// Enters a name into the current scope; false when it clashes.
    pub(super) fn declare(&mut self, ident: Ident, entry: Entry) -> bool {
        self.declare_in(self.current, ident, entry)
    }

    pub(super) fn declare_in(&mut self, scope: usize, ident: Ident, entry: Entry) -> bool {
        let folded = self.fold(ident.name);
        let name = self.s.names.shared(ident.name);
        if let Some(&(old, first)) = self.scopes[scope].entries.get(&folded) {
            let diagnostic = match old {
                Entry::Poison => None,
                Entry::Use => self.declared_after_use(scope, ident, first, entry),
                Entry::Own => {
                    let message = format!("`{name}` is the name of the scope around it");
                    // A field that is named like its struct hides nothing that anyone could mean.
                    let field = entry == Entry::Instance && self.scopes[scope].kind == ScopeKind::Record;
                    let make: fn(Code, Span, String) -> Diagnostic =
                        if field { Diagnostic::warning } else { Diagnostic::error };
                    Some(make(Code::OwnName, ident.span, message).note(first.span, "the scope is this"))
                }
                _ if first.name == ident.name => {
                    let message = format!("`{name}` is declared twice");
                    Some(
                        Diagnostic::error(Code::Duplicate, ident.span, message)
                            .note(first.span, "first declared here"),
                    )
                }
                _ => {
                    let message = format!("`{name}` differs from `{}` only in case", self.text(first.name));
                    let diagnostic = Diagnostic::error(Code::CaseClash, ident.span, message);
                    Some(diagnostic.note(first.span, "the other is declared here"))
                }
            };
            let warned = diagnostic.as_ref().is_none_or(|d| d.severity == crate::diag::Severity::Warning);
            if let Some(diagnostic) = diagnostic {
                self.s.diags.push(diagnostic);
            }
            if !warned {
                return false;
            }
        }
        if entry == Entry::Callable
            && let Some(inherited) = self.scopes[scope].inherited.get(&folded).copied()
            && matches!(inherited.entry, Entry::Callable)
        {
            let message = format!("`{name}` is already inherited");
            let diagnostic = Diagnostic::error(Code::Inherited, ident.span, message);
            self.s.diags.push(diagnostic.note(inherited.ident.span, "it is inherited from here"));
            return false;
        }
        self.scopes[scope].entries.insert(folded, (entry, ident));
        true
    }

    pub(super) fn declared_after_use(
        &self,
        scope: usize,
        ident: Ident,
        used: Ident,
        entry: Entry,
    ) -> Option<Diagnostic> {
        let name = self.text(ident.name);
        let kind = self.scopes[scope].kind;
        let message = format!("`{name}` is declared where a `{}` from outside is used", self.text(used.name));
        // Fields named like their type are too common in data models to refuse.
        let harmless = entry == Entry::Instance && kind == ScopeKind::Record;
        let diagnostic = if harmless {
            if used.name != ident.name {
                return None;
            }
            Diagnostic::warning(Code::UsedBefore, ident.span, message)
        } else {
            Diagnostic::error(Code::UsedBefore, ident.span, message)
        };
        Some(diagnostic.note(used.span, "it is used here"))
    }

    /// Looks in one scope, without its parents.
    pub(super) fn find_in(&mut self, scope: usize, ident: Ident) -> Option<(Entry, Ident)> {
        let folded = self.fold(ident.name);
        match self.scopes[scope].entries.get(&folded) {
            Some(&(Entry::Use, _)) | None => {}
            Some(&(Entry::Own, own)) => {
                // The scope's own name means the scope, as seen from around it.
                let parent = self.scopes[scope].parent;
                if parent != scope {
                    return match self.scopes[parent].entries.get(&folded) {
                        Some(&(entry, _)) if !matches!(entry, Entry::Own | Entry::Use) => Some((entry, own)),
                        _ => None,
                    };
                }
            }
            Some(&found) => return Some(found),
        }
        let inherited = self.scopes[scope].inherited.get(&folded).copied()?;
        if let Some(rival) = inherited.rival {
            let message = format!("`{}` is ambiguous: two bases have it", self.text(ident.name));
            let diagnostic = Diagnostic::error(Code::Ambiguous, ident.span, message);
            let diagnostic =
                diagnostic.note(inherited.ident.span, "one is here").note(rival.span, "one is here");
            self.s.diags.push(diagnostic);
            return Some((Entry::Poison, ident));
        }
        Some((inherited.entry, inherited.ident))
    }

    /// What a name stands for; reports when it stands for nothing.
    pub(super) fn resolve(&mut self, name: &ScopedName) -> Entry {
        let first = name.parts[0];
        let Some((mut found, scope)) = self.nearest(name) else {
            return self.predefined_or_unknown(name, first, None);
        };
        if !name.absolute && scope != self.current {
            self.record_use(first);
        }
        self.same_case(first, found);
        for pair in name.parts.windows(2) {
            let (outer, part) = (pair[0], pair[1]);
            let inner = match found.0 {
                Entry::Poison => return Entry::Poison,
                Entry::Module(scope) | Entry::Interface(_, scope) | Entry::Value(_, scope) => Some(scope),
                Entry::Exception(_, scope) | Entry::Assembly(scope) => Some(scope),
                Entry::Type(_, scope) => scope,
                _ => None,
            };
            let Some(inner) = inner else {
                let message = format!("`{}` contains no names", self.text(outer.name));
                self.error(Code::NotScope, outer.span, message);
                return Entry::Poison;
            };
            match self.find_in(inner, part) {
                Some(in_scope) => found = in_scope,
                None => return self.predefined_or_unknown(name, part, Some(inner)),
            }
            self.same_case(part, found);
        }
        found.0
    }

    /// The entry, and its scope, that is nearest to the first part of a name: in the right case, and only without such a one,
    /// in another case.
    fn nearest(&mut self, name: &ScopedName) -> Option<((Entry, Ident), usize)> {
        let first = name.parts[0];
        let mut scope = if name.absolute { 0 } else { self.current };
        let mut other_case = None;
        loop {
            match self.find_in(scope, first) {
                Some(found) if found.1.name == first.name || found.0 == Entry::Poison => {
                    return Some((found, scope));
                }
                Some(found) => other_case = other_case.or(Some((found, scope))),
                None => {}
            }
            if scope == 0 {
                return other_case;
            }
            scope = self.scopes[scope].parent;
        }
    }

    /// The entry of a name that nobody has to declare; reports another one, whose `part` is not found.
    fn predefined_or_unknown(&mut self, name: &ScopedName, part: Ident, inner: Option<usize>) -> Entry {
        self.predefined(name).unwrap_or_else(|| {
            self.unknown(name, part, inner);
            Entry::Poison
        })
    }

    /// Reports a use in another case than that of the declaration.
    fn same_case(&mut self, used: Ident, (entry, declared): (Entry, Ident)) {
        if declared.name == used.name || entry == Entry::Poison {
            return;
        }
        let message = format!("`{}` is declared as `{}`", self.text(used.name), self.text(declared.name));
        let help =
            format!("write `{}`: names are used in the case of their declaration", self.text(declared.name));
        let diagnostic = Diagnostic::error(Code::CaseUse, used.span, message);
        self.s.diags.push(diagnostic.note(declared.span, "declared here").help(help));
    }

    pub(super) fn record_use(&mut self, ident: Ident) {
        let folded = self.fold(ident.name);
        let mut scope = self.current;
        loop {
            let kind = self.scopes[scope].kind;
            if matches!(kind, ScopeKind::Global | ScopeKind::Module) {
                return;
            }
            self.scopes[scope].entries.entry(folded).or_insert((Entry::Use, ident));
            if !matches!(kind, ScopeKind::Record | ScopeKind::Operation) {
                return;
            }
            scope = self.scopes[scope].parent;
        }
    }

    pub(super) fn unknown(&mut self, name: &ScopedName, part: Ident, inside: Option<usize>) {
        if self.s.diags.stop()
            || self.s.incomplete
            || name.parts.iter().any(|p| self.poisoned.contains(&p.name))
        {
            return;
        }
        // Names in reach, innermost scope first.
        let mut candidates = Vec::new();
        let mut scope = inside.unwrap_or(self.current);
        loop {
            let here = &self.scopes[scope];
            let visible =
                |e: &Entry| !matches!(e, Entry::Use | Entry::Poison | Entry::Instance | Entry::Callable);
            candidates.extend(here.entries.values().filter(|(e, _)| visible(e)).map(|(_, i)| i.name));
            candidates.extend(here.inherited.values().filter(|i| visible(&i.entry)).map(|i| i.ident.name));
            if scope == 0 || inside.is_some() || candidates.len() > 20_000 {
                break;
            }
            scope = here.parent;
        }
        candidates.sort();
        let text = self.s.names.shared(part.name);
        let words = [
            "string", "sequence", "boolean", "octet", "long", "short", "unsigned", "double", "float",
            "wstring",
        ];
        let all = candidates.iter().map(|&n| self.s.names.text(n));
        let near = nearest(&text, all.chain(if inside.is_none() { words.to_vec() } else { Vec::new() }));
        let message = match inside {
            Some(scope) => format!("`{text}` is not declared in `{}`", self.scopes[scope].path),
            None => format!("`{text}` is not declared"),
        };
        let mut diagnostic = Diagnostic::error(Code::Unknown, part.span, message).maybe(near);
        if near.is_none() && inside.is_none() {
            let help = match &*text {
                "int" => Some("`long` is the whole number of 32 bits"),
                "bool" => Some("the type of truth values is `boolean`"),
                "byte" => Some("the type of bytes is `octet`"),
                "true" | "false" => Some("truth values are written `TRUE` and `FALSE`"),
                _ => None,
            };
            if let Some(help) = help {
                diagnostic = diagnostic.help(help);
            }
        }
        self.s.diags.push(diagnostic);
        // One message for a name, however often it is used.
        self.poisoned.insert(part.name);
    }

    /// Names that need no declaration: those that every ORB supplies in the module CORBA, and `fpage`.
    pub(super) fn predefined(&mut self, name: &ScopedName) -> Option<Entry> {
        let texts: Vec<String> = name.parts.iter().map(|p| self.text(p.name).to_owned()).collect();
        let in_corba = self.scopes[self.current].path.split("::").next() == Some("CORBA");
        let last = match texts.as_slice() {
            [module, last] if module == "CORBA" => last.as_str(),
            [last] if in_corba && !name.absolute => last.as_str(),
            [last] if last == "fpage" && !name.absolute => {
                return Some(Entry::Type(self.model.add(Type::Fpage), None));
            }
            [last] if self.s.l4 && !name.absolute => {
                let ty = l4::ty(last)?;
                return Some(Entry::Type(self.model.add(ty), None));
            }
            _ => return None,
        };
        let ty = match last {
            "TypeCode" => return Some(Entry::Type(self.model.type_code().1, None)),
            "TCKind" => return Some(Entry::Type(self.model.type_code().0, None)),
            "StringValue" | "WStringValue" => {
                let wide = last.starts_with('W');
                Type::Shared(self.model.add(Type::Str { wide, bound: None, shown: Shown::default() }))
            }
            "Principal" | "NamedValue" | "NVList" | "Context" | "Request" | "ORB" | "Policy" | "Current"
            | "DomainManager" | "ConstructionPolicy" | "InterfaceDef" | "ImplementationDef"
            | "AbstractBase" | "PolicyList" | "Environment" | "ServerRequest" => {
                Type::Foreign("the pseudo object", last.into())
            }
            "ServiceType" | "ServiceOption" | "DefinitionKind" => Type::Int { bits: 16, signed: false },
            "ServiceDetailType" | "PolicyType" | "Flags" => Type::Int { bits: 32, signed: false },
            "Identifier" | "RepositoryId" | "ScopedName" | "VersionSpec" | "ORBid" | "OAid" => {
                Type::Str { wide: false, bound: None, shown: Shown::default() }
            }
            "Object" => Type::Object(None),
            _ => {
                let element = match last.strip_suffix("Seq")? {
                    "Octet" => Base::Octet,
                    "Any" => Base::Any,
                    "Boolean" => Base::Boolean,
                    "Char" => Base::Char,
                    "WChar" => Base::WideChar,
                    "Short" => Base::Int(16, true),
                    "UShort" => Base::Int(16, false),
                    "Long" => Base::Int(32, true),
                    "ULong" => Base::Int(32, false),
                    "LongLong" => Base::Int(64, true),
                    "ULongLong" => Base::Int(64, false),
                    "Float" => Base::Float(32),
                    "Double" => Base::Float(64),
                    text @ ("String" | "WString") => {
                        let string = self.model.add(Type::Str {
                            wide: text == "WString",
                            bound: None,
                            shown: Shown::default(),
                        });
                        return Some(Entry::Type(self.model.add(Type::Sequence(string, None)), None));
                    }
                    _ => return None,
                };
                let element = self.basic(element);
                Type::Sequence(element, None)
            }
        };
        Some(Entry::Type(self.model.add(ty), None))
    }
}
