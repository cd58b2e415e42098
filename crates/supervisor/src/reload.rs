//! The configuration in force, and how another takes its place: ask first, then commit all of it
//! or keep the old.
//!
//! Whatever may wait for a disk happens on other threads; the commit itself waits for nothing.

use std::collections::HashSet;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use kettle_config::{Config, Diagnostic, ListenAddress};
use kettle_kernel::{keeper, warden};
use kettle_runtime::access_log::{AccessLog, LogError};
use kettle_runtime::encoder::EncoderPermits;
use kettle_runtime::metrics::Metrics;
use kettle_tls::tickets::SharedResumption;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::timeout;

use super::admin::STOPPING;
use super::bind::{BoundAddress, bind, configure};
use super::prepare::{LoadFor, LoadedConfig, prepare};
use super::resources::Resources;
use super::retired::Retired;
use super::sandbox::Sandbox;
use kettle_server::setup::{Listening, Served, Snapshot};

/// The configuration in force, and the way to the workers.
pub struct RunningConfig {
    loaded: Arc<LoadedConfig>,
    /// The configuration with which the process was started: some settings stay as they are in it.
    started: Config,
    bound: Vec<BoundAddress>,
    resources: Resources,
    /// The configurations that were in force: connections may not have left them yet.
    retired: Retired<Served>,
    /// Sockets that reloads have given up: workers may not have left them yet.
    leaving: Vec<Weak<TcpListener>>,
    sandbox: Arc<Sandbox>,
    /// Ticket keys and sessions outlive every configuration, so that clients can go on resuming.
    resumption: SharedResumption,
    log: Arc<AccessLog>,
    metrics: Arc<Metrics>,
    snapshots: Vec<watch::Sender<Arc<Snapshot>>>,
    loader: Option<Loader>,
    /// Held by the thread that reads a configuration, for as long as it lives.
    reader: Arc<Semaphore>,
    /// True if the server is about to end: nothing is put in force any more.
    is_stopping: Arc<AtomicBool>,
}

/// The source of the configuration: asked at every reload, on a thread that may wait.
pub type Loader = Arc<dyn Fn() -> Result<Config, Vec<Diagnostic>> + Send + Sync>;

/// The files that a reload reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadScope {
    /// The configuration file, and all that it names.
    Configuration,
    /// The files that the configuration in force names. If its own file has changed meanwhile, that waits until a reload is
    /// asked for.
    Renewal,
}

/// A configuration to be put in force: nothing but its commit is left to do.
pub struct BoundConfig {
    loaded: LoadedConfig,
    bound: Vec<BoundAddress>,
}

impl RunningConfig {
    /// Puts the first configuration in force for this many workers.
    pub fn new(
        loaded: LoadedConfig,
        bound: Vec<BoundAddress>,
        resources: Resources,
        resumption: SharedResumption,
        log: AccessLog,
        metrics: Arc<Metrics>,
        loader: Option<Loader>,
    ) -> Self {
        // Its backends and stores take the place of none, so `put_in_force` has nothing to do.
        announce(&loaded, &bound, &resumption, &metrics);
        let snapshots = (0..metrics.workers().len())
            .map(|worker| watch::Sender::new(Arc::new(snapshot(&loaded, &bound, worker))))
            .collect();
        Self {
            started: loaded.served.config.of_process(),
            loaded: Arc::new(loaded),
            bound,
            retired: Retired::default(),
            leaving: Vec::new(),
            resources,
            sandbox: Arc::default(),
            resumption,
            log: Arc::new(log),
            metrics,
            snapshots,
            loader,
            reader: Arc::new(Semaphore::new(1)),
            is_stopping: Arc::default(),
        }
    }

    /// The same in a process that can do less since its start, which reloads must know.
    pub fn within(self, sandbox: Sandbox) -> Self {
        Self { sandbox: Arc::new(sandbox), ..self }
    }

    /// Returns the receiver by which a worker sees its snapshot change.
    pub fn subscribe(&self, worker: usize) -> Option<watch::Receiver<Arc<Snapshot>>> {
        Some(self.snapshots.get(worker)?.subscribe())
    }

    /// The configuration in force with all it needs.
    pub fn loaded(&self) -> &LoadedConfig {
        &self.loaded
    }

    /// The addresses bound, in the order of the configuration.
    pub fn bound(&self) -> &[BoundAddress] {
        &self.bound
    }

