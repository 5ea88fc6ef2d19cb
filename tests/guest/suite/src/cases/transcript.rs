//! A random program of ipcs among a few threads, told step by step, with foreign calls of [others](callers) that some of them take.
//!
//! Equal seeds give equal steps; what happens in them must not depend on time, on addresses, or on which
//! of the kernel's two paths a message took. `init=suite args=transcript,seed=N` prints a hash of the story and
//! counts; with `verbose`, the story.

mod callers;

use crate::check;
use crate::kit::{Agent, Child, Frame, Outcome, Random};
use callers::{CALLERS, Caller};
use core::fmt::{self, Write};
use rt::println;
use sys::abi::call::{Call, FOREIGN, FOREIGN_RETURN, RESUME_AS_IS, thread_op};
use sys::abi::op;
use sys::{Error, Kind, TaskId, Timeout, Uid, thread_state};

const AGENTS: usize = 6;

/// One line of the story.
struct Line {
    text: [u8; 600],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &byte in text.as_bytes() {
            if self.len < self.text.len() {
                self.text[self.len] = byte;
                self.len += 1;
            }
        }
        Ok(())
    }
}

/// What happened so far.
struct Story {
    verbose: bool,
    hash: u64,
    lines: u64,
    fine: u64,
    /// Foreign calls that came, and exceptions.
    foreign: u64,
    exceptions: u64,
    failed: [u64; 16],
}

impl Story {
    fn new(verbose: bool) -> Story {
        let hash = 0xcbf2_9ce4_8422_2325;
        Story { verbose, hash, lines: 0, fine: 0, foreign: 0, exceptions: 0, failed: [0; 16] }
    }

    fn tell(&mut self, text: fmt::Arguments) {
        let mut line = Line { text: [0; 600], len: 0 };
        let _ = line.write_fmt(text);
        for &byte in &line.text[..line.len] {
            self.hash = (self.hash ^ byte as u64).wrapping_mul(0x100_0000_01b3);
        }
        self.lines += 1;
        if self.verbose {
            println!("T {}", core::str::from_utf8(&line.text[..line.len]).unwrap_or("?"));
        }
    }
}

struct Cast {
    callers: [Caller; CALLERS],
    children: [Child; 2],
    agents: [Agent; AGENTS],
    busy: [bool; AGENTS],
    /// A uid whose thread is gone.
    old: Uid,
    /// Who waits for an answer from each agent, as far as it knows.
    asked: [Uid; AGENTS],
    /// The caller whose foreign call each agent does, as far as it knows.
    does: [Option<usize>; AGENTS],
    /// The caller whose exception it has.
    has_exception: [Option<usize>; AGENTS],
    /// The agent that has taken each caller's call, and may have left it unanswered.
    taken_by: [Option<usize>; CALLERS],
}

impl Cast {
    fn make(children: &[Child; 2], index: usize) -> Outcome<Agent> {
        match index {
            0 | 1 => children[0].agent(),
            2..5 => children[1].agent(),
            _ => Agent::new(TaskId::NIL),
        }
    }

    /// A uid by what the story calls it.
    fn name(&self, uid: u64) -> Name {
        match self.agents.iter().position(|agent| agent.uid.0 == uid) {
            Some(index) => Name::Agent(index),
            None if uid == self.old.0 => Name::Old,
            None if uid == 0 => Name::Nil,
            None if uid == u64::MAX => Name::Any,
            None => self.caller(Uid(uid)).map_or(Name::Other, Name::Caller),
        }
    }

    /// Number of the caller.
    fn caller(&self, uid: Uid) -> Option<usize> {
        self.callers.iter().position(|caller| caller.uid == uid)
    }

    /// Somebody to send to: as a rule one who waits to receive, so that something happens.
    fn receiver(&self, random: &mut Random) -> Uid {
        let first = random.below(AGENTS as u64) as usize;
        let waits = |agent: &&Agent| agent.info().is_ok_and(|info| info.state == thread_state::RECEIVING);
        let mut others = self.agents[first..].iter().chain(&self.agents[..first]);
        match random.below(16) {
            0 => random.pick(&[Uid::NIL, self.old, Uid(0x3_f000), Uid(self.agents[0].uid.0 ^ 1 << 33)]),
            1..4 => self.agents[first].uid,
            _ => others.find(waits).map_or(self.agents[first].uid, |agent| agent.uid),
        }
    }

    /// Somebody to receive from.
    fn sender(&self, random: &mut Random) -> Uid {
        match random.below(16) {
            0 => random.pick(&[Uid::NIL, self.old]),
            1..8 => Uid::ANY,
            _ => self.agents[random.below(AGENTS as u64) as usize].uid,
        }
    }

