//! Every word that could mean something to a compiler, as the name of everything that an interface file can give a name: the output compiles.
//!
//! Nobody has to know which words are dangerous. In C, where a macro of any header reaches every name, taken are the keywords of both languages,
//! every identifier of what stubs share and of stubs that are made of the sample files, and all that the standard headers of this host define. In
//! Rust a word can only be in the way of words that stand in the same file, so taken are the keywords and every identifier of what is made of
//! the files of this test; in a full run all others, too. Each goes through each place of a name, outside of everything and in an interface,
//! with each kernel, in a full run. Otherwise a keyword has each place in one of the two, and any other word six of the eleven, with one kernel.

mod workshop;

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use quill::driver;
use quill::kernel::{self, KernelPart};
use quill::parts;
use quill::session::{Dialect, Options};
use workshop::{Workshop, compilers};

const KEYWORDS_OF_RUST: &str = "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod \
     move mut pub ref return self Self static struct super trait true type unsafe use where while abstract become box do final \
     gen macro override priv try typeof unsized virtual yield union raw safe macro_rules Ok Err Some None Option Result Vec \
     String Box Sized Send Sync Copy Clone Debug Default Drop Eq Hash PartialEq Iterator From Into ToString AsRef Fn FnMut \
     FnOnce u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 bool char str core std alloc S T W C R F E A B N e0 e1";

const KEYWORDS_OF_C: &str = "auto break case char const continue default do double else enum extern float for goto if inline int long \
     register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while alignas \
     alignof bool constexpr false nullptr static_assert thread_local true typeof asm and and_eq bitand bitor catch class compl \
     const_cast delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq operator or or_eq private \
     protected public reinterpret_cast static_cast template this throw try typeid typename using virtual wchar_t xor xor_eq";

/// Headers that every C compiler has, and those that come with sockets.
const HEADERS: &str = "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic \
     stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype sys/socket sys/types fcntl unistd";

/// Words in one file.
const WORDS_MAX: usize = 600;

/// Places of a name, of which each scope has one for each word.
const PLACES: usize = 11;

fn includes() -> String {
    HEADERS.split_whitespace().map(|header| format!("#include <{header}.h>\n")).collect()
}

/// The words of a text that can be names of an interface file.
fn identifiers(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')).map(str::to_owned)
}

/// The source files in a directory and below.
fn texts(dir: &Path, out: &mut String) {
    let mut entries: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        match path.extension().and_then(|e| e.to_str()) {
            _ if path.is_dir() => texts(&path, out),
            Some("h" | "rs") => out.push_str(&code(&std::fs::read_to_string(&path).unwrap())),
            _ => {}
        }
    }
}

/// A text without its comments of one line.
fn code(text: &str) -> String {
    let is_comment =
        |line: &&str| !line.trim_start().starts_with("//") && !line.trim_start().starts_with("* ");
    text.lines().filter(is_comment).fold(String::new(), |all, line| all + line + "\n")
}

/// What stubs consist of, whatever the interface: the keywords of both languages, and of the stubs in Rust and in C those that are wanted.
fn words_of_stubs(wanted: impl Fn(String, String) -> String) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/emit");
    let read = |name: &str| code(&std::fs::read_to_string(root.join(name)).unwrap());
    let headers = [
        "any.h",
        "any_packed.h",
        "utf8.h",
        "stream.h",
        "linux_message.h",
        "linux_runtime.h",
        "tern_ipc_runtime.h",
        "stream_places.h",
        "stream_texts.h",
        "tern_stream.h",
        "tern_serve.h",
        "tern_references.h",
        "tern_handing.h",
        "l4_v4_runtime.h",
        "l4_v4_texts.h",
    ];
    let mut rust = read("rust/linux/runtime.rs") + &read("rust/linux/way.rs");
    let mut c: String = headers.into_iter().map(|name| read(&format!("c/{name}"))).collect();
    for file in ["bank.idl", "parcel.idl", "property.idl", "depot.idl"] {
        for kernel in kernel::ALL {
            let mut out = driver::compile(&workshop::accepted(file), Options::default()).unwrap();
            rust += &code(&out.rust(kernel));
            c += &code(&out.c(kernel));
        }
    }
    identifiers(&format!("{KEYWORDS_OF_RUST} {KEYWORDS_OF_C} {}", wanted(rust, c))).collect()
}

