//! Pipes between programs, and between programs, files and commands of the shell.

use crate::world::{Named, Verdict, World};
use libtest_mimic::Trial;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 4] = [
        ("what_a_program_prints_another_reads", what_a_program_prints_another_reads),
        ("programs_end_in_any_order", programs_end_in_any_order),
        ("c_programs_print_and_read_as_others", c_programs_print_and_read_as_others),
        ("mistakes_are_told", mistakes_are_told),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("pipes", format!("pipes::{name}"), verdict)))
}

fn what_a_program_prints_another_reads(world: &'static World) -> Verdict {
    world.says(&[
        ("pipe-test write 1000000 | pipe-test read", &["pipe-test: 1000000 bytes as they were written"]),
        (
            "run pipe-test write 300000 | run pipe-test copy | pipe-test copy | pipe-test read",
            &["pipe-test: 300000 bytes as they were written"],
        ),
        ("pipe-test write 0 | pipe-test read", &["pipe-test: 0 bytes as they were written"]),
        // Files, longer than what the shell keeps.
        ("pipe-test write 2000000 > /big", &[]),
        ("pipe-test read < /big", &["pipe-test: 2000000 bytes as they were written"]),
        ("pipe-test copy < /big | pipe-test read", &["pipe-test: 2000000 bytes as they were written"]),
        ("pipe-test copy < /big > /more", &[]),
        ("echo and >> /more", &[]),
        ("pipe-test read 2000000 < /more", &["pipe-test: 2000000 bytes as they were written"]),
        // Commands of the shell on either side.
        ("hello-rust | wc", &["1 lines, 3 words, 16 bytes"]),
        ("echo one two | pipe-test copy", &["one two"]),
        (
            "echo one two | pipe-test copy | pipe-test copy | grep two | pipe-test copy | wc",
            &["1 lines, 2 words, 8 bytes"],
        ),
        ("hello-rust >> /twice", &[]),
        ("hello-rust >> /twice", &[]),
        ("wc < /twice", &["2 lines, 6 words, 32 bytes"]),
        ("ls / | pipe-test copy | grep et | pipe-test copy", &["etc/"]),
        ("cat /big | pipe-test read", &["pipe-test: 2000000 bytes as they were written"]),
        ("cat /big /twice > /more", &[]),
        ("pipe-test read 2000000 < /more", &["pipe-test: 2000000 bytes as they were written"]),
        (
            "cat /nosuch /twice | pipe-test copy | wc",
            &["cat: /nosuch: not found", "2 lines, 6 words, 32 bytes"],
        ),
        ("time pipe-test write 9 | pipe-test read", &["pipe-test: 9 bytes as they were written", "real …"]),
        ("rm /big /more /twice", &[]),
    ])
}

/// The reader ends first, or the writer, or one crashes; and nothing is left behind that would hold up the next ones.
fn programs_end_in_any_order(world: &'static World) -> Verdict {
    let mut commands: Vec<(&str, &[&str])> = Vec::new();
    for _ in 0..20 {
        commands.extend::<[(&str, &[&str]); 5]>([
            (
                "pipe-test write 3000000000 | pipe-test read 100000",
                &["pipe-test: 100000 bytes as they were written"],
            ),
            (
                "pipe-test write 3000000000 | pipe-test copy | pipe-test read 5",
                &["pipe-test: 5 bytes as they were written"],
            ),
            ("pipe-test write 100000 | pipe-test spy", &["pipe-test: nothing but its own end is for a spy"]),
            (
                "pipe-test write 100000 | nosuch | pipe-test read",
                &["nosuch: no such command; \"help\" lists them"],
            ),
            ("pipe-test write 1200000 | wc", &["shell: pipe-test: more than 1024 KiB for a pipe"]),
        ]);
    }
    commands.push((
        "pipe-test write 100000 | pipe-test fault | pipe-test read",
        &[
            "pipe-test: panicked at …",
            "as it was told to",
            "    in pipe_test::fault …",
            "    by …",
            "    by …",
            "    by …",
            "    by …",
            "pipe-test: 0 bytes as they were written",
        ],
    ));
    world.says(&commands)
}

fn c_programs_print_and_read_as_others(world: &'static World) -> Verdict {
    world.says(&[
        ("echo 42 terns > /in", &[]),
        ("echo a whole line >> /in", &[]),
        ("echo x >> /in", &[]),
        ("c-test input < /in | grep reads", &["C-TEST reads"]),
        ("pipe-test copy < /in | c-test input | head 1", &["C-TEST reads"]),
        ("hello-c | pipe-test copy | wc", &["1 lines, 3 words, 13 bytes"]),
    ])
}

fn mistakes_are_told(world: &'static World) -> Verdict {
    let usage = &["shell: expected COMMAND < PATH | COMMAND > PATH"];
    world.says(&[
        ("ls | | wc", usage),
        ("| wc", usage),
        ("ls |", usage),
        ("ls > ", usage),
        ("ls > /a > /b", usage),
        ("ls < /a < /b", usage),
        ("ls | wc < /a", usage),
        ("ls > | wc", usage),
        ("pwd &", &["shell: & is for programs"]),
        ("hello-c | wc &", &["shell: & is for programs"]),
        ("crash | wc", &["shell: crash stands alone on its line"]),
        ("ls | time wc", &["shell: time stands alone on its line"]),
        ("pipe-test read < /nosuch", &["shell: /nosuch: not found"]),
        ("wc < /nosuch", &["shell: /nosuch: not found"]),
        ("hello-c > /nosuch/file", &["shell: /nosuch/file: not found"]),
        ("hello-c > /", &["shell: /: is a directory"]),
        ("nosuch | wc", &["nosuch: no such command; \"help\" lists them"]),
        ("run nosuch > /file", &["run: there is no program nosuch"]),
        ("console | wc", &["run: console is a server of the system, which starts it itself"]),
        ("pipe-test", &["usage: pipe-test write COUNT|read [COUNT]|copy|fault|spy|vanish"]),
    ])
}
