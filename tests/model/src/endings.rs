//! Tasks that are being ended gain nothing: whatever makes or gives anything is tried by and on each task of a family whose end
//! is under way, at each of its steps, and nobody has more afterwards.

use crate::fast_path::{Live, fast_path};
use crate::world::World;
use abi::call::{
    DOOR_CALL, DOOR_ITEM_CALL, DOOR_ITEM_RETURN, DOOR_LONG_CALL, DOOR_LONG_RETURN, DOOR_RETURN, door_op,
    task_op, thread_op,
};
use abi::{Call, Dope, Error, Fpage, Rights, Space, TaskId, Timeout, Uid};
use kernel::mem::plan::Plan;
use kernel::mem::space::{self, Progress};
use kernel::object::thread::{WORDS, Wait};
use kernel::object::{TaskRef, ThreadRef};

/// Tasks below the first, each the chief of the next.
const FAMILY: usize = 4;

/// What a task has and could get more of: frames, pages, threads, quota, children, identifiers.
fn belongings(world: &World, task: TaskRef) -> [u64; 6] {
    let children = std::iter::successors(task.child.get(), |child| child.sibling_next.get()).count();
    let identifiers =
        (0..16).filter(|&number| kernel::mem::doors::find(&world.k, task, number).is_some()).count();
    let [used, pages, threads, quota] =
        [&task.used, &task.pages, &task.thread_count, &task.quota].map(|count| u64::from(count.get()));
    [used, pages, threads, quota, children as u64, identifiers as u64]
}

/// Gives a task what its giver has there, at the same place, plus `shift` pages or numbers.
fn give(world: &World, from: TaskRef, to: TaskRef, item: Fpage, shift: u64) {
    let at = item.base() + shift * abi::PAGE_SIZE;
    let window = match item.space() {
        Space::Memory => Fpage::memory(at, 12, Rights::RWX),
        _ => Fpage::doors((at >> 12) as u32, 0, Rights::RW),
    };
    let plan = Plan::fit(item, at, window).expect("it fits");
    let mut progress = Progress::START;
    while space::map(&world.k, plan, from, to, &mut progress, &mut 100).is_err() {}
}

const PAGE: Fpage = Fpage::memory(1 << 30, 12, Rights::RWX);
const DOOR: Fpage = Fpage::doors(0, 0, Rights::RW);

/// A thread in each task of the family, which never runs. Each task has tables and slabs with room, so that a page more costs it no
/// frame, and enough quota for all that is tried.
fn family(world: &World) -> Vec<(TaskRef, ThreadRef)> {
    let mut chief = world.root;
    world.call(Call::DoorControl, door_op::CREATE, [0, 0x1000, 7, 0]).expect("a door");
    (0..FAMILY)
        .map(|level| {
            let (id, thread) = world.acting(chief, || {
                let id = world.new_task(500 - 100 * level as u64);
                (id, world.new_stand_in(id))
            });
            let task = world.task(id);
            give(world, world.sigma0, task, PAGE, 0);
            give(world, world.sigma0, task, DOOR, 0);
            chief = thread;
            (task, thread)
        })
        .collect()
}

/// Everything by which `thread` could make something, for its own task or for `child`.
fn make(world: &World, thread: ThreadRef, child: Option<TaskRef>, number: u64) {
    world.acting(thread, || {
        let _ = world.task_control(task_op::CREATE, [20, 1, 0, 0]);
        let _ = world.thread_control(thread_op::CREATE, [0, 1, 0, 0]);
        let _ = world.call(Call::DoorControl, door_op::CREATE, [number, 0x1000, 7, 0]);
        // Tables on the way to it are there at once.
        let block = [0, (number + 2) << 33, Dope::room(1, 0, 0).0, Timeout::NEVER.0 as u64];
        let _ = world.thread_control(thread_op::SET_BLOCK, block);
        if let Some(child) = child {
            let id = child.id.get().0;
            let _ = world.thread_control(thread_op::CREATE, [id, 1, 0, 0]);
            let _ = world.task_control(task_op::SET_QUOTA, [id, u64::from(child.quota.get()) + 1, 0, 0]);
        }
    });
}

