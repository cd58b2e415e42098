//! A server as a screen of text or as JSON, and the verdict in a line.

use std::time::{Duration, UNIX_EPOCH};

use kettle_tls::{PeerCertificate, Resumption};
use serde_json::{Value, json};

use super::facts::{Facts, HelloTry, Sample, Second, Taken, Trust, VersionFacts};
use super::failure::Failure;
use super::findings::{findings, summary};
use crate::finding::{Finding, State};
use crate::render::{self, Style};

/// The facts found out about a server.
pub struct HostReport {
    facts: Facts,
    findings: Vec<Finding>,
}

impl HostReport {
    pub(super) fn of(facts: Facts) -> Self {
        let findings = findings(&facts);
        Self { facts, findings }
    }

    /// The findings, in the order of the screen.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The worst state that a finding has.
    #[must_use]
    pub fn worst(&self) -> State {
        self.findings.iter().map(|finding| finding.state).max().unwrap_or(State::Good)
    }

    /// One screen of text.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let Facts { target, address, .. } = &self.facts;
        let named = target.name.as_ref().map(|name| format!(" as {name}")).unwrap_or_default();
        let title = format!("kettle doctor on {target}{named} ({address})");
        let mut text = format!("{}\n\n", render::printable(&title));
        for line in render::wrap(&render::printable(&self.verdict()), render::COLUMNS_MAX) {
            text += &format!("{line}\n");
        }
        text.push('\n');
        text.extend(self.findings.iter().map(|finding| render::finding(finding, style)));
        text
    }

    /// The same for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let facts = &self.facts;
        json!({
            "kettle": env!("CARGO_PKG_VERSION"),
            "host": facts.target.host,
            "port": facts.target.port,
            "name": facts.target.name(),
            "address": facts.address,
            "verdict": self.verdict(),
            "findings": self.findings,
            "trusted": matches!(facts.trust, Trust::Yes),
            "refusal": match &facts.trust {
                Trust::No(refusal) => Some(refusal.reason()),
                _ => None,
            },
            "chain": facts.chain.iter().map(certificate_json).collect::<Vec<_>>(),
            "ocsp_stapled": facts.is_stapled,
            "client_certificate_required": facts.wants_certificate,
            "version": facts.first.version.name(),
            "suite": facts.first.suite,
            "group": facts.first.group,
            "alpn": facts.first.alpn,
            "hello_retry": facts.first.is_retry,
            "tls1.3": version_json(&facts.tls13),
            "tls1.2": version_json(&facts.tls12),
            "groups": facts.groups.iter().map(|(group, taken)| taken_json(group.title(), taken)).collect::<Vec<_>>(),
            "hellos": facts.hellos.iter().map(hello_json).collect::<Vec<_>>(),
            "tcp_connect_ms": milliseconds(facts.round_trip),
            "complete": !facts.is_cut_short,
        })
    }

    fn verdict(&self) -> String {
        let first = &self.facts.first;
        let to_do = self.findings.iter().filter(|finding| finding.state != State::Good).count();
        let observation = match to_do {
            0 => "nothing to mend".to_owned(),
            1 => "1 thing to look at".to_owned(),
            more => format!("{more} things to look at"),
        };
        let resumes = match summary(&self.facts) {
            Some(by) => format!("resumes sessions {by}"),
            None => "resumes no session".to_owned(),
        };
        format!(
            "It speaks {} with {} and {}, and {resumes}: {observation}.",
            first.version.name(),
            first.suite,
            first.group,
        )
    }
}

fn certificate_json(certificate: &PeerCertificate) -> Value {
    let seconds = |moment: std::time::SystemTime| {
        moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    };
    json!({
        "subject": certificate.subject,
        "issuer": certificate.issuer,
        "names": certificate.names.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "not_before": seconds(certificate.not_before),
        "not_after": seconds(certificate.not_after),
        "key": certificate.key_kind.map(|kind| kind.to_string()),
        "self_issued": certificate.is_self_issued,
        "bytes": certificate.bytes,
    })
}

fn version_json(version: &VersionFacts) -> Value {
    let Ok(full) = &version.full else {
        let why = version.full.as_ref().err().map(ToString::to_string);
        return json!({ "works": false, "reason": why });
    };
    json!({
        "works": true,
        "full": sample_json(full),
        "resumed": version.resumed().map(sample_json),
        "by_ticket": resumes(version.by_ticket.as_ref(), Resumption::Ticket),
        "by_session_id": resumes(version.by_id.as_ref(), Resumption::SessionId),
        "tickets": version.tickets,
        "ticket_lifetime_s": version.ticket_lifetime.as_secs(),
        "suites": version.suites.iter().map(|(cipher, taken)| taken_json(cipher.name(), taken)).collect::<Vec<_>>(),
    })
}

/// Null where it was not found out.
fn resumes(second: Option<&Result<Second, Failure>>, wanted: Resumption) -> Option<bool> {
    second?.as_ref().ok().map(|second| second.resumed == wanted)
}

fn sample_json(sample: &Sample) -> Value {
    json!({
        "sent_bytes": sample.sent_bytes,
        "received_bytes": sample.received_bytes,
        "ms": milliseconds(sample.duration),
    })
}

fn taken_json(name: &str, taken: &Taken) -> Value {
    match taken {
        Ok(()) => json!({ "name": name, "works": true }),
        Err(failure) => json!({ "name": name, "works": false, "reason": failure.to_string() }),
    }
}

fn hello_json(one: &HelloTry) -> Value {
    let mut json = taken_json(one.way, &one.taken);
    if let Some(fields) = json.as_object_mut() {
        fields.insert("hybrid".to_owned(), one.is_hybrid.into());
        fields.insert("bytes".to_owned(), one.hello_bytes.into());
    }
    json
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 100_000.0).round() / 100.0
}

#[cfg(test)]
mod tests;
