//! File systems over others, in the system `stacked`: one over another that stays as it is, and one that is encrypted on a disk.

use crate::files::{Disk, Said, check_disk, check_said, script_of, tool};
use crate::world::{Named, Reply, Verdict, World};
use libtest_mimic::{Failed, Trial};
use std::fs;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 4] = [
        ("what_lies_below_stays", what_lies_below_stays),
        ("what_is_encrypted_is_nobody_elses", what_is_encrypted_is_nobody_elses),
        ("only_the_passphrase_opens", only_the_passphrase_opens),
        ("without_a_disk_there_is_an_error", without_a_disk_there_is_an_error),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("files", format!("stacked::{name}"), verdict)))
}

/// Runs a script in the system, whose programs have these arguments, with a disk.
fn run(world: &World, disk: &Disk, arguments: &[(&str, &str)], script: &str) -> Result<Reply, Failed> {
    let entries = world.entries_of(|files| {
        let mut system = xtask::system::read("stacked", files)?;
        for program in &mut system.programs {
            if let Some((_, arguments)) = arguments.iter().find(|(name, _)| *name == program.name) {
                program.arguments = (*arguments).into();
            }
        }
        Ok(system)
    })?;
    Ok(world.script_with(&entries, &["--disk", disk.path()], script.as_bytes())?)
}

/// Commands on `/`, which is memory over a directory of the disk.
const MERGED: &[Said] = &[
    ("mkdir /disk/base/etc", &[]),
    ("echo one > /disk/base/etc/motd", &[]),
    ("echo other > /disk/base/etc/other", &[]),
    ("cat /etc/motd", &["one"]),
    ("echo two >> /etc/motd", &[]),
    ("cat /etc/motd", &["one", "two"]),
    ("cat /disk/base/etc/motd", &["one"]),
    ("ls /etc", &["motd", "other"]),
    ("rm /etc/other", &[]),
    ("ls /etc", &["motd"]),
    ("cat /etc/other", &["cat: /etc/other: not found"]),
    ("echo new > /etc/other", &[]),
    ("cat /etc/other", &["new"]),
    ("mv /etc /settings", &[]),
    ("ls /", &["disk/", "secret/", "settings/"]),
    ("ls -l /settings", &["-rw-r--r--   1          8 motd", "-rw-r--r--   1          4 other"]),
    ("mkdir /etc", &[]),
    ("ls /etc", &[]),
    ("rmdir /settings", &["rmdir: /settings: the directory is not empty"]),
    ("ln /settings/motd /etc/link", &[]),
    ("run file-test mapped /etc", &["file-test: all is well"]),
    ("kill merge", &["root: merge (task "]),
    ("cat /settings/motd /etc/link", &["one", "two", "one", "two"]),
    ("rm /etc/link /settings/motd", &[]),
    ("kill ext4", &["root: ext4 (task "]),
    ("ls /settings", &["other"]),
    ("kill mounts", &["root: mounts (task "]),
    ("kill virtio-block", &["root: virtio-block (task "]),
    ("ls /disk/base/etc", &["motd", "other"]),
    ("cat /disk/base/etc/motd /disk/base/etc/other", &["one", "other"]),
];

fn what_lies_below_stays(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    check_said(&run(world, &disk, &[], &script_of(MERGED))?, MERGED)?;
    // With the upper one on the disk, too, everything is there after the next start.
    let on_disk = [("merge", "disk/written disk/base")];
    let written: &[Said] =
        &[("echo more >> /etc/motd", &[]), ("rm /etc/other", &[]), ("mv /etc /settings", &[])];
    check_said(&run(world, &disk, &on_disk, &script_of(written))?, written)?;
    let read: &[Said] = &[
        ("ls /settings", &["motd"]),
        ("cat /settings/motd", &["one", "more"]),
        ("cat /etc/motd", &["cat: /etc/motd: not found"]),
        ("ls /disk/base/etc", &["motd", "other"]),
    ];
    check_said(&run(world, &disk, &on_disk, &script_of(read))?, read)?;
    check_disk(disk.path())
}

/// Words of names and contents, which are not to be found on the disk.
const WORDS: [&str; 5] = ["plans", "first", "attack", "at dawn", "sesame"];

