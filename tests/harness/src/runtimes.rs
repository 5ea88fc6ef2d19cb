//! Programs whose runtimes have ways of their own: threads of musl and of the shared C library, goroutines, and a compiler that makes code while its program runs. They print what they print on Linux.

use crate::debian::bring;
use crate::files::tool;
use crate::linux::{Root, prints_one_text, prints_text_of, source};
use crate::world::{Named, Verdict, World, run};
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::paths;

/// Debian's compiler that links with musl.
const MUSL: &str = "/usr/bin/musl-gcc";

/// Debian's LuaJIT.
const LUAJIT: &str = "/usr/bin/luajit";

/// The trials of this module. Each needs a program of this machine, and who has not that has not the trial.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let path = |path: &str| Path::new(path).exists();
    let trials: [(Named, bool, &str); 4] = [
        (("threads_of_musl", threads_of_musl), path(MUSL), "musl-tools"),
        (("threads_of_the_shared_c_library", threads_of_the_shared_c_library), true, ""),
        (("goroutines", goroutines), paths::find_program("go").is_some(), "golang-go"),
        (("code_that_luajit_makes", code_that_luajit_makes), path(LUAJIT), "luajit"),
    ];
    let trial = |((name, verdict), is_there, package): (Named, bool, &str)| {
        let name = format!("runtimes::{name}");
        if !is_there {
            world.skip(&name, &format!("apt-get install {package} brings what it needs"));
            return None;
        }
        Some(world.trial("linux", name, verdict))
    };
    trials.into_iter().filter_map(trial).collect()
}

/// Compiles a program of threads for a root.
fn compile_threads(root: &Root, compiler: &str, options: &[&str]) -> Result<PathBuf, Failed> {
    let program = root.folder().join("bin/threads");
    let mut command = Command::new(compiler);
    command.args(["-O2", "-pthread", "-s"]).args(options).arg("-o").arg(&program).arg(source("threads.c"));
    run(command, b"")?.check_code(0)?;
    Ok(program)
}

/// Locks of each kind, threads that are cancelled or get signals, children of programs with threads, code that a program makes and changes: by musl, linked statically.
fn threads_of_musl(world: &'static World) -> Verdict {
    let root = Root::new()?;
    compile_threads(&root, MUSL, &["-static"])?;
    prints_one_text(world, &root, "threads")
}

/// Threads of the C library of Debian, which a program shares with others. To cancel a thread it loads the compiler's library, which the program is not linked with.
fn threads_of_the_shared_c_library(world: &'static World) -> Verdict {
    let root = Root::new()?;
    let program = compile_threads(&root, "/usr/bin/gcc", &[])?;
    let loaded = tool("/usr/bin/gcc", &["-print-file-name=libgcc_s.so.1"])?;
    let mut known = BTreeSet::new();
    bring(&root.folder(), &fs::canonicalize(loaded.trim_end())?, &mut known)?;
    bring_libraries(&root, &program, &mut known)?;
    prints_one_text(world, &root, "threads")
}

/// Copies what a program of a root is linked with.
fn bring_libraries(root: &Root, program: &Path, known: &mut BTreeSet<PathBuf>) -> Verdict {
    let linked = tool("/usr/bin/ldd", &[&program.display().to_string()])?;
    for word in linked.split_whitespace().filter(|word| word.starts_with('/')) {
        bring(&root.folder(), Path::new(word), known)?;
    }
    Ok(())
}

/// Goroutines on several threads, which are interrupted by signals; a collector of garbage, faults, processes, and a server of the web.
fn goroutines(world: &'static World) -> Verdict {
    let root = Root::new()?;
    let mut command = Command::new("go");
    command.args(["build", "-ldflags", "-s -w", "-o"]).arg(root.folder().join("bin/goroutines"));
    command.arg(source("goroutines.go"));
    // Neither what this machine has set nor a network has a say.
    command.env_remove("GOFLAGS").envs([
        ("CGO_ENABLED", "0"),
        ("GO111MODULE", "off"),
        ("GOTOOLCHAIN", "local"),
    ]);
    for (name, folder) in [("GOCACHE", "go-cache"), ("GOPATH", "go-path")] {
        command.env(name, paths::create(&paths::out()?.join("linux").join(folder))?);
    }
    run(command, b"")?.check_code(0)?;
    prints_one_text(world, &root, "goroutines")
}

/// Pieces of a program are compiled while it runs, into pages that can be written or run, and never both.
fn code_that_luajit_makes(world: &'static World) -> Verdict {
    let root = Root::new()?;
    bring(&root.folder(), Path::new(LUAJIT), &mut BTreeSet::new())?;
    fs::copy(source("jit.lua"), root.folder().join("lists/jit.lua"))?;
    prints_text_of(world, &root, &[LUAJIT, &source("jit.lua")], &["luajit", "/lists/jit.lua"])
}
