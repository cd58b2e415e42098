//! A folder's contents, read with the route's rules: what cannot be fetched is not shown.
//!
//! `html` and `json` write the page; this file reads and sorts.

mod html;
mod json;

pub use html::write_html;
pub use json::write_json;

use std::cmp::Ordering;

use kettle_kernel::transfer::Wait;
use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, fstat, statat};
use rustix::io::Errno;

use super::root::Root;

/// The contents of a folder.
#[derive(Debug)]
pub struct Listing {
    /// What it holds.
    pub items: Vec<Item>,
    /// Whether there is more than is shown.
    pub is_cut: bool,
}

/// A file or folder in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name, without a slash.
    pub name: String,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Its length, if it is a file.
    pub bytes: u64,
    /// Its last modification, in seconds since 1970.
    pub modified: i64,
}

/// What a listing is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// The name, as bytes.
    Name,
    /// The length.
    Size,
    /// The last modification.
    Time,
}

/// How a listing is sorted. Folders always come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    /// By what.
    pub key: SortKey,
    /// Whether the greatest comes first.
    pub descends: bool,
}

impl SortKey {
    /// Every key, in the order of the columns.
    pub const ALL: [SortKey; 3] = [SortKey::Name, SortKey::Size, SortKey::Time];

    /// The word in a query.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            SortKey::Name => "name",
            SortKey::Size => "size",
            SortKey::Time => "time",
        }
    }
}

impl Sort {
    /// What a query asks for: `sort=name|size|time` and `order=asc|desc`. Anything else is
    /// ignored.
    #[must_use]
    pub fn from_query(query: Option<&str>) -> Self {
        let mut sort = Self { key: SortKey::Name, descends: false };
        for (name, value) in query.unwrap_or("").split('&').filter_map(|pair| pair.split_once('='))
        {
            match name {
                "sort" => {
                    let known = SortKey::ALL.into_iter().find(|key| key.as_str() == value);
                    sort.key = known.unwrap_or(sort.key);
                }
                "order" => sort.descends = value == "desc",
                _ => {}
            }
        }
        sort
    }

    fn compare(self, left: &Item, right: &Item) -> Ordering {
        let by_key = match self.key {
            SortKey::Name => Ordering::Equal,
            SortKey::Size => left.bytes.cmp(&right.bytes),
            SortKey::Time => left.modified.cmp(&right.modified),
        };
        let ascending = by_key.then_with(|| left.name.cmp(&right.name));
        let by_key = if self.descends { ascending.reverse() } else { ascending };
        right.is_folder.cmp(&left.is_folder).then(by_key)
    }
}

impl Listing {
    /// Reads a folder below a root. Waits for the disk.
    pub fn read(root: &Root, relative: &str) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        let folder = root.open_below(relative, flags, Wait::Allowed)?;
        let mut listing = Self { items: Vec::new(), is_cut: false };
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            // A name that is not UTF-8 cannot be asked for.
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") {
                continue;
            }
            let path = format!("{relative}{name}");
            if !root.allows(&path) {
                continue;
            }
            if listing.items.len() == ITEMS_MAX {
                listing.is_cut = true;
                break;
            }
            let Ok(stat) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            listing.items.extend(item(root, &path, name, stat));
        }
        Ok(listing)
    }

    /// Sorts in place.
    pub fn sort(&mut self, sort: Sort) {
        self.items.sort_by(|left, right| sort.compare(left, right));
    }
}

/// What is shown of a name: symlinks as what they lead to, if the root's policy follows them.
fn item(root: &Root, path: &str, name: &str, stat: Stat) -> Option<Item> {
    let stat = if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        let target = root.open_below(path, OFlags::PATH, Wait::Allowed).ok()?;
        fstat(&target).ok()?
    } else {
        stat
    };
    let is_folder = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => true,
        FileType::RegularFile => false,
        _ => return None,
    };
    let bytes = if is_folder { 0 } else { u64::try_from(stat.st_size).unwrap_or(0) };
    Some(Item { name: name.to_owned(), is_folder, bytes, modified: stat.st_mtime })
}

/// A folder with more than this shows only so many, in the order the file system gives them.
const ITEMS_MAX: usize = 10_000;

#[cfg(test)]
mod tests;
