//! The grammar of stunnel.conf: `option = value` for all, and then for each `[service]`.

use std::path::{Path, PathBuf};

use kettle_config::{Diagnostic, Excerpt, Origin, Position, closest};

use super::vocabulary::{Fate, Term};
use crate::Surroundings;

/// A service, or what stands before the first one and holds for all.
#[derive(Debug)]
pub(super) struct Section {
    /// Empty for what holds for all.
    pub(super) name: String,
    pub(super) origin: Origin,
    pub(super) options: Vec<StunnelOption>,
}

/// An option with its value, which is not empty.
#[derive(Debug)]
pub(super) struct StunnelOption {
    pub(super) term: &'static Term,
    pub(super) value: String,
    pub(super) origin: Origin,
}

/// Reads a file and what it includes. The first section is what holds for all.
pub(super) fn read(
    path: &Path,
    surroundings: &dyn Surroundings,
) -> Result<Vec<Section>, Vec<Diagnostic>> {
    let whole = Origin { path: path.to_path_buf(), ..Origin::default() };
    let first = Section { name: String::new(), origin: whole.clone(), options: Vec::new() };
    let mut reader =
        Reader { surroundings, sections: vec![first], files: 0, diagnostics: Vec::new() };
    reader.file(path, &whole);
    match reader.diagnostics.is_empty() {
        true => Ok(reader.sections),
        false => Err(reader.diagnostics),
    }
}

struct Reader<'s> {
    surroundings: &'s dyn Surroundings,
    sections: Vec<Section>,
    files: usize,
    diagnostics: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn find(&mut self, origin: &Origin, message: String, help: &str) {
        self.diagnostics.push(origin.diagnostic(message, Some(help.to_owned())));
    }

    fn file(&mut self, path: &Path, asked: &Origin) {
        self.files += 1;
        let text = match self.surroundings.read(path) {
            Ok(text) => text,
            Err(error) => {
                let message = format!("{} cannot be read: {error}", path.display());
                return self.find(asked, message, "name a file that this user may read");
            }
        };
        for (index, line) in text.lines().enumerate() {
            let trimmed = line.trim_start_matches('\u{feff}').trim();
            if trimmed.is_empty() || trimmed.starts_with([';', '#']) {
                continue;
            }
            let is_white = |letter: char| letter.is_whitespace() || letter == '\u{feff}';
            let offset = line.len() - line.trim_start_matches(is_white).len();
            let before = line.get(..offset).unwrap_or_default();
            let at = Position { line: index + 1, column: before.chars().count() + 1 };
            let origin = Origin {
                path: path.to_path_buf(),
                at,
                written: trimmed.to_owned(),
                source_line: Some(Excerpt::around(line, offset)),
            };
            self.line(trimmed, origin);
        }
    }

    fn line(&mut self, line: &str, origin: Origin) {
        if let Some(behind) = line.strip_prefix('[') {
            match behind.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty()) {
                Some(name) => self.sections.push(Section {
                    name: name.to_owned(),
                    origin,
                    options: Vec::new(),
                }),
                None => self.find(
                    &origin,
                    "a service has its name in brackets".to_owned(),
                    "write [NAME]",
                ),
            }
            return;
        }
        let Some((key, value)) = line.split_once('=') else {
            let message = "behind the name of an option a `=` is missing".to_owned();
            return self.find(&origin, message, "write OPTION = VALUE");
        };
        let key = key.trim();
        let value = value.trim();
        if key.eq_ignore_ascii_case("include") {
            return self.include(Path::new(value), &origin);
        }
        let Some(term) = Term::find(key) else {
            let help = match closest(key, &Term::names()) {
                Some(closest) => format!("write {closest}"),
                None => "remove it".to_owned(),
            };
            return self.find(&origin, format!("`{key}` is not an option of stunnel"), &help);
        };
        if let Fate::Flag | Fate::FlagDropped(_) = term.fate
            && !["yes", "no"].contains(&value)
        {
            let message = format!("`{key}` takes yes or no, not `{value}`");
            return self.find(&origin, message, "write yes or no");
        }
        // An empty value stands for nothing.
        if let Some(section) = self.sections.last_mut().filter(|_| !value.is_empty()) {
            section.options.push(StunnelOption { term, value: value.to_owned(), origin });
        }
    }

    /// All files of a folder, in their order.
    fn include(&mut self, folder: &Path, origin: &Origin) {
        let mut names = match self.surroundings.names_in(folder) {
            Ok(names) => names,
            Err(error) => {
                let message = format!("the folder {} cannot be read: {error}", folder.display());
                return self.find(origin, message, "name a folder that this user may read");
            }
        };
        names.sort_unstable();
        for path in names.iter().map(|name| folder.join(name)).collect::<Vec<PathBuf>>() {
            if self.files == FILES_MAX || !self.diagnostics.is_empty() {
                let message = format!("more than {FILES_MAX} files are included");
                if self.diagnostics.is_empty() {
                    self.find(origin, message, "include fewer files");
                }
                return;
            }
            self.file(&path, origin);
        }
    }
}

const FILES_MAX: usize = 200;
