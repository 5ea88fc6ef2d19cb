//! A server of files: the host asks through a forwarded port, while clients dawdle and servers are killed. All of it on one machine.

use crate::files::{check_disk, tool};
use crate::world::{LIMIT, Named, Scratch, Verdict, World, failed};
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use xtask::archive::pack;
use xtask::guest::{End, Guest};
use xtask::machine::{Boot, Forward, Machine};
use xtask::{paths, peripherals};

/// Bytes of the file that is fetched again and again.
const BIG: u32 = 150_000;

/// Clients that send half a request: more than the server has threads.
const SLOW: usize = 20;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 1] = [("files_are_served_whoever_is_killed", files_are_served_whoever_is_killed)];
    Vec::from(trials.map(|(name, verdict)| world.trial("network", format!("web::{name}"), verdict)))
}

/// Contents of the big file.
fn big() -> Vec<u8> {
    (0..BIG).map(|at| ((at / 7) ^ (at >> 11)) as u8).collect()
}

/// A disk with files below /www, and one beside it.
fn make_disk(folder: &Path, disk: &Path) -> Verdict {
    let www = folder.join("www");
    fs::create_dir_all(www.join("a b"))?;
    fs::write(folder.join("secret"), "nobody's business")?;
    fs::write(www.join("index.html"), "<p>Tern\n")?;
    fs::write(www.join("a b/x.txt"), "text in a folder\n")?;
    fs::write(www.join("big"), big())?;
    symlink("../secret", www.join("out"))?;
    let output = Command::new("/usr/sbin/mke2fs")
        .args(["-q", "-t", "ext4", "-b", "4096", "-d"])
        .args([folder.as_os_str(), disk.as_os_str(), "32M".as_ref()])
        .output()?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
}

/// The machine of `./tern run --system web --script - --net PORT:80 --disk DISK`.
fn machine(world: &World, scratch: &Path, port: u16) -> Result<Machine, Failed> {
    let entries = world.entries_of(|files| {
        let mut system = xtask::system::read("web", files)?;
        // Files are kept and deleted here, too.
        let server = system.programs.iter_mut().find(|program| program.name == "httpd");
        server.ok_or(xtask::Error::new("there is no httpd"))?.arguments.push_str(" write");
        Ok(system)
    })?;
    let (archive, disk) = (scratch.join("boot.cpio"), scratch.join("disk"));
    paths::write(&archive, &pack(&entries))?;
    make_disk(&scratch.join("files"), &disk)?;
    let kernel = world.system.kernel.clone();
    let mut machine =
        Machine::booting(Boot::Direct { kernel, archive: Some(archive) }).with("init=shell args=script");
    machine.net = Some(Forward { host: port, guest: 80 });
    machine.disk = Some(disk);
    Ok(machine)
}

/// Connects with the guest's port.
fn connect(port: u16, patience: Duration) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(patience))?;
    Ok(stream)
}

