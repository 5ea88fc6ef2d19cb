//! Boot: from the loader to the portable kernel.
//!
//! Both loaders enter in 32-bit protected mode without paging. The assembly below turns long mode on with temporary
//! tables: the first 4 GiB at their own addresses (the loader's structures are there) and again at
//! [`layout::IMAGE`]. [`boot_main`] reads what the loader left, builds the final tables, and never looks back: no
//! address below the kernel half is mapped after that. PVH: Xen `docs/misc/pvh.pandoc`; multiboot2 specification
//! 2.0, section 3; long mode: Intel SDM volume 3, 11.8.5.

use super::fast_path;
use crate::arch::extended;
use crate::arch::four_level::space;
use crate::arch::paging::{self, BOOT_TABLES};
use crate::arch::stack::{BOOT_STACK, BOOT_STACK_SIZE, Stack};
use crate::arch::{acpi, apic, cpu, power, serial, smp, timer, view};
use crate::boot::loader::{self, Loaded, Rsdp};
use crate::boot::{self, Boot, Pool, Range, Refusal};
use crate::kernel::Kernel;
use crate::mem::pool;
use crate::object::door::NO_DOOR;
use crate::options::{self, Options};
use crate::processor;
use crate::sched::Next;
use crate::{global, ipc, kprintln, layout, start};
use abi::PAGE_SIZE;
use abi::boot::{InfoPage, feature, memory_kind};
use core::arch::global_asm;
use core::cell::UnsafeCell;

global_asm!(
    r#"
    .section .boot.header, "a"
    .balign 8
multiboot_header:
    .long 0xe85250d6, 0, multiboot_header_end - multiboot_header
    .long -(0xe85250d6 + (multiboot_header_end - multiboot_header))
    # Wanted if there: command line, modules, memory map, both kinds of ACPI root pointer.
    .short 1, 1
    .long 28, 1, 3, 6, 14, 15
    .balign 8
    # Modules start at page boundaries.
    .short 6, 0
    .long 8
    .short 0, 0
    .long 8
multiboot_header_end:

    .section .note.Xen, "a", @note
    .balign 4
    .long 4, 8, 18
    .asciz "Xen"
    .quad boot_pvh

    # In: ebx = information of the loader; multiboot2: eax = magic number. No stack, no usable segment table.
    .section .boot.text, "ax"
    .code32
    .globl boot_pvh
boot_pvh:
    movl ${pvh_magic}, %eax
    .globl boot_multiboot
boot_multiboot:
    cli
    cld
    movl %eax, %edi
    movl %ebx, %esi

    movl $0x80000000, %eax
    cpuid
    cmpl $0x80000001, %eax
    jb no_long_mode
    movl $0x80000001, %eax
    cpuid
    btl $29, %edx
    jnc no_long_mode

    # The temporary tables. Present and writable is 3, a large page 0x83.
    movl $({tables} - {image}), %ebx
    leal 0x1003(%ebx), %eax
    movl %eax, (%ebx)
    movl %eax, 511*8(%ebx)
    leal 0x2003(%ebx), %eax
    movl %eax, 0x1000+510*8(%ebx)
    movl %eax, 0x1000(%ebx)
    addl $0x1000, %eax
    movl %eax, 0x1008(%ebx)
    addl $0x1000, %eax
    movl %eax, 0x1010(%ebx)
    addl $0x1000, %eax
    movl %eax, 0x1018(%ebx)
    movl $0x83, %eax
    xorl %ecx, %ecx
1:  movl %eax, 0x2000(%ebx,%ecx,8)
    addl $0x200000, %eax
    incl %ecx
    cmpl $2048, %ecx
    jb 1b

    movl $0x20, %eax            # CR4.PAE
    movl %eax, %cr4
    movl %ebx, %cr3
    movl $0xc0000080, %ecx      # EFER
    rdmsr
    orl $0x100, %eax            # LME
    wrmsr
    movl $0x80010033, %eax      # CR0: PG WP NE ET MP PE
    movl %eax, %cr0
    lgdt boot_gdt_pointer
    ljmp $8, $boot_long

# "tern: this processor lacks long mode", without a stack.
no_long_mode:
    movl $0x3fb, %edx           # line control: 8 data bits
    movb $3, %al
    outb %al, %dx
    movl $no_long_mode_text, %esi
2:  movl $0x10000, %ecx
3:  movl $0x3fd, %edx           # line status: room to send?
    inb %dx, %al
    testb $0x20, %al
    jnz 4f
    decl %ecx
    jnz 3b
4:  movb (%esi), %al
    testb %al, %al
    jz 5f
    movl $0x3f8, %edx
    outb %al, %dx
    incl %esi
    jmp 2b
5:  movb ${failure}, %al
    outb %al, ${debug_exit}
6:  cli
    hlt
    jmp 6b
no_long_mode_text:
    .asciz "tern: this processor lacks long mode\r\n"

    .balign 8
boot_gdt:
    .quad 0, 0x00209b0000000000 # 64-bit code
boot_gdt_pointer:
    .short . - boot_gdt - 1
    .long boot_gdt

    .code64
boot_long:
    movabsq $boot_high, %rax
    jmpq *%rax

    .section .text.boot_high, "ax"
boot_high:
    xorl %eax, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    movl %eax, %fs
    movl %eax, %gs
    movq $({stack} + {stack_size}), %rsp
    xorl %ebp, %ebp             # the backtrace ends here
    movl %edi, %edi
    movl %esi, %esi
    callq {main}
    ud2

    # Filled after linking with the names of the kernel's functions; see `panic.rs`.
    .section .ksyms, "a", @progbits
    .balign 8
    .globl KSYMS
KSYMS:
    .zero {ksyms_size}
    .text
    "#,
    pvh_magic = const loader::PVH_MAGIC,
    tables = sym BOOT_TABLES,
    image = const layout::IMAGE as i64,
    failure = const power::FAILURE,
    debug_exit = const power::DEBUG_EXIT,
    stack = sym BOOT_STACK,
    stack_size = const size_of::<Stack<BOOT_STACK_SIZE>>(),
    main = sym boot_main,
    ksyms_size = const crate::panic::SYMBOLS_SIZE,
    options(att_syntax)
);

