//! Values of messages, and how the two sides have them.

use crate::stubs::Files as idl;
use rt::api::stub::{Failure, List};
use rt::api::{self, Status};
use rt::door::NotNarrowed;
use vfs::watch::{Change, Event};
use vfs::{Attributes, Before, Entry, Error, How, Inode, Kind, Space};

/// Most bytes of one read or write.
pub const BYTES_MAX: usize = idl::BYTES_MAX as usize;

/// Most bytes of a path.
pub const PATH_MAX: usize = 4095;

/// Most entries of one `readdir`.
pub const ENTRIES_MAX: usize = 14;

/// Most events of one `next`.
pub const EVENTS_MAX: usize = 14;

/// Bits of `how` in `open`.
mod how {
    pub const CREATE: u32 = 1;
    pub const EXCLUSIVE: u32 = 2;
    pub const TRUNCATE: u32 = 4;
}

/// Bits of a way to open a file.
pub fn how_to_bits(how: How) -> u32 {
    let bit = |is_set: bool, bit| if is_set { bit } else { 0 };
    bit(how.create, how::CREATE) | bit(how.exclusive, how::EXCLUSIVE) | bit(how.truncate, how::TRUNCATE)
}

/// A way to open a file. None if a bit has no meaning.
pub fn how_from_bits(bits: u32) -> Option<How> {
    let has = |bit| bits & bit != 0;
    let how = How { create: has(how::CREATE), exclusive: has(how::EXCLUSIVE), truncate: has(how::TRUNCATE) };
    (how_to_bits(how) == bits).then_some(how)
}

/// Status of an error.
pub fn status(error: Error) -> Status {
    match error {
        Error::NotFound => Status::NotFound,
        Error::Exists => Status::Taken,
        Error::NotDirectory => Status::NotDirectory,
        Error::IsDirectory => Status::IsDirectory,
        Error::NotEmpty => Status::NotEmpty,
        Error::ReadOnly => Status::ReadOnly,
        Error::NoSpace => Status::Full,
        Error::NameTooLong => Status::NameTooLong,
        Error::TooLarge => Status::TooLarge,
        Error::TooManyLinks => Status::TooManyLinks,
        Error::Loop => Status::Loop,
        Error::Invalid => Status::BadRequest,
        Error::Busy => Status::Busy,
        Error::Io => Status::Io,
        Error::Damaged => Status::Damaged,
        Error::Unsupported => Status::Unsupported,
        Error::TooManyOpen => Status::TooManyOpen,
    }
}

/// Error of a status. One that no file system has is a fault of the server, and so of what it serves.
pub fn error_of(status: Status) -> Error {
    ERRORS.into_iter().find(|&error| self::status(error) == status).unwrap_or(Error::Io)
}

/// All errors.
const ERRORS: [Error; 17] = [
    Error::NotFound,
    Error::Exists,
    Error::NotDirectory,
    Error::IsDirectory,
    Error::NotEmpty,
    Error::ReadOnly,
    Error::NoSpace,
    Error::NameTooLong,
    Error::TooLarge,
    Error::TooManyLinks,
    Error::Loop,
    Error::Invalid,
    Error::Busy,
    Error::Io,
    Error::Damaged,
    Error::Unsupported,
    Error::TooManyOpen,
];

/// Answer of a method that fails.
pub fn refused(error: Error) -> Failure {
    Failure::Refused(status(error) as u32)
}

fn kind_to_wire(kind: Kind) -> idl::Kind {
    match kind {
        Kind::File => idl::Kind::KIND_FILE,
        Kind::Directory => idl::Kind::KIND_DIRECTORY,
        Kind::Symlink => idl::Kind::KIND_SYMLINK,
        Kind::Special => idl::Kind::KIND_SPECIAL,
    }
}

fn kind_from_wire(kind: idl::Kind) -> Kind {
    match kind {
        idl::Kind::KIND_FILE => Kind::File,
        idl::Kind::KIND_DIRECTORY => Kind::Directory,
        idl::Kind::KIND_SYMLINK => Kind::Symlink,
        idl::Kind::KIND_SPECIAL => Kind::Special,
    }
}

/// Condition on which an extended attribute is set, in a message.
pub fn before_to_wire(before: Before) -> idl::Before {
    match before {
        Before::Any => idl::Before::BEFORE_ANY,
        Before::None => idl::Before::BEFORE_NONE,
        Before::One => idl::Before::BEFORE_ONE,
    }
}

/// That of a message.
pub fn before_from_wire(before: idl::Before) -> Before {
    match before {
        idl::Before::BEFORE_ANY => Before::Any,
        idl::Before::BEFORE_NONE => Before::None,
        idl::Before::BEFORE_ONE => Before::One,
    }
}

/// Attributes in a message.
pub fn attributes_to_wire(from: &Attributes) -> idl::Attributes {
    idl::Attributes {
        inode: from.inode.0,
        len: from.len,
        allocated: from.allocated,
        accessed: from.accessed,
        modified: from.modified,
        changed: from.changed,
        links: from.links,
        owner: from.owner,
        group: from.group,
        permissions: from.permissions,
        kind: kind_to_wire(from.kind),
    }
}

