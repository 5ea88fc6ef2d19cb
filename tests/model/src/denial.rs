//! Failure, one allocation at a time: every kind of system call is made with its first, second, third … allocation denied,
//! whoever pays for it, until one comes through untouched.
//!
//! Each time: whoever asked learns of it, every object is as it should be, nothing is lost, and the same call succeeds
//! afterwards and leaves what it would have left at once. Then all is ended, and every frame is back. ([`crate::exhaustion`]
//! does the same with quotas, which run out for one task and for good.)

use crate::foreign;
use crate::world::World;
use abi::call::{FLUSH_SELF, IPC_LONG_CALL, ITEM_WHOLE, RESUME_AS_IS, task_op, thread_op, vector};
use abi::op;
use abi::{Call, Dope, Error, Fpage, Kind, Rights, StringPart, TaskId, ThreadState, Timeout, Uid};
use kernel::mem::{space, table};
use kernel::object::ThreadRef;
use kernel::object::thread::{Frame, WORDS};
use kernel::processor;
use kernel::sched::Next;
use kernel::sim;

/// How many allocations in a row are denied: one, or all that follow.
const COUNTS: [u64; 2] = [1, u64::MAX];

const ALWAYS: (Timeout, Timeout) = (Timeout::NEVER, Timeout::NEVER);

/// What a call says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    /// All is done.
    Done,
    /// Something could not be paid for.
    Denied,
    /// All is done, but some of it the slow way; nobody is told.
    Slowly,
}

/// What a task uses: frames, pages, threads; and what it has.
type Account = (u32, u32, u32, Vec<(u64, u64, Rights)>);

/// All that can be seen of the tasks, and what nobody pays for.
type State = (Vec<Account>, usize);

fn tasks(world: &World) -> impl Iterator<Item = kernel::object::TaskRef> + '_ {
    let numbers = 1..world.k.task_slots.high_water() as u16;
    let frames = numbers.map(|number| world.k.task_frame(number)).filter(|frame| frame.0 != 0);
    frames.map(|frame| kernel::object::TaskRef::at(&world.k.pool, frame))
}

fn state(world: &World) -> State {
    let of = |task: kernel::object::TaskRef| {
        (task.used.get(), task.pages.get(), task.thread_count.get(), holdings(world, task))
    };
    (tasks(world).map(of).collect(), world.k.reserve())
}

/// Pages, ports and lines of a task; of the first only what it uses is known.
fn holdings(world: &World, task: kernel::object::TaskRef) -> Vec<(u64, u64, Rights)> {
    let mut all = Vec::new();
    if task.is_sigma0.get() {
        return all;
    }
    let (mut at, end) = (0, abi::USER_END);
    while at < end {
        if let Some((physical, rights)) = sim::walk(&world.k.pool, task, at) {
            all.push((at, physical, rights));
        }
        at = table::next(&world.k.pool, task, at + abi::PAGE_SIZE, end, &mut 1000);
    }
    let ports = if task.ports.get() == 0 { 0 } else { 1 << 16 };
    let has_port = |port: &u32| space::holds_port(&world.k, task, *port as u16);
    all.extend((0..ports).filter(has_port).map(|port| (u64::from(port), 0, Rights::NONE)));
    let has_line = |line: &u8| space::holds_interrupt(&world.k, task, *line);
    all.extend((0..192).filter(has_line).map(|line| (u64::from(line), 1, Rights::NONE)));
    all
}

/// What remains to be denied of an order for `count` allocations from number `first` on.
fn with_denials(world: &World, first: u64, count: u64, attempt: impl FnOnce() -> Said) -> (Said, bool) {
    tasks(world).for_each(|task| task.set_counted(true));
    world.k.pool.deny(first, count);
    let said = attempt();
    let [_, left] = world.k.pool.deny(0, 0);
    tasks(world).for_each(|task| task.set_counted(false));
    world.check();
    (said, left != count)
}

