//! What a further number costs: a method with one, and one with 128.

use super::stubs::Bench::Slope;
use super::{Keep, Nothing, report};
use crate::{Arguments, ITERATIONS, mark};
use core::hint::black_box;
use core::ptr::{addr_of, addr_of_mut};
use sys::Uid;

/// What the server receives into.
static mut ROOM: Slope::Room = Slope::Room::new();

pub(super) unsafe extern "C" fn server() {
    // SAFETY: one server at a time.
    let room = unsafe { &mut *addr_of_mut!(ROOM) };
    Slope::serve(&mut Nothing, room);
}

/// A number, whatever its place.
macro_rules! number {
    ($place:literal) => {
        i32
    };
}

/// The server's methods and the clients; the places are those of all numbers.
macro_rules! methods {
    ($($place:literal)*) => {
        impl Slope::Server for Nothing {
            fn one(&mut self, _: i32) -> Result<(), stub::Failure> {
                Ok(())
            }
            fn all(&mut self, $(_: number!($place)),*) -> Result<(), stub::Failure> {
                Ok(())
            }
        }

        /// Calls a method over and over with numbers from memory.
        pub(super) unsafe extern "C" fn one<const REGION: u8>() {
            run::<REGION>(|client, n| client.one(n[0]));
        }
        pub(super) unsafe extern "C" fn all<const REGION: u8>() {
            run::<REGION>(|client, n| client.all($(n[$place]),*));
        }
    };
}

methods! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34
    35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66
    67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95 96 97 98
    99 100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119 120 121 122
    123 124 125 126 127
}

#[inline(always)]
fn run<const REGION: u8>(call: impl Fn(Slope::Client, &[i32; 128]) -> Result<(), stub::Failure>) {
    let arguments: *const Arguments = addr_of!(crate::ARGUMENTS);
    // SAFETY: nobody changes them while a client runs.
    let client = Slope::Client { server: Uid(unsafe { (*arguments).server }) };
    let numbers = black_box([1i32; 128]);
    for _ in 0..ITERATIONS {
        mark::<1, REGION>();
        match call(client, &numbers) {
            Ok(value) => {
                value.keep();
                mark::<2, REGION>();
            }
            Err(_) => report(1),
        }
    }
    report(0)
}
