//! Servers that fetch certificates: their configurations, a start, an end, and for which names they show a good certificate.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files::{self, create_folder};
use crate::measure::daemon::{Daemon, ending_with_us};
use crate::process;
use crate::vm::apt::{self};
use crate::vm::cache::Cache;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcmeClient {
    Kettle,
    Caddy,
}

impl AcmeClient {
    pub const ALL: [Self; 2] = [Self::Kettle, Self::Caddy];

    pub fn name(self) -> &'static str {
        match self {
            Self::Kettle => "kettle",
            Self::Caddy => "Caddy",
        }
    }
}

pub struct ClientPrograms {
    pub kettle: PathBuf,
    pub caddy: PathBuf,
}

impl ClientPrograms {
    /// Has Caddy of Debian sid unpacked on first use.
    pub fn obtain(kettle: PathBuf) -> Result<Self, String> {
        let tree = Cache::open()?
            .obtain("caddy", "sid", |folder| apt::fetch("caddy", &["sid"], &folder.join("tree")))?;
        Ok(Self { kettle, caddy: tree.join("tree/usr/bin/caddy") })
    }

    /// Those that a guest was given.
    pub fn of_guest() -> Option<Self> {
        let folder = PathBuf::from(env::var_os(IN_GUEST)?);
        Some(Self { kettle: folder.join("kettle"), caddy: folder.join("caddy") })
    }

    pub fn caddy_version(&self) -> Result<String, String> {
        let said = process::read(Command::new(&self.caddy).arg("version"))?;
        Ok(said.split_whitespace().next().unwrap_or_default().trim_start_matches('v').to_owned())
    }

    fn of(&self, program: AcmeClient) -> &Path {
        match program {
            AcmeClient::Kettle => &self.kettle,
            AcmeClient::Caddy => &self.caddy,
        }
    }
}

#[derive(Clone)]
pub struct ClientSetup {
    pub program: AcmeClient,
    /// Its own: configuration and log.
    pub folder: PathBuf,
    /// The folder of its certificates, which another one may share.
    pub state: PathBuf,
    pub address: &'static str,
    pub port: u16,
    /// For Caddy's commands.
    pub admin: u16,
    /// The names of its certificates, a site each.
    pub names: Vec<String>,
    /// The authority's directory, and the file of the root of its own certificate.
    pub directory: String,
    pub roots: PathBuf,
    /// The interval at which Caddy looks at its certificates, where that is not its own 10 minutes.
    pub renew_interval: Option<&'static str>,
}

impl ClientSetup {
    fn config(&self) -> String {
        match self.program {
            AcmeClient::Kettle => self.kettle(),
            AcmeClient::Caddy => self.caddy(),
        }
    }

    fn kettle(&self) -> String {
        let state = self.state.display();
        let roots = self.roots.display();
        let folder = self.folder.display();
        let address = self.address;
        let port = self.port;
        let directory = &self.directory;
        let mut text = format!(
            "[server]\nworkers = 1\nstate_directory = \"{state}\"\n[[acme]]\nname = \"authority\"\ndirectory = \"{directory}\"\n\
             roots = \"{roots}\"\naccept_terms = true\nvalidations_per_hour = 1000\norders_per_minute = 1000\n[[listener]]\naddress = \"{address}:{port}\"\n"
        );
        for name in &self.names {
            let _ = writeln!(
                text,
                "[[site]]\nnames = [\"{name}\"]\nacme = {{ challenges = [\"tls-alpn-01\"] }}\nroute = [{{ root = \"{folder}/site\" }}]"
            );
        }
        text
    }

    fn caddy(&self) -> String {
        let state = self.state.display();
        let roots = self.roots.display();
        let folder = self.folder.display();
        let address = self.address;
        let port = self.port;
        let admin = self.admin;
        let directory = &self.directory;
        let names = self.names.join(", ");
        let interval = self.renew_interval.map(|it| format!("renew_interval {it}\n"));
        let interval = interval.unwrap_or_default();
        format!(
            "{{\nadmin 127.0.0.1:{admin}\nstorage file_system {state}\n{interval}\
             auto_https disable_redirects\nhttps_port {port}\ndefault_bind {address}\nskip_install_trust\n}}\n\
             {names} {{\ntls {{\nissuer acme {{\ndir {directory}\ntrusted_roots {roots}\ndisable_http_challenge\n}}\n}}\n\
             root * {folder}/site\nfile_server\n}}\n"
        )
    }

    fn path(&self) -> PathBuf {
        self.folder.join("config")
    }
}

/// A server that was started. It is ended when dropped.
pub struct RunningClient {
    pub setup: ClientSetup,
    pub daemon: Daemon,
    program: PathBuf,
}

impl RunningClient {
    /// Starts one and waits until it can be connected to.
    pub fn start(programs: &ClientPrograms, setup: ClientSetup) -> Result<Self, String> {
        create_folder(&setup.folder.join("site"))?;
        create_folder(&setup.state)?;
        files::write(setup.folder.join("site/index.html"), "a page")?;
        files::write(setup.path(), setup.config())?;
        let program = programs.of(setup.program).to_owned();
        let mut command = ending_with_us();
        command.arg(&program).args(["run", "--config"]).arg(setup.path());
        if setup.program == AcmeClient::Caddy {
            command.args(["--adapter", "caddyfile"]);
            command
                .envs(["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"].map(|it| (it, &setup.folder)));
        }
        let log = setup.folder.join(format!("log{}", setup.number_of_logs()));
        let daemon = Daemon::start(&mut command, &log, (setup.address, setup.port))?;
        Ok(Self { setup, daemon, program })
    }

    /// Has it read its configuration anew, for another authority or other names.
    pub fn change(&mut self, setup: ClientSetup) -> Result<(), String> {
        self.setup = setup;
        files::write(self.setup.path(), self.setup.config())?;
        if self.setup.program == AcmeClient::Kettle {
            return self.daemon.signal("HUP");
        }
        let mut command = Command::new(&self.program);
        command.args(["reload", "--adapter", "caddyfile", "--address"]);
        command.arg(format!("127.0.0.1:{}", self.setup.admin));
        process::run_quietly(command.arg("--config").arg(self.setup.path()))
    }

    /// Memory of its processes in bytes without that of their programs' files, which servers that run beside it share.
    pub fn memory_bytes(&self) -> f64 {
        self.daemon.memory_bytes("Pss_Anon:")
    }

    /// For which of these names it shows a certificate that is in time and of one of these roots.
    pub fn trusted<'n>(&self, roots: &Path, names: &'n [String]) -> BTreeSet<&'n str> {
        let port = self.setup.port;
        let address = self.setup.address;
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--max-time", "20", "--write-out", "%{url} %{http_code}\n"]);
        curl.arg("--cacert").arg(roots);
        for name in names {
            curl.args(["--resolve", &format!("{name}:{port}:{address}")]);
            curl.args(["--output", "/dev/null", &format!("https://{name}:{port}/")]);
        }
        let output = curl.output();
        let said = output.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
        let said = said.unwrap_or_default();
        let good: BTreeSet<&str> = said.lines().filter_map(|it| it.strip_suffix(" 200")).collect();
        let is_trusted = |name: &&str| good.contains(format!("https://{name}:{port}/").as_str());
        names.iter().map(String::as_str).filter(is_trusted).collect()
    }
}

impl ClientSetup {
    fn number_of_logs(&self) -> usize {
        (0..).take_while(|n| self.folder.join(format!("log{n}")).exists()).count()
    }
}

/// In a guest the variable that says in which folder the programs are.
pub const IN_GUEST: &str = "KETTLE_PROGRAMS";
