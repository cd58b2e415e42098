//! Routes that pass requests to a backend: settings that are about files, and backends that do not speak HTTP.

mod answers;

use std::collections::HashSet;

use crate::diagnostic::Help;
use crate::model::{
    Backend, BackendChoices, Config, FieldTemplate, Missing, Route, SendProxy, StartTls,
};
use crate::read::Reader;
use crate::setting::is_own_request_header;

/// Records every mistake of routes and the backends that they name.
pub(crate) fn check(config: &Config, reader: &mut Reader<'_>) {
    let choices = BackendChoices::of(config);
    let routes = config.sites.iter().enumerate().flat_map(|(site, it)| {
        let trail = move |route| format!("site.{site}.route.{route}");
        it.routes.iter().enumerate().map(move |(number, route)| (trail(number), route))
    });
    for (trail, route) in routes {
        check_settings(&trail, route, runs_programs(config, route, &choices), reader);
        check_prefix(&trail, route, reader);
        check_headers(&trail, route, reader);
        check_kept(&trail, route, reader);
        answers::check(&trail, route, reader);
    }
    let named = config.sites.iter().flat_map(|site| &site.routes);
    let named: HashSet<&str> = named
        .flat_map(Route::backends)
        .map(|it| it.value.as_str())
        .chain(choices.chosen())
        .collect();
    for (index, backend) in config.backends.iter().enumerate() {
        if named.contains(backend.name.value.as_str()) {
            check_backend(&format!("backend.{index}"), backend, reader);
        }
    }
}

/// True if the backend of a route speaks FastCGI.
fn runs_programs(config: &Config, route: &Route, choices: &BackendChoices<'_>) -> bool {
    // All of one map speak the same.
    let own = choices.backends(route).next();
    let named = |it: &&Backend| Some(it.name.value.as_str()) == own;
    let backend = config.backends.iter().find(named).filter(|_| route.root.is_some());
    backend.is_some_and(|backend| backend.protocol.runs_programs())
}

/// A route has files or a backend, and the settings of one of both; and what is about another setting needs that.
fn check_settings(trail: &str, route: &Route, runs_programs: bool, reader: &mut Reader<'_>) {
    let has_both = route.missing == Missing::Backend
        || (route.fastcgi.is_some() || runs_programs) && route.root.is_some();
    let (others, what) = match route.backend {
        Some(_) if has_both => (&[][..], ""),
        Some(_) => (FILES, "is about files, and the route has a backend"),
        None => (REQUESTS, "is about requests to a backend, and the route has none"),
    };
    if route.missing == Missing::Backend
        && (route.backend.is_none() || !reader.is_written(&format!("{trail}.root")))
        && let Some(place) = reader.place(&format!("{trail}.missing"))
    {
        let message = "files that are missing are asked of `backend`, so `root` and `backend` stand here both".to_owned();
        reader.report_at(&place, message, Help::act("write them, or remove this"));
    }
    for name in others {
        if let Some(place) = reader.place(&format!("{trail}.{name}")) {
            let message = format!("`{name}` {what}");
            reader.report_at(&place, message, Help::act("remove it"));
        }
    }
    // Of a route with a backend all that is about files was said.
    let is_said = |whole: &str| whole == "fallback" && route.backend.is_some();
    for (whole, parts) in PARTS {
        let has_none = !is_said(whole) && !reader.is_written(&format!("{trail}.{whole}"));
        for name in parts.iter().filter(|_| has_none) {
            if let Some(place) = reader.place(&format!("{trail}.{name}")) {
                let message = format!("`{name}` is about `{whole}`, and the route has none");
                let help = format!("write `{whole}` as well, or remove it");
                reader.report_at(&place, message, Help::act(help));
            }
        }
    }
}

/// Servers may read a path without its parameters, or with slashes for encoded ones, and only one that is of the same route then
/// is passed on.
fn check_prefix(trail: &str, route: &Route, reader: &mut Reader<'_>) {
    let text = route.place().map_or("", |place| place.text());
    let read_otherwise = [";", "%2F"].into_iter().find(|mark| text.contains(mark));
    let mut settings = ["prefix", "text_prefix", "exact"].into_iter();
    if route.backend.is_some()
        && let Some(mark) = read_otherwise
        && let Some(place) = settings.find_map(|name| reader.place(&format!("{trail}.{name}")))
    {
        let message = format!(
            "servers may read a path with `{mark}` in another way, so a backend gets no request for it"
        );
        reader.report_at(&place, message, Help::act("write the part before it"));
    }
}

