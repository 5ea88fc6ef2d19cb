//! Structures of a process as text. Each is none if its memory cannot be read; then its address is printed.

use super::flags;
use super::ipc;
use super::kinds::Kind;
use super::memory::{Memory, list};
use super::signals;
use super::sockets;
use super::{TEXT_MAX, print_behind, print_flags, print_octal, print_one, print_quoted};
use alloc::format;
use alloc::string::String;
use linux_raw_sys::general::*;
use linux_raw_sys::ioctl::*;
use linux_raw_sys::ptrace::{SECCOMP_GET_ACTION_AVAIL, SECCOMP_SET_MODE_FILTER};

/// Items of a list that are printed, at most.
const ITEMS_MAX: u64 = 32;

/// Variables of an environment that are counted, at most.
const VARIABLES_MAX: u64 = 65_536;

/// Text of a structure: its kind, its address, the arguments around it, and bytes or items that the call has brought.
pub(super) fn structure(
    kind: Kind,
    at: u64,
    around: [u64; 3],
    brought: u64,
    memory: &mut dyn Memory,
) -> Option<String> {
    let [first, before, next] = around;
    match kind {
        Kind::Time | Kind::TimeOut => time(memory, at, "nsec"),
        Kind::Timeval | Kind::TimevalOut => time(memory, at, "usec"),
        Kind::Times => times(memory, at),
        Kind::Interval | Kind::IntervalOut => interval(memory, at, "usec"),
        Kind::TimerValue | Kind::TimerValueOut => interval(memory, at, "nsec"),
        Kind::Stat => stat(memory, at),
        Kind::Statx => statx(memory, at),
        Kind::Parts => parts(memory, at, next, None),
        Kind::PartsRead => parts(memory, at, next, Some(brought)),
        Kind::Action | Kind::ActionOut => signals::action(memory, at),
        Kind::Set | Kind::SetOut => signals::set_at(memory, at),
        Kind::Stack | Kind::StackOut => signals::stack(memory, at),
        Kind::Information => signals::information_at(memory, at),
        Kind::Poll => polls(memory, at, next, false),
        Kind::Bits => descriptors(memory, at, first),
        Kind::Pair => {
            memory.numbers(at).map(|[one, other]: [u32; 2]| format!("[{}, {}]", one as i32, other as i32))
        }
        Kind::Status => memory.numbers(at).map(|[value]| format!("[{{{}}}]", status(value))),
        Kind::Usage => usage(memory, at),
        Kind::Words => words(memory, at),
        Kind::Environment => environment(memory, at),
        Kind::Entries => entries(memory, at, brought),
        Kind::Event => event(memory, at),
        Kind::Events => list(
            (0..brought.min(ITEMS_MAX)).map(|index| event(memory, at.wrapping_add(12 * index))),
            brought > ITEMS_MAX,
        ),
        Kind::Limit | Kind::LimitOut => limit(memory, at),
        Kind::Uname => uname(memory, at),
        Kind::Random => memory.some(at, (brought as usize).min(TEXT_MAX)).map(|bytes| {
            let text: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
            format!("\"{text}\"{}", if brought > TEXT_MAX as u64 { "..." } else { "" })
        }),
        Kind::Terminal => terminal(memory, at, before & 0xffff_ffff),
        Kind::Segment | Kind::Semaphores | Kind::Queue => ipc::control(kind, at, before as u32, memory),
        Kind::Operations => ipc::operations(at, next & 0xffff_ffff, memory),
        Kind::Text => ipc::message(at, next, memory),
        Kind::TextOut => ipc::message(at, brought, memory),
        Kind::MadeLimits | Kind::Limits | Kind::LimitsOut => ipc::limits(at, memory),
        Kind::Priority => memory.numbers(at).map(|[priority]| format!("[{priority}]")),
        Kind::Restriction => restriction(memory, first as u32, at),
        Kind::Notice => ipc::notice(at, memory),
        Kind::Address => sockets::address(memory, at, next & 0xffff_ffff),
        Kind::AddressOut => {
            let [len] = memory.numbers(next)?;
            sockets::address(memory, at, len.into())
        }
        Kind::Message => sockets::message(memory, at, None),
        Kind::MessageOut => sockets::message(memory, at, Some(brought)),
        _ => None,
    }
}

