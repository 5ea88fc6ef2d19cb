//! The thread that is registered under a server's name, and hands out the directories with which everything begins, to each client its own.

use crate::stubs::Files::Directory;
use rt::api::stub::View;
use rt::api::{Failure, Name, Reply, Status, desk, interface_of, names, process};
use rt::door::Reference;
use rt::sys::{Kind, Message};
use rt::{home, server};

/// Gives everybody who asks a reference to the directory that `root` makes for a client's task, or says why there is none, for ever. Comes back if
/// the name is not to be had.
pub fn hand_out(
    name: &str,
    mut root: impl FnMut(u64) -> Result<Reference<Directory::Client<View>>, Status>,
) -> Failure {
    let registered = Name::new(name).ok_or(Failure::Garbled).and_then(|name| names::register(home(), &name));
    match registered {
        Ok(()) => serve(&mut root),
        Err(failure) => failure,
    }
}

fn serve(root: &mut impl FnMut(u64) -> Result<Reference<Directory::Client<View>>, Status>) -> ! {
    loop {
        let message = server::wait();
        if message.kind != Kind::Request {
            continue;
        }
        let made = answer(&message, root);
        let reply = match &made {
            // It is moved with the answer; of a client that is gone it is dropped here.
            Ok(root) => desk::Answer::Door(root.item(true).0).into(),
            Err(reply) => *reply,
        };
        let _ = server::reply(message.sender, &reply);
    }
}

fn answer(
    message: &Message,
    root: &mut impl FnMut(u64) -> Result<Reference<Directory::Client<View>>, Status>,
) -> Result<Reference<Directory::Client<View>>, Reply> {
    if interface_of(message) != desk::NUMBER {
        return Err(Status::BadRequest.into());
    }
    let desk::Request::Door = desk::Request::read(message).map_err(Reply::from)?;
    if process::is_client(home(), message.sender) != Ok(true) {
        return Err(Status::Denied.into());
    }
    // Tasks of which `root` knows nothing are one client.
    let task = process::task_of(home(), message.sender).map_or(0, |task| task.0);
    root(task).map_err(Reply::from)
}
