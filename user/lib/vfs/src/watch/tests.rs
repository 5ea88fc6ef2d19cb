//! Bounds of watches, and what they keep.

use super::*;
use Change::*;
use alloc::vec;

const HERE: Inode = Inode(1);

fn watches() -> Watches {
    let mut watches = Watches::new();
    watches.add(7, HERE);
    watches
}

fn taken(watches: &mut Watches) -> Vec<(Change, Vec<u8>)> {
    let events = watches.take(7, usize::MAX).unwrap();
    events.into_iter().map(|event| (event.change, event.name)).collect()
}

#[test]
fn what_is_known_already_comes_once() {
    let mut watches = watches();
    watches.know(Inode(2), HERE, b"a");
    watches.know(Inode(3), HERE, b"b");
    for inode in [2, 3, 2, 3] {
        watches.changed(Inode(inode), Contents);
    }
    watches.changed(Inode(2), Attributes);
    watches.made(HERE, b"c");
    watches.changed(Inode(2), Contents);
    let name = |name: &[u8]| name.to_vec();
    let expected = [
        (Contents, name(b"a")),
        (Contents, name(b"b")),
        (Attributes, name(b"a")),
        (Made, name(b"c")),
        (Contents, name(b"a")),
    ];
    assert_eq!(taken(&mut watches), expected);
    assert_eq!(taken(&mut watches), []);
    // An event that was taken covers none.
    watches.changed(Inode(2), Contents);
    assert_eq!(taken(&mut watches), [(Contents, name(b"a"))]);
}

/// Names of many directories cost no more than they may: the others lose events rather than to miss one.
#[test]
fn names_of_all_directories_have_a_limit() {
    let mut watches = Watches::new();
    watches.limit_names(50 * (OVERHEAD + 1));
    let directories = 100..200;
    for directory in directories.clone() {
        watches.add(directory, Inode(directory));
        watches.know(Inode(1), Inode(directory), b"a");
    }
    assert_eq!(watches.count_names(Inode(1)), 50);
    watches.changed(Inode(1), Contents);
    watches.lose_partial(None);
    for directory in directories.clone() {
        let change = if directory < 150 { Contents } else { Lost };
        assert_eq!(watches.take(directory, 9).unwrap()[0].change, change);
    }
    watches.removed(Inode(1), Inode(100), b"a");
    watches.remove(101);
    watches.gone(Inode(102));
    (2..6).for_each(|file| watches.know(Inode(file), Inode(104), b"c"));
    assert_eq!((2..6).map(|file| watches.count_names(Inode(file))).sum::<usize>(), 3);
    directories.for_each(|directory| watches.remove(directory));
    assert_eq!(watches.names_bytes, 0);
}

/// One directory has many names where there is room for many, and leaves some for others.
#[test]
fn a_directory_has_a_part_of_the_names() {
    let mut watches = Watches::new();
    let all = 1000 * (OVERHEAD + 1) * PART;
    watches.limit_names(all);
    let directories = 100..125;
    for directory in directories.clone() {
        watches.add(directory, Inode(directory));
        (1000..5000).for_each(|file| watches.know(Inode(file), Inode(directory), b"a"));
        let bytes = watches.watched[&Inode(directory)].bytes;
        assert!(directory > 100 || (all / 10..=all / PART).contains(&bytes), "{bytes}");
        assert!(bytes >= ROOM - OVERHEAD - 1, "directory {directory} has {bytes} bytes");
    }
    assert!(watches.names_bytes <= all && watches.is_partial());
    assert!(watches.knows(Inode(1000), Inode(100)) && !watches.knows(Inode(4999), Inode(100)));
    directories.for_each(|directory| watches.remove(directory));
    assert_eq!(watches.names_bytes, 0);
}

