//! `door_control`: make doors, serve them, learn that servers are short.

use crate::args::{Args, done};
use crate::ipc;
use crate::kernel::Kernel;
use crate::mem::budget::Stop;
use crate::mem::doors;
use crate::object::ThreadRef;
use crate::object::thread::Operation;
use crate::sched::Next;
use abi::Error;
use abi::call::door_op as op;

/// The table of sub-operations.
pub fn door_control(k: &Kernel, current: ThreadRef, operation: u32) -> Next {
    let result = match operation {
        op::CREATE => return create(k, current),
        op::SERVE => ipc::serve::serve(k, current),
        op::SHORTAGE => ipc::serve::shortage(k, current),
        _ => Err(Error::BadArgument),
    };
    result.unwrap_or_else(|error| done(current, Err(error)))
}

/// Makes a door. Each missing table takes a step of its own.
pub fn create(k: &Kernel, current: ThreadRef) -> Next {
    current.operation.set(Operation::None);
    let args = Args(&current.frame);
    match doors::create(k, current.task(), args.first(), (args.second(), args.third())) {
        Ok(result) => done(current, result),
        Err(Stop::NoMemory) => done(current, Err(Error::NoMemory)),
        Err(Stop::Again) => {
            current.operation.set(Operation::CreateDoor);
            k.set_busy(current);
            Next::Same
        }
    }
}
