//! Signals as text: sets, actions, and what a process is told of one.

use super::flags;
use super::memory::Memory;
use super::{print_address, print_flags, print_signal};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use linux_raw_sys::general::*;

/// Sets of more signals than this are printed by those that are missing.
const MANY: u32 = 32;

/// Name of a signal, such as `SIGINT`.
pub(super) fn signal(number: u32) -> String {
    let mut name = String::new();
    print_signal(number, &mut name);
    name
}

/// Signals of a set, such as `[INT CHLD]`; of one with most signals those that it lacks, such as `~[KILL STOP]`.
pub(super) fn set(bits: u64) -> String {
    let (sign, shown) = if bits.count_ones() >= MANY { ("~", !bits) } else { ("", bits) };
    let numbers = (1..=64).filter(|number| shown >> (number - 1) & 1 != 0);
    let short = |number| signal(number).trim_start_matches("SIG").into();
    let names: Vec<String> = numbers.map(short).collect();
    format!("{sign}[{}]", names.join(" "))
}

/// A set at an address.
pub(super) fn set_at(memory: &mut dyn Memory, address: u64) -> Option<String> {
    let [bits] = memory.words(address)?;
    Some(set(bits))
}

/// `struct sigaction` of the kernel.
pub(super) fn action(memory: &mut dyn Memory, address: u64) -> Option<String> {
    let [handler, flags, restorer, mask] = memory.words(address)?;
    let mut text = String::from("{sa_handler=");
    match handler {
        0 => text.push_str("SIG_DFL"),
        1 => text.push_str("SIG_IGN"),
        _ => print_address(handler, &mut text),
    }
    text += &format!(", sa_mask={}, sa_flags=", set(mask));
    print_flags(&flags::ACTION, flags, &mut text);
    if flags & u64::from(SA_RESTORER) != 0 {
        text.push_str(", sa_restorer=");
        print_address(restorer, &mut text);
    }
    text.push('}');
    Some(text)
}

/// `stack_t`.
pub(super) fn stack(memory: &mut dyn Memory, address: u64) -> Option<String> {
    let [sp, flags, len] = memory.words(address)?;
    let mut text = String::from("{ss_sp=");
    print_address(sp, &mut text);
    text.push_str(", ss_flags=");
    print_flags(&flags::STACK, flags & 0xffff_ffff, &mut text);
    Some(text + &format!(", ss_size={len}}}"))
}

/// A signal, and why it was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Told {
    /// The signal.
    pub signal: u32,
    /// `si_code`.
    pub code: i32,
    /// Sender and its owner; or the child that changed.
    pub sender: (u32, u32),
    /// Address of a fault, a value, or the status of a child.
    pub value: u64,
}

/// It, as `siginfo_t` is printed: `{si_signo=SIGCHLD, …}`.
pub fn information(told: &Told) -> String {
    let Told { signal: number, code, sender: (pid, owner), value } = *told;
    let mut text = format!("{{si_signo={}, si_code={}", signal(number), code_name(number, code));
    let is_of_fault = matches!(number, SIGSEGV | SIGBUS | SIGILL | SIGFPE | SIGTRAP) && code > 0;
    if number == SIGCHLD && code > 0 {
        let is_signal = code as u32 != CLD_EXITED;
        let status = if is_signal { signal(value as u32) } else { format!("{}", value as i32) };
        text += &format!(", si_pid={pid}, si_uid={owner}, si_status={status}, si_utime=0, si_stime=0");
    } else if is_of_fault && code as u32 != SI_KERNEL {
        text.push_str(", si_addr=");
        print_address(value, &mut text);
    } else if number == SIGSYS && code == SYS_SECCOMP as i32 {
        let (address, name) =
            (u64::from(owner) << 32 | u64::from(pid), super::name_or_number(value & 0xffff_ffff));
        text += &format!(", si_call_addr={address:#x}, si_syscall=__NR_{name}, si_arch=AUDIT_ARCH_X86_64");
    } else if code <= 0 {
        text += &format!(", si_pid={pid}, si_uid={owner}");
        if code == SI_QUEUE || code == SI_MESGQ {
            text += &format!(", si_int={}, si_ptr={value:#x}", value as i32);
        }
    }
    text.push('}');
    text
}

/// `siginfo_t` of a child at an address.
pub(super) fn information_at(memory: &mut dyn Memory, address: u64) -> Option<String> {
    let [number, _, code, _, pid, owner, status] = memory.numbers(address)?;
    let value = status.into();
    (number != 0)
        .then(|| information(&Told { signal: number, code: code as i32, sender: (pid, owner), value }))
}

/// Names of codes: those of all signals, then those of a signal.
fn code_name(number: u32, code: i32) -> String {
    let always = [
        (SI_USER as i32, "SI_USER"),
        (SI_KERNEL as i32, "SI_KERNEL"),
        (SI_QUEUE, "SI_QUEUE"),
        (SI_TIMER, "SI_TIMER"),
        (SI_MESGQ, "SI_MESGQ"),
        (SI_TKILL, "SI_TKILL"),
    ];
    let own: &[&str] = match number {
        SIGCHLD => &["CLD_EXITED", "CLD_KILLED", "CLD_DUMPED", "CLD_TRAPPED", "CLD_STOPPED", "CLD_CONTINUED"],
        SIGSEGV => &["SEGV_MAPERR", "SEGV_ACCERR"],
        SIGSYS => &["SYS_SECCOMP"],
        SIGBUS => &["BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR"],
        SIGILL => &["ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP", "ILL_PRVOPC"],
        SIGFPE => &[
            "FPE_INTDIV",
            "FPE_INTOVF",
            "FPE_FLTDIV",
            "FPE_FLTOVF",
            "FPE_FLTUND",
            "FPE_FLTRES",
            "FPE_FLTINV",
        ],
        SIGTRAP => &["TRAP_BRKPT", "TRAP_TRACE"],
        _ => &[],
    };
    if let Some((_, name)) = always.iter().find(|(known, _)| *known == code) {
        return String::from(*name);
    }
    let own = usize::try_from(code).ok().and_then(|code| own.get(code.checked_sub(1)?));
    own.map_or_else(|| format!("{code:#x}"), |name| String::from(*name))
}
