//! References to objects, seen as one of the interfaces that they have (row D14).
//!
//! An object's table has the methods of its interface and of all that this inherits from. Those of the first base have the labels there
//! that they have by themselves; those of another one have all of them the same further bits. A [`View`] is an identifier
//! and these bits. Who has a reference may ask the object where in its table an interface [is](find); nobody else knows
//! all that an object can do, since an interface may be inherited from later.

use crate::call::invoke;
use crate::door::{Answer, Behind, Door, Handler, NoFrame, Object, fail};
use crate::{Callee, Failure, NO_METHOD, Pages, WORDS, Words, label_of};
use core::marker::PhantomData;
use sys::Kind;
use sys::abi::call::DOOR_CALL;

/// The label that asks where an interface is. It leads to the last place of each table, and no method has that.
pub const NARROW: u32 = u32::MAX;

/// Something that objects can have: generated for the clients of each interface.
pub trait Interface: Sized {
    /// Name of the interface in all tasks: made of its name with its modules'.
    const ID: u64;
    /// The client of no object: calls fail.
    const NOBODY: Self;
    /// The client of an object that has it.
    fn at(view: View) -> Self;
    /// The object.
    fn view(&self) -> View;
}

/// An object behind a door, as one of its interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View {
    /// The identifier.
    pub door: Door,
    /// Difference between labels of this interface's methods here and in the interface by itself.
    pub first: u32,
}

impl View {
    /// No object: calls fail.
    pub const NOBODY: View = View::whole(Door::NOBODY);

    /// View as the interface that the object was made with, or its first base.
    pub const fn whole(door: Door) -> View {
        View { door, first: 0 }
    }
}

impl Callee for View {
    const REPLY: Kind = Door::REPLY;
    #[inline(always)]
    fn call<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words) {
        self.door.call::<IN, TAKES>(self.first | label, words)
    }
    #[inline(always)]
    fn call_long<const IN: usize, const TAKES: bool>(self, label: u32, words: Words) -> (u64, Words) {
        self.door.call_long::<IN, TAKES>(self.first | label, words)
    }
    fn call_pages(self, label: u32, words: Words, pages: Pages) -> (u64, Words) {
        self.door.call_pages(self.first | label, words, pages)
    }
    fn send(self, label: u32, words: Words) -> Result<(), Failure> {
        self.door.send(self.first | label, words)
    }
    fn send_long(self, label: u32, words: Words) -> Result<(), Failure> {
        self.door.send_long(self.first | label, words)
    }
    fn send_pages(self, label: u32, words: Words, pages: Pages) -> Result<(), Failure> {
        self.door.send_pages(self.first | label, words, pages)
    }
}

/// An object of which nothing is known: `Object` of the interface language.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Anything {
    server: View,
}

impl Interface for Anything {
    const ID: u64 = 0;
    const NOBODY: Anything = Anything { server: View::NOBODY };
    fn at(server: View) -> Anything {
        Anything { server }
    }
    fn view(&self) -> View {
        self.server
    }
}

/// Asks an object whether it has an interface, and where: the same object as that.
pub fn find<I: Interface>(door: Door) -> Result<I, Failure> {
    if I::ID == Anything::ID {
        return Ok(I::at(View::whole(door)));
    }
    let mut words = [0; WORDS];
    words[0] = I::ID;
    let (rax, [first, ..]) = invoke::<1, DOOR_CALL>(door.0.into(), NARROW, words);
    if rax == Door::DONE {
        return Ok(I::at(View { door, first: first as u32 }));
    }
    Err(Failure::Refused(label_of::<Door>(rax)?))
}

/// Handler that answers that question: in the last place of an object's table.
#[derive(Debug)]
pub struct Narrow<O>(PhantomData<O>);

impl<O: Object> Handler for Narrow<O> {
    type Object = O;
    const IN: usize = 1;
    const OUT: usize = 1;
    type Frame = NoFrame;
    extern "sysv64" fn handle(id: u64, _: u64, _: &Behind<O>, frame: &mut NoFrame, _: u64, _: u64) -> Answer {
        match O::VIEWS.iter().find(|(interface, _)| *interface == id) {
            Some(&(_, first)) => {
                let mut words = [0; WORDS];
                words[0] = first.into();
                Answer::done::<1>(frame, &words)
            }
            None => fail(frame, Failure::Refused(NO_METHOD)),
        }
    }
}
