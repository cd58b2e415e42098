//! From hitch's picture to the text of a kettle.toml that does the same.

mod certificates;
mod offer;

use std::path::Path;

use kettle_config::{Diagnostic, Origin, quoted};

use super::model::{Frontend, Model, Setting, Settings, Target};
use super::{Dialect, Runner};
use crate::offer::Offer;
use crate::output::Output;
use crate::{Imported, Process, Surroundings};

pub(super) fn write(
    model: &Model,
    path: &Path,
    surroundings: &dyn Surroundings,
    runner: Runner,
) -> Result<Imported, Vec<Diagnostic>> {
    let mut writer = Writer { model, surroundings, output: Output::default() };
    writer.all();
    let process = writer.process();
    let folder = model.settings.text("pem-dir").map(|dir| surroundings.folder().join(&dir.text));
    let unit = (runner == Runner::Unit).then_some(surroundings);
    let other = (process, folder.into_iter().collect());
    writer.output.finish(model.dialect.name(), path, other, unit)
}

struct Writer<'m> {
    model: &'m Model,
    surroundings: &'m dyn Surroundings,
    output: Output,
}

impl Writer<'_> {
    fn all(&mut self) {
        self.without_meaning();
        self.server();
        let global = self.offer(&self.model.settings, None);
        self.tls(&global);
        let default = Frontend::default_one();
        let frontends = match self.model.frontends.as_slice() {
            [] => std::slice::from_ref(&default),
            frontends => frontends,
        };
        for frontend in frontends {
            self.frontend(frontend);
        }
        self.backend();
    }

    fn warn(&mut self, origin: &Origin, message: impl Into<String>, help: &str) {
        self.output.warn(origin, message, help);
    }

    /// Settings that stand for nothing here, with what holds instead.
    fn without_meaning(&mut self) {
        let each = |(keys, what, help): (&'static [&str], _, _)| {
            keys.iter().map(move |key| (key, what, help))
        };
        for (key, what, help) in WITHOUT_MEANING.into_iter().flat_map(each) {
            if let Some(setting) = self.model.settings.text(key)
                && self.model.settings.flag(key) != Some(false)
            {
                self.warn(&setting.origin, format!("`{key}` is not carried over: {what}"), help);
            }
        }
        if let Some(daemon) = self.model.settings.on("daemon")
            && self.model.settings.text("log-filename").is_none()
            && self.model.syslog().is_none()
        {
            let message = "without the terminal, messages go nowhere";
            self.warn(&daemon.origin, message, "write syslog = on or log-filename = \"…\"");
        }
        if let Some(old) = self.model.settings.text("prefer-server-ciphers")
            && self.model.settings.flag("prefer-server-ciphers") == Some(false)
        {
            let message = "kettle's order of ciphers decides, not the client's";
            self.warn(&old.origin, message, "`suites` says it in kettle.toml");
        }
    }

    fn server(&mut self) {
        let settings = &self.model.settings;
        self.output.text.table("[server]", None);
        match settings.text("workers") {
            Some(workers) if workers.text == "auto" => {}
            Some(workers) => {
                let number = workers.text.parse::<u32>().unwrap_or(1).clamp(1, WORKERS_MAX);
                self.output.text.set("workers", number, Some(&workers.origin));
            }
            None => {
                self.output.text.line("workers = 1 # without this line, one for each CPU", None)
            }
        }
        if let Some(user) = settings.text("user") {
            self.output.text.set("user", quoted(&user.text), Some(&user.origin));
            if let Some(group) = settings.text("group") {
                self.output.text.set("group", quoted(&group.text), Some(&group.origin));
            }
        }
        let (level, origin) = match (settings.number("log-level"), settings.on("quiet")) {
            (Some((0, origin)), _) => ("error", Some(origin)),
            (Some((1, origin)), _) => ("warn", Some(origin)),
            (Some((_, origin)), _) => ("info", Some(origin)),
            (None, Some(quiet)) => ("error", Some(&quiet.origin)),
            (None, None) => ("warn", None),
        };
        self.output.text.table("[log]", None);
        self.output.text.set("level", quoted(level), origin);
    }

    fn tls(&mut self, offer: &Offer) {
        let settings = &self.model.settings;
        self.output.text.table("[tls]", None);
        self.seconds("handshake_timeout", "ssl-handshake-timeout", 30);
        offer.write(&mut self.output.text);
        if let Some(curves) = settings.text("ecdh-curve").filter(|curves| curves.text != "auto") {
            self.groups(curves);
        }
        if let Some((sessions, origin)) =
            settings.number("session-cache").or_else(|| settings.number("shared-cache"))
        {
            self.output.text.set("session_cache", sessions.min(SESSIONS_MAX), Some(origin));
        }
    }

    /// A time, within what kettle takes; `default` is hitch's.
    fn seconds(&mut self, key: &str, setting: &str, default: u32) {
        let (seconds, origin) = match self.model.settings.number(setting) {
            Some((0, origin)) => (SECONDS_MAX, Some(origin)),
            Some((seconds, origin)) => (seconds.min(SECONDS_MAX), Some(origin)),
            None => (default, None),
        };
        self.output.text.set(key, quoted(&format!("{seconds}s")), origin);
    }

    fn frontend(&mut self, frontend: &Frontend) {
        let endpoint = &frontend.endpoint;
        let addresses = match self.surroundings.addresses(&endpoint.host, endpoint.port) {
            Ok(addresses) if !addresses.is_empty() => addresses,
            Ok(_) => return self.unknown_host(frontend, "it has no address"),
            Err(error) => return self.unknown_host(frontend, &error.to_string()),
        };
        let shown = self.shown(frontend);
        let own =
            frontend.has_own_offer().then(|| self.offer(&frontend.settings, Some(self.model)));
        if own.is_some() && frontend.shows_all() {
            let message = "what this frontend offers holds for all names on its address; in hitch, only where it shows a \
                           certificate of its own";
            let help = "name in its block the certificates that it is meant for";
            self.warn(&frontend.origin, message, help);
        }
        for address in addresses {
            self.output.text.table("[[listener]]", Some(&frontend.origin));
            let address = quoted(&address.to_string());
            self.output.text.set("address", address, Some(&frontend.origin));
            self.output.text.set("kind", quoted("tls"), None);
            self.output.text.set("backend", quoted(BACKEND), None);
            self.listener_settings(frontend);
            if let Some(offer) = &own {
                offer.write(&mut self.output.text);
            }
            shown.iter().for_each(|one| self.certificate(one));
        }
    }

    fn unknown_host(&mut self, frontend: &Frontend, why: &str) {
        let message = format!("cannot listen on {}: {why}", frontend.endpoint);
        self.output.find(&frontend.origin, message, "write frontend = \"[ADDRESS]:PORT\"");
    }

    fn listener_settings(&mut self, frontend: &Frontend) {
        let settings = &self.model.settings;
        if let Some((backlog @ 1.., origin)) = settings.number("backlog") {
            self.output.text.set("backlog", backlog.min(BACKLOG_MAX), Some(origin));
        }
        match settings.number("keepalive") {
            Some((0, _)) => {}
            Some((seconds, origin)) => {
                let seconds = seconds.min(KEEPALIVE_SECONDS_MAX);
                self.output.text.set("keepalive", quoted(&format!("{seconds}s")), Some(origin));
            }
            None => self.output.text.set("keepalive", quoted("3600s"), None),
        }
        if let Some(alpn) = settings.text("alpn-protos") {
            let names = alpn.text.split(',').map(|name| name.trim().to_owned());
            let mut names: Vec<String> = names.collect();
            // hitch takes a comma at the end, too.
            if names.last().is_some_and(String::is_empty) {
                names.pop();
            }
            let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
            self.output.text.set(
                "alpn",
                format_args!("[{}]", names.join(", ")),
                Some(&alpn.origin),
            );
        }
        if let Some(proxied) = settings.on("proxy-proxy") {
            let networks = "[\"0.0.0.0/0\", \"::/0\"]";
            self.output.text.set("accept_proxy", networks, Some(&proxied.origin));
        }
        let key = "sni-nomatch-abort";
        if frontend.settings.flag(key).or_else(|| settings.flag(key)) == Some(true) {
            self.output.text.set("unknown_names", quoted("refuse"), Some(&frontend.origin));
        }
    }

    fn backend(&mut self) {
        let default = Origin::default();
        let (address, origin) = match &self.model.backend {
            None => ("127.0.0.1:8000".to_owned(), &default),
            Some((Target::Unix(path), origin)) => {
                let root = self.model.settings.text("chroot");
                let root = root.map_or("", |root| root.text.trim_end_matches('/'));
                (format!("unix:{root}{path}"), origin)
            }
            Some((Target::Network(endpoint), origin)) if endpoint.host.contains(':') => {
                (endpoint.to_string(), origin)
            }
            Some((Target::Network(endpoint), origin)) => {
                (format!("{}:{}", endpoint.host, endpoint.port), origin)
            }
        };
        self.output.text.table("[[backend]]", Some(origin));
        self.output.text.set("name", quoted(BACKEND), None);
        self.introduction();
        self.seconds("connect_timeout", "backend-connect-timeout", 30);
        // hitch has no such limit; this is the longest there is.
        self.output.text.set("idle_timeout", quoted("240h"), None);
        if let Some((seconds @ 1.., origin)) = self.model.settings.number("backend-refresh") {
            let seconds = seconds.min(DAY_SECONDS);
            self.output.text.set("resolve_interval", quoted(&format!("{seconds}s")), Some(origin));
        }
        self.output.text.table("[[backend.server]]", Some(origin));
        self.output.text.set("address", quoted(&address), Some(origin));
    }

    /// Writes what the backend is told of a client.
    fn introduction(&mut self) {
        let settings = &self.model.settings;
        let line = settings.on("write-proxy");
        let v1 = settings.on("write-proxy-v1");
        let v2 = settings.on("write-proxy-v2");
        let (v1, v2) = match self.model.dialect {
            Dialect::Hitch => (v1, v2.or(line)),
            Dialect::Stud => (v1.or(line), v2),
        };
        let ways = [
            ("ip", settings.on("write-ip")),
            ("v1", v1),
            ("v2", v2),
            ("as-received", settings.on("proxy-proxy")),
        ];
        let Some((way, Some(setting))) = ways.into_iter().find(|(_, setting)| setting.is_some())
        else {
            return;
        };
        self.output.text.set("send_proxy", quoted(way), Some(&setting.origin));
        let is_said = |key: &str| settings.flag(key) != Some(false);
        let tlvs = match way {
            "v2" => [
                Some("alpn"),
                Some("authority").filter(|_| is_said("proxy-authority")),
                settings.on("proxy-client-cert").map(|_| "client-certificate"),
                Some("tls").filter(|_| is_said("proxy-tlv")),
            ],
            "as-received" => [Some("alpn"), None, None, None],
            _ => return,
        };
        let tlvs: Vec<String> = tlvs.into_iter().flatten().map(quoted).collect();
        self.output.text.set(
            "proxy_tlvs",
            format_args!("[{}]", tlvs.join(", ")),
            Some(&setting.origin),
        );
    }

    fn process(&self) -> Process {
        let settings = &self.model.settings;
        let file = |setting: &Setting| self.surroundings.folder().join(&setting.text);
        Process {
            is_daemon: settings.on("daemon").is_some(),
            pid_file: settings.text("pidfile").map(file),
            log_file: settings.text("log-filename").map(file),
            syslog: self.model.syslog(),
            refuses_root: self.model.dialect == Dialect::Hitch && settings.text("user").is_none(),
        }
    }
}

