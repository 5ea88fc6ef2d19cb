//! The driver of virtio disks: serves sectors of the first disk, under the name `block`.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

rt::entry!(main);

fn main() -> i32 {
    if rt::environment::variable("LOG").is_none() {
        // The library tells of each disk that it has found.
        rt::log::set_max_level(rt::log::LevelFilter::Warn);
    }
    block::run("virtio-block", virtio::disk)
}
