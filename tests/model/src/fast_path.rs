//! The fast path of ipc, written down a second time: what `entry/x86_64/fast_path/` does in assembly, on the same words.
//!
//! [`Machine`] is a world whose current thread has its registers in the processor, as on the real machine, and not in its
//! control block: the fast path leaves frames as they are, with whatever an earlier trap wrote there. With `fast` set,
//! short ipc goes through [`fast_path`] first; otherwise everything takes the slow path. The random walk runs the same
//! program both ways: *if the fast path accepts, the slow path would have done the same.*

use crate::extended::{Departure, Owners};
use crate::world::{Caches, World};
use abi::call::{
    DOOR_CALL, DOOR_ITEM_CALL, DOOR_LONG_CALL, DOOR_LONG_RETURN, DOOR_RETURN, DOOR_TAKING_CALL, FLAGS,
    FLUSH_SELF, IPC_CALL, IPC_ITEM_TAKING_CALL, IPC_LONG_CALL, IPC_LONG_REPLY_WAIT, IPC_LONG_TAKING_CALL,
    IPC_REPLY_WAIT, IPC_TAKING_CALL, NULL,
};
use abi::op::{self, Op};
use abi::{Call, Dope, Error, Fpage, Rights, Uid};
use kernel::kernel::Kernel;
use kernel::mem::at::At;
use kernel::mem::pool::{Frame, Words};
use kernel::object::ThreadRef;
use kernel::object::door::{self, Servers};
use kernel::object::mapping::Node;
use kernel::object::thread::{
    Errand, FOREIGN_MARK, Frame as TrapFrame, IDLE, NEVER, Operation, State, TAKES_BLOCK, TAKES_ITEM, TAKING,
    WORDS, Wait, special, taken_by,
};
use kernel::processor;
use kernel::sched::Next;
use kernel::{arch, ipc, layout, lend, life};
use std::cell::Cell;

/// The registers of the processor in user mode.
#[derive(Clone, Copy, Default, Debug)]
pub struct Live {
    /// See [`TrapFrame::w`].
    pub w: [u64; WORDS],
    /// Destination or sender.
    pub rdx: u64,
    /// Operation or result.
    pub rax: u64,
    /// Instruction pointer.
    pub rip: u64,
    /// Stack pointer.
    pub rsp: u64,
    /// Flags, with the label of a foreign call beside them; only the label is looked at.
    pub r11: u64,
}

/// A world with a processor.
pub struct Machine {
    /// The kernel and its machine.
    pub world: World,
    /// Registers, while the processor is in user mode.
    pub live: Live,
    /// Whether the fast path is on.
    pub fast: bool,
    /// How often it accepted.
    pub accepted: usize,
    /// How often a known route across a border was taken.
    pub crossed: usize,
    /// Whose the extended state in the registers may be.
    pub owners: Owners,
}

const FLUSH: u32 = Call::Flush as u32;

