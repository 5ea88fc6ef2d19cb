//! Two threads on one shuttle, and threads that go on though they are stopped: each way there that was found once.
//!
//! None of them takes authority, but for those by a chief. Threads have names here that say what they do: *A* calls *B*, which calls
//! *C*. The invariant that finds all of them is in `kernel/src/check/queues.rs`; [`walk`](crate::walk) finds ways there that nobody knows
//! yet.

use crate::world::World;
use abi::call::{DOOR_CALL, DOOR_ITEM_RETURN, DOOR_LONG_CALL, RESUME, door_op, task_op, thread_op};
use abi::op;
use abi::{Call, Dope, Fpage, Rights, TaskId, Timeout, Uid};
use kernel::mem::plan::Plan;
use kernel::object::ThreadRef;
use kernel::object::thread::{Frame, State, WORDS, Wait};
use kernel::param::INHERIT_CHAIN;
use kernel::sched::Next;

const NEVER: (Timeout, Timeout) = (Timeout::NEVER, Timeout::NEVER);

/// Send as long as it takes, and do not wait for an answer that is not there.
const AT_ONCE: (Timeout, Timeout) = (Timeout::NEVER, Timeout::ZERO);

/// Where blocks and items lie.
const PLACE: u64 = 0x4000_0000;

/// A world whose first thread is the least urgent and never waits.
fn world() -> World {
    let world = World::new(1024);
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    world
}

/// A thread of a task (nil: the first) that waits for anybody; `pager` resolves its faults and handles its exceptions. Made by
/// the current thread.
fn waiter(world: &World, task: TaskId, priority: u64, pager: ThreadRef) -> ThreadRef {
    let pager = pager.uid().0;
    let uid = world
        .thread_control(thread_op::CREATE, [task.0, priority, pager, pager])
        .expect("there is memory")[0];
    world.thread_control(thread_op::START, [uid, 0x1000, 0x8000, 0]).expect("it starts");
    let thread = world.k.thread(Uid(uid)).expect("just made");
    if world.current() != thread {
        world.call(Call::ThreadSwitch, 0, [uid, 0, 0, 0]).ok();
    }
    assert_eq!(world.current(), thread);
    world.wait();
    thread
}

/// `N` of the first task, of one priority.
fn waiters<const N: usize>(world: &World) -> [ThreadRef; N] {
    [(); N].map(|()| waiter(world, TaskId::NIL, 30, world.root))
}

/// The thread goes on: whoever runs lets it, or the first thread ends its wait.
fn run(world: &World, thread: ThreadRef) {
    if thread.wait() != Wait::No {
        // Whoever is on its shuttle may lose the processor by this.
        assert!(
            kernel::ipc::end::abort(&world.k, thread),
            "{thread:?} waits for nothing that can be aborted"
        );
        world.leave(Next::Same);
    }
    if world.current() != thread {
        world.call(Call::ThreadSwitch, 0, [thread.uid().0, 0, 0, 0]).ok();
    }
    assert_eq!(world.current(), thread);
    world.check();
}

/// What the current thread says to a thread, and then waits for this thread alone.
fn call(world: &World, to: ThreadRef, timeouts: (Timeout, Timeout)) {
    world.ipc(to.uid(), to.uid(), timeouts, Fpage::NIL, op::TAKES_BLOCK, [0; 8]);
    world.check();
}

/// What the current thread answers; it then goes on.
fn answer(world: &World, to: ThreadRef) {
    world.ipc(to.uid(), Uid::NIL, AT_ONCE, Fpage::NIL, 0, [0; 8]);
    world.check();
}

/// Answers as somebody else.
fn answer_shown(world: &World, to: ThreadRef, shown: ThreadRef) {
    let words = [0, 0, 0, 0, 0, shown.uid().0, 0, 0];
    world.ipc(to.uid(), Uid::NIL, AT_ONCE, Fpage::NIL, op::SHOWN, words);
    world.check();
}

/// Stops and resumes by whoever runs.
fn control(world: &World, operation: u32, thread: ThreadRef) {
    world.thread_control(operation, [thread.uid().0, 0, 0, 0]).expect("it may");
    world.check();
}

