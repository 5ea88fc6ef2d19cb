//! What the runtime offers Rust programs: `sdk-test` tries it; and what can be set from outside, for programs in both languages.

use crate::world::{LIMIT, Named, Verdict, World, boot, failed};
use libtest_mimic::Trial;
use xtask::guest::End;

/// Tests that `sdk-test` has, at least.
const TESTS_MIN: usize = 10;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 6] = [
        ("threads_wait_fastpath_on", |world| threads_wait(world, "on")),
        ("threads_wait_fastpath_off", |world| threads_wait(world, "off")),
        ("variables_come_from_boot_options", variables_come_from_boot_options),
        ("the_shell_sets_variables", the_shell_sets_variables),
        ("log_levels_are_set_from_outside", log_levels_are_set_from_outside),
        ("arguments_may_be_long", arguments_may_be_long),
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

/// Number, length and sum of texts, as both programs print them.
fn sum(texts: &[String], kind: &str) -> String {
    let bytes: usize = texts.iter().map(String::len).sum();
    let all = texts.iter().flat_map(|text| text.bytes());
    let sum = all.fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{} {kind} of {bytes} bytes, sum {sum}", texts.len())
}

/// Arguments and variables of 64 KiB and more arrive in programs of both languages; of more than there may be nothing is started, and everything goes on. All memory
/// that is kept for them is given back.
fn arguments_may_be_long(world: &'static World) -> Verdict {
    const MOST: usize = 128 << 10;
    let words: Vec<String> = (0..9000u32).map(|word| format!("{:07}", word * 7919 % 9973)).collect();
    let line = words.join(" ");
    let value = words.concat();
    let short = ["one".to_string(), "two".to_string()];
    let pair = format!("BIRD={value}");
    let fits = "x".repeat(MOST - "sum ".len() - "\0".len() - pair.len());
    let one = format!("run c-test sum {line}\n");
    let script = [
        &format!("run sdk-test sum {line}\nrun c-test sum {line}\n"),
        &format!("set {pair}\nrun sdk-test sum one two\nrun c-test sum one two\n"),
        &format!(
            "run sdk-test sum {fits}\nrun sdk-test sum {fits}x\nrun sdk-test sum {}\n",
            "x".repeat(140_000)
        ),
        &format!(
            "set BIRD=\nrun sdk-test sum one two\n{one}{one}{one}mem\n{one}{one}{one}{one}mem\nexit 0\n"
        ),
    ]
    .map(String::as_str)
    .concat();
    let reply = world.script(script.as_bytes())?;
    reply.check_code(0)?;
    let pair = [pair];
    let expected = [
        format!("SDK {}", sum(&words, "words")),
        format!("C-TEST {}", sum(&words, "words")),
        format!("SDK {}", sum(&short, "words")),
        format!("SDK {}", sum(&[value], "values")),
        format!("C-TEST {}", sum(&short, "words")),
        format!("C-TEST {}", sum(&pair, "variables")),
        format!("SDK {}", sum(&[fits], "words")),
        format!("run: sdk-test: more than {MOST} bytes of arguments and variables"),
        "shell: the line is longer than 132 KiB".to_string(),
        format!("SDK {}", sum(&short, "words")),
        format!("SDK {}", sum(&[], "values")),
    ];
    let mut lines = reply.out.lines();
    if let Some(missing) = expected.iter().find(|text| !lines.any(|line| line.trim_end() == *text)) {
        return Err(reply.failed(&format!("expected {missing:?}, in this order")));
    }
    let machine: Vec<&str> = reply.out.lines().filter(|line| line.starts_with("machine (sigma0)")).collect();
    match machine[..] {
        [before, after] if before == after => Ok(()),
        _ => Err(reply.failed(&format!("expected that all memory came back: {machine:?}"))),
    }
}
