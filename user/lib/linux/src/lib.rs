//! Linux's system calls without a machine: what processes are, and what their calls do.
//!
//! In reading order: [`errno`], how calls fail; [`frames`], pages of memory, each used by as many as have it; [`memory`], the address space of a process;
//! [`executable`], how programs lie in files; [`machine`], what all of it needs from below; [`special`], [`tree`] and [`namespace`], `/dev`, `/proc` and `/sys` beside the
//! files of a file system; [`store`], frames and files, and the pages of files that are in frames; [`node`], sockets with names in a file system;
//! [`budget`], memory that all processes share, [`ipc`], what outlasts them, and `places`, which lists give back; [`pipe`], [`socket`], [`network`], [`inet`] and [`netlink`], [`terminal`] and [`terminals`]; [`epoll`], [`timer`], [`inotify`] and [`locks`]; [`open`], what
//! descriptors lead to; [`process`], [`capabilities`] and [`signal`]; [`table`], processes and threads by their numbers; [`kept`], tables of calls that few make; [`system`], how calls are made, wait, and are made again; [`ending`], how processes end; [`deliver`], how signals arrive, and `again`, which calls they interrupt for good; [`filter`], which calls somebody has given up;
//! [`sessions`], who has a terminal; [`calls`], the calls themselves; [`decode`], calls as text, and [`trace`], which prints them;
//! [`marks`], control sequences that no program prints; [`start`], how the first process begins; [`command_line`], what the program that runs a sandbox is asked for.
//!
//! The machine is behind traits, so all of it runs on the host.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod again;
pub mod budget;
pub mod calls;
pub mod capabilities;
pub mod command_line;
pub mod decode;
pub mod deliver;
pub mod ending;
pub mod epoll;
pub mod errno;
pub mod executable;
pub mod faults;
pub mod filter;
pub mod frames;
pub mod inet;
pub mod inotify;
pub mod ipc;
pub mod kept;
pub mod locks;
pub mod machine;
pub mod marks;
pub mod memory;
pub mod namespace;
pub mod netlink;
pub mod network;
pub mod node;
pub mod open;
pub mod pipe;
mod places;
pub mod process;
pub mod sessions;
pub mod signal;
pub mod socket;
pub mod special;
pub mod start;
pub mod store;
pub mod system;
pub mod table;
pub mod terminal;
pub mod terminals;
#[cfg(test)]
mod tests;
pub mod timer;
pub mod trace;
pub mod tree;
#[cfg(test)]
mod world;
