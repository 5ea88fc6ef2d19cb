//! Programs in C over L4's V4 API with 32 bits that count their own stubs, as `bench/l4v4` does.

use std::fmt::Write;
use std::process::Command;

use quill::kernel::L4V4;
use quill::layout::{Message, Method};

use super::{Generated, Kind, LISTS, PAIR, TYPES, compile, file};
use crate::workshop::Workshop;

/// Options with which `bench/l4v4` is made.
const OPTIONS: [&str; 9] = [
    "-m32",
    "-O2",
    "-fomit-frame-pointer",
    "-DQUILL_OMIT_FRAME_POINTER",
    "-ffreestanding",
    "-fno-pie",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-std=gnu11",
];

/// In this order: what is counted lies between the first and the third.
const SOURCES: [&str; 4] = ["begin.s", "generated.c", "end.s", "count_l4_v4.c"];

/// Clients and servers of interfaces, counted; `None` where no program for 32 bits can be made or run.
pub fn counted(all: &[Generated]) -> Option<Vec<[u32; 2]>> {
    let shop = Workshop::new("cost-l4-v4");
    let idl = file(all);
    let layouts = compile(&idl).layout(&L4V4);
    shop.emit_c_of("generated.idl", &idl, &L4V4);
    std::fs::write(shop.path("generated.c"), program(all, layouts.iter().flat_map(|layout| &layout.methods)))
        .unwrap();
    ["count_l4_v4.c", "l4_v4_calls.h"].iter().for_each(|file| shop.bring(file, file));
    for file in ["begin.s", "end.s", "step.h"] {
        shop.bring(&format!("../../../../bench/l4v4/{file}"), file);
    }
    let link = ["-w", "-I.", "-nostdlib", "-static", "-no-pie", "-o", "count"];
    if let Err(why) = shop.try_tool("gcc", &[&OPTIONS[..], &link, &SOURCES].concat()) {
        // A compiler that makes programs for 32 bits has found a mistake in this one.
        let makes_any = shop.try_tool("gcc", &["-m32", "-ffreestanding", "-c", "-x", "c", "/dev/null"]);
        assert!(makes_any.is_err(), "{why}");
        return None;
    }
    let out = Command::new(shop.path("count")).output().ok()?;
    let lines = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{lines}");
    let number = |line: &str| {
        let (client, server) = line.split_once(' ').unwrap();
        [client.parse().unwrap(), server.parse().unwrap()]
    };
    Some(lines.lines().map(number).collect())
}

/// Code around an interface's stubs.
#[derive(Default)]
struct Around {
    /// Variables for what is passed by pointer.
    data: String,
    /// Parameters of the client's function and of the server's method.
    parameters: String,
    /// Arguments of the stub.
    passed: String,
    /// Arguments of the client's function, a word each.
    arguments: Vec<String>,
    /// Statements of the method.
    body: String,
}

impl Around {
    fn pointer(&mut self, number: usize, name: &str, ty: &str) {
        let _ = writeln!(self.data, "static {ty} {name}_{number};");
        self.arguments.push(format!("(uint32_t)&{name}_{number}"));
    }

    fn value(&mut self, number: usize, i: usize, direction: &str, ty: usize) {
        let (c, name) = (TYPES[ty].1, format!("p{i}"));
        let by_pointer = direction != "in" || ty == PAIR;
        let constant = if direction == "in" && ty == PAIR { "const " } else { "" };
        let star = if by_pointer { "*" } else { "" };
        let _ = write!(self.parameters, ", {constant}{c} {star}{name}");
        let _ = write!(self.passed, ", {name}");
        if by_pointer {
            self.pointer(number, &name, c);
        } else {
            let words = if c == "int64_t" { 2 } else { 1 };
            self.arguments.extend(std::iter::repeat_n("0".to_owned(), words));
        }
        if direction != "out" {
            self.body +=
                &if ty == PAIR { format!("TAKE_AT({name}); ") } else { format!("TAKE({star}{name}); ") };
        }
        if direction != "in" {
            self.body += &gives(ty, &name);
        }
    }
}

impl Around {
    fn list(&mut self, number: usize, i: usize, direction: &str, list: usize, count: u64) {
        let (c, name) = (LISTS[list].1, format!("p{i}"));
        let _ = writeln!(self.data, "static {c} {name}_{number} = {{ {count}, (void *)data }};");
        self.arguments.push(format!("(uint32_t)&{name}_{number}"));
        let constant = if direction == "in" { "const " } else { "" };
        let _ = write!(self.parameters, ", {constant}{c} *{name}");
        let _ = write!(self.passed, ", {name}");
        if direction != "out" {
            let _ = write!(self.body, "TAKE({name}->_length); TAKE_AT({name}->_buffer); ");
        }
        if direction != "in" {
            let _ = write!(self.body, "{name}->_length = {count}; {name}->_buffer = (void *)data; ");
        }
    }
}

