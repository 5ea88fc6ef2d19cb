//! HTTP/1.1 without sockets and without files: bytes in, bytes out, so all of it runs on the host.
//!
//! In reading order: [`request`], from bytes to what a client wants; [`path`], which file that is, and why it is never one outside; [`answer`], from a
//! request to an answer, over anything that has files; [`page`], pages that a server makes itself; [`part`], names of files that are not whole yet. For clients: [`url`] and [`reply`].
//!
//! Syntax of heads is the library `httparse`'s business. RFC numbers in comments are 9110 (meaning), 9112 (form) and 3986 (addresses).

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod answer;
pub mod page;
pub mod part;
pub mod path;
pub mod reply;
pub mod request;
mod status;
pub mod url;

pub use status::Status;

#[cfg(test)]
mod tests;

/// Bytes of a head, at most: a first line with its fields.
pub const HEAD_MAX: usize = 8 << 10;

/// Fields of a head, at most.
pub const FIELDS_MAX: usize = 64;
