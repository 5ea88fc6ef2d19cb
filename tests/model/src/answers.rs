//! What may be done to a thread that cannot help itself: one that waits for the answer to an exception or a fault, and one whose
//! system calls are denied.

use crate::random::{Random, amount, first_seed};
use crate::world::World;
use abi::call::{
    DOOR_CALL, DOOR_ITEM_CALL, DOOR_LONG_CALL, DOOR_RETURN, IPC_CALL, IPC_LONG_CALL, IPC_LONG_REPLY_WAIT,
    IPC_REPLY_WAIT, IPC_TAKING_CALL, REFUSE, RESUME, RESUME_AS_IS, door_op, thread_op, timeouts, vector,
};
use abi::{Call, Error, Fpage, Kind, Rights, TaskId, Timeout, Uid};
use kernel::object::ThreadRef;
use kernel::object::thread::{Frame, State, WORDS, special};

/// First address that no user has.
const USER_END: u64 = 0x7fff_ffff_f000;

/// Flags that somebody else may give a thread: carry, parity, adjust, zero, sign, trap, direction, overflow, resume, alignment
/// check, identification. Interrupts and privilege are not among them.
const FLAGS_GIVEN: [u32; 11] = [0, 2, 4, 6, 7, 8, 10, 11, 16, 18, 21];

/// Those that every thread has.
const FLAGS_ALWAYS: u64 = 1 << 9 | 1 << 1;

/// What becomes of flags that somebody else gives.
pub fn flags(given: u64) -> u64 {
    FLAGS_GIVEN.iter().map(|bit| 1 << bit).sum::<u64>() & given | FLAGS_ALWAYS
}

/// The first thread, which is pager and handler, and one that it cares for, which runs whenever it can.
fn two() -> (World, ThreadRef) {
    let world = World::new(256);
    world.thread_control(thread_op::SET_PRIORITY, [0, 0, 0, 0]).expect("a priority");
    let ward = world.new_thread(TaskId::NIL, 5);
    assert_eq!(world.current(), ward);
    (world, ward)
}

/// What the first thread gets, if anything was sent to it: kind and words.
fn received(world: &World) -> Option<(Kind, [u64; 8])> {
    assert_eq!(world.current(), world.root);
    world.ipc(Uid::NIL, Uid::ANY, (Timeout::ZERO, Timeout::ZERO), Fpage::NIL, 0, [0; 8]);
    let frame = &world.root.frame;
    let words = std::array::from_fn(|i| frame.w[i].get());
    Kind::from_eax(frame.rax.get() as u32).map(|kind| (kind, words))
}

/// The current thread answers.
fn answer(world: &World, to: Uid, label: u32, given: [u64; 4]) {
    let mut w = [0; WORDS];
    w[2..6].copy_from_slice(&given);
    w[Frame::R15] = timeouts(Timeout::ZERO, Timeout::ZERO);
    world.system_call(Call::Ipc as u64 | (label as u64) << 32, to.0, w);
}

fn address(random: &mut Random) -> u64 {
    match random.below(3) {
        0 => random.pick(&[0, USER_END - 1, USER_END, 1 << 47, (1 << 47) - 1, 1 << 63, !0 << 47, u64::MAX]),
        1 => random.next() >> random.below(64),
        _ => random.next() % USER_END,
    }
}

#[test]
fn a_handler_gives_what_a_user_may_have() {
    let (world, ward) = two();
    let mut random = Random::new(first_seed());
    let mut went_on = 0;
    for round in 0..amount(2000) {
        let before = [ward.user_ip(), ward.user_sp(), 7];
        ward.frame.rax.set(7);
        world.exception(6);
        let (kind, words) = received(&world).expect("an exception is a message");
        assert_eq!((kind, words[0], [words[2], words[3], words[5]]), (Kind::Exception, 6, before));
        let [ip, sp] = [address(&mut random), address(&mut random)];
        let (given_flags, rax) = (random.next(), random.next());
        let label = random.pick(&[RESUME, RESUME, RESUME, RESUME_AS_IS, 0, 2, u32::MAX]);
        answer(&world, ward.uid(), label, [ip, sp, given_flags, rax]);
        let frame = &ward.frame;
        let found = [frame.rip.get(), frame.rsp.get(), frame.rax.get()];
        let is_user = ip < USER_END && sp < 1 << 47;
        let expected = match label {
            RESUME if is_user => Some([ip, sp, rax]),
            RESUME_AS_IS => Some(before),
            _ => None,
        };
        match expected {
            Some(expected) => {
                assert_eq!((found, world.current()), (expected, ward), "round {round}");
                if label == RESUME {
                    assert_eq!(frame.rflags.get(), flags(given_flags), "round {round}");
                }
                went_on += 1;
            }
            None => {
                assert!(ward.is_stopped() && world.current() == world.root, "{ip:x} {sp:x}");
                let start = [ward.uid().0, 0x1000, 0x8000, 0];
                world.thread_control(thread_op::START, start).expect("it is stopped");
            }
        }
        world.check();
    }
    assert!(went_on > 200, "it went on {went_on} times");
}