/// Argument of `seccomp`: a program, or an action that is asked for.
fn restriction(memory: &mut dyn Memory, operation: u32, at: u64) -> Option<String> {
    match operation {
        SECCOMP_SET_MODE_FILTER => filter(memory, at),
        SECCOMP_GET_ACTION_AVAIL => {
            let [action] = memory.numbers(at)?;
            let mut text = String::from("[");
            print_one(&flags::FILTER_ACTIONS, action.into(), &mut text);
            Some(text + "]")
        }
        _ => None,
    }
}

/// A program of a filter: `struct sock_fprog`.
pub(super) fn filter(memory: &mut dyn Memory, at: u64) -> Option<String> {
    let [count, from] = memory.words(at)?;
    let mut text = format!("{{len={}, filter=", count as u16);
    super::print_address(from, &mut text);
    Some(text + "}")
}

/// `struct timespec` or `struct timeval`.
fn time(memory: &mut dyn Memory, at: u64, unit: &str) -> Option<String> {
    let [seconds, rest] = memory.words(at)?.map(|word: u64| word as i64);
    Some(format!("{{tv_sec={seconds}, tv_{unit}={rest}}}"))
}

/// Times of `utimensat`.
fn times(memory: &mut dyn Memory, at: u64) -> Option<String> {
    let one = |at: u64| {
        let [_, part] = memory.words(at)?;
        match part as u32 {
            UTIME_NOW => Some("UTIME_NOW".into()),
            UTIME_OMIT => Some("UTIME_OMIT".into()),
            _ => time(memory, at, "nsec"),
        }
    };
    list([at, at.wrapping_add(16)].into_iter().map(one), false)
}

/// `struct itimerval` or `struct itimerspec`.
fn interval(memory: &mut dyn Memory, at: u64, unit: &str) -> Option<String> {
    let (again, first) = (time(memory, at, unit)?, time(memory, at.wrapping_add(16), unit)?);
    Some(format!("{{it_interval={again}, it_value={first}}}"))
}

/// Kind and permissions of a file: `S_IFREG|0644`.
pub(super) fn mode(value: u32) -> String {
    let mut text = String::new();
    if value & S_IFMT != 0 {
        print_one(&flags::FILE_KINDS, (value & S_IFMT).into(), &mut text);
        text.push('|');
    }
    print_octal((value & !S_IFMT).into(), &mut text);
    text
}

fn stat(memory: &mut dyn Memory, at: u64) -> Option<String> {
    let [value] = memory.numbers(at.wrapping_add(24))?;
    let [device, len] = memory.words(at.wrapping_add(40))?;
    let is_device = matches!(value & S_IFMT, S_IFCHR | S_IFBLK);
    let (major, minor) = (device >> 8 & 0xfff, device & 0xff | device >> 12 & 0xfff00);
    let size =
        if is_device { format!("st_rdev=makedev({major:#x}, {minor:#x})") } else { format!("st_size={len}") };
    Some(format!("{{st_mode={}, {size}, ...}}", mode(value)))
}

fn statx(memory: &mut dyn Memory, at: u64) -> Option<String> {
    let [mask] = memory.numbers(at)?;
    let [attributes] = memory.words(at.wrapping_add(8))?;
    let [value] = memory.numbers(at.wrapping_add(28))?;
    let [len] = memory.words(at.wrapping_add(40))?;
    let mut text = String::from("{stx_mask=");
    print_behind(&flags::STATX_BASIC, u64::from(STATX_BASIC_STATS), &flags::STATX, mask.into(), &mut text);
    let mode = mode(value & 0xffff);
    Some(text + &format!(", stx_attributes={attributes:#x}, stx_mode={mode}, stx_size={len}, ...}}"))
}

/// Bytes in several places: `struct iovec`, of which so many bytes have arrived, or all are sent.
pub(super) fn parts(memory: &mut dyn Memory, at: u64, count: u64, arrived: Option<u64>) -> Option<String> {
    let mut left = arrived.unwrap_or(u64::MAX);
    let part = |index: u64| {
        let [base, len] = memory.words(at.wrapping_add(16 * index))?;
        let here = len.min(left);
        left -= here;
        let shown = memory.some(base, usize::try_from(here).unwrap_or(usize::MAX).min(TEXT_MAX));
        let mut text = String::from("{iov_base=");
        match shown {
            Some(bytes) => {
                print_quoted(&bytes, &mut text);
                text.push_str(if here > TEXT_MAX as u64 { "..." } else { "" });
            }
            None => super::print_address(base, &mut text),
        }
        Some(text + &format!(", iov_len={len}}}"))
    };
    list((0..count.min(ITEMS_MAX)).map(part), count > ITEMS_MAX)
}

