//! `error_page`: what is sent in place of an error, by a site and by routes that say otherwise.

use kettle_config::{Origin, Template, quoted};

use super::Writer;
use super::answer::{Known, Returned, returned};
use super::place::Spot;
use super::route::{Answer, Key, Place, Route, Setting, spoken};
use crate::nginx::location::{is_only_of_missing, kind_of};
use crate::nginx::regex::is_of_all;
use crate::nginx::scope::{Scope, names_set};
use crate::nginx::syntax::Directive;
use crate::nginx::variables::{Part, Said, parts, said_by_service, with_said};
use crate::offer::{list, table};

impl Writer<'_> {
    pub(super) fn pages(&mut self, scope: &Scope<'_>) -> Option<Setting> {
        let all = scope.all("error_page");
        let first = all.first()?;
        let mut entries: Vec<(String, String)> = Vec::new();
        for page in &all {
            let target = target_of(page, scope).or_else(|| self.file_of(page, scope));
            let Some((codes, target)) = target else {
                // A route for what is missing leads there.
                let is_of_files = !scope.is_on("proxy_intercept_errors");
                if is_of_files && is_only_of_missing(page) {
                    continue;
                }
                let help = "`error_pages` lead errors to a path, or elsewhere";
                self.tell_of(page, help);
                continue;
            };
            if target.contains("{path}") {
                let message = format!("`{}` leads on without the query", spoken(page));
                let help = "a redirect of an error says {path} of what was asked for";
                self.output.warn(&page.origin, message, help);
            }
            for code in codes {
                if !entries.iter().any(|(other, _)| *other == code) {
                    entries.push((code, target.clone()));
                }
            }
        }
        let text = table(entries.iter().map(|(code, target)| (code.as_str(), target.clone())));
        (!entries.is_empty()).then(|| ("error_pages", text, first.origin.clone()))
    }

    /// Those of a location, where not all have those of their server; and whether they are for what backends say.
    pub(super) fn pages_of_route(&mut self, scope: &Scope<'_>, is_asked: bool) -> Vec<Setting> {
        let pages = if self.has_pages { None } else { self.pages(scope) };
        let intercepts = scope.find("proxy_intercept_errors");
        let intercepts = intercepts.filter(|it| it.word(0) == "on" && is_asked);
        let intercepts =
            intercepts.map(|it| ("intercept_errors", "true".to_owned(), it.origin.clone()));
        pages.into_iter().chain(intercepts).collect()
    }

    /// The page of a location without a path that is nothing but one file, which keeps the status of the error.
    fn file_of(&mut self, page: &Directive, scope: &Scope<'_>) -> Option<(Vec<String>, String)> {
        let (name, codes) = page.words.split_last()?;
        let named = scope.named(name)?;
        let inner = scope.server().with_location(named);
        let is_known =
            |it: &Directive| ["rewrite", "root", "internal", "add_header"].contains(&&*it.name);
        let mut rewrites = named.inner().iter().filter(|it| it.name == "rewrite");
        let (Some(rewrite), None) = (rewrites.next(), rewrites.next()) else { return None };
        let [pattern, path, flag] = rewrite.words.as_slice() else { return None };
        let is_plain = flag == "break" && is_of_all(pattern) && !path.contains(['$', '?', '{']);
        let are_codes = codes.iter().all(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
        let is_page = named.inner().iter().all(is_known) && is_plain && are_codes;
        let key = Key { place: Place::Exact(path_of_named(name)), regex: None, is_first: false };
        let root = self.asked_root(&inner, &key)?;
        if !is_page || Template::of_try(path).is_none() {
            return None;
        }
        let spot = Spot::alone(key, inner.clone(), named);
        let mut settings = self.route_settings(&inner, &spot, &named.origin);
        settings.push(("try", list([path.as_str()].into_iter()), rewrite.origin.clone()));
        let own = self.named_answer(name, Answer::Files(root, None), &named.origin);
        self.named_answers.get_mut(&own)?.settings.extend(settings);
        let target = format!("{{ route = {} }}", quoted(&own));
        (!codes.is_empty()).then(|| (codes.to_vec(), target))
    }

    /// Routes for locations without a path: those whose text is sent in place of errors, and those that cannot be carried over.
    pub(super) fn named_pages(&mut self, server: &Scope<'_>) -> Vec<Route> {
        let named =
            server.own().iter().filter(|it| it.name == "location" && it.word(0).starts_with('@'));
        let mut routes = Vec::new();
        for directive in named {
            let scope = server.with_location(directive);
            let Some((table, _)) = text_of(directive, &scope) else { continue };
            let place = Place::Exact(path_of_named(directive.word(0)));
            let key = Key { place, regex: None, is_first: false };
            let mut route = Route::new(&key, Answer::Text(table), &directive.origin);
            route.settings.push(("internal", "true".to_owned(), directive.origin.clone()));
            route.settings.extend(self.header_settings(&scope, &directive.origin));
            routes.push(route);
        }
        routes.extend(std::mem::take(&mut self.named_answers).into_values());
        routes
    }

    /// The path where this is answered to those who are led there.
    pub(super) fn named_answer(&mut self, name: &str, answer: Answer, origin: &Origin) -> String {
        let path = path_of_named(name);
        let key = Key { place: Place::Exact(path.clone()), regex: None, is_first: false };
        let mut route = Route::new(&key, answer, origin);
        route.settings.push(("internal", "true".to_owned(), origin.clone()));
        self.named_answers.insert(path.clone(), route);
        path
    }
}

