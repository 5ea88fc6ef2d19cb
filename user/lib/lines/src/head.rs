//! First lines of files.

use crate::{Fault, Filter, Out};
use alloc::format;
use core::ops::ControlFlow;

/// The program `head`.
#[derive(Clone, Debug)]
pub struct Head {
    count: u64,
    /// Lines of the file that are still to be shown.
    left: u64,
    is_first: bool,
}

impl Head {
    /// One that shows so many lines of each file.
    pub fn new(count: u64) -> Head {
        Head { count, left: count, is_first: true }
    }
}

impl Filter for Head {
    fn begin(&mut self, name: Option<&str>, out: &mut Out) {
        if let Some(name) = name {
            let gap = if self.is_first { "" } else { "\n" };
            out(format!("{gap}==> {name} <==\n").as_bytes());
        }
        (self.left, self.is_first) = (self.count, false);
    }

    fn take(&mut self, piece: &[u8], out: &mut Out) -> Result<ControlFlow<()>, Fault> {
        let mut end = 0;
        for part in piece.split_inclusive(|&byte| byte == b'\n') {
            if self.left == 0 {
                break;
            }
            end += part.len();
            self.left -= u64::from(part.ends_with(b"\n"));
        }
        out(&piece[..end]);
        Ok(if self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}
