//! Authorities that nobody may ask, and certificates that none would issue.

use std::collections::HashMap;
use std::net::IpAddr;

use super::names::{Names, find_repeated};
use crate::diagnostic::Help;
use crate::located::Located;
use crate::model::{
    Acme, AcmeCertificate, ChallengeKind, Config, Listener, ListenerKind, WantedCertificate,
};
use crate::read::Reader;
use crate::setting::{ANY_NAME, NamePattern};

/// The most names of one certificate. Public authorities take no more.
const NAMES_MAX: usize = 100;

/// Top-level names that no public authority can look up (RFC 6761, RFC 6762, RFC 8375, and `internal` by ICANN).
const SPECIAL_NAMES: [&str; 7] =
    ["localhost", "local", "internal", "test", "invalid", "example", "home.arpa"];

/// Records every mistake about certificates that are fetched.
pub(crate) fn check(config: &Config, reader: &mut Reader<'_>) {
    find_repeated(config.acme.iter().map(|it| &it.name), "[[acme]]", reader);
    for (index, acme) in config.acme.iter().enumerate() {
        check_authority(index, acme, reader);
    }
    let groups = || config.acme.iter().filter_map(|it| it.certificates_group.as_ref());
    let first = config.certificates_group();
    for other in groups().filter(|group| first.is_some_and(|first| first != *group)) {
        let message =
            "all certificates lie in one folder, which another [[acme]] gives to another group";
        let help = "write the same group, or remove this one";
        reader.report_located(other, message.to_owned(), Help::act(help));
    }
    let mut check = Check {
        config,
        authorities: Names::of("acme", config.acme.iter().map(|it| &it.name)),
        folders: HashMap::new(),
    };
    for (index, site) in config.sites.iter().enumerate() {
        if let Some(how) = &site.acme {
            let wanted = WantedCertificate { names: &site.names, how };
            check.wanted(&format!("site.{index}.acme"), wanted, reader);
        }
    }
    for (index, listener) in config.listeners.iter().enumerate() {
        if let Some(acme) = listener.tls().and_then(|tls| tls.acme.as_ref()) {
            let wanted = WantedCertificate { names: &acme.names, how: &acme.certificate };
            check.wanted(&format!("listener.{index}.acme"), wanted, reader);
        }
    }
}

fn check_authority(index: usize, acme: &Acme, reader: &mut Reader<'_>) {
    if !acme.accept_terms && acme.directory.at.is_written() {
        let terms = match acme.directory.contains(".api.letsencrypt.org/") {
            true => "https://letsencrypt.org/repository/ has them",
            false => "the address of its directory names them as `termsOfService`",
        };
        let message = format!("nobody has agreed to the terms of this authority: {terms}");
        let help = "read them, and write accept_terms = true";
        match reader.place(&format!("acme.{index}.accept_terms")) {
            Some(place) => reader.report_at(&place, message, Help::act(help)),
            None => reader.report_located(&acme.directory, message, Help::act(help)),
        }
    }
    if let Some(test) = acme.test_directory.as_ref().filter(|it| **it == acme.directory) {
        let message = "orders are tried out where failures do not count".to_owned();
        reader.report_located(test, message, Help::act("write another directory, or remove it"));
    }
}

struct Check<'c> {
    config: &'c Config,
    authorities: Names<'c>,
    /// The line of the certificate that has it.
    folders: HashMap<String, usize>,
}

impl<'c> Check<'c> {
    fn wanted(&mut self, trail: &str, wanted: WantedCertificate<'c>, reader: &mut Reader<'_>) {
        let how = wanted.how;
        let place = reader.place(trail);
        if let Some(place) = place.as_ref().filter(|_| !reader.is_written("acme")) {
            let message = "no authority is named that could be asked for a certificate".to_owned();
            let help = "[[acme]] with name = \"letsencrypt\", directory = \"letsencrypt\" and accept_terms = true";
            reader.report_at(place, message, Help::write(help));
        } else {
            for name in &how.authorities {
                self.authorities.check(name, reader);
            }
        }
        check_programs(trail, how, reader);
        self.check_answerable(trail, how, reader);
        self.check_folder(wanted, reader);
        if let Some(beyond) = wanted.names.get(NAMES_MAX) {
            let message = format!(
                "a certificate has at most {NAMES_MAX} names, and this has {}",
                wanted.names.len()
            );
            reader.report_located(beyond, message, Help::act("write two sites"));
        }
        let public = wanted.authorities(self.config).into_iter().find(|it| it.is_public());
        for name in wanted.names.iter().filter(|name| name.at.is_written()) {
            check_name(name, public, trail.starts_with("site"), reader);
            let by_record = how.challenges.iter().any(is_by_record);
            if name.starts_with("*.") && !by_record {
                let message = "an authority looks at names with a star in the DNS only".to_owned();
                let help = "challenges = [\"dns-01\"], and a program as `hook`; or [\"dns-persist-01\"]; or the names in full";
                reader.report_located(name, message, Help::act(help));
            }
            if by_record
                && how.challenges.iter().all(is_by_record)
                && name.parse::<IpAddr>().is_ok()
            {
                let message = "no record says whose an address is (RFC 8738 section 7)".to_owned();
                let help = "add \"http-01\" or \"tls-alpn-01\" to the challenges";
                reader.report_located(name, message, Help::act(help));
            }
        }
    }

