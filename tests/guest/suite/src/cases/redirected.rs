//! Threads whose calls are redirected, among the [players](super::random) of the random calls, and the handlers that do these calls.
//!
//! A *caller* makes foreign calls one after the other, with registers that all follow from one number. Two of the callers do nothing else. The other
//! two are *carriers*: they take native calls until a client has called them, deny themselves native calls, make foreign ones on the client's shuttle, and answer. Everything
//! that a caller knows is in a block to which its stack pointer leads, so it finds that whatever its other registers are. It looks at what comes back:
//! registers of an answer, of one answer alone, and of the answer to this call.
//!
//! The [handlers](handler) answer at once, late, in another order, with other registers, to another place, or never. Callers and handlers are wards of the
//! warden, and players do to them what they may. Whoever ends, stops or stands still is put right by [`Redirected::review`].
//!
//! Denied are not only callers: players deny native calls to themselves, to one another and to those who answer. A player's next call is
//! an exception then, and its handler allows native calls again; who answers ends in that exception, and is made anew.

mod handler;

use crate::kit::{Agent, Child, Outcome, Random, pager};
use crate::{check, check_eq};
use core::arch::global_asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use rt::println;
use sys::abi::call::{Call, FOREIGN_LABEL_MAX, IPC_REPLY_WAIT, thread_op};
use sys::thread_state::{BUSY, READY, RECEIVING, SENDING, STOPPED};
use sys::{TaskId, Uid};

/// Threads that make foreign calls: first those that do nothing else, then as many carriers.
pub const CALLERS: usize = 4;
/// Threads that do them: one in the suite's task, one beside the first caller.
pub const HANDLERS: usize = 2;

/// Reviews that a caller may stand still.
const STILL_REVIEWS: u64 = 8;

/// Reviews that a carrier may wait for a client.
const IDLE_REVIEWS: u64 = 100;

/// Number of the call by which a carrier asks for native calls again.
const RELEASE: u32 = 0x7e1e_a5e0;

/// Changes of registers by an answer are from 1 to this.
const CHANGE_MAX: u64 = 0xffff;

/// Low byte of a vector register that a player gives somebody.
pub const MARKED: u8 = 0xee;

/// Uids of the callers, and of their handlers.
pub static NAMES: [AtomicU64; CALLERS] = [const { AtomicU64::new(0) }; CALLERS];
/// See [`NAMES`].
pub static DOERS: [AtomicU64; HANDLERS] = [const { AtomicU64::new(0) }; HANDLERS];

/// Knowledge and counts of a caller.
#[repr(C)]
struct Words {
    state: AtomicU64,
    index: AtomicU64,
    /// First register and number of the call that is under way.
    sent: AtomicU64,
    number: AtomicU64,
    /// Label with which a carrier denies itself native calls, and who waits for its answer.
    label: AtomicU64,
    client: AtomicU64,
    made: AtomicU64,
    /// Calls that came back with an answer of theirs, as they were made, and otherwise: by the hand of a player, or after an abort.
    answered: AtomicU64,
    as_is: AtomicU64,
    otherwise: AtomicU64,
    /// Answers to another call.
    astray: AtomicU64,
    /// Answers that came with vector registers of a third party. A caller has its own, which a carrier has lost if its client has given up; and a
    /// carrier, or a caller whose handler asked somebody, may have those of the partner, which are zero or marked.
    vectors: AtomicU64,
    /// Answers of other callers that came with vector registers of an earlier call of theirs. They are told by the low byte, and as rare as initial ones, for the same reason.
    older: AtomicU64,
    /// The last of these registers, and the change by which the answer told its way.
    found: AtomicU64,
    change: AtomicU64,
    /// Answers of other callers that came with initial vector registers. Such a caller was aborted when its handler, which the warden lets single-step, was in an exception of
    /// its own, so that somebody else was on the shuttle; and then it had a whole state from that handler.
    initial: AtomicU64,
    elsewhere: AtomicU64,
    /// Labels that were refused.
    labels: AtomicU64,
}

/// Memory of a caller. Its stack ends where its words begin.
#[repr(C, align(4096))]
struct Block {
    stack: [AtomicU64; 64],
    words: Words,
}

