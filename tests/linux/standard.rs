//! A program of Rust's standard library that is linked statically: threads, channels, files, processes, sockets and clocks. It prints one line for each, the same on Linux and on Tern.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex, Once, RwLock, mpsc};
use std::time::{Duration, Instant, SystemTime};
use std::{cell::Cell, env, fs, panic, thread};

thread_local! {
    static OWN: Cell<u64> = const { Cell::new(7) };
}

fn main() -> io::Result<()> {
    let words: Vec<String> = env::args().collect();
    match words.get(1).map(String::as_str) {
        Some("child") => child(),
        Some(place) => parent(&words[0], Path::new(place)),
        None => Err(io::Error::new(io::ErrorKind::InvalidInput, "a directory is missing")),
    }
}

/// Answers each line of the input, and ends with a status of its own.
fn child() -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        println!("{} {}", env::var("SAID").unwrap_or_default(), line?.to_uppercase());
    }
    std::process::exit(23)
}

fn parent(program: &str, place: &Path) -> io::Result<()> {
    println!("locks: {}", locks());
    println!("channels: {}", channels());
    println!("waits: {}", waits());
    println!("own values: {}", own_values());
    println!("a panic: {}", a_panic());
    println!("files: {}", files(place)?);
    println!("processes: {}", processes(program)?);
    println!("streams: {}", streams()?);
    println!("datagrams: {}", datagrams()?);
    println!("pairs: {}", pairs()?);
    println!("clocks: {}", clocks()?);
    println!("all is well");
    Ok(())
}

fn locks() -> u64 {
    let (sum, table) = (Arc::new(Mutex::new(0)), Arc::new(RwLock::new(HashMap::new())));
    let (count, start) = (Arc::new(AtomicU64::new(0)), Arc::new(Barrier::new(8)));
    let threads: Vec<_> = (0..8u64)
        .map(|number| {
            let (sum, table, count, start) = (sum.clone(), table.clone(), count.clone(), start.clone());
            thread::spawn(move || {
                start.wait();
                for step in 0..500 {
                    *sum.lock().unwrap() += step;
                    count.fetch_add(1, Ordering::Relaxed);
                    if step % 100 == number {
                        table.write().unwrap().insert((number, step), step);
                    }
                }
                table.read().unwrap().len() as u64
            })
        })
        .collect();
    let seen = threads.into_iter().map(|thread| thread.join().unwrap()).max().unwrap();
    *sum.lock().unwrap() + count.load(Ordering::Relaxed) + seen
}

fn channels() -> u64 {
    let (sender, receiver) = mpsc::sync_channel(4);
    thread::scope(|scope| {
        for number in 0..4u64 {
            let sender = sender.clone();
            scope.spawn(move || (0..250).for_each(|step| sender.send(number * step).unwrap()));
        }
        drop(sender);
        receiver.iter().sum()
    })
}

/// A condition that nobody makes true ends by its time, and another one by a thread.
fn waits() -> String {
    static ONCE: Once = Once::new();
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let limit = Duration::from_millis(5);
    let begin = Instant::now();
    let (guard, late) = pair.1.wait_timeout_while(pair.0.lock().unwrap(), limit, |is_set| !*is_set).unwrap();
    drop(guard);
    let is_late = late.timed_out() && begin.elapsed() >= limit;
    let other = pair.clone();
    let thread = thread::spawn(move || {
        ONCE.call_once(|| *other.0.lock().unwrap() = true);
        other.1.notify_all();
    });
    drop(pair.1.wait_while(pair.0.lock().unwrap(), |is_set| !*is_set).unwrap());
    thread.join().unwrap();
    let parked = thread::spawn(thread::park);
    parked.thread().unpark();
    parked.join().unwrap();
    format!("{is_late} {}", ONCE.is_completed())
}

fn own_values() -> u64 {
    let set = |value| {
        OWN.set(value);
        thread::yield_now();
        OWN.get()
    };
    let threads: Vec<_> = (0..16).map(|value| thread::spawn(move || set(value))).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>() * 10 + OWN.get()
}

