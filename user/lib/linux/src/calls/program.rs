//! How a process begins a program.

use super::HERE;
use super::paths::{checked, plain};
use super::way::Way;
use crate::budget::Share;
use crate::capabilities::Capabilities;
use crate::errno::{E2BIG, EACCES, EISDIR, ELOOP, ENOENT, ENOEXEC, ENOMEM, ESRCH, Result};
use crate::executable::{self, ARGUMENTS_MAX, BASE, Executable, HEAD_BYTES, INTERPRETER_BASE, Told};
use crate::frames::{Bytes, PAGE};
use crate::machine::{Machine, Tid};
use crate::memory::{Kind, Memory, Rights, STACK_MAX, Source};
use crate::open::Object;
use crate::process::{ARGUMENTS_KEPT, NAME_BYTES, Owners, Room, Status};
use crate::signal::Stack;
use crate::special::Special;
use crate::system::{Answer, Outcome, System};
use abi::ThreadState;
use abi::state::register;
use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;
use linux_raw_sys::general::{
    AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, S_ISGID, S_ISUID, S_IXGRP, SIGCHLD, SIGKILL, X_OK,
};
use vfs::path::Last;
use vfs::{Attributes, FileSystem, How, Inode};

/// End of the first stack.
const STACK_TOP: u64 = 0x7fff_ffff_e000;

/// Bytes of the stack that are mapped when a program begins, at least: it grows from there.
const STACK_BYTES: u64 = 128 << 10;

/// Scripts whose interpreter is a script, one in the other, at most.
const SCRIPTS_MAX: usize = 4;

/// Most arguments, or variables of the environment.
const TEXTS_MAX: usize = 65536;

/// Bytes that a text takes while a program begins, beside twice its own: its place in a list, which grows by doubling, its own memory, and words of the stack.
const TEXT_BYTES: usize = 96;

/// Bytes of texts for which there is always room; more have a share of the budget while the call is made.
const TEXTS_FREE: usize = 256 << 10;

/// Bytes by which that share grows.
const TEXTS_STEP: usize = 64 << 10;

/// Room for arguments and environment.
#[derive(Debug)]
struct TextRoom {
    /// Bytes of a stack that are left.
    left: usize,
    /// Bytes of this program that are taken.
    taken: usize,
    share: Share,
}

impl TextRoom {
    /// One more text has so many bytes. `E2BIG`: no stack has room for it. `ENOMEM`: the budget has none.
    fn take(&mut self, len: usize) -> Result<()> {
        self.left = self.left.checked_sub(len + 9).ok_or(E2BIG)?;
        self.taken += 2 * len + TEXT_BYTES;
        let wanted = self.taken.saturating_sub(TEXTS_FREE).next_multiple_of(TEXTS_STEP);
        if wanted <= self.share.bytes() || self.share.resize(wanted) { Ok(()) } else { Err(ENOMEM) }
    }
}

/// Registers x87 control and MXCSR of a program that begins, in the image.
const CONTROL: u64 = 0x37f;
/// See [`CONTROL`].
const MXCSR: u64 = 0x1f80;

/// Flags of a program that begins.
const FLAGS: u64 = 0x202;

/// An executable that is open.
#[derive(Debug)]
struct Image {
    inode: Inode,
    /// Its path, without symbolic links.
    path: Vec<u8>,
    executable: Executable,
}

/// A program, read so far that nothing but memory can be missing.
#[derive(Debug)]
pub struct Program {
    /// Its path, or that of its script, as it is told: that of a descriptor if it was named by one.
    path: Vec<u8>,
    /// Last name of the path by which its file or its script was named, as far as a process keeps it.
    name: Vec<u8>,
    image: Image,
    interpreter: Option<Image>,
    /// Arguments, those of scripts included.
    arguments: Vec<Vec<u8>>,
    /// Owner and group that it sets, if it does.
    sets: Sets,
}

/// Owner and group that a program sets, if it does.
type Sets = (Option<u32>, Option<u32>);

/// A file that is open as a program.
struct Opened {
    inode: Inode,
    sets: Sets,
    /// Its path, without symbolic links.
    path: Vec<u8>,
}

