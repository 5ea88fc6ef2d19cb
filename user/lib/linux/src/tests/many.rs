//! More files in use than the server of files has objects for.

use crate::errno::ENFILE;
use crate::frames::PAGE;
use crate::world::{OWN, World};
use linux_raw_sys::general::*;
use std::format;
use std::vec;
use std::vec::Vec;
use vfs::Ram;
use vfs::page::Plain;
use vfs::remote::{Remote, Served};

type Server = Served<Ram<Plain>>;
type Sandbox = World<Remote<Server>>;

/// Objects of the server.
const OBJECTS: usize = 100;

/// Files in use.
const FILES: u64 = 1000;

fn sandbox() -> (Sandbox, Server) {
    let served = Served::new(Ram::new(1 << 25, || 7), OBJECTS);
    let files = Remote::new(served.clone()).unwrap();
    (World::on(files), served)
}

fn text(number: u64) -> Vec<u8> {
    format!("text of {number}").into_bytes()
}

/// Each file has its text, by a small read.
fn all_have_their_texts(sandbox: &mut Sandbox, fds: &[u64]) {
    for (number, fd) in (0..).zip(fds) {
        let count = sandbox.now(1, __NR_pread64, &[*fd, OWN + 8 * PAGE, 100, 0]).unwrap();
        assert_eq!(sandbox.bytes_read(1, count), text(number));
    }
}

#[test]
fn a_process_has_a_thousand_files_open() {
    let (mut sandbox, served) = sandbox();
    let mut fds = Vec::new();
    for number in 0..FILES {
        fds.push(sandbox.open(1, &format!("/{number}"), O_RDWR | O_CREAT).unwrap());
    }
    for (number, fd) in (0..).zip(&fds) {
        let text = text(number);
        assert_eq!(sandbox.write(1, *fd, &text), Some(Ok(text.len() as u64)));
    }
    all_have_their_texts(&mut sandbox, &fds);
    assert!(served.open_count() <= OBJECTS);
    // Files without names stay open, but for one object that is left for the others.
    let mut removed = 0;
    for number in 0..FILES {
        match sandbox.by_path(1, __NR_unlink, &format!("/{number}"), &[]) {
            Ok(_) => removed += 1,
            Err(error) => assert_eq!(error, ENFILE),
        }
    }
    assert!((OBJECTS - 10..OBJECTS).contains(&removed), "{removed}");
    all_have_their_texts(&mut sandbox, &fds);
    for fd in fds {
        sandbox.now(1, __NR_close, &[fd]).unwrap();
    }
    for number in 0..FILES {
        let outcome = sandbox.by_path(1, __NR_unlink, &format!("/{number}"), &[]);
        assert!(outcome != Err(ENFILE), "{number}");
    }
    assert_eq!(served.closed_unsynced(), 0);
}

/// Bytes that a process writes where files are mapped reach these also if they were closed meanwhile. There is an end of what is mapped.
#[test]
fn many_files_are_mapped() {
    let (mut sandbox, served) = sandbox();
    let mut mapped = Vec::new();
    let refused = loop {
        let text = text(mapped.len() as u64);
        let fd = sandbox.open(1, &format!("/{}", mapped.len()), O_RDWR | O_CREAT).unwrap();
        assert_eq!(sandbox.write(1, fd, &text), Some(Ok(text.len() as u64)));
        let rights = u64::from(PROT_READ | PROT_WRITE);
        let at = sandbox.now(1, __NR_mmap, &[0, PAGE, rights, MAP_SHARED.into(), fd, 0]);
        sandbox.now(1, __NR_close, &[fd]).unwrap();
        match at {
            Ok(at) => mapped.push(at),
            Err(error) => break error,
        }
    };
    assert_eq!(refused, ENFILE);
    assert!(mapped.len() > 1000, "{}", mapped.len());
    // One for each object, and more.
    for number in (0..mapped.len()).step_by(10) {
        let mut bytes = vec![0; text(number as u64).len()];
        sandbox.system.read(1, mapped[number], &mut bytes).unwrap();
        assert_eq!(bytes, text(number as u64));
        sandbox.put(1, mapped[number], b"T");
    }
    for (number, at) in mapped.iter().enumerate() {
        sandbox.now(1, __NR_munmap, &[*at, PAGE]).unwrap();
        let fd = sandbox.open(1, &format!("/{number}"), O_RDONLY).unwrap();
        let first = if number % 10 == 0 { b"T" } else { b"t" };
        assert_eq!(sandbox.read(1, fd, 1), Some(Ok(first.to_vec())), "{number}");
        sandbox.now(1, __NR_close, &[fd]).unwrap();
    }
    assert!(served.open_count() <= OBJECTS);
}
