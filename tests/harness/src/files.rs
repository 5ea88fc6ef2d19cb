//! Files: the commands of the shell on a file system in memory, and on a disk that Linux's tools make before and check afterwards.

use crate::world::{LIMIT, Named, Reply, Says, Scratch, Verdict, World, failed};
use description::Program;
use libtest_mimic::Trial;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::archive::Entry;
use xtask::guest::{End, Guest};
use xtask::paths;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 10] = [
        ("the_message_of_the_day", the_message_of_the_day),
        ("commands_do_what_they_say", commands_do_what_they_say),
        ("what_is_on_the_disk_stays_there", what_is_on_the_disk_stays_there),
        ("what_is_on_a_sata_disk_stays_there", what_is_on_a_sata_disk_stays_there),
        ("without_a_file_system_there_is_an_error", without_a_file_system_there_is_an_error),
        ("a_driver_may_end_before_it_answers", a_driver_may_end_before_it_answers),
        ("who_opens_all_leaves_some", who_opens_all_leaves_some),
        ("kernel_memory_does_not_run_out_before_memory", kernel_memory_does_not_run_out_before_memory),
        ("watches_tell_what_happens", watches_tell_what_happens),
        ("what_came_with_the_boot_can_be_read", what_came_with_the_boot_can_be_read),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("files", format!("files::{name}"), verdict)))
}

/// Commands, and what each says.
const COMMANDS: &[Says] = &[
    ("mkdir /a /a/b", &[]),
    ("echo one  two > /a/file", &[]),
    ("echo three >> a/b/../file", &[]),
    ("cat /a/file", &["one two", "three"]),
    ("ln /a/file /a/other", &[]),
    ("ln -s b/../file /a/link", &[]),
    (
        "ls -l /a",
        &[
            "drwxr-xr-x   2          0 b/",
            "-rw-r--r--   2         14 file",
            "lrwxrwxrwx   1          9 link -> b/../file",
            "-rw-r--r--   2         14 other",
        ],
    ),
    ("cat /a/link /a/other", &["one two", "three", "one two", "three"]),
    ("cp /a/link /a/b", &[]),
    ("echo more >> /a/b/link", &[]),
    ("cat /a/b/link", &["one two", "three", "more"]),
    ("mv /a/b/link /a/moved", &[]),
    ("rmdir /a/b", &[]),
    ("cat /a/moved | grep t | sort > /sorted", &[]),
    ("cat /sorted", &["one two", "three"]),
    ("ls / | grep a >> /sorted", &[]),
    ("wc /sorted", &["      3       4      17"]),
    ("cat /sorted | head -n 1 | wc", &["      1       2       8"]),
    ("cat /nosuch | wc -l", &["cat: /nosuch: not found", "0"]),
    ("wc", &["wc: expected a pipe or a file to read from"]),
    ("rm /sorted", &[]),
    ("rm /a/link /a/file", &[]),
    ("ls /a", &["moved", "other"]),
    ("mv /a /z", &[]),
    ("ls / /z", &["boot/", "disk/ (not there)", "etc/", "z/", "moved", "other"]),
    ("cd z", &[]),
    ("pwd", &["/z"]),
    ("ls", &["moved", "other"]),
    ("cat x", &["cat: x: not found"]),
    ("echo four > ../z/five", &[]),
    ("mv five ../five", &[]),
    ("cd ../z/..", &[]),
    ("pwd", &["/"]),
    ("cat five", &["four"]),
    ("rm five", &[]),
    ("cd z/other", &["cd: z/other: not a directory"]),
    ("cd z z", &["usage: cd [PATH]"]),
    ("rm /a/other", &["rm: /a/other: not found"]),
    ("rm /z", &["rm: /z: is a directory"]),
    ("rmdir /z", &["rmdir: /z: the directory is not empty"]),
    ("rmdir /disk", &["rmdir: /disk: busy"]),
    ("mount", &["/            ram", "/disk        disk", "/boot        boot", "/etc         boot/etc"]),
    ("mount /disk", &["usage: mount [SOURCE PATH]"]),
    ("mv /z/other /disk/other", &["mv: /z/other: in another file system"]),
    ("mkdir /z/other", &["mkdir: /z/other: the name is taken"]),
    ("cat /z/other/x", &["cat: /z/other/x: not a directory"]),
    ("mv /z /z/y", &["mv: /z: the server does not understand the request"]),
    ("ln -s /loop /loop", &[]),
    ("cat /loop", &["cat: /loop: too many symbolic links"]),
    ("ls", &["boot/", "disk/ (not there)", "etc/", "loop", "z/"]),
    ("sync", &[]),
    ("cat", &["usage: cat PATH..."]),
    ("cp /z/other", &["usage: cp FROM TO"]),
    ("cp /z/other /z/other", &["cp: /z/other: the server does not understand the request"]),
    ("kill mounts", &["root: mounts (task …"]),
    ("cat /z/other", &["one two", "three"]),
    ("kill ramfs", &["root: ramfs (task …"]),
    ("ls", &["boot/", "disk/ (not there)", "etc/"]),
];

