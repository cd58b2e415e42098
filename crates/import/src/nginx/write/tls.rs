//! The directives of nginx on TLS: what is offered, sessions, certificates and clients' certificates.

use std::path::PathBuf;

use kettle_config::{Origin, quoted};

use super::Writer;
use super::acme;
use crate::nginx::location::Shut;
use crate::nginx::measure;
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::offer::{Examples, Offer, TlsOffer, Versions, Written};
use crate::openssl::VERSIONS;

/// A chain, its key, a staple, and where they were written.
pub(super) type Pair = (PathBuf, PathBuf, Option<PathBuf>, Origin);

impl Writer<'_> {
    /// `[tls]`. The offer is what all servers have in common.
    pub(super) fn tls(&mut self, scopes: &[&Scope<'_>], streams: &[&Directive]) {
        self.output.text.table("[tls]", None);
        if let Some(offer) = self.common_offer(scopes) {
            offer.write(&mut self.output.text);
        }
        let of = |name: &str| scopes.iter().find_map(|scope| scope.find(name));
        if let Some(curves) = of("ssl_ecdh_curve").filter(|curves| curves.word(0) != "auto") {
            let curves = Written { text: curves.word(0), origin: &curves.origin };
            self.output.groups(curves, &EXAMPLES);
        }
        if let Some(tickets) = of("ssl_session_tickets").filter(|it| it.word(0) == "off") {
            self.output.text.set("tickets", 0, Some(&tickets.origin));
        }
        if let Some(cache) = of("ssl_session_cache") {
            self.session_cache(cache);
        }
        if let Some(key) = of("ssl_session_ticket_key") {
            let path = self.folder.join(key.word(0));
            let path = quoted(&path.display().to_string());
            self.output.text.set("ticket_secret", path, Some(&key.origin));
            let message =
                "tickets of nginx are not opened: keys are made of that file in another way";
            self.output.warn(
                &key.origin,
                message,
                "`ticket_secret` is the same on all hosts that run kettle",
            );
        }
        if let Some(timeout) = of("ssl_session_timeout") {
            match measure::seconds(timeout.word(0)) {
                // A session lives for up to two rotations.
                Some(seconds) => {
                    let half = format!("{}s", (seconds / 2).clamp(60, 84 * 3600));
                    self.output.text.set("ticket_rotation", quoted(&half), Some(&timeout.origin));
                }
                None => self.unreadable(timeout, "1d"),
            }
        }
        let handshake = streams
            .iter()
            .flat_map(|stream| super::global::every(stream.inner(), "ssl_handshake_timeout"));
        if let Some(timeout) = handshake.into_iter().next() {
            self.time("handshake_timeout", timeout, 1, 300);
        }
        let single = [
            "ssl_ecdh_curve",
            "ssl_session_tickets",
            "ssl_session_cache",
            "ssl_session_ticket_key",
            "ssl_session_timeout",
        ];
        for name in single {
            let Some(chosen) = of(name) else { continue };
            for other in scopes.iter().flat_map(|scope| scope.all(name)) {
                if other.words != chosen.words {
                    let help = "it holds for all sites, as the first server says";
                    self.tell_of(other, help);
                }
            }
        }
        self.output.text.end_table();
        self.commands(scopes);
    }

    fn common_offer(&mut self, scopes: &[&Scope<'_>]) -> Option<Offer> {
        let mut common: Option<(Offer, &Origin)> = None;
        for scope in scopes {
            let offer = self.offer(scope);
            let place = scope.find("ssl_protocols").or(scope.find("ssl_ciphers"));
            match &mut common {
                None => {
                    let first = scope.own().first();
                    let origin = place.or(first).map(|directive| &directive.origin)?;
                    common = Some((offer, origin));
                }
                Some((common, _)) => {
                    let was = common.clone();
                    common.narrow(&offer);
                    if *common != was
                        && let Some(place) = place
                    {
                        let message = "servers offer different versions or ciphers";
                        self.output.warn(
                            &place.origin,
                            message,
                            "kettle offers for all what all have in common",
                        );
                    }
                }
            }
        }
        let (offer, origin) = common?;
        if offer.has_nothing_left() {
            let message = "the servers have no version or no cipher in common";
            self.output.find(origin, message, "kettle offers the same for all sites");
        }
        Some(offer)
    }

    pub(super) fn offer(&mut self, scope: &Scope<'_>) -> Offer {
        let commands = scope.all("ssl_conf_command");
        let command = |name: &str| {
            let it = last(&commands, name)?;
            Some(Written { text: it.word(1), origin: &it.origin })
        };
        let offer = tls_offer(scope.find("ssl_protocols"), scope.find("ssl_ciphers"));
        let wanted = TlsOffer {
            versions: self.within(offer.versions, &commands),
            ciphers: command("CipherString").or(offer.ciphers),
            tls13_suites: command("Ciphersuites"),
            is_ordered: scope.is_on("ssl_prefer_server_ciphers"),
        };
        self.output.offer(&wanted, &EXAMPLES)
    }

    /// Versions without those that OpenSSL's own words rule out, which hold besides `ssl_protocols`.
    fn within<'d>(
        &mut self,
        said: Option<Versions<'d>>,
        commands: &[&'d Directive],
    ) -> Option<Versions<'d>> {
        let names = ["MinProtocol", "MaxProtocol", "Protocol"];
        let Some(place) = names.iter().find_map(|name| last(commands, name)) else { return said };
        let least = self.bound(commands, "MinProtocol").unwrap_or(0);
        let most = self.bound(commands, "MaxProtocol").unwrap_or(VERSIONS.len());
        let lists = commands.iter().filter(|it| it.word(0).eq_ignore_ascii_case("Protocol"));
        let listed: Vec<&str> = lists.flat_map(|it| it.word(1).split(',')).map(str::trim).collect();
        let is_refused = |version: &str| {
            let names = |it: &&&str| {
                let name = it.trim_start_matches(['+', '-']);
                name.eq_ignore_ascii_case(version) || name.eq_ignore_ascii_case("ALL")
            };
            listed.iter().rfind(names).is_some_and(|it| it.starts_with('-'))
        };
        let (mut versions, _) = said.unwrap_or((vec!["TLSv1.2", "TLSv1.3"], &place.origin));
        versions.retain(|version| {
            let at = VERSIONS.iter().position(|known| known == version);
            at.is_none_or(|at| (least..=most).contains(&at)) && !is_refused(version)
        });
        Some((versions, &place.origin))
    }

    /// Which of the versions a command names, the oldest being 0; nothing where it is for all.
    fn bound(&mut self, commands: &[&Directive], name: &str) -> Option<usize> {
        let command = last(commands, name).filter(|it| it.word(1) != "None")?;
        let at = VERSIONS.iter().position(|known| *known == command.word(1));
        if at.is_none() {
            self.unreadable(command, &format!("{name} TLSv1.2"));
        }
        at
    }

    /// Writes the offer to servers, of which the directives for clients say nothing.
    pub(super) fn offer_to_servers(&mut self, scope: &Scope<'_>) -> Offer {
        let offer = tls_offer(scope.find("proxy_ssl_protocols"), scope.find("proxy_ssl_ciphers"));
        // A client's own order is the one that it offers.
        let wanted = TlsOffer { is_ordered: true, ..offer };
        self.output.offer(&wanted, &TO_SERVERS)
    }

    fn session_cache(&mut self, cache: &Directive) {
        let mut sessions = 0_u64;
        for word in &cache.words {
            let bytes = word.strip_prefix("shared:").and_then(|it| it.split_once(':'));
            match (bytes.and_then(|(_, size)| measure::bytes(size)), word.as_str()) {
                (Some(bytes), _) => sessions = bytes / SESSION_BYTES,
                (None, "off" | "none") => {}
                (None, builtin) if builtin.starts_with("builtin") => {
                    let number = builtin.split_once(':').and_then(|(_, it)| it.parse().ok());
                    sessions = sessions.max(number.unwrap_or(20_480));
                }
                _ => return self.unreadable(cache, "shared:SSL:10m"),
            }
        }
        self.output.text.set("session_cache", sessions.min(1_048_576), Some(&cache.origin));
    }

    /// `ssl_conf_command`: OpenSSL's own words.
    fn commands(&mut self, scopes: &[&Scope<'_>]) {
        for command in scopes.iter().flat_map(|scope| scope.all("ssl_conf_command")) {
            let options = command.word(1).split(',').map(str::trim);
            match command.word(0) {
                name if CARRIED.iter().any(|known| known.eq_ignore_ascii_case(name)) => continue,
                // The kernel encrypts where that is cheaper; `path` says otherwise.
                "Options" if options.clone().all(|option| ["KTLS", "-KTLS"].contains(&option)) => {
                    continue;
                }
                _ => {}
            }
            self.tell_of(command, "there is no OpenSSL; [tls] has what can be chosen");
        }
    }

    /// Chains and keys; a mistake where there is none.
    pub(super) fn pairs(&mut self, scope: &Scope<'_>, origin: &Origin) -> Option<Vec<Pair>> {
        let mut chains = scope.all("ssl_certificate");
        let mut keys = scope.all("ssl_certificate_key");
        if acme::shown(scope).is_some() {
            for files in [&mut chains, &mut keys] {
                files.retain(|it| !acme::is_fetched(it));
            }
            if chains.is_empty() {
                return Some(Vec::new());
            }
        }
        if chains.is_empty() || keys.len() < chains.len() {
            let message = "this server speaks TLS and has no certificate, or one without its key";
            let help = "write ssl_certificate FILE; and ssl_certificate_key FILE;";
            self.output.find(origin, message, help);
            return None;
        }
        let ocsp = scope.find("ssl_stapling_file").map(|file| self.folder.join(file.word(0)));
        let mut pairs = Vec::new();
        for (index, (chain, key)) in chains.into_iter().zip(keys).enumerate() {
            let is_file = |text: &str| !text.contains('$') && !text.contains(':');
            if !is_file(chain.word(0)) || !is_file(key.word(0)) {
                let message = "a certificate and its key are files";
                self.output.find(&chain.origin, message, "write the paths of both");
                return None;
            }
            let ocsp = ocsp.clone().filter(|_| index == 0);
            let chain_path = self.folder.join(chain.word(0));
            let key_path = self.folder.join(key.word(0));
            self.tell_of_certbot(&chain_path, chain);
            pairs.push((chain_path, key_path, ocsp, chain.origin.clone()));
        }
        Some(pairs)
    }

    /// Certificates that clients are asked for.
    pub(super) fn client_auth(&mut self, table: &str, scope: &Scope<'_>) {
        let Some(verify) = scope.find("ssl_verify_client").filter(|it| it.word(0) != "off") else {
            return;
        };
        let mode = match verify.word(0) {
            "on" => "required",
            "optional" => "optional",
            "optional_no_ca" => {
                let message = "a client's certificate that nobody vouches for ends the connection";
                self.output.warn(&verify.origin, message, "`optional` is the nearest");
                "optional"
            }
            _ => return self.unreadable(verify, "on"),
        };
        let Some(roots) =
            scope.find("ssl_client_certificate").or(scope.find("ssl_trusted_certificate"))
        else {
            let message = "clients are asked for certificates, and nothing says whom to trust";
            self.output.find(&verify.origin, message, "write ssl_client_certificate FILE;");
            return;
        };
        let path = |writer: &Self, it: &Directive| {
            quoted(&writer.folder.join(it.word(0)).display().to_string())
        };
        if let Some(directive) = asks_responders(scope) {
            return self.lose_by(directive, "nobody is asked for a certificate", NO_OCSP);
        }
        let roots_path = path(self, roots);
        let origin = Some(&verify.origin);
        self.output.text.table(table, origin);
        self.output.text.set("mode", quoted(mode), origin);
        self.output.text.set("roots", roots_path, Some(&roots.origin));
        if let Some(crl) = scope.find("ssl_crl") {
            let crl_path = path(self, crl);
            self.output.text.set("crl", crl_path, Some(&crl.origin));
        }
        let depth = scope.find("ssl_verify_depth");
        match depth.map_or(Ok(DEPTH), |it| it.word(0).parse::<u32>()) {
            Ok(depth) if depth >= CHAIN_MAX => {}
            Ok(authorities) => {
                let origin = depth.map_or(&verify.origin, |it| &it.origin);
                self.output.text.set("depth", authorities, Some(origin));
            }
            Err(_) => depth.into_iter().for_each(|it| self.unreadable(it, "1")),
        }
    }
}

/// The command of this name that counts.
fn last<'d>(commands: &[&'d Directive], name: &str) -> Option<&'d Directive> {
    commands.iter().rfind(|it| it.word(0).eq_ignore_ascii_case(name)).copied()
}

