//! Ipc between threads of one task that does not enter the kernel (row P22): `user/lib/local`.

use crate::kit::{Agent, Child, Frame, Outcome, Thread, pager, progress, spawn};
use crate::{check, check_eq};
use core::hint::spin_loop;
use core::sync::atomic::{AtomicU64, Ordering};
use local::Local;
use sys::{Error, Kind, TaskId, Timeout, Uid};

/// What a server is asked to do, as the label of a message. It answers with the label of the request.
const END: u32 = 0;
/// Answers at once: whether it is carried, and who it seems to be.
const TELL: u32 = 1;
/// Answers likewise when it has taken its own kernel thread.
const OWN: u32 = 2;
/// Calls w0 with label w1 and w2 as w0, and passes on what that one says; in w3 who it says has called.
const PASS: u32 = 3;
/// Works for w0 µs, then answers w0.
const WORK: u32 = 4;
/// Answers this one after the next.
const LATER: u32 = 5;

/// A server in the suite's task. It ends when this value is dropped.
struct Server(Thread);

impl Server {
    fn new(priority: u8) -> Outcome<Server> {
        let server = Server(spawn(TaskId::NIL, priority, serve, 0)?);
        // It waits from here on.
        check_eq!(sys::ipc_call(server.uid(), TELL, [0; 8])?.words[0], 0);
        Ok(server)
    }

    fn uid(&self) -> Uid {
        self.0.uid
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = sys::ipc_call(self.uid(), END, [0; 8]);
    }
}

extern "C" fn serve(_: u64, _: u64) -> ! {
    // A place in the table may be taken by another thread of the suite, but then the tests fail.
    if let Some(local) = Local::new() {
        let last = serve_until_end(&local);
        drop(local);
        let _ = sys::ipc_reply_wait(last, END, [0; 8]);
    }
    loop {
        let _ = sys::receive(sys::myself(), Timeout::NEVER);
    }
}

/// Returns the client that wants the end.
fn serve_until_end(local: &Local) -> Uid {
    let mut message = local.reply_wait(Uid::NIL, 0, [0; 8]);
    let mut waiting = Uid::NIL;
    loop {
        let Ok(got) = message else {
            message = local.reply_wait(Uid::NIL, 0, [0; 8]);
            continue;
        };
        let (from, label) = (got.sender, got.label);
        if label == LATER {
            waiting = from;
            message = local.reply_wait(Uid::NIL, 0, [0; 8]);
            continue;
        }
        if !waiting.is_nil() {
            local.own();
            let _ = sys::send(waiting, LATER, [from.0; 8], Timeout::ZERO);
            waiting = Uid::NIL;
        }
        let [w0, w1, w2, ..] = got.words;
        let words = match label {
            END => return from,
            PASS => match local.call(Uid(w0), w1 as u32, [w2, 0, 0, 0, 0, 0, 0, 0]) {
                Ok(answer) => [answer.words[0], answer.words[1], answer.words[2], from.0, 0, 0, 0, 0],
                Err(error) => [error as u64, u64::MAX, 0, from.0, 0, 0, 0, 0],
            },
            WORK => {
                let end = sys::clock() + w0 * 1000;
                while sys::clock() < end {}
                [w0, 0, 0, 0, 0, 0, 0, 0]
            }
            label => {
                let before = local.is_carried() as u64;
                if label == OWN {
                    local.own();
                }
                [before, sys::myself().0, from.0, local.is_carried() as u64, w0, 0, 0, 0]
            }
        };
        message = local.reply_wait(from, label, words);
    }
}

/// What a client is to do, and what it got: agents take one argument.
struct Errand {
    to: Uid,
    label: u32,
    words: [u64; 8],
    /// Answer's sender and words, or the error.
    got: sys::Result<(Uid, [u64; 8])>,
}

extern "C" fn run_errand(errand: u64) -> u64 {
    // SAFETY: the test waits until this function has returned, or leaves the place alone.
    let errand = unsafe { &mut *(errand as *mut Errand) };
    let Some(local) = Local::new() else { return 1 };
    errand.got =
        local.call(errand.to, errand.label, errand.words).map(|message| (message.sender, message.words));
    if let Ok((sender, words)) = &mut errand.got {
        // That the kind and label are right is checked here, so that the answer fits.
        let again = local.call(errand.to, TELL, [0; 8]);
        if errand.label != END
            && again.is_ok_and(|m| m.kind != Kind::Reply || m.label != TELL || m.sender != *sender)
        {
            words[7] = u64::MAX;
        }
    }
    0
}

