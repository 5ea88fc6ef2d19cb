//! Structures of System V's ipc as text. Each is none if its memory cannot be read, or if its command has none; then its address is printed.

use super::flags::{self, Names};
use super::kinds::Kind;
use super::memory::{Memory, list};
use super::{TEXT_MAX, print_flags, print_known, print_octal, print_quoted};
use crate::ipc::numbers::*;
use alloc::format;
use alloc::string::String;
use linux_raw_sys::general::SIGEV_THREAD;

/// Operations that are printed, at most.
const OPERATIONS_MAX: u64 = 32;

/// Flags with which an object is made, and its permissions behind them: `IPC_CREAT|0600`.
pub(super) fn print_made(names: &Names, value: u64, line: &mut String) {
    let permissions = u64::from(PERMISSIONS);
    let before = line.len();
    let left = print_known(names, value & !permissions, "", line);
    if left != 0 {
        let bar = if line.len() > before { "|" } else { "" };
        super::add(line, format_args!("{bar}{left:#x}"));
    }
    line.push_str(if line.len() > before { "|" } else { "" });
    print_octal(value & permissions, line);
}

/// Structure of a command, at its address.
pub(super) fn control(kind: Kind, at: u64, command: u32, memory: &mut dyn Memory) -> Option<String> {
    match (kind, command) {
        (Kind::Segment, IPC_STAT | SHM_STAT | SHM_STAT_ANY) => segment(at, memory),
        (Kind::Segment, IPC_SET) => owned("shm", at, memory).map(|text| text + "}"),
        (Kind::Segment, IPC_INFO) => {
            words(&["shmmax", "shmmin", "shmmni", "shmseg", "shmall"], memory.words(at)?)
        }
        (Kind::Segment, SHM_INFO) => {
            let names = ["used_ids", "shm_tot", "shm_rss", "shm_swp", "swap_attempts", "swap_successes"];
            words(&names, memory.words::<6>(at)?)
        }
        (Kind::Semaphores, IPC_STAT | SEM_STAT | SEM_STAT_ANY) => {
            let [used, _, changed, _, count] = memory.words(at.wrapping_add(48))?;
            let told = format!(", sem_otime={used}, sem_ctime={changed}, sem_nsems={count}}}");
            Some(permissions("sem", at, memory)? + &told)
        }
        (Kind::Semaphores, IPC_SET) => owned("sem", at, memory).map(|text| text + "}"),
        (Kind::Semaphores, IPC_INFO | SEM_INFO) => {
            let names = [
                "semmap", "semmni", "semmns", "semmnu", "semmsl", "semopm", "semume", "semusz", "semvmx",
                "semaem",
            ];
            words(&names, memory.numbers::<10>(at)?.map(u64::from))
        }
        (Kind::Queue, IPC_STAT | MSG_STAT | MSG_STAT_ANY) => queue(at, memory),
        (Kind::Queue, IPC_SET) => {
            let [most] = memory.words(at.wrapping_add(88))?;
            Some(owned("msg", at, memory)? + &format!(", msg_qbytes={most}}}"))
        }
        (Kind::Queue, IPC_INFO | MSG_INFO) => {
            let names = ["msgpool", "msgmap", "msgmax", "msgmnb", "msgmni", "msgssz", "msgtql", "msgseg"];
            words(&names, memory.numbers::<8>(at)?.map(u64::from))
        }
        _ => None,
    }
}

/// Numbers with their names.
fn words<const N: usize>(names: &[&str; N], words: [u64; N]) -> Option<String> {
    let told: alloc::vec::Vec<String> =
        names.iter().zip(words).map(|(name, word)| format!("{name}={word}")).collect();
    Some(format!("{{{}}}", told.join(", ")))
}

/// Owner and permissions, which a command sets: `{shm_perm={uid=0, gid=0, mode=0600}`.
fn owned(name: &str, at: u64, memory: &mut dyn Memory) -> Option<String> {
    let [_, owner, group, _, _, mode] = memory.numbers(at)?;
    let mut text = format!("{{{name}_perm={{uid={owner}, gid={group}, mode=");
    print_octal(mode.into(), &mut text);
    Some(text + "}")
}

/// All of the permissions, which a command tells.
fn permissions(name: &str, at: u64, memory: &mut dyn Memory) -> Option<String> {
    let [key, owner, group, maker, maker_group, mode] = memory.numbers(at)?;
    let mut text = format!("{{{name}_perm={{uid={owner}, gid={group}, mode=");
    print_octal(mode.into(), &mut text);
    Some(text + &format!(", key={}, cuid={maker}, cgid={maker_group}}}", key as i32))
}