/// The current thread goes on until nobody can be on a shuttle with anybody unnoticed: interrupts come, slices end.
fn let_time_pass(world: &World) {
    for _ in 0..8 {
        world.advance(20_000_000);
        world.settle();
        world.check();
    }
}

#[test]
fn a_stopped_thread_that_is_called_and_not_waited_for() {
    let world = world();
    let [a, b] = waiters(&world);
    run(&world, a);
    for _ in 0..3 {
        control(&world, thread_op::STOP, b);
        call(&world, b, AT_ONCE);
        control(&world, thread_op::RESUME, b);
        let_time_pass(&world);
        while b.wait() != Wait::Open {
            run(&world, b);
            world.wait();
        }
        run(&world, a);
    }
}

#[test]
fn a_handler_that_answers_by_a_call_it_does_not_wait_for() {
    for label in [0, RESUME] {
        let world = world();
        let [x, handler] = waiters(&world);
        let b = waiter(&world, TaskId::NIL, 30, handler);
        run(&world, b);
        world.exception(6);
        assert_eq!((world.current(), b.wait()), (handler, Wait::Answer(handler.uid())));
        // It takes another call, and so is on another shuttle than that of the one whose exception it is about to answer.
        control(&world, thread_op::STOP, b);
        run(&world, x);
        world.ipc_call(handler.uid());
        run(&world, handler);
        world.wait();
        assert_eq!(world.current(), handler);
        let frame = &world.current().frame;
        let mut words = [0; WORDS];
        words[Frame::RBX] = b.uid().0;
        words[Frame::R15] = abi::call::timeouts(Timeout::NEVER, Timeout::ZERO);
        words[2] = frame.w[2].get();
        world.system_call(u64::from(Call::Ipc as u32) | u64::from(label) << 32, b.uid().0, words);
        world.check();
        control(&world, thread_op::RESUME, b);
        let_time_pass(&world);
    }
}

#[test]
fn a_detour_that_is_cut_off_twice() {
    let world = world();
    let [a, b, c, d] = waiters(&world);
    run(&world, a);
    call(&world, b, NEVER);
    let soon = |us| (Timeout::NEVER, Timeout::from_us(us));
    call(&world, c, soon(2_000));
    call(&world, d, soon(1_000));
    assert_eq!(world.current(), d);
    // First C's call ends, then B's.
    world.advance(1_500_000);
    world.settle();
    world.check();
    world.advance(1_500_000);
    world.settle();
    world.check();
    run(&world, b);
    world.wait();
    run(&world, c);
    call(&world, b, NEVER);
    assert_eq!(world.current(), b);
    answer(&world, a);
    run(&world, b);
    answer(&world, c);
    let_time_pass(&world);
}

#[test]
fn a_shuttle_that_was_lent_anew_stays_with_whom_it_was_lent_to() {
    let world = world();
    let [a, b, c] = waiters(&world);
    run(&world, a);
    call(&world, b, NEVER);
    call(&world, c, NEVER);
    assert_eq!((world.current(), c.hot.shuttle.get()), (c, a.home_ref()));
    // A's call ends. It calls C by itself, before that has answered B.
    run(&world, a);
    run(&world, c);
    world.wait();
    run(&world, a);
    call(&world, c, NEVER);
    assert_eq!((world.current(), c.hot.shuttle.get()), (c, a.home_ref()));
    answer(&world, b);
    assert_eq!((c.hot.shuttle.get(), b.hot.shuttle.get()), (a.home_ref(), b.home_ref()));
    let_time_pass(&world);
}

/// A message with a block from the current thread, which does not wait for it.
fn send_block(world: &World, to: Uid) {
    let words = [Dope::used(8, 0, 0).0, PLACE, 0, 0, 0, 0, 0, 0];
    world.ipc(to, Uid::NIL, NEVER, Fpage::NIL, op::BLOCK, words);
    world.check();
}

/// The current thread registers a block.
fn set_block(world: &World) {
    let room = Dope::room(8, 0, 0).0;
    world.thread_control(thread_op::SET_BLOCK, [0, PLACE, room, u64::from(u32::MAX)]).expect("a block");
}

