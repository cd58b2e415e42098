//! A configuration with all the files that it includes: each in the place of its `include`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kettle_config::{Diagnostic, Origin};

use super::syntax::{Directive, parse};
use crate::Surroundings;
use crate::pattern::fits;

/// Reads a file and what it includes.
pub(super) fn read(
    path: &Path,
    surroundings: &dyn Surroundings,
) -> Result<Vec<Directive>, Vec<Diagnostic>> {
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let mut reader = Includer {
        folder,
        surroundings,
        open: vec![path.to_path_buf()],
        files: 1,
        bytes: 0,
        diagnostics: Vec::new(),
    };
    let nobody = Origin { path: path.to_path_buf(), ..Origin::default() };
    let directives = reader.file(path, &nobody);
    match reader.diagnostics.is_empty() {
        true => Ok(directives),
        false => Err(reader.diagnostics),
    }
}

struct Includer<'s> {
    /// Of the first file: relative names start from there.
    folder: PathBuf,
    surroundings: &'s dyn Surroundings,
    /// The files that are being read, the first one first.
    open: Vec<PathBuf>,
    files: usize,
    bytes: usize,
    diagnostics: Vec<Diagnostic>,
}

impl Includer<'_> {
    fn find(&mut self, origin: &Origin, message: String, help: &str) {
        self.diagnostics.push(origin.diagnostic(message, Some(help.to_owned())));
    }

    fn file(&mut self, path: &Path, asked: &Origin) -> Vec<Directive> {
        let text = match self.surroundings.read(path) {
            Ok(text) => text,
            Err(error) => {
                let message = format!("{} cannot be read: {error}", path.display());
                self.find(asked, message, "name a file that this user may read");
                return Vec::new();
            }
        };
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > BYTES_MAX {
            let message = format!("all files together have more than {BYTES_MAX} bytes");
            self.find(asked, message, "include less");
            return Vec::new();
        }
        match parse(path, &text) {
            Ok(directives) => self.resolve(directives),
            Err(mut diagnostics) => {
                self.diagnostics.append(&mut diagnostics);
                Vec::new()
            }
        }
    }

    fn resolve(&mut self, directives: Vec<Directive>) -> Vec<Directive> {
        let mut all = Vec::with_capacity(directives.len());
        for mut directive in directives {
            // A mistake already: to read on would only find it again.
            if !self.diagnostics.is_empty() {
                break;
            }
            if directive.name == "include" && directive.block.is_none() {
                all.extend(self.include(&directive));
                continue;
            }
            directive.block = directive.block.map(|block| self.resolve(block));
            all.push(directive);
        }
        all
    }

    fn include(&mut self, directive: &Directive) -> Vec<Directive> {
        let origin = &directive.origin;
        let [pattern] = directive.words.as_slice() else {
            let message = "`include` takes one file or pattern".to_owned();
            self.find(origin, message, "write include FILE;");
            return Vec::new();
        };
        let mut all = Vec::new();
        for path in self.matching(&self.folder.join(pattern), origin) {
            if self.open.contains(&path) {
                let message = format!("{} includes itself", path.display());
                self.find(origin, message, "remove it");
            } else if self.open.len() == DEPTH_MAX || self.files == FILES_MAX {
                let message = format!(
                    "more than {DEPTH_MAX} files in each other, or {FILES_MAX} in all, are included"
                );
                self.find(origin, message, "include fewer files");
            } else {
                self.files += 1;
                self.open.push(path.clone());
                all.extend(self.file(&path, origin));
                self.open.pop();
            }
            if !self.diagnostics.is_empty() {
                break;
            }
        }
        all
    }

    /// The files that a pattern stands for, in their order. One that fits none stands for none; a name must be there.
    fn matching(&mut self, pattern: &Path, origin: &Origin) -> Vec<PathBuf> {
        let has_star = |part: &str| part.contains(['*', '?', '[']);
        if !has_star(&pattern.to_string_lossy()) {
            return vec![pattern.to_path_buf()];
        }
        let mut found = vec![PathBuf::new()];
        for part in pattern.components() {
            let part = part.as_os_str().to_string_lossy().into_owned();
            if !has_star(&part) {
                found.iter_mut().for_each(|path| path.push(&part));
                continue;
            }
            let mut next = Vec::new();
            for folder in found {
                let mut names = match self.surroundings.names_in(&folder) {
                    Ok(names) => names,
                    Err(error) if is_no_folder(error.kind()) => continue,
                    // Guards may stand in what nobody could look at.
                    Err(error) => {
                        let message = format!("{} cannot be listed: {error}", folder.display());
                        self.find(origin, message, "name a folder that this user may list");
                        return Vec::new();
                    }
                };
                // As glob(3): what begins with a dot is meant only by its dot.
                names.retain(|name| {
                    name.starts_with('.') == part.starts_with('.') && fits(&part, name)
                });
                names.sort_unstable();
                next.extend(names.into_iter().map(|name| folder.join(name)));
                next.truncate(FILES_MAX);
            }
            found = next;
        }
        found
    }
}

fn is_no_folder(error: ErrorKind) -> bool {
    [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error)
}

/// Files in each other.
const DEPTH_MAX: usize = 16;
const FILES_MAX: usize = 2000;
const BYTES_MAX: usize = 16 * 1024 * 1024;
