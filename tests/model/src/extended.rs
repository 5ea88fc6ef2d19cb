//! Extended state: whoever leaves user mode fills the registers beside a message's with a new number, and looks which it finds when it runs again.
//!
//! **Rule.** After an interrupt, or a system call that is no ipc, a thread finds its own number. After a message it finds its own, the initial
//! state, or what the *last* thread that was on its shuttle before it left there. That is the partner whose message brought the shuttle, since a
//! shuttle changes hands by messages alone. A shuttle that was taken back has the initial state, or what its owner's pager left, whose work was
//! broken off; a thread from which it was taken has what it would have found there.
//!
//! A thread that gets a shuttle and passes it on without having run in between, as in the middle of a long message, changes nothing of this: it
//! passes on what came, or its own number.
//!
//! Of a message that names its sender the rule says it once more without shuttles: the number is the receiver's, that sender's, or, where either
//! has faulted meanwhile, one of the pager's.

use abi::call::{NOT_DIVERTED, door_op, thread_op};
use abi::op::Op;
use abi::{Call, Kind, Uid};
use kernel::arch::extended::{registers, set_registers};
use kernel::kernel::Kernel;
use kernel::lend::word::Stake;
use kernel::object::shuttle::ShuttleRef;
use kernel::object::thread::{Errand, Wait, special};
use kernel::object::{TaskRef, ThreadRef};
use std::collections::{BTreeSet, HashMap};
use std::iter::successors;

/// Way in which a thread left user mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Departure {
    /// By an interrupt, or a system call that hands nothing over.
    Keeps,
    /// By an ipc, or a call or a return through a door.
    Hands,
    /// By a fault or an exception, or by a call that may fault; a late return from a foreign call may also give the caller's shuttle back.
    Faults,
    /// Not at all: the number is in a state that somebody sets.
    Given,
}

impl Departure {
    /// Kind of a system call, of a thread that may make it or not.
    pub fn of_call(rax: u64, is_denied: bool) -> Departure {
        const SERVE: u64 = Call::DoorControl as u64 | (door_op::SERVE as u64) << 8;
        const COPIES: [u32; 3] = [thread_op::GET_STATE, thread_op::SET_STATE, thread_op::FOREIGN_RETURN];
        const OTHERS: [Call; 6] = [
            Call::Flush,
            Call::ThreadControl,
            Call::TaskControl,
            Call::ThreadSwitch,
            Call::Clock,
            Call::DoorControl,
        ];
        if is_denied {
            Departure::Faults
        } else if Op::of(rax).form().is_some()
            || Op::of(rax).is_foreign_return()
            || rax & 0xffff_ffff == SERVE
        {
            Departure::Hands
        } else if COPIES.iter().any(|operation| rax as u32 == Call::ThreadControl as u32 | operation << 8) {
            Departure::Faults
        } else if OTHERS.into_iter().any(|call| rax & 0xffff_00ff == call as u64) {
            Departure::Keeps
        } else {
            Departure::Faults
        }
    }
}

/// Numbers of others that a thread may find, as far as it can be seen from outside.
#[derive(Default)]
struct Prospect {
    /// Reference of the shuttle that it was on when it was looked at last, if it was on one.
    on: Option<u64>,
    /// Numbers that may lie there.
    numbers: BTreeSet<u64>,
    /// Pagers and handlers that have got a fault of it since it left user mode.
    asked: BTreeSet<Uid>,
    /// Pagers and handlers that ever have. What one of them left may lie beside its home shuttle for long.
    trusted: BTreeSet<Uid>,
    /// Numbers of which one is kept of it, since it faulted on a borrowed shuttle, until it goes on.
    kept: BTreeSet<u64>,
}

/// State beside a shuttle, by its reference, which changes when the shuttle is taken back.
#[derive(Default)]
struct Place {
    /// Numbers, of which one was left last.
    numbers: BTreeSet<u64>,
    /// Threads that were on it since, without having run.
    passers: BTreeSet<Uid>,
}

/// Numbers that were left in the registers.
pub struct Owners {
    /// Thread that left each number, and its way; the number is an index.
    left: Vec<(Uid, Departure)>,
    /// Number that each thread left last.
    last: HashMap<Uid, u64>,
    prospects: HashMap<Uid, Prospect>,
    places: HashMap<u64, Place>,
}

impl Owners {
    /// Nobody has run yet: the registers are initial, which is the number 0.
    pub fn new() -> Owners {
        set_registers(0);
        let left = vec![(Uid::NIL, Departure::Hands)];
        Owners { left, last: HashMap::new(), prospects: HashMap::new(), places: HashMap::new() }
    }

    /// A thread leaves user mode, with a number of its own in the registers.
    pub fn leaves(&mut self, k: &Kernel, thread: ThreadRef, how: Departure) {
        let (uid, number) = (thread.uid(), self.left.len() as u64);
        self.left.push((uid, how));
        self.last.insert(uid, number);
        set_registers(number);
        let shuttle = shuttle_of(k, thread);
        let numbers = BTreeSet::from([number]);
        let prospect = self.prospects.entry(uid).or_default();
        (prospect.on, prospect.numbers) = (Some(shuttle), numbers.clone());
        prospect.asked.clear();
        self.places.insert(shuttle, Place { numbers, passers: BTreeSet::new() });
    }

    /// A number for a state that is to be set: whoever has the registers then may find it.
    pub fn give(&mut self) -> u64 {
        self.left.push((Uid::NIL, Departure::Given));
        self.left.len() as u64 - 1
    }

