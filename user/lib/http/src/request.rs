//! From bytes to a request.
//!
//! A client may send one byte at a time, or several requests at once: [`read`] is asked again whenever something has come, and says how many bytes a
//! request took. A request with a body is answered, and its connection ends then, so nobody has to find the body's end, and no body is taken for a request.

use crate::path::Path;
use crate::{FIELDS_MAX, HEAD_MAX, Status};
use httparse::{EMPTY_HEADER, Error, Header};

/// A client's wish for a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The file.
    pub path: Path,
    /// Only the head of the answer is wanted.
    pub is_head: bool,
    /// The connection goes on behind the answer.
    pub goes_on: bool,
}

/// Meaning of bytes that have come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reading {
    /// It is not the whole of a request.
    More,
    /// A request, in so many bytes.
    Whole(Request, usize),
    /// It is none that is served. The connection ends behind the answer.
    Refused(Status),
}

/// Reads the first request in these bytes.
pub fn read(bytes: &[u8]) -> Reading {
    let mut fields = [EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    let seen = &bytes[..bytes.len().min(HEAD_MAX)];
    match head.parse(seen) {
        Ok(httparse::Status::Complete(len)) => match request(&head) {
            Ok(request) => Reading::Whole(request, len),
            Err(status) => Reading::Refused(status),
        },
        Ok(httparse::Status::Partial) if seen.len() < HEAD_MAX => Reading::More,
        Ok(httparse::Status::Partial) | Err(Error::TooManyHeaders) => {
            Reading::Refused(Status::FieldsTooLarge)
        }
        Err(Error::Version) => Reading::Refused(Status::VersionNotSupported),
        Err(_) => Reading::Refused(Status::BadRequest),
    }
}

fn request(head: &httparse::Request) -> Result<Request, Status> {
    let (Some(method), Some(target), Some(version)) = (head.method, head.path, head.version) else {
        return Err(Status::BadRequest);
    };
    let is_head = match method {
        "GET" => false,
        "HEAD" => true,
        _ => return Err(Status::MethodNotAllowed),
    };
    // RFC 9112, 3.2: one field Host, or none in version 1.0.
    match (fields(head.headers, "host").count(), version) {
        (1, _) | (0, 0) => {}
        _ => return Err(Status::BadRequest),
    }
    let has_body = ["content-length", "transfer-encoding"]
        .iter()
        .any(|name| fields(head.headers, name).any(|value| value.trim_ascii() != b"0"));
    let goes_on = version >= 1 && !has_body && !has_option(head.headers, "close");
    Ok(Request { path: Path::of(target)?, is_head, goes_on })
}

/// Values of the fields of a name.
pub(crate) fn fields<'a>(all: &'a [Header<'a>], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    all.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
}

/// Whether a field Connection has an option.
fn has_option(all: &[Header], option: &str) -> bool {
    let mut options = fields(all, "connection").flat_map(|value| value.split(|&byte| byte == b','));
    options.any(|found| found.trim_ascii().eq_ignore_ascii_case(option.as_bytes()))
}
