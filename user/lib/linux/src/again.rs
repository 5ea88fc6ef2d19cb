//! Calls that a handler has interrupted: which of them are made again behind it.

use crate::machine::Registers;
use crate::process::{Blocked, Event};
use crate::signal::Action;
use linux_raw_sys::general;

/// Calls that end with `EINTR` after a handler, whatever the action says: those that wait for signals or for a time, and those of System V.
pub const NOT_MADE_AGAIN: [u32; 18] = [
    general::__NR_poll,
    general::__NR_select,
    general::__NR_nanosleep,
    general::__NR_pause,
    general::__NR_epoll_wait,
    general::__NR_epoll_pwait,
    general::__NR_epoll_pwait2,
    general::__NR_io_getevents,
    general::__NR_io_pgetevents,
    general::__NR_rt_sigsuspend,
    general::__NR_rt_sigtimedwait,
    general::__NR_pselect6,
    general::__NR_ppoll,
    general::__NR_clock_nanosleep,
    general::__NR_semop,
    general::__NR_semtimedop,
    general::__NR_msgsnd,
    general::__NR_msgrcv,
];

/// Calls that end with `EINTR` after a handler if they wait at a socket until a time: a call that begins again would not keep the limit of the socket.
const NOT_MADE_AGAIN_IN_TIME: [u32; 12] = [
    general::__NR_read,
    general::__NR_readv,
    general::__NR_write,
    general::__NR_writev,
    general::__NR_accept,
    general::__NR_accept4,
    general::__NR_connect,
    general::__NR_recvfrom,
    general::__NR_recvmsg,
    general::__NR_recvmmsg,
    general::__NR_sendto,
    general::__NR_sendmsg,
];

/// Whether a call that waits may be made again behind a handler, if its thread has not done a part of it.
pub fn may_be_made_again(blocked: &Blocked) -> bool {
    let is_one = |call: &u32| u64::from(*call) == blocked.registers.rax;
    let is_terminal = || blocked.on.iter().any(|event| matches!(event, Event::Terminal(_)));
    blocked.until.is_none() || is_terminal() || !NOT_MADE_AGAIN_IN_TIME.iter().any(is_one)
}

/// Whether a call is made again behind a handler.
pub fn is_made_again(number: u64, registers: &Registers, action: Action) -> bool {
    if number == u64::from(general::__NR_futex) {
        return crate::calls::futex::is_made_again(registers, action.has(general::SA_RESTART));
    }
    action.has(general::SA_RESTART) && !NOT_MADE_AGAIN.iter().any(|call| u64::from(*call) == number)
}
