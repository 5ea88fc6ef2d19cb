//! Rules that say which processor may touch a piece of the kernel's state, once several run the kernel (decision 0017), as types.
//!
//! One processor runs the kernel today, and these types do nothing but name the rule. They are the place for checks and locks.

use core::ops::Deref;

macro_rules! discipline {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Default)]
        pub struct $name<T>(T);

        impl<T> $name<T> {
            /// Puts a value under this rule.
            pub const fn new(value: T) -> Self {
                $name(value)
            }
        }

        impl<T> Deref for $name<T> {
            type Target = T;

            #[inline(always)]
            fn deref(&self) -> &T {
                &self.0
            }
        }
    )*};
}

discipline! {
    /// Belongs to one processor: that of the queue or line, or the home of the thread. Others send that processor a message.
    Home;

    /// Is changed under a lock: that of a tree of mappings, of a task, of the table of names, or of the pool. The pool's is taken last.
    Locked;

    /// May be read by each processor at any time. It is set by boot, or changed so rarely that a change may wait for all processors.
    Shared;
}
