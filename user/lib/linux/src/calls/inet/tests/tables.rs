//! Tables of sockets, interfaces and ways in `/proc/net`, over a network in memory. Lines that are expected are those of Linux.

use super::*;

impl Net {
    /// Lines of a file behind the first one, without the spaces at their ends.
    pub(super) fn table(&mut self, name: &str) -> Vec<String> {
        let path = self.rig.put(format!("/proc/net/{name}\0").as_bytes());
        let fd = self.rig.call(nr::__NR_open, &[path, 0, 0]);
        assert!(fd >= 0, "{name}: {fd}");
        let text = self.rig.read(fd as u64, 16 << 10).unwrap();
        self.rig.call(nr::__NR_close, &[fd as u64]);
        let text = String::from_utf8(text).unwrap();
        let width = match name {
            "tcp" => Some(149),
            "udp" | "route" => Some(127),
            _ => None,
        };
        assert!(text.lines().all(|line| width.is_none_or(|width| line.len() == width)), "{text}");
        text.lines().skip(1).map(|line| line.trim_end().to_string()).collect()
    }

    fn number(&self, fd: u64) -> u64 {
        self.inet(fd).number
    }
}

#[test]
fn streams_are_in_a_table() {
    let mut net = Net::begun();
    assert!(net.table("tcp").is_empty() && net.table("tcp6").is_empty());
    let unused = net.socket(AF_INET, STREAM);
    assert_eq!(net.bind(unused, "127.0.0.1:7000"), 0);
    let one = net.socket(AF_INET, STREAM | BRIEF);
    let listener = net.listener("127.0.0.1:8080");
    assert_eq!(net.connect(one, "127.0.0.1:8080"), 0);
    let other = net.accept(listener) as u64;
    let port: SocketAddr = net.own(one).parse().unwrap();
    let port = port.port();
    let [first, second, third] = [listener, one, other].map(|fd| net.number(fd));
    let end = "00:00000000 00000000     0        0";
    let expected = |states: [&str; 2], queued: usize| {
        [
            format!(
                "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 {end} {first} 1 0000000000000000 100 0 0 10 0"
            ),
            format!(
                "   1: 0100007F:{port:04X} 0100007F:1F90 {} 00000000:00000000 {end} {second} 1 0000000000000000 20 4 30 10 -1",
                states[0]
            ),
            format!(
                "   2: 0100007F:1F90 0100007F:{port:04X} {} 00000000:{queued:08X} {end} {third} 1 0000000000000000 20 4 30 10 -1",
                states[1]
            ),
        ]
    };
    assert_eq!(net.table("tcp"), expected(["01", "01"], 0));
    assert_eq!(net.send(one, b"bytes", 0), 5);
    net.poll(other);
    assert_eq!(net.table("tcp"), expected(["01", "01"], 5));
    assert_eq!(net.call(nr::__NR_shutdown, &[one, SHUT_WR.into()]), 0);
    assert_eq!(net.receive(other, 9, 0), Ok(b"bytes".to_vec()));
    net.poll(other);
    assert_eq!(net.table("tcp"), expected(["05", "08"], 0));
    // A socket is there once, however many have it.
    net.rig.fork();
    assert_eq!(net.table("tcp").len(), 3);
    let six = net.listener("[::1]:81");
    let line = format!(
        "   0: 00000000000000000000000001000000:0051 00000000000000000000000000000000:0000 0A 00000000:00000000 {end} {} 1 \
         0000000000000000 100 0 0 10 0",
        net.number(six)
    );
    assert_eq!(net.table("tcp6"), [line]);
    let silent = net.socket(AF_INET, STREAM | BRIEF);
    assert_eq!(net.connect_once(silent, &format!("{SILENT}:80")), error(EINPROGRESS));
    let line = net.table("tcp").pop().unwrap();
    assert!(line.contains(" 6302000A:0050 02 00000000:00000000 "), "{line}");
}

#[test]
fn datagrams_are_in_a_table() {
    let mut net = Net::begun();
    let (one, other) = (net.socket(AF_INET, DATAGRAM | BRIEF), net.socket(AF_INET6, DATAGRAM | BRIEF));
    assert!(net.table("udp").is_empty() && net.table("udp6").is_empty());
    assert_eq!((net.bind(one, "0.0.0.0:5000"), net.bind(other, "[::]:5001")), (0, 0));
    let end = "00:00000000 00000000     0        0";
    let line = format!(
        "    0: 00000000:1388 00000000:0000 07 00000000:00000000 {end} {} 2 0000000000000000 0",
        net.number(one)
    );
    assert_eq!(net.table("udp"), [line]);
    let line = format!(
        "    0: 00000000000000000000000000000000:1389 00000000000000000000000000000000:0000 07 00000000:00000000 {end} {} 2 \
         0000000000000000 0",
        net.number(other)
    );
    assert_eq!(net.table("udp6"), [line]);
    assert_eq!(net.connect(one, "10.0.2.15:9"), 0);
    let line = net.table("udp").pop().unwrap();
    assert!(line.contains(" 0F02000A:0009 01 "), "{line}");
    assert!(net.table("tcp").is_empty());
}

#[test]
fn interfaces_and_ways_are_in_tables() {
    let mut net = Net::begun();
    let zeros = "      0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0";
    assert_eq!(
        net.table("dev"),
        [
            " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed",
            &format!("    lo: {zeros}"),
            &format!("  eth0: {zeros}")
        ]
    );
    assert_eq!(
        net.table("route"),
        [
            "eth0\t00000000\t0202000A\t0003\t0\t0\t0\t00000000\t0\t0\t0",
            "eth0\t0002000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0"
        ]
    );
}
