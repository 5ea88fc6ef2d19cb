//! Uids, which are used up for good: whoever makes threads without end does so at its own cost.
//!
//! The kernel has few slots here, of few generations, so that they run out. The model is one sentence: a task gets a thread
//! if it has a frame for it, and one more where its uids have to be paid for.

use crate::random::Random;
use crate::world::World;
use abi::call::{task_op, thread_op};
use abi::{Error, TaskId, Uid};
use kernel::life;
use kernel::object::TaskRef;
use kernel::object::task::UidPrice;

const FRAMES: usize = 600;
const GENERATIONS: u32 = 8;
const PRICE: UidPrice = UidPrice { free: 4, per_frame: 2 * GENERATIONS as u64 };

/// Slots for the uids that all frames pay for, for those that tasks have for nothing, and slot 0.
const SLOTS: u32 = 2 * FRAMES as u32 + (FRAMES / 2) as u32 * 4 / GENERATIONS + 1;

/// A world with few uids. Its first task has none left over.
fn world_with_few() -> World {
    let world = World::new(FRAMES);
    world.k.limit_uids(SLOTS, GENERATIONS, PRICE);
    world.sigma0.uids.set(PRICE.free - 1);
    world
}

/// Whether a task can pay for a thread.
fn can_pay(task: TaskRef) -> bool {
    let price = 1 + (task.uids.get() == 0) as u32;
    task.used.get() + price <= task.quota.get()
}

fn new_thread(world: &World, task: TaskId) -> Option<Uid> {
    let could = can_pay(world.task(task));
    let result = world.thread_control(thread_op::CREATE, [task.0, 1, 0, 0]);
    assert_eq!(
        result.is_ok(),
        could,
        "{result:?}, after {} slots are used up",
        world.k.thread_slots.retired()
    );
    if let Err(error) = result {
        assert_eq!(error, Error::NoMemory as u64);
    }
    result.ok().map(|[uid, ..]| Uid(uid))
}

fn end_thread(world: &World, thread: Uid) {
    world.thread_control(thread_op::DESTROY, [thread.0, 0, 0, 0]).expect("a thread of a child");
}

/// Makes and ends threads until the task gets none any more. Returns how many there were.
fn wear_out(world: &World, task: TaskId) -> u64 {
    (0..).find(|_| new_thread(world, task).map(|thread| end_thread(world, thread)).is_none()).expect("an end")
}

#[test]
fn a_task_uses_up_its_own_share_and_no_other() {
    let world = world_with_few();
    let (bad, good) = (world.new_task(40), world.new_task(40));
    let made = wear_out(&world, bad);
    // Two frames are its own, and one is left that would be the thread's.
    assert_eq!(made, PRICE.free + 37 * PRICE.per_frame);
    assert!(world.k.thread_slots.retired() > 60);
    world.check();
    let all: Vec<Uid> = (0..36).map(|_| new_thread(&world, good).expect("a share of its own")).collect();
    all.into_iter().for_each(|thread| end_thread(&world, thread));
    let used = world.sigma0.used.get();
    world.task_control(task_op::DESTROY, [bad.0, 0, 0, 0]).expect("a child");
    let back = used - world.sigma0.used.get();
    assert!((2..=3).contains(&back), "its chief bears what it used up, and got {back} frames");
    assert_eq!(wear_out(&world, good), PRICE.free + 37 * PRICE.per_frame - 36);
    world.check();
}

#[test]
fn many_small_tasks_use_up_no_more_than_one() {
    let world = world_with_few();
    let mut made = 0;
    loop {
        let left = world.sigma0.quota.get() - world.sigma0.used.get();
        if left < 4 {
            break;
        }
        let task = world.new_task(4);
        made += wear_out(&world, task);
        world.task_control(task_op::DESTROY, [task.0, 0, 0, 0]).expect("a child");
        world.check();
    }
    let price = world.sigma0.worn.get() as u64 * PRICE.per_frame;
    assert!(made <= price + PRICE.free && made + PRICE.per_frame > price, "{made} for {price}");
}

#[test]
fn frames_for_uids_that_nobody_used_come_back() {
    let world = world_with_few();
    for _ in 0..100 {
        let task = world.new_task(8);
        for _ in 0..=PRICE.free {
            let thread = new_thread(&world, task).expect("a frame");
            end_thread(&world, thread);
        }
        assert_eq!(world.task(task).worn.get(), 1);
        world.task_control(task_op::DESTROY, [task.0, 0, 0, 0]).expect("a child");
    }
    let made = 100 * (PRICE.free + 1);
    assert!((world.sigma0.worn.get() as u64) <= made.div_ceil(PRICE.per_frame) + 1);
    world.check();
}

#[test]
fn families_at_random() {
    for seed in 0..20 {
        let (world, mut random) = (world_with_few(), Random::new(seed));
        let mut tasks: Vec<TaskId> = Vec::new();
        let mut threads: Vec<Uid> = Vec::new();
        for step in 0..4000 {
            let existing = |tasks: &[TaskId], random: &mut Random| random.pick(tasks);
            match random.below(20) {
                0 | 1 => {
                    let chief = match tasks.is_empty() || random.below(2) == 0 {
                        true => world.sigma0,
                        false => world.task(existing(&tasks, &mut random)),
                    };
                    let quota = random.pick(&[2, 3, 8, 30]);
                    if chief.used.get() + quota <= chief.quota.get() && chief.depth.get() < 20 {
                        let task = life::task::new_task(&world.k, Some(chief), quota, 1).expect("a number");
                        tasks.push(task.id.get());
                    }
                }
                2 if !tasks.is_empty() => {
                    let task = existing(&tasks, &mut random);
                    if world.task(task).chief.get() == Some(world.sigma0) {
                        world.task_control(task_op::DESTROY, [task.0, 0, 0, 0]).expect("a child");
                        tasks.retain(|&task| world.k.task(task).is_some());
                        threads.retain(|&thread| world.k.thread(thread).is_some());
                    }
                }
                3..12 if !tasks.is_empty() => {
                    let task = world.task(existing(&tasks, &mut random));
                    let could = can_pay(task);
                    let made = life::thread::new_thread(&world.k, task, 1);
                    assert_eq!(made.is_ok(), could, "step {step} of {seed}");
                    threads.extend(made.ok().map(|thread| thread.uid()));
                }
                12.. if !threads.is_empty() => {
                    let thread = threads.swap_remove(random.below(threads.len() as u64) as usize);
                    let thread = world.k.thread(thread).expect("it was not ended");
                    while !life::thread::end_thread_step(&world.k, thread, None) {}
                }
                _ => {}
            }
            if step % 64 == 0 {
                world.check();
            }
        }
    }
}
