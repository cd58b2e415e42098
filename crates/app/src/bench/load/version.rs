//! Why a server takes no TLS connection of the version it was offered: most often it speaks the other one only.

use std::time::Duration;

use kettle_bench::client::{self, Failure, LoadError};
use kettle_bench::load::{End, Load, Reuse, Rhythm};
use kettle_bench::scenario::word::{Offer, Version, Word};

/// The error in words; where a handshake failed, the server is asked whether it speaks the other version.
pub(super) fn explain(error: &LoadError, load: &Load) -> String {
    let LoadError::Unreachable { failure: Failure::Handshake | Failure::Alert, .. } = error else {
        return error.to_string();
    };
    let Some(offer) = load.tls else { return error.to_string() };
    let (offered, other) = match offer.version {
        Version::Tls12 => ("1.2", Version::Tls13),
        Version::Tls13 => ("1.3", Version::Tls12),
    };
    let word = other.word();
    if speaks(load, Offer { version: other, ..offer }) {
        return format!(
            "the server does not speak TLS {offered} as it was offered, but TLS {word}: add --tls {word}"
        );
    }
    format!(
        "{error}, with TLS {offered} and with TLS {word}; it may want another --suite ({}) or --group ({}), or speak no TLS at \
         all",
        offer.cipher.word(),
        offer.group.word()
    )
}

fn speaks(load: &Load, offer: Offer) -> bool {
    let once = Load {
        tls: Some(offer),
        reuse: Reuse { requests_per_connection: Some(1), connections_per_session: 1 },
        rhythm: Rhythm::Closed { connections: 1 },
        end: End::Requests { count: 1, at_most: ASKED_MAX },
        warm_up: Duration::ZERO,
        ..load.clone()
    };
    // Whatever it answers, there was a handshake.
    client::run(&once, &mut |_| {}).is_ok_and(|outcome| outcome.handshakes.failed == 0)
}

/// How long the server may take to show the other version.
const ASKED_MAX: Duration = Duration::from_secs(10);
