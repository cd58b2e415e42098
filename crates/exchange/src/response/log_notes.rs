//! The notes for the log on an answer besides what the client sees. It decides nothing: a server that lost it would behave the
//! same.

use std::sync::Arc;
use std::time::Duration;

use kettle_runtime::access_log::Destination;
use kettle_upstream::Trace;

/// The notes for the log and the counters on an answer besides what the client sees. Nothing else may read it.
#[derive(Debug, Default)]
pub struct LogNotes {
    /// The user that asked, by name and password.
    pub user: Option<Arc<str>>,
    /// The reason why the route did not let the request pass.
    pub refusal: Option<&'static str>,
    /// The time in which a service said whether the request may go on, or did not.
    pub auth_time: Option<Duration>,
    /// The outcome of looking into a store.
    pub cache: Option<&'static str>,
    /// The outcome of asking a backend.
    pub upstream: Option<Trace>,
}

/// The log's words on an answer, apart from its delivery.
#[derive(Clone, Copy)]
pub struct Logged<'a> {
    /// The status, which no client has seen if it is 499.
    pub status: u16,
    /// The further notes.
    pub notes: Option<&'a LogNotes>,
    /// Which log has its line.
    pub destination: &'a Destination,
}
