//! `measure outage`: what becomes of the certificates of kettle and Caddy where their authority is away for long, where one of two servers
//! is killed in the middle of an order, where another authority is written into the configuration, and where an authority refuses
//! since the certificate was replaced already. Time is scaled, certificates live for ten minutes; or, with `--days`, they live for six
//! days in a guest whose clock jumps to whatever is waited for next.

pub mod authority;
mod guest;
pub mod schedule;
pub mod server;
mod table;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{ScopedJoinHandle, park_timeout, scope};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{MeasureArguments, programs};
use crate::files::{self, create_folder, remove_folder};
use crate::measure::daemon::wait_until;
use crate::{checkout, go, packages, process};
use authority::Authority;
use schedule::Schedule;
use server::{AcmeClient, ClientPrograms, ClientSetup, RunningClient};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    Away,
    Late,
    Slept,
    Killed,
    Changed,
    Replaced,
}

impl Scenario {
    /// Its name in results, and what `--only` looks in.
    pub fn name(self) -> &'static str {
        match self {
            Self::Away => "away",
            Self::Late => "late",
            Self::Slept => "slept",
            Self::Killed => "killed",
            Self::Changed => "changed",
            Self::Replaced => "replaced",
        }
    }
}

/// Runs all scenarios with all servers, writes what was seen and prints the table; into the documents if it is to be the new one.
pub fn run(arguments: &MeasureArguments) -> Result<(), String> {
    let inside = ClientPrograms::of_guest();
    if arguments.is_days && inside.is_none() {
        let record = guest::run(arguments)?;
        return table::publish(&record, arguments);
    }
    let programs = match inside {
        Some(programs) => programs,
        None => obtain_programs(arguments)?,
    };
    let schedule = if arguments.is_days { &schedule::DAYS } else { &schedule::MINUTES };
    let folder = checkout::target_folder().join("outage");
    remove_folder(&folder)?;
    let bed = OutageBed { own: folder.join("own"), folder, programs, schedule };
    authority::make_own(&bed.own)?;
    let rows = bed.see_all(|scenario| arguments.wants(scenario.name()))?;
    let kettle = process::read(Command::new(&bed.programs.kettle).arg("--version"))?;
    let record = json!({
        "kettle": kettle.lines().next(), "caddy": bed.programs.caddy_version()?,
        "lifetime_seconds": schedule.lifetime.as_secs(), "away_seconds": schedule.away.as_secs(),
        "caddy_renew_interval": schedule.renew_interval, "rows": rows,
    });
    table::publish(&record, arguments)
}

/// Gets the programs of a run, built or fetched.
fn obtain_programs(arguments: &MeasureArguments) -> Result<ClientPrograms, String> {
    packages::ensure_all(&["curl", "openssl"])?;
    if !go::build_pebble()? {
        return Err("without pebble there is no authority".to_owned());
    }
    ClientPrograms::obtain(programs::kettle(arguments)?)
}

/// The programs, servers and times of a run.
struct OutageBed {
    folder: PathBuf,
    own: PathBuf,
    programs: ClientPrograms,
    schedule: &'static Schedule,
}

#[derive(Default)]
struct Seen {
    /// Names that had no good certificate at some time after their first one.
    expired: BTreeSet<String>,
    has_had: BTreeSet<String>,
    orders: usize,
    /// From the start until all names had one.
    first: Option<Duration>,
    /// From the event until all was well again, if it was while it was looked.
    over: Option<Duration>,
    refusals: usize,
    memory_bytes: f64,
}

impl Seen {
    /// Looks whether all names have a good certificate.
    fn look(&mut self, server: &RunningClient, roots: &Path) -> bool {
        let names = &server.setup.names;
        let mut good = server.trusted(roots, names);
        if self.has_had.iter().any(|name| !good.contains(name.as_str())) {
            // On a busy machine one look is none.
            good.extend(server.trusted(roots, names));
        }
        let lost = self.has_had.iter().filter(|name| !good.contains(name.as_str()));
        self.expired.extend(lost.cloned());
        self.has_had.extend(good.iter().map(|&name| name.to_owned()));
        good.len() == names.len()
    }

    /// Looks until something is so, or for so long.
    fn look_until(
        &mut self,
        server: &RunningClient,
        roots: &Path,
        (limit, pause): (Duration, Duration),
        mut is_over: impl FnMut(bool) -> bool,
    ) -> Option<Duration> {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            let are_good = self.look(server, roots);
            if is_over(are_good) {
                return Some(begun.elapsed());
            }
            park_timeout(pause);
        }
        None
    }

    fn to_json(&self, scenario: Scenario, program: AcmeClient) -> Value {
        json!({
            "scenario": scenario.name(), "program": program.name(), "expired": self.expired.len(),
            "without": NAMES - self.has_had.len(), "orders": self.orders, "refusals": self.refusals,
            "first_seconds": self.first.map(|it| it.as_secs_f64()),
            "over_seconds": self.over.map(|it| it.as_secs_f64()), "memory_bytes": self.memory_bytes,
        })
    }
}

