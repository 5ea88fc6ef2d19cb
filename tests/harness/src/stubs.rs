//! Generated stubs test one another in the booted system.

use crate::world::{LIMIT, Verdict, World, boot, failed};
use libtest_mimic::Trial;
use xtask::guest::End;

/// The interfaces that have a line.
const INTERFACES: [&str; 42] = [
    "one client for three servers",
    "several clients of one object",
    "an object that wants more room",
    "a watch between client and object",
    "references to and from C",
    "Archive::Shelf",
    "Bench::Calls",
    "Bench::Slope",
    "Clock::Wall",
    "Mail::Box",
    "Post::Base",
    "Post::Office",
    "watches in other tasks, before answers in memory",
    "several references in a request",
    "references within values",
    "references within values to and from C",
    "Harbour::Port through a door",
    "Harbour::Port through a door and a watch",
    "Harbour::Port through a plain door",
    "pages that a call shows",
    "pages that a call shows to and from C",
    "House::Lift through a door",
    "House::Lift through a door and a watch",
    "Archive::Shelf through a door",
    "Atlas::Map through a door",
    "Archive::Shelf through a door and a watch",
    "Catalog::Index through a door and a watch",
    "Mint::Register through a door and a watch",
    "Bench::Calls through a door",
    "Bench::Slope through a door",
    "Clock::Wall through a door",
    "Catalog::Index through a door",
    "Mail::Box through a door",
    "Warehouse",
    "Warehouse through a door",
    "Cabinet",
    "Cabinet through a door",
    "Atlas::Map through a plain door",
    "Catalog::Index through a plain door",
    "Catalog::Index through a plain door and a watch",
    "House::Lift through a plain door",
    "Mint::Office through a plain door",
];

/// The trials of this module: with the fast path on and off.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trial = |variant: &'static str| {
        world.trial("stubs", format!("stubs::selftest_fastpath_{variant}"), move |world| {
            selftest(world, variant)
        })
    };
    ["on", "off"].map(trial).into()
}

fn selftest(world: &World, variant: &str) -> Verdict {
    let machine = world.machine().with(&format!("init=stub-test fastpath={variant}"));
    let (end, text) = boot(&machine, LIMIT)?;
    let passed = |name: &&str| {
        let begin = format!("SELFTEST {name}: ");
        text.lines().any(|line| line.starts_with(&begin) && line.trim_end().ends_with(": ok"))
    };
    match INTERFACES.iter().find(|name| !passed(name)) {
        Some(name) => Err(failed(&format!("{name} did not pass"), &end, &text)),
        None if end != End::Orderly(0) => Err(failed("the program did not end well", &end, &text)),
        None => Ok(()),
    }
}
