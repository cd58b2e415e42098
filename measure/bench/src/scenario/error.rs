//! Why a comparison could not be made, by blame.

use std::fmt;
use std::io;
use std::path::PathBuf;

use kettle_loadgen::client::LoadError;

#[derive(Debug)]
pub enum BenchError {
    /// The options do not fit together or this scenario; the text says what to write instead.
    Options(String),
    /// The machine cannot hold what was asked for; the text names the limit and what would mend it.
    Machine(String),
    /// A server failed: it did not start, ended, or did not do what was measured.
    Server {
        subject: String,
        /// The failure, and what to look at.
        why: String,
    },
    /// The load could not be made, or was not the one asked for.
    Load(String),
    /// A file could not be read or written.
    File {
        path: PathBuf,
        source: io::Error,
    },
    /// The results file is not one that can be gone on with.
    Results(String),
    /// The user ended the run. The samples so far are kept.
    Stopped,
    Bug(String),
}

impl BenchError {
    /// Returns the error of a server.
    pub fn server(subject: impl fmt::Display, why: impl fmt::Display) -> Self {
        Self::Server { subject: subject.to_string(), why: why.to_string() }
    }

    /// Returns the error of a file, for `map_err`.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(what) | Self::Machine(what) | Self::Load(what) | Self::Results(what) => {
                f.write_str(what)
            }
            Self::Server { subject, why } => write!(f, "{subject}: {why}"),
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Stopped => f.write_str("stopped; what was measured is kept"),
            Self::Bug(what) => write!(f, "this is a bug in kettle: {what}"),
        }
    }
}

impl std::error::Error for BenchError {}

impl From<LoadError> for BenchError {
    fn from(error: LoadError) -> Self {
        Self::Load(error.to_string())
    }
}