/// Descriptors that are waited for, or that are ready.
pub(super) fn polls(memory: &mut dyn Memory, at: u64, count: u64, is_ready: bool) -> Option<String> {
    let mut items = alloc::vec::Vec::new();
    for index in 0..count.min(4 * ITEMS_MAX) {
        let [fd, events] = memory.numbers(at.wrapping_add(8 * index))?;
        let (key, events) = if is_ready { ("revents", events >> 16) } else { ("events", events & 0xffff) };
        if is_ready && events == 0 {
            continue;
        }
        let mut text = format!("{{fd={}, {key}=", fd as i32);
        print_flags(&flags::POLL, events.into(), &mut text);
        items.push(Some(text + "}"));
        if items.len() as u64 == ITEMS_MAX {
            break;
        }
    }
    let has_more = !is_ready && count > ITEMS_MAX;
    list(items.into_iter(), has_more)
}

/// A set of descriptors below a number.
pub(super) fn descriptors(memory: &mut dyn Memory, at: u64, count: u64) -> Option<String> {
    let mut names = alloc::vec::Vec::new();
    for word in 0..(count as u32 as u64).min(1024).div_ceil(64) {
        let [bits] = memory.words(at.wrapping_add(8 * word))?;
        let has = |bit: &u64| bits >> bit & 1 != 0 && 64 * word + bit < count;
        names.extend((0..64).filter(has).map(|bit| format!("{}", 64 * word + bit)));
    }
    Some(format!("[{}]", names.join(" ")))
}

/// How a child has ended, as macros tell it.
fn status(value: u32) -> String {
    let code = value >> 8 & 0xff;
    match value & 0x7f {
        0 => format!("WIFEXITED(s) && WEXITSTATUS(s) == {code}"),
        0x7f if value & 0xffff == 0xffff => "WIFCONTINUED(s)".into(),
        0x7f => format!("WIFSTOPPED(s) && WSTOPSIG(s) == {}", signals::signal(code)),
        signal => format!("WIFSIGNALED(s) && WTERMSIG(s) == {}", signals::signal(signal)),
    }
}

fn usage(memory: &mut dyn Memory, at: u64) -> Option<String> {
    let (user, system) = (time(memory, at, "usec")?, time(memory, at.wrapping_add(16), "usec")?);
    Some(format!("{{ru_utime={user}, ru_stime={system}, ...}}"))
}

/// A list of texts, as `execve` has it.
fn words(memory: &mut dyn Memory, at: u64) -> Option<String> {
    let mut items = alloc::vec::Vec::new();
    for index in 0..ITEMS_MAX {
        let [word] = memory.words(at.wrapping_add(8 * index))?;
        if word == 0 {
            return list(items.into_iter(), false);
        }
        let (bytes, is_whole) = memory.text(word, TEXT_MAX)?;
        let mut text = String::new();
        print_quoted(&bytes, &mut text);
        text.push_str(if is_whole { "" } else { "..." });
        items.push(Some(text));
    }
    list(items.into_iter(), true)
}

/// How many texts a list has.
fn environment(memory: &mut dyn Memory, at: u64) -> Option<String> {
    let mut count = 0;
    while count < VARIABLES_MAX && memory.words(at.wrapping_add(8 * count))? != [0] {
        count += 1;
    }
    Some(format!("{at:#x} /* {count} var{} */", if count == 1 { "" } else { "s" }))
}

/// How many entries of a directory there are in so many bytes.
fn entries(memory: &mut dyn Memory, at: u64, bytes: u64) -> Option<String> {
    let (mut count, mut done) = (0, 0);
    while done < bytes {
        let len: [u8; 2] = memory.bytes(at.wrapping_add(done).wrapping_add(16))?;
        let len = u64::from(u16::from_le_bytes(len));
        if len == 0 {
            return None;
        }
        (count, done) = (count + 1, done + len);
    }
    Some(format!("{at:#x} /* {count} entr{} */", if count == 1 { "y" } else { "ies" }))
}

/// `struct epoll_event`.
fn event(memory: &mut dyn Memory, at: u64) -> Option<String> {
    let [events, low, high] = memory.numbers(at)?;
    let mut text = String::from("{events=");
    print_flags(&flags::EPOLL, events.into(), &mut text);
    Some(text + &format!(", data={{u32={low}, u64={}}}}}", u64::from(high) << 32 | u64::from(low)))
}