/// A page of the current thread's, at [`PLACE`].
fn give_page(world: &World, to: ThreadRef) {
    let item = Fpage::memory(PLACE, 12, Rights::RWX).0;
    let words = [0, 0, 0, 0, 0, 0, item, PLACE];
    world.ipc(to.uid(), Uid::NIL, AT_ONCE, Fpage::NIL, op::ITEM, words);
    world.check();
}

#[test]
fn a_caller_who_is_the_pager_of_the_called() {
    let world = world();
    let [a, s] = waiters(&world);
    let b = waiter(&world, world.new_task(100), 30, a);
    run(&world, b);
    set_block(&world);
    world.wait();
    run(&world, a);
    call(&world, b, NEVER);
    assert_eq!(world.current(), b);
    call(&world, s, NEVER);
    assert_eq!(world.current(), s);
    send_block(&world, b.uid());
    assert_eq!(world.current(), a, "it has the fault of B, for which it waits");
    give_page(&world, b);
    let_time_pass(&world);
}

/// A chief with two threads, *C* in a task of its clan, and a thread of the first task, out of that clan. The chief's threads
/// wait.
struct Clan {
    world: World,
    chiefs: [ThreadRef; 2],
    c: ThreadRef,
    far: ThreadRef,
}

fn clan() -> Clan {
    let world = world();
    let task = world.new_task(200);
    let [first, second] = [30; 2].map(|priority| waiter(&world, task, priority, world.root));
    let far = waiter(&world, TaskId::NIL, 30, world.root);
    run(&world, first);
    let inner = world.new_task(50);
    // The first thread is the pager and handler of nobody here.
    let c = waiter(&world, inner, 30, far);
    assert_eq!(world.current(), first);
    world.wait();
    Clan { world, chiefs: [first, second], c, far }
}

#[test]
fn a_chief_whose_other_thread_answers() {
    let Clan { world, chiefs: [first, second], c, far } = clan();
    run(&world, c);
    call(&world, far, NEVER);
    assert_eq!(world.current(), first, "it has what was for the far one");
    run(&world, second);
    answer_shown(&world, c, far);
    let_time_pass(&world);
}

#[test]
fn a_chief_whose_other_thread_answers_a_fault() {
    let Clan { world, chiefs: [_, second], c, far } = clan();
    run(&world, c);
    world.page_fault(PLACE, Rights::R);
    world.settle();
    assert_eq!((world.current(), c.wait()), (far, Wait::Answer(far.uid())));
    run(&world, second);
    answer_shown(&world, c, far);
    let_time_pass(&world);
}

#[test]
fn a_queued_message_is_found_under_the_name_that_it_shows() {
    let Clan { world, chiefs: [_, second], c, far } = clan();
    run(&world, c);
    run(&world, second);
    answer_shown(&world, c, far);
    assert_eq!(second.state.get(), State::Sending);
    if world.current() != c {
        run(&world, c);
    }
    let receive = |from: ThreadRef| {
        let none = (Timeout::ZERO, Timeout::ZERO);
        world.ipc(Uid::NIL, from.uid(), none, Fpage::NIL, op::TAKES_BLOCK, [0; 8]);
        world.check();
        (c.frame.rax.get() as u32 & 0xff, c.frame.rdx.get())
    };
    let nothing = (abi::Error::ReceiveTimeout as u32, 0);
    assert_eq!(receive(second), nothing, "it says that it is the far one's");
    let (_, sender) = receive(far);
    assert_eq!(sender, far.uid().0);
    let_time_pass(&world);
}

/// A reply and wait in the form for which the kernel remembers the way.
fn reply_shown(world: &World, to: ThreadRef, shown: ThreadRef) {
    let mut words = [0; WORDS];
    (words[5], words[Frame::RBX]) = (shown.uid().0, Uid::ANY.0);
    words[Frame::R15] = abi::call::timeouts(Timeout::ZERO, Timeout::NEVER);
    world.system_call((Call::Ipc as u32 | op::SHOWN | op::TAKES_BLOCK).into(), to.uid().0, words);
    world.check();
}

