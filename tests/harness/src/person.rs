//! A person at the shell: a terminal of some size that shows what the guest sends, and answers when it is asked.

use crate::world::{LIMIT, World};
use libtest_mimic::Failed;
use std::num::NonZeroU16;
use vt100::{Callbacks, Parser, Screen};
use xtask::console::Event;
use xtask::guest::{End, Guest};

/// The terminal and what it is connected with.
pub struct Person {
    guest: Guest,
    terminal: Parser<Answers>,
}

/// What the terminal sends by itself.
#[derive(Default)]
struct Answers(Vec<u8>);

impl Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        screen: &mut Screen,
        _: Option<u8>,
        _: Option<u8>,
        words: &[&[u16]],
        last: char,
    ) {
        if last == 'n' && words == [[6]] {
            let (row, column) = screen.cursor_position();
            // A cursor behind the last column stands on it.
            let column = column.min(screen.size().1.get() - 1);
            self.0.extend(format!("\x1b[{};{}R", row + 1, column + 1).bytes());
        }
    }
}

impl Person {
    /// Switches the usual machine on, and waits for the shell's prompt.
    pub fn at(world: &World, rows: u16, columns: u16) -> Result<Person, Failed> {
        let mut guest = Guest::start(&world.machine())?;
        guest.limit(Some(LIMIT));
        let size = |number| NonZeroU16::new(number).ok_or("a terminal has rows and columns");
        let terminal = Parser::new_with_callbacks(size(rows)?, size(columns)?, 0, Answers::default());
        let mut person = Person { guest, terminal };
        person.wait("a prompt", |screen| row_of_cursor(screen) == "tern>")?;
        Ok(person)
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
            let answers = std::mem::take(&mut self.terminal.callbacks_mut().0);
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
        self.press(&format!("{line}\r"));
        self.wait(text, |screen| screen.contents().contains(text) && row_of_cursor(screen) == "tern>")
    }

    /// Waits for the end of the machine.
    pub fn end(mut self) -> End {
        self.guest.finish()
    }
}

fn row_of_cursor(screen: &Screen) -> String {
    let (row, _) = screen.cursor_position();
    let width = screen.size().1.get();
    screen.rows(0, width).nth(row.into()).unwrap_or_default().trim_end().to_string()
}
