//! Names as numbers: equal spelling, equal [`Symbol`].

use std::collections::HashMap;
use std::rc::Rc;

/// A spelling, as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(pub u32);

/// The spellings of a run.
#[derive(Debug, Default)]
pub struct Interner {
    numbers: HashMap<Rc<str>, Symbol>,
    texts: Vec<Rc<str>>,
}

impl Interner {
    /// The number of a spelling.
    pub fn intern(&mut self, text: &str) -> Symbol {
        if let Some(&symbol) = self.numbers.get(text) {
            return symbol;
        }
        let symbol = Symbol(self.texts.len() as u32);
        let text: Rc<str> = text.into();
        self.texts.push(text.clone());
        self.numbers.insert(text, symbol);
        symbol
    }

    /// The spelling of a number.
    pub fn text(&self, symbol: Symbol) -> &str {
        &self.texts[symbol.0 as usize]
    }

    /// The spelling of a number, shared.
    pub fn shared(&self, symbol: Symbol) -> Rc<str> {
        self.texts[symbol.0 as usize].clone()
    }

    /// The number of a spelling, if it was ever seen.
    pub fn find(&self, text: &str) -> Option<Symbol> {
        self.numbers.get(text).copied()
    }
}
