//! The calls, by their numbers.

pub mod addresses;
pub mod aio;
pub mod alarms;
mod capabilities;
mod clone3;
pub mod descriptors;
mod directories;
pub mod epoll;
pub mod fifo;
pub mod files;
pub mod futex;
mod futex_locks;
mod held;
pub mod identity;
pub mod inet;
pub mod inotify;
mod interfaces;
pub mod ipc;
mod lengths;
pub mod locks;
mod many_messages;
pub mod memfd;
pub mod memory;
pub mod messages;
mod moved;
pub mod named_queues;
pub mod names;
mod neighbours;
mod net;
mod netlink;
pub mod niceness;
mod openat2;
pub mod paths;
mod permissions;
pub mod pidfd;
mod pieces;
mod pipes;
mod prctl;
mod privileged;
pub mod proc;
pub mod processes;
pub mod program;
mod pty;
pub mod queues;
mod rare;
mod reopened;
#[cfg(test)]
mod rig;
mod roots;
mod running;
mod scheduling;
pub mod seccomp;
pub mod segments;
pub mod semaphores;
pub mod signals;
pub mod sockets;
pub mod splice;
pub mod stat;
mod syncing;
pub mod terminal;
pub mod time;
pub mod timers;
mod waiters;
pub mod waiting;
mod walk;
pub mod way;
mod whole;
mod xattr;

use crate::decode;
use crate::errno::{ENOSYS, Result};
use crate::frames::Bytes;
use crate::machine::{Machine, Registers, Tid};
use crate::system::{Answer, Outcome, System};
use core::marker::PhantomData;
use linux_raw_sys::general as nr;
use vfs::FileSystem;

/// Calls that are not there and of which somebody is told, at most, beside those that have names.
const UNKNOWN_MAX: usize = 64;

/// Where `*at` calls begin that name no directory.
pub const HERE: u64 = nr::AT_FDCWD as i64 as u64;

/// A call: system, thread, arguments.
type Call<M, B, F> = fn(&mut System<M, B, F>, Tid, [u64; 6]) -> Answer;

/// A result without a meaning.
pub fn done(result: Result<()>) -> Answer {
    result.map(|()| Outcome::Value(0))
}

/// A result that is a number.
pub fn number(result: Result<u64>) -> Answer {
    result.map(Outcome::Value)
}

/// Makes a call, and tells of it if somebody wants to know.
pub fn run<M: Machine, B: Bytes, F: FileSystem>(
    system: &mut System<M, B, F>,
    tid: Tid,
    registers: &Registers,
) -> Answer {
    if system.trace.is_some() { system.traced(tid, registers) } else { make(system, tid, registers) }
}

/// Makes a call.
#[inline(always)]
pub(crate) fn make<M: Machine, B: Bytes, F: FileSystem>(
    system: &mut System<M, B, F>,
    tid: Tid,
    registers: &Registers,
) -> Answer {
    if system.restricts
        && let Some(answer) = system.refuse(tid, registers)
    {
        return answer;
    }
    let number = usize::try_from(registers.rax).unwrap_or(usize::MAX);
    let all: &[_; CALLS] = &Calls::<M, B, F>::ALL;
    match all.get(number).copied().flatten() {
        Some(call) => call(system, tid, registers.arguments()),
        None => absent(system, registers.rax),
    }
}

/// A call that is not there. Once it is told which, by its name if it has one.
#[cold]
fn absent<M: Machine, B: Bytes, F: FileSystem>(system: &mut System<M, B, F>, number: u64) -> Answer {
    let name = decode::name(number);
    let has_room = name.is_some() || system.unknown.len() < UNKNOWN_MAX;
    if has_room && system.unknown.insert(number) {
        match name {
            Some(name) => system.machine.log(format_args!("call {name} is not there")),
            None => system.machine.log(format_args!("call {number} is not there")),
        }
    }
    Err(ENOSYS)
}

/// Numbers of calls are below this.
const CALLS: usize = 512;

/// The table of calls for a system.
struct Calls<M, B, F>(PhantomData<(M, B, F)>);

impl<M: Machine, B: Bytes, F: FileSystem> Calls<M, B, F> {
    /// By number.
    const ALL: [Option<Call<M, B, F>>; CALLS] = {
        let mut all = [None; CALLS];
        let mut number = 0;
        while number < CALLS {
            all[number] = find(number as u32);
            number += 1;
        }
        all
    };
}

