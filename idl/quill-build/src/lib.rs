//! Stubs of interface files for build scripts of cargo.
//!
//! ```text
//! // In `main` of build.rs:
//! quill_build::Stubs::new().include("idl").rust(["idl/bank.idl", "idl/clock.idl"]);
//! ```
//!
//! and in the crate, wherever the stubs shall be:
//!
//! ```text
//! include!(concat!(env!("OUT_DIR"), "/stubs.rs")); // mod bank, mod clock
//! ```
//!
//! A mistake in an interface ends the build with quill's messages, and with nothing else: no panic, no trace. It is
//! [`quill::build`] underneath, which is for those who want files elsewhere, or errors as values.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use quill::build::{Build, Made};

/// File in `OUT_DIR` with a module for each interface file.
const MODULES: &str = "stubs.rs";

/// How stubs are to be made, for one call of [`Stubs::rust`] or [`Stubs::c`].
pub struct Stubs {
    build: Build,
    /// A mistake in how it was asked.
    wrong: Option<String>,
}

impl Default for Stubs {
    fn default() -> Stubs {
        Stubs::new()
    }
}

impl Stubs {
    /// Stubs over sockets of the host.
    pub fn new() -> Stubs {
        Stubs { build: Build::new(), wrong: None }
    }

    /// Adds a directory to search for included and imported files.
    pub fn include(self, dir: impl Into<PathBuf>) -> Stubs {
        Stubs { build: self.build.include(dir), ..self }
    }

    /// Defines a macro: `NAME` or `NAME=VALUE`.
    pub fn define(self, define: impl Into<String>) -> Stubs {
        Stubs { build: self.build.define(define), ..self }
    }

    /// Names an attribute file, if it is not the one beside the interface file.
    pub fn acf(self, file: impl Into<PathBuf>) -> Stubs {
        Stubs { build: self.build.acf(file), ..self }
    }

    /// Chooses what carries the messages, by the name that `quill --kernel` has for it.
    pub fn kernel(mut self, name: &str) -> Stubs {
        match quill::kernel::find(name) {
            Some(kernel) => self.build = self.build.kernel(kernel),
            None => {
                let all: Vec<&str> = quill::kernel::ALL.iter().map(|kernel| kernel.name()).collect();
                self.wrong = Some(format!("there is no kernel part `{name}`; there are: {}", all.join(", ")));
            }
        }
        self
    }

    /// Makes Rust of interface files, and in `OUT_DIR` a file `stubs.rs` with a module for each, named after it. Ends the build script
    /// if one of them has errors, after all have been looked at.
    pub fn rust<F: AsRef<Path>>(self, files: impl IntoIterator<Item = F>) {
        finish(self.rust_in(files, &out_dir()));
    }

    /// Makes headers in C of interface files in `OUT_DIR`, and tells scripts of packages that depend on this one where they are
    /// (`DEP_…_INCLUDE`, if it has a `links`). Gives the directory back, for who compiles C. Ends the build script if a file has errors.
    pub fn c<F: AsRef<Path>>(self, files: impl IntoIterator<Item = F>) -> PathBuf {
        let dir = out_dir();
        finish(self.c_in(files, &dir));
        println!("cargo::metadata=include={}", dir.display());
        dir
    }

    /// Does what [`Stubs::rust`] does in any directory. The error is all messages as text.
    pub fn rust_in<F: AsRef<Path>>(
        &self,
        files: impl IntoIterator<Item = F>,
        dir: &Path,
    ) -> Result<Vec<Made>, String> {
        let all = self.each(files, |file| self.build.rust_in(file, dir))?;
        let mut modules = String::from("// Made by quill. Changes here are lost.\n");
        for made in &all {
            let name = module(&made.path)?;
            let path = made.path.canonicalize().map_err(|e| format!("{}: {e}", made.path.display()))?;
            let allowed = "non_camel_case_types, non_snake_case, non_upper_case_globals, dead_code";
            write!(
                modules,
                "#[allow({allowed})]\npub mod {name} {{\n    include!({:?});\n}}\n",
                path.display().to_string()
            )
            .map_err(|e| e.to_string())?;
        }
        let path = dir.join(MODULES);
        std::fs::write(&path, modules).map_err(|e| format!("cannot write `{}`: {e}", path.display()))?;
        Ok(all)
    }

    /// Does what [`Stubs::c`] does in any directory. The error is all messages as text.
    pub fn c_in<F: AsRef<Path>>(
        &self,
        files: impl IntoIterator<Item = F>,
        dir: &Path,
    ) -> Result<Vec<Made>, String> {
        self.each(files, |file| self.build.c_in(file, dir))
    }

