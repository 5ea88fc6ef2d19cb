//! Commands that start and end programs.

use crate::jobs::Job;
use crate::shell::{STATUS_NOT_FOUND, STATUS_USAGE, Shell};
use crate::{binary, commands, foreground};
use alloc::string::String;
use alloc::vec::Vec;
use pipe::Pipe;
use rt::api::process::{self, ARGUMENTS_LEN_MAX, End, Outcome, TaskEntry};
use rt::api::{Failure, Name, Status};
use rt::println;
use rt::sys::TaskId;

/// Statuses of programs that did not end by themselves, as other shells have them.
const STATUS_CRASHED: i32 = 139;
const STATUS_KILLED: i32 = 137;
/// Status of a program that exists but cannot be started.
const STATUS_NOT_STARTED: i32 = 126;

const FOREVER: u64 = u64::MAX;

/// How long a misbehaving program may run.
const CRASH_PATIENCE_MS: u64 = 2000;

/// A program that a command starts.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its arguments.
    pub arguments: &'a [&'a str],
    /// The command is its name alone, so that it may be no program but a mistake.
    pub is_bare: bool,
}

impl<'a> Call<'a> {
    /// The program that a command starts, if it does.
    pub fn of(words: &'a [&'a str]) -> Option<Call<'a>> {
        match words {
            ["run", name, arguments @ ..] => Some(Call { name, arguments, is_bare: false }),
            ["bench", arguments @ ..] => Some(Call { name: "bench", arguments, is_bare: false }),
            [name, arguments @ ..] if !commands::is_command(name) => {
                Some(Call { name, arguments, is_bare: true })
            }
            _ => None,
        }
    }
}

/// The commands `run` and `bench`, without anything beside them.
pub fn run(shell: &mut Shell, words: &[&str]) -> i32 {
    match Call::of(words) {
        Some(call) => run_one(shell, call, false),
        None => {
            println!("usage: run PROGRAM [ARGUMENT...] [&]");
            STATUS_USAGE
        }
    }
}

/// Runs a program, joined to no other.
pub fn run_one(shell: &mut Shell, call: Call, in_background: bool) -> i32 {
    let task = match start(shell, call, None, None) {
        Ok(task) => task,
        Err(status) => return status,
    };
    let program = call.name;
    if in_background {
        println!("task {}", task.number());
        if shell.is_interactive {
            shell.background.push(Background::Program { task, program: String::from(program) });
        }
        return 0;
    }
    match foreground::wait(task, shell.is_interactive) {
        Ok(Some(outcome)) => ended(shell, program, outcome),
        Ok(None) => 1,
        Err(failure) => {
            println!("run: {failure}");
            1
        }
    }
}

/// Something that nobody waits for.
pub enum Background {
    /// A program.
    Program {
        /// Its task.
        task: TaskId,
        /// Its name.
        program: String,
    },
    /// Programs that are joined.
    Job(Job),
}

/// Leaves a job to itself.
pub fn leave(shell: &mut Shell, job: Job) {
    let numbers: Vec<String> = job.tasks().map(|task| alloc::format!("{}", task.number())).collect();
    println!("task {}", numbers.join(" "));
    // In a script nobody is told how it ended, but what has ended makes room.
    shell.background.retain(|one| !matches!(one, Background::Job(job) if job.is_over()));
    shell.background.push(Background::Job(job));
}

/// Ends jobs that still run when the shell does: their pipes end with it.
pub fn end_jobs(background: &[Background]) {
    for one in background {
        if let Background::Job(job) = one {
            job.end();
        }
    }
}

/// Tells of the programs in the background that have ended how they did, and forgets them.
pub fn tell_ended(background: &mut Vec<Background>) {
    let all = core::mem::take(background);
    background.extend(all.into_iter().filter_map(|one| match one {
        Background::Program { task, program } => match process::wait(rt::home(), task, 0) {
            Ok(None) => Some(Background::Program { task, program }),
            outcome => {
                tell_end(task, &program, outcome);
                None
            }
        },
        Background::Job(job) if !job.is_over() => Some(Background::Job(job)),
        Background::Job(job) => {
            job.outcomes().for_each(|(task, program, outcome)| tell_end(task, &program, outcome));
            None
        }
    }));
}

/// Tells how a program in the background ended.
fn tell_end(task: TaskId, program: &str, outcome: rt::api::Result<Option<Outcome>>) {
    let number = task.number();
    match outcome.map(|outcome| outcome.map(|outcome| outcome.end)) {
        Ok(Some(End::Exited(status))) => {
            println!("task {number}: {program} ended with status {}", status & 0xff);
        }
        // The chief has printed the details.
        Ok(Some(End::Crashed(_))) => println!("task {number}: {program} crashed"),
        Ok(Some(End::Killed)) => println!("task {number}: {program} was killed"),
        // It ended so long ago that its end is forgotten.
        Ok(None) | Err(Failure::Refused(Status::NotFound)) => println!("task {number}: {program} ended"),
        Err(failure) => println!("task {number}: {program}: {failure}"),
    }
}

/// The command `restart`.
pub fn restart(_: &mut Shell, words: &[&str]) -> i32 {
    let [server] = words else {
        println!("usage: restart SERVER");
        return STATUS_USAGE;
    };
    let restarted = match Name::new(server) {
        Some(name) => process::restart(rt::home(), &name),
        None => Err(Failure::Refused(Status::NotFound)),
    };
    match restarted {
        Ok(()) => 0,
        Err(Failure::Refused(Status::NotFound)) => {
            println!("restart: {server}: the system has no such server");
            1
        }
        Err(Failure::Refused(Status::Taken)) => {
            println!("restart: {server} runs; \"kill\" ends a server, and the system starts it again");
            1
        }
        Err(failure) => {
            println!("restart: {server}: {failure}");
            1
        }
    }
}

