//! Objects behind doors: how they are called, and what calls one of an object's methods.
//!
//! A message is the one that goes by ipc, so a client does not change: its [`Callee`] is a [`Door`] instead of a thread. The server's
//! half differs from [`serve`](mod@crate::serve), because a call does not come to somebody who waits for it: it *begins*, at the door's
//! [`entry`], on whatever thread of the task serves, with the door's datum, which leads to a [`Behind`]. In there is the
//! interface's table, found with one load, and a method's [`thunk`] ends in *door return*. Calls come from several threads at
//! once, so an object's methods have a shared reference to it.
//!
//! **Room for requests.** The entries of all interfaces begin on the same threads, and no interface knows how much room the others
//! need. So the [`Block`] that such a thread has registered, if some interface needs one, has this module's size, and each string is
//! compared with its bound here and not by the kernel.
//!
//! **Who serves is counted by nobody.** Whatever a call does, it changes the word below the stack pointer that it begins with; so
//! [whoever looks after the threads](IDLE) can see whether one was called.
//!
//! **Nothing leaks**: the same as for servers that are called by ipc.

#![allow(unsafe_code)]

use crate::call::{invoke, invoke_form};
use crate::long::{self, Flat, Strings};
use crate::{Callee, Failure, MALFORMED, Malformed, NO_METHOD, Pages, WORDS, Words, done};
use core::arch::naked_asm;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::slice;
use sys::abi::call::{
    DOOR_CALL, DOOR_ITEM_CALL, DOOR_LONG_CALL, DOOR_RETURN, DOOR_TAKING_CALL, Kind, NO_BLOCK, NO_ITEM,
};
use sys::abi::op::{self, Op};
use sys::{Dope, Error, Fpage, Uid};

/// The object behind a door of which the caller's task has this identifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Door(pub u32);

impl Door {
    /// No object: a number that is none of an identifier. Calls fail.
    pub const NOBODY: Door = Door(u32::MAX);
}

impl Callee for Door {
    const REPLY: Kind = Kind::DoorReturn;
    #[inline(always)]
    fn call<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words) {
        match TAKES {
            false => invoke::<IN, DOOR_CALL>(self.0.into(), label, words),
            true => invoke::<IN, DOOR_TAKING_CALL>(self.0.into(), label, words),
        }
    }
    #[inline(always)]
    fn call_long<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words) {
        match TAKES {
            false => invoke::<IN, DOOR_LONG_CALL>(self.0.into(), label, words),
            true => invoke::<IN, { Op::DOOR_CALL.with(op::BLOCK | op::TAKES_BLOCK).0 }>(
                self.0.into(),
                label,
                words,
            ),
        }
    }
    /// Pages that come back arrive in the window of `pages`, which is the thread's standing one for so long.
    fn call_pages(self, label: u32, mut words: Words, pages: Pages) -> (u64, Words) {
        let window = match pages.window {
            Fpage::NIL => None,
            window => match sys::thread_set_window(Uid::NIL, window) {
                Ok(before) => Some(before),
                Err(error) => return (error as u64, [0; WORDS]),
            },
        };
        let mut form = Op::DOOR_CALL;
        if pages.takes {
            form = form.with(op::TAKES_BLOCK);
        }
        if window.is_some() {
            form = form.with(op::TAKES_ITEM);
        }
        let reply = match pages.given {
            None if pages.long => {
                invoke_form::<10, true>(self.0.into(), form.with(op::BLOCK).0, label, words)
            }
            None => invoke_form::<8, false>(self.0.into(), form.0, label, words),
            Some((given, hot_spot)) => {
                (words[6], words[7]) = (given.0, hot_spot);
                invoke_form::<8, false>(self.0.into(), form.with(op::ITEM).0, label, words)
            }
        };
        if let Some(before) = window {
            // It cannot fail: it was one before.
            let _ = sys::thread_set_window(Uid::NIL, before);
        }
        reply
    }
    /// An object has no queue: this waits until the method is through.
    fn send(self, label: u32, words: Words) -> Result<(), Failure> {
        sent(self.call::<8, false>(label, words).0)
    }
    fn send_long(self, label: u32, words: Words) -> Result<(), Failure> {
        sent(self.call_long::<8, false>(label, words).0)
    }
    fn send_pages(self, label: u32, words: Words, pages: Pages) -> Result<(), Failure> {
        sent(self.call_pages(label, words, pages).0)
    }
}

