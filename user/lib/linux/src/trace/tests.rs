//! Lines of a sandbox on the host.

use super::Trace;
use crate::world::{HANDLER, OWN, World};
use linux_raw_sys::general::*;
use std::string::String;

/// A world that is traced.
fn world() -> World {
    let mut world = World::new();
    world.system.trace = Some(Trace::new(true, false));
    world
}

/// Lines since they were looked at last.
fn lines(world: &mut World) -> String {
    String::from_utf8(core::mem::take(&mut world.system.machine.traced)).unwrap()
}

#[test]
fn a_call_is_a_line() {
    let mut world = world();
    world.open(1, "/program", O_RDONLY).unwrap();
    assert_eq!(lines(&mut world), "open(\"/program\", O_RDONLY)              = 3\n");
    assert!(world.open(1, "/nosuch", O_RDWR).is_err());
    let line = "open(\"/nosuch\", O_RDWR)                 = -1 ENOENT (No such file or directory)\n";
    assert_eq!(lines(&mut world), line);
    world.by_path(1, __NR_stat, "/program", &[OWN + 512]).unwrap();
    let line = "stat(\"/program\", {st_mode=S_IFREG|0755, st_size=120, ...}) = 0\n";
    assert_eq!(lines(&mut world), line);
    assert_eq!(world.now(1, 999, &[]), Err(crate::errno::ENOSYS));
    let line = "syscall_0x3e7(0x0, 0x0, 0x0, 0x0, 0x0, 0x0) = -1 ENOSYS (Function not implemented)\n";
    assert_eq!(lines(&mut world), line);
}

/// A call that waits is one line if nobody has anything to say meanwhile, and two otherwise.
#[test]
fn calls_that_wait_are_resumed() {
    let mut world = world();
    world.now(1, __NR_pipe, &[OWN]).unwrap();
    let child = world.fork(1);
    lines(&mut world);
    assert_eq!(world.read(1, 3, 5), None);
    assert_eq!(lines(&mut world), "[pid     1] read(3, ");
    world.write(child, 4, b"hello").unwrap().unwrap();
    let told = " <unfinished ...>\n[pid     2] write(4, \"hello\", 5)        = 5\n\
                [pid     1] <... read resumed>\"hello\", 5) = 5\n";
    assert_eq!(lines(&mut world), told);
}

#[test]
fn ends_and_signals_are_told() {
    let mut world = world();
    let child = world.fork(1);
    lines(&mut world);
    assert_eq!(world.call(1, __NR_wait4, &[child.into(), OWN, 0, 0]), None);
    assert_eq!(world.call(child, __NR_exit_group, &[3]), None);
    let told = "[pid     1] wait4(2,  <unfinished ...>\n\
                [pid     2] exit_group(3)               = ?\n\
                [pid     2] +++ exited with 3 +++\n\
                <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 3}], 0, NULL) = 2\n\
                --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=2, si_uid=0, si_status=3, si_utime=0, si_stime=0} ---\n";
    assert_eq!(lines(&mut world), told);
    world.action(1, SIGUSR1, HANDLER);
    let told = "rt_sigaction(SIGUSR1, {sa_handler=0x401000, sa_mask=[], sa_flags=SA_RESTORER, sa_restorer=0x401040}, NULL, 8) = 0\n";
    assert_eq!(lines(&mut world), told);
    assert_eq!(world.call(1, __NR_kill, &[1, SIGUSR1.into()]), None);
    let told = "kill(1, SIGUSR1)                        = 0\n\
                --- SIGUSR1 {si_signo=SIGUSR1, si_code=SI_USER, si_pid=1, si_uid=0} ---\n";
    assert_eq!(lines(&mut world), told);
}

/// A wait that a signal ends is told of in front of the signal.
#[test]
fn waits_end_by_signals() {
    let mut world = world();
    world.action(1, SIGUSR1, HANDLER);
    let child = world.fork(1);
    lines(&mut world);
    assert_eq!(world.call(1, __NR_pause, &[]), None);
    world.now(child, __NR_kill, &[1, SIGUSR1.into()]).unwrap();
    let told = lines(&mut world);
    let wanted = "[pid     1] <... pause resumed>)        = ? ERESTARTNOHAND (To be restarted if no handler)\n\
                  [pid     1] --- SIGUSR1 {si_signo=SIGUSR1, si_code=SI_USER, si_pid=2, si_uid=0} ---\n";
    assert!(told.contains(wanted), "{told}");
    assert_eq!(world.call(child, __NR_pause, &[]), None);
    world.now(1, __NR_kill, &[child.into(), SIGTERM.into()]).unwrap();
    let told = lines(&mut world);
    assert!(told.contains("[pid     2] <... pause resumed>)        = ?\n"), "{told}");
    assert!(told.contains("[pid     2] +++ killed by SIGTERM +++\n"), "{told}");
    let other = world.fork(1);
    assert_eq!(world.call(other, __NR_kill, &[other.into(), SIGKILL.into()]), None);
    let told = lines(&mut world);
    let wanted = "[pid     3] kill(3, SIGKILL)            = ?\n[pid     3] +++ killed by SIGKILL +++\n";
    assert!(told.contains(wanted), "{told}");
}

#[test]
fn calls_are_counted() {
    let mut world = World::new();
    world.system.trace = Some(Trace::new(false, true));
    for _ in 0..3 {
        world.now(1, __NR_getpid, &[]).unwrap();
    }
    assert!(world.now(1, __NR_close, &[99]).is_err());
    world.exit(1);
    world.system.end_trace();
    let table = lines(&mut world);
    for line in
        ["         3           getpid\n", "         1         1 close\n", "         1           exit_group\n"]
    {
        assert!(table.contains(line), "{table}");
    }
    assert!(table.ends_with("         5         1 total\n"), "{table}");
}

/// Random calls with arguments that mean harm can all be told of.
#[test]
fn whatever_is_called_can_be_told() {
    let mut world = world();
    for number in (0..470).filter(|number| ![__NR_exit, __NR_exit_group].contains(number)) {
        for value in [0, OWN, OWN + 0xffff, 0x40_0000, u64::MAX, 1 << 63] {
            if world.system.ended.is_none()
                && world.system.threads.get(&1).is_some_and(|it| it.blocked.is_none())
            {
                let _ = world.call(1, number, &[value; 6]);
            }
        }
        if world.system.threads.get(&1).is_none_or(|thread| thread.blocked.is_some()) {
            world = self::world();
        }
    }
    assert!(!lines(&mut world).is_empty());
}
