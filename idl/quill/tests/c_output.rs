//! C output compiles without a warning at every level of optimisation, and speaks with Rust. The programs are in
//! `programs/`. A compiler that the host does not have is left out, with a message.

mod workshop;

use quill::kernel::{KernelPart, Linux, TernDoor, TernIpc};
use workshop::{Workshop, compilers, presentations};

/// Options, each set of which must give a program that works.
const LEVELS: [&[&str]; 6] = [
    &["-O0"],
    &["-O2"],
    &["-O3"],
    &["-Os"],
    &["-O2", "-flto"],
    &["-O2", "-fomit-frame-pointer", "-DQUILL_OMIT_FRAME_POINTER"],
];

fn is_full() -> bool {
    std::env::var("TERN_FULL").is_ok_and(|value| value == "1")
}

/// The levels at which a program is made: all in a full run, otherwise two, so that each level has its turn with three programs.
fn levels(turn: usize) -> impl Iterator<Item = &'static [&'static str]> {
    levels_of([turn])
}

/// Levels of several turns.
fn levels_of<const N: usize>(turns: [usize; N]) -> impl Iterator<Item = &'static [&'static str]> {
    let of_turn = move |(i, _): &(usize, _)| is_full() || turns.iter().any(|turn| i % 3 == turn % 3);
    LEVELS.into_iter().enumerate().filter(of_turn).map(|(_, level)| level)
}

/// One level, where a program has relatives that are made at the others; all in a full run.
fn one_level(turn: usize) -> impl Iterator<Item = &'static [&'static str]> {
    LEVELS
        .into_iter()
        .enumerate()
        .filter(move |(i, _)| is_full() || *i == turn % LEVELS.len())
        .map(|(_, level)| level)
}

