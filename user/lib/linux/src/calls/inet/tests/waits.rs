//! Calls that wait for the network: blocking ones, `poll`, `epoll`.

use super::*;
use crate::process::Event;

const SECOND: u64 = 1_000_000_000;

impl Net {
    /// Makes a call that has to wait.
    fn begin(&mut self, tid: u32, number: u32, arguments: &[u64]) {
        assert_eq!(self.rig.try_by(tid, number, arguments), None);
        self.turn();
        assert_eq!(self.rig.answer(tid), None);
    }

    /// A connection whose ends wait.
    fn blocking(&mut self) -> [u64; 2] {
        let ends = self.pair();
        for fd in ends {
            assert_eq!(self.call(nr::__NR_fcntl, &[fd, nr::F_SETFL.into(), 0]), 0);
        }
        ends
    }

    fn list(&mut self, fd: u64, events: u32) -> u64 {
        let list = self.call(nr::__NR_epoll_create1, &[0]) as u64;
        let event = self.rig.put(&[&events.to_le_bytes()[..], &fd.to_le_bytes()].concat());
        let add = nr::EPOLL_CTL_ADD.into();
        assert_eq!(self.call(nr::__NR_epoll_ctl, &[list, add, fd, event]), 0);
        list
    }

    /// Events of a list now: bits of the first, or none.
    fn events(&mut self, list: u64) -> Option<u32> {
        let at = self.rig.room(24);
        match self.call(nr::__NR_epoll_wait, &[list, at, 2, 0]) {
            0 => None,
            count => {
                assert_eq!(count, 1);
                Some(self.rig.half(at))
            }
        }
    }
}

#[test]
fn readers_wait_for_bytes() {
    let mut net = Net::begun();
    let [one, two] = net.blocking();
    let thread = net.rig.thread();
    let at = net.rig.room(100);
    for call in [nr::__NR_read, nr::__NR_recvfrom] {
        net.begin(thread, call, &[one, at, 100]);
        assert_eq!(net.send(two, b"bytes", 0), 5);
        assert_eq!((net.rig.answer(thread), net.rig.get(FIRST, at, 5)), (Some(5), b"bytes".to_vec()));
    }
    // All of them.
    net.begin(thread, nr::__NR_recvfrom, &[one, at, 10, MSG_WAITALL.into()]);
    assert_eq!((net.send(two, b"1234", 0), net.rig.answer(thread)), (4, None));
    assert_eq!((net.send(two, b"567890abc", 0), net.rig.answer(thread)), (9, Some(10)));
    assert_eq!(net.rig.get(FIRST, at, 10), b"1234567890");
    assert_eq!(net.receive(one, 10, 0), Ok(b"abc".to_vec()));
    // The end.
    net.begin(thread, nr::__NR_read, &[one, at, 100]);
    net.call(nr::__NR_close, &[two]);
    assert_eq!(net.rig.answer(thread), Some(0));
}

#[test]
fn writers_wait_for_room() {
    let mut net = Net::far();
    let [one, two] = net.blocking();
    let thread = net.rig.thread();
    let len = 200_000;
    let at = net.rig.put(&vec![9; len]);
    for call in [nr::__NR_write, nr::__NR_sendto] {
        net.begin(thread, call, &[one, at, len as u64]);
        let mut sum = 0;
        while net.rig.system.threads[&thread].blocked.is_some() {
            assert_eq!(net.poll(one) & 4, 0);
            sum += net.receive(two, 5000, 0).unwrap().len();
        }
        assert_eq!(net.rig.answer(thread), Some(len as i64));
        while let Ok(bytes) = net.receive(two, 50_000, MSG_DONTWAIT) {
            sum += bytes.len();
        }
        assert_eq!(sum, len);
    }
    // A call that does not wait gets as far as there is room.
    assert_eq!(net.call(nr::__NR_sendto, &[one, at, len as u64, MSG_DONTWAIT.into()]), 16_384);
    assert_eq!(net.call(nr::__NR_sendto, &[one, at, 1, MSG_DONTWAIT.into()]), error(EAGAIN));
    assert_eq!(net.set(one, SOL_SOCKET, SO_SNDTIMEO_NEW, 0), error(EINVAL));
    let brief = net.rig.put(&[0u64, 1000].map(u64::to_le_bytes).concat());
    assert_eq!(net.call(nr::__NR_setsockopt, &[one, 1, SO_SNDTIMEO_NEW.into(), brief, 16]), 0);
    net.begin(thread, nr::__NR_write, &[one, at, 1]);
    net.rig.pass(SECOND);
    assert_eq!(net.rig.answer(thread), Some(error(EAGAIN)));
    // A wait ends with the connection.
    let number = net.inet(one).number;
    net.begin(thread, nr::__NR_write, &[one, at, 1]);
    net.network.reset(number);
    net.turn();
    assert_eq!(net.rig.answer(thread), Some(error(ECONNRESET)));
}

