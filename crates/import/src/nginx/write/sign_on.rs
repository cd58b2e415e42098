//! `auth_request` as a service that is asked before a route answers (`forward_auth`).

use std::collections::BTreeMap;

use kettle_config::{is_own_header, is_own_request_header, quoted};

use super::Writer;
use super::pass::{INPUT_HEADERS, add_line, is_usual, read};
use super::place::{Spot, Spots};
use super::route::{Route, Setting};
use super::target::Kind;
use super::tls::laxer_backend;
use crate::nginx::location::Shut;
use crate::nginx::measure;
use crate::nginx::scope::{Scope, WHOLE_PATH};
use crate::nginx::syntax::Directive;
use crate::nginx::variables::{Part, parts, said_by_service};
use crate::offer::{list, table, values};

/// The fate of each URI that an `auth_request` of a server has: a table without its last brace, or why it is none.
pub(super) type SignOns = BTreeMap<String, Result<String, &'static str>>;

impl Writer<'_> {
    /// The services that the places of a server ask.
    pub(super) fn sign_ons(&mut self, spots: &Spots<'_>) -> SignOns {
        let mut services = SignOns::new();
        for uri in spots.all.iter().filter_map(|spot| asked(&spot.scope)) {
            let uri = uri.word(0);
            if services.contains_key(uri) {
                continue;
            }
            let owner = spots.owner(uri).and_then(|number| spots.all.get(number));
            let service = owner.map_or(Err(NO_SERVICE), |spot| self.service(spot, uri));
            services.insert(uri.to_owned(), service);
        }
        services
    }

    /// True if a place does nothing but ask a service for others: `forward_auth` says how, and nobody is led there.
    pub(super) fn is_service(&self, spots: &Spots<'_>, spot: &Spot<'_>) -> bool {
        let mut asked = self.sign_ons.iter().filter(|(_, service)| service.is_ok());
        asked.any(|(uri, _)| {
            let owner = spots.owner(uri).and_then(|number| spots.all.get(number));
            owner.is_some_and(|it| std::ptr::eq(it, spot))
        })
    }

    /// The service that a location of its own asks.
    fn service(&mut self, spot: &Spot<'_>, uri: &str) -> Result<String, &'static str> {
        let scope = &spot.scope;
        let own = spot.location.map_or(&[][..], Directive::inner);
        let decides = ["if", "return", "rewrite", "try_files", "limit_except"];
        if spot.shut.is_some() || own.iter().any(|it| decides.contains(&&*it.name)) {
            return Err(NO_SERVICE);
        }
        let pass = own.iter().find(|it| it.name == "proxy_pass").ok_or(NO_SERVICE)?;
        let is_moved =
            |(it, _): &(kettle_config::Expression, bool)| it.as_str() != "^" && it.fits(uri);
        let is_altered = INPUT_HEADERS
            .iter()
            .chain(&["proxy_method", "proxy_set_body"])
            .any(|name| scope.find(name).is_some())
            || scope.find("proxy_pass_request_headers").is_some_and(|it| it.word(0) == "off");
        if self.before.iter().any(is_moved) || is_altered {
            return Err(OTHERWISE);
        }
        let target = read(pass.word(0)).ok_or(VARIABLES)?;
        // A path that variables say is all of it.
        let whole = target.path.strip_suffix(WHOLE_PATH);
        if whole.unwrap_or(target.path).contains('$') {
            return Err(VARIABLES);
        }
        if target.is_tls && laxer_backend(scope).is_some() {
            return Err(OTHERWISE);
        }
        let path = match (whole, &spot.key.regex, target.path) {
            (Some(path), ..) => path.to_owned(),
            (None, _, "") => uri.to_owned(),
            (None, Some(_), _) => return Err(OTHERWISE),
            (None, None, path) => {
                format!("{path}{}", uri.strip_prefix(&*spot.path).ok_or(OTHERWISE)?)
            }
        };
        if !path.starts_with('/') || path.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return Err(OTHERWISE);
        }
        let (host, headers) = self.told(scope)?;
        let kind = if target.is_tls { Kind::Https } else { Kind::Http };
        let host = self.backend_host(host, &target, &pass.origin);
        let backend = self.backend_of(scope, target.to, kind, &pass.origin);
        let mut text = format!("{{ backend = {}, path = {}", quoted(&backend), quoted(&path));
        if let Some((key, value, _)) = host {
            text.push_str(&format!(", {key} = {value}"));
        }
        // nginx sends it all that the client says.
        text.push_str(", request_headers = [\"*\"]");
        if !headers.is_empty() {
            let entries = headers.iter().map(|(name, all)| (name.as_str(), values(all)));
            text.push_str(&format!(", headers = {}", table(entries)));
        }
        let time = scope.find("proxy_read_timeout").and_then(|it| measure::seconds(it.word(0)));
        text.push_str(&format!(", timeout = \"{}s\"", time.unwrap_or(60).clamp(1, 60)));
        Ok(text)
    }

    /// Returns the headers for the service besides those of the client: the directive for its host, and all others.
    #[expect(clippy::type_complexity, reason = "names, each with its values")]
    fn told<'t>(
        &self,
        scope: &Scope<'t>,
    ) -> Result<(Option<&'t Directive>, Vec<(String, Vec<String>)>), &'static str> {
        let mut host = None;
        let mut headers = Vec::new();
        for directive in scope.all("proxy_set_header") {
            let name = directive.word(0);
            let value = directive.word(1).trim();
            let lower = name.to_ascii_lowercase();
            // There the path is that of the service's location, and no query.
            let is_own = |part: &Part<'_>| {
                matches!(
                    part,
                    Part::Variable("uri" | "document_uri" | "args" | "query_string" | "is_args")
                ) || matches!(part, Part::Variable(name) if name.starts_with("arg_"))
            };
            match lower.as_str() {
                "host" => host = Some(directive),
                "connection" | "upgrade" => {}
                _ if is_usual(&lower, value) => {}
                // It reaches no service anyway.
                _ if value.is_empty() && (is_own_request_header(&lower) || is_own_header(name)) => {
                }
                _ if is_own_request_header(&lower) || is_own_header(name) => return Err(HEADERS),
                _ if parts(value).iter().any(is_own) => return Err(HEADERS),
                _ => {
                    let said = self.words(value, scope, false).ok_or(HEADERS)?;
                    add_line(&mut headers, name, &said);
                }
            }
        }
        let value = host.map_or("$proxy_host", |it| it.word(1));
        let is_known =
            ["$http_host", "$host", "$host:$server_port", "$proxy_host"].contains(&value);
        if !is_known && value.contains('$') {
            return Err(HEADERS);
        }
        Ok((host, headers))
    }

    /// The service that is asked before a place answers.
    pub(super) fn forward_auth<'t>(&self, scope: &Scope<'t>) -> Result<Option<Setting>, Shut<'t>> {
        let Some(directive) = asked(scope) else { return Ok(None) };
        let has_others = !scope.any_of(&["allow", "deny", "auth_basic"]).is_empty();
        let is_any = scope.find("satisfy").is_some_and(|it| it.word(0) == "any");
        if is_any && has_others {
            return Err(Shut { directive, why: ANY });
        }
        match self.sign_ons.get(directive.word(0)) {
            Some(Ok(text)) => {
                Ok(Some((FORWARD_AUTH, format!("{text} }}"), directive.origin.clone())))
            }
            Some(Err(why)) => Err(Shut { directive, why }),
            None => Err(Shut { directive, why: NO_SERVICE }),
        }
    }

    /// Has the service of a route, if it asks one, say the headers that servers get from there; their names, in lower case.
    pub(super) fn copied(&self, scope: &Scope<'_>, route: &mut Route) -> Vec<String> {
        let Some((_, text, _)) = route.access.iter_mut().find(|(key, ..)| *key == FORWARD_AUTH)
        else {
            return Vec::new();
        };
        let mut copied: Vec<(String, String)> = Vec::new();
        for directive in scope.all("proxy_set_header") {
            let name = directive.word(0);
            let lower = name.to_ascii_lowercase();
            let is_ours =
                is_own_request_header(&lower) || is_own_header(name) || OURS.contains(&&*lower);
            if let Some(from) = said_by_service(scope, directive.word(1)).filter(|_| !is_ours) {
                copied.retain(|(known, _)| *known != lower);
                copied.push((
                    lower.clone(),
                    if from == lower { from } else { format!("{from}>{name}") },
                ));
            } else {
                copied.retain(|(known, _)| *known != lower);
            }
        }
        if let Some(table) = text.strip_suffix(" }").filter(|_| !copied.is_empty()) {
            *text = format!(
                "{table}, copy = {} }}",
                list(copied.iter().map(|(_, entry)| entry.as_str()))
            );
        }
        copied.into_iter().map(|(name, _)| name).collect()
    }
}

/// The `auth_request` that holds at a place.
fn asked<'t>(scope: &Scope<'t>) -> Option<&'t Directive> {
    scope.find("auth_request").filter(|it| it.word(0) != "off")
}

const FORWARD_AUTH: &str = "forward_auth";
/// The headers of kettle on a client in each request.
const OURS: [&str; 6] = [
    "host",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-request-id",
];
const NO_SERVICE: &str = "`forward_auth` of a route asks a backend, so its URI has to be a location that does nothing but `proxy_pass`";
const OTHERWISE: &str =
    "its location asks in another way than `forward_auth` of a route does: write that by hand";
const VARIABLES: &str = "`backend` and `path` of `forward_auth` have no variables: `headers` of it tell the service what is asked for";
const HEADERS: &str = "its location tells the service something that kettle has no words for";
const ANY: &str = "of several guards one is enough in nginx, and in kettle all hold";
