//! Why a load could not be carried out at all. A failure within a load is counted in its outcome instead.

use std::fmt::{self, Display};
use std::net::SocketAddr;

use super::failure::Failure;

#[derive(Debug)]
pub enum LoadError {
    /// The load contradicts itself, or this machine cannot hold it; the text says what to do.
    Impossible(String),
    /// Not one connection could be opened.
    Unreachable { target: SocketAddr, failure: Failure },
    /// A bug: a thread of the client ended without a result.
    Bug(&'static str),
}

impl LoadError {
    pub(super) fn senseless(what: &str) -> Self {
        Self::Impossible(format!("this load cannot be carried out: {what}"))
    }

    pub(super) fn of_thread(error: impl Display) -> Self {
        Self::Impossible(format!("a thread of the client failed: {error}"))
    }
}

impl Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Impossible(why) => f.write_str(why),
            Self::Unreachable { target, failure } => {
                write!(f, "no connection to {target} could be opened: {failure}")
            }
            Self::Bug(what) => write!(f, "bug: {what}"),
        }
    }
}

impl std::error::Error for LoadError {}
