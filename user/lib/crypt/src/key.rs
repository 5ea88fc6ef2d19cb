//! Keys, and the passphrase that encrypts them.
//!
//! Names and contents have keys of their own, which are random. They stand in the file `.key`, encrypted by a key that argon2id makes of the passphrase and of a
//! random salt. So another passphrase needs no other keys.

use crate::block::{NONCE, TAG};
use aes_siv::siv::Aes256Siv;
use alloc::vec::Vec;
use argon2::{Algorithm, Argon2, Block, Params, Version};
use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{KeyInit, Tag, XChaCha20Poly1305, XNonce};
use core::fmt;
use core::ops::RangeInclusive;

/// The first bytes of the file: its kind and version.
const MAGIC: &[u8; 8] = b"TernCry1";

const SALT: usize = 16;

/// Bytes of the key of contents, and of that of names.
const CONTENTS: usize = 32;
const NAMES: usize = 64;

/// Magic, cost and salt: they are as the passphrase's owner left them, or the keys are refused.
const HEAD: usize = MAGIC.len() + 3 * 4 + SALT;

/// Bytes of the file.
pub const FILE: usize = HEAD + NONCE + CONTENTS + NAMES + TAG;

/// Most memory, passes and lanes of somebody else's file.
const COST_MAX: Cost = Cost { memory_kib: 32 * 1024, passes: 16, lanes: 8 };

/// How much it costs to try a passphrase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Memory, in KiB.
    pub memory_kib: u32,
    /// How often it is gone through.
    pub passes: u32,
    /// Parts of it that could be gone through at once.
    pub lanes: u32,
}

impl Cost {
    /// The first choice of OWASP's advice for argon2id: 19 MiB, twice.
    pub const USUAL: Cost = Cost { memory_kib: 19 * 1024, passes: 2, lanes: 1 };

    /// Memory that there may be.
    pub const MEMORY_KIB: RangeInclusive<u32> = Params::MIN_M_COST..=COST_MAX.memory_kib;

    /// The usual cost, but for the memory in KiB, which is a text.
    pub fn of_memory(kib: &str) -> Option<Cost> {
        let memory_kib = kib.parse().ok().filter(|kib| Cost::MEMORY_KIB.contains(kib))?;
        Some(Cost { memory_kib, ..Cost::USUAL })
    }
}

/// The keys.
pub struct Keys {
    pub(crate) contents: XChaCha20Poly1305,
    pub(crate) names: Aes256Siv,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Keys")
    }
}

/// Why there are no keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoKeys {
    /// The passphrase is another one, or somebody has changed the file.
    WrongPassphrase,
    /// It is no such file.
    Damaged,
    /// There is not as much memory as it takes.
    NoMemory,
}

/// A key of a passphrase.
fn of_passphrase(passphrase: &[u8], salt: &[u8], cost: Cost) -> Result<XChaCha20Poly1305, NoKeys> {
    let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(CONTENTS));
    let params = params.map_err(|_| NoKeys::Damaged)?;
    let mut memory: Vec<Block> = Vec::new();
    memory.try_reserve_exact(params.block_count()).map_err(|_| NoKeys::NoMemory)?;
    memory.resize(params.block_count(), Block::new());
    let mut key = [0; CONTENTS];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into_with_memory(passphrase, salt, &mut key, &mut memory)
        .map_err(|_| NoKeys::Damaged)?;
    Ok(XChaCha20Poly1305::new(&key.into()))
}

fn keys(bytes: &[u8; CONTENTS + NAMES]) -> Keys {
    let (mut contents, mut names) = ([0; CONTENTS], [0; NAMES]);
    contents.copy_from_slice(&bytes[..CONTENTS]);
    names.copy_from_slice(&bytes[CONTENTS..]);
    Keys { contents: XChaCha20Poly1305::new(&contents.into()), names: Aes256Siv::new(&names.into()) }
}

