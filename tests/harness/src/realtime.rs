//! Real time: how late an urgent task wakes up, counted in instructions.
//!
//! The guest's test `realtime.locked_task_beside_thrashing` says it in nanoseconds. This machine's clock counts
//! instructions, so they are the same thing here, and the figure is the same in every run.

use crate::world::{Verdict, World, boot, failed};
use libtest_mimic::Trial;
use std::time::Duration;
use xtask::guest::End;

/// Most instructions from the moment when a timeout ends to the first instruction of the thread that waited for it.
const LATE_MAX: u64 = 10_000;

/// How long the machine may take, counting.
const LIMIT: Duration = Duration::from_secs(300);

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trial = |variant| {
        let name = format!("realtime::wakes_in_time_fastpath_{variant}");
        world.trial("guest", name, move |world| wakes_in_time(world, variant))
    };
    ["on", "off"].map(trial).into()
}

fn wakes_in_time(world: &World, variant: &str) -> Verdict {
    let options = format!("init=suite args=realtime. fastpath={variant}");
    let (end, text) = boot(&world.machine().with(&options).counting(), LIMIT)?;
    let worst = text.lines().find_map(|line| {
        let figures = line.strip_prefix("REALTIME worst=")?;
        figures.split_whitespace().next()?.parse::<u64>().ok()
    });
    match worst {
        Some(1..=LATE_MAX) if end == End::Orderly(0) => Ok(()),
        Some(late) if late > LATE_MAX => {
            Err(format!("{late} instructions late at worst; at most {LATE_MAX} are allowed").into())
        }
        _ => Err(failed("expected a line REALTIME", &end, &text)),
    }
}
