//! A server as a scenario measures it: found, started, loaded, with the proof that it did what it was to do.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kettle_loadgen::client::{self, Outcome, Progress};
use kettle_loadgen::load::{BodyUse, End, Expect, Load, LoadModel, Reuse};
use kettle_loadgen::measure::noise;
use kettle_loadgen::measure::server::{Snapshot, SystemUnderTest, Usage};

use super::bench::{Bench, StartedServer, WARM_UP};
use super::choose;
use super::error::BenchError;
use super::event::{Event, Sampling};
use super::implausible;
use super::measured::Measured;
use super::options::first;
use super::plan::Key;
use super::rules;
use crate::peers::subject::{Setup, Subject, SubjectPath};
use crate::peers::{self, PeerError};
use crate::results::{self, Line, Point, SubjectLine};

impl Bench<'_> {
    /// Returns how servers are run unless a scenario compares it.
    pub fn setup(&self) -> Setup {
        let workers = first(&self.options.workers);
        let most = self.cores.server.len();
        Setup {
            cpus: self.cores.server.clone(),
            workers: workers.unwrap_or(most).clamp(1, most.max(1)),
            key: rules::key(self.options),
            offer: rules::offer(self.options),
            resumes: false,
            site: self.folder.join("site"),
            backend: self.backend.as_ref().map(|backend| backend.address),
            folder: self.folder.join("servers"),
            config: None,
        }
    }

    /// Makes files of these sizes and starts those of the usual subjects that the user wants and that can run here.
    pub fn start_file_servers(
        &mut self,
        usual: &[Subject],
        sizes: &[u64],
    ) -> Result<Vec<StartedServer>, BenchError> {
        let wanted = choose::subjects(usual, self.options)?;
        self.make_site(sizes)?;
        self.start_all(&wanted, &self.setup(), &Point::new())
    }

    /// Starts those of the subjects that can run here. The others become lines on what this run cannot show.
    ///
    /// # Errors
    /// [`BenchError::Refused`] if none of them can be measured here, [`BenchError::Results`] if a line cannot be written.
    pub fn start_all(
        &mut self,
        subjects: &[Subject],
        setup: &Setup,
        point: &Point,
    ) -> Result<Vec<StartedServer>, BenchError> {
        let mut servers = Vec::new();
        for subject in subjects {
            let user = Subject { path: SubjectPath::User, ..*subject };
            let is_second = subject.path == SubjectPath::Auto && subjects.contains(&user);
            if let Some(why) = is_second.then(|| peers::kernel_lacks(&setup.offer)).flatten() {
                let why = format!("{why}; so it is the same code as {user}, and no second subject");
                self.absent(subject, why)?;
                continue;
            }
            servers.extend(self.start(*subject, setup.clone(), point)?);
        }
        if servers.is_empty() {
            return Err(BenchError::Refused("none of the servers can be measured here".to_owned()));
        }
        Ok(servers)
    }

    /// Starts a server with a folder of its own. One that this machine lacks or that does not start becomes a line on what
    /// this run cannot show.
    ///
    /// # Errors
    /// [`BenchError::Broken`] if its folder cannot be made, [`BenchError::Results`] if a line cannot be written, or if the results that
    /// are gone on with are of another version or configuration of this server.
    pub fn start(
        &mut self,
        subject: Subject,
        mut setup: Setup,
        point: &Point,
    ) -> Result<Option<StartedServer>, BenchError> {
        let name = subject.to_string();
        let what = match results::place(point) {
            place if place.is_empty() => name.clone(),
            place => format!("{name}, {place}"),
        };
        let found = match peers::find(subject.program) {
            Ok(found) => found,
            Err(missing) => return self.absent(name, missing).map(|()| None),
        };
        if let Some(why) = peers::unavailable(&subject, &found, &setup) {
            return self.absent(what, with_mend(&subject, &why)).map(|()| None);
        }
        self.preparing(&format!("starting {what}"));
        let folder = format!("{what}-{}", setup.workers).replace([' ', ',', '/'], "-");
        // Servers of one key share the folder above theirs, which holds the certificate.
        setup.folder = self.folder("servers")?.join(folder);
        setup.config = self.options.config(subject.program).cloned();
        let running = match peers::start(&subject, &found, &setup) {
            Ok(running) => running,
            Err(error @ PeerError::Useless(_)) if self.options.own_nginx.is_some() => {
                let why = format!("{error}; {OTHER_OFFER}");
                return self.absent(what, why).map(|()| None);
            }
            Err(error) => return self.absent(what, error).map(|()| None),
        };
        let line = SubjectLine {
            scenario: self.scenario.to_owned(),
            name: name.clone(),
            point: point.clone(),
            version: running.version.clone(),
            command: running.command.clone(),
            config: running.config.clone(),
            template_sha256: Some(running.template_sha256.clone()),
        };
        same_server(self.earlier, &line).map_err(BenchError::Results)?;
        (self.write)(&Line::Subject(line))?;
        Ok(Some(StartedServer { subject, name, point: point.clone(), setup, running }))
    }

    /// Starts a server once more, beside the one that runs: its processes have done nothing yet but to answer once.
    pub fn start_anew(&self, server: &StartedServer) -> Result<StartedServer, BenchError> {
        let StartedServer { subject, name, point, setup, .. } = server;
        let failed = |why: &dyn std::fmt::Display| BenchError::server(name, why);
        let found = peers::find(subject.program).map_err(|why| failed(&why))?;
        let folder = setup.folder.with_added_extension("anew");
        let setup = Setup { folder, ..setup.clone() };
        let running = peers::start(subject, &found, &setup).map_err(|why| failed(&why))?;
        let name = name.clone();
        let point = point.clone();
        Ok(StartedServer { subject: *subject, name, point, setup, running })
    }

    /// A load for this server unless a scenario says more: one connection that asks for the file of this size for ever.
    pub fn load_on(&self, server: &StartedServer, body_bytes: u64) -> Load {
        let is_plain = server.subject.path == SubjectPath::Plain;
        let hash = match &self.backend {
            Some(backend) if server.subject.role.has_backend() => backend.sha256(body_bytes),
            _ => self.site.as_ref().and_then(|site| site.sha256(body_bytes)),
        };
        Load {
            path: format!("/{body_bytes}"),
            tls: (!is_plain).then_some(server.setup.offer),
            reuse: Reuse { requests_per_connection: None, connections_per_session: 1 },
            end: End::After(Duration::from_secs(1)),
            expect: Expect { body_bytes: Some(body_bytes), body_sha256: hash },
            body: BodyUse::Discard { hash_one_in: HASH_ONE_IN },
            cpus: self.cores.client.clone(),
            sources: SOURCES,
            ..Load::once(server.running.address, TIMEOUT)
        }
    }

    /// Clients that ask again as soon as they have their answer, for this long after a warm-up.
    pub fn steady_load(
        &self,
        server: &StartedServer,
        body_bytes: u64,
        connections: u32,
        time: Duration,
    ) -> Load {
        Load {
            model: LoadModel::Closed { connections },
            end: End::After(WARM_UP + time),
            warm_up: WARM_UP,
            ..self.load_on(server, body_bytes)
        }
    }

    /// Puts the load on the server and reads what it cost. A server that did not do what is being measured is an error, not
    /// a figure.
    ///
    /// # Errors
    /// [`BenchError::Failed`] if the server fails, its cost cannot be read, or the load cannot be carried out,
    /// [`BenchError::Stopped`] if the user ends it.
    pub fn measure(
        &mut self,
        server: &StartedServer,
        load: &Load,
        key: &Key,
    ) -> Result<Measured, BenchError> {
        let measured = self.measure_any_mix(server, load, key)?;
        server.check_mix(load, &measured.outcome)?;
        Ok(measured)
    }

    /// The same whatever becomes of sessions.
    pub fn measure_any_mix(
        &mut self,
        server: &StartedServer,
        load: &Load,
        key: &Key,
    ) -> Result<Measured, BenchError> {
        let stop = self.stop;
        self.measure_by(server, load, key, |on_progress| {
            Ok(client::run_with(load, &stop.now, on_progress)?)
        })
    }

    /// The same with another client, which tells its progress if it can.
    pub fn measure_by(
        &mut self,
        server: &StartedServer,
        load: &Load,
        key: &Key,
        client: impl FnOnce(&mut dyn FnMut(&Progress)) -> Result<Outcome, BenchError>,
    ) -> Result<Measured, BenchError> {
        let broken = |error: String| BenchError::server(&server.name, error);
        let system = SystemUnderTest::of(&server.running.processes());
        let first = system.snapshot().map_err(broken)?;
        let place = results::place(&key.point);
        let mut window = Window::default();
        let outcome = {
            let on_event = &mut self.on_event;
            let remaining = &self.remaining;
            let mut on_progress = |progress: &Progress| {
                window.look(progress, load, &system);
                on_event(Event::Sampling(&Sampling {
                    subject: &server.name,
                    place: &place,
                    round: key.round,
                    samples: remaining.there,
                    samples_planned: remaining.planned(),
                    left: remaining.left(progress.elapsed),
                    progress: *progress,
                }));
            };
            on_progress(&Progress::default());
            client(&mut on_progress)?
        };
        if self.stop.now.load(Ordering::Relaxed) {
            return Err(BenchError::Stopped);
        }
        let is_whole = load.warm_up.is_zero();
        if is_whole {
            // Without a warm-up the usage counts until the server has settled.
            system.settle(SETTLE_MAX).map_err(broken)?;
        }
        let last = system.snapshot().map_err(broken)?;
        let whole = last.since(&first);
        let kernel_connections = whole.kernel_connections;
        let usage = window.usage(&last).unwrap_or(whole);
        if !is_whole {
            // Its remaining work must not fall into the next server's turn.
            system.settle(SETTLE_MAX).map_err(broken)?;
        }
        proven(server, kernel_connections)?;
        answered(server, &outcome)?;
        let mut warnings = noise::warnings(&usage);
        warnings.extend(window.misses_warm_up(load).map(str::to_owned));
        let mut measured = Measured {
            outcome,
            usage,
            is_whole,
            kernel_connections,
            server_cpus: server.setup.cpus_used(),
            client_cpus: self.cores.client.len(),
            warnings,
            implausible: None,
            replaced: BTreeMap::new(),
        };
        measured.warnings.extend(measured.client_limited());
        measured.implausible = implausible::why(load, &measured);
        Ok(measured)
    }
}

