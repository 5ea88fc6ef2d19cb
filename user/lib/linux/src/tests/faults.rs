//! Faults that get no page: each reason has its signal, with the words that Linux writes to the frame of a handler, or ends the process.

use crate::errno::ENOSYS;
use crate::frames::PAGE;
use crate::machine::{Machine, Registers};
use crate::memory::{Fault, Rights};
use crate::system::Next;
use crate::world::{OWN, World};
use abi::state::register;
use linux_raw_sys::general::*;
use std::vec::Vec;

/// Words of a frame, from the stack pointer of its handler on: error code, vector and address of the fault.
const ERROR: u64 = 8 + 40 + 19 * 8;
const VECTOR: u64 = ERROR + 8;
const ADDRESS: u64 = ERROR + 3 * 8;

/// A page of memory that nobody has used, with these rights.
fn page(world: &mut World, rights: u32) -> u64 {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS;
    world.now(1, __NR_mmap, &[0, PAGE, rights.into(), flags.into(), u64::MAX, 0]).unwrap()
}

/// Lets a thread fault, for which no page is there, and gives the words of its handler's frame, with the signal and its code.
fn refused(world: &mut World, at: u64, wanted: Rights) -> [u64; 5] {
    world.system.thread(1).unwrap().mask = crate::signal::Set(0);
    let reason = world.system.fault(1, at, wanted).unwrap_err();
    world.system.refuse_fault(1, at, wanted, reason);
    let mut state = abi::ThreadState::ZERO;
    assert!(world.system.machine.state(1, &mut state));
    assert!(world.handles(1));
    let [sp, signal, info] = [register::RSP, register::RDI, register::RSI].map(|at| state.registers[at]);
    let mut words: Vec<u64> = Vec::from([signal]);
    words.push(world.number(1, info + 8).into());
    words.extend([ERROR, VECTOR, ADDRESS].map(|at| world.system.words::<1>(1, sp + at).unwrap()[0]));
    words.try_into().unwrap()
}

#[test]
fn handlers_hear_why() {
    let mut world = World::new();
    for signal in [SIGSEGV, SIGBUS] {
        world.action(1, signal, crate::world::HANDLER);
    }
    let (segv, maperr, accerr) = (u64::from(SIGSEGV), u64::from(SEGV_MAPERR), u64::from(SEGV_ACCERR));
    let nothing = page(&mut world, PROT_READ);
    world.now(1, __NR_munmap, &[nothing, PAGE]).unwrap();
    assert_eq!(refused(&mut world, nothing, Rights::READ), [segv, maperr, 4, 14, nothing]);
    assert_eq!(refused(&mut world, nothing, Rights::EXECUTE), [segv, maperr, 20, 14, nothing]);
    // A page that was never read has no frame.
    let unused = page(&mut world, PROT_READ);
    assert_eq!(refused(&mut world, unused, Rights::WRITE), [segv, accerr, 6, 14, unused]);
    assert!(world.system.fault(1, unused, Rights::READ).is_ok());
    assert_eq!(refused(&mut world, unused + 8, Rights::WRITE), [segv, accerr, 7, 14, unused + 8]);
    world.file(b"/f", b"short", 0o644);
    let fd = world.open(1, "/f", O_RDONLY).unwrap();
    let flags = MAP_PRIVATE;
    let at = world.now(1, __NR_mmap, &[0, 2 * PAGE, PROT_READ.into(), flags.into(), fd, 0]).unwrap() + PAGE;
    assert_eq!(refused(&mut world, at, Rights::READ), [SIGBUS.into(), BUS_ADRERR.into(), 4, 14, at]);
}

#[test]
fn processes_without_a_handler_end() {
    for (fault, signal) in [
        (Fault::Nothing, SIGSEGV),
        (Fault::Denied, SIGSEGV),
        (Fault::BehindEnd, SIGBUS),
        (Fault::NoMemory, SIGKILL),
    ] {
        let mut world = World::new();
        world.action(1, SIGSEGV, 0);
        let child = world.fork(1);
        world.system.refuse_fault(child, OWN, Rights::WRITE, fault);
        assert_eq!(world.status(1, child).map(|status| status & 0x7f), Some(signal));
    }
}

/// A handler that faults in turn, whose signal is blocked meanwhile, ends its process.
#[test]
fn a_fault_whose_signal_is_blocked_ends_the_process() {
    let mut world = World::new();
    let child = world.fork(1);
    world.action(child, SIGSEGV, crate::world::HANDLER);
    world.system.refuse_fault(child, 0, Rights::READ, Fault::Nothing);
    assert!(world.handles(child));
    world.system.refuse_fault(child, 0, Rights::READ, Fault::Nothing);
    assert_eq!(world.status(1, child).map(|status| status & 0x7f), Some(SIGSEGV));
}