/// Statements that give a result a value.
fn gives(ty: usize, name: &str) -> String {
    if ty == PAIR { format!("{name}->x = 1, {name}->y = 2; ") } else { format!("*{name} = 1; ") }
}

fn program<'a>(all: &[Generated], methods: impl Iterator<Item = &'a Method>) -> String {
    let (mut program, mut calls) = (HEAD.to_owned(), String::new());
    for (number, (one, method)) in all.iter().zip(methods).enumerate() {
        let mut around = Around { arguments: vec!["SERVER".into()], ..Around::default() };
        for (i, &(direction, kind)) in one.params.iter().enumerate() {
            match kind {
                Kind::Value(ty) => around.value(number, i, direction, ty),
                Kind::List(list, count) => around.list(number, i, direction, list, count),
            }
        }
        program += &functions(number, one, method, &mut around);
        let _ = writeln!(
            calls,
            "{{ (void (*)(void))client_{number}, serve_{number}, {}, {{ {} }}, {}, {} }},",
            around.arguments.len(),
            around.arguments.join(", "),
            travels(one, &method.request),
            travels(one, &method.reply)
        );
    }
    let _ = writeln!(
        program,
        "const struct call calls[] = {{\n{calls}}};\nconst uint32_t calls_count = {};",
        all.len()
    );
    program
}

/// A message with a label of 0: its tag, and how many bytes each of its items has.
fn travels(one: &Generated, message: &Message) -> String {
    assert_eq!(message.label, 0);
    let bytes = message.chunks.iter().map(|chunk| format!("{}, ", one.bytes(&chunk.path[0])));
    let tag = message.registers | (message.chunks.len() as u32) << 7;
    format!("{{ {tag}, {{ {}0 }} }}", bytes.collect::<String>())
}

/// Function around a client's, which returns a result that a register holds; and a server that its method is a part of.
fn functions(number: usize, one: &Generated, method: &Method, around: &mut Around) -> String {
    let (mut parameters, mut passed) = (around.parameters.clone(), around.passed.clone());
    let (mut ty, mut before, mut after) = ("void", String::new(), "");
    if let Some(result) = one.result {
        let c = TYPES[result].1;
        let _ = write!(around.parameters, ", {c} *result");
        around.body += &gives(result, "result");
        if result == PAIR {
            parameters += ", M_Pair *result";
            passed += ", result";
            around.pointer(number, "result", c);
        } else {
            passed += ", &result";
            (ty, before, after) = (c, format!("{c} result; "), "return result; ");
        }
    }
    if one.raises {
        let raised = format!("M_I{number}_f_raised");
        let _ = write!(around.parameters, ", {raised} *raised");
        let _ = write!(parameters, ", {raised} *raised");
        passed += ", raised";
        around.pointer(number, "raised", &raised);
    }
    let mut buffers = String::new();
    if !method.request.chunks.is_empty() {
        let _ = writeln!(around.data, "static M_I{number}_buffers buffers_{number};");
        let _ = write!(buffers, ", &buffers_{number}");
    }
    let Around { data, parameters: of_method, body, .. } = around;
    format!(
        "{data}COUNTED {ty} client_{number}(quill_thread server{parameters})
         {{ {before}if (M_I{number}_f(server{passed}) != QUILL_OK) __builtin_trap(); {after}}}
         METHOD m_{number}(void *self, quill_thread from{of_method})
         {{ (void)self, (void)from; {body}return QUILL_OK; }}
         static const M_I{number}_server methods_{number} = {{ m_{number} }};
         COUNTED void serve_{number}(void) {{ M_I{number}_serve(&methods_{number}, 0{buffers}); }}\n"
    )
}

/// Lines that the programs have in common with `bench/l4v4`.
const HEAD: &str = r#"
    #include "generated.h"
    #include "l4_v4_calls.h"
    #define COUNTED __attribute__((noinline, noclone, used))
    #define METHOD static inline __attribute__((always_inline)) quill_status
    #define TAKE(argument) __asm__ volatile("" : : "r"(argument))
    #define TAKE_AT(address) __asm__ volatile("" : : "r"(address) : "memory")
    static _Alignas(8) char data[8192] __attribute__((unused));
"#;