/// What the headers of this host define, and what Tern's libraries declare.
fn words_of_headers(shop: &Workshop) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    for dir in ["../../user/lib/stub/src", "../../user/lib/c/include"] {
        texts(&root.join(dir), &mut text);
    }
    let mut words: BTreeSet<String> = identifiers(&text).collect();
    std::fs::write(shop.path("all.c"), includes()).unwrap();
    for compiler in compilers() {
        for options in [&["-std=gnu11"][..], &["-std=gnu11", "-D_GNU_SOURCE"]] {
            let out =
                Command::new(&compiler).args(options).args(["-dM", "-E"]).arg(shop.path("all.c")).output();
            let text = String::from_utf8(out.unwrap().stdout).unwrap();
            let defined = text.lines().filter_map(|line| line.strip_prefix("#define "));
            words.extend(defined.filter_map(|line| identifiers(line).next()));
        }
    }
    // Those belong to compilers.
    words.retain(|word| !word.starts_with("__") && !word.starts_with('_'));
    words
}

/// Words in groups of which none has two that differ in case only.
fn groups(words: impl Iterator<Item = String>) -> Vec<Vec<String>> {
    let mut groups: Vec<(Vec<String>, HashSet<String>)> = Vec::new();
    for word in words {
        let folded = word.to_lowercase();
        let fits = |group: &&mut (Vec<String>, HashSet<String>)| {
            group.0.len() < WORDS_MAX && !group.1.contains(&folded)
        };
        match groups.iter_mut().find(fits) {
            Some((group, taken)) => {
                taken.insert(folded);
                group.push(word);
            }
            None => groups.push((vec![word], HashSet::from([folded]))),
        }
    }
    groups.into_iter().map(|group| group.0).collect()
}

/// A declaration of which a word is the name. Whatever else it declares begins with `zz`.
fn declaration(place: usize, number: usize, word: &str, in_interface: bool) -> String {
    let z = format!("{}{number}", if in_interface { "zzi" } else { "zz" });
    match place {
        0 => format!("struct _{word} {{ long zza; }};"),
        1 => format!("union _{word} switch (long) {{ case 1: long zza; default: short zzb; }};"),
        2 => format!("enum _{word} {{ {z}a, {z}b }};"),
        3 => format!("enum {z} {{ {z}a, _{word} }};"),
        4 => format!("const long _{word} = {number};"),
        5 => format!("bitmask _{word} {{ {z}a, {z}b }};"),
        6 => format!("bitmask {z} {{ {z}a, _{word} }};"),
        7 => format!("exception _{word} {{ long zza; }};"),
        8 => format!("typedef long _{word};"),
        9 if in_interface => format!("void _{word}();"),
        _ if in_interface => String::new(),
        9 => format!("interface _{word} {{ void zzf(in long zza); }};"),
        _ => format!("module _{word} {{ const long zzc = 1; struct zzs {{ long zza; }}; }};"),
    }
}

/// Declarations of one scope, of which each word is the name of one, or of a member: an enum or bitmask has the next word for a member, and is
/// so the place of two.
fn scope(words: &[String], turn: usize, in_interface: bool) -> String {
    let mut text = String::new();
    for (number, word) in words.iter().enumerate() {
        let place = (number + turn) % PLACES;
        let next = words.get(number + 1);
        let one = match (place, next) {
            (2 | 5, Some(next)) => {
                declaration(place, number, word, in_interface).replace("b };", &format!("b, _{next} }};"))
            }
            // A member of the one before.
            (3 | 6, _) if number > 0 => continue,
            _ => declaration(place, number, word, in_interface),
        };
        writeln!(text, "  {one}").unwrap();
    }
    text
}

/// A file in which each word has one place outside of everything and one in an interface.
fn declarations(words: &[String], turn: usize) -> String {
    let (outside, inside) = (scope(words, turn, false), scope(words, turn + 5, true));
    format!("{outside}interface zzscope {{\n{inside}}};\n")
}

