//! The state of `root` and its loop.
//!
//! The loop never waits for a program: a request that cannot be answered yet is kept in `pending`, at most one per
//! client thread, since a thread that asks again has given up its former request.

use crate::options::Options;
use crate::policy::{Policies, Policy};
use crate::texts::{self, Piece};
use crate::{keeper, output};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use holdings::{Staging, Text};
use rt::api::process::{self, Outcome};
use rt::api::{Failure, Name, Reply, Result};
use rt::frames::{Lent, Relay};
use rt::pager::Archive;
use rt::sys::{self, Error, Fpage, Rights, TaskId, Timeout, Uid};
use rt::{println, server, time};

/// Everything that `root` knows.
#[derive(Debug)]
pub struct Supervisor {
    pub(crate) me: Uid,
    pub(crate) own_task: TaskId,
    pub(crate) sigma0_task: TaskId,
    pub(crate) archive: Archive,
    pub(crate) options: Options,
    /// Quota at the start, from which the programs' shares are taken.
    pub(crate) kernel_frames: u64,
    pub(crate) keeper: Uid,
    /// The memory manager's thread; nil while there is none.
    pub(crate) manager: Uid,
    /// Rights of programs, from the system description.
    pub(crate) policies: Policies,
    /// Boot servers, in the order in which they start.
    pub(crate) servers: Vec<&'static Policy>,
    pub(crate) programs: Vec<Program>,
    pub(crate) ended: Vec<Ended>,
    pub(crate) names: Vec<Binding>,
    pub(crate) pending: Vec<Pending>,
    /// Arguments for the next program that a thread starts, or what a server wants to be kept.
    pub(crate) staged: Staging<Piece>,
    /// The memory manager failed in this way, and nothing has been done about it yet.
    pub(crate) broken: Option<Failure>,
    /// Contiguous memory of a bus server that has ended, with the log2 of each size. Devices may still write there, so only the next bus
    /// server gets it, which silences them first.
    pub(crate) kept: Vec<(Lent, u32)>,
    /// Texts that servers have asked to be kept for whoever is started in their place, by their names.
    pub(crate) texts: BTreeMap<&'static str, Vec<u8>>,
    /// When each server was restarted lately.
    pub(crate) restarts: BTreeMap<&'static str, Vec<u64>>,
}

/// A running program.
#[derive(Debug)]
pub(crate) struct Program {
    pub task: TaskId,
    pub name: Name,
    pub policy: &'static Policy,
    /// The task that started it; nil: `root`.
    pub parent: TaskId,
    /// Names that it finds in the place of others: its own, or, if it has none, those of its parent.
    pub instead: &'static [(String, String)],
    /// Whether it may mount: its entry says so, and whoever started it may.
    pub may_mount: bool,
    /// Its end is the end of the system.
    pub is_init: bool,
    /// Its arguments, and its environment behind them. They are UTF-8.
    pub arguments: Text<Piece>,
    /// Devices that were handed to it.
    pub holds: Vec<Held>,
    /// Contiguous memory that was handed to it, with the log2 of each size.
    pub blocks: Vec<(Lent, u32)>,
}

/// A part of a device that `root` has got for a program. When it is dropped, the program loses it, and whomever it gave it to.
#[derive(Debug)]
pub(crate) struct Held {
    pub part: Fpage,
    /// The window in `root` through which memory of a device goes. Ports and interrupts have their places in all programs.
    pub relay: Option<Relay>,
}

impl Held {
    /// Where it is in `root`'s own spaces.
    pub fn window(&self) -> Fpage {
        self.relay.as_ref().map_or(self.part, Relay::window)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The window of memory goes with the relay.
        if self.relay.is_none() {
            let _ = sys::flush(self.part.with_rights(Rights::RWX));
        }
    }
}

/// A program that ended, until its parent asks how.
#[derive(Debug)]
pub(crate) struct Ended {
    pub task: TaskId,
    pub parent: TaskId,
    pub outcome: Outcome,
}

/// A name and who serves it.
#[derive(Debug)]
pub(crate) struct Binding {
    pub name: Name,
    pub server: Uid,
    pub task: TaskId,
}

/// A request that waits for something.
#[derive(Debug)]
pub(crate) struct Pending {
    pub client: Uid,
    pub task: TaskId,
    pub awaits: Awaits,
}

/// Event that a request waits for.
#[derive(Debug)]
pub(crate) enum Awaits {
    /// A server of this name.
    Name(Name),
    /// The end of a program, or this time.
    End { task: TaskId, deadline_ns: Option<u64> },
}