fn commands_do_what_they_say(world: &'static World) -> Verdict {
    world.says(COMMANDS)
}

/// A file that comes with the boot is there without a disk.
fn the_message_of_the_day(world: &'static World) -> Verdict {
    let reply = world.script(b"ls /\ncat /etc/motd\nexit\n")?;
    reply.check_code(0)?;
    reply.check_contains("boot/\ndisk/ (not there)\netc/\n")?;
    let text = std::fs::read_to_string(paths::root().join("user/system/data/etc/motd"))?;
    reply.check_contains(&text)
}

/// Makes the disk `disk.img` of this size, of all that is in the folder `disk`, which belongs to root there. Gives back its path.
pub fn root_disk(scratch: &Scratch, size: &str) -> Result<String, libtest_mimic::Failed> {
    let [folder, disk] = ["disk", "disk.img"].map(|name| scratch.0.join(name).display().to_string());
    tool("mke2fs", &["-q", "-t", "ext4", "-b", "4096", "-E", "root_owner=0:0", "-d", &folder, &disk, size])?;
    Ok(disk)
}

/// Runs one of Linux's tools.
pub fn tool(name: &str, arguments: &[&str]) -> Result<String, libtest_mimic::Failed> {
    let output = Command::new(Path::new("/usr/sbin").join(name)).args(arguments).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        Ok(text)
    } else {
        let complained = String::from_utf8_lossy(&output.stderr);
        Err(format!("{name} {arguments:?}: {}\n{text}{complained}", output.status).into())
    }
}

/// Lines of `e2fsck -p` that tell of no mistake: a journal was replayed, which begins with the first commit after a mount and then says so in the superblock;
/// files that were open without a name have ended; and a tree of extents has room to spare.
const NO_MISTAKES: [&str; 7] = [
    "recovering journal",
    "needs_recovery flag is clear",
    "Run journal anyway",
    "Clearing orphaned inode",
    "check forced",
    "could be narrower",
    " files (",
];

/// Fails unless Linux finds no mistake on a disk, once it has brought the journal to its end, by which alone anything is repaired.
pub fn check_disk(disk: &str) -> Verdict {
    let output = Command::new("/usr/sbin/e2fsck").args(["-p", disk]).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let mistake = said.lines().find(|line| !NO_MISTAKES.iter().any(|part| line.contains(part)));
    // Status 1: something was repaired, which the lines tell.
    let is_usable = matches!(output.status.code(), Some(0 | 1));
    if mistake.is_some() || !is_usable {
        let complained = String::from_utf8_lossy(&output.stderr);
        return Err(format!("e2fsck -p {disk}: {}\n{said}{complained}", output.status).into());
    }
    tool("e2fsck", &["-f", "-n", disk]).map(drop)
}

/// A disk, made by `./tern run`.
pub struct Disk {
    /// Its image.
    pub file: PathBuf,
    _scratch: Scratch,
}

impl Disk {
    /// One that is not there yet.
    pub fn new() -> xtask::Result<Disk> {
        let scratch = Scratch::create()?;
        Ok(Disk { file: scratch.0.join("a disk"), _scratch: scratch })
    }

    /// Runs a script on a machine with this disk.
    pub fn run(&self, world: &World, script: &str) -> xtask::Result<Reply> {
        self.run_with(world, &[], script)
    }

    fn run_with(&self, world: &World, options: &[&str], script: &str) -> xtask::Result<Reply> {
        let file = self.file.display().to_string();
        let options = [&["run", "--script", "-", "--disk", &file], options].concat();
        world.tern(&options, script.as_bytes())
    }

