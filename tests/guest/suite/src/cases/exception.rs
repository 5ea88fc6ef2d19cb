//! Exceptions: what a thread must not do becomes a message to its handler, and nothing else.

use crate::kit::{Agent, Attempt, Attempted, Child, Failure, Frame, Outcome, PLAIN_FLAGS, Random, pager};
use crate::{check, check_eq};
use sys::abi::call::{Call, DOOR_RETURN, IPC_CALL, IPC_LONG_CALL, IPC_LONG_TAKING_CALL, RESUME, vector};
use sys::abi::{INFO_PAGE, USER_END};
use sys::thread_state::{FAULTING, STOPPED};
use sys::{Fpage, Kind, Rights, Uid};

macro_rules! attempts {
    ($($name:ident)*) => {
        unsafe extern "C" { $(fn $name();)* }
    };
}

attempts! {
    suite_divide suite_overflow_divide suite_ud2 suite_int3 suite_icebp suite_hlt suite_cli suite_sti suite_mov_cr0
    suite_mov_cr3 suite_mov_cr4 suite_mov_cr8 suite_mov_dr7 suite_wrmsr suite_rdmsr suite_lgdt suite_lidt suite_lldt
    suite_ltr suite_clts suite_lmsw suite_invlpg suite_wbinvd suite_swapgs suite_int80 suite_int_timer
    suite_int_double_fault suite_sysret suite_kernel_data_segment suite_wild_segment suite_xsetbv
    suite_single_step suite_step_into_syscall suite_overflow_stack suite_bad_stack_syscall suite_bad_stack_ud2
    suite_bad_stack_push suite_x87_error suite_set_nt suite_set_df_ud2 suite_nothing suite_in
    suite_in32 suite_out suite_syscall suite_jump suite_jump_null_call suite_load suite_write_fs_base suite_page
}

const DIVIDE: u64 = 0;
const DEBUG: u64 = 1;
const BREAKPOINT: u64 = 3;
const INVALID: u64 = 6;
const STACK: u64 = 12;
const PROTECTION: u64 = 13;
const X87: u64 = 16;
const FAULT: u64 = vector::UNRESOLVED_FAULT;

fn address(function: Attempt) -> u64 {
    function as *const () as usize as u64
}

/// Each attempt ends in one of the vectors given, in a child and in the suite's own task.
fn all_end_in(attempts: &[(Attempt, &[u64], &str)]) -> Outcome {
    let child = Child::new()?;
    for mut agent in [child.agent()?, Agent::new(sys::TaskId::NIL)?] {
        for (function, vectors, name) in attempts {
            let got = agent.attempt(*function, 0, 0);
            let got = got.map_err(|failure| Failure::new(format_args!("{name}: {failure}")))?;
            let fine = got.vector().is_some_and(|vector| vectors.contains(&vector));
            check!(fine, "{name}: {got:x?}");
        }
    }
    Ok(())
}

pub fn arithmetic_and_traps() -> Outcome {
    all_end_in(&[
        (suite_divide, &[DIVIDE], "divide by zero"),
        (suite_overflow_divide, &[DIVIDE], "divide overflow"),
        (suite_ud2, &[INVALID], "ud2"),
        (suite_int3, &[BREAKPOINT], "int3"),
        (suite_icebp, &[DEBUG, INVALID], "icebp"),
        (suite_single_step, &[DEBUG], "single step"),
        (suite_x87_error, &[X87], "x87 error"),
    ])
}

// Not tried: `iret` to the kernel's code segment, which the emulator reads from the user's stack as if it were the
// kernel itself and so faults for ever under SMAP; unmasked SSE exceptions, which the emulator never raises.