/// What nobody of the family gained by it. A task that its end has not reached yet still gets pages and doors, which are its own frames;
/// tasks, threads and quota it does not.
fn check_gains(task: TaskRef, before: [u64; 6], after: [u64; 6], at: &str) {
    let last = if task.is_dying() { 6 } else { 0 };
    for (what, (before, after)) in ["frames", "pages", "threads", "quota", "children", "identifiers"]
        .iter()
        .zip(before.iter().zip(after))
        .enumerate()
        .filter(|(number, _)| *number < last || (2..5).contains(number))
        .map(|(_, it)| it)
    {
        assert!(after <= *before, "{task:?} gained {what} {at}: {before}, then {after}");
    }
}

/// Whether a task exists, be it in the middle of its end.
fn is_there(world: &World, task: TaskId) -> bool {
    let frame = world.k.task_frame(task.number());
    frame.0 != 0 && TaskRef::at(&world.k.pool, frame).id.get() == task
}

#[test]
fn tasks_that_are_being_ended_gain_nothing() {
    let world = World::new(1024);
    // The first thread is busy with the end.
    let other = world.new_stand_in(abi::TaskId::NIL);
    let family = family(&world);
    world.check();
    let names: Vec<_> = family.iter().map(|(task, thread)| (task.id.get(), thread.name.get())).collect();
    let victim = names[0].0;
    world.begin_call(Call::TaskControl, task_op::DESTROY, victim.0);
    let mut steps = 0;
    while world.is_busy() {
        for (level, &(task, thread)) in family.iter().enumerate() {
            if !is_there(&world, names[level].0) {
                continue;
            }
            let before = belongings(&world, task);
            let child =
                names.get(level + 1).filter(|name| is_there(&world, name.0)).map(|_| family[level + 1].0);
            let child = child.filter(|child| child.chief.get() == Some(task));
            if ThreadRef::named(names[level].1).is_some_and(|thread| thread.hot.uid.get() != 0) {
                make(&world, thread, child, 1 + steps % 15);
            }
            make(&world, other, Some(task).filter(|_| level == 0), 1 + steps % 15);
            give(&world, world.sigma0, task, PAGE, 1 + steps);
            give(&world, world.sigma0, task, DOOR, 1 + steps % 15);
            check_gains(task, before, belongings(&world, task), &format!("in step {steps}"));
        }
        world.check();
        world.go_on_once();
        steps += 1;
        assert!(steps < 500, "the end does not end");
    }
    assert!(steps > 2 * FAMILY as u64, "the family ended before anything was tried");
    assert_eq!((world.result().0, world.k.task(victim)), (0, None));
    world.check();
}

/// A thread of a task that is more urgent than the first one, and runs.
fn urgent(world: &World, task: TaskId) -> ThreadRef {
    let me = world.root.uid().0;
    let uid = world.thread_control(thread_op::CREATE, [task.0, 30, me, me]).expect("there is memory")[0];
    world.thread_control(thread_op::START, [uid, 0x1000, 0x8000, 0]).expect("it starts");
    let thread = world.k.thread(Uid(uid)).expect("just made");
    assert_eq!(world.current(), thread);
    thread
}

/// The first task's two children: one with tasks of its own and a door, of which a server waits for a call with whatever it brings; and a
/// client's, which knows that door by the number 1. Both wait.
fn server_and_client(world: &World) -> (TaskId, ThreadRef, ThreadRef) {
    world.thread_control(thread_op::SET_PRIORITY, [0; 4]).expect("a priority");
    let (far, near) = (world.new_task(300), world.new_task(100));
    let server = urgent(world, far);
    world
        .thread_control(thread_op::SET_WINDOW, [0, Fpage::doors(3, 0, Rights::RW).0, 0, 0])
        .expect("a window");
    let room = [0, PAGE.base(), Dope::room(8, 0, 0).0, u64::from(u32::MAX)];
    world.thread_control(thread_op::SET_BLOCK, room).expect("a block");
    world.call(Call::DoorControl, door_op::CREATE, [0, 0x2000, 7, 0]).expect("a door");
    for _ in 0..FAMILY {
        world.new_task(20);
    }
    world.call(Call::DoorControl, door_op::SERVE, [0; 4]).ok();
    assert_eq!(server.wait(), Wait::Idle);
    give(world, world.task(far), world.task(near), DOOR, 1);
    let client = urgent(world, near);
    world.wait();
    assert_eq!(world.current(), world.root);
    (far, server, client)
}

