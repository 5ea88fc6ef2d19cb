//! Clans and chiefs: what crosses a border goes to the chief, who may pass it on (row C9).

use crate::kit::{Agent, Child, Frame, Outcome, WORDS, note, pager};
use crate::{check, check_eq};
use core::ptr::addr_of;
use core::sync::atomic::{AtomicU64, Ordering};
use sys::abi::call::{Call, IPC_LONG_CALL, NO_BLOCK, NOT_DIVERTED, task_op, thread_op};
use sys::abi::op;
use sys::{Dope, Error, Kind, TaskId, Timeout, Uid};

const TASK_CREATE: u32 = Call::TaskControl as u32 | task_op::CREATE << 8;
const TASK_DESTROY: u32 = Call::TaskControl as u32 | task_op::DESTROY << 8;
const THREAD_CREATE: u32 = Call::ThreadControl as u32 | thread_op::CREATE << 8;
const THREAD_DESTROY: u32 = Call::ThreadControl as u32 | thread_op::DESTROY << 8;

/// A task whose chief is the agent, and which the test may use like its own: the agent is one of the suite's.
struct Clan {
    chief: Agent,
    task: TaskId,
}

impl Clan {
    fn new() -> Outcome<Clan> {
        Clan::with_quota(Child::QUOTA)
    }

    fn with_quota(quota: u64) -> Outcome<Clan> {
        let mut chief = Agent::new(TaskId::NIL)?;
        let (error, [task, ..]) =
            chief.control(TASK_CREATE, [quota, pager::priority() as u64, 0, 0, 0, 0])?;
        check_eq!(error, 0);
        Ok(Clan { chief, task: TaskId(task) })
    }
}

impl Drop for Clan {
    fn drop(&mut self) {
        let _ = sys::task_destroy(self.task);
    }
}

fn open() -> Frame {
    Frame::reply_wait(Uid::NIL, 0, [0; 11])
}

/// A reply that is shown to come from somebody else.
fn reply_as(to: Uid, shown: Uid) -> Frame {
    let mut frame = Frame::send(to, Timeout::ZERO);
    frame.rax |= op::SHOWN as u64;
    frame.r12 = shown.0;
    frame
}

/// Somebody outside of the suite's clan, whom no message of these tests must reach.
fn outsider() -> Uid {
    sys::identity().pager
}

pub fn leaving_goes_to_the_chief() -> Outcome {
    let mut clan = Clan::new()?;
    let mut member = Agent::new(clan.task)?;
    for queued in [false, true] {
        if !queued {
            clan.chief.block(open())?;
        }
        member.block(Frame::call(outsider(), 9, WORDS))?;
        let got = if queued { clan.chief.run(open())? } else { clan.chief.wait()? };
        check_eq!(got.rax, 9 << 32 | (Kind::Request as u32 & !NOT_DIVERTED) as u64);
        check_eq!(got.sender(), member.uid);
        check_eq!(got.words()[..10], WORDS[..10]);
        check_eq!(Uid(got.r15), outsider());
        // The chief's own voice is not the one that the member waits for.
        let own = clan.chief.run(Frame::send(member.uid, Timeout::ZERO))?;
        check_eq!(own.error(), Some(Error::SendTimeout));
        check_eq!(clan.chief.run(reply_as(member.uid, outsider()))?.rax, 0);
        let answer = member.wait()?;
        check_eq!((answer.kind(), answer.sender()), (Some(Kind::Reply), outsider()));
        check_eq!(answer.words()[..5], WORDS[..5]);
        check_eq!(answer.r12, 0);
        check!(answer.rax as u32 & NOT_DIVERTED != 0);
    }
    // Chief and member talk as always, and so do members.
    clan.chief.block(open())?;
    member.block(Frame::call(clan.chief.uid, 1, WORDS))?;
    let got = clan.chief.wait()?;
    check_eq!((got.rax as u32, got.words()), (Kind::Request as u32, WORDS));
    clan.chief.run(Frame::send(member.uid, Timeout::ZERO))?;
    check_eq!(member.wait()?.sender(), clan.chief.uid);
    Ok(())
}

