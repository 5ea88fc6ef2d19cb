//! Foreign calls: system calls of another system, which arrive with a handler in all registers.

use super::exception::denied;
use crate::kit::{Agent, Attempt, Attempted, Child, Outcome, pager, runs_until};
use crate::{check, check_eq};
use core::arch::global_asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use sys::abi::USER_END;
use sys::abi::call::{Call, RESUME, thread_op};
use sys::foreign::{Arrival, Handler, Registers, answer_later, resume};
use sys::thread_state::STOPPED;
use sys::{Error, Fpage, Kind, Rights, TaskId, Timeout, Uid};

// A guest waits for 1 in its flag, makes a call with all registers from its block, stores those with which the call returned, and says 2;
// for 3 it ends. rdi: Guest.
global_asm!(
    "
    .section .text.suite_foreign, \"ax\", @progbits
    .globl suite_foreign_guest
suite_foreign_guest:
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
1:  pause
    cmp qword ptr [rdi], 1
    jne 1b
    push rdi
    mov rax, rdi
    mov rdi, [rax + 8]
    mov rsi, [rax + 16]
    mov rdx, [rax + 24]
    mov r10, [rax + 32]
    mov r8, [rax + 40]
    mov r9, [rax + 48]
    mov rbx, [rax + 56]
    mov rbp, [rax + 64]
    mov r12, [rax + 72]
    mov r13, [rax + 80]
    mov r14, [rax + 88]
    mov r15, [rax + 96]
    mov rax, [rax + 104]
    stc
    syscall
    .globl suite_foreign_behind
suite_foreign_behind:
    pushfq
    push rax
    mov rax, [rsp + 16]
    mov [rax + 112], rdi
    mov [rax + 120], rsi
    mov [rax + 128], rdx
    mov [rax + 136], r10
    mov [rax + 144], r8
    mov [rax + 152], r9
    mov [rax + 160], rbx
    mov [rax + 168], rbp
    mov [rax + 176], r12
    mov [rax + 184], r13
    mov [rax + 192], r14
    mov [rax + 200], r15
    mov [rax + 224], rcx
    pop rcx
    mov [rax + 208], rcx
    pop rcx
    mov [rax + 216], rcx
    pop rdi
    mov qword ptr [rdi], 2
2:  pause
    cmp qword ptr [rdi], 3
    jne 2b
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    xor eax, eax
    ret
    .globl suite_foreign_elsewhere
suite_foreign_elsewhere:
    mov eax, 77
    jmp suite_foreign_behind

# Other ways in, once the word at rdi is not 0. rsi: 0 for int 0x80, 1 for sysenter, 2 for a native call, above 2 a jump to that code segment.
    .globl suite_foreign_other_way
suite_foreign_other_way:
1:  pause
    cmp dword ptr [rdi], 0
    je 1b
    mov eax, 39
    test rsi, rsi
    jnz 2f
    int 0x80
    ret
2:  cmp rsi, 1
    jne 3f
    mov rcx, rsp
    lea rdx, [rip + suite_foreign_other_way_end]
    sysenter
    ret
3:  cmp rsi, 2
    jne 4f
    mov eax, 0x80000027
    syscall
    ret
4:  lea ecx, [rip + suite_foreign_other_way_end]
    mov [rsp - 16], ecx
    mov [rsp - 12], esi
    jmp fword ptr [rsp - 16]
    .globl suite_foreign_other_way_end
suite_foreign_other_way_end:
    mov eax, 55
    ret
    .text
    "
);

unsafe extern "C" {
    fn suite_foreign_guest();
    fn suite_foreign_behind();
    fn suite_foreign_elsewhere();
    fn suite_foreign_other_way();
    fn suite_foreign_other_way_end();
    fn suite_nothing();
}

/// Memory of a guest.
#[repr(C)]
struct Guest {
    flag: AtomicU64,
    before: Registers,
    after: Registers,
    flags: u64,
    rcx: u64,
}

const FRESH: Registers = Registers {
    rdi: 0x101,
    rsi: 0x102,
    rdx: 0x103,
    r10: 0x104,
    r8: 0x105,
    r9: 0x106,
    rbx: 0x107,
    rbp: 0x108,
    r12: 0x109,
    r13: 0x10a,
    r14: 0x10b,
    r15: 0x10c,
    rax: 0x1234_5678_0000_0027,
};