/// The fast path, instruction by instruction. True if it accepted; then another thread is in user mode.
pub fn fast_path(k: &Kernel, live: &mut Live) -> bool {
    let me = processor::current();
    let mark = taken_by(Op::of(live.rax).short_flags());
    let (is_call, is_long) = match live.rax as u32 {
        IPC_CALL | IPC_TAKING_CALL | IPC_ITEM_TAKING_CALL => (true, false),
        IPC_REPLY_WAIT => (false, false),
        IPC_LONG_CALL | IPC_LONG_TAKING_CALL => (true, true),
        IPC_LONG_REPLY_WAIT => (false, true),
        DOOR_CALL | DOOR_TAKING_CALL => return door_call(k, live, me, mark),
        DOOR_LONG_CALL => return door_long_call(k, live, me),
        DOOR_RETURN => return door_return(live, me),
        DOOR_LONG_RETURN => return door_long_return(k, live, me),
        DOOR_ITEM_CALL => return door_item_call(k, live, me),
        FLUSH => return release(k, live, me),
        word if Op(word).is_foreign_return() => return foreign_return(live, me),
        word if Op(word).is_foreign() && word as u8 <= 0xfd && word < 0x7fff_fff9 => {
            return foreign_call(live, me);
        }
        _ => return false,
    };
    me.hot.ip.set(live.rip);
    me.hot.sp.set(live.rsp);
    // An absent block reads as zero: its uid fails the compare, and so does `accept` of slot 0.
    let Some(partner) = ThreadRef::in_slot(Uid(live.rdx).slot()) else { return false };
    if partner.hot.uid.get() != live.rdx {
        return false;
    }
    let accept = partner.hot.accept.get();
    let waits = if is_call {
        accept == me.hot.open_key.get()
    } else {
        let key = me.hot.key.get();
        if is_long { accept == key | TAKES_BLOCK } else { accept & !TAKING == key & !TAKING }
    };
    let has_my_shuttle = lend::fast_return(&me.hot, &partner.hot);
    if !waits || !(is_call || has_my_shuttle) {
        return false;
    }
    if is_long && !copy_block(k, live, me, partner) {
        return false;
    }
    me.hot.accept.set(if is_call { partner.hot.key.get() | mark } else { me.hot.open_key.get() });
    live.rax |= if is_call { u64::from(op::TAKES) } else { 0 };
    partner.hot.accept.set(NEVER);
    if is_call {
        lend::fast_call(&me.hot, &partner.hot);
    }
    live.rdx = me.hot.uid.get();
    live.rip = partner.hot.ip.get();
    live.rsp = partner.hot.sp.get();
    processor::switch_space(me, partner);
    true
}

/// A call of another system.
fn foreign_call(live: &mut Live, me: ThreadRef) -> bool {
    me.hot.ip.set(live.rip);
    me.hot.sp.set(live.rsp);
    me.hot.key.set(FLAGS);
    let Some(handler) = door::thread_at(me.foreign.handler.get()) else { return false };
    if handler.hot.accept.get() != me.foreign.key.get() {
        return false;
    }
    me.hot.accept.set(me.foreign.key.get());
    handler.hot.accept.set(NEVER);
    lend::fast_call(&me.hot, &handler.hot);
    live.r11 = me.foreign.mark.get();
    live.rip = handler.hot.ip.get();
    live.rsp = handler.hot.sp.get();
    processor::switch_space(me, handler);
    true
}

/// The return from one, with the result in the stack pointer.
fn foreign_return(live: &mut Live, me: ThreadRef) -> bool {
    me.hot.ip.set(live.rip);
    let Some(caller) = ThreadRef::in_slot(me.hot.shuttle.get().slot()) else { return false };
    let key = me.hot.key.get() | FOREIGN_MARK;
    if !lend::fast_return(&me.hot, &caller.hot) || caller.hot.accept.get() != key {
        return false;
    }
    me.hot.accept.set(key);
    caller.hot.accept.set(NEVER);
    me.hot.sp.set(me.foreign.stack.get());
    live.rax = live.rsp;
    live.r11 = caller.hot.key.get();
    live.rip = caller.hot.ip.get();
    live.rsp = caller.hot.sp.get();
    processor::switch_space(me, caller);
    true
}

/// A call through a door.
fn door_call(k: &Kernel, live: &mut Live, me: ThreadRef, mark: u64) -> bool {
    live.rdx = live.rdx as u32 as u64;
    let Some(identifier) = kernel::mem::doors::find(k, me.task(), live.rdx) else {
        live.rax = Error::NoSuch as u64;
        return true;
    };
    me.hot.ip.set(live.rip);
    me.hot.sp.set(live.rsp);
    let Some(server) = first_idle(me, identifier) else { return false };
    enter_door(live, me, server, identifier);
    me.hot.accept.set(me.hot.accept.get() | mark);
    live.rax |= u64::from(op::TAKES);
    true
}

