//! The order of the queue: long trials come first, so that short ones are left for its end, where a processor would wait for the last long one.
//!
//! How long each has taken is in a file ([`TIMES`], the longest first), also when the tests are ended before all were made, by which [`LONG`] can be brought up to date. The order itself is the same in each run.

use crate::world::Verdict;
use libtest_mimic::Trial;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use xtask::paths;

/// Beginnings of the names of trials that take more than a quarter of a minute, with the large counts or without, those of the longest first.
const LONG: [&str; 38] = [
    "sandboxes::random_calls_harm_nobody_else",
    "linux::classes_of_stress_ng_end_well",
    "fastpath-off::suite_untimed",
    "fastpath-on::suite_untimed",
    "restarts::what_was_acknowledged",
    "checked-off::suite_checked",
    "checked-on::suite_checked",
    "power_cuts::what_was_acknowledged_survives",
    "random::on_",
    "databases::sqlite_keeps_what_it_committed",
    "every_word_is_a_name_in_rust",
    "what_is_made_for_kernels_compiles_without_a_warning",
    "what_is_made_of_other_peoples_files_compiles_without_a_warning",
    "complete_stubs_are_as_many_as_the_table_says",
    "network::a_bad_wire_leaves_nothing",
    "debian::programs_print_what_they_print_on_linux",
    "walk::random_system_calls_keep_every_invariant_on_both_paths",
    "databases::",
    "leaks::the_suite",
    "tests::a_device_that_lies",
    "network::a_thousand_connections_are_there_at_once",
    "guides::",
    "bench::",
    "every_word_is_a_name_in_c",
    "translations::no_translation_outlives_its_page",
    "spaces::kernel_and_model_agree",
    "prefixes::",
    "meanwhile::nothing_that_changes_meanwhile_does_harm",
    "boot::bochs_where_tags_change_hands",
    "hostile_files_end_within_limits",
    "watches::ram_and_inotify_agree",
    "what_a_call_leaves_has_a_value",
    "fastpath-off::suite_timed",
    "fastpath-on::suite_timed",
    "a_package_is_built_with_stubs",
    "web::files_are_served_whoever_is_killed",
    "linux::busybox_prints_what_it_prints_on_linux",
    "mutated_files_end_without_a_panic",
];

/// Name of the file with times, in the directory for what the tool makes.
const TIMES: &str = "trials.tsv";

/// Least time of a trial after which all times are written down.
const WRITTEN_FROM: Duration = Duration::from_secs(1);

/// Times of trials that are over.
static TOOK: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// A trial of one kind, whose time is noted.
pub fn trial(
    kind: &str,
    name: impl Into<String>,
    verdict: impl FnOnce() -> Verdict + Send + 'static,
) -> Trial {
    let name = name.into();
    let own = name.clone();
    let timed = move || {
        let begin = Instant::now();
        let verdict = verdict();
        note(begin.elapsed(), own);
        verdict
    };
    Trial::test(name, timed).with_kind(kind)
}

/// Puts long trials first. All others stay in the order that they have.
pub fn sort(trials: &mut [Trial]) {
    let place = |trial: &Trial| LONG.iter().position(|long| trial.name().starts_with(long));
    trials.sort_by_key(|trial| place(trial).unwrap_or(LONG.len()));
}

/// A trial that fails if one of the long trials has another name by now.
pub fn names_are_those_of_trials(trials: &[Trial]) -> Trial {
    let is_name = |long: &&&str| trials.iter().any(|trial| trial.name().starts_with(**long));
    let gone: Vec<&str> = LONG.iter().filter(|long| !is_name(long)).copied().collect();
    trial("tools", "order::names_are_those_of_trials", move || match gone.is_empty() {
        true => Ok(()),
        false => Err(format!("no trial has a name that begins so: {gone:?}").into()),
    })
}

/// Notes how long a trial has taken, and writes all times down if that was long.
fn note(time: Duration, name: String) {
    let mut took = TOOK.lock().unwrap_or_else(PoisonError::into_inner);
    took.push((time, name));
    if time >= WRITTEN_FROM {
        // The times are of use, and no reason for a trial to fail.
        let _ = write(&mut took);
    }
}

/// Writes down how many milliseconds each trial has taken.
pub fn write_times() -> xtask::Result<()> {
    write(&mut TOOK.lock().unwrap_or_else(PoisonError::into_inner))
}

fn write(took: &mut [(Duration, String)]) -> xtask::Result<()> {
    took.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    let lines = took.iter().map(|(time, name)| format!("{}\t{name}\n", time.as_millis()));
    paths::write(&paths::out()?.join(TIMES), lines.collect::<String>().as_bytes())
}