#[test]
fn calls_wait_for_connections() {
    let mut net = Net::begun();
    let listener = net.listener("127.0.0.1:80");
    net.call(nr::__NR_fcntl, &[listener, nr::F_SETFL.into(), 0]);
    let threads = [net.rig.thread(), net.rig.thread()];
    for thread in threads {
        net.begin(thread, nr::__NR_accept4, &[listener, 0, 0, 0]);
    }
    let one = net.socket(AF_INET, STREAM);
    assert_eq!(net.connect(one, "127.0.0.1:80"), 0);
    let answers = threads.map(|thread| net.rig.answer(thread));
    assert_eq!(answers.iter().flatten().count(), 1);
    let other = net.socket(AF_INET, STREAM);
    assert_eq!(net.connect(other, "127.0.0.1:80"), 0);
    assert!(threads.into_iter().any(|thread| net.rig.answer(thread).is_some_and(|fd| fd > 0)));
    // A connection that is not answered, with a limit and without.
    let silent = net.socket(AF_INET, STREAM);
    let brief = net.rig.put(&[0u64, 1000].map(u64::to_le_bytes).concat());
    assert_eq!(net.call(nr::__NR_setsockopt, &[silent, 1, SO_SNDTIMEO_NEW.into(), brief, 16]), 0);
    let [at, len] = net.address(silent, &format!("{SILENT}:80"));
    net.begin(threads[0], nr::__NR_connect, &[silent, at, len]);
    net.rig.pass(SECOND);
    assert_eq!(net.rig.answer(threads[0]), Some(error(EINPROGRESS)));
    let silent = net.socket(AF_INET, STREAM);
    net.begin(threads[0], nr::__NR_connect, &[silent, at, len]);
    net.rig.pass(1000 * SECOND);
    assert_eq!(net.rig.answer(threads[0]), None);
    // It goes on when a signal comes between.
    let action = net.rig.put(&[crate::calls::rig::DATA, 0x0400_0000, 0, 0].map(u64::to_le_bytes).concat());
    assert_eq!(net.rig.call(nr::__NR_rt_sigaction, &[nr::SIGUSR1.into(), action, 0, 8]), 0);
    assert_eq!(net.rig.call(nr::__NR_tkill, &[threads[0].into(), nr::SIGUSR1.into()]), 0);
    assert_eq!(net.call(nr::__NR_fcntl, &[silent, nr::F_SETFL.into(), BRIEF.into()]), 0);
    assert_eq!(net.connect(silent, &format!("{SILENT}:80")), error(EALREADY));
}

#[test]
fn a_limit_for_readers() {
    let mut net = Net::begun();
    let fd = net.socket(AF_INET, DATAGRAM);
    assert_eq!(net.bind(fd, "127.0.0.1:53"), 0);
    let time = net.rig.put(&[1u64, 0].map(u64::to_le_bytes).concat());
    assert_eq!(net.call(nr::__NR_setsockopt, &[fd, 1, SO_RCVTIMEO_NEW.into(), time, 16]), 0);
    let at = net.rig.room(16);
    net.begin(FIRST, nr::__NR_recvfrom, &[fd, at, 16, 0]);
    net.rig.pass(SECOND / 2);
    assert_eq!(net.rig.answer(FIRST), None);
    net.rig.pass(SECOND / 2);
    assert_eq!(net.rig.answer(FIRST), Some(error(EAGAIN)));
}

