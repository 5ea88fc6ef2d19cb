//! The command `quill-lsp`, which `quill lsp` starts: a language server for interface files, over standard input and output.
//!
//! In reading order: [`wire`] has the frame of a message, [`server`] the conversation, [`settings`] what a client may ask for,
//! [`documents`] the open texts and their addresses, [`text`] positions. [`analysis`] runs quill over a document;
//! [`diagnostics`] says what it found. [`outline`] finds what a file declares, in half-typed text too; [`resolve`] finds what a
//! name means by it, and [`hover`] and [`symbols`] show it.
//!
//! A text is compiled when a client is silent for the moment: of several changes that wait, the last one counts.

#![forbid(unsafe_code)]

use std::process::ExitCode;

mod analysis;
mod diagnostics;
mod documents;
mod hover;
mod outline;
mod resolve;
mod server;
mod settings;
mod symbols;
mod text;
mod wire;

const HELP: &str = "\
A language server for interface files, over standard input and output. Editors start it.

Usage: quill lsp

initializationOptions of the client, all of them optional:
  kernel   what carries the messages, for layouts and costs (tern-ipc); if it is
           given, messages that it cannot carry are errors
  include  directories to search for included and imported files
  define   macros, NAME or NAME=VALUE
  dialect  corba or dce; guessed from each file if not given

Exit codes: 0 after shutdown and exit, 1 after exit alone or when the client
goes away, 2 when a message is malformed or the command line is wrong.
";

/// The client did not say goodbye.
const ABRUPT: u8 = 1;
/// A message is malformed, or the command line is wrong.
const MALFORMED: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        None => {}
        // Editors' libraries add it to the command line.
        Some("--stdio") if arguments.len() == 1 => {}
        Some("--help" | "-h") => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Some(other) => {
            eprintln!("error: unexpected argument `{other}`; `quill lsp --help` says what there is");
            return ExitCode::from(MALFORMED);
        }
    }
    match server::serve() {
        Ok(server::End::Exit) => ExitCode::SUCCESS,
        Ok(server::End::Abrupt) => ExitCode::from(ABRUPT),
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(MALFORMED)
        }
    }
}
