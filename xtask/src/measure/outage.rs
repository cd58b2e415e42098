//! `measure outage`: what becomes of the certificates of kettle and Caddy where their authority is away for long, where one of two servers
//! is killed in the middle of an order, where another authority is written into the configuration, and where an authority refuses
//! since the certificate was replaced already. Time is scaled: certificates live for ten minutes.

pub mod authority;
pub mod server;
mod table;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{park_timeout, scope};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{MeasureArguments, configs, programs};
use crate::vm::cache::{create_folder, remove_folder};
use crate::{checkout, go, packages, process};
use authority::Authority;
use server::{AcmeClient, ClientPrograms, ClientSetup, RunningClient};

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    Away,
    Killed,
    Changed,
    Replaced,
}

impl Scenario {
    pub const ALL: [Self; 4] = [Self::Away, Self::Killed, Self::Changed, Self::Replaced];

    /// Its name in results, and what `--only` looks in.
    pub fn name(self) -> &'static str {
        match self {
            Self::Away => "away",
            Self::Killed => "killed",
            Self::Changed => "changed",
            Self::Replaced => "replaced",
        }
    }
}

/// Runs all scenarios with all servers at once, writes what was seen and prints the table; into the documents if it is to be the new one.
pub fn run(arguments: &MeasureArguments) -> Result<(), String> {
    packages::ensure_all(&["curl", "openssl"])?;
    if !go::build_pebble()? {
        return Err("without pebble there is no authority".to_owned());
    }
    let programs = ClientPrograms::obtain(programs::kettle(arguments)?)?;
    let folder = checkout::target_folder().join("outage");
    remove_folder(&folder)?;
    let bed = OutageBed { own: folder.join("own"), folder, programs };
    authority::make_own(&bed.own)?;
    let wanted = Scenario::ALL.into_iter().filter(|it| arguments.wants(it.name()));
    let both = |scenario| AcmeClient::ALL.map(|program| (scenario, program));
    let all: Vec<(Scenario, AcmeClient)> = wanted.flat_map(both).collect();
    let seen: Vec<Result<Seen, String>> = scope(|threads| {
        let bed = &bed;
        let begin = |&(scenario, program)| threads.spawn(move || bed.see(scenario, program));
        let running: Vec<_> = all.iter().map(begin).collect();
        running
            .into_iter()
            .map(|it| it.join().unwrap_or_else(|_| Err("it panicked".into())))
            .collect()
    });
    let mut rows = Vec::new();
    for ((scenario, program), seen) in all.iter().zip(seen) {
        match seen {
            Ok(seen) => rows.push(seen.to_json(*scenario, *program)),
            Err(why) => return Err(format!("{}, {}: {why}", scenario.name(), program.name())),
        }
    }
    let kettle = process::read(Command::new(&bed.programs.kettle).arg("--version"))?;
    let record = json!({
        "kettle": kettle.lines().next(), "caddy": bed.programs.caddy_version()?,
        "lifetime_seconds": LIFETIME.as_secs(), "away_seconds": AWAY.as_secs(),
        "caddy_renew_interval": server::RENEW_INTERVAL, "rows": rows,
    });
    table::publish(&record, arguments)
}

/// Where all is, and what runs.
struct OutageBed {
    folder: PathBuf,
    own: PathBuf,
    programs: ClientPrograms,
}

