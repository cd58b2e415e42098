//! Servers with less memory than what they serve: a control group that bounds it, pages of files included.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A bound on the memory of some processes together. Dropping it takes them out of it again.
#[derive(Debug)]
pub struct MemoryLimit {
    folder: PathBuf,
}

impl MemoryLimit {
    /// A control group of this many bytes, in the version of control groups that this machine bounds memory by.
    ///
    /// # Errors
    /// A sentence that says what is missing: usually the right to make one, which root has outside of containers.
    pub fn new(bytes: u64) -> Result<Self, String> {
        Self::below(Path::new("/sys/fs/cgroup"), bytes).map_err(|error| {
            format!("a memory limit needs a control group, which root may make: {error}")
        })
    }

    fn below(root: &Path, bytes: u64) -> io::Result<Self> {
        let old = root.join("memory");
        let (parent, limit) = if old.is_dir() {
            (old, "memory.limit_in_bytes")
        } else {
            (root.to_owned(), "memory.max")
        };
        let folder = parent.join(format!("kettle-bench-{}", std::process::id()));
        fs::create_dir(&folder)?;
        // Dropped, and so removed, where the rest fails.
        let group = Self { folder };
        fs::write(group.folder.join(limit), bytes.to_string())?;
        Ok(group)
    }

    /// Bounds these processes, and those they start: what they read and write from now on counts.
    ///
    /// # Errors
    /// The kernel's error when a process is written into `cgroup.procs`: it has ended, or this user may not move it.
    pub fn hold(&self, processes: &[u32]) -> io::Result<()> {
        processes
            .iter()
            .try_for_each(|process| fs::write(self.folder.join(MEMBERS), process.to_string()))
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        let members = fs::read_to_string(self.folder.join(MEMBERS)).unwrap_or_default();
        if let Some(parent) = self.folder.parent() {
            for member in members.lines() {
                // A process that has ended meanwhile is out of it, too.
                _ = fs::write(parent.join(MEMBERS), member);
            }
        }
        _ = fs::remove_dir(&self.folder);
    }
}

const MEMBERS: &str = "cgroup.procs";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_its_own_file_for_the_limit() {
        for (folder, file) in [("memory", "memory.limit_in_bytes"), (".", "memory.max")] {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join(folder)).unwrap();
            let group = MemoryLimit::below(root.path(), 1 << 20).unwrap();
            assert_eq!(group.folder.parent(), Some(root.path().join(folder).as_path()));
            assert_eq!(fs::read_to_string(group.folder.join(file)).unwrap(), "1048576");
            group.hold(&[7]).unwrap();
            assert_eq!(fs::read_to_string(group.folder.join(MEMBERS)).unwrap(), "7");
        }
    }

    #[test]
    fn a_machine_without_control_groups_says_so() {
        let refused = MemoryLimit::below(Path::new("/nowhere"), 1).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
    }
}
