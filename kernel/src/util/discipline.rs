//! Who may touch a piece of the kernel's state, once several processors run the kernel (decision 0017): its type says it.
//!
//! One processor runs the kernel today, and these types do nothing but name the rule. They are where the checks and the locks go.

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
    /// Only one processor touches it: the one whose it is, or the home of the thread whose it is. Others send that processor a message.
    Home;

    /// It is read and changed under a lock: that of the tree of mappings which it belongs to, or that of the pool. A tree's lock is taken
    /// before the pool's.
    Locked;

    /// Each processor may read it at any time. It is set by boot, or changed so rarely that a change may wait for all processors.
    Shared;
}
