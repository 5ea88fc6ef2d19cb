//! How programs start and end.

use crate::output;
use crate::policy::{self, Policy};
use crate::supervisor::{Awaits, Ended, Program, Supervisor, is_fatal};
use crate::texts::{self, Piece};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use description::KERNEL_SHARES;
use holdings::Text;
use rt::api::memory::{self, File, Refusal};
use rt::api::process::{self, Cause, Crash, End, Outcome, Shortage, status_of};
use rt::api::{Failure, Name, Reply, Status};
use rt::crash::{self, Registers, STACK_LEN_MAX, overflown_stack, stack_from};
use rt::frames::Upstream;
use rt::sys::abi::PAGE_SIZE;
use rt::sys::abi::call::RESUME_AS_IS;
use rt::sys::{self, Message, TaskId, Uid};
use rt::thread::{First, start_first};
use rt::{println, time};

/// End of a server for which this machine has nothing.
const UNAVAILABLE: End = End::Exited(process::UNAVAILABLE);

impl Supervisor {
    /// Starts a boot server; a failure is told and survived.
    pub(crate) fn start_server(&mut self, policy: &'static Policy) {
        if let Err(status) = self.start_at_boot(policy) {
            println!("root: cannot start {}: {}", self.place_of(policy), status.describe());
            self.give_up(policy);
        }
    }

    /// Starts a boot server with the arguments that the description has for it.
    pub(crate) fn start_at_boot(&mut self, policy: &'static Policy) -> Result<TaskId, Status> {
        self.start(policy, texts::text(&policy.arguments_at_boot())?, TaskId::NIL)
    }

    /// Starts a program by name, under the policy for that name.
    pub(crate) fn start_named(
        &mut self,
        name: &Name,
        arguments: Text<Piece>,
        parent: TaskId,
    ) -> Result<TaskId, Status> {
        let policy = self.policies.of(name.as_str());
        self.file_of(name, policy).ok_or(Status::NotFound)?;
        // There is one of each server, and `root` has started it.
        if policy.is_vital() || name.as_str() == policy::MODULES {
            return Err(Status::Taken);
        }
        self.start_file(name, policy, arguments, parent)
    }

    /// Starts the program of a policy.
    pub(crate) fn start(
        &mut self,
        policy: &'static Policy,
        arguments: Text<Piece>,
        parent: TaskId,
    ) -> Result<TaskId, Status> {
        let name = Name::new(&policy.name).ok_or(Status::NotFound)?;
        self.start_file(&name, policy, arguments, parent)
    }

    fn start_file(
        &mut self,
        name: &Name,
        policy: &'static Policy,
        arguments: Text<Piece>,
        parent: TaskId,
    ) -> Result<TaskId, Status> {
        if self.programs.len() >= policy::PROGRAMS_MAX {
            return Err(Status::Exhausted);
        }
        let arguments = self.with_environment(arguments, policy, parent)?;
        let file = self.file_of(name, policy).ok_or(Status::NotFound)?;
        let quota = self.share_of(policy);
        let instead = self.instead_of(policy, parent);
        let may_mount = policy.may_mount && self.program(parent).is_none_or(|starter| starter.may_mount);
        let task = sys::task_create(quota, policy.priority_max).map_err(status_of)?;
        let thread = match self.start_in(task, policy, file, arguments.len() as u64) {
            Ok(thread) => thread,
            Err(status) => {
                let _ = sys::task_destroy(task);
                self.release(task, policy);
                return Err(status);
            }
        };
        if policy.is_manager() {
            self.manager = thread;
        }
        self.programs.push(Program {
            task,
            name: *name,
            policy,
            parent,
            instead,
            may_mount,
            is_init: false,
            arguments,
            holds: Vec::new(),
            blocks: Vec::new(),
        });
        Ok(task)
    }