#[test]
fn a_pager_is_asked_for_the_user_half_alone() {
    let (world, ward) = two();
    let mut random = Random::new(first_seed());
    for _ in 0..amount(2000) {
        let address = address(&mut random);
        world.page_fault(address, Rights::R);
        let (kind, words) = received(&world).expect("a fault is a message");
        if address < USER_END {
            assert_eq!((kind, words[0]), (Kind::Fault, address & !7 | Rights::R.0 as u64));
            answer(&world, ward.uid(), 0, [0; 4]);
        } else {
            assert_eq!((kind, words[0]), (Kind::Exception, vector::UNRESOLVED_FAULT), "{address:x}");
            answer(&world, ward.uid(), RESUME_AS_IS, [0; 4]);
        }
        assert_eq!(world.current(), ward);
        world.check();
    }
}

#[test]
fn nobody_else_answers_a_fault_or_an_exception() {
    let (world, ward) = two();
    let other = {
        let me = world.root.uid().0;
        // The ward makes it, so that it is of the same task.
        let uid = world.thread_control(thread_op::CREATE, [0, 1, me, me]).expect("there is memory")[0];
        world.k.thread(Uid(uid)).expect("just made")
    };
    for (faults, label) in
        [(true, 0), (true, REFUSE), (false, RESUME), (false, RESUME_AS_IS)].into_iter().cycle().take(16)
    {
        if faults {
            world.page_fault(0x5000, Rights::R);
        } else {
            world.exception(6);
        }
        // Before the message is taken, and after it.
        for taken in [false, true] {
            if taken {
                received(&world).expect("a message");
            }
            let state = ward.state.get();
            world.acting(other, || {
                let frame = &other.frame;
                frame.rax.set(Call::Ipc as u64 | (label as u64) << 32);
                frame.rdx.set(ward.uid().0);
                frame.w.iter().for_each(|word| word.set(0));
                let _ = kernel::syscall::system_call(&world.k, other, kernel::sched::Next::To);
                assert_eq!(frame.rax.get(), Error::SendTimeout as u64);
            });
            assert_eq!((ward.state.get(), world.current()), (state, world.root));
            assert!([State::Sending, State::Faulting].contains(&state));
        }
        answer(&world, ward.uid(), if faults { 0 } else { RESUME_AS_IS }, [0; 4]);
        assert_eq!(world.current(), ward);
        world.check();
    }
}

#[test]
fn a_thread_whose_calls_are_denied_makes_none() {
    let controls = (0..thread_op::COUNT).map(|op| Call::ThreadControl as u32 | op << 8);
    let tasks = (0..7).map(|op| Call::TaskControl as u32 | op << 8);
    let others = [Call::Ipc, Call::Flush, Call::ThreadSwitch, Call::Clock, Call::DoorControl];
    let short = [
        IPC_CALL,
        IPC_REPLY_WAIT,
        IPC_TAKING_CALL,
        IPC_LONG_CALL,
        IPC_LONG_REPLY_WAIT,
        DOOR_CALL,
        DOOR_RETURN,
        DOOR_LONG_CALL,
        DOOR_ITEM_CALL,
        Call::DoorControl as u32 | door_op::SERVE << 8,
    ];
    let all = controls.chain(tasks).chain(others.map(|call| call as u32)).chain(short);
    let world = World::new(512);
    let door = [0, 0x1000, 0, 0];
    world.call(Call::DoorControl, door_op::CREATE, door).expect("there is memory");
    for eax in all {
        // Nobody handles its exceptions.
        let uid = world.thread_control(thread_op::CREATE, [0, 1, 0, 0]).expect("there is memory")[0];
        world.thread_control(thread_op::DENY_NATIVE, [uid, 1, 0, 0]).expect("it exists");
        let denied = world.k.thread(Uid(uid)).expect("just made");
        let frame = &denied.frame;
        frame.rax.set(eax as u64);
        frame.rdx.set(0);
        frame.w.iter().for_each(|word| word.set(0));
        let _ = world.acting(denied, || crate::world::system_call(&world.k, denied));
        assert!(denied.special.get() & special::STOPPED != 0, "{eax:x} was no exception");
        assert_eq!((denied.fault.exception.get(), frame.error.get()), (vector::SYSCALL, eax as u64));
        world.thread_control(thread_op::DESTROY, [uid, 0, 0, 0]).expect("it exists");
        world.check();
    }
}
