//! The runtime's condition variables, locks for readers, and channels (`user/lib/rt/src/sync`), and the rings of packets and of bytes (`user/lib/ring`), as they are, over a simulated system: loom
//! runs each test through all interleavings of its threads, up to a number of preemptions.
//!
//! [`system`] is what the runtime's own `system` is over the kernel: a mutex, and a sleep that an alert ends.

#![cfg(test)]

extern crate alloc;

mod system;

#[allow(dead_code)]
#[path = "../../../user/lib/rt/src/sync/channel.rs"]
mod channel;
#[allow(dead_code)]
#[path = "../../../user/lib/rt/src/sync/condvar.rs"]
mod condvar;
#[path = "../../../user/lib/rt/src/sync/line.rs"]
mod line;
#[allow(dead_code)]
#[path = "../../../user/lib/ring/src/ring.rs"]
mod ring;
#[allow(dead_code)]
#[path = "../../../user/lib/rt/src/sync/rwlock.rs"]
mod rwlock;
#[allow(dead_code)]
#[path = "../../../user/lib/ring/src/stream.rs"]
mod stream;
mod word;

mod rings;
mod streams;
mod tests;