fn a_panic() -> String {
    panic::set_hook(Box::new(|_| {}));
    let outcome =
        thread::Builder::new().name("careless".into()).spawn(|| -> u8 { [1, 2][env::args().count() + 7] });
    let is_err = outcome.unwrap().join().is_err();
    let caught = panic::catch_unwind(|| panic::panic_any(5)).unwrap_err();
    let _ = panic::take_hook();
    format!("{is_err} {:?}", caught.downcast_ref::<i32>())
}

fn files(place: &Path) -> io::Result<String> {
    let folder = place.join("standard");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("a/b"))?;
    let path = folder.join("a/text");
    let mut file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    (0..1000).try_for_each(|line| writeln!(file, "line {line}"))?;
    file.seek(SeekFrom::Start(5))?;
    let mut word = [0; 6];
    file.read_exact(&mut word)?;
    file.set_len(8000)?;
    file.sync_all()?;
    fs::hard_link(&path, folder.join("a/other"))?;
    std::os::unix::fs::symlink("text", folder.join("a/link"))?;
    fs::rename(folder.join("a/other"), folder.join("a/b/moved"))?;
    let copied = fs::copy(&path, folder.join("copy"))?;
    let mut names: Vec<String> = fs::read_dir(folder.join("a"))?
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<_>>()?;
    names.sort();
    let lines = BufReader::new(fs::File::open(folder.join("a/link"))?).lines().count();
    let missing = fs::read(folder.join("nosuch")).unwrap_err().kind();
    let whole = fs::canonicalize(folder.join("a/../a/link"))? == fs::canonicalize(&path)?;
    fs::remove_dir_all(&folder)?;
    Ok(format!(
        "{} {copied} {names:?} {lines} {missing:?} {whole}",
        String::from_utf8_lossy(&word).escape_debug()
    ))
}

fn processes(program: &str) -> io::Result<String> {
    let mut command = Command::new(program);
    command.arg("child").env("SAID", "heard:").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    child.stdin.take().unwrap().write_all(b"one\ntwo\n")?;
    let output = child.wait_with_output()?;
    let missing = Command::new("/nosuch/program").spawn().unwrap_err().kind();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(format!("{:?} {:?} {missing:?}", said, output.status.code()))
}

/// Clients send, and each gets back what it has sent, in capitals.
fn streams() -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let server = thread::spawn(move || -> io::Result<()> {
        for _ in 0..3 {
            let (mut stream, _) = listener.accept()?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            stream.write_all(text.to_uppercase().as_bytes())?;
        }
        Ok(())
    });
    let mut all = String::new();
    for text in ["a", "bc", &"xyz".repeat(20_000)] {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.write_all(text.as_bytes())?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        all += &format!("{}:{} ", answer.len(), answer == text.to_uppercase());
    }
    server.join().unwrap()?;
    let refused = TcpStream::connect(address).unwrap_err().kind();
    Ok(format!("{all}{refused:?}"))
}

fn datagrams() -> io::Result<String> {
    let (one, other) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    one.connect(other.local_addr()?)?;
    one.send(b"a datagram")?;
    let mut bytes = [0; 64];
    let (len, from) = other.recv_from(&mut bytes)?;
    other.set_read_timeout(Some(Duration::from_millis(2)))?;
    let late = other.recv_from(&mut [0; 8]).unwrap_err().kind();
    Ok(format!("{len} {} {late:?}", from == one.local_addr()?))
}

fn pairs() -> io::Result<String> {
    let (mut one, mut other) = UnixStream::pair()?;
    let writer = thread::spawn(move || one.write_all(&[5; 300_000]));
    let mut bytes = Vec::new();
    other.read_to_end(&mut bytes)?;
    writer.join().unwrap()?;
    Ok(format!("{} {}", bytes.len(), bytes.iter().all(|byte| *byte == 5)))
}

fn clocks() -> io::Result<String> {
    let (begin, now) = (Instant::now(), SystemTime::now());
    thread::sleep(Duration::from_millis(3));
    let is_later = begin.elapsed() >= Duration::from_millis(3) && now.elapsed().is_ok();
    let year =
        now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs() / 31_556_952 + 1970);
    Ok(format!("{is_later} {}", (2024..2200).contains(&year)))
}
