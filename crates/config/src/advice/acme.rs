//! Authorities that nobody asks, and challenges that most likely arrive nowhere.

use super::at;
use crate::check::{answers_in_http, answers_in_tls};
use crate::diagnostic::Diagnostic;
use crate::model::{ChallengeKind, Config, Listener, StartTls};

/// Names each authority that no certificate is asked of, and says where challenges will not arrive.
pub(super) fn about_acme(config: &Config, diagnostics: &mut Vec<Diagnostic>) {
    let asks = |name: &str| {
        let mut wanted = config.wanted_certificates();
        wanted.any(|it| it.authorities(config).iter().any(|acme| acme.name.value == name))
    };
    for acme in config.acme.iter().filter(|acme| !asks(&acme.name)) {
        let message = format!("no site asks \"{}\" for a certificate", acme.name);
        let help = "write [site.acme] below a [[site]], or remove it".to_owned();
        let written = format!("\"{}\"", acme.name);
        diagnostics.push(config.diagnostic(acme.name.at, &written, message, Some(help)));
    }
    diagnostics.extend(about_ports(config));
    about_protocols(config, diagnostics);
}

/// An authority connects to two ports and no others (RFC 8737 section 3, RFC 8555 section 8.3).
fn about_ports(config: &Config) -> Option<Diagnostic> {
    // Behind a load balancer ports are others.
    let is_alone = |it: &Listener| it.accept_proxy.networks.is_empty() && !it.accept_proxy.unix;
    if !config.listeners.iter().all(is_alone) {
        return None;
    }
    let is_at = |port: u16, answers: fn(&Listener) -> bool| {
        config.listeners.iter().any(|it| it.address.port() == Some(port) && answers(it))
    };
    let in_tls = is_at(443, takes_hello);
    let in_http = is_at(80, answers_in_http);
    let arrives = |kind: &ChallengeKind| match kind {
        ChallengeKind::TlsAlpn01 => in_tls,
        ChallengeKind::Http01 => in_http,
        ChallengeKind::Dns01 | ChallengeKind::DnsPersist01 => true,
    };
    let wanted = config.wanted_certificates().find(|it| !it.how.challenges.iter().any(arrives))?;
    let name = wanted.names.first()?;
    let message = format!(
        "no challenge for \"{name}\" arrives: an authority connects to port 443 for tls-alpn-01 and to port 80 for http-01"
    );
    let help = "add a [[listener]] there; or leave it, if these ports are forwarded to others";
    Some(config.diagnostic(name.at, &format!("\"{name}\""), message, Some(help.to_owned())))
}

/// True if TLS begins at once there.
fn takes_hello(listener: &Listener) -> bool {
    let begins = |starttls: StartTls| matches!(starttls, StartTls::Off | StartTls::Postgres);
    answers_in_tls(listener) && listener.tls().is_none_or(|tls| begins(tls.starttls))
}

/// A challenge on a listener that gives it to a backend is not ours to answer.
fn about_protocols(config: &Config, diagnostics: &mut Vec<Diagnostic>) {
    let wants = |kind| config.wanted_certificates().any(|it| it.how.challenges.contains(&kind));
    if !wants(ChallengeKind::TlsAlpn01) {
        return;
    }
    let is_it = |protocol: &str| protocol == ACME_TLS;
    let of_listeners = config.listeners.iter().enumerate().filter_map(|(index, listener)| {
        let tls = listener.tls()?;
        if tls.alpn.iter().any(|it| is_it(it)) {
            return Some(format!("listener.{index}.alpn"));
        }
        let by_alpn = tls.backend_by_alpn.iter().any(|(protocol, _)| is_it(protocol));
        by_alpn.then(|| format!("listener.{index}.backend_by_alpn"))
    });
    let of_sites = config.sites.iter().enumerate().filter_map(|(index, site)| {
        let by_alpn = site.backend_by_alpn.iter().any(|(protocol, _)| is_it(protocol));
        by_alpn.then(|| format!("site.{index}.backend_by_alpn"))
    });
    for setting in of_listeners.chain(of_sites) {
        let message = "\"acme-tls/1\" goes to a backend here, so kettle answers no tls-alpn-01";
        let help = "remove it, or write challenges = [\"http-01\"] in each [site.acme]";
        diagnostics.push(at(config, &setting, message, help));
    }
}

/// The protocol of tls-alpn-01 (RFC 8737 section 6.2).
const ACME_TLS: &str = "acme-tls/1";
