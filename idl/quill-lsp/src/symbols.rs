//! The outline of a text, as the protocol has it.

use lsp_types::{DocumentSymbol, SymbolKind};
use quill::source::{SourceFile, SourceMap, Span};

use crate::analysis::Analysis;
use crate::outline::{Sort, Symbol};
use crate::text::Lines;

/// Levels of the tree. Nobody nests so deep, and readers of JSON have limits.
const LEVELS_MAX: usize = 32;

/// Declarations that are shown, the first ones. Each takes kilobytes on its way to the client.
const SHOWN_MAX: usize = 20_000;

/// Declarations of the text itself, as a tree.
pub fn of(analysis: &Analysis) -> Vec<DocumentSymbol> {
    let Some(file) = analysis.main() else { return Vec::new() };
    let lines = Lines::new(&file.text);
    let all = &analysis.outline.symbols;
    let chosen = chosen(analysis, file);
    let mut children: Vec<Vec<DocumentSymbol>> = all.iter().map(|_| Vec::new()).collect();
    let mut top = Vec::new();
    // Whatever is in something stands behind it.
    for (index, symbol) in all.iter().enumerate().rev() {
        let mut inner = std::mem::take(&mut children[index]);
        if !chosen[index] {
            continue;
        }
        inner.reverse();
        let shown = show(&analysis.scan.map, file, &lines, symbol, inner);
        // One that another file begins is not shown itself.
        let parent = |&index: &usize| all[index].parent;
        let mut around = std::iter::successors(symbol.parent, parent);
        match around.find(|&parent| chosen[parent]) {
            Some(parent) => children[parent].push(shown),
            None => top.push(shown),
        }
    }
    top.reverse();
    top
}

/// For each declaration, whether it is shown: it is in the file, and among the first and outer ones.
fn chosen(analysis: &Analysis, file: &SourceFile) -> Vec<bool> {
    let map = &analysis.scan.map;
    let (mut levels, mut count) = (Vec::new(), 0);
    let choose = |symbol: &Symbol| {
        let level = symbol.parent.map_or(0, |parent: usize| levels[parent] + 1);
        levels.push(level);
        let own = map.file_index(map.call_site(symbol.span)).is_some_and(|i| std::ptr::eq(map.file(i), file));
        let is_chosen = own && symbol.sort != Sort::Forward && level < LEVELS_MAX && count < SHOWN_MAX;
        count += usize::from(is_chosen);
        is_chosen
    };
    analysis.outline.symbols.iter().map(choose).collect()
}

#[expect(deprecated, reason = "the structure has a field that is, and no way around it")]
fn show(
    map: &SourceMap,
    file: &SourceFile,
    lines: &Lines,
    symbol: &Symbol,
    children: Vec<DocumentSymbol>,
) -> DocumentSymbol {
    let name = map.call_site(symbol.span);
    let here = |span: Span| map.file_index(span) == map.file_index(name);
    let [first, last] = [symbol.first, symbol.last].map(|span| map.call_site(span));
    let lo = if here(first) { first.lo.min(name.lo) } else { name.lo };
    let hi = if here(last) { last.hi.max(name.hi) } else { name.hi };
    DocumentSymbol {
        name: symbol.name.clone(),
        detail: None,
        kind: kind(symbol.sort),
        tags: None,
        deprecated: None,
        range: lines.range(file, Span { lo, hi, ctx: 0 }),
        selection_range: lines.range(file, name),
        children: (!children.is_empty()).then_some(children),
    }
}

fn kind(sort: Sort) -> SymbolKind {
    match sort {
        Sort::Module => SymbolKind::MODULE,
        Sort::Interface | Sort::Forward => SymbolKind::INTERFACE,
        Sort::Struct | Sort::Union | Sort::Exception => SymbolKind::STRUCT,
        Sort::Enum | Sort::Bitmask => SymbolKind::ENUM,
        Sort::Typedef | Sort::Native => SymbolKind::TYPE_PARAMETER,
        Sort::Const => SymbolKind::CONSTANT,
        Sort::Enumerator => SymbolKind::ENUM_MEMBER,
        Sort::Operation => SymbolKind::METHOD,
        Sort::Attribute => SymbolKind::PROPERTY,
        Sort::Field => SymbolKind::FIELD,
    }
}
