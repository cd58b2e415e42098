//! Why a comparison could not be made, by what follows from it.

use std::fmt::{self, Display};
use std::io;
use std::path::PathBuf;

use kettle_loadgen::client::LoadError;

#[derive(Debug)]
pub enum BenchError {
    /// The options do not fit, or the machine cannot hold what was asked for; the text says what would mend it. It ends a scenario.
    Refused(String),
    /// A server or a load failed, or was not the one asked for: a line on what the run cannot show.
    Failed(String),
    /// A file cannot be read or written, or there is a bug: the run ends.
    Broken(String),
    /// The results file cannot be gone on with: the run ends, and nothing more is written there.
    Results(String),
    /// The user ended the run. The samples so far are kept.
    Stopped,
}

impl BenchError {
    pub fn server(subject: impl Display, why: impl Display) -> Self {
        Self::Failed(format!("{subject}: {why}"))
    }

    /// Returns the error of a file, for `map_err`.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Broken(format!("{}: {error}", path.display()))
    }

    pub fn bug(what: impl Display) -> Self {
        Self::Broken(format!("this is a bug in kettle: {what}"))
    }
}

impl Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) | Self::Failed(why) | Self::Broken(why) | Self::Results(why) => {
                f.write_str(why)
            }
            Self::Stopped => f.write_str("stopped; what was measured is kept"),
        }
    }
}

impl std::error::Error for BenchError {}

impl From<LoadError> for BenchError {
    fn from(error: LoadError) -> Self {
        Self::Failed(error.to_string())
    }
}