pub fn privileged_instructions() -> Outcome {
    all_end_in(&[
        (suite_hlt, &[PROTECTION], "hlt"),
        (suite_cli, &[PROTECTION], "cli"),
        (suite_sti, &[PROTECTION], "sti"),
        (suite_mov_cr0, &[PROTECTION], "mov from cr0"),
        (suite_mov_cr3, &[PROTECTION], "mov to cr3"),
        (suite_mov_cr4, &[PROTECTION], "mov to cr4"),
        (suite_mov_cr8, &[PROTECTION], "mov to cr8"),
        (suite_mov_dr7, &[PROTECTION], "mov to dr7"),
        (suite_wrmsr, &[PROTECTION], "wrmsr"),
        (suite_rdmsr, &[PROTECTION], "rdmsr"),
        (suite_lgdt, &[PROTECTION], "lgdt"),
        (suite_lidt, &[PROTECTION], "lidt"),
        (suite_lldt, &[PROTECTION], "lldt"),
        (suite_ltr, &[PROTECTION], "ltr"),
        (suite_clts, &[PROTECTION], "clts"),
        (suite_lmsw, &[PROTECTION], "lmsw"),
        (suite_invlpg, &[PROTECTION], "invlpg"),
        (suite_wbinvd, &[PROTECTION], "wbinvd"),
        (suite_swapgs, &[PROTECTION], "swapgs"),
        (suite_xsetbv, &[PROTECTION, INVALID], "xsetbv"),
        (suite_int80, &[PROTECTION], "int 0x80"),
        (suite_int_timer, &[PROTECTION], "int 0x20"),
        (suite_int_double_fault, &[PROTECTION], "int 8"),
        (suite_sysret, &[PROTECTION, INVALID], "sysret"),
        (suite_kernel_data_segment, &[PROTECTION, STACK], "kernel's ss"),
        (suite_wild_segment, &[PROTECTION], "wild ds"),
    ])
}

pub fn ports_without_permission() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    for port in [0, 0x20, 0x21, 0x40, 0x43, 0x60, 0x64, 0x70, 0x71, 0x80, 0xa1, 0xcf8, 0x3f8, 0x400, 0xffff] {
        check_eq!(agent.attempt(suite_in, port, 0)?.vector(), Some(PROTECTION));
        check_eq!(agent.attempt(suite_out, port, 0)?.vector(), Some(PROTECTION));
        check_eq!(agent.attempt(suite_in32, port, 0)?.vector(), Some(PROTECTION));
    }
    Ok(())
}

/// What the handler is told, and what it can change.
pub fn handler_sees_and_sets_registers() -> Outcome {
    let (near, far) = (Child::new()?, Child::new()?);
    let mut thread = near.agent()?;
    let mut handler = far.agent()?;
    thread.attempt(suite_nothing, 0, 0)?;
    sys::thread_set_pager(thread.uid, pager::uid(), handler.uid)?;
    handler.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
    thread.start_attempt(suite_int3, 0, 0);
    check!(thread.settle()?);
    let got = handler.wait()?;
    check_eq!((got.kind(), got.sender()), (Some(Kind::Exception), thread.uid));
    let [vector, code, ip, sp, flags, rax, task, ..] = got.words();
    check_eq!((vector, code), (BREAKPOINT, 0));
    check_eq!(ip, address(suite_int3) + 1);
    check!(sp != 0 && sp & 7 == 0);
    check_eq!(flags & 0x3200, 0x200);
    check_eq!(task, near.0.0);
    let _ = rax;
    // Continue with another rax and with flags that a user must not set: they are cleaned.
    let wild = !0x100;
    let words = [0, 0, ip, sp, wild, 0x1234_5678_9abc, 0, 0, 0, 0, 0];
    handler.block(Frame::reply_wait(thread.uid, RESUME, words))?;
    check_eq!(thread.attempted()?, Attempted::Returned(0x1234_5678_9abc));
    // The thread still cannot do what IOPL 3 would allow.
    sys::thread_abort(handler.uid)?;
    handler.wait()?;
    sys::thread_set_pager(thread.uid, pager::uid(), pager::uid())?;
    check_eq!(thread.attempt(suite_cli, 0, 0)?.vector(), Some(PROTECTION));
    Ok(())
}

/// A handler that gives nonsense back: addresses of the kernel, addresses that are none.
pub fn handler_answers_nonsense() -> Outcome {
    let (near, far) = (Child::new()?, Child::new()?);
    let mut handler = far.agent()?;
    for place in
        [0, 0xffff_8000_0000_0000, 0x8000_0000_0000, 0x7fff_ffff_ffff, u64::MAX, 0xdead_beef_0000_0000]
    {
        for (ip, sp) in [(place, 0), (address(suite_nothing), place), (place, place)] {
            let mut thread = near.agent()?;
            thread.attempt(suite_nothing, 0, 0)?;
            sys::thread_set_pager(thread.uid, Uid::NIL, handler.uid)?;
            handler.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
            thread.start_attempt(suite_ud2, 0, 0);
            check!(thread.settle()?);
            handler.wait()?;
            // It is another exception, or the thread stops. The kernel stays whole.
            handler.start(Frame::reply_wait(thread.uid, RESUME, [0, 0, ip, sp, 0x202, 0, 0, 0, 0, 0, 0]));
            handler.settle()?;
            let _ = sys::thread_switch(thread.uid);
            handler.settle()?;
            if !handler.is_done() {
                sys::thread_abort(handler.uid)?;
            }
            let got = handler.wait()?;
            check!(got.error().is_some() || got.sender() == thread.uid);
        }
    }
    Ok(())
}

