//! The findings about a server, with what to do, in the order of the screen.

mod certificate;
mod hello;
mod resumption;
mod wire;

use kettle_tls::policy::Group;
use kettle_tls::{Cipher, Version};

use super::facts::{Facts, Taken, VersionFacts};
use super::failure::Failure;
use crate::finding::Finding;

pub(super) use resumption::summary;

/// Everything that is to be said.
pub(super) fn findings(facts: &Facts) -> Vec<Finding> {
    let findings = [
        wants_certificate(facts),
        Some(certificate::certificate(facts)),
        certificate::chain(facts),
        Some(versions(facts)),
        Some(suites(facts)),
        groups(facts),
        Some(alpn(facts)),
        Some(resumption::resumption(facts)),
        wire::wire(facts),
        hello::hello(facts),
        cut_short(facts),
    ];
    findings.into_iter().flatten().collect()
}

fn wants_certificate(facts: &Facts) -> Option<Finding> {
    facts.wants_certificate.then(|| {
        let message = "it takes nobody without a certificate; what is said below is of handshakes without one";
        Finding::warning("clients", message)
    })
}

fn versions(facts: &Facts) -> Finding {
    const NAME: &str = "versions";
    match (&facts.tls13.full, &facts.tls12.full) {
        (Ok(_), Ok(_)) => Finding::good(NAME, "TLS 1.3 and TLS 1.2"),
        (Ok(_), Err(failure)) if failure.is_answer() => {
            Finding::good(NAME, format!("TLS 1.3; not TLS 1.2 ({failure})"))
        }
        (Ok(_), Err(failure)) => Finding::warning(NAME, format!("TLS 1.3; TLS 1.2: {failure}")),
        (Err(failure), Ok(_)) => {
            let message = format!(
                "TLS 1.2 only ({failure} to TLS 1.3): a full handshake takes one round trip more, and the certificate \
                 can be read on the way"
            );
            Finding::warning(NAME, message).fix("turn on TLS 1.3 there")
        }
        (Err(new), Err(old)) => {
            Finding::warning(NAME, format!("TLS 1.3 alone: {new}; TLS 1.2 alone: {old}"))
        }
    }
}

fn suites(facts: &Facts) -> Finding {
    const NAME: &str = "suites";
    let spoken: Vec<&VersionFacts> =
        [&facts.tls13, &facts.tls12].into_iter().filter(|version| version.is_spoken()).collect();
    let table = spoken.iter().map(|version| {
        let words = version.suites.iter().map(|(cipher, taken)| word(cipher.name(), taken));
        format!("{}  {}", version.version.name(), words.collect::<Vec<_>>().join("  "))
    });
    let table = table.collect();
    let first = format!("{} where all were offered", facts.first.suite);
    let lacks_aes_128 = spoken.iter().any(|version| {
        let is_missing = |(cipher, taken): &(Cipher, Taken)| {
            *cipher == Cipher::Aes128Gcm && taken.as_ref().is_err_and(Failure::is_answer)
        };
        version.version == Version::Tls12 && version.suites.iter().any(is_missing)
    });
    match lacks_aes_128 {
        true => Finding::warning(NAME, first)
            .table(table)
            .fix("allow AES-128-GCM for TLS 1.2: it is as safe, costs the least, and every client has it"),
        false => Finding::good(NAME, first).table(table),
    }
}

fn groups(facts: &Facts) -> Option<Finding> {
    const NAME: &str = "groups";
    let words: Vec<_> =
        facts.groups.iter().map(|(group, taken)| word(group.title(), taken)).collect();
    if words.is_empty() {
        return None;
    }
    let mut message = words.join("  ");
    if facts.first.is_retry {
        message += "; it asks for a second hello first, which costs a round trip";
    }
    let is_hybrid =
        |(group, taken): &(Group, Taken)| *group == Group::X25519MlKem768 && taken.is_ok();
    Some(match facts.groups.iter().any(is_hybrid) {
        true if facts.first.is_retry => Finding::warning(NAME, message)
            .fix("prefer X25519MLKEM768 or X25519 there: clients send keys for these two"),
        true => Finding::good(NAME, message),
        // There are none in TLS 1.2, of which its own line speaks.
        false if !facts.tls13.is_spoken() => Finding::good(NAME, message),
        false => Finding::warning(NAME, message).fix(
            "turn on X25519MLKEM768 there (OpenSSL 3.5, Go 1.24, kettle): what is recorded today may be read by \
             quantum computers later",
        ),
    })
}

fn alpn(facts: &Facts) -> Finding {
    const NAME: &str = "ALPN";
    match facts.first.alpn.as_deref() {
        Some(chosen) => Finding::good(NAME, format!("{chosen}, of h2 and http/1.1")),
        None => Finding::good(NAME, "none chosen, of h2 and http/1.1: clients will speak HTTP/1.1"),
    }
}

fn cut_short(facts: &Facts) -> Option<Finding> {
    facts.is_cut_short.then(|| {
        Finding::warning(
            "time",
            "a minute was not enough: what is last on this screen was not tried",
        )
    })
}

/// A name with its mark, and why not where that is not a plain no.
fn word(name: &str, taken: &Taken) -> String {
    match taken {
        Ok(()) => format!("{name} ✓"),
        Err(failure) if failure.is_answer() => format!("{name} ✗"),
        Err(_) => format!("{name} ?"),
    }
}
