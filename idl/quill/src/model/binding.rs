//! How a client in C finds its server where no parameter says it: DCE's implicit and automatic binding.

/// The server that the functions of an interface's clients call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// The one that a variable of this name says, which the program defines (`implicit_handle`).
    Named(String),
    /// The one that a function of the program says, which is asked at each call (`auto_handle`).
    Asked,
}
