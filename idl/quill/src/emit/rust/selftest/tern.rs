extern crate alloc;

/// Bytes of a text or list without a bound.
const UNBOUNDED_BYTES: usize = 4096;

/// A value that lies elsewhere.
type Boxed<T> = alloc::boxed::Box<T>;

/// Values of any type.
type Pool = alloc::vec::Vec<rt::Shared<dyn ::core::any::Any + Send + Sync>>;

/// Words of something; none if these are too many.
fn written(put: impl FnOnce(&mut rt::Out)) -> Option<alloc::vec::Vec<u64>> {
    let mut words = alloc::vec![0; 2048];
    let mut out = rt::Out::new(&mut words);
    put(&mut out);
    let count = out.finish()?;
    words.truncate(count);
    Some(words)
}

/// A text that can be made of characters.
pub trait Write: Sized {
    /// The most bytes that it can hold.
    const MAX: usize;
    /// A text, if it is not too long.
    fn write(text: &str) -> Option<Self>;
}

impl<const N: usize> Write for ::stub::Text<N> {
    const MAX: usize = N;
    fn write(text: &str) -> Option<Self> {
        ::stub::Text::new(text)
    }
}

impl Write for alloc::string::String {
    const MAX: usize = UNBOUNDED_BYTES;
    fn write(text: &str) -> Option<Self> {
        Some(text.into())
    }
}

/// A list that can be made of values.
pub trait Fill<T>: Sized {
    /// The most values that it can hold.
    const MAX: usize;
    /// So many values.
    fn fill(length: usize, value: impl FnMut() -> T) -> Self;
}

impl<T: ::stub::Blank, const N: usize> Fill<T> for ::stub::List<T, N> {
    const MAX: usize = N;
    fn fill(length: usize, mut value: impl FnMut() -> T) -> Self {
        ::stub::List::try_fill(length, || Ok(value())).unwrap_or_else(|_| panic!("it fits"))
    }
}

impl<T> Fill<T> for alloc::vec::Vec<T> {
    const MAX: usize = usize::MAX;
    fn fill(length: usize, value: impl FnMut() -> T) -> Self {
        ::core::iter::repeat_with(value).take(length).collect()
    }
}

impl Random {
    /// The length of a list with a bound: now and then one that takes more than a page; but a short one in another list or in
    /// a union, which have to fit into a message together.
    fn any_length(&mut self, bound: usize) -> usize {
        match (self.depth, self.below(8)) {
            (0, 0) => bound.min(5000),
            (0, _) => self.length(bound),
            (depth, _) => self.below(bound.min(9 / depth) + 1),
        }
    }

    /// Text of at most so many characters.
    pub fn text<T: Write>(&mut self, bound: usize) -> T {
        let mut bytes = alloc::vec![0; T::MAX];
        let mut at = 0;
        for _ in 0..self.any_length(bound) {
            let character = self.character();
            if let Some(place) = bytes.get_mut(at..at + character.len_utf8()) {
                at += character.encode_utf8(place).len();
            }
        }
        ::core::str::from_utf8(&bytes[..at]).ok().and_then(T::write).unwrap_or_else(|| panic!("it fits"))
    }

    /// A list of so many values.
    pub fn exactly<T, L: Fill<T>>(&mut self, length: usize, mut value: impl FnMut(&mut Random) -> T) -> L {
        self.depth += 1;
        let list = L::fill(length, || value(self));
        self.depth -= 1;
        list
    }

    /// A list of at most so many values.
    pub fn list<T, L: Fill<T>>(&mut self, bound: usize, mut value: impl FnMut(&mut Random) -> T) -> L {
        let bound = if bound == usize::MAX { UNBOUNDED_BYTES / size_of::<T>() } else { bound };
        let length = self.any_length(bound.min(L::MAX));
        self.depth += 1;
        let list = L::fill(length, || value(self));
        self.depth -= 1;
        list
    }
}

impl Random {
    /// Anything at all: a label, words, and whether these say what is in memory.
    fn nonsense(&mut self, block: &mut [u64; 80]) -> (u32, ::stub::Words, bool) {
        let label = [u32::MAX, u32::MAX, 1, 2, self.next() as u32][self.below(5)];
        let mut words = ::core::array::from_fn(|_| match self.below(3) {
            0 => self.number(),
            1 => self.next() % 64,
            _ => 0,
        });
        let long = self.below(3) > 0;
        if long {
            self.block(block, &mut words);
        }
        (label, words, long)
    }

    /// A part in memory: some words, perhaps strings, and words of the message that may be their number.
    fn block(&mut self, block: &mut [u64; 80], words: &mut ::stub::Words) {
        let (count, strings) = (self.below(65), [0, 0, 1, 2][self.below(4)]);
        block[..count].iter_mut().for_each(|word| *word = self.next() & 0x7f7f_ff7f_7f7f_7f7f);
        for string in 0..strings {
            let len = self.below(80) as u64;
            block[count + 2 * string] = ::stub::address(&BYTES);
            block[count + 2 * string + 1] = len;
        }
        words[0] = ::stub::dope(count as u64, strings as u64);
        words[1] = ::stub::address(&*block);
        for word in &mut words[2..4] {
            if self.below(2) == 0 {
                *word = (8 * count + self.below(9)) as u64;
            }
        }
    }
}

/// What damaged strings are of.
static BYTES: [u8; 80] = [b'x'; 80];

/// What a run has found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Calls with values.
    pub calls: u64,
    /// How many of them ended with an exception.
    pub exceptions: u64,
    /// Calls that were answered with nonsense.
    pub nonsense: u64,
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
    /// Notes the end of a call. Of an insane server's answer it matters only that there is an end.
    fn call(&mut self, method: &'static str, sane: bool, good: bool, exception: bool) {
        if !sane {
            self.nonsense += 1;
            return;
        }
        self.calls += 1;
        self.exceptions += u64::from(exception);
        if !good {
            self.wrong += 1;
            self.first_wrong.get_or_insert((method, self.calls));
        }
    }

    /// Sends random words under labels whose last bits, of which only some servers say something, are often random too, some
    /// with a part in memory: each must get an answer, if only the kernel's.
    fn damage<C: ::stub::Callee>(&mut self, seed: u64, server: C, labels: &[u32], rounds: u64) {
        let mut random = Random::new(seed, u64::MAX);
        let mut block = [0; 80];
        for _ in 0..rounds {
            let last = if random.truth() { random.next() as u32 & 0xffff } else { 0 };
            let label = labels[random.below(labels.len())] | last;
            let mut words: ::stub::Words = ::core::array::from_fn(|_| match random.below(3) {
                0 => random.number(),
                1 => random.next() % 8,
                _ => 0,
            });
            let long = random.below(2) == 0;
            let (rax, _) = if long {
                random.block(&mut block, &mut words);
                ::stub::Callee::call_long::<10, true>(server, label, words)
            } else {
                ::stub::Callee::call::<11, true>(server, label, words)
            };
            self.damaged += 1;
            let done = rax & C::LONG_DONE == C::LONG_DONE;
            match if done { Ok((0, false)) } else { ::stub::reply_of::<C>(rax) } {
                Ok((::stub::MALFORMED | ::stub::NO_METHOD, false)) => self.refused += 1,
                // It was well, and what was to be handed over found no window.
                Ok(_) | Err(::stub::Failure::Kernel(::sys::Error::NoWindow)) => {}
                Err(::stub::Failure::Kernel(_)) if long => self.refused += 1,
                Err(_) => {
                    self.wrong += 1;
                    self.first_wrong.get_or_insert(("a damaged request", self.damaged));
                }
            }
        }
    }
}
