//! Lines as strace prints them.

use super::*;
use linux_raw_sys::general::*;
use std::collections::BTreeMap;
use std::vec::Vec;

/// Memory of a test: pieces at addresses.
#[derive(Default)]
pub(super) struct Pieces(BTreeMap<u64, Vec<u8>>);

impl Pieces {
    pub(super) fn put(&mut self, at: u64, bytes: &[u8]) {
        self.0.insert(at, bytes.to_vec());
    }
}

impl Memory for Pieces {
    fn peek(&mut self, address: u64, to: &mut [u8]) -> usize {
        let Some((at, bytes)) = self.0.range(..=address).next_back() else { return 0 };
        let rest = bytes.get((address - at) as usize..).unwrap_or_default();
        let count = rest.len().min(to.len());
        to[..count].copy_from_slice(&rest[..count]);
        count
    }
}

/// A call as a line.
pub(super) fn format(number: u64, args: &Arguments, memory: &mut dyn Memory, result: u64) -> String {
    let begun = begin(number, args, memory);
    let (rest, told) = end(number, args, memory, &begun, result);
    let mut line = begun.text + &rest + " ";
    while line.len() < RESULT_COLUMN {
        line.push(' ');
    }
    line + "= " + &told
}

/// Compares a call whose texts stand where its arguments lead.
fn check(number: u32, args: &[i64], texts: &[(usize, &str)], result: i64, expected: &str) {
    let mut all = [0; 6];
    for (to, &from) in all.iter_mut().zip(args) {
        *to = from as u64;
    }
    let mut memory = Pieces::default();
    for &(at, text) in texts {
        all[at] = 0x1000 * (at as u64 + 1);
        memory.put(all[at], &[text.as_bytes(), &[0; 64]].concat());
    }
    assert_eq!(format(number.into(), &all, &mut memory, result as u64), expected);
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
    let line = "tee(3, 4, 10, SPLICE_F_NONBLOCK)        = 5";
    check(__NR_tee, &[3, 4, 10, 2], &[], 5, line);
    let line = "splice(3, NULL, 4, NULL, 100, 0)        = 100";
    check(__NR_splice, &[3, 0, 4, 0, 100, 0], &[], 100, line);
    let line = "preadv2(3, 0x1000, 1, -1, RWF_HIPRI)    = -1 ESPIPE (Illegal seek)";
    check(__NR_preadv2, &[3, 0x1000, 1, -1, 0, 1], &[], -29, line);
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
    let line = "fallocate(1, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 0, 4096) = -1 ESPIPE (Illegal seek)";
    check(__NR_fallocate, &[1, 3, 0, 4096], &[], -29, line);
    check(__NR_fallocate, &[1, 0, 0, 4096], &[], 0, "fallocate(1, 0, 0, 4096)                = 0");
    let line = "madvise(0x1000, 4096, MADV_WIPEONFORK)  = 0";
    check(__NR_madvise, &[0x1000, 4096, 18], &[], 0, line);
    let line = "mremap(0x1000, 4096, 8192, MREMAP_MAYMOVE) = 0x9000";
    check(__NR_mremap, &[0x1000, 4096, 8192, 1, 77], &[], 0x9000, line);
}

