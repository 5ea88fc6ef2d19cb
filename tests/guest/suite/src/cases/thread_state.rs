//! All registers of a thread at once: got, set, copied to another thread, and refused.

use super::{debug, foreign};
use crate::kit::{Agent, Attempt, Attempted, Child, Frame, Outcome, fails, pager, runs_until};
use crate::{check, check_eq};
use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use sys::abi::USER_END;
use sys::abi::call::{Call, FLAGS, RESUME_AS_IS, thread_op};
use sys::abi::state::register::{R11, RAX, RCX, RFLAGS, RIP, RSP};
use sys::abi::state::{IMAGE_HEADER, IMAGE_MXCSR, REGISTERS, STATE_AVX, STATE_GS, STATE_SSE, STATE_X87};
use sys::foreign::{Arrival, Handler};
use sys::thread_state::{FAULTING, STOPPED};
use sys::{Error, Kind, Message, TaskId, ThreadState, Timeout, Uid};

// suite_state_fill(pattern, parts): fills all registers that a thread has with numbers that follow from the pattern; then it loops, or, with
// bit 16 of parts, executes int3. suite_state_serve does so when somebody has called. suite_state_store stores all registers in SEEN, and
// never returns.
global_asm!(
    "
    .section .text.suite_state, \"ax\", @progbits
    .globl suite_state_serve
suite_state_serve:
    push rdi
    push rsi
    xor edx, edx
    mov eax, 0xffffffff
    syscall
    pop rsi
    pop rdi
    .globl suite_state_fill
suite_state_fill:
    sub rsp, 40
    mov rax, rdi
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    mov [rsp], rax
    not rax
    mov [rsp + 8], rax
    not rax
    movups xmm\\n, [rsp]
    inc rax
    .endr
    test esi, 4
    jz 1f
    mov rax, rdi
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    mov [rsp], rax
    mov [rsp + 24], rax
    not rax
    mov [rsp + 8], rax
    mov [rsp + 16], rax
    not rax
    vmovups ymm\\n, [rsp]
    inc rax
    .endr
1:  test esi, 256
    jz 2f
    wrfsbase rsp
    lea rax, [rsp + 8]
    wrgsbase rax
2:  mov dword ptr [rsp], 0x3f80
    ldmxcsr [rsp]
    fninit
    mov dword ptr [rsp], 0x27f
    fldcw [rsp]
    fld1
    add rsp, 40
    test esi, 0x10000
    jz suite_spin
    int3
    jmp suite_state_store

    .globl suite_state_call
suite_state_call:
    mov eax, 39
    syscall
    .globl suite_state_store
suite_state_store:
    mov [rip + {seen} + 16 + 8], rsp
    pushfq
    pop qword ptr [rip + {seen} + 16 + 8 * 2]
    mov [rip + {seen} + 16 + 8 * 3], rax
    mov [rip + {seen} + 16 + 8 * 4], rbx
    mov [rip + {seen} + 16 + 8 * 5], rcx
    mov [rip + {seen} + 16 + 8 * 6], rdx
    mov [rip + {seen} + 16 + 8 * 7], rsi
    mov [rip + {seen} + 16 + 8 * 8], rdi
    mov [rip + {seen} + 16 + 8 * 9], rbp
    mov [rip + {seen} + 16 + 8 * 10], r8
    mov [rip + {seen} + 16 + 8 * 11], r9
    mov [rip + {seen} + 16 + 8 * 12], r10
    mov [rip + {seen} + 16 + 8 * 13], r11
    mov [rip + {seen} + 16 + 8 * 14], r12
    mov [rip + {seen} + 16 + 8 * 15], r13
    mov [rip + {seen} + 16 + 8 * 16], r14
    mov [rip + {seen} + 16 + 8 * 17], r15
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movups [rip + {seen} + 192 + 16 * \\n], xmm\\n
    .endr
    test dword ptr [rip + {seen}], 4
    jz 1f
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vextractf128 [rip + {seen} + 448 + 16 * \\n], ymm\\n, 1
    .endr
1:  test dword ptr [rip + {seen}], 256
    jz 2f
    rdfsbase rax
    mov [rip + {seen} + 160], rax
    rdgsbase rax
    mov [rip + {seen} + 168], rax
2:  stmxcsr [rip + {seen} + 176]
    fnstcw [rip + {seen} + 180]
    fstp qword ptr [rip + {seen} + 184]
    mov qword ptr [rip + {seen} + 8], 1
3:  xor edi, edi
    mov eax, 0x80000005
    syscall
    jmp 3b
    .text
    ",
    seen = sym SEEN,
);

