//! Numbers that look random, and are equal in each run.

/// A generator that gives equal numbers for equal seeds.
pub(crate) struct Random(pub u64);

impl Random {
    /// A number below an end.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }

    /// One of these.
    pub(crate) fn of(&mut self, all: &[u64]) -> u64 {
        all[self.below(all.len() as u64) as usize]
    }
}