#[test]
fn polls_wait() {
    let mut net = Net::begun();
    let [one, two] = net.pair();
    let thread = net.rig.thread();
    let list = net.rig.put(&[&(one as u32).to_le_bytes()[..], &[1, 0, 0, 0]].concat());
    net.begin(thread, nr::__NR_poll, &[list, 1, u64::MAX]);
    assert!(
        net.rig.system.threads[&thread]
            .blocked
            .as_ref()
            .unwrap()
            .on
            .contains(&Event::Ring(net.inet(one).number))
    );
    net.send(two, b"x", 0);
    assert_eq!((net.rig.answer(thread), net.rig.half(list + 4) >> 16), (Some(1), 1));
    net.receive(one, 1, 0).unwrap();
    let set = net.rig.put(&(1u64 << one).to_le_bytes());
    net.begin(thread, nr::__NR_select, &[one + 1, set, 0, 0, 0]);
    net.call(nr::__NR_close, &[two]);
    assert_eq!(net.rig.answer(thread), Some(1));
}

#[test]
fn lists_hear_of_sockets() {
    for edge in [0, nr::EPOLLET] {
        let mut net = Net::far();
        let [one, two] = net.pair();
        let list = net.list(one, nr::EPOLLIN | nr::EPOLLRDHUP | edge);
        assert_eq!(net.events(list), None);
        for _ in 0..3 {
            net.send(two, b"some", 0);
            assert_eq!(net.events(list), Some(1));
            // A read of all that there is may be the last one.
            assert_eq!(net.receive(one, 100, 0), Ok(b"some".to_vec()));
            assert_eq!(net.events(list), None);
        }
        let at = net.rig.room(12);
        net.begin(FIRST, nr::__NR_epoll_wait, &[list, at, 1, u64::MAX]);
        let thread = net.rig.system.processes[&FIRST].threads[0];
        let child = net.rig.system.threads[&thread].blocked.is_some();
        assert!(child);
        let number = net.inet(two).number;
        net.network.reset(number);
        net.turn();
        assert_eq!((net.rig.answer(FIRST), net.rig.half(at)), (Some(1), 0x2019));
    }
}

#[test]
fn lists_hear_of_room_and_connections() {
    let mut net = Net::begun();
    let listener = net.listener("127.0.0.1:80");
    let list = net.list(listener, nr::EPOLLIN);
    assert_eq!(net.events(list), None);
    let one = net.socket(AF_INET, STREAM | BRIEF);
    assert_eq!((net.connect(one, "127.0.0.1:80"), net.events(list)), (0, Some(1)));
    let two = net.accept(listener) as u64;
    assert_eq!((net.events(list), net.accept(listener)), (None, error(EAGAIN)));
    let room = net.list(one, nr::EPOLLOUT | nr::EPOLLET);
    assert_eq!((net.events(room), net.events(room)), (Some(4), None));
    let bytes = vec![1; 30_000];
    assert_eq!(net.send(one, &bytes, 0), 16_384);
    assert_eq!(net.events(room), None);
    net.receive(two, 5000, 0).unwrap();
    assert_eq!((net.events(room), net.events(room)), (Some(4), None));
    // One that is not made yet.
    let late = net.socket(AF_INET, STREAM | BRIEF);
    let list = net.list(late, nr::EPOLLOUT);
    assert_eq!(
        (net.events(list), net.connect(late, &format!("{SILENT}:1"))),
        (Some(0x14), error(EINPROGRESS))
    );
    assert_eq!(net.events(list), None);
    let refused = net.socket(AF_INET, STREAM | BRIEF);
    let list = net.list(refused, nr::EPOLLOUT);
    assert_eq!((net.connect(refused, "127.0.0.1:9"), net.events(list)), (error(ECONNREFUSED), Some(0x14)));
}
