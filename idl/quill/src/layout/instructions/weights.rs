//! How many instructions things in messages take, in C and in Rust.

use super::counts::{Counts, List, What};
use super::{Formula, Loop};
use crate::kernel::KernelPart;

/// Sum of so many things with so many tenths each, in whole instructions.
pub(super) fn sum(parts: &[(u32, i32)], more: i32) -> u32 {
    let tenths: i32 = parts.iter().map(|&(count, tenths)| count as i32 * tenths).sum();
    u32::try_from((tenths + more + 5) / 10).unwrap_or(0)
}

/// One side of a method in one language: what it does with the request, and with the reply.
pub(super) struct Side {
    values: fn(&Counts, &Counts, i32) -> u32,
    there: Lists,
    back: Lists,
}

impl Side {
    /// Its instructions.
    pub fn formula(&self, there: &Counts, back: &Counts) -> Formula {
        let mut loops = Vec::new();
        let lists = self.there.tenths(there, &mut loops) + self.back.tenths(back, &mut loops);
        Formula { fixed: (self.values)(there, back, lists), loops }
    }
}

/// Tenths for lists of one message, at one of its ends: for the words in memory, or for strings there.
struct Lists {
    /// Of the list that is all that a message has in memory: text, bytes, parts, words, others.
    words: [i32; 5],
    /// Once for all strings, and for each.
    strings: i32,
    string: [i32; 5],
    /// Loops over a text in the words, and over one in a string.
    loops: [Option<Round>; 2],
}

/// A round of a loop: so many bytes, so many instructions; and those for eight bytes more.
type Round = (u64, u32, u32);

impl Lists {
    fn tenths(&self, message: &Counts, loops: &mut Vec<Loop>) -> i32 {
        let has_strings = message.lists.iter().any(|list| list.is_string);
        let each = message.lists.iter().map(|List { path, what, is_string }| {
            if let (What::Text, Some((bytes, round, rest))) = (what, self.loops[usize::from(*is_string)]) {
                loops.push(Loop { list: path.clone(), bytes, round, rest });
            }
            if *is_string { self.string[*what as usize] } else { self.words[*what as usize] }
        });
        each.sum::<i32>() + if has_strings { self.strings } else { 0 }
    }
}

/// Looks for the end of a text, two words in a round. A client in C does it, and a server that answers with one.
const SCAN: Option<Round> = Some((16, 9, 6));
/// Looks whether every byte of a text is ASCII, and none is zero.
const LOOK: Option<Round> = Some((8, 6, 6));
/// Looks whether every byte is ASCII; in Rust, where a zero is a character.
const LOOK_IN_RUST: Option<Round> = Some((8, 3, 3));
/// Looks so at a text that is one of several strings: a loop that the compiler unrolls.
const UNROLLED: Option<Round> = Some((64, 12, 4));

/// A client in C.
pub(super) const C_CLIENT: Side = Side {
    values: c_client,
    there: Lists {
        words: [182, 55, 67, 45, 52],
        strings: -47,
        string: [243, 116, 130, 130, 140],
        loops: [SCAN; 2],
    },
    back: Lists {
        words: [214, 167, 174, 90, 131],
        strings: 41,
        string: [194, 33, 83, 77, 133],
        loops: [LOOK; 2],
    },
};

/// A client in Rust.
pub(super) const RUST_CLIENT: Side = Side {
    values: rust_client,
    there: Lists { words: [39, 42, 42, 13, 12], strings: -1, string: [54, 53, 68, 65, 77], loops: [None; 2] },
    back: Lists {
        words: [160, 153, 204, 73, 132],
        strings: 30,
        string: [253, 30, 70, 72, 114],
        loops: [LOOK_IN_RUST, UNROLLED],
    },
};

/// A server by ipc in C.
const C_LOOP: Side = Side {
    values: c_loop,
    there: Lists {
        words: [217, 143, 168, 82, 111],
        strings: 37,
        string: [229, 29, 66, 61, 127],
        loops: [LOOK; 2],
    },
    back: Lists {
        words: [182, 69, 78, 38, 48],
        strings: -52,
        string: [217, 104, 114, 118, 126],
        loops: [SCAN; 2],
    },
};

/// A server by ipc in Rust.
const RUST_LOOP: Side = Side {
    values: rust_loop,
    there: Lists {
        words: [144, 149, 181, 69, 141],
        strings: 99,
        string: [298, 0, 39, 22, 79],
        loops: [LOOK_IN_RUST, UNROLLED],
    },
    back: Lists {
        words: [145, 166, 165, 18, 26],
        strings: -34,
        string: [104, 96, 104, 119, 102],
        loops: [None; 2],
    },
};

