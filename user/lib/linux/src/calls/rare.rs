//! Calls that few programs make: old ones about file systems, and those without which Linux can be built, or that it got after the version that a sandbox tells. Programs
//! ask whether these are there, and go on without.

use super::stat::DEVICES;
use super::{Call, done, number};
use crate::errno::EINVAL;
use crate::frames::{Bytes, PAGE};
use crate::machine::{Machine, Tid};
use crate::system::{Answer, System};
use alloc::vec::Vec;
use linux_raw_sys::general as nr;
use vfs::FileSystem;

/// Kinds of file systems in the order in which `/proc/filesystems` has them.
const KINDS: [&str; 4] = ["sysfs", "tmpfs", "proc", "ext4"];

/// Bytes of `struct ustat`, of which the last have no meaning.
const USTAT_BYTES: usize = 32;

/// These calls, by their numbers.
pub(super) const fn calls<M: Machine, B: Bytes, F: FileSystem>(number: u32) -> Option<Call<M, B, F>> {
    Some(match number {
        nr::__NR_ustat => System::sys_ustat,
        nr::__NR_sysfs => System::sys_sysfs,
        _ => return None,
    })
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Free blocks and inodes of the file system on a device.
    pub(crate) fn sys_ustat(&mut self, tid: Tid, [device, to, ..]: [u64; 6]) -> Answer {
        let free = match DEVICES.iter().position(|known| *known == u64::from(device as u32)) {
            Some(0) => {
                let space = self.store.volume.space()?;
                [u64::from((space.free / PAGE) as u32), space.files_free]
            }
            Some(_) => [0, 0],
            None => return Err(EINVAL),
        };
        let mut bytes: Vec<u8> = free.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(USTAT_BYTES, 0);
        done(self.write(tid, to, &bytes))
    }

    /// Kinds of file systems: the number of a name, the name of a number, or how many there are.
    pub(crate) fn sys_sysfs(&mut self, tid: Tid, [option, first, second, ..]: [u64; 6]) -> Answer {
        match option as i32 {
            1 => {
                let name = self.path_or_empty(tid, first)?;
                let known = KINDS.iter().position(|known| known.as_bytes() == name);
                number(known.map(|at| at as u64).ok_or(EINVAL))
            }
            2 => {
                let name = KINDS.get(first as u32 as usize).ok_or(EINVAL)?;
                done(self.write(tid, second, &[name.as_bytes(), b"\0"].concat()))
            }
            3 => number(Ok(KINDS.len() as u64)),
            _ => Err(EINVAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::rig::{FIRST, Rig};
    use crate::calls::{CALLS, Calls, UNKNOWN_MAX};
    use crate::errno::{EFAULT, ENAMETOOLONG, ENOSYS, Errno};
    use std::string::String;

    /// Whether it is known what a call would do, and that it is not there, as on a machine whose Linux was built without it.
    const fn is_left_out(number: u32) -> bool {
        matches!(
            number,
            // Gone from all versions, or never on this processor.
            nr::__NR_uselib
            | nr::__NR__sysctl
            | nr::__NR_create_module
            | nr::__NR_get_kernel_syms
            | nr::__NR_query_module
            | nr::__NR_nfsservctl
            | nr::__NR_getpmsg
            | nr::__NR_putpmsg
            | nr::__NR_afs_syscall
            | nr::__NR_tuxcall
            | nr::__NR_security
            | nr::__NR_vserver
            | nr::__NR_set_thread_area
            | nr::__NR_get_thread_area
            | nr::__NR_lookup_dcookie
            | nr::__NR_epoll_ctl_old
            | nr::__NR_epoll_wait_old
            // Segments of 16 bits, quotas, several memories, keys, watches of whole file systems, page faults for others, rings of requests, rules that a process gives itself.
            | nr::__NR_modify_ldt
            | nr::__NR_quotactl
            | nr::__NR_quotactl_fd
            | nr::__NR_mbind
            | nr::__NR_set_mempolicy
            | nr::__NR_get_mempolicy
            | nr::__NR_set_mempolicy_home_node
            | nr::__NR_migrate_pages
            | nr::__NR_move_pages
            | nr::__NR_add_key
            | nr::__NR_request_key
            | nr::__NR_keyctl
            | nr::__NR_fanotify_init
            | nr::__NR_fanotify_mark
            | nr::__NR_userfaultfd
            | nr::__NR_io_uring_setup
            | nr::__NR_io_uring_enter
            | nr::__NR_io_uring_register
            | nr::__NR_landlock_create_ruleset
            | nr::__NR_landlock_add_rule
            | nr::__NR_landlock_restrict_self
            | nr::__NR_memfd_secret
            | nr::__NR_process_madvise
            | nr::__NR_process_mrelease
            // Later than 6.1.
            | nr::__NR_cachestat
            | nr::__NR_map_shadow_stack
            | nr::__NR_futex_wake
            | nr::__NR_futex_wait
            | nr::__NR_futex_requeue
            | nr::__NR_statmount
            | nr::__NR_listmount
            | nr::__NR_lsm_get_self_attr
            | nr::__NR_lsm_set_self_attr
            | nr::__NR_lsm_list_modules
            | nr::__NR_mseal
            | nr::__NR_uretprobe
            | nr::__NR_open_tree_attr
            | nr::__NR_file_getattr
            | nr::__NR_file_setattr
        )
    }

    fn error(error: Errno) -> i64 {
        -i64::from(error.0)
    }

    /// Each call of x86-64 has an answer, if it is only that it is not there.
    #[test]
    fn every_call_is_known() {
        fn has_all<M: Machine, B: Bytes, F: FileSystem>(_: &System<M, B, F>) {
            for number in 0..CALLS {
                let is_known = crate::decode::name(number as u64).is_some();
                let is_there = Calls::<M, B, F>::ALL[number].is_some();
                assert!(!(is_there && is_left_out(number as u32)), "{number}");
                assert_eq!(is_there || is_left_out(number as u32), is_known, "{number}");
            }
        }
        let mut rig = Rig::begun();
        has_all(&rig.system);
        assert_eq!(rig.call(nr::__NR_io_uring_setup, &[1, 0]), error(ENOSYS));
        assert_eq!(rig.call(500, &[]), error(ENOSYS));
        assert_eq!(rig.call(nr::__NR_io_uring_setup, &[1, 0]), error(ENOSYS));
        assert_eq!(rig.system.machine.logged, ["call io_uring_setup is not there", "call 500 is not there"]);
        // Numbers without a name are told of until there are many of them, and names always.
        for number in 1000..2000 {
            assert_eq!(rig.call(number, &[]), error(ENOSYS));
        }
        assert_eq!(rig.system.machine.logged.len(), UNKNOWN_MAX);
        assert_eq!(rig.call(nr::__NR_landlock_create_ruleset, &[0, 0, 0]), error(ENOSYS));
        assert_eq!(
            rig.system.machine.logged.last().map(String::as_str),
            Some("call landlock_create_ruleset is not there")
        );
    }

    #[test]
    fn kinds_of_file_systems() {
        let mut rig = Rig::begun();
        let to = rig.room(16);
        let fd = rig.open("/proc/filesystems") as u64;
        let text = String::from_utf8(rig.read(fd, 200).unwrap()).unwrap();
        let listed = text.lines().filter_map(|line| line.split('\t').nth(1));
        assert!(listed.eq(KINDS), "{text}");
        for (at, name) in (0..).zip(KINDS) {
            let path = rig.put(&[name.as_bytes(), b"\0"].concat());
            assert_eq!(rig.call(nr::__NR_sysfs, &[1, path]), at as i64);
            assert_eq!(rig.call(nr::__NR_sysfs, &[2, at, to]), 0);
            assert_eq!(rig.get(FIRST, to, name.len() + 1), [name.as_bytes(), b"\0"].concat());
        }
        let (other, long) = (rig.put(b"btrfs\0"), rig.put(&[b'x'; 5000]));
        for (arguments, expected) in [
            ([3, 0, 0], KINDS.len() as i64),
            ([1, other, 0], error(EINVAL)),
            ([1, long, 0], error(ENAMETOOLONG)),
            ([1, 1, 0], error(EFAULT)),
            ([2, 4, to], error(EINVAL)),
            ([2, u64::MAX, to], error(EINVAL)),
            ([2, 0, 1], error(EFAULT)),
            ([0, 0, 0], error(EINVAL)),
            ([4, 0, 0], error(EINVAL)),
        ] {
            assert_eq!(rig.call(nr::__NR_sysfs, &arguments), expected, "{arguments:?}");
        }
    }

    #[test]
    fn what_is_free_on_a_device() {
        let mut rig = Rig::begun();
        let to = rig.put(&[0xee; 40]);
        for (path, has_some) in [("/tmp/file", true), ("/proc/uptime", false)] {
            let fd = rig.open(path) as u64;
            let stat = rig.room(144);
            assert_eq!(rig.call(nr::__NR_fstat, &[fd, stat]), 0);
            let device = rig.half(stat).into();
            assert_eq!(rig.call(nr::__NR_ustat, &[device, to]), 0, "{path}");
            assert_eq!((rig.half(to) > 0, rig.half(to + 8) > 0), (has_some, has_some), "{path}");
            assert_eq!(rig.get(FIRST, to + 16, 24), [&[0; 16][..], &[0xee; 8]].concat());
            assert_eq!(rig.call(nr::__NR_ustat, &[device, 1]), error(EFAULT));
        }
        assert_eq!(rig.call(nr::__NR_ustat, &[0x802, to]), error(EINVAL));
    }
}