pub fn entering_goes_to_the_chief() -> Outcome {
    // A member of the suite's clan is chief of a clan of its own.
    let (inner, other) = (Child::with_quota(128)?, Child::new()?);
    let (mut chief, mut stranger) = (inner.agent()?, other.agent()?);
    let priority = pager::priority() as u64;
    let (_, [task, ..]) = chief.control(TASK_CREATE, [32, priority, 0, 0, 0, 0])?;
    let (error, [hidden, ..]) = chief.control(THREAD_CREATE, [task, priority, pager::uid().0, 0, 0, 0])?;
    check_eq!(error, 0);
    chief.block(open())?;
    stranger.block(Frame::call(Uid(hidden), 4, WORDS))?;
    let got = chief.wait()?;
    check_eq!(got.rax, 4 << 32 | (Kind::Request as u32 & !NOT_DIVERTED) as u64);
    check_eq!((got.sender(), got.r15), (stranger.uid, hidden));
    check_eq!(chief.run(reply_as(stranger.uid, Uid(hidden)))?.rax, 0);
    check_eq!(stranger.wait()?.sender(), Uid(hidden));
    // The suite is further up: its messages go the same way.
    let mut own = Agent::new(TaskId::NIL)?;
    chief.block(open())?;
    own.block(Frame::call(Uid(hidden), 5, WORDS))?;
    check_eq!((chief.wait()?.sender(), own.is_done()), (own.uid, false));
    sys::thread_abort(own.uid)?;
    check_eq!(own.wait()?.error(), Some(Error::ReceiveAborted));
    chief.control(TASK_DESTROY, [task, 0, 0, 0, 0, 0])?;
    Ok(())
}

/// Who answered the thread of [`borders_are_crossed_one_after_the_other`], and the first word.
static ANSWERED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Calls somebody outside of two clans.
extern "C" fn call_from_below(to: u64, _uid: u64) -> ! {
    if let Ok(answer) = sys::ipc_call(Uid(to), 9, [7; 8]) {
        ANSWERED[1].store(answer.words[0], Ordering::Relaxed);
        ANSWERED[0].store(answer.sender.0, Ordering::Relaxed);
    }
    loop {
        let _ = sys::receive(sys::myself(), Timeout::NEVER);
    }
}

/// A clan within a clan: a message goes to one chief after the other on its way out, and so does the answer on its way in, each
/// time as the message of who sent it first.
pub fn borders_are_crossed_one_after_the_other() -> Outcome {
    const THREAD_START: u32 = Call::ThreadControl as u32 | thread_op::START << 8;
    ANSWERED[0].store(0, Ordering::Relaxed);
    let mut clan = Clan::with_quota(128)?;
    let mut inner = Agent::new(clan.task)?;
    let priority = pager::priority() as u64;
    let (_, [task, ..]) = inner.control(TASK_CREATE, [48, priority, 0, 0, 0, 0])?;
    let (_, [lowest, ..]) = inner.control(THREAD_CREATE, [task, priority, pager::uid().0, 0, 0, 0])?;
    let (entry, stack) =
        (call_from_below as *const () as usize as u64, addr_of!(STACKS) as u64 + STACK as u64);
    clan.chief.block(open())?;
    let (error, _) = inner.control(THREAD_START, [lowest, entry, stack - 8, outsider().0, 0, 0])?;
    check_eq!(error, 0);
    let diverted = |got: &Frame, from, to| {
        check_eq!(got.rax as u32 & NOT_DIVERTED, 0);
        check_eq!((got.sender(), Uid(got.r15)), (from, to));
        Ok(())
    };
    diverted(&inner.run(open())?, Uid(lowest), outsider())?;
    let mut on = Frame::ipc(outsider(), Uid::ANY, Timeout::ZERO, Timeout::NEVER);
    on.rax |= op::SHOWN as u64;
    on.r12 = lowest;
    inner.block(on)?;
    diverted(&clan.chief.wait()?, Uid(lowest), outsider())?;
    check_eq!(clan.chief.run(reply_as(Uid(lowest), outsider()))?.rax, 0);
    diverted(&inner.wait()?, outsider(), Uid(lowest))?;
    check_eq!(ANSWERED[0].load(Ordering::Relaxed), 0);
    check_eq!(inner.run(reply_as(Uid(lowest), outsider()))?.rax, 0);
    for _ in 0..10_000 {
        if ANSWERED[0].load(Ordering::Relaxed) != 0 {
            break;
        }
        sys::sleep_us(100)?;
    }
    check_eq!(Uid(ANSWERED[0].load(Ordering::Relaxed)), outsider());
    check_eq!(ANSWERED[1].load(Ordering::Relaxed), WORDS[0]);
    Ok(())
}

