//! Queues of messages of System V. Errors and numbers that are expected are Linux's own.

use crate::calls::rig::{DATA, FIRST, Rig};
use crate::errno::{E2BIG, EACCES, EAGAIN, EFAULT, EIDRM, EINVAL, ENOMEM, ENOMSG, ENOSPC, EPERM, Errno};
use crate::ipc::numbers::*;
use crate::machine::Tid;
use linux_raw_sys::general as nr;
use std::vec;
use std::vec::Vec;

const NOWAIT: u32 = IPC_NOWAIT;

fn error(error: Errno) -> i64 {
    -i64::from(error.0)
}

fn queue(rig: &mut Rig) -> u64 {
    let id = rig.call(nr::__NR_msgget, &[0, 0o600]);
    assert!(id >= 0, "{id}");
    id as u64
}

fn send(rig: &mut Rig, tid: Tid, id: u64, (kind, text): (i64, &[u8]), flags: u32) -> Option<i64> {
    let at = rig.room(8 + text.len());
    rig.system.write(tid, at, &[&kind.to_le_bytes(), text].concat()).unwrap();
    rig.try_by(tid, nr::__NR_msgsnd, &[id, at, text.len() as u64, flags.into()])
}

/// Receives a message of at most 16 bytes: its kind and text.
fn receive(rig: &mut Rig, id: u64, wish: i64, flags: u32) -> Result<(u64, Vec<u8>), i64> {
    let at = rig.room(24);
    let count = rig.call(nr::__NR_msgrcv, &[id, at, 16, wish as u64, (flags | NOWAIT).into()]);
    if count < 0 {
        return Err(count);
    }
    let [kind] = rig.system.words(FIRST, at).unwrap();
    Ok((kind, rig.get(FIRST, at + 8, count as usize)))
}

fn control(rig: &mut Rig, tid: Tid, id: u64, command: u32, at: u64) -> i64 {
    rig.call_by(tid, nr::__NR_msgctl, &[id, command.into(), at])
}

/// Bytes, messages and most bytes of a queue.
fn told(rig: &mut Rig, id: u64) -> [u64; 3] {
    let at = rig.room(120);
    assert_eq!(control(rig, FIRST, id, IPC_STAT, at), 0);
    rig.system.words(FIRST, at + 72).unwrap()
}

#[test]
fn messages_are_chosen_by_their_kinds() {
    let mut rig = Rig::begun();
    let id = queue(&mut rig);
    for (kind, text) in [(5, "five"), (3, "three"), (9, ""), (3, "again"), (1 << 40, "large")] {
        assert_eq!(send(&mut rig, FIRST, id, (kind, text.as_bytes()), 0), Some(0));
    }
    assert_eq!(told(&mut rig, id), [19, 5, 16384]);
    let mut take = |wish, flags| {
        receive(&mut rig, id, wish, flags)
            .map(|(kind, text)| (kind, std::string::String::from_utf8(text).unwrap()))
    };
    let message = |kind: u64, text: &str| Ok((kind, std::string::String::from(text)));
    assert_eq!(take(1, MSG_COPY), message(3, "three"), "it stays");
    assert_eq!(take(5, MSG_COPY), Err(error(ENOMSG)));
    assert_eq!(take(-4, 0), message(3, "three"), "the lowest kind up to that");
    assert_eq!(take(-2, 0), Err(error(ENOMSG)));
    assert_eq!(take(5, MSG_EXCEPT), message(9, ""));
    assert_eq!(take(4, 0), Err(error(ENOMSG)));
    assert_eq!(take(1 << 40, 0), message(1 << 40, "large"));
    assert_eq!(take(0, 0), message(5, "five"));
    assert_eq!(take(i64::MIN, 0), message(3, "again"));
    assert_eq!(take(0, MSG_EXCEPT), Err(error(ENOMSG)));
    assert_eq!(told(&mut rig, id), [0, 0, 16384]);
}

