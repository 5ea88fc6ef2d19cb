//! Two clients of one server, each with what it has found: both see at once what the other one has changed.

use crate::as_on_linux::{Random, programs};
use crate::served::Served;
use std::sync::atomic::{AtomicU64, Ordering};
use vfs::page::{Page, Plain};
use vfs::path::Last;
use vfs::remote::Remote;
use vfs::{Attributes, Cached, Changes, Error, FileSystem, How, Inode, Ram, Result, Volume};

type Client = Volume<Remote<Served<Ram<Plain>>>>;

const NAMES: [&str; 12] = ["a", "b", "c", "d", "d/a", "d/b", "e", "e/a", "e/f", "e/f/a", "link", "link/a"];

/// Each look at the time is later than the one before, so that no change is hidden.
fn clock() -> u64 {
    static NOW: AtomicU64 = AtomicU64::new(1);
    NOW.fetch_add(1, Ordering::Relaxed)
}

/// Something that a client does at random. Whether it can be done is a matter of the rest.
fn act<F: FileSystem>(client: &mut Volume<F>, random: &mut Random) {
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

fn with_file<F: FileSystem, T>(
    client: &mut Volume<F>,
    root: Inode,
    path: &[u8],
    how: How,
    run: impl FnOnce(&mut Volume<F>, Inode) -> Result<T>,
) -> Result<T> {
    let file = client.open(root, path, how, 0o600)?;
    let done = run(client, file);
    client.close(file)?;
    done
}

fn write<F: FileSystem>(client: &mut Volume<F>, root: Inode, path: &[u8], text: &[u8]) -> Result<()> {
    let how = How { create: true, ..How::default() };
    with_file(client, root, path, how, |client, file| client.write(file, 0, text).map(drop))
}

/// A client of any file system.
type ClientOf<F> = Volume<Remote<Served<F>>>;

/// All attributes that a client sees, and where links lead.
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

/// All contents of files that a client sees.
fn contents<F: FileSystem>(volume: &mut Volume<F>) -> Vec<Result<Vec<u8>>> {
    let root = volume.root();
    let read = |name: &&str| {
        with_file(volume, root, name.as_bytes(), How::default(), |volume, file| {
            let mut bytes = vec![0; 100];
            let count = volume.read(file, 0, &mut bytes)?;
            bytes.truncate(count);
            Ok(bytes)
        })
    };
    NAMES.iter().map(read).collect()
}

/// Two clients of a server do something in turn, and see the same as one who comes new. Now and then something happens to the server.
fn see_all_at_once<F: FileSystem, T: PartialEq + core::fmt::Debug>(
    new: impl Fn() -> F,
    view: impl Fn(&mut ClientOf<F>) -> T,
    happen: impl Fn(&Served<F>),
) {
    for seed in 1..=programs() {
        let mut random = Random(seed);
        let served = Served::new(new(), 100);
        let client = || Volume::new(Remote::new(served.clone()).unwrap());
        let mut clients = [client(), client()];
        for step in 0..200 {
            let acting = &mut clients[random.below(2) as usize];
            acting.begin();
            act(acting, &mut random);
            if random.below(40) == 0 {
                happen(&served);
            }
            let expected = view(&mut client());
            for client in &mut clients {
                // A client may look twice before it begins anew, and then see nothing older.
                client.begin();
                assert_eq!(view(client), expected, "seed {seed}, step {step}");
                assert_eq!(view(client), expected, "seed {seed}, step {step}, again");
            }
        }
    }
}

#[test]
fn both_see_all_at_once() {
    see_all_at_once(|| Ram::<Plain>::new(16 << 20, clock), view, |served| served.restart(|fs| fs));
}

/// Pages that the server keeps are those of the files that both clients see.
#[test]
fn both_see_all_at_once_of_kept_pages() {
    let new = || Cached::<_, Plain>::keeping(Ram::<Plain>::new(16 << 20, clock), 4);
    see_all_at_once(new, |client| (view(client), contents(client)), |_| {});
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

/// Two clients, of which the first one has the directory `d` open with the file `d/f` of five bytes, and the second one has moved it to `e`.
fn moved() -> (Client, Client, Inode) {
    let served = Served::new(Ram::new(16 << 20, clock), 100);
    let [mut one, mut two]: [Client; 2] = [(); 2].map(|()| Volume::new(Remote::new(served.clone()).unwrap()));
    let (root, other) = (one.root(), two.root());
    one.mkdir(root, b"d", 0o755).unwrap();
    write(&mut one, root, b"d/f", b"right").unwrap();
    let held = one.enter(root, b"d").unwrap();
    two.rename(other, b"d", b"e").unwrap();
    one.begin();
    (one, two, held)
}

/// Questions by way of a directory that somebody has moved are about no other directory. Such a question does not keep its names from being found where it is now.
#[test]
fn a_directory_that_was_moved_is_no_other_one() {
    for has_other in [false, true] {
        let (mut one, mut two, held) = moved();
        let (root, other) = (one.root(), two.root());
        if has_other {
            two.mkdir(other, b"d", 0o755).unwrap();
            write(&mut two, other, b"d/f", b"of somebody else").unwrap();
        }
        assert!(one.attributes_at(held, b"f", Last::Stay).is_err());
        assert!(one.readdir(held, 0, 10).is_err());
        assert!(one.unlink(held, b"f").is_err());
        one.begin();
        one.attributes_at(root, b"e", Last::Stay).unwrap();
        assert_eq!(one.attributes_at(root, b"e/f", Last::Stay).map(|found| found.len), Ok(5));
        let there = two.attributes_at(other, b"d/f", Last::Stay).map(|found| found.len);
        assert_eq!(there, if has_other { Ok(16) } else { Err(Error::NotFound) });
    }
}

/// Whatever is found without asking stays known while others are looked for in the same call.
#[test]
fn what_was_found_in_the_same_call_is_there() {
    let served = Served::new(Ram::new(64 << 20, clock), 100);
    let mut client: Client = Volume::new(Remote::new(served.clone()).unwrap());
    let root = client.root();
    client.mkdir(root, b"a", 0o755).unwrap();
    write(&mut client, root, b"a/x", b"text").unwrap();
    client.mkdir(root, b"c", 0o755).unwrap();
    for number in 0..4300 {
        client.mkdir(root, format!("c/{number}").as_bytes(), 0o755).unwrap();
    }
    // Places are counted from none on, so that one of these calls is the one that has no room.
    for count in 4088..4098 {
        let mut client: Client = Volume::new(Remote::new(served.clone()).unwrap());
        client.attributes_at(root, b"a/x", Last::Stay).unwrap();
        for number in 0..count {
            client.begin();
            client.attributes_at(root, format!("c/{number}").as_bytes(), Last::Stay).unwrap();
        }
        client.begin();
        let to = format!("c/{count}/new");
        client.link(root, b"a/x", to.as_bytes()).unwrap();
        client.unlink(root, to.as_bytes()).unwrap();
    }
}

/// A change that the file system cannot make is none, and forgets nothing.
#[test]
fn a_change_that_is_not_supported_forgets_nothing() {
    let served = Served::new(Ram::new(16 << 20, clock), 100);
    let mut client: Client = Volume::new(Remote::new(served.clone()).unwrap());
    let root = client.root();
    client.symlink(root, b"f", b"link").unwrap();
    let link = client.attributes_at(root, b"link", Last::Stay).unwrap().inode;
    client.begin();
    let calls = served.calls();
    let changes = Changes { permissions: Some(0o700), ..Changes::default() };
    assert_eq!(client.change(link, &changes), Err(Error::Unsupported));
    client.begin();
    client.attributes_at(root, b"link", Last::Stay).unwrap();
    assert_eq!(served.calls() - calls, 2, "once for each beginning");
}

/// Changes of others are told by a number, own ones are not.
#[test]
fn changes_of_others_have_a_number() {
    let served = Served::new(Ram::new(16 << 20, clock), 100);
    let [mut one, mut two]: [Client; 2] = [(); 2].map(|()| Volume::new(Remote::new(served.clone()).unwrap()));
    let (root, other) = (one.root(), two.root());
    one.begin();
    let first = one.others();
    assert!(first.is_some());
    write(&mut one, root, b"a", b"text").unwrap();
    one.begin();
    assert_eq!(one.others(), first);
    write(&mut two, other, b"a", b"more").unwrap();
    one.begin();
    let second = one.others();
    assert_ne!(second, first);
    one.begin();
    assert_eq!(one.others(), second);
}

/// Bytes of pages that somebody else has written reach their file at a time that is told, and change its times.
#[test]
fn what_is_brought_from_pages_is_a_change() {
    let mut volume: Volume<Cached<Ram<Plain>, Plain>> =
        Volume::new(Cached::new(Ram::new(1 << 20, clock), 10));
    let root = volume.root();
    let create = How { create: true, ..How::default() };
    let file = volume.open(root, b"f", create, 0o644).unwrap();
    volume.write(file, 0, b"text").unwrap();
    let page = volume.page(file, 0, true).unwrap();
    let before = volume.attributes(file).unwrap();
    volume.sync(file).unwrap();
    assert!(!volume.take_written());
    page.write(0, b"more");
    volume.sync(file).unwrap();
    assert!(volume.take_written() && !volume.take_written());
    assert!(volume.attributes(file).unwrap().modified > before.modified);
    // A page that nobody has any more is brought when another one is made.
    page.write(0, b"last");
    drop(page);
    let other = volume.open(root, b"g", create, 0o644).unwrap();
    volume.write(other, 0, b"text").unwrap();
    drop(volume.page(other, 0, false).unwrap());
    assert!(volume.take_written());
    // A file system whose pages are the file's knows of no writing but what it is told.
    let mut ram: Volume<Ram<Plain>> = Volume::new(Ram::new(1 << 20, clock));
    let root = ram.root();
    let file = ram.open(root, b"f", create, 0o644).unwrap();
    let before = ram.attributes(file).unwrap();
    ram.wrote(file);
    assert!(ram.attributes(file).unwrap().modified > before.modified);
}
