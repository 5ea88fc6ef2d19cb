//! The rules of the budget.

use super::Budget;
use std::vec::Vec;

/// Takes shares of a size until there are no more.
fn fill(budget: &Budget, bytes: usize) -> Vec<super::Share> {
    core::iter::from_fn(|| budget.take(bytes)).collect()
}

#[test]
fn each_process_leaves_half_to_the_next() {
    let budget = Budget::new(1024);
    let mut held = Vec::new();
    for (process, had) in [(1, 512), (2, 256), (3, 128), (4, 64)] {
        budget.begin(process, 0);
        budget.serve(process);
        held.extend(fill(&budget, 8));
        assert_eq!(budget.used_by(process), had);
    }
    // Bytes that one gives back are for all.
    drop(held);
    assert_eq!((budget.used(), budget.used_by(1)), (0, 0));
    budget.serve(3);
    assert_eq!(fill(&budget, 8).len(), 64);
}

#[test]
fn processes_of_a_user_leave_a_quarter() {
    let budget = Budget::new(4096);
    let mut held = Vec::new();
    for process in 2..40 {
        budget.begin(process, 1000);
        budget.serve(process);
        held.extend(fill(&budget, 8));
    }
    assert_eq!(budget.used(), 3072);
    budget.begin(50, 1001);
    budget.serve(50);
    held.extend(fill(&budget, 8));
    assert_eq!(budget.used_by(50), 512);
    // One who becomes another takes all of it along.
    budget.set_user(50, 1000);
    assert!(budget.take(8).is_none());
    drop(held);
    assert!(budget.0.users.borrow().is_empty());
}

#[test]
fn shares_outlive_their_process() {
    let budget = Budget::new(1000);
    budget.begin(1, 7);
    budget.serve(1);
    let mut share = budget.take(100).unwrap();
    budget.end(1);
    budget.begin(1, 8);
    assert_eq!((budget.used(), budget.used_by(1)), (100, 0));
    assert!(share.resize(300) && !share.resize(600) && share.resize(10));
    // Something that is there already is charged in any case.
    share.set(990);
    assert_eq!((budget.used(), budget.has_room(5), budget.has_room(1)), (990, true, true));
    assert!(!budget.has_room(6), "it is half of what is left");
    drop(share);
    assert_eq!(budget.used(), 0);
}

#[test]
fn descriptors_in_messages_are_divided_too() {
    let budget = Budget::new(1000);
    budget.begin(1, 0);
    budget.begin(2, 0);
    budget.serve(1);
    assert!(budget.pass(101, 100).is_none());
    let one: Vec<_> = core::iter::from_fn(|| budget.pass(64, usize::MAX)).collect();
    assert_eq!((one.len(), budget.files()), (32, 2048));
    budget.serve(2);
    let other: Vec<_> = core::iter::from_fn(|| budget.pass(64, usize::MAX)).collect();
    assert_eq!(other.len(), 16);
    drop((one, other));
    assert_eq!(budget.files(), 0);
}

#[test]
fn a_part_of_the_memory_is_for_processes() {
    let mib = 1 << 20;
    for (memory, frames) in [(24, 6144), (32, 15_360), (96, 15_360), (512, 1 << 20)] {
        let max = Budget::of_memory(memory * mib, frames);
        assert!(max > memory * mib / 5 && max < memory * mib * 7 / 8, "{memory} MiB: {max}");
    }
    assert!(Budget::of_memory(32 * mib, 15_360) > 16 * mib);
    assert!(Budget::of_memory(24 * mib, 6144) > 12 * mib);
    assert_eq!(Budget::of_memory(0, usize::MAX), 0);
}
