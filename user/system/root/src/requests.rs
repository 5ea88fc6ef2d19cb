//! Requests of programs to `root`: names, programs, devices, contiguous memory.

use crate::output;
use crate::policy::{self, Policy};
use crate::supervisor::{Awaits, Binding, Held, Pending, Program, Supervisor};
use crate::texts::Piece;
use alloc::vec::Vec;
use holdings::Text;
use rt::api::memory::MemoryUse;
use rt::api::process::{
    self, ARGUMENTS_LEN_MAX, Answer, End, KEPT_LEN_MAX, Request, TaskEntry, ThreadEntry, status_of,
};
use rt::api::{Name, Reply, Status, console, interface_of, memory, names, sigma0};
use rt::frames::{Lent, Relay, Supply, Upstream};
use rt::pager::REFUSAL;
use rt::sys::abi::Space;
use rt::sys::{self, Fpage, Kind, Message, TaskId, Uid};
use rt::time;

/// Decision of the loop about a request.
type Decision = Result<Option<Reply>, Status>;

fn now(reply: impl Into<Reply>) -> Decision {
    Ok(Some(reply.into()))
}

/// A name that is one.
fn checked(name: [u8; Name::LEN_MAX]) -> Result<Name, Status> {
    Name::from_bytes(name).ok_or(Status::BadRequest)
}

/// Whether one more may be kept for the program that has these.
fn room<T>(kept: impl Iterator<Item = T>) -> Result<(), Status> {
    if kept.count() < policy::KEPT_MAX { Ok(()) } else { Err(Status::Exhausted) }
}

impl Supervisor {
    /// The answer to a message, unless there is none (yet).
    pub(crate) fn handle(&mut self, message: &Message) -> Option<Reply> {
        match message.kind {
            // Nobody is paged by the main thread: a program must have asked for it.
            Kind::Fault => Some(REFUSAL),
            Kind::Exception => self.crashed(message),
            Kind::Request => self.request(message).unwrap_or_else(|status| Some(status.into())),
            Kind::Reply | Kind::Interrupt | Kind::DoorCall | Kind::DoorReturn | Kind::Unreferenced => None,
        }
    }

    fn request(&mut self, message: &Message) -> Decision {
        let client = message.sender;
        let index = self.program_of(client).ok_or(Status::Denied)?;
        self.pending.retain(|pending| pending.client != client);
        match interface_of(message) {
            names::NUMBER => match names::Request::read(message)? {
                names::Request::Register { name } => self.register(index, client, checked(name)?),
                names::Request::Resolve { name } => self.resolve(index, client, checked(name)?),
            },
            memory::NUMBER => match memory::Request::read(message)? {
                memory::Request::Resource { wanted } => self.resource(index, memory::wanted(wanted)?),
                memory::Request::Pages { log2 } => self.block(index, memory::block_log2(log2)?),
                memory::Request::Archive => now(self.archive_of(index)?),
                _ => Err(Status::Denied),
            },
            process::NUMBER => self.process(index, client, Request::read(message)?),
            sigma0::NUMBER => match sigma0::Request::read(message)? {
                sigma0::Request::Display => now(sigma0::Answer::Display(self.screen_of(index)?)),
                sigma0::Request::Firmware => self.firmware(index),
                _ => Err(Status::Denied),
            },
            _ => Err(Status::BadRequest),
        }
    }

    fn register(&mut self, index: usize, server: Uid, name: Name) -> Decision {
        let program = &self.programs[index];
        let is_reserved = self.servers.iter().any(|policy| policy.serves_name(name.as_str()));
        if is_reserved && !program.policy.serves_name(name.as_str()) {
            return Err(Status::Denied);
        }
        if self.names.iter().any(|binding| binding.name == name && binding.task != program.task) {
            return Err(Status::Taken);
        }
        let task = program.task;
        self.names.retain(|binding| binding.name != name);
        room(self.names.iter().filter(|binding| binding.task == task))?;
        self.names.push(Binding { name, server, task });
        if name.as_str() == console::NAME {
            output::use_console(server);
        }
        let is_awaited =
            |pending: &Pending| matches!(pending.awaits, Awaits::Name(awaited) if awaited == name);
        self.answer_pending(is_awaited, &names::Answer::Resolve(server).into());
        now(names::Answer::Register)
    }

