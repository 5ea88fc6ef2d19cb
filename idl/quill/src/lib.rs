//! **quill**, an optimising IDL compiler.
//!
//! In reading order, which is also the order in which a file passes through:
//!
//! 1. [`source`], [`diag`], [`codes`], [`limits`]: places, messages, and what a run may use up.
//! 2. [`lex`], [`pp`]: bytes to tokens, macros and includes.
//! 3. [`cursor`], [`expr`]: what the parsers share.
//! 4. [`corba`]: OMG IDL. [`dce`]: DCE and MS IDL. [`l4`]: what L4's own compilers add to both.
//! 5. [`model`]: what both produce; [`any`] and [`type_code`], types that are always there. [`acf`]: attribute files, which say how one side's programs see it. [`effects`]: what has none.
//! 6. [`sizes`], [`marshal`]: what a message is made of, in order.
//! 7. [`kernel`], [`layout`]: what carries messages, and where every value lies in them.
//! 8. [`plan`]: the steps by which a message is made and read, and the tables in which methods are found.
//! 9. [`emit`]: what a target language makes of it. [`parts`]: which of it each kernel part has.
//!
//! [`driver::compile`] does all of it, and [`build`] is for build scripts that want it done. Nothing here panics on any input, recurses without a limit, or needs unsafe code.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod acf;
pub mod any;
pub mod build;
pub mod codes;
pub mod corba;
pub mod cursor;
pub mod dce;
pub mod diag;
pub mod driver;
pub mod effects;
pub mod emit;
pub mod expr;
pub mod hints;
pub mod intern;
pub mod kernel;
pub mod l4;
pub mod layout;
pub mod lex;
pub mod limits;
mod lookalike;
pub mod marshal;
pub mod model;
mod number;
pub mod output;
pub mod parts;
pub mod plan;
pub mod pp;
pub mod session;
pub mod sizes;
pub mod source;
pub mod type_code;
