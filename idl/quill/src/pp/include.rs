//! Files that are included: the directive, and where a file is looked for.

use super::*;

impl Pp<'_> {
    pub(super) fn include(&mut self, word: &Token, directive: &str) {
        let (line, mut span) = self.rest_of_line();
        let mut text = strip_comment(&line).trim_end().to_owned();
        // Where lines are joined, the text is shorter than what stands in the file.
        if (span.hi - span.lo) as usize == line.len() {
            span.hi = span.lo + text.len() as u32;
        }
        if !text.starts_with(['"', '<']) {
            text = self.expand_include(span);
        }
        let (name, system) = match text.as_bytes() {
            [b'"', ..] if text[1..].contains('"') => (text[1..].split('"').next().unwrap_or(""), false),
            [b'<', ..] if text.contains('>') => (text[1..].split('>').next().unwrap_or(""), true),
            [b'"' | b'<', ..] => {
                let message = format!("the name of the file behind `#{directive}` never ends");
                return self.error(Code::Unterminated, span, message);
            }
            _ => {
                return self.error(
                    Code::Directive,
                    word.span,
                    format!("`#{directive}` needs \"FILE\" or <FILE>"),
                );
            }
        };
        if name.is_empty() {
            return self.error(Code::Directive, span, format!("`#{directive}` needs the name of a file"));
        }
        let includers: Vec<PathBuf> =
            self.frames.iter().map(|f| self.s.map.file(f.file).path.clone()).collect();
        let Some(path) = find(self.s, name, system, &includers, directive == "include_next") else {
            // Every ORB brings an orb.idl of its own; what it declares is known without it. So are C's own types.
            if name.rsplit('/').next() == Some("orb.idl") || C_HEADERS.contains(&name) {
                return;
            }
            let from_header = self.in_header();
            return not_found(self.s, name, span, from_header);
        };
        if self.frames.len() >= limits::INCLUDE_DEPTH_MAX {
            let max = limits::INCLUDE_DEPTH_MAX;
            let cycle = includers.contains(&path);
            let why = if cycle { " (the file includes itself)" } else { "" };
            return self.limit(span, format!("files are included deeper than {max}{why}"));
        }
        self.enter(&path, directive, span);
    }

    /// Reads on in a file that a directive names.
    fn enter(&mut self, path: &Path, directive: &str, span: Span) {
        match self.s.load(path, Some(span)) {
            Ok(file) if self.once.contains(&file) => {}
            Ok(file) => {
                if directive == "import" {
                    self.once.insert(file);
                }
                self.push_file(file);
                if self.s.read_bytes > limits::READ_BYTES_MAX {
                    let max = limits::READ_BYTES_MAX;
                    self.limit(span, format!("includes make this run read more than {max} bytes"));
                }
            }
            Err(why) if self.s.includes > limits::INCLUDES_MAX => self.limit(span, why),
            Err(why) => {
                self.s.incomplete = true;
                self.error(Code::Unreadable, span, format!("cannot read `{}`: {why}", path.display()));
            }
        }
    }

    /// An `#include` whose file is named by a macro.
    pub(super) fn expand_include(&mut self, span: Span) -> String {
        let Some(frame) = self.frames.last_mut() else { return String::new() };
        let after = frame.lexer.clone();
        let file = self.s.map.file(frame.file);
        frame.lexer = Lexer::new(file);
        frame.lexer.seek((span.lo - file.start) as usize);
        let tokens = self.line_tokens();
        let tokens = self.expand_list(tokens);
        if let Some(frame) = self.frames.last_mut() {
            frame.lexer = after;
        }
        tokens.iter().map(|t| self.s.text(t)).collect()
    }
}

pub(super) fn strip_comment(text: &str) -> &str {
    let close = match text.as_bytes() {
        [b'"', ..] => text[1..].find('"'),
        [b'<', ..] => text[1..].find('>'),
        _ => None,
    };
    match close {
        Some(n) => &text[..n + 2],
        None => text.split("//").next().unwrap_or("").split("/*").next().unwrap_or(""),
    }
}

/// The path of an included or imported file: beside the files that ask for it (innermost first), then in the
/// directories of `-I`; the other way round for `<FILE>`.
pub fn find(s: &Session, name: &str, system: bool, includers: &[PathBuf], next: bool) -> Option<PathBuf> {
    let name = name.replace('\\', "/");
    let skip = usize::from(next);
    let beside = includers.iter().rev().skip(skip).filter_map(|p| p.parent()).map(|p| p.join(&name));
    let listed = s.options.include_dirs.iter().map(|p| p.join(&name));
    let not_again = |path: &PathBuf| s.exists(path) && !(next && includers.contains(path));
    if system { listed.chain(beside).find(not_again) } else { beside.chain(listed).find(not_again) }
}

/// Whether a file is a C header, by its name.
pub fn is_header(path: &Path) -> bool {
    path.extension().is_some_and(|e| ["h", "H", "hpp", "hxx"].iter().any(|h| e == *h))
}

/// The headers that belong to C itself.
const C_HEADERS: [&str; 27] = [
    "assert.h",
    "complex.h",
    "ctype.h",
    "errno.h",
    "fenv.h",
    "float.h",
    "inttypes.h",
    "iso646.h",
    "limits.h",
    "locale.h",
    "math.h",
    "setjmp.h",
    "signal.h",
    "stdalign.h",
    "stdarg.h",
    "stdatomic.h",
    "stdbool.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "sys/types.h",
    "time.h",
    "uchar.h",
    "wchar.h",
    "wctype.h",
];

/// Reports a file that cannot be found, with what the user may have meant. What a C header misses is a warning: it is
/// read for the types that it has.
pub fn not_found(s: &mut Session, name: &str, span: Span, from_header: bool) {
    let make = if from_header { Diagnostic::warning } else { Diagnostic::error };
    let mut diagnostic = make(Code::NotFound, span, format!("the file `{name}` is not found"));
    let from = s.map.file_index(span).map(|i| s.map.file(i).path.clone());
    let beside = from.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let wanted = Path::new(name);
    let mut candidates = Vec::new();
    for dir in beside.iter().chain(&s.options.include_dirs) {
        let dir = dir.join(wanted.parent().unwrap_or(Path::new("")));
        let dir = if dir.as_os_str().is_empty() { PathBuf::from(".") } else { dir };
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().take(1000);
        candidates.extend(entries.map(|e| e.file_name().to_string_lossy().into_owned()));
    }
    candidates.sort();
    let base = wanted.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    diagnostic = diagnostic.maybe(nearest(&base, candidates.iter().map(String::as_str)));
    if s.options.include_dirs.is_empty() {
        diagnostic = diagnostic.help("`-I DIR` adds a directory to search");
    }
    s.diags.push(diagnostic);
    s.incomplete = true;
}
