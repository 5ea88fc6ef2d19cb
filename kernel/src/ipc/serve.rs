//! Servers: the threads of a task that wait for calls through its doors, and the callers that wait for one (rows D1–D8, D10).
//!
//! A server that is free looks for something to do: a caller in the queue, then doors that nobody refers to any more. It
//! begins a call at the door's entry, on its own stack and on the caller's shuttle.

use super::{block, item, outcome, request, taking};
use crate::kernel::Kernel;
use crate::mem::doors;
use crate::object::door;
use crate::object::mapping::Node;
use crate::object::thread::{Errand, Frame, Operation, State, Wait, special};
use crate::object::{TaskRef, ThreadRef};
use crate::sched::Next;
use crate::trace;
use abi::op::Carries;
use abi::{Error, Kind, Uid};

/// Makes the current thread a server.
pub fn serve(k: &Kernel, current: ThreadRef) -> Result<Next, Error> {
    if current.server.pool.get().is_some() {
        return Err(Error::BadState);
    }
    let servers = &current.task().state().doors.servers;
    servers.add(current).ok_or(Error::Limit)?;
    k.ends_to_make(servers);
    k.unsettle_server(servers, current);
    current.server.stack.set(current.hot.sp.get());
    current.server.resume.set(current.hot.ip.get());
    k.go_home(current);
    Ok(if become_idle(k, current) { Next::Same } else { Next::Any })
}

/// Lets the current thread, a server, look for something to do.
pub fn continue_serve(k: &Kernel, current: ThreadRef) -> Next {
    current.operation.set(Operation::None);
    k.go_home(current);
    if become_idle(k, current) { Next::Same } else { Next::Any }
}

/// Gives a server that is ready something to do: it begins a call that waits for a server, or tells that a door is unreferenced, or
/// waits. True if it goes on now.
pub(super) fn become_idle(k: &Kernel, server: ThreadRef) -> bool {
    let last = server.server.door.take().filter(|_| server.special.get() & special::LAST_CALL != 0);
    const ENDS: u32 = special::LAST_CALL | special::ALERTED | special::ALERTABLE;
    if server.special.get() & ENDS != 0 {
        server.set_special(0, ENDS);
    }
    if let Some(door) = last.filter(|door| door.is_unreferenced()) {
        note(door);
    }
    find_work(k, server)
}

/// Does so at the end of a step that was long already. If there is something to do, that is a step of its own: all servers may have to be asked whether
/// they serve a door. True if it goes on now.
pub(super) fn become_idle_later(k: &Kernel, server: ThreadRef) -> bool {
    let servers = &server.task().state().doors.servers;
    let is_awaited = servers.callers.first().is_some() || servers.unreferenced.get().is_some();
    if server.is_stopped() || !is_awaited && server.special.get() & special::LAST_CALL == 0 {
        return become_idle(k, server);
    }
    look_again(k, server);
    true
}

/// Lets a server, which is ready and in no list, begin with a caller or door that waits for one, if there is one; otherwise it waits. True
/// if it goes on now.
fn find_work(k: &Kernel, server: ThreadRef) -> bool {
    let servers = &server.task().state().doors.servers;
    if server.is_stopped() {
        // A caller that waits is for another server; this one looks when it is resumed.
        servers.enlist(server);
        return false;
    }
    if let Some(caller) = servers.callers.first() {
        leave_queue(k, caller);
        let door = target(k, caller).filter(|door| door.task() == server.task());
        let carries = caller.frame.op().short_flags().carries();
        let error = if door.is_none() { Some(Error::NoSuch) } else { refused(carries, caller, server, true) };
        let (Some(door), None) = (door, error) else {
            // The identifier has gone while the caller waited, or there is no room for its message.
            match error {
                Some(Error::NoSuch) | None => drop(no_such_door(caller)),
                Some(error) => outcome::set_error(caller, error),
            }
            k.wake(caller);
            look_again(k, server);
            return true;
        };
        server.server.door.set(Some(door));
        match carries {
            Carries::Words => begin_call(k, server, caller, door),
            // The caller does the work; the server waits for that.
            Carries::Block => {
                taking::begin_transfer_from(k, caller, server, Uid::NIL);
                k.wake(caller);
            }
            Carries::Item => taking::begin_map_by_door(k, caller, server),
        }
        return server.is_ready();
    }
    if let Some(door) = servers.unreferenced.get() {
        door.unlink_unreferenced(&servers.unreferenced);
        servers.refold();
        if door.is_unreferenced() && !is_busy(server.task(), door) {
            server.frame.w.iter().for_each(|word| word.set(0));
            server.server.caller.set(door::NOBODY);
            outcome::set_result(server, Kind::Unreferenced as u64, Uid::NIL);
            go_to_entry(server, door);
        } else {
            look_again(k, server);
        }
        return true;
    }
    servers.enlist(server);
    false
}

