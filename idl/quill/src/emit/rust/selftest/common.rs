/// Random values that both sides can make: the same number of a call gives the same values.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
    depth: usize,
    /// Values of this call that may be shared.
    pool: Pool,
}

/// Values that a call shares at most, fewer than a message can hold.
const POOL_MAX: usize = 40;

/// A server answers with this label, and up, when a value is not the one that was sent.
pub const WRONG: u32 = 0xfffe_0000;

impl Random {
    /// Values for a call.
    pub fn new(seed: u64, call: u64) -> Random {
        let mut random = Random { state: seed ^ call.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1, depth: 0, pool: Pool::new() };
        random.state = random.state.max(1);
        (0..4).for_each(|_| _ = random.next());
        random
    }

    /// 64 bits.
    pub fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// A number below another one, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit
    }

    /// A number that says how much there is of something, tried so many times: a small one, unless the size is what is left of it behind other things.
    pub fn size(&mut self, tries: usize) -> usize {
        let limit = if tries < 100 { 5 } else { [5, 80, 1500][self.below(3)] };
        self.below(limit)
    }

    /// A number, often one at the edge of its range.
    pub fn number(&mut self) -> u64 {
        let bits = self.next();
        match self.below(8) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => 1 << (bits % 64),
            4 => (1 << (bits % 64)) - 1,
            _ => bits,
        }
    }

    /// A truth value.
    pub fn truth(&mut self) -> bool {
        self.below(2) == 1
    }

    /// A finite number: others do not equal themselves.
    pub fn single(&mut self) -> f32 {
        let value = f32::from_bits(self.next() as u32);
        if value.is_finite() { value } else { -0.5 }
    }

    /// A finite number of 64 bits.
    pub fn double(&mut self) -> f64 {
        let value = f64::from_bits(self.next());
        if value.is_finite() { value } else { -0.5 }
    }

    /// A character of one to four bytes; never the one with number 0, which ends strings of C.
    pub fn character(&mut self) -> char {
        ['a', 'Z', '7', ' ', '"', '\\', 'é', 'ß', '€', '\u{fffd}', '𝄞', '\u{10ffff}'][self.below(12)]
    }

    /// A value, or none; none within many others.
    pub fn maybe<T>(&mut self, mut value: impl FnMut(&mut Random) -> T) -> Option<T> {
        if self.depth > 3 || self.below(3) == 0 {
            return None;
        }
        self.depth += 1;
        let some = value(self);
        self.depth -= 1;
        Some(some)
    }

    /// A value, or none, or one that is there already.
    pub fn shared<T: Send + Sync + 'static>(&mut self, value: impl FnMut(&mut Random) -> T) -> Option<rt::Shared<T>> {
        let again = self.below(3) == 0 || self.pool.len() >= POOL_MAX;
        if again && !self.pool.is_empty() {
            let begin = self.below(self.pool.len());
            let (front, back) = self.pool.split_at(begin);
            let known = back.iter().chain(front).find_map(|one| one.clone().downcast().ok());
            if known.is_some() || self.pool.len() >= POOL_MAX {
                return known;
            }
        }
        let fresh = rt::Shared::new(self.maybe(value)?);
        self.pool.push(fresh.clone());
        Some(fresh)
    }

    /// Whether there is such a union at all.
    pub fn can<T>(&mut self, mut value: impl FnMut(&mut Random) -> T, mut fits: impl FnMut(&T) -> bool) -> bool {
        (0..100).any(|_| fits(&value(self)))
    }

    /// A union with a given discriminator. Its branches are few.
    pub fn labelled<T>(&mut self, mut value: impl FnMut(&mut Random) -> T, mut fits: impl FnMut(&T) -> bool) -> T {
        for _ in 0..1000 {
            let some = value(self);
            if fits(&some) {
                return some;
            }
        }
        panic!("no value of a union has that discriminator");
    }

    /// The length of a list with a bound; a bound that is small is met often.
    fn length(&mut self, bound: usize) -> usize {
        if self.depth > 2 {
            return 0;
        }
        match self.below(4) {
            0 => bound.min(40),
            1 => 0,
            _ => self.below(bound.min(9) + 1),
        }
    }
}

/// Whether two values are the same.
pub fn same<T: PartialEq + ?Sized>(one: &T, other: &T) -> bool {
    one == other
}

/// Whether two values have the same parts in common.
pub fn alike<T: rt::Wire>(one: &T, other: &T) -> bool {
    written(|out| one.put(out)) == written(|out| other.put(out))
}

/// Whether two lists have the same parts in common.
pub fn alike_lists<T: rt::Wire>(one: &[T], other: &[T]) -> bool {
    written(|out| rt::put_elements(one, out)) == written(|out| rt::put_elements(other, out))
}

/// What a server knows: from where on values come, how many calls there were, which of its arguments was wrong, and what it gave
/// references to.
struct Known {
    seed: u64,
    calls: u64,
    wrong: u32,
    kept: Kept,
}

impl Known {
    /// Before the first call.
    fn new(seed: u64) -> Known {
        Known { seed, calls: 0, wrong: 0, kept: Kept::default() }
    }
}
