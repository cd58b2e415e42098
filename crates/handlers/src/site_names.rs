//! Names of sites, as requests and connections ask for them.

use kettle_config::Site;
use kettle_tls::names::Names;

/// The table of these sites, by which both SNI and `Host` are looked up. A name that an earlier one has stays with it.
pub fn site_names<'s>(sites: impl Iterator<Item = (usize, &'s Site)>) -> Names<usize> {
    let mut names = Names::default();
    for (number, site) in sites {
        add_names(&mut names, site, &number);
    }
    names
}

/// Adds all names of a site.
pub fn add_names<T: Clone>(names: &mut Names<T>, site: &Site, value: &T) {
    for name in &site.names {
        let value = value.clone();
        match (site.pattern(name), name.strip_suffix(".*")) {
            (Some(pattern), _) => names.add_pattern(pattern.regex(), value),
            (None, Some(beginning)) => names.add_beginning(beginning, value),
            (None, None) => names.add(name, value),
        }
    }
}