#[test]
fn processes() {
    let line = "clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f10) = 99";
    check(__NR_clone, &[0x1200011, 0, 0, 0x7f10, 0], &[], 99, line);
    let line = "wait4(-1, NULL, WNOHANG|WSTOPPED, NULL) = -1 ECHILD (No child processes)";
    check(__NR_wait4, &[-1, 0, 3, 0], &[], -10, line);
    check(__NR_kill, &[12, 15], &[], 0, "kill(12, SIGTERM)                       = 0");
    check(__NR_exit_group, &[0], &[], 0, "exit_group(0)                           = ?");
    let line = "futex(0x1000, FUTEX_WAKE_PRIVATE, 2147483647) = 0";
    check(__NR_futex, &[0x1000, 129, 0x7fff_ffff], &[], 0, line);
    let line = "seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC|SECCOMP_FILTER_FLAG_LOG, {len=4, filter=0x41}) = 0";
    let program = "\x04\0\0\0\0\0\0\0A\0\0\0\0\0\0\0";
    check(__NR_seccomp, &[1, 3, 2], &[(2, program)], 0, line);
    let line = "seccomp(SECCOMP_GET_ACTION_AVAIL, 0, [SECCOMP_RET_KILL_THREAD]) = 0";
    check(__NR_seccomp, &[2, 0, 2], &[(2, "\0\0\0\0")], 0, line);
    let line = "seccomp(SECCOMP_SET_MODE_STRICT, 0, NULL) = -1 EINVAL (Invalid argument)";
    check(__NR_seccomp, &[0, 0, 0], &[], -22, line);
    let line = "prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, {len=4, filter=0x41}) = 0";
    check(__NR_prctl, &[22, 2, 2], &[(2, program)], 0, line);
    check(__NR_prctl, &[22, 1], &[], 0, "prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) = 0");
    check(__NR_prctl, &[21], &[], 2, "prctl(PR_GET_SECCOMP)                   = 2");
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
    assert_eq!(begin(0, &[1, 2, 3, 4, 5, 6], &mut Pieces::default()).text, "read(1, ");
}

/// Words as bytes.
fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Compares a call with structures at addresses. The lines are those of strace 6.1 on Linux.
fn compare(number: u32, args: &[i64], pieces: &[(u64, &[u8])], result: i64, expected: &str) {
    let mut memory = Pieces::default();
    pieces.iter().for_each(|(at, bytes)| memory.put(*at, bytes));
    let mut all = [0; 6];
    for (to, &from) in all.iter_mut().zip(args) {
        *to = from as u64;
    }
    assert_eq!(format(number.into(), &all, &mut memory, result as u64), expected);
}

const A: i64 = 0x10_0000;
const B: i64 = 0x20_0000;
const C: i64 = 0x30_0000;

#[test]
fn structures_of_files() {
    let at = AT_FDCWD.into();
    let mut stat = words(&[0; 18]);
    stat[24..28].copy_from_slice(&0o100644u32.to_le_bytes());
    stat[48] = 62;
    let line = "newfstatat(3, \"\", {st_mode=S_IFREG|0644, st_size=62, ...}, AT_EMPTY_PATH) = 0";
    compare(__NR_newfstatat, &[3, B, A, 0x1000], &[(A as u64, &stat), (B as u64, &[0; 64])], 0, line);
    stat[24..28].copy_from_slice(&0o020666u32.to_le_bytes());
    stat[40..42].copy_from_slice(&[3, 1]);
    let line = "fstat(3, {st_mode=S_IFCHR|0666, st_rdev=makedev(0x1, 0x3), ...}) = 0";
    compare(__NR_fstat, &[3, A], &[(A as u64, &stat)], 0, line);
    let line = "fstat(3, 0x100000)                      = -1 EBADF (Bad file descriptor)";
    compare(__NR_fstat, &[3, A], &[(A as u64, &stat)], -9, line);
    let parts = words(&[B as u64, 5, C as u64, 30]);
    let pieces =
        [(A as u64, &parts[..]), (B as u64, b"hello"), (C as u64, b"world world world world world ")];
    let line = "writev(3, [{iov_base=\"hello\", iov_len=5}, {iov_base=\"world world world world world \", iov_len=30}], 2) = 35";
    compare(__NR_writev, &[3, A, 2], &pieces, 35, line);
    let line = "readv(3, [{iov_base=\"hello\", iov_len=5}, {iov_base=\"wo\", iov_len=30}], 2) = 7";
    compare(__NR_readv, &[3, A, 2], &pieces, 7, line);
    let times = words(&[1, 2, 0, UTIME_NOW.into()]);
    let line = "utimensat(AT_FDCWD, \"x\", [{tv_sec=1, tv_nsec=2}, UTIME_NOW], 0) = 0";
    let path = [&b"x"[..], &[0; 64]].concat();
    compare(__NR_utimensat, &[at, B, A, 0], &[(A as u64, &times), (B as u64, &path)], 0, line);
    let lock = words(&[0, 0, 10, 0]);
    let line = "fcntl(15, F_SETLK, {l_type=F_RDLCK, l_whence=SEEK_SET, l_start=0, l_len=10}) = 0";
    compare(__NR_fcntl, &[15, F_SETLK.into(), A], &[(A as u64, &lock)], 0, line);
    let line = "mknodat(AT_FDCWD, \"x\", S_IFIFO|0644, 0) = 0";
    compare(__NR_mknodat, &[at, B, 0o010644, 0], &[(B as u64, &path)], 0, line);
    let line = "getrandom(\"\\x4f\\x26\\xea\\x55\", 4, GRND_NONBLOCK) = 4";
    compare(__NR_getrandom, &[A, 4, 1], &[(A as u64, &[0x4f, 0x26, 0xea, 0x55])], 4, line);
}

