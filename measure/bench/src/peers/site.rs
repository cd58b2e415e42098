//! The files servers serve: random, without holes, named by their size, and in the page cache before anyone measures.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

use kettle_kernel::transfer::{self, RESIDENCY_BYTES_MAX, Residency};
use sha2::{Digest, Sha256};

/// A folder with a file of each size.
#[derive(Clone, Debug)]
pub struct Site {
    hashes: BTreeMap<u64, [u8; 32]>,
}

impl Site {
    /// Makes the folder's files that are not there yet, reads all of them into the page cache, and checks that they are.
    ///
    /// The content of a file matters twice: a sparse file would be read without a disk or a cache, and bytes that repeat would
    /// pass a hash check after a mix-up.
    ///
    /// # Errors
    /// A sentence for the user: a file cannot be written or read back, or the page cache does not keep it.
    pub fn make(folder: &Path, sizes: &[u64]) -> Result<Self, String> {
        fs::create_dir_all(folder).map_err(about(folder))?;
        let mut hashes = BTreeMap::new();
        for bytes in sizes {
            let path = folder.join(bytes.to_string());
            let is_there = fs::metadata(&path).is_ok_and(|metadata| metadata.len() == *bytes);
            if !is_there {
                write_random(&path, *bytes).map_err(about(&path))?;
            }
            hashes.insert(*bytes, hash(&path).map_err(about(&path))?);
        }
        // Only when all are written: the last could have pushed out the first.
        for bytes in sizes {
            warm(&folder.join(bytes.to_string()), *bytes)?;
        }
        Ok(Self { hashes })
    }

    pub fn sha256(&self, bytes: u64) -> Option<[u8; 32]> {
        self.hashes.get(&bytes).copied()
    }
}

/// Under another name until it is whole.
fn write_random(path: &Path, bytes: u64) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = File::create(&temporary)?;
    let mut random = File::open("/dev/urandom")?.take(bytes);
    copy(&mut random, |piece| file.write_all(piece))?;
    fs::rename(temporary, path)
}

fn hash(path: &Path) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    copy(&mut File::open(path)?, |piece| {
        hasher.update(piece);
        Ok(())
    })?;
    Ok(hasher.finalize().into())
}

fn copy(from: &mut impl Read, mut to: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            bytes => to(buffer.get(..bytes).unwrap_or_default())?,
        }
    }
}

fn warm(path: &Path, bytes: u64) -> Result<(), String> {
    let file = File::open(path).map_err(about(path))?;
    transfer::warm(file.as_fd(), 0, bytes).map_err(about(path))?;
    let mut offset = 0;
    while offset < bytes {
        let piece = RESIDENCY_BYTES_MAX.min(bytes - offset);
        match transfer::residency(file.as_fd(), offset, piece) {
            // Some file systems do not tell; those that matter do.
            Residency::Resident | Residency::Unsupported | Residency::Unknown => offset += piece,
            Residency::Cold | Residency::BeyondEnd => {
                return Err(format!(
                    "the page cache does not keep {}; free some memory or measure smaller files",
                    path.display()
                ));
            }
        }
    }
    Ok(())
}

fn about(path: &Path) -> impl FnOnce(io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}

const COPY_BYTES: usize = 256 * 1024;

#[cfg(test)]
mod tests;
