//! Losses of power. A disk has got all writes up to some moment, and none of those behind: which files are there then, and which must be?
//!
//! In reading order: [`log`], writes as QEMU's `blklogwrites` records them; [`disk`], a disk in memory; [`judge`], what a program was promised;
//! [`replay`], the journal is brought to its end, by Tern's file system and by Linux's. The tests in `prefixes.rs` do all of it without a machine, those in
//! `tests/harness/src/power_cuts.rs` with the whole system.

#![forbid(unsafe_code)]

pub mod disk;
pub mod judge;
pub mod log;
pub mod replay;

#[cfg(test)]
mod prefixes;