/// The registers of a call through the client's door, in one of the forms.
fn call_by_door(form: u32) -> Live {
    let mut w = [0; WORDS];
    (w[1], w[6]) = (PAGE.base(), Fpage::doors(1, 0, Rights::RW).0);
    Live { w, rdx: 1, rax: form.into(), rip: 0x1000, rsp: 0x8000, r11: 0 }
}

#[test]
fn a_task_that_is_being_ended_is_called_on_neither_path() {
    for form in [DOOR_CALL, DOOR_LONG_CALL, DOOR_ITEM_CALL] {
        for ended in [false, true] {
            let world = World::new(1024);
            let (far, server, client) = server_and_client(&world);
            if ended {
                world.begin_call(Call::TaskControl, task_op::DESTROY, far.0);
                assert!(world.is_busy(), "it takes several steps");
            }
            // The client is more urgent than who ends the task.
            assert!(kernel::ipc::end::abort(&world.k, client));
            world.advance(20_000_000);
            assert_eq!((world.current(), server.wait()), (client, Wait::Idle));
            let mut live = call_by_door(form);
            assert_eq!(fast_path(&world.k, &mut live), !ended, "{form:x} by the fast path");
            if ended {
                let live = call_by_door(form);
                world.system_call(live.rax, live.rdx, live.w);
                assert_eq!((world.current(), client.frame.rax.get()), (client, Error::PartnerDied as u64));
                assert_eq!(server.wait(), Wait::Idle);
            }
            world.check();
        }
    }
}

/// A server whose task is being ended gains nothing, so its answer may be wrong: its caller hears of the end.
#[test]
fn answers_of_a_task_that_is_being_ended_are_not_told() {
    let ended = [DOOR_RETURN, DOOR_ITEM_RETURN, DOOR_LONG_RETURN].map(|form| (form, true));
    for (form, ended) in [(DOOR_RETURN, false)].into_iter().chain(ended) {
        let world = World::new(1024);
        let (far, server, client) = server_and_client(&world);
        assert!(kernel::ipc::end::abort(&world.k, client));
        world.advance(20_000_000);
        let live = call_by_door(DOOR_CALL);
        world.system_call(live.rax, live.rdx, live.w);
        assert_eq!((world.current(), client.wait()), (server, Wait::Return(server.uid())));
        world.wait();
        assert_eq!(world.current(), world.root);
        if ended {
            world.begin_call(Call::TaskControl, task_op::DESTROY, far.0);
            assert!(world.is_busy(), "it takes several steps");
        }
        // The server has what it waited for, and answers.
        assert!(kernel::ipc::end::abort(&world.k, server));
        world.advance(20_000_000);
        assert_eq!(world.current(), server);
        let mut live = Live { rax: form.into(), ..call_by_door(form) };
        assert!(!ended || !fast_path(&world.k, &mut live), "{form:x} by the fast path");
        let live = Live { rax: form.into(), ..call_by_door(form) };
        world.system_call(live.rax, live.rdx, live.w);
        assert_eq!((world.current(), server.wait()), (client, Wait::Idle), "{form:x}");
        let told = client.frame.rax.get();
        assert_eq!(told == Error::PartnerDied as u64, ended, "{form:x}: {told:x}");
        world.check();
    }
}

/// A thread ends itself where nobody else is ready. Its block is freed by the next interrupt, and the processor, which was idle, holds
/// nothing of it any more.
#[test]
fn one_that_ended_itself_is_forgotten_by_an_idle_processor() {
    let world = World::new(500);
    let thread = world.new_thread(TaskId::NIL, 1);
    world.wait();
    assert_eq!(world.current(), thread);
    world.begin_call(Call::ThreadControl, thread_op::DESTROY, thread.uid().0);
    world.settle();
    assert!(world.is_idle());
    world.interrupt(5);
    world.check();
}
