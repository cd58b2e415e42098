//! The outcome of a request: a response, a tunnel, or nothing.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use kettle_config::TxPathChoice;
use kettle_runtime::access_log::Destination;
use kettle_runtime::client_address::ClientAddress;
use kettle_runtime::rate_limit::Counted;
use kettle_upstream::Link;
use kettle_upstream::backend::{Backend, Slot};

use super::{LogNotes, Logged, Response};

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

/// For the log: the client had gone. This number and the next are nginx's.
const CLIENT_GONE: u16 = 499;
/// For the log: the connection was closed without a response.
const CLOSED: u16 = 444;
