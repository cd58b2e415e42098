//! Starts, controls and stops the server: what runs once a process, while the workers serve.
//!
//! `prepare` turns a configuration into all it needs or into diagnostics, `bind` opens listeners,
//! `workers` runs the threads, `reload` commits a new configuration. Only this code has privileges,
//! and the keeper, the process it starts that stays root.
#![forbid(unsafe_code)]

use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use acme_counters::AcmeCounters;
use kettle_config::{Config, Diagnostic, ListenAddress};
use kettle_kernel::probe::Capabilities;
use kettle_kernel::process;
use kettle_runtime::access_log::AccessLog;
use kettle_runtime::metrics::Metrics;
use kettle_runtime::spool::Spool;
use kettle_runtime::tx_path::switch::TxPathSwitch;
use kettle_tls::tickets::SharedResumption;
use tokio::sync::{mpsc, watch};

use crate::admin::AdminSocket;
use kettle_http::h2::WindowBudget;
use kettle_server::open_tunnels::TunnelsQuestion;
use kettle_server::setup::{Budgets, Shutdown, WorkerSetup};

mod accept;
mod acme_counters;
pub mod admin;
mod bind;
mod endpoint;
mod ends;
mod file_watch;
mod issuer;
mod keeper;
mod main_loop;
mod memory;
mod notify;
mod pinning;
mod port_owner;
pub mod prepare;
mod reload;
mod resources;
mod retired;
mod sandbox;
mod text_format;
mod tx_path;
mod workers;

pub use kettle_kernel::keeper::{
    list as list_folder, open as open_file, read_or_wait, reads_as_keeper,
};
pub use kettle_kernel::process::hold_commands;
pub use kettle_runtime::tx_path::switch::TxPathOverride;
pub use kettle_server::open_tunnels::TunnelOrder;
pub use reload::{CONFIG_BYTES_MAX, Loader, START_PIPE_TIME_MAX, read, read_again};

use pinning::Pinning;
use reload::RunningConfig;
use resources::Resources;
use sandbox::Sandbox;
use workers::Workers;

/// The target under which warnings about the configuration are logged as, for those who want them whatever the level.
pub const CONFIGURATION_TARGET: &str = "kettle::configuration";

/// A server whose workers are there, and accept once it runs.
pub struct Supervisor {
    live: RunningConfig,
    workers: Workers,
    /// For each worker, where it is asked for its tunnels.
    questions: Vec<mpsc::Sender<TunnelsQuestion>>,
    metrics: Arc<Metrics>,
    spool: Arc<Spool>,
    tx_path_switch: Arc<TxPathSwitch>,
    capabilities: Arc<Capabilities>,
    /// Why the kernel encrypts nothing, if so.
    obstacle: Option<String>,
    admin: Option<AdminSocket>,
    metrics_listener: Option<std::net::TcpListener>,
    terminal: Option<BorrowedFd<'static>>,
    /// Our end of the issuer's pair.
    issuer: Option<OwnedFd>,
    acme: Arc<AcmeCounters>,
    started: Instant,
}

/// Why a server did not start.
#[derive(Debug)]
pub enum StartError {
    /// The configuration, or what it names, has mistakes.
    Diagnostics(Vec<Diagnostic>),
    /// Something else was refused; the text says what and what to do.
    Refused(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Diagnostics(diagnostics) => {
                for (index, diagnostic) in diagnostics.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "\n\n" };
                    write!(formatter, "{separator}{diagnostic}")?;
                }
                Ok(())
            }
            StartError::Refused(message) => formatter.write_str(message),
        }
    }
}

impl std::error::Error for StartError {}

impl From<Vec<Diagnostic>> for StartError {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Self::Diagnostics(diagnostics)
    }
}