/// An answer with another label, and a handler that ends, stop the thread; neither hurts anybody else.
pub fn handler_gives_up() -> Outcome {
    let (near, far) = (Child::new()?, Child::new()?);
    for phase in 0..3 {
        let mut thread = near.agent()?;
        let mut handler = far.agent()?;
        thread.attempt(suite_nothing, 0, 0)?;
        sys::thread_set_pager(thread.uid, pager::uid(), if phase == 2 { Uid::NIL } else { handler.uid })?;
        handler.block(Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
        thread.start_attempt(suite_ud2, 0, 0);
        check!(thread.settle()?);
        match phase {
            0 => {
                handler.wait()?;
                handler.block(Frame::reply_wait(thread.uid, RESUME + 1, [0; 11]))?;
            }
            1 => sys::thread_destroy(handler.uid)?,
            _ => {}
        }
        check!(!thread.is_done());
        check!(thread.settle()?);
        check!(!thread.is_done(), "phase {phase}");
        let state = thread.info()?.state;
        check!([STOPPED, FAULTING].contains(&state), "phase {phase}: state {state}");
    }
    Ok(())
}

pub fn wild_jumps() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    let targets = [
        0,
        8,
        0x1000,
        USER_END - 1,
        USER_END,
        USER_END + 0xffe,
        0x7fff_ffff_ffff,
        0x8000_0000_0000,
        0xffff_7fff_ffff_ffff,
        0xffff_8000_0000_0000,
        0xffff_ffff_8000_0000,
        0xffff_ffff_8010_0000,
        0xffff_ffff_c000_0000,
        INFO_PAGE,
        u64::MAX,
        0xdead_beef_dead_beef,
    ];
    for target in targets {
        let got = agent.probe(suite_jump, target, 0)?;
        let vector = got.vector();
        check!(
            vector == Some(FAULT) || vector == Some(PROTECTION) || vector == Some(14),
            "{target:x}: {got:x?}"
        );
    }
    // With a pager: what no pager can resolve goes to the handler at once.
    for target in [0xffff_8000_0000_0000, 0xffff_ffff_8000_0000, INFO_PAGE, USER_END] {
        let got = agent.attempt(suite_jump, target, 0)?;
        check!(got.vector() == Some(FAULT) || got.vector() == Some(14), "{target:x}: {got:x?}");
        let got = agent.attempt(suite_load, target + 0x10_0000, 0)?;
        check!([Some(FAULT), Some(PROTECTION)].contains(&got.vector()), "{target:x}: {got:x?}");
    }
    Ok(())
}

/// A system call at the very end of what can be mapped.
pub fn syscall_at_the_last_address() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    let code = address(suite_page);
    // SAFETY: reading the program's own code.
    unsafe { (code as *const u8).read_volatile() };
    agent.take((Fpage::memory(code, 12, Rights::RX), USER_END - 0x1000), Fpage::WHOLE)?;
    check!(agent.execute(USER_END - 0x1000)?, "the last page is not there");
    match agent.probe(suite_jump_null_call, USER_END - 2, 0)? {
        Attempted::Caught([vector, _, ip, ..]) => {
            check_eq!(vector, FAULT);
            check_eq!(ip, USER_END);
        }
        Attempted::Returned(_) => check!(false, "ran on behind the last page"),
    }
    sys::flush(Fpage::memory(code, 12, Rights::RWX))?;
    Ok(())
}

pub fn stack_overflow() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    for _ in 0..2 {
        match agent.probe(suite_overflow_stack, 0, 0)? {
            Attempted::Caught([vector, _, ip, sp, _, _, _, address]) => {
                check_eq!(vector, FAULT);
                check_eq!(ip, self::address(suite_overflow_stack));
                check_eq!(address, sp - 8);
            }
            Attempted::Returned(_) => check!(false, "a stack without end"),
        }
    }
    Ok(())
}

