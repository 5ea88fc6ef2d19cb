//! Runs programs of Linux as they are: `linux [OPTION]… PROGRAM [ARGUMENT]…`. Its processes are tasks of this program, which does their calls
//! ([`linux`]) and pages them; files are those of a directory of `files`, the root.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod helpers;
mod kernel;
mod memory;
mod network;
mod telling;
mod typing;
mod waiters;

use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use files::Below;
use helpers::{KEYS, TIME, Timer, watch_keys};
use kernel::Kernel;
use linux::budget::Budget;
use linux::command_line::CommandLine;
use linux::errno;
use linux::machine::Tid;
use linux::signal::{Cause, Signal};
use linux::store::{Clock, Store};
use linux::system::{Next, System};
use linux::trace::Trace;
use linux_raw_sys::general::{self, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
use memory::{Pages, from_machine};
use network::Tern;
use rt::api::clock;
use rt::module::Service;
use rt::pager::{self, REFUSAL};
use rt::sys::abi::call::RESUME_AS_IS;
use rt::sys::abi::{PAGE_SIZE, USER_END};
use rt::sys::foreign::Handler;
use rt::sys::{self, Fpage, Kind, Message, Timeout, Uid};
use rt::{eprintln, random, time};
use telling::Telling;
use typing::Typing;
use vfs::remote::Remote;
use vfs::{Amount, FileSystem, Quota};
use waiters::READY;

rt::entry!(main);

/// Memory of processes, in MiB, and the most that may be asked for.
const MEMORY_MIB: (u32, u32) = (60, 4096);

/// Memory of this program in MiB if nothing is said of it, as the description has it, and the most that may be asked for.
const OWN_MIB: (u32, u32) = (32, 640);

/// Pages of a MiB.
const PAGES_OF_MIB: u32 = (1 << 20) / PAGE_SIZE as u32;

/// Most processes and threads, and the most that may be asked for.
const PROCESSES: (u32, u32) = (64, 256);

/// Exception of a page fault that nobody resolves.
const UNRESOLVED: u64 = 257;

/// Exception of a call with bit 31 of its number set.
const NEGATIVE_CALL: u64 = 256;

/// Environment of the first program.
const ENVIRONMENT: [&str; 4] =
    ["PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/root", "TERM=xterm", "USER=root"];

type Files = Quota<Remote<Below>>;

type Linux = System<Kernel, Pages, Files>;

/// Options.
const USAGE: &str = "linux: usage: linux [--root PATH] [--strace[=FILE]] [-o FILE] [--profile] [--monitor SERVER] [--no-keys] \
                     [--memory MIB] [--own-memory MIB] [--processes NUMBER] [--disk MIB] [--files NUMBER] PROGRAM [ARGUMENT]…";

/// Tells whoever watches the serial line that somebody is there.
const BEGIN: &str = "\x1b]tern;begin\x07";

fn main() -> i32 {
    let Some(line) = CommandLine::read(&rt::argument_text()) else {
        eprintln!("{USAGE}");
        return 2;
    };
    if line.is_boot {
        rt::print!("{BEGIN}");
    }
    match begin(&line) {
        Ok((system, sides)) => run(system, sides),
        Err(text) => {
            eprintln!("linux: {text}");
            127
        }
    }
}

/// Things outside of the processes that something happens to.
struct Sides {
    network: Rc<Tern>,
    typing: Typing,
}

fn begin(line: &CommandLine) -> Result<(Linux, Sides), String> {
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let files = open_root(line)?;
    let generator = random::generator().map_err(|error| format!("{error}"))?;
    let own = sys::identity();
    let failed = |error: sys::Error| String::from(error.describe());
    let info = sys::thread_info(own.uid).map_err(failed)?;
    let timer = Timer::new(info.priority).map_err(failed)?;
    // No program that computes for ever keeps this one from running.
    let zero = zero();
    let mut kernel = Kernel::new(info.priority.saturating_sub(1), timer, generator, zero);
    kernel.telling = telling(line)?;
    let pages = line.memory_mib.unwrap_or(MEMORY_MIB.0).min(MEMORY_MIB.1) * PAGES_OF_MIB;
    let threads = line.processes.unwrap_or(PROCESSES.0).min(PROCESSES.1) as usize;
    let mut store = Store::new(Pages::new(rt::home(), pages), files);
    store.clock = Clock(Box::new(move || zero.saturating_add(time::now_ns())));
    let mut system = System::new(kernel, store, threads);
    let own = (line.own_mib.unwrap_or(OWN_MIB.0).min(OWN_MIB.1) as usize) << 20;
    system.budget.set_max(Budget::of_memory(own, pages as usize));
    system.store.view.borrow_mut().vdso = vdso::page(zero).into();
    let network = Rc::new(Tern::new(info.priority));
    system.sockets.use_network(network.clone(), &system.budget);
    let mut typing = Typing::default();
    let has_person = has_person(line);
    let mut keys = Vec::new();
    if has_person {
        watch_keys(info.priority).map_err(failed)?;
        keys = look_at_terminal(&mut system, &mut typing);
    }
    let environment: Vec<Vec<u8>> = ENVIRONMENT.into_iter().map(|text| text.as_bytes().to_vec()).collect();
    let name = line.words.first().map(Vec::as_slice).unwrap_or_default();
    let mut found = Err(errno::ENOENT);
    for path in paths(name) {
        found = system.begin(&path, line.words.clone(), &environment, b"");
        if found != Err(errno::ENOENT) {
            break;
        }
    }
    found.map_err(|error| format!("{}: {}", shown(name), errno::name(error).unwrap_or("error")))?;
    if line.has_trace || line.has_profile {
        system.trace = Some(Trace::new(line.has_trace, line.has_profile));
    }
    if line.has_keys && !has_person {
        watch_keys(info.priority).map_err(failed)?;
    }
    system.input(&keys);
    Ok((system, Sides { network, typing }))
}

/// Whether somebody sits at the terminal: the command line says so, or the shell, which tells of it all that it starts.
fn has_person(line: &CommandLine) -> bool {
    let is_told = || !line.is_boot && rt::environment::variable("TERM").is_some();
    line.has_keys && (line.has_person || is_told()) && !rt::io::is_input_piped()
}

/// Asks the terminal for its size. Keys that were typed meanwhile.
fn look_at_terminal(system: &mut Linux, typing: &mut Typing) -> Vec<u8> {
    let (window, keys) = typing.ask();
    window.into_iter().for_each(|window| system.resize(window));
    keys
}

/// Files of the root: all of them, or a part that has no more than was said.
fn open_root(line: &CommandLine) -> Result<Files, String> {
    let root = String::from_utf8_lossy(line.root.trim_ascii()).into_owned();
    let failed = |error| format!("{root}: {}", files::wire::status(error).describe());
    let files = Remote::new(Below::new(&format!("{}/{}", files::NAME, root.trim_matches('/'))));
    let mut files = files.map_err(failed)?;
    if line.disk_mib.is_none() && line.files.is_none() {
        return Ok(Quota::without(files));
    }
    let limit = Amount {
        bytes: line.disk_mib.map_or(u64::MAX, |mib| u64::from(mib) << 20),
        files: line.files.map_or(u64::MAX, u64::from),
    };
    // To count is one thing: the server is asked once whether somebody has changed something.
    files.begin();
    Quota::new(files, limit).map_err(|error| match error {
        vfs::Error::NoSpace => {
            format!("{root}: there are more than the {} files that it may have", limit.files)
        }
        error => failed(error),
    })
}

/// Where it goes that is told of calls.
fn telling(line: &CommandLine) -> Result<Telling, String> {
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match (&line.trace_file, &line.monitor) {
        (Some(file), _) => Telling::file(&shown(file)),
        (None, Some(name)) => Telling::monitor(&shown(name)),
        (None, None) if line.is_boot => Ok(Telling::Tool),
        (None, None) => Ok(Telling::Console),
    }
}

/// Where a program may be.
fn paths(name: &[u8]) -> Vec<Vec<u8>> {
    if name.contains(&b'/') {
        return Vec::from([name.to_vec()]);
    }
    let path = ENVIRONMENT[0].trim_start_matches("PATH=");
    path.split(':').map(|directory| [directory.as_bytes(), b"/", name].concat()).collect()
}

/// Nanoseconds since 1970 when the machine began.
fn zero() -> u64 {
    static CLOCK: Service = Service::new(clock::NAME);
    let since = time::now_ns();
    clock::now(&CLOCK).map_or(0, |now| now.saturating_sub(since))
}

/// Does calls until the first process ends.
fn run(mut system: Linux, mut sides: Sides) -> i32 {
    let mut handler = Handler::default();
    let mut caller = handler.wait_for_call();
    loop {
        let next = match caller {
            Some(tid) => system.call(tid, &mut handler.registers),
            None => match receive(&mut system, &mut sides, &handler) {
                Some(Reply { to, label, page }) => {
                    caller = handler.reply_and_wait(to, label, page);
                    continue;
                }
                None => Next::Nothing,
            },
        };
        if let Some(status) = system.ended {
            system.end_trace();
            system.machine.telling.flush();
            let (code, value) = status.told();
            return if code as u32 == general::CLD_EXITED { value as i32 } else { 128 + value as i32 };
        }
        caller = match next {
            Next::Answer => handler.answer_call(),
            Next::Nothing => handler.wait_for_call(),
        };
    }
}

/// An answer to a fault or an exception, which goes with the next wait.
struct Reply {
    to: Uid,
    label: u32,
    page: Option<(Fpage, u64)>,
}

/// Takes what has come and is no call.
#[inline(never)]
fn receive(system: &mut Linux, sides: &mut Sides, handler: &Handler) -> Option<Reply> {
    let message = handler.message().ok()?;
    take(system, sides, &message)
}

/// Takes a message: a fault, an exception, or one of a thread beside this one.
fn take(system: &mut Linux, sides: &mut Sides, message: &Message) -> Option<Reply> {
    let tid = system.machine.number(message.sender);
    match (message.kind, tid) {
        (Kind::Fault, Some(tid)) => return page(system, message, tid),
        (Kind::Exception, Some(tid)) => {
            system.machine.stands_still(message.sender);
            except(system, message, tid);
            return go_on(system, tid);
        }
        (Kind::Request, None) if is_own(message) => {
            let _ = sys::send(message.sender, 0, [0; 8], Timeout::ZERO);
            match message.label {
                TIME => system.time(),
                READY => {
                    let [number, events, ..] = message.words;
                    sides.network.told(number, events as u32);
                    system.network_happened(number, events as u32);
                }
                KEYS => {
                    let (keys, window) = sides.typing.take(message);
                    window.into_iter().for_each(|window| system.resize(window));
                    system.input(&keys);
                }
                _ => {}
            }
        }
        _ => {}
    }
    None
}

/// Whether a message is from a thread of this program.
fn is_own(message: &Message) -> bool {
    sys::thread_info(message.sender).is_ok_and(|info| info.task == sys::identity().task)
}

/// Answers a page fault: by a page, by a handler in place of what has faulted, or by the end of the process. A page goes with the next wait, if nothing else is to be done
/// before.
fn page(system: &mut Linux, message: &Message, tid: Tid) -> Option<Reply> {
    let Some(fault) = pager::Fault::decode(message) else {
        // Ports: no process has any, and this becomes the processor's exception.
        let _ = sys::send(message.sender, REFUSAL.label, [0; 8], Timeout::ZERO);
        return None;
    };
    let wanted = from_machine(fault.access);
    let mut found = system.fault(tid, fault.address, wanted);
    while found == Err(linux::memory::Fault::NoMemory) && system.make_room(tid) {
        found = system.fault(tid, fault.address, wanted);
    }
    match found {
        Ok((frame, rights)) => {
            let page = system.store.frames.bytes.fpage(frame, rights);
            let address = fault.address / PAGE_SIZE * PAGE_SIZE;
            if system.ended.is_none() && !system.has_more_after_fault(tid) {
                return Some(Reply { to: message.sender, label: 0, page: Some((page, address)) });
            }
            let _ = sys::send_item(message.sender, 0, [0; 8], (page, address), Timeout::ZERO);
            system.after_fault(tid);
        }
        Err(reason) => {
            system.machine.stands_still(message.sender);
            system.refuse_fault(tid, fault.address, wanted, reason);
            return go_on(system, tid);
        }
    }
    None
}

/// A thread whose fault or exception has begun a handler goes on with the next wait, if nothing else is to be done before.
fn go_on(system: &mut Linux, tid: Tid) -> Option<Reply> {
    let to = system.machine.goes_on()?;
    if system.ended.is_none() && !system.has_more_after_fault(tid) {
        return Some(Reply { to, label: RESUME_AS_IS, page: None });
    }
    system.machine.resume(tid);
    system.after_fault(tid);
    None
}

fn except(system: &mut Linux, message: &Message, tid: Tid) {
    let [vector, error, ip, .., address] = message.words;
    let address = address & !7;
    let (signal, code, value): (Signal, u32, u64) = match vector {
        // Nobody asks for pages of the kernel's.
        UNRESOLVED if address >= USER_END => (SIGSEGV, general::SEGV_MAPERR, address),
        // The page was given: what was missing is kernel memory for it.
        UNRESOLVED if system.machine.grow(tid) => {
            system.machine.resume(tid);
            return;
        }
        UNRESOLVED => (SIGBUS, general::BUS_ADRERR, address),
        // The error code is the number.
        NEGATIVE_CALL => return system.negative_call(tid, error as u32),
        0 => (SIGFPE, general::FPE_INTDIV, ip),
        1 => (SIGTRAP, general::TRAP_TRACE, ip),
        3 => (SIGTRAP, general::SI_KERNEL, 0),
        6 => (SIGILL, general::ILL_ILLOPN, ip),
        16 | 19 => (SIGFPE, general::FPE_FLTINV, ip),
        17 => (SIGBUS, general::BUS_ADRALN, address),
        _ => (SIGSEGV, general::SI_KERNEL, 0),
    };
    let cause = Cause { code: code as i32, sender: (0, 0), value };
    let number = if vector == UNRESOLVED { 14 } else { vector };
    system.exception(tid, signal, cause, [address, error, number]);
}
