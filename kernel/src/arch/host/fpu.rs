//! The simulated machine has no FPU: nothing is switched, and nothing saved.

use std::cell::Cell;

/// A save area: a frame.
pub type Saved = [Cell<u64>; 512];

/// Whether FPU registers leak: not here.
pub fn lazily_leaks() -> bool {
    false
}

/// Puts a save area into its initial state.
pub fn init(_area: &Saved) {}

/// Wipes the registers out.
pub fn wipe() {}

/// Switches the FPU on.
pub fn turn_on() {}

/// Switches the FPU off.
pub fn turn_off() {}

/// Saves the registers.
pub fn save(_area: &Saved) {}

/// Loads the registers.
pub fn load(_area: &Saved) {}