static BLOCKS: [Block; CALLERS] = [const {
    Block {
        stack: [const { AtomicU64::new(0) }; 64],
        words: Words {
            state: AtomicU64::new(0),
            index: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            number: AtomicU64::new(0),
            label: AtomicU64::new(0),
            client: AtomicU64::new(0),
            made: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            as_is: AtomicU64::new(0),
            otherwise: AtomicU64::new(0),
            astray: AtomicU64::new(0),
            vectors: AtomicU64::new(0),
            older: AtomicU64::new(0),
            found: AtomicU64::new(0),
            change: AtomicU64::new(0),
            initial: AtomicU64::new(0),
            elsewhere: AtomicU64::new(0),
            labels: AtomicU64::new(0),
        },
    }
}; CALLERS];

// suite_redirected_once makes one call and looks at what comes back; suite_redirected_caller does so for ever, and at times asks for the time, which
// is denied to it. rsp: Words, below the return address.
global_asm!(
    "
    .section .text.suite_redirected, \"ax\", @progbits
    .globl suite_redirected_caller
suite_redirected_caller:
    call suite_redirected_once
    test byte ptr [rsp + {state} + 5], 31
    jnz suite_redirected_caller
    mov eax, {clock}
    syscall
    jmp suite_redirected_caller

suite_redirected_once:
    mov rax, [rsp + 8 + {state}]
    mov rcx, 6364136223846793005
    imul rax, rcx
    add rax, 1442695041
    mov [rsp + 8 + {state}], rax
    mov rdi, rax
    mov dil, [rsp + 8 + {index}]
    mov [rsp + 8 + {sent}], rdi
    ror rax, 23
    btr rax, 31
    mov [rsp + 8 + {number}], rax
    lea rsi, [rdi + 1]
    lea rdx, [rdi + 2]
    lea r10, [rdi + 3]
    lea r8, [rdi + 4]
    lea r9, [rdi + 5]
    lea rbx, [rdi + 6]
    lea rbp, [rdi + 7]
    lea r12, [rdi + 8]
    lea r13, [rdi + 9]
    lea r14, [rdi + 10]
    lea r15, [rdi + 11]
    movq xmm0, rdi
    inc qword ptr [rsp + 8 + {made}]
    stc
    syscall
    .globl suite_redirected_behind
suite_redirected_behind:
    jnc 1f
    .irp register, rsi, rdx, r10, r8, r9, rbx, rbp, r12, r13, r14, r15
    sub \\register, rdi
    .endr
    cmp rsi, 1
    jne 1f
    cmp rdx, 2
    jne 1f
    cmp r10, 3
    jne 1f
    cmp r8, 4
    jne 1f
    cmp r9, 5
    jne 1f
    cmp rbx, 6
    jne 1f
    cmp rbp, 7
    jne 1f
    cmp r12, 8
    jne 1f
    cmp r13, 9
    jne 1f
    cmp r14, 10
    jne 1f
    cmp r15, 11
    jne 1f
    sub rdi, [rsp + 8 + {sent}]
    jz 2f
    cmp rdi, {change_max}
    ja 3f
    add rax, rdi
    jnz 1f
    inc qword ptr [rsp + 8 + {answered}]
    movq rcx, xmm0
    cmp rcx, [rsp + 8 + {sent}]
    je 4f
    cmp qword ptr [rsp + 8 + {index}], {callers} / 2
    jae 5f
    mov r8, rdi
    and edi, 15
    cmp edi, {asks}
    jne 6f
    jmp 7f
5:  mov r8, rdi
    cmp cl, [rsp + 8 + {index}]
    je 4f
7:  test rcx, rcx
    jz 4f
    cmp cl, {marked}
    je 4f
6:  test rcx, rcx
    jz 8f
    cmp cl, [rsp + 8 + {index}]
    je 9f
    inc qword ptr [rsp + 8 + {vectors}]
    mov [rsp + 8 + {found}], rcx
    mov [rsp + 8 + {change}], r8
4:  ret
8:  inc qword ptr [rsp + 8 + {initial}]
    ret
9:  inc qword ptr [rsp + 8 + {older}]
    ret
1:  inc qword ptr [rsp + 8 + {otherwise}]
    ret
2:  cmp rax, [rsp + 8 + {number}]
    jne 1b
    inc qword ptr [rsp + 8 + {as_is}]
    ret
3:  inc qword ptr [rsp + 8 + {astray}]
    ret
    .globl suite_redirected_elsewhere
suite_redirected_elsewhere:
    inc qword ptr [rsp + 8 + {elsewhere}]
    ret

# Answers its client, and waits for the next one. Then it has native calls denied, with a label that no longer fits after some time, makes two foreign
# calls, and asks for native ones.
    .globl suite_redirected_carrier
suite_redirected_carrier:
    mov rdx, [rsp + {client}]
    mov eax, {reply_wait}
    syscall
    mov qword ptr [rsp + {client}], 0
    test eax, eax
    jns suite_redirected_carrier
    mov [rsp + {client}], rdx
1:  mov rdx, [rsp + {label}]
    add rdx, 0x123400
    mov [rsp + {label}], rdx
    xor edi, edi
    mov esi, 1
    mov eax, {deny}
    syscall
    test rax, rax
    jz 2f
    inc qword ptr [rsp + {labels}]
    mov rdx, [rsp + {index}]
    mov [rsp + {label}], rdx
    jmp 1b
2:  call suite_redirected_once
    call suite_redirected_once
    mov eax, {release}
    syscall
    jmp suite_redirected_carrier
    .text
    ",
    state = const offset_of!(Words, state),
    index = const offset_of!(Words, index),
    sent = const offset_of!(Words, sent),
    number = const offset_of!(Words, number),
    label = const offset_of!(Words, label),
    client = const offset_of!(Words, client),
    made = const offset_of!(Words, made),
    answered = const offset_of!(Words, answered),
    as_is = const offset_of!(Words, as_is),
    otherwise = const offset_of!(Words, otherwise),
    astray = const offset_of!(Words, astray),
    vectors = const offset_of!(Words, vectors),
    older = const offset_of!(Words, older),
    found = const offset_of!(Words, found),
    change = const offset_of!(Words, change),
    initial = const offset_of!(Words, initial),
    elsewhere = const offset_of!(Words, elsewhere),
    labels = const offset_of!(Words, labels),
    callers = const CALLERS,
    asks = const handler::ASKS,
    marked = const MARKED as i8,
    change_max = const CHANGE_MAX as i32,
    release = const RELEASE as i32,
    reply_wait = const IPC_REPLY_WAIT as i32,
    clock = const Call::Clock as i32,
    deny = const Call::ThreadControl as u32 as i32 | (thread_op::DENY_NATIVE << 8) as i32,
);

