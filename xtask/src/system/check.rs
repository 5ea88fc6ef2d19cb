//! Makes a [`System`] of a file, or finds what is wrong with it: all of it at once.

use super::Mistake;
use super::base::Sources;
use super::file::{Entry, File, Rights, Task, line_of};
use super::sandbox::{self, Settings};
use description::{
    CLASSES, COLOURS_MAX, CONSOLE, Device, KERNEL_SHARES, MEMORY_MANAGER, MODULES, PRIORITY_MAX, Program,
    System,
};
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;

/// Bytes of a name.
const NAME_MAX: usize = 16;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// The description, for a boot archive with these files.
pub fn check(sources: &Sources, file: &File, files: &[&str]) -> Result<System, Vec<Mistake>> {
    let Some(rights) = &file.usual else {
        return Err(vec![Mistake { line: 1, reason: "missing field `usual`".into() }]);
    };
    let mut checker = Checker {
        sources,
        files,
        usual: rights.get_ref().clone(),
        mistakes: Vec::new(),
        sandboxes: Vec::new(),
    };
    let usual_line = line_of(&sources.text, rights.span());
    let usual = checker.rights(usual_line, rights.get_ref());
    for module in file.module.iter().filter(|module| module.get_ref().sandbox.is_some()) {
        let line = line_of(&sources.text, module.span());
        checker.wrong(line, format!("module {}: sandbox is for programs", module.get_ref().name));
    }
    let programs: Vec<Program> = file.program.iter().map(|entry| checker.program(entry)).collect();
    let modules: Vec<Program> = file.module.iter().map(|entry| checker.program(entry)).collect();
    let tasks = checker.tasks(&file.task, &modules);
    checker.belong(&modules, &file.task);
    checker.apart(&modules);
    let all: Vec<Program> = programs.into_iter().chain(tasks).collect();
    checker.alternatives(&all);
    checker.unique(&all, &modules);
    checker.drivers(&all);
    checker.readers(&all);
    checker.files(&all);
    checker.fit(&all);
    checker.needed(usual_line, &all);
    checker.found(&usual, &all);
    checker.clients(&all);
    checker.no_cycles(&all);
    checker.sandboxes(&all);
    checker.mistakes.sort_by_key(|mistake| mistake.line);
    if checker.mistakes.is_empty() {
        Ok(System { source: sources.name().into(), programs: all, usual })
    } else {
        Err(checker.mistakes)
    }
}

struct Checker<'a> {
    sources: &'a Sources,
    files: &'a [&'a str],
    usual: Rights,
    mistakes: Vec<Mistake>,
    sandboxes: Vec<Settings>,
}