/// Options for a program that looks at each access. Without optimisation more of them are left to look at, and a compiler is six times as fast; in a
/// full run with some, as programs are made.
fn checks() -> [&'static str; 4] {
    let level = if is_full() { "-O1" } else { "-O0" };
    ["-g1", level, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
}

/// Whether a compiler makes code when it compiles, of which it could have something to say: otherwise that is done by the linker.
fn makes_code(level: &[&str]) -> bool {
    !level.contains(&"-flto")
}

const STRICT: [&str; 7] =
    ["-std=gnu11", "-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Werror", "-D_GNU_SOURCE"];

/// Makes a program with each compiler at the levels of some turns, and runs it.
fn at_levels<const N: usize>(turns: [usize; N], shop: &Workshop, program: &str, options: &[&str]) {
    for compiler in compilers() {
        for level in levels_of(turns) {
            shop.tool(&compiler, &[&STRICT[..], level, options].concat());
            shop.run(program);
        }
    }
}

#[test]
fn both_languages_understand_each_other() {
    let shop = Workshop::new("c-bank");
    shop.emit("bank.idl", &Linux);
    shop.emit_c("bank.idl", &Linux);
    shop.bring("bank.rs", "main.rs");
    shop.bring("bank.c", "bank.c");
    shop.rustc(&["main.rs"]);
    for compiler in compilers() {
        // Over sockets no stub asks about frame pointers.
        for level in levels(1).filter(|level| !level.contains(&"-fomit-frame-pointer")) {
            let arguments = [&STRICT[..], level, &["-o", "bank", "bank.c"]].concat();
            shop.tool(&compiler, &arguments);
            shop.together(["bank", "serve", "socket"], ["bank", "call", "socket"]);
            shop.together(["bank", "serve", "socket"], ["main", "call", "socket"]);
            shop.together(["main", "serve", "socket"], ["bank", "call", "socket"]);
        }
    }
}

#[test]
fn damaged_requests_are_refused() {
    let shop = Workshop::new("c-damage");
    shop.emit_c("bank.idl", &Linux);
    shop.bring("bank.c", "bank.c");
    for compiler in compilers() {
        // A compiler may come without its sanitizers.
        let sanitized =
            shop.try_tool(&compiler, &[&STRICT[..], &checks(), &["-o", "bank", "bank.c"]].concat());
        if let Err(why) = sanitized {
            println!("{compiler} has no sanitizers: {why}");
            shop.tool(&compiler, &[&STRICT[..], &["-O2", "-o", "bank", "bank.c"]].concat());
        }
        shop.run("bank");
    }
}

/// With a dispatcher in the kernel's place, or an object's entry; and the stubs as they are, which only Tern could run.
#[test]
fn messages_of_tern_arrive_and_damaged_ones_do_not() {
    messages_arrive(&TernIpc, "-DON_TERN");
}

#[test]
fn messages_arrive_through_doors_and_damaged_ones_do_not() {
    messages_arrive(&TernDoor, "-DON_DOOR");
}

fn messages_arrive(kernel: &dyn KernelPart, on: &str) {
    let by_door = kernel.name() == TernDoor.name();
    let programs = [
        ("parcel", "Post_Office", "knock", ""),
        ("letter", "Mail_Box", "knock", ""),
        ("archive", "Archive_Shelf", "knock", ", Archive_Shelf_replies *, Archive_Shelf_knock_raised *"),
        ("catalog", "Catalog_Index", "forget", ", const sequence_30_string_20 *"),
        ("cabinet", "Cabinet", "count", ", paper *, paper *, int32_t *, int32_t *"),
    ];
    for (turn, (name, server, method, more)) in programs.into_iter().enumerate() {
        let shop = Workshop::new(&format!("c-{name}-{}", kernel.name()));
        let (source, program) = (format!("{name}.c"), name);
        shop.emit_c(&format!("{name}.idl"), kernel);
        shop.bring(&source, &source);
        ["on_tern.h", "registers.h"].iter().for_each(|file| shop.bring(file, file));
        shop.bring_tern();
        let callee = if by_door { server } else { "tern_uid" };
        let serve = if by_door { "ENTRY(serve, methods, NULL)" } else { "SERVE(serve, methods)" };
        let real = format!(
            "#include \"{name}.h\"\nquill_status (*use)({callee}{more}) = {server}_{method};\n\
                 static const {server}_server methods;\n{server}_{serve}\nvoid *begin = (void *)serve;\n"
        );
        std::fs::write(shop.path("real.c"), real).unwrap();
        for compiler in compilers() {
            // Through doors values lie in the same words, and methods are called in another way.
            let of_turn: Vec<_> =
                if by_door { one_level(turn + 1).collect() } else { levels(turn).collect() };
            for level in &of_turn {
                let arguments = [&STRICT[..], level, &[on, "-I.", "-o", program, &source]];
                shop.tool(&compiler, &arguments.concat());
                shop.run(program);
            }
            let making_code = of_turn.iter().rev().filter(|level| makes_code(level));
            for level in making_code.take(if is_full() { LEVELS.len() } else { 1 }) {
                let freestanding = ["-I.", "-ffreestanding", "-c", "real.c"];
                shop.tool(&compiler, &[&STRICT[..], level, &freestanding].concat());
            }
            if by_door && !is_full() {
                continue;
            }
            let sanitized = [&STRICT[..], &checks(), &[on, "-I.", "-o", program, &source]].concat();
            match shop.try_tool(&compiler, &sanitized) {
                Ok(()) => shop.run(program),
                Err(why) => println!("{compiler} has no sanitizers: {why}"),
            }
        }
    }
}

/// Clients and servers that hand pages over, with a function in the kernel's place; and the loop as it is.
#[test]
fn pages_arrive_in_servers() {
    let shop = Workshop::new("c-depot");
    shop.emit_c("depot.idl", &TernIpc);
    shop.bring("depot.c", "depot.c");
    shop.bring_tern();
    let real = "#include \"depot.h\"\n\
         quill_status (*serve)(const Depot_Store_server *, void *, tern_fpage) = Depot_Store_serve;\n";
    std::fs::write(shop.path("real.c"), real).unwrap();
    let program = ["-I.", "-o", "depot", "depot.c"];
    for compiler in compilers() {
        for level in levels(1) {
            shop.tool(&compiler, &[&STRICT[..], level, &program].concat());
            shop.run("depot");
            let freestanding = ["-I.", "-ffreestanding", "-c", "real.c"];
            if makes_code(level) {
                shop.tool(&compiler, &[&STRICT[..], level, &freestanding].concat());
            }
        }
        match shop.try_tool(&compiler, &[&STRICT[..], &checks(), &program].concat()) {
            Ok(()) => shop.run("depot"),
            Err(why) => println!("{compiler} has no sanitizers: {why}"),
        }
    }
    // Where a message does not fit into the general form, there are clients.
    let longs = (0..10).map(|i| format!("in long long a{i}")).collect::<Vec<_>>().join(", ");
    let wide = format!("interface I {{ void give(in fpage p); void wide({longs}); }};");
    shop.emit_c_of("wide.idl", &wide, &TernIpc);
    let header = std::fs::read_to_string(shop.path("wide.h")).unwrap();
    assert!(header.contains("clients only") && header.contains("I_give") && !header.contains("I_serve"));
}

/// Flat unions, and values that bring their types along: both sides in one program, with each kernel's part between them, and
/// messages that are damaged on the way.
#[test]
fn flat_unions_and_values_of_any_type_arrive() {
    let kernels: [(&dyn KernelPart, [&str; 2]); 3] = [
        (&Linux, ["-DON_LINUX", "-I."]),
        (&TernIpc, ["-DON_TERN", "-I."]),
        (&TernDoor, ["-DON_TERN", "-DON_DOOR"]),
    ];
    for (first, (kernel, on)) in kernels.into_iter().enumerate() {
        let shop = Workshop::new(&format!("c-sides-{}", kernel.name()));
        let shared = ["on_tern.h", "registers.h", "sides_begin.h", "sides_end.h", "freight_values.h"];
        shared.iter().for_each(|file| shop.bring(file, file));
        shop.bring_tern();
        for (second, name) in ["ledger", "property", "freight"].into_iter().enumerate() {
            let source = format!("{name}.c");
            shop.emit_c(&format!("{name}.idl"), kernel);
            shop.bring(&source, &source);
            let program = [on[0], on[1], "-I.", "-o", name, &source];
            for compiler in compilers() {
                for level in one_level(2 * first + second) {
                    shop.tool(&compiler, &[&STRICT[..], level, &program].concat());
                    shop.run(name);
                }
                if kernel.name() == TernDoor.name() && !is_full() {
                    continue;
                }
                match shop.try_tool(&compiler, &[&STRICT[..], &checks(), &program].concat()) {
                    Ok(()) => shop.run(name),
                    Err(why) => println!("{compiler} has no sanitizers: {why}"),
                }
            }
        }
    }
}

/// Each side sees texts in its own way, and the other one does not notice.
#[test]
fn counted_and_terminated_texts_understand_each_other() {
    let kernels: [(&dyn KernelPart, _); 2] = [(&Linux, "-DON_LINUX"), (&TernIpc, "-DON_TERN")];
    for (turn, (kernel, on)) in kernels.into_iter().enumerate() {
        let shop = Workshop::new(&format!("c-caption-{}", kernel.name()));
        shop.emit_c_both_ways("caption.idl", &[], kernel);
        ["caption_sides.h", "caption_server.c", "caption_client.c"].iter().for_each(|f| shop.bring(f, f));
        shop.bring_tern();
        let files = [on, "-I.", "-o", "caption", "caption_server.c", "caption_client.c"];
        for compiler in compilers() {
            for (number, level) in levels(turn + 1).enumerate() {
                for (server, client) in [(true, false), (false, true)] {
                    if !is_full() && server == (number == 0) {
                        continue;
                    }
                    let sides = presentations(server, client);
                    let sides: Vec<&str> = sides.iter().map(String::as_str).collect();
                    shop.tool(&compiler, &[&STRICT[..], level, &sides, &files].concat());
                    shop.run("caption");
                }
            }
            for (server, client) in [(true, true), (true, false), (false, true)] {
                let sides = presentations(server, client);
                let sides: Vec<&str> = sides.iter().map(String::as_str).collect();
                match shop.try_tool(&compiler, &[&STRICT[..], &checks(), &sides, &files].concat()) {
                    Ok(()) => shop.run("caption"),
                    Err(why) => println!("{compiler} has no sanitizers: {why}"),
                }
            }
        }
    }
}

/// What the next two tests serve: words in all registers, exceptions, and parts in memory both ways.
fn anything() -> String {
    let numbers = |what: &str, name: &str| -> String {
        let all: Vec<_> = (0..11).map(|n| format!("{what} unsigned long long {name}{n}")).collect();
        all.join(", ")
    };
    format!(
        "interface I {{ exception Bad {{ long how; }}; long tiny(in long a); void wide({}, {});
           void fail(in long how) raises (Bad); oneway void hint(in long a);
           void text(in string<100> s, out long bytes); void name(out string<200> s); }};",
        numbers("in", "a"),
        numbers("out", "b")
    )
}

