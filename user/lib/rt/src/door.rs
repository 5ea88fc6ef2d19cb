//! Objects behind doors (row D14): [`serve`] gives a Rust value with a generated interface a door, [`export`] one that looks at words
//! itself, and whoever has an identifier can call it. When the last identifier in the system goes, the value is dropped and its
//! number is free.
//!
//! A program refers to doors by [`Door`]s, its own as well as others'. Each is an identifier of its own that the kernel counts.
//! **This is what makes the end free of races:** the number under which the kernel knows the door's *maker*, which does
//! not count, is used once, for the first `Door`, and then hidden. So when the kernel says that a door is unreferenced, nobody is
//! left who could hand out a new identifier, in this program neither, and the value can go. There is no count here.
//!
//! Calls run on the threads of a [pool], and begin in an interface's [`entry`](api::stub::door::entry), or in `tern_door_entry`.
//!
//! All numbers of the program's identifiers come from here ([`Room`]). Who calls or hands on somebody else's number by `sys` breaks
//! the above.
#![allow(unsafe_code)]

mod memory;
mod numbers;
mod pool;
mod porter;
mod reference;

pub use memory::{memory, outlive, stay, withdraw, withdraw_arrived};
pub use pool::{servers, set_limit};
pub use reference::{Arrivals, NotNarrowed, Reference, Taken, give, give_many, take, take_from};

use crate::sync::Mutex;
use alloc::boxed::Box;
use alloc::sync::Arc;
use api::stub::door::{Behind, Object as Served, entry};
use api::stub::{self, Callee, Failure, Pages, Words};
use core::mem::{ManuallyDrop, offset_of};
use core::ptr::with_exposed_provenance_mut;
use sys::abi::call::{DOOR_RETURN, NO_ITEM};
use sys::{Error, Fpage, Kind, Result, Rights};

/// Object behind a door. Calls come from several threads at once.
pub trait Object: Send + Sync + 'static {
    /// A call, with what the caller sent; what is returned goes to the caller. When the object is dropped nobody can call
    /// it any more.
    fn call(&self, label: u32, words: [u64; 8]) -> (u32, [u64; 8]);
}

/// A reference to an object: an identifier that this program has. Who drops it gives the identifier back.
#[derive(Debug)]
pub struct Door {
    place: Room,
}

impl Door {
    /// Calls the object. For the errors see [`sys::door_call`].
    #[inline]
    pub fn call(&self, label: u32, words: [u64; 8]) -> Result<(u32, [u64; 8])> {
        sys::door_call(self.place.number, label, words)
    }

    fn callee(&self) -> stub::Door {
        stub::Door(self.place.number)
    }

    /// Map item that hands the reference on. `rights`: [`Rights::R`] to call, with [`Rights::W`] also to hand on
    /// further. With [`Rights::GRANT`] it is moved: calls of this one fail afterwards, and it is there to be dropped.
    pub fn item(&self, rights: Rights) -> (Fpage, u64) {
        (Fpage::doors(self.place.number, 0, rights), 0)
    }

    /// Another reference to the same object. Of one that may not be handed on it is a copy that leads nowhere.
    pub fn duplicate(&self) -> Result<Door> {
        porter::copy(self.place.number).map(Room::into_door)
    }
}

/// The server of a generated client.
impl Callee for &Door {
    const REPLY: Kind = <stub::Door as Callee>::REPLY;
    #[inline(always)]
    fn call<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words) {
        self.callee().call::<IN, TAKES>(label, words)
    }
    #[inline(always)]
    fn call_long<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words) {
        self.callee().call_long::<IN, TAKES>(label, words)
    }
    fn call_pages(self, label: u32, words: Words, pages: Pages) -> (u64, Words) {
        self.callee().call_pages(label, words, pages)
    }
    fn send(self, label: u32, words: Words) -> core::result::Result<(), Failure> {
        self.callee().send(label, words)
    }
    fn send_long(self, label: u32, words: Words) -> core::result::Result<(), Failure> {
        self.callee().send_long(label, words)
    }
    fn send_pages(self, label: u32, words: Words, pages: Pages) -> core::result::Result<(), Failure> {
        self.callee().send_pages(label, words, pages)
    }
}

/// Number that is none of an identifier.
const NOBODY: u32 = stub::Door::NOBODY.0;