impl Supervisor {
    /// Loads and binds everything, gives up privileges and starts the workers. `loader` is asked for the configuration
    /// at each reload; without one only the files that this one names are read again. `explain` is asked
    /// for better words than the probe has when this kernel encrypts nothing.
    ///
    /// # Errors
    ///
    /// Returns every mistake found; nothing is left running.
    pub fn start(
        mut config: Config,
        loader: Option<Loader>,
        explain: impl FnOnce() -> Option<String>,
    ) -> Result<Self, StartError> {
        let refused =
            |what: &str, error: &dyn fmt::Display| StartError::Refused(format!("{what}: {error}"));
        let started = Instant::now();
        if let Err(error) = process::raise_open_files_limit() {
            tracing::warn!(%error, "the limit of open files cannot be raised");
        }
        process::ignore_file_size_signal();
        protect_memory(&config);
        let terminal = main_loop::terminal_in_front();
        let inherited = bind::inherited(&config)?;
        keeper::start(&config, loader.as_ref());
        let issuer = issuer::start(&mut config, loader.as_ref());
        let resources = Resources::of_this_process();
        resources.fill_in(&mut config, None);
        process::limit_heaps(config.server.workers.unwrap_or(1) + HEAPS_BESIDE_WORKERS);
        // Loading the kernel's module and ciphers needs the privileges that are dropped below.
        let capabilities = Arc::new(Capabilities::run());
        let obstacle = capabilities.tx_reason().map(|reason| explain().unwrap_or(reason));
        let resumption =
            SharedResumption::new(config.tls.ticket_rotation, config.tls.session_cache)
                .map_err(|error| refused("session tickets", &error))?;
        let loaded = prepare::prepare(config, &resumption, &prepare::LoadFor::Start)?;
        let config = Arc::clone(&loaded.served.config);

        let worker_count = config.server.workers.unwrap_or(1);
        let metrics = Arc::new(Metrics::new(worker_count));
        let bound = bind::bind_first(&config, worker_count, inherited)?;
        let admin = bind_admin(&config)?;
        let metrics_listener = bind_metrics(&config)?;
        drop_privileges(&config)?;
        protect_memory(&config);
        let spool = open_spool(&config, &resources);
        let acme = Arc::<AcmeCounters>::default();
        metrics.set_process_source(Arc::new((Arc::clone(&spool), Arc::clone(&acme))));
        // Nothing but what serving and reloading take is left to do, and no thread is there yet that would go on unconfined.
        let sandbox = Sandbox::enter(&config).map_err(StartError::Diagnostics)?;
        for obstacle in sandbox.obstacles() {
            tracing::info!("{obstacle}");
        }
        let log = start_access_log(&config, &metrics, worker_count)?;
        log_start(&loaded, &resources);
        let metrics_of_live = Arc::clone(&metrics);
        let live =
            RunningConfig::new(loaded, bound, resources, resumption, log, metrics_of_live, loader)
                .within(sandbox);
        let tx_path_switch = Arc::new(TxPathSwitch::default());
        let shutdown = watch::Sender::new(Shutdown::Starting);
        let windows = WindowBudget::new(resources.window_bytes());
        let unwritten_bytes = resources.unwritten_bytes(worker_count);
        let encoders = live.encoder_permits();
        let budgets = Budgets { encoders, windows, spool: Arc::clone(&spool), unwritten_bytes };
        let setups = setups(&live, &metrics, &tx_path_switch, &capabilities, &budgets, &shutdown);
        let (setups, questions) = setups.into_iter().unzip();
        let workers = Workers::start(setups, shutdown)
            .map_err(|error| refused("a worker thread cannot be started", &error))?;
        Ok(Self {
            live,
            workers,
            questions,
            metrics,
            spool,
            tx_path_switch,
            capabilities,
            obstacle,
            admin,
            metrics_listener,
            terminal,
            issuer,
            acme,
            started,
        })
    }

    /// The addresses bound, in the order of the configuration.
    #[must_use]
    pub fn addresses(&self) -> Vec<ListenAddress> {
        self.live.bound().iter().map(|bound| bound.actual.clone()).collect()
    }

    /// The SHA-256 fingerprints of the certificates in use, in the order of the sites.
    #[must_use]
    pub fn fingerprints(&self) -> Vec<String> {
        let identities = &self.live.loaded().identities;
        identities.iter().map(|identity| identity.fingerprint_sha256().to_owned()).collect()
    }

    /// Returns where the certificate made on this machine is, if one is in use.
    #[must_use]
    pub fn made_certificate(&self) -> Option<&prepare::MadeCertificate> {
        self.live.loaded().made_certificate()
    }

    /// Returns warnings of what works and should be looked at all the same.
    #[must_use]
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.live.loaded().warnings
    }

    /// Says where records are encrypted on this machine, in one line.
    #[must_use]
    pub fn tx_path_line(&self) -> String {
        let config = &self.live.loaded().served.config;
        let position = self.tx_path_switch.position();
        tx_path::line(config, &self.capabilities, self.obstacle.as_deref(), position)
    }

    /// Runs the main loop until the server is told to stop and has finished. `ready` is called once
    /// signals and the control socket are answered.
    ///
    /// # Errors
    ///
    /// Fails if the main thread's runtime or the signal handlers cannot be set up.
    pub fn run(self, ready: impl FnOnce(&Self)) -> io::Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let outcome = runtime.block_on(main_loop::run(self, ready));
        // A lookup of a name may hang, and cannot be ended.
        runtime.shutdown_background();
        outcome
    }
}

/// Logs what this process may use, and what its file systems disclose.
fn log_start(loaded: &prepare::LoadedConfig, resources: &Resources) {
    if let Some(line) = resources.line(&loaded.served.config) {
        tracing::info!("{line}");
    }
    for (line, disclosure) in loaded.served.router.disclosures() {
        if disclosure.advice().is_some() {
            tracing::info!("{line}");
        }
    }
}

