//! Services that take clients over from another by the name that they ask for: `sni = SERVICE:PATTERN`.

use std::collections::{HashMap, HashSet};

use super::file::StunnelOption;
use super::service::Both;

/// A service that is reached by names, through another one's port.
pub(super) struct Taker<'s> {
    pub(super) service: Both<'s>,
    /// As a site has them.
    pub(super) names: Vec<String>,
}

/// The services that take clients over, by those from which they do, and the others. There may be a hundred thousand.
pub(super) struct AllTakers<'s> {
    primaries: HashSet<&'s str>,
    by_primary: HashMap<&'s str, Vec<Both<'s>>>,
}

impl<'s> AllTakers<'s> {
    /// Those among all services.
    pub(super) fn of(all: &[Both<'s>]) -> Self {
        let mut found = Self { primaries: HashSet::new(), by_primary: HashMap::new() };
        for service in all {
            let own: HashSet<&str> = patterns(service).map(|(_, primary, _)| primary).collect();
            if own.is_empty() {
                found.primaries.insert(&service.own.name);
            }
            own.into_iter().for_each(|it| found.by_primary.entry(it).or_default().push(*service));
        }
        found
    }

    /// Finds the services that take clients over from `service`: nothing where it takes some over itself.
    ///
    /// # Errors
    /// The option because of which its clients would not be asked for what those services ask of them, and why.
    pub(super) fn takers(
        &self,
        service: &Both<'s>,
    ) -> Result<Option<Vec<Taker<'s>>>, (&'s StunnelOption, &'static str)> {
        if let Some((option, primary, _)) = patterns(service).next() {
            let is_there = self.primaries.contains(primary);
            return if is_there { Ok(None) } else { Err((option, NO_PRIMARY)) };
        }
        let name = service.own.name.as_str();
        let mut takers: Vec<Taker<'s>> = Vec::new();
        let mut taken = TakenNames::default();
        for other in self.by_primary.get(name).into_iter().flatten() {
            let Some((option, ..)) = patterns(other).find(|(_, it, _)| *it == name) else {
                continue;
            };
            let offers = other.own.options.iter().find(|it| OFFERS.contains(&it.term.name));
            let why = if other.why_left_out().is_some() {
                LEFT_OUT
            } else if offers.is_some() {
                "versions, suites and the dialogue are the listener's: write the service an address of its own"
            } else if self.by_primary.len() > 1 {
                "a file has one default site: write a file for each service that others take clients from"
            } else {
                ""
            };
            if !why.is_empty() {
                return Err((option, why));
            }
            let mut names = Vec::new();
            for (option, _, pattern) in patterns(other) {
                let name =
                    site_name(pattern).ok_or((option, "a name is exact, or begins with `*.`"))?;
                // Of several that fit, stunnel takes the first one, kettle the longest.
                if taken.have(&name) {
                    return Err((
                        option,
                        "another service has this name: each name leads to one site",
                    ));
                }
                names.push(name);
            }
            names.iter().for_each(|name| taken.add(name));
            takers.push(Taker { service: *other, names });
        }
        Ok(Some(takers))
    }
}

/// The names that services have, and how they end behind each of their labels.
#[derive(Default)]
struct TakenNames {
    names: HashSet<String>,
    ends: HashSet<String>,
}

impl TakenNames {
    fn add(&mut self, name: &str) {
        self.names.insert(name.to_owned());
        self.ends.extend(ends(name).map(str::to_owned));
    }

    /// True if a name is one of them, or is covered by one of them, or covers one.
    fn have(&self, name: &str) -> bool {
        let is_covered = || ends(name).any(|end| self.names.contains(&format!("**{end}")));
        let covers = || name.strip_prefix("**").is_some_and(|end| self.ends.contains(end));
        self.names.contains(name) || is_covered() || covers()
    }
}

/// The options by which a service takes clients over, each with the service and the pattern. A client's `sni` is a host.
fn patterns<'s>(
    service: &Both<'s>,
) -> impl Iterator<Item = (&'s StunnelOption, &'s str, &'s str)> + use<'s> {
    let options = if service.is_on("client") { Vec::new() } else { service.all("sni") };
    options.into_iter().map(|option| {
        let (primary, pattern) = option.value.split_once(':').unwrap_or((&option.value, ""));
        (option, primary.trim(), pattern.trim())
    })
}

/// The name of a site that has the clients of a pattern, whose star stands for any number of labels.
fn site_name(pattern: &str) -> Option<String> {
    let (stars, host) = pattern.strip_prefix("*.").map_or(("", pattern), |host| ("**.", host));
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-.".contains(it);
    let is_host = !host.is_empty() && host.chars().all(is_plain);
    is_host.then(|| format!("{stars}{}", host.to_ascii_lowercase()))
}

fn ends(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('.').filter_map(|(at, _)| name.get(at..))
}

/// The options that a listener has for all its sites.
const OFFERS: [&str; 8] = [
    "sslVersion",
    "sslVersionMin",
    "sslVersionMax",
    "ciphers",
    "ciphersuites",
    "curves",
    "options",
    "protocol",
];
const NO_PRIMARY: &str = "no service of this name accepts clients: write sni = SERVICE:NAME";
const LEFT_OUT: &str = "its clients would not be asked for what that service asks of them";
