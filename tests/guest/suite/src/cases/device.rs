//! Ports and interrupts: handed on like pages, and taken back like pages.

use crate::kit::{self, Agent, Attempt, Child, Failure, Frame, Outcome, fails};
use crate::{check, check_eq};
use rt::api::memory;
use rt::device::Port;
use sys::abi::Call;
use sys::abi::call::{PORT_FAULT, REFUSE};
use sys::{Error, Fpage, Kind, Rights, TaskId, Timeout, Uid};

unsafe extern "C" {
    fn suite_in();
    fn suite_in16();
    fn suite_in32();
    fn suite_in_fixed();
    fn suite_ins();
    fn suite_out();
    fn suite_out32();
}

const PROTECTION: Option<u64> = Some(13);

/// A port to which anybody may write anything: firmware shows its progress there.
pub const PROGRESS: u16 = 0x80;

/// The PC's clock.
const CLOCK: u16 = 0x70;
pub const CLOCK_LINE: u8 = 8;

pub fn get(wanted: Fpage) -> Outcome {
    let got = memory::resource(rt::home(), wanted, wanted);
    got.map_err(|failure| Failure::new(format_args!("root does not give {wanted:?}: {failure}")))
}

pub fn ports_come_and_go() -> Outcome {
    let port = Fpage::ports(PROGRESS, 0);
    get(port)?;
    let (near, far) = (Child::new()?, Child::new()?);
    let (mut agent, mut other) = (near.agent()?, far.agent()?);
    let attempts: [(Attempt, &str); 2] = [(suite_out, "out"), (suite_in, "in")];
    for _ in 0..3 {
        for (function, name) in attempts {
            let got = agent.attempt(function, PROGRESS as u64, 0)?;
            check!(got.vector() == PROTECTION, "{name} before: {got:x?}");
        }
        agent.take((port, 0), Fpage::ports(0, 16))?;
        for (function, name) in attempts {
            let got = agent.attempt(function, PROGRESS as u64, 0)?;
            check!(got.is_fine(), "{name} with permission: {got:x?}");
            for neighbour in [PROGRESS - 1, PROGRESS + 1, 0xffff] {
                check_eq!(agent.attempt(function, neighbour as u64, 0)?.vector(), PROTECTION);
            }
            // Nobody else has it, whoever ran last.
            check_eq!(other.attempt(function, PROGRESS as u64, 0)?.vector(), PROTECTION);
            check!(agent.attempt(function, PROGRESS as u64, 0)?.is_fine());
        }
        sys::flush(port)?;
        check_eq!(agent.attempt(suite_out, PROGRESS as u64, 0)?.vector(), PROTECTION);
    }
    // This task still has it.
    Port(PROGRESS).write(0);
    Ok(())
}

pub fn ports_map_to_themselves_only() -> Outcome {
    let port = Fpage::ports(PROGRESS, 0);
    get(port)?;
    let child = Child::new()?;
    let mut agent = child.agent()?;
    // The window lies elsewhere: nothing arrives.
    agent.block(Frame::receive(sys::myself(), Timeout::NEVER).window(Fpage::ports(0x90, 4)))?;
    if sys::send_item(agent.uid, 0, [0; 8], (port, 0x90), Timeout::ZERO).is_err() {
        sys::thread_abort(agent.uid)?;
    }
    agent.wait()?;
    check_eq!(agent.attempt(suite_out, 0x90, 0)?.vector(), PROTECTION);
    check_eq!(agent.attempt(suite_out, PROGRESS as u64, 0)?.vector(), PROTECTION);
    // All ports, of which this task has a few.
    agent.take((Fpage::ports(0, 16), 0), Fpage::ports(0, 16))?;
    check!(agent.attempt(suite_out, PROGRESS as u64, 0)?.is_fine());
    check_eq!(agent.attempt(suite_out, 0x3f8, 0)?.vector(), PROTECTION);
    // And on to a grandchild of the mapping.
    let far = Child::new()?;
    let mut other = far.agent()?;
    other.block(Frame::receive(agent.uid, Timeout::NEVER).window(Fpage::ports(0, 16)))?;
    check_eq!(agent.run(Frame::send(other.uid, Timeout::ZERO).item(port, 0))?.rax, 0);
    other.wait()?;
    check!(other.attempt(suite_out, PROGRESS as u64, 0)?.is_fine());
    sys::flush(Fpage::ports(0, 16))?;
    check_eq!(other.attempt(suite_out, PROGRESS as u64, 0)?.vector(), PROTECTION);
    check_eq!(agent.attempt(suite_out, PROGRESS as u64, 0)?.vector(), PROTECTION);
    Ok(())
}

