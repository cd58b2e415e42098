//! The names in a folder, as one process lists them and another is told them: never the folder itself, through which more
//! than its names could be reached.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, statat};

/// A name, and what has it.
pub(super) type Listed = (OsString, FileType);

/// Lists an open folder.
pub(super) fn of(folder: &File) -> io::Result<Vec<Listed>> {
    let entries = Dir::new(folder.try_clone()?)?;
    let is_listed = |entry: &rustix::io::Result<DirEntry>| {
        entry.as_ref().map_or(true, |entry| ![c".", c".."].contains(&entry.file_name()))
    };
    entries
        .filter(is_listed)
        .map(|entry| {
            let entry = entry?;
            let name = entry.file_name();
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(found.st_mode)
                }
                kind => kind,
            };
            Ok((OsStr::from_bytes(name.to_bytes()).to_owned(), kind))
        })
        .collect()
}

/// Each entry as its kind, its name, and a zero, which no name holds.
pub(super) fn encode(entries: &[Listed]) -> Vec<u8> {
    let encoded = entries.iter().flat_map(|(name, kind)| {
        let kind = (kind.as_raw_mode() >> KIND_BITS_BELOW).to_le_bytes()[0];
        [&[kind], name.as_bytes(), &[0]].concat()
    });
    encoded.collect()
}

/// Decodes a listing; a piece that holds nothing is left out.
pub(super) fn decode(bytes: &[u8]) -> Vec<Listed> {
    let mut left = bytes;
    let mut entries = Vec::new();
    // The kind may be zero itself.
    while let Some((kind, behind)) = left.split_first() {
        let end = behind.iter().position(|byte| *byte == 0).unwrap_or(behind.len());
        let (name, rest) = behind.split_at(end);
        let kind = FileType::from_raw_mode(u32::from(*kind) << KIND_BITS_BELOW);
        entries.push((OsStr::from_bytes(name).to_owned(), kind));
        left = rest.get(1..).unwrap_or_default();
    }
    entries
}

/// The bits of a mode that are not its kind.
const KIND_BITS_BELOW: u32 = 12;
