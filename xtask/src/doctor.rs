//! stub
use crate::*;
pub fn perform() -> Result<u8> {
    Err(Error::new("not yet there"))
}
