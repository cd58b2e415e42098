//! Why a load could not be carried out at all. A failure within a load is counted in its outcome instead.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use super::failure::Failure;

#[derive(Debug)]
pub enum LoadError {
    /// The load contradicts itself.
    Senseless(&'static str),
    /// Too few files may be open.
    Descriptors { needed: u64, limit: u64 },
    /// Too few ports.
    Ports { needed: u64, available: u64, sources: u64 },
    /// The limit on open files cannot be raised.
    Limit(io::Error),
    /// Not one connection could be opened.
    Unreachable { target: SocketAddr, failure: Failure },
    /// TLS as it is offered cannot be set up.
    Tls(String),
    /// A thread of the client could not be started.
    Thread(io::Error),
    /// A bug: a thread of the client ended without a result.
    Bug(&'static str),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Senseless(what) => write!(f, "this load cannot be carried out: {what}"),
            LoadError::Descriptors { needed, limit } => write!(
                f,
                "the load needs {needed} open files and this process may have {limit}; raise it with `ulimit -Hn {needed}` as root, or use fewer connections"
            ),
            LoadError::Ports { needed, available, sources } => write!(
                f,
                "the load needs {needed} ports and has {available} with {sources} source addresses; use more source addresses or widen net.ipv4.ip_local_port_range"
            ),
            LoadError::Limit(error) => {
                write!(f, "the limit on open files cannot be raised: {error}")
            }
            LoadError::Unreachable { target, failure } => {
                write!(f, "no connection to {target} could be opened: {failure}")
            }
            LoadError::Tls(what) => write!(f, "the client cannot offer this TLS: {what}"),
            LoadError::Thread(error) => write!(f, "a thread of the client failed: {error}"),
            LoadError::Bug(what) => write!(f, "bug: {what}"),
        }
    }
}

impl std::error::Error for LoadError {}