unsafe extern "C" {
    fn suite_redirected_caller();
    fn suite_redirected_carrier();
    fn suite_redirected_behind();
    fn suite_redirected_elsewhere();
}

fn address(function: unsafe extern "C" fn()) -> u64 {
    function as *const () as usize as u64
}

fn words(index: usize) -> &'static Words {
    &BLOCKS[index].words
}

fn is_carrier(index: usize) -> bool {
    index >= CALLERS / 2
}

/// Marks the vector registers of a thread that calls others: what a carrier left there is not the caller's any more, and goes to no other carrier.
pub fn mark_vectors() {
    // SAFETY: programs of the suite are compiled for a target without these registers, so nothing else is in them.
    unsafe {
        core::arch::asm!("movq xmm0, {}", in(reg) u64::from(MARKED), options(nomem, nostack, preserves_flags))
    }
}

/// A label for anybody's foreign calls: mostly one that fits, and at times a caller's.
pub fn label(random: &mut Random) -> u64 {
    match random.below(16) {
        0 => random.next(),
        1 => FOREIGN_LABEL_MAX + random.below(2),
        2..6 => random.below(CALLERS as u64),
        _ => random.next() & FOREIGN_LABEL_MAX,
    }
}

/// A caller or a handler.
pub fn anybody(random: &mut Random) -> u64 {
    let all = random.below((CALLERS + HANDLERS) as u64) as usize;
    NAMES.get(all).unwrap_or_else(|| &DOERS[all - CALLERS]).load(Relaxed)
}

/// Whether that is one of them.
pub fn is_one(name: u64) -> bool {
    NAMES.iter().chain(&DOERS).any(|it| it.load(Relaxed) == name)
}

/// Somebody to send to: a carrier, who will answer, or a handler, to whom a message is the occasion to answer calls that it has kept.
pub fn partner(random: &mut Random) -> u64 {
    let carriers = CALLERS / 2;
    match random.below(4) {
        0 => DOERS[random.below(HANDLERS as u64) as usize].load(Relaxed),
        number => NAMES[carriers + number as usize % carriers].load(Relaxed),
    }
}

