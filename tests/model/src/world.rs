//! A world: a simulated machine with a kernel, the first task, and the processor on its first thread.
//!
//! What a user does between two entries into the kernel is done here by setting the registers of the current thread
//! in its frame. [`World::system_call`] and its sisters then do what the entry code of a real machine does, and go
//! on until the processor is back in user mode or idle.

use abi::call::{FLAGS, task_op, thread_op};
use abi::op;
use abi::{Call, Fpage, Rights, TaskId, Timeout, Uid};
use kernel::arch::{self, tlb};
use kernel::kernel::Kernel;
use kernel::mem::plan::Plan;
use kernel::mem::pool::Pool;
use kernel::mem::space::{self, Flush, Progress};
use kernel::object::queue::Queue;
use kernel::object::thread::{Frame, Operation, Tcb, WORDS, special};
use kernel::object::{TaskRef, ThreadRef};
use kernel::processor;
use kernel::sched::Next;
use kernel::{ipc, life, sim, syscall};
use std::cell::RefCell;

thread_local! {
    /// Memory of worlds that are gone: a kernel's objects live forever, a test's need not.
    static MEMORY: RefCell<Vec<(*mut u8, usize)>> = const { RefCell::new(Vec::new()) };
}

const PAGE: usize = 4096;

/// Physical address of the pool.
const POOL_START: u64 = 0x10_0000;

/// Priority of the first thread.
pub const PRIORITY: u8 = 63;

/// The translation caches of a machine's processor, which are as hostile as they may be: see [`tlb`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caches {
    /// It translates each address anew.
    None,
    /// A load of CR3 empties them.
    Untagged,
    /// With PCID.
    Tagged,
    /// With PCID, but the kernel uses three tags for spaces.
    FewTags,
}

/// A machine with a kernel. One at a time for each host thread: the machine is part of that.
pub struct World {
    /// The kernel.
    pub k: Box<Kernel>,
    /// The first task, to which all memory is mapped.
    pub sigma0: TaskRef,
    /// Its first thread.
    pub root: ThreadRef,
    /// Frames that the pool needs for itself.
    overhead: usize,
    /// Frames that nobody pays for, in use or not.
    reserve: usize,
    memory: (*mut u8, usize),
}

impl Drop for World {
    fn drop(&mut self) {
        arch::reset();
        MEMORY.with_borrow_mut(|memory| memory.push(self.memory));
    }
}

fn memory(frames: usize) -> *mut u8 {
    let old = MEMORY.with_borrow_mut(|memory| {
        let at = memory.iter().position(|&(_, len)| len == frames)?;
        Some(memory.swap_remove(at).0)
    });
    old.unwrap_or_else(|| {
        let layout =
            std::alloc::Layout::from_size_align(frames * PAGE, PAGE).expect("a small number of pages");
        // SAFETY: the layout is not empty.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) };
        assert!(!memory.is_null());
        memory
    })
}

/// What the entry code does with a system call whose registers are saved.
pub fn system_call(k: &Kernel, current: ThreadRef) -> Next {
    match current.frame.rax.get() as u32 {
        abi::call::IPC_CALL.. => syscall::short_ipc(k, current, leave_plainly(current)),
        _ => syscall::system_call(k, current, leave_plainly(current)),
    }
}

/// Leaves the kernel with a thread in the place of the current one. The entry code switches the address space for that and nothing else,
/// and decides nothing, so both must be as that needs it.
fn leave_plainly(current: ThreadRef) -> impl FnOnce(ThreadRef) -> Next {
    let shuttle = current.hot.shuttle.get();
    move |thread| {
        assert!(!current.is_ready(), "the thread that is left does not wait");
        assert_eq!(thread.hot.shuttle.get(), shuttle, "a plain way leads to another shuttle");
        let either = current.special.get() | thread.special.get();
        assert_eq!(either & special::SWITCHED, 0, "a plain way switches an address space alone");
        Next::To(thread)
    }
}

impl World {
    /// A world whose pool has `frames` frames.
    pub fn new(frames: usize) -> World {
        World::on(frames, Caches::None)
    }

