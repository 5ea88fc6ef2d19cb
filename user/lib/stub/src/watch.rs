//! Interposition (row D15): somebody hears of each call of an object, with its arguments, its result and the time between, and may let it
//! fail.
//!
//! Generated code has a `Watched` for each interface of objects: it has the methods, like the object that it stands before, and tells a
//! [`Watch`] of each. Put behind a door of its own, before a client of another door, it stands between the two, and neither
//! side can tell.

use crate::Failure;
use core::fmt::Debug;

/// Method that is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Called {
    /// The interface's name, with its modules'.
    pub interface: &'static str,
    /// The method's name in the interface file.
    pub method: &'static str,
}

/// A method's parameter in the interface file, or `result`, and what it is in this call.
pub type Argument<'a> = (&'static str, &'a dyn Debug);

/// Watcher of calls. They come from several threads at once.
pub trait Watch {
    /// Note that is kept from a call's beginning to its end: when it began, say.
    type Note;

    /// A call begins. With a failure it ends at once, and the object does not hear of it.
    fn begins(&self, called: Called, arguments: &[Argument]) -> Result<Self::Note, Failure>;

    /// It has ended, with these results or with an error.
    fn ended(&self, called: Called, note: Self::Note, result: Result<&[Argument], &dyn Debug>);
}

/// A reference to who hears of calls is one, too.
impl<W: Watch> Watch for &W {
    type Note = W::Note;
    fn begins(&self, called: Called, arguments: &[Argument]) -> Result<W::Note, Failure> {
        W::begins(self, called, arguments)
    }
    fn ended(&self, called: Called, note: W::Note, result: Result<&[Argument], &dyn Debug>) {
        W::ended(self, called, note, result)
    }
}
