//! Sites that show the same certificates, or ask clients for the same ones.

use std::collections::HashMap;
use std::hash::Hash;

use kettle_config::Config;

/// Sites that show the same certificates, and that ask clients for the same ones, by what is in their files: for each site the number
/// of the first that is its like, if it has any.
#[derive(Clone, Debug, Default)]
pub struct AlikeSites {
    /// By what they show.
    pub certificates: Vec<Option<usize>>,
    /// By what they ask for.
    pub client_auth: Vec<Option<usize>>,
}

/// For each site that asks clients for certificates, the first site that asks for the same.
pub fn client_auth_groups(config: &Config) -> Vec<Option<usize>> {
    first_alike(config.sites.iter().map(|site| Some(site.client_auth.as_ref()?.key())))
}

/// For each site that has certificates, the first site that shows the same. All that have a generated one share it, so they are those
/// without a chain.
pub(super) fn certificate_groups(config: &Config) -> Vec<Option<usize>> {
    first_alike(config.sites.iter().map(|site| {
        let chains: Vec<_> = site.certificates.iter().map(|it| &it.chain.value).collect();
        (site.self_signed || !chains.is_empty()).then_some(chains)
    }))
}

/// For each that has a key, the number of the first with the same. There may be ten thousand.
pub fn first_alike<K: Eq + Hash>(keys: impl Iterator<Item = Option<K>>) -> Vec<Option<usize>> {
    let mut first = HashMap::new();
    keys.enumerate().map(|(number, key)| Some(*first.entry(key?).or_insert(number))).collect()
}