/// A file in which each word is the name of a field, a branch, a parameter, an operation and an attribute.
fn members(words: &[String], turn: usize) -> String {
    let mut text = String::from("struct zzrecord { long zzx; short zzy; };\n");
    for (part, words) in words.chunks(40).enumerate() {
        let each = |form: &dyn Fn(usize, &str) -> String| -> String {
            words.iter().enumerate().map(|(number, word)| form(number, word)).collect()
        };
        let fields = each(&|_, word| format!(" long _{word};"));
        let types = ["long", "string<5>", "boolean"];
        let branches = each(&|n, word| format!(" case {n}: {} _{word};", types[n % 3]));
        writeln!(text, "struct zzfields{part} {{{fields} }};\n@flat union zzflat{part} {{{fields} }};")
            .unwrap();
        writeln!(
            text,
            "union zzbranches{part} switch (long) {{{branches} }};\nexception zzraised{part} {{{fields} }};"
        )
        .unwrap();
        let operations = each(&|n, word| match (n + turn) % 3 {
            0 if n < 3 => format!(" long _{word}() raises (zzraised{part});"),
            0 | 1 => format!(" void _{word}(in long zza);"),
            _ => format!(" attribute long _{word};"),
        });
        writeln!(text, "interface zzoperations{part} {{{operations} }};").unwrap();
        let mut parameters = String::new();
        for (number, words) in words.chunks(5).enumerate() {
            let forms = ["in long", "in string<8>", "inout short", "out long long", "in zzrecord"];
            let list = words.iter().zip(forms).map(|(word, form)| format!("{form} _{word}"));
            write!(parameters, " long f{number}({});", list.collect::<Vec<_>>().join(", ")).unwrap();
        }
        writeln!(text, "interface zzparameters{part} {{{parameters} }};").unwrap();
    }
    text
}

fn compile(idl: &str) -> driver::Compiled {
    let options = Options { dialect: Some(Dialect::Corba), ..Options::default() };
    let out = driver::compile_text(Path::new("names.idl"), idl.as_bytes(), options);
    assert!(out.accepted(), "{}", out.messages());
    out
}

fn is_full() -> bool {
    std::env::var("TERN_FULL").is_ok_and(|value| value == "1")
}

/// Turns by which a word has each place outside of an interface, or five places on, within one.
const TURNS: [usize; 6] = [0, 1, 2, 3, 4, 10];

/// Turns by which it has six places in all.
const FEW_TURNS: [usize; 3] = [0, 4, 8];

/// Calls `check` with all files for the words, and the kernels that each is made for: in a full run all that there are.
fn each_file(
    words: BTreeSet<String>,
    have: impl Fn(&dyn KernelPart) -> bool,
    check: impl Fn(&str, &dyn KernelPart),
) {
    println!("{} words", words.len());
    let kernels: Vec<&dyn KernelPart> = kernel::ALL.into_iter().filter(|kernel| have(*kernel)).collect();
    let keywords: HashSet<String> = identifiers(KEYWORDS_OF_RUST).chain(identifiers(KEYWORDS_OF_C)).collect();
    let (special, others): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| keywords.contains(word));
    let (special, others) = (groups(special.into_iter()), groups(others.into_iter()));
    let of_keywords = special.iter().map(|words| (words, &TURNS[..]));
    for (number, (words, turns)) in of_keywords.chain(others.iter().map(|w| (w, &FEW_TURNS[..]))).enumerate()
    {
        let all: Vec<usize> = (0..PLACES).collect();
        let is_sample = turns.len() < TURNS.len();
        for (step, turn) in (if is_full() { &all[..] } else { turns }).iter().enumerate() {
            let idl = declarations(words, turn + number);
            let is_wanted = |at: usize| is_full() || (number + step) % kernels.len() == at;
            kernels
                .iter()
                .enumerate()
                .filter(|(at, _)| is_wanted(*at))
                .for_each(|(_, kernel)| check(&idl, *kernel));
        }
        let is_wanted = |at: usize| is_full() || !is_sample || number % kernels.len() == at;
        for (turn, kernel) in kernels.iter().enumerate().filter(|(at, _)| is_wanted(*at)) {
            check(&members(words, turn), *kernel);
        }
    }
}

/// Whether the crate that stubs share can be replaced by one of the host's; that for doors cannot.
fn on_host(kernel: &dyn KernelPart) -> bool {
    parts::rust(kernel).is_some() && !kernel.name().starts_with(kernel::TernDoor.name())
}

#[test]
fn every_word_is_a_name_in_c() {
    let shop = Workshop::new("names-c");
    shop.bring_tern();
    let words = words_of_stubs(|_, c| c).into_iter().chain(words_of_headers(&shop)).collect();
    // Its one macro is an attribute's name, which other people's headers use.
    let headers = includes().replace("#include <stdnoreturn.h>\n", "");
    std::fs::write(shop.path("all.h"), headers).unwrap();
    std::fs::write(shop.path("names.c"), "#include \"all.h\"\n#include \"names.h\"\n").unwrap();
    let strict =
        ["-std=gnu11", "-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Werror", "-D_GNU_SOURCE"];
    let options = [&strict[..], &["-I.", "-fsyntax-only", "names.c"]].concat();
    let compilers = compilers();
    // gcc reads the standard headers once, which is half of its work; others do not look at this file.
    if compilers.iter().any(|compiler| compiler == "gcc") {
        shop.tool("gcc", &[&strict[..], &["-c", "-x", "c-header", "-o", "all.h.gch", "all.h"]].concat());
    }
    each_file(
        words,
        |kernel| parts::c(kernel).is_some(),
        |idl, kernel| {
            let mut out = compile(idl);
            let header = out.c(kernel);
            assert!(out.accepted(), "{}", out.messages());
            std::fs::write(shop.path("names.h"), header).unwrap();
            for compiler in &compilers {
                let said = shop.try_tool(compiler, &options);
                assert!(said.is_ok(), "{}: {}\n{idl}", kernel.name(), said.unwrap_err());
            }
        },
    );
}

