//! A run of quill over an open text.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use quill::diag::Diagnostic;
use quill::driver::{self, Compiled};
use quill::layout::{self, InterfaceLayout};
use quill::lex::{Kind, Token};
use quill::limits;
use quill::pp;
use quill::session::{Dialect, Session};
use quill::source::{SourceFile, SourceMap, Span};

use crate::documents::Document;
use crate::outline::Outline;
use crate::resolve::Names;
use crate::settings::Settings;

/// Knowledge about a text.
pub struct Analysis {
    /// The result of quill.
    pub compiled: Compiled,
    /// Where values lie in messages, or why they do not.
    pub layouts: Result<Vec<InterfaceLayout>, Vec<Diagnostic>>,
    /// The text among the files of that run; `None` if quill did not read it.
    pub own: Option<usize>,
    /// The files of `outline`. The text is the first.
    pub scan: Session,
    /// Its declarations.
    pub outline: Outline,
    /// Meanings of names.
    pub names: Names,
}

impl Analysis {
    /// Compiles a document, with the other open ones in the places of files. The error is why nothing can be said.
    pub fn new<'a>(
        document: &Document,
        all: impl Iterator<Item = &'a Document>,
        settings: &Settings,
    ) -> Result<Analysis, String> {
        let mut session = Session::new(settings.options.clone());
        session.virtual_files.extend(all.map(|d| (d.path.clone(), d.text.clone().into_bytes())));
        let mut scan = Session::new(settings.options.clone());
        scan.virtual_files.clone_from(&session.virtual_files);
        // An attribute file says something only about the file that it is beside.
        let is_acf = document.path.extension().is_some_and(|e| e == "acf");
        let main = if is_acf { document.path.with_extension("idl") } else { document.path.clone() };
        let file = session.load(&main, None)?;
        let mut compiled = driver::compile_loaded(session, file);
        let layouts = match compiled.accepted() {
            true if settings.kernel_is_asked_for => Ok(compiled.layout(settings.kernel)),
            true => layout::layout(&compiled.model, settings.kernel),
            false => Ok(Vec::new()),
        };
        let own = compiled.session.map.files().iter().position(|f| f.path == document.path);
        let outline = outline(&mut scan, &main, compiled.dialect)?;
        let names = Names::new(&outline);
        Ok(Analysis { compiled, layouts, own, scan, outline, names })
    }

    /// Whether a change of a file may change what is known.
    pub fn depends_on(&self, path: &Path) -> bool {
        let files = self.compiled.session.map.files();
        let same = |f: &SourceFile| f.path == path || std::fs::canonicalize(&f.path).is_ok_and(|p| p == path);
        self.compiled.session.incomplete
            || path.extension().is_some_and(|e| e == "acf")
            || files.iter().any(same)
    }

    /// The text, if it is what was compiled and no attribute file.
    pub fn main(&self) -> Option<&SourceFile> {
        (self.own == Some(0)).then(|| self.scan.map.file(0))
    }

    /// The name at a byte of the text: its token among those of the text.
    pub fn name_at(&self, offset: usize) -> Option<usize> {
        let place = self.main()?.start + offset as u32;
        let tokens = self.outline.lists.first()?;
        let covers = |t: &Token, end: u32| t.span.ctx == 0 && t.span.lo <= place && place < end;
        let names = || tokens.iter().enumerate().filter(|(_, t)| t.kind == Kind::Ident);
        let found = names().find(|(_, t)| covers(t, t.span.hi));
        found.or_else(|| names().find(|(_, t)| covers(t, t.span.hi + 1))).map(|(at, _)| at)
    }

    /// The macro at a byte of the text: the place of its name, and that of its definition.
    pub fn macro_at(&self, offset: usize) -> Option<(Span, Span)> {
        let place = self.main()?.start + offset as u32;
        let tokens = self.outline.lists.first()?.iter().filter(|t| t.span.ctx != 0);
        tokens
            .filter_map(|t| outermost(&self.scan.map, t.span))
            .find(|(call, _)| call.lo <= place && place <= call.hi)
    }

    /// The file that is named at a byte of the text, if one is included or imported there.
    pub fn included_at(&self, offset: usize) -> Option<PathBuf> {
        let main = self.main()?;
        let offset = (0..=offset.min(main.text.len())).rev().find(|&at| main.text.is_char_boundary(at))?;
        let (before, behind) = main.text.split_at(offset);
        let start = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let end = offset + behind.find(['\n', '\r']).unwrap_or(behind.len());
        let line = &main.text[start..end];
        let words = line.trim_start().trim_start_matches('#').trim_start();
        if !words.starts_with("include") && !words.starts_with("import") {
            return None;
        }
        let (name, system) = quoted(line, offset - start)?;
        pp::find(&self.scan, name, system, std::slice::from_ref(&main.path), false)
    }
}

/// The name between quotes or angle brackets that a byte of a line is in, or the first one.
fn quoted(line: &str, offset: usize) -> Option<(&str, bool)> {
    let (mut first, mut at) = (None, 0);
    while let Some(open) = line[at..].find(['"', '<']).map(|n| at + n) {
        let system = line[open..].starts_with('<');
        let close = open + 1 + line[open + 1..].find(if system { '>' } else { '"' })?;
        let name = (&line[open + 1..close], system);
        if (open..=close).contains(&offset) {
            return Some(name);
        }
        first = first.or(Some(name));
        at = close + 1;
    }
    first
}

/// The outermost use of a macro that a span comes from, and the macro's definition.
fn outermost(map: &SourceMap, mut span: Span) -> Option<(Span, Span)> {
    let mut found = None;
    while let Some(expansion) = map.expansion(span) {
        found = Some((expansion.call, expansion.definition));
        span = expansion.call;
    }
    found
}

/// Declarations of a file, with all that it includes and imports.
fn outline(scan: &mut Session, main: &Path, dialect: Dialect) -> Result<Outline, String> {
    let mut outline = Outline::new(dialect);
    let file = scan.load(main, None)?;
    let (mut seen, mut waiting) = (HashSet::from([file]), vec![file]);
    while let Some(file) = waiting.pop() {
        let tokens = pp::preprocess(scan, file).tokens;
        if dialect == Dialect::Dce && seen.len() < limits::INCLUDES_MAX {
            let found = imports(scan, &tokens, main);
            waiting.extend(found.into_iter().filter(|&file| seen.insert(file)));
        }
        outline.add(scan, tokens);
    }
    Ok(outline)
}

/// The files that `import "FILE", …;` names.
fn imports(scan: &mut Session, tokens: &[Token], main: &Path) -> Vec<usize> {
    let mut files = Vec::new();
    let mut within = false;
    for token in tokens {
        match token.kind {
            Kind::Ident => within = scan.text(token) == "import",
            Kind::Punct => within &= scan.text(token) == ",",
            Kind::Str if within => {
                let name = scan.text(token).trim_matches('"').to_owned();
                let from = scan.map.file_index(token.span).map(|i| scan.map.file(i).path.clone());
                let includers: Vec<PathBuf> = [main.to_path_buf()].into_iter().chain(from).collect();
                let path = pp::find(scan, &name, false, &includers, false);
                files.extend(path.and_then(|path| scan.load(&path, Some(token.span)).ok()));
            }
            _ => {}
        }
    }
    files
}
