//! The Tern microkernel.
#![cfg_attr(target_os = "none", no_std)]
pub mod arch;
pub mod layout;
pub mod param;