    /// The permits of all workers' encoders, for which the start has reckoned the memory.
    pub fn encoder_permits(&self) -> EncoderPermits {
        self.resources.encoder_permits()
    }

    /// Returns the rights that this process gave up at its start.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The access log.
    pub fn log(&self) -> &Arc<AccessLog> {
        &self.log
    }

    /// Has what was in force before dropped, once no connection has it any more.
    pub fn drop_retired(&mut self) {
        self.retired.drop_unused();
    }

    /// Lets ticket keys change when their time is over, even if nobody connects.
    pub fn rotate_ticket_keys(&self) {
        self.resumption.rotate_if_due();
    }

    /// Says that the server is about to end: from now on no candidate comes of a reload, and no log is opened anew.
    pub fn stop(&self) {
        self.is_stopping.store(true, Relaxed);
    }

    /// Reads `scope` again on a thread of its own, and opens the log at its new place, if it has one. Opening the log is the one
    /// step that is not undone if the candidate is not put in force: that only happens when the server is stopped meanwhile. A
    /// server without a configuration file reads its certificates again.
    ///
    /// # Errors
    ///
    /// Returns every mistake, or that a disk did not answer within `time_max`; the configuration in force has then not
    /// changed in any part.
    pub fn candidate(
        &self,
        scope: ReloadScope,
        time_max: Duration,
    ) -> impl Future<Output = Result<BoundConfig, Vec<Diagnostic>>> + use<> {
        let task = ReloadTask {
            scope,
            loader: self.loader.clone(),
            in_force: Arc::clone(&self.loaded),
            bound: self.bound.clone(),
            leaving: self.leaving.iter().filter_map(|it| it.upgrade()?.local_addr().ok()).collect(),
            resources: self.resources,
            sandbox: Arc::clone(&self.sandbox),
            resumption: self.resumption.clone(),
            workers: self.snapshots.len(),
        };
        let reader = Arc::clone(&self.reader);
        let log = Arc::clone(&self.log);
        let in_force = Arc::clone(&self.loaded);
        let is_stopping = Arc::clone(&self.is_stopping);
        async move {
            let diagnostic = |message: &str| refusal(&in_force.served.config, message);
            if is_stopping.load(Relaxed) {
                return Err(diagnostic(STOPPING));
            }
            // A thread that hangs cannot be ended, and a second one would hang as well.
            let turn = reader.try_acquire_owned();
            let turn = turn.map_err(|_| diagnostic(STILL_WAITING))?;
            let (answer, answered) = oneshot::channel();
            let read = move || {
                let outcome = task.run();
                drop(turn);
                // The caller may have given up.
                let _ = answer.send(outcome);
            };
            // Not one of the runtime's threads: their end would be waited for when the process ends.
            std::thread::Builder::new()
                .name("kettle-reload".to_owned())
                .spawn(read)
                .map_err(|error| diagnostic(&format!("no thread can be started: {error}")))?;
            let candidate = match timeout(time_max, answered).await {
                Ok(Ok(outcome)) => outcome?,
                Ok(Err(_)) => return Err(diagnostic("reading it failed: see the log")),
                Err(_) => {
                    let seconds = time_max.as_secs();
                    return Err(diagnostic(&format!(
                        "a file or folder it names could not be read within {seconds} s: a disk hangs"
                    )));
                }
            };
            if is_stopping.load(Relaxed) {
                return Err(diagnostic(STOPPING));
            }
            // Opening the log is the last thing that can fail.
            let config = &candidate.loaded.served.config;
            if !has_logs_of(&in_force.served.config, config) {
                let opened = log.reconfigure(&config.log, config.own_access_logs()).await;
                opened.map_err(|error| vec![log_diagnostic(config, &error)])?;
            }
            Ok(candidate)
        }
    }