#[test]
fn a_message_is_lost_by_no_error() {
    let mut rig = Rig::begun();
    let id = queue(&mut rig);
    let text = b"0123456789abcdefghij";
    assert_eq!(send(&mut rig, FIRST, id, (0, text), 0), Some(error(EINVAL)));
    assert_eq!(send(&mut rig, FIRST, id, (-1, text), 0), Some(error(EINVAL)));
    assert_eq!(send(&mut rig, FIRST, id, (1, &[0; 8193]), 0), Some(error(EINVAL)));
    assert_eq!(rig.call(nr::__NR_msgsnd, &[id, DATA, u64::MAX, 0]), error(EINVAL));
    assert_eq!(rig.call(nr::__NR_msgsnd, &[id, 8, 1, 0]), error(EFAULT));
    assert_eq!(send(&mut rig, FIRST, 77, (1, text), 0), Some(error(EINVAL)));
    assert_eq!(send(&mut rig, FIRST, id, (1, text), 0), Some(0));
    assert_eq!(receive(&mut rig, id, 0, 0), Err(error(E2BIG)));
    assert_eq!(rig.call(nr::__NR_msgrcv, &[id, 8, 100, 0, 0]), error(EFAULT));
    assert_eq!(rig.call(nr::__NR_msgrcv, &[id, DATA, u64::MAX, 0, 0]), error(EINVAL));
    assert_eq!(rig.call(nr::__NR_msgrcv, &[id, DATA, 100, 0, MSG_COPY.into()]), error(EINVAL));
    assert_eq!(told(&mut rig, id)[1], 1);
    assert_eq!(receive(&mut rig, id, 0, MSG_NOERROR), Ok((1, text[..16].to_vec())));
    assert_eq!(receive(&mut rig, id, 0, 0), Err(error(ENOMSG)));
}

#[test]
fn a_full_queue_lets_senders_wait() {
    let mut rig = Rig::begun();
    let id = queue(&mut rig);
    let [one, two] = [rig.fork(), rig.fork()];
    let large = vec![7; 8192];
    for _ in 0..2 {
        assert_eq!(send(&mut rig, FIRST, id, (1, &large), 0), Some(0));
    }
    assert_eq!(send(&mut rig, FIRST, id, (1, b"x"), NOWAIT), Some(error(EAGAIN)));
    assert_eq!(send(&mut rig, one, id, (2, &large), 0), None);
    assert_eq!(send(&mut rig, two, id, (3, b"x"), 0), None);
    assert_eq!(receive(&mut rig, id, 1, MSG_NOERROR).map(|(kind, _)| kind), Ok(1));
    assert_eq!((rig.answer(one), rig.answer(two)), (Some(0), None));
    assert_eq!(receive(&mut rig, id, 1, MSG_NOERROR).map(|(kind, _)| kind), Ok(1));
    assert_eq!(rig.answer(two), Some(0));
    assert_eq!(told(&mut rig, id), [8193, 2, 16384]);
    // Messages of no bytes are counted, too.
    let set = rig.room(120);
    assert_eq!(control(&mut rig, FIRST, id, IPC_STAT, set), 0);
    rig.system.write_words(FIRST, set + 88, &[3]).unwrap();
    assert_eq!(control(&mut rig, FIRST, id, IPC_SET, set), 0);
    let id = queue(&mut rig);
    assert_eq!(control(&mut rig, FIRST, id, IPC_SET, set), 0);
    for _ in 0..3 {
        assert_eq!(send(&mut rig, FIRST, id, (1, b""), NOWAIT), Some(0));
    }
    assert_eq!(send(&mut rig, one, id, (1, b""), 0), None);
    rig.system.write_words(FIRST, set + 88, &[1 << 20]).unwrap();
    assert_eq!(control(&mut rig, FIRST, id, IPC_SET, set), 0);
    assert_eq!(rig.answer(one), Some(0), "there is more room now");
}

#[test]
fn receivers_wait_in_turn() {
    let mut rig = Rig::begun();
    let id = queue(&mut rig);
    let [one, two, three] = [rig.fork(), rig.fork(), rig.fork()];
    let to = rig.room(64);
    let wait = |rig: &mut Rig, tid, len: u64, wish: i64| {
        assert_eq!(rig.try_by(tid, nr::__NR_msgrcv, &[id, to, len, wish as u64, 0]), None);
    };
    wait(&mut rig, one, 32, 4);
    wait(&mut rig, two, 2, 0);
    wait(&mut rig, three, 32, 0);
    assert_eq!(send(&mut rig, FIRST, id, (3, b"long"), 0), Some(0));
    assert_eq!((rig.answer(one), rig.answer(two), rig.answer(three)), (None, Some(error(E2BIG)), Some(4)));
    assert_eq!(rig.get(three, to, 12), [3, 0, 0, 0, 0, 0, 0, 0, b'l', b'o', b'n', b'g']);
    assert_eq!(send(&mut rig, FIRST, id, (4, b""), 0), Some(0));
    assert_eq!(rig.answer(one), Some(0));
    wait(&mut rig, one, 32, 0);
    assert_eq!(control(&mut rig, FIRST, id, IPC_RMID, 0), 0);
    assert_eq!(rig.answer(one), Some(error(EIDRM)));
    assert_eq!(send(&mut rig, FIRST, id, (4, b""), 0), Some(error(EINVAL)));
}

