//! Names that repeat, sites that could not answer, and HSTS beyond its rules.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::routes;
use super::served::{self, Groups};
use crate::diagnostic::Help;
use crate::located::Position;
use crate::model::{Config, Listener, Reach, Site};
use crate::read::Reader;
use crate::setting::ANY_NAME;

/// The list of sites built into browsers asks for at least a year (hstspreload.org).
const PRELOAD_AGE_MIN: Duration = Duration::from_hours(365 * 24);

/// Sites with one name that another is held against: of more it is not said with which it collides, and the first of them do.
const SAME_NAME_MAX: usize = 100;

/// Records every mistake between the settings of the sites.
pub(crate) fn check(config: &Config, reach: &Reach<'_>, reader: &mut Reader<'_>) {
    let serves = config.listeners.iter().any(Listener::serves);
    let mut https = config.listeners.iter().filter_map(Listener::https);
    let serves_all = https.any(|https| https.sites.is_empty());
    let in_plain: HashSet<usize> = config
        .listeners
        .iter()
        .filter(|it| it.http().is_some())
        .flat_map(|listener| reach.served(listener))
        .map(|(number, _)| number)
        .collect();
    let in_tunnels = reach.of_any(config.listeners.iter().filter(|it| it.tls().is_some()));
    let ends_tls = |number: usize, site: &Site| match serves_all
        && site.is_served()
        && !in_plain.contains(&number)
    {
        true => Some("an https listener"),
        false => in_tunnels.contains(&number).then_some("a tls listener"),
    };
    served::check_names(config, reach, reader);
    let groups = Groups::of(config, reach);
    if serves && config.sites.is_empty() && !reader.is_written("site") {
        let message = "no site is declared, so no request could be answered".to_owned();
        let help = "[[site]] with names = [\"example.org\"]";
        reader.report_missing(message, Help::write(help));
    }
    find_repeated_names(&config.sites, &groups, reader);
    find_second_default(&config.sites, &groups, reader);
    find_stores_of_one_name(config, reach, &groups, reader);
    for (index, site) in config.sites.iter().enumerate() {
        check_certificates(index, site, ends_tls(index, site), reader);
        if serves
            && !site.names_backend()
            && site.routes.is_empty()
            && !reader.is_written(&format!("site.{index}.route"))
        {
            let message = "the site has no route, so every request would be not found".to_owned();
            find_in_site(index, site, reader, message, "[[site.route]] with root = \"…\"");
        }
        routes::check(index, site, reader);
        check_hsts(index, site, reader);
        if serves && ends_tls(index, site).is_none() {
            check_without_tls(index, site, reader);
        }
    }
}

/// Two sites may have one name where no listener has both.
fn find_repeated_names(sites: &[Site], groups: &Groups, reader: &mut Reader<'_>) {
    let mut known: HashMap<&str, Vec<(usize, Position)>> = HashMap::new();
    let names = sites
        .iter()
        .enumerate()
        .flat_map(|(number, site)| site.names.iter().map(move |name| (number, name)));
    for (number, name) in names.filter(|(_, name)| name.value != ANY_NAME) {
        let earlier = known.entry(&name.value).or_default();
        let is_beside = |(other, _): &&(usize, Position)| !groups.are_apart(*other, number);
        if let Some((_, at)) = earlier.iter().take(SAME_NAME_MAX).find(is_beside) {
            let message =
                format!("the site on {} is named \"{name}\" already", reader.line(at.line));
            let help = "remove one of both, or name each on listeners of its own, by `sites`";
            reader.report_located(name, message, Help::act(help));
        } else {
            let store = earlier.iter().take(SAME_NAME_MAX).find_map(|(other, at)| {
                Some((*at, served::shared_store(sites.get(*other)?, sites.get(number)?)?))
            });
            if let Some((at, store)) = store {
                let message = format!(
                    "\"{name}\" is also a name of the site on {}, and both keep responses in the cache \"{store}\" by their URLs",
                    reader.line(at.line)
                );
                let help = "give the routes of one of both another [[cache]]";
                reader.report_located(name, message, Help::act(help));
            }
            earlier.push((number, name.at));
        }
    }
}

fn find_second_default(sites: &[Site], groups: &Groups, reader: &mut Reader<'_>) {
    let mut known: Vec<(usize, usize)> = Vec::new();
    for (index, site) in sites.iter().enumerate().filter(|(_, site)| site.is_default()) {
        let by_name = site.names.iter().find(|name| name.value == ANY_NAME);
        let setting = reader.place(&format!("site.{index}.default"));
        let setting_line = setting.as_ref().map(|place| reader.source().position(place.start).line);
        let line = by_name.map(|name| name.at.line).or(setting_line);
        let beside = known.iter().take(SAME_NAME_MAX).find(|it| !groups.are_apart(it.0, index));
        let Some((_, earlier)) = beside.copied() else {
            let others = known.iter().take(SAME_NAME_MAX).filter_map(|it| sites.get(it.0));
            let store = others.filter_map(|other| served::shared_store(other, site)).next();
            if let (Some(store), Some(name)) = (store, site.names.first()) {
                let message = format!(
                    "another default site keeps responses in the cache \"{store}\" too, by their URLs"
                );
                let help = "give the routes of one of both another [[cache]]";
                reader.report_located(name, message, Help::act(help));
            }
            known.extend(line.map(|line| (index, line)));
            continue;
        };
        let message =
            format!("{} makes another site the default; only one can be", reader.line(earlier));
        match (by_name, setting) {
            (Some(name), _) => {
                reader.report_located(name, message, Help::act("write the names of this site"));
            }
            (None, Some(place)) => reader.report_at(&place, message, Help::write("false")),
            (None, None) => {}
        }
    }
}

