//! Objects behind doors in several tasks, and doors from C.

use crate::world::{LIMIT, Verdict, World, boot, failed};
use libtest_mimic::Trial;
use xtask::guest::End;

/// Tests that `door-test` has, at least.
const TESTS_MIN: usize = 13;

/// The trials of this module: with the fast path on and off.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trial = |variant: &'static str| {
        [
            world.trial("doors", format!("doors::objects_fastpath_{variant}"), move |world| {
                objects(world, variant)
            }),
            world.trial("doors", format!("doors::from_c_fastpath_{variant}"), move |world| {
                from_c(world, variant)
            }),
        ]
    };
    ["on", "off"].map(trial).into_iter().flatten().collect()
}

fn objects(world: &World, variant: &str) -> Verdict {
    let machine = world.machine().with(&format!("init=door-test fastpath={variant}"));
    let (end, text) = boot(&machine, LIMIT)?;
    let passed =
        text.lines().filter(|line| line.starts_with("DOOR ") && line.trim_end().ends_with(" ... ok"));
    match passed.count() {
        count if count < TESTS_MIN => Err(failed("not all of its tests passed", &end, &text)),
        _ if end != End::Orderly(0) => Err(failed("the program did not end well", &end, &text)),
        _ => Ok(()),
    }
}

fn from_c(world: &World, variant: &str) -> Verdict {
    let machine = world.machine().with(&format!("init=door-c fastpath={variant}"));
    let (end, text) = boot(&machine, LIMIT)?;
    if end == End::Orderly(0) && text.contains("DOOR-C ok") {
        return Ok(());
    }
    Err(failed("expected DOOR-C ok", &end, &text))
}