#[test]
fn structures_of_signals_and_processes() {
    let action = words(&[0x557b8ebf9629, 0x1400_0000, 0x7f2de5fd3050, 1 << 16]);
    let line = "rt_sigaction(SIGUSR1, {sa_handler=0x557b8ebf9629, sa_mask=[CHLD], sa_flags=SA_RESTORER|SA_RESTART, \
                sa_restorer=0x7f2de5fd3050}, NULL, 8) = 0";
    compare(__NR_rt_sigaction, &[10, A, 0, 8], &[(A as u64, &action)], 0, line);
    let line = "rt_sigaction(SIGINT, NULL, {sa_handler=SIG_DFL, sa_mask=[], sa_flags=0}, 8) = 0";
    compare(__NR_rt_sigaction, &[2, 0, A, 8], &[(A as u64, &words(&[0; 4]))], 0, line);
    let sets = [words(&[!(3 << 31)]), words(&[1 << 1 | 1 << 11])];
    let line = "rt_sigprocmask(SIG_BLOCK, ~[RTMIN RT_1], NULL, 8) = 0";
    compare(__NR_rt_sigprocmask, &[0, A, 0, 8], &[(A as u64, &sets[0])], 0, line);
    let line = "rt_sigprocmask(SIG_SETMASK, [INT USR2], ~[RTMIN RT_1], 8) = 0";
    compare(__NR_rt_sigprocmask, &[2, B, A, 8], &[(A as u64, &sets[0]), (B as u64, &sets[1])], 0, line);
    for (status, told) in [
        (0x300, "WIFEXITED(s) && WEXITSTATUS(s) == 3"),
        (9, "WIFSIGNALED(s) && WTERMSIG(s) == SIGKILL"),
        (0x137f, "WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP"),
        (0xffff, "WIFCONTINUED(s)"),
    ] {
        let line = std::format!("wait4(-1, [{{{told}}}], 0, NULL) = 7");
        let padded = std::format!("{:39} = 7", line.trim_end_matches(" = 7"));
        compare(__NR_wait4, &[-1, A, 0, 0], &[(A as u64, &words(&[status]))], 7, &padded);
    }
    let list = words(&[B as u64, C as u64, 0]);
    let texts = [
        [&b"/bin/true"[..], &[0; 64]].concat(),
        [&b"0123456789012345678901234567890123"[..], &[0; 64]].concat(),
    ];
    let line = "execve(\"/bin/true\", [\"/bin/true\", \"01234567890123456789012345678901\"...], 0x100000 /* 2 vars */) = 0";
    let pieces = [(A as u64, &list[..]), (B as u64, &texts[0]), (C as u64, &texts[1])];
    compare(__NR_execve, &[B, A, A], &pieces, 0, line);
    let line = "prlimit64(0, RLIMIT_STACK, NULL, {rlim_cur=8192*1024, rlim_max=RLIM64_INFINITY}) = 0";
    compare(__NR_prlimit64, &[0, 3, 0, A], &[(A as u64, &words(&[8 << 20, u64::MAX]))], 0, line);
    let line = "nanosleep({tv_sec=0, tv_nsec=5}, NULL)  = 0";
    compare(__NR_nanosleep, &[A, 0], &[(A as u64, &words(&[0, 5]))], 0, line);
}