/// A call through a door with a block.
fn door_long_call(k: &Kernel, live: &mut Live, me: ThreadRef) -> bool {
    me.hot.ip.set(live.rip);
    me.hot.sp.set(live.rsp);
    live.rdx = live.rdx as u32 as u64;
    live.w[TrapFrame::R15] = 0;
    let Some(identifier) = kernel::mem::doors::find(k, me.task(), live.rdx) else { return false };
    let Some(server) = first_idle(me, identifier) else { return false };
    server.server.door.set(Some(identifier.door()));
    if !copy_block(k, live, me, server) {
        return false;
    }
    enter_door(live, me, server, identifier);
    true
}

/// Whether this is one of the first identifiers.
fn is_near(page: Fpage) -> bool {
    page.is_identifier() && page.0 >> 12 < kernel::mem::doors::NEAR
}

/// A call through a door with an identifier. The kernel refuses also what would take the last node of a slab.
fn door_item_call(k: &Kernel, live: &mut Live, me: ThreadRef) -> bool {
    let item = Fpage(live.w[6]);
    let rights = item.rights();
    if !is_near(item) || !rights.has(Rights::R) || rights.has(Rights::GRANT) {
        return false;
    }
    me.hot.ip.set(live.rip);
    me.hot.sp.set(live.rsp);
    live.rdx = live.rdx as u32 as u64;
    let Some(identifier) = kernel::mem::doors::find(k, me.task(), live.rdx) else { return false };
    let Some(server) = first_idle(me, identifier) else { return false };
    let window = server.receiving.standing.get();
    if server.hot.open_key.get() != me.hot.open_key.get() || !is_near(window) {
        return false;
    }
    if !kernel::mem::doors::map_single(
        k,
        At::new(me.task(), item.0 >> 12),
        At::new(server.task(), window.0 >> 12),
        rights,
    ) {
        return false;
    }
    live.w[6] = window.with_rights(rights.and(Rights::RWX)).0;
    live.w[8..].fill(0);
    enter_door(live, me, server, identifier);
    true
}

/// A flush of one of one's own first identifiers, unless it is its maker's or the last but that. The kernel refuses also
/// what would make a slab full or empty.
fn release(k: &Kernel, live: &mut Live, me: ThreadRef) -> bool {
    let page = Fpage(live.w[TrapFrame::RDI]);
    let is_own = live.w[TrapFrame::RSI] == FLUSH_SELF;
    if !is_near(page) || !page.rights().has(Rights::R) || !is_own || me.hot.open_key.get() & 1 == 0 {
        return false;
    }
    me.hot.ip.set(live.rip);
    me.hot.sp.set(live.rsp);
    let Some(node) = kernel::mem::doors::find(k, me.task(), page.0 >> 12) else { return false };
    let Some(before) = node.before() else { return false };
    if node.next().is_none() && before.before().is_none() || me.task().is_dying() {
        return false;
    }
    kernel::mem::doors::flush_single(k, me.task(), page.0 >> 12, &mut 1).expect("one step is enough");
    live.w[TrapFrame::RDI] = 0;
    live.rax = 0;
    true
}

/// The server that takes a call, if one waits for it and the caller is not special.
fn first_idle(me: ThreadRef, identifier: &'static Node) -> Option<ThreadRef> {
    let servers = &identifier.door().task().state().doors.servers;
    door::thread_at(servers.idle.get()).filter(|_| me.hot.open_key.get() & 1 != 0)
}

/// What cannot fail any more: the server leaves its list, and goes to the door's entry on the caller's shuttle.
fn enter_door(live: &mut Live, me: ThreadRef, server: ThreadRef, identifier: &'static Node) {
    let door = identifier.door();
    door.task().state().doors.servers.idle.set(server.server.next.get());
    server.server.caller.set(door::hot_address(me));
    server.server.door.set(Some(door));
    me.hot.accept.set(server.server.key.get());
    server.hot.accept.set(NEVER);
    lend::fast_call(&me.hot, &server.hot);
    (live.rip, live.rdx) = door.door_target();
    live.rsp = server.server.stack.get();
    processor::switch_space(me, server);
}