/// Two sites keep no responses in one store where both may answer for one name, each on listeners of its own: by regular
/// expressions, or because they are asked for any name.
fn find_stores_of_one_name(
    config: &Config,
    reach: &Reach<'_>,
    groups: &Groups,
    reader: &mut Reader<'_>,
) {
    let defaults: HashSet<usize> = config
        .listeners
        .iter()
        .filter_map(|listener| reach.default_site(listener))
        .map(|(number, _)| number)
        .collect();
    let is_exact = |site: &Site, name: &str| {
        !name.contains('*') && name != ANY_NAME && site.pattern(name).is_none()
    };
    let (mut by_pattern, mut for_any): (Vec<usize>, Vec<usize>) = Default::default();
    for (number, site) in config.sites.iter().enumerate() {
        let has_pattern = !site.patterns.is_empty();
        // With a name of its own a site passes no other one on.
        let is_for_any = defaults.contains(&number)
            && !site.names.iter().any(|name| is_exact(site, &name.value));
        for (is_one, known) in [(has_pattern, &mut by_pattern), (is_for_any, &mut for_any)] {
            if !is_one {
                continue;
            }
            let others = known.iter().take(SAME_NAME_MAX);
            let met = others.filter(|other| !groups.are_alike(**other, number));
            let store = met
                .filter_map(|other| config.sites.get(*other))
                .find_map(|other| Some((other, served::shared_store(other, site)?)));
            known.push(number);
            if let (Some((other, store)), Some(name)) = (store, site.names.first()) {
                let other = other.names.first().map_or(0, |name| name.at.line);
                let message = format!(
                    "the site on {} may answer for the same names on another listener, and both keep responses in the cache \"{store}\" by \
                     their URLs",
                    reader.line(other)
                );
                let help = "give the routes of one of both another [[cache]]";
                reader.report_located(name, message, Help::act(help));
                break;
            }
        }
    }
}

fn check_certificates(
    index: usize,
    site: &Site,
    who_shows_it: Option<&str>,
    reader: &mut Reader<'_>,
) {
    let has_certificates = reader.is_written(&format!("site.{index}.certificate"));
    if site.self_signed
        && has_certificates
        && let Some(place) = reader.place(&format!("site.{index}.self_signed"))
    {
        let message = "the site has a certificate, so none is generated".to_owned();
        reader.report_at(&place, message, Help::write("false"));
    }
    let is_fetched = reader.is_written(&format!("site.{index}.acme"));
    let has_any = site.self_signed || has_certificates || is_fetched;
    if let Some(listener) = who_shows_it.filter(|_| !has_any) {
        let message = format!("the site has no certificate and there is {listener}");
        let help = "[site.acme], which fetches one, [[site.certificate]] with chain = \"…\" and key = \"…\", \
                       or self_signed = true for tests";
        find_in_site(index, site, reader, message, help);
    }
    let mut chains: HashMap<&std::path::Path, usize> = HashMap::new();
    for certificate in site.certificates.iter().filter(|one| one.chain.at.is_written()) {
        let chain = &certificate.chain;
        if let Some(line) = chains.insert(&chain.value, chain.at.line) {
            let message = format!("{} names this chain already", reader.line(line));
            let help = Help::act("remove one of both certificates");
            reader.report_located(chain, message, help);
        }
    }
}

/// Refuses what only clients that speak TLS can be asked or told.
fn check_without_tls(index: usize, site: &Site, reader: &mut Reader<'_>) {
    let has_one = |name: &str| reader.is_written(&format!("site.{index}.{name}"));
    if !site.is_served() || has_one("certificate") || has_one("acme") {
        return;
    }
    for name in ["client_auth", "hsts"] {
        let place = reader.place(&format!("site.{index}.{name}"));
        if let Some(place) = place.filter(|_| !site.self_signed) {
            let message = format!("the site has no certificate, so `{name}` is for nobody");
            let help = "give it a [[site.certificate]], or remove this";
            reader.report_at(&place, message, Help::act(help));
        }
    }
}

fn check_hsts(index: usize, site: &Site, reader: &mut Reader<'_>) {
    let Some(hsts) = &site.hsts else {
        return;
    };
    let trail = format!("site.{index}.hsts");
    if hsts.preload
        && let Some(place) = reader.place(&format!("{trail}.preload"))
    {
        if !hsts.include_subdomains {
            let message = "preload needs include_subdomains as well".to_owned();
            let help = "write include_subdomains = true in this table, or preload = false";
            reader.report_at(&place, message, Help::act(help));
        }
        if hsts.max_age < PRELOAD_AGE_MIN {
            let message = "preload needs a max_age of at least a year".to_owned();
            let help = "write max_age = \"365d\" in this table, or preload = false";
            reader.report_at(&place, message, Help::act(help));
        }
    }
    let by_hand = |name: &str| name.eq_ignore_ascii_case("strict-transport-security");
    let headers = site.headers.iter().chain(site.routes.iter().flat_map(|route| &route.headers));
    if headers.into_iter().any(|(name, values)| by_hand(name) && !values.is_empty())
        && let Some(place) = reader.place(&trail)
    {
        let message = "Strict-Transport-Security is among the headers as well".to_owned();
        reader.report_at(&place, message, Help::act("remove it from the headers"));
    }
}

/// Records a mistake of a site as a whole at its first name, or where the site begins.
fn find_in_site(index: usize, site: &Site, reader: &mut Reader<'_>, message: String, help: &str) {
    let help = Help::write(help);
    match (site.names.first(), reader.place(&format!("site.{index}"))) {
        (Some(name), _) => reader.report_located(name, message, help),
        (None, Some(place)) => reader.report_at(&place, message, help),
        (None, None) => {}
    }
}
