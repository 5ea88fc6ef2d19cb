//! The loop of a server: answer one client, wait for the next.

use api::Reply;
use sys::{Ipc, Message, Timeout, Uid};

/// Waits for a message from anybody.
pub fn wait() -> Message {
    loop {
        if let Ok(message) = sys::ipc_reply_wait(Uid::NIL, 0, [0; 8]) {
            return message;
        }
    }
}

/// Answers `to`, if that thread still waits, and waits for the next message from anybody.
pub fn reply_wait(to: Uid, reply: &Reply) -> Message {
    let outcome = match reply.item {
        None => sys::ipc_reply_wait(to, reply.label, reply.words),
        Some(item) => sys::reply_item_wait(to, reply.label, reply.words, item),
    };
    // A client that went away, or cannot take the item, must not keep the server from the next one.
    outcome.unwrap_or_else(|_| wait())
}

/// Answers `to` without waiting for anything; fails if that thread does not wait for the answer.
pub fn reply(to: Uid, reply: &Reply) -> sys::Result<()> {
    let &Reply { label, words, item } = reply;
    Ipc { to, label, words, item, send_timeout: Timeout::ZERO, ..Ipc::NONE }.run().map(drop)
}

/// Serves forever: `handle` returns the answer to a message, or `None` if there is none (yet).
pub fn serve(mut handle: impl FnMut(&Message) -> Option<Reply>) -> ! {
    let mut message = wait();
    loop {
        message = match handle(&message) {
            Some(reply) => reply_wait(message.sender, &reply),
            None => wait(),
        };
    }
}