/// One way again and again, which need not be looked for; until it ends.
pub fn ways_that_are_known() -> Outcome {
    let (inner, other) = (Child::with_quota(128)?, Child::new()?);
    let (mut chief, mut mate, mut stranger) = (inner.agent()?, inner.agent()?, other.agent()?);
    let priority = pager::priority() as u64;
    let (_, [task, ..]) = chief.control(TASK_CREATE, [32, priority, 0, 0, 0, 0])?;
    let (_, [hidden, ..]) = chief.control(THREAD_CREATE, [task, priority, pager::uid().0, 0, 0, 0])?;
    let mut answer = Frame::ipc(stranger.uid, Uid::ANY, Timeout::ZERO, Timeout::NEVER).label(6);
    answer.rax |= op::SHOWN as u64;
    answer.r12 = hidden;
    chief.block(open())?;
    for round in 0..5 {
        let stops = round == 3;
        if stops {
            sys::thread_stop(chief.uid)?;
        }
        stranger.block(Frame::call(Uid(hidden), round, WORDS))?;
        if stops {
            check!(!chief.is_done());
            sys::thread_resume(chief.uid)?;
        }
        let got = chief.wait()?;
        check_eq!(got.rax, (round as u64) << 32 | (Kind::Request as u32 & !NOT_DIVERTED) as u64);
        check_eq!((got.sender(), got.r15), (stranger.uid, hidden));
        check_eq!(got.words()[..10], WORDS[..10]);
        chief.block(answer)?;
        let got = stranger.wait()?;
        check_eq!((got.rax, got.sender()), (6 << 32 | Kind::Reply as u64, Uid(hidden)));
        let words = answer.words();
        check_eq!(
            got.words()[..8],
            [words[0], words[1], words[2], words[3], words[4], 0, words[6], words[7]]
        );
        check_eq!(got.words()[8..], [0; 3]);
    }
    // Who shows somebody else to the same thread is looked at again.
    stranger.block(Frame::call(Uid(hidden), 0, WORDS))?;
    chief.wait()?;
    check_eq!(chief.run(reply_as(stranger.uid, mate.uid))?.error(), Some(Error::Denied));
    chief.block(answer)?;
    stranger.wait()?;
    mate.control(THREAD_DESTROY, [hidden, 0, 0, 0, 0, 0])?;
    check_eq!(stranger.run(Frame::call(Uid(hidden), 0, WORDS))?.error(), Some(Error::NoSuch));
    check!(!chief.is_done());
    mate.control(TASK_DESTROY, [task, 0, 0, 0, 0, 0])?;
    Ok(())
}

pub fn chiefs_show_only_what_crosses() -> Outcome {
    let mut clan = Clan::new()?;
    let (mut member, mut mate) = (Agent::new(clan.task)?, Agent::new(clan.task)?);
    let me = clan.chief.uid;
    let refused = [
        (member.uid, mate.uid, Error::Denied),
        (member.uid, me, Error::Denied),
        (outsider(), outsider(), Error::BadArgument),
        (outsider(), me, Error::Denied),
        (member.uid, Uid(0x1234_5678_9abc_d001), Error::NoSuch),
        (member.uid, Uid::NIL, Error::NoSuch),
    ];
    for (to, shown, error) in refused {
        let got = clan.chief.run(reply_as(to, shown))?.error();
        let same = to == shown && got == Some(Error::Denied);
        check!(same || got == Some(error), "to {to:?} as {shown:?}: {got:?}");
    }
    // Who is no chief shows nothing.
    check_eq!(mate.run(reply_as(member.uid, outsider()))?.error(), Some(Error::Denied));
    member.block(open())?;
    check_eq!(mate.run(reply_as(member.uid, clan.chief.uid))?.error(), Some(Error::Denied));
    check!(!member.is_done());
    Ok(())
}

#[repr(C, align(4096))]
struct Room([u64; 512]);
static mut FROM: Room = Room([7; 512]);
static mut TO: Room = Room([0; 512]);

