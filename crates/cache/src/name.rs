//! Names of objects: hashes of their keys, and of the request values that chose among variants.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::head::ObjectHead;

/// The name of an object and its file. Keys come from strangers, so the hash is one that nobody makes collide; the key
/// itself stands in the object's head and is compared all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    key: [u8; HASH_BYTES],
    /// Zeros for the object that lookup finds first.
    variant: [u8; HASH_BYTES],
}

impl Name {
    /// Returns the name that lookup finds first: the object itself, or what says by which fields
    /// its variants differ.
    #[must_use]
    pub fn of_key(key: &str) -> Self {
        Self { key: truncated(Sha256::digest(key.as_bytes())), variant: [0; HASH_BYTES] }
    }

    pub(crate) fn of_object(head: &ObjectHead) -> Self {
        let first = Self::of_key(&head.key);
        if head.vary.is_empty() { first } else { first.variant(&head.vary) }
    }

    /// Returns the name that lookup finds first on the way to this one.
    pub(crate) fn first(self) -> Self {
        Self { variant: [0; HASH_BYTES], ..self }
    }

    /// The variant of the same key for these fields and values.
    #[must_use]
    pub fn variant(self, vary: &[(String, Vec<u8>)]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"variant");
        for (name, value) in vary {
            for part in [name.as_bytes(), value] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
        }
        Self { variant: truncated(hash.finalize()), ..self }
    }

    /// True for what lookup finds first.
    pub(crate) fn is_first(self) -> bool {
        self == self.first()
    }

    /// The hash of its key, and what tells it from others of that key.
    pub(crate) fn parts(self) -> [[u8; HASH_BYTES]; 2] {
        [self.key, self.variant]
    }

    /// Writes the name of its file: each hit that is not in memory does.
    pub(crate) fn write(self, out: &mut String) {
        push_hex(out, self.key);
        out.push('-');
        push_hex(out, self.variant);
    }

    /// Reads the name of a file.
    pub(crate) fn parse(file_name: &[u8]) -> Option<Self> {
        let (key, variant) = std::str::from_utf8(file_name).ok()?.split_once('-')?;
        Some(Self { key: from_hex(key)?, variant: from_hex(variant)? })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(4 * HASH_BYTES + 1);
        self.write(&mut text);
        formatter.write_str(&text)
    }
}

fn truncated(digest: impl Into<[u8; 2 * HASH_BYTES]>) -> [u8; HASH_BYTES] {
    let mut half = [0; HASH_BYTES];
    half.copy_from_slice(digest.into().split_at(HASH_BYTES).0);
    half
}

fn push_hex(out: &mut String, bytes: [u8; HASH_BYTES]) {
    let digits = bytes.into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
    out.extend(digits.filter_map(|digit| char::from_digit(digit.into(), 16)));
}

fn from_hex(text: &str) -> Option<[u8; HASH_BYTES]> {
    let digits = text.as_bytes();
    let is_hex = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != 2 * HASH_BYTES || !digits.iter().all(is_hex) {
        return None;
    }
    Some(u128::from_str_radix(text, 16).ok()?.to_be_bytes())
}

/// 128 bits: whoever looks for two keys with the same hash has 2^64 tries before him, and gains a miss.
pub(crate) const HASH_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back_from_its_file() {
        let name = Name::of_key("https://example.org/").variant(&[("accept".into(), b"a".into())]);
        assert_eq!(Name::parse(name.to_string().as_bytes()), Some(name));
        assert!(name.first().is_first() && !name.is_first());
        for other in ["", "-", "3f", "+f-00", &name.to_string().to_uppercase()] {
            assert_eq!(Name::parse(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn where_a_field_ends_is_part_of_the_name() {
        let name = Name::of_key("k");
        let pair = |field: &str, value: &str| (field.to_owned(), value.as_bytes().to_vec());
        assert_ne!(name.variant(&[pair("a", "bc")]), name.variant(&[pair("ab", "c")]));
        assert_ne!(name.variant(&[]), name);
    }
}