    fn resolve(&mut self, index: usize, client: Uid, name: Name) -> Decision {
        let (policy, instead) = (self.programs[index].policy, self.programs[index].instead);
        let found = policy.finds_with(instead, name.as_str()).ok_or(Status::Denied)?;
        let name = Name::new(found).ok_or(Status::NotFound)?;
        let asker = &policy.name;
        let mut servers = self.servers.iter().filter(|policy| policy.serves_name(found));
        if servers.any(|server| !server.has_client(asker)) {
            return Err(Status::Denied);
        }
        if let Some(binding) = self.names.iter().find(|binding| binding.name == name) {
            return now(names::Answer::Resolve(binding.server));
        }
        let is_starting = self.programs.iter().any(|program| program.policy.serves_name(name.as_str()));
        if !is_starting {
            return Err(Status::NotFound);
        }
        self.wait(index, client, Awaits::Name(name))
    }

    /// Whether a thread may ask for what a program's thread serves: one of that program, of `root`, or of a program that the description lets do so.
    fn is_client(&self, index: usize, desk: Uid, thread: Uid) -> bool {
        let server = &self.programs[index];
        // The kernel tells of threads of the programs, and not of those of tasks that they have made.
        let task = sys::thread_info(thread).map_or(TaskId::NIL, |info| info.task);
        if task == server.task || task == self.own_task {
            return true;
        }
        let (user, name) = match self.program(task) {
            Some(program) => (program, program.policy.name.as_str()),
            // A task that a program has made is in no list. What it says to others, its maker says or lets pass.
            None => {
                let maker = self.programs.iter().find(|program| program.task.number() == thread.clan());
                let Some(maker) = maker else { return false };
                (maker, "")
            }
        };
        server.policy.has_client(name) && self.reaches(user, server.task, desk)
    }

    /// Whether a program may use one of the names under which a thread is found, or that thread's task if it has no name itself. Who has none may be used by all.
    fn reaches(&self, user: &Program, task: TaskId, desk: Uid) -> bool {
        let names = |select: &dyn Fn(&Binding) -> bool| -> Vec<&str> {
            let bindings = self.names.iter().filter(|binding| select(binding));
            bindings.map(|binding| binding.name.as_str()).collect()
        };
        let mut served = names(&|binding| binding.server == desk);
        if served.is_empty() {
            served = names(&|binding| binding.task == task);
        }
        served.is_empty() || served.iter().any(|name| user.policy.reaches_with(user.instead, name))
    }

    fn wait(&mut self, index: usize, client: Uid, awaits: Awaits) -> Decision {
        let task = self.programs[index].task;
        room(self.pending.iter().filter(|pending| pending.task == task))?;
        self.pending.push(Pending { client, task, awaits });
        Ok(None)
    }

    /// Hands a device to a program that may have it. It goes through `root`'s own space, so that it can be taken back.
    fn resource(&mut self, index: usize, wanted: Fpage) -> Decision {
        let policy = self.programs[index].policy;
        let is_given =
            policy.resources.contains(&wanted) || (policy.is_bus && self.policies.is_for_bus(wanted));
        if !is_given && sigma0::screen_memory(&self.screen_of(index)?) != Some(wanted) {
            return Err(Status::Denied);
        }
        let program = &mut self.programs[index];
        let known = program.holds.iter().find(|held| held.part == wanted).map(Held::window);
        let relay = match (known, wanted.space()) {
            (None, Space::Memory) => Some(Relay::new(wanted.log2()).ok_or(Status::Exhausted)?),
            _ => None,
        };
        let window = known.or(relay.as_ref().map(Relay::window)).unwrap_or(wanted);
        memory::resource(rt::home(), wanted, window).map_err(|_| Status::Busy)?;
        if known.is_none() {
            program.holds.push(Held { part: wanted, relay });
        }
        now(memory::Answer::Resource(window))
    }