    /// A world whose processor has translation caches.
    pub fn on(frames: usize, caches: Caches) -> World {
        arch::reset();
        if caches != Caches::None {
            tlb::be_hostile(caches != Caches::Untagged);
        }
        let start = memory(frames);
        // SAFETY: the memory is this world's until it is dropped, and nobody keeps references into it longer.
        let pool = unsafe { Pool::new(start, POOL_START, frames, 0) };
        let overhead = frames - pool.free_frames();
        let k = Box::new(Kernel::new(pool, &kernel::ipc::UPCALLS));
        sim::attach(&k.pool);
        if caches == Caches::FewTags {
            k.tags.limit(3);
        }
        let reserve = k.reserve();
        let frame = k.take_reserved().expect("a new pool has frames");
        let idle = processor::map_tcb(&k, 0, frame).expect("the machine has room");
        idle.set_ready();
        idle.canary.set(Tcb::CANARY);
        idle.frame.mode.set(Frame::IDLE);
        k.set_idle(idle);
        let sigma0 = life::boot_task(&k);
        sigma0.is_sigma0.set(true);
        space::ensure_bitmap(&k.pool, sigma0).expect("the first task has memory");
        sim::map_all_memory(&k, sigma0, 2);
        let root = life::boot_thread(&k, sigma0, PRIORITY);
        life::start_thread(&k, root, 0x7000_0000_0000, 0x7000_0001_0000, 0);
        processor::set_current(idle);
        let world = World { k, sigma0, root, overhead, reserve, memory: (start, frames) };
        world.leave(Next::Any);
        world
    }

    /// The thread that the processor is on.
    pub fn current(&self) -> ThreadRef {
        processor::current()
    }

    /// Whether no thread can run.
    pub fn is_idle(&self) -> bool {
        self.current() == self.k.idle()
    }

    /// Leaves the kernel, up to the next chance for an interrupt. True if the processor is in user mode or idle.
    pub fn leave_once(&self, next: Next) -> bool {
        self.leave_as(self.k.dispatch(next))
    }

    fn leave_as(&self, thread: ThreadRef) -> bool {
        assert_eq!(thread.canary.get(), Tcb::CANARY, "kernel stack overflow");
        thread == self.k.idle() || thread.frame.mode.get() & Frame::BUSY == 0
    }

    /// Goes on with the busy current thread, as the entry code does after it has looked at the interrupts.
    pub fn go_on_once(&self) -> bool {
        life::bury(&self.k);
        self.leave_once(syscall::continue_operation(&self.k, self.current()))
    }

    /// Leaves the kernel for good.
    pub fn leave(&self, next: Next) {
        self.leave_once(next);
        self.settle();
    }

    /// Enters the kernel by `syscall`, with the registers that are in the current thread's frame; leaves it once.
    pub fn enter(&self) -> bool {
        let frame = &self.current().frame;
        self.save_ip();
        frame.mode.set(Frame::SYSRET);
        frame.r11.set(FLAGS);
        self.leave_once(system_call(&self.k, self.current()))
    }

    /// A user's instruction pointer may lie in the frame or in the hot line; `syscall` saves it in the latter.
    fn save_ip(&self) {
        let current = self.current();
        let (ip, sp) = (current.user_ip(), current.user_sp());
        current.hot.ip.set(ip);
        current.hot.sp.set(sp);
    }

    /// A system call of the current thread.
    pub fn system_call(&self, rax: u64, rdx: u64, w: [u64; WORDS]) {
        let frame = &self.current().frame;
        frame.rax.set(rax);
        frame.rdx.set(rdx);
        frame.w.iter().zip(w).for_each(|(register, word)| register.set(word));
        if !self.enter() {
            self.settle();
        }
    }

    /// Goes on until no thread that runs is busy.
    pub fn settle(&self) {
        let mut steps = 0;
        while self.is_busy() {
            self.go_on_once();
            steps += 1;
            assert!(steps < 1_000_000, "a busy thread makes no progress");
        }
    }