fn setups(
    live: &RunningConfig,
    metrics: &Arc<Metrics>,
    tx_path_switch: &Arc<TxPathSwitch>,
    capabilities: &Arc<Capabilities>,
    budgets: &Budgets,
    shutdown: &watch::Sender<Shutdown>,
) -> Vec<(WorkerSetup, mpsc::Sender<TunnelsQuestion>)> {
    let workers = metrics.workers().len();
    let pinning = live.loaded().served.config.server.pin_workers.then(Pinning::of_this_process);
    if let Some(pinning) = &pinning {
        tracing::info!("{}", pinning.line(workers));
    }
    let mut setups = Vec::with_capacity(workers);
    for (index, worker_metrics) in metrics.workers().iter().enumerate() {
        let (Some(snapshot), Some(log)) = (live.subscribe(index), live.log().worker(index)) else {
            continue;
        };
        let (asker, questions) = mpsc::channel(QUESTIONS_MAX);
        let setup = WorkerSetup {
            index,
            cpu: pinning.as_ref().and_then(|pinning| pinning.processor(index)),
            snapshot,
            metrics: Arc::clone(worker_metrics),
            log,
            shutdown: shutdown.subscribe(),
            tx_path_switch: Arc::clone(tx_path_switch),
            capabilities: Arc::clone(capabilities),
            budgets: budgets.clone(),
            questions,
        };
        setups.push((setup, asker));
    }
    setups
}

/// Heaps of the C library: the main thread's, and for the threads that compress, look at disks, check passwords and write logs.
const HEAPS_BESIDE_WORKERS: usize = 3;

/// Opens the folder for bodies that are stored: as the user that serves, and before the sandbox knows what there is.
fn open_spool(config: &Config, resources: &Resources) -> Arc<Spool> {
    let directory = config.server.stored_bodies();
    let bytes_max = config.limits.request_spool_bytes;
    let memory_bytes_max = resources.spooled_memory_bytes();
    let files_max = resources.spooled_files();
    let spool = Spool::new(&directory, bytes_max, memory_bytes_max, files_max);
    if config.stores_bodies()
        && let Err(error) = spool.open()
    {
        tracing::warn!(
            "bodies of requests of more than 64 KiB that routes store before a backend gets them are answered with 503, since no file \
             can be made in {} ({error}), and responses that are stored for slow clients have 1 MiB each: set `state_directory` in [server] to a folder that kettle may write, or \
             request_buffering = \"off\" on the routes",
            directory.display()
        );
    }
    spool
}

/// Questions that wait for a worker.
const QUESTIONS_MAX: usize = 16;

/// As the user the server goes on as, because that user must open it again after a rotation.
fn start_access_log(
    config: &Config,
    metrics: &Metrics,
    workers: usize,
) -> Result<AccessLog, StartError> {
    let dropped = Arc::clone(&metrics.log_lines_dropped);
    AccessLog::start(&config.log, config.own_access_logs(), workers, dropped)
        .map_err(|error| one_diagnostic(reload::log_diagnostic(config, &error)))
}

fn one_diagnostic(diagnostic: Diagnostic) -> StartError {
    StartError::Diagnostics(vec![diagnostic])
}

/// Keeps keys out of core dumps and from other programs of the same user. Before keys are read, and
/// again when the user has changed, for then the kernel decides anew (`fs.suid_dumpable`).
fn protect_memory(config: &Config) {
    if let Err(error) = process::set_dumpable(config.server.dumpable) {
        tracing::warn!(%error, "whether memory may be dumped cannot be set");
    }
}

/// Becomes the user the configuration names. Sockets that are bound and files that are read stay.
fn drop_privileges(config: &Config) -> Result<(), StartError> {
    let Some(account) = prepare::account(config).map_err(StartError::Diagnostics)? else {
        let is_of_file = !config.path.as_os_str().is_empty() && !config.is_made();
        if process::is_root() && is_of_file {
            tracing::warn!("serving as root; name a user of its own in `[server] user`");
        }
        return Ok(());
    };
    if account.is_current() {
        return Ok(());
    }
    account.become_for_good().map_err(|error| {
        let user = config.server.user.as_deref().unwrap_or_default();
        let at = config.position_of("server.user");
        one_diagnostic(config.diagnostic(at, user, error.to_string(), None))
    })
}

fn bind_admin(config: &Config) -> Result<Option<AdminSocket>, StartError> {
    let Some(path) = &config.admin.socket else { return Ok(None) };
    AdminSocket::bind(path).map(Some).map_err(|error| {
        let offending = path.display().to_string();
        let message = format!("the control socket {offending} cannot be made: {error}");
        let help = "a path in a folder that the user starting kettle may write".to_owned();
        let at = config.position_of("admin.socket");
        one_diagnostic(config.diagnostic(at, &offending, message, Some(help)))
    })
}

fn bind_metrics(config: &Config) -> Result<Option<std::net::TcpListener>, StartError> {
    let Some(address) = config.metrics.listen else { return Ok(None) };
    let bound = std::net::TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    bound.map(Some).map_err(|error| {
        let (message, help) = bind::explain(address, &error);
        let at = config.position_of("metrics.listen");
        one_diagnostic(config.diagnostic(at, &address.to_string(), message, Some(help)))
    })
}