/// Starts a program, with pipes in the console's place where there are some, or says why not. One that is named by a path may be Linux's.
pub fn start(shell: &Shell, call: Call, input: Option<&Pipe>, output: Option<&Pipe>) -> Result<TaskId, i32> {
    if !call.name.contains('/') {
        return start_named(shell, call, input, output);
    }
    let found = binary::find(&shell.place.path_of(call.name)).map_err(|(is_there, why)| {
        println!("run: {}: {why}", call.name);
        if is_there { STATUS_NOT_STARTED } else { STATUS_NOT_FOUND }
    })?;
    let arguments: Vec<&str> =
        found.words.iter().map(String::as_str).chain(call.arguments.iter().copied()).collect();
    start_named(shell, Call { name: &found.name, arguments: &arguments, is_bare: false }, input, output)
}

/// Starts a program of the boot archive.
fn start_named(
    shell: &Shell,
    call: Call,
    input: Option<&Pipe>,
    output: Option<&Pipe>,
) -> Result<TaskId, i32> {
    let program = call.name;
    let arguments: String = shell.environment.behind(&call.arguments.join(" "));
    let started = match Name::new(program) {
        Some(name) => pipe::start(&name, &arguments, input, output),
        None => Err(Failure::Refused(Status::NotFound)),
    };
    started.map_err(|failure| {
        match failure {
            Failure::Refused(Status::NotFound) if call.is_bare => {
                println!("{program}: no such command; \"help\" lists them");
                return STATUS_NOT_FOUND;
            }
            Failure::Refused(Status::NotFound) => {
                println!("run: there is no program {program}");
                return STATUS_NOT_FOUND;
            }
            Failure::Refused(Status::Taken) => {
                println!("run: {program} is a server of the system, which starts it itself");
            }
            Failure::Refused(Status::TooLarge) => {
                println!("run: {program}: more than {ARGUMENTS_LEN_MAX} bytes of arguments and variables");
            }
            failure => println!("run: {program}: {failure}"),
        }
        STATUS_NOT_STARTED
    })
}

/// The status of a program that has ended.
pub fn ended(shell: &mut Shell, program: &str, outcome: Outcome) -> i32 {
    shell.outcome = Some(outcome);
    match outcome.end {
        End::Exited(status) => status & 0xff,
        // The chief has printed the details.
        End::Crashed(_) => STATUS_CRASHED,
        End::Killed => {
            println!("run: {program} was killed");
            STATUS_KILLED
        }
    }
}

/// The command `crash`: succeeds if what was done wrong had its consequences and was reported.
pub fn crash(shell: &mut Shell, words: &[&str]) -> i32 {
    let call = Call { name: "crash", arguments: words, is_bare: false };
    let task = match start(shell, call, None, None) {
        Ok(task) => task,
        Err(status) => return status,
    };
    let kind = words.first().copied().unwrap_or("fault");
    let outcome = match process::wait(rt::home(), task, CRASH_PATIENCE_MS) {
        Ok(outcome) => outcome,
        Err(failure) => {
            println!("crash: {failure}");
            return 1;
        }
    };
    shell.outcome = outcome;
    match outcome.map(|outcome| outcome.end) {
        Some(End::Crashed(crash)) => {
            println!("crash {kind}: ended by {}; everything else goes on", crash.cause)
        }
        Some(End::Exited(101)) => println!("crash {kind}: ended by its own panic; everything else goes on"),
        Some(End::Exited(status)) => return status,
        Some(End::Killed) => println!("crash {kind}: was killed"),
        None => {
            let _ = process::kill(rt::home(), task);
            shell.outcome = process::wait(rt::home(), task, FOREVER).ok().flatten();
            println!("crash {kind}: did not end by itself within {CRASH_PATIENCE_MS} ms and was killed");
        }
    }
    0
}

/// The command `kill`.
pub fn kill(_: &mut Shell, words: &[&str]) -> i32 {
    let [target] = words else {
        println!("usage: kill NAME|NUMBER");
        return STATUS_USAGE;
    };
    let victims = match find(target) {
        Ok(victims) => victims,
        Err(failure) => {
            println!("kill: {failure}");
            return 1;
        }
    };
    let victim = match victims.as_slice() {
        [victim] => victim,
        [] => {
            println!("kill: {target}: no such task");
            return 1;
        }
        several => {
            println!("kill: {} tasks are named {target}; say which by its number", several.len());
            return 1;
        }
    };
    match process::kill(rt::home(), victim.id()) {
        Ok(()) => 0,
        Err(Failure::Refused(Status::Denied)) => {
            println!("kill: {} cannot be ended: the system rests on it", victim.program());
            1
        }
        Err(failure) => {
            println!("kill: {target}: {failure}");
            1
        }
    }
}

/// The tasks with this name or number.
fn find(target: &str) -> rt::api::Result<Vec<TaskEntry>> {
    let number = target.parse::<u16>().ok();
    let mut found = Vec::new();
    for index in 0.. {
        let Some(task) = process::task_at(rt::home(), index)? else { break };
        if task.program().as_str() == target || number == Some(task.id().number()) {
            found.push(task);
        }
    }
    Ok(found)
}
