//! Devices and their drivers: the bus server, and a disk that is a file of the host.

use crate::world::{LIMIT, Named, Reply, Scratch, Verdict, World, boot, failed, usual_description};
use libtest_mimic::Trial;
use std::fs;
use std::path::PathBuf;
use xtask::archive::{Entry, pack};
use xtask::guest::{End, Guest};
use xtask::machine::{Boot, Kind};
use xtask::paths;

/// Sectors of the disk, and bytes of each.
const SECTORS: usize = 2048;
/// See [`SECTORS`].
const SECTOR: usize = 512;

/// A virtio disk in the list of devices.
const DISK: &str = "1af4:1042  010000";

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 16] = [
        ("devices_are_listed", devices_are_listed),
        ("without_a_disk_nobody_waits", without_a_disk_nobody_waits),
        ("what_is_written_is_in_the_file", what_is_written_is_in_the_file),
        ("what_is_not_there_is_refused", what_is_not_there_is_refused),
        ("a_driver_that_ended_is_started_again", a_driver_that_ended_is_started_again),
        ("a_bus_server_that_ended_is_started_again", a_bus_server_that_ended_is_started_again),
        ("bus_servers_that_ended_leave_nothing_behind", bus_servers_that_ended_leave_nothing_behind),
        ("a_sata_controller_sends_messages", a_sata_controller_sends_messages),
        ("a_device_without_messages_has_a_line", a_device_without_messages_has_a_line),
        ("each_device_has_one_driver", each_device_has_one_driver),
        ("a_device_reaches_what_its_driver_got", a_device_reaches_what_its_driver_got),
        ("without_an_iommu_a_device_reaches_everything", without_an_iommu_a_device_reaches_everything),
        ("random_bytes_come_from_a_device", random_bytes_come_from_a_device),
        ("seeds_have_a_source_or_there_are_none", seeds_have_a_source_or_there_are_none),
        ("nothing_acknowledged_is_lost", nothing_acknowledged_is_lost),
        ("nothing_acknowledged_is_lost_on_a_sata_disk", nothing_acknowledged_is_lost_on_a_sata_disk),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("drivers", format!("drivers::{name}"), verdict)))
}

/// A disk.
struct Disk {
    file: PathBuf,
    _scratch: Scratch,
}

impl Disk {
    /// Each sector begins with its number.
    fn new() -> xtask::Result<Disk> {
        let scratch = Scratch::create()?;
        let file = scratch.0.join("disk, the first");
        let mut bytes = vec![0; SECTORS * SECTOR];
        for (number, sector) in bytes.chunks_mut(SECTOR).enumerate() {
            let text = format!("sector-{number}.");
            sector[..text.len()].copy_from_slice(text.as_bytes());
        }
        paths::write(&file, &bytes)?;
        Ok(Disk { file, _scratch: scratch })
    }

    fn script(&self, world: &World, options: &[&str], script: &str) -> xtask::Result<Reply> {
        let file = self.file.display().to_string();
        let options = [&["run", "--script", "-", "--disk", &file], options].concat();
        world.tern(&options, script.as_bytes())
    }

    /// Fails unless a sector of the file begins with this.
    fn check(&self, sector: usize, text: &str) -> Verdict {
        let bytes = fs::read(&self.file)?;
        let found = &bytes[sector * SECTOR..][..text.len()];
        if found == text.as_bytes() {
            Ok(())
        } else {
            Err(format!("{:?} in sector {sector}", String::from_utf8_lossy(found)).into())
        }
    }
}

/// Lines in order, among others.
fn check_lines(reply: &Reply, expected: &[&str]) -> Verdict {
    let mut lines = reply.out.lines();
    match expected.iter().find(|text| !lines.any(|line| line.contains(*text))) {
        None => Ok(()),
        Some(text) => Err(reply.failed(&format!("expected {text:?}, in this order"))),
    }
}

/// Fails if an IOMMU has refused something.
fn check_no_report(reply: &Reply) -> Verdict {
    if reply.out.contains("bus: device") {
        return Err(reply.failed("a device wanted what is not its own"));
    }
    Ok(())
}

fn devices_are_listed(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    for (machine, bridge) in [("pc", "8086:1237  060000"), ("q35", "8086:29c0  060000")] {
        let reply = disk.script(world, &["--machine", machine], "run devices\n")?;
        reply.check_code(0)?;
        check_lines(&reply, &["ADDRESS", bridge, DISK])?;
        let line = reply.out.lines().find(|line| line.contains(DISK)).unwrap_or_default();
        for part in ["yes", "memory 0x", "prefetchable 0x", "+0x4000", "messages 1 of "] {
            if !line.contains(part) {
                return Err(reply.failed(&format!("expected {part:?} of the disk")));
            }
        }
    }
    Ok(())
}