impl Supervisor {
    /// The state at the start, with a keeper but no programs.
    pub fn new(options: Options) -> Result<Supervisor> {
        let identity = sys::identity();
        let archive = rt::pager::archive(rt::home())?;
        let Some(policies) = Policies::read(archive.bytes) else {
            println!("tern: the boot archive has no system description for this root");
            output::end(1);
        };
        let sigma0 = rt::api::sigma0::usage(rt::home())?;
        let keeper = keeper::start(identity.uid, archive)?;
        let own = sys::task_info(TaskId::NIL).map_err(Failure::Kernel)?;
        Ok(Supervisor {
            me: identity.uid,
            own_task: identity.task,
            sigma0_task: sigma0.id(),
            archive,
            options,
            kernel_frames: own.quota - own.used,
            keeper,
            manager: Uid::NIL,
            policies,
            servers: policies.servers().collect(),
            programs: Vec::new(),
            ended: Vec::new(),
            names: Vec::new(),
            pending: Vec::new(),
            staged: Staging::default(),
            broken: None,
            kept: Vec::new(),
            texts: BTreeMap::new(),
            restarts: BTreeMap::new(),
        })
    }

    /// Starts the memory manager, the boot servers and the first program.
    pub fn start_system(&mut self) {
        let started = self.start(self.policies.manager(), Text::default(), TaskId::NIL);
        if let Err(status) = started {
            println!("root: cannot start the memory manager: {}", status.describe());
            output::end(1);
        }
        for policy in self.servers.clone() {
            if self.policies.starts_at_boot(policy) {
                self.start_server(policy);
            }
        }
        let init = self.options.init.clone();
        let started = match (Name::new(&init), texts::text(&self.options.arguments)) {
            (Some(name), Ok(arguments)) => self.start_named(&name, arguments, TaskId::NIL),
            (Some(_), Err(status)) => Err(status),
            (None, _) => Err(rt::api::Status::NotFound),
        };
        match started {
            Ok(task) => self.programs.iter_mut().for_each(|program| program.is_init |= program.task == task),
            Err(status) => {
                println!("tern: cannot start the first program {init:?}: {}", status.describe());
                output::end(127);
            }
        }
    }

    /// Serves until the machine is switched off.
    pub fn run(&mut self) -> ! {
        let mut answer: Option<(Uid, Reply)> = None;
        loop {
            self.repair();
            let timeout = self.expire();
            // A client that does not wait for its answer any more does not get it.
            let received = match answer.take() {
                // Mostly nobody waits for a time, and one call does both.
                Some((client, reply)) if timeout == Timeout::NEVER => Ok(server::reply_wait(client, &reply)),
                answer => {
                    if let Some((client, reply)) = answer {
                        let _ = server::reply(client, &reply);
                    }
                    sys::receive(Uid::ANY, timeout)
                }
            };
            if let Ok(message) = received {
                answer = self.handle(&message).map(|reply| (message.sender, reply));
            }
        }
    }

    /// Answers requests whose time is over; returns how long until the next.
    fn expire(&mut self) -> Timeout {
        let now = time::now_ns();
        let deadline = |pending: &Pending| match pending.awaits {
            Awaits::End { deadline_ns, .. } => deadline_ns,
            Awaits::Name(_) => None,
        };
        self.pending.retain(|pending| {
            let is_over = deadline(pending).is_some_and(|at| at <= now);
            if is_over {
                let _ = server::reply(pending.client, &process::ended(None).into());
            }
            !is_over
        });
        match self.pending.iter().filter_map(deadline).min() {
            Some(at) => Timeout::from_us((at - now) / 1000 + 1),
            None => Timeout::NEVER,
        }
    }

    /// Answers everybody who waits for what `select` accepts.
    pub(crate) fn answer_pending(&mut self, select: impl Fn(&Pending) -> bool, reply: &Reply) {
        self.pending.retain(|pending| {
            let selected = select(pending);
            if selected {
                let _ = server::reply(pending.client, reply);
            }
            !selected
        });
    }

    /// The program that a thread belongs to.
    pub(crate) fn program_of(&self, thread: Uid) -> Option<usize> {
        let task = sys::thread_info(thread).ok()?.task;
        self.programs.iter().position(|program| program.task == task)
    }
}

/// Whether a call failed because the memory manager itself is broken.
pub(crate) fn is_fatal(failure: Failure) -> bool {
    matches!(failure, Failure::Garbled | Failure::Kernel(Error::NoSuch | Error::PartnerDied))
}
