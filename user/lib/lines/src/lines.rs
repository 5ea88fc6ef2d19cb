//! Pieces cut into lines.

use crate::Fault;
use alloc::vec::Vec;

/// Bytes of a line, at most.
pub const LINE_MAX: usize = 1 << 20;

/// A line that has not ended, as far as it has come.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
    /// Lines that have ended.
    count: u64,
}

impl Lines {
    /// Gives each line that ends in a piece, without its end.
    pub fn take(
        &mut self,
        piece: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        for part in piece.split_inclusive(|&byte| byte == b'\n') {
            let (part, has_ended) = match part.strip_suffix(b"\n") {
                Some(line) => (line, true),
                None => (part, false),
            };
            if self.begun.len() + part.len() > LINE_MAX {
                return Err(Fault::Long(self.count + 1));
            }
            // A line that lies in the piece is not copied.
            if !has_ended || !self.begun.is_empty() {
                self.begun.try_reserve(part.len())?;
                self.begun.extend_from_slice(part);
            }
            if has_ended {
                self.count += 1;
                each(if self.begun.is_empty() { part } else { &self.begun })?;
                self.begun.clear();
            }
        }
        Ok(())
    }

    /// There is nothing more. Gives the last line if it has no end, and counts from the beginning again.
    pub fn end(&mut self, each: impl FnOnce(&[u8]) -> Result<(), Fault>) -> Result<(), Fault> {
        let Lines { begun, .. } = core::mem::take(self);
        if begun.is_empty() { Ok(()) } else { each(&begun) }
    }
}
