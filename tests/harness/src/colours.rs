//! Page colours in the running system (row C14): frames of a program whose entry in the description asks for its pages' colours.
//!
//! No program sees its frames, so the machine's memory is looked at from outside.

use crate::monitor::{self, Monitor};
use crate::world::{LIMIT, Named, Scratch, Verdict, World, failed};
use libtest_mimic::{Failed, Trial};
use std::fs;
use xtask::archive::pack;
use xtask::guest::Guest;
use xtask::machine::Boot;
use xtask::paths;

/// Pages that `sdk-test hold` has, and what the first word of each is besides the page's number, as that program says.
const PAGES: usize = 64;
const TAG: u64 = 0xc010_04ed_0000_0000;

/// Bytes of a page.
const PAGE: usize = 4096;

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 1] = [("pages_have_the_colours_that_are_asked_for", pages_have_the_colours)];
    Vec::from(trials.map(|(name, verdict)| world.trial("sdk", format!("colours::{name}"), verdict)))
}

/// With the key all pages have frames of their colours; without it they have those that come.
fn pages_have_the_colours(world: &'static World) -> Verdict {
    for colours in [16, 256] {
        let frames = frames(world, &format!("colours = {colours}"))?;
        let fitting = fitting(&frames, colours);
        if fitting != PAGES {
            return Err(
                format!("{fitting} of {PAGES} pages have their colours of {colours}: {frames:x?}").into()
            );
        }
    }
    let frames = frames(world, "")?;
    match fitting(&frames, 16) {
        0..16 => Ok(()),
        fitting => {
            Err(format!("{fitting} of {PAGES} pages have their colours by chance: {frames:x?}").into())
        }
    }
}

/// How many frames have the colours of their pages.
fn fitting(frames: &[(u64, u64)], colours: u64) -> usize {
    frames.iter().filter(|(page, frame)| page % colours == frame % colours).count()
}

/// Numbers of the pages that the program holds in a system where its entry says this, and of their frames.
fn frames(world: &World, says: &str) -> Result<Vec<(u64, u64)>, Failed> {
    let text = format!("base = \"default\"\n\n[[program]]\nname = \"sdk-test\"\n{says}\n");
    let entries = world.entries_of(|files| xtask::system::of_text("systems/coloured.toml", &text, files))?;
    let scratch = Scratch::create()?;
    let archive = scratch.0.join("boot.cpio");
    paths::write(&archive, &pack(&entries))?;
    let mut machine = world.machine().with("init=sdk-test args=hold");
    machine.boot = Boot::Direct { kernel: world.system.kernel.clone(), archive: Some(archive) };
    let socket = monitor::plug_in(&mut machine, &scratch);
    let mut guest = Guest::start(&machine)?;
    guest.limit(Some(LIMIT));
    if !guest.expect(&format!("SDK {PAGES} pages are there")) {
        return Err(failed("expected that the program has its pages", &guest.finish(), &guest.text()));
    }
    let file = scratch.0.join("memory");
    let mut monitor = Monitor::connect(&socket)?;
    monitor.ask("stop")?;
    let bytes = u64::from(machine.memory_mib) << 20;
    let said = monitor.ask(&format!("pmemsave 0 {bytes:#x} \"{}\"", file.display()))?;
    let memory = fs::read(&file).map_err(|error| format!("{}: {error}\n{said}", file.display()))?;
    let mut found: Vec<(u64, u64)> = memory.chunks_exact(PAGE).zip(0..).filter_map(tagged).collect();
    found.sort_unstable();
    if found.len() == PAGES && found.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0) {
        return Ok(found);
    }
    Err(format!("expected {PAGES} pages one behind another, found {found:x?}").into())
}

/// Number of a page and of its frame, if the frame begins with a tag.
fn tagged((bytes, frame): (&[u8], u64)) -> Option<(u64, u64)> {
    let word = u64::from_le_bytes(*bytes.first_chunk()?);
    let page = word.checked_sub(TAG)?;
    (page < 1 << 32).then_some((page, frame))
}
