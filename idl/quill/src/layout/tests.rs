mod attributes;
mod pages;
mod references;

use std::path::Path;

use super::*;
use crate::driver::{compile_loaded, compile_text};
use crate::kernel::{self, L4V4, Linux, TernDoor, TernDoorPlain, TernIpc};
use crate::session::{Dialect, Options, Session};

fn lay_out(text: &str, kernel: &dyn KernelPart) -> (Model, Result<Vec<InterfaceLayout>, Vec<Diagnostic>>) {
    let out = compile_text(Path::new("t.idl"), text.as_bytes(), Options::default());
    assert!(out.accepted(), "{}", out.messages());
    let layouts = layout(&out.model, kernel);
    (out.model, layouts)
}

fn check(source: &str, kernel: &dyn KernelPart, expected: &str) {
    let (model, layouts) = lay_out(source, kernel);
    let found = text(&model, &layouts.unwrap(), kernel);
    let trim =
        |t: &str| t.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>();
    assert_eq!(trim(&found), trim(expected), "{found}");
}

#[test]
fn values_have_registers_of_their_own_while_there_are_enough() {
    check(
        "interface I { short f(in char a, in long b, in short c, in long long d); };",
        &TernIpc,
        "interface I over tern-ipc (label in the upper half of rax)
           f (label 0)
             request
               w0[0..8] d long long
               w1[0..4] b long
               w2[0..2] c short
               w3[0..1] a char
             reply
               w0[0..2] _result short",
    );
}

#[test]
fn values_share_registers_before_they_use_the_hard_ones() {
    let longs = |n: usize| (0..n).map(|i| format!("in long a{i}")).collect::<Vec<_>>().join(", ");
    let words = |n: usize| {
        let (_, layouts) = lay_out(&format!("interface I {{ void f({}); }};", longs(n)), &TernIpc);
        let request = layouts.unwrap()[0].methods[0].request.clone();
        (request.registers, request.memory_bytes)
    };
    assert_eq!([1, 8, 9, 16, 17, 22].map(words), [(1, 0), (8, 0), (8, 0), (8, 0), (11, 0), (11, 0)]);
    // From here on two registers describe the part in memory.
    assert_eq!([23, 128].map(words), [(10, 32), (10, 448)]);
}

/// Whatever a request, a reply and an exception consist of, each is as large as it is, beside others that are small.
#[test]
fn messages_of_all_sizes_have_places() {
    for kernel in [&TernIpc as &dyn KernelPart, &TernDoor] {
        for (ty, count) in
            ["char", "short", "long", "long long"].into_iter().flat_map(|ty| (1..48).map(move |n| (ty, n)))
        {
            let list = |start: &str, end: &str| -> String {
                (0..count).map(|i| format!("{start}{ty} a{i}{end}")).collect()
            };
            let fields = list("", "; ");
            let (ins, outs) = (list("in ", ", "), list("out ", ", "));
            let idl = format!(
                "struct S {{ {fields} }}; exception E {{ {fields} }};
                 interface I {{ long e() raises (E); S r(); void p({ins} in long z); void o({outs} in long z); }};"
            );
            let (_, layouts) = lay_out(&idl, kernel);
            assert!(layouts.is_ok(), "{count} of {ty} over {}: {layouts:?}", kernel.name());
        }
    }
}

/// Structs of two registers leave holes before them, so eight registers full of bytes are more than eight registers.
#[test]
fn values_with_holes_before_them_use_the_hard_registers() {
    let types = "struct P { long x; long y; }; struct Q { long long a; long long b; }; enum E { A, B };";
    for method in [
        "Q f(inout unsigned short f1, in E f2, in long long f3, inout Q f4, in E m, out unsigned short g, in unsigned long h, \
         in boolean f5, in P f6, in long long f7)",
        "void f(inout octet f1, in Q f2, inout Q f3, in Q f4, in octet m)",
    ] {
        let (_, layouts) = lay_out(&format!("{types} interface I {{ {method}; }};"), &TernIpc);
        let layouts = layouts.unwrap_or_else(|why| panic!("{why:?}"));
        for message in [&layouts[0].methods[0].request, &layouts[0].methods[0].reply] {
            let in_registers = message.slots.iter().all(|slot| matches!(slot.place, Place::Register(..)));
            assert!(in_registers && !message.long && message.registers <= 11, "{message:?}");
        }
    }
}

