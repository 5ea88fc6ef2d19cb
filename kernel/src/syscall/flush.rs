//! `flush`: takes mapped pages, ports, lines and identifiers back, in steps.

use crate::args::{Args, done};
use crate::kernel::Kernel;
use crate::mem::budget::Stop;
use crate::mem::doors;
use crate::mem::space::{self, Flush};
use crate::object::ThreadRef;
use crate::object::thread::Operation;
use crate::param;
use crate::sched::Next;
use abi::call::{DOORS_MAX, FLUSH_SELF};
use abi::{Error, Fpage, Rights};

/// A flexpage of one identifier with the right to call, whatever its number.
const ONE_IDENTIFIER: u64 = Fpage::doors(0, 0, Rights::R).0;

/// A valid flexpage of one page of memory that is to be taken away altogether, and the bits that say so.
const PAGE: u64 = 12 << 4 | Rights::R.0 as u64;
const PAGE_MASK: u64 = !(USER_END_ALIGNED - 1) | Fpage::SPACE_AND_SIZE | Rights::R.0 as u64;

/// First address behind all that a flexpage may name.
const USER_END_ALIGNED: u64 = 1 << Fpage::WHOLE_LOG2;

const ONE_IDENTIFIER_MASK: u64 = Fpage::SPACE_AND_SIZE | Rights::R.0 as u64;

/// Budget of one step of a flush: two for each page, one to find it, and one to take it from its only other owner.
const FLUSH_BUDGET: usize = 2 * param::PREEMPTION_PAGES;

pub fn flush(k: &Kernel, current: ThreadRef) -> Next {
    let args = Args(&current.frame);
    let is_one = args.first() & ONE_IDENTIFIER_MASK == ONE_IDENTIFIER && args.second() == FLUSH_SELF;
    if is_one && args.first() >> 12 < DOORS_MAX as u64 {
        let (at, mut budget) = (args.first() >> 12, FLUSH_BUDGET);
        return match doors::flush_single(k, current.task(), at, &mut budget) {
            Ok(()) => flushed(current, 0),
            Err(stop) => stop_flush(k, current, stop, Operation::Flush { at, status: 0 }),
        };
    }
    if args.first() & PAGE_MASK == PAGE && args.second() & !FLUSH_SELF == 0 {
        let page = Fpage(args.first());
        let page = page.with_rights(page.rights().and(Rights::RWX));
        let mut status = 0;
        let what = Flush { task: current.task(), page, own: args.second() & FLUSH_SELF != 0 };
        return match space::flush_single(k, what, &mut status) {
            Some(()) => flushed(current, status),
            None => continue_flush(k, current, 0, status),
        };
    }
    if !Fpage(args.first()).is_valid() || args.second() & !FLUSH_SELF != 0 {
        return done(current, Err(Error::BadArgument));
    }
    step(k, current, 0, 0)
}

pub fn continue_flush(k: &Kernel, current: ThreadRef, at: u64, status: u64) -> Next {
    step(k, current, at, status)
}

#[inline(always)]
fn step(k: &Kernel, current: ThreadRef, mut at: u64, mut status: u64) -> Next {
    let args = Args(&current.frame);
    let page = Fpage(args.first());
    let page = page.with_rights(page.rights().and(Rights::RWX));
    let own = args.second() & FLUSH_SELF != 0;
    let what = Flush { task: current.task(), page, own };
    let mut budget = FLUSH_BUDGET;
    let result = space::flush(k, what, &mut at, &mut status, &mut budget);
    if let Err(stop) = result {
        return stop_flush(k, current, stop, Operation::Flush { at, status });
    }
    current.operation.set(Operation::None);
    flushed(current, status)
}

#[inline(always)]
fn flushed(current: ThreadRef, status: u64) -> Next {
    Args(&current.frame).give([status]);
    done(current, Ok(()))
}

#[cold]
fn stop_flush(k: &Kernel, current: ThreadRef, why: Stop, rest: Operation) -> Next {
    if why == Stop::NoMemory {
        current.operation.set(Operation::None);
        return done(current, Err(Error::NoMemory));
    }
    current.operation.set(rest);
    k.set_busy(current);
    Next::Same
}