fn segment(at: u64, memory: &mut dyn Memory) -> Option<String> {
    let [len, attached, detached, changed, processes, attachments] = memory.words(at.wrapping_add(48))?;
    let (maker, last) = (processes as u32, processes >> 32);
    let told = format!(
        ", shm_segsz={len}, shm_cpid={maker}, shm_lpid={last}, shm_nattch={attachments}, shm_atime={attached}, \
         shm_dtime={detached}, shm_ctime={changed}}}"
    );
    Some(permissions("shm", at, memory)? + &told)
}

fn queue(at: u64, memory: &mut dyn Memory) -> Option<String> {
    let [sent, received, changed, _, count, most, last] = memory.words(at.wrapping_add(48))?;
    let (sender, receiver) = (last as u32, last >> 32);
    let told = format!(
        ", msg_stime={sent}, msg_rtime={received}, msg_ctime={changed}, msg_qnum={count}, msg_qbytes={most}, \
         msg_lspid={sender}, msg_lrpid={receiver}}}"
    );
    Some(permissions("msg", at, memory)? + &told)
}

/// Operations with semaphores.
pub(super) fn operations(at: u64, count: u64, memory: &mut dyn Memory) -> Option<String> {
    let operation = |index: u64| {
        let bytes: [u8; 6] = memory.bytes(at.wrapping_add(6 * index))?;
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let mut text = format!("{{sem_num={}, sem_op={}, sem_flg=", half(0), half(2).cast_signed());
        print_flags(&flags::SEMAPHORE, half(4).into(), &mut text);
        Some(text + "}")
    };
    list((0..count.min(OPERATIONS_MAX)).map(operation), count > OPERATIONS_MAX)
}

/// A message of so many bytes.
pub(super) fn message(at: u64, len: u64, memory: &mut dyn Memory) -> Option<String> {
    let [kind] = memory.words(at)?;
    let shown = usize::try_from(len).unwrap_or(usize::MAX).min(TEXT_MAX);
    let mut text = format!("{{mtype={}, mtext=", kind.cast_signed());
    print_quoted(&memory.some(at.wrapping_add(8), shown)?, &mut text);
    text.push_str(if len > TEXT_MAX as u64 { "..." } else { "" });
    Some(text + "}")
}

/// Flags and limits of a queue of POSIX: `struct mq_attr`.
pub(super) fn limits(at: u64, memory: &mut dyn Memory) -> Option<String> {
    let [flags, messages, bytes, now] = memory.words(at)?;
    let mut text = String::from("{mq_flags=");
    print_flags(&flags::NAMED_QUEUE, flags, &mut text);
    Some(text + &format!(", mq_maxmsg={messages}, mq_msgsize={bytes}, mq_curmsgs={now}}}"))
}

