//! Edges of files: disks that cannot be written, are taken away, or hold very large files; the longest names and paths; and programs that have numbers and memory which
//! are none.

use crate::files::{Disk, check_disk, tool};
use crate::monitor::{self, Monitor};
use crate::world::{LIMIT, Named, Scratch, Verdict, World, failed};
use libtest_mimic::Trial;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use xtask::guest::{End, Guest};

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 6] = [
        ("a_disk_that_can_only_be_read_is_read", a_disk_that_can_only_be_read_is_read),
        ("a_disk_that_is_taken_away_is_missed", a_disk_that_is_taken_away_is_missed),
        ("a_file_may_be_large", a_file_may_be_large),
        ("names_and_paths_have_an_end", names_and_paths_have_an_end),
        ("what_nobody_was_given_is_of_no_use", what_nobody_was_given_is_of_no_use),
        ("memory_that_vanishes_is_its_owners_loss", memory_that_vanishes_is_its_owners_loss),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("files", format!("edges::{name}"), verdict)))
}

/// A disk on a machine that keeps all from writing to it, behind a virtio controller of this name. It is given once as it was unmounted, and once as it was left by a machine that was switched off.
fn a_disk_that_can_only_be_read_is_read(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    let written = "mkdir /disk/etc\necho first > /disk/etc/motd\nln -s motd /disk/etc/link\nsync\nexit 0\n";
    disk.run(world, written)?.check_code(0)?;
    read_only(world, &disk)?;
    check_disk(disk.path())?;
    read_only(world, &disk)
}

/// Everything on the disk is read, and nothing is written.
fn read_only(world: &'static World, disk: &Disk) -> Verdict {
    let before = fs::read(&disk.file)?;
    let mut machine = world.machine().with("init=shell args=script");
    let file = disk.path().replace(',', ",,");
    let drive = format!("if=none,id=kept,format=raw,readonly=on,file={file}");
    let device = machine.virtio("virtio-blk-pci,drive=kept");
    machine.extra.extend(["-drive".into(), drive, "-device".into(), device]);
    let mut guest = Guest::start(&machine)?;
    guest.limit(Some(LIMIT));
    guest.expect_begin();
    guest.send(
        b"cat /disk/etc/link\nls -l /disk/etc\nrun disk write 9 text\necho x > /disk/etc/motd\necho x >> /disk/etc/motd\n\
        echo x > /disk/new\nmkdir /disk/new\nrm /disk/etc/motd\nrmdir /disk/etc\nmv /disk/etc/motd /disk/etc/told\n\
        ln /disk/etc/motd /disk/etc/told\nln -s motd /disk/etc/told\nsync\nkill ext4\nkill virtio-block\ncat /disk/etc/motd\nexit 0\n",
    );
    let (end, text) = (guest.finish(), guest.text());
    let mut expected: Vec<String> =
        ["ext4: the disk can only be read", "first", "link -> motd", "disk: "].map(Into::into).into();
    let refused = [
        "echo: /disk/etc/motd",
        "echo: /disk/etc/motd",
        "echo: /disk/new",
        "mkdir: /disk/new",
        "rm: /disk/etc/motd",
        "rmdir: /disk/etc",
        "mv: /disk/etc/motd",
        "ln: /disk/etc/told",
        "ln: /disk/etc/told",
    ];
    expected.extend(refused.map(|refused| format!("{refused}: read-only")));
    expected.extend(["root: virtio-block (task".into(), "first".into()]);
    let mut lines = text.lines();
    if let Some(missing) = expected.iter().find(|text| !lines.any(|line| line.contains(text.as_str()))) {
        return Err(failed(&format!("expected {missing:?}, in this order"), &end, &text));
    }
    if end != End::Orderly(0) || fs::read(&disk.file)? != before {
        return Err(failed("it did not end in order, or the disk has changed", &end, &text));
    }
    Ok(())
}

/// Slot of a disk that is taken away.
const SLOT: u32 = 9;