unsafe extern "C" {
    fn suite_state_fill();
    fn suite_state_serve();
    fn suite_state_call();
    fn suite_state_store();
    fn suite_spin_loop();
    fn suite_nothing();
    fn suite_wait_then_call();
}

/// Bit of the second argument of the functions above.
const TRAPS: u64 = 1 << 16;

const PATTERN: u64 = 0x0bad_cafe_0000_0000;

/// Registers that a thread stored.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Seen {
    parts: u64,
    done: u64,
    /// Registers in the order of [`ThreadState`]; the first is not stored.
    registers: [u64; 18],
    fs_base: u64,
    gs_base: u64,
    mxcsr: u32,
    fcw: u32,
    x87: f64,
    xmm: [[u64; 2]; 16],
    upper: [[u64; 2]; 16],
}

#[repr(transparent)]
struct Shared(UnsafeCell<Seen>);

// SAFETY: the test and one agent take turns.
unsafe impl Sync for Shared {}

static SEEN: Shared = Shared(UnsafeCell::new(Seen {
    parts: 0,
    done: 0,
    registers: [0; 18],
    fs_base: 0,
    gs_base: 0,
    mxcsr: 0,
    fcw: 0,
    x87: 0.0,
    xmm: [[0; 2]; 16],
    upper: [[0; 2]; 16],
}));

fn seen() -> Seen {
    // SAFETY: as for `Shared`; the agent writes at any time, so that nothing is known of what is there.
    unsafe { SEEN.0.get().read_volatile() }
}

fn expect_seen(parts: u64) {
    // SAFETY: as for `Shared`.
    unsafe { SEEN.0.get().write_volatile(Seen { parts, ..Seen::default() }) };
}

fn address(function: Attempt) -> u64 {
    function as *const () as usize as u64
}

fn get(thread: Uid) -> Outcome<ThreadState> {
    let mut state = ThreadState::ZERO;
    sys::thread_get_state(thread, &mut state)?;
    Ok(state)
}

fn bad<T>(result: sys::Result<T>, error: Error) -> Outcome {
    fails(Call::ThreadControl, result.map(drop), error)
}

/// Parts that this processor has, by what any state says.
fn parts(child: &Child) -> Outcome<u64> {
    let thread = sys::thread_create(child.0, pager::priority(), pager::uid(), pager::uid())?;
    let mut state = ThreadState { len_bytes: ThreadState::LEN_BYTES, ..ThreadState::ZERO };
    state.image[IMAGE_MXCSR] = 0x1f80;
    sys::thread_set_state(thread, &state)?;
    let parts = get(thread)?.parts;
    sys::thread_destroy(thread)?;
    check_eq!(parts & (STATE_X87 | STATE_SSE), STATE_X87 | STATE_SSE);
    Ok(parts)
}

/// An agent that has filled its registers, and is stopped.
fn filled(child: &Child) -> Outcome<(Agent, u64)> {
    let parts = parts(child)?;
    let mut agent = child.agent()?;
    agent.attempt(suite_nothing, 0, 0)?;
    if parts & STATE_GS == 0 {
        sys::thread_set_fs(agent.uid, &raw const SEEN as u64)?;
    }
    agent.start_attempt(suite_state_fill, PATTERN, parts);
    debug::stop_in_loop(&agent)?;
    Ok((agent, parts))
}

/// Extended state as [`suite_state_fill`] leaves it.
fn is_filled(state: &ThreadState, parts: u64) -> Outcome {
    check_eq!((state.len_bytes, state.parts), (ThreadState::LEN_BYTES, parts));
    let image = &state.image;
    check_eq!(image[IMAGE_HEADER], parts & 7);
    check!(image[IMAGE_HEADER + 1..72].iter().all(|&word| word == 0));
    check_eq!((image[0] & 0xffff, image[IMAGE_MXCSR] as u32), (0x27f, 0x3f80));
    // One, in extended precision.
    check_eq!((image[4], image[5]), (1 << 63, 0x3fff));
    check!((5..20).step_by(2).all(|at| image[at] >> 16 == 0), "bits that are of no register");
    for n in 0..16 {
        let number = PATTERN + n as u64;
        check_eq!([image[20 + 2 * n], image[21 + 2 * n]], [number, !number]);
        let upper = if parts & STATE_AVX != 0 { [!number, number] } else { [0; 2] };
        check_eq!([image[72 + 2 * n], image[73 + 2 * n]], upper);
    }
    check_eq!(state.reserved, [0; 2]);
    check!(image[52..64].iter().all(|&word| word == 0));
    Ok(())
}