#[test]
fn a_single_list_is_the_words_of_its_message() {
    check(
        "typedef sequence<long long> Numbers; typedef sequence<octet, 4097> Bytes;
         interface I { void f(in string s, in short n); long g(in Numbers all); void h(in Bytes all); };",
        &TernIpc,
        "interface I over tern-ipc (label in the upper half of rax)
           f (label 0)
             request
               w2[0..8] s last bytes of string
               w3[0..8] s count of string
               w4[0..2] n short
               words s block of 1-byte elements, at most 4096
             reply: empty
           g (label 0x80000000)
             request
               w2[0..8] all count of Numbers
               words all block of 8-byte elements, at most 512
             reply
               w0[0..4] _result long
           h (label 0x40000000)
             request
               string 0 all block of 1-byte elements, at most 4097
             reply: empty",
    );
}

#[test]
fn several_lists_are_strings_unless_they_are_short() {
    check(
        "typedef sequence<octet, 16> Short; typedef sequence<octet, 65536> Long;
         interface I { long f(in Short a, in Short b, inout long n, in string c, in Long d, in Long e); };",
        &TernIpc,
        "interface I over tern-ipc (label in the upper half of rax)
           f (label 0)
             request
               w2[0..4] n long
               w2[4..8] a count of Short
               w3[0..4] b count of Short
               w4[0..16] a elements of Short
               w6[0..16] b elements of Short
               string 0 c block of 1-byte elements, at most 4096
               string 1 d block of 1-byte elements, at most 65536
               string 2 e block of 1-byte elements, at most 65536
             reply
               w2[0..4] n long
               w3[0..4] _result long",
    );
}

#[test]
fn flat_structs_stay_in_one_piece_and_others_are_taken_apart() {
    check(
        "struct Flat { long a; short b; short c; long long d; };
         struct Holed { octet x; long y; boolean z; };
         interface I { void f(in Flat s, in Holed t); };",
        &TernIpc,
        "interface I over tern-ipc (label in the upper half of rax)
           f (label 0)
             request
               w0[0..16] s Flat
               w2[0..4] t.y long
               w3[0..1] t.x octet
               w4[0..1] t.z boolean
             reply: empty",
    );
}

/// Whatever the largest member is, its bytes travel in one piece, with the alignment of the strictest.
#[test]
fn flat_unions_are_values() {
    let expected = "interface I over tern-ipc (label in the upper half of rax)
           f (label 0)
             request
               w0[0..16] one A
               w2[0..4] n long
               w3[0..2] two B
             reply
               w0[0..16] _result A";
    let source = "@flat union B { short x; octet y[2]; };
         @flat union A { long long whole; octet bytes[11]; B b; };
         interface I { A f(in A one, in long n, in B two); };";
    check(source, &TernIpc, expected);
    let dce = "typedef [flat] union B { short x; byte y[2]; } B;
         typedef [flat, switch_type(long)] union A { [case(1)] hyper whole; [case(2)] byte bytes[11]; [case(3)] B b; [default]; } A;
         interface I { A f([in] A one, [in] long n, [in, flat] B two); }";
    let options = Options { dialect: Some(Dialect::Dce), ..Options::default() };
    let out = compile_text(Path::new("t.idl"), dce.as_bytes(), options);
    assert!(out.session.diags.list().is_empty(), "{}", out.messages());
    let found = text(&out.model, &layout(&out.model, &TernIpc).unwrap(), &TernIpc);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&found), words(expected));
}

