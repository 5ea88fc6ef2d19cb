//! Agreement between the Tern kernel and its users: numbers, layouts, rights, errors, boot information.
//!
//! Everything here is plain data. Start with [`call`]: how a system call looks in registers.

#![no_std]
#![forbid(missing_docs, unsafe_code)]

pub mod archive;
pub mod boot;
pub mod call;
pub mod error;
pub mod foreign;
pub mod fpage;
pub mod message;
pub mod op;
pub mod state;
pub mod uid;

pub use call::{Call, Kind, Timeout};
pub use error::Error;
pub use fpage::{Fpage, Rights, Space};
pub use message::{Dope, StringPart};
pub use op::Op;
pub use state::ThreadState;
pub use uid::{TaskId, Uid};

/// Version of this interface; raised whenever anything in this crate changes its meaning.
pub const VERSION: u32 = 2;

/// Size of the smallest page, in bytes.
pub const PAGE_SIZE: u64 = 4096;

/// First address above the user half. The last page of the half can never be mapped: a `syscall` at its end
/// would return to a non-canonical address.
pub const USER_END: u64 = 0x0000_7fff_ffff_f000;

/// Address at which every task sees the [`boot::InfoPage`], read-only.
pub const INFO_PAGE: u64 = 0xffff_ff00_0000_0000;