    /// Puts a [`candidate`](Self::candidate) in force, and counts the reload as done; or counts it as refused, as all are once the
    /// server is about to end: no worker would accept connections from a listener that is opened then.
    ///
    /// # Errors
    ///
    /// Returns the mistakes for which there is no candidate, or that the server is about to end.
    pub fn commit(
        &mut self,
        candidate: Result<BoundConfig, Vec<Diagnostic>>,
    ) -> Result<(), Vec<Diagnostic>> {
        let is_stopping = self.is_stopping.load(Relaxed);
        let candidate = if is_stopping {
            Err(refusal(&self.loaded.served.config, STOPPING))
        } else {
            candidate
        };
        let BoundConfig { mut loaded, bound } = candidate.inspect_err(|_| {
            self.metrics.reloads_refused.fetch_add(1, Relaxed);
        })?;
        self.metrics.reloads_done.fetch_add(1, Relaxed);
        announce(&loaded, &bound, &self.resumption, &self.metrics);
        let config = Arc::clone(&loaded.served.config);
        for setting in changed_beyond_reload(&self.started, &config) {
            loaded.warnings.push(config.diagnostic(
                config.position_of(setting),
                "",
                format!("`{setting}` changes at the next start, not at a reload"),
                None,
            ));
        }
        for (worker, sender) in self.snapshots.iter().enumerate() {
            snapshot(&loaded, &bound, worker).put_in_force(sender);
        }
        loaded.served.backends.put_in_force();
        loaded.stores.put_in_force();
        let before = std::mem::replace(&mut self.loaded, Arc::new(loaded));
        self.retired.add(Arc::clone(&before.served));
        let before = std::mem::replace(&mut self.bound, bound);
        let stay: HashSet<&ListenAddress> = self.bound.iter().map(|now| &now.actual).collect();
        let gone = before.into_iter().filter(|old| !stay.contains(&old.actual));
        let gone = gone.flat_map(|old| old.sockets);
        self.leaving.extend(gone.map(|socket| Arc::downgrade(&socket)));
        self.leaving.retain(|it| it.strong_count() > 0);
        Ok(())
    }
}

/// All that reading a configuration takes, for the thread that does it.
struct ReloadTask {
    scope: ReloadScope,
    loader: Option<Loader>,
    in_force: Arc<LoadedConfig>,
    bound: Vec<BoundAddress>,
    leaving: Vec<SocketAddr>,
    resources: Resources,
    sandbox: Arc<Sandbox>,
    resumption: SharedResumption,
    workers: usize,
}

impl ReloadTask {
    /// Everything that can fail, and leaves nothing behind when it does: sockets that listen by then are closed again.
    fn run(self) -> Result<BoundConfig, Vec<Diagnostic>> {
        let in_force = &self.in_force.served.config;
        let mut config = match (self.scope, &self.loader) {
            (ReloadScope::Configuration, Some(load)) => {
                keeper::renew();
                load()?
            }
            (ReloadScope::Configuration, None) | (ReloadScope::Renewal, _) => {
                Config::clone(in_force)
            }
        };
        let is_renewal = self.scope == ReloadScope::Renewal;
        let load_for = if is_renewal { LoadFor::Renewal } else { LoadFor::Reload }(&self.in_force);
        let mut out_of_reach = self.sandbox.refusals(&config, is_renewal);
        out_of_reach.extend(without_issuer(&config));
        if !out_of_reach.is_empty() {
            return Err(out_of_reach);
        }
        self.resources.fill_in(&mut config, Some(self.workers));
        let loaded = prepare(config, &self.resumption, &load_for)?;
        let bound = bind(&loaded.served.config, self.workers, &self.bound, &self.leaving)?;
        Ok(BoundConfig { loaded, bound })
    }
}

/// Reads and parses a configuration file. It may be a pipe whose writer takes its time.
///
/// # Errors
///
/// Returns every mistake in it, or the one that it cannot be read.
pub fn read(path: &Path) -> Result<Config, Vec<Diagnostic>> {
    read_within(path, START_PIPE_TIME_MAX)
}

/// The same at a reload, for which others wait.
///
/// # Errors
///
/// As for [`read`].
pub fn read_again(path: &Path) -> Result<Config, Vec<Diagnostic>> {
    read_within(path, RELOAD_PIPE_TIME_MAX)
}

fn read_within(path: &Path, pipe_time_max: Duration) -> Result<Config, Vec<Diagnostic>> {
    let bytes = keeper::read_or_wait(path, CONFIG_BYTES_MAX, pipe_time_max).map_err(|error| {
        let message = format!("the configuration cannot be read: {error}");
        let help = (error.kind() == std::io::ErrorKind::NotFound)
            .then(|| "name the file with --config; `kettle serve` needs none".to_owned());
        vec![Diagnostic::without_place(path, message, help)]
    })?;
    kettle_config::parse_bytes(&bytes, path)
}

/// Refuses what a server that started without an issuer cannot be told.
fn without_issuer(config: &Config) -> Vec<Diagnostic> {
    let Some(first) = config.acme.first().filter(|_| !warden::is_there()) else {
        return Vec::new();
    };
    let message = "this server cannot fetch certificates: since its start it has no issuer";
    let help = Some("restart it".to_owned());
    vec![config.diagnostic(first.name.at, &first.name, message.to_owned(), help)]
}

