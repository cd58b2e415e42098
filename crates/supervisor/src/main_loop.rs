//! The main thread while the workers serve: signals, `kettle ctl`, scrapes, and the orderly end.

use std::collections::HashSet;
use std::future::{Future, pending};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use kettle_config::Diagnostic;
use kettle_runtime::tx_path::switch::TxPathOverride;
use kettle_upstream::backend::Backends;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Interval, MissedTickBehavior, interval, sleep_until};

use crate::admin::protocol::{Reply, Request};
use crate::admin::purge::Purges;
use crate::admin::tunnels::{self, TunnelsScreen};
use crate::admin::{AdminSocket, Asked};
use crate::endpoint;
use crate::ends::EndsTold;
use crate::file_watch::FileWatch;
use crate::issuer::{self, Issuer};
use crate::memory::{IdleMemory, LOOK_PERIOD};
use crate::notify::{State, notify};
use crate::reload::ReloadScope;
use crate::{CONFIGURATION_TARGET, Supervisor, keeper};
use kettle_server::open_tunnels::TunnelOrder;
use kettle_server::setup::Shutdown;
use kettle_server::tunnel::BackendWatch;

mod acme;
mod reloads;
mod signals;
mod status;

use acme::AcmeQuestions;
use reloads::{Asker, Reloads};
pub(crate) use signals::terminal_in_front;
use signals::{Event, Signals};

/// Runs until the server has ended.
pub(super) async fn run(
    mut supervisor: Supervisor,
    ready: impl FnOnce(&Supervisor),
) -> io::Result<ExitCode> {
    let mut signals = Signals::catch(supervisor.terminal)?;
    let (sender, mut asked) = mpsc::channel(REQUESTS_MAX);
    let control = serve_control(supervisor.admin.take(), sender);
    let scrapes = serve_scrapes(&mut supervisor);
    let keeper_watch = keeper::watch();
    tokio::pin!(control, scrapes, keeper_watch);
    let mut minute = interval(MINUTE);
    let mut looking = shifting_interval(LOOK_PERIOD);
    let mut memory = IdleMemory::after_start();
    let (files, mut changed) = FileWatch::new();
    let challenges = supervisor.live.loaded().served.challenges.clone().unwrap_or_default();
    let issuer = Issuer::new(supervisor.issuer.take(), challenges, Arc::clone(&supervisor.acme))?;
    let mut main_loop = MainLoop::new(supervisor, files, issuer);
    let mut watching = BackendWatch::default();
    main_loop.watch_backends(&mut watching);
    main_loop.log_warnings(&[]);
    main_loop.watch_files();
    // Before the first client, who may take the last descriptor: that takes one. The sockets are listened on.
    notify(State::Ready);
    main_loop.supervisor.workers.serve();
    ready(&main_loop.supervisor);
    let code = loop {
        let cut_off = main_loop.cut_off();
        let MainLoop { reloads, supervisor, .. } = &mut main_loop;
        reloads.begin(|scope| supervisor.live.candidate(scope, RELOAD_TIME_MAX));
        tokio::select! {
            event = signals.next() => {
                if let Some(code) = main_loop.on_signal(event) {
                    break code;
                }
            }
            Some(Asked { request, reply }) = asked.recv() => main_loop.on_request(request, reply),
            Some(change) = changed.recv() => main_loop.on_change(&change),
            ended = main_loop.reloads.next_end() => {
                if main_loop.on_reload_end(ended) {
                    main_loop.watch_backends(&mut watching);
                }
            }
            () = watching.watch() => {}
            Some(answered) = main_loop.questions.next() => {
                main_loop.questions.take(answered, &mut main_loop.issuer);
            }
            () = main_loop.issuer.next_renewal() => main_loop.reloads.ask_for_files(),
            never = &mut keeper_watch => match never {},
            ended = main_loop.supervisor.workers.next_end() => {
                if let Some(code) = main_loop.on_worker_end(ended) {
                    // Answers to `kettle ctl stop` are written by tasks of this runtime.
                    for _ in 0..FLUSH_TURNS {
                        yield_now().await;
                    }
                    break code;
                }
            }
            () = cut_off => {
                let open = main_loop.supervisor.metrics.total().connections.now();
                tracing::warn!("{open} connections did not finish in time and are cut off");
                break ExitCode::SUCCESS;
            }
            _ = minute.tick() => main_loop.on_minute(),
            _ = looking.tick() => {
                main_loop.supervisor.live.drop_retired();
                main_loop.questions.look(&mut main_loop.issuer);
                memory.give_back();
            }
            outcome = &mut control => outcome?,
            outcome = &mut scrapes => outcome?,
        }
    };
    main_loop.supervisor.live.loaded().stores.tell_unwritten();
    Ok(code)
}

