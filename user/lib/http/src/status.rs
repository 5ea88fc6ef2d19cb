//! Statuses of answers.

/// Status of an answer, of those that a server of files gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Here it is.
    Ok = 200,
    /// It is a directory, and its address ends with a slash.
    MovedPermanently = 301,
    /// Nobody understands the request.
    BadRequest = 400,
    /// There is nothing of that name.
    NotFound = 404,
    /// Files are only read here.
    MethodNotAllowed = 405,
    /// The request did not come to its end in time.
    RequestTimeout = 408,
    /// The head is too long, or has too many fields.
    FieldsTooLarge = 431,
    /// The files do not answer now.
    Unavailable = 503,
    /// Another version of the protocol.
    VersionNotSupported = 505,
}

impl Status {
    /// Its number.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// The words behind the number.
    pub fn reason(self) -> &'static str {
        match self {
            Status::Ok => "OK",
            Status::MovedPermanently => "Moved Permanently",
            Status::BadRequest => "Bad Request",
            Status::NotFound => "Not Found",
            Status::MethodNotAllowed => "Method Not Allowed",
            Status::RequestTimeout => "Request Timeout",
            Status::FieldsTooLarge => "Request Header Fields Too Large",
            Status::Unavailable => "Service Unavailable",
            Status::VersionNotSupported => "HTTP Version Not Supported",
        }
    }
}
