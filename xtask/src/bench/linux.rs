//! The suite `linux`: operations of a program of Linux, which runs unmodified on Tern, and on Linux itself.
//!
//! The program is static, needs no library, and is made by the host's compiler. On Tern it lies on a disk, as programs of Linux do; on Linux it is the first process of a machine with Debian's kernel, under the same plugin.
//!
//! A second program measures Debian's own programs, each of which has a machine of its own, with that program's packages. They are those that somebody has fetched.

use super::devices::{DATE, NULL_DISK, NULL_DISK_DEVICE, make_disk};
use super::rows::Row;
use super::{FIGURES, Medians, figures, for_git, medians, rows_of};
use crate::archive;
use crate::build::{System, run_builder};
use crate::linux;
use crate::machine::{Machine, QEMU};
use crate::paths::{self, Scratch};
use crate::{Context, Error, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

/// The suite's name.
pub const SUITE: &str = "linux";

/// A program that measures.
struct Measuring {
    /// Its name on the disk.
    name: &'static str,
    source: &'static str,
}

/// The one that measures calls.
const ROWS: Measuring = Measuring { name: "linux-rows", source: "bench/linux/rows.c" };

/// The one that measures programs.
const PROGRAMS: Measuring = Measuring { name: "linux-programs", source: "bench/linux/programs.c" };

/// Boot options with which a program starts; its name and its argument follow.
const START: &str = "init=linux args=--boot,--root,/disk/linux,";

/// A file that the program of calls makes.
const FILE: &str = "/file";

/// Sizes of a disk with a program that needs no library, and with packages.
const SIZES: [&str; 2] = ["16M", "128M"];

/// Key of a table's row: which program of Debian's it has measured.
pub const MEASURED: &str = "program";

/// Options of the compiler. The program needs no library, and is the same wherever it runs.
const FLAGS: [&str; 10] = [
    "-O2",
    "-static",
    "-nostdlib",
    "-ffreestanding",
    "-fno-stack-protector",
    "-fno-pie",
    "-no-pie",
    "-fcf-protection=none",
    "-Wall",
    "-Wl,--build-id=none",
];

/// Debian's package that names the one with the kernel.
const PACKAGE: &str = "linux-image-amd64";

/// Command line of Linux. Without what it does against leaks of processors it is at its fastest.
const COMMAND_LINE: &str = "console=ttyS0 quiet mitigations=off panic=-1";

/// Modules of the kernel that drive the disk behind which there is nothing, each behind those that it needs. The program loads them.
const MODULES: [&str; 6] =
    ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk"];

/// Beginning of the modules' names in the machine; their place in the list follows.
const MODULE_NAME: &str = "module.";

/// Figures of Linux that are kept.
const KEPT: [&str; 5] = ["insns", "user", "ilines", "dlines", "cr3"];

impl Measuring {
    /// The one for a row, which may measure a program of Debian's.
    fn of(package: Option<&str>) -> Measuring {
        if package.is_some() { PROGRAMS } else { ROWS }
    }

    /// Compiles it to a file.
    fn compile(&self, path: &Path) -> Result<()> {
        let mut compiler = Command::new("gcc");
        compiler.args(FLAGS).arg("-o").arg(path).arg(paths::root().join(self.source));
        run_builder(&mut compiler, self.source)
    }
}

/// The program of Debian's that a row measures, with its version, if it measures one; an error says why it is not there.
pub fn measured_program(row: &Row, is_fetched: bool) -> Result<Option<String>> {
    let Some(package) = row.program() else { return Ok(None) };
    match linux::program(package, is_fetched) {
        Ok(program) => Ok(Some(program.version)),
        Err(Error { message, .. }) => {
            Err(Error::new(format!("{message}; ./tern linux install {package} fetches it")))
        }
    }
}

/// A machine that starts the program of calls, or the one that measures a package's; both lie on a disk of their own.
pub fn machine(system: &System, package: Option<&str>) -> Result<Machine> {
    let (measuring, scratch) = (Measuring::of(package), Scratch::create("linux-rows")?);
    let root = paths::create(&scratch.0.join("linux"))?;
    if let Some(package) = package {
        linux::program(package, false)?.unpack(&root)?;
    }
    let place = root.join(measuring.name);
    measuring.compile(&place)?;
    for path in [&place, &root, &scratch.0] {
        let dated = File::open(path).and_then(|file| file.set_modified(UNIX_EPOCH + DATE));
        dated.context(|| format!("date {}", path.display()))?;
    }
    let disk = paths::out()?.join(format!("{}.img", package.unwrap_or(measuring.name)));
    make_disk(&disk, Some(&scratch.0), SIZES[usize::from(package.is_some())])?;
    let start = format!("{START}/{},{}", measuring.name, package.unwrap_or(FILE));
    let mut machine = Machine::new(system).with(&start);
    machine.disk = Some(disk);
    Ok(machine)
}

/// Where the figures of Linux are kept.
fn committed_path() -> PathBuf {
    paths::root().join("bench/peers/linux.json")
}

/// The figures of Linux, as they are kept; without any, null.
pub fn peer() -> Value {
    let text = fs::read_to_string(committed_path()).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Linux's instructions for the operation of a row, if it has such an operation.
pub fn figure(peer: &Value, row: &Row) -> Option<u64> {
    let own = (row.suite == SUITE).then_some(&row.name);
    let name = row.linux.as_ref().or(own)?;
    let found = rows_of(peer).iter().find(|other| other["name"] == name.as_str())?;
    found["insns"].as_u64().filter(|insns| *insns > 0)
}

/// A machine with Debian's kernel.
struct Peer<'a> {
    plugin: &'a Path,
    kernel: PathBuf,
    /// Folder of the unpacked package of the kernel.
    unpacked: &'a Path,
}

/// Measures Linux with the kernel that Debian has now, and renews the kept figures. Programs of Debian are fetched; those that cannot be had are left out, and keep their figures.
pub fn measure_peer<'a>(plugin: &Path, rows: impl Iterator<Item = &'a Row>) -> Result<()> {
    let scratch = Scratch::create("linux-peer")?;
    let (kernel, version) = kernel(&scratch.0)?;
    let peer = Peer { plugin, kernel, unpacked: &scratch.0 };
    eprintln!("tern: running {version}");
    let mut boots: BTreeMap<Option<&str>, Medians> = BTreeMap::new();
    let mut table = Vec::new();
    for row in rows {
        let program = match measured_program(row, true) {
            Ok(program) => program,
            Err(why) => {
                eprintln!("tern: {} is left out: {}", row.name, why.message);
                table.extend(rows_of(&self::peer()).iter().find(|kept| kept["name"] == *row.name).cloned());
                continue;
            }
        };
        let medians = match boots.entry(row.program()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(peer.measure(row.program())?),
        };
        table.push(kept(row, medians, program)?);
    }
    let table = json!({ "suite": version, "rows": table });
    paths::write(&committed_path(), for_git(&table).as_bytes())
}