#[test]
fn a_chief_whose_other_thread_answers_on_the_shuttle_that_was_lent_twice() {
    let Clan { world, chiefs: [first, second], c, far } = clan();
    world.k.notes_routes.set(true);
    for _ in 0..3 {
        run(&world, c);
        call(&world, far, NEVER);
        assert_eq!(world.current(), first);
        call(&world, second, NEVER);
        assert_eq!(world.current(), second);
        reply_shown(&world, c, far);
        assert!(c.is_ready());
        run(&world, second);
        answer(&world, first);
        let_time_pass(&world);
        run(&world, second);
        world.wait();
        run(&world, first);
        world.wait();
    }
}

#[test]
fn a_caller_by_way_of_a_chief_who_is_the_pager_of_whom_it_calls() {
    for exception in [false, true] {
        let Clan { world, chiefs: [first, _], c, far } = clan();
        // Nobody may choose a pager beyond the border; lending relies on no such rule.
        far.fault.pager.set(c.uid());
        far.fault.handler.set(c.uid());
        run(&world, c);
        call(&world, far, NEVER);
        assert_eq!(world.current(), first);
        run(&world, far);
        if exception {
            world.exception(6);
        } else {
            world.page_fault(PLACE, Rights::R);
        }
        world.settle();
        world.check();
        assert_eq!((world.current(), c.wait()), (c, Wait::No), "it has the fault of the one whom it called");
        answer(&world, far);
        let_time_pass(&world);
    }
}

#[test]
fn a_waiter_whose_own_shuttle_is_in_other_hands() {
    let world = world();
    let [a, b, c, d] = waiters(&world);
    run(&world, a);
    call(&world, b, NEVER);
    call(&world, c, NEVER);
    call(&world, d, NEVER);
    // C's call ends, and C is on A's shuttle; B's ends, and B is on its own.
    run(&world, c);
    run(&world, b);
    assert_eq!(a.wait(), Wait::Closed(b.uid()));
    call(&world, a, NEVER);
    assert_eq!(world.current(), a);
    answer(&world, b);
    let_time_pass(&world);
}

/// A server of the first task's door 0, which is idle.
fn server(world: &World, window: Fpage) -> ThreadRef {
    let server = waiter(world, TaskId::NIL, 30, world.root);
    run(world, server);
    world.thread_control(thread_op::SET_WINDOW, [0, window.0, 0, 0]).expect("a window");
    set_block(world);
    if kernel::mem::doors::shown(&world.k, world.sigma0, 0).is_none() {
        world.call(Call::DoorControl, door_op::CREATE, [0, 0x2000, 7, 0]).expect("a door");
    }
    world.call(Call::DoorControl, door_op::SERVE, [0; 4]).ok();
    assert_eq!(server.wait(), Wait::Idle);
    world.check();
    server
}

/// A thread of a task of its own that knows the first task's door by the number 1, and has a window for pages.
fn client(world: &World, pager: ThreadRef) -> ThreadRef {
    let client = waiter(world, world.new_task(40), 30, pager);
    let plan = Plan::fit(Fpage::doors(0, 0, Rights::RW), 0, Fpage::doors(1, 0, Rights::RW));
    let mut progress = kernel::mem::space::Progress::START;
    let task = client.task();
    let plan = plan.expect("it fits");
    while kernel::mem::space::map(&world.k, plan, world.sigma0, task, &mut progress, &mut 100).is_err() {}
    run(world, client);
    world
        .thread_control(thread_op::SET_WINDOW, [0, Fpage::memory(1 << 40, 30, Rights::RWX).0, 0, 0])
        .expect("a window");
    set_block(world);
    client
}

#[test]
fn a_server_that_is_on_the_shuttle_of_another_caller() {
    for ended in 0..2 {
        let world = world();
        let s = server(&world, Fpage::NIL);
        let [t, other] = waiters(&world);
        let x = client(&world, world.root);
        let taking = DOOR_CALL & !op::TAKES_ITEM;
        world.system_call(taking.into(), 1, [0; WORDS]);
        assert_eq!((world.current(), x.wait()), (s, Wait::Return(s.uid())));
        // It takes a call by ipc, and is on that caller's shuttle.
        run(&world, t);
        world.ipc_call(s.uid());
        run(&world, s);
        world.wait();
        assert_eq!((world.current(), s.hot.shuttle.get()), (s, t.home_ref()));
        let frame = &s.frame;
        frame.rax.set(DOOR_ITEM_RETURN.into());
        frame.w[6].set(Fpage::memory(1 << 30, 24, Rights::RWX).0);
        frame.w[7].set(0);
        assert!(!world.enter(), "it takes several steps");
        world.check();
        // Its slice ends between two of them.
        assert!(kernel::ipc::end::abort(&world.k, other));
        world.advance(20_000_000);
        assert_eq!(world.current(), other);
        world.check();
        let operation = if ended == 0 { thread_op::ABORT } else { thread_op::DESTROY };
        world.begin_call(Call::ThreadControl, operation, x.uid().0);
        world.check();
        let_time_pass(&world);
    }
}