    /// The machine's screen, which is the console's.
    fn screen_of(&self, index: usize) -> Result<sigma0::Screen, Status> {
        if !self.programs[index].policy.serves_name(console::NAME) {
            return Err(Status::Denied);
        }
        sigma0::screen(rt::home()).map_err(|_| Status::Busy)
    }

    /// Root of the firmware's tables, which are the bus server's to read.
    fn firmware(&self, index: usize) -> Decision {
        if !self.programs[index].policy.is_bus {
            return Err(Status::Denied);
        }
        now(sigma0::Answer::Firmware(sigma0::firmware(rt::home()).map_err(|_| Status::Busy)?))
    }

    /// Contiguous memory, whose physical address the program learns. It stays in `root`'s own space, so that it can be
    /// taken back.
    fn block(&mut self, index: usize, log2: u32) -> Decision {
        let program = &mut self.programs[index];
        let sum = |blocks: &[(Lent, u32)]| blocks.iter().map(|(_, log2)| 1u64 << log2).sum::<u64>();
        let (held, most) = (sum(&program.blocks) + (1 << log2), program.policy.contiguous_max);
        if held > most {
            return Err(Status::Denied);
        }
        let kept = self.kept.iter().position(|(_, kept)| program.policy.is_bus && *kept == log2);
        let lent = match kept {
            Some(at) => self.kept.swap_remove(at).0,
            // Bus servers of which each wants other sizes than the one before it do not get more and more.
            None if program.policy.is_bus
                && held + sum(&self.kept) > most.saturating_mul(policy::BUS_BLOCKS) =>
            {
                return Err(Status::Exhausted);
            }
            None => Upstream(rt::home()).block(log2).ok_or(Status::Exhausted)?.lend(),
        };
        let (block, physical) = (lent.fpage(), lent.physical());
        program.blocks.push((lent, log2));
        now(memory::Answer::Pages(physical, block))
    }

    fn process(&mut self, index: usize, client: Uid, request: Request) -> Decision {
        match request {
            Request::Arguments { from } => {
                let all = self.programs[index].arguments.bytes();
                now(process::shown(all, from))
            }
            Request::Exit { status } => {
                self.end(index, End::Exited(status));
                Ok(None)
            }
            Request::Stage { offset, text } => self.stage(index, client, offset as usize, &text),
            Request::Start { name, arguments_len } => {
                let parent = self.programs[index].task;
                let staged = self.staged.take((parent, client));
                let arguments = match arguments_len as usize {
                    0 => Text::default(),
                    len if len == staged.len() => staged,
                    _ => return Err(Status::BadRequest),
                };
                core::str::from_utf8(arguments.bytes()).map_err(|_| Status::BadRequest)?;
                if !self.programs[index].policy.is_operator {
                    return Err(Status::Denied);
                }
                let name = Name::from_bytes(name).ok_or(Status::NotFound)?;
                now(Answer::Start(self.start_named(&name, arguments, parent)?.0))
            }
            Request::Wait { task, patience_ms } => {
                self.wait_for_end(index, client, TaskId(task), patience_ms)
            }
            Request::Kill { task } => self.kill(index, TaskId(task)),
            Request::TaskAt { place } => now(Answer::TaskAt(self.task_at(place)?)),
            Request::ThreadAfter { task, previous } => {
                now(Answer::ThreadAfter(self.thread_after(TaskId(task), previous)?))
            }
            Request::Trace { .. } | Request::Record { .. } | Request::Doors { .. }
                if !self.programs[index].policy.is_operator =>
            {
                Err(Status::Denied)
            }
            Request::Trace { on } => self.trace(on),
            Request::Record { number } => {
                let [time, thread, first, second] = sys::trace_read(number).map_err(status_of)?;
                now(Answer::Record(time, thread, first, second))
            }
            Request::Doors { task, row } => {
                let counts = sys::trace_doors(TaskId(task), row).map_err(status_of)?;
                now(Answer::Doors(counts.map(|count| count as u32)))
            }
            Request::Memory => now(self.memory()?),
            Request::Classes { thread } => {
                if !self.programs[index].policy.is_bus {
                    return Err(Status::Denied);
                }
                let of = self.program_of(thread).ok_or(Status::NotFound)?;
                now(Answer::Classes(self.programs[of].policy.classes))
            }
            Request::TaskOf { thread } => {
                let of = self.program_of(thread).ok_or(Status::NotFound)?;
                now(Answer::TaskOf(self.programs[of].task.0))
            }
            Request::IsClient { thread } => now(Answer::IsClient(self.is_client(index, client, thread))),
            Request::MayMount { task } => now(Answer::MayMount(self.may_mount(TaskId(task))?)),
            Request::Keep { len } => self.keep(index, client, len as usize),
            Request::Kept { from } => now(process::shown_kept(self.kept_of(index), from)),
            Request::Restart { name } => self.restart(index, checked(name)?),
        }
    }

