//! Tools of servers that look at each message themselves: several interfaces on one thread, answers that come later,
//! pages that are handed over.

use crate::{Failure, MALFORMED, Malformed, WORDS, Words};
use sys::{Fpage, Ipc, Kind, Message, Rights, Timeout, Uid};

/// An answer: to a request, or to a message that is none.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// Its label.
    pub label: u32,
    /// w0 … w7; with an item only the first six count.
    pub words: [u64; 8],
    /// Pages, ports or interrupts to hand over, and the hot spot.
    pub item: Option<(Fpage, u64)>,
}

impl Reply {
    /// Success, and nothing more.
    pub const DONE: Reply = Reply::label(u32::MAX);

    /// A label, and nothing more.
    pub const fn label(label: u32) -> Reply {
        Reply { label, words: [0; 8], item: None }
    }

    /// Answer of a pager to a fault: pages, and where they go.
    pub const fn item(pages: Fpage, hot_spot: u64) -> Reply {
        Reply { item: Some((pages, hot_spot)), ..Reply::label(0) }
    }

    /// The first words of a message.
    pub fn of(label: u32, words: &Words) -> Reply {
        let [w0, w1, w2, w3, w4, w5, w6, w7, ..] = *words;
        Reply { label, words: [w0, w1, w2, w3, w4, w5, w6, w7], item: None }
    }

    /// This reply with pages.
    pub fn with_pages(self, pages: Fpage) -> Reply {
        Reply { item: Some((pages, 0)), ..self }
    }
}

impl From<Failure> for Reply {
    fn from(failure: Failure) -> Reply {
        Reply::label(failure.label())
    }
}

/// The flexpage of a map item that leaves the pages with the sender, too.
pub const fn mapped(pages: Fpage) -> Fpage {
    pages.with_rights(Rights(pages.rights().0 & !Rights::GRANT.0))
}

/// The flexpage of a map item that takes the pages from the sender.
pub const fn granted(pages: Fpage) -> Fpage {
    pages.with_rights(Rights(pages.rights().0 | Rights::GRANT.0))
}

/// Treatment, by default, of a message that is no plain request: one with a map item is refused, everything
/// else is dropped.
pub fn decline(message: &Message) -> Option<Reply> {
    (message.kind == Kind::Request).then_some(Reply::label(MALFORMED))
}

/// The number of the interface that a request is for; 0 of one without a number.
pub const fn interface_of(message: &Message) -> u16 {
    message.label as u16
}

/// The words of a message.
pub fn words_of(message: &Message) -> Words {
    let mut words = [0; WORDS];
    words[..8].copy_from_slice(&message.words);
    words
}

/// Where the pages of a request of this kind have arrived. One without, or with a part of them only, is malformed.
pub fn pages_of(message: &Message, kind: Kind) -> Result<Fpage, Malformed> {
    let whole = message.kind == kind && !message.flags.item_short();
    message.item().filter(|_| whole).ok_or(Malformed)
}

/// Refuses a message that is more than a request of this kind in registers.
pub fn no_pages(message: &Message, kind: Kind) -> Result<(), Malformed> {
    let more = message.flags.has_item() || message.flags.has_block();
    if message.kind == kind && !more { Ok(()) } else { Err(Malformed) }
}

/// Answers messages, forever; returns only if `window`, where pages arrive, is no flexpage.
pub fn serve_general(window: Fpage, mut answer: impl FnMut(&Message) -> Option<Reply>) -> Failure {
    if window != Fpage::NIL && !window.is_valid() {
        return Failure::Kernel(sys::Error::BadArgument);
    }
    let (mut to, mut reply) = (Uid::NIL, Reply::DONE);
    loop {
        let Reply { label, words, item } = reply;
        let send_timeout = Timeout::ZERO;
        let ipc = Ipc { to, label, words, item, from: Uid::ANY, window, send_timeout, ..Ipc::NONE };
        to = Uid::NIL;
        // A client that went away, or cannot take the item, must not keep the server from the next one.
        if let Ok(Some(message)) = ipc.run()
            && let Some(answer) = answer(&message)
        {
            (to, reply) = (message.sender, answer);
        }
    }
}
