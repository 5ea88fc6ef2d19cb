//! Pipes between programs, and between programs, files and commands of the shell.

use crate::world::{Named, Verdict, World};
use libtest_mimic::Trial;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 5] = [
        ("what_a_program_prints_another_reads", what_a_program_prints_another_reads),
        ("programs_end_in_any_order", programs_end_in_any_order),
        ("c_programs_print_and_read_as_others", c_programs_print_and_read_as_others),
        ("filters_do_what_they_say", filters_do_what_they_say),
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
        ("pipe-test write 0 | pipe-test stale", &["pipe-test: nothing of an earlier pipe"]),
        // Files, longer than what the shell keeps.
        ("pipe-test write 2000000 > /big", &[]),
        ("pipe-test read < /big", &["pipe-test: 2000000 bytes as they were written"]),
        ("pipe-test copy < /big | pipe-test read", &["pipe-test: 2000000 bytes as they were written"]),
        ("pipe-test copy < /big > /more", &[]),
        ("echo and >> /more", &[]),
        ("pipe-test read 2000000 < /more", &["pipe-test: 2000000 bytes as they were written"]),
        // Commands of the shell on either side.
        ("hello-rust | wc", &["      1       3      16"]),
        ("echo one two | pipe-test copy", &["one two"]),
        (
            "echo one two | pipe-test copy | pipe-test copy | grep two | pipe-test copy | wc",
            &["      1       2       8"],
        ),
        ("hello-rust >> /twice", &[]),
        ("hello-rust >> /twice", &[]),
        ("wc < /twice", &["      2       6      32"]),
        ("ls / | pipe-test copy | grep et | pipe-test copy", &["etc/"]),
        ("cat /big | pipe-test read", &["pipe-test: 2000000 bytes as they were written"]),
        ("cat /big /twice > /more", &[]),
        ("pipe-test read 2000000 < /more", &["pipe-test: 2000000 bytes as they were written"]),
        ("cat /nosuch /twice | pipe-test copy | wc", &["cat: /nosuch: not found", "      2       6      32"]),
        ("time pipe-test write 9 | pipe-test read", &["pipe-test: 9 bytes as they were written", "real …"]),
        ("rm /big /more /twice", &[]),
    ])
}

/// The reader ends first, or the writer, or one crashes; and nothing is left behind that would hold up the next ones.
fn programs_end_in_any_order(world: &'static World) -> Verdict {
    let mut commands: Vec<(&str, &[&str])> = Vec::new();
    for _ in 0..20 {
        commands.extend::<[(&str, &[&str]); 6]>([
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
            ("pipe-test write 1200000 | wc -c", &["1200000"]),
            ("pipe-test write 1200000 | pwd", &["shell: pipe-test: more than 1024 KiB for a pipe"]),
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
        ("pipe-test copy < /in | c-test input | head -n 1", &["C-TEST reads"]),
        ("hello-c | pipe-test copy | wc", &["      1       3      13"]),
    ])
}

/// Programs that read lines, of files and of pipes, from the beginning to the end of their words.
fn filters_do_what_they_say(world: &'static World) -> Verdict {
    world.says(&[
        ("echo one two > /t", &[]),
        ("echo Two three >> /t", &[]),
        ("echo two three >> /t", &[]),
        ("echo 10 >> /t", &[]),
        ("echo 9 >> /t", &[]),
        ("grep two /t", &["one two", "two three"]),
        ("grep -in ^T /t", &["2:Two three", "3:two three"]),
        ("grep -vc t /t", &["2"]),
        ("grep -F . /t", &[]),
        ("grep ^two /t /nosuch t", &["/t:two three", "grep: /nosuch: not found", "t:two three"]),
        ("grep ( /t", &["grep: (: unclosed group, at byte 1"]),
        ("grep", &["usage: grep [-Fcinv] PATTERN [PATH...]"]),
        ("grep -x y", &["usage: grep [-Fcinv] PATTERN [PATH...]"]),
        ("head -n 1 /t", &["one two"]),
        ("head -n x /t", &["usage: head [-n COUNT] [PATH...]"]),
        ("cat /t | head -n2 | wc -l", &["2"]),
        ("pipe-test write 3000000 | head -n 0", &[]),
        ("sort /t", &["10", "9", "Two three", "one two", "two three"]),
        ("sort -n t", &["Two three", "one two", "two three", "9", "10"]),
        ("sort -nr /t | head -n 1", &["10"]),
        ("cat /t /t | sort -u | wc -l", &["5"]),
        ("sort - /t < /t | uniq -c | head -n 1", &["      2 10"]),
        ("sort /t /nosuch", &["sort: /nosuch: not found"]),
        ("pipe-test write 20000000 | sort", &["sort: -: more than 16384 KiB to sort"]),
        ("uniq -d /t", &[]),
        ("uniq /t /t", &["usage: uniq [-c] [-d|-u] [PATH]"]),
        ("wc /t", &["      5       8      33"]),
        ("wc -lc /t /t", &["      5      33 /t", "      5      33 /t", "     10      66 total"]),
        ("wc -l < /t", &["5"]),
        ("wc /nosuch", &["wc: /nosuch: not found"]),
        ("wc -l /", &["wc: /: is a directory"]),
        ("cat /t | grep two | sort -r > /u", &[]),
        ("cat /u", &["two three", "one two"]),
    ])?;
    // No line is another status than a mistake, as it is elsewhere.
    world.script(b"grep nosuch /etc/motd\n")?.check_code(1)?;
    world.script(b"grep Welcome /etc/motd /nosuch\n")?.check_code(2)
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
        ("hello-c | pwd &", &["shell: & is for programs"]),
        ("crash | wc", &["shell: crash stands alone on its line"]),
        ("ls | time wc", &["shell: time stands alone on its line"]),
        ("pipe-test read < /nosuch", &["shell: /nosuch: not found"]),
        ("pwd < /nosuch", &["shell: /nosuch: not found"]),
        ("hello-c > /nosuch/file", &["shell: /nosuch/file: not found"]),
        ("hello-c > /", &["shell: /: is a directory"]),
        ("nosuch | wc", &["nosuch: no such command; \"help\" lists them"]),
        ("run nosuch > /file", &["run: there is no program nosuch"]),
        ("console | wc", &["run: console is a server of the system, which starts it itself"]),
        ("pipe-test", &["usage: pipe-test write COUNT|read [COUNT]|copy|fault|spy|vanish|stale"]),
    ])
}