/// Callers and their handlers. What comes first ends first.
pub struct Redirected {
    handlers: [Option<Agent>; HANDLERS],
    _own: Child,
    /// Tasks of the callers.
    tasks: [TaskId; CALLERS],
    random: Random,
    /// Calls made at the last review, and reviews since one was made.
    made: [(u64, u64); CALLERS],
}

impl Redirected {
    /// Lets them begin: two callers in tasks of players, two in one of their own.
    pub fn new(players: [TaskId; 2], seed: u64) -> Outcome<Redirected> {
        let own = Child::with_quota(24)?;
        let tasks = [players[0], own.0, players[1], own.0];
        let random = Random::new(seed ^ 0x7ed1_7ec7);
        let handlers = [const { None }; HANDLERS];
        let mut it = Redirected { handlers, _own: own, tasks, random, made: [(0, 0); CALLERS] };
        (0..HANDLERS).try_for_each(|index| it.make_handler(index))?;
        (0..CALLERS).for_each(|index| it.make_caller(index));
        Ok(it)
    }

    /// Makes a handler anew, as far as its task can pay for that; whoever waits for the old one stops.
    fn make_handler(&mut self, index: usize) -> Outcome {
        self.handlers[index] = None;
        DOERS[index].store(0, Relaxed);
        let task = if index == 0 { TaskId::NIL } else { self.tasks[0] };
        let Ok(mut agent) = Agent::with_priority(task, pager::priority() - 1) else { return Ok(()) };
        sys::thread_set_priority(agent.uid, pager::priority() - 1, 100)?;
        DOERS[index].store(agent.uid.0, Relaxed);
        agent.start_apply(handler::serve, self.random.next());
        self.handlers[index] = Some(agent);
        Ok(())
    }

    /// Another handler in the place of one that may be in the middle of a call.
    pub fn replace_handler(&mut self) -> Outcome {
        let index = self.random.below(HANDLERS as u64) as usize;
        self.make_handler(index)
    }

    /// A handler that may have the calls of a caller.
    fn handler_of(&mut self, index: usize) -> Uid {
        let beside = self.tasks[index] == self.tasks[0] && self.random.below(2) == 0;
        let name = Uid(DOERS[usize::from(beside)].load(Relaxed));
        if name.is_nil() { Uid(DOERS[0].load(Relaxed)) } else { name }
    }

    /// Makes a caller anew, as far as its task can pay for that.
    fn make_caller(&mut self, index: usize) {
        // Nil would be this thread itself, here and below.
        let old = Uid(NAMES[index].swap(0, Relaxed));
        if !old.is_nil() {
            let _ = sys::thread_destroy(old);
        }
        let handler = self.handler_of(index);
        let priority = pager::priority() - 1;
        let Ok(uid) = sys::thread_create(self.tasks[index], priority, pager::uid(), handler) else { return };
        let words = words(index);
        words.index.store(index as u64, Relaxed);
        words.label.store(index as u64, Relaxed);
        words.client.store(0, Relaxed);
        words.state.fetch_xor(self.random.next(), Relaxed);
        NAMES[index].store(uid.0, Relaxed);
        let entry = if is_carrier(index) { suite_redirected_carrier } else { suite_redirected_caller };
        let _ = sys::thread_set_priority(uid, priority, 100);
        if !is_carrier(index) {
            let _ = sys::foreign::thread_redirect(uid, index as u32);
        }
        // SAFETY: its stack is in its block, which nobody else uses.
        let _ = unsafe { sys::thread_start(uid, address(entry), core::ptr::from_ref(words) as u64, 0) };
    }

    /// Looks after all of them: whoever is gone or hangs is made anew, or goes on.
    pub fn review(&mut self) -> Outcome {
        for (index, name) in DOERS.iter().enumerate() {
            let uid = Uid(name.load(Relaxed));
            match sys::thread_info(uid).map(|info| info.state) {
                _ if uid.is_nil() => self.make_handler(index)?,
                // A wait that ends is an occasion to answer.
                Ok(RECEIVING) if self.random.below(2) == 0 => {
                    let _ = sys::thread_abort(uid);
                }
                Ok(READY | RECEIVING | SENDING | BUSY | STOPPED) => {}
                _ => self.make_handler(index)?,
            }
        }
        (0..CALLERS).for_each(|index| self.review_caller(index));
        Ok(())
    }

