//! The operations that the benchmarks count, each in the leanest honest loop.
//!
//! Client and server are children of this program, so that they are clan-mates, as a client and its server
//! are in life; this program is their chief and pager: it maps its own pages into them at the same
//! addresses. The loops are in `loops.s`, the rows and their regions in `bench/rows.tsv`. The figures are
//! counted by the emulator; this program prints only that it ran, or what failed.

#![no_std]
#![no_main]

extern crate alloc;

mod colours;
mod crowd;
mod door;
mod local;
mod long;
mod servers;
mod tlb;

use core::arch::{asm, global_asm};
use core::fmt;
use core::ptr::addr_of;
use rt::device::Port;
use rt::frames::{Supply, Upstream};
use rt::{api, println};
use sys::abi::call::{Call, PORT_FAULT, thread_op};
use sys::abi::state::IMAGE_MXCSR;
use sys::foreign::{FUNCTIONS, Function, Registers, Table};
use sys::{Error, Fpage, Ipc, Kind, Message, Rights, TaskId, ThreadState, Timeout, Uid, thread_state};

mod idl;

// One block, because the other files use the macros of the first.
global_asm!(
    include_str!("loops.s"),
    include_str!("idl/floor.s"),
    include_str!("tlb.s"),
    include_str!("colours.s"),
    include_str!("door.s")
);

/// Iterations of each region; the first 20 are warm-up.
const ITERATIONS: u64 = 160;

/// Kernel memory of each child, in frames.
const QUOTA: u64 = 64;

/// Pages that a server hands out, one in each iteration.
#[repr(C, align(4096))]
struct Pages([[u8; 4096]; ITERATIONS as usize]);

#[unsafe(no_mangle)]
static mut bench_map_pages: Pages = Pages([[0; 4096]; ITERATIONS as usize]);
#[unsafe(no_mangle)]
static mut bench_fault_pages: Pages = Pages([[0; 4096]; ITERATIONS as usize]);
/// This program's main thread, to which the clients report.
#[unsafe(no_mangle)]
static mut bench_chief: u64 = 0;

/// Interrupts that the driver still waits for.
#[unsafe(no_mangle)]
static mut bench_interrupts: u32 = ITERATIONS as u32;

/// Sixteen pages, aligned to their size, somewhere in here.
#[unsafe(no_mangle)]
static mut bench_many_pages: [u8; 32 << 12] = [0; 32 << 12];

/// Calls in which a server still asks for memory.
#[unsafe(no_mangle)]
static mut bench_large_parts: u32 = 0;

/// Where a server gets 2 MiB.
const LARGE_PLACE: u64 = 0x40c0_0000;

/// Calls that the forwarding chief still passes on.
#[unsafe(no_mangle)]
static mut bench_forwards: u32 = ITERATIONS as u32;

/// Arguments of a client, at the address in its `rdi`.
#[repr(C)]
struct Arguments {
    server: u64,
    iterations: u64,
    block: u64,
    dope: u64,
}

static mut ARGUMENTS: Arguments = Arguments { server: 0, iterations: ITERATIONS, block: 0, dope: 0 };

unsafe extern "C" {
    fn bench_null(iterations: u64);
    fn bench_thread(iterations: u64, priority: u64) -> u64;
    fn bench_state_get(iterations: u64, thread: u64, block: u64, eax: u64) -> u64;
    fn bench_state_set(iterations: u64, thread: u64, block: u64, eax: u64) -> u64;
    fn bench_client_w0();
    fn bench_client_intra();
    fn bench_server();
    fn bench_map_client();
    fn bench_map_server();
    fn bench_unmap();
    fn bench_fault_client();
    fn bench_pager();
    fn bench_exception_client();
    fn bench_handler();
    fn bench_foreign_client();
    fn bench_foreign_rust_client();
    fn bench_foreign_handler();
    fn bench_tls_client();
    fn bench_tls_server();
    fn bench_tls_kept_client();
    fn bench_tls_kept_server();
    fn bench_vector_client();
    fn bench_vector_server();
    fn bench_vector_hidden_client();
    fn bench_vector_hidden_server();
    fn bench_vector_control_client();
    fn bench_vector_control_server();
    fn bench_program_client();
    fn bench_program_server();
    fn bench_switch_client();
    fn bench_switch_server();
    fn bench_switch_vector_client();
    fn bench_switch_vector_server();
    fn bench_idle();
    fn bench_driver();
    fn bench_first();
    fn bench_client_apart();
    fn bench_server_apart();
    fn bench_port_client();
    fn bench_forwarder();
    fn bench_client_to_local();
    fn bench_many_client();
    fn bench_many_server();
    fn bench_grant_client_1();
    fn bench_grant_client_16();
    fn bench_grant_server();
    fn bench_large_client_whole();
    fn bench_large_server_whole();
    fn bench_large_client_part();
    fn bench_large_server_part();
    fn bench_large_client_small();
    fn bench_large_server_small();
}

