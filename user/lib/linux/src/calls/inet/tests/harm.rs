//! Random calls about sockets: nothing panics, nothing is kept, and nobody waits who could go on.

use super::*;
use crate::calls::rig::DATA;
use crate::tests::random::Random;

/// Calls of the whole test.
const CALLS: usize = 30_000;

const ALL: [u32; 24] = [
    nr::__NR_socket,
    nr::__NR_socket,
    nr::__NR_bind,
    nr::__NR_listen,
    nr::__NR_connect,
    nr::__NR_connect,
    nr::__NR_accept4,
    nr::__NR_sendto,
    nr::__NR_sendto,
    nr::__NR_recvfrom,
    nr::__NR_recvfrom,
    nr::__NR_sendmsg,
    nr::__NR_recvmsg,
    nr::__NR_read,
    nr::__NR_write,
    nr::__NR_shutdown,
    nr::__NR_getsockname,
    nr::__NR_getpeername,
    nr::__NR_getsockopt,
    nr::__NR_setsockopt,
    nr::__NR_epoll_ctl,
    nr::__NR_ioctl,
    nr::__NR_poll,
    nr::__NR_close,
];

/// Addresses of both families that lead to one another, and memory that holds none.
fn addresses(net: &mut Net) -> Vec<u64> {
    let texts = ["127.0.0.1:80", "0.0.0.0:80", "127.0.0.1:81", "0.0.0.0:0", "1.2.3.4:5", "10.0.2.99:7"];
    let mut all: Vec<u64> = texts.iter().map(|text| net.address_as(Family::Four, text)[0]).collect();
    all.extend(
        ["[::1]:80", "[::]:80", "127.0.0.1:81"].iter().map(|text| net.address_as(Family::Six, text)[0]),
    );
    all.extend([0, 8, u64::MAX, DATA]);
    all
}

#[test]
fn random_calls_about_sockets() {
    let mut random = Random(3);
    let (mut good, mut bad) = (0, 0);
    for round in 0..CALLS / 300 {
        let mut net = Net::begun();
        let names = addresses(&mut net);
        let data = net.rig.room(1 << 16);
        let list = net.call(nr::__NR_epoll_create1, &[0]) as u64;
        for _ in 0..300 {
            let call = ALL[random.below(ALL.len() as u64) as usize];
            let (fd, name) = (3 + random.below(8), random.of(&names));
            let len = random.of(&[0, 1, 16, 16, 28, 28, 110, 4096, 60_000, 1 << 31, u64::MAX]);
            let at = random.of(&[data, data, data, data + 1, 0, u64::MAX - 8, DATA + (8 << 20)]);
            let flags = random.of(&[0x40, 0x40, 0x42, 0x41, 0x20, 0x4040, 0x140, u64::from(u32::MAX)]) | 0x40;
            let arguments = match call {
                nr::__NR_socket => {
                    let kind = random.of(&[0x801, 0x801, 0x802, 0x802, 0x805, 0x803, u64::MAX]);
                    [random.of(&[2, 2, 10, 10, 1, 16]), kind, random.of(&[0, 0, 0, 6, 17, 1]), 0, 0, 0]
                }
                nr::__NR_bind | nr::__NR_connect => [fd, name, random.of(&[16, 28, 28, len]), 0, 0, 0],
                nr::__NR_listen => [fd, len, 0, 0, 0, 0],
                nr::__NR_accept4 => [fd, random.of(&[0, at]), at, random.of(&[0x800, 0x800, 1]), 0, 0],
                nr::__NR_sendto => [fd, at, len.min(1 << 20), flags, random.of(&[0, name]), len],
                nr::__NR_recvfrom => [fd, at, len.min(1 << 20), flags, random.of(&[0, at]), at],
                nr::__NR_sendmsg | nr::__NR_recvmsg => [fd, at, flags, 0, 0, 0],
                nr::__NR_getsockopt | nr::__NR_setsockopt => {
                    [fd, random.of(&[1, 0, 6, 41, 17, 99]), random.below(80), at, random.of(&[at, 4, 16]), 0]
                }
                nr::__NR_epoll_ctl => [list, 1 + random.below(3), fd, at, 0, 0],
                nr::__NR_ioctl => [fd, random.of(&[FIONREAD.into(), 0x5411, len]), at, 0, 0, 0],
                nr::__NR_poll => [at, random.below(4), 0, 0, 0, 0],
                nr::__NR_shutdown => [fd, random.below(4), 0, 0, 0, 0],
                _ => [fd, at, len.min(1 << 20), 0, 0, 0],
            };
            let Some(outcome) = net.rig.try_by(FIRST, call, &arguments) else {
                panic!("call {call} with {arguments:x?} waits in round {round}");
            };
            net.turn();
            *if outcome < 0 { &mut bad } else { &mut good } += 1;
            net.rig.call(nr::__NR_epoll_wait, &[list, data, 8, 0]);
            net.turn();
            assert!(net.network.count() <= 40, "{}", net.network.count());
        }
        net.rig.system.end_process(FIRST, crate::process::Status::killed(9));
        assert_eq!(net.network.count(), 0);
    }
    assert!(good > bad / 16, "{good} of {} calls succeed", good + bad);
}