/// A field that says where a message ends, for whom it is and what the connection is for is ours to write; and a stored
/// response says nothing of one client.
fn check_headers(trail: &str, route: &Route, reader: &mut Reader<'_>) {
    for (name, values) in &route.request_headers {
        let Some(place) = reader.place(&format!("{trail}.request_headers.{name}")) else {
            continue;
        };
        // One client's address must not become everybody's object.
        let mut words = values.iter().filter_map(FieldTemplate::not_of_url);
        if let Some(word) = words.next().filter(|_| route.cache.is_some()) {
            let message =
                format!("{word} is one client's, and the responses of this route are kept for all");
            let help = "write {scheme}, {host} or {uri}, or move it to a route without `cache`";
            reader.report_at(&place, message, Help::act(help));
        }
        refuse_own(&format!("{trail}.request_headers.{name}"), name, reader);
    }
}

/// A stored response was asked for by GET, with what the answer varies by, and without a body.
fn check_kept(trail: &str, route: &Route, reader: &mut Reader<'_>) {
    let names = ["pass_headers", "backend_body", "backend_method"];
    for name in names.into_iter().filter(|_| route.cache.is_some()) {
        if let Some(place) = reader.place(&format!("{trail}.{name}")) {
            let message = format!(
                "`{name}` is for requests of which nothing is kept, and the route has `cache`"
            );
            reader.report_at(&place, message, Help::act("remove one of both"));
        }
    }
}

/// Refuses a header for servers that is ours to say.
pub(super) fn refuse_own(setting: &str, name: &str, reader: &mut Reader<'_>) {
    let lower = name.to_ascii_lowercase();
    let help = match &*lower {
        "host" => "write backend_host = \"…\"",
        name if is_own_request_header(name) => "remove it",
        _ => return,
    };
    if let Some(place) = reader.place(setting) {
        let message = format!("`{name}` is written by kettle for each connection to a server");
        reader.report_at(&place, message, Help::act(help));
    }
}

/// Its connections are for the requests of many clients, in HTTP/1.1 from their first byte.
fn check_backend(trail: &str, backend: &Backend, reader: &mut Reader<'_>) {
    if let Some(place) = reader.place(&format!("{trail}.send_proxy"))
        && backend.send_proxy != SendProxy::Off
    {
        let message = "a PROXY header names one client, and routes pass the requests of many to one connection; \
                       servers find the client in `Forwarded` and `X-Forwarded-For`";
        let help = "write send_proxy = \"off\", or another [[backend]] for routes";
        reader.report_at(&place, message.to_owned(), Help::act(help));
    }
    if let Some(place) = reader.place(&format!("{trail}.tls.starttls"))
        && backend.starttls() != StartTls::Off
    {
        let message = "routes pass requests in HTTP, which has no such dialogue".to_owned();
        reader.report_at(&place, message, Help::write("\"off\""));
    }
    let mut protocols = backend.tls.iter().flat_map(|tls| &tls.alpn);
    let other = protocols.find(|protocol| !protocol.starts_with("http/1."));
    if let (Some(other), Some(place)) = (other, reader.place(&format!("{trail}.tls.alpn"))) {
        let message =
            format!("routes pass requests in HTTP/1.1, and the server may agree on \"{other}\"");
        reader.report_at(&place, message, Help::write("[\"http/1.1\"]"));
    }
}

/// The settings of files alone.
const FILES: &[&str] = &[
    "root",
    "index",
    "try",
    "fallback",
    "fallback_for_folders",
    "fallback_except",
    "listing",
    "answer_options",
    "etag",
    "last_modified",
    "if_modified_since",
    "max_ranges",
    "symlinks",
    "dotfiles",
    "precompressed",
    "cache_control",
    "same_files",
    "charset",
    "charset_types",
    "mime",
    "types",
    "default_type",
];

/// Settings, and what says nothing without them.
const PARTS: [(&str, &[&str]); 2] = [
    ("fallback", &["fallback_for_folders", "fallback_except"]),
    ("compress", &["compress_types", "compress_min", "compress_for_proxies"]),
];

/// The settings of requests to a backend alone.
const REQUESTS: &[&str] = &[
    "intercept_errors",
    "beside",
    "add_prefix",
    "backend_host",
    "backend_redirect",
    "cookie_path",
    "cookie_domain",
    "cookie_flags",
    "request_headers",
    "pass_headers",
    "pass_body",
    "backend_body",
    "backend_method",
    "timeout",
    "request_body",
    "websocket",
    "encoded_slashes",
    "early_hints",
    "request_buffering",
    "response_buffering",
    "accel_redirect",
    "retry_on",
    "merge_slashes",
];

#[cfg(test)]
mod tests;
