//! A PC with a screen: what goes out by the serial port is to be read there, too. The emulator is asked for pictures of it.

use crate::world::{LIMIT, Scratch, Verdict, World};
use embedded_graphics::image::GetPixel;
use embedded_graphics::mono_font::MonoFont;
use embedded_graphics::mono_font::ascii::FONT_9X18;
use embedded_graphics::pixelcolor::BinaryColor;
use embedded_graphics::prelude::{OriginDimensions, Point};
use libtest_mimic::{Failed, Trial};
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use xtask::guest::Guest;
use xtask::machine::{Boot, Machine};
use xtask::{Context, image, paths};

/// Firmware for UEFI.
const OVMF: &str = "/usr/share/ovmf/OVMF.fd";

/// The memory of a VGA adapter in text mode, and what it shows.
const TEXT_AT: u64 = 0xb8000;
const TEXT_COLUMNS: usize = 80;
const TEXT_ROWS: usize = 25;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    vec![
        world.trial("screen", "screen::bios_shows_characters", |world| {
            shows_the_console(world, |disc| Boot::BiosDisc(disc.to_path_buf()), Emulated::characters)
        }),
        world.trial("screen", "screen::uefi_shows_pixels", |world| {
            shows_the_console(world, uefi, Emulated::pixels)
        }),
        world.trial("screen", "screen::a_machine_without_a_serial_port_says_so", without_a_serial_port),
        world.trial("screen", "screen::a_machine_without_a_screen_does_without", |world| {
            let mut machine =
                booting(world, |disc| Boot::BiosDisc(disc.to_path_buf()), "init=shell args=script")?;
            machine.1.extra.clear();
            let mut guest = Guest::start(&machine.1)?;
            guest.limit(Some(LIMIT));
            guest.expect_begin();
            guest.send(b"exit 3\n");
            match guest.finish() {
                xtask::guest::End::Orderly(3) => Ok(()),
                end => Err(crate::world::failed("expected exit code 3", &end, &guest.text())),
            }
        }),
    ]
}

fn uefi(disc: &Path) -> Boot {
    Boot::UefiDisc { disc: disc.to_path_buf(), firmware: OVMF.into() }
}

/// A machine with a screen that boots a disc.
fn booting(world: &World, boot: impl Fn(&Path) -> Boot, options: &str) -> Result<(Scratch, Machine), Failed> {
    let scratch = Scratch::create()?;
    let disc = scratch.0.join("tern.iso");
    image::make(&world.system, options, &disc)?;
    let mut machine = Machine::booting(boot(&disc));
    let socket = format!("unix:{},server=on,wait=off", scratch.0.join("monitor").display());
    machine.extra = ["-vga", "std", "-qmp", &socket].map(String::from).into();
    Ok((scratch, machine))
}

/// The screen says where the console is, and shows what is printed there; also when it has to scroll.
fn shows_the_console(
    world: &World,
    boot: impl Fn(&Path) -> Boot,
    read: fn(&mut Emulated) -> Result<String, Failed>,
) -> Verdict {
    let (scratch, machine) = booting(world, boot, "")?;
    let mut guest = Guest::start(&machine)?;
    guest.limit(Some(LIMIT));
    if !guest.expect_begin() {
        return Err(format!("the shell did not begin\n{}", guest.text()).into());
    }
    let mut emulated = Emulated::connect(&scratch)?;
    for text in ["first serial port (COM1", "\"help\" lists the commands.", "tern>"] {
        emulated.wait(text, read)?;
    }
    guest.send(b"help exit\r");
    emulated.wait("end the shell, and with it the system", read)?;
    guest.send(b"echo a line that is looked for\r");
    emulated.wait("\na line that is looked for\n", read)?;
    for number in 0..20 {
        guest
            .send(format!("echo {number} and more: ABC xyz !\"#$%&'()*+,-./:;<=>?@[]^_`{{|}}~\r").as_bytes());
    }
    emulated.wait("\n19 and more: ABC xyz !\"#$%&'()*+,-./:;<=>?@[]^_`{|}~\n", read)
}

/// Nobody can type there, and the system does not take what is not there for endless input.
fn without_a_serial_port(world: &'static World) -> Verdict {
    let (scratch, machine) = booting(world, |disc| Boot::BiosDisc(disc.to_path_buf()), "")?;
    let whole = machine.command()?;
    let mut command = Command::new(whole.get_program());
    let mut arguments = whole.get_args().peekable();
    while let Some(argument) = arguments.next() {
        if argument == "-serial" {
            arguments.next();
        } else {
            command.arg(argument);
        }
    }
    let mut guest = Guest::start_command(command)?;
    guest.limit(Some(LIMIT));
    let mut emulated = Emulated::connect(&scratch)?;
    emulated.wait("which this machine does not have", Emulated::characters)?;
    emulated.wait("tern>", Emulated::characters)
}

/// The emulator's own console.
struct Emulated {
    requests: UnixStream,
    answers: BufReader<UnixStream>,
    directory: PathBuf,
}

impl Emulated {
    fn connect(scratch: &Scratch) -> Result<Emulated, Failed> {
        let path = scratch.0.join("monitor");
        let deadline = Instant::now() + LIMIT;
        let requests = loop {
            match UnixStream::connect(&path) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > deadline => return Err(format!("no monitor: {error}").into()),
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        };
        let answers = BufReader::new(requests.try_clone().context(|| "use a socket twice".into())?);
        let mut emulated = Emulated { requests, answers, directory: scratch.0.clone() };
        emulated.ask("qmp_capabilities", "")?;
        Ok(emulated)
    }

