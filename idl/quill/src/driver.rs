//! From a path to a checked model: reads, preprocesses, chooses the dialect, parses, checks.

use std::path::{Path, PathBuf};

use crate::acf;
use crate::codes::Code;
use crate::corba;
use crate::cursor::Cursor;
use crate::dce;
use crate::diag::{Diagnostic, Diags};
use crate::emit;
use crate::kernel::{KernelPart, Linux};
use crate::l4;
use crate::layout::{self, InterfaceLayout};
use crate::lex::{Kind, Token};
use crate::lookalike;
use crate::model::Model;
use crate::parts;
use crate::pp;
use crate::session::{Dialect, Options, Session};

/// A file that cannot be used at all, for reasons outside of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable(pub String);

/// A run's result.
#[derive(Debug)]
pub struct Compiled {
    /// Messages, files, names.
    pub session: Session,
    /// The dialect that was chosen.
    pub dialect: Dialect,
    /// What the file declares; trustworthy when [`Compiled::accepted`].
    pub model: Model,
}

impl Compiled {
    /// Whether the input has no errors.
    pub fn accepted(&self) -> bool {
        self.session.diags.errors() == 0
    }

    /// The layout of every message; what cannot be carried becomes an error.
    pub fn layout(&mut self, kernel: &dyn KernelPart) -> Vec<InterfaceLayout> {
        match layout::layout(&self.model, kernel) {
            Ok(layouts) => {
                if !kernel.takes_cache_hints() {
                    self.note_cache_hints(kernel);
                }
                if !kernel.keeps_shared() {
                    self.note_shared(kernel);
                }
                layouts
            }
            Err(refused) => {
                refused.into_iter().for_each(|d| self.session.diags.push(d));
                Vec::new()
            }
        }
    }

    /// Says of which hints nothing comes.
    fn note_cache_hints(&mut self, kernel: &dyn KernelPart) {
        let own = self.model.interfaces.iter().filter(|i| !i.imported);
        for operation in own.flat_map(|i| &i.operations) {
            for param in operation.params.iter().filter(|p| p.caches.is_some()) {
                let message = format!("`caches` of `{}` has no effect over `{}`", param.name, kernel.name());
                self.session.diags.push(Diagnostic::warning(Code::Attribute, operation.span, message));
            }
        }
    }

    /// Says what `ptr` comes to where nobody keeps what several pointers share.
    fn note_shared(&mut self, kernel: &dyn KernelPart) {
        let shares = emit::travel::sharing(&self.model);
        let own = self.model.interfaces.iter().filter(|i| !i.imported);
        for operation in own.flat_map(|i| &i.operations) {
            let is_shared = |param: &&crate::model::Param| shares[self.model.resolved(param.ty).0 as usize];
            for param in operation.params.iter().filter(is_shared) {
                let (param, kernel) = (&param.name, kernel.name());
                let message = format!(
                    "`ptr` in `{param}` is carried as `unique` over `{kernel}`: what two of these pointers share arrives twice"
                );
                self.session.diags.push(Diagnostic::warning(Code::Attribute, operation.span, message));
            }
        }
    }

    /// The Rust text over a kernel; what Rust cannot hold becomes an error.
    pub fn rust(&mut self, kernel: &dyn KernelPart) -> String {
        self.rust_for(kernel, emit::rust::Purpose::Stubs)
    }

    /// The Rust text over a kernel, with a self-test of all interfaces.
    pub fn rust_selftest(&mut self, kernel: &dyn KernelPart) -> String {
        self.rust_for(kernel, emit::rust::Purpose::SelfTest)
    }

    fn rust_for(&mut self, kernel: &dyn KernelPart, purpose: emit::rust::Purpose) -> String {
        if let Some(&(span, _)) = self.model.quotes.first() {
            let message = "`cpp_quote` has no effect in Rust: its text is for headers of C";
            self.session.diags.push(Diagnostic::warning(Code::Attribute, span, message));
        }
        parts::emit_rust(&self.model, kernel, purpose).unwrap_or_else(|refused| {
            refused.into_iter().for_each(|d| self.session.diags.push(d));
            String::new()
        })
    }

    /// The C text over a kernel; what C cannot hold becomes an error.
    pub fn c(&mut self, kernel: &dyn KernelPart) -> String {
        parts::emit_c(&self.model, kernel).unwrap_or_else(|refused| {
            refused.into_iter().for_each(|d| self.session.diags.push(d));
            String::new()
        })
    }