/// Whether a request came to somebody. What he made of it, who sends does not hear.
fn sent(rax: u64) -> Result<(), Failure> {
    let eax = rax as u32;
    if eax >> 31 == 1 {
        return Ok(());
    }
    Err(Failure::Kernel(Error::from_code(eax).unwrap_or(Error::BadArgument)))
}

/// Mark that nobody leaves below the stack pointer that a call has begun with: neither a return address nor a datum.
pub const IDLE: u64 = 1;

/// Words of a block: as many as a message may have that does not leave the kernel's fast path.
pub const BLOCK_WORDS: usize = 512;
/// Strings of a block: as many as a message may have.
pub const BLOCK_STRINGS: usize = 255;

/// Where requests with a part in memory arrive, whatever their interface.
#[derive(Debug)]
#[repr(transparent)]
pub struct Block(long::Block<BLOCK_WORDS, BLOCK_STRINGS>);

impl Default for Block {
    fn default() -> Self {
        Block::new()
    }
}

impl Block {
    /// One without room for strings.
    pub const fn new() -> Block {
        Block(long::Block::new())
    }

    /// The dope of a block that has been lent so many buffers, and so many windows behind them: together no more than [`BLOCK_STRINGS`].
    pub const fn dope(strings: usize, windows: usize) -> u64 {
        long::dope(BLOCK_WORDS as u64, strings as u64 + windows as u64 * long::ITEM) << 32
    }

    /// The windows for what is handed over, and then where each of that is and w7 of it, in a block with this dope.
    pub fn items(&mut self, dope: u64) -> &mut [[u64; 2]] {
        let room = Dope(dope).room_as_used();
        let first = room.strings() as usize;
        self.0.strings.get_mut(first..first + room.items() as usize).unwrap_or_default()
    }

    /// Strings with this number arrive in that buffer, which begins at a multiple of 8.
    ///
    /// # Safety
    ///
    /// So many bytes are there, and nobody else's, for as long as the block is a thread's.
    pub unsafe fn lend(&mut self, number: usize, buffer: NonNull<u64>, bytes: u32) {
        self.0.strings[number] = [buffer.as_ptr().expose_provenance() as u64, (bytes as u64) << 32];
    }

    /// Where it is, for [`sys::thread_set_block`].
    pub fn address(&mut self) -> u64 {
        self.0.address()
    }
}

/// A [`Block`] as an interface sees it, whose strings have these bounds.
#[derive(Debug)]
#[repr(transparent)]
pub struct Room<S> {
    block: Block,
    bounds: PhantomData<S>,
}

impl<S> Deref for Room<S> {
    type Target = long::Block<BLOCK_WORDS, BLOCK_STRINGS>;
    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.block.0
    }
}

impl<S> DerefMut for Room<S> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.block.0
    }
}

impl<S: Strings> Room<S> {
    /// The elements of a string; at most `bound`.
    #[inline(always)]
    pub fn string<T: Flat, const NUMBER: usize>(&self, bound: usize) -> Result<&[T], Malformed> {
        const { assert!(align_of::<T>() <= 8 && NUMBER < S::CAPACITIES.len()) };
        let [first, sizes] = self.block.0.strings[NUMBER];
        let len = sizes as u32 as usize;
        if len > bound * size_of::<T>() || !len.is_multiple_of(size_of::<T>()) {
            return Err(Malformed);
        }
        let first = core::ptr::with_exposed_provenance(first as usize);
        // SAFETY: who lent the buffer promised that it is there, the kernel wrote no more into it than fits; it begins at a multiple
        // of 8, and any bits are values.
        Ok(unsafe { slice::from_raw_parts(first, len / size_of::<T>()) })
    }
}

