//! The front end for DCE and MS IDL: [`parse`] makes [`ast`], [`check`] makes the model.

pub mod ast;
pub(crate) mod attrs;
pub mod check;
pub mod parse;
mod predefined;

pub use check::{compile, header};

#[cfg(test)]
mod tests;
