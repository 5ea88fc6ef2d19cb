//! Frames of processes: memory from this program's own manager, which it maps to the tasks that page with it.

use alloc::vec::Vec;
use linux::frames::{Bytes, Frame};
use linux::memory::Rights;
use rt::frames::{Pool, Shared, Upstream};
use rt::sys::{self, Fpage, Uid};

/// Log2 of the bytes that are asked for at once.
const CHUNK_LOG2: u32 = 20;

/// A page of zeros.
static ZEROS: [u8; linux::frames::PAGE as usize] = [0; linux::frames::PAGE as usize];

/// Pages by the numbers of frames, made when they are first used.
#[derive(Debug)]
pub struct Pages {
    pages: Vec<Shared>,
    pool: Pool<Upstream>,
    count: u32,
}

/// Rights of the machine. What may be written or executed can be read.
pub fn to_machine(rights: Rights) -> sys::Rights {
    let kinds = [(Rights::WRITE, sys::Rights::W), (Rights::EXECUTE, sys::Rights::X)];
    let wanted = kinds.into_iter().filter(|(right, _)| rights.has(*right));
    wanted.fold(sys::Rights::R, |all, (_, right)| all.or(right))
}

/// Rights of an access.
pub fn from_machine(access: sys::Rights) -> Rights {
    let kinds =
        [(sys::Rights::R, Rights::READ), (sys::Rights::W, Rights::WRITE), (sys::Rights::X, Rights::EXECUTE)];
    let wanted = kinds.into_iter().filter(|(right, _)| access.has(*right));
    wanted.fold(Rights::NONE, |all, (_, right)| all | right)
}

impl Pages {
    /// At most so many, from a memory manager.
    pub const fn new(manager: Uid, count: u32) -> Pages {
        Pages { pages: Vec::new(), pool: Pool::new(Upstream(manager), CHUNK_LOG2), count }
    }

    fn page(&self, frame: Frame) -> &Shared {
        &self.pages[frame.0 as usize]
    }

    /// A frame with these rights, to be mapped.
    pub fn fpage(&self, frame: Frame, rights: Rights) -> Fpage {
        self.page(frame).fpage(to_machine(rights))
    }
}

impl Bytes for Pages {
    fn count(&self) -> u32 {
        self.count
    }

    fn make(&mut self, frame: Frame) -> bool {
        // Numbers are used from 0 on, one after the other.
        while self.pages.len() <= frame.0 as usize {
            let Some(page) = self.pool.take() else { return false };
            self.pages.push(page.share());
        }
        true
    }

    fn clear(&mut self, frame: Frame) {
        self.page(frame).write(0, &ZEROS);
    }

    fn copy(&mut self, from: Frame, to: Frame) {
        if from != to {
            self.page(to).copy_from(self.page(from));
        }
    }

    fn copy_part(&mut self, from: (Frame, usize), to: (Frame, usize), len: usize) {
        if from.0 != to.0 {
            self.page(to.0).copy_part(to.1, (self.page(from.0), from.1), len);
            return;
        }
        let mut bytes = [0; linux::frames::PAGE as usize];
        let bytes = &mut bytes[..len.min(linux::frames::PAGE as usize)];
        self.read(from.0, from.1, bytes);
        self.write(to.0, to.1, bytes);
    }
    fn read(&self, frame: Frame, at: usize, to: &mut [u8]) {
        self.page(frame).read(at, to);
    }

    fn write(&mut self, frame: Frame, at: usize, from: &[u8]) {
        self.page(frame).write(at, from);
    }

    fn protect(&mut self, frame: Frame) {
        self.page(frame).take_rights(sys::Rights::W);
    }

    fn withdraw(&mut self, frame: Frame) {
        self.page(frame).take_rights(sys::Rights::RWX);
    }
}
