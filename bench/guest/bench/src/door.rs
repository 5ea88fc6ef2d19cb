//! Calls through doors, and what becomes of doors.

use crate::idl::STUB_SMALL;
use crate::{ARGUMENTS, Chief, Entry, Failure, ITERATIONS, QUOTA, Result, bench_many_pages, mark, touch};
use sys::{Dope, Fpage, Ipc, Kind, Rights, TaskId, Timeout, Uid};

unsafe extern "C" {
    fn bench_door_server();
    fn bench_door_link();
    fn bench_door_client_w0();
    fn bench_door_client_w2();
    fn bench_door_client_w8();
    fn bench_door_client_intra();
    fn bench_door_client_chain();
    fn bench_door_invalid();
    fn bench_door_create();
    fn bench_door_giver();
    fn bench_door_small_server();
    fn bench_door_client_small();
    fn bench_door_client_64();
    fn bench_door_client_1024();
    fn bench_door_client_5120();
    fn bench_door_client_pass();
    fn bench_door_release_server();
    fn bench_door_client_bulk_1();
    fn bench_door_client_bulk_16();
    fn bench_door_bulk_server();
}

/// A thread's stack: the loops keep nothing on it but their argument.
#[repr(C, align(16))]
struct Stack([u8; 64]);

/// Most threads of the suite at a time.
const THREADS: usize = 8;

static mut STACKS: [Stack; THREADS] = [const { Stack([0; 64]) }; THREADS];

/// Blocks of a client and of a server, in pages of their own.
#[repr(C, align(4096))]
struct Block([u64; 1024]);

static mut FROM: Block = Block([0; 1024]);
static mut TO: Block = Block([0; 1024]);

/// Where a server gets pages.
const PLACE: u64 = 0x40a0_0000;

/// A door identifier of this program's, from which those of others come.
fn identifier(number: u32) -> Fpage {
    Fpage::doors(number, 0, Rights::RW)
}

/// Things that a call carries beside its words.
#[derive(Clone, Copy)]
enum Carried {
    /// A block of direct words, of so many bytes.
    Bytes(u64),
    /// An item, for a window.
    Item(Fpage, Fpage),
}

pub(crate) struct Doors<'a> {
    chief: &'a Chief,
    threads: usize,
}