    /// Whom an agent should answer: as a rule the last one who asked it something.
    fn client(&self, index: usize, random: &mut Random) -> Uid {
        let asked = self.asked[index];
        if asked.is_nil() || random.below(8) == 0 { self.receiver(random) } else { asked }
    }

    /// Whether nobody runs: two looks at all of them find them blocked or done, so nobody was woken behind the first.
    fn is_settled(&self) -> Outcome<bool> {
        for _ in 0..2 {
            for index in (0..AGENTS).filter(|index| self.busy[*index]) {
                if !self.agents[index].rests()? {
                    return Ok(false);
                }
            }
            for caller in &self.callers {
                if !caller.rests()? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Lets everybody run until they are blocked or done, then tells who is done with what.
    fn settle(&mut self, story: &mut Story) -> Outcome {
        // Whoever runs may wake one that was seen to be blocked before, so all of them are looked at again until nothing changes.
        while !self.is_settled()? {
            for index in (0..AGENTS).filter(|index| self.busy[*index]) {
                self.agents[index].settle()?;
            }
            for caller in &self.callers {
                caller.settle()?;
            }
        }
        for index in 0..AGENTS {
            if !self.busy[index] || !self.agents[index].is_done() {
                continue;
            }
            self.busy[index] = false;
            let frame = self.agents[index].wait()?;
            if frame.r11 & FOREIGN != 0 {
                self.take(story, index, &frame);
                continue;
            }
            (self.asked[index], self.does[index], self.has_exception[index]) = (Uid::NIL, None, None);
            match frame.kind() {
                Some(Kind::Request) => self.asked[index] = frame.sender(),
                Some(Kind::Exception) => {
                    story.exceptions += 1;
                    self.has_exception[index] = self.caller(frame.sender());
                }
                _ => {}
            }
            match frame.error() {
                Some(error) => story.failed[error as usize] += 1,
                None => story.fine += 1,
            }
            let mut words = frame.words();
            if frame.kind() == Some(Kind::Exception) {
                // The task's name is another one in each story.
                words[6] = 0;
            }
            let words = words.map(|word| Word(word, self.name(word)));
            let sender = self.name(frame.rdx);
            let flags = frame.flags;
            story.tell(format_args!(
                "  {index} rax {:x} rdx {sender} flags {flags:x} words {words}",
                frame.rax,
                words = Words(&words)
            ));
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Name {
    Agent(usize),
    Caller(usize),
    Old,
    Nil,
    Any,
    Other,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Name::Agent(index) => write!(f, "a{index}"),
            Name::Caller(index) => write!(f, "c{index}"),
            Name::Old => f.write_str("old"),
            Name::Nil => f.write_str("nil"),
            Name::Any => f.write_str("any"),
            Name::Other => f.write_str("other"),
        }
    }
}

/// A word, or the name of the uid that it happens to be.
#[derive(Clone, Copy)]
struct Word(u64, Name);

struct Words<'a>(&'a [Word]);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for Word(word, name) in self.0 {
            match name {
                Name::Agent(_) | Name::Caller(_) | Name::Old => write!(f, " {name}")?,
                _ => write!(f, " {word:x}")?,
            }
        }
        Ok(())
    }
}

/// Runs it and prints the summary.
pub fn run(seed: u64, steps: u64, verbose: bool) -> Outcome {
    let mut story = Story::new(verbose);
    tell(&mut story, seed, steps)?;
    println!("TRANSCRIPT seed={seed} steps={steps} lines={} hash={:016x}", story.lines, story.hash);
    println!("TRANSCRIPT messages and empty results: {}", story.fine);
    println!("TRANSCRIPT foreign calls: {}, exceptions: {}", story.foreign, story.exceptions);
    for (error, text) in Error::ALL {
        let count = story.failed[error as usize];
        if count > 0 {
            println!("TRANSCRIPT {text}: {count}");
        }
    }
    check!(story.foreign > steps / 100, "only {} foreign calls came", story.foreign);
    check!(story.exceptions > steps / 500, "only {} exceptions came", story.exceptions);
    Ok(())
}

fn tell(story: &mut Story, seed: u64, steps: u64) -> Outcome {
    let children = [Child::with_quota(48)?, Child::with_quota(48)?];
    let agents = [
        Cast::make(&children, 0)?,
        Cast::make(&children, 1)?,
        Cast::make(&children, 2)?,
        Cast::make(&children, 3)?,
        Cast::make(&children, 4)?,
        Cast::make(&children, 5)?,
    ];
    let old = {
        let gone = children[0].agent()?;
        gone.uid
    };
    let caller = |index: usize, handler: usize| {
        Caller::new(children[index % 2].0, agents[handler].uid, index as u32 + 1)
    };
    let callers = [caller(0, 0)?, caller(1, 5)?, caller(2, 1)?, caller(3, 3)?];
    let (busy, asked, does, has_exception) =
        ([false; AGENTS], [Uid::NIL; AGENTS], [None; AGENTS], [None; AGENTS]);
    let taken_by = [None; CALLERS];
    let mut cast = Cast { callers, children, agents, busy, old, asked, does, has_exception, taken_by };
    let mut random = Random::new(seed);
    for step in 0..steps {
        crate::kit::progress();
        let first = random.below(AGENTS as u64) as usize;
        // As a rule somebody who is free.
        let free = (0..AGENTS).map(|index| (first + index) % AGENTS).find(|&index| !cast.busy[index]);
        let index = if random.below(8) == 0 { first } else { free.unwrap_or(first) };
        if random.below(12) == 0 {
            cast.disturb_caller(story, &mut random, step)?;
        } else if cast.busy[index] {
            cast.disturb(story, &mut random, step, index)?;
        } else {
            cast.act(story, &mut random, step, index)?;
        }
        cast.settle(story)?;
    }
    Ok(())
}

impl Cast {
    /// Does something to an agent that is blocked; mostly nothing.
    fn disturb(&mut self, story: &mut Story, random: &mut Random, step: u64, index: usize) -> Outcome {
        let thread = self.agents[index].uid;
        match random.below(40) {
            0..4 => {
                story.tell(format_args!("{step}: abort {index}"));
                sys::thread_abort(thread)?;
            }
            4 | 5 => {
                story.tell(format_args!("{step}: stop and resume {index}"));
                sys::thread_stop(thread)?;
                sys::thread_resume(thread)?;
            }
            6 => {
                story.tell(format_args!("{step}: replace {index}"));
                self.old = thread;
                sys::thread_destroy(thread)?;
                self.agents[index] = Cast::make(&self.children, index)?;
                (self.busy[index], self.asked[index]) = (false, Uid::NIL);
                (self.does[index], self.has_exception[index]) = (None, None);
            }
            _ => {}
        }
        Ok(())
    }

