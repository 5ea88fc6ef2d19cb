//! For build scripts of cargo: stubs made when a crate is built.
//!
//! ```text
//! // In build.rs:
//! quill::build::Build::new().include("idl").rust("idl/counter.idl");
//! ```
//!
//! and in the crate `include!(concat!(env!("OUT_DIR"), "/counter.rs"));`, inside of a module.

use std::path::{Path, PathBuf};

use crate::driver::{self, Compiled};
use crate::kernel::{KernelPart, Linux};
use crate::output;
use crate::session::Options;

/// How stubs are to be made.
pub struct Build {
    options: Options,
    kernel: &'static dyn KernelPart,
}

/// What writes code over a kernel.
type Emit = fn(&mut Compiled, &dyn KernelPart) -> String;

/// What was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The file with the code.
    pub path: PathBuf,
    /// The files that it was made from.
    pub sources: Vec<PathBuf>,
    /// Warnings, as text.
    pub messages: String,
}

impl Default for Build {
    fn default() -> Build {
        Build::new()
    }
}

impl Build {
    /// Stubs over sockets of the host.
    pub fn new() -> Build {
        Build { options: Options::default(), kernel: &Linux }
    }

    /// Adds a directory to search for included and imported files.
    pub fn include(mut self, dir: impl Into<PathBuf>) -> Build {
        self.options.include_dirs.push(dir.into());
        self
    }

    /// Defines a macro: `NAME` or `NAME=VALUE`.
    pub fn define(mut self, define: impl Into<String>) -> Build {
        self.options.defines.push(define.into());
        self
    }

    /// Names an attribute file, if it is not the one beside the interface file.
    pub fn acf(mut self, file: impl Into<PathBuf>) -> Build {
        self.options.acf = Some(file.into());
        self
    }

    /// Chooses what carries the messages.
    pub fn kernel(mut self, kernel: &'static dyn KernelPart) -> Build {
        self.kernel = kernel;
        self
    }

    /// Writes Rust for an interface file into cargo's `OUT_DIR`, and tells cargo which files it was made from.
    ///
    /// # Panics
    ///
    /// When the file has errors or cannot be read: that is how a build script fails. The messages are in the panic.
    pub fn rust(&self, file: impl AsRef<Path>) -> PathBuf {
        Build::told(self.rust_in(file, Build::out_dir()))
    }

    /// Writes C for an interface file into cargo's `OUT_DIR`: a header. Tells cargo which files it was made from.
    ///
    /// # Panics
    ///
    /// As [`Build::rust`] does.
    pub fn c(&self, file: impl AsRef<Path>) -> PathBuf {
        Build::told(self.c_in(file, Build::out_dir()))
    }

    fn out_dir() -> PathBuf {
        std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts").into()
    }

    fn told(made: Result<Made, String>) -> PathBuf {
        let made = made.unwrap_or_else(|messages| panic!("\n{messages}"));
        for source in &made.sources {
            println!("cargo:rerun-if-changed={}", source.display());
        }
        for line in made.messages.lines().filter(|l| l.starts_with("warning")) {
            println!("cargo:warning={line}");
        }
        made.path
    }

    /// Writes Rust for an interface file into a directory; an error is the messages as text.
    pub fn rust_in(&self, file: impl AsRef<Path>, dir: impl AsRef<Path>) -> Result<Made, String> {
        self.write(file.as_ref(), dir.as_ref(), "rs", Compiled::rust)
    }

    /// Writes a header in C for an interface file into a directory; an error is the messages as text.
    pub fn c_in(&self, file: impl AsRef<Path>, dir: impl AsRef<Path>) -> Result<Made, String> {
        self.write(file.as_ref(), dir.as_ref(), "h", Compiled::c)
    }

    /// Makes Rust for an interface file: the text, the files that it was made from, and warnings. An error is the messages as text.
    pub fn rust_text(&self, file: impl AsRef<Path>) -> Result<(String, Vec<PathBuf>, String), String> {
        self.text(file.as_ref(), Compiled::rust)
    }

    fn text(&self, file: &Path, emit: Emit) -> Result<(String, Vec<PathBuf>, String), String> {
        let mut compiled = driver::compile(file, self.options.clone()).map_err(|e| e.0)?;
        let mut text = String::new();
        if compiled.accepted() {
            compiled.layout(self.kernel);
        }
        if compiled.accepted() {
            text = emit(&mut compiled, self.kernel);
        }
        let messages = compiled.messages();
        if compiled.accepted() { Ok((text, compiled.files(), messages)) } else { Err(messages) }
    }

    fn write(&self, file: &Path, dir: &Path, extension: &str, emit: Emit) -> Result<Made, String> {
        let (text, sources, messages) = self.text(file, emit)?;
        let stem = file.file_stem().unwrap_or(file.as_os_str());
        let path = dir.join(stem).with_extension(extension);
        output::write_whole(&path, &text).map_err(|e| format!("cannot write `{}`: {e}", path.display()))?;
        Ok(Made { path, sources, messages })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_in_a_directory() {
        let dir = std::env::temp_dir().join(format!("quill-build-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("inc")).unwrap();
        std::fs::write(dir.join("inc/basis.idl"), "typedef long T;").unwrap();
        std::fs::write(dir.join("i.idl"), "#include \"basis.idl\"\ninterface I { N f(in T x); };").unwrap();
        let build = Build::new().include(dir.join("inc")).define("N=long");
        let made = build.rust_in(dir.join("i.idl"), &dir).unwrap();
        assert_eq!(made.path, dir.join("i.rs"));
        assert_eq!(made.sources, [dir.join("i.idl"), dir.join("inc/basis.idl")]);
        assert!(std::fs::read_to_string(&made.path).unwrap().contains("trait Server"));
        let why = Build::new().rust_in(dir.join("i.idl"), &dir).unwrap_err();
        assert!(why.contains("error[E0002]"), "{why}");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