#[test]
fn members_of_flat_unions_that_would_need_a_look_are_refused_by_name() {
    let types = "enum E { X, Y }; interface O {}; struct Holed { octet a; long b; }; struct Deep { long n; E e; };
         @bit_bound(8) bitmask M { P, Q }; typedef sequence<long, 2> L; union T switch (long) { case 1: long a; };
         @flat union Fine { long a; }; @flat union Bad { wchar w; };";
    let members = [
        "boolean",
        "E",
        "wchar",
        "M",
        "O",
        "Object",
        "Holed",
        "Deep",
        "string",
        "string<4>",
        "L",
        "T",
        "any",
        "Bad",
        "fpage",
    ];
    for member in members {
        let source = format!(
            "{types} @flat union U {{ Fine fine; {member} doubtful; }}; interface I {{ void f(in U one); }};"
        );
        for kernel in kernel::ALL {
            let (_, layouts) = lay_out(&source, kernel);
            let refused = layouts.unwrap_err().remove(0).message;
            assert!(refused.contains("`doubtful` of the flat union `U`"), "{member}: {refused}");
        }
    }
    for fine in ["octet", "char", "long long", "double", "Fine", "uint8"] {
        let source = format!(
            "{types} @flat union U {{ {fine} a; {fine} b[3]; }}; interface I {{ void f(in U one); }};"
        );
        for kernel in kernel::ALL {
            assert!(lay_out(&source, kernel).1.is_ok(), "{fine}");
        }
    }
    let large = "@flat union U { octet a[100000]; }; interface I { void f(in U one); };";
    let message = lay_out(large, &TernIpc).1.unwrap_err().remove(0).message;
    assert!(message.contains("at most 4096 bytes"), "{message}");
}

/// One value in both dialects, and in C what [`crate::any`] says.
#[test]
fn values_of_any_type_are_three_values() {
    let expected = "interface I over tern-ipc (label in the upper half of rax)
           f (label 0)
             request
               w2[0..8] a.bits unsigned long long
               w3[0..8] a.content last bytes of sequence<octet>
               w4[0..8] a.content count of sequence<octet>
               w5[0..4] a.kind quill::any_kind
               words a.content block of 1-byte elements, at most 4096
             reply: empty";
    check("interface I { void f(in any a); };", &TernIpc, expected);
    let options = Options { dialect: Some(Dialect::Dce), ..Options::default() };
    let dce = "interface I { void f([in] any a); }";
    let out = compile_text(Path::new("t.idl"), dce.as_bytes(), options.clone());
    assert!(out.accepted(), "{}", out.messages());
    let found = text(&out.model, &layout(&out.model, &TernIpc).unwrap(), &TernIpc);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&found), words(expected));
    // A file's own type of that name is another one.
    let own = "typedef long any; interface I { void f([in] any a); }";
    let out = compile_text(Path::new("t.idl"), own.as_bytes(), options);
    assert!(text(&out.model, &layout(&out.model, &Linux).unwrap(), &Linux).contains("0..4         a "));

    let header = include_str!("../emit/c/any.h");
    let mut rest = header;
    for (kind, _) in crate::any::KINDS {
        let at = rest
            .find(&format!("    quill_{kind}"))
            .unwrap_or_else(|| panic!("{kind} is missing or misplaced"));
        rest = &rest[at + 1..];
    }
    let bits: Vec<String> = crate::any::KINDS.iter().map(|(_, bits)| bits.to_string()).collect();
    assert!(header.contains(&format!("{{ {} }}", bits.join(", "))));
    assert!(header.contains(&format!("CHARACTERS_MAX {}", crate::any::CHARACTERS_MAX)));
}

#[test]
fn short_lists_travel_in_registers() {
    check(
        "typedef sequence<octet, 16> Bytes;
         interface I { Bytes f(in Bytes b, in string<4> s, inout long n); };",
        &TernIpc,
        "interface I over tern-ipc (label in the upper half of rax)
           f (label 0)
             request
               w0[0..4] n long
               w1[0..4] b count of Bytes
               w2[0..4] s count of string<4>
               w3[0..16] b elements of Bytes
               w5[0..16] s elements of string<4>
             reply
               w0[0..4] n long
               w1[0..4] _result count of Bytes
               w2[0..16] _result elements of Bytes",
    );
}

#[test]
fn requests_without_a_reply_have_fewer_registers() {
    let source = |oneway: &str| {
        let params: Vec<_> = (0..9).map(|i| format!("in long long a{i}")).collect();
        format!("interface I {{ {oneway} void f({}); }};", params.join(", "))
    };
    let request = |oneway| {
        let request = lay_out(&source(oneway), &TernIpc).1.unwrap()[0].methods[0].request.clone();
        (request.long, request.registers, request.memory_bytes)
    };
    assert_eq!(request(""), (false, 9, 0));
    assert_eq!(request("oneway"), (true, 8, 24));
}

