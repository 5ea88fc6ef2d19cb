//! Entries of x86-64. [`boot`] is the first; [`fast_path`] has every way in and out once users run, [`trap`] the handlers between them.

pub mod boot;
mod checked;
pub mod fast_path;
mod port_access;
pub mod trap;