/// Ports by which a PC's firmware takes devices away: which bus, and a bit for the slot (QEMU, `docs/specs/acpi_pci_hotplug.rst`).
const BUS_PORT: u32 = 0xae10;
/// See [`BUS_PORT`].
const EJECT_PORT: u32 = 0xae08;

/// The disk goes while files on it are open. Whoever uses them has an error, in the end and again and again; nobody ends but the driver, which comes back for nothing.
fn a_disk_that_is_taken_away_is_missed(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    disk.run(world, "echo first > /disk/motd\nexit 0\n")?.check_code(0)?;
    let scratch = Scratch::create()?;
    let mut machine = world.machine().with("init=shell args=script");
    let file = disk.path().replace(',', ",,");
    let device = machine.virtio(&format!("virtio-blk-pci,drive=kept,id=gone,addr={SLOT}"));
    let drive = format!("if=none,id=kept,format=raw,file={file}");
    machine.extra.extend(["-drive".into(), drive, "-device".into(), device]);
    let socket = monitor::plug_in(&mut machine, &scratch);
    let mut guest = Guest::start(&machine)?;
    guest.limit(Some(2 * LIMIT));
    let outcome = take_away(&mut guest, &socket);
    guest.send(b"ps\nexit 0\n");
    let (end, text) = (guest.finish(), guest.text());
    if let Err(why) = outcome {
        return Err(failed(&why, &end, &text));
    }
    let ended =
        |line: &&str| line.starts_with("root: ") && !line.contains("virtio-block") && !line.contains("ahci");
    if let Some(line) = text.lines().find(ended) {
        return Err(failed(&format!("somebody has ended: {line}"), &end, &text));
    }
    if end != End::Orderly(0) {
        return Err(failed("it did not end in order", &end, &text));
    }
    check_disk(disk.path())
}

fn take_away(guest: &mut Guest, socket: &Path) -> Result<(), String> {
    let expect = |guest: &mut Guest, text: &str| {
        if guest.expect(text) { Ok(()) } else { Err(format!("expected {text:?}")) }
    };
    if !guest.expect_begin() {
        return Err("the shell does not begin".into());
    }
    guest.send(b"cat /disk/motd\necho second >> /disk/motd\nsync\necho it is kept\n");
    expect(guest, "it is kept")?;
    let text = |error: xtask::Error| error.to_string();
    let mut monitor = Monitor::connect(socket).map_err(text)?;
    // This is what a system does that is asked to let the device go.
    for command in [
        "device_del gone".into(),
        format!("o /w {BUS_PORT:#x} 0"),
        format!("o /w {EJECT_PORT:#x} {:#x}", 1 << SLOT),
    ] {
        monitor.ask(&command).map_err(text)?;
    }
    let left = monitor.ask("info pci").map_err(text)?;
    if left.contains("1af4:1042") {
        return Err(format!("the disk is still there\n{left}"));
    }
    for (number, command) in
        ["echo x > /disk/new", "sync", "mkdir /disk/new", "echo x >> /disk/motd", "run disk read 0"]
            .iter()
            .enumerate()
    {
        guest.send(format!("{command}\necho {number} is over\n").as_bytes());
        expect(guest, &format!("{number} is over"))?;
    }
    // An error is one of the disk, and all else works.
    for wanted in ["echo: /disk/new: ", "mkdir: /disk/new: ", "disk: "] {
        if !guest.text().contains(wanted) {
            return Err(format!("expected {wanted:?}"));
        }
    }
    guest.send(b"echo text > /file\ncat /file\nrun net-test\n");
    expect(guest, "net-test: all is well")
}

/// Bytes of the image of a large file, which has holes itself.
const LARGE: &str = "8G";

