//! Interfaces made by chance, and programs in C that a debugger counts: of each a client and a server, as those of `bench/` are.

pub mod l4_v4;
pub mod rust;

use std::fmt::Write;
use std::path::Path;

use quill::driver::{self, Compiled};
use quill::kernel::{KernelPart, TernDoor};
use quill::layout::{Carrier, Leaf, Message, Method, Place};
use quill::session::Options;

use crate::workshop::Workshop;

/// Types of values, in IDL and in C.
pub const TYPES: [(&str, &str); 9] = [
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
pub const PAIR: usize = 8;

/// Types of lists, in IDL and in C, with the bytes of an element. The first is a text.
pub const LISTS: [(&str, &str, u64); 5] = [
    ("string", "char *", 1),
    ("Octets", "M_Octets", 1),
    ("Longs", "M_Longs", 4),
    ("Pairs", "M_Pairs", 8),
    ("Triples", "M_Triples", 24),
];
pub const TEXT: usize = 0;

const DIRECTIONS: [&str; 4] = ["in", "in", "out", "inout"];

/// Numbers by chance, below others.
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % end
    }
}

/// Parameter: a value of one of [`TYPES`], or so many elements of one of [`LISTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Value(usize),
    List(usize, u64),
}

impl Kind {
    fn idl(self) -> &'static str {
        match self {
            Kind::Value(ty) => TYPES[ty].0,
            Kind::List(list, _) => LISTS[list].0,
        }
    }
}

/// An interface with one method: its parameters, and its result.
pub struct Generated {
    pub params: Vec<(&'static str, Kind)>,
    pub result: Option<usize>,
    /// It may raise an exception.
    pub raises: bool,
}

impl Generated {
    /// Values only.
    pub fn of_values(chance: &mut Chance) -> Generated {
        let count = [0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14][chance.below(16)];
        let value =
            |chance: &mut Chance| (DIRECTIONS[chance.below(4)], Kind::Value(chance.below(TYPES.len())));
        let params = (0..count).map(|_| value(chance)).collect();
        let result = [None, None, Some(0), Some(4), Some(6), Some(7), Some(PAIR)][chance.below(7)];
        Generated { params, result, raises: chance.below(4) == 0 }
    }

    /// A text of so many bytes.
    pub fn of_text(direction: &'static str, bytes: u64) -> Generated {
        Generated { params: vec![(direction, Kind::List(TEXT, bytes))], result: None, raises: false }
    }

    /// Lists and a few values. A list has from eight bytes to some hundreds.
    pub fn of_lists(chance: &mut Chance) -> Generated {
        let (lists, values) = ([1, 1, 1, 2, 2, 3][chance.below(6)], [0, 0, 1, 2, 3, 4][chance.below(6)]);
        let mut params = Vec::new();
        for _ in 0..lists {
            let list = chance.below(LISTS.len());
            let most = [32, 100, 400][chance.below(3)];
            let bytes = 8 + chance.below(most) as u64;
            params.push((DIRECTIONS[chance.below(4)], Kind::List(list, bytes.div_ceil(LISTS[list].2))));
        }
        for _ in 0..values {
            let at = chance.below(params.len() + 1);
            let numbers = [1, 3, 4, 5, 6];
            params.insert(at, (DIRECTIONS[chance.below(4)], Kind::Value(numbers[chance.below(5)])));
        }
        Generated { params, result: None, raises: false }
    }

    pub fn has_lists(&self) -> bool {
        self.params.iter().any(|(_, kind)| matches!(kind, Kind::List(..)))
    }

    pub fn idl(&self, number: usize) -> String {
        let params = self.params.iter().enumerate();
        let params: Vec<String> =
            params.map(|(i, (direction, kind))| format!("{direction} {} p{i}", kind.idl())).collect();
        let result = self.result.map_or("void", |ty| TYPES[ty].0);
        let raises = if self.raises { " raises (Failed)" } else { "" };
        format!("  interface I{number} {{ {result} f({}){raises}; }};\n", params.join(", "))
    }

