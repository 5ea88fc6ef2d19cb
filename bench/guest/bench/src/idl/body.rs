//! Bodies of the measured servers' methods: they want each argument in a register, and have each result in one. That costs
//! no instruction of its own, and no compiler can leave out what brings the words there.
//!
//! An argument that is passed by reference has its address in a register and lies in memory.

use core::arch::asm;

/// A number of a method.
pub(super) trait Number {
    fn used(self);
}

impl Number for i32 {
    #[inline(always)]
    fn used(self) {
        // SAFETY: no instruction.
        unsafe { asm!("/* {0:e} */", in(reg) self, options(nomem, nostack, preserves_flags)) };
    }
}

impl Number for i16 {
    #[inline(always)]
    fn used(self) {
        // SAFETY: no instruction.
        unsafe { asm!("/* {0:x} */", in(reg) self, options(nomem, nostack, preserves_flags)) };
    }
}

impl Number for usize {
    #[inline(always)]
    fn used(self) {
        // SAFETY: no instruction.
        unsafe { asm!("/* {0} */", in(reg) self, options(nomem, nostack, preserves_flags)) };
    }
}

/// Something in memory.
#[inline(always)]
pub(super) fn used_at<T>(address: *const T) {
    // SAFETY: no instruction.
    unsafe { asm!("/* {0} */", in(reg) address, options(nostack, preserves_flags)) };
}

/// Bytes in memory, and how many.
#[inline(always)]
pub(super) fn used_bytes(bytes: &[u8]) {
    bytes.len().used();
    used_at(bytes.as_ptr());
}

/// A result.
#[inline(always)]
pub(super) fn made() -> i32 {
    let result;
    // SAFETY: no instruction; whatever the register holds is a number.
    unsafe { asm!("/* {0:e} */", out(reg) result, options(nomem, nostack, preserves_flags)) };
    result
}

/// Numbers, one by one.
macro_rules! use_all {
    ($($number:ident)*) => { $($number.used();)* };
}

/// Results, one for each literal.
macro_rules! make_all {
    ($($place:literal)*) => { ($({ let _ = $place; made() }),*) };
}

/// The methods of `Bench::Calls`, for a server that is called with `self` as `$who`.
macro_rules! methods {
    ($($who:tt)*) => {
        fn tiny($($who)*, a: i32) -> core::result::Result<(), stub::Failure> {
            a.used();
            Ok(())
        }
        fn small($($who)*, a: i32, b: i16, c: i16) -> core::result::Result<i32, stub::Failure> {
            a.used();
            b.used();
            c.used();
            Ok(made())
        }
        fn large(
            $($who)*,
            a1: i32,
            a2: i32,
            a3: i32,
            a4: i32,
            a5: i32,
            a6: i32,
            a7: i32,
            a8: i32,
            a9: i32,
        ) -> core::result::Result<Nine, stub::Failure> {
            use_all!(a1 a2 a3 a4 a5 a6 a7 a8 a9);
            Ok(make_all!(1 2 3 4 5 6 7 8 9))
        }
        fn larger(
            $($who)*,
            a1: i32,
            a2: i32,
            a3: i32,
            a4: i32,
            a5: i32,
            a6: i32,
            a7: i32,
            a8: i32,
            a9: i32,
            a10: i32,
            a11: i32,
            a12: i32,
            a13: i32,
            a14: i32,
            a15: i32,
            a16: i32,
        ) -> core::result::Result<Sixteen, stub::Failure> {
            use_all!(a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16);
            Ok(make_all!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16))
        }
        fn record($($who)*, record: &Record) -> core::result::Result<(), stub::Failure> {
            used_at(record);
            Ok(())
        }
        fn str($($who)*, text: &str) -> core::result::Result<(i32, i32), stub::Failure> {
            used_bytes(text.as_bytes());
            Ok((made(), made()))
        }
        fn length($($who)*, x: &[u8], y: &[u8]) -> core::result::Result<(), stub::Failure> {
            used_bytes(x);
            used_bytes(y);
            Ok(())
        }
    };
}

pub(super) use {make_all, methods, use_all};
