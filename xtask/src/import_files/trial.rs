//! One file, given to nginx and to kettle on a network of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::render::{has_server, names, whole};
use crate::checkout;
use crate::files::{self, Temporary, at, create_folder, remove_folder};
use crate::process::{self, Server};

pub enum Outcome {
    /// nginx does not take it, for this reason.
    Refused(String),
    Tried(Tried),
}

/// The fate of a file that nginx takes.
#[derive(Default)]
pub struct Tried {
    /// kettle made a file of it.
    pub is_imported: bool,
    /// It found no mistake in that file.
    pub is_checked: bool,
    /// It listens with it.
    pub is_started: bool,
    pub places: usize,
    pub carried: usize,
    /// The directives for which places were closed or servers left out, as they stand in the file.
    pub lost: Vec<String>,
    pub why: String,
}

pub struct Trials {
    folder: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Trials {
    pub fn new(work: &Temporary) -> Self {
        let [folder, certificate, key] = ["try", "site.pem", "site.key"].map(|it| work.path(it));
        Self { folder, certificate, key }
    }

    fn make_certificate(&self, names: &[String]) -> Result<(), String> {
        let names: Vec<String> = names.iter().map(|name| format!("DNS:{name}")).collect();
        let mut openssl = Command::new("openssl");
        openssl.args(CERTIFICATE.split(' ')).arg(format!("subjectAltName={}", names.join(",")));
        openssl.arg("-keyout").arg(&self.key).arg("-out").arg(&self.certificate);
        process::run_quietly(&mut openssl)
    }

    /// Gives a file to both.
    pub fn attempt(&self, file: &Path) -> Result<Outcome, String> {
        remove_folder(&self.folder)?;
        let mut copy = Command::new("cp");
        process::run_quietly(copy.args(["--recursive", "--dereference", NGINX]).arg(&self.folder))?;
        let bytes = fs::read(file).map_err(|error| at(file, &error))?;
        let Ok(text) = String::from_utf8(bytes) else {
            return Ok(Outcome::Refused("it is no text".to_owned()));
        };
        self.make_certificate(&names(&text))?;
        let [certificate, key] = [&self.certificate, &self.key].map(|it| it.display().to_string());
        self.write("nginx.conf", &whole(&text, &certificate, &key))?;
        self.write("hosts", "127.0.0.1 localhost\n")?;
        self.write("empty", "")?;
        match self.satisfy_nginx()? {
            Some(reason) => Ok(Outcome::Refused(reason)),
            None => self.with_kettle().map(Outcome::Tried),
        }
    }

    /// The reason why nginx does not take the file, or has nothing to serve by it, once all is there that it names.
    fn satisfy_nginx(&self) -> Result<Option<String>, String> {
        let mut last = String::new();
        for _ in 0..ROUNDS_MAX {
            let config = self.folder.join("nginx.conf");
            let pid = format!("pid {}/pid;", self.folder.display());
            let mut nginx = self.command("nginx");
            nginx.args(["-T", "-e", "stderr", "-g", &pid, "-c"]).arg(&config);
            let said = nginx.stdin(Stdio::null()).output();
            let said = said.map_err(|error| format!("cannot start nginx: {error}"))?;
            if said.status.success() {
                let all = String::from_utf8_lossy(&said.stdout);
                return Ok((!has_server(&all)).then(|| "it has no server".to_owned()));
            }
            let said = String::from_utf8_lossy(&said.stderr).into_owned();
            let error = said.lines().find(|line| line.contains("[emerg]")).unwrap_or(&said);
            if error == last || !self.add_missing(error)? {
                return Ok(Some(error.split_once("[emerg] ").map_or(error, |it| it.1).to_owned()));
            }
            last = error.to_owned();
        }
        Ok(Some(last))
    }

    /// Makes what nginx misses, if that is not part of the file itself.
    fn add_missing(&self, error: &str) -> Result<bool, String> {
        let Some(named) = error.split('"').nth(1) else { return Ok(false) };
        let is = |text: &str| error.contains(text);
        if is("host not found") {
            let host = named.split(':').next().unwrap_or_default();
            let hosts = self.read("hosts")?;
            self.write("hosts", &format!("{hosts}127.0.0.1 {host}\n"))?;
            return Ok(true);
        }
        if is("no \"ssl_certificate") {
            let [certificate, key] = [&self.certificate, &self.key].map(|it| it.display());
            let pair = format!("http {{ ssl_certificate {certificate}; ssl_certificate_key {key};");
            return self.replace("http {", &pair);
        }
        if is("no port in upstream") {
            let group = format!("http {{ upstream {named} {{ server 127.0.0.1:9000; }}");
            return self.replace("http {", &group);
        }
        let replaced = if is("open()") || is("mkdir()") {
            let path = Path::new(named);
            if path.starts_with(&self.folder) {
                create_folder(path.parent().unwrap_or(path))?;
                files::write(path, "")?;
                return Ok(true);
            }
            self.folder.join(if is("mkdir()") { "made" } else { "empty" })
        } else if is("cannot load certificate key") {
            self.key.clone()
        } else if is("certificate") || is("SSL_CTX_load_verify") {
            self.certificate.clone()
        } else {
            return Ok(false);
        };
        let relative = Path::new(named).strip_prefix(&self.folder).ok();
        let named = relative.map_or(named.to_owned(), |it| it.display().to_string());
        self.replace(&named, &replaced.display().to_string())
    }

    /// Changes the configuration; true if that made a difference.
    fn replace(&self, old: &str, new: &str) -> Result<bool, String> {
        let text = self.read("nginx.conf")?;
        let times = if old == "http {" { 1 } else { usize::MAX };
        let changed = text.replacen(old, new, times);
        self.write("nginx.conf", &changed)?;
        Ok(changed != text)
    }

    fn with_kettle(&self) -> Result<Tried, String> {
        let kettle = checkout::target_folder().join("debug/kettle");
        let kettle = kettle.display().to_string();
        let config = self.folder.join("nginx.conf");
        let asked = |option: &[&str]| {
            let mut command = self.command(&kettle);
            let command = command.args(["import", "nginx"]).arg(&config).args(option);
            let output = command.stdin(Stdio::null()).output();
            output.map_err(|error| format!("cannot start kettle: {error}"))
        };
        let mut tried = Tried::default();
        let summary = asked(&["--summary"])?;
        let said = String::from_utf8_lossy(&summary.stdout);
        let mistakes = String::from_utf8_lossy(&summary.stderr);
        for line in said.lines() {
            if let Some((_, reason)) = line.split_once("because of `") {
                let is_own =
                    ["deny all", "return 4", "internal"].iter().any(|it| reason.starts_with(it));
                let directive = reason.split([' ', '`']).next().unwrap_or_default();
                if !is_own {
                    tried.lost.push(directive.to_owned());
                }
            }
            let Some((carried, rest)) = line.split_once(" of ") else { continue };
            let all = rest.split(' ').next().and_then(|it| it.parse().ok());
            if let (Ok(carried), Some(all)) = (carried.parse(), all) {
                (tried.carried, tried.places) = (carried, all);
            }
        }
        tried.why = mistakes.lines().next().unwrap_or_default().to_owned();
        let made = asked(&[])?;
        tried.is_imported = !made.stdout.is_empty();
        tried.is_checked = tried.is_imported && made.status.success();
        if tried.is_checked {
            let socket = self.folder.join("admin.sock").display().to_string();
            let text = String::from_utf8_lossy(&made.stdout);
            self.write("kettle.toml", &text.replace("/run/kettle/admin.sock", &socket))?;
            let mut command = self.command(&kettle);
            command.arg("run").arg(self.folder.join("kettle.toml"));
            let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            match Server::start(command, "listening on ") {
                Ok(_) => tried.is_started = true,
                Err(why) => tried.why = why,
            }
        }
        Ok(tried)
    }

    /// A program with a network of its own, where all names are of this machine.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", INSIDE]);
        command.arg("sh").arg(self.folder.join("hosts")).arg(program);
        command
    }

    fn read(&self, name: &str) -> Result<String, String> {
        files::read(self.folder.join(name))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        files::write(self.folder.join(name), text)
    }
}

/// Debian's configuration of nginx, which files include parts of.
const NGINX: &str = "/etc/nginx";
const INSIDE: &str = "ip link set lo up; echo 1 >/proc/sys/net/ipv4/ip_nonlocal_bind; mount --bind \"$1\" /etc/hosts; shift; exec timeout --signal=KILL 15 \"$@\"";
/// More than any file lacks.
const ROUNDS_MAX: usize = 60;
const CERTIFICATE: &str = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost -addext";