    /// How many bytes the list has that is a parameter.
    pub fn bytes(&self, parameter: &str) -> u64 {
        let number: usize = parameter.strip_prefix('p').and_then(|digits| digits.parse().ok()).unwrap();
        match self.params[number].1 {
            Kind::List(list, count) => count * LISTS[list].2,
            Kind::Value(_) => panic!("{parameter} is no list"),
        }
    }

    /// How many elements the list has that is a parameter.
    pub fn count(&self, parameter: &str) -> u64 {
        let number = parameter.strip_prefix('p').and_then(|digits| digits.parse::<usize>().ok());
        match number.map(|number| self.params[number].1) {
            Some(Kind::List(_, count)) => count,
            _ => panic!("{parameter} is no list"),
        }
    }
}

/// A file with these interfaces.
pub fn file(all: &[Generated]) -> String {
    let interfaces: String = all.iter().enumerate().map(|(number, one)| one.idl(number)).collect();
    format!(
        "module M {{
  enum Kind {{ A, B, C }};
  exception Failed {{ long why; }};
  struct Pair {{ long x; long y; }};
  struct Triple {{ long long x; long long y; long long z; }};
  typedef sequence<octet> Octets;
  typedef sequence<long> Longs;
  typedef sequence<Pair> Pairs;
  typedef sequence<Triple> Triples;
{interfaces}}};\n"
    )
}

pub fn compile(idl: &str) -> Compiled {
    driver::compile_text(Path::new("generated.idl"), idl.as_bytes(), Options::default())
}

/// Code in C around a parameter: how a client has it, and what a method does with it.
#[derive(Default)]
struct InC {
    /// Beside other data of the program.
    data: String,
    parameters: String,
    arguments: String,
    fields: String,
    begins: String,
    uses: String,
    /// Lists that a client only lends are constants that it has a pointer to, as the bench's client has.
    lent: String,
    lists: String,
}

impl InC {
    fn value(&mut self, i: usize, direction: &str, ty: usize) {
        let c = TYPES[ty].1;
        let by_pointer = direction != "in" || ty == PAIR;
        let constant = if direction == "in" && ty == PAIR { "const " } else { "" };
        let star = if by_pointer { "*" } else { "" };
        let _ = write!(self.parameters, ", {constant}{c} {star}p{i}");
        let _ = write!(self.arguments, ", {}n.p{i}", if by_pointer { "&" } else { "" });
        let _ = write!(self.fields, "{c} p{i}; ");
        self.uses += &match (direction, ty) {
            ("in", PAIR) => format!("USE_AT(p{i}); "),
            ("in", _) => format!("USE(p{i}); "),
            ("inout", PAIR) => format!("USE_AT(p{i}); MAKE_AT(p{i}); "),
            ("inout", _) => format!("USE(*p{i}); MAKE(p{i}); "),
            (_, PAIR) => format!("MAKE_AT(p{i}); "),
            _ => format!("MAKE(p{i}); "),
        };
    }

