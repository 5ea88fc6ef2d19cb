//! The committed tables of measurements still hold, exactly.

use crate::world::World;
use libtest_mimic::Trial;
use xtask::bench;

/// The trials of this module: one for each suite.
pub fn trials(world: &'static World) -> xtask::Result<Vec<Trial>> {
    let trial = |suite: String| {
        world.trial("bench", format!("bench::{suite}"), move |world| {
            match bench::difference(&world.system, &suite)? {
                None => Ok(()),
                Some(lines) => {
                    Err(format!("{lines}\nif this is wanted: ./tern bench {suite} --bless").into())
                }
            }
        })
    };
    Ok(bench::suite_names()?.into_iter().map(trial).collect())
}