/// `struct rlimit64`.
fn limit(memory: &mut dyn Memory, at: u64) -> Option<String> {
    let text = |value: u64| match value {
        u64::MAX => "RLIM64_INFINITY".into(),
        _ if value > 1024 && value.is_multiple_of(1024) => format!("{}*1024", value / 1024),
        _ => format!("{value}"),
    };
    let [now, most] = memory.words(at)?.map(text);
    Some(format!("{{rlim_cur={now}, rlim_max={most}}}"))
}

fn uname(memory: &mut dyn Memory, at: u64) -> Option<String> {
    let mut text = String::new();
    for (key, by) in [("{sysname=", 0), (", nodename=", 65)] {
        let (name, _) = memory.text(at.wrapping_add(by), 65)?;
        text.push_str(key);
        print_quoted(&name, &mut text);
    }
    Some(text + ", ...}")
}

/// Structures that `ioctl` takes or gives at a terminal.
fn terminal(memory: &mut dyn Memory, at: u64, request: u64) -> Option<String> {
    match u32::try_from(request).ok()? {
        TIOCGWINSZ | TIOCSWINSZ => {
            let [one, other] = memory.numbers(at)?;
            let (rows, columns) = (one & 0xffff, one >> 16);
            let (x, y) = (other & 0xffff, other >> 16);
            Some(format!("{{ws_row={rows}, ws_col={columns}, ws_xpixel={x}, ws_ypixel={y}}}"))
        }
        TCGETS | TCSETS | TCSETSW | TCSETSF => {
            let [_, output, control, local] = memory.numbers(at)?;
            let speed =
                if control & 0o10017 == 0o17 { "B38400".into() } else { format!("{:#x}", control & 0o10017) };
            let sign = |has: bool| if has { "" } else { "-" };
            Some(format!(
                "{{{speed} {}opost {}isig {}icanon {}echo ...}}",
                sign(output & OPOST != 0),
                sign(local & ISIG != 0),
                sign(local & ICANON != 0),
                sign(local & ECHO != 0)
            ))
        }
        FIONREAD | FIONBIO | FIOASYNC | TIOCGPGRP | TIOCSPGRP | TIOCGSID | TIOCGPTN | TIOCSPTLCK
        | TIOCPKT | TIOCOUTQ => memory.numbers(at).map(|[value]: [u32; 1]| format!("[{}]", value as i32)),
        request => interface(memory, at, request),
    }
}

/// `struct ifreq`, whose name is in front of a number. Of others than numbers no more is shown than the name.
fn interface(memory: &mut dyn Memory, at: u64, request: u32) -> Option<String> {
    let key = match request {
        SIOCGIFINDEX | SIOCGIFNAME => "ifr_ifindex",
        SIOCGIFMTU | SIOCSIFMTU => "ifr_mtu",
        SIOCGIFMETRIC => "ifr_metric",
        SIOCGIFTXQLEN => "ifr_qlen",
        SIOCGIFFLAGS | SIOCSIFFLAGS | SIOCGIFADDR | SIOCSIFADDR | SIOCGIFDSTADDR | SIOCGIFBRDADDR
        | SIOCGIFNETMASK | SIOCSIFNETMASK | SIOCGIFHWADDR | SIOCGIFMAP => "",
        _ => return None,
    };
    let [number] = memory.numbers(at.wrapping_add(16))?;
    let (name, _) = memory.text(at, 16)?;
    let mut quoted = String::from("ifr_name=");
    print_quoted(&name, &mut quoted);
    let number = number as i32;
    Some(match request {
        SIOCGIFNAME => format!("{{{key}={number}, {quoted}}}"),
        _ if key.is_empty() => format!("{{{quoted}, ...}}"),
        _ => format!("{{{quoted}, {key}={number}}}"),
    })
}

/// `struct flock`.
pub(super) fn lock(memory: &mut dyn Memory, at: u64) -> Option<String> {
    let [head] = memory.numbers(at)?;
    let [start, len] = memory.words(at.wrapping_add(8))?.map(|word: u64| word as i64);
    let mut text = String::from("{l_type=");
    print_one(&flags::LOCK_KINDS, (head & 0xffff).into(), &mut text);
    text.push_str(", l_whence=");
    print_one(&flags::SEEK, (head >> 16).into(), &mut text);
    Some(text + &format!(", l_start={start}, l_len={len}}}"))
}
