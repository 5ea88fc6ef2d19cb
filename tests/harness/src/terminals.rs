//! Shells of Linux, and programs that draw on the screen, as a person at a terminal uses them.

use crate::debian::bring;
use crate::files::check_disk;
use crate::linux::Root;
use crate::person::{BUSYBOX as SH, Person};
use crate::world::{Named, Verdict, World};
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use vt100::Screen;
use xtask::guest::End;
use xtask::paths;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 5] = [
        ("a_session_is_that_of_the_guide", a_session_is_that_of_the_guide),
        ("jobs_of_bash_are_stopped_and_go_on", jobs_of_bash_are_stopped_and_go_on),
        ("lines_are_edited_and_found_again", lines_are_edited_and_found_again),
        ("programs_draw_on_the_screen", programs_draw_on_the_screen),
        ("a_window_has_the_size_of_the_terminal", a_window_has_the_size_of_the_terminal),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("linux", format!("terminals::{name}"), verdict)))
}

/// Prompt of bash.
const BASH: &str = "bash-static-5.2#";

const UP: &str = "\x1b[A";
const LEFT: &str = "\x1b[D";

/// A person at a shell of Linux, and the disk.
fn at(world: &World, root: &Root, shell: &str, prompt: &'static str) -> Result<(Person, String), Failed> {
    let disk = root.disk()?;
    Ok((Person::at_linux(world, &disk, &[shell], (40, 80), prompt)?, disk))
}

/// Ends the shell with this status.
fn leave(mut person: Person, disk: &str, status: u8) -> Verdict {
    person.press(&format!("exit {status}\r"));
    match person.end() {
        End::Orderly(code) if code == status => check_disk(disk),
        end => Err(format!("expected status {status}, not {end:?}").into()),
    }
}

/// Waits for text on the screen.
fn shows(person: &mut Person, text: &str) -> Verdict {
    person.wait(text, |screen| screen.contents().contains(text))
}

/// All that stands on the screen, without blanks at the ends of lines.
fn text_of(screen: &Screen) -> String {
    let lines: Vec<String> = screen.contents().lines().map(|line| line.trim_end().to_string()).collect();
    lines.join("\n").trim().to_string()
}

/// Presses keys again and again, and waits each time until all that stands on the screen ends so.
fn play(person: &mut Person, steps: &[(&str, &str)]) -> Verdict {
    for (keys, end) in steps {
        person.press(keys);
        person.wait(end, |screen| text_of(screen).ends_with(end))?;
    }
    Ok(())
}

/// Keys of the session of the guide, and how the screen ends then. A shell that prints edits no line any more, so what is typed then is for the program. One that repeats a line
/// has begun, and is in front.
const SESSION: [(&str, &str); 22] = [
    ("stty size\r", "\n40 80\n/ #"),
    ("seq 1 1000 | grep 7 | wc -l\r", "\n271\n/ #"),
    ("cat > /tmp/poem <<END\r", "<<END\n>"),
    ("a line\r", "> a line\n>"),
    ("$((6 * 7)) lines\r", " lines\n>"),
    ("END\r", "> END\n/ #"),
    ("find /tmp -type f | xargs grep -n line\r", "\n1:a line\n2:42 lines\n/ #"),
    ("echo Speak; cat\r", "\nSpeak"),
    ("who is there?\r", "\nwho is there?\nwho is there?"),
    ("\x03", "^C\n/ #"),
    ("echo $?\r", "\n130\n/ #"),
    ("echo Speak; cat\r", "\nSpeak"),
    ("still here\r", "\nstill here\nstill here"),
    ("\x1a", "Stopped                    cat\n/ #"),
    ("sh -c 'echo begun; exec sleep 1000'\r", "\nbegun"),
    ("\x1a", "exec sleep 1000\"\n/ #"),
    ("bg\r", "\n[2] sh -c \"echo begun; exec sleep 1000\"\n/ #"),
    ("jobs\r", "Running                    sh -c \"echo begun; exec sleep 1000\"\n/ #"),
    ("fg %1\r", "# fg %1\ncat"),
    ("and again\r", "\nand again\nand again"),
    ("\x03", "^C\n/ #"),
    ("uname -sm\r", "\nLinux x86_64\n/ #"),
];

