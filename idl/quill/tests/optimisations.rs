//! What optimisations of stubs leave behind, where it shows only in compiled code. What the layout decides has its tests
//! beside it; the chapter of the book on optimisations lists all of them.

mod workshop;

use quill::kernel::{KernelPart, Linux, TernIpc};
use workshop::{Workshop, compilers};

const STRICT: [&str; 5] = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I."];

const IDL: &str = "interface I { long tiny(in long a); void text(in string s); };";

fn workshop(name: &str, program: &str) -> Workshop {
    let shop = Workshop::new(name);
    shop.emit_c_of("stubs.idl", IDL, &TernIpc);
    shop.bring_tern();
    std::fs::write(shop.path("main.c"), program).unwrap();
    shop
}

/// The instructions of a function in a compiler's assembly.
fn instructions(assembly: &str, function: &str) -> Vec<String> {
    let begin = format!("{function}:");
    let lines = assembly.lines().skip_while(|line| !line.starts_with(&begin)).skip(1);
    let lines = lines.take_while(|line| !line.trim_start().starts_with(".size"));
    let is_code =
        |line: &&str| line.starts_with('\t') && !line.starts_with("\t.") && !line.starts_with("\t#");
    lines.filter(is_code).map(|line| line.trim().to_owned()).collect()
}

/// Whether an instruction makes a system call: by the C library, which puts back what an ipc changes.
fn is_system_call(line: &str) -> bool {
    line.starts_with("call") && line.contains("tern_ipc_system_call")
}

/// A client's method is a part of whoever calls it: no call, and the words stay in registers. What fails is elsewhere.
#[test]
fn clients_are_part_of_their_callers() {
    let program = "#include \"stubs.h\"
        int use(tern_uid server, int32_t *n);
        int use(tern_uid server, int32_t *n) { return I_tiny(server, *n, n) == QUILL_OK; }
        int twice(tern_uid server, int32_t *n);
        int twice(tern_uid server, int32_t *n) { return use(server, n) + (I_tiny(server, 1, n) == QUILL_OK); }";
    let shop = workshop("o-inlined", program);
    let options = ["-O2", "-ffreestanding", "-fomit-frame-pointer", "-DQUILL_OMIT_FRAME_POINTER", "-S"];
    for compiler in compilers() {
        shop.tool(&compiler, &[&STRICT[..], &options, &["-o", "main.s", "main.c"]].concat());
        let assembly = std::fs::read_to_string(shop.path("main.s")).unwrap();
        let code = instructions(&assembly, "use");
        let call = code.iter().position(|line| is_system_call(line));
        let call = call.unwrap_or_else(|| panic!("{compiler}: {code:#?}"));
        // A failure alone calls something, and the way to success does not lead through it.
        assert!(!code[..call].iter().any(|line| line.starts_with("call")), "{compiler}: {code:#?}");
        assert!(!assembly.contains("I_tiny:"), "{compiler}: the stub is a function of its own");
        let pushes = |line: &&String| line.starts_with("push") || line.starts_with("pop");
        let work = code[..call].iter().filter(|line| !pushes(line)).count();
        assert!(work <= 20, "{compiler}: {work} instructions before the call: {code:#?}");
    }
}

