//! Finds and builds the user programs: crates with a binary in one of the [`ROOMS`], and folders of C files there. The interface files that
//! stand beside either become headers for programs in C; programs in Rust make stubs of them by `rt::interface!`.
//!
//! A crate elsewhere takes part when its manifest says `[package.metadata.tern] program = true`.

use crate::archive::{Entry, strip};
use crate::build::{self, GUEST_TARGET, run_builder};
use crate::c_program::Compiler;
use crate::{Context, Error, Result, help, paths, system};
use quill::build::Build;
use quill::kernel::{KernelPart, TernDoor, TernIpc};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders whose folders run on Tern, each of them a library or a program: the libraries, the system, what a person starts, guest tests, and
/// what is measured. A folder in them with a `src` is a crate, one with C files at its top a program in C.
pub const ROOMS: [&str; 5] = ["user/lib", "user/system", "user/apps", "tests/guest", "bench/guest"];

/// The linker script and the runtime of C programs.
const C_RUNTIME: &str = "user/lib/c";

/// Files for the boot archive, packed as they are, under their paths in here.
const DATA: &str = "user/system/data";

/// A crate of the workspace, as far as it matters here.
#[derive(Clone, Debug)]
pub struct Package {
    /// Name in its manifest.
    pub name: String,
    /// Its directory, relative to the checkout.
    pub directory: PathBuf,
    /// Names of its binaries.
    pub binaries: Vec<String>,
    /// Its table `[package.metadata.tern]`.
    pub settings: Value,
}

impl Package {
    /// Whether it lies in one of the [`ROOMS`], so that it is compiled for Tern.
    pub fn is_guest(&self) -> bool {
        ROOMS.iter().any(|room| self.directory.starts_with(room))
    }

    /// Whether its binaries run on Tern.
    pub fn is_program(&self) -> bool {
        let declared = self.settings["program"].as_bool();
        !self.binaries.is_empty() && declared.unwrap_or(self.is_guest())
    }

    /// Whether it is the harness that boots machines.
    pub fn is_harness(&self) -> bool {
        self.directory.starts_with("tests/harness")
    }

    /// Whether `cargo test` on the host makes sense: everything that is not compiled for Tern, and what says so.
    pub fn has_host_tests(&self) -> bool {
        self.settings["host-tests"].as_bool().unwrap_or(!self.is_guest() && !self.is_program())
    }
}

/// The members of the workspace.
pub fn packages() -> Result<Vec<Package>> {
    let root = paths::root();
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .output()
        .context(|| "run cargo".into())?;
    if !output.status.success() {
        return Err(Error::new(String::from_utf8_lossy(&output.stderr).trim().to_string()));
    }
    let metadata: Value =
        serde_json::from_slice(&output.stdout).context(|| "read cargo's metadata".into())?;
    let list = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(list.iter().filter_map(|package| read_package(package, &root)).collect())
}

fn read_package(package: &Value, root: &Path) -> Option<Package> {
    let manifest = Path::new(package["manifest_path"].as_str()?);
    let is_binary =
        |target: &&Value| target["kind"].as_array().is_some_and(|kinds| kinds.contains(&"bin".into()));
    let targets = package["targets"].as_array()?.iter().filter(is_binary);
    Some(Package {
        name: package["name"].as_str()?.into(),
        directory: manifest.parent()?.strip_prefix(root).ok()?.into(),
        binaries: targets.filter_map(|target| Some(target["name"].as_str()?.to_string())).collect(),
        settings: package["metadata"]["tern"].clone(),
    })
}

/// Builds all user programs and returns what goes into the boot archive, sorted by name, with the system description of this name.
pub fn build_all(system: &str) -> Result<Vec<Entry>> {
    build_all_with(system, None)
}

/// Builds like [`build_all`], with an environment variable for the build scripts.
pub fn build_all_with(system: &str, variable: Option<(&str, &Path)>) -> Result<Vec<Entry>> {
    let _lock = lock()?;
    let packages = packages()?;
    // The C library's own configure script is a single thread for most of its time.
    let (c, rust) = build::side_by_side(build_c, || build_rust(&packages, variable));
    let mut entries = rust?;
    entries.extend(c?);
    entries.push(help::entry(&paths::root(), &packages, &c_programs(&paths::root())?)?);
    entries.extend(data_files()?);
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    if let Some(pair) = entries.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return Err(Error::new(format!("two files for the boot archive are named {}", pair[0].name)));
    }
    let files: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let description = system::read(system, &files)?.pack();
    entries.push(Entry { name: description::FILE.into(), data: description });
    Ok(entries)
}

