//! A random program of ipcs among a few threads, told step by step.
//!
//! The same seed gives the same steps; what happens in them must not depend on time, on addresses, or on which
//! of the kernel's two paths a message took. `init=suite args=transcript,seed=N` prints a hash of the story and
//! counts; with `verbose`, the story.

use crate::kit::{Agent, Child, Frame, Outcome, Random};
use core::fmt::{self, Write};
use rt::println;
use sys::{Error, TaskId, Timeout, Uid};

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
    old: Uid,
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

    fn choose(&self, random: &mut Random, special: &[Uid]) -> Uid {
        let choice = random.below(AGENTS as u64 * 3 + special.len() as u64) as usize;
        match choice.checked_sub(AGENTS * 3) {
            Some(index) => special[index],
            None => self.agents[choice % AGENTS].uid,
        }
    }

    /// Lets everybody run until they are blocked or done, then tells who is done with what.
    fn settle(&mut self, story: &mut Story) -> Outcome {
        for index in (0..AGENTS).filter(|index| self.busy[*index]) {
            self.agents[index].settle()?;
        }
        for index in 0..AGENTS {
            if !self.busy[index] || !self.agents[index].is_done() {
                continue;
            }
            self.busy[index] = false;
            let frame = self.agents[index].wait()?;
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
    let mut cast = Cast { children, agents, busy: [false; AGENTS], old };
    let mut random = Random::new(seed);
    for step in 0..steps {
        crate::kit::progress();
        let index = random.below(AGENTS as u64) as usize;
        let words = core::array::from_fn(|_| random.next());
        let label = random.next() as u32;
        let to = cast
            .choose(&mut random, &[Uid::NIL, cast.old, Uid(0x3_f000), Uid(cast.agents[0].uid.0 ^ 1 << 33)]);
        let from = cast.choose(&mut random, &[Uid::ANY, Uid::ANY, Uid::ANY, Uid::ANY, Uid::NIL, cast.old]);
        let choice = random.below(20);
        if cast.busy[index] {
            match choice {
                0..12 => continue,
                12..17 => {
                    story.tell(format_args!("{step}: abort {index}"));
                    sys::thread_abort(cast.agents[index].uid)?;
                }
                17 | 18 => {
                    story.tell(format_args!("{step}: stop and resume {index}"));
                    sys::thread_stop(cast.agents[index].uid)?;
                    sys::thread_resume(cast.agents[index].uid)?;
                }
                _ => {
                    story.tell(format_args!("{step}: replace {index}"));
                    cast.old = cast.agents[index].uid;
                    sys::thread_destroy(cast.old)?;
                    cast.agents[index] = Cast::make(&cast.children, index)?;
                    cast.busy[index] = false;
                }
            }
            cast.settle(story)?;
            continue;
        }
        let never = Timeout::NEVER;
        let (what, mut frame) = match choice {
            0..6 => ("call", Frame::call(to, label, words)),
            6..12 => ("reply and wait", Frame::reply_wait(to, label, words)),
            12 | 13 => ("send, no wait", Frame::send(to, Timeout::ZERO)),
            14 => ("send", Frame::send(to, never)),
            15 => ("receive, no wait", Frame::receive(from, Timeout::ZERO)),
            16 => ("receive", Frame::receive(from, never)),
            17 => ("send and receive", Frame::ipc(to, from, never, never)),
            18 => ("general call", Frame::ipc(to, to, never, never)),
            _ => ("reply and receive", Frame::ipc(to, Uid::ANY, Timeout::ZERO, never)),
        };
        if choice >= 12 {
            frame = frame.label(label);
        }
        frame.flags |= label as u64 & 0x4_0cd5;
        story.tell(format_args!("{step}: {index} {what} to {} from {}", cast.name(to.0), cast.name(from.0)));
        cast.agents[index].start(frame);
        cast.busy[index] = true;
        cast.agents[index].settle()?;
        cast.settle(story)?;
    }
    Ok(())
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
