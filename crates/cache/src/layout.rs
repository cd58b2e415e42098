//! The folder that an object's file lies in: one of many, chosen by a hash that only this store can make. Names are hashes that
//! everybody can make, so a client could choose URLs whose files would all lie in one folder.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::name::{HASH_BYTES, Name};

/// The way names become paths below the store's directory.
pub(crate) struct Layout {
    key: [u8; LAYOUT_KEY_BYTES],
}

impl Layout {
    pub(crate) fn new(key: [u8; LAYOUT_KEY_BYTES]) -> Self {
        Self { key }
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The number of the folder that a name's file is in. The variants of one key lie in different ones.
    pub(crate) fn folder(&self, name: Name) -> u16 {
        let mut hash = Sha256::new();
        hash.update(self.key);
        name.parts().into_iter().for_each(|part| hash.update(part));
        let [high, low, ..]: [u8; 32] = hash.finalize().into();
        u16::from_be_bytes([high, low]) >> (u16::BITS - FOLDER_BITS)
    }

    /// The path of a name's file.
    pub(crate) fn path(&self, name: Name) -> String {
        let mut path = String::with_capacity(PATH_BYTES);
        push_folder_name(&mut path, self.folder(name));
        path.push('/');
        name.write(&mut path);
        path
    }
}

/// Without the key.
impl fmt::Debug for Layout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Layout").finish_non_exhaustive()
    }
}

/// The numbers of all folders that there may be.
pub(crate) fn folders() -> impl Iterator<Item = u16> {
    0..1 << FOLDER_BITS
}

pub(crate) fn folder_name(number: u16) -> String {
    let mut name = String::with_capacity(FOLDER_BYTES);
    push_folder_name(&mut name, number);
    name
}

fn push_folder_name(out: &mut String, number: u16) {
    let digits = [number >> 8, number >> 4 & 15, number & 15];
    out.extend(digits.into_iter().filter_map(|digit| char::from_digit(digit.into(), 16)));
}

/// True for what [`folder_name`] makes.
pub(crate) fn is_folder_name(name: &[u8]) -> bool {
    name.len() == FOLDER_BYTES && name.iter().all(u8::is_ascii_hexdigit)
}

/// The digits of a folder's number.
const FOLDER_BYTES: usize = 3;

/// A folder's name, a slash, and a file's name.
const PATH_BYTES: usize = FOLDER_BYTES + 1 + 4 * HASH_BYTES + 1;

/// More than anybody can try.
pub(crate) const LAYOUT_KEY_BYTES: usize = 16;

/// 1,024 folders: few enough that most objects find theirs made, and with a million objects a thousand in each.
const FOLDER_BITS: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_variants_are_spread_over_all_folders() {
        let layout = Layout::new([7; LAYOUT_KEY_BYTES]);
        let first = Name::of_key("https://example.org/");
        let variant =
            |number: u32| first.variant(&[("accept".to_owned(), number.to_le_bytes().to_vec())]);
        let key = |number: u32| Name::of_key(&number.to_string());
        assert!(most_in_one_folder(&layout, (0..10_240).map(key)) < 40);
        assert!(most_in_one_folder(&layout, (0..10_240).map(variant)) < 40);
    }

    #[test]
    fn with_another_key_names_lie_elsewhere() {
        let [one, other] = [1, 2].map(|byte| Layout::new([byte; LAYOUT_KEY_BYTES]));
        let of_one_folder = (0..40_960)
            .map(|number| Name::of_key(&number.to_string()))
            .filter(|name| one.folder(*name) == 0);
        assert!(most_in_one_folder(&other, of_one_folder) < 6);
    }

    #[test]
    fn a_path_is_made_of_folder_and_name() {
        let layout = Layout::new([0; LAYOUT_KEY_BYTES]);
        let name = Name::of_key("https://example.org/");
        let path = layout.path(name);
        let (folder, file) = path.split_once('/').unwrap();
        assert_eq!(Name::parse(file.as_bytes()), Some(name));
        assert_eq!(folders().map(folder_name).filter(|it| it == folder).count(), 1);
        assert_eq!(folders().count(), 1_024);
        assert!(folders().map(folder_name).all(|it| is_folder_name(it.as_bytes())));
        for other in ["purged", ".", "", "xyz", "00", "0000"] {
            assert!(!is_folder_name(other.as_bytes()), "{other}");
        }
        assert_eq!(layout.key(), [0; LAYOUT_KEY_BYTES]);
        assert_eq!(format!("{layout:?}"), "Layout { .. }");
    }

    fn most_in_one_folder(layout: &Layout, names: impl Iterator<Item = Name>) -> u32 {
        let mut counts = [0_u32; 1 << FOLDER_BITS];
        names.for_each(|name| counts[usize::from(layout.folder(name))] += 1);
        counts.into_iter().max().unwrap()
    }
}
