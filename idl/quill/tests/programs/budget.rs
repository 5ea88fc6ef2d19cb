//! A list of values that are two bytes in a message and 8,000 in memory: as many as memory is given for, and no more.

include!("budget_stubs.rs");

struct Shelf(usize);

impl Store::Server for Shelf {
    fn keep(&mut self, values: &[Great]) -> Result<(), rt::Failure> {
        self.0 = values.len();
        Ok(())
    }
}

fn request(count: u32) -> Vec<u8> {
    let mut body = count.to_le_bytes().to_vec();
    body.resize(4 + 2 * count as usize, 0);
    body
}

fn main() {
    let mut shelf = Shelf(0);
    assert_eq!(Store::dispatch(&mut shelf, 0, &request(8_000)), Some((0, Vec::new())));
    assert_eq!(shelf.0, 8_000);
    assert_eq!(Store::dispatch(&mut shelf, 0, &request(8_000_000)), Some((rt::MALFORMED, Vec::new())));
    assert_eq!(shelf.0, 8_000);
}
