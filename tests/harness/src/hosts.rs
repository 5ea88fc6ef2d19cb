//! Tests that need no machine, one trial each: those of the crates of the workspace, and those of the tools. They are in the queue with everything else, as fillers of its end.

use crate::order;
use libtest_mimic::Trial;
use xtask::test::hosts::{self, Program};

/// The trials of this module, if `./tern test` has built their programs.
pub fn trials() -> xtask::Result<Vec<Trial>> {
    let mut trials = Vec::new();
    for program in hosts::listed()? {
        trials.extend(program.tests()?.into_iter().map(|name| trial(&program, name)));
    }
    Ok(trials)
}

fn trial(program: &Program, name: String) -> Trial {
    let (program, test) = (program.clone(), name.clone());
    let kind = program.kind.clone();
    order::trial(&kind, name, move || Ok(program.perform(&test)?))
}
