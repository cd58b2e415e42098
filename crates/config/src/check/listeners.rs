//! Addresses that collide.

use std::net::SocketAddr;

use crate::diagnostic::Help;
use crate::model::{Config, Listener};
use crate::read::Reader;

/// The advice about an address that is taken.
const REMOVE_OR_MOVE: &str = "remove one of both, or write another port";

/// Records missing and repeated listeners.
pub(crate) fn check(config: &Config, reader: &mut Reader<'_>) {
    if config.listeners.is_empty() && !reader.is_written("listener") {
        let message = "no listener is declared, so nothing could connect".to_owned();
        let help = "[[listener]] with address = \"0.0.0.0:443\"";
        reader.report_missing(message, Help::write(help));
    }
    let written = config.listeners.iter().filter(|listener| listener.address.at.is_written());
    let mut earlier: Vec<&Listener> = Vec::new();
    for listener in written {
        let address = &listener.address;
        match earlier.iter().find(|other| collide(other.address.value, address.value)) {
            Some(other) => {
                let line = reader.line(other.address.at.line);
                let message = format!("{line} listens on {} already", other.address);
                reader.report_located(address, message, Help::act(REMOVE_OR_MOVE));
            }
            None => earlier.push(listener),
        }
    }
    check_metrics(config, reader);
}

fn check_metrics(config: &Config, reader: &mut Reader<'_>) {
    let (Some(listen), Some(place)) = (config.metrics.listen, reader.place("metrics.listen"))
    else {
        return;
    };
    if !listen.ip().is_loopback() && !config.metrics.allow_remote {
        let message = format!(
            "other machines could read the metrics on {listen}; \
             set allow_remote = true if they should"
        );
        let help = format!("\"127.0.0.1:{}\"", listen.port());
        reader.report_at(&place, message, Help::write(help));
    }
    let mut listeners = config.listeners.iter();
    if let Some(other) = listeners.find(|other| collide(other.address.value, listen)) {
        let line = reader.line(other.address.at.line);
        let message = format!("{line} listens on {} already", other.address);
        reader.report_at(&place, message, Help::act(REMOVE_OR_MOVE));
    }
}

/// Whether only one of two addresses can be listened on: they are the same, or one is the other's port on all addresses of the
/// machine. IPv6 sockets take IPv6 only.
#[must_use]
pub fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port()
        && one.is_ipv4() == other.is_ipv4()
        && (one == other || one.ip().is_unspecified() || other.ip().is_unspecified())
}
