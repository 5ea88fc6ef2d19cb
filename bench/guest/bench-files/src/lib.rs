//! The library [`files`](../../../../user/lib/files) once more, with stubs of which nothing is optimised (`tern-door-plain`), so that the row
//! `file.read.4096.naive` tells what the optimisations are worth. All but the stubs is the library's own source.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[path = "../../../../user/lib/files/src/client.rs"]
mod client;
#[path = "../../../../user/lib/files/src/desk.rs"]
mod desk;
#[path = "../../../../user/lib/files/src/server.rs"]
mod server;
#[path = "../../../../user/lib/files/src/watch.rs"]
mod watch;
#[path = "../../../../user/lib/files/src/wire.rs"]
pub mod wire;

pub use client::{Directory, File, Inbox, Mapped, Mounted, Pages, reading};
pub use desk::hand_out;
pub use server::{OBJECTS_MAX, OwnPage, serve, serve_at_most};
pub use watch::Watch;

/// Stubs of the interfaces, those of objects without optimisations.
pub mod stubs {
    rt::interface!(door_plain, "../../../idl/interfaces/files.idl");
    rt::interface!(ipc, "../../../idl/interfaces/watches.idl");
}

/// Name of a file system in memory that has such stubs.
pub const RAM: &str = "plain-ram";

/// Name under which its files are found: that of the server that has all file systems as one.
pub const NAME: &str = "plain-files";
