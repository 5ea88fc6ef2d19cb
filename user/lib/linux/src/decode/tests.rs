//! Lines as strace prints them.

use super::{CALLS, Kind, Texts, format, name};
use linux_raw_sys::general::*;

/// Compares a call whose texts stand at their arguments' places.
fn check(number: u32, args: &[i64], texts: &[(usize, &str)], result: i64, expected: &str) {
    let mut all = [0; 6];
    for (to, &from) in all.iter_mut().zip(args) {
        *to = from as u64;
    }
    let mut found: Texts = [None; 6];
    for &(at, text) in texts {
        found[at] = Some(text.as_bytes());
    }
    assert_eq!(format(number.into(), &all, &found, Some(result as u64)), expected);
}

#[test]
fn files() {
    let at = AT_FDCWD.into();
    let line = "openat(AT_FDCWD, \"/etc/ld.so.cache\", O_RDONLY|O_CLOEXEC) = 3";
    check(__NR_openat, &[at, 1, 0x80000], &[(1, "/etc/ld.so.cache")], 3, line);
    let line = "openat(AT_FDCWD, \"x\", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3";
    check(__NR_openat, &[at, 1, 0o1101, 0o666], &[(1, "x")], 3, line);
    let line = "openat(AT_FDCWD, \"/\", O_RDONLY|O_NONBLOCK|O_CLOEXEC|O_DIRECTORY) = 3";
    check(__NR_openat, &[at, 1, 0o2204000], &[(1, "/")], 3, line);
    let line = "access(\"/etc/ld.so.preload\", R_OK)      = -1 ENOENT (No such file or directory)";
    check(__NR_access, &[1, 4], &[(0, "/etc/ld.so.preload")], -2, line);
    check(__NR_close, &[3], &[], 0, "close(3)                                = 0");
    check(__NR_lseek, &[3, -1, 2], &[], 9, "lseek(3, -1, SEEK_END)                  = 9");
    let line = "unlinkat(AT_FDCWD, \"d\", AT_REMOVEDIR)   = 0";
    check(__NR_unlinkat, &[at, 1, 0x200], &[(1, "d")], 0, line);
    check(__NR_umask, &[0o22], &[], 2, "umask(022)                              = 002");
    check(__NR_getppid, &[], &[], 7, "getppid()                               = 7");
}

#[test]
fn bytes() {
    let line = "write(1, \"hi\\n\", 3)                     = 3";
    check(__NR_write, &[1, 1, 3], &[(1, "hi\n")], 3, line);
    let line = "read(3, \"\\177ELF\\2\\1\\0015\\0\\\"\", 832)    = 10";
    check(__NR_read, &[3, 1, 832], &[(1, "\x7fELF\x02\x01\x015\0\"")], 10, line);
    let text = "0123456789012345678901234567890123456789";
    let line = "write(2, \"01234567890123456789012345678901\"..., 40) = 40";
    check(__NR_write, &[2, 1, 40], &[(1, text)], 40, line);
    check(
        __NR_read,
        &[0, 0x1000, 9],
        &[],
        -4,
        "read(0, 0x1000, 9)                      = -1 EINTR (Interrupted system call)",
    );
}

#[test]
fn memory() {
    let line = "mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f2307a57000";
    check(__NR_mmap, &[0, 8192, 3, 0x22, -1, 0], &[], 0x7f2307a57000, line);
    let line = "mmap(0x7f2307891000, 1400832, PROT_READ|PROT_EXEC, MAP_PRIVATE|MAP_FIXED|MAP_DENYWRITE, 3, 0x26000) = 0x7f2307891000";
    check(__NR_mmap, &[0x7f2307891000, 1400832, 5, 0x812, 3, 0x26000], &[], 0x7f2307891000, line);
    let line = "mprotect(0x1000, 4096, PROT_NONE)       = 0";
    check(__NR_mprotect, &[0x1000, 4096, 0], &[], 0, line);
    check(__NR_brk, &[0], &[], 0x55000, "brk(NULL)                               = 0x55000");
    let line = "mremap(0x1000, 4096, 8192, MREMAP_MAYMOVE) = 0x9000";
    check(__NR_mremap, &[0x1000, 4096, 8192, 1, 77], &[], 0x9000, line);
}