/// Keeps other builds of this tree waiting as long as it lives: cargo does so for its own part, and compilers and linkers of C know of nobody else.
fn lock() -> Result<File> {
    let path = paths::out()?.join("build.lock");
    let file = File::create(&path).context(|| format!("create {}", path.display()))?;
    if file.try_lock().is_err() {
        eprintln!("tern: waiting for another build of this tree");
        file.lock().context(|| format!("lock {}", path.display()))?;
    }
    Ok(file)
}

/// Names of all files of the boot archive but the system description, without building any.
pub fn names() -> Result<Vec<String>> {
    let packages = packages()?;
    let binaries =
        packages.iter().filter(|package| package.is_program()).flat_map(|package| package.binaries.clone());
    let mut names: Vec<String> = binaries.collect();
    let name_of = |path: PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    names.extend(c_programs(&paths::root())?.into_iter().map(|(directory, _)| name_of(directory)));
    names.extend(data_files()?.into_iter().map(|entry| entry.name));
    names.push(help::FILE.into());
    Ok(names)
}

/// Where the ELF file of a program of the boot archive is, with all that [`strip`] drops: places to look at.
pub fn elf_files(program: &str) -> [PathBuf; 2] {
    let user = paths::target().join("user");
    [user.join(GUEST_TARGET).join("release").join(program), user.join("c").join(program)]
}

fn build_rust(packages: &[Package], variable: Option<(&str, &Path)>) -> Result<Vec<Entry>> {
    let programs: Vec<&Package> = packages.iter().filter(|package| package.is_program()).collect();
    if programs.is_empty() {
        return Ok(Vec::new());
    }
    let directory = paths::target().join("user");
    let mut builder = build::cargo_for_programs("build", &directory);
    builder.envs(variable);
    for program in &programs {
        builder.arg("--package").arg(&program.name);
    }
    run_builder(builder.arg("--bins"), "the user programs")?;
    let binaries = directory.join(GUEST_TARGET).join("release");
    let names = programs.iter().flat_map(|program| &program.binaries);
    names
        .map(|name| Ok(Entry { name: name.clone(), data: strip(&paths::read(&binaries.join(name))?) }))
        .collect()
}

/// Builds every folder of the [`ROOMS`] that holds C files and no manifest.
fn build_c() -> Result<Vec<Entry>> {
    let root = paths::root();
    let runtime = root.join(C_RUNTIME);
    let made = paths::create(&paths::target().join("user/c"))?;
    let compiler = Compiler::new(&runtime, &stub_headers()?, &made)?;
    let mut entries = Vec::new();
    for (directory, sources) in c_programs(&root)? {
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let output = made.join(&name);
        compiler.program(&name, &sources, &output)?;
        entries.push(Entry { name, data: strip(&paths::read(&output)?) });
    }
    Ok(entries)
}

/// Folders of the [`ROOMS`] that hold C files and no manifest, with these files.
fn c_programs(root: &Path) -> Result<Vec<(PathBuf, Vec<PathBuf>)>> {
    let mut found = Vec::new();
    for directory in folders(root)? {
        let sources = files_with_extension(&directory, &["c", "S"])?;
        if !sources.is_empty() && !directory.join("Cargo.toml").exists() {
            found.push((directory, sources));
        }
    }
    Ok(found)
}

