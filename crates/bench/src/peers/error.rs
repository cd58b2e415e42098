//! Why a server does not run.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::exit::START_PATIENCE;
use super::first_answer::NoAnswer;
use super::identity::IdentityError;
use super::subject::Program;

/// Why a server does not run.
#[derive(Debug)]
pub enum PeerError {
    /// A terminator without a backend.
    NoBackend,
    /// hitch is to keep responses, and what keeps them for it is not on this machine.
    NoVarnish,
    /// There is no certificate for it.
    Identity(IdentityError),
    /// There is no free port.
    NoPort(io::Error),
    /// A file for it could not be written.
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The operator's configuration cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The configuration holds a placeholder that stands for nothing.
    Placeholder(String),
    /// kettle does not take nginx' configuration over.
    NotImported(String),
    /// The program cannot be executed.
    NotStarted {
        /// The program.
        program: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// It takes no connections.
    Silent {
        /// The program.
        program: &'static str,
        /// What was seen.
        fault: Fault,
        /// The end of what it said.
        said: String,
    },
    /// It cannot be kept on its processors.
    Astray {
        /// The program.
        program: Program,
        /// The system's answer.
        source: io::Error,
    },
    /// It takes connections, but does not do on them what is to be measured.
    Useless {
        /// The program.
        program: Program,
        /// What it does not do.
        why: NoAnswer,
        /// The end of what it said.
        said: String,
    },
}

/// What was seen of a server that takes no connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It ended.
    Ended,
    /// It runs, but nobody answers where it should listen.
    DoesNotListen,
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBackend => f.write_str("a terminator needs a backend, and none was started"),
            Self::NoVarnish => f.write_str("there is no Varnish; apt-get install varnish"),
            Self::Identity(error) => write!(f, "{error}"),
            Self::NoPort(source) => write!(f, "no free port on 127.0.0.1: {source}"),
            Self::Unwritable { path, source } => {
                write!(f, "cannot write {}: {source}", path.display())
            }
            Self::Unreadable { path, source } => {
                write!(f, "cannot read {}: {source}", path.display())
            }
            Self::Placeholder(word) => write!(
                f,
                "the configuration has {word}, which stands for nothing; `kettle bench config` shows what there is"
            ),
            Self::NotImported(why) => f.write_str(why),
            Self::NotStarted { program, source } => write!(f, "cannot start {program}: {source}"),
            Self::Silent { program, fault: Fault::Ended, said } => {
                write!(f, "{program} ended at once; it said: {said}")
            }
            Self::Silent { program, fault: Fault::DoesNotListen, said } => {
                write!(f, "{program} took no connection within {START_PATIENCE:?}; it said: {said}")
            }
            Self::Astray { program, source } => {
                write!(f, "{program} does not stay on the processors it was given: {source}")
            }
            Self::Useless { program, why: NoAnswer::Failed(why), said } => {
                write!(f, "{program} runs, but a first request failed ({why}); it said: {said}")
            }
            Self::Useless { program, why: NoAnswer::StayedInUserSpace, said } => write!(
                f,
                "{program} stayed in user space: /proc/net/tls_stat did not move on its first connection; it said: {said}"
            ),
        }
    }
}

impl std::error::Error for PeerError {}
