//! From a request to an answer.
//!
//! [`Site`] is whatever has files. An [`Answer`] has its head whole, and says where its body is: a file is not read before it is sent.

use crate::Status;
use crate::page::{self, HTML, Listed, kind_of};
use crate::path::Path;
use crate::request::{Method, Request};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Name of the file that is shown in the place of its directory.
const INDEX: &[u8] = b"index.html";

/// Something that a path leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found<F> {
    /// A file of so many bytes.
    File(F, u64),
    /// A directory.
    Directory,
}

/// Reason why something is not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There is nothing of that name that is shown.
    NotFound,
    /// No file can have that name: there is no directory for it, or one has it.
    Conflict,
    /// There is no room.
    Full,
    /// The files do not answer now.
    Unavailable,
}

impl Refusal {
    fn status(self) -> Status {
        match self {
            Refusal::NotFound => Status::NotFound,
            Refusal::Conflict => Status::Conflict,
            Refusal::Full => Status::InsufficientStorage,
            Refusal::Unavailable => Status::Unavailable,
        }
    }
}

/// Files that are served.
pub trait Site {
    /// A file that is open.
    type File;
    /// Looks for what a path leads to.
    fn find(&mut self, path: &Path) -> Result<Found<Self::File>, Refusal>;
    /// Entries of a directory.
    fn list(&mut self, path: &Path) -> Result<Vec<Listed>, Refusal>;
    /// Whether files are kept and deleted here.
    fn is_writable(&self) -> bool {
        false
    }
    /// Deletes a file. Asked of a site that is writable.
    fn delete(&mut self, _: &Path) -> Result<(), Refusal> {
        Err(Refusal::NotFound)
    }
}

/// Body of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body<F> {
    /// Nothing is sent.
    Nothing,
    /// These bytes.
    Bytes(Vec<u8>),
    /// So many bytes of a file, from its beginning.
    File(F, u64),
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer<F> {
    /// Its head, as it is sent.
    pub head: Vec<u8>,
    /// Its body.
    pub body: Body<F>,
    /// The connection goes on.
    pub goes_on: bool,
}

/// The answer to a request that needs no body.
pub fn answer<S: Site>(request: &Request, site: &mut S) -> Answer<S::File> {
    let Request { path, method, goes_on, .. } = request;
    let made = match method {
        Method::Get | Method::Head => made(path, site),
        Method::Delete if site.is_writable() => site.delete(path).map(|()| Made::nothing(Status::NoContent)),
        Method::Delete | Method::Put(_) => return refuse(Status::MethodNotAllowed, site),
    };
    made.unwrap_or_else(|why| Made::why(why.status())).answer(*method == Method::Head, *goes_on)
}

/// The answer to a request whose body is a file's now, a new one's or not; or that could not be done. In that case nothing more is read.
pub fn kept<F>(outcome: Result<bool, Refusal>, goes_on: bool) -> Answer<F> {
    match outcome {
        Ok(is_new) => {
            let status = if is_new { Status::Created } else { Status::NoContent };
            Made::nothing(status).answer(false, goes_on)
        }
        Err(why) => Made::why(why.status()).answer(false, false),
    }
}

/// The answer to what is no request that is served. Nothing more is read then.
pub fn refuse<S: Site>(status: Status, site: &S) -> Answer<S::File> {
    let mut made = Made::why(status);
    if status == Status::MethodNotAllowed {
        let more = if site.is_writable() { ", PUT, DELETE" } else { "" };
        made.more = format!("Allow: GET, HEAD{more}\r\n");
    }
    made.answer(false, false)
}

/// An answer before it has a head.
struct Made<F> {
    status: Status,
    kind: &'static str,
    more: String,
    len: u64,
    body: Body<F>,
}

impl<F> Made<F> {
    fn nothing(status: Status) -> Made<F> {
        Made { status, kind: HTML, more: String::new(), len: 0, body: Body::Nothing }
    }

    fn why(status: Status) -> Made<F> {
        Made::page(status, page::why(status))
    }

    fn page(status: Status, bytes: Vec<u8>) -> Made<F> {
        Made { status, kind: HTML, more: String::new(), len: bytes.len() as u64, body: Body::Bytes(bytes) }
    }

    /// The head is the same for GET and HEAD: RFC 9110, 9.3.2.
    fn answer(self, is_head: bool, goes_on: bool) -> Answer<F> {
        let (code, reason) = (self.status.code(), self.status.reason());
        let (kind, len, more) = (self.kind, self.len, self.more);
        let connection = if goes_on { "keep-alive" } else { "close" };
        // RFC 9110, 8.6: this status says by itself that nothing follows.
        let content = match self.status {
            Status::NoContent => String::new(),
            _ => format!(
                "Content-Type: {kind}\r\nContent-Length: {len}\r\nX-Content-Type-Options: nosniff\r\n"
            ),
        };
        let head = format!(
            "HTTP/1.1 {code} {reason}\r\nServer: Tern\r\n{content}{more}Connection: {connection}\r\n\r\n"
        );
        let body = if is_head { Body::Nothing } else { self.body };
        Answer { head: head.into_bytes(), body, goes_on }
    }
}

fn made<S: Site>(path: &Path, site: &mut S) -> Result<Made<S::File>, Refusal> {
    match site.find(path)? {
        // A slash behind a file's name: there is no such directory.
        Found::File(..) if path.is_directory => Err(Refusal::NotFound),
        Found::File(file, len) => Ok(of_file(path, file, len)),
        Found::Directory if !path.is_directory => {
            // Links in its pages begin at the slash.
            let mut made = Made::why(Status::MovedPermanently);
            let address = path.clone().as_directory().address();
            made.more = format!("Location: {address}\r\n");
            Ok(made)
        }
        Found::Directory => {
            let index = path.below(INDEX);
            match site.find(&index) {
                Ok(Found::File(file, len)) => Ok(of_file(&index, file, len)),
                Ok(Found::Directory) | Err(Refusal::NotFound) => {
                    Ok(Made::page(Status::Ok, page::list(path, site.list(path)?)))
                }
                Err(missing) => Err(missing),
            }
        }
    }
}

fn of_file<F>(path: &Path, file: F, len: u64) -> Made<F> {
    let kind = kind_of(path.names().last().unwrap_or_default());
    Made { status: Status::Ok, kind, more: String::new(), len, body: Body::File(file, len) }
}
