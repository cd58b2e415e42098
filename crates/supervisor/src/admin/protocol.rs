//! The language of the control socket: one JSON object a line, one answer for each request.

use std::fmt;

use kettle_config::Diagnostic;
use kettle_runtime::tx_path::switch::TxPathOverride;
use serde::{Deserialize, Serialize};

use super::acme::{AcmeRequest, AcmeStatus};
use super::backends::BackendsStatus;
use super::caches::{CachesStatus, PurgeBy};
use super::status::Status;
use super::tunnels::TunnelsScreen;
use kettle_server::open_tunnels::TunnelOrder;

/// The requests of `kettle ctl` to a running server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Request {
    /// The live numbers.
    Status,
    /// Read the configuration and the certificates again.
    Reload,
    /// Open the access log again by its name.
    Reopen,
    /// Set the switch for new connections.
    Path {
        /// The paths on which their records may be encrypted.
        #[serde(rename = "placement")]
        tx_path: TxPathOverride,
    },
    /// The backends and their servers.
    Backends,
    /// The disk stores.
    Caches,
    /// Forget responses in them.
    Purge {
        /// By what.
        by: PurgeBy,
        /// Which.
        text: String,
    },
    /// Open tunnels.
    Tunnels {
        /// The number of them to be told one by one.
        top: usize,
        /// Which ones.
        by: TunnelOrder,
    },
    /// Let a server of a backend have no new connections, or have them again.
    Drain {
        /// The backend.
        backend: String,
        /// The server's name.
        server: String,
        /// True if it is to have none.
        is_draining: bool,
    },
    /// Certificates that are fetched.
    Acme {
        /// The request about them.
        request: AcmeRequest,
    },
    /// Finish the requests in flight and end.
    Stop,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Reply {
    /// It is done.
    Done {
        /// The result, for a person.
        message: String,
        /// The parts of the configuration now in force that will not do as they should.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    /// It was not done; the server goes on as before.
    Refused {
        /// Why, for a person.
        message: String,
        /// The mistakes in the configuration, if that is the reason.
        #[serde(default, rename = "findings", skip_serializing_if = "Vec::is_empty")]
        diagnostics: Vec<String>,
    },
    /// The live numbers.
    Status(Box<Status>),
    /// The backends and their servers.
    Backends {
        /// In the order of the configuration.
        backends: BackendsStatus,
    },
    /// The disk stores.
    Caches {
        /// In the order of the configuration.
        caches: CachesStatus,
    },
    /// The state of certificates that are fetched.
    Acme {
        /// Their number, and some of them one by one.
        certificates: AcmeStatus,
    },
    /// Some of the records that have to be in the DNS for them, as lines of a zone file.
    DnsRecords {
        /// The lines.
        records: Vec<String>,
        /// The number of the first one that is not among these, if there is one.
        next: Option<usize>,
    },
    /// Open tunnels.
    Tunnels {
        /// Their number, and some of them one by one.
        tunnels: TunnelsScreen,
    },
}

impl Reply {
    /// It is done, and nothing is to be warned of.
    pub fn done(message: impl fmt::Display) -> Self {
        Reply::Done { message: message.to_string(), warnings: Vec::new() }
    }

    /// It is done, and this is to be warned of.
    pub fn done_with(message: String, warnings: &[Diagnostic]) -> Self {
        Reply::Done { message, warnings: told(warnings) }
    }

    /// The refusal of a configuration.
    pub fn mistaken(diagnostics: &[Diagnostic]) -> Self {
        let message = "the configuration has mistakes; the old one stays in force".to_owned();
        Reply::Refused { message, diagnostics: told(diagnostics) }
    }

    /// A refusal without diagnostics.
    pub fn refused(message: impl fmt::Display) -> Self {
        Reply::Refused { message: message.to_string(), diagnostics: Vec::new() }
    }
}

/// Diagnostics for a person, as many as an answer has room for.
fn told(diagnostics: &[Diagnostic]) -> Vec<String> {
    let mut told: Vec<_> =
        diagnostics.iter().take(DIAGNOSTICS_MAX).map(Diagnostic::to_string).collect();
    let left_out = diagnostics.len() - told.len();
    if left_out > 0 {
        told.push(format!("and {left_out} more: `kettle check` shows them all"));
    }
    told
}

/// Reads a request line.
///
/// # Errors
///
/// Says what a request looks like.
pub fn parse_request(line: &[u8]) -> Result<Request, RequestSyntaxError> {
    serde_json::from_slice(line).map_err(|error| RequestSyntaxError(error.to_string()))
}

/// Writes a request or an answer as one line. Line feeds inside strings are escaped by JSON.
///
/// # Errors
///
/// Fails only if the value cannot be JSON, which none of ours is.
pub fn to_line(message: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// A line was not a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSyntaxError(String);

impl fmt::Display for RequestSyntaxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "this is no request ({}); one is {{\"command\":\"status\"}}", self.0)
    }
}

impl std::error::Error for RequestSyntaxError {}

/// A longer request line is refused: the longest URL that clients may ask for (`limits.target`) fits, as JSON.
pub const REQUEST_BYTES_MAX: usize = 128 * 1024;

/// A longer answer is not believed to come from a server of ours.
pub const REPLY_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Nobody reads more of them. Each has a path, a line of the file and some sentences: together they are well below
/// [`REPLY_BYTES_MAX`].
const DIAGNOSTICS_MAX: usize = 1_000;
