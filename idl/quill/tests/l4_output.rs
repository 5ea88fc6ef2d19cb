//! C for L4's V4 API works on processors of 32 and of 64 bits, at every level of optimisation. The programs bring a kernel
//! of their own, and no library, so that they run on a host that has only a compiler for 32 bits. What a host does not
//! have is left out, with a message.

mod workshop;

use std::process::Command;

use quill::kernel::L4V4;
use workshop::{Workshop, compilers, presentations};

/// Options, each set of which must give a program that works.
const LEVELS: [&[&str]; 8] = [
    &["-O0"],
    &["-O1", "-fPIE"],
    &["-O2"],
    &["-O3"],
    &["-Os"],
    &["-O2", "-flto"],
    // Methods that the compiler cannot make a part of the server.
    &["-O2", "-DMETHODS_CAN_CHANGE"],
    &["-O2", "-fomit-frame-pointer", "-DQUILL_OMIT_FRAME_POINTER"],
];

const STRICT: [&str; 7] =
    ["-std=gnu11", "-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Werror", "-I."];

const ALONE: [&str; 4] = ["-ffreestanding", "-nostdlib", "-static", "-fno-pie"];

/// Builds a program with each compiler and width at these levels of optimisation, and runs it.
fn run_everywhere(shop: &Workshop, program: &str, levels: &[&[&str]]) {
    let source = format!("{program}.c");
    for (compiler, width) in machines(shop) {
        for level in levels {
            println!("{compiler} {width} {}", level.join(" "));
            let output = [width, "-o", program, &source];
            shop.tool(&compiler, &[&STRICT[..], &ALONE, level, &output].concat());
            shop.run(program);
        }
    }
}

/// Compilers, and widths of processors that they make programs for and that this host runs.
fn machines(shop: &Workshop) -> Vec<(String, &'static str)> {
    std::fs::write(shop.path("try.c"), "void _start(void) { for (;;) __asm__ volatile(\"int3\"); }\n")
        .unwrap();
    let mut machines = Vec::new();
    for compiler in compilers() {
        for width in ["-m32", "-m64"] {
            let arguments = [&ALONE[..], &[width, "-o", "try", "try.c"]].concat();
            if let Err(why) = shop.try_tool(&compiler, &arguments) {
                println!("{compiler} {width} is left out: {why}");
            } else if let Err(why) = Command::new(shop.path("try")).output() {
                println!("programs for {width} are left out: {why}");
            } else {
                machines.push((compiler.clone(), width));
            }
        }
    }
    machines
}

#[test]
fn both_sides_understand_each_other_and_damaged_requests_are_refused() {
    let shop = Workshop::new("l4-mail");
    shop.emit_c("mail.idl", &L4V4);
    shop.bring("mail.c", "mail.c");
    shop.bring("../../src/emit/c/l4_v4_host.h", "l4_kernel.h");
    run_everywhere(&shop, "mail", &LEVELS);
}

/// Flat unions, and values that bring their types along.
#[test]
fn flat_unions_and_values_of_any_type_arrive() {
    let shop = Workshop::new("l4-sides");
    let shared = ["sides_begin.h", "sides_end.h", "freight_values.h"];
    shared.iter().for_each(|file| shop.bring(file, file));
    shop.bring("../../src/emit/c/l4_v4_host.h", "l4_kernel.h");
    for name in ["ledger", "property", "freight"] {
        let source = format!("{name}.c");
        shop.emit_c_with(&format!("{name}.idl"), &["FEW"], &L4V4);
        shop.bring(&source, &source);
        for (compiler, width) in machines(&shop) {
            for level in [LEVELS[0], LEVELS[2], LEVELS[4], LEVELS[7]] {
                let output = ["-DON_L4", width, "-o", name, &source];
                shop.tool(&compiler, &[&STRICT[..], &ALONE, level, &output].concat());
                shop.run(name);
            }
        }
    }
}

