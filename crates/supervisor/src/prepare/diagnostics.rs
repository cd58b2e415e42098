//! The findings of a start, a reload or a check: mistakes, what clients will refuse, and warnings.

use std::collections::{HashMap, HashSet};

use kettle_config::{Config, Diagnostic, Located, Position};
use kettle_tls::identity::IdentityWarning;

/// The findings, by what they mean for a start.
#[derive(Default)]
pub(super) struct Diagnostics {
    /// The server cannot start or reload.
    pub(super) mistakes: Vec<Diagnostic>,
    /// It can, and clients will refuse it.
    pub(super) serious: Vec<Diagnostic>,
    /// True if the user that serves may not write an access log: then kettle does not start.
    pub(super) lacks_log: bool,
    /// It can, and works.
    pub(super) warnings: Vec<Diagnostic>,
    /// The findings about certificates. Sites may share one.
    pub(super) of_certificates: HashSet<String>,
    /// Mistakes by their places, as far as they were looked at: ten thousand files are each asked about.
    pub(super) by_place: HashMap<Position, Vec<usize>>,
    pub(super) looked_at: usize,
}

impl Diagnostics {
    /// Forgets what has nothing to do with the files that are read again: a folder that is away for an hour must not keep a
    /// renewed certificate out.
    pub(super) fn leave_to_reloads(&mut self, config: &Config) {
        let read: HashSet<Position> =
            config.files_of_reloads().into_iter().map(|file| file.at).collect();
        self.mistakes.retain(|it| read.contains(&it.position()));
    }

    pub(super) fn mistake(
        &mut self,
        config: &Config,
        at: Position,
        offending: &str,
        message: String,
    ) {
        self.mistakes.push(config.diagnostic(at, offending, message, None));
    }

    pub(super) fn add_mistakes(&mut self, mistakes: Vec<Diagnostic>) {
        self.mistakes.extend(mistakes);
    }

    pub(super) fn of_identity(&mut self, warning: &IdentityWarning) -> &mut Vec<Diagnostic> {
        if warning.is_serious() { &mut self.serious } else { &mut self.warnings }
    }

    /// True if the file system has already said what is wrong with this file.
    pub(super) fn have_named(
        &mut self,
        config: &Config,
        path: &Located<std::path::PathBuf>,
    ) -> bool {
        for (number, mistake) in self.mistakes.iter().enumerate().skip(self.looked_at) {
            self.by_place.entry(mistake.position()).or_default().push(number);
        }
        self.looked_at = self.mistakes.len();
        if path.at.is_written() && !config.is_made() {
            return self.by_place.contains_key(&path.at);
        }
        // If the file was made from another program's, one line may name many files: the message tells which.
        let name = path.value.display().to_string();
        let at = config.diagnostic(path.at, "", "", None).position();
        let here = self.by_place.get(&at).into_iter().flatten().take(OF_A_PLACE_MAX);
        here.filter_map(|number| self.mistakes.get(*number)).any(|mistake| {
            match path.at.is_written() {
                true => names(&mistake.message, &name),
                false => mistake.offending == name,
            }
        })
    }

    /// In the order of the file, and each only once: several stages may see the same.
    pub(super) fn into_mistakes(mut self, config: &Config) -> Vec<Diagnostic> {
        self.mistakes.sort_by_key(Diagnostic::position);
        let mut seen = HashSet::new();
        self.mistakes.retain(|mistake| {
            let message = config.is_made().then(|| mistake.message.clone());
            let place = (mistake.position(), mistake.offending.clone(), message);
            seen.insert(place) || mistake.offending.is_empty()
        });
        self.mistakes
    }
}

/// True if a message is about this file, and no other whose name begins like it.
pub(super) fn names(message: &str, file: &str) -> bool {
    let is_end = |letter: Option<char>| letter.is_none_or(|it| it == ':' || it.is_whitespace());
    let behind = |(at, _): (usize, &str)| message.get(at + file.len()..).unwrap_or_default();
    message.match_indices(file).any(|found| is_end(behind(found).chars().next()))
}

/// Mistakes of one place that are looked at to learn whether one is of a file: of more it is said twice, at the worst.
const OF_A_PLACE_MAX: usize = 100;
