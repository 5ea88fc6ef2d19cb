//! `file-test mounting`: file systems that are mounted and unmounted, with files, directories and watches that are there meanwhile. The program has the right to mount, and `/`
//! is in memory. `file-test not-mounting`: it does not have it. `file-test mounting COUNT`: the server of all file systems is killed so often at random moments, and whatever was acknowledged is as it was: mounts, unmounts and writes.

use crate::check;
use crate::watching::expect;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use files::{Directory, Mounted};
use rt::api::{Failure, Name, Result, Status, process};
use rt::random::{self, Generator};
use rt::retry::while_gone;
use rt::{home, println, sys, thread, time};
use vfs::How;
use vfs::watch::Change;

/// File systems that can be mounted beside those of the description.
const MOUNTED_MAX: usize = 64;

/// Pause before a kill, at most, in µs.
const PAUSE_US: u64 = 20_000;
/// Least pause between two ends of a server: `root` gives one up that ends more often than 255 times in ten seconds.
const PAUSE_MIN_US: u64 = 40_000;

/// Changes that were acknowledged. One at least comes between two kills, on a machine of any speed.
static ACKNOWLEDGED: AtomicU64 = AtomicU64::new(0);

/// The kills, or the changes, are over.
static IS_OVER: AtomicBool = AtomicBool::new(false);

fn refuses(outcome: Result<()>, status: Status, what: &str) -> Result<()> {
    check(outcome == Err(Failure::Refused(status)), &format!("{what}: {outcome:?}, not {status:?}"))
}

fn has(root: &Directory, path: &str, content: &[u8]) -> Result<()> {
    let read = root.read(path, 1 << 16)?;
    check(read == content, &format!("{path} has {:?}", String::from_utf8_lossy(&read)))
}

