//! How a client in C, or in Rust over Tern, finds its server where no parameter says it: DCE's implicit and automatic binding, and handles of a file's own types.

/// The server that the functions of an interface's clients call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// The one that a variable of this name says, which the program defines (`implicit_handle`).
    Named(String),
    /// The one that a function of the program says, which is asked at each call (`auto_handle`).
    Asked,
}

/// The server that the function of one operation calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Called {
    /// The one that its interface is bound to.
    #[default]
    Bound,
    /// The one that a parameter of the function says, whatever its interface is bound to.
    Said,
    /// The one that a function of the program finds for the first parameter, whose type has this name (`handle`).
    Found(String),
}
