//! The shell as a person uses it: the line editor on terminals of several widths, the end of the input, programs in the
//! background.

use crate::person::Person;
use crate::world::{Named, Verdict, World};
use libtest_mimic::Trial;
use vt100::Screen;
use xtask::guest::End;

const PROMPT: &str = "tern> ";

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 6] = [
        ("a_tab_completes", a_tab_completes),
        ("end_of_input_is_asked_about", end_of_input_is_asked_about),
        ("end_of_a_pipe_is_the_end", end_of_a_pipe_is_the_end),
        ("ends_in_the_background_are_told", ends_in_the_background_are_told),
        ("a_wrong_status_does_not_exit", a_wrong_status_does_not_exit),
        ("a_wrapped_line_leaves_nothing_behind", a_wrapped_line_leaves_nothing_behind),
    ];
    let mut trials =
        Vec::from(trials.map(|(name, verdict)| world.trial("shell", format!("person::{name}"), verdict)));
    for columns in [20, 37, 80, 132] {
        trials.push(world.trial(
            "shell",
            format!("person::edits_a_line_on_{columns}_columns"),
            move |world| edits_a_line(world, columns),
        ));
    }
    trials
}

fn expect_end(person: Person, end: End) -> Verdict {
    let ended = person.end();
    if ended == end { Ok(()) } else { Err(format!("expected {end:?}, not {ended:?}").into()) }
}

/// Ctrl-D does not end the system by itself, and a word in between takes it back.
fn end_of_input_is_asked_about(world: &'static World) -> Verdict {
    let mut person = Person::at(world, 24, 80)?;
    let asked =
        |count| move |screen: &Screen| screen.contents().matches("Ctrl-D once more ends").count() == count;
    person.press("\x04");
    person.wait("to be asked", asked(1))?;
    person.command("echo still here", "still here\n")?;
    person.press("\x04");
    person.wait("to be asked again", asked(2))?;
    person.press("\x04");
    expect_end(person, End::Orderly(0))
}

/// Tab completes commands, programs and paths as far as they are known; when it is pressed again it lists what a word may become.
fn a_tab_completes(world: &'static World) -> Verdict {
    let mut person = Person::at(world, 24, 80)?;
    person.types("ec\t", "tern> echo")?;
    person.types("\x15cat /e\t", "tern> cat /etc/")?;
    person.types("mo\t", "tern> cat /etc/motd")?;
    person.command("", "Welcome to Tern")?;
    person.types("cd et\t", "tern> cd etc/")?;
    person.command("", "tern> cd etc/")?;
    person.types("cat m\t", "tern> cat motd")?;
    person.types("\x15mkd\t", "tern> mkdir")?;
    person.types("\x15kill con\t", "tern> kill console")?;
    person.types("\x15run http\t", "tern> run httpd")?;
    person.press("\x15help hel\t\t");
    person.wait("a list", |screen| screen.contents().contains("\nhello-c     hello-rust  help\n"))?;
    person.types("lo-r\t", "tern> help hello-rust")?;
    person.command("", "The smallest Rust program.")
}

/// Nobody is asked where nobody sits.
fn end_of_a_pipe_is_the_end(world: &'static World) -> Verdict {
    world.tern(&["run"], b"ps\n")?.check_code(0)?;
    world.tern(&["run"], b"exit 4")?.check_code(4)
}

fn ends_in_the_background_are_told(world: &'static World) -> Verdict {
    for (command, text) in [
        ("run hello-rust &", "hello-rust ended with status 0"),
        ("run crash panic &", "crash ended with status 101"),
        ("run crash fault &", ": crash crashed"),
    ] {
        let mut person = Person::at(world, 24, 80)?;
        person.press(&format!("{command}\r"));
        person.wait("its number", |screen| screen.contents().contains("\ntask "))?;
        // It is told before a prompt, not in the middle of what is typed: so there have to be prompts.
        for number in 0..1000 {
            let answer = format!("\nanswer {number}\n");
            person.press(&format!("echo {}\r", answer.trim()));
            person.wait(&answer, |screen| screen.contents().contains(&answer))?;
            if person.screen().contents().contains(text) {
                break;
            }
        }
        person.wait(text, |screen| screen.contents().contains(text))?;
    }
    Ok(())
}

