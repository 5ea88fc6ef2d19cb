use std::path::Path;

use super::*;
use crate::driver::compile_text;
use crate::kernel::{self, L4V4, Linux, TernIpc};
use crate::session::Options;

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

#[test]
fn what_cannot_be_carried_is_refused_by_name() {
    let refused = |source: &str, kernel: &dyn KernelPart| {
        let (_, layouts) = lay_out(source, kernel);
        layouts.unwrap_err().into_iter().map(|d| d.message).collect::<Vec<_>>().join("\n")
    };
    assert!(
        refused("interface I { void f(in any a); };", &Linux)
            .contains("`f` cannot be translated: the type `any`")
    );
    assert!(refused("interface I { void f(in I other); };", &Linux).contains("(`I`) cannot be sent"));
    let pieces = "typedef sequence<string> Names; interface I { void f(in Names all); };";
    assert!(refused(pieces, &TernIpc).contains("`all` is made of pieces"));
    let vast = "typedef sequence<octet, 5000000> Vast; interface I { void f(in Vast all); };";
    assert!(refused(vast, &TernIpc).contains("more than the 4194304 bytes of a string"));
    let deep = "valuetype V { public long a; }; struct S { sequence<V> v; }; interface I { S f(); };";
    assert!(refused(deep, &Linux).contains("the value type `V`"));
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