/// Frames are used up, or the machine has no memory for as many: the process ends that has most, be it the one that wants a page or not, and the first one only if it is alone.
#[test]
fn the_largest_process_makes_room() {
    for most in [None, Some(850)] {
        let mut world = World::new();
        world.system.store.frames.bytes.1 = most;
        largest_makes_room(world);
    }
}

fn largest_makes_room(mut world: World) {
    let [small, large] = [(); 2].map(|()| world.fork(1));
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    let fill = |world: &mut World, tid| {
        let place = [0, 2000 * PAGE, PROT_WRITE.into(), flags.into(), u64::MAX, 0];
        let at = world.now(tid, __NR_mmap, &place).unwrap();
        (0..2000).find(|page| world.system.fault(tid, at + page * PAGE, Rights::WRITE).is_err()).unwrap()
    };
    assert!(fill(&mut world, large) > 700);
    assert!(!world.system.make_room(large), "it has most itself");
    assert_eq!(world.system.fault(small, OWN, Rights::WRITE), Err(Fault::NoMemory));
    assert!(world.system.make_room(small));
    assert_eq!(world.status(1, large), Some(SIGKILL));
    assert!(world.system.fault(small, OWN, Rights::WRITE).is_ok());
    assert!(!world.system.make_room(small), "there are frames");
    assert!(fill(&mut world, small) > 700);
    assert_eq!(world.system.fault(1, OWN + 8 * PAGE, Rights::WRITE), Err(Fault::NoMemory));
    assert!(world.system.make_room(1));
    assert_eq!(world.status(1, small), Some(SIGKILL));
    assert!(fill(&mut world, 1) > 700);
    assert!(!world.system.make_room(1), "it is alone");
}

/// Memory behind a descriptor is its process's as what that has mapped, and counts once if it is both. Of several who have it, each has a part.
#[test]
fn memory_behind_descriptors_is_of_its_process() {
    for (holds, has_mapped, children) in [(400, false, 0), (150, false, 0), (150, true, 0), (400, false, 3)] {
        let mut world = World::new();
        let [small, large, holder] = [(); 3].map(|()| world.fork(1));
        let fill = |world: &mut World, tid, pages: u64, fd: Option<u64>| {
            let flags = if fd.is_some() { MAP_SHARED } else { MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
            let rights = PROT_READ | PROT_WRITE;
            let place = [0, pages * PAGE, rights.into(), flags.into(), fd.unwrap_or(u64::MAX), 0];
            let at = world.now(tid, __NR_mmap, &place).unwrap();
            let all = (0..pages).all(|page| world.system.fault(tid, at + page * PAGE, Rights::WRITE).is_ok());
            assert_eq!(all, tid != 1);
        };
        let fd = world.by_path(holder, __NR_memfd_create, "memory", &[0]).unwrap();
        world.now(holder, __NR_ftruncate, &[fd, holds * PAGE]).unwrap();
        for page in 0..holds {
            assert_eq!(world.now(holder, __NR_pwrite64, &[fd, OWN, 1, page * PAGE]), Ok(1));
        }
        if has_mapped {
            fill(&mut world, holder, holds, Some(fd));
        }
        for _ in 0..children {
            world.fork(holder);
        }
        fill(&mut world, large, 200, None);
        fill(&mut world, 1, 2000, None);
        assert_eq!(world.system.fault(small, OWN, Rights::WRITE), Err(Fault::NoMemory));
        assert!(world.system.make_room(small));
        let (ends, stays) = if holds / (children + 1) > 200 { (holder, large) } else { (large, holder) };
        assert_eq!((world.status(1, ends), world.status(1, stays)), (Some(SIGKILL), None));
        assert!(world.system.store.frames.left() > 150);
    }
}

/// Of the number of a call the lower half counts, and a negative one is that of none: the machine takes it for an exception.
#[test]
fn numbers_of_calls_have_32_bits() {
    let mut world = World::new();
    world.now(1, __NR_umask, &[0]).unwrap();
    for high in [0, 1 << 32, u64::MAX << 32] {
        for (number, result) in [(__NR_getpid, 1), (__NR_umask, 0), (999, ENOSYS.result())] {
            let mut registers = Registers { rax: high | u64::from(number), ..Registers::default() };
            assert_eq!(world.system.call(1, &mut registers), Next::Answer);
            assert_eq!(registers.rax, result, "{high:#x} {number}");
        }
    }
    for number in [1 << 31 | __NR_umask, u32::MAX] {
        world.system.negative_call(1, number);
        let mut state = abi::ThreadState::ZERO;
        assert!(world.system.machine.state(1, &mut state));
        assert_eq!(state.registers[register::RAX], ENOSYS.result());
        assert!(world.system.unknown.contains(&number.into()));
    }
}