/// The block of the thread that a call has begun on, while it runs. A [`thunk`] makes one of what the kernel says, and nobody
/// else can.
#[derive(Debug)]
#[repr(transparent)]
pub struct Place<R>(NonNull<R>);

impl<R> Deref for Place<R> {
    type Target = R;
    #[inline(always)]
    fn deref(&self) -> &R {
        // SAFETY: the thread's block is where the kernel says that something has arrived, and this call's alone.
        unsafe { self.0.as_ref() }
    }
}

impl<R> DerefMut for Place<R> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut R {
        // SAFETY: the same.
        unsafe { self.0.as_mut() }
    }
}

impl<S> Place<Room<S>> {
    /// Items that were handed over with the request that has this dope.
    #[inline]
    pub fn items(&mut self, dope: u64) -> Items {
        Items::of(&mut self.block, dope)
    }

    /// All windows of the thread, which has got a request with this dope.
    #[inline]
    pub fn windows(&mut self, dope: u64) -> Items {
        Items::all_of(self.block.items(dope))
    }
}

/// Where in a thread's block it says what was handed over with a request.
#[derive(Debug)]
pub struct Items(NonNull<[[u64; 2]]>);

impl Items {
    /// All of these.
    pub(crate) fn all_of(windows: &mut [[u64; 2]]) -> Items {
        Items(NonNull::from(windows))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    fn of(block: &mut Block, dope: u64) -> Items {
        let windows = block.items(dope);
        let arrived = windows.len().min(Dope(dope).items() as usize);
        Items(NonNull::from(&mut windows[..arrived]))
    }

    fn all(&mut self) -> &mut [[u64; 2]] {
        // SAFETY: it is in the block of the thread that this call runs on, where no list lies.
        unsafe { self.0.as_mut() }
    }

    /// The place of the one with this number: where that is, and w7 of it. Who takes it leaves another window there.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut [u64; 2]> {
        self.all().get_mut(number)
    }

    /// The task has none of them any more.
    pub fn let_go(&mut self) {
        for [place, _] in self.all() {
            let_go(*place);
        }
    }
}

/// A place in a table: where the code for a method begins.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Entry(unsafe extern "C" fn());

/// An object with an interface. Generated code has one for each, around whatever implements its methods.
pub trait Object: Send + Sync + Sized + 'static {
    /// An array of [`Entry`], as long as a power of two, and as much again if there are methods whose requests have a part in memory,
    /// and again if some hand something over: where the code of each method begins, by the first bits of a request's label.
    type Table: Send + Sync + 'static;
    /// It.
    const TABLE: &'static Self::Table;
    /// 64 less the logarithm of that power of two.
    const SHIFT: u32;
    /// Whether there are such methods, and the bounds of the strings in their requests.
    const ROOM: Option<&'static [u32]>;
    /// Whether there are methods whose requests hand something over. They have another part of the table, behind those.
    const ITEMS: bool = false;
    /// Whether there are methods whose requests hand something over and have a part in memory: behind all others.
    const LONG_ITEMS: bool = false;
    /// How many things a request hands over at most, if there are some with a part in memory.
    const WINDOWS: usize = 1;
    /// The interfaces that the object has, and what labels of their methods have more here than by themselves.
    const VIEWS: &'static [(u64, u32)] = &[];
}

/// Memory behind a door's datum.
#[derive(Debug)]
#[repr(C)]
pub struct Behind<O: Object> {
    table: &'static O::Table,
    end: unsafe extern "sysv64" fn(datum: u64),
    /// The object.
    pub object: O,
}

impl<O: Object> Behind<O> {
    /// An object, and what happens when nobody can call it any more.
    ///
    /// # Safety
    ///
    /// `end` may be called once with the address of what comes back, after all calls, on a thread that serves.
    pub unsafe fn new(object: O, end: unsafe extern "sysv64" fn(datum: u64)) -> Behind<O> {
        Behind { table: O::TABLE, end, object }
    }
}