/// Where a program begins.
struct Laid {
    /// Its first instruction, or that of its interpreter.
    entry: u64,
    /// Its stack pointer.
    stack: u64,
    /// Facts on its stack, as `/proc` shows them.
    auxiliary: Rc<[u8]>,
}

/// A program as a call names it.
struct Named {
    /// Its path, as it is told.
    told: Vec<u8>,
    /// Its path from the sandbox's root on.
    path: Way,
    /// The descriptor with which the path begins that is told.
    by: Option<u64>,
    /// Whether that is the descriptor of its file, and there is no other path.
    is_open: bool,
}

impl<M: Machine, B: Bytes, F: FileSystem> System<M, B, F> {
    pub(crate) fn sys_execve(&mut self, tid: Tid, [path, arguments, environment, ..]: [u64; 6]) -> Answer {
        let told = self.path_or_empty(tid, path)?;
        if told.is_empty() {
            return Err(ENOENT);
        }
        let path = self.whole_path(tid, HERE, told.clone())?;
        self.execute(tid, Named { told, path, by: None, is_open: false }, arguments, environment)
    }

    pub(crate) fn sys_execveat(
        &mut self,
        tid: Tid,
        [directory, path, arguments, environment, flags, _]: [u64; 6],
    ) -> Answer {
        let flags = checked(flags, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)?;
        let path = self.path_or_empty(tid, path)?;
        let (is_open, is_here) = (path.is_empty(), directory as u32 == HERE as u32);
        if is_open && flags & AT_EMPTY_PATH == 0 {
            return Err(ENOENT);
        }
        if is_open && is_here {
            return Err(EACCES);
        }
        let by = (!is_here && path.first() != Some(&b'/')).then_some(directory);
        let told = match by.map(|fd| format!("/dev/fd/{}", fd as u32).into_bytes()) {
            Some(descriptor) if is_open => descriptor,
            Some(descriptor) => [&descriptor, &b"/"[..], &path].concat(),
            None => path.clone(),
        };
        let path = if is_open { Way::new(path) } else { self.whole_path(tid, directory, path)? };
        let named = Named { told, path, by, is_open };
        if !is_open && flags & AT_SYMLINK_NOFOLLOW != 0 {
            let reached = self.reach(tid, &named.path, Last::Stay)?;
            if self.look(&reached, Last::Stay)?.kind == vfs::Kind::Symlink {
                return Err(ELOOP);
            }
        }
        self.execute(tid, named, arguments, environment)
    }

    /// Begins a program with lists of arguments and variables.
    fn execute(&mut self, tid: Tid, named: Named, arguments: u64, environment: u64) -> Answer {
        let mut room = TextRoom { left: ARGUMENTS_MAX, taken: 0, share: self.budget.empty() };
        let mut arguments = self.texts(tid, arguments, &mut room)?;
        // A program takes the first for its own name. Without one it would go on behind the end of the list, in its environment.
        if arguments.is_empty() {
            arguments.push(Vec::new());
        }
        let environment = self.texts(tid, environment, &mut room)?;
        self.let_mapped_files_go();
        let program = self.find_named(tid, named, arguments)?;
        let begun = self.begin_program(tid, &program, &environment);
        self.let_files_go(&program);
        begun?;
        Ok(Outcome::Gone)
    }

    /// Texts to which a list of pointers leads.
    fn texts(&mut self, tid: Tid, list: u64, room: &mut TextRoom) -> Result<Vec<Vec<u8>>> {
        let mut texts = Vec::new();
        if list == 0 {
            return Ok(texts);
        }
        let memory = self.room(tid)?;
        let memory = &mut memory.borrow_mut().memory;
        loop {
            let [at] = self.store.words(memory, list.wrapping_add(8 * texts.len() as u64))?;
            if at == 0 {
                return Ok(texts);
            }
            let text = self.store.text(memory, at, room.left + 1).map_err(|error| match error {
                crate::errno::ENAMETOOLONG => E2BIG,
                error => error,
            })?;
            if texts.len() >= TEXTS_MAX {
                return Err(E2BIG);
            }
            room.take(text.len())?;
            texts.push(text);
        }
    }