/// One message that is taken lets a row of senders and receivers go on, and nobody else is woken: each sender's message is what one receiver waits for.
#[test]
fn one_message_lets_a_row_of_others_go_on() {
    let mut rig = Rig::begun();
    let id = queue(&mut rig);
    let large = vec![7; 8192];
    for kind in [1, 2] {
        assert_eq!(send(&mut rig, FIRST, id, (kind, &large), 0), Some(0));
    }
    let row: Vec<(Tid, Tid)> = (0..20).map(|_| (rig.fork(), rig.fork())).collect();
    let to = rig.room(16);
    for (kind, (sender, receiver)) in (100..).zip(&row) {
        let wish = kind as u64;
        assert_eq!(rig.try_by(*receiver, nr::__NR_msgrcv, &[id, to, 8, wish, MSG_NOERROR.into()]), None);
        let before = rig.free;
        assert_eq!(send(&mut rig, *sender, id, (kind, &large), 0), None);
        rig.free = before;
    }
    assert_eq!(receive(&mut rig, id, 2, MSG_NOERROR).map(|(kind, _)| kind), Ok(2));
    for (kind, (sender, receiver)) in (100u64..).zip(&row) {
        assert_eq!((rig.answer(*sender), rig.answer(*receiver)), (Some(0), Some(8)));
        assert_eq!(rig.get(*receiver, to, 9), [&kind.to_le_bytes()[..], &[7]].concat());
    }
    assert_eq!(told(&mut rig, id), [8192, 1, 16384]);
}

/// A message that somebody waits for is not lost by an address that is wrong, and goes to the next one.
#[test]
fn a_message_is_lost_by_nobody_who_waits() {
    let mut rig = Rig::begun();
    let id = queue(&mut rig);
    let [wrong, still, last] = [rig.fork(), rig.fork(), rig.fork()];
    let to = rig.room(32);
    for (tid, at) in [(wrong, 8), (still, to), (last, to)] {
        assert_eq!(rig.try_by(tid, nr::__NR_msgrcv, &[id, at, 16, 0, 0]), None);
    }
    // One that stands still has it, as in Linux, and hears of it when it goes on.
    assert_eq!(rig.call(nr::__NR_kill, &[still.into(), nr::SIGSTOP.into()]), 0);
    assert_eq!(send(&mut rig, FIRST, id, (3, b"text"), 0), Some(0));
    assert_eq!((rig.answer(wrong), rig.answer(still)), (Some(error(EFAULT)), None));
    assert_eq!((rig.answer(last), told(&mut rig, id)[1]), (None, 0));
    assert_eq!(rig.call(nr::__NR_kill, &[still.into(), nr::SIGCONT.into()]), 0);
    assert_eq!((rig.answer(still), rig.get(still, to + 8, 4)), (Some(4), b"text".to_vec()));
    // Permissions that somebody takes away are missed by those that wait.
    assert_eq!(rig.call_by(still, nr::__NR_setgid, &[5]), 0);
    assert_eq!(rig.call_by(still, nr::__NR_setuid, &[5]), 0);
    let id = rig.call(nr::__NR_msgget, &[0, 0o666]) as u64;
    assert_eq!(rig.try_by(still, nr::__NR_msgrcv, &[id, to, 16, 0, 0]), None);
    let set = rig.room(120);
    assert_eq!(control(&mut rig, FIRST, id, IPC_STAT, set), 0);
    assert_eq!(control(&mut rig, FIRST, id, IPC_SET, set), 0);
    assert_eq!(rig.answer(still), None);
    rig.system.write(FIRST, set + 20, &0o600u32.to_le_bytes()).unwrap();
    assert_eq!(control(&mut rig, FIRST, id, IPC_SET, set), 0);
    assert_eq!(rig.answer(still), Some(error(EACCES)));
}

