//! Pebble as an authority that goes away and comes back, behind a relay of ours, and the name server that it asks.

use std::fs::{self};
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::files::{self, create_folder};
use crate::measure::daemon::{Daemon, ending_with_us};
use crate::{go, process};

pub struct Authority {
    pub relay: Relay,
    /// Pebble and the name server.
    _programs: [Daemon; 2],
    folder: PathBuf,
    management: u16,
    names_management: u16,
    own: PathBuf,
}

impl Authority {
    /// Starts one in its folder, which looks for names at this port and whose certificates live so long.
    pub fn start(folder: &Path, own: &Path, port: u16, lifetime: Duration) -> Result<Self, String> {
        create_folder(folder)?;
        let [listen, management, dns, names_management] = [(); 4].map(|()| process::free_port());
        let listen = listen?;
        let management = management?;
        let dns = dns?;
        let names_management = names_management?;
        let own_folder = own.display();
        let lifetime = lifetime.as_secs();
        let config = format!(
            r#"{{"pebble": {{"listenAddress": "127.0.0.1:{listen}", "managementListenAddress": "127.0.0.1:{management}",
"certificate": "{own_folder}/own.pem", "privateKey": "{own_folder}/own.key", "tlsPort": {port}, "httpPort": 80,
"keyAlgorithm": "ecdsa", "retryAfter": {{"authz": 1, "order": 1}},
"profiles": {{"default": {{"description": "short", "validityPeriod": {lifetime}}}}}}}}}"#
        );
        files::write(folder.join("pebble.json"), &config)?;
        let mut names = program("pebble-challtestsrv");
        names.args(["-dnsserver", &format!("127.0.0.1:{dns}")]);
        names.args(["-management", &format!("127.0.0.1:{names_management}")]);
        names.args(["-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-doh", "", "-http01", ""]);
        names.args(["-https01", "", "-tlsalpn01", ""]);
        let names_log = folder.join("names.log");
        let names = Daemon::start(&mut names, &names_log, ("127.0.0.1", names_management))?;
        let mut pebble = program("pebble");
        pebble.args(["-strict", "-dnsserver", &format!("127.0.0.1:{dns}"), "-config"]);
        pebble.arg(folder.join("pebble.json"));
        pebble.envs([("PEBBLE_VA_NOSLEEP", "1"), ("PEBBLE_WFE_NONCEREJECT", "0")]);
        let pebble = Daemon::start(&mut pebble, &folder.join(LOG), ("127.0.0.1", listen))?;
        let relay = Relay::start(listen)?;
        let folder = folder.to_owned();
        let own = own.to_owned();
        Ok(Self { relay, _programs: [pebble, names], folder, management, names_management, own })
    }

    /// The URL of its directory, through the relay.
    pub fn directory(&self) -> String {
        format!("https://127.0.0.1:{}/dir", self.relay.port)
    }

    /// The root of what it issues, in PEM.
    pub fn root(&self) -> Result<String, String> {
        let mut curl = curl();
        curl.arg("--cacert").arg(self.own.join("authority.pem"));
        process::read(curl.arg(format!("https://127.0.0.1:{}/roots/0", self.management)))
    }

    /// Has all names lead to this address.
    pub fn lead_all(&self, address: &str) -> Result<(), String> {
        let mut curl = curl();
        curl.args(["--data", &format!("{{\"ip\": \"{address}\"}}")]);
        let url = format!("http://127.0.0.1:{}/set-default-ipv4", self.names_management);
        process::run_quietly(curl.arg(url))
    }

    pub fn orders(&self) -> usize {
        self.lines_with("Added order")
    }

    pub fn refusals(&self) -> usize {
        self.lines_with("POST /order-plz").saturating_sub(self.orders())
    }

    pub fn issued(&self) -> usize {
        self.lines_with("Issued certificate serial")
    }

    /// The number of certificates that were asked for.
    pub fn fetched(&self) -> usize {
        self.lines_with("POST /certZ/")
    }

    fn lines_with(&self, text: &str) -> usize {
        let log = fs::read_to_string(self.folder.join(LOG)).unwrap_or_default();
        log.lines().filter(|line| line.contains(text)).count()
    }
}

/// Passes connections on to pebble, or closes them at once while the authority is to be away.
pub struct Relay {
    pub port: u16,
    state: Arc<RelayState>,
}

#[derive(Default)]
struct RelayState {
    is_away: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Relay {
    fn start(target: u16) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        let state = Arc::<RelayState>::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.is_away.load(Ordering::SeqCst) {
                    continue;
                }
                if let Ok(server) = TcpStream::connect(("127.0.0.1", target)) {
                    let _ = shared.relay(&client, &server);
                }
            }
        });
        Ok(Self { port, state })
    }

    /// Closes what is open and takes nothing more, or takes connections again.
    pub fn be_away(&self, is_away: bool) {
        self.state.is_away.store(is_away, Ordering::SeqCst);
        let mut open = self.state.open.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl RelayState {
    fn relay(&self, client: &TcpStream, server: &TcpStream) -> io::Result<()> {
        for (from, to) in [(client, server), (server, client)] {
            let mut from = from.try_clone()?;
            let mut to = to.try_clone()?;
            self.open.lock().unwrap_or_else(PoisonError::into_inner).push(from.try_clone()?);
            thread::spawn(move || {
                let _ = io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Write);
            });
        }
        Ok(())
    }
}

/// The certificate with which authorities are asked, and the one that signed it.
pub fn make_own(folder: &Path) -> Result<(), String> {
    create_folder(folder)?;
    let openssl = |name: &str, words: &[&str]| {
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
        command.args(["-nodes", "-days", "30", "-subj", &format!("/CN=outage {name}")]);
        command.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]);
        process::run_quietly(command.args(words).current_dir(folder))
    };
    openssl("authority", &["-addext", "keyUsage=critical,keyCertSign"])?;
    let signed = ["-CA", "authority.pem", "-CAkey", "authority.key"];
    let named = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE"];
    openssl("own", &[signed, named].concat())
}

/// A program of the Go module of tests.
fn program(name: &str) -> Command {
    let mut command = ending_with_us();
    command.arg(go::folder().join(name));
    command
}

/// curl that says what failed, and waits for what has just been started.
fn curl() -> Command {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--fail", "--max-time", "20"]);
    command.args(["--retry", "20", "--retry-connrefused", "--retry-delay", "1"]);
    command
}

const LOG: &str = "pebble.log";
