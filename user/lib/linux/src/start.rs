//! How the first process of a sandbox begins.

use crate::calls::processes::limits;
use crate::errno::Result;
use crate::frames::Bytes;
use crate::machine::{Machine, Space, Tid};
use crate::memory::Memory;
use crate::open::{Descriptors, Object, Open};
use crate::process::{Choices, FilesystemInformation, PROCESS_BYTES, Process, Room, SIGNALS, Status, Thread};
use crate::signal::{Action, Pending, Set};
use crate::special::{Device, Special};
use crate::system::System;
use crate::terminals::SYSTEM;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use linux_raw_sys::general::O_RDWR;
use vfs::FileSystem;

/// The first process.
pub const FIRST: Tid = 1;

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    /// Begins the first process, whose descriptors 0 to 2 are the terminal.
    pub fn begin(
        &mut self,
        path: &[u8],
        arguments: Vec<Vec<u8>>,
        environment: &[Vec<u8>],
        directory: &[u8],
    ) -> Result<()> {
        let tid = self.number();
        self.budget.begin(tid, 0);
        self.budget.serve(tid);
        let mut descriptors = Descriptors::within(&self.budget);
        let mut share = self.budget.empty();
        share.set(PROCESS_BYTES[0]);
        let inode = Special::Device(Device::Console).inode();
        let terminal = Open::new(Object::Terminal { inode, number: SYSTEM }, O_RDWR);
        for _ in 0..3 {
            descriptors.add(terminal.clone(), false, 0, 3)?;
        }
        let process = Process {
            parent: 0,
            group: tid,
            session: tid,
            threads: Vec::from([tid]),
            room: Rc::new(RefCell::new(Room { space: Space(0), memory: Memory::default() })),
            descriptors,
            filesystem: Rc::new(RefCell::new(FilesystemInformation::first(directory))),
            actions: [Action::default(); SIGNALS],
            pending: Pending::within(self.budget.empty()),
            owners: Default::default(),
            has_no_new_rights: false,
            choices: Choices::default(),
            limits: limits(),
            name: Vec::new(),
            program: Vec::new(),
            image: None,
            arguments: Default::default(),
            auxiliary: Default::default(),
            arguments_share: None,
            share,
            ended: None,
            stopped: None,
            news: None,
            exit_signal: 0,
            is_adopted: false,
            is_reaper: false,
            terminal: Some(SYSTEM),
            left_group: 0,
            has_begun: false,
            programs: 0,
            death_signal: 0,
            alarm: (None, 0),
            used: [0; 2],
            since: self.machine.now(),
        };
        self.processes.insert(tid, process);
        self.threads.insert(tid, Thread::new(tid, Set(0)));
        self.store.view.borrow_mut().processes.insert(tid, Default::default());
        let line = self.terminals.line(SYSTEM)?;
        (line.session, line.foreground) = (tid, tid);
        let begun = self.find_program(tid, path.to_vec(), arguments).and_then(|program| {
            let begun = self.begin_program(tid, &program, environment);
            self.let_files_go(&program);
            begun
        });
        if begun.is_err() {
            // Nothing of it is left.
            self.end_process(tid, Status::exited(0));
            self.processes.remove(&tid);
            (self.ended, self.next) = (None, 0);
            self.losses.clear();
        }
        begun
    }
}
