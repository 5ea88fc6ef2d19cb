//! The seven methods through doors: generated clients, which are those of the other rows with a door for a server, and an object;
//! and both once more in C (`stubs.c`).

use super::body::{self, Number, made, make_all, use_all, used_at, used_bytes};
use super::{
    Found, Nine, Nothing, STACK_BYTES, STACKS, Sixteen, large, larger, length, record, report, small, str,
    tiny,
};
use crate::door::Doors;
use crate::{Chief, Entry, Failure, QUOTA, Result, bench_chief};
use core::ptr::{NonNull, addr_of, addr_of_mut};
use core::sync::atomic::AtomicU64;
use stub::Door;
use stub::door::{Behind, Block, entry};
use sys::{Dope, Fpage, Ipc, Rights, TaskId, Timeout, Uid};

/// The stubs.
#[allow(missing_docs)]
mod stubs {
    include!(concat!(env!("OUT_DIR"), "/doors/bench.rs"));
}

use stubs::Bench::{Calls, Record};

unsafe extern "C" {
    fn c_door_client_tiny();
    fn c_door_client_small();
    fn c_door_client_large();
    fn c_door_client_larger();
    fn c_door_client_record();
    fn c_door_client_str();
    fn c_door_client_length();
    fn c_door_object(entry: &mut u64, datum: &mut u64) -> u32;
}

/// The number of the identifier: of the server's door, of the chief, and of clients.
const NUMBER: u32 = 8;

/// Buffers of a server for strings.
#[repr(C, align(4096))]
struct Buffers([[u64; BUFFER_BYTES / 8]; 2]);

const BUFFER_BYTES: usize = 65536;

static mut BUFFERS: Buffers = Buffers([[0; BUFFER_BYTES / 8]; 2]);
static mut BLOCK: Block = Block::new();
static mut BEHIND: Option<Behind<Calls::Object<Nothing>>> = None;
static STACK: AtomicU64 = AtomicU64::new(0);

impl Calls::Server for Nothing {
    body::methods!(&self);
}

/// The door never ends before its task.
unsafe extern "sysv64" fn end(_: u64) {}

/// Serves an object.
unsafe extern "C" fn server() {
    // SAFETY: one server at a time; `end` takes anything.
    let (behind, block) = unsafe {
        let behind = (*addr_of_mut!(BEHIND)).insert(Behind::new(Calls::Object(Nothing), end));
        (core::ptr::from_ref(behind), &mut *addr_of_mut!(BLOCK))
    };
    for number in 0..2 {
        // SAFETY: they are there for as long as the task.
        unsafe {
            let buffer = NonNull::from(&mut (*addr_of_mut!(BUFFERS)).0[number]).cast();
            block.lend(number, buffer, BUFFER_BYTES as u32);
        }
    }
    let room = sys::thread_set_block(Uid::NIL, block.address(), Dope(Block::dope(2, 1)), Timeout::NEVER);
    if room.is_err() {
        report(1);
    }
    // SAFETY: the datum is what the entry wants.
    unsafe { serve(entry::<Calls::Object<Nothing>>(), behind.expose_provenance() as u64) }
}

/// Serves an object in C.
unsafe extern "C" fn c_server() {
    let (mut entry, mut datum) = (0, 0);
    // SAFETY: one server at a time.
    if unsafe { c_door_object(&mut entry, &mut datum) } != 0 {
        report(1);
    }
    // SAFETY: they are what C says.
    unsafe { serve(entry, datum) }
}

/// Makes the door, hands it to the chief, serves.
///
/// # Safety
///
/// The datum is what the entry wants.
unsafe fn serve(entry: u64, datum: u64) -> ! {
    let chief = Uid(
        // SAFETY: it is set before any child starts.
        unsafe { bench_chief },
    );
    let item = (Fpage::doors(NUMBER, 0, Rights::RW), 0);
    // SAFETY: no other door is this task's; the rest is the caller's promise.
    let begun = unsafe { sys::door_create(NUMBER, entry, datum) }
        .and_then(|()| sys::send_item(chief, 0, [0; 8], item, Timeout::NEVER));
    if begun.is_ok() {
        // SAFETY: nothing belongs to the thread but the block.
        unsafe { sys::door_serve(&STACK) };
    }
    report(1)
}

/// For clients in C.
#[unsafe(no_mangle)]
extern "C" fn bench_find_door() -> u32 {
    Door::find().0
}

/// The door that the chief hands out.
impl Found for Door {
    fn find() -> Door {
        // SAFETY: it is set before any child starts.
        let from = Uid(unsafe { bench_chief });
        match (Ipc { from, window: Fpage::doors(NUMBER, 0, Rights::RW), ..Ipc::NONE }).run() {
            Ok(_) => Door(NUMBER),
            Err(_) => report(2),
        }
    }
}

/// The client of the row `door.stub.small`.
pub(crate) const STUB_SMALL: Entry = small::<Door, 64>;

impl Chief {
    /// The rows `idl.door`.
    pub(super) fn all_by_door(&self) -> Result<()> {
        self.by_door(&[
            tiny::<Door, 120>,
            small::<Door, 121>,
            large::<Door, 122>,
            larger::<Door, 123>,
            record::<Door, 124>,
            str::<Door, 125>,
            length::<Door, 126>,
        ])?;
        self.serve_by_door(
            c_server,
            &[
                c_door_client_tiny,
                c_door_client_small,
                c_door_client_large,
                c_door_client_larger,
                c_door_client_record,
                c_door_client_str,
                c_door_client_length,
            ],
        )
    }

    /// Clients that call the object, one after the other.
    pub(crate) fn by_door(&self, clients: &[Entry]) -> Result<()> {
        self.serve_by_door(server, clients)
    }

    fn serve_by_door(&self, server: Entry, clients: &[Entry]) -> Result<()> {
        let near = sys::task_create(QUOTA, self.priority)?;
        let far = sys::task_create(QUOTA, self.priority)?;
        let doors = Doors::new(self);
        let server = self.start_on(far, server, top(1))?;
        doors.take(server, NUMBER)?;
        self.settle(server)?;
        for &client in clients {
            self.client_by_door(near, client, &doors)?;
        }
        sys::task_destroy(near)?;
        sys::task_destroy(far)?;
        Ok(())
    }

    fn client_by_door(&self, near: TaskId, client: Entry, doors: &Doors) -> Result<()> {
        let client = self.start_on(near, client, top(0))?;
        doors.give(client, NUMBER)?;
        let report = self.serve()?;
        sys::thread_destroy(client)?;
        match report.words[0] {
            0 => Ok(()),
            status => Err(Failure::Report(status, report.words[1])),
        }
    }
}

/// A function finds the stack as after a call: eight bytes from a multiple of sixteen.
fn top(stack: u64) -> u64 {
    addr_of!(STACKS) as u64 + (stack + 1) * STACK_BYTES as u64 - 8
}
