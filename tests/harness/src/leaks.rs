//! Measures against leaks by speculation, on processors that seem to need them.
//!
//! No emulator leaks. What can be seen is what the kernel says, that everything works with the measures, and which pages there
//! are while a user runs.

use crate::monitor::{self, Monitor};
use crate::suite::end_marker;
use crate::world::{Scratch, Verdict, World, boot, failed};
use libtest_mimic::Trial;
use std::thread;
use std::time::{Duration, Instant};
use xtask::guest::{End, Guest};
use xtask::machine::Machine;

/// Some of whose maker's processors leak; it does not say that it is another one.
const LEAKING: &str = "max,vendor=GenuineIntel";

const LIMIT: Duration = Duration::from_secs(600);

/// First address of the kernel half.
const KERNEL_HALF: u64 = 0xffff_8000_0000_0000;

/// Most of the kernel half that users' tables may show, in bytes: its text, and a few pages of tables and devices.
const SHOWN_MAX: u64 = 512 << 10;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let isolated = ["verw at each exit, no ibrs, page-table isolation", "fast path off"];
    let open =
        ["verw at each exit, no ibrs, no page-table isolation", "tern: caution   this", "fast path on"];
    vec![
        world.trial("guest", "leaks::the_suite_under_page_table_isolation", move |world| {
            suite(world, "exhaust=on", &isolated)
        }),
        world.trial("guest", "leaks::the_suite_with_buffers_cleared_at_each_exit", move |world| {
            suite(world, "pti=off", &open)
        }),
        world.trial("guest", "leaks::users_see_next_to_nothing_of_the_kernel", shown),
        world.trial("guest", "leaks::x87_pointers_are_set_where_the_maker_leaves_them", x87_pointers),
    ]
}

/// Parts of the suite on a processor that leaks; the serial line says all of `lines`.
fn suite(world: &World, options: &str, lines: &[&str]) -> Verdict {
    let kinds = "ipc.,long.,exception.,foreign.,map.,exhaust.,device.,debug.,state.,task.,random.";
    // What is random there is tried at length by the suite's own boots.
    let calls = if world.full { 1_000_000 } else { 100_000 };
    let machine = world.machine().with(&format!("init=suite args={kinds},calls={calls} {options}"));
    some_of_the_suite(machine, 60, lines)?;
    // What is judged by the clock, by one that counts.
    let machine = world.machine().with(&format!("init=suite args=timed {options}")).counting();
    some_of_the_suite(machine, 10, lines)
}

fn some_of_the_suite(mut machine: Machine, tests_min: usize, lines: &[&str]) -> Verdict {
    machine.cpu = LEAKING.into();
    let (end, text) = boot(&machine, LIMIT)?;
    let all_fine = text.lines().filter_map(end_marker).any(|(ran, bad)| ran >= tests_min && bad == 0);
    let said = |line: &&str| text.contains(*line);
    if end == End::Orderly(0) && all_fine && lines.iter().all(said) && said(&"meltdown, mds, ") {
        return Ok(());
    }
    Err(failed("expected that all tests of these kinds pass, and lines about leaks", &end, &text))
}

/// Threads keep their registers on processors whose loads leave the x87 error pointers alone, and on others; the kernel tells them apart.
fn x87_pointers(world: &World) -> Verdict {
    for (cpu, says) in
        [("max,vendor=AuthenticAMD", ", x87 pointers"), ("max,vendor=GenuineIntel", ", no x87 pointers")]
    {
        let mut machine = world.machine().with("init=suite args=state. pti=off");
        machine.cpu = cpu.into();
        let (end, text) = boot(&machine, LIMIT)?;
        let all_fine = text.lines().filter_map(end_marker).any(|(ran, bad)| ran >= 4 && bad == 0);
        if end != End::Orderly(0) || !all_fine || !text.contains(says) {
            return Err(failed(&format!("{cpu}: expected {says:?} and that all pass"), &end, &text));
        }
    }
    Ok(())
}

/// Stops the machine until a user is caught running, and looks at what the tables of that moment map.
fn shown(world: &World) -> Verdict {
    let scratch = Scratch::create()?;
    let mut machine = world.machine().with("init=suite args=random. pti=on");
    let socket = monitor::plug_in(&mut machine, &scratch);
    let mut guest = Guest::start(&machine)?;
    guest.limit(Some(LIMIT));
    if !guest.expect("fast path off") {
        return Err(failed("expected that the kernel starts", &guest.finish(), &guest.text()));
    }
    let mut monitor = Monitor::connect(&socket)?;
    let deadline = Instant::now() + LIMIT;
    while Instant::now() < deadline {
        thread::sleep(Duration::from_millis(50));
        monitor.ask("stop")?;
        if monitor.ask("info registers")?.contains("CPL=3") {
            let map = monitor.ask("info mem")?;
            return judge(&map);
        }
        monitor.ask("cont")?;
    }
    Err("no user was caught running".into())
}

/// Lines are `first-end size rights`, in hexadecimal.
fn judge(map: &str) -> Verdict {
    let ranges = map.lines().filter_map(|line| {
        let (range, rest) = line.trim().split_once(' ')?;
        let first = u64::from_str_radix(range.split_once('-')?.0, 16).ok()?;
        let size = u64::from_str_radix(rest.split_once(' ')?.0, 16).ok()?;
        Some((first, size))
    });
    let (kernel, users): (Vec<_>, Vec<_>) = ranges.partition(|&(first, _)| first >= KERNEL_HALF);
    let total: u64 = kernel.iter().map(|(_, size)| size).sum();
    if !users.is_empty() && !kernel.is_empty() && total <= SHOWN_MAX {
        return Ok(());
    }
    Err(format!("users' tables show {} KiB of the kernel half\n{map}", total >> 10).into())
}