/// Calls of one kind after the other, so that no list is long.
const fn find<M: Machine, B: Bytes, F: FileSystem>(number: u32) -> Option<Call<M, B, F>> {
    let kinds = [
        about_files(number),
        about_names(number),
        about_processes(number),
        about_waiting(number),
        about_owners(number),
        about_events(number),
        about_ipc(number),
        about_the_machine(number),
        rare::calls(number),
    ];
    let mut kind = 0;
    while kind < kinds.len() {
        if kinds[kind].is_some() {
            return kinds[kind];
        }
        kind += 1;
    }
    None
}

const fn about_files<M: Machine, B: Bytes, F: FileSystem>(number: u32) -> Option<Call<M, B, F>> {
    Some(match number {
        nr::__NR_read => System::sys_read,
        nr::__NR_write => System::sys_write,
        nr::__NR_readv => System::sys_readv,
        nr::__NR_writev => System::sys_writev,
        nr::__NR_pread64 => System::sys_pread,
        nr::__NR_pwrite64 => System::sys_pwrite,
        nr::__NR_preadv => System::sys_preadv,
        nr::__NR_pwritev => System::sys_pwritev,
        nr::__NR_sendfile => System::sys_sendfile,
        nr::__NR_preadv2 => System::sys_preadv2,
        nr::__NR_pwritev2 => System::sys_pwritev2,
        nr::__NR_splice => System::sys_splice,
        nr::__NR_tee => System::sys_tee,
        nr::__NR_vmsplice => System::sys_vmsplice,
        nr::__NR_copy_file_range => System::sys_copy_file_range,
        nr::__NR_io_setup => System::sys_io_setup,
        nr::__NR_io_destroy => System::sys_io_destroy,
        nr::__NR_io_submit => System::sys_io_submit,
        nr::__NR_io_cancel => System::sys_io_cancel,
        nr::__NR_io_getevents => System::sys_io_getevents,
        nr::__NR_io_pgetevents => System::sys_io_pgetevents,
        nr::__NR_lseek => System::sys_lseek,
        nr::__NR_ftruncate => System::sys_ftruncate,
        nr::__NR_fallocate => System::sys_fallocate,
        nr::__NR_fsync | nr::__NR_fdatasync => System::sys_fsync,
        nr::__NR_sync => System::sys_sync,
        nr::__NR_syncfs => System::sys_syncfs,
        nr::__NR_sync_file_range => System::sys_sync_file_range,
        nr::__NR_getdents64 => System::sys_getdents,
        nr::__NR_getdents => System::sys_old_getdents,
        nr::__NR_fadvise64 | nr::__NR_readahead => System::sys_advise,
        nr::__NR_close => System::sys_close,
        nr::__NR_close_range => System::sys_close_range,
        nr::__NR_dup => System::sys_dup,
        nr::__NR_dup2 => System::sys_dup2,
        nr::__NR_dup3 => System::sys_dup3,
        nr::__NR_fcntl => System::sys_fcntl,
        nr::__NR_flock => System::sys_flock,
        nr::__NR_pipe => System::sys_pipe,
        nr::__NR_pipe2 => System::sys_pipe2,
        nr::__NR_eventfd => System::sys_eventfd,
        nr::__NR_eventfd2 => System::sys_eventfd2,
        nr::__NR_ioctl => System::sys_ioctl,
        nr::__NR_brk => System::sys_brk,
        nr::__NR_mmap => System::sys_mmap,
        nr::__NR_memfd_create => System::sys_memfd_create,
        nr::__NR_munmap => System::sys_munmap,
        nr::__NR_mprotect => System::sys_mprotect,
        nr::__NR_mremap => System::sys_mremap,
        nr::__NR_remap_file_pages => System::sys_remap_file_pages,
        nr::__NR_madvise => System::sys_madvise,
        nr::__NR_msync => System::sys_msync,
        nr::__NR_mincore => System::sys_mincore,
        nr::__NR_mlock => System::sys_mlock,
        nr::__NR_mlock2 => System::sys_mlock2,
        nr::__NR_munlock => System::sys_munlock,
        nr::__NR_mlockall => System::sys_mlockall,
        nr::__NR_munlockall => System::sys_munlockall,
        nr::__NR_pkey_mprotect => System::sys_pkey_mprotect,
        nr::__NR_pkey_alloc => System::sys_pkey_alloc,
        nr::__NR_pkey_free => System::sys_pkey_free,
        _ => return None,
    })
}

