//! Budgets: memory of this program that all processes of a sandbox share, so that none of them fills it.

use alloc::rc::Rc;
use core::cell::Cell;

/// Bytes of which shares can be had. A copy is the same budget.
#[derive(Clone, Debug)]
pub struct Budget {
    used: Rc<Cell<usize>>,
    max: usize,
}

/// Bytes of a budget, which has them back at the end of this.
#[derive(Debug)]
pub struct Share {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    /// So many bytes.
    pub fn new(max: usize) -> Budget {
        Budget { used: Rc::new(Cell::new(0)), max }
    }

    /// A share, if there is so much left.
    pub fn take(&self, bytes: usize) -> Option<Share> {
        let mut share = Share { budget: self.clone(), bytes: 0 };
        share.resize(bytes).then_some(share)
    }
}

impl Share {
    /// Makes it smaller, or larger if there is so much left. Whether it has that size now.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let others = self.budget.used.get().saturating_sub(self.bytes);
        let sum = others.saturating_add(bytes);
        if bytes > self.bytes && sum > self.budget.max {
            return false;
        }
        self.budget.used.set(sum);
        self.bytes = bytes;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.resize(0);
    }
}