/// How somebody wants to hear of something: `struct sigevent`.
pub(super) fn notice(at: u64, memory: &mut dyn Memory) -> Option<String> {
    let [value, kind] = memory.words(at)?;
    let (signal, kind) = (kind as u32, (kind >> 32) as u32);
    let mut text = String::from("{");
    if value != 0 {
        text += &format!("sigev_value={{sival_int={}, sival_ptr={value:#x}}}, ", value as i32);
    }
    text.push_str("sigev_signo=");
    super::print_signal(signal, &mut text);
    text.push_str(", sigev_notify=");
    super::print_one(&flags::NOTICES, kind.into(), &mut text);
    if kind == SIGEV_THREAD {
        let [function, attributes] = memory.words(at.wrapping_add(16))?;
        for (name, at) in [("function", function), ("attributes", attributes)] {
            text += &format!(", sigev_notify_{name}=");
            super::print_address(at, &mut text);
        }
    }
    Some(text + "}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Pieces, format};
    use crate::ipc::numbers::{IPC_RMID, IPC_SET, IPC_STAT, SETVAL, SHM_INFO};
    use linux_raw_sys::general::*;
    use std::vec::Vec;

    const AT: u64 = 0x1000;

    fn check(number: u32, args: &[i64], bytes: &[u8], result: i64, expected: &str) {
        let mut all = [0; 6];
        all.iter_mut().zip(args).for_each(|(to, from)| *to = *from as u64);
        let mut memory = Pieces::default();
        memory.put(AT, bytes);
        assert_eq!(format(number.into(), &all, &mut memory, result as u64), expected);
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    const AT_ARGUMENT: i64 = AT as i64;

    #[test]
    fn objects_are_made() {
        check(__NR_shmget, &[0x77, 10000, 0], &[], 3, "shmget(0x77, 10000, 000)                = 3");
        let line = "shmget(IPC_PRIVATE, 10000, IPC_CREAT|IPC_EXCL|SHM_NORESERVE|000) = 3";
        check(__NR_shmget, &[0, 10000, 0o13000], &[], 3, line);
        let line = "shmget(IPC_PRIVATE, 10, SHM_HUGETLB|0x100000|0600) = -1 ENOMEM (Cannot allocate memory)";
        check(__NR_shmget, &[0, 10, 0x100980], &[], -12, line);
        let line = "semget(0xfffffffb, 3, IPC_CREAT|0644)   = 2";
        check(__NR_semget, &[-5, 3, 0o1644], &[], 2, line);
        check(__NR_msgget, &[0, 0o600], &[], 0, "msgget(IPC_PRIVATE, 0600)               = 0");
        let line = "shmat(3, NULL, SHM_RDONLY|SHM_RND|SHM_REMAP|SHM_EXEC) = -1 EINVAL (Invalid argument)";
        check(__NR_shmat, &[3, 0, 0o170000], &[], -22, line);
        check(__NR_shmat, &[3, 0, 0], &[], 0x7f00, "shmat(3, NULL, 0)                       = 0x7f00");
    }

    #[test]
    fn commands_have_structures() {
        let words = [0xffff_fffe, 2 << 32 | 1, 0o1600 << 32 | 3, 0, 0, 0, 5000, 11, 0, 12, 8 << 32 | 7, 1];
        let line = "shmctl(0, IPC_STAT, {shm_perm={uid=0, gid=1, mode=01600, key=-2, cuid=2, cgid=3}, shm_segsz=5000, shm_cpid=7, \
                    shm_lpid=8, shm_nattch=1, shm_atime=11, shm_dtime=0, shm_ctime=12}) = 0";
        check(__NR_shmctl, &[0, IPC_STAT.into(), AT_ARGUMENT], &bytes(&words), 0, line);
        let line = "shmctl(0, IPC_SET, {shm_perm={uid=0, gid=1, mode=01600}}) = 0";
        check(__NR_shmctl, &[0, IPC_SET.into(), AT_ARGUMENT], &bytes(&words), 0, line);
        let line = "shmctl(0, IPC_RMID, NULL)               = 0";
        check(__NR_shmctl, &[0, IPC_RMID.into(), 0], &[], 0, line);
        let line = "shmctl(0, 0x63 /* SHM_??? */, 0x1000)   = -1 EINVAL (Invalid argument)";
        check(__NR_shmctl, &[0, 99, AT_ARGUMENT], &[], -22, line);
        let line = "shmctl(0, SHM_INFO, {used_ids=1, shm_tot=3, shm_rss=0, shm_swp=0, swap_attempts=0, swap_successes=0}) = 3";
        check(__NR_shmctl, &[0, SHM_INFO.into(), AT_ARGUMENT], &bytes(&[1, 3, 0, 0, 0, 0]), 3, line);
        let line = "semctl(4, 1, SETVAL, 0x7)               = 0";
        check(__NR_semctl, &[4, 1, SETVAL.into(), 7], &[], 0, line);
        let words = [0, 0, 0o600 << 32, 0, 0, 0, 21, 22, 23, 0, 1, 16384, 7];
        let line = "msgctl(0, IPC_STAT, {msg_perm={uid=0, gid=0, mode=0600, key=0, cuid=0, cgid=0}, msg_stime=21, msg_rtime=22, msg_ctime=23, \
                    msg_qnum=1, msg_qbytes=16384, msg_lspid=7, msg_lrpid=0}) = 0";
        check(__NR_msgctl, &[0, IPC_STAT.into(), AT_ARGUMENT], &bytes(&words), 0, line);
        let line = "msgctl(0, IPC_SET, {msg_perm={uid=0, gid=0, mode=0600}, msg_qbytes=16384}) = 0";
        check(__NR_msgctl, &[0, IPC_SET.into(), AT_ARGUMENT], &bytes(&words), 0, line);
        let words = [0, 0, 0o644 << 32, 0, 0, 0, 21, 0, 22, 0, 3];
        let line = "semctl(4, 0, IPC_STAT, {sem_perm={uid=0, gid=0, mode=0644, key=0, cuid=0, cgid=0}, sem_otime=21, sem_ctime=22, \
                    sem_nsems=3}) = 0";
        check(__NR_semctl, &[4, 0, IPC_STAT.into(), AT_ARGUMENT], &bytes(&words), 0, line);
    }

    #[test]
    fn queues_of_posix() {
        let call = |number, args: &[i64], bytes: &[u8], result, expected: &str| {
            let mut memory = Pieces::default();
            memory.put(AT, bytes);
            memory.put(0x2000, b"foo\0");
            let mut all = [0; 6];
            all.iter_mut().zip(args).for_each(|(to, from)| *to = *from as u64);
            assert_eq!(format(u64::from(number), &all, &mut memory, result), expected);
        };
        let limits = bytes(&[0, 3, 20, 1]);
        let line = "mq_open(\"foo\", O_RDWR|O_CREAT|O_NONBLOCK, 0600, {mq_flags=0, mq_maxmsg=3, mq_msgsize=20, mq_curmsgs=1}) = 3";
        call(__NR_mq_open, &[0x2000, 0o4102, 0o600, AT_ARGUMENT], &limits, 3, line);
        let line = "mq_open(\"foo\", O_RDONLY|O_CLOEXEC)      = 4";
        call(__NR_mq_open, &[0x2000, 0o2000000, 0, AT_ARGUMENT], &limits, 4, line);
        let line = "mq_open(\"foo\", O_RDONLY|O_CREAT, 0600, NULL) = 5";
        call(__NR_mq_open, &[0x2000, 0o100, 0o600, 0], &[], 5, line);
        let line =
            "mq_getsetattr(3, NULL, {mq_flags=O_NONBLOCK, mq_maxmsg=3, mq_msgsize=20, mq_curmsgs=1}) = 0";
        call(__NR_mq_getsetattr, &[3, 0, AT_ARGUMENT], &bytes(&[0o4000, 3, 20, 1]), 0, line);
        let line = "mq_timedsend(3, \"foo\", 3, 5, NULL)      = 0";
        call(__NR_mq_timedsend, &[3, 0x2000, 3, 5, 0], &[], 0, line);
        let line = "mq_timedreceive(3, \"foo\", 30, [5], NULL) = 3";
        call(__NR_mq_timedreceive, &[3, 0x2000, 30, AT_ARGUMENT, 0], &bytes(&[5]), 3, line);
        let line = "mq_notify(3, {sigev_value={sival_int=9, sival_ptr=0x9}, sigev_signo=SIGUSR2, sigev_notify=SIGEV_SIGNAL}) = 0";
        call(__NR_mq_notify, &[3, AT_ARGUMENT], &bytes(&[9, 12]), 0, line);
        let line = "mq_notify(3, {sigev_signo=0, sigev_notify=SIGEV_THREAD, sigev_notify_function=NULL, sigev_notify_attributes=NULL}) \
                    = -1 EFAULT (Bad address)";
        call(__NR_mq_notify, &[3, AT_ARGUMENT], &bytes(&[0, 2 << 32, 0, 0]), 14u64.wrapping_neg(), line);
        call(__NR_mq_unlink, &[0x2000], &[], 0, "mq_unlink(\"foo\")                        = 0");
    }

    #[test]
    fn operations_and_messages() {
        let operations = [0i16, 1, 0, 1, 2, 0x1800, 2, -1, 4].map(i16::to_le_bytes).concat();
        let line = "semop(3, [{sem_num=0, sem_op=1, sem_flg=0}, {sem_num=1, sem_op=2, sem_flg=SEM_UNDO|IPC_NOWAIT}, \
                    {sem_num=2, sem_op=-1, sem_flg=0x4 /* SEM_??? */}], 3) = 0";
        check(__NR_semop, &[3, AT_ARGUMENT, 3], &operations, 0, line);
        let line = "semtimedop(3, [{sem_num=0, sem_op=1, sem_flg=0}], 1, NULL) = 0";
        check(__NR_semtimedop, &[3, AT_ARGUMENT, 1, 0], &operations, 0, line);
        let message = [&5u64.to_le_bytes()[..], b"hello\0", &[b'a'; 40]].concat();
        let line = "msgsnd(0, {mtype=5, mtext=\"hello\\0\"}, 6, 0) = 0";
        check(__NR_msgsnd, &[0, AT_ARGUMENT, 6, 0], &message, 0, line);
        let line = "msgrcv(0, {mtype=5, mtext=\"hello\\0aaaaaaaaaaaaaaaaaaaaaaaaaa\"...}, 50, -9, MSG_NOERROR|MSG_EXCEPT|IPC_NOWAIT) = 40";
        check(__NR_msgrcv, &[0, AT_ARGUMENT, 50, -9, 0o34000], &message, 40, line);
        let line = "msgrcv(0, 0x1000, 10, 0, IPC_NOWAIT)    = -1 ENOMSG (No message of desired type)";
        check(__NR_msgrcv, &[0, AT_ARGUMENT, 10, 0, 0o4000], &message, -42, line);
    }
}