/// An object in C.
const C_OBJECT: Side = Side {
    values: c_object,
    there: Lists {
        words: [222, 138, 169, 78, 111],
        strings: 36,
        string: [188, 52, 97, 92, 155],
        loops: [LOOK; 2],
    },
    back: Lists {
        words: [193, 57, 72, 29, 38],
        strings: -1,
        string: [220, 82, 94, 89, 101],
        loops: [SCAN; 2],
    },
};

/// An object in Rust.
const RUST_OBJECT: Side = Side {
    values: rust_object,
    there: Lists {
        words: [153, 164, 205, 92, 144],
        strings: 96,
        string: [380, 73, 110, 100, 140],
        loops: [LOOK_IN_RUST, UNROLLED],
    },
    back: Lists {
        words: [109, 127, 116, 5, 17],
        strings: -21,
        string: [97, 87, 98, 103, 89],
        loops: [None; 2],
    },
};

/// A server in C, and one in Rust.
pub(super) fn servers(kernel: &dyn KernelPart) -> Option<(&'static Side, &'static Side)> {
    match kernel.name() {
        "tern-ipc" => Some((&C_LOOP, &RUST_LOOP)),
        "tern-door" => Some((&C_OBJECT, &RUST_OBJECT)),
        _ => None,
    }
}

fn c_client(there: &Counts, back: &Counts, lists: i32) -> u32 {
    sum(
        &[
            (1, 160),
            (back.words, 10),
            (back.truths, 31),
            (there.enums + back.enums, 20),
            (back.further, 22),
            (there.further, 31),
        ],
        lists,
    )
}

fn rust_client(there: &Counts, back: &Counts, lists: i32) -> u32 {
    sum(
        &[
            (1, 207),
            (back.words, 10),
            (back.truths, 26),
            (back.enums, 28),
            (there.further + back.further, 26),
            (u32::from(there.registers > 8), 21),
        ],
        lists,
    )
}

fn c_loop(there: &Counts, back: &Counts, lists: i32) -> u32 {
    sum(
        &[
            (1, 106),
            (there.words + back.words, 1),
            (there.words.saturating_sub(5) + back.words.saturating_sub(5), 5),
            (there.truths, 33),
            (there.enums, 22),
            (back.enums, 27),
            (there.further, 24),
            (back.further, 37),
            (there.small_structs, 14),
            (back.small_structs, 10),
            (there.struct_words + back.struct_words, 15),
            (back.pairs, 45),
        ],
        lists,
    )
}

/// Words of the first four registers are arguments of a function; the others, and all that go back, have places in a frame.
fn rust_loop(there: &Counts, back: &Counts, lists: i32) -> u32 {
    sum(
        &[
            (1, 144),
            (there.registers.saturating_sub(4), 26),
            (there.further + back.further, 32),
            (there.pairs + back.pairs, 29),
            (there.truths, 27),
            (there.enums, 35),
            (there.small_structs, 20),
            (there.struct_words, 20),
            (back.registers, 18),
            (back.registers.saturating_sub(5), 14),
            (back.small_structs, 26),
            (back.truths + back.enums, 10),
        ],
        lists,
    )
}

/// Words that are no arguments of a function, and those that it does not return, have places in a frame.
fn framed(there: &Counts, back: &Counts) -> [u32; 3] {
    let (there, back) = (there.registers.saturating_sub(4), back.registers.saturating_sub(1));
    [there, back, u32::from(there + back > 0)]
}

fn c_object(there: &Counts, back: &Counts, lists: i32) -> u32 {
    let [words_there, words_back, frame] = framed(there, back);
    sum(
        &[
            (1, 150),
            (words_there, 26),
            (words_back, 25),
            (frame, 15),
            (there.truths, 35),
            (there.enums, 26),
            (back.enums, 25),
            (there.further, 23),
            (back.further, 38),
            (there.small_structs, 22),
            (there.struct_words + back.struct_words, 15),
            (back.pairs, 45),
        ],
        lists,
    )
}

fn rust_object(there: &Counts, back: &Counts, lists: i32) -> u32 {
    let [words_there, words_back, frame] = framed(there, back);
    sum(
        &[
            (1, 162),
            (words_there, 22),
            (words_back, 19),
            (frame, 18),
            (back.registers.saturating_sub(5), 11),
            (there.further + back.further, 30),
            (there.pairs + back.pairs, 28),
            (there.truths, 29),
            (there.enums, 36),
            (there.small_structs, 21),
            (there.struct_words, 20),
            (back.small_structs, 24),
            (back.truths + back.enums, 10),
        ],
        lists,
    )
}
