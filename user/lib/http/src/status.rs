//! Statuses of answers.

/// Status of an answer, of those that a server of files gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Here it is.
    Ok = 200,
    /// It was kept, and is new.
    Created = 201,
    /// It was done, and there is nothing to say.
    NoContent = 204,
    /// It is a directory, and its address ends with a slash.
    MovedPermanently = 301,
    /// Nobody understands the request.
    BadRequest = 400,
    /// There is nothing of that name.
    NotFound = 404,
    /// Nobody does that with files here.
    MethodNotAllowed = 405,
    /// The request did not come to its end in time.
    RequestTimeout = 408,
    /// No file can have that name: there is no directory for it, or one has it.
    Conflict = 409,
    /// A body does not say how long it is.
    LengthRequired = 411,
    /// A condition does not hold: of those that name a file's tag none does.
    PreconditionFailed = 412,
    /// A body is longer than a file may be.
    ContentTooLarge = 413,
    /// The head is too long, or has too many fields.
    FieldsTooLarge = 431,
    /// The files do not answer now.
    Unavailable = 503,
    /// Another version of the protocol.
    VersionNotSupported = 505,
    /// There is no room for the file.
    InsufficientStorage = 507,
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
            Status::Created => "Created",
            Status::NoContent => "No Content",
            Status::MovedPermanently => "Moved Permanently",
            Status::BadRequest => "Bad Request",
            Status::NotFound => "Not Found",
            Status::MethodNotAllowed => "Method Not Allowed",
            Status::RequestTimeout => "Request Timeout",
            Status::Conflict => "Conflict",
            Status::LengthRequired => "Length Required",
            Status::PreconditionFailed => "Precondition Failed",
            Status::ContentTooLarge => "Content Too Large",
            Status::FieldsTooLarge => "Request Header Fields Too Large",
            Status::Unavailable => "Service Unavailable",
            Status::VersionNotSupported => "HTTP Version Not Supported",
            Status::InsufficientStorage => "Insufficient Storage",
        }
    }
}
