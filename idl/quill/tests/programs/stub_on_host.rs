//! The crate `stub` without a kernel: a call ends in whatever a test has put in its place. Values in words and lists are
//! the real ones, and so is what happens to the part of a message in memory once it has arrived.

#[path = "list.rs"]
pub mod list;
#[path = "long.rs"]
pub mod long;
#[path = "piece.rs"]
pub mod piece;
#[path = "stream.rs"]
pub mod stream;

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

pub use list::{List, Text, get_list, get_text, put_list};
pub use long::{Flat, Once, Room, Strings, Texts, address, dope, keep, string_len, tail, text, whole_words};
pub use piece::{Blank, Malformed, Piece, WORDS, Words, view};
pub use std::boxed::Box;
pub use std::string::String;
pub use std::sync::Arc as Shared;
pub use std::vec::Vec;
pub use stream::{Arrived, Gives, HANDED_MAX, Handing, In, Out, Wire, put_elements};

pub const DONE: u64 = u64::MAX;
pub const LONG_DONE: u64 = DONE & !(1 << 10);
pub const MALFORMED: u32 = 0xffff_0000;
pub const NO_METHOD: u32 = 0xffff_0001;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uid(pub u64);

impl Uid {
    pub const NIL: Uid = Uid(0);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fpage(pub u64);

impl Fpage {
    pub const NIL: Fpage = Fpage(0);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Reply,
    Request,
    Fault,
}

#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub kind: Kind,
    pub label: u32,
    pub sender: Uid,
    pub words: [u64; 8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    pub label: u32,
    pub words: [u64; 8],
}

impl Reply {
    pub fn of(label: u32, words: &Words) -> Reply {
        assert!(words[8..].iter().all(|&word| word == 0), "the general form has eight words");
        Reply { label, words: words[..8].try_into().unwrap() }
    }
}

impl From<Failure> for Reply {
    fn from(failure: Failure) -> Reply {
        Reply { label: failure.label(), words: [0; 8] }
    }
}

pub fn words_of(message: &Message) -> Words {
    let mut words = [0; WORDS];
    words[..8].copy_from_slice(&message.words);
    words
}

pub fn no_pages(message: &Message, kind: Kind) -> Result<(), Malformed> {
    if message.kind == kind { Ok(()) } else { Err(Malformed) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    Malformed,
    Refused(u32),
    TooLong,
    OtherInbox,
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

/// Label, words, and the part in memory that they describe.
pub type Line = Box<dyn FnMut(u32, Words, Option<Part>) -> (u64, Words, Option<Part>)>;

/// The part of a message in memory, as the kernel would read it.
#[derive(Clone, Debug, Default)]
pub struct Part {
    pub words: Vec<u64>,
    pub strings: Vec<Vec<u8>>,
}

impl Part {
    fn read(dope: u64, address: u64) -> Part {
        let (words, strings) = ((dope & 0xfff) as usize, (dope >> 12 & 0xff) as usize);
        let at: *const u64 = std::ptr::with_exposed_provenance(address as usize);
        let word = |i: usize| unsafe { at.add(i).read_unaligned() };
        let string = |i: usize| {
            let (from, len) = (word(words + 2 * i), word(words + 2 * i + 1) as u32 as usize);
            let from: *const u8 = std::ptr::with_exposed_provenance(from as usize);
            unsafe { std::slice::from_raw_parts(from, len) }.to_vec()
        };
        Part { words: (0..words).map(word).collect(), strings: (0..strings).map(string).collect() }
    }

    /// Puts it where a server receives, as the kernel would; the dope, or why it does not fit.
    fn arrive(&self, address: u64, room: u64) -> Option<u64> {
        let (words, strings) = ((room >> 32 & 0xfff) as usize, (room >> 44 & 0xff) as usize);
        if self.words.len() > words || self.strings.len() > strings {
            return None;
        }
        let at: *mut u64 = std::ptr::with_exposed_provenance_mut(address as usize);
        for (i, &word) in self.words.iter().enumerate() {
            unsafe { at.add(i).write(word) };
        }
        for (i, string) in self.strings.iter().enumerate() {
            let descriptor = unsafe { at.add(words + 2 * i) };
            let [to, sizes] = unsafe { [descriptor.read(), descriptor.add(1).read()] };
            if string.len() as u64 > sizes >> 32 {
                return None;
            }
            let to: *mut u8 = std::ptr::with_exposed_provenance_mut(to as usize);
            unsafe {
                to.copy_from_nonoverlapping(string.as_ptr(), string.len());
                descriptor.add(1).write(sizes >> 32 << 32 | string.len() as u64);
            }
        }
        Some(room | dope(self.words.len() as u64, self.strings.len() as u64))
    }
}

thread_local! {
    /// Where calls go.
    pub static WIRE: RefCell<Option<Line>> = const { RefCell::new(None) };
    /// Where replies arrive: address and dope.
    static INBOX: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// What the kernel does with a reply.
fn arrive<const TAKES: bool>((mut rax, mut words, part): (u64, Words, Option<Part>)) -> (u64, Words) {
    if let Some(part) = part {
        if !TAKES {
            return (NO_WINDOW, [0; WORDS]);
        }
        assert!(rax & !LONG_DONE == 0, "a part in memory that nobody mentions");
        let (address, room) = INBOX.get();
        match part.arrive(address, room) {
            Some(dope) => (words[0], words[1], words[10]) = (dope, address, 0),
            None => (rax, words) = (OVERFLOW, [0; WORDS]),
        }
    } else {
        assert!(rax as u32 != LONG_DONE as u32, "nothing is in memory");
    }
    (rax, words)
}

/// The error of a reply with a part in memory to a call that takes none.
pub const NO_WINDOW: u64 = 76;
/// The error of a message for which there is no room.
pub const OVERFLOW: u64 = 77;

pub struct Inbox<'a, R> {
    room: &'a mut R,
}

impl<R: Receive> Inbox<'_, R> {
    pub fn open<T>(room: &mut R, with: impl FnOnce(&mut Inbox<R>) -> T) -> Result<T, Failure> {
        let before = INBOX.replace(room.place());
        let result = with(&mut Inbox { room });
        INBOX.set(before);
        Ok(result)
    }

    pub fn arrived(&mut self, address: u64) -> Result<&mut R, Failure> {
        if address == self.room.place().0 { Ok(self.room) } else { Err(Failure::OtherInbox) }
    }
}

pub trait Callee: Copy {
    const DONE: u64 = DONE;
    const LONG_DONE: u64 = LONG_DONE;
    fn call<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words);
    fn call_long<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words);
    fn send(self, label: u32, words: Words) -> Result<(), Failure>;
    fn send_long(self, label: u32, words: Words) -> Result<(), Failure>;
}