impl StartedServer {
    /// Refuses an outcome in which sessions were not resumed as this load asks.
    pub fn check_mix(&self, load: &Load, outcome: &Outcome) -> Result<(), BenchError> {
        outcome.check_mix(load).map_err(|error| BenchError::server(&self.name, error))
    }
}

/// Samples of two versions of a server, or of two configurations, do not belong into one comparison.
fn same_server(earlier: &[SubjectLine], now: &SubjectLine) -> Result<(), String> {
    let SubjectLine { name, version, .. } = now;
    let is_same = |then: &&SubjectLine| {
        (&then.scenario, &then.name, &then.point) == (&now.scenario, &now.name, &now.point)
    };
    for then in earlier.iter().filter(is_same) {
        if then.version != *version {
            return Err(format!("{name} is {version} and was {}{BEGIN_ANEW}", then.version));
        }
        // Earlier programs wrote none.
        if then.template_sha256.is_some() && then.template_sha256 != now.template_sha256 {
            return Err(format!("{name} has another configuration than before{BEGIN_ANEW}"));
        }
    }
    Ok(())
}

/// The server's clocks at the edges of what the client counts.
#[derive(Default)]
struct Window {
    first: Option<Snapshot>,
    last: Option<Snapshot>,
}

impl Window {
    /// Reads the clocks at the end of the warm-up and at the load's end, where progress is told.
    fn look(&mut self, progress: &Progress, load: &Load, system: &SystemUnderTest) {
        if load.warm_up.is_zero() || progress.elapsed < load.warm_up {
            return;
        }
        let end = load.end.at_most();
        if self.first.is_none() {
            // Later, it would hold a part of the time against all that was served.
            let is_edge = progress.elapsed <= load.warm_up + end.saturating_sub(load.warm_up) / 4;
            self.first = is_edge.then(|| system.snapshot().ok()).flatten();
            return;
        }
        if self.last.is_none() && progress.elapsed >= end {
            self.last = system.snapshot().ok();
        }
    }