    /// Each certificate has one of its own, named by its first name.
    fn check_folder(&mut self, wanted: WantedCertificate<'_>, reader: &mut Reader<'_>) {
        let (Some(folder), Some(first)) = (wanted.folder(), wanted.names.first()) else { return };
        if let Some(line) = self.folders.insert(folder, first.at.line) {
            let message = format!(
                "the certificate for the names on {} begins with the same one, which names its folder",
                reader.line(line)
            );
            reader.report_located(first, message, Help::act("write another name first"));
        }
    }

    /// At least one of the challenges must reach us somewhere.
    fn check_answerable(&self, trail: &str, how: &AcmeCertificate, reader: &mut Reader<'_>) {
        let listeners = &self.config.listeners;
        let is_answered = |kind: &ChallengeKind| match kind {
            ChallengeKind::Dns01 | ChallengeKind::DnsPersist01 => true,
            ChallengeKind::TlsAlpn01 => listeners.iter().any(answers_in_tls),
            ChallengeKind::Http01 => listeners.iter().any(answers_in_http),
        };
        if listeners.is_empty()
            || how.challenges.is_empty()
            || how.challenges.iter().any(is_answered)
        {
            return;
        }
        let written = reader.place(&format!("{trail}.challenges"));
        if let Some(place) = written.or_else(|| reader.place(trail)) {
            let message = "no listener can answer one of these challenges".to_owned();
            let help = "add a [[listener]] with kind = \"redirect\" for http-01, or kind = \"https\" for tls-alpn-01";
            reader.report_at(&place, message, Help::act(help));
        }
    }
}

/// True if a name is validated by a record in the DNS.
fn is_by_record(kind: &ChallengeKind) -> bool {
    matches!(kind, ChallengeKind::Dns01 | ChallengeKind::DnsPersist01)
}

/// True if handshakes of tls-alpn-01 are answered there.
pub(crate) fn answers_in_tls(listener: &Listener) -> bool {
    listener.https().is_some() || listener.tls().is_some()
}

/// True if requests of http-01 are answered there.
pub(crate) fn answers_in_http(listener: &Listener) -> bool {
    matches!(listener.kind, ListenerKind::Http(_) | ListenerKind::Redirect(_))
}

/// `dns-01` and its program belong together.
fn check_programs(trail: &str, how: &AcmeCertificate, reader: &mut Reader<'_>) {
    let dns = how.challenges.iter().position(|it| *it == ChallengeKind::Dns01);
    match (dns, &how.hook) {
        (Some(index), None) => {
            if let Some(place) = reader.place(&format!("{trail}.challenges.{index}")) {
                let message = "no program writes the records of dns-01".to_owned();
                let help = "hook = \"/usr/local/bin/dns\"";
                reader.report_at(&place, message, Help::write(help));
            }
        }
        (None, Some(hook)) => {
            let message = "this program is for dns-01, which is none of the challenges".to_owned();
            let help = "remove it, or write challenges = [\"dns-01\"]";
            reader.report_located(hook, message, Help::act(help));
        }
        (None, None) => {
            if let Some(place) = reader.place(&format!("{trail}.propagation")) {
                let message = "no record has to reach anybody without dns-01".to_owned();
                reader.report_at(&place, message, Help::act("remove it"));
            }
        }
        (Some(_), Some(_)) => {}
    }
}

fn check_name(
    name: &Located<String>,
    public: Option<&Acme>,
    is_site: bool,
    reader: &mut Reader<'_>,
) {
    let address = name.parse::<IpAddr>().ok();
    let message_and_help = if name.value == ANY_NAME {
        let help = if is_site {
            "remove it, and write default = true in the [[site]]"
        } else {
            "remove it"
        };
        Some(("no certificate is for any name", help))
    } else if NamePattern::is_one(name) || name.ends_with(".*") {
        let help =
            "write the names in full, or give this one to a site with a [[site.certificate]]";
        Some(("no certificate is for a pattern of names", help))
    } else if name.starts_with("**.") {
        Some(("no certificate is for all levels below a name", "write `*.` in place of `**.`"))
    } else {
        None
    };
    if let Some((message, help)) = message_and_help {
        return reader.report_located(name, message.to_owned(), Help::act(help));
    }
    let why = match address {
        Some(address) if is_private(address) => "it cannot reach a private address",
        Some(_) => return,
        None => match unknown_to_all(name) {
            Some(why) => why,
            None => return,
        },
    };
    if let Some(acme) = public {
        let message = format!("\"{}\" signs no certificate for this: {why}", acme.name);
        let help = "remove it; for an authority of your own write its `roots` in that [[acme]]";
        reader.report_located(name, message, Help::act(help));
    }
}

/// Why no public authority signs a certificate for a name, if so.
fn unknown_to_all(name: &str) -> Option<&'static str> {
    let host = name.strip_prefix("*.").unwrap_or(name);
    let is_below = |special: &str| {
        host.strip_suffix(special).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    match host {
        _ if SPECIAL_NAMES.iter().any(|special| is_below(special)) => {
            Some("such names are not in the public DNS")
        }
        _ if !host.contains('.') => Some("the name has no dot"),
        _ if host.contains('_') => Some("it has a `_`"),
        _ => None,
    }
}

/// True if an address is not of the public internet (RFC 6890).
fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(it) => {
            let [first, second, ..] = it.octets();
            let is_shared = first == 100 && (64..128).contains(&second);
            it.is_private()
                || it.is_loopback()
                || it.is_link_local()
                || is_shared
                || first == 0
                || first >= 224
        }
        IpAddr::V6(it) => {
            it.is_unique_local()
                || it.is_unicast_link_local()
                || it.is_loopback()
                || it.is_unspecified()
                || it.is_multicast()
        }
    }
}