/// A file of more than 5 GiB. Its bytes are where Linux looks for them.
fn a_file_may_be_large(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    tool("mke2fs", &["-q", "-t", "ext4", "-b", "4096", "-E", "lazy_itable_init=1", disk.path(), LARGE])?;
    let reply = disk.run(world, "run file-test large /\nrun file-test large /disk\nexit 0\n")?;
    reply.check_code(0)?;
    reply.check_contains("file-test: all is well\nfile-test: all is well\n")?;
    check_disk(disk.path())?;
    let places = [(4 << 30, &b" away"[..]), (5 << 30, b"far away"), ((5 << 30) + 1000, b"far away")];
    let image = fs::File::open(&disk.file)?;
    for (at, wanted) in places {
        let block = tool("debugfs", &["-R", &format!("bmap far {}", at / 4096), disk.path()])?;
        let block: u64 = block.trim().parse().map_err(|_| format!("no block: {block:?}"))?;
        let mut found = vec![0; wanted.len()];
        image.read_exact_at(&mut found, block * 4096 + at % 4096)?;
        if found != wanted {
            return Err(format!("Linux reads {found:?} at {at:#x}").into());
        }
    }
    let told = tool("debugfs", &["-R", "stat far", disk.path()])?;
    if told.contains(&format!("Size: {}", (5u64 << 30) + 2000)) { Ok(()) } else { Err(told.into()) }
}

/// Names of 255 bytes and paths of 4,095 do, and longer ones are refused, everywhere.
fn names_and_paths_have_an_end(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    let reply = disk.run(world, "run file-test names /\nrun file-test names /disk\nls /disk\nexit 0\n")?;
    reply.check_code(0)?;
    reply.check_contains("file-test: all is well\nfile-test: all is well\n")?;
    check_disk(disk.path())
}

/// A program tries numbers for what others have: references, tickets, devices, and requests that nobody makes. Files of others, and all servers, stay.
fn what_nobody_was_given_is_of_no_use(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    let script = "echo one > /file\necho two > /disk/file\nrun watch /file &\nrun file-test handles\nrun file-test handles\ncat /file /disk/file\n\
        run disk read 0\necho three > /file\nrun net-test\nexit 0\n";
    let reply = disk.run(world, script)?;
    reply.check_code(0)?;
    for wanted in ["one\ntwo\n", "net-test: all is well\n", "contents"] {
        reply.check_contains(wanted)?;
    }
    let all = reply.out.matches("file-test: all is well").count();
    // Nobody has ended.
    if all != 2 || reply.out.contains("root: ") {
        return Err(reply.failed("expected that all is well, and that no server ends"));
    }
    check_disk(disk.path())
}

/// Kinds of memory that vanishes, of `file-test vanish`.
const VANISHING: [&str; 8] =
    ["write-nothing", "read-nothing", "write-kernel", "write-end", "write", "read", "map", "mapped"];

/// Memory of a program vanishes while servers read and write it. The program may end by that, and no server does.
fn memory_that_vanishes_is_its_owners_loss(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    let mut script = String::from("echo one > /disk/file\necho two > /file\n");
    for kind in VANISHING {
        for place in ["/", "/disk"] {
            script += &format!("run file-test vanish {kind} {place}\nrun file-test vanish none {place}\n");
        }
    }
    script += "run pipe-test write 100000 | run pipe-test vanish\nrun pipe-test vanish | wc\ncat /disk/file /file\nexit 0\n";
    let reply = disk.run(world, &script)?;
    reply.check_code(0)?;
    reply.check_contains("one\ntwo\n")?;
    // After each kind another program finds everything of use.
    let of_use = reply
        .out
        .matches("file-test: none: the server does not understand the request\nfile-test: all is well")
        .count();
    let servers = ["ramfs", "ext4", "mounts", "virtio-block", "shell"];
    let ended = |name: &&str| reply.out.contains(&format!("root: {name} (task"));
    if of_use != 2 * VANISHING.len() || servers.iter().any(ended) {
        return Err(reply.failed("expected that files are of use each time, and that no server ends"));
    }
    check_disk(disk.path())
}