const ENCRYPTED: &[Said] = &[
    ("mkdir /secret/plans", &[]),
    ("echo attack at dawn > /secret/plans/first", &[]),
    ("echo or at dawn of another day > /secret/plans/second", &[]),
    ("ln -s plans/first /secret/link", &[]),
    ("cat /secret/link", &["attack at dawn"]),
    ("run file-test mapped /secret", &["file-test: all is well"]),
    ("kill crypt", &["root: crypt (task "]),
    ("cat /secret/plans/first", &["attack at dawn"]),
    ("kill ext4", &["root: ext4 (task "]),
    ("echo attack again >> /secret/plans/first", &[]),
    ("kill virtio-block", &["root: virtio-block (task "]),
    ("cat /secret/link", &["attack at dawn", "attack again"]),
    ("mv /secret/plans/second /secret/second", &[]),
    ("mkdir /secret/plans/empty", &[]),
    ("rmdir /secret/plans", &["rmdir: /secret/plans: the directory is not empty"]),
    ("rmdir /secret/plans/empty", &[]),
    ("rm /secret/mapped", &[]),
    ("ls /secret", &["link", "plans/", "second"]),
    ("kill mounts", &["root: mounts (task "]),
];

const AGAIN: &[Said] = &[
    ("cat /secret/link", &["attack at dawn", "attack again"]),
    ("cat /secret/second", &["or at dawn of another day"]),
    (
        "ls -l /secret",
        &[
            "lrwxrwxrwx   1         11 link -> plans/first",
            "drwxr-xr-x   2       4096 plans/",
            "-rw-r--r--   1         26 second",
        ],
    ),
];

fn what_is_encrypted_is_nobody_elses(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    check_said(&run(world, &disk, &[], &script_of(ENCRYPTED))?, ENCRYPTED)?;
    check_said(&run(world, &disk, &[], &script_of(AGAIN))?, AGAIN)?;
    check_disk(disk.path())?;
    let mut image = fs::read(&disk.file)?;
    for word in WORDS {
        if image.windows(word.len()).any(|part| part == word.as_bytes()) {
            return Err(format!("{word:?} is on the disk").into());
        }
    }
    // A byte of the file in the upper directory is changed, and the other one is as it was.
    let listed = tool("debugfs", &["-R", "ls -p /vault", disk.path()])?;
    let file = listed.lines().find_map(|line| {
        // Inode, mode, owner, group, name.
        let parts: Vec<&str> = line.split('/').collect();
        (parts.get(2)?.starts_with("100") && !parts.get(5)?.starts_with('.')).then(|| parts[5].to_string())
    });
    let file = file.ok_or("there is no file in /vault")?;
    let block = tool("debugfs", &["-R", &format!("bmap /vault/{file} 0"), disk.path()])?;
    let block: usize = block.trim().parse().map_err(|_| format!("no block: {block:?}"))?;
    image[block * 4096 + 1000] ^= 1;
    fs::write(&disk.file, image)?;
    let damaged: &[Said] = &[
        ("cat /secret/second", &["cat: /secret/second: what is stored there makes no sense"]),
        ("cat /secret/link", &["attack at dawn", "attack again"]),
        ("ls /secret", &["link", "plans/", "second"]),
        ("rm /secret/second", &[]),
        ("ls /secret", &["link", "plans/"]),
    ];
    check_said(&run(world, &disk, &[], &script_of(damaged))?, damaged)?;
    check_disk(disk.path())
}

fn only_the_passphrase_opens(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    run(world, &disk, &[], "echo text > /secret/file\nexit 0\n")?.check_code(0)?;
    let wrong = [("crypt", "disk/vault open-barley")];
    let reply = run(
        world,
        &disk,
        &wrong,
        "kill crypt\nls /secret\necho more > /secret/file\necho text > /file\ncat /file\nexit 0\n",
    )?;
    reply.check_contains("crypt: disk/vault: the passphrase is wrong, or .key was changed")?;
    reply.check_contains("ls: /secret: not allowed\necho: /secret/file: not allowed\ntext\n")?;
    let read: &[Said] = &[("cat /secret/file", &["text"])];
    check_said(&run(world, &disk, &[], &script_of(read))?, read)
}

/// With a disk of zeros all that lies over it says so, and nothing else is hurt.
fn without_a_disk_there_is_an_error(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    xtask::paths::write(&disk.file, &vec![0; 1 << 20])?;
    let reply =
        run(world, &disk, &[], "kill crypt\nls /secret\nkill merge\nls /\necho it goes on\nexit 0\n")?;
    reply.check_contains("crypt: disk/vault: what is stored there makes no sense")?;
    reply.check_contains("merge: ram over disk/base: what is stored there makes no sense")?;
    reply.check_contains("it goes on")
}