static mut GUESTS: [Guest; 2] =
    [const { Guest { flag: AtomicU64::new(0), before: FRESH, after: FRESH, flags: 0, rcx: 0 } }; 2];

/// Registers of the last call that the handler has seen; below, the labels of all, 16 bits each.
static mut SEEN: Registers = FRESH;
static LABELS: AtomicU64 = AtomicU64::new(0);

fn guest(index: usize) -> &'static mut Guest {
    // SAFETY: the thread of the guest, the test, and the handler take turns.
    unsafe { &mut *(&raw mut GUESTS).cast::<Guest>().add(index) }
}

fn address(function: Attempt) -> u64 {
    function as *const () as usize as u64
}

/// An agent that is about to make a foreign call, which goes to `handler`.
fn caller(child: &Child, index: usize, handler: Uid) -> Outcome<Agent> {
    let mut agent = child.agent()?;
    agent.attempt(suite_nothing, 0, 0)?;
    let memory = guest(index);
    *memory = Guest { flag: AtomicU64::new(0), before: FRESH, after: FRESH, flags: 0, rcx: 0 };
    memory.before.r9 = index as u64;
    agent.start_attempt(suite_foreign_guest, memory as *mut Guest as u64, 0);
    redirect(&agent, handler, 0x7001 + index as u32)?;
    Ok(agent)
}

/// Lets an agent get to where it waits for a flag; from then on `handler` has its foreign calls, with this label.
fn redirect(agent: &Agent, handler: Uid, label: u32) -> Outcome {
    for _ in 0..10 {
        sys::thread_switch(agent.uid)?;
    }
    sys::thread_set_pager(agent.uid, pager::uid(), handler)?;
    Ok(sys::foreign::thread_redirect(agent.uid, label)?)
}

fn has_flag(index: usize, value: u64) -> Outcome<bool> {
    runs_until(Uid::NIL, || Ok(guest(index).flag.load(Relaxed) == value))
}

/// Lets an agent whose call has returned end, and the next test use it.
fn release(agent: &mut Agent, index: usize) -> Outcome {
    sys::thread_deny_native(agent.uid, 0)?;
    sys::thread_set_pager(agent.uid, pager::uid(), pager::uid())?;
    guest(index).flag.store(3, Relaxed);
    check!(agent.attempted()?.is_fine());
    Ok(())
}

fn note(label: u32, handler: &Handler) {
    // SAFETY: as in `guest`.
    unsafe { SEEN = handler.registers };
    LABELS.store(LABELS.load(Relaxed) << 16 | u64::from(label), Relaxed);
}

/// Answers calls with every register changed, until a message comes.
pub(super) extern "C" fn answer_all(_: u64) -> u64 {
    let mut handler = Handler::default();
    let mut arrival = handler.wait();
    loop {
        match arrival {
            Ok(Arrival::Call(label)) => {
                note(label, &handler);
                let all = (&raw mut handler.registers).cast::<u64>();
                for i in 0..13 {
                    // SAFETY: the registers are thirteen words.
                    unsafe { *all.add(i) += 0x10_0000 };
                }
                arrival = handler.answer();
            }
            Ok(Arrival::Message(message)) => {
                return sys::send(message.sender, 0, [0; 8], Timeout::ZERO).map_or(1, |()| 0);
            }
            Err(error) => return 100 + error as u64,
        }
    }
}

pub(super) fn handler(function: extern "C" fn(u64) -> u64) -> Outcome<Agent> {
    LABELS.store(0, Relaxed);
    let mut agent = Agent::new(TaskId::NIL)?;
    agent.start_apply(function, 0);
    check!(agent.settle()?);
    Ok(agent)
}

fn end(handler: &mut Agent) -> Outcome {
    sys::ipc_call(handler.uid, 0, [0; 8])?;
    check_eq!(handler.result()?, 0);
    Ok(())
}