/// One local call by an agent, and, if that has succeeded, a second one.
fn errand(agent: &mut Agent, to: Uid, label: u32, [w0, w1, w2]: [u64; 3]) -> Outcome<sys::Result<[u64; 8]>> {
    let mut errand = Errand { to, label, words: [w0, w1, w2, 0, 0, 0, 0, 0], got: Err(Error::BadArgument) };
    check_eq!(agent.apply(run_errand, &raw mut errand as u64)?, 0);
    if let Ok((sender, words)) = errand.got {
        check_eq!(sender, to);
        check_eq!(words[7], 0);
    }
    Ok(errand.got.map(|(_, words)| words))
}

static PHASE: AtomicU64 = AtomicU64::new(0);

/// Many calls in phase 1, while system calls are denied; ends in phase 3.
extern "C" fn call_when_denied(server: u64) -> u64 {
    let Some(local) = Local::new() else { return u64::MAX };
    while PHASE.load(Ordering::Relaxed) == 0 {
        spin_loop();
    }
    let mut right = 0;
    for number in 0..1000 {
        let answer = local.call(Uid(server), WORK, [0, number, 0, 0, 0, 0, 0, 0]);
        right += answer.is_ok_and(|message| message.label == WORK && message.sender.0 == server) as u64;
    }
    PHASE.store(2, Ordering::Relaxed);
    while PHASE.load(Ordering::Relaxed) != 3 {
        spin_loop();
    }
    right
}

/// The server of that one: it makes no system call either.
extern "C" fn answer_without_kernel(_: u64, _: u64) -> ! {
    if let Some(local) = Local::new() {
        let mut message = local.reply_wait(Uid::NIL, 0, [0; 8]);
        while let Ok(got) = message {
            if got.label == END {
                drop(local);
                let _ = sys::ipc_reply_wait(got.sender, END, [0; 8]);
                break;
            }
            message = local.reply_wait(got.sender, got.label, got.words);
        }
    }
    loop {
        let _ = sys::receive(sys::myself(), Timeout::NEVER);
    }
}

/// Neither side makes a system call: the client's are denied, and the server runs on the client's thread.
pub fn calls_do_not_enter_the_kernel() -> Outcome {
    let server = Server(spawn(TaskId::NIL, pager::priority(), answer_without_kernel, 0)?);
    check_eq!(sys::ipc_call(server.uid(), TELL, [0; 8])?.label, TELL);
    let mut client = Agent::new(TaskId::NIL)?;
    PHASE.store(0, Ordering::Relaxed);
    client.start_apply(call_when_denied, server.uid().0);
    sys::sleep_us(20_000)?;
    sys::thread_deny_native(client.uid, 1)?;
    let before = server.0.info()?.cpu_ns;
    PHASE.store(1, Ordering::Relaxed);
    for _ in 0..10_000 {
        if PHASE.load(Ordering::Relaxed) == 2 {
            break;
        }
        sys::sleep_us(1000)?;
    }
    check_eq!(PHASE.load(Ordering::Relaxed), 2);
    check_eq!(server.0.info()?.cpu_ns, before);
    sys::thread_deny_native(client.uid, 0)?;
    PHASE.store(3, Ordering::Relaxed);
    check_eq!(client.result()?, 1000);
    Ok(())
}

/// Who does not take part, or is in no state to, is called by the kernel; and so are errors.
pub fn others_are_called_by_the_kernel() -> Outcome {
    let mut client = Agent::new(TaskId::NIL)?;
    let child = Child::new()?;
    let mut stranger = child.agent()?;
    stranger.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
    let mut asked = Errand { to: stranger.uid, label: 7, words: [5; 8], got: Err(Error::BadArgument) };
    client.start_apply(run_errand, &raw mut asked as u64);
    let got = stranger.wait()?;
    check_eq!((got.sender(), got.received_label(), got.rdi), (client.uid, 7, 5));
    stranger.start(Frame::reply_wait(got.sender(), 8, [6; 11]));
    // The errand's second call.
    check_eq!(stranger.wait()?.received_label(), TELL);
    stranger.start(Frame::reply_wait(got.sender(), TELL, [0; 11]));
    check_eq!(client.result()?, 0);
    check_eq!(asked.got, Ok((stranger.uid, [6, 6, 6, 6, 6, 6, 6, 6])));
    drop(stranger);
    for to in [asked.to, Uid::NIL, Uid(0x1234_5678_9abc_d000)] {
        check_eq!(errand(&mut client, to, TELL, [0; 3])?, Err(Error::NoSuch));
    }
    // A server answers by whichever way the client came.
    let server = Server::new(pager::priority())?;
    let mut remote = child.agent()?;
    for _ in 0..3 {
        let got = remote.run(Frame::call(server.uid(), OWN, [0; 11]))?;
        check_eq!((got.rdi, got.rsi, got.r8, got.r9), (0, server.uid().0, remote.uid.0, 0));
        let got = errand(&mut client, server.uid(), TELL, [0; 3])?;
        check_eq!(got, Ok([1, client.uid.0, client.uid.0, 1, 0, 0, 0, 0]));
    }
    Ok(())
}

