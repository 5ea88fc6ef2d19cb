//! The misdeeds. Their purpose is to break the rules, hence `unsafe`, and hence no soundness either: what they do is
//! undefined for Rust, well defined for the processor, and never the problem of anybody but this task.
#![allow(unsafe_code, clippy::undocumented_unsafe_blocks)]

use alloc::vec::Vec;
use core::arch::asm;
use core::hint::black_box;

/// Every misdeed by name.
pub const MISDEEDS: [(&str, fn()); 16] = [
    ("fault", || write(0xdead_0000)),
    ("null", || write(0)),
    ("kernel", || write(0xffff_8000_0000_0000)),
    ("text", || write(crate::main as *const () as usize)),
    ("divide", || unsafe {
        asm!("xor ecx, ecx", "xor edx, edx", "div ecx", out("eax") _, out("ecx") _, out("edx") _)
    }),
    ("ud", || unsafe { asm!("ud2") }),
    ("priv", || unsafe { asm!("cli") }),
    ("port", || unsafe { asm!("in al, dx", out("al") _, in("dx") 0x64u16) }),
    ("jump", || jump(0xdead_0000)),
    ("data", || jump(&raw const DATA as usize)),
    ("stack", || {
        black_box(recurse(0));
    }),
    ("stack2", || {
        let thread = rt::thread::spawn(PRIORITY, || black_box(recurse(0)));
        thread.map(|thread| thread.join()).ok();
    }),
    ("memory", || {
        let mut all = Vec::new();
        loop {
            all.push(Vec::from([1u8; 4096]));
        }
    }),
    ("syscall", || unsafe { asm!("syscall", inout("rax") 0x1234u64 => _, out("rcx") _, out("r11") _) }),
    ("panic", || panic!("on request")),
    ("loop", || {
        loop {
            core::hint::spin_loop();
        }
    }),
];

/// Of a second thread: that of the first.
const PRIORITY: u8 = 32;

/// A `ret` where nothing may be executed.
static DATA: [u8; 16] = [0xc3; 16];

fn write(address: usize) {
    unsafe { asm!("mov byte ptr [{}], 1", in(reg) address) };
}

fn jump(address: usize) {
    unsafe { asm!("call {}", in(reg) address, clobber_abi("C")) };
}

#[allow(unconditional_recursion)]
fn recurse(depth: u64) -> u64 {
    let page = black_box([depth; 64]);
    recurse(depth + 1) + black_box(page[depth as usize % 64])
}