/// A driver uses a port that it has not: its pager learns which, answers with the port, and the driver goes on with the same
/// instruction. Ports come and go one by one.
pub fn ports_on_demand() -> Outcome {
    get(Fpage::ports(CLOCK, 1))?;
    let (index, data) = (Fpage::ports(CLOCK, 0), Fpage::ports(CLOCK + 1, 0));
    let (upper, lower) = (Child::new()?, Child::new()?);
    let mut pager = upper.agent()?;
    let mut driver = lower.agent()?;
    // The first attempt brings in its code.
    check_eq!(driver.attempt(suite_in, CLOCK as u64, 0)?.vector(), PROTECTION);
    pager.take((Fpage::ports(CLOCK, 1), 0), Fpage::ports(0, 16))?;
    sys::thread_set_pager(driver.uid, pager.uid, kit::pager::uid())?;
    for port in [index, data] {
        pager.block(Frame::receive(Uid::ANY, Timeout::NEVER))?;
        driver.start_attempt(suite_in, port.base() >> 12, 0);
        let got = pager.wait()?;
        check_eq!((got.kind(), got.sender()), (Some(Kind::Fault), driver.uid));
        let [ports, ip, task, ..] = got.words();
        check_eq!((ports, task), (port.with_rights(Rights::R).0 | PORT_FAULT, lower.0.0));
        // SAFETY: the driver runs this program's code.
        let instruction = unsafe { (ip as *const u8).read_volatile() };
        check_eq!(instruction, 0xec); // in al, dx
        check_eq!(pager.run(Frame::send(driver.uid, Timeout::ZERO).item(port, 0))?.rax, 0);
        check!(driver.attempted()?.is_fine(), "the instruction was not tried again");
    }
    // What the pager refuses is an exception, and so is what nobody can be asked for.
    pager.block(Frame::receive(Uid::ANY, Timeout::NEVER))?;
    driver.start_attempt(suite_out, PROGRESS as u64, 0);
    let ports = Fpage::ports(PROGRESS, 0).with_rights(Rights::W);
    check_eq!(pager.wait()?.words()[0], ports.0 | PORT_FAULT);
    pager.block(Frame::reply_wait(driver.uid, REFUSE, [0; 11]))?;
    check_eq!(driver.attempted()?.vector(), PROTECTION);
    sys::thread_abort(pager.uid)?;
    pager.wait()?;
    sys::thread_set_pager(driver.uid, Uid::NIL, kit::pager::uid())?;
    check_eq!(driver.attempt(suite_out, PROGRESS as u64, 0)?.vector(), PROTECTION);
    // One of the two is taken back: the other one stays.
    check_eq!(pager.control(Call::Flush as u32, [data.0, 0, 0, 0, 0, 0])?.0, 0);
    check!(driver.attempt(suite_in, CLOCK as u64, 0)?.is_fine());
    sys::thread_set_pager(driver.uid, kit::pager::uid(), kit::pager::uid())?;
    check_eq!(driver.attempt(suite_in, CLOCK as u64 + 1, 0)?.vector(), PROTECTION);
    // The pager kept both, and loses them to this task.
    check!(pager.attempt(suite_in, CLOCK as u64 + 1, 0)?.is_fine());
    sys::flush(data)?;
    check_eq!(pager.attempt(suite_in, CLOCK as u64 + 1, 0)?.vector(), PROTECTION);
    check!(driver.attempt(suite_in, CLOCK as u64, 0)?.is_fine());
    sys::flush(index)?;
    check_eq!(driver.attempt(suite_in, CLOCK as u64, 0)?.vector(), PROTECTION);
    Ok(())
}

/// Accesses to several ports at a time: the pager learns of all of them if they are aligned as a flexpage is, else of the first
/// that is missing, one after the other.
pub fn wide_ports_on_demand() -> Outcome {
    get(Fpage::ports(CLOCK, 1))?;
    let (upper, lower) = (Child::new()?, Child::new()?);
    let mut pager = upper.agent()?;
    let mut driver = lower.agent()?;
    pager.take((Fpage::ports(CLOCK, 1), 0), Fpage::ports(0, 16))?;
    let attempts: [(Attempt, u16, Fpage); 7] = [
        (suite_in16, CLOCK, Fpage::ports(CLOCK, 1)),
        (suite_in16, CLOCK + 1, Fpage::ports(CLOCK + 1, 0)),
        (suite_in_fixed, 0, Fpage::ports(CLOCK + 1, 0)),
        (suite_in32, CLOCK, Fpage::ports(CLOCK, 2)),
        (suite_in32, CLOCK - 2, Fpage::ports(CLOCK - 2, 0)),
        (suite_in32, 0xffff, Fpage::ports(0xffff, 0)),
        (suite_ins, CLOCK, Fpage::ports(CLOCK, 1)),
    ];
    for (function, port, _) in attempts {
        // The first attempt brings in its code.
        check_eq!(driver.attempt(function, port.into(), 0)?.vector(), PROTECTION);
    }
    check_eq!(driver.attempt(suite_out32, CLOCK as u64, 0)?.vector(), PROTECTION);
    sys::thread_set_pager(driver.uid, pager.uid, kit::pager::uid())?;
    pager.block(Frame::receive(Uid::ANY, Timeout::NEVER))?;
    let reading = attempts.map(|(function, port, ports)| (function, port, ports.with_rights(Rights::R)));
    let writing = (suite_out32 as Attempt, CLOCK, Fpage::ports(CLOCK, 2).with_rights(Rights::W));
    for (function, port, ports) in reading.into_iter().chain([writing]) {
        driver.start_attempt(function, port.into(), 0);
        check_eq!(pager.wait()?.words()[0], ports.0 | PORT_FAULT);
        pager.block(Frame::reply_wait(driver.uid, REFUSE, [0; 11]))?;
        check_eq!(driver.attempted()?.vector(), PROTECTION);
    }
    // Both at once.
    driver.start_attempt(suite_in16, CLOCK.into(), 0);
    check_eq!(pager.wait()?.sender(), driver.uid);
    check_eq!(pager.run(Frame::send(driver.uid, Timeout::ZERO).item(Fpage::ports(CLOCK, 1), 0))?.rax, 0);
    check!(driver.attempted()?.is_fine());
    pager.block(Frame::receive(Uid::ANY, Timeout::NEVER))?;
    // One of two is there: the other is what is missing.
    driver.start_attempt(suite_in16, (CLOCK + 1).into(), 0);
    let missing = Fpage::ports(CLOCK + 2, 0).with_rights(Rights::R);
    check_eq!(pager.wait()?.words()[0], missing.0 | PORT_FAULT);
    pager.block(Frame::reply_wait(driver.uid, REFUSE, [0; 11]))?;
    check_eq!(driver.attempted()?.vector(), PROTECTION);
    sys::flush(Fpage::ports(CLOCK, 1))?;
    Ok(())
}

