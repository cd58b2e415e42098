//! The end of a tunnel, as it is logged and counted.

use kettle_tls::stream::StreamError;

/// Whose end of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    Client,
    Backend,
}

/// The end of a tunnel: of orderly ends the first, and before all what went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TunnelEnd {
    /// The client said all it wanted.
    ClientClosed,
    /// The backend said all it wanted.
    BackendClosed,
    /// The client's connection ended without a close_notify.
    ClientCut,
    /// The backend's connection ended without a close_notify.
    BackendCut,
    /// The client's connection failed.
    ClientReset,
    /// The backend's connection failed.
    BackendReset,
    /// One of them broke TLS in this way.
    Violation(Party, &'static str),
    /// One of them asked for a key that the kernel cannot change to.
    KeyRefused(Party),
    /// The sending to one of them has reached the limit of its key, which cannot be changed: in TLS 1.2, and by a kernel that does
    /// not change keys.
    KeyExhausted(Party),
    /// The bytes to one of them could not be encrypted any longer, for this reason.
    Failed(Party, &'static str),
    /// Nothing went either way for too long.
    Idle,
    /// It lasted as long as a tunnel may.
    TooLong,
    /// The server stops.
    Draining,
}

impl Party {
    pub(super) fn other(self) -> Self {
        match self {
            Self::Client => Self::Backend,
            Self::Backend => Self::Client,
        }
    }
}

impl TunnelEnd {
    /// The word used in logs and metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::ClientClosed => "client_closed",
            Self::BackendClosed => "backend_closed",
            Self::ClientCut => "client_cut",
            Self::BackendCut => "backend_cut",
            Self::ClientReset => "client_reset",
            Self::BackendReset => "backend_reset",
            Self::Violation(Party::Client, _) => "client_violation",
            Self::Violation(Party::Backend, _) => "backend_violation",
            Self::KeyRefused(_) => "key_refused",
            Self::KeyExhausted(_) => "key_exhausted",
            Self::Failed(_, _) => "failed",
            Self::Idle => "idle",
            Self::TooLong => "too_long",
            Self::Draining => "server_stopping",
        }
    }

    /// The end of a tunnel of which this connection failed.
    pub(super) fn failed(party: Party, error: &StreamError) -> Self {
        match (error, party) {
            (StreamError::Violation(violation), _) => Self::Violation(party, violation.what),
            (StreamError::Io(_) | StreamError::AlertReceived(_), Party::Client) => {
                Self::ClientReset
            }
            (StreamError::Io(_) | StreamError::AlertReceived(_), Party::Backend) => {
                Self::BackendReset
            }
            (StreamError::KeyExhausted, _) => Self::KeyExhausted(party),
            (error, _) => Self::Failed(party, error.reason()),
        }
    }

    pub(crate) fn closed_by(party: Party) -> Self {
        match party {
            Party::Client => Self::ClientClosed,
            Party::Backend => Self::BackendClosed,
        }
    }

    /// True if somebody said that this was all.
    pub(super) fn is_orderly(self) -> bool {
        matches!(self, Self::ClientClosed | Self::BackendClosed)
    }

    /// True if this only says how the client left.
    pub(super) fn is_disconnect(self) -> bool {
        matches!(self, Self::ClientCut | Self::ClientReset)
    }
}