    /// Returns the usage between the edges; `None` if the load has no warm-up to leave out, or its end was missed.
    fn usage(&self, after: &Snapshot) -> Option<Usage> {
        Some(self.last.as_ref().unwrap_or(after).since(self.first.as_ref()?))
    }

    /// The figures are then those of the whole load.
    fn misses_warm_up(&self, load: &Load) -> Option<&'static str> {
        (!load.warm_up.is_zero() && self.first.is_none()).then_some(WARM_UP_COUNTED)
    }
}

/// A server that is said to encrypt in the kernel must have done so.
fn proven(server: &StartedServer, kernel_connections: Option<u64>) -> Result<(), BenchError> {
    if !server.subject.path.is_kernel() || kernel_connections.is_some_and(|count| count > 0) {
        return Ok(());
    }
    Err(BenchError::server(
        &server.name,
        "the kernel's own count of TLS connections (/proc/net/tls_stat) did not move, so this server encrypted elsewhere; \
         its log and `kettle doctor` may say why",
    ))
}

/// A server that gave no right answer at all has no figures.
fn answered(server: &StartedServer, outcome: &Outcome) -> Result<(), BenchError> {
    if outcome.succeeded > 0 {
        return Ok(());
    }
    let why = match outcome.failures.is_empty() {
        true => {
            "nothing was answered in the time there was; give it more with --seconds".to_owned()
        }
        false => format!("it answered nothing rightly: {}", outcome.causes_in_words()),
    };
    Err(BenchError::server(&server.name, why))
}

fn with_mend(subject: &Subject, why: &str) -> String {
    match subject.path.is_kernel() {
        true => format!("{why}; `kettle doctor` says what would help"),
        false => why.to_owned(),
    }
}

/// The advice in place of going on.
pub const BEGIN_ANEW: &str = "; begin a new run, and compare the two with `kettle bench diff`";
/// The offers for which a configuration of the operator's own may ask.
const OTHER_OFFER: &str =
    "the client offers what --tls, --suite and --group say: choose what this configuration allows";
const WARM_UP_COUNTED: &str =
    "the server's figures include the warm-up: its clocks were not read at the end of it";
/// One body of this many is opened and hashed: enough to see a wrong one, too few to cost anything.
const HASH_ONE_IN: u32 = 1000;
/// Source addresses: a pair of addresses has 28,000 ports, each of which rests a minute after its connection.
const SOURCES: u8 = 32;
const TIMEOUT: Duration = Duration::from_secs(10);
const SETTLE_MAX: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests;