/// Each side sees texts in its own way, and the other one does not notice.
#[test]
fn counted_and_terminated_texts_understand_each_other() {
    let shop = Workshop::new("l4-caption");
    shop.emit_c_both_ways("caption.idl", &["FEW"], &L4V4);
    let files = ["caption_sides.h", "caption_server.c", "caption_client.c"];
    files.iter().for_each(|file| shop.bring(file, file));
    shop.bring("../../src/emit/c/l4_v4_host.h", "l4_kernel.h");
    for (compiler, width) in machines(&shop) {
        for level in [LEVELS[0], LEVELS[4], LEVELS[7]] {
            for (server, client) in [(true, false), (false, true)] {
                let sides = presentations(server, client);
                let sides: Vec<&str> = sides.iter().map(String::as_str).collect();
                let both =
                    ["-DON_L4", "-DQUILL_UNBOUNDED_BYTES=600", width, "-o", "caption", files[1], files[2]];
                shop.tool(&compiler, &[&STRICT[..], &ALONE, level, &sides, &both].concat());
                shop.run("caption");
            }
        }
    }
}

/// What is said of caches is in the item when it leaves, and no part of it where it arrives.
#[test]
fn items_carry_what_is_said_of_caches() {
    let shop = Workshop::new("l4-caches");
    let idl = "typedef sequence<octet, 2000> Bytes; interface I {
        long list(@caches(1) in Bytes b, in long n); long text(@caches(0) in string s); };";
    shop.emit_c_of("caches.idl", idl, &L4V4);
    shop.bring("../../src/emit/c/l4_v4_host.h", "l4_kernel.h");
    let program = r#"
        #include "caches.h"
        #include "l4_kernel.h"
        static quill_status list(void *self, quill_thread from, const Bytes *b, int32_t n, int32_t *result)
        {
            (void)self, (void)from;
            *result = (int32_t)b->_length + b->_buffer[7] + n;
            return QUILL_OK;
        }
        static quill_status text(void *self, quill_thread from, const char *s, int32_t *result)
        {
            (void)self, (void)from;
            for (*result = 0; s[*result] != 0;)
                ++*result;
            return QUILL_OK;
        }
        static const I_server methods = { list, text };
        static void server(void)
        {
            static I_buffers buffers;
            I_serve(&methods, 0, &buffers);
        }
        static __attribute__((noinline)) void client(void)
        {
            static uint8_t bytes[2000];
            static char letters[401];
            Bytes all = { 2000, bytes };
            int32_t found = 0;
            unsigned one = sizeof(quill_word) == 4 ? 3 : 2, none = sizeof(quill_word) == 4 ? 2 : 3;
            bytes[7] = 5;
            CHECK(I_list(SERVER, &all, 10, &found) == QUILL_OK && found == 2015);
            CHECK((request[2] & 0x3ff) == one << 1);
            for (int length = 0; length < 400; length++) {
                CHECK(I_text(SERVER, letters, &found) == QUILL_OK && found == length);
                if ((request[0] & 0xfc0) != 0)
                    CHECK((request[1] & 0x3ff) == none << 1);
                letters[length] = 'a';
            }
            CHECK((request[0] & 0xfc0) != 0);
        }
    "#;
    std::fs::write(shop.path("caches.c"), program).unwrap();
    run_everywhere(&shop, "caches", &[LEVELS[0], LEVELS[2]]);
}

/// A program may speak several interfaces, and names that clash are kept apart.
#[test]
fn headers_go_together() {
    let shop = Workshop::new("l4-together");
    for file in ["parcel.idl", "mail.idl"] {
        shop.emit_c(file, &L4V4);
    }
    let one = "module A { typedef sequence<octet, 8> Bytes; interface I { Bytes f(in Bytes b); }; };";
    shop.emit_c_of("a.idl", one, &L4V4);
    shop.emit_c_of("b.idl", &one.replace("module A", "module B"), &L4V4);
    let all = ["parcel", "mail", "a", "b", "a"].map(|file| format!("#include \"{file}.h\"\n")).concat();
    std::fs::write(shop.path("all.c"), all).unwrap();
    for (compiler, width) in machines(&shop) {
        shop.tool(&compiler, &[&STRICT[..], &["-ffreestanding", width, "-c", "all.c"]].concat());
    }
}

