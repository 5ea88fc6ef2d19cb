//! Tells what a guest says to a person from what it says to these tools.
//!
//! The guest mixes control sequences into its output: ESC `]tern;` WORD BEL. Terminals ignore them, and
//! [`Filter`] takes them out of the stream wherever a read may have cut them.

/// A piece of the guest's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Text for a person.
    Text(Vec<u8>),
    /// The first program (shell, test suite, benchmark) has started.
    Begin,
    /// The guest is about to end, with this exit code.
    Exit(u8),
    /// A part of a report of a crash, for [`crash`](crate::crash).
    Crash(String),
    /// A part of what is told of calls of a program of Linux.
    Trace(Vec<u8>),
}

const START: &[u8] = b"\x1b]tern;";
const END: u8 = 7;

/// Longest control sequence; what is longer is text.
const SEQUENCE_LEN_MAX: usize = 256;

/// Splits a stream into events.
#[derive(Debug, Default)]
pub struct Filter {
    /// The beginning of what may become a control sequence.
    held: Vec<u8>,
}

impl Filter {
    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        let mut text = Vec::new();
        for byte in bytes {
            self.held.push(*byte);
            if let Some(event) = self.sequence() {
                flush(&mut text, &mut events);
                events.push(event);
                self.held.clear();
            } else if !self.may_continue() {
                self.release(&mut text);
            }
        }
        flush(&mut text, &mut events);
        events
    }

    /// Bytes that were held back when the stream ended.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// The held bytes as a complete sequence.
    fn sequence(&self) -> Option<Event> {
        let word = self.held.strip_prefix(START)?.strip_suffix(&[END])?;
        match word {
            b"begin" => Some(Event::Begin),
            // The console has put carriage returns in.
            [b't', b'r', b'a', b'c', b'e', b' ', text @ ..] => {
                Some(Event::Trace(text.iter().copied().filter(|byte| *byte != b'\r').collect()))
            }
            _ if word.starts_with(b"crash") || word.starts_with(b"stack") => {
                Some(Event::Crash(String::from_utf8(word.to_vec()).ok()?))
            }
            _ => {
                let number = std::str::from_utf8(word.strip_prefix(b"exit=")?).ok()?;
                // Statuses are bytes, as a POSIX shell's are.
                Some(Event::Exit(number.parse::<i64>().ok()? as u8))
            }
        }
    }

    fn may_continue(&self) -> bool {
        let common = self.held.len().min(START.len());
        self.held[..common] == START[..common]
            && self.held.len() < SEQUENCE_LEN_MAX
            && self.held.last() != Some(&END)
    }

    /// Gives up on the held bytes: all are text, but the last may start a sequence itself.
    fn release(&mut self, text: &mut Vec<u8>) {
        let keep = (self.held.len() > 1 && self.held.last() == Some(&START[0])) as usize;
        text.extend(self.held.drain(..self.held.len() - keep));
    }
}

fn flush(text: &mut Vec<u8>, events: &mut Vec<Event>) {
    if !text.is_empty() {
        events.push(Event::Text(std::mem::take(text)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the stream in pieces of every size; the joined events must be the same.
    fn check(stream: &[u8], expected: &[Event]) {
        for size in 1..=stream.len() {
            let mut filter = Filter::default();
            let mut events: Vec<Event> = Vec::new();
            for piece in stream.chunks(size) {
                for event in filter.push(piece) {
                    match (events.last_mut(), event) {
                        (Some(Event::Text(old)), Event::Text(new)) => old.extend(new),
                        (_, event) => events.push(event),
                    }
                }
            }
            assert_eq!(events, expected, "pieces of {size}");
        }
    }

    #[test]
    fn sequences_come_out_wherever_they_are_cut() {
        check(
            b"boot\n\x1b]tern;begin\x07out\x1b]tern;exit=3\x07",
            &[Event::Text(b"boot\n".to_vec()), Event::Begin, Event::Text(b"out".to_vec()), Event::Exit(3)],
        );
    }

    #[test]
    fn what_is_told_of_calls_is_apart() {
        check(
            b"a\x1b]tern;trace close(3) = 0\r\n\x07b",
            &[
                Event::Text(b"a".to_vec()),
                Event::Trace(b"close(3) = 0\n".to_vec()),
                Event::Text(b"b".to_vec()),
            ],
        );
    }

    #[test]
    fn other_sequences_are_text() {
        let text = b"\x1b[1mbold\x1b[0m \x1b]0;title\x07\x1b\x1b]tern;other\x07.";
        check(text, &[Event::Text(text.to_vec())]);
        let long = [START, &[b'x'; 300], b"\n"].concat();
        check(&long, &[Event::Text(long.clone())]);
    }

    #[test]
    fn an_escape_may_follow_an_escape() {
        check(b"\x1b\x1b]tern;begin\x07", &[Event::Text(b"\x1b".to_vec()), Event::Begin]);
    }
}