/// Runs a stopped thread, whose instruction pointer is that of `suite_state_store`, and compares what it stored with the state that it has.
fn runs_with(thread: Uid, state: &ThreadState) -> Outcome {
    check_eq!(state.registers[RIP], address(suite_state_store));
    expect_seen(state.parts);
    sys::thread_resume(thread)?;
    check!(runs_until(thread, || Ok(seen().done == 1))?, "the thread does not store its registers");
    let seen = seen();
    check_eq!(seen.registers[1..2], state.registers[1..2]);
    check_eq!(seen.registers[3..], state.registers[3..]);
    check_eq!(seen.registers[RFLAGS] & 0xcd5, state.registers[RFLAGS] & 0xcd5);
    rest_is(&seen, state)
}

/// Compares the registers beside the general ones.
fn rest_is(seen: &Seen, state: &ThreadState) -> Outcome {
    if state.parts & STATE_GS != 0 {
        check_eq!((seen.fs_base, seen.gs_base), (state.fs_base, state.gs_base));
    }
    let image = &state.image;
    let has = |part| image[IMAGE_HEADER] & part != 0;
    check_eq!(seen.mxcsr, image[IMAGE_MXCSR] as u32);
    check_eq!(seen.fcw as u16, if has(STATE_X87) { image[0] as u16 } else { 0x37f });
    for n in 0..16 {
        let two =
            |at: usize, part| if has(part) { [image[at + 2 * n], image[at + 1 + 2 * n]] } else { [0; 2] };
        check_eq!(seen.xmm[n], two(20, STATE_SSE));
        check_eq!(seen.upper[n], two(72, STATE_AVX));
    }
    Ok(())
}

pub fn all_registers_are_got() -> Outcome {
    let child = Child::new()?;
    let (agent, parts) = filled(&child)?;
    let state = get(agent.uid)?;
    is_filled(&state, parts)?;
    let mut groups = [0; 20];
    for number in 0..5 {
        groups[4 * number..4 * number + 4].copy_from_slice(&sys::thread_registers(agent.uid, number)?);
    }
    check_eq!(state.registers, groups[..18]);
    check_eq!(state.fs_base, groups[18]);
    check_eq!(state.registers[RAX], PATTERN + 1);
    check_eq!(state.registers[RIP], address(suite_spin_loop));
    if parts & STATE_GS != 0 {
        check_eq!(state.gs_base, state.fs_base + 8);
    } else {
        check_eq!((state.fs_base, state.gs_base), (&raw const SEEN as u64, 0));
    }
    // Nothing has changed by that.
    check_eq!(get(agent.uid)?, state);
    Ok(())
}

/// Another value for each register of a state, such that a thread may have it.
fn changed(state: &ThreadState) -> ThreadState {
    let mut state = *state;
    for (index, register) in state.registers.iter_mut().enumerate() {
        if ![RIP, RSP, RFLAGS].contains(&index) {
            *register ^= 0x5555_0000_1111_0000;
        }
    }
    state.registers[RIP] = address(suite_state_store);
    state.registers[RFLAGS] = FLAGS | 0x8c1;
    state.fs_base = &raw const SEEN as u64;
    if state.parts & STATE_GS != 0 {
        // Canonical, and nobody's.
        state.gs_base = 0xffff_8000_1234_5678;
    }
    for word in &mut state.image[20..52] {
        *word ^= 0xaaaa_0000_1111_2222;
    }
    if state.parts & STATE_AVX != 0 {
        for word in &mut state.image[72..] {
            *word ^= 0x3333_aaaa_0000_2222;
        }
    }
    state.image[IMAGE_MXCSR] ^= 0x4000;
    state.image[0] ^= 0x400;
    state
}

pub fn what_is_set_runs() -> Outcome {
    let child = Child::new()?;
    let (agent, _) = filled(&child)?;
    let before = get(agent.uid)?;
    let mut state = changed(&before);
    // Of the flags those are set that a user may change, and interrupts stay on.
    state.registers[RFLAGS] = !0x100;
    sys::thread_set_state(agent.uid, &state)?;
    state.registers[RFLAGS] = 0x0025_0dd5 & !0x100 | FLAGS;
    check_eq!(get(agent.uid)?, state);
    state.registers[RFLAGS] = FLAGS | 0x8c1;
    sys::thread_set_state(agent.uid, &state)?;
    runs_with(agent.uid, &state)
}