/// Runs `attempt` on what `prepare` has made with each of its allocations denied. Returns how many there are.
fn at_every_allocation<S>(
    frames: usize,
    prepare: impl Fn(&World) -> S,
    attempt: impl Fn(&World, &S) -> Said,
) -> u64 {
    let world = World::new(frames);
    let stage = prepare(&world);
    world.check();
    assert_eq!(attempt(&world, &stage), Said::Done, "with enough memory it succeeds");
    world.check();
    let goal = state(&world);
    drop(world);
    for first in 1.. {
        let denied = COUNTS.map(|count| {
            let world = World::new(frames);
            let base = world.sigma0.used.get();
            let stage = prepare(&world);
            let before = state(&world);
            let (said, denied) = with_denials(&world, first, count, || attempt(&world, &stage));
            assert_eq!(denied, said != Said::Done, "allocation {first}, {count} denied: it says {said:?}");
            for ((before, after), goal) in before.0.iter().zip(&state(&world).0).zip(&goal.0) {
                let between = before.0 <= after.0 && after.0 <= goal.0;
                assert!(
                    between,
                    "allocation {first}: {} frames, then {}, then {}",
                    before.0, after.0, goal.0
                );
            }
            if said != Said::Done {
                assert_eq!(attempt(&world, &stage), Said::Done, "again after {first}");
                world.check();
            }
            assert_eq!(state(&world), goal, "after allocation {first} was denied, {count} in all");
            end(&world, base);
            denied
        });
        assert_eq!(denied[0], denied[1]);
        if !denied[0] {
            return first - 1;
        }
    }
    unreachable!()
}

/// Ends everything but the first thread, and finds every frame that is not the first task's.
fn end(world: &World, base: u32) {
    while world.current() != world.root {
        if world.is_idle() {
            assert!(kernel::ipc::end::abort(&world.k, world.root));
            world.leave(Next::Any);
        } else {
            world.thread_control(thread_op::STOP, [0; 4]).expect("it may stop itself");
        }
    }
    while let Ok([task @ (1..), ..]) = world.task_control(task_op::NEXT, [0; 4]) {
        world.task_control(task_op::DESTROY, [task, 0, 0, 0]).expect("it is ours");
    }
    // What it has for its own part of a mapping it keeps: tables, and nodes until it has none.
    let quota: u32 = tasks(world).skip(1).map(|task| task.quota.get()).sum();
    assert_eq!(quota, 0);
    assert!(world.sigma0.used.get() >= base);
    world.check();
}

/// A thread in a task of its own, in which it runs as soon as it can.
fn thread_in_task(world: &World, priority: u8) -> ThreadRef {
    world.new_thread(world.new_task(150), priority)
}

/// Lets others run.
fn step_back(world: &World) {
    world.thread_control(thread_op::SET_PRIORITY, [0, 1, 0, 0]).expect("a priority");
}

fn wait_with(world: &World, window: Fpage) {
    world.ipc(Uid::NIL, Uid::ANY, ALWAYS, window, 0, [0; 8]);
}

fn said(result: Result<[u64; 6], u64>) -> Said {
    match result {
        Ok(_) => Said::Done,
        Err(error) => {
            assert_eq!(error, Error::NoMemory as u64);
            Said::Denied
        }
    }
}

#[test]
fn thread_create() {
    let attempt =
        |world: &World, task: &TaskId| said(world.thread_control(thread_op::CREATE, [task.0, 1, 0, 0]));
    assert_eq!(at_every_allocation(512, |world| world.new_task(10), attempt), 1);
}

#[test]
fn thread_create_with_the_tables_of_512() {
    let prepare = |world: &World| {
        let task = world.new_task(600);
        while world.k.thread_slots.high_water() < 512 {
            world.thread_control(thread_op::CREATE, [task.0, 1, 0, 0]).expect("memory");
        }
        task
    };
    let attempt =
        |world: &World, task: &TaskId| said(world.thread_control(thread_op::CREATE, [task.0, 1, 0, 0]));
    // The block, the page of slots, the table of blocks.
    assert_eq!(at_every_allocation(2048, prepare, attempt), 3);
}

