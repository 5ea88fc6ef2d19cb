//! stub
use crate::*;
pub fn perform(_: cli::BenchOptions) -> Result<u8> {
    Err(Error::new("not yet there"))
}
