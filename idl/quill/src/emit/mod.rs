//! Emitters: a model and its layout to the tree of a target language, and that to text. They decide nothing.

pub mod c;
pub mod rust;
pub(crate) mod travel;
pub mod values;
