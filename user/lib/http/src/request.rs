//! From bytes to a request.
//!
//! A client may send one byte at a time, or several requests at once: [`read`] is asked again whenever something has come, and says how many bytes a
//! request took. The body of a PUT follows, as long as its head says. Another request with a body is answered, and its connection ends then, so nobody has to find
//! the body's end, and no body is taken for a request.

use crate::path::Path;
use crate::{FIELDS_MAX, HEAD_MAX, Status};
use httparse::{EMPTY_HEADER, Error, Header};

/// Something that a client wants of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Its bytes.
    Get,
    /// The head of the answer that tells its bytes.
    Head,
    /// It is to consist of the bytes that follow, of which there are so many.
    Put(u64),
    /// It is to go.
    Delete,
}

/// A client's wish.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The file.
    pub path: Path,
    /// The wish.
    pub method: Method,
    /// The client sends the body when it has heard that it may.
    pub expects: bool,
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
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "PUT" => Method::Put(body_len(head.headers)?),
        "DELETE" => Method::Delete,
        _ => return Err(Status::MethodNotAllowed),
    };
    if matches!(method, Method::Put(_) | Method::Delete) {
        // RFC 9110, 14.5: a part would take the place of the whole. And no file has a tag by which a condition could hold.
        if fields(head.headers, "content-range").next().is_some() {
            return Err(Status::BadRequest);
        }
        if ["if-match", "if-none-match"].iter().any(|name| fields(head.headers, name).next().is_some()) {
            return Err(Status::PreconditionFailed);
        }
    }
    // RFC 9112, 3.2: one field Host, or none in version 1.0.
    match (fields(head.headers, "host").count(), version) {
        (1, _) | (0, 0) => {}
        _ => return Err(Status::BadRequest),
    }
    let has_body = ["content-length", "transfer-encoding"]
        .iter()
        .any(|name| fields(head.headers, name).any(|value| value.trim_ascii() != b"0"));
    let is_read = !has_body || matches!(method, Method::Put(_));
    let goes_on = version >= 1 && is_read && !has_option(head.headers, "close");
    let expected = |value: &[u8]| value.trim_ascii().eq_ignore_ascii_case(b"100-continue");
    let expects = version >= 1 && fields(head.headers, "expect").any(expected);
    Ok(Request { path: Path::of(target)?, method, expects, goes_on })
}

/// Bytes of a body, of which one field tells and nothing else: RFC 9112, 6.3.
fn body_len(all: &[Header]) -> Result<u64, Status> {
    let mut told = fields(all, "content-length");
    let (Some(len), None, None) = (told.next(), told.next(), fields(all, "transfer-encoding").next()) else {
        return Err(Status::LengthRequired);
    };
    let digits = str::from_utf8(len.trim_ascii()).map_err(|_| Status::BadRequest)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number).ok_or(Status::BadRequest)
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
