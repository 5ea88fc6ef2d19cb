//! From bytes to a server's answer, piece by piece: its status, and its body, of which it says in one of three ways where it ends.

use crate::request::fields;
use crate::{FIELDS_MAX, HEAD_MAX};
use alloc::vec::Vec;
use httparse::{EMPTY_HEADER, Status};

/// Bytes of a line in front of a chunk, or of what follows the last one, at most.
const LINE_MAX: usize = 4 << 10;

/// Something that is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It is none of this protocol.
    Malformed,
    /// Its head is too long.
    TooLong,
    /// It ends too early.
    Cut,
}

/// Where in an answer the next byte is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Head,
    /// So many bytes of the body are left.
    Counted(u64),
    /// The body ends with the connection.
    UntilEnd,
    /// A line that says how long the next chunk is.
    Size,
    /// So many bytes of the chunk are left.
    Chunk(u64),
    /// The end of the line behind a chunk.
    Behind,
    /// Fields behind the last chunk, of which the empty line is the end.
    Trailer,
    Over,
}

/// An answer that comes.
#[derive(Debug)]
pub struct Reply {
    place: Place,
    /// A head or a line that is not whole yet.
    held: Vec<u8>,
    code: Option<u16>,
}

impl Default for Reply {
    fn default() -> Reply {
        Reply { place: Place::Head, held: Vec::new(), code: None }
    }
}

impl Reply {
    /// Its status, once it is known.
    pub fn code(&self) -> Option<u16> {
        self.code
    }

    /// Whether all of it has come.
    pub fn is_over(&self) -> bool {
        self.place == Place::Over
    }

    /// Takes what has come, and adds what of it is the body's to `body`. What follows the end is left out.
    pub fn push(&mut self, mut bytes: &[u8], body: &mut Vec<u8>) -> Result<(), Fault> {
        while !bytes.is_empty() && self.place != Place::Over {
            bytes = match self.place {
                Place::Head => self.head(bytes)?,
                Place::UntilEnd => {
                    body.extend_from_slice(bytes);
                    &[]
                }
                Place::Counted(left) => {
                    let (rest, left) = take(bytes, left, body);
                    self.place = if left == 0 { Place::Over } else { Place::Counted(left) };
                    rest
                }
                Place::Chunk(left) => {
                    let (rest, left) = take(bytes, left, body);
                    self.place = if left == 0 { Place::Behind } else { Place::Chunk(left) };
                    rest
                }
                Place::Size | Place::Behind | Place::Trailer => self.line(bytes)?,
                Place::Over => bytes,
            };
        }
        Ok(())
    }

    /// The connection has ended.
    pub fn end(self) -> Result<(), Fault> {
        match self.place {
            Place::Over | Place::UntilEnd => Ok(()),
            _ => Err(Fault::Cut),
        }
    }

    /// Adds to the head, and reads it when it is whole. Gives back what follows it.
    fn head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Fault> {
        let before = self.held.len();
        self.held.extend_from_slice(&bytes[..bytes.len().min(HEAD_MAX - before)]);
        let mut storage = [EMPTY_HEADER; FIELDS_MAX];
        let mut head = httparse::Response::new(&mut storage);
        match head.parse(&self.held) {
            Ok(Status::Complete(len)) => {
                let code = head.code.ok_or(Fault::Malformed)?;
                // RFC 9110, 15.2: others come before the answer.
                if !(100..200).contains(&code) {
                    self.place = body_of(code, &head)?;
                    self.code = Some(code);
                }
                self.held.clear();
                Ok(bytes.get(len.saturating_sub(before)..).unwrap_or_default())
            }
            Ok(Status::Partial) if self.held.len() < HEAD_MAX => Ok(&[]),
            Ok(Status::Partial) | Err(httparse::Error::TooManyHeaders) => Err(Fault::TooLong),
            Err(_) => Err(Fault::Malformed),
        }
    }

    /// Adds to a line, and reads it when it is whole. Gives back what follows it.
    fn line<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Fault> {
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        if self.held.len() + line.len() > LINE_MAX {
            return Err(Fault::TooLong);
        }
        self.held.extend_from_slice(line);
        if end.is_some() {
            let text = self.held.trim_ascii();
            self.place = match self.place {
                Place::Behind if text.is_empty() => Place::Size,
                Place::Size => match size(text).ok_or(Fault::Malformed)? {
                    0 => Place::Trailer,
                    len => Place::Chunk(len),
                },
                Place::Trailer if text.is_empty() => Place::Over,
                Place::Trailer => Place::Trailer,
                _ => return Err(Fault::Malformed),
            };
            self.held.clear();
        }
        Ok(rest)
    }
}

/// Moves bytes of which so many are left. Gives back those that follow, and how many are left then.
fn take<'a>(bytes: &'a [u8], left: u64, body: &mut Vec<u8>) -> (&'a [u8], u64) {
    let len = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
    body.extend_from_slice(&bytes[..len]);
    (&bytes[len..], left - len as u64)
}

/// Bytes of a chunk, from the line in front of it.
fn size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|&byte| byte == b';').next()?.trim_ascii();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    u64::from_str_radix(core::str::from_utf8(digits).ok().filter(|_| is_number)?, 16).ok()
}

/// How an answer says where its body ends: RFC 9112, 6.3.
fn body_of(code: u16, head: &httparse::Response) -> Result<Place, Fault> {
    if matches!(code, 204 | 304) {
        return Ok(Place::Over);
    }
    let mut encodings = fields(head.headers, "transfer-encoding");
    if let Some(encoding) = encodings.next() {
        let is_known = encoding.trim_ascii().eq_ignore_ascii_case(b"chunked") && encodings.next().is_none();
        return if is_known { Ok(Place::Size) } else { Err(Fault::Malformed) };
    }
    let mut lengths = fields(head.headers, "content-length").map(<[u8]>::trim_ascii);
    let Some(len) = lengths.next() else { return Ok(Place::UntilEnd) };
    let is_number =
        !len.is_empty() && len.iter().all(u8::is_ascii_digit) && lengths.all(|other| other == len);
    let len = core::str::from_utf8(len).ok().filter(|_| is_number).and_then(|len| len.parse().ok());
    Ok(match len.ok_or(Fault::Malformed)? {
        0 => Place::Over,
        len => Place::Counted(len),
    })
}
