//! Sockets that whoever started this process listens on already, such as systemd for a socket unit.

use std::sync::Arc;

use kettle_config::{Config, Diagnostic, ListenAddress};
use kettle_kernel::socket::inherited::{self, BoundTo, Inherited};

use super::{BoundAddress, Held};

/// All of them. Before anybody else could take their descriptors for others.
///
/// # Errors
/// That one is nothing to accept from.
pub fn inherited(config: &Config) -> Result<Vec<Inherited>, Vec<Diagnostic>> {
    inherited::take().map_err(|error| {
        let message = format!("a socket that this process was started with is of no use: {error}");
        let help = "with systemd, let `ListenStream=` alone name what listeners have as `address`";
        vec![Diagnostic::without_place(&config.path, message, Some(help.to_owned()))]
    })
}

/// As if they were held already by the addresses that they are bound to.
pub(super) fn held(inherited: Vec<Inherited>, workers: usize) -> Vec<BoundAddress> {
    let held = inherited.into_iter().map(|taken| {
        let address = match taken.address {
            BoundTo::Ip(address) => ListenAddress::Socket(address),
            BoundTo::Unix(path) => ListenAddress::Unix(path.components().collect()),
        };
        let socket = Arc::new(taken.socket);
        BoundAddress {
            configured: address.clone(),
            actual: address,
            sockets: vec![socket; workers],
            held: Held::Inherited,
        }
    });
    held.collect()
}

/// Those that no listener has: their clients would wait for ever.
pub(super) fn left_over<'b>(
    config: &'b Config,
    held: &'b [BoundAddress],
) -> impl Iterator<Item = Diagnostic> + 'b {
    let is_named = |address: &ListenAddress| {
        config.listeners.iter().any(|listener| listener.address.value == *address)
    };
    let inherited = held.iter().filter(|held| matches!(held.held, Held::Inherited));
    inherited.filter(move |held| !is_named(&held.configured)).map(|held| {
        let address = &held.configured;
        let message =
            format!("kettle was started with a socket for {address}, which no listener has");
        let help = format!(
            "write a [[listener]] with address = \"{address}\", or take it out of the socket unit"
        );
        Diagnostic::without_place(&config.path, message, Some(help))
    })
}