fn is_answered(index: usize) -> Outcome {
    let Guest { before, after, flags, rcx, .. } = guest(index);
    let words = |registers: &Registers| -> [u64; 13] {
        let Registers { rdi, rsi, rdx, r10, r8, r9, rbx, rbp, r12, r13, r14, r15, rax } = *registers;
        [rdi, rsi, rdx, r10, r8, r9, rbx, rbp, r12, r13, r14, r15, rax]
    };
    check_eq!(words(after), words(before).map(|word| word + 0x10_0000));
    // The carry flag was set, with those of a comparison of equals; and all registers that the instruction itself overwrites say what they always say.
    check_eq!(*flags & 0x8d5, 0x45);
    check_eq!(*rcx, address(suite_foreign_behind));
    Ok(())
}

pub fn all_registers_pass() -> Outcome {
    let child = Child::new()?;
    let mut server = handler(answer_all)?;
    let mut agent = caller(&child, 0, server.uid)?;
    for _ in 0..2 {
        guest(0).flag.store(1, Relaxed);
        check!(has_flag(0, 2)?);
        // SAFETY: as in `guest`.
        check_eq!(unsafe { SEEN }, guest(0).before);
        is_answered(0)?;
        release(&mut agent, 0)?;
        agent = caller(&child, 0, server.uid)?;
    }
    check_eq!(LABELS.load(Relaxed), 0x7001_7001);
    guest(0).flag.store(1, Relaxed);
    check!(has_flag(0, 2)?);
    release(&mut agent, 0)?;
    end(&mut server)
}

/// Calls come while the handler is busy, and in the queue; each is a foreign call when it is taken.
pub fn calls_queue() -> Outcome {
    let child = Child::new()?;
    let mut server = Agent::new(TaskId::NIL)?;
    LABELS.store(0, Relaxed);
    let mut agents = [caller(&child, 0, server.uid)?, caller(&child, 1, server.uid)?];
    for (index, agent) in agents.iter().enumerate() {
        guest(index).flag.store(1, Relaxed);
        check!(agent.settle()?);
    }
    server.start_apply(answer_all, 0);
    for (index, agent) in agents.iter_mut().enumerate() {
        check!(has_flag(index, 2)?);
        is_answered(index)?;
        release(agent, index)?;
    }
    check_eq!(LABELS.load(Relaxed), 0x7001_7002);
    end(&mut server)
}

/// Gives pages to whoever faults, and answers calls, each at once with the next wait.
extern "C" fn answer_with_pages(_: u64) -> u64 {
    let mut handler = Handler::default();
    let mut caller = handler.wait_for_call();
    let mut pages = 0;
    loop {
        if let Some(label) = caller {
            note(label, &handler);
            let all = (&raw mut handler.registers).cast::<u64>();
            for i in 0..13 {
                // SAFETY: the registers are thirteen words.
                unsafe { *all.add(i) += 0x10_0000 };
            }
            caller = handler.answer_call();
            continue;
        }
        let Ok(message) = handler.message() else { return 1 };
        if message.kind != Kind::Fault {
            // Nobody waits for an answer, so nothing comes.
            let is_nothing = handler.reply_and_wait(sys::myself(), 0, None).is_none();
            let is_told = is_nothing && handler.message().is_err() && pages > 0;
            return sys::send(message.sender, 0, [0; 8], Timeout::ZERO)
                .map_or(2, |()| if is_told { 0 } else { 3 });
        }
        let page = message.words[0] & !0xfff;
        pages += 1;
        caller =
            handler.reply_and_wait(message.sender, 0, Some((Fpage::memory(page, 12, Rights::RWX), page)));
    }
}

pub fn faults_are_answered_with_the_next_wait() -> Outcome {
    let child = Child::new()?;
    let mut server = handler(answer_with_pages)?;
    let mut agent = caller(&child, 0, server.uid)?;
    sys::thread_set_pager(agent.uid, server.uid, server.uid)?;
    let page = guest(0) as *mut Guest as u64 & !0xfff;
    sys::flush(Fpage::memory(page, 12, Rights::RWX))?;
    guest(0).flag.store(1, Relaxed);
    check!(has_flag(0, 2)?);
    is_answered(0)?;
    check_eq!(LABELS.load(Relaxed), 0x7001);
    release(&mut agent, 0)?;
    end(&mut server)
}

