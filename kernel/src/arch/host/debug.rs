//! The simulated machine has no debug registers.

/// The current thread runs with breakpoints.
pub fn load_breakpoints(_addresses: [u64; 4], _control: u64) {}

/// The thread with breakpoints is left.
pub fn breakpoints_off() {}