#[test]
fn processes() {
    let line = "clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f10) = 99";
    check(__NR_clone, &[0x1200011, 0, 0, 0x7f10, 0], &[], 99, line);
    let line = "wait4(-1, NULL, WNOHANG|WUNTRACED, NULL) = -1 ECHILD (No child processes)";
    check(__NR_wait4, &[-1, 0, 3, 0], &[], -10, line);
    check(__NR_kill, &[12, 15], &[], 0, "kill(12, SIGTERM)                       = 0");
    check(__NR_exit_group, &[0], &[], 0, "exit_group(0)                           = ?");
    let line = "futex(0x1000, FUTEX_WAKE_PRIVATE, 2147483647) = 0";
    check(__NR_futex, &[0x1000, 129, 0x7fff_ffff], &[], 0, line);
    let line = "pause()                                 = ? ERESTARTNOHAND (To be restarted if no handler)";
    check(__NR_pause, &[], &[], -514, line);
}

#[test]
fn descriptors() {
    let line = "fcntl(0, F_GETFL)                       = 0x8002 (flags O_RDWR|O_LARGEFILE)";
    check(__NR_fcntl, &[0, 3, 7], &[], 0x8002, line);
    let line = "fcntl(3, F_SETFD, FD_CLOEXEC)           = 0";
    check(__NR_fcntl, &[3, 2, 1], &[], 0, line);
    let line = "fcntl(1, F_DUPFD_CLOEXEC, 10)           = 10";
    check(__NR_fcntl, &[1, 1030, 10], &[], 10, line);
    let line = "fcntl(1, F_GETFD)                       = 0x1 (flags FD_CLOEXEC)";
    check(__NR_fcntl, &[1, 1], &[], 1, line);
    let line = "ioctl(1, TIOCGWINSZ, 0x7ffc10)          = -1 ENOTTY (Inappropriate ioctl for device)";
    check(__NR_ioctl, &[1, 0x5413, 0x7ffc10], &[], -25, line);
    let line = "dup3(3, 4, O_CLOEXEC)                   = 4";
    check(__NR_dup3, &[3, 4, 0x80000], &[], 4, line);
}

#[test]
fn calls_and_flags_that_nobody_knows() {
    check(
        5000,
        &[1],
        &[],
        -38,
        "syscall_0x1388(0x1, 0x0, 0x0, 0x0, 0x0, 0x0) = -1 ENOSYS (Function not implemented)",
    );
    let line = "lseek(3, 0, 0x63 /* SEEK_??? */)        = -1 EINVAL (Invalid argument)";
    check(__NR_lseek, &[3, 0, 99], &[], -22, line);
    let all = [1, 2, 3, 4, 5, 6];
    assert!(format(0, &all, &[None; 6], None).ends_with("<unfinished ...>"));
}

/// Every number has a name, numbers rise, and no arguments or results are too strange to be printed.
#[test]
fn all_calls_can_be_printed() {
    assert!(CALLS.windows(2).all(|two| two[0].number < two[1].number));
    assert_eq!((name(0), name(462), name(463), name(340)), (Some("read"), Some("mseal"), None, None));
    let described = CALLS.iter().filter(|call| !matches!(call.kinds, [Kind::Unknown])).count();
    assert!(described >= 104, "{described}");
    for number in 0..500 {
        for value in [0, 1, 0x7fff_ffff, 0xffff_ffff, 1 << 63, u64::MAX] {
            for texts in [[None; 6], [Some(&b"\0\xff"[..]); 6]] {
                for result in [None, Some(0), Some(value)] {
                    assert!(!format(number, &[value; 6], &texts, result).is_empty());
                }
            }
        }
    }
}
