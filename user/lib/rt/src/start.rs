//! Beginning of a program, `main`, and the end. The first instructions are in `entry`.
//!
//! Nothing is passed in memory: a program finds a number in `rdi` (for most programs the length of its argument
//! text), asks the kernel who it is, and asks whoever started it, its *home*, for the rest. Home is the first
//! thread's exception handler, so it needs no name.
#![allow(unsafe_code)]

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use sys::Uid;

/// Makes `$main`, a `fn() -> i32`, the program's main function.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        #[allow(unsafe_code)]
        #[unsafe(no_mangle)]
        fn tern_main() -> i32 {
            $crate::start::run(env!("CARGO_BIN_NAME"), $main)
        }
    };
}

/// How a program that cannot use console and `root` prints and ends.
#[derive(Debug)]
pub struct Hooks {
    /// Prints bytes, best effort.
    pub write: fn(&[u8]),
    /// Ends the program.
    pub exit: fn(i32) -> !,
}

static ARGUMENT: AtomicU64 = AtomicU64::new(0);
static HOME: AtomicU64 = AtomicU64::new(0);
static PAGER: AtomicU64 = AtomicU64::new(0);
static HOOKS: AtomicPtr<Hooks> = AtomicPtr::new(core::ptr::null_mut());
static NAME: crate::sync::Mutex<&str> = crate::sync::Mutex::new("program");

/// Notes what the first thread was given.
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
pub(crate) fn note(argument: u64) {
    ARGUMENT.store(argument, Ordering::Relaxed);
    let identity = sys::identity();
    HOME.store(identity.handler.0, Ordering::Relaxed);
    PAGER.store(identity.pager.0, Ordering::Relaxed);
}

/// Runs `main` of the program `name`. [`entry!`](macro@crate::entry) calls it.
pub fn run(name: &'static str, main: fn() -> i32) -> i32 {
    *NAME.lock() = name;
    crate::logger::install();
    main()
}

/// The program's name.
pub fn name() -> &'static str {
    *NAME.lock()
}

/// Word that the first thread found in `rdi`.
pub fn argument() -> u64 {
    ARGUMENT.load(Ordering::Relaxed)
}

/// Thread that started this program: its registry of names and where it ends.
pub fn home() -> Uid {
    Uid(HOME.load(Ordering::Relaxed))
}

/// Pager of this program.
pub fn own_pager() -> Uid {
    Uid(PAGER.load(Ordering::Relaxed))
}

/// The argument text, as the program's starter gave it, without the [environment](crate::environment) behind it.
pub fn argument_text() -> String {
    let mut text = all_text();
    text.truncate(text.find('\0').unwrap_or(text.len()));
    text
}

/// Argument text and environment.
pub(crate) fn all_text() -> String {
    let len = (argument() as usize).min(api::process::ARGUMENTS_LEN_MAX);
    if len == 0 {
        return String::new();
    }
    let mut bytes = vec![0; len];
    let told = api::process::arguments(home(), &mut bytes).unwrap_or(0);
    bytes.truncate(told);
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The argument text, cut at white space.
pub fn arguments() -> Vec<String> {
    argument_text().split_whitespace().map(String::from).collect()
}

/// Replaces the ways to print and to end.
pub fn set_hooks(hooks: &'static Hooks) {
    HOOKS.store(core::ptr::from_ref(hooks).cast_mut(), Ordering::Release);
}

pub(crate) fn hooks() -> Option<&'static Hooks> {
    // SAFETY: the pointer is null or came from a shared reference that lives forever.
    unsafe { HOOKS.load(Ordering::Acquire).as_ref() }
}

/// Ends the program.
pub fn exit(status: i32) -> ! {
    if let Some(hooks) = hooks() {
        (hooks.exit)(status)
    }
    // Home may be busy with its own end; without it there is nobody left to tell.
    let _ = api::process::exit(home(), status);
    loop {
        let _ = sys::thread_destroy(Uid::NIL);
    }
}
