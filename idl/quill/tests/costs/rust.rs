//! Programs in Rust of generated interfaces, as those in C are: what the bench's clients and servers in Rust do, with the crates that they have.

use std::fmt::Write;
use std::path::Path;

use quill::kernel::KernelPart;

use super::{Kind, LISTS, Message, PAIR, Program, TEXT, TYPES};
use crate::workshop::Workshop;

/// Types of values in Rust, as in [`TYPES`].
const NAMES: [&str; TYPES.len()] = ["bool", "u8", "i16", "u16", "i32", "u32", "i64", "M::Kind", "M::Pair"];
/// Elements of lists, as in [`LISTS`].
const ELEMENTS: [&str; LISTS.len()] = ["", "u8", "i32", "M::Pair", "M::Triple"];

/// Options with which programs of Tern are compiled.
const OPTIONS: [&str; 11] = [
    "--edition",
    "2024",
    "--target",
    "x86_64-unknown-none",
    "-Copt-level=3",
    "-Cpanic=abort",
    "-Ccodegen-units=1",
    "-Crelocation-model=pic",
    "--cap-lints=allow",
    "-L.",
    "-Cembed-bitcode=yes",
];

/// The type as which a list is seen.
fn view(list: usize) -> String {
    if list == TEXT { "&'static str".into() } else { format!("&'static [{}]", ELEMENTS[list]) }
}

/// Code in Rust around parameters.
#[derive(Default)]
struct InRust {
    data: String,
    fields: String,
    begins: String,
    arguments: Vec<String>,
    results: Vec<(String, String)>,
    parameters: String,
    uses: String,
}

impl InRust {
    fn parameter(&mut self, number: usize, i: usize, direction: &str, kind: Kind) {
        let (name, ty) = match kind {
            Kind::Value(ty) => (format!("p{i}"), NAMES[ty].to_owned()),
            Kind::List(list, count) => {
                let name = format!("LIST_{number}_{i}");
                let _ = if list == TEXT {
                    writeln!(self.data, "static {name}: &str = align!(b\"{}\");", "x".repeat(count as usize))
                } else {
                    let element = ELEMENTS[list];
                    writeln!(self.data, "static {name}: &[{element}] = elements::<{element}, {count}>();")
                };
                (name, view(list))
            }
        };
        if direction != "out" {
            let seen = match kind {
                Kind::Value(PAIR) => format!("&{ty}"),
                Kind::Value(_) => ty.clone(),
                Kind::List(..) => ty.replace("'static ", ""),
            };
            let _ = write!(self.parameters, ", p{i}: {seen}");
            let _ = write!(self.uses, "p{i}.used(); ");
            match kind {
                Kind::Value(what) => {
                    let _ = write!(self.fields, "p{i}: {ty}, ");
                    let _ = write!(self.begins, "p{i}: {ty}::blank(), ");
                    self.arguments.push(format!("{}n.p{i}", if what == PAIR { "&" } else { "" }));
                }
                Kind::List(..) => self.arguments.push(format!("read(&raw const {name})")),
            }
        }
        if direction != "in" {
            let made = match kind {
                Kind::Value(_) => format!("{ty}::made()"),
                Kind::List(..) => format!("read(&raw const {name})"),
            };
            self.results.push((ty, made));
        }
    }
}

