//! The configuration in force, and how another takes its place: ask first, then commit all of it
//! or keep the old.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use kettle_config::{Config, Finding, Position};
use kettle_tls::tickets::SharedResumption;
use tokio::sync::watch;

use super::bind::{BoundAddress, bind};
use super::prepare::{Prepared, prepare};
use crate::access_log::AccessLog;
use crate::metrics::Metrics;
use crate::setup::{Listening, Snapshot};

/// What is in force, and the way to the workers.
pub struct Live {
    prepared: Prepared,
    bound: Vec<BoundAddress>,
    /// Ticket keys and sessions outlive every configuration, so that clients can go on resuming.
    resumption: SharedResumption,
    log: AccessLog,
    metrics: Arc<Metrics>,
    snapshots: Vec<watch::Sender<Arc<Snapshot>>>,
}

impl Live {
    /// Puts the first configuration in force for so many workers.
    pub fn new(
        prepared: Prepared,
        bound: Vec<BoundAddress>,
        resumption: SharedResumption,
        log: AccessLog,
        metrics: Arc<Metrics>,
    ) -> Self {
        let snapshots = (0..metrics.workers().len())
            .map(|worker| watch::Sender::new(Arc::new(snapshot(&prepared, &bound, worker))))
            .collect();
        Self { prepared, bound, resumption, log, metrics, snapshots }
    }

    /// Where a worker sees its snapshot change.
    pub fn subscribe(&self, worker: usize) -> Option<watch::Receiver<Arc<Snapshot>>> {
        Some(self.snapshots.get(worker)?.subscribe())
    }

    /// The configuration in force with all it needs.
    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// The addresses bound, in the order of the configuration.
    pub fn bound(&self) -> &[BoundAddress] {
        &self.bound
    }

    /// The access log.
    pub fn log(&self) -> &AccessLog {
        &self.log
    }

    /// Lets ticket keys change when their time is over, even if nobody connects.
    pub fn rotate_ticket_keys(&self) {
        self.resumption.rotate_if_due();
    }

    /// Reads the configuration file, certificates and keys again. A server that was configured by
    /// its command line reads its certificates again.
    ///
    /// # Errors
    ///
    /// Returns every mistake; the configuration in force has then not changed in any part.
    pub fn reload(&mut self) -> Result<(), Vec<Finding>> {
        let outcome = self.query().and_then(|(prepared, bound)| self.commit(prepared, bound));
        let counter = match &outcome {
            Ok(()) => &self.metrics.reloads_done,
            Err(_) => &self.metrics.reloads_refused,
        };
        counter.fetch_add(1, Relaxed);
        outcome
    }

    /// Everything that can fail and leaves no trace when it does.
    fn query(&self) -> Result<(Prepared, Vec<BoundAddress>), Vec<Finding>> {
        let in_force = &self.prepared.config;
        let config = if in_force.path.as_os_str().is_empty() {
            Config::clone(in_force)
        } else {
            read(&in_force.path)?
        };
        let prepared = prepare(config, &self.resumption, Some(&self.prepared))?;
        let bound = bind(&prepared.config, self.snapshots.len(), &self.bound)?;
        Ok((prepared, bound))
    }

    /// The log comes first: opening it is the last thing that can fail.
    fn commit(
        &mut self,
        mut prepared: Prepared,
        bound: Vec<BoundAddress>,
    ) -> Result<(), Vec<Finding>> {
        let config = &prepared.config;
        self.log.reconfigure(&config.log).map_err(|error| vec![log_finding(config, &error)])?;
        self.resumption.set_rotation_period(config.tls.ticket_rotation);
        for setting in changed_beyond_reload(&self.prepared.config, config) {
            prepared.warnings.push(config.finding(
                config.position_of(setting),
                "",
                format!("`{setting}` changes at the next start, not at a reload"),
                None,
            ));
        }
        for (worker, sender) in self.snapshots.iter().enumerate() {
            sender.send_replace(Arc::new(snapshot(&prepared, &bound, worker)));
        }
        self.prepared = prepared;
        self.bound = bound;
        Ok(())
    }
}

/// Reads and parses a configuration file.
///
/// # Errors
///
/// Returns every mistake in it, or the one that it cannot be read.
pub fn read(path: &Path) -> Result<Config, Vec<Finding>> {
    let bytes = std::fs::read(path).map_err(|error| {
        let message = format!("the configuration cannot be read: {error}");
        let instead = (error.kind() == std::io::ErrorKind::NotFound)
            .then(|| "name the file with --config; `kettle serve` needs none".to_owned());
        let finding = Config::default().finding(Position::NOT_WRITTEN, "", message, instead);
        vec![Finding { path: path.to_owned(), ..finding }]
    })?;
    kettle_config::parse_bytes(&bytes, path)
}

/// A mistake of `log.access` that only opening it shows.
pub(super) fn log_finding(config: &Config, error: &std::io::Error) -> Finding {
    config.finding(
        config.position_of("log.access"),
        "",
        format!("the access log cannot be opened: {error}"),
        Some("a file in a folder that the user kettle runs as may write".to_owned()),
    )
}

fn snapshot(prepared: &Prepared, bound: &[BoundAddress], worker: usize) -> Snapshot {
    let listeners = bound.iter().enumerate().filter_map(|(index, address)| {
        Some(Listening { socket: Arc::clone(address.sockets.get(worker)?), index })
    });
    Snapshot {
        config: Arc::clone(&prepared.config),
        router: Arc::clone(&prepared.router),
        tls: prepared.tls.clone(),
        listeners: listeners.collect(),
    }
}

/// The settings of the process itself that differ.
fn changed_beyond_reload(old: &Config, new: &Config) -> Vec<&'static str> {
    let (limits, new_limits) = (&old.limits, &new.limits);
    let differs = [
        ("server.workers", old.server.workers != new.server.workers),
        ("server.pin_workers", old.server.pin_workers != new.server.pin_workers),
        ("server.user", old.server.user != new.server.user),
        ("server.group", old.server.group != new.server.group),
        ("server.dumpable", old.server.dumpable != new.server.dumpable),
        ("log.level", old.log.level != new.log.level),
        ("admin.socket", old.admin.socket != new.admin.socket),
        ("metrics.listen", old.metrics.listen != new.metrics.listen),
        ("tls.session_cache", old.tls.session_cache != new.tls.session_cache),
        (
            "limits.handshakes_per_turn",
            limits.handshakes_per_turn != new_limits.handshakes_per_turn,
        ),
        ("limits.disk_timeout", limits.disk_timeout != new_limits.disk_timeout),
        ("limits.open_files", limits.open_files != new_limits.open_files),
        ("limits.hot_file", limits.hot_file_bytes != new_limits.hot_file_bytes),
        ("limits.hot_memory", limits.hot_memory_bytes != new_limits.hot_memory_bytes),
        ("limits.revalidate", limits.revalidate != new_limits.revalidate),
    ];
    differs.iter().filter(|(_, differs)| *differs).map(|(setting, _)| *setting).collect()
}

#[cfg(test)]
mod tests;
