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
    /// The error of `mount`.
    pub fn at(folder: PathBuf, kind: &str, options: &str, input: Stdio) -> Result<Self, String> {
        Self::source(folder, kind, Path::new(kind), options, input)
    }

    /// A file system with the files of `content`, in memory or in a file of its own, `image`.
    ///
    /// # Errors
    /// The error of the program that makes such file systems, or `mount`.
    pub fn holding(
        folder: PathBuf,
        kind: &str,
        image: &Path,
        content: &Path,
    ) -> Result<Self, String> {
        let image_argument = image.to_str().unwrap();
        let content_argument = content.to_str().unwrap();
        if kind == "squashfs" {
            run("mksquashfs", &[content_argument, image_argument, "-quiet", "-no-progress"])?;
            return Self::image(folder, kind, image, "loop,ro");
        }
        let mounted = if kind == "tmpfs" {
            Self::at(folder.clone(), kind, "mode=755", Stdio::null())?
        } else {
            // As large as the one of them that wants most; nothing of it is written before it is needed.
            fs::File::create(image).and_then(|file| file.set_len(320 << 20)).unwrap();
            run(&format!("mkfs.{kind}"), &["-q", image_argument])?;
            Self::image(folder.clone(), kind, image, "loop")?
        };
        run("cp", &["-rT", content_argument, folder.to_str().unwrap()])?;
        Ok(mounted)
    }

    /// Returns what would be there after a loss of power: the file system of a copy of its `image`, which has what was written
    /// to that so far.
    ///
    /// # Errors
    /// As for [`at`](Self::at).
    pub fn after_power_loss(folder: PathBuf, kind: &str, image: &Path) -> Result<Self, String> {
        let copy = image.with_extension("copy");
        let names = [image, &copy].map(|path| path.to_str().unwrap());
        run("cp", &[&["--sparse=always"], &names[..]].concat())?;
        Self::image(folder, kind, &copy, "loop")
    }

    fn image(folder: PathBuf, kind: &str, image: &Path, options: &str) -> Result<Self, String> {
        Self::source(folder, kind, image, options, Stdio::null())
    }

    fn source(
        folder: PathBuf,
        kind: &str,
        source: &Path,
        options: &str,
        input: Stdio,
    ) -> Result<Self, String> {
        fs::create_dir_all(&folder).unwrap();
        let mut mount = Command::new("mount");
        // No helper programs: what is mounted is the kernel's or the test's own.
        mount.args(["-i", "-t", kind, "-o", options]).arg(source).arg(&folder).stdin(input);
        succeeded(&mut mount)?;
        Ok(Self(folder))
    }

    /// An overlay over one folder, with a second for what it needs besides.
    ///
    /// # Errors
    /// As for [`at`](Self::at).
    pub fn overlay(folder: PathBuf, lower: &Path, beside: &Path) -> Result<Self, String> {
        let upper = beside.join("upper");
        let work = beside.join("work");
        fs::create_dir_all(&upper).unwrap();
        fs::create_dir_all(&work).unwrap();
        let [lower, upper, work] = [lower, &upper, &work].map(Path::display);
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        Self::at(folder, "overlay", &options, Stdio::null())
    }

    /// Nothing is written to it from now on.
    ///
    /// # Errors
    /// The error of `mount`: something may be open to be written.
    pub fn make_read_only(&self) -> Result<(), String> {
        run("mount", &["-o", "remount,ro", self.0.to_str().unwrap()])
    }

    /// It may be written to from now on.
    ///
    /// # Errors
    /// The error of `mount`.
    pub fn make_writable(&self) -> Result<(), String> {
        run("mount", &["-o", "remount,rw", self.0.to_str().unwrap()])
    }

    /// Whatever would change it waits until what this gives is dropped.
    ///
    /// # Errors
    /// The error of `fsfreeze`.
    pub fn freeze(&self) -> Result<Frozen<'_>, String> {
        run("fsfreeze", &["-f", self.0.to_str().unwrap()]).map(|()| Frozen(&self.0))
    }
}

/// A file system that takes no change. A process that waits for one does not even end.
pub struct Frozen<'m>(&'m Path);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        run("fsfreeze", &["-u", self.0.to_str().unwrap()]).expect("what was frozen can be thawed");
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    succeeded(Command::new(program).args(arguments)).map_err(|why| format!("{program}: {why}"))
}

fn succeeded(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A failing test shows its own reason.
        let _ = Command::new("umount").args(["-f", "-l"]).arg(&self.0).output();
    }
}
