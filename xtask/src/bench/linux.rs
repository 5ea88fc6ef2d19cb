//! The suite `linux`: operations of a program of Linux, which runs unmodified on Tern, and on Linux itself.
//!
//! The program is static, needs no library, and is made by the host's compiler. On Tern it lies on a disk, as programs of Linux do; on Linux it is the first process of a machine with Debian's kernel, under the same plugin.

use super::{Medians, for_git, medians, metric};
use crate::archive::{self, Entry};
use crate::build::{System, run_builder};
use crate::linux;
use crate::machine::{Machine, QEMU};
use crate::paths::{self, Scratch};
use crate::peripherals::ext4_tool;
use crate::{Context, Error, Result};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

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

/// Date of all that is on the disk, since 1970.
const DATE: Duration = Duration::from_secs(946_684_800);

/// Number of the disk.
const UUID: &str = "00000000-0000-4000-8000-000000000001";

/// Debian's package that names the one with the kernel.
const PACKAGE: &str = "linux-image-amd64";

/// Command line of Linux. Without what it does against leaks of processors it is at its fastest.
const COMMAND_LINE: &str = "console=ttyS0 quiet mitigations=off panic=-1";

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
    let _ = fs::remove_file(&disk);
    let mut builder = ext4_tool("mke2fs");
    // Nothing of the host gets in: no dates, no owners, no random numbers.
    builder.env("E2FSPROGS_FAKE_TIME", DATE.as_secs().to_string());
    builder.args([
        "-q",
        "-t",
        "ext4",
        "-b",
        "4096",
        "-U",
        UUID,
        "-E",
        &format!("root_owner=0:0,hash_seed={UUID}"),
    ]);
    builder.arg("-d").arg(&folder).arg(&disk).arg("16M");
    run_builder(&mut builder, "the disk for the rows of Linux")?;
    let mut machine = Machine::new(system).with(START);
    machine.disk = Some(disk);
    Ok(machine)
}

/// Rows whose instructions differ by more than a twentieth, one line for each. A disk of the emulator has a say in them: its interrupts come when the
/// host has read, so rows are not the same to the last instruction.
pub fn compare(committed: &Value, measured: &Value) -> Vec<String> {
    let insns = |table: &Value, name: &Value| {
        super::rows_of(table).iter().find(|row| row["name"] == *name).and_then(|row| row["insns"].as_u64())
    };
    let names = super::rows_of(committed).iter().chain(super::rows_of(measured)).map(|row| &row["name"]);
    let mut lines: Vec<String> = names
        .filter_map(|name| match (insns(committed, name), insns(measured, name)) {
            (Some(old), Some(new)) if old.abs_diff(new) * 20 <= old => None,
            (old, new) => Some(format!("{}: insns {old:?} -> {new:?}", name.as_str().unwrap_or("?"))),
        })
        .collect();
    lines.dedup();
    lines
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

/// Measures Linux with the kernel that Debian has now. `rows`: names and regions. Renews the kept figures.
pub fn measure_peer(plugin: &Path, rows: &[(String, String)]) -> Result<()> {
    let scratch = Scratch::create("linux-peer")?;
    let (kernel, version) = kernel(&scratch.0)?;
    let initial = scratch.0.join("initial.cpio");
    let init = Entry { name: "init".into(), data: paths::read(&program()?)? };
    paths::write(&initial, &archive::pack_executable(&init))?;
    let report = scratch.0.join("report.csv");
    let plugin =
        format!("{},csv={},out=/dev/null,warmup={}", plugin.display(), report.display(), super::WARM_UP);
    let counting = Machine::booting(crate::machine::Boot::Direct { kernel: kernel.clone(), archive: None });
    let counting = counting.counting();
    let mut emulator = Command::new(QEMU);
    emulator.args(["-m", "512", "-display", "none", "-serial", "none", "-monitor", "none", "-nic", "none"]);
    emulator.args(["-no-reboot", "-cpu", &counting.cpu]).args(&counting.extra);
    emulator.arg("-kernel").arg(&kernel).arg("-initrd").arg(&initial).args(["-append", COMMAND_LINE]);
    emulator.args(["-plugin", &plugin]).stdin(Stdio::null());
    eprintln!("tern: running {version}");
    run_builder(&mut emulator, "figures of Linux")?;
    let csv = fs::read_to_string(&report).context(|| "read the figures of Linux".into())?;
    let medians: Medians = medians(&csv);
    let figure = |(name, region): &(String, String)| {
        let of = |metric_name: &str| metric(&medians, region, metric_name);
        Ok(json!({
            "name": name, "insns": of("insns_raw")?, "user": of("insns_raw_user")?,
            "ilines": of("ilines_kernel")?, "dlines": of("dlines_kernel")?, "cr3": of("mov_to_cr3")?,
        }))
    };
    let rows: Vec<Value> = rows.iter().map(figure).collect::<Result<_>>()?;
    let table = json!({ "suite": version, "rows": rows });
    paths::write(&committed_path(), for_git(&table).as_bytes())
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
    use super::compare;
    use serde_json::json;

    #[test]
    fn a_twentieth_is_no_difference() {
        let table = |insns: u64| json!({"rows": [{"name": "a", "insns": insns}]});
        assert!(compare(&table(1000), &table(1050)).is_empty());
        assert_eq!(compare(&table(1000), &table(1051)), ["a: insns Some(1000) -> Some(1051)"]);
        assert_eq!(compare(&table(1000), &json!({"rows": []})), ["a: insns Some(1000) -> None"]);
    }
}
