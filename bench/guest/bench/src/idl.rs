//! Cost of generated stubs, beside stubs that were written by hand (`floor.s`).
//!
//! Each method is called in three ways: generated client and server together; the generated client with a server that
//! answers in three instructions; and a client of four instructions with the generated server. The stubs of `floor.s`, and
//! generated stubs in C (`stubs.c`), are called in these three ways, too; and all once more through doors (`doors.rs`). What the
//! methods do is in `body.rs`, and for C in `measured.h`. Two programs in C that root starts come last.

use crate::{Arguments, Chief, Entry, Failure, ITERATIONS, QUOTA, Result, bench_chief, mark};
use core::arch::asm;
use core::hint::black_box;
use core::ptr::{addr_of, addr_of_mut};
use rt::api::process::{self, End};
use rt::api::{self, Name};
use stub::Callee;
use sys::{Dope, TaskId, Timeout, Uid};

mod body;
mod doors;
mod slope;

/// The stubs.
#[allow(missing_docs)]
mod stubs {
    include!(concat!(env!("OUT_DIR"), "/bench.rs"));
}

use body::{Number, made, make_all, use_all, used_at, used_bytes};
pub(crate) use doors::STUB_SMALL;
use stubs::Bench::{Calls, Record};

/// Stacks of client and server. Every task sees them at the same address; each thread uses its own.
#[repr(C, align(4096))]
struct Stacks([[u8; STACK_BYTES]; 2]);

const STACK_BYTES: usize = 8192;

static mut STACKS: Stacks = Stacks([[0; STACK_BYTES]; 2]);

/// Memory into which a server receives.
static mut ROOM: Calls::Room = Calls::Room::new();

/// Data that clients send, beside numbers: sixteen bytes of text, and lists of a thousand. Each call reads anew where they lie.
static TEXT: &str = "sixteen letters.";
static LISTS: [&[u8]; 2] = [&[1; 1000], &[2; 1000]];

unsafe extern "C" {
    fn floor_server();
    fn null_server();
    fn null_client_tiny();
    fn null_client_small();
    fn null_client_large();
    fn null_client_larger();
    fn null_client_record();
    fn null_client_str();
    fn null_client_length();
    fn null_client_one();
    fn null_client_all();
    fn plain_client_str();
    fn plain_client_length();
    fn floor_client_str_rt();
    fn floor_client_length_rt();
    fn floor_client_str();
    fn floor_client_length();
    fn plain_client_tiny();
    fn plain_client_small();
    fn plain_client_large();
    fn plain_client_larger();
    fn plain_client_record();
    fn c_client_tiny_rt();
    fn c_client_tiny();
    fn c_client_small_rt();
    fn c_client_small();
    fn c_client_large_rt();
    fn c_client_large();
    fn c_client_larger_rt();
    fn c_client_larger();
    fn c_client_record_rt();
    fn c_client_record();
    fn c_null_client_tiny();
    fn c_null_client_small();
    fn c_null_client_large();
    fn c_null_client_larger();
    fn c_null_client_record();
    fn c_client_str_rt();
    fn c_client_length_rt();
    fn c_client_str();
    fn c_client_length();
    fn c_null_client_str();
    fn c_null_client_length();
    fn c_server();
    fn c_counted_client_str_rt();
    fn c_counted_client_str();
    fn c_counted_null_client_str();
    fn c_counted_server();
    fn floor_client_tiny_rt();
    fn floor_client_small_rt();
    fn floor_client_large_rt();
    fn floor_client_larger_rt();
    fn floor_client_record_rt();
    fn floor_client_tiny();
    fn floor_client_small();
    fn floor_client_large();
    fn floor_client_larger();
    fn floor_client_record();
}

/// A server without data, whose methods use their arguments and make results.
struct Nothing;

type Nine = (i32, i32, i32, i32, i32, i32, i32, i32, i32);
type Sixteen = (i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32);

impl Calls::Server for Nothing {
    body::methods!(&mut self);
}

unsafe extern "C" fn server() {
    // SAFETY: one server at a time.
    let room = unsafe { &mut *addr_of_mut!(ROOM) };
    Calls::serve(&mut Nothing, room);
}

/// Whether bytes that are not ASCII are text; for `floor.s`.
#[unsafe(no_mangle)]
unsafe extern "C" fn floor_other_text(text: *const u8, len: usize) -> bool {
    // SAFETY: so many bytes are there.
    core::str::from_utf8(unsafe { core::slice::from_raw_parts(text, len) }).is_ok()
}