/// The return from one.
fn door_return(live: &mut Live, me: ThreadRef) -> bool {
    me.hot.ip.set(live.rip);
    me.hot.sp.set(live.rsp);
    let Some(caller) = who_waits(me, |takes| takes & !TAKING == 0) else { return false };
    leave_door(live, me, caller);
    true
}

/// The return from one, with a block.
fn door_long_return(k: &Kernel, live: &mut Live, me: ThreadRef) -> bool {
    me.hot.ip.set(live.rip);
    me.hot.sp.set(live.rsp);
    live.w[TrapFrame::R15] = 0;
    let Some(caller) = who_waits(me, |takes| takes & !TAKES_ITEM == TAKES_BLOCK) else { return false };
    if !copy_block(k, live, me, caller) {
        return false;
    }
    leave_door(live, me, caller);
    true
}

/// The caller that waits for a return, and lent its shuttle, if nobody waits for a server; `fits` looks at what it takes.
fn who_waits(me: ThreadRef, fits: impl Fn(u64) -> bool) -> Option<ThreadRef> {
    // Nobody's hot line waits for nothing.
    let caller = door::thread_at(me.server.caller.get())?;
    let is_lent =
        fits(caller.hot.accept.get() ^ me.server.key.get()) && lend::fast_return(&me.hot, &caller.hot);
    let list = is_lent.then(|| me.server.pool.get().expect("who has a caller is a server"))?;
    (list.get() != Servers::WANTED).then_some(caller)
}

/// Changes that cannot fail any more: the caller goes on, and the server is the first of those that wait.
fn leave_door(live: &mut Live, me: ThreadRef, caller: ThreadRef) {
    let list = me.server.pool.get().expect("who has a caller is a server");
    me.server.next.set(list.replace(door::hot_address(me)));
    me.hot.accept.set(IDLE);
    caller.hot.accept.set(NEVER);
    live.rdx = 0;
    live.rip = caller.hot.ip.get();
    live.rsp = caller.hot.sp.get();
    processor::switch_space(me, caller);
}

/// The words of a block, and strings, through a window if need be. False if they have no place, or the copy faults.
pub fn copy_block(k: &Kernel, live: &mut Live, me: ThreadRef, partner: ThreadRef) -> bool {
    let (dope, from, block) = (live.w[0], live.w[1], &partner.block);
    if Dope(dope).strings() != 0 {
        return copy_strings(k, live, me, partner);
    }
    if dope as u32 >= block.fast_below.get() as u32 || from >> 63 != 0 {
        return false;
    }
    let words = dope as u32 as u64;
    if !arch::copy_user(open_window(k, me, partner), from, 8 * words) {
        processor::copy::close_window(k, me.task());
        return false;
    }
    arrive(k, live, me, partner);
    true
}

/// Where the partner's block is shown: in the sender's window, which is open from here on, or where it is.
fn open_window(k: &Kernel, me: ThreadRef, partner: ThreadRef) -> u64 {
    let space = me.hot.space.get();
    if space == partner.hot.space.get() {
        return partner.block.address.get();
    }
    if space >> 63 != 0 {
        arch::load_space(arch::space::with_window(me.task().space.get()));
    }
    window_slot(k, me).set(partner.block.entry.get());
    partner.block.shown_at.get()
}

fn window_slot(k: &Kernel, me: ThreadRef) -> &'static Cell<u64> {
    &k.pool.at::<Words>(Frame(me.task().top.get())).0[(layout::WINDOW >> 39 & 511) as usize]
}

/// Closes the window (the switch forgets what it showed), and says in the registers what has come.
fn arrive(k: &Kernel, live: &mut Live, me: ThreadRef, partner: ThreadRef) {
    window_slot(k, me).set(0);
    live.w[0] = partner.block.room.get() | live.w[0] as u32 as u64;
    live.w[1] = partner.block.address.get();
    live.w[TrapFrame::R15] = 0;
}

