use std::path::Path;

use super::*;
use crate::driver::compile_text;
use crate::kernel::{KernelPart, Linux, TernDoor, TernIpc};
use crate::layout::{InterfaceLayout, layout};
use crate::session::Options;

/// The last interface of a file.
fn laid_out(source: &str, kernel: &dyn KernelPart) -> (Model, InterfaceLayout) {
    let out = compile_text(Path::new("t.idl"), source.as_bytes(), Options::default());
    assert!(out.accepted(), "{}", out.messages());
    let layout = layout(&out.model, kernel).unwrap().pop().unwrap();
    (out.model, layout)
}

/// Kinds of steps, and in how many bytes each lies.
fn steps(plan: &Plan) -> Vec<(What, u64)> {
    plan.fixed.iter().map(|step| (step.what, step.bytes)).collect()
}

#[test]
fn a_lone_list_is_all_that_is_in_memory_and_its_count_and_tail_know_it() {
    let (model, layout) = laid_out("interface I { void f(in string<500> s, in long n); };", &TernIpc);
    let plan = Plan::of(&model, &layout.methods[0].request);
    assert_eq!((plan.memory, plan.words, plan.block()), (Memory::List, 0, None));
    assert_eq!(steps(&plan), [(What::Tail(0), 8), (What::Count(Some(0)), 8), (What::Value, 4)]);
    let [list] = &plan.variable[..] else { panic!("{plan:?}") };
    assert_eq!((list.content, list.most()), (Content::Text(Some(500)), 2000));
    assert_eq!((list.count, list.tail, list.string, list.kept), (Some(1), Some(0), None, None));
    assert!(looks_twice(&model, &layout.methods[0].request));
}

#[test]
fn strings_are_described_behind_the_words_and_copies_lie_behind_that() {
    let source = "typedef sequence<long, 100> Longs; typedef sequence<octet, 100> Bytes;
                  interface I { void f(in Longs l, in Bytes o); };";
    let (model, layout) = laid_out(source, &TernIpc);
    let request = &layout.methods[0].request;
    let plan = Plan::keeping(&model, request, |list| list.path == ["o"]);
    let at = |plan: &Plan| Vec::from_iter(plan.lists().map(|list| (list.string, list.kept)));
    let strings = [Some((0, Word::At(0))), Some((1, Word::At(2)))];
    assert_eq!(at(&plan), [(strings[0], None), (strings[1], Some(4))]);
    // A hundred bytes are thirteen words.
    assert_eq!(
        (plan.words, words(request, |list| list.path == ["o"]), words(request, |_| false)),
        (17, 17, 4)
    );
    assert_eq!(plan.block().map(|block| (block.fixed, block.strings, block.pieces_end)), Some((0, 2, None)));
}

#[test]
fn what_follows_pieces_has_no_fixed_place() {
    let source = "interface Thing {}; typedef sequence<Thing, 3> Things; typedef sequence<octet, 100> Bytes;
                  interface I { void f(in Thing t, in Things ts, in Bytes o); };";
    let (model, layout) = laid_out(source, &TernDoor);
    let plan = Plan::of(&model, &layout.methods[0].request);
    let block = plan.block().unwrap();
    assert_eq!((block.strings, block.items, block.within), (1, 1, 3));
    assert!(block.pieces_end.is_some());
    assert_eq!(plan.lists().next().unwrap().string, Some((0, Word::Behind(0))));
    assert_eq!(plan.items[0].at, Word::Behind(2));
    assert_eq!((block.items_at(), block.within_at()), (Word::Behind(2), Word::Behind(4)));
    assert_eq!(Word::Behind(2).next(), Word::Behind(3));
    assert_eq!(plan.pieces().count(), 1);
}

#[test]
fn short_lists_lie_among_the_values_and_offers_are_counted() {
    let source = "typedef sequence<octet, 8> Short; typedef sequence<octet, 8192> Data;
                  interface I { void f(in Short s); long g(@copy_on_write in Data a, @copy_on_write in Data b); };";
    let (model, layout) = laid_out(source, &TernDoor);
    let plan = Plan::of(&model, &layout.methods[0].request);
    assert_eq!(steps(&plan), [(What::Count(None), 4), (What::Elements(1, Some(0)), 8)]);
    let plan = Plan::of(&model, &layout.methods[1].request);
    let offers = plan.offers().map(|(step, most)| (step.what, most));
    assert_eq!(Vec::from_iter(offers), [(What::Offer(0, 8192), 8192), (What::Offer(1, 8192), 8192)]);
    // Behind a header there is no other kind of message.
    let (model, layout) = laid_out("interface I { void f(in string s); };", &Linux);
    let plan = Plan::of(&model, &layout.methods[0].request);
    assert_eq!((plan.memory, plan.variable[0].count), (Memory::None, Some(0)));
}

#[test]
fn a_table_has_a_part_for_each_kind_of_requests() {
    let source = "interface Thing {}; typedef sequence<octet, 500> Bytes;
                  interface I { void a(); void b(in Bytes o); void c(in Thing t); };";
    let (_, layout) = laid_out(source, &TernDoor);
    assert_eq!(Vec::from_iter(kinds(&layout)), [Kind::WORDS, Kind::LONG, Kind::ITEM]);
    let table = |kind| Vec::from_iter(places(&layout.methods, kind, 2, Some));
    let (mismatch, nothing) = (Stands::Mismatch, Stands::Nothing);
    assert_eq!(table(Kind::WORDS), [Stands::Method(0), mismatch, mismatch, nothing]);
    assert_eq!(table(Kind::LONG), [mismatch, mismatch, Stands::Method(1), nothing]);
    assert_eq!(table(Kind::ITEM), [mismatch, Stands::Method(2), mismatch, nothing]);
}