    /// Does something to a caller, which is blocked or stopped: its calls go to somebody else from now on, or it ends.
    fn disturb_caller(&mut self, story: &mut Story, random: &mut Random, step: u64) -> Outcome {
        let which = random.below(CALLERS as u64) as usize;
        // Mostly somebody who may have its calls.
        let may = [[0, 1, 5, 5], [2, 3, 4, 5]][which % 2];
        let anybody = random.below(AGENTS as u64) as usize;
        let handler = if random.below(8) == 0 { anybody } else { random.pick(&may) };
        let label = random.next() as u32 >> 1;
        let thread = self.callers[which].uid;
        let (what, result) = match random.below(8) {
            0 => ("abort", sys::thread_abort(thread)),
            1 => ("stop and resume", sys::thread_stop(thread).and_then(|()| sys::thread_resume(thread))),
            2 => {
                self.callers[which] =
                    Caller::new(self.children[which % 2].0, self.agents[handler].uid, label)?;
                ("replace", Ok(()))
            }
            3 => ("allow", sys::thread_deny_native(thread, 0)),
            kind => {
                if kind % 2 == 0 {
                    // The agent that has its call has forgotten that, perhaps.
                    let _ = sys::thread_abort(thread);
                }
                self.callers[which].redirect(self.agents[handler].uid, label)?;
                ("redirect", sys::thread_resume(thread))
            }
        };
        story.tell(format_args!("{step}: {what} c{which}, handler {handler}, label {label:x}: {result:?}"));
        Ok(())
    }

    /// Tells what an agent got with a foreign call.
    fn take(&mut self, story: &mut Story, index: usize, frame: &Frame) {
        let label = (frame.r11 >> 32) as u32 & !(1 << 31);
        self.asked[index] = Uid::NIL;
        self.does[index] = self.callers.iter().position(|caller| caller.label.get() == label);
        if let Some(which) = self.does[index] {
            self.taken_by[which] = Some(index);
        }
        story.foreign += 1;
        let (Frame { rax, rdx, flags, .. }, words) = (*frame, frame.words());
        story.tell(format_args!(
            "  {index} takes {label:x} rax {rax:x} rdx {rdx:x} flags {flags:x} words {words:x?}"
        ));
    }