/// Facts that [`boot_main`] collects; nobody else writes them.
struct Collected(UnsafeCell<Boot>);

// SAFETY: `boot_main` runs once, on one CPU, and hands out a shared reference only when it has written all.
unsafe impl Sync for Collected {}

static BOOT: Collected = Collected(UnsafeCell::new(Boot::new()));

/// The first Rust code. `magic` tells which loader left its information at physical address `info`.
extern "C" fn boot_main(magic: u32, info: u32) -> ! {
    serial::init();
    // SAFETY: see `Collected`.
    let boot = unsafe { &mut *BOOT.0.get() };
    boot.serial_port = serial::port();
    if let Err(refusal) = prepare(boot, magic, info.into()) {
        refuse(format_args!("{refusal}"));
    }
    let boot: &'static Boot = boot;
    let line = boot.command_line().expect("`prepare` read it");
    let options = options::parse(line).expect("`prepare` understood it");
    run(boot, &options)
}

/// Makes the kernel, and leaves it with the first thread.
fn run(boot: &'static Boot, options: &Options) -> ! {
    let k = global::install(Kernel::new(kernel_pool(boot.pool), &ipc::UPCALLS));
    k.tags.limit(options.tags);
    let sigma0 = start::start(k, boot).unwrap_or_else(|why| refuse(format_args!("{why}")));
    let is_fast = options.fast_path && !cpu::features().isolates;
    k.notes_routes.set(is_fast);
    fast_path::set_entry(is_fast, space::tagged());
    if let Some(how) = cpu::guard(options.verw, options.ibrs) {
        fast_path::rewrite_exits(how);
    }
    extended::check();
    kprintln!("tern: ipc       fast path {}", if is_fast { "on" } else { "off" });
    kprintln!("tern: memory    {} frames for the kernel, {} for tasks", k.pool.frames(), sigma0.quota.get());
    if options.exhaust {
        k.may_exhaust.set(true);
        kprintln!("tern: exhaust   programs may order that kernel memory runs out");
    }
    if let Some(seed) = options.check {
        super::checked::start(seed);
        kprintln!("tern: check     the kernel checks itself at each exit, seed {seed}");
    }
    processor::set_current(k.idle());
    let next = k.dispatch(Next::Any);
    // SAFETY: the thread was just started, and its registers are in its frame.
    unsafe { fast_path::leave_kernel(&raw const next.tcb().hot) }
}