/// The call that a server's thread is in. A [`thunk`] gives it to a handler, and nobody else has one; so whoever has it may use what
/// is the thread's until the return.
#[derive(Debug)]
pub struct Turn {
    /// It stays with the thread.
    thread: PhantomData<*const ()>,
}

/// Frame of a handler on the stack, beside its own: words from w4 on of the request, if the method has so many; then those of the reply.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Frame<R, T> {
    /// The words.
    pub words: Words,
    /// Where the request has arrived, if it has a part in memory.
    pub room: R,
    /// Part of the reply in memory, as far as it lies nowhere else: it is sent when the handler has returned.
    pub outgoing: T,
    /// The call.
    pub turn: Turn,
}

/// The frame of a method whose request has at most four words, and whose replies have one: there is none.
#[derive(Debug)]
pub struct NoFrame;

/// Frame that a handler may have on the stack.
pub trait Kept {
    /// How many bytes.
    const BYTES: usize;
    /// Keeps the words of a reply from w1 on.
    fn store<const OUT: usize>(&mut self, words: &Words);
    /// No word is left from before.
    fn clear(&mut self);
}

impl Kept for NoFrame {
    const BYTES: usize = 0;
    #[inline(always)]
    fn store<const OUT: usize>(&mut self, _: &Words) {
        const { assert!(OUT <= 1, "the reply has no frame") };
    }
    #[inline(always)]
    fn clear(&mut self) {}
}

impl<R, T> Kept for Frame<R, T> {
    const BYTES: usize = size_of::<Self>();
    #[inline(always)]
    fn store<const OUT: usize>(&mut self, words: &Words) {
        let mut i = 1;
        while i < OUT {
            self.words[i] = words[i];
            i += 1;
        }
    }
    fn clear(&mut self) {
        self.words = [0; WORDS];
    }
}

/// Answer of a handler; the other words of the reply are in the frame.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Answer {
    /// A label with the operation *door return*.
    pub rax: u64,
    /// The first word.
    pub w0: u64,
}

impl Answer {
    /// Success.
    #[inline(always)]
    pub fn done<const OUT: usize>(frame: &mut impl Kept, words: &Words) -> Answer {
        frame.store::<OUT>(words);
        Answer { rax: done(DOOR_RETURN), w0: words[0] }
    }

    /// An exception.
    #[inline(always)]
    pub fn label<const OUT: usize>(frame: &mut impl Kept, words: &Words, label: u32) -> Answer {
        frame.store::<OUT>(words);
        Answer { rax: (label as u64) << 32 | DOOR_RETURN as u64, w0: words[0] }
    }

    /// This answer with a part in memory, of which the first two words say what it is and where.
    #[inline(always)]
    pub const fn with_memory(self) -> Answer {
        Answer { rax: self.rax & !(NO_BLOCK as u64), ..self }
    }

    /// This answer with an item, which w6 and w7 say.
    #[inline(always)]
    pub const fn with_item(self) -> Answer {
        Answer { rax: self.rax & !(NO_ITEM as u64), ..self }
    }
}

/// Answers with an error, and with no word that is left from before.
#[cold]
pub fn fail(frame: &mut impl Kept, failure: Failure) -> Answer {
    frame.clear();
    Answer { rax: (failure.label() as u64) << 32 | DOOR_RETURN as u64, w0: 0 }
}

/// The method for a place of the table.
pub trait Handler {
    /// The interface.
    type Object: Object;
    /// Words of the request.
    const IN: usize;
    /// Words of the longest reply.
    const OUT: usize;
    /// Whether the request has a part in memory; then the frame is a [`Frame`] with a [`Place`].
    const LONG: bool = false;
    /// Whether a reply may grant an identifier, and w6 says which: that of the thread's standing window.
    const GRANTS: bool = false;
    /// Whether a reply may grant identifiers that are described in its part in memory; then the first word of the frame is the dope of the thread's
    /// block, which says how many of its windows they are.
    const GRANTS_MANY: bool = false;
    /// [`NoFrame`], or a [`Frame`].
    type Frame: Kept;
    /// Reads the request, calls the method, stores the reply. Words from w4 on are in the frame.
    extern "sysv64" fn handle(
        w0: u64,
        w1: u64,
        behind: &Behind<Self::Object>,
        frame: &mut Self::Frame,
        w2: u64,
        w3: u64,
    ) -> Answer;
}