/// Where a thread starts.
type Entry = unsafe extern "C" fn();

/// A loop of a call about a thread and a block: iterations, thread, block, operation. Returns what is not 0 if a call fails.
type Repeat = unsafe extern "C" fn(u64, u64, u64, u64) -> u64;

/// Why a row could not be measured.
enum Failure {
    /// A system call failed.
    Call(Error),
    /// A thread did what its loop does not do; what the kernel said about it.
    Unexpected(Message),
    /// A client reported these last values of `rax` and `rdx`.
    Report(u64, u64),
    /// The clock, which makes interrupts, was not to be had.
    Device(api::Failure),
    /// A program in C could not be started, waited for or ended.
    Program(api::Failure),
    /// A server refused what a program may ask for.
    Server(api::Failure),
    /// The network server refused, or did not answer.
    Network(net::sockets::Error),
    /// A program in C ended otherwise than with status 0.
    Ended(Option<api::process::End>),
}

/// Handler of foreign calls in Rust, which reports when something else comes.
unsafe extern "C" fn serve_foreign() {
    extern "C" fn process(registers: &mut Registers, _: u64) {
        registers.rax = 42;
    }
    extern "C" fn unknown(registers: &mut Registers, _: u64) {
        registers.rax = u64::MAX;
    }
    static TABLE: Table = Table {
        functions: {
            let mut functions: [Function; FUNCTIONS] = [unknown; FUNCTIONS];
            functions[39] = process;
            functions
        },
        other: unknown,
    };
    let _ = sys::foreign::serve(&TABLE);
    // SAFETY: a word of this program, which the chief has written before it made threads.
    let _ = sys::ipc_call(Uid(unsafe { bench_chief }), 0, [0; 8]);
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Failure::Call(error) => write!(f, "{error}"),
            Failure::Unexpected(message) => write!(f, "a thread did what its loop does not do: {message:x?}"),
            Failure::Device(failure) => write!(f, "no interrupts: {failure}"),
            Failure::Program(failure) => write!(f, "bench-c: {failure}"),
            Failure::Server(failure) => write!(f, "{failure}"),
            Failure::Network(error) => write!(f, "{error}"),
            Failure::Ended(end) => write!(f, "the client in bench-c ended with {end:?}"),
            Failure::Report(rax, rdx) => write!(f, "a client ended with rax = {rax:#x}, rdx = {rdx:#x}"),
        }
    }
}

impl From<api::Failure> for Failure {
    fn from(failure: api::Failure) -> Failure {
        Failure::Device(failure)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Call(error)
    }
}

type Result<T> = core::result::Result<T, Failure>;

/// The chief: this program's main thread.
struct Chief {
    uid: Uid,
    priority: u8,
}

impl Chief {
    /// Starts a thread in a child.
    fn start(&self, task: TaskId, entry: Entry, handler: Uid) -> Result<Uid> {
        let thread = sys::thread_create(task, self.priority, self.uid, handler)?;
        self.begin(thread, entry)?;
        Ok(thread)
    }

    fn begin(&self, thread: Uid, entry: Entry) -> Result<()> {
        // SAFETY: the loops use no stack, and no memory but what is set aside for them.
        Ok(unsafe { sys::thread_start(thread, address(entry), 0, addr_of!(ARGUMENTS) as u64) }?)
    }

    /// Starts a thread in a child, with a stack.
    fn start_on(&self, task: TaskId, entry: Entry, stack: u64) -> Result<Uid> {
        let thread = sys::thread_create(task, self.priority, self.uid, Uid::NIL)?;
        // SAFETY: the stack is the thread's alone while it lives.
        unsafe { sys::thread_start(thread, address(entry), stack, addr_of!(ARGUMENTS) as u64) }?;
        Ok(thread)
    }