impl Frontend {
    /// Returns the address at which hitch listens if nothing says otherwise.
    fn default_one() -> Self {
        let endpoint = super::model::Endpoint { host: "*".to_owned(), port: 8443 };
        let settings = Settings::default();
        Self { endpoint, origin: Origin::default(), pem_files: Vec::new(), settings }
    }

    /// True if the certificates that are everybody's are shown here, too.
    fn shows_all(&self) -> bool {
        self.settings.flag("match-global-certs").unwrap_or(self.pem_files.is_empty())
    }

    fn has_own_offer(&self) -> bool {
        let has = |key: &&str| self.settings.text(key).is_some();
        ["tls-protos", "tls", "ssl", "ciphers", "ciphersuites", "prefer-server-ciphers"]
            .iter()
            .any(has)
    }
}

const BACKEND: &str = "backend";

/// The largest number in kettle.toml.
const WORKERS_MAX: u32 = 1024;
const SESSIONS_MAX: u32 = 1_048_576;
const BACKLOG_MAX: u32 = 65_535;
const SECONDS_MAX: u32 = 300;
const KEEPALIVE_SECONDS_MAX: u32 = 9 * 3600;
const DAY_SECONDS: u32 = 24 * 3600;

/// Settings without a meaning: why, and what to do.
const WITHOUT_MEANING: [(&[&str], &str, &str); 8] = [
    (&["ssl-engine"], "there is no OpenSSL", "keys are read from their files"),
    (
        &["chroot"],
        "kettle serves from the whole file system",
        "write RootDirectory= or ProtectSystem=strict in its unit",
    ),
    (&["tcp-fastopen"], "clients connect as usual", "sessions are resumed instead"),
    (
        &["recv-bufsize", "send-bufsize"],
        "the kernel chooses the size of buffers",
        "see net.ipv4.tcp_rmem and net.ipv4.tcp_wmem",
    ),
    (
        &["shared-cache-listen", "shared-cache-peer", "shared-cache-if"],
        "hosts share keys of tickets, not sessions",
        "write `ticket_secret` below [tls] of a kettle.toml, the same on all hosts",
    ),
    (
        &["ocsp-dir", "ocsp-connect-tmo", "ocsp-resp-tmo", "ocsp-refresh-interval"],
        "no OCSP response is fetched",
        "those that lie in ocsp-dir are stapled",
    ),
    (
        &["ocsp-verify-staple"],
        "the client verifies the signature",
        "kettle staples what is in time and for the certificate",
    ),
    (
        &["ring-slots", "ring-data-len"],
        "there are no ring buffers",
        "memory is taken as it is needed",
    ),
];