/// Handler where the table has no method.
pub type NoMethod<O> = Refusal<O, NO_METHOD>;

/// Handler where the table has a method whose requests are of the other kind: all in registers, or not.
pub type Mismatch<O> = Refusal<O, MALFORMED>;

/// Answers with a label, and does nothing.
#[derive(Debug)]
pub struct Refusal<O, const LABEL: u32>(PhantomData<O>);

impl<O: Object, const LABEL: u32> Handler for Refusal<O, LABEL> {
    type Object = O;
    const IN: usize = 0;
    const OUT: usize = 0;
    type Frame = NoFrame;
    extern "sysv64" fn handle(_: u64, _: u64, _: &Behind<O>, frame: &mut NoFrame, _: u64, _: u64) -> Answer {
        fail(frame, Failure::Refused(LABEL))
    }
}

/// [`NoMethod`] in the part of a table that is for requests which hand something over: nobody has that any more.
pub type NoMethodForItem<O> = RefusalOfItem<O, NO_METHOD>;

/// [`Mismatch`] in that part of a table.
pub type MismatchOfItem<O> = RefusalOfItem<O, MALFORMED>;

/// Lets go of what has arrived, and answers with a label.
#[derive(Debug)]
pub struct RefusalOfItem<O, const LABEL: u32>(PhantomData<O>);

impl<O: Object, const LABEL: u32> Handler for RefusalOfItem<O, LABEL> {
    type Object = O;
    const IN: usize = 7;
    const OUT: usize = 0;
    type Frame = Frame<(), ()>;
    extern "sysv64" fn handle(
        _: u64,
        _: u64,
        _: &Behind<O>,
        frame: &mut Frame<(), ()>,
        _: u64,
        _: u64,
    ) -> Answer {
        let_go(frame.words[6]);
        fail(frame, Failure::Refused(LABEL))
    }
}

/// [`NoMethod`] for requests that hand something over and have a part in memory.
pub type NoMethodForLongItem<O> = RefusalOfLongItem<O, NO_METHOD>;

/// [`Mismatch`] for those requests.
pub type MismatchOfLongItem<O> = RefusalOfLongItem<O, MALFORMED>;

/// Lets go of what has arrived in the thread's block, and answers with a label.
#[derive(Debug)]
pub struct RefusalOfLongItem<O, const LABEL: u32>(PhantomData<O>);

impl<O: Object, const LABEL: u32> Handler for RefusalOfLongItem<O, LABEL> {
    type Object = O;
    const IN: usize = 2;
    const OUT: usize = 0;
    const LONG: bool = true;
    type Frame = Frame<Place<Block>, [u64; 1]>;
    extern "sysv64" fn handle(
        dope: u64,
        _: u64,
        _: &Behind<O>,
        frame: &mut Self::Frame,
        _: u64,
        _: u64,
    ) -> Answer {
        let_go_of_item(dope, &mut frame.room);
        fail(frame, Failure::Refused(LABEL))
    }
}

/// The place for a method.
pub const fn method<H: Handler>() -> Entry {
    const {
        assert!(H::Frame::BYTES.is_multiple_of(16), "the stack stays aligned");
        assert!(H::Frame::BYTES > 0 || (H::IN <= 4 && H::OUT <= 1 && !H::LONG), "words need a frame");
        assert!(!H::GRANTS || H::OUT >= 8, "an item is two words");
        assert!(!H::GRANTS_MANY || (H::LONG && !H::GRANTS), "where the block is, the request says");
    }
    Entry(thunk::<H>)
}

/// Where calls of an object's door begin, for [`sys::door_create`]: with a datum that is the address of a `Behind<O>`, on threads whose
/// block, if one is registered, is a [`Block`].
pub fn entry<O: Object>() -> u64 {
    const {
        let places = size_of::<O::Table>() / size_of::<Entry>();
        let parts = 1 + O::ROOM.is_some() as usize + O::ITEMS as usize + O::LONG_ITEMS as usize;
        assert!(O::SHIFT < 64 && places == parts << (64 - O::SHIFT));
    }
    begin::<O> as *const () as u64
}

