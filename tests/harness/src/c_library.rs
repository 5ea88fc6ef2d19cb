//! The C library: `c-test`, a C program, holds the functions of each header against what the C standard wants of them.

use crate::world::{LIMIT, Named, Verdict, World, boot, failed};
use libtest_mimic::Trial;
use xtask::guest::{End, Guest};

/// Groups of tests that `c-test` has.
const GROUPS: usize = 11;

/// Lines that its threads print at the same time.
const LINES: usize = 18;

/// Status of a program that a signal ends which nobody catches: 128 and SIGABRT.
const ABORTED: u8 = 134;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 4] = [
        ("functions_fastpath_on", |world| functions(world, "on")),
        ("functions_fastpath_off", |world| functions(world, "off")),
        ("what_is_typed_is_read", what_is_typed_is_read),
        ("programs_end_as_they_say", programs_end_as_they_say),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("c", format!("c_library::{name}"), verdict)))
}

/// Every group passes, and what several threads print is whole lines.
fn functions(world: &World, variant: &str) -> Verdict {
    let machine = world.machine().with(&format!("init=c-test fastpath={variant}"));
    let (end, text) = boot(&machine, LIMIT)?;
    let count = |start: &str, finish: &str| {
        text.lines().filter(|line| line.starts_with(start) && line.trim_end().ends_with(finish)).count()
    };
    let found = (count("C ", " ... ok"), count("C-LINE ", " is whole"));
    match found {
        _ if end != End::Orderly(0) => Err(failed("the program did not end well", &end, &text)),
        (GROUPS, LINES) => Ok(()),
        _ => Err(failed(&format!("expected {:?} and not {found:?}", (GROUPS, LINES)), &end, &text)),
    }
}

fn what_is_typed_is_read(world: &'static World) -> Verdict {
    let mut guest = Guest::start(&world.machine().with("init=c-test args=input"))?;
    guest.limit(Some(LIMIT));
    let reads = guest.expect("C-TEST reads");
    // The key that ends a line sends a carriage return.
    guest.send(b" 42  terns\ra whole line\rx\r\x04");
    let end = guest.finish();
    let text = guest.text();
    if reads && end == End::Orderly(0) && text.contains("C-TEST ok") {
        return Ok(());
    }
    Err(failed("what was typed did not arrive", &end, &text))
}

/// A failed assertion says where, and ends the program as `abort` does; `exit` writes out what was printed and gives its status.
fn programs_end_as_they_say(world: &'static World) -> Verdict {
    let reply = world.script(b"run c-test assert\nrun c-test abort\nrun c-test exit\n")?;
    reply.check_code(7)?;
    reply.check_contains("assertion \"argc == 1\" failed: file \"tests/guest/c-test/main.c\"")?;
    reply.check_contains("goodbye")?;
    for how in ["assert", "abort"] {
        world.script(format!("run c-test {how}\n").as_bytes())?.check_code(ABORTED)?;
    }
    Ok(())
}