const fn about_names<M: Machine, B: Bytes, F: FileSystem>(number: u32) -> Option<Call<M, B, F>> {
    Some(match number {
        nr::__NR_open => System::sys_open,
        nr::__NR_openat => System::sys_openat,
        nr::__NR_openat2 => System::sys_openat2,
        nr::__NR_creat => System::sys_creat,
        nr::__NR_stat => System::sys_stat,
        nr::__NR_lstat => System::sys_lstat,
        nr::__NR_fstat => System::sys_fstat,
        nr::__NR_newfstatat => System::sys_fstatat,
        nr::__NR_statx => System::sys_statx,
        nr::__NR_statfs => System::sys_statfs,
        nr::__NR_fstatfs => System::sys_fstatfs,
        nr::__NR_access => System::sys_access,
        nr::__NR_faccessat => System::sys_faccessat,
        nr::__NR_faccessat2 => System::sys_faccessat2,
        nr::__NR_getcwd => System::sys_getcwd,
        nr::__NR_chdir => System::sys_chdir,
        nr::__NR_fchdir => System::sys_fchdir,
        nr::__NR_readlink => System::sys_readlink,
        nr::__NR_readlinkat => System::sys_readlinkat,
        nr::__NR_mkdir => System::sys_mkdir,
        nr::__NR_mknod => System::sys_mknod,
        nr::__NR_mknodat => System::sys_mknodat,
        nr::__NR_mkdirat => System::sys_mkdirat,
        nr::__NR_rmdir => System::sys_rmdir,
        nr::__NR_unlink => System::sys_unlink,
        nr::__NR_unlinkat => System::sys_unlinkat,
        nr::__NR_rename => System::sys_rename,
        nr::__NR_renameat => System::sys_renameat,
        nr::__NR_renameat2 => System::sys_renameat2,
        nr::__NR_link => System::sys_link,
        nr::__NR_linkat => System::sys_linkat,
        nr::__NR_symlink => System::sys_symlink,
        nr::__NR_symlinkat => System::sys_symlinkat,
        nr::__NR_truncate => System::sys_truncate,
        nr::__NR_chmod => System::sys_chmod,
        nr::__NR_fchmod => System::sys_fchmod,
        nr::__NR_fchmodat => System::sys_fchmodat,
        nr::__NR_fchmodat2 => System::sys_fchmodat2,
        nr::__NR_chown => System::sys_chown,
        nr::__NR_lchown => System::sys_lchown,
        nr::__NR_fchown => System::sys_fchown,
        nr::__NR_fchownat => System::sys_fchownat,
        nr::__NR_utimensat => System::sys_utimensat,
        nr::__NR_utimes => System::sys_utimes,
        nr::__NR_futimesat => System::sys_futimesat,
        nr::__NR_utime => System::sys_utime,
        nr::__NR_umask => System::sys_umask,
        nr::__NR_getxattrat
        | nr::__NR_listxattrat
        | nr::__NR_setxattrat
        | nr::__NR_removexattrat
        | nr::__NR_name_to_handle_at => System::sys_absent,
        _ => return about_extended_attributes(number),
    })
}

const fn about_extended_attributes<M: Machine, B: Bytes, F: FileSystem>(
    number: u32,
) -> Option<Call<M, B, F>> {
    Some(match number {
        nr::__NR_getxattr => System::sys_getxattr,
        nr::__NR_lgetxattr => System::sys_lgetxattr,
        nr::__NR_fgetxattr => System::sys_fgetxattr,
        nr::__NR_setxattr => System::sys_setxattr,
        nr::__NR_lsetxattr => System::sys_lsetxattr,
        nr::__NR_fsetxattr => System::sys_fsetxattr,
        nr::__NR_listxattr => System::sys_listxattr,
        nr::__NR_llistxattr => System::sys_llistxattr,
        nr::__NR_flistxattr => System::sys_flistxattr,
        nr::__NR_removexattr => System::sys_removexattr,
        nr::__NR_lremovexattr => System::sys_lremovexattr,
        nr::__NR_fremovexattr => System::sys_fremovexattr,
        _ => return None,
    })
}