impl Program<'_> {
    /// Compiles the program in Rust, with the crates of Tern that it needs; says where it is.
    pub fn in_rust(&self, shop: &Workshop, idl: &str, kernel: &dyn KernelPart) -> &'static str {
        shop.emit_rust_of("generated.idl", idl, kernel);
        std::fs::write(shop.path("program.rs"), self.text_in_rust()).unwrap();
        std::fs::write(shop.path("rt.rs"), RUNTIME).unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (name, at, needs) in [
            ("abi", root.join("abi/src/lib.rs"), None),
            ("sys", root.join("user/lib/sys/src/lib.rs"), Some("abi")),
            ("stub", root.join("user/lib/stub/src/lib.rs"), Some("sys")),
            ("rt", "rt.rs".into(), Some("stub")),
        ] {
            let library = ["--crate-type", "rlib", "--crate-name", name, at.to_str().unwrap()];
            let needs = needs.map_or(vec![], |needed| vec!["--extern", needed]);
            rustc(shop, &[&library[..], &needs].concat());
        }
        let program = ["--crate-type", "staticlib", "--crate-name", "program", "program.rs", "-Clto=fat"];
        rustc(shop, &[&program[..], &["--extern", "stub", "--extern", "rt"]].concat());
        "libprogram.a"
    }

    fn text_in_rust(&self) -> String {
        let numbers = 0..self.all.len();
        let one: String = numbers.clone().map(|number| self.one_in_rust(number)).collect();
        let list =
            |of: &str| -> String { numbers.clone().map(|number| format!("{of}_{number}, ")).collect() };
        let (callee, serve) = if self.by_door {
            ("stub::Door(3)", "asm!(\"int3\", in(\"rcx\") SERVERS[interface as usize]())")
        } else {
            ("stub::Uid(3)", "SERVERS[interface as usize]();")
        };
        let requests: String = numbers
            .clone()
            .map(|number| self.arrival_in_rust(number, &self.methods[number].request, false))
            .collect();
        let replies: String = numbers
            .clone()
            .map(|number| self.arrival_in_rust(number, &self.methods[number].reply, true))
            .collect();
        let count = self.all.len();
        let server = if self.by_door { "u64" } else { "()" };
        format!(
            "{HEAD}{one}
const CALLEE: {} = {callee};
#[unsafe(no_mangle)] static requests: [Arrival; {count}] = [{requests}];
#[unsafe(no_mangle)] static replies: [Arrival; {count}] = [{replies}];
static CLIENTS: [unsafe fn(); {count}] = [{}];
static SERVERS: [unsafe fn() -> {server}; {count}] = [{}];
static PREPARES: [unsafe fn(); {count}] = [{}];
#[unsafe(no_mangle)] extern \"C\" fn interfaces() -> i32 {{ {count} }}
#[unsafe(no_mangle)] unsafe extern \"C\" fn prepare(interface: i32) {{ unsafe {{ PREPARES[interface as usize]() }} }}
#[unsafe(no_mangle)] unsafe extern \"C\" fn run_client(interface: i32) {{ unsafe {{ CLIENTS[interface as usize]() }} }}
#[unsafe(no_mangle)] unsafe extern \"C\" fn run_server(interface: i32) {{ unsafe {{ {serve} }} }}
",
            callee.split('(').next().unwrap(),
            list("client"),
            list("serve"),
            list("prepare"),
        )
    }

    fn one_in_rust(&self, number: usize) -> String {
        let mut rust = InRust::default();
        if let Some(ty) = self.all[number].result {
            rust.results.push((NAMES[ty].into(), format!("{}::made()", NAMES[ty])));
        }
        for (i, &(direction, kind)) in self.all[number].params.iter().enumerate() {
            rust.parameter(number, i, direction, kind);
        }
        let InRust { data, fields, begins, arguments, results, parameters, uses } = rust;
        let types: Vec<&str> = results.iter().map(|(ty, _)| ty.as_str()).collect();
        let made: Vec<&str> = results.iter().map(|(_, made)| made.as_str()).collect();
        let tuple = |parts: &[&str]| match parts {
            [one] => (*one).to_owned(),
            parts => format!("({})", parts.join(", ")),
        };
        let (results, made) = (tuple(&types), tuple(&made));
        let (this, life) = match (self.by_door, self.methods[number].reply.long) {
            (true, true) => ("&'a self", "<'a>"),
            (true, false) => ("&self", ""),
            (false, true) => ("&'a mut self", "<'a>"),
            (false, false) => ("&mut self", ""),
        };
        // A client wants values in memory; of a list it wants to know where it lies.
        let is_list = |ty: &str| ty.starts_with('&');
        let (mut kept, mut kept_types) = (String::new(), Vec::new());
        for (i, ty) in types.iter().enumerate() {
            let value = if types.len() == 1 { "value".to_owned() } else { format!("value.{i}") };
            if is_list(ty) {
                let _ = write!(kept, "{value}.used(); ");
            } else {
                let _ = write!(kept, "r.{} = {value}; ", kept_types.len());
                kept_types.push(*ty);
            }
        }
        let blanks: String = kept_types.iter().map(|ty| format!("<{ty} as Used>::blank(), ")).collect();
        let all_types: String = kept_types.iter().map(|ty| format!("{ty}, ")).collect();
        let (rooms, serve, prepare, inbox) = self.rooms_in_rust(number);
        let calls = format!(
            "let mut r: ({all_types}) = ({blanks});
    hidden(&raw mut r);
    for _ in 0..2 {{
        mark();
        match client.f({}{}) {{
            Ok(value) => {{ {} at(&raw const r); mark(); }}
            Err(_) => unsafe {{ stop(1) }},
        }}
    }}",
            if inbox { "inbox, " } else { "" },
            arguments.join(", "),
            if types.is_empty() { "let () = value;" } else { &kept },
        );
        let error =
            if self.all[number].raises { format!("M::I{number}::FError") } else { "stub::Failure".into() };
        let results_of_trait = results.replace("'static", "'a");
        let calls = if inbox {
            format!(
                "let _ = stub::Inbox::open(unsafe {{ &mut *(&raw mut REPLIES_{number}) }}, |inbox| {{ {calls} }});"
            )
        } else {
            calls
        };
        format!(
            "{data}{rooms}struct Nothing{number};
impl M::I{number}::Server for Nothing{number} {{
    fn f{life}({this}{parameters}) -> Result<{results_of_trait}, {error}> {{ {uses} Ok({made}) }}
}}
{serve}
unsafe fn prepare_{number}() {{ unsafe {{ {prepare} }} }}
unsafe fn client_{number}() {{
    struct N {{ {fields} last: i32 }}
    let n = core::hint::black_box(N {{ {begins} last: 0 }});
    let client = M::I{number}::Client {{ server: core::hint::black_box(CALLEE) }};
    {calls}
}}
"
        )
    }

    /// Where messages with a part in memory arrive, what serves, and how there come to be elements; whether a client has an inbox.
    fn rooms_in_rust(&self, number: usize) -> (String, String, String, bool) {
        let (mut rooms, mut prepare) = (String::new(), String::new());
        let method = self.methods[number];
        let inbox = method.reply.long;
        if inbox {
            let _ = writeln!(
                rooms,
                "static mut REPLIES_{number}: M::I{number}::Replies = M::I{number}::Replies::new();"
            );
            let _ = write!(prepare, "REPLIES_{number}.describe(); ");
        }
        let serve = if self.by_door {
            let object = format!("M::I{number}::Object<Nothing{number}>");
            let _ = writeln!(
                rooms,
                "static mut BEHIND_{number}: core::mem::MaybeUninit<Behind<{object}>> = core::mem::MaybeUninit::uninit();"
            );
            let _ = write!(
                prepare,
                "(*(&raw mut BEHIND_{number})).write(Behind::new(M::I{number}::Object(Nothing{number}), end)); prepare_block(); "
            );
            format!("unsafe fn serve_{number}() -> u64 {{ stub::door::entry::<{object}>() }}")
        } else if method.request.long {
            let _ =
                writeln!(rooms, "static mut ROOM_{number}: M::I{number}::Room = M::I{number}::Room::new();");
            let _ = write!(prepare, "ROOM_{number}.describe(); ");
            format!(
                "unsafe fn serve_{number}() {{ let _ = unsafe {{ M::I{number}::serve(&mut Nothing{number}, &mut *(&raw mut ROOM_{number})) }}; }}"
            )
        } else {
            format!("unsafe fn serve_{number}() {{ M::I{number}::serve(&mut Nothing{number}) }}")
        };
        (rooms, serve, prepare, inbox)
    }

    /// A message that comes to this program.
    fn arrival_in_rust(&self, number: usize, message: &Message, is_reply: bool) -> String {
        let kind = match (self.by_door, is_reply, message.long) {
            (true, true, long) => format!("!0 ^ 6 ^ {:#x}", u32::from(long) << 10),
            (false, true, long) => format!("!0 ^ {:#x}", u32::from(long) << 10),
            (true, false, long) => format!("0xffff_fff8 ^ {:#x}", u32::from(long) << 10),
            (false, false, long) => format!("0xffff_fffe ^ {:#x}", u32::from(long) << 10),
        };
        let (room, words) = match (is_reply, self.by_door) {
            (true, _) => (format!("REPLIES_{number}"), format!("M::I{number}::Replies::DOPE")),
            (false, true) => ("BLOCK".to_owned(), "Block::dope(0, 0)".to_owned()),
            (false, false) => (format!("ROOM_{number}"), format!("M::I{number}::Room::DOPE")),
        };
        let (words_sent, strings) = self.words(number, message);
        let mut all: Vec<String> =
            words_sent.iter().map(|word| format!("core::ptr::without_provenance({word})")).collect();
        let mut lengths = [const { String::new() }; 8].map(|_| "(core::ptr::null_mut(), 0)".to_owned());
        if message.long {
            all[0] = format!("core::ptr::without_provenance((({words}) | {}) as usize)", words_sent[0]);
            all[1] = format!("(&raw const {room}).cast::<u8>()");
            for (string, bytes) in strings {
                lengths[string as usize] = format!(
                    "((&raw mut {room}).cast::<u64>().wrapping_add((({words}) >> 32 & 0xfff) as usize + {}), 4096 << 32 | {bytes})",
                    2 * string + 1
                );
            }
        }
        let partner = if self.by_door && !is_reply {
            format!("(&raw const BEHIND_{number}).cast::<u8>()")
        } else {
            "core::ptr::null()".into()
        };
        format!(
            "Arrival {{ rax: {kind}, rdx: {partner}, words: [{}], lengths: [{}] }},\n",
            all.join(", "),
            lengths.join(", ")
        )
    }
}