#[test]
fn structures_of_sockets() {
    let hidden = [&[1, 0, 0][..], b"abstract"].concat();
    let line = "bind(5, {sa_family=AF_UNIX, sun_path=@\"abstract\"}, 11) = 0";
    compare(__NR_bind, &[5, A, 11], &[(A as u64, &hidden)], 0, line);
    let path = [&[1, 0][..], b"/tmp/nosuch", &[0; 97]].concat();
    let line = "connect(5, {sa_family=AF_UNIX, sun_path=\"/tmp/nosuch\"}, 110) = -1 ENOENT (No such file or directory)";
    compare(__NR_connect, &[5, A, 110], &[(A as u64, &path)], -2, line);
    let inet = [2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let line =
        "connect(7, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"127.0.0.1\")}, 16) = 0";
    compare(__NR_connect, &[7, A, 16], &[(A as u64, &inet)], 0, line);
    let mut inet6 = [0; 28];
    (inet6[0], inet6[3], inet6[23]) = (10, 80, 1);
    let line = "connect(8, {sa_family=AF_INET6, sin6_port=htons(80), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, \"::1\", \
                &sin6_addr), sin6_scope_id=0}, 28) = 0";
    compare(__NR_connect, &[8, A, 28], &[(A as u64, &inet6)], 0, line);
    let line = "socketpair(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0, [3, 4]) = 0";
    compare(__NR_socketpair, &[1, 0x80001, 0, A], &[(A as u64, &words(&[4 << 32 | 3]))], 0, line);
    let line = "socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) = 7";
    compare(__NR_socket, &[2, 1, 6], &[], 7, line);
    let netlink = [16, 0, 0, 0, 7, 0, 0, 0, 0x11, 0, 0, 0];
    let line = "bind(3, {sa_family=AF_NETLINK, nl_pid=7, nl_groups=00000011}, 12) = 0";
    compare(__NR_bind, &[3, A, 12], &[(A as u64, &netlink)], 0, line);
    let line = "socket(AF_NETLINK, SOCK_RAW|SOCK_CLOEXEC, NETLINK_ROUTE) = 3";
    compare(__NR_socket, &[16, 0x80003, 0], &[], 3, line);
    let line = "setsockopt(3, SOL_NETLINK, NETLINK_EXT_ACK, [1], 4) = 0";
    compare(__NR_setsockopt, &[3, 270, 11, A, 4], &[(A as u64, &words(&[1]))], 0, line);
    let line = "setsockopt(5, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0";
    compare(__NR_setsockopt, &[5, 1, 2, A, 4], &[(A as u64, &words(&[1]))], 0, line);
    let message = words(&[0, 0, B as u64, 1, C as u64, 24, 0]);
    let control = [&20u64.to_le_bytes()[..], &[1, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]].concat();
    let part = words(&[0x40_0000, 5]);
    let line = "sendmsg(3, {msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base=\"hello\", iov_len=5}], msg_iovlen=1, \
                msg_control=[{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[6]}], \
                msg_controllen=24, msg_flags=0}, 0) = 5";
    let pieces = [(A as u64, &message[..]), (B as u64, &part), (C as u64, &control), (0x40_0000, b"hello")];
    compare(__NR_sendmsg, &[3, A, 0], &pieces, 5, line);
    // The length is another one afterwards.
    let mut memory = Pieces::default();
    memory.put(A as u64, &hidden);
    memory.put(B as u64, &110u32.to_le_bytes());
    let args = [5, A as u64, B as u64, 0, 0, 0];
    let begun = begin(__NR_getsockname.into(), &args, &mut memory);
    memory.put(B as u64, &11u32.to_le_bytes());
    let (rest, _) = end(__NR_getsockname.into(), &args, &mut memory, &begun, 0);
    assert_eq!(
        begun.text + &rest,
        "getsockname(5, {sa_family=AF_UNIX, sun_path=@\"abstract\"}, [110 => 11])"
    );
}

#[test]
fn interfaces() {
    let mut request = [&b"lo"[..], &[0; 38]].concat();
    request[16] = 1;
    for (number, line) in [
        (0x8933, "ioctl(3, SIOCGIFINDEX, {ifr_name=\"lo\", ifr_ifindex=1}) = 0"),
        (0x8910, "ioctl(3, SIOCGIFNAME, {ifr_ifindex=1, ifr_name=\"lo\"}) = 0"),
        (0x8921, "ioctl(3, SIOCGIFMTU, {ifr_name=\"lo\", ifr_mtu=1}) = 0"),
        (0x8915, "ioctl(3, SIOCGIFADDR, {ifr_name=\"lo\", ...}) = 0"),
        (0x8912, "ioctl(3, SIOCGIFCONF, 0x100000)         = 0"),
    ] {
        compare(__NR_ioctl, &[3, number, A], &[(A as u64, &request)], 0, line);
    }
}

#[test]
fn structures_of_waits() {
    let polls = words(&[(0x0001_0001 << 32) | 4, (0x0004_0005 << 32) | 3]);
    let line = "poll([{fd=4, events=POLLIN}, {fd=3, events=POLLIN|POLLOUT}], 2, 0) = 2 ([{fd=4, revents=POLLIN}, {fd=3, revents=POLLOUT}])";
    compare(__NR_poll, &[A, 2, 0], &[(A as u64, &polls)], 2, line);
    let line = "poll([{fd=4, events=POLLIN}], 1, 1)     = 0 (Timeout)";
    compare(__NR_poll, &[A, 1, 1], &[(A as u64, &polls)], 0, line);
    let pieces =
        [(A as u64, &words(&[1 << 4])[..]), (B as u64, &words(&[1 << 3])), (C as u64, &words(&[1, 0]))];
    let line = "pselect6(10, [4], [3], NULL, {tv_sec=1, tv_nsec=0}, NULL) = 2 (in [4], out [3])";
    compare(__NR_pselect6, &[10, A, B, 0, C, 0], &pieces, 2, line);
    let event = [&0x8000_0001u32.to_le_bytes()[..], &5u64.to_le_bytes()].concat();
    let line = "epoll_ctl(9, EPOLL_CTL_ADD, 4, {events=EPOLLIN|EPOLLET, data={u32=5, u64=5}}) = 0";
    compare(__NR_epoll_ctl, &[9, 1, 4, A], &[(A as u64, &event)], 0, line);
    let line = "epoll_wait(9, [{events=EPOLLIN|EPOLLET, data={u32=5, u64=5}}], 4, 0) = 1";
    compare(__NR_epoll_wait, &[9, A, 4, 0], &[(A as u64, &event)], 1, line);
    let line = "timerfd_settime(12, 0, {it_interval={tv_sec=0, tv_nsec=0}, it_value={tv_sec=1, tv_nsec=0}}, NULL) = 0";
    compare(__NR_timerfd_settime, &[12, 0, A, 0], &[(A as u64, &words(&[0, 0, 1, 0]))], 0, line);
    let line =
        "futex(0x1000, FUTEX_WAIT_PRIVATE, 2, {tv_sec=1, tv_nsec=0}) = -1 ETIMEDOUT (Connection timed out)";
    compare(__NR_futex, &[0x1000, 128, 2, A], &[(A as u64, &words(&[1, 0]))], -110, line);
}

/// Every number has a name, numbers rise, and no arguments or results are too strange to be printed.
#[test]
fn all_calls_can_be_printed() {
    assert!(CALLS.windows(2).all(|two| two[0].number < two[1].number));
    assert_eq!((name(0), name(469), name(470), name(340)), (Some("read"), Some("file_setattr"), None, None));
    let described = CALLS.iter().filter(|call| !matches!(call.kinds, [Kind::Unknown])).count();
    assert!(described >= 104, "{described}");
    for number in 0..500 {
        for value in [0, 1, 0x1000, 0x7fff_ffff, 0xffff_ffff, 1 << 63, u64::MAX] {
            for byte in [0, 1, 0xff] {
                let mut memory = Pieces::default();
                memory.put(value, &[byte; 300]);
                for result in [0, value] {
                    assert!(!format(number, &[value; 6], &mut memory, result).is_empty());
                }
            }
        }
    }
}
