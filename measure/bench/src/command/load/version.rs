//! Why a server takes no TLS connection of the version it was offered: most often it speaks the other one only, or no HTTP/2.

use std::time::Duration;

use kettle_loadgen::client::{self, Failure, LoadError};
use kettle_loadgen::load::{End, Load, LoadModel, Reuse};
use kettle_loadgen::offer::Offer;
use kettle_tls::Version;

use crate::word::Word;

/// The error in words, and what may be the cause.
pub(super) fn explain(error: &LoadError, load: &Load) -> String {
    match error {
        LoadError::Unreachable { failure: Failure::Handshake | Failure::Alert, .. } => {
            let hint = hint(load).map(|hint| format!("; {hint}"));
            format!("{error}{}", hint.unwrap_or_default())
        }
        _ => error.to_string(),
    }
}

/// Which version to offer instead, or what else the server may not like; for a load on which every handshake failed.
pub(super) fn hint(load: &Load) -> Option<String> {
    let offer = load.tls?;
    if offer.http2.is_some() && speaks(load, Offer { http2: None, ..offer }) {
        return Some("the server does not speak HTTP/2: leave out --http 2".to_owned());
    }
    let other = match offer.version {
        Version::Tls12 => Version::Tls13,
        Version::Tls13 => Version::Tls12,
    };
    let [offered, word] = [offer.version, other].map(Word::word);
    if speaks(load, Offer { version: other, ..offer }) {
        return Some(format!(
            "the server does not speak TLS {offered}, but TLS {word}: add --tls {word}"
        ));
    }
    let suite = offer.cipher.word();
    let group = offer.group.word();
    Some(format!(
        "it speaks neither TLS {offered} nor {word} with --suite {suite} and --group {group}"
    ))
}

fn speaks(load: &Load, offer: Offer) -> bool {
    let once = Load {
        tls: Some(offer),
        reuse: Reuse { requests_per_connection: Some(1), connections_per_session: 1 },
        model: LoadModel::Closed { connections: 1 },
        end: End::Requests { count: 1, at_most: ASKED_MAX },
        warm_up: Duration::ZERO,
        ..load.clone()
    };
    // Whatever it answers then.
    client::run(&once, &mut |_| {}).is_ok_and(|outcome| outcome.handshakes.full > 0)
}

/// The time the server may take to show the other version.
const ASKED_MAX: Duration = Duration::from_secs(10);
