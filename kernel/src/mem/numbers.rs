//! Ports and interrupt lines: spaces of numbers, each of which maps only to itself.
//!
//! They lie in small tables of 512 node slots; a task's port table leads to up to 128 of them. σ0 has all numbers from the machine,
//! and keeps the root of each: its tables cannot express that one is gone.

use super::at::{At, frames};
use super::budget::Stop;
use super::pool::{Frame, Pool, Words};
use super::small;
use super::step::Step;
use super::walk::Walk;
use crate::kernel::Kernel;
use crate::object::TaskRef;
use crate::object::mapping::{Node, NodeSlot, NodeTable};
use abi::{Fpage, Rights, Space};
use core::cell::Cell;

/// Slot of the node of a port or line, whether there is one or not. With `create` tables are made for it.
fn place(
    pool: &Pool,
    task: TaskRef,
    (space, number): (Space, u64),
    create: bool,
) -> Option<&'static NodeSlot> {
    let root = if space == Space::Port { &task.ports } else { &task.interrupts };
    let frame = |cell: &Cell<u64>| -> Option<Frame> {
        if cell.get() == 0 && create {
            cell.set(task.take_zeroed_frame(pool)?.0);
        }
        (cell.get() != 0).then_some(Frame(cell.get()))
    };
    let mut table = frame(root)?;
    if space == Space::Port {
        table = frame(&pool.at::<Words>(table).0[number as usize / 512])?;
    }
    Some(&pool.at::<NodeTable>(table).0[number as usize % 512])
}

/// Whether `task` holds an interrupt line.
pub fn holds_interrupt(k: &Kernel, task: TaskRef, line: u8) -> bool {
    holds(k, task, (Space::Interrupt, line as u64))
}

/// Whether `task` holds a port.
pub fn holds_port(k: &Kernel, task: TaskRef, port: u16) -> bool {
    holds(k, task, (Space::Port, port as u64))
}

fn holds(k: &Kernel, task: TaskRef, which: (Space, u64)) -> bool {
    task.is_sigma0.get() || place(&k.pool, task, which, false).is_some_and(|slot| slot.get().is_some())
}

/// Makes the port permission bitmap of `task`, in which everything is denied (for σ0: allowed).
pub fn ensure_bitmap(pool: &Pool, task: TaskRef) -> Option<()> {
    if task.has_ports() {
        return Some(());
    }
    let first = task.take_zeroed_frame(pool)?;
    let Some(second) = task.take_zeroed_frame(pool) else {
        task.give_back_zeroed_frame(pool, first);
        return None;
    };
    let frames = [first, second];
    for (cell, frame) in task.port_bitmap.iter().zip(frames) {
        if !task.is_sigma0.get() {
            pool.at::<Words>(frame).0.iter().for_each(|word| word.set(!0));
        }
        cell.set(frame.0);
    }
    Some(())
}

fn set_port_denied(pool: &Pool, task: TaskRef, port: u64, denied: bool) {
    let frame = Frame(task.port_bitmap[(port >> 15) as usize].get());
    let word = &pool.at::<Words>(frame).0[(port >> 6) as usize % 512];
    let bit = 1 << (port % 64);
    word.set(if denied { word.get() | bit } else { word.get() & !bit });
}

/// A port or line that its owner is to lose.
pub struct Lost {
    owner: TaskRef,
    number: u64,
    is_port: bool,
}

impl Lost {
    /// Port or line of a node, which is about to go.
    pub fn of(node: &Node) -> Lost {
        Lost { owner: node.task(), number: node.address(), is_port: node.is_port() }
    }

    /// Tells the owner's side that the node is gone: the bitmap denies the port, or the line is detached.
    pub fn tell(self, k: &Kernel) {
        if self.is_port {
            set_port_denied(&k.pool, self.owner, self.number, true);
        } else {
            k.line_lost(self.owner, self.number as u8);
        }
    }
}

