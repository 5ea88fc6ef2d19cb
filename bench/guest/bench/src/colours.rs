//! Page colours (row C14): a program reads all its pages, pass after pass. What it finds in the second-level cache depends on the frames that they
//! have.
//!
//! The chief is its pager, and has frames from the pool of the memory manager, [`rt::frames::Pool`], over a block of its own. So the figures depend on
//! nothing that runs besides. Before each measurement all frames come back, in an order of no order.

use crate::{ARGUMENTS, Chief, Entry, Failure, QUOTA, Result, address};
use alloc::vec::Vec;
use core::ptr::addr_of;
use rt::frames::{Colours, Frame, Pool, Shared, Upstream};
use sys::abi::PAGE_SIZE;
use sys::{Error, Rights, TaskId, Uid};

unsafe extern "C" {
    fn bench_colours();
}

/// Bytes of a loop; those of regions lie one behind another.
const LOOP_BYTES: u64 = 64;

/// Pages that the program has, in the order of the regions.
const PAGES: [u64; 5] = [32, 48, 64, 96, 128];

/// Passes through them; the last one is not measured.
const PASSES: u64 = 106;

/// Bytes of a line.
const LINE: u64 = 64;

/// Where the pages are: the start of a table of its own, and a page of colour 0.
const PLACE: u64 = 0x90_0000_0000;

/// Log2 of the memory for frames, and their number: sixteen times what the program has at most.
const BLOCK_LOG2: u32 = 23;
const FRAMES: usize = 1 << (BLOCK_LOG2 - 12);

/// Colours that a pager knows which serves all processors: those of a way of 256 KiB.
const MANY: Colours = Colours::new(64).unwrap();

/// Colours of a way of 64 KiB. Pages that all have one of them share it on every processor that has more.
const FEW: Colours = Colours::new(16).unwrap();

/// Frames that the program gets.
#[derive(Clone, Copy)]
enum Layout {
    /// Frames of its pages' colours.
    Coloured,
    /// Frames that come, after all have come back in an order that follows from this number.
    Used(u64),
    /// Frames of one colour.
    Worst,
}

/// Layouts, in the order of the regions.
const LAYOUTS: [Layout; 6] =
    [Layout::Coloured, Layout::Used(1), Layout::Used(2), Layout::Used(3), Layout::Used(4), Layout::Worst];

impl Chief {
    pub fn colours_suite(&self) -> Result<()> {
        let mut pool = Pool::new(Upstream(rt::home()), BLOCK_LOG2);
        let task = sys::task_create(QUOTA, self.priority)?;
        let all = LAYOUTS.into_iter().flat_map(|layout| PAGES.map(|pages| (layout, pages)));
        for (region, (layout, pages)) in all.enumerate() {
            arrange(&mut pool, layout)?;
            let frames: Option<Vec<Shared>> =
                (0..pages).map(|page| Some(frame(&mut pool, layout, page)?.share())).collect();
            let frames = frames.ok_or(Error::NoMemory)?;
            self.read_all(task, region as u64, &frames)?;
            frames.into_iter().for_each(|frame| pool.put(frame.reclaim()));
        }
        Ok(sys::task_destroy(task)?)
    }

    /// A program with these frames goes through all of them.
    fn read_all(&self, task: TaskId, region: u64, frames: &[Shared]) -> Result<()> {
        let lines = frames.len() as u64 * (PAGE_SIZE / LINE);
        // SAFETY: no client runs now.
        unsafe { (ARGUMENTS.iterations, ARGUMENTS.block, ARGUMENTS.dope) = (PASSES, PLACE, lines) };
        let entry = address(bench_colours as Entry) + region * LOOP_BYTES;
        let thread = sys::thread_create(task, self.priority, self.uid, Uid::NIL)?;
        // SAFETY: the loop uses no stack, and reads no memory but what it is given.
        unsafe { sys::thread_start(thread, entry, 0, addr_of!(ARGUMENTS) as u64) }?;
        let report = self.serve_with(|page| {
            let number = page.checked_sub(PLACE)? / PAGE_SIZE;
            Some(frames.get(number as usize)?.fpage(Rights::R))
        })?;
        sys::thread_destroy(thread)?;
        let [left, ..] = report.words;
        if left != 0 { Err(Failure::Report(left, 0)) } else { Ok(()) }
    }
}

/// Takes all frames, and gives them back in another order.
fn arrange(pool: &mut Pool<Upstream>, layout: Layout) -> Result<()> {
    let all: Option<Vec<Frame>> = (0..FRAMES).map(|_| pool.take()).collect();
    let mut all = all.ok_or(Error::NoMemory)?;
    // Sorting first makes the order that of each run, whatever was before.
    all.sort_by_key(Frame::physical);
    let mut state = if let Layout::Used(number) = layout { number } else { 0 };
    for left in (1..all.len()).rev() {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        all.swap(left, (state >> 33) as usize % (left + 1));
    }
    if let Layout::Worst = layout {
        all.sort_by_key(|frame| FEW.of(frame.physical()) == 0);
    }
    all.into_iter().for_each(|frame| pool.put(frame));
    Ok(())
}

/// A frame for a page.
fn frame(pool: &mut Pool<Upstream>, layout: Layout, page: u64) -> Option<Frame> {
    match layout {
        Layout::Coloured => pool.take_of(MANY, page * PAGE_SIZE),
        Layout::Used(_) | Layout::Worst => pool.take(),
    }
}
