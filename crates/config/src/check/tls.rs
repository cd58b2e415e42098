//! Versions and key exchanges that must fit each other, and protocols that must fit into a hello.

use crate::diagnostic::Help;
use crate::model::{Config, Group, Tls, TlsVersion};
use crate::read::Reader;

/// Records lists of protocols that no hello has room for.
pub(crate) fn check_protocols(config: &Config, reader: &mut Reader<'_>) {
    let of_listeners = config.listeners.iter().enumerate().filter_map(|(index, listener)| {
        Some((format!("listener.{index}.alpn"), &listener.tls()?.alpn))
    });
    let of_backends = config.backends.iter().enumerate().filter_map(|(index, backend)| {
        Some((format!("backend.{index}.tls.alpn"), &backend.tls.as_ref()?.alpn))
    });
    for (trail, protocols) in of_listeners.chain(of_backends) {
        if !do_protocols_fit(protocols)
            && let Some(place) = reader.place(&trail)
        {
            let message = format!(
                "these protocols take {} bytes of a ClientHello, and {PROTOCOLS_BYTES_MAX} are the most",
                protocols_bytes(protocols)
            );
            reader.report_at(&place, message, Help::act("leave out those that nobody speaks"));
        }
    }
}

/// True if a ClientHello has room for these application protocols.
#[must_use]
pub fn do_protocols_fit(protocols: &[String]) -> bool {
    protocols_bytes(protocols) <= PROTOCOLS_BYTES_MAX
}

/// `ProtocolNameList` (RFC 7301 §3.1): each name behind a byte with its length.
fn protocols_bytes(protocols: &[String]) -> usize {
    protocols.iter().map(|protocol| 1 + protocol.len()).sum()
}

/// Records key exchanges that the versions cannot use, and versions left without one.
pub(crate) fn check(tls: &Tls, reader: &mut Reader<'_>) {
    let offers = |version| tls.versions.contains(&version);
    if tls.groups.is_empty() || tls.versions.is_empty() {
        return;
    }
    let needs_tls13 = |group: &Group| *group == Group::X25519MlKem768;
    let hybrid = tls.groups.iter().position(needs_tls13);
    if let Some(index) = hybrid
        && !offers(TlsVersion::Tls13)
        && let Some(place) = reader.place(&format!("tls.groups.{index}"))
    {
        let message = "\"x25519mlkem768\" exists in TLS 1.3 only, which `versions` leaves out";
        reader.report_at(&place, message.to_owned(), Help::write("\"x25519\""));
    }
    if tls.groups.iter().all(needs_tls13)
        && tls.versions == [TlsVersion::Tls12, TlsVersion::Tls13]
        && let Some(place) = reader.place("tls.groups")
    {
        let message = "TLS 1.2 is offered but has none of these key exchanges".to_owned();
        let help = "[\"x25519mlkem768\", \"x25519\"]";
        reader.report_at(&place, message, Help::write(help));
    }
}

/// All protocols that are registered take a tenth of it, and a hello that is longer than a record is refused by many. The list
/// itself could have 64 KiB.
const PROTOCOLS_BYTES_MAX: usize = 4_096;
