//! Every counter of backends, declared once: what it is called towards Prometheus, and where it is read.
//!
//! Their labels are the operator's names, so they stand with the servers and not in the table of the workers.

use std::fmt;

use kettle_runtime::metrics::{Label, MetricWriter, NamedCounters, Shape};
use kettle_runtime::write_named;
use tokio::time::Instant;

use super::failure::Outcome;
use super::state::CheckOutcome;
use super::status::Health;
use super::upstream_counts::UpstreamCounts;
use super::{Backend, Backends, Server};

impl NamedCounters for Backends {
    fn write(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        if self.backends.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        let is_up = |it: &Server| u64::from(it.health(now) == Health::Up);
        let waiting = |it: &Backend| u64::try_from(it.waiting()).unwrap_or(u64::MAX);
        let active = self.by_state("active", |it| it.active.read().now());
        let idle = self.by_state("idle", |it| it.idle.read().now());
        write_named! { writer:
            counters "backend_connects", "Connects to servers of backends by outcome" by "backend", "server", "outcome" =
                self.by_outcome(Outcome::WORDS, |it| it.state.connects.read());
            durations_by "backend_connect_seconds", "Time a server took for a connection, its TLS handshake included" by "backend" =
                self.iter().map(|it| {
                    let times = it.shared.connect_times.read();
                    (vec![&*it.name], times.by_bound(), times.sum)
                });
            gauges "backend_up", "Whether a server gets connections" by "backend", "server" = self.by_server(is_up);
            gauges "backend_connections", "Connections to a server now" by "backend", "server" =
                self.by_server(|it| it.state.connections().into());
            gauges "backend_queue", "Connections that wait for a slot on a server" by "backend" = self.by_backend(waiting);
            counters "backend_forced", "Connects to servers that are out, because all are" by "backend" =
                self.by_backend(|it| it.shared.forced.read());
            counters "backend_checks", "Health checks of servers by outcome" by "backend", "server", "outcome" =
                self.by_outcome(CheckOutcome::WORDS, |it| it.state.checks.read());
            gauges "upstream_connections", "Connections that routes have to servers now, in use and kept for the next request"
                by "backend", "state" = active.chain(idle);
            counters "upstream_responses", "Responses that servers gave to requests of routes by status" by "backend", "status" =
                self.iter().flat_map(|it| {
                    let counted = it.shared.upstream.responses();
                    counted.map(|(status, count)| (vec![it.name.to_string(), status.to_string()], count))
                });
            counters "upstream_retries", "Requests sent again because a kept connection had been closed" by "backend" =
                self.by_backend(|it| it.shared.upstream.retries.read());
        }
        Ok(())
    }
}

impl Backends {
    fn by_backend(&self, value: fn(&Backend) -> u64) -> impl Iterator<Item = (Vec<&str>, u64)> {
        self.iter().map(move |it| (vec![&*it.name], value(it)))
    }

    fn by_state<'a>(
        &'a self,
        state: &'a str,
        count: fn(&UpstreamCounts) -> u64,
    ) -> impl Iterator<Item = (Vec<&'a str>, u64)> {
        self.iter().map(move |it| (vec![&*it.name, state], count(&it.shared.upstream)))
    }

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