/// Which errors a page is for, and where they lead.
fn target_of(page: &Directive, scope: &Scope<'_>) -> Option<(Vec<String>, String)> {
    let (uri, before) = page.words.split_last()?;
    let (status, codes) = match before.split_last() {
        Some((status, codes)) if status.starts_with('=') => (status.strip_prefix('='), codes),
        _ => (None, before),
    };
    let is_error = |code: &String| code.parse::<u16>().is_ok_and(|code| (300..600).contains(&code));
    let codes: Vec<String> = codes.iter().filter(|code| is_error(code)).cloned().collect();
    // With `=` alone it is that of the page.
    let status = match status {
        None => None,
        Some("") => Some(200),
        Some(status) => Some(status.parse::<u16>().ok().filter(|it| (200..600).contains(it))?),
    };
    let with = |status: Option<u16>| status.map_or(String::new(), |it| format!(", status = {it}"));
    let target = if uri.starts_with('@') {
        let named = scope.named(uri)?;
        let inner = scope.server().with_location(named);
        let Some((_, own)) = text_of(named, &inner) else {
            let (to, own) = redirect_of(named, &inner).or_else(|| sent_by(named, scope))?;
            // Without `=` it has the status of the error, and nobody follows it.
            let status = if before.last().is_some_and(|it| it == "=") { own } else { status? };
            let is_redirect = [301, 302, 303, 307, 308].contains(&status);
            let target = format!("{{ redirect = {}, status = {status} }}", quoted(&to));
            return (is_redirect && !codes.is_empty()).then_some((codes, target));
        };
        // Without `=` it is another one for each error.
        if status.is_none() && named.inner().iter().any(|it| it.word(1).contains("$status")) {
            return None;
        }
        let status = status.map(|_| own).or(Some(own));
        format!("{{ route = {}{} }}", quoted(&path_of_named(uri)), with(status))
    } else if uri.contains("://") || uri.starts_with('$') {
        let is_redirect = |it: &u16| [301, 302, 303, 307, 308].contains(it);
        let status = status.filter(is_redirect);
        let to = destination(uri, scope, &said_in(scope.settings()))?;
        format!("{{ redirect = {}{} }}", quoted(&to), with(status))
    } else {
        let is_plain = uri.starts_with('/') && !uri.contains(['$', '?', '#', '{']);
        is_plain.then(|| format!("{{ route = {}{} }}", quoted(uri), with(status)))?
    };
    (!codes.is_empty()).then_some((codes, target))
}

/// Returns where a location sends clients from a place with an error, and with which status.
fn sent_by(location: &Directive, scope: &Scope<'_>) -> Option<(String, u16)> {
    let decides = |it: &&Directive| {
        ["if", "rewrite", "return"].contains(&&*it.name) || it.name.ends_with("_pass")
    };
    let directive = location.inner().iter().find(decides).filter(|it| it.name == "return")?;
    let status: u16 = directive.word(0).parse().ok()?;
    let is_redirect = matches!(status, 301 | 302 | 303 | 307 | 308);
    let said = said_in([location.inner()].into_iter().chain(scope.settings()));
    let to = destination(directive.words.get(1).filter(|_| is_redirect)?, scope, &said)?;
    Some((to, status))
}

/// Returns where clients are sent from a place with an error. The path that was asked for is said without its query, which is
/// said in a query.
fn destination(text: &str, scope: &Scope<'_>, said: &Said) -> Option<String> {
    let text = with_said(text, said)?;
    let mut to = String::new();
    for part in parts(&text) {
        let is_query = to.contains('?');
        match part {
            Part::Text(text) if text.contains(['{', '}']) => return None,
            Part::Text(text) => to.push_str(text),
            Part::Variable("request_uri") if is_query => to.push_str("{asked_uri}"),
            Part::Variable("request_uri") => to.push_str("{path}"),
            Part::Variable("args" | "query_string") if is_query => to.push_str("{query}"),
            Part::Variable("host" | "http_host") => to.push_str("{host}"),
            Part::Variable("scheme") => to.push_str("{scheme}"),
            Part::Variable(name) => match said_by_service(scope, &format!("${name}")) {
                Some(header) => to.push_str(&format!("{{auth:{header}}}")),
                // A variable set elsewhere is empty here.
                None if names_of_services(scope).any(|it| it == name) => {}
                None => return None,
            },
        }
    }
    Template::is_destination(&to).then_some(to)
}