/// The server's function as it is, with a call in the place of the system call.
#[test]
fn a_server_answers_whatever_comes() {
    let shop = Workshop::new("c-loop");
    shop.emit_c_of("loop.idl", &anything(), &TernIpc);
    ["loop.c", "registers.h", "strange.h"].iter().for_each(|file| shop.bring(file, file));
    shop.bring_tern();
    // What the call puts on the stack must not be what a leaf has there.
    let options = ["-I.", "-mno-red-zone", "-DQUILL_SYSCALL=\"call exchange\"", "-o", "loop", "loop.c"];
    // Its assembly stands in frames of every kind.
    at_levels([0, 2], &shop, "loop", &options);
}

/// Objects behind a door: two implementations, one of which is replaced; and what comes that is no call.
#[test]
fn objects_answer_whatever_comes() {
    let shop = Workshop::new("c-object");
    shop.emit_c_of("object.idl", &anything(), &TernDoor);
    ["object.c", "on_tern.h", "registers.h", "strange.h"].iter().for_each(|file| shop.bring(file, file));
    shop.bring_tern();
    at_levels([2], &shop, "object", &["-DON_DOOR", "-I.", "-o", "object", "object.c"]);
}

/// An object says where in its table each of its interfaces is, and is called as that.
#[test]
fn objects_in_c_are_found_as_each_of_their_bases() {
    let idl = "interface A { long one(); }; interface B { long two(in long x); long three(); }; interface C : A, B { long four(); };
        interface D { void narrow(); };";
    let program = r#"
        #define STUBS "views.h"
        #include "on_tern.h"
        static quill_status one(void *self, int32_t *result) { (void)self; *result = 1; return QUILL_OK; }
        static quill_status two(void *self, int32_t x, int32_t *result) { (void)self; *result = x + 2; return QUILL_OK; }
        static quill_status three(void *self, int32_t *result) { (void)self; *result = 3; return QUILL_OK; }
        static quill_status four(void *self, int32_t *result) { (void)self; *result = 4; return QUILL_OK; }
        static const C_server methods = { one, two, three, four };
        C_ENTRY(entry, methods, NULL)
        uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
        {
            CHECK(server == 1 && there <= QUILL_WORDS && back <= QUILL_WORDS);
            label = answer_by_door(entry, NULL, label, words, NULL, NULL);
            return (uint64_t)label << 32 | TERN_KIND_REPLY;
        }
        int main(void)
        {
            int32_t found;
            A a;
            B b;
            C c;
            D d = { 7, 8 };
            CHECK(D_narrow_(1, &d) == QUILL_NO_METHOD && d.number == 7 && d.view == 8);
            CHECK(A_narrow(1, &a) == QUILL_OK && a.number == 1 && a.view == 0);
            CHECK(A_one(a, &found) == QUILL_OK && found == 1);
            CHECK(C_narrow(a.number, &c) == QUILL_OK && c.view == 0);
            CHECK(C_three(c, &found) == QUILL_OK && found == 3 && C_four(c, &found) == QUILL_OK && found == 4);
            CHECK(B_narrow(c.number, &b) == QUILL_OK && b.view != 0);
            CHECK(B_two(b, 5, &found) == QUILL_OK && found == 7 && B_three(b, &found) == QUILL_OK && found == 3);
            return 0;
        }
    "#;
    let shop = Workshop::new("c-views");
    shop.emit_c_of("views.idl", idl, &TernDoor);
    ["on_tern.h", "registers.h"].iter().for_each(|file| shop.bring(file, file));
    shop.bring_tern();
    std::fs::write(shop.path("views.c"), program).unwrap();
    at_levels([1], &shop, "views", &["-DON_DOOR", "-I.", "-o", "views", "views.c"]);
}