/// Attributes of a message.
pub fn attributes_from_wire(from: &idl::Attributes) -> Attributes {
    Attributes {
        inode: Inode(from.inode),
        kind: kind_from_wire(from.kind),
        permissions: from.permissions,
        links: from.links,
        owner: from.owner,
        group: from.group,
        len: from.len,
        allocated: from.allocated,
        accessed: from.accessed,
        modified: from.modified,
        changed: from.changed,
    }
}

/// An entry in a message. None if its name is too long for one, which no file system has.
pub fn entry_to_wire(from: &Entry) -> Option<idl::Entry> {
    let name = List::new(&from.name)?;
    Some(idl::Entry { inode: from.inode.0, next: from.next, kind: kind_to_wire(from.kind), name })
}

/// An entry of a message.
pub fn entry_from_wire(from: &idl::Entry) -> Entry {
    Entry {
        name: from.name.to_vec(),
        inode: Inode(from.inode),
        kind: kind_from_wire(from.kind),
        next: from.next,
    }
}

fn change_to_wire(change: Change) -> idl::Change {
    match change {
        Change::Made => idl::Change::CHANGE_MADE,
        Change::Removed => idl::Change::CHANGE_REMOVED,
        Change::MovedFrom => idl::Change::CHANGE_MOVED_FROM,
        Change::MovedTo => idl::Change::CHANGE_MOVED_TO,
        Change::Contents => idl::Change::CHANGE_CONTENTS,
        Change::Attributes => idl::Change::CHANGE_ATTRIBUTES,
        Change::Moved => idl::Change::CHANGE_MOVED,
        Change::Gone => idl::Change::CHANGE_GONE,
        Change::Lost => idl::Change::CHANGE_LOST,
    }
}

fn change_from_wire(change: idl::Change) -> Change {
    match change {
        idl::Change::CHANGE_MADE => Change::Made,
        idl::Change::CHANGE_REMOVED => Change::Removed,
        idl::Change::CHANGE_MOVED_FROM => Change::MovedFrom,
        idl::Change::CHANGE_MOVED_TO => Change::MovedTo,
        idl::Change::CHANGE_CONTENTS => Change::Contents,
        idl::Change::CHANGE_ATTRIBUTES => Change::Attributes,
        idl::Change::CHANGE_MOVED => Change::Moved,
        idl::Change::CHANGE_GONE => Change::Gone,
        idl::Change::CHANGE_LOST => Change::Lost,
    }
}

/// An event in a message. None if its name is too long for one, which no file system has.
pub fn event_to_wire(from: &Event) -> Option<idl::Event> {
    let name = List::new(&from.name)?;
    Some(idl::Event { pair: from.pair, change: change_to_wire(from.change), name })
}

/// An event of a message.
pub fn event_from_wire(from: &idl::Event) -> Event {
    Event { change: change_from_wire(from.change), pair: from.pair, name: from.name.to_vec() }
}

/// Space in a message.
pub fn space_to_wire(from: Space) -> idl::Space {
    let Space { total, free, files, files_free } = from;
    idl::Space { total, free, files, files_free }
}

/// Space of a message.
pub fn space_from_wire(from: idl::Space) -> Space {
    let idl::Space { total, free, files, files_free } = from;
    Space { total, free, files, files_free }
}

/// A failure as programs see it.
pub fn failed(failure: Failure) -> api::Failure {
    match failure {
        // A path: clients see to it that nothing else is.
        Failure::TooLong => api::Failure::Refused(Status::NameTooLong),
        failure => failure.into(),
    }
}

/// Failure of whoever wants an object as another interface. One that is there and does not have it does not support what is asked for; one whose server
/// has ended is gone, and the next one may have it.
pub fn not_narrowed<C>(kept: NotNarrowed<C>) -> api::Failure {
    match kept.failure {
        Failure::Refused(_) => api::Failure::Refused(Status::Unsupported),
        failure => failed(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::api::stub::{Anything, MALFORMED, NO_METHOD};
    use rt::door::Reference;
    use rt::sys::Error as Kernel;

    #[test]
    fn only_an_object_that_is_there_lacks_an_interface() {
        let told = |failure| not_narrowed(NotNarrowed { reference: Reference::<Anything>::NOBODY, failure });
        for label in [NO_METHOD, MALFORMED, Status::Denied as u32] {
            assert_eq!(told(Failure::Refused(label)), api::Failure::Refused(Status::Unsupported));
        }
        for error in [Kernel::NoSuch, Kernel::PartnerDied] {
            assert!(told(Failure::Kernel(error)).server_is_gone(), "{error:?}");
        }
        assert_eq!(told(Failure::Kernel(Kernel::Limit)), api::Failure::Kernel(Kernel::Limit));
    }
}
