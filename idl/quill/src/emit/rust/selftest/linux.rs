/// What a server gives references to: nothing.
type Kept = ();

/// A value that lies elsewhere.
type Boxed<T> = std::boxed::Box<T>;

/// Values of any type.
type Pool = Vec<rt::Shared<dyn std::any::Any + Send + Sync>>;

/// Bytes of something; none if these are too many.
fn written(put: impl FnOnce(&mut rt::Out)) -> Option<Vec<u8>> {
    let mut out = rt::Out::default();
    put(&mut out);
    out.finish().ok()
}

impl Random {
    /// Text of at most so many characters.
    pub fn text(&mut self, bound: usize) -> String {
        (0..self.length(bound)).map(|_| self.character()).collect()
    }

    /// A list of so many values.
    pub fn exactly<T>(&mut self, length: usize, mut value: impl FnMut(&mut Random) -> T) -> Vec<T> {
        self.depth += 1;
        let list = (0..length).map(|_| value(self)).collect();
        self.depth -= 1;
        list
    }

    /// A list of at most so many values.
    pub fn list<T>(&mut self, bound: usize, mut value: impl FnMut(&mut Random) -> T) -> Vec<T> {
        let length = self.length(bound);
        self.depth += 1;
        let list = (0..length).map(|_| value(self)).collect();
        self.depth -= 1;
        list
    }
}

/// Counts what is allocated and not given back.
struct Counting;

static LIVE: std::sync::atomic::AtomicIsize = std::sync::atomic::AtomicIsize::new(0);

// SAFETY: both calls go to the system's allocator unchanged.
unsafe impl std::alloc::GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        LIVE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { std::alloc::System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: std::alloc::Layout) {
        LIVE.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { std::alloc::System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A request, kept.
#[derive(Clone, Debug)]
pub struct Recorded {
    label: u32,
    body: Vec<u8>,
}

/// Keeps requests on their way to a server.
pub struct Tap<'a> {
    stream: std::os::unix::net::UnixStream,
    kept: &'a mut Vec<Recorded>,
}

impl rt::Transport for Tap<'_> {
    fn call(&mut self, label: u32, body: &[u8]) -> Result<(u32, Vec<u8>), rt::Failure> {
        self.kept.push(Recorded { label, body: body.to_vec() });
        rt::Transport::call(&mut self.stream, label, body)
    }
    fn send(&mut self, label: u32, body: &[u8]) -> Result<(), rt::Failure> {
        self.kept.push(Recorded { label, body: body.to_vec() });
        rt::Transport::send(&mut self.stream, label, body)
    }
}

/// What a run has found.
#[derive(Debug, Default)]
pub struct Report {
    calls: u64,
    exceptions: u64,
    damaged: u64,
    refused: u64,
    wrong: Vec<String>,
}

impl Report {
    /// Notes the end of a call.
    fn call(&mut self, method: &str, good: bool, exception: bool) {
        self.calls += 1;
        self.exceptions += u64::from(exception);
        if !good && self.wrong.len() < 10 {
            self.wrong.push(format!("{method}, call {}: not what was sent", self.calls));
        }
    }

    /// A size that `quill layout` promises.
    fn size(&mut self, method: &str, kept: Option<&Recorded>, promised: usize, exact: bool) {
        let Some(kept) = kept else { return };
        let good = if exact { kept.body.len() == promised } else { kept.body.len() >= promised };
        if !good && self.wrong.len() < 10 {
            self.wrong.push(format!("{method}: {} bytes, {promised} in the layout", kept.body.len()));
        }
    }

    /// Answers requests once more, whole, cut and damaged: each gets an answer, and nothing is lost.
    fn damage(&mut self, seed: u64, kept: &[Recorded], mut dispatch: impl FnMut(u32, &[u8]) -> Option<(u32, Vec<u8>)>) {
        let mut random = Random::new(seed, u64::MAX);
        let live = || LIVE.load(std::sync::atomic::Ordering::Relaxed);
        for kept in kept {
            let mut body = kept.body.clone();
            drop(dispatch(kept.label, &body));
            let before = live();
            drop(dispatch(kept.label, &body));
            if live() != before && self.wrong.len() < 10 {
                self.wrong.push(format!("label {}: {} allocations are not given back", kept.label, live() - before));
            }
            for cut in 0..body.len().min(200) {
                self.damaged += 1;
                match dispatch(kept.label, &body[..cut]) {
                    None => {}
                    Some((rt::MALFORMED, _)) => self.refused += 1,
                    Some((label, _)) => {
                        self.wrong.push(format!("label {}: cut at {cut}, and answered with {label}", kept.label));
                        break;
                    }
                }
            }
            let longer: Vec<u8> = kept.body.iter().copied().chain([0]).collect();
            if let Some((label, _)) = dispatch(kept.label, &longer)
                && label != rt::MALFORMED
            {
                self.wrong.push(format!("label {}: too long by a byte, and answered with {label}", kept.label));
            }
            for _ in 0..40 {
                for _ in 0..1 + random.below(3) {
                    if body.is_empty() || random.below(8) == 0 {
                        body.resize(body.len() + random.below(20), random.next() as u8);
                    } else {
                        let at = random.below(body.len());
                        body[at] = random.number() as u8;
                    }
                }
                self.damaged += 1;
                let answer = dispatch(kept.label, &body);
                self.refused += u64::from(answer.is_some_and(|(label, _)| label == rt::MALFORMED));
                if random.below(4) == 0 {
                    body.clone_from(&kept.body);
                }
            }
        }
        if !dispatch(u32::MAX, &[]).is_some_and(|(label, _)| label == rt::NO_METHOD) {
            self.wrong.push("a method that is none was answered".into());
        }
    }

    /// Prints a line; whether all is well.
    fn print(&self, interface: &str) -> bool {
        let Report { calls, exceptions, damaged, refused, wrong } = self;
        let verdict = if wrong.is_empty() { "ok" } else { "FAILED" };
        println!("{interface}: {calls} calls, {exceptions} exceptions, {damaged} damaged messages, {refused} refused: {verdict}");
        wrong.iter().for_each(|line| println!("  {line}"));
        wrong.is_empty()
    }
}