    /// Goes on behind a file with mistakes, so that one build tells all of them.
    fn each<F: AsRef<Path>>(
        &self,
        files: impl IntoIterator<Item = F>,
        make: impl Fn(&Path) -> Result<Made, String>,
    ) -> Result<Vec<Made>, String> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        let (mut all, mut messages) = (Vec::new(), String::new());
        let mut taken: Vec<(PathBuf, PathBuf)> = Vec::new();
        for file in files {
            let file = file.as_ref();
            match make(file) {
                Ok(made) => {
                    if let Some((_, first)) = taken.iter().find(|(path, _)| *path == made.path) {
                        let (first, second) = (first.display(), file.display());
                        messages +=
                            &format!("error: `{first}` and `{second}` would have stubs of one name\n");
                    }
                    taken.push((made.path.clone(), file.to_owned()));
                    all.push(made);
                }
                Err(why) => messages += &why,
            }
        }
        if messages.is_empty() { Ok(all) } else { Err(messages) }
    }
}

/// Name of the module for a file, which has to be one in Rust.
fn module(path: &Path) -> Result<String, String> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().replace(['-', '.', ' '], "_");
    let begins = stem.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if begins && stem.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Ok(quill::emit::rust::module_name(&stem));
    }
    Err(format!("error: `{}` gives no name for a module: letters, digits and `_` do\n", path.display()))
}

fn out_dir() -> PathBuf {
    match std::env::var_os("OUT_DIR") {
        Some(dir) => dir.into(),
        None => end("OUT_DIR is not set: this is for build scripts of cargo"),
    }
}

/// Tells cargo what was read and what was warned of, or ends the script.
fn finish(made: Result<Vec<Made>, String>) {
    let all = made.unwrap_or_else(|messages| end(&messages));
    for made in &all {
        for source in &made.sources {
            println!("cargo::rerun-if-changed={}", source.display());
        }
        for line in made.messages.lines().filter(|line| line.starts_with("warning")) {
            println!("cargo::warning={line}");
        }
    }
}

fn end(messages: &str) -> ! {
    eprintln!("{messages}");
    std::process::exit(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that is gone when the test is over.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let dir = std::env::temp_dir().join(format!("quill-build-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&dir).unwrap();
            Scratch(dir)
        }

        fn file(&self, name: &str, text: &str) -> PathBuf {
            std::fs::create_dir_all(self.0.join(name).parent().unwrap()).unwrap();
            std::fs::write(self.0.join(name), text).unwrap();
            self.0.join(name)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn each_file_is_a_module() {
        let scratch = Scratch::new("modules");
        let files = [("a-b.idl", "interface I { void f(); };"), ("type.idl", "struct S { long a; };")];
        let files = files.map(|(name, text)| scratch.file(name, text));
        let all = Stubs::new().rust_in(files, &scratch.0).unwrap();
        assert_eq!(all.len(), 2);
        let modules = std::fs::read_to_string(scratch.0.join(MODULES)).unwrap();
        assert!(modules.contains("pub mod a_b {") && modules.contains("pub mod r#type {"), "{modules}");
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let scratch = Scratch::new("mistakes");
        let files = ["interface I { void f(in lnog a); };", "struct S { long a };"].into_iter().zip(0..);
        let files: Vec<PathBuf> = files.map(|(text, i)| scratch.file(&format!("f{i}.idl"), text)).collect();
        let why = Stubs::new().rust_in(files, &scratch.0).unwrap_err();
        assert!(why.contains("f0.idl") && why.contains("f1.idl") && why.contains("`long`"), "{why}");
        assert!(!scratch.0.join(MODULES).exists());
    }

    #[test]
    fn what_is_asked_for_wrongly_is_told() {
        let scratch = Scratch::new("asked");
        let file = scratch.file("i.idl", "interface I { void f(); };");
        let why = Stubs::new().kernel("minix").rust_in([&file], &scratch.0).unwrap_err();
        assert!(why.contains("there are: linux, tern-ipc"), "{why}");
        let other = scratch.file("other/i.idl", "interface J { void f(); };");
        let why = Stubs::new().rust_in([&file, &other], &scratch.0).unwrap_err();
        assert!(why.contains("stubs of one name"), "{why}");
        let odd = scratch.file("1é.idl", "interface I { void f(); };");
        assert!(Stubs::new().rust_in([&odd], &scratch.0).unwrap_err().contains("no name for a module"));
        let why = Stubs::new().kernel("l4-v4").rust_in([&file], &scratch.0).unwrap_err();
        assert!(why.contains("has no Rust"), "{why}");
        assert!(
            Stubs::new()
                .rust_in([scratch.0.join("none.idl")], &scratch.0)
                .unwrap_err()
                .contains("cannot read")
        );
        assert!(Stubs::new().kernel("l4-v4").c_in([&file], &scratch.0).is_ok());
    }
}
