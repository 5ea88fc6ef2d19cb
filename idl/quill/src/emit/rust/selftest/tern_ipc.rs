impl Random {
    /// Text of at most so many characters.
    pub fn text<const N: usize>(&mut self, bound: usize) -> ::stub::Text<N> {
        let mut bytes = [0; N];
        let mut at = 0;
        for _ in 0..self.length(bound) {
            let character = self.character();
            if let Some(place) = bytes.get_mut(at..at + character.len_utf8()) {
                at += character.encode_utf8(place).len();
            }
        }
        ::core::str::from_utf8(&bytes[..at]).ok().and_then(::stub::Text::new).unwrap_or_else(|| panic!("it fits"))
    }

    /// A list of at most so many values.
    pub fn list<T: ::stub::Piece + Copy, const N: usize>(
        &mut self,
        bound: usize,
        mut value: impl FnMut(&mut Random) -> T,
    ) -> ::stub::List<T, N> {
        let length = self.length(bound.min(N));
        let mut values = [T::ANY; N];
        values[..length].iter_mut().for_each(|place| *place = value(self));
        ::stub::List::new(&values[..length]).unwrap_or_else(|| panic!("it fits"))
    }
}

/// What a run has found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Calls with values.
    pub calls: u64,
    /// How many of them ended with an exception.
    pub exceptions: u64,
    /// Requests of random words.
    pub damaged: u64,
    /// How many of them were refused.
    pub refused: u64,
    /// What went wrong.
    pub wrong: u64,
    /// The first method of which something did.
    pub first_wrong: Option<(&'static str, u64)>,
}

impl Report {
    /// Notes the end of a call.
    fn call(&mut self, method: &'static str, good: bool, exception: bool) {
        self.calls += 1;
        self.exceptions += u64::from(exception);
        if !good {
            self.wrong += 1;
            self.first_wrong.get_or_insert((method, self.calls));
        }
    }

    /// Sends random words under labels whose last bits, of which nothing is said, are random too: each must get an answer.
    fn damage(&mut self, seed: u64, server: ::stub::Uid, labels: &[u32], rounds: u64) {
        let mut random = Random::new(seed, u64::MAX);
        for _ in 0..rounds {
            let label = labels[random.below(labels.len())] | random.next() as u32 & 0xffff;
            let words: ::stub::Words = ::core::array::from_fn(|_| match random.below(3) {
                0 => random.number(),
                1 => random.next() % 8,
                _ => 0,
            });
            let (rax, _) = ::stub::call::<11>(server, label, words);
            self.damaged += 1;
            match if rax == ::stub::DONE { Ok(0) } else { ::stub::label_of(rax) } {
                Ok(::stub::MALFORMED | ::stub::NO_METHOD) => self.refused += 1,
                Ok(_) => {}
                Err(_) => {
                    self.wrong += 1;
                    self.first_wrong.get_or_insert(("a damaged request", self.damaged));
                }
            }
        }
    }
}
