//! Random calls with arguments that mean harm: nothing panics, and none does more work than the largest that makes sense.

use super::random::Random;
use super::world::{CODE, DATA, DATA_BYTES, Did, World};
use crate::frames::PAGE;
use crate::memory::END;
use linux_raw_sys::general as nr;
use std::vec::Vec;

/// Calls of the whole test; of a full one, 40 times as many.
const CALLS: usize = 24_000;

/// Most work of a call in the frames' bytes: twice the largest read or write, which goes through them once, and tables beside it.
const WORK_MAX: u64 = 8 << 20;

/// Most threads of a sandbox.
const THREADS_MAX: usize = 8;

/// Calls that change more than others, and come more often.
const OFTEN: [u32; 80] = [
    nr::__NR_read,
    nr::__NR_write,
    nr::__NR_readv,
    nr::__NR_writev,
    nr::__NR_pread64,
    nr::__NR_pwrite64,
    nr::__NR_open,
    nr::__NR_openat,
    nr::__NR_inotify_init1,
    nr::__NR_inotify_add_watch,
    nr::__NR_inotify_rm_watch,
    nr::__NR_mknod,
    nr::__NR_mknodat,
    nr::__NR_close,
    nr::__NR_mmap,
    nr::__NR_mmap,
    nr::__NR_memfd_create,
    nr::__NR_munmap,
    nr::__NR_mprotect,
    nr::__NR_mremap,
    nr::__NR_madvise,
    nr::__NR_mincore,
    nr::__NR_msync,
    nr::__NR_brk,
    nr::__NR_clone,
    nr::__NR_clone,
    nr::__NR_clone3,
    nr::__NR_pidfd_open,
    nr::__NR_pidfd_send_signal,
    nr::__NR_rt_sigqueueinfo,
    nr::__NR_waitid,
    nr::__NR_fork,
    nr::__NR_vfork,
    nr::__NR_wait4,
    nr::__NR_rt_sigaction,
    nr::__NR_rt_sigprocmask,
    nr::__NR_rt_sigtimedwait,
    nr::__NR_sigaltstack,
    nr::__NR_tgkill,
    nr::__NR_pipe2,
    nr::__NR_eventfd2,
    nr::__NR_fcntl,
    nr::__NR_ioctl,
    nr::__NR_dup2,
    nr::__NR_sendfile,
    nr::__NR_splice,
    nr::__NR_tee,
    nr::__NR_copy_file_range,
    nr::__NR_renameat2,
    nr::__NR_getdents64,
    nr::__NR_utimensat,
    nr::__NR_ftruncate,
    nr::__NR_setitimer,
    nr::__NR_timer_create,
    nr::__NR_timer_settime,
    nr::__NR_execve,
    nr::__NR_setrlimit,
    nr::__NR_linkat,
    nr::__NR_process_vm_readv,
    nr::__NR_process_vm_writev,
    nr::__NR_prctl,
    nr::__NR_shmget,
    nr::__NR_shmat,
    nr::__NR_shmdt,
    nr::__NR_shmctl,
    nr::__NR_semget,
    nr::__NR_semop,
    nr::__NR_semtimedop,
    nr::__NR_semctl,
    nr::__NR_msgget,
    nr::__NR_msgsnd,
    nr::__NR_msgrcv,
    nr::__NR_msgctl,
    nr::__NR_mq_open,
    nr::__NR_mq_unlink,
    nr::__NR_mq_timedsend,
    nr::__NR_mq_timedreceive,
    nr::__NR_mq_notify,
    nr::__NR_mq_getsetattr,
    nr::__NR_seccomp,
];

/// Paths that are written to the data of processes.
const PATHS: [&str; 13] = [
    "/file",
    "/program",
    "/tmp/new",
    "/tmp/link",
    "/tmp/pipe",
    "/tmp/../tmp/./a/b",
    "/proc/self/fd/3",
    "/proc/self/maps",
    "/proc/1/cmdline",
    "/dev/zero",
    "/dev/fd/0",
    "/dev/tty",
    "..",
];

/// Where paths are in the data.
const PATHS_AT: u64 = 8 * PAGE;

impl Random {
    /// Arguments with which a call may succeed.
    fn sound(&mut self) -> Vec<u64> {
        let path = PATHS_AT + DATA + 64 * self.below(PATHS.len() as u64);
        let (fd, data) = (self.below(8), DATA + PAGE * self.below(6));
        let first = self.of(&[fd, fd, path, data, 0]);
        let second = self.of(&[data, data, path, fd, 0, PAGE]);
        let third = self.of(&[data, 0, 1, 3, 8, 16, 2 * PAGE]);
        let fourth = self.of(&[0, 0, 8, 1, 0x22, data]);
        Vec::from([first, second, third, fourth, fd, 0])
    }

    /// An argument, or a word of a structure.
    fn argument(&mut self) -> u64 {
        match self.below(9) {
            0 => self.of(&[0, 1, u64::MAX, i64::MIN as u64, i64::MAX as u64, u64::from(u32::MAX)]),
            1 => self.below(12),
            2 => 1 << self.below(64),
            3 => self.below(1 << 24),
            4 => self.of(&[1 << 20, 1 << 31, 1 << 40, 1 << 47, u64::MAX - PAGE + 1, PAGE, PAGE - 1, 8]),
            5 => PATHS_AT + DATA + 64 * self.below(PATHS.len() as u64),
            6 => DATA + 8 * self.below(DATA_BYTES / 8),
            7 => {
                let ends = [DATA, DATA + DATA_BYTES, CODE, CODE + 2 * PAGE, END, 0x7fff_ffff_e000, u64::MAX];
                self.of(&ends).wrapping_sub(self.of(&[0, 1, 4, 8, 16, PAGE]))
            }
            _ => DATA + PAGE * self.below(DATA_BYTES / PAGE + 2),
        }
    }
}