/// Sends bytes, and reads the answers up to the end of the connection.
fn ask(port: u16, request: &str, patience: Duration) -> std::io::Result<Vec<u8>> {
    let mut stream = connect(port, patience)?;
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

/// The answer to GET: its status, and its body if that is as long as its head says.
fn get(port: u16, target: &str) -> std::io::Result<(u16, Vec<u8>)> {
    get_within(LIMIT, port, target)
}

fn get_within(patience: Duration, port: u16, target: &str) -> std::io::Result<(u16, Vec<u8>)> {
    let request = format!("GET {target} HTTP/1.1\r\nHost: tern\r\nConnection: close\r\n\r\n");
    let answer = ask(port, &request, patience)?;
    let bad = || std::io::Error::new(ErrorKind::UnexpectedEof, "the answer is not whole");
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or_else(bad)?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let code = head.get(9..12).and_then(|code| code.parse().ok()).ok_or_else(bad)?;
    let len = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
    let body = &answer[end + 4..];
    if len == Some(body.len()) { Ok((code, body.to_vec())) } else { Err(bad()) }
}

/// Asks until there is an answer: a server that has just started, or that has ended, has none.
fn get_at_last(port: u16, target: &str) -> Result<(u16, Vec<u8>), Failed> {
    let begin = Instant::now();
    loop {
        // A server that is killed while it has the connection may say nothing of it.
        match get_within(LIMIT / 10, port, target) {
            Ok(answer) => return Ok(answer),
            Err(error) if begin.elapsed() > LIMIT => return Err(format!("{target}: {error}").into()),
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn check(is_so: bool, what: &str) -> Verdict {
    if is_so { Ok(()) } else { Err(format!("expected that {what}").into()) }
}

/// Somebody who gets the big file again and again.
struct Reader {
    is_over: Arc<AtomicBool>,
    good: Arc<AtomicUsize>,
    bad: Arc<AtomicUsize>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Reader {
    fn start(port: u16) -> Reader {
        let (is_over, good, bad) = (Arc::<AtomicBool>::default(), Arc::default(), Arc::default());
        let (theirs, seen_good, seen_bad): (_, Arc<AtomicUsize>, Arc<AtomicUsize>) =
            (is_over.clone(), Arc::clone(&good), Arc::clone(&bad));
        thread::spawn(move || {
            let expected = big();
            while !theirs.load(Ordering::Relaxed) {
                let is_good = get(port, "/big").is_ok_and(|(code, body)| code == 200 && body == expected);
                let count = if is_good { &seen_good } else { &seen_bad };
                count.fetch_add(1, Ordering::Relaxed);
                // Somebody may have to start.
                thread::sleep(Duration::from_millis(if is_good { 0 } else { 20 }));
            }
        });
        Reader { is_over, good, bad }
    }

    /// Waits until the file has come once more from its beginning to its end.
    fn wait(&self) -> Verdict {
        // One may have begun before.
        let (begin, until) = (Instant::now(), self.good.load(Ordering::Relaxed) + 2);
        while self.good.load(Ordering::Relaxed) < until {
            check(begin.elapsed() < LIMIT, "the file comes")?;
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

fn files_are_served_whoever_is_killed(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let port = peripherals::free_port()?;
    let mut guest = Guest::start(&machine(world, &scratch.0, port)?)?;
    guest.limit(Some(3 * LIMIT));
    let begun = guest.expect_begin();
    let outcome = check(begun, "the shell begins").and_then(|()| {
        answers(port)?;
        slow_clients(port)?;
        files_are_kept(port)?;
        in_the_guest(&mut guest)?;
        killed(&mut guest, port)?;
        kept_while_servers_end(&mut guest, port)
    });
    guest.send(b"exit 0\n");
    let end = guest.finish();
    match outcome {
        Ok(()) if end == End::Orderly(0) => nothing_is_left(&scratch.0.join("disk")),
        Ok(()) => Err(failed("it did not end in order", &end, &guest.text())),
        Err(why) => Err(failed(why.message().unwrap_or_default(), &end, &guest.text())),
    }
}

/// Names of files that came to servers before, at this port and at another one.
const LEFT: [&str; 2] = [".part-80-0000000000000001-9", ".part-81-0000000000000001-9"];

/// Of what came to a server that was ended nothing is there when a file has come to the next one; what is another's stays.
fn nothing_is_left(disk: &Path) -> Verdict {
    let disk = disk.to_str().unwrap_or_default();
    check_disk(disk)?;
    let list = tool("debugfs", &["-R", "ls -p /www", disk])?;
    let parts: Vec<&str> = list.split('/').filter(|name| name.starts_with(".part-")).collect();
    check(parts == [LEFT[1]], &format!("nothing is left but {}, and not {parts:?}", LEFT[1]))
}

/// Each answer is what it should be.
fn answers(port: u16) -> Verdict {
    check(get_at_last(port, "/")? == (200, b"<p>Tern\n".to_vec()), "the index is there")?;
    check(get(port, "/big")? == (200, big()), "the big file is whole")?;
    let (code, list) = get(port, "/a%20b/")?;
    let list = String::from_utf8_lossy(&list).into_owned();
    check(code == 200 && list.contains("<a href=\"./x.txt\">x.txt</a>"), "a folder is listed")?;
    for (target, code) in [("/a%20b", 301), ("/nosuch", 404), ("/%2e%2e/secret", 404), ("/out", 404)] {
        check(get(port, target)?.0 == code, &format!("{target} is answered by {code}"))?;
    }
    for (request, begin) in [
        ("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 405 "),
        ("GET /%zz HTTP/1.1\r\nHost: t\r\n\r\n", "HTTP/1.1 400 "),
        (&format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(9000)), "HTTP/1.1 431 "),
    ] {
        let answer = ask(port, request, LIMIT)?;
        check(answer.starts_with(begin.as_bytes()), &format!("it is {begin:?}"))?;
    }
    // Several requests by one connection, of which the last is cut.
    let mut stream = connect(port, LIMIT)?;
    stream.write_all(
        b"HEAD /big HTTP/1.1\r\nHost: t\r\n\r\nGET /a%20b/x.txt HTTP/1.1\r\nHost: t\r\n\r\nGET / HTTP/1.1\r\nHo",
    )?;
    thread::sleep(Duration::from_millis(10));
    stream.write_all(b"st: t\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let bodies: Vec<&str> = answer.split("\r\n\r\n").collect();
    let [first, second, third, index] = bodies[..] else { return Err(format!("{answer:?}").into()) };
    check(first.contains(&format!("Content-Length: {BIG}\r\n")), "HEAD tells the length")?;
    check(
        second.ends_with("keep-alive") && third.starts_with("text in a folder\nHTTP/1.1 200 "),
        "it goes on",
    )?;
    check(index == "<p>Tern\n", "the last is answered")
}

/// The answer to a request without a body, or with one.
fn told(port: u16, method: &str, target: &str, body: Option<&[u8]>) -> std::io::Result<u16> {
    let len = body.map_or(String::new(), |body| format!("Content-Length: {}\r\n", body.len()));
    let mut stream = connect(port, LIMIT)?;
    let head = format!("{method} {target} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{len}\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.unwrap_or_default())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let code = answer.get(9..12).and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
    code.ok_or(ErrorKind::UnexpectedEof.into())
}

fn put(port: u16, target: &str, body: &[u8]) -> std::io::Result<u16> {
    told(port, "PUT", target, Some(body))
}

/// Files that are kept, replaced and deleted, and those that are not.
fn files_are_kept(port: u16) -> Verdict {
    let nothing = |target: &str| put(port, target, b"x");
    check(put(port, "/note", b"first")? == 201, "a file is kept")?;
    check(get(port, "/note")? == (200, b"first".to_vec()), "it is there")?;
    check(put(port, "/note", &big())? == 204, "it is replaced")?;
    check(get(port, "/note")? == (200, big()), "it is another one")?;
    for (target, code) in [
        ("/nosuch/x", 409),
        ("/", 409),
        ("/a%20b", 409),
        ("/x/", 409),
        ("/.part-80-0", 409),
        ("/../../note2", 201),
        ("/out", 201),
    ] {
        check(nothing(target)? == code, &format!("to keep {target} is answered by {code}"))?;
    }
    check(get(port, "/note2")?.1 == b"x" && get(port, "/out")?.1 == b"x", "nothing leads out")?;
    // A client that goes leaves nothing, and one that asks first is answered.
    let mut stream = connect(port, LIMIT)?;
    stream.write_all(b"PUT /half HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\nhalf")?;
    drop(stream);
    let mut stream = connect(port, LIMIT)?;
    stream
        .write_all(b"PUT /asked HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")?;
    let mut told_so = [0; 25];
    stream.read_exact(&mut told_so)?;
    check(told_so.starts_with(b"HTTP/1.1 100 Continue\r\n"), "it may go on")?;
    // The next request stands behind the body.
    stream.write_all(b"okGET /asked HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    check(answer.starts_with("HTTP/1.1 201 ") && answer.ends_with("\r\n\r\nok"), "it is kept as well")?;
    check(get(port, "/half")?.0 == 404, "half a file is none")?;
    let list = String::from_utf8_lossy(&get(port, "/a%20b/")?.1).into_owned();
    check(!list.contains("part"), "what is not whole is not shown")?;
    let long = "PUT /long HTTP/1.1\r\nHost: t\r\nContent-Length: 100000000000\r\n\r\n";
    check(ask(port, long, LIMIT)?.starts_with(b"HTTP/1.1 413 "), "it is too long")?;
    for target in ["/note2", "/out", "/asked"] {
        check(told(port, "DELETE", target, None)? == 204, "it is deleted")?;
    }
    check(told(port, "DELETE", "/note2", None)? == 404, "it is deleted once")?;
    check(told(port, "DELETE", "/a%20b", None)? == 409, "a directory stays")
}

/// A file is the old one or the new one, whichever server ends while it comes; and what a client has heard of is there.
fn kept_while_servers_end(guest: &mut Guest, port: u16) -> Verdict {
    let version = |number: u8| vec![number; 100_000];
    check(put(port, "/kept", &version(0)).is_ok_and(|code| code == 201), "it is kept")?;
    for name in LEFT {
        guest.send(format!("echo x > /disk/www/{name}\n").as_bytes());
    }
    let mut last = 0;
    for (number, server) in [(1, "ext4"), (2, "virtio-block"), (3, "mounts"), (4, "httpd"), (5, "ext4")] {
        let client = thread::spawn(move || put(port, "/kept", &version(number)));
        guest.send(format!("kill {server}\n").as_bytes());
        check(guest.expect(&format!("{server} (task")), &format!("{server} ends"))?;
        let outcome = client.join().map_err(|_| "the client has panicked")?;
        let (_, found) = get_at_last(port, "/kept")?;
        let is_heard = outcome.is_ok_and(|code| code == 204);
        let is_new = found == version(number);
        check(is_new || (!is_heard && found == version(last)), "it is the old one or the new one")?;
        if is_new {
            last = number;
        }
    }
    check(put(port, "/kept", &version(9))? == 204, "it is kept again")?;
    check(get(port, "/kept")? == (200, version(9)), "it is the last one")
}

/// Clients that say nothing more do not keep the server from those that do, and are told so.
fn slow_clients(port: u16) -> Verdict {
    let mut slow = Vec::new();
    for _ in 0..SLOW {
        let mut stream = connect(port, LIMIT)?;
        stream.write_all(b"GET / HT")?;
        slow.push(stream);
        // A listener has eight places; connections that come while all are taken are turned away.
        thread::sleep(Duration::from_millis(100));
    }
    check(get_at_last(port, "/")?.0 == 200, "somebody quick is served")?;
    // Those that have been with a thread; others have more time, and go now.
    for mut stream in slow.into_iter().take(SLOW / 2) {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        check(answer.starts_with(b"HTTP/1.1 408 "), "slow clients are told so")?;
    }
    Ok(())
}

/// Programs in the guest, by loopback.
fn in_the_guest(guest: &mut Guest) -> Verdict {
    guest.send(
        b"run fetch http://127.0.0.1/\nrun fetch http://localhost:80/a%20b/x.txt > /kept\ncat /kept\n\
          run fetch http://127.0.0.1/nosuch\nrun fetch http://127.0.0.1:81/\nrun fetch x\nrun nslookup localhost 10.0.2.2\n",
    );
    for text in [
        "<p>Tern\n",
        "text in a folder\n",
        "fetch: http://127.0.0.1/nosuch: the server answers 404\n",
        "fetch: http://127.0.0.1:81/: the connection is closed\n",
        "fetch: x: expected http://HOST[:PORT]/PATH\n",
        "localhost  127.0.0.1\n",
        "10.0.2.2  10.0.2.2\n",
    ] {
        check(guest.expect(text.trim_end()), &format!("the guest says {text:?}"))?;
    }
    Ok(())
}

/// While a file is fetched again and again, the servers behind it are killed. Nobody who reads notices, until the network server itself is.
fn killed(guest: &mut Guest, port: u16) -> Verdict {
    let reader = Reader::start(port);
    for server in ["virtio-block", "ext4", "mounts", "virtio-net"] {
        reader.wait()?;
        guest.send(format!("kill {server}\n").as_bytes());
        check(guest.expect(&format!("{server} (task")), &format!("{server} ends"))?;
    }
    reader.wait()?;
    let bad = reader.bad.load(Ordering::Relaxed);
    check(bad == 0, &format!("nobody notices ({bad} answers were not whole)"))?;
    // Clients that are being answered when the network server ends may never hear of it; those that come later are served again.
    for server in ["network", "httpd"] {
        guest.send(format!("kill {server}\n").as_bytes());
        check(guest.expect(&format!("{server} (task")), &format!("{server} ends"))?;
        check(get_at_last(port, "/big")? == (200, big()), "the big file is whole again")?;
    }
    Ok(())
}