    /// Serves page faults of the children until one of them calls; returns what it says.
    fn serve(&self) -> Result<Message> {
        self.serve_with(|_| None)
    }

    /// Does that with pages that `find` has for some addresses.
    fn serve_with(&self, find: impl Fn(u64) -> Option<Fpage>) -> Result<Message> {
        let mut message = sys::receive(Uid::ANY, Timeout::NEVER)?;
        while message.kind == Kind::Fault {
            let [address, ..] = message.words;
            let page = address & !0xfff;
            let item = if address & PORT_FAULT != 0 {
                (Fpage(address & !PORT_FAULT), 0)
            } else if let Some(found) = find(page) {
                (found, page)
            } else {
                touch(page, Rights(address as u8 & 7));
                (Fpage::memory(page, 12, Rights::RWX), page)
            };
            message = sys::reply_item_wait(message.sender, 0, [0; 8], item)?;
        }
        match message.kind {
            Kind::Request => Ok(message),
            _ => Err(Failure::Unexpected(message)),
        }
    }

    /// Waits until a thread has done what comes before its first wait.
    fn settle(&self, thread: Uid) -> Result<()> {
        while sys::thread_info(thread)?.state != thread_state::RECEIVING {
            let from = Uid::ANY;
            match (Ipc { from, receive_timeout: Timeout::from_us(100), ..Ipc::NONE }).run() {
                Ok(Some(message)) if message.kind == Kind::Fault => {
                    let page = message.words[0] & !0xfff;
                    touch(page, Rights(message.words[0] as u8 & 7));
                    let item = (Fpage::memory(page, 12, Rights::RWX), page);
                    sys::send_item(message.sender, 0, [0; 8], item, Timeout::ZERO)?;
                }
                Ok(Some(message)) => return Err(Failure::Unexpected(message)),
                Ok(None) | Err(Error::ReceiveTimeout) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// One client against one server. The client's last reply must come from the server, words intact.
    fn ping_pong(&self, client_task: TaskId, client: Entry, server_task: TaskId) -> Result<()> {
        let server = self.start(server_task, bench_server, Uid::NIL)?;
        self.settle(server)?;
        let report = self.against(client_task, client, server)?;
        let [rax, rdx, words @ ..] = report.words;
        sys::thread_destroy(server)?;
        if Kind::from_eax(rax as u32) != Some(Kind::Reply) || rdx != server.0 {
            return Err(Failure::Report(rax, rdx));
        }
        if words != [0x1002, 0x1003, 0x1004, 0x1005, 0x1006, 0x1007] {
            return Err(Failure::Unexpected(report));
        }
        Ok(())
    }

    /// Runs a client to its end against a server that waits.
    fn against(&self, task: TaskId, client: Entry, server: Uid) -> Result<Message> {
        // SAFETY: no client runs now.
        unsafe { ARGUMENTS.server = server.0 };
        let client = self.start(task, client, Uid::NIL)?;
        let report = self.serve()?;
        sys::thread_destroy(client)?;
        Ok(report)
    }

    /// Runs a thread to its end, which must report 0.
    fn alone(&self, task: TaskId, entry: Entry, pager: Uid, handler: Uid) -> Result<()> {
        let thread = sys::thread_create(task, self.priority, self.uid, handler)?;
        // The measured page faults go to `pager`; those on the program's own pages were served before.
        sys::thread_set_pager(thread, pager, handler)?;
        self.begin(thread, entry)?;
        let report = self.serve()?;
        sys::thread_destroy(thread)?;
        if report.words[0] != 0 { Err(Failure::Report(report.words[0], 0)) } else { Ok(()) }
    }

    /// Any client against any server. The client's last reply must be one.
    fn many(&self, client_task: TaskId, client: Entry, server_task: TaskId, server: Entry) -> Result<()> {
        let server = self.start(server_task, server, Uid::NIL)?;
        self.settle(server)?;
        let report = self.against(client_task, client, server)?;
        sys::thread_destroy(server)?;
        match Kind::from_eax(report.words[0] as u32) {
            Some(Kind::Reply) => Ok(()),
            _ => Err(Failure::Report(report.words[0], report.words[1])),
        }
    }

    /// A client that makes foreign calls, which end in an exception, and a handler for them in the task that has made the client's. The
    /// last result must be there.
    fn foreign(&self, client_task: TaskId, client: Entry, entry: Entry) -> Result<()> {
        static mut STACK: [u128; 64] = [0; 64];
        let stack = (&raw const STACK).wrapping_add(1) as u64 - 8;
        let pager = sys::thread_info(self.uid)?.pager;
        let handler = sys::thread_create(TaskId::NIL, self.priority, pager, Uid::NIL)?;
        // SAFETY: the stack is the thread's alone while it lives.
        unsafe { sys::thread_start(handler, address(entry), stack, addr_of!(ARGUMENTS) as u64) }?;
        self.settle(handler)?;
        let thread = sys::thread_create(client_task, self.priority, self.uid, handler)?;
        sys::foreign::thread_redirect(thread, 7)?;
        self.begin(thread, client)?;
        self.serve()?;
        let [.., result] = sys::thread_registers(thread, 0)?;
        sys::thread_destroy(thread)?;
        sys::thread_destroy(handler)?;
        if result == 42 { Ok(()) } else { Err(Failure::Report(result, 0)) }
    }

    /// Any client beside a thread that never waits. The client says what a reply would have said.
    fn beside(&self, client_task: TaskId, client: Entry, other_task: TaskId, other: Entry) -> Result<()> {
        let other = self.start(other_task, other, Uid::NIL)?;
        let report = self.against(client_task, client, other)?;
        sys::thread_destroy(other)?;
        match Kind::from_eax(report.words[0] as u32) {
            Some(Kind::Reply) => Ok(()),
            _ => Err(Failure::Report(report.words[0], report.words[1])),
        }
    }

    /// 2 MiB at once: as one large page, and as the small ones that a server has got in halves.
    fn large(&self) -> Result<()> {
        const LOG2: u32 = 21;
        let memory = Upstream(rt::home()).block(LOG2).ok_or(Error::NoMemory)?.lend();
        let base = memory.fpage().base();
        self.large_pair(bench_large_client_whole, bench_large_server_whole, (base, LOG2, 1))?;
        self.large_pair(bench_large_client_part, bench_large_server_part, (base, LOG2, 1))?;
        self.large_pair(bench_large_client_small, bench_large_server_small, (base, LOG2 - 1, 2))?;
        memory.reclaim();
        Ok(())
    }

    fn large_pair(&self, client: Entry, server: Entry, (base, log2, parts): (u64, u32, u32)) -> Result<()> {
        let near = sys::task_create(QUOTA, self.priority)?;
        let far = sys::task_create(QUOTA, self.priority)?;
        // SAFETY: no server runs now.
        unsafe { bench_large_parts = parts };
        let server = self.start(far, server, Uid::NIL)?;
        for part in 0..parts as u64 {
            let request = self.serve()?;
            let offset = part << log2;
            let item = (Fpage::memory(base + offset, log2, Rights::RW), LARGE_PLACE + offset);
            sys::send_item(request.sender, 0, [0; 8], item, Timeout::ZERO)?;
        }
        self.settle(server)?;
        let report = self.against(near, client, server)?;
        sys::task_destroy(near)?;
        sys::task_destroy(far)?;
        match Kind::from_eax(report.words[0] as u32) {
            Some(Kind::Reply) => Ok(()),
            _ => Err(Failure::Report(report.words[0], report.words[1])),
        }
    }

    /// A clan-mate of the server is the chief of a client.
    fn forwarding(&self, near: TaskId, far: TaskId) -> Result<()> {
        let server = self.start(far, bench_server, Uid::NIL)?;
        self.settle(server)?;
        // SAFETY: no client runs now.
        unsafe { (ARGUMENTS.block, ARGUMENTS.dope) = (self.uid.0, self.priority as u64) };
        let report = self.against(near, bench_forwarder, server)?;
        sys::thread_destroy(server)?;
        if report.words[0] != 0 { Err(Failure::Report(report.words[0], 0)) } else { Ok(()) }
    }

    /// A thread of a child is interrupted by the PC's clock, the driver is a thread of this task.
    fn interrupts(&self, idle_task: TaskId) -> Result<()> {
        let clock = Clock::take()?;
        let driver = sys::thread_create(TaskId::NIL, self.priority, sys::identity().pager, self.uid)?;
        self.begin(driver, bench_driver)?;
        let idle = sys::thread_create(idle_task, self.priority - 1, self.uid, self.uid)?;
        self.begin(idle, bench_idle)?;
        clock.set_periodic(true);
        let report = self.serve()?;
        clock.set_periodic(false);
        sys::thread_destroy(idle)?;
        sys::thread_destroy(driver)?;
        if report.words[0] != 0 { Err(Failure::Report(report.words[0], 0)) } else { Ok(()) }
    }

    /// The state of a thread that does not run, got and set by one that has the page.
    fn states(&self, task: TaskId) -> Result<()> {
        static mut STATE: ThreadState = ThreadState::ZERO;
        let thread = sys::thread_create(task, self.priority, self.uid, self.uid)?;
        let mut state = ThreadState { len_bytes: ThreadState::LEN_BYTES, ..ThreadState::ZERO };
        state.image[IMAGE_MXCSR] = 0x1f80;
        sys::thread_set_state(thread, &state)?;
        for (operation, region) in
            [(thread_op::GET_STATE, bench_state_get as Repeat), (thread_op::SET_STATE, bench_state_set)]
        {
            let eax = Call::ThreadControl as u32 | operation << 8;
            // SAFETY: the loop uses the state and no other memory, and nobody else does.
            let errors = unsafe { region(ITERATIONS, thread.0, &raw mut STATE as u64, eax.into()) };
            if errors != 0 {
                return Err(Failure::Report(errors, 0));
            }
        }
        Ok(sys::thread_destroy(thread)?)
    }

    /// A task, and one thread that gets to its first instruction.
    fn task(&self) -> Result<()> {
        const REGION: u8 = 11;
        let entry = address(bench_first);
        for _ in 0..ITERATIONS {
            mark::<1, REGION>();
            let task = sys::task_create(16, self.priority)?;
            let thread = sys::thread_create(task, self.priority, self.uid, self.uid)?;
            // SAFETY: the code runs in the child.
            unsafe { sys::thread_start(thread, entry, 0, self.uid.0)? };
            let fault = sys::receive(Uid::ANY, Timeout::NEVER)?;
            let page = fault.words[0] & !0xfff;
            let item = (Fpage::memory(page, 12, Rights::RX), page);
            let request = sys::reply_item_wait(fault.sender, 0, [0; 8], item)?;
            sys::task_destroy(task)?;
            mark::<2, REGION>();
            if request.kind != Kind::Request || request.sender != thread {
                return Err(Failure::Unexpected(request));
            }
        }
        Ok(())
    }

    fn ipc_suite(&self) -> Result<()> {
        // SAFETY: the loops keep to the calling convention.
        unsafe { bench_null(ITERATIONS) };
        let near = sys::task_create(QUOTA, self.priority)?;
        let far = sys::task_create(QUOTA, self.priority)?;
        self.ping_pong(near, bench_client_w0, far)?;
        self.ping_pong(near, bench_client_intra, near)?;

        long::rows(self, near, far)?;
        self.forwarding(near, far)?;

        let server = self.start(far, bench_map_server, Uid::NIL)?;
        self.settle(server)?;
        let report = self.against(near, bench_map_client, server)?;
        if Kind::from_eax(report.words[0] as u32) != Some(Kind::Reply) {
            return Err(Failure::Report(report.words[0], report.words[1]));
        }
        sys::thread_destroy(server)?;
        self.many(near, bench_many_client, far, bench_many_server)?;
        self.many(near, bench_grant_client_1, far, bench_grant_server)?;
        self.many(near, bench_grant_client_16, far, bench_grant_server)?;
        self.alone(far, bench_unmap, self.uid, Uid::NIL)?;

        let pager = self.start(far, bench_pager, Uid::NIL)?;
        self.settle(pager)?;
        self.alone(near, bench_fault_client, pager, Uid::NIL)?;
        sys::thread_destroy(pager)?;

        let handler = self.start(far, bench_handler, Uid::NIL)?;
        self.settle(handler)?;
        self.alone(near, bench_exception_client, self.uid, handler)?;
        sys::thread_destroy(handler)?;

        self.interrupts(near)?;
        // Last, because rows about mappings depend on which nodes were in use before.
        crate::local::rows(self, near, far)?;
        self.many(near, bench_client_apart, far, bench_server_apart)?;
        self.many(near, bench_port_client, far, bench_server)?;
        self.many(near, bench_tls_client, far, bench_tls_server)?;
        self.many(near, bench_tls_kept_client, far, bench_tls_kept_server)?;
        self.many(near, bench_vector_client, far, bench_vector_server)?;
        self.many(near, bench_vector_hidden_client, far, bench_vector_hidden_server)?;
        self.many(near, bench_vector_control_client, far, bench_vector_control_server)?;
        self.many(near, bench_program_client, far, bench_program_server)?;
        self.foreign(near, bench_foreign_client, bench_foreign_handler)?;
        self.foreign(near, bench_foreign_rust_client, serve_foreign)?;
        self.beside(near, bench_switch_client, far, bench_switch_server)?;
        self.beside(near, bench_switch_vector_client, far, bench_switch_vector_server)?;
        sys::task_destroy(near)?;
        sys::task_destroy(far)?;

        // SAFETY: as above.
        let errors = unsafe { bench_thread(ITERATIONS, self.priority as u64) };
        if errors != 0 {
            return Err(Failure::Report(errors, 0));
        }
        self.states(TaskId::NIL)?;
        self.task()?;
        self.large()
    }
}

/// Where a function begins.
fn address(entry: Entry) -> u64 {
    entry as *const () as usize as u64
}

/// The PC's clock (MC146818), which can interrupt thousands of times a second.
struct Clock;

impl Clock {
    const INDEX: Port = Port(0x70);
    const DATA: Port = Port(0x71);
    const LINE: u8 = 8;

    /// Gets ports and interrupt from `root`.
    fn take() -> Result<Clock> {
        for wanted in [Fpage::ports(Clock::INDEX.0, 1), Fpage::interrupt(Clock::LINE)] {
            api::memory::resource(rt::home(), wanted, wanted)?;
        }
        Ok(Clock)
    }

    fn change(&self, register: u8, clear: u8, set: u8) {
        Clock::INDEX.write(register);
        let value = Clock::DATA.read();
        Clock::INDEX.write(register);
        Clock::DATA.write(value & !clear | set);
    }

    /// Starts or stops 8192 interrupts a second.
    fn set_periodic(&self, on: bool) {
        self.change(0x0a, 0x0f, 3);
        self.change(0x0b, 0x40, if on { 0x40 } else { 0 });
        self.change(0x0c, 0, 0);
    }
}

/// A marker for the counting emulator; see `loops.s`.
#[inline(always)]
fn mark<const KIND: u8, const REGION: u8>() {
    // SAFETY: a no-operation.
    unsafe {
        asm!(".byte 0x0f, 0x1f, 0x80, {kind}, {region}, 0x4e, 0x7e", kind = const KIND, region = const REGION)
    };
}

/// Makes sure that this program has a page with the wanted access, so that it can be mapped on.
fn touch(page: u64, access: Rights) {
    // SAFETY: children only run this program's code on this program's memory; adding nothing changes nothing.
    unsafe {
        if access.has(Rights::W) {
            asm!("lock add dword ptr [{}], 0", in(reg) page);
        } else {
            (page as *const u8).read_volatile();
        }
    }
}

rt::entry!(main);

fn main() -> i32 {
    let arguments = rt::arguments();
    let suite = arguments.first().map_or("ipc", |suite| suite.as_str());
    let has = |word: &str| arguments.iter().any(|argument| argument.as_str() == word);
    let run = match suite {
        "ipc" if has("crowd") => Chief::crowd_suite,
        "ipc" => Chief::ipc_suite,
        "idl" => Chief::idl_suite,
        "tlb" => Chief::tlb_suite,
        "colours" => Chief::colours_suite,
        "door" => Chief::door_suite,
        "servers" if has("disk") => Chief::disk_suite,
        "servers" if has("block") => Chief::block_suite,
        "servers" if has("stacked") => Chief::stacked_suite,
        "servers" => Chief::servers_suite,
        _ => {
            println!("BENCH {suite} FAILED: no such suite");
            return 1;
        }
    };
    let uid = sys::myself();
    let priority = sys::thread_info(uid).map_or(1, |info| info.priority);
    // SAFETY: no other thread runs yet.
    unsafe { bench_chief = uid.0 };
    match run(&Chief { uid, priority }) {
        Ok(()) => {
            println!("BENCH {suite} done");
            0
        }
        Err(failure) => {
            println!("BENCH {suite} FAILED: {failure}");
            1
        }
    }
}