/// Heading of the section of the guide that shows the session.
const SECTION: &str = "\n## A session\n";

/// The session that the guide shows.
fn session_of_the_guide() -> Result<String, Failed> {
    let guide = fs::read_to_string(paths::root().join("docs/guide/linux.md"))?;
    let section = guide.split_once(SECTION).ok_or("the guide has no session")?.1;
    let block = section.split("```").nth(1).and_then(|block| block.split_once('\n'));
    Ok(block.ok_or("the section has no block")?.1.trim().to_string())
}

/// Busybox's shell: pipes, a here-document, Ctrl-C, Ctrl-Z, `jobs`, `bg` and `fg`. All that is on the screen is in the guide.
fn a_session_is_that_of_the_guide(world: &'static World) -> Verdict {
    let root = Root::new()?;
    let (mut person, disk) = at(world, &root, "sh", SH)?;
    play(&mut person, &SESSION)?;
    let (shown, wanted) = (text_of(person.screen()), session_of_the_guide()?);
    leave(person, &disk, 7)?;
    match shown.strip_suffix(SH).map(str::trim_end) {
        Some(shown) if shown == wanted => Ok(()),
        _ => Err(format!("the guide shows\n{wanted}\n--- and the screen\n{shown}").into()),
    }
}

/// Bash with jobs, a here-document, and programs that are joined.
fn jobs_of_bash_are_stopped_and_go_on(world: &'static World) -> Verdict {
    let root = Root::new()?;
    let (mut person, disk) = at(world, &root, "bash-static", BASH)?;
    let steps = [
        ("stty size\r", "\n40 80\nbash-static-5.2#"),
        ("seq 1 1000 | grep 7 | wc -l\r", "\n271\nbash-static-5.2#"),
        ("cat <<END | tac\r", "tac\n>"),
        ("a line\r", "> a line\n>"),
        ("$((6 * 7)) lines\r", " lines\n>"),
        ("END\r", "\n42 lines\na line\nbash-static-5.2#"),
        ("echo Speak; cat\r", "\nSpeak"),
        ("who is there?\r", "\nwho is there?\nwho is there?"),
        ("\x03", "^C\nbash-static-5.2#"),
        ("echo $?\r", "\n130\nbash-static-5.2#"),
        ("echo Speak; cat\r", "\nSpeak"),
        ("still here\r", "\nstill here\nstill here"),
        ("\x1a", "^Z\n[1]+  Stopped                 cat\nbash-static-5.2#"),
        ("sh -c 'echo begun; exec sleep 1000'\r", "\nbegun"),
        ("\x1a", "[2]+  Stopped                 sh -c 'echo begun; exec sleep 1000'\nbash-static-5.2#"),
        ("bg\r", "\n[2]+ sh -c 'echo begun; exec sleep 1000' &\nbash-static-5.2#"),
        (
            "jobs\r",
            "\n[1]+  Stopped                 cat\n\
             [2]-  Running                 sh -c 'echo begun; exec sleep 1000' &\nbash-static-5.2#",
        ),
        ("fg %1\r", "# fg %1\ncat"),
        ("and again\r", "\nand again\nand again"),
        ("\x04", "\nand again\nand again\nbash-static-5.2#"),
        ("kill %2; wait %2; echo $?\r", "143\nbash-static-5.2#"),
    ];
    play(&mut person, &steps)?;
    leave(person, &disk, 3)
}

