//! Messages of quill about a text, as the protocol has them.

use lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Range, Uri,
};
use quill::diag;
use quill::source::{SourceFile, SourceMap, Span};

use crate::analysis::Analysis;
use crate::text::Lines;

/// All messages about a text, each in the text: one about an included file is where that is asked for. `uri` gives a file's address.
pub fn of(analysis: &Analysis, uri: &dyn Fn(&SourceFile) -> Option<Uri>) -> Vec<Diagnostic> {
    let Some(own) = analysis.own else { return Vec::new() };
    let map = &analysis.compiled.session.map;
    let lines = Lines::new(&map.file(own).text);
    let convert = Convert { map, own, lines: &lines, uri };
    analysis.compiled.session.diags.list().iter().filter_map(|d| convert.diagnostic(d)).collect()
}

struct Convert<'a> {
    map: &'a SourceMap,
    own: usize,
    lines: &'a Lines<'a>,
    uri: &'a dyn Fn(&SourceFile) -> Option<Uri>,
}

impl Convert<'_> {
    fn diagnostic(&self, d: &diag::Diagnostic) -> Option<Diagnostic> {
        let site = self.map.call_site(d.span);
        let mut message = d.message.clone();
        let mut related = Vec::new();
        let file = self.map.file_index(site);
        let range = if file == Some(self.own) {
            self.lines.range(self.map.file(self.own), site)
        } else if self.own != 0 {
            // Of an attribute file only what is in it: the rest is said of the other file.
            return None;
        } else {
            if let Some(file) = file {
                message = format!("in `{}`: {message}", self.map.file(file).path.display());
                related.extend(self.related(site, &d.message));
            }
            self.asked_for(site)
        };
        if let Some(expansion) = self.map.expansion(d.span) {
            related.extend(self.related(
                Span { ctx: 0, ..d.span },
                &format!("it comes from the macro `{}`", expansion.name),
            ));
        }
        for (span, text) in &d.notes {
            related.extend(self.related(self.map.call_site(*span), text));
        }
        for help in &d.helps {
            message.push_str(&format!("\nhelp: {help}"));
        }
        Some(Diagnostic {
            range,
            severity: Some(match d.severity {
                diag::Severity::Error => DiagnosticSeverity::ERROR,
                diag::Severity::Warning => DiagnosticSeverity::WARNING,
            }),
            code: Some(NumberOrString::String(d.code.name().into())),
            source: Some("quill".into()),
            message,
            related_information: (!related.is_empty()).then_some(related),
            ..Diagnostic::default()
        })
    }

    /// Where the text asks for the file of a span, directly or not; its beginning if it does not.
    fn asked_for(&self, mut site: Span) -> Range {
        while let Some(file) = self.map.file_index(site) {
            if file == self.own {
                return self.lines.range(self.map.file(file), site);
            }
            let Some(from) = self.map.file(file).included_from else { break };
            site = self.map.call_site(from);
        }
        Range::default()
    }

    fn related(&self, span: Span, message: &str) -> Option<DiagnosticRelatedInformation> {
        let file = self.map.file(self.map.file_index(span)?);
        let location = location(file, span, self.uri)?;
        Some(DiagnosticRelatedInformation { location, message: message.into() })
    }
}

/// The place of a span in its file.
pub fn location(file: &SourceFile, span: Span, uri: &dyn Fn(&SourceFile) -> Option<Uri>) -> Option<Location> {
    Some(Location { uri: uri(file)?, range: Lines::new(&file.text).range(file, span) })
}