fn without_a_disk_nobody_waits(world: &'static World) -> Verdict {
    // The second has a controller for SATA disks, without any.
    for machine in ["pc", "q35", "microvm"] {
        let script = b"run disk\nrun disk read 0\nrun devices\n";
        let reply = world.tern(&["run", "--script", "-", "--machine", machine], script)?;
        check_lines(&reply, &["disk: not found", "disk: not found", "ADDRESS"])?;
        if reply.out.contains("root:") {
            return Err(reply.failed("somebody was started again"));
        }
    }
    Ok(())
}

fn what_is_written_is_in_the_file(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    let script = "run disk\nrun disk read 7\nrun disk write 9 written-by-tern\nrun disk write 2047 the-last\nrun disk read 9\n\
        run disk read 2040 8\n";
    for machine in ["pc", "q35"] {
        let reply = disk.script(world, &["--machine", machine], script)?;
        reply.check_code(0)?;
        check_lines(
            &reply,
            &["2048 sectors of 512 bytes", "sector-7..", "written-by-tern..", "sector-2040.."],
        )?;
        disk.check(8, "sector-8.\0")?;
        disk.check(9, "written-by-tern\0\0\0")?;
        disk.check(10, "sector-10.\0")?;
        disk.check(2047, "the-last\0\0")?;
        check_no_report(&reply)?;
    }
    Ok(())
}

fn what_is_not_there_is_refused(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    let before = fs::read(&disk.file)?;
    let refused = [
        "read 2048",
        "read 2041 8",
        "read 18446744073709551615",
        "read 18446744073709551615 2",
        "read 36028797018963968",
        "read 0 9",
        "read 0 0",
        "read 0 8388608",
        "write 2048 nothing",
        "write 18446744073709551615 nothing",
    ];
    // After each, one that is there is read.
    let script: String =
        refused.iter().map(|command| format!("run disk {command}\nrun disk read 3\n")).collect();
    let reply = disk.script(world, &[], &script)?;
    check_lines(
        &reply,
        &["disk: the server does not understand the request", "sector-3.."].repeat(refused.len()),
    )?;
    if fs::read(&disk.file)? == before { Ok(()) } else { Err("the file has changed".into()) }
}

fn a_driver_that_ended_is_started_again(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    let script = "run disk write 5 before\nkill virtio-block\nrun disk read 5\nrun disk write 6 after\nkill virtio-block\nrun disk read 6\n\
        run devices\n";
    for machine in ["pc", "q35"] {
        let reply = disk.script(world, &["--machine", machine], script)?;
        reply.check_code(0)?;
        check_lines(&reply, &["was killed", "before..", "was killed", "after..", DISK])?;
        disk.check(5, "before\0")?;
        disk.check(6, "after\0")?;
        check_no_report(&reply)?;
    }
    Ok(())
}

/// Drivers lose what they had from it, so they are started again before they touch it.
fn a_bus_server_that_ended_is_started_again(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    let script = "run disk write 5 before\nkill bus\nrun disk read 5\nrun disk write 6 after\nrun devices\n";
    for machine in ["pc", "q35"] {
        let reply = disk.script(world, &["--machine", machine], script)?;
        reply.check_code(0)?;
        check_lines(&reply, &["bus (task", "drivers start again", "virtio-block (task", "before..", DISK])?;
        if reply.out.contains("crashed") {
            return Err(reply.failed("a driver has touched what was taken from it"));
        }
        disk.check(6, "after\0")?;
    }
    Ok(())
}

/// Windows and memory of a bus server are those of the next one, and so is what the kernel needs for them.
fn bus_servers_that_ended_leave_nothing_behind(world: &'static World) -> Verdict {
    const LIVES: usize = 12;
    const SLACK_KIB: u64 = 16;
    let text = usual_description()?;
    let entries = world.entries_of(|files| {
        let mut system = xtask::system::of_text("drivers", &text, files)?;
        system.programs.iter_mut().for_each(|program| program.restarts = u8::MAX);
        Ok(system)
    })?;
    let disk = Disk::new()?;
    let file = disk.file.display().to_string();
    let lives = "kill bus\nrun disk read 5\n".repeat(LIVES);
    let script = format!("{lives}mem\n{lives}mem\nexit 0\n");
    let reply = world.script_with(&entries, &["--disk", &file, "--machine", "q35"], script.as_bytes())?;
    reply.check_code(0)?;
    let used = |row: &str| -> Vec<u64> {
        let rows = reply.out.lines().filter_map(|line| line.strip_prefix(row));
        rows.filter_map(|numbers| numbers.split_whitespace().nth(1)?.parse().ok()).collect()
    };
    for row in ["machine (sigma0)", "kernel memory (root)"] {
        match used(row)[..] {
            [before, after] if after <= before + SLACK_KIB => {}
            _ => return Err(reply.failed(&format!("expected that {row} does not grow: {:?}", used(row)))),
        }
    }
    Ok(())
}

