//! Pages that a server makes itself: lists of directories, and why there is nothing. And kinds of contents, by the ends of names.

use crate::Status;
use crate::path::{Path, encode};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Ends of names, and the kinds of contents that they mean.
const KINDS: [(&str, &str); 22] = [
    ("html", HTML),
    ("htm", HTML),
    ("txt", TEXT),
    ("md", TEXT),
    ("log", TEXT),
    ("toml", TEXT),
    ("rs", TEXT),
    ("c", TEXT),
    ("h", TEXT),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("xml", "application/xml"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("ico", "image/x-icon"),
    ("pdf", "application/pdf"),
    ("wasm", "application/wasm"),
    ("gz", "application/gzip"),
];

/// Kind of the pages that are made here.
pub const HTML: &str = "text/html; charset=utf-8";

const TEXT: &str = "text/plain; charset=utf-8";

/// A name of which nobody knows what is behind it.
const BYTES: &str = "application/octet-stream";

/// Kind of a file's contents, by its name.
pub fn kind_of(name: &[u8]) -> &'static str {
    let mut parts = name.rsplitn(2, |&byte| byte == b'.');
    let (Some(end), Some(_)) = (parts.next(), parts.next()) else { return BYTES };
    let known = KINDS.iter().find(|(known, _)| end.eq_ignore_ascii_case(known.as_bytes()));
    known.map_or(BYTES, |(_, kind)| kind)
}

/// An entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Its name.
    pub name: Vec<u8>,
    /// Whether it is a directory itself.
    pub is_directory: bool,
}

/// A text in which nothing means anything to a browser.
fn escape(text: &[u8], to: &mut String) {
    for c in String::from_utf8_lossy(text).chars() {
        match c {
            '&' => to.push_str("&amp;"),
            '<' => to.push_str("&lt;"),
            '>' => to.push_str("&gt;"),
            '"' => to.push_str("&quot;"),
            '\'' => to.push_str("&#39;"),
            c => to.push(c),
        }
    }
}

fn page(title: &str, body: &str) -> Vec<u8> {
    format!("<!DOCTYPE html>\n<html><head><title>{title}</title></head>\n<body><h1>{title}</h1>\n{body}</body></html>\n")
        .into_bytes()
}

/// A list of a directory, in the order of names, directories first.
pub fn list(path: &Path, mut entries: Vec<Listed>) -> Vec<u8> {
    entries.sort_by(|one, other| (!one.is_directory, &one.name).cmp(&(!other.is_directory, &other.name)));
    let mut title = String::from("/");
    for name in path.names() {
        escape(name, &mut title);
        title.push('/');
    }
    let mut body = String::from("<ul>\n");
    if !path.is_top() {
        body.push_str("<li><a href=\"../\">../</a></li>\n");
    }
    for Listed { name, is_directory } in &entries {
        let slash = if *is_directory { "/" } else { "" };
        // In front of it `./`, so that a colon in the name ends no scheme.
        body.push_str("<li><a href=\"./");
        encode(name, &mut body);
        body.push_str(slash);
        body.push_str("\">");
        escape(name, &mut body);
        body.push_str(slash);
        body.push_str("</a></li>\n");
    }
    body.push_str("</ul>\n");
    page(&title, &body)
}

/// A page that says why there is no other.
pub fn why(status: Status) -> Vec<u8> {
    page(&format!("{} {}", status.code(), status.reason()), "")
}
