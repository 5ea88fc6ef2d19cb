//! Text about a name: its declaration, and what it costs.

use std::path::PathBuf;

use quill::layout::{self, InterfaceLayout};
use quill::model::{Interface, InterfaceId, Model, Operation, Type, TypeId, Value};
use quill::sizes::Sizes;
use quill::source::{SourceMap, Span};

use crate::analysis::Analysis;
use crate::outline::{Sort, Symbol};
use crate::settings::Settings;

/// Lines of a declaration or table that are shown.
const LINES_MAX: usize = 60;
/// Methods that are shown for one name: an attribute is two, and a template has some in each instance.
const METHODS_MAX: usize = 4;

/// Text about a declaration, in Markdown.
pub fn of(analysis: &Analysis, settings: &Settings, symbol: &Symbol) -> String {
    let about = About { analysis, model: &analysis.compiled.model, settings };
    let mut out = code("idl", &about.declaration(symbol));
    let accepted = analysis.compiled.accepted();
    match symbol.sort {
        Sort::Operation | Sort::Attribute => out.push_str(&about.methods(symbol)),
        Sort::Interface => out.push_str(&about.interface(symbol)),
        Sort::Const => out.push_str(&about.constant(symbol)),
        Sort::Enumerator => out.push_str(&about.enumerator(symbol)),
        Sort::Struct | Sort::Union | Sort::Enum | Sort::Bitmask | Sort::Typedef if accepted => {
            out.push_str(&about.size(symbol));
        }
        _ => {}
    }
    out
}

fn code(language: &str, text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let shown = lines[..lines.len().min(LINES_MAX)].join("\n");
    let more = if lines.len() > LINES_MAX { "\n…" } else { "" };
    // Text of the file cannot end the block.
    let shown = shown.replace("```", "` ` `");
    format!("```{language}\n{shown}{more}\n```\n")
}

/// A place that means the same in two runs: the file, where the text is spelled, and where a macro put it.
fn place(map: &SourceMap, span: Span) -> Option<(PathBuf, u32, u32)> {
    let site = map.call_site(span);
    let (spelled, used) = (map.file(map.file_index(span)?), map.file(map.file_index(site)?));
    Some((used.path.clone(), span.lo - spelled.start, site.lo - used.start))
}

struct About<'a> {
    analysis: &'a Analysis,
    model: &'a Model,
    settings: &'a Settings,
}

