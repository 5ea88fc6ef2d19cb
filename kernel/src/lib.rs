//! The Tern microkernel.
#![cfg_attr(target_os = "none", no_std)]
pub mod arch;
pub mod boot;
pub mod layout;
pub mod options;
pub mod panic;
pub mod param;
pub mod print;
#[cfg(target_os = "none")]
pub mod start;
/// The parser of the machine's tables is pure, so it is tested here too.
#[cfg(test)]
#[path = "arch/x86_64/acpi.rs"]
mod acpi;
