//! Files behind doors (`idl/interfaces/files.idl`): how programs use them, and how a file system is served.
//!
//! [`Directory`] and [`File`] are references, for programs; a [`Watch`] tells what happens to them. [`serve`] is a whole server: it puts a
//! [`vfs::FileSystem`] behind doors, each open file an object of its own. [`Below`] is where a file system over another server's files begins. [`wire`] says how the two
//! sides write one thing.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod below;
mod client;
mod desk;
mod place;
mod server;
mod watch;
pub mod wire;

pub use below::{Below, begin};
pub use client::{Directory, File, Inbox, Mapped, Mounted, Pages, reading};
pub use desk::hand_out;
pub use place::path_of;
pub use server::{OBJECTS_MAX, OwnPage, serve, serve_at_most};
pub use watch::Watch;

/// Stubs of the interfaces: [`files.idl`](../../../../idl/interfaces/files.idl), and [`watches.idl`](../../../../idl/interfaces/watches.idl).
pub mod stubs {
    rt::interface!(door, "../../../idl/interfaces/files.idl");
    rt::interface!(ipc, "../../../idl/interfaces/watches.idl");
}

/// Name under which all files are found: that of the server `mounts`.
pub const NAME: &str = "files";