impl Callee for Uid {
    fn call<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words) {
        call::<IN, TAKES>(label, words)
    }
    fn call_long<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words) {
        call_long::<IN, TAKES>(label, words)
    }
    fn send(self, label: u32, words: Words) -> Result<(), Failure> {
        arrive::<false>(WIRE.with_borrow_mut(|wire| wire.as_mut().unwrap()(label, words, None)));
        Ok(())
    }
    fn send_long(self, label: u32, words: Words) -> Result<(), Failure> {
        let part = Part::read(words[0], words[1]);
        WIRE.with_borrow_mut(|wire| wire.as_mut().unwrap()(label, words, Some(part)));
        Ok(())
    }
}

fn call<const IN: usize, const TAKES: bool>(label: u32, words: Words) -> (u64, Words) {
    assert!(words[IN.max(1)..].iter().all(|&word| word == 0), "a word without a value shows");
    arrive::<TAKES>(WIRE.with_borrow_mut(|wire| wire.as_mut().unwrap()(label, words, None)))
}

fn call_long<const IN: usize, const TAKES: bool>(label: u32, words: Words) -> (u64, Words) {
    assert!(words[IN.max(2)..].iter().all(|&word| word == 0), "a word without a value shows");
    let part = Part::read(words[0], words[1]);
    arrive::<TAKES>(WIRE.with_borrow_mut(|wire| wire.as_mut().unwrap()(label, words, Some(part))))
}

pub fn reply_of<C: Callee>(rax: u64) -> Result<(u32, bool), Failure> {
    match ((rax >> 32) as u32, rax as u32) {
        (u32::MAX, _) | (_, 0..0x8000_0000) => Err(Failure::Malformed),
        (label, eax) => Ok((label, eax == LONG_DONE as u32)),
    }
}