    fn stage(&mut self, index: usize, client: Uid, offset: usize, text: &[u8]) -> Decision {
        let Program { task, policy, .. } = self.programs[index];
        let len_max = if policy.is_operator {
            ARGUMENTS_LEN_MAX
        } else if policy.is_vital() {
            KEPT_LEN_MAX
        } else {
            // It may not start anything, and nothing is kept for it.
            return Err(Status::Denied);
        };
        let memory = |staged| Piece::of(&self.programs, task, staged);
        self.staged.put((task, client), offset, text, len_max, memory)?;
        now(Answer::Stage)
    }

    /// Keeps what a thread has staged for the program that is started in the place of its own.
    fn keep(&mut self, index: usize, client: Uid, len: usize) -> Decision {
        let Program { task, policy, .. } = self.programs[index];
        let text = self.staged.take((task, client));
        if !policy.is_vital() {
            return Err(Status::Denied);
        }
        let name = policy.says.name.as_str();
        match len {
            0 => drop(self.texts.remove(name)),
            len if len == text.len() && len <= KEPT_LEN_MAX => {
                self.texts.insert(name, text.bytes().to_vec());
            }
            _ => return Err(Status::BadRequest),
        }
        now(Answer::Keep)
    }

    fn kept_of(&self, index: usize) -> &[u8] {
        let name = self.programs[index].policy.says.name.as_str();
        self.texts.get(name).map_or(&[], Vec::as_slice)
    }

    fn may_mount(&self, task: TaskId) -> Result<bool, Status> {
        Ok(self.program(task).ok_or(Status::NotFound)?.may_mount)
    }

    fn wait_for_end(&mut self, index: usize, client: Uid, task: TaskId, patience_ms: u64) -> Decision {
        let parent = self.programs[index].task;
        if let Some(at) = self.ended.iter().position(|ended| ended.task == task && ended.parent == parent) {
            return now(process::ended(Some(self.ended.remove(at).outcome)));
        }
        if !self.programs.iter().any(|program| program.task == task && program.parent == parent) {
            return Err(Status::NotFound);
        }
        let deadline_ns = match patience_ms {
            u64::MAX => None,
            ms => Some(time::now_ns().saturating_add(ms.saturating_mul(1_000_000))),
        };
        self.wait(index, client, Awaits::End { task, deadline_ns })
    }

    fn kill(&mut self, index: usize, task: TaskId) -> Decision {
        if task == self.own_task || task == self.sigma0_task {
            return Err(Status::Denied);
        }
        let killer = &self.programs[index];
        let (own, is_operator) = (killer.task, killer.policy.is_operator);
        let victim = self.programs.iter().position(|program| program.task == task).ok_or(Status::NotFound)?;
        if !is_operator && self.programs[victim].parent != own && task != own {
            return Err(Status::Denied);
        }
        self.end(victim, End::Killed);
        now(Answer::Kill)
    }