fn tls_offer<'d>(versions: Option<&'d Directive>, ciphers: Option<&'d Directive>) -> TlsOffer<'d> {
    let versions = versions.map(|it| (it.words.iter().map(String::as_str).collect(), &it.origin));
    let ciphers = ciphers.map(|it| Written { text: it.word(0), origin: &it.origin });
    TlsOffer { versions, ciphers, ..TlsOffer::default() }
}

/// Returns the directive that makes clients' certificates, which all must have, harder to get than kettle does. A client that
/// need not have one comes without.
pub(super) fn laxer_client_auth<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    scope.find("ssl_verify_client").filter(|it| it.word(0) == "on")?;
    asks_responders(scope).map(|directive| Shut { directive, why: NO_OCSP })
}

/// Returns the directive that has others asked if a client's certificate was revoked.
fn asks_responders<'t>(scope: &Scope<'t>) -> Option<&'t Directive> {
    scope.find("ssl_ocsp").filter(|it| it.word(0) != "off")
}

/// Returns the directive that makes a backend's certificate harder to get than kettle does. nginx looks at the list where it
/// verifies.
pub(super) fn laxer_backend<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let directive = scope.find("proxy_ssl_crl").filter(|_| scope.is_on("proxy_ssl_verify"))?;
    Some(Shut { directive, why: NO_CRL })
}

/// Authorities between a certificate and its root, as kettle takes them.
const CHAIN_MAX: u32 = 6;
/// The same in nginx, where nothing is said.
const DEPTH: u32 = 1;
const NO_OCSP: &str = "nobody is asked whether a client's certificate was revoked: write `ssl_crl` for those that were";
const NO_CRL: &str =
    "nobody is asked whether a backend's certificate was revoked: `pins` of it say whose is taken";

/// Commands that say what is offered.
const CARRIED: [&str; 5] =
    ["CipherString", "Ciphersuites", "MaxProtocol", "MinProtocol", "Protocol"];

/// nginx: "one megabyte of the cache contains about 4000 sessions".
const SESSION_BYTES: u64 = 256;

const EXAMPLES: Examples = Examples {
    versions: "ssl_protocols TLSv1.2 TLSv1.3;",
    ciphers: "ssl_ciphers EECDH+AESGCM;",
    tls13_suites: "ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;",
    groups: "ssl_ecdh_curve X25519:prime256v1;",
};

const TO_SERVERS: Examples = Examples {
    versions: "proxy_ssl_protocols TLSv1.2 TLSv1.3;",
    ciphers: "proxy_ssl_ciphers EECDH+AESGCM;",
    ..EXAMPLES
};
