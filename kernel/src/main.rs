//! The kernel's binary. All code is in the library; the loader enters at `boot_multiboot` or `boot_pvh`
//! (`entry/x86_64/boot.rs`), which end in the first thread.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
use kernel as _;

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("tern-kernel runs on bare metal only: build it for x86_64-unknown-none");
    std::process::exit(2);
}
