//! Extended state: whoever leaves user mode fills the registers beside a message's with a new number, and looks which it finds when it runs again.
//!
//! After an interrupt, or a system call that is no ipc, a thread finds its own. After a message it finds its own, its partner's or the initial
//! state, but never what one left there who was interrupted. After a fault it finds its own, or what its pager
//! left.

use abi::call::{door_op, thread_op};
use abi::op::Op;
use abi::{Call, Uid};
use kernel::arch::extended::{registers, set_registers};
use kernel::object::ThreadRef;
use std::collections::{HashMap, HashSet};

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

/// Numbers that were left in the registers.
pub struct Owners {
    /// Thread that left each number, and its way; the number is an index.
    left: Vec<(Uid, Departure)>,
    /// Number that each thread left last.
    last: HashMap<Uid, u64>,
    /// Threads that have been the pager or handler of another.
    trusted: HashSet<Uid>,
}

impl Owners {
    /// Nobody has run yet: the registers are initial, which is the number 0.
    pub fn new() -> Owners {
        set_registers(0);
        Owners { left: vec![(Uid::NIL, Departure::Hands)], last: HashMap::new(), trusted: HashSet::new() }
    }

    /// A thread leaves user mode, with a number of its own in the registers.
    pub fn leaves(&mut self, thread: Uid, how: Departure) {
        let number = self.left.len() as u64;
        self.left.push((thread, how));
        self.last.insert(thread, number);
        set_registers(number);
    }

    /// A number for a state that is to be set: whoever has the registers then may find it.
    pub fn give(&mut self) -> u64 {
        self.left.push((Uid::NIL, Departure::Given));
        self.left.len() as u64 - 1
    }

    /// A thread is in user mode, and looks.
    pub fn runs(&mut self, thread: ThreadRef) {
        let uid = thread.uid();
        self.trusted.extend([thread.fault.pager.get(), thread.fault.handler.get()]);
        let found = registers();
        let (by, how) = self.left[found as usize];
        let Some(&own) = self.last.get(&uid) else {
            let is_right = found == 0 || how == Departure::Given;
            return assert!(is_right, "{uid:?}, which begins, finds what {by:?} left");
        };
        let (_, departure) = self.left[own as usize];
        // A pager in whose work a fault is broken off has shown its registers to the thread that faulted, and that may hand them on.
        let is_shown = how != Departure::Keeps || self.trusted.contains(&by);
        let is_right = found == own
            || how == Departure::Given
            || departure != Departure::Keeps && (is_shown || by == uid);
        assert!(is_right, "{uid:?}, which left by {departure:?}, finds what {by:?} left by {how:?}");
    }
}