/// Returns the values of `set` in these blocks, the innermost first; nothing of what is set twice, or where an `if` holds.
fn said_in<'t>(blocks: impl Iterator<Item = &'t [Directive]>) -> Said {
    let mut said = Said::new();
    let blocks: Vec<&[Directive]> = blocks.collect();
    for directive in blocks.iter().rev().copied().flatten().filter(|it| it.name == "set") {
        let name = directive.word(0).trim_start_matches('$').to_owned();
        let value = with_said(directive.word(1), &said).filter(|_| !said.contains_key(&name));
        said.insert(name, value);
    }
    let of_conditions = blocks.into_iter().flatten().filter(|it| it.name == "if");
    for name in of_conditions.flat_map(|it| names_set(it.inner())) {
        said.insert(name, None);
    }
    said
}

/// The variables that take what services say, wherever in the server.
pub(super) fn names_of_services<'t>(scope: &Scope<'t>) -> impl Iterator<Item = &'t str> {
    fn collect<'t>(block: &'t [Directive], names: &mut Vec<&'t str>) {
        for directive in block {
            match directive.name.as_str() {
                "auth_request_set" => names.push(directive.word(0).trim_start_matches('$')),
                _ => collect(directive.inner(), names),
            }
        }
    }

    let mut names = Vec::new();
    collect(scope.server().own(), &mut names);
    names.into_iter()
}

/// True if errors of a server lead where its services say.
pub(super) fn asks_services(server: &Scope<'_>) -> bool {
    let targets = server.all("error_page");
    let named = targets.iter().filter_map(|it| server.named(it.words.last()?));
    let texts = named.flat_map(|it| it.inner().iter().flat_map(|it| &it.words));
    let texts: Vec<&String> =
        targets.iter().filter_map(|it| it.words.last()).chain(texts).collect();
    let is_of = |name: &str| {
        let is_it = |part: &Part<'_>| matches!(part, Part::Variable(it) if *it == name);
        texts.iter().any(|text| parts(text).iter().any(is_it))
    };
    names_of_services(server).any(is_of)
}

/// The answer of a location that is nothing but a text, and its status: it is sent as a page.
fn text_of(location: &Directive, scope: &Scope<'_>) -> Option<(String, u16)> {
    let decides = |it: &&Directive| ["if", "rewrite", "return", "set"].contains(&&*it.name);
    let directive = location.inner().iter().find(decides).filter(|it| it.name == "return")?;
    let status =
        directive.word(0).parse::<u16>().ok().filter(|it| (200..600).contains(it) && *it != 444)?;
    let mut page = directive.clone();
    page.words.first_mut()?.replace_range(.., "200");
    let said = Said::from([("status".to_owned(), Some(status.to_string()))]);
    let known = Known { said: &said, scheme: None, expression: None, is_path: false };
    let place = Place::Exact(kind_of(&location.words).1.to_owned());
    // It is no page without a text.
    let is_text = directive.words.len() > 1 && !directive.word(0).starts_with('3');
    match returned(&page, scope, Some(&place), &known).ok()? {
        Returned::Answer(Answer::Text(table)) if is_text => Some((table, status)),
        _ => None,
    }
}

/// Returns where a location leads that is nothing but a redirect, and its status: a page for passwords.
fn redirect_of(location: &Directive, scope: &Scope<'_>) -> Option<(String, u16)> {
    let mut own = location.inner().iter().filter(|it| it.name != "internal");
    let (Some(directive), None) = (own.next(), own.next()) else { return None };
    let said = Said::new();
    let known = Known { said: &said, scheme: None, expression: None, is_path: false };
    let place = Place::Exact(kind_of(&location.words).1.to_owned());
    if directive.name != "return" {
        return None;
    }
    match returned(directive, scope, Some(&place), &known).ok()? {
        Returned::Redirect(rule) if rule.regex.is_none() => Some((rule.to, rule.status?)),
        _ => None,
    }
}

/// The path by which errors lead to a location without one.
pub(super) fn path_of_named(name: &str) -> String {
    format!("/.named/{}", name.trim_start_matches('@'))
}
