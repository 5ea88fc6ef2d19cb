//! The command `doors`: how many calls and returns through doors took which way, by size and by task (row D17).

use crate::shell::Shell;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use rt::api::Result;
use rt::api::process;
use rt::println;
use rt::sys::TaskId;
use rt::sys::abi::call::{DOOR_ROWS, DOOR_SIZES};

/// The command.
pub fn doors(_: &mut Shell, _: &[&str]) -> i32 {
    match show() {
        Ok(()) => 0,
        Err(failure) => {
            println!("doors: {failure}");
            1
        }
    }
}

fn show() -> Result<()> {
    let all = counts(TaskId::NIL)?;
    if all.iter().flatten().all(|&count| count == 0) {
        println!("no call is counted: 'trace on' begins to");
        return Ok(());
    }
    let sizes = DOOR_SIZES.iter().map(|most| format!("<= {most}"));
    print_row("BYTES", sizes.chain([format!("> {}", DOOR_SIZES[DOOR_SIZES.len() - 1])]));
    for (name, row) in DOOR_ROWS.iter().zip(&all) {
        print_row(name, row.iter().map(|count| format!("{count}")));
    }
    let mut is_first = true;
    for index in 0.. {
        let Some(task) = process::task_at(rt::home(), index)? else { break };
        // Of a task that has ended nothing is known.
        let sums: Vec<u32> = counts(task.id())?.iter().map(|row| row.iter().sum()).collect();
        if sums.iter().any(|&sum| sum != 0) {
            if is_first {
                println!();
                print_row("TASK", DOOR_ROWS.iter().map(|&name| String::from(name)));
                is_first = false;
            }
            let name = format!("{} {}", task.id().number(), task.program().as_str());
            print_row(&name, sums.iter().map(|sum| format!("{sum}")));
        }
    }
    Ok(())
}

/// All rows, of a task or, if it is nil, of all.
fn counts(task: TaskId) -> Result<Vec<[u32; DOOR_SIZES.len() + 1]>> {
    let rows = 0..DOOR_ROWS.len();
    rows.map(|row| Ok(process::doors(rt::home(), task, row)?.unwrap_or_default())).collect()
}

fn print_row(name: &str, cells: impl Iterator<Item = String>) {
    let cells: Vec<_> = cells.map(|cell| format!("{cell:>15}")).collect();
    println!("{name:<16}{}", cells.concat());
}