/// A server's method has its own stretch of code up to the next request: no call, and the words of request and reply are in
/// their registers.
#[test]
fn methods_are_part_of_their_server() {
    let program = "#include \"stubs.h\"
        static quill_status tiny(void *self, tern_uid from, int32_t a, int32_t *result)
        {
            (void)self, (void)from;
            *result = a;
            return QUILL_OK;
        }
        static quill_status swap(void *self, tern_uid from, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                                 uint64_t f, uint64_t g, uint64_t *h, uint64_t *i, uint64_t *j, uint64_t *k, uint64_t *l,
                                 uint64_t *m, uint64_t *n)
        {
            (void)self, (void)from;
            *h = g, *i = f, *j = e, *k = d, *l = c, *m = b, *n = a;
            return QUILL_OK;
        }
        static const Wide_server methods = { tiny, swap };
        Wide_SERVE(serve, methods)
        void *use = (void *)serve;";
    let numbers = |names: &str, what: &str| -> String {
        let all: Vec<_> = names.chars().map(|name| format!("{what} unsigned long long {name}")).collect();
        all.join(", ")
    };
    let (there, back) = (numbers("abcdefg", "in"), numbers("hijklmn", "out"));
    let idl = format!("interface Wide {{ long tiny(in long a); void swap({there}, {back}); }};");
    let shop = Workshop::new("o-served");
    shop.emit_c_of("stubs.idl", &idl, &TernIpc);
    shop.bring_tern();
    std::fs::write(shop.path("main.c"), program).unwrap();
    let options = ["-O2", "-ffreestanding", "-fomit-frame-pointer", "-DQUILL_OMIT_FRAME_POINTER", "-S"];
    for compiler in compilers() {
        shop.tool(&compiler, &[&STRICT[..], &options, &["-o", "main.s", "main.c"]].concat());
        let assembly = std::fs::read_to_string(shop.path("main.s")).unwrap();
        let code = instructions(&assembly, "serve");
        let is_call = |line: &&String| line.starts_with("call") && !is_system_call(line);
        assert!(code.iter().find(is_call).is_none(), "{compiler}: {code:#?}");
        let answers: Vec<usize> = (0..code.len()).filter(|&at| is_system_call(&code[at])).collect();
        assert_eq!(answers.len(), 3, "{compiler}: the first wait, and one for each method: {code:#?}");
        for &answer in &answers[1..] {
            let work = code[..answer].iter().rev().take_while(|line| !line.starts_with("jmp")).count();
            // Seven words that change places are seven moves and one to begin with; four registers are cleared or set.
            assert!(work <= 14, "{compiler}: {work} instructions before an answer: {code:#?}");
        }
    }
}

/// Where an attribute file says that texts are counted, a server's method gets them where they are: over `linux` in the
/// message itself, over `tern-ipc` in the room, a short one included that lies in memory.
#[test]
fn counted_texts_lie_in_the_message() {
    let linux = "#include \"counted.h\"
        static const char *seen[2];
        static quill_status total(void *self, quill_memory *memory, quill_text text, int32_t *result)
        {
            (void)self, (void)memory, (void)result;
            seen[0] = text._buffer;
            return text._length == 5 ? QUILL_OK : 99;
        }
        static const Caption_Board_server methods = { .total = total };
        int main(void)
        {
            uint8_t message[16] = { 5, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c', 'd', 'e' };
            quill_memory memory = { NULL };
            quill_in in = quill_begin_in(message, 13, &memory);
            quill_out out = { 0 };
            bool silent = false;
            uint32_t label = Caption_Board_dispatch(&methods, NULL, 0, &in, &out, &silent);
            quill_discard(&out);
            return label == 0 && seen[0] == (char *)message + 8 && memory.first == NULL ? 0 : 1;
        }";
    let tern = "#include <tern.h>
        #define QUILL_OWN_IPC
        static uint64_t quill_ipc_call(tern_uid, uint32_t, uint64_t *, unsigned, unsigned);
        static uint64_t quill_ipc_call_long(tern_uid, uint32_t, uint64_t *, unsigned, unsigned);
        static uint32_t quill_ipc_send_long(tern_uid, uint32_t, const uint64_t *);
        #include \"counted.h\"
        static const char *seen;
        static quill_status note(void *self, tern_uid from, quill_text s)
        {
            (void)self, (void)from;
            seen = s._buffer;
            return QUILL_OK;
        }
        static const Caption_Board_server methods = { .note = note };
        static uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there, unsigned back)
        {
            (void)server, (void)label, (void)words, (void)there, (void)back;
            return 0;
        }
        static uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there,
                                            unsigned back)
        {
            return quill_ipc_call(server, label, words, there, back);
        }
        static uint32_t quill_ipc_send_long(tern_uid server, uint32_t label, const uint64_t *words)
        {
            (void)server, (void)label, (void)words;
            return 0;
        }
        int main(void)
        {
            static Caption_Board_room room;
            uint64_t words[QUILL_WORDS] = { 1, 0, 0x3837363534333231, 8 };
            tern_uid partner = 7;
            bool in_memory = false;
            quill_answer(Caption_Board_dispatch, &methods, NULL, &partner, 0x20000000, words, &room, NULL, &in_memory);
            return partner == TERN_NIL && seen == (const char *)room.words && seen[7] == '8' ? 0 : 1;
        }";
    for (kernel, program) in [(&Linux as &dyn KernelPart, linux), (&TernIpc, tern)] {
        let shop = Workshop::new(&format!("o-counted-{}", kernel.name()));
        shop.emit_c_both_ways("caption.idl", &["FEW"], kernel);
        shop.bring_tern();
        std::fs::write(shop.path("main.c"), program).unwrap();
        for compiler in compilers() {
            for level in ["-O0", "-O2"] {
                let options = [level, "-Wno-unused-function", "-o", "main", "main.c"];
                shop.tool(&compiler, &[&STRICT[..], &options].concat());
                shop.run("main");
            }
        }
    }
}