    /// Starts a server that stays down; it may crash as often again as a new one.
    fn restart(&mut self, index: usize, name: Name) -> Decision {
        if !self.programs[index].policy.is_operator {
            return Err(Status::Denied);
        }
        let is_meant = |policy: &&&Policy| policy.name == name.as_str() || policy.serves_name(name.as_str());
        let policy = *self.servers.iter().find(is_meant).ok_or(Status::NotFound)?;
        if self.programs.iter().any(|program| program.policy.is_alternative_to(policy)) {
            return Err(Status::Taken);
        }
        self.restarts.remove(policy.name.as_str());
        self.start_at_boot(policy)?;
        now(Answer::Restart)
    }

    /// σ0, `root`, then the programs in the order of their start.
    fn task_at(&self, place: u64) -> Result<TaskEntry, Status> {
        if place == 0 {
            return sigma0::usage(rt::home()).map_err(|_| Status::Busy);
        }
        let (task, name) = match place {
            1 => (self.own_task, Name::new("root").ok_or(Status::NotFound)?),
            _ => {
                let program = self.programs.get(place as usize - 2).ok_or(Status::NotFound)?;
                (program.task, program.name)
            }
        };
        let info = sys::task_info(if place == 1 { TaskId::NIL } else { task }).map_err(status_of)?;
        Ok(process::task_entry(task, &name, &info))
    }

    fn thread_after(&self, task: TaskId, previous: Uid) -> Result<ThreadEntry, Status> {
        if task == self.sigma0_task {
            let thread = sigma0::thread(rt::home()).map_err(|_| Status::Busy);
            return if previous.is_nil() { thread } else { Err(Status::NotFound) };
        }
        let of = if task == self.own_task { TaskId::NIL } else { task };
        let uid = sys::thread_next(of, previous).map_err(status_of)?;
        if uid.is_nil() {
            return Err(Status::NotFound);
        }
        let info = sys::thread_info(uid).map_err(status_of)?;
        Ok(process::thread_entry(uid, &info, self.task_of_slot(info.works_for)))
    }

    /// The program that has the thread in a slot; nil if none has.
    fn task_of_slot(&self, slot: u32) -> TaskId {
        let has = |task: TaskId| {
            let mut thread = Uid::NIL;
            while let Ok(next) = sys::thread_next(task, thread)
                && !next.is_nil()
            {
                if next.slot() == slot {
                    return true;
                }
                thread = next;
            }
            false
        };
        let mut tasks = self.programs.iter().map(|program| program.task);
        tasks.find(|&task| slot != 0 && has(task)).unwrap_or(TaskId::NIL)
    }

    /// Every thread of every program, and this one, so that those that come later are recorded too.
    fn trace(&self, on: bool) -> Decision {
        let tasks = self.programs.iter().map(|program| program.task);
        for task in tasks {
            let mut thread = sys::thread_next(task, Uid::NIL).map_err(status_of)?;
            while !thread.is_nil() {
                sys::thread_trace(thread, on, false).map_err(status_of)?;
                thread = sys::thread_next(task, thread).map_err(status_of)?;
            }
        }
        sys::thread_trace(Uid::NIL, on, on).map_err(status_of)?;
        now(Answer::Trace)
    }

    /// Of the machine, of the memory manager, and the kernel's.
    fn memory(&self) -> Result<Answer, Status> {
        let own = sys::task_info(TaskId::NIL).map_err(status_of)?;
        let kernel = MemoryUse { total: self.kernel_frames, free: own.quota.saturating_sub(own.used) };
        let machine = memory::statistics(rt::home()).map_err(|_| Status::Busy)?;
        let manager = memory::statistics(self.manager).map_err(|_| Status::Busy)?;
        Ok(Answer::Memory(machine, manager, kernel))
    }
}