/// Returns an interval in which a late tick shifts those that follow.
fn shifting_interval(period: Duration) -> Interval {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

struct MainLoop {
    supervisor: Supervisor,
    draining: Option<Draining>,
    /// The clients that asked for the stop learn of its end.
    stop_replies: Vec<oneshot::Sender<Reply>>,
    reloads: Reloads,
    issuer: Issuer,
    questions: AcmeQuestions,
    files: FileWatch,
    /// Why changed files were not taken, which is said once.
    files_refused: Vec<Diagnostic>,
    purges: Purges,
    /// The tasks that wait for the access log, or for workers.
    waiting_for_others: JoinSet<()>,
    /// OCSP responses and revocation lists that ran out up to then were told of.
    ends_looked_at: SystemTime,
    certificates_told: EndsTold,
}

struct Draining {
    began: Instant,
    deadline: Instant,
    workers_left: usize,
    is_well: bool,
}

impl Draining {
    /// `timeout` and some supervisors signal the process and then its whole group, this process
    /// once more: only a later signal counts as a second one.
    fn may_be_cut_short(&self) -> bool {
        self.began.elapsed() >= SECOND_STOP_MIN
    }
}

impl MainLoop {
    fn new(supervisor: Supervisor, files: FileWatch, issuer: Issuer) -> Self {
        Self {
            supervisor,
            draining: None,
            stop_replies: Vec::new(),
            reloads: Reloads::default(),
            issuer,
            questions: AcmeQuestions::default(),
            files,
            files_refused: Vec::new(),
            purges: Purges::default(),
            waiting_for_others: JoinSet::new(),
            ends_looked_at: SystemTime::now(),
            certificates_told: EndsTold::default(),
        }
    }

    /// Returns how to exit, if the signal says at once.
    fn on_signal(&mut self, event: Event) -> Option<ExitCode> {
        match event {
            Event::Stop | Event::Interrupt
                if self.draining.as_ref().is_some_and(Draining::may_be_cut_short) =>
            {
                tracing::warn!("told to stop a second time: leaving without finishing requests");
                return Some(ExitCode::FAILURE);
            }
            Event::Stop => self.drain(),
            Event::Interrupt => {
                // A person that pressed Ctrl-C waits in front of the terminal, whatever the log level.
                tracing::warn!("finishing requests; again to stop now");
                self.drain();
            }
            Event::Reload => self.reloads.ask(None),
            Event::ReopenLog => self.reopen_log(None),
            Event::Upgrade => {
                tracing::warn!("SIGUSR2 does nothing here: another program comes by a restart");
            }
        }
        None
    }

    fn on_request(&mut self, request: Request, reply: oneshot::Sender<Reply>) {
        let answer = match request {
            Request::Status => Reply::Status(Box::new(self.status())),
            Request::Reload => return self.reloads.ask(Some(reply)),
            Request::Reopen => return self.reopen_log(Some(reply)),
            Request::Path { tx_path: position } => self.set_switch(position),
            Request::Tunnels { top, by } => return self.show_tunnels(top, by, reply),
            Request::Backends => Reply::Backends { backends: self.backends().into() },
            Request::Caches => {
                Reply::Caches { caches: (&*self.supervisor.live.loaded().stores).into() }
            }
            Request::Purge { by, text } => {
                let stores = &self.supervisor.live.loaded().stores;
                return self.purges.begin(stores, (by, text), reply);
            }
            Request::Drain { backend, server, is_draining } => {
                self.drain_server(&backend, &server, is_draining)
            }
            Request::Acme { request } => {
                let config = &self.supervisor.live.loaded().served.config;
                return self.questions.begin(request, (config, &mut self.issuer), reply);
            }
            Request::Stop => {
                self.stop_replies.push(reply);
                self.drain();
                return;
            }
        };
        // The caller may be gone.
        let _ = reply.send(answer);
    }

    /// Looks after the backends in force.
    fn watch_backends(&self, watching: &mut BackendWatch) {
        let loaded = self.supervisor.live.loaded();
        let upstreams = Arc::clone(&loaded.served.upstreams);
        watching.adopt(&loaded.served.backends, upstreams);
    }

    fn backends(&self) -> &Backends {
        &self.supervisor.live.loaded().served.backends
    }

    /// Another task waits for the workers.
    fn show_tunnels(&mut self, top: usize, order: TunnelOrder, asker: oneshot::Sender<Reply>) {
        let workers = self.supervisor.questions.clone();
        while self.waiting_for_others.try_join_next().is_some() {}
        self.waiting_for_others.spawn(async move {
            let tunnels = TunnelsScreen(tunnels::ask(workers, top, order).await);
            // The caller may be gone.
            let _ = asker.send(Reply::Tunnels { tunnels });
        });
    }

    fn drain_server(&self, backend: &str, server: &str, is_draining: bool) -> Reply {
        match self.backends().set_draining(backend, server, is_draining) {
            Ok(()) => {
                let what = if is_draining { "gets no new connections" } else { "gets connections" };
                let message = format!("{backend}/{server} {what}");
                tracing::info!("{message}");
                Reply::done(message)
            }
            Err(error) => Reply::refused(error),
        }
    }

    /// Returns how to exit, once the server has ended.
    fn on_worker_end(&mut self, ended: Option<usize>) -> Option<ExitCode> {
        let ended_well = ended.is_none_or(|index| self.supervisor.workers.join(index));
        let Some(draining) = &mut self.draining else {
            tracing::error!("a worker ended without being told to; leaving");
            return Some(ExitCode::FAILURE);
        };
        draining.is_well &= ended_well;
        draining.workers_left = draining.workers_left.saturating_sub(1);
        if draining.workers_left > 0 && ended.is_some() {
            return None;
        }
        let is_well = draining.is_well;
        tracing::info!("stopped");
        for reply in self.stop_replies.drain(..) {
            let _ = reply.send(Reply::done("stopped"));
        }
        Some(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn drain(&mut self) {
        if self.draining.is_some() {
            return;
        }
        let timeout = self.supervisor.live.loaded().served.config.server.drain_timeout;
        notify(State::Stopping(timeout + 2 * DRAIN_GRACE));
        self.supervisor.live.stop();
        let began = Instant::now();
        let deadline = began + timeout;
        tracing::info!("finishing requests in flight, for {} s at most", timeout.as_secs());
        self.supervisor.workers.shut_down(Shutdown::Draining { deadline });
        let workers_left = self.supervisor.metrics.workers().len();
        self.draining = Some(Draining { began, deadline, workers_left, is_well: true });
    }

    /// Ends when the workers had their time and more, or never.
    fn cut_off(&self) -> impl Future<Output = ()> + use<> {
        let deadline = self.draining.as_ref().map(|draining| draining.deadline + DRAIN_GRACE);
        async move {
            match deadline {
                Some(deadline) => sleep_until(deadline.into()).await,
                None => pending().await,
            }
        }
    }

    fn on_change(&mut self, change: &[PathBuf]) {
        for path in change {
            tracing::info!("{} has changed", path.display());
        }
        if !change.is_empty() {
            self.files_refused.clear();
        }
        self.reloads.ask_for_files();
    }

    /// Watches what the configuration in force names, if it says so.
    fn watch_files(&mut self) {
        self.files.watch(self.supervisor.live.loaded().file_states.clone());
        self.look_at_files();
    }

    fn on_minute(&mut self) {
        self.supervisor.live.rotate_ticket_keys();
        let now = SystemTime::now();
        let since = std::mem::replace(&mut self.ends_looked_at, now);
        for message in self.supervisor.live.loaded().ended(since, now) {
            tracing::warn!("{message}");
        }
        for message in self.due_warnings() {
            tracing::warn!("{message}");
        }
        self.look_at_files();
    }

    /// The day's warnings of certificates that end.
    fn due_warnings(&mut self) -> Vec<String> {
        let ends = &self.supervisor.live.loaded().certificate_ends;
        self.certificates_told.due(ends, SystemTime::now(), Instant::now())
    }

    fn look_at_files(&mut self) {
        if let Err(error) = self.files.begin() {
            tracing::error!(%error, "no thread can be started, so no file is watched for now");
        }
    }

    /// Says whether another configuration is in force now.
    fn on_reload_end(&mut self, ended: reloads::Ended) -> bool {
        let reloads::Ended { scope, outcome, askers } = ended;
        let known = self.supervisor.warnings().to_vec();
        let before = Arc::clone(&self.supervisor.live.loaded().served.config);
        let reply = match self.supervisor.live.commit(outcome) {
            Ok(()) => {
                let sites = self.supervisor.live.loaded().served.config.sites.len();
                let addresses = self.supervisor.live.bound().len();
                let message = format!(
                    "reloaded: {sites} site{} on {addresses} address{}",
                    if sites == 1 { "" } else { "s" },
                    if addresses == 1 { "" } else { "es" },
                );
                tracing::info!("{message}");
                self.log_warnings(&known);
                self.files_refused.clear();
                self.watch_files();
                if !issuer::is_same(&before, &self.supervisor.live.loaded().served.config) {
                    self.issuer.read_again();
                }
                Reply::done_with(message, self.supervisor.warnings())
            }
            Err(diagnostics) => {
                self.log_refusal(scope, &diagnostics);
                Reply::mistaken(&diagnostics)
            }
        };
        for asker in askers.into_iter().flatten() {
            // The caller may be gone.
            let _ = asker.send(reply.clone());
        }
        if scope == ReloadScope::Renewal {
            self.issuer.renewed();
        }
        matches!(reply, Reply::Done { .. })
    }

    fn log_refusal(&mut self, scope: ReloadScope, diagnostics: &[Diagnostic]) {
        match scope {
            ReloadScope::Configuration => {
                tracing::error!("not reloaded, the old configuration stays in force");
            }
            ReloadScope::Renewal => {
                self.files.refused();
                if self.files_refused == diagnostics {
                    return;
                }
                self.files_refused = diagnostics.to_vec();
                tracing::error!("changed files are not loaded again, what was loaded stays in use");
            }
        }
        for diagnostic in diagnostics {
            tracing::error!("{diagnostic}");
        }
    }

    /// A warning that was given at the start or at an earlier reload is not given again.
    fn log_warnings(&mut self, known: &[Diagnostic]) {
        // The configuration's warnings are of its certificates, too.
        self.due_warnings();
        let known: HashSet<&str> = known.iter().map(|known| known.message.as_str()).collect();
        for warning in self.supervisor.warnings() {
            if !known.contains(warning.message.as_str()) {
                tracing::warn!(target: CONFIGURATION_TARGET, "{warning}");
            }
        }
    }

    /// Another task waits for the writer, which may wait for a disk.
    fn reopen_log(&mut self, asker: Asker) {
        let log = Arc::clone(self.supervisor.live.log());
        while self.waiting_for_others.try_join_next().is_some() {}
        self.waiting_for_others.spawn(async move {
            let reply = match log.reopen().await {
                Ok(()) => Reply::done("the access log is open again"),
                Err(error) => {
                    tracing::error!(%error, "the access log cannot be opened again; the old file stays");
                    Reply::refused(format_args!(
                        "the access log cannot be opened ({error}); the old file stays in use"
                    ))
                }
            };
            if let Some(asker) = asker {
                let _ = asker.send(reply);
            }
        });
    }

    fn set_switch(&self, position: TxPathOverride) -> Reply {
        self.supervisor.tx_path_switch.set(position);
        tracing::info!("path switched to {position}");
        let message = match position {
            TxPathOverride::User => {
                "no further connection moves into the kernel; those that are there stay"
            }
            TxPathOverride::Auto => "connections move into the kernel as the configuration says",
        };
        Reply::done(message)
    }
}

async fn serve_control(admin: Option<AdminSocket>, asked: mpsc::Sender<Asked>) -> io::Result<()> {
    match admin {
        Some(admin) => admin.serve(asked).await,
        None => pending().await,
    }
}

fn serve_scrapes(supervisor: &mut Supervisor) -> impl Future<Output = io::Result<()>> + use<> {
    let listener = supervisor.metrics_listener.take();
    let metrics = Arc::clone(&supervisor.metrics);
    let started = supervisor.started;
    async move {
        match listener {
            Some(listener) => endpoint::serve(listener, metrics, started).await,
            None => pending().await,
        }
    }
}

/// The time that reading a configuration and all it names may take. `kettle ctl` waits for two of them.
const RELOAD_TIME_MAX: Duration = Duration::from_secs(10);

/// Requests of `kettle ctl` waiting for the main thread.
const REQUESTS_MAX: usize = 16;

/// The interval at which an idle server looks whether its ticket key must change, and tries again to watch files.
const MINUTE: Duration = Duration::from_mins(1);

/// The time that workers get beyond the deadline they know, to close what is left themselves.
const DRAIN_GRACE: Duration = Duration::from_secs(2);

/// A signal to stop that comes so soon after the first is the same one.
const SECOND_STOP_MIN: Duration = Duration::from_millis(500);

/// The number of times other tasks of the main thread may run before it leaves: an answer takes two turns.
const FLUSH_TURNS: usize = 8;

#[cfg(test)]
mod tests;
