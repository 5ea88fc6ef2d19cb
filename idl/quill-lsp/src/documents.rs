//! Open texts, and the addresses of files.

use std::path::{Path, PathBuf};

use lsp_types::Uri;

/// An open text.
pub struct Document {
    /// Its address, as the client writes it.
    pub uri: Uri,
    /// Its path, as the file system has it; some name if it is in none.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
    /// The client's count of its changes.
    pub version: i32,
}

impl Document {
    /// A text that a client has opened.
    pub fn new(uri: Uri, text: String, version: i32) -> Document {
        let path = path(uri.as_str()).unwrap_or_else(|| PathBuf::from(uri.as_str()));
        let mut document = Document { uri, path, text: String::new(), version };
        document.set(text, version);
        document
    }

    /// Takes a new text. A byte-order mark is no part of it, as for quill.
    pub fn set(&mut self, text: String, version: i32) {
        self.text = text.strip_prefix('\u{feff}').map_or(text.clone(), Into::into);
        self.version = version;
    }
}

/// The path of a `file:` address, as the file system has it.
pub fn path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let raw = &rest[rest.find('/')?..];
    let path = PathBuf::from(decode(raw)?);
    // A file that is not there yet is in a folder that is.
    let real = std::fs::canonicalize(&path).ok().or_else(|| {
        let folder = std::fs::canonicalize(path.parent()?).ok()?;
        Some(folder.join(path.file_name()?))
    });
    Some(real.unwrap_or(path))
}

/// The address of a path.
pub fn uri(path: &Path) -> Option<Uri> {
    let absolute = std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).ok()?;
    let mut text = String::from("file://");
    for byte in absolute.to_str()?.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            text.push(byte as char);
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text.parse().ok()
}

/// Text without the escapes of addresses.
fn decode(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(path("file:///none/a%20b/%C3%A4.idl"), Some("/none/a b/ä.idl".into()));
        assert_eq!(path("file://localhost/none/x.idl"), Some("/none/x.idl".into()));
        assert_eq!(path("untitled:Untitled-1"), None);
        assert_eq!(path("file:///none/%zz"), None);
        assert_eq!(path("file:///none/%4"), None);
        assert_eq!(uri(Path::new("/none/a b/ä.idl")).unwrap().as_str(), "file:///none/a%20b/%C3%A4.idl");
    }
}
