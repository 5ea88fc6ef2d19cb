//! A person at a terminal of some size, which shows what the guest sends, and answers when it is asked: at the shell, or at a program of Linux.

use crate::world::{LIMIT, World};
use libtest_mimic::Failed;
use std::num::NonZeroU16;
use std::path::Path;
use vt100::{Callbacks, Parser, Screen};
use xtask::console::Event;
use xtask::guest::{End, Guest};
use xtask::machine::Machine;
use xtask::{linux, peripherals};

/// Prompt of Tern's shell.
const PROMPT: &str = "tern>";

/// Prompt of busybox's shell in the root. Behind each it asks where the cursor is, and loses keys that come together with the answer, here as on Linux; without an answer it takes the cursor
/// for being behind the prompt. So it gets none.
pub const BUSYBOX: &str = "/ #";

/// The terminal and what it is connected with.
pub struct Person {
    guest: Guest,
    terminal: Parser<Answers>,
    /// Text in front of a command.
    prompt: &'static str,
}

/// What the terminal sends by itself.
struct Answers {
    bytes: Vec<u8>,
    /// Questions that are still answered.
    left: usize,
}

impl Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        screen: &mut Screen,
        _: Option<u8>,
        _: Option<u8>,
        words: &[&[u16]],
        last: char,
    ) {
        if last == 'n' && words == [[6]] && self.left > 0 {
            self.left -= 1;
            let (row, column) = screen.cursor_position();
            // A cursor behind the last column stands on it.
            let column = column.min(screen.size().1.get() - 1);
            self.bytes.extend(format!("\x1b[{};{}R", row + 1, column + 1).bytes());
        }
    }
}

impl Person {
    /// Switches the usual machine on, and waits for the shell's prompt.
    pub fn at(world: &World, rows: u16, columns: u16) -> Result<Person, Failed> {
        let mut person = Person::beside(&world.machine(), rows, columns, PROMPT)?;
        person.wait_for_prompt()?;
        Ok(person)
    }

    /// Starts a program of Linux on a machine with a disk, as `./tern run --linux` does for somebody at a terminal, and waits for its prompt. What the machine says before is not on the screen.
    pub fn at_linux(
        world: &World,
        disk: &str,
        words: &[&str],
        (rows, columns): (u16, u16),
        prompt: &'static str,
    ) -> Result<Person, Failed> {
        let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
        let mut machine = world.machine().with(&linux::boot_options(&words, &[linux::TERMINAL], "")?);
        machine.disk = Some(peripherals::disk(Path::new(disk))?);
        let mut person = Person::beside(&machine, rows, columns, prompt)?;
        if !person.guest.expect_begin() {
            return Err(format!("no program has begun\n{}", person.guest.text()).into());
        }
        person.wait_for_prompt()?;
        Ok(person)
    }

    fn beside(machine: &Machine, rows: u16, columns: u16, prompt: &'static str) -> Result<Person, Failed> {
        let mut guest = Guest::start(machine)?;
        guest.limit(Some(LIMIT));
        // The first question is that of the program `linux`.
        let answers = Answers { bytes: Vec::new(), left: if prompt == BUSYBOX { 1 } else { usize::MAX } };
        let terminal = Parser::new_with_callbacks(size(rows)?, size(columns)?, 0, answers);
        Ok(Person { guest, terminal, prompt })
    }

    fn wait_for_prompt(&mut self) -> Result<(), Failed> {
        let prompt = self.prompt;
        self.wait("a prompt", |screen| row_of_cursor(screen) == prompt)
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.guest.send(keys.as_bytes());
    }

    /// Presses keys, and waits until the row of the cursor is that.
    pub fn types(&mut self, keys: &str, row: &str) -> Result<(), Failed> {
        self.press(keys);
        self.wait(row, |screen| row_of_cursor(screen) == row)
    }

    /// Looks at the screen until it is as it should be; `what` that is, is told if it never happens.
    pub fn wait(&mut self, what: &str, is_so: impl Fn(&Screen) -> bool) -> Result<(), Failed> {
        while !is_so(self.terminal.screen()) {
            match self.guest.next_event() {
                Some(Event::Text(bytes)) => self.terminal.process(&bytes),
                Some(_) => {}
                None => {
                    let screen = self.terminal.screen();
                    let (contents, at) = (screen.contents(), screen.cursor_position());
                    return Err(
                        format!("expected {what}\n--- the screen, cursor at {at:?}\n{contents}").into()
                    );
                }
            }
            let answers = std::mem::take(&mut self.terminal.callbacks_mut().bytes);
            self.guest.send(&answers);
        }
        Ok(())
    }

    /// What is on the screen now.
    pub fn screen(&self) -> &Screen {
        self.terminal.screen()
    }

    /// Types a command, and waits for the next prompt behind an answer that holds this text.
    pub fn command(&mut self, line: &str, text: &str) -> Result<(), Failed> {
        let prompt = self.prompt;
        self.press(&format!("{line}\r"));
        self.wait(text, |screen| screen.contents().contains(text) && row_of_cursor(screen) == prompt)
    }

    /// Waits for the end of the machine.
    pub fn end(mut self) -> End {
        self.guest.finish()
    }
}

fn size(number: u16) -> Result<NonZeroU16, Failed> {
    NonZeroU16::new(number).ok_or_else(|| "a terminal has rows and columns".into())
}

fn row_of_cursor(screen: &Screen) -> String {
    let (row, _) = screen.cursor_position();
    let width = screen.size().1.get();
    screen.rows(0, width).nth(row.into()).unwrap_or_default().trim_end().to_string()
}
