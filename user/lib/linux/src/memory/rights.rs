//! Rights to pages.

use core::ops::BitOr;

/// Rights to a page: bits as in `PROT_READ` and its like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rights(pub u8);

impl Rights {
    /// Nothing.
    pub const NONE: Rights = Rights(0);
    /// Read.
    pub const READ: Rights = Rights(1);
    /// Write.
    pub const WRITE: Rights = Rights(2);
    /// Execute.
    pub const EXECUTE: Rights = Rights(4);
    /// Read and write.
    pub const READ_WRITE: Rights = Rights(3);

    /// Rights as a processor has them: there, all that can be written or executed can be read.
    pub(super) const fn in_processor(self) -> Rights {
        if self.0 == 0 { self } else { Rights(self.0 | Rights::READ.0) }
    }

    /// Whether it has all of these.
    pub const fn has(self, wanted: Rights) -> bool {
        self.0 & wanted.0 == wanted.0
    }
}

impl BitOr for Rights {
    type Output = Rights;

    fn bitor(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }
}