/// Arrays and short lists not every bit pattern of whose elements is a value: whatever comes, a program has none that is not.
#[test]
fn elements_are_looked_at() {
    let idl = "enum Color { red, green, blue }; typedef boolean Flags[5]; typedef sequence<Color, 3> Colors;
        struct Pair { Color left; Color right; }; typedef Pair Pairs[2]; struct Mixed { long long a; boolean b; };
        union Either switch (boolean) { case TRUE: Pairs pairs; case FALSE: sequence<Mixed, 3> list; };
        interface Lamps { Colors turn(in Flags lit, in Colors of, out Flags back); Pairs swap(inout Pairs both); };
        interface Choice { Color choose(in Either what); };";
    let kernels: [(&dyn KernelPart, _); 2] = [(&TernIpc, "-DON_TERN"), (&TernDoor, "-DON_DOOR")];
    for (turn, (kernel, on)) in kernels.into_iter().enumerate() {
        let shop = Workshop::new(&format!("c-elements-{}", kernel.name()));
        shop.emit_c_of("lamps.idl", idl, kernel);
        ["lamps.c", "on_tern.h", "registers.h"].iter().for_each(|file| shop.bring(file, file));
        shop.bring_tern();
        at_levels([turn], &shop, "lamps", &[on, "-I.", "-o", "lamps", "lamps.c"]);
    }
}