#[test]
fn task_create() {
    let attempt = |world: &World, _: &()| said(world.task_control(task_op::CREATE, [10, 1, 0, 0]));
    // Its own two frames are a part of the quota, which is checked.
    assert_eq!(at_every_allocation(512, |_| (), attempt), 0);
    let prepare = |world: &World| {
        while world.k.task_slots.high_water() < 512 {
            world.new_task(2);
        }
    };
    // The page of slots, the page of numbers.
    assert_eq!(at_every_allocation(4096, prepare, attempt), 2);
}

#[test]
fn set_block() {
    let attempt = |world: &World, thread: &ThreadRef| {
        let room = Dope::room(8, 1, 1).0;
        let set = [thread.uid().0, 0x12_3456_7000, room, 0];
        world.thread_control(thread_op::SET_BLOCK, set).expect("tables are for the fast path alone");
        assert_eq!((thread.block.address.get(), thread.block.room.get()), (set[1], room));
        let place = table::find(&world.k.pool, thread.task(), set[1]);
        if matches!(place, table::Found::Leaf(_)) { Said::Done } else { Said::Slowly }
    };
    assert_eq!(at_every_allocation(512, |world| thread_in_task(world, 1), attempt), 4);
}

/// The current thread sends an item to one that waits for it with a window, and then waits again.
fn send_item(world: &World, receiver: ThreadRef, item: Fpage, window: Fpage) -> Said {
    let sender = world.current();
    let mut words = [0; 8];
    (words[6], words[7]) = (item.0, 0x1_0000_0000);
    world.ipc(receiver.uid(), Uid::NIL, ALWAYS, Fpage::NIL, op::ITEM, words);
    assert_eq!(sender.frame.rax.get(), 0, "a sender is not concerned");
    assert_eq!(world.current(), receiver);
    let result = receiver.frame.rax.get() as u32;
    assert_eq!(Kind::from_eax(result), Some(Kind::Reply));
    wait_with(world, window);
    assert_eq!(world.current(), sender);
    if result & ITEM_WHOLE == 0 { Said::Denied } else { Said::Done }
}

/// A receiver that is more urgent than the first thread waits for an item from that.
fn receiver(world: &World, window: Fpage) -> ThreadRef {
    let receiver = thread_in_task(world, 63);
    step_back(world);
    assert_eq!(world.current(), receiver);
    wait_with(world, window);
    assert_eq!(world.current(), world.root);
    receiver
}

/// The first task maps something on.
fn map_item(item: Fpage, window: Fpage) -> u64 {
    at_every_allocation(
        1024,
        |world| receiver(world, window),
        |world, receiver| send_item(world, *receiver, item, window),
    )
}

fn memory(base: u64, log2: u32, rights: Rights) -> Fpage {
    Fpage::memory(base, log2, rights)
}

#[test]
fn items_of_the_first_task() {
    // The giver splits its large page twice and makes a node, the receiver makes four tables and a node.
    assert_eq!(map_item(memory(1 << 30, 12, Rights::RWX), Fpage::WHOLE), 3 + 1 + 4 + 1);
    assert!(map_item(memory(1 << 30, 20, Rights::RWX), Fpage::WHOLE) > 9);
    assert!(map_item(memory((1 << 30) - (1 << 12), 12, Rights::R.or(Rights::GRANT)), Fpage::WHOLE) > 8);
    assert!(map_item(Fpage::ports(0x3f8, 3), Fpage::ports(0, 16)) > 6);
    assert!(map_item(Fpage::ports(0, 11), Fpage::ports(0, 16)) > 10);
    assert!(map_item(Fpage::interrupt(3), Fpage::interrupts()) > 3);
    assert!(map_item(Fpage::interrupts(), Fpage::interrupts()) > 6);
}

