//! Calls through doors, and what becomes of doors.

use crate::{Chief, Entry, Failure, ITERATIONS, QUOTA, Result, mark, touch};
use sys::{Fpage, Ipc, Kind, Rights, TaskId, Timeout, Uid};

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
}

/// A thread's stack: the loops keep nothing on it but their argument.
#[repr(C, align(16))]
struct Stack([u8; 64]);

/// Most threads of the suite at a time.
const THREADS: usize = 8;

static mut STACKS: [Stack; THREADS] = [const { Stack([0; 64]) }; THREADS];

/// A door identifier of this program's, from which those of others come.
fn identifier(number: u32) -> Fpage {
    Fpage::doors(number, 0, Rights::RW)
}

struct Doors<'a> {
    chief: &'a Chief,
    threads: usize,
}

impl Doors<'_> {
    fn start(&mut self, task: TaskId, entry: Entry) -> Result<Uid> {
        // SAFETY: each thread has a stack of its own.
        let top = unsafe { (&raw mut STACKS).cast::<Stack>().add(self.threads % THREADS + 1) } as u64;
        self.threads += 1;
        self.chief.start_on(task, entry, top)
    }

    /// Hands identifier `number` to a thread that asks for one.
    fn give(&self, thread: Uid, number: u32) -> Result<()> {
        self.chief.settle(thread)?;
        Ok(sys::send_item(thread, 0, [0; 8], (identifier(number), 0), Timeout::NEVER)?)
    }

    /// Takes the identifier that a new server hands out, as `number`.
    fn take(&self, server: Uid, number: u32) -> Result<()> {
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
        let mut doors = Doors { chief: self, threads: 0 };
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
        for task in [near, far, third, fourth] {
            sys::task_destroy(task)?;
        }
        Ok(())
    }
}
