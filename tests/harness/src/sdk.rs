//! What the runtime offers Rust programs: `sdk-test` tries it; and what can be set from outside, for programs in both languages.

use crate::world::{LIMIT, Named, Verdict, World, boot, failed};
use libtest_mimic::Trial;
use xtask::guest::End;

/// Tests that `sdk-test` has, at least.
const TESTS_MIN: usize = 9;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 5] = [
        ("threads_wait_fastpath_on", |world| threads_wait(world, "on")),
        ("threads_wait_fastpath_off", |world| threads_wait(world, "off")),
        ("variables_come_from_boot_options", variables_come_from_boot_options),
        ("the_shell_sets_variables", the_shell_sets_variables),
        ("log_levels_are_set_from_outside", log_levels_are_set_from_outside),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("sdk", format!("sdk::{name}"), verdict)))
}

fn threads_wait(world: &World, variant: &str) -> Verdict {
    let (end, text) = boot(&world.machine().with(&format!("init=sdk-test fastpath={variant}")), LIMIT)?;
    let passed = text.lines().filter(|line| line.starts_with("SDK ") && line.trim_end().ends_with(" ... ok"));
    match passed.count() {
        count if count < TESTS_MIN => Err(failed("not all of its tests passed", &end, &text)),
        _ if end != End::Orderly(0) => Err(failed("the program did not end well", &end, &text)),
        _ => Ok(()),
    }
}

/// Boots a program with an environment, and holds what it prints against what it must and must not.
fn shows(world: &World, options: &str, expected: &[&str], unexpected: &[&str]) -> Verdict {
    let (end, text) = boot(&world.machine().with(options), LIMIT)?;
    let missing = expected.iter().find(|words| !text.contains(**words));
    let wrong = unexpected.iter().find(|words| text.contains(**words));
    match (missing, wrong) {
        _ if end != End::Orderly(0) => Err(failed("the program did not end well", &end, &text)),
        (Some(words), _) => Err(failed(&format!("expected {words:?}"), &end, &text)),
        (_, Some(words)) => Err(failed(&format!("did not expect {words:?}"), &end, &text)),
        _ => Ok(()),
    }
}

fn variables_come_from_boot_options(world: &'static World) -> Verdict {
    let options = "env=BIRD=tern,EMPTY=,SUM=1+1=2 args=outside init=sdk-test";
    let rust = ["variable BIRD is \"tern\"", "variable EMPTY is \"\"", "variable SUM is \"1+1=2\""];
    shows(world, options, &rust, &[])?;
    let options = "env=BIRD=tern,EMPTY= args=variables,and,words init=c-test";
    shows(world, options, &["C-TEST has BIRD=tern", "C-TEST has EMPTY=", "C-TEST has 4 words"], &[])
}

fn log_levels_are_set_from_outside(world: &'static World) -> Verdict {
    let all =
        ["ERROR: an error", "WARN: a warning", "INFO: information", "DEBUG: what helps to", "TRACE: every"];
    for (level, count) in
        [("", 3), ("env=LOG=off", 0), ("env=LOG=warn", 2), ("env=LOG=off;sdk-test=trace", 5)]
    {
        let (expected, unexpected) = all.split_at(count);
        shows(world, &format!("init=sdk-test args=outside {level}"), expected, unexpected)?;
    }
    let options = "init=sdk-test args=outside env=LOG=warn;elsewhere=debug";
    shows(world, options, &["DEBUG: what helps elsewhere"], &["DEBUG: what helps to", "INFO"])
}

/// What is set at the shell is what its programs find, until it is taken away.
fn the_shell_sets_variables(world: &'static World) -> Verdict {
    let script = "set BIRD=tern SEA=north\nset\nrun c-test variables\nset BIRD=\nset SEA=south\nrun sdk-test outside\nset =x\n";
    let reply = world.script(script.as_bytes())?;
    reply.check_code(2)?;
    for words in [
        "BIRD=tern\nSEA=north\n",
        "C-TEST has BIRD=tern",
        "C-TEST has SEA=north",
        "variable SEA is \"south\"",
    ] {
        reply.check_contains(words)?;
    }
    let is_gone = !reply.out.contains("variable BIRD") && reply.out.contains("usage: set");
    if is_gone {
        Ok(())
    } else {
        Err(reply.failed("expected BIRD to be gone, and words about the last line"))
    }
}
