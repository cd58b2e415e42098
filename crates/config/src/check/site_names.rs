//! Names of sites that are regular expressions, and the site that a listener makes its default one.

use std::collections::HashSet;

use super::served;
use crate::diagnostic::Help;
use crate::located::Located;
use crate::model::{Config, Listener, Reach, Site};
use crate::read::Reader;
use crate::setting::{ANY_NAME, NamePattern, PATTERN_BYTES_OF_SITE_MAX, are_patterns_small_enough};

/// Records every mistake of them.
pub(super) fn check(config: &Config, reach: &Reach<'_>, reader: &mut Reader<'_>) {
    let mut known: HashSet<&str> = HashSet::new();
    for listener in &config.listeners {
        check_default(listener, reach, reader);
        // Those of one kind that name no sites have the same, or none.
        if served::names_sites(listener) || known.insert(listener.kind.as_str()) {
            check_crowd(listener, reach, reader);
        }
    }
    for site in &config.sites {
        let first = site.names.iter().find(|name| NamePattern::is_one(name));
        if let Some(first) = first
            && !are_patterns_small_enough(site.patterns.values())
        {
            let kib = PATTERN_BYTES_OF_SITE_MAX / 1_024;
            let message =
                format!("the regular expressions of this site take more than {kib} KiB together");
            let help = "write them shorter, or give some of them to another site";
            reader.report_located(first, message, Help::act(help));
        }
    }
}

/// A default site is one of those that the listener has, and there is one.
fn check_default(listener: &Listener, reach: &Reach<'_>, reader: &mut Reader<'_>) {
    let (sites, Some(default)) = listener.named_sites() else { return };
    let has = |site: &Site| site.is_named(default);
    let is_reached = match listener.serves() {
        true => reach.served(listener).iter().any(|(_, site)| has(site)),
        false => reach.sites(listener).any(|(_, site)| has(site)),
    };
    if !is_reached {
        let message = format!("no site named \"{default}\" is reached at this listener");
        let help = match sites.is_empty() {
            true => "write the name of a site that is",
            false => "write the name of one of `sites`, or write it there as well",
        };
        return reader.report_located(default, message, Help::act(help));
    }
    let is_any = |name: &&Located<String>| name.value == ANY_NAME;
    let other = reach.all_named(ANY_NAME).find(|site| !has(site));
    if let (Some(any), Some(_)) = (sites.iter().find(is_any), other) {
        let message = "\"_\" names the default site, and `default_site` is another".to_owned();
        reader.report_located(any, message, Help::act("remove one of both"));
    }
}

/// Each is asked after the other, for names that no site has in full or by a star.
fn check_crowd(listener: &Listener, reach: &Reach<'_>, reader: &mut Reader<'_>) {
    let served = reach.served(listener).into_iter();
    let sites = served.chain(reach.sites(listener)).map(|(_, site)| site);
    let names = sites.flat_map(|site| &site.names).filter(|name| NamePattern::is_one(name));
    let names: Vec<_> = names.collect();
    if let Some(first_beyond) = names.get(PATTERNS_MAX) {
        let message = format!(
            "a name may have to be held against {} regular expressions at one listener, one by one",
            names.len()
        );
        let help = format!("write at most {PATTERNS_MAX} for the sites of a listener");
        reader.report_located(first_beyond, message, Help::act(help));
    }
}

/// Names of one listener that are regular expressions.
const PATTERNS_MAX: usize = 1_000;
