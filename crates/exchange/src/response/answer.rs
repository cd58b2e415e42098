//! The outcome of a request: a response, a tunnel, or nothing; the guards that end with it, and apart from them the log's notes,
//! which decide nothing: a server that lost them would behave the same.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use kettle_config::TxPathChoice;
use kettle_runtime::access_log::Destination;
use kettle_runtime::client_address::ClientAddress;
use kettle_runtime::rate_limit::Counted;
use kettle_upstream::backend::{Backend, Slot};
use kettle_upstream::{Link, Trace};
use tokio::sync::watch;

use super::Response;

/// The outcome of a request.
#[derive(Debug)]
pub enum Answer {
    /// A response is sent.
    Response(Response),
    /// The head of a response is sent, and behind it the client's side becomes a tunnel.
    Tunnel(Response, Box<Upgraded>),
    /// Nothing is sent, and the connection ends.
    Nothing(Nothing),
}

impl From<Response> for Answer {
    fn from(response: Response) -> Self {
        Self::Response(response)
    }
}

impl Answer {
    /// The response that is sent, or the head of one.
    pub fn response_mut(&mut self) -> Option<&mut Response> {
        match self {
            Self::Response(response) | Self::Tunnel(response, _) => Some(response),
            Self::Nothing(_) => None,
        }
    }
}

/// A request that gets no response, as the log has it.
#[derive(Debug)]
pub struct Nothing {
    /// The number in the log in the place of a status.
    status: u16,
    /// The notes on it; most have nothing.
    pub notes: Option<Box<LogNotes>>,
    /// Which log has its line.
    pub log: Destination,
}

impl Nothing {
    /// The client went away before there was a response.
    pub fn client_gone() -> Self {
        Self { status: CLIENT_GONE, notes: None, log: Destination::default() }
    }

    /// The configuration says that there is none.
    pub fn closed() -> Self {
        Self { status: CLOSED, ..Self::client_gone() }
    }

    /// True if the client is there still.
    pub fn has_client(&self) -> bool {
        self.status == CLOSED
    }

    /// Returns the log's words on it.
    pub fn logged(&self) -> Logged<'_> {
        let Self { status, notes, log } = self;
        Logged { status: *status, notes: notes.as_deref(), destination: log }
    }
}

/// The server's side of a tunnel that a response begins.
pub struct Upgraded {
    /// The connection.
    pub link: Link,
    /// The bytes of the server behind its response.
    pub received: Vec<u8>,
    /// Counts it on its server.
    pub slot: Slot,
    /// Whose it is.
    pub backend: Arc<Backend>,
    /// Its place among the requests of its client, until it ends.
    pub client_place: Option<Rc<Counted>>,
    /// The place where its records are to be encrypted: known once the response is sent.
    pub path: TxPathChoice,
    /// Which log has its line: that of the response.
    pub log: Destination,
    /// The client that asked for it.
    pub client: ClientAddress,
}

impl fmt::Debug for Upgraded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Upgraded").field("slot", &self.slot).finish_non_exhaustive()
    }
}

/// The guards that are held for a request until its response is sent or given up. Each part acts by being dropped.
#[derive(Debug, Default)]
pub struct Held {
    /// The request's places among those of its client. A fetch that the request began shares them.
    pub client_place: Option<Rc<Counted>>,
    /// The end of a write that goes on beside its response: what was stored in the meantime is invalidated then.
    pub invalidation: Option<Box<watch::Sender<()>>>,
}

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

/// For the log: the client had gone. This number and the next are nginx's.
const CLIENT_GONE: u16 = 499;
/// For the log: the connection was closed without a response.
const CLOSED: u16 = 444;
