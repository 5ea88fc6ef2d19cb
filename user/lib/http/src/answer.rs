//! From a request to an answer.
//!
//! [`Site`] is whatever has files. An [`Answer`] has its head whole, and says where its body is: a file is not read before it is sent.

use crate::Status;
use crate::page::{self, HTML, Listed, kind_of};
use crate::path::Path;
use crate::request::Request;
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

/// Reason why there is no file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// There is nothing of that name that is shown.
    NotFound,
    /// The files do not answer now.
    Unavailable,
}

/// Files that are served.
pub trait Site {
    /// A file that is open.
    type File;
    /// Looks for what a path leads to.
    fn find(&mut self, path: &Path) -> Result<Found<Self::File>, Missing>;
    /// Entries of a directory.
    fn list(&mut self, path: &Path) -> Result<Vec<Listed>, Missing>;
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

/// The answer to a request.
pub fn answer<S: Site>(request: &Request, site: &mut S) -> Answer<S::File> {
    let Request { path, is_head, goes_on } = request;
    let made = made(path, site).unwrap_or_else(|missing| {
        refusal(match missing {
            Missing::NotFound => Status::NotFound,
            Missing::Unavailable => Status::Unavailable,
        })
    });
    made.answer(*is_head, *goes_on)
}

/// The answer to what is no request that is served. Nothing more is read then.
pub fn refuse<F>(status: Status) -> Answer<F> {
    refusal(status).answer(false, false)
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
    fn page(status: Status, bytes: Vec<u8>) -> Made<F> {
        Made { status, kind: HTML, more: String::new(), len: bytes.len() as u64, body: Body::Bytes(bytes) }
    }

    /// The head is the same for GET and HEAD: RFC 9110, 9.3.2.
    fn answer(self, is_head: bool, goes_on: bool) -> Answer<F> {
        let (code, reason) = (self.status.code(), self.status.reason());
        let (kind, len, more) = (self.kind, self.len, self.more);
        let connection = if goes_on { "keep-alive" } else { "close" };
        let head = format!(
            "HTTP/1.1 {code} {reason}\r\nServer: Tern\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n\
             X-Content-Type-Options: nosniff\r\n{more}Connection: {connection}\r\n\r\n"
        );
        let body = if is_head { Body::Nothing } else { self.body };
        Answer { head: head.into_bytes(), body, goes_on }
    }
}

fn refusal<F>(status: Status) -> Made<F> {
    let mut made = Made::page(status, page::why(status));
    if status == Status::MethodNotAllowed {
        made.more.push_str("Allow: GET, HEAD\r\n");
    }
    made
}

fn made<S: Site>(path: &Path, site: &mut S) -> Result<Made<S::File>, Missing> {
    match site.find(path)? {
        // A slash behind a file's name: there is no such directory.
        Found::File(..) if path.is_directory => Err(Missing::NotFound),
        Found::File(file, len) => Ok(of_file(path, file, len)),
        Found::Directory if !path.is_directory => {
            // Links in its pages begin at the slash.
            let mut made = refusal(Status::MovedPermanently);
            let address = path.clone().as_directory().address();
            made.more = format!("Location: {address}\r\n");
            Ok(made)
        }
        Found::Directory => {
            let index = path.below(INDEX);
            match site.find(&index) {
                Ok(Found::File(file, len)) => Ok(of_file(&index, file, len)),
                Ok(Found::Directory) | Err(Missing::NotFound) => {
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
