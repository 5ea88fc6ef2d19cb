//! Kinds of arguments: what each means, and whether the call brings it.

use super::flags::Names;

/// Meaning of an argument.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A descriptor.
    Fd,
    /// A descriptor of a directory, or `AT_FDCWD`.
    Dir,
    /// An address.
    Ptr,
    /// A path.
    Path,
    /// Bytes that the process hands over; the next argument is their number.
    Bytes,
    /// Bytes that the process gets; the result is their number.
    Read,
    /// A number with a sign, of 32 bits.
    Int,
    /// A number without a sign, of 32 bits.
    Uint,
    /// A number without a sign.
    Size,
    /// A number with a sign.
    Off,
    /// A number in hexadecimal.
    Hex,
    /// A number in hexadecimal, but 0.
    Hex0,
    /// A mode of files.
    Octal,
    /// A signal.
    Signal,
    /// Flags, together.
    Flags(&'static Names),
    /// One of several.
    One(&'static Names),
    /// Flags of `open`.
    Open,
    /// A mode that is there only if flags before it create a file.
    Mode,
    /// Flags of `mmap`.
    Map,
    /// The new address of `mremap`, if its flags want one.
    Moved,
    /// All arguments of `clone`.
    Clone,
    /// A command of `fcntl`, and its argument.
    Fcntl,
    /// A request of `ioctl`.
    Ioctl,
    /// An operation of `futex`, and the arguments that it has.
    Futex,
    /// A time in nanoseconds, `struct timespec`.
    Time,
    /// That kind, which the process gets.
    TimeOut,
    /// A time in microseconds, `struct timeval`.
    Timeval,
    /// That kind, which the process gets.
    TimevalOut,
    /// Two times of a file.
    Times,
    /// `struct itimerval`.
    Interval,
    /// That kind, which the process gets.
    IntervalOut,
    /// `struct itimerspec`.
    TimerValue,
    /// That kind, which the process gets.
    TimerValueOut,
    /// `struct stat`, which the process gets.
    Stat,
    /// `struct statx`, which the process gets.
    Statx,
    /// Bytes in several places; the next argument is the number of places.
    Parts,
    /// That kind, which the process gets.
    PartsRead,
    /// `struct sigaction`.
    Action,
    /// That kind, which the process gets.
    ActionOut,
    /// Signals.
    Set,
    /// That kind, which the process gets.
    SetOut,
    /// Stack of handlers.
    Stack,
    /// That kind, which the process gets.
    StackOut,
    /// News of a child, which the process gets.
    Information,
    /// Descriptors to wait for; the next argument is their number.
    Poll,
    /// A set of descriptors, all below the first argument.
    Bits,
    /// Two descriptors, which the process gets.
    Pair,
    /// How a child has ended, which the process gets.
    Status,
    /// Usage of the processor, which the process gets.
    Usage,
    /// A list of texts.
    Words,
    /// A list of texts that are counted.
    Environment,
    /// Entries of a directory, which the process gets.
    Entries,
    /// An event of `epoll`.
    Event,
    /// Events of `epoll`, which the process gets.
    Events,
    /// A limit.
    Limit,
    /// That kind, which the process gets.
    LimitOut,
    /// Name of the system, which the process gets.
    Uname,
    /// Random bytes, which the process gets.
    Random,
    /// Structure of the request of `ioctl` before it.
    Terminal,
    /// Address of a socket; the next argument is its length.
    Address,
    /// That kind, which the process gets; the next argument leads to the length.
    AddressOut,
    /// A length, which the process changes.
    Length,
    /// A message.
    Message,
    /// That kind, which the process gets.
    MessageOut,
    /// Kind of a socket, with flags.
    SocketType,
    /// Protocol of a socket, whose family is the first argument.
    Protocol,
    /// An option of a socket, whose level is the argument before it.
    SocketOption,
    /// Value of an option; the next argument is its length.
    Value,
    /// That kind, which the process gets; the next argument leads to the length.
    ValueOut,
    /// Kind and permissions of a file.
    NodeMode,
    /// Key of an object of System V's ipc.
    Key,
    /// Flags of the call that makes such an object, with its permissions.
    Made(&'static Names),
    /// Structure of the command before it, of a segment.
    Segment,
    /// That, of a set of semaphores.
    Semaphores,
    /// That, of a queue of messages.
    Queue,
    /// Operations with semaphores; the next argument is their number.
    Operations,
    /// A message with its kind; the next argument is its length.
    Text,
    /// That kind, which the process gets; the result is its length.
    TextOut,
    /// Limits of a queue of POSIX, which are there only if flags create one.
    MadeLimits,
    /// Flags and limits of such a queue.
    Limits,
    /// That kind, which the process gets.
    LimitsOut,
    /// Priority of a message, which the process gets.
    Priority,
    /// How somebody wants to hear of something.
    Notice,
    /// Argument of `seccomp`, for the operation that is the first one.
    Restriction,
    /// A command of `prctl`, and the arguments that it has.
    Prctl,
    /// A word that has no meaning, and is not shown.
    Hidden,
    /// All six, of which nothing is known.
    Unknown,
}

impl Kind {
    /// Whether it is known only when the call has ended.
    pub(super) const fn is_brought(self) -> bool {
        use Kind::*;
        matches!(
            self,
            Read | TimeOut
                | TimevalOut
                | IntervalOut
                | TimerValueOut
                | Stat
                | Statx
                | PartsRead
                | ActionOut
                | SetOut
                | StackOut
                | Information
                | Pair
                | Status
                | Usage
                | Entries
                | Events
                | LimitOut
                | Uname
                | Random
                | Terminal
                | AddressOut
                | Length
                | MessageOut
                | ValueOut
                | Segment
                | Semaphores
                | Queue
                | TextOut
                | LimitsOut
                | Priority
        )
    }
}