impl Checker<'_> {
    fn wrong(&mut self, line: u32, reason: String) {
        self.mistakes.push(Mistake { line, reason });
    }

    /// A value, or 0 and a mistake.
    fn taken<T: Default>(&mut self, line: u32, value: Result<T, String>) -> T {
        value.unwrap_or_else(|reason| {
            self.wrong(line, reason);
            T::default()
        })
    }

    /// A program without a name that has these rights.
    fn rights(&mut self, line: u32, rights: &Rights) -> Program {
        let priority_max =
            ranged("priority-max", rights.priority_max, PRIORITY_MAX.into(), "the highest of a program");
        let priority_max = self.taken(line, priority_max) as u8;
        // A mistake is told once.
        let most = if priority_max == 0 { PRIORITY_MAX } else { priority_max };
        let priority = ranged("priority", rights.priority, most.into(), "its priority-max");
        let share = ranged("kernel-share", rights.kernel_share, KERNEL_SHARES, "which is all");
        let memory = bytes("memory", &rights.memory);
        let restarts = match u8::try_from(rights.restarts) {
            Ok(restarts) => restarts,
            Err(_) => self.taken(line, Err(format!("restarts {}: expected 0 to 255", rights.restarts))),
        };
        Program {
            line,
            name: String::new(),
            file: String::new(),
            arguments: String::new(),
            serves: Vec::new(),
            clients: None,
            otherwise: None,
            restarts,
            uses: rights.uses.clone(),
            instead: Vec::new(),
            priority: self.taken(line, priority) as u8,
            priority_max,
            kernel_share: self.taken(line, share),
            pages_max: self.taken(line, memory) / PAGE,
            colours: 0,
            devices: Vec::new(),
            classes: 0,
            is_bus: false,
            reads_archive: false,
            contiguous_max: 0,
            is_operator: false,
            may_mount: false,
        }
    }

    fn program(&mut self, entry: &Spanned<Entry>) -> Program {
        let line = line_of(&self.sources.text, entry.span());
        let entry = entry.get_ref();
        let rights = Rights {
            // A program that may have less than is usual begins there.
            priority: entry
                .priority
                .unwrap_or(self.usual.priority.min(entry.priority_max.unwrap_or(i64::MAX))),
            priority_max: entry.priority_max.unwrap_or(self.usual.priority_max),
            kernel_share: entry.kernel_share.unwrap_or(self.usual.kernel_share),
            memory: entry.memory.clone().unwrap_or(self.usual.memory.clone()),
            restarts: entry.restarts.unwrap_or(self.usual.restarts),
            uses: entry.uses.clone().or(self.usual.uses.clone()),
        };
        let file = entry.file.as_ref().unwrap_or(&entry.name);
        for name in [&entry.name, file].into_iter().chain(entry.serves.iter().flatten()) {
            self.name(line, name);
        }
        let ports = entry.ports.iter().flatten().map(|text| ports(text));
        let lines = entry.interrupts.iter().flatten().map(|&line| interrupt(line));
        let devices: Vec<_> = ports.chain(lines).collect();
        let devices = devices
            .into_iter()
            .filter_map(|device| device.map_err(|reason| self.wrong(line, reason)).ok())
            .collect();
        let classes = entry.devices.iter().flatten();
        let classes = classes.map(|name| class(name).map_err(|reason| self.wrong(line, reason)));
        let classes = classes.filter_map(Result::ok).fold(0, |all, class| all | 1 << class);
        let colours = entry.colours.map_or(Ok(0), |count| colours(&entry.name, count));
        let contiguous = entry.contiguous.as_ref().map_or(Ok(0), |text| bytes("contiguous", text));
        let mut arguments = entry.arguments.clone().unwrap_or_default();
        let mut contiguous_max = self.taken(line, contiguous);
        if let Some(sandbox) = &entry.sandbox {
            let (settings, reasons) = sandbox::read(entry, sandbox, &rights);
            reasons.into_iter().for_each(|reason| self.wrong(line, reason));
            (arguments, contiguous_max) = (settings.arguments.clone(), settings.memory_bytes);
            self.sandboxes.push(settings);
        }
        Program {
            name: entry.name.clone(),
            file: file.clone(),
            arguments,
            serves: entry.serves.clone().unwrap_or_default(),
            clients: entry.clients.clone(),
            otherwise: entry.otherwise.clone(),
            instead: entry.instead.clone().into_iter().flatten().collect(),
            colours: self.taken(line, colours),
            devices,
            classes,
            is_bus: entry.bus.unwrap_or(false),
            reads_archive: entry.archive.unwrap_or(false),
            contiguous_max,
            is_operator: entry.operator.unwrap_or(false),
            may_mount: entry.mount.unwrap_or(false),
            ..self.rights(line, &rights)
        }
    }

    fn name(&mut self, line: u32, name: &str) {
        let is_name =
            (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_name {
            self.wrong(line, format!("{name:?} is no name, which has 1 to {NAME_MAX} printable characters"));
        }
    }

    /// The tasks that are made of modules. A task may do what its modules may together.
    fn tasks(&mut self, tasks: &[Spanned<Task>], modules: &[Program]) -> Vec<Program> {
        let mut programs = Vec::new();
        for task in tasks {
            let line = line_of(&self.sources.text, task.span());
            let task = task.get_ref();
            self.name(line, &task.name);
            if task.modules.is_empty() {
                self.wrong(line, format!("{} has no module", task.name));
            }
            let mut parts = Vec::new();
            for name in &task.modules {
                match modules.iter().find(|module| module.name == *name) {
                    Some(module) => parts.push(module),
                    None => self.wrong(line, format!("there is no module {name:?}")),
                }
            }
            let most = |of: fn(&Program) -> u8| parts.iter().map(|part| of(part)).max().unwrap_or(1);
            let sum = |of: fn(&Program) -> u64| parts.iter().map(|part| of(part)).sum();
            let clients = parts.first().and_then(|part| part.clients.clone());
            if parts.iter().any(|part| part.clients != clients) {
                self.wrong(line, format!("{}: modules of one task have the same clients", task.name));
            }
            let serves: Vec<String> = parts.iter().flat_map(|part| part.serves.clone()).collect();
            // It asks nobody for what is in the task.
            let uses: Option<Vec<_>> = parts.iter().map(|part| part.uses.clone()).collect();
            let outside = |names: Vec<Vec<String>>| {
                let names: BTreeSet<String> = names.into_iter().flatten().collect();
                names.into_iter().filter(|name| !serves.contains(name)).collect()
            };
            programs.push(Program {
                line,
                name: task.name.clone(),
                file: MODULES.into(),
                arguments: task.modules.join(" "),
                uses: uses.map(outside),
                instead: parts.iter().flat_map(|part| part.instead.clone()).collect(),
                restarts: parts.iter().map(|part| part.restarts).min().unwrap_or(0),
                serves,
                clients,
                otherwise: None,
                priority: most(|part| part.priority),
                priority_max: most(|part| part.priority_max),
                kernel_share: sum(|part| part.kernel_share),
                pages_max: sum(|part| part.pages_max),
                colours: parts.iter().map(|part| part.colours).max().unwrap_or(0),
                devices: parts.iter().flat_map(|part| part.devices.clone()).collect(),
                classes: parts.iter().fold(0, |all, part| all | part.classes),
                is_bus: parts.iter().any(|part| part.is_bus),
                reads_archive: parts.iter().any(|part| part.reads_archive),
                contiguous_max: sum(|part| part.contiguous_max),
                is_operator: false,
                may_mount: parts.iter().any(|part| part.may_mount),
            });
        }
        programs
    }

    /// Each module belongs to one task.
    fn belong(&mut self, modules: &[Program], tasks: &[Spanned<Task>]) {
        for module in modules {
            let named = |task: &Spanned<Task>| {
                task.get_ref().modules.iter().filter(|name| **name == module.name).count()
            };
            match tasks.iter().map(named).sum() {
                1 => {}
                0 => self.wrong(module.line, format!("module {} is in no task", module.name)),
                count => self.wrong(module.line, format!("module {} is in tasks {count} times", module.name)),
            }
        }
    }

    /// A module is in its task, whatever the machine has.
    fn apart(&mut self, modules: &[Program]) {
        for module in modules.iter().filter(|module| module.otherwise.is_some()) {
            self.wrong(
                module.line,
                format!("module {} has an otherwise, which only programs have", module.name),
            );
        }
    }

    /// A program that starts in the place of another serves the same names, comes later, and is there for that one alone.
    fn alternatives(&mut self, programs: &[Program]) {
        for (index, program) in programs.iter().enumerate() {
            let Some(name) = &program.otherwise else { continue };
            let wrong = match programs[index + 1..].iter().find(|other| other.name == *name) {
                None => "has no entry behind it",
                Some(_) if program.serves.is_empty() => "is for programs that serve names",
                Some(other) if other.serves != program.serves => "does not serve the same names",
                Some(_) if programs[..index].iter().any(|other| other.otherwise == program.otherwise) => {
                    "is there for another program"
                }
                Some(_) => continue,
            };
            self.wrong(program.line, format!("{}: otherwise {name:?}, which {wrong}", program.name));
        }
    }

    /// Each name is there once, and is served by one program, or by several of which one runs; so has each device one owner among those that start at
    /// boot.
    fn unique(&mut self, programs: &[Program], modules: &[Program]) {
        for (index, program) in programs.iter().enumerate() {
            let earlier = &programs[..index];
            if let Some(other) = earlier.iter().find(|other| other.name == program.name) {
                let place = self.sources.told(other.line, program.line);
                self.wrong(program.line, format!("{} has an entry already, in {place}", program.name));
            }
            let beside = |other: &&Program| first_choice(programs, other) != first_choice(programs, program);
            for name in &program.serves {
                let serves = |other: &&Program| other.serves.contains(name);
                if let Some(other) = earlier.iter().filter(beside).find(serves) {
                    let place = self.sources.told(other.line, program.line);
                    let reason = format!("the name {name:?} is served by {} already, in {place}", other.name);
                    self.wrong(program.line, reason);
                }
            }
            let is_owner = |other: &&Program| !other.serves.is_empty() && !program.serves.is_empty();
            let mut owners = earlier.iter().filter(beside).filter(is_owner);
            let shared = |other: &&Program| {
                other.devices.iter().any(|&one| program.devices.iter().any(|&device| one.overlaps(device)))
            };
            if let Some(owner) = owners.find(shared) {
                let place = self.sources.told(owner.line, program.line);
                let reason = format!("{} has a device of {}, in {place}", program.name, owner.name);
                self.wrong(program.line, reason);
            }
        }
        for (index, module) in modules.iter().enumerate() {
            if let Some(other) = modules[..index].iter().find(|other| other.name == module.name) {
                let place = self.sources.told(other.line, module.line);
                self.wrong(module.line, format!("module {} is there already, in {place}", module.name));
            }
        }
    }

    /// There is one bus server, if somebody has devices from it; and of each class one driver among those that run from boot on.
    fn drivers(&mut self, programs: &[Program]) {
        let bus = programs.iter().find(|program| program.is_bus);
        for (index, program) in programs.iter().enumerate() {
            let earlier = &programs[..index];
            if let Some(other) = earlier.iter().find(|other| other.is_bus && program.is_bus) {
                let place = self.sources.told(other.line, program.line);
                let reason =
                    format!("{}: {} is the bus server already, in {place}", program.name, other.name);
                self.wrong(program.line, reason);
            }
            if program.classes != 0 && bus.is_none() {
                let reason = format!("{} has devices, and no program has \"bus = true\"", program.name);
                self.wrong(program.line, reason);
            }
            for (name, class) in CLASSES.into_iter().filter(|(_, class)| program.classes >> class & 1 != 0) {
                let is_owner = |other: &&Program| {
                    !other.serves.is_empty()
                        && other.classes >> class & 1 != 0
                        && first_choice(programs, other) != first_choice(programs, program)
                };
                if let Some(owner) = earlier.iter().find(is_owner).filter(|_| !program.serves.is_empty()) {
                    let place = self.sources.told(owner.line, program.line);
                    let reason =
                        format!("{} has the {name} devices of {}, in {place}", program.name, owner.name);
                    self.wrong(program.line, reason);
                }
            }
        }
    }

    /// The memory manager has the boot archive from the pager above it, and `root` shows it to all others.
    fn readers(&mut self, programs: &[Program]) {
        for program in programs.iter().filter(|it| it.reads_archive && it.name == MEMORY_MANAGER) {
            let reason = format!("{} has the boot archive without \"archive = true\"", program.name);
            self.wrong(program.line, reason);
        }
    }

    /// Each program has a file, and no task is called like one.
    fn files(&mut self, programs: &[Program]) {
        for program in programs {
            if !self.files.contains(&program.file.as_str()) {
                let reason =
                    format!("{}: there is no program {} in the boot archive", program.name, program.file);
                self.wrong(program.line, reason);
            }
            if program.file == MODULES && self.files.contains(&program.name.as_str()) {
                self.wrong(program.line, format!("{} is the name of a file", program.name));
            }
        }
    }

    /// Programs that start at boot have no more kernel memory together than there is. Of alternatives one runs.
    fn fit(&mut self, programs: &[Program]) {
        let mut shares: BTreeMap<&str, u64> = BTreeMap::new();
        for program in programs.iter().filter(|it| !it.serves.is_empty() || it.name == MEMORY_MANAGER) {
            let share = shares.entry(first_choice(programs, program)).or_default();
            *share = program.kernel_share.max(*share);
            let sum: u64 = shares.values().sum();
            if sum > KERNEL_SHARES {
                let reason = format!(
                    "{}: programs that start at boot have a kernel-share of {sum} together, of {KERNEL_SHARES}",
                    program.name
                );
                self.wrong(program.line, reason);
                return;
            }
        }
    }

    /// No system is without these.
    fn needed(&mut self, line: u32, programs: &[Program]) {
        for name in [MEMORY_MANAGER, CONSOLE] {
            if !programs.iter().any(|program| program.name == name) {
                self.wrong(line, format!("there is no program {name:?}, without which nothing starts"));
            }
        }
    }

    /// Each name that a program asks for, or finds in the place of another, is served by somebody.
    fn found(&mut self, usual: &Program, programs: &[Program]) {
        let served: BTreeSet<&String> = programs.iter().flat_map(|program| &program.serves).collect();
        for program in [usual].into_iter().chain(programs) {
            let uses = program.uses.iter().flatten();
            let others = program.instead.iter().flat_map(|(asked, found)| [asked, found]);
            for name in uses.chain(others).filter(|name| !served.contains(name)) {
                self.wrong(program.line, format!("the name {name:?} is served by nobody"));
            }
        }
    }

    /// Clients are programs that have an entry and ask for something of the server; and who asks for a name is a client of its server.
    fn clients(&mut self, programs: &[Program]) {
        for server in programs.iter().filter(|program| program.clients.is_some()) {
            if server.serves.is_empty() {
                self.wrong(server.line, format!("{} has clients, and serves no name", server.name));
            }
            for client in server.clients.iter().flatten() {
                if !programs.iter().any(|program| program.name == *client) {
                    let reason = format!("{}: there is no entry for its client {client:?}", server.name);
                    self.wrong(server.line, reason);
                }
            }
            let asks = |program: &&Program| {
                let mut found = program.uses.iter().flatten().filter_map(|name| program.finds(name));
                found.any(|name| server.serves.iter().any(|served| served == name))
            };
            for program in programs.iter().filter(asks).filter(|program| !server.has_client(&program.name)) {
                let reason = format!("{} uses {}, and is not among its clients", program.name, server.name);
                self.wrong(program.line, reason);
            }
        }
    }

    /// Sandboxes of the same files have roots beside each other, and keys of a console are those of one.
    fn sandboxes(&mut self, programs: &[Program]) {
        let sandboxes = core::mem::take(&mut self.sandboxes);
        let of = |settings: &Settings| programs.iter().find(|program| program.name == settings.name);
        for (index, one) in sandboxes.iter().enumerate() {
            let Some(program) = of(one) else { continue };
            for (other, before) in sandboxes[..index].iter().filter_map(|other| Some((other, of(other)?))) {
                let place = self.sources.told(before.line, program.line);
                let finds_same = |name: &str| program.finds(name) == before.finds(name);
                if finds_same("files") && one.overlaps(other) {
                    let reason = format!(
                        "{}: sandbox: its root and that of {}, in {place}, share files",
                        one.name, other.name
                    );
                    self.wrong(program.line, reason);
                }
                if one.has_keys && other.has_keys && finds_same(CONSOLE) {
                    let reason =
                        format!("{}: sandbox: {}, in {place}, has the keys already", one.name, other.name);
                    self.wrong(program.line, reason);
                }
            }
        }
    }

    /// No programs that start at boot wait for each other in a ring.
    fn no_cycles(&mut self, programs: &[Program]) {
        let awaited = |index: usize| {
            let program: &Program = &programs[index];
            let names = program.uses.iter().flatten().filter_map(|name| program.finds(name));
            names.flat_map(|name| servers_of(programs, name)).filter(move |&other| other != index)
        };
        // Programs from which every way has come to an end.
        let mut ended = BTreeSet::new();
        while let Some(next) = (0..programs.len())
            .find(|at| !ended.contains(at) && awaited(*at).all(|other| ended.contains(&other)))
        {
            ended.insert(next);
        }
        let Some(first) = (0..programs.len()).find(|at| !ended.contains(at)) else { return };
        // From one that is left, each step leads to another that is.
        let mut way = vec![first];
        loop {
            let at = way[way.len() - 1];
            let Some(next) = awaited(at).find(|other| !ended.contains(other)) else { return };
            if let Some(begin) = way.iter().position(|&before| before == next) {
                let ring: Vec<&str> =
                    way[begin..].iter().chain([&next]).map(|&it| programs[it].name.as_str()).collect();
                let reason = format!("programs that use each other in a ring: {}", ring.join(", "));
                self.wrong(programs[next].line, reason);
                return;
            }
            way.push(next);
        }
    }
}