/// A part that the image denies is initial, whatever stands in its place.
pub fn denied_parts_are_initial() -> Outcome {
    let child = Child::new()?;
    let all = parts(&child)? & 7;
    for denied in [STATE_X87, STATE_SSE, STATE_AVX, 7] {
        let (agent, _) = filled(&child)?;
        let mut state = changed(&get(agent.uid)?);
        state.image[IMAGE_HEADER] = all & !denied;
        sys::thread_set_state(agent.uid, &state)?;
        let got = get(agent.uid)?;
        let is_initial = |words: core::ops::Range<usize>| got.image[words].iter().all(|&word| word == 0);
        if denied & STATE_X87 != 0 {
            check_eq!((got.image[0], is_initial(1..3), is_initial(4..20)), (0x37f, true, true));
        }
        check!(denied & STATE_SSE == 0 || is_initial(20..52));
        check!(denied & STATE_AVX == 0 || is_initial(72..104));
        runs_with(agent.uid, &state)?;
    }
    Ok(())
}

/// A thread goes on where another stands, as that would: the copy of a process.
pub fn a_thread_is_copied() -> Outcome {
    let child = Child::new()?;
    let (agent, parts) = filled(&child)?;
    let mut state = get(agent.uid)?;
    let copy = sys::thread_create(child.0, pager::priority(), pager::uid(), pager::uid())?;
    sys::thread_set_state(copy, &state)?;
    check_eq!(sys::thread_info(copy)?.state, STOPPED);
    check_eq!(get(copy)?, state);
    // It spins in the other's loop.
    sys::thread_resume(copy)?;
    check!(runs_until(copy, || Ok(sys::thread_info(copy)?.cpu_ns != 0))?);
    sys::thread_stop(copy)?;
    let ran = get(copy)?;
    check_eq!(ran, state);
    is_filled(&ran, parts)?;
    state.registers[RIP] = address(suite_state_store);
    sys::thread_set_state(copy, &state)?;
    runs_with(copy, &state)?;
    sys::thread_destroy(copy)?;
    // The first has noticed nothing.
    is_filled(&get(agent.uid)?, parts)
}

/// General registers are got and set by themselves; all others stay.
pub fn general_registers_alone() -> Outcome {
    let child = Child::new()?;
    let (agent, parts) = filled(&child)?;
    let mut state = get(agent.uid)?;
    let mut general = [0; REGISTERS];
    sys::thread_get_general(agent.uid, &mut general)?;
    check_eq!(general, state.registers);
    for (at, register) in general.iter_mut().enumerate() {
        *register = PATTERN.rotate_left(at as u32);
    }
    (general[RIP], general[RSP], general[RFLAGS]) =
        (address(suite_state_store), &raw const STACK as u64 + 512, FLAGS | 0x8c1);
    for (at, wrong) in [(RIP, USER_END), (RSP, 1 << 47)] {
        let mut general = general;
        general[at] = wrong;
        bad(sys::thread_set_general(agent.uid, &general), Error::BadArgument)?;
        check_eq!(get(agent.uid)?, state);
    }
    sys::thread_set_general(agent.uid, &general)?;
    state.registers = general;
    let got = get(agent.uid)?;
    is_filled(&got, parts)?;
    check_eq!(got, state);
    runs_with(agent.uid, &state)?;
    // One that never ran has no other registers yet.
    let thread = sys::thread_create(child.0, pager::priority(), pager::uid(), pager::uid())?;
    bad(sys::thread_get_general(thread, &mut general), Error::BadState)?;
    bad(sys::thread_set_general(thread, &general), Error::BadState)?;
    check_eq!(sys::thread_info(thread)?.state, sys::thread_state::INACTIVE);
    Ok(sys::thread_destroy(thread)?)
}