#[test]
fn inout_values_stay_put() {
    let (_, layouts) = lay_out(
        "struct P { long x; long long y; }; interface I { long long f(in long long a, inout P pair, inout short z, out double d); };",
        &TernIpc,
    );
    let method = &layouts.unwrap()[0].methods[0];
    let places = |m: &Message| -> Vec<(Vec<String>, Place)> {
        let stay = m.slots.iter().filter(|s| ["pair", "z"].contains(&s.path[0].as_str()));
        stay.map(|s| (s.path.clone(), s.place)).collect()
    };
    assert_eq!(places(&method.request), places(&method.reply));
    assert_eq!(places(&method.request).len(), 3);
}

#[test]
fn variable_data_follows_the_fixed_part() {
    check(
        "struct S { boolean b; string name; sequence<long, 5> list; };
         union U switch (long) { case 1: string s; };
         exception E { long why; };
         interface I { oneway void f(in S it, in octet o); void g(in U which, out string<8> t) raises (E); };",
        &Linux,
        "interface I over linux (label in the header)
           f (label 0), oneway
             request
               0..4 it.name count of string
               4..8 it.list count of sequence<long, 5>
               8..9 it.b boolean
               9..10 o octet
               then it.name block of 1-byte elements
               then it.list block of 4-byte elements, at most 5
           g (label 1)
             request
               then which stream
             reply
               0..4 t count of string<8>
               then t block of 1-byte elements, at most 32
             exception E (label 1)
               0..4 why long",
    );
}

/// They are words, so that the kernel's fast path copies them. There is no room for more than it copies.
#[test]
fn what_is_read_piece_by_piece_are_words_behind_those_that_have_places() {
    let source = "typedef sequence<string<20>, 4> Names; union U switch (octet) { case 1: long long a; };
         typedef sequence<octet, 5000> Bytes; typedef sequence<string> Endless; typedef long long Eight[8];
         interface I { void f(in Names all, in Bytes stamp, in Eight days, in U which, in octet o); void g(in Endless all); };";
    check(
        source,
        &TernIpc,
        "interface I over tern-ipc (label in the upper half of rax)
           f (label 0)
             request
               w2[0..64] days Eight
               0..1 o octet
               string 0 stamp block of 1-byte elements, at most 5000
               then all stream
               then which stream
             reply: empty
           g (label 0x80000000)
             request
               then all stream
             reply: empty",
    );
    let (_, layouts) = lay_out(source, &TernIpc);
    let requests: Vec<u64> = layouts.unwrap()[0].methods.iter().map(|m| m.request.stream_bytes).collect();
    // Four texts of 80 bytes with their lengths, and the number of them; a discriminator and a number; no end.
    assert_eq!(requests, [4 * 88 + 8 + 16, 4096]);
}

#[test]
fn what_cannot_be_carried_is_refused_by_name() {
    let refused = |source: &str, kernel: &dyn KernelPart| {
        let (_, layouts) = lay_out(source, kernel);
        layouts.unwrap_err().into_iter().map(|d| d.message).collect::<Vec<_>>().join("\n")
    };
    assert!(
        refused("interface I { void f(in ValueBase a); };", &Linux)
            .contains("`f` cannot be translated: the type `ValueBase`")
    );
    let list = "interface I {}; typedef sequence<Object, 3> L; interface J { L f(in I other); };";
    assert!(
        [&L4V4 as &dyn KernelPart, &TernIpc, &Linux].iter().all(|kernel| lay_out(list, *kernel).1.is_ok())
    );
    for (source, why) in [
        ("interface I { void f(in fpage a, in fpage b); };", "a message hands over one flexpage"),
        ("struct S { fpage a; }; interface I { void f(in S a); };", "a flexpage is a parameter of its own"),
        ("interface I { void f(in fpage a, in Vast b); };", "nothing of such a call is in memory"),
    ] {
        let refused = refused(&format!("typedef sequence<octet, 999> Vast; {source}"), &TernIpc);
        assert!(refused.contains(why), "{refused}");
    }
    assert!(
        refused("interface I { fpage f(); };", &Linux).contains("pages cannot be handed over by `linux`")
    );
    let vast = "typedef sequence<octet, 5000000> Vast; interface I { void f(in Vast all); };";
    assert!(refused(vast, &TernIpc).contains("more than the 4194304 bytes of a string"));
    let deep = "custom valuetype V { public long a; }; struct S { sequence<V> v; }; interface I { S f(); };";
    assert!(refused(deep, &Linux).contains("the custom value type `V`"));
}