/// Why another configuration is not put in force, where nothing in it is to blame.
fn refusal(in_force: &Config, message: &str) -> Vec<Diagnostic> {
    vec![Diagnostic::without_place(&in_force.path, message, None)]
}

/// True if a configuration writes the logs that another has open. The writer is then not asked: what one of them goes to may
/// take nothing, which must not keep a renewed certificate out.
fn has_logs_of(in_force: &Config, config: &Config) -> bool {
    config.log == in_force.log && config.own_access_logs() == in_force.own_access_logs()
}

/// A mistake of `log.access`, or of a site or a route, that only opening it shows.
pub(super) fn log_diagnostic(config: &Config, LogError { target, error }: &LogError) -> Diagnostic {
    let mut logs = config.access_logs();
    let setting = logs.find(|(_, known)| Some(*known) == target.as_ref());
    let setting = setting.map_or("log.access".to_owned(), |(setting, _)| setting);
    config.diagnostic(
        config.position_of(&setting),
        "",
        format!("the access log cannot be opened: {error}"),
        Some("a file in a folder that the user kettle runs as may write".to_owned()),
    )
}

/// Has all but the workers follow a configuration: its sockets, the tickets, the metrics.
fn announce(
    loaded: &LoadedConfig,
    bound: &[BoundAddress],
    resumption: &SharedResumption,
    metrics: &Metrics,
) {
    let LoadedConfig { stores, certificate_ends, ticket_secret, .. } = loaded;
    configure(&loaded.served.config, bound);
    resumption.configure(loaded.served.config.tls.ticket_rotation, ticket_secret.as_ref());
    let of_backends = Arc::new((Arc::clone(&loaded.served.backends), Arc::clone(stores)));
    metrics.set_source(Arc::new((of_backends, Arc::clone(certificate_ends))));
}

fn snapshot(loaded: &LoadedConfig, bound: &[BoundAddress], worker: usize) -> Snapshot {
    let listeners = bound.iter().enumerate().filter_map(|(index, address)| {
        let socket = Arc::clone(address.sockets.get(worker)?);
        Some(Listening { socket, sharing: address.sharing(), index })
    });
    Snapshot::new(Arc::clone(&loaded.served), listeners.collect())
}

/// The settings of the process itself that differ.
fn changed_beyond_reload(old: &Config, new: &Config) -> Vec<&'static str> {
    let limits = &old.limits;
    let new_limits = &new.limits;
    let differs = [
        ("server.workers", old.server.workers != new.server.workers),
        ("server.pin_workers", old.server.pin_workers != new.server.pin_workers),
        ("server.user", old.server.user != new.server.user),
        ("server.group", old.server.group != new.server.group),
        ("server.sandbox", old.server.sandbox != new.server.sandbox),
        ("server.dumpable", old.server.dumpable != new.server.dumpable),
        ("log.level", old.log.level != new.log.level),
        ("admin.socket", old.admin.socket != new.admin.socket),
        ("metrics.listen", old.metrics.listen != new.metrics.listen),
        ("tls.session_cache", old.tls.session_cache != new.tls.session_cache),
        ("limits.disk_timeout", limits.disk_timeout != new_limits.disk_timeout),
        ("limits.open_files", limits.open_files != new_limits.open_files),
        ("limits.hot_file", limits.hot_file_bytes != new_limits.hot_file_bytes),
        ("limits.hot_memory", limits.hot_memory_bytes != new_limits.hot_memory_bytes),
        ("limits.revalidate", limits.revalidate != new_limits.revalidate),
    ];
    differs.iter().filter(|(_, differs)| *differs).map(|(setting, _)| *setting).collect()
}

/// 10,000 certificates take about 1 MiB.
pub const CONFIG_BYTES_MAX: u64 = 64 << 20;

/// The time for which the process that writes a configuration into a pipe is waited for, where nobody else waits.
pub const START_PIPE_TIME_MAX: Duration = Duration::from_secs(60);
/// Less than a reload may take: else it is the disk that gets the blame.
const RELOAD_PIPE_TIME_MAX: Duration = Duration::from_secs(5);

const STILL_WAITING: &str = "an earlier reload still waits for a disk that hangs; mend that first";

#[cfg(test)]
mod tests;
