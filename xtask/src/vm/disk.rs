//! Disk images for guests: ext4 made from a folder without mounting anything, and empty files that grow on use.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::files::at;
use crate::process;

/// Makes an ext4 image at `image` with the content of `folder` and a little room to spare.
pub fn build(folder: &Path, image: &Path) -> Result<(), String> {
    let bytes = size_of(folder)?;
    let kibibytes = (bytes + bytes / 8) / 1024 + SPARE_KIB;
    // No journal: the guest mounts it read-only.
    process::run_quietly(
        Command::new("mke2fs")
            .args(["-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0"])
            // Otherwise no two disks with the same content would be alike.
            .args(["-U", FIXED_ID, "-E", &format!("hash_seed={FIXED_ID}")])
            .env("E2FSPROGS_FAKE_TIME", FIXED_SECONDS)
            .arg("-d")
            .arg(folder)
            .arg(image)
            .arg(format!("{kibibytes}k")),
    )
}

/// Makes an empty ext4 image that takes up space only as it is written.
pub fn build_empty(image: &Path, bytes: u64) -> Result<(), String> {
    process::run_quietly(
        Command::new("mke2fs")
            .args(["-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0"])
            .arg(image)
            .arg(format!("{}k", bytes / 1024)),
    )
}

pub fn build_raw(image: &Path, bytes: u64) -> Result<(), String> {
    File::create(image).and_then(|file| file.set_len(bytes)).map_err(|error| at(image, &error))
}

/// The space the files below `folder` need in whole blocks, with an inode each.
fn size_of(folder: &Path) -> Result<u64, String> {
    let mut total = 0;
    for entry in fs::read_dir(folder).map_err(|error| at(folder, &error))? {
        let entry = entry.map_err(|error| at(folder, &error))?;
        let metadata = entry.metadata().map_err(|error| at(&entry.path(), &error))?;
        total += metadata.size().next_multiple_of(BLOCK_BYTES) + INODE_BYTES;
        if metadata.is_dir() {
            total += size_of(&entry.path())?;
        }
    }
    Ok(total)
}

const BLOCK_BYTES: u64 = 4096;
const INODE_BYTES: u64 = 256;
const SPARE_KIB: u64 = 16 * 1024;
const FIXED_ID: &str = "6b657474-6c65-4000-8000-000000000000";
const FIXED_SECONDS: &str = "1798761600";
