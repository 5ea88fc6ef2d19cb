//! Where the pagers under test have their memory from: the suite stands where σ0 stands for the system.
//!
//! A thread of the suite serves blocks that it has from `root`, and maps them on. So the suite can take everything
//! back at once, and can look into the frames and see who has what.

use super::{Failure, Outcome, agent, pager};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use rt::api::memory::{self, Answer, Request};
use rt::api::{Reply, Status};
use rt::frames::{Block, Lent, Supply, Upstream};
use rt::sync::Mutex;
use sys::abi::PAGE_SIZE;
use sys::{Message, TaskId, Uid};

static SERVER: AtomicU64 = AtomicU64::new(0);
static LENT: Mutex<Vec<Lent>> = Mutex::new(Vec::new());
static FREE: Mutex<Vec<Block>> = Mutex::new(Vec::new());

/// The thread that serves blocks.
pub fn uid() -> Outcome<Uid> {
    if SERVER.load(Ordering::Relaxed) == 0 {
        let thread = agent::spawn(TaskId::NIL, pager::priority(), serve, 0)?;
        SERVER.store(thread.uid.0, Ordering::Relaxed);
        core::mem::forget(thread);
    }
    Ok(Uid(SERVER.load(Ordering::Relaxed)))
}

extern "C" fn serve(_: u64, _: u64) -> ! {
    rt::server::serve(|message| Some(answer(message).unwrap_or_else(Reply::from)))
}

fn answer(message: &Message) -> Result<Reply, Status> {
    let Request::Pages { log2 } = Request::read(message)? else { return Err(Status::BadRequest) };
    let log2 = memory::block_log2(log2)?;
    let mut free = FREE.lock();
    let block = match free.iter().position(|block| block.log2() == log2) {
        Some(at) => free.swap_remove(at),
        None => Upstream(rt::home()).block(log2).ok_or(Status::Exhausted)?,
    };
    let lent = block.lend();
    let answer = Answer::Pages(lent.physical(), lent.fpage());
    LENT.lock().push(lent);
    Ok(answer.into())
}

/// Takes all blocks back, from everybody who has a part of them.
pub fn take_all_back() {
    FREE.lock().extend(LENT.lock().drain(..).map(Lent::reclaim));
}

/// Physical addresses of all frames that begin with this word.
pub fn frames_with(word: u64) -> Outcome<Vec<u64>> {
    let mut found = Vec::new();
    for lent in LENT.lock().iter() {
        let fpage = lent.fpage();
        for offset in (0..1 << fpage.log2()).step_by(PAGE_SIZE as usize) {
            // SAFETY: the block is mapped to this program; others may write to it meanwhile.
            let first = unsafe { ((fpage.base() + offset) as *const u64).read_volatile() };
            if first == word {
                found.push(lent.physical() + offset);
            }
        }
    }
    Ok(found)
}

/// The physical address of the one frame that begins with this word.
#[track_caller]
pub fn frame_with(word: u64) -> Outcome<u64> {
    match frames_with(word)?[..] {
        [only] => Ok(only),
        ref many => Err(Failure::new(format_args!("{} frames begin with {word:#x}", many.len()))),
    }
}