/// References to objects, lent and given away, beside words and beside memory: no number is left over, whatever becomes of a call.
#[test]
fn references_arrive_and_are_given_back() {
    let idl = "enum E { E_a, E_b }; interface R { void m(); };
        interface O { long lend(in R it, in long x); void keep(@grant in R it); void bind(in string<50> who, @grant in R it);
          R give(in E how, out E same); void turn(inout R it); fpage show(in unsigned long long at, out octet kind);
          void find(in string<50> who, in R it, @map out fpage page, inout long scale); };";
    let shop = Workshop::new("c-references");
    shop.emit_c_of("references.idl", idl, &TernDoor);
    ["references.c", "on_tern.h", "registers.h"].iter().for_each(|file| shop.bring(file, file));
    shop.bring_tern();
    shop.bring("../../../../user/lib/c/lib/numbers.c", "numbers.c");
    at_levels([2], &shop, "references", &["-DON_DOOR", "-I.", "-o", "references", "references.c"]);
}

/// References within structs, lists, unions and exceptions, and several in a message: whoever has one has a number for it, whatever becomes of a call, and
/// whatever the other side claims.
#[test]
fn references_within_values_arrive_or_are_given_back() {
    let shop = Workshop::new("c-fleet");
    shop.emit_c("fleet.idl", &TernDoor);
    let several = "interface R { void m(); }; typedef sequence<R, 5> L; typedef R Square[2][2];
        struct Pair { R both[2]; @optional R other; };
        interface W { long two(in R a, @grant in R b, in long x); R pick(in L all, in unsigned long which);
          Pair mix(in Pair p, inout Square f); void bind(in string<50> who, in R it);
          void turn(inout R a, out R b, out string<40> was); };";
    shop.emit_c_of("several.idl", several, &TernDoor);
    let files = ["fleet.c", "several.c", "identifiers.h", "on_tern.h", "registers.h"];
    files.iter().for_each(|file| shop.bring(file, file));
    shop.bring_tern();
    shop.bring("../../../../user/lib/c/lib/numbers.c", "numbers.c");
    at_levels([0], &shop, "fleet", &["-DON_DOOR", "-I.", "-o", "fleet", "fleet.c"]);
    at_levels([1], &shop, "several", &["-DON_DOOR", "-I.", "-o", "several", "several.c"]);
}

/// Lists that a client may offer as pages: by ipc they are sent, and a number of an offer is declined; through a door they are taken, or declined and sent
/// then, and a method begins once.
#[test]
fn what_is_offered_arrives_whichever_way_it_goes() {
    let kernels: [(&dyn KernelPart, _); 2] = [(&TernIpc, "-DON_TERN"), (&TernDoor, "-DON_DOOR")];
    for (turn, (kernel, on)) in kernels.into_iter().enumerate() {
        let shop = Workshop::new(&format!("c-film-{}", kernel.name()));
        shop.emit_c("film.idl", kernel);
        ["film.c", "on_tern.h", "registers.h"].iter().for_each(|file| shop.bring(file, file));
        shop.bring_tern();
        at_levels([turn], &shop, "film", &[on, "-I.", "-o", "film", "film.c"]);
    }
}

