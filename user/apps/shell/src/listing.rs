//! Tables: tasks with their threads, memory.

use crate::shell::Shell;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use rt::api::memory::MemoryUse;
use rt::api::process::{self, TaskEntry, ThreadEntry};
use rt::println;
use rt::sys::Uid;
use rt::sys::abi::call::thread_op::STATES;

/// The command `ps`.
pub fn tasks(_: &mut Shell, _: &[&str]) -> i32 {
    let mut tasks = Vec::new();
    for index in 0.. {
        match process::task_at(rt::home(), index) {
            Ok(Some(task)) => tasks.push(task),
            Ok(None) => break,
            Err(failure) => {
                println!("ps: {failure}");
                return 1;
            }
        }
    }
    println!(
        "{:>5}  {:<16} {:>8}  {:<9} {:>4} {:>12} {:>7} {:>7}  {:<11} {}",
        "TASK", "NAME", "THREAD", "STATE", "PRIO", "CPU ms", "FAULTS", "PAGES", "KERNEL", "WORKS FOR"
    );
    tasks.iter().for_each(|task| list_threads(task, &tasks));
    0
}

/// One line per thread; the task's own figures stand in the first.
fn list_threads(task: &TaskEntry, all: &[TaskEntry]) {
    let mut previous = Uid::NIL;
    // A task that ends while it is listed has no more threads.
    while let Ok(Some(thread)) = process::thread_after(rt::home(), task.id(), previous) {
        print_thread(task, &thread, previous.is_nil(), all);
        previous = thread.uid;
    }
}

fn print_thread(task: &TaskEntry, thread: &ThreadEntry, is_first: bool, all: &[TaskEntry]) {
    let (number, name, pages, kernel) = if is_first {
        let kernel = format!("{}/{}", task.used, task.quota);
        (
            format!("{}", task.id().number()),
            String::from(task.program().as_str()),
            format!("{}", task.pages),
            kernel,
        )
    } else {
        Default::default()
    };
    let state = STATES.get(thread.state as usize).unwrap_or(&"?");
    let uid = format!("{:?}", thread.uid);
    let cpu = format!("{}.{:03}", thread.cpu_ns / 1_000_000, thread.cpu_ns / 1000 % 1000);
    let caller = all.iter().find(|caller| caller.task == thread.works_for);
    let caller = caller
        .map_or(String::new(), |caller| format!("{} ({})", caller.program().as_str(), caller.id().number()));
    let line = format!(
        "{number:>5}  {name:<16} {uid:>8}  {state:<9} {:>4} {cpu:>12} {:>7} {pages:>7}  {kernel:<11} {caller}",
        thread.priority, thread.faults
    );
    println!("{}", line.trim_end());
}

/// The command `mem`.
pub fn memory(_: &mut Shell, _: &[&str]) -> i32 {
    let entry = match process::memory(rt::home()) {
        Ok(entry) => entry,
        Err(failure) => {
            println!("mem: {failure}");
            return 1;
        }
    };
    println!("{:<28} {:>10} {:>10} {:>10}", "", "TOTAL KiB", "USED KiB", "FREE KiB");
    let row = |name, MemoryUse { total, free }: MemoryUse, unit: u64| {
        let kib = |value: u64| value * unit / 1024;
        println!("{name:<28} {:>10} {:>10} {:>10}", kib(total), kib(total.saturating_sub(free)), kib(free));
    };
    row("machine (sigma0)", entry.machine, 1);
    row("programs (mm)", entry.manager, 1);
    row("kernel memory (root)", entry.kernel, 4096);
    0
}
