//! A kernel that checks itself: what is wrong with the threads concerned is found at the next exit, and what is wrong anywhere is
//! found in time.

use crate::world::World;
use abi::{TaskId, Uid};
use kernel::checked::Checks;
use kernel::object::ThreadRef;
use kernel::object::thread::{State, special};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Exits until everything has been checked, with all but certainty.
const LONG: usize = 20_000;

/// After how many exits something wrong is found; `None` if it is not.
fn found_after(world: &World, spoil: impl FnOnce(&World)) -> Option<usize> {
    let checks = Checks::new();
    checks.seed(1);
    // So that there is something to compare with.
    (0..LONG).for_each(|_| checks.at_exit(&world.k, world.current()));
    spoil(world);
    (0..LONG).find(|_| catch_unwind(AssertUnwindSafe(|| checks.at_exit(&world.k, world.current()))).is_err())
}

/// Three threads of the first task: the first, which runs; one that waits for it; one that has nothing to do with it.
fn three() -> (World, ThreadRef, ThreadRef) {
    let world = World::new(256);
    let [waits, other] = [0; 2].map(|_| world.new_stand_in(TaskId::NIL));
    waits.state.set(State::Receiving);
    waits.partner.set(world.root.uid());
    (world, waits, other)
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let (world, ..) = three();
    assert_eq!(found_after(&world, |_| {}), None);
}

#[test]
fn what_concerns_the_thread_that_goes_on_is_found_at_once() {
    type Spoil = fn(&World);
    let spoils: [(&str, Spoil); 5] = [
        ("it waits", |world| world.root.hot.accept.set(world.root.uid().0)),
        ("it is special, and open to the fast path", |world| world.root.special.set(special::STOPPED)),
        ("its stack overflowed", |world| world.root.canary.set(0)),
        ("it has two names", |world| world.root.name.set(Uid::thread(world.root.uid().slot(), 77, 0))),
        ("its shuttle is in a queue", |world| world.k.wake(world.root)),
    ];
    for (what, spoil) in spoils {
        let (world, ..) = three();
        assert_eq!(found_after(&world, spoil), Some(0), "{what}");
    }
}

#[test]
fn what_concerns_nobody_is_found_in_time() {
    type Spoil = fn(&World, ThreadRef);
    let spoils: [(&str, Spoil); 4] = [
        ("it waits for nobody", |_, other| {
            other.state.set(State::Receiving);
            other.partner.set(Uid::thread(99, 1, 0));
        }),
        ("it is ready and in no queue", |_, other| other.state.set(State::Ready)),
        ("its task pays for less than it has", |world, _| world.sigma0.used.set(world.sigma0.used.get() - 1)),
        ("a frame is lost", |world, _| assert!(world.k.pool.take().is_some())),
    ];
    for (what, spoil) in spoils {
        let (world, _, other) = three();
        let after = found_after(&world, |world| spoil(world, other));
        assert!(after.is_some(), "{what}");
    }
}