/// The library's functions that make and take offers, with a memory manager of the test's.
#[test]
fn the_library_offers_and_takes_pages() {
    let shop = Workshop::new("c-shown");
    let system = std::fs::read_to_string(workshop::accepted("../../interfaces/system.idl")).unwrap();
    shop.emit_c_of("system.idl", &system, &TernIpc);
    shop.bring("shown.c", "shown.c");
    shop.bring_tern();
    shop.bring("../../../../user/lib/c/lib/offers.c", "offers.c");
    at_levels([0], &shop, "shown", &["-I.", "-o", "shown", "shown.c"]);
}

/// A program may speak several interfaces.
#[test]
fn headers_go_together() {
    for kernel in [&Linux as &dyn KernelPart, &TernIpc, &TernDoor] {
        let shop = Workshop::new(&format!("c-together-{}", kernel.name()));
        let one = "module A { typedef sequence<octet, 8> Bytes; interface None { }; interface Bell { oneway void ring(); };
            typedef sequence<any, 2> L; interface I { Bytes f(in Bytes b); L g(in L all); }; };";
        let other = "module B { typedef sequence<octet, 8> Bytes;
            typedef sequence<any, 2> L; interface I { Bytes f(in Bytes b); L g(in L all); }; };";
        shop.emit_c_of("a.idl", one, kernel);
        shop.emit_c_of("b.idl", other, kernel);
        shop.bring_tern();
        std::fs::write(shop.path("both.c"), "#include \"a.h\"\n#include \"b.h\"\n").unwrap();
        for compiler in compilers() {
            shop.tool(&compiler, &[&STRICT[..], &["-I.", "-c", "both.c"]].concat());
        }
    }
}

#[test]
fn names_that_clash_are_kept_apart() {
    let shop = Workshop::new("c-names");
    for file in ["names.idl", "parcel.idl"] {
        shop.emit_c(file, &Linux);
        let header = file.replace(".idl", ".h");
        std::fs::write(shop.path("names.c"), format!("#include \"{header}\"\n#include \"{header}\"\n"))
            .unwrap();
        for compiler in compilers() {
            shop.tool(&compiler, &[&STRICT[..], &["-c", "names.c"]].concat());
        }
    }
}

/// Exceptions without members, and unions of a truth value with all kinds of branches: nothing that a compiler has to say.
#[test]
fn compilers_have_nothing_to_say() {
    let idl = "exception gone {}; exception full {}; \
               union maybe switch (boolean) { case TRUE: long value; default: string<8> why; }; \
               union either switch (boolean) { case FALSE: long left; case TRUE: short right; }; \
               interface stack { void drop() raises (gone); long push(in maybe what) raises (full, gone); either pop(out maybe m) raises (gone); };";
    for kernel in [&Linux as &dyn KernelPart, &TernIpc, &TernDoor] {
        let shop = Workshop::new(&format!("c-silent-{}", kernel.name()));
        shop.emit_c_of("silent.idl", idl, kernel);
        shop.bring_tern();
        std::fs::write(shop.path("main.c"), "#include \"silent.h\"\nint main(void)\n{\n    return 0;\n}\n")
            .unwrap();
        for compiler in compilers() {
            shop.tool(&compiler, &[&STRICT[..], &["-O1", "-I.", "-o", "main", "main.c"]].concat());
        }
    }
}

/// What the guide says, for each function of the golden files that has a result: a variable without a value, a call, and the value
/// used if the call went well; where replies lie in memory, between `open` and `quill_close`. No compiler says that a value may be missing.
#[test]
fn what_a_call_leaves_has_a_value() {
    let mut functions = 0;
    for (by, kernel) in [&TernIpc as &dyn KernelPart, &TernDoor].into_iter().enumerate() {
        for (turn, file) in workshop::all_accepted().into_iter().enumerate() {
            let shop = Workshop::new(&format!("c-values-{}", kernel.name()));
            let Some(header) = shop.try_emit_c(&file, kernel) else { continue };
            let callers = callers(&header);
            functions += callers.len();
            // Every other file by ipc, and the others through doors.
            if !is_full() && turn % 2 != by {
                continue;
            }
            let program = format!("#include \"{}\"\n{}", file.replace(".idl", ".h"), callers.concat());
            std::fs::write(shop.path("callers.c"), program).unwrap();
            shop.bring_tern();
            // Whether a value may be missing is asked where code is made and improved.
            let improved = LEVELS.into_iter().filter(|level| makes_code(level) && !level.contains(&"-O0"));
            let improved: Vec<_> = improved.enumerate().collect();
            for compiler in compilers() {
                let of_turn = |(number, _): &&(usize, _)| is_full() || *number == turn / 2 % improved.len();
                for (_, level) in improved.iter().filter(of_turn) {
                    let arguments = ["-I.", "-ffreestanding", "-c", "callers.c"];
                    shop.tool(&compiler, &[&STRICT[..], level, &arguments].concat());
                }
            }
        }
    }
    assert!(functions > 50, "the headers have {functions} functions with a result");
}