const fn about_processes<M: Machine, B: Bytes, F: FileSystem>(number: u32) -> Option<Call<M, B, F>> {
    Some(match number {
        nr::__NR_clone => System::sys_clone,
        nr::__NR_clone3 => System::sys_clone3,
        nr::__NR_fork => System::sys_fork,
        nr::__NR_vfork => System::sys_vfork,
        nr::__NR_execve => System::sys_execve,
        nr::__NR_execveat => System::sys_execveat,
        nr::__NR_exit => System::sys_exit,
        nr::__NR_exit_group => System::sys_exit_group,
        nr::__NR_wait4 => System::sys_wait4,
        nr::__NR_waitid => System::sys_waitid,
        nr::__NR_arch_prctl => System::sys_arch_prctl,
        nr::__NR_set_tid_address => System::sys_set_tid_address,
        nr::__NR_set_robust_list => System::sys_set_robust_list,
        nr::__NR_get_robust_list => System::sys_get_robust_list,
        nr::__NR_prctl => System::sys_prctl,
        nr::__NR_seccomp => System::sys_seccomp,
        nr::__NR_process_vm_readv => System::sys_process_vm_readv,
        nr::__NR_process_vm_writev => System::sys_process_vm_writev,
        nr::__NR_kcmp => System::sys_kcmp,
        nr::__NR_sched_yield => System::sys_sched_yield,
        nr::__NR_sched_getaffinity => System::sys_sched_getaffinity,
        nr::__NR_sched_setaffinity => System::sys_sched_setaffinity,
        nr::__NR_getpriority => System::sys_getpriority,
        nr::__NR_setpriority => System::sys_setpriority,
        nr::__NR_getrusage => System::sys_getrusage,
        nr::__NR_getrlimit => System::sys_getrlimit,
        nr::__NR_setrlimit => System::sys_setrlimit,
        nr::__NR_prlimit64 => System::sys_prlimit,
        nr::__NR_rt_sigaction => System::sys_sigaction,
        nr::__NR_rt_sigprocmask => System::sys_sigprocmask,
        nr::__NR_rt_sigreturn => System::sys_sigreturn,
        nr::__NR_rt_sigsuspend => System::sys_sigsuspend,
        nr::__NR_rt_sigpending => System::sys_sigpending,
        nr::__NR_rt_sigqueueinfo => System::sys_sigqueueinfo,
        nr::__NR_rt_tgsigqueueinfo => System::sys_tgsigqueueinfo,
        nr::__NR_rt_sigtimedwait => System::sys_sigtimedwait,
        nr::__NR_sigaltstack => System::sys_sigaltstack,
        nr::__NR_kill => System::sys_kill,
        nr::__NR_tkill => System::sys_tkill,
        nr::__NR_tgkill => System::sys_tgkill,
        nr::__NR_pause => System::sys_pause,
        _ => return None,
    })
}

const fn about_waiting<M: Machine, B: Bytes, F: FileSystem>(number: u32) -> Option<Call<M, B, F>> {
    Some(match number {
        nr::__NR_poll => System::sys_poll,
        nr::__NR_ppoll => System::sys_ppoll,
        nr::__NR_select => System::sys_select,
        nr::__NR_pselect6 => System::sys_pselect,
        nr::__NR_futex => System::sys_futex,
        nr::__NR_futex_waitv => System::sys_futex_waitv,
        nr::__NR_nanosleep => System::sys_nanosleep,
        nr::__NR_clock_nanosleep => System::sys_clock_nanosleep,
        nr::__NR_clock_gettime => System::sys_clock_gettime,
        nr::__NR_clock_getres => System::sys_clock_getres,
        nr::__NR_gettimeofday => System::sys_gettimeofday,
        nr::__NR_time => System::sys_time,
        nr::__NR_times => System::sys_times,
        nr::__NR_adjtimex => System::sys_adjtimex,
        nr::__NR_clock_adjtime => System::sys_clock_adjtime,
        nr::__NR_restart_syscall => System::sys_restart_syscall,
        nr::__NR_alarm => System::sys_alarm,
        nr::__NR_timer_create => System::sys_timer_create,
        nr::__NR_timer_settime => System::sys_timer_settime,
        nr::__NR_timer_gettime => System::sys_timer_gettime,
        nr::__NR_timer_getoverrun => System::sys_timer_getoverrun,
        nr::__NR_timer_delete => System::sys_timer_delete,
        nr::__NR_setitimer => System::sys_setitimer,
        nr::__NR_getitimer => System::sys_getitimer,
        _ => return None,
    })
}

