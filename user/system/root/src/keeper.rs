//! The keeper: a thread that pages `mm` and gives it memory. It stands between σ0 and `mm` as `mm` stands between
//! it and all others, with the same code.
//!
//! It is a thread of its own because the main thread calls `mm`, which may fault or need memory while it answers.

use rt::api::{Failure, Reply, Status, console, interface_of};
use rt::frames::{Pool, Upstream};
use rt::pager::{Archive, Manager};
use rt::sys::{Kind, Message, Uid};

/// Its priority: above all whom it serves.
const PRIORITY: u8 = 61;

/// Log2 of the memory that it asks for at a time, for the few pages of `mm` itself.
const CHUNK_LOG2: u32 = 16;

/// Starts it; `main` is the thread that may register tasks.
pub fn start(main: Uid, archive: Archive) -> rt::api::Result<Uid> {
    let body = move || -> () {
        let pool = Pool::new(Upstream(rt::home()), CHUNK_LOG2);
        let mut manager = Manager::new(main, true, archive, pool);
        rt::server::serve(|message| Some(answer(&mut manager, message)))
    };
    let handle = rt::thread::spawn(PRIORITY, body).map_err(Failure::Kernel)?;
    let uid = handle.uid();
    handle.detach();
    Ok(uid)
}

fn answer(manager: &mut Manager<Upstream>, message: &Message) -> Reply {
    if message.kind != Kind::Request || interface_of(message) != console::NUMBER {
        return manager.answer(message);
    }
    // The memory manager cannot use the console server, whose pager it is.
    match console::Request::read(message) {
        Ok(console::Request::Write { text, .. }) => match console::write(rt::home(), &text) {
            Ok(()) => console::Answer::Write.into(),
            Err(_) => Status::Busy.into(),
        },
        _ => Status::Denied.into(),
    }
}
