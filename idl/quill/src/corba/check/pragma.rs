//! The pragmas of CORBA: `prefix`, `ID`, `version`. They name things in a repository that stubs do not need, so only
//! their form is checked.

use super::Checker;
use crate::codes::Code;
use crate::diag::Diagnostic;
use crate::lex::Kind;
use crate::pp::Pragma;

impl Checker<'_> {
    pub(super) fn pragmas(&mut self, pragmas: &[Pragma]) {
        for pragma in pragmas {
            let words: Vec<String> = pragma.tokens.iter().map(|t| self.s.text(t).to_owned()).collect();
            let kinds: Vec<Kind> = pragma.tokens.iter().map(|t| t.kind).collect();
            match words.first().map(String::as_str) {
                Some("prefix") if kinds.get(1) != Some(&Kind::Str) => {
                    let message = "`#pragma prefix` takes a string";
                    self.s.diags.push(Diagnostic::warning(Code::Pragma, pragma.span, message));
                }
                Some("version") => {
                    let version: String = match words.last() {
                        Some(last) if words.len() > 2 => last.clone(),
                        _ => String::new(),
                    };
                    if !crate::corba::value::is_version(&version) {
                        let message = "`#pragma version` takes a name and a version such as 1.2";
                        self.error(Code::Pragma, pragma.span, message);
                    }
                }
                Some("ID") if kinds.last() != Some(&Kind::Str) => {
                    self.error(Code::Pragma, pragma.span, "`#pragma ID` takes a name and a string");
                }
                _ => {}
            }
        }
    }
}
