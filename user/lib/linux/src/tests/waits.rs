//! Threads that end while others wait for them: whoever waits hears of it, wherever the one that ends was.

use super::world::{CODE, DATA, Did, Place, World};
use linux_raw_sys::general as nr;

/// A signal comes while a thread waits for a page, and is taken when it has that.
#[test]
fn who_ends_behind_a_fault_is_heard_of() {
    let mut world = World::new(256, 8);
    assert_eq!(world.good(1, nr::__NR_fork, &[]), 2);
    let place = |world: &mut World, place| world.system.machine.threads.get_mut(&2).unwrap().place = place;
    place(&mut world, Place::Call);
    world.good(1, nr::__NR_kill, &[2, nr::SIGTERM.into()]);
    assert_eq!(world.call(1, nr::__NR_wait4, &[2, DATA, 0, 0]), Did::Waits);
    place(&mut world, Place::Code);
    world.system.after_fault(2);
    assert_eq!(world.outcome(1), Did::Value(2));
    world.check();
}

/// Sleeps for the time that a handler has left are no longer together than the one that was wanted, however often a signal comes.
#[test]
fn a_sleep_that_a_handler_ends_has_a_rest() {
    for number in [nr::__NR_nanosleep, nr::__NR_clock_nanosleep] {
        let mut world = World::new(256, 8);
        let action = world.put_words(1, 0, &[CODE, u64::from(nr::SA_RESTART), 0, 0]);
        world.good(1, nr::__NR_rt_sigaction, &[nr::SIGUSR1.into(), action, 0, 8]);
        assert_eq!(world.good(1, nr::__NR_fork, &[]), 2);
        let time = world.put_words(2, 256, &[1, 500_000_000, 7, 7]);
        let arguments = match number {
            nr::__NR_nanosleep => [time, time + 16, 0, 0],
            _ => [nr::CLOCK_MONOTONIC.into(), 0, time, time + 16],
        };
        assert_eq!(world.call(2, number, &arguments), Did::Waits);
        world.pass(300_000_000);
        world.good(1, nr::__NR_kill, &[2, nr::SIGUSR1.into()]);
        assert_eq!(world.system.machine.threads[&2].place, Place::Code);
        assert_eq!(world.system.words(2, time + 16).unwrap(), [1, 200_000_000]);
    }
}