/// A task that has got an item from the first one hands it on to another; to a place that is in use if `twice`.
fn hand_on(item: Fpage, given: Fpage, window: Fpage, twice: bool) -> u64 {
    let prepare = |world: &World| {
        let last = thread_in_task(world, 63);
        let middle = thread_in_task(world, 62);
        step_back(world);
        assert_eq!(world.current(), last);
        wait_with(world, window);
        assert_eq!(world.current(), middle);
        let everything = if item.space() == abi::Space::Port { Fpage::ports(0, 16) } else { Fpage::WHOLE };
        wait_with(world, everything);
        assert_eq!(send_item(world, middle, item, everything), Said::Done);
        if twice {
            assert_eq!(send_item(world, last, item, window), Said::Done);
        }
        assert_eq!(world.current(), world.root);
        // So that the giver runs when it is told to.
        world.begin_call(Call::ThreadControl, thread_op::ABORT, middle.uid().0);
        assert_eq!(world.current(), middle);
        last
    };
    at_every_allocation(1024, prepare, |world, last| send_item(world, *last, given, window))
}

#[test]
fn items_of_other_tasks() {
    let source = memory(0x4000_0000, 16, Rights::RWX);
    // Where the first task's item arrived: the hot spot, in units of the item.
    let here = |log2, rights| memory(0x1_0000_0000, log2, rights);
    let granted = Rights::RWX.or(Rights::GRANT);
    let narrow = Rights::R.or(Rights::GRANT);
    for twice in [false, true] {
        let tables = if twice { 0 } else { 5 };
        for rights in [Rights::RWX, granted, narrow] {
            for log2 in [12, 16] {
                let needed = hand_on(source, here(log2, rights), Fpage::WHOLE, twice);
                assert_eq!(needed, tables, "{rights:?} {log2}, twice {twice}");
            }
        }
        for rights in [Rights::RW, Rights::RW.or(Rights::GRANT)] {
            let ports = Fpage::ports(0x3f8, 3);
            let needed = hand_on(ports, ports.with_rights(rights), Fpage::ports(0, 16), twice);
            assert_eq!(needed, tables, "ports, {rights:?}, twice {twice}");
        }
    }
}

#[test]
fn items_of_large_pages() {
    assert_eq!(map_item(memory(1 << 30, 21, Rights::RWX), Fpage::WHOLE), 7);
    let source = memory(0x4000_0000, 21, Rights::RWX);
    let granted = Rights::RWX.or(Rights::GRANT);
    // Whoever grants a part splits his page for it, and whoever gets something in place of a part splits his. Whoever maps a part makes
    // an index.
    let cases = [
        (21, Rights::RWX, [4, 0]),
        (21, granted, [4, 0]),
        (12, Rights::RWX, [6, 3]),
        (12, granted, [7, 4]),
        (16, granted, [7, 4]),
    ];
    for (log2, rights, needed) in cases {
        let given = memory(0x1_0000_0000, log2, rights);
        let counted = [false, true].map(|twice| hand_on(source, given, Fpage::WHOLE, twice));
        assert_eq!(counted, needed, "{rights:?} {log2}");
    }
}

#[test]
fn flushes_of_a_part_of_ones_own() {
    let prepare = |world: &World| {
        let middle = thread_in_task(world, 62);
        step_back(world);
        assert_eq!(world.current(), middle);
        wait_with(world, Fpage::WHOLE);
        assert_eq!(send_item(world, middle, memory(0x4000_0000, 21, Rights::RWX), Fpage::WHOLE), Said::Done);
        world.begin_call(Call::ThreadControl, thread_op::ABORT, middle.uid().0);
        assert_eq!(world.current(), middle);
    };
    for rights in [Rights::W, Rights::RWX] {
        let attempt = |world: &World, (): &()| {
            let page = memory(0x1_0000_0000, 13, rights);
            match world.call(Call::Flush, 0, [page.0, FLUSH_SELF, 0, 0]) {
                Ok(_) => Said::Done,
                Err(error) if error == Error::NoMemory as u64 => Said::Denied,
                Err(error) => panic!("error {error}"),
            }
        };
        assert_eq!(at_every_allocation(1024, prepare, attempt), 2, "a table and its shadow");
    }
}