/// The kernel's memory as a pool of frames.
fn kernel_pool(Pool { range, used }: Pool) -> pool::Pool {
    let frames = (range.len / PAGE_SIZE) as usize;
    // SAFETY: the final tables map the pool at this address, for the kernel alone, and used only its start.
    unsafe { pool::Pool::new(layout::POOL as *mut u8, range.start, frames, used) }
}

/// Prints in one line why the kernel does not start, and ends the machine.
fn refuse(why: core::fmt::Arguments) -> ! {
    kprintln!("tern: {why}");
    power::exit(power::FAILURE)
}

/// Prepares everything in order; each step may use what those before it made.
fn prepare(boot: &mut Boot, magic: u32, info: u64) -> Result<(), Refusal> {
    cpu::detect().map_err(Refusal::Processor)?;
    let (mut memory, low_page, wanted_pool, fast_path) = {
        let loaded = loaded(magic, info)?;
        boot.screen = loaded.screen;
        boot.set_command_line(loaded.command_line)?;
        let line = boot.command_line()?;
        let options = options::parse(line).unwrap_or_else(|bad| refuse(format_args!("{bad}")));
        cpu::choose_isolation(options.pti);
        let fast_path = options.fast_path && !cpu::features().isolates;
        let wanted_pool = options.pool_bytes;
        boot.archive = boot::check_archive(loaded.archive, image())?;
        let memory = boot::regions::memory(loaded.map, image(), boot.archive);
        let low =
            memory.regions.find(memory_kind::FIRMWARE, Range::new(smp::LOW.start, smp::LOW.end), PAGE_SIZE);
        let low_page = low.map(|range| range.start);
        boot.rsdp = find_rsdp(loaded.rsdp, low_page);
        (memory, low_page, wanted_pool, fast_path)
    };
    boot.pool = boot::take_pool(&mut memory, wanted_pool)?;
    boot.memory = memory.regions;

    // From here on the loader's memory may be overwritten, and soon is unreachable.
    cpu::enable();
    init_paging(boot);
    fast_path::init();
    cpu::enable_late();
    describe(boot);
    let platform = platform(boot.rsdp);
    apic::init(&platform);
    timer::init(&platform).ok_or(Refusal::BadInfo("this machine has no clock"))?;
    boot.cpus = smp::start(&platform, low_page);
    // SAFETY: `paging::init` made the page, and no user runs yet.
    unsafe { boot.info_page.write(info_page(fast_path)) };
    Ok(())
}

/// Builds the final page tables, in the pool.
fn init_paging(boot: &mut Boot) {
    let Pool { range, used } = &mut boot.pool;
    boot.info_page = paging::init(paging::Pool { range: range.start..range.end(), used }, NO_DOOR);
}