    /// Whether the current thread is in the middle of a long operation.
    pub fn is_busy(&self) -> bool {
        !self.is_idle() && self.current().frame.mode.get() & Frame::BUSY != 0
    }

    /// A trap of the current thread, which must be in user mode.
    fn trap(&self, vector: u64, error: u64, handle: impl FnOnce(&Kernel, ThreadRef) -> Next) -> bool {
        self.save_trap(vector, error);
        self.leave_once(handle(&self.k, self.current()))
    }

    fn save_trap(&self, vector: u64, error: u64) {
        let current = self.current();
        let (ip, sp) = (current.user_ip(), current.user_sp());
        let frame = &current.frame;
        if !self.is_idle() && frame.mode.get() & Frame::BUSY == 0 {
            frame.rip.set(ip);
            frame.rsp.set(sp);
            frame.rflags.set(FLAGS);
            frame.error.set(error);
            frame.mode.set(Frame::TRAP | vector);
            frame.set_user_segments();
        }
        life::bury(&self.k);
    }

    /// The current thread touches a page that it has not.
    pub fn page_fault(&self, address: u64, rights: Rights) -> bool {
        self.trap(14, 6, |k, current| {
            ipc::fault::page_fault(k, current, (address, rights), leave_plainly(current))
        })
    }

    /// The current thread wants to use ports that it has not.
    pub fn port_fault(&self, ports: Fpage) -> bool {
        self.trap(13, 0, |k, current| ipc::fault::port_fault(k, current, ports))
    }

    /// The current thread causes an exception.
    pub fn exception(&self, vector: u64) -> bool {
        self.trap(vector, 0, |k, current| ipc::fault::exception(k, current, vector, leave_plainly(current)))
    }

    /// An interrupt line fires.
    pub fn interrupt(&self, line: u8) -> bool {
        self.save_trap(64 + line as u64, 0);
        self.interrupt_saved(line)
    }

    /// An interrupt line fires, with the registers saved already.
    pub fn interrupt_saved(&self, line: u8) -> bool {
        match kernel::ipc::interrupt::fired(&self.k, line) {
            Some(driver) => self.leave_as(self.k.preempt(driver)),
            None => self.leave_once(Next::Same),
        }
    }

    /// Time passes, and if the timer fires meanwhile, the kernel hears of it.
    pub fn advance(&self, ns: u64) -> bool {
        if arch::advance(ns) { self.trap(48, 0, |k, _| kernel::sched::timer::fired(k)) } else { true }
    }

    /// Result of the current thread's last call but ipc: the error, and the argument registers.
    pub fn result(&self) -> (u64, [u64; 6]) {
        let f = &self.current().frame;
        let registers =
            [&f.w[Frame::RDI], &f.w[Frame::RSI], &f.rdx, &f.w[Frame::R10], &f.w[Frame::R8], &f.w[Frame::R9]];
        (f.rax.get(), registers.map(|register| register.get()))
    }

    /// A call but ipc by the current thread.
    pub fn call(&self, call: Call, operation: u32, [rdi, rsi, rdx, r10]: [u64; 4]) -> Result<[u64; 6], u64> {
        let mut w = [0; WORDS];
        (w[Frame::RDI], w[Frame::RSI], w[Frame::R10]) = (rdi, rsi, r10);
        self.system_call(call as u64 | (operation as u64) << 8, rdx, w);
        match self.result() {
            (0, results) => Ok(results),
            (error, _) => Err(error),
        }
    }

    /// `thread_control` by the current thread.
    pub fn thread_control(&self, operation: u32, arguments: [u64; 4]) -> Result<[u64; 6], u64> {
        self.call(Call::ThreadControl, operation, arguments)
    }

    /// `task_control` by the current thread.
    pub fn task_control(&self, operation: u32, arguments: [u64; 4]) -> Result<[u64; 6], u64> {
        self.call(Call::TaskControl, operation, arguments)
    }

    /// The current thread makes a task.
    pub fn new_task(&self, quota: u64) -> TaskId {
        TaskId(self.task_control(task_op::CREATE, [quota, 63, 0, 0]).expect("there is memory")[0])
    }

