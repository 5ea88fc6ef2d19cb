//! Memory of long texts: arguments of programs.

use crate::policy;
use crate::supervisor::Program;
use core::sync::atomic::{AtomicUsize, Ordering};
use holdings::{Memory, Text};
use rt::api::Status;
use rt::api::process::ARGUMENTS_LOG2;
use rt::frames::{Block, Supply, Upstream};
use rt::sys::TaskId;

/// Memory of one long text. It comes from σ0, and goes back there when it is dropped.
#[derive(Debug)]
pub struct Piece(Option<Block>);

/// How many there are.
static PIECES: AtomicUsize = AtomicUsize::new(0);

impl Piece {
    /// `None` if there are as many as there may be, or if the machine has no memory for it.
    pub fn new() -> Option<Piece> {
        if PIECES.load(Ordering::Relaxed) >= policy::LONG_TEXTS_MAX {
            return None;
        }
        let block = Upstream(rt::home()).block(ARGUMENTS_LOG2)?;
        PIECES.fetch_add(1, Ordering::Relaxed);
        Some(Piece(Some(block)))
    }

    /// Memory of one more text of a program, which has so many that are not yet arguments of another one.
    pub fn of(programs: &[Program], task: TaskId, staged: usize) -> Option<Piece> {
        let is_of = |program: &&Program| program.parent == task && program.arguments.is_long();
        let count = staged + programs.iter().filter(is_of).count();
        if count < policy::LONG_TEXTS_OF_ONE { Piece::new() } else { None }
    }
}

impl Memory for Piece {
    fn bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], Block::bytes)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_mut().map_or(&mut [], Block::bytes_mut)
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if let Some(mut block) = self.0.take() {
            // The next owner has no business with it.
            block.bytes_mut().fill(0);
            Upstream(rt::home()).put(block);
            PIECES.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A text that `root` has made itself.
pub fn text(from: &str) -> Result<Text<Piece>, Status> {
    let mut text = Text::default();
    text.append(from.as_bytes(), Piece::new)?;
    Ok(text)
}
