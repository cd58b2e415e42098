//! Clients by their network: the longest prefix that holds an address decides.

use kettle_config::{Network, Route};
use kettle_runtime::client_address::ClientHost;

/// The networks of a route.
#[derive(Debug)]
pub(super) struct Networks {
    allow: Vec<Network>,
    deny: Vec<Network>,
}

impl Networks {
    pub(super) fn of(route: &Route) -> Option<Self> {
        let allow = route.allow.clone();
        let deny = route.deny.clone();
        (!allow.is_empty() || !deny.is_empty()).then_some(Self { allow, deny })
    }

    /// True if this client may ask. Without an address it is in no network.
    pub(super) fn allow(&self, client: ClientHost) -> bool {
        match (longest(&self.allow, client), longest(&self.deny, client)) {
            (None, None) => self.allow.is_empty(),
            (allow, deny) => allow > deny,
        }
    }
}

/// The prefix of the narrowest network with this address.
fn longest(networks: &[Network], client: ClientHost) -> Option<u8> {
    let client = client.ip()?;
    let holding = networks.iter().filter(|network| network.contains(client));
    holding.map(Network::prefix_bits).max()
}

#[cfg(test)]
mod tests;
