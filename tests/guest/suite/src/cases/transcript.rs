//! A random program of ipcs among a few threads, told step by step.
//!
//! Equal seeds give equal steps; what happens in them must not depend on time, on addresses, or on which
//! of the kernel's two paths a message took. `init=suite args=transcript,seed=N` prints a hash of the story and
//! counts; with `verbose`, the story.

use crate::kit::{Agent, Child, Frame, Outcome, Random};
use core::fmt::{self, Write};
use rt::println;
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
    failed: [u64; 16],
}

impl Story {
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
    children: [Child; 2],
    agents: [Agent; AGENTS],
    busy: [bool; AGENTS],
    /// A uid whose thread is gone.
    old: Uid,
    /// Who waits for an answer from each agent, as far as it knows.
    asked: [Uid; AGENTS],
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
            None => Name::Other,
        }
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
        }
        for index in 0..AGENTS {
            if !self.busy[index] || !self.agents[index].is_done() {
                continue;
            }
            self.busy[index] = false;
            let frame = self.agents[index].wait()?;
            self.asked[index] = if frame.kind() == Some(Kind::Request) { frame.sender() } else { Uid::NIL };
            match frame.error() {
                Some(error) => story.failed[error as usize] += 1,
                None => story.fine += 1,
            }
            let words = frame.words().map(|word| Word(word, self.name(word)));
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
    Old,
    Nil,
    Any,
    Other,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Name::Agent(index) => write!(f, "a{index}"),
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
                Name::Agent(_) | Name::Old => write!(f, " {name}")?,
                _ => write!(f, " {word:x}")?,
            }
        }
        Ok(())
    }
}

/// Runs it and prints the summary.
pub fn run(seed: u64, steps: u64, verbose: bool) -> Outcome {
    let mut story = Story { verbose, hash: 0xcbf2_9ce4_8422_2325, lines: 0, fine: 0, failed: [0; 16] };
    tell(&mut story, seed, steps)?;
    println!("TRANSCRIPT seed={seed} steps={steps} lines={} hash={:016x}", story.lines, story.hash);
    println!("TRANSCRIPT messages and empty results: {}", story.fine);
    for (error, text) in Error::ALL {
        let count = story.failed[error as usize];
        if count > 0 {
            println!("TRANSCRIPT {text}: {count}");
        }
    }
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
    let mut cast = Cast { children, agents, busy: [false; AGENTS], old, asked: [Uid::NIL; AGENTS] };
    let mut random = Random::new(seed);
    for step in 0..steps {
        crate::kit::progress();
        let first = random.below(AGENTS as u64) as usize;
        // As a rule somebody who is free.
        let free = (0..AGENTS).map(|index| (first + index) % AGENTS).find(|&index| !cast.busy[index]);
        let index = if random.below(8) == 0 { first } else { free.unwrap_or(first) };
        if cast.busy[index] {
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
            }
            _ => {}
        }
        Ok(())
    }

    /// Lets an agent do an ipc.
    fn act(&mut self, story: &mut Story, random: &mut Random, step: u64, index: usize) -> Outcome {
        let words = core::array::from_fn(|_| random.next());
        let label = random.next() as u32;
        let (to, from, client) = (self.receiver(random), self.sender(random), self.client(index, random));
        let never = Timeout::NEVER;
        let (what, to, frame) = match random.below(20) {
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
        let mut story = Story { verbose: false, hash: 0, lines: 0, fine: 0, failed: [0; 16] };
        tell(&mut story, 42, 400)?;
        *hash = story.hash;
    }
    crate::check_eq!(hashes[0], hashes[1]);
    Ok(())
}
