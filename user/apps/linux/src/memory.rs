//! Frames of processes: pages of this program, which it maps to the tasks that page with it.

use alloc::vec::Vec;
use linux::frames::{Bytes, Frame};
use linux::memory::Rights;
use rt::page::{PAGE, Page};
use rt::sys::{self, Fpage};

/// Pages by the numbers of frames, made when they are first used.
#[derive(Debug)]
pub struct Pages {
    pages: Vec<Page>,
    count: u32,
}

impl Pages {
    /// At most so many.
    pub const fn new(count: u32) -> Pages {
        Pages { pages: Vec::new(), count }
    }

    /// Numbers are used from 0 on, one after the other.
    fn make(&mut self, frame: Frame) {
        while self.pages.len() <= frame.0 as usize {
            // The heap panics where there is no memory, too.
            self.pages.push(Page::zeroed().expect("no memory for a page that was counted on"));
        }
    }

    fn page(&self, frame: Frame) -> &Page {
        &self.pages[frame.0 as usize]
    }

    /// A frame with these rights, to be mapped.
    pub fn fpage(&self, frame: Frame, rights: Rights) -> Fpage {
        let of = [(Rights::READ, sys::Rights::R), (Rights::WRITE, sys::Rights::W), (Rights::EXECUTE, sys::Rights::X)];
        let bits = of.into_iter().filter(|(right, _)| rights.has(*right)).fold(0, |all, (_, right)| all | right.0);
        // The processor shows to be read what may be written or executed.
        self.part(frame, sys::Rights(bits | sys::Rights::R.0))
    }

    fn part(&self, frame: Frame, rights: sys::Rights) -> Fpage {
        Fpage::memory(self.page(frame).address() as u64, PAGE.ilog2(), rights)
    }

    /// Takes rights to a page from all that have it. A page of one's own can always be taken back.
    fn take_back(&self, frame: Frame, rights: sys::Rights) {
        let _ = sys::flush(self.part(frame, rights)).expect("flush failed");
    }
}

impl Bytes for Pages {
    fn count(&self) -> u32 {
        self.count
    }

    fn clear(&mut self, frame: Frame) {
        self.make(frame);
        self.page(frame).clear(0);
    }

    fn copy(&mut self, from: Frame, to: Frame) {
        self.make(to);
        self.page(to).copy_from(self.page(from));
    }

    fn read(&self, frame: Frame, at: usize, to: &mut [u8]) {
        self.page(frame).read(at, to);
    }

    fn write(&mut self, frame: Frame, at: usize, from: &[u8]) {
        self.page(frame).write(at, from);
    }

    fn protect(&mut self, frame: Frame) {
        self.take_back(frame, sys::Rights::W);
    }

    fn withdraw(&mut self, frame: Frame) {
        self.take_back(frame, sys::Rights::RWX);
    }
}
