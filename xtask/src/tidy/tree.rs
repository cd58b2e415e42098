//! The text files of the repository, by path. Nothing else in `tidy` touches the disk.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// The text of every file a rule may ask for.
#[derive(Debug, Default)]
pub struct Tree {
    /// Path relative to the repository, with `/` between its parts, to content.
    pub files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the repository at `root`, leaving out what is built, generated or binary.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.read_directory(root, "")?;
        Ok(tree)
    }

    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        Self { files: files.collect() }
    }

    /// The content of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// The files whose name ends in `.extension`.
    pub fn with_extension(&self, extension: &str) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        files.filter(move |(path, _)| {
            path.rsplit_once('.').is_some_and(|(_, actual)| actual == extension)
        })
    }

    fn read_directory(&mut self, directory: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() {
                if !SKIPPED.contains(&path.as_str()) {
                    self.read_directory(&entry.path(), &format!("{path}/"))?;
                }
            } else if kind.is_file()
                && let Ok(text) = String::from_utf8(fs::read(entry.path())?)
            {
                self.files.insert(path, text);
            }
        }
        Ok(())
    }
}

/// Directories that hold build products and fuzz inputs, none of which anyone wrote.
const SKIPPED: &[&str] =
    &[".git", "target", "fuzz/target", "fuzz/artifacts", "fuzz/corpus", "fuzz/coverage"];
