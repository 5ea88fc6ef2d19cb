//! The tools behind `./tern`, in the order in which they are best read.
//!
//! [`cli`] says what can be asked for. [`build`] makes the kernel and the boot archive, [`machine`] describes
//! the computer they run on, and [`guest`] is that computer while it runs. The verbs are built on these three:
//! [`run`], [`linux`], [`bench`], [`image`], [`test`], [`mutate`], [`check`], [`doctor`], [`nightly`].

#![forbid(unsafe_code)]

pub mod cli;
pub mod error;
pub mod paths;
pub mod peers;

pub mod archive;
pub mod build;
pub mod c_program;
pub mod fresh;
pub mod ksyms;
pub mod newlib;
pub mod programs;
pub mod system;
pub mod tools;

pub mod console;
pub mod crash;
pub mod guest;
pub mod interrupt;
pub mod machine;
pub mod peripherals;
pub mod terminal;

pub mod bench;
#[cfg(test)]
mod book;
pub mod check;
pub mod colours;
pub mod doctor;
pub mod health;
pub mod help;
pub mod image;
pub mod l4v4;
pub mod linux;
pub mod mutate;
pub mod nightly;
pub mod run;
pub mod selftest;
pub mod test;
pub mod tlb;

pub use error::{Context, Error, Result};