/// The figures of a row that are kept.
fn kept(row: &Row, medians: &Medians, program: Option<String>) -> Result<Value> {
    let mut kept = json!({ "name": row.name });
    for ((name, _), value) in FIGURES.iter().zip(figures(row, medians)?) {
        if KEPT.contains(name) {
            kept[*name] = value.into();
        }
    }
    if let Some(program) = program {
        kept[MEASURED] = program.into();
    }
    Ok(kept)
}

impl Peer<'_> {
    /// Boots Linux once, with the program of calls or with the one that measures a package's.
    fn measure(&self, package: Option<&str>) -> Result<Medians> {
        let scratch = Scratch::create("linux-boot")?;
        let root = paths::create(&scratch.0.join("root"))?;
        self.fill(&root, package)?;
        let initial = scratch.0.join("initial.cpio");
        paths::write(&initial, &archive::pack_initial(&root)?)?;
        let (report, said) = (scratch.0.join("report.csv"), scratch.0.join("said"));
        let mut emulator = self.emulator(&initial, &said, package);
        let plugin = self.plugin.display();
        let warm_up = super::WARM_UP;
        let plugin = format!("{plugin},csv={},out=/dev/null,warmup={warm_up}", report.display());
        run_builder(emulator.args(["-plugin", &plugin]), "figures of Linux")?;
        // Of a program that could not go on it has said where that was.
        let said = fs::read_to_string(&said).unwrap_or_default();
        if let Some(line) = said.lines().find(|line| line.contains("rows: ended with")) {
            return Err(Error::machine(format!("on Linux, {line}")));
        }
        Ok(medians(&fs::read_to_string(&report).context(|| "read the figures of Linux".into())?))
    }

    fn emulator(&self, initial: &Path, said: &Path, package: Option<&str>) -> Command {
        let counting =
            Machine::booting(crate::machine::Boot::Direct { kernel: self.kernel.clone(), archive: None });
        let counting = counting.counting();
        let mut emulator = Command::new(QEMU);
        emulator.args(["-m", "512", "-display", "none", "-monitor", "none", "-nic", "none"]);
        emulator.arg("-serial").arg(format!("file:{}", said.display()));
        emulator.args(["-no-reboot", "-cpu", &counting.cpu]).args(&counting.extra);
        // Words behind two dashes are the first program's.
        let words = package.map_or(String::new(), |package| format!(" -- {package} machine"));
        emulator.arg("-kernel").arg(&self.kernel).arg("-initrd").arg(initial);
        emulator.args(["-append", &format!("{COMMAND_LINE}{words}")]);
        emulator.args(NULL_DISK).args(["-device", &counting.virtio(NULL_DISK_DEVICE)]);
        emulator.stdin(Stdio::null());
        emulator
    }

    /// Fills the machine's root: the program that measures, and the package's, or the modules.
    fn fill(&self, root: &Path, package: Option<&str>) -> Result<()> {
        match package {
            Some(package) => linux::program(package, true)?.unpack(root)?,
            None => self.add_modules(root)?,
        }
        Measuring::of(package).compile(&root.join("init"))
    }

    fn add_modules(&self, root: &Path) -> Result<()> {
        for (place, module) in MODULES.iter().enumerate() {
            let file = format!("{module}.ko");
            let found = find_file(&self.unpacked.join("lib/modules"), &file)?;
            let found = found.ok_or_else(|| Error::new(format!("Debian's kernel has no module {file}")))?;
            let to = root.join(format!("{MODULE_NAME}{place}"));
            fs::copy(&found, &to).context(|| format!("write {}", to.display()))?;
        }
        Ok(())
    }
}

