//! The thread that is registered under a server's name, and hands out the directory with which everything begins.

use crate::stubs::Files::Directory;
use rt::api::stub::View;
use rt::api::{Failure, Name, Reply, Status, desk, interface_of, names};
use rt::door::Reference;
use rt::sys::{Kind, Message};
use rt::{home, server};

/// Gives everybody who asks a reference to a directory, or says why there is none, for ever. Comes back if the name is not to be had.
pub fn hand_out(name: &str, root: Result<Reference<Directory::Client<View>>, Status>) -> Failure {
    let registered = Name::new(name).ok_or(Failure::Garbled).and_then(|name| names::register(home(), &name));
    match registered {
        Ok(()) => server::serve(|message| answer(message, &root)),
        Err(failure) => failure,
    }
}

fn answer(message: &Message, root: &Result<Reference<Directory::Client<View>>, Status>) -> Option<Reply> {
    if message.kind != Kind::Request {
        return None;
    }
    if interface_of(message) != desk::NUMBER {
        return Some(Status::BadRequest.into());
    }
    Some(match (desk::Request::read(message), root) {
        (Ok(desk::Request::Door), Ok(root)) => desk::Answer::Door(root.item(false).0).into(),
        (Ok(desk::Request::Door), &Err(status)) => status.into(),
        (Err(fault), _) => fault.into(),
    })
}