impl OutageBed {
    /// Sees scenarios at once, but for those that set the clock, which is everybody's.
    fn see_all(&self, is_wanted: impl Fn(&Scenario) -> bool) -> Result<Vec<Value>, String> {
        let wanted = self.schedule.scenarios.iter().copied().filter(is_wanted);
        let all: Vec<_> =
            wanted.flat_map(|it| AcmeClient::ALL.map(|program| (it, program))).collect();
        let (alone, beside): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(scenario, _)| *scenario == Scenario::Slept);
        let mut seen: Vec<_> = alone.iter().map(|&(it, program)| self.see(it, program)).collect();
        seen.extend(scope(|threads| {
            let begin = |&(it, program)| threads.spawn(move || self.see(it, program));
            let running: Vec<_> = beside.iter().map(begin).collect();
            let end = |it: ScopedJoinHandle<'_, _>| {
                it.join().unwrap_or_else(|_| Err("it panicked".into()))
            };
            running.into_iter().map(end).collect::<Vec<_>>()
        }));
        let rows = alone.into_iter().chain(beside).zip(seen);
        let row = |((scenario, program), seen): ((Scenario, AcmeClient), Result<Seen, String>)| {
            let seen =
                seen.map_err(|why| format!("{}, {}: {why}", scenario.name(), program.name()))?;
            Ok(seen.to_json(scenario, program))
        };
        rows.map(row).collect()
    }

    fn see(&self, scenario: Scenario, program: AcmeClient) -> Result<Seen, String> {
        let folder = self.folder.join(scenario.name()).join(program.name());
        create_folder(&folder)?;
        let port = process::free_port()?;
        let lifetime = self.schedule.lifetime;
        let authority = Authority::start(&folder.join("one"), &self.own, port, lifetime)?;
        let roots = folder.join("roots.pem");
        files::write(&roots, &authority.root()?)?;
        let setup = ClientSetup {
            program,
            folder: folder.join("server"),
            state: folder.join("state"),
            address: "127.0.0.1",
            port,
            admin: process::free_port()?,
            names: (0..NAMES).map(|n| format!("s{n}.outage.test")).collect(),
            directory: authority.directory(),
            roots: self.own.join("authority.pem"),
            renew_interval: self.schedule.renew_interval,
        };
        if scenario == Scenario::Killed {
            return self.killed(&authority, &roots, setup);
        }
        let mut seen = Seen::default();
        let begun = Instant::now();
        let server = RunningClient::start(&self.programs, setup)?;
        let first = seen.look_until(&server, &roots, (lifetime, SOON), |are_good| are_good);
        first.ok_or("no first certificates")?;
        seen.first = Some(begun.elapsed());
        eprintln!("{}, {}: {:?}", scenario.name(), program.name(), begun.elapsed());
        match scenario {
            Scenario::Changed => self.changed(&authority, &roots, server, seen),
            Scenario::Replaced => self.replaced(&authority, &roots, server, seen),
            Scenario::Slept => self.slept(&authority, &roots, &server, seen),
            Scenario::Away | Scenario::Late | Scenario::Killed => {
                let before = self.schedule.before(scenario);
                Ok(self.away(&authority, &roots, &server, (seen, before)))
            }
        }
    }

    /// One of two servers with one state is killed as it orders; the other one, to which the names lead then, has to do it.
    fn killed(
        &self,
        authority: &Authority,
        roots: &Path,
        setup: ClientSetup,
    ) -> Result<Seen, String> {
        let mut seen = Seen::default();
        authority.relay.be_away(true);
        let second = ClientSetup {
            folder: setup.folder.with_file_name("second"),
            address: "127.0.0.2",
            admin: process::free_port()?,
            ..setup.clone()
        };
        let mut first = RunningClient::start(&self.programs, setup)?;
        // The first one has what there is to hold before the second one begins.
        park_timeout(Duration::from_secs(3));
        let second = RunningClient::start(&self.programs, second)?;
        park_timeout(Duration::from_secs(3));
        authority.relay.be_away(false);
        let is_ordered = || authority.orders() > 0;
        if !wait_until(self.schedule.lifetime, Duration::from_millis(20), is_ordered) {
            return Err("nothing is ordered".to_owned());
        }
        first.daemon.kill();
        authority.lead_all(second.setup.address)?;
        seen.over =
            seen.look_until(&second, roots, (self.schedule.lifetime, SOON), |are_good| are_good);
        seen.orders = authority.orders();
        seen.memory_bytes = second.memory_bytes();
        Ok(seen)
    }

    /// Another authority is written into the configuration and the first one is gone.
    fn changed(
        &self,
        old: &Authority,
        roots: &Path,
        mut server: RunningClient,
        mut seen: Seen,
    ) -> Result<Seen, String> {
        let folder = roots.with_file_name("two");
        let Schedule { lifetime, margin, .. } = *self.schedule;
        let new = Authority::start(&folder, &self.own, server.setup.port, lifetime)?;
        let new_root = roots.with_file_name("new-root.pem");
        files::write(&new_root, &new.root()?)?;
        files::write(roots, &(old.root()? + &new.root()?))?;
        old.relay.be_away(true);
        let names = server.setup.names.clone();
        let setup = ClientSetup { directory: new.directory(), ..server.setup.clone() };
        server.change(setup)?;
        let begun = Instant::now();
        seen.over = seen.look_until(&server, roots, (lifetime + margin, SOON), |_| {
            server.trusted(&new_root, &names).len() == NAMES
        });
        // Long enough to see those expire that are only looked at late.
        let rest = (lifetime + margin).saturating_sub(begun.elapsed());
        let _ = seen.look_until(&server, roots, (rest, SOON), |_| false);
        seen.orders = old.orders() + new.orders();
        seen.memory_bytes = server.memory_bytes();
        Ok(seen)
    }

    /// A server gets its old state back after its first renewal, as from a copy: the authority refuses to replace a certificate twice.
    fn replaced(
        &self,
        authority: &Authority,
        roots: &Path,
        server: RunningClient,
        mut seen: Seen,
    ) -> Result<Seen, String> {
        let state = server.setup.state.clone();
        let copy = roots.with_file_name("copy");
        process::run_quietly(Command::new("cp").arg("-a").arg(&state).arg(&copy))?;
        let first = authority.issued();
        let lifetime = self.schedule.lifetime;
        let long = (lifetime, SOON);
        let renewed = seen.look_until(&server, roots, long, |_| authority.issued() > first);
        renewed.ok_or("nothing is renewed")?;
        let setup = server.setup.clone();
        drop(server);
        remove_folder(&state)?;
        process::run_quietly(Command::new("cp").arg("-a").arg(&copy).arg(&state))?;
        let before = authority.issued();
        let server = RunningClient::start(&self.programs, setup)?;
        seen.over = seen.look_until(&server, roots, long, |_| authority.issued() > before);
        let _ = seen.look_until(&server, roots, (lifetime / 2, SOON), |_| false);
        seen.orders = authority.orders();
        seen.refusals = authority.refusals();
        seen.memory_bytes = server.memory_bytes();
        Ok(seen)
    }

    /// The authority goes away for half of what a certificate lives.
    fn away(
        &self,
        authority: &Authority,
        roots: &Path,
        server: &RunningClient,
        (mut seen, before): (Seen, Duration),
    ) -> Seen {
        let Schedule { away, looked, between_looks, .. } = *self.schedule;
        let _ = seen.look_until(server, roots, (before, between_looks), |_| false);
        let place = roots.display();
        eprintln!("{place}: the authority goes away");
        authority.relay.be_away(true);
        let _ = seen.look_until(server, roots, (away, between_looks), |_| false);
        authority.relay.be_away(false);
        eprintln!("{place}: it is back");
        let issued = authority.issued();
        let after = looked.saturating_sub(before + away);
        let begun = Instant::now();
        let often = between_looks / LOOKS_AFTER;
        seen.over = seen.look_until(server, roots, (after, often), |are_good| {
            are_good && authority.issued() >= issued + NAMES
        });
        let rest = after.saturating_sub(begun.elapsed());
        let _ = seen.look_until(server, roots, (rest, between_looks), |_| false);
        seen.orders = authority.orders();
        seen.memory_bytes = server.memory_bytes();
        seen
    }

    /// The clock goes on and all that waits does not, as in a machine that sleeps.
    fn slept(
        &self,
        authority: &Authority,
        roots: &Path,
        server: &RunningClient,
        mut seen: Seen,
    ) -> Result<Seen, String> {
        let issued = authority.issued();
        let ahead = self.schedule.slept.as_secs();
        let now = process::read(Command::new("date").arg("+%s"))?;
        let now: u64 = now.trim().parse().map_err(|_| format!("date says {now}"))?;
        process::run_quietly(Command::new("date").arg("-s").arg(format!("@{}", now + ahead)))?;
        let limit = self.schedule.margin;
        seen.over = seen.look_until(server, roots, (limit, SOON), |are_good| {
            are_good && authority.issued() >= issued + NAMES
        });
        seen.orders = authority.orders();
        seen.memory_bytes = server.memory_bytes();
        Ok(seen)
    }
}

/// The number of names there are, with a certificate each.
const NAMES: usize = 5;
/// The time between two looks where something comes soon.
const SOON: Duration = Duration::from_secs(3);
/// So much more often it is looked once the authority is back.
const LOOKS_AFTER: u32 = 12;
