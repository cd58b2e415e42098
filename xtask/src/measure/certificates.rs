//! `measure certificates`: what many certificates that are fetched cost kettle and Caddy: a start with them in their folders, one more of
//! them in force, memory; and how long it takes to order a hundred.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::outage::authority::{Authority, make_own};
use super::outage::schedule::MINUTES;
use super::outage::server::{AcmeClient, ClientPrograms, ClientSetup, RunningClient};
use super::rounds::{Rounds, estimate, shown};
use super::{MeasureArguments, page, programs};
use crate::files::{self, at, create_folder, remove_folder};
use crate::measure::daemon::wait_until;
use crate::{checkout, go, packages, process};

/// Measures both servers in turn, writes the results and prints the table; into the documents if it is to be the new one.
pub fn run(arguments: &MeasureArguments) -> Result<(), String> {
    packages::ensure_all(&["curl", "openssl"])?;
    if !go::build_pebble()? {
        return Err("without pebble there is no authority".to_owned());
    }
    let programs = ClientPrograms::obtain(programs::kettle(arguments)?)?;
    let folder = checkout::target_folder().join("certificates");
    remove_folder(&folder)?;
    let bed = CertificatesBed { own: folder.join("own"), folder, programs };
    make_own(&bed.own)?;
    let most = arguments.most.unwrap_or(u64::MAX) as usize;
    let wanted = ROWS.iter().filter(|row| arguments.wants(row.name) && row.number <= most);
    let mut samples = Vec::new();
    for row in wanted {
        bed.sign(if row.name == FILES { row.number } else { 0 })?;
        for round in 0..arguments.rounds.unwrap_or(ROUNDS) {
            for client in AcmeClient::ALL {
                let begun = Instant::now();
                let figures = match row.name {
                    FILES => bed.files(row.number, client),
                    _ => bed.orders(row.number, client),
                };
                let figures = figures.map_err(|why| format!("{}: {why}", client.name()))?;
                let took = begun.elapsed().as_secs();
                eprintln!("{} {}, {}: {figures} in {took} s", row.number, row.name, client.name());
                samples.push(json!({ "what": row.name, "number": row.number, "round": round,
                    "program": client.name(), "figures": figures }));
            }
        }
    }
    let kettle = process::read(Command::new(&bed.programs.kettle).arg("--version"))?;
    let record = json!({ "kettle": kettle.lines().next(), "caddy": bed.programs.caddy_version()?,
        "samples": samples });
    publish(&record, arguments)
}

struct Amount {
    name: &'static str,
    number: usize,
}

const ROWS: &[Amount] = &[
    Amount { name: FILES, number: 1_000 },
    Amount { name: FILES, number: 10_000 },
    Amount { name: ORDERS, number: 100 },
];

/// The programs, folders and servers of a run.
struct CertificatesBed {
    folder: PathBuf,
    own: PathBuf,
    programs: ClientPrograms,
}

impl CertificatesBed {
    /// Signs a certificate with a key of its own for each of so many names, unless it is there.
    fn sign(&self, number: usize) -> Result<(), String> {
        let folder = self.signed();
        create_folder(&folder)?;
        let lacks = |name: &String| !folder.join(format!("{name}.pem")).exists();
        let names: Vec<String> = names(number).into_iter().filter(lacks).collect();
        let signed = ["-CA", "../own/authority.pem", "-CAkey", "../own/authority.key"];
        process::certify(&folder, &names, &signed)
    }

    /// Measures what a start with so many certificates takes, their memory, and how long one more takes to be in force once it
    /// is fetched.
    fn files(&self, number: usize, client: AcmeClient) -> Result<Value, String> {
        let (authority, setup) = self.begin(number, client)?;
        for name in &setup.names {
            self.put(&setup, name)?;
        }
        let few = [0, number / 2, number - 1].map(name);
        let known = self.own.join("authority.pem");
        let begun = Instant::now();
        let mut server = RunningClient::start(&self.programs, setup)?;
        until("all are shown", || server.trusted(&known, &few).len() == few.len())?;
        let start = begun.elapsed();
        park_timeout(SETTLES);
        let memory = server.memory_bytes();
        let more = [name(number)];
        let mut names = server.setup.names.clone();
        names.extend(more.clone());
        server.change(ClientSetup { names, ..server.setup.clone() })?;
        let added = Instant::now();
        until("another one is ordered", || authority.orders() > 0)?;
        let ordered = added.elapsed();
        until("another one is fetched", || authority.fetched() > 0)?;
        let fetched = Instant::now();
        let root = self.folder.join("root.pem");
        files::write(&root, &authority.root()?)?;
        until("another one is shown", || !server.trusted(&root, &more).is_empty())?;
        Ok(json!({ "start_seconds": start.as_secs_f64(), "memory_bytes": memory,
            "ordered_seconds": ordered.as_secs_f64(), "in_force_seconds": fetched.elapsed().as_secs_f64() }))
    }

    /// The time it takes to get so many certificates.
    fn orders(&self, number: usize, client: AcmeClient) -> Result<Value, String> {
        let (authority, setup) = self.begin(number, client)?;
        let root = self.folder.join("root.pem");
        files::write(&root, &authority.root()?)?;
        let names = setup.names.clone();
        let begun = Instant::now();
        let server = RunningClient::start(&self.programs, setup)?;
        until("all are issued", || authority.issued() >= number)?;
        until("all are shown", || server.trusted(&root, &names).len() == number)?;
        Ok(json!({ "start_seconds": begun.elapsed().as_secs_f64(), "orders": authority.orders(),
            "memory_bytes": server.memory_bytes() }))
    }