/// By MSI, with which there is no table. The driver and the bus server are ended meanwhile.
fn a_sata_controller_sends_messages(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    let script = "run disk read 7\nkill ahci\nrun disk read 8\nkill bus\nrun disk read 9\nrun disk read 9\nrun disk write 6 after\nrun devices\n";
    let reply = disk.script(world, &["--machine", "q35", "--disk-as", "ahci"], script)?;
    check_lines(&reply, &["sector-7..", "sector-8..", "sector-9..", "messages 1 of 1"])?;
    disk.check(6, "after\0")
}

fn a_device_without_messages_has_a_line(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    let mut machine = world.machine();
    let device = machine.virtio("virtio-blk-pci,drive=first,vectors=0");
    let drive =
        format!("if=none,id=first,format=raw,file={}", disk.file.display().to_string().replace(',', ",,"));
    machine.extra.extend(["-drive".into(), drive, "-device".into(), device]);
    let mut guest = Guest::start(&machine)?;
    guest.limit(Some(LIMIT));
    guest.expect("\"help\" lists");
    guest.send(b"run disk read 7\rrun disk write 6 after\rrun devices\rexit 0\r");
    let (end, text) = (guest.finish(), guest.text());
    let line = text.lines().find(|line| line.contains(DISK)).unwrap_or_default();
    if !text.contains("sector-7..") || line.is_empty() || line.contains("messages") {
        return Err(failed("expected a disk that works by its line", &end, &text));
    }
    disk.check(6, "after\0")
}

/// Claims of programs that may not have the device are denied, and so are those that come second. Devices that were given back are free.
fn each_device_has_one_driver(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    let script = "run bus-test\nrun bus-test\nrun disk read 4\n";
    let reply = disk.script(world, &[], script)?;
    check_lines(&reply, &["bus-test: not allowed", "bus-test: not allowed", "sector-4.."])?;
    let file = disk.file.display().to_string();
    let entry = "\n[[program]]\nname = \"bus-test\"\ndevices = [\"block\"]\ncontiguous = \"64 KiB\"\n";
    let reply = world.script_with(&entries(world, entry)?, &["--disk", &file], script.as_bytes())?;
    check_lines(&reply, &["bus-test: all is well", "bus-test: all is well", "sector-4.."])
}

/// A driver tells its device to write to memory of others. The IOMMU refuses that, the page stays as it was, and a person hears of it.
fn a_device_reaches_what_its_driver_got(world: &'static World) -> Verdict {
    let expected = [
        "bus: configuration spaces at 0xb0000000",
        "bus: IOMMU: a device reaches the memory that its driver got for it, and no other",
        "dma-test: memory of its own is written",
        "dma-test: memory of others is untouched",
        "dma-test: the next driver tells it to write to 0x100000",
        "bus: device 00:1f.2, driven by task ",
        "wanted to write to 0x100000, which is not its own",
        "dma-test: the next driver's memory is written",
    ];
    let text = hostile_driver(world, Kind::Q35, &["ide-hd,drive=second,bus=ide.0"], &expected)?;
    let reports = text.lines().filter(|line| line.contains("bus: device")).count();
    if reports == 2 { Ok(()) } else { Err(format!("{reports} reports\n{text}").into()) }
}

/// Nothing is in the device's way here: so the other trial would fail without an IOMMU.
fn without_an_iommu_a_device_reaches_everything(world: &'static World) -> Verdict {
    let expected = [
        "bus: no IOMMU: a driver whose device uses memory is trusted with all of it",
        "dma-test: memory of its own is written",
        "dma-test: memory of others is overwritten",
        "dma-test: the next driver's memory is written",
    ];
    let text =
        hostile_driver(world, Kind::Pc, &["ahci,id=second", "ide-hd,drive=second,bus=second.0"], &expected)?;
    if text.contains("bus: device") { Err(format!("a report of nothing\n{text}").into()) } else { Ok(()) }
}