#[test]
fn pages_leave_six_words_and_eight_the_other_way() {
    let source = "interface I { fpage f(@grant in fpage given, in octet a, in short b, in long c, in long d, in long e,
        in long g, in long h, in long i, in octet j); };";
    let (_, layouts) = lay_out(source, &TernIpc);
    let method = layouts.unwrap()[0].methods[0].clone();
    let handed = |message: &Message| message.pages.clone().map(|pages| (pages.param, pages.grant));
    assert_eq!(handed(&method.request), Some(("given".into(), Some(true))));
    assert_eq!(handed(&method.reply), Some(("_result".into(), None)));
    assert!(method.request.registers <= 6 && method.request.memory_bytes == 0, "{method:?}");
    // Nine values that would have a register each have no more than eight if a page comes back.
    let shown = source.replace("@grant in fpage given, ", "");
    let (_, layouts) = lay_out(&shown, &TernIpc);
    assert!(layouts.unwrap()[0].methods[0].request.registers <= 8);
}

/// One reference goes beside words in registers, several are described in memory, whatever else there is.
#[test]
fn several_references_are_in_memory() {
    let source = "interface I { void one(in Object a, in long b);
        void two(in Object a, in long b, @grant in I c);
        void three(in Object a, in Object b, in string c, in I d); };";
    let (_, layouts) = lay_out(source, &TernDoor);
    let methods = layouts.unwrap()[0].methods.clone();
    let shape = |number: usize| {
        let request = &methods[number].request;
        let handed = request.handed().map(|handed| (handed.param.clone(), handed.grant == Some(true)));
        (request.long, request.block_words(), handed.collect::<Vec<_>>())
    };
    let lent = |name: &str| (name.to_owned(), false);
    assert_eq!(shape(0), (false, 0, vec![lent("a")]));
    assert_eq!(shape(1), (true, 4, vec![lent("a"), ("c".into(), true)]));
    assert_eq!(shape(2), (true, 8, vec![lent("a"), lent("b"), lent("d")]));
}

/// Each value of a request is by itself and in the interface's order, and its lists are strings unless they would fit into registers. So it is with a reply
/// that has a part in memory anyway; another one stays in registers.
#[test]
fn plain_messages_are_in_memory() {
    check(
        "struct Flat { long a; short b; short c; };
         typedef sequence<octet, 4000> Bytes; typedef sequence<octet, 5> Few;
         exception E { Bytes why; };
         interface I {
           long f(in octet a, in Flat b, in Bytes c, in Few d) raises (E);
           Bytes g(in long n, out Flat s);
           Few h(inout long n);
           void k();
           void l(in octet a, inout Few b);
         };",
        &TernDoorPlain,
        "interface I over tern-door-plain (label in the upper half of rax)
           f (label 0)
             request
               0..1 a octet
               4..8 b.a long
               8..10 b.b short
               10..12 b.c short
               12..16 d count of Few
               16..21 d elements of Few
               string 0 c block of 1-byte elements, at most 4000
             reply
               w0[0..4] _result long
             exception E (label 1)
               string 0 why block of 1-byte elements, at most 4000
           g (label 0x80000000)
             request
               0..4 n long
             reply
               0..4 s.a long
               4..6 s.b short
               6..8 s.c short
               string 0 _result block of 1-byte elements, at most 4000
           h (label 0x40000000)
             request
               0..4 n long
             reply
               w0[0..4] n long
               w1[0..4] _result count of Few
               w2[0..5] _result elements of Few
           k (label 0xc0000000)
             request: empty
             reply: empty
           l (label 0x20000000)
             request
               0..1 a octet
               4..8 b count of Few
               8..13 b elements of Few
             reply
               w0[0..4] b count of Few
               w1[0..5] b elements of Few",
    );
}

