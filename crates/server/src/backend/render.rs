//! The counters of backends as text for Prometheus. Their labels are the operator's names, so they stand with the servers
//! and not in the table of the workers.

use std::fmt;

use tokio::time::Instant;

use super::failure::Outcome;
use super::state::CheckOutcome;
use super::status::Health;
use super::upstream_counts::UpstreamCounts;
use super::{Backend, Backends, Server};
use crate::metrics::{Label, Metric, NamedCounters, Shape, Writer};

impl NamedCounters for Backends {
    fn write(&self, writer: &mut Writer<'_>) -> fmt::Result {
        if self.backends.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        writer
            .counters(&CONNECTS, self.by_outcome(Outcome::WORDS, |it| it.state.connects.read()))?;
        let times = self.iter().map(|it| {
            let times = it.shared.connect_times.read();
            (vec![&*it.name], times.by_bound(), times.sum)
        });
        writer.durations_by(&CONNECT_SECONDS, times)?;
        let is_up = |it: &Server| u64::from(it.health(now) == Health::Up);
        writer.gauges(&UP, self.by_server(is_up))?;
        writer.gauges(&CONNECTIONS, self.by_server(|it| it.state.connections().into()))?;
        let waiting = |it: &Backend| u64::try_from(it.waiting()).unwrap_or(u64::MAX);
        writer.gauges(&QUEUE, self.iter().map(|it| (vec![&*it.name], waiting(it))))?;
        let forced = self.iter().map(|it| (vec![&*it.name], it.shared.forced.read()));
        writer.counters(&FORCED, forced)?;
        let checks = self.by_outcome(CheckOutcome::WORDS, |it| it.state.checks.read());
        writer.counters(&CHECKS, checks)?;
        let upstream = |it: &'static str, count: fn(&UpstreamCounts) -> u64| {
            self.iter()
                .map(move |backend| (vec![&*backend.name, it], count(&backend.shared.upstream)))
        };
        let active = upstream("active", |it| it.active.read().now());
        let idle = upstream("idle", |it| it.idle.read().now());
        writer.gauges(&UPSTREAM_CONNECTIONS, active.chain(idle))?;
        let statuses = self.iter().flat_map(|it| {
            let counted = it.shared.upstream.responses();
            counted.map(|(status, count)| (vec![it.name.to_string(), status.to_string()], count))
        });
        writer.counters(&UPSTREAM_RESPONSES, statuses)?;
        let retries = self.iter().map(|it| (vec![&*it.name], it.shared.upstream.retries.read()));
        writer.counters(&UPSTREAM_RETRIES, retries)
    }
}

impl Backends {
    fn by_server<T>(&self, value: impl Fn(&Server) -> T) -> impl Iterator<Item = (Vec<&str>, T)> {
        let servers = self
            .iter()
            .flat_map(|backend| backend.servers.iter().map(move |server| (&*backend.name, server)));
        servers.map(move |(backend, server)| (vec![backend, &*server.name], value(server)))
    }

    fn by_outcome<const VALUES: usize>(
        &self,
        words: &'static [&'static str],
        counts: impl Fn(&Server) -> [u64; VALUES],
    ) -> impl Iterator<Item = (Vec<&str>, u64)> {
        self.by_server(counts).flat_map(move |(labels, counts)| {
            let counted = words.iter().zip(counts).filter(|(_, count)| *count > 0);
            counted
                .map(move |(word, count)| ([labels.as_slice(), &[*word]].concat(), count))
                .collect::<Vec<_>>()
        })
    }
}

const CONNECTS: Metric = Metric {
    name: "backend_connects",
    help: "Connects to servers of backends by outcome",
    labels: &["backend", "server", "outcome"],
};

const CONNECT_SECONDS: Metric = Metric {
    name: "backend_connect_seconds",
    help: "Time a server took for a connection, its TLS handshake included",
    labels: &["backend"],
};

const UP: Metric = Metric {
    name: "backend_up",
    help: "Whether a server gets connections",
    labels: &["backend", "server"],
};

const CONNECTIONS: Metric = Metric {
    name: "backend_connections",
    help: "Connections to a server now",
    labels: &["backend", "server"],
};

const QUEUE: Metric = Metric {
    name: "backend_queue",
    help: "Connections that wait for a slot on a server",
    labels: &["backend"],
};

const FORCED: Metric = Metric {
    name: "backend_forced",
    help: "Connects to servers that are out, because all are",
    labels: &["backend"],
};

const CHECKS: Metric = Metric {
    name: "backend_checks",
    help: "Health checks of servers by outcome",
    labels: &["backend", "server", "outcome"],
};

const UPSTREAM_CONNECTIONS: Metric = Metric {
    name: "upstream_connections",
    help: "Connections that routes have to servers now, in use and kept for the next request",
    labels: &["backend", "state"],
};

const UPSTREAM_RESPONSES: Metric = Metric {
    name: "upstream_responses",
    help: "Responses that servers gave to requests of routes by status",
    labels: &["backend", "status"],
};

const UPSTREAM_RETRIES: Metric = Metric {
    name: "upstream_retries",
    help: "Requests sent again because a kept connection had been closed",
    labels: &["backend"],
};
