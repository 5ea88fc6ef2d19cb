//! Every way to boot leads to the same shell.

use crate::world::{LIMIT, Scratch, Verdict, World, failed};
use libtest_mimic::Trial;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use xtask::console::{Event, Filter};
use xtask::guest::{End, Guest};
use xtask::machine::{Boot, Kind, Machine};
use xtask::{Context, image, interrupt, paths};

/// Firmware for UEFI.
const OVMF: &str = "/usr/share/ovmf/OVMF.fd";

/// The processor that Bochs imitates: one with PCID, x2APIC and the TSC-deadline timer.
const BOCHS_CPU: &str = "corei7_skylake_x";

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, kind) in [("pc", Kind::Pc), ("q35", Kind::Q35), ("microvm", Kind::Microvm)] {
        for cpus in [1, 4] {
            trials.push(world.trial("boot", format!("boot::pvh_{name}_{cpus}_cpu"), move |world| {
                let mut machine = world.machine().with("init=shell args=script");
                machine.kind = kind;
                machine.cpus = cpus;
                reaches_the_shell(&machine)
            }));
        }
    }
    trials.push(world.trial("boot", "boot::grub_bios", |world| {
        from_disc(world, |disc| Boot::BiosDisc(disc.to_path_buf()))
    }));
    trials.push(world.trial("boot", "boot::grub_uefi", |world| {
        from_disc(world, |disc| Boot::UefiDisc { disc: disc.to_path_buf(), firmware: OVMF.into() })
    }));
    trials.push(world.trial("boot", "boot::bochs", bochs));
    trials.push(world.trial("boot", "boot::bochs_with_more_tasks_than_tags", more_tasks_than_tags));
    trials.push(world.trial("boot", "boot::bochs_where_tags_change_hands", |world| few_tags(world, "on")));
    trials.push(world.trial("boot", "boot::bochs_where_tags_change_hands_without_fast_path", |world| {
        few_tags(world, "off")
    }));
    trials
}

/// The shell runs, takes a command, and its exit code comes back.
fn reaches_the_shell(machine: &Machine) -> Verdict {
    let mut guest = Guest::start(machine)?;
    guest.limit(Some(LIMIT));
    if guest.expect_begin() {
        guest.send(b"exit 7\n");
    }
    match guest.finish() {
        End::Orderly(7) => Ok(()),
        end => Err(failed("expected exit code 7 from the shell", &end, &guest.text())),
    }
}

fn from_disc(world: &World, boot: impl Fn(&Path) -> Boot) -> Verdict {
    let scratch = Scratch::create()?;
    let disc = scratch.0.join("tern.iso");
    image::make(&world.system, "init=shell args=script", &disc)?;
    reaches_the_shell(&Machine::booting(boot(&disc)))
}

/// Bochs, whose processor has what the other emulator lacks, boots the disc to the shell. It does not say that it does not
/// leak, so that is under page-table isolation.
fn bochs(world: &World) -> Verdict {
    bochs_until(world, "", |text| Filter::default().push(text.as_bytes()).contains(&Event::Begin))
}

/// More tasks than there are tags of address spaces, and tags that are used again: tests of the suite among them. The
/// other emulator has no tags, and page-table isolation would not use them.
fn more_tasks_than_tags(world: &World) -> Verdict {
    /// Stages of `cases/crowd.rs`.
    const STAGES: usize = 4;
    let options = "pti=off kmem=96M init=suite args=crowd,ipc.words,long.direct,long.many,map.";
    bochs_until(world, options, |text| suite_ended_well(text, STAGES))
}

/// So few tags that each end of a time slice may take one from a task and give it to another.
fn few_tags(world: &World, fast_path: &str) -> Verdict {
    let kinds = "ipc.,long.,map.flush,sched.equals,sched.time";
    let options = format!("pti=off tags=3 init=suite args={kinds} fastpath={fast_path}");
    bochs_until(world, &options, |text| suite_ended_well(text, 1))
}

/// Whether the suite has ended so many times, on a processor with tags, and nothing failed.
fn suite_ended_well(text: &str, times: usize) -> bool {
    let fine = text.lines().filter(|line| line.starts_with("SUITE-END ran=") && line.ends_with(" failed=0"));
    fine.count() == times && text.contains("tagged with pcid")
}

/// Boots the disc with these options until the serial line says what it should.
fn bochs_until(world: &World, options: &str, is_done: impl Fn(&str) -> bool) -> Verdict {
    let scratch = Scratch::create()?;
    let disc = scratch.0.join("tern.iso");
    image::make(&world.system, options, &disc)?;
    let serial = scratch.0.join("serial");
    let mut emulator = interrupt::spawn(&mut bochs_command(&scratch, &disc, &serial)?)?;
    let done = wait_for(&serial, is_done);
    // Its end is the emulator's: see `setpriv` below.
    let _ = emulator.kill();
    interrupt::wait(emulator)?;
    if done {
        return Ok(());
    }
    let text = fs::read(&serial).unwrap_or_default();
    Err(format!("it did not come so far\n--- serial line\n{}", String::from_utf8_lossy(&text)).into())
}

/// Writes Bochs's settings. Its display needs a terminal, which `script` provides.
fn bochs_command(scratch: &Scratch, disc: &Path, serial: &Path) -> xtask::Result<Command> {
    let settings = format!(
        "config_interface: textconfig\ndisplay_library: term\nmegs: 256\n\
         cpu: model={BOCHS_CPU}, count=1, ips=50000000, reset_on_triple_fault=0, ignore_bad_msrs=0\n\
         clock: sync=none\n\
         romimage: file=$BXSHARE/BIOS-bochs-latest\nvgaromimage: file=$BXSHARE/VGABIOS-lgpl-latest\n\
         ata0-master: type=cdrom, path=\"{}\", status=inserted\nboot: cdrom\n\
         com1: enabled=1, mode=file, dev={}\nsound: waveoutdrv=dummy\npanic: action=fatal\nlog: {}\n",
        disc.display(),
        serial.display(),
        scratch.0.join("log").display()
    );
    let (settings_path, commands) = (scratch.0.join("settings"), scratch.0.join("commands"));
    paths::write(&settings_path, settings.as_bytes())?;
    // Debian's Bochs starts in its debugger: continue.
    paths::write(&commands, b"c\n")?;
    let line = format!(
        "setpriv --pdeathsig KILL -- bochs -q -f '{}' -rc '{}'",
        settings_path.display(),
        commands.display()
    );
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm");
    let screen = fs::File::create(scratch.0.join("screen")).context(|| "create a file".into())?;
    command.stdin(Stdio::null()).stdout(screen).stderr(Stdio::null());
    Ok(command)
}

/// Watches the file of a serial line until it says what it should, or that it never will.
fn wait_for(serial: &Path, is_done: impl Fn(&str) -> bool) -> bool {
    // Far more than it ever takes: a machine may be busy with other things.
    let deadline = Instant::now() + 10 * LIMIT;
    while Instant::now() < deadline {
        let bytes = fs::read(serial).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).replace('\r', "");
        if is_done(&text) {
            return true;
        }
        if ["KERNEL PANIC", "... FAILED"].iter().any(|end| text.contains(end)) {
            return false;
        }
        thread::sleep(Duration::from_millis(200));
    }
    false
}
