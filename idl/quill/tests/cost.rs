//! `quill cost` predicts how many instructions stubs take: compared with the rows that `bench/` has counted, and with stubs of interfaces made by
//! chance, which a debugger counts here as `./tern bench idl` does in the system.

mod workshop;

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use quill::driver::{self, Compiled};
use quill::kernel::{KernelPart, TernDoor, TernIpc};
use quill::layout::{Instructions, instructions};
use quill::session::Options;
use workshop::Workshop;

/// Whether a prediction is good: a tenth off, or three.
fn is_near(predicted: u32, counted: u32) -> bool {
    let off = predicted.abs_diff(counted);
    off <= 3 || 10 * off <= counted
}

/// Predictions for all methods of a file, by their names.
fn predictions(out: &mut Compiled, kernel: &dyn KernelPart) -> Vec<(String, Option<Instructions>)> {
    let layouts = out.layout(kernel);
    assert!(out.accepted(), "{}", out.messages());
    let methods = layouts.iter().flat_map(|layout| &layout.methods);
    methods.map(|method| (method.name.clone(), instructions(&out.model, method, kernel))).collect()
}

#[test]
fn counted_rows_are_predicted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let rows = std::fs::read_to_string(root.join("bench/results/idl.json")).unwrap();
    let row = |name: String| -> u32 {
        let behind = rows.split(&format!("\"{name}\"")).last().filter(|_| rows.contains(&name));
        let digits =
            behind.unwrap_or_else(|| panic!("there is no row {name}")).split("\"user\":").nth(1).unwrap();
        digits.trim_start().split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    let file = root.join("idl/interfaces/bench.idl");
    let mut out = driver::compile(&file, Options::default()).unwrap();
    let mut wrong = String::new();
    let mut compared = 0;
    let by_ipc = predictions(&mut out, &TernIpc).into_iter();
    for ((method, predicted), (_, by_door)) in by_ipc.zip(predictions(&mut out, &TernDoor)) {
        let Some((predicted, by_door)) = predicted.zip(by_door).filter(|_| method != "one") else { continue };
        for (name, predicted) in [
            (format!("idl.c.bare.{method}.client"), predicted.c_client),
            (format!("idl.c.bare.{method}.server"), predicted.c_server),
            (format!("idl.{method}.client"), predicted.rust_client),
            (format!("idl.{method}.server"), predicted.rust_server),
            // Both sides of a call through a door have one row.
            (format!("idl.c.bare.door.{method}"), by_door.c_client + by_door.c_server),
            (format!("idl.door.{method}"), by_door.rust_client + by_door.rust_server),
        ] {
            let counted = row(name.clone());
            compared += 1;
            if !is_near(predicted, counted) {
                let _ = writeln!(wrong, "{name}: {counted}, predicted {predicted}");
            }
        }
    }
    assert_eq!((compared, &*wrong), (42, ""));
}

/// Types of generated interfaces, in IDL and in C.
const TYPES: [(&str, &str); 9] = [
    ("boolean", "bool"),
    ("octet", "uint8_t"),
    ("short", "int16_t"),
    ("unsigned short", "uint16_t"),
    ("long", "int32_t"),
    ("unsigned long", "uint32_t"),
    ("long long", "int64_t"),
    ("Kind", "M_Kind"),
    ("Pair", "M_Pair"),
];
const PAIR: usize = 8;
const DIRECTIONS: [&str; 4] = ["in", "in", "out", "inout"];

/// An interface with one method: its parameters, and its result.
struct Generated {
    params: Vec<(&'static str, usize)>,
    result: Option<usize>,
}

impl Generated {
    fn new(chance: &mut impl FnMut() -> usize) -> Generated {
        let count = [0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14][chance() % 16];
        let params = (0..count).map(|_| (DIRECTIONS[chance() % 4], chance() % TYPES.len())).collect();
        let result = [None, None, Some(0), Some(4), Some(6), Some(7), Some(PAIR)][chance() % 7];
        Generated { params, result }
    }

    fn idl(&self, number: usize) -> String {
        let params = self.params.iter().enumerate();
        let params: Vec<String> =
            params.map(|(i, (direction, ty))| format!("{direction} {} p{i}", TYPES[*ty].0)).collect();
        let result = self.result.map_or("void", |ty| TYPES[ty].0);
        format!("  interface I{number} {{ {result} f({}); }};\n", params.join(", "))
    }

