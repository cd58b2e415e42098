//! The equipment of a measurement: programs, processors, files and certificates made for it, and the servers of a row.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::super::reference::ReferencePrograms;
use super::super::{MeasureArguments, programs};
use super::load::{self, Begun, Client, LoadTarget};
use super::server::{self, Program, RunningServer, ServerPrograms, Setup};
use super::{Kind, Row, behind};
use crate::files::{self, Temporary, create_folder, remove_folder};
use crate::measure::daemon::wait_until;
use crate::vm::cache::Cache;
use crate::{packages, process};

/// The programs and files of a measurement, in a folder that goes with it.
pub struct GrowthBed {
    pub programs: ServerPrograms,
    pub client: Client,
    pub rounds: usize,
    pub seconds: u64,
    most: u64,
    server_cpus: String,
    pub folder: PathBuf,
    /// The number of pairs of servers there were, each with a folder of its own.
    pairs: Cell<u32>,
}

impl GrowthBed {
    pub fn new(arguments: &MeasureArguments, folder: PathBuf) -> Result<Self, String> {
        packages::ensure_all(&["openssl"])?;
        let cpus = cpus()?;
        let (client, servers) = cpus.split_last().ok_or("no processors")?;
        let servers = if servers.is_empty() { std::slice::from_ref(client) } else { servers };
        let server_cpus: Vec<String> = servers.iter().map(usize::to_string).collect();
        create_folder(&folder)?;
        let reference = ReferencePrograms::obtain(&Cache::open()?)?;
        let bed = Self {
            programs: ServerPrograms {
                kettle: programs::kettle(arguments)?,
                nginx: reference.tree().to_owned(),
            },
            client: Client { bench: programs::kettle_bench(arguments)?, cpus: client.to_string() },
            rounds: arguments.rounds.unwrap_or(ROUNDS),
            seconds: arguments.seconds.unwrap_or(SECONDS),
            most: arguments.most.unwrap_or(u64::MAX),
            server_cpus: server_cpus.join(","),
            folder,
            pairs: Cell::new(0),
        };
        create_folder(&bed.certificates())?;
        bed.certify(std::iter::once("localhost".to_owned()))?;
        Ok(bed)
    }