#[test]
fn interfaces_have_numbers_that_their_heirs_keep() {
    let source = "@id(7) interface A { void f(); void g(); }; @id(9) interface B : A { void h(); }; interface C { void f(); };";
    let (_, layouts) = lay_out(source, &TernIpc);
    let labels =
        |i: usize| layouts.as_ref().unwrap()[i].methods.iter().map(|m| m.request.label).collect::<Vec<_>>();
    assert_eq!(labels(0), [7, 0x8000_0007]);
    assert_eq!(labels(1), [7, 0x8000_0007, 0x4000_0009]);
    assert_eq!(labels(2), [0]);
    for wrong in ["0", "65536", "-1"] {
        let source = format!("@id({wrong}) interface A {{ void f(); }};");
        let out = compile_text(Path::new("t.idl"), source.as_bytes(), Options::default());
        assert!(out.messages().contains("from 1 to 65535"), "{}", out.messages());
    }
}

#[test]
fn no_two_leaves_overlap() {
    let source = "struct A { octet p; double q; short r[3]; }; struct B { A first; char x; A second; }; enum E { X, Y };
        interface I { B f(in B m, inout A n, in E o, in octet t); };";
    for kernel in kernel::ALL {
        let word_bytes = u64::from(kernel.shape().word_bytes);
        let (_, layouts) = lay_out(source, kernel);
        // All of it does not fit into registers alone.
        let Ok(layouts) = layouts else { continue };
        for message in [&layouts[0].methods[0].request, &layouts[0].methods[0].reply] {
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for slot in &message.slots {
                let from = match slot.place {
                    Place::Register(word, byte) => u64::from(word) * word_bytes + u64::from(byte),
                    Place::Memory(at) => 1_000_000 + at,
                };
                assert_eq!(from % slot.fixed.align.min(word_bytes), 0);
                assert!(taken.iter().all(|&(a, b)| b <= from || from + slot.fixed.size <= a));
                taken.push((from, from + slot.fixed.size));
            }
        }
    }
}

/// A value that lay across two words would lose its upper bytes.
#[test]
fn short_lists_in_memory_begin_where_their_elements_may() {
    let longs: String = ('a'..='h').map(|name| format!("in long long {name}, ")).collect();
    let source = format!(
        "typedef sequence<long, 3> Few; typedef sequence<octet, 2000> Bytes;
         interface I {{ void f({longs} in octet n, in Few all, in Bytes x, in Bytes y); }};"
    );
    for kernel in [&TernIpc as &dyn KernelPart, &TernDoor, &TernDoorPlain] {
        let (_, layouts) = lay_out(&source, kernel);
        let slots = layouts.unwrap()[0].methods[0].request.slots.clone();
        let elements = slots.iter().find(|slot| matches!(slot.leaf, Leaf::Elements(..))).unwrap();
        assert!(matches!(elements.place, Place::Memory(at) if at % 4 == 0), "{elements:?}");
    }
}

#[test]
fn values_share_registers_that_each_have_a_cost_and_items_know_their_length() {
    check(
        "typedef sequence<long> Longs;
         interface I { string f(in char a, in long b, in short c, in boolean d, in Longs e, in string g); };",
        &L4V4,
        "interface I over l4-v4 (label in the tag)
           f (label 0)
             request
               w0[0..4] b long
               w1[0..2] c short
               w1[2..3] a char
               w1[3..4] d boolean
               then e block of 4-byte elements
               then g block of 1-byte elements
             reply
               then _result block of 1-byte elements",
    );
    // Lists that fit stay in registers.
    check(
        "typedef sequence<long, 3> Three; interface I { void f(in Three a, in string<4> b); };",
        &L4V4,
        "interface I over l4-v4 (label in the tag)
           f (label 0)
             request
               w0[0..4] a count of Three
               w1[0..4] b count of string<4>
               w2[0..12] a elements of Three
               w5[0..16] b elements of string<4>
             reply: empty",
    );
}