/// Error of a call or return that cannot be sent to a thread which waits for it. A server takes whatever a call brings.
pub(super) fn refused(
    carries: Carries,
    sender: ThreadRef,
    receiver: ThreadRef,
    is_call: bool,
) -> Option<Error> {
    match carries {
        Carries::Words => None,
        Carries::Block if !block::is_block(sender) => Some(Error::BadArgument),
        Carries::Block => {
            let has_room = receiver.takes_block() || is_call && receiver.block.room.get() != 0;
            (!has_room).then_some(Error::NoWindow)
        }
        Carries::Item => item::plan_by_door(sender, receiver, is_call).err(),
    }
}

/// Lets a server, which found nothing to do after all, look for more, after a look at the interrupts.
fn look_again(k: &Kernel, server: ThreadRef) {
    server.operation.set(Operation::Serve);
    server.frame.mode.set(Frame::SYSRET);
    k.set_busy(server);
}

/// Begins the call of a caller that runs or waits for a server. The server is ready afterwards, and in no queue.
pub(super) fn begin_call(k: &Kernel, server: ThreadRef, caller: ThreadRef, door: &'static Node) {
    outcome::copy_words(caller, server, Kind::DoorCall);
    count(k, caller, server, (Carries::Words, true), 0);
    enter(k, server, caller, door);
}

/// Sends the server of a call, whose words it has, to the door's entry on the caller's shuttle; the caller waits.
pub(super) fn enter(k: &Kernel, server: ThreadRef, caller: ThreadRef, door: &'static Node) {
    go_to_entry(server, door);
    server.server.caller.set(door::hot_address(caller));
    k.lend(caller, server);
    caller.errand.set(Errand::Ipc);
    caller.set_call(server);
    k.begins_service(server);
}

/// Sends a server to a door's entry. It is ready afterwards.
fn go_to_entry(server: ThreadRef, door: &'static Node) {
    let (entry, datum) = door.door_target();
    server.frame.set_partner(datum);
    server.hot.ip.set(entry);
    server.hot.sp.set(server.server.stack.get());
    server.server.door.set(Some(door));
    server.set_ready();
}

/// Lets a caller wait for a server, since none is free, and tells the thread that watches for a shortage.
pub(super) fn queue(k: &Kernel, caller: ThreadRef, task: TaskRef) -> Next {
    caller.errand.set(Errand::Ipc);
    caller.state.set(State::Queueing);
    caller.queueing_at.set(Some(task));
    let change = k.stand(caller, &task.doors.servers.callers);
    k.unsettle_servers(&task.doors.servers, change);
    task.doors.servers.refold();
    if let Some(watcher) = task.doors.servers.watcher.take() {
        report(watcher);
        k.wake(watcher);
        k.begins_to_make(&task.doors.servers, watcher);
    }
    Next::Any
}

/// Takes a caller that waits for a server out of the queue. It is ready afterwards.
fn leave_queue(k: &Kernel, caller: ThreadRef) {
    let task = caller.queueing_at.take().expect("it waits somewhere");
    let change = k.step_out(caller, &task.doors.servers.callers);
    k.unsettle_servers(&task.doors.servers, change);
    task.doors.servers.refold();
    caller.set_ready();
}

/// The door of the identifier in a caller's registers.
fn target(k: &Kernel, caller: ThreadRef) -> Option<&'static Node> {
    let number = caller.frame.partner() as u32;
    doors::find(k, caller.task(), number as u64).map(Node::door)
}

/// Whether the number in the current thread's registers is an identifier.
pub fn exists(k: &Kernel, current: ThreadRef) -> bool {
    target(k, current).is_some()
}

/// Refuses a call whose number is no identifier. As on the fast path, only `rax` changes.
pub(super) fn no_such_door(caller: ThreadRef) -> Next {
    caller.frame.set_partner(caller.frame.partner() as u32 as u64);
    caller.frame.finish(Error::NoSuch as u64);
    caller.frame.mode.set(Frame::SYSRET);
    Next::Same
}

/// Counts a call or return for the statistics of threads that are traced (row D17).
#[inline(always)]
pub(super) fn count(
    k: &Kernel,
    sender: ThreadRef,
    receiver: ThreadRef,
    carries: (Carries, bool),
    bytes: u64,
) {
    if sender.special.get() & special::TRACED != 0 {
        trace::door(k, sender, receiver, carries, bytes);
    }
}

/// Lets a sender whose message does not arrive go on with an error. If it is a server that returns, the call is over, and it is on its own
/// shuttle again.
pub(super) fn stays(k: &Kernel, sender: ThreadRef) {
    if let Some((_, false)) = request::carried(sender) {
        k.leave_shuttle(sender);
    }
}

/// Whether the receiver of a message that takes long is a server that waited for a call.
pub(super) fn was_to_be_called(receiver: ThreadRef) -> bool {
    receiver.receiving.from.get().is_nil()
}

/// Gives up the call that a server was to get, and that has failed: the server waits for its next.
pub(super) fn not_called(k: &Kernel, server: ThreadRef) {
    server.set_ready();
    k.go_home(server);
    if become_idle_later(k, server) {
        k.wake(server);
    }
}

