//! Patience: nobody is held in a transfer, or in the mapping of an item, by a partner that does not go on.

use crate::world::World;
use abi::call::{IPC_LONG_CALL, PATIENCE_US, thread_op};
use abi::op;
use abi::{Dope, Error, Fpage, Rights, TaskId, Timeout, Uid};
use kernel::object::ThreadRef;
use kernel::object::thread::{State, WORDS, special};

/// Where blocks lie.
const PLACE: u64 = 0x4000_0000;

/// Half as long as it is for who says nothing.
const HALF: Timeout = Timeout::from_us(PATIENCE_US / 2);

/// A less urgent thread of a task, with room for a block, and that patience.
fn receiver(world: &World, task: TaskId, patience: Timeout) -> ThreadRef {
    let thread = world.new_thread(task, 1);
    world.acting(thread, || {
        let patience = patience.0.into();
        world
            .thread_control(thread_op::SET_BLOCK, [0, PLACE, Dope::room(64, 0, 0).0, patience])
            .expect("room");
    });
    assert_eq!(thread.state.get(), State::Ready);
    thread
}

/// The receiver is in the middle of a message, and gives up when so many microseconds are over.
fn gives_up(world: &World, receiver: ThreadRef, patience_us: u64) {
    assert_eq!(receiver.state.get(), State::Taking);
    world.advance(patience_us * 1000 - 2_000_000);
    world.check();
    assert_eq!(receiver.state.get(), State::Taking, "its patience is not over");
    world.advance(4_000_000);
    world.check();
    assert_eq!(receiver.state.get(), State::Ready, "its patience is over");
    assert_eq!(receiver.frame.rax.get(), Error::ReceiveTimeout as u64);
}

#[test]
fn a_stopped_sender_of_an_item_holds_its_receiver_no_longer_than_its_patience() {
    let world = World::new(2048);
    let receiver = receiver(&world, world.new_task(500), HALF);
    // The first thread is the less urgent one from here on.
    world.thread_control(thread_op::SET_PRIORITY, [world.root.uid().0, 0, 0, 0]).ok();
    world.leave(kernel::sched::Next::Same);
    assert_eq!(world.current(), receiver);
    let window = Fpage::memory(1 << 40, 30, Rights::RWX);
    world.ipc(Uid::NIL, Uid::ANY, (Timeout::NEVER, Timeout::NEVER), window, op::TAKES_BLOCK, [0; 8]);
    let sender = world.current();
    world.begin_long_map(receiver.uid());
    sender.set_special(special::STOPPED, 0);
    gives_up(&world, receiver, PATIENCE_US / 2);
    assert_eq!(sender.frame.rax.get(), Error::SendTimeout as u64);
}

#[test]
fn a_stopped_sender_in_the_queue_holds_its_receiver_no_longer_than_its_patience() {
    is_stopped_in_the_queue(HALF, PATIENCE_US / 2);
}

/// Who does not wait for the other side's pager is held by what else can take long no longer than who says nothing.
#[test]
fn a_stopped_sender_holds_a_receiver_without_patience_no_longer_than_others() {
    is_stopped_in_the_queue(Timeout::ZERO, PATIENCE_US);
}

fn is_stopped_in_the_queue(patience: Timeout, patience_us: u64) {
    let world = World::new(2048);
    let receiver = receiver(&world, TaskId::NIL, patience);
    let sender = world.current();
    let mut words = [0; WORDS];
    (words[0], words[1]) = (Dope::used(8, 0, 0).0, PLACE);
    world.system_call(IPC_LONG_CALL.into(), receiver.uid().0, words);
    assert_eq!((sender.state.get(), world.current()), (State::Sending, receiver));
    sender.set_special(special::STOPPED, 0);
    world.ipc(Uid::NIL, Uid::ANY, (Timeout::NEVER, Timeout::NEVER), Fpage::NIL, op::TAKES_BLOCK, [0; 8]);
    world.check();
    gives_up(&world, receiver, patience_us);
    assert_eq!(sender.frame.rax.get(), Error::SendTimeout as u64);
}