/// Direct words and strings, by the kernel's own Rust, which finds the registers in the frame.
fn copy_strings(k: &Kernel, live: &mut Live, me: ThreadRef, partner: ThreadRef) -> bool {
    let mut call = *live;
    call.w[TrapFrame::R15] = 0;
    save(&call, me, TrapFrame::SYSRET);
    if !ipc::block::run_ahead(k, me, partner, open_window(k, me, partner)) {
        return false;
    }
    assert_eq!(me.operation.get(), Operation::None, "nothing is left of a message that is there");
    arrive(k, live, me, partner);
    true
}

/// Saves the registers of a thread that enters the kernel.
fn save(live: &Live, thread: ThreadRef, mode: u64) {
    let frame = &thread.frame;
    frame.w.iter().zip(live.w).for_each(|(register, word)| register.set(word));
    frame.rdx.set(live.rdx);
    frame.rax.set(live.rax);
    frame.r11.set(if mode == TrapFrame::SYSRET { FLAGS } else { live.r11 });
    frame.mode.set(mode);
}

impl Machine {
    /// A processor on the first thread of a new world.
    pub fn new(frames: usize, fast: bool, caches: Caches) -> Machine {
        let world = World::on(frames, caches);
        world.k.notes_routes.set(fast);
        let owners = Owners::new();
        let mut machine = Machine { world, live: Live::default(), fast, accepted: 0, crossed: 0, owners };
        machine.load();
        machine
    }

    /// Whether a thread is in user mode.
    pub fn in_user_mode(&self) -> bool {
        !self.world.is_idle() && !self.world.is_busy()
    }

    /// Loads the registers after the kernel was left.
    fn load(&mut self) {
        self.owners.look(&self.world.k);
        if !self.in_user_mode() {
            return;
        }
        let thread = self.world.current();
        let frame = &thread.frame;
        self.owners.runs(&self.world.k, thread, (frame.rax.get(), frame.rdx.get()));
        self.live = Live {
            w: std::array::from_fn(|i| frame.w[i].get()),
            rdx: frame.rdx.get(),
            rax: frame.rax.get(),
            rip: thread.user_ip(),
            rsp: thread.user_sp(),
            r11: frame.r11.get(),
        };
    }

    fn save(&self, mode: u64) {
        save(&self.live, self.world.current(), mode);
    }

    /// The instruction `syscall`, with the registers as they are.
    pub fn system_call(&mut self) {
        self.live.rip += 2;
        self.live.r11 = FLAGS;
        let caller = self.world.current();
        let is_denied = caller.special.get() & special::DENY_NATIVE != 0;
        self.owners.leaves(&self.world.k, caller, Departure::of_call(self.live.rax, is_denied));
        if self.fast && fast_path(&self.world.k, &mut self.live) {
            self.accepted += 1;
            self.owners.look(&self.world.k);
            self.owners.runs(&self.world.k, self.world.current(), (self.live.rax, self.live.rdx));
            return;
        }
        if self.live.rax as u32 == NULL {
            return;
        }
        let current = self.world.current();
        current.hot.ip.set(self.live.rip);
        current.hot.sp.set(self.live.rsp);
        self.save(TrapFrame::SYSRET);
        let known = if self.live.rax as u32 == IPC_CALL {
            ipc::known_route::call(&self.world.k, current)
        } else {
            None
        };
        self.crossed += known.is_some() as usize;
        let next = match known {
            Some(partner) => Next::To(partner),
            None => crate::world::system_call(&self.world.k, current),
        };
        let is_left = matches!(current.operation.get(), Operation::Ahead { .. });
        assert!(!is_left, "the slow path goes on with what the fast path has copied");
        self.world.leave_once(next);
        self.load();
    }

    /// An exception or interrupt.
    fn trap(&mut self, vector: u64, how: Departure, handle: impl FnOnce(&World, ThreadRef) -> Next) {
        self.save_trap(vector, how);
        let next = handle(&self.world, self.world.current());
        self.world.leave_once(next);
        self.load();
    }

