//! The words on each request, whichever protocol it came by: its counters, its line in the log, and why its response was not
//! delivered.

use std::io::ErrorKind;
use std::time::{Instant, SystemTime};

use kettle_exchange::request::{Client, Head};
use kettle_exchange::response::{Logged, Nothing, Response};
use kettle_runtime::access_log::ResponseEntry;
use kettle_runtime::open_file::OpenFile;
use kettle_runtime::tx_path::TxPath;
use kettle_tls::Session;
use kettle_upstream::Trace;

use super::Connection;
use crate::deliver::{Delivered, DeliveryError};

/// When a request's head was complete, which of its connection it is, and whose.
pub(super) struct RequestStart {
    time: SystemTime,
    instant: Instant,
    number: u64,
    pub(super) client: Client,
}

impl RequestStart {
    pub(super) fn now(number: u64, client: Client) -> Self {
        Self { time: SystemTime::now(), instant: Instant::now(), number, client }
    }
}

impl Connection {
    /// Counts an answer, and writes its line; over plain HTTP there is no session.
    pub(super) fn log(
        &self,
        session: Option<&Session>,
        head: Option<&Head>,
        Logged { status, notes, destination }: Logged<'_>,
        bytes_sent: u64,
        delivered: &Delivered,
        start: &RequestStart,
    ) {
        let metrics = &self.worker.metrics;
        let duration = start.instant.elapsed();
        metrics.response(delivered.path, status, bytes_sent, duration);
        // A plain response has no preferred path.
        if let Some(reason) = delivered.reason.filter(|_| delivered.path != TxPath::Plain) {
            metrics.not_preferred(reason);
        }
        if !delivered.completed {
            metrics.response_truncated();
        }
        if let Some(reason) = notes.and_then(|notes| notes.refusal) {
            metrics.request_refused(reason);
        }
        if let Some(time) = notes.and_then(|notes| notes.auth_time) {
            metrics.auth_asked(time);
        }
        if !self.worker.log.is_on(destination) {
            return;
        }
        let entry = ResponseEntry {
            time: start.time,
            remote: start.client.address,
            host: head.and_then(|head| head.host_bytes()),
            method: head.map_or(&[], |head| head.method().as_str().as_bytes()),
            target: head.map_or(&[], |head| head.raw_target().as_bytes()),
            version: head.map_or("", |head| head.version().as_str()),
            status,
            user: notes.and_then(|notes| notes.user.as_deref()),
            refusal: notes.and_then(|notes| notes.refusal),
            cache: notes.and_then(|notes| notes.cache),
            upstream: notes.and_then(|notes| notes.upstream.as_ref()).map(Trace::entry),
            bytes_sent,
            body_bytes: delivered.body_bytes,
            path: delivered.path,
            reason: delivered.reason,
            session,
            referer: head.and_then(|head| head.header("referer")),
            user_agent: head.and_then(|head| head.header("user-agent")),
            duration,
            connection: self.number,
            request_number: start.number,
            request_id: &start.client.request_id,
            completed: delivered.completed,
        };
        self.worker.log.record(destination, &entry);
    }

    /// Logs a request whose client did not wait for its response.
    pub(super) fn log_unsent(
        &self,
        session: Option<&Session>,
        head: &Head,
        nothing: &Nothing,
        start: &RequestStart,
    ) {
        self.log(session, Some(head), nothing.logged(), 0, &Delivered::NOTHING, start);
    }

    pub(super) fn log_delivery_failure(&self, error: &DeliveryError, response: &Response) {
        match error {
            DeliveryError::BodyCutShort(error) if error.kind() == ErrorKind::StorageFull => {
                tracing::debug!(remote = %self.remote, "a store took no more of a response");
            }
            DeliveryError::BodyCutShort(error) if response.body.is_arriving() => {
                let trace = response.notes.as_ref().and_then(|notes| notes.upstream.as_ref());
                let entry = trace.map(Trace::entry);
                let backend = entry.as_ref().and_then(|entry| entry.backend);
                let server = entry.as_ref().and_then(|entry| entry.server);
                tracing::debug!(
                    remote = %self.remote, backend, server, %error, "a server did not end its response"
                );
            }
            DeliveryError::BodyCutShort(error) => {
                let file = response.body.file().and_then(OpenFile::path).unwrap_or_default();
                tracing::warn!(
                    remote = %self.remote, ?file, %error, "a body ended before its announced length"
                );
            }
            DeliveryError::Stalled => {
                tracing::debug!(remote = %self.remote, "the peer took nothing for too long");
            }
            DeliveryError::Stream(error) => {
                tracing::debug!(remote = %self.remote, %error, "a response was not delivered");
            }
        }
    }
}