/// Leaves the first call unanswered until the second is answered and a message comes; then lets its thread go on at another place.
extern "C" fn answer_first_last(first: u64) -> u64 {
    let mut handler = Handler::default();
    let Ok(Arrival::Call(one)) = handler.wait() else { return 1 };
    note(one, &handler);
    let mut kept = handler.registers;
    let Ok(Arrival::Call(other)) = handler.wait() else { return 2 };
    note(other, &handler);
    handler.registers.rax = 42;
    let Ok(Arrival::Message(message)) = handler.answer() else { return 3 };
    kept.r15 = 1515;
    let first = Uid(if first == 0 { FIRST.load(Relaxed) } else { first });
    let Ok([_, sp, flags, _]) = sys::thread_registers(first, 0) else { return 4 };
    if resume(first, &kept, [address(suite_foreign_elsewhere), sp, flags]).is_err() {
        return 5;
    }
    sys::send(message.sender, 0, [0; 8], Timeout::ZERO).map_or(6, |()| 0)
}

static FIRST: AtomicU64 = AtomicU64::new(0);

pub fn answers_come_in_any_order() -> Outcome {
    let child = Child::new()?;
    let mut server = handler(answer_first_last)?;
    let mut agents = [caller(&child, 0, server.uid)?, caller(&child, 1, server.uid)?];
    FIRST.store(agents[0].uid.0, Relaxed);
    guest(0).flag.store(1, Relaxed);
    check!(agents[0].settle()?);
    guest(1).flag.store(1, Relaxed);
    check!(has_flag(1, 2)?);
    check_eq!((guest(1).after.rax, guest(1).after.r15), (42, guest(1).before.r15));
    check_eq!(guest(0).flag.load(Relaxed), 1);
    sys::ipc_call(server.uid, 0, [0; 8])?;
    check!(has_flag(0, 2)?);
    check_eq!((guest(0).after.rax, guest(0).after.r15, guest(0).after.rdi), (77, 1515, 0x101));
    check_eq!(server.result()?, 0);
    check_eq!(LABELS.load(Relaxed), 0x7001_7002);
    for (index, agent) in agents.iter_mut().enumerate() {
        release(agent, index)?;
    }
    Ok(())
}

/// Leaves the first call unanswered until the second is answered and a message comes; then returns from it late, by its name.
extern "C" fn return_first_last(first: u64) -> u64 {
    let mut handler = Handler::default();
    let Ok(Arrival::Call(one)) = handler.wait() else { return 1 };
    note(one, &handler);
    let mut kept = handler.registers;
    let Ok(Arrival::Call(_)) = handler.wait() else { return 2 };
    let Ok(Arrival::Message(message)) = handler.answer() else { return 3 };
    let all = (&raw mut kept).cast::<u64>();
    for i in 0..13 {
        // SAFETY: the registers are thirteen words.
        unsafe { *all.add(i) += 0x10_0000 };
    }
    if !refuses_bad_places(first, &raw const kept as u64) {
        return 4;
    }
    if answer_later(Uid(first), &kept).is_err() || answer_later(Uid(first), &kept) != Err(Error::BadState) {
        return 5;
    }
    sys::send(message.sender, 0, [0; 8], Timeout::ZERO).map_or(6, |()| 0)
}

/// Whether registers of a late return may be nowhere but where a user's words are: the kernel's memory, its border, and between two words.
fn refuses_bad_places(thread: u64, fine: u64) -> bool {
    let kernel = [1 << 47, 0xffff_8000_0000_0000, 0xffff_ffff_8010_1000, 0xffff_ffff_c000_0000, !7];
    let places = [1, 2, 4].map(|offset| fine + offset).into_iter().chain(kernel);
    places.chain([USER_END - Registers::LEN_BYTES + 8, USER_END]).all(|place| {
        let mut registers = [thread, place, 0, 0, 0, 0];
        let operation = Call::ThreadControl as u32 | thread_op::FOREIGN_RETURN << 8;
        // SAFETY: the call takes nothing away; without the check that is tested here it would read.
        unsafe { sys::system_call(operation, &mut registers) == Error::BadArgument as u64 }
    })
}