/// The kernel never touches the user's stack pointer, whatever it is.
pub fn bad_stack_pointers() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    let pointers = [
        0,
        1,
        USER_END,
        0x7fff_ffff_ffff,
        0x8000_0000_0000,
        0xffff_7fff_ffff_fff8,
        0xffff_8000_0000_0000,
        0xffff_ffff_bfff_c000,
        0xffff_ffff_c000_1000,
        u64::MAX,
    ];
    for sp in pointers {
        check!(agent.attempt(suite_bad_stack_syscall, sp, 0)?.is_fine(), "{sp:x}");
        match agent.attempt(suite_bad_stack_ud2, sp, 0)? {
            Attempted::Caught([INVALID, _, ip, seen, ..]) => {
                check_eq!((ip, seen), (address(suite_bad_stack_ud2) + 3, sp));
            }
            other => check!(false, "{sp:x}: {other:x?}"),
        }
        let got = agent.probe(suite_bad_stack_push, sp, 0)?;
        check!(
            [Some(FAULT), Some(STACK), Some(PROTECTION), Some(14)].contains(&got.vector()),
            "{sp:x}: {got:x?}"
        );
    }
    Ok(())
}

pub fn flags_do_not_spoil_the_kernel() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    check_eq!(agent.attempt(suite_set_nt, 0, 0)?.vector(), Some(INVALID));
    match agent.attempt(suite_set_df_ud2, 0, 0)? {
        Attempted::Caught([INVALID, _, _, _, flags, ..]) => check_eq!(flags & 0x400, 0x400),
        other => check!(false, "{other:x?}"),
    }
    // A single-step trap over a system call comes after it, in user mode.
    match agent.attempt(suite_step_into_syscall, 0, 0)? {
        Attempted::Caught([DEBUG, _, ip, ..]) => {
            let start = address(suite_step_into_syscall);
            check!((start..start + 32).contains(&ip), "trapped at {ip:x}");
        }
        other => check!(false, "{other:x?}"),
    }
    let _ = agent.attempt(suite_write_fs_base, 0, 0)?;
    Ok(())
}

/// Linux's numbers, and all others that are nobody's, go to the handler with number and place.
pub fn unknown_system_calls() -> Outcome {
    let child = Child::new()?;
    let mut agent = child.agent()?;
    let numbers = [
        0,
        1,
        2,
        9,
        39,
        60,
        231,
        334,
        0x7fff_ffff,
        0x8000_0000,
        0x8000_0008,
        0x8000_00ff,
        0x8000_0108,
        0xffff_fff0,
        0x1_0000_0000,
        0x1234_5678_0000_0027,
    ];
    for number in numbers {
        match agent.attempt(suite_syscall, number, 0)? {
            Attempted::Caught([vector, code, ip, _, _, rax, ..]) => {
                check_eq!(vector, vector::SYSCALL);
                check_eq!(code as u32, number as u32);
                check_eq!(rax, number);
                let start = address(suite_syscall);
                check!(ip == start + 3 || ip == start + 5, "at {:x}", ip - start);
            }
            other => check!(false, "{number:x}: {other:x?}"),
        }
    }
    Ok(())
}

unsafe extern "C" {
    fn suite_wait_then_call();
    fn suite_wait_then_flush();
}

/// An agent that makes this call when native ones are denied to it. `prepare` comes before they are.
pub(super) fn denied(child: &Child, number: u64, prepare: impl FnOnce(&Agent) -> Outcome) -> Outcome<Agent> {
    denied_to(suite_wait_then_call, child, number, prepare)
}

/// An agent that takes pages from itself when native calls are denied to it.
pub(super) fn denied_flush(child: &Child, page: Fpage) -> Outcome<Agent> {
    denied_to(suite_wait_then_flush, child, page.0, |_| Ok(()))
}