/// A world whose first process has something open.
fn world() -> World {
    let mut world = World::new(1024, THREADS_MAX);
    let name = world.put(1, 0, b"/file");
    world.good(1, nr::__NR_open, &[name, 2, 0]);
    world.good(1, nr::__NR_pipe, &[DATA]);
    let name = world.put(1, 0, b"/tmp/pipe");
    world.good(1, nr::__NR_mknod, &[name, 0o010_644]);
    world.good(1, nr::__NR_eventfd2, &[1, 0]);
    let list = world.good(1, nr::__NR_inotify_init1, &[0]);
    let name = world.put(1, 0, b"/tmp");
    world.good(1, nr::__NR_inotify_add_watch, &[list, name, 0xfff]);
    world.good(1, nr::__NR_mmap, &[0, 4 * PAGE, 3, 1, 3, 0]);
    world.good(1, nr::__NR_fork, &[]);
    world
}

/// A call of a thread, if there is one that makes calls.
fn one(world: &mut World, random: &mut Random) -> Option<Did> {
    let running = world.running();
    if running.is_empty() {
        return None;
    }
    let tid = running[random.below(running.len() as u64) as usize];
    let number = match random.below(3) {
        0 => random.below(470) as u32,
        _ => OFTEN[random.below(OFTEN.len() as u64) as usize],
    };
    for (index, path) in (0..).zip(PATHS) {
        let _ = world.system.write(tid, DATA + PATHS_AT + 64 * index, &[path.as_bytes(), b"\0"].concat());
    }
    for _ in 0..8 {
        let words: Vec<u64> = (0..4).map(|_| random.argument()).collect();
        let _ = world.system.write_list(tid, DATA + 8 * random.below(PATHS_AT / 8 - 4), &words);
    }
    let arguments: Vec<u64> = match random.below(2) {
        0 => random.sound(),
        _ => (0..6).map(|_| random.argument()).collect(),
    };
    world.system.store.frames.bytes.work.set(0);
    let did = world.call(tid, number, &arguments);
    let work = world.system.store.frames.bytes.work.get();
    assert!(work < WORK_MAX, "call {number} with {arguments:x?}: {work} bytes");
    Some(did)
}

#[test]
fn random_calls_harm_nobody() {
    let mut random = Random(7);
    let (mut made, mut good, mut worlds) = (0, 0, 0);
    let is_full = std::env::var_os("TERN_FULL").is_some_and(|value| value == "1");
    while made < if is_full { 40 * CALLS } else { CALLS } {
        let mut world = world();
        worlds += 1;
        for _ in 0..400 {
            let Some(did) = one(&mut world, &mut random) else {
                // All wait: time and keys may help.
                world.pass(1 << random.below(64).min(50));
                world.system.input(b"keys\n");
                if world.running().is_empty() {
                    break;
                }
                continue;
            };
            made += 1;
            good += usize::from(matches!(did, Did::Value(0..)));
            if world.system.ended.is_some() {
                break;
            }
            world.check();
            if random.below(8) == 0 {
                world.pass(1 << random.below(40));
            }
        }
        if let Some(tid) = world.running().first().copied() {
            let _ = world.call(tid, nr::__NR_kill, &[1, 9]);
        }
        if world.system.ended.is_none() {
            world.system.end_process(1, crate::process::Status::killed(9));
        }
        assert!(world.system.threads.is_empty());
        assert_eq!(world.system.store.frames.object_count(), 0, "shared memory is lost");
    }
    assert!(worlds > 20 && good > made / 16, "{good} of {made} calls in {worlds} worlds succeed");
}

#[test]
fn a_world_makes_calls() {
    let mut world = world();
    assert_eq!(world.good(1, nr::__NR_getpid, &[]), 1);
    assert_eq!(world.call(2, nr::__NR_pause, &[]), Did::Waits);
    assert_eq!(world.good(1, nr::__NR_kill, &[2, 9]), 0);
    assert_eq!(world.good(1, nr::__NR_wait4, &[u64::MAX, 0, 0, 0]), 2);
    world.check();
    assert_eq!(world.call(1, nr::__NR_exit_group, &[3]), Did::Gone);
    assert_eq!(world.system.ended, Some(crate::process::Status::exited(3)));
}

/// Room for a state is used for one process after the other. Words of a frame that no processor writes do not stay there.
#[test]
fn a_frame_leaves_nothing_to_the_next_process() {
    use abi::state::{IMAGE_HEADER, IMAGE_MXCSR, STATE_AVX, STATE_SSE, STATE_X87};
    for parts in [STATE_X87 | STATE_SSE, STATE_X87 | STATE_SSE | STATE_AVX] {
        let mut state = abi::ThreadState { parts, ..abi::ThreadState::ZERO };
        state.image[IMAGE_MXCSR] = 0xffff << 32;
        let mut bytes = [0xff; crate::signal::RESTORED_VECTOR_BYTES];
        bytes[464..468].copy_from_slice(&0x4650_5853_u32.to_le_bytes());
        crate::signal::restore_vector(&bytes, &mut state);
        let written = if parts & STATE_AVX != 0 { IMAGE_HEADER + 8 } else { state.image.len() };
        assert_eq!(state.image[IMAGE_HEADER], parts);
        assert!(state.image[52..IMAGE_HEADER].iter().all(|word| *word == 0));
        assert!(state.image[IMAGE_HEADER + 1..written].iter().all(|word| *word == 0));
        assert!(state.image[written..].iter().all(|word| *word == u64::MAX));
    }
}
