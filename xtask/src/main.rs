//! The command behind `./tern`: hands the verb over and turns its result into an exit code.

use std::process::ExitCode;
use xtask::{cli, interrupt, terminal};

fn main() -> ExitCode {
    interrupt::install();
    let outcome = cli::parse().and_then(cli::Verb::perform);
    terminal::restore();
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("tern: {error}");
            ExitCode::from(error.exit_code)
        }
    }
}