impl<'a> Doors<'a> {
    pub(crate) fn new(chief: &'a Chief) -> Doors<'a> {
        Doors { chief, threads: 0 }
    }

    fn start(&mut self, task: TaskId, entry: Entry) -> Result<Uid> {
        // SAFETY: each thread has a stack of its own.
        let top = unsafe { (&raw mut STACKS).cast::<Stack>().add(self.threads % THREADS + 1) } as u64;
        self.threads += 1;
        self.chief.start_on(task, entry, top)
    }

    /// Hands identifier `number` to a thread that asks for one.
    pub(crate) fn give(&self, thread: Uid, number: u32) -> Result<()> {
        self.chief.settle(thread)?;
        Ok(sys::send_item(thread, 0, [0; 8], (identifier(number), 0), Timeout::NEVER)?)
    }

    /// Takes the identifier that a new server hands out, as `number`.
    pub(crate) fn take(&self, server: Uid, number: u32) -> Result<()> {
        loop {
            let window = identifier(number);
            let message = (Ipc { from: server, window, ..Ipc::NONE }).run()?;
            let Some(message) = message else { return Ok(()) };
            match message.kind {
                Kind::Fault => {}
                Kind::Reply => return Ok(()),
                _ => return Err(Failure::Unexpected(message)),
            }
            let page = message.words[0] & !0xfff;
            touch(page, Rights(message.words[0] as u8 & 7));
            let item = (Fpage::memory(page, 12, Rights::RWX), page);
            sys::send_item(server, 0, [0; 8], item, Timeout::ZERO)?;
        }
    }

    /// A client that calls through identifier `number` until it reports.
    fn client(&mut self, task: TaskId, entry: Entry, number: u32) -> Result<()> {
        let client = self.start(task, entry)?;
        self.give(client, number)?;
        let report = self.chief.serve()?;
        sys::thread_destroy(client)?;
        match Kind::from_eax(report.words[0] as u32) {
            Some(Kind::DoorReturn) => Ok(()),
            _ => Err(Failure::Report(report.words[0], report.words[1])),
        }
    }

    /// Calls with more than words: with a block of so many bytes, or with an item for a window.
    fn carrying(&mut self, tasks: (TaskId, TaskId), entries: (Entry, Entry), what: Carried) -> Result<()> {
        const NUMBER: u32 = 5;
        let server = self.start(tasks.1, entries.1)?;
        self.take(server, NUMBER)?;
        self.chief.settle(server)?;
        let client = self.start(tasks.0, entries.0)?;
        let arguments = match what {
            Carried::Bytes(bytes) => {
                let room = Dope::room(1024, 0, 0);
                sys::thread_set_block(server, &raw const TO as u64, room, Timeout::NEVER)?;
                (&raw const FROM as u64, Dope::used(bytes / 8, 0, 0).0)
            }
            Carried::Item(item, window) => {
                sys::thread_set_window(server, window)?;
                sys::thread_set_window(client, item)?;
                (item.0, window.with_rights(Rights::RW.or(Rights::GRANT)).0)
            }
        };
        // SAFETY: nobody uses them now.
        unsafe { (ARGUMENTS.block, ARGUMENTS.dope) = arguments };
        self.give(client, NUMBER)?;
        let report = self.chief.serve()?;
        sys::thread_destroy(client)?;
        sys::thread_destroy(server)?;
        match Kind::from_eax(report.words[0] as u32) {
            Some(Kind::DoorReturn) => Ok(()),
            _ => Err(Failure::Report(report.words[0], report.words[1])),
        }
    }

    /// The rows of calls with more than words.
    fn all_carrying(&mut self, near: TaskId) -> Result<()> {
        let pages = (&raw const bench_many_pages as u64).next_multiple_of(16 << 12);
        let moved = |log2| {
            let (from, to) = (Fpage::memory(pages, log2, Rights::RW), Fpage::memory(PLACE, log2, Rights::RW));
            Carried::Item(from.with_rights(Rights::RW.or(Rights::GRANT)), to)
        };
        let passed = Carried::Item(identifier(1), identifier(2));
        let rows: [(Entry, Entry, Carried); 6] = [
            (bench_door_client_64, bench_door_server, Carried::Bytes(64)),
            (bench_door_client_1024, bench_door_server, Carried::Bytes(1024)),
            (bench_door_client_5120, bench_door_server, Carried::Bytes(5120)),
            (bench_door_client_pass, bench_door_release_server, passed),
            (bench_door_client_bulk_1, bench_door_bulk_server, moved(12)),
            (bench_door_client_bulk_16, bench_door_bulk_server, moved(16)),
        ];
        for (client, server, what) in rows {
            let far = sys::task_create(QUOTA, self.chief.priority)?;
            self.carrying((near, far), (client, server), what)?;
            sys::task_destroy(far)?;
        }
        Ok(())
    }

    /// The last identifier of a door goes, its server is told so, and returns.
    fn unreferenced(&mut self, task: TaskId) -> Result<()> {
        const REGION: u8 = 57;
        const NUMBER: u32 = 4;
        let giver = self.start(task, bench_door_giver)?;
        for _ in 0..ITERATIONS {
            self.take(giver, NUMBER)?;
            // It goes on to its next.
            sys::thread_switch(Uid::NIL)?;
            mark::<1, REGION>();
            // SAFETY: an identifier is no memory.
            unsafe { sys::flush_self(identifier(NUMBER))? };
            sys::thread_switch(Uid::NIL)?;
            mark::<2, REGION>();
        }
        Ok(sys::thread_destroy(giver)?)
    }
}

impl Chief {
    pub fn door_suite(&self) -> Result<()> {
        let mut doors = Doors::new(self);
        let tasks = [0; 4].map(|_| sys::task_create(QUOTA, self.priority));
        let [near, far, third, fourth] = tasks;
        let (near, far, third, fourth) = (near?, far?, third?, fourth?);
        let server = doors.start(far, bench_door_server)?;
        doors.take(server, 1)?;
        self.settle(server)?;
        doors.client(near, bench_door_client_w0, 1)?;
        doors.client(near, bench_door_client_w2, 1)?;
        doors.client(near, bench_door_client_w8, 1)?;
        doors.client(far, bench_door_client_intra, 1)?;
        let apart = sys::task_create(QUOTA, self.priority)?;
        let by_hand = doors.start(apart, bench_door_small_server)?;
        doors.take(by_hand, 7)?;
        self.settle(by_hand)?;
        doors.client(near, bench_door_client_small, 7)?;
        sys::task_destroy(apart)?;
        self.by_door(&[STUB_SMALL])?;
        self.alone(near, bench_door_invalid, self.uid, Uid::NIL)?;
        self.alone(near, bench_door_create, self.uid, Uid::NIL)?;

        // near calls fourth, which calls third, which calls far.
        for (task, from, to) in [(third, 1, 2), (fourth, 2, 3)] {
            let link = doors.start(task, bench_door_link)?;
            doors.give(link, from)?;
            doors.take(link, to)?;
            self.settle(link)?;
        }
        doors.client(near, bench_door_client_chain, 3)?;

        doors.unreferenced(far)?;
        doors.all_carrying(near)?;
        for task in [near, far, third, fourth] {
            sys::task_destroy(task)?;
        }
        Ok(())
    }
}