    /// Path of its image.
    pub fn path(&self) -> &str {
        self.file.to_str().unwrap_or_default()
    }

    /// Fails unless Linux finds no mistake, and reads this in a file.
    fn check(&self, path: &str, text: &str) -> Verdict {
        check_disk(self.path())?;
        let read = tool("debugfs", &["-R", &format!("cat {path}"), self.path()])?;
        if read == text { Ok(()) } else { Err(format!("Linux reads {read:?}").into()) }
    }
}

/// Every server on the way is killed. What was written is there, for the next boot and for Linux, which finds no mistake.
fn what_is_on_the_disk_stays_there(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    let script = "mkdir /disk/etc\nrun file-test mapped /disk/etc\nrun file-test mapped /\nrun file-test stranger\necho first > /disk/etc/motd\nkill virtio-block\necho second >> /disk/etc/motd\n\
        kill ext4\necho third >> /disk/etc/motd\nkill bus\necho fourth >> /disk/etc/motd\nkill mounts\n\
        mv /disk/etc/motd /disk/etc/told\ncat /disk/etc/told\nexit 0\n";
    let reply = disk.run(world, script)?;
    reply.check_code(0)?;
    reply.check_contains("file-test: all is well\nfile-test: all is well\nfile-test: all is well\n")?;
    reply.check_contains("first\nsecond\nthird\nfourth\n")?;
    disk.check("/etc/told", "first\nsecond\nthird\nfourth\n")?;
    let mapped = tool("debugfs", &["-R", "cat /etc/mapped", disk.path()])?;
    if mapped.len() != 6000 || !mapped.ends_with("\t\t\t\t\t\t\t\t") {
        return Err(format!("Linux reads {} bytes that were mapped, and other ones", mapped.len()).into());
    }
    tool("debugfs", &["-w", "-R", "symlink /etc/link told", disk.path()])?;
    let reply = disk.run(world, "cat /disk/etc/link\nls -l /disk/etc\nexit 0\n")?;
    reply.check_contains("first\nsecond\nthird\nfourth\n")?;
    reply.check_contains("link -> told")
}

/// On a machine without anything virtio, with the disk behind its own AHCI controller. What is not there is refused.
fn what_is_on_a_sata_disk_stays_there(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    let options = ["--machine", "q35", "--disk-as", "ahci"];
    let script = "run disk\nrun disk read 524288\nrun disk read 18446744073709551615 2\nmkdir /disk/etc\necho first > /disk/etc/motd\nsync\n\
        kill ahci\necho second >> /disk/etc/motd\nkill bus\necho third >> /disk/etc/motd\ncat /disk/etc/motd\nps\nexit 0\n";
    let reply = disk.run_with(world, &options, script)?;
    reply.check_code(0)?;
    let refused = "disk: the server does not understand the request\n";
    reply.check_contains(&format!("524288 sectors of 512 bytes\n{refused}{refused}"))?;
    reply.check_contains("first\nsecond\nthird\n")?;
    if reply.out.lines().any(|line| line.contains("virtio-block")) {
        return Err(reply.failed("the other driver was there, too"));
    }
    disk.check("/etc/motd", "first\nsecond\nthird\n")
}

/// A disk of zeros is refused by everybody, and does no harm to the rest.
fn without_a_file_system_there_is_an_error(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    xtask::paths::write(&disk.file, &vec![0; 1 << 20])?;
    let reply =
        disk.run(world, "ls /disk\necho text > /disk/file\necho text > /file\ncat /file\nexit 0\n")?;
    reply.check_contains("ls: /disk: what is stored there makes no sense")?;
    reply.check_contains("echo: /disk/file: what is stored there makes no sense")?;
    reply.check_contains("\ntext\n")
}

