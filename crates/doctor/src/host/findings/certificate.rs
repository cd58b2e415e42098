//! The server's certificate, and the chain that comes with it.

use std::time::{Duration, SystemTime};

use kettle_tls::connector::CertificateRefusal;
use kettle_tls::{PeerCertificate, identity};

use crate::finding::Finding;
use crate::host::facts::{Facts, Trust};

/// Says whether clients take it, for how long still, and what it is.
pub(super) fn certificate(facts: &Facts) -> Finding {
    const NAME: &str = "certificate";
    let Some(leaf) = facts.chain.first() else {
        return Finding::warning(NAME, "it cannot be read");
    };
    let about = format!("{}; {}; {}", names(leaf), key(leaf), days(leaf));
    let state = if has_ended(leaf) { Finding::bad } else { Finding::warning };
    let finding = match &facts.trust {
        Trust::No(refusal) => {
            Finding::bad(NAME, format!("not trusted: {}; {about}", why(facts, refusal)))
                .fix(mend(facts, refusal))
        }
        Trust::NoAuthorities(error) => state(NAME, format!("not verified, {error}; {about}")),
        Trust::Unknown => state(NAME, format!("not verified; {about}")),
        Trust::Yes if ends_soon(leaf) => Finding::warning(NAME, format!("trusted; {about}")),
        Trust::Yes => Finding::good(NAME, format!("trusted; {about}")),
    };
    // An issuer that nobody knows is found before a time that is over.
    match has_ended(leaf) && !finding.fix.iter().any(|fix| fix == RENEW) {
        true => finding.fix(RENEW),
        false if ends_soon(leaf) => finding.fix("renew it, and look why that was not done yet"),
        false => finding,
    }
}

/// Its length, and what is in it for nothing.
pub(super) fn chain(facts: &Facts) -> Option<Finding> {
    let leaf = facts.chain.first()?;
    let bytes: usize = facts.chain.iter().map(|certificate| certificate.bytes).sum();
    let count = facts.chain.len();
    let plural = if count == 1 { "" } else { "s" };
    let staple = match facts.is_stapled {
        Some(true) => "; an OCSP response is stapled",
        Some(false) => "; no OCSP response",
        None => "",
    };
    let message =
        format!("{count} certificate{plural}, {bytes} bytes; issued by {}{staple}", leaf.issuer);
    let roots = facts.chain.iter().skip(1).filter(|certificate| certificate.is_self_issued);
    let root_bytes: usize = roots.map(|root| root.bytes).sum();
    Some(match root_bytes {
        0 => Finding::good("chain", message),
        _ => Finding::warning("chain", format!("{message}; a root is in it")).fix(format!(
            "leave the root out of the chain: {root_bytes} bytes in each full handshake for nothing, clients have it or \
             do not trust it"
        )),
    })
}

fn ends_soon(leaf: &PeerCertificate) -> bool {
    identity::ends_soon(leaf.not_before, leaf.not_after, SystemTime::now())
}

fn has_ended(certificate: &PeerCertificate) -> bool {
    certificate.not_after < SystemTime::now()
}

fn why(facts: &Facts, refusal: &CertificateRefusal) -> String {
    match refusal {
        CertificateRefusal::UnknownIssuer { issuer } => {
            format!("no authority that this machine trusts vouches for it (its issuer: {issuer})")
        }
        CertificateRefusal::WrongName { expected, .. } => format!("it is not for {expected}"),
        CertificateRefusal::Expired(_) if facts.chain.first().is_some_and(has_ended) => {
            "it has expired".to_owned()
        }
        CertificateRefusal::Expired(_) => "one that vouches for it has expired".to_owned(),
        CertificateRefusal::NotYetValid(_) => {
            "it, or one that vouches for it, is not valid yet".to_owned()
        }
        CertificateRefusal::IsAuthority { .. } => {
            "it is an authority's own, which stands for no server".to_owned()
        }
        CertificateRefusal::WrongPurpose => {
            "its purposes or its key usage leave out being a server".to_owned()
        }
        CertificateRefusal::NoProof => "the server did not prove to have its key".to_owned(),
        CertificateRefusal::WrongKey { .. } | CertificateRefusal::Unusable(_) => {
            refusal.to_string()
        }
    }
}

fn mend(facts: &Facts, refusal: &CertificateRefusal) -> &'static str {
    let stands_alone = facts.chain.iter().all(|certificate| certificate.is_self_issued);
    match refusal {
        CertificateRefusal::UnknownIssuer { .. } if stands_alone => {
            "clients trust it only where it was given to them: get one from an authority"
        }
        CertificateRefusal::UnknownIssuer { .. } if facts.chain.len() == 1 => {
            "let the server send the intermediate certificates too; if it is a private authority, give its certificate \
             to this machine (SSL_CERT_FILE)"
        }
        CertificateRefusal::UnknownIssuer { .. } => {
            "if it is a private authority, give its certificate to this machine (SSL_CERT_FILE)"
        }
        CertificateRefusal::WrongName { .. } => {
            "ask by a name that the certificate has, or get one that has this name"
        }
        CertificateRefusal::Expired(_) if facts.chain.first().is_some_and(has_ended) => RENEW,
        CertificateRefusal::Expired(_) if facts.chain.iter().any(has_ended) => {
            "let the server send the authority's intermediate certificate of today in place of the old one"
        }
        CertificateRefusal::Expired(_) => {
            "look at this machine's clock, and bring its authorities up to date"
        }
        CertificateRefusal::NotYetValid(_) => "look at the clocks of both machines",
        _ => {
            "get a certificate for this server, with the purpose serverAuth and the key usage digitalSignature"
        }
    }
}

fn names(leaf: &PeerCertificate) -> String {
    let names: Vec<_> = leaf.names.iter().take(NAMES_MAX).map(ToString::to_string).collect();
    let more = match leaf.names.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match names.is_empty() {
        true => format!("{}, without a subject alternative name", leaf.subject),
        false => format!("for {}{more}", names.join(", ")),
    }
}

fn key(leaf: &PeerCertificate) -> String {
    leaf.key_kind.map_or_else(|| "a key of an unusual kind".to_owned(), |kind| kind.to_string())
}

fn days(leaf: &PeerCertificate) -> String {
    let now = SystemTime::now();
    if let Ok(ago) = now.duration_since(leaf.not_after) {
        return format!("it ended {}", ago_of(ago));
    }
    let left = leaf.not_after.duration_since(now).unwrap_or_default();
    match left.as_secs() / DAY_SECONDS {
        0 => format!("it ends in {} hours", left.as_secs() / 3600),
        1 => "it ends in 1 day".to_owned(),
        days => format!("it ends in {days} days"),
    }
}

fn ago_of(ago: Duration) -> String {
    match ago.as_secs() / DAY_SECONDS {
        0 => "today".to_owned(),
        1 => "1 day ago".to_owned(),
        days => format!("{days} days ago"),
    }
}

/// The whole screen is 80 columns wide.
const NAMES_MAX: usize = 4;
const DAY_SECONDS: u64 = 86_400;
const RENEW: &str =
    "renew it and reload the server; if it is renewed already, only the reload is missing";
