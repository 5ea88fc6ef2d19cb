//! Spaces with many tables and next to nothing in them: no step looks at all of these, whatever a program has done to have them.

use crate::world::World;
use abi::call::{task_op, thread_op};
use abi::{Call, Dope, Fpage, Timeout};
use kernel::mem::space::{self, Flush};
use kernel::object::TaskRef;

/// Directories that lead to no table.
const DIRECTORIES: u64 = 200;

/// Frames that a step of the end of a task may give back: eight tables of the last level, each with its shadow, its directory, and the shadow
/// of that.
const FRAMES_MAX: usize = 32;

/// A task with empty directories, each in a GiB of its own. It has registered blocks, and its memory ran out when the table below was to
/// be made.
fn sparse(world: &World) -> TaskRef {
    let id = world.new_task(20);
    let (task, thread) = (world.task(id), world.new_stand_in(id).uid());
    let room = Dope::room(1, 0, 0).0;
    for number in 0..DIRECTORIES {
        // The first one needs a table above it, too.
        for _ in 0..if number == 0 { 2 } else { 1 } {
            let quota = u64::from(task.used.get()) + 1;
            world.task_control(task_op::SET_QUOTA, [id.0, quota, 0, 0]).expect("there is memory");
            let block = [thread.0, number << 30, room, u64::from(Timeout::NEVER.0)];
            world.thread_control(thread_op::SET_BLOCK, block).expect("a block may be where nothing is");
            assert_eq!(u64::from(task.used.get()), quota, "a table");
        }
    }
    world.check();
    task
}

#[test]
fn a_flush_looks_at_few_directories_in_a_step() {
    let world = World::new(1024);
    let task = sparse(&world);
    let what = Flush { task, page: Fpage::WHOLE, own: false };
    let (mut at, mut status, mut before) = (0, 0, 0);
    loop {
        let result = space::flush(&world.k, what, &mut at, &mut status, &mut 32);
        if result.is_ok() {
            break;
        }
        assert!(before < at && at - before <= 32 << 30, "from {before:x} to {at:x}");
        before = at;
    }
    assert!(before >= (DIRECTORIES - 32) << 30, "a long way in the last step, from {before:x}");
}

#[test]
fn the_end_of_a_task_gives_few_directories_back_in_a_step() {
    let world = World::new(1024);
    let task = sparse(&world).id.get();
    let mut free = world.k.pool.free_frames();
    world.begin_call(Call::TaskControl, task_op::DESTROY, task.0);
    while world.is_busy() {
        let now = world.k.pool.free_frames();
        assert!(now - free <= FRAMES_MAX, "{} frames in a step", now - free);
        free = now;
        world.go_on_once();
    }
    let now = world.k.pool.free_frames();
    assert!(now - free <= FRAMES_MAX, "{} frames in the last step", now - free);
    world.check();
}