/// Words that could be in the way of something in Rust: keywords, and whatever stands in the output for files of this test, without the
/// runtime, which is a module of its own and has nothing from around it.
fn words_of_output() -> BTreeSet<String> {
    let plain = ["plain0", "plain1", "plain2"].map(String::from);
    // Members come in three forms, by turns.
    let files = (0..PLACES).map(|turn| declarations(&plain, turn));
    let files: Vec<String> = files.chain((0..3).map(|turn| members(&plain, turn))).collect();
    let mut text = KEYWORDS_OF_RUST.to_owned();
    for kernel in kernel::ALL.into_iter().filter(|kernel| on_host(*kernel)) {
        for idl in &files {
            let out = compile(idl).rust(kernel);
            text += &code(out.split("pub mod rt {").next().unwrap());
        }
    }
    // Names of these files themselves.
    identifiers(&text).filter(|word| !word.to_lowercase().starts_with("zz")).collect()
}

#[test]
fn every_word_is_a_name_in_rust() {
    let mut words = words_of_output();
    assert!(
        ["rt", "Client", "_slot_0", "plain0", "stub"].iter().all(|word| words.contains(*word)),
        "{words:?}"
    );
    // A word that cannot be raw gets an underscore, and so meets the word that has one.
    words.extend(["self", "self_", "super", "super_", "crate", "crate_"].map(String::from));
    if is_full() {
        words.extend(words_of_stubs(|rust, _| rust));
        words.extend(words_of_headers(&Workshop::new("names-headers")));
    }
    let files = Mutex::new(Vec::new());
    each_file(words, on_host, |idl, kernel| files.lock().unwrap().push((thinned(idl), kernel.name())));
    // The compiler has one thread for so small a file.
    thread::scope(|scope| {
        for number in 0..COMPILERS {
            let files = &files;
            scope.spawn(move || {
                let shop = shop_with_stubs(&format!("names-rust-{number}"));
                while let Some((idl, kernel)) = take(files) {
                    compiles_in_rust(&shop, &idl, kernel);
                }
            });
        }
    });
}

/// A file in which every other interface is empty, unless the run is full: in Rust nothing within an interface says its name.
fn thinned(idl: &str) -> String {
    let operation = "void zzf(in long zza); ";
    let mut text = String::new();
    for (number, interface) in idl.split_inclusive(operation).enumerate() {
        let is_empty = number % 2 == 1 && !is_full();
        text += if is_empty { interface.trim_end_matches(operation) } else { interface };
    }
    text
}

/// Compilers that run at the same time.
const COMPILERS: usize = 2;

