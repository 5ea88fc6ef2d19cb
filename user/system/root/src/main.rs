//! `root`: starts, names, watches and ends all programs. It is the chief of their tasks and the handler of their
//! exceptions; what it allows whom is one table, [`policy`].
//!
//! Reading order: [`policy`]; [`supervisor`], the state and the loop; then what the loop calls: [`programs`] (start
//! and end), [`requests`] (what programs ask for), [`texts`], [`keeper`] (the thread that pages `mm`), [`output`], [`options`].
//!
//! Order of waiting, so that nothing waits in a circle: programs call the main thread; the main thread calls
//! `mm` and, with a time limit, the console; `mm` calls the keeper; the keeper calls σ0.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod keeper;
mod options;
mod output;
mod policy;
mod programs;
mod requests;
mod supervisor;
mod texts;

use options::Options;
use supervisor::Supervisor;

rt::entry!(main);

fn main() -> i32 {
    output::install_hooks();
    let options = Options::parse(&rt::argument_text());
    let mut supervisor = match Supervisor::new(options) {
        Ok(supervisor) => supervisor,
        Err(failure) => {
            rt::println!("root: cannot start: {failure}");
            return 1;
        }
    };
    supervisor.start_system();
    supervisor.run()
}