    fn save_trap(&mut self, vector: u64, how: Departure) {
        let current = self.world.current();
        if self.in_user_mode() {
            self.owners.leaves(&self.world.k, current, how);
            self.save(TrapFrame::TRAP | vector);
            let frame = &current.frame;
            frame.error.set(6);
            frame.rip.set(self.live.rip);
            frame.rsp.set(self.live.rsp);
            frame.rflags.set(FLAGS);
            frame.set_user_segments();
        }
        life::bury(&self.world.k);
    }

    /// The current thread, in user mode, touches a page.
    pub fn page_fault(&mut self, address: u64, rights: Rights) {
        self.trap(14, Departure::Faults, |world, current| {
            ipc::fault::page_fault(&world.k, current, (address, rights), Next::To)
        });
    }

    /// The current thread, in user mode, causes an exception.
    pub fn exception(&mut self, vector: u64) {
        self.trap(vector, Departure::Faults, |world, current| {
            ipc::fault::exception(&world.k, current, vector, Next::To)
        });
    }

    /// A line fires, if it is open.
    pub fn interrupt(&mut self, line: u8) {
        if arch::irq_is_open(line) {
            self.save_trap(64, Departure::Keeps);
            self.world.interrupt_saved(line);
            self.load();
        }
    }

    /// Time passes.
    pub fn advance(&mut self, ns: u64) {
        if arch::advance(ns) {
            self.trap(48, Departure::Keeps, |world, _| kernel::sched::timer::fired(&world.k));
        }
    }

    /// The busy current thread makes one step.
    pub fn go_on(&mut self) {
        self.world.go_on_once();
        self.load();
    }

    /// Everything that a user could find out, now or later, in numbers.
    pub fn observe(&self, known: &[Uid]) -> Vec<u64> {
        let k = &self.world.k;
        let current = self.world.current();
        let mut all = vec![current.uid().0, self.world.is_busy() as u64];
        if self.in_user_mode() {
            all.extend(self.live.w);
            all.extend([self.live.rdx, self.live.rax, self.live.rip, self.live.rsp, self.live.r11 >> 32]);
        }
        // Time is charged when the processor leaves a shuttle, or is asked: a user sees no difference.
        let (charged, used) = k.uncharged(arch::now_ns());
        for thread in known.iter().filter_map(|&uid| k.thread(uid)) {
            let hot = &thread.hot;
            let more = if charged == Some(thread) { used } else { 0 };
            let (time, left) =
                (thread.home.time_ns.get() + more, thread.home.left_ns.get().saturating_sub(more));
            let wait = thread.wait();
            all.extend([hot.uid.get(), hot.key.get(), hot.open_key.get(), hot.accept.get()]);
            all.extend([thread.special.get() as u64, time, left]);
            // Who is about to get a message, or looks for a call, finds all its registers changed, and goes on on a shuttle of its own
            // or its caller's.
            let takes = thread.state.get() == State::Taking && thread.errand.get() == Errand::Ipc
                || matches!(thread.operation.get(), Operation::Taken { .. } | Operation::Serve);
            let registers = match wait {
                Wait::No if takes => [5, thread.state.get() as u64, 0],
                Wait::Open => [1, 0, 0],
                Wait::Closed(from) => [2, from.0, hot.shuttle.get().0],
                Wait::Answer(from) => [3, from.0, hot.shuttle.get().0],
                Wait::Return(from) => [6, from.0, hot.shuttle.get().0],
                Wait::Idle => [7, 0, 0],
                Wait::Foreign(from) => [8, from.0, hot.shuttle.get().0],
                Wait::No => [4, thread.state.get() as u64, hot.shuttle.get().0],
            };
            all.extend(registers);
            let meaningful =
                thread != current && !takes && (wait == Wait::No || matches!(wait, Wait::Answer(_)));
            if meaningful && thread.state.get() != State::Inactive {
                all.extend(thread.frame.w.iter().map(|word| word.get()));
                all.extend([
                    thread.frame.rdx.get(),
                    thread.frame.rax.get(),
                    thread.user_ip(),
                    thread.user_sp(),
                ]);
            } else if thread != current && wait != Wait::No {
                all.extend([thread.user_ip(), thread.user_sp()]);
            }
        }
        all
    }
}
