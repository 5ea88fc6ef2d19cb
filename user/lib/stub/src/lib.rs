//! Runtime that generated stubs share: a call, the loop of a server, and how values get into registers and out again.
//!
//! Nobody writes against this crate by hand; quill's Rust for `tern-ipc` and `tern-door` does. It begins with [`call`](mod@call), the
//! whole of a client; then [`serve`](mod@serve), the loop of a server and its dispatch; [`door`], the same for objects;
//! [`general`], for servers that look at each message themselves; then [`piece`], values in words, and
//! [`list`], the short lists and texts that registers can carry; [`long`], what is longer, and [`inbox`], where that arrives
//! when it is a reply; [`hold`], where a reply of an object may lie; [`stream`], what is read piece by piece; [`narrow`], objects with several interfaces; and [`watch`](mod@watch), who stands between a client
//! and an object.
//!
//! **Unsafe code** is in `call`, `serve` and `door`, because these are a few instructions in assembly, and in `long`, which takes
//! lists for the bytes that they are. Generated code has none.
//!
//! Lists and texts without a bound, and values that may be absent, lie on the heap where they are parts of something. Everything
//! else needs none.

#![no_std]
#![deny(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub use alloc::boxed::Box;
pub use alloc::string::String;
pub use alloc::sync::Arc as Shared;
pub use alloc::vec::Vec;

pub mod call;
pub mod door;
pub mod general;
pub mod hold;
pub mod inbox;
pub mod list;
pub mod long;
pub mod narrow;
pub mod piece;
pub mod serve;
pub mod stream;
pub mod watch;

pub use call::{Callee, Failure, Pages, Within, apart_from_items, came_short, failure, label_of, reply_of};
pub use door::Door;
pub use general::{
    Reply, decline, granted, interface_of, mapped, no_pages, pages_of, serve_general, words_of,
};
pub use hold::Hold;
pub use inbox::Inbox;
pub use list::{List, Text, get_list, get_text, put_list};
pub use long::{
    Flat, ITEM, NO_WINDOW, Once, Room, Space, Strings, Texts, address, dope, keep, string_len, tail, text,
    whole_words,
};
pub use narrow::{Anything, Interface, View};
pub use piece::{Blank, Malformed, Piece, WORDS, Words, view};
pub use serve::{
    Answer, Entry, Frame, Handler, Loop, Mismatch, NoMethod, NoRoom, Receive, entry, fail, serve, serve_in,
    store,
};
pub use stream::{Arrived, Gives, HANDED_MAX, Handing, In, Out, Wire, put_elements};
pub use sys::{Fpage, Kind, Message, Uid};
pub use watch::{Argument, Called, Watch};

/// The label of success, above the kind or operation of a reply.
pub const fn done(reply: u32) -> u64 {
    (u32::MAX as u64) << 32 | reply as u64
}

/// Labels of replies from here on are errors of stubs, and not of the server's program.
pub const LABEL_ERROR: u32 = 0xffff_0000;
/// The request was no valid message of its method.
pub const MALFORMED: u32 = LABEL_ERROR;
/// There is no such method.
pub const NO_METHOD: u32 = LABEL_ERROR + 1;
/// The request offers pages, and they could not be taken: the method has not begun, and can be called with a copy of them.
pub const DECLINED: u32 = LABEL_ERROR + 2;
