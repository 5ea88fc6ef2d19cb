//! Random numbers, amounts of work, and the search for a short program that fails.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Marsaglia's xorshift: fast, and the same everywhere.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    /// A generator; any seed will do.
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.next();
        random
    }

    /// 64 random bits.
    #[allow(clippy::should_implement_trait, reason = "an endless iterator would hide the word")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        ((self.next() >> 32) * end) >> 32
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of the elements.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// How many steps a test makes: `steps`, ten times as many in full, and next to none under Miri, which runs a thousand
/// times slower.
pub fn amount(steps: usize) -> usize {
    let full = std::env::var("TERN_FULL").is_ok_and(|value| value != "0");
    if full { steps * 10 } else { steps }
}

/// The first seed of a test.
pub fn first_seed() -> u64 {
    std::env::var("TERN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// Runs programs of `len` operations, `steps` operations in all. If one fails, reports its seed and the shortest
/// part of it that fails too.
pub fn programs<Op: Clone + std::fmt::Debug>(
    name: &str,
    steps: usize,
    len: usize,
    mut make: impl FnMut(&mut Random) -> Op,
    mut run: impl FnMut(&[Op]),
) {
    for seed in first_seed()..first_seed() + steps.div_ceil(len) as u64 {
        try_seed(name, seed, len, &mut make, &mut run);
    }
}

fn try_seed<Op: Clone + std::fmt::Debug>(
    name: &str,
    seed: u64,
    len: usize,
    make: &mut dyn FnMut(&mut Random) -> Op,
    run: &mut dyn FnMut(&[Op]),
) {
    let mut random = Random::new(seed);
    let program: Vec<Op> = (0..len).map(|_| make(&mut random)).collect();
    let fails =
        |program: &[Op], run: &mut dyn FnMut(&[Op])| catch_unwind(AssertUnwindSafe(|| run(program))).is_err();
    if !fails(&program, run) {
        return;
    }
    if std::env::var("TERN_SHORTEN").is_ok_and(|value| value == "0") {
        panic!("{name}: seed {seed} fails");
    }
    eprintln!(
        "{name}: seed {seed} fails; looking for a shorter program (the messages that follow are from that)"
    );
    let short = shorten(program, |program| fails(program, run));
    eprintln!("{name}: TERN_SEED={seed} fails with these {} operations:\n{short:#?}", short.len());
    eprintln!("(TERN_TRACE=1 prints each step)");
    run(&short);
    panic!("{name}: seed {seed} failed, but not again");
}

/// [`programs`] on all processors, each with its part of the seeds.
pub fn programs_in_parallel<Op: Clone + std::fmt::Debug>(
    name: &str,
    steps: usize,
    len: usize,
    make: impl Fn(&mut Random) -> Op + Sync,
    run: impl Fn(&[Op]) + Sync,
) {
    let (first, count) = (first_seed(), steps.div_ceil(len) as u64);
    let next = AtomicU64::new(first);
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get() as u64).min(count);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                break;
            }
            let tried = catch_unwind(AssertUnwindSafe(|| {
                try_seed(name, seed, len, &mut |random| make(random), &mut |program| run(program));
            }));
            if let Err(what) = tried {
                // It has been said why; the others need not go on.
                next.store(first + count, Ordering::Relaxed);
                resume_unwind(what);
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap_or_else(|what| resume_unwind(what)));
    });
}

/// Leaves parts out as long as the rest still fails: halves first, single operations last.
pub(crate) fn shorten<Op: Clone>(mut program: Vec<Op>, mut fails: impl FnMut(&[Op]) -> bool) -> Vec<Op> {
    let mut part = program.len().div_ceil(2);
    let started = std::time::Instant::now();
    while part > 0 && started.elapsed().as_secs() < 20 {
        let mut at = 0;
        while at < program.len() {
            let mut shorter = program.clone();
            shorter.drain(at..(at + part).min(program.len()));
            if !shorter.is_empty() && fails(&shorter) { program = shorter } else { at += part }
        }
        part /= 2;
    }
    program
}