#[test]
fn an_item_that_waited_in_a_queue() {
    let prepare = |world: &World| {
        let receiver = thread_in_task(world, 1);
        let sender = world.new_thread(TaskId::NIL, 63);
        step_back(world);
        assert_eq!(world.current(), sender);
        (sender, receiver)
    };
    let attempt = |world: &World, (sender, receiver): &(ThreadRef, ThreadRef)| {
        let mut words = [0; 8];
        words[6] = memory(1 << 30, 18, Rights::RWX).0;
        world.ipc(receiver.uid(), Uid::NIL, ALWAYS, Fpage::NIL, op::ITEM, words);
        // The first thread and the receiver are as urgent as each other.
        if world.current() == world.root {
            world.begin_call(Call::ThreadSwitch, 0, 0);
        }
        assert_eq!(world.current(), *receiver);
        wait_with(world, Fpage::WHOLE);
        assert_eq!(world.current(), *sender);
        let result = receiver.frame.rax.get() as u32;
        assert_eq!(Kind::from_eax(result), Some(Kind::Reply));
        if result & ITEM_WHOLE == 0 { Said::Denied } else { Said::Done }
    };
    assert!(at_every_allocation(1024, prepare, attempt) > 10);
}

/// A thread whose pager and handler is the first, which waits.
fn client(world: &World) -> ThreadRef {
    let client = thread_in_task(world, 62);
    wait_with(world, Fpage::NIL);
    assert_eq!(world.current(), client);
    client
}

/// The first thread has the message of a fault, and answers it; then of the exception if the client cannot pay.
fn answer_fault(world: &World, client: ThreadRef, item: Fpage, hot_spot: u64, exception: u64) -> Said {
    let answer = |label: u32, flags: u32| {
        let mut words = [0; 8];
        (words[6], words[7]) = (item.0, hot_spot);
        let mut all = [0; WORDS];
        all[..8].copy_from_slice(&words);
        (all[Frame::RBX], all[Frame::R15]) = (Uid::ANY.0, u64::MAX);
        world.system_call(u64::from(Call::Ipc as u32 | flags) | u64::from(label) << 32, client.uid().0, all);
    };
    assert_eq!(world.current(), world.root);
    assert_eq!(Kind::from_eax(world.root.frame.rax.get() as u32), Some(Kind::Fault));
    answer(0, op::ITEM);
    if world.current() == client {
        return Said::Done;
    }
    assert_eq!(world.current(), world.root);
    assert_eq!(Kind::from_eax(world.root.frame.rax.get() as u32), Some(Kind::Exception));
    assert_eq!(world.root.frame.w[0].get(), exception);
    answer(RESUME_AS_IS, 0);
    assert_eq!(world.current(), client);
    Said::Denied
}

#[test]
fn page_faults() {
    for (log2, least) in [(12, 9), (18, 9), (20, 12), (22, 7)] {
        let attempt = |world: &World, client: &ThreadRef| {
            world.page_fault(0x5_4000_0000, Rights::R);
            world.settle();
            let item = memory(1 << 30, log2, Rights::RW);
            answer_fault(world, *client, item, 0x5_4000_0000, vector::UNRESOLVED_FAULT)
        };
        assert!(at_every_allocation(2048, client, attempt) >= least);
    }
}

#[test]
fn port_faults() {
    let attempt = |world: &World, client: &ThreadRef| {
        let ports = Fpage::ports(0x3f8, 1);
        world.port_fault(ports);
        world.settle();
        answer_fault(world, *client, ports, 0, vector::PROTECTION)
    };
    assert!(at_every_allocation(512, client, attempt) > 6);
}