fn denied_to(
    function: Attempt,
    child: &Child,
    argument: u64,
    prepare: impl FnOnce(&Agent) -> Outcome,
) -> Outcome<Agent> {
    use core::sync::atomic::{AtomicU64, Ordering};
    static FLAG: AtomicU64 = AtomicU64::new(0);
    let mut agent = child.agent()?;
    agent.attempt(suite_nothing, 0, 0)?;
    FLAG.store(0, Ordering::Relaxed);
    agent.start_attempt(function, &raw const FLAG as u64, argument);
    for _ in 0..10 {
        sys::thread_switch(agent.uid)?;
    }
    prepare(&agent)?;
    sys::thread_deny_native(agent.uid, 1)?;
    FLAG.store(1, Ordering::Relaxed);
    Ok(agent)
}

pub fn native_calls_denied() -> Outcome {
    let child = Child::new()?;
    // The null call does nothing, so it does not matter that it is not denied.
    let calls = [Call::Clock as u32, IPC_CALL, Call::Ipc as u32, Call::TaskControl as u32];
    // These the kernel looks at before it knows that they are denied.
    let looked_at = [Call::Flush as u32, IPC_LONG_CALL, IPC_LONG_TAKING_CALL, DOOR_RETURN];
    for number in calls.into_iter().chain(looked_at) {
        let mut agent = denied(&child, number.into(), |_| Ok(()))?;
        // The handler allows native calls again: the agent needs them.
        match agent.attempted()? {
            Attempted::Caught([vector, code, _, _, flags, ..]) => {
                const ARITHMETIC: u64 = 0x8d5;
                check_eq!((vector, code as u32), (vector::SYSCALL, number));
                check_eq!(flags & !ARITHMETIC, PLAIN_FLAGS);
            }
            other => check!(false, "{number:x}: {other:x?}"),
        }
        check!(agent.attempt(suite_nothing, 0, 0)?.is_fine());
    }
    // Nor is there anything of the kernel's in its registers.
    let far = Child::new()?;
    let handler = far.agent()?;
    for number in looked_at {
        let agent = denied(&child, number.into(), |agent| {
            Ok(sys::thread_set_pager(agent.uid, pager::uid(), handler.uid)?)
        })?;
        check!(agent.settle()?);
        for group in 0..4 {
            for register in sys::thread_registers(agent.uid, group)? {
                check!(register >> 47 == 0 || group == 0, "{number:x}: {register:x} in group {group}");
            }
        }
        let [_, r15, ..] = sys::thread_registers(agent.uid, 4)?;
        check!(r15 >> 47 == 0, "{number:x}: {r15:x} in r15");
    }
    Ok(())
}

/// Random bytes are executed as if they were a program.
pub fn random_code() -> Outcome {
    #[repr(C, align(4096))]
    struct Code([u8; 4096]);
    static mut CODE: Code = Code([0; 4096]);
    // This program's data cannot be executed, so the test can only show that: every attempt is a fault.
    let child = Child::new()?;
    let mut agent = child.agent()?;
    let mut random = Random::new(77);
    for _ in 0..8 {
        // SAFETY: the page is this test's.
        unsafe { (&raw mut CODE).write(Code(core::array::from_fn(|_| random.next() as u8))) };
        let got = agent.probe(suite_jump, &raw const CODE as u64 + random.below(4000), 0)?;
        check_eq!(got.vector(), Some(FAULT));
    }
    Ok(())
}

/// An exception while the handler is busy waits its turn.
pub fn exceptions_queue_like_messages() -> Outcome {
    let (near, far) = (Child::new()?, Child::new()?);
    let mut handler = far.agent()?;
    let mut threads = [near.agent()?, near.agent()?, near.agent()?];
    for thread in &mut threads {
        thread.attempt(suite_nothing, 0, 0)?;
        sys::thread_set_pager(thread.uid, pager::uid(), handler.uid)?;
        thread.start_attempt(suite_int3, 0, 0);
        check!(thread.settle()?);
    }
    let mut answer = Frame::reply_wait(Uid::NIL, 0, [0; 11]);
    for thread in &threads {
        let got = handler.run(answer)?;
        check_eq!((got.kind(), got.sender()), (Some(Kind::Exception), thread.uid));
        let [_, _, ip, sp, flags, ..] = got.words();
        answer = Frame::reply_wait(thread.uid, RESUME, [0, 0, ip, sp, flags, 7, 0, 0, 0, 0, 0]);
    }
    handler.block(answer)?;
    for thread in &mut threads {
        check_eq!(thread.attempted()?, Attempted::Returned(7));
    }
    Ok(())
}