    /// The C text over L4's V4 API, with a self-test of all interfaces.
    pub fn c_selftest(&mut self) -> String {
        emit::c::emit_selftest(&self.model).unwrap_or_else(|refused| {
            refused.into_iter().for_each(|d| self.session.diags.push(d));
            String::new()
        })
    }

    /// A program in C that stands between a client and a server of each interface over sockets, or why C cannot have it.
    pub fn c_relay(&self) -> Result<String, Vec<Diagnostic>> {
        emit::c::emit_relay(&self.model)
    }

    /// A program in Rust and one in C that say which values the file's names have; see [`crate::emit::values`].
    pub fn values(&mut self) -> [String; 2] {
        // They are no headers any more.
        let (rust, c) = (self.rust(&Linux), self.c(&Linux).replacen("#pragma once\n", "", 1));
        [rust + &emit::rust::values::program(&self.model), c + &emit::c::values::program(&self.model)]
    }

    /// All messages as text.
    pub fn messages(&self) -> String {
        crate::diag::render(&self.session.diags, &self.session.map)
    }

    /// Files that were read, for depfiles.
    pub fn files(&self) -> Vec<PathBuf> {
        let real = self.session.map.files().iter().filter(|f| !f.path.to_string_lossy().starts_with('<'));
        real.map(|f| f.path.clone()).collect()
    }
}

/// Compiles a file on disk.
pub fn compile(path: &Path, options: Options) -> Result<Compiled, Unusable> {
    let mut session = Session::new(options);
    let file = session
        .load(path, None)
        .map_err(|why| Unusable(format!("cannot read `{}`: {why}", path.display())))?;
    Ok(compile_loaded(session, file))
}

/// Compiles text, under a path that need not exist.
pub fn compile_text(path: &Path, text: &[u8], options: Options) -> Compiled {
    let mut session = Session::new(options);
    match session.load_bytes(path, text, None) {
        Ok(file) => compile_loaded(session, file),
        Err(why) => {
            let span = crate::source::Span::default();
            session.diags.fatal(crate::diag::Diagnostic::error(crate::codes::Code::Limit, span, why));
            Compiled { session, dialect: Dialect::Corba, model: Model::default() }
        }
    }
}

/// Compiles a file that a session has loaded.
pub fn compile_loaded(mut session: Session, file: usize) -> Compiled {
    let source = pp::preprocess(&mut session, file);
    let path = session.map.file(file).path.clone();
    session.l4 = l4::is_l4(&session, &source.tokens);
    let dialect = match session.options.dialect {
        Some(dialect) => dialect,
        None => guess_dialect(&session, &path, &source.tokens),
    };
    let lookalike = lookalike::find(&session, &source.tokens);
    let model = if session.diags.stop() {
        Model::default()
    } else {
        match dialect {
            Dialect::Corba => {
                let mut cursor = Cursor::new(&mut session, source.tokens).with_escapes();
                let decls = corba::parse::parse(&mut cursor);
                let poisoned = std::mem::take(&mut cursor.poisoned);
                let mut model = corba::check::check(&mut session, &decls, &source.pragmas, poisoned, file);
                acf::present(&mut session, file, &mut model);
                model
            }
            Dialect::Dce => dce::compile(&mut session, source),
        }
    };
    if let Some(other) = lookalike
        && session.diags.errors() > 0
    {
        session.diags = Diags::default();
        let message = format!("this is {}, a language of its own that quill does not read", other.name);
        session.diags.push(Diagnostic::error(Code::OtherLanguage, other.span, message));
    }
    Compiled { session, dialect, model }
}

/// Everything that quill does with a text, for fuzzers and tests: any input at all ends here, in messages or in code.
///
/// The text can include and import itself as `t.idl`. True when it was accepted.
pub fn exercise(text: &[u8], dialect: Dialect) -> bool {
    let Some(mut compiled) = read(text, dialect) else { return false };
    if compiled.accepted() {
        for kernel in crate::kernel::ALL {
            let layouts = compiled.layout(kernel);
            layout::text(&compiled.model, &layouts, kernel);
            layout::costs_text(&compiled.model, &layouts, kernel);
            let _ = layout::plot(&compiled.model, &[layout::Part { kernel, layouts }], None);
            if compiled.accepted() {
                compiled.rust(kernel);
                compiled.rust_selftest(kernel);
            }
            if compiled.accepted() && parts::c(kernel).is_some() {
                compiled.c(kernel);
            }
        }
    }
    verdict(&compiled)
}

