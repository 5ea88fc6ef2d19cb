//! Files that are read and written in pieces, by way of the cache and past it, against a row of bytes.

use super::world::{DATA, World};
use crate::frames::PAGE;
use linux_raw_sys::general as nr;
use std::vec;
use std::vec::Vec;
use vfs::How;

/// Where pieces lie in the process: near the end of a page, so that they cross it.
const PLACE: u64 = PAGE - 100;

/// Longest file.
const LEN_MAX: u64 = 5 * PAGE;

/// Bytes of the file as others see them.
fn outside(world: &mut World) -> Vec<u8> {
    let store = &mut world.system.store;
    let inode = store.volume.open(store.root, b"/model", How::default(), 0).unwrap();
    let mut bytes = vec![0; LEN_MAX as usize + 1];
    let count = store.volume.read(inode, 0, &mut bytes).unwrap();
    store.volume.close(inode).unwrap();
    bytes.truncate(count);
    bytes
}

#[test]
fn a_file_is_a_row_of_bytes() {
    let mut random = 7u64;
    let mut up_to = move |end: u64| {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (random >> 33) % end
    };
    for _ in 0..20 {
        let mut world = World::new(256, 16);
        let mut model: Vec<u8> = b"abcdef".to_vec();
        world.file(b"/model", &model);
        let path = world.put(1, 0, b"/model");
        let fd = world.good(1, nr::__NR_open, &[path, 2, 0]);
        for _ in 0..300 {
            let at = up_to(model.len() as u64 + 50).min(LEN_MAX - 1);
            let most = if up_to(8) == 0 { 5 * PAGE } else { 300 };
            let len = (1 + up_to(most)).min(LEN_MAX - at);
            match up_to(9) {
                0..3 => {
                    let bytes: Vec<u8> = (0..len).map(|_| up_to(256) as u8).collect();
                    let place = world.put(1, PLACE, &bytes);
                    assert_eq!(world.good(1, nr::__NR_pwrite64, &[fd, place, len, at]), len);
                    let end = (at + len) as usize;
                    model.resize(model.len().max(end), 0);
                    model[at as usize..end].copy_from_slice(&bytes);
                }
                3..7 => {
                    let count = world.good(1, nr::__NR_pread64, &[fd, DATA + PLACE, len, at]);
                    let wanted = model.get(at as usize..).unwrap_or_default();
                    let wanted = &wanted[..wanted.len().min(len as usize)];
                    let mut bytes = vec![0; count as usize];
                    world.system.read(1, DATA + PLACE, &mut bytes).unwrap();
                    assert_eq!(bytes, wanted);
                }
                7 => {
                    world.good(1, nr::__NR_ftruncate, &[fd, at]);
                    model.resize(at as usize, 0);
                }
                _ => {
                    // Others see it after a second, or at once if it was asked for.
                    match up_to(2) {
                        0 => world.pass(1_000_000_000),
                        _ => drop(world.good(1, nr::__NR_fsync, &[fd])),
                    }
                    assert_eq!(outside(&mut world), model);
                }
            }
        }
        world.good(1, nr::__NR_close, &[fd]);
        assert_eq!(outside(&mut world), model);
        world.check();
    }
}