    /// A thread of a task that never runs: operations are done in its name.
    pub fn new_stand_in(&self, task: TaskId) -> ThreadRef {
        let me = self.root.uid().0;
        let uid = self.thread_control(thread_op::CREATE, [task.0, 1, me, me]).expect("there is memory")[0];
        self.k.thread(Uid(uid)).expect("just made")
    }

    /// Stand-ins of two new tasks with so many frames each, whose faults nobody resolves.
    pub fn new_strangers(&self, quota: u64) -> [ThreadRef; 2] {
        [0, 1].map(|_| {
            let thread = self.new_stand_in(self.new_task(quota));
            self.thread_control(thread_op::SET_PAGER, [thread.uid().0, 0, 0, 0]).expect("it exists");
            thread
        })
    }

    /// A task gets something of the first one's. True if it got all of it.
    pub fn give(&self, plan: Plan, to: TaskRef) -> bool {
        let mut progress = Progress::START;
        while space::map(&self.k, plan, self.sigma0, to, &mut progress, &mut 16).is_err() {}
        progress.whole
    }

    /// Takes the rights of a page from all who got it from a task.
    pub fn take_back(&self, from: TaskRef, page: Fpage) {
        let (mut at, mut status) = (0, 0);
        while space::flush(&self.k, Flush { task: from, page, own: false }, &mut at, &mut status, &mut 16)
            .is_err()
        {}
    }

    /// Does something as a thread, without a switch to it.
    pub fn acting<R>(&self, thread: ThreadRef, act: impl FnOnce() -> R) -> R {
        let before = processor::current();
        processor::set_current(thread);
        let result = act();
        processor::set_current(before);
        // A dispatch on the way may have gone to its shuttle.
        self.k.stop_counting(thread);
        result
    }

    /// Takes all steps that are left of a thread's operation, as that thread, and dispatches nobody between two of them. A dispatch would compute
    /// effective priorities there, for which the end of a thread waits: this does.
    pub fn finish(&self, thread: ThreadRef) {
        let mut steps = 0;
        while thread.operation.get() != Operation::None {
            self.k.settle_all();
            let _ = syscall::continue_operation(&self.k, thread);
            steps += 1;
            assert!(steps < 100_000, "a call makes no progress");
        }
    }

    /// The current thread makes a thread in a task (nil: its own) and starts it.
    pub fn new_thread(&self, task: TaskId, priority: u8) -> ThreadRef {
        let me = self.current().uid().0;
        let uid = self
            .thread_control(thread_op::CREATE, [task.0, priority as u64, me, me])
            .expect("there is memory")[0];
        self.thread_control(thread_op::START, [uid, 0x1000, 0x8000, 0]).expect("it can start");
        self.k.thread(Uid(uid)).expect("just made")
    }

    /// The current thread makes and starts another in its own task, and may lose the processor to it.
    pub fn new_thread_uid(&self, priority: u8) -> Uid {
        let me = self.current().uid().0;
        let uid =
            self.thread_control(thread_op::CREATE, [0, priority as u64, me, me]).expect("there is memory")[0];
        self.thread_control(thread_op::START, [uid, 0x1000, 0x8000, 0]).expect("it can start");
        Uid(uid)
    }

    /// Enters the kernel for a call but ipc, up to the first chance for an interrupt.
    pub fn begin_call(&self, call: Call, operation: u32, rdi: u64) {
        let frame = &self.current().frame;
        frame.rax.set(call as u64 | (operation as u64) << 8);
        frame.w[Frame::RDI].set(rdi);
        self.enter();
    }

    /// The task with this name.
    pub fn task(&self, id: TaskId) -> TaskRef {
        self.k.task(id).expect("the task exists")
    }

    /// The general ipc by the current thread.
    pub fn ipc(
        &self,
        dest: Uid,
        from: Uid,
        timeouts: (Timeout, Timeout),
        window: Fpage,
        flags: u32,
        w: [u64; 8],
    ) {
        let mut words = [0; WORDS];
        words[..8].copy_from_slice(&w);
        words[Frame::RBX] = from.0;
        words[Frame::RBP] = window.0;
        words[Frame::R15] = abi::call::timeouts(timeouts.0, timeouts.1);
        self.system_call((Call::Ipc as u32 | flags) as u64, dest.0, words);
    }