/// A caller of each function of a header that has a parameter `_result`.
fn callers(header: &str) -> Vec<String> {
    let caller = |(number, (name, parameters)): (usize, (&str, &str))| {
        let parameters: Vec<&str> = parameters.split(", ").collect();
        let ty = parameters.iter().find_map(|parameter| parameter.strip_suffix("*_result"))?.trim_end();
        let room = parameters.iter().find_map(|parameter| parameter.strip_suffix("_replies *_room"));
        let is_own =
            |parameter: &str| parameter.ends_with("*_result") || parameter.ends_with("_replies *_room");
        let given: Vec<&str> = parameters.iter().copied().filter(|parameter| !is_own(parameter)).collect();
        let arguments: Vec<&str> = parameters
            .iter()
            .map(|parameter| match parameter {
                _ if parameter.ends_with("*_result") => "&_found",
                _ if is_own(parameter) => "&replies",
                _ => parameter.split('[').next().and_then(|one| one.rsplit([' ', '*']).next()).unwrap_or(""),
            })
            .collect();
        let (head, call) = (format!("{ty} caller_{number}({})", given.join(", ")), arguments.join(", "));
        let used = format!("if ({name}({call}) == QUILL_OK)\n_kept = _found;\n");
        let body = match room {
            None => used,
            Some(interface) => format!(
                "static {interface}_replies replies;\nquill_inbox before;\n\
                 if ({interface}_open(&replies, &before) == QUILL_OK) {{\n{used}quill_close(&before);\n}}\n"
            ),
        };
        Some(format!("{head};\n{head}\n{{\n{ty} _found;\nstatic {ty} _kept;\n{body}return _kept;\n}}\n"))
    };
    functions(header).enumerate().filter_map(caller).collect()
}

/// Names and parameters of the functions in a header that can fail.
fn functions(header: &str) -> impl Iterator<Item = (&str, &str)> {
    header.split("quill_status ").skip(1).filter_map(|text| {
        let (head, _) = text.split_once(")\n{")?;
        let (name, parameters) = head.split_once('(')?;
        let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
        (is_name && !parameters.contains(['(', ';'])).then_some((name, parameters))
    })
}

/// Without a message: what a method is given is what its caller has, at the same address; and nothing of stubs is left.
#[test]
fn local_interfaces_are_called_directly() {
    let idl = "typedef sequence<long, 3> L; struct P { long a; }; local interface I { long f(in L all, inout P pair); };";
    let program = r#"
        #include "local.h"
        static const L *seen;
        static quill_status f(void *self, const L *l, P *p, int32_t *result)
        {
            seen = l, p->a += *(int *)self, *result = (int32_t)l->_length;
            return QUILL_OK;
        }
        static const I_server methods = { f };
        int main(void)
        {
            int own = 5;
            int32_t found = 0;
            L list = { 0 };
            P p = { 2 };
            list._length = 77; /* too many, but nobody looks */
            if (I_f(&methods, &own, &list, &p, &found) != QUILL_OK)
                return 1;
            return seen == &list && p.a == 7 && found == 77 ? 0 : 2;
        }
    "#;
    for (turn, kernel) in [&Linux as &dyn KernelPart, &TernIpc, &TernDoor].into_iter().enumerate() {
        let shop = Workshop::new(&format!("c-local-{}", kernel.name()));
        shop.emit_c_of("local.idl", idl, kernel);
        shop.bring_tern();
        std::fs::write(shop.path("main.c"), program).unwrap();
        at_levels([turn], &shop, "main", &["-I.", "-o", "main", "main.c"]);
    }
}
