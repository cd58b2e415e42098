//! Versions and key exchanges that must fit each other.

use crate::diagnostic::Help;
use crate::model::{Group, Tls, TlsVersion};
use crate::read::Reader;

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