/// Reads the information that the loader left.
fn loaded(magic: u32, info: u64) -> Result<Loaded<'static>, Refusal> {
    match magic {
        loader::PVH_MAGIC => loader::parse_pvh(info, identity),
        loader::MULTIBOOT_MAGIC => {
            let strange = Refusal::BadInfo("the boot loader's information is damaged");
            let len = identity(info, 8).ok_or(strange)?;
            let len = u32::from_le_bytes([len[0], len[1], len[2], len[3]]);
            loader::parse_multiboot(identity(info, len.min(1 << 20).into()).ok_or(strange)?)
        }
        _ => Err(Refusal::BadInfo("started by a boot loader that is neither PVH nor multiboot2")),
    }
}

/// Physical memory through the temporary tables.
fn identity(at: u64, len: u64) -> Option<&'static [u8]> {
    let end = at.checked_add(len)?;
    if at == 0 || end > 4 << 30 || Range::new(at, end).overlaps(image()) {
        return None;
    }
    // SAFETY: the temporary tables map the first 4 GiB; nobody writes outside the image before the pool is
    // built, and no slice of this is kept until then. A hole reads as ones.
    Some(unsafe { core::slice::from_raw_parts(at as *const u8, len as usize) })
}

/// The physical memory of the kernel's image, boot section included.
fn image() -> Range {
    let image = paging::image();
    Range::new(image.start, image.end)
}

/// The address of the ACPI root pointer. One that exists only as a loader's copy moves to the low page, which is
/// never used for anything else.
fn find_rsdp(rsdp: Rsdp, low_page: Option<u64>) -> u64 {
    match (rsdp, low_page) {
        (Rsdp::At(at), _) => at,
        (Rsdp::Copy(bytes), Some(page)) if acpi::root(bytes).is_some() => {
            let at = page + smp::RSDP_OFFSET;
            let len = bytes.len().min(smp::RSDP_MAX);
            // SAFETY: the low page is memory that nobody uses, mapped at its own address; `bytes` may lie in it,
            // which `copy` allows, and is not looked at again.
            unsafe { core::ptr::copy(bytes.as_ptr(), at as *mut u8, len) };
            at
        }
        _ => {
            const BIOS: u64 = 0xe_0000;
            let bios = identity(BIOS, 0x2_0000).unwrap_or(&[]);
            let found =
                bios.chunks(16).enumerate().position(|(at, _)| acpi::root(&bios[16 * at..]).is_some());
            found.map_or(0, |at| BIOS + 16 * at as u64)
        }
    }
}

/// Devices of the machine as ACPI describes them, or those of every PC.
fn platform(rsdp: u64) -> acpi::Platform {
    let found = match rsdp {
        0 => Err("no root pointer"),
        at => view::open(at, 36)
            .ok_or("root pointer out of reach")
            .and_then(|root| acpi::discover(&root, view::open)),
    };
    match found {
        Ok(platform) => platform,
        Err(why) => {
            kprintln!("tern: acpi      {why}; assuming an ordinary PC with one processor");
            acpi::Platform::legacy()
        }
    }
}

/// Facts that every user may know: the info page.
fn info_page(fast_path: bool) -> InfoPage {
    let features = cpu::features();
    let flag = |on: bool, bit| if on { bit } else { 0 };
    let clock = timer::scale();
    InfoPage {
        magic: InfoPage::MAGIC,
        abi_version: abi::VERSION,
        features: flag(fast_path, feature::FAST_PATH)
            | flag(features.pcid, feature::PCID)
            | flag(features.invariant_tsc, feature::INVARIANT_TSC),
        tsc_hz: clock.tsc_hz,
        tsc_start: clock.tsc_start,
        tsc_to_ns: clock.tsc_to_ns,
    }
}

fn describe(boot: &Boot) {
    cpu::describe();
    let free = boot.memory.total(memory_kind::FREE);
    let Pool { range, used } = boot.pool;
    kprintln!(
        "tern: memory    {} MiB free, {} MiB for the kernel at {:#x} ({} KiB used)",
        free >> 20,
        range.len >> 20,
        range.start,
        used >> 10
    );
}