/// The program that is tried first where this one could run: itself, or the one in whose place it starts in the end.
fn first_choice<'a>(programs: &'a [Program], program: &'a Program) -> &'a str {
    let mut first = program;
    // Earlier and earlier ones, so this ends.
    for other in programs.iter().rev() {
        if other.otherwise.as_ref() == Some(&first.name) {
            first = other;
        }
    }
    &first.name
}

/// Places of those that serve a name.
pub fn servers_of<'a>(programs: &'a [Program], name: &'a str) -> impl Iterator<Item = usize> + use<'a> {
    let serves = move |program: &Program| program.serves.iter().any(|served| served == name);
    (0..programs.len()).filter(move |&at| serves(&programs[at]))
}

fn ranged(key: &str, value: i64, most: u64, why: &str) -> Result<u64, String> {
    let fine = u64::try_from(value).ok().filter(|value| (1..=most).contains(value));
    fine.ok_or_else(|| format!("{key} {value}: expected 1 to {most}, {why}"))
}

/// Colours of a program's pages.
fn colours(program: &str, count: i64) -> Result<u16, String> {
    let of_a_cache = u16::try_from(count)
        .ok()
        .filter(|count| (2..=COLOURS_MAX).contains(count) && count.is_power_of_two());
    match of_a_cache {
        Some(_) if program == MEMORY_MANAGER => {
            Err(format!("{program} gives pages their colours, and has none"))
        }
        Some(count) => Ok(count),
        None => Err(format!(
            "colours {count}: expected a power of two from 2 to {COLOURS_MAX}: pages in a way of the cache"
        )),
    }
}

