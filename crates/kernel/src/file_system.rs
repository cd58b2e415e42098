//! Which file system an open file lies on, and whether its answers can stay away for ever.

mod disclosure;
#[cfg(test)]
mod tests;

pub use disclosure::Disclosure;

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::fstatfs;
use rustix::io::retry_on_intr;

/// A kind of file system, by the number Linux gives it (statfs(2), `f_type`). The default is none that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSystem {
    magic: u64,
}

impl FileSystem {
    /// The kind a file lies on. Waits for the answer of a remote one.
    ///
    /// # Errors
    /// The error of fstatfs(2).
    pub fn of(file: BorrowedFd<'_>) -> io::Result<Self> {
        let magic = retry_on_intr(|| fstatfs(file))?.f_type;
        // A field of 32 bits on some machines: what is above them is the sign.
        #[expect(
            clippy::cast_sign_loss,
            clippy::cast_possible_truncation,
            reason = "a bit pattern"
        )]
        Ok(Self { magic: u64::from(magic as u32) })
    }

    /// Returns its name; kinds this program has no name for are "other".
    #[must_use]
    pub fn name(self) -> &'static str {
        self.known().map_or("other", |(_, name, _)| name)
    }

    /// True if another program or machine gives the answers, and so may never give them. Kinds this program does not know
    /// count as remote.
    #[must_use]
    pub fn is_remote(self) -> bool {
        self.known().is_none_or(|(_, _, medium)| medium == Medium::Remote)
    }

    /// True if its files are in memory and nowhere else, but for swap.
    #[must_use]
    pub fn is_memory(self) -> bool {
        self.known().is_some_and(|(_, _, medium)| medium == Medium::Memory)
    }

    fn known(self) -> Option<(u64, &'static str, Medium)> {
        KNOWN.iter().copied().find(|(magic, ..)| *magic == self.magic)
    }
}

/// The medium that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Medium {
    /// This kernel, from memory.
    Memory,
    /// This kernel, from what it has to read first.
    Local,
    /// Another program, or a machine across a network.
    Remote,
}

/// The numbers of `linux/magic.h` and of file systems that keep theirs to themselves.
const KNOWN: [(u64, &str, Medium); 25] = [
    (0xef53, "ext4", Medium::Local),
    (0x5846_5342, "xfs", Medium::Local),
    (0x9123_683e, "btrfs", Medium::Local),
    (0x794c_7630, "overlayfs", Medium::Local),
    (0x0102_1994, "tmpfs", Medium::Memory),
    (0x8584_58f6, "ramfs", Medium::Memory),
    (0x7371_7368, "squashfs", Medium::Local),
    (0xe0f5_e1e2, "erofs", Medium::Local),
    (0xf2f5_2010, "f2fs", Medium::Local),
    (0xca45_1a4e, "bcachefs", Medium::Local),
    (0x2fc1_2fc1, "zfs", Medium::Local),
    (0x4d44, "fat", Medium::Local),
    (0x2011_bab0, "exfat", Medium::Local),
    (0x7366_746e, "ntfs", Medium::Local),
    (0x9660, "iso9660", Medium::Local),
    (0x3153_464a, "jfs", Medium::Local),
    (0x3434, "nilfs", Medium::Local),
    // User Mode Linux sees its host's files by this.
    (0x00c0_ffee, "hostfs", Medium::Local),
    (0x6573_5546, "fuse", Medium::Remote),
    (0x6969, "nfs", Medium::Remote),
    (0xff53_4d42, "cifs", Medium::Remote),
    (0xfe53_4d42, "smb", Medium::Remote),
    (0x00c3_6400, "ceph", Medium::Remote),
    (0x0102_1997, "9p", Medium::Remote),
    (0x5346_414f, "afs", Medium::Remote),
];
