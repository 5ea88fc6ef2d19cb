//! Wards: small tasks of a program's own clan, whose every message to the outside their chief hears (row C9).
//!
//! A ward runs a function of its chief's program, in a task of its own. It sees the program's text and constants, read-only, and some
//! pages of its own at [`OWN`]: arguments, then its stack. It has no variables of the program, no heap and no runtime; it can
//! compute and do ipc. The thread that made the [`Clan`] is its chief: see [`Clan::hear`]. Another thread pages it.
//!
//! **Unsafe code** is where a ward starts.

#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use rt::api::Reply;
use rt::pager::{Fault, REFUSAL};
use rt::sync::Mutex;
use sys::abi::PAGE_SIZE;
use sys::{Fpage, Kind, Message, Result, Rights, TaskId, Uid};

/// Where each ward has its own pages.
pub const OWN: u64 = 0x60_0000_0000;

/// How many: one for the arguments, the others for the stack.
const OWN_PAGES: usize = 5;

/// Kernel memory of a ward, in frames.
const QUOTA: u64 = 24;

/// Orders to a ward.
pub type Arguments = [u64; 4];

/// A ward's program.
pub type Code = extern "C" fn(&mut Own) -> !;

/// Memory of a ward at [`OWN`].
#[repr(C)]
pub struct Own {
    /// Its orders.
    pub arguments: Arguments,
    /// Its variables, all zero.
    pub words: [u64; 508],
}

const _: () = assert!(size_of::<Own>() as u64 == PAGE_SIZE);

#[repr(C, align(4096))]
struct Page([u64; PAGE_SIZE as usize / 8]);

/// The wards' own pages, in the chief.
type Pages = Arc<Mutex<Vec<(TaskId, u64)>>>;

/// A clan whose chief is the thread that made it.
pub struct Clan {
    pager: Uid,
    priority: u8,
    pages: Pages,
}

/// A task of a clan, with one thread.
#[derive(Clone, Copy, Debug)]
pub struct Ward {
    /// The task.
    pub task: TaskId,
    /// Its thread.
    pub thread: Uid,
}

impl Clan {
    /// An empty clan.
    pub fn new() -> Result<Clan> {
        let priority = sys::thread_info(sys::myself())?.priority;
        let pages = Pages::default();
        let shared = pages.clone();
        let pager = rt::thread::spawn(priority, move || {
            rt::server::serve(|message| Some(answer(&shared.lock(), message)))
        })?;
        let uid = pager.uid();
        pager.detach();
        Ok(Clan { pager: uid, priority, pages })
    }

    /// Starts a ward.
    pub fn ward(&self, code: Code, arguments: Arguments) -> Result<Ward> {
        let mut own = Box::new([const { Page([0; PAGE_SIZE as usize / 8]) }; OWN_PAGES]);
        own[0].0[..arguments.len()].copy_from_slice(&arguments);
        let task = sys::task_create(QUOTA, self.priority)?;
        let thread = sys::thread_create(task, self.priority, self.pager, self.pager)?;
        // The ward may use them as long as it exists, and that is until the program ends.
        self.pages.lock().push((task, Box::leak(own).as_ptr() as u64));
        let stack = OWN + OWN_PAGES as u64 * PAGE_SIZE - 8;
        #[allow(unsafe_code)]
        // SAFETY: the code runs in another address space, where the stack is its own.
        unsafe {
            sys::thread_start(thread, code as usize as u64, stack, OWN)?;
        }
        Ok(Ward { task, thread })
    }

    /// Answers `to` (nil: nobody), shown as somebody whom it called, or nil for the chief itself. Then waits for the next message, and
    /// says for whom it was meant: nil for the chief itself.
    pub fn hear(&self, to: Uid, shown: Uid, label: u32, words: [u64; 5]) -> Result<(Message, Uid)> {
        sys::supervise(to, shown, label, words)
    }
}

/// The pager's answer. Wards that do something wild stop there and then.
fn answer(pages: &[(TaskId, u64)], message: &Message) -> Reply {
    if message.kind != Kind::Fault {
        let [vector, _, ip, ..] = message.words;
        rt::println!("clan: {:?} stopped at {ip:#x} by exception {vector}", message.sender);
        return REFUSAL;
    }
    let Some(fault) = Fault::decode(message) else { return REFUSAL };
    let page = fault.address & !(PAGE_SIZE - 1);
    let own = pages.iter().find(|(task, _)| *task == fault.task);
    match own {
        Some((_, from)) if (OWN..OWN + OWN_PAGES as u64 * PAGE_SIZE).contains(&page) => {
            Reply::item(Fpage::memory(from + (page - OWN), 12, Rights::RW), page)
        }
        Some(_) if rt::layout::constants().contains(&page) && !fault.access.has(Rights::W) => {
            touch(page);
            Reply::item(Fpage::memory(page, 12, Rights::RX), page)
        }
        _ => REFUSAL,
    }
}

/// Makes sure that the chief itself has a page of them.
fn touch(page: u64) {
    #[allow(unsafe_code)]
    // SAFETY: constants can be read.
    unsafe {
        (page as *const u8).read_volatile();
    }
}

/// Ends the calling ward's work: tells its chief four words, and waits for nothing any more.
pub fn report(chief: Uid, words: [u64; 4]) -> ! {
    let [a, b, c, d] = words;
    loop {
        let _ = sys::ipc_call(chief, REPORT, [a, b, c, d, 0, 0, 0, 0]);
    }
}

/// Label of that.
pub const REPORT: u32 = 0x7265_706f;
