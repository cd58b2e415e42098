//! All bytes of a small file, or their hash.

use std::io::{self, IoSliceMut};

use kettle_kernel::file_stamp::FileStamp;
use kettle_kernel::transfer::{Wait, read_at, read_beginning};
use kettle_tls::mac::Sha256;

use crate::files::OpenFile;
use crate::files::entry::Mark;
use crate::files::locate::identity_of;

/// All bytes of a file that does not change meanwhile; their mark is known.
pub(super) fn read_whole(
    file: &OpenFile,
    identity: FileStamp,
    wait: Wait,
) -> io::Result<(Vec<u8>, Mark)> {
    let length = usize::try_from(identity.bytes).unwrap_or(usize::MAX);
    let (_, mut bytes) = read_beginning(file.file(), &mut [], length, wait)?;
    let read_bytes = bytes.len();
    bytes.resize(length, 0);
    fill(bytes.get_mut(read_bytes..).unwrap_or_default(), file, read_bytes as u64, wait)?;
    is_still(file, identity)?;
    Ok((bytes, Mark::Nothing))
}

/// The same, and their mark.
pub(super) fn read_and_hash(
    file: &OpenFile,
    identity: FileStamp,
    wait: Wait,
) -> io::Result<(Vec<u8>, Mark)> {
    let (bytes, _) = read_whole(file, identity, wait)?;
    let mut hash = Sha256::default();
    hash.add(&bytes);
    Ok((bytes, Mark::Hash(hash.half())))
}

/// The mark alone.
pub(super) fn hash(file: &OpenFile, identity: FileStamp, wait: Wait) -> io::Result<Mark> {
    let mut hash = Sha256::default();
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = 0;
    while at < identity.bytes {
        let left = usize::try_from(identity.bytes - at).unwrap_or(usize::MAX);
        piece.truncate(left);
        fill(&mut piece, file, at, wait)?;
        hash.add(&piece);
        at += piece.len() as u64;
    }
    is_still(file, identity)?;
    Ok(Mark::Hash(hash.half()))
}

/// Fills the whole of `bytes` from a place in a file.
fn fill(bytes: &mut [u8], file: &OpenFile, at: u64, wait: Wait) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let mut rest = [IoSliceMut::new(&mut bytes[filled..])];
        match read_at(file.file(), &mut rest, at + filled as u64, wait)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => filled += read,
        }
    }
    Ok(())
}

fn is_still(file: &OpenFile, identity: FileStamp) -> io::Result<()> {
    match identity_of(file.file()) == Some(identity) {
        true => Ok(()),
        false => Err(io::ErrorKind::StaleNetworkFileHandle.into()),
    }
}

/// Of what is only hashed so much is in memory at a time.
const PIECE_BYTES: usize = 64 * 1024;