/// Tells the chief how it went.
fn report(status: u64) -> ! {
    loop {
        // SAFETY: it is set before any child starts.
        let _ = sys::ipc_call(Uid(unsafe { bench_chief }), 0, [status, 0, 0, 0, 0, 0, 0, 0]);
    }
}

/// Results of a call, which must not be optimised away.
trait Keep {
    fn keep(self);
}

impl Keep for () {
    fn keep(self) {}
}

impl Keep for i32 {
    fn keep(self) {
        // SAFETY: no instruction. It wants the value in a register, where one goes on to use it.
        unsafe { asm!("/* {0:e} */", in(reg) self, options(nomem, nostack, preserves_flags)) };
    }
}

impl Keep for (i32, i32) {
    fn keep(self) {
        self.0.keep();
        self.1.keep();
    }
}

impl Keep for Nine {
    fn keep(self) {
        black_box(self);
    }
}

impl Keep for Sixteen {
    fn keep(self) {
        black_box(self);
    }
}

/// Server that a client calls.
trait Found: Callee {
    fn find() -> Self;
}

/// The server that the chief names.
impl Found for Uid {
    fn find() -> Uid {
        let arguments: *const Arguments = addr_of!(crate::ARGUMENTS);
        // SAFETY: nobody changes them while a client runs.
        Uid(unsafe { (*arguments).server })
    }
}

/// A client that calls a method over and over. What the call needs lies in memory, as everything must that is to outlive
/// a call; what comes back is put there.
macro_rules! client {
    ($name:ident, |$client:ident, $numbers:ident, $record:ident, $text:ident, $bytes:ident| $call:expr) => {
        unsafe extern "C" fn $name<C: Found, const REGION: u8>() {
            let $client = Calls::Client { server: C::find() };
            let $numbers = black_box([1i32; 16]);
            let $record = black_box(Record {
                first: 1,
                second: 2,
                third: 3,
                fourth: 4,
                fifth: 5,
                sixth: 6,
                seventh: 7,
                eighth: 8,
                ninth: 9,
                last: 10,
            });
            // SAFETY: both are there.
            let $text = || unsafe { addr_of!(TEXT).read_volatile() };
            // SAFETY: likewise.
            let $bytes = |list: usize| unsafe { addr_of!(LISTS[list]).read_volatile() };
            let _ = (&$numbers, &$record, &$text, &$bytes);
            for _ in 0..ITERATIONS {
                mark::<1, REGION>();
                match $call {
                    Ok(value) => {
                        value.keep();
                        mark::<2, REGION>();
                    }
                    Err(_) => report(1),
                }
            }
            report(0)
        }
    };
}

client!(tiny, |client, n, _r, _s, _b| client.tiny(n[0]));
client!(small, |client, n, _r, _s, _b| client.small(n[0], n[1] as i16, n[2] as i16));
client!(large, |client, n, _r, _s, _b| client.large(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8]));
client!(larger, |client, n, _r, _s, _b| client.larger(
    n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12], n[13], n[14], n[15]
));
client!(record, |client, _n, record, _s, _b| client.record(&record));
client!(str, |client, _n, _r, text, _b| client.str(text()));
client!(length, |client, _n, _r, _s, bytes| client.length(bytes(0), bytes(1)));

/// The program in C (`bench/guest/bench-c`) as a server, and once more as its client: these are its arguments.
fn programs_in_c(serve: &str, call: &str) -> Result<()> {
    let program = Name::new("bench-c").ok_or(Failure::Program(api::Failure::Garbled))?;
    let start = |part| process::start(rt::home(), &program, part).map_err(Failure::Program);
    let server = start(serve)?;
    let client = start(call)?;
    let outcome = process::wait(rt::home(), client, u64::MAX).map_err(Failure::Program)?;
    process::kill(rt::home(), server).map_err(Failure::Program)?;
    match outcome.map(|outcome| outcome.end) {
        Some(End::Exited(0)) => Ok(()),
        end => Err(Failure::Ended(end)),
    }
}

/// A client, and the server that it calls.
struct Pair(Entry, Entry);