    /// Reads the head of a program, follows scripts to their interpreter, and reads that of the interpreter.
    pub fn find_program(&mut self, tid: Tid, path: Vec<u8>, arguments: Vec<Vec<u8>>) -> Result<Program> {
        let told = path.clone();
        self.find_named(tid, Named { told, path: Way::new(path), by: None, is_open: false }, arguments)
    }

    fn find_named(&mut self, tid: Tid, named: Named, arguments: Vec<Vec<u8>>) -> Result<Program> {
        let Named { mut told, mut path, mut by, mut is_open } = named;
        let (mut arguments, first) = (arguments, told.clone());
        let mut name = None;
        for _ in 0..SCRIPTS_MAX {
            let opened = match by {
                Some(fd) if is_open => self.open_program_of(tid, fd)?,
                _ => self.open_program(tid, &path)?,
            };
            let (inode, sets) = (opened.inode, opened.sets);
            // That of a script is the script's.
            let name = name.get_or_insert_with(|| short_name(if is_open { &opened.path } else { &first }));
            let head = self.head(inode);
            let script = match &head {
                Ok(head) => executable::script(head),
                Err(_) => None,
            };
            match script {
                None => {
                    let found = head.and_then(|head| self.read_program(tid, inode, &head));
                    return match found {
                        Ok((executable, interpreter)) => {
                            let image = Image { inode, path: opened.path, executable };
                            let name = core::mem::take(name);
                            Ok(Program { path: first, name, image, interpreter, arguments, sets })
                        }
                        Err(error) => {
                            let _ = self.store.volume.close(inode);
                            Err(error)
                        }
                    };
                }
                Some(line) => {
                    let _ = self.store.volume.close(inode);
                    let (interpreter, argument) = line?;
                    // Its interpreter could not open it.
                    if let Some(fd) = by.take()
                        && self.process(tid)?.descriptors.get(fd as u32)?.closes
                    {
                        return Err(ENOENT);
                    }
                    let rest = arguments.split_off(arguments.len().min(1));
                    arguments = Vec::from([interpreter.clone()]);
                    arguments.extend(argument);
                    arguments.push(told);
                    arguments.extend(rest);
                    path = self.whole_path(tid, HERE, interpreter.clone())?;
                    (told, is_open) = (interpreter, false);
                }
            }
        }
        Err(ELOOP)
    }

    /// Opens a program.
    fn open_program(&mut self, tid: Tid, path: &Way) -> Result<Opened> {
        let path = &self.reach(tid, path, Last::Follow)?;
        let found = self.look(path, Last::Follow)?;
        match found.kind {
            vfs::Kind::Directory => return Err(EACCES),
            vfs::Kind::File if found.permissions & 0o111 != 0 && self.store.node(&found).is_none() => {}
            _ => return Err(EACCES),
        }
        self.may(tid, &found, X_OK)?;
        self.check_not_written(found.inode)?;
        let root = self.store.root;
        let inode = match self.store.volume.open(root, path, How::default(), 0) {
            Err(vfs::Error::IsDirectory) => return Err(EISDIR),
            opened => opened?,
        };
        // It is only shown, and may be too long without symbolic links.
        let path = self.canonical(path).unwrap_or_else(|_| plain(path));
        Ok(Opened { inode, sets: sets(&found), path })
    }

    /// Opens the file behind a descriptor once more, as a program.
    fn open_program_of(&mut self, tid: Tid, fd: u64) -> Result<Opened> {
        let open = self.open_or_place(tid, fd)?;
        let Object::File { inode, path } = &open.object else {
            return Err(if matches!(open.object, Object::Link(_)) { ELOOP } else { EACCES });
        };
        let found = self.store.attributes(*inode)?;
        if found.permissions & 0o111 == 0 || self.store.node(&found).is_some() {
            return Err(EACCES);
        }
        self.may(tid, &found, X_OK)?;
        self.check_not_written(*inode)?;
        self.store.volume.opened(*inode)?;
        Ok(Opened { inode: *inode, sets: sets(&found), path: path.clone() })
    }

