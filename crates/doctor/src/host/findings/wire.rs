//! The bytes of handshakes on the wire.

use kettle_tls::Version;

use crate::finding::Finding;
use crate::host::facts::{Facts, Sample, VersionFacts};

/// Bytes in each direction, and time.
pub(super) fn wire(facts: &Facts) -> Option<Finding> {
    let mut table = vec![format!("{:<16}{:>10}{:>12}{:>12}", "", "sent", "received", "time")];
    for version in [&facts.tls13, &facts.tls12] {
        let Ok(full) = &version.full else {
            continue;
        };
        table.push(line(version, "full", full));
        table.extend(version.resumed().map(|sample| line(version, "resumed", sample)));
    }
    let message = format!(
        "bytes of TLS in a handshake, tickets included; TCP connects in {}; one sample each",
        milliseconds(facts.round_trip)
    );
    (table.len() > 1).then(|| Finding::good("on the wire", message).table(table))
}

fn line(version: &VersionFacts, kind: &str, sample: &Sample) -> String {
    let name = match version.version {
        Version::Tls12 => "TLS 1.2",
        Version::Tls13 => "TLS 1.3",
    };
    format!(
        "{:<16}{:>10}{:>12}{:>12}",
        format!("{name} {kind}"),
        sample.sent_bytes,
        sample.received_bytes,
        milliseconds(sample.duration)
    )
}

fn milliseconds(time: std::time::Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1_000.0)
}