    fn review_caller(&mut self, index: usize) {
        let uid = Uid(NAMES[index].load(Relaxed));
        let made = words(index).made.load(Relaxed);
        let (before, still) = &mut self.made[index];
        *still = if *before == made { *still + 1 } else { 0 };
        *before = made;
        let is_still = *still > STILL_REVIEWS;
        let Some(info) = sys::thread_info(uid).ok().filter(|_| !uid.is_nil()) else {
            return self.make_caller(index);
        };
        // A carrier may wait for a client, but not for ever: a player may have let it answer like others.
        let is_idle = is_carrier(index)
            && info.state == RECEIVING
            && info.ip != address(suite_redirected_behind)
            && *still < IDLE_REVIEWS;
        if info.state == STOPPED && *still > 0 && !is_still {
            // It was aborted, or its handler has ended.
            let handler = self.handler_of(index);
            let _ = sys::thread_set_pager(uid, pager::uid(), handler).and_then(|()| sys::thread_resume(uid));
        }
        if !is_still || is_idle {
            return;
        }
        self.made[index].1 = 0;
        if self.random.below(2) == 0 || sys::thread_abort(uid).and(sys::thread_resume(uid)).is_err() {
            self.make_caller(index);
        }
    }
}

/// Counts of calls, as they are printed.
const COUNTS: usize = 10;

fn counts() -> [u64; COUNTS] {
    let sum = |of: fn(&Words) -> &AtomicU64| (0..CALLERS).map(|index| of(words(index)).load(Relaxed)).sum();
    [
        sum(|words| &words.made),
        sum(|words| &words.answered),
        sum(|words| &words.as_is),
        sum(|words| &words.otherwise),
        sum(|words| &words.astray),
        sum(|words| &words.vectors),
        sum(|words| &words.older),
        sum(|words| &words.initial),
        sum(|words| &words.elsewhere),
        sum(|words| &words.labels),
    ]
}

/// Forgets what was counted.
pub fn forget() {
    for index in 0..CALLERS {
        let Words {
            made,
            answered,
            as_is,
            otherwise,
            astray,
            vectors,
            older,
            initial,
            elsewhere,
            labels,
            ..
        } = words(index);
        let all = [made, answered, as_is, otherwise, astray, vectors, older, initial, elsewhere, labels];
        all.iter().for_each(|count| count.store(0, Relaxed));
    }
    handler::forget();
}

/// Says what came of the foreign calls.
pub fn tell() {
    let [made, answered, as_is, otherwise, astray, vectors, older, initial, elsewhere, labels] = counts();
    println!(
        "FOREIGN made={made} answered={answered} as_is={as_is} otherwise={otherwise} astray={astray} vectors={vectors} \
         older={older} initial={initial} elsewhere={elsewhere} labels_refused={labels}"
    );
    handler::tell();
}

/// Judges what came of the foreign calls beside `calls` of the players.
pub fn judge(calls: u64) -> Outcome {
    let [made, answered, as_is, otherwise, astray, vectors, older, initial, elsewhere, labels] = counts();
    let in_doubt = handler::judge(calls)?;
    check!(made > calls / 100 && answered > calls / 200, "next to nobody made foreign calls");
    let _ = labels;
    for count in [as_is, otherwise, elsewhere] {
        check!(count > calls / 100_000, "next to nobody meddled with foreign calls");
    }
    check!(astray <= in_doubt, "{astray} answers went to other calls, of which {in_doubt} may");
    for index in (0..CALLERS).filter(|&index| words(index).vectors.load(Relaxed) != 0) {
        let Words { found, change, sent, .. } = words(index);
        let [found, change, sent] = [found, change, sent].map(|word| word.load(Relaxed));
        println!(
            "FOREIGN caller {index}, whose last call was {sent:x}, found {found:x} with an answer of {change:x}"
        );
    }
    check_eq!(vectors, 0);
    let bound = 1 + calls / 100_000;
    check!(initial <= bound, "{initial} answers came with initial vector registers");
    check!(older <= bound, "{older} answers came with vector registers of earlier calls");
    Ok(())
}