    /// A list lies in data of the program; so do the words that say where, for a method that gives it back.
    fn list(&mut self, number: usize, i: usize, direction: &str, list: usize, count: u64) {
        let (c, name) = (LISTS[list].1, format!("list_{number}_{i}"));
        let list_of = if list == TEXT {
            let text = "x".repeat(count as usize);
            let _ = writeln!(self.data, "static _Alignas(8) char bytes_{name}[] = \"{text}\";");
            format!("bytes_{name}")
        } else {
            format!("{{ {count}, (void *)data }}")
        };
        let _ = writeln!(self.data, "{c} {name} = {list_of};");
        let constant = if direction == "in" { "const " } else { "" };
        let star = if list == TEXT && direction == "in" { "" } else { "*" };
        let _ = write!(self.parameters, ", {constant}{c} {star}p{i}");
        let address = if star.is_empty() { "" } else { "&" };
        if direction == "in" {
            let _ = write!(self.arguments, ", {address}l->p{i}");
            let _ = write!(self.lent, "{constant}{c} p{i}; ");
            let _ = write!(self.lists, "{list_of}, ");
        } else {
            let _ = write!(self.arguments, ", {address}n.p{i}");
            let _ = write!(self.fields, "{c} p{i}; ");
            let _ = write!(self.begins, "n.p{i} = {name}; ");
        }
        if direction != "out" {
            self.uses += &match (list, direction) {
                (TEXT, "in") => format!("USE_AT(p{i}); "),
                (TEXT, _) => format!("USE_AT(*p{i}); "),
                _ => format!("USE(p{i}->_length); USE_AT(p{i}->_buffer); "),
            };
        }
        if direction != "in" {
            self.uses += &match list {
                TEXT => format!("*p{i} = {name}; "),
                _ => format!("p{i}->_length = {name}._length; p{i}->_buffer = {name}._buffer; "),
            };
        }
    }
}

/// Language of a program.
#[derive(Clone, Copy, Debug)]
pub enum Language {
    C,
    Rust,
}

/// The program with the stubs of interfaces, for one that counts (`programs/count_stubs.c`).
pub struct Program<'a> {
    pub all: &'a [Generated],
    pub methods: Vec<&'a Method>,
    pub by_door: bool,
}

