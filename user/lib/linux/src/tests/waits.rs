//! Threads that end while others wait for them: whoever waits hears of it, wherever the one that ends was.

use super::world::{DATA, Did, Place, World};
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