/// Makes C stubs of all interfaces, `<NAME.h>` for threads that serve by ipc and `<door/NAME.h>` for objects behind doors; gives back their
/// directory.
fn stub_headers() -> Result<PathBuf> {
    let directory = paths::target().join("user/c/include");
    let door = directory.join("door");
    fs::create_dir_all(&door).context(|| format!("create {}", door.display()))?;
    let interfaces = interfaces(&paths::root())?;
    for stale in [&directory, &door].map(|directory| files_with_extension(directory, &["h"])) {
        for file in stale? {
            if !interfaces.iter().any(|interface| interface.file_stem() == file.file_stem()) {
                fs::remove_file(&file).context(|| format!("remove {}", file.display()))?;
            }
        }
    }
    for interface in &interfaces {
        let made = [(&TernIpc as &'static dyn KernelPart, &directory), (&TernDoor, &door)]
            .map(|(kernel, directory)| (directory, Build::new().kernel(kernel).c_in(interface, directory)));
        if let [(_, Err(why)), (_, Err(_))] = made {
            return Err(Error::new(why));
        }
        for (directory, made) in made {
            // A value that one of them cannot carry is an error for the caller that wants it.
            if let Err(why) = made {
                let name = interface.with_extension("h");
                let path = directory.join(name.file_name().unwrap_or_default());
                paths::write(&path, refusal(&why).as_bytes())?;
            }
        }
    }
    Ok(directory)
}

/// The interface files of the system, and those at the top of a program's folder.
fn interfaces(root: &Path) -> Result<Vec<PathBuf>> {
    let mut all = files_with_extension(&root.join("idl/interfaces"), &["idl"])?;
    for folder in folders(root)? {
        all.extend(files_with_extension(&folder, &["idl"])?);
    }
    let mut by_name: BTreeMap<_, &PathBuf> = BTreeMap::new();
    for file in &all {
        if let Some(other) = by_name.insert(file.file_stem(), file) {
            let names = [other, file].map(|file| file.strip_prefix(root).unwrap_or(file).display());
            return Err(Error::new(format!(
                "two interface files have one name: {} and {}",
                names[0], names[1]
            )));
        }
    }
    Ok(all)
}

/// A header that says why there is none.
fn refusal(why: &str) -> String {
    let lines = why.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| format!("#error \"{}\"\n", line.replace(['\\', '"'], "'"))).collect()
}

/// Files for programs to read.
fn data_files() -> Result<Vec<Entry>> {
    let top = paths::root().join(DATA);
    let (mut entries, mut left) = (Vec::new(), list(&top)?);
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(list(&path)?);
            continue;
        }
        let name = path.strip_prefix(&top).unwrap_or(&path).to_string_lossy().into_owned();
        entries.push(Entry { name, data: paths::read(&path)? });
    }
    Ok(entries)
}

/// Folders and files in the [`ROOMS`] of a checkout, room by room.
fn folders(root: &Path) -> Result<Vec<PathBuf>> {
    let rooms: Result<Vec<_>> = ROOMS.iter().map(|room| list(&root.join(room))).collect();
    Ok(rooms?.concat())
}

/// Entries of a directory, sorted; nothing if there is no such directory.
fn list(directory: &Path) -> Result<Vec<PathBuf>> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let read = fs::read_dir(directory).context(|| format!("read {}", directory.display()))?;
    let mut found: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort();
    Ok(found)
}

/// Files of a directory, sorted.
pub(crate) fn files_with_extension(directory: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let mut files = list(directory)?;
    files.retain(|path| {
        path.extension().is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted))
    });
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_found_beside_programs() {
        let root = std::env::temp_dir().join(format!("tern-interfaces-{}", std::process::id()));
        let create = |path: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap_or(&path)).unwrap_or_default();
            fs::write(path, "").unwrap_or_default();
        };
        [
            "idl/interfaces/system.idl",
            "user/system/clock/clock.idl",
            "user/system/clock/src/private.idl",
            "user/apps/hello-c/hello.c",
            "user/stray/stray.idl",
            "tests/guest/door-c/bounded.idl",
        ]
        .into_iter()
        .for_each(create);
        let found = interfaces(&root).unwrap_or_default();
        let names: Vec<_> = found.iter().filter_map(|path| path.strip_prefix(&root).ok()?.to_str()).collect();
        let expected =
            ["idl/interfaces/system.idl", "user/system/clock/clock.idl", "tests/guest/door-c/bounded.idl"];
        assert_eq!(names, expected);
        create("user/apps/hello-c/clock.idl");
        let why = interfaces(&root).err().map(|error| error.message).unwrap_or_default();
        assert!(why.contains("user/system/clock/clock.idl and user/apps/hello-c/clock.idl"), "{why}");
        fs::remove_dir_all(root).unwrap_or_default();
    }

    #[test]
    fn readmes_have_a_row_for_each_folder() {
        for room in ROOMS {
            let top = room.split('/').next().unwrap();
            let readme = fs::read_to_string(paths::root().join(top).join("README.md")).unwrap();
            for folder in list(&paths::root().join(room)).unwrap() {
                let name = folder.file_name().unwrap().to_string_lossy().into_owned();
                let row = |line: &&str| line.starts_with('|') && line.contains(&format!("`{name}`"));
                assert!(
                    readme.lines().any(|line| row(&line)),
                    "{top}/README.md has no row for {room}/{name}"
                );
            }
        }
    }

    #[test]
    fn a_refusal_is_what_a_c_compiler_says() {
        assert_eq!(
            refusal("error: \"x\" \\\n\n  --> a.idl\n"),
            "#error \"error: 'x' '\"\n#error \"  --> a.idl\"\n"
        );
    }
}