/// Compiles up to the checked model: a hundred times as fast as `exercise`, since no code is made.
pub fn exercise_front_end(text: &[u8], dialect: Dialect) -> bool {
    read(text, dialect).is_some_and(|compiled| verdict(&compiled))
}

fn read(text: &[u8], dialect: Dialect) -> Option<Compiled> {
    let path = Path::new("t.idl");
    let mut session = Session::new(Options { dialect: Some(dialect), ..Options::default() });
    session.virtual_files.insert(path.into(), text.to_vec());
    let file = session.load(path, None).ok()?;
    Some(compile_loaded(session, file))
}

fn verdict(compiled: &Compiled) -> bool {
    let accepted = compiled.accepted();
    assert_eq!(compiled.messages().contains("error["), !accepted, "a verdict and its messages disagree");
    accepted
}

/// Finds the dialect of a file. Brackets before a declaration, `import "…"`, `cpp_quote` and pointers are DCE's;
/// `module`, `::`, `@`, `sequence<` and the like are CORBA's. A file that shows neither is CORBA's, unless an
/// attribute file goes with it.
fn guess_dialect(session: &Session, path: &Path, tokens: &[Token]) -> Dialect {
    let text = |i: usize| tokens.get(i).map_or("", |t| session.names.text(t.text));
    let kind = |i: usize| tokens.get(i).map_or(Kind::Eof, |t| t.kind);
    if session.l4
        && let Some(is_corba) = l4::is_corba(session, tokens)
    {
        return if is_corba { Dialect::Corba } else { Dialect::Dce };
    }
    for i in 0..tokens.len().min(200_000) {
        let before = if i == 0 { ";" } else { text(i - 1) };
        let dce = match text(i) {
            "[" if kind(i) == Kind::Punct => {
                matches!(before, ";" | "{" | "}" | "(" | "," | "typedef" | ")" | ":")
            }
            "cpp_quote" | "midl_pragma" | "coclass" | "dispinterface" | "importlib" | "pyhelper" => {
                text(i + 1) == "(" || kind(i + 1) == Kind::Ident
            }
            "import" => kind(i + 1) == Kind::Str && matches!(text(i + 2), ";" | ","),
            "*" => {
                kind(i) == Kind::Punct
                    && matches!(kind(i + 1), Kind::Ident)
                    && matches!(text(i + 2), ";" | "," | ")" | "[")
            }
            "handle_t" | "error_status_t" | "hyper" | "small" | "HRESULT" | "unsigned8" | "unsigned16"
            | "unsigned32" | "signed32" | "__int64" | "DWORD" => kind(i + 1) == Kind::Ident,
            "struct" | "union" | "enum" => {
                text(i + 1) == "{"
                    || (before == "typedef" && kind(i + 1) == Kind::Ident && kind(i + 2) == Kind::Ident)
            }
            "unsigned" => matches!(text(i + 1), "char" | "int" | "hyper" | "small"),
            // No type of CORBA's, but C's.
            "int" => kind(i + 1) == Kind::Ident && kind(i) == Kind::Ident,
            // DCE's interfaces end without a semicolon.
            "}" => kind(i) == Kind::Punct && kind(i + 1) == Kind::Eof,
            _ => false,
        };
        if dce && kind(i) != Kind::Str {
            return Dialect::Dce;
        }
        let corba = match text(i) {
            "module" | "valuetype" | "attribute" | "exception" | "oneway" | "native" | "valuebase"
            | "component" => kind(i) == Kind::Ident && kind(i + 1) == Kind::Ident,
            "readonly" => text(i + 1) == "attribute",
            "sequence" => text(i + 1) == "<",
            "::" => true,
            "@" => kind(i + 1) == Kind::Ident,
            "in" | "out" | "inout" => matches!(before, "(" | ",") && (kind(i + 1) == Kind::Ident),
            "raises" => text(i + 1) == "(",
            "octet" | "any" => kind(i + 1) == Kind::Ident,
            _ => false,
        };
        if corba && matches!(kind(i), Kind::Ident | Kind::Punct) {
            return Dialect::Corba;
        }
    }
    let has_acf = session.options.acf.is_some() || session.exists(&path.with_extension("acf"));
    if has_acf { Dialect::Dce } else { Dialect::Corba }
}