/// Where the blocks of a long message lie, its strings, and pages that it carries: at the same address for everybody.
const SEND_BLOCK: u64 = 0x4000_0000;
const RECEIVE_BLOCK: u64 = 0x4020_0000;
const SEND_STRINGS: [(u64, u32); 2] = [(0x4040_0ff0, 5000), (0x4080_0000, 1)];
const RECEIVE_STRINGS: [u64; 2] = [0x40c0_0800, 0x4100_0fff];
const SEND_ITEM: u64 = 0x4200_0000;
const RECEIVE_ITEM: u64 = 0x5200_0000;
const ITEM_LOG2: u32 = 17;

/// Both sides of a long message with words, strings and an item. Their pager is the first thread, and they have no page
/// but those that are given on.
fn long_message(world: &World) -> [ThreadRef; 2] {
    let write = |address, words: [u64; 2]| {
        processor::copy::write_words(&world.k, world.sigma0, (world.sigma0, address), words)
            .expect("it has all memory")
    };
    let (words, room) = (4, 8);
    for (i, ((from, len), to)) in (0..).zip(SEND_STRINGS.into_iter().zip(RECEIVE_STRINGS)) {
        let (sent, taken) = (StringPart::send(from, len), StringPart::room(to, len));
        write(SEND_BLOCK + 8 * words + 16 * i, [sent.address, sent.sizes()]);
        write(RECEIVE_BLOCK + 8 * room + 16 * i, [taken.address, taken.sizes()]);
    }
    write(SEND_BLOCK + 8 * words + 32, [memory(SEND_ITEM, ITEM_LOG2, Rights::RWX).0, 0]);
    write(RECEIVE_BLOCK + 8 * room + 32, [memory(RECEIVE_ITEM, ITEM_LOG2, Rights::RWX).0, 0]);
    let (receiver, sender) = (thread_in_task(world, 63), thread_in_task(world, 62));
    step_back(world);
    assert_eq!(world.current(), receiver);
    let patience = u64::from(Timeout::NEVER.0);
    let dope = Dope::room(room, 2, 1).0;
    world.thread_control(thread_op::SET_BLOCK, [0, RECEIVE_BLOCK, dope, patience]).expect("a block");
    world.wait();
    assert_eq!(world.current(), sender);
    wait_with(world, Fpage::WHOLE);
    let item = memory(SEND_ITEM, ITEM_LOG2, Rights::RWX);
    let mut words = [0; 8];
    (words[6], words[7]) = (item.0, SEND_ITEM);
    world.ipc(sender.uid(), Uid::NIL, ALWAYS, Fpage::NIL, op::ITEM, words);
    assert_eq!(world.current(), sender);
    [sender, receiver]
}

/// The first thread answers each fault with the page at the same address, until nobody waits for it.
fn serve_faults(world: &World) {
    while world.current() == world.root {
        world.wait();
        if world.current() != world.root {
            return;
        }
        let frame = &world.root.frame;
        assert_eq!(Kind::from_eax(frame.rax.get() as u32), Some(Kind::Fault), "{:x}", frame.rax.get());
        let page = frame.w[0].get() & !0xfff;
        let mut words = [0; 8];
        (words[6], words[7]) = (memory(page, 12, Rights::RWX).0, page);
        let from = Uid(frame.rdx.get());
        world.ipc(from, Uid::NIL, (Timeout::ZERO, Timeout::NEVER), Fpage::NIL, op::ITEM, words);
    }
}

#[test]
fn long_messages() {
    let attempt = |world: &World, &[sender, receiver]: &[ThreadRef; 2]| {
        let mut words = [0; WORDS];
        (words[0], words[1]) = (Dope::used(4, 2, 1).0, SEND_BLOCK);
        world.system_call(u64::from(IPC_LONG_CALL), receiver.uid().0, words);
        serve_faults(world);
        // Either the receiver has everything, or both know that something is missing.
        assert_eq!(world.current(), receiver);
        let result = receiver.frame.rax.get() as u32;
        if Kind::from_eax(result) == Some(Kind::Request) {
            // Back to where both were.
            world.ipc_reply_wait(sender.uid());
            assert_eq!(world.current(), sender);
            assert_eq!(Kind::from_eax(sender.frame.rax.get() as u32), Some(Kind::Reply));
            return if result & ITEM_WHOLE == 0 { Said::Denied } else { Said::Done };
        }
        assert_eq!(result, Error::NoAccess as u32);
        world.wait();
        assert_eq!((world.current(), sender.frame.rax.get()), (sender, Error::NoAccess as u64));
        Said::Denied
    };
    assert!(at_every_allocation(1024, long_message, attempt) > 20);
}

