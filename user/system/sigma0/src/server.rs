//! Requests of `root` to σ0: its pages, memory, devices, early output, the end.

use crate::machine;
use alloc::collections::BTreeMap;
use rt::api::memory::{self, Answer, MemoryUse, Request};
use rt::api::process::{self, Cause, TaskEntry, ThreadEntry};
use rt::api::sigma0::{Screen, ScreenKind};
use rt::api::{Name, Reply, Status, console, interface_of, sigma0};
use rt::boot::Memory;
use rt::frames::{Lent, Pool, Supply};
use rt::pager::{Archive, Fault, REFUSAL, Space};
use rt::sys::abi::boot::{self, BootInfo, memory_kind, screen_kind};
use rt::sys::{self, Fpage, Kind, Message, Rights, TaskId, Uid};

/// The state of σ0.
pub struct Server {
    /// The kernel's report.
    pub info: &'static BootInfo,
    /// The boot command line.
    pub line: &'static [u8],
    /// `root`'s task.
    pub task: TaskId,
    /// The archive as `root` sees it.
    pub shown: Archive,
    /// `root`'s pages.
    pub space: Space,
    /// Free memory, and frames for `root`'s pages.
    pub pool: Pool<Memory>,
    /// Blocks that were handed out, by physical address and log2 of the size.
    pub lent: BTreeMap<(u64, u32), Lent>,
    /// Memory at the start, in bytes.
    pub total: u64,
}

impl Server {
    /// The answer to a message.
    pub fn handle(&mut self, message: &Message) -> Option<Reply> {
        match message.kind {
            Kind::Fault => {
                let own = Fault::decode(message).filter(|fault| fault.task == self.task);
                Some(own.map_or(REFUSAL, |fault| self.space.resolve(fault, &mut self.pool)))
            }
            Kind::Exception if TaskId(message.words[6]) == self.task => {
                let [vector, _, ip, .., address] = message.words;
                rt::println!(
                    "root crashed: {}",
                    process::Crash { cause: Cause::Exception(vector), ip, address }
                );
                machine::stop("root crashed")
            }
            Kind::Request => {
                let is_root = sys::thread_info(message.sender).is_ok_and(|info| info.task == self.task);
                let reply = if is_root { self.request(message) } else { Err(Status::Denied) };
                Some(reply.unwrap_or_else(Reply::from))
            }
            _ => None,
        }
    }

    fn request(&mut self, message: &Message) -> Result<Reply, Status> {
        match interface_of(message) {
            memory::NUMBER => self.memory(Request::read(message)?),
            console::NUMBER => match console::Request::read(message)? {
                console::Request::Write { text, .. } => {
                    machine::write(&text);
                    Ok(console::Answer::Write.into())
                }
                _ => Err(Status::Denied),
            },
            process::NUMBER => match process::Request::read(message)? {
                process::Request::Arguments { from } => Ok(process::shown(self.line, from).into()),
                process::Request::Exit { status } => machine::power_off(status),
                _ => Err(Status::Denied),
            },
            sigma0::NUMBER => match sigma0::Request::read(message)? {
                sigma0::Request::PowerOff { status } => machine::power_off(status),
                sigma0::Request::Usage => Ok(sigma0::Answer::Usage(usage()?).into()),
                sigma0::Request::Thread => Ok(sigma0::Answer::Thread(thread()?).into()),
                sigma0::Request::Display => Ok(sigma0::Answer::Display(self.screen()).into()),
                sigma0::Request::Firmware => Ok(sigma0::Answer::Firmware(self.info.rsdp).into()),
            },
            _ => Err(Status::BadRequest),
        }
    }

    fn memory(&mut self, request: Request) -> Result<Reply, Status> {
        let answer = match request {
            Request::Pages { log2 } => {
                let log2 = memory::block_log2(log2)?;
                let block = self.pool.supply.block(log2).ok_or(Status::Exhausted)?;
                let physical = block.physical();
                let lent = block.lend();
                let block = lent.fpage();
                self.lent.insert((physical, log2), lent);
                Answer::Pages(physical, block)
            }
            Request::GiveBack { physical, log2 } => {
                let lent = self.lent.remove(&(physical, log2.into())).ok_or(Status::NotFound)?;
                self.pool.supply.put(lent.reclaim());
                Answer::GiveBack
            }
            Request::Archive => Answer::Archive(self.shown.address, self.shown.bytes.len() as u64),
            Request::Resource { wanted } => {
                Answer::Resource(self.device(memory::wanted(wanted)?).ok_or(Status::Denied)?)
            }
            Request::Statistics => {
                Answer::Statistics(MemoryUse { total: self.total, free: self.pool.statistics().free })
            }
            Request::Register { .. }
            | Request::Release { .. }
            | Request::WhyRefused { .. }
            | Request::Look { .. }
            | Request::ShowArchive { .. }
            | Request::Colour { .. } => return Err(Status::Denied),
        };
        Ok(answer.into())
    }

    fn screen(&self) -> Screen {
        let boot::Screen { address, pitch, width, height, kind, bytes, red, green, blue } = self.info.screen;
        let kind = match kind {
            screen_kind::PIXELS => ScreenKind::PIXELS,
            screen_kind::TEXT => ScreenKind::TEXT,
            _ => ScreenKind::NO_SCREEN,
        };
        Screen { address, pitch, width, height, kind, bytes, red, green, blue }
    }

    /// Part of a device that `root` may have: ports and lines as they are, memory only where none is installed, and
    /// firmware tables to read.
    fn device(&self, wanted: Fpage) -> Option<Fpage> {
        if wanted.space() != sys::abi::Space::Memory {
            return Some(wanted);
        }
        let (start, end) = (wanted.base(), wanted.base() + (1 << wanted.log2()));
        let regions = &self.info.memory[..(self.info.memory_count as usize).min(BootInfo::MEMORY_MAX)];
        let mut touched =
            regions.iter().filter(|region| region.base < end && start < region.base + region.len);
        match touched.next() {
            None => Some(wanted),
            Some(region) => {
                let is_inside = region.base <= start && end <= region.base + region.len;
                (region.kind == memory_kind::FIRMWARE && is_inside).then(|| wanted.with_rights(Rights::R))
            }
        }
    }
}

fn usage() -> Result<TaskEntry, Status> {
    let info = sys::task_info(TaskId::NIL).map_err(process::status_of)?;
    let name = Name::new("sigma0").ok_or(Status::BadRequest)?;
    Ok(process::task_entry(sys::identity().task, &name, &info))
}

fn thread() -> Result<ThreadEntry, Status> {
    let info = sys::thread_info(Uid::NIL).map_err(process::status_of)?;
    Ok(ThreadEntry { ip: 0, ..process::thread_entry(sys::identity().uid, &info, TaskId::NIL) })
}
