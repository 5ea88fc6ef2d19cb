//! Placeholder until the line discipline is merged.
use alloc::collections::VecDeque;
use alloc::vec::Vec;
pub const SETTINGS_BYTES: usize = 36;
pub const SETTINGS2_BYTES: usize = 44;
#[derive(Debug, Default)]
pub struct Terminal {
    bytes: VecDeque<u8>,
    window: [u8; 8],
}
impl Terminal {
    pub fn settings_bytes(&self) -> [u8; SETTINGS_BYTES] {
        [0; SETTINGS_BYTES]
    }
    pub fn settings2_bytes(&self) -> [u8; SETTINGS2_BYTES] {
        [0; SETTINGS2_BYTES]
    }
    pub fn set_settings_bytes(&mut self, _: &[u8]) {}
    pub fn window_bytes(&self) -> [u8; 8] {
        self.window
    }
    pub fn set_window_bytes(&mut self, bytes: &[u8; 8]) -> bool {
        self.window = *bytes;
        true
    }
    pub fn flush(&mut self, _: bool) {}
    pub fn is_readable(&self) -> bool {
        !self.bytes.is_empty()
    }
    pub fn readable_bytes(&self) -> usize {
        self.bytes.len()
    }
    pub fn read(&mut self, to: &mut [u8]) -> Option<usize> {
        if self.bytes.is_empty() {
            return None;
        }
        let n = to.len().min(self.bytes.len());
        for (t, f) in to.iter_mut().zip(self.bytes.drain(..n)) {
            *t = f;
        }
        Some(n)
    }
    pub fn output(&mut self, from: &[u8], to: &mut Vec<u8>) {
        for b in from {
            if *b == b'\n' {
                to.push(b'\r');
            }
            to.push(*b);
        }
    }
    pub fn input(&mut self, byte: u8, echo: &mut Vec<u8>) -> Option<u32> {
        if byte == 3 {
            return Some(2);
        }
        let byte = if byte == b'\r' { b'\n' } else { byte };
        echo.push(byte);
        self.bytes.push_back(byte);
        None
    }
}
