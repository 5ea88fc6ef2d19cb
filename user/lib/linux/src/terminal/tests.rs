//! The line discipline against what Linux did with the same bytes, and by itself.

use super::{Change, Happened, QUEUE_MAX, Read, Settings, Signal, TERMIOS_BYTES, Terminal, Window};
use crate::errno::{EAGAIN, EINVAL, EIO};
use linux_raw_sys::general::*;
use std::vec;
use std::vec::Vec;

/// Settings that differ from the usual ones.
fn with(change: impl FnOnce(&mut Settings)) -> Terminal {
    let mut settings = Settings::default();
    change(&mut settings);
    let mut terminal = Terminal::new();
    terminal.set_settings(&settings.bytes(), Change::Keep).unwrap();
    terminal
}

/// Types bytes: their echo, and the last signal.
fn type_in(terminal: &mut Terminal, bytes: &[u8]) -> (Vec<u8>, Option<Signal>) {
    let (mut echo, mut signal) = (Vec::new(), None);
    for &byte in bytes {
        let happened = terminal.input(byte, 0);
        echo.extend(happened.echo);
        signal = happened.signal.or(signal);
    }
    (echo, signal)
}

/// A read that does not wait.
fn read(terminal: &mut Terminal, len: usize) -> Option<Vec<u8>> {
    let mut to = vec![0; len];
    match terminal.read(&mut to, 0, 0).0 {
        Read::Bytes(count) => Some(to[..count].to_vec()),
        Read::Wait { .. } => None,
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.trim_matches('-').as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

#[test]
fn linux_does_the_same() {
    for line in include_str!("vectors.txt").lines().filter(|line| !line.starts_with('#')) {
        let all: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| u32::from_str_radix(all[index], 16).unwrap();
        let mut terminal = with(|settings| {
            (settings.input, settings.output, settings.local) = (number(0), number(1), number(2));
            settings.characters[VEOL as usize] = number(3) as u8;
            settings.characters[VEOL2 as usize] = number(4) as u8;
        });
        let (echo, _) = type_in(&mut terminal, &bytes(all[5]));
        assert_eq!(echo, bytes(all[6]), "echo: {line}");
        assert_eq!(terminal.bytes_to_read(), number(7) as usize, "bytes: {line}");
        let expected: Vec<_> = all[8].split(',').filter(|read| *read != "none").map(bytes).collect();
        let reads: Vec<_> = std::iter::from_fn(|| read(&mut terminal, 4096)).collect();
        assert_eq!(reads, expected, "reads: {line}");
    }
}

#[test]
fn signals_forget_the_line() {
    for (byte, signal, shown) in
        [(3, Signal::Interrupt, "^C"), (28, Signal::Quit, "^\\"), (26, Signal::Suspend, "^Z")]
    {
        let mut terminal = Terminal::new();
        let (echo, found) = type_in(&mut terminal, &[b'a', b'\n', b'b', byte]);
        assert_eq!((echo, found), (std::format!("a\r\nb{shown}").into_bytes(), Some(signal)));
        assert_eq!(read(&mut terminal, 10), None);
        let mut terminal = with(|settings| settings.local |= NOFLSH);
        type_in(&mut terminal, &[b'a', b'\n', b'b', byte, b'\n']);
        assert_eq!(read(&mut terminal, 10), Some(b"a\n".to_vec()));
        assert_eq!(read(&mut terminal, 10), Some(b"b\n".to_vec()));
        let mut terminal = with(|settings| settings.local &= !ISIG);
        assert_eq!(type_in(&mut terminal, &[byte]).1, None);
    }
}

#[test]
fn an_end_of_file_that_just_fits_is_not_found_again() {
    let mut terminal = Terminal::new();
    type_in(&mut terminal, b"abc\x04\x04de\n");
    assert!(terminal.is_readable());
    assert_eq!(read(&mut terminal, 2), Some(b"ab".to_vec()));
    assert_eq!(read(&mut terminal, 1), Some(b"c".to_vec()));
    assert_eq!(read(&mut terminal, 9), Some(vec![]));
    assert_eq!(read(&mut terminal, 9), Some(b"de\n".to_vec()));
    assert_eq!(read(&mut terminal, 9), None);
    assert!(!terminal.is_readable());
}

#[test]
fn a_full_queue_still_takes_the_end_of_a_line() {
    let mut terminal = Terminal::new();
    type_in(&mut terminal, &[b'x'; 5000]);
    assert_eq!((terminal.bytes_to_read(), terminal.room()), (0, 1));
    type_in(&mut terminal, b"\n");
    assert_eq!((terminal.bytes_to_read(), terminal.room()), (QUEUE_MAX, 0));
    assert!(!terminal.input(b'y', 0).echo.is_empty());
    let line = read(&mut terminal, 5000).unwrap();
    assert_eq!((line.len(), line.last()), (QUEUE_MAX, Some(&b'\n')));
    assert_eq!(terminal.room(), QUEUE_MAX - 1);
    assert_eq!(type_in(&mut terminal, &[3]).1, Some(Signal::Interrupt));
    let mut terminal = with(|settings| settings.local &= !ICANON);
    type_in(&mut terminal, &[b'x'; 5000]);
    assert_eq!((terminal.bytes_to_read(), terminal.room()), (QUEUE_MAX, 0));
}

#[test]
fn reads_without_lines_wait_for_bytes_and_time() {
    const TENTH_NS: u64 = 100_000_000;
    let set = |min: u8, time: u8| {
        with(|settings| {
            settings.local &= !ICANON;
            settings.characters[VMIN as usize] = min;
            settings.characters[VTIME as usize] = time;
        })
    };
    let to = &mut [0; 3];
    let waits = |until_ns| Read::Wait { until_ns };
    assert_eq!(set(0, 0).read(to, 5, 5).0, Read::Bytes(0));
    // Time from the call on.
    let mut terminal = set(0, 2);
    assert_eq!(terminal.read(to, 5, 6).0, waits(Some(5 + 2 * TENTH_NS)));
    assert_eq!(terminal.read(to, 5, 5 + 2 * TENTH_NS).0, Read::Bytes(0));
    terminal.input(b'a', 7);
    assert_eq!(terminal.read(to, 5, 7).0, Read::Bytes(1));
    // So many bytes, or as many as fit.
    let mut terminal = set(2, 0);
    assert!(terminal.input(b'a', 7).wakes_readers);
    assert!(!terminal.is_readable());
    assert_eq!(terminal.read(to, 5, u64::MAX).0, waits(None));
    assert_eq!(terminal.read(&mut to[..1], 5, 7).0, Read::Bytes(1));
    terminal.input(b'b', 8);
    terminal.input(b'c', 8);
    assert!(terminal.is_readable());
    assert_eq!(terminal.read(to, 5, 8).0, Read::Bytes(2));
    // Time from the last byte on.
    let mut terminal = set(3, 1);
    assert_eq!(terminal.read(to, 5, u64::MAX).0, waits(None));
    terminal.input(b'a', 50);
    terminal.input(b'b', 90);
    assert_eq!(terminal.read(to, 5, 90).0, waits(Some(90 + TENTH_NS)));
    assert_eq!(terminal.read(to, 100, 100).0, waits(Some(100 + TENTH_NS)), "it began later");
    assert_eq!(terminal.read(to, 5, 90 + TENTH_NS).0, Read::Bytes(2));
}

#[test]
fn output_stops_and_goes_on() {
    let mut terminal = Terminal::new();
    let mut to = Vec::new();
    assert_eq!(type_in(&mut terminal, b"\x13ab").0, b"");
    assert_eq!(terminal.write(b"x", 100, &mut to), Err(EAGAIN));
    assert!(!terminal.is_writable());
    let happened = terminal.input(0x11, 0);
    assert_eq!((&happened.echo[..], happened.wakes_writers), (&b"ab"[..], true));
    assert_eq!(terminal.write(b"x", 100, &mut to), Ok(1));
    type_in(&mut terminal, &[0x13]);
    type_in(&mut terminal, &[b'x'; 9000]);
    assert_eq!(terminal.flow(TCOON).unwrap().echo.len(), 4096, "echo that is held is bounded");
    type_in(&mut terminal, &[0x13]);
    let raw = Settings { input: 0, ..Settings::default() };
    assert!(terminal.set_settings(&raw.bytes(), Change::Keep).unwrap().wakes_writers);
}

#[test]
fn the_other_side_is_stopped() {
    let mut terminal = with(|settings| {
        settings.input |= IXOFF;
        settings.local &= !(ICANON | ECHO);
    });
    assert_eq!(type_in(&mut terminal, &[b'x'; 4090]).0, [0x13]);
    let mut to = [0; 4000];
    let (read, happened) = terminal.read(&mut to, 0, 0);
    assert_eq!((read, happened.echo), (Read::Bytes(4000), vec![0x11]));
}

#[test]
fn output_fits_or_waits() {
    let mut terminal = with(|settings| settings.output |= XTABS);
    let mut to = Vec::new();
    assert_eq!(terminal.write(b"ab\tc\nd", 8, &mut to), Ok(3));
    assert_eq!(terminal.write(b"\n", 1, &mut to), Err(EAGAIN));
    assert_eq!(terminal.write(b"\td", 9, &mut to), Ok(2));
    assert_eq!(to, b"ab              d");
    let mut terminal = with(|settings| settings.output = OPOST | OCRNL | ONOCR);
    to.clear();
    assert_eq!(terminal.write(b"\ra\rb\n", 10, &mut to), Ok(5));
    assert_eq!(to, b"a\nb\n");
}

#[test]
fn settings_are_linuxs_structures() {
    let mut terminal = Terminal::new();
    let bytes = terminal.settings_bytes();
    assert_eq!(bytes[..4], (ICRNL | IXON).to_le_bytes());
    assert_eq!(bytes[16..25], [0, 3, 28, 0x7f, 21, 4, 0, 1, 0]);
    assert_eq!(bytes[40..], 38400u32.to_le_bytes());
    let mut other = bytes;
    other[8..12].copy_from_slice(&(B115200 | CS8).to_le_bytes());
    terminal.set_settings(&other[..TERMIOS_BYTES], Change::Keep).unwrap();
    assert_eq!(terminal.settings().speeds, (115200, 115200));
    other[8..12].copy_from_slice(&(BOTHER | CS8).to_le_bytes());
    other[40..].copy_from_slice(&12345u32.to_le_bytes());
    terminal.set_settings(&other, Change::Keep).unwrap();
    assert_eq!(terminal.settings().speeds, (12345, 12345));
    assert_eq!(terminal.set_settings(&other[..40], Change::Keep), Err(EINVAL));
    let window = Window { rows: 24, columns: 80, pixels: (640, 480) };
    assert_eq!(Window::read(window.bytes()), window);
    assert_eq!(terminal.set_window(window).signal, Some(Signal::Resized));
    assert_eq!(terminal.set_window(window), Happened::default());
}

#[test]
fn lines_come_and_go_with_icanon() {
    let mut terminal = Terminal::new();
    let mut raw = Settings::default();
    raw.local &= !ICANON;
    type_in(&mut terminal, b"a\nbc");
    assert_eq!(terminal.bytes_to_read(), 2);
    terminal.set_settings(&raw.bytes(), Change::Keep).unwrap();
    assert_eq!(terminal.bytes_to_read(), 4);
    terminal.set_settings(&Settings::default().bytes(), Change::Keep).unwrap();
    assert_eq!(read(&mut terminal, 10), Some(b"a\nbc".to_vec()));
    type_in(&mut terminal, b"a\nb");
    terminal.set_settings(&raw.bytes(), Change::Flush).unwrap();
    assert_eq!(terminal.bytes_to_read(), 0);
}

#[test]
fn hang_up_ends_all() {
    let mut terminal = Terminal::new();
    type_in(&mut terminal, b"a\n");
    let happened = terminal.hang_up();
    assert_eq!(happened.signal, Some(Signal::HungUp));
    assert!(happened.wakes_readers && happened.wakes_writers && terminal.is_readable());
    assert_eq!(read(&mut terminal, 9), Some(vec![]));
    assert_eq!(terminal.write(b"x", 9, &mut Vec::new()), Err(EIO));
    assert_eq!(terminal.input(b'x', 0), Happened::default());
    assert_eq!(terminal.hang_up(), Happened::default());
    assert_eq!(Terminal::new().flush(3), Err(EINVAL));
}

/// Any bytes with any settings: all bounds are kept, and reads come to an end.
#[test]
fn any_bytes_with_any_settings() {
    let mut random = 1u64;
    let mut below = |end: u64| {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (random >> 33) % end
    };
    for _ in 0..100 {
        let mut terminal = Terminal::new();
        for _ in 0..300 {
            match below(12) {
                0 => {
                    let mut settings = Settings::default();
                    settings.input ^= 1 << below(16);
                    settings.output ^= 1 << below(16);
                    settings.local ^= [2, 8, 16, 1 << below(16)][below(4) as usize];
                    settings.characters[below(19) as usize] = below(256) as u8;
                    let change = [Change::Keep, Change::Flush][below(2) as usize];
                    terminal.set_settings(&settings.bytes()[..[36, 44][below(2) as usize]], change).unwrap();
                }
                1 => {
                    let len = 1 + below(100) as usize;
                    let to = &mut vec![0; len];
                    let (readable, before) = (terminal.is_readable(), terminal.bytes_to_read());
                    match terminal.read(to, 0, below(1 << 40)).0 {
                        Read::Bytes(count) => assert!(count <= before.min(len)),
                        Read::Wait { .. } => assert!(!readable || !terminal.settings().local(ICANON)),
                    }
                }
                2 => {
                    let mut to = Vec::new();
                    let room = below(64) as usize;
                    let _ = terminal.write(&[below(256) as u8; 20], room, &mut to);
                    assert!(to.len() <= room);
                }
                _ => {
                    for _ in 0..below(60) {
                        let byte = if below(3) == 0 { below(32) } else { below(256) } as u8;
                        assert!(terminal.input(byte, below(1000)).echo.len() <= 9 * QUEUE_MAX);
                    }
                }
            }
            assert!(terminal.queue.len() <= QUEUE_MAX && terminal.whole <= terminal.queue.len());
        }
    }
}
