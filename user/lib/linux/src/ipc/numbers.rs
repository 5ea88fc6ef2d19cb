//! Numbers of Linux's headers `linux/ipc.h`, `linux/shm.h`, `linux/sem.h` and `linux/msg.h`, which the crate of such numbers does not have.

/// Key of an object that nobody finds by a key.
pub const IPC_PRIVATE: i32 = 0;
/// An object is made if there is none.
pub const IPC_CREAT: u32 = 0o1000;
/// There must be none.
pub const IPC_EXCL: u32 = 0o2000;
/// Nobody waits.
pub const IPC_NOWAIT: u32 = 0o4000;

/// Command: removes it.
pub const IPC_RMID: u32 = 0;
/// Command: sets owner and permissions.
pub const IPC_SET: u32 = 1;
/// Command: tells of it.
pub const IPC_STAT: u32 = 2;
/// Command: tells limits.
pub const IPC_INFO: u32 = 3;

/// Permissions of an object: bits to read and to write it.
pub const PERMISSIONS: u32 = 0o777;
/// Bytes of `struct ipc64_perm`.
pub const PERMISSIONS_BYTES: usize = 48;

/// A segment of large pages.
pub const SHM_HUGETLB: u32 = 0o4000;
/// A segment for which nothing is set aside.
pub const SHM_NORESERVE: u32 = 0o10000;
/// A segment that is read only is attached.
pub const SHM_RDONLY: u32 = 0o10000;
/// An address is rounded down to a page.
pub const SHM_RND: u32 = 0o20000;
/// It takes the place of what is there.
pub const SHM_REMAP: u32 = 0o40000;
/// Its bytes can be run.
pub const SHM_EXEC: u32 = 0o100000;
/// Mark of a segment: it goes with the last process that has it.
pub const SHM_DEST: u32 = 0o1000;
/// Mark of a segment: it stays in memory.
pub const SHM_LOCKED: u32 = 0o2000;
/// Command: keeps it in memory.
pub const SHM_LOCK: u32 = 11;
/// Command: does so no longer.
pub const SHM_UNLOCK: u32 = 12;
/// Command: tells of the segment at a place.
pub const SHM_STAT: u32 = 13;
/// Command: tells of all segments.
pub const SHM_INFO: u32 = 14;
/// Command: tells of the segment at a place, whoever may read it.
pub const SHM_STAT_ANY: u32 = 15;
/// Largest segment.
pub const SHMMAX: u64 = u64::MAX - (1 << 24);

/// An operation that the end of the process takes back.
pub const SEM_UNDO: u32 = 0x1000;
/// Command: the process that has changed a semaphore last.
pub const GETPID: u32 = 11;
/// Command: a value.
pub const GETVAL: u32 = 12;
/// Command: all values.
pub const GETALL: u32 = 13;
/// Command: threads that wait for a greater value.
pub const GETNCNT: u32 = 14;
/// Command: threads that wait for 0.
pub const GETZCNT: u32 = 15;
/// Command: sets a value.
pub const SETVAL: u32 = 16;
/// Command: sets all values.
pub const SETALL: u32 = 17;
/// Command: tells of the set at a place.
pub const SEM_STAT: u32 = 18;
/// Command: tells of all sets.
pub const SEM_INFO: u32 = 19;
/// Command: tells of the set at a place, whoever may read it.
pub const SEM_STAT_ANY: u32 = 20;
/// Semaphores of a set, at most.
pub const SEMMSL: u32 = 32_000;
/// Operations of a call, at most.
pub const SEMOPM: u64 = 500;
/// Largest value.
pub const SEMVMX: i32 = 32_767;

/// A message that is too long loses its end.
pub const MSG_NOERROR: u32 = 0o10000;
/// A message of any other kind.
pub const MSG_EXCEPT: u32 = 0o20000;
/// A copy of a message, which stays.
pub const MSG_COPY: u32 = 0o40000;
/// Command: tells of the queue at a place.
pub const MSG_STAT: u32 = 11;
/// Command: tells of all queues.
pub const MSG_INFO: u32 = 12;
/// Command: tells of the queue at a place, whoever may read it.
pub const MSG_STAT_ANY: u32 = 13;
/// Bytes of a message, at most.
pub const MSGMAX: u64 = 8192;
/// Bytes of the messages of a queue, at most, unless `root` says something else.
pub const MSGMNB: u64 = 16_384;
