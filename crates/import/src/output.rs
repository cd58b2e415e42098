//! A kettle.toml while it is written: its text, what was not carried over, what is wrong, and what the packaged unit asks
//! of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kettle_config::{Diagnostic, Origin, quoted};

use crate::toml_text::TomlText;
use crate::{Imported, Places, Process, Surroundings};

/// The text that an importer has so far.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) text: TomlText,
    /// The parts that were not carried over.
    pub(crate) warnings: Vec<Diagnostic>,
    /// Of the warnings those about what answers 403 or is lost.
    pub(crate) losses: Vec<Diagnostic>,
    /// The places there were, and how many of them answer 403.
    pub(crate) places: Places,
    /// Mistakes, which leave nothing to be written.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The names of the backends, each by what tells that one from all others. There may be a hundred thousand.
    pub(crate) backend_names: BTreeMap<String, String>,
    pub(crate) taken_names: BTreeSet<String>,
}

impl Output {
    /// Says what is not carried over, and what holds instead. The same is said once.
    pub(crate) fn warn(&mut self, origin: &Origin, message: impl Into<String>, help: &str) {
        let warning = origin.diagnostic(message, Some(help.to_owned()));
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Says what answers 403 now, or is lost: such remarks come first.
    pub(crate) fn lose(&mut self, origin: &Origin, message: impl Into<String>, help: &str) {
        let message = message.into();
        self.warn(origin, message.clone(), help);
        self.losses.push(origin.diagnostic(message, Some(help.to_owned())));
    }

    /// Records a mistake, and what to do about it.
    pub(crate) fn find(&mut self, origin: &Origin, message: impl Into<String>, help: &str) {
        self.diagnostics.push(origin.diagnostic(message, Some(help.to_owned())));
    }

    /// The name of the backend with this `identity`: the wanted one with `end` behind it, as far as a name may be like that,
    /// and a number where another backend has that name.
    pub(crate) fn backend_name(&mut self, wanted: &str, end: &str, identity: &str) -> String {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.:".contains(letter);
        let letters = wanted.chars().map(|letter| if is_plain(letter) { letter } else { '-' });
        if let Some(name) = self.backend_names.get(identity) {
            return name.clone();
        }
        let mut number = 1_usize;
        loop {
            let end = if number == 1 { end.to_owned() } else { format!("{end}-{number}") };
            let beginning = letters.clone().take(NAME_LETTERS_MAX - end.len());
            let name = beginning.collect::<String>() + &end;
            if self.taken_names.insert(name.clone()) {
                self.backend_names.insert(identity.to_owned(), name.clone());
                return name;
            }
            number += 1;
        }
    }

    /// Adds a table with a chain, its key and a staple.
    pub(crate) fn certificate(
        &mut self,
        table: &str,
        chain: &Path,
        key: &Path,
        ocsp: Option<&PathBuf>,
        origin: &Origin,
    ) {
        let path = |path: &Path| quoted(&path.display().to_string());
        self.text.table(table, Some(origin));
        self.text.set("chain", path(chain), Some(origin));
        self.text.set("key", path(key), Some(origin));
        if let Some(ocsp) = ocsp {
            self.text.set("ocsp", path(ocsp), Some(origin));
        }
    }

    /// The whole: what was not carried over, in the order of the file, and then the text. It is made for the packaged unit where
    /// `unit` says what is there.
    pub(crate) fn finish(
        mut self,
        program: &str,
        path: &Path,
        (process, folders): (Process, Vec<PathBuf>),
        unit: Option<&dyn Surroundings>,
    ) -> Result<Imported, Vec<Diagnostic>> {
        if !self.diagnostics.is_empty() {
            return Err(self.diagnostics);
        }
        let mut text = TomlText::default();
        match path.as_os_str().is_empty() {
            true => text.comment(format_args!("Made from the command line of {program}.")),
            false => text.comment(format_args!(
                "Made from {}, a configuration of {program}.",
                path.display()
            )),
        }
        let losses = std::mem::take(&mut self.losses);
        let is_trifle = |it: &Diagnostic| !losses.contains(it);
        self.warnings.sort_by(|one, other| {
            let place =
                |it: &Diagnostic| (is_trifle(it), it.path != path, it.path.clone(), it.position());
            place(one).cmp(&place(other))
        });
        let lost = self.warnings.iter().position(is_trifle).unwrap_or(self.warnings.len());
        self.remarks(&mut text, lost);
        remark_process(&process, &mut text, program);
        if let Some(surroundings) = unit {
            fit_unit(&mut text, surroundings);
        }
        text.append(self.text);
        let (toml, origins) = text.finish();
        let Self { warnings, places, .. } = self;
        let path = path.to_path_buf();
        Ok(Imported { toml, path, warnings, lost, places, process, folders, origins })
    }

    /// Writes the parts that were not carried over: first what is lost, then trifles, and the sum.
    fn remarks(&self, text: &mut TomlText, lost: usize) {
        let (lost, trifles) = self.warnings.split_at_checked(lost).unwrap_or_default();
        for (heading, remarks) in [(LOST, lost), (TRIFLES, trifles)] {
            if !lost.is_empty() && !remarks.is_empty() {
                text.comment(heading);
            }
            remarks.iter().for_each(|remark| text.remark(remark));
        }
        if self.places.all > 0 {
            text.comment(self.places.sum());
        }
    }
}

impl Places {
    pub(crate) fn sum(self) -> String {
        let Self { all, closed } = self;
        let places = if all == 1 { "place" } else { "places" };
        match closed {
            0 => format!("{all} of {all} {places} carried over."),
            1 => format!("{} of {all} {places} carried over, 1 answers 403.", all - 1),
            _ => format!("{} of {all} {places} carried over, {closed} answer 403.", all - closed),
        }
    }
}

/// Writes what `kettle hitch` does by itself and a configuration does not say.
fn remark_process(process: &Process, text: &mut TomlText, name: &str) {
    if process.is_daemon || process.pid_file.is_some() {
        text.comment(format_args!(
            "`kettle {name}` leaves the terminal and writes its number; `kettle run` stays, as systemd wants it."
        ));
    }
    if let Some(file) = &process.log_file {
        text.comment(format_args!(
            "`kettle {name}` writes messages to {}; `kettle run` to standard error: StandardError=append:{0}",
            file.display()
        ));
    }
    if process.syslog.is_some() {
        text.comment(format_args!(
            "`kettle {name}` writes messages to syslog; `kettle run` to standard error, which the journal takes."
        ));
    }
}

/// Adds the control socket by which the packaged unit reloads, and what else it asks for: it starts kettle as a user of its
/// own, who may write below few folders. If no package made the socket's folder, it stays a comment, or no start would pass.
fn fit_unit(text: &mut TomlText, surroundings: &dyn Surroundings) {
    text.line("", None);
    UNIT_ASKS.iter().for_each(|line| text.comment(line));
    let is_packaged = surroundings.is_there(Path::new(CONTROL_FOLDER));
    for line in ["[admin]".to_owned(), format!("socket = {}", quoted(CONTROL_SOCKET))] {
        match is_packaged {
            true => text.line(line, None),
            false => text.comment(line),
        }
    }
}

pub(crate) const LOST: &str = "What answers 403 or is lost:";
pub(crate) const TRIFLES: &str = "What else is not as it was:";
/// Letters of the name of a backend or of a server.
pub(crate) const NAME_LETTERS_MAX: usize = 64;
const CONTROL_FOLDER: &str = "/run/kettle";
/// As `packaging/kettle.toml` has it.
const CONTROL_SOCKET: &str = "/run/kettle/admin.sock";
const UNIT_ASKS: [&str; 4] = [
    "In the packaged unit, which starts kettle as the user kettle: take `user` and `group` away, write logs below",
    "/var/log/kettle, and let the group kettle read the keys. Its reload needs this socket, which is written where the package",
    "has made /run/kettle. https://github.com/kettle-tls/kettle/blob/main/docs/migrating.md, \"Start what was made\", has",
    "each step.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_socket_is_that_of_the_packaged_configuration() {
        let packaged = include_str!("../../../packaging/kettle.toml");
        assert!(packaged.contains(&format!("[admin]\nsocket = \"{CONTROL_SOCKET}\"\n")));
    }
}
