//! Lines in order.

use crate::{Fault, Filter, Lines, Out};
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::ControlFlow;

/// Bytes that are sorted at once, at most. Each line counts for [`LINE`] more.
pub const SORT_MAX: usize = 16 << 20;

/// Bytes that a line takes besides its own.
const LINE: usize = 8;

/// Order of lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// By the number at the beginning of each, if there is one; by the bytes, where that does not decide (`-n`).
    pub is_numeric: bool,
    /// The greatest first (`-r`).
    pub is_reverse: bool,
    /// Of those that are equal the first alone (`-u`).
    pub is_unique: bool,
}

/// The program `sort`.
#[derive(Clone, Debug)]
pub struct Sort {
    order: Order,
    lines: Lines,
    all: All,
}

/// Lines, without their ends, one behind the other.
#[derive(Clone, Debug, Default)]
struct All {
    text: Vec<u8>,
    /// Where each line ends.
    ends: Vec<u32>,
}

impl All {
    fn push(&mut self, line: &[u8]) -> Result<(), Fault> {
        let len = self.text.len() + line.len();
        if len + LINE * (self.ends.len() + 1) > SORT_MAX {
            return Err(Fault::Much);
        }
        self.text.try_reserve(line.len())?;
        self.text.extend_from_slice(line);
        self.ends.try_reserve(1)?;
        self.ends.push(len as u32);
        Ok(())
    }

    fn line(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let begin = number.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.text[begin..self.ends[number] as usize]
    }
}

impl Sort {
    /// One that sorts in this order.
    pub fn new(order: Order) -> Sort {
        Sort { order, lines: Lines::default(), all: All::default() }
    }
}

impl Order {
    fn compare(self, one: &[u8], other: &[u8]) -> Ordering {
        let ordering = if self.is_numeric {
            let by_number = Number::of(one).compare(&Number::of(other));
            if self.is_unique { by_number } else { by_number.then_with(|| one.cmp(other)) }
        } else {
            one.cmp(other)
        };
        if self.is_reverse { ordering.reverse() } else { ordering }
    }
}

impl Filter for Sort {
    fn take(&mut self, piece: &[u8], _: &mut Out) -> Result<ControlFlow<()>, Fault> {
        let Sort { lines, all, .. } = self;
        lines.take(piece, |line| all.push(line))?;
        Ok(ControlFlow::Continue(()))
    }

    fn end(&mut self, _: &mut Out) -> Result<(), Fault> {
        let Sort { lines, all, .. } = self;
        lines.end(|line| all.push(line))
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        let Sort { order, all, .. } = self;
        let count = all.ends.len() as u32;
        let mut sorted = Vec::new();
        sorted.try_reserve_exact(count as usize)?;
        sorted.extend(0..count);
        // Lines that are equal stay in their order, so that the first one is shown; to sort so without their numbers takes more memory.
        sorted.sort_unstable_by(|&one, &other| {
            order.compare(all.line(one), all.line(other)).then(one.cmp(&other))
        });
        let mut before = None;
        for line in sorted.into_iter().map(|number| all.line(number)) {
            let is_again = before.is_some_and(|before| order.compare(before, line).is_eq());
            before = Some(line);
            if !(order.is_unique && is_again) {
                out(line);
                out(b"\n");
            }
        }
        Ok(())
    }
}

/// The number at the beginning of a line, of any length: blanks, a minus, digits, a point, digits. Where there is none, it is 0.
struct Number<'a> {
    is_negative: bool,
    /// Digits in front of the point, the first of which is no zero.
    whole: &'a [u8],
    /// Digits behind it, the last of which is no zero.
    part: &'a [u8],
}

impl<'a> Number<'a> {
    fn of(line: &'a [u8]) -> Number<'a> {
        let digits = |text: &'a [u8]| {
            text.split_at(text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
        };
        let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let text = &line[blanks..];
        let (is_negative, text) = text.strip_prefix(b"-").map_or((false, text), |text| (true, text));
        let (whole, behind) = digits(text);
        let part = behind.strip_prefix(b".").map_or(&[][..], |behind| digits(behind).0);
        let zeros = whole.iter().take_while(|&&digit| digit == b'0').count();
        let len = part.len() - part.iter().rev().take_while(|&&digit| digit == b'0').count();
        Number { is_negative, whole: &whole[zeros..], part: &part[..len] }
    }

    /// -1, 0 or 1.
    fn sign(&self) -> i8 {
        match (self.is_negative, self.whole.len() + self.part.len()) {
            (_, 0) => 0,
            (true, _) => -1,
            (false, _) => 1,
        }
    }

    fn compare(&self, other: &Number<'a>) -> Ordering {
        let size = |number: &Number<'a>| (number.whole.len(), number.whole, number.part);
        let by_size = || size(self).cmp(&size(other));
        self.sign().cmp(&other.sign()).then_with(|| match self.is_negative {
            true => by_size().reverse(),
            false => by_size(),
        })
    }
}
