//! Files and folders, with errors that name them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::checkout;

pub fn create_folder(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| at(folder, &error))
}

/// Removes a folder with all it holds; one that is not there is fine.
pub fn remove_folder(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(at(folder, &error)),
        _ => Ok(()),
    }
}

/// The entries of a folder, in order.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| at(folder, &error))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub fn read(path: impl AsRef<Path>) -> Result<String, String> {
    let path = path.as_ref();
    fs::read_to_string(path).map_err(|error| at(path, &error))
}

/// Writes a file, in place of one that is there.
pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<(), String> {
    let path = path.as_ref();
    fs::write(path, content).map_err(|error| at(path, &error))
}

pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), String> {
    let from = from.as_ref();
    fs::copy(from, to).map(drop).map_err(|error| at(from, &error))
}

/// Moves a file or a folder within its file system.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), String> {
    let from = from.as_ref();
    fs::rename(from, to).map_err(|error| at(from, &error))
}

pub fn link(target: impl AsRef<Path>, link: impl AsRef<Path>) -> Result<(), String> {
    let link = link.as_ref();
    symlink(target, link).map_err(|error| at(link, &error))
}

/// An I/O error with the path it concerns.
pub fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// A folder that is removed when this is dropped.
pub struct Temporary(pub PathBuf);

impl Temporary {
    pub fn new(folder: PathBuf) -> Result<Self, String> {
        remove_folder(&folder)?;
        create_folder(&folder)?;
        Ok(Self(folder))
    }

    /// Makes a folder for the files of one run.
    pub fn of_run() -> Result<Self, String> {
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let name = format!("vm/run-{}-{number}", std::process::id());
        Self::new(checkout::target_folder().join(name))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(why) = remove_folder(&self.0) {
            eprintln!("{why}");
        }
    }
}

static RUNS: AtomicUsize = AtomicUsize::new(0);