/// The first driver ends when the file system asks how large the disk is. The next one is asked, and the disk is there.
fn a_driver_may_end_before_it_answers(world: &'static World) -> Verdict {
    let entries = world.entries_of(|files| {
        let mut system = xtask::system::read("default", files)?;
        let is_driver = |program: &description::Program| program.name == "virtio-block";
        let place = system.programs.iter().position(is_driver);
        let place = place.ok_or_else(|| xtask::Error::new("there is no driver of disks"))?;
        let leaver = description::Program {
            name: "leaver".into(),
            file: "disk-test".into(),
            arguments: "leave".into(),
            otherwise: Some("virtio-block".into()),
            ..system.programs[place].clone()
        };
        system.programs.insert(place, leaver);
        Ok(system)
    })?;
    let disk = Disk::new()?;
    let script = "echo text > /disk/file\ncat /disk/file\nps\nexit 0\n";
    let reply = world.script_with(&entries, &["--disk", disk.path()], script.as_bytes())?;
    reply.check_code(0)?;
    // It runs only if the first one has left.
    reply.check_contains("virtio-block")?;
    reply.check_contains("text\n")?;
    disk.check("/file", "text\n")
}

/// A client that opens all that it can, and another one beside it; and when the first is gone, there is as much as before.
fn who_opens_all_leaves_some(world: &'static World) -> Verdict {
    let round = |name| format!("run file-test greedy {name} &\nrun file-test modest {name}\n");
    let hoard = "run file-test hoard three &\nrun file-test modest three\n";
    let reply = world.script((round("one") + &round("two") + hoard + "exit 0\n").as_bytes())?;
    reply.check_code(0)?;
    match reply.out.matches("file-test: ").count() {
        3 if reply.out.matches("file-test: all is well").count() == 3 => Ok(()),
        _ => Err(reply.failed("expected three times that all is well")),
    }
}

/// A server's share of kernel memory pays for the mappings of less memory than it may have. The file system in memory is filled, and says so; the one of the disk reads more than it
/// keeps, on a machine whose shares are small.
fn kernel_memory_does_not_run_out_before_memory(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let (folder, disk) = (scratch.0.join("folder"), scratch.0.join("disk").display().to_string());
    std::fs::create_dir(&folder)?;
    let line = "it is read\n";
    std::fs::write(folder.join("large"), line.repeat((6 << 20) / line.len()))?;
    tool("mke2fs", &["-q", "-t", "ext4", "-b", "4096", "-d", &folder.display().to_string(), &disk, "64M"])?;
    let run = |memory, script: &[u8]| {
        world.tern(&["run", "--disk", &disk, "--memory", memory, "--script", "-"], script)
    };
    let filled = run("256", b"cp /disk/large /1\ncp /disk/large /2\ncp /disk/large /3\nwc /2\nexit 0\n")?;
    filled.check_contains("cp: /disk/large: no space left\n")?;
    let read = run("64", b"wc /disk/large\nwc /disk/large\nexit 0\n")?;
    for reply in [filled, read] {
        reply.check_code(0)?;
        reply.check_contains(" 571950 1715850 6291450\n")?;
        if reply.out.contains("root: ") {
            return Err(reply.failed("expected that no server ends"));
        }
    }
    check_disk(&disk)
}

/// Programs that watch, in memory and on a disk, and go on when servers end; and programs that map files of which few pages are there at a time.
fn watches_tell_what_happens(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let disk = scratch.0.join("disk");
    tool("mke2fs", &["-q", "-t", "ext4", "-b", "4096", &disk.display().to_string(), "64M"])?;
    let mut machine = world.machine().with("init=shell args=script");
    machine.disk = Some(disk.clone());
    let mut guest = Guest::start(&machine)?;
    guest.limit(Some(LIMIT));
    let talked = talk(&mut guest);
    guest.send(b"exit 0\n");
    let end = guest.finish();
    match talked {
        Some(text) => Err(failed(&format!("expected {text:?}"), &end, &guest.text())),
        None if end != End::Orderly(0) => Err(failed("it did not end in order", &end, &guest.text())),
        None => check_disk(&disk.display().to_string()),
    }
}

