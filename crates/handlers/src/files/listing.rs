//! A folder's contents, read as its route says: what cannot be fetched is not shown, or shown
//! without a link.
//!
//! One pass over the folder finds the entries of one page, so that a listing takes the memory of two
//! pages however large the folder is. `view` says which page, `order` in which order, `html` and
//! `json` write it.

mod html;
mod json;
mod order;
mod view;

pub use html::{CONTENT_SECURITY_POLICY, write_html};
pub use json::write_json;
pub use view::{PageStart, Sort, SortKey, View};

use std::borrow::Cow;
use std::os::fd::OwnedFd;

use kettle_http::target::can_name;
use kettle_http::uri::percent_encode_path;
use kettle_runtime::disk::Abandoned;
use rustix::fs::{
    AtFlags, Dir, DirEntry, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2, statat,
};
use rustix::io::Errno;

use super::root::{Reach, Root};

/// A page of the contents of a folder.
#[derive(Debug)]
pub struct Listing {
    /// The entries of the page, in order.
    pub items: Vec<Item>,
    /// The number of entries that come before them.
    pub before: u64,
    /// The number of folders there are on all pages.
    pub folders: u64,
    /// The number of files there are on all pages.
    pub files: u64,
    /// True if there are entries beyond [`ENTRIES_MAX`], which nobody looked at.
    pub is_cut: bool,
}

/// A file or folder in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name, without a slash.
    pub name: Vec<u8>,
    /// True if it is a folder.
    pub is_folder: bool,
    /// Its length, if it is a file.
    pub bytes: u64,
    /// Its last modification, in seconds since 1970, once it was looked at.
    pub modified: Option<i64>,
}

impl Item {
    /// Its name as it can be shown: control characters and what is not UTF-8 are replaced.
    pub fn text(&self) -> Cow<'_, str> {
        let text = String::from_utf8_lossy(&self.name);
        if !text.contains(char::is_control) {
            return text;
        }
        let shown = |character: char| if character.is_control() { '\u{fffd}' } else { character };
        text.chars().map(shown).collect::<String>().into()
    }

    /// The reference to it from its folder; `None` if any request for it would be refused.
    pub fn link(&self) -> Option<String> {
        let slash = if self.is_folder { "/" } else { "" };
        // "./" keeps a name such as "a:b" from being read as a scheme.
        can_name(&self.name).then(|| format!("./{}{slash}", percent_encode_path(&self.name)))
    }
}

impl Listing {
    /// Reads a folder below a root. Waits for the disk. A mount in the folder is shown by its name if it is not within reach.
    /// A file that is denied, by its path below the root, is not shown.
    ///
    /// # Errors
    /// The kernel's; [`Errno::XDEV`] for what is not within reach, [`Errno::CANCELED`] where nobody waits any more.
    pub fn read(
        root: &Root,
        relative: &str,
        view: &View,
        is_denied: impl Fn(&str) -> bool,
        reach: Reach,
        abandoned: &Abandoned,
    ) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        let folder = root.open_below(relative, flags, reach)?;
        let mut page = ListingPage::new(view);
        let mut is_cut = false;
        for (index, entry) in Dir::read_from(&folder)?.enumerate() {
            if abandoned.is_so() {
                return Err(Errno::CANCELED);
            }
            let entry = entry?;
            if index == ENTRIES_MAX {
                is_cut = true;
                break;
            }
            let name = entry.file_name().to_bytes();
            // Also where `dotfiles` serves them: such a name is chosen so that lists leave it out.
            if name.starts_with(b".") || !view.fits(name) {
                continue;
            }
            let path = format!("{relative}{}", String::from_utf8_lossy(name));
            if is_denied(&path) {
                continue;
            }
            let item = match kind_at_hand(&entry, view) {
                Some(is_folder) => {
                    Some(Item { name: name.to_vec(), is_folder, bytes: 0, modified: None })
                }
                None => match stat_within(&folder, name, reach) {
                    Ok(stat) => item(root, &path, name, stat, reach)?,
                    // Only what is mounted there could say more.
                    Err(Errno::XDEV) => {
                        let is_folder = entry.file_type() == FileType::Directory;
                        Some(Item { name: name.to_vec(), is_folder, bytes: 0, modified: None })
                    }
                    Err(_) => None,
                },
            };
            if let Some(item) = item {
                page.offer(item);
            }
        }
        let mut listing = page.finish(is_cut);
        listing.items.retain_mut(|item| {
            if item.modified.is_some() {
                return true;
            }
            match stat_within(&folder, &item.name, reach) {
                Ok(stat) => {
                    item.bytes = length(item.is_folder, &stat);
                    item.modified = Some(stat.st_mtime);
                    true
                }
                // Otherwise it was removed while the folder was read.
                Err(error) => error == Errno::XDEV,
            }
        });
        Ok(listing)
    }

    /// The number of entries there are on all pages.
    pub fn total(&self) -> u64 {
        self.folders + self.files
    }

    /// The page before this one, if there is one.
    pub fn previous(&self) -> Option<PageStart> {
        if self.before == 0 { None } else { self.items.first().cloned().map(PageStart::Before) }
    }

    /// The page behind this one, if there is one.
    pub fn next(&self) -> Option<PageStart> {
        let end = self.before + self.items.len() as u64;
        if end >= self.total() { None } else { self.items.last().cloned().map(PageStart::After) }
    }
}