/// The giver's node, made if the giver is σ0, which has everything. `None` if there is nothing to give.
fn giver(step: &Step, space: Space, from: At) -> Result<Option<&'static Node>, Stop> {
    let is_sigma0 = from.task.is_sigma0.get();
    let Some(slot) = place(step.pool(), from.task, (space, from.address), is_sigma0) else {
        return if is_sigma0 { Err(Stop::NoMemory) } else { Ok(None) };
    };
    if slot.get().is_none() && is_sigma0 {
        let node = from.task.slabs.take(step.pool(), from.task).ok_or(Stop::NoMemory)?;
        node.fill(from.address, None, slot).plant(space);
    }
    Ok(slot.get())
}

/// Maps one port or line.
pub fn map(step: &mut Step, space: Space, (from, to): (At, At), rights: Rights) -> Result<(), Stop> {
    let (before, which) = (frames(from.task, to.task), (space, from.address));
    // Tables are a step of their own.
    let lacks_table = |step: &Step, at: At| place(step.pool(), at.task, which, false).is_none();
    if from.task.is_sigma0.get() && lacks_table(step, from) {
        step.begin_alone()?;
    }
    if giver(step, space, from)?.is_none() {
        return Ok(());
    }
    if lacks_table(step, to) {
        step.begin_alone()?;
    }
    let slot = place(step.pool(), to.task, which, true).ok_or(Stop::NoMemory)?;
    if frames(from.task, to.task) > before {
        return step.stop();
    }
    if from == to || rights.and(Rights::RW) == Rights::NONE {
        return Ok(());
    }
    if space == Space::Port && !to.task.has_ports() {
        step.begin_alone()?;
        ensure_bitmap(step.pool(), to.task).ok_or(Stop::NoMemory)?;
        return step.stop();
    }
    if let Some(old) = slot.get() {
        Walk::clear(old).run(step)?;
    }
    // The giver's mapping may have been derived from the one that was just replaced.
    let Some(node) = giver(step, space, from)? else { return Ok(()) };
    let child = to.task.slabs.take(step.pool(), to.task).ok_or(Stop::NoMemory)?;
    child.fill(to.address, None, slot);
    if space == Space::Port {
        set_port_denied(step.pool(), to.task, to.address, false);
    }
    if rights.has(Rights::GRANT) && !from.task.is_sigma0.get() {
        small::grant(step.k(), node, child)
    } else {
        node.add_child(child)
    }
    Ok(())
}

/// Takes ports or lines back. A port or line has one right, which goes with reading or writing.
#[inline(never)]
pub fn flush(step: &mut Step, task: TaskRef, (page, own): (Fpage, bool), at: &mut u64) -> Result<(), Stop> {
    let (space, first) = (page.space(), page.base() >> 12);
    let end = first + (1 << page.log2());
    *at = (*at).max(first);
    while *at < end && page.rights().and(Rights::RW) != Rights::NONE {
        step.begin(1)?;
        match place(step.pool(), task, (space, *at), false) {
            Some(slot) => {
                if let Some(node) = slot.get() {
                    let own = own && !(task.is_sigma0.get() && node.depth() == 0);
                    Walk { own, ..Walk::clear(node) }.run(step)?;
                }
                *at += 1;
            }
            None if space == Space::Interrupt || task.ports.get() == 0 => break,
            None => *at = (*at | 511) + 1,
        }
    }
    Ok(())
}

/// Whether a task may have ports or interrupt lines: it has tables for them.
pub fn has_tables(task: TaskRef) -> bool {
    task.ports.get() | task.interrupts.get() != 0
}

/// Gives back the tables of `task`'s port and interrupt spaces, which are empty. False if there were none.
pub fn release(k: &Kernel, task: TaskRef) -> bool {
    let before = task.used.get();
    if task.ports.get() != 0 {
        for cell in &k.pool.at::<Words>(Frame(task.ports.get())).0 {
            if cell.get() != 0 {
                task.give_back_zeroed_frame(&k.pool, Frame(cell.replace(0)));
            }
        }
        task.give_back_zeroed_frame(&k.pool, Frame(task.ports.replace(0)));
    }
    if task.interrupts.get() != 0 {
        task.give_back_zeroed_frame(&k.pool, Frame(task.interrupts.replace(0)));
    }
    for cell in &task.port_bitmap {
        if cell.get() != 0 {
            task.give_back_frame(&k.pool, Frame(cell.replace(0)));
        }
    }
    task.used.get() != before
}