/// Each file of the boot archive is there, byte for byte, also when the server was killed; and nothing can be changed.
fn what_came_with_the_boot_can_be_read(world: &'static World) -> Verdict {
    let mut entries = world.entries()?;
    entries.retain(|entry| !entry.name.starts_with("etc/"));
    let text = (0..500).map(|number| format!("line {number} came with the boot\n")).collect::<String>();
    for name in ["etc/motd", "etc/deep/motd", "no/../where"] {
        entries.push(Entry { name: name.into(), data: text.clone().into_bytes() });
    }
    let script = "ls /boot/etc /boot/etc/deep /boot/no\ncat /boot/etc/deep/motd\nkill bootfs\ncp /boot/etc/motd /copy\ncat /copy | wc\n\
        run file-test mapped /boot\nrun file-test boot /boot\necho x > /boot/etc/motd\necho x > /boot/new\nmkdir /boot/new\nrm /boot/shell\nrmdir /boot/etc\n\
        mv /boot/shell /boot/bell\nln /boot/shell /boot/bell\nln -s shell /boot/bell\nrmdir /boot\ndf /boot\nexit 0\n";
    let reply = world.script_in(&entries, script.as_bytes())?;
    reply.check_code(0)?;
    reply.check_contains(&format!("deep/\nmotd\nmotd\nls: /boot/no: not found\n{text}"))?;
    reply.check_contains(&format!("    500    3000 {:>7}\n", text.len()))?;
    reply.check_contains("file-test: read-only\nfile-test: all is well\n")?;
    for refused in [
        "echo: /boot/etc/motd",
        "echo: /boot/new",
        "mkdir: /boot/new",
        "rm: /boot/shell",
        "rmdir: /boot/etc",
        "mv: /boot/shell",
        "ln: /boot/bell",
    ] {
        reply.check_contains(&format!("{refused}: read-only\n"))?;
    }
    reply.check_contains("rmdir: /boot: busy\n")?;
    // A program that is not named by the description does not see the archive.
    let entries = world.entries_of(|files| {
        let mut system = xtask::system::read("default", files)?;
        system.programs.iter_mut().for_each(|program| program.reads_archive = false);
        let name = String::from("file-test");
        let clients = Some(vec![name.clone()]);
        system.programs.push(Program { file: name.clone(), name, clients, ..system.usual.clone() });
        Ok(system)
    })?;
    let reply = world.script_in(&entries, b"ls /boot\nrun file-test child\nexit 0\n")?;
    reply.check_contains("ls: /boot: not allowed\n")?;
    // A task that a client of a server has made is no client.
    reply.check_contains("file-test: all is well\n")
}

/// Commands for [`watches_tell_what_happens`], and what is to be seen then.
const TALK: &[(&str, &[&str])] = &[
    ("run file-test watching /", &["file-test: all is well"]),
    ("mkdir /disk/w", &[]),
    ("run file-test watching /disk/w", &["file-test: all is well"]),
    ("cd /disk", &[]),
    ("run watch -n 6 w &", &["w is watched"]),
    ("echo one > w/a", &["made a", "contents of a"]),
    ("mv w/a w/b", &["moved from a", "moved to b"]),
    ("kill ext4", &["events are lost: look again"]),
    ("echo two >> w/b", &["contents of b"]),
    ("run tail -f -n 1 w/b &", &["two"]),
    ("echo three >> w/b", &["three"]),
    ("kill ext4", &["was killed"]),
    ("echo four >> w/b", &["four"]),
    ("kill mounts", &["was killed"]),
    ("echo five >> w/b", &["five"]),
    ("echo > w/b", &["was cut off"]),
    ("run watch w &", &["w is watched"]),
    ("rm w/b", &["removed b"]),
    ("rmdir w", &["gone"]),
    ("run watch w", &["watch: w: not found"]),
    ("run watch -n x w", &["usage: watch [-n COUNT] PATH"]),
    ("run file-test paging /", &["file-test: all is well"]),
    ("run file-test paging /disk", &["file-test: all is well"]),
    ("run file-test lost / &", &["file-test: it is mapped"]),
    (
        "kill ramfs",
        &["a page of a mapped file is not to be had", "crashed: unresolved page fault (vector 257)"],
    ),
];

/// Says what is not seen, if there is something.
fn talk(guest: &mut Guest) -> Option<&'static str> {
    if !guest.expect_begin() {
        return Some("the shell's begin");
    }
    TALK.iter().find_map(|(command, seen)| {
        let before = guest.text().len();
        guest.send(format!("{command}\n").as_bytes());
        seen.iter().copied().find(|text| {
            // Several lines may have come at once.
            let is_seen = |guest: &Guest| guest.text().get(before..).is_some_and(|said| said.contains(text));
            while !is_seen(guest) && guest.next_event().is_some() {}
            !is_seen(guest)
        })
    })
}