    fn head(&mut self, inode: Inode) -> Result<Vec<u8>> {
        let mut head = vec![0; HEAD_BYTES];
        let count = self.store.read_at(inode, 0, &mut head)?;
        head.truncate(count);
        Ok(head)
    }

    fn read_program(&mut self, tid: Tid, inode: Inode, head: &[u8]) -> Result<(Executable, Option<Image>)> {
        let len = self.store.volume.len(inode)?;
        let executable = Executable::read(head, len)?;
        let Some((at, len)) = executable.interpreter else { return Ok((executable, None)) };
        let mut path = vec![0; len as usize];
        self.store.read_at(inode, at, &mut path)?;
        let end = path.iter().position(|byte| *byte == 0).ok_or(ENOEXEC)?;
        path.truncate(end);
        let path = self.whole_path(tid, HERE, path)?;
        let Opened { inode, path, .. } = self.open_program(tid, &path)?;
        let read = self.head(inode).and_then(|head| {
            let len = self.store.volume.len(inode)?;
            Executable::read(&head, len)
        });
        match read {
            Ok(found) => Ok((executable, Some(Image { inode, path, executable: found }))),
            Err(error) => {
                let _ = self.store.volume.close(inode);
                Err(if error == ENOEXEC { crate::errno::ELIBBAD } else { error })
            }
        }
    }

    /// Files of a program that were open to read it: what is mapped stays.
    pub fn let_files_go(&mut self, program: &Program) {
        for image in [&program.image].into_iter().chain(&program.interpreter) {
            let _ = self.store.volume.close(image.inode);
        }
    }

    /// Maps the pieces of an executable. Gives back by how much its addresses are higher.
    fn map_image(&mut self, memory: &mut Memory, image: &Image, base: u64) -> Result<u64> {
        let executable = &image.executable;
        let file = self.store.map_file(image.inode)?;
        let (first, _) = executable.range();
        let by = if executable.is_movable { base.checked_sub(first).ok_or(ENOEXEC)? } else { 0 };
        for segment in &executable.segments {
            let (start, file_end, end) = segment.pages();
            let (start, file_end, end) = (start + by, file_end + by, end + by);
            if file_end > start {
                let offset = segment.offset / PAGE * PAGE;
                let kind = Kind { source: Some(Source { file, offset }), ..Kind::private(segment.rights) };
                memory.map(&mut self.store.frames, Some(start), file_end - start, kind, true)?;
            }
            if end > file_end {
                let kind = Kind::private(segment.rights);
                memory.map(&mut self.store.frames, Some(file_end), end - file_end, kind, true)?;
            }
            let zeros = segment.address + by + segment.file_bytes;
            if segment.memory_bytes > segment.file_bytes
                && zeros < file_end
                && segment.rights.has(Rights::WRITE)
            {
                self.store.write(memory, zeros, &vec![0; (file_end - zeros) as usize])?;
            }
        }
        memory.note_path(&mut self.store.frames, file, (&image.path, &image.path));
        Ok(by)
    }

    /// Gives a thread's process a program in the place of what it has. Other threads of it end.
    pub fn begin_program(&mut self, tid: Tid, program: &Program, environment: &[Vec<u8>]) -> Result<()> {
        let mut memory = Memory::default();
        let laid = self.lay_out(tid, &mut memory, program, environment);
        let laid = match laid {
            Ok(laid) => laid,
            Err(error) => {
                memory.clear(&mut self.store.frames);
                return Err(error);
            }
        };
        let owners = self.owners_of_program(tid, program);
        let space = match self.machine.make_space() {
            Ok(space) => space,
            Err(error) => {
                memory.clear(&mut self.store.frames);
                return Err(error);
            }
        };
        // From here on there is no way back.
        let pid = self.pid(tid)?;
        self.end_other_threads(tid, pid);
        self.replace_thread(tid, pid);
        self.give_memory_back(pid);
        let process = self.processes.get_mut(&pid).ok_or(ESRCH)?;
        process.room = Rc::new(RefCell::new(Room { space, memory }));
        if let (Some(process), Ok((owners, capabilities))) = (self.processes.get_mut(&pid), owners) {
            process.owners = owners;
            if let Some(thread) = self.threads.get_mut(&pid) {
                thread.capabilities = capabilities;
            }
            if program.sets != (None, None) {
                process.death_signal = 0;
            }
        }
        self.note_program(pid, program, environment, laid.auxiliary);
        let mut state = Box::new(ThreadState::ZERO);
        state.len_bytes = ThreadState::LEN_BYTES;
        state.registers[register::RIP] = laid.entry;
        state.registers[register::RSP] = laid.stack;
        state.registers[register::RFLAGS] = FLAGS;
        state.image[0] = CONTROL;
        state.image[abi::state::IMAGE_MXCSR] = MXCSR;
        let begun = self.machine.make_thread(space, pid).and_then(|()| {
            self.share_out(pid);
            self.machine.go_on(pid, &state)
        });
        if begun.is_err() {
            self.end_process(pid, crate::process::Status::killed(SIGKILL));
        }
        // Signals may have come for a thread that is not there any more.
        self.hand_on(pid);
        Ok(())
    }

