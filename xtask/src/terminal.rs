//! The terminal that the person sits at: handed to the guest, and always restored.

use rustix::termios::{self, LocalModes, OptionalActions, Termios};
use std::io;
use std::sync::{Mutex, PoisonError};

/// The modes to return to, while the terminal is the guest's.
static SAVED: Mutex<Option<Termios>> = Mutex::new(None);

/// Ends the guest's hold of the terminal when it is dropped.
#[derive(Debug)]
pub struct Handed(());

/// Hands the terminal to the guest: every key goes there at once and unchanged, the guest does the echo.
///
/// Output keeps its usual treatment, so a guest's bare newline is one. Returns `None` if standard input is no
/// terminal.
pub fn hand_over() -> Option<Handed> {
    let usual = termios::tcgetattr(io::stdin()).ok()?;
    let mut modes = usual.clone();
    modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
    modes.input_modes -= termios::InputModes::IXON;
    let mut saved = SAVED.lock().unwrap_or_else(PoisonError::into_inner);
    termios::tcsetattr(io::stdin(), OptionalActions::Now, &modes).ok()?;
    *saved = Some(usual);
    Some(Handed(()))
}

/// Restores the terminal if it is the guest's.
pub fn restore() {
    if let Some(usual) = SAVED.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Drain, &usual);
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        restore();
    }
}