fn compiler() -> String {
    std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into())
}

fn rustc(shop: &Workshop, arguments: &[&str]) {
    shop.tool(&compiler(), &[&OPTIONS[..], arguments].concat());
}

/// Whether the compiler of this host makes programs of Tern.
pub fn has_target() -> bool {
    let asked = ["--print", "target-libdir", "--target", "x86_64-unknown-none"];
    let out = std::process::Command::new(compiler()).args(asked).output().unwrap();
    Path::new(String::from_utf8_lossy(&out.stdout).trim()).exists()
}

/// Crate `rt`, as far as stubs want it: memory for answers, which these methods do not use.
const RUNTIME: &str = r#"
#![no_std]
pub mod door {
    pub fn memory(_: &mut stub::door::Turn) -> Option<&dyn stub::hold::Memory> { None }
}
"#;

const HEAD: &str = r#"
#![no_std]
#![allow(static_mut_refs, non_upper_case_globals)]
extern crate alloc;
mod generated { include!("generated.rs"); }
use generated::M;
extern crate rt;
use core::arch::asm;
use stub::door::{Behind, Block};

#[repr(C)]
struct Arrival { rax: u64, rdx: *const u8, words: [*const u8; 11], lengths: [(*mut u64, u64); 8] }
unsafe impl Sync for Arrival {}
unsafe extern "C" { fn stop(why: i32) -> !; }
#[panic_handler]
fn panicked(_: &core::panic::PanicInfo) -> ! { unsafe { stop(2) } }
struct None;
unsafe impl alloc::alloc::GlobalAlloc for None {
    unsafe fn alloc(&self, _: core::alloc::Layout) -> *mut u8 { core::ptr::null_mut() }
    unsafe fn dealloc(&self, _: *mut u8, _: core::alloc::Layout) {}
}
#[global_allocator]
static NONE: None = None;

