//! stub
use crate::*;
pub fn perform(_: cli::ImageOptions) -> Result<u8> {
    Err(Error::new("not yet there"))
}