/// What was seen of a server.
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
        limit: Duration,
        mut is_over: impl FnMut(bool) -> bool,
    ) -> Option<Duration> {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            let are_good = self.look(server, roots);
            if is_over(are_good) {
                return Some(begun.elapsed());
            }
            park_timeout(BETWEEN_LOOKS);
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
    fn see(&self, scenario: Scenario, program: AcmeClient) -> Result<Seen, String> {
        let folder = self.folder.join(scenario.name()).join(program.name());
        create_folder(&folder)?;
        let port = process::free_port()?;
        let authority = Authority::start(&folder.join("one"), &self.own, port, LIFETIME)?;
        let roots = folder.join("roots.pem");
        configs::write(&roots, &authority.root()?)?;
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
        };
        if scenario == Scenario::Killed {
            return self.killed(&authority, &roots, setup);
        }
        let mut seen = Seen::default();
        let begun = Instant::now();
        let server = RunningClient::start(&self.programs, setup)?;
        let first = seen.look_until(&server, &roots, LIFETIME, |are_good| are_good);
        first.ok_or("no first certificates")?;
        seen.first = Some(begun.elapsed());
        eprintln!("{}, {}: {:?}", scenario.name(), program.name(), begun.elapsed());
        match scenario {
            Scenario::Changed => self.changed(&authority, &roots, server, seen),
            Scenario::Replaced => self.replaced(&authority, &roots, server, seen),
            Scenario::Away | Scenario::Killed => Ok(away(&authority, &roots, &server, seen)),
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
        let deadline = Instant::now() + LIFETIME;
        while authority.orders() == 0 {
            if Instant::now() > deadline {
                return Err("nothing is ordered".to_owned());
            }
            park_timeout(Duration::from_millis(20));
        }
        first.kill()?;
        authority.lead_all(second.setup.address)?;
        seen.over = seen.look_until(&second, roots, LIFETIME, |are_good| are_good);
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
        let new = Authority::start(&folder, &self.own, server.setup.port, LIFETIME)?;
        let new_root = roots.with_file_name("new-root.pem");
        configs::write(&new_root, &new.root()?)?;
        configs::write(roots, &(old.root()? + &new.root()?))?;
        old.relay.be_away(true);
        let names = server.setup.names.clone();
        let setup = ClientSetup { directory: new.directory(), ..server.setup.clone() };
        server.change(setup)?;
        let begun = Instant::now();
        seen.over = seen.look_until(&server, roots, LIFETIME + MARGIN, |_| {
            server.trusted(&new_root, &names).len() == NAMES
        });
        // Long enough to see those expire that are only looked at late.
        let rest = (LIFETIME + MARGIN).saturating_sub(begun.elapsed());
        let _ = seen.look_until(&server, roots, rest, |_| false);
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
        let (state, copy) = (server.setup.state.clone(), roots.with_file_name("copy"));
        process::run_quietly(Command::new("cp").arg("-a").arg(&state).arg(&copy))?;
        let first = authority.issued();
        let renewed = seen.look_until(&server, roots, LIFETIME, |_| authority.issued() > first);
        renewed.ok_or("nothing is renewed")?;
        let setup = server.setup.clone();
        drop(server);
        remove_folder(&state)?;
        process::run_quietly(Command::new("cp").arg("-a").arg(&copy).arg(&state))?;
        let before = authority.issued();
        let server = RunningClient::start(&self.programs, setup)?;
        seen.over = seen.look_until(&server, roots, LIFETIME, |_| authority.issued() > before);
        let _ = seen.look_until(&server, roots, LIFETIME / 2, |_| false);
        seen.orders = authority.orders();
        seen.refusals = authority.refusals();
        seen.memory_bytes = server.memory_bytes();
        Ok(seen)
    }
}

/// The authority goes away for half of what a certificate lives.
fn away(authority: &Authority, roots: &Path, server: &RunningClient, mut seen: Seen) -> Seen {
    let _ = seen.look_until(server, roots, BEFORE, |_| false);
    authority.relay.be_away(true);
    let _ = seen.look_until(server, roots, AWAY, |_| false);
    authority.relay.be_away(false);
    let before = authority.issued();
    let after = LIFETIME + MARGIN - AWAY;
    let begun = Instant::now();
    seen.over = seen.look_until(server, roots, after, |are_good| {
        are_good && authority.issued() >= before + NAMES
    });
    let _ = seen.look_until(server, roots, after.saturating_sub(begun.elapsed()), |_| false);
    seen.orders = authority.orders();
    seen.memory_bytes = server.memory_bytes();
    seen
}

/// How many names there are, with a certificate each.
const NAMES: usize = 5;
/// As six days are to ten minutes, so are the three days of an outage to five.
const LIFETIME: Duration = Duration::from_mins(10);
const AWAY: Duration = Duration::from_mins(5);
/// From the first certificates until the authority goes away: a quarter of what they live.
const BEFORE: Duration = Duration::from_secs(150);
const MARGIN: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_secs(3);