/// The entries of one page, while a folder is read.
struct ListingPage<'v> {
    view: &'v View,
    /// The best of those offered so far, in no order; never more than twice a page.
    items: Vec<Item>,
    /// Entries on the other side of the one that names the page.
    passed: u64,
    folders: u64,
    files: u64,
}

impl<'v> ListingPage<'v> {
    fn new(view: &'v View) -> Self {
        Self { view, items: Vec::new(), passed: 0, folders: 0, files: 0 }
    }

    fn offer(&mut self, item: Item) {
        *(if item.is_folder { &mut self.folders } else { &mut self.files }) += 1;
        let sort = self.view.sort;
        let is_beyond = match &self.view.start {
            PageStart::First | PageStart::Last => true,
            PageStart::After(named) => sort.compare(&item, named).is_gt(),
            PageStart::Before(named) => sort.compare(&item, named).is_lt(),
        };
        if !is_beyond {
            self.passed += 1;
            return;
        }
        self.items.push(item);
        if self.items.len() == 2 * PAGE_ITEMS {
            self.keep_best();
        }
    }

    /// Keeps a page of those nearest to where the page starts.
    fn keep_best(&mut self) {
        if self.items.len() > PAGE_ITEMS {
            let sort = self.view.sort;
            let backwards = self.is_backwards();
            self.items.select_nth_unstable_by(PAGE_ITEMS, |left, right| {
                let order = sort.compare(left, right);
                if backwards { order.reverse() } else { order }
            });
            self.items.truncate(PAGE_ITEMS);
        }
    }

    fn is_backwards(&self) -> bool {
        matches!(self.view.start, PageStart::Before(_) | PageStart::Last)
    }

    fn finish(mut self, is_cut: bool) -> Listing {
        self.keep_best();
        let sort = self.view.sort;
        self.items.sort_by(|left, right| sort.compare(left, right));
        let folders = self.folders;
        let files = self.files;
        let before = if self.is_backwards() {
            folders + files - self.passed - self.items.len() as u64
        } else {
            self.passed
        };
        Listing { items: self.items, before, folders, files, is_cut }
    }
}

/// Tells whether an entry is a folder, if the file system says so along with its name and no more has to
/// be known to sort it.
fn kind_at_hand(entry: &DirEntry, view: &View) -> Option<bool> {
    if view.sort.key != SortKey::Name {
        return None;
    }
    match entry.file_type() {
        FileType::Directory => Some(true),
        FileType::RegularFile => Some(false),
        _ => None,
    }
}

/// Returns the facts on a name in a folder, without asking what is mounted there where that is not within reach.
fn stat_within(folder: &OwnedFd, name: &[u8], reach: Reach) -> Result<Stat, Errno> {
    if reach == Reach::Anywhere {
        return statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fstat(openat2(folder, name, flags, Mode::empty(), ResolveFlags::NO_XDEV)?)
}

/// Returns the item of a name: symlinks as what they lead to, if the root's policy follows them. One that leads further
/// than the reach is [`Errno::XDEV`].
fn item(
    root: &Root,
    path: &str,
    name: &[u8],
    stat: Stat,
    reach: Reach,
) -> Result<Option<Item>, Errno> {
    let stat = if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        match root.open_below(path, OFlags::PATH, reach).and_then(fstat) {
            Ok(stat) => stat,
            Err(Errno::XDEV) if reach == Reach::Device => return Err(Errno::XDEV),
            Err(_) => return Ok(None),
        }
    } else {
        stat
    };
    let is_folder = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => true,
        FileType::RegularFile => false,
        _ => return Ok(None),
    };
    let bytes = length(is_folder, &stat);
    Ok(Some(Item { name: name.to_owned(), is_folder, bytes, modified: Some(stat.st_mtime) }))
}

fn length(is_folder: bool, stat: &Stat) -> u64 {
    if is_folder { 0 } else { u64::try_from(stat.st_size).unwrap_or(0) }
}

/// Entries on a page.
const PAGE_ITEMS: usize = 1_000;
/// Entries read of a folder for one page: at a microsecond each this bounds the work of a request.
pub const ENTRIES_MAX: usize = 1_000_000;

#[cfg(test)]
mod tests;