    /// A client that has its arguments in memory and wants its results there, and a server whose method has each argument in a register and
    /// gives back whatever is in one; by ipc, or through a door.
    fn c(&self, number: usize, by_door: bool) -> String {
        let (mut parameters, mut arguments, mut fields, mut uses) =
            (String::new(), String::new(), String::new(), String::new());
        for (i, &(direction, ty)) in self.params.iter().enumerate() {
            let c = TYPES[ty].1;
            let by_pointer = direction != "in" || ty == PAIR;
            let constant = if direction == "in" && ty == PAIR { "const " } else { "" };
            let star = if by_pointer { "*" } else { "" };
            let _ = write!(parameters, ", {constant}{c} {star}p{i}");
            let _ = write!(arguments, ", {}n.p{i}", if by_pointer { "&" } else { "" });
            let _ = write!(fields, "{c} p{i}; ");
            uses += &match (direction, ty) {
                ("in", PAIR) => format!("USE_AT(p{i}); "),
                ("in", _) => format!("USE(p{i}); "),
                ("inout", PAIR) => format!("USE_AT(p{i}); MAKE_AT(p{i}); "),
                ("inout", _) => format!("USE(*p{i}); MAKE(p{i}); "),
                (_, PAIR) => format!("MAKE_AT(p{i}); "),
                _ => format!("MAKE(p{i}); "),
            };
        }
        if let Some(ty) = self.result {
            let c = TYPES[ty].1;
            let _ = write!(parameters, ", {c} *result");
            arguments += ", &n.result";
            let _ = write!(fields, "{c} result; ");
            uses += if ty == PAIR { "MAKE_AT(result); " } else { "MAKE(result); " };
        }
        let (begin, serve, callee) = way(number, by_door);
        format!(
            "static quill_status m_{number}({begin}{parameters}) {{ (void)self; {uses}return QUILL_OK; }}
             static const M_I{number}_server methods_{number} = {{ m_{number} }};
             M_I{number}_{serve}
             static void client_{number}(tern_uid server)
             {{
                 {callee}
                 struct {{ {fields}int last; }} n;
                 int left = 2;
                 __builtin_memset(&n, 0, sizeof n);
                 __asm__ volatile(\"\" : : \"r\"(&n) : \"memory\");
                 do {{
                     MARK;
                     if (M_I{number}_f(callee{arguments}) != QUILL_OK)
                         stop(1);
                     __asm__ volatile(\"\" : : \"m\"(n));
                     MARK;
                 }} while (--left > 0);
             }}\n"
        )
    }
}

/// A server's first parameters, what serves, and the variable of whom a client calls.
fn way(number: usize, by_door: bool) -> (&'static str, String, String) {
    if by_door {
        let callee = format!("M_I{number} callee = {{ (uint32_t)server, 0 }};");
        ("void *self", format!("ENTRY(serve_{number}, methods_{number}, 0)"), callee)
    } else {
        let serve = format!("SERVE(serve_{number}, methods_{number})");
        ("void *self, tern_uid from", serve, "tern_uid callee = server;".into())
    }
}

/// Lines that the programs have in common with those of `bench/`.
const HEAD: &str = r#"
    #include <stdint.h>
    #include "generated.h"
    void stop(int why);
    #define MARK __asm__ volatile("int3" ::: "memory")
    #define USE(argument) __asm__ volatile("" : : "r"(argument))
    #define MAKE(result) __asm__ volatile("" : "=r"(*(result)))
    #define USE_AT(address) __asm__ volatile("" : : "r"(address) : "memory")
    #define MAKE_AT(address) __asm__ volatile("" : "=m"(*(address)))
"#;

/// A file with these interfaces.
fn file(all: &[Generated]) -> String {
    let interfaces: String = all.iter().enumerate().map(|(number, one)| one.idl(number)).collect();
    format!(
        "module M {{\n  enum Kind {{ A, B, C }};\n  struct Pair {{ long x; long y; }};\n{interfaces}}};\n"
    )
}

fn compile(idl: &str) -> Compiled {
    driver::compile_text(Path::new("generated.idl"), idl.as_bytes(), Options::default())
}

/// So many interfaces that fit into registers: what does not is for others to predict.
fn generated(count: usize) -> Vec<Generated> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut chance = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as usize
    };
    let fits = |one: &Generated| {
        let mut out = compile(&file(std::slice::from_ref(one)));
        let layouts = out.layout(&TernIpc);
        let mut methods = layouts.iter().flat_map(|layout| &layout.methods);
        out.accepted() && methods.all(|method| instructions(&out.model, method, &TernIpc).is_some())
    };
    std::iter::repeat_with(|| Generated::new(&mut chance)).filter(fits).take(count).collect()
}

/// The program with the stubs of interfaces, for one that counts.
fn program(all: &[Generated], by_door: bool) -> String {
    let list = |of: &str| {
        let names = (0..all.len()).map(|number| format!("(void (*)(tern_uid))(void *){of}_{number}"));
        names.collect::<Vec<_>>().join(", ")
    };
    let mut program = HEAD.to_owned();
    all.iter().enumerate().for_each(|(number, one)| program += &one.c(number, by_door));
    let serve = if by_door {
        "__asm__ volatile(\"int3\" : : \"c\"(servers[interface]));"
    } else {
        "servers[interface](0);"
    };
    let _ = write!(
        program,
        "static void (*const clients[])(tern_uid) = {{ {} }}, (*const servers[])(tern_uid) = {{ {} }};
         int interfaces(void) {{ return {}; }}
         void run_client(int interface) {{ clients[interface](3); }}
         void run_server(int interface) {{ {serve} }}\n",
        list("client"),
        list("serve"),
        all.len()
    );
    program
}

/// Clients and servers of interfaces, counted, beside what is predicted for them.
fn counted(all: &[Generated], kernel: &dyn KernelPart) -> Vec<(String, Instructions, [u32; 2])> {
    let shop = Workshop::new(&format!("cost-{}", kernel.name()));
    let by_door = kernel.name() == TernDoor.name();
    shop.bring_tern();
    shop.bring("count_stubs.c", "count_stubs.c");
    let idl = file(all);
    shop.emit_c_of("generated.idl", &idl, kernel);
    std::fs::write(shop.path("generated.c"), program(all, by_door)).unwrap();
    // Compiled with the options that the programs of `bench/` have.
    let options = ["-std=gnu11", "-O2", "-ffreestanding", "-fPIE", "-mno-sse", "-fomit-frame-pointer"];
    let stubs = ["-DQUILL_OMIT_FRAME_POINTER", "-w", "-I.", "-c", "generated.c"];
    shop.tool("gcc", &[&options[..], &stubs].concat());
    let way = if by_door { "-DBY_DOOR" } else { "-DBY_IPC" };
    shop.tool("gcc", &["-O2", "-w", "-D_GNU_SOURCE", way, "-o", "count", "count_stubs.c", "generated.o"]);
    let out = Command::new(shop.path("count")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let lines = String::from_utf8(out.stdout).unwrap();
    let numbers = lines.lines().map(|line| {
        let (client, server) = line.split_once(' ').unwrap();
        [client.parse().unwrap(), server.parse().unwrap()]
    });
    let what = all.iter().enumerate().map(|(number, one)| one.idl(number).trim().to_owned());
    let predicted =
        predictions(&mut compile(&idl), kernel).into_iter().map(|(_, predicted)| predicted.unwrap());
    what.zip(predicted).zip(numbers).map(|((idl, predicted), counted)| (idl, predicted, counted)).collect()
}

/// Fifty interfaces. A compiler does now and then what nobody foresees: so the clients that are mispredicted may be one; the servers by ipc, in which
/// it has the words of both messages and the method's variables to find registers for, six; and the objects, which have a frame, two.
#[test]
fn generated_interfaces_are_predicted() {
    if Command::new("gcc").arg("--version").output().is_err() {
        println!("there is no gcc here");
        return;
    }
    let all = generated(50);
    for (kernel, most) in [(&TernIpc as &dyn KernelPart, (1, 6)), (&TernDoor, (1, 2))] {
        let (mut clients, mut servers) = (0, 0);
        let all = counted(&all, kernel);
        assert_eq!(all.len(), 50);
        let name = kernel.name();
        for (idl, predicted, [client, server]) in all {
            if !is_near(predicted.c_client, client) {
                clients += 1;
                println!("{name} client: {client}, predicted {}: {idl}", predicted.c_client);
            }
            if !is_near(predicted.c_server, server) {
                servers += 1;
                println!("{name} server: {server}, predicted {}: {idl}", predicted.c_server);
            }
        }
        assert!(
            clients <= most.0 && servers <= most.1,
            "{name}: {clients} clients and {servers} servers are off"
        );
    }
}