/// The clock interrupts periodically, or no longer.
fn set_periodic(on: bool) {
    let (index, data) = (Port(CLOCK), Port(CLOCK + 1));
    let read = |register| {
        index.write(register);
        data.read()
    };
    let rate = read(0x0a) & 0xf0 | 6; // 1024 Hz
    index.write(0x0a);
    data.write(rate);
    let control = read(0x0b) & !0x40 | if on { 0x40 } else { 0 };
    index.write(0x0b);
    data.write(control);
    read(0x0c);
}

/// Lets the clock interrupt again.
fn acknowledge() {
    Port(CLOCK).write(0x0c);
    Port(CLOCK + 1).read();
}

pub fn interrupts_come_as_messages() -> Outcome {
    let line = Fpage::interrupt(CLOCK_LINE);
    get(Fpage::ports(CLOCK, 1))?;
    get(line)?;
    set_periodic(true);
    let outcome = interrupts(line);
    set_periodic(false);
    outcome
}

fn interrupts(line: Fpage) -> Outcome {
    let uid = Uid::interrupt(CLOCK_LINE);
    let long = Timeout::from_us(50_000_000);
    for _ in 0..5 {
        let got = sys::receive(uid, long)?;
        check_eq!((got.kind, got.sender), (Kind::Interrupt, uid));
        check!(got.words[0] >= 1 && got.words[0] < 1000, "{} at once", got.words[0]);
        acknowledge();
    }
    // Attached, an open receive gets them, too.
    let got = sys::receive(Uid::ANY, long)?;
    check_eq!((got.kind, got.sender), (Kind::Interrupt, uid));
    acknowledge();
    // A child with the line gets them, and then this thread does not.
    let child = Child::new()?;
    let mut agent = child.agent()?;
    check_eq!(agent.run(Frame::receive(uid, Timeout::ZERO))?.error(), Some(Error::Denied));
    agent.take((line, 0), Fpage::interrupt(CLOCK_LINE))?;
    for _ in 0..3 {
        acknowledge();
        let got = agent.run(Frame::receive(uid, long))?;
        check_eq!((got.kind(), got.sender()), (Some(Kind::Interrupt), uid));
    }
    // Taken away while it waits.
    set_periodic(false);
    while agent.run(Frame::receive(uid, Timeout::from_us(10_000)))?.error().is_none() {}
    agent.block(Frame::receive(uid, Timeout::NEVER))?;
    sys::flush(line)?;
    let got = agent.wait()?;
    check!(got.error().is_some(), "a line was taken away, and its driver got {:?}", got.kind());
    check_eq!(agent.run(Frame::receive(uid, Timeout::ZERO))?.error(), Some(Error::Denied));
    // Back to this thread.
    set_periodic(true);
    let got = sys::receive(uid, long)?;
    check_eq!(got.sender, uid);
    // A driver that ends frees the line for the next.
    let mut first = Agent::new(TaskId::NIL)?;
    acknowledge();
    check_eq!(first.run(Frame::receive(uid, long))?.sender(), uid);
    drop(first);
    let mut next = Agent::new(TaskId::NIL)?;
    acknowledge();
    check_eq!(next.run(Frame::receive(uid, long))?.sender(), uid);
    Ok(())
}

/// What was never given cannot be had by asking the kernel.
pub fn devices_of_others() -> Outcome {
    fails(Call::Ipc, sys::receive(Uid::interrupt(4), Timeout::ZERO), Error::Denied)?;
    check!(memory::resource(rt::home(), Fpage::interrupt(4), Fpage::interrupt(4)).is_err());
    check!(memory::resource(rt::home(), Fpage::ports(0x3f8, 3), Fpage::ports(0x3f8, 3)).is_err());
    Ok(())
}
