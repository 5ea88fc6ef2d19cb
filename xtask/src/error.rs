//! Errors of the tools: one sentence for a person and an exit code for a program.

use std::fmt;

/// Exit code of a wrong command line.
pub const USAGE: u8 = 2;

/// Exit code when the machine itself failed, as opposed to what ran on it.
pub const MACHINE_FAILED: u8 = 125;

/// A failure: one sentence, and the exit code it leads to.
#[derive(Debug)]
pub struct Error {
    /// Message, without a trailing newline.
    pub message: String,
    /// The exit code of the command.
    pub exit_code: u8,
}

/// The result of everything that can fail here.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A failure with exit code 1.
    pub fn new(message: impl Into<String>) -> Error {
        Error { message: message.into(), exit_code: 1 }
    }

    /// A wrong command line.
    pub fn usage(message: impl Into<String>) -> Error {
        Error { message: message.into(), exit_code: USAGE }
    }

    /// A machine that did not come to an orderly end.
    pub fn machine(message: impl Into<String>) -> Error {
        Error { message: message.into(), exit_code: MACHINE_FAILED }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

/// Adds what was being done to an error of the standard library.
pub trait Context<T> {
    /// `doing` completes the sentence "cannot …".
    fn context(self, doing: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: fmt::Display> Context<T> for std::result::Result<T, E> {
    fn context(self, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::new(format!("cannot {}: {error}", doing())))
    }
}