/// Whether a thread with this instruction pointer waits for a call, if it is one that serves and has served.
pub fn waits_for_call(ip: u64) -> bool {
    unsafe extern "C" {
        static tern_doors_begin: u8;
        static tern_doors_end: u8;
    }
    /// Behind a return that does not come back stands `ud2`; behind one that may, `mov eax` with the next.
    const BEHIND_RETURNS: [[u8; 2]; 2] = [[0x0f, 0x0b], [0xb8, DOOR_RETURN as u8]];
    let section = &raw const tern_doors_begin as u64..&raw const tern_doors_end as u64;
    if !section.contains(&ip) {
        return false;
    }
    // SAFETY: what lies in the section is code, which ends with the last two bytes of such an instruction or later.
    let behind = unsafe { core::ptr::with_exposed_provenance::<[u8; 2]>(ip as usize).read() };
    BEHIND_RETURNS.contains(&behind)
}

/// A jump to the method of a call whose kind `eax` says; behind it, calls of other kinds. The places of a kind are so far `behind` in the
/// table.
macro_rules! jump_to_method {
    ($kind:literal, $behind:literal) => {
        concat!(
            "cmp eax, {",
            $kind,
            "}\n",
            "jne 2f\n",
            "shr rax, {shift}\n",
            "mov rcx, [rdx + {table}]\n",
            "jmp [rcx + rax * 8",
            $behind,
            "]\n",
            "2:",
        )
    };
}

/// Finds the method.
///
/// In: label and kind in `rax`, words, datum in `rdx`, `rsp` a multiple of 16. What lies below is free.
#[unsafe(naked)]
#[unsafe(link_section = ".text.tern_door")]
unsafe extern "C" fn begin<O: Object>() {
    naked_asm!(
        jump_to_method!("call", ""),
        ".if {long}",
        jump_to_method!("long_call", " + {part}"),
        ".endif",
        ".if {items}",
        jump_to_method!("item_call", " + {part} + {part} * {long}"),
        ".endif",
        ".if {long_items}",
        jump_to_method!("long_item_call", " + {part} + {part} * {long} + {part} * {items}"),
        ".endif",
        "cmp eax, {unreferenced}",
        "je 6f",
        "test eax, {no_item}",
        "jnz 7f",
        "test eax, {no_block}",                     // nobody wants what was handed over
        "jz 9f",
        "mov rdi, r13",
        "call {let_go}",
        "jmp 7f",
        "9:",
        "call {let_go_of_item}",
        "7:",
        "mov rax, {malformed}",
        "jmp 4f",
        "6:",
        "mov rdi, rdx",
        "call [rdx + {end}]",
        "mov eax, {door_return}",                   // it goes to nobody
        "4:",
        "xor edi, edi",
        "xor esi, esi",
        "xor r8d, r8d",
        "xor r9d, r9d",
        "xor r10d, r10d",
        "syscall",
        "ud2",
        call = const DOOR_CALL as i32,
        long_call = const DOOR_LONG_CALL as i32,
        unreferenced = const Kind::Unreferenced as i32,
        long = const O::ROOM.is_some() as u32,
        shift = const O::SHIFT,
        item_call = const DOOR_ITEM_CALL as i32,
        long_item_call = const (DOOR_LONG_CALL & !NO_ITEM) as i32,
        long_items = const O::LONG_ITEMS as u32,
        no_item = const NO_ITEM,
        no_block = const NO_BLOCK,
        let_go = sym let_go,
        let_go_of_item = sym let_go_of_item,
        items = const O::ITEMS as u32,
        part = const 8 << (64 - O::SHIFT),
        table = const offset_of!(Behind<O>, table),
        end = const offset_of!(Behind<O>, end),
        malformed = const (MALFORMED as u64) << 32 | DOOR_RETURN as u64,
        door_return = const DOOR_RETURN,
    )
}

