//! File systems that are mounted and unmounted while the system runs: by the shell, and by a program that keeps files open, with the server of all file systems killed
//! meanwhile.

use crate::world::{Named, Reply, Says, Verdict, World};
use description::{Program, System};
use libtest_mimic::{Failed, Trial};

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 5] = [
        ("commands_do_what_they_say", commands_do_what_they_say),
        ("what_is_open_stays", what_is_open_stays),
        ("without_the_right_nothing_changes", without_the_right_nothing_changes),
        ("what_was_acknowledged_is_there", what_was_acknowledged_is_there),
        ("a_server_that_stayed_down_begins_anew", a_server_that_stayed_down_begins_anew),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("files", format!("mounting::{name}"), verdict)))
}

/// Lines of what is mounted from the beginning.
const FIXED: [&str; 4] =
    ["/            ram", "/disk        disk", "/boot        boot", "/etc         boot/etc"];

/// Commands, and what each says.
const COMMANDS: &[Says] = &[
    ("mount", &FIXED),
    ("mkdir /m /m/inner /other", &[]),
    ("echo seen > /other/file", &[]),
    ("mount /boot/etc /m", &[]),
    ("ls /m", &["help", "motd"]),
    ("mount", &[FIXED[0], FIXED[1], FIXED[2], FIXED[3], "/m           boot/etc"]),
    ("cd /other", &[]),
    ("mount . ../m", &[]),
    ("mount", &[FIXED[0], FIXED[1], FIXED[2], FIXED[3], "/m           boot/etc", "/m           ram/other"]),
    // Another program finds it.
    ("run tail /m/file", &["seen"]),
    ("echo more >> /m/file", &[]),
    ("cat file", &["seen", "more"]),
    ("mv /other /another", &["mv: /other: busy"]),
    ("cd /", &[]),
    ("rmdir /m", &["rmdir: /m: busy"]),
    ("mount boot/no /m", &["mount: boot/no: not found"]),
    ("mount boot /no", &["mount: /no: not found"]),
    ("mount clock /m", &["mount: clock: not allowed"]),
    ("mount disk /m", &["mount: disk: …"]),
    ("mount boot", &["usage: mount [SOURCE PATH]"]),
    ("umount", &["usage: umount PATH..."]),
    ("umount /etc /m/no", &["umount: /etc: not allowed", "umount: /m/no: nothing is mounted there"]),
    // The list is kept, and what is mounted is there again when its server is.
    ("kill mounts", &["root: mounts (task …"]),
    ("cat /m/file", &["seen", "more"]),
    ("kill bootfs", &["root: bootfs (task …"]),
    ("umount /m", &[]),
    ("ls /m", &["help", "motd"]),
    ("mount ram/other /m", &[]),
    // A server in memory loses the place, which is made again, and what was mounted there, which is not.
    ("kill ramfs", &["root: ramfs (task …"]),
    ("ls /", &["boot/", "disk/ (not there)", "etc/", "m/ (not there)"]),
    ("cat /m/file", &["cat: /m/file: not found"]),
    ("mkdir /other", &[]),
    ("echo again > /other/file", &[]),
    ("cat /m/file", &["again"]),
    ("umount /m /m /m", &["umount: /m: nothing is mounted there"]),
    ("kill mounts", &["root: mounts (task …"]),
    ("mount", &FIXED),
    ("ls / /m", &["boot/", "disk/ (not there)", "etc/", "m/", "other/"]),
];

fn commands_do_what_they_say(world: &'static World) -> Verdict {
    world.says(COMMANDS)
}

/// Runs a script in the default system, of which something is changed.
fn run(world: &World, change: impl FnOnce(&mut System), script: &str) -> Result<Reply, Failed> {
    let entries = world.entries_of(|files| {
        let mut system = xtask::system::read("default", files)?;
        change(&mut system);
        Ok(system)
    })?;
    let reply = world.script_in(&entries, script.as_bytes())?;
    reply.check_code(0)?;
    Ok(reply)
}

/// Adds an entry of a program that may mount, and end others.
fn with_right(system: &mut System, name: &str) {
    let usual = system.usual.clone();
    let name = String::from(name);
    system.programs.push(Program { file: name.clone(), name, is_operator: true, may_mount: true, ..usual });
}

fn what_is_open_stays(world: &'static World) -> Verdict {
    let reply =
        run(world, |system| with_right(system, "file-test"), "run file-test mounting\nmount\nexit 0\n")?;
    reply.check_contains(&format!("file-test: all is well\n{}\n", FIXED.join("\n")))
}

/// Neither a program nor a shell without the right changes anything.
fn without_the_right_nothing_changes(world: &'static World) -> Verdict {
    let reply = world.script(b"run file-test not-mounting\nexit 0\n")?;
    reply.check_contains("file-test: all is well\n")?;
    // Without it of the program or of the shell that starts it, what there is is listed.
    for without in [&["shell"][..], &["mount", "umount"]] {
        let take = |system: &mut System| {
            let them = system.programs.iter_mut().filter(|program| without.contains(&program.name.as_str()));
            them.for_each(|program| program.may_mount = false);
        };
        let reply = run(world, take, "mkdir /m\nmount boot /m\numount /etc\nmount\nexit 0\n")?;
        let refused = "mount: boot: not allowed\numount: /etc: not allowed\n";
        reply.check_contains(&format!("{refused}{}\n", FIXED.join("\n")))?;
    }
    Ok(())
}

/// A mount, an unmount or a file of which a program was told is so, however often the server is killed; and nothing else is told but that, or that the server is gone.
fn what_was_acknowledged_is_there(world: &'static World) -> Verdict {
    let kills = if world.full { 1000 } else { 20 };
    let change = |system: &mut System| {
        with_right(system, "file-test");
        system.programs.iter_mut().for_each(|program| program.restarts = u8::MAX);
    };
    let reply = run(world, change, &format!("run file-test mounting {kills}\nmount\nexit 0\n"))?;
    reply.check_contains(&format!("mounts was killed {kills} times"))?;
    reply.check_contains(&format!("file-test: all is well\n{}\n", FIXED.join("\n")))
}

/// Somebody who starts it once more has what the description says.
fn a_server_that_stayed_down_begins_anew(world: &'static World) -> Verdict {
    let change = |system: &mut System| system.programs.iter_mut().for_each(|program| program.restarts = 0);
    let script = "mkdir /m\nmount boot /m\nls /m/etc\nkill mounts\nls /\nrestart mounts\nmount\nexit 0\n";
    let reply = run(world, change, script)?;
    reply.check_contains("motd\n")?;
    reply.check_contains("stays down; \"restart mounts\" starts it again\nls: /: not found\n")?;
    reply.check_contains(&format!("{}\n", FIXED.join("\n")))?;
    if reply.out.contains("/m  ") { Err(reply.failed("it is still mounted")) } else { Ok(()) }
}