    /// A frame that has to do with foreign calls: an agent takes them, returns from one, or lets a caller go on in another way.
    fn act_on_calls(&mut self, random: &mut Random, index: usize, words: [u64; 11]) -> (&'static str, Frame) {
        const TAKE: u8 = 0;
        const REPLY: u8 = 1;
        const RETURN: u8 = 2;
        const LATE: u8 = 3;
        const GO_ON: u8 = 4;
        let flags = op::TAKES_BLOCK | op::TAKES_FOREIGN;
        let some = random.below(CALLERS as u64) as usize;
        let left = self.taken_by.iter().position(|by| *by == Some(index));
        let (which, kinds): (usize, &[u8]) = match (self.does[index], self.has_exception[index], left) {
            (Some(which), ..) => (which, &[TAKE, REPLY, RETURN, RETURN, RETURN, RETURN, LATE, LATE, GO_ON]),
            (_, Some(which), _) => (which, &[TAKE, LATE, GO_ON, GO_ON, GO_ON]),
            (.., Some(which)) => (which, &[TAKE, RETURN, LATE, LATE, LATE, GO_ON]),
            _ => (some, &[TAKE, TAKE, TAKE, TAKE, REPLY, REPLY, RETURN, LATE, GO_ON]),
        };
        let thread = self.callers[which].uid;
        let never = Timeout::NEVER;
        let kind = random.pick(kinds);
        if matches!(kind, RETURN | LATE | GO_ON) && self.taken_by[which] == Some(index) {
            self.taken_by[which] = None;
        }
        match kind {
            TAKE => ("take calls", Frame::receive(Uid::ANY, never).flags(flags)),
            REPLY => {
                let client = self.client(index, random);
                ("reply and take calls", Frame::ipc(client, Uid::ANY, Timeout::ZERO, never).flags(flags))
            }
            RETURN => {
                let frame = Frame::call(Uid(words[0]), 0, words);
                ("return from a call", Frame { rax: FOREIGN_RETURN.into(), ..frame })
            }
            LATE => {
                let operation = Call::ThreadControl as u32 | thread_op::FOREIGN_RETURN << 8;
                let block = callers::registers(words);
                ("return late", Frame::control(operation, [thread.0, block, 0, 0, 0, 0]))
            }
            _ => {
                let send = Frame::send(thread, Timeout::ZERO).label(RESUME_AS_IS);
                ("let a caller go on", send)
            }
        }
    }

    /// Lets an agent do an ipc.
    fn act(&mut self, story: &mut Story, random: &mut Random, step: u64, index: usize) -> Outcome {
        let words = core::array::from_fn(|_| random.next());
        let label = random.next() as u32;
        let (to, from, client) = (self.receiver(random), self.sender(random), self.client(index, random));
        let never = Timeout::NEVER;
        let has_one = self.does[index].is_some() || self.has_exception[index].is_some();
        let may_have = self.callers.iter().any(|caller| caller.handler.get() == self.agents[index].uid);
        let kinds = if has_one {
            80
        } else if may_have {
            60
        } else {
            22
        };
        let (what, to, frame) = match random.below(kinds) {
            20.. => {
                let (what, frame) = self.act_on_calls(random, index, words);
                (what, Uid::NIL, frame)
            }
            0..6 => ("call", to, Frame::call(to, label, words)),
            6..12 => ("reply and wait", client, Frame::reply_wait(client, label, words)),
            12 => ("send, no wait", to, Frame::send(to, Timeout::ZERO).label(label)),
            13 => ("send", to, Frame::send(to, never).label(label)),
            14 => ("receive, no wait", Uid::NIL, Frame::receive(from, Timeout::ZERO)),
            15 | 16 => ("receive", Uid::NIL, Frame::receive(from, never)),
            17 => ("send and receive", to, Frame::ipc(to, from, never, never).label(label)),
            18 => ("general call", to, Frame::ipc(to, to, never, never).label(label)),
            _ => {
                ("reply and receive", client, Frame::ipc(client, Uid::ANY, Timeout::ZERO, never).label(label))
            }
        };
        let frame = Frame { flags: frame.flags | label as u64 & 0x4_0cd5, ..frame };
        story.tell(format_args!("{step}: {index} {what} to {} from {}", self.name(to.0), self.name(from.0)));
        self.agents[index].start(frame);
        self.busy[index] = true;
        self.agents[index].settle()?;
        Ok(())
    }
}

/// Two runs with the same seed tell the same story.
pub fn stories_repeat() -> Outcome {
    let mut hashes = [0; 2];
    for hash in &mut hashes {
        let mut story = Story::new(false);
        tell(&mut story, 42, 400)?;
        *hash = story.hash;
    }
    crate::check_eq!(hashes[0], hashes[1]);
    Ok(())
}