const fn about_owners<M: Machine, B: Bytes, F: FileSystem>(number: u32) -> Option<Call<M, B, F>> {
    Some(match number {
        nr::__NR_getpid => System::sys_getpid,
        nr::__NR_getppid => System::sys_getppid,
        nr::__NR_gettid => System::sys_gettid,
        nr::__NR_getpgrp => System::sys_getpgrp,
        nr::__NR_getpgid => System::sys_getpgid,
        nr::__NR_setpgid => System::sys_setpgid,
        nr::__NR_getsid => System::sys_getsid,
        nr::__NR_setsid => System::sys_setsid,
        nr::__NR_getuid => System::sys_getuid,
        nr::__NR_geteuid => System::sys_geteuid,
        nr::__NR_getgid => System::sys_getgid,
        nr::__NR_getegid => System::sys_getegid,
        nr::__NR_getresuid => System::sys_getresuid,
        nr::__NR_getresgid => System::sys_getresgid,
        nr::__NR_setuid => System::sys_setuid,
        nr::__NR_setgid => System::sys_setgid,
        nr::__NR_setresuid => System::sys_setresuid,
        nr::__NR_setresgid => System::sys_setresgid,
        nr::__NR_getgroups => System::sys_getgroups,
        nr::__NR_setgroups => System::sys_setgroups,
        nr::__NR_capget => System::sys_capget,
        nr::__NR_capset => System::sys_capset,
        nr::__NR_uname => System::sys_uname,
        nr::__NR_sysinfo => System::sys_sysinfo,
        nr::__NR_getrandom => System::sys_getrandom,
        nr::__NR_getcpu => System::sys_getcpu,
        nr::__NR_rseq => System::sys_rseq,
        _ => return None,
    })
}

/// Scheduling, and what changes the machine for all.
const fn about_the_machine<M: Machine, B: Bytes, F: FileSystem>(number: u32) -> Option<Call<M, B, F>> {
    Some(match number {
        nr::__NR_sched_getscheduler => System::sys_sched_getscheduler,
        nr::__NR_sched_setscheduler => System::sys_sched_setscheduler,
        nr::__NR_sched_getparam => System::sys_sched_getparam,
        nr::__NR_sched_setparam => System::sys_sched_setparam,
        nr::__NR_sched_getattr => System::sys_sched_getattr,
        nr::__NR_sched_setattr => System::sys_sched_setattr,
        nr::__NR_sched_get_priority_max => System::sys_sched_get_priority_max,
        nr::__NR_sched_get_priority_min => System::sys_sched_get_priority_min,
        nr::__NR_sched_rr_get_interval => System::sys_sched_rr_get_interval,
        nr::__NR_ioprio_get => System::sys_ioprio_get,
        nr::__NR_ioprio_set => System::sys_ioprio_set,
        nr::__NR_membarrier => System::sys_membarrier,
        nr::__NR_personality => System::sys_personality,
        nr::__NR_setreuid => System::sys_setreuid,
        nr::__NR_setregid => System::sys_setregid,
        nr::__NR_setfsuid => System::sys_setfsuid,
        nr::__NR_setfsgid => System::sys_setfsgid,
        nr::__NR_sethostname => System::sys_sethostname,
        nr::__NR_chroot => System::sys_chroot,
        nr::__NR_unshare => System::sys_unshare,
        nr::__NR_mount
        | nr::__NR_umount2
        | nr::__NR_pivot_root
        | nr::__NR_swapon
        | nr::__NR_swapoff
        | nr::__NR_reboot
        | nr::__NR_setdomainname
        | nr::__NR_iopl
        | nr::__NR_ioperm
        | nr::__NR_init_module
        | nr::__NR_finit_module
        | nr::__NR_delete_module
        | nr::__NR_kexec_load
        | nr::__NR_kexec_file_load
        | nr::__NR_fsopen
        | nr::__NR_fsconfig
        | nr::__NR_fspick
        | nr::__NR_fsmount
        | nr::__NR_move_mount
        | nr::__NR_open_tree
        | nr::__NR_mount_setattr
        | nr::__NR_settimeofday
        | nr::__NR_clock_settime
        | nr::__NR_acct
        | nr::__NR_syslog
        | nr::__NR_setns
        | nr::__NR_bpf
        | nr::__NR_perf_event_open
        | nr::__NR_ptrace
        | nr::__NR_vhangup
        | nr::__NR_open_by_handle_at => System::sys_refused,
        _ => return None,
    })
}

