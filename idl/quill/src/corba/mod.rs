//! The front end for OMG IDL 4.2: [`parse`] makes [`ast`], [`check`] makes the model.

pub mod ast;
pub mod check;
pub mod parse;
mod value;

pub(crate) use value::binary;