pub fn their_border_is_crossed_by_blocks() -> Outcome {
    let mut clan = Clan::new()?;
    let mut member = Agent::new(clan.task)?;
    let (from, to) = (addr_of!(FROM) as u64, addr_of!(TO) as u64);
    sys::thread_set_block(clan.chief.uid, to, Dope::room(100, 0, 0), Timeout::NEVER)?;
    clan.chief.block(open())?;
    let mut call = Frame::call(outsider(), 0, WORDS);
    call.rax = IPC_LONG_CALL as u64;
    (call.rdi, call.rsi) = (Dope::used(100, 0, 0).0, from);
    member.block(call)?;
    let got = clan.chief.wait()?;
    check_eq!(got.rax, (Kind::Request as u32 & !NOT_DIVERTED & !NO_BLOCK) as u64);
    check_eq!((got.sender(), Uid(got.r15)), (member.uid, outsider()));
    // SAFETY: no agent uses the two now.
    let (from, to) = unsafe { (&*addr_of!(FROM), &*addr_of!(TO)) };
    check!(from.0[..100] == to.0[..100], "the block did not arrive");
    check_eq!(clan.chief.run(reply_as(member.uid, outsider()))?.rax, 0);
    check_eq!(member.wait()?.sender(), outsider());
    Ok(())
}

pub fn chiefs_that_end() -> Outcome {
    for received in [false, true] {
        let mut clan = Clan::new()?;
        let mut member = Agent::new(clan.task)?;
        if received {
            clan.chief.block(open())?;
        }
        member.block(Frame::call(outsider(), 0, WORDS))?;
        if received {
            clan.chief.wait()?;
        }
        sys::thread_destroy(clan.chief.uid)?;
        check_eq!(member.wait()?.error(), Some(Error::PartnerDied));
        check_eq!(member.run(Frame::call(outsider(), 0, WORDS))?.error(), Some(Error::NoSuch));
    }
    Ok(())
}

const LEVELS: usize = 40;
const STACK: usize = 8192;

#[repr(C, align(4096))]
struct Stacks([[u8; STACK]; LEVELS]);
static mut STACKS: Stacks = Stacks([[0; STACK]; LEVELS]);
static DEEPEST: AtomicU64 = AtomicU64::new(0);
static ENDED_WITH: AtomicU64 = AtomicU64::new(0);

/// Makes a task that does the same, as deep as it goes.
extern "C" fn nest(level: u64, _uid: u64) -> ! {
    DEEPEST.store(level, Ordering::Relaxed);
    if let Err(error) = nest_deeper(level as usize + 1) {
        ENDED_WITH.store(error as u64, Ordering::Relaxed);
    }
    loop {
        let _ = sys::receive(sys::myself(), Timeout::NEVER);
    }
}

fn nest_deeper(level: usize) -> sys::Result<()> {
    let own = sys::task_info(TaskId::NIL)?;
    let task = note(
        Call::TaskControl,
        sys::task_create((own.quota - own.used).saturating_sub(20), pager::priority()),
    )?;
    let thread = sys::thread_create(task, pager::priority(), pager::uid(), Uid::NIL)?;
    let top = addr_of!(STACKS) as u64 + ((level + 1) * STACK) as u64;
    // SAFETY: each level has a stack of its own.
    unsafe { sys::thread_start(thread, nest as *const () as usize as u64, top - 8, level as u64) }
}

pub fn depth_is_limited() -> Outcome {
    let child = Child::with_quota(1200)?;
    let mut agent = child.agent()?;
    extern "C" fn begin(_: u64) -> u64 {
        nest_deeper(0).map_or_else(|error| error as u64, |()| 0)
    }
    check_eq!(agent.apply(begin, 0)?, 0);
    for _ in 0..10_000 {
        if ENDED_WITH.load(Ordering::Relaxed) != 0 {
            break;
        }
        sys::sleep_us(100)?;
    }
    let deepest = DEEPEST.load(Ordering::Relaxed);
    let error = Error::from_code(ENDED_WITH.load(Ordering::Relaxed) as u32);
    check!(error == Some(Error::Limit), "{error:?} after {deepest} levels");
    check!((20..LEVELS as u64).contains(&deepest), "{deepest} levels");
    // All of them end with the first.
    drop(child);
    Ok(())
}