impl About<'_> {
    /// The text of a declaration: of an interface or module what stands before its body.
    fn declaration(&self, symbol: &Symbol) -> String {
        let map = &self.analysis.scan.map;
        let kept = [symbol.first, symbol.span, symbol.last].map(|span| map.call_site(span));
        let [first, name, last] = kept;
        let file = map.file_index(name);
        let whole = [first, last].iter().all(|&span| map.file_index(span) == file) && first.lo <= last.hi;
        let (lo, hi) = if whole { (first.lo, last.hi) } else { (name.lo, name.hi) };
        let Some(file) = file.map(|file| map.file(file)) else { return symbol.name.clone() };
        let text = file.text.get((lo - file.start) as usize..(hi - file.start) as usize);
        let text = text.unwrap_or(&symbol.name);
        let has_body = matches!(symbol.sort, Sort::Interface | Sort::Module);
        let text = if has_body { text.split('{').next().unwrap_or(text) } else { text };
        let text = text.trim_end();
        let inside =
            matches!(symbol.sort, Sort::Operation | Sort::Attribute | Sort::Enumerator | Sort::Field);
        match symbol.parent.map(|parent| &self.analysis.outline.symbols[parent]) {
            Some(parent) if inside => format!("// in {}\n{text}", parent.path),
            _ if symbol.path != symbol.name => format!("// {}\n{text}", symbol.path),
            _ => text.to_owned(),
        }
    }

    /// Signature aside: where the values of a method lie, and what that costs.
    fn methods(&self, symbol: &Symbol) -> String {
        let declared = self.operations(symbol);
        let Some(&(first, _)) = declared.first() else { return String::new() };
        if self.model.interfaces[first.0 as usize].local {
            return "The interface is local: it is called without a message.\n".into();
        }
        if let Some(why) = self.no_layout(&declared) {
            return why;
        }
        let mut out = String::new();
        for (interface, operation) in declared.into_iter().take(METHODS_MAX) {
            if let Some(layout) = self.layout_of(interface, operation) {
                let one = std::slice::from_ref(&layout);
                out.push_str(&code("text", &layout::text(self.model, one, self.settings.kernel)));
                out.push_str(&code("text", &layout::costs_text(self.model, one, self.settings.kernel)));
            }
        }
        out
    }

    /// The operations that a declaration makes, and the interfaces that they are in.
    fn operations(&self, symbol: &Symbol) -> Vec<(InterfaceId, &Operation)> {
        let wanted = place(&self.analysis.scan.map, symbol.span);
        let map = &self.analysis.compiled.session.map;
        let mut found = Vec::new();
        for (number, interface) in self.model.interfaces.iter().enumerate() {
            let same = |o: &&Operation| o.span.lo != 0 && place(map, o.span) == wanted;
            found.extend(interface.operations.iter().filter(same).map(|o| (InterfaceId(number as u32), o)));
        }
        found
    }

    /// Why there is nothing to show of messages, if so.
    fn no_layout(&self, declared: &[(InterfaceId, &Operation)]) -> Option<String> {
        let kernel = self.settings.kernel.name();
        let refused: Vec<&str> = match &self.analysis.layouts {
            Err(refused) => {
                let ours = |d: &&quill::diag::Diagnostic| declared.iter().any(|(_, o)| o.span == d.span);
                let own: Vec<&str> = refused.iter().filter(ours).map(|d| d.message.as_str()).collect();
                let other =
                    format!("Nothing over {kernel}, since other methods of the file cannot be translated.\n");
                if own.is_empty() {
                    return Some(other);
                }
                own
            }
            Ok(_) if self.analysis.compiled.accepted() => return None,
            Ok(_) => return Some("The file has errors, so nothing is known of messages.\n".into()),
        };
        Some(format!("Nothing over {kernel}: {}.\n", refused.join("; ")))
    }

    /// A layout with one method of an interface alone: as the interface has it, or one that inherits it.
    fn layout_of(&self, interface: InterfaceId, operation: &Operation) -> Option<InterfaceLayout> {
        let layouts = self.analysis.layouts.as_ref().ok()?;
        let own = layouts.iter().filter(|l| l.interface == interface);
        let heirs = layouts.iter().filter(|l| self.model.with_bases(l.interface).contains(&interface));
        let layout = own.chain(heirs).next()?;
        let operations = self.model.operations(layout.interface);
        let index = operations.iter().position(|&o| std::ptr::eq(o, operation))?;
        let methods = vec![layout.methods.get(index)?.clone()];
        Some(InterfaceLayout { interface: layout.interface, methods, views: Vec::new() })
    }

    fn interface(&self, symbol: &Symbol) -> String {
        let named = |i: &&Interface| i.name == symbol.path;
        if self.model.interfaces.iter().find(named).is_some_and(|i| i.local) {
            return "Local: it is called without a message.\n".into();
        }
        if let Some(why) = self.no_layout(&[]) {
            return why;
        }
        let Ok(layouts) = &self.analysis.layouts else { return String::new() };
        let own = layouts.iter().find(|l| self.model.interfaces[l.interface.0 as usize].name == symbol.path);
        let own = own.map(std::slice::from_ref);
        own.map_or(String::new(), |own| {
            code("text", &layout::costs_text(self.model, own, self.settings.kernel))
        })
    }

    fn named(&self, path: &str) -> Option<TypeId> {
        let all = self.model.named.iter().map(|&(id, _)| id);
        all.into_iter().find(|&id| self.model.ty(id).name() == Some(path))
    }

    fn size(&self, symbol: &Symbol) -> String {
        let Some(ty) = self.named(&symbol.path) else { return String::new() };
        let sizes = Sizes::new(self.model);
        let ty = self.model.resolved(ty);
        match (sizes.fixed(ty), sizes.stream_bytes_max(ty)) {
            (Some(fixed), _) => format!("{}, aligned to {}\n", bytes(fixed.size), fixed.align),
            (None, Some(most)) => format!("of variable size, at most {} in a message\n", bytes(most)),
            (None, None) => "of variable size, without a bound\n".into(),
        }
    }

    fn constant(&self, symbol: &Symbol) -> String {
        let found = self.model.consts.iter().find(|c| c.name == symbol.path);
        let value = found.and_then(|c| Some((self.model.show(c.ty), self.value(&c.value)?)));
        value.map_or(String::new(), |(ty, value)| code("idl", &format!("{ty}: {value}")))
    }

    fn enumerator(&self, symbol: &Symbol) -> String {
        let parent = symbol.parent.map(|parent| self.analysis.outline.symbols[parent].path.as_str());
        let ty = parent.and_then(|path| self.named(path)).map(|id| self.model.ty(id));
        let (Some(Type::Enum(_, members)) | Some(Type::Bitmask(_, _, members))) = ty else {
            return String::new();
        };
        let member = members.iter().find(|(name, _)| *name == symbol.name);
        member.map_or(String::new(), |(_, number)| format!("{number}\n"))
    }

    fn value(&self, value: &Value) -> Option<String> {
        let text = |units: &[u32]| {
            let signs = units.iter().map(|&u| char::from_u32(u).unwrap_or('\u{fffd}'));
            signs.flat_map(char::escape_debug).collect::<String>()
        };
        Some(match value {
            Value::Int(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Fixed(number, 0) => number.to_string(),
            Value::Fixed(number, scale) => format!("{number} / 10^{scale}"),
            Value::Bool(true) => "TRUE".into(),
            Value::Bool(false) => "FALSE".into(),
            Value::Char(unit) | Value::WideChar(unit) => format!("'{}'", text(&[*unit])),
            Value::Str(units) | Value::WideStr(units) => format!("\"{}\"", text(units)),
            Value::Enum(ty, number) => match self.model.ty(*ty) {
                Type::Enum(_, members) => members.iter().find(|m| m.1 == *number)?.0.clone(),
                _ => number.to_string(),
            },
            Value::Error => return None,
        })
    }
}

fn bytes(count: u64) -> String {
    if count == 1 { "1 byte".into() } else { format!("{count} bytes") }
}
