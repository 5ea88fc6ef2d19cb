//! The suite `linux`: operations of a program of Linux, which runs unmodified on Tern, and on Linux itself.
//!
//! The program is static, needs no library, and is made by the host's compiler. On Tern it lies on a disk, as programs of Linux do; on Linux it is the first process of a machine with Debian's kernel, under the same plugin.

use super::devices::{DATE, NULL_DISK, NULL_DISK_DEVICE, make_disk};
use super::rows::Row;
use super::{FIGURES, Medians, figures, for_git, medians, rows_of};
use crate::archive::{self, Entry};
use crate::build::{System, run_builder};
use crate::linux;
use crate::machine::{Machine, QEMU};
use crate::paths::{self, Scratch};
use crate::{Context, Error, Result};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

/// The suite's name.
pub const SUITE: &str = "linux";

/// The program's name on the disk.
const PROGRAM: &str = "linux-rows";

/// Boot options with which the program starts; the last word is a file that it makes.
const START: &str = "init=linux args=--boot,--root,/disk/linux,/linux-rows,/file";

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

/// Compiles the program.
fn program() -> Result<PathBuf> {
    let path = paths::out()?.join(PROGRAM);
    let mut compiler = Command::new("gcc");
    compiler.args(FLAGS).arg("-o").arg(&path).arg(paths::root().join("bench/linux/rows.c"));
    run_builder(&mut compiler, "bench/linux/rows.c")?;
    Ok(path)
}

/// A machine that starts the program, which lies on a disk of its own.
pub fn machine(system: &System) -> Result<Machine> {
    let folder = paths::create(&paths::out()?.join("linux-rows.root"))?;
    let place = paths::create(&folder.join("linux"))?.join(PROGRAM);
    fs::copy(program()?, &place).context(|| format!("write {}", place.display()))?;
    for path in [&place, &folder.join("linux"), &folder] {
        let dated = File::open(path).and_then(|file| file.set_modified(UNIX_EPOCH + DATE));
        dated.context(|| format!("date {}", path.display()))?;
    }
    let disk = paths::out()?.join("linux-rows.img");
    make_disk(&disk, Some(&folder))?;
    let mut machine = Machine::new(system).with(START);
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

/// Measures Linux with the kernel that Debian has now, and renews the kept figures.
pub fn measure_peer<'a>(plugin: &Path, rows: impl Iterator<Item = &'a Row>) -> Result<()> {
    let scratch = Scratch::create("linux-peer")?;
    let (kernel, version) = kernel(&scratch.0)?;
    let initial = scratch.0.join("initial.cpio");
    paths::write(&initial, &archive::pack_initial(&contents(&scratch.0)?))?;
    let report = scratch.0.join("report.csv");
    let plugin =
        format!("{},csv={},out=/dev/null,warmup={}", plugin.display(), report.display(), super::WARM_UP);
    let counting = Machine::booting(crate::machine::Boot::Direct { kernel: kernel.clone(), archive: None });
    let counting = counting.counting();
    let mut emulator = Command::new(QEMU);
    emulator.args(["-m", "512", "-display", "none", "-monitor", "none", "-nic", "none"]);
    let said = scratch.0.join("said");
    emulator.arg("-serial").arg(format!("file:{}", said.display()));
    emulator.args(["-no-reboot", "-cpu", &counting.cpu]).args(&counting.extra);
    emulator.arg("-kernel").arg(&kernel).arg("-initrd").arg(&initial).args(["-append", COMMAND_LINE]);
    emulator.args(NULL_DISK).args(["-device", &counting.virtio(NULL_DISK_DEVICE)]);
    emulator.args(["-plugin", &plugin]).stdin(Stdio::null());
    eprintln!("tern: running {version}");
    run_builder(&mut emulator, "figures of Linux")?;
    let csv = fs::read_to_string(&report).context(|| "read the figures of Linux".into())?;
    let medians: Medians = medians(&csv);
    let figure = |row: &Row| {
        let mut kept = json!({ "name": row.name });
        for ((name, _), value) in FIGURES.iter().zip(figures(row, &medians)?) {
            if KEPT.contains(name) {
                kept[*name] = value.into();
            }
        }
        Ok(kept)
    };
    let rows = rows.map(figure).collect::<Result<Vec<Value>>>();
    // Of a program that could not go on the machine says where that was.
    let rows = rows.inspect_err(|_| eprint!("{}", fs::read_to_string(&said).unwrap_or_default()))?;
    let table = json!({ "suite": version, "rows": rows });
    paths::write(&committed_path(), for_git(&table).as_bytes())
}

/// Files of the machine: the program, and the modules, from the package that was unpacked into a folder.
fn contents(folder: &Path) -> Result<Vec<Entry>> {
    let mut entries = vec![Entry { name: "init".into(), data: paths::read(&program()?)? }];
    for (place, module) in MODULES.iter().enumerate() {
        let file = format!("{module}.ko");
        let found = find_file(&folder.join("lib/modules"), &file)?;
        let found = found.ok_or_else(|| Error::new(format!("Debian's kernel has no module {file}")))?;
        entries.push(Entry { name: format!("{MODULE_NAME}{place}"), data: paths::read(&found)? });
    }
    Ok(entries)
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
    use super::figure;
    use serde_json::json;

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
