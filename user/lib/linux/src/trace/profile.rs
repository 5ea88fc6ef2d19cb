//! How often calls were made, how often they failed, and what they took: a table as `strace -c` prints it.

use crate::decode;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// Numbers of calls are below this; all others are one entry.
const NUMBERS: u64 = 512;

/// Line between the head of the table, its lines, and the sum.
const RULE: &str = "------ ----------- ----------- --------- --------- ----------------\n";

/// Calls of one number.
#[derive(Clone, Copy, Default, Debug)]
struct Count {
    calls: u64,
    errors: u64,
    nanoseconds: u64,
}

/// All calls.
#[derive(Default, Debug)]
pub struct Profile(BTreeMap<u64, Count>);

impl Profile {
    fn of(&mut self, number: u64) -> &mut Count {
        self.0.entry(number.min(NUMBERS)).or_default()
    }

    /// Time was spent to do a call, in nanoseconds.
    pub fn spend(&mut self, number: u64, nanoseconds: u64) {
        let count = self.of(number);
        count.nanoseconds = count.nanoseconds.saturating_add(nanoseconds);
    }

    /// A call has ended, or does not come back.
    pub fn count(&mut self, number: u64, has_failed: bool) {
        let count = self.of(number);
        count.calls += 1;
        count.errors += u64::from(has_failed);
    }

    /// The table, in the order of time.
    pub fn table(&self) -> String {
        let mut all = Count::default();
        let mut counts: Vec<(u64, Count)> = self.0.iter().map(|(number, count)| (*number, *count)).collect();
        for (_, count) in &counts {
            all.calls += count.calls;
            all.errors += count.errors;
            all.nanoseconds = all.nanoseconds.saturating_add(count.nanoseconds);
        }
        counts.sort_by_key(|(number, count)| (Reverse(count.nanoseconds), Reverse(count.calls), *number));
        let mut text = String::from("% time     seconds  usecs/call     calls    errors syscall\n");
        text.push_str(RULE);
        for (number, count) in counts {
            let name = match number {
                NUMBERS => String::from("others"),
                _ => decode::name_or_number(number),
            };
            text += &line(&count, all.nanoseconds, &name);
        }
        text.push_str(RULE);
        text + &line(&all, all.nanoseconds, "total")
    }
}

fn line(count: &Count, all: u64, name: &str) -> String {
    // Hundredths of a percent.
    let share = (u128::from(count.nanoseconds) * 10_000).checked_div(all.into()).unwrap_or(0);
    let microseconds = count.nanoseconds / 1000;
    let each = microseconds.checked_div(count.calls).unwrap_or(0);
    let errors = if count.errors == 0 { String::new() } else { format!("{}", count.errors) };
    let seconds = format!("{}.{:06}", microseconds / 1_000_000, microseconds % 1_000_000);
    let percent = format!("{}.{:02}", share / 100, share % 100);
    format!("{percent:>6} {seconds:>11} {each:>11} {:>9} {errors:>9} {name}\n", count.calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_as_strace_has_it() {
        let mut profile = Profile::default();
        for (number, took, has_failed) in
            [(0, 3_000, false), (0, 2_000, true), (2, 15_000, false), (9999, 0, true)]
        {
            profile.spend(number, took);
            profile.count(number, has_failed);
        }
        let wanted = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 75.00    0.000015          15         1           open
 25.00    0.000005           2         2         1 read
  0.00    0.000000           0         1         1 others
------ ----------- ----------- --------- --------- ----------------
100.00    0.000020           5         4         2 total
";
        assert_eq!(profile.table(), wanted);
        assert!(Profile::default().table().ends_with("total\n"));
    }
}
