//! Waiting for what runs in the foreground, which Ctrl-C ends.
//!
//! While the shell's thread waits for a program, a second one waits for the key.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use rt::api::Failure;
use rt::api::process::{self, Outcome};
use rt::sys::{self, Error, TaskId, Uid};
use rt::thread::{self, Handle};

/// How long the second thread may take to notice that the program has ended, if it misses the call, in µs.
const PATIENCE_US: u64 = 200_000;

/// Waits for the end of a program; a person can end it by Ctrl-C.
pub fn wait(task: TaskId, is_interactive: bool) -> rt::api::Result<Option<Outcome>> {
    let watcher = watch(alloc::vec![task], is_interactive);
    let outcome = process::wait(rt::home(), task, u64::MAX);
    drop(watcher);
    outcome
}

/// Lets a person end programs by Ctrl-C, until what comes back is dropped.
pub fn watch(tasks: Vec<TaskId>, is_interactive: bool) -> Option<Watcher> {
    is_interactive.then(|| Watcher::start(tasks)).flatten()
}

/// The second thread. Dropping it ends it.
pub struct Watcher {
    is_over: Arc<AtomicBool>,
    thread: Handle<()>,
}

impl Watcher {
    /// `None` if there is no memory for it: then Ctrl-C is missing, and the program runs all the same.
    fn start(tasks: Vec<TaskId>) -> Option<Watcher> {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = is_over.clone();
        let priority = sys::thread_info(Uid::NIL).ok()?.priority;
        let thread = thread::spawn(priority, move || {
            while !seen.load(Ordering::Relaxed) {
                match rt::io::watch_interrupt_key(PATIENCE_US) {
                    Ok(()) => {
                        for &task in &tasks {
                            // Fails only if the program has just ended by itself.
                            let _ = process::kill(rt::home(), task);
                        }
                    }
                    Err(Failure::Kernel(Error::ReceiveTimeout | Error::ReceiveAborted)) => {}
                    Err(_) => rt::time::sleep(Duration::from_micros(PATIENCE_US)),
                }
            }
        });
        Some(Watcher { is_over, thread: thread.ok()? })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Fails if the thread waits for nothing just now; then it sees the flag.
        let _ = sys::thread_abort(self.thread.uid());
    }
}