/// The shuttle on which a caller works is taken from it while it waits. The server returns an identifier, for which no step is needed.
#[test]
fn an_identifier_returns_to_a_caller_that_is_cut_off() {
    let world = world();
    let s = server(&world, Fpage::NIL);
    let [t, _] = waiters(&world);
    let x = client(&world, world.root);
    let window = Fpage::doors(8, 3, Rights::RW);
    world.thread_control(thread_op::SET_WINDOW, [0, window.0, 0, 0]).expect("a window");
    world.wait();
    run(&world, t);
    world.ipc(x.uid(), x.uid(), (Timeout::NEVER, Timeout::from_us(1000)), Fpage::NIL, 0, [1; 8]);
    assert_eq!(world.current(), x);
    world.system_call((DOOR_CALL & !op::TAKES_ITEM).into(), 1, [0; WORDS]);
    assert_eq!((world.current(), x.wait()), (s, Wait::Return(s.uid())));
    world.advance(2_000_000);
    world.settle();
    world.k.settle_all();
    assert!(x.sender_link.is_linked(), "it is not cut off");
    run(&world, s);
    let mut words = [0; WORDS];
    words[6] = Fpage::doors(0, 0, Rights::R).0;
    world.system_call(DOOR_ITEM_RETURN.into(), 0, words);
    world.check();
    assert!(x.is_ready() && !x.sender_link.is_linked());
    assert_eq!(x.frame.w[6].get(), Fpage::doors(8, 0, Rights::R).0);
}

/// A server leaves a call unanswered, whose caller is cut off, and works for the owner of that shuttle once more, by another chain, within which
/// it takes the shuttle back. The answer to the first call brings the first caller nothing of that chain.
#[test]
fn an_answer_to_a_caller_that_is_cut_off_brings_no_other_chain() {
    let world = world();
    let [owner, first, second, server, last] = waiters(&world);
    let briefly = (Timeout::NEVER, Timeout::from_us(1000));
    run(&world, owner);
    call(&world, first, briefly);
    call(&world, server, NEVER);
    world.wait();
    world.advance(2_000_000);
    world.settle();
    run(&world, owner);
    call(&world, second, NEVER);
    call(&world, server, NEVER);
    assert_eq!((world.current(), server.hot.shuttle.get()), (server, owner.home_ref()));
    call(&world, last, briefly);
    world.wait();
    world.advance(2_000_000);
    world.settle();
    run(&world, server);
    assert_eq!(server.hot.shuttle.get(), owner.home_ref(), "it has not taken the shuttle back");
    answer(&world, first);
    assert_eq!(first.hot.shuttle.get(), first.home_ref());
    assert_eq!(server.hot.shuttle.get(), owner.home_ref());
    run(&world, server);
    answer(&world, second);
    assert_eq!(second.hot.shuttle.get(), owner.home_ref());
    let_time_pass(&world);
}

