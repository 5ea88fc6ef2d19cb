//! Everything that processes make this program keep, counted anew from what is there: it has to be what the budget says.

use super::world::World;
use crate::budget::Share;
use crate::open::{OPEN_BYTES, Object, Open};
use crate::process::{EVENTS_FREE, Event, PROCESS_BYTES, THREAD_BYTES};
use crate::terminals::PAIR_BYTES;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::vec::Vec;

impl World {
    /// Bytes that are held.
    pub fn held(&self) -> usize {
        self.processes_held() + self.threads_held() + self.open_held() + self.tables_held()
    }

    fn processes_held(&self) -> usize {
        let mut texts = BTreeMap::new();
        let mut sum = 0;
        for process in self.system.processes.values() {
            sum += PROCESS_BYTES[usize::from(process.ended.is_some())];
            sum += process.descriptors.table_bytes() + process.pending.list_bytes();
            if let Some(share) = &process.arguments_share {
                let len: usize = process.arguments.iter().map(|texts| texts.len()).sum();
                texts.insert(Rc::as_ptr(share), len + process.auxiliary.len());
            }
        }
        sum + texts.values().sum::<usize>()
    }

    fn threads_held(&self) -> usize {
        let restrictions = self.system.threads.values().flat_map(|thread| thread.restriction.held());
        let mut sum: usize = restrictions.collect::<BTreeMap<_, _>>().values().sum();
        for (tid, thread) in self.system.threads.iter() {
            sum += thread.pending.list_bytes() + if *tid == thread.process { 0 } else { THREAD_BYTES };
            let events = thread.blocked.as_ref().filter(|blocked| blocked.on.len() > EVENTS_FREE);
            sum += events.map_or(0, |blocked| blocked.on.capacity() * size_of::<Event>())
                + thread.polled.bytes()
                + thread.operations.as_ref().map_or(0, |operations| operations.held())
                + thread.unsent.as_ref().map_or(0, |unsent| unsent.held());
        }
        sum
    }

    /// Tables of memories, each once, and of memory without a file.
    fn tables_held(&self) -> usize {
        let rooms = self.system.processes.values().map(|process| (Rc::as_ptr(&process.room), &process.room));
        let rooms: BTreeMap<_, _> = rooms.collect();
        let tables: usize = rooms.values().map(|room| room.borrow().memory.table_bytes()).sum();
        let terminals = self.system.terminals.pairs() * PAIR_BYTES;
        let (ipc, contexts) = (self.system.kept.ipc.held(), self.system.kept.aio.held());
        tables + self.system.store.frames.object_tables() + terminals + ipc + contexts
    }

    /// Open files that descriptors lead to, those in messages, and those that threads wait with.
    fn open_held(&self) -> usize {
        let descriptors = self.system.processes.values().flat_map(|process| process.descriptors.iter());
        let mut left: Vec<Rc<Open>> = descriptors.map(|(_, descriptor)| descriptor.open.clone()).collect();
        left.extend(self.system.kept.fifos.opening().cloned());
        let roots = self.system.processes.values().map(|process| process.filesystem.borrow().root.clone());
        left.extend(roots.flatten());
        let waited_with = self.system.threads.values().flat_map(|thread| &thread.held);
        left.extend(waited_with.map(|(_, open)| open.clone()));
        let named = self.system.kept.ipc.named.all().map(|queue| (queue.number, queue.clone()));
        let mut queues: BTreeMap<_, _> = named.collect();
        let (mut seen, mut pipes, mut sum) = (BTreeSet::new(), BTreeMap::new(), 0);
        while let Some(open) = left.pop() {
            if !seen.insert(Rc::as_ptr(&open)) {
                continue;
            }
            let own = open.share.borrow().as_ref().map_or(0, Share::bytes);
            assert!(own == 0 || own >= OPEN_BYTES, "{open:?}");
            sum += own;
            match &open.object {
                Object::Reader(ends) | Object::Writer(ends) => drop(pipes.insert(ends.number, ends.clone())),
                Object::Fifo(fifo) => drop(pipes.insert(fifo.ends.number, fifo.ends.clone())),
                Object::Socket(socket) => {
                    sum += socket.held_bytes();
                    left.extend(socket.files_on_the_way());
                }
                Object::Netlink(socket) => sum += socket.held(),
                Object::Epoll(list) => sum += list.bytes(),
                Object::Inotify(list) => sum += list.bytes(),
                Object::Queue(queue) => drop(queues.insert(queue.number, queue.clone())),
                _ => {}
            }
        }
        sum += queues.values().map(|queue| queue.held()).sum::<usize>();
        let of = |name: &crate::open::PipeName| name.path.len();
        let pipes = pipes.values().map(|ends| ends.pipe.borrow().size() + ends.name.as_ref().map_or(0, of));
        sum + pipes.sum::<usize>()
    }
}