#[test]
fn queues_belong_to_somebody() {
    let mut rig = Rig::begun();
    let id = rig.call(nr::__NR_msgget, &[7, (IPC_CREAT | 0o622).into()]) as u64;
    let child = rig.fork();
    assert_eq!(rig.call_by(child, nr::__NR_setuid, &[5]), 0);
    assert_eq!(send(&mut rig, child, id, (1, b"x"), 0), Some(0));
    assert_eq!(rig.call_by(child, nr::__NR_msgrcv, &[id, DATA, 4, 0, 0]), error(EACCES));
    assert_eq!(control(&mut rig, child, id, IPC_RMID, 0), error(EPERM));
    let set = rig.room(120);
    assert_eq!(control(&mut rig, FIRST, id, IPC_STAT, set), 0);
    let structure = rig.get(FIRST, set, 120);
    rig.system.write(child, set, &structure).unwrap();
    assert_eq!(control(&mut rig, child, id, IPC_SET, set), error(EPERM));
    let own = rig.call_by(child, nr::__NR_msgget, &[0, 0o600]) as u64;
    rig.system.write_words(child, set + 88, &[16_385]).unwrap();
    assert_eq!(control(&mut rig, child, own, IPC_SET, set), error(EPERM), "only `root` makes it longer");
    rig.system.write_words(child, set + 88, &[16_384]).unwrap();
    assert_eq!(control(&mut rig, child, own, IPC_SET, set), 0);
    assert_eq!(
        control(&mut rig, child, own, IPC_SET, set),
        0,
        "it is `root`'s by then, and its maker may still"
    );
}

/// Messages outlast their senders, and are at most a part of the budget.
#[test]
fn messages_have_limits() {
    let mut rig = Rig::begun();
    rig.system.budget.set_max(1 << 20);
    let before = rig.system.kept.ipc.lasting.bytes();
    let text = vec![1; 8192];
    let (mut sent, mut queues) = (0, Vec::new());
    let last = loop {
        let id = rig.call(nr::__NR_msgget, &[0, 0o600]);
        if id < 0 {
            break id;
        }
        queues.push(id as u64);
        while send(&mut rig, FIRST, id as u64, (1, &text), NOWAIT) == Some(0) {
            sent += 1;
        }
        rig.free = DATA + crate::frames::PAGE;
    };
    assert_eq!(last, error(ENOSPC));
    assert!((24..32).contains(&sent), "{sent}");
    let full = rig.call(nr::__NR_msgget, &[0, 0o600]);
    assert_eq!(full, error(ENOSPC));
    let empty = *queues.last().unwrap();
    assert_eq!(send(&mut rig, FIRST, empty, (1, &text), NOWAIT), Some(error(ENOMEM)));
    let at = rig.room(32);
    assert!(control(&mut rig, FIRST, 0, MSG_INFO, at) >= 0);
    assert_eq!((rig.half(at), rig.half(at + 4)), (queues.len() as u32, sent));
    assert_eq!(rig.half(at + 24), sent * 8192);
    assert!(control(&mut rig, FIRST, 0, IPC_INFO, at) >= 0);
    assert_eq!((rig.half(at + 8), rig.half(at + 12), rig.half(at + 16)), (8192, 16384, 1024));
    for id in queues {
        assert_eq!(control(&mut rig, FIRST, id, IPC_RMID, 0), 0);
    }
    assert_eq!(rig.system.kept.ipc.lasting.bytes(), before);
}

/// A message that waits for room is what it was when the call was made, whatever its memory has by then.
#[test]
fn who_waits_for_room_sends_what_there_was() {
    let mut rig = Rig::begun();
    let id = queue(&mut rig);
    let large = vec![7; 8192];
    for _ in 0..2 {
        assert_eq!(send(&mut rig, FIRST, id, (1, &large), 0), Some(0));
    }
    let thread = rig.thread();
    // Pages that the test needs are there, so tables of them do not grow.
    rig.get(FIRST, DATA, 1 << 17);
    let at = rig.put(&[&5u64.to_le_bytes()[..], b"before"].concat());
    let wait = |rig: &mut Rig, at: u64| rig.try_by(thread, nr::__NR_msgsnd, &[id, at, 6, 0]);
    let held = rig.system.budget.used();
    assert_eq!(wait(&mut rig, at), None);
    assert!(rig.system.budget.used() > held + 6);
    rig.system.write(FIRST, at, &[&9u64.to_le_bytes()[..], b"behind"].concat()).unwrap();
    assert_eq!(receive(&mut rig, id, 1, MSG_NOERROR).map(|(kind, _)| kind), Ok(1));
    assert_eq!(rig.answer(thread), Some(0));
    assert_eq!(receive(&mut rig, id, 5, 0), Ok((5, b"before".to_vec())));
    // An address that is wrong is told at once, and so is memory that there is not.
    assert_eq!(send(&mut rig, FIRST, id, (1, &large), 0), Some(0));
    assert_eq!(rig.system.budget.used(), held);
    assert_eq!(wait(&mut rig, 8), Some(error(EFAULT)));
    let budget = rig.system.budget.clone();
    budget.set_max(held);
    assert_eq!(wait(&mut rig, at), Some(error(ENOMEM)));
    assert_eq!(budget.used(), held);
}