/// A number of the program for an identifier from elsewhere.
#[derive(Debug)]
pub struct Room {
    number: u32,
}

impl Room {
    /// No number.
    const NONE: Room = Room { number: NOBODY };

    fn is_none(&self) -> bool {
        self.number == NOBODY
    }

    /// A free number. Fails with [`Error::Limit`] if there is none.
    pub fn new() -> Result<Room> {
        numbers::take().map(|number| Room { number }).ok_or(Error::Limit)
    }

    /// The window to receive the identifier in.
    pub fn window(&self) -> Fpage {
        Fpage::doors(self.number, 0, Rights::RW)
    }

    /// The identifier that arrived. If none did, calls of it say so.
    pub fn into_door(self) -> Door {
        Door { place: self }
    }

    /// Somebody else has the number from now on.
    fn leave(self) {
        let _ = ManuallyDrop::new(self);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.is_none() {
            return;
        }
        // It cannot fail: the number is one.
        let _ = sys::door_release(self.number);
        numbers::free(self.number);
    }
}

/// The maker's place, while the door is there.
type Maker = Arc<Mutex<Option<Room>>>;

/// The right to take an object from everybody.
#[derive(Clone)]
pub struct Revoker {
    maker: Maker,
}

impl Revoker {
    /// From now on nobody has an identifier, and [`Door`]s lead nowhere. Calls that run go on. After the last of them the
    /// object is dropped.
    pub fn revoke(&self) {
        if let Some(room) = &*self.maker.lock() {
            // It cannot fail: the number is one.
            let _ = sys::door_revoke(room.number);
        }
    }
}

/// Memory behind the datum of an object that looks at words itself.
struct Held {
    maker: Maker,
    object: Box<dyn Object>,
}

/// Memory behind the datum of an object with an interface.
#[repr(C)]
struct HeldServed<O: Served> {
    behind: Behind<O>,
    maker: Maker,
}

/// Puts an object behind a door; it lives until nobody refers to it. Fails if numbers, threads or kernel memory run out.
pub fn export(object: impl Object) -> Result<Door> {
    export_revocable(object).map(|(door, _)| door)
}

/// Exports an object that is to be taken back; otherwise like [`export`].
pub fn export_revocable(object: impl Object) -> Result<(Door, Revoker)> {
    pool::open(None, 0)?;
    let hold = |maker| Held { maker, object: Box::new(object) };
    // SAFETY: `dispatch` takes a `Held`, once for its end.
    unsafe { make(tern_door_entry as *const () as u64, hold) }
}

/// Puts an object with a generated interface behind a door: that of `Calls::Object(tally)` for a `tally` that is a `Calls::Server`.
/// It lives until nobody refers to it. Fails if numbers, threads or kernel memory run out; and with [`Error::NoWindow`] if requests
/// need more room than this program's servers have: see [`make_room`].
pub fn serve<O: Served>(object: O) -> Result<Door> {
    serve_revocable(object).map(|(door, _)| door)
}

/// Serves an object that is to be taken back; otherwise like [`serve`].
pub fn serve_revocable<O: Served>(object: O) -> Result<(Door, Revoker)> {
    pool::open(O::ROOM, O::WINDOWS)?;
    // SAFETY: it is called once, when no call runs any more, with the address of a `HeldServed`, which begins with what is behind
    // the door.
    let hold = |maker| HeldServed { behind: unsafe { Behind::new(object, end::<O>) }, maker };
    // SAFETY: the entry takes a `Behind`, with which a `HeldServed` begins.
    unsafe { make(entry::<O>(), hold) }
}

/// Requests for such objects arrive: servers that begin from now on have memory for them. A program that has several interfaces
/// whose requests have a part in memory says so of all but the first before it has an object behind a door. Fails with
/// [`Error::NoWindow`] if there are servers that have less.
pub fn make_room<O: Served>() -> Result<()> {
    pool::make_room(O::ROOM, O::WINDOWS)
}

/// Nobody can call the object any more.
unsafe extern "sysv64" fn end<O: Served>(datum: u64) {
    // SAFETY: `serve_revocable` gave the box to the door. The kernel says so once, and no call uses it.
    let HeldServed { behind, maker } =
        *unsafe { Box::from_raw(with_exposed_provenance_mut::<HeldServed<O>>(datum as usize)) };
    // The door goes first, then its number is free.
    *maker.lock() = None;
    drop(behind);
}

