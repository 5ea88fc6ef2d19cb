//! Why a test failed, and the macros that say so.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use core::panic::Location;
use sys::Error;

/// Why a test failed: one line and the place.
pub struct Failure(Box<(String, &'static Location<'static>)>);

impl Failure {
    /// A failure at the caller's place.
    #[cold]
    #[track_caller]
    pub fn new(text: fmt::Arguments) -> Failure {
        Failure(Box::new((alloc::fmt::format(text), Location::caller())))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (text, place) = &*self.0;
        write!(f, "{text} ({}:{})", place.file(), place.line())
    }
}

impl From<Error> for Failure {
    #[track_caller]
    fn from(error: Error) -> Failure {
        Failure::new(format_args!("unexpected error: {error}"))
    }
}

/// What a test returns.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Fails the test unless the condition holds.
#[macro_export]
macro_rules! check {
    ($condition:expr $(,)?) => {
        $crate::check!($condition, "{}", stringify!($condition))
    };
    ($condition:expr, $($format:tt)+) => {
        if !$condition {
            return Err($crate::kit::Failure::new(format_args!($($format)+)));
        }
    };
}

/// Fails the test unless both are equal.
#[macro_export]
macro_rules! check_eq {
    ($got:expr, $want:expr $(,)?) => {
        match (&$got, &$want) {
            (got, want) => {
                $crate::check!(*got == *want, "{} is {:x?}, not {:x?}", stringify!($got), got, want)
            }
        }
    };
}
