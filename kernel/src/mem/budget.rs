//! Steps of long operations: how they end when their budget is used up.

/// Result of unfinished work: look for interrupts and call again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Again;

/// Reason why a page could not be mapped or taken away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The budget is used up.
    Again,
    /// The task that has or gets the page cannot pay for a table or a node.
    NoMemory,
}

/// Ends this step: the work that follows is one of its own.
pub fn again<T>(budget: &mut usize) -> Result<T, Stop> {
    *budget = 0;
    Err(Stop::Again)
}