pub fn a_thread_that_never_ran() -> Outcome {
    let child = Child::new()?;
    let parts = parts(&child)?;
    let thread = sys::thread_create(child.0, pager::priority(), pager::uid(), pager::uid())?;
    let mut state = ThreadState::ZERO;
    bad(sys::thread_get_state(thread, &mut state), Error::BadState)?;
    bad(sys::thread_set_state(thread, &state), Error::BadArgument)?;
    // A refusal starts nothing.
    check_eq!(sys::thread_info(thread)?.state, sys::thread_state::INACTIVE);
    state.len_bytes = ThreadState::LEN_BYTES;
    state.image[IMAGE_MXCSR] = 0x1f80;
    sys::thread_set_state(thread, &state)?;
    let got = get(thread)?;
    check_eq!((got.parts, got.image[0], got.registers[RFLAGS]), (parts, 0x37f, FLAGS));
    // It may still be started in the ordinary way.
    let stack = &raw const STACK as u64 + 512;
    // The thread may be through with it as soon as it is started.
    expect_seen(parts);
    // SAFETY: the function never returns; it needs a word of stack.
    unsafe { sys::thread_start(thread, address(suite_state_store), stack, 7)? };
    check!(runs_until(thread, || Ok(seen().done == 1))?);
    check_eq!(seen().registers[sys::abi::state::register::RDI], 7);
    Ok(sys::thread_destroy(thread)?)
}

/// A thread that has not come to run yet has initial registers, whatever was in its memory before.
pub fn new_threads_show_nothing_of_others() -> Outcome {
    let child = Child::new()?;
    for _ in 0..4 {
        drop(filled(&child)?);
        // Less urgent than this thread, so that it does not run before it is stopped.
        let thread = sys::thread_create(child.0, pager::priority() - 1, pager::uid(), pager::uid())?;
        // SAFETY: it does not run.
        unsafe { sys::thread_start(thread, address(suite_nothing), 0x1000, 0)? };
        sys::thread_stop(thread)?;
        let state = get(thread)?;
        check_eq!((state.image[0], state.image[IMAGE_MXCSR] as u32), (0x37f, 0x1f80));
        let rest =
            [&state.image[1..IMAGE_MXCSR], &state.image[IMAGE_MXCSR + 1..IMAGE_HEADER], &state.image[65..]];
        check!(rest.into_iter().flatten().all(|&word| word == 0), "a new thread has another's registers");
        check_eq!((state.fs_base, state.gs_base), (0, 0));
        sys::thread_destroy(thread)?;
    }
    Ok(())
}

/// A stack for one thread.
static mut STACK: [u64; 128] = [0; 128];

/// States that no thread may have. Each is refused, and changes nothing.
pub fn states_that_are_refused() -> Outcome {
    let child = Child::new()?;
    let (agent, parts) = filled(&child)?;
    let before = get(agent.uid)?;
    let mask = (before.image[IMAGE_MXCSR] >> 32) as u32;
    let refused = |change: &dyn Fn(&mut ThreadState)| {
        let mut state = changed(&before);
        change(&mut state);
        bad(sys::thread_set_state(agent.uid, &state), Error::BadArgument)?;
        check!(get(agent.uid)? == before, "a state that was refused has changed something");
        Ok(())
    };
    for len in [0, 1, 1023, 1025, 2048, u64::MAX] {
        refused(&|state| state.len_bytes = len)?;
    }
    for bit in 0..64 {
        let one = 1 << bit;
        if parts & one == 0 {
            refused(&|state| state.parts |= one)?;
        }
        if parts & 7 & one == 0 {
            refused(&|state| state.image[IMAGE_HEADER] |= one)?;
        }
        refused(&|state| state.image[IMAGE_HEADER + 1] = one)?;
        refused(&|state| state.reserved[bit % 2] = one)?;
        refused(&|state| state.image[IMAGE_HEADER + 2 + bit % 6] = one)?;
    }
    for bit in (0..32).filter(|bit| mask >> bit & 1 == 0) {
        refused(&|state| state.image[IMAGE_MXCSR] |= 1 << bit)?;
        // A part that is denied is no excuse: MXCSR is loaded all the same.
        refused(&|state| (state.image[IMAGE_HEADER], state.image[IMAGE_MXCSR]) = (0, 0x1f80 | 1 << bit))?;
    }
    for ip in [USER_END, 1 << 47, 1 << 63, 0xffff_8000_0000_0000, u64::MAX] {
        refused(&|state| state.registers[RIP] = ip)?;
        let sp = ip.max(1 << 47);
        refused(&|state| state.registers[RSP] = sp)?;
    }
    for base in [1 << 47, 1 << 62, 1 << 63, 0xffff_0000_0000_0000, 0xffff_7fff_ffff_ffff] {
        refused(&|state| state.fs_base = base)?;
        refused(&|state| state.gs_base = base)?;
    }
    // A GS base that is not announced.
    refused(&|state| (state.parts, state.gs_base) = (state.parts & !STATE_GS, 8))?;
    if parts & STATE_GS == 0 {
        refused(&|state| state.fs_base = 0xffff_8000_0000_0000)?;
    }
    Ok(())
}