/// A server can replace a method while it runs; a text is used where it has arrived, in the room.
#[test]
fn methods_can_be_replaced_and_texts_are_not_copied() {
    let program = "#define QUILL_OWN_IPC
        #include \"stubs.h\"
        static I_room room;
        static quill_status one(void *self, tern_uid from, int32_t a, int32_t *result);
        static quill_status other(void *self, tern_uid from, int32_t a, int32_t *result);
        static const char *seen;
        static quill_status text(void *self, tern_uid from, const char *s)
        {
            (void)self, (void)from;
            seen = s;
            return QUILL_OK;
        }
        static I_server methods = { one, text };
        static quill_status one(void *self, tern_uid from, int32_t a, int32_t *result)
        {
            (void)self, (void)from;
            *result = a + 1;
            methods.tiny = other;
            return QUILL_OK;
        }
        static quill_status other(void *self, tern_uid from, int32_t a, int32_t *result)
        {
            (void)self, (void)from;
            *result = a + 2;
            return QUILL_OK;
        }
        static uint64_t ask(uint32_t label, uint64_t *words, void *where)
        {
            tern_uid partner = 7;
            return quill_answer(I_dispatch, &methods, NULL, &partner, label, words, where, NULL, NULL);
        }
        int main(void)
        {
            uint64_t words[QUILL_WORDS] = { 5 }, again[QUILL_WORDS] = { 5 };
            uint64_t post[QUILL_WORDS] = { 2, 0, 0x3635343332313039, 16 };
            if (ask(0, words, NULL) != UINT32_MAX || words[0] != 6)
                return 1;
            if (ask(0, again, NULL) != UINT32_MAX || again[0] != 7)
                return 2;
            for (int i = 0; i < 16; i++)
                ((char *)room.words)[i] = (char)('a' + i);
            if (ask(0x80000000, post, &room) != UINT32_MAX)
                return 3;
            return seen == (const char *)room.words && seen[0] == 'a' && seen[15] == '6' && seen[16] == 0 ? 0 : 4;
        }";
    let calls = "static uint64_t quill_ipc_call(tern_uid, uint32_t, uint64_t *, unsigned, unsigned);
        static uint64_t quill_ipc_call_long(tern_uid, uint32_t, uint64_t *, unsigned, unsigned);\n";
    let bodies =
        "\nstatic uint64_t quill_ipc_call(tern_uid server, uint32_t label, uint64_t *words, unsigned there,
            unsigned back) { (void)server, (void)label, (void)words, (void)there, (void)back; return 0; }
        static uint64_t quill_ipc_call_long(tern_uid server, uint32_t label, uint64_t *words, unsigned there,
            unsigned back) { return quill_ipc_call(server, label, words, there, back); }\n";
    let program =
        program.replace("#include \"stubs.h\"", &format!("#include <tern.h>\n{calls}#include \"stubs.h\""));
    let shop = workshop("o-replaced", &(program + bodies));
    for compiler in compilers() {
        for level in ["-O0", "-O2", "-O3", "-Os"] {
            let options = [level, "-Wno-unused-function", "-o", "main", "main.c"];
            shop.tool(&compiler, &[&STRICT[..], &options].concat());
            shop.run("main");
        }
    }
}

/// The program with whose times decision 0157 was made: each way copies the bytes that it should, into the place that it should.
#[test]
fn ways_to_copy_and_places_of_messages_are_timed_beside_each_other() {
    let shop = Workshop::new("o-copies");
    shop.bring("copies.c", "copies.c");
    shop.tool("gcc", &["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", "copies", "copies.c"]);
    let out = std::process::Command::new(shop.path("copies")).arg("20").output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    println!("{said}");
    assert!(out.status.success(), "{said}");
    assert_eq!(said.lines().filter(|line| line.split_whitespace().count() == 8).count(), 9, "{said}");
}