fn is_there(root: &Directory, path: &str) -> Result<bool> {
    match root.stat(path, true) {
        Ok(_) => Ok(true),
        Err(Failure::Refused(Status::NotFound)) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Mounts and unmounts in all ways.
pub fn all() -> Result<()> {
    let root = Directory::root()?;
    let before = root.mounts()?;
    what_is_open_stays(&root)?;
    one_over_the_other(&root)?;
    refusals(&root)?;
    places_vanish(&root)?;
    bounds(&root)?;
    check(root.mounts()? == before, "something is still mounted")
}

/// Files, directories and watches that are open when something is mounted over them, or unmounted, are what they were.
fn what_is_open_stays(root: &Directory) -> Result<()> {
    for directory in ["/under", "/over"] {
        root.mkdir(directory)?;
        root.write(format!("{directory}/file"), directory.as_bytes())?;
    }
    let under = (root.open("/under/file", How::default())?, root.enter("/under")?);
    let mut watch_under = root.watch("/under")?;
    root.mount("/over", "/under")?;
    has(root, "/under/file", b"/over")?;
    under.0.append(b"!")?;
    has(&under.1, "file", b"/under!")?;
    expect(&mut watch_under, &[(Change::Contents, "file")])?;
    let over = (root.open("/under/file", How::default())?, root.enter("/under")?);
    let mut watch_over = root.watch("/under")?;
    let elsewhere = Status::OtherFileSystem;
    refuses(root.rename("/under/file", "/over/moved"), elsewhere, "a file goes to another file system")?;
    refuses(root.rename("/under", "/moved"), elsewhere, "a file system is moved")?;
    refuses(root.rename("/over", "/moved"), Status::Busy, "what is seen elsewhere is moved")?;
    for path in ["/over", "/under"] {
        refuses(root.rmdir(path), Status::Busy, "a name that is needed is removed")?;
    }
    root.unmount("/under")?;
    has(root, "/under/file", b"/under!")?;
    over.0.append(b"?")?;
    has(&over.1, "file", b"/over?")?;
    has(root, "/over/file", b"/over?")?;
    expect(&mut watch_over, &[(Change::Contents, "file")])?;
    expect(&mut watch_under, &[])?;
    root.rename("/over", "/moved")?;
    for directory in ["/under", "/moved"] {
        root.unlink(format!("{directory}/file"))?;
        root.rmdir(directory)?;
    }
    Ok(())
}

/// The one that was mounted last has a path, and those below are there again when it goes.
fn one_over_the_other(root: &Directory) -> Result<()> {
    root.mkdir("/a")?;
    root.mkdir("/a/b")?;
    root.mount("boot", "/a")?;
    check(is_there(root, "/a/etc/motd")? && !is_there(root, "/a/b")?, "the boot's files are not there")?;
    // All of it in itself: no circle, since what is mounted is not seen there.
    root.mount("/", "/a/etc")?;
    check(is_there(root, "/a/etc/a/b")? && !is_there(root, "/a/etc/a/etc")?, "it leads round in a circle")?;
    refuses(root.unmount("/a"), Status::Busy, "one with another one below it")?;
    root.mount("boot/etc", "/a/etc")?;
    check(is_there(root, "/a/etc/motd")?, "the third is not there")?;
    root.mount("/a/etc", "/a")?;
    check(is_there(root, "/a/motd")? && !is_there(root, "/a/etc")?, "the fourth is not there")?;
    refuses(root.unmount("/a/etc"), Status::NotFound, "one that is hidden")?;
    root.unmount("/a")?;
    root.unmount("/a/etc")?;
    check(is_there(root, "/a/etc/a/b")?, "the second is not there any more")?;
    root.unmount("/a/etc")?;
    root.unmount("/a")?;
    check(is_there(root, "/a/b")?, "what was there is not there any more")?;
    refuses(root.unmount("/a"), Status::NotFound, "nothing")?;
    // Those of the description can be hidden, and stay.
    refuses(root.unmount("/etc"), Status::Denied, "one of the description")?;
    refuses(root.unmount("/"), Status::Busy, "the root")?;
    root.mount("/a", "/etc")?;
    check(is_there(root, "/etc/b")? && !is_there(root, "/etc/motd")?, "it is not hidden")?;
    root.unmount("/etc")?;
    check(is_there(root, "/etc/motd")?, "it is still hidden")?;
    root.mount("boot", "/")?;
    check(is_there(root, "/shell")? && !is_there(root, "/a")?, "there is another root")?;
    root.unmount("/")
}

/// `/a` is there, with a directory `b`.
fn refusals(root: &Directory) -> Result<()> {
    root.write("/file", b"")?;
    root.symlink("/a", "/link")?;
    let long = "n".repeat(256);
    for (source, at, status) in [
        ("nosuch", "/a", Status::Denied),
        ("files", "/a", Status::Denied),
        ("clock", "/a", Status::Denied),
        ("console", "/a", Status::BadRequest),
        ("", "/a", Status::BadRequest),
        ("boot\0", "/a", Status::BadRequest),
        ("boot", "/a\0", Status::BadRequest),
        ("boot/nosuch", "/a", Status::NotFound),
        ("boot/shell", "/a", Status::NotDirectory),
        ("/nosuch", "/a", Status::NotFound),
        ("/file", "/a", Status::NotDirectory),
        ("boot", "/nosuch", Status::NotFound),
        ("boot", "/file", Status::NotDirectory),
        ("boot", "/link", Status::NotDirectory),
        ("boot", "/link/b", Status::NotDirectory),
        ("boot", &long, Status::NameTooLong),
        (&format!("/{long}"), "/a", Status::NameTooLong),
    ] {
        refuses(root.mount(source, at), status, &format!("{source:?} at {at:?}"))?;
    }
    // A link on the way to a source is followed.
    root.mount("/link", "/a/b")?;
    check(is_there(root, "/a/b/b")?, "a link was not followed")?;
    let above = root.enter("/a")?;
    refuses(above.mount("boot", "/b"), Status::Denied, "a directory that is not the root mounts")?;
    root.unmount("/a/b")?;
    let own = root.enter("/a/b")?;
    refuses(own.mount("boot", "/"), Status::Unsupported, "a directory of one file system mounts")?;
    root.unlink("/link")?;
    root.unlink("/file")
}

/// A place can be removed by whoever had the directory above it before. What is mounted stays until it is unmounted.
fn places_vanish(root: &Directory) -> Result<()> {
    let above = root.enter("/a")?;
    root.mount("boot/etc", "/a/b")?;
    above.rmdir("b")?;
    check(is_there(root, "/a/b/motd")?, "it went with its place")?;
    check(root.enter("/a")?.entries()?.is_empty(), "the place is still there")?;
    root.unmount("/a/b")?;
    check(!is_there(root, "/a/b")?, "there is something without a place")
}

fn bounds(root: &Directory) -> Result<()> {
    let name = format!("/a/{}", "n".repeat(255));
    root.mkdir(&name)?;
    let source = format!("ram{name}");
    root.mount(&source, "/a")?;
    root.mkdir(format!("/a/{}", "m".repeat(255)))?;
    root.mount("boot", format!("/a/{}", "m".repeat(255)))?;
    let last = root.mounts()?.pop();
    let path = format!("/a/{}", "m".repeat(255)).into_bytes();
    check(last == Some(Mounted { path, source: b"boot".to_vec() }), "a long name is another one")?;
    root.unmount(format!("/a/{}", "m".repeat(255)))?;
    root.rmdir(format!("/a/{}", "m".repeat(255)))?;
    root.unmount("/a")?;
    root.rmdir(&name)?;
    for _ in 0..MOUNTED_MAX {
        root.mount("boot", "/a")?;
    }
    refuses(root.mount("boot", "/a"), Status::Full, "one more than there can be")?;
    check(is_there(root, "/a/etc/motd")?, "the last one is not there")?;
    for _ in 0..MOUNTED_MAX {
        root.unmount("/a")?;
    }
    refuses(root.unmount("/a"), Status::NotFound, "one more than there were")?;
    root.rmdir("/a")
}

/// Without the right nothing is changed, and everything is told.
pub fn refused() -> Result<()> {
    let root = Directory::root()?;
    let before = root.mounts()?;
    refuses(root.mount("boot", "/etc"), Status::Denied, "a program without that right mounts")?;
    refuses(root.mount("/", "/etc"), Status::Denied, "a program without that right mounts")?;
    refuses(root.unmount("/etc"), Status::Denied, "a program without that right unmounts")?;
    refuses(root.unmount("/nosuch"), Status::Denied, "a program without that right unmounts")?;
    check(process::keep(home(), b"text") == Err(Failure::Refused(Status::Denied)), "a program keeps a text")?;
    check(root.mounts()? == before, "something was changed")
}

/// Sources that are mounted and unmounted while the server is killed, and their places. None needs another one.
const TOGGLED: [(&str, &str); 3] = [("boot/etc", "/k0"), ("boot", "/k1"), ("ram/k3", "/k2")];

/// Files that are written meanwhile, below what is mounted or where it would be.
const FILES: u64 = 6;

/// Changes what is mounted, writes files there, and looks at it, until the server was killed so often.
pub fn killed(count: &str) -> Result<()> {
    let count: u64 = count.parse().map_err(|_| Failure::Refused(Status::BadRequest))?;
    let root = Directory::root()?;
    for directory in ["/k0", "/k1", "/k2", "/k3"] {
        root.mkdir(directory)?;
    }
    let priority = sys::thread_info(sys::myself()).map_err(Failure::Kernel)?.priority;
    let killer = thread::spawn(priority + 1, move || {
        let outcome = kill_mounts(count);
        IS_OVER.store(true, Ordering::Release);
        outcome
    })
    .map_err(Failure::Kernel)?;
    let outcome = toggle();
    IS_OVER.store(true, Ordering::Release);
    killer.join().unwrap_or(Err(Failure::Garbled))?;
    let (changes, unknown) = outcome?;
    println!("mounts was killed {count} times during {changes} changes, {unknown} of them without an answer");
    // A kill costs one answer at most.
    check(unknown <= count && changes - unknown >= count, "answers are missing")
}

/// Files that were written, each in the directory where its path led, and the text that was acknowledged last.
struct Written(Vec<(String, String)>);

impl Written {
    /// Writes a file at `/k2`, which `is_mounted` is mounted at or not, and reads it there. Without an answer it is written again.
    fn write(&mut self, count: u64, is_mounted: bool) -> Result<()> {
        let (name, text) = (count % FILES, format!("text {count}"));
        let path = format!("/k2/{name}");
        while_gone(|| Directory::root()?.write(&path, text.as_bytes()))?;
        while_gone(|| has(&Directory::root()?, &path, text.as_bytes()))?;
        let place = format!("{}/{name}", if is_mounted { "/k3" } else { "/k2" });
        self.0.retain(|(other, _)| *other != place);
        self.0.push((place, text));
        Ok(())
    }

    /// All are there.
    fn check(&self) -> Result<()> {
        self.0
            .iter()
            .try_for_each(|(place, text)| while_gone(|| has(&Directory::root()?, place, text.as_bytes())))
    }
}

fn number(below: u64) -> u64 {
    random::generator().map_or_else(|_| random::weak_number(), Generator::number) % below
}

/// Changes that were made, and those among them of which the outcome was not told.
fn toggle() -> Result<(u64, u64)> {
    let first = while_gone(list)?;
    let mut mounted: Vec<usize> = Vec::new();
    let (mut changes, mut unknown) = (0, 0);
    let mut written = Written(Vec::new());
    while !IS_OVER.load(Ordering::Acquire) {
        let which = number(TOGGLED.len() as u64) as usize;
        let (source, at) = TOGGLED[which];
        let mut changed = mounted.clone();
        let is_there = mounted.contains(&which);
        if is_there {
            changed.retain(|&other| other != which);
        } else {
            changed.push(which);
        }
        let outcome = Directory::root()
            .and_then(|root| if is_there { root.unmount(at) } else { root.mount(source, at) });
        changes += 1;
        if let Err(failure) = outcome {
            check(failure.server_is_gone(), &format!("{failure:?} is told of a server that was killed"))?;
        }
        let found = while_gone(list)?;
        let is = |mounted: &[usize]| {
            let more = mounted.iter().map(|&which| TOGGLED[which]);
            let more = more.map(|(source, at)| Mounted { path: at.into(), source: source.into() });
            found == first.iter().cloned().chain(more).collect::<Vec<_>>()
        };
        // Without an answer it is made or not.
        let is_made = is(&changed);
        check(
            is_made || (outcome.is_err() && is(&mounted)),
            &format!("{outcome:?}, but {found:?} of {changed:?}"),
        )?;
        unknown += u64::from(outcome.is_err());
        ACKNOWLEDGED.fetch_add(u64::from(outcome.is_ok()), Ordering::Release);
        if is_made {
            mounted = changed;
        }
        written.write(changes, mounted.contains(&2))?;
    }
    for which in mounted {
        while_gone(|| match Directory::root()?.unmount(TOGGLED[which].1) {
            Err(Failure::Refused(Status::NotFound)) => Ok(()),
            outcome => outcome,
        })?;
    }
    written.check()?;
    Ok((changes, unknown))
}

fn list() -> Result<Vec<Mounted>> {
    Directory::root()?.mounts()
}

fn kill_mounts(count: u64) -> Result<()> {
    let victim = Name::new("mounts").ok_or(Failure::Garbled)?;
    let (mut left, mut before) = (count, 0);
    while left > 0 && !IS_OVER.load(Ordering::Acquire) {
        time::sleep(Duration::from_micros(PAUSE_MIN_US + number(PAUSE_US)));
        let now = ACKNOWLEDGED.load(Ordering::Acquire);
        if now == before {
            continue;
        }
        before = now;
        for place in 0.. {
            let Some(entry) = process::task_at(home(), place)? else { break };
            if entry.program() == victim {
                left -= u64::from(process::kill(home(), entry.id()).is_ok());
                break;
            }
        }
    }
    Ok(())
}