/// A file of that name in a folder or below.
fn find_file(folder: &Path, name: &str) -> Result<Option<PathBuf>> {
    let entries = fs::read_dir(folder).context(|| format!("read {}", folder.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.file_name().is_some_and(|found| found == name) {
            return Ok(Some(path));
        }
        if path.is_dir()
            && !path.is_symlink()
            && let Some(found) = find_file(&path, name)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Debian's kernel, unpacked into a folder, and its package with the version.
fn kernel(folder: &Path) -> Result<(PathBuf, String)> {
    let archive = linux::fetch_dependency(PACKAGE, "linux-image-")?;
    let name = archive.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("--extract").arg(&archive).arg(folder);
    run_builder(&mut unpack, &name)?;
    let boot = folder.join("boot");
    let files = fs::read_dir(&boot).context(|| format!("read {}", boot.display()))?;
    let is_kernel =
        |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("vmlinuz"));
    let kernel = files.flatten().map(|entry| entry.path()).find(is_kernel);
    Ok((kernel.ok_or_else(|| Error::new(format!("{name} has no kernel")))?, name))
}

#[cfg(test)]
mod tests {
    use super::super::rows::read_row;
    use super::super::{committed, rows_of};
    use super::{MEASURED, SUITE, figure, measured_program, peer};
    use serde_json::json;

    #[test]
    fn both_systems_have_measured_the_same_programs() {
        let (own, peer) = (committed(SUITE).unwrap(), peer());
        for row in rows_of(&own) {
            let other = rows_of(&peer).iter().find(|other| other["name"] == row["name"]);
            assert_eq!(other.map(|other| &other[MEASURED]), Some(&row[MEASURED]), "{}", row["name"]);
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_told() {
        let program =
            |boot: &str| measured_program(&read_row(&format!("linux\tx\t0\t{boot}\t-\t-\t")).unwrap(), false);
        assert_eq!(program("-").unwrap(), None);
        let why = program("program=nosuch-package").unwrap_err().message;
        assert!(why.ends_with("; ./tern linux install nosuch-package fetches it"), "{why}");
    }

    #[test]
    fn linux_stands_beside_rows() {
        let peer = json!({"rows": [{"name": "call", "insns": 329}, {"name": "clock.vdso", "insns": 0}]});
        let of = |line: &str| figure(&peer, &read_row(line).unwrap());
        assert_eq!(of("servers\tnull.root\t0\t-\t-\t-\tnote\t-\tcall"), Some(329));
        assert_eq!(of("linux\tcall\t0\t-\t-\t-\tnote"), Some(329));
        assert_eq!(of("servers\tcall\t0\t-\t-\t-\tnote"), None);
        assert_eq!(of("linux\tclock.vdso\t0\t-\t-\t-\tnote"), None);
    }
}
