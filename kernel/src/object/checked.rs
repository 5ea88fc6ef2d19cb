//! References to objects that other objects take the place of. A control block's frame is given back when its thread ends, and may be
//! the block of another thread soon; so may a task's. That nobody keeps a reference so long is an argument of each place that keeps one
//! (`docs/soundness.md`). A build with debug assertions, which all tests on the host are, checks it at every use.

/// An object that is reached by a [`Checked`].
pub trait Generation: 'static {
    /// Number that no two objects in one place share; 0 for one that has no name yet.
    #[cfg_attr(not(debug_assertions), expect(dead_code, reason = "only builds that check ask"))]
    fn generation(&self) -> u32;
}

/// A reference to an object, with its generation in builds that check it.
pub struct Checked<T: Generation> {
    object: &'static T,
    #[cfg(debug_assertions)]
    generation: u32,
}

impl<T: Generation> Clone for Checked<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Generation> Copy for Checked<T> {}

impl<T: Generation> Checked<T> {
    /// Refers to the object that is there now.
    #[inline(always)]
    pub fn new(object: &'static T) -> Self {
        Checked {
            object,
            #[cfg(debug_assertions)]
            generation: object.generation(),
        }
    }

    /// The object. With debug assertions: panics if another one has taken its place, or it has ended.
    #[inline(always)]
    #[track_caller]
    pub fn get(self) -> &'static T {
        #[cfg(debug_assertions)]
        {
            let is = self.object.generation();
            assert!(
                self.generation == 0 || self.generation == is,
                "a reference to generation {} in place of {is}",
                self.generation
            );
        }
        self.object
    }

    /// The place of the object, whatever is there now.
    #[inline(always)]
    pub fn place(self) -> &'static T {
        self.object
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    struct Object(Cell<u32>);

    impl Generation for Object {
        fn generation(&self) -> u32 {
            self.0.get()
        }
    }

    fn object(generation: u32) -> &'static Object {
        std::boxed::Box::leak(std::boxed::Box::new(Object(Cell::new(generation))))
    }

    #[test]
    fn an_object_is_reached_while_it_is_there() {
        let unnamed = Checked::new(object(0));
        unnamed.get().0.set(1);
        assert_eq!(unnamed.get().generation(), 1);
        assert_eq!(Checked::new(object(3)).get().generation(), 3);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "a reference to generation 3 in place of 4")]
    fn a_reference_ends_with_its_object() {
        let stale = Checked::new(object(3));
        stale.place().0.set(4);
        stale.get();
    }
}
