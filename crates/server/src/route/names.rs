//! Names of sites, as requests and connections ask for them.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use kettle_config::{ANY_NAME, Site};
use kettle_tls::names::NAME_BYTES_MAX;

use crate::proxy::asked_name;

/// The sites that have names, by these. Trees: to compare a few names costs less than a keyed hash of one.
#[derive(Debug, Default)]
pub(super) struct SiteNames {
    /// By whole name, in lower case.
    exact: BTreeMap<Box<[u8]>, usize>,
    /// By what follows the star of `*.example.org`, in lower case.
    below: BTreeMap<Box<[u8]>, usize>,
}

/// The site that has a name.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub(super) site: usize,
    /// True if it has exactly this name, and not one with a star.
    pub(super) is_exact: bool,
}

impl SiteNames {
    /// Those of these sites. A name that an earlier one has stays with it.
    pub(super) fn of<'s>(sites: impl Iterator<Item = (usize, &'s Site)>) -> Self {
        let mut names = Self::default();
        for (number, site) in sites {
            for name in &site.names {
                let name = asked_name(&name.value);
                if name == ANY_NAME {
                    continue;
                }
                if let Some(below) = name.strip_prefix('*') {
                    names.below.entry(below.as_bytes().into()).or_insert(number);
                } else {
                    names.exact.entry(name.into_bytes().into()).or_insert(number);
                }
            }
        }
        names
    }

    /// The site that has this name, or else one with a star that stands for it.
    pub(super) fn find(&self, name: &[u8]) -> Option<Named> {
        let address = one_spelling(name);
        let name = address.as_deref().map_or(name, str::as_bytes);
        let name = name.strip_suffix(b".").unwrap_or(name);
        // No site has a longer name.
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        if let Some(site) = self.exact.get(&*lower) {
            return Some(Named { site: *site, is_exact: true });
        }
        let dot = lower.iter().position(|byte| *byte == b'.')?;
        let site = self.below.get(lower.get(dot..)?)?;
        Some(Named { site: *site, is_exact: false })
    }
}

/// An IPv6 address in brackets, as [`asked_name`] spells it; `None` for everything else.
fn one_spelling(host: &[u8]) -> Option<String> {
    let address = host.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let address = std::str::from_utf8(address).ok()?.parse::<Ipv6Addr>().ok()?;
    Some(format!("[{address}]"))
}
