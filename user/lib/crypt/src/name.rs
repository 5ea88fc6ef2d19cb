//! Names and symbolic links, encrypted as texts of letters, digits, `-` and `_`.
//!
//! A name is to be found, so in one directory it is always the same text: AES-SIV, with the directory's number beside it. In another directory it is another text, and
//! a text of another directory is none.

use crate::block::{NONCE, TAG};
use crate::key::{Keys, nonce_of, tag_of};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use base64ct::{Base64UrlUnpadded, Encoding};
use chacha20poly1305::aead::AeadInOut;
use vfs::{Error, Result};

/// Bytes of a directory's number.
pub const ID: usize = 16;

/// Bytes that AES-SIV puts in front of what it encrypts.
const SIV: usize = 16;

/// Longest name: the longest of the other file system are texts of so many bytes and [`SIV`].
pub const NAME_MAX: usize = vfs::NAME_MAX * 3 / 4 - SIV;

/// Longest target of a symbolic link.
pub const TARGET_MAX: usize = vfs::TARGET_MAX * 3 / 4 - NONCE - TAG;

/// Beside a symbolic link's target, so that it is nothing else.
const LINK: &[u8] = b"symbolic link";

fn text(bytes: &[u8]) -> String {
    Base64UrlUnpadded::encode_string(bytes)
}

fn bytes(text: &[u8]) -> Result<Vec<u8>> {
    let text = core::str::from_utf8(text).map_err(|_| Error::Damaged)?;
    Base64UrlUnpadded::decode_vec(text).map_err(|_| Error::Damaged)
}

/// Encrypts a name of a directory.
pub fn seal(keys: &mut Keys, directory: &[u8; ID], name: &[u8]) -> Result<String> {
    if name.len() > NAME_MAX {
        return Err(Error::NameTooLong);
    }
    let sealed = keys.names.encrypt([&directory[..]], name).map_err(|_| Error::NameTooLong)?;
    Ok(text(&sealed))
}

/// The name that was encrypted, if it was in this directory.
pub fn open(keys: &mut Keys, directory: &[u8; ID], sealed: &[u8]) -> Result<Vec<u8>> {
    let sealed = bytes(sealed)?;
    keys.names.decrypt([&directory[..]], &sealed).map_err(|_| Error::Damaged)
}

/// Encrypts a symbolic link's target.
pub fn seal_target(keys: &Keys, target: &[u8], random: fn(&mut [u8])) -> Result<String> {
    if target.len() > TARGET_MAX {
        return Err(Error::NameTooLong);
    }
    let mut sealed = vec![0; NONCE + target.len() + TAG];
    let (nonce, rest) = sealed.split_at_mut(NONCE);
    let (own, tag) = rest.split_at_mut(target.len());
    random(nonce);
    own.copy_from_slice(target);
    let made = keys.contents.encrypt_inout_detached(&nonce_of(nonce), LINK, own.into());
    tag.copy_from_slice(&made.map_err(|_| Error::NameTooLong)?);
    Ok(text(&sealed))
}

/// The target that was encrypted.
pub fn open_target(keys: &Keys, sealed: &[u8]) -> Result<Vec<u8>> {
    let sealed = bytes(sealed)?;
    let len = sealed.len().checked_sub(NONCE + TAG).ok_or(Error::Damaged)?;
    let mut target = sealed[NONCE..NONCE + len].to_vec();
    keys.contents
        .decrypt_inout_detached(
            &nonce_of(&sealed),
            LINK,
            (&mut target[..]).into(),
            &tag_of(&sealed[NONCE + len..]),
        )
        .map_err(|_| Error::Damaged)?;
    Ok(target)
}

/// Bytes of a target whose text has so many.
pub const fn target_len(text: u64) -> u64 {
    (text / 4 * 3 + text % 4 * 3 / 4).saturating_sub((NONCE + TAG) as u64)
}

/// The text of a directory's number.
pub fn id_text(id: &[u8; ID]) -> String {
    text(id)
}

/// The number of such a text.
pub fn id_of(text: &[u8]) -> Result<[u8; ID]> {
    bytes(text)?.try_into().map_err(|_| Error::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::tests::{keys, random};

    #[test]
    fn names_are_texts_of_their_directory() {
        let mut keys = keys();
        let (one, other) = ([1; ID], [2; ID]);
        for len in [1, 2, 3, 100, NAME_MAX] {
            let name: Vec<u8> = (0..len).map(|at| at as u8 | 1).collect();
            let sealed = seal(&mut keys, &one, &name).unwrap();
            assert!(sealed.len() <= vfs::NAME_MAX && vfs::Name::new(sealed.as_bytes()).is_ok());
            assert_eq!(seal(&mut keys, &one, &name).unwrap(), sealed);
            assert_ne!(seal(&mut keys, &other, &name).unwrap(), sealed);
            assert_eq!(open(&mut keys, &one, sealed.as_bytes()).unwrap(), name);
            assert_eq!(open(&mut keys, &other, sealed.as_bytes()), Err(Error::Damaged));
        }
        assert_eq!(NAME_MAX, 175);
        assert_eq!(seal(&mut keys, &one, &[b'x'; NAME_MAX + 1]), Err(Error::NameTooLong));
        for no_name in [&b""[..], b".", b"abc", b"\xff\xff", b"AAAA AAAA"] {
            assert_eq!(open(&mut keys, &one, no_name), Err(Error::Damaged));
        }
    }

    #[test]
    fn targets_come_back() {
        let keys = keys();
        for len in [1, 2, 3, 4, 5, 1000, TARGET_MAX] {
            let target = vec![b't'; len];
            let sealed = seal_target(&keys, &target, random).unwrap();
            assert!(sealed.len() <= vfs::TARGET_MAX);
            assert_eq!(target_len(sealed.len() as u64), len as u64);
            assert_eq!(open_target(&keys, sealed.as_bytes()).unwrap(), target);
            let mut changed = sealed.into_bytes();
            changed[len / 2] ^= 1;
            assert_eq!(open_target(&keys, &changed), Err(Error::Damaged));
        }
        assert_eq!(seal_target(&keys, &[b't'; TARGET_MAX + 1], random), Err(Error::NameTooLong));
    }
}