    /// Owners of a process when it begins a program, and capabilities. Saved owners are then those in effect. A process that shares its directories with others gets no rights by it:
    /// the others could give the program another root, or another umask, while it has them.
    fn owners_of_program(&mut self, tid: Tid, program: &Program) -> Result<(Owners, Capabilities)> {
        let own = self.thread(tid)?.capabilities;
        let process = self.process(tid)?;
        let mut owners = process.owners.clone();
        let is_bound = process.has_no_new_rights || Rc::strong_count(&process.filesystem) > 1;
        if !is_bound {
            owners.owner[1] = program.sets.0.unwrap_or(owners.owner[1]);
            owners.group[1] = program.sets.1.unwrap_or(owners.group[1]);
        }
        let capabilities = own.of_program(&mut owners, &process.owners, is_bound);
        (owners.owner[2], owners.group[2]) = (owners.owner[1], owners.group[1]);
        Ok((owners, capabilities))
    }

    fn end_other_threads(&mut self, tid: Tid, pid: Tid) {
        let threads = self.processes.get(&pid).map(|process| process.threads.clone()).unwrap_or_default();
        for other in threads.into_iter().filter(|other| *other != tid) {
            self.trace_end(&[other], Status::exited(0));
            self.leave(other);
            self.machine.end_thread(other);
            self.threads.remove(&other);
        }
    }

