//! Words of `uses` hold against a hostile program: each server refuses who may not use it, however he has found it.

use crate::files::Disk;
use crate::world::{Named, Verdict, World, usual_description};
use libtest_mimic::Trial;
use xtask::peripherals;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 2] = [
        ("servers_refuse_who_may_not_use_them", servers_refuse_who_may_not_use_them),
        ("drivers_refuse_who_may_not_use_them", drivers_refuse_who_may_not_use_them),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("policy", format!("strangers::{name}"), verdict)))
}

/// Programs of one file: one that may use nothing, and one that may use a single module of a task that has two.
const STRANGERS: &str = r#"
[[program]]
name = "stranger"
uses = []

[[program]]
name = "half-stranger"
file = "stranger"
uses = ["calendar"]
"#;

/// A source of random numbers and a second console, as nobody but their drivers has them.
const DRIVERS: &str = r#"
[[program]]
name = "stranger"
uses = []

[[program]]
name = "virtio-entropy"
serves = ["entropy"]
priority = 54
priority-max = 54
kernel-share = 4
memory = "4 MiB"
uses = ["console", "bus"]
devices = ["unclassified"]
"#;

/// Runs the lines of a script in the default system with these entries besides; each of them has to succeed.
fn all_succeed(world: &World, entries: &str, options: &[&str], lines: &[&str]) -> Verdict {
    let text = usual_description()? + entries;
    let entries = world.entries_of(|files| xtask::system::of_text("strangers", &text, files))?;
    for line in lines {
        let reply = world.script_with(&entries, options, format!("{line}\nexit\n").as_bytes())?;
        reply.check_code(0)?;
        if reply.out.contains("root:") {
            return Err(reply.failed("a server has ended"));
        }
    }
    Ok(())
}

fn servers_refuse_who_may_not_use_them(world: &'static World) -> Verdict {
    let disk = Disk::new()?;
    let forward = format!("{}:7", peripherals::free_port()?);
    let options = ["--disk", disk.path(), "--net", &forward];
    let lines = [
        "run stranger console=console bus=bus virtio-block=block virtio-net=link network=network ramfs=ram ext4=disk bootfs=boot mounts=files services=clock services=calendar",
        "date\nrun half-stranger console=console bus=bus network=network services/clock",
    ];
    all_succeed(world, STRANGERS, &options, &lines)
}

fn drivers_refuse_who_may_not_use_them(world: &'static World) -> Verdict {
    all_succeed(world, DRIVERS, &["--entropy"], &["run random 8\nrun stranger virtio-entropy=entropy"])
}
