//! Virtio devices. What they understand is told in the crate `virtio-drivers`; here is what that wants of Tern: [`function`], a device that was
//! claimed at the bus server; [`memory`], memory that the device may use; [`message`], interrupts as messages; [`transport`], the way of messages between both; and
//! [`disk`] and [`net`], whole devices behind safe interfaces.
//!
//! **Unsafe code** is in `memory`, which answers for addresses, in `message`, which writes two registers, and in `disk` and `net`, where the device has buffers while a request is under way.

#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

pub mod disk;
pub mod function;
pub mod memory;
pub mod message;
pub mod net;
pub mod transport;

pub use disk::Disk;
pub use net::Card;
