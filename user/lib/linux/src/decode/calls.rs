//! Calls by number: name, arguments, result.

use super::flags::{self, Names};
use linux_raw_sys::general;

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
    /// All six, of which nothing is known.
    Unknown,
}

/// How a result that is no error is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// With a sign.
    Number,
    /// In hexadecimal.
    Address,
    /// In octal.
    Mode,
    /// The call does not return.
    None,
}

/// A call.
#[derive(Debug)]
pub struct Call {
    pub(super) number: u32,
    pub(super) name: &'static str,
    pub(super) kinds: &'static [Kind],
    pub(super) outcome: Outcome,
}

macro_rules! calls {
    ($($name:ident $number:ident $outcome:ident: $($kind:ident $(($set:ident))?)*;)*) => {
        /// All calls, by number.
        pub(super) static CALLS: &[Call] = &[$(Call {
            number: general::$number,
            name: stringify!($name),
            kinds: &[$(Kind::$kind $((&flags::$set))?),*],
            outcome: Outcome::$outcome,
        }),*];
    };
}

calls! {
    read __NR_read Number: Fd Read Size;
    write __NR_write Number: Fd Bytes Size;
    open __NR_open Number: Path Open Mode;
    close __NR_close Number: Fd;
    stat __NR_stat Number: Path Ptr;
    fstat __NR_fstat Number: Fd Ptr;
    lstat __NR_lstat Number: Path Ptr;
    poll __NR_poll Number: Ptr Uint Int;
    lseek __NR_lseek Number: Fd Off One(SEEK);
    mmap __NR_mmap Address: Ptr Size Flags(PROTECTION) Map Fd Hex0;
    mprotect __NR_mprotect Number: Ptr Size Flags(PROTECTION);
    munmap __NR_munmap Number: Ptr Size;
    brk __NR_brk Address: Ptr;
    rt_sigaction __NR_rt_sigaction Number: Signal Ptr Ptr Size;
    rt_sigprocmask __NR_rt_sigprocmask Number: One(MASK) Ptr Ptr Size;
    rt_sigreturn __NR_rt_sigreturn None: ;
    ioctl __NR_ioctl Number: Fd Ioctl Ptr;
    pread64 __NR_pread64 Number: Fd Read Size Off;
    pwrite64 __NR_pwrite64 Number: Fd Bytes Size Off;
    readv __NR_readv Number: Fd Ptr Int;
    writev __NR_writev Number: Fd Ptr Int;
    access __NR_access Number: Path Flags(ACCESS);
    pipe __NR_pipe Number: Ptr;
    select __NR_select Number: Int Ptr Ptr Ptr Ptr;
    sched_yield __NR_sched_yield Number: ;
    mremap __NR_mremap Address: Ptr Size Size Flags(MREMAP) Moved;
    msync __NR_msync Number: Ptr Size Flags(MSYNC);
    mincore __NR_mincore Number: Ptr Size Ptr;
    madvise __NR_madvise Number: Ptr Size One(MADVISE);
    shmget __NR_shmget Number: Unknown;
    shmat __NR_shmat Number: Unknown;
    shmctl __NR_shmctl Number: Unknown;
    dup __NR_dup Number: Fd;
    dup2 __NR_dup2 Number: Fd Fd;
    pause __NR_pause Number: ;
    nanosleep __NR_nanosleep Number: Ptr Ptr;
    getitimer __NR_getitimer Number: Unknown;
    alarm __NR_alarm Number: Uint;
    setitimer __NR_setitimer Number: Unknown;
    getpid __NR_getpid Number: ;
    sendfile __NR_sendfile Number: Fd Fd Ptr Size;
    socket __NR_socket Number: Int Int Int;
    connect __NR_connect Number: Fd Ptr Int;
    accept __NR_accept Number: Fd Ptr Ptr;
    sendto __NR_sendto Number: Unknown;
    recvfrom __NR_recvfrom Number: Unknown;
    sendmsg __NR_sendmsg Number: Unknown;
    recvmsg __NR_recvmsg Number: Unknown;
    shutdown __NR_shutdown Number: Fd Int;
    bind __NR_bind Number: Fd Ptr Int;
    listen __NR_listen Number: Fd Int;
    getsockname __NR_getsockname Number: Unknown;
    getpeername __NR_getpeername Number: Unknown;
    socketpair __NR_socketpair Number: Unknown;
    setsockopt __NR_setsockopt Number: Unknown;
    getsockopt __NR_getsockopt Number: Unknown;
    clone __NR_clone Number: Clone;
    fork __NR_fork Number: ;
    vfork __NR_vfork Number: ;
    execve __NR_execve Number: Path Ptr Ptr;
    exit __NR_exit None: Int;
    wait4 __NR_wait4 Number: Int Ptr Flags(WAIT) Ptr;
    kill __NR_kill Number: Int Signal;
    uname __NR_uname Number: Ptr;
    semget __NR_semget Number: Unknown;
    semop __NR_semop Number: Unknown;
    semctl __NR_semctl Number: Unknown;
    shmdt __NR_shmdt Number: Ptr;
    msgget __NR_msgget Number: Unknown;
    msgsnd __NR_msgsnd Number: Unknown;
    msgrcv __NR_msgrcv Number: Unknown;
    msgctl __NR_msgctl Number: Unknown;
    fcntl __NR_fcntl Number: Fd Fcntl Ptr;
    flock __NR_flock Number: Fd Flags(LOCK);
    fsync __NR_fsync Number: Fd;
    fdatasync __NR_fdatasync Number: Fd;
    truncate __NR_truncate Number: Path Off;
    ftruncate __NR_ftruncate Number: Fd Off;
    getdents __NR_getdents Number: Fd Ptr Uint;
    getcwd __NR_getcwd Number: Read Size;
    chdir __NR_chdir Number: Path;
    fchdir __NR_fchdir Number: Fd;
    rename __NR_rename Number: Path Path;
    mkdir __NR_mkdir Number: Path Octal;
    rmdir __NR_rmdir Number: Path;
    creat __NR_creat Number: Path Octal;
    link __NR_link Number: Path Path;
    unlink __NR_unlink Number: Path;
    symlink __NR_symlink Number: Path Path;
    readlink __NR_readlink Number: Path Read Size;
    chmod __NR_chmod Number: Path Octal;
    fchmod __NR_fchmod Number: Fd Octal;
    chown __NR_chown Number: Path Int Int;
    fchown __NR_fchown Number: Fd Int Int;
    lchown __NR_lchown Number: Path Int Int;
    umask __NR_umask Mode: Octal;
    gettimeofday __NR_gettimeofday Number: Ptr Ptr;
    getrlimit __NR_getrlimit Number: One(LIMITS) Ptr;
    getrusage __NR_getrusage Number: One(USAGE) Ptr;
    sysinfo __NR_sysinfo Number: Ptr;
    times __NR_times Number: Ptr;
    ptrace __NR_ptrace Number: Unknown;
    getuid __NR_getuid Number: ;
    syslog __NR_syslog Number: Unknown;
    getgid __NR_getgid Number: ;
    setuid __NR_setuid Number: Int;
    setgid __NR_setgid Number: Int;
    geteuid __NR_geteuid Number: ;
    getegid __NR_getegid Number: ;
    setpgid __NR_setpgid Number: Int Int;
    getppid __NR_getppid Number: ;
    getpgrp __NR_getpgrp Number: ;
    setsid __NR_setsid Number: ;
    setreuid __NR_setreuid Number: Int Int;
    setregid __NR_setregid Number: Int Int;
    getgroups __NR_getgroups Number: Int Ptr;
    setgroups __NR_setgroups Number: Int Ptr;
    setresuid __NR_setresuid Number: Int Int Int;
    getresuid __NR_getresuid Number: Ptr Ptr Ptr;
    setresgid __NR_setresgid Number: Int Int Int;
    getresgid __NR_getresgid Number: Ptr Ptr Ptr;
    getpgid __NR_getpgid Number: Int;
    setfsuid __NR_setfsuid Number: Int;
    setfsgid __NR_setfsgid Number: Int;
    getsid __NR_getsid Number: Int;
    capget __NR_capget Number: Unknown;
    capset __NR_capset Number: Unknown;
    rt_sigpending __NR_rt_sigpending Number: Ptr Size;
    rt_sigtimedwait __NR_rt_sigtimedwait Number: Ptr Ptr Ptr Size;
    rt_sigqueueinfo __NR_rt_sigqueueinfo Number: Unknown;
    rt_sigsuspend __NR_rt_sigsuspend Number: Ptr Size;
    sigaltstack __NR_sigaltstack Number: Ptr Ptr;
    utime __NR_utime Number: Path Ptr;
    mknod __NR_mknod Number: Path Octal Hex;
    uselib __NR_uselib Number: Unknown;
    personality __NR_personality Number: Unknown;
    ustat __NR_ustat Number: Unknown;
    statfs __NR_statfs Number: Path Ptr;
    fstatfs __NR_fstatfs Number: Fd Ptr;
    sysfs __NR_sysfs Number: Unknown;
    getpriority __NR_getpriority Number: Int Int;
    setpriority __NR_setpriority Number: Int Int Int;
    sched_setparam __NR_sched_setparam Number: Unknown;
    sched_getparam __NR_sched_getparam Number: Unknown;
    sched_setscheduler __NR_sched_setscheduler Number: Unknown;
    sched_getscheduler __NR_sched_getscheduler Number: Unknown;
    sched_get_priority_max __NR_sched_get_priority_max Number: Unknown;
    sched_get_priority_min __NR_sched_get_priority_min Number: Unknown;
    sched_rr_get_interval __NR_sched_rr_get_interval Number: Unknown;
    mlock __NR_mlock Number: Ptr Size;
    munlock __NR_munlock Number: Ptr Size;
    mlockall __NR_mlockall Number: Unknown;
    munlockall __NR_munlockall Number: ;
    vhangup __NR_vhangup Number: ;
    modify_ldt __NR_modify_ldt Number: Unknown;
    pivot_root __NR_pivot_root Number: Unknown;
    _sysctl __NR__sysctl Number: Unknown;
    prctl __NR_prctl Number: Unknown;
    arch_prctl __NR_arch_prctl Number: One(ARCH) Ptr;
    adjtimex __NR_adjtimex Number: Unknown;
    setrlimit __NR_setrlimit Number: One(LIMITS) Ptr;
    chroot __NR_chroot Number: Path;
    sync __NR_sync Number: ;
    acct __NR_acct Number: Unknown;
    settimeofday __NR_settimeofday Number: Unknown;
    mount __NR_mount Number: Unknown;
    umount2 __NR_umount2 Number: Unknown;
    swapon __NR_swapon Number: Unknown;
    swapoff __NR_swapoff Number: Unknown;
    reboot __NR_reboot Number: Unknown;
    sethostname __NR_sethostname Number: Bytes Size;
    setdomainname __NR_setdomainname Number: Unknown;
    iopl __NR_iopl Number: Unknown;
    ioperm __NR_ioperm Number: Unknown;
    create_module __NR_create_module Number: Unknown;
    init_module __NR_init_module Number: Unknown;
    delete_module __NR_delete_module Number: Unknown;
    get_kernel_syms __NR_get_kernel_syms Number: Unknown;
    query_module __NR_query_module Number: Unknown;
    quotactl __NR_quotactl Number: Unknown;
    nfsservctl __NR_nfsservctl Number: Unknown;
    getpmsg __NR_getpmsg Number: Unknown;
    putpmsg __NR_putpmsg Number: Unknown;
    afs_syscall __NR_afs_syscall Number: Unknown;
    tuxcall __NR_tuxcall Number: Unknown;
    security __NR_security Number: Unknown;
    gettid __NR_gettid Number: ;
    readahead __NR_readahead Number: Unknown;
    setxattr __NR_setxattr Number: Unknown;
    lsetxattr __NR_lsetxattr Number: Unknown;
    fsetxattr __NR_fsetxattr Number: Unknown;
    getxattr __NR_getxattr Number: Unknown;
    lgetxattr __NR_lgetxattr Number: Unknown;
    fgetxattr __NR_fgetxattr Number: Unknown;
    listxattr __NR_listxattr Number: Unknown;
    llistxattr __NR_llistxattr Number: Unknown;
    flistxattr __NR_flistxattr Number: Unknown;
    removexattr __NR_removexattr Number: Unknown;
    lremovexattr __NR_lremovexattr Number: Unknown;
    fremovexattr __NR_fremovexattr Number: Unknown;
    tkill __NR_tkill Number: Int Signal;
    time __NR_time Number: Ptr;
    futex __NR_futex Number: Ptr Futex Int Ptr Ptr Int;
    sched_setaffinity __NR_sched_setaffinity Number: Int Size Ptr;
    sched_getaffinity __NR_sched_getaffinity Number: Int Size Ptr;
    set_thread_area __NR_set_thread_area Number: Unknown;
    io_setup __NR_io_setup Number: Unknown;
    io_destroy __NR_io_destroy Number: Unknown;
    io_getevents __NR_io_getevents Number: Unknown;
    io_submit __NR_io_submit Number: Unknown;
    io_cancel __NR_io_cancel Number: Unknown;
    get_thread_area __NR_get_thread_area Number: Unknown;
    lookup_dcookie __NR_lookup_dcookie Number: Unknown;
    epoll_create __NR_epoll_create Number: Int;
    epoll_ctl_old __NR_epoll_ctl_old Number: Unknown;
    epoll_wait_old __NR_epoll_wait_old Number: Unknown;
    remap_file_pages __NR_remap_file_pages Number: Unknown;
    getdents64 __NR_getdents64 Number: Fd Ptr Size;
    set_tid_address __NR_set_tid_address Number: Ptr;
    restart_syscall __NR_restart_syscall Number: ;
    semtimedop __NR_semtimedop Number: Unknown;
    fadvise64 __NR_fadvise64 Number: Fd Off Size Int;
    timer_create __NR_timer_create Number: Unknown;
    timer_settime __NR_timer_settime Number: Unknown;
    timer_gettime __NR_timer_gettime Number: Unknown;
    timer_getoverrun __NR_timer_getoverrun Number: Unknown;
    timer_delete __NR_timer_delete Number: Unknown;
    clock_settime __NR_clock_settime Number: One(CLOCKS) Ptr;
    clock_gettime __NR_clock_gettime Number: One(CLOCKS) Ptr;
    clock_getres __NR_clock_getres Number: One(CLOCKS) Ptr;
    clock_nanosleep __NR_clock_nanosleep Number: One(CLOCKS) Flags(TIMER) Ptr Ptr;
    exit_group __NR_exit_group None: Int;
    epoll_wait __NR_epoll_wait Number: Fd Ptr Int Int;
    epoll_ctl __NR_epoll_ctl Number: Fd One(EPOLL_OPERATIONS) Fd Ptr;
    tgkill __NR_tgkill Number: Int Int Signal;
    utimes __NR_utimes Number: Path Ptr;
    vserver __NR_vserver Number: Unknown;
    mbind __NR_mbind Number: Unknown;
    set_mempolicy __NR_set_mempolicy Number: Unknown;
    get_mempolicy __NR_get_mempolicy Number: Unknown;
    mq_open __NR_mq_open Number: Unknown;
    mq_unlink __NR_mq_unlink Number: Unknown;
    mq_timedsend __NR_mq_timedsend Number: Unknown;
    mq_timedreceive __NR_mq_timedreceive Number: Unknown;
    mq_notify __NR_mq_notify Number: Unknown;
    mq_getsetattr __NR_mq_getsetattr Number: Unknown;
    kexec_load __NR_kexec_load Number: Unknown;
    waitid __NR_waitid Number: Unknown;
    add_key __NR_add_key Number: Unknown;
    request_key __NR_request_key Number: Unknown;
    keyctl __NR_keyctl Number: Unknown;
    ioprio_set __NR_ioprio_set Number: Unknown;
    ioprio_get __NR_ioprio_get Number: Unknown;
    inotify_init __NR_inotify_init Number: Unknown;
    inotify_add_watch __NR_inotify_add_watch Number: Unknown;
    inotify_rm_watch __NR_inotify_rm_watch Number: Unknown;
    migrate_pages __NR_migrate_pages Number: Unknown;
    openat __NR_openat Number: Dir Path Open Mode;
    mkdirat __NR_mkdirat Number: Dir Path Octal;
    mknodat __NR_mknodat Number: Dir Path Octal Hex;
    fchownat __NR_fchownat Number: Dir Path Int Int Flags(AT);
    futimesat __NR_futimesat Number: Unknown;
    newfstatat __NR_newfstatat Number: Dir Path Ptr Flags(AT);
    unlinkat __NR_unlinkat Number: Dir Path Flags(AT_REMOVE);
    renameat __NR_renameat Number: Dir Path Dir Path;
    linkat __NR_linkat Number: Dir Path Dir Path Flags(AT);
    symlinkat __NR_symlinkat Number: Path Dir Path;
    readlinkat __NR_readlinkat Number: Dir Path Read Size;
    fchmodat __NR_fchmodat Number: Dir Path Octal;
    faccessat __NR_faccessat Number: Dir Path Flags(ACCESS);
    pselect6 __NR_pselect6 Number: Int Ptr Ptr Ptr Ptr Ptr;
    ppoll __NR_ppoll Number: Ptr Uint Ptr Ptr Size;
    unshare __NR_unshare Number: Flags(CLONE);
    set_robust_list __NR_set_robust_list Number: Ptr Size;
    get_robust_list __NR_get_robust_list Number: Int Ptr Ptr;
    splice __NR_splice Number: Unknown;
    tee __NR_tee Number: Unknown;
    sync_file_range __NR_sync_file_range Number: Unknown;
    vmsplice __NR_vmsplice Number: Unknown;
    move_pages __NR_move_pages Number: Unknown;
    utimensat __NR_utimensat Number: Dir Path Ptr Flags(AT);
    epoll_pwait __NR_epoll_pwait Number: Fd Ptr Int Int Ptr Size;
    signalfd __NR_signalfd Number: Unknown;
    timerfd_create __NR_timerfd_create Number: Unknown;
    eventfd __NR_eventfd Number: Uint;
    fallocate __NR_fallocate Number: Fd Int Off Off;
    timerfd_settime __NR_timerfd_settime Number: Unknown;
    timerfd_gettime __NR_timerfd_gettime Number: Unknown;
    accept4 __NR_accept4 Number: Unknown;
    signalfd4 __NR_signalfd4 Number: Unknown;
    eventfd2 __NR_eventfd2 Number: Uint Flags(EVENT);
    epoll_create1 __NR_epoll_create1 Number: Flags(EPOLL_CREATE);
    dup3 __NR_dup3 Number: Fd Fd Flags(OPEN);
    pipe2 __NR_pipe2 Number: Ptr Flags(OPEN);
    inotify_init1 __NR_inotify_init1 Number: Unknown;
    preadv __NR_preadv Number: Fd Ptr Int Off;
    pwritev __NR_pwritev Number: Fd Ptr Int Off;
    rt_tgsigqueueinfo __NR_rt_tgsigqueueinfo Number: Unknown;
    perf_event_open __NR_perf_event_open Number: Unknown;
    recvmmsg __NR_recvmmsg Number: Unknown;
    fanotify_init __NR_fanotify_init Number: Unknown;
    fanotify_mark __NR_fanotify_mark Number: Unknown;
    prlimit64 __NR_prlimit64 Number: Int One(LIMITS) Ptr Ptr;
    name_to_handle_at __NR_name_to_handle_at Number: Unknown;
    open_by_handle_at __NR_open_by_handle_at Number: Unknown;
    clock_adjtime __NR_clock_adjtime Number: Unknown;
    syncfs __NR_syncfs Number: Fd;
    sendmmsg __NR_sendmmsg Number: Unknown;
    setns __NR_setns Number: Unknown;
    getcpu __NR_getcpu Number: Unknown;
    process_vm_readv __NR_process_vm_readv Number: Unknown;
    process_vm_writev __NR_process_vm_writev Number: Unknown;
    kcmp __NR_kcmp Number: Unknown;
    finit_module __NR_finit_module Number: Unknown;
    sched_setattr __NR_sched_setattr Number: Unknown;
    sched_getattr __NR_sched_getattr Number: Unknown;
    renameat2 __NR_renameat2 Number: Dir Path Dir Path Hex0;
    seccomp __NR_seccomp Number: Unknown;
    getrandom __NR_getrandom Number: Ptr Size Flags(RANDOM);
    memfd_create __NR_memfd_create Number: Unknown;
    kexec_file_load __NR_kexec_file_load Number: Unknown;
    bpf __NR_bpf Number: Unknown;
    execveat __NR_execveat Number: Dir Path Ptr Ptr Flags(AT);
    userfaultfd __NR_userfaultfd Number: Unknown;
    membarrier __NR_membarrier Number: Unknown;
    mlock2 __NR_mlock2 Number: Unknown;
    copy_file_range __NR_copy_file_range Number: Fd Ptr Fd Ptr Size Uint;
    preadv2 __NR_preadv2 Number: Unknown;
    pwritev2 __NR_pwritev2 Number: Unknown;
    pkey_mprotect __NR_pkey_mprotect Number: Unknown;
    pkey_alloc __NR_pkey_alloc Number: Unknown;
    pkey_free __NR_pkey_free Number: Unknown;
    statx __NR_statx Number: Dir Path Flags(AT) Hex Ptr;
    io_pgetevents __NR_io_pgetevents Number: Unknown;
    rseq __NR_rseq Number: Ptr Uint Hex0 Hex;
    uretprobe __NR_uretprobe Number: Unknown;
    pidfd_send_signal __NR_pidfd_send_signal Number: Unknown;
    io_uring_setup __NR_io_uring_setup Number: Unknown;
    io_uring_enter __NR_io_uring_enter Number: Unknown;
    io_uring_register __NR_io_uring_register Number: Unknown;
    open_tree __NR_open_tree Number: Unknown;
    move_mount __NR_move_mount Number: Unknown;
    fsopen __NR_fsopen Number: Unknown;
    fsconfig __NR_fsconfig Number: Unknown;
    fsmount __NR_fsmount Number: Unknown;
    fspick __NR_fspick Number: Unknown;
    pidfd_open __NR_pidfd_open Number: Unknown;
    clone3 __NR_clone3 Number: Unknown;
    close_range __NR_close_range Number: Uint Uint Hex0;
    openat2 __NR_openat2 Number: Unknown;
    pidfd_getfd __NR_pidfd_getfd Number: Unknown;
    faccessat2 __NR_faccessat2 Number: Dir Path Flags(ACCESS) Flags(AT_ACCESS);
    process_madvise __NR_process_madvise Number: Unknown;
    epoll_pwait2 __NR_epoll_pwait2 Number: Unknown;
    mount_setattr __NR_mount_setattr Number: Unknown;
    quotactl_fd __NR_quotactl_fd Number: Unknown;
    landlock_create_ruleset __NR_landlock_create_ruleset Number: Unknown;
    landlock_add_rule __NR_landlock_add_rule Number: Unknown;
    landlock_restrict_self __NR_landlock_restrict_self Number: Unknown;
    memfd_secret __NR_memfd_secret Number: Unknown;
    process_mrelease __NR_process_mrelease Number: Unknown;
    futex_waitv __NR_futex_waitv Number: Unknown;
    set_mempolicy_home_node __NR_set_mempolicy_home_node Number: Unknown;
    cachestat __NR_cachestat Number: Unknown;
    fchmodat2 __NR_fchmodat2 Number: Dir Path Octal Flags(AT);
    map_shadow_stack __NR_map_shadow_stack Number: Unknown;
    futex_wake __NR_futex_wake Number: Unknown;
    futex_wait __NR_futex_wait Number: Unknown;
    futex_requeue __NR_futex_requeue Number: Unknown;
    statmount __NR_statmount Number: Unknown;
    listmount __NR_listmount Number: Unknown;
    lsm_get_self_attr __NR_lsm_get_self_attr Number: Unknown;
    lsm_set_self_attr __NR_lsm_set_self_attr Number: Unknown;
    lsm_list_modules __NR_lsm_list_modules Number: Unknown;
    mseal __NR_mseal Number: Unknown;
}