/// Boots a machine whose first program drives a SATA disk as it likes, and looks for texts in order. Another disk keeps the usual drivers busy.
fn hostile_driver(
    world: &'static World,
    kind: Kind,
    devices: &[&str],
    expected: &[&str],
) -> Result<String, libtest_mimic::Failed> {
    let entry = "\n[[program]]\nname = \"dma-test\"\ndevices = [\"block\"]\ncontiguous = \"4 KiB\"\n";
    let scratch = Scratch::create()?;
    let archive = scratch.0.join("boot.cpio");
    paths::write(&archive, &pack(&entries(world, entry)?))?;
    let mut machine = world.machine().with("init=dma-test");
    machine.kind = kind;
    machine.boot = Boot::Direct { kernel: world.system.kernel.clone(), archive: Some(archive) };
    for name in ["first", "second"] {
        machine.extra.push("-drive".into());
        machine.extra.push(format!("if=none,id={name},driver=null-co,size=1M,read-zeroes=on"));
    }
    let first = machine.virtio("virtio-blk-pci,drive=first");
    for device in [first.as_str()].iter().chain(devices) {
        machine.extra.extend(["-device".into(), (*device).into()]);
    }
    let (end, text) = boot(&machine, LIMIT)?;
    let mut rest = text.as_str();
    for wanted in expected {
        let Some(at) = rest.find(wanted) else {
            return Err(failed(&format!("expected {wanted:?}, in this order"), &end, &text));
        };
        rest = &rest[at + wanted.len()..];
    }
    if end == End::Orderly(0) { Ok(text) } else { Err(failed("expected exit code 0", &end, &text)) }
}

/// Each answer is another one, also of the next driver; as many come as are asked for.
fn random_bytes_come_from_a_device(world: &'static World) -> Verdict {
    let entries = world.entries_of(|files| xtask::system::read("entropy", files))?;
    let script =
        "run random 8\nrun random 4096\nkill virtio-entropy\nrun random 8\nrun random 0\nrun random 4097\n";
    for machine in ["pc", "q35"] {
        let reply = world.script_with(&entries, &["--entropy", "--machine", machine], script.as_bytes())?;
        let seeds = "seeds: processor and server";
        check_lines(
            &reply,
            &[seeds, seeds, "virtio-entropy (task", seeds, "usage: random", "usage: random"],
        )?;
        let is_hex = |line: &&str| {
            line.split_whitespace().all(|word| word.len() == 2 && u8::from_str_radix(word, 16).is_ok())
        };
        let mut lines: Vec<&str> =
            reply.out.lines().map(str::trim).filter(|line| line.len() >= 8 * 3 - 1).filter(is_hex).collect();
        let count = lines.len();
        lines.sort_unstable();
        lines.dedup();
        if count != 2 + 4096 / 16 || lines.len() != count {
            return Err(reply.failed(&format!("{count} lines of bytes, {} of which differ", lines.len())));
        }
        check_no_report(&reply)?;
    }
    Ok(())
}

/// A processor without random numbers has those of a device; without one a program is told that there are none.
fn seeds_have_a_source_or_there_are_none(world: &'static World) -> Verdict {
    let entries = world.entries_of(|files| xtask::system::read("entropy", files))?;
    let scratch = Scratch::create()?;
    let archive = scratch.0.join("boot.cpio");
    paths::write(&archive, &pack(&entries))?;
    for (has_device, expected, code) in [
        (true, "seeds: server", 0),
        (false, "seeds: neither this processor nor a server has random numbers", 1),
    ] {
        let mut machine = world.machine().with("init=random");
        machine.boot = Boot::Direct { kernel: world.system.kernel.clone(), archive: Some(archive.clone()) };
        machine.cpu = "max,-rdrand,-rdseed".into();
        machine.entropy = has_device;
        let (end, text) = boot(&machine, LIMIT)?;
        if !text.contains(expected) || end != End::Orderly(code) {
            return Err(failed(&format!("expected {expected:?}"), &end, &text));
        }
    }
    Ok(())
}

fn nothing_acknowledged_is_lost(world: &'static World) -> Verdict {
    lose_nothing(world, "virtio-block", "virtio", if world.full { 20 } else { 3 })
}

fn nothing_acknowledged_is_lost_on_a_sata_disk(world: &'static World) -> Verdict {
    lose_nothing(world, "ahci", "ahci", if world.full { 20 } else { 1 })
}

/// The driver and the bus server are killed at random moments. Requests that it had are made again; what it had acknowledged is there.
fn lose_nothing(world: &'static World, driver: &str, disk_as: &str, seeds: u64) -> Verdict {
    for seed in 1..=seeds {
        let disk = Disk::new()?;
        let file = disk.file.display().to_string();
        let script = format!("run disk-test {seed} {driver}\n");
        let options = ["--disk", &file, "--disk-as", disk_as];
        let options = [&["run", "--script", "-"], &options[..]].concat();
        let reply = world.tern(&options, script.as_bytes())?;
        reply.check_code(0)?;
        reply.check_contains("all is there: 12 kills")?;
    }
    Ok(())
}

/// The boot archive with more in its description.
fn entries(world: &World, more: &str) -> xtask::Result<Vec<Entry>> {
    let text = usual_description()? + more;
    world.entries_of(|files| xtask::system::of_text("drivers", &text, files))
}
