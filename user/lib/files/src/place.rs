//! The working directory, as programs hear of it.

use alloc::format;
use alloc::string::String;

/// A path from the root of all, of one that was typed and may begin in the working directory, which is the variable `PWD`. What `..` means there is the file system's business.
pub fn path_of(typed: &str) -> String {
    if typed.starts_with('/') {
        return typed.into();
    }
    let place = rt::environment::variable("PWD").unwrap_or_default();
    format!("{}/{typed}", place.trim_end_matches('/'))
}