    /// An authority, and the setup of a server with so many names.
    fn begin(&self, number: usize, client: AcmeClient) -> Result<(Authority, ClientSetup), String> {
        let folder = self.folder.join("server");
        remove_folder(&folder)?;
        create_folder(&folder)?;
        let port = process::free_port()?;
        let authority = Authority::start(&folder.join("authority"), &self.own, port, LIFETIME)?;
        let setup = ClientSetup {
            program: client,
            folder: folder.join("own"),
            state: folder.join("state"),
            address: "127.0.0.1",
            port,
            admin: process::free_port()?,
            names: names(number),
            directory: authority.directory(),
            roots: self.own.join("authority.pem"),
            renew_interval: MINUTES.renew_interval,
        };
        Ok((authority, setup))
    }

    /// Puts a certificate where the server would have put it.
    fn put(&self, setup: &ClientSetup, name: &str) -> Result<(), String> {
        let copy =
            |kind: &str, to: &Path| files::copy(self.signed().join(format!("{name}.{kind}")), to);
        let directory = &setup.directory;
        if setup.program == AcmeClient::Caddy {
            let of_authority = directory.trim_start_matches("https://").replace([':', '/'], "-");
            let folder = setup.state.join("certificates").join(of_authority).join(name);
            create_folder(&folder)?;
            copy("pem", &folder.join(format!("{name}.crt")))?;
            copy("key", &folder.join(format!("{name}.key")))?;
            let known = json!({ "sans": [name], "issuer_data": { "ca": directory } });
            return files::write(folder.join(format!("{name}.json")), known.to_string());
        }
        let site = setup.state.join("acme/certificates").join(name);
        let folder = site.join("1");
        create_folder(&folder)?;
        copy("pem", &folder.join("chain.pem"))?;
        copy("key", &folder.join("key.pem"))?;
        let key = folder.join("key.pem");
        fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).map_err(|it| at(&key, &it))?;
        let origin = json!({ "directory": directory });
        files::write(folder.join("origin.json"), origin.to_string())?;
        files::link("1", site.join("current"))
    }

    fn signed(&self) -> PathBuf {
        self.folder.join("signed")
    }
}

fn name(number: usize) -> String {
    format!("s{number}.many.test")
}

fn names(number: usize) -> Vec<String> {
    (0..number).map(name).collect()
}

fn until(what: &str, is_so: impl FnMut() -> bool) -> Result<(), String> {
    let is_so = wait_until(WAIT_MAX, Duration::from_millis(20), is_so);
    is_so.then_some(()).ok_or_else(|| format!("waited in vain until {what}"))
}

fn publish(record: &Value, arguments: &MeasureArguments) -> Result<(), String> {
    let table = render(record);
    let is_whole = arguments.only.is_empty() && arguments.most.is_none();
    page::publish(arguments, record, "certificates", ("certificates.json", &table), is_whole)
}

/// The table, below what ran.
fn render(record: &Value) -> String {
    let word = |name: &str| record[name].as_str().unwrap_or("unknown").to_owned();
    let mut lines = vec![
        format!("{} and Caddy {} of Debian sid.\n", word("kettle"), word("caddy")),
        "| certificates | a | kettle | Caddy |".to_owned(),
        "|---|---|--:|--:|".to_owned(),
    ];
    for row in ROWS {
        for (figure, told, scale) in TOLD {
            let mut of: BTreeMap<&str, Rounds> = BTreeMap::new();
            let samples = record["samples"].as_array().into_iter().flatten();
            for sample in samples.filter(|it| it["what"] == row.name && it["number"] == row.number)
            {
                let value = sample["figures"][figure].as_f64();
                let place = sample["program"].as_str().zip(sample["round"].as_u64());
                if let (Some(value), Some((program, round))) = (value, place) {
                    of.entry(program).or_default().insert(round as usize, value / scale);
                }
            }
            let [kettle, caddy] =
                AcmeClient::ALL.map(|client| of.get(client.name()).map(|it| shown(estimate(it))));
            if let (Some(kettle), Some(caddy)) = (kettle, caddy) {
                let number = row.number;
                let name = row.name;
                lines.push(format!("| {number} {name} | {told} | {kettle} | {caddy} |"));
            }
        }
    }
    lines.join("\n") + "\n"
}

/// The figures of a sample: name, name in the table, and divisor.
const TOLD: &[(&str, &str, f64)] = &[
    ("start_seconds", "from the start until all are shown (s)", 1.0),
    ("ordered_seconds", "one more, until it is ordered (s)", 1.0),
    ("in_force_seconds", "one more, from when it is fetched until it is shown (s)", 1.0),
    ("memory_bytes", "memory (MiB)", 1_048_576.0),
    ("orders", "orders", 1.0),
];

const FILES: &str = "in their folders";
const ORDERS: &str = "that are ordered";
const ROUNDS: usize = 3;
const LIFETIME: Duration = Duration::from_hours(24);
/// Until what is done after a start is done.
const SETTLES: Duration = Duration::from_secs(10);
const WAIT_MAX: Duration = Duration::from_mins(5);
