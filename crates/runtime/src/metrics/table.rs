//! Every counter of a worker, declared once: its shape, its name and help for Prometheus, its labels.
//!
//! A new one is a line here, and a call where it is counted. For `kettle ctl status` it has a line in `Counts` too, in
//! `admin::status` of the supervisor.

use std::fmt;

use super::counter::{By, Count, Durations, Gauge, Labelled, Lifetimes, Seconds, Shape, Statuses};
use super::writer::{Metric, MetricWriter};
use super::{KeyDirection, Label, Lookup};
use crate::tx_path::TxPath;

/// Declares counters: `field: Shape = "name", "help"`, and `by "label", …` where label values tell them apart.
macro_rules! counters {
    ($($field:ident: $shape:ty = $name:literal, $help:literal $(by $($label:literal),+)?;)+) => {
        /// The counters of one worker. Only that worker writes them.
        #[derive(Debug, Default)]
        pub struct WorkerMetrics {
            $(pub(super) $field: $shape,)+
        }

        /// The numbers at one moment. Each counter is read once, so sums may differ by what happened between two
        /// reads.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Numbers {
            $(#[doc = concat!($help, ".")] pub $field: <$shape as Shape>::Reading,)+
        }

        impl Numbers {
            /// Reads one worker's counters.
            #[must_use]
            pub fn of(worker: &WorkerMetrics) -> Self {
                Self { $($field: worker.$field.read(),)+ }
            }

            /// Adds another worker's numbers.
            pub fn add(&mut self, other: &Self) {
                $(<$shape>::add(&mut self.$field, &other.$field);)+
            }

            pub(super) fn write(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
                $(<$shape>::write(
                    &self.$field,
                    &Metric { name: $name, help: $help, labels: &[$($($label),+)?] },
                    writer,
                )?;)+
                Ok(())
            }
        }
    };
}

counters! {
    connections: Lifetimes = "connections", "Connections accepted";
    connections_rejected: Labelled<1, REASONS> =
        "connections_rejected", "Connections that could not be accepted by reason" by "reason";
    proxy_headers: Labelled<2, REASONS> =
        "proxy_headers", "PROXY headers by version and outcome" by "version", "outcome";
    handshakes: Labelled<2, HANDSHAKES> =
        "handshakes", "Finished handshakes by TLS version and resumption" by "version", "resumption";
    ticket_epochs: Labelled<1, EPOCHS> =
        "ticket_epochs", "Tickets of finished handshakes by whose key they are under" by "outcome";
    handshake_suites: Labelled<1, SUITES> =
        "handshake_suites", "Finished handshakes by cipher suite" by "suite";
    handshake_groups: Labelled<1, SUITES> =
        "handshake_groups", "Finished handshakes by key exchange group" by "group";
    handshakes_failed: Labelled<1, MANY_REASONS> =
        "handshakes_failed", "Failed handshakes by reason" by "reason";
    client_certificates: Labelled<1, REASONS> =
        "client_certificates", "Clients that were asked for a certificate by outcome" by "outcome";
    handshake_durations: Durations =
        "handshake_duration_seconds", "Time from accept to the end of the handshake";
    responses: Statuses<{ TxPath::WORDS.len() }> =
        "responses", "Responses by the path that encrypted them and by status" by "path", "status";
    response_bytes: By<TxPath, { TxPath::WORDS.len() }> =
        "response_bytes", "Bytes of heads and bodies before encryption by path" by "path";
    responses_truncated: Count =
        "responses_truncated", "Responses that ended before their announced length";
    http2_streams: Count = "http2_streams", "Requests that came over HTTP/2";
    http2_refused: Labelled<1, REASONS> =
        "http2_refused", "HTTP/2 connections and streams that were ended for what the client did by reason" by "reason";
    tunnels: Lifetimes = "tunnels", "Connections carried to a backend";
    tunnels_ended: Labelled<1, MANY_REASONS> =
        "tunnels_ended", "Tunnels that ended by what ended them" by "end";
    tunnel_bytes_to_client: By<TxPath, { TxPath::WORDS.len() }> =
        "tunnel_sent_bytes", "Bytes that tunnels carried to clients by the last path they took" by "path";
    tunnel_bytes_to_backend: By<TxPath, { TxPath::WORDS.len() }> =
        "tunnel_received_bytes", "Bytes that tunnels carried to backends by the last path they took" by "path";
    tunnel_durations: Durations = "tunnel_duration_seconds", "Time from accept to the end of a tunnel";
    not_preferred: Labelled<1, REASONS> =
        "responses_not_preferred", "Responses that did not take their preferred path by reason" by "reason";
    requests_refused: Labelled<1, REASONS> =
        "requests_refused", "Requests that a route did not let pass by reason" by "reason";
    auth_durations: Durations =
        "auth_duration_seconds", "Time in which a service said whether a request may go on or did not";
    request_durations: Durations =
        "request_duration_seconds", "Time from a complete request head to the last byte given to the kernel";
    switched: Count = "switches", "Connections whose sending side moved into the kernel";
    refused: Labelled<1, REASONS> = "refusals", "Switches and next keys the kernel refused by reason" by "reason";
    keys_updated: By<KeyDirection, { KeyDirection::WORDS.len() }> =
        "key_updates", "TLS 1.3 KeyUpdates by direction" by "direction";
    kernel_rekeys: Count =
        "kernel_rekeys", "New keys the kernel took on connections it encrypts for";
    open_files: Gauge = "open_files", "Files open now";
    file_lookups: By<Lookup, { Lookup::WORDS.len() }> =
        "file_lookups", "Lookups in the cache of open files by outcome" by "outcome";
    stalls: Count =
        "worker_stalls", "Turns of a worker during which other connections waited too long";
    stalled: Seconds = "worker_stalled_seconds", "Duration of these turns together";
}

impl Numbers {
    /// Responses sent by one path, whatever their status.
    #[must_use]
    pub fn responses_by(&self, path: TxPath) -> u64 {
        let of_path = self.responses.iter().filter(|((by, _), _)| *by == path.as_str());
        of_path.map(|(_, count)| count).sum()
    }
}

/// Room for reasons: the kernel's refusals, the tls crate's failures and a few to spare.
const REASONS: usize = 32;

/// Room for all that ends handshakes, or tunnels: alerts, mistakes, what servers and the configuration say.
const MANY_REASONS: usize = 64;

/// Room for TLS version × kind of resumption.
const HANDSHAKES: usize = 8;

/// Room for what a ticket's key may be.
const EPOCHS: usize = 4;

/// Room for suites (nine in rustls) and for groups.
const SUITES: usize = 12;
