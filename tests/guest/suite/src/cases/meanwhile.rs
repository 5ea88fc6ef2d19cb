//! What a transfer has looked at holds until its end, whatever others write into the blocks, and register, meanwhile; and many who wait for
//! one thread learn of its end little by little.

use super::long::{from, from_block, open, pair, prepare, to};
use super::map::WINDOW;
use crate::check;
use crate::kit::{Child, Frame, Outcome, fails, pager};
use sys::abi::Call;
use sys::abi::USER_END;
use sys::abi::op;
use sys::{Dope, Error, Fpage, Kind, Message, Rights, Timeout, Uid, thread_state};

/// Whoever controls a receiver cannot register another block for it while a message is on its way into the one that it has. At the end of the
/// user half, the descriptors of the message would be in the kernel half.
pub fn a_block_stays_where_the_message_was_accepted() -> Outcome {
    for words in [1022u64, 1023, 1024, 1536, 4095] {
        let (used, room) = (Dope::used(words, 1, 0), Dope::room(4095, 255, 0));
        let (_near, mut sender, _far, receiver) = pair(room)?;
        from().block.fill(0);
        // The words end where a page does, and the descriptor is in the next.
        let hook = from_block() + 0x8000;
        sys::thread_set_pager(sender.uid, sys::myself(), pager::uid())?;
        let mut frame = Frame::send(receiver.uid, Timeout::NEVER);
        frame.rax |= op::BLOCK as u64;
        (frame.rdi, frame.rsi) = (used.0, hook - 8 * words);
        sender.start(frame);
        let mut tried = false;
        while let Some(fault) = fault_of(sender.uid) {
            let page = fault.words[0] & !0xfff;
            if page == hook {
                let block = Dope::room(0, 255, 0);
                let elsewhere = sys::thread_set_block(receiver.uid, USER_END - 4080, block, Timeout::NEVER);
                fails(Call::ThreadControl, elsewhere, Error::BadState)?;
                tried = true;
            }
            resolve(sender.uid, page, Rights::RWX)?;
        }
        check!(sender.wait()?.error().is_none() && tried);
    }
    Ok(())
}

/// The next fault of a thread whose pager this is, if one comes.
fn fault_of(thread: Uid) -> Option<Message> {
    let message = sys::receive(thread, Timeout::from_us(100_000)).ok()?;
    (message.kind == Kind::Fault).then_some(message)
}

fn resolve(thread: Uid, page: u64, rights: Rights) -> Outcome {
    pager::touch(page, Rights::R);
    sys::send_item(thread, 0, [0; 8], (Fpage::memory(page, 12, rights), page), Timeout::ZERO)?;
    Ok(())
}

extern "C" fn read(address: u64) -> u64 {
    // SAFETY: the test gives an address of its own memory.
    unsafe { (address as *const u64).read_volatile() }
}

/// Another item is written into the sender's block while the first is under way: the first is mapped, and nothing outside of the window.
/// (That the receiver's block cannot be written at first only makes the moment certain.)
pub fn an_item_that_shrinks_stays_in_the_window() -> Outcome {
    prepare(10);
    let (used, room) = (Dope::used(0, 0, 1), Dope::room(0, 0, 1));
    let (_near, mut sender, _far, mut receiver) = pair(room)?;
    sys::thread_abort(receiver.uid)?;
    receiver.wait()?;
    let item = (from().bytes.as_ptr() as u64).next_multiple_of(0x2_0000);
    for page in 0..64 {
        sender.apply(read, item + page * 4096)?;
    }
    sender.apply(read, from_block())?;
    // The table of the window is there.
    pager::touch(item, Rights::R);
    receiver
        .take((Fpage::memory(item, 12, Rights::R), 0), Fpage::memory(WINDOW + 0x10_0000, 12, Rights::RWX))?;
    receiver.block(open())?;
    from().block[..2].copy_from_slice(&[Fpage::memory(item, 17, Rights::R).0, 0]);
    to().block[..2].copy_from_slice(&[Fpage::memory(WINDOW, 17, Rights::RWX).0, 0]);
    sys::thread_set_pager(receiver.uid, sys::myself(), pager::uid())?;
    let mut frame = Frame::send(receiver.uid, Timeout::NEVER);
    frame.rax |= op::BLOCK as u64;
    (frame.rdi, frame.rsi) = (used.0, from_block());
    sender.start(frame);
    while let Some(fault) = fault_of(receiver.uid) {
        let (page, rights) = (fault.words[0] & !0xfff, Rights(fault.words[0] as u8 & 7));
        if rights.has(Rights::W) {
            from().block[..2].copy_from_slice(&[Fpage::memory(item, 13, Rights::R).0, 0x1_e000]);
        }
        resolve(receiver.uid, page, rights)?;
    }
    check!(sender.wait()?.error().is_none());
    sys::thread_set_pager(receiver.uid, pager::uid(), pager::uid())?;
    receiver.wait()?;
    for page in 0..0x80 {
        let is_there = receiver.peek(WINDOW + page * 4096)?.is_some();
        check!(is_there == (page < 0x20), "page {page} of the window");
    }
    Ok(())
}

core::arch::global_asm!(
    // Gets in rdi whom to wait for: once for that thread alone, then for anybody. Needs no stack.
    ".global suite_waiter",
    "suite_waiter:",
    "mov rbx, rdi",
    "2: xor edx, edx",
    "xor ebp, ebp",
    "mov r15, -1",
    "mov eax, 0x80000001",
    "syscall",
    "mov rbx, -1",
    "jmp 2b",
);

/// Many threads wait for one that ends. No step of the search for them has interrupts off for long: the harness watches all of the suite for
/// that.
pub fn many_wait_for_one_that_ends() -> Outcome {
    const WAITERS: u64 = 520;
    unsafe extern "C" {
        fn suite_waiter();
    }
    let child = Child::with_quota(1500)?;
    let victim = child.agent()?;
    for _ in 0..WAITERS {
        let uid = sys::thread_create(child.0, pager::priority(), pager::uid(), pager::uid())?;
        // SAFETY: it needs no stack.
        unsafe { sys::thread_start(uid, suite_waiter as *const () as u64, 0, victim.uid.0)? };
    }
    let waits_for = |uid| Ok::<bool, sys::Error>(sys::thread_info(uid)?.state == thread_state::RECEIVING);
    let mut last = victim.uid;
    while let Some(next) = Some(sys::thread_next(child.0, last)?).filter(|next| !next.is_nil()) {
        while !waits_for(next)? {
            sys::thread_switch(next)?;
        }
        last = next;
    }
    let name = victim.uid;
    drop(victim);
    fails(Call::ThreadControl, sys::thread_info(name), Error::NoSuch)?;
    check!(sys::task_info(child.0)?.threads as u64 == WAITERS);
    Ok(())
}