/// Whether somebody serves a call of a door. If so that server will look, when it returns, whether it was the last.
fn is_busy(task: TaskRef, door: &'static Node) -> bool {
    let busy = task.doors.servers.busy_with(door);
    if let Some(server) = busy {
        server.set_special(special::LAST_CALL, 0);
    }
    busy.is_some()
}

/// Notes a door that nobody refers to, for the next server to say so.
fn note(door: &'static Node) {
    let task = door.task();
    let unreferenced = &task.doors.servers.unreferenced;
    if door.link_unreferenced(unreferenced.get()) {
        unreferenced.set(Some(door));
        task.doors.servers.refold();
    }
}

/// Notes a door of which the last identifier but its maker's has gone, and looks for a server to say so.
pub fn unreferenced(k: &Kernel, door: &'static Node) {
    let task = door.task();
    if task.is_dying() {
        return;
    }
    note(door);
    rouse(k, task);
}

/// Brings a server that waits together with a caller or door that waits for one.
fn rouse(k: &Kernel, task: TaskRef) {
    let Some(server) = task.doors.servers.take() else { return };
    server.set_ready();
    // The fast path leaves there the door that the server served last.
    server.server.door.set(None);
    k.go_home(server);
    if find_work(k, server) {
        k.wake(server);
    }
}

/// Tells that a thread which may be a server is stopped no more.
pub fn resumed(k: &Kernel, thread: ThreadRef) {
    if thread.wait() == Wait::Idle {
        rouse(k, thread.task());
    }
}

/// Lets the current thread wait until a caller has to wait for a server of its task.
pub fn shortage(k: &Kernel, current: ThreadRef) -> Result<Next, Error> {
    let servers = &current.task().state().doors.servers;
    if servers.watcher.get().is_some() {
        return Err(Error::BadState);
    }
    if servers.maker.get() == Some(current) {
        k.ends_to_make(servers);
    }
    if servers.callers.is_empty() {
        current.state.set(State::Watching);
        servers.watcher.set(Some(current));
        return Ok(Next::Any);
    }
    report(current);
    k.begins_to_make(servers, current);
    Ok(Next::Same)
}

/// Tells a watcher that there is a shortage.
fn report(watcher: ThreadRef) {
    let count = watcher.task().doors.servers.count.get();
    watcher.frame.w[0].set(count as u64);
    watcher.frame.finish(0);
    watcher.set_ready();
}

/// Ends any wait of a thread that has to do with doors, except for a return. False if it is in none.
pub fn abort(k: &Kernel, thread: ThreadRef) -> bool {
    match (thread.wait(), thread.state.get()) {
        (Wait::Idle, _) => {
            resign(k, thread);
            thread.hot.ip.set(thread.server.resume.get());
            thread.hot.sp.set(thread.server.stack.get());
            outcome::set_error(thread, Error::ReceiveAborted);
            end_control(k, thread);
        }
        (Wait::No, State::Queueing) => {
            leave_queue(k, thread);
            outcome::set_error(thread, Error::SendAborted);
            k.wake(thread);
        }
        (Wait::No, State::Watching) => {
            thread.task().doors.servers.watcher.set(None);
            end_control(k, thread);
        }
        _ => return false,
    }
    true
}

/// Ends a call of `door_control` with an error.
fn end_control(k: &Kernel, thread: ThreadRef) {
    thread.frame.finish(Error::ReceiveAborted as u64);
    thread.set_ready();
    k.wake(thread);
}

/// Takes a thread out of its task's servers.
fn resign(k: &Kernel, thread: ThreadRef) {
    let servers = &thread.task().state().doors.servers;
    if thread.wait() == Wait::Idle {
        servers.unlist(thread);
        thread.set_ready();
        k.go_home(thread);
    }
    k.ends_service(thread);
    servers.remove(thread);
    k.unsettle_server(servers, thread);
}

/// Cuts all links by which doors, servers and callers lead to a thread that is going to end.
pub fn leave(k: &Kernel, thread: ThreadRef) {
    if thread.wait() == Wait::No {
        match thread.state.get() {
            State::Queueing => leave_queue(k, thread),
            State::Watching => thread.task().doors.servers.watcher.set(None),
            _ => {}
        }
    }
    let servers = &thread.task().state().doors.servers;
    if servers.maker.get() == Some(thread) {
        k.ends_to_make(servers);
    }
    if thread.server.pool.get().is_some() {
        let is_last = thread.special.get() & special::LAST_CALL != 0;
        let door = thread.server.door.get().filter(|door| is_last && door.is_unreferenced());
        resign(k, thread);
        if let Some(door) = door {
            unreferenced(k, door);
        }
    }
}

/// Closes the doors of a task that ends: its callers learn of it, each a part of the step's budget. True when none is left.
pub fn close(k: &Kernel, task: TaskRef, budget: &mut usize) -> bool {
    while *budget > 0 {
        let Some(caller) = task.doors.servers.callers.first() else { return true };
        leave_queue(k, caller);
        outcome::set_error(caller, Error::PartnerDied);
        k.wake(caller);
        *budget -= 1;
    }
    false
}
