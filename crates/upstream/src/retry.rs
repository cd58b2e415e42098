//! The reasons for which a request is one for the next server, besides what no server can have seen.

use kettle_config::RetryOn;

use super::UpstreamError;

/// The answers and failures of servers for which another is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retries(u16);

impl Retries {
    /// Those of a configuration.
    #[must_use]
    pub fn new(on: &[RetryOn]) -> Self {
        Self(on.iter().fold(0, |all, it| all | bit(*it)))
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if an answer of this status is one.
    pub(crate) fn has_status(self, status: u16) -> bool {
        self.has(match status {
            403 => RetryOn::Forbidden,
            404 => RetryOn::NotFound,
            425 => RetryOn::TooEarly,
            429 => RetryOn::TooMany,
            500 => RetryOn::Internal,
            502 => RetryOn::BadGateway,
            503 => RetryOn::Unavailable,
            504 => RetryOn::GatewayTimeout,
            _ => return false,
        })
    }

    /// True if such a failure is one.
    pub(crate) fn has_error(self, error: &UpstreamError) -> bool {
        self.has(match error {
            UpstreamError::Ended(_) | UpstreamError::NotAnswered => RetryOn::Closed,
            UpstreamError::TimedOut => RetryOn::Timeout,
            UpstreamError::Malformed(_) | UpstreamError::Records(_) => RetryOn::Malformed,
            _ => return false,
        })
    }

    fn has(self, on: RetryOn) -> bool {
        self.0 & bit(on) != 0
    }
}

fn bit(on: RetryOn) -> u16 {
    1 << on as u16
}
