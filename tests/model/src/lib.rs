//! Tests of the kernel above its arch border, on a simulated machine: no emulator, hundreds of thousands of operations a
//! second, every invariant checked after each.
//!
//! Read [`world`] first: a machine with a kernel and a first task. Then [`spaces`] (the model of Appendix A of the 1995
//! paper, and the kernel held against it), [`walk`] (random system calls, faults, interrupts), [`fast_path`] (the assembly
//! path in Rust, and both paths compared), [`doors`], [`authority`], [`clans`] and [`strings`] (models of these, and the kernel held
//! against them), [`answers`] (what may be done to a thread that waits for one), [`edges`] (memory that nobody gets), [`denial`] and
//! [`exhaustion`] (every allocation fails, once or for good), [`large`] (large pages, test by test), [`sparse`] (tables with nothing in them), [`crowds`] (many
//! threads), [`endings`] (tasks that are being ended), [`translations`] (what a processor may have cached), [`traces`] (the trace
//! ring), [`domains`] (what is learned of branches), [`foreign`] (calls of other systems), [`checked`] (a kernel that checks itself), [`shuttles`] (who runs on whose time, test by test), [`inherit`] (who is how urgent, and a reference for that), [`meddling`] (threads that meddle with others), [`crossings`] (what comes in the middle of something else), and [`regressions`] (one test for each bug that was found here).
//!
//! Every random test prints its seed when it fails, with a short program that fails. `TERN_SEED` sets the first seed,
//! `TERN_FULL=1` runs ten times as much. Tests whose names begin with `miri_` are small enough for Miri.

mod extended;
pub mod fast_path;
pub mod random;
pub mod world;

#[cfg(test)]
mod answers;
#[cfg(test)]
mod authority;
#[cfg(test)]
mod checked;
#[cfg(test)]
mod clans;
#[cfg(test)]
mod crossings;
#[cfg(test)]
mod crowds;
#[cfg(test)]
mod denial;
#[cfg(test)]
mod domains;
#[cfg(test)]
mod doors;
#[cfg(test)]
mod edges;
#[cfg(test)]
mod endings;
#[cfg(test)]
mod exhaustion;
#[cfg(test)]
mod foreign;
#[cfg(test)]
mod inherit;
#[cfg(test)]
mod large;
#[cfg(test)]
mod lending;
#[cfg(test)]
mod meanwhile;
#[cfg(test)]
mod meddling;
#[cfg(test)]
mod patience;
#[cfg(test)]
mod plain;
#[cfg(test)]
mod pools;
#[cfg(test)]
mod regressions;
#[cfg(test)]
mod rings;
#[cfg(test)]
mod shuttles;
#[cfg(test)]
mod spaces;
#[cfg(test)]
mod sparse;
#[cfg(test)]
mod states;
#[cfg(test)]
mod strings;
#[cfg(test)]
mod traces;
#[cfg(test)]
mod translations;
#[cfg(test)]
mod uids;
#[cfg(test)]
mod walk;
