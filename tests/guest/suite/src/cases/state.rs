//! Registers beside those of a message, floating-point registers and FS base: they are a thread's own until it sends a message, and pass to
//! the partner with that.

use crate::kit::{Agent, Attempt, Child, Outcome};
use crate::{check, check_eq};
use sys::Uid;

unsafe extern "C" {
    fn suite_avx();
    fn suite_avx_serve();
    fn suite_fpu();
    fn suite_fpu_first();
    fn suite_fpu_set();
    fn suite_fs();
    fn suite_nothing();
}

pub fn floating_point_is_private() -> Outcome {
    let (near, far) = (Child::new()?, Child::new()?);
    let mut agents = [near.agent()?, near.agent()?, far.agent()?, Agent::new(sys::TaskId::NIL)?];
    for agent in &mut agents {
        agent.attempt(suite_nothing, 0, 0)?;
    }
    for (index, agent) in agents.iter_mut().enumerate() {
        // Enough rounds for many time slices, with system calls in between.
        agent.start_attempt(suite_fpu, 0x1111_1111_1111_1111 * (index as u64 + 1), 40_000);
    }
    for agent in &mut agents {
        check_eq!(agent.attempted()?, crate::kit::Attempted::Returned(0));
    }
    Ok(())
}

/// After a call all vector registers hold what the caller or its server left there; never what another client of the server did.
pub fn vector_registers_pass_to_the_partner() -> Outcome {
    let (near, far) = (Child::new()?, Child::new()?);
    let mut servers = [near.agent()?, far.agent()?];
    for server in &mut servers {
        server.start_attempt(suite_avx_serve, server.uid.0, 0);
        check!(server.settle()?, "the server does not wait");
    }
    let mut clients = [near.agent()?, near.agent()?, far.agent()?];
    for (index, client) in clients.iter_mut().enumerate() {
        client.start_attempt(suite_avx, 0x1234_5678_0000_0000 << index, servers[index % 2].uid.0);
    }
    for client in &mut clients {
        check_eq!(client.attempted()?, crate::kit::Attempted::Returned(0));
    }
    Ok(())
}

pub fn new_threads_find_clean_registers() -> Outcome {
    #[repr(C, align(16))]
    struct Buffer([u8; 272]);
    static mut BUFFER: Buffer = Buffer([0; 272]);
    let child = Child::new()?;
    let mut dirty = child.agent()?;
    for _ in 0..3 {
        dirty.attempt(suite_fpu_set, 0xdead_beef_dead_beef, 0)?;
        let mut fresh = child.agent()?;
        let address = &raw mut BUFFER as u64;
        // SAFETY: only this test uses the buffer, and no agent does now.
        unsafe { (&raw mut BUFFER).write(Buffer([0xaa; 272])) };
        check!(fresh.attempt(suite_fpu_first, address, 0)?.is_fine());
        // SAFETY: as above.
        let found = unsafe { (&raw const BUFFER).read().0 };
        check!(found[..256].iter().all(|&byte| byte == 0), "a new thread finds another's xmm registers");
        check_eq!(u32::from_le_bytes([found[256], found[257], found[258], found[259]]) & 0xffff, 0x1f80);
        check_eq!(u16::from_le_bytes([found[260], found[261]]), 0x37f);
    }
    Ok(())
}

pub fn fs_base_passes_to_the_partner_alone() -> Outcome {
    static BLOCKS: [u64; 3] = [0xf5_0000, 0xf5_0001, 0xf5_0002];
    let (near, far) = (Child::new()?, Child::new()?);
    let mut agents = [near.agent()?, near.agent()?, far.agent()?];
    for (agent, block) in agents.iter_mut().zip(&BLOCKS) {
        agent.attempt(suite_nothing, 0, 0)?;
        sys::thread_set_fs(agent.uid, block as *const u64 as u64)?;
    }
    for _ in 0..5 {
        for (agent, block) in agents.iter_mut().zip(&BLOCKS) {
            check_eq!(agent.attempt(suite_fs, 0, 0)?, crate::kit::Attempted::Returned(*block));
        }
    }
    // Through ipc it is that of either side.
    for _ in 0..5 {
        let (first, rest) = agents.split_at_mut(1);
        rest[0].block(crate::kit::Frame::reply_wait(Uid::NIL, 0, [0; 11]))?;
        first[0].block(crate::kit::Frame::call(rest[0].uid, 0, [0; 11]))?;
        rest[0].wait()?;
        let function: Attempt = suite_fs;
        let either = [BLOCKS[0], BLOCKS[1]].map(crate::kit::Attempted::Returned);
        check!(either.contains(&rest[0].attempt(function, 0, 0)?), "a third one's FS base");
        rest[0].block(crate::kit::Frame::reply_wait(first[0].uid, 0, [0; 11]))?;
        first[0].wait()?;
        check!(either.contains(&first[0].attempt(function, 0, 0)?), "a third one's FS base");
        sys::thread_abort(rest[0].uid)?;
        rest[0].wait()?;
    }
    // Taken away again, and never there for a new thread.
    sys::thread_set_fs(agents[0].uid, 0)?;
    let got = agents[0].probe(suite_fs, 0, 0)?;
    check!(!got.is_fine(), "FS base stayed: {got:x?}");
    let mut fresh = near.agent()?;
    let got = fresh.probe(suite_fs, 0, 0)?;
    check!(!got.is_fine(), "a new thread has an FS base: {got:x?}");
    Ok(())
}