#[inline(always)]
fn mark() { unsafe { asm!("int3") } }
#[inline(always)]
fn at<T: ?Sized>(address: *const T) { unsafe { asm!("/* {0} */", in(reg) address.cast::<u8>(), options(nostack, preserves_flags)) } }
#[inline(always)]
fn hidden<T>(address: *mut T) { unsafe { asm!("/* {0} */", in(reg) address, options(nostack, preserves_flags)) } }
#[inline(always)]
fn read<T: Copy>(place: *const T) -> T { unsafe { place.read_volatile() } }

trait Used: Sized { fn used(self); fn made() -> Self { Self::blank() } fn blank() -> Self; }
macro_rules! numbers { ($($ty:ident $class:ident $spelling:literal)*) => {$(impl Used for $ty {
    #[inline(always)]
    fn used(self) { unsafe { asm!($spelling, in($class) self, options(nomem, nostack, preserves_flags)) } }
    #[inline(always)]
    fn made() -> $ty { let it; unsafe { asm!($spelling, out($class) it, options(nomem, nostack, preserves_flags)) }; it }
    fn blank() -> $ty { 0 }
})*} }
numbers! { u8 reg_byte "/* {0} */" i16 reg "/* {0:x} */" u16 reg "/* {0:x} */" i32 reg "/* {0:e} */" u32 reg "/* {0:e} */" i64 reg "/* {0} */" usize reg "/* {0} */" }
// No register has either by chance.
static TRUTH: bool = false;
static KIND: M::Kind = M::Kind::A;
impl Used for bool {
    #[inline(always)]
    fn used(self) { (self as u8).used() }
    #[inline(always)]
    fn made() -> bool { read(&raw const TRUTH) }
    fn blank() -> bool { false }
}
impl Used for M::Kind {
    #[inline(always)]
    fn used(self) { (self as u32).used() }
    #[inline(always)]
    fn made() -> M::Kind { read(&raw const KIND) }
    fn blank() -> M::Kind { M::Kind::A }
}
impl Used for &M::Pair {
    #[inline(always)]
    fn used(self) { at(self) }
    fn blank() -> Self { &M::Pair { x: 0, y: 0 } }
}
impl Used for M::Pair {
    fn used(self) {}
    #[inline(always)]
    fn made() -> M::Pair { let mut it = core::mem::MaybeUninit::zeroed(); hidden(it.as_mut_ptr()); unsafe { it.assume_init() } }
    fn blank() -> M::Pair { M::Pair { x: 0, y: 0 } }
}
impl<T> Used for &[T] {
    #[inline(always)]
    fn used(self) { self.len().used(); at(self.as_ptr()) }
    fn blank() -> Self { &[] }
}
impl Used for &str {
    #[inline(always)]
    fn used(self) { self.as_bytes().used() }
    fn blank() -> Self { "" }
}

#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);
macro_rules! align { ($bytes:literal) => { {
    static TEXT: &Aligned<[u8]> = &Aligned(*$bytes);
    unsafe { core::str::from_utf8_unchecked(&TEXT.0) }
} } }
use align;
static DATA: [u64; 1024] = [0; 1024];
const fn elements<T, const COUNT: usize>() -> &'static [T] {
    unsafe { core::slice::from_raw_parts((&raw const DATA).cast(), COUNT) }
}
unsafe extern "sysv64" fn end(_: u64) {}
static mut BLOCK: Block = Block::new();
static mut BUFFERS: [[u64; 513]; 8] = [[0; 513]; 8];
unsafe fn prepare_block() {
    for number in 0..8 {
        unsafe { BLOCK.lend(number, core::ptr::NonNull::from(&mut BUFFERS[number]).cast(), 4096) }
    }
}
"#;