/// Both shells edit lines, complete names, and know what was typed before.
fn lines_are_edited_and_found_again(world: &'static World) -> Verdict {
    let root = Root::new()?;
    for (shell, prompt) in [("sh", SH), ("bash-static", BASH)] {
        let (mut person, disk) = at(world, &root, shell, prompt)?;
        person.types(&format!("echo helo{LEFT}l"), &format!("{prompt} echo hello"))?;
        person.command("", "\nhello\n")?;
        // Ctrl-W takes a word away, Ctrl-A goes to the beginning, Ctrl-K takes the rest.
        person.types("echo one two\x17three", &format!("{prompt} echo one three"))?;
        person.types("\x01seq 3; \x0b", &format!("{prompt} seq 3;"))?;
        person.command("", "\n1\n2\n3\n")?;
        person.types(&format!("{UP}{UP}"), &format!("{prompt} echo hello"))?;
        person.types("\x15cat /lists/ba\t", &format!("{prompt} cat /lists/bash.txt"))?;
        person.command(" | head -n 1 | cut -c 1-19", "\n# Command lines for\n")?;
        // Debian's busybox does not look for what was typed.
        if shell != "sh" {
            person.types("\x12hello", "(reverse-i-search)`hello': echo hello")?;
            person.press("\r");
            person.wait("hello again", |screen| text_of(screen).ends_with(&format!("\nhello\n{prompt}")))?;
        }
        leave(person, &disk, 5)?;
    }
    Ok(())
}

/// An editor, two pagers and a list of processes use the whole screen, and leave it.
fn programs_draw_on_the_screen(world: &'static World) -> Verdict {
    let root = Root::new()?;
    bring(&root.folder(), Path::new("/usr/bin/less"), &mut BTreeSet::new())?;
    let description = root.folder().join("lib/terminfo/x");
    fs::create_dir_all(&description)?;
    fs::copy("/lib/terminfo/x/xterm", description.join("xterm"))?;
    let (mut person, disk) = at(world, &root, "sh", SH)?;
    person.press("vi /tmp/text\r");
    shows(&mut person, "\n~\n~\n~\n")?;
    person.press("ihello world");
    person.wait("text", |screen| text_of(screen).starts_with("hello world\n~\n"))?;
    person.press("\x1b");
    person.wait("no insertion", |screen| last_row(screen).starts_with("- /tmp/text [Modified]"))?;
    person.press("yyp");
    person.wait("a second line", |screen| text_of(screen).starts_with("hello world\nhello world\n~\n"))?;
    person.press(":wq\r");
    wait_for_prompt(&mut person)?;
    person.command("wc /tmp/text", "2         4        24 /tmp/text\n")?;
    person.command("seq 1 200 > /tmp/numbers", SH)?;
    for pager in ["less", "/usr/bin/less"] {
        person.press(&format!("clear; {pager} /tmp/numbers\r"));
        person.wait("a page", |screen| text_of(screen).starts_with("1\n2\n3\n4\n"))?;
        person.press(" ");
        person.wait("the second page", |screen| text_of(screen).starts_with("40\n41\n42\n"))?;
        person.press("G");
        // One of the two shows a line behind the end, too.
        person.wait("the last page", |screen| text_of(screen).contains("\n198\n199\n200\n"))?;
        person.press("q");
        wait_for_prompt(&mut person)?;
    }
    person.press("clear; top\r");
    person.wait("processes", |screen| {
        let text = text_of(screen);
        text.starts_with("Mem: ") && text.contains("\nCPU: ") && text.contains(" top\n")
    })?;
    person.press("q");
    wait_for_prompt(&mut person)?;
    leave(person, &disk, 0)
}

/// Waits until a program has left the screen.
fn wait_for_prompt(person: &mut Person) -> Verdict {
    person.wait("the prompt", |screen| text_of(screen).lines().last() == Some(SH))
}

fn last_row(screen: &Screen) -> String {
    screen.rows(0, screen.size().1.get()).last().unwrap_or_default().trim_end().to_string()
}

/// The terminal says its size when the program begins. Later somebody has to say it, and programs hear of that.
fn a_window_has_the_size_of_the_terminal(world: &'static World) -> Verdict {
    let root = Root::new()?;
    let (mut person, disk) = at(world, &root, "sh", SH)?;
    person.command("stty size", "\n40 80\n")?;
    person.command("stty rows 30 cols 100; stty size", "\n30 100\n")?;
    let script = "trap 'echo told' WINCH; stty rows 25; sleep 0.1; stty size";
    person.command(&format!("sh -c \"{script}\""), "\ntold\n25 100\n")?;
    leave(person, &disk, 0)
}