    /// The thread that begins a program is the first of its process from then on.
    fn replace_thread(&mut self, tid: Tid, pid: Tid) {
        self.leave(tid);
        self.machine.end_thread(tid);
        if let Some(mut thread) = self.threads.remove(&tid) {
            (thread.clear, thread.robust, thread.stack) = (0, (0, 0), Stack::NONE);
            (thread.share, thread.name) = (None, None);
            self.threads.insert(pid, thread);
        }
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads = Vec::from([pid]);
        }
    }

    fn note_program(&mut self, pid: Tid, program: &Program, environment: &[Vec<u8>], auxiliary: Rc<[u8]>) {
        self.forget_made_alarms(pid);
        self.forget_contexts(pid);
        let closing = match self.processes.get_mut(&pid) {
            Some(process) => {
                process.name.clone_from(&program.name);
                process.program.clone_from(&program.image.path);
                process.image = Some(program.image.inode);
                let arguments = [kept(&program.arguments), kept(environment)];
                let len: usize = arguments.iter().map(|texts| texts.len()).sum();
                let share = self.budget.take(len + auxiliary.len());
                // They are only shown, so they may be missing.
                (process.arguments, process.auxiliary) =
                    if share.is_some() { (arguments, auxiliary) } else { Default::default() };
                process.arguments_share = share.map(Rc::new);
                (process.has_begun, process.exit_signal) = (true, SIGCHLD);
                process.programs += 1;
                let Owners { owner, group, .. } = &process.owners;
                // A process that has got another owner by the program may not be looked at.
                let is_own = owner[0] == owner[1] && group[0] == group[1];
                process.choices.dumpable_by = is_own.then_some((owner[1], group[1]));
                process.choices.barriers = 0;
                for action in &mut process.actions {
                    if action.handler > 1 {
                        *action = Default::default();
                    }
                }
                process.descriptors.take_closing()
            }
            None => Vec::new(),
        };
        for descriptor in closing {
            self.close_descriptor(pid, descriptor.open);
        }
        // Another program does not have to bear what this one has chosen for the end of a child.
        for child in self.processes.values_mut().filter(|process| process.parent == pid) {
            child.exit_signal = SIGCHLD;
        }
    }

    /// Maps a program with its interpreter and stack.
    fn lay_out(
        &mut self,
        tid: Tid,
        memory: &mut Memory,
        program: &Program,
        environment: &[Vec<u8>],
    ) -> Result<Laid> {
        let executable = &program.image.executable;
        let by = self.map_image(memory, &program.image, BASE)?;
        let (_, end) = executable.range();
        memory.begin_heap(end + by);
        let higher = |address: u64, by: u64| address.checked_add(by).ok_or(ENOEXEC);
        let entry = higher(executable.entry, by)?;
        let (start, base) = match &program.interpreter {
            Some(image) => {
                let by = self.map_image(memory, image, INTERPRETER_BASE)?;
                (higher(image.executable.entry, by)?, image.executable.range().0 + by)
            }
            None => (entry, 0),
        };
        let mut random = [0; 16];
        self.machine.random(&mut random);
        let (owners, _) = self.owners_of_program(tid, program)?;
        let headers = (higher(executable.headers.0, by)?, executable.headers.1);
        let told = Told {
            headers,
            interpreter: base,
            entry,
            owner: (owners.owner[0], owners.group[0]),
            effective: (owners.owner[1], owners.group[1]),
            random,
            features: self.machine.features(),
            vdso: self.map_vdso(memory)?,
        };
        let (sp, bytes) =
            executable::stack(STACK_TOP, &program.arguments, environment, &program.path, &told)?;
        let len = (STACK_TOP - sp + STACK_BYTES).div_ceil(PAGE) * PAGE;
        if len > STACK_MAX {
            return Err(E2BIG);
        }
        let kind = Kind { grows_down: true, ..Kind::private(Rights::READ_WRITE) };
        memory.map(&mut self.store.frames, Some(STACK_TOP - len), len, kind, false)?;
        memory.begin_stack(sp);
        self.store.write(memory, sp, &bytes)?;
        let auxiliary = executable::vector(&bytes, program.arguments.len() + environment.len()).into();
        Ok(Laid { entry: start, stack: sp, auxiliary })
    }

    /// Maps the code that is called in place of system calls, right above the stack. Where it is; 0 if there is none.
    fn map_vdso(&mut self, memory: &mut Memory) -> Result<u64> {
        let len = self.store.view.borrow().vdso.len() as u64;
        if len == 0 || len > PAGE {
            return Ok(0);
        }
        let file = self.store.map_file(Special::Vdso.inode())?;
        let rights = Rights(Rights::READ.0 | Rights::EXECUTE.0);
        let kind = Kind { source: Some(Source { file, offset: 0 }), ..Kind::private(rights) };
        memory.map(&mut self.store.frames, Some(STACK_TOP), PAGE, kind, true)?;
        Ok(STACK_TOP)
    }
}

/// Texts one after the other, a zero behind each, as far as `/proc` shows them.
fn kept(texts: &[Vec<u8>]) -> Rc<[u8]> {
    let bytes = texts.iter().flat_map(|text| text.iter().chain(&[0]));
    bytes.take(ARGUMENTS_KEPT).copied().collect::<Vec<u8>>().into()
}

/// Last name of a path, as far as a process keeps it.
fn short_name(path: &[u8]) -> Vec<u8> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name.get(..NAME_BYTES).unwrap_or(name).to_vec()
}

/// Owner and group that a program sets. One of a group is one only if the group may begin it.
fn sets(found: &Attributes) -> Sets {
    let has = |bits: u32| u32::from(found.permissions) & bits == bits;
    (has(S_ISUID).then_some(found.owner), has(S_ISGID | S_IXGRP).then_some(found.group))
}

#[cfg(test)]
mod tests;
