//! Shells of packages that few machines have: lists of commands print on Tern what they print on Linux.
//!
//! Each trial needs a package, which is installed or was fetched by `./tern linux install`.

use crate::debian::{bring, fetched};
use crate::files::{check_disk, root_disk, tool};
use crate::linux::{Root, source};
use crate::world::{Reply, Scratch, Verdict, World, run_within};
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A shell: name of the package and of its program in `/bin`, list of commands, and how it wants them (`run.sh`).
struct Shell {
    package: &'static str,
    list: &'static str,
    how: &'static str,
}

const SHELLS: [Shell; 2] = [
    Shell { package: "zsh-static", list: "lists/zsh.txt", how: "" },
    Shell { package: "sash", list: "lists/sash.txt", how: "-f" },
];

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let mut trials = Vec::new();
    for shell in SHELLS {
        let name = format!("linux::{}_prints_what_it_prints_on_linux", shell.package);
        match found(shell.package) {
            Some(found) => {
                trials.push(world.trial("linux", name, move |world| compare(world, &shell, &found)))
            }
            None => world.skip(&name, &format!("./tern linux install {} fetches it", shell.package)),
        }
    }
    let name = "linux::gcc_compiles_programs";
    match (world.full, Path::new(GCC).join("cc1").exists()) {
        (true, true) => trials.push(world.trial("linux", name, gcc_compiles_programs)),
        (true, false) => world.skip(name, "apt-get install gcc-12 libc6-dev"),
        (false, _) => {}
    }
    trials
}

/// Place where a shell is.
enum Found {
    /// On this machine.
    Program(PathBuf),
    /// In a package that somebody has fetched.
    Package(PathBuf),
}

fn found(package: &str) -> Option<Found> {
    let program = Path::new("/bin").join(package);
    if program.exists() {
        return Some(Found::Program(program));
    }
    let beginning = format!("{package}_");
    fetched("packages", |name| name.starts_with(&beginning)).map(Found::Package)
}

fn compare(world: &World, shell: &Shell, found: &Found) -> Verdict {
    let (root, unpacked) = (Root::new()?, Scratch::create()?);
    let program = match found {
        Found::Program(program) => program.clone(),
        Found::Package(package) => {
            let how = ["-x", &package.display().to_string(), &unpacked.0.display().to_string()];
            tool("/usr/bin/dpkg-deb", &how)?;
            unpacked.0.join("bin").join(shell.package)
        }
    };
    let to = format!("bin/{}", shell.package);
    fs::copy(program, root.folder().join(&to))?;
    root.compare(world, &to, shell.list, shell.how)
}

/// Folder of the compiler proper, and of what it links programs with.
const GCC: &str = "/usr/lib/gcc/x86_64-linux-gnu/12";

/// Files of that folder that a program of C needs.
const PARTS: [&str; 9] = [
    "cc1",
    "collect2",
    "lto-wrapper",
    "liblto_plugin.so",
    "libgcc.a",
    "libgcc_eh.a",
    "libgcc_s.so",
    "crtbegin.o",
    "crtend.o",
];

/// More of them, for programs that lie anywhere.
const PARTS_ANYWHERE: [&str; 3] = ["crtbeginS.o", "crtendS.o", "crtbeginT.o"];

/// Files of the C library for programs that are linked with it.
const LIBRARY: [&str; 9] = [
    "crt1.o",
    "Scrt1.o",
    "crti.o",
    "crtn.o",
    "libc.so",
    "libc_nonshared.a",
    "libc.so.6",
    "libc.a",
    "libgcc_s.so.1",
];

/// Longest time of the compiler's machine.
const LIMIT: Duration = Duration::from_secs(1800);

/// Gcc, with the C library and its headers, compiles a program that runs, with shared libraries and without.
fn gcc_compiles_programs(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let root = scratch.0.join("disk/linux");
    make_gcc_root(&root)?;
    let disk = root_disk(&scratch, "256M")?;
    let mut command = world.tern_command();
    command.args(["run", "--disk", &disk, "--memory", "768", "--script", "-"]);
    let script = "linux --no-keys --memory 384 --own-memory 64 dash /tmp/all.sh\n";
    let reply: Reply = run_within(LIMIT, command, script.as_bytes())?;
    check_disk(&disk)?;
    for wanted in ["all is well\n", "the product is 42\nstatus 3\n", "\n1\n"] {
        reply.check_contains(wanted)?;
    }
    reply.check_code(0)
}

/// A root with the compiler, the assembler, the linker, headers, and programs to compile.
fn make_gcc_root(root: &Path) -> Result<(), Failed> {
    let mut known = BTreeSet::new();
    for folder in ["tmp", "bin"] {
        fs::create_dir_all(root.join(folder))?;
    }
    for name in ["gcc-12", "as", "ld", "dash", "grep"] {
        bring(root, &Path::new("/usr/bin").join(name), &mut known)?;
    }
    for name in PARTS.iter().chain(&PARTS_ANYWHERE) {
        bring(root, &Path::new(GCC).join(name), &mut known)?;
    }
    for name in LIBRARY {
        bring(root, &Path::new("/usr/lib/x86_64-linux-gnu").join(name), &mut known)?;
    }
    // A rule for `make` names all headers of a program that is compiled in the same way.
    for word in tool("/usr/bin/gcc-12", &["-O2", "-M", &source("threads.c")])?.split_whitespace() {
        if word.starts_with("/usr/") {
            bring(root, &fs::canonicalize(word)?, &mut known)?;
        }
    }
    symlink("/usr/bin/dash", root.join("bin/sh"))?;
    fs::copy(source("threads.c"), root.join("tmp/threads.c"))?;
    let script = "cd /tmp\ngcc-12 -O2 -o a threads.c && ./a /tmp\ngcc-12 -static -O1 -o b hello.c && ./b 6 7\necho status $?\n\
                  gcc-12 wrong.c 2>&1 | grep -c error:\n";
    fs::write(root.join("tmp/all.sh"), script)?;
    let hello = "#include <stdio.h>\n#include <stdlib.h>\nint main(int count, char **words)\n{\n\
                 \tprintf(\"the product is %d\\n\", atoi(words[1]) * atoi(words[2]));\n\treturn count;\n}\n";
    fs::write(root.join("tmp/hello.c"), hello)?;
    fs::write(root.join("tmp/wrong.c"), "int main(void) { return nothing; }\n")?;
    Ok(())
}
