//! The thread that is registered under a server's name. It hands out the directories with which everything begins, to each client its own, and answers
//! those who wait for what they watch: they sleep in a call by ipc, so none of them keeps a thread busy here, and of one that ends nothing is left
//! but an answer that finds nobody.

use crate::stubs::Files::Directory;
use crate::stubs::Watches::Waiting;
use alloc::vec::Vec;
use rt::admission::Admission;
use rt::api::stub::View;
use rt::api::{Failure, Name, Reply, Status, desk, interface_of, names, process};
use rt::door::Reference;
use rt::sys::{Ipc, Kind, Message, Uid};
use rt::{home, server, time};
use vfs::Waiters;

/// A directory with which everything begins.
type Root = Reference<Directory::Client<View>>;

/// Gives everybody who asks a reference to the directory that `root` makes for a client's task, or says why there is none, for ever. Comes back if
/// the name is not to be had.
pub fn hand_out(name: &str, root: impl FnMut(u64) -> Result<Root, Status>) -> Failure {
    // Nobody has a ticket.
    hand_out_and_wake(name, root, |waiters| waiters.take(0, |_| true))
}

/// Like [`hand_out`], and answers those who wait. `take` takes those out whose time has come: all that wait, after each message.
pub fn hand_out_and_wake(
    name: &str,
    mut root: impl FnMut(u64) -> Result<Root, Status>,
    mut take: impl FnMut(&mut Waiters<Uid>) -> Vec<(Uid, bool)>,
) -> Failure {
    let registered = Name::new(name).ok_or(Failure::Garbled).and_then(|name| names::register(home(), &name));
    match registered {
        Ok(()) => serve(&mut root, &mut take),
        Err(failure) => failure,
    }
}

fn serve(
    root: &mut impl FnMut(u64) -> Result<Root, Status>,
    take: &mut impl FnMut(&mut Waiters<Uid>) -> Vec<(Uid, bool)>,
) -> ! {
    let (mut waiters, clients) = (Waiters::default(), Admission::new());
    loop {
        if waiters.count() > 0 {
            for (thread, is_ready) in take(&mut waiters) {
                let _ = server::reply(thread, &Waiting::Answer::Wait(is_ready).into());
            }
        }
        let until_ns = waiters.next_ns();
        let Ok(Some(message)) = (Ipc { from: Uid::ANY, until_ns, ..Ipc::NONE }).run() else { continue };
        if message.kind != Kind::Request {
            continue;
        }
        // A client that watches something may have it from another server, such as `mounts`, and be no client here. A ticket that is nobody's is answered at once.
        if interface_of(&message) == Waiting::NUMBER {
            if let Err(status) = wait(&message, &mut waiters) {
                let _ = server::reply(message.sender, &Reply::from(status));
            }
            continue;
        }
        let made = clients.admit(message.sender).map_err(Reply::from).and_then(|()| answer(&message, root));
        let reply = match &made {
            // It is moved with the answer; of a client that is gone it is dropped here.
            Ok(root) => desk::Answer::Door(root.item(true).0).into(),
            Err(reply) => *reply,
        };
        let _ = server::reply(message.sender, &reply);
    }
}

/// Somebody wants to be answered later; or nothing is wanted but that somebody looks who can be.
fn wait(message: &Message, waiters: &mut Waiters<Uid>) -> Result<(), Status> {
    match Waiting::Request::read(message)? {
        Waiting::Request::Wait { ticket, patience_ms } => {
            let until_ns = time::now_ns().saturating_add(patience_ms.saturating_mul(1_000_000));
            if waiters.add(message.sender, ticket, until_ns) { Ok(()) } else { Err(Status::Exhausted) }
        }
        Waiting::Request::Poke => Ok(()),
    }
}

fn answer(message: &Message, root: &mut impl FnMut(u64) -> Result<Root, Status>) -> Result<Root, Reply> {
    if interface_of(message) != desk::NUMBER {
        return Err(Status::BadRequest.into());
    }
    let desk::Request::Door = desk::Request::read(message).map_err(Reply::from)?;
    // Tasks of which `root` knows nothing are one client.
    let task = process::task_of(home(), message.sender).map_or(0, |task| task.0);
    root(task).map_err(Reply::from)
}
