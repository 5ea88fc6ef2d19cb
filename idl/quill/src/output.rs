//! Files that quill writes: whole or not at all, and the rule that tells make what they were made from.

use std::io;
use std::path::{Path, PathBuf};

/// Writes a file so that nobody ever sees half of it: under another name beside its place first, then over it.
///
/// When that fails, the file is as it was, and nothing else is left behind.
pub fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let Some(name) = path.file_name() else { return Err(io::ErrorKind::InvalidInput.into()) };
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let unfinished = path.with_file_name(format!(".{}.unfinished", name.to_string_lossy()));
    let result = std::fs::write(&unfinished, text).and_then(|()| std::fs::rename(&unfinished, path));
    if result.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    result
}

/// Why a file could not be written: the directory that is missing, if it is that.
pub fn why(path: &Path, error: &io::Error) -> String {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    match directory {
        Some(directory) if error.kind() == io::ErrorKind::NotFound && !directory.exists() => {
            format!("there is no directory `{}`", directory.display())
        }
        Some(directory) if error.kind() == io::ErrorKind::NotADirectory => {
            format!("`{}` is no directory", directory.display())
        }
        _ => error.to_string(),
    }
}

/// A rule for make: what depends on which files. Each file but the first gets an empty rule of its own, so that make does
/// not stop when it has been renamed or removed.
pub fn rule(target: &Path, files: &[PathBuf]) -> String {
    let mut text = format!("{}:", escape(target));
    for file in files {
        text += &format!(" {}", escape(file));
    }
    text.push('\n');
    for file in files.iter().skip(1) {
        text += &format!("\n{}:\n", escape(file));
    }
    text
}

/// A path as make reads it.
fn escape(path: &Path) -> String {
    let mut text = String::new();
    for c in path.to_string_lossy().chars() {
        match c {
            '$' => text.push('$'),
            ' ' | '#' | ':' | '%' | '\\' => text.push('\\'),
            _ => {}
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules() {
        let files = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(rule(Path::new("a.rs"), &files(&["a.idl"])), "a.rs: a.idl\n");
        assert_eq!(
            rule(Path::new("a.rs"), &files(&["a.idl", "b c.idl"])),
            "a.rs: a.idl b\\ c.idl\n\nb\\ c.idl:\n"
        );
        assert_eq!(rule(Path::new("$x"), &files(&["#y"])), "$$x: \\#y\n");
    }

    #[test]
    fn a_missing_directory_is_named() {
        let path = Path::new("/nonexistent/deep/x.rs");
        let error = write_whole(path, "x").unwrap_err();
        assert_eq!(why(path, &error), "there is no directory `/nonexistent/deep`");
        assert_eq!(why(path, &io::ErrorKind::PermissionDenied.into()), "permission denied");
    }

    #[test]
    fn a_failure_leaves_nothing() {
        let dir = std::env::temp_dir().join(format!("quill-output-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("taken")).unwrap();
        assert!(write_whole(&dir.join("taken"), "x").is_err());
        assert!(write_whole(&dir.join("none/x"), "x").is_err());
        write_whole(&dir.join("x"), "one").unwrap();
        write_whole(&dir.join("x"), "two").unwrap();
        assert_eq!(std::fs::read_to_string(dir.join("x")).unwrap(), "two");
        let mut names: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["taken", "x"]);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
