//! Lines that a pattern is found in.

use crate::{Fault, Filter, Lines, Out};
use alloc::format;
use alloc::string::{String, ToString};
use core::ops::ControlFlow;
use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_syntax::Error;

/// Bytes of a pattern's machine, and of the part of it that is kept while it runs, at most.
const MACHINE_MAX: usize = 1 << 20;

/// Parentheses within one another, at most.
const DEPTH_MAX: u32 = 64;

/// Choices of lines, and of how they are shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice {
    /// The pattern is a text, in which no sign has a meaning (`-F`).
    pub is_text: bool,
    /// Small letters are capital ones, of those that ASCII has (`-i`).
    pub ignores_case: bool,
    /// Lines without the pattern (`-v`).
    pub inverts: bool,
    /// The number in front of each (`-n`).
    pub numbers: bool,
    /// How many there are in each file, in their place (`-c`).
    pub counts: bool,
}

/// Pattern, and the states of its machine that have been met: as many as there is room for.
struct Machine {
    states: DFA,
    met: Cache,
}

impl Machine {
    fn new(pattern: &str, ignores_case: bool) -> Result<Machine, String> {
        let syntax = syntax::Config::new()
            .utf8(false)
            .unicode(false)
            .case_insensitive(ignores_case)
            .nest_limit(DEPTH_MAX);
        let pattern = syntax::parse_with(pattern, &syntax).map_err(|error| reason(&error))?;
        let config = thompson::Config::new()
            .utf8(false)
            .nfa_size_limit(Some(MACHINE_MAX))
            .which_captures(thompson::WhichCaptures::None);
        let nfa = thompson::Compiler::new().configure(config).build_from_hir(&pattern);
        let nfa = nfa.map_err(|error| match error.size_limit() {
            Some(limit) => format!("it needs more than {} KiB", limit >> 10),
            None => error.to_string(),
        })?;
        let config = DFA::config().cache_capacity(MACHINE_MAX);
        let states = DFA::builder().configure(config).build_from_nfa(nfa);
        let states = states.map_err(|error| error.to_string())?;
        let met = states.create_cache();
        Ok(Machine { states, met })
    }

    fn is_in(&mut self, line: &[u8]) -> bool {
        // It gives up only if it is told when.
        let found = self.states.try_search_fwd(&mut self.met, &Input::new(line).earliest(true));
        found.is_ok_and(|found| found.is_some())
    }
}

/// Text of an error, on a line.
fn reason(error: &Error) -> String {
    let (kind, span) = match error {
        Error::Parse(error) => (error.kind().to_string(), error.span()),
        Error::Translate(error) => (error.kind().to_string(), error.span()),
        _ => return "it makes no sense".into(),
    };
    format!("{kind}, at byte {}", span.start.offset + 1)
}

/// The program `grep`. Patterns are regular expressions as `grep -E` has them, over bytes, without those that refer back.
pub struct Grep {
    machine: Machine,
    choice: Choice,
    lines: Lines,
    shown: Shown,
    /// Whether there was a line in any file.
    has_found: bool,
}

/// A file, as far as it was read.
#[derive(Default)]
struct Shown {
    /// Its name and a colon, if several are read.
    prefix: String,
    /// Its lines.
    count: u64,
    /// Those of them that are chosen.
    chosen: u64,
}

impl Grep {
    /// A search for a pattern. If it is none, it is said why.
    pub fn new(pattern: &str, choice: Choice) -> Result<Grep, String> {
        let machine = match choice.is_text {
            true => Machine::new(&regex_syntax::escape(pattern), choice.ignores_case)?,
            false => Machine::new(pattern, choice.ignores_case)?,
        };
        Ok(Grep { machine, choice, lines: Lines::default(), shown: Shown::default(), has_found: false })
    }

    /// Whether some line was chosen.
    pub fn has_found(&self) -> bool {
        self.has_found
    }
}

impl Shown {
    /// Shows a line if it is chosen.
    fn line(&mut self, line: &[u8], machine: &mut Machine, choice: Choice, out: &mut Out) {
        self.count += 1;
        if machine.is_in(line) == choice.inverts {
            return;
        }
        self.chosen += 1;
        if choice.counts {
            return;
        }
        out(self.prefix.as_bytes());
        if choice.numbers {
            out(format!("{}:", self.count).as_bytes());
        }
        out(line);
        out(b"\n");
    }
}

impl Filter for Grep {
    fn begin(&mut self, name: Option<&str>, _: &mut Out) {
        let prefix = name.map_or(String::new(), |name| format!("{name}:"));
        self.shown = Shown { prefix, ..Shown::default() };
        self.lines = Lines::default();
    }

    fn take(&mut self, piece: &[u8], out: &mut Out) -> Result<ControlFlow<()>, Fault> {
        let Grep { machine, choice, lines, shown, .. } = self;
        lines.take(piece, |line| {
            shown.line(line, machine, *choice, out);
            Ok(())
        })?;
        Ok(ControlFlow::Continue(()))
    }

    fn end(&mut self, out: &mut Out) -> Result<(), Fault> {
        let Grep { machine, choice, lines, shown, has_found } = self;
        lines.end(|line| {
            shown.line(line, machine, *choice, out);
            Ok(())
        })?;
        if choice.counts {
            out(format!("{}{}\n", shown.prefix, shown.chosen).as_bytes());
        }
        *has_found |= shown.chosen > 0;
        Ok(())
    }
}