/// A late return gives all registers but those of the instruction itself; nobody but the handler may do it.
pub fn late_returns_give_all_registers() -> Outcome {
    let child = Child::new()?;
    let mut server = Agent::new(TaskId::NIL)?;
    LABELS.store(0, Relaxed);
    let mut agents = [caller(&child, 0, server.uid)?, caller(&child, 1, server.uid)?];
    server.start_apply(return_first_last, agents[0].uid.0);
    check!(server.settle()?);
    guest(0).flag.store(1, Relaxed);
    check!(agents[0].settle()?);
    check_eq!(answer_later(agents[0].uid, &FRESH), Err(Error::BadState));
    guest(1).flag.store(1, Relaxed);
    check!(has_flag(1, 2)?);
    check_eq!(guest(0).flag.load(Relaxed), 1);
    sys::ipc_call(server.uid, 0, [0; 8])?;
    check!(has_flag(0, 2)?);
    is_answered(0)?;
    check_eq!(server.result()?, 0);
    for (index, agent) in agents.iter_mut().enumerate() {
        release(agent, index)?;
    }
    Ok(())
}

/// Never answers.
extern "C" fn keep_all(_: u64) -> u64 {
    let mut handler = Handler::default();
    while let Ok(Arrival::Call(label)) = handler.wait() {
        note(label, &handler);
    }
    0
}

/// A thread whose handler ends is stopped, as after an exception that nobody handles; stopped and resumed while it waits, it goes on waiting.
pub fn handlers_that_end() -> Outcome {
    let child = Child::new()?;
    let server = handler(keep_all)?;
    let agent = caller(&child, 0, server.uid)?;
    guest(0).flag.store(1, Relaxed);
    check!(agent.settle()?);
    sys::thread_stop(agent.uid)?;
    sys::thread_resume(agent.uid)?;
    check!(agent.settle()?);
    check_eq!(LABELS.load(Relaxed), 0x7001);
    sys::thread_destroy(server.uid)?;
    check_eq!(agent.info()?.state, STOPPED);
    check_eq!(guest(0).flag.load(Relaxed), 1);
    Ok(())
}

/// A stopped thread says whether it is in its own code or in a call.
fn is_stopped_in_call(thread: Uid) -> sys::Result<bool> {
    sys::thread_stop(thread)?;
    let info = sys::thread_info(thread)?;
    Ok(info.state == STOPPED && info.is_in_call)
}

/// A call is answered while its thread is stopped; the thread goes on when it is resumed.
pub fn stopped_threads_are_answered() -> Outcome {
    let child = Child::new()?;
    let mut server = handler(answer_first_last)?;
    let mut agents = [caller(&child, 0, server.uid)?, caller(&child, 1, server.uid)?];
    FIRST.store(agents[0].uid.0, Relaxed);
    guest(0).flag.store(1, Relaxed);
    check!(agents[0].settle()?);
    check!(is_stopped_in_call(agents[0].uid)?);
    check!(!is_stopped_in_call(agents[1].uid)?);
    sys::thread_resume(agents[1].uid)?;
    guest(1).flag.store(1, Relaxed);
    check!(has_flag(1, 2)?);
    sys::ipc_call(server.uid, 0, [0; 8])?;
    check_eq!(server.result()?, 0);
    for _ in 0..10 {
        sys::thread_switch(agents[0].uid)?;
    }
    check_eq!(guest(0).flag.load(Relaxed), 1);
    sys::thread_resume(agents[0].uid)?;
    check!(has_flag(0, 2)?);
    check_eq!(guest(0).after.rax, 77);
    for (index, agent) in agents.iter_mut().enumerate() {
        release(agent, index)?;
    }
    Ok(())
}

/// Labels have 31 bits, and a handler that takes no foreign calls gets an exception.
pub fn others_get_exceptions() -> Outcome {
    let child = Child::new()?;
    let mut agent = denied(&child, 39, |_| Ok(()))?;
    check_eq!(agent.attempted()?.vector(), Some(sys::abi::call::vector::SYSCALL));
    check_eq!(sys::foreign::thread_redirect(agent.uid, 1 << 31), Err(sys::Error::BadArgument));
    check_eq!(Handler::default().answer().map(drop), Err(sys::Error::BadState));
    Ok(())
}