impl<'a> Program<'a> {
    pub fn new(all: &'a [Generated], methods: Vec<&'a Method>, kernel: &dyn KernelPart) -> Program<'a> {
        Program { all, methods, by_door: kernel.name() == TernDoor.name() }
    }

    /// Compiles the program in C, with the options that the programs of `bench/` have; says where it is.
    pub fn in_c(&self, shop: &Workshop, idl: &str, kernel: &dyn KernelPart) -> &'static str {
        shop.emit_c_of("generated.idl", idl, kernel);
        std::fs::write(shop.path("generated.c"), self.text()).unwrap();
        let options = ["-std=gnu11", "-O2", "-ffreestanding", "-fPIE", "-mno-sse", "-fomit-frame-pointer"];
        let stubs = ["-DQUILL_OMIT_FRAME_POINTER", "-w", "-I.", "-c", "generated.c"];
        shop.tool("gcc", &[&options[..], &stubs].concat());
        "generated.o"
    }

    fn text(&self) -> String {
        let list = |of: &str| {
            let names =
                (0..self.all.len()).map(|number| format!("(void (*)(tern_uid))(void *){of}_{number}"));
            names.collect::<Vec<_>>().join(", ")
        };
        let mut program = HEAD.to_owned();
        (0..self.all.len()).for_each(|number| program += &self.one(number));
        let numbers = 0..self.all.len();
        let requests: String = numbers.clone().map(|number| self.request(number)).collect();
        let replies: String = numbers.map(|number| self.reply(number)).collect();
        let serve = if self.by_door {
            "__asm__ volatile(\"int3\" : : \"c\"(servers[interface]));"
        } else {
            "servers[interface](0);"
        };
        let _ = write!(
            program,
            "const struct arrival requests[] = {{\n{requests}}}, replies[] = {{\n{replies}}};
             static void (*const clients[])(tern_uid) = {{ {} }}, (*const servers[])(tern_uid) = {{ {} }};
             static void (*const prepares[])(void) = {{ {} }};
             int interfaces(void) {{ return {}; }}
             void prepare(int interface) {{ prepares[interface](); }}
             void run_client(int interface) {{ clients[interface](3); }}
             void run_server(int interface) {{ {serve} }}\n",
            list("client"),
            list("serve"),
            (0..self.all.len()).map(|number| format!("prepare_{number}")).collect::<Vec<_>>().join(", "),
            self.all.len()
        );
        program
    }

    /// A client that has its arguments in memory and wants its results there, and a server whose method has each argument in a register and
    /// gives back whatever is in one; by ipc, or through a door.
    fn one(&self, number: usize) -> String {
        let mut c = InC::default();
        for (i, &(direction, kind)) in self.all[number].params.iter().enumerate() {
            match kind {
                Kind::Value(ty) => c.value(i, direction, ty),
                Kind::List(list, count) => c.list(number, i, direction, list, count),
            }
        }
        if let Some(ty) = self.all[number].result {
            let name = TYPES[ty].1;
            let _ = write!(c.parameters, ", {name} *result");
            c.arguments += ", &n.result";
            let _ = write!(c.fields, "{name} result; ");
            c.uses += if ty == PAIR { "MAKE_AT(result); " } else { "MAKE(result); " };
        }
        if self.all[number].raises {
            let _ = write!(c.parameters, ", M_I{number}_f_raised *raised");
            c.arguments += ", &n.raised";
            let _ = write!(c.fields, "M_I{number}_f_raised raised; ");
        }
        let InC { data, parameters, arguments, fields, begins, uses, lent, lists } = c;
        let (begin, serve, callee) = self.way(number);
        let (rooms, replies, prepare) = self.rooms(number);
        format!(
            "{data}{rooms}static quill_status m_{number}({begin}{parameters}) {{ (void)self; {uses}return QUILL_OK; }}
             static const M_I{number}_server methods_{number} = {{ m_{number} }};
             {serve}
             static void prepare_{number}(void) {{ {prepare}}}
             static const struct lists_{number} {{ {lent}int last; }} lists_{number} = {{ {lists}0 }};
             static void client_{number}(tern_uid server)
             {{
                 const struct lists_{number} *l = &lists_{number};
                 {callee}
                 struct {{ {fields}int last; }} n;
                 int left = 2;
                 __builtin_memset(&n, 0, sizeof n);
                 {begins}
                 __asm__ volatile(\"\" : \"+r\"(l) : \"r\"(&n) : \"memory\");
                 do {{
                     MARK;
                     if (M_I{number}_f(callee{replies}{arguments}) != QUILL_OK)
                         stop(1);
                     __asm__ volatile(\"\" : : \"m\"(n));
                     MARK;
                 }} while (--left > 0);
             }}\n"
        )
    }

    /// A server's first parameters, what serves, and the variable of whom a client calls.
    fn way(&self, number: usize) -> (&'static str, String, String) {
        if self.by_door {
            let callee = format!("M_I{number} callee = {{ (uint32_t)server, 0 }};");
            ("void *self", format!("M_I{number}_ENTRY(serve_{number}, methods_{number}, 0)"), callee)
        } else if self.methods[number].request.long {
            let serve = format!(
                "M_I{number}_SERVE(serve_with_{number}, methods_{number})
                 static void serve_{number}(void *self) {{ serve_with_{number}(self, &room_{number}); }}"
            );
            ("void *self, tern_uid from", serve, "tern_uid callee = server;".into())
        } else {
            let serve = format!("M_I{number}_SERVE(serve_{number}, methods_{number})");
            ("void *self, tern_uid from", serve, "tern_uid callee = server;".into())
        }
    }

    /// Where messages with a part in memory arrive, how a client says so, and how there come to be elements.
    fn rooms(&self, number: usize) -> (String, String, String) {
        let (mut rooms, mut replies, mut prepare) = (String::new(), String::new(), String::new());
        let method = self.methods[number];
        if method.request.long && !self.by_door {
            let _ = writeln!(rooms, "static M_I{number}_room room_{number};");
            let _ = write!(prepare, "__builtin_memset(&room_{number}, 'x', sizeof room_{number}); ");
        }
        if method.request.long && self.by_door {
            prepare += "prepare_room(); ";
        }
        if method.reply.long {
            let _ = writeln!(rooms, "static M_I{number}_replies replies_{number};");
            let _ = write!(replies, ", &replies_{number}");
            let _ = write!(prepare, "__builtin_memset(&replies_{number}, 'x', sizeof replies_{number}); ");
        }
        (rooms, replies, prepare)
    }

    fn request(&self, number: usize) -> String {
        let room = if self.by_door { "door_room".into() } else { format!("room_{number}") };
        let request = &self.methods[number].request;
        let kind = match (self.by_door, request.long) {
            (true, true) => "QUILL_DOOR_LONG_CALL",
            (true, false) => "TERN_DOOR_CALL",
            (false, true) => "QUILL_IPC_LONG_CALL",
            (false, false) => "TERN_IPC_CALL",
        };
        self.arrival(number, request, kind, &room)
    }

    fn reply(&self, number: usize) -> String {
        let reply = &self.methods[number].reply;
        let kind = match (self.by_door, reply.long) {
            (true, true) => "QUILL_DOOR_LONG_DONE",
            (true, false) => "QUILL_DOOR_DONE",
            (false, true) => "QUILL_LONG_DONE",
            (false, false) => "QUILL_DONE",
        };
        self.arrival(number, reply, kind, &format!("replies_{number}"))
    }

    /// A message whose values are all 0, with its lists.
    fn arrival(&self, number: usize, message: &Message, kind: &str, room: &str) -> String {
        let (mut words, strings) = self.words(number, message);
        if message.long {
            words[1] = format!("(uint64_t)&{room}");
        }
        let length =
            |(string, bytes)| format!("{{ &{room}.strings[{}], 4096ull << 32 | {bytes} }}, ", 2 * string + 1);
        let lengths: String = strings.into_iter().map(length).collect();
        format!("{{ {kind}, 0, {{ {} }}, {{ {lengths}{{ 0, 0 }} }} }},\n", words.join(", "))
    }

    /// The words of a message, but where its part in memory is; and how many bytes each string has.
    fn words(&self, number: usize, message: &Message) -> ([String; 11], Vec<(u32, u64)>) {
        let mut words: [String; 11] = std::array::from_fn(|_| "0".to_owned());
        let (mut dope, mut strings) = (message.memory_bytes / 8, Vec::new());
        for chunk in &message.chunks {
            let size = chunk.element.map_or(0, |element| element.size);
            let bytes = self.all[number].count(&chunk.path[0]) * size;
            match chunk.carrier {
                Carrier::Direct => dope += bytes / 8,
                Carrier::String(string) => {
                    dope += 1 << 12;
                    strings.push((string, bytes));
                }
                Carrier::Behind => panic!("nothing is behind"),
            }
        }
        if message.long {
            words[0] = dope.to_string();
        }
        for slot in &message.slots {
            let Place::Register(word, _) = slot.place else { continue };
            match slot.leaf {
                Leaf::Count(_) => words[word as usize] = self.all[number].count(&slot.path[0]).to_string(),
                Leaf::Tail(_) => words[word as usize] = "0x7878787878787878".into(),
                _ => {}
            }
        }
        (words, strings)
    }
}

/// Lines that the programs have in common with those of `bench/`.
const HEAD: &str = r#"
    #include <stdint.h>
    #include "generated.h"
    #include "arrival.h"
    void stop(int why);
    #define MARK __asm__ volatile("int3" ::: "memory")
    #define USE(argument) __asm__ volatile("" : : "r"(argument))
    #define MAKE(result) __asm__ volatile("" : "=r"(*(result)))
    #define USE_AT(address) __asm__ volatile("" : : "r"(address) : "memory")
    #define MAKE_AT(address) __asm__ volatile("" : "=m"(*(address)))
    static _Alignas(8) char data[8192] __attribute__((unused));
    static quill_door_room door_room __attribute__((unused));
    static _Alignas(8) char door_buffers[8][4104] __attribute__((unused));
    static void __attribute__((unused)) prepare_room(void)
    {
        __builtin_memset(door_room.words, 'x', sizeof door_room.words);
        __builtin_memset(door_buffers, 'x', sizeof door_buffers);
        for (int i = 0; i < 8; i++)
            door_room.strings[2 * i] = (uint64_t)door_buffers[i];
    }
"#;
