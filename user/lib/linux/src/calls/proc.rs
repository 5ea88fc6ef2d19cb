//! Texts of files of `/proc`.

mod maps;

use super::time::{SECOND, TICK};
use crate::capabilities::Capabilities;
use crate::errno::{EINVAL, ENOENT, ESRCH, Result};
use crate::frames::{Bytes, PAGE};
use crate::machine::{Machine, Tid};
use crate::process::{NAME_BYTES, Process};
use crate::special::{About, OfProcess, Special};
use crate::system::System;
use crate::tree::{self, Content, Teller};
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use linux_raw_sys::general;
use vfs::{FileSystem, Inode};

/// Bytes of a text, after which it ends.
pub(super) const TEXT_MAX: usize = 1 << 20;

/// Text of `mountinfo`.
const MOUNTS: &str = "21 1 8:1 / / rw,relatime - ext4 /dev/root rw\n22 21 0:21 / /proc rw,relatime - proc proc rw\n\
                      23 21 0:22 / /sys ro,relatime - sysfs sysfs ro\n24 21 0:5 / /dev rw,relatime - devtmpfs devtmpfs rw\n";

/// Text of `io`: nobody counts.
const IO: &str =
    "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n";

/// A number of 128 bits that follows from another one, as programs write it.
fn uuid(from: u64) -> Vec<u8> {
    let mut state = from;
    let mut next = || {
        // Steps of SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    };
    let (high, low) = (next(), next());
    let last = low & 0xffff_ffff_ffff;
    let [first, second, third] = [high >> 32, high >> 16 & 0xffff, high & 0xfff];
    format!("{first:08x}-{second:04x}-4{third:03x}-{:04x}-{last:012x}\n", low >> 48 & 0x3fff | 0x8000)
        .into_bytes()
}

/// Limits by name, with their units.
const LIMITS: [(&str, u32, &str); 16] = [
    ("Max cpu time", general::RLIMIT_CPU, "seconds"),
    ("Max file size", general::RLIMIT_FSIZE, "bytes"),
    ("Max data size", general::RLIMIT_DATA, "bytes"),
    ("Max stack size", general::RLIMIT_STACK, "bytes"),
    ("Max core file size", general::RLIMIT_CORE, "bytes"),
    ("Max resident set", general::RLIMIT_RSS, "bytes"),
    ("Max processes", general::RLIMIT_NPROC, "processes"),
    ("Max open files", general::RLIMIT_NOFILE, "files"),
    ("Max locked memory", general::RLIMIT_MEMLOCK, "bytes"),
    ("Max address space", general::RLIMIT_AS, "bytes"),
    ("Max file locks", general::RLIMIT_LOCKS, "locks"),
    ("Max pending signals", general::RLIMIT_SIGPENDING, "signals"),
    ("Max msgqueue size", general::RLIMIT_MSGQUEUE, "bytes"),
    ("Max nice priority", general::RLIMIT_NICE, ""),
    ("Max realtime priority", general::RLIMIT_RTPRIO, ""),
    ("Max realtime timeout", general::RLIMIT_RTTIME, "us"),
];

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Text of a special file, as it is now.
    pub fn proc_text(&self, special: Special) -> Result<Rc<[u8]>> {
        match special {
            Special::About(about) => Ok(self.about(about).into_bytes().into()),
            Special::OfProcess(pid, of) => self.of_process(pid, of),
            Special::OfTask(tid, of) => self.of_task(tid, of),
            Special::Tree(number) => self.tree_text(number),
            _ => Err(EINVAL),
        }
    }

    fn about(&self, about: About) -> String {
        let (total, free) = self.memory_bytes();
        let now = self.machine.now();
        match about {
            About::Meminfo => format!(
                "MemTotal:       {:8} kB\nMemFree:        {:8} kB\nMemAvailable:   {:8} kB\nBuffers:               0 kB\n\
                 Cached:                0 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n",
                total / 1024,
                free / 1024,
                free / 1024
            ),
            About::Cpuinfo => {
                "processor\t: 0\nvendor_id\t: Tern\nmodel name\t: x86-64\nflags\t\t: fpu sse sse2\n\n".into()
            }
            About::Uptime => format!("{}.{:02} 0.00\n", now / SECOND, now % SECOND / TICK),
            About::Loadavg => {
                let count = self.processes.len();
                format!("0.00 0.00 0.00 1/{count} {}\n", self.processes.keys().last().unwrap_or(&0))
            }
            About::Stat => {
                let used: u64 = self.processes.keys().map(|pid| self.used(*pid)[0]).sum();
                let (used, all) = (used / TICK, now / TICK);
                let idle = all.saturating_sub(used);
                let times = format!("{used} 0 0 {idle} 0 0 0 0 0 0");
                let begun = self.kept.began / SECOND;
                let count = self.processes.len();
                format!(
                    "cpu  {times}\ncpu0 {times}\nintr 0\nctxt 0\nbtime {begun}\nprocesses {count}\nprocs_running 1\nprocs_blocked 0\n"
                )
            }
            About::Version => "Linux version 6.1.0-tern (Tern)\n".into(),
            About::Filesystems => "nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\n\text4\n".into(),
            About::Cmdline => "BOOT_IMAGE=tern\n".into(),
            About::Swaps => "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n".into(),
            About::Partitions => "major minor  #blocks  name\n\n".into(),
            About::Diskstats => String::new(),
            About::Vmstat => {
                format!("nr_free_pages {}\npgpgin 0\npgpgout 0\npswpin 0\npswpout 0\n", free / PAGE)
            }
        }
    }

    /// Text of an entry of `/sys`, `/proc/sys`, `/proc/sysvipc` or `/proc/net`.
    fn tree_text(&self, number: usize) -> Result<Rc<[u8]>> {
        let name = || self.kept.host_name.clone().unwrap_or_else(|| b"tern".to_vec());
        let text = match tree::content(number).ok_or(ENOENT)? {
            Content::Directory => return Err(EINVAL),
            Content::Text(text) => text.as_bytes().to_vec(),
            Content::Told(Teller::HostName) => [name().as_slice(), b"\n"].concat(),
            // It tells runs of the machine apart, and nothing else.
            Content::Told(Teller::BootId) => uuid(self.kept.began),
            Content::Told(Teller::Uuid) => uuid(self.machine.date()),
            Content::Told(Teller::SegmentPages) => format!("{}\n", self.segment_pages_max()).into_bytes(),
            Content::Told(Teller::Segments) => self.segments_text().into_bytes(),
            Content::Told(Teller::Semaphores) => self.semaphores_text().into_bytes(),
            Content::Told(Teller::Queues) => self.queues_text().into_bytes(),
            Content::Told(Teller::Interfaces) => self.interfaces_text().into_bytes(),
            Content::Told(Teller::Routes) => self.routes_text().into_bytes(),
            Content::Told(Teller::Inet(protocol, family)) => self.inet_text(protocol, family).into_bytes(),
            Content::Told(Teller::Unix) => self.unix_text(),
        };
        Ok(text.into())
    }

    fn of_process(&self, pid: Tid, of: OfProcess) -> Result<Rc<[u8]>> {
        let process = self.processes.get(&pid).ok_or(ENOENT)?;
        let name = String::from_utf8_lossy(&process.name).into_owned();
        let text = match of {
            OfProcess::Cmdline => return Ok(process.arguments[0].clone()),
            OfProcess::Environ => return Ok(process.arguments[1].clone()),
            OfProcess::Auxv => return Ok(process.auxiliary.clone()),
            OfProcess::Maps => return Ok(self.regions_text(process, false)),
            OfProcess::Smaps => return Ok(self.regions_text(process, true)),
            OfProcess::SmapsRollup => return Ok(self.sum_of_regions(process)),
            OfProcess::Comm => format!("{name}\n"),
            OfProcess::Mounts => "/dev/root / ext4 rw,relatime 0 0\nproc /proc proc rw 0 0\n".into(),
            OfProcess::Stat => self.stat_line(pid, process, &name, self.state_of(process), self.used(pid)),
            OfProcess::Status => self.status(pid, (pid, process), &name, self.state_of(process)),
            OfProcess::Statm => {
                let (mapped, present) = process.room.borrow().memory.sizes();
                format!("{} {} 0 0 0 0 0\n", mapped / PAGE, present / PAGE)
            }
            OfProcess::Limits => limits(process),
            OfProcess::Mountinfo => MOUNTS.into(),
            OfProcess::Cgroup => "0::/\n".into(),
            OfProcess::OomScore | OfProcess::OomScoreAdj => "0\n".into(),
            OfProcess::Io => IO.into(),
            OfProcess::Wchan => "0".into(),
            OfProcess::Exe | OfProcess::Cwd | OfProcess::Root => return Err(EINVAL),
        };
        Ok(text.into_bytes().into())
    }

    /// Text about a thread, where it differs from that about its process.
    fn of_task(&self, tid: Tid, of: OfProcess) -> Result<Rc<[u8]>> {
        let pid = self.threads.get(&tid).ok_or(ENOENT)?.process;
        let process = self.processes.get(&pid).ok_or(ENOENT)?;
        let name = String::from_utf8_lossy(self.name_of(tid).unwrap_or_default()).into_owned();
        let state = match process {
            process if process.stopped.is_some() => 'T',
            _ if self.runs(tid) => 'R',
            _ => 'S',
        };
        let text = match of {
            OfProcess::Stat => {
                let used = [self.machine.used(tid), self.used(pid)[1]];
                self.stat_line(tid, process, &name, state, used)
            }
            OfProcess::Status => self.status(tid, (pid, process), &name, state),
            OfProcess::Comm => format!("{name}\n"),
            _ => return self.of_process(pid, of),
        };
        Ok(text.into_bytes().into())
    }

    /// Name of a thread, which is that of its process unless it has one of its own.
    pub(super) fn name_of(&self, tid: Tid) -> Option<&[u8]> {
        let thread = self.threads.get(&tid)?;
        let process = self.processes.get(&thread.process)?;
        Some(thread.name.as_deref().unwrap_or(&process.name))
    }

    /// Gives a thread a name. That of the first thread is its process's.
    pub(super) fn set_name(&mut self, tid: Tid, name: Vec<u8>) -> Result<()> {
        let thread = self.threads.get_mut(&tid).ok_or(ESRCH)?;
        if thread.process == tid {
            self.processes.get_mut(&tid).ok_or(ESRCH)?.name = name;
        } else {
            thread.name = Some(name.into());
        }
        Ok(())
    }

    /// Writes to a file of `/proc`.
    pub(super) fn write_text(&mut self, inode: Inode, from: &[u8]) -> Result<usize> {
        match Special::of(inode) {
            // Nobody ends for want of memory, so a wish is granted without a word.
            Some(Special::OfProcess(_, OfProcess::OomScoreAdj)) => {}
            Some(Special::OfProcess(tid, OfProcess::Comm) | Special::OfTask(tid, OfProcess::Comm)) => {
                self.rename(tid, from)?;
            }
            _ => return Err(EINVAL),
        }
        Ok(from.len())
    }

    /// Somebody writes a name to a thread's `comm`: one of the same process, or nobody.
    fn rename(&mut self, tid: Tid, name: &[u8]) -> Result<()> {
        let own = self.current.and_then(|own| self.threads.get(&own)).map(|own| own.process);
        if self.threads.get(&tid).is_none_or(|thread| Some(thread.process) != own) {
            return Err(EINVAL);
        }
        let name = name.split(|byte| matches!(byte, 0 | b'\n')).next().unwrap_or_default();
        self.set_name(tid, name.get(..NAME_BYTES).unwrap_or(name).to_vec())
    }

    fn runs(&self, tid: Tid) -> bool {
        self.threads.get(&tid).is_some_and(|thread| thread.blocked.is_none())
    }

    fn state_of(&self, process: &Process) -> char {
        match process {
            process if process.ended.is_some() => 'Z',
            process if process.stopped.is_some() => 'T',
            process if process.threads.iter().any(|tid| self.runs(*tid)) => 'R',
            _ => 'S',
        }
    }

    /// `stat` of a process, or of a thread of it, which have used that much time, themselves and their children.
    fn stat_line(&self, tid: Tid, process: &Process, name: &str, state: char, used: [u64; 2]) -> String {
        let [own, children] = used.map(|used| used / TICK);
        let (mapped, present) = process.room.borrow().memory.sizes();
        let line = process.terminal.and_then(|number| Some((number, self.terminals.get(number)?)));
        let (terminal, foreground) =
            line.map_or((0, -1), |(number, line)| (0x8800 + number, line.foreground as i32));
        let Process { parent, group, session, threads, since, .. } = process;
        let niceness = self.threads.get(&tid).map_or(0, |thread| thread.wishes.niceness);
        format!(
            "{tid} ({name}) {state} {parent} {group} {session} {terminal} {foreground} 0 0 0 0 0 {own} 0 {children} 0 {} {niceness} \
             {} 0 {} {mapped} {} 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
            20 + niceness,
            threads.len(),
            since / TICK,
            present / PAGE,
        )
    }

    /// `status` of a process, or of a thread of it.
    fn status(&self, tid: Tid, (pid, process): (Tid, &Process), name: &str, state: char) -> String {
        let state = match state {
            'Z' => "Z (zombie)",
            'T' => "T (stopped)",
            'R' => "R (running)",
            _ => "S (sleeping)",
        };
        let (mapped, present) = process.room.borrow().memory.sizes();
        let first = self.threads.get(&tid);
        let (pending, blocked) = first.map_or((0, 0), |first| (first.pending.set().0, first.mask.0));
        let handled = |is_so: &dyn Fn(u64) -> bool| {
            let signals = (0..).zip(&process.actions).filter(|(_, action)| is_so(action.handler));
            signals.fold(0u64, |all, (signal, _)| all | 1 << signal)
        };
        let own = self.capabilities_of(tid).unwrap_or(Capabilities::of_owner(process.owners.owner[1]));
        let groups: String = process.owners.groups.iter().map(|group| format!("{group} ")).collect();
        let numbers =
            |numbers: [u32; 3]| format!("{}\t{}\t{}\t{}", numbers[0], numbers[1], numbers[2], numbers[1]);
        format!(
            "Name:\t{name}\nUmask:\t{:04o}\nState:\t{state}\nTgid:\t{pid}\nPid:\t{tid}\nPPid:\t{}\nTracerPid:\t0\nUid:\t{}\nGid:\t{}\n\
             FDSize:\t64\nGroups:\t{}\nVmPeak:\t{:8} kB\nVmSize:\t{:8} kB\nVmLck:\t       0 kB\nVmHWM:\t{:8} kB\nVmRSS:\t{:8} kB\n\
             VmSwap:\t       0 kB\nThreads:\t{}\nSigQ:\t0/1024\nSigPnd:\t{:016x}\nShdPnd:\t{:016x}\nSigBlk:\t{:016x}\nSigIgn:\t{:016x}\nSigCgt:\t{:016x}\n\
             CapInh:\t{:016x}\nCapPrm:\t{:016x}\nCapEff:\t{:016x}\nCapBnd:\t{:016x}\nCapAmb:\t{:016x}\n\
             NoNewPrivs:\t{}\nSeccomp:\t{}\nSeccomp_filters:\t{}\nCpus_allowed:\t1\nCpus_allowed_list:\t0\nMems_allowed:\t1\nMems_allowed_list:\t0\n\
             voluntary_ctxt_switches:\t0\nnonvoluntary_ctxt_switches:\t0\n",
            process.umask(),
            process.parent,
            numbers(process.owners.owner),
            numbers(process.owners.group),
            groups,
            mapped / 1024,
            mapped / 1024,
            present / 1024,
            present / 1024,
            process.threads.len(),
            pending,
            process.pending.set().0,
            blocked,
            handled(&|handler| handler == 1),
            handled(&|handler| handler > 1),
            own.inheritable,
            own.permitted,
            own.effective,
            own.bounding,
            own.ambient,
            u32::from(process.has_no_new_rights),
            first.map_or(0, |first| first.restriction.mode()),
            first.map_or(0, |first| first.restriction.filter_count()),
        )
    }
}

fn limits(process: &Process) -> String {
    let mut text = format!("{:<26}{:<21}{:<21}Units     \n", "Limit", "Soft Limit", "Hard Limit");
    let show = |value: u64| if value == u64::MAX { String::from("unlimited") } else { format!("{value}") };
    for (name, kind, unit) in LIMITS {
        let [now, most] = process.limits[kind as usize].map(show);
        let _ = writeln!(text, "{name:<26}{now:<21}{most:<21}{unit:<10}");
    }
    text
}

#[cfg(test)]
mod tests;
