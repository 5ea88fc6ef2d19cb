//! Parts of a screen: cells of a VGA adapter in text mode, or pixels that the firmware's framebuffer shows.

use crate::screen::INVERSE;
use alloc::vec::Vec;
use embedded_graphics::image::GetPixel;
use embedded_graphics::mono_font::MonoFont;
use embedded_graphics::mono_font::ascii::FONT_9X18;
use embedded_graphics::pixelcolor::BinaryColor;
use embedded_graphics::prelude::{OriginDimensions, Point};
use rt::api::sigma0::{self, Screen, ScreenKind};
use rt::device::DeviceMemory;

/// Characters of the font that are drawn: those of ASCII.
const CHARACTERS: u8 = 128;

/// Light grey on black, in both orders, as the adapter's attributes have it.
const ATTRIBUTE: u16 = 0x0700;
const ATTRIBUTE_INVERSE: u16 = 0x7000;

/// Brightness of the three colours of text.
const LIGHT: u32 = 0xc0;

const FONT: MonoFont = FONT_9X18;

/// A place to draw characters.
pub struct Display {
    memory: DeviceMemory,
    screen: Screen,
    /// For pixels: each character's rows, from the leftmost pixel, which is bit 0, on.
    glyphs: Vec<u16>,
}

impl Display {
    /// The machine's screen, if it has one that can be drawn on.
    pub fn find() -> Option<Display> {
        let screen = sigma0::screen(rt::home()).ok()?;
        let memory = DeviceMemory::map(sigma0::screen_memory(&screen)?).ok()?;
        let glyphs = if screen.kind == ScreenKind::PIXELS { glyphs() } else { Vec::new() };
        let display = Display { memory, screen, glyphs };
        (display.columns() > 1 && display.rows() > 1).then_some(display)
    }

    /// Characters in a row.
    pub fn columns(&self) -> usize {
        let width = self.screen.width as usize;
        if self.is_text() { width } else { width / FONT.character_size.width as usize }
    }

    /// Rows of characters.
    pub fn rows(&self) -> usize {
        let height = self.screen.height as usize;
        if self.is_text() { height } else { height / FONT.character_size.height as usize }
    }

    fn is_text(&self) -> bool {
        self.screen.kind == ScreenKind::TEXT
    }

    /// Draws a character, with its colours exchanged if [`INVERSE`] is set.
    pub fn draw(&mut self, row: usize, column: usize, cell: u8) {
        let (character, is_inverse) = (cell & !INVERSE, cell & INVERSE != 0);
        let start = self.offset();
        let pitch = self.screen.pitch as usize;
        if self.is_text() {
            let attribute = if is_inverse { ATTRIBUTE_INVERSE } else { ATTRIBUTE };
            self.memory.write_u16(start + row * pitch + column * 2, attribute | u16::from(character));
            return;
        }
        let (width, height) = (FONT.character_size.width as usize, FONT.character_size.height as usize);
        let Screen { red, green, blue, bytes, .. } = self.screen;
        let (light, bytes) = (LIGHT << red | LIGHT << green | LIGHT << blue, usize::from(bytes));
        for y in 0..height {
            let bits = self.glyphs[usize::from(character % CHARACTERS) * height + y];
            let line = start + (row * height + y) * pitch + column * width * bytes;
            for x in 0..width {
                let is_lit = (bits >> x & 1 != 0) != is_inverse;
                self.draw_pixel(line + bytes * x, if is_lit { light } else { 0 });
            }
        }
    }

    fn draw_pixel(&mut self, at: usize, colour: u32) {
        if self.screen.bytes == 4 {
            return self.memory.write_u32(at, colour);
        }
        for (at, byte) in (at..).zip(colour.to_le_bytes()).take(usize::from(self.screen.bytes)) {
            self.memory.write_u8(at, byte);
        }
    }

    /// Where in the memory the screen begins.
    fn offset(&self) -> usize {
        (self.screen.address - self.memory.device_address()) as usize
    }
}

/// The font as bits, for reading it pixel by pixel each time would be slow.
fn glyphs() -> Vec<u16> {
    let (width, height) = (FONT.character_size.width, FONT.character_size.height);
    let per_row = FONT.image.size().width / width;
    let row = |character: char, y: u32| {
        let index = FONT.glyph_mapping.index(character) as u32;
        let (left, top) = (index % per_row * width, index / per_row * height + y);
        let is_lit =
            |x: &u32| FONT.image.pixel(Point::new((left + x) as i32, top as i32)) == Some(BinaryColor::On);
        (0..width).filter(is_lit).fold(0, |bits, x| bits | 1 << x)
    };
    (0..CHARACTERS).flat_map(|byte| (0..height).map(move |y| row(char::from(byte), y))).collect()
}
