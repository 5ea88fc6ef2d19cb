//! Python's own tests, on Tern: those that Debian has in the package `libpython3.11-testsuite`.
//!
//! They are no part of a plain test: `./tern linux install libpython3.11-testsuite netbase` fetches them, and who has them has these trials. Of `netbase` they want the names of services,
//! `/etc/services`. Programs that they begin are those of this machine; who runs them on a disk of his own installs `coreutils`, too. `linux/python.txt` says of each module how
//! many of its tests pass, and which do not; the plain test runs the first ones of the list alone.

use crate::debian::{bring, bring_folder, fetched};
use crate::files::{check_disk, root_disk, tool};
use crate::world::{Reply, Scratch, Verdict, World, run_within};
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Beginnings of the names of the packages' files.
const PACKAGES: [&str; 2] = ["libpython3.11-testsuite_", "netbase_"];

/// How it is fetched.
const FETCH: &str =
    "./tern linux install libpython3.11-testsuite netbase fetches Python's tests, and the names of services";

/// Modules of the list that the plain test runs.
const FEW: usize = 2;

/// Longest time of a module.
const LIMIT: Duration = Duration::from_secs(5400);

/// A sandbox with room for several Pythons, whose input is nobody's.
const SANDBOX: &str = "linux --no-keys --memory 300 --own-memory 64 --root /disk/linux";

/// Programs that tests begin.
const PROGRAMS: [&str; 7] = ["python3.11", "dash", "env", "cat", "ls", "true", "sleep"];

/// Where Python has its library.
const LIBRARY: &str = "/usr/lib/python3.11";

/// The trials of this module: one for each module of the list.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let mut list = modules();
    list.truncate(if world.full { usize::MAX } else { FEW });
    let Some(packages) = packages() else {
        for module in list {
            world.skip(&format!("python::{}", module.name), FETCH);
        }
        return Vec::new();
    };
    let trial = |module: Module| {
        let packages = packages.clone();
        let name = format!("python::{}", module.name);
        world.trial("linux", name, move |world| module_passes(world, &packages, &module))
    };
    list.into_iter().map(trial).collect()
}

/// The packages, if somebody has fetched them.
fn packages() -> Option<Vec<PathBuf>> {
    PACKAGES.iter().map(|package| fetched("packages", |name| name.starts_with(package))).collect()
}

/// A module of the list.
#[derive(Debug)]
struct Module {
    name: String,
    /// Tests that pass.
    passes: usize,
    /// Names of those that do not, or beginnings of the names of several.
    others: Vec<String>,
}

/// The committed list: a module and how many of its tests pass, and behind it names of tests that do not, with the reason.
fn modules() -> Vec<Module> {
    let mut all: Vec<Module> = Vec::new();
    for line in include_str!("../../linux/python.txt").lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (None | Some("#"), _) => {}
            (Some("-"), Some(name)) => all.iter_mut().last().into_iter().for_each(|module| {
                module.others.push(format!("test.{}.{name}", module.name));
            }),
            (Some(name), count) => {
                let passes = count.and_then(|count| count.parse().ok()).unwrap_or(0);
                all.push(Module { name: name.into(), passes, others: Vec::new() });
            }
        }
    }
    all
}

/// A disk with Python, its library and its tests.
fn disk(scratch: &Scratch, packages: &[PathBuf]) -> Result<String, Failed> {
    let root = scratch.0.join("disk/linux");
    let mut known = BTreeSet::new();
    for folder in ["tmp/place", "bin", "lists", "etc", "root", "usr/bin", "var/tmp"] {
        fs::create_dir_all(root.join(folder))?;
    }
    for name in PROGRAMS {
        bring(&root, &Path::new("/usr/bin").join(name), &mut known)?;
    }
    for folder in [LIBRARY, &format!("{LIBRARY}/test")] {
        bring_folder(&root, Path::new(folder), &mut known)?;
    }
    std::os::unix::fs::symlink("/usr/bin/dash", root.join("bin/sh"))?;
    std::os::unix::fs::symlink("python3.11", root.join("usr/bin/python3"))?;
    for file in ["/etc/passwd", "/etc/group"] {
        fs::copy(file, root.join(file.trim_start_matches('/')))?;
    }
    fs::write(root.join("etc/hosts"), "127.0.0.1 localhost\n::1 localhost\n")?;
    for package in packages {
        tool("/usr/bin/dpkg-deb", &["-x", &package.display().to_string(), &root.display().to_string()])?;
    }
    // No script of a package has compiled what it brings, and there each program would. Some files are wrong on purpose, so the status says nothing.
    let library = root.join(LIBRARY.trim_start_matches('/'));
    let how = ["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"];
    Command::new("/usr/bin/python3.11").args(how).arg(library).output()?;
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../linux/tests.py");
    fs::copy(program, root.join("lists/tests.py"))?;
    root_disk(scratch, "512M")
}

/// Runs a module, whose tests all pass but those of the list.
fn module_passes(world: &World, packages: &[PathBuf], module: &Module) -> Verdict {
    let scratch = Scratch::create()?;
    let disk = disk(&scratch, packages)?;
    let mut command = world.tern_command();
    command.args(["run", "--disk", &disk, "--memory", "640", "--script", "-"]);
    let tests = format!("cd /tmp/place; exec python3.11 /lists/tests.py {}", module.name);
    let script = format!("{SANDBOX} dash -c \"{tests}\"\n");
    let reply = run_within(LIMIT, command, script.as_bytes())?;
    check_disk(&disk)?;
    let text = reply.out.replace('\r', "");
    let told = text.lines().filter_map(|line| line.strip_prefix("@@ ")?.split_once(' '));
    let (mut passes, mut wrong) = (0, String::new());
    for (name, how) in told {
        let is_known = module.others.iter().any(|other| name.starts_with(other.as_str()));
        passes += usize::from(how == "ok");
        match how {
            "ok" if module.others.iter().any(|other| other == name) => {
                wrong += &format!("{name} passes, and the list says that it does not\n")
            }
            "ok" | "skipped" => {}
            _ if is_known => {}
            how => wrong += &format!("{name}: {how}\n"),
        }
    }
    if passes < module.passes {
        wrong += &format!("{passes} tests pass, and the list says {}\n", module.passes);
    }
    if wrong.is_empty() { Ok(()) } else { Err(Reply { ..reply }.failed(&wrong)) }
}
