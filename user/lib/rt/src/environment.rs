//! Variables that a program finds when it begins: `NAME=VALUE`, set from outside.
//!
//! They come behind the argument text, after a zero byte, with one between them. Whoever starts a program can say which it gets; if
//! nobody does it has those of its starter, and what the system starts has those of the boot option `env=`. They do not change while
//! the program runs.

use crate::sync::Mutex;
use alloc::string::String;
use alloc::vec::Vec;

static TEXT: Mutex<Option<String>> = Mutex::new(None);

/// The value of a variable.
pub fn variable(name: &str) -> Option<String> {
    with_text(|text| find(text, name).map(String::from))
}

/// All variables, in the order in which they were given.
pub fn variables() -> Vec<(String, String)> {
    with_text(|text| pairs(text).map(|(name, value)| (name.into(), value.into())).collect())
}

fn with_text<T>(action: impl FnOnce(&str) -> T) -> T {
    if let Some(text) = &*TEXT.lock() {
        return action(text);
    }
    // Nothing is locked while somebody else is asked.
    let all = crate::start::all_text();
    let text = all.split_once('\0').map_or("", |(_, text)| text);
    action(TEXT.lock().insert(String::from(text)))
}

fn find<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    pairs(text).find(|pair| pair.0 == name).map(|(_, value)| value)
}

/// Texts that are no pairs are left out.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split('\0').filter_map(|pair| pair.split_once('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_by_name() {
        let text = "LOG=debug\0EMPTY=\0nothing\0EQUATION=a=b\0LOG=late";
        assert_eq!(find(text, "LOG"), Some("debug"));
        assert_eq!(find(text, "EMPTY"), Some(""));
        assert_eq!(find(text, "EQUATION"), Some("a=b"));
        assert_eq!(find(text, "nothing"), None);
        assert_eq!(pairs("").count(), 0);
    }
}