/// Values that are read piece by piece, what goes both ways, lists in exceptions, and references.
#[test]
fn pieces_and_exceptions_with_lists_arrive() {
    let shop = Workshop::new("l4-board");
    shop.emit_c("board.idl", &L4V4);
    shop.bring("board.c", "board.c");
    shop.bring("../../src/emit/c/l4_v4_host.h", "l4_kernel.h");
    run_everywhere(&shop, "board", &[LEVELS[0], LEVELS[2], LEVELS[4], LEVELS[7]]);
}

/// Sizes beside lists have to agree with them, and a union with its discriminator.
#[test]
fn sizes_that_lie_are_refused() {
    let shop = Workshop::new("l4-sizes");
    let idl = "interface I { long sum([in] long n, [in, size_is(n)] long *all, [in, out] long *most,
        [out, size_is(*most)] short *some); }";
    shop.emit_c_of("sizes.idl", idl, &L4V4);
    shop.bring("../../src/emit/c/l4_v4_host.h", "l4_kernel.h");
    let program = r#"
        #include "sizes.h"
        #include "l4_kernel.h"
        static quill_status sum(void *self, quill_thread from, int32_t n, const sequence_int32_t *all, int32_t *most,
                                sequence_int16_t *some, int32_t *result)
        {
            static int16_t back[9];
            (void)self, (void)from, (void)most;
            *result = 0;
            for (int32_t i = 0; i < n; i++)
                *result += all->_buffer[i];
            some->_length = 2;
            some->_buffer = back;
            return QUILL_OK;
        }
        static const I_server methods = { sum };
        static void server(void)
        {
            static I_buffers buffers;
            I_serve(&methods, 0, &buffers);
        }
        static __attribute__((noinline)) void client(void)
        {
            static int32_t numbers[100];
            static int16_t back[2048];
            sequence_int32_t all = { 100, numbers };
            sequence_int16_t some = { 0, back };
            int32_t most = 2, result = 0;
            numbers[99] = 5;
            CHECK(I_sum(SERVER, 100, &all, &most, &some, &result) == QUILL_OK && result == 5 && some._length == 2);
            CHECK(I_sum(SERVER, 99, &all, &most, &some, &result) == QUILL_TOO_LONG);
            /* The server says two, and has been asked for three. */
            most = 3;
            CHECK(I_sum(SERVER, 100, &all, &most, &some, &result) == QUILL_MALFORMED);
            /* Somebody who does not look before. */
            quill_word words[64];
            char *mine = quill_utcb();
            uint32_t w0, w1;
            memcpy(words, request, sizeof words);
            words[1] ^= 4;
            for (int i = 1; i < 64; i++)
                *quill_register(mine, i) = words[i];
            CHECK(QUILL_LABEL(quill_call(mine, SERVER, words[0], 252, 252, &w0, &w1)) == QUILL_MALFORMED);
        }
    "#;
    std::fs::write(shop.path("sizes.c"), program).unwrap();
    run_everywhere(&shop, "sizes", &[LEVELS[0], LEVELS[2]]);
}

/// Pages and the like, which a kernel cannot carry, are refused by name.
#[test]
fn what_cannot_be_carried_is_refused() {
    let refused = [
        ("interface I { void f(in fpage p); };", "pages cannot be handed over"),
        ("struct S { long a; }; interface I { void f(in long double d); };", "long double"),
    ];
    for (source, why) in refused {
        let options = quill::session::Options::default();
        let path = std::path::Path::new("t.idl");
        let mut out = quill::driver::compile_text(path, source.as_bytes(), options);
        out.c(&L4V4);
        assert!(out.messages().contains(why), "{source}: {}", out.messages());
    }
    let longs = (0..64).map(|i| format!("in long a{i}")).collect::<Vec<_>>().join(", ");
    let options = quill::session::Options::default();
    let source = format!("interface I {{ void f({longs}); }};");
    let mut out = quill::driver::compile_text(std::path::Path::new("t.idl"), source.as_bytes(), options);
    out.layout(&L4V4);
    assert!(out.messages().contains("63 words"), "{}", out.messages());
}
