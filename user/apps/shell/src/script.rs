//! Lines of a script: no prompt, no echo; what is too long or no text is refused as a whole.

use crate::input::{Bytes, END, LINE_LEN_MAX, Line, Source};
use crate::place::Place;
use alloc::string::String;
use alloc::vec::Vec;

/// A script on the console.
#[derive(Default)]
pub struct Script {
    bytes: Bytes,
    is_over: bool,
}

impl Source for Script {
    fn next_line(&mut self, _: &Place) -> Line {
        let mut line = Vec::new();
        let mut len = 0;
        while !self.is_over {
            match self.bytes.next_byte() {
                None | Some(END) => self.is_over = true,
                Some(b'\n') => return finish(line, len),
                Some(byte) => {
                    len += 1;
                    if len <= LINE_LEN_MAX {
                        line.push(byte);
                    }
                }
            }
        }
        if line.is_empty() { Line::End } else { finish(line, len) }
    }
}

fn finish(mut line: Vec<u8>, len: usize) -> Line {
    if len > LINE_LEN_MAX {
        const { assert!(LINE_LEN_MAX == 132 << 10) };
        return Line::Bad("the line is longer than 132 KiB");
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    String::from_utf8(line).map_or(Line::Bad("the line is not UTF-8 text"), Line::Text)
}