/// Objects that processes share by numbers, or by names that are no files.
const fn about_ipc<M: Machine, B: Bytes, F: FileSystem>(number: u32) -> Option<Call<M, B, F>> {
    Some(match number {
        nr::__NR_shmget => System::sys_shmget,
        nr::__NR_shmat => System::sys_shmat,
        nr::__NR_shmdt => System::sys_shmdt,
        nr::__NR_shmctl => System::sys_shmctl,
        nr::__NR_semget => System::sys_semget,
        nr::__NR_semop => System::sys_semop,
        nr::__NR_semtimedop => System::sys_semtimedop,
        nr::__NR_semctl => System::sys_semctl,
        nr::__NR_msgget => System::sys_msgget,
        nr::__NR_msgsnd => System::sys_msgsnd,
        nr::__NR_msgrcv => System::sys_msgrcv,
        nr::__NR_msgctl => System::sys_msgctl,
        nr::__NR_mq_open => System::sys_mq_open,
        nr::__NR_mq_unlink => System::sys_mq_unlink,
        nr::__NR_mq_timedsend => System::sys_mq_timedsend,
        nr::__NR_mq_timedreceive => System::sys_mq_timedreceive,
        nr::__NR_mq_notify => System::sys_mq_notify,
        nr::__NR_mq_getsetattr => System::sys_mq_getsetattr,
        _ => return None,
    })
}

/// Sockets and other objects that programs wait for.
const fn about_events<M: Machine, B: Bytes, F: FileSystem>(number: u32) -> Option<Call<M, B, F>> {
    Some(match number {
        nr::__NR_epoll_create => System::sys_epoll_create,
        nr::__NR_epoll_create1 => System::sys_epoll_create1,
        nr::__NR_epoll_ctl => System::sys_epoll_ctl,
        nr::__NR_epoll_wait => System::sys_epoll_wait,
        nr::__NR_epoll_pwait => System::sys_epoll_pwait,
        nr::__NR_epoll_pwait2 => System::sys_epoll_pwait2,
        nr::__NR_timerfd_create => System::sys_timerfd_create,
        nr::__NR_timerfd_settime => System::sys_timerfd_settime,
        nr::__NR_timerfd_gettime => System::sys_timerfd_gettime,
        nr::__NR_inotify_init => System::sys_inotify_init,
        nr::__NR_inotify_init1 => System::sys_inotify_init1,
        nr::__NR_inotify_add_watch => System::sys_inotify_add_watch,
        nr::__NR_inotify_rm_watch => System::sys_inotify_rm_watch,
        nr::__NR_pidfd_open => System::sys_pidfd_open,
        nr::__NR_pidfd_send_signal => System::sys_pidfd_send_signal,
        nr::__NR_pidfd_getfd => System::sys_pidfd_getfd,
        nr::__NR_signalfd => System::sys_signalfd,
        nr::__NR_signalfd4 => System::sys_signalfd4,
        nr::__NR_socket => System::sys_socket,
        nr::__NR_socketpair => System::sys_socketpair,
        nr::__NR_bind => System::sys_bind,
        nr::__NR_listen => System::sys_listen,
        nr::__NR_connect => System::sys_connect,
        nr::__NR_accept => System::sys_accept,
        nr::__NR_accept4 => System::sys_accept4,
        nr::__NR_shutdown => System::sys_shutdown,
        nr::__NR_getsockopt => System::sys_getsockopt,
        nr::__NR_setsockopt => System::sys_setsockopt,
        nr::__NR_sendto => System::sys_sendto,
        nr::__NR_recvfrom => System::sys_recvfrom,
        nr::__NR_sendmsg => System::sys_sendmsg,
        nr::__NR_recvmsg => System::sys_recvmsg,
        nr::__NR_sendmmsg => System::sys_sendmmsg,
        nr::__NR_recvmmsg => System::sys_recvmmsg,
        nr::__NR_getsockname => System::sys_getsockname,
        nr::__NR_getpeername => System::sys_getpeername,
        _ => return None,
    })
}
