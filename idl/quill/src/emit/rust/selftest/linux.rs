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

    /// Makes a message another one, at up to three places.
    fn damage(&mut self, body: &mut Vec<u8>) {
        for _ in 0..1 + self.below(3) {
            if body.is_empty() || self.below(8) == 0 {
                body.resize(body.len() + self.below(20), self.next() as u8);
            } else {
                let at = self.below(body.len());
                body[at] = self.number() as u8;
            }
        }
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

/// Keeps requests on their way to a server, and damages replies on their way back, if it has numbers for that.
pub struct Tap<'a> {
    stream: std::os::unix::net::UnixStream,
    kept: &'a mut Vec<Recorded>,
    damage: Option<&'a mut Random>,
}

impl rt::Transport for Tap<'_> {
    fn call(&mut self, label: u32, body: &[u8]) -> Result<(u32, Vec<u8>), rt::Failure> {
        self.kept.push(Recorded { label, body: body.to_vec() });
        let (mut label, mut body) = rt::Transport::call(&mut self.stream, label, body)?;
        if let Some(random) = &mut self.damage {
            random.damage(&mut body);
            if random.below(8) == 0 {
                label = random.below(4) as u32;
            }
        }
        Ok((label, body))
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

    /// Notes the end of a call whose reply was damaged, whatever the client made of it.
    fn damaged_reply(&mut self, refused: bool) {
        self.damaged += 1;
        self.refused += u64::from(refused);
    }

    /// A size that `quill layout` promises.
    fn size(&mut self, method: &str, kept: Option<&Recorded>, promised: usize, exact: bool) {
        let Some(kept) = kept else { return };
        let good = if exact { kept.body.len() == promised } else { kept.body.len() >= promised };
        if !good && self.wrong.len() < 10 {
            self.wrong.push(format!("{method}: {} bytes, {promised} in the layout", kept.body.len()));
        }
    }

    /// Answers requests once more, and looks whether all memory is given back.
    fn nothing_is_lost(&mut self, kept: &[Recorded], mut dispatch: impl FnMut(u32, &[u8]) -> Option<(u32, Vec<u8>)>) {
        let live = || LIVE.load(std::sync::atomic::Ordering::Relaxed);
        for kept in kept {
            drop(dispatch(kept.label, &kept.body));
            let before = live();
            drop(dispatch(kept.label, &kept.body));
            if live() != before && self.wrong.len() < 10 {
                self.wrong.push(format!("label {}: {} allocations are not given back", kept.label, live() - before));
            }
        }
    }

    /// Answers requests once more, cut and damaged: each gets an answer.
    fn damage(&mut self, seed: u64, kept: &[Recorded], mut dispatch: impl FnMut(u32, &[u8]) -> Option<(u32, Vec<u8>)>) {
        let mut random = Random::new(seed, u64::MAX);
        for kept in kept {
            let mut body = kept.body.clone();
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
                random.damage(&mut body);
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

    /// Has requests answered through the program in C, damaged ones first, and then whole ones whose replies are damaged. `answer` is the server,
    /// whose answer depends on the request alone.
    fn damage_between(
        &mut self,
        seed: u64,
        kept: &[Recorded],
        (program, interface): (&str, &str),
        mut answer: impl FnMut(u32, &[u8]) -> Option<(u32, Vec<u8>)> + Clone + Send + 'static,
    ) {
        let (near, mut far, mut between) = way(Some(program), interface);
        let mut server = answer.clone();
        let thread = std::thread::spawn(move || rt::serve(&mut far, |label, body| server(label, body)).is_ok());
        if let Some(between) = &mut between {
            self.damage(seed, kept, |label, body| between.same(label, body, answer(label, body)));
        }
        drop(near);
        self.end(between);
        let mut good = thread.join().unwrap_or(false);

        let (near, mut far, mut between) = way(Some(program), interface);
        let mut server = answer.clone();
        let thread = std::thread::spawn(move || {
            let mut random = Random::new(seed, u64::MAX - 1);
            let damaged = |label: u32, body: &[u8]| {
                let (mut label, mut body) = server(label, body)?;
                random.damage(&mut body);
                if random.below(8) == 0 {
                    label = random.below(4) as u32;
                }
                Some((label, body))
            };
            rt::serve(&mut far, damaged).is_ok()
        });
        for kept in kept {
            let Some(between) = &mut between else { break };
            let is_answered = answer(kept.label, &kept.body).is_some();
            for _ in 0..20 {
                self.damaged += 1;
                let reply = between.ask(kept.label, &kept.body, is_answered);
                self.refused += u64::from(reply.is_some_and(|(label, _)| label == rt::MALFORMED));
            }
        }
        drop(near);
        self.end(between);
        good &= thread.join().unwrap_or(false);
        if !good {
            self.wrong.push("the server did not end well".into());
        }
    }

    /// Waits for the end of the program in C, if there is one.
    fn end(&mut self, between: Option<Between>) {
        let Some(Between { near, mut program, different, .. }) = between else { return };
        self.wrong.extend(different);
        drop(near);
        match program.wait() {
            Ok(status) if status.success() => {}
            Ok(status) => self.wrong.push(format!("the program in C ended with {status}")),
            Err(error) => self.wrong.push(format!("the program in C: {error}")),
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

/// A program in C that has a server and a client of each interface, and hands on what it is asked.
pub struct Between {
    near: std::os::unix::net::UnixStream,
    program: std::process::Child,
    different: Vec<String>,
    /// It has not answered.
    is_silent: bool,
}

/// A connection of a client with a server, and the program between them, if there is one.
fn way(
    program: Option<&str>,
    interface: &str,
) -> (std::os::unix::net::UnixStream, std::os::unix::net::UnixStream, Option<Between>) {
    let pair = || std::os::unix::net::UnixStream::pair().expect("a socket can be made");
    let (near, served) = pair();
    let Some(program) = program else { return (near, served, None) };
    let (called, far) = pair();
    let program = std::process::Command::new(program)
        .arg(interface)
        .stdin(std::os::fd::OwnedFd::from(served))
        .stdout(std::os::fd::OwnedFd::from(called))
        .spawn()
        .expect("the program in C can be started");
    // A program that answers nothing ends the test, in the end.
    near.set_read_timeout(Some(std::time::Duration::from_secs(120))).expect("a socket can have a limit");
    let between = Between { near: near.try_clone().expect("a socket can be shared"), program, different: Vec::new(), is_silent: false };
    (near, far, Some(between))
}

impl Between {
    /// Sends a request, and waits for the answer if there is one. After the first that stays away nothing is sent.
    fn ask(&mut self, label: u32, body: &[u8], is_answered: bool) -> Option<(u32, Vec<u8>)> {
        if self.is_silent {
            return None;
        }
        let answer = match is_answered {
            true => rt::Transport::call(&mut self.near, label, body).map(Some),
            false => rt::Transport::send(&mut self.near, label, body).map(|()| None),
        };
        answer.unwrap_or_else(|failure| {
            self.is_silent = true;
            self.different.push(format!("label {label}: no answer through C, {failure:?}"));
            None
        })
    }

    /// Sends a request to which that is the answer in Rust. In C a text that has a zero within is refused, so a refusal is as good.
    fn same(&mut self, label: u32, body: &[u8], answer: Option<(u32, Vec<u8>)>) -> Option<(u32, Vec<u8>)> {
        let given = self.ask(label, body, answer.is_some());
        let is_refused = given.as_ref().is_some_and(|(label, _)| *label == rt::MALFORMED);
        if given != answer && !is_refused && !self.is_silent && self.different.len() < 10 {
            let show = |answer: &Option<(u32, Vec<u8>)>| answer.as_ref().map(|(label, body)| (*label, body.len()));
            let (given, answer) = (show(&given), show(&answer));
            self.different.push(format!("label {label}: {given:?} through C, {answer:?} in Rust, to {body:?}"));
        }
        given
    }
}