/// A call of an agent's, with any block.
fn call(agent: &mut Agent, op: u32, thread: Uid, block: u64, room: u64) -> Outcome<u64> {
    Ok(agent.control(Call::ThreadControl as u32 | op << 8, [thread.0, block, room, 0, 0, 0])?.0)
}

pub fn blocks_that_are_refused() -> Outcome {
    let child = Child::new()?;
    let (agent, _) = filled(&child)?;
    let before = get(agent.uid)?;
    let mut caller = Agent::new(TaskId::NIL)?;
    let fine = &raw const before as u64;
    let len = ThreadState::LEN_BYTES;
    let general = ThreadState::GENERAL_BYTES;
    let mut blocks = [(fine, len - 1), (fine, 0), (fine, 64), (USER_END, len), (USER_END - len + 64, len)]
        .into_iter()
        .chain([(fine, general - 1), (fine, general + 1), (fine + 4, general), (fine + 1, general)])
        .chain([USER_END - general + 8, USER_END, 1 << 47, !7].map(|address| (address, general)))
        .chain([1, 2, 4, 8, 16, 32].map(|offset| (fine + offset, len)))
        .chain([1 << 47, 0xffff_8000_0000_0000, 0xffff_ff00_0000_0000, !63].map(|address| (address, len)));
    blocks.try_for_each(|(block, room)| {
        for op in [thread_op::GET_STATE, thread_op::SET_STATE] {
            check_eq!(call(&mut caller, op, agent.uid, block, room)?, Error::BadArgument as u64);
        }
        Ok(())
    })?;
    check!(get(agent.uid)? == before);
    // More room is no mistake.
    check_eq!(call(&mut caller, thread_op::SET_STATE, agent.uid, fine, u64::MAX)?, 0);
    Ok(())
}

/// Two pages, between which a block lies.
#[repr(C, align(4096))]
struct Pages([u64; 1024]);

static mut PAGES: Pages = Pages([0; 1024]);

/// A block in memory that the caller does not have yet is there in time: each page by a fault of the caller's.
pub fn pages_come_on_demand() -> Outcome {
    let family = Child::new()?;
    let (target, _) = filled(&family)?;
    let mut state = get(target.uid)?;
    let block = &raw mut PAGES as u64 + 4096 - 512;
    for op in [thread_op::GET_STATE, thread_op::SET_STATE] {
        // A thread of the same task has the right, and none of the suite's pages beside those that it needs to run.
        let child = Child::new()?;
        let (mut caller, target) =
            (child.agent()?, sys::thread_create(child.0, 1, pager::uid(), pager::uid())?);
        caller.attempt(suite_nothing, 0, 0)?;
        state.registers[RAX] += 1;
        sys::thread_set_state(target, &state)?;
        state.registers[RAX] += 1;
        // SAFETY: the block lies in the pages, and no thread uses it now.
        unsafe { (block as *mut ThreadState).write(state) };
        let faults = caller.info()?.faults;
        check_eq!(call(&mut caller, op, target, block, ThreadState::LEN_BYTES)?, 0);
        check_eq!(caller.info()?.faults - faults, 2);
        // SAFETY: as above.
        let (in_memory, of_thread) = (unsafe { (block as *const ThreadState).read() }, get(target)?);
        check_eq!(in_memory, of_thread);
        let is_set = op == thread_op::SET_STATE;
        check_eq!(of_thread.registers[RAX], state.registers[RAX] - u64::from(!is_set));
    }
    Ok(())
}

