//! Pebble, an authority for tests (RFC 8555), and the name server that it asks: every name is at the address of the test.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::certificate::{Kind, authority_pem, issue};
use crate::environment::go_program_or_skip;
use crate::setup::{unused_address, unused_ip};
use crate::tool::{Running, Tool, wait_until_listening};

/// An authority about to be started.
#[derive(Clone)]
pub struct PebbleSetup {
    environment: Vec<(&'static str, String)>,
    settings: String,
    lifetime_seconds: u64,
    tls: SocketAddr,
    http: SocketAddr,
    listen: SocketAddr,
}

/// An authority that runs.
pub struct Pebble {
    /// Its messages.
    pub process: Running,
    _names: Running,
    folder: TempDir,
    setup: PebbleSetup,
    management: SocketAddr,
    names_management: SocketAddr,
}

impl Default for PebbleSetup {
    fn default() -> Self {
        let environment = vec![
            ("PEBBLE_VA_NOSLEEP", "1".to_owned()),
            ("PEBBLE_WFE_NONCEREJECT", "0".to_owned()),
            ("PEBBLE_AUTHZREUSE", "0".to_owned()),
        ];
        let tls = unused_address();
        let http = unused_address();
        let listen = unused_address();
        let settings = String::new();
        let lifetime_seconds = 90 * 86_400;
        Self { environment, settings, lifetime_seconds, tls, http, listen }
    }
}

impl PebbleSetup {
    /// An environment variable, which says how it misbehaves.
    #[must_use]
    pub fn environment(mut self, name: &'static str, value: &str) -> Self {
        self.environment.push((name, value.to_owned()));
        self
    }

    /// A setting in JSON.
    #[must_use]
    pub fn set(mut self, setting: &str) -> Self {
        writeln!(self.settings, "{setting},").unwrap();
        self
    }

    /// Sets the lifetime of its certificates.
    #[must_use]
    pub fn lifetime(mut self, seconds: u64) -> Self {
        self.lifetime_seconds = seconds;
        self
    }

    /// Returns the address where it looks for an `https` listener.
    pub fn tls(&self) -> SocketAddr {
        self.tls
    }

    /// Returns the address where it looks for an `http` listener.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        self.listen
    }

    /// The URL of its directory.
    pub fn directory(&self) -> String {
        format!("https://{}/dir", self.listen)
    }

    /// The table of an authority of this name in kettle's configuration, with more settings.
    pub fn table(&self, name: &str, more: &str) -> String {
        self.table_at(name, &self.directory(), more)
    }

    /// The same for a directory elsewhere, such as a [front's](crate::front::Front).
    pub fn table_at(&self, name: &str, directory: &str, more: &str) -> String {
        // Where none is asked for, it draws one by lot.
        let profile = if more.contains("profile") { "" } else { "profile = \"default\"\n" };
        format!(
            "[[acme]]\nname = \"{name}\"\ndirectory = \"{directory}\"\naccept_terms = true\nroots = \"authority.pem\"\n\
             validations_per_hour = 1000\norders_per_minute = 1000\n{profile}{more}\n"
        )
    }

    /// Starts it, unless it is not there: then the calling test is noted down as skipped and should return.
    #[must_use]
    pub fn start_or_skip(&self) -> Option<Pebble> {
        let program = go_program_or_skip("pebble")?;
        let names = go_program_or_skip("pebble-challtestsrv")?;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let ip = self.listen.ip().to_string();
        let own = issue(&[&ip, "localhost"], Kind::Ecdsa);
        std::fs::write(path("own.pem"), &own.chain).unwrap();
        std::fs::write(path("own.key"), &own.key).unwrap();
        let management = unused_address();
        let dns = unused_address();
        std::fs::write(path("pebble.json"), self.config(management, path(""))).unwrap();
        let names_management = unused_address();
        let names = Tool::new(names)
            .args(["-dnsserver", &dns.to_string(), "-management", &names_management.to_string()])
            .args(["-defaultIPv4", &unused_ip().to_string(), "-defaultIPv6", ""])
            .args(["-doh", "", "-http01", "", "-https01", "", "-tlsalpn01", ""])
            .start();
        wait_until_listening(names_management);
        wait_until_listening(dns);
        let process = self.launch(program, &path("pebble.json"), dns);
        wait_until_listening(self.listen);
        let setup = self.clone();
        Some(Pebble { process, _names: names, folder, setup, management, names_management })
    }

    fn launch(&self, program: PathBuf, config: &std::path::Path, dns: SocketAddr) -> Running {
        let tool = Tool::new(program).args(["-strict", "-dnsserver", &dns.to_string(), "-config"]);
        let tool = tool.args([config]);
        let with = |tool: Tool, (name, value): &(&str, String)| tool.environment(name, value);
        self.environment.iter().fold(tool, with).start()
    }

    fn config(&self, management: SocketAddr, folder: PathBuf) -> String {
        let folder = folder.display();
        let settings = &self.settings;
        let listen = self.listen;
        let tls = self.tls.port();
        let http = self.http.port();
        let lifetime = self.lifetime_seconds;
        let retry = if settings.contains("retryAfter") { "" } else { NO_RETRY_AFTER };
        format!(
            r#"{{"pebble": {{{settings}{retry}
            "listenAddress": "{listen}", "managementListenAddress": "{management}",
            "certificate": "{folder}/own.pem", "privateKey": "{folder}/own.key",
            "tlsPort": {tls}, "httpPort": {http}, "keyAlgorithm": "ecdsa",
            "profiles": {{
                "default": {{"description": "as usual", "validityPeriod": {lifetime}}},
                "shortlived": {{"description": "six days", "validityPeriod": 518400}}}}}}}}"#
        )
    }
}

impl Pebble {
    /// The root of what it issues, in PEM.
    pub fn root(&self) -> String {
        self.manage(&[], "/roots/0")
    }

    /// An answer of its management interface, by curl.
    pub fn manage(&self, words: &[&str], target: &str) -> String {
        let authority = self.folder.path().join("authority.pem");
        std::fs::write(&authority, authority_pem()).unwrap();
        let url = format!("https://{}{target}", self.management);
        let curl = Tool::new("curl").args(["--silent", "--show-error", "--fail", "--cacert"]);
        curl.args([authority]).args(words).args([url]).succeed()
    }

    /// Has a name lead to another address, or to where all lead.
    pub fn lead(&self, name: &str, address: Option<&str>) {
        let curl = Tool::new("curl").args(["--silent", "--show-error", "--fail", "--data"]);
        let (body, what) = match address {
            Some(address) => {
                let body = format!("{{\"host\": \"{name}\", \"addresses\": [\"{address}\"]}}");
                (body, "add-a")
            }
            None => (format!("{{\"host\": \"{name}\"}}"), "clear-a"),
        };
        let url = format!("http://{}/{what}", self.names_management);
        let _ = curl.args([body, url]).succeed();
    }

    /// Returns the URL where records are written by curl, in JSON: `set-txt`, `clear-txt`.
    pub fn records_url(&self) -> String {
        format!("http://{}", self.names_management)
    }

    /// As it was started.
    pub fn setup(&self) -> &PebbleSetup {
        &self.setup
    }

    /// The number of lines of its log that have this in them.
    pub fn lines_with(&self, text: &str) -> usize {
        self.process.stdout.text().lines().filter(|line| line.contains(text)).count()
    }
}

/// Nobody is to be waited for.
const NO_RETRY_AFTER: &str = r#""retryAfter": {"authz": 1, "order": 1},"#;
