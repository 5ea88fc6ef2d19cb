//! Objects behind doors (row D14): [`export`] gives a Rust value a door, and whoever has an identifier can call it. When the last
//! identifier in the system goes, the value is dropped and its number is free.
//!
//! A program refers to doors by [`Door`]s, its own as well as others'. Each is an identifier of its own that the kernel counts.
//! **This is what makes the end free of races:** the number under which the kernel knows the door's *maker*, which does
//! not count, is used once, for the first `Door`, and then hidden. So when the kernel says that a door is unreferenced, nobody is
//! left who could hand out a new identifier, in this program neither, and the value can go. There is no count here.
//!
//! Calls run on the threads of a [pool], and begin in `tern_door_entry`.
//!
//! All numbers of the program's identifiers come from here ([`Room`]). Who calls or hands on somebody else's number by `sys` breaks
//! the above.
#![allow(unsafe_code)]

mod numbers;
mod pool;
mod porter;

pub use pool::{servers, set_limit};

use crate::sync::Mutex;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::mem::{ManuallyDrop, offset_of};
use core::ptr::with_exposed_provenance_mut;
use sys::abi::call::DOOR_RETURN;
use sys::{Error, Fpage, Kind, Result, Rights};

/// What can be behind a door. Calls come from several threads at once.
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

    /// What to send as a map item to hand the reference on. `rights`: [`Rights::R`] to call, with [`Rights::W`] also to hand on
    /// further. With [`Rights::GRANT`] it is moved: calls of this one fail afterwards, and it is there to be dropped.
    pub fn item(&self, rights: Rights) -> (Fpage, u64) {
        (Fpage::doors(self.place.number, 0, rights), 0)
    }

    /// Another reference to the same object. Of one that may not be handed on it is a copy that leads nowhere.
    pub fn duplicate(&self) -> Result<Door> {
        porter::copy(self.place.number).map(Room::into_door)
    }
}

/// A number of the program for an identifier from elsewhere.
#[derive(Debug)]
pub struct Room {
    number: u32,
}

impl Room {
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

/// What a door's datum points to.
struct Held {
    maker: Maker,
    object: Box<dyn Object>,
}

/// Puts an object behind a door; it lives until nobody refers to it. Fails if numbers, threads or kernel memory run out.
pub fn export(object: impl Object) -> Result<Door> {
    export_revocable(object).map(|(door, _)| door)
}

/// The same for an object that is to be taken back.
pub fn export_revocable(object: impl Object) -> Result<(Door, Revoker)> {
    pool::open()?;
    let room = Room::new()?;
    let number = room.number;
    let maker = Arc::new(Mutex::new(Some(room)));
    let held = Box::into_raw(Box::new(Held { maker: maker.clone(), object: Box::new(object) }));
    let datum = held.expose_provenance() as u64;
    let entry = tern_door_entry as *const () as u64;
    // SAFETY: the entry runs on servers of the pool, and the datum is what it wants: it belongs to the door from now on.
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
/// to, one for a reference to others' objects, and one in reserve.
pub fn numbers_in_use() -> u32 {
    numbers::in_use()
}

fn own_priority() -> u8 {
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
    // The entry of all doors. In: rax label and kind, rdx datum, words; on top of the stack the address of the server's
    // record, whose first word counts. Below is free. Out by *door return*: label and w0 ... w7, and zeroes for w8 ... w10.
    "tern_door_entry:",
    "mov rcx, [rsp]",
    "inc qword ptr [rcx]",
    "xor ebp, ebp",
    "and rsp, -16",
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
    "tern_door_idle:",
    "ud2",
    dispatch = sym dispatch,
);

unsafe extern "C" {
    fn tern_door_entry() -> !;
    static tern_door_idle: u8;
}

/// Whether a server with this instruction pointer waits for a call.
fn waits_for_call(ip: u64) -> bool {
    ip == sys::door_serve_ip() || ip == &raw const tern_door_idle as u64
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
        // SAFETY: the box is there as long as the door, and a door does not go while it is called.
        let object = unsafe { &(*held).object };
        (label, frame.words) = object.call(label, frame.words);
    }
    frame.rax = (label as u64) << 32 | DOOR_RETURN as u64;
}
