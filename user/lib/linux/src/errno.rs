//! Errors of Linux's calls.

use linux_raw_sys::errno;

/// Number of an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub u16);

/// Outcome of a call.
pub type Result<T> = core::result::Result<T, Errno>;

macro_rules! errors {
    ($($name:ident $meaning:literal)*) => {
        $(
            #[doc = $meaning]
            pub const $name: Errno = Errno(errno::$name as u16);
        )*

        /// Name of an error, if it is one of those that are answered here.
        pub fn name(error: Errno) -> Option<&'static str> {
            match error {
                $($name => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

errors! {
    EPERM "not permitted"
    ENOENT "no such file"
    ESRCH "no such process"
    EINTR "interrupted by a signal"
    EIO "the device does not read or write"
    ENXIO "no such device"
    E2BIG "too many arguments"
    ENOEXEC "no program"
    EBADF "no such descriptor"
    ECHILD "no children"
    EAGAIN "not now"
    ENOMEM "no memory"
    EACCES "not allowed"
    EFAULT "an address that the process does not have"
    EBUSY "in use"
    EEXIST "there already"
    EXDEV "another file system"
    ENODEV "the device cannot do that"
    ENOTDIR "no directory"
    EISDIR "a directory"
    EINVAL "makes no sense"
    ENFILE "too many open files in the system"
    EMFILE "too many open files"
    ENOTTY "no terminal"
    ETXTBSY "a program that runs, or one that somebody writes"
    EFBIG "the file would be too long"
    ENOSPC "no room"
    ESPIPE "there is no position to go to"
    EROFS "read-only file system"
    EMLINK "too many names"
    EPIPE "nobody reads"
    EDOM "outside of what is defined"
    ERANGE "too large, or no room for the answer"
    ENOMSG "no message of that kind"
    EIDRM "removed meanwhile"
    EDEADLK "would wait for ever"
    ENAMETOOLONG "the name is too long"
    ENOSYS "no such call"
    ENOTEMPTY "not empty"
    ELOOP "too many symbolic links"
    ENODATA "no bytes"
    EOVERFLOW "does not fit"
    ELIBBAD "an interpreter that is none"
    ENOTSOCK "no socket"
    EOPNOTSUPP "cannot be done with this one"
    EAFNOSUPPORT "no such family of addresses"
    ETIMEDOUT "too late"
    ENOLCK "too many locks"
    EDESTADDRREQ "no address to send to"
    EMSGSIZE "the message is too long"
    EPROTOTYPE "a socket of another kind"
    ENOPROTOOPT "no such option"
    EPROTONOSUPPORT "no such protocol"
    ESOCKTNOSUPPORT "no such kind of socket"
    EADDRINUSE "the address is in use"
    ECONNRESET "the other end is gone, with bytes that it has not read"
    ENOBUFS "no room for a message"
    EISCONN "connected already"
    ENOTCONN "not connected"
    ETOOMANYREFS "too many descriptors on the way"
    ECONNREFUSED "nobody listens there"
    EADDRNOTAVAIL "not an address of this machine"
    ENETDOWN "there is no network any more"
    ENETUNREACH "no way leads there"
    EHOSTUNREACH "nobody answers there"
    ECONNABORTED "the connection was given up"
    EALREADY "it is being done"
    EINPROGRESS "it has begun"
}

impl Errno {
    /// The server itself has no memory left for its tables.
    pub const NO_MEMORY: Errno = ENOMEM;

    /// The result of a call that fails: Linux returns the number negated.
    pub const fn result(self) -> u64 {
        (self.0 as u64).wrapping_neg()
    }
}

impl From<vfs::Error> for Errno {
    fn from(error: vfs::Error) -> Errno {
        match error {
            vfs::Error::NotFound => ENOENT,
            vfs::Error::Exists => EEXIST,
            vfs::Error::NotDirectory => ENOTDIR,
            vfs::Error::IsDirectory => EISDIR,
            vfs::Error::NotEmpty => ENOTEMPTY,
            vfs::Error::ReadOnly => EROFS,
            vfs::Error::NoSpace => ENOSPC,
            vfs::Error::NameTooLong => ENAMETOOLONG,
            vfs::Error::TooLarge => EFBIG,
            vfs::Error::TooManyLinks => EMLINK,
            vfs::Error::Loop => ELOOP,
            vfs::Error::Invalid => EINVAL,
            vfs::Error::Busy => EBUSY,
            vfs::Error::Io | vfs::Error::Damaged => EIO,
            vfs::Error::Unsupported => EOPNOTSUPP,
            vfs::Error::TooManyOpen => ENFILE,
        }
    }
}
