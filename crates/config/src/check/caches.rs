//! Stores that no route has or two have the folder of, and routes whose store nobody declared.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::names::{Names, find_repeated};
use crate::diagnostic::Help;
use crate::model::{Cache, Config, RouteCache};
use crate::read::Reader;
use crate::setting::is_own_request_header;

/// Records every mistake between stores and the routes that name them.
pub(crate) fn check(config: &Config, reader: &mut Reader<'_>) {
    find_repeated(config.caches.iter().map(|cache| &cache.name), "cache", reader);
    check_folders(&config.caches, reader);
    for (index, cache) in config.caches.iter().enumerate() {
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
    let mut names = Names::of("cache", config.caches.iter().map(|cache| &cache.name));
    let believing = config.listeners.iter().filter(|it| !it.trusted_proxies.is_empty());
    let of_clients: HashSet<String> =
        believing.map(|it| it.client_ip_header.to_ascii_lowercase()).collect();
    for (trail, route) in routes {
        let Some(cache) = &route.cache else { continue };
        if route.backend.is_none()
            && let Some(place) = reader.place(&trail)
        {
            let message = "only responses of a backend are kept, and the route has none".to_owned();
            reader.report_at(&place, message, Help::act("remove it: files need no cache"));
        }
        check_vary(&trail, cache, &of_clients, reader);
        names.check(&cache.store, reader);
    }
}

/// A response can differ only by what its server sees, and by what stands for the same in all requests for it.
fn check_vary(
    trail: &str,
    cache: &RouteCache,
    of_clients: &HashSet<String>,
    reader: &mut Reader<'_>,
) {
    let Some(place) = reader.place(&format!("{trail}.vary")) else { return };
    for name in &cache.vary {
        let lower = name.to_ascii_lowercase();
        let message = if is_own_request_header(&lower)
            || is_of_proxies(&lower)
            || of_clients.contains(&lower)
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

/// No folder is another's, nor lies in it.
fn check_folders(caches: &[Cache], reader: &mut Reader<'_>) {
    let mut folders: HashMap<&Path, usize> = HashMap::new();
    // The uses of each folder, and the first of them.
    let mut above: HashMap<&Path, usize> = HashMap::new();
    for (index, cache) in caches.iter().enumerate() {
        let own = cache.directory.value.as_path();
        let outer = own.ancestors().filter_map(|folder| folders.get(folder));
        let first = outer.chain(above.get(own)).min().and_then(|number| caches.get(*number));
        if cache.directory.at.is_written()
            && let Some(other) = first
            && let Some(place) = reader.place(&format!("cache.{index}.directory"))
        {
            let message = format!("the [[cache]] \"{}\" has this folder", other.name);
            reader.report_at(&place, message, Help::act("give each a folder of its own"));
        }
        folders.entry(own).or_insert(index);
        for folder in own.ancestors() {
            above.entry(folder).or_insert(index);
        }
    }
}

/// True if no server gets a client's header of this name, in lower case.
pub(super) fn is_of_proxies(name: &str) -> bool {
    OF_PROXIES.contains(&name)
        || name.contains(|it: char| !it.is_ascii_alphanumeric() && it != '-')
        || name.starts_with("x-forwarded-")
}

/// Fields that only a proxy can know of a client, or that are part of what responses are kept by anyway.
const OF_PROXIES: &[&str] =
    &["client-cert", "client-cert-chain", "early-data", "forwarded", "host", "x-real-ip"];