/// Makes a door whose datum points to what `hold` makes, and which belongs to the door from now on.
///
/// # Safety
///
/// The code at `entry` takes this datum on servers of the pool, and drops it when the kernel says that the door is unreferenced.
unsafe fn make<T>(entry: u64, hold: impl FnOnce(Maker) -> T) -> Result<(Door, Revoker)> {
    let room = Room::new()?;
    let number = room.number;
    let maker = Arc::new(Mutex::new(Some(room)));
    let held = Box::into_raw(Box::new(hold(maker.clone())));
    let datum = held.expose_provenance() as u64;
    // SAFETY: the caller's promise.
    let made = unsafe { sys::door_create(number, entry, datum) };
    match made.and_then(|()| porter::copy(number)) {
        Ok(room) => Ok((room.into_door(), Revoker { maker })),
        Err(error) => {
            *maker.lock() = None;
            // SAFETY: nobody ever had an identifier, so nobody has said that it is unreferenced.
            drop(unsafe { Box::from_raw(held) });
            Err(error)
        }
    }
}

/// How many numbers the program uses: two for each object that it has a reference to, one for an object that only others refer
/// to, one for a reference to others' objects, one in reserve, and one for each server of the pool, and if it has memory for requests as many more as these may hand over.
pub fn numbers_in_use() -> u32 {
    numbers::in_use()
}

pub(crate) fn own_priority() -> u8 {
    sys::thread_info(sys::myself()).map_or(1, |info| info.priority)
}

/// A call in memory, as the entry puts it there.
#[repr(C)]
struct Frame {
    words: [u64; 8],
    /// Label and kind; then label and operation.
    rax: u64,
    datum: u64,
}

const _: () = assert!(offset_of!(Frame, rax) == 64 && size_of::<Frame>() == 80);

core::arch::global_asm!(
    // The entry of all doors. In: rax label and kind, rdx datum, words; rsp a multiple of 16, and free below. Out by *door
    // return*: label and w0 ... w7, and zeroes for w8 ... w10.
    ".pushsection .text.tern_door, \"ax\", @progbits",
    "tern_door_entry:",
    "xor ebp, ebp",
    "push rdx",
    "push rax",
    "push r14",
    "push r13",
    "push r12",
    "push r10",
    "push r9",
    "push r8",
    "push rsi",
    "push rdi",
    "mov rdi, rsp",
    "call {dispatch}",
    "pop rdi",
    "pop rsi",
    "pop r8",
    "pop r9",
    "pop r10",
    "pop r12",
    "pop r13",
    "pop r14",
    "pop rax",
    "xor ebx, ebx",
    "xor ebp, ebp",
    "xor r15d, r15d",
    "syscall",
    // A server's return does not come back. It waits here for the next call.
    "ud2",
    ".popsection",
    dispatch = sym dispatch,
);

unsafe extern "C" {
    fn tern_door_entry() -> !;
}

/// Whether a server with this instruction pointer waits for a call.
fn waits_for_call(ip: u64) -> bool {
    ip == sys::door_serve_ip() || stub::door::waits_for_call(ip)
}

extern "C" fn dispatch(frame: &mut Frame) {
    let held = with_exposed_provenance_mut::<Held>(frame.datum as usize);
    let mut label = (frame.rax >> 32) as u32;
    if Kind::from_eax(frame.rax as u32) == Some(Kind::Unreferenced) {
        // SAFETY: `export_revocable` gave the box to the door. The kernel says so once, since nobody can refer to the door
        // afterwards; and no call uses it.
        let Held { maker, object } = *unsafe { Box::from_raw(held) };
        // The door goes first, then its number is free.
        *maker.lock() = None;
        drop(object);
    } else {
        if frame.rax as u32 & NO_ITEM == 0 {
            // It has no words for an identifier.
            stub::door::let_go(frame.words[6]);
            (frame.words[6], frame.words[7]) = (0, 0);
        }
        // SAFETY: the box is there as long as the door, and a door does not go while it is called.
        let object = unsafe { &(*held).object };
        (label, frame.words) = object.call(label, frame.words);
    }
    frame.rax = (label as u64) << 32 | DOOR_RETURN as u64;
}
