//! File systems that tests mount, and that are gone with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A mounted file system. Whatever waits for it fails when it goes.
pub struct Mounted(PathBuf);

impl Mounted {
    /// Mounts `kind` at a folder, which is made; the reason if this machine or its kernel does not. Descriptor 0 of who
    /// mounts is `input`.
    ///
    /// # Errors
    /// What `mount` said.
    pub fn at(folder: PathBuf, kind: &str, options: &str, input: Stdio) -> Result<Self, String> {
        fs::create_dir_all(&folder).unwrap();
        let mut mount = Command::new("mount");
        // No helper programs: what is mounted is the kernel's or the test's own.
        mount.args(["-i", "-t", kind, "-o", options, kind]).arg(&folder).stdin(input);
        let output = mount.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        Ok(Self(folder))
    }

    /// An overlay over one folder, with a second for what it needs besides.
    ///
    /// # Errors
    /// As for [`at`](Self::at).
    pub fn overlay(folder: PathBuf, lower: &Path, beside: &Path) -> Result<Self, String> {
        let (upper, work) = (beside.join("upper"), beside.join("work"));
        fs::create_dir_all(&upper).unwrap();
        fs::create_dir_all(&work).unwrap();
        let [lower, upper, work] = [lower, &upper, &work].map(Path::display);
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        Self::at(folder, "overlay", &options, Stdio::null())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A failing test shows its own reason.
        let _ = Command::new("umount").args(["-f", "-l"]).arg(&self.0).output();
    }
}