/// Takes the next file.
fn take(files: &Mutex<Vec<(String, &'static str)>>) -> Option<(String, &'static str)> {
    files.lock().unwrap().pop()
}

/// A workshop with the crate that stubs in Rust share.
fn shop_with_stubs(name: &str) -> Workshop {
    let shop = Workshop::new(name);
    shop.bring("stub_on_host.rs", "stub.rs");
    for part in ["list.rs", "long.rs", "piece.rs", "stream.rs"] {
        shop.bring(&format!("../../../../user/lib/stub/src/{part}"), part);
    }
    shop.rustc(&["--crate-type", "rlib", "--emit", "metadata", "--crate-name", "stub", "stub.rs"]);
    shop
}

fn compiles_in_rust(shop: &Workshop, idl: &str, kernel: &str) {
    let options = ["--edition", "2024", "-D", "warnings", "--crate-type", "rlib", "--emit", "metadata"];
    let options = [&options[..], &["--extern", "stub=libstub.rmeta", "names.rs"]].concat();
    let kernel = kernel::ALL.into_iter().find(|part| part.name() == kernel).unwrap();
    let mut out = compile(idl);
    let text = out.rust(kernel);
    assert!(out.accepted(), "{}", out.messages());
    std::fs::write(shop.path("names.rs"), text).unwrap();
    let said = shop.try_tool("rustc", &options);
    assert!(said.is_ok(), "{}: {}\n{idl}", kernel.name(), said.unwrap_err());
}

/// Pairs of declarations whose paths differ and whose names in C would be one: `A_C` beside `A::C`, for each two kinds of declarations, either of
/// which comes first; in a module and in an interface.
fn flattened_alike(turned: bool) -> String {
    let mut text = String::new();
    let inner = (0..PLACES).map(|place| (place, false)).chain((0..PLACES - 1).map(|place| (place, true)));
    for (pair, (outer, (inner, in_interface))) in
        inner.flat_map(|inner| (0..PLACES).map(move |outer| (outer, inner))).enumerate()
    {
        let scope = if in_interface { "interface" } else { "module" };
        let inner = declaration(inner, pair, "C", in_interface);
        let first = format!("{scope} A{pair} {{ {inner} }};\n");
        let second = declaration(outer, pair, &format!("A{pair}_C"), false) + "\n";
        text += &if turned { second + &first } else { first + &second };
    }
    text
}

/// Compiles what is made of a file for the kernels that have C: in a full run for all, otherwise for one, by turns.
fn compiles_in_c(shop: &Workshop, idl: &str, turn: usize) {
    let kernels: Vec<_> = kernel::ALL.into_iter().filter(|kernel| parts::c(*kernel).is_some()).collect();
    for (number, kernel) in kernels.iter().enumerate() {
        if !is_full() && number != turn % kernels.len() {
            continue;
        }
        let mut out = compile(idl);
        let header = out.c(*kernel);
        assert!(out.accepted(), "{}: {}", kernel.name(), out.messages());
        std::fs::write(shop.path("pairs.h"), header).unwrap();
        std::fs::write(shop.path("pairs.c"), "#include \"pairs.h\"\n").unwrap();
        let strict = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I.", "-fsyntax-only", "pairs.c"];
        let said = shop.try_tool("gcc", &strict);
        assert!(said.is_ok(), "{}: {}\n{idl}", kernel.name(), said.unwrap_err());
    }
}

#[test]
fn paths_that_flatten_to_one_name_stay_apart_in_c() {
    let shop = Workshop::new("names-flat");
    shop.bring_tern();
    for turned in [false, true] {
        (0..4).for_each(|turn| compiles_in_c(&shop, &flattened_alike(turned), turn));
    }
    // References to both, where a reference has a type of its interface's own.
    let idl = "interface A_C; module A { interface C { void e(in A_C a, in C b); }; }; interface A_C { void d(in A::C c); };";
    let mut out = compile(idl);
    std::fs::write(shop.path("door.h"), out.c(&kernel::TernDoor)).unwrap();
    shop.tool(
        "gcc",
        &[
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsyntax-only",
            "-I.",
            "-include",
            "door.h",
            "-xc",
            "/dev/null",
        ],
    );
}

/// An interface has more names in C than in its file. Whatever they are, a declaration may have each of them.
#[test]
fn names_that_belong_to_an_interface_can_be_declared() {
    let shop = Workshop::new("names-derived");
    shop.bring_tern();
    let interface = "exception zzlost { long zza; };\nstruct zzlarge { long zza[40]; };\ntypedef sequence<long, 100> zzlist;\n\
         interface A { long f(in string<40> zzp, out long zzq) raises (zzlost); void g(in zzlarge zzp, out zzlarge zzq); \
         void h(in zzlist zzp); oneway void i(in long zzp); attribute long j; };\n";
    let mut words = BTreeSet::new();
    for kernel in kernel::ALL.into_iter().filter(|kernel| parts::c(*kernel).is_some()) {
        let mut out = compile(interface);
        let header = out.c(kernel);
        assert!(out.accepted(), "{}: {}", kernel.name(), out.messages());
        words.extend(identifiers(&header).filter(|word| word.starts_with("A_")));
    }
    println!("{words:?}");
    assert!(words.contains("A_server") && words.contains("A_f_raised"), "{words:?}");
    for (turn, words) in
        groups(words.into_iter()).iter().flat_map(|words| (0..PLACES).map(move |turn| (turn, words)))
    {
        let declared = |(number, word): (usize, &String)| {
            declaration((number + turn) % PLACES, number, word, false) + "\n"
        };
        let declarations: String = words.iter().enumerate().map(declared).collect();
        let is_before = turn % 3 == 0;
        let all = if is_before { declarations + interface } else { interface.to_owned() + &declarations };
        compiles_in_c(&shop, &all, turn);
    }
}
