//! Entries of x86-64. [`boot`] is the first; [`fast_path`] is every way in and out once users run, and [`trap`] what happens between.

pub mod boot;
mod checked;
pub mod fast_path;
mod port_access;
pub mod trap;
