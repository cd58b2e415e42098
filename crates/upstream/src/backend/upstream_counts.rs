//! The counts of routes at a backend's servers: connections in use and kept, responses, requests sent again.

use std::sync::Arc;

use kettle_runtime::metrics::{Count, Lifetimes, Shape};

use super::{Backend, BackendShared};

/// The counts of all workers.
#[derive(Debug)]
pub(super) struct UpstreamCounts {
    pub(super) active: Lifetimes,
    pub(super) idle: Lifetimes,
    pub(super) retries: Count,
    /// By status, from [`STATUS_MIN`].
    responses: Box<[Count]>,
}

impl Default for UpstreamCounts {
    fn default() -> Self {
        Self {
            active: Lifetimes::default(),
            idle: Lifetimes::default(),
            retries: Count::default(),
            responses: (0..STATUSES).map(|_| Count::default()).collect(),
        }
    }
}

/// Counts a connection for as long as it is kept.
#[derive(Debug)]
pub struct UseCount {
    shared: Arc<BackendShared>,
    is_idle: bool,
}

impl UpstreamCounts {
    /// Returns the number of responses of each status that came at all.
    pub(super) fn responses(&self) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.responses.iter().map(Shape::read).enumerate();
        counts.filter(|(_, count)| *count > 0).map(|(index, count)| (STATUS_MIN + index, count))
    }
}

impl Backend {
    /// A server of its gave a response.
    pub(crate) fn upstream_answered(&self, status: u16) {
        let index = usize::from(status).checked_sub(STATUS_MIN);
        let count = index.and_then(|index| self.shared.upstream.responses.get(index));
        count.inspect(|count| count.add_many(1));
    }

    /// A request is sent again.
    pub(crate) fn upstream_retried(&self) {
        self.shared.upstream.retries.add_many(1);
    }
}

impl UseCount {
    /// Of a connection with a request on it.
    #[must_use]
    pub fn active(backend: &Backend) -> Self {
        Self::new(backend, false)
    }

    /// Of a connection that is kept for one.
    #[must_use]
    pub fn idle(backend: &Backend) -> Self {
        Self::new(backend, true)
    }

    fn new(backend: &Backend, is_idle: bool) -> Self {
        let count = Self { shared: Arc::clone(&backend.shared), is_idle };
        count.lifetimes().begin();
        count
    }

    fn lifetimes(&self) -> &Lifetimes {
        let counts = &self.shared.upstream;
        if self.is_idle { &counts.idle } else { &counts.active }
    }
}

impl Drop for UseCount {
    fn drop(&mut self) {
        self.lifetimes().end();
    }
}

/// The statuses that a response may have.
const STATUS_MIN: usize = 100;
const STATUSES: usize = 900;