/// A block of which nobody has a page is an error, and nobody gets an exception.
pub fn pages_that_nobody_has() -> Outcome {
    let child = Child::new()?;
    let (target, _) = filled(&child)?;
    let before = get(target.uid)?;
    let mut caller = child.agent()?;
    caller.attempt(suite_nothing, 0, 0)?;
    let constant = rt::layout::constants().start;
    for (ops, block) in [
        (&[thread_op::GET_STATE, thread_op::SET_STATE][..], 0x7000_0000_0000),
        // The pager refuses to let anybody write here.
        (&[thread_op::GET_STATE], constant),
    ] {
        for with_pager in [true, false] {
            if with_pager && block != constant {
                continue;
            }
            let own = if with_pager { pager::uid() } else { Uid::NIL };
            // The first attempt brings in all pages that the call needs.
            check_eq!(call(&mut caller, thread_op::GET_STATE, target.uid, 1, 0)?, Error::BadArgument as u64);
            sys::thread_set_pager(caller.uid, own, pager::uid())?;
            for &op in ops {
                let error = call(&mut caller, op, target.uid, block, ThreadState::LEN_BYTES)?;
                check_eq!(error, Error::NoAccess as u64);
            }
            sys::thread_set_pager(caller.uid, pager::uid(), pager::uid())?;
        }
    }
    // A pager that does not answer: the call waits, and ends when it is aborted, or its pager ends.
    for aborts in [true, false] {
        let silent = Agent::new(TaskId::NIL)?;
        sys::thread_set_pager(caller.uid, silent.uid, pager::uid())?;
        let words = [target.uid.0, 0x7000_0000_0000, ThreadState::LEN_BYTES, 0, 0, 0];
        caller.block(Frame::control(Call::ThreadControl as u32 | thread_op::SET_STATE << 8, words))?;
        // It is in the middle of a call, so that its own registers are not all of the truth.
        let mut state = ThreadState::ZERO;
        bad(sys::thread_get_state(caller.uid, &mut state), Error::BadState)?;
        if aborts {
            sys::thread_abort(caller.uid)?;
        } else {
            drop(silent);
        }
        check_eq!(caller.wait()?.rax, Error::NoAccess as u64);
        sys::thread_set_pager(caller.uid, pager::uid(), pager::uid())?;
    }
    check!(get(target.uid)? == before);
    Ok(())
}

pub fn threads_that_do_not_stand_still() -> Outcome {
    let child = Child::new()?;
    let (target, _) = filled(&child)?;
    let mut state = get(target.uid)?;
    let mut both = |thread: Uid, error: Error| {
        let before = state;
        bad(sys::thread_set_state(thread, &state), error)?;
        bad(sys::thread_get_state(thread, &mut state), error)?;
        check!(state == before);
        Ok(())
    };
    // The caller itself, by both of its names; one that runs; one that is gone, and one that is out of reach.
    both(Uid::NIL, Error::BadState)?;
    both(sys::myself(), Error::BadState)?;
    both(Uid(0x1234_5678_9abc_def0), Error::NoSuch)?;
    both(sys::identity().pager, Error::Denied)?;
    let mut agent = child.agent()?;
    agent.attempt(suite_nothing, 0, 0)?;
    both(agent.uid, Error::BadState)?;
    // In an ipc, stopped or not.
    for frame in [Frame::reply_wait(Uid::NIL, 0, [0; 11]), Frame::call(target.uid, 0, [0; 11])] {
        agent.block(frame)?;
        both(agent.uid, Error::BadState)?;
        sys::thread_stop(agent.uid)?;
        both(agent.uid, Error::BadState)?;
        sys::thread_abort(agent.uid)?;
        // It stands behind its call.
        let state = get(agent.uid)?;
        check_eq!(state.registers[RCX], state.registers[RIP]);
        sys::thread_resume(agent.uid)?;
        agent.wait()?;
    }
    Ok(())
}

/// A server that was called is on its client's shuttle, with all registers beside those of the message.
pub fn on_a_borrowed_shuttle() -> Outcome {
    let (near, far) = (Child::new()?, Child::new()?);
    let parts = parts(&near)?;
    for traps in [0, TRAPS] {
        let (mut server, mut client) = (near.agent()?, far.agent()?);
        for agent in [&mut server, &mut client] {
            agent.attempt(suite_nothing, 0, 0)?;
        }
        server.start_attempt(suite_state_serve, PATTERN, parts | traps);
        check!(server.settle()?);
        sys::thread_set_pager(server.uid, pager::uid(), sys::myself())?;
        client.start(Frame::call(server.uid, 0, [0; 11]));
        if traps == 0 {
            debug::stop_in_loop(&server)?;
        } else {
            exception(server.uid)?;
        }
        // Others use the processor, and these registers.
        let others = filled(&far)?;
        let state = get(server.uid)?;
        is_filled(&state, parts)?;
        let next = changed(&state);
        sys::thread_set_state(server.uid, &next)?;
        check_eq!(get(server.uid)?, next);
        is_filled(&get(others.0.uid)?, parts)?;
        if traps != 0 {
            sys::thread_stop(server.uid)?;
            sys::send(server.uid, RESUME_AS_IS, [0; 8], Timeout::ZERO)?;
        }
        runs_with(server.uid, &next)?;
    }
    Ok(())
}

fn exception(thread: Uid) -> Outcome<Message> {
    let message = sys::receive(thread, Timeout::from_us(60_000_000))?;
    check_eq!(message.kind, Kind::Exception);
    Ok(message)
}

