//! Two clients of one server, each with what it has found: both see at once what the other one has changed.

use crate::as_on_linux::{Random, programs};
use crate::served::Served;
use std::sync::atomic::{AtomicU64, Ordering};
use vfs::page::Plain;
use vfs::path::Last;
use vfs::remote::Remote;
use vfs::{Attributes, Changes, Error, FileSystem, How, Inode, Ram, Result, Volume};

type Client = Volume<Remote<Served<Ram<Plain>>>>;

const NAMES: [&str; 12] = ["a", "b", "c", "d", "d/a", "d/b", "e", "e/a", "e/f", "e/f/a", "link", "link/a"];

/// Each look at the time is later than the one before, so that no change is hidden.
fn clock() -> u64 {
    static NOW: AtomicU64 = AtomicU64::new(1);
    NOW.fetch_add(1, Ordering::Relaxed)
}

/// Something that a client does at random. Whether it can be done is a matter of the rest.
fn act(client: &mut Client, random: &mut Random) {
    let root = client.root();
    let mut name = || NAMES[random.below(NAMES.len() as u64) as usize].as_bytes();
    let (first, second) = (name(), name());
    let number = random.below(100) as u16;
    let _ = match random.below(10) {
        0 | 1 => write(client, root, first, &first[..first.len().min(usize::from(number % 4))]),
        2 => client.mkdir(root, first, 0o700),
        3 => client.symlink(root, b"d", first),
        4 => client.link(root, first, second),
        5 => client.rename(root, first, second),
        6 => client.unlink(root, first),
        7 => client.rmdir(root, first),
        8 => {
            let times = number.is_multiple_of(2).then_some((u64::from(number), 7));
            let changes = Changes { permissions: Some(number), times, ..Changes::default() };
            with_file(client, root, first, How::default(), |client, file| client.change(file, &changes))
        }
        _ => with_file(client, root, first, How::default(), |client, file| client.truncate(file, 3)),
    };
}

fn with_file(
    client: &mut Client,
    root: Inode,
    path: &[u8],
    how: How,
    run: impl FnOnce(&mut Client, Inode) -> Result<()>,
) -> Result<()> {
    let file = client.open(root, path, how, 0o600)?;
    let done = run(client, file);
    client.close(file)?;
    done
}

fn write(client: &mut Client, root: Inode, path: &[u8], text: &[u8]) -> Result<()> {
    let how = How { create: true, ..How::default() };
    with_file(client, root, path, how, |client, file| client.write(file, 0, text).map(drop))
}

/// All that a client sees.
fn view<F: FileSystem>(volume: &mut Volume<F>) -> Vec<Result<(Attributes, Result<Vec<u8>>)>> {
    let root = volume.root();
    NAMES
        .iter()
        .map(|name| {
            let found = volume.attributes_at(root, name.as_bytes(), Last::Stay)?;
            // The time at which it was read counts as no change.
            Ok((Attributes { accessed: 0, ..found }, volume.readlink(root, name.as_bytes())))
        })
        .collect()
}

#[test]
fn both_see_all_at_once() {
    for seed in 1..=programs() {
        let mut random = Random(seed);
        let served = Served::new(Ram::new(16 << 20, clock), 100);
        let mut clients: [Client; 2] = [(); 2].map(|()| Volume::new(Remote::new(served.clone()).unwrap()));
        for step in 0..200 {
            let client = &mut clients[random.below(2) as usize];
            client.begin();
            act(client, &mut random);
            if random.below(40) == 0 {
                served.restart(|fs| fs);
            }
            let expected = view(&mut Volume::new(Remote::new(served.clone()).unwrap()));
            for client in &mut clients {
                // A client may look twice before it begins anew, and then see nothing older.
                client.begin();
                assert_eq!(view(client), expected, "seed {seed}, step {step}");
                assert_eq!(view(client), expected, "seed {seed}, step {step}, again");
            }
        }
    }
}

/// A client that looks again asks for changes, and for nothing else.
#[test]
fn nothing_is_asked_twice() {
    let served = Served::new(Ram::new(16 << 20, clock), 100);
    let mut client: Client = Volume::new(Remote::new(served.clone()).unwrap());
    let root = client.root();
    client.mkdir(root, b"d", 0o700).unwrap();
    write(&mut client, root, b"d/a", b"text").unwrap();
    let look = |client: &mut Client| {
        client.begin();
        let calls = served.calls();
        assert!(client.attributes_at(root, b"d/a", Last::Follow).is_ok());
        assert_eq!(client.attributes_at(root, b"d/none", Last::Follow), Err(Error::NotFound));
        served.calls() - calls
    };
    look(&mut client);
    assert_eq!(look(&mut client), 1);
    // Its own change of something else leaves what was found.
    write(&mut client, root, b"b", b"").unwrap();
    client.begin();
    assert_eq!(look(&mut client), 1);
}
