//! Services that take clients over from another by the name that they ask for: `sni = SERVICE:PATTERN`.

use super::file::StunnelOption;
use super::service::Both;

/// A service that is reached by names, through another one's port.
pub(super) struct Taker<'s> {
    pub(super) service: Both<'s>,
    /// As a site has them.
    pub(super) names: Vec<String>,
}

/// Finds the services that take clients over from `service`: nothing where it takes some over itself.
///
/// # Errors
/// The option because of which its clients would not be asked for what those services ask of them, and why.
pub(super) fn takers<'s>(
    service: &Both<'s>,
    all: &[Both<'s>],
) -> Result<Option<Vec<Taker<'s>>>, (&'s StunnelOption, &'static str)> {
    if let Some((option, primary, _)) = patterns(service).next() {
        let is_there = all.iter().any(|it| it.own.name == primary && patterns(it).next().is_none());
        return if is_there { Ok(None) } else { Err((option, NO_PRIMARY)) };
    }
    let mut takers: Vec<Taker<'s>> = Vec::new();
    for other in all {
        let from = |(_, primary, _): &(_, &str, _)| *primary == service.own.name;
        let Some((option, ..)) = patterns(other).find(from) else { continue };
        let is_alone =
            all.iter().flat_map(patterns).all(|(_, primary, _)| primary == service.own.name);
        let offers = other.own.options.iter().find(|it| OFFERS.contains(&it.term.name));
        let why = if other.why_left_out().is_some() {
            LEFT_OUT
        } else if offers.is_some() {
            "versions, suites and the dialogue are the listener's: write the service an address of its own"
        } else if !is_alone {
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
            let mut taken = takers.iter().flat_map(|it| &it.names);
            if taken.any(|it| covers(it, &name) || covers(&name, it)) {
                return Err((option, "another service has this name: each name leads to one site"));
            }
            names.push(name);
        }
        takers.push(Taker { service: *other, names });
    }
    Ok(Some(takers))
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

fn covers(one: &str, other: &str) -> bool {
    one == other || one.strip_prefix("**").is_some_and(|end| other.ends_with(end))
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