/// A handler that is on the shuttle of the thread, whose state the processor holds just now.
pub fn after_an_exception() -> Outcome {
    let child = Child::new()?;
    let parts = parts(&child)?;
    let mut agent = child.agent()?;
    agent.attempt(suite_nothing, 0, 0)?;
    sys::thread_set_pager(agent.uid, pager::uid(), sys::myself())?;
    agent.start_attempt(suite_state_fill, PATTERN, parts | TRAPS);
    let [vector, _, ip, sp, ..] = exception(agent.uid)?.words;
    check_eq!(agent.info()?.state, FAULTING);
    let state = get(agent.uid)?;
    is_filled(&state, parts)?;
    check_eq!((vector, state.registers[RIP], state.registers[RSP]), (3, ip, sp));
    let next = changed(&state);
    sys::thread_set_state(agent.uid, &next)?;
    check_eq!(get(agent.uid)?, next);
    sys::thread_stop(agent.uid)?;
    sys::send(agent.uid, RESUME_AS_IS, [0; 8], Timeout::ZERO)?;
    runs_with(agent.uid, &next)
}

/// Takes one call, and gives its thread another state.
extern "C" fn set_state_of_caller(caller: u64) -> u64 {
    let mut handler = Handler::default();
    let Ok(Arrival::Call(1)) = handler.wait() else { return 1 };
    let caller = Uid(caller);
    if STOPS.load(Relaxed) && sys::thread_stop(caller).and(sys::thread_resume(caller)).is_err() {
        return 6;
    }
    let Ok(mut state) = get(caller) else { return 2 };
    // The registers are here, with the handler.
    let mut others = state.registers;
    for index in [RIP, RSP, RFLAGS, RCX, R11] {
        others[index] = 0;
    }
    if others != [0; 18] || state.registers[RFLAGS] & FLAGS != FLAGS || handler.registers.rax != 39 {
        return 3;
    }
    // The stack pointer stays, so that the thread returns.
    state.registers = state.registers.map(|register| if register == 0 { 77 } else { register });
    if sys::thread_set_state(caller, &state).is_err() {
        return 4;
    }
    let released = sys::thread_deny_native(caller, 0)
        .and(sys::thread_set_pager(caller, pager::uid(), pager::uid()))
        .and(sys::send(caller, RESUME_AS_IS, [0; 8], Timeout::ZERO));
    if released.is_ok() { 0 } else { 5 }
}

/// Whether the thread is stopped and resumed while it waits, which is then a wait that the fast path cannot end.
static STOPS: AtomicBool = AtomicBool::new(false);

pub fn in_a_foreign_call() -> Outcome {
    static FLAG: AtomicU64 = AtomicU64::new(0);
    let child = Child::new()?;
    for stops in [false, true] {
        let (mut agent, mut server) = (child.agent()?, Agent::new(TaskId::NIL)?);
        STOPS.store(stops, Relaxed);
        FLAG.store(0, Relaxed);
        agent.attempt(suite_nothing, 0, 0)?;
        server.start_apply(set_state_of_caller, agent.uid.0);
        check!(server.settle()?);
        agent.start_attempt(suite_wait_then_call, FLAG.as_ptr() as u64, 39);
        foreign::redirect_at(&agent, &server, &FLAG)?;
        check_eq!(server.result()?, 0);
        check_eq!(agent.attempted()?, Attempted::Returned(77));
    }
    Ok(())
}

/// A foreign call, and the return from it, leave the registers beside the general ones as they are, if the handler uses none of them.
pub fn a_foreign_call_leaves_the_rest() -> Outcome {
    let child = Child::new()?;
    let (agent, _) = filled(&child)?;
    let mut server = foreign::handler(foreign::answer_all)?;
    let mut state = get(agent.uid)?;
    state.registers[RIP] = address(suite_state_call);
    sys::thread_set_state(agent.uid, &state)?;
    expect_seen(state.parts);
    sys::thread_set_pager(agent.uid, pager::uid(), server.uid)?;
    sys::foreign::thread_redirect(agent.uid, 1)?;
    sys::thread_resume(agent.uid)?;
    // The thread's next call is none that the handler takes, and ends the handler.
    check_eq!(server.result()?, 0);
    let seen = seen();
    // All general registers are as the handler left them.
    check_eq!((seen.done, seen.registers[RAX]), (1, 39 + 0x10_0000));
    rest_is(&seen, &state)
}
