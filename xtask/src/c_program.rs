//! How a C program is compiled: against newlib and the runtime in `user/lib/c`, by the host's compiler without the host's headers and
//! libraries, and only if something that it is made of has changed ([`fresh`]).

use crate::build::run_builder;
use crate::fresh;
use crate::newlib::{self, Newlib, TARGET_FLAGS};
use crate::programs::files_with_extension;
use crate::{Context, Error, Result, paths};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of the compiler for programs and their runtime, beside [`TARGET_FLAGS`].
const FLAGS: [&str; 9] = [
    "-std=gnu11",
    "-O2",
    "-g",
    "-Wall",
    "-Wextra",
    "-nostdinc",
    "-D_GNU_SOURCE",
    "-D_POSIX_TIMERS=1",
    "-D_POSIX_MONOTONIC_CLOCK=200112L",
];

/// Options of the linker for them.
const LINK_FLAGS: [&str; 6] = [
    "-static",
    "-nostdlib",
    "-no-pie",
    "-Wl,--build-id=none",
    "-Wl,-z,noexecstack",
    "-Wl,-z,max-page-size=4096",
];

/// Compiler of C programs: newlib, runtime, headers.
#[derive(Debug)]
pub struct Compiler {
    newlib: Newlib,
    /// The folder of the runtime's sources.
    runtime: PathBuf,
    /// Where headers are: the runtime's, stubs of interfaces, and the compiler's own, in front of newlib's.
    include: Vec<PathBuf>,
    /// The runtime, compiled: what every program begins with, and an archive.
    objects: Vec<PathBuf>,
    archive: PathBuf,
}

impl Compiler {
    /// Compiles the runtime. `stubs`: where generated headers are; `directory`: where to put what is made.
    pub fn new(runtime: &Path, stubs: &Path, directory: &Path) -> Result<Compiler> {
        let newlib = newlib::build()?;
        let own = paths::create(&directory.join("runtime"))?;
        let include = vec![runtime.join("include"), stubs.to_path_buf(), compiler_headers()?];
        let archive = own.join("libtern.a");
        let mut compiler =
            Compiler { newlib, runtime: runtime.to_path_buf(), include, objects: Vec::new(), archive };
        compiler.objects = compiler.compile_all(&runtime.join("crt"), &own)?;
        let library = compiler.compile_all(&runtime.join("lib"), &own)?;
        let _ = fs::remove_file(&compiler.archive);
        let mut archiver = Command::new("ar");
        archiver.args(["rcsD"]).arg(&compiler.archive).args(library);
        run_builder(&mut archiver, "the runtime of C programs")?;
        Ok(compiler)
    }

    /// Compiles the files of a folder, one by one.
    fn compile_all(&self, folder: &Path, to: &Path) -> Result<Vec<PathBuf>> {
        let mut objects = Vec::new();
        for source in files_with_extension(folder, &["c", "S"])? {
            let object = to.join(source.with_extension("o").file_name().unwrap_or_default());
            let mut command = self.command();
            command.arg("-c").arg(&source).arg("-o").arg(&object);
            fresh::make(&mut command, &object, &source.display().to_string())?;
            objects.push(object);
        }
        Ok(objects)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("gcc");
        command.args(FLAGS).args(TARGET_FLAGS);
        // The text of `__FILE__`, in failed assertions, is the file's path in the checkout.
        command.arg(format!("-fmacro-prefix-map={}/=", paths::root().display()));
        for directory in &self.include {
            command.arg("-I").arg(directory);
        }
        command.arg("-isystem").arg(&self.newlib.include);
        command
    }

    /// Makes a program of sources.
    pub fn program(&self, name: &str, sources: &[PathBuf], output: &Path) -> Result<()> {
        let mut command = self.command();
        command.args(LINK_FLAGS).arg("-T").arg(self.runtime.join("tern.ld")).arg("-o").arg(output);
        command.args(&self.objects).args(sources).arg("-L").arg(&self.newlib.lib).arg("-Wl,--start-group");
        command.arg(&self.archive).args(["-lc", "-lm", "-lgcc", "-Wl,--end-group"]);
        fresh::make(&mut command, output, &format!("the C program {name}"))
    }
}

/// The headers that belong to the compiler itself: `stddef.h` and its like.
fn compiler_headers() -> Result<PathBuf> {
    let output = Command::new("gcc").arg("-print-file-name=include").output();
    let output = output.context(|| "run gcc".into())?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if path.is_absolute() { Ok(path) } else { Err(Error::new("gcc does not say where its headers are")) }
}
