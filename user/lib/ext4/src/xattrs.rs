//! Extended attributes: their names, which are a number and a text on the disk.

use alloc::vec::Vec;
use rsext4::{XattrName, XattrNamespace, XattrSetMode};
use vfs::{Before, Error, Result, XATTR_NAME_MAX};

/// Kinds of names that are served. Lists of who may do what are none of them: nobody here looks at these.
const KINDS: [(&[u8], XattrNamespace); 3] = [
    (b"user.", XattrNamespace::User),
    (b"trusted.", XattrNamespace::Trusted),
    (b"security.", XattrNamespace::Security),
];

/// The two parts of a name.
pub fn split(name: &[u8]) -> Result<(XattrNamespace, &[u8])> {
    if name.len() > XATTR_NAME_MAX {
        return Err(Error::NameTooLong);
    }
    let found = KINDS.iter().find_map(|(begin, kind)| Some((*kind, name.strip_prefix(*begin)?)));
    match found {
        Some((_, b"")) => Err(Error::Invalid),
        Some((_, rest)) if rest.contains(&0) => Err(Error::Invalid),
        found => found.ok_or(Error::Unsupported),
    }
}

/// Names of the kinds that are served, with a zero behind each.
pub fn joined(names: &[XattrName]) -> Vec<u8> {
    let begin = |name: &XattrName| KINDS.iter().find(|(_, kind)| *kind == name.namespace);
    let known = names.iter().filter_map(|name| Some((begin(name)?.0, name.name.as_slice())));
    known.flat_map(|(begin, rest)| [begin, rest, &[0]]).flatten().copied().collect()
}

pub fn mode(before: Before) -> XattrSetMode {
    match before {
        Before::Any => XattrSetMode::Upsert,
        Before::None => XattrSetMode::Create,
        Before::One => XattrSetMode::Replace,
    }
}
