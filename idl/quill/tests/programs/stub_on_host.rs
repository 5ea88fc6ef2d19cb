//! The crate `stub` without a kernel: a call ends in whatever a test has put in its place. Values in words and lists are
//! the real ones.

#[path = "list.rs"]
pub mod list;
#[path = "piece.rs"]
pub mod piece;

use std::cell::RefCell;
use std::marker::PhantomData;

pub use list::{List, Text, get_list, get_text, put_list};
pub use piece::{Malformed, Piece, WORDS, Words};

pub const DONE: u64 = u64::MAX;
pub const MALFORMED: u32 = 0xffff_0000;
pub const NO_METHOD: u32 = 0xffff_0001;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uid(pub u64);

#[derive(Clone, Copy, Debug)]
pub struct Message;

#[derive(Clone, Copy, Debug)]
pub struct Reply;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    Malformed,
    Refused(u32),
    TooLong,
}

impl Failure {
    pub fn label(self) -> u32 {
        if let Failure::Refused(label) = self { label } else { MALFORMED }
    }
}

impl From<Malformed> for Failure {
    fn from(_: Malformed) -> Failure {
        Failure::Malformed
    }
}

pub type Wire = Box<dyn FnMut(u32, Words) -> (u64, Words)>;

thread_local! {
    /// Where calls go.
    pub static WIRE: RefCell<Option<Wire>> = const { RefCell::new(None) };
}

pub fn call<const IN: usize>(_: Uid, label: u32, words: Words) -> (u64, Words) {
    assert!(words[IN.max(1)..].iter().all(|&word| word == 0), "a word without a value shows");
    WIRE.with_borrow_mut(|wire| wire.as_mut().unwrap()(label, words))
}

pub fn send(_: Uid, label: u32, words: Words) -> Result<(), Failure> {
    WIRE.with_borrow_mut(|wire| wire.as_mut().unwrap()(label, words));
    Ok(())
}

pub fn label_of(rax: u64) -> Result<u32, Failure> {
    Ok((rax >> 32) as u32)
}

pub fn failure(rax: u64) -> Failure {
    Failure::Refused((rax >> 32) as u32)
}

pub struct Frame<'a, L: Loop> {
    pub server: &'a mut L::Server,
    pub words: Words,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Answer {
    pub rax: u64,
    pub to: u64,
}

impl Answer {
    pub fn done(to: u64) -> Answer {
        Answer { rax: DONE, to }
    }
    pub fn label(to: u64, label: u32) -> Answer {
        Answer { rax: (label as u64) << 32 | 0xffff_ffff, to }
    }
}

pub type Handle<L> = extern "sysv64" fn(u64, u64, u64, &mut Frame<L>, u64, u64) -> Answer;

/// Type-erased: a test knows of which interface its table is.
#[derive(Clone, Copy, Debug)]
pub struct Entry(pub *const (), pub usize);

pub trait Loop {
    type Server;
    type Table: Copy + AsRef<[Entry]>;
    const SHIFT: u32;
    fn other(server: &mut Self::Server, message: &Message) -> Option<Reply>;
}

pub trait Handler {
    type Loop: Loop;
    const IN: usize;
    const OUT: usize;
    extern "sysv64" fn handle(
        w0: u64,
        w1: u64,
        from: u64,
        frame: &mut Frame<Self::Loop>,
        w2: u64,
        w3: u64,
    ) -> Answer;
}

pub fn decline(_: &Message) -> Option<Reply> {
    None
}

pub fn store<L: Loop, const OUT: usize>(frame: &mut Frame<L>, words: &Words) {
    assert!(words[OUT..].iter().all(|&word| word == 0), "the layout promised fewer words");
    frame.words[..OUT].copy_from_slice(&words[..OUT]);
}

pub fn fail<L: Loop>(frame: &mut Frame<L>, to: u64, failure: Failure) -> Answer {
    frame.words = [0; WORDS];
    Answer::label(to, failure.label())
}

pub struct NoMethod<L>(PhantomData<L>);

impl<L: Loop> Handler for NoMethod<L> {
    type Loop = L;
    const IN: usize = 0;
    const OUT: usize = 0;
    extern "sysv64" fn handle(_: u64, _: u64, from: u64, _: &mut Frame<L>, _: u64, _: u64) -> Answer {
        Answer::label(from, NO_METHOD)
    }
}

pub const fn entry<H: Handler>() -> Entry {
    Entry(H::handle as Handle<H::Loop> as *const (), H::OUT)
}

pub fn serve<L: Loop>(_: &mut L::Server, _: &L::Table) -> ! {
    unreachable!("a test answers one request at a time")
}

/// Answers one request as the real loop does: finds the place, gives the words, and lets nothing else through.
pub fn answer<L: Loop>(server: &mut L::Server, table: &L::Table, label: u32, words: Words) -> (u64, Words) {
    let places = table.as_ref();
    assert_eq!(1usize << (64 - L::SHIFT), places.len());
    let Entry(handle, out) = places[((label as u64) << 32 >> L::SHIFT) as usize];
    let handle: Handle<L> = unsafe { std::mem::transmute(handle) };
    let mut frame: Frame<L> = Frame { server, words };
    let answer = handle(words[0], words[1], 7, &mut frame, words[2], words[3]);
    assert!([0, 7].contains(&answer.to));
    let mut reply = [0; WORDS];
    reply[..out].copy_from_slice(&frame.words[..out]);
    (answer.rax, reply)
}