/// The kernel knows a carried thread as its carrier, until it takes its own.
pub fn carried_threads_take_their_own() -> Outcome {
    let server = Server::new(pager::priority())?;
    let mut client = Agent::new(TaskId::NIL)?;
    for _ in 0..3 {
        let got = errand(&mut client, server.uid(), TELL, [0; 3])?;
        check_eq!(got, Ok([1, client.uid.0, client.uid.0, 1, 0, 0, 0, 0]));
        let got = errand(&mut client, server.uid(), OWN, [9, 0, 0])?;
        check_eq!(got, Ok([1, server.uid().0, client.uid.0, 0, 9, 0, 0, 0]));
    }
    Ok(())
}

/// A chain of three: each is carried, whoever takes its own does so alone, and a call that leaves comes from the right one.
pub fn calls_in_calls() -> Outcome {
    let priority = pager::priority();
    let (first, second) = (Server::new(priority)?, Server::new(priority)?);
    let mut client = Agent::new(TaskId::NIL)?;
    for _ in 0..3 {
        let got = errand(&mut client, first.uid(), PASS, [second.uid().0, TELL as u64, 0])?;
        check_eq!(got, Ok([1, client.uid.0, first.uid().0, client.uid.0, 0, 0, 0, 0]));
        let got = errand(&mut client, first.uid(), PASS, [second.uid().0, OWN as u64, 0])?;
        check_eq!(got, Ok([1, second.uid().0, first.uid().0, client.uid.0, 0, 0, 0, 0]));
    }
    let child = Child::new()?;
    let mut stranger = child.agent()?;
    stranger.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
    let words = [stranger.uid.0, TELL as u64, 77, 0, 0, 0, 0, 0];
    let mut asked = Errand { to: first.uid(), label: PASS, words, got: Err(Error::BadArgument) };
    client.start_apply(run_errand, &raw mut asked as u64);
    let got = stranger.wait()?;
    check_eq!((got.sender(), got.rdi), (first.uid(), 77));
    stranger.run(Frame::send(got.sender(), Timeout::ZERO))?;
    check_eq!(client.result()?, 0);
    check!(asked.got.is_ok_and(|(sender, words)| sender == first.uid() && words[3] == client.uid.0));
    // The callee of a callee is gone.
    let got = errand(&mut client, first.uid(), PASS, [0x1234_5678_9abc_d000, TELL as u64, 0])?;
    check_eq!(got.map(|words| words[0]), Ok(Error::NoSuch as u64));
    Ok(())
}

/// A message by the kernel that comes while the server is carried waits for it, and so does one that is taken with an answer
/// pending.
pub fn kernel_and_local_calls_meet() -> Outcome {
    let server = Server::new(pager::priority())?;
    let child = Child::new()?;
    let (mut client, mut remote) = (Agent::new(TaskId::NIL)?, child.agent()?);
    for (label, work_us) in [(WORK, 30_000), (WORK, 1000), (OWN, 0)] {
        let words = [work_us, 0, 0, 0, 0, 0, 0, 0];
        let mut asked = Errand { to: server.uid(), label, words, got: Err(Error::BadArgument) };
        client.start_apply(run_errand, &raw mut asked as u64);
        sys::thread_switch(client.uid)?;
        let got = remote.run(Frame::call(server.uid(), TELL, [3; 11]))?;
        check_eq!((got.rdi, got.rsi, got.r8), (0, server.uid().0, remote.uid.0));
        check_eq!(client.result()?, 0);
        check!(asked.got.is_ok_and(|(_, words)| words[7] == 0 && words[4].max(words[0]) >= work_us.min(1)));
    }
    Ok(())
}

/// A server that puts an answer off takes its own thread, and the caller waits in the kernel.
pub fn answers_out_of_order() -> Outcome {
    let server = Server::new(pager::priority())?;
    let (mut first, mut second) = (Agent::new(TaskId::NIL)?, Agent::new(TaskId::NIL)?);
    let mut asked = Errand { to: server.uid(), label: LATER, words: [0; 8], got: Err(Error::BadArgument) };
    first.start_apply(run_errand, &raw mut asked as u64);
    check!(first.settle()?, "the first client does not wait");
    check_eq!(errand(&mut second, server.uid(), TELL, [0; 3])?.map(|words| words[2]), Ok(second.uid.0));
    check_eq!(first.result()?, 0);
    check!(asked.got.is_ok_and(|(sender, words)| sender == server.uid() && words[0] == second.uid.0));
    Ok(())
}