/// A chain is cut at its end, and grows shorter again by answers. The eighth caller has the shuttle with the answer; a ninth is not looked for, and goes on with
/// its own, as do all who answer after it.
#[test]
fn a_chain_is_followed_to_its_eighth_caller() {
    for len in [INHERIT_CHAIN, INHERIT_CHAIN + 1] {
        let world = world();
        let all: [ThreadRef; INHERIT_CHAIN + 4] = waiters(&world);
        let (owner, caller, server) = (all[0], all[len], all[len + 1]);
        run(&world, owner);
        for called in &all[1..=len + 1] {
            call(&world, *called, NEVER);
        }
        call(&world, all[len + 2], (Timeout::NEVER, Timeout::from_us(1000)));
        world.wait();
        world.advance(2_000_000);
        world.settle();
        run(&world, server);
        assert_eq!(server.hot.shuttle.get(), owner.home_ref(), "it has not taken the shuttle back");
        answer(&world, caller);
        let has_it = caller.hot.shuttle.get() == owner.home_ref();
        assert_eq!((has_it, caller.is_ready()), (len == INHERIT_CHAIN, true), "{len} callers");
        for (called, caller) in all[1..=len].iter().zip(&all).rev() {
            run(&world, *called);
            answer(&world, *caller);
            assert!(caller.is_ready());
        }
        assert_eq!(owner.hot.shuttle.get(), owner.home_ref());
        let_time_pass(&world);
    }
}

#[test]
fn a_stopped_server_does_not_enter_a_door() {
    let world = world();
    let s = server(&world, Fpage::NIL);
    let pager = waiter(&world, TaskId::NIL, 30, world.root);
    let x = client(&world, pager);
    let mut words = [0; WORDS];
    (words[0], words[1]) = (Dope::used(8, 0, 0).0, PLACE);
    world.system_call(DOOR_LONG_CALL.into(), 1, words);
    world.check();
    assert_eq!((world.current(), s.state.get()), (pager, State::Taking), "the caller has not the page");
    control(&world, thread_op::STOP, s);
    give_page(&world, x);
    let_time_pass(&world);
    assert!(s.is_stopped() && s.hot.accept.get() == kernel::object::thread::NEVER);
    control(&world, thread_op::RESUME, s);
    let_time_pass(&world);
}

#[test]
fn a_stopped_server_is_given_no_call() {
    let world = world();
    let s = server(&world, Fpage::NIL);
    let pager = waiter(&world, TaskId::NIL, 30, world.root);
    let x = client(&world, pager);
    world.wait();
    let y = client(&world, pager);
    run(&world, x);
    let mut words = [0; WORDS];
    (words[0], words[1]) = (Dope::used(8, 0, 0).0, PLACE);
    world.system_call(DOOR_LONG_CALL.into(), 1, words);
    assert_eq!(s.state.get(), State::Taking);
    run(&world, y);
    world.system_call(DOOR_CALL.into(), 1, [0; WORDS]);
    assert_eq!(y.state.get(), State::Queueing);
    world.check();
    world.thread_control(thread_op::STOP, [s.uid().0, 0, 0, 0]).expect("it may");
    // The call that the server was to get comes to nothing.
    assert!(kernel::ipc::end::abort(&world.k, x));
    world.leave(Next::Same);
    world.check();
    assert_eq!(y.state.get(), State::Queueing, "it waits for a server that is not stopped");
    // Another one takes it.
    let other = server_of_queue(&world);
    world.check();
    assert_eq!(y.wait(), Wait::Return(other.uid()));
}

/// One more server of the first task, which finds a caller that waits.
fn server_of_queue(world: &World) -> ThreadRef {
    let server = waiter(world, TaskId::NIL, 30, world.root);
    run(world, server);
    world.call(Call::DoorControl, door_op::SERVE, [0; 4]).ok();
    server
}

#[test]
fn a_task_that_is_being_ended_gains_nothing() {
    let world = world();
    let chief = world.new_task(300);
    let maker = waiter(&world, chief, 30, world.root);
    run(&world, maker);
    // Something that takes several steps to end.
    let inner = world.new_task(100);
    for _ in 0..4 {
        waiter(&world, inner, 30, world.root);
        run(&world, maker);
    }
    let other = world.new_task(20);
    world.wait();
    assert_eq!(world.current(), world.root);
    world.begin_call(Call::TaskControl, task_op::DESTROY, chief.0);
    assert!(world.is_busy());
    let before = world.task(chief).used.get();
    world.acting(maker, || {
        let made = world.task_control(task_op::CREATE, [10, 30, 0, 0]);
        assert!(made.is_err(), "it made a task");
        let given = world.task_control(task_op::SET_QUOTA, [other.0, 40, 0, 0]);
        assert!(given.is_err(), "it gave a task more");
    });
    assert!(world.task(chief).used.get() <= before);
    world.settle();
    world.check();
}
