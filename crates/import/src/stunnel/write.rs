//! From stunnel's services to the text of a kettle.toml that does the same.

use std::iter;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use kettle_config::{Diagnostic, Origin, quoted};

use super::file::{Section, StunnelOption};
use super::names::{AllTakers, Taker};
use super::service::{Both, NO_FOLDER, Verifies, is_system};
use super::vocabulary::Fate;
use crate::offer::{Examples, Offer, TlsOffer, Versions, Written};
use crate::openssl::VERSIONS;
use crate::output::Output;
use crate::{Imported, Surroundings};

pub(super) fn write(
    sections: &[Section],
    path: &Path,
    surroundings: &dyn Surroundings,
) -> Result<Imported, Vec<Diagnostic>> {
    let mut writer = Writer { surroundings, output: Output::default() };
    if let Some((global, services)) = sections.split_first() {
        writer.process(global);
        writer.tell(global);
        let all: Vec<Both<'_>> = services.iter().map(|own| Both { own, global }).collect();
        let takers = AllTakers::of(&all);
        for service in &all {
            writer.tell(service.own);
            match takers.takers(service) {
                Ok(Some(takers)) => writer.service(service, &takers),
                // Its primary one has it.
                Ok(None) => {}
                Err((option, why)) => {
                    let name = &service.own.name;
                    let message = format!("the service {name} is left out because of `sni`");
                    writer.output.warn(&option.origin, message, why);
                }
            }
        }
        if services.is_empty() {
            let message = "there is no service in this file";
            writer.output.find(&global.origin, message, "write [NAME] and what it accepts");
        }
    }
    writer.output.finish("stunnel", path, Default::default(), Some(surroundings))
}

struct Writer<'s> {
    surroundings: &'s dyn Surroundings,
    output: Output,
}