    /// The file of a program in the boot archive.
    fn file_of(&self, name: &Name, policy: &Policy) -> Option<File> {
        let archive = self.archive.bytes;
        let file = sys::abi::archive::find(archive, policy.file_of(name.as_str()))?;
        let offset = file.data.as_ptr() as u64 - archive.as_ptr() as u64;
        Some(File { offset, len: file.data.len() as u64 })
    }

    /// The program of a task. None for `root` itself, which is nil as a parent.
    pub(crate) fn program(&self, task: TaskId) -> Option<&Program> {
        self.programs.iter().find(|program| program.task == task)
    }

    /// Names that a program finds in the place of others. What a program starts has its console, for one.
    fn instead_of(&self, policy: &'static Policy, parent: TaskId) -> &'static [(String, String)] {
        match self.program(parent) {
            Some(parent) if policy.instead.is_empty() => parent.instead,
            _ => &policy.says.instead,
        }
    }

    /// A program that is not given an environment has its parent's, or that of the boot options.
    fn with_environment(
        &self,
        mut arguments: Text<Piece>,
        policy: &Policy,
        parent: TaskId,
    ) -> Result<Text<Piece>, Status> {
        // The memory manager must not ask `root` for anything, since `root` waits for it.
        if arguments.bytes().contains(&0) || policy.is_manager() {
            return Ok(arguments);
        }
        let environment = match self.program(parent) {
            Some(parent) => {
                let all = parent.arguments.bytes();
                all.iter().position(|&byte| byte == 0).map_or(&[][..], |at| &all[at + 1..])
            }
            None => self.options.environment.as_bytes(),
        };
        if !environment.is_empty() {
            arguments.append(b"\0", || Piece::of(&self.programs, parent, 0))?;
            arguments.append(environment, || Piece::of(&self.programs, parent, 0))?;
        }
        Ok(arguments)
    }

    fn start_in(&mut self, task: TaskId, policy: &Policy, file: File, argument: u64) -> Result<Uid, Status> {
        let pager = self.pager_for(policy);
        let registered = memory::register(pager, task, file, policy.pages_max).and_then(|entry| {
            if policy.colours != 0 {
                memory::colour(pager, task, policy.colours.into())?;
            }
            Ok(entry)
        });
        let entry = registered.map_err(|failure| match failure {
            Failure::Refused(status) => status,
            _ => {
                self.manager_failed(failure);
                Status::Busy
            }
        })?;
        let first = First { priority: policy.priority, pager, handler: self.me, entry, argument };
        start_first(task, first).map_err(status_of)
    }

    /// Lets a program read the boot archive that may.
    pub(crate) fn archive_of(&mut self, index: usize) -> Result<memory::Answer, Status> {
        let Program { task, policy, .. } = self.programs[index];
        if !policy.reads_archive {
            return Err(Status::Denied);
        }
        match memory::show_archive(self.pager_for(policy), task) {
            Ok((address, len)) => Ok(memory::Answer::Archive(address, len)),
            Err(Failure::Refused(status)) => Err(status),
            Err(failure) => {
                self.manager_failed(failure);
                Err(Status::Busy)
            }
        }
    }

    fn pager_for(&self, policy: &Policy) -> Uid {
        if policy.is_manager() { self.keeper } else { self.manager }
    }

    /// Gives a dead task's memory back to its pager.
    fn release(&mut self, task: TaskId, policy: &Policy) {
        let pager = self.pager_for(policy);
        if pager.is_nil() {
            return;
        }
        match memory::release(pager, task) {
            Ok(()) | Err(Failure::Refused(_)) => {}
            Err(failure) => self.manager_failed(failure),
        }
    }

    /// Notes that the memory manager is broken. The loop deals with it, when nothing else is half done.
    fn manager_failed(&mut self, failure: Failure) {
        if is_fatal(failure) {
            self.broken = Some(failure);
        }
    }

    /// Ends a broken memory manager, and with it everything else; then all starts anew.
    pub(crate) fn repair(&mut self) {
        if let Some(failure) = self.broken.take()
            && let Some(index) = self.programs.iter().position(|program| program.policy.is_manager())
        {
            println!("root: the memory manager does not answer: {failure}");
            self.end(index, End::Killed);
        }
    }

    /// Kernel memory with which a program starts, in frames.
    fn share_of(&self, policy: &Policy) -> u64 {
        (self.kernel_frames * policy.kernel_share / KERNEL_SHARES).max(policy::KERNEL_FRAMES_MIN)
    }

    /// An exception of a program ends it, unless it is a server that can go on with more kernel memory: then this is the answer.
    pub(crate) fn crashed(&mut self, message: &Message) -> Option<Reply> {
        let [vector, _, ip, sp, _, _, task, address] = message.words;
        let index = self.programs.iter().position(|program| program.task == TaskId(task))?;
        let cause = self.cause(index, message.sender, vector, address, sp);
        if matches!(cause, Cause::OutOfMemory(Shortage::Kernel)) && self.pay_for_mappings(index) {
            return Some(Reply::label(RESUME_AS_IS));
        }
        // The words that the report needs go with the task.
        let report = self.report_of(index, message.sender, ip, sp);
        self.end_with(index, End::Crashed(Crash { cause, ip, address }), report);
        None
    }

    /// Gives a server more kernel memory, from what `root` has left. Whether it got some.
    ///
    /// The share is a part of this machine's kernel memory, and the memory of a program is a number. So a server may touch more memory than its share pays for, when clients ask
    /// for much, and would end by that. Mappings of all its memory are paid for beside the share, when they are needed: set aside from the beginning they would
    /// leave nothing for programs on a small machine. The sum has an end, so that a server does not go on for ever that lacks something else.
    fn pay_for_mappings(&self, index: usize) -> bool {
        let Program { task, policy, .. } = self.programs[index];
        let Ok(info) = sys::task_info(task) else { return false };
        let quota_max = self.share_of(policy) + policy.pages_max.div_ceil(policy::MAPPED_PER_FRAME);
        let quota = (info.quota + policy::KERNEL_FRAMES_STEP).min(quota_max);
        !policy.serves.is_empty() && quota > info.quota && sys::task_set_quota(task, quota).is_ok()
    }

    /// Why a thread of a program has an exception: its memory manager knows what it refused. Of a fault that another pager has refused nothing is known here.
    fn cause(&mut self, index: usize, thread: Uid, vector: u64, address: u64, sp: u64) -> Cause {
        let Program { task, policy, .. } = self.programs[index];
        if vector != sys::abi::call::vector::UNRESOLVED_FAULT {
            return Cause::Exception(vector);
        }
        if let Some(thread) = overflown_stack(address, sp) {
            return Cause::StackOverflow(thread);
        }
        let pager = self.pager_for(policy);
        if sys::thread_info(thread).is_ok_and(|info| info.pager != pager) {
            return Cause::Exception(vector);
        }
        match memory::why_refused(pager, task) {
            Ok((Refusal::LIMIT, pages_max)) => Cause::OutOfMemory(Shortage::Limit(pages_max * PAGE_SIZE)),
            Ok((Refusal::NO_MEMORY, _)) => Cause::OutOfMemory(Shortage::Machine),
            // It gave the page, and still the fault is not resolved: the kernel could not map it.
            Ok((Refusal::NOT_REFUSED, _)) => Cause::OutOfMemory(Shortage::Kernel),
            Ok((Refusal::NOTHING_THERE, _)) | Err(_) => Cause::Exception(vector),
        }
    }

    /// Report from which a person's tools say where a program crashed; `None` if it does not hold still.
    fn report_of(&self, index: usize, thread: Uid, ip: u64, sp: u64) -> Option<Report> {
        let Program { task, policy, .. } = self.programs[index];
        let group = |number| sys::thread_registers(thread, number);
        let [[rbx, ..], [_, rbp, ..], [_, _, r12, r13], [r14, r15, ..]] =
            [group(1).ok()?, group(2).ok()?, group(3).ok()?, group(4).ok()?];
        let mut stack = Vec::from([0; STACK_LEN_MAX as usize]);
        // Less if there is less, nothing if the stack pointer is wild.
        let len = memory::look(self.pager_for(policy), task, stack_from(sp), &mut stack).unwrap_or(0);
        stack.truncate(len);
        Some(Report { registers: [ip, sp, rbp, rbx, r12, r13, r14, r15], stack })
    }

    /// Ends a program and cleans up behind it.
    pub(crate) fn end(&mut self, index: usize, end: End) {
        self.end_with(index, end, None);
    }

    fn end_with(&mut self, index: usize, end: End, report: Option<Report>) {
        let mut program = self.programs.remove(index);
        let Program { task, policy, .. } = program;
        if policy.is_manager() {
            self.manager = Uid::NIL;
        }
        self.names.retain(|binding| binding.task != task);
        if policy.serves_name(rt::api::console::NAME) {
            output::use_console(Uid::NIL);
        }
        self.pending.retain(|pending| pending.task != task);
        self.ended.retain(|ended| ended.parent != task);
        self.staged.forget(task);
        let outcome = usage(task, end);
        // Fails only if the task is gone, which is what is wanted.
        let _ = sys::task_destroy(task);
        program.holds.clear();
        self.take_blocks(&mut program);
        tell(&program, end);
        if let Some(Report { registers, stack }) = report {
            let from = stack_from(registers[1]);
            crash::report(policy.file_of(program.name.as_str()), &registers, |at, line| {
                let rest = stack.get((at - from) as usize..).unwrap_or_default();
                let len = rest.len().min(line.len());
                line[..len].copy_from_slice(&rest[..len]);
                len
            });
        }
        self.release(task, policy);
        self.report(&program, outcome);
        self.follow_up(&program, end);
    }

    /// Tells the parent how a program ended, now or when it asks.
    fn report(&mut self, program: &Program, outcome: Outcome) {
        let (task, parent) = (program.task, program.parent);
        let is_awaited =
            |awaits: &Awaits| matches!(awaits, Awaits::End { task: awaited, .. } if *awaited == task);
        if self.pending.iter().any(|pending| is_awaited(&pending.awaits)) {
            self.answer_pending(|pending| is_awaited(&pending.awaits), &process::ended(Some(outcome)).into());
            return;
        }
        if !self.programs.iter().any(|other| other.task == parent) {
            return;
        }
        // A parent that never asks loses the oldest.
        let of_parent = |ended: &Ended| ended.parent == parent;
        if self.ended.iter().filter(|ended| of_parent(ended)).count() >= policy::KEPT_MAX
            && let Some(oldest) = self.ended.iter().position(of_parent)
        {
            self.ended.remove(oldest);
        }
        self.ended.push(Ended { task, parent, outcome });
    }

    /// Restarts what must not stay down; ends the system with its first program.
    fn follow_up(&mut self, program: &Program, end: End) {
        if program.is_init {
            output::end(match end {
                End::Exited(status) => status,
                End::Crashed(_) => 139,
                End::Killed => 137,
            });
        }
        if !program.policy.is_vital() {
            return;
        }
        if end == UNAVAILABLE && !program.policy.is_manager() {
            match self.policies.otherwise(program.policy) {
                Some(other) => {
                    self.texts.remove(program.policy.says.name.as_str());
                    self.start_server(other);
                }
                None => self.give_up(program.policy),
            }
        } else if !self.may_restart(program.policy.says) {
            let (name, is_crash) = (program.name, matches!(end, End::Crashed(_)));
            let (place, how) = (self.place_of(program.policy), if is_crash { "crashes" } else { "ends" });
            println!("root: {place} {how} too often and stays down; \"restart {name}\" starts it again");
            if program.policy.is_manager() {
                output::end(1);
            }
            self.give_up(program.policy);
        } else if program.policy.is_manager() {
            // Its memory went with it, so nobody else can go on.
            println!("root: starting everything anew");
            while let Some(mut other) = self.programs.pop() {
                let _ = sys::task_destroy(other.task);
                self.take_blocks(&mut other);
            }
            self.names.clear();
            self.pending.clear();
            self.ended.clear();
            self.staged.clear();
            self.texts.clear();
            output::use_console(Uid::NIL);
            self.start_system();
        } else {
            self.start_server(program.policy);
            if program.policy.is_bus {
                self.end_drivers(program.name.as_str());
            }
        }
    }

    /// Ends the drivers that have their devices of a bus server that has ended. Memory and registers went with it, so each would crash when it touches them the next
    /// time, with a client's request. They start again while the next bus server does.
    fn end_drivers(&mut self, bus: &str) {
        let is_driver = |program: &&Program| program.policy.is_vital() && program.policy.classes != 0;
        let drivers: Vec<TaskId> =
            self.programs.iter().filter(is_driver).map(|program| program.task).collect();
        if !drivers.is_empty() {
            println!("root: drivers start again, since all that they had came from {bus}");
        }
        for driver in drivers {
            if let Some(index) = self.programs.iter().position(|program| program.task == driver) {
                self.end(index, End::Killed);
            }
        }
    }

    /// Takes contiguous memory of an ended program. It goes back to σ0, unless devices may use it.
    fn take_blocks(&mut self, program: &mut Program) {
        for (lent, log2) in program.blocks.drain(..) {
            let block = lent.reclaim();
            if program.policy.is_bus {
                self.kept.push((block.lend(), log2));
            } else {
                Upstream(rt::home()).put(block);
            }
        }
    }

    /// A program, and where the description says so.
    pub(crate) fn place_of(&self, policy: &Policy) -> String {
        format!("{} ({}, line {})", policy.name, self.policies.source, policy.line)
    }

    /// Counts a restart; false if there were too many lately.
    fn may_restart(&mut self, program: &'static description::Program) -> bool {
        let now = time::now_ns();
        let times = self.restarts.entry(&program.name).or_default();
        times.retain(|time| now - time < policy::RESTARTS_NS);
        times.push(now);
        times.len() <= usize::from(program.restarts)
    }

    /// Nobody will serve this name: those who wait for it learn that. If somebody starts the server once more, it begins anew.
    fn give_up(&mut self, policy: &Policy) {
        self.texts.remove(policy.says.name.as_str());
        let is_for =
            |awaits: &Awaits| matches!(awaits, Awaits::Name(name) if policy.serves_name(name.as_str()));
        self.answer_pending(|pending| is_for(&pending.awaits), &Status::NotFound.into());
    }
}

/// Tells a person about ends that are not as usual.
fn tell(program: &Program, end: End) {
    let (name, number) = (program.name, program.task.number());
    match end {
        End::Crashed(crash) => println!("root: {name} (task {number}) crashed: {crash}"),
        end if end == UNAVAILABLE => {}
        End::Exited(status) if program.policy.is_vital() => {
            println!("root: {name} (task {number}) ended with status {status}");
        }
        End::Killed if program.policy.is_vital() => println!("root: {name} (task {number}) was killed"),
        End::Exited(_) | End::Killed => {}
    }
}

/// Where a program crashed, as far as it can be told without its ELF file.
struct Report {
    registers: Registers,
    stack: Vec<u8>,
}

/// Time and faults of a task, counted just before its end.
fn usage(task: TaskId, end: End) -> Outcome {
    let mut outcome = Outcome { end, cpu_ns: 0, faults: sys::task_info(task).map_or(0, |info| info.faults) };
    let mut thread = Uid::NIL;
    while let Ok(next) = sys::thread_next(task, thread)
        && !next.is_nil()
    {
        outcome.cpu_ns += sys::thread_info(next).map_or(0, |info| info.cpu_ns);
        thread = next;
    }
    outcome
}