    /// Carries out a command that writes a file; returns what is in it.
    fn file(&mut self, command: &str, arguments: &str) -> Result<Vec<u8>, Failed> {
        let path = self.directory.join("picture");
        let comma = if arguments.is_empty() { "" } else { ", " };
        self.ask(command, &format!("{arguments}{comma}\"filename\": \"{}\"", path.display()))?;
        Ok(paths::read(&path)?)
    }

    fn ask(&mut self, command: &str, arguments: &str) -> Verdict {
        let request = format!("{{\"execute\": \"{command}\", \"arguments\": {{{arguments}}}}}\n");
        self.requests.write_all(request.as_bytes()).context(|| "ask the emulator".into())?;
        loop {
            let mut line = String::new();
            self.answers.read_line(&mut line).context(|| "hear the emulator".into())?;
            if line.contains("\"return\"") {
                return Ok(());
            }
            if line.is_empty() || line.contains("\"error\"") {
                return Err(format!("the emulator refuses {command}: {line}").into());
            }
        }
    }

    /// Looks at the screen again and again until it shows a text.
    fn wait(&mut self, text: &str, read: fn(&mut Emulated) -> Result<String, Failed>) -> Verdict {
        let deadline = Instant::now() + LIMIT;
        loop {
            let shown = read(self)?;
            if shown.contains(text) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("expected {text:?} on the screen, which shows\n{shown}").into());
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// The text of an adapter in text mode, once the picture agrees with it: something is lit where there is a character.
    fn characters(&mut self) -> Result<String, Failed> {
        let len = 2 * TEXT_COLUMNS * TEXT_ROWS;
        let memory = self.file("pmemsave", &format!("\"val\": {TEXT_AT}, \"size\": {len}"))?;
        let picture = Picture::read(&fs::read(self.screendump()?).unwrap_or_default())?;
        let (width, height) = (picture.width / TEXT_COLUMNS, picture.height / TEXT_ROWS);
        let mut differ = 0;
        let cells = memory.chunks_exact(2).enumerate().map(|(at, cell)| {
            let (left, top) = (at % TEXT_COLUMNS * width, at / TEXT_COLUMNS * height);
            let is_lit = (0..width).any(|x| (0..height).any(|y| picture.is_lit(left + x, top + y)));
            let is_shown = cell[0] > b' ' || cell[1] != 7;
            differ += usize::from(is_lit != is_shown);
            char::from(cell[0])
        });
        let cells: Vec<char> = cells.collect();
        // The adapter has a cursor of its own, and the picture is taken a little later than the memory.
        if differ > 1 { Ok(String::new()) } else { Ok(lines(&cells, TEXT_COLUMNS)) }
    }

    /// The text that pixels show, as somebody reads it who knows the font.
    fn pixels(&mut self) -> Result<String, Failed> {
        let picture = Picture::read(&fs::read(self.screendump()?).unwrap_or_default())?;
        let (width, height) = (FONT.character_size.width as usize, FONT.character_size.height as usize);
        let known: HashMap<Vec<bool>, char> =
            (' '..='~').rev().map(|character| (glyph(character), character)).collect();
        let (columns, rows) = (picture.width / width, picture.height / height);
        let cells: Vec<char> = (0..rows * columns)
            .map(|at| {
                let (left, top) = (at % columns * width, at / columns * height);
                let cell: Vec<bool> = (0..width * height)
                    .map(|at| picture.is_lit(left + at % width, top + at / width))
                    .collect();
                known.get(&cell).copied().unwrap_or('\u{fffd}')
            })
            .collect();
        Ok(lines(&cells, columns))
    }

    fn screendump(&mut self) -> Result<PathBuf, Failed> {
        self.file("screendump", "")?;
        Ok(self.directory.join("picture"))
    }
}

fn lines(cells: &[char], columns: usize) -> String {
    let rows = cells.chunks(columns).map(|row| row.iter().collect::<String>());
    rows.map(|row| format!("{}\n", row.trim_end())).collect()
}

const FONT: MonoFont = FONT_9X18;

/// The pixels of a character, row by row.
fn glyph(character: char) -> Vec<bool> {
    let (width, height) = (FONT.character_size.width, FONT.character_size.height);
    let per_row = FONT.image.size().width / width;
    let index = FONT.glyph_mapping.index(character) as u32;
    let (left, top) = (index % per_row * width, index / per_row * height);
    (0..width * height)
        .map(|at| {
            let point = Point::new((left + at % width) as i32, (top + at / width) as i32);
            FONT.image.pixel(point) == Some(BinaryColor::On)
        })
        .collect()
}

/// A picture in the emulator's format: "P6", width, height, 255, then three bytes for each pixel.
struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Picture {
    fn read(bytes: &[u8]) -> Result<Picture, Failed> {
        let mut words = bytes.splitn(4, |byte| byte.is_ascii_whitespace());
        let mut number = |what: &str| -> Result<usize, Failed> {
            let word = words.next().and_then(|word| std::str::from_utf8(word).ok());
            let word = word.ok_or_else(|| format!("a picture without {what}"))?;
            word.trim_start_matches('P').parse().map_err(|_| format!("a picture with {what} {word:?}").into())
        };
        let (_, width, height) = (number("a kind")?, number("a width")?, number("a height")?);
        let rest = words.next().and_then(|rest| rest.splitn(2, |byte| byte.is_ascii_whitespace()).nth(1));
        let pixels = rest.unwrap_or_default().to_vec();
        if width == 0 || height == 0 || pixels.len() != 3 * width * height {
            return Err(format!("a picture of {width} times {height} with {} bytes", pixels.len()).into());
        }
        Ok(Picture { width, height, pixels })
    }

    fn is_lit(&self, x: usize, y: usize) -> bool {
        let at = 3 * (y * self.width + x);
        self.pixels[at..at + 3].iter().any(|&part| part > 0x40)
    }
}