    /// The numbers of a row that were asked for.
    pub fn numbers<'r>(&self, row: &'r Row) -> impl Iterator<Item = u64> + use<'r> {
        let most = self.most;
        row.numbers.iter().copied().filter(move |number| *number <= most)
    }

    /// Tells whether disk and page cache hold so many responses, kept by both servers, each in an inode.
    pub fn has_room(&self, row: &Row, number: u64) -> Result<(), String> {
        if !matches!(row.kind, Kind::Objects | Kind::Fill) {
            return Ok(());
        }
        let needed = 2 * number * (row.body_bytes + BLOCK_BYTES + INODE_BYTES);
        let mut df = Command::new("df");
        let free = process::read(df.args(["--output=avail", "-B1"]).arg(&self.folder))?;
        let free = free.split_whitespace().last().and_then(|it| it.parse().ok()).unwrap_or(0);
        let known = fs::read_to_string("/proc/meminfo").map_err(|error| error.to_string())?;
        let memory = known.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
        let memory = memory.and_then(|it| it.trim().strip_suffix("kB")?.trim().parse().ok());
        let memory = memory.unwrap_or(0) * 1_024;
        for (what, has) in [("disk", free), ("page cache", memory)] {
            if has < needed {
                let [needed, has] = [needed, has].map(|bytes: u64| bytes >> 20);
                return Err(format!("the {what} has room for {has} MiB, and {needed} are needed"));
            }
        }
        Ok(())
    }

    /// Makes what is served: a file for each number, or one for all.
    pub fn make_bodies(&self, row: &Row) -> Result<(), String> {
        remove_folder(&self.site())?;
        let body: Vec<u8> = match row.kind {
            Kind::Texts => behind::TEXT.bytes().cycle().take(row.body_bytes as usize).collect(),
            _ => (0..row.body_bytes).map(|n| b'a' + (n % 23) as u8).collect(),
        };
        let write = |path: PathBuf, body: &[u8]| files::write(&path, body);
        for folder in ["a", "b"] {
            create_folder(&self.site().join(folder))?;
        }
        write(self.site().join("body"), &body)?;
        write(self.site().join("program.php"), behind::PROGRAM.as_bytes())?;
        write(self.site().join("a/f0"), &body)?;
        // Another answer, by which a reload shows.
        write(self.site().join("b/f0"), &[body.as_slice(), b"b"].concat())?;
        let count = match row.kind {
            Kind::Files => self.numbers(row).max().unwrap_or(1),
            _ => 1,
        };
        (0..count).try_for_each(|n| write(self.site().join(format!("f{n}")), &body))
    }

    /// Makes a certificate with a key of its own for each of so many sites, unless it is there.
    pub fn make_certificates(&self, number: u64) -> Result<(), String> {
        self.certify((0..number).map(|n| format!("s{n}.growth.test")))
    }

    fn certify(&self, names: impl Iterator<Item = String>) -> Result<(), String> {
        let lacks = |name: &String| !self.certificates().join(format!("{name}.pem")).exists();
        let names: Vec<String> = names.filter(lacks).collect();
        process::certify(&self.certificates(), &names, &[])
    }

    /// Starts both servers, each with an empty store, and the origin behind them.
    pub fn pair(&self, row: &Row, number: u64, hot_memory: &str) -> Result<Pair, String> {
        let folder = self.next_folder();
        let origin = folder.join("origin");
        let site = self.site();
        let cpus = self.client.cpus.as_str();
        let origin = if matches!(row.kind, Kind::Programs | Kind::KeptPrograms) {
            // nginx's package has the parameters that programs are told.
            packages::ensure_servers(&["php-fpm", "nginx"])?;
            RunningServer::start(server::php(cpus, &origin), &origin, behind::php_config)?
        } else {
            let command = self.programs.command(Program::Nginx, cpus, &origin);
            RunningServer::start(command, &origin, |port| server::origin(&site, port))?
        };
        let start = |program| {
            let setup = self.setup(row, number, "a", (origin.port, hot_memory));
            self.start(program, &folder.join(format!("{program:?}")), &setup)
        };
        let servers = [start(Program::Kettle)?, start(Program::Nginx)?];
        Ok(Pair { servers, origin, _folder: Temporary(folder) })
    }

    pub fn server(
        &self,
        row: &Row,
        number: u64,
        program: Program,
    ) -> Result<RunningServer, String> {
        let setup = self.setup(row, number, "a", (0, super::DEFAULT_HOT_MEMORY));
        self.start(program, &self.next_folder(), &setup)
    }

    /// The configuration by which the last of many sites answers otherwise.
    pub fn reloaded(
        &self,
        row: &Row,
        number: u64,
        program: Program,
        server: &RunningServer,
    ) -> String {
        let setup = self.setup(row, number, "b", (0, super::DEFAULT_HOT_MEMORY));
        setup.config(program, &server.folder, server.port)
    }

    /// Holds connections by a load of these words, and waits until all are there.
    pub fn hold(&self, server: &RunningServer, number: u64, words: &str) -> Result<Begun, String> {
        let before = server.daemon.descriptors();
        let target = LoadTarget { port: server.port, host: "localhost", path: "/f0" };
        let held = self.client.begin(target, &format!("{words} -c {number}"))?;
        let are_taken = wait_until(HOLD_TIME_MAX, Duration::from_millis(100), || {
            server.daemon.descriptors().saturating_sub(before) as u64 >= number
        });
        if are_taken { Ok(held) } else { Err("connections are not taken".to_owned()) }
    }

    fn start(
        &self,
        program: Program,
        folder: &Path,
        setup: &Setup<'_>,
    ) -> Result<RunningServer, String> {
        create_folder(folder)?;
        for (name, own) in [("localhost.pem", "certificate.pem"), ("localhost.key", "key.pem")] {
            let from = self.certificates().join(name);
            let to = folder.join(own);
            files::copy(&from, to)?;
        }
        let command = self.programs.command(program, &self.server_cpus, folder);
        RunningServer::start(command, folder, |port| setup.config(program, folder, port))
    }

    fn setup<'s>(
        &'s self,
        row: &Row,
        number: u64,
        last_site: &'s str,
        (origin, hot_memory): (u16, &'s str),
    ) -> Setup<'s> {
        let kind = row.kind;
        let workers = row.workers;
        let folder = self.folder.as_path();
        Setup { kind, number, workers, folder, last_site, origin, hot_memory }
    }

    fn next_folder(&self) -> PathBuf {
        self.pairs.set(self.pairs.get() + 1);
        self.folder.join(self.pairs.get().to_string())
    }

    fn site(&self) -> PathBuf {
        self.folder.join("site")
    }

    fn certificates(&self) -> PathBuf {
        self.folder.join("certificates")
    }
}

impl Drop for GrowthBed {
    fn drop(&mut self) {
        if let Err(why) = remove_folder(&self.folder) {
            eprintln!("{why}");
        }
    }
}

/// Both servers and their origin, in a folder that goes with them, behind their end.
pub struct Pair {
    servers: [RunningServer; 2],
    origin: RunningServer,
    _folder: Temporary,
}

impl Pair {
    pub fn server(&self, program: Program) -> &RunningServer {
        let [kettle, nginx] = &self.servers;
        if program == Program::Kettle { kettle } else { nginx }
    }

    pub fn requests_at_origin(&self) -> Result<u64, String> {
        load::requests_at_origin(self.origin.port)
    }
}

/// The processors this process may run on.
fn cpus() -> Result<Vec<usize>, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let list = list.map(parse_cpus).filter(|list| !list.is_empty());
    list.ok_or_else(|| "no list of processors".to_owned())
}

/// `0-2,5`.
pub fn parse_cpus(list: &str) -> Vec<usize> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?)
    });
    ranges.flatten().collect()
}

const ROUNDS: usize = 7;
const SECONDS: u64 = 2;
/// A head is in a block of its own, or makes the body take one more.
const BLOCK_BYTES: u64 = 4_096;
/// An inode and a name in memory, on ext4.
const INODE_BYTES: u64 = 1_536;
const HOLD_TIME_MAX: Duration = Duration::from_secs(120);