/// The callee ends when it has taken its own thread: the caller gets the kernel's error, and its place is free again.
pub fn callees_that_end() -> Outcome {
    let mut client = Agent::new(TaskId::NIL)?;
    for _ in 0..3 {
        let thread = spawn(TaskId::NIL, pager::priority(), serve, 0)?;
        check_eq!(sys::ipc_call(thread.uid, TELL, [0; 8])?.words[0], 0);
        let mut asked = Errand { to: thread.uid, label: LATER, words: [0; 8], got: Err(Error::BadArgument) };
        client.start_apply(run_errand, &raw mut asked as u64);
        check!(client.settle()?, "the client does not wait");
        drop(thread);
        check_eq!(client.result()?, 0);
        check_eq!(asked.got, Err(Error::PartnerDied));
    }
    Ok(())
}

/// Calls per client of the crowd.
const CALLS: u64 = 20_000;

/// Servers of the crowd.
static SERVERS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Calls both servers in turn, one of them to call the other; returns how many answers were right.
extern "C" fn call_around(tag: u64) -> u64 {
    let Some(local) = Local::new() else { return 0 };
    let me = sys::myself();
    let servers = SERVERS.each_ref().map(|server| Uid(server.load(Ordering::Relaxed)));
    let mut right = 0;
    for number in 0..CALLS {
        let server = servers[(number / 3) as usize % 2];
        let other = servers[1].0;
        let value = tag << 32 | number;
        if number.is_multiple_of(16) {
            // Now and then the less urgent one gets on.
            let _ = sys::sleep_us(tag * 20);
        }
        right += match number % 7 {
            0 if server.0 != other => local
                .call(server, PASS, [other, TELL as u64, value, 0, 0, 0, 0, 0])
                .is_ok_and(|m| m.sender == server && m.words[2] == server.0 && m.words[3] == me.0),
            1 => local
                .call(server, OWN, [value, 0, 0, 0, 0, 0, 0, 0])
                .is_ok_and(|m| m.sender == server && m.words[1] == server.0 && m.words[4] == value),
            _ => local
                .call(server, TELL, [value, 0, 0, 0, 0, 0, 0, 0])
                .is_ok_and(|m| m.sender == server && m.words[2] == me.0 && m.words[4] == value),
        } as u64;
    }
    right
}

/// Calls from another task, by the kernel; says how many were right.
extern "C" fn call_from_afar(tag: u64) -> u64 {
    let me = sys::myself();
    let mut right = 0;
    for number in 0..CALLS {
        if number.is_multiple_of(16) {
            let _ = sys::sleep_us(tag);
        }
        let server = Uid(SERVERS[number as usize % 2].load(Ordering::Relaxed));
        let answer = sys::ipc_call(server, TELL, [tag << 32 | number, 0, 0, 0, 0, 0, 0, 0]);
        right += answer
            .is_ok_and(|m| m.words[..4] == [0, server.0, me.0, 0] && m.words[4] == tag << 32 | number)
            as u64;
    }
    right
}

/// Clients of all kinds and priorities, preempted anywhere.
pub fn crowds() -> Outcome {
    let priority = pager::priority();
    let (first, second) = (Server::new(priority)?, Server::new(priority)?);
    for (place, server) in SERVERS.iter().zip([&first, &second]) {
        place.store(server.uid().0, Ordering::Relaxed);
    }
    let child = Child::new()?;
    let mut near = [
        Agent::new(TaskId::NIL)?,
        Agent::new(TaskId::NIL)?,
        Agent::with_priority(TaskId::NIL, priority - 1)?,
    ];
    let mut far = [child.agent()?, child.agent()?];
    for (tag, agent) in near.iter().chain(&far).enumerate() {
        let of = priority - (tag == 2) as u8;
        sys::thread_set_priority(agent.uid, of, 100 + 37 * tag as u64)?;
    }
    for (tag, agent) in near.iter_mut().enumerate() {
        agent.start_apply(call_around, tag as u64);
    }
    for (tag, agent) in far.iter_mut().enumerate() {
        agent.start_apply(call_from_afar, 100 + tag as u64);
    }
    while near.iter().chain(&far).any(|agent| !agent.is_done()) {
        progress();
        sys::sleep_us(10_000)?;
        // Who is done does nothing any more, but all the time: let the less urgent one get on.
        for agent in near.iter().chain(&far).filter(|agent| agent.is_done()) {
            sys::thread_set_priority(agent.uid, priority - 2, 0)?;
        }
    }
    for agent in near.iter_mut().chain(&mut far) {
        check_eq!(agent.result()?, CALLS);
    }
    Ok(())
}