    /// Looks on which shuttle each thread is, at the end of a step of the kernel.
    pub fn look(&mut self, k: &Kernel) {
        let threads = || {
            let of_task =
                |task: TaskRef| successors(task.threads.first(), move |&thread| task.threads.after(thread));
            k.tasks().flat_map(of_task)
        };
        threads().for_each(|thread| self.look_at_home(k, thread));
        threads().for_each(|thread| self.look_at(k, thread));
    }

    /// State beside a thread's home shuttle changes without a message.
    fn look_at_home(&mut self, k: &Kernel, thread: ThreadRef) {
        let uid = thread.uid();
        let prospect = self.prospects.entry(uid).or_default();
        let home = self.places.entry(thread.home_ref().0).or_default();
        let is_kept = thread.special.get() & special::STATE_KEPT != 0;
        if is_kept || self.last.get(&uid).is_some_and(|&own| self.left[own as usize].1 == Departure::Faults) {
            // Its state was or may have been kept while it was on a shuttle of another, beside its own, and comes along with that.
            home.passers.insert(uid);
        }
        if prospect.on.is_some_and(|on| !is_valid(k, on)) {
            // The shuttle was taken from it, and the state went along.
            home.numbers.append(&mut prospect.numbers);
            prospect.on = None;
        } else if home.numbers.is_empty() {
            // It was taken back, perhaps from a pager of its owner.
            home.passers.insert(uid);
            home.passers.extend(&prospect.asked);
        }
    }

    fn look_at(&mut self, k: &Kernel, thread: ThreadRef) {
        let prospect = self.prospects.entry(thread.uid()).or_default();
        let before = std::mem::take(&mut prospect.numbers);
        prospect.on = None;
        let is_kept = thread.special.get() & special::STATE_KEPT != 0;
        if is_kept && prospect.kept.is_empty() {
            // Numbers of a shuttle that was taken from it meanwhile lie beside its own.
            let home = self.places.get(&thread.home_ref().0).into_iter().flat_map(|place| &place.numbers);
            prospect.kept = before.iter().chain(home).copied().collect();
        }
        match thread.stake() {
            Stake::Claims(to) if thread.errand.get() != Errand::Ipc || thread.wait() == Wait::Foreign(to) => {
                prospect.asked.insert(to);
                prospect.trusted.insert(to);
            }
            Stake::Holds => {
                let on = shuttle_of(k, thread);
                let place = self.places.entry(on).or_default();
                place.passers.insert(thread.uid());
                // When it goes on, it brings to the shuttle what was kept, and may pass that on without having run.
                place.numbers.extend(&prospect.kept);
                (prospect.on, prospect.numbers) = (Some(on), place.numbers.clone());
            }
            Stake::Claims(_) | Stake::Nothing => {}
        }
        if !is_kept {
            prospect.kept.clear();
        }
        let word = thread.hot.shuttle.get().0;
        if matches!(thread.stake(), Stake::Claims(_)) && is_valid(k, word) {
            let place = self.places.entry(word).or_default();
            if place.numbers.is_empty() {
                // It took the shuttle back and lent it anew, by its fault, in the middle of a step.
                place.passers.insert(thread.uid());
            }
        }
    }

    /// A thread is in user mode, and looks. `message`: the registers `rax` and `rdx` that it finds.
    pub fn runs(&mut self, k: &Kernel, thread: ThreadRef, message: (u64, u64)) {
        let (uid, found) = (thread.uid(), registers());
        let (by, how) = self.left[found as usize];
        if how == Departure::Given {
            return;
        }
        let Some(&own) = self.last.get(&uid) else {
            return assert!(found == 0, "{uid:?}, which begins, finds what {by:?} left");
        };
        let (_, departure) = self.left[own as usize];
        let what = format!("{uid:?}, which left by {departure:?}, finds what {by:?} left by {how:?}");
        if departure == Departure::Keeps {
            return assert!(found == own, "{what}");
        }
        if by == uid || found == 0 {
            return;
        }
        assert!(self.may_find(uid, found), "{what}");
        if departure == Departure::Hands
            && let Some(sender) = named_sender(k, thread, message)
        {
            let is_pager = |of: Uid| self.prospects.get(&of).is_some_and(|it| it.trusted.contains(&by));
            let is_right = by == sender || is_pager(uid) || is_pager(sender);
            assert!(is_right, "{what}, with a message of {sender:?}");
        }
    }

    /// Whether the rule lets a thread find this number of another one.
    fn may_find(&self, thread: Uid, found: u64) -> bool {
        let by = self.left[found as usize].0;
        let prospect = &self.prospects[&thread];
        if prospect.numbers.contains(&found) || prospect.asked.contains(&by) {
            return true;
        }
        prospect.on.is_some_and(|on| self.places[&on].passers.contains(&by))
    }
}

/// Reference of the shuttle that a thread is on.
fn shuttle_of(k: &Kernel, thread: ThreadRef) -> u64 {
    let shuttle = thread.hot.shuttle.get().0;
    if is_valid(k, shuttle) { shuttle } else { thread.home_ref().0 }
}

/// Whether a shuttle is still named by this reference.
fn is_valid(k: &Kernel, shuttle: u64) -> bool {
    k.owner(ShuttleRef(shuttle)).is_some()
}

/// Sender of the message that a thread has got, if that is who the registers say: no chief shows messages of others within one clan.
fn named_sender(k: &Kernel, thread: ThreadRef, (rax, rdx): (u64, u64)) -> Option<Uid> {
    match Kind::from_eax(rax as u32)? {
        Kind::Reply | Kind::Request if rax as u32 & NOT_DIVERTED != 0 => {
            let sender = k.thread(Uid(rdx))?;
            (sender.uid().clan() == thread.uid().clan()).then_some(sender.uid())
        }
        _ => None,
    }
}