/// A call of the first thread that must succeed without memory.
fn is_free(world: &World, call: Call, operation: u32, [rdi, rsi, rdx, r10, r8]: [u64; 5]) {
    let mut w = [0; WORDS];
    (w[Frame::RDI], w[Frame::RSI], w[Frame::R10], w[Frame::R8]) = (rdi, rsi, r10, r8);
    let (_, denied) = with_denials(world, 1, u64::MAX, || {
        world.system_call(u64::from(call as u32 | operation << 8), rdx, w);
        Said::Done
    });
    assert!(!denied, "{call:?} {operation} needs memory");
    // Another thread may be running now.
    assert_eq!(world.root.frame.rax.get(), 0, "{call:?} {operation}");
}

/// Address of a state, in memory of the first task that nobody else uses.
const STATE: u64 = 0x4800_0000;

#[test]
fn other_operations_on_threads_need_no_memory() {
    // A return needs a call: see `a_late_return_needs_no_memory`.
    let paid_for = [thread_op::CREATE, thread_op::SET_BLOCK, thread_op::FOREIGN_RETURN];
    for operation in (0..thread_op::COUNT).filter(|operation| !paid_for.contains(operation)) {
        let world = World::new(512);
        let thread = receiver(&world, Fpage::NIL).uid();
        let stopped = [
            thread_op::START,
            thread_op::RESUME,
            thread_op::GET_REGISTERS,
            thread_op::SET_REGISTERS,
            thread_op::GET_STATE,
            thread_op::SET_STATE,
        ];
        if stopped.contains(&operation) {
            // Once its wait is over, it stops before it runs.
            is_free(&world, Call::ThreadControl, thread_op::STOP, [thread.0, 0, 0, 0, 0]);
            is_free(&world, Call::ThreadControl, thread_op::ABORT, [thread.0, 0, 0, 0, 0]);
        }
        let arguments = match operation {
            thread_op::NEXT => [0; 5],
            thread_op::SET_PAGER => [thread.0, thread.0, world.root.uid().0, 0, 0],
            thread_op::SET_WINDOW => [thread.0, Fpage::WHOLE.0, 0, 0, 0],
            thread_op::READ_TRACE => [abi::call::TRACE_COUNTERS, 0, 0, 0, 0],
            thread_op::INTERRUPT_MESSAGE => [Uid::interrupt(100).0, 0, 0, 0, 0],
            thread_op::BREAKPOINT => [thread.0, 1, 0x1000, abi::call::BREAK_WRITE, 8],
            thread_op::GET_STATE => [thread.0, STATE, ThreadState::LEN_BYTES, 0, 0],
            thread_op::SET_STATE => {
                let [state, len] = [STATE, ThreadState::LEN_BYTES];
                is_free(&world, Call::ThreadControl, thread_op::GET_STATE, [thread.0, state, len, 0, 0]);
                [thread.0, state, len, 0, 0]
            }
            _ => [thread.0, 1, 1000, 0, 0],
        };
        is_free(&world, Call::ThreadControl, operation, arguments);
    }
}

#[test]
fn a_late_return_needs_no_memory() {
    let world = foreign::world();
    let ward = foreign::ward(&world, TaskId::NIL, 5, world.root);
    foreign::call(&world);
    world.settle();
    assert_eq!(world.current(), world.root);
    foreign::wait(&world);
    is_free(&world, Call::ThreadControl, thread_op::FOREIGN_RETURN, [ward.uid().0, STATE, 0, 0, 0]);
    assert!(ward.is_ready());
}

