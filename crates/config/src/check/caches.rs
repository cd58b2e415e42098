//! Stores that no route has or two have the folder of, and routes whose store nobody declared.

use crate::diagnostic::Help;
use crate::model::{Cache, Config, RouteCache};
use crate::nearest::closest;
use crate::read::Reader;
use crate::setting::is_own_request_header;

/// Records every mistake between stores and the routes that name them.
pub(crate) fn check(config: &Config, reader: &mut Reader<'_>) {
    for (index, cache) in config.caches.iter().enumerate() {
        check_unlike(index, cache, config, reader);
        if cache.max_object > cache.size
            && let Some(place) = reader.place(&format!("cache.{index}.max_object"))
        {
            let message = "`max_object` must not be larger than the `size` of the whole".to_owned();
            reader.report_at(&place, message, Help::act("write a smaller one, or a larger `size`"));
        }
    }
    let routes = config.sites.iter().enumerate().flat_map(|(site, it)| {
        let trail = move |route| format!("site.{site}.route.{route}.cache");
        it.routes.iter().enumerate().map(move |(number, route)| (trail(number), route))
    });
    for (trail, route) in routes {
        let Some(cache) = &route.cache else { continue };
        if route.backend.is_none()
            && let Some(place) = reader.place(&trail)
        {
            let message = "only responses of a backend are kept, and the route has none".to_owned();
            reader.report_at(&place, message, Help::act("remove it: files need no cache"));
        }
        check_vary(&trail, cache, config, reader);
        let store = &cache.store;
        if config.caches.iter().any(|it| it.name == *store) || !store.at.is_written() {
            continue;
        }
        let known: Vec<&str> = config.caches.iter().map(|it| it.name.value.as_str()).collect();
        let help = match closest(store, &known) {
            Some(closest) => Help::write(format!("\"{closest}\"")),
            None => Help::act(format!("add [[cache]] with name = \"{store}\"")),
        };
        reader.report_located(store, format!("no [[cache]] is named \"{store}\""), help);
    }
}

/// A response can differ only by what its server sees, and by what stands for the same in all requests for it.
fn check_vary(trail: &str, cache: &RouteCache, config: &Config, reader: &mut Reader<'_>) {
    let names_clients = |name: &str| {
        let mut listeners = config.listeners.iter().filter(|it| !it.trusted_proxies.is_empty());
        listeners.any(|it| it.client_ip_header.eq_ignore_ascii_case(name))
    };
    let Some(place) = reader.place(&format!("{trail}.vary")) else { return };
    for name in &cache.vary {
        let lower = name.to_ascii_lowercase();
        let message = if is_own_request_header(&lower)
            || OF_PROXIES.contains(&&*lower)
            || lower.contains(|it: char| !it.is_ascii_alphanumeric() && it != '-')
            || lower.starts_with("x-forwarded-")
            || names_clients(&lower)
        {
            format!("no server sees the `{name}` of a client, so no response differs by it")
        } else if lower == "range" || lower.starts_with("if-") {
            format!("`{name}` is answered from what is kept, which is always the whole")
        } else {
            continue;
        };
        reader.report_at(&place, message, Help::act(format!("remove \"{name}\"")));
    }
}

fn check_unlike(index: usize, cache: &Cache, config: &Config, reader: &mut Reader<'_>) {
    let earlier = config.caches.get(..index).unwrap_or_default();
    if cache.name.at.is_written() && earlier.iter().any(|it| it.name == cache.name) {
        let message = format!("another [[cache]] is named \"{}\"", cache.name);
        reader.report_located(&cache.name, message, Help::act("give it another name"));
    }
    let same = |other: &Cache| {
        let (own, other) = (&cache.directory.value, &other.directory.value);
        own.starts_with(other) || other.starts_with(own)
    };
    if cache.directory.at.is_written()
        && let Some(other) = earlier.iter().find(|other| same(other))
    {
        let message = format!("the [[cache]] \"{}\" has this folder", other.name);
        let place = format!("cache.{index}.directory");
        if let Some(place) = reader.place(&place) {
            reader.report_at(&place, message, Help::act("give each a folder of its own"));
        }
    }
}

/// What only a proxy can know of a client, or is part of what responses are kept by anyway.
const OF_PROXIES: &[&str] =
    &["client-cert", "client-cert-chain", "early-data", "forwarded", "host", "x-real-ip"];