    /// *Call* by the current thread.
    pub fn ipc_call(&self, dest: Uid) {
        self.system_call(abi::call::IPC_CALL as u64, dest.0, [1; WORDS]);
    }

    /// *Reply and wait* by the current thread.
    pub fn ipc_reply_wait(&self, dest: Uid) {
        self.system_call(abi::call::IPC_REPLY_WAIT as u64, dest.0, [2; WORDS]);
    }

    /// The current thread sends so many pages that it takes several steps, of which this is the first.
    pub fn begin_long_map(&self, to: Uid) {
        let frame = &self.current().frame;
        frame.w.iter().for_each(|word| word.set(0));
        frame.w[6].set(Fpage::memory(1 << 30, 24, Rights::RWX).0);
        frame.w[Frame::R15].set(abi::call::timeouts(Timeout::NEVER, Timeout::NEVER));
        frame.rax.set((Call::Ipc as u32 | op::ITEM | op::TAKES_BLOCK).into());
        frame.rdx.set(to.0);
        assert!(!self.enter(), "it takes several steps");
    }

    /// The current thread waits for anybody, forever, and takes what comes.
    pub fn wait(&self) {
        self.ipc(Uid::NIL, Uid::ANY, (Timeout::NEVER, Timeout::NEVER), Fpage::NIL, op::TAKES_BLOCK, [0; 8]);
    }

    /// Asserts every invariant of the kernel, and that each of its frames is somebody's.
    pub fn check(&self) {
        let owned = self.k.check();
        self.check_pool(owned);
        if self.k.is_settled() {
            self.check_inheritance();
        }
    }

    /// Asserts that no effective priority is greater than the definition asks for. The kernel's own check is content with any that support
    /// each other; here all begin with their own and rise as far as they have to.
    fn check_inheritance(&self) {
        let slots = 1..self.k.thread_slots.high_water();
        let threads: Vec<ThreadRef> =
            slots.clone().filter_map(ThreadRef::in_slot).filter(|it| !it.uid().is_nil()).collect();
        let slot = |thread: ThreadRef| thread.name.get().slot() as usize;
        let mut least = vec![0; slots.end as usize];
        threads.iter().for_each(|it| least[slot(*it)] = it.home.priority.get());
        loop {
            let before = least.clone();
            let stands = |waiter: ThreadRef| {
                before[slot(if waiter.is_queued() { self.k.shuttle_of(waiter) } else { waiter })]
            };
            let urgency = |queue: &Queue| {
                core::iter::successors(queue.first(), |it| queue.after(*it)).map(stands).max().unwrap_or(0)
            };
            threads.iter().for_each(|it| least[slot(*it)] = self.k.inherited_by(*it, urgency).0);
            if least == before {
                break;
            }
        }
        for thread in threads {
            let effective = thread.home.effective.get();
            assert_eq!(effective, least[slot(thread)], "{thread:?} has more than anybody gives it");
        }
    }

    /// Asserts that the pool is what the tasks own, what is free, and what belongs to nobody.
    pub fn check_pool(&self, owned: usize) {
        let tables = |slots: u32| slots.max(1).div_ceil(512) as usize;
        let (threads, tasks) =
            (tables(self.k.thread_slots.high_water()), tables(self.k.task_slots.high_water()));
        // Slots of threads and of tasks, the table of tasks, tables of the array of blocks, and the idle thread. A slot
        // that was given out although there was no memory for the table that goes with it has one less.
        let nobodys = self.reserve + self.k.worn() - self.k.reserve();
        let most = 2 * threads + 2 * tasks + 1;
        assert!(
            (most - 2..=most).contains(&nobodys),
            "{nobodys} frames are nobody's, and {most} at most in use"
        );
        let sum = self.overhead + nobodys + owned + self.k.pool.free_frames();
        assert_eq!(sum, self.k.pool.frames(), "frames are lost");
    }
}
