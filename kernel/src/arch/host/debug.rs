//! The simulated machine has no debug registers.

/// Does nothing; a real machine loads breakpoints of the current thread.
pub fn load_breakpoints(_addresses: [u64; 4], _control: u64) {}

/// Does nothing; a real machine turns breakpoints off.
pub fn breakpoints_off() {}
