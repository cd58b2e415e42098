//! Services that are asked whether a request may go on: what they are told, and what they say of clients.

use std::collections::HashMap;

use super::caches::is_of_proxies;
use super::proxies::refuse_own;
use crate::diagnostic::Help;
use crate::model::{Backend, Config, FieldPart, FieldTemplate, ForwardAuth, NamedWord, Route};
use crate::read::Reader;
use crate::setting::is_own_request_header;

/// Records every mistake of such services.
pub(crate) fn check(config: &Config, reader: &mut Reader<'_>) {
    let backends: HashMap<&str, &Backend> =
        config.backends.iter().map(|it| (it.name.value.as_str(), it)).collect();
    for (number, site) in config.sites.iter().enumerate() {
        for (route, it) in site.routes.iter().enumerate() {
            let Some(auth) = &it.forward_auth else { continue };
            let trail = format!("site.{number}.route.{route}.forward_auth");
            if let Some(backend) = backends.get(auth.backend.value.as_str())
                && backend.protocol.runs_programs()
            {
                let message = format!("the backend \"{}\" speaks no HTTP/1.1", backend.name);
                let help = "write a [[backend]] with protocol = \"http1\"";
                reader.report_located(&auth.backend, message, Help::act(help));
            }
            check_told(&trail, auth, reader);
            check_copied(&trail, it, auth, reader);
        }
    }
}

/// A field that it is told was written by us, or is one client's word for itself.
fn check_told(trail: &str, auth: &ForwardAuth, reader: &mut Reader<'_>) {
    for (name, _) in &auth.headers {
        refuse_own(&format!("{trail}.headers.{name}"), name, reader);
    }
    let Some(place) = reader.place(&format!("{trail}.request_headers")) else { return };
    for name in auth.request_headers.iter().filter(|name| *name != ALL) {
        let lower = name.to_ascii_lowercase();
        if is_own_request_header(&lower) || is_of_proxies(&lower) {
            let message = format!("no server sees the `{name}` of a client");
            reader.report_at(&place, message, Help::act(format!("remove \"{name}\"")));
        }
    }
}

/// A field that it sets for a client reaches a backend that asks for this client alone, and nobody else sets it.
fn check_copied(trail: &str, route: &Route, auth: &ForwardAuth, reader: &mut Reader<'_>) {
    let Some(place) = reader.place(&format!("{trail}.copy")).filter(|_| !auth.copy.is_empty())
    else {
        return;
    };
    let why = match (&route.cache, &route.backend) {
        (Some(_), _) => {
            "responses of this route are kept for all, and these headers are one client's"
        }
        (None, None) => "these headers are for the backend of the route, which has none",
        (None, Some(_)) => "",
    };
    if !why.is_empty() {
        return reader.report_at(&place, why.to_owned(), Help::act("remove it"));
    }
    for (_, name) in auth.copied() {
        let lower = name.to_ascii_lowercase();
        if is_own_request_header(&lower) || OURS.contains(&lower.as_str()) {
            let message = format!("`{name}` is written by kettle for each request to a server");
            reader.report_at(&place, message, Help::act(format!("remove \"{name}\"")));
        }
        if let Some((own, _)) = route.request_headers.iter().find(|(own, _)| is_one(own, name)) {
            let message = format!("`{own}` of `request_headers` takes its place");
            reader.report_at(&place, message, Help::act("remove one of both"));
        }
        let says = |(_, values): &&(String, Vec<FieldTemplate>)| {
            let mut parts = values.iter().flat_map(FieldTemplate::parts);
            parts.any(|part| {
                matches!(part, FieldPart::Named(NamedWord::Header, own) if is_one(own, name))
            })
        };
        let params = route.fastcgi.iter().flat_map(|it| &it.params);
        if let Some((own, _)) = route.request_headers.iter().chain(params).find(says) {
            let message =
                format!("{{header:{name}}} in `{own}` is the client's, who may say anything");
            let help = "remove the word: `copy` sends that header by itself";
            reader.report_at(&place, message, Help::act(help));
        }
    }
}

/// True if programs behind gateways take two names for one.
fn is_one(name: &str, other: &str) -> bool {
    let seen = |it: &str| -> Vec<u8> {
        it.bytes()
            .map(|byte| if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b'-' })
            .collect()
    };
    seen(name) == seen(other)
}

/// Stands for all headers of a client.
const ALL: &str = "*";
/// The fields that each request to a server has of its client.
const OURS: [&str; 6] = [
    "host",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-request-id",
];