impl Writer<'_> {
    /// Says of each option that is not carried over what holds instead.
    fn tell(&mut self, section: &Section) {
        for option in &section.options {
            let help = match option.term.fate {
                Fate::Dropped(help) => help,
                Fate::FlagDropped(help) if option.value == "yes" => help,
                _ => continue,
            };
            let message = format!("`{}` is not carried over", option.term.name);
            self.output.warn(&option.origin, message, help);
        }
    }

    fn process(&mut self, global: &Section) {
        let find = |name: &str| global.options.iter().rfind(|option| option.term.name == name);
        self.output.text.table("[server]", None);
        for (key, name) in [("user", "setuid"), ("group", "setgid")] {
            let is_given = key == "user" || find("setuid").is_some();
            if let Some(option) = find(name).filter(|_| is_given) {
                self.output.text.set(key, quoted(&option.value), Some(&option.origin));
            }
        }
        self.output.text.end_table();
        self.output.text.table("[log]", None);
        if let Some(debug) = find("debug") {
            let level = debug.value.rsplit('.').next().unwrap_or_default();
            let level = match level {
                "7" | "debug" => "debug",
                "6" | "info" | "5" | "notice" => "info",
                "4" | "warning" => "warn",
                _ => "error",
            };
            self.output.text.set("level", quoted(level), Some(&debug.origin));
        }
        self.output.text.end_table();
        self.output.text.table("[tls]", None);
        if let Some(size) = find("sessionCacheSize") {
            match size.value.parse::<u64>() {
                // 0 is no limit.
                Ok(0) => self.output.text.set("session_cache", SESSIONS_MAX, Some(&size.origin)),
                Ok(number) => {
                    let number = number.min(SESSIONS_MAX);
                    self.output.text.set("session_cache", number, Some(&size.origin));
                }
                Err(_) => self.output.find(&size.origin, "this is no number", "write a number"),
            }
        }
        self.output.text.end_table();
    }

    fn backend_name(&mut self, service: &Both<'_>) -> String {
        let Section { name, origin, .. } = service.own;
        self.output.backend_name(name, "", &format!("{origin:?}"))
    }

    /// Writes a service, and those that take clients over from it by their names.
    fn service(&mut self, service: &Both<'_>, takers: &[Taker<'_>]) {
        let is_client = service.is_on("client");
        let name = &service.own.name;
        if let Some((option, why)) = service.why_left_out() {
            for name in iter::once(name).chain(takers.iter().map(|it| &it.service.own.name)) {
                let word = option.term.name;
                let message = format!("the service {name} is left out because of `{word}`");
                self.output.warn(&option.origin, message, why);
            }
            return;
        }
        let Some(accept) = service.find("accept") else {
            let message = format!("the service {name} accepts nothing");
            return self.output.find(&service.own.origin, message, "write accept = [HOST:]PORT");
        };
        let connect = service.all("connect");
        if connect.is_empty() {
            let message = format!("the service {name} connects to nobody");
            return self.output.find(&service.own.origin, message, "write connect = [HOST:]PORT");
        }
        let addresses = match self.addresses(&accept.value) {
            Ok(addresses) => addresses,
            Err(why) => {
                let message = format!("cannot listen on {}: {why}", accept.value);
                return self.output.find(&accept.origin, message, "write accept = [HOST:]PORT");
            }
        };
        let Ok(dialogue) = self.dialogue(service) else { return };
        let backend = self.backend_name(service);
        let names = takers.iter().flat_map(|taker| &taker.names);
        let sites: Vec<String> =
            iter::once("_").chain(names.map(|it| it.as_str())).map(quoted).collect();
        for address in addresses {
            let origin = Some(&accept.origin);
            self.output.text.table("[[listener]]", origin);
            self.output.text.set("address", quoted(&address.to_string()), origin);
            self.output.text.set("kind", quoted(if is_client { "tcp" } else { "tls" }), origin);
            match takers.is_empty() {
                true => self.output.text.set("backend", quoted(&backend), origin),
                false => self.output.text.set("sites", format!("[{}]", sites.join(", ")), origin),
            }
            if !is_client {
                self.ending(service, dialogue);
            }
            if !is_client && takers.is_empty() {
                self.identity(service, "listener.certificate", "listener.certificate.client_auth");
            }
        }
        self.backend(service, &connect, dialogue, is_client);
        if !takers.is_empty() {
            self.site(service, &["_".to_owned()], &backend);
        }
        for Taker { service, names } in takers {
            let Ok(dialogue) = self.dialogue(service) else { return };
            let backend = self.backend_name(service);
            self.backend(service, &service.all("connect"), dialogue, false);
            self.site(service, names, &backend);
        }
    }

    fn site(&mut self, service: &Both<'_>, names: &[String], backend: &str) {
        let origin = Some(&service.own.origin);
        self.output.text.table("[[site]]", origin);
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        self.output.text.set("names", format!("[{}]", names.join(", ")), origin);
        self.output.text.set("backend", quoted(backend), origin);
        self.identity(service, "site.certificate", "site.client_auth");
    }

    /// `protocol`: what kettle calls it, or that the service cannot be carried over.
    fn dialogue(&mut self, service: &Both<'_>) -> Result<Option<&'static str>, ()> {
        let Some(protocol) = service.find("protocol") else { return Ok(None) };
        match protocol.value.as_str() {
            "smtp" => Ok(Some("smtp")),
            "imap" => Ok(Some("imap")),
            "pop3" => Ok(Some("pop3")),
            "nntp" => Ok(Some("nntp")),
            "pgsql" => Ok(Some("postgres")),
            "proxy" if !service.is_on("client") => Ok(Some("proxy")),
            other => {
                let message =
                    format!("the service {} is left out: no {other} is spoken", service.own.name);
                let help = match other {
                    "cifs" => {
                        "nobody but stunnel speaks this one: write no service for it, SMB 3 encrypts by itself"
                    }
                    "connect" | "socks" => {
                        "kettle connects to the servers that its file names: write connect = HOST:PORT of the server"
                    }
                    _ => "of dialogues before TLS there are imap, nntp, pgsql, pop3 and smtp",
                };
                self.output.warn(&protocol.origin, message, help);
                Err(())
            }
        }
    }

    /// TLS that ends here.
    fn ending(&mut self, service: &Both<'_>, dialogue: Option<&'static str>) {
        self.offer(service).write(&mut self.output.text);
        if let Some(dialogue) = dialogue.filter(|dialogue| *dialogue != "proxy") {
            self.output.text.set("starttls", quoted(dialogue), None);
        }
    }

    /// Its certificate, and those of clients that it asks for, in tables of these names.
    fn identity(&mut self, service: &Both<'_>, table: &str, client_auth: &str) {
        let Some(chain) = service.find("cert") else {
            let message = format!("the service {} has no certificate", service.own.name);
            return self.output.find(&service.own.origin, message, "write cert = FILE");
        };
        let key = service.find("key").unwrap_or(chain);
        let chain_path = self.path(&chain.value);
        let key_path = self.path(&key.value);
        let table = format!("[[{table}]]");
        self.output.certificate(&table, &chain_path, &key_path, None, &chain.origin);
        let verifies = service.verifies();
        let asks = service.find("verify").is_some_and(|it| it.value != "0");
        if verifies == Verifies::Nothing {
            if asks {
                let message = "clients are not asked for certificates that nobody verifies";
                self.output.warn(&chain.origin, message, "write verifyChain = yes and CAfile");
            }
            return;
        }
        let Some(roots) = service.find("CAfile") else {
            let message = "clients are verified, and no CAfile says whom to trust";
            return self.output.find(&service.own.origin, message, "write CAfile = FILE");
        };
        self.warn_of_folder(service);
        let origin = Some(&roots.origin);
        self.output.text.table(&format!("[{client_auth}]"), origin);
        // stunnel(8): verifyChain = yes implies requireCert = yes.
        self.output.text.set("mode", quoted("required"), origin);
        let roots = self.path(&roots.value).display().to_string();
        self.output.text.set("roots", quoted(&roots), origin);
        if verifies == Verifies::Peer {
            self.output.text.set("pinned", "true", origin);
        }
        if let Some(crl) = service.find("CRLfile") {
            let path = self.path(&crl.value).display().to_string();
            self.output.text.set("crl", quoted(&path), Some(&crl.origin));
        }
    }

    fn warn_of_folder(&mut self, service: &Both<'_>) {
        let is_said =
            |it: &&StunnelOption| service.find("CAfile").is_none() && is_system(&it.value);
        if let Some(path) = service.find("CApath").filter(|it| !is_said(it)) {
            self.output.warn(&path.origin, "`CApath` is not carried over", NO_FOLDER);
        }
    }

    fn backend(
        &mut self,
        service: &Both<'_>,
        connect: &[&StunnelOption],
        dialogue: Option<&'static str>,
        is_client: bool,
    ) {
        let origin = Some(&service.own.origin);
        self.output.text.table("[[backend]]", origin);
        let name = self.backend_name(service);
        self.output.text.set("name", quoted(&name), origin);
        let failover = service.find("failover");
        let balance = match failover.map(|failover| failover.value.as_str()) {
            Some("rr") => "round-robin",
            _ => "first",
        };
        self.output.text.set("balance", quoted(balance), failover.map(|it| &it.origin));
        if dialogue == Some("proxy") {
            self.output.text.set("send_proxy", quoted("v1"), origin);
        }
        self.seconds(service, "connect_timeout", "TIMEOUTconnect", 10, 300);
        self.seconds(service, "idle_timeout", "TIMEOUTidle", 43_200, 10 * 24 * 3600);
        if is_client {
            self.beginning(service, connect, dialogue);
        }
        for connect in connect {
            self.output.text.table("[[backend.server]]", Some(&connect.origin));
            let address = server_address(&connect.value);
            self.output.text.set("address", quoted(&address), Some(&connect.origin));
        }
    }

    /// TLS that begins here.
    fn beginning(
        &mut self,
        service: &Both<'_>,
        connect: &[&StunnelOption],
        dialogue: Option<&'static str>,
    ) {
        let origin = &service.own.origin;
        self.output.text.table("[backend.tls]", Some(origin));
        let said = ["checkHost", "checkIP", "sni"].iter().find_map(|name| service.find(name));
        if let Some(said) = said {
            self.output.text.set("name", quoted(&said.value), Some(&said.origin));
        }
        if service.all("checkHost").len() + service.all("checkIP").len() > 1 {
            let message = "of several names the last counts";
            self.output.warn(origin, message, "write a service for each");
        }
        let is_address = |it: &&&StunnelOption| host_of(&it.value).parse::<IpAddr>().is_ok();
        if said.is_none() && connect.iter().any(|it| is_address(&it)) {
            let message = "no name says whose certificate the server must show";
            self.output.warn(
                origin,
                message,
                "write checkHost = NAME, or `pins` below [backend.tls]",
            );
        }
        match service.find("CAfile") {
            Some(roots) => {
                if matches!(service.verifies(), Verifies::Peer | Verifies::Both) {
                    let message = "the certificates in this file are taken for authorities";
                    let help = "`pins` of a backend name single keys; let the file have no authority whose others are not meant";
                    self.output.warn(&roots.origin, message, help);
                }
                let path = self.path(&roots.value).display().to_string();
                self.output.text.set("roots", quoted(&path), Some(&roots.origin));
            }
            None => self.output.text.set("roots", quoted("system"), None),
        }
        self.warn_of_folder(service);
        if service.verifies() == Verifies::Nothing || service.find("checkHost").is_none() {
            let message = "the server's certificate and its name are verified here";
            let help = "stunnel does so with verifyChain = yes and checkHost only";
            self.output.warn(origin, message, help);
        }
        if let Some(dialogue) = dialogue {
            self.output.text.set("starttls", quoted(dialogue), Some(origin));
        }
        self.offer(service).write(&mut self.output.text);
        if let Some(chain) = service.find("cert") {
            let key = service.find("key").unwrap_or(chain);
            let chain_path = self.path(&chain.value);
            let key_path = self.path(&key.value);
            let table = "[backend.tls.certificate]";
            self.output.certificate(table, &chain_path, &key_path, None, &chain.origin);
        }
    }

    fn seconds(&mut self, service: &Both<'_>, key: &str, name: &str, default: u32, max: u32) {
        let option = service.find(name);
        let seconds = match option.map(|option| option.value.parse::<u32>()) {
            Some(Ok(seconds)) => seconds.clamp(1, max),
            Some(Err(_)) => {
                let origin = option.map_or_else(Origin::default, |it| it.origin.clone());
                let message = format!("`{name}` takes a number of seconds");
                return self.output.find(&origin, message, &format!("write {name} = {default}"));
            }
            None => default,
        };
        let origin = option.map(|option| &option.origin);
        self.output.text.set(key, quoted(&format!("{seconds}s")), origin);
    }

    fn offer(&mut self, service: &Both<'_>) -> Offer {
        let written = |name: &str| {
            let option = service.find(name)?;
            Some(Written { text: option.value.as_str(), origin: &option.origin })
        };
        let options = service.options();
        let is_version =
            |it: &StunnelOption| ["SSLv2"].iter().chain(&VERSIONS).any(|known| refuses(it, known));
        for option in options.iter().filter(|it| !is_version(it)) {
            let message = format!("`options = {}` is not carried over", option.value);
            self.output.warn(
                &option.origin,
                message,
                "there is no OpenSSL; [tls] has what can be chosen",
            );
        }
        let is_client = service.is_on("client");
        for curves in ["curves", "curve"].iter().filter_map(|name| service.find(name)) {
            let message = format!("`{}` is not carried over", curves.term.name);
            let help = match is_client {
                true => "servers are offered all key exchanges that kettle has",
                false => "`groups` below [tls] hold for all listeners",
            };
            self.output.warn(&curves.origin, message, help);
        }
        let wanted = TlsOffer {
            versions: self.versions(service),
            ciphers: written("ciphers"),
            tls13_suites: written("ciphersuites"),
            // A client's own order is the one that it offers.
            is_ordered: is_client
                || options.iter().any(|it| it.value == "CIPHER_SERVER_PREFERENCE"),
        };
        self.output.offer(&wanted, &EXAMPLES)
    }

    /// Returns the versions on offer: those from the least to the most that no option refuses.
    fn versions<'s>(&mut self, service: &Both<'s>) -> Option<Versions<'s>> {
        let only = self.version(service, "sslVersion");
        let least = only.or_else(|| self.version(service, "sslVersionMin"));
        let most = only.or_else(|| self.version(service, "sslVersionMax"));
        let options = service.options();
        let said = least.or(most).map(|(_, origin)| origin);
        let origin = said.or(options.first().map(|option| &option.origin))?;
        let first = least.map_or(0, |(at, _)| at);
        let last = most.map_or(VERSIONS.len(), |(at, _)| at);
        let is_refused = |version: &str| {
            let last = options.iter().rfind(|it| refuses(it, version));
            // A minus takes it back.
            last.is_some_and(|it| !it.value.starts_with('-'))
        };
        let all = VERSIONS.into_iter().enumerate();
        let between = all.filter(|(at, _)| (first..=last).contains(at)).map(|(_, version)| version);
        // A version that nobody names is not missed.
        let known = between.filter(|version| ["TLSv1.2", "TLSv1.3"].contains(version));
        Some((known.filter(|version| !is_refused(version)).collect(), origin))
    }

    /// Which of the versions an option names, the oldest being 0; nothing where it is for all.
    fn version<'s>(&mut self, service: &Both<'s>, name: &str) -> Option<(usize, &'s Origin)> {
        let option = service.find(name).filter(|it| !it.value.eq_ignore_ascii_case("all"))?;
        let at = VERSIONS.iter().position(|known| known.eq_ignore_ascii_case(&option.value));
        if at.is_none() {
            let message = format!("`{}` is no version of TLS", option.value);
            self.output.find(&option.origin, message, &format!("write {name} = TLSv1.2"));
        }
        at.map(|at| (at, &option.origin))
    }

    fn path(&self, text: &str) -> PathBuf {
        self.surroundings.folder().join(text)
    }

    fn addresses(&self, text: &str) -> Result<Vec<SocketAddr>, String> {
        let (host, port) = text.rsplit_once(':').unwrap_or(("0.0.0.0", text));
        let port = match port.parse::<u16>() {
            Ok(port @ 1..) => port,
            _ => return Err(format!("`{port}` is no port")),
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(ip) => Ok(vec![(ip, port).into()]),
            Err(_) if bare.is_empty() => Ok(vec![([0, 0, 0, 0], port).into()]),
            Err(_) => {
                let is_plain = |it: char| it.is_ascii_alphanumeric() || "-._".contains(it);
                if !bare.chars().all(is_plain) {
                    return Err(format!("`{bare}` is no host"));
                }
                self.surroundings.addresses(bare, port).map_err(|error| error.to_string())
            }
        }
    }
}

/// True if an option is about a version: `NO_TLSv1.2`, as stunnel has it, or `NO_TLSv1_2`, as OpenSSL does.
fn refuses(option: &StunnelOption, version: &str) -> bool {
    let name = option.value.trim_start_matches('-').replace('.', "_");
    name.eq_ignore_ascii_case(&format!("NO_{}", version.replace('.', "_")))
}

fn host_of(connect: &str) -> &str {
    let host = connect.rsplit_once(':').map_or("localhost", |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// `[HOST:]PORT`, or the path of a Unix socket.
fn server_address(connect: &str) -> String {
    if connect.starts_with('/') {
        return format!("unix:{connect}");
    }
    let port = connect.rsplit_once(':').map_or(connect, |(_, port)| port);
    match host_of(connect) {
        host if host.contains(':') => format!("[{host}]:{port}"),
        host => format!("{host}:{port}"),
    }
}

const SESSIONS_MAX: u64 = 1_048_576;

const EXAMPLES: Examples = Examples {
    versions: "sslVersionMin = TLSv1.2",
    ciphers: "ciphers = EECDH+AESGCM",
    tls13_suites: "ciphersuites = TLS_AES_128_GCM_SHA256",
    groups: "curves = X25519:prime256v1",
};