/// Words of the exception that a handler of foreign calls got.
static EXCEPTION: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// Takes one exception, and lets its thread go on behind what raised it, as an ordinary thread.
extern "C" fn take_exception(_: u64) -> u64 {
    let mut handler = Handler::default();
    let Ok(Arrival::Message(message)) = handler.wait() else { return 1 };
    if message.kind != Kind::Exception {
        return 2;
    }
    let [_, _, _, sp, flags, ..] = message.words;
    EXCEPTION.iter().zip(message.words).for_each(|(cell, word)| cell.store(word, Relaxed));
    let thread = message.sender;
    let words = [0, 0, address(suite_foreign_other_way_end), sp, flags, 0, 0, 0];
    let goes_on = sys::thread_deny_native(thread, 0)
        .and(sys::thread_set_pager(thread, pager::uid(), pager::uid()))
        .and(sys::send(thread, RESUME, words, Timeout::ZERO));
    if goes_on.is_ok() { 0 } else { 3 }
}

/// Lets a handler have the foreign calls of an agent that waits for a flag, and sets that.
pub fn redirect_at(agent: &Agent, handler: &Agent, flag: &AtomicU64) -> Outcome {
    redirect(agent, handler.uid, 1)?;
    flag.store(1, Relaxed);
    Ok(())
}

/// Vector and error code of the exception in which another way into a kernel ends, at a thread whose foreign calls go to a handler.
fn other_way(child: &Child, way: u64) -> Outcome<[u64; 2]> {
    static FLAG: AtomicU64 = AtomicU64::new(0);
    let mut server = handler(take_exception)?;
    let mut agent = child.agent()?;
    agent.attempt(suite_nothing, 0, 0)?;
    FLAG.store(0, Relaxed);
    agent.start_attempt(suite_foreign_other_way, FLAG.as_ptr() as u64, way);
    redirect_at(&agent, &server, &FLAG)?;
    check_eq!(server.result()?, 0);
    check_eq!(agent.attempted()?, Attempted::Returned(55));
    let [vector, code, ip, _] = EXCEPTION.each_ref().map(|word| word.load(Relaxed));
    let range = address(suite_foreign_other_way)..address(suite_foreign_other_way_end);
    check!(range.contains(&ip), "way {way:x}: {vector} at {ip:x}");
    Ok([vector, code])
}

const INVALID: u64 = 6;
const PROTECTION: u64 = 13;

/// The interrupt of 32-bit programs is no call: it ends in the exception that it is for every thread.
pub fn interrupts_of_programs_are_exceptions() -> Outcome {
    let got = other_way(&Child::new()?, 0)?;
    // The vector's place in the table: of some emulators in bytes of a table with longer entries.
    check!([8, 16].map(|bytes| [PROTECTION, 0x80 * bytes + 2]).contains(&got), "int 0x80: {got:x?}");
    Ok(())
}

/// The processor has nowhere to go by this instruction; some have none.
pub fn sysenter_is_an_exception() -> Outcome {
    let got = other_way(&Child::new()?, 1)?;
    check!(got == [PROTECTION, 0] || got == [INVALID, 0], "sysenter: {got:x?}");
    Ok(())
}

/// A native call, which the thread may not make, is no foreign one, although its handler takes those.
pub fn native_calls_are_exceptions() -> Outcome {
    let got = other_way(&Child::new()?, 2)?;
    check_eq!(got[0], sys::abi::call::vector::SYSCALL);
    Ok(())
}

/// There is no code segment but that of 64-bit programs, so nobody gets into a mode in which calls have other numbers.
pub fn other_code_segments_are_exceptions() -> Outcome {
    const CODE: u64 = 0x2b;
    let child = Child::new()?;
    let all = (1..=10).flat_map(|index| [index << 3 | 3, index << 3 | 7]);
    for selector in all.filter(|&selector| selector != CODE) {
        check_eq!(other_way(&child, selector)?, [PROTECTION, selector & !3]);
    }
    // A jump to the one that there is needs no exception.
    let mut agent = child.agent()?;
    static OPEN: AtomicU64 = AtomicU64::new(1);
    check_eq!(agent.attempt(suite_foreign_other_way, OPEN.as_ptr() as u64, CODE)?, Attempted::Returned(55));
    Ok(())
}
