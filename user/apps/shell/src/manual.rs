//! Texts of programs for `help`: a file that comes with the boot has a line for each, `NAME: TEXT`, made of the comment at the head of its source.

use alloc::string::String;
use alloc::vec::Vec;
use files::Directory;

/// The file.
const PATH: &str = "/etc/help";

/// Bytes that it has at most.
const LEN_MAX: usize = 256 << 10;

/// Programs, each with its text. None where the system has no such file.
pub fn texts() -> Vec<(String, String)> {
    let bytes = Directory::root().and_then(|root| root.read(PATH, LEN_MAX)).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    lines.map(|(name, text)| (name.into(), text.into())).collect()
}

/// Text of a program.
pub fn text_of(program: &str) -> Option<String> {
    texts().into_iter().find_map(|(name, text)| (name == program).then_some(text))
}

/// How a program is called, and its purpose, if its text begins with both: `PURPOSE: "CALL"`.
pub fn call_of<'a>(program: &str, text: &'a str) -> Option<(&'a str, &'a str)> {
    let (purpose, behind) = text.split_once(": \"")?;
    let call = behind.split('"').next()?;
    let is_one = !purpose.contains(". ") && call.split(' ').next() == Some(program);
    is_one.then_some((call, purpose))
}