/// Bytes, written as `64 MiB`.
pub fn bytes(key: &str, text: &str) -> Result<u64, String> {
    let expected = || format!("{key} {text:?}: expected a number and KiB, MiB or GiB, such as \"64 MiB\"");
    let (number, unit) = text.split_once(' ').ok_or_else(expected)?;
    let shift = match unit {
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return Err(expected()),
    };
    let number: u64 = number.parse().map_err(|_| expected())?;
    let bytes = number.checked_mul(1 << shift).filter(|bytes| bytes.is_multiple_of(PAGE) && *bytes >= PAGE);
    bytes
        .filter(|bytes| *bytes < 1 << 47)
        .ok_or_else(|| format!("{key} {text:?}: expected whole pages of 4 KiB, one at least"))
}

/// Ports, written as `0x3f8+8`: the first one, and their number.
fn ports(text: &str) -> Result<Device, String> {
    let expected = || format!("ports {text:?}: expected the first one and their number, such as \"0x3f8+8\"");
    let (first, count) = text.split_once('+').ok_or_else(expected)?;
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let (first, count) = (number(first).ok_or_else(expected)?, number(count).ok_or_else(expected)?);
    if !count.is_power_of_two()
        || !first.is_multiple_of(count)
        || u64::from(first) + u64::from(count) > 1 << 16
    {
        let reason =
            "their number is a power of two, of which the first one is a multiple, and there are 65,536";
        return Err(format!("ports {text:?}: {reason}"));
    }
    Ok(Device::Ports { first: first as u16, log2: count.ilog2() as u8 })
}

/// Number of a class of devices.
fn class(name: &str) -> Result<u8, String> {
    let known = CLASSES.iter().find(|(known, _)| *known == name);
    known.map(|(_, number)| *number).ok_or_else(|| {
        format!(
            "devices: there is no class {name:?}; there are: {}",
            CLASSES.map(|(known, _)| known).join(", ")
        )
    })
}

fn interrupt(line: i64) -> Result<Device, String> {
    let line = u8::try_from(line).ok().filter(|&line| line < 192);
    line.map(Device::Interrupt).ok_or_else(|| "interrupts: expected lines from 0 to 191".into())
}