/// New keys, and the file that has them. `random` fills bytes with what nobody can guess.
pub fn make(passphrase: &[u8], cost: Cost, random: fn(&mut [u8])) -> Result<(Keys, [u8; FILE]), NoKeys> {
    let mut file = [0; FILE];
    random(&mut file[MAGIC.len()..]);
    file[..MAGIC.len()].copy_from_slice(MAGIC);
    for (at, number) in [cost.memory_kib, cost.passes, cost.lanes].into_iter().enumerate() {
        file[MAGIC.len() + 4 * at..][..4].copy_from_slice(&number.to_le_bytes());
    }
    let (head, rest) = file.split_at_mut(HEAD);
    let (nonce, rest) = rest.split_at_mut(NONCE);
    let (own, tag) = rest.split_at_mut(CONTENTS + NAMES);
    let mut bytes = [0; CONTENTS + NAMES];
    bytes.copy_from_slice(own);
    let sealed = of_passphrase(passphrase, &head[HEAD - SALT..], cost)?
        .encrypt_inout_detached(&nonce_of(nonce), head, own.into())
        .map_err(|_| NoKeys::Damaged)?;
    tag.copy_from_slice(&sealed);
    Ok((keys(&bytes), file))
}

/// The keys of a file.
pub fn read(file: &[u8], passphrase: &[u8]) -> Result<Keys, NoKeys> {
    if file.len() != FILE || !file.starts_with(MAGIC) {
        return Err(NoKeys::Damaged);
    }
    let (head, rest) = file.split_at(HEAD);
    let (nonce, rest) = rest.split_at(NONCE);
    let (own, tag) = rest.split_at(CONTENTS + NAMES);
    let number = |at: usize| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&head[MAGIC.len() + 4 * at..][..4]);
        u32::from_le_bytes(bytes)
    };
    let cost = Cost { memory_kib: number(0), passes: number(1), lanes: number(2) };
    if cost.memory_kib > COST_MAX.memory_kib || cost.passes > COST_MAX.passes || cost.lanes > COST_MAX.lanes {
        return Err(NoKeys::Damaged);
    }
    let mut bytes = [0; CONTENTS + NAMES];
    bytes.copy_from_slice(own);
    of_passphrase(passphrase, &head[HEAD - SALT..], cost)?
        .decrypt_inout_detached(&nonce_of(nonce), head, (&mut bytes[..]).into(), &tag_of(tag))
        .map_err(|_| NoKeys::WrongPassphrase)?;
    Ok(keys(&bytes))
}

/// A nonce that is the beginning of some bytes.
pub(crate) fn nonce_of(bytes: &[u8]) -> XNonce {
    let mut nonce = [0; NONCE];
    nonce.copy_from_slice(&bytes[..NONCE]);
    nonce.into()
}

/// A tag that is the beginning of some bytes.
pub(crate) fn tag_of(bytes: &[u8]) -> Tag {
    let mut tag = [0; TAG];
    tag.copy_from_slice(&bytes[..TAG]);
    tag.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::tests::random;

    const CHEAP: Cost = Cost { memory_kib: 8, passes: 1, lanes: 1 };

    #[test]
    fn only_the_passphrase_opens_the_file() {
        let (_, file) = make(b"open sesame", CHEAP, random).unwrap();
        assert!(read(&file, b"open sesame").is_ok());
        assert_eq!(read(&file, b"open barley").err(), Some(NoKeys::WrongPassphrase));
        assert_eq!(read(&file, b"").err(), Some(NoKeys::WrongPassphrase));
        assert_eq!(read(&file[1..], b"open sesame").err(), Some(NoKeys::Damaged));
    }

    #[test]
    fn memory_has_bounds() {
        let kib = |text| Cost::of_memory(text).map(|cost| cost.memory_kib);
        assert_eq!((kib("8"), kib("32768"), kib("7"), kib("32769")), (Some(8), Some(32768), None, None));
        assert_eq!((kib(""), kib("-8"), kib("99999999999")), (None, None, None));
    }

    /// No changed byte is overlooked, and none makes trying a passphrase cost more than there is.
    #[test]
    fn each_byte_of_the_file_matters() {
        let (_, file) = make(b"open sesame", CHEAP, random).unwrap();
        for at in 0..FILE {
            for bit in [0, 7] {
                let mut changed = file;
                changed[at] ^= 1 << bit;
                assert!(read(&changed, b"open sesame").is_err(), "byte {at}");
            }
        }
    }
}