/// The server has ended: a socket for datagrams is told so once, and nobody is woken again and again.
#[test]
fn sockets_that_the_server_has_lost() {
    let mut net = Net::begun();
    let fd = net.socket(AF_INET, DATAGRAM);
    assert_eq!(net.bind(fd, "127.0.0.1:9"), 0);
    let thread = net.rig.thread();
    let at = net.rig.put(&[&(fd as u32).to_le_bytes()[..], &[1, 0, 0, 0]].concat());
    assert_eq!(net.rig.try_by(thread, nr::__NR_poll, &[at, 1, u64::MAX]), None);
    let number = net.inet(fd).number;
    net.network.lose(number);
    net.turn();
    assert_eq!((net.rig.answer(thread), net.rig.half(at + 4) >> 16), (Some(1), nr::POLLERR));
    assert!(net.receive(fd, 10, MSG_DONTWAIT).is_err());
    assert_eq!(net.receive(fd, 10, MSG_DONTWAIT), Err(error(EAGAIN)));
    // It goes on with another port.
    assert_eq!(net.send_to(fd, b"x", "127.0.0.1:10"), 1);
}

/// A thread that waits at a socket hears of what comes when another one has given that a port.
#[test]
fn readers_wait_for_a_port() {
    let mut net = Net::begun();
    let fd = net.socket(AF_INET, DATAGRAM);
    let thread = net.rig.thread();
    let at = net.rig.room(16);
    assert_eq!(net.rig.try_by(thread, nr::__NR_recvfrom, &[fd, at, 16, 0, 0, 0]), None);
    assert_eq!(net.send_to(fd, b"to nobody", "127.0.0.1:9"), 9);
    let own: SocketAddr = format!("127.0.0.1:{}", net.inet(fd).local.get().unwrap().port()).parse().unwrap();
    net.network.deliver("127.0.0.1:9".parse().unwrap(), own, b"answer");
    net.turn();
    assert_eq!((net.rig.answer(thread), net.rig.get(FIRST, at, 6)), (Some(6), b"answer".to_vec()));
}

/// Streams with an address are limited, since to find a free port takes as long as there are many.
#[test]
fn addresses_of_streams_are_limited() {
    let mut net = Net::begun();
    let limits = net.rig.put(&[4096u64, 4096].map(u64::to_le_bytes).concat());
    assert_eq!(net.rig.call(nr::__NR_prlimit64, &[0, nr::RLIMIT_NOFILE.into(), limits, 0]), 0);
    let [at, len] = net.address_as(Family::Four, "0.0.0.0:0");
    let mut made = 0;
    loop {
        let fd = net.socket(AF_INET, STREAM);
        match net.call(nr::__NR_bind, &[fd, at, len]) {
            0 => made += 1,
            refused => break assert_eq!(refused, error(crate::errno::ENOBUFS)),
        }
    }
    assert_eq!(made, 1024);
}