/// Clients and servers of all rows, in the order in which they run.
const PAIRS: [Pair; 70] = [
    Pair(tiny::<Uid, 20>, server),
    Pair(small::<Uid, 21>, server),
    Pair(large::<Uid, 22>, server),
    Pair(larger::<Uid, 23>, server),
    Pair(record::<Uid, 24>, server),
    Pair(str::<Uid, 25>, server),
    Pair(length::<Uid, 26>, server),
    Pair(tiny::<Uid, 30>, null_server),
    Pair(small::<Uid, 31>, null_server),
    Pair(large::<Uid, 32>, null_server),
    Pair(larger::<Uid, 33>, null_server),
    Pair(record::<Uid, 34>, null_server),
    Pair(str::<Uid, 35>, null_server),
    Pair(length::<Uid, 36>, null_server),
    Pair(null_client_tiny, server),
    Pair(null_client_small, server),
    Pair(null_client_large, server),
    Pair(null_client_larger, server),
    Pair(null_client_record, server),
    Pair(null_client_str, server),
    Pair(null_client_length, server),
    Pair(c_client_tiny_rt, c_server),
    Pair(c_client_small_rt, c_server),
    Pair(c_client_large_rt, c_server),
    Pair(c_client_larger_rt, c_server),
    Pair(c_client_record_rt, c_server),
    Pair(c_client_str_rt, c_server),
    Pair(c_client_length_rt, c_server),
    Pair(c_client_tiny, null_server),
    Pair(c_client_small, null_server),
    Pair(c_client_large, null_server),
    Pair(c_client_larger, null_server),
    Pair(c_client_record, null_server),
    Pair(c_client_str, null_server),
    Pair(c_client_length, null_server),
    Pair(c_null_client_tiny, c_server),
    Pair(c_null_client_small, c_server),
    Pair(c_null_client_large, c_server),
    Pair(c_null_client_larger, c_server),
    Pair(c_null_client_record, c_server),
    Pair(c_null_client_str, c_server),
    Pair(c_null_client_length, c_server),
    Pair(c_counted_client_str_rt, c_counted_server),
    Pair(c_counted_client_str, null_server),
    Pair(c_counted_null_client_str, c_counted_server),
    Pair(floor_client_tiny_rt, floor_server),
    Pair(floor_client_small_rt, floor_server),
    Pair(floor_client_large_rt, floor_server),
    Pair(floor_client_larger_rt, floor_server),
    Pair(floor_client_record_rt, floor_server),
    Pair(floor_client_str_rt, floor_server),
    Pair(floor_client_length_rt, floor_server),
    Pair(floor_client_tiny, null_server),
    Pair(floor_client_small, null_server),
    Pair(floor_client_large, null_server),
    Pair(floor_client_larger, null_server),
    Pair(floor_client_record, null_server),
    Pair(floor_client_str, null_server),
    Pair(floor_client_length, null_server),
    Pair(plain_client_tiny, floor_server),
    Pair(plain_client_small, floor_server),
    Pair(plain_client_large, floor_server),
    Pair(plain_client_larger, floor_server),
    Pair(plain_client_record, floor_server),
    Pair(slope::one::<37>, null_server),
    Pair(slope::all::<38>, null_server),
    Pair(null_client_one, slope::server),
    Pair(null_client_all, slope::server),
    Pair(plain_client_str, floor_server),
    Pair(plain_client_length, floor_server),
];

impl Chief {
    /// All rows of the suite `idl`; their regions are in `bench/rows.tsv`.
    pub(crate) fn idl_suite(&self) -> Result<()> {
        let near = sys::task_create(QUOTA, self.priority)?;
        let far = sys::task_create(QUOTA, self.priority)?;
        for (number, pair) in PAIRS.iter().enumerate() {
            self.pair(near, far, pair).inspect_err(|_| rt::println!("pair {number}:"))?;
        }
        self.all_by_door()?;
        sys::task_destroy(near)?;
        sys::task_destroy(far)?;
        programs_in_c("serve", "call")?;
        programs_in_c("serve-by-hand", "call-by-hand")?;
        programs_in_c("serve-floor", "call-floor")
    }

    /// Runs a client against a server, each in a task of its own, to its end, which must report 0.
    fn pair(&self, near: TaskId, far: TaskId, &Pair(client, server): &Pair) -> Result<()> {
        // A function finds the stack as after a call: eight bytes from a multiple of sixteen.
        let top = |stack: u64| addr_of!(STACKS) as u64 + (stack + 1) * STACK_BYTES as u64 - 8;
        let server = self.start_on(far, server, top(1))?;
        // The generated server says where it receives, too. SAFETY: it does not use the room now.
        let room = unsafe { (*addr_of_mut!(ROOM)).describe() };
        sys::thread_set_block(server, room, Dope(Calls::Room::DOPE), Timeout::NEVER)?;
        self.settle(server)?;
        // SAFETY: no client runs now.
        unsafe { crate::ARGUMENTS.server = server.0 };
        let client = self.start_on(near, client, top(0))?;
        let report = self.serve()?;
        sys::thread_destroy(client)?;
        sys::thread_destroy(server)?;
        match report.words[0] {
            0 => Ok(()),
            status => Err(Failure::Report(status, report.words[1])),
        }
    }
}