pub fn label_of<C: Callee>(rax: u64) -> Result<u32, Failure> {
    match reply_of::<C>(rax)? {
        (label, false) => Ok(label),
        _ => Err(Failure::Malformed),
    }
}

pub fn failure<C: Callee>(rax: u64) -> Failure {
    match label_of::<C>(rax) {
        Ok(label) => Failure::Refused(label),
        Err(failure) => failure,
    }
}

#[repr(C)]
pub struct Frame<'a, L: Loop> {
    pub server: &'a mut L::Server,
    pub words: Words,
    pub room: &'a mut L::Room,
    pub outgoing: L::Outgoing,
}

pub trait Receive {
    const LONG: bool;
    /// Address and dope.
    fn place(&mut self) -> (u64, u64);
}

pub struct NoRoom;

impl Receive for NoRoom {
    const LONG: bool = false;
    fn place(&mut self) -> (u64, u64) {
        (0, 0)
    }
}

impl<S: Strings, const WORDS: usize, const STRINGS: usize, const BYTES: usize> Receive
    for Room<S, WORDS, STRINGS, BYTES>
{
    const LONG: bool = true;
    fn place(&mut self) -> (u64, u64) {
        (self.describe(), Self::DOPE)
    }
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
    pub fn with_memory(self) -> Answer {
        Answer { rax: self.rax & LONG_DONE, to: self.to }
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
    type Room: Receive;
    type Outgoing: AsMut<[u64]>;
    const OUTGOING: Self::Outgoing;
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

pub struct Mismatch<L>(PhantomData<L>);

impl<L: Loop> Handler for Mismatch<L> {
    type Loop = L;
    const IN: usize = 0;
    const OUT: usize = 0;
    extern "sysv64" fn handle(_: u64, _: u64, from: u64, _: &mut Frame<L>, _: u64, _: u64) -> Answer {
        Answer::label(from, MALFORMED)
    }
}

pub const fn entry<H: Handler>() -> Entry {
    Entry(H::handle as Handle<H::Loop> as *const (), H::OUT)
}

pub fn serve<L: Loop<Room = NoRoom>>(_: &mut L::Server, _: &L::Table) -> ! {
    unreachable!("a test answers one request at a time")
}

pub fn serve_in<L: Loop>(_: &mut L::Server, _: &mut L::Room, _: &L::Table) -> Failure {
    unreachable!("a test answers one request at a time")
}

/// Answers one request as the real loop does: finds the place, gives the words, and lets nothing else through.
pub fn answer<L: Loop>(
    server: &mut L::Server,
    room: &mut L::Room,
    table: &L::Table,
    label: u32,
    mut words: Words,
    part: Option<&Part>,
) -> (u64, Words, Option<Part>) {
    let places = table.as_ref();
    let half = 1usize << (64 - L::SHIFT);
    assert_eq!(half << L::Room::LONG as u32, places.len());
    let mut place = ((label as u64) << 32 >> L::SHIFT) as usize;
    if let Some(part) = part {
        let refused = (u64::from(MALFORMED) << 32 | 0xffff_ffff, [0; WORDS], None);
        if !L::Room::LONG {
            return refused;
        }
        let (address, dope) = room.place();
        let Some(dope) = part.arrive(address, dope) else { return refused };
        (words[0], words[1], words[10]) = (dope, address, 0);
        place += half;
    }
    let Entry(handle, out) = places[place];
    let handle: Handle<L> = unsafe { std::mem::transmute(handle) };
    // Whatever was left by the last reply.
    let mut outgoing = L::OUTGOING;
    outgoing.as_mut().fill(0x5555_5555_5555_5555);
    let mut frame: Frame<L> = Frame { server, words, room, outgoing };
    let answer = handle(words[0], words[1], 7, &mut frame, words[2], words[3]);
    assert!([0, 7].contains(&answer.to));
    let mut reply = [0; WORDS];
    reply[..out].copy_from_slice(&frame.words[..out]);
    let part = (answer.rax as u32 == LONG_DONE as u32).then(|| Part::read(reply[0], reply[1]));
    (answer.rax, reply, part)
}
