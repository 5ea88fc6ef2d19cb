//! The front end for DCE and MS IDL: [`parse`] makes [`ast`], [`check`] makes the model, [`acf`] adds what an attribute
//! file says about presentation.

pub mod acf;
pub mod ast;
mod attrs;
pub mod check;
pub mod parse;
mod predefined;

pub use check::compile;

#[cfg(test)]
mod tests;