/// The task has this identifier no more: one that was to be handed over, or that nobody wanted.
pub extern "sysv64" fn let_go(item: u64) {
    // It cannot fail: the number is one that the kernel has said, or has been told.
    let _ = sys::door_release((Fpage(item).base() >> 12) as u32);
}

/// Lets go of all that has come with a block.
extern "sysv64" fn let_go_of_item(dope: u64, block: &mut Block) {
    Items::of(block, dope).let_go();
}

/// A method: from its call to the return.
///
/// In: words, datum in `rdx`, `rsp` a multiple of 16. The return does not come back, and the next call begins with the stack of this one.
#[unsafe(naked)]
#[unsafe(link_section = ".text.tern_door")]
unsafe extern "C" fn thunk<H: Handler>() {
    naked_asm!(
        ".if {bytes} > 0",
        "push rdx",                                 // not IDLE
        "sub rsp, {bytes} + 8",
        ".if {input} > 4", "mov [rsp + 32], r10", ".endif",
        ".if {input} > 5", "mov [rsp + 40], r12", ".endif",
        ".if {input} > 6", "mov [rsp + 48], r13", ".endif",
        ".if {input} > 7", "mov [rsp + 56], r14", ".endif",
        ".if {input} > 8", "mov [rsp + 64], rbx", ".endif",
        ".if {input} > 9", "mov [rsp + 72], rbp", ".endif",
        ".if {input} > 10", "mov [rsp + 80], r15", ".endif",
        ".if {long}", "mov [rsp + {room}], rsi", ".endif",
        "mov rcx, rsp",
        ".endif",
        "call {handle}",                            // rax is what is answered, rdx its first word
        ".if {output} > 0", "mov rdi, rdx", ".else", "xor edi, edi", ".endif",
        ".if {output} > 1", "mov rsi, [rsp + 8]", ".else", "xor esi, esi", ".endif",
        ".if {output} > 2", "mov r8, [rsp + 16]", ".else", "xor r8d, r8d", ".endif",
        ".if {output} > 3", "mov r9, [rsp + 24]", ".else", "xor r9d, r9d", ".endif",
        ".if {output} > 4", "mov r10, [rsp + 32]", ".else", "xor r10d, r10d", ".endif",
        ".if {output} > 5", "mov r12, [rsp + 40]", ".endif",
        ".if {output} > 6", "mov r13, [rsp + 48]", ".endif",
        ".if {output} > 7", "mov r14, [rsp + 56]", ".endif",
        ".if {output} > 8", "mov rbx, [rsp + 64]", ".endif",
        ".if {output} > 9", "mov rbp, [rsp + 72]", ".endif",
        ".if {output} > 10", "mov r15, [rsp + 80]", ".endif",
        ".if {grants}", "push rax", ".endif",       // whether an item goes with it
        "syscall",                                  // comes back if what was more than words did not arrive
        ".if {grants}",
        "pop rax",
        "test eax, {no_item}",
        "jnz 2f",
        "mov rdi, [rsp + 48]",
        "call {let_go}",
        "2:",
        ".endif",
        ".if {grants_many}",
        "mov eax, {door_return}",                   // for who looks whether the thread waits
        "mov rdi, [rsp]",
        "mov rsi, [rsp + {room}]",
        "call {let_go_of_item}",
        ".endif",
        "mov eax, {door_return}",
        "syscall",
        "ud2",
        bytes = const <H::Frame as Kept>::BYTES,
        input = const H::IN,
        output = const H::OUT,
        long = const H::LONG as u32,
        room = const offset_of!(Frame<Place<()>, ()>, room),
        door_return = const DOOR_RETURN,
        grants = const H::GRANTS as u32,
        grants_many = const H::GRANTS_MANY as u32,
        let_go_of_item = sym let_go_of_item,
        no_item = const NO_ITEM,
        let_go = sym let_go,
        handle = sym <H as Handler>::handle,
    )
}

const _: () = assert!(WORDS == 11 && offset_of!(Frame<(), ()>, words) == 0, "eleven words are named above");