fn a_wrong_status_does_not_exit(world: &'static World) -> Verdict {
    let mut person = Person::at(world, 24, 80)?;
    for wrong in ["300", "-1", "two", "1 2"] {
        person.command(&format!("exit {wrong}"), "one number from 0 to 255")?;
        person.press("\x0c");
        person.wait("an empty screen", |screen| screen.contents().trim() == PROMPT.trim())?;
    }
    person.press("exit 255\r");
    expect_end(person, End::Orderly(255))
}

/// What the screen shows of a line that is being edited: rows from the prompt's on, and the cursor's place among them.
fn shows(screen: &Screen, line: &[char], cursor: usize) -> bool {
    let columns = usize::from(screen.size().1.get());
    let text: Vec<char> = PROMPT.chars().chain(line.iter().copied()).collect();
    let (row, column) = screen.cursor_position();
    let at = PROMPT.len() + cursor;
    let Some(first) = usize::from(row).checked_sub(at / columns) else { return false };
    let rows: Vec<String> = screen.rows(0, columns as u16).collect();
    let expected = text.chunks(columns).map(|row| row.iter().collect::<String>());
    let is_shown = expected
        .enumerate()
        .all(|(place, row)| rows.get(first + place).is_some_and(|shown| shown.trim_end() == row.trim_end()));
    let rest = rows.iter().skip(first + text.len().div_ceil(columns));
    usize::from(column) == at % columns && is_shown && rest.into_iter().all(|row| row.trim().is_empty())
}

/// Random keys have the effect that they have on a list of characters, and the screen shows exactly that, wrapped at the
/// terminal's width.
fn edits_a_line(world: &World, columns: u16) -> Verdict {
    const STEPS: usize = 120;
    const LEN_MAX: usize = 150;
    let mut person = Person::at(world, 24, columns)?;
    let (mut line, mut cursor): (Vec<char>, usize) = (Vec::new(), 0);
    let mut seed = u64::from(columns);
    for step in 0..STEPS {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (choice, number) = (seed >> 60, (seed >> 33) as usize);
        let keys = match choice {
            0..8 if line.len() < LEN_MAX => {
                let word: String = format!("{:x}", number * 7919).chars().chain([' ']).collect();
                line.splice(cursor..cursor, word.chars());
                cursor += word.len();
                word
            }
            8 => {
                cursor = 0;
                "\x1b[H".into()
            }
            9 => {
                cursor = line.len();
                "\x05".into()
            }
            10 | 11 => {
                let count = number % 30;
                cursor = cursor.saturating_sub(count);
                "\x1b[D".repeat(count)
            }
            12 => {
                let count = number % 30;
                cursor = line.len().min(cursor + count);
                "\x06".repeat(count)
            }
            13 if cursor > 0 => {
                cursor -= 1;
                line.remove(cursor);
                "\x7f".into()
            }
            14 if cursor < line.len() => {
                line.remove(cursor);
                "\x1b[3~".into()
            }
            15 if number % 3 == 0 => {
                line.truncate(cursor);
                "\x0b".into()
            }
            _ => continue,
        };
        person.press(&keys);
        let what = format!("step {step}: {:?} with the cursor at {cursor}", line.iter().collect::<String>());
        person.wait(&what, |screen| shows(screen, &line, cursor))?;
    }
    Ok(())
}

/// After a line of several rows, what is printed begins below it, and the next prompt is alone.
fn a_wrapped_line_leaves_nothing_behind(world: &'static World) -> Verdict {
    // One of them ends exactly where a row does.
    for len in [29, 30, 34, 35, 69, 70, 71] {
        let mut person = Person::at(world, 24, 40)?;
        let word = "x".repeat(len - "echo ".len());
        person.press(&format!("echo {word}\x01\r"));
        let expected = format!("{PROMPT}echo {word}\n{word}\n{}", PROMPT.trim_end());
        person.wait(&expected, |screen| screen.contents().trim_end().ends_with(&expected))?;
    }
    Ok(())
}