#[test]
fn who_reads_nothing_has_to_look_again() {
    let mut watches = watches();
    for number in 0..10_000u32 {
        watches.made(HERE, &number.to_be_bytes());
        assert!(watches.all[&7].bytes <= ROOM && watches.all[&7].events.len() <= ROOM / OVERHEAD);
    }
    assert_eq!(taken(&mut watches), [(Lost, vec![])]);
    watches.made(HERE, b"a");
    assert_eq!(taken(&mut watches), [(Made, b"a".to_vec())]);
    // The end is told all the same.
    (0..10_000u32).for_each(|number| watches.made(HERE, &number.to_be_bytes()));
    watches.gone(HERE);
    assert_eq!(taken(&mut watches), [(Lost, vec![]), (Gone, vec![])]);
    assert_eq!(watches.take(7, 1), None);
    assert!(watches.is_empty() && watches.is_known(7));
    watches.remove(7);
    assert!(!watches.is_known(7));
}

#[test]
fn few_are_taken_at_a_time() {
    let mut watches = watches();
    (0..5u8).for_each(|number| watches.made(HERE, &[number]));
    watches.gone(HERE);
    let mut names = Vec::new();
    while let Some(events) = watches.take(7, 2) {
        assert!(!events.is_empty() && events.len() <= 2);
        names.extend(events.into_iter().map(|event| event.name));
    }
    assert_eq!(names, [vec![0], vec![1], vec![2], vec![3], vec![4], vec![]]);
}

#[test]
fn who_waits_is_woken_once() {
    let mut watches = watches();
    watches.made(HERE, b"a");
    assert!(!watches.has_woken(), "nobody waits");
    assert!(watches.wait(7), "there is something");
    taken(&mut watches);
    assert!(!watches.wait(7) && !watches.has_woken());
    watches.made(Inode(2), b"a");
    assert!(!watches.has_woken(), "that is elsewhere");
    watches.made(HERE, b"b");
    watches.made(HERE, b"c");
    assert!(watches.has_woken() && !watches.has_woken() && watches.wait(7));
    taken(&mut watches);
    for end in [Watches::gone as fn(&mut Watches, Inode), |watches, _| watches.remove(7)] {
        let mut watches = self::watches();
        assert!(!watches.wait(7));
        end(&mut watches, HERE);
        assert!(watches.has_woken() && watches.wait(7));
    }
}

#[test]
fn watches_of_an_inode_are_found() {
    let mut watches = watches();
    watches.add(8, Inode(2));
    watches.know(Inode(2), HERE, b"a");
    watches.know(Inode(2), HERE, b"b");
    let expected = [(7, b"a".to_vec()), (7, b"b".to_vec()), (8, vec![])];
    assert_eq!(watches.of(Inode(2)), expected);
    assert_eq!(watches.of(HERE), [(7, vec![])]);
    assert!(!watches.wait(7) && !watches.wait(8));
    watches.changed(Inode(2), Attributes);
    watches.changed(Inode(2), Contents);
    assert_eq!((watches.woken(), watches.woken()), (vec![8, 7], vec![]));
}

#[test]
fn names_are_counted() {
    let mut watches = watches();
    let name = [b'x'; NAME_MAX];
    for inode in 10..100 {
        watches.know(Inode(inode), HERE, &name[..inode as usize]);
        watches.know(Inode(inode), HERE, &name[..inode as usize]);
    }
    assert!(watches.watched[&HERE].bytes <= ROOM);
    let unsure: Vec<u64> = (10..100).filter(|&inode| watches.count_names(Inode(inode)) == 0).collect();
    assert!(watches.is_partial() && !unsure.is_empty() && unsure.len() < 60, "{unsure:?}");
    for inode in (10..100).filter(|inode| !unsure.contains(inode)) {
        let to = (Inode(2), &b"elsewhere"[..]);
        match inode % 3 {
            0 => watches.forget(Inode(inode)),
            1 => watches.removed(Inode(inode), HERE, &name[..inode as usize]),
            _ => watches.moved(Inode(inode), (HERE, &name[..inode as usize]), to, None),
        }
    }
    assert_eq!((watches.watched[&HERE].bytes, watches.places.len()), (0, 0));
    watches.remove(7);
    assert!(!watches.is_partial() && watches.is_empty());
}