#[test]
fn other_operations_on_tasks_need_no_memory() {
    let paid_for = [task_op::CREATE, task_op::EXHAUST];
    for operation in (0..task_op::COUNT).filter(|operation| !paid_for.contains(operation)) {
        let world = World::new(512);
        let thread = receiver(&world, Fpage::WHOLE);
        assert_eq!(send_item(&world, thread, memory(1 << 30, 14, Rights::RWX), Fpage::WHOLE), Said::Done);
        let task = match operation {
            task_op::SET_DOMAIN => world.new_task(20),
            _ => thread.task().id.get(),
        };
        is_free(&world, Call::TaskControl, operation, [task.0, 20, 0, 0, 0]);
    }
}

#[test]
fn programs_order_denials_where_that_is_allowed() {
    let world = World::new(512);
    let task = world.new_task(10);
    let order = |task: TaskId, first, count| world.task_control(task_op::EXHAUST, [task.0, first, count, 0]);
    let create = || world.thread_control(thread_op::CREATE, [task.0, 1, 0, 0]);
    assert_eq!(order(task, 1, 1), Err(Error::Denied as u64));
    world.k.may_exhaust.set(true);
    let left = |order: Result<[u64; 6], u64>| order.map(|[first, count, ..]| [first, count]);
    assert_eq!(left(order(task, 2, 2)), Ok([0, 0]));
    assert_eq!([(); 4].map(|()| create().is_ok()), [true, false, false, true]);
    assert_eq!(left(order(task, 1, 5)), Ok([0, 0]));
    // Others are not counted.
    world.thread_control(thread_op::CREATE, [0, 1, 0, 0]).expect("memory");
    assert_eq!(create(), Err(Error::NoMemory as u64));
    assert_eq!(left(order(task, 0, 0)), Ok([1, 4]));
    assert!(create().is_ok());
    world.check();
}

#[test]
fn other_calls_need_no_memory() {
    let world = World::new(1024);
    let thread = receiver(&world, Fpage::WHOLE);
    let items = [
        (memory(1 << 30, 18, Rights::RWX), Fpage::WHOLE),
        (Fpage::ports(0x3f8, 3), Fpage::ports(0, 16)),
        (Fpage::interrupt(3), Fpage::interrupts()),
    ];
    for (item, window) in items {
        // From now on the receiver takes items into this window.
        world.ipc(thread.uid(), Uid::NIL, ALWAYS, Fpage::NIL, 0, [0; 8]);
        wait_with(&world, window);
        assert_eq!(send_item(&world, thread, item, window), Said::Done);
        for own in [0, FLUSH_SELF] {
            is_free(&world, Call::Flush, 0, [item.0, own, 0, 0, 0]);
        }
    }
    is_free(&world, Call::Clock, 0, [0; 5]);
    is_free(&world, Call::ThreadSwitch, 0, [0; 5]);
    let free_ipc = |dest: Uid, from: Uid, timeouts: (Timeout, Timeout)| {
        let (_, denied) = with_denials(&world, 1, u64::MAX, || {
            world.ipc(dest, from, timeouts, Fpage::NIL, 0, [0; 8]);
            Said::Done
        });
        assert!(!denied, "ipc without an item needs memory");
    };
    // A line is attached, a timeout filed and ended, a message sent, a caller queued.
    free_ipc(Uid::NIL, Uid::interrupt(3), (Timeout::NEVER, Timeout::ZERO));
    assert_eq!(world.root.line.get(), 4);
    free_ipc(Uid::NIL, Uid::ANY, (Timeout::NEVER, Timeout::from_us(50)));
    assert!(world.is_idle());
    world.advance(1_000_000);
    world.settle();
    assert_eq!((world.current(), world.result().0), (world.root, Error::ReceiveTimeout as u64));
    free_ipc(thread.uid(), Uid::NIL, ALWAYS);
    assert_eq!(world.current(), thread);
    free_ipc(world.root.uid(), world.root.uid(), ALWAYS);
    assert_eq!(world.current(), world.root);
}
