//! Other programs' configurations and command lines, turned into ours.
//!
//! An import writes the text of a kettle.toml, and that text is what is run: nothing is configured that an operator
//! could not read. Facts on the machine (folders, names of hosts) come from [`Surroundings`].
#![forbid(unsafe_code)]

#[cfg(test)]
mod cases;
#[cfg(test)]
mod files_in_memory;
pub mod hitch;
pub mod nginx;
mod offer;
mod openssl;
mod output;
mod pattern;
pub mod stunnel;
mod toml_text;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use kettle_config::{Config, Diagnostic, Origin, Origins};

/// The questions that an import asks of the machine.
pub trait Surroundings {
    /// The folder that relative paths start from.
    fn folder(&self) -> PathBuf;

    /// The text of a configuration file.
    ///
    /// # Errors
    /// That it cannot be read.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// The names of the regular files in a folder, in any order.
    ///
    /// # Errors
    /// That it cannot be read.
    fn files_in(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// The names of all that is in a folder, in any order.
    ///
    /// # Errors
    /// That it cannot be read.
    fn names_in(&self, folder: &Path) -> io::Result<Vec<String>> {
        self.files_in(folder)
    }

    /// True if there is anything of this name.
    fn is_there(&self, path: &Path) -> bool {
        self.is_file(path)
    }

    /// True if something else than a folder is there, as a file or a device.
    fn is_no_folder(&self, path: &Path) -> bool {
        self.is_file(path)
    }

    /// True if there is a regular file.
    fn is_file(&self, path: &Path) -> bool;

    /// The addresses to listen on for a host, `*` for all of this machine's.
    ///
    /// # Errors
    /// That nobody knows the host.
    fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;

    /// True if this machine has an address.
    fn is_own(&self, _: IpAddr) -> bool {
        true
    }
}

/// A configuration made from another program's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The text of the kettle.toml. The parts that were not carried over stand in its comments.
    pub toml: String,
    /// The file that it was made from; empty if the command line said all.
    pub path: PathBuf,
    /// The parts that were not carried over, with what holds instead: first those that answer 403 or are lost.
    pub warnings: Vec<Diagnostic>,
    /// The number of the warnings of what answers 403 or is lost.
    pub lost: usize,
    /// The fate of its places, if it has any.
    pub places: Places,
    /// The settings that are no part of a configuration.
    pub process: Process,
    /// The folders of which all files are taken.
    pub folders: Vec<PathBuf>,
    origins: Origins,
}

/// The fate of the places of a configuration: its servers and their locations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The number of all.
    pub all: usize,
    /// The number of those that answer 403.
    pub closed: usize,
}

/// The acts of the other program beyond its service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// It left its terminal.
    pub is_daemon: bool,
    /// It wrote its number there.
    pub pid_file: Option<PathBuf>,
    /// It wrote its messages there.
    pub log_file: Option<PathBuf>,
    /// It wrote its messages to the system's log, too, below this facility (a number of syslog.h).
    pub syslog: Option<u8>,
    /// It did not serve as root.
    pub refuses_root: bool,
}

impl Imported {
    /// The configuration that the text describes.
    ///
    /// # Errors
    /// Values that kettle does not take, where they were written.
    pub fn config(&self) -> Result<Config, Vec<Diagnostic>> {
        let parsed = kettle_config::parse_made(&self.toml, &self.path, self.origins.clone());
        let mut config =
            parsed.map_err(|diagnostics| self.nothing_left().unwrap_or(diagnostics))?;
        config.not_carried_over.clone_from(&self.warnings);
        config.folders_read.clone_from(&self.folders);
        Ok(config)
    }

    /// Returns the parts that were not carried over, each thing once, and the sum.
    #[must_use]
    pub fn summary(&self) -> String {
        let (lost, trifles) = self.warnings.split_at_checked(self.lost).unwrap_or_default();
        let mut text = String::new();
        for (heading, remarks) in [(output::LOST, lost), (output::TRIFLES, trifles)] {
            if !remarks.is_empty() {
                let each: String = each_once(remarks).map(|line| format!("  {line}\n")).collect();
                text.push_str(&format!("{heading}\n{each}\n"));
            }
        }
        if self.places.all > 0 {
            text.push_str(&format!("{}\n", self.places.sum()));
        }
        text.push_str(&match trifles.len() {
            0 => "Nothing else differs.\n".to_owned(),
            1 => "1 directive differs, as it says above.\n".to_owned(),
            count => format!("{count} directives differ, as they say above.\n"),
        });
        text
    }

    /// Returns the fault of a text where no connection leads to a site or a backend.
    fn nothing_left(&self) -> Option<Vec<Diagnostic>> {
        let leads = |line: &str| line == "[[site]]" || line.starts_with("backend = ");
        let is_left = self.warnings.is_empty() || self.toml.lines().any(leads);
        let origin = Origin { path: self.path.clone(), ..Origin::default() };
        let help = "nothing is written; each message names what left a server out";
        let message = "every server was left out, for the reasons above";
        (!is_left).then(|| vec![origin.diagnostic(message, Some(help.to_owned()))])
    }
}

/// Remarks as lines: what is said of several places once, with the first of them.
fn each_once(remarks: &[Diagnostic]) -> impl Iterator<Item = String> {
    let is_alike = |one: &Diagnostic, other: &Diagnostic| {
        one.message == other.message && one.help == other.help
    };
    remarks.iter().enumerate().filter_map(move |(position, remark)| {
        let (before, here) = remarks.split_at_checked(position)?;
        let again = here.iter().filter(|other| is_alike(remark, other)).count() - 1;
        let more = if again == 0 { String::new() } else { format!(" (and {again} more)") };
        let is_new = !before.iter().any(|other| is_alike(remark, other));
        is_new.then(|| toml_text::remark_line(remark) + &more)
    })
}
